"""Answers that are stored under their label and snapshot, so that asking again costs nothing and answers the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe.errors import LedgerError
from dpframe.frames import build
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import Entry
from dpframe.ledger.ledger import Ledger
from dpframe.planning.call import Words
from dpframe.planning.plan import Plan
from dpframe.queries.query import chooses, suggestion_of
from dpframe.release import provenance
from dpframe.release.facts import facts_of
from dpframe.release.provenance import Prepared
from dpframe.release.results import cells_at
from dpframe.release.shown_labels import labels_again, stored_forms

FORMAT = "dpframe.answer/1"


def entry_of(prepared: Prepared, words: Words, ledger: Ledger) -> Entry:
    """The entry that the ledger is asked for: with its public facts, if the call has a label and a snapshot."""
    plan, label, snapshot = prepared.plan, words.label, words.snapshot
    if snapshot is not None and not ledger.is_durable:
        raise LedgerError(
            "snapshot must be left out with a ledger in memory, which stores no results. "
            "Keep the ledger in a file to replay them: dpf.Ledger(..., path='clinic.ledger')."
        )
    is_named = snapshot is not None and label is not None
    return Entry(
        now(),
        label,
        str(plan.query),
        plan.unit,
        plan.amount,
        plan.cost,
        snapshot=snapshot,
        asked=facts_of(plan, ledger.unit or plan.unit) if is_named else None,
        promises=(promise_of(prepared, label),),
    )


def promise_of(prepared: Prepared, label: str | None) -> str:
    """The promise that the ledger's entry makes of the record, before a row is read."""
    stamp = noise.stamp()
    return prepared.promise if label is None and stamp is None else provenance.promise(prepared, label, stamp=stamp)


def content_of(
    frame: Any, chosen: list[int] | None, facts: dict[str, Any], found: dict[str, Any] | None = None
) -> bytes:
    """The bytes to store of a released frame: its provenance and its exact numbers. The keys are the caller's.

    Of a selection the places of the chosen cells are stored, since two may look alike once they are written down. Keys
    that were found are stored as they are told apart, column by column, with how they are written down.
    """
    if chosen is not None:
        labels = [name for axis in facts["cells"] for name in axis["columns"]]
        released = {name: frame[name].to_list() for name in facts["columns"] if name not in labels}
        more = {"numbers": released} if released else {}
        places = chosen[0] if len(chosen) == 1 else chosen
        return json.dumps({"format": FORMAT, "chosen": places, **more, "provenance": facts}).encode() + b"\n"
    columns: dict[str, Any] = {}
    numbers = []
    for name in facts["columns"]:
        values = frame[name].to_numpy()
        is_float = values.dtype == np.float64
        columns[name] = None if is_float else _told(values)
        numbers += [values.astype("<f8").tobytes()] if is_float else []
    header = {"format": FORMAT, "rows": len(frame), "columns": columns, **(found or {}), "provenance": facts}
    return json.dumps(header).encode() + b"\n" + b"".join(numbers)


def _told(values: NDArray[Any]) -> list[Any]:
    """Values that are no floats, as JSON has them: of dates their text."""
    told: list[Any] = (np.datetime_as_string(values, unit="D") if values.dtype.kind == "M" else values).tolist()
    return told


def replayed(plan: Plan, asked: Any, content: bytes) -> Any:
    """The released frame again, in the library of the answer; `asked` is the frame of the call, read by its schema."""
    text, numbers = content.split(b"\n", 1)
    header = json.loads(text)
    if chooses(plan.query):
        places = np.atleast_1d(header["chosen"]).tolist()
        frame = cells_at(plan, places, plan.query.shown.labels(), header.get("numbers", {}))
        return build.attach(frame, header["provenance"])
    has_keys = "found" in header
    columns = dict(
        labels_again(plan, asked, header["found"], header["forms"]) if has_keys else plan.query.shown.labels()
    )
    size = 8 * header["rows"]
    for name, values in header["columns"].items():
        if values is None:
            columns[name] = np.frombuffer(numbers[:size], "<f8").astype(np.float64)
        else:  # bounds of a column of dates are texts
            are_dates = name in ("lower", "upper") and suggestion_of(plan.query) is not None
            columns[name] = np.array(values, dtype="datetime64[D]") if are_dates else values
        numbers = numbers[size:] if values is None else numbers
    return build.attach(build.frame_of(columns, plan.asked.library), header["provenance"])


def kept(
    plan: Plan,
    asked: Any,
    frame: Any,
    chosen: list[int] | None,
    entry: Entry,
    ledger: Ledger,
    found: list[list[Any]] | None = None,
) -> Any:
    """Store the answer of a named release. If another call was faster, its answer is the answer of both."""
    if entry.name is None:
        return frame
    keys = None if found is None else {"found": found, "forms": stored_forms(plan, asked)}
    content = content_of(frame, chosen, build.record_of(frame) or {}, keys)
    stored = ledger.keep(entry, content)
    return frame if stored == content else replayed(plan, asked, stored)
