"""The newest place of each ledger that this process has seen: a database that is rolled back beneath it does not go on.

The head next to a file can be put back along with it, and a server has none. A process remembers by itself; of a server
also which ledger was at its address, since a database that is dropped and made anew begins another.
"""

from __future__ import annotations

import os
import threading

from dpframe.errors import LedgerError
from dpframe.ledger.address import Address
from dpframe.ledger.entries import Mark

Identity = tuple[str, str]  # the place of the address, and the hash of the terms

_newest: dict[Identity, Mark] = {}
_turn = threading.Lock()


def newest(identity: Identity) -> Mark | None:
    """The newest mark that was seen. Ask *before* reading the ledger, which may only have grown since."""
    return _newest.get(identity)


def note(identity: Identity, mark: Mark) -> None:
    """Remember a place that is committed, unless a later one is known."""
    with _turn:
        known = _newest.get(identity)
        if known is None or known.entry < mark.entry:
            _newest[identity] = mark


def go_back(identity: Identity, mark: Mark) -> None:
    """Forget what came after: a recovery has charged it."""
    with _turn:
        _newest[identity] = mark


def hold_address(address: Address, beginning: str | None) -> None:
    """Refuse another ledger, or none, where this process saw one on a server. A file is known by its head."""
    if address.url is None:
        return
    with _turn:
        before = [(at, mark.entry) for (place, at), mark in _newest.items() if place == address.place and mark.entry]
    for at, entries in before:
        if at != beginning:
            raise LedgerError(
                f"another ledger was at {address.shown} before, with {entries} entries, and its database was dropped "
                "or replaced. Put that one back; for other people's data take another database."
            )


def _renew() -> None:
    global _turn
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
