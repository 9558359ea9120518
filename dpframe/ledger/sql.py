"""Entries in a file or a database: committed before a row is read, shared by all processes, chained by hashes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, wraps
from operator import ge
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from dpframe.accounting import Accounting
from dpframe.errors import STAYS, LedgerError, LedgerUnavailable, reworded, stands
from dpframe.exact import Amount, plus
from dpframe.ledger import corrections, heads, rows
from dpframe.ledger import witness as witnesses
from dpframe.ledger.address import MAKE, Address
from dpframe.ledger.canonical import digest, now
from dpframe.ledger.chain import chain, entries_of, follow
from dpframe.ledger.database import Database, tables
from dpframe.ledger.entries import (
    Allowed,
    Answer,
    Decide,
    Entry,
    Mark,
    Row,
    StreamState,
    Summary,
    Trail,
    answered,
    continued,
    refuse_other_facts,
    stream_of,
)
from dpframe.ledger.heads import Head
from dpframe.ledger.terms import Limit, Terms, accounting_of_terms, changed
from dpframe.ledger.unbroken import to_the_end, unbroken, until_it_goes_through
from dpframe.ledger.witness import Witness, witness_of
from dpframe.privacy import PrivacyLoss

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOWEST = -(2**31)  # below the number of any entry
P = ParamSpec("P")
T = TypeVar("T")


def _alone(
    method: Callable[Concatenate[SqlStore, P], T],
) -> Callable[Concatenate[SqlStore, P], T]:
    """Wrap a method so that no signal interrupts it, and nobody else uses the ledger's file until it ends."""

    @unbroken
    @wraps(method)
    def call(store: SqlStore, /, *arguments: P.args, **named: P.kwargs) -> T:
        with store.database.alone():
            return method(store, *arguments, **named)

    return call


@dataclass(frozen=True)
class Known:
    """Facts on the end of a ledger, collected before it is read; the ledger may only have grown since."""

    head: Head | None
    seen: Mark | None
    elsewhere: Head | None


