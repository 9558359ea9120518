"""A whole question: measures over public cells, priced and released as one."""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.errors import InvalidArgument
from dpframe.queries.cells import Keys
from dpframe.queries.statistics import Measure, Statistic

NOISY, ERROR = "_noisy", "_error"


@dataclass(frozen=True)
class Query:
    """What one call asks: named measures over the cells of `keys`."""

    verb: str
    keys: Keys
    measures: tuple[tuple[str, Measure], ...]

    def __post_init__(self) -> None:
        names = list(self.keys.names)
        for name, _ in self.measures:
            names += [name, name + NOISY, name + ERROR]
        for name in names:
            if names.count(name) > 1:
                raise InvalidArgument(
                    f"output columns must have different names, but {name!r} occurs twice (a statistic NAME also adds "
                    "NAME_noisy and NAME_error). Name the statistics yourself, as in agg(n=dpf.count())."
                )

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What has to be measured; equal statistics once."""
        return tuple(dict.fromkeys(statistic for _, measure in self.measures for statistic in measure.statistics()))

    def __str__(self) -> str:
        asked = ", ".join(str(measure) for _, measure in self.measures)
        cells = " x ".join(str(axis) for axis in self.keys.axes)
        return f"{asked} by {cells}" if cells else asked
