"""Entries in memory: they end with the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dpframe.errors import LedgerError
from dpframe.exact import plus
from dpframe.ledger.entries import (
    UNLISTED,
    Allowed,
    Answer,
    Decide,
    Entry,
    Mark,
    StreamState,
    Summary,
    Trail,
    stream_of,
)
from dpframe.ledger.terms import Limit

UNLIMITED = Limit(Fraction(0), Fraction(0), ())  # never compared with: the default ledger only records


class MemoryStore:
    """A list of entries, for the threads of one process."""

    shown: str | None = None
    head: None = None  # which is kept nowhere

    def __init__(self, limit: Limit = UNLIMITED) -> None:
        self._entries: list[Entry] = []
        self._contents: dict[int, bytes] = {}  # of periods of stream, by the numbers of their entries
        self._last = Mark(0, "", (), limit)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def charge(self, entry: Entry, allowed: Allowed) -> None:
        """Append if it is allowed. A forked child would spend the same budget again, so it is refused."""
        self._check_process()
        with self._lock:
            allowed(self._last, plus(self._last.total, entry.amount))
            self._append(entry)

    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[bool]]:
        """The end; nothing is stored in memory."""
        return self._last, [False] * len(entries)

    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Refuse: nothing is stored in memory."""
        raise LedgerError(
            "snapshot must be left out with a ledger in memory, which stores no results. "
            "Keep the ledger in a file to replay them: dpf.Ledger(..., path='clinic.ledger')."
        )

    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry that raises the limit."""
        self._check_process()
        with self._lock:
            self._append(replace(entry, limit=raised(self._last.limit)))

    def entries(self) -> list[tuple[int, Entry]]:
        """A copy of the list."""
        return list(enumerate(self._entries, start=1))

    def last(self) -> Mark:
        """The last total, and the limit."""
        return self._last

    def summary(self, count: int) -> Summary:
        """The summary for a printed ledger."""
        last, entries = self._last, list(self._entries)
        listed = [entry for entry in entries if entry.kind not in UNLISTED]
        return Summary(last, sum(entry.kind == "charge" for entry in entries), listed[-count:])

    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """Refuse, as `verify`."""
        raise AssertionError  # verify refused before

    def head_at(self, number: int) -> None:
        """None: there is no chain in memory."""

    def verify(self) -> Trail:
        """Refuse: there is no chain in memory."""
        raise LedgerError("a ledger in memory cannot be verified: it has no chain. Keep it in a file: path=...")

    def step(self, entry: Entry, decide: Decide) -> StreamState | None:
        """A step of a stream, for one thread after the other. In a forked child none is taken."""
        self._check_process()
        with self._lock:
            step = decide(self.stream(entry), self._last)
            if step is not None:
                if step[1] is not None:  # first, for whoever sees the entry looks for it
                    self._contents[len(self._entries) + 1] = step[1]
                self._append(step[0])
            return self.stream(entry)

    def contents(self, entry: Entry) -> dict[int, bytes]:
        """The contents that were stored of each period."""
        stream = self.stream(entry)
        return {} if stream is None else {period: self._contents[number] for period, number in stream.kept.items()}

    def stream(self, entry: Entry) -> StreamState | None:
        """The stream of an entry's name."""
        return stream_of(
            (number, "", step) for number, step in enumerate(self._entries, start=1) if step.stream == entry.stream
        )

    @property
    def identity(self) -> tuple[str, str]:
        """Refuse: there is no address either."""
        raise LedgerError(
            "a ledger in memory cannot be pickled: the copy would be a second budget for the same people."
        )

    def _append(self, entry: Entry) -> None:
        self._entries.append(entry)
        total = plus(self._last.total, entry.amount)
        self._last = Mark(len(self._entries), "", total, entry.limit or self._last.limit)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger in memory must be charged in the process that created it, not in a forked child. "
                "Release in the parent, or keep the ledger in a file: path=..."
            )
