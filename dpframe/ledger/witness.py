"""A head kept elsewhere: with it, any process detects that a ledger was restored along with the files next to it.

It is one text on the last entry: in a file, in another database, or in an object of the caller's. Like the head next
to a file, it is written after the commit and never before, while the ledger is locked. It may fall behind. A slow
writer never sets it back, because the writer first reads the stored head, and a later head stays.

Two copies of a ledger lock different files, and may charge at once. So a writer checks again, while it alone writes
the head, that the ledger contains the stored head. The second copy thus detects the first before it reads a row.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol, runtime_checkable

from dpframe.errors import InvalidArgument, InvalidType, LedgerError, LedgerUnavailable, how_many, named
from dpframe.ledger import database as databases
from dpframe.ledger import heads, locks
from dpframe.ledger.address import Address
from dpframe.ledger.database import Database
from dpframe.ledger.entries import Mark
from dpframe.ledger.heads import Head
from dpframe.ledger.terms import Terms


@runtime_checkable
class Keeper(Protocol):
    """An object that stores one text, for example in a secret store, a bucket or a service."""

    def read(self) -> str | None:
        """Return the text that was last written; None if there is none."""

    def write(self, text: str, /) -> None:
        """Replace the stored text by this one; return only after it is stored."""


HeadOption = str | PathLike[str] | Keeper
WHICH = "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), pg_postmaster_start_time()"
SCHEMAS = (  # those in the search path that have a table for a head, in the order in which the server looks
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relname = 'dpframe_head' "
    "AND nspname = ANY (current_schemas(true)) ORDER BY array_position(current_schemas(true), nspname)"
)
TABLE = "CREATE TABLE dpframe_head (one integer PRIMARY KEY CHECK (one = 1), head text NOT NULL)"
WRITE = "INSERT INTO dpframe_head VALUES (1, %(head)s) ON CONFLICT (one) DO UPDATE SET head = excluded.head"
Next = Callable[[Head | None], Head | None]  # from the stored head to its replacement; None keeps the stored one
Hold = Callable[[Head | None], None]  # refuses a stored head that the ledger does not contain


@dataclass(frozen=True)
class Witness:
    """A place where a head is stored."""

    given: Any  # the caller's argument, with a full path; a pickle carries it
    shown: str
    read: Callable[[], Head | None]
    exchange: Callable[[Next], None]
    check_writable: Callable[[], None]
    database: Database | None = None  # only for a place on a server

    def check_elsewhere(self, ledger: Address, connection: Any) -> None:
        """Refuse the ledger's own database, whatever the URL: a server may have many names."""
        if self.database is None or ledger.file is not None:
            return
        here = connection.exec_driver_sql(WHICH).one()
        with self.database.transaction(write=False) as other:
            if other.exec_driver_sql(WHICH).one() == here:
                raise _beside(self.shown)

    def advance(self, terms: Terms, mark: Mark, *, anew: bool = False, hold: Hold | None = None) -> None:
        """Store the head of a place in the chain, unless a later one is stored; with `anew`, always store it.

        `hold` checks the stored head while nobody else writes it.
        """
        new = Head(Mark.first(terms).head, mark)

        def following(old: Head | None) -> Head | None:
            if hold is not None:
                hold(old)
            stays = old is not None and old.ledger == new.ledger and old.mark.entry >= mark.entry
            return None if old == new or (stays and not anew) else new

        self.exchange(following)


def witness_of(head: object, ledger: Address) -> Witness | None:
    """Return the place that the caller names for a head; it must not be restored along with the ledger."""
    if head is None:
        return None
    if not isinstance(head, (str, PathLike)):
        if isinstance(head, Keeper) and not isinstance(head, type):
            return _of_object(head)
        raise InvalidType(
            "head must be a path, the URL of a database, or an object with read() and write(text), not "
            f"{named(head)}. Write for instance head='/mnt/other/clinic.head'."
        )
    address = Address.of(head, "head")
    if address.is_beside(ledger):
        raise _beside(address.shown)
    return _of_server(address) if address.file is None else _of_file(address.file)


def _beside(shown: str) -> InvalidArgument:
    return InvalidArgument(
        f"head must be kept elsewhere than the ledger, and {shown} is put back along with it. Name a file on another "
        "disk, or another database."
    )


def _of_file(path: str) -> Witness:
    """Return a place in a file with two slots that are written in turn, like the head next to a ledger."""

    def exchange(following: Next) -> None:
        try:
            with locks.held_head(path, wait=databases.WAIT):
                old = heads.read_at(path, heads.WAYS_ELSEWHERE)
                if (new := following(old)) is not None:
                    heads.write_at(path, new, old)
        except OSError as error:
            raise heads.unwritten_at(path, error) from None

    def check_writable() -> None:
        try:
            with locks.held_head(path, wait=databases.WAIT):
                heads.check_writable_at(path)
        except OSError as error:
            raise heads.not_writable(path, error) from None

    def read() -> Head | None:
        return heads.read_at(path, heads.WAYS_ELSEWHERE)

    return Witness(path, repr(path), read, exchange, check_writable)


