"""Computations on rows, described by public facts alone: they can be pickled and sent to where the rows are.

`Task` computes totals. `CheckTask` counts the units of which something was clipped or left out, by one definition for
every engine. It codes rows first: the unit, the group, and for each clipped column whether the value lies below its
bounds, above them, or is present. Coded rows of one unit and group can be combined into one row, repeatedly. Then each
unit has each indicator or not, and the units that have it are counted. Nothing there can fail on a value, and a unit
adds 0 or 1 to a number, whatever its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from dpframe.engines.columns.source import ColumnRequest, ColumnType, Source, collected, source_of, unit_requests
from dpframe.engines.compiled import kernel_rows, kernel_units
from dpframe.engines.compiled.kernel_units import of_units
from dpframe.engines.engine import Engine, Partial
from dpframe.engines.schema import columns_of
from dpframe.engines.sums import weights
from dpframe.engines.sums.addends import OF_CHECKS, ROWS, Terms
from dpframe.engines.sums.cells import Cells, with_conditions
from dpframe.engines.sums.compound import (
    Parts,
    coded_units,
    compound_rows,
    contrasts_in,
    of_coded,
    prepared_rows,
    totals_at_once,
    units_by_cell,
    units_of_pairs,
    wider_steps,
)
from dpframe.engines.sums.distinct import gathered
from dpframe.engines.sums.row_totals import coded_rows, of_rows_alone
from dpframe.errors import InvalidType
from dpframe.privacy import PrivacyUnit
from dpframe.queries.indicators import Between, Checks, Rule
from dpframe.queries.limits import grid_steps
from dpframe.queries.query import Query, compound, gathers, read_by
from dpframe.queries.total import DistinctTotal
from dpframe.queries.where import Conditional


class RowTask:
    """Columns that a task reads, and the unit whose rows a piece holds completely. A task has both as fields."""

    unit: PrivacyUnit
    types: dict[str, ColumnType]  # the columns that are read
    conditional: bool = True  # whether some of them may be read under conditions

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return list(self.types)

    @property
    def by(self) -> str | None:
        """Column of the unit, whose rows must be in one piece; the first one if there are several.

        Rows of one combination are equal in it. But a row has no unit if any of the columns is missing, so an engine
        that groups rows by one column must leave such rows out.
        """
        return next(iter(self.unit.columns), None)

    def _brought(self, frame: Any) -> Source:
        """Return a piece as a Source; its dtypes must be those of the schema, because they identify keys and units."""
        if isinstance(frame, Source):  # a frame in memory: the types are from its schema
            source = frame
        else:
            source = source_of(frame)
            for name, column in self.types.items():
                if source.column(name).polars != column.polars:
                    raise InvalidType("a piece must have the dtypes of the schema")
        return with_conditions(source) if self.conditional else source


@dataclass(frozen=True)
class Task(RowTask):
    """Question about a table: no part of it comes from rows.

    Rows of units are *coded* first: the unit, the number of the cell, and the integers to sum. Rows in no cell are left
    out. Coded rows of one unit and cell can be combined into one row (`combine`), repeatedly. The weight of a unit
    needs all of its rows (`weigh`).
    """

    query: Query
    unit: PrivacyUnit
    p: float  # the norm that the noise covers
    types: dict[str, ColumnType]  # the columns that are read
    secret: int = 0  # of the order in which units keep groups for counts of distinct values; no result shows it
    checks: Checks | None = None  # checks whose numbers a piece also has
    watched: Checks | None = None  # the same checks, if flags of rows decide them
    conditional: bool = True  # whether some columns are read under conditions

    @classmethod
    def of(cls, engine: Engine, query: Query, unit: PrivacyUnit, p: float, secret: int = 0) -> Self:
        """Return the task for a table of the engine's schema."""
        types = engine.schema()
        read = {name: types[name] for name in columns_of(query, unit)}
        conditional = any(isinstance(name, Conditional) for name in read_by(query))
        return cls(query, unit, p, read, secret, conditional=conditional)

    def beside(self, checks: Checks) -> Self:
        """Return the same task with checks of the columns that it reads, whose numbers are part of its pieces."""
        return replace(self, checks=checks, watched=checks if checks.is_plain else None)

    def piece(self, frame: Any) -> Partial:
        """Return the totals of some rows (all rows of some units, if there is a unit), with the numbers of checks."""
        source = self._brought(frame)
        partial = self._totals(source)
        if self.checks is None or OF_CHECKS in partial.totals:
            return partial
        checked = CheckTask(self.checks, self.unit, self.types).of_source(source)
        return replace(partial, totals={**partial.totals, **checked.totals})

    def _totals(self, source: Source) -> Partial:
        """Return the totals, with the numbers of checks if the same read finds them."""
        if self.query.keys.counted == "units":
            return Partial({self.query.of_cells[0]: units_by_cell(source, self.query, self.unit)})
        if compound(self.query):
            return self._compound(source)
        cells, terms = Cells.of(source, self.query.keys), Terms.of(self.query.of_cells, self.watched)
        if self.by is not None:
            merged = self.query.subtotals is not None
            found = kernel_units.of_units(source, cells, terms, self.unit, self.p, merged=merged)
            return self._weighed(self._coded(source, cells, terms)) if found is None else Partial(found)
        return Partial(of_rows_alone(source, cells, terms))

    def _compound(self, source: Source) -> Partial:
        """Return totals of which some are compound: in one pass if possible, else from coded rows."""
        if contrasts_in(self.query) is not None:
            return self._of_coded(compound_rows(source, self.query, self.unit))
        cells, parts = Cells.of(source, self.query.keys), Parts.of(self.query, self.unit, self.watched)
        found = totals_at_once(source, cells, parts, self.query, self.unit, self.p)
        if found is not None:
            return Partial(found)
        return self._of_coded(prepared_rows(source, cells, parts, self.query, self.unit))

    def coded(self, frame: Any) -> pl.DataFrame:
        """Return coded rows of units: the numbers of their cells, and the integers to sum."""
        source = self._brought(frame)
        assert self.by is not None
        if self.query.keys.counted == "units":
            return coded_units(source, self.query.keys, self.unit)
        if compound(self.query):
            return compound_rows(source, self.query, self.unit)
        cells, terms = Cells.of(source, self.query.keys), Terms.of(self.query.of_cells)
        if not kernel_units.codes_narrowly(terms, self.p, cells.keys.cells):
            return self._coded(source, cells, terms)
        narrow = kernel_rows.narrow_rows(source, cells, terms, self.unit)
        return kernel_rows.narrowed(self._coded(source, cells, terms), terms) if narrow is None else narrow

    def _coded(self, source: Source, cells: Cells, terms: Terms) -> pl.DataFrame:
        """Return coded rows of units in cells, with the integers of plain sums in 64 bits each."""
        assert self.by is not None
        lazy = source.load([*cells.requests(), *terms.requests(), *unit_requests(self.unit)])
        table = coded_rows(lazy, cells, terms, source.rows, "unit")
        if self.unit.nulls == "drop" and table["unit"].null_count():
            table = table.filter(pl.col("unit").is_not_null())
        return table

    def combine(self, table: pl.DataFrame) -> pl.DataFrame:
        """Combine coded rows, or rows that were combined before, into one row for each unit and cell: a pair.

        Rows for compound Totals stay as they are: what a unit adds is no sum over pairs. Rows for distinct values are
        deduplicated.
        """
        if compound(self.query):
            return table.unique() if all(isinstance(total, DistinctTotal) for total in self.query.of_cells) else table
        terms = self._terms
        table = table if terms is None else kernel_rows.widened(table, terms)
        values = [] if terms is None else terms.names()
        if ROWS in table.columns:
            sums = [pl.col(name).sum() for name in table.columns if name == ROWS or name.removesuffix(" n") in values]
        else:
            sums = [pl.len().cast(pl.Int64).alias(ROWS)] if terms is None else terms.aggregated()
        summed = [name for name in (ROWS, *values, *(f"{name} n" for name in values)) if name]
        names = [name for name in table.columns if name not in summed]
        return collected(table.lazy().group_by(names).agg(sums), table.height)

    def weigh(self, table: pl.DataFrame) -> Partial:
        """Return the totals of all coded rows of some units, or of all their pairs."""
        if self.query.keys.counted == "units":
            pairs = self.combine(table)
            return Partial({self.query.of_cells[0]: units_of_pairs(pairs, self.query)})
        if compound(self.query):
            return self._of_coded(table)
        if ROWS not in table.columns:
            return self._weighed(table)
        terms = Terms.of(self.query.of_cells)
        merged = self.query.subtotals is not None
        return Partial(weights.of_pairs(table, terms, self.unit, self.p, self.query.keys.cells, merged=merged))

    def _of_coded(self, table: pl.DataFrame) -> Partial:
        """Return the compound Totals of coded rows, with the values to count once all of them are together."""
        totals = of_coded(table, self.query, self.unit, self.p)
        if not gathers(self.query):
            return Partial(totals)
        names = Parts.of(self.query, self.unit).others
        columns = {total: name for total, name in names.items() if isinstance(total, DistinctTotal)}
        return gathered(totals, table, columns, self.unit, self.query.keys.cells, self.secret)

    def _weighed(self, table: pl.DataFrame) -> Partial:
        terms, cells = Terms.of(self.query.of_cells), self.query.keys.cells
        merged = self.query.subtotals is not None
        return Partial(kernel_units.weighed_rows(table, terms, self.unit, self.p, cells, merged=merged))

    @property
    def _terms(self) -> Terms | None:
        return None if self.query.keys.counted == "units" else Terms.of(self.query.of_cells)


