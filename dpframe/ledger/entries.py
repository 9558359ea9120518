"""Entries of a ledger, the chain of hashes that ties them together, and the store that keeps them in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, Protocol

from dpframe import noise
from dpframe.errors import LedgerError, shown
from dpframe.exact import Amount, exact_texts, plus
from dpframe.ledger import reading
from dpframe.ledger.canonical import canonical, digest
from dpframe.ledger.terms import Limit, Terms, changed
from dpframe.privacy import PrivacyLoss, PrivacyUnit

Kind = Literal["charge", "limit", "recovery", "answer", "intent", "values"]
PURE = "pure_epsilon"  # among the public facts of an entry: the exact epsilon of the pure loss that was charged
CORRECTION = "correction: "  # how the words of a correction begin
UNLISTED = ("answer", "intent", "values")  # what belongs to an earlier charge, which is listed


@dataclass(frozen=True)
class Entry:
    """An event: a charge, a raised limit, a recovery, an answer, or a step of a stream. Only some have a cost."""

    time: str
    label: str | None
    query: str
    unit: PrivacyUnit
    amount: Amount
    cost: PrivacyLoss
    kind: Kind = "charge"
    snapshot: str | None = None
    asked: Mapping[str, str] | None = None  # a hash for each public fact of a named release, or entry of a correction
    answer: str | None = None  # the hash of a stored answer
    limit: Limit | None = None  # where the entry raises it
    promises: tuple[str, ...] = ()  # a hash for each release: what its record says that is known before rows are read
    stream: str | None = None  # the name of a stream that was charged as a whole, of whose periods this is one
    period: int | None = None  # its number, from 1
    lower: str = field(default="Lower epsilon", compare=False)  # how the caller makes it cost less; it is never stored

    @property
    def name(self) -> str | None:
        """The name by which a release is found again: a stream has one, and what says both label and snapshot."""
        return name_of(self.label, self.snapshot, self.stream)

    @property
    def is_correction(self) -> bool:
        """Tell whether it charges what earlier entries understated: a limit that stays, in dpframe 0.2."""
        return self.kind == "limit" and self.query.startswith(CORRECTION)


@dataclass(frozen=True)
class Due:
    """A correction that is due: the hash of each entry that understates its cost, and what is missing in all."""

    entries: Mapping[int, str]
    amount: Amount


@dataclass(frozen=True)
class Mark:
    """A place in the chain: so many entries, ending in this hash. Number 0 is the hash of the terms."""

    entry: int
    head: str
    total: Amount
    limit: Limit
    due: Due | None = field(default=None, compare=False)  # where it was looked for
    time: str = field(default="", compare=False)  # of the entry, where it is known

    @property
    def spent(self) -> Amount:
        """The total, and what a correction that is due will add to it."""
        return self.total if self.due is None else plus(self.total, self.due.amount)

    @classmethod
    def first(cls, terms: Terms) -> Mark:
        """The beginning of the chain."""
        return cls(0, digest(terms.beginning), (), terms.limit)

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "entry": self.entry,
            "head": self.head,
            "total": exact_texts(self.total),
            "limit": self.limit.facts(),
            **({"time": self.time} if self.time else {}),
        }

    @classmethod
    def of(cls, facts: Any) -> Mark:
        """Read what `facts` wrote; ValueError or KeyError where it cannot be read. Heads of 0.2 have no time."""
        limit, head = Limit.of(facts["limit"]), reading.hexadecimal(facts["head"])
        total = reading.pairs(facts["total"], len(limit.amount) if facts["total"] else None)
        time = reading.printable(reading.text(facts.get("time", "")))
        return cls(reading.whole(facts["entry"]), head, tuple(Fraction(*part) for part in total), limit, time=time)


@dataclass(frozen=True)
class Trail:
    """A chain that was followed from its beginning: the hash of each place in it, and the end."""

    heads: list[str]
    last: Mark


@dataclass(frozen=True)
class Summary:
    """A summary for a printed ledger: the end of the chain, the number of charges, and the last entries."""

    last: Mark
    charges: int
    latest: list[Entry]


Allowed = Callable[[Mark, Amount], None]  # raises where the total may not be spent


@dataclass(frozen=True)
class Answer:
    """An answer that was stored under a name: the bytes of a release."""

    content: bytes


class Store(Protocol):
    """A store of entries: the members that a ledger calls."""

    @property
    def shown(self) -> str | None:
        """The place, for people to read; None in memory."""

    def charge(self, entry: Entry, allowed: Allowed) -> Mark | Answer | None:
        """Append, all or nothing, if `allowed` does not raise: its place, or the stored answer of that name."""

    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[bool]]:
        """The end of the chain, and for each entry whether an answer is stored under its name."""

    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Store an answer under its name; the one that is stored already, where another was faster."""

    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry that raises the limit to what `raised` makes of the one until now."""

    def entries(self) -> list[tuple[int, Entry]]:
        """Every entry so far, with its number."""

    def last(self) -> Mark:
        """The end of the chain: what was spent, and the limit."""

    def summary(self, count: int) -> Summary:
        """The summary for a printed ledger, with this number of the last entries."""

    def verify(self) -> Trail:
        """Follow the chain, and hold every stored answer against its entry."""

    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """An entry by its number, and what was stored under its name."""

    def head_at(self, number: int) -> str | None:
        """The hash of the entry of a number; None where there is none."""

    def step(self, entry: Entry, decide: Callable[[Any, Mark], tuple[Entry, bytes | None] | None]) -> Any:
        """A step of the stream of an entry's name: `decide` sees it and the end, and says what is appended, if any."""

    def stream(self, entry: Entry) -> Any:
        """The stream of an entry's name, or None."""

    def contents(self, entry: Entry, known: Any = None) -> dict[int, bytes]:
        """The contents that were stored of each period of the stream of an entry's name, which continues `known`."""

    @property
    def identity(self) -> tuple[str, str]:
        """Address and beginning of the chain: what a pickle carries."""

    @property
    def head(self) -> Any:
        """The other place of the head, as the caller said it; a pickle carries it too."""


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
            "unit": entry.unit.facts(),
            "amount": exact_texts(entry.amount),
            "total": exact_texts(plus(last.total, entry.amount)),
            "limit": (entry.limit or last.limit).facts(),
            "epsilon": entry.cost.epsilon,
            "delta": entry.cost.delta,
            "nonce": noise.nonce(),  # two charges of one second with the same words are not one
        }
        named: dict[str, Any] = {"version": entry.snapshot, "asked": entry.asked, "answer": entry.answer}
        named |= {"stream": entry.stream, "period": entry.period}
        facts |= {key: value for key, value in named.items() if value is not None}
        body = canonical(facts | ({"promises": entry.promises} if entry.promises else {}))
        if max(map(len, facts["total"])) > reading.LONGEST:
            raise LedgerError(
                "amounts must add up to a number that can be kept, and this one has more than "
                f"{reading.LONGEST:,} digits: nothing was charged. Write a cost with fewer digits."
            )
        return cls(last.entry + 1, body, link(last.head, body), entry.name)

    def follows(self, head: str | None) -> bool:
        """Tell whether its hash is that of its content and of the hash before it."""
        return head is not None and isinstance(self.body, str) and self.head == link(head, self.body)

    @property
    def facts(self) -> dict[str, Any]:
        """The body as it was written, not kept; ValueError where it cannot be read."""
        return reading.entry_facts(self.body)

    def mark(self) -> Mark:
        """The place of this entry; ValueError where it cannot be read."""
        return Mark.of({**self.facts, "entry": self.number, "head": self.head})

    def entry(self) -> Entry:
        """The entry that was stored; ValueError where it cannot be read."""
        facts = self.facts
        label = facts["label"]
        return Entry(
            reading.printable(facts["time"]),
            None if label is None else reading.printable(label),
            reading.printable(facts["query"]),
            reading.unit(facts["unit"]),
            reading.fractions(facts["amount"]),
            PrivacyLoss(facts["epsilon"], facts["delta"]),
            facts["kind"],
            facts.get("version"),
            facts.get("asked"),
            facts.get("answer"),
            Limit.of(facts["limit"]) if facts["kind"] in ("limit", "recovery") else None,
            tuple(facts.get("promises", ())),
            facts.get("stream"),
            facts.get("period"),
        )


