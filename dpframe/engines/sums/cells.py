"""Rows to cells: keys by their position among the declared ones, bins by their edges exactly as numpy.histogram.

Each way to find a position gives one to each row, whatever the row holds: declared keys are different as the column
compares them, and no way can fail on a value. The dtype, the declared keys and the number of rows decide which way is
taken, and never a value.

Numbers in bins of nearly even widths are placed by one multiplication. The proof: each value is counted in fine steps,
2**26 to a bin. Edges lie within half a fine step of even ones, and the rounding of floats moves a value by less than
that. So the fine step of a value shows its bin, except next to an edge: those few values are compared with the edge
itself.

Conditions (`where=` of a statistic) apply to rows here and nowhere else. A `Conditional` column has the value of its
column in the rows where the conditions hold, and is missing in all others. So all code that reads columns of a `Source`
reads it as any column: sums, counts, vectors, kernels, units, checks. Places of values are found as those of keys and
bins; the row itself decides, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.found_labels import told_apart
from dpframe.engines.columns.identity import NOWHERE, Declared, as_stored, combinations, combined, declared
from dpframe.engines.columns.source import FEW_ROWS, ColumnRequest, ColumnType, Role, Source, collected
from dpframe.queries.bins import BinAxis, Coding, RunningAxis
from dpframe.queries.keys import KeyAxis, Keys, RestAxis
from dpframe.queries.quantiles import among_own
from dpframe.queries.where import Condition, Conditional, GroupBounds, RangeAxis, is_compared

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK = 2**16  # values at a time, which stay in the processor's cache
BITS = 26
FINE = 2**BITS  # fine steps in a bin: one value in 2**25 is next to an edge
EVEN_BLOCK = 2**15  # values at a time, which stay in the processor's cache
NEXT_TO_AN_EDGE = 2  # the fine steps before and after an edge; all are moved up by one
NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)  # integers that fit Int64
FEW_KEYS = 2**8  # strings up to which their Enum is kept; an Enum of many strings takes long to make for few rows
LEAST_WIDTH = 2.0**-1022  # minimum width of bins that are guessed: for narrower ones, the number per unit is infinite
LOOK_UP = 2**20  # range of integer keys up to which a table of all integers is made
OUTSIDE = NOWHERE  # the code of a value in no cell


@dataclass(frozen=True)
class HalfOpenBins:
    """Bins in a column's own numbers: bin i is edges[i] <= value < edges[i + 1]."""

    edges: NDArray[Any]
    size: int  # the number of bins
    closed: bool  # whether an infinite last edge also takes values that equal it, but no NaN
    even: EvenBins | None
    guess: tuple[float, float] | None  # the result of `near_uniform` for bins that are not even

    @classmethod
    def of(cls, edges: NDArray[Any], closed: bool) -> Self:
        """Return the half-open bins between these edges."""
        even = EvenBins.of(edges)
        return cls(edges, edges.size - 1, closed, even, near_uniform(edges) if even is None else None)

    def counted(self, values: NDArray[Any]) -> Integers:
        """Return the number of values in each bin; uneven ones sort blocks, which is faster than a search per value."""
        if self.even is not None and self.edges.size <= BLOCK:
            return self.even.counted(values)
        edges, below = self.edges, np.zeros(self.edges.size, dtype=np.int64)
        for start in range(0, values.size, BLOCK):
            block = np.sort(values[start : start + BLOCK])  # NaN last, above every edge
            below += np.searchsorted(block, edges)
            if self.closed:
                below[-1] += np.searchsorted(block, edges[-1], side="right") - np.searchsorted(block, edges[-1])
        return np.diff(below)

    def codes(self, values: NDArray[Any]) -> Integers:
        """Return the bin of each value; NOWHERE for a value in none, such as NaN."""
        codes = np.empty(values.size, dtype=np.int64)
        for start in range(0, values.size, BLOCK):
            codes[start : start + BLOCK] = self._codes_of_block(values[start : start + BLOCK])
        return codes

    def codes_of(self, column: pl.Series) -> Integers:
        """Return the bin of each value of a column; OUTSIDE for a missing value too."""
        codes = self.codes(column.fill_null(0).to_numpy())
        return np.where(column.is_null().to_numpy(), OUTSIDE, codes) if column.null_count() else codes

    def _codes_of_block(self, block: NDArray[Any]) -> Integers:
        if self.even is not None:
            code = self.even.places(block)
            return np.where(code < self.size, code, NOWHERE)
        edges = self.edges
        inside = (block >= edges[0]) & ((block <= edges[-1]) if self.closed else (block < edges[-1]))
        if self.guess is None:
            code = np.searchsorted(edges, block, side="right") - 1
        else:
            code = _guessed(block, edges, *self.guess)
        return np.where(inside, np.minimum(code, self.size - 1), NOWHERE)


