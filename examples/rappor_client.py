"""A client that reports every day for a month, and the server's estimates from the reports.

    python examples/rappor_client.py

The client keeps a secret. At its first report of a month it looks at the value and stores permanent noisy bits of
it; for the rest of that month it uses only these bits. Someone who sees all thirty reports learns at most these
bits, and they are private: epsilon 2 for the month, no matter how many reports there are.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from pathlib import Path

import polars as pl

import dpframe as dpf

METHOD = dpf.local.Rappor.for_epsilon(["news", "mail", "maps", "films"], epsilon=2)


class Client:
    """The device of one person. Its state stays on the device; it sends only reports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_text(json.dumps({"secret": secrets.token_hex(32), "kept": {}}))

    def report(self, home: str, month: str) -> str:
        """Return today's report. The true value is read only for the first report of a month."""
        state = json.loads(self.path.read_text())
        if month not in state["kept"]:
            secret = bytes.fromhex(state["secret"])
            bits = METHOD.memoize(pl.Series("home", [home]), secret=secret, people=["me"], period=month)
            state["kept"][month] = bits[0]
            self.path.write_text(json.dumps(state))  # save before anything is sent
        return str(METHOD.report(pl.Series("home", [state["kept"][month]]))[0])


def main() -> None:
    """Simulate a month of one hundred clients."""
    folder = Path(tempfile.mkdtemp())
    homes = ["news"] * 60 + ["mail"] * 30 + ["maps"] * 10
    clients = [Client(folder / f"{place}.json") for place in range(len(homes))]
    for day in range(1, 31):
        sent = [client.report(home, "2026-11") for client, home in zip(clients, homes, strict=True)]
        if day in (1, 30):
            print(f"day {day}: what the server estimates of {len(sent)} clients")
            print(METHOD.estimate(pl.Series("home", sent)))
    print(f"epsilon of the month, for each client: {METHOD.epsilon_forever:.6f}")


if __name__ == "__main__":
    main()
