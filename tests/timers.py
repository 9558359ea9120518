"""Ctrl-C at a chosen moment: a timer of the system whose signal interrupts the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

TIMERS = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")


@contextmanager
def timer_as_ctrl_c(handler: Any = signal.default_int_handler) -> Iterator[None]:
    """Let the timer's signal act like Ctrl-C inside the block; cancel it afterward."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ring_in(seconds: float) -> None:
    """Set the timer; a thread other than the main one may call it, too."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
