"""Measure how long it takes to open, print, verify and list ledgers with many entries.

    python -m benchmarks.large_ledger --entries 100000

The entries are written in one transaction, without a sync for each: they equal those of the same number of charges.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpframe as dpf
from dpframe.ledger.database import tables
from dpframe.ledger.entries import Entry, Mark, Row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--accounting", choices=("basic", "gdp", "rdp"), default="basic")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.ledger"
        timed("written", lambda: written(path, options.entries, options.accounting))
        ledger = timed("opened", lambda: dpf.Ledger.open(path))
        timed("printed", lambda: repr(ledger))
        timed("verified", ledger.verify)
        timed("charged", lambda: charge(ledger))
        timed("listed", ledger.to_frame)


def timed(words: str, use: Callable[[], Any]) -> Any:
    start, used = time.perf_counter(), time.process_time()
    found = use()
    print(f"{words:<9} {time.perf_counter() - start:7.2f} s, {time.process_time() - used:7.2f} s of the processor")
    return found


def charge(ledger: dpf.Ledger) -> None:
    ledger.charge(small(ledger, 1), cost=dpf.PrivacyLoss(0.1), query="count()", unit=ledger.unit or dpf.PrivacyUnit())


def small(ledger: dpf.Ledger, part: int) -> tuple[Fraction, ...]:
    """Return a small amount in the ledger's accounting."""
    limit = ledger.limit_amount
    assert limit is not None
    return tuple(Fraction(part, 10**9) if most else Fraction(0) for most in limit)


def written(path: Path, count: int, accounting: Any = "basic") -> None:
    """Create a ledger with `count` charges."""
    ledger = dpf.Ledger(epsilon=10**4, delta=0 if accounting == "basic" else 1e-6, accounting=accounting, path=path)
    store: Any = ledger._store
    amounts = [small(ledger, part) for part in range(1, 51)]
    when, cost, unit = "2026-11-22T10:00:00+00:00", dpf.PrivacyLoss(0.01), store.terms.unit
    mark, rows = Mark.first(store.terms), []
    for number in range(count):
        row = Row.after(mark, Entry(when, f"report {number}", "count() by ward", unit, amounts[number % 50], cost))
        mark = row.mark()
        rows.append({"entry": row.number, "body": row.body, "head": row.head, "name": row.name})
    with store.database.transaction(write=True) as connection:
        connection.execute(tables().entries.insert(), rows)
    store._keep_head(mark)


if __name__ == "__main__":
    main()
