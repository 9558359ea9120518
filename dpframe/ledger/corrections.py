"""Corrections of charges that dpframe 0.2 understated, so that the limit covers what was really spent.

Reports of the local model are only proven epsilon-differentially private. Their privacy loss may be +epsilon or
-epsilon, an interval of length 2 epsilon. Under ``gdp`` and ``rdp``, which charge the curve of the noise, dpframe 0.2
charged them like a choice whose losses lie in an interval of length epsilon. Under ``gdp``, that is a quarter of their
mu^2 for a small epsilon.

Such an entry is recognized by its query text, its unit and its amount. The amount gives the epsilon that was charged,
rounded up, and the curve `PureLoss` of that epsilon gives the right amount. Local reports of this version store the
epsilon of their curve in the chain, and are never corrected. A correction is an entry of the kind ``limit`` that
repeats the current limit, because dpframe 0.2 refuses kinds that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpframe.accounting import Accounting, PureLoss
from dpframe.exact import Amount
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import CORRECTION, PURE, Due, Entry, Mark
from dpframe.ledger.terms import Terms
from dpframe.privacy import Price

REPORTS = "reports of "  # the start of the query text of local reports
_WORDS = re.compile(rf"{REPORTS}.+ by .+", re.DOTALL)

Identity = tuple[str, str]  # the address, and the hash of the terms


@dataclass(frozen=True)
class Scanned:
    """A scanned place in a chain, and the entries up to it that understate their cost and are not corrected yet."""

    entry: int
    head: str
    missing: Mapping[int, tuple[str, Amount]]  # by entry number: the hash of the entry, and the missing amount

    def after(self, last: Mark, found: Iterable[tuple[int, str, Entry]], accounting: Accounting) -> Scanned:
        """Return the scan at a later place; `found` holds the local reports and corrections in between."""
        missing = dict(self.missing)
        for number, head, entry in found:
            if entry.is_correction:
                named = entry.asked or {}
                missing = {of: one for of, one in missing.items() if named.get(str(of)) != one[0]}
            if (amount := missing_of(entry, last, accounting)) is not None:
                missing[number] = (head, amount)
        return Scanned(last.entry, last.head, missing)

    @property
    def due(self) -> Due | None:
        """The correction that is due; None if nothing is missing."""
        if not self.missing:
            return None
        amounts = [amount for _, amount in self.missing.values()]
        whole = tuple(sum(parts, Fraction(0)) for parts in zip(*amounts, strict=True))
        return Due({number: head for number, (head, _) in self.missing.items()}, whole)


_scanned: dict[Identity, Scanned] = {}  # the last scan of each ledger: the next one reads only newer entries


def known(identity: Identity) -> Scanned | None:
    """Return the last scan of a ledger by this process."""
    return _scanned.get(identity)


def note(identity: Identity, scanned: Scanned) -> None:
    """Remember a scan of committed entries."""
    _scanned[identity] = scanned


def concerns(terms: Terms, accounting: Accounting) -> bool:
    """Return whether a ledger can hold understated charges: they need replace neighbors, and gdp or rdp."""
    return terms.unit.neighbors == "replace" and not accounting.charges_price


def missing_of(entry: Entry, last: Mark, accounting: Accounting) -> Amount | None:
    """Return the cost of an entry beyond its amount, rounded up; None if the entry needs no correction."""
    if entry.kind != "charge" or PURE in (entry.asked or {}) or not _WORDS.fullmatch(entry.query):
        return None
    epsilon = accounting.range_of(entry.amount)
    if epsilon is None:
        return None
    curve = PureLoss(epsilon)
    right = accounting.charge(Price(curve.budget), last.limit.amount, (curve,))
    return tuple(max(part - charged, Fraction(0)) for part, charged in zip(right, entry.amount, strict=True))


def correction(due: Due, terms: Terms, last: Mark, accounting: Accounting, reason: str | None) -> Entry:
    """Return the entry that charges what is missing; it names each entry that it corrects, with its hash."""
    one = len(due.entries) == 1
    words = f"{CORRECTION}{len(due.entries):,} charge{'' if one else 's'} of local reports understated the cost"
    named = {str(number): head for number, head in due.entries.items()}
    cost = accounting.loss(due.amount)
    return Entry(now(), reason, words, terms.unit, due.amount, cost, kind="limit", asked=named, limit=last.limit)