OWNER, GROUP = "unit", "group"
NOWHERE = -1  # the group of a row in no cell


@dataclass(frozen=True)
class CheckTask(RowTask):
    """Question of how many units have each indicator; it is public, and can be sent to where the rows are."""

    checks: Checks
    unit: PrivacyUnit
    types: dict[str, ColumnType]

    @classmethod
    def of(cls, engine: Engine, checks: Checks) -> Self:
        """Return the task for a table of the engine's schema."""
        types = engine.schema()
        return cls(checks, checks.unit, {name: types[name] for name in checks.columns})

    def piece(self, frame: Any) -> Partial:
        """Return the numbers of checks for some rows (all rows of some units, if there is a unit)."""
        return self.of_source(self._brought(frame))

    def of_source(self, source: Source) -> Partial:
        """Return the numbers of checks for a Source."""
        if self.checks.is_plain:
            cells, terms = Cells.of(source, self.checks.keys), Terms.of((), self.checks)
            alone = self.by is None
            found = (
                of_rows_alone(source, cells, terms)
                if alone
                else of_units(source, cells, terms, self.unit, 1.0, merged=False)
            )
            if found is not None and OF_CHECKS in found:
                return Partial({OF_CHECKS: found[OF_CHECKS]})
        return self.weigh(self._coded(source))

    def coded(self, frame: Any) -> pl.DataFrame:
        """Return coded rows: the group of each row, its unit, and flags of its values."""
        return self._coded(self._brought(frame))

    def _coded(self, source: Source) -> pl.DataFrame:
        cells = Cells.of(source, self.checks.keys)
        requests: list[ColumnRequest] = list(cells.requests())
        for number, between in enumerate(self.checks.between):
            requests.append((f"value{number}", between.column, "value" if between.kind == "number" else "bin", None))
        if self.checks.among is not None:
            requests.append(("among", self.checks.among, "present", None))
        requests += unit_requests(self.unit)
        lazy = source.load(requests)
        if requests:  # without requests, there is no column to select, only rows
            flags = [self._flags(number, between) for number, between in enumerate(self.checks.between)]
            others = [name for name, *_ in requests if name in ("among", OWNER)]
            lazy = lazy.select(*cells.names(), *(flag for three in flags for flag in three), *others)
        table = collected(lazy, source.rows)
        code = cells.codes(table)
        group = np.where(code < 0, NOWHERE, code // self.checks.inner)
        columns = [table[name] for name in (*self._names, *([] if self.by is None else [OWNER]))]
        weighed = np.ones(table.height, dtype=np.int64)
        if self.checks.among is not None:
            weighed = table["among"].cast(pl.Int64).to_numpy()
        coded = pl.DataFrame([*columns, pl.Series(GROUP, group, dtype=pl.Int64), pl.Series(ROWS, weighed)])
        return coded.drop_nulls(OWNER) if self.by is not None and self.unit.nulls == "drop" else coded

    def combine(self, table: pl.DataFrame) -> pl.DataFrame:
        """Combine coded rows into one row for each unit and group."""
        added = [pl.col(name).sum() if self._is_sum(name) else pl.col(name).max() for name in self._names]
        pairs = table.lazy().group_by(OWNER, GROUP).agg(*added, pl.col(ROWS).sum())
        return collected(pairs, table.height).select(table.columns)

    def weigh(self, table: pl.DataFrame) -> Partial:
        """Return the numbers of units, from all rows of some units or all their pairs of unit and group."""
        inside = pl.col(GROUP) >= 0
        has: list[pl.Expr] = []
        present: dict[str, pl.Expr] = {}
        for number, between in enumerate(self.checks.between):
            below, above, there = (pl.col(name) for name in _columns(number))
            if between.of_units:  # the first column holds the sum of the unit
                lower, upper = grid_steps(between.bounds)
                has += [inside & (there > 0) & (below < lower), inside & (there > 0) & (below > upper)]
            else:
                has += [inside & (below > 0), inside & (above > 0)]
            present.setdefault(between.column, inside & (there > 0))
        has += present.values()
        has += [~inside] if self.checks.outside else []
        if self.by is None:
            return self._numbers(table, [one.sum() for one in has])
        each = [one.any() for one in has] + [_breaks(rule, inside) for rule in self.checks.rules]
        of_unit = [one.alias(f"{number}") for number, one in enumerate(each)]
        units = (self.combine(table) if self._by_group else table).group_by(OWNER).agg(*of_unit)
        return self._numbers(units, [pl.col(f"{number}").sum() for number in range(len(each))])

    def _numbers(self, table: pl.DataFrame, sums: list[pl.Expr]) -> Partial:
        """Return the sums of flags over all rows, one row for each unit, and the number of units if requested."""
        each = [one.cast(pl.Int64).alias(f"{number}") for number, one in enumerate(sums)]
        numbers = table.select(*each, pl.len().cast(pl.Int64).alias("units")).row(0)
        return Partial({OF_CHECKS: np.array(numbers if self.checks.counts_units else numbers[:-1], dtype=np.int64)})

    @property
    def _by_group(self) -> bool:
        """True if it matters which rows of a unit are in one group."""
        sums = any(between.of_units for between in self.checks.between)
        return sums or any(rule.counting != "rows" for rule in self.checks.rules)

    @property
    def _names(self) -> list[str]:
        return [name for number in range(len(self.checks.between)) for name in _columns(number)]

    def _is_sum(self, name: str) -> bool:
        return name in {f"below{number}" for number, between in enumerate(self.checks.between) if between.of_units}

    def _flags(self, number: int, between: Between) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """Return flags: the value is below the bounds, above them, present; for a unit's sum, its steps come first."""
        value = pl.col(f"value{number}")
        lower, upper = between.bounds
        if between.kind == "number":
            there = value.is_not_null() & value.is_not_nan()
        else:  # the bounds become integers in ticks of the column
            there, tick = value.is_not_null(), self.types[between.column].tick
            lower, upper = -(-int(lower) // tick), int(upper) // tick
        names = _columns(number)
        if between.of_units:
            steps, nothing = wider_steps(value, between.bounds).fill_null(0), pl.lit(0, dtype=pl.Int64)
            return steps.alias(names[0]), nothing.alias(names[1]), _as(there, names[2])
        return _as(there & (value < lower), names[0]), _as(there & (value > upper), names[1]), _as(there, names[2])


def _columns(number: int) -> tuple[str, str, str]:
    return f"below{number}", f"above{number}", f"there{number}"


def _as(flag: pl.Expr, name: str) -> pl.Expr:
    return flag.fill_null(value=False).cast(pl.Int64).alias(name)


def _breaks(rule: Rule, inside: pl.Expr) -> pl.Expr:
    """Return whether a unit breaks a rule, from its rows by group."""
    rows = pl.when(inside).then(pl.col(ROWS)).otherwise(0)
    if rule.counting == "rows":
        return rows.sum() > rule.most
    if rule.counting == "most rows":
        return rows.max() > rule.most
    if rule.counting == "groups":
        return inside.sum() > rule.most
    few = math.isqrt(rule.most)  # more rows than this in one group break the rule alone
    return (rows.max() > few) | (rows.clip(0, few).cast(pl.Float64).pow(2).sum() > rule.most)
