"""``dpframe ledger export``: every charge as a table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from dpframe.cli.ledger_words import File
from dpframe.cli.screen import Screen
from dpframe.errors import InvalidArgument
from dpframe.errors.words import harmless, no_formula
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
        frame = build.of_rows([_as_cells(row) for row in build.rows(frame)], "polars", COLUMNS)
    written = getattr(frame, f"write_{kind}")(*([output] if output else []))
    if output is None:
        Screen().say(written.rstrip("\n"))


def _as_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for a spreadsheet: text that reads as a formula there is quoted, and nothing breaks a line."""
    return {name: no_formula(harmless(value)) if isinstance(value, str) else value for name, value in row.items()}
