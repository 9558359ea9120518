"""Labels of keys that were found, in the library of the answer."""

from __future__ import annotations

from typing import Any

from dpframe.engines.found_keys import label_columns, read
from dpframe.engines.keyed import keyed
from dpframe.engines.no_rows import columns_of, emptied
from dpframe.frames import build
from dpframe.planning.key_pricing import weights_of_units
from dpframe.planning.plan import Plan

NO_ORDER = 0  # of no rows


def nothing_of(plan: Plan) -> Any:
    """The keys of no rows: their dtypes."""
    axis = plan.query.found
    assert axis is not None
    empty = emptied(plan.frame, columns_of(plan.query, plan.unit))
    return keyed(empty, axis, plan.unit, weights_of_units(axis, plan.unit, plan.parts[0].mechanism.norm), NO_ORDER)


def labels_of(plan: Plan, keys: Any) -> dict[str, Any]:
    """The columns that name the keys that are shown."""
    axis, library = plan.query.found, plan.asked.library
    assert axis is not None
    nulls = axis.discovery is not None and axis.discovery.nulls
    columns = label_columns(plan.frame, axis, keys)
    return {name: build.label_column(name, values, library, nulls=nulls) for name, values in columns.items()}


def labels_again(plan: Plan, stored: list[list[Any]]) -> dict[str, Any]:
    """The same of keys as an answer has stored them."""
    return labels_of(plan, read(stored, nothing_of(plan)))
