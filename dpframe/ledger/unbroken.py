"""Work that no signal breaks off: it runs in a thread of its own, and Python's signal handlers run in the main one.

Ctrl-C may raise after any instruction of the main thread, also between a lock and the `try` that would release it, and
inside a `finally`. Anyone who is interrupted here waits for the work that began, and holds nothing.

If it is interrupted again while waiting, it goes on at once, and the work goes on meanwhile. A process that then ends
waits for it once more: only a third Ctrl-C, or a kill, leaves undone what was bound to follow.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from dpframe.errors import LedgerError, LedgerUnavailable

P = ParamSpec("P")
T = TypeVar("T")
GRACE = 5.0  # seconds that an interrupted caller waits for a transaction to end; it ends by itself, waited for or not
GOES_ON = (
    "dpframe goes on storing what it has drawn, and this process waits for that when it ends. Ask for it again: it is "
    "not drawn twice. It is lost if the process is killed now, or stopped once more while it ends."
)


class Again(LedgerUnavailable):
    """The database broke a transaction off, and asks for it anew."""


class Stopped(LedgerError):
    """The caller was interrupted, and waits no more."""


class _Here(threading.local):
    work: _Work[Any] | None = None


_here = _Here()


class _Work(Generic[T]):
    """A call, what came of it, and whether somebody still waits for it."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        self.value: T | None = None
        self.error: BaseException | None = None
        self.stopped = False
        self.ended = False
        self.to_its_end = False  # whether it must not stop at a lock, whatever its caller does
        self.done = _thread.allocate_lock()  # a plain lock: its methods are one instruction, which nothing interrupts
        self.done.acquire()

    def run(self, context: Context) -> None:
        sys.settrace(threading.gettrace())  # as every other thread: for debuggers and coverage
        _here.work = self
        _running.add(self)
        try:
            if not self.stopped:
                self.value = context.run(self.call)
        except BaseException as error:
            self.error = error
        finally:
            _running.discard(self)
            self.ended = True  # first: whoever was interrupted as it took the lock would wait for it for ever
            self.done.release()

    def result(self) -> T:
        try:
            _thread.start_new_thread(self.run, (copy_context(),))
        except RuntimeError:  # a system without threads, or the interpreter ends: then nothing runs beside it
            return self.call()
        try:
            self.done.acquire()
        except BaseException:
            self.stopped = True
            self.wait()
            raise
        try:
            if self.error is not None:
                raise self.error
            return self.value  # type: ignore[return-value]
        finally:
            self.error = None  # it holds this frame

    def wait(self) -> None:
        """Wait for a while, and to its end where it must not stop; another Ctrl-C ends the waiting, not the work."""
        if self.ended:
            return
        try:
            if not self.done.acquire(timeout=GRACE) and self.to_its_end:
                self.done.acquire()  # no longer than the ledger's lock is waited for
        except BaseException as stopped:
            if self.to_its_end:
                stopped.add_note(GOES_ON)
                if workers := sys.modules.get("multiprocessing.util"):  # whose forked workers end without atexit
                    workers.Finalize(None, _wait_for_all, exitpriority=0)
            raise


_running: set[_Work[Any]] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # their threads are the parent's


@atexit.register
def _wait_for_all() -> None:
    """Let what runs end before the process does, which would end its threads wherever they are."""
    for work in list(_running):
        work.stopped = True
        work.wait()


def unbroken(call: Callable[P, T]) -> Callable[P, T]:
    """The same, in a thread of its own. What the database broke off is begun anew."""

    @wraps(call)
    def whole(*arguments: P.args, **named: P.kwargs) -> T:
        if _here.work is not None:
            return call(*arguments, **named)
        work: _Work[T] = _Work(partial(until_it_goes_through, call, *arguments, **named))
        return work.result()

    return whole


def to_the_end() -> None:
    """From here on the work waits for every lock, also for a caller who was interrupted: what it wrote binds it."""
    if _here.work is not None:
        _here.work.to_its_end = True


def go_on() -> None:
    """End the work here if its caller was interrupted; called where nothing was written yet."""
    if _here.work is not None and _here.work.stopped and not _here.work.to_its_end:
        raise Stopped("the call was interrupted: nothing was charged. Call again.")


TRIES = 20


def until_it_goes_through(call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call it, and call it again where the database broke it off."""
    for _ in range(TRIES - 1):
        try:
            return call(*arguments, **named)
        except Again:
            go_on()
    return call(*arguments, **named)
