"""Running a job: open its table and ledger, plan each release, then charge, make and write each one.

All releases are planned before the first charge. Each run adds a line to the audit trail.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from dpframe._version import VERSION
from dpframe.accessor import of, released
from dpframe.display import layout
from dpframe.display.statements import check_lines
from dpframe.errors import (
    DpframeError,
    InvalidArgument,
    InvalidType,
    LedgerError,
    OutputFailed,
    ReleaseFailed,
    SourceFailed,
    checked_column_name,
    listed,
    reworded,
    shown,
    stands_in_the_way,
)
from dpframe.frames import scans
from dpframe.jobs.job import Job, Output, Question, Report, placed, words_of
from dpframe.jobs.job_file import asked
from dpframe.jobs.output_formats import FORMATS, append_line, can_draw, write_output
from dpframe.ledger.address import MAKE, Address
from dpframe.ledger.canonical import now
from dpframe.ledger.ledger import Foresight, Ledger, of_terms
from dpframe.ledger.sql import is_there, refuse_gone
from dpframe.planning.plan import Plan
from dpframe.privacy import PrivacyLoss
from dpframe.queries.query import has_numbers
from dpframe.release.together import foreseen

FORMAT = "dpframe.run/1"
Seen = Callable[[Mapping[str, Plan], Mapping[str, PrivacyLoss]], None]


@dataclass
class Trail:
    """The facts of one run, collected during the run."""

    job: Job
    started: str = field(default_factory=now)
    releases: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    remaining: dict[str, float] | None = None
    created: dict[str, Any] | None = None  # the facts of a new ledger, if the run only made it
    last: dict[str, Any] | None = None  # the newest entry of the ledger at the end; None if it cannot be read

    def begin(self) -> None:
        """Refuse an audit trail that cannot be written, before any charge."""
        if self.job.audit is not None:
            append_line(self.job.audit, b"")

    def check_ledger(self, ledger: Ledger) -> None:
        """Refuse a ledger without the newest entry in this job's lines of the audit trail."""
        place = self._newest()
        if place is not None and not ledger.has_place(*place):
            raise LedgerError(
                f"{self.job.ledger.where}: the ledger does not hold entry {place[0]} of the audit trail "
                f"{self.job.audit.name if self.job.audit else ''}: it is an older copy, or another ledger. "
                "Restore the newest copy, or read docs/operate/deployment.md."
            )

    def _newest(self) -> tuple[int, str] | None:
        """Return the newest entry in the lines of this job and ledger, with its hash; cut lines are skipped.

        Lines of dpframe 0.2 do not name the ledger. They count until a line names it.
        """
        lines = [facts for facts in self._lines() if facts.get("job") == self.job.file.name]
        named = [facts for facts in lines if "ledger" in facts]
        mine = [facts for facts in named if facts["ledger"] == self._ledger()] if named else lines
        places = []
        for facts in mine:
            releases = facts.get("releases")
            for one in [*(releases if isinstance(releases, list) else []), facts.get("last")]:
                if isinstance(one, dict) and type(one.get("entry")) is int and isinstance(one.get("head"), str):
                    places.append((one["entry"], one["head"]))
        return max(places, default=None)

    def _lines(self) -> list[dict[str, Any]]:
        if self.job.audit is None or stands_in_the_way(self.job.audit):  # a pipe or a device stores no lines
            return []
        try:
            content = self.job.audit.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OutputFailed(
                f"the audit trail {self.job.audit.name} cannot be read ({error.strerror}), and the ledger is held "
                "against it: nothing was charged. Let this user read it."
            ) from None
        return [facts for line in content.split(b"\n") if (facts := _facts_of(line)) is not None]

    def _ledger(self) -> str:
        """Return the ledger as the line names it: a file as in the job, a database without secrets."""
        address = Address.of(self.job.ledger.place)
        if address.file is not None:
            return self.job.variables.written(self.job.ledger.given)
        return self.job.variables.hidden(address.shown.strip("'"))

    def released(self, provenance: dict[str, Any], *, charged: bool) -> None:
        """Record a release; a replayed one cost nothing in this run."""
        facts = {"label": provenance["label"], "charged": charged, "cost": provenance["cost"], **provenance["ledger"]}
        written = self.job.variables.written
        self.releases.append({name: written(one) if isinstance(one, str) else one for name, one in facts.items()})

    def made(self, ledger: Ledger) -> None:
        """Record a new ledger with its first head."""
        assert ledger.limit is not None
        assert ledger.unit is not None
        assert ledger._terms is not None
        reserve = ledger._terms.limit.keys_delta
        written = self.job.variables.written
        dataset, unit = None if ledger.dataset is None else written(ledger.dataset), asdict(ledger.unit)
        if unit["column"] is not None:
            one = isinstance(unit["column"], str)
            unit["column"] = written(unit["column"]) if one else [*map(written, unit["column"])]
        self.created = {"dataset": dataset, "unit": unit, "accounting": ledger.accounting.name}
        limit = asdict(ledger.limit) | ({"keys_delta": float(reserve)} if reserve else {})
        self.created |= {"limit": limit, "head": ledger.verify()["head"]}

    def wrote(self, output: Any, digest: str) -> None:
        """Record a file with the hash of its content."""
        label = self.job.variables.written(output.label)
        self.outputs.append({"release": label, "path": output.written, "sha256": digest})

    def end(self, ledger: Ledger | None, error: BaseException | None = None) -> None:
        """Append the line with the newest entry, which also shows the charge of a release that failed."""
        with suppress(DpframeError):
            self.last = None if ledger is None else ledger.last_place()
        if self.job.audit is not None:
            append_line(self.job.audit, json.dumps(self.facts(error)).encode())

    def facts(self, error: BaseException | None) -> dict[str, Any]:
        """Return the line as plain values."""
        facts: dict[str, Any] = {"format": FORMAT, "started": self.started, "status": "failed" if error else "done"}
        facts |= {} if self.created is None else {"kind": "created", "created": self.created}
        facts |= {"job": self.job.file.name, "job_sha256": self.job.digest, "dpframe": VERSION}
        facts |= {
            "engine": self.job.engine,
            "ledger": self._ledger(),
            "releases": self.releases,
            "outputs": self.outputs,
        }
        facts |= {"remaining": self.remaining, "last": self.last}
        if error is not None:
            facts["error"] = {"kind": type(error).__name__, "words": self._words(error)}
        return facts

    def _words(self, error: BaseException) -> str:
        """Return the message of a dpframe error; other messages are left out, since they may hold anything."""
        if isinstance(error, KeyboardInterrupt):
            return "stopped"
        known = isinstance(error, (DpframeError, ImportError))
        return words_of(error, self.job.variables) if known else ""


