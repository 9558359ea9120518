"""A job: what its file says, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpframe.frames.scans import Scan
from dpframe.jobs.toml_tables import Variables
from dpframe.privacy import PrivacyUnit


@dataclass(frozen=True)
class LedgerTerms:
    """The ledger that is charged: where it is, whom it protects, and how much it holds."""

    where: str
    place: str = field(repr=False)  # a URL may hold a password
    unit: PrivacyUnit
    terms: Mapping[str, Any]  # epsilon, delta, accounting, keys_delta, dataset, as far as they are said
    given: str = field(repr=False)  # its path or URL, before it was put below the folder of the job
    head: str | None = field(default=None, repr=False)  # where else its head is kept


@dataclass(frozen=True)
class Question:
    """One release: a verb with its arguments, of groups or of all rows."""

    where: str
    label: str
    verb: str
    group_by: tuple[Any, ...]
    keys: Any
    statistics: Mapping[str, Any]
    arguments: Mapping[str, Any]  # the price, label and snapshot among them

    @property
    def snapshot(self) -> str:
        """The name of the state of the data."""
        return str(self.arguments["snapshot"])


@dataclass(frozen=True)
class Output:
    """One file that is written of a release."""

    where: str
    label: str
    path: Path
    format: str
    written: str  # its path as the job file has it, with the names of variables that the environment fills in


@dataclass(frozen=True)
class Report:
    """The report that is written of the releases of a job together."""

    where: str
    path: Path
    written: str  # its path as the job file has it
    title: str | None
    labels: tuple[str, ...]  # of the releases that it shows, in the order of the job
    words: Mapping[str, Any]  # text, labels and order, as `Ledger.report` takes them

    @property
    def label(self) -> str:
        """The releases, as the audit trail names them."""
        return ", ".join(self.labels)


@dataclass(frozen=True)
class Job:
    """A whole job."""

    file: Path
    digest: str
    engine: str
    scan: Scan
    source_where: str
    ledger: LedgerTerms
    questions: tuple[Question, ...]
    outputs: tuple[Output, ...]
    audit: Path | None
    variables: Variables = field(repr=False)
    report: Report | None = None
    checks: Any = None  # what its releases check, where they do not say it
