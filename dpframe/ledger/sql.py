"""Entries in a file or a database: committed before a row is read, shared by every process, chained by hashes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import wraps
from operator import ge
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from dpframe.errors import LedgerError
from dpframe.exact import Amount, plus
from dpframe.ledger import heads, migration, rows, seen
from dpframe.ledger.address import Address
from dpframe.ledger.canonical import digest, now
from dpframe.ledger.chain import chain, entries_of, follow
from dpframe.ledger.database import Database
from dpframe.ledger.entries import Allowed, Answer, Entry, Mark, Row, Summary, Trail, answered, refuse_other_facts
from dpframe.ledger.heads import Head
from dpframe.ledger.locks import Locked
from dpframe.ledger.stream_state import Decide, StreamState, stream_of
from dpframe.ledger.terms import Limit, Terms, changed
from dpframe.ledger.unbroken import unbroken
from dpframe.privacy import PrivacyLoss

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOWEST = -(2**31)  # below every entry's number
P = ParamSpec("P")
T = TypeVar("T")


def _alone(
    method: Callable[Concatenate[SqlStore, P], T],
) -> Callable[Concatenate[SqlStore, P], T]:
    """No signal breaks it off, and nobody else is in the ledger's file from its first look to its last."""

    @unbroken
    @wraps(method)
    def call(store: SqlStore, /, *arguments: P.args, **named: P.kwargs) -> T:
        with store.database.alone():
            return method(store, *arguments, **named)

    return call


@dataclass(frozen=True)
class Known:
    """Facts on the end of a ledger that are known before it is read: it may only have grown since."""

    head: Head | None
    seen: Mark | None


