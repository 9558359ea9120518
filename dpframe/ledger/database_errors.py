"""The meaning of a database's errors for the caller: whether they pass, and whether a charge may stand.

A server is understood by its SQLSTATE. A connection that it refuses has none, only words.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from dpframe.errors import LedgerError, LedgerUnavailable
from dpframe.ledger import locks
from dpframe.ledger.address import Address
from dpframe.ledger.unbroken import Again

LONGEST = 300  # characters of a server's own words

UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, sqlite3.Error)
LOCKED = "is locked by another process since {wait:g} seconds: nothing was charged. Ask again when that process is done"
DAMAGED = (
    "is not one that dpframe made, or it is damaged ({said}). Put its newest intact copy back, and keep the head "
    "next to it, which knows what was spent; if that copy is an older one, call dpf.Ledger.recover(path, reason=...)"
)
OF_FILES = (  # what SQLite's words mean
    (("locked", "busy"), LOCKED),
    (
        ("readonly", "read-only"),
        "cannot be written: nothing was charged. Let the file and its folder be written by this user",
    ),
    (("full", "disk I/O", "too large"), "cannot be written ({said}): no row was read. Make room on its disk"),
    (
        ("unable to open", "no such file"),
        "cannot be opened: there is no such file, or this user may not read it. Give the path of an existing ledger "
        "to open it, or a name in an existing folder to make one: dpf.Ledger(epsilon=..., path=...)",
    ),
    (("not a database", "malformed", "decode", "no such table", "does not exist", "no such column"), DAMAGED),
)


@dataclass(frozen=True)
class Meaning:
    """A cause: the SQLSTATEs, or their beginnings, that name it; the words that do where a connection was refused."""

    states: tuple[str, ...]
    words: str
    kind: type[LedgerError] = LedgerError
    signs: str = r"(?!)"  # a regular expression; this one matches nothing


FREE = "({said}): nothing was charged."
LOST = Meaning(
    ("08", "57P", "25P03"), f"cannot be reached {FREE} Ask again when its server can be reached", LedgerUnavailable
)
COMMIT = (
    "was lost from sight while a charge was committed ({said}): no row was read, and the charge may stand. Look at the "
    "ledger when its server can be reached, and ask again"
)
OF_SERVERS = (
    Meaning(("40001", "40P01"), f"was charged by others again and again {FREE} Ask again", Again),
    Meaning(("55P03",), LOCKED, locks.Locked),
    Meaning(
        ("28P01",),
        f"cannot be opened: the password is missing or wrong {FREE} Write the right one in the URL",
        signs="password authentication failed|no password supplied",
    ),
    Meaning(
        ("3D000",),
        f"cannot be opened: its server has no such database {FREE} Name another in the URL, or have it made",
        signs=r'database ".*" does not exist',
    ),
    Meaning(
        ("42501",),
        f"may not be used by this role {FREE} Have the rights granted to it, or name another role in the URL",
        signs="permission denied",
    ),
    Meaning(
        ("53300",),
        f"cannot be opened: no connection is left {FREE} Ask again when others have ended, or have more allowed",
        LedgerUnavailable,
        signs="too many|connection slots",
    ),
    Meaning(
        ("28",),
        f"cannot be opened: its server does not let this role in {FREE} Name another in the URL, or have it let in",
        signs=r'role ".*"|pg_hba\.conf|authentication failed',
    ),
    Meaning(
        ("25006", "0A000"),
        f"cannot be written: its server takes no changes {FREE} Name the one that does, and not its standby",
    ),
    Meaning(
        ("42P01", "42703", "3F000"),
        f"has lost a table, or a part of one {FREE} Restore the newest dump of its database; if that is an older one, "
        "call dpf.Ledger.recover(path, reason=...)",
    ),
    Meaning(("53100",), f"cannot be written {FREE} Make room on the disk of its server"),
    Meaning(("53",), f"cannot be used: its server is short of means {FREE} Ask again later", LedgerUnavailable),
    Meaning(("57014",), f"gave no answer in time {FREE} Ask again later", LedgerUnavailable),
    LOST,
)
OTHER = Meaning((), f"cannot be used {FREE} Ask the administrator of the database")
SPOILED = (
    "is not one that dpframe made, or it is damaged ({said}). Restore the newest dump of its database; if that is an "
    "older one, call dpf.Ledger.recover(path, reason=...)"
)


def refusal(
    error: Exception, address: Address, *, wait: float, what: str = "ledger", committing: bool = False
) -> LedgerError:
    """The error that a database's error means; `committing` is set from the moment at which a commit is asked for."""
    cause = getattr(error, "orig", None) or error
    if address.url is None:
        said = str(cause).strip().split("\n")[0][:80]
        for signs, words in OF_FILES:
            if any(sign in said for sign in signs):
                kind = locks.Locked if words is LOCKED else LedgerError
                return kind(_words(words, said, address, wait, what))
        rest = "cannot be used ({said}). No row was read. Ask the administrator of the database"
        return LedgerError(_words(rest, said, address, wait, what))
    said, state = _said(cause, address), getattr(cause, "sqlstate", getattr(cause, "pgcode", None))
    lost = type(error).__name__ in ("OperationalError", "InterfaceError")
    if committing and (lost if state is None else state.startswith(("08", "57P", "40003", "XX"))):
        return LedgerUnavailable(_words(COMMIT, said, address, wait, what), charged="unknown")
    meaning = _meaning(state, said, lost=lost)
    return meaning.kind(_words(meaning.words, said, address, wait, what))


def spoiled(error: Exception, address: Address, *, wait: float, what: str = "ledger") -> LedgerError:
    """The error of a database that holds something that cannot be read."""
    words = DAMAGED if address.url is None else SPOILED
    return LedgerError(_words(words, type(error).__name__, address, wait, what))


def locked(address: Address, *, wait: float, what: str = "ledger") -> locks.Locked:
    """The error where the other threads of this process take too long."""
    return locks.Locked(_words(LOCKED, "", address, wait, what))


def _meaning(state: str | None, said: str, *, lost: bool) -> Meaning:
    for meaning in OF_SERVERS:
        if state.startswith(meaning.states) if state else lost and re.search(meaning.signs, said):
            return meaning
    return LOST if lost and not state else OTHER


def _said(cause: object, address: Address) -> str:
    """The cause in the server's own words: the first line that has one, without the place, which is said before."""
    lines = [line.strip() for line in address.without_secrets(str(cause)).split("\n") if line.strip()]
    first = next((line for line in lines if " failed: " in line), lines[0] if lines else type(cause).__name__)
    return re.sub(r"^(FATAL|ERROR): +", "", first.rsplit(" failed: ", 1)[-1])[:LONGEST]


def _words(words: str, said: str, address: Address, wait: float, what: str) -> str:
    return f"the {what} at {address.shown} {words.format(said=said, wait=wait)}."
