"""Files that anybody may have put there: opened only where they are plain files, so that nothing waits for a pipe.

Opening a named pipe waits until somebody writes into it, and a device may never end. A call would then hang, with a
lock in its hands.
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL

NOT_PLAIN = "is no plain file, but a folder, a pipe, a socket or a device"


class NoPlainFile(OSError):
    """A pipe, a socket, a device or a folder stands where a file belongs."""


def plain(path: str | bytes | os.PathLike[str], flags: int) -> int:
    """Open a plain file at once, or refuse what is none: the `opener` of ``open``."""
    more = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # which changes nothing for a plain file
    opened = os.open(path, flags | more, 0o666)
    try:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return opened
        raise NoPlainFile(EINVAL, f"it {NOT_PLAIN}", os.fspath(path))
    except BaseException:
        os.close(opened)
        raise


def stands_in_the_way(path: str | os.PathLike[str]) -> bool:
    """Tell whether something else than a plain file is there, without opening it."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:  # nothing is there, or whoever opens it says why not
        return False


def said(error: OSError) -> str:
    """The words of the system for what went wrong, without the path."""
    return error.strerror or " ".join(str(error).split()) or type(error).__name__
