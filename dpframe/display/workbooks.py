"""Tables as workbooks of Excel, by XlsxWriter: an extra, imported when one is written."""

from __future__ import annotations

import io
import math
from typing import Any

from dpframe.display.result_tables import Column, Table
from dpframe.errors import InvalidArgument

NEEDS_EXCEL = "workbooks need XlsxWriter: pip install 'dpframe[tables]'"
MOST_ROWS = 1_000_000  # of a sheet, with room for the words around them
HEAD = 3  # the row of the titles of columns, below the title and the subtitle


def excel(table: Table) -> bytes:
    """A workbook of one sheet: numbers are numbers, and text is text, also where it reads as a formula or an address.

    The bytes of the file.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise ImportError(NEEDS_EXCEL) from None
    rows = len(table.columns[0].cells)
    if rows > MOST_ROWS:
        raise InvalidArgument(
            f"format must not be 'excel' for {rows:,} rows: a sheet has {MOST_ROWS:,}. Write \"csv\"."
        )
    written = io.BytesIO()
    book = xlsxwriter.Workbook(written, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    sheet = book.add_worksheet("Result")
    bold, faint = book.add_format({"bold": True}), book.add_format({"font_color": "#595959"})
    sheet.write_string(0, 0, table.title, bold)
    sheet.write_string(1, 0, table.subtitle, faint)
    for place, column in enumerate(table.columns):
        head = {"bold": True, "bottom": 1, "align": "right" if column.is_number else "left"}
        sheet.write_string(HEAD, place, column.title, book.add_format(head))
        _write_cells(sheet, place, column, book.add_format({"num_format": _pattern(column)}))
        sheet.set_column(place, place, max(9, min(40, len(column.title) + 2)))
    for line, note in enumerate(table.notes):
        sheet.write_string(HEAD + rows + 2 + line, 0, note, faint)
    sheet.freeze_panes(HEAD + 1, 0)
    book.close()
    return written.getvalue()


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
