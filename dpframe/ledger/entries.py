"""Entries of a ledger, the chain of hashes that links them, and the store that keeps them in memory."""

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
PURE = "pure_epsilon"  # the public fact with the exact epsilon of a charged pure loss
CORRECTION = "correction: "  # the start of the query text of a correction
UNLISTED = ("answer", "intent", "values")  # entries that belong to an earlier charge, which is listed


@dataclass(frozen=True)
class Entry:
    """An event: a charge, a raised limit, a recovery, an answer or a step of a stream. Only some events cost budget."""

    time: str
    label: str | None
    query: str
    unit: PrivacyUnit
    amount: Amount
    cost: PrivacyLoss
    kind: Kind = "charge"
    snapshot: str | None = None
    asked: Mapping[str, str] | None = None  # hashes of public facts, or of corrected entries; for PURE an exact epsilon
    answer: str | None = None  # the hash of a stored answer
    limit: Limit | None = None  # the limit from this entry on, if it states one
    promises: tuple[str, ...] = ()  # for each release, a hash of the facts that are known before rows are read
    stream: str | None = None  # the name of the stream that the entry belongs to, which is charged as a whole
    period: int | None = None  # the number of the period of the stream, from 1
    lower: str = field(default="Lower epsilon", compare=False)  # advice on how to lower the cost; never stored

    @property
    def name(self) -> str | None:
        """The name by which a stream, or a release with both label and snapshot, is found again; otherwise None."""
        return name_of(self.label, self.snapshot, self.stream)

    @property
    def is_correction(self) -> bool:
        """True if the entry charges what earlier entries understated; dpframe 0.2 reads it as an unchanged limit."""
        return self.kind == "limit" and self.query.startswith(CORRECTION)


@dataclass(frozen=True)
class Due:
    """A correction that is due: the hash of each entry that understates its cost, and the total missing amount."""

    entries: Mapping[int, str]
    amount: Amount


@dataclass(frozen=True)
class Mark:
    """A place in the chain: number and hash of an entry, with the total and limit after it. Entry 0 is the terms."""

    entry: int
    head: str
    total: Amount
    limit: Limit
    due: Due | None = field(default=None, compare=False)  # None also if it was not looked for
    time: str = field(default="", compare=False)  # the time of the entry, if known

    @property
    def spent(self) -> Amount:
        """The total, including what a correction that is due will add."""
        return self.total if self.due is None else plus(self.total, self.due.amount)

    @classmethod
    def first(cls, terms: Terms) -> Mark:
        """Return the beginning of the chain."""
        return cls(0, digest(terms.beginning), (), terms.limit)

    def facts(self) -> dict[str, Any]:
        """Return the place as plain JSON values."""
        return {
            "entry": self.entry,
            "head": self.head,
            "total": exact_texts(self.total),
            "limit": self.limit.facts(),
            **({"time": self.time} if self.time else {}),
        }

    @classmethod
    def of(cls, facts: Any) -> Mark:
        """Read the result of `facts`; ValueError or KeyError if it is malformed. Heads of dpframe 0.2 have no time."""
        limit, head = Limit.of(facts["limit"]), reading.hexadecimal(facts["head"])
        total = reading.pairs(facts["total"], len(limit.amount) if facts["total"] else None)
        time = reading.printable(reading.text(facts.get("time", "")))
        return cls(reading.whole(facts["entry"]), head, tuple(Fraction(*part) for part in total), limit, time=time)


@dataclass(frozen=True)
class Trail:
    """A chain that was followed from its beginning: the hash of each place, and the end."""

    heads: list[str]
    last: Mark


@dataclass(frozen=True)
class Summary:
    """A summary for a printed ledger: the end of the chain, the number of charges, and the last entries."""

    last: Mark
    charges: int
    latest: list[Entry]


Allowed = Callable[[Mark, Amount], None]  # raises if the total may not be spent


@dataclass(frozen=True)
class Answer:
    """The answer that is stored under a name: the bytes of a release."""

    content: bytes


