"""The computation on rows, in public terms alone: it can be pickled and carried to where the rows are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import polars as pl

from dpframe.engines.check_counts import CheckTask
from dpframe.engines.columns.source import ColumnType, Source, collected, unit_requests
from dpframe.engines.compiled import kernel_rows, kernel_units
from dpframe.engines.engine import Engine, Partial, RowTask
from dpframe.engines.schema import columns_of
from dpframe.engines.sums import weights
from dpframe.engines.sums.addends import NUMBERS, ROWS, Terms
from dpframe.engines.sums.cells import Cells
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
)
from dpframe.engines.sums.distinct import gathered
from dpframe.engines.sums.row_totals import coded_rows, of_rows_alone
from dpframe.privacy import PrivacyUnit
from dpframe.queries.indicators import Checks
from dpframe.queries.query import Query, compound, gathers, read_by
from dpframe.queries.total import DistinctTotal
from dpframe.queries.where import Conditional


@dataclass(frozen=True)
class Task(RowTask):
    """A question of a table: nothing of it comes from rows.

    Rows of units are *coded* first: the unit, the number of the cell, and the integers that are summed; rows in no cell
    are left out. Coded rows of one unit and cell can be brought together into one row (`combine`), again and again. The
    unit's weight needs all of them (`weigh`).
    """

    query: Query
    unit: PrivacyUnit
    p: float  # of the norm that the noise covers
    types: dict[str, ColumnType]  # of the columns that are read
    secret: int = 0  # of the order in which units keep groups for numbers of distinct values; it reaches no result
    checks: Checks | None = None  # whose numbers a piece has too
    watched: Checks | None = None  # these, where flags of rows tell them
    conditional: bool = True  # whether some columns are read under conditions

    @classmethod
    def of(cls, engine: Engine, query: Query, unit: PrivacyUnit, p: float, secret: int = 0) -> Self:
        """The task for a table of the engine's schema."""
        types = engine.schema()
        read = {name: types[name] for name in columns_of(query, unit)}
        conditional = any(isinstance(name, Conditional) for name in read_by(query))
        return cls(query, unit, p, read, secret, conditional=conditional)

    def beside(self, checks: Checks) -> Self:
        """The same task, whose pieces have the numbers of checks too: of columns that the question reads."""
        return replace(self, checks=checks, watched=checks if checks.is_plain else None)

    def piece(self, frame: Any) -> Partial:
        """The totals of some rows; where there is a unit, of all rows of some units. Numbers of checks are in them."""
        source = self._brought(frame)
        partial = self._totals(source)
        if self.checks is None or NUMBERS in partial.totals:
            return partial
        checked = CheckTask(self.checks, self.unit, self.types).of_source(source)
        return replace(partial, totals={**partial.totals, **checked.totals})

    def _totals(self, source: Source) -> Partial:
        """The totals, with the numbers of checks where they are found in the same read."""
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
        """The totals of which some are compound: at once where that can be, else of coded rows."""
        if contrasts_in(self.query) is not None:
            return self._of_coded(compound_rows(source, self.query, self.unit))
        cells, parts = Cells.of(source, self.query.keys), Parts.of(self.query, self.unit, self.watched)
        found = totals_at_once(source, cells, parts, self.query, self.unit, self.p)
        if found is not None:
            return Partial(found)
        return self._of_coded(prepared_rows(source, cells, parts, self.query, self.unit))

    def coded(self, frame: Any) -> pl.DataFrame:
        """Rows of units by the numbers of their cells, with the integers that are summed."""
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
        assert self.by is not None
        lazy = source.load([*cells.requests(), *terms.requests(), *unit_requests(self.unit)])
        table = coded_rows(lazy, cells, terms, source.rows, "unit")
        if self.unit.nulls == "drop" and table["unit"].null_count():
            table = table.filter(pl.col("unit").is_not_null())
        return table

    def combine(self, table: pl.DataFrame) -> pl.DataFrame:
        """Coded rows, or what came of them before, with one row for each unit and cell: a pair.

        Of compound Totals rows stay as they are: what a unit adds is no sum of pairs. Of distinct values equal rows are
        one.
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
        return collected(table.lazy().group_by(names).agg(sums), table.height).with_columns(pl.col(ROWS).cast(pl.Int64))

    def weigh(self, table: pl.DataFrame) -> Partial:
        """The totals of all coded rows of some units, or of all their pairs."""
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
        """The compound Totals of coded rows, and the values that are to be counted once all of them are together."""
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
