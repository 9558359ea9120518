"""Errors that leave dpframe: without the frames that they passed through, and without details of work on rows.

Reports of errors print what stack frames hold. A function on the call stack holds the caller's frame, or exact totals.
Tools that print local variables (the standard library's ``traceback`` with ``capture_locals``, pytest, rich, services
that collect errors) would print rows.

Errors of work without rows keep their own words; errors of work on rows reveal nothing. All that is tried before a
charge sees no row. Foreseen errors there are those that a caller can cause and fix: values that do not fit, what a
library says of them, and code of the caller. Any other error is a fault of dpframe and is reported as one, so that
nobody looks for it among the arguments.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dpframe.errors import (
    BoundsWarning,
    DpframeError,
    InvalidArgument,
    InvalidType,
    MissingArgument,
    ReleaseFailed,
    WrongDtype,
)

log = logging.getLogger("dpframe")

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)  # requests to stop; they hold no values

LONGEST_MESSAGE = 300
PLAN = "Resolved plan until failure"  # the rest of a message of Polars, with the rows of each Parquet file
OF_VALUES = (DpframeError, ValueError, ArithmeticError, MemoryError)  # keys too long, too large, too many
OF_TYPES = (*OF_VALUES, TypeError)  # and keys of a type that cannot be compared with the others of their column
LIBRARIES = {"dpframe", "dask", "distributed", "duckdb", "narwhals", "numba", "numpy", "pandas", "polars", "pyarrow"}


def cleaned(error: BaseException, outer: BaseException | None, *, tell: bool) -> BaseException:
    """Return the error without its traceback and without errors handled on the way; `outer` is the caller's own.

    An explicit cause stays: dpframe chooses it, and it holds nothing private. If `tell` is set, the places in dpframe
    are noted as text, because an unforeseen error is looked for there.
    """
    if tell and (passed := places(error)):
        error.add_note(f"It passed through {' < '.join(passed)}; dpframe leaves out the variables that these hold.")
    if error.__context__ is not error.__cause__:
        error.__context__ = outer
    return error.with_traceback(None)


def places(error: BaseException) -> list[str]:
    """Return the lines of dpframe that the error passed, the innermost first."""
    steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename.startswith(PACKAGE)]
    return [f"{os.path.relpath(step.filename, PACKAGE)}:{step.lineno}" for step in reversed(steps)]


def depth_outside() -> int:
    """Return the depth, seen from the caller, of the nearest frame outside of dpframe: a warning names that place."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        frame, depth = frame.f_back, depth + 1
    return depth


def warn_of_bounds(words: str, *, depth: int) -> None:
    """Warn of bounds; if a filter turns the warning into an error, log the words instead, so that the answer returns.

    `depth` is that of the line that the warning names, seen from the caller.
    """
    try:
        warnings.warn(words, BoundsWarning, stacklevel=depth + 1)
    except BoundsWarning:
        log.info("%s", words)


def trimmed(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Return a public function whose errors show neither its arguments nor what it called.

    Whatever `numpy.seterr` says, small numbers make it neither fail nor warn.
    """

    @wraps(function)
    def door(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        outer = sys.exception()
        try:
            with np.errstate(all="ignore"):
                return function(*arguments, **named)
        except BaseException as error:
            unclear = _unclear(function, arguments, named) if type(error) is TypeError else None
            clean = unclear or cleaned(error, outer, tell=not _is_own(error))
        arguments, named = (), {}  # type: ignore[assignment]  # this frame stays in the traceback
        try:
            raise clean
        finally:
            del clean, outer  # an error and a frame that hold each other would stay in memory

    return door


Kind = TypeVar("Kind", bound=type)


def constructed(kind: Kind) -> Kind:
    """Return a public class whose constructor is `trimmed`."""
    kind.__init__ = trimmed(kind.__init__)  # type: ignore[misc]
    return kind


def _unclear(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> DpframeError | None:
    """Return the refusal of a call that does not fit the function's signature; None if it fits."""
    asked, name = signature(function), function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    try:
        asked.bind(*given, **named)
    except TypeError:
        parameters = [one for one in asked.parameters.values() if one.name not in ("self", "cls")]
        places = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        words = f"Its arguments are {', '.join(one.name for one in parameters)}." if parameters else "It takes none."
        for one in (one for one in named if one not in asked.parameters):
            return InvalidType(f"{one} is not an argument of {name}. {words}")
        count = len(given) - (len(asked.parameters) > len(parameters))  # without self
        if count > len(places):
            by_place = f"only {', '.join(places)}" if places else "nothing"
            return InvalidType(f"{name} must be given {by_place} by position. Write all other arguments by name.")
        for one in (one for one in places[:count] if one in named):
            return InvalidType(f"{one} must be given once to {name}. Drop it by position or by name.")
        there = asked.bind_partial(*given, **named).arguments
        for one in (one.name for one in parameters if one.default is one.empty and one.name not in there):
            return MissingArgument(f"{one} must be given to {name}. {words}")
    return None


def _is_own(error: BaseException) -> bool:
    return type(error).__module__.startswith("dpframe.")


LIBRARIES |= {"py4j", "pyspark", "sqlalchemy", *sys.stdlib_module_names} - {"__main__"}


def withheld(look: Callable[[], Answer], *, but: tuple[type[Exception], ...] = ()) -> Answer | None:
    """Return the result, or None if it failed: the error must not be chained, shown, or logged by an engine.

    Errors of the types `but` are raised: none of them depends on a row.
    Whatever `numpy.seterr` says, a number that is too small or too large for a float causes no failure or warning.
    """
    try:
        with np.errstate(all="ignore"):
            return look()
    except STOPS:
        raise
    except but:
        raise
    except BaseException:  # a panic of the Polars engine is no Exception, and its message may hold values too
        return None


def failed_read(outcome: str) -> ReleaseFailed:
    """Return the error of a read that failed, which states the outcome in place of the engine's message."""
    return ReleaseFailed(
        "the engine failed while it read the rows: its message may hold private values and is withheld; "
        f"{outcome}. Run the frame's computation by itself to see the cause."
    )


@contextmanager
def tried(
    kind: type[InvalidArgument | WrongDtype],
    rule: str,
    way_out: str,
    *,
    foreseen: tuple[type[Exception], ...] = OF_TYPES,
) -> Iterator[None]:
    """Refuse what fails inside: "RULE (the error). Nothing was charged. WAY OUT"; or report a fault of dpframe."""
    try:
        yield
    except (*STOPS, ImportError):  # a missing package explains itself
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
    """Return the text of an error that has seen no row, on one line, without a plan of Polars, which counts rows."""
    text = " ".join(f"{type(error).__name__}: {error}".partition(PLAN)[0].split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."


def _is_of_the_caller(error: BaseException) -> bool:
    """Return whether code outside of dpframe and libraries failed, such as a mechanism or an engine."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(module).partition(".")[0] not in LIBRARIES for module in modules)
