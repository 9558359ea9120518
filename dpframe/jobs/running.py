"""A job, run: all of it is planned first, then each release is charged, made and written, and a line tells of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from dpframe.accessor import released
from dpframe.display.check_words import check_lines
from dpframe.errors import OutputFailed
from dpframe.jobs.arguments import asked
from dpframe.jobs.audit_trail import Trail
from dpframe.jobs.job import Job, Output, Question, Report
from dpframe.jobs.output_formats import FORMATS, can_draw
from dpframe.jobs.planning_jobs import PlannedJob, made, planned
from dpframe.jobs.whole_files import write_whole
from dpframe.ledger.ledger import Ledger


def run(job: Job, told: Callable[[str], None] = lambda words: None) -> Trail:
    """Run a job; `told` hears what is done. Nothing is charged unless every release fits.

    Raises
    ------
    LedgerError
        If its ledger is not there (`create` makes it), or is refused. Nothing was read.
    BudgetExceeded
        If the releases do not fit into the ledger together. Nothing was charged.
    SourceFailed
        If the table cannot be opened. Nothing was charged.
    OutputFailed
        If a file cannot be written. A second run writes it, at no cost.
    ReleaseFailed
        If the engine failed on the rows. The charge stands.
    """
    trail = Trail(job)
    trail.begin()
    try:
        whole = planned(job, charge=True)
        trail.check_ledger(whole.ledger)
        frames = {question.label: _release(whole, question, trail, told) for question in job.questions}
        if job.report is not None:
            write_whole(job.report.path, partial(_report, job.report, whole.ledger, frames))
            trail.wrote(job.report)
            told(f"wrote {PurePath(job.report.written).name}")
        trail.remaining = _loss(whole)
    except BaseException as error:
        with suppress(OutputFailed):  # the first error is the one to tell
            trail.end(error)
        raise
    trail.end()
    return trail


def create(job: Job) -> Ledger:
    """Make the ledger of a job, and say so in its audit trail; LedgerError where one is there already."""
    trail = Trail(job)
    trail.begin()
    ledger = made(job)
    trail.made(ledger)
    trail.end()
    return ledger


def _release(whole: PlannedJob, question: Question, trail: Trail, told: Callable[[str], None]) -> Any:
    """Make one release, or take it from the ledger, and write its files; the frame."""
    frame = asked(question, whole.dp, whole.ledger)
    provenance = released(frame).provenance
    entry = provenance["ledger"]["entry"]
    charged = entry > whole.foresight.last  # else the ledger had the answer before this run
    trail.released(provenance, charged=charged)
    cost = f"charged {whole.plans[question.label].cost}" if charged else "replayed from the ledger, at no cost"
    written = whole.job.variables.written
    told(f"{written(question.label)} of {written(question.snapshot)}: {cost} (entry {entry})")
    for line in check_lines(provenance):  # which a table of numbers alone, such as CSV, does not hold
        told(f"{written(question.label)}: {whole.job.variables.hidden(line)}")
    for output in whole.job.outputs:
        if output.label == question.label:
            _write(output, frame)
            trail.wrote(output)
            told(f"wrote {PurePath(output.written).name}")
    return frame


def _report(report: Report, ledger: Ledger, frames: Mapping[str, Any], path: Path) -> None:
    shown = [frames[label] for label in report.labels]
    ledger.report(path, *shown, title=report.title, charts=can_draw(), **report.words)


def _write(output: Output, frame: Any) -> None:
    write_whole(output.path, partial(FORMATS[output.format].write, frame))


def _loss(whole: PlannedJob) -> dict[str, float]:
    remaining = whole.ledger.remaining
    return {"epsilon": remaining.epsilon, "delta": remaining.delta}
