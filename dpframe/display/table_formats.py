"""Tables as text: Markdown, HTML, LaTeX, CSV; and for notebooks, by great-tables."""

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
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~#$&])")  # what Markdown reads as more than a letter


def checked_format(name: object) -> str:
    """Refuse a format that tables are not written in."""
    if not is_one_of(name, FORMATS):
        raise InvalidArgument(f"format must be one of {', '.join(map(repr, FORMATS))}, not {shown(name)}.")
    return str(name)


def formatted(table: Table, name: str) -> Any:
    """The table in that format: text, or the bytes of a workbook, or an object of great-tables."""
    if name == "excel":
        from dpframe.display.workbooks import excel

        return excel([table])
    writers = {"great_tables": great, "markdown": markdown, "html": html_block, "latex": latex, "csv": comma_separated}
    return writers[name](table)


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown, its title above and its notes below."""
    head = [marked(column.title) for column in table.columns]
    rules = ["---:" if column.is_number else ":---" for column in table.columns]
    lines = [head, rules, *(list(map(marked, row)) for row in table.texts())]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n".join(f"- {marked(note)}" for note in table.notes)
    return f"**{marked(table.title)}**\n\n{marked(table.subtitle)}\n\n{rows}\n\n{notes}\n"


def marked(text: str) -> str:
    """Text for Markdown, of which no letter is read as more."""
    return MARKDOWN.sub(r"\\\1", harmless(text))


def html_block(table: Table) -> str:
    """A block for a page: the table with its own style, for light pages and dark ones."""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    name = f"dpframe-{table.name}"
    return (
        f'<div id="{name}" class="dpframe"><style>{_style(f"#{name}")}</style>{html_table(table)}'
        f'<ul class="notes">{notes}</ul></div>\n'
    )


def html_table(table: Table, rows: int | None = None, *, titled: bool = True) -> str:
    """The table alone, at most so many rows of it: cells that name a row are its heads; every text is escaped."""
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
    """A table environment, for the packages booktabs and caption."""
    return str(_great(table).as_latex())


def comma_separated(table: Table) -> str:
    """Numbers with points for decimals, below lines that begin with # and say where they come from.

    Text that a spreadsheet would read as a formula is quoted.
    """
    written = io.StringIO()
    for line in (table.title, table.subtitle, *table.notes):
        written.write(f"# {no_formulas(harmless(line))}\n")
    writer = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([_cell(column.title) for column in table.columns])
    writer.writerows(zip(*([_cell(value, column) for value in column.cells] for column in table.columns), strict=True))
    return written.getvalue()


def _cell(value: Any, column: Column | None = None) -> Any:
    """A cell as CSV has it: whole keys and finite numbers are numbers, all else is text."""
    if isinstance(value, str):
        return no_formula(harmless(value))
    if column is None or not column.is_number:
        return value
    if value is None or not math.isfinite(value):
        return "" if value is None or value != value else str(value)
    return value if column.decimals is None else Decimal(f"{value:.{max(column.decimals, 0)}f}")


def great(table: Table) -> Any:
    """A table of great-tables, with the colors of charts, on dark pages too."""
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
    inner = f"#{made._options.table_id.value} .gt_table"  # GT's own styles begin so
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
    names = [f"column{number}" for number in range(len(table.columns))]  # a name may be a pattern to great-tables
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
    """Numbers as they are, without forms; what names rows as text, for it may be of several kinds."""
    return column.cells if column.is_number and column.forms is None else table.written(column)


def _kind(column: Column) -> str:
    return ' class="n"' if column.is_number else ""


def _style(place: str) -> str:
    """The look of one table in a page of others, which may be light where it is read in dark mode: it has its own."""
    rules = " ".join(f"{place} {rule}" for rule in TABLE_RULES)
    dark = f"@media screen and (prefers-color-scheme: dark) {{{place} {{{variables(dark=True)}}}}}"
    own = "background:var(--page);color:var(--ink);padding:.5em .8em"
    return f"{place} {{{variables()}{own}}} {rules} {dark}"


def variables(*, dark: bool = False) -> str:
    """The colors of a page as its variables."""
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
