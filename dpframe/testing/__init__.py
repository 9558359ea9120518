"""Checks for extensions of dpframe, and contexts for tests of your own pipelines.

Each check compares one extension with its contract and names the rule that it breaks.

    from dpframe.testing import check_mechanism

    def test_my_noise():
        check_mechanism(MyNoise.calibrate(sensitivity=1, epsilon=1.0))

A check covers only rules that can be tested. A privacy claim still needs a proof: a check detects noise that is 2% too
small, but no leak in the last bits of the noise. ``docs/reference/extending.md`` has an example of each kind.
``docs/cookbook/test-a-pipeline.md`` explains `seeded` and `exact`.
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
