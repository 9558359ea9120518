"""Labels of keys that were found, in the library of the answer."""

from __future__ import annotations

from typing import Any

from dpframe.engines.found_keys import forms, label_columns, read
from dpframe.engines.schema import columns_of, emptied
from dpframe.errors import LedgerError, shown
from dpframe.frames import build
from dpframe.planning.plan import Plan
from dpframe.queries.discovery import found_axis
from dpframe.release.measuring import measured


def labels_of(plan: Plan, frame: Any, keys: Any) -> dict[str, Any]:
    """The columns that name the keys that are shown."""
    axis, library = found_axis(plan.query.keys), plan.asked.library
    assert axis is not None
    nulls = axis.discovery is not None and axis.discovery.nulls
    columns = label_columns(frame, axis, keys)
    return {name: build.label_column(name, values, library, nulls=nulls) for name, values in columns.items()}


def stored_forms(plan: Plan, frame: Any) -> list[str]:
    """The form in which each column of keys is written down: a stored answer can be read with these alone."""
    axis = found_axis(plan.query.keys)
    assert axis is not None
    return forms(frame, axis)


def labels_again(plan: Plan, frame: Any, stored: list[list[Any]], kept: list[str]) -> dict[str, Any]:
    """The same of keys as an answer has stored them; refused where the columns have got another dtype since."""
    now, axis = stored_forms(plan, frame), found_axis(plan.query.keys)
    assert axis is not None
    for column, before, form in zip(axis.columns, kept, now, strict=True):
        if before != form:
            raise LedgerError(
                f"column {column!r} must have the dtype that it had when this answer was stored, whose keys were "
                f"{shown(before)}, not {shown(form)}. Nothing was charged. Cast it back, or take another snapshot."
            )
    nothing = measured(plan, emptied(frame, columns_of(plan.query, plan.unit)))  # for its dtypes
    return labels_of(plan, frame, read(stored, nothing))
