"""The question whether a ledger is at an address already; nothing is made to answer it."""

from __future__ import annotations

import os

from dpframe.ledger import heads
from dpframe.ledger.address import Address
from dpframe.ledger.database import Database


def is_there(path: object) -> bool:
    """Tell whether a ledger, or the head of one that is gone, is at this path or URL."""
    address = Address.of(path)
    if address.file is not None:
        return os.path.exists(address.file) or heads.read(address.file) is not None
    database = Database(address)
    try:
        with database.transaction(write=False) as connection:
            return "dpframe_ledger" in database.names(connection)
    finally:
        database.close()