def _facts_of(line: bytes) -> dict[str, Any] | None:
    """Return the facts in a line, or None if it is not a whole line of a run."""
    try:
        facts = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and facts.get("format") == FORMAT else None


@dataclass(frozen=True)
class PlannedJob:
    """A job with its private frame, its ledger, the plan of each release, and their effect on the ledger."""

    job: Job
    dp: Any
    ledger: Ledger
    plans: Mapping[str, Plan]
    foresight: Foresight
    has_ledger: bool


def planned(job: Job, *, charge: bool, seen: Seen | None = None) -> PlannedJob:
    """Plan a job without reading a row or spending anything. With `charge`, its ledger must exist.

    Without a ledger, releases are planned as for a new one. A ledger that exists must hold the newest entry in the
    audit trail. `seen` receives the plans, and what the stored releases have cost, before the check that they fit.
    """
    for output in job.outputs:
        FORMATS[output.format].check_installed()
    with _refused(job):
        has_ledger, ledger = _ledger(job, charge=charge)
    if has_ledger:
        Trail(job).check_ledger(ledger)
    dp = of(opened(job), like="polars")
    with _readable(job):
        plans = {one.label: _plan(asked(one, dp.preview, ledger), one.where) for one in job.questions}
    for output in job.outputs:
        _check_shown(output, plans[output.label])
    if job.report is not None:
        _check_report(job.report, plans)
    foresight = foreseen(plans, ledger) if seen is None else foreseen(plans, ledger, partial(seen, plans))
    return PlannedJob(job, dp, ledger, plans, foresight, has_ledger)


def _check_shown(output: Output, plan: Plan) -> None:
    """Refuse a format that cannot show a choice without numbers, before any charge."""
    if FORMATS[output.format].needs_numbers and not has_numbers(plan.query):
        others = listed([name for name, one in FORMATS.items() if not one.needs_numbers], "or")
        raise InvalidArgument(
            f"{output.where}: format must be {others} for {shown(output.label)}, a {plan.query.verb} that releases no "
            f"number for each cell, not {output.format}. Take one of these, and a path that ends so."
        )


