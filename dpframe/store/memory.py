"""Charges in memory: they end with the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from dpframe.errors import LedgerError
from dpframe.guarantee import Amount
from dpframe.store.entries import Charge, Mark, plus


class MemoryStore:
    """A list of charges, for the threads of one process."""

    shown: str | None = None

    def __init__(self) -> None:
        self._charges: list[Charge] = []
        self._spent: Amount = ()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def charge(self, charge: Charge, allowed: Callable[[Amount, Amount], None]) -> None:
        """Append if it is allowed. A forked child would spend the same budget again, so it is refused."""
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger in memory must be charged in the process that made it, not in a forked child: each child "
                "would spend the same budget again. Ask in the parent, or keep the ledger in a file: path=..."
            )
        with self._lock:
            total = plus(self._spent, charge.amount)
            allowed(self._spent, total)
            self._charges.append(charge)
            self._spent = total

    def charges(self) -> list[Charge]:
        """A copy of the list."""
        return list(self._charges)

    def spent(self) -> Amount:
        """The sum of all charges."""
        return self._spent

    def verify(self) -> list[Mark]:
        """Refuse: there is no chain in memory."""
        raise LedgerError("a ledger in memory cannot be verified: it has no chain. Keep it in a file: path=...")

    @property
    def identity(self) -> tuple[str, str]:
        """Refuse: there is no address either."""
        raise LedgerError(
            "a ledger in memory cannot be pickled: the copy would be a second budget for the same people."
        )
