"""Audits from outside: what an attacker can prove about a mechanism or a denoiser, no matter who wrote it.

`epsilon` and `mu` call a release on two neighboring data sets many times and bound the privacy loss from below by what
the answers show. An audit never proves privacy; it finds its absence.

Examples
--------
>>> import dpframe as dpf, polars as pl
>>> people = pl.DataFrame({"age": [31, 45, 62]})
>>> def one_count(frame):
...     return frame.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
>>> found = dpf.audit.epsilon(
...     lambda: one_count(people), lambda: one_count(people[:2]), claimed=1.0, samples=400, confidence=0.999999
... )
>>> found.holds
True
"""

from dpframe.audit.auditor import Finding, epsilon, mu

__all__ = ["Finding", "epsilon", "mu"]


def __dir__() -> list[str]:
    return [*__all__]
