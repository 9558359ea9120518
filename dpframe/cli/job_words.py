"""The common part of the commands on jobs: their arguments, and the job that is read with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from dpframe.errors import DpframeError
from dpframe.jobs import job_file
from dpframe.jobs.job import Job

File = Annotated[str, typer.Argument(metavar="JOB", help="The job file, such as release.toml.")]
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
        raise type(error)(job.variables.hidden(str(error))) from None
