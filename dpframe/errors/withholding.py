"""Errors whose words may hold private values, since what raised them was reading rows: nothing is told of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)  # somebody wants an end; they hold no values

Answer = TypeVar("Answer")


def withheld(look: Callable[[], Answer]) -> Answer | None:
    """The result, or None where it failed: its error must not be chained, nor shown or logged by an engine.

    Whatever `numpy.seterr` says, no number that is too small or too large for a float makes it fail or warn.
    """
    try:
        with np.errstate(all="ignore"):
            return look()
    except STOPS:
        raise
    except BaseException:  # a panic of the Polars engine is no Exception, and its message may hold values as well
        return None
