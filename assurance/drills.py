"""Drills of the durable ledger: races, copies, kills, Ctrl-C, restores, restarts of a server, the time of a charge.

Run ``python -m assurance.drills --races 1000 --copies 200 --kills 1000 --interrupts 1000 --restores 100 --charges 1000
--folder DISK``; add ``--postgres 100 --restarts 20`` to use a PostgreSQL server, too. In a race, eight processes use
one new ledger at once; in a race with copies, each of them and a ninth process copy the file all the time. A kill ends
a charging process at a random moment; an interrupt ends only its charge. A restore puts an older copy of the file
back. A restart crashes the server while eight processes charge. The exit code is 0 only if no release was free or
uncharged, every older copy was refused, and no process waited for an interrupted charge.
``tests/project/test_drills.py`` runs a twentieth of it.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpframe as dpf
from assurance import postgres, verdict
from dpframe.ledger.entries import Answer, Entry

TENTH = (Fraction(1, 10), Fraction(0))
PROCESSES = 8
ENDLESS = 10**9
PROMPT = 5.0  # seconds within which other processes must charge after an interrupt
DEFAULTS = (("races", 50), ("copies", 10), ("kills", 50), ("interrupts", 50), ("restores", 5), ("charges", 200))
START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT = multiprocessing.get_context(START)


@dataclass(frozen=True)
class Drill:
    """How often a drill ran, and how often it went wrong."""

    words: str
    rounds: int
    wrong: int

    def __str__(self) -> str:
        return f"{self.words}: {self.rounds}; wrong: {self.wrong}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in DEFAULTS:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--postgres", type=int, default=0, help="races and kills on a PostgreSQL server")
    parser.add_argument("--restarts", type=int, default=0, help="crashes of that server")
    parser.add_argument("--folder", help="where the ledgers are made; by default where temporary files go")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        place = lambda name: folder / f"{name}.ledger"  # noqa: E731
        found += [told(races(place, options.races)), told(kills(place("kills"), options.kills))]
        found += [told(races(lambda name: place(f"copied-{name}"), options.copies, copied=True))]
        found += [told(interrupts(place("interrupts"), options.interrupts))]
        found += [told(restores(folder, options.restores))]
        timed(place("timed"), options.charges, folder)
    if options.postgres or options.restarts:
        found += on_postgres(options.postgres, options.restarts, options.charges)
    return verdict(sum(drill.wrong for drill in found), rounds=sum(drill.rounds for drill in found))


def told(drill: Drill) -> Drill:
    print(drill, flush=True)
    return drill


def on_postgres(rounds: int, crashes: int, charges: int) -> list[Drill]:
    why_not = postgres.missing()
    if why_not is not None:
        print(f"PostgreSQL: not run, {why_not}")
        return []
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        with postgres.server(Path(name) / "server") as server:
            print("PostgreSQL:", flush=True)
            found = [told(races(server.url, rounds)), told(kills(server.url("kills"), rounds))]
            found += [told(restarts(server, crashes))]
            timed(server.url("timed"), charges, Path(name))
    return found


def take(ledger: dpf.Ledger) -> dict[str, Any]:
    place = ledger.charge(TENTH, cost=dpf.PrivacyLoss(0.1), query="drill", unit=ledger.unit)
    assert place is not None
    return place


# Races


def races(place: Callable[[str], Any], rounds: int, *, copied: bool = False) -> Drill:
    """Try sixteen charges where ten fit; the processes run through all rounds, and a barrier starts each round."""
    paths = [str(place(f"race{number}")) for number in range(rounds)]
    barrier, results, end = CONTEXT.Barrier(PROCESSES), CONTEXT.Queue(), CONTEXT.Event()
    children = [CONTEXT.Process(target=racer, args=(barrier, paths, results, copied)) for _ in range(PROCESSES)]
    copier = [CONTEXT.Process(target=copying_all, args=(paths, end))] if copied else []
    for child in children + copier:
        child.start()
    charged = [results.get(timeout=60 + 30 * rounds) for _ in children]
    end.set()
    finish(children + copier, results)
    wrong = 0
    for number, path in enumerate(paths):
        ledger = dpf.Ledger.open(path)
        total = ledger.verify()["entry"]
        wrong += not sum(one[number] for one in charged) == ledger.to_frame().height == total == 10
    words = ", each of which copies the file all the while" if copied else ""
    return Drill(f"races of {PROCESSES} processes for ten charges{words}", rounds, wrong)


def racer(barrier: Any, paths: list[str], results: Any, copied: bool) -> None:
    charged = []
    for path in paths:
        barrier.wait()
        end = threading.Event()
        backup = threading.Thread(target=copying, args=(path, end))
        if copied:
            backup.start()
        ledger, count = dpf.Ledger(epsilon=1, path=path), 0
        for _ in range(2):
            try:
                take(ledger)
                count += 1
            except dpf.BudgetExceeded:
                continue
        charged.append(count)
        end.set()
        if copied:
            backup.join()
    results.put(charged)


def copying(path: str, end: threading.Event) -> None:
    """Copy the file in a charging process: closing the copied file drops SQLite's locks of that process."""
    while not end.is_set():
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(path, f"{path}.copy-{os.getpid()}")
        time.sleep(0.0005)


