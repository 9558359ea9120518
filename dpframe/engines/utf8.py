"""Texts that are none: Arrow lets a column of strings hold any bytes, and Polars takes them over unseen.

They are told apart byte by byte like all strings, so that nothing is wrong with them until somebody writes them down.
"""

from __future__ import annotations

import polars as pl

NEXT = "[89ab][0-9a-f]"  # a byte that goes on with a character
UTF8 = (  # well-formed UTF-8 in digits: the table of RFC 3629, section 4
    "^(?:[0-7][0-9a-f]"
    f"|(?:c[2-9a-f]|d[0-9a-f]){NEXT}"
    f"|(?:e0[ab][0-9a-f]|e[1-9abcef]{NEXT}|ed[89][0-9a-f]){NEXT}"
    f"|(?:f0[9ab][0-9a-f]|f[1-3]{NEXT}|f48[0-9a-f]){NEXT}{NEXT}"
    ")*$"
)


def without_bytes(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The rows whose strings in these columns are text, or missing: the others have no name that could be shown."""
    for name in names:
        if table.schema[name] == pl.String and not _all_text(table[name]):
            digits = table[name].cast(pl.Binary).bin.encode("hex")
            table = table.filter(digits.str.contains(UTF8).fill_null(True))
    return table


def _all_text(column: pl.Series) -> bool:
    """True where all are: the quick way. It may be False where only bytes that stand for no row are none."""
    try:
        column.cast(pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:
        return False
    return True
