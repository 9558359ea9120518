"""Transactions on SQLite and PostgreSQL: immediate, fully synchronous, and never alive in two processes.

This module also translates database errors for the caller: whether an error is temporary, and whether a charge may
stand. Errors of a server are recognized by their SQLSTATE. A refused connection has none, only a message.
"""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakMethod, WeakSet, finalize

from dpframe.errors import NOT_PLAIN, DpframeError, LedgerError, LedgerUnavailable, stands_in_the_way
from dpframe.ledger import locks
from dpframe.ledger.address import MAKE, Address
from dpframe.ledger.unbroken import Again

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

LONGEST = 300  # characters of a server's own message

UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, sqlite3.Error)
LOCKED = (
    "has been locked by another process for {wait:g} seconds: nothing was charged. Ask again when that process is done"
)
DAMAGED = (
    "is not one that dpframe made, or it is damaged ({said}). Put its newest intact copy back, and keep the head "
    "next to it, which knows what was spent; if that copy is an older one, call dpf.Ledger.recover(path, reason=...)"
)
OF_FILES = (  # the meaning of SQLite's messages
    (("locked", "busy"), LOCKED),
    (
        ("readonly", "read-only"),
        "cannot be written: nothing was charged. Let the file and its folder be written by this user",
    ),
    (("full", "disk I/O", "too large"), "cannot be written ({said}): no row was read. Make room on its disk"),
    (
        ("unable to open", "no such file"),
        "cannot be opened: there is no such file, or this user may not read it. Give the path of an existing ledger "
        f"to open it, or a name in an existing folder to make one: {MAKE}",
    ),
    (("not a database", "malformed", "decode", "no such table", "does not exist", "no such column"), DAMAGED),
)


@dataclass(frozen=True)
class Meaning:
    """A cause of errors: its SQLSTATEs or their prefixes, and its signs in the message of a refused connection."""

    states: tuple[str, ...]
    words: str
    kind: type[LedgerError] = LedgerError
    signs: str = r"(?!)"  # a regular expression; the default matches nothing


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
    """Return the error for a database's error; `committing` is true once a commit was requested."""
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
    """Return the error for a database with content that cannot be read."""
    words = DAMAGED if address.url is None else SPOILED
    return LedgerError(_words(words, type(error).__name__, address, wait, what))


def locked(address: Address, *, wait: float, what: str = "ledger") -> locks.Locked:
    """Return the error if the other threads of this process take too long."""
    return locks.Locked(_words(LOCKED, "", address, wait, what))


def _meaning(state: str | None, said: str, *, lost: bool) -> Meaning:
    for meaning in OF_SERVERS:
        if state.startswith(meaning.states) if state else lost and re.search(meaning.signs, said):
            return meaning
    return LOST if lost and not state else OTHER


def _said(cause: object, address: Address) -> str:
    """Return the server's own message: the first line with a cause, without the address, which our message states."""
    lines = [line.strip() for line in address.without_secrets(str(cause)).split("\n") if line.strip()]
    first = next((line for line in lines if " failed: " in line), lines[0] if lines else type(cause).__name__)
    return re.sub(r"^(FATAL|ERROR): +", "", first.rsplit(" failed: ", 1)[-1])[:LONGEST]


def _words(words: str, said: str, address: Address, wait: float, what: str) -> str:
    return f"the {what} at {address.shown} {words.format(said=said, wait=wait)}."


WAIT = 30.0  # seconds that a charge waits for charges of other processes
SILENCE = 15.0  # seconds after which a silent server counts as unreachable
CREATION = 0x6470667261  # PostgreSQL's advisory lock for creating the tables and writing a head

# SQLite's locks belong to a process, but a child that inherits an open transaction believes that it holds them.
# So a fork waits for transactions in files, and no connection to a file outlives it. It does not wait for a server.
_open: WeakSet[Database] = WeakSet()
_abandoned: list[Any] = []  # a parent's connections in a forked child: never used; the server gets no close message


def _hold() -> None:
    paused: list[Database] = []
    while True:  # `locks.opening` last: a thread that uses a database may need to open one more lock, for the head
        for database in list(_open):
            if database not in paused:
                database.pause()
                paused.append(database)
        locks.opening.acquire()
        if all(database in paused for database in list(_open)):
            return
        locks.opening.release()  # another database was opened meanwhile


