"""Ledgers of dpframe 0.1 are taken over: in one transaction that changes nothing but the text of the terms.

Their entries have no random bytes and stay as they are, hash by hash, so that heads and the records of old releases
stay valid. The new terms hold the old text, from which everything is read and with whose hash the chain begins, and say
where the chain ended. dpframe 0.1 refuses the new text by its format; a process of it that has the ledger open refuses
too, since the terms are no longer those that it read. What was spent, the limit and the unit cannot change: they are
not written anew.
"""

from __future__ import annotations

from dataclasses import replace

from dpframe.ledger import heads, rows
from dpframe.ledger.chain import chain
from dpframe.ledger.database import Database, tables
from dpframe.ledger.terms import Before, Terms


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
        terms = Terms.of_text(rows.terms_text(connection, address.shown), address.shown)
        if not terms.is_first:  # another process was faster
            return terms
        trail = chain(terms, rows.all_of(connection), address.shown)
        if check and address.file is not None:
            known = trail.heads[head.mark.entry] if head and head.mark.entry < len(trail.heads) else None
            heads.hold(head, terms, trail.last, known, address.shown)
        new = replace(terms, before=Before(terms.text(), trail.last.entry, trail.last.head))
        connection.execute(tables().terms.update().values(terms=new.text()))
    return new
