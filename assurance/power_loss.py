"""Losses of power at any moment of a ledger's work: all reported entries must be on the disk.

    python -m assurance.power_loss --states 6
    python -m assurance.power_loss --states 6 --forgets journal     # as if this file were never synced

A process creates a ledger in a file, charges it, stores answers, raises its limit, releases a stream, and recovers from
a lost head. `strace` records each of its system calls. After each call the power is lost. Synced data (`fsync`,
`fdatasync`) are on the disk. Of all other data, the disk may have nothing, everything, or some sectors of 512 bytes
and some names. The ledger on each such disk must open and verify, hold all that was reported before, and accept a
charge; its head must know all that was reported. Exits with 1 otherwise.

A sector is written as a whole or not at all. Sectors and names are kept or lost independently, in any order, which is
more than file systems lose.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import polars as pl

import dpframe as dpf
from assurance import verdict
from dpframe.ledger import heads

SECTOR = 512  # bytes
PLACES = ("beside", "apart")  # places of the head: next to the ledger, or in a folder of its own
FORGOTTEN = {"ledger": r"clinic\.ledger", "journal": r".*-journal", "head": r".*head(\.new)?", "folder": r"data|heads"}
CALLS = (
    "openat,open,creat,lseek,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,ftruncate,fallocate,unlink,unlinkat,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,sendfile,copy_file_range"
)
TOLD = "told"  # the file in which the process reports its progress
LEDGER = "data/clinic.ledger"
PEOPLE = dpf.of(pl.DataFrame({"age": [31, 45, 62]}))
CHILD = "import sys; from assurance import power_loss; power_loss.work(*sys.argv[1:])"


@dataclass(frozen=True)
class Told:
    """A report of the process: the end of the chain, which must not be lost from then on."""

    step: str
    entry: int
    head: str


@dataclass(frozen=True)
class Step:
    """One system call that changes the folder or syncs it, or a report."""

    kind: str  # make, write, cut, wait, remove, rename, told
    path: str
    offset: int = 0
    data: bytes = b""
    to: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=6, help="disks after each call, besides all and nothing")
    parser.add_argument("--place", choices=PLACES, action="append", help="of the head, by default both")
    parser.add_argument("--forgets", choices=FORGOTTEN, help="what is never waited for: the drill must object")
    options = parser.parse_args()
    if why_not := missing():
        print(why_not)
        return 1
    wrong, disks = 0, 0
    for place in options.place or PLACES:
        seen = list(drilled(place, options.states, options.forgets))
        found = [words for words in seen if words]
        print(f"head {place}: {len(seen)} disks, {len(found)} wrong", *found[:5], sep="\n    ", flush=True)
        disks, wrong = disks + len(seen), wrong + len(found)
    return verdict(wrong, disks=disks)


@cache
def missing() -> str | None:
    """Return why no process can be traced here, or None."""
    if (found := shutil.which("strace")) is None:
        return "strace is not installed (Debian: apt-get install strace)"
    done = subprocess.run([found, "-o", os.devnull, sys.executable, "-c", ""], capture_output=True, check=False)
    return "strace may not trace a process here" if done.returncode else None


# The process


def work(folder: str, place: str) -> None:
    """Write a ledger in every way that a file ledger is written; this process is traced."""
    path, head = Path(folder, LEDGER), _head(Path(folder), place)
    telling = os.open(Path(folder, TOLD), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def told(step: str, ledger: dpf.Ledger) -> None:
        mark = ledger._store.last()
        os.write(telling, f"{json.dumps({'step': step, 'entry': mark.entry, 'head': mark.head})}\n".encode())

    ledger = dpf.Ledger(epsilon=100, path=path, head=head)
    told("made", ledger)
    for _ in range(3):
        PEOPLE.count(epsilon=0.125, ledger=ledger)
        told("charged", ledger)
    PEOPLE.count(epsilon=0.125, ledger=ledger, label="kept", snapshot="1")
    told("answered", ledger)
    ledger.raise_limit(epsilon=200, reason="the board agreed")
    told("raised", ledger)
    ledger = dpf.Ledger.open(path, head=head)
    days = ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]
    weeks = dpf.dates(days[0], "2026-02-01", every="1w")
    stream = dpf.Stream("s", statistic=dpf.count(), time="day", periods=weeks, epsilon=0.125, ledger=ledger)
    visits = pl.DataFrame({"day": days}).with_columns(pl.col("day").str.to_date())
    for day in days[:2]:
        stream.release(visits, day)
        told("streamed", ledger)
    PEOPLE.histogram("age", bins=range(2_001), epsilon=0.125, ledger=ledger, label="large", snapshot="1")
    told("answered", ledger)  # fills many pages
    os.unlink(head or f"{path}.head")
    dpf.Ledger.recover(path, reason="the head was lost", head=head)
    ledger = dpf.Ledger.open(path, head=head)
    told("recovered", ledger)
    for _ in range(2):
        PEOPLE.count(epsilon=0.125, ledger=ledger)
        told("charged", ledger)


def _head(folder: Path, place: str) -> str | None:
    return None if place == "beside" else str(folder / "heads" / "clinic.head")


def traced(folder: Path, place: str) -> list[Step]:
    """Return the steps of the process, which works in this folder."""
    for name in ("data", "heads"):
        (folder / name).mkdir(parents=True)
    log = folder.with_suffix(".trace")
    strace = ["strace", "-f", "-qq", "-xx", "-y", "-s", str(2**20), "-e", f"trace={CALLS}", "-o", str(log)]
    child = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), place]
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([*strace, *child], check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    return list(_steps(log, folder))


_CALL = re.compile(r"(\w+)\((.*)\) += (\d+)")  # matches successful calls
_BYTES = re.compile(r"(?:\\x[0-9a-f]{2})+")
_KINDS = {
    **dict.fromkeys(("write", "pwrite64"), "write"),
    **dict.fromkeys(("fsync", "fdatasync"), "wait"),
    **dict.fromkeys(("unlink", "unlinkat"), "remove"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    "ftruncate": "cut",
    "lseek": "",
}


def _steps(log: Path, folder: Path) -> Iterator[Step]:
    """Yield the calls of a trace that concern the folder; an unknown call is an error."""
    position: dict[str, int] = {}  # offset in the file, by descriptor
    there: set[str] = set()
    for name, arguments, result in _calls(log):
        if not (paths := _inside(arguments, folder)):
            continue
        path, opened, number = (
            paths[-1] if name == "openat" else paths[0],
            arguments.partition("<")[0],
            arguments.rpartition(",")[2],
        )
        if name == "openat":
            opened, kind = str(result), "cut" if "O_TRUNC" in arguments else ""
            if path not in there and "O_CREAT" in arguments:
                kind = "make"
        elif name in _KINDS:
            kind = _KINDS[name]
        else:
            raise RuntimeError(f"{name} of {path} is not known to this drill")
        offset = int(number) if name in ("pwrite64", "ftruncate") else position.get(opened, 0) if kind == "write" else 0
        data = _decoded(_BYTES.findall(arguments)[-1])[:result] if kind == "write" else b""
        if name in ("openat", "lseek", "write"):
            position[opened] = {"openat": 0, "lseek": result, "write": offset + len(data)}[name]
        if kind in ("remove", "rename"):
            there.discard(path)
        if kind in ("make", "rename"):
            there.add(paths[-1])
        if path == TOLD:
            kind = "told" if data else ""
        if kind:
            yield Step(kind, path, offset, data, paths[-1] if kind == "rename" else "")


def _calls(log: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the name, arguments and result of each successful call, in the order in which they ended."""
    begun: dict[str, str] = {}  # calls of a thread that another thread's call interrupted
    for line in log.read_text().splitlines():
        thread, _, call = line.partition(" ")
        call = call.lstrip()
        if call.endswith("<unfinished ...>"):
            begun[thread] = call.removesuffix("<unfinished ...>")
            continue
        if call.startswith("<..."):
            call = begun.pop(thread, "") + call.partition("resumed>")[2]
        if (found := _CALL.match(call)) is not None:
            yield found[1], found[2], int(found[3])


