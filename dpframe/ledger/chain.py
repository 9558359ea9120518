"""The chain of hashes: each entry is checked against the one before it, and releases against their entries.

A chain of 10**5 entries is followed in one or two seconds: amounts are compared as whole numbers, and what does not
change from one entry to the next (the unit, the limit) is read once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from dpframe.errors import InvalidType, LedgerError, NoProvenance, shown
from dpframe.ledger import reading
from dpframe.ledger.canonical import as_released, canonical, promised
from dpframe.ledger.entries import Entry, Mark, Row, Store, Trail, name_of
from dpframe.ledger.reading import Pair
from dpframe.ledger.terms import Limit, Terms, changed


class _Place(NamedTuple):
    """A place in the chain while it is followed, in a form that is fast to compare."""

    number: int
    head: str
    total: tuple[Pair, ...]  # empty before the first entry
    limit: Limit
    most: tuple[Pair, ...]  # the amount of the limit, as whole numbers
    written: Any  # the limit as the last entry wrote it
    unit: Any  # the unit as the last entry wrote it
    time: str = ""

    @classmethod
    def of(cls, mark: Mark) -> _Place:
        total, most = (tuple(part.as_integer_ratio() for part in one) for one in (mark.total, mark.limit.amount))
        return cls(mark.entry, mark.head, total, mark.limit, most, mark.limit.facts(), None, mark.time)

    def mark(self) -> Mark:
        total = tuple(Fraction(*part) for part in self.total)
        return Mark(self.number, self.head, total, self.limit, time=self.time)


def follow(terms: Terms, last: Mark, row: Row, where: str) -> Mark:
    """Return the next place in the chain; LedgerError if the row does not follow from the last one."""
    return _next(_Place.of(last), row, terms.plain, where).mark()


def chain(terms: Terms, rows: Iterable[Row], where: str) -> Trail:
    """Follow the whole chain from the terms on; LedgerError if it is broken. The rows may come in batches."""
    place, plain = _Place.of(Mark.first(terms)), terms.plain
    heads = [place.head]
    for row in rows:
        place = _next(place, row, plain, where)
        heads.append(place.head)
    if terms.before is not None and (plain >= len(heads) or heads[plain] != terms.before.head):
        raise changed(where, f"entry {plain} is not the one that dpframe 0.1 left")
    return Trail(heads, place.mark())


def _next(place: _Place, row: Row, plain: int, where: str) -> _Place:
    number = place.number + 1
    if row.number != number or not row.follows(place.head):
        raise changed(where, f"entry {number} does not follow from entry {place.number}")
    try:
        facts = reading.entry_facts(row.body)
        unit, total = facts["unit"], reading.pairs(facts["total"], len(place.most))
        amount = reading.amount_of(tuple(facts["amount"]), len(place.most))
        if unit != place.unit:
            reading.unit(unit)
        raised = None if facts["limit"] == place.written else Limit.of(facts["limit"])
    except (ValueError, TypeError):
        raise changed(where, f"entry {number} cannot be read") from None
    if facts["entry"] != number or row.name != name_of(facts["label"], facts.get("version"), facts.get("stream")):
        raise changed(where, f"entry {number} is not the one that its place says")
    if ("nonce" in facts) != (number > plain):
        raise changed(where, f"entry {number} has not the random bytes that dpframe gives to an entry")
    if not _adds_up(place.total, amount, total):
        raise changed(where, f"entry {number} does not add up")
    if raised is not None:
        if facts["kind"] not in ("limit", "recovery") or not _is_raised(place.limit, raised):
            raise changed(where, f"entry {number} does not have the limit of the entry before it")
        most = tuple(part.as_integer_ratio() for part in raised.amount)
        place = place._replace(limit=raised, most=most, written=facts["limit"])
    if facts["kind"] == "charge" and not _holds(place, total):  # a recovery states what was spent, even above the limit
        raise changed(where, "its entries pass its limit")
    return _Place(number, row.head, total, place.limit, place.most, place.written, unit, facts["time"])


def _adds_up(before: tuple[Pair, ...], amount: tuple[Pair, ...], total: tuple[Pair, ...]) -> bool:
    """Return whether `total` is exactly `before` plus `amount`, without building a fraction."""
    for (n, d), (more, of), (written, per) in zip(before or ((0, 1),) * len(total), amount, total, strict=True):
        if d == of == per:
            if written != n + more:
                return False
        elif written * d * of != (n * of + more * d) * per:
            return False
    return True


def _holds(place: _Place, total: tuple[Pair, ...]) -> bool:
    """Return whether the limit allows a total, as `Limit.holds` does, in whole numbers."""
    within = [n * per <= most * d for (n, d), (most, per) in zip(total, place.most, strict=True)]
    if not place.limit.one_is_enough:
        return all(within)
    return any(within[:-1]) and within[-1] if place.limit.keys_delta else any(within)


def _is_raised(before: Limit, after: Limit) -> bool:
    return len(before.amount) == len(after.amount) and before.within(after)


def entries_of(rows: Iterable[Row], where: str) -> list[tuple[int, Entry]]:
    """Return the entries of rows with their numbers; LedgerError if one cannot be read."""
    entries = []
    for row in rows:
        try:
            entries.append((row.number, row.entry()))
        except ValueError:
            raise changed(where, f"entry {row.number} cannot be read") from None
    return entries


def entry_of_receipt(trail: Trail, provenance: Mapping[str, Any], where: str | None) -> int:
    """Return the entry number of a release; LedgerError if it is not in the chain."""
    receipt = provenance.get("ledger", provenance)
    entry, head = (receipt.get("entry"), receipt.get("head")) if isinstance(receipt, Mapping) else (None, None)
    if entry is None:  # not a sign of an older copy
        raise LedgerError(
            "a release names no entry of a ledger: it was charged to a ledger in memory, or computed from releases. "
            "Verify the released frames that it was computed from."
        )
    if type(entry) is not int or not 0 <= entry < len(trail.heads) or trail.heads[entry] != head:
        raise LedgerError(
            f"the ledger at {where} does not know the release that is its entry {shown(entry)}: "
            "it is an older copy, or the release is another ledger's. Put the newest copy back."
        )
    return entry


SINGLE = (
    "count(",
    "sum(",
    "mean(",
    "most common of ",
    "contributions(",
)  # starts of the query text of statistics that are released alone
OF_RELEASES = {"schema", "verb", "cost", "unit", "measures", "cells", "statistics"}  # fields that a receipt lacks
PARTS = "dpframe.parts/1"  # the schema of joined releases
AS_CHARGED, IN_PART = "as charged", "in part"
AS_STORED, AS_RECORDED, NOT_GIVEN = "as stored", "as in its record", "not given"
ROUNDED = "rounded, not compared"  # no ledger knows rounded numbers: anyone could have written them
CHANGED = "changed, not compared"  # no ledger knows which rows were left out or which columns renamed


def vouched(store: Store, terms: Terms, trail: Trail, releases: Iterable[Any]) -> list[dict[str, Any]]:
    """Return what was verified of each release; LedgerError at the first one that differs from its charge."""
    try:
        records = [pair for release in releases for pair in _parts_of(*_record_of(release))]
        return [_vouched(store, terms, trail, record, has_numbers) for record, has_numbers in records]
    except RecursionError:  # deeply nested lists
        raise LedgerError("a release has a record that cannot be read: it is not one that dpframe wrote.") from None


def _record_of(release: Any) -> tuple[Mapping[str, Any], bool]:
    """Return the record of a release, and whether its numbers came with it: True for a frame, False for a record."""
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
    """Return the records of joined releases, or the one record of a single release."""
    if record.get("schema") != PARTS:
        return [(record, has_numbers)]
    parts = record.get("parts")
    if not isinstance(parts, list) or not parts or not all(isinstance(part, Mapping) for part in parts):
        raise LedgerError("a release has a record of joined releases without any: it is not one that dpframe wrote.")
    return [(release, has_numbers) for release in parts]


def _vouched(store: Store, terms: Terms, trail: Trail, record: Mapping[str, Any], has_numbers: bool) -> dict[str, Any]:
    number = entry_of_receipt(trail, record, store.shown)
    receipt = record.get("ledger", record)
    _compare(record, "dataset", receipt.get("dataset", terms.dataset), terms.dataset)
    if not record.keys() & OF_RELEASES:  # a receipt alone, without a record
        return {"entry": number, "record": IN_PART, "numbers": NOT_GIVEN}
    if "ledger" not in record or not number:
        raise _refusal(record, "a release has a receipt of its own, and its entry is at least 1")
    entry, stored = store.entry_and_answer(number)
    if entry.stream is not None:  # each of its periods is stored separately
        stored = _of_period(store.contents(entry), record)
    if entry.kind != "charge":
        raise _refusal(record, f"that entry is no charge: its kind is {entry.kind!r}")
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
    """Return the stored content of the period that a record names; None if there is none."""
    period = record.get("period")
    number = period.get("number") if isinstance(period, Mapping) else None
    return contents.get(number) if type(number) is int else None


def _compare_fields(record: Mapping[str, Any], terms: Terms, entry: Entry) -> None:
    """Compare the fields that every entry has of its release, including entries of dpframe 0.1."""
    cost = {"epsilon": entry.cost.epsilon, "delta": entry.cost.delta, "accounting": terms.accounting}
    _compare(record, "cost", record.get("cost"), cost)
    _compare_unit(record, entry)
    if not entry.promises and entry.query.startswith(SINGLE):  # promises cover the label of each part
        _compare(record, "label", record.get("label"), entry.label)


def _compare_unit(record: Mapping[str, Any], entry: Entry) -> None:
    """Compare the unit. If the results of one entry have different bounds, only its promises state them."""
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
    """Return whether the entry's answer was stored; refuse a record that differs from the stored answer."""
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
