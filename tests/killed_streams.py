"""Streams in processes of their own: one that is killed at a step, or several that race.

``python -m tests.killed_streams`` forks a child for each line that it reads. It uses no dataframe library itself,
because no child would have the library's threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dpf
from dpframe.ledger import rows, sql
from dpframe.mechanisms.laplace import Laplace
from dpframe.streams import stream_path

ROOT = Path(__file__).resolve().parents[1]


def stays() -> pl.DataFrame:
    """Return hospital stays by week and ward."""
    return pl.DataFrame({"week": [1, 1, 2, 3, 3, 3, 4], "ward": ["A", "B", "A", "A", "A", "B", "B"]})


def lose(stream: dpf.Stream, frame: Any, period: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose a period: its release fails between the charge and the storing of its numbers."""
    with monkeypatch.context() as broken:
        broken.setattr(stream_path, "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stream.release(frame, period)


def stream_of(ledger: Any, **changed: Any) -> dpf.Stream:
    """Return a stream of the stays."""
    asked = {"statistic": dpf.count(), "time": "week", "periods": [1, 2, 3, 4], "by": "ward", "keys": ["A", "B"]}
    return dpf.Stream(**{"name": "stays", **asked, "epsilon": 0.5, "ledger": ledger, **changed})


def told(frame: Any) -> Any:
    """Return a released frame as plain values."""
    return frame.to_dict(as_series=False)


def kill(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _killing(owner: Any, name: str, *, after: bool = False) -> None:
    """Replace a function by one that kills the process, at once or after the call."""
    whole = getattr(owner, name)
    setattr(owner, name, (lambda *given, **named: kill(whole(*given, **named))) if after else kill)


def _values_not_appended() -> None:
    append = rows.append
    rows.append = lambda connection, last, entry: kill() if entry.kind == "values" else append(connection, last, entry)


def _head_not_written() -> None:
    whole = sql.SqlStore._keep_head

    def killed(store: Any, mark: Any) -> None:
        with closing(sqlite3.connect(store.database.address.file)) as connection:
            (body,) = connection.execute("SELECT body FROM dpframe_entries ORDER BY entry DESC LIMIT 1").fetchone()
        if '"kind":"values"' in body:
            kill()
        whole(store, mark)

    sql.SqlStore._keep_head = killed


STEPS: dict[str, tuple[Callable[[], None], str]] = {  # where it is killed, and the state of the period afterward
    "before the charge": (lambda: _killing(stream_path, "begun"), "drawn"),
    "after the charge": (lambda: _killing(stream_path, "begun", after=True), "drawn"),
    "after the rows were read": (lambda: _killing(stream_path, "_draw"), "drawn"),
    "after the intent": (lambda: _killing(stream_path, "intended", after=True), "lost"),
    "after the noise": (lambda: _killing(Laplace, "add_noise", after=True), "lost"),
    "before the values are written": (lambda: _killing(stream_path, "keep"), "lost"),
    "while the values are appended": (_values_not_appended, "lost"),
    "before the values are committed": (lambda: _killing(rows, "insert_answer"), "lost"),
    "before the head of the values": (_head_not_written, "stored"),
    "after the values": (lambda: _killing(stream_path, "keep", after=True), "stored"),
}


def _ask(path: str, weeks: list[int], step: str | None) -> str:
    stream_path.PATIENCE = 60.0
    if step is not None:
        STEPS[step][0]()
    stream = stream_of(dpf.Ledger.open(path))
    return json.dumps([told(stream.release(stays(), week)) for week in weeks])


def _forked(asked: dict[str, Any]) -> list[str]:
    """Return the answers of children that begin at the same moment; "killed" for one that was."""
    gate, opened = os.pipe()
    children = []
    for _ in range(asked["processes"]):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.read(gate, 1)
                os.write(writer, _ask(asked["path"], asked["weeks"], asked["step"]).encode())
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writer)
        children.append((child, reader))
    os.write(opened, b"x" * len(children))
    answers = []
    for child, reader in children:
        with os.fdopen(reader) as said:
            answers.append(said.read())
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            answers[-1] = "killed"
    os.close(gate)
    os.close(opened)
    return answers


@contextlib.contextmanager
def server() -> Iterator[Callable[..., list[str]]]:
    """Yield a function that lets a process fork children: ``ask(path, weeks, step=None, processes=1)``."""
    command = [sys.executable, "-m", "tests.killed_streams"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(path: Any, weeks: list[int], step: str | None = None, processes: int = 1) -> list[str]:
            asked = {"path": str(path), "weeks": weeks, "step": step, "processes": processes}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            return list(json.loads(process.stdout.readline()))

        yield ask
        process.stdin.close()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)
