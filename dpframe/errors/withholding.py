"""Errors of work on no rows, and of work on rows: those are told in their own words, and of these nothing is told.

What is tried before anything is charged sees no row. Foreseen there is what a caller can cause and mend: values that do
not suit, what a library says of them, and code of the caller's. All else is a fault of dpframe, and is called one:
nobody looks for it among the arguments.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from dpframe.errors import DpframeError, InvalidArgument, WrongDtype
from dpframe.errors.tracebacks import places

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)  # somebody wants an end; they hold no values

LONGEST_MESSAGE = 300
OF_VALUES = (DpframeError, ValueError, ArithmeticError, MemoryError)  # keys too long, too large, too many
OF_TYPES = (*OF_VALUES, TypeError)  # and of a type that cannot be compared with those of their column
LIBRARIES = {"dpframe", "dask", "distributed", "duckdb", "narwhals", "numba", "numpy", "pandas", "polars", "pyarrow"}
LIBRARIES |= {"py4j", "pyspark", "sqlalchemy", *sys.stdlib_module_names} - {"__main__"}

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


@contextmanager
def tried(
    kind: type[InvalidArgument | WrongDtype],
    rule: str,
    way_out: str,
    *,
    foreseen: tuple[type[Exception], ...] = OF_TYPES,
) -> Iterator[None]:
    """Refuse what fails in here: "RULE (the error). Nothing was charged. WAY OUT", or say that dpframe is at fault."""
    try:
        yield
    except (*STOPS, ImportError):  # what is not installed says so itself
        raise
    except BaseException as error:
        if isinstance(error, foreseen) or type(error).__module__ != "builtins" or _is_of_the_caller(error):
            raise kind(f"{rule} ({said(error)}). Nothing was charged. {way_out}") from None
        fault = DpframeError(
            f"dpframe failed before it read a row ({said(error)}). The fault is in dpframe, not in the call. Nothing "
            "was charged. Please report it, with this message and the call."
        )
        fault.add_note(f"It passed through {' < '.join(places(error))}.")
        raise fault from None


def said(error: BaseException) -> str:
    """The text of an error that has seen no row, on one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."


def _is_of_the_caller(error: BaseException) -> bool:
    """Tell whether code that is neither dpframe's nor a library's failed, such as a mechanism or an engine."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(module).partition(".")[0] not in LIBRARIES for module in modules)
