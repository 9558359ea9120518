"""Files written completely or not at all, with the rights of the files that they replace, and never over a ledger."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from dpframe.errors import (
    NOT_PLAIN,
    InvalidArgument,
    InvalidType,
    NoPlainFile,
    OutputFailed,
    plain,
    said,
    shown,
    stands_in_the_way,
)
from dpframe.noise import nonce

MAGIC = b"SQLite format 3\0"
BESIDE = ("", ".head", ".head.new", ".lock", "-journal", "-wal", "-shm")  # the endings of the names of a ledger's files
OF_KEPT = (*BESIDE, ".new")  # the same, and the new file of a head that is kept elsewhere
PAGES, TABLES = (".html", ".htm"), (".parquet", ".pq")  # the endings of the files that dpframe writes
OF_OTHERS = (
    ".csv",
    ".docx",
    ".feather",
    ".ipynb",
    ".jpg",
    ".json",
    ".md",
    ".pdf",
    ".png",
    ".svg",
    ".tsv",
    ".txt",
    ".xlsx",
)
LARGEST_HEAD = 2**20  # bytes; of a larger file, only the first are read
LONG = 100  # bytes; the part of a longer name is named by a hash, since a folder may allow only 143 bytes
OLD = 3600.0  # seconds after which a part that a killed process left is removed
PATIENCE = 2.0  # seconds to wait on Windows until others close the file to replace

if sys.platform == "darwin":
    import fcntl

    def synchronized(opened: int) -> None:
        """Wait until a file is on the disk; on macOS, `fsync` ends before that."""
        try:
            fcntl.fcntl(opened, fcntl.F_FULLFSYNC)
        except OSError:  # the disk does not support it
            os.fsync(opened)

else:
    synchronized = getattr(os, "fdatasync", os.fsync)  # in place, only data changes


def bring_to_disk(opened: int) -> None:
    """Wait until a new file and its size are on the disk."""
    os.fsync(opened)
    synchronized(opened)


def put_in_place(new: str, path: str) -> None:
    """Replace a file by another in one step, and wait until the folder's entry is on the disk."""
    _put(new, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _put(new: str, path: str) -> None:
    """Replace one file by another. Windows refuses while another program, such as a backup, has the other open."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            os.replace(new, path)
            return
        except PermissionError:
            if os.name != "nt" or time.monotonic() >= until:
                raise
        time.sleep(0.01)


def give_rights(file: str, opened: int) -> None:
    """Give an open file the rights of another, so that users who may write one can write or lock the other."""
    try:
        known = os.stat(file)
        if hasattr(os, "fchown"):  # Windows has fchmod since Python 3.13, but no owners
            os.fchmod(opened, stat.S_IMODE(known.st_mode) & 0o666)
            os.fchown(opened, -1, known.st_gid)
    except OSError:  # it does not exist yet, or this user may not: a user who cannot open it gets an error
        return


def checked_output(
    argument: str, path: str | PathLike[str], *read: str | PathLike[str], endings: tuple[str, ...] = ()
) -> str:
    """Return the real name of a file to write, behind all links, and refuse to replace what must stay.

    That is anything but a plain file, any file of a ledger, and the files that are `read`, under any name. A name that
    ends as a file of another format than that of the `endings` is refused too; any other ending, or none, is not.
    """
    if not isinstance(path, (str, PathLike)):
        raise InvalidType(f"{argument} must be the name of a file, not {shown(path)}. Write for instance 'wards.html'.")
    name, real = shown(os.path.basename(path)), os.path.realpath(path)
    if stands_in_the_way(real) or os.path.islink(real):  # a link to itself
        raise InvalidArgument(f"{argument} must be a plain file or a new one, and {name} {NOT_PLAIN}. Name another.")
    check_no_ledger(argument, path)
    if any(os.path.realpath(one) == real for one in read) or identity(real) in {*map(identity, read)} - {None}:
        raise InvalidArgument(
            f"{argument} must be another file than those that are read, not {name}. Name a file of its own."
        )
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if endings and ending not in endings and ending in (*PAGES, *TABLES, *OF_OTHERS):
        raise InvalidArgument(f"{argument} must end in {endings[0]}, not {name}. Rename it.")
    return real


def check_no_ledger(argument: str, path: str | PathLike[str]) -> None:
    """Refuse to write over, or append to, a file of a ledger."""
    name = shown(os.path.basename(path))
    try:
        is_kept = _is_of_ledger(os.path.realpath(path))
    except OSError as error:
        raise InvalidArgument(
            f"{argument} must be a new file, or one that can be read to see that it is no ledger, not {name} "
            f"({said(error)}). Name another."
        ) from None
    if is_kept:
        raise InvalidArgument(
            f"{argument} must be another file than a ledger, its head, and what is next to them, not {name}. "
            "Name a file of its own."
        )


def _is_of_ledger(file: str) -> bool:
    """Return whether a file is a ledger or its head, or has a name that SQLite or a head of one needs."""
    if os.path.exists(f"{file}.head"):
        return True
    of_ledgers = [file.removesuffix(end) for end in OF_KEPT if file.endswith(end)]
    return any(_start(one, len(MAGIC)) == MAGIC or _is_head(one) for one in of_ledgers)


def _is_head(file: str) -> bool:
    """Return whether a line of a file is a hash with its content, like the slots of a head."""
    return any(facts_of_slot(line) is not None for line in _start(file, LARGEST_HEAD).split(b"\n"))


def facts_of_slot(line: bytes) -> bytes | None:
    """Return the facts after the hash in a slot of a head, or None if it is torn or not a slot."""
    stated, _, facts = line.rstrip().partition(b" ")
    return facts if stated == hashlib.sha256(facts).hexdigest().encode() else None


def _start(file: str, size: int) -> bytes:
    """Return the first bytes of a plain file, or no bytes if there is none."""
    try:
        with open(file, "rb", opener=plain) as opened:
            return opened.read(size)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, NoPlainFile):
        return b""


def identity(file: str | PathLike[str]) -> tuple[int, int] | None:
    """Return the numbers that identify a file under any name, or None if there is none."""
    try:
        known = os.stat(file)
    except OSError:
        return None
    return known.st_dev, known.st_ino


def write_whole(
    argument: str, path: str | PathLike[str], write: Callable[[Path], object], endings: tuple[str, ...] = ()
) -> str:
    """Write next to a file, bring it to disk, put it in place in one step, and return the hash of the content.

    A link stays, and its target is replaced. The part next to the file has a random name, so that no other process
    writes to it: all containers of one folder may have the process number 1.
    """
    target = Path(checked_output(argument, path, endings=endings))
    part = target.with_name(f".{_begun(target.name)}.{nonce()[:12]}.part")
    try:
        _remove_old(target)
        rights = 0o600 if target.exists() else 0o666  # no other user may read it before it has the target's rights
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights))
        write(part)
        with part.open("rb+") as file:
            written = hashlib.file_digest(file, "sha256").hexdigest()
            give_rights(str(target), file.fileno())
            bring_to_disk(file.fileno())
        put_in_place(str(part), str(target))
        return written
    except OSError as error:
        first = "Make its folder first" if isinstance(error, FileNotFoundError) else "Make room, let this user write"
        failed = OutputFailed(f"{target.name} cannot be written ({said(error)}). {first}, or name another.")
        failed.strerror = said(error)
        raise failed from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_page(argument: str, path: str | PathLike[str], text: str) -> None:
    """Write an HTML page completely or not at all."""
    write_whole(argument, path, lambda part: part.write_text(text, encoding="utf-8"), PAGES)


def write_to(argument: str, place: Any, write: Callable[[Any], object], endings: tuple[str, ...] = ()) -> None:
    """Write to a path completely or not at all, or directly to an open file of the caller."""
    if hasattr(place, "write"):
        write(place)
    else:
        write_whole(argument, place, write, endings)


def _begun(name: str) -> str:
    """Return the beginning of the name of a part: the name of its file, or its hash if it is too long."""
    return name if len(os.fsencode(name)) <= LONG else hashlib.sha256(os.fsencode(name)).hexdigest()


def _remove_old(path: Path) -> None:
    for begun in {path.name, _begun(path.name)}:  # dpframe 0.2 wrote long names in full
        for part in path.parent.glob(f".{glob.escape(begun)}.*.part"):
            with suppress(OSError):
                if time.time() - part.stat().st_mtime > OLD:
                    part.unlink()
