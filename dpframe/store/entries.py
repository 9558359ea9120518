"""What a store holds: a ledger's terms, its charges, and the chain of hashes that ties them together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Protocol

from dpframe.errors import LedgerError, shown
from dpframe.guarantee import Amount, PrivacyLoss, PrivacyUnit, shown_down

FORMAT = "dpframe.ledger/1"
LONG = 10_000  # bits; Python refuses to print longer integers as decimals, so these are written as hexadecimals


@dataclass(frozen=True)
class Charge:
    """What was asked, when, and what it cost."""

    time: str
    label: str | None
    query: str
    unit: PrivacyUnit
    amount: Amount
    cost: PrivacyLoss


@dataclass(frozen=True)
class Mark:
    """A place in the chain: so many entries, ending in this hash. Number 0 is the hash of the terms."""

    entry: int
    head: str
    total: Amount = ()


@dataclass(frozen=True)
class Terms:
    """What a ledger is: fixed when it is made, and the first link of its chain."""

    unit: PrivacyUnit
    epsilon: Fraction
    delta: Fraction
    accounting: str
    dataset: str | None
    limit: Amount  # kept beside epsilon and delta: every process compares with one and the same number
    created: str

    def text(self) -> str:
        """The terms as canonical JSON."""
        return canonical(
            {
                "format": FORMAT,
                "unit": asdict(self.unit),
                "epsilon": _exact_text(self.epsilon),
                "delta": _exact_text(self.delta),
                "accounting": self.accounting,
                "dataset": self.dataset,
                "limit": exact_texts(self.limit),
                "created": self.created,
            }
        )

    @classmethod
    def of_text(cls, text: str, where: str) -> Terms:
        """Read what `text` wrote."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise LedgerError(
                    f"the ledger at {where} is of the format {found['format']!r}, and this version of dpframe reads "
                    f"{FORMAT!r}. Open it with the version that made it."
                )
            return cls(
                PrivacyUnit(**found["unit"]),
                _exact(found["epsilon"]),
                _exact(found["delta"]),
                found["accounting"],
                found["dataset"],
                exact_amount(found["limit"]),
                found["created"],
            )
        except (ValueError, KeyError, TypeError):
            raise changed(where, "its terms cannot be read") from None

    @property
    def whole(self) -> PrivacyLoss:
        """The limit, for people to read."""
        return PrivacyLoss(shown_down(self.epsilon), shown_down(self.delta))

    def mark(self) -> Mark:
        """The beginning of the chain."""
        return Mark(0, hashlib.sha256(self.text().encode()).hexdigest())


class Store(Protocol):
    """What a ledger asks of the place where its charges are kept."""

    @property
    def shown(self) -> str | None:
        """The place, for people to read; None in memory."""

    def charge(self, charge: Charge, allowed: Callable[[Amount, Amount], None]) -> Mark | None:
        """Append, all or nothing, if `allowed(spent, total)` does not raise; where it stands in the chain."""

    def charges(self) -> list[Charge]:
        """Every charge so far."""

    def spent(self) -> Amount:
        """The sum of all charges; empty before the first."""

    def verify(self) -> list[Mark]:
        """Follow the chain; every place in it."""

    @property
    def identity(self) -> tuple[str, str]:
        """Address and beginning of the chain: what a pickle carries."""


@dataclass(frozen=True)
class Row:
    """An entry as it is stored."""

    entry: int
    body: str
    head: str

    @classmethod
    def after(cls, last: Mark, charge: Charge) -> Row:
        """The entry that follows `last`."""
        body = canonical(
            {
                "entry": last.entry + 1,
                "time": charge.time,
                "label": charge.label,
                "query": charge.query,
                "unit": asdict(charge.unit),
                "amount": exact_texts(charge.amount),
                "total": exact_texts(plus(last.total, charge.amount)),
                "epsilon": charge.cost.epsilon,
                "delta": charge.cost.delta,
            }
        )
        return cls(last.entry + 1, body, _link(last.head, body))

    def mark(self) -> Mark:
        """The place of this entry."""
        return Mark(self.entry, self.head, exact_amount(json.loads(self.body)["total"]))

    def charge(self) -> Charge:
        """The charge that was stored."""
        found = json.loads(self.body)
        return Charge(
            found["time"],
            found["label"],
            found["query"],
            PrivacyUnit(**found["unit"]),
            exact_amount(found["amount"]),
            PrivacyLoss(found["epsilon"], found["delta"]),
        )


