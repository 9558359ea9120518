"""Checks for what people add to dpframe, and contexts for tests of their own pipelines.

Each check tries one thing against its contract and says which rule it breaks.

    from dpframe.testing import check_mechanism

    def test_my_noise():
        check_mechanism(MyNoise.calibrate(sensitivity=1, epsilon=1.0))

What passes keeps to the rules that can be tried. A privacy claim still needs its proof: a check finds noise that is 2%
too small, and not noise that leaks in its last bits. ``docs/reference/extending.md`` has an example of each kind.
``docs/cookbook/test-a-pipeline.md`` is about `seeded` and `exact`.
"""

from dpframe.engines.engine import Engine, Partial, added_up
from dpframe.testing.accounting_rules import check_accounting
from dpframe.testing.broken import ContractBroken
from dpframe.testing.engine_and_denoiser_rules import check_denoiser, check_engine
from dpframe.testing.mechanism_rules import check_mechanism
from dpframe.testing.statistic_rules import check_statistic
from dpframe.testing.trials import exact, seeded

__all__ = [
    "ContractBroken",
    "Engine",
    "Partial",
    "added_up",
    "check_accounting",
    "check_denoiser",
    "check_engine",
    "check_mechanism",
    "check_statistic",
    "exact",
    "seeded",
]


def __dir__() -> list[str]:
    return [*__all__]
