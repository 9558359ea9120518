"""The statements of a ledger's transactions, in SQLAlchemy's Core: one text for SQLite and PostgreSQL.

Ledgers of dpframe 0.1 are taken over by one of them, which changes nothing but the text of the terms. Their entries
have no random bytes and stay as they are, hash by hash, so that heads and the records of old releases stay valid. The
new terms hold the old text, from which everything is read and with whose hash the chain begins, and say where the chain
ended. dpframe 0.1 refuses the new text by its format; a process of it that has the ledger open refuses too, since the
terms are no longer those that it read. What was spent, the limit and the unit cannot change: they are not written anew.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from dpframe.ledger import heads
from dpframe.ledger.canonical import digest
from dpframe.ledger.chain import chain
from dpframe.ledger.corrections import REPORTS
from dpframe.ledger.database import Database, tables
from dpframe.ledger.entries import CORRECTION, UNLISTED, Entry, Mark, Row
from dpframe.ledger.terms import Before, Terms, changed

if TYPE_CHECKING:
    from sqlalchemy import Connection, Insert, Select

BATCH = 1000  # rows that are read at once; meanwhile nothing is charged
MOMENT = 0.02  # seconds


def terms_text(connection: Connection, shown: str) -> str:
    """The terms. A writer is alone from here on."""
    # FOR UPDATE makes a writer alone on PostgreSQL; SQLite has no such words and needs none
    write = connection.get_execution_options().get("dpframe_write")
    text = connection.execute(_terms(write=write is True)).scalar()
    if text is None:
        raise changed(shown, "its terms are gone")
    return str(text)


def insert_terms(connection: Connection, terms: Terms) -> None:
    """The second of two who make a ledger on PostgreSQL finds the first one's terms and keeps them."""
    from sqlalchemy import select

    table = tables().terms
    if connection.execute(select(table.c.terms)).scalar() is None:
        connection.execute(table.insert().values(one=1, terms=terms.text()))


def append(connection: Connection, last: Mark, entry: Entry) -> Mark:
    """Write the entry that follows the last one."""
    row = Row.after(last, entry)
    columns = {"entry": row.number, "body": row.body, "head": row.head, "name": row.name}
    connection.execute(_insertion(), columns)
    return row.mark()


def all_of(connection: Connection, last: int | None = None) -> list[Row]:
    """The entries in their order, or the last ones only; all of them only where nobody else may write meanwhile."""
    return [_row(stored) for stored in connection.execute(_last_entries(last))][::-1]


def after(connection: Connection, entry: int, until: int) -> list[Row]:
    """The entries that follow one, in their order: as many as are read in a moment."""
    parameters = {"entry": entry, "until": until, "most": BATCH}
    return [_row(stored) for stored in connection.execute(_following(), parameters)]


def recoveries(connection: Connection) -> list[Row]:
    """The entries by which older copies were accepted; looked for only where something seems to be missing."""
    query = _entries().where(tables().entries.c.body.contains('"kind":"recovery"', autoescape=True))
    return [_row(stored) for stored in connection.execute(query)]


def local_reports(connection: Connection, entry: int, until: int) -> list[Row]:
    """The entries after one, and up to another, whose words begin as those of local reports or of a correction."""
    from sqlalchemy import or_

    body, number = tables().entries.c.body, tables().entries.c.entry
    begins = [body.contains(f'"query":"{words}', autoescape=True) for words in (REPORTS, CORRECTION)]
    query = _entries().where(number > entry, number <= until, or_(*begins)).order_by(number)
    return [_row(stored) for stored in connection.execute(query)]


def of_name(connection: Connection, name: str) -> list[Row]:
    """The entries of the releases of one name, in their order."""
    entries = tables().entries
    query = _entries().where(entries.c.name == name).order_by(entries.c.entry)
    return [_row(stored) for stored in connection.execute(query)]


def at(connection: Connection, entry: int) -> list[Row]:
    """The entry of a number, if there is one."""
    return [_row(stored) for stored in connection.execute(_entries().where(tables().entries.c.entry == entry))]