def follow(last: Mark, row: Row, where: str) -> Mark:
    """The next place in the chain; LedgerError if the row does not follow from the last one."""
    if row.entry != last.entry + 1 or row.head != _link(last.head, row.body):
        raise changed(where, f"entry {last.entry + 1} does not follow from entry {last.entry}")
    try:
        mark, number, amount = row.mark(), json.loads(row.body)["entry"], row.charge().amount
    except (ValueError, KeyError, TypeError):
        raise changed(where, f"entry {row.entry} cannot be read") from None
    if number != row.entry or mark.total != plus(last.total, amount):
        raise changed(where, f"entry {row.entry} does not add up")
    return mark


def chain(terms: Terms, rows: Iterable[Row], where: str) -> list[Mark]:
    """Every place of the chain from the terms on; LedgerError where it is broken."""
    marks = [terms.mark()]
    for row in rows:
        marks.append(follow(marks[-1], row, where))
    return marks


def changed(where: str, what: str) -> LedgerError:
    """The refusal of a store that dpframe did not leave so."""
    return LedgerError(
        f"the ledger at {where} was changed by something other than dpframe: {what}. "
        "Put its newest intact copy back; nothing can be charged to it as it is."
    )


def refuse_other(asked: Terms, found: Terms, where: str) -> None:
    """Refuse to open a ledger with other terms than its own."""
    for name in ("epsilon", "delta", "unit", "accounting", "dataset"):
        wanted, kept = getattr(asked, name), getattr(found, name)
        if wanted != kept:
            said = [_said(value) for value in (kept, wanted)]
            raise LedgerError(
                f"{name} must be {said[0]}, as in the ledger at {where}, not {said[1]}. "
                "Open it with dpf.Ledger.open(path), or take another path for other people's data."
            )


def _said(value: object) -> str:
    if isinstance(value, PrivacyUnit):
        return f"({value})"
    return f"{shown_down(value)!r}" if isinstance(value, Fraction) else shown(value)


def place_of(marks: list[Mark], provenance: Mapping[str, Any], where: str | None) -> None:
    """Refuse a release whose entry is not in the chain."""
    place = provenance.get("ledger", provenance)
    entry, head = place.get("entry"), place.get("head")
    if not isinstance(entry, int) or not 0 <= entry < len(marks) or marks[entry].head != head:
        raise LedgerError(
            f"the ledger at {where} does not know the release that is its entry {shown(entry)}: "
            "it is an older copy, or the release is another ledger's. Put the newest copy back."
        )


def canonical(value: Any) -> str:
    """JSON in one way only: sorted names, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def exact_texts(amount: Amount) -> list[str]:
    """Exact rationals as text, of any length."""
    return [_exact_text(part) for part in amount]


def exact_amount(texts: Iterable[str]) -> Amount:
    """Read what `exact_texts` wrote."""
    return tuple(_exact(text) for text in texts)


def plus(spent: Amount, amount: Amount) -> Amount:
    """Both together, coordinate by coordinate; nothing was spent where `spent` is empty."""
    return tuple(one + other for one, other in zip(spent, amount, strict=True)) if spent else amount


def sum_of(charges: list[Charge]) -> Amount:
    """What the charges add up to."""
    spent: Amount = ()
    for charge in charges:
        spent = plus(spent, charge.amount)
    return spent


def now() -> str:
    """The time of an entry: told to people, and used for nothing else."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _link(previous: str, body: str) -> str:
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def _exact_text(part: Fraction) -> str:
    return "/".join(str(one) if one.bit_length() < LONG else hex(one) for one in part.as_integer_ratio())


def _exact(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 0), int(denominator, 0))
