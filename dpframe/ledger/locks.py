"""The lock of a ledger in a file: a file next to it, locked by `flock` during every transaction.

SQLite's own locks are not enough. When a process closes any of its descriptors of a file, POSIX releases all locks of
the process on that file. So a backup in a thread of a charging process would let others charge at the same time, and
let readers undo a write in progress. `flock` belongs to one opening of one file, and nothing else opens this file.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dpframe.errors import LedgerError, LedgerUnavailable, plain, said
from dpframe.files import MAGIC, give_rights
from dpframe.ledger.unbroken import go_on

FIRST, LONGEST = 0.0005, 0.004  # first and longest pause in seconds between two tries to take a lock
opening = threading.Lock()  # held while a lock is opened, and while the process forks
open_ones: set[int] = set()  # descriptors that a forked child must close, or it would hold its parent's locks


class Locked(LedgerUnavailable):
    """Another process held the ledger for the whole waiting time."""


def path_of(file: str) -> str:
    """Return the name of the lock's file, which is next to the ledger's file."""
    return f"{file}.lock"


@contextmanager
def held(file: str, *, wait: float, create: bool) -> Iterator[int | None]:
    """Hold the ledger's lock and yield its descriptor; None without a ledger, or if a read-only user cannot open it."""
    opened = _taken(file, wait, lambda: _opened(file, create=create))
    try:
        yield opened
    finally:
        if opened is not None:
            _let_go(opened)


@contextmanager
def held_head(file: str, *, wait: float) -> Iterator[None]:
    """Hold the lock of a head that is kept elsewhere, which is the only lock that copies of a ledger share."""
    opened = _taken(file, wait, lambda: _open(file, os.O_RDWR | os.O_CREAT), "head of the ledger")
    try:
        yield
    finally:
        if opened is not None:
            _let_go(opened)


def is_held(file: str, opened: int) -> bool:
    """Return whether the lock that is held is still the one that others would take."""
    try:
        return os.path.samestat(os.fstat(opened), os.stat(path_of(file), follow_symlinks=False))
    except OSError:
        return False


def _taken(file: str, wait: float, opener: Callable[[], int | None], what: str = "ledger") -> int | None:
    until = time.monotonic() + wait
    while True:
        go_on()
        opened = opener()
        if opened is None:
            return None
        try:
            _wait_for(opened, file, until, wait, what)
            if is_held(file, opened):  # otherwise it was removed or replaced meanwhile: take the current one
                return opened
        except BaseException:
            _let_go(opened)
            raise
        _let_go(opened)
        if time.monotonic() >= until:
            raise _locked(file, wait, what)


def _wait_for(opened: int, file: str, until: float, wait: float, what: str) -> None:
    pause = FIRST
    while True:
        try:
            if _try(opened):
                return
        except OSError as error:
            raise LedgerError(
                f"the {what} at {file!r} cannot be locked ({said(error)}): nothing was charged. Its disk offers no "
                f"locks. Keep the {what} on a local disk, or in PostgreSQL."
            ) from None
        left = until - time.monotonic()
        if left <= 0:
            raise _locked(file, wait, what)
        time.sleep(min(pause, left))
        go_on()
        pause = min(2 * pause, LONGEST)


def _locked(file: str, wait: float, what: str) -> Locked:
    return Locked(
        f"the {what} at {file!r} has been locked by another process for {wait:g} seconds: nothing was charged. "
        "Ask again when that process is done."
    )


def _opened(file: str, *, create: bool) -> int | None:
    """Open the lock's file for this transaction; create it next to a ledger that has none."""
    refused: OSError | None = None
    for flags in (os.O_RDWR, os.O_RDONLY):  # read access is enough to hold the lock
        try:
            return _open(file, flags)
        except OSError as error:
            refused = error
    if isinstance(refused, FileNotFoundError):
        if not _may_have_one(file, create=create):
            return None  # opening the ledger then reports that there is none
        try:
            return _open(file, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            refused = error
    if os.path.exists(file) and not _writable(file):
        return None  # this user only reads, and SQLite's own lock keeps a read consistent
    raise LedgerError(
        f"the lock of the ledger at {file!r} cannot be opened ({path_of(file)!r}: "
        f"{said(refused) if refused else ''}): nothing was charged. Give every user of the ledger write access to this "
        "file and its folder."
    )


def _open(file: str, flags: int) -> int:
    with opening:
        opened = plain(path_of(file), flags | getattr(os, "O_NOFOLLOW", 0))
        open_ones.add(opened)
    if flags & os.O_CREAT:
        give_rights(file, opened)
    return opened


def _writable(file: str) -> bool:
    """Return whether this user can write the ledger, and SQLite its journal next to it."""
    return os.access(file, os.W_OK) and os.access(os.path.dirname(file), os.W_OK)


def _may_have_one(file: str, *, create: bool) -> bool:
    """Return whether a lock may be created here: next to a ledger or a new one, never next to another kind of file."""
    try:
        with open(file, "rb", opener=plain) as opened:
            start = opened.read(len(MAGIC))
    except FileNotFoundError:
        return create and os.path.isdir(os.path.dirname(file))
    except OSError:
        return False
    return start == MAGIC or (create and not start)


if sys.platform == "win32":
    import msvcrt

    PLACE = 1 << 30  # beyond the end: a lock there lets others copy the empty file

    def _try(opened: int) -> bool:
        os.lseek(opened, PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(opened, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _free(opened: int) -> None:
        os.lseek(opened, PLACE, os.SEEK_SET)
        msvcrt.locking(opened, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(opened: int) -> bool:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _free(opened: int) -> None:
        fcntl.flock(opened, fcntl.LOCK_UN)  # explicitly, since a forked child may still have the file open


def _let_go(opened: int) -> None:
    try:
        with suppress(OSError):  # the lock was not held
            _free(opened)
    finally:
        open_ones.discard(opened)
        _close(opened)


def _close(opened: int) -> None:
    """Close a lock. If the system reports an error, the descriptor is closed all the same, and the file is empty."""
    with suppress(OSError):
        os.close(opened)


def forget() -> None:
    """Close the parent's locks in a forked child, without releasing them."""
    global opening
    opening = threading.Lock()
    for opened in tuple(open_ones):
        _close(opened)
    open_ones.clear()
