"""``dpframe ledger export``: every charge as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dpframe.cli.ledger_words import File
from dpframe.cli.screen import Screen
from dpframe.errors import InvalidArgument
from dpframe.errors.words import spreadsheet
from dpframe.frames import build
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.statement import COLUMNS


class Format(StrEnum):
    """The formats of the table."""

    csv = "csv"
    json = "json"
    parquet = "parquet"


def export(
    file: File,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; else it is printed.")
    ] = None,
    format: Annotated[Format | None, typer.Option(help="By default as the output's name ends, or csv.")] = None,
) -> None:
    """Write every charge, raised limit and recovery, one row each."""
    kind = format.value if format else (output or "csv").rpartition(".")[2]
    if kind not in set(Format):
        raise InvalidArgument(f"output must end in .csv, .json or .parquet, not {output!r}. Or say --format.")
    if kind == Format.parquet and output is None:
        raise InvalidArgument("output must be named for a Parquet file. Write -o charges.parquet.")
    frame = Ledger.open(file).to_frame()
    if kind == Format.csv:
        rows = [{name: spreadsheet(value) for name, value in row.items()} for row in build.rows(frame)]
        frame = build.of_rows(rows, "polars", COLUMNS)
    written = getattr(frame, f"write_{kind}")(*([output] if output else []))
    if output is None:
        Screen().say(written.rstrip("\n"))
