"""Work that no signal interrupts: it runs in a thread of its own, and Python runs signal handlers in the main thread.

Ctrl-C may raise after any instruction of the main thread, even between a lock and the `try` that would release it, or
inside a `finally`. A caller that is interrupted here waits for the work in progress, and holds no lock itself.

If the caller is interrupted again while it waits, it returns at once, and the work continues in its thread. A process
that then ends waits for the work once more. Only a third Ctrl-C, or a kill, leaves the work unfinished.
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
GRACE = 5.0  # seconds that an interrupted caller waits for a transaction, which ends in any case
GOES_ON = (
    "dpframe goes on storing what it has drawn, and this process waits for that when it ends. Ask for it again: it is "
    "not drawn twice. It is lost if the process is killed now, or stopped once more while it ends."
)


class Again(LedgerUnavailable):
    """The database aborted a transaction, which must be tried again."""


class Stopped(LedgerError):
    """The caller was interrupted and no longer waits."""


class _Here(threading.local):
    work: _Work[Any] | None = None


_here = _Here()


class _Work(Generic[T]):
    """A call, its result, and whether its caller still waits for it."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        self.value: T | None = None
        self.error: BaseException | None = None
        self.stopped = False
        self.ended = False
        self.to_its_end = False  # if true, the work waits for every lock, even if its caller was interrupted
        self.done = _thread.allocate_lock()  # a plain lock: each method is one instruction, which nothing interrupts
        self.done.acquire()

    def run(self, context: Context) -> None:
        sys.settrace(threading.gettrace())  # as in every other thread, for debuggers and coverage
        _here.work = self
        _running.add(self)
        try:
            if not self.stopped:
                self.value = context.run(self.call)
        except BaseException as error:
            self.error = error
        finally:
            _running.discard(self)
            self.ended = True  # before the release, or a caller interrupted while it takes the lock would wait forever
            self.done.release()

    def result(self) -> T:
        try:
            _thread.start_new_thread(self.run, (copy_context(),))
        except RuntimeError:  # no threads, or the interpreter is ending: nothing else runs then
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
            self.error = None  # the error refers to this frame: break the cycle

    def wait(self) -> None:
        """Wait for a limited time, or to the end if it must not stop. Another Ctrl-C ends the waiting, not the work."""
        if self.ended:
            return
        try:
            if not self.done.acquire(timeout=GRACE) and self.to_its_end:
                self.done.acquire()  # at most as long as the work waits for the ledger's lock
        except BaseException as stopped:
            if self.to_its_end:
                stopped.add_note(GOES_ON)
                if workers := sys.modules.get("multiprocessing.util"):  # forked workers end without atexit
                    workers.Finalize(None, _wait_for_all, exitpriority=0)
            raise


_running: set[_Work[Any]] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # the threads of this work run only in the parent


@atexit.register
def _wait_for_all() -> None:
    """Wait for running work before the process ends, which would stop its threads at any point."""
    for work in list(_running):
        work.stopped = True
        work.wait()


def unbroken(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap a call to run in a thread of its own, and to be tried again if the database aborts it."""

    @wraps(call)
    def whole(*arguments: P.args, **named: P.kwargs) -> T:
        if _here.work is not None:
            return call(*arguments, **named)
        work: _Work[T] = _Work(partial(until_it_goes_through, call, *arguments, **named))
        return work.result()

    return whole


def to_the_end() -> None:
    """Make the work wait for every lock from here on, even after an interrupt: it must finish what it wrote."""
    if _here.work is not None:
        _here.work.to_its_end = True


def go_on() -> None:
    """End the work here if its caller was interrupted; called only where nothing has been written yet."""
    if _here.work is not None and _here.work.stopped and not _here.work.to_its_end:
        raise Stopped("the call was interrupted: nothing was charged. Call again.")


TRIES = 20


def until_it_goes_through(call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function, and call it again if the database aborts it, at most `TRIES` times in all."""
    for _ in range(TRIES - 1):
        try:
            return call(*arguments, **named)
        except Again:
            go_on()
    return call(*arguments, **named)