@dataclass(frozen=True)
class SqlStore:
    """The entries of one durable ledger."""

    database: Database
    terms: Terms
    witness: Witness | None = None

    @classmethod
    @unbroken
    def make(cls, path: object, terms: Terms, head: object = None, *, new: bool = False) -> SqlStore:
        """Create the ledger, or open an existing one unless it must be `new`; the caller compares the terms."""
        address = Address.of(path)
        witness = witness_of(head, address)
        terms = replace(terms, has_head=witness is not None)
        known = _heads_of(address, witness)
        if address.file is not None and not os.path.exists(address.file):
            _refuse_vanished(known, address)
        making = Database(address, create=True)
        with making.transaction(write=True) as connection:
            if witness is not None:
                witness.check_elsewhere(address, connection)
            names = making.names(connection)
            if "dpframe_ledger" not in names:
                _refuse_vanished(known, address)
                witnesses.hold_address(address, None)
                if names and address.file is not None:
                    raise LedgerError(
                        f"path must be a new file or a ledger: {address.shown} is a database of something else. "
                        "Take another path."
                    )
                making.create(connection)
                rows.insert_terms(connection, terms)
                if rows.terms_text(connection, address.shown) == terms.text():  # otherwise another process was faster
                    try:  # before the commit: no ledger is without a head
                        cls(making, terms, witness)._write_heads(Mark.first(terms))
                    except LedgerError as error:
                        said = str(error).replace(STAYS, "nothing was charged")
                        raise reworded(error, said.replace("nothing was charged", "no ledger was made")) from None
            if new and rows.terms_text(connection, address.shown) != terms.text():  # terms are unique
                raise LedgerError(
                    f"a ledger is at {address.shown} already, and it stays as it is. Go on with it, or take another "
                    "path for other people's data."
                )
        making.close()
        return cls.open(address.key, head)

    @classmethod
    @unbroken
    def open(cls, path: object, head: object = None, *, check: bool = True) -> SqlStore:
        """Open an existing ledger, and follow its chain from end to end."""
        address = Address.of(path)
        witness = witness_of(head, address)
        if address.file is not None and not os.path.exists(address.file):
            _refuse_vanished(_heads_of(address, witness), address)
        database = Database(address)
        with database.transaction(write=False) as connection:
            if witness is not None:
                witness.check_elsewhere(address, connection)
            if not (names := database.names(connection)) >= {"dpframe_ledger", "dpframe_entries", "dpframe_answers"}:
                if "dpframe_ledger" not in names:
                    _refuse_vanished(_heads_of(address, witness), address)
                witnesses.hold_address(address, None)
                what = "database" if address.file is None else "file"
                raise LedgerError(
                    f"the {what} at {address.shown} is not a ledger. If there was one, put it back, since it knows "
                    f"what was spent. If there never was one, make it: {MAKE}."
                )
            terms = Terms.of_text(rows.terms_text(connection, address.shown), address.shown)
        witnesses.hold_address(address, Mark.first(terms).head)
        store = cls(database, rows.taken_over(database, terms, check=check), witness)
        if not check:
            return store
        if witness is not None and not store.terms.has_head:
            store = store._beginning_a_head()
        store.follow()
        return store

    @classmethod
    def again(cls, path: object, beginning: str, head: object = None) -> SqlStore:
        """Open the ledger of a pickle, if it is still the same one."""
        store = cls.open(path, head)
        if store.identity[1] != beginning:
            raise LedgerError(
                f"the ledger at {store.shown} is not the one that was pickled: another was made in its place. "
                "Open it with dpf.Ledger.open(path) if it is meant."
            )
        return store

    @_alone
    def _beginning_a_head(self) -> SqlStore:
        """Return the same ledger with its head also kept elsewhere from now on; refuse a ledger that has entries."""
        assert self.witness is not None
        new, known = replace(self.terms, has_head=True), self.witness.read()
        with self.database.transaction(write=True) as connection:
            if rows.terms_text(connection, self.shown) != new.text():  # otherwise another process was faster
                last = self._end(connection)
                if known is not None:
                    self._hold_head(connection, known, last, self.witness.shown)
                if last.entry:
                    raise LedgerError(
                        f"the ledger at {self.shown} has entries, and its head was never kept elsewhere: nobody knows "
                        f"whether it was put back before. Say why it is trusted: {heads.WAYS_ELSEWHERE}."
                    )
                self.witness.advance(self.terms, last)  # before the commit, as with a new ledger
                connection.execute(tables().terms.update().values(terms=new.text()))
        return replace(self, terms=new)

    @property
    def shown(self) -> str:
        """The place of the ledger, for display."""
        return self.database.address.shown

    @property
    def identity(self) -> tuple[str, str]:
        """The address and the hash of the terms, which a pickle carries."""
        return self.database.address.key, Mark.first(self.terms).head

    @cached_property
    def accounting(self) -> Accounting:
        """The accounting that the terms name."""
        return accounting_of_terms(self.terms, self.shown)

    @property
    def head(self) -> Any:
        """The place of the head that is kept elsewhere, as it was given; a pickle carries it too."""
        return None if self.witness is None else self.witness.given

    @property
    def _seen_as(self) -> witnesses.Identity:
        return self.database.address.place, Mark.first(self.terms).head

    @_alone
    def charge(self, entry: Entry, allowed: Allowed) -> Mark | Answer:
        """Charge, commit and write the head; on return, the charge is on disk. A due correction is charged first."""
        with self._writing() as (connection, last):
            known = self._named(connection, entry)
            if known is not None:
                return known
            correction = self._correction(connection, last)
            if correction is None:
                allowed(last, plus(last.total, entry.amount))
            mark = rows.append(connection, last, correction or entry)
        self._keep_head(mark)
        return mark if correction is None else self.charge(entry, allowed)  # the correction stays in any case

    @_alone
    def correct(self, reason: str | None) -> None:
        """Append the correction that is due, if there is one."""
        with self._writing() as (connection, last):
            correction = self._correction(connection, last, reason)
            if correction is None:
                return
            mark = rows.append(connection, last, correction)
        self._keep_head(mark)

    @unbroken
    def answered(self, entries: Sequence[Entry]) -> tuple[Mark, list[Answer | None]]:
        """Return the end of the chain, and for each entry the answer that is stored under its name, if there is one.

        If the head is kept elsewhere and its place was not given, this is refused, as the charges would be.
        """
        self._check_head_given()
        known = self._known()
        with self.database.transaction(write=False) as connection:
            last = self._with_due(connection, self._last(connection, known))
            return last, [self._named(connection, entry) for entry in entries]

    @_alone
    def keep(self, entry: Entry, content: bytes) -> Answer:
        """Store an answer and return it; if another was stored under its name meanwhile, return that one."""
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
        """Take a step of a stream; on return, it is committed and in the head."""
        if self.witness is None and self.database.address.file is None:
            raise LedgerError(
                f"a stream needs a ledger whose head is kept elsewhere, not one in a database at {self.shown} alone. "
                f"Call dpf.Ledger.open(path, head=...), or {heads.WAYS_ELSEWHERE} once there are entries."
            )
        with self._writing() as (connection, last):
            stream = self._stream(connection, entry)
            correction = self._correction(connection, last) if stream is None else None
            step = decide(stream, last) if correction is None else (correction, None)
            if step is None:
                return stream
            mark = rows.append(connection, last, step[0])
            if step[1] is not None:
                rows.insert_answer(connection, mark.entry, step[1])
            stream = self._stream(connection, entry)
        self._keep_head(mark)
        return stream if correction is None else self.step(entry, decide)

    @unbroken
    def stream(self, entry: Entry) -> StreamState | None:
        """Return the stream of an entry's name; refuse a ledger that is an older copy.

        Stored periods may be shown next, so the heads are written first if a process died before it wrote them.
        """
        known = self._known()
        with self.database.transaction(write=False) as connection:
            last = self._last(connection, known)
            stream = self._stream(connection, entry)
        newest = 0 if stream is None else max(stream.kept.values(), default=0)
        if newest:
            self._check_head_given()
        if any(head is not None and head.mark.entry < newest for head in (known.head, known.elsewhere)):
            until_it_goes_through(self._write_newest, last, False)
        return stream

    @unbroken
    def contents(self, entry: Entry, known: StreamState | None = None) -> dict[int, bytes]:
        """Return the stored content of each period of a stream, which must continue `known`."""
        with self.database.transaction(write=False) as connection:
            found = list(self._entries_of(connection, entry.name))
            if known is not None:
                continued(known, stream_of(found, where=self.shown))
            return {
                step.period: self._stored(connection, number, step)
                for number, _, step in found
                if step.period is not None and step.answer is not None
            }

    @_alone
    def raise_limit(self, entry: Entry, raised: Callable[[Limit], Limit]) -> None:
        """Append an entry with a higher limit, which every process follows from then on."""
        with self._writing() as (connection, last):
            mark = rows.append(connection, last, replace(entry, limit=raised(last.limit)))
        self._keep_head(mark)

    def entries(self) -> list[tuple[int, Entry]]:
        """Return every entry, read from the store."""
        last, head = self.last(), Mark.first(self.terms).head
        stored = list(self._rows(last.entry))
        if (stored[-1].head if stored else head) != last.head or len(stored) != last.entry:
            raise changed(self.shown, "its end does not follow from its beginning")
        return entries_of(stored, self.shown)

    @unbroken
    def summary(self, count: int) -> Summary:
        """Return the summary for a printed ledger; only the last entries are read, and the charges counted."""
        known = self._known()
        with self.database.transaction(write=False) as connection:
            last = self._with_due(connection, self._last(connection, known))
            latest = rows.latest(connection, count)
            charges = rows.charges(connection)
        return Summary(last, charges, [entry for _, entry in entries_of(latest, self.shown)])

    @unbroken
    def entry_and_answer(self, number: int) -> tuple[Entry, bytes | None]:
        """Return an entry by its number, and the answer that is stored under its name."""
        with self.database.transaction(write=False) as connection:
            ((_, entry),) = entries_of(rows.at(connection, number), self.shown)
            if entry.stream is not None:  # each period has its own stored content: see `contents`
                return entry, None
            return entry, None if (known := self._named(connection, entry)) is None else known.content

    @unbroken
    def last(self) -> Mark:
        """Return the end of the chain, read from the store, with the correction that is due."""
        known = self._known()
        with self.database.transaction(write=False) as connection:
            return self._with_due(connection, self._last(connection, known))

    @unbroken
    def head_at(self, number: int) -> str | None:
        """Return the hash of the entry of a number; None if there is none."""
        with self.database.transaction(write=False) as connection:
            return rows.head_at(connection, self.terms, number)

    def verify(self) -> Trail:
        """Follow the whole chain, and compare every stored answer with its entry."""
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
        """Check that every stream followed its steps: charged first, then each period drawn once, in order."""
        steps: dict[str, list[tuple[int, str, Entry]]] = {}
        for number, entry in found:
            if entry.stream is not None:
                steps.setdefault(entry.stream, []).append((number, "", entry))
        for entries in steps.values():
            stream_of(entries, where=self.shown)

    def follow(self, named: list[Row] | None = None) -> Trail:
        """Follow the whole chain, and compare it with its head. `named` collects the entries that have a name."""
        last = self.last()
        trail = chain(self.terms, _collecting(self._rows(last.entry), [] if named is None else named), self.shown)
        if trail.last != last:
            raise changed(self.shown, "its end does not follow from its beginning")
        return replace(trail, last=last)

    def _rows(self, until: int) -> Iterator[Row]:
        """Yield the entries up to one, read in short parts; charges to a file wait only for one part.

        The chain only grows, and its hashes link the parts.
        """
        at = LOWEST
        while at < until and (batch := self._part(at, until)):
            yield from batch
            at = batch[-1].number

    def _answers(self, until: int) -> Iterator[tuple[int, str]]:
        """Yield the hashes of the stored answers, read in short parts."""
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
        """Accept an older copy, or one without its head: append an entry that charges what the copy does not know."""
        self._check_head_given(heads.WAYS_ELSEWHERE)
        known, witness = self._known(), self.witness
        beside = [] if self.database.address.file is None else [(known.head, "")]
        kept = beside + ([] if witness is None else [(known.elsewhere, witness.shown)])
        begins = witness is not None and not self.terms.has_head
        with self.database.transaction(write=True) as connection:
            trail = chain(self.terms, rows.all_of(connection), self.shown)
            last = trail.last
            for head, place in kept:
                if head is not None and head.ledger != trail.heads[0]:
                    heads.hold(head, self.terms, last, None, self.shown, place)
            later = [
                mark
                for mark in (*(head.mark for head, _ in kept if head is not None), known.seen)
                if mark is not None and mark.head not in trail.heads[mark.entry : mark.entry + 1]
            ]
            missing = any(head is None for head, _ in kept)
            if not later and not missing and not begins:
                return None
            nothing = (Fraction(0),) * len(self.terms.limit.amount)
            lost, limit = nothing, last.limit
            for mark in later:  # the maximum of what is known to be spent, part by part
                limit = limit.joined(mark.limit)
                if self._has_charged(connection, mark):
                    continue
                # if both were charged after they parted, their common part is unknown: charge all that the mark knows
                here = nothing if _went_on(last, mark) else last.total or nothing
                parts = zip(lost, mark.total or nothing, here, strict=True)
                lost = tuple(max(most, newest - part, Fraction(0)) for most, newest, part in parts)
            query = "recovered: the head was missing" if missing else "recovered: an older copy was put back"
            if begins and not later:
                query = "recovered: the head is kept elsewhere from here on"
            entry = Entry(now(), reason, query, self.terms.unit, lost, cost(lost), kind="recovery")
            mark = rows.append(connection, last, replace(entry, limit=limit))
            if begins:
                connection.execute(tables().terms.update().values(terms=replace(self.terms, has_head=True).text()))
        witnesses.go_back(self._seen_as, mark)
        self._keep_head(mark, anew=True)
        return mark

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, Mark]]:
        """Open a transaction that may append to the end of the chain, which is checked first."""
        self._check_head_given()
        known = self._known()
        with self.database.transaction(write=True) as connection:
            last = self._last(connection, known)
            if known.head is None:  # it was removed before the first entry: no entry may come before a head
                self._write_head(last)
            elif self.database.address.file is not None:
                heads.check_writable(self.database.address.file)
            if self.witness is not None:
                if known.elsewhere is None:
                    self.witness.advance(self.terms, last)
                self.witness.check_writable()
            yield connection, last

    def _with_due(self, connection: Connection, last: Mark) -> Mark:
        """Return the end of the chain with the correction that is due. Only entries since the last scan are read."""
        if not corrections.concerns(self.terms, self.accounting):
            return last
        scanned = corrections.known(self.identity)
        if scanned is None or rows.head_at(connection, self.terms, scanned.entry) != scanned.head:
            scanned = corrections.Scanned(self.terms.plain, "", {})  # dpframe 0.1 had no local reports
        found = list(self._followed(connection, rows.local_reports(connection, scanned.entry, last.entry)))
        scanned = scanned.after(last, found, self.accounting)
        corrections.note(self.identity, scanned)
        return replace(last, due=scanned.due)

    def _correction(self, connection: Connection, last: Mark, reason: str | None = None) -> Entry | None:
        """Return the correction that must be written before anything else is charged, if there is one."""
        due = self._with_due(connection, last).due
        return None if due is None else corrections.correction(due, self.terms, last, self.accounting, reason)

    def _check_head_given(self, call: str = "dpf.Ledger.open(path, head=...)") -> None:
        """Refuse to write if the head is kept elsewhere and its place was not given; `call` takes it."""
        if self.terms.has_head and self.witness is None:
            raise LedgerError(
                f"head must be given: the head of the ledger at {self.shown} is kept elsewhere, and would be left "
                f"behind. Nothing was charged. Say where: {call}."
            )

    def _named(self, connection: Connection, entry: Entry) -> Answer | None:
        """Return the stored answer of a release with this name; refuse a name that stood for another request."""
        for number, _, earlier in self._entries_of(connection, entry.name):
            refuse_other_facts(entry, earlier)
            if earlier.answer is not None:
                return Answer(self._stored(connection, number, earlier))
        return None

    def _entries_of(self, connection: Connection, name: str | None) -> Iterator[tuple[int, str, Entry]]:
        """Yield the entries of a name with their numbers and hashes; each must follow from the entry before it."""
        yield from self._followed(connection, [] if name is None else rows.of_name(connection, name))

    def _followed(self, connection: Connection, stored: Sequence[Row]) -> Iterator[tuple[int, str, Entry]]:
        """Yield some entries with their numbers and hashes; each must follow from the entry before it."""
        for row in stored:
            if not row.follows(rows.head_at(connection, self.terms, row.number - 1)):
                raise changed(self.shown, f"entry {row.number} does not follow from the one before")
            ((number, entry),) = entries_of([row], self.shown)
            yield number, row.head, entry

    def _stored(self, connection: Connection, number: int, entry: Entry) -> bytes:
        """Return the content that was stored with an entry; refuse it if the entry has another hash."""
        content = rows.answer_at(connection, number)
        if content is None or digest(content) != entry.answer:
            raise changed(self.shown, f"the answer of entry {number} is not the one that was stored")
        return content

    def _stream(self, connection: Connection, entry: Entry) -> StreamState | None:
        """Return the stream of an entry's name; it is closed if a recovery came after its charge."""
        found = list(self._entries_of(connection, entry.name))
        recovered = [row.number for row in rows.recoveries(connection)] if found else []
        return stream_of(found, last_recovery=max(recovered, default=0), where=self.shown)

    def _last(self, connection: Connection, before: Known) -> Mark:
        """Return the end of the chain, after checking its last link and its heads."""
        text = rows.terms_text(connection, self.shown)
        if text != self.terms.text():
            if text == replace(self.terms, has_head=True).text():
                raise LedgerError(
                    f"the head of the ledger at {self.shown} is kept elsewhere since it was opened: nothing was "
                    "charged. Open it again, and say where: dpf.Ledger.open(path, head=...)."
                )
            raise LedgerError(
                f"the ledger at {self.shown} is not the one that was opened: another was put in its place. "
                "Put the first one back, or open this one with dpf.Ledger.open(path)."
            )
        last = self._end(connection)
        if self.database.address.file is not None:
            self._hold_head(connection, before.head, last)
        if self.witness is not None:
            self._hold_head(connection, before.elsewhere, last, self.witness.shown)
        self._hold_seen(connection, before.seen, last)
        return last

    def _hold_head(self, connection: Connection, head: Head | None, last: Mark, elsewhere: str = "") -> None:
        """Refuse a ledger that does not contain its head."""
        known = None if head is None else last.head
        if head is not None and head.mark.entry != last.entry:
            known = rows.head_at(connection, self.terms, head.mark.entry)
        heads.hold(head, self.terms, last, known, self.shown, elsewhere)

    def _hold_seen(self, connection: Connection, newest: Mark | None, last: Mark) -> None:
        """Refuse a ledger that no longer contains what this process saw, unless a recovery has charged that."""
        if newest is not None and newest != last:
            if rows.head_at(connection, self.terms, newest.entry) != newest.head:
                if not self._has_charged(connection, newest):
                    raise heads.older_copy(last, newest, self.shown, heads.ways_of(self.terms.has_head))
                witnesses.go_back(self._seen_as, last)
        witnesses.note(self._seen_as, last)

    def _has_charged(self, connection: Connection, mark: Mark) -> bool:
        """Return whether a recovery has charged all that was spent up to a place that the ledger does not contain."""
        for row in rows.recoveries(connection):
            before = rows.at(connection, row.number - 1)
            went_on = bool(before) and _went_on(before[0].mark(), mark)
            charged = row.entry().amount if went_on else row.mark().total
            if all(map(ge, charged, mark.total)):
                return True
        return False

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
        file, witness = self.database.address.file, self.witness
        elsewhere = None if witness is None else witness.read()
        head = None if file is None else heads.read(file, heads.ways_of(self.terms.has_head))
        return Known(head, witnesses.newest(self._seen_as), elsewhere)

    def _write_heads(self, mark: Mark) -> None:
        self._write_head(mark)
        if self.witness is not None:
            self.witness.advance(self.terms, mark)

    def _write_head(self, mark: Mark) -> None:
        file = self.database.address.file
        if file is not None:
            try:
                heads.write(file, self.terms, mark)
            except OSError as error:
                raise heads.unwritten(file, error) from None

    def _keep_head(self, mine: Mark, *, anew: bool = False) -> None:
        """Write the newest head everywhere it is kept, after the commit, which stands even if this fails.

        If this fails, nothing may be released: a head that is behind accepts an older copy without the entry.
        """
        to_the_end()  # what was committed binds the caller who was interrupted, too
        witnesses.note(self._seen_as, mine)
        if self.database.address.file is None and self.witness is None:
            return
        try:
            until_it_goes_through(self._write_newest, mine, anew)
        except LedgerError as error:
            raise stands(error) from None

    def _write_newest(self, mine: Mark, anew: bool) -> None:
        """Write the newest head in a transaction of its own, so that heads are written in order."""
        file = self.database.address.file
        try:
            with self.database.transaction(write=True) as connection:
                rows.terms_text(connection, self.shown)  # on a server, this excludes other writers
                # an older copy that was restored meanwhile lacks this entry, and must not get a head
                if rows.head_at(connection, self.terms, mine.entry) != mine.head:
                    raise LedgerError(
                        f"the ledger at {self.shown} was replaced while it was charged: nothing was released. "
                        "Put its newest copy back."
                    )
                newest = rows.all_of(connection, last=1)[-1]
                mark = mine if newest.head == mine.head else self._end(connection)
                if file is not None:
                    heads.write(file, self.terms, mark)
                if self.witness is not None:
                    place = self.witness.shown
                    hold = None if anew else lambda head: self._hold_head(connection, head, mark, place)
                    try:
                        self.witness.advance(self.terms, mark, anew=anew, hold=hold)
                    except LedgerUnavailable as error:  # also if the place of the head is locked: the ledger is not
                        raise stands(error) from None
        except OSError as error:
            raise heads.unwritten(str(file), error) from None


