"""Rows of public facts as a frame in the library that the caller names: of plans, ledgers and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.frames import build


def as_frame(
    rows: Sequence[Mapping[str, Any]],
    like: str,
    *,
    types: Mapping[str, type] | None = None,
    whole: Sequence[str] = (),
) -> Any:
    """A frame with a row for each; of the columns in `types`, where there may be no rows, else of those of the rows.

    Columns in `whole` are of integers or missing.
    """
    return build.of_rows(rows, like, types, whole)