class Store(Protocol):
    """A store of entries, with the members that a ledger uses."""

    @property
    def shown(self) -> str | None:
        """The place of the store, for display; None in memory."""

    def charge(self, entry: Entry, allowed: Allowed) -> Mark | Answer | None:
        """Append an entry unless `allowed` raises; return its place (None in memory), or the name's stored answer."""

    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[Answer | None]]:
        """Return the end of the chain, and for each entry the answer that is stored under its name, if there is one."""

    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Store an answer under its name and return it; if another process was faster, return its answer."""

    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry that raises the limit; `raised` computes the new limit from the current one."""

    def entries(self) -> list[tuple[int, Entry]]:
        """Return every entry so far, with its number."""

    def last(self) -> Mark:
        """Return the end of the chain: the total and the limit."""

    def summary(self, count: int) -> Summary:
        """Return the summary for a printed ledger, with at most `count` of the last entries."""

    def verify(self) -> Trail:
        """Follow the chain, and compare every stored answer with its entry."""

    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """Return an entry by its number, and the answer that is stored under its name."""

    def head_at(self, number: int) -> str | None:
        """Return the hash of the entry of a number; None if there is none."""

    def step(self, entry: Entry, decide: Callable[[Any, Mark], tuple[Entry, bytes | None] | None]) -> Any:
        """Take a step of a stream: `decide` gets the stream of the entry's name and the end, and may return a step."""

    def stream(self, entry: Entry) -> Any:
        """Return the stream of an entry's name, or None."""

    def contents(self, entry: Entry, known: Any = None) -> dict[int, bytes]:
        """Return the stored content of each period of the stream of an entry's name, which must continue `known`."""

    @property
    def identity(self) -> tuple[str, str]:
        """The address and the hash of the terms, which a pickle carries."""

    @property
    def head(self) -> Any:
        """The place of the head kept elsewhere, as the caller gave it; a pickle carries it too."""


@dataclass(frozen=True)
class Row:
    """An entry as it is stored."""

    number: int
    body: str
    head: str
    name: str | None

    @classmethod
    def after(cls, last: Mark, entry: Entry) -> Row:
        """Return the row that follows `last`."""
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
            "nonce": noise.nonce(),  # two charges of one second with the same text get different hashes
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
        """Return whether the row's hash is that of its content and of the hash before it."""
        return head is not None and isinstance(self.body, str) and self.head == link(head, self.body)

    @property
    def facts(self) -> dict[str, Any]:
        """The parsed body, which is not cached; ValueError if it is malformed."""
        return reading.entry_facts(self.body)

    def mark(self) -> Mark:
        """Return the place of this entry; ValueError if it is malformed."""
        return Mark.of({**self.facts, "entry": self.number, "head": self.head})

    def entry(self) -> Entry:
        """Return the entry that was stored; ValueError if it is malformed."""
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
    """Return the name of a stream, or of a release with both label and snapshot, as a hash; otherwise None."""
    if stream is not None:
        return digest(canonical({"stream": stream}))
    return None if label is None or snapshot is None else digest(canonical([label, snapshot]))


def answered(entry: Entry, content: bytes) -> Entry:
    """Return the entry for a stored answer: it has the release's name and the answer's hash, and costs nothing."""
    nothing = tuple(coordinate * 0 for coordinate in entry.amount)
    free = replace(entry, kind="answer", amount=nothing, cost=PrivacyLoss(0.0), promises=())
    return replace(free, answer=digest(content))


def refuse_other_facts(entry: Entry, earlier: Entry) -> None:
    """Refuse a release whose public facts differ from those of the earlier release of the same name."""
    if differ := differing(entry, earlier):
        raise LedgerError(
            f"label {shown(entry.label)} and snapshot {shown(entry.snapshot)} name another release of this ledger: "
            f"{differ}. Nothing was charged. Ask exactly as before, or take another label or another snapshot."
        )


FACTS = {  # the stored names of public facts, as in dpframe 0.1, and the current arguments
    "raw": "keep_noisy",
    "price": "cost",
    "measures": "statistic",
}


def differing(entry: Entry, earlier: Entry) -> str:
    """Return the public facts that differ between two requests of one name, as text; empty if there are none."""
    known, facts = earlier.asked or {}, entry.asked or {}
    differ = [FACTS.get(fact, fact) for fact in sorted({*known, *facts}) if known.get(fact) != facts.get(fact)]
    return f"{' and '.join(differ)} {'differs' if len(differ) == 1 else 'differ'}" if differ else ""


def link(previous: str, body: str) -> str:
    """Return the hash of an entry and of all entries before it."""
    return digest(f"{previous}\n{body}")


@dataclass(frozen=True)
class StreamState:
    """The state of a stream, as its entries record it."""

    entry: Entry  # the charge
    number: int  # the number of the charge
    head: str
    drawn: int = 0  # the last period with an intent to draw noise
    kept: Mapping[int, int] = field(default_factory=dict)  # stored periods, with the numbers of their entries
    is_closed: bool = False

    @property
    def is_open(self) -> bool:
        """True if the last period is still being drawn, or was lost."""
        return self.drawn > 0 and self.drawn not in self.kept


Step = tuple[Entry, bytes | None]  # an entry to append, and the content to store with it
Decide = Callable[[StreamState | None, Mark], Step | None]


def stream_of(
    entries: Iterable[tuple[int, str, Entry]], *, last_recovery: int = 0, where: str | None = None
) -> StreamState | None:
    """Return the stream of entries of one name, None without entries; LedgerError if they break the order of steps."""
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
    """Return the current stream; refuse it if a restored copy meanwhile replaced it or lacks periods."""
    if stream is None or stream.head != known.head or not known.kept.items() <= stream.kept.items():
        raise LedgerError(
            f"the ledger no longer contains the stream {shown(known.entry.stream)} as it was when this call began: "
            "a copy was put in its place meanwhile. Nothing was released. Ask again."
        )
    return stream