def name_of(label: str | None, snapshot: str | None, stream: str | None = None) -> str | None:
    """The name of a stream, or of a release that has a label and a snapshot."""
    if stream is not None:
        return digest(canonical({"stream": stream}))
    return None if label is None or snapshot is None else digest(canonical([label, snapshot]))


def answered(entry: Entry, content: bytes) -> Entry:
    """The entry of a stored answer: it names the release and hashes what was released, and costs nothing."""
    nothing = tuple(coordinate * 0 for coordinate in entry.amount)
    free = replace(entry, kind="answer", amount=nothing, cost=PrivacyLoss(0.0), promises=())
    return replace(free, answer=digest(content))


def refuse_other_facts(entry: Entry, earlier: Entry) -> None:
    """One name, one question: refuse a release whose public facts are not those that its name had before."""
    if differ := differing(entry, earlier):
        raise LedgerError(
            f"label {shown(entry.label)} and snapshot {shown(entry.snapshot)} name another release of this ledger: "
            f"{differ}. Nothing was charged. Ask exactly as before, or take another label or another snapshot."
        )


FACTS = {  # of stored questions, whose names are those of 0.1, as arguments of today
    "raw": "keep_noisy",
    "price": "cost",
    "measures": "statistic",
}


def differing(entry: Entry, earlier: Entry) -> str:
    """The public facts that two questions of one name do not share, as text; empty if there are none."""
    known, facts = earlier.asked or {}, entry.asked or {}
    differ = [FACTS.get(fact, fact) for fact in sorted({*known, *facts}) if known.get(fact) != facts.get(fact)]
    return f"{' and '.join(differ)} {'differs' if len(differ) == 1 else 'differ'}" if differ else ""


