"""Counts of distinct values: which unit holds which values in which group, and how many values result.

These counts are no sums over pieces of a table: two pieces may hold the same values. So pieces give the pairs of unit
and value, each once, and these are combined before anything is counted. What a unit adds depends on its own rows alone,
and on a key that is drawn for the release. A unit keeps its values in at most K groups, the first ones in an order by a
hash of the unit, the group and that key. Nothing can fail on a value.

Each value may be supported by one unit, and each unit may support a bounded number of its values. The largest number of
supported values is a maximum flow, which is the same for any order of units, values and rows. Two rules that lose
nothing settle most of a table (`_settled`). Augmenting paths solve the rest. They are sought from all free values at
once, each in a tree of its own (Azad, Buluc and Pothen 2017, "Computing maximum cardinality matchings in parallel on
bipartite graphs via tree-grafting"). SciPy's searches did not end within minutes on some tables of a million rows, such
as long chains in random order; these take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.identity import different
from dpframe.engines.engine import Partial
from dpframe.engines.sums.weights import unit_codes
from dpframe.errors import InvalidArgument
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import groups_of
from dpframe.queries.query import Query, gathers
from dpframe.queries.total import DistinctTotal, Total

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LITTLE = 16  # the rules stop when a round settles less than 1 / LITTLE of the edges
MIXED = np.uint64(0x9E3779B97F4A7C15)  # an odd number: its products are spread over all of 2**64

ORDERED = "ordered"  # the unit as a text or number that is the same in every table, whatever other rows there are
CELL, UNIT, VALUE = "cell", "unit", "value"


def covered(unit: Integers, value: Integers, units: int, values: int, most: int) -> Flags:
    """Return for each value whether a largest choice covers it; each pair of unit and value occurs once.

    Which values are covered is not unique, but their number is, in each connected part of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> unit, value = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0])  # one unit has three values, another has one
    >>> int(covered(unit, value, 2, 3, 1).sum()), int(covered(unit, value, 2, 3, 2).sum())
    (2, 3)
    """
    done = np.zeros(values, dtype=np.bool_)
    room = np.full(units, most, dtype=np.int64)
    unit, value = _settled(unit, value, room, done)
    if unit.size:
        left_units, unit = np.unique(unit, return_inverse=True)
        left_values, value = np.unique(value, return_inverse=True)
        found = _by_paths(unit.reshape(-1), value.reshape(-1), room[left_units], left_values.size)
        done[left_values[found]] = True
    return done


def _settled(unit: Integers, value: Integers, room: Integers, done: Flags) -> tuple[Integers, Integers]:
    """Apply two rules while they settle much; change `room` and `done`, and return the other edges.

    - A unit with no more values than room covers them all: another unit that covers one of them can release it.
    - A unit with room covers a value that no other unit holds: for it, the unit can release a shared value.
    """
    while unit.size:
        before = unit.size
        easy = (np.bincount(unit, minlength=room.size) <= room)[unit]
        done[value[easy]] = True
        open_edges = ~done[value]
        unit, value = unit[open_edges], value[open_edges]
        alone = np.bincount(value, minlength=done.size)[value] == 1
        own_unit, own_value = unit[alone], value[alone]
        order = np.argsort(own_unit, kind="stable")
        own_unit, own_value = own_unit[order], own_value[order]
        taken = _rank(own_unit) < room[own_unit]
        done[own_value[taken]] = True
        room -= np.bincount(own_unit[taken], minlength=room.size)
        left = ~alone & (room > 0)[unit]
        unit, value = unit[left], value[left]
        if (before - unit.size) * LITTLE <= before:
            break
    return unit, value


def _rank(ordered: Integers) -> Integers:
    """Return the number of equal entries before each entry, for sorted entries."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return np.arange(ordered.size) - np.repeat(starts, np.diff(np.append(starts, ordered.size)))


