"""``dpframe run``: make the releases of a job, and write them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.status import Status

from dpframe.cli.job_words import File, Values, opened
from dpframe.cli.screen import Screen, console
from dpframe.jobs.running import run as run_job


def run(
    file: File,
    values: Values = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Make the releases of a job and write its outputs.

    All releases are priced first: if they do not fit into the ledger together, nothing is charged.

    A job that is run again on the same snapshot costs nothing and writes the same numbers.
    """
    screen = Screen(quiet)
    with opened(file, values) as job:
        if not screen.is_live:
            trail = run_job(job, screen.note)
        else:
            with Status(f"running {job.file.name}", console=console(stderr=True)):
                trail = run_job(job, screen.note)
    if trail.remaining is not None:
        screen.note(f"left in the ledger: epsilon {trail.remaining['epsilon']:g}", "green")
