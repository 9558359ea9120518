"""Numbers of distinct values: which unit holds which values in which group, and how many values that makes.

These numbers are no sums over pieces of a table: two pieces may hold the same values. So pieces give the pairs of unit
and value, each once, and these are put together before anything is counted.

What a unit adds depends on its own rows alone, and on a key that is drawn for the release: it keeps its values in at
most K groups, the first ones in an order by a hash of the unit, the group and that key. Nothing can fail on a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.engine import Partial
from dpframe.engines.flow import covered
from dpframe.engines.weights import unit_codes
from dpframe.errors import InvalidArgument
from dpframe.privacy import PrivacyUnit
from dpframe.queries.query import Query, gathers
from dpframe.queries.total import DistinctTotal, Total
from dpframe.queries.unit_weights import groups_of

Integers = NDArray[np.int64]

ORDERED = "ordered"  # the unit as a text or number that is the same in every table, whatever else is there
CELL, UNIT, VALUE = "cell", "unit", "value"


@dataclass(frozen=True)
class Holdings:
    """Values by group and, where units are columns, by a number of the unit: tables that may overlap in values."""

    tables: tuple[pl.DataFrame, ...]
    units: int | None  # how many numbers of units there are; None where each row is a unit

    def __add__(self, other: Holdings) -> Holdings:
        if self.units is not None and other.units is not None:
            moved = tuple(table.with_columns(pl.col(UNIT) + self.units) for table in other.tables)
            return Holdings(self.tables + moved, self.units + other.units)
        tables = self.tables + other.tables
        if sum(table.height for table in tables[1:]) > tables[0].height:
            tables = (pl.concat(tables).unique(),)  # so that few values of many rows stay few
        return Holdings(tables, None)

    def numbers(self, cells: int, most: int) -> Integers:
        """The number of distinct values in each cell, at most so many for a unit."""
        table = pl.concat(self.tables)
        if table.height == 0:
            return np.zeros(cells, dtype=np.int64)
        code, size = unit_codes(table[VALUE])
        cell = table[CELL].to_numpy()
        value = cell * size + code  # fits 64 bits: values are numbered below 2**33, cells below 2**30
        if self.units is None:
            return np.bincount(np.unique(value) // size, minlength=cells).astype(np.int64)
        nodes, value = np.unique(value, return_inverse=True)
        owners, unit = np.unique(cell * self.units + table[UNIT].to_numpy(), return_inverse=True)
        found = covered(unit.reshape(-1), value.reshape(-1), owners.size, nodes.size, most)
        return np.bincount(nodes[found] // size, minlength=cells).astype(np.int64)


class GatheredPartial(Partial):
    """Exact totals of some rows, and the values that are to be counted once those of all rows are together."""

    held: Mapping[DistinctTotal, Holdings]

    def __init__(self, totals: Mapping[Total, Integers], held: Mapping[DistinctTotal, Holdings]) -> None:
        object.__setattr__(self, "totals", totals)
        object.__setattr__(self, "held", held)

    def __add__(self, other: Any) -> GatheredPartial:
        if not isinstance(other, GatheredPartial):
            return NotImplemented
        if self.totals.keys() != other.totals.keys() or self.held.keys() != other.held.keys():
            raise InvalidArgument("partials must be of one question to be added")
        totals = {total: steps + other.totals[total] for total, steps in self.totals.items()}
        return GatheredPartial(totals, {total: held + other.held[total] for total, held in self.held.items()})


def drops_groups(query: Query, unit: PrivacyUnit) -> bool:
    """Tell whether a unit may be in more groups than those in which its distinct values count."""
    return gathers(query) and unit.column is not None and groups_of(unit, query.keys.cells) < query.keys.cells


def gathered(
    totals: Mapping[Total, Integers],
    table: pl.DataFrame,
    columns: Mapping[DistinctTotal, str],
    unit: PrivacyUnit,
    cells: int,
    secret: int,
) -> GatheredPartial:
    """Values that coded rows hold, of all rows of some units where there are units; `columns` hold the values."""
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
    """The totals with the numbers of distinct values, of all rows."""
    if not isinstance(partial, GatheredPartial):
        return Partial({})  # which is refused
    numbers: dict[Total, Integers] = {total: held.numbers(cells, total.most) for total, held in partial.held.items()}
    return Partial({**partial.totals, **numbers})


def _kept(pairs: pl.DataFrame, most: int, secret: int) -> pl.DataFrame:
    """The values in the groups that count: of a unit in more than `most` the first ones in its order.

    The order is of 64 bits; where two groups of a unit have the same, the number of the group decides.
    """
    groups = pairs.select(UNIT, CELL, ORDERED).unique()
    groups = groups.with_columns(groups.select(ORDERED, CELL).hash_rows(secret).alias("order"))
    rank = pl.int_range(pl.len()).over(UNIT)
    kept = groups.sort(UNIT, "order", CELL).filter(rank < most).select(UNIT, CELL)
    return pairs.join(kept, on=[UNIT, CELL], how="semi")
