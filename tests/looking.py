"""Looks at rows, as tests watch them: every call is tried on no rows by the function that measures the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpframe.release import results


def of_rows(read: Callable[..., Any]) -> Callable[..., Any]:
    """A stand-in for `measuring.totals`: of no rows it gives what that gives, and else what `read` does."""
    of_none = results.totals

    def totals(frame: Any, *more: Any) -> Any:
        tried = hasattr(frame, "__len__") and len(frame) == 0
        return (of_none if tried else read)(frame, *more)

    return totals
