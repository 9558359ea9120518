"""Corrections of charges that dpframe 0.2 understated, so that the limit holds for what was spent.

Of reports of the local model only epsilon-differential privacy is proven: their losses may be +epsilon and -epsilon,
which lie in an interval of 2 epsilon. Where losses add up by their curves, dpframe 0.2 charged them as a choice whose
losses lie in an interval of epsilon: under ``gdp`` a quarter of their mu^2.

Such an entry is known by its words, its unit and its amount, and tells what is missing: the amount gives the epsilon
that was charged, rounded up, and the declared curve `PureLoss` of that epsilon gives the amount that is right. Entries
of this version write the epsilon of their curve into the chain, and are never corrected. A correction is an entry of
the kind ``limit``, whose limit is that of before: dpframe 0.2 refuses kinds that it does not know.
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

REPORTS = "reports of "  # how the words of local reports begin
_WORDS = re.compile(rf"{REPORTS}.+ by .+", re.DOTALL)

Identity = tuple[str, str]  # the address, and the hash of the terms


@dataclass(frozen=True)
class Scanned:
    """A place in a chain, and the entries up to it that understate their cost and were not corrected yet."""

    entry: int
    head: str
    missing: Mapping[int, tuple[str, Amount]]  # by number: the hash of the entry, and what is missing

    def after(self, last: Mark, found: Iterable[tuple[int, str, Entry]], accounting: Accounting) -> Scanned:
        """The same at a later place, from the entries in between that `concerns` names."""
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
        """The correction that is due."""
        if not self.missing:
            return None
        amounts = [amount for _, amount in self.missing.values()]
        whole = tuple(sum(parts, Fraction(0)) for parts in zip(*amounts, strict=True))
        return Due({number: head for number, (head, _) in self.missing.items()}, whole)


_scanned: dict[Identity, Scanned] = {}  # what this process knows of each ledger: only what was added since is read


def known(identity: Identity) -> Scanned | None:
    """The last scan of a ledger by this process."""
    return _scanned.get(identity)


def note(identity: Identity, scanned: Scanned) -> None:
    """Remember a scan of entries that are committed."""
    _scanned[identity] = scanned


def concerns(terms: Terms, accounting: Accounting) -> bool:
    """Tell whether a ledger may hold such entries: local reports need replace neighbors, and a curve that adds up."""
    return terms.unit.neighbors == "replace" and not accounting.charges_price


def missing_of(entry: Entry, last: Mark, accounting: Accounting) -> Amount | None:
    """The cost of an entry beyond its amount, rounded up; None of one that was charged as it must be."""
    if entry.kind != "charge" or PURE in (entry.asked or {}) or not _WORDS.fullmatch(entry.query):
        return None
    epsilon = accounting.range_of(entry.amount)
    if epsilon is None:
        return None
    curve = PureLoss(epsilon)
    right = accounting.charge(Price(curve.budget), last.limit.amount, (curve,))
    return tuple(max(part - charged, Fraction(0)) for part, charged in zip(right, entry.amount, strict=True))


def correction(due: Due, terms: Terms, last: Mark, accounting: Accounting, reason: str | None) -> Entry:
    """The entry that charges what is missing; it names each entry that it corrects, with its hash."""
    one = len(due.entries) == 1
    words = f"{CORRECTION}{len(due.entries):,} charge{'' if one else 's'} of local reports understated the cost"
    named = {str(number): head for number, head in due.entries.items()}
    cost = accounting.loss(due.amount)
    return Entry(now(), reason, words, terms.unit, due.amount, cost, kind="limit", asked=named, limit=last.limit)