def link(previous: str, body: str) -> str:
    """The hash of an entry and of all before it."""
    return digest(f"{previous}\n{body}")


@dataclass(frozen=True)
class StreamState:
    """A stream as far as its entries tell."""

    entry: Entry  # the charge
    number: int  # of that entry
    head: str
    drawn: int = 0  # the last period for which noise was to be drawn
    kept: Mapping[int, int] = field(default_factory=dict)  # periods that are stored, with the numbers of their entries
    is_closed: bool = False

    @property
    def is_open(self) -> bool:
        """Tell whether the last period is still being drawn, or was lost."""
        return self.drawn > 0 and self.drawn not in self.kept


Step = tuple[Entry, bytes | None]  # an entry to append, and what is stored with it
Decide = Callable[[StreamState | None, Mark], Step | None]


def stream_of(
    entries: Iterable[tuple[int, str, Entry]], *, last_recovery: int = 0, where: str | None = None
) -> StreamState | None:
    """The stream that entries of one name make, None of none; LedgerError where they do not follow its steps."""
    stream = None
    for number, head, entry in entries:
        if stream is None:
            if entry.kind != "charge":
                raise _changed(entry, where)
            stream = StreamState(entry, number, head, is_closed=last_recovery > number)
        elif entry.kind == "intent" and entry.period == stream.drawn + 1:
            stream = replace(stream, drawn=stream.drawn + 1)
        elif entry.kind == "values" and entry.period == stream.drawn and stream.is_open and entry.answer is not None:
            stream = replace(stream, kept={**stream.kept, stream.drawn: number})
        else:
            raise _changed(entry, where)
    return stream


def continued(known: StreamState, stream: StreamState | None) -> StreamState:
    """The stream as it is now; refused where it is another, or lacks periods, since a copy was put back meanwhile."""
    if stream is None or stream.head != known.head or not known.kept.items() <= stream.kept.items():
        raise LedgerError(
            f"the ledger no longer contains the stream {shown(known.entry.stream)} as it was when this call began: "
            "a copy was put in its place meanwhile. Nothing was released. Ask again."
        )
    return stream