def _collecting(stored: Iterator[Row], named: list[Row]) -> Iterator[Row]:
    """Yield the same rows, and append those that have a name to `named`."""
    for row in stored:
        if row.name is not None:
            named.append(row)
        yield row


def _went_on(copy: Mark, mark: Mark) -> bool:
    """Return whether a copy without this place was charged after it was restored, judged by numbers or times.

    If so, the total of the copy is not a part of the total at the place.
    """
    return mark.entry <= copy.entry or bool(mark.time and copy.time > mark.time)


def _heads_of(address: Address, witness: Witness | None) -> list[tuple[Head | None, str]]:
    """Return the heads of a ledger, each with the place where it is kept if that is not next to the ledger."""
    beside = [] if address.file is None else [(heads.read(address.file), "")]
    return beside + ([] if witness is None else [(witness.read(), witness.shown)])


def _refuse_vanished(known: Sequence[tuple[Head | None, str]], address: Address) -> None:
    """Refuse a missing ledger that a head knows. To create one, read the heads before looking for the ledger."""
    for head, elsewhere in known:
        if head is not None and head.mark.entry:
            where = f"at {elsewhere}" if elsewhere else "next to it"
            raise LedgerError(
                f"the ledger at {address.shown} is gone, but its head {where} says that entry {head.mark.entry} was "
                "written. Put the ledger back, or take another path for other people's data."
            )


def is_there(path: object) -> bool:
    """Return whether a ledger, or the head of one that is gone, is at this path or URL."""
    address = Address.of(path)
    if address.file is not None:
        return os.path.exists(address.file) or heads.read(address.file) is not None
    database = Database(address)
    try:
        with database.transaction(write=False) as connection:
            return "dpframe_ledger" in database.names(connection)
    finally:
        database.close()


def refuse_gone(path: object, head: object) -> None:
    """Refuse a path or URL without a ledger if the head elsewhere knows entries of one."""
    address = Address.of(path)
    witness = witness_of(head, address)
    if witness is not None and not is_there(path):
        _refuse_vanished([(witness.read(), witness.shown)], address)
