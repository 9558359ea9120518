"""The audit trail: a line of JSON for each run, of public facts alone. How long a run took is none of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpframe._version import VERSION
from dpframe.errors import DpframeError
from dpframe.jobs.job import Job
from dpframe.jobs.whole_files import append_line
from dpframe.ledger.canonical import now

FORMAT = "dpframe.run/1"


@dataclass
class Trail:
    """The facts of one run, as they come about."""

    job: Job
    started: str = field(default_factory=now)
    releases: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    remaining: dict[str, float] | None = None

    def begin(self) -> None:
        """Refuse a trail that cannot be written, before anything is charged."""
        if self.job.audit is not None:
            append_line(self.job.audit, b"")

    def released(self, provenance: dict[str, Any], *, charged: bool) -> None:
        """Note a release; one that was replayed cost nothing in this run."""
        facts = {"label": provenance["label"], "charged": charged, "cost": provenance["cost"]}
        self.releases.append({**facts, **provenance["ledger"]})

    def wrote(self, output: Any) -> None:
        """Note a file, with the hash of what is in it."""
        digest = hashlib.sha256(output.path.read_bytes()).hexdigest()
        self.outputs.append({"release": output.label, "path": self._shown(output.path), "sha256": digest})

    def _shown(self, path: Path) -> str:
        """A path as the job file has it, where it stands below the file."""
        folder = self.job.file.resolve().parent
        return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()

    def end(self, error: BaseException | None = None) -> None:
        """Append the line."""
        if self.job.audit is not None:
            append_line(self.job.audit, json.dumps(self.facts(error)).encode())

    def facts(self, error: BaseException | None) -> dict[str, Any]:
        """The line, as plain values."""
        facts: dict[str, Any] = {"format": FORMAT, "started": self.started, "status": "failed" if error else "done"}
        facts |= {"job": self.job.file.name, "job_sha256": self.job.digest, "dpframe": VERSION}
        facts |= {"engine": self.job.engine, "releases": self.releases, "outputs": self.outputs}
        facts |= {"remaining": self.remaining}
        if error is not None:
            facts["error"] = {"kind": type(error).__name__, "words": self._words(error)}
        return facts

    def _words(self, error: BaseException) -> str:
        """The words of an error of dpframe's own; others may hold anything."""
        known = isinstance(error, (DpframeError, ImportError))
        return self.job.variables.hidden(str(error)) if known else ""
