"""Noise that is the same in each run, for tests and for counted figures: what passed once passes again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pytest

from dpframe.noise import random_bits


class RepeatedBits:
    """Bits that replace those of the operating system, the same in each run of a test; a forked process has its own."""

    def __init__(self, name: str) -> None:
        self.bits = np.random.Generator(np.random.Philox(int.from_bytes(hashlib.sha256(name.encode()).digest()[:16])))
        self.process, self.fresh = os.getpid(), os.urandom

    def __call__(self, size: int) -> bytes:
        return self.bits.bytes(size) if os.getpid() == self.process else self.fresh(size)


@contextmanager
def repeated(name: str) -> Iterator[None]:
    """Draw all noise inside from bits that a name seeds."""
    bits = RepeatedBits(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", bits)
        patch.setattr(random_bits, "_source", ContextVar("repeated_bytes", default=bits))
        yield