def _inside(arguments: str, folder: Path) -> list[str]:
    """Return the paths among the arguments that lie in the folder, relative to it."""
    root = f"{folder}{os.sep}".encode()
    told = [_decoded(words) for words in _BYTES.findall(arguments) if words.startswith(r"\x2f")]
    return [words.removeprefix(root).decode() for words in told if words.startswith(root)]


def _decoded(words: str) -> bytes:
    return bytes.fromhex(words.replace(r"\x", ""))


# The disk


@dataclass
class Disk:
    """The synced content of the disk, and the steps that wait for a sync, in the order in which they were written."""

    contents: list[bytes] = field(default_factory=list)  # synced bytes of each file that ever existed
    writes: list[list[Step]] = field(default_factory=list)  # unsynced writes of each file
    names: dict[str, int] = field(default_factory=dict)
    moves: list[tuple[Step, int]] = field(default_factory=list)  # unsynced changes of names
    now: dict[str, int] = field(default_factory=dict)  # names as processes see them

    def take(self, step: Step) -> None:
        if step.kind == "make":
            self.now[step.path] = len(self.contents)
            self.contents.append(b"")
            self.writes.append([])
            self.moves.append((step, self.now[step.path]))
        elif step.kind in ("write", "cut"):
            self.writes[self.now[step.path]].append(step)
        elif step.kind in ("remove", "rename"):
            file = self.now.pop(step.path)
            if step.to:
                self.now[step.to] = file
            self.moves.append((step, file))
        elif step.path in self.now:  # sync of a file
            file = self.now[step.path]
            self.contents[file] = _written(self.contents[file], self.writes[file], lambda: True)
            self.writes[file] = []
        elif step.kind == "wait":  # sync of a folder
            mine = [move for move in self.moves if os.path.dirname(move[0].path) == step.path]
            self.names = _named(self.names, mine, lambda: True)
            self.moves = [move for move in self.moves if move not in mine]

    def after(self, kept: Callable[[], bool]) -> dict[str, bytes]:
        """Return the files after a loss of power; `kept` decides what stays of unsynced changes."""
        contents = [_written(*file, kept) for file in zip(self.contents, self.writes, strict=True)]
        return {name: contents[file] for name, file in _named(self.names, self.moves, kept).items()}


