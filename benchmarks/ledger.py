"""Drills of the durable ledger: races, kills, restores, and the time of a charge.

Run ``python benchmarks/ledger.py --races 50 --kills 50 --restores 50 --charges 500 --folder DISK``. A race sends eight
processes to one new ledger; a kill ends a charging process at a random moment; a restore puts an older copy back. The
exit code is 0 only if no release was free, none was lost, and every older copy was refused.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import dpframe as dpf

TENTH = (Fraction(1, 10), Fraction(0))
PROCESSES = 8
CONTEXT = multiprocessing.get_context("spawn")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("races", "kills", "restores", "charges"):
        parser.add_argument(f"--{name}", type=int, default=20)
    parser.add_argument("--folder", help="where the ledgers are made; by default where temporary files go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = [
            races(Path(folder), options.races),
            kills(Path(folder), options.kills),
            restores(Path(folder), options.restores),
        ]
        timed(Path(folder), options.charges)
    return 1 if any(found) else 0


def take(ledger: dpf.Ledger) -> dict[str, object]:
    return ledger.charge(TENTH, cost=dpf.PrivacyLoss(0.1), query="drill", unit=ledger.unit)


def races(folder: Path, rounds: int) -> int:
    """Ten charges fit, sixteen are tried. The processes live through all rounds and meet at a barrier before each."""
    barrier, results = CONTEXT.Barrier(PROCESSES), CONTEXT.Queue()
    children = [CONTEXT.Process(target=racer, args=(barrier, folder, rounds, results)) for _ in range(PROCESSES)]
    for child in children:
        child.start()
    told = [results.get() for _ in children]
    for child in children:
        child.join()
    wrong = 0
    for number in range(rounds):
        ledger = dpf.Ledger.open(folder / f"race{number}.ledger")
        charged = sum(one[number] for one in told)
        wrong += not charged == ledger.to_frame().height == ledger.verify()["entry"] == 10
    print(f"races of {PROCESSES} processes: {rounds}; with a free or a lost charge: {wrong}")
    return wrong


def racer(barrier, folder: Path, rounds: int, results) -> None:
    told = []
    for number in range(rounds):
        barrier.wait()
        ledger, charged = dpf.Ledger(epsilon=1, path=folder / f"race{number}.ledger"), 0
        for _ in range(2):
            try:
                take(ledger)
                charged += 1
            except dpf.BudgetExceeded:
                continue
        told.append(charged)
    results.put(told)


def kills(folder: Path, rounds: int) -> int:
    """Every charge that was reported is in the chain once; at most the one in the making is there unreported."""
    path, wrong = folder / "kills.ledger", 0
    ledger = dpf.Ledger(epsilon=10**9, path=path)
    for _ in range(rounds):
        before = ledger.verify()["entry"]
        receiver, sender = CONTEXT.Pipe(duplex=False)
        child = CONTEXT.Process(target=charging, args=(path, sender))
        child.start()
        sender.close()
        receiver.recv()
        time.sleep(random.uniform(0, 0.3))
        child.kill()
        child.join()
        told = 0
        try:
            while receiver.recv():
                told += 1
        except (EOFError, OSError):
            receiver.close()
        wrong += not before + told <= ledger.verify()["entry"] <= before + told + 1
    print(f"kills: {rounds}, among {ledger.verify()['entry']} charges; with a lost or a doubled charge: {wrong}")
    return wrong


def charging(path: Path, sender) -> None:
    ledger = dpf.Ledger.open(path)
    sender.send("ready")
    while True:
        sender.send(take(ledger))


def restores(folder: Path, rounds: int) -> int:
    path, free = folder / "restores.ledger", 0
    ledger = dpf.Ledger(epsilon=10**9, path=path)
    for _ in range(rounds):
        shutil.copy(path, folder / "older")
        for _ in range(random.randint(1, 3)):
            take(ledger)
        shutil.copy(path, folder / "newest")
        shutil.copy(folder / "older", path)
        try:
            take(ledger)
            free += 1
        except dpf.LedgerError:
            shutil.copy(folder / "newest", path)
    print(f"restores of an older copy: {rounds}; not refused: {free}")
    return free


def timed(folder: Path, charges: int) -> None:
    ledger = dpf.Ledger(epsilon=10**9, path=folder / "timed.ledger")
    spans, syncs = [], []
    with open(folder / "sync", "wb") as file:
        for _ in range(charges):
            start = time.perf_counter()
            take(ledger)
            spans.append(time.perf_counter() - start)
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            syncs.append(time.perf_counter() - start)
    print(
        f"charges: {charges}; median {statistics.median(spans) * 1000:.1f} ms, "
        f"slowest {max(spans) * 1000:.0f} ms; one fsync of this disk: median {statistics.median(syncs) * 1000:.2f} ms"
    )


if __name__ == "__main__":
    raise SystemExit(main())
