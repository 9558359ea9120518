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
    """Let the timer's signal do inside what Ctrl-C does, and nothing after it."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ring_in(seconds: float) -> None:
    """Set the timer; also from a thread beside the main one."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
