"""The head of the chain, kept beside the ledger's file: it tells when an older copy of the file was put back."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from dpframe.errors import LedgerError
from dpframe.store.entries import Mark, Terms, canonical, exact_amount, exact_texts


@dataclass(frozen=True)
class Head:
    """What was last written beside the file: of which ledger, how many entries, their hash and their sum."""

    ledger: str
    mark: Mark


def path_of(file: str) -> str:
    """The file beside the file."""
    return f"{file}.head"


def read(file: str) -> Head | None:
    """The head as it was last written, None where there is none.

    Read it *before* the ledger: whatever is written here was committed there, so a ledger that is read later and knows
    less is an older copy.
    """
    path = path_of(file)
    try:
        with open(path, encoding="ascii") as opened:
            found = json.load(opened)
        return Head(found["ledger"], Mark(found["entry"], found["head"], exact_amount(found["spent"])))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerError(
            f"the file {path!r} cannot be read as the head of a ledger. Put its newest intact copy back; "
            "or, if there is none, remove it and call dpf.Ledger.recover(path, reason=...)."
        ) from None


def write(file: str, terms: Terms, mark: Mark) -> None:
    """Write so that at any moment, also after a loss of power, the old head or the new one is there, whole.

    The folder is not synchronized: a head that falls back by a loss of power is behind, and that is allowed.
    """
    path = path_of(file)
    facts = {"ledger": terms.mark().head, "entry": mark.entry, "head": mark.head, "spent": exact_texts(mark.total)}
    with open(f"{path}.new", "w", encoding="ascii") as opened:
        opened.write(canonical(facts) + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(f"{path}.new", path)


def unwritten(file: str, error: OSError) -> LedgerError:
    """The refusal where `write` failed."""
    return LedgerError(
        f"the head of the ledger cannot be written to {path_of(file)!r} ({error.strerror}): no row was read, but what "
        "was charged stays charged. Make room, and let the folder be written."
    )


def hold(head: Head | None, terms: Terms, at: Mark, known: str | None, shown: str) -> None:
    """Refuse a ledger that does not contain its head; `known` is the ledger's own hash at the head's entry.

    The head may be behind: a process can die between its commit and the writing of the head. It can never be ahead.
    """
    if head is None:
        if at.entry:  # the first head is written before the ledger is committed, so no crash explains this
            raise LedgerError(
                f"the head of the ledger at {shown} is missing: it is kept beside it and must be moved with it. "
                "Put it back; or, if it is lost, call dpf.Ledger.recover(path, reason=...)."
            )
        return
    if head.ledger != terms.mark().head:
        raise LedgerError(
            f"the ledger at {shown} is not the one whose head, with {head.mark.entry} entries, is kept beside it. "
            "Put that ledger back, or take another path for this one."
        )
    if known != head.mark.head:
        raise LedgerError(
            f"the ledger at {shown} is an older copy: it holds {at.entry} entries, and entry {head.mark.entry} was "
            "written. Put the newest copy back; or, if it is lost, call dpf.Ledger.recover(path, reason=...), which "
            "charges what the copy does not know."
        )
