"""Released results held against the entries that were charged for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dpframe.errors import InvalidType, LedgerError, NoProvenance, shown
from dpframe.ledger.canonical import as_released, canonical, promised
from dpframe.ledger.chain import entry_of_receipt
from dpframe.ledger.entries import Entry, Store, Trail
from dpframe.ledger.terms import Terms

SINGLE = (
    "count(",
    "sum(",
    "mean(",
    "most common of ",
    "contributions(",
)  # how the words begin of what was released alone
AS_CHARGED, IN_PART = "as charged", "in part"
AS_STORED, AS_RECORDED, NOT_GIVEN = "as stored", "as in its record", "not given"
ROUNDED = "rounded, not compared"  # no ledger knows rounded numbers: anybody could have written them
CHANGED = "changed, not compared"  # nor which rows somebody left out, or how they are called


def vouched(store: Store, terms: Terms, trail: Trail, releases: Iterable[Any]) -> list[dict[str, Any]]:
    """The facts that are known of each release; LedgerError at the first one that is not as it was charged."""
    try:
        records = [pair for release in releases for pair in _parts_of(*_record_of(release))]
        return [_vouched(store, terms, trail, record, has_numbers) for record, has_numbers in records]
    except RecursionError:  # lists in lists in lists
        raise LedgerError("a release has a record that cannot be read: it is not one that dpframe wrote.") from None


def _record_of(release: Any) -> tuple[Mapping[str, Any], bool]:
    """The record of a release, and whether its numbers came with it: what ``.dp`` of a released frame tells of it."""
    is_record = isinstance(release, Mapping)
    try:
        record = release if is_record else release.dp.provenance
    except AttributeError:
        raise InvalidType(f"releases must be released frames or their provenances, not {shown(release)}.") from None
    except NoProvenance:
        raise NoProvenance(
            "releases must carry their provenance, and this frame has none: verify the released frame."
        ) from None
    if record.get("altered"):
        raise _refusal(record, "its numbers were changed after the release")
    return record, not is_record


def _parts_of(record: Mapping[str, Any], has_numbers: bool) -> list[tuple[Mapping[str, Any], bool]]:
    """The records of releases that were joined, or the one record."""
    parts = record.get("parts")
    joined = parts if isinstance(parts, list) and all(isinstance(part, Mapping) for part in parts) else [record]
    return [(release, has_numbers) for release in joined]


def _vouched(store: Store, terms: Terms, trail: Trail, record: Mapping[str, Any], has_numbers: bool) -> dict[str, Any]:
    number = entry_of_receipt(trail, record, store.shown)
    receipt = record.get("ledger", record)
    _compare(record, "dataset", receipt.get("dataset", terms.dataset), terms.dataset)
    if "ledger" not in record or not number:  # a receipt that was noted down, and no release
        return {"entry": number, "record": IN_PART, "numbers": NOT_GIVEN}
    entry, stored = store.entry_and_answer(number)
    if entry.stream is not None:  # of which each period was stored by itself
        stored = _of_period(store.contents(entry), record)
    if entry.kind != "charge":
        raise _refusal(record, f"that entry is no charge, but a {entry.kind}")
    _compare(record, "snapshot", receipt.get("snapshot", receipt.get("version")), entry.snapshot)
    _compare_fields(record, terms, entry)
    if number > terms.plain:
        _compare_promises(record, entry)
    is_stored = _compare_stored(record, entry, stored)
    numbers = AS_STORED if is_stored else AS_RECORDED if has_numbers else NOT_GIVEN
    return {
        "entry": number,
        "record": AS_CHARGED if entry.promises or is_stored else IN_PART,
        "numbers": CHANGED if "shown" in record else ROUNDED if "rounded" in record else numbers,
    }


def _of_period(contents: Mapping[int, bytes], record: Mapping[str, Any]) -> bytes | None:
    """The content that was stored of the period that a record speaks of."""
    period = record.get("period")
    number = period.get("number") if isinstance(period, Mapping) else None
    return contents.get(number) if type(number) is int else None


def _compare_fields(record: Mapping[str, Any], terms: Terms, entry: Entry) -> None:
    """Compare the fields that every entry has of its release, also those of dpframe 0.1."""
    cost = {"epsilon": entry.cost.epsilon, "delta": entry.cost.delta, "accounting": terms.accounting}
    _compare(record, "cost", record.get("cost"), cost)
    _compare_unit(record, entry)
    if entry.query.startswith(SINGLE):  # of what is released together each may have a label of its own
        _compare(record, "label", record.get("label"), entry.label)


def _compare_unit(record: Mapping[str, Any], entry: Entry) -> None:
    """Compare the unit. Results of one entry may differ in their bounds: then it has none, but its promises do."""
    unit, charged = record.get("unit"), entry.unit.facts()
    if entry.promises and charged["max_rows"] is None and isinstance(unit, Mapping):
        unit = {**unit, "max_rows": None, "max_groups": None}
    _compare(record, "unit", unit, charged)


def _compare_promises(record: Mapping[str, Any], entry: Entry) -> None:
    try:
        promise = promised(record)
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise _refusal(record, "its record cannot be read") from None
    if promise not in entry.promises:
        raise _refusal(record, "its record is not the one that the entry commits to")


def _compare_stored(record: Mapping[str, Any], entry: Entry, stored: bytes | None) -> bool:
    """Tell whether the entry's answer was stored; then it must be this one."""
    if entry.name is None:
        return False
    if stored is None:
        raise _refusal(record, "its answer was never stored, so it was never released")
    try:
        kept = json.loads(stored.split(b"\n", 1)[0])["provenance"]
        same = canonical(kept) == canonical(as_released(record))
    except (TypeError, ValueError, KeyError, RecursionError):
        same = False
    if not same:
        raise _refusal(record, "the answer that was stored under its name is another")
    return True


def _compare(record: Mapping[str, Any], name: str, stated: Any, charged: Any) -> None:
    if stated != charged:
        raise _refusal(record, f"its {name} is {shown(stated)}, and {shown(charged)} was charged for")


def _refusal(record: Mapping[str, Any], why: str) -> LedgerError:
    receipt = record.get("ledger", record)
    number = receipt.get("entry") if isinstance(receipt, Mapping) else None
    return LedgerError(
        f"the release that says to be entry {shown(number)} is not as it was charged: {why}. "
        "Trust what the ledger tells, and ask the person who passed it on."
    )