def _changed(entry: Entry, where: str | None) -> LedgerError:
    return changed(str(where), f"the entries of the stream {shown(entry.stream)} do not follow its steps")


UNLIMITED = Limit(Fraction(0), Fraction(0), ())  # never compared with a total: the default ledger only records


_process = object()  # stands for this process; a process number may repeat in a child, as 1 does in containers


def _forked() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class MemoryStore:
    """A list of entries for the threads of one process."""

    shown: str | None = None
    head: None = None  # a ledger in memory has no head

    def __init__(self, limit: Limit = UNLIMITED) -> None:
        self._entries: list[Entry] = []
        self._contents: dict[int, bytes] = {}  # of periods of streams, by the numbers of their entries
        self._last = Mark(0, "", (), limit)
        self._lock = threading.RLock()  # knows the thread that holds it; no thread takes it twice
        self._process = _process

    def charge(self, entry: Entry, allowed: Allowed) -> None:
        """Append an entry if it is allowed. A forked child would spend the same budget again, so it is refused."""
        self._check_process()
        self._check_thread()
        with self._lock:
            total = plus(self._last.total, entry.amount)
            allowed(self._last, total)
            self._append(entry, total)

    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[Answer | None]]:
        """Return the end; no answer is stored in memory."""
        return self._last, [None] * len(entries)

    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Refuse: no answer is stored in memory."""
        raise LedgerError(
            "snapshot must be left out with a ledger in memory, which stores no results. "
            "Keep the ledger in a file to replay them: dpf.Ledger(..., path='clinic.ledger')."
        )

    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry that raises the limit."""
        self._check_process()
        self._check_thread()
        with self._lock:
            self._append(replace(entry, limit=raised(self._last.limit)), plus(self._last.total, entry.amount))

    def entries(self) -> list[tuple[int, Entry]]:
        """Return the entries with their numbers, as a copy."""
        return list(enumerate(self._entries, start=1))

    def last(self) -> Mark:
        """Return the last total and the limit."""
        return self._last

    def summary(self, count: int) -> Summary:
        """Return the summary for a printed ledger."""
        last, entries = self._last, list(self._entries)
        listed = [entry for entry in entries if entry.kind not in UNLISTED]
        return Summary(last, sum(entry.kind == "charge" for entry in entries), listed[-count:])

    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """Raise AssertionError: `verify` refuses before anything calls this."""
        raise AssertionError

    def head_at(self, number: int) -> None:
        """Return None: there is no chain in memory."""

    def verify(self) -> Trail:
        """Refuse: there is no chain in memory."""
        raise LedgerError("a ledger in memory cannot be verified: it has no chain. Keep it in a file: path=...")

    def step(self, entry: Entry, decide: Decide) -> StreamState | None:
        """Take a step of a stream, one thread at a time. A forked child is refused."""
        self._check_process()
        self._check_thread()
        with self._lock:
            step = decide(self.stream(entry), self._last)
            if step is not None:
                if step[1] is not None:  # before the entry, whose readers look for the content
                    self._contents[len(self._entries) + 1] = step[1]
                self._append(step[0], plus(self._last.total, step[0].amount))
            return self.stream(entry)

    def contents(self, entry: Entry, known: StreamState | None = None) -> dict[int, bytes]:
        """Return the stored content of each period."""
        stream = self.stream(entry)
        return {} if stream is None else {period: self._contents[number] for period, number in stream.kept.items()}

    def stream(self, entry: Entry) -> StreamState | None:
        """Return the stream of an entry's name, or None."""
        return stream_of(
            (number, "", step) for number, step in enumerate(self._entries, start=1) if step.stream == entry.stream
        )

    @property
    def identity(self) -> tuple[str, str]:
        """Refuse: a ledger in memory has no address."""
        raise LedgerError(
            "a ledger in memory cannot be pickled: the copy would be a second budget for the same people."
        )

    def _append(self, entry: Entry, total: Amount) -> None:
        # count before listing: Ctrl-C may come between the two, and a listed entry that is not counted would be free
        self._last = Mark(len(self._entries) + 1, "", total, entry.limit or self._last.limit)
        self._entries.append(entry)

    def _check_process(self) -> None:
        if self._process is not _process:
            raise LedgerError(
                "a ledger in memory must be charged in the process that created it, not in a forked child. "
                "Release in the parent, or keep the ledger in a file: path=..."
            )

    def _check_thread(self) -> None:
        """Refuse a charge amid another one of this thread: it would wait forever, or be lost from the total."""
        if self._lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition does
            raise LedgerError(
                "a ledger in memory must not be charged by a signal handler that interrupts its charge: the handler "
                "charged nothing. Release later, or keep the ledger in a file: path=..."
            )
