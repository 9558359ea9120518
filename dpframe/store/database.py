"""Transactions on SQLite and PostgreSQL: immediate, fully synchronous, and never alive in two processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakSet, finalize

from dpframe.errors import LedgerError
from dpframe.store.address import Address

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

WAIT = 30.0  # seconds that a charge waits for those of other processes
CREATION = 0x6470667261  # PostgreSQL's advisory lock of those who make the tables

# Held while a connection is used, and while the process forks, which closes the idle ones first. SQLite keeps its locks
# per process, and a child that inherits half of a transaction believes to hold them: no connection outlives a fork.
_guard = threading.RLock()
_open: WeakSet[Database] = WeakSet()


def _hold() -> None:
    _guard.acquire()
    for database in list(_open):
        database.close()


def _release() -> None:
    _guard.release()


def _renew() -> None:
    global _guard
    _guard = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)


class Locked(LedgerError):
    """Another process held the ledger for as long as was waited."""


class Database:
    """The tables of one ledger, over one connection, which the threads of a process use in turn."""

    def __init__(self, address: Address, *, create: bool = False) -> None:
        self.address = address
        self._create = create
        self._engine: Engine | None = None
        self._left: tuple[int, ...] | None = None  # the file, as the last transaction left it

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """All or nothing; a writer is alone from its first statement on."""
        from sqlalchemy.exc import DBAPIError

        try:
            with _guard:
                with self._connected(write) as connection, connection.begin():
                    for words in self._manners(write):
                        connection.exec_driver_sql(words)
                    yield connection
                self._left = self._state()
        except DBAPIError as error:
            raise _refusal(str(error.orig), self.address) from None
        except UnicodeDecodeError:  # SQLite's own words of a damaged file quote its bytes, which may be no text
            raise _refusal("its tables do not decode as text", self.address) from None

    def _manners(self, write: bool) -> tuple[str, ...]:
        """What PostgreSQL must be told; SQLite has one snapshot a transaction, and one writer, anyway."""
        if self.address.url is None:
            return ()
        if not write:
            return ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",)
        return ("SET LOCAL synchronous_commit = on", f"SET LOCAL lock_timeout = {int(WAIT * 1000)}")

    def close(self) -> None:
        """Let go of the connection; the next transaction makes another."""
        self._left = None
        if self._engine is not None:
            self._engine.dispose()

    def create(self, connection: Connection) -> None:
        """Make the tables where they are not there yet."""
        if self.address.url:  # there, two who make one table at once would both fail
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION})")
        tables().terms.metadata.create_all(connection)

    def names(self, connection: Connection) -> set[str]:
        """The tables that are there."""
        from sqlalchemy import inspect

        return set(inspect(connection).get_table_names())

    def _connected(self, write: bool) -> Connection:
        if self._engine is None:
            self._engine = _engine(self.address, create=self._create)
            finalize(self, self._engine.dispose)
            _open.add(self)
        if self._left is None or self._left != self._state():
            self._engine.dispose()  # somebody else wrote, or put another file there: see it as it is
        return self._engine.connect().execution_options(dpframe_write=write)

    def _state(self) -> tuple[int, ...]:
        """What tells whether anybody else wrote to the file; nothing for a server, which tells by itself."""
        if self.address.file is None:
            return ()
        try:
            found = os.stat(self.address.file)
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class Tables:
    """The terms (one row), the entries, and the answers that were stored."""

    terms: Table
    entries: Table
    answers: Table


@cache
def tables() -> Tables:
    """Described once: SQLite and PostgreSQL get the same."""
    from sqlalchemy import CheckConstraint, Column, Index, Integer, LargeBinary, MetaData, Table, Text

    metadata = MetaData()
    one = Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False)
    terms = Table("dpframe_ledger", metadata, one, Column("terms", Text, nullable=False))
    entries = Table(
        "dpframe_entries",
        metadata,
        Column("entry", Integer, primary_key=True, autoincrement=False),
        Column("body", Text, nullable=False),
        Column("head", Text, nullable=False),
        Column("name", Text),
    )
    named = entries.c.name.is_not(None)
    Index("dpframe_names", entries.c.name, sqlite_where=named, postgresql_where=named)
    answers = Table(
        "dpframe_answers",
        metadata,
        Column("entry", Integer, primary_key=True, autoincrement=False),
        Column("content", LargeBinary, nullable=False),
    )
    return Tables(terms, entries, answers)


def _engine(address: Address, *, create: bool) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import QueuePool

    if address.file is None:
        try:
            return create_engine(address.key, poolclass=QueuePool, pool_size=1, pool_pre_ping=True)
        except ImportError:
            raise LedgerError(
                "path must be a database that Python can reach: the driver of this URL is not installed. "
                "Install dpframe[postgres], and write postgresql+psycopg://..."
            ) from None
    file = address.file
    connect = lambda: _sqlite(file, create=create)  # noqa: E731
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=1)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("dpframe_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _sqlite(file: str, *, create: bool) -> Any:
    import sqlite3

    address = f"file:{quote(file)}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(address, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        # the journal stays where it is on disk and only its data changes, so that a charge waits for no folder and no
        # file's length; the ledger's file alone is the whole ledger whenever nothing is being charged
        connection.execute("PRAGMA journal_mode = PERSIST").close()
        connection.execute("PRAGMA synchronous = FULL").close()
        connection.execute("PRAGMA fullfsync = ON").close()
    except BaseException:
        connection.close()
        raise
    return connection


LOCKS = ("locked", "busy", "lock timeout")
REASONS = (  # what SQLite's and PostgreSQL's words mean for the caller
    (
        LOCKS,
        "is locked by another process since {wait:g} seconds: nothing was charged. Ask again when that process is done",
    ),
    (
        ("readonly", "read-only"),
        "cannot be written: nothing was charged. Let the file and its folder be written by this user",
    ),
    (
        ("connection", "server closed", "shutting down", "starting up", "consuming input failed"),
        "cannot be reached ({said}): no row was read. A charge that was on its way may stand. Ask again when the "
        "server is back",
    ),
    (("full", "disk I/O", "too large"), "cannot be written ({said}): no row was read. Make room on its disk"),
    (
        ("unable to open", "no such file"),
        "cannot be opened: there is no such file, or this user may not read it. Give the path of an existing ledger "
        "to open it, or a name in an existing folder to make one: dpf.Ledger(epsilon=..., path=...)",
    ),
    (
        ("not a database", "malformed", "decode", "no such table", "does not exist", "no such column"),
        "is not one that dpframe made, or it is damaged ({said}). Put its newest copy back, or take another path",
    ),
)


def _refusal(said: str, address: Address) -> LedgerError:
    said = said.strip().split("\n")[0][:80]
    for signs, words in REASONS:
        if any(sign in said for sign in signs):
            kind = Locked if signs is LOCKS else LedgerError
            return kind(f"the ledger at {address.shown} {words.format(said=said, wait=WAIT)}.")
    return LedgerError(
        f"the ledger at {address.shown} cannot be used ({said}). No row was read. Ask whoever runs the database."
    )