@dataclass(frozen=True)
class _Rows:
    """Numbers in groups, one group after the other."""

    starts: Integers
    numbers: Integers

    @classmethod
    def of(cls, group: Integers, number: Integers, groups: int) -> _Rows:
        starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))])
        return cls(starts, number[np.argsort(group, kind="stable")])

    def of_groups(self, groups: Integers) -> tuple[Integers, Integers]:
        """Return the numbers in some groups, each with the position of its group among them."""
        first = self.starts[groups]
        sizes = self.starts[groups + 1] - first
        ends = np.cumsum(sizes)
        places = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(first - ends + sizes, sizes)
        return np.repeat(np.arange(groups.size), sizes), self.numbers[places]


def _by_paths(unit: Integers, value: Integers, room: Integers, values: int) -> Flags:
    """Return the values that get a unit, by shortest augmenting paths in trees that share no unit; use up `room`."""
    holders = _Rows.of(value, unit, values)
    of_value = np.full(values, -1, dtype=np.int64)  # the unit of each value
    turn = 0
    while room.any() and (of_value < 0).any():
        turn += 1
        via, ends = _searched(holders, of_value, room, turn)
        if not ends[0].size:
            break
        at, to = ends
        while at.size:  # along all paths at once, from their ends back to their roots
            last = of_value[at]
            of_value[at] = to
            to = last[last >= 0]
            at = via[to]
    return np.asarray(of_value >= 0)


def _searched(
    holders: _Rows, of_value: Integers, room: Integers, turn: int
) -> tuple[Integers, tuple[Integers, Integers]]:
    """Grow a tree from each free value until it meets a unit with room.

    Return the value from which each unit was reached, and the last edges of the paths, as values and units. Reduce the
    room by these edges.
    """
    held = np.flatnonzero(of_value >= 0)
    assigned = _Rows.of(of_value[held], held, room.size)
    via, slot = np.empty(room.size, dtype=np.int64), np.empty(room.size, dtype=np.int64)
    seen = np.zeros(room.size, dtype=np.bool_)
    growing = np.ones(of_value.size, dtype=np.bool_)  # whether the tree of each root still grows
    frontier = np.flatnonzero(of_value < 0)
    root = frontier
    ends: list[tuple[Integers, Integers]] = []
    while frontier.size:
        place, unit = holders.of_groups(frontier)
        at, tree = frontier[place], root[place]
        meets = np.flatnonzero(room[unit] > 0)
        if meets.size:
            meets = meets[_accepted(tree[meets], unit[meets], room, turn)]
            ends.append((at[meets], unit[meets]))
            growing[tree[meets]] = False
        new = np.flatnonzero(growing[tree] & ~seen[unit] & (room[unit] == 0))
        slot[unit[new]] = new  # of several edges to a unit, keep one
        new = new[slot[unit[new]] == new]
        via[unit[new]] = at[new]
        seen[unit[new]] = True
        place, frontier = assigned.of_groups(unit[new])
        root = tree[new][place]
    nothing = np.zeros(0, dtype=np.int64)
    at, to = (np.concatenate(arrays) for arrays in zip(*ends, strict=True)) if ends else (nothing, nothing)
    return via, (at, to)


def _accepted(tree: Integers, unit: Integers, room: Integers, turn: int) -> Integers:
    """Return the positions of edges that end a path: one of each tree, and at most as many of a unit as it has room."""
    mixed = (np.arange(tree.size, dtype=np.uint64) + np.uint64(turn)) * MIXED  # so that trees choose different units
    order = np.argsort(mixed, kind="stable")
    chosen = order[np.unique(tree[order], return_index=True)[1]]
    chosen = chosen[np.argsort(unit[chosen], kind="stable")]
    chosen = chosen[_rank(unit[chosen]) < room[unit[chosen]]]
    np.subtract.at(room, unit[chosen], 1)
    return chosen


