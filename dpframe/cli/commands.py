"""The commands on jobs, ledgers and reports, their screen, and the application. A new one is a function and a line.

Answers go to stdout and progress to stderr, with colors only in a terminal (unless NO_COLOR is set). Control characters
and markup have no effect, since texts come from ledgers, paths and job files.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from io import BytesIO
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from dpframe._version import VERSION
from dpframe.accessor import released
from dpframe.cli.exit_codes import TOO_LITTLE, WORDS
from dpframe.display.charts import NEEDS_PLOT
from dpframe.display.pages import number, text_table
from dpframe.errors import (
    DpframeError,
    InvalidArgument,
    LedgerError,
    MissingArgument,
    WeakPrivacyWarning,
    harmless,
    how_many,
    reworded,
    spreadsheet,
)
from dpframe.exact import exact_epsilon
from dpframe.files import checked_output, write_whole
from dpframe.frames import build
from dpframe.frames.build import read_parquet
from dpframe.jobs import job_file, running
from dpframe.jobs.job import Job, words_of
from dpframe.jobs.output_formats import can_draw
from dpframe.jobs.running import no_ledger, planned
from dpframe.ledger.address import MAKE, Address
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.sql import refuse_gone
from dpframe.ledger.statement import COLUMNS
from dpframe.planning.plan import Plan
from dpframe.privacy import PrivacyLoss
from dpframe.reports import write_report


@dataclass(frozen=True)
class Screen:
    """The two output streams of a command; a quiet screen prints no progress, but still errors."""

    quiet: bool = False

    def say(self, words: str, style: str = "") -> None:
        """Print an answer to stdout."""
        _print(words, style, console())

    def note(self, words: str, style: str = "") -> None:
        """Print progress to stderr; if that fails, the work goes on."""
        if not self.quiet:
            with suppress(OSError, SystemExit):  # raised if the reader of a pipe is gone
                _print(words, style, console(stderr=True))

    @property
    def is_live(self) -> bool:
        """True if stderr is a terminal and the screen is not quiet, so that a status may be drawn."""
        return not self.quiet and console(stderr=True).is_terminal


def console(*, stderr: bool = False) -> Console:
    """Return a console on the current stream that interprets no markup and adds no line breaks."""
    return Console(
        file=sys.stderr if stderr else sys.stdout, markup=False, highlight=False, emoji=False, soft_wrap=True
    )


def complain(words: str) -> None:
    """Print an error to stderr."""
    line = Text("dpframe: ", style="bold red")
    line.append(_harmless(words), style="not bold default")
    console(stderr=True).print(line)


def _print(words: str, style: str, stream: Console) -> None:
    stream.print(Text(_harmless(words), style=style))


def _harmless(words: str) -> str:
    return "\n".join(map(harmless, words.split("\n")))


VARIABLE = "DPFRAME_LEDGER"
LedgerFile = Annotated[
    str, typer.Argument(metavar="LEDGER", envvar=VARIABLE, help="The ledger: a file, or the URL of a database.")
]
HeadPlace = Annotated[
    str | None, typer.Option("--head", metavar="HEAD", help="Where else its head is kept: a file or a URL.")
]


def ledger_at(file: str, head: str | None) -> Ledger:
    """Return the ledger, compared with its head elsewhere if that is named; nothing is written to either."""
    refuse_gone(file, head)
    try:
        ledger = Ledger.open(file)
    except LedgerError as error:
        raise reworded(error, str(error).replace(MAKE, "dpframe ledger create JOB")) from None
    if head is None:
        return ledger
    if ledger._terms is None or not ledger._terms.has_head:  # opening it with a head would add one
        raise InvalidArgument("head must be left out: this ledger keeps its head nowhere else. Drop --head.")
    return Ledger.open(file, head=head)


def _files(*places: str | None) -> list[str]:
    """Return the places of a ledger and its head that are files."""
    return [file for place in places if place and (file := Address.of(place).file)]


def facts_of(ledger: Ledger) -> dict[str, Any]:
    """Return the facts of a durable ledger, as plain JSON values."""
    receipt, unit, limit = ledger.verify(), ledger.unit, ledger.limit
    assert unit is not None  # only the default ledger, in memory, has neither
    assert limit is not None
    facts = {
        "dataset": ledger.dataset,
        "unit": asdict(unit),
        "accounting": ledger.accounting.name,
        "limit": loss_facts(limit),
        "spent": loss_facts(ledger.spent),
        "remaining": loss_facts(ledger.remaining),
        "entries": receipt["entry"],
        "head": receipt["head"],
    }
    return facts | ({"understated": receipt["understated"]} if "understated" in receipt else {})


def say_understated(ledger: Ledger, screen: Screen) -> None:
    """Print a warning if entries of dpframe 0.2 understate their cost."""
    if (words := ledger._understated) is not None:
        screen.say(words, "yellow")


def loss_facts(loss: PrivacyLoss) -> dict[str, float]:
    """Return a loss as plain JSON values."""
    return {"epsilon": loss.epsilon, "delta": loss.delta}


def show(
    file: LedgerFile,
    head: HeadPlace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON, for programs.")] = False,
) -> None:
    """Show what was spent, what is left, and the last charges."""
    ledger, screen = ledger_at(file, head), Screen()
    if as_json:
        screen.say(json.dumps(facts_of(ledger)))
        return
    for line in str(ledger).split("\n"):
        screen.say(line, "bold" if line.startswith(("Ledger", "last charges")) else _of_bar(line))


def _of_bar(line: str) -> str:
    """Return the color of the bar, by the spent part of the limit."""
    if not line.startswith("  ["):
        return ""
    spent = line.count("#") / max(1, line.count("#") + line.count("-"))
    return "green" if spent < 0.75 else "yellow" if spent < 1 else "red"


def check(
    file: LedgerFile,
    min_remaining: Annotated[
        float, typer.Option("--min-remaining", metavar="EPSILON", help="The epsilon that must be left.")
    ],
    head: HeadPlace = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    """Check whether an epsilon is left: exit code 0 if it is, 3 if not.

    The epsilon that is left is the most that one more release may cost. The command also verifies the chain.
    """
    exact_epsilon(min_remaining, "--min-remaining")
    ledger, screen = ledger_at(file, head), Screen(quiet)
    remaining = ledger.remaining
    enough = remaining.epsilon >= min_remaining
    if not quiet:
        digits = not enough and f"{min_remaining:g}" == f"{remaining.epsilon:g}"  # six digits would be the same
        left, asked = (remaining.digits, repr(min_remaining)) if digits else (str(remaining), f"{min_remaining:g}")
        words = f"{'enough' if enough else 'too little'}: {left} is left, and epsilon {asked} is asked for"
        screen.say(words, "green" if enough else "red")
        say_understated(ledger, screen)
    if not enough:
        raise typer.Exit(TOO_LITTLE)


class Format(StrEnum):
    """The formats of the table."""

    csv = "csv"
    json = "json"
    parquet = "parquet"


def export(
    file: LedgerFile,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; else it is printed.")
    ] = None,
    format: Annotated[Format | None, typer.Option(help="By default as the output's name ends, or csv.")] = None,
    head: HeadPlace = None,
) -> None:
    """Write every charge, raised limit and recovery, one row each."""
    kind = format.value if format else (output or "csv").rpartition(".")[2].lower()
    if kind not in set(Format):
        raise InvalidArgument(f"output must end in .csv, .json or .parquet, not {output!r}. Or say --format.")
    if kind == Format.parquet and output is None:
        raise InvalidArgument("output must be named for a Parquet file. Write -o charges.parquet.")
    if output is not None:
        checked_output("output", output, *_files(file, head))
    frame = ledger_at(file, head).to_frame()
    if kind == Format.csv:
        rows = [{name: spreadsheet(value) for name, value in row.items()} for row in build.rows(frame)]
        frame = build.of_rows(rows, "polars", COLUMNS)
    write = getattr(frame, f"write_{kind}")
    if output is None:
        Screen().say(write().rstrip("\n"))
    else:
        write(kept := BytesIO())  # in memory first, so that only the disk can fail after it
        write_whole("output", output, lambda part: part.write_bytes(kept.getvalue()))


def verify(
    file: LedgerFile,
    releases: Annotated[
        list[str] | None, typer.Argument(metavar="RELEASES", help="Parquet files of releases that it must know.")
    ] = None,
    head: HeadPlace = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    """Verify the chain; exit code 1 if the ledger was changed, is an older copy, or does not know a release.

    Without --head, a database that was restored from an older copy looks intact.
    """
    if VARIABLE in os.environ and file.endswith(".parquet"):  # a release, since the ledger was left out
        file, releases = os.environ[VARIABLE], [file, *(releases or [])]
    ledger = ledger_at(file, head)
    named = [(name, release) for name in releases or [] for release in _releases_in(name)]
    receipt = ledger.verify(*(release for _, release in named))
    if quiet:
        return
    screen, proofs = Screen(), receipt.get("releases", [])
    known = f", and it knows {len(proofs)} of {len(named)} releases" if proofs else ""
    entries = how_many(receipt["entry"], "entry", "entries")
    screen.say(f"intact: {entries}, spent {ledger.spent} of {ledger.limit}{known}", "green")
    if "without_nonce" in receipt:
        screen.say(f"the entries up to number {receipt['without_nonce']} are of dpframe 0.1 and have no random bytes")
    say_understated(ledger, screen)
    for (name, _), proof in zip(named, proofs, strict=True):
        screen.say(f"{name!r} is entry {proof['entry']}: record {proof['record']}, numbers {proof['numbers']}")
    screen.say(f"head {receipt['head']}")
    if head is None and ledger._terms is not None and ledger._terms.has_head:
        screen.say("not compared with the head kept elsewhere: an older copy looks the same. Add --head", "yellow")


def _releases_in(file: str) -> list[Any]:
    """Return the releases in a file, several if they were joined."""
    releases = released(read_parquet(file)).parts
    if any("ledger" not in released(release).provenance for release in releases):
        raise InvalidArgument(f"releases must be of a ledger in a file, and {file!r} is of one in memory.")
    return releases


JobFile = Annotated[str, typer.Argument(metavar="JOB", help="The job file, such as release.toml.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A value for ${NAME} in the job; else the environment has it."),
]


@contextmanager
def opened(file: str, values: list[str] | None, screen: Screen) -> Iterator[Job]:
    """Open the job; refusals and notes hide the values that its variables take from the environment."""
    job = job_file.read(file, values or [])  # it hides them itself
    try:
        with _noted_warnings(lambda words: screen.note(job.variables.hidden(words), "yellow")):
            yield job
    except DpframeError as error:
        raise reworded(error, words_of(error, job.variables)) from None


@contextmanager
def _noted_warnings(note: Callable[[str], None]) -> Iterator[None]:
    """Note dpframe's privacy warnings without source lines, even if a filter turns warnings into errors."""

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, WeakPrivacyWarning):
            note(str(message))
        else:
            others(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", WeakPrivacyWarning)
        others, warnings.showwarning = warnings.showwarning, show
        yield


def run(
    file: JobFile,
    values: Values = None,
    quiet: Quiet = False,
) -> None:
    """Make the releases of a job and write its outputs.

    All releases are planned first: if they do not fit into the ledger together, nothing is charged.

    A job that is run again on the same snapshot costs nothing and writes the same numbers.
    """
    screen = Screen(quiet)
    with opened(file, values, screen) as job:
        if not screen.is_live:
            trail = running.run(job, screen.note)
        else:
            with Status(f"running {job.file.name}", console=console(stderr=True)):
                trail = running.run(job, screen.note)
    if trail.remaining is not None:
        screen.note(f"left in the ledger: epsilon {trail.remaining['epsilon']:g}", "green")


def preview(
    file: JobFile,
    values: Values = None,
    details: Annotated[bool, typer.Option("--details", help="Show the whole plan of each release.")] = False,
) -> None:
    """Show the cost and the error of each release. No row is read, and nothing is charged.

    A job without a ledger is planned as if its ledger were new.

    The exit code is that of a run: 3 if the releases do not fit into the ledger together, 1 if the ledger is refused.
    """
    screen = Screen()
    with opened(file, values, screen) as job:
        hidden = job.variables.hidden

        def show(plans: Mapping[str, Plan], stored: Mapping[str, PrivacyLoss]) -> None:
            rows = [tuple(map(hidden, _row(label, plan, stored.get(label)))) for label, plan in plans.items()]
            screen.say(text_table(("release", "asks", "costs", "95% error"), rows))
            for label, plan in plans.items() if details else ():
                if label not in stored:
                    screen.say(hidden(f"\n{plan}"))

        whole = planned(job, charge=False, seen=show)
        screen.say("")
        if not whole.has_ledger:
            screen.say(hidden(no_ledger(job)))
    stored = whole.foresight.stored
    if any(stored.values()):
        labels = [job.variables.written(label) for label, known in stored.items() if known]
        screen.say(f"in the ledger already, at no cost: {', '.join(labels)}")
    shown = {output.label for output in job.outputs} | set(() if job.report is None else job.report.labels)
    for is_stored, words in ((False, "a run would charge it, and store it in"), (True, "it stays in")):
        asked = (one.label for one in job.questions if one.label not in shown)
        if labels := [job.variables.written(label) for label in asked if stored[label] is is_stored]:
            screen.say(f"no [[output]] writes {', '.join(labels)}: {words} the ledger alone", "yellow")
    say_understated(whole.ledger, screen)
    screen.say(f"all of them fit; after the run {whole.foresight.left} would be left", "green")


def _row(label: str, plan: Plan, stored: PrivacyLoss | None) -> tuple[str, str, str, str]:
    """Return a line of the preview; a stored release keeps its cost and errors, whatever a new one would have."""
    if stored is not None:
        return label, str(plan.query), str(stored), "as released"
    errors = ", ".join(f"{plan.named(name)} +-{number(error)}" for name, error in plan.error.items())
    return label, str(plan.query), str(plan.cost), errors


def create(
    file: JobFile,
    values: Values = None,
    quiet: Quiet = False,
) -> None:
    """Create the ledger of a job with its whole budget; exit code 1 if it exists. The audit trail records this."""
    screen = Screen(quiet)
    with opened(file, values, screen) as job:
        ledger = running.create(job)
        place = job.variables.hidden(Address.of(job.ledger.place).shown)
    screen.note(f"made the ledger at {place}, with {ledger.limit} to spend", "green")


OF_LEDGERS: Mapping[str, Callable[..., Any]] = {
    "create": create,
    "show": show,
    "check": check,
    "verify": verify,
    "export": export,
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
    head: HeadPlace = None,
    title: Annotated[str | None, typer.Option("--title", help="The heading of the page.")] = None,
    charts: Annotated[bool, typer.Option("--charts/--no-charts", help="Whether it has charts.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write one HTML file of released results, with tables, charts, margins of error and costs; it fetches nothing."""
    if charts and not can_draw():
        raise ImportError(f"{NEEDS_PLOT}. Or write --no-charts.")
    if head is not None and ledger is None:
        raise InvalidArgument("head must be left out where no ledger is named. Write --ledger, or drop --head.")
    if not results and ledger is None:
        raise MissingArgument("RESULTS must name at least one file, or --ledger a ledger. Name one.")
    checked_output("output", output, *_files(ledger, head))
    book = None if ledger is None else ledger_at(ledger, head)
    write_report(results or [], output, ledger=book, title=title, charts=charts)
    Screen(quiet).note(f"wrote {output}", "green")


COMMANDS: Mapping[str, Callable[..., Any]] = {
    "run": run,
    "preview": preview,
    "report": report,
}


@cache
def application() -> typer.Typer:
    """Return the whole command line."""
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
        pretty_exceptions_enable=False,  # they show local variables, which may hold rows
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