def latest(connection: Connection, count: int) -> list[Row]:
    """The last entries except for what belongs to earlier ones, in their order."""
    entries = tables().entries.c
    listed = [entries.body.not_like(_kind(kind)) for kind in UNLISTED]
    query = _entries().where(*listed).order_by(entries.entry.desc()).limit(count)
    return [_row(stored) for stored in connection.execute(query)][::-1]


def charges(connection: Connection) -> int:
    """The number of entries that are charges."""
    from sqlalchemy import func, select

    entries = tables().entries.c
    return int(connection.execute(select(func.count()).where(entries.body.like(_kind("charge")))).scalar() or 0)


def _kind(name: str) -> str:
    """The pattern of the body of an entry of this kind: inside a text of the caller's every quote has a stroke."""
    return f'%,"kind":"{name}",%'


def head_at(connection: Connection, terms: Terms, entry: int) -> str | None:
    """The hash at an entry."""
    from sqlalchemy import select

    if entry == 0:
        return Mark.first(terms).head
    entries = tables().entries
    head = connection.execute(select(entries.c.head).where(entries.c.entry == entry)).scalar()
    return None if head is None else str(head)


def insert_answer(connection: Connection, entry: int, content: bytes) -> None:
    """Store what was released; its entry tells the hash."""
    connection.execute(tables().answers.insert().values(entry=entry, content=content))


def answer_at(connection: Connection, entry: int) -> bytes | None:
    """The released answer, as it was stored."""
    from sqlalchemy import select

    answers = tables().answers
    content = connection.execute(select(answers.c.content).where(answers.c.entry == entry)).scalar()
    return bytes(content) if isinstance(content, (bytes, memoryview)) else None  # SQLite keeps anything in any column


def answered_after(connection: Connection, entry: int, until: int) -> list[tuple[int, str]]:
    """The stored answers that follow one, each by the hash of its content: as many as are read in a moment."""
    from sqlalchemy import select

    answers, hashes = tables().answers.c, []
    query = select(answers.entry).where(answers.entry > entry, answers.entry <= until).order_by(answers.entry)
    end = time.monotonic() + MOMENT
    for number in connection.execute(query.limit(BATCH)).scalars().all():
        hashes.append((number, digest(answer_at(connection, number) or b"")))
        if time.monotonic() > end:
            break
    return hashes


@cache
def _terms(*, write: bool) -> Select[tuple[str]]:
    from sqlalchemy import select

    query = select(tables().terms.c.terms)
    return query.with_for_update() if write else query


@cache
def _insertion() -> Insert:
    return tables().entries.insert()


@cache
def _last_entries(last: int | None) -> Select[tuple[int, str, str, str | None]]:
    return _entries().order_by(tables().entries.c.entry.desc()).limit(last)


@cache
def _following() -> Select[tuple[int, str, str, str | None]]:
    from sqlalchemy import bindparam

    entry = tables().entries.c.entry
    query = _entries().where(entry > bindparam("entry"), entry <= bindparam("until"))
    return query.order_by(entry).limit(bindparam("most"))


@cache
def _entries() -> Select[tuple[int, str, str, str | None]]:
    from sqlalchemy import select

    entries = tables().entries.c
    return select(entries.entry, entries.body, entries.head, entries.name)


def _row(stored: Any) -> Row:
    return Row(stored.entry, stored.body, stored.head, stored.name)


def taken_over(database: Database, stored: Terms, *, check: bool) -> Terms:
    """The terms of a ledger in this version's format, written if they are of the first; all or nothing.

    With `check` the ledger must contain its head. A ledger that is to be recovered is taken over without it: whatever
    its head knows, it goes on knowing.
    """
    if not stored.is_first:
        return stored
    address = database.address
    head = None if address.file is None else heads.read(address.file)
    with database.transaction(write=True) as connection:
        terms = Terms.of_text(terms_text(connection, address.shown), address.shown)
        if not terms.is_first:  # another process was faster
            return terms
        trail = chain(terms, all_of(connection), address.shown)
        if check and address.file is not None:
            known = trail.heads[head.mark.entry] if head and head.mark.entry < len(trail.heads) else None
            heads.hold(head, terms, trail.last, known, address.shown)
        new = replace(terms, before=Before(terms.text(), trail.last.entry, trail.last.head))
        connection.execute(tables().terms.update().values(terms=new.text()))
    return new
