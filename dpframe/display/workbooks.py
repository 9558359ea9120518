"""Tables as workbooks of Excel, by XlsxWriter: an extra, imported when one is written."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import Any

from dpframe.display.result_tables import Column, Table
from dpframe.errors import InvalidArgument, harmless

NEEDS_EXCEL = "workbooks need XlsxWriter: pip install 'dpframe[tables]'"
MOST_ROWS = 1_000_000  # of a sheet, with room for the words around them
HEAD = 3  # the row of the titles of columns, below the title and the subtitle
RESULT, NOTES = "Result", "Notes"  # names of sheets
LONGEST = 31  # characters of the name of a sheet
FORBIDDEN = re.compile(r"[\[\]:*?/\\]")  # in the name of a sheet
WIDE = 110  # characters of the column of notes


def excel(tables: Sequence[Table], names: Sequence[str] = ()) -> bytes:
    """A workbook: a sheet for each table, and one of notes. Numbers are numbers, and text is never a formula or a link.

    `names` are those of the sheets, else the titles of the tables. The bytes of the file.
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
    """Names that a workbook can have, and that differ in more than the case of their letters."""
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
        elif value is not None and value == value:  # infinite, or longer than the numbers of a sheet
            sheet.write_string(line, place, str(value))


def _pattern(column: Column) -> str:
    if not column.is_number or column.decimals is None:
        return "General"
    return "#,##0" + (f".{'0' * column.decimals}" if column.decimals > 0 else "")