def _changed(entry: Entry, where: str | None) -> LedgerError:
    return changed(str(where), f"the entries of the stream {shown(entry.stream)} do not follow its steps")


UNLIMITED = Limit(Fraction(0), Fraction(0), ())  # never compared with: the default ledger only records


_process = object()  # of this process: a number may come again in a child, as 1 does in containers


def _forked() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class MemoryStore:
    """A list of entries, for the threads of one process."""

    shown: str | None = None
    head: None = None  # which is kept nowhere

    def __init__(self, limit: Limit = UNLIMITED) -> None:
        self._entries: list[Entry] = []
        self._contents: dict[int, bytes] = {}  # of periods of stream, by the numbers of their entries
        self._last = Mark(0, "", (), limit)
        self._lock = threading.Lock()
        self._process = _process

    def charge(self, entry: Entry, allowed: Allowed) -> None:
        """Append if it is allowed. A forked child would spend the same budget again, so it is refused."""
        self._check_process()
        with self._lock:
            total = plus(self._last.total, entry.amount)
            allowed(self._last, total)
            self._append(entry, total)

    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[bool]]:
        """The end; nothing is stored in memory."""
        return self._last, [False] * len(entries)

    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Refuse: nothing is stored in memory."""
        raise LedgerError(
            "snapshot must be left out with a ledger in memory, which stores no results. "
            "Keep the ledger in a file to replay them: dpf.Ledger(..., path='clinic.ledger')."
        )

    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry that raises the limit."""
        self._check_process()
        with self._lock:
            self._append(replace(entry, limit=raised(self._last.limit)), plus(self._last.total, entry.amount))

    def entries(self) -> list[tuple[int, Entry]]:
        """A copy of the list."""
        return list(enumerate(self._entries, start=1))

    def last(self) -> Mark:
        """The last total, and the limit."""
        return self._last

    def summary(self, count: int) -> Summary:
        """The summary for a printed ledger."""
        last, entries = self._last, list(self._entries)
        listed = [entry for entry in entries if entry.kind not in UNLISTED]
        return Summary(last, sum(entry.kind == "charge" for entry in entries), listed[-count:])

    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """Refuse, as `verify`."""
        raise AssertionError  # verify refused before

    def head_at(self, number: int) -> None:
        """None: there is no chain in memory."""

    def verify(self) -> Trail:
        """Refuse: there is no chain in memory."""
        raise LedgerError("a ledger in memory cannot be verified: it has no chain. Keep it in a file: path=...")

    def step(self, entry: Entry, decide: Decide) -> StreamState | None:
        """A step of a stream, for one thread after the other. In a forked child none is taken."""
        self._check_process()
        with self._lock:
            step = decide(self.stream(entry), self._last)
            if step is not None:
                if step[1] is not None:  # first, for whoever sees the entry looks for it
                    self._contents[len(self._entries) + 1] = step[1]
                self._append(step[0], plus(self._last.total, step[0].amount))
            return self.stream(entry)

    def contents(self, entry: Entry, known: StreamState | None = None) -> dict[int, bytes]:
        """The contents that were stored of each period."""
        stream = self.stream(entry)
        return {} if stream is None else {period: self._contents[number] for period, number in stream.kept.items()}

    def stream(self, entry: Entry) -> StreamState | None:
        """The stream of an entry's name."""
        return stream_of(
            (number, "", step) for number, step in enumerate(self._entries, start=1) if step.stream == entry.stream
        )

    @property
    def identity(self) -> tuple[str, str]:
        """Refuse: there is no address either."""
        raise LedgerError(
            "a ledger in memory cannot be pickled: the copy would be a second budget for the same people."
        )

    def _append(self, entry: Entry, total: Amount) -> None:
        # first what is spent: Ctrl-C may come between the two, and what is listed but not counted would be free
        self._last = Mark(len(self._entries) + 1, "", total, entry.limit or self._last.limit)
        self._entries.append(entry)

    def _check_process(self) -> None:
        if self._process is not _process:
            raise LedgerError(
                "a ledger in memory must be charged in the process that created it, not in a forked child. "
                "Release in the parent, or keep the ledger in a file: path=..."
            )
