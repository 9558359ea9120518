"""The axes of a group-by: bins, dates and declared keys, in the order in which they were named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dpframe.errors import InvalidArgument, MissingArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries import limits
from dpframe.queries.bins import BinAxis, bin_axis
from dpframe.queries.keys import key_axes
from dpframe.queries.limits import Placed, check_column


@dataclass(frozen=True)
class Bins(Placed):
    """Declared bins of a column, to group by; made by ``dpf.bins``."""

    where: ClassVar[str] = (
        'dpf.bins must stand inside group_by, as in group_by(dpf.bins("age", [0, 18, 65, 120])).count(epsilon=1). '
        "Elsewhere name the column, and in a histogram write bins=[0, 18, 65, 120]."
    )

    column: str
    size: int  # how many they are, as far as it is known before they are made
    axes: tuple[Any, ...] = field(repr=False)

    def made(self) -> BinAxis:
        """The axis; of very many bins it is made only where a call says that it means them."""
        (axis,) = limits.axes_made(self.axes, limits.LARGEST_CELLS)
        return axis  # type: ignore[no-any-return]


@trimmed
def bins(column: str, bins: Any = None, *, range: Any = None, outside: Literal["drop", "clip"] = "drop") -> Bins:
    """Cut a column into bins, as groups of `group_by`.

    Parameters
    ----------
    column : str
        A column of numbers, dates, datetimes or durations.
    bins : sequence of edges, int, or str
        As in `histogram`: edges, half-open, the last bin closed; or a number of equal bins with `range`; or of a column
        of dates ``"1d"``, ``"1w"``, ``"1mo"``, ``"1q"`` or ``"1y"`` with `range`.
    range : pair, optional
        The first and the last edge.
    outside : {"drop", "clip"}
        Whether values outside the edges are in no group, or in those at the ends.

    Returns
    -------
    Bins
        For `group_by`, together with keys of other columns or alone; nowhere else. The result has the columns
        ``COL_left`` and ``COL_right``.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        As `histogram`.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62], "sex": ["f", "m", "f"], "cost": [10.0, 20.0, 30.0]})
    >>> ages = dpf.bins("age", [0, 18, 65, 120])
    >>> with dpf.Ledger(epsilon=1):
    ...     costs = people.dp.group_by(ages, "sex", keys=["f", "m"]).sum("cost", bounds=(0, 100), epsilon=0.5)
    >>> costs.columns[:3], costs.height
    (['age_left', 'age_right', 'sex'], 6)
    """
    check_column(column)
    if bins is None:
        raise MissingArgument(
            "bins must be given: the edges of the bins, from what you know and never from the data. "
            f"Write for instance dpf.bins({shown(column)}, [0, 18, 65, 120])."
        )
    size = limits.of_bins(1, bins, None)
    return Bins(column, size, limits.axes_or_later(size, lambda: (bin_axis(column, bins, range, outside),)))


def named(by: Sequence[str | Bins]) -> tuple[str, ...]:
    """The columns whose groups are keys."""
    return tuple(column for column in by if not isinstance(column, Bins))


def size_of(by: Sequence[str | Bins], keys: int) -> int:
    """The number of groups, where the keys have so many."""
    for column in by:
        keys *= column.size if isinstance(column, Bins) else 1
    return keys


def group_axes(by: tuple[str | Bins, ...], keys: object, combinations: Sequence[Iterable[Any]] | None) -> Any:
    """The axes of ``group_by(*by, keys=keys)``, each where its first column was named."""
    columns = named(by)
    if len(columns) == len(by):
        return key_axes(columns, keys, combinations)
    if not columns and (keys is not None or combinations is not None):
        raise InvalidArgument("keys must be left out where group_by names bins alone, which are the groups. Drop them.")
    declared = {axis.columns[0]: axis for axis in key_axes(columns, keys, combinations)} if columns else {}
    axes = []
    for column in by:
        if isinstance(column, Bins):
            axes.append(column.made())
        elif declared:  # of combinations there is one axis for all columns
            axis = declared.pop(column, None)
            axes += [axis] if axis is not None else []
    return (*axes, *declared.values())