def _written(content: bytes, writes: Sequence[Step], kept: Callable[[], bool]) -> bytes:
    """Return a file after these writes, each sector as `kept` decides."""
    found = bytearray(content)
    for step in writes:
        if step.kind == "cut":
            if kept():
                del found[step.offset :]
                found.extend(bytes(step.offset - len(found)))
            continue
        start, end = step.offset, step.offset + len(step.data)
        while start < end:
            stop = min(end, (start // SECTOR + 1) * SECTOR)
            if kept():
                found.extend(bytes(max(0, stop - len(found))))
                found[start:stop] = step.data[start - step.offset : stop - step.offset]
            start = stop
    return bytes(found)


def _named(names: dict[str, int], moves: Sequence[tuple[Step, int]], kept: Callable[[], bool]) -> dict[str, int]:
    found = dict(names)
    for step, file in moves:
        if not kept():
            continue
        if step.kind != "make":
            found.pop(step.path, None)
        if step.kind != "remove":
            found[step.to or step.path] = file
    return found


# The drill


def drilled(place: str, states: int, forgets: str | None = None) -> Iterator[str]:
    """Yield the fault of each disk after each step of the process, or an empty string."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "work"
        steps = traced(folder, place)
        disk = Disk()
        for step in steps:
            disk.take(step)
        there = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        if disk.after(lambda: True) != {file: content for file, content in there.items() if file != TOLD}:
            raise RuntimeError("the trace does not tell what is in the folder")
    yield from objections(steps, place, states, forgets)


def objections(steps: Sequence[Step], place: str, states: int, forgets: str | None = None) -> Iterator[str]:
    """Yield the same for these steps; `forgets` names the files whose syncs are left out."""
    said = [Told(**json.loads(step.data)) if step.kind == "told" else None for step in steps]
    disk, before = Disk(), None
    for number, step in enumerate(steps):
        before = said[number] or before
        if step.kind != "wait" or forgets is None or not re.fullmatch(FORGOTTEN[forgets], os.path.basename(step.path)):
            disk.take(step)
        after = next((told for told in said[number + 1 :] if told is not None), before)
        for files in {tuple(sorted(disk.after(kept).items())) for kept in _losses(states)}:
            words = objection(files, place, before, after)
            yield words and f"{words} (call {number}: {step.kind} {step.path}; {before})"


def _losses(states: int) -> Iterator[Callable[[], bool]]:
    """Yield functions that decide what a loss of power keeps: nothing, everything, or a random part."""
    yield lambda: False
    yield lambda: True
    for _ in range(states):
        share = random.choice((0.1, 0.5, 0.9))
        yield lambda share=share: random.random() < share  # type: ignore[misc]


def objection(files: Sequence[tuple[str, bytes]], place: str, before: Told | None, after: Told | None) -> str:
    """Return the fault of a ledger on a disk, or nothing; `before` was the last report, `after` is the next."""
    assert after is not None
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        for file in ("data", "heads"):
            Path(name, file).mkdir()
        for file, content in files:
            Path(name, file).write_bytes(content)
        try:
            return _wrong(Path(name), place, before, after)
        except dpf.LedgerError as refusal:
            may_be = before is None or after.step == "recovered"  # or there is no head, as in the process
            return "" if may_be else f"refused: {refusal}"


def _wrong(folder: Path, place: str, before: Told | None, after: Told) -> str:
    ledger = dpf.Ledger.open(folder / LEDGER, head=_head(folder, place))
    last = ledger._store.last()
    ledger.verify()
    head = heads.read_at(_head(folder, place) or f"{folder / LEDGER}.head")
    told = Told("begun", 0, last.head) if before is None else before
    known = ledger._store.head_at(told.entry) if told.entry else told.head
    PEOPLE.count(epsilon=0.125, ledger=ledger)
    ledger.verify()
    wrong = {
        f"what was told is lost: {last.entry} entries": last.entry < told.entry or known != told.head,
        f"the head is behind: {head}": head is None or head.mark.entry < told.entry,
        f"{last.entry} entries of at most {after.entry}": last.entry > after.entry,
        "a charge more is not an entry more": ledger._store.last().entry != last.entry + 1,
    }
    return next((words for words, is_so in wrong.items() if is_so), "")


if __name__ == "__main__":
    raise SystemExit(main())
