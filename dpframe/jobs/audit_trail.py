"""The audit trail: a line of JSON for each run, of public facts alone. How long a run took is none of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from dpframe._version import VERSION
from dpframe.errors import DpframeError, LedgerError, OutputFailed
from dpframe.errors.plain_files import stands_in_the_way
from dpframe.jobs.job import Job
from dpframe.jobs.output_formats import append_line
from dpframe.ledger.address import Address
from dpframe.ledger.canonical import now
from dpframe.ledger.ledger import Ledger

FORMAT = "dpframe.run/1"


@dataclass
class Trail:
    """The facts of one run, as they come about."""

    job: Job
    started: str = field(default_factory=now)
    releases: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    remaining: dict[str, float] | None = None
    created: dict[str, Any] | None = None  # the ledger that was made, where that is all that was done

    def begin(self) -> None:
        """Refuse a trail that cannot be written, before anything is charged."""
        if self.job.audit is not None:
            append_line(self.job.audit, b"")

    def check_ledger(self, ledger: Ledger) -> None:
        """Refuse a ledger that does not know the newest entry that this job's own lines tell of."""
        place = self._newest()
        if place is not None and not ledger.has_place(*place):
            raise LedgerError(
                f"{self.job.ledger.where}: the ledger does not hold entry {place[0]} of the audit trail "
                f"{self.job.audit.name if self.job.audit else ''}: it is an older copy, or another ledger. "
                "Restore the newest copy, or name another audit trail."
            )

    def _newest(self) -> tuple[int, str] | None:
        """The newest entry in the lines of this job and ledger, with its hash; lines that are cut are passed over.

        Lines of dpframe 0.2 do not name the ledger. They count until a line does.
        """
        lines = [facts for facts in self._lines() if facts.get("job") == self.job.file.name]
        named = [facts for facts in lines if "ledger" in facts]
        mine = [facts for facts in named if facts["ledger"] == self._ledger()] if named else lines
        places = []
        for facts in mine:
            releases = facts.get("releases")
            for one in releases if isinstance(releases, list) else []:
                if isinstance(one, dict) and type(one.get("entry")) is int and isinstance(one.get("head"), str):
                    places.append((one["entry"], one["head"]))
        return max(places, default=None)

    def _lines(self) -> list[dict[str, Any]]:
        if self.job.audit is None or stands_in_the_way(self.job.audit):  # a pipe or a device keeps no lines
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
        """The ledger as the line names it: a file as the job has it, a database without what is secret."""
        address = Address.of(self.job.ledger.place)
        if address.file is not None:
            return self.job.variables.written(self.job.ledger.given)
        return self.job.variables.hidden(address.shown.strip("'"))

    def released(self, provenance: dict[str, Any], *, charged: bool) -> None:
        """Note a release; one that was replayed cost nothing in this run."""
        facts = {"label": provenance["label"], "charged": charged, "cost": provenance["cost"], **provenance["ledger"]}
        written = self.job.variables.written
        self.releases.append({name: written(one) if isinstance(one, str) else one for name, one in facts.items()})

    def made(self, ledger: Ledger) -> None:
        """Note a ledger that was made, by its first head."""
        assert ledger.limit is not None
        assert ledger.unit is not None
        dataset = None if ledger.dataset is None else self.job.variables.written(ledger.dataset)
        self.created = {"dataset": dataset, "unit": asdict(ledger.unit), "accounting": ledger.accounting.name}
        self.created |= {"limit": asdict(ledger.limit), "head": ledger.verify()["head"]}

    def wrote(self, output: Any) -> None:
        """Note a file, with the hash of what is in it."""
        digest = hashlib.sha256(output.path.read_bytes()).hexdigest()
        label = self.job.variables.written(output.label)
        self.outputs.append({"release": label, "path": output.written, "sha256": digest})

    def end(self, error: BaseException | None = None) -> None:
        """Append the line."""
        if self.job.audit is not None:
            append_line(self.job.audit, json.dumps(self.facts(error)).encode())

    def facts(self, error: BaseException | None) -> dict[str, Any]:
        """The line, as plain values."""
        facts: dict[str, Any] = {"format": FORMAT, "started": self.started, "status": "failed" if error else "done"}
        facts |= {} if self.created is None else {"kind": "created", "created": self.created}
        facts |= {"job": self.job.file.name, "job_sha256": self.job.digest, "dpframe": VERSION}
        facts |= {
            "engine": self.job.engine,
            "ledger": self._ledger(),
            "releases": self.releases,
            "outputs": self.outputs,
        }
        facts |= {"remaining": self.remaining}
        if error is not None:
            facts["error"] = {"kind": type(error).__name__, "words": self._words(error)}
        return facts

    def _words(self, error: BaseException) -> str:
        """The words of an error of dpframe's own; others may hold anything."""
        known = isinstance(error, (DpframeError, ImportError))
        return self.job.variables.hidden(str(error)) if known else ""


def _facts_of(line: bytes) -> dict[str, Any] | None:
    """The facts in a line; None where it is no whole line of a run."""
    try:
        facts = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and facts.get("format") == FORMAT else None
