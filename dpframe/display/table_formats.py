"""Tables as Markdown, HTML, LaTeX, CSV and Excel workbooks, and for notebooks by great-tables."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from dpframe.display import theme
from dpframe.display.result_tables import Column, Table
from dpframe.errors import InvalidArgument, harmless, is_one_of, no_formula, no_formulas, shown

FORMATS = ("great_tables", "markdown", "html", "latex", "csv", "excel")
NEEDS_TABLES = "tables need great-tables: pip install 'dpframe[tables]'"
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~#$&])")  # characters that Markdown may read as markup


def checked_format(name: object) -> str:
    """Return the name of a format; refuse any other value."""
    if not is_one_of(name, FORMATS):
        raise InvalidArgument(f"format must be one of {', '.join(map(repr, FORMATS))}, not {shown(name)}.")
    return str(name)


def formatted(table: Table, name: str) -> Any:
    """Return the table in a format: as text, as the bytes of a workbook, or as an object of great-tables."""
    if name == "excel":
        return excel([table])
    writers = {"great_tables": great, "markdown": markdown, "html": html_block, "latex": latex, "csv": comma_separated}
    return writers[name](table)


def markdown(table: Table) -> str:
    """Return the table in GitHub's Markdown, with its title above and its notes below."""
    head = [marked(column.title) for column in table.columns]
    rules = ["---:" if column.is_number else ":---" for column in table.columns]
    lines = [head, rules, *(list(map(marked, row)) for row in table.texts())]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n".join(f"- {marked(note)}" for note in table.notes)
    return f"**{marked(table.title)}**\n\n{marked(table.subtitle)}\n\n{rows}\n\n{notes}\n"


def marked(text: str) -> str:
    """Return text for Markdown, with every character escaped that could be read as markup."""
    return MARKDOWN.sub(r"\\\1", harmless(text))


def html_block(table: Table) -> str:
    """Return an HTML block: the table and its notes, with a style of its own for light and dark pages."""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    name = f"dpframe-{table.name}"
    return (
        f'<div id="{name}" class="dpframe"><style>{_style(f"#{name}")}</style>{html_table(table)}'
        f'<ul class="notes">{notes}</ul></div>\n'
    )


