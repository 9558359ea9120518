"""Errors that leave dpframe without the frames they passed through: reports of errors print what those hold.

A function on the way down holds the caller's frame, or exact totals. Tools that print local variables (the standard
library's ``traceback`` with ``capture_locals``, pytest, rich, services that collect errors) would print rows.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def cleaned(error: BaseException, outer: BaseException | None, *, tell: bool) -> BaseException:
    """The error without its traceback, and without errors that were handled on the way; `outer` is the caller's own.

    An explicit cause stays: it is dpframe's to choose, and holds nothing private. Where `tell` is set the places in
    dpframe are noted as text, since an error that nobody foresaw is looked for there.
    """
    if tell and (passed := places(error)):
        error.add_note(f"It passed through {' < '.join(passed)}; dpframe leaves out the variables that these hold.")
    if error.__context__ is not error.__cause__:
        error.__context__ = outer
    return error.with_traceback(None)


def places(error: BaseException) -> list[str]:
    """The lines of dpframe that the error passed, the innermost first."""
    steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename.startswith(PACKAGE)]
    return [f"{os.path.relpath(step.filename, PACKAGE)}:{step.lineno}" for step in reversed(steps)]


def depth_outside() -> int:
    """The depth of the nearest frame outside of dpframe, seen from the caller: the place that a warning names."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        frame, depth = frame.f_back, depth + 1
    return depth


def trimmed(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """A public function whose errors show neither its arguments nor what it called."""

    @wraps(function)
    def door(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        outer = sys.exception()
        try:
            return function(*arguments, **named)
        except BaseException as error:
            clean = cleaned(error, outer, tell=not _is_own(error))
        arguments, named = (), {}  # type: ignore[assignment]  # this frame stays in the traceback
        try:
            raise clean
        finally:
            del clean, outer  # an error that is held by a frame that it holds would live on

    return door


def _is_own(error: BaseException) -> bool:
    return type(error).__module__.startswith("dpframe.")
