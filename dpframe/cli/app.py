"""The commands by name. A new one is a function, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any

import typer

from dpframe._version import VERSION
from dpframe.cli import job_commands, ledger_commands
from dpframe.cli.exit_codes import WORDS
from dpframe.cli.screen import Screen
from dpframe.reports.of_files import write_report

OF_LEDGERS: Mapping[str, Callable[..., Any]] = {
    "create": job_commands.create,
    "show": ledger_commands.show,
    "check": ledger_commands.check,
    "verify": ledger_commands.verify,
    "export": ledger_commands.export,
}
WHAT_IT_IS = "Differentially private releases from a job file, and the ledgers that they are charged to."
EXIT_CODES = f"Exit codes: {', '.join(f'{code} {words}' for code, words in WORDS.items())}."


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
    """Write one HTML file of released results, with tables, charts, margins of error and costs; it fetches nothing."""
    write_report(results or [], output, ledger=ledger, title=title, charts=charts)
    Screen(quiet).note(f"wrote {output}", "green")


COMMANDS: Mapping[str, Callable[..., Any]] = {
    "run": job_commands.run,
    "preview": job_commands.preview,
    "report": report,
}


@cache
def application() -> typer.Typer:
    """The whole command line."""
    app = _group("dpframe", WHAT_IT_IS, COMMANDS, epilog=EXIT_CODES)
    app.callback()(_options)
    app.add_typer(_group("ledger", "Make the ledger of a job, or look at one. Nothing is ever charged.", OF_LEDGERS))
    return app


def _group(
    name: str, help: str, commands: Mapping[str, Callable[..., Any]], *, epilog: str | None = None
) -> typer.Typer:
    group = typer.Typer(
        name=name,
        help=help,
        epilog=epilog,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,  # they show local variables, which may be rows
        pretty_exceptions_show_locals=False,
    )
    for word, command in commands.items():
        group.command(word)(command)
    return group


def _version(asked: bool) -> None:
    if asked:
        Screen().say(f"dpframe {VERSION}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options that come before a command."""