def html_table(table: Table, rows: int | None = None, *, titled: bool = True) -> str:
    """Return the HTML table alone, with at most `rows` rows: cells that name a row are headers; all text is escaped."""
    kinds = [_kind(column) for column in table.columns]
    head = "".join(
        f'<th scope="col"{kind}>{html.escape(column.title)}</th>'
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    lines = []
    for row in table.texts()[:rows]:
        cells = zip(row, table.columns, kinds, strict=True)
        lines.append(
            "".join(
                f"<td{kind}>{html.escape(cell)}</td>"
                if column.is_number
                else f'<th scope="row">{html.escape(harmless(cell))}</th>'
                for cell, column, kind in cells
            )
        )
    title = html.escape(table.title) if titled else ""
    caption = f"<caption>{title}<small>{html.escape(table.subtitle)}</small></caption>"
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def latex(table: Table) -> str:
    """Return a LaTeX table environment, which needs the packages booktabs and caption."""
    return str(_great(table).as_latex())


def comma_separated(table: Table) -> str:
    """Return CSV with decimal points, below lines that begin with # and hold the title and the notes.

    Text that a spreadsheet would read as a formula gets an apostrophe in front.
    """
    written = io.StringIO()
    for line in (table.title, table.subtitle, *table.notes):
        written.write(f"# {no_formulas(harmless(line))}\n")
    writer = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([_cell(column.title) for column in table.columns])
    writer.writerows(zip(*([_cell(value, column) for value in column.cells] for column in table.columns), strict=True))
    return written.getvalue()


def _cell(value: Any, column: Column | None = None) -> Any:
    """Return a cell for CSV: keys that are numbers and finite values stay numbers; everything else is text."""
    if isinstance(value, str):
        return no_formula(harmless(value))
    if column is None or not column.is_number:
        return value
    if value is None or not math.isfinite(value):
        return "" if value is None or value != value else str(value)
    return value if column.decimals is None else Decimal(f"{value:.{max(column.decimals, 0)}f}")


def great(table: Table) -> Any:
    """Return a table of great-tables with the colors of charts, on light and dark pages."""
    made = _great(table)
    light, dark = theme.colors(), theme.colors(dark=True)
    made = made.tab_options(
        table_font_names=theme.FONT.replace("'", "").split(", "),
        table_font_color=light.ink,
        table_border_top_color=light.rule,
        table_border_bottom_color=light.rule,
        table_body_hlines_color=light.grid,
        heading_align="left",
        source_notes_font_size="85%",
    )
    inner = f"#{made._options.table_id.value} .gt_table"  # the styles of great-tables have this prefix
    return made.opt_css(
        f"@media (prefers-color-scheme: dark) {{ {inner}, {inner} :is(td, th, tr, thead, tbody, tfoot) {{ "
        f"color: {dark.ink} !important; background-color: {dark.page} !important; "
        f"border-color: {dark.grid} !important; }} }}"
    )


def _great(table: Table) -> Any:
    try:
        import great_tables
    except ImportError:
        raise ImportError(NEEDS_TABLES) from None
    from dpframe.frames import build
    from dpframe.frames.kinds import check_threads

    check_threads()
    names = [f"column{number}" for number in range(len(table.columns))]  # great-tables may read a name as a pattern
    made = great_tables.GT(
        build.frame_of(
            {name: _plain(table, column) for name, column in zip(names, table.columns, strict=True)}, "polars"
        ),
        id=f"dpframe-{table.name}",
    )
    titles: dict[str, Any] = {name: column.title for name, column in zip(names, table.columns, strict=True)}
    made = made.cols_label(**titles).tab_header(title=table.title, subtitle=table.subtitle)
    for name, column in zip(names, table.columns, strict=True):
        made = made.cols_align(align="right" if column.is_number else "left", columns=name)
        if column.is_number and column.forms is None:
            made = made.fmt(partial(_shown, table, column), columns=name)
    for note in table.notes:
        made = made.tab_source_note(note)
    return made


def _shown(table: Table, column: Column, value: Any) -> str:
    return table.write(value, column.decimals)


def _plain(table: Table, column: Column) -> Sequence[Any]:
    """Return numbers as they are; return numbers with forms and names of rows, which may mix types, as text."""
    return column.cells if column.is_number and column.forms is None else table.written(column)


def _kind(column: Column) -> str:
    return ' class="n"' if column.is_number else ""


def _style(place: str) -> str:
    """Return the style of one table; it sets its own colors, since the page may stay light in dark mode."""
    rules = " ".join(f"{place} {rule}" for rule in TABLE_RULES)
    dark = f"@media screen and (prefers-color-scheme: dark) {{{place} {{{variables(dark=True)}}}}}"
    own = "background:var(--page);color:var(--ink);padding:.5em .8em"
    return f"{place} {{{variables()}{own}}} {rules} {dark}"


def variables(*, dark: bool = False) -> str:
    """Return the colors of a page as CSS variables."""
    of = theme.colors(dark=dark)
    return f"--ink:{of.ink};--page:{of.page};--faint:{of.faint};--rule:{of.rule};--grid:{of.grid};"


TABLE_RULES = (
    f"table {{border-collapse:collapse;font-family:{theme.FONT};font-variant-numeric:tabular-nums;"
    "color:var(--ink);background:var(--page)}",
    "caption {text-align:left;font-weight:600;padding:.4em 0}",
    "caption small {display:block;font-weight:400;color:var(--faint)}",
    ":is(th, td) {padding:.3em .8em;text-align:left;border-bottom:1px solid var(--grid);vertical-align:top}",
    "thead th {border-bottom:2px solid var(--rule);vertical-align:bottom}",
    "tbody th {font-weight:400}",
    ".n {text-align:right}",
    "td.n {white-space:nowrap}",
    f".notes {{font-family:{theme.FONT};font-size:.85em;color:var(--faint);padding-left:1.2em}}",
)


NEEDS_EXCEL = "workbooks need XlsxWriter: pip install 'dpframe[tables]'"
MOST_ROWS = 1_000_000  # rows of a sheet; the limit leaves room for titles
HEAD = 3  # the row of the column titles, below the title and the subtitle
RESULT, NOTES = "Result", "Notes"  # names of sheets
LONGEST = 31  # characters in the name of a sheet
FORBIDDEN = re.compile(r"[\[\]:*?/\\]")  # in the name of a sheet
WIDE = 110  # width of the column of notes, in characters


def excel(tables: Sequence[Table], names: Sequence[str] = ()) -> bytes:
    """Return the bytes of a workbook: a sheet for each table and one of notes; text is never a formula or a link.

    The sheets have the given `names`, or else the titles of the tables.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise ImportError(NEEDS_EXCEL) from None
    for table in tables:
        rows = len(table.columns[0].cells)
        if rows > MOST_ROWS:
            raise InvalidArgument(
                f"format must not be 'excel' for {rows:,} rows: a sheet has {MOST_ROWS:,}. Write \"csv\"."
            )
    written = io.BytesIO()
    book = xlsxwriter.Workbook(written, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"title": tables[0].title, "comments": tables[0].subtitle})
    bold, faint = book.add_format({"bold": True}), book.add_format({"font_color": "#595959"})
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    for name, table in zip(_sheets(tables, names), tables, strict=True):
        _write_sheet(book, book.add_worksheet(name), table, bold, faint)
    notes, line = book.add_worksheet(NOTES), 0
    notes.set_column(0, 0, WIDE)
    for table in tables:
        for words, form in ((table.title, bold), (table.subtitle, faint), *((note, wrapped) for note in table.notes)):
            notes.write_string(line, 0, words, form)
            line += 1
        line += 1
    book.close()
    return written.getvalue()


def _sheets(tables: Sequence[Table], names: Sequence[str]) -> list[str]:
    """Return names that a workbook accepts for its sheets; they differ in more than case."""
    if len(tables) == 1:
        return [RESULT]
    taken, made = {NOTES.lower(), "history"}, []
    for name in names or [table.title for table in tables]:
        plain = FORBIDDEN.sub(" ", harmless(name)).strip(" '")[:LONGEST].strip(" '") or RESULT
        different, number = plain, 1
        while different.lower() in taken:
            number += 1
            different = f"{plain[: LONGEST - 6]} ({number})"
        taken.add(different.lower())
        made.append(different)
    return made


def _write_sheet(book: Any, sheet: Any, table: Table, bold: Any, faint: Any) -> None:
    sheet.write_string(0, 0, table.title, bold)
    sheet.write_string(1, 0, table.subtitle, faint)
    for place, column in enumerate(table.columns):
        head = {"bold": True, "bottom": 1, "align": "right" if column.is_number else "left"}
        sheet.write_string(HEAD, place, column.title, book.add_format(head))
        _write_cells(sheet, place, column, book.add_format({"num_format": _pattern(column)}))
        sheet.set_column(place, place, max(9, min(40, len(column.title) + 2)))
    sheet.freeze_panes(HEAD + 1, 0)


def _write_cells(sheet: Any, place: int, column: Column, form: Any) -> None:
    for line, value in enumerate(column.cells, start=HEAD + 1):
        if isinstance(value, (int, float)) and math.isfinite(value) and abs(value) < 1e15:
            sheet.write_number(line, place, value, form if column.is_number else None)
        elif isinstance(value, str):
            sheet.write_string(line, place, value)
        elif value is not None and value == value:  # infinite, or with more digits than a sheet keeps
            sheet.write_string(line, place, str(value))


def _pattern(column: Column) -> str:
    if not column.is_number or column.decimals is None:
        return "General"
    return "#,##0" + (f".{'0' * column.decimals}" if column.decimals > 0 else "")