def _of_server(address: Address) -> Witness:
    """Return a place in another database: a table with one row."""
    database = Database(address, what="head")

    def has_table(connection: Any) -> bool:
        schemas = list(connection.exec_driver_sql(SCHEMAS).scalars())
        if len(schemas) > 1:
            raise _two_tables(schemas, address.shown)
        return bool(schemas)

    def kept(connection: Any) -> Head | None:
        if not has_table(connection):
            return None
        text = connection.exec_driver_sql("SELECT head FROM dpframe_head").scalar()
        return None if text is None else _whole(text, address.shown)

    def read() -> Head | None:
        with database.transaction(write=False) as connection:
            return kept(connection)

    def exchange(following: Next) -> None:
        with database.transaction(write=True) as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({databases.CREATION})")
            if (new := following(kept(connection))) is None:
                return
            if not has_table(connection):  # even with IF NOT EXISTS, CREATE would need a right on the schema
                connection.exec_driver_sql(TABLE)
            connection.exec_driver_sql(WRITE, {"head": new.slot()})

    def check_writable() -> None:
        with database.transaction(write=True) as connection:  # a standby refuses it
            connection.exec_driver_sql(f"EXPLAIN {WRITE}", {"head": ""})  # checks the rights, and writes nothing
            connection.rollback()  # an error at a commit would say that a charge may stand

    return Witness(address.key, address.shown, read, exchange, check_writable, database)


def _two_tables(schemas: list[str], shown: str) -> LedgerError:
    """Return the error for a role that sees more than one head: the first in its search path may be an older one."""
    listed = ", ".join(map(repr, schemas))
    return LedgerError(
        f"the head at {shown} must be one table, but this role sees dpframe_head in the schemas {listed}: nothing was "
        "charged. Drop all but the one with the newest entry."
    )


def _of_object(keeper: Keeper) -> Witness:
    """Return a place in an object of the caller's. Messages name only the type of its errors, to show no secret."""
    shown = named(keeper)

    def failed(error: Exception, words: str) -> LedgerError:
        kind = LedgerUnavailable if isinstance(error, (ConnectionError, TimeoutError)) else LedgerError
        return kind(
            f"the head of the ledger cannot be {words}: nothing was charged. Mend what {type(error).__name__} says."
        )

    def read() -> Head | None:
        try:
            text = keeper.read()
        except Exception as error:
            raise failed(error, f"read from {shown}") from None
        if text is not None and not isinstance(text, str):
            raise LedgerError(
                f"the head of the ledger cannot be read from {shown}: nothing was charged. Its read() must give the "
                f"text that was last written or None, not {named(text)}."
            )
        return None if text is None else _whole(text, shown)

    def exchange(following: Next) -> None:
        if (new := following(read())) is None:
            return
        try:
            keeper.write(new.slot())
        except Exception as error:
            raise failed(error, f"written to {shown}") from None
        following(read())  # no lock is held here: this detects a copy that replaced the new head meanwhile

    return Witness(keeper, shown, read, exchange, lambda: None)


def _whole(text: str, shown: str) -> Head:
    head = heads.of_slots(text.encode("utf-8", "replace"))
    if head is None:
        raise LedgerError(
            f"the text at {shown} cannot be read as the head of a ledger. Restore its newest intact copy; if there is "
            f"none, move it away and call {heads.WAYS_ELSEWHERE}."
        )
    return head


Identity = tuple[str, str]  # the place of the address, and the hash of the terms

_newest: dict[Identity, Mark] = {}
_turn = threading.Lock()


def newest(identity: Identity) -> Mark | None:
    """Return the newest mark that was seen. Call it *before* reading the ledger, which may only have grown since."""
    return _newest.get(identity)


def note(identity: Identity, mark: Mark) -> None:
    """Remember a committed place, unless a later one is known."""
    with _turn:
        known = _newest.get(identity)
        if known is None or known.entry < mark.entry:
            _newest[identity] = mark


def go_back(identity: Identity, mark: Mark) -> None:
    """Forget every later place, because a recovery has charged it."""
    with _turn:
        _newest[identity] = mark


def hold_address(address: Address, beginning: str | None) -> None:
    """Refuse another ledger, or none, at a server address where this process saw one. A file is checked by its head."""
    if address.url is None:
        return
    with _turn:
        before = [(at, mark.entry) for (place, at), mark in _newest.items() if place == address.place and mark.entry]
    for at, entries in before:
        if at != beginning:
            held = how_many(entries, "entry", "entries")
            raise LedgerError(
                f"another ledger was at {address.shown} before, with {held}, and its database was dropped or "
                "replaced. Put that one back; for other people's data take another database."
            )


def _renew() -> None:
    global _turn
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