def _release() -> None:
    locks.opening.release()
    for database in list(_open):
        database.resume()


def _renew() -> None:
    locks.forget()
    for database in list(_open):
        database.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)


class Database:
    """The tables of one ledger, over one connection that the threads of a process use in turn."""

    def __init__(self, address: Address, *, create: bool = False, what: str = "ledger") -> None:
        self.address = address
        self.what = what  # its name in errors
        self._create = create
        self._engine: Engine | None = None
        self._left: tuple[int, ...] | None = None  # the state of the file after the last transaction
        self._raw: Any = None  # the driver's own connection to a server
        self._start()
        with locks.opening:
            _open.add(self)

    def _start(self) -> None:
        self._turn = threading.RLock()  # admits one thread of this process at a time
        self._using = threading.Lock()  # held while the connection is used
        self._paused = False
        self._alone = False
        self._lock: int | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude the other threads of this process, and for a file all other processes that use dpframe."""
        turn = self._turn
        if not turn.acquire(timeout=WAIT):
            raise locked(self.address, wait=WAIT, what=self.what)
        try:
            if self._alone or self.address.file is None:
                yield
                return
            with locks.held(self.address.file, wait=WAIT, create=self._create) as self._lock:
                self._alone = True
                try:
                    yield
                finally:
                    self._alone = False
        finally:
            turn.release()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """Run a transaction, all or nothing. A writer excludes others, on a server only after `rows.terms_text`."""
        from sqlalchemy.exc import SQLAlchemyError

        committing = False
        with self.alone():
            try:
                with self._using, self._watched(), self._connected(write) as connection, connection.begin():
                    for words in self._manners(write):
                        connection.exec_driver_sql(words)
                    yield connection
                    self._check_lock(write)
                    committing = write
                self._left = self._state()
            except (DpframeError, OSError):
                self.close()
                raise
            except SQLAlchemyError as error:
                self.close()
                raise refusal(error, self.address, wait=WAIT, what=self.what, committing=committing) from None
            except UNREADABLE as error:
                self.close()
                raise spoiled(error, self.address, wait=WAIT, what=self.what) from None

    def _manners(self, write: bool) -> tuple[str, ...]:
        """Return the settings for PostgreSQL. SQLite always has one snapshot per transaction, and one writer."""
        if self.address.url is None:
            return ()
        # a writer waits for the row of the terms, and must then see what was written while it waited
        level = "READ COMMITTED, READ WRITE" if write else "REPEATABLE READ, READ ONLY"
        most = int(WAIT * 1000)
        limits = {"lock_timeout": most, "statement_timeout": most + 5000}
        limits |= {"idle_in_transaction_session_timeout": 2 * most}
        values = {name: f"{value}ms" for name, value in limits.items()}
        if write:
            values["synchronous_commit"] = "on"
        settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in values.items())
        return (f"SET TRANSACTION ISOLATION LEVEL {level}", f"SELECT {settings}")

    def _check_lock(self, write: bool) -> None:
        """Check before the commit that the lock is still the one that all others would take."""
        file = self.address.file
        if write and file is not None and (self._lock is None or not locks.is_held(file, self._lock)):
            raise LedgerError(
                f"the lock of the ledger at {self.address.shown} was removed or replaced while it was held: nothing "
                f"was charged. Leave {locks.path_of(file)!r} where it is, and ask again."
            )

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Cut the connection to a server if a transaction lasts longer than any of its statements may take."""
        if self.address.url is None:
            yield
            return
        timer = threading.Timer(WAIT + 2 * SILENCE, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        with suppress(Exception), socket.socket(fileno=os.dup(self._raw.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)  # a thread that waits for an answer now gets an error

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        self._left = None
        if self._engine is not None:
            self._engine.dispose()

    def pause(self) -> None:
        """Wait before a fork until no transaction in a file is under way, and close the idle connection."""
        self._paused = self._using.acquire(timeout=2 * WAIT if self.address.url is None else 0)
        if self._paused:
            self.close()

    def resume(self) -> None:
        """Resume work after a fork, in the parent."""
        if self._paused:
            self._paused = False
            self._using.release()

    def renew(self) -> None:
        """Start again after a fork, in the child: a connection in use belongs to the parent."""
        if not self._paused and self._engine is not None:
            _abandoned.append((self._engine, self._raw))
            with suppress(Exception):
                os.close(self._raw.fileno())
            self._engine, self._raw = None, None
        self._left = None
        self._start()

    def create(self, connection: Connection) -> None:
        """Create the tables that do not exist yet."""
        if self.address.url:  # on a server, two processes that create one table at once would both fail
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({CREATION})")
        tables().terms.metadata.create_all(connection)

    def names(self, connection: Connection) -> set[str]:
        """Return the names of the existing tables."""
        from sqlalchemy import inspect

        return set(inspect(connection).get_table_names())

    def _check_files(self) -> None:
        """Refuse a file that would block SQLite, such as a pipe. Open no file here: that would drop SQLite's locks."""
        file = self.address.file
        for place in () if file is None else (file, f"{file}-journal"):
            if stands_in_the_way(place):
                raise LedgerError(
                    f"the ledger at {file!r} cannot be opened: {place!r} {NOT_PLAIN}. Remove it, or take another path."
                )

    def _connected(self, write: bool) -> Connection:
        self._check_files()
        if self._engine is None:
            # the engine has only a weak reference to this object, so that an unused object is closed
            self._engine = _engine(self.address, WeakMethod(self._keep_raw), create=self._create)
            finalize(self, self._engine.dispose)
        if self._left is None or self._left != self._state():
            self._engine.dispose()  # others may have written or replaced the file: open it again
        return self._engine.connect().execution_options(dpframe_write=write)

    def _keep_raw(self, raw: Any) -> None:
        self._raw = raw

    def _state(self) -> tuple[int, ...]:
        """Return the state of the file, which changes when others write to it; empty for a server, which needs none."""
        if self.address.file is None:
            return ()
        try:
            status = os.stat(self.address.file)
        except OSError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class Tables:
    """The tables of a ledger: the terms (one row), the entries, and the stored answers."""

    terms: Table
    entries: Table
    answers: Table


@cache
def tables() -> Tables:
    """Describe the tables once, the same for SQLite and PostgreSQL."""
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


def _engine(address: Address, keep_raw: WeakMethod[Callable[[Any], None]], *, create: bool) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import QueuePool

    if address.file is None:
        return _server(address, keep_raw)
    file = address.file
    connect = lambda: _sqlite(file, create=create)  # noqa: E731
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=1)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("dpframe_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _server(address: Address, keep_raw: WeakMethod[Callable[[Any], None]]) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, InvalidRequestError
    from sqlalchemy.pool import QueuePool

    url = make_url(address.key)
    words = {name: value for name, value in _options(url.get_driver_name()).items() if name not in url.query}
    try:
        engine = create_engine(url, poolclass=QueuePool, pool_size=1, pool_pre_ping=True, connect_args=words)
    except (ImportError, ArgumentError, InvalidRequestError):
        raise LedgerError(
            "path must be a database that Python can reach: the driver of this URL is not installed. "
            "Install dpframe[postgres], and write postgresql+psycopg://..."
        ) from None

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _: Any, arguments: Any, named: Any) -> Any:
        raw = dialect.connect(*arguments, **named)
        if (keep := keep_raw()) is not None:
            keep(raw)
        return raw

    return engine


def _options(driver: str) -> dict[str, Any]:
    """Return options of libpq: the encoding, and limits for a silent network. The URL may override them.

    Without the encoding, psycopg takes that of the database, and reads bytes instead of text if it is SQL_ASCII.
    """
    if driver not in ("psycopg", "psycopg2"):
        return {}
    seconds = max(3, int(SILENCE))
    probes = {"keepalives": 1, "keepalives_idle": seconds // 3, "keepalives_interval": seconds // 3}
    named = {"client_encoding": "utf8", "connect_timeout": seconds}
    return {**named, **probes, "keepalives_count": 2, "tcp_user_timeout": 1000 * seconds}


def _sqlite(file: str, *, create: bool) -> Any:
    address = f"file:{quote(os.fsencode(file))}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(address, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        # the journal stays on disk and is overwritten in place, so that a charge need not wait until the disk has a new
        # folder entry or file size; while nothing is being charged, the ledger's file alone is the whole ledger
        connection.execute("PRAGMA journal_mode = PERSIST").close()
        connection.execute("PRAGMA synchronous = FULL").close()
        connection.execute("PRAGMA fullfsync = ON").close()
    except BaseException:
        connection.close()
        raise
    return connection
