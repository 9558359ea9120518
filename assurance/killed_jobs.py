"""Jobs that are killed at a random moment and run again: their charges and their files.

    python -m assurance.killed_jobs --rounds 30
    python -m assurance.killed_jobs --rounds 30 --postgresql

In each round, a process runs a job of two releases and is killed by SIGKILL at some point between its first and last
line; then the job runs again. Every output must be complete, an existing file must not change, no release may have two
answers, and a release is charged twice only if it was killed before its answer was stored. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import polars as pl

import dpframe as dpf
from assurance import postgres, verdict
from dpframe.jobs import job_file, running

JOB = """engine = "polars"
snapshot = "${WEEK}"
audit = "audit.jsonl"
[source]
path = "stays.parquet"
[ledger]
WHERE
unit = "patient"
epsilon = 1000.0
"""
RELEASE = """[[release]]
label = "LABEL"
verb = "count"
group_by = "ward"
keys = ["A", "B"]
max_rows = 1
epsilon = 0.1
[[output]]
release = "LABEL"
path = "LABEL-${WEEK}.parquet"
[[output]]
release = "LABEL"
path = "LABEL-${WEEK}.md"
"""
LABELS = ("first", "second")
CHILD = """
import sys
from dpframe.jobs import job_file, running
import dpframe.ledger.sql
job = job_file.read(sys.argv[1], [sys.argv[2]], {})
print("ready", flush=True)
running.run(job)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--postgresql", action="store_true", help="keep the ledger in a server that is started for it")
    asked = parser.parse_args()
    rounds = asked.rounds
    if asked.postgresql and (why_not := postgres.missing()):
        print(why_not)
        return 1
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # the server's user passes through this folder
        url = stack.enter_context(postgres.server(folder / "server")).url("jobs") if asked.postgresql else None
        wrong, seen = drilled(folder, rounds, url)
    print(f"{rounds} rounds, {wrong} wrong; {', '.join(f'{words}: {many}' for words, many in sorted(seen.items()))}")
    return verdict(wrong, rounds=rounds)


def drilled(folder: Path, rounds: int, url: str | None = None) -> tuple[int, Counter[str]]:
    """Return the number of wrong rounds, and how far the killed processes got; `url` is a ledger on a server."""
    where = 'path = "clinic.ledger"' if url is None else f'url = "{url}"'
    ledger = folder / "clinic.ledger" if url is None else url
    pl.DataFrame({"patient": range(300_000), "ward": ["A", "B", "C"] * 100_000}).write_parquet(folder / "stays.parquet")
    (folder / "release.toml").write_text(
        JOB.replace("WHERE", where) + "".join(RELEASE.replace("LABEL", label) for label in LABELS)
    )
    running.create(job_file.read(folder / "release.toml", ["WEEK=w0"], {}))
    whole = _run(folder, "WEEK=w0", None)  # time of a complete run
    wrong, seen = 0, Counter[str]()
    for number in range(1, rounds + 1):
        week = f"w{number}"
        _run(folder, f"WEEK={week}", random.uniform(0, 1.1 * whole))
        before, files = _entries(ledger, week), _files(folder, week)
        running.run(job_file.read(folder / "release.toml", [f"WEEK={week}"], {}))
        after, now = _entries(ledger, week), _files(folder, week)
        good = len(now) == 4 and all(now[file] == content for file, content in files.items())
        for label in LABELS:
            charged, answered = before[label, "charge"], before[label, "answer"]
            good &= after[label, "answer"] == 1 and after[label, "charge"] == charged + 1 - answered
            seen["answered" if answered else "charged, no answer" if charged else "not charged"] += 1
        wrong += not good
    return wrong, seen


def _run(folder: Path, said: str, seconds: float | None) -> float:
    """Run the job in a new process, kill it after `seconds` if given, and return how long it took."""
    command = [sys.executable, "-c", CHILD, str(folder / "release.toml"), said]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        start = time.monotonic()
        if seconds is not None:
            time.sleep(seconds)
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return time.monotonic() - start


def _entries(ledger: Path | str, week: str) -> Counter[tuple[str, str]]:
    """Return how many charges and answers the ledger has for each release of a week."""
    stored = dpf.Ledger.open(ledger)._store.entries()
    return Counter((entry.label or "", entry.kind) for _, entry in stored if entry.snapshot == week)


def _files(folder: Path, week: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(f"[!.]*-{week}.*")}


if __name__ == "__main__":
    raise SystemExit(main())
