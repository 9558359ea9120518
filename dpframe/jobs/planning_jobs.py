"""A job before it runs: its table and ledger opened, each release priced, and whether all of them fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpframe.accessor import of
from dpframe.errors import InvalidArgument, SourceFailed
from dpframe.frames import scans
from dpframe.jobs.arguments import asked
from dpframe.jobs.job import Job
from dpframe.jobs.output_formats import FORMATS
from dpframe.jobs.toml_tables import placed
from dpframe.ledger.ledger import Foresight, Ledger
from dpframe.ledger.presence import is_there
from dpframe.planning.plan import Plan
from dpframe.release.foreseeing import foreseen


@dataclass(frozen=True)
class PlannedJob:
    """A job with its private frame, its ledger, the plan of each release, and what the ledger says of them all."""

    job: Job
    dp: Any
    ledger: Ledger
    plans: Mapping[str, Plan]
    foresight: Foresight


def planned(job: Job, *, charge: bool, seen: Callable[[Mapping[str, Plan]], None] | None = None) -> PlannedJob:
    """Plan a job; no row is read and nothing is spent. A ledger that is not there is made only to `charge` it.

    `seen` is told the plans before it is known whether they fit.
    """
    for output in job.outputs:
        FORMATS[output.format].check_installed()
    dp = of(opened(job), like="polars")
    with placed(job.ledger.where):
        ledger = _ledger(job, charge=charge)
    plans = {question.label: _plan(asked(question, dp.preview, ledger), question.where) for question in job.questions}
    if seen is not None:
        seen(plans)
    return PlannedJob(job, dp, ledger, plans, foreseen(plans, ledger))


def opened(job: Job) -> Any:
    """The table of a job. An engine's own words are withheld: they may hold a value, or a password."""
    if job.scan.is_missing:
        raise SourceFailed(f"{job.source_where}: no file is at {job.scan.path!r}. Nothing was charged. Look at path.")
    try:
        with placed(job.source_where):
            return scans.opened(job.engine, job.scan)
    except InvalidArgument:  # dpframe's own words, of names alone
        raise
    except ImportError as error:
        words = f"engine = {job.engine!r} needs {error.name}: pip install 'dpframe[{job.engine}]'"
        raise ImportError(words) from None
    except Exception as error:
        raise SourceFailed(
            f"{job.source_where}: {job.engine} cannot open the table ({type(error).__name__}; its message is withheld, "
            "since it may hold values). Nothing was charged. Open it by hand to see the cause."
        ) from None


def _ledger(job: Job, *, charge: bool) -> Ledger:
    there = charge or is_there(job.ledger.place)
    return Ledger(**job.ledger.terms, unit=job.ledger.unit, path=job.ledger.place if there else None)


def _plan(plan: Any, where: str) -> Plan:
    if not isinstance(plan, Plan):
        raise InvalidArgument(
            f"{where}: epsilon must be given (or share, or within): the price of this release. Write for instance "
            "epsilon = 0.1."
        )
    return plan
