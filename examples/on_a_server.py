"""A ledger in a database that many machines share: a release, the same release again at no cost, a refusal.

Run it with ``python examples/on_a_server.py``. Set ``DPFRAME_LEDGER`` to the address of a database, for instance
``postgresql+psycopg://user:password@host/name`` (``pip install 'dpframe[postgres]'``). Without it, the ledger is a
file in a temporary folder; everything else stays the same.
"""

from __future__ import annotations

import os
import tempfile

import polars as pl

import dpframe as dpf

WEEK = {"epsilon": 0.5, "label": "visits", "snapshot": "2026-W01"}


def main(address: str) -> None:
    """Create or open the ledger, release counts twice, and ask for more than is left."""
    visits = pl.DataFrame({"ward": ["A", "B", "A", "C"] * 250})  # made-up data
    with dpf.Ledger(epsilon=0.6, path=address, dataset="visits of the example"):
        first = visits.dp.group_by("ward", keys=["A", "B", "C"]).count(**WEEK)
    with dpf.Ledger.open(address) as again:  # could be another process, another machine, another day
        second = visits.dp.group_by("ward", keys=["A", "B", "C"]).count(**WEEK)
        print(second)
        print("The same question of the same week has the same answer:", first.equals(second))
        try:
            visits.dp.count(epsilon=0.5)
        except dpf.BudgetExceeded as refusal:
            print("Refused:", refusal)
    again.verify()
    print("The chain of the ledger is whole.")


if __name__ == "__main__":
    if "DPFRAME_LEDGER" in os.environ:
        main(os.environ["DPFRAME_LEDGER"])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(os.path.join(folder, "visits.ledger"))