def half_open_bins(axis: BinAxis, tick: int) -> HalfOpenBins:
    """Return the bins of an axis in the column's own numbers: bin i is edges[i] <= value < edges[i + 1] for every i.

    A closed last bin, as in NumPy, has its edge moved up by one float or one tick. Edges between two ticks of a coarser
    column move up to the next tick, which changes no comparison.
    """
    if isinstance(axis, RunningAxis):
        return HalfOpenBins.of(_right_closed_edges(axis, tick), axis.outside == "clip")
    if axis.kind == "number":
        edges = np.array(axis.edges, dtype=np.float64)
        if axis.closed:
            edges[-1] = math.nextafter(edges[-1], math.inf)
    else:
        ticks = [-(-int(edge) // tick) for edge in axis.edges]
        if axis.closed:
            ticks[-1] = int(axis.edges[-1]) // tick + 1
        edges = np.array(np.clip(np.array(ticks, dtype=object), -(2**63), 2**63 - 1), dtype=np.int64)
    if axis.outside == "clip":
        lowest, highest = (-math.inf, math.inf) if axis.kind == "number" else (-(2**63), 2**63 - 1)
        edges[0], edges[-1] = lowest, highest
    return HalfOpenBins.of(edges, axis.outside == "clip")


def _right_closed_edges(axis: RunningAxis, tick: int) -> NDArray[Any]:
    """Return the edges of bins that hold their right edges, open below the first, with a cell above the last.

    Each edge moves up by one float, or to the next tick above it.
    """
    if axis.kind == "number":
        above = np.nextafter(np.array(axis.edges[1:], dtype=np.float64), np.inf)
        return np.concatenate([[-math.inf], above, [math.inf]])
    ticks = [-(2**63), *(int(edge) // tick + 1 for edge in axis.edges[1:]), 2**63 - 1]
    return np.array(np.clip(np.array(ticks, dtype=object), -(2**63), 2**63 - 1), dtype=np.int64)


def near_uniform(edges: NDArray[Any]) -> tuple[float, float] | None:
    """Return origin and bins per unit if a guess by division is off by at most one bin; else None."""
    if edges.size < 3 or not np.isfinite(edges.astype(np.float64)).all():
        return None
    numbers = edges.astype(np.float64)
    width = (numbers[-2] - numbers[0]) / (numbers.size - 2)
    if width < LEAST_WIDTH:
        return None
    places = (numbers[:-1] - numbers[0]) / width
    return (float(numbers[0]), 1.0 / width) if np.abs(places - np.arange(places.size)).max() < 0.25 else None


def _guessed(block: NDArray[Any], edges: NDArray[Any], origin: float, per_unit: float) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore", over="ignore"):
        guess = (block.astype(np.float64) - origin) * per_unit
    code = np.clip(np.nan_to_num(guess, nan=0.0), 0, edges.size - 2).astype(np.int64)
    code -= (block < edges[code]) & (code > 0)
    code += (block >= edges[code + 1]) & (code < edges.size - 2)
    return code


@dataclass(frozen=True)
class EvenBins:
    """Half-open bins of nearly even widths: bin i is edges[i] <= value < edges[i + 1]."""

    edges: Floats
    size: int  # the number of bins
    scale: float  # fine steps in a unit of the values
    shift: float

    @classmethod
    def of(cls, edges: NDArray[Any]) -> Self | None:
        """Return the bins; None if the edges are not that even, not finite, or integers."""
        if edges.dtype != np.float64 or edges.size < 3 or not np.isfinite(edges).all():
            return None
        with np.errstate(all="ignore"):
            scale = FINE * float(edges.size - 2) / float(edges[-2] - edges[0])
            shift = 1.0 - float(edges[0]) * scale
            beside = np.abs(edges * scale + shift - (np.arange(edges.size) * float(FINE) + 1.0)).max()
            rounded = (np.abs(edges).max() * scale + abs(shift)) * 2.0**-50  # more than two roundings change
        return cls(edges, edges.size - 1, scale, shift) if beside + rounded < 0.5 else None

    def places(self, values: Floats) -> Integers:
        """Return the bin of each value of a block; `size` for a value in none, such as NaN."""
        moved, places, rest = np.empty(values.size), np.empty(values.size, np.int64), np.empty(values.size, np.int64)
        return self._placed(values, moved, places, rest)

    def _placed(self, values: Floats, moved: Floats, places: Integers, rest: Integers) -> Integers:
        with np.errstate(all="ignore"):
            np.multiply(values, self.scale, out=moved)
            moved += self.shift
            places[:] = moved  # a value that fits no integer (NaN too) becomes 0 or lies far beyond all bins
        unsigned = places.view(np.uint64)  # negative numbers become large
        np.minimum(unsigned, np.uint64(self.size * FINE + FINE // 2), out=unsigned)
        np.bitwise_and(places, FINE - 1, out=rest)
        places >>= BITS
        if rest.min(initial=FINE) < NEXT_TO_AN_EDGE:
            near = np.flatnonzero(rest < NEXT_TO_AN_EDGE)
            edge = places[near]
            exact = edge - 1 + (values[near] >= self.edges[edge])
            places[near] = np.where(exact < 0, self.size, exact)
        return places

    def counted(self, values: Floats) -> Integers:
        """Return the number of values in each bin."""
        whole = np.zeros(self.size + 1, dtype=np.int64)
        moved, places, rest = np.empty(EVEN_BLOCK), np.empty(EVEN_BLOCK, np.int64), np.empty(EVEN_BLOCK, np.int64)
        for start in range(0, values.size, EVEN_BLOCK):
            block = values[start : start + EVEN_BLOCK]
            found = self._placed(block, moved[: block.size], places[: block.size], rest[: block.size])
            whole += np.bincount(found, minlength=whole.size)
        return whole[:-1]


@dataclass(frozen=True)
class Cells:
    """Cells of a query, and the engine's columns that decide the cell of a row."""

    source: Source
    keys: Keys
    columns: dict[str, str]  # the caller's column -> the engine's
    declared: dict[str, Declared]  # the caller's column -> its keys, as the column compares them
    bins: list[BinAxis]  # the axes that are bins

    @classmethod
    def of(cls, source: Source, keys: Keys, name: str = "key") -> Self:
        """Number the columns of the keys."""
        columns = {column: f"{name}{number}" for number, column in enumerate(keys.columns)}
        declared: dict[str, Declared] = {}
        for axis in keys.axes:
            declared |= WAYS[axis.coding].declared(source, axis)
        axes: Sequence[Any] = keys.axes
        return cls(source, keys, columns, declared, [axis for axis in axes if axis.coding == "bins"])

    def requests(self) -> list[ColumnRequest]:
        """Return the columns to load."""
        return [request for axis in self.keys.axes for request in WAYS[axis.coding].requests(self, axis)]

    def names(self) -> list[str]:
        """Return the engine's columns."""
        return list(self.columns.values())

    @cached_property
    def half_open(self) -> dict[str, HalfOpenBins]:
        """Bins of each column that has some: computed once, for all blocks of rows."""
        return {axis.column: half_open_bins(axis, self.source.column(axis.column).tick) for axis in self.bins}

    def codes(self, table: pl.DataFrame) -> Integers:
        """Return the row-major number of each row's cell; OUTSIDE if it is in none."""
        code: Integers | None = None
        for axis in self.keys.axes:
            axis_code = self.axis_codes(axis, table)
            code = axis_code if code is None else _combined(code, axis_code, axis.size)
        return np.zeros(table.height, dtype=np.int64) if code is None else code

    def axis_codes(self, axis: Any, table: pl.DataFrame) -> Integers:
        """Return the number of each row's cell on one axis; OUTSIDE if it is in none."""
        return WAYS[axis.coding].codes(self, axis, table)

    def are_positions(self, column: str, schema: pl.Schema) -> bool:
        """Return whether the keys of a column were loaded as positions among the declared ones."""
        return come_as_positions(self.source.column(column), schema[self.columns[column]])

    def positions(self, column: str, table: pl.DataFrame) -> Integers:
        """Return the position of each row among the keys of one column."""
        keys = self.declared[column]
        values = table[self.columns[column]]
        if come_as_positions(self.source.column(column), values.dtype):
            return values.cast(pl.Int64).to_numpy()
        code = positions(values, keys.values)
        if keys.missing == NOWHERE or not values.null_count():
            return code
        return np.where(values.is_null().to_numpy(), keys.missing, code)


@dataclass(frozen=True)
class Way:
    """Way from values to places of an axis: its declared keys, the columns to load, and the codes of rows."""

    declared: Callable[[Source, Any], dict[str, Declared]]
    requests: Callable[[Cells, Any], list[ColumnRequest]]
    codes: Callable[[Cells, Any, pl.DataFrame], Integers]


def _declared_in_all(source: Source, axis: KeyAxis) -> dict[str, Declared]:
    return {column: declared_keys(source, axis, position) for position, column in enumerate(axis.columns)}


def _key_requests(cells: Cells, axis: KeyAxis) -> list[ColumnRequest]:
    return [(cells.columns[column], column, "key", cells.declared[column]) for column in axis.columns]


def _key_codes(cells: Cells, axis: KeyAxis, table: pl.DataFrame) -> Integers:
    *inner, rows = combinations([cells.declared[column] for column in axis.columns])
    code = cells.positions(axis.columns[0], table)
    for column, known in zip(axis.columns[1:], inner, strict=True):
        both = combined(code, cells.positions(column, table), cells.declared[column].size)
        code = positions(pl.Series("", both), known)
    if np.array_equal(rows, np.arange(rows.size)):
        return code
    cell_of = np.full(rows.max(initial=NOWHERE) + 2, NOWHERE)  # the cell of each number; the last entry is for NOWHERE
    cell_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return np.asarray(cell_of[code])


def _rest_codes(cells: Cells, axis: RestAxis, table: pl.DataFrame) -> Integers:
    """Return the place of each row: the last one if its value is none of the declared keys."""
    codes = _key_codes(cells, axis.declared, table)
    return np.where(codes < 0, axis.declared.size, codes)


def _bin_codes(cells: Cells, axis: BinAxis, table: pl.DataFrame) -> Integers:
    return cells.half_open[axis.column].codes_of(table[cells.columns[axis.column]])


_BY_KEYS = Way(_declared_in_all, _key_requests, _key_codes)
WAYS: Mapping[Coding, Way] = {
    "keys": _BY_KEYS,
    "found": _BY_KEYS,
    "rest": Way(
        lambda source, axis: _declared_in_all(source, axis.declared),
        lambda cells, axis: _key_requests(cells, axis.declared),
        _rest_codes,
    ),
    "bins": Way(
        lambda source, axis: {},
        lambda cells, axis: [(cells.columns[axis.column], axis.column, "bin", axis.kind)],
        _bin_codes,
    ),
}


def _combined(outer: Integers, inner: Integers, size: int) -> Integers:
    """Return row-major codes of two axes; OUTSIDE if either is."""
    code = outer * size + inner
    if min(outer.min(initial=0), inner.min(initial=0)) < 0:
        code[(outer < 0) | (inner < 0)] = OUTSIDE
    return code


def placed(values: Integers, code: Integers, cells: int) -> Integers:
    """Return values added up in the cells of their codes, modulo 2**64; values outside are left out."""
    inside = code >= 0
    return added(values[inside], code[inside], cells)


def added(values: Integers, code: Integers, cells: int) -> Integers:
    """Return values added up in the cells of their codes, modulo 2**64."""
    whole = np.zeros(cells, dtype=np.int64)
    np.add.at(whole, code, values)
    return whole


def declared_keys(source: Source, axis: KeyAxis, position: int) -> Declared:
    """Return the declared keys of one column, as it compares them; the schema has refused columns without identity."""
    column = source.column(axis.columns[position])
    assert column.identity is not None
    if axis.coding == "found":
        return as_stored([told_apart(code, column) for code in axis.values(position)])
    values, places = axis.numbered[position]
    return declared(values, column.identity, places)


def positions(values: pl.Series, keys: Any) -> Integers:
    """Return the position of each value among distinct keys; NOWHERE for any other, and for null."""
    if not len(keys):
        return np.full(len(values), NOWHERE, dtype=np.int64)
    if values.dtype == pl.String and (len(keys) <= FEW_KEYS or len(values) >= FEW_ROWS):
        return _spelled(values, keys)
    if values.dtype in NARROW and close_together(keys):
        return _looked_up(values, keys)
    return _joined(values, keys)


def come_as_positions(column: ColumnType, dtype: pl.DataType) -> bool:
    """Return whether keys of this dtype were loaded as positions among the declared ones: also strings of pandas.

    No other column that is compared as text is loaded as integers, and objects are always loaded as positions.
    """
    return column.by_position or (column.identity is not None and column.identity.form == "text" and dtype.is_integer())


def close_together(keys: Sequence[int] | Integers) -> bool:
    """Return whether a table of all integers from the least key to the greatest is small."""
    least, greatest = ends_of(keys)
    return greatest - least <= LOOK_UP and max(-least, greatest) < 2**62


def ends_of(keys: Sequence[int] | Integers) -> tuple[int, int]:
    """Return the least and the greatest key."""
    return (int(keys.min()), int(keys.max())) if isinstance(keys, np.ndarray) else (min(keys), max(keys))


def table_of(keys: Sequence[int] | Integers, entries: NDArray[Any], beyond: int) -> tuple[NDArray[Any], int]:
    """Return a table of integer keys that lie close together, and the integer of its first entry.

    It has the entry of each key, and `beyond` for the integers between them and for one on either side of them all. An
    integer that lies farther out counts as one of these two.
    """
    least, greatest = ends_of(keys)
    first = least - 1
    table = np.full(greatest + 2 - first, beyond, dtype=entries.dtype)
    table[np.array(keys, dtype=np.int64) - first] = entries
    return table, first


def filled(values: pl.Series, first: int) -> pl.Series:
    """Return integers to look for in a table, in 64 bits; a missing one becomes one that is no key."""
    whole = values.cast(pl.Int64)
    return whole.fill_null(first) if whole.null_count() else whole


def _looked_up(values: pl.Series, keys: Sequence[int] | Integers) -> Integers:
    """Return the positions of integer keys that lie close together, from an array."""
    table, first = table_of(keys, np.arange(len(keys)), NOWHERE)
    return table.take(filled(values, first).to_numpy() - first, mode="clip")  # a difference that wraps is still outside


def _spelled(values: pl.Series, keys: Sequence[str]) -> Integers:
    """Return the positions of strings, by an Enum of the declared ones; any other string becomes null."""
    if len(values) >= FEW_ROWS:
        places = pl.col("key").cast(pl.Enum(keys), strict=False).to_physical().cast(pl.Int64).fill_null(NOWHERE)
        return collected(values.alias("key").to_frame().lazy().select(places), len(values)).to_series().to_numpy()
    spelled = _enum(tuple(keys))
    number = values.cast(spelled, strict=False).to_physical().cast(pl.Int64)  # the same without a query to plan
    return (number.fill_null(NOWHERE) if number.null_count() else number).to_numpy()


@lru_cache(maxsize=64)
def _enum(keys: tuple[str, ...]) -> pl.Enum:
    return pl.Enum(keys)


def _joined(values: pl.Series, keys: Sequence[Any] | Integers) -> Integers:
    """Return positions by a join. The keys are distinct, so each row matches at most one: no row is multiplied."""
    places = pl.Series("place", range(len(keys)), dtype=pl.Int64)
    right = pl.DataFrame([pl.Series("key", keys, dtype=values.dtype), places])
    left = values.alias("key").to_frame()
    return left.join(right, on="key", how="left", maintain_order="left")["place"].fill_null(NOWHERE).to_numpy()


Holds = NDArray[np.bool_]


def with_conditions(source: Source) -> Source:
    """Return the same frame, whose columns can be requested under conditions too."""
    return replace(source, bring=partial(_loaded, source))


def _loaded(source: Source, requests: Sequence[ColumnRequest]) -> pl.LazyFrame:
    """Return the columns for their roles; load the columns of conditions too, and leave them out."""
    asked = [column for _, column, _, _ in requests if isinstance(column, Conditional)]
    if not asked:
        return source.bring(requests)
    every = dict.fromkeys(condition for column in asked for condition in column.conditions)
    values = dict.fromkeys(Condition(axis) for column in asked for axis in column.compared)
    cells = {
        condition: Cells.of(source, Keys((condition.axis,)), f"where{number} ")
        for number, condition in enumerate({**every, **values})
    }
    plain = [(name, _read(column), _role(column, role), of) for name, column, role, of in requests]
    own: list[ColumnRequest] = [(name, column, role, of) for name, column, role, of in plain if column is not None]
    more = [request for each in cells.values() for request in each.requests()]
    table = collected(source.bring([*own, *more]), source.rows)
    places = {condition: each.codes(table) for condition, each in cells.items()}
    holds = {condition: _holds(condition, places[condition]) for condition in every}
    everywhere = np.ones(table.height, dtype=np.bool_)
    inside = {
        those: pl.Series(np.logical_and.reduce([everywhere, *(holds[condition] for condition in those)]))
        for those in dict.fromkeys(column.conditions for column in asked)
    }
    return pl.DataFrame(
        [_column(table, name, column, role, inside, places) for name, column, role, _ in requests]
    ).lazy()


def _read(column: str) -> str | None:
    return column.of if isinstance(column, Conditional) else column


def _role(column: str, role: Role) -> Role:
    """Return the role of a column; if it is compared with a value, only its presence matters."""
    return "present" if is_compared(column) else role


def _holds(condition: Condition, places: Integers) -> Holds:
    """Return for each row whether its value is declared, or lies between the ends; a missing value never does."""
    axis = condition.axis
    return np.asarray(places == axis.inside if isinstance(axis, RangeAxis) else places >= 0)


def _on_scale(values: pl.Series, groups: GroupBounds, places: Integers) -> pl.Series:
    """Return values on one scale, by the bounds of their group; NaN for undeclared groups and missing values."""
    lower, upper = (np.take(ends, np.maximum(places, 0)) for ends in np.array(groups.bounds, dtype=np.float64).T)
    with np.errstate(all="ignore"):  # no value may cause a warning
        numbers = values.cast(pl.Float64).to_numpy()
        if groups.candidates:
            found = among_own(numbers, np.maximum(places, 0), groups.candidates).astype(np.float64)
            found[np.isnan(numbers)] = np.nan
        elif groups.places:
            found = (numbers - lower) / (upper - lower)
        else:
            found = np.clip(numbers, lower, upper) / np.maximum(np.abs(lower), np.abs(upper))
    return pl.Series(values.name, np.where(places < 0, np.nan, found))


def _column(
    table: pl.DataFrame,
    name: str,
    column: str,
    role: Role,
    insides: dict[tuple[Condition, ...], pl.Series],
    places: dict[Condition, Integers],
) -> pl.Series:
    """Return a column as requested: under conditions it is missing in rows where one of them does not hold."""
    if not isinstance(column, Conditional):
        return table[name]
    inside = insides[column.conditions]
    if column.of is None:
        return inside.alias(name)
    if role == "present":
        return table[name] & inside
    if role == "key":  # a value that is compared: another column holds its presence
        return table[name]
    values = table[name]
    if column.value is not None:  # the comparison applies to present values
        inside, values = inside & values, pl.Series(name, places[Condition(column.value)] >= 0).cast(pl.Float64)
    if column.groups is not None:
        values = _on_scale(values, column.groups, places[Condition(column.groups.axis)])
    return values.zip_with(inside, pl.Series([None], dtype=values.dtype))
