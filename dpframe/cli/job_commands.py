"""The commands on jobs: ``dpframe run``, ``dpframe preview`` and ``dpframe ledger create``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.status import Status

from dpframe.cli.ledger_commands import say_understated
from dpframe.cli.screen import Screen, console
from dpframe.display.pages import number, text_table
from dpframe.errors import DpframeError, reworded
from dpframe.jobs import job_file, running
from dpframe.jobs.job import Job
from dpframe.jobs.running import no_ledger, planned
from dpframe.ledger.address import Address
from dpframe.planning.plan import Plan

File = Annotated[str, typer.Argument(metavar="JOB", help="The job file, such as release.toml.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A value for ${NAME} in the job; else the environment has it."),
]


@contextmanager
def opened(file: str, values: list[str] | None) -> Iterator[Job]:
    """The job; no refusal shows what the environment holds for its variables."""
    job = job_file.read(file, values or [])  # which hides them by itself
    try:
        yield job
    except DpframeError as error:
        raise reworded(error, job.variables.hidden(str(error))) from None


def run(
    file: File,
    values: Values = None,
    quiet: Quiet = False,
) -> None:
    """Make the releases of a job and write its outputs.

    All releases are planned first: if they do not fit into the ledger together, nothing is charged.

    A job that is run again on the same snapshot costs nothing and writes the same numbers.
    """
    screen = Screen(quiet)
    with opened(file, values) as job:
        if not screen.is_live:
            trail = running.run(job, screen.note)
        else:
            with Status(f"running {job.file.name}", console=console(stderr=True)):
                trail = running.run(job, screen.note)
    if trail.remaining is not None:
        screen.note(f"left in the ledger: epsilon {trail.remaining['epsilon']:g}", "green")


def preview(
    file: File,
    values: Values = None,
    details: Annotated[bool, typer.Option("--details", help="Show the whole plan of each release.")] = False,
) -> None:
    """Show the cost and the error of each release. No row is read, and nothing is charged.

    A job without a ledger is planned as if its ledger were new.

    The exit code is that of a run: 3 if the releases do not fit into the ledger together.
    """
    screen = Screen()
    with opened(file, values) as job:
        hidden = job.variables.hidden

        def show(plans: Mapping[str, Plan]) -> None:
            rows = [tuple(map(hidden, _row(*one))) for one in plans.items()]
            screen.say(text_table(("release", "asks", "costs", "95% error"), rows))
            for plan in plans.values() if details else ():
                screen.say(hidden(f"\n{plan}"))

        whole = planned(job, charge=False, seen=show)
        screen.say("")
        if not whole.has_ledger:
            screen.say(hidden(no_ledger(job)))
    stored = [job.variables.written(label) for label, known in whole.foresight.stored.items() if known]
    if stored:
        screen.say(f"in the ledger already, at no cost: {', '.join(stored)}")
    say_understated(whole.ledger, screen)
    screen.say(f"all of them fit; after the run {whole.foresight.left} would be left", "green")


def _row(label: str, plan: Plan) -> tuple[str, str, str, str]:
    errors = ", ".join(f"{plan.named(name)} +-{number(error)}" for name, error in plan.error.items())
    return label, str(plan.query), str(plan.cost), errors


def create(
    file: File,
    values: Values = None,
    quiet: Quiet = False,
) -> None:
    """Make the ledger of a job, with its whole budget; exit code 1 if there is one. The audit trail says so."""
    with opened(file, values) as job:
        ledger = running.create(job)
        place = job.variables.hidden(Address.of(job.ledger.place).shown)
    Screen(quiet).note(f"made the ledger at {place}, with {ledger.limit} to spend", "green")
