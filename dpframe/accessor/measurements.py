"""The tables of a release of marginals as arrays with their variances, for anyone who fits a model to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe.queries.marginal_tables import places_of_levels


class Measurement(NamedTuple):
    """A table of counts with unbiased noise: its columns, its values, and the variance of each of its cells."""

    columns: tuple[str, ...]
    values: NDArray[np.float64]
    variance: float


def measurements_of(values: NDArray[np.float64], facts: Mapping[str, Any]) -> list[Measurement]:
    """The tables of a record, read off all values in the order in which they were released."""
    (measure,), (statistic,) = facts["measures"].values(), facts["statistics"]
    sizes = {axis["columns"][0]: axis["size"] for axis in facts["cells"]}
    return [
        Measurement(
            tuple(level["columns"]),
            values[place].reshape([sizes[column] for column in level["columns"]]),
            deviation**2 * statistic["variance"],
        )
        for level, place, deviation in zip(
            facts["levels"], places_of_levels(facts["levels"]), measure["deviations"], strict=True
        )
    ]
