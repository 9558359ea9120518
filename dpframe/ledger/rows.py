"""The statements of a ledger's transactions, in SQLAlchemy Core: the same for SQLite and PostgreSQL.

The takeover of a ledger of dpframe 0.1 changes only the text of the terms. The old entries have no random bytes and
keep their hashes, so heads and the records of old releases stay valid. The new terms contain the old text and the end
of the chain. Everything is read from the old text, whose hash still begins the chain. dpframe 0.1 refuses the new text
by its format. A process of dpframe 0.1 that has the ledger open refuses it too, because the terms are no longer those
that it read. What was spent, the limit and the unit cannot change, because they are not written again.
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

BATCH = 1000  # rows that are read at once; charges to a file wait meanwhile
MOMENT = 0.02  # seconds after which a batch of stored answers ends


def terms_text(connection: Connection, shown: str) -> str:
    """Return the text of the terms. From here on, a writer excludes other writers."""
    # FOR UPDATE excludes other writers on PostgreSQL; SQLite has no such clause and needs none
    write = connection.get_execution_options().get("dpframe_write")
    text = connection.execute(_terms(write=write is True)).scalar()
    if text is None:
        raise changed(shown, "its terms are gone")
    return str(text)


def insert_terms(connection: Connection, terms: Terms) -> None:
    """Insert the terms of a new ledger. If another process on PostgreSQL was faster, its terms stay."""
    from sqlalchemy import select

    table = tables().terms
    if connection.execute(select(table.c.terms)).scalar() is None:
        connection.execute(table.insert().values(one=1, terms=terms.text()))


def append(connection: Connection, last: Mark, entry: Entry) -> Mark:
    """Write the entry that follows the last one, and return its place."""
    row = Row.after(last, entry)
    columns = {"entry": row.number, "body": row.body, "head": row.head, "name": row.name}
    connection.execute(_insertion(), columns)
    return row.mark()


def all_of(connection: Connection, last: int | None = None) -> list[Row]:
    """Return the entries in order, or only the last ones. Read all of them only while nobody else can write."""
    return [_row(stored) for stored in connection.execute(_last_entries(last))][::-1]


def after(connection: Connection, entry: int, until: int) -> list[Row]:
    """Return the entries after one, in order, at most `BATCH` of them."""
    parameters = {"entry": entry, "until": until, "most": BATCH}
    return [_row(stored) for stored in connection.execute(_following(), parameters)]


def recoveries(connection: Connection) -> list[Row]:
    """Return the entries that record recoveries."""
    query = _entries().where(tables().entries.c.body.contains('"kind":"recovery"', autoescape=True))
    return [_row(stored) for stored in connection.execute(query)]


def local_reports(connection: Connection, entry: int, until: int) -> list[Row]:
    """Return the entries after one, up to another, whose query text begins like local reports or a correction."""
    from sqlalchemy import or_

    body, number = tables().entries.c.body, tables().entries.c.entry
    begins = [body.contains(f'"query":"{words}', autoescape=True) for words in (REPORTS, CORRECTION)]
    query = _entries().where(number > entry, number <= until, or_(*begins)).order_by(number)
    return [_row(stored) for stored in connection.execute(query)]


def of_name(connection: Connection, name: str) -> list[Row]:
    """Return the entries of the releases of one name, in order."""
    entries = tables().entries
    query = _entries().where(entries.c.name == name).order_by(entries.c.entry)
    return [_row(stored) for stored in connection.execute(query)]


def at(connection: Connection, entry: int) -> list[Row]:
    """Return the entry of a number in a list, which is empty if there is none."""
    return [_row(stored) for stored in connection.execute(_entries().where(tables().entries.c.entry == entry))]


def latest(connection: Connection, count: int) -> list[Row]:
    """Return the last entries in order, without those that belong to earlier charges."""
    entries = tables().entries.c
    listed = [entries.body.not_like(_kind(kind)) for kind in UNLISTED]
    query = _entries().where(*listed).order_by(entries.entry.desc()).limit(count)
    return [_row(stored) for stored in connection.execute(query)][::-1]


def charges(connection: Connection) -> int:
    """Return the number of entries that are charges."""
    from sqlalchemy import func, select

    entries = tables().entries.c
    return int(connection.execute(select(func.count()).where(entries.body.like(_kind("charge")))).scalar() or 0)


def _kind(name: str) -> str:
    """Return the LIKE pattern of an entry of this kind. Text of the caller cannot match it: its quotes are escaped."""
    return f'%,"kind":"{name}",%'


def head_at(connection: Connection, terms: Terms, entry: int) -> str | None:
    """Return the hash at an entry; None if there is no such entry."""
    from sqlalchemy import select

    if entry == 0:
        return Mark.first(terms).head
    entries = tables().entries
    head = connection.execute(select(entries.c.head).where(entries.c.entry == entry)).scalar()
    return None if head is None else str(head)


def insert_answer(connection: Connection, entry: int, content: bytes) -> None:
    """Store the content of a release; its entry has the hash."""
    connection.execute(tables().answers.insert().values(entry=entry, content=content))


def answer_at(connection: Connection, entry: int) -> bytes | None:
    """Return the stored content of a release; None if there is none."""
    from sqlalchemy import select

    answers = tables().answers
    content = connection.execute(select(answers.c.content).where(answers.c.entry == entry)).scalar()
    return bytes(content) if isinstance(content, (bytes, memoryview)) else None  # SQLite accepts any type in any column


def answered_after(connection: Connection, entry: int, until: int) -> list[tuple[int, str]]:
    """Return the stored answers after one, each by number and hash of its content, as many as `MOMENT` allows."""
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
    """Return the terms in this version's format. Terms of the first format are rewritten, all or nothing.

    With `check`, the ledger must contain its head. A ledger that is being recovered is taken over without this check,
    and its head stays unchanged.
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