def _check_report(report: Report, plans: Mapping[str, Plan]) -> None:
    """Refuse labels for columns that a release will not have, before any charge."""
    for label, words in (report.words["labels"] or {}).items():
        query = plans[label].query
        keys = [name for axis in query.shown.axes for name in axis.columns if name in axis.names]  # others have bins
        known = {"columns": [*query.shown.columns, *(name for name, _ in query.statistics)], "values": keys}
        for part in layout.PARTS_OF_LABELS:
            place, of = f"labels.{label}.{part}", "its columns" if part == "columns" else "its columns of keys"
            for name, word in _table_of_words(report, place, words.get(part, {})).items():
                if name not in known[part]:
                    raise InvalidArgument(
                        f"{report.where}: labels of {shown(label)} must name {of}, which are "
                        f"{', '.join(known[part])}, not {shown(name)}. Rename or drop it."
                    )
                given = [word] if part == "columns" else _table_of_words(report, f"{place}.{name}", word).values()
                if not all(isinstance(one, str) and (one or part == "values") for one in given):
                    raise InvalidType(f"{report.where}: {place}.{name} must be text, not {shown(word)}.")
                for one in given:
                    checked_column_name(f"{report.where}: {place}.{name}", one)


def _table_of_words(report: Report, place: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidType(f"{report.where}: {place} must be a table, not {shown(given)}.")
    return given


def made(job: Job) -> Ledger:
    """Make the ledger of a job; raise LedgerError if there is or was one already."""
    with _refused(job):
        _address(job)
        return of_terms(job.ledger.place, job.ledger.unit, job.ledger.terms, job.ledger.head, new=True)


def no_ledger(job: Job, meanwhile: str = "") -> str:
    """Return the message for a job without a ledger, which ends in the command that makes it."""
    return f"no ledger is at {_address(job).shown}. {meanwhile}If there never was one, make it, once: {_making(job)}"


def _making(job: Job) -> str:
    """Return the command that makes the ledger of a job."""
    said = [word for name, value in job.variables.said.items() for word in ("--set", f"{name}={value}")]
    return shlex.join(["dpframe", "ledger", "create", str(job.file), *said])


@contextmanager
def _refused(job: Job) -> Iterator[None]:
    """Add the part of the file to the refusal of a ledger, and name the command that makes one instead of Python."""
    with placed(job.ledger.where):
        try:
            yield
        except LedgerError as error:
            raise reworded(error, str(error).replace(f"{MAKE}.", _making(job))) from None


def opened(job: Job) -> Any:
    """Open the table of a job. Messages of an engine are withheld, since they may hold a value or a password."""
    if job.scan.is_missing:
        raise SourceFailed(f"{job.source_where}: no file is at {job.scan.path!r}. Nothing was charged. Look at path.")
    try:
        with placed(job.source_where):
            return scans.opened(job.engine, job.scan)
    except InvalidArgument:  # a message of dpframe, which holds only names
        raise
    except ImportError as error:
        words = f"engine = {job.engine!r} needs {error.name}: pip install 'dpframe[{job.engine}]'"
        raise ImportError(words) from None
    except Exception as error:
        raise SourceFailed(
            f"{job.source_where}: {job.engine} cannot open the table ({type(error).__name__}; its message is withheld, "
            "since it may hold values). Nothing was charged. Open it by hand to see the cause."
        ) from None


@contextmanager
def _readable(job: Job) -> Iterator[None]:
    """Withhold the messages of an engine whose table was changed or removed after it was opened."""
    try:
        yield
    except (DpframeError, ImportError):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("builtins", "dpframe") and not isinstance(error, OSError):
            raise  # a fault of dpframe, or its warning that a filter turns into an error
        raise SourceFailed(
            f"{job.source_where}: {job.engine} cannot read the table any more ({type(error).__name__}; its message is "
            "withheld, since it may hold values). Was it replaced or removed meanwhile? Run the job again."
        ) from None


def _ledger(job: Job, *, charge: bool) -> tuple[bool, Ledger]:
    """Return whether the ledger exists, and the ledger; without a charge, one in memory replaces a missing one."""
    _address(job)
    refuse_gone(job.ledger.place, job.ledger.head)
    if is_there(job.ledger.place):
        terms = job.ledger
        return True, of_terms(terms.place, terms.unit, terms.terms, terms.head, new=False, checks=job.checks)
    if charge:
        raise LedgerError(
            no_ledger(
                job,
                "Nothing was read, and nothing was charged. If there was one, put it back, since it knows what was "
                "spent. ",
            )
        )
    return False, Ledger(**job.ledger.terms, unit=job.ledger.unit, checks=job.checks)


def _address(job: Job) -> Address:
    """Return the address of the ledger; refusals show it, and that of its head, as the job file has them."""
    address = Address.of(job.ledger.place)
    job.variables.made_of(job.ledger.given, address.shown)
    if job.ledger.head is not None:
        job.variables.made_of(job.ledger.head, Address.of(job.ledger.head, "head").shown)
    return address


def _plan(plan: Any, where: str) -> Plan:
    if not isinstance(plan, Plan):
        raise InvalidArgument(
            f"{where}: epsilon must be given (or share, or within): the cost of this release. Write for instance "
            "epsilon = 0.1."
        )
    return plan


def run(job: Job, told: Callable[[str], None] = lambda words: None) -> Trail:
    """Run a job, and pass each step to `told`. Nothing is charged unless all releases fit together.

    Raises
    ------
    LedgerError
        If its ledger does not exist (`create` makes it), or is refused. Nothing was read.
    BudgetExceeded
        If the releases do not fit into the ledger together. Nothing was charged.
    SourceFailed
        If the table cannot be opened. No release was charged without a result.
    OutputFailed
        If a file cannot be written. A second run writes it, at no cost.
    ReleaseFailed
        If the engine failed on the rows. The charge stands.
    """
    trail, ledger = Trail(job), None
    trail.begin()
    try:
        whole = planned(job, charge=True)
        ledger = whole.ledger
        frames = {question.label: _release(whole, question, trail, told) for question in job.questions}
        if job.report is not None:
            whole_report = partial(_report, job.report, whole.ledger, frames)
            trail.wrote(job.report, write_output(job.report.path, whole_report))
            told(f"wrote {PurePath(job.report.written).name}")
        trail.remaining = _loss(whole)
    except BaseException as error:
        with suppress(OutputFailed):  # the first error is the one to raise
            trail.end(ledger, error)
        raise
    trail.end(ledger)
    return trail


def create(job: Job) -> Ledger:
    """Make the ledger of a job, and record it in the audit trail; raise LedgerError if there is one already."""
    trail = Trail(job)
    trail.begin()
    ledger = made(job)
    trail.made(ledger)
    try:
        trail.end(None)
    except OutputFailed as error:
        raise OutputFailed(f"{error} The ledger was made all the same: do not make another one.") from None
    return ledger


def _release(whole: PlannedJob, question: Question, trail: Trail, told: Callable[[str], None]) -> Any:
    """Make one release or replay it from the ledger, write its files, and return the frame."""
    before, newest = whole.ledger._replayed, whole.ledger.last_place()
    try:
        with _readable(whole.job):
            frame = asked(question, whole.dp, whole.ledger)
    except SourceFailed:
        if whole.ledger.last_place() == newest:
            raise
        raise ReleaseFailed(
            f"{question.where}: the release failed on the table, and the charge stands. Open the table by hand to see "
            "the cause; a new run charges this release again."
        ) from None
    provenance = released(frame).provenance
    entry = provenance["ledger"]["entry"]
    charged = whole.ledger._replayed == before  # if not, the ledger had the answer, maybe of a parallel run
    trail.released(provenance, charged=charged)
    cost = f"charged {whole.plans[question.label].cost}" if charged else "replayed from the ledger, at no cost"
    written = whole.job.variables.written
    told(f"{written(question.label)} of {written(question.snapshot)}: {cost} (entry {entry})")
    problem = provenance.get("found", {}).get("problem")  # of suggested bounds, as a sentence
    for line in (*check_lines(provenance), *([problem] if problem else [])):  # a table, such as CSV, has neither
        told(f"{written(question.label)}: {whole.job.variables.hidden(line)}")
    for output in whole.job.outputs:
        if output.label == question.label:
            trail.wrote(output, _write(output, frame))
            told(f"wrote {PurePath(output.written).name}")
    return frame


def _report(report: Report, ledger: Ledger, frames: Mapping[str, Any], path: Path) -> None:
    shown = [frames[label] for label in report.labels]
    ledger.report(path, *shown, title=report.title, charts=can_draw(), **report.words)


def _write(output: Output, frame: Any) -> str:
    return write_output(output.path, partial(FORMATS[output.format].write, frame))


def _loss(whole: PlannedJob) -> dict[str, float]:
    remaining = whole.ledger.remaining
    return {"epsilon": remaining.epsilon, "delta": remaining.delta}
