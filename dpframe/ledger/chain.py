"""The chain of hashes, followed from entry to entry; what an entry must keep is held against the one before.

A ledger of 10**5 entries is followed in a second or two: amounts are compared as whole numbers, and what does not
change from one entry to the next (the unit, the limit) is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from dpframe.errors import LedgerError, shown
from dpframe.ledger import reading
from dpframe.ledger.entries import Entry, Mark, Row, Trail, name_of
from dpframe.ledger.reading import Pair
from dpframe.ledger.terms import Limit, Terms, changed


class _Place(NamedTuple):
    """A place in the chain while it is followed."""

    number: int
    head: str
    total: tuple[Pair, ...]  # none before the first entry
    limit: Limit
    most: tuple[Pair, ...]  # the limit as whole numbers
    written: Any  # the limit as the last entry wrote it
    unit: Any  # the last unit that was read
    time: str = ""

    @classmethod
    def of(cls, mark: Mark) -> _Place:
        total, most = (tuple(part.as_integer_ratio() for part in one) for one in (mark.total, mark.limit.amount))
        return cls(mark.entry, mark.head, total, mark.limit, most, mark.limit.facts(), None, mark.time)

    def mark(self) -> Mark:
        total = tuple(Fraction(*part) for part in self.total)
        return Mark(self.number, self.head, total, self.limit, time=self.time)


def follow(terms: Terms, last: Mark, row: Row, where: str) -> Mark:
    """The next place in the chain; LedgerError if the row does not follow from the last one."""
    return _next(_Place.of(last), row, terms.plain, where).mark()


def chain(terms: Terms, rows: Iterable[Row], where: str) -> Trail:
    """The whole chain from the terms on; LedgerError where it is broken. The rows may come in batches."""
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
    if facts["kind"] == "charge" and not _holds(place, total):  # a recovery says what was spent, whatever the limit
        raise changed(where, "its entries pass its limit")
    return _Place(number, row.head, total, place.limit, place.most, place.written, unit, facts["time"])


def _adds_up(before: tuple[Pair, ...], amount: tuple[Pair, ...], total: tuple[Pair, ...]) -> bool:
    """Tell whether a total is exactly the one before and the amount, without building a fraction."""
    for (n, d), (more, of), (written, per) in zip(before or ((0, 1),) * len(total), amount, total, strict=True):
        if d == of == per:
            if written != n + more:
                return False
        elif written * d * of != (n * of + more * d) * per:
            return False
    return True


def _holds(place: _Place, total: tuple[Pair, ...]) -> bool:
    """As `Limit.holds`, in whole numbers."""
    within = [n * per <= most * d for (n, d), (most, per) in zip(total, place.most, strict=True)]
    if not place.limit.one_is_enough:
        return all(within)
    return any(within[:-1]) and within[-1] if place.limit.keys_delta else any(within)


def _is_raised(before: Limit, after: Limit) -> bool:
    return len(before.amount) == len(after.amount) and before.within(after)


def entries_of(rows: Iterable[Row], where: str) -> list[tuple[int, Entry]]:
    """The entries of rows, with their numbers; LedgerError where one cannot be read."""
    entries = []
    for row in rows:
        try:
            entries.append((row.number, row.entry()))
        except ValueError:
            raise changed(where, f"entry {row.number} cannot be read") from None
    return entries


def entry_of_receipt(trail: Trail, provenance: Mapping[str, Any], where: str | None) -> int:
    """The entry of a release; refused where it is not in the chain."""
    receipt = provenance.get("ledger", provenance)
    entry, head = (receipt.get("entry"), receipt.get("head")) if isinstance(receipt, Mapping) else (None, None)
    if type(entry) is not int or not 0 <= entry < len(trail.heads) or trail.heads[entry] != head:
        raise LedgerError(
            f"the ledger at {where} does not know the release that is its entry {shown(entry)}: "
            "it is an older copy, or the release is another ledger's. Put the newest copy back."
        )
    return entry