@dataclass(frozen=True)
class SqlStore:
    """The entries of one durable ledger."""

    database: Database
    terms: Terms

    @classmethod
    @unbroken
    def make(cls, path: object, terms: Terms) -> SqlStore:
        """Make the ledger, or open the one that is there; the caller compares the terms."""
        address = Address.of(path)
        head = None if address.file is None else heads.read(address.file)
        if address.file is not None and not os.path.exists(address.file):
            _refuse_vanished(head, address)
        making = Database(address, create=True)
        with making.transaction(write=True) as connection:
            names = making.names(connection)
            if "dpframe_ledger" not in names:
                _refuse_vanished(head, address)
                if names and address.file is not None:
                    raise LedgerError(
                        f"path must be a new file or a ledger: {address.shown} is a database of something else. "
                        "Take another path."
                    )
                making.create(connection)
                rows.insert_terms(connection, terms)
                cls(making, terms)._write_head(Mark.first(terms))  # before the commit: no ledger is without a head
        making.close()
        return cls.open(address.key)

    @classmethod
    @unbroken
    def open(cls, path: object, *, check: bool = True) -> SqlStore:
        """The ledger that is there, its chain followed from end to end."""
        address = Address.of(path)
        database = Database(address)
        with database.transaction(write=False) as connection:
            if not database.names(connection) >= {"dpframe_ledger", "dpframe_entries", "dpframe_answers"}:
                raise LedgerError(
                    f"the file at {address.shown} is not a ledger. Make one at another path: "
                    "dpf.Ledger(epsilon=..., path=...)."
                )
            terms = Terms.of_text(rows.terms_text(connection, address.shown), address.shown)
        store = cls(database, migration.taken_over(database, terms, check=check))
        if check:
            store.follow()
        return store

    @classmethod
    def again(cls, path: object, beginning: str) -> SqlStore:
        """The ledger that a pickle led to, if it is still the same one."""
        store = cls.open(path)
        if store.identity[1] != beginning:
            raise LedgerError(
                f"the ledger at {store.shown} is not the one that was pickled: another was made in its place. "
                "Open it with dpf.Ledger.open(path) if it is meant."
            )
        return store

    @property
    def shown(self) -> str:
        """The place, for people to read."""
        return self.database.address.shown

    @property
    def identity(self) -> tuple[str, str]:
        """The address, and the hash of the terms: what a pickle carries."""
        return self.database.address.key, Mark.first(self.terms).head

    @_alone
    def charge(self, entry: Entry, allowed: Allowed) -> Mark | Answer:
        """Charge, commit, keep the head: when this returns, the charge is on disk."""
        with self._writing() as (connection, last):
            known = self._named(connection, entry)
            if known is not None:
                return known
            allowed(last, plus(last.total, entry.amount))
            mark = rows.append(connection, last, entry)
        self._keep_head(mark)
        return mark

    @unbroken
    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[bool]]:
        """The end of the chain, and for each entry whether an answer is stored under its name."""
        known = self._known()
        with self.database.transaction(write=False) as connection:
            last = self._last(connection, known)
            return last, [self._named(connection, entry) is not None for entry in entries]

    @_alone
    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Store an answer, unless another was stored under its name meanwhile: then that one is the answer."""
        with self._writing() as (connection, last):
            known = self._named(connection, entry)
            if known is not None:
                return known
            mark = rows.append(connection, last, answered(entry, content))
            rows.insert_answer(connection, mark.entry, content)
        self._keep_head(mark)
        return Answer(content)

    @_alone
    def step(self, entry: Entry, decide: Decide) -> StreamState | None:
        """A step of a stream: committed, and in the head, when this returns."""
        with self._writing() as (connection, last):
            stream = self._stream(connection, entry)
            step = decide(stream, last)
            if step is None:
                return stream
            mark = rows.append(connection, last, step[0])
            if step[1] is not None:
                rows.insert_answer(connection, mark.entry, step[1])
            stream = self._stream(connection, entry)
        self._keep_head(mark)
        return stream

    @unbroken
    def stream(self, entry: Entry) -> StreamState | None:
        """The stream of an entry's name, in a ledger that is no older copy."""
        known = self._known()
        with self.database.transaction(write=False) as connection:
            self._last(connection, known)
            return self._stream(connection, entry)

    @unbroken
    def contents(self, entry: Entry) -> dict[int, bytes]:
        """The contents that were stored of each period of a stream."""
        with self.database.transaction(write=False) as connection:
            found = self._entries_of(connection, entry.name)
            return {
                step.period: self._stored(connection, number, step)
                for number, _, step in found
                if step.period is not None and step.answer is not None
            }

    @_alone
    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry with a higher limit; every process goes by it from then on."""
        with self._writing() as (connection, last):
            mark = rows.append(connection, last, replace(entry, limit=raised(last.limit)))
        self._keep_head(mark)

    def entries(self) -> list[tuple[int, Entry]]:
        """Every entry, from the store."""
        last, head = self.last(), Mark.first(self.terms).head
        stored = list(self._rows(last.entry))
        if (stored[-1].head if stored else head) != last.head or len(stored) != last.entry:
            raise changed(self.shown, "its end does not follow from its beginning")
        return entries_of(stored, self.shown)

    @unbroken
    def summary(self, count: int) -> Summary:
        """The summary for a printed ledger: of the entries only the last ones are read."""
        known = self._known()
        with self.database.transaction(write=False) as connection:
            last, latest = self._last(connection, known), rows.latest(connection, count)
            charges = rows.charges(connection)
        return Summary(last, charges, [entry for _, entry in entries_of(latest, self.shown)])

    @unbroken
    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """An entry by its number, and what was stored under its name."""
        with self.database.transaction(write=False) as connection:
            ((_, entry),) = entries_of(rows.at(connection, number), self.shown)
            if entry.stream is not None:  # of which each period has an answer of its own: see `contents`
                return entry, None
            return entry, None if (known := self._named(connection, entry)) is None else known.content

    @unbroken
    def last(self) -> Mark:
        """The end of the chain, from the store."""
        known = self._known()
        with self.database.transaction(write=False) as connection:
            return self._last(connection, known)

    def verify(self) -> Trail:
        """Follow the whole chain, and hold every stored answer against its entry."""
        named: list[Row] = []
        trail = self.follow(named)
        found = entries_of(named, self.shown)
        self._check_stream(found)
        stated = {number: entry.answer for number, entry in found if entry.answer is not None}
        kept = dict(self._answers(trail.last.entry))
        if kept != stated:
            raise changed(self.shown, "its stored answers are not those that its entries tell of")
        return trail

    def _check_stream(self, found: list[tuple[int, Entry]]) -> None:
        """Every stream must have followed its steps: charged first, each period drawn once, in order."""
        steps: dict[str, list[tuple[int, str, Entry]]] = {}
        for number, entry in found:
            if entry.stream is not None:
                steps.setdefault(entry.stream, []).append((number, "", entry))
        for entries in steps.values():
            stream_of(entries, where=self.shown)

    def follow(self, named: list[Row] | None = None) -> Trail:
        """Follow the whole chain, and hold it against its head; every place in it. `named` takes the named entries."""
        last = self.last()
        trail = chain(self.terms, _collecting(self._rows(last.entry), [] if named is None else named), self.shown)
        if trail.last != last:
            raise changed(self.shown, "its end does not follow from its beginning")
        return trail

    def _rows(self, until: int) -> Iterator[Row]:
        """The entries up to one, read in short parts: each a moment in which nothing is charged.

        The chain only grows, and its hashes tie the parts together.
        """
        at = LOWEST
        while at < until and (batch := self._part(at, until)):
            yield from batch
            at = batch[-1].number

    def _answers(self, until: int) -> Iterator[tuple[int, str]]:
        """The hashes of the stored answers, read in short parts."""
        at = LOWEST
        while at < until and (batch := self._answers_part(at, until)):
            yield from batch
            at = batch[-1][0]

    @unbroken
    def _part(self, at: int, until: int) -> list[Row]:
        with self.database.transaction(write=False) as connection:
            return rows.after(connection, at, until)

    @unbroken
    def _answers_part(self, at: int, until: int) -> list[tuple[int, str]]:
        with self.database.transaction(write=False) as connection:
            return rows.answered_after(connection, at, until)

    @_alone
    def recover(self, reason: str, cost: Callable[[Amount], PrivacyLoss]) -> Mark | None:
        """Accept an older copy, or one without its head: an entry says so and charges what the copy does not know."""
        known, head = self._known(), self._head()
        with self.database.transaction(write=True) as connection:
            trail = chain(self.terms, rows.all_of(connection), self.shown)
            last = trail.last
            if head is not None and head.ledger != trail.heads[0]:
                heads.hold(head, self.terms, last, None, self.shown)
            later = [
                mark
                for mark in (None if head is None else head.mark, known.seen)
                if mark is not None and mark.head not in trail.heads[mark.entry : mark.entry + 1]
            ]
            if not later and (head is not None or self.database.address.file is None):
                return None
            nothing = (Fraction(0),) * len(self.terms.limit.amount)
            lost, limit = nothing, last.limit
            for mark in later:  # the most of what is known to be spent, part by part
                # where both went on after they parted, nobody knows where that was: all that the mark knows is charged
                here = nothing if mark.entry <= last.entry else last.total or nothing
                parts = zip(lost, mark.total or nothing, here, strict=True)
                lost = tuple(max(most, newest - part, Fraction(0)) for most, newest, part in parts)
                limit = limit.joined(mark.limit)
            query = "recovered: the head was missing" if head is None else "recovered: an older copy was put back"
            entry = Entry(now(), reason, query, self.terms.unit, lost, cost(lost), kind="recovery")
            mark = rows.append(connection, last, replace(entry, limit=limit))
        seen.go_back(self.identity, mark)
        self._keep_head(mark)
        return mark

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, Mark]]:
        """A transaction that may append to the end of the chain, which is checked first."""
        known = self._known()
        with self.database.transaction(write=True) as connection:
            last = self._last(connection, known)
            if known.head is None:  # it was removed, and nothing was spent yet: no entry may come before a head
                self._write_head(last)
            elif self.database.address.file is not None:
                heads.check_writable(self.database.address.file)
            yield connection, last

    def _named(self, connection: Connection, entry: Entry) -> Answer | None:
        """The stored answer of a release with this name; refused where the name asked for something else before."""
        for number, _, earlier in self._entries_of(connection, entry.name):
            refuse_other_facts(entry, earlier)
            if earlier.answer is not None:
                return Answer(self._stored(connection, number, earlier))
        return None

    def _entries_of(self, connection: Connection, name: str | None) -> Iterator[tuple[int, str, Entry]]:
        """The entries of a name with their numbers and hashes, each of which must follow from the one before it."""
        for row in [] if name is None else rows.of_name(connection, name):
            if not row.follows(rows.head_at(connection, self.terms, row.number - 1)):
                raise changed(self.shown, f"entry {row.number} does not follow from the one before")
            ((number, entry),) = entries_of([row], self.shown)
            yield number, row.head, entry

    def _stored(self, connection: Connection, number: int, entry: Entry) -> bytes:
        """The content that was stored with an entry, as its hash says."""
        content = rows.answer_at(connection, number)
        if content is None or digest(content) != entry.answer:
            raise changed(self.shown, f"the answer of entry {number} is not the one that was stored")
        return content

    def _stream(self, connection: Connection, entry: Entry) -> StreamState | None:
        """The stream of an entry's name; closed where an older copy was accepted after it was begun."""
        found = list(self._entries_of(connection, entry.name))
        recovered = [row.number for row in rows.recoveries(connection)] if found else []
        return stream_of(found, last_recovery=max(recovered, default=0), where=self.shown)

    def _last(self, connection: Connection, before: Known) -> Mark:
        """The end of the chain, after its last link and its head were checked."""
        text = rows.terms_text(connection, self.shown)
        if text != self.terms.text():
            raise LedgerError(
                f"the ledger at {self.shown} is not the one that was opened: another was put in its place. "
                "Put the first one back, or open this one with dpf.Ledger.open(path)."
            )
        last = self._end(connection)
        if self.database.address.file is not None:
            head = before.head
            known = None if head is None else last.head
            if head is not None and head.mark.entry != last.entry:
                known = rows.head_at(connection, self.terms, head.mark.entry)
            heads.hold(head, self.terms, last, known, self.shown)
        self._hold_seen(connection, before.seen, last)
        return last

    def _hold_seen(self, connection: Connection, newest: Mark | None, last: Mark) -> None:
        """Refuse a ledger that no longer contains what this process saw of it, unless a recovery has charged that."""
        if newest is not None and newest != last:
            if rows.head_at(connection, self.terms, newest.entry) != newest.head:
                totals = (row.mark().total for row in rows.recoveries(connection))
                if not any(all(map(ge, total, newest.total)) for total in totals if total):
                    raise heads.older_copy(last, newest, self.shown)
                seen.go_back(self.identity, last)
        seen.note(self.identity, last)

    def _end(self, connection: Connection) -> Mark:
        newest = rows.all_of(connection, last=2)
        first = Mark.first(self.terms)
        if not newest:
            return first
        try:
            before = newest[0].mark() if len(newest) == 2 else first
        except (ValueError, KeyError, TypeError):
            raise changed(self.shown, f"entry {newest[0].number} cannot be read") from None
        return follow(self.terms, before, newest[-1], self.shown)

    def _known(self) -> Known:
        return Known(self._head(), seen.newest(self.identity))

    def _head(self) -> Head | None:
        file = self.database.address.file
        return None if file is None else heads.read(file)

    def _write_head(self, mark: Mark) -> None:
        file = self.database.address.file
        if file is not None:
            try:
                heads.write(file, self.terms, mark)
            except OSError as error:
                raise heads.unwritten(file, error) from None

    def _keep_head(self, mine: Mark) -> None:
        """Write the newest head beside the file. In a transaction of its own, so that heads are written in order."""
        seen.note(self.identity, mine)
        file = self.database.address.file
        if file is None:
            return
        try:
            with self.database.transaction(write=True) as connection:
                # the head must not follow a file that was put back meanwhile, and does not know my entry
                if rows.head_at(connection, self.terms, mine.entry) != mine.head:
                    raise LedgerError(
                        f"the ledger at {self.shown} was replaced while it was charged: no row was read. "
                        "Put its newest copy back."
                    )
                newest = rows.all_of(connection, last=1)[-1]
                heads.write(file, self.terms, mine if newest.head == mine.head else self._end(connection))
        except OSError as error:
            raise heads.unwritten(file, error) from None
        except Locked:  # for long: the charge stands, and the head may be behind until the next one
            return


def _collecting(stored: Iterator[Row], named: list[Row]) -> Iterator[Row]:
    """The same rows; those of releases that have a name are put into `named` as they pass."""
    for row in stored:
        if row.name is not None:
            named.append(row)
        yield row


def _refuse_vanished(head: Head | None, address: Address) -> None:
    """Refuse to begin anew where a ledger was. The head must have been read before the file was looked at."""
    if head is not None and head.mark.entry:
        raise LedgerError(
            f"the ledger at {address.shown} is gone, but its head beside it says that {head.mark.entry} entries were "
            "written. Put the ledger back, or take another path for other people's data."
        )
