"""Noise that a forked child draws."""

from __future__ import annotations

import os
import warnings

import numpy as np

from dpframe import noise


def drawn_in_a_child(size: int) -> np.ndarray:
    """Return noise of a forked child; this process draws some before, so that its buffers are filled."""
    noise.discrete_laplace(1e12, 4)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
        child = os.fork()
    if child == 0:
        os.write(writer, noise.discrete_laplace(1e12, size).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    drawn = np.frombuffer(os.read(reader, 8 * size), dtype=np.int64)
    os.close(reader)
    os.close(writer)
    return drawn
