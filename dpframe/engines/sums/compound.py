"""Totals that are no plain sum over rows: what a whole unit adds to a cell, and several numbers of each group of rows.

As everywhere in `engines`: integers row by row, sums that wrap modulo 2**64, and nothing that can fail on a value.

Rows and groups of each unit: every unit is counted once, in one cell of the grid. Contrasts of tables of counts: rows
become the numbers of their declared values, and these are counted by table. A row with an undeclared value is in no
table. The weight of a unit counts its rows with declared values in every column, once for all tables: min(1, max_rows /
rows). It is rounded down to whole steps, so that the unit adds at most max_rows in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from dpframe.engines.columns.identity import different
from dpframe.engines.columns.source import ColumnRequest, Role, Source, collected, unit_requests
from dpframe.engines.compiled.kernel_units import of_units, weighed_rows
from dpframe.engines.sums.addends import OF_CHECKS, ROWS, Terms
from dpframe.engines.sums.cells import (
    Cells,
    Integers,
    added,
    come_as_positions,
    declared_keys,
    half_open_bins,
    positions,
)
from dpframe.engines.sums.distinct import ORDERED, drops_groups
from dpframe.engines.sums.row_totals import by_cell, of_rows_alone, with_cells
from dpframe.engines.sums.weights import pair_weights, unit_codes
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contrasts import Subset
from dpframe.queries.contributions import WHOLE_BITS, Grouping, counts_whole, grouping_of, groups_of, unit_steps
from dpframe.queries.indicators import Checks
from dpframe.queries.keys import Axis, Keys
from dpframe.queries.limits import grid_steps
from dpframe.queries.query import Query, gathers
from dpframe.queries.total import DistinctTotal, OfRows, Total, UnitsTotal
from dpframe.queries.vectors import INNER_BITS, BinCounts, InnerCounts, Matches, TableContrasts, V, summed, vector_of

THERE = " there"  # ends the names of columns that hold the presence of a value


def units_by_cell(source: Source, query: Query, unit: PrivacyUnit) -> Integers:
    """Return the number of units in each cell, row-major. A unit is in one cell; without a row in a group, in none."""
    grouping = grouping_of(query.keys)
    units, group = _rows(source, grouping, unit)
    if unit.nulls == "drop" and units.null_count():
        present = units.is_not_null().to_numpy()
        units, group = units.filter(pl.Series(present)), group[present]
    code, size = unit_codes(units)
    rows = np.bincount(code, minlength=size)
    most = int(group.max(initial=0)) + 1
    pairs = different((code * most + group).view(np.uint64))  # both numbers are below 2**32
    groups = np.bincount((pairs // np.uint64(most)).astype(np.int64), minlength=size)
    there = rows > 0
    return _in_grid(rows[there], groups[there], query)


def coded_units(source: Source, keys: Keys, unit: PrivacyUnit) -> pl.DataFrame:
    """Return rows with their unit and columns that identify groups, in the same form for every part of a table."""
    grouping = grouping_of(keys)
    if grouping.keys is not None:
        units, group = _rows(source, grouping, unit)
        table = pl.DataFrame([units.alias("unit"), pl.Series("cell", group)])
    else:
        table = _grouped(source, grouping, unit)
    return table.filter(pl.col("unit").is_not_null()) if unit.nulls == "drop" else table


def units_of_pairs(pairs: pl.DataFrame, query: Query) -> Integers:
    """Return the result of `units_by_cell`, from pairs of unit and group, each once, with the number of rows."""
    units = pairs.group_by("unit").agg(pl.col(ROWS).sum(), pl.len().cast(pl.Int64).alias("groups"))
    return _in_grid(units[ROWS].to_numpy(), units["groups"].to_numpy(), query)


def _in_grid(rows: Integers, groups: Integers, query: Query) -> Integers:
    """Return the number of units in each cell, from the rows and the groups of each."""
    by_rows, by_groups = query.keys.axes
    cell = _places(rows, by_rows) * by_groups.size + _places(groups, by_groups)
    return np.bincount(cell, minlength=query.keys.cells).astype(np.int64)


def _rows(source: Source, grouping: Grouping, unit: PrivacyUnit) -> tuple[pl.Series, Integers]:
    """Return the unit of each row that is in a group, and a number for its group."""
    if grouping.keys is not None:
        cells = Cells.of(source, grouping.keys)
        table = collected(
            source.load([*cells.requests(), *unit_requests(unit)]).select(*cells.names(), "unit"), source.rows
        )
        code = cells.codes(table)
        inside = code >= 0
        return table["unit"].filter(pl.Series(inside, dtype=pl.Boolean)), code[inside]
    table = _grouped(source, grouping, unit)
    group = np.zeros(table.height, dtype=np.int64)
    for name in table.columns[1:]:
        code, size = unit_codes(table[name])
        group = np.unique(group * size + code, return_inverse=True)[1].astype(np.int64)  # below the number of rows
    return table["unit"], group


def _grouped(source: Source, grouping: Grouping, unit: PrivacyUnit) -> pl.DataFrame:
    """Return the unit of each row, and columns that identify its group."""
    names = {f"group{number}": name for number, name in enumerate(grouping.columns)}
    requests = unit_requests(unit)
    requests += [(name, of, "unit", None) for name, of in names.items()]
    return collected(source.load(requests).select("unit", *names), source.rows)


def _places(numbers: Integers, axis: Axis) -> Integers:
    """Return the cell of the axis for each number; the last cell is open above."""
    inner = np.array(axis.values(0)[1:], dtype=np.float64)
    return np.searchsorted(inner, numbers, side="right").astype(np.int64)


def contrasts_in(query: Query) -> TableContrasts | None:
    """Return the contrasts that a query measures; None if it asks for something else."""
    vectors = (vector_of(total, TableContrasts) for total in query.of_cells)
    return next((vector for vector in vectors if vector is not None), None)


def declared_rows(source: Source, vector: TableContrasts, unit: PrivacyUnit) -> pl.DataFrame:
    """Return the rows of declared values in every column: their numbers, a column for each attribute, and the unit."""
    attributes = [_cells(source, axis, number) for number, axis in enumerate(vector.axes)]
    owner = unit_requests(unit)
    units = [name for name, *_ in owner]
    lazy = source.load([*(request for cells in attributes for request in cells.requests()), *owner])
    names = [name for cells in attributes for name in cells.names()]
    table = collected(lazy.select(*names, *units), source.rows)
    codes = {f"place{number}": cells.codes(table) for number, cells in enumerate(attributes)}
    declared = np.logical_and.reduce([code >= 0 for code in codes.values()])
    places = [pl.Series(name, code[declared].astype(np.int32)) for name, code in codes.items()]
    coded = pl.DataFrame([*places, *(table[name].filter(pl.Series(declared)) for name in units)])
    return coded.filter(pl.col("unit").is_not_null()) if units and unit.nulls == "drop" else coded


def contrasts_of_rows(table: pl.DataFrame, query: Query, unit: PrivacyUnit) -> dict[Total, Integers]:
    """Return the contrasts of such rows (all rows of some units, if there is a unit)."""
    vector = contrasts_in(query)
    assert vector is not None
    design = vector.design
    places = [table[f"place{number}"].to_numpy() for number in range(len(design.sizes))]
    steps = (
        None if unit.column is None else _declared_steps(table["unit"], unit.contribution.max_rows).astype(np.float64)
    )

    def count(attributes: Subset) -> Integers:
        code: Any = np.zeros(table.height, dtype=np.int64)
        for i in attributes:
            code = code * design.sizes[i] + places[i]
        # the steps of a frame add up to less than 2**53, so that they are exact as floats
        return np.bincount(code, weights=steps, minlength=design.cells(attributes)).astype(np.int64)

    return {query.of_cells[0]: design.exact_sums(count)}


def _declared_steps(owner: pl.Series, most: int) -> Integers:
    """Return the weight of each row in steps of 2**-INNER_BITS: that of its unit."""
    code, units = unit_codes(owner)
    rows = np.bincount(code, minlength=units).astype(np.int64)
    in_full = most << INNER_BITS
    return np.asarray(np.minimum(2**INNER_BITS, in_full // np.maximum(rows, 1)))[code]


def _cells(source: Source, axis: Any, number: int) -> Cells:
    """Return the cells of one column with its declared values, under a name of its own."""
    return Cells.of(source, Keys((axis,)), f"attribute{number}_")


@dataclass(frozen=True)
class Parts:
    """Columns that are loaded and summed for the Totals of a query: plain sums, and a column for each other Total."""

    plain: dict[Total, tuple[OfRows, ...]]  # the sums over rows that a Total is made of
    others: dict[Total, str]  # bins of values, values of a unit's sum, presence -> engine column
    terms: Terms

    @classmethod
    def of(cls, query: Query, unit: PrivacyUnit, checks: Checks | None = None) -> Self:
        """Return the parts of a question's Totals; if each row is a unit, a unit adds what its row adds.

        `checks` are counted too if all Totals are made of plain sums. So they are never counted with a distribution,
        whose checks have no bins among their cells.
        """
        totals, by_units = query.of_cells, unit.column is not None
        plain = {total: sums for total in totals if (sums := summed(total, by_units))}
        others = {total: f"other{number}" for number, total in enumerate(totals) if total not in plain}
        terms = tuple(dict.fromkeys(term for terms in plain.values() for term in terms))
        return cls(plain, others, Terms.of(terms, None if others else checks))

    def assembled(self, sums: dict[Total, Integers]) -> dict[Total, Integers]:
        """Return the Totals that are made of plain sums: the numbers of each cell, one cell after the other."""
        return {
            total: sums[terms[0]] if len(terms) == 1 else np.stack([sums[term] for term in terms], axis=1).ravel()
            for total, terms in self.plain.items()
        }

    def requests(self, source: Source) -> list[ColumnRequest]:
        """Return the columns to load."""
        others: list[ColumnRequest] = []
        for total, name in self.others.items():
            if (matches := vector_of(total, Matches)) is not None:
                key = declared_keys(source, matches.axis, 0)
                others += [(name, matches.column, "key", key), (name + THERE, matches.column, "present", None)]
            elif (binned := vector_of(total, BinCounts)) is not None:
                others.append((name, binned.column, "bin", binned.axis.kind))
            else:
                role: Role = "unit" if isinstance(total, DistinctTotal) else "value" if total.values else "present"
                others += [(name, column, role, None) for column in total.columns]
        return [*self.terms.requests(), *others]

    def prepared(self) -> list[pl.Expr]:
        """Return integers row by row."""
        others = map(_prepared, *self._named())
        return [*self.terms.prepared(), *(expression for expression in others if expression is not None)]

    def names(self) -> list[str]:
        """Return the columns that `prepared` makes."""
        return [*self.terms.names(), *(name for total, name in self.others.items() if total.columns)]

    def vectors(self, kind: type[V]) -> dict[str, V]:
        """Return the columns that a kind of vector reads, by their names here."""
        found = {name: vector_of(total, kind) for total, name in self.others.items()}
        return {name: vector for name, vector in found.items() if vector is not None}

    def _named(self) -> tuple[list[Total], list[str]]:
        return list(self.others), list(self.others.values())


def totals_at_once(
    source: Source, cells: Cells, parts: Parts, query: Query, unit: PrivacyUnit, p: float
) -> dict[Total, Integers] | None:
    """Return all Totals without coding rows, if all are made of plain sums and a way exists; else None."""
    if gathers(query) or parts.others:
        return None
    if unit.column is None:
        sums: dict[Total, Integers] | None = of_rows_alone(source, cells, parts.terms)
    else:
        sums = of_units(source, cells, parts.terms, unit, p, merged=False)
    if sums is None:
        return None
    return {**parts.assembled(sums), **({OF_CHECKS: sums[OF_CHECKS]} if OF_CHECKS in sums else {})}


def compound_rows(source: Source, query: Query, unit: PrivacyUnit) -> pl.DataFrame:
    """Return the rows in declared cells: the number of the cell, the integers to sum, and the unit."""
    if (contrasts := contrasts_in(query)) is not None:
        return declared_rows(source, contrasts, unit)
    return prepared_rows(source, Cells.of(source, query.keys), Parts.of(query, unit), query, unit)


def prepared_rows(source: Source, cells: Cells, parts: Parts, query: Query, unit: PrivacyUnit) -> pl.DataFrame:
    """Return the result of `compound_rows` for Totals without contrasts, from known cells and parts."""
    owner = unit_requests(unit)
    if owner and drops_groups(query, unit):
        owner += unit_requests(unit, ORDERED, "found")
    lazy = source.load([*cells.requests(), *parts.requests(source), *owner])
    units = [name for name, *_ in owner]
    compared = parts.vectors(Matches)
    there = [name + THERE for name in compared]
    table = collected(lazy.select(*cells.names(), *parts.prepared(), *there, *units), source.rows)
    if compared:
        table = table.with_columns([_matched(table, name, matches, source) for name, matches in compared.items()])
    if binned := parts.vectors(BinCounts):
        table = table.with_columns([_placed(table[name], bins, source) for name, bins in binned.items()])
    table = with_cells(table, (*parts.names(), *units), cells.codes(table))
    return table.filter(pl.col("unit").is_not_null()) if units and unit.nulls == "drop" else table


def of_coded(table: pl.DataFrame, query: Query, unit: PrivacyUnit, p: float) -> dict[Total, Integers]:
    """Return the Totals of coded rows (all rows of some units, if there is a unit)."""
    if contrasts_in(query) is not None:
        return contrasts_of_rows(table, query, unit)
    parts = Parts.of(query, unit)
    sums: dict[Total, Integers] = {}
    if parts.terms.lines and unit.column is None:
        sums = by_cell(table, parts.terms, query.keys.cells)
    elif parts.terms.lines:
        sums = weighed_rows(table, parts.terms, unit, p, query.keys.cells, merged=False)
    totals = parts.assembled(sums)
    if parts.others:
        totals |= _others(table, parts, query, unit, p)
    return {total: totals[total] for total in query.of_cells if not isinstance(total, DistinctTotal)}


def _others(table: pl.DataFrame, parts: Parts, query: Query, unit: PrivacyUnit, p: float) -> dict[Total, Integers]:
    """Return the Totals without plain sums: of units, of what each adds in all, and of bins of each group."""
    cell = table["cell"].to_numpy()
    code, size = (np.arange(0), 0) if unit.column is None else unit_codes(table["unit"])
    totals = {}
    counted: dict[str | int, Integers] = {}  # Totals of the same bins share their counts
    for total, name in parts.others.items():
        if isinstance(total, DistinctTotal):
            continue  # it cannot be added up over pieces: see `distinct`
        column = table[name] if total.columns else None
        inner = vector_of(total, InnerCounts) or vector_of(total, Matches) or vector_of(total, BinCounts)
        if inner is not None:
            bins = name if total.columns else inner.bins
            if bins not in counted:
                counted[bins] = _counted(inner, column, cell, code, size, query, unit, p)
            totals[total] = inner.exact_sums(counted[bins]).flatten()  # a copy, because Totals are added up in place
        elif not total.values:
            there = slice(None) if column is None else column.cast(pl.Int64).fill_null(0).to_numpy() > 0
            totals[total] = _units(cell[there], code[there], size, query.keys.cells, unit, p)
        else:
            assert column is not None
            totals[total] = _clipped(total.values[0][1], column, cell, code, size, query.keys.cells, unit, p)
    return totals


def _units(cell: Integers, code: Integers, size: int, cells: int, unit: PrivacyUnit, p: float) -> Integers:
    """Return the number of units in each cell; a unit in t cells counts v(t) steps in each."""
    pairs = different(code * cells + cell)  # fits 64 bits: unit numbers are below 2**32, cell numbers below 2**30
    if counts_whole(unit, cells):
        return np.bincount(pairs % cells, minlength=cells).astype(np.int64)
    return added(_steps(pairs // cells, size, cells, unit, p), pairs % cells, cells)


def _clipped(
    bounds: tuple[float, float],
    values: pl.Series,
    cell: Integers,
    code: Integers,
    size: int,
    cells: int,
    unit: PrivacyUnit,
    p: float,
) -> Integers:
    """Return the sum of each unit in each of its t cells, clipped, times v(t), truncated toward zero.

    It never exceeds the unit's reach. A unit without a value in a cell adds nothing there, even if 0 is out of bounds.
    """
    pairs, pair_of_row = np.unique(code * cells + cell, return_inverse=True)
    there, whole = (column.to_numpy().astype(np.int64) for column in (values.is_not_null(), values.fill_null(0)))
    held, sums = (added(numbers, pair_of_row.reshape(-1), pairs.size) for numbers in (there, whole))
    sums = np.where(held > 0, np.clip(sums, *grid_steps(bounds)), 0)
    steps = _steps(pairs // cells, size, cells, unit, p)
    weighed = np.sign(sums) * ((np.abs(sums) * steps) >> WHOLE_BITS)  # at most 2**30 steps, times 2**20
    return added(weighed, pairs % cells, cells)


def _steps(owner: Integers, size: int, cells: int, unit: PrivacyUnit, p: float) -> Integers:
    """Return v(t) of the owner of each pair of unit and cell."""
    groups = np.bincount(owner, minlength=size)
    return unit_steps(groups[owner], groups_of(unit, cells), p)


def _counted(
    inner: InnerCounts | Matches | BinCounts,
    column: pl.Series | None,
    cell: Integers,
    code: Integers,
    size: int,
    query: Query,
    unit: PrivacyUnit,
    p: float,
) -> Integers:
    """Return the counts of bins, a row for each group; the weight of a unit counts its rows by group, not by bin."""
    bins, groups = inner.bins, query.keys.cells // inner.cells
    if inner.column is None:
        group, inner_bin = cell // bins, cell % bins
    else:
        assert column is not None
        group, inner_bin = cell, column.fill_null(-1).to_numpy()
    if unit.column is None:
        steps = np.ones(cell.size, dtype=np.int64)
    else:
        light = pair_weights(code, size, group, unit, p, groups)
        steps = np.floor(light[code] * 2.0**INNER_BITS).astype(np.int64)
    there = inner_bin >= 0
    counts = added(steps[there], group[there] * bins + inner_bin[there], groups * bins)
    return counts.reshape(groups, bins)


def _matched(table: pl.DataFrame, name: str, matches: Matches, source: Source) -> pl.Series:
    """Return 0 for the declared value, as the column compares keys; 1 for any other; -1 for a missing value."""
    keys = declared_keys(source, matches.axis, 0)
    by_position = come_as_positions(source.column(matches.column), table[name].dtype)
    position = table[name].to_numpy() if by_position else positions(table[name], keys.values)
    code = np.where(table[name + THERE].to_numpy(), np.where(position >= 0, 0, 1), -1)
    return pl.Series(name, code.astype(np.int64))


def _placed(values: pl.Series, binned: BinCounts, source: Source) -> pl.Series:
    """Return the bin of each value, as of a histogram; -1 for a missing value."""
    bins = half_open_bins(binned.axis, source.column(binned.column).tick)
    return pl.Series(values.name, bins.codes_of(values))


def _prepared(total: Total, name: str) -> pl.Expr | None:
    """Return the expression for a loaded column, row by row: the bin of a value, or what it adds to its unit's sum."""
    inner = vector_of(total, InnerCounts)
    if inner is None:
        return (
            wider_steps(pl.col(name), total.values[0][1]) if total.values else pl.col(name) if total.columns else None
        )

    if inner.column is None:
        return None

    def places(column: pl.Series) -> pl.Series:
        return pl.Series(inner.places(column.cast(pl.Float64).to_numpy()))  # NaN for missing values

    return pl.col(name).map_batches(places, return_dtype=pl.Int64, is_elementwise=True)


def wider_steps(value: pl.Expr, bounds: tuple[float, float]) -> pl.Expr:
    """Return the steps that a value adds to the sum of its unit, which is clipped to `bounds`; null if missing."""
    total = UnitsTotal("value", bounds)

    def integers(column: pl.Series) -> pl.Series:
        values = column.cast(pl.Float64).to_numpy()  # NaN for missing values
        steps = pl.Series(total.integers(values.size, {"value": values}).ravel())
        return steps.zip_with(pl.Series(~np.isnan(values)), pl.Series([None], dtype=pl.Int64))

    return value.map_batches(integers, return_dtype=pl.Int64, is_elementwise=True)
