"""The head of the chain, kept next to the ledger's file: it detects that an older copy of the file was restored.

The file has two slots, each with a head and its hash. They are written in turn, in place. If a loss of power tears a
write, the other slot stays intact with the previous head. A head may be behind the ledger, but never ahead, because
it is written only when its entry is on disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from dpframe import files
from dpframe.errors import STAYS, LedgerError, how_many, plain, said
from dpframe.ledger import reading
from dpframe.ledger.canonical import canonical, digest
from dpframe.ledger.entries import Mark
from dpframe.ledger.terms import Terms

SLOT = 4096  # bytes of a slot; a longer head gets a longer slot
WAYS = "dpf.Ledger.recover(path, reason=...)"
WAYS_ELSEWHERE = "dpf.Ledger.recover(path, head=..., reason=...)"


@dataclass(frozen=True)
class Head:
    """A head: the hash of the ledger's terms, and the end of its chain when the head was written."""

    ledger: str
    mark: Mark

    def slot(self) -> str:
        """Return the head as text: the hash of its facts, then the facts."""
        facts = canonical({"ledger": self.ledger, **self.mark.facts()})
        return f"{digest(facts)} {facts}"


def path_of(file: str) -> str:
    """Return the name of the head's file, which is next to the ledger's file."""
    return f"{file}.head"


def read(file: str, ways: str = WAYS) -> Head | None:
    """Return the head as it was last written; None if there is none.

    Read it *before* the ledger. A head is written only after its entry is committed, so a ledger that is read later and
    lacks the entry is an older copy. `ways` is the call that recovers the ledger.
    """
    return read_at(path_of(file), ways)


def read_at(path: str, ways: str = WAYS) -> Head | None:
    """Return the head in a file of this name, as `read` does."""
    try:
        with open(path, "rb", opener=plain) as opened:
            head = of_slots(opened.read())
    except FileNotFoundError:
        return None
    except OSError as error:  # the file may be intact, so the message does not advise to remove it
        raise LedgerError(
            f"the head of a ledger cannot be read from {path!r} ({said(error)}): nothing was charged. Let this user "
            "read it, and ask again."
        ) from None
    if head is None:
        raise LedgerError(
            f"the file {path!r} cannot be read as the head of a ledger. Restore its newest intact copy; "
            f"if there is none, rename it and call {ways}."
        )
    return head


def of_slots(content: bytes) -> Head | None:
    """Return the newest head in the content of a file; None if it holds no intact head."""
    try:
        slots = [facts for slot in content.split(b"\n") if (facts := _facts_of(slot))]
        newest = max(slots, key=lambda facts: reading.whole(facts["entry"]), default=None)
        return None if newest is None else Head(reading.hexadecimal(newest["ledger"]), Mark.of(newest))
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None


def write(file: str, terms: Terms, mark: Mark) -> None:
    """Write the head and wait until it is on disk. The caller excludes other writers."""
    new, old = Head(Mark.first(terms).head, mark), read(file)
    if new != old:
        write_at(path_of(file), new, old)


