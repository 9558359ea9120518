"""What a store holds: a ledger's entries, and the chain of hashes that ties them together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from dpframe.errors import LedgerError, shown
from dpframe.exact import Amount, exact_amount, exact_texts, plus
from dpframe.guarantee import PrivacyLoss, PrivacyUnit
from dpframe.store.terms import Limit, Terms, changed
from dpframe.store.texts import canonical, digest

Kind = Literal["charge", "limit", "recovery", "answer"]


@dataclass(frozen=True)
class Entry:
    """What happened: a charge, a raised limit, a recovery, or an answer that was stored. Only some have a cost."""

    time: str
    label: str | None
    query: str
    unit: PrivacyUnit
    amount: Amount
    cost: PrivacyLoss
    kind: Kind = "charge"
    version: str | None = None
    asked: Mapping[str, str] | None = None  # of a named release: a hash for each of its public facts
    answer: str | None = None  # the hash of a stored answer
    limit: Limit | None = None  # where the entry raises it

    @property
    def name(self) -> str | None:
        """What a release is found by again: only one that says both its label and its version has a name."""
        if self.label is None or self.version is None:
            return None
        return digest(canonical([self.label, self.version]))


@dataclass(frozen=True)
class Mark:
    """A place in the chain: so many entries, ending in this hash. Number 0 is the hash of the terms."""

    entry: int
    head: str
    total: Amount
    limit: Limit

    @classmethod
    def first(cls, terms: Terms) -> Mark:
        """The beginning of the chain."""
        return cls(0, digest(terms.text()), (), terms.limit)

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "entry": self.entry,
            "head": self.head,
            "total": exact_texts(self.total),
            "limit": self.limit.facts(),
        }

    @classmethod
    def of(cls, facts: Any) -> Mark:
        """Read what `facts` wrote."""
        return cls(int(facts["entry"]), str(facts["head"]), exact_amount(facts["total"]), Limit.of(facts["limit"]))


Allowed = Callable[[Mark, Amount], None]  # raises where the total may not be spent


@dataclass(frozen=True)
class Answer:
    """What was stored under a name: the bytes of a release."""

    content: bytes


class Store(Protocol):
    """What a ledger asks of the place where its entries are kept."""

    @property
    def shown(self) -> str | None:
        """The place, for people to read; None in memory."""

    def charge(self, entry: Entry, allowed: Allowed) -> Mark | Answer | None:
        """Append, all or nothing, if `allowed` does not raise: its place, or the stored answer of that name."""

    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Store an answer under its name; the one that is stored already, where another was faster."""

    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry that raises the limit to what `raised` makes of the one until now."""

    def entries(self) -> list[tuple[int, Entry]]:
        """Every entry so far, with its number."""

    def last(self) -> Mark:
        """The end of the chain: what was spent, and the limit."""

    def verify(self) -> list[Mark]:
        """Follow the chain; every place in it."""

    @property
    def identity(self) -> tuple[str, str]:
        """Address and beginning of the chain: what a pickle carries."""


@dataclass(frozen=True)
class Row:
    """An entry as it is stored."""

    number: int
    body: str
    head: str
    name: str | None

    @classmethod
    def after(cls, last: Mark, entry: Entry) -> Row:
        """The row that follows `last`."""
        facts: dict[str, Any] = {
            "entry": last.entry + 1,
            "kind": entry.kind,
            "time": entry.time,
            "label": entry.label,
            "query": entry.query,
            "unit": asdict(entry.unit),
            "amount": exact_texts(entry.amount),
            "total": exact_texts(plus(last.total, entry.amount)),
            "limit": (entry.limit or last.limit).facts(),
            "epsilon": entry.cost.epsilon,
            "delta": entry.cost.delta,
        }
        named = {"version": entry.version, "asked": entry.asked, "answer": entry.answer}
        body = canonical(facts | {key: value for key, value in named.items() if value is not None})
        return cls(last.entry + 1, body, _link(last.head, body), entry.name)

    def follows(self, head: str | None) -> bool:
        """Whether its hash is that of its content and of the hash before it."""
        return head is not None and self.head == _link(head, self.body)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The body as it was written; ValueError where it cannot be read."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    def mark(self) -> Mark:
        """The place of this entry."""
        limit = Limit.of(self.facts["limit"])
        return Mark(self.number, self.head, exact_amount(self.facts["total"]), limit)

    def entry(self) -> Entry:
        """What was stored."""
        found = self.facts
        return Entry(
            found["time"],
            found["label"],
            found["query"],
            PrivacyUnit(**found["unit"]),
            exact_amount(found["amount"]),
            PrivacyLoss(found["epsilon"], found["delta"]),
            found["kind"],
            found.get("version"),
            found.get("asked"),
            found.get("answer"),
            Limit.of(found["limit"]) if found["kind"] in ("limit", "recovery") else None,
        )


def follow(last: Mark, row: Row, where: str) -> Mark:
    """The next place in the chain; LedgerError if the row does not follow from the last one."""
    if row.number != last.entry + 1 or not row.follows(last.head):
        raise changed(where, f"entry {last.entry + 1} does not follow from entry {last.entry}")
    try:
        mark, entry, number = row.mark(), row.entry(), row.facts["entry"]
        total = plus(last.total, entry.amount)
    except (ValueError, KeyError, TypeError):
        raise changed(where, f"entry {row.number} cannot be read") from None
    except LedgerError:  # the total would fall
        raise changed(where, f"entry {row.number} does not add up") from None
    if number != row.number or row.name != entry.name or mark.total != total:
        raise changed(where, f"entry {row.number} does not add up")
    if mark.limit != (entry.limit or last.limit) or not last.limit.within(mark.limit):
        raise changed(where, f"entry {row.number} does not have the limit of the entry before it")
    if not mark.limit.holds(mark.total):
        raise changed(where, "its entries pass its limit")
    return mark


def chain(terms: Terms, rows: Iterable[Row], where: str) -> list[Mark]:
    """Every place of the chain from the terms on; LedgerError where it is broken."""
    marks = [Mark.first(terms)]
    for row in rows:
        marks.append(follow(marks[-1], row, where))
    return marks


def place_of(marks: list[Mark], provenance: Mapping[str, Any], where: str | None) -> None:
    """Refuse a release whose entry is not in the chain."""
    place = provenance.get("ledger", provenance)
    entry, head = place.get("entry"), place.get("head")
    if not isinstance(entry, int) or not 0 <= entry < len(marks) or marks[entry].head != head:
        raise LedgerError(
            f"the ledger at {where} does not know the release that is its entry {shown(entry)}: "
            "it is an older copy, or the release is another ledger's. Put the newest copy back."
        )


def answered(entry: Entry, content: bytes) -> Entry:
    """The entry of a stored answer: it names the release and hashes what was released, and costs nothing."""
    nothing = tuple(part * 0 for part in entry.amount)
    return replace(entry, kind="answer", amount=nothing, cost=PrivacyLoss(0.0), answer=digest(content))


def refuse_other_facts(entry: Entry, earlier: Entry) -> None:
    """One name, one question: refuse a release whose public facts are not those that its name had before."""
    known, asked = earlier.asked or {}, entry.asked or {}
    differ = [fact for fact in sorted({*known, *asked}) if known.get(fact) != asked.get(fact)]
    if differ:
        raise LedgerError(
            f"label {shown(entry.label)} and version {shown(entry.version)} name another release of this ledger: "
            f"{' and '.join(differ)} {'differs' if len(differ) == 1 else 'differ'}. Nothing was charged. "
            "Ask exactly as before, or take another label or another version."
        )


def _link(previous: str, body: str) -> str:
    return digest(f"{previous}\n{body}")
