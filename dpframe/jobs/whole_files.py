"""Files that are there as a whole or not at all, whenever the process is killed."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dpframe.errors import OutputFailed
from dpframe.ledger import heads

OLD = 3600.0  # seconds after which a part that a killed process left behind is removed


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write next to the path, bring it to disk, and put it in place in one step."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_old(path)
        write(part)
        with part.open("rb+") as file:
            heads.bring_to_disk(file.fileno())
        heads.put_in_place(str(part.absolute()), str(path.absolute()))
    except Exception as error:  # public numbers are written here, and whatever fails, they are in the ledger
        said = getattr(error, "strerror", None) or error  # without the path, whose folders the environment may name
        raise OutputFailed(
            f"{path.name} cannot be written ({type(error).__name__}: {said}). What was released is in the ledger: "
            "run the job again, at no cost."
        ) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def append_line(path: Path, line: bytes) -> None:
    """Append a line in one step; lines of two processes do not mix."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        at_once = getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody reads is refused, and not waited for
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | at_once, 0o644)
        try:
            if line:
                whole = (b"\n" if _is_cut(path, number) else b"") + line + b"\n"
                if os.write(number, whole) < len(whole):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        raise OutputFailed(f"the audit trail {path.name} cannot be written ({error.strerror}).") from None


def _is_cut(path: Path, number: int) -> bool:
    """Tell whether a file ends amid a line, as a full disk or a kill left it: the next line would be lost with it."""
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or not facts.st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _remove_old(path: Path) -> None:
    for part in path.parent.glob(f".{_literal(path.name)}.*.part"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > OLD:
                part.unlink()


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