@dataclass(frozen=True)
class Holdings:
    """Values by group and, if units are columns, by a number of the unit: tables that may share values."""

    tables: tuple[pl.DataFrame, ...]
    units: int | None  # how many unit numbers there are; None if each row is a unit

    def __add__(self, other: Holdings) -> Holdings:
        if self.units is not None and other.units is not None:
            moved = tuple(table.with_columns(pl.col(UNIT) + self.units) for table in other.tables)
            return Holdings(self.tables + moved, self.units + other.units)
        tables = self.tables + other.tables
        if sum(table.height for table in tables[1:]) > tables[0].height:
            tables = (pl.concat(tables).unique(),)  # keeps few values of many rows small
        return Holdings(tables, None)

    def numbers(self, cells: int, most: int) -> Integers:
        """Return the number of distinct values in each cell, at most `most` for a unit."""
        table = pl.concat(self.tables)
        if table.height == 0:
            return np.zeros(cells, dtype=np.int64)
        code, size = unit_codes(table[VALUE])
        cell = table[CELL].to_numpy()
        value = cell * size + code  # fits 64 bits: values are numbered below 2**33, cells below 2**30
        if self.units is None:
            return np.bincount(different(value) // size, minlength=cells).astype(np.int64)
        nodes, value = np.unique(value, return_inverse=True)
        owners, unit = np.unique(cell * self.units + table[UNIT].to_numpy(), return_inverse=True)
        found = covered(unit.reshape(-1), value.reshape(-1), owners.size, nodes.size, most)
        return np.bincount(nodes[found] // size, minlength=cells).astype(np.int64)


@dataclass(frozen=True, eq=False)
class GatheredPartial(Partial):
    """Exact totals of some rows, and the values to count once those of all rows are together."""

    held: Mapping[DistinctTotal, Holdings]

    def __add__(self, other: Any) -> GatheredPartial:
        if not isinstance(other, GatheredPartial):
            return NotImplemented
        if self.totals.keys() != other.totals.keys() or self.held.keys() != other.held.keys():
            raise InvalidArgument("partials must be of one question to be added")
        totals = {total: steps + other.totals[total] for total, steps in self.totals.items()}
        return GatheredPartial(totals, {total: held + other.held[total] for total, held in self.held.items()})


def drops_groups(query: Query, unit: PrivacyUnit) -> bool:
    """Return whether a unit may be in more groups than those in which its distinct values count."""
    return gathers(query) and unit.column is not None and groups_of(unit, query.keys.cells) < query.keys.cells


def gathered(
    totals: Mapping[Total, Integers],
    table: pl.DataFrame,
    columns: Mapping[DistinctTotal, str],
    unit: PrivacyUnit,
    cells: int,
    secret: int,
) -> GatheredPartial:
    """Return totals and the values of coded rows (all rows of some units, if there are units), from `columns`."""
    held = {}
    owner, units = (None, None) if unit.column is None else unit_codes(table[UNIT])
    for total, name in columns.items():
        pairs = table.select(CELL, pl.col(name).alias(VALUE), *([ORDERED] if ORDERED in table.columns else []))
        if owner is not None:
            pairs = pairs.with_columns(pl.Series(UNIT, owner, dtype=pl.Int64))
        pairs = pairs.filter(pl.col(VALUE).is_not_null()).unique()
        if ORDERED in pairs.columns:
            pairs = _kept(pairs, groups_of(unit, cells), secret).drop(ORDERED)
        held[total] = Holdings((pairs,), units)
    return GatheredPartial(totals, held)


def counted_values(partial: Any, cells: int) -> Partial:
    """Return the totals of all rows, with the counts of distinct values."""
    if not isinstance(partial, GatheredPartial):
        return Partial({})  # the caller refuses it
    numbers: dict[Total, Integers] = {total: held.numbers(cells, total.most) for total, held in partial.held.items()}
    return Partial({**partial.totals, **numbers})


def _kept(pairs: pl.DataFrame, most: int, secret: int) -> pl.DataFrame:
    """Return the values in the groups that count: for a unit in more than `most`, the first ones in its order.

    The order is a hash of 64 bits; if two groups of a unit have the same hash, the number of the group decides.
    """
    groups = pairs.select(UNIT, CELL, ORDERED).unique()
    groups = groups.with_columns(groups.select(ORDERED, CELL).hash_rows(secret).alias("order"))
    rank = pl.int_range(pl.len()).over(UNIT)
    kept = groups.sort(UNIT, "order", CELL).filter(rank < most).select(UNIT, CELL)
    return pairs.join(kept, on=[UNIT, CELL], how="semi")
