"""Charges in a file or a database: committed before a row is read, shared by every process, chained by hashes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import gt, sub
from typing import TYPE_CHECKING

from dpframe.errors import LedgerError
from dpframe.guarantee import Amount, PrivacyLoss
from dpframe.store import head as heads
from dpframe.store.address import Address
from dpframe.store.database import Database, tables
from dpframe.store.entries import Charge, Mark, Row, Terms, chain, changed, follow, now, plus
from dpframe.store.head import Head

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True)
class SqlStore:
    """The charges of one durable ledger."""

    database: Database
    terms: Terms

    @classmethod
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
                _insert_terms(connection, terms)
                cls(making, terms)._write_head(terms.mark())  # before the commit: no ledger is ever without a head
        return cls.open(address.key)

    @classmethod
    def open(cls, path: object, *, check: bool = True) -> SqlStore:
        """The ledger that is there, its chain followed from end to end."""
        address = Address.of(path)
        database = Database(address)
        with database.transaction(write=False) as connection:
            if not database.names(connection) >= {"dpframe_ledger", "dpframe_entries"}:
                raise LedgerError(
                    f"the file at {address.shown} is not a ledger. Make one at another path: "
                    "dpf.Ledger(epsilon=..., path=...)."
                )
            store = cls(database, Terms.of_text(_terms_text(connection, address.shown), address.shown))
        if check:
            store.verify()
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
        return self.database.address.key, self.terms.mark().head

    def charge(self, charge: Charge, allowed: Callable[[Amount, Amount], None]) -> Mark:
        """Charge, commit, keep the head: when this returns, the charge is on disk."""
        head = self._head()
        with self.database.transaction(write=True) as connection:
            last = self._last(connection, head)
            allowed(last.total, plus(last.total, charge.amount))
            if head is None:  # it was removed, and nothing was spent yet: no entry may come before a head
                self._write_head(last)
            mark = self._append(connection, last, charge)
        self._keep_head(mark)
        return mark

    def charges(self) -> list[Charge]:
        """Every charge, from the store."""
        head = self._head()
        with self.database.transaction(write=False) as connection:
            self._last(connection, head)
            return [row.charge() for row in _rows(connection)]

    def spent(self) -> Amount:
        """The sum of all charges, from the store."""
        head = self._head()
        with self.database.transaction(write=False) as connection:
            return self._last(connection, head).total

    def verify(self) -> list[Mark]:
        """Follow the whole chain and hold it against its head; every place in it."""
        head = self._head()
        with self.database.transaction(write=False) as connection:
            last = self._last(connection, head)
            marks = chain(self.terms, _rows(connection), self.shown)
        if marks[-1] != last or (last.total and any(map(gt, last.total, self.terms.limit))):
            raise changed(self.shown, "its entries pass its limit")
        return marks

    def recover(self, reason: str, cost: Callable[[Amount], PrivacyLoss]) -> Mark | None:
        """Accept an older copy, or one without its head: an entry says so and charges what the copy does not know."""
        head = self._head()
        with self.database.transaction(write=True) as connection:
            marks = chain(self.terms, _rows(connection), self.shown)
            last = marks[-1]
            if head is not None and head.ledger != self.terms.mark().head:
                heads.hold(head, self.terms, last, None, self.shown)
            if head is not None and head.mark in marks:
                return None
            nothing = (Fraction(0),) * len(self.terms.limit)
            spent = nothing if head is None else head.mark.total or nothing
            lost = tuple(max(part, Fraction(0)) for part in map(sub, spent, last.total or nothing))
            query = "recovered: the head was missing" if head is None else "recovered: an older copy was put back"
            mark = self._append(connection, last, Charge(now(), reason, query, self.terms.unit, lost, cost(lost)))
        self._keep_head(mark)
        return mark

    def _append(self, connection: Connection, last: Mark, charge: Charge) -> Mark:
        row = Row.after(last, charge)
        connection.execute(tables()[1].insert().values(entry=row.entry, body=row.body, head=row.head))
        return row.mark()

    def _last(self, connection: Connection, head: Head | None) -> Mark:
        """The end of the chain, after its last link and its head were checked."""
        text = _terms_text(connection, self.shown)
        if text != self.terms.text():
            raise LedgerError(
                f"the ledger at {self.shown} is not the one that was opened: another was put in its place. "
                "Put the first one back, or open this one with dpf.Ledger.open(path)."
            )
        last = self._end(connection)
        if self.database.address.file is not None:
            known = None if head is None else _head_at(connection, self.terms, head.mark.entry)
            heads.hold(head, self.terms, last, known, self.shown)
        return last

    def _end(self, connection: Connection) -> Mark:
        rows = _rows(connection, last=2)
        if not rows:
            return self.terms.mark()
        try:
            before = rows[0].mark() if len(rows) == 2 else self.terms.mark()
        except (ValueError, KeyError, TypeError):
            raise changed(self.shown, f"entry {rows[0].entry} cannot be read") from None
        return follow(before, rows[-1], self.shown)

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
        file = self.database.address.file
        if file is None:
            return
        try:
            with self.database.transaction(write=True) as connection:
                # only if the file still knows my entry: the head must not follow a file that was put back meanwhile
                if _head_at(connection, self.terms, mine.entry) == mine.head:
                    heads.write(file, self.terms, self._end(connection))
        except OSError as error:
            raise heads.unwritten(file, error) from None
        except LedgerError:  # locked for long: the charge stands, and the head may be behind until the next one
            return


def _refuse_vanished(head: Head | None, address: Address) -> None:
    """Refuse to begin anew where a ledger was. The head must have been read before the file was looked at."""
    if head is not None and head.mark.entry:
        raise LedgerError(
            f"the ledger at {address.shown} is gone, but its head beside it says that {head.mark.entry} entries were "
            "written. Put the ledger back, or take another path for other people's data."
        )


def _insert_terms(connection: Connection, terms: Terms) -> None:
    """The second of two who make a ledger on PostgreSQL finds the first one's terms and keeps them."""
    from sqlalchemy import select

    column = tables()[0].c.terms
    if connection.execute(select(column)).scalar() is None:
        connection.execute(tables()[0].insert().values(one=1, terms=terms.text()))


def _terms_text(connection: Connection, shown: str) -> str:
    from sqlalchemy import select

    # FOR UPDATE makes a writer alone on PostgreSQL; SQLite has no such words and needs none
    write = connection.get_execution_options().get("dpframe_write")
    asked = select(tables()[0].c.terms)
    found = connection.execute(asked.with_for_update() if write else asked).scalar()
    if found is None:
        raise changed(shown, "its terms are gone")
    return str(found)


def _rows(connection: Connection, last: int | None = None) -> list[Row]:
    """The entries in their order, or the last ones only."""
    from sqlalchemy import select

    entries = tables()[1]
    asked = select(entries.c.entry, entries.c.body, entries.c.head).order_by(entries.c.entry.desc()).limit(last)
    return [Row(*found) for found in connection.execute(asked)][::-1]


def _head_at(connection: Connection, terms: Terms, entry: int) -> str | None:
    from sqlalchemy import select

    if entry == 0:
        return terms.mark().head
    entries = tables()[1]
    found = connection.execute(select(entries.c.head).where(entries.c.entry == entry)).scalar()
    return None if found is None else str(found)