def write_at(path: str, new: Head, old: Head | None) -> None:
    """Write the head to a file of this name, in the place of `old`."""
    text, mark = new.slot().encode(), new.mark
    size = 0 if old is None else os.path.getsize(path) // 2
    if old is None or old.mark.entry >= mark.entry or len(text) >= size:  # after a recovery, no old head may stay
        _begin(path, text, max(SLOT, -(-len(text) * 2 // SLOT) * SLOT))
        return
    with open(path, "r+b", buffering=0, opener=plain) as opened:
        opened.seek(size)  # over the older slot; some entries have no head, so their numbers do not show which it is
        opened.seek(0 if of_slots(opened.read()) == old else size)
        opened.write(text.ljust(size - 1) + b"\n")
        files.synchronized(opened.fileno())


def _begin(path: str, text: bytes, size: int) -> None:
    """Write a new file with the head in both slots; at any moment, either the old or the new file exists, intact."""
    with open(f"{path}.new", "wb", opener=plain) as opened:
        files.give_rights(path, opened.fileno())  # those of the one that it replaces
        opened.write((text.ljust(size - 1) + b"\n") * 2)
        opened.flush()
        files.bring_to_disk(opened.fileno())
    files.put_in_place(f"{path}.new", path)


def _facts_of(slot: bytes) -> dict[str, Any] | None:
    """Return the facts in a slot; None if the slot was torn."""
    facts = files.facts_of_slot(slot)
    return None if facts is None else reading.facts_of(facts.decode())


def check_writable(file: str) -> None:
    """Refuse a head that cannot be written, before anything is charged."""
    check_writable_at(path_of(file))


def check_writable_at(path: str) -> None:
    """Refuse a file of this name if it cannot be written, as `check_writable` does."""
    try:
        with open(path, "r+b", buffering=0, opener=plain):
            return
    except OSError as error:
        raise not_writable(path, error) from None


def not_writable(path: str, error: OSError) -> LedgerError:
    """Return the refusal of a head that cannot be written."""
    return LedgerError(
        f"the head of the ledger cannot be written to {path!r} ({said(error)}): nothing was charged. "
        "Let this user write the file and its folder, and ask again."
    )


def unwritten(file: str, error: OSError) -> LedgerError:
    """Return the error for a head that `write` failed to write."""
    return unwritten_at(path_of(file), error)


def unwritten_at(path: str, error: OSError) -> LedgerError:
    """Return the error for a head in a file of this name, as `unwritten` does."""
    first = "Make room, and let the folder be written"
    if isinstance(error, FileNotFoundError):
        first = "Make its folder first"
    return LedgerError(f"the head of the ledger cannot be written to {path!r} ({said(error)}): {STAYS}. {first}.")


def hold(head: Head | None, terms: Terms, at: Mark, known: str | None, shown: str, elsewhere: str = "") -> None:
    """Refuse a ledger that does not contain its head; `known` is the ledger's own hash at the head's entry.

    The head may be behind: a process can die between its commit and the writing of the head. It can never be ahead.
    `elsewhere` is the place of the head if it is not next to the ledger.
    """
    kept = f"kept at {elsewhere}" if elsewhere else "kept next to it"
    ways = ways_of(terms.has_head or bool(elsewhere))
    if head is None:
        if at.entry:  # the first head is written before the ledger is committed, so a crash cannot cause this
            moved = "" if elsewhere else " and must be moved with it"
            raise LedgerError(
                f"the head of the ledger at {shown} is missing: it is {kept}{moved}. "
                f"Restore it; if it is lost, call {ways}."
            )
        return
    if head.ledger != Mark.first(terms).head:
        entries = how_many(head.mark.entry, "entry", "entries")
        raise LedgerError(
            f"the ledger at {shown} is not the one whose head, with {entries}, is {kept}. "
            "Put that ledger back, or take another path for this one."
        )
    if known != head.mark.head:
        raise older_copy(at, head.mark, shown, ways)


def older_copy(at: Mark, newest: Mark, shown: str, ways: str) -> LedgerError:
    """Return the refusal of a ledger that lacks the newest known place of its chain; `ways` is the call to recover."""
    entries = how_many(at.entry, "entry", "entries")
    differs = f"is an older copy: it holds {entries}, and entry {newest.entry} was written"
    if at.entry >= newest.entry:
        differs = f"continued from an older copy: its entry {newest.entry} is not the one that was written"
    return LedgerError(f"the ledger at {shown} {differs}. Restore the newest copy; if it is lost, call {ways}.")


def ways_of(elsewhere: bool) -> str:
    """Return the call that recovers a ledger; a head that is kept elsewhere must be named there."""
    return WAYS_ELSEWHERE if elsewhere else WAYS
