"""A released frame rounded to its errors: the same release, with a record of the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe.display.possible import HIGH, LOW
from dpframe.display.rounding import Digits, rounded
from dpframe.errors import InvalidArgument
from dpframe.frames import build, changes, foreign, prints
from dpframe.frames.prints import Places
from dpframe.queries.query import ERROR, NOISY

ENDS = ("", NOISY, ERROR, LOW, HIGH)


def rounded_release(
    frame: Any, record: Mapping[str, Any], facts: Mapping[str, Any], places: Places, digits: Digits
) -> Any:
    """The frame rounded, its rows in their order; `facts` are its record with all of its statistics."""
    if any(map(foreign.is_for_sums, facts["measures"].values())):
        raise InvalidArgument(
            "round must not be used on bins for range queries (ranges=True): each would move, and their "
            "sums by more. Add them up first, or ask .dp.table() for a rounded table."
        )
    steps: dict[str, float] = {}
    numbers: dict[str, Any] = {}
    for name in facts["measures"]:
        mine = {name + end: build.numbers(frame, name + end) for end in ENDS if name + end in facts["columns"]}
        made = rounded(name, mine, digits)
        steps[name] = made.step
        numbers.update(made.columns)
    released = build.with_numbers(frame, numbers)
    if "shown" in record:
        changed = changes.release_of(released, record, facts, places)
        return changed.made(released, changed.cells, {"verb": "round", "steps": steps}, rounded=steps)
    return build.attach(released, _record(released, record, facts, places, steps))


def _record(
    frame: Any, record: Mapping[str, Any], facts: Mapping[str, Any], places: Places, steps: Mapping[str, float]
) -> dict[str, Any]:
    """The record of the rounded numbers, which keeps the hashes of those that were released."""
    rows, before = record.get("rows"), record.get("rounded", {})
    said = {
        "steps": dict(steps),
        "sha256": before.get("sha256", record["sha256"]),
        "rows": before.get("rows", rows and rows["sha256"]),
    }
    new = {**record, "rounded": said, "sha256": build.fingerprint(build.reordered(frame, places), record["columns"])}
    if rows is not None:
        numbers = [name for name in record["columns"] if name not in rows["labels"]]
        printed = prints.print_of(frame, rows["labels"], numbers, prints.layout_of(facts.get("levels")))
        assert printed is not None  # it had one before
        new["rows"] = {**rows, "sha256": printed.sha256}
    return new
