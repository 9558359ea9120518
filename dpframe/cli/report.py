"""``dpframe report``: released results, and the ledger that paid for them, as one HTML file."""

from __future__ import annotations

from typing import Annotated

import typer

from dpframe.cli.screen import Screen
from dpframe.reports.of_files import write_report


def report(
    results: Annotated[
        list[str] | None, typer.Argument(metavar="RESULTS", help="Parquet files that .dp.write_parquet wrote.")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The HTML file to write.")] = "report.html",
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", help="The ledger of the results: verified to have charged for each, and shown."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="The heading of the page.")] = None,
    charts: Annotated[bool, typer.Option("--charts/--no-charts", help="Whether it has charts.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write one HTML file of released results, with tables, charts, errors, prices; it fetches nothing."""
    write_report(results or [], output, ledger=ledger, title=title, charts=charts)
    Screen(quiet).note(f"wrote {output}", "green")