def copying_all(paths: list[str], end: Any) -> None:
    """Copy all existing files, in a separate process."""
    while not end.is_set():
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(path, f"{path}.backup")
        time.sleep(0.0005)


def finish(children: list[Any], results: Any) -> None:
    for child in children:
        child.join()
        child.close()
    results.close()
    results.join_thread()


# Kills


def kills(path: Any, rounds: int) -> Drill:
    """Check that each reported release was charged once, names have one answer, at most one charge is unreported."""
    ledger = dpf.Ledger(epsilon=ENDLESS, path=path)
    start = time.perf_counter()
    take(ledger)
    span = 6 * (time.perf_counter() - start)  # long enough for a few charges and answers
    reported: list[list[tuple[int, str, bytes]]] = []
    for number in range(rounds):
        receiver, sender = CONTEXT.Pipe(duplex=False)
        child = CONTEXT.Process(target=releasing, args=(str(path), number, sender))
        child.start()
        sender.close()
        receiver.recv()
        time.sleep(random.uniform(0, span))
        child.kill()
        child.join()
        child.close()
        reported.append([])
        try:
            while True:
                reported[-1].append(receiver.recv())
        except (EOFError, OSError):
            receiver.close()
    time.sleep(1.0)  # a server may still commit what a killed client sent
    left: dict[int, list[tuple[int, Entry]]] = {number: [] for number in range(rounds)}
    for place, one in ledger._store.entries():
        if one.snapshot is not None:  # skips the first charge
            left[int(one.snapshot.partition(".")[0])].append((place, one))
    wrong = sum(not all_accounted(ledger, number, left[number], told) for number, told in enumerate(reported))
    entries = ledger.verify()["entry"]
    return Drill(f"processes killed at random moments, with {entries} entries in their ledger", rounds, wrong)


def all_accounted(
    ledger: dpf.Ledger, number: int, left: list[tuple[int, Entry]], reported: list[tuple[int, str, bytes]]
) -> bool:
    """Compare the reports of a killed process with its entries in the ledger, which carry its number."""
    charged = [entry for entry, one in left if one.kind == "charge"]
    answered = [entry for entry, one in left if one.kind == "answer"]
    told = [entry for entry, _, _ in reported]
    in_order = told == charged[: len(told)] and len(charged) - len(told) <= 1 and len(charged) - len(answered) <= 1
    answers = [ledger._store.charge(named(ledger, number, turn), refuse) for turn in range(len(reported))]
    return in_order and all(
        isinstance(kept, Answer) and kept.content == content
        for kept, (_, _, content) in zip(answers, reported, strict=True)
    )


def refuse(*_: object) -> None:
    raise AssertionError("a stored answer was charged again")


def named(ledger: dpf.Ledger, number: int, turn: int) -> Entry:
    assert ledger.unit is not None
    cost, version = dpf.PrivacyLoss(0.1), f"{number}.{turn}"
    return Entry("", "drill", "drill", ledger.unit, TENTH, cost, snapshot=version, asked={"verb": "drill"})


def releasing(path: str, number: int, sender: Any) -> None:
    """Charge, store an answer and report it, until the process is killed."""
    ledger, turn = dpf.Ledger.open(path), 0
    sender.send("ready")
    while True:
        entry = named(ledger, number, turn)
        place = ledger.take(entry)
        assert isinstance(place, dict)
        content = ledger.keep(entry, os.urandom(64))
        sender.send((place["entry"], place["head"], content))
        turn += 1


# Ctrl-C


def interrupts(path: Any, rounds: int) -> Drill:
    """Interrupt charges at any moment: other processes must charge at once; reported charges must be in the ledger."""
    ledger, slow = dpf.Ledger(epsilon=ENDLESS, path=path), 0
    mine, theirs = CONTEXT.Pipe()
    child = CONTEXT.Process(target=interrupted, args=(str(path), rounds, theirs))
    child.start()
    theirs.close()
    told = []
    for _ in range(rounds):
        told.append(mine.recv())
        start = time.perf_counter()
        try:
            take(ledger)
        except dpf.LedgerError:
            slow += 1
        slow += time.perf_counter() - start > PROMPT
        mine.send("go on")
    child.join()
    child.close()
    marks = ledger._store.verify()
    uncharged = sum(place is not None and marks.heads[place[0]] != place[1] for place in told)
    doubled = len(told) - told.count(None) - len({place for place in told if place is not None})
    broken = told.count(None)
    words = f"charges of which {broken} were broken off by a signal, another process charging after each"
    return Drill(words, rounds, slow + uncharged + doubled)


