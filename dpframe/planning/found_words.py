"""Words on keys that are found, for plans and records."""

from __future__ import annotations

from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.queries.query import Query


def found_words(law: Mechanism) -> str:
    """The line above which a group is shown, in numbers of people."""
    assert isinstance(law, Thresholded)
    return law.words


def found_notes(query: Query, law: Mechanism) -> list[str]:
    """Notes for the reader on keys that are found; none where all are declared."""
    axis = query.found
    if axis is None or axis.discovery is None:
        return []
    said = [found_words(law), "among groups that are shown, the numbers of those near the threshold are too high"]
    if axis.discovery.largest:
        said.append(f"at most {axis.discovery.largest:,} of them are shown, those of the largest noisy numbers")
    if not any(axis.people in statistic.totals() for _, statistic in query.statistics):
        said.append("the numbers of units take their part of the price, and are told at no other: ask for n_units too")
    if axis.discovery.max_keys > 1 and not axis.by_rows:
        said.append(f"of a unit with more than {axis.discovery.max_keys:,} groups a random choice of them counts")
    if law.p == 1 and axis.discovery.max_keys > 1 and not axis.by_rows:
        said.append(
            "Laplace noise finds few groups: with a delta of the call, and so Gaussian noise, far more are found"
        )
    if not axis.discovery.nulls:
        said.append(f"rows without a value of {' or '.join(axis.columns)} are in no group")
    return said
