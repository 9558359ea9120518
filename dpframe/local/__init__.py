"""The local model: values that are randomized before anybody collects them, and estimates from the reports.

Neighbors here are data sets in which one person's value is replaced. That the person takes part is public, and so is
the number of reports. ``docs/guide/local.md`` says when to use which method.

Examples
--------
>>> import dpframe as dpf, polars as pl
>>> method = dpf.local.SubsetSelection(["A", "B", "C"], epsilon=1)
>>> reports = method.randomize(pl.Series("drug", ["A", "A", "C"]))
>>> method.estimate(reports).columns
['drug', 'count', 'count_noisy', 'count_error']
"""

from __future__ import annotations

from typing import Any

from dpframe.errors import InvalidArgument, NoProvenance, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, foreign
from dpframe.frames.columns import column_frame
from dpframe.local.categorical import CountMeanSketch, RandomizedResponse, SubsetSelection
from dpframe.local.method import LocalMethod, json_object
from dpframe.local.rappor import Rappor
from dpframe.local.window import Mean

__all__ = ["CountMeanSketch", "Mean", "RandomizedResponse", "Rappor", "SubsetSelection", "estimate", "from_json"]

BY_NAME: dict[str, type[LocalMethod]] = {
    method.__name__: method for method in (CountMeanSketch, Mean, Rappor, RandomizedResponse, SubsetSelection)
}


@trimmed
def estimate(reports: Any, *, denoise: str | None = "default") -> Any:
    """Estimate from released reports, at no cost; their provenance names the method.

    Parameters
    ----------
    reports : released frame
        The result of ``df.dp.local.randomize``, or a file of it that `dpframe.read_parquet` read.
    denoise : {"public-total", None}, optional
        As in the method's own ``estimate``.

    Returns
    -------
    DataFrame
        As from the method's own ``estimate``, in the library of the reports.

    Raises
    ------
    NoProvenance
        If the frame does not name its method: then call ``method.estimate(reports)``.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"drug": ["A", "B", "A", None] * 500})
    >>> ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(neighbors="replace"))
    >>> method = dpf.local.RandomizedResponse(["A", "B"], epsilon=1)
    >>> reports = people.dp.local.randomize("drug", method=method, ledger=ledger)
    >>> dpf.local.estimate(reports).columns
    ['drug', 'count', 'count_noisy', 'count_error']
    """
    frame, _ = column_frame(reports, "reports")
    record = build.record_of(frame) or {}
    if not record or not foreign.is_reports(record):
        raise NoProvenance(
            "reports must carry the provenance of df.dp.local.randomize, which tells their method, and these do not. "
            "Write method.estimate(reports) with the method that made them."
        )
    return method_of(record["method"]).estimate(reports, denoise=denoise)


@trimmed
def from_json(text: str) -> LocalMethod:
    """Read any method that ``to_json`` wrote.

    Parameters
    ----------
    text : str
        The result of ``method.to_json()``.

    Returns
    -------
    LocalMethod

    Raises
    ------
    InvalidArgument
        If it is no such text.

    Examples
    --------
    >>> import dpframe as dpf
    >>> method = dpf.local.Mean((0, 120), epsilon=1)
    >>> dpf.local.from_json(method.to_json()) == method
    True
    """
    return method_of(json_object(text))


def method_of(facts: Any) -> LocalMethod:
    """Return the method that the facts describe."""
    kind = BY_NAME.get(facts.get("method")) if isinstance(facts.get("method"), str) else None
    if kind is None:
        raise InvalidArgument(f"text must name one of {', '.join(sorted(BY_NAME))}, not {shown(facts.get('method'))}.")
    return kind.of_facts(facts)


def __dir__() -> list[str]:
    return [*__all__]