def interrupted(path: str, rounds: int, other: Any) -> None:
    """Charge under a timer that raises KeyboardInterrupt, and keep the exception, as a notebook does."""
    ledger, kept = dpf.Ledger.open(path), None
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.perf_counter()
    for _ in range(5):
        take(ledger)
    span = 1.5 * (time.perf_counter() - start) / 5
    for number in range(rounds):
        place = None
        try:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, span * (number + 0.5) / rounds))
            found = take(ledger)
            place = (found["entry"], found["head"])
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as error:
            kept = error
        other.send(place)
        other.recv()
    del kept


# Restores


def restores(folder: Path, rounds: int) -> Drill:
    path, free = folder / "restores.ledger", 0
    ledger = dpf.Ledger(epsilon=ENDLESS, path=path)
    for number in range(rounds):
        shutil.copy(path, folder / "older")
        for _ in range(random.randint(1, 3)):
            take(ledger)
        shutil.copy(path, folder / "newest")
        shutil.copy(folder / "older", path)
        for use in (take, lambda _: dpf.Ledger.open(path)):
            try:
                use(ledger if number % 2 else dpf.Ledger.open(path))
                free += 1
            except dpf.LedgerError:
                continue
        shutil.copy(folder / "newest", path)
    return Drill("older copies of the file put back", rounds, free)


# A server that crashes


def restarts(server: postgres.Server, rounds: int) -> Drill:
    """Crash the server while eight processes charge; each reported charge must be in the chain."""
    if not rounds:
        return Drill("crashes of the server amid charges", 0, 0)
    url = server.url("restarts")
    ledger = dpf.Ledger(epsilon=ENDLESS, path=url)
    end, results = CONTEXT.Event(), CONTEXT.Queue()
    children = [CONTEXT.Process(target=persistent, args=(url, end, results)) for _ in range(PROCESSES)]
    for child in children:
        child.start()
    for _ in range(rounds):
        time.sleep(random.uniform(0.5, 1.5))
        server.stop("immediate")
        server.start()
    time.sleep(0.5)
    end.set()
    found = [results.get(timeout=600) for _ in children]
    finish(children, results)
    trail = ledger._store.verify()
    places = [place for reported, _ in found for place in reported]
    failed = sum(failures for _, failures in found)
    wrong = sum(trail.heads[entry] != head for entry, head in places)
    wrong += len(places) - len(set(places))
    wrong += not len(places) <= trail.last.entry <= len(places) + failed
    wrong += trail.last.total[0] != Fraction(trail.last.entry, 10)
    words = f"crashes of the server amid {trail.last.entry} charges, {failed} of which were told to have failed"
    return Drill(words, rounds, wrong)


def persistent(url: str, end: Any, results: Any) -> None:
    reported, failures, ledger = [], 0, None
    while not end.is_set():
        try:
            ledger = ledger or dpf.Ledger.open(url)
            place = take(ledger)
            reported.append((place["entry"], place["head"]))
        except dpf.LedgerError:
            failures += 1
            time.sleep(0.05)
    results.put((reported, failures))


# Time


def timed(path: Any, charges: int, folder: Path) -> None:
    ledger = dpf.Ledger(epsilon=ENDLESS, path=path)
    take(ledger)
    spans, syncs = [], []
    with open(folder / "sync", "wb", buffering=0) as file:
        file.write(b"x" * 4096)
        os.fsync(file.fileno())
        for number in range(charges):
            start = time.perf_counter()
            take(ledger)
            spans.append(time.perf_counter() - start)
            file.seek(0)
            file.write(bytes([number % 256]) * 4096)
            start = time.perf_counter()
            getattr(os, "fdatasync", os.fsync)(file.fileno())
            syncs.append(time.perf_counter() - start)
    if charges:
        print(
            f"charges: {charges}; median {statistics.median(spans) * 1000:.2f} ms, slowest {max(spans) * 1000:.0f} ms; "
            f"one fdatasync of this disk: median {statistics.median(syncs) * 1000:.2f} ms",
            flush=True,
        )


def prepare() -> None:
    """Preload modules that new processes need."""
    if START == "forkserver":
        CONTEXT.set_forkserver_preload(["dpframe", "sqlalchemy", "dpframe.ledger.sql"])


if __name__ == "__main__":
    prepare()
    raise SystemExit(main())
