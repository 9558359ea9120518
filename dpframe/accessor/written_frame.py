"""Released results in forms for readers: tables, paragraphs, rounded frames, files, pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, overload

import numpy as np

from dpframe.accessor.changed_frame import ChangedFrame, Labels
from dpframe.accessor.joined import parts_of
from dpframe.derived import population
from dpframe.display import layout, result_page, result_tables, rounding, statements, table_formats
from dpframe.display.report import Section
from dpframe.display.rounding import Digits
from dpframe.errors import InvalidArgument, MissingArgument, checked_name
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import checked_whole
from dpframe.files import TABLES, write_to
from dpframe.frames import build, foreign
from dpframe.planning import suggestion
from dpframe.planning.suggestion import Cells
from dpframe.privacy import PrivacyUnit
from dpframe.queries.query import ERROR
from dpframe.release import provenance
from dpframe.release.results import rounded_release


class WrittenFrame(ChangedFrame):
    """The part of `ReleasedFrame` for readers: tables, paragraphs, rounded frames, Parquet."""

    @overload
    def table(
        self,
        format: Literal["great_tables"] = "great_tables",
        *,
        digits: Digits | None = "error",
        locale: str | None = None,
        labels: Labels | None = None,
    ) -> Any: ...

    @overload
    def table(
        self,
        format: Literal["markdown", "html", "latex", "csv"],
        *,
        digits: Digits | None = "error",
        locale: str | None = None,
        labels: Labels | None = None,
    ) -> str: ...

    @overload
    def table(
        self,
        format: Literal["excel"],
        *,
        digits: Digits | None = "error",
        locale: str | None = None,
        labels: Labels | None = None,
    ) -> bytes: ...

    @trimmed
    def table(
        self,
        format: str = "great_tables",
        *,
        digits: Digits | None = "error",
        locale: str | None = None,
        labels: Labels | None = None,
    ) -> Any:
        """Make a table: each value with its margin of error, and the cost.

        Parameters
        ----------
        format : {"great_tables", "markdown", "html", "latex", "csv", "excel"}
            "great_tables" is a table that a notebook displays, from the library of that name.
        digits : "error", int or None
            "error" rounds each column as `round` does. A number is that of decimals; below 0, of zeros before the
            decimal point. None rounds nothing.
        locale : str, optional
            The language that formats numbers, such as "de" or "fr_CH" (by Babel). Words stay English: see `labels`. CSV
            and Excel hold plain numbers, so only the edges of bins follow it there.
        labels : dict, optional
            Display names for columns and keys, as in `relabel`:
            ``{"columns": {"age": "Age (years)", "n": "People"}, "values": {"sex": {0: "Men"}}}``.

        Returns
        -------
        great_tables.GT, str or bytes
            Depends on the format. The first lines of CSV begin with ``#`` and state where the numbers come from (read
            it with ``comment="#"``). Text that a spreadsheet would read as a formula is quoted there. Excel returns the
            bytes of a workbook, with a sheet for the result (or each joined release) and one for notes. LaTeX needs the
            packages booktabs and caption.

        Raises
        ------
        ImportError
            Without the extra ``dpframe[tables]``, which Markdown, HTML and CSV do not need.
        InvalidArgument
            If an argument breaks its rule; if the frame holds data that no release covers, lost columns or rows, joins
            several releases (unless `format` is "excel"), or has no numbers with errors, such as a mode.

        Notes
        -----
        The table has one row for each row of the frame. ``NAME ±`` is the 95% margin of error. ``NAME unbiased`` is
        next to denoised values if they differ, and ``NAME itself off by about`` if that is known. Quantiles and ratios
        have ``NAME from`` and ``NAME to``. Bins read "20 to 40". A count or sum of two keys with ``cube=True`` is shown
        as a two-way table with its margins.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> print(ages.dp.table("markdown", labels={"columns": {"count": "People"}}))  # doctest: +ELLIPSIS
        **People**
        ...
        """
        kind = table_formats.checked_format(format)
        look = result_tables.Look(None if digits is None else rounding.checked_digits(digits), locale)
        if kind == "excel" and "parts" in self._facts:
            tables = [type(self)(*part)._table(labels, look) for part in parts_of(self._frame)]
            return table_formats.excel(tables, self._facts.get("names", ()))
        self._alone("table")
        return table_formats.formatted(self._table(labels, look), kind)

    def _table(self, labels: Labels | None, look: result_tables.Look) -> result_tables.Table:
        """Return the table of one release."""
        provenance.checked_numbers(self._frame, provenance.counted(self._facts))
        shown = self._labeled(labels, "table")
        return table_of(shown._frame, provenance.counted(shown._facts), look)

    @trimmed
    def round(self, digits: Digits = "error") -> Any:
        """Round numbers to their errors; the frame is still a release.

        Parameters
        ----------
        digits : "error" or int
            "error" keeps two digits of the smallest error of each statistic, or four digits of the smallest value if
            no error is known. Whole numbers with whole errors, such as counts, stay whole. A number is that of
            decimals; below 0, of zeros before the decimal point.

        Returns
        -------
        DataFrame
            A new frame with the same columns, dtypes and order of rows. ``.dp.provenance["rounded"]`` (for a changed
            frame ``["shown"]["rounded"]``) records the steps, and the hashes of the released numbers, by which
            `Ledger.verify` recognizes the release.

        Raises
        ------
        InvalidArgument
            If the frame holds data that no release covers, lost columns or rows, joins several releases, or has no
            numbers with errors, such as a mode. Also for bins for range queries (``ranges=True``), since rounding each
            would move their sums.

        Notes
        -----
        It costs nothing. Errors grow by the largest change of a number and are rounded up, ``_low`` is rounded down and
        ``_high`` up, so every interval still contains what it contained before. Sums of rounded numbers move more than
        each number.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31.0, 45.5, 62.25] * 100})
        >>> mean = people.dp.mean("age", bounds=(0, 120), epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> mean.dp.round(1).dp.provenance["rounded"]["steps"]
        {'age_mean': 0.1}
        """
        facts = provenance.counted(self._alone("round"))
        places = provenance.checked_numbers(self._frame, facts)
        return rounded_release(self._frame, self._facts, facts, places, rounding.checked_digits(digits))

    @trimmed
    def statement(self, *, unit: str | None = None) -> str:
        """Describe the release in a paragraph: what, how protected, how accurate.

        Parameters
        ----------
        unit : str, optional
            The word for a protected unit, such as "patient"; by default the name of the column of the unit.

        Returns
        -------
        str
            English sentences, from the record and the errors alone.

        Raises
        ------
        InvalidArgument, InvalidType
            If the frame lost columns or rows that were released, holds other numbers, joins several releases, or has no
            numbers with errors, such as a mode; or if `unit` is not text.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> count = people.dp.count(epsilon=0.5, ledger=dpf.Ledger(epsilon=1), label="Patients in 2026")
        >>> print(count.dp.statement())  # doctest: +ELLIPSIS
        Patients in 2026: number of rows. The numbers were computed exactly, and random noise was added to each to ...
        """
        facts = provenance.counted(self._alone("statement"))
        facts = rounding.placed(facts, provenance.checked_numbers(self._frame, facts))
        errors = {name: build.numbers(self._frame, name + ERROR).tolist() for name in facts["measures"]}
        facts = statements.with_changed(self._frame, facts)
        named = facts if unit is None else {**facts, "word": checked_name("unit", unit)}
        ends = {name: rounding.of_frame(self._frame, facts, name) for name in facts["measures"]}
        middles = {
            name: rounding.middle_of(facts["measures"][name], name, facts["columns"])
            for name, one in ends.items()
            if not one.unplaced
        }
        values = {name: build.numbers(self._frame, middle).tolist() for name, middle in middles.items()}
        more = population.sentences(self._frame) if facts.get("population") else []
        missing = "all" if "levels" in facts else "missing"

        def cell(place: int) -> str:
            (row,) = build.rows(build.rows_between(self._frame, place, place + 1))
            return layout.cell(row, facts["cells"], missing)

        return " ".join([statements.statement_of(named, values, errors, ends, cell), *more])

    @trimmed
    def write_parquet(self, path: Any) -> None:
        """Write the frame with its provenance; `dpframe.read_parquet` reads both.

        Rows may be in any order. The index and other attributes of a pandas frame are not written.

        Raises
        ------
        InvalidArgument
            If the frame has columns that no release covers, or released numbers or labels that were changed. Also if
            `path` belongs to a ledger, is not a plain file, or ends as one of another format, such as ``.csv``.
        OutputFailed
            If the file cannot be written. An existing file stays whole.
        """
        for part in parts_of(self._frame):
            provenance.checked(*part)
        write_to("path", path, lambda place: build.write_parquet(self._frame, place, self._facts), TABLES)


class Shown(Protocol):
    """A release with the chart and the paragraph of a page."""

    def plot(self) -> Any:
        """Return the chart."""

    def statement(self) -> str:
        """Return the paragraph."""


def section_of(release: Shown, frame: Any, said: dict[str, Any], *, charts: bool) -> Section:
    """Return the section of one release in a page; a choice without numbers has only a table."""
    facts = provenance.counted(said)
    look = result_tables.Look()
    if not facts["measures"] and not foreign.is_reports(facts):
        provenance.checked(frame, facts)
        table = result_tables.of_result(frame, facts, {}, look)
        return result_page.section(facts, table, said, statement="", chart=None, errors=[])
    places = provenance.checked_numbers(frame, facts)
    errors = provenance.errors(build.reordered(frame, places), facts)
    table = table_of(frame, facts, look)
    chart = release.plot() if charts else None
    return result_page.section(facts, table, said, statement=release.statement(), chart=chart, errors=errors)


def table_of(frame: Any, facts: Mapping[str, Any], look: result_tables.Look) -> result_tables.Table:
    """Return the table of a release with numbers, in the order of the frame; two-way tables in that of the keys."""
    places = provenance.checked_numbers(frame, facts)
    if result_tables.is_two_way(facts):  # its rows are found by position
        frame, places = build.reordered(frame, places), np.arange(len(places))
    errors = provenance.cell_errors(facts, places)
    return result_tables.of_result(frame, rounding.placed(facts, places), errors, look)


def unbiased_counts(facts: Mapping[str, Any], rule: str) -> str:
    """Return the column of unbiased counts, or raise an error that begins with `rule` if only adjusted ones exist."""
    if "count_noisy" in facts["columns"]:
        return "count_noisy"
    if facts["measures"]["count"]["denoise"]:
        raise InvalidArgument(f"{rule}, which keep_noisy=False left out. Leave it out of the next release.")
    return "count"


def suggested(
    frame: Any, facts: Mapping[str, Any], *, epsilon: Any, delta: Any, mechanism: str | None, most_rows: Any
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the contribution bounds that a grid of contributions suggests, the best first, and any problem.

    The description of the problem names an epsilon that is large enough.
    """
    if epsilon is None:
        raise MissingArgument("epsilon must be given: the cost of the planned count. Write for instance epsilon=0.5.")
    rule = "a whole number from 1 to 2**31"
    most = None if most_rows is None else checked_whole("most_rows", most_rows, 1, 2**31, rule)
    places = provenance.checked_numbers(frame, facts)
    frame, shape = build.reordered(frame, places), foreign.shape(facts)
    noisy = unbiased_counts(facts, "suggest must be asked of unbiased counts")
    names = ("rows_left", "rows_right", "groups_left", "groups_right", noisy)
    *each, values = (build.numbers(frame, name).reshape(shape) for name in names)
    ends, law = dict(zip(names, each, strict=False)), facts["statistics"][0]
    unit, groups = PrivacyUnit.of_facts(facts["unit"]), facts["groups"]["size"]
    price = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
    cells = Cells.of(ends, values, law, most)
    return suggestion.candidates(
        suggestion.grid_of(ends, values, law),
        cells,
        unit,
        groups,
        **price,
        paid=float(facts["cost"]["epsilon"]),
        rows_too=most is not None,
    )
