"""The one look at rows, of which nothing is told if it fails: an engine prints values in its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpframe.errors import ReleaseFailed
from dpframe.errors.withholding import STOPS, withheld


def looked(look: Callable[[], Any], stands: str = "the charge stands") -> Any:
    """The result of an engine that reads rows, after the charge; ReleaseFailed without its words where it fails."""
    result = _or_none(look)
    if result is None:
        raise ReleaseFailed(
            "the dataframe engine failed while it read the rows. Its message is withheld, since it may hold private "
            f"values; {stands}. Run the frame's own computation by itself to see the cause."
        )
    return result


def _or_none(look: Callable[[], Any]) -> Any:
    """The result, or None where the engine failed; who stops it is told where that was."""
    try:
        return withheld(look)
    except STOPS as stopped:
        stopped.add_note("dpframe was reading rows: the charge stands, and nothing was released.")
        raise
