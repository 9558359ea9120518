"""A twentieth of ``assurance/drills.py``: races, kills and restores of a ledger in a file, and in a database."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from assurance import drills, postgres

pytestmark = pytest.mark.slow

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
MEMORY = Path("/dev/shm")  # the drills are about processes, not about disks

drills.prepare()


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def server():
    why_not = postgres.missing()
    if why_not is not None:
        pytest.skip(why_not)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        try:
            one = stack.enter_context(postgres.server(folder / "server", waits=False))
        except (RuntimeError, OSError) as error:
            pytest.skip(f"the installed PostgreSQL server cannot be started: {error}")
        yield one


def test_races(folder):
    assert drills.races(lambda name: folder / name, 50).wrong == 0


def test_kills(folder):
    assert drills.kills(folder / "kills.ledger", 50).wrong == 0


def test_restores(folder):
    assert drills.restores(folder, 5).wrong == 0


def test_the_drill_of_kills_finds_what_was_not_charged(folder):
    """A release that was told and not charged, and one that was charged twice, are seen."""
    book = dpf.Ledger(epsilon=9, path=folder / "seen.ledger")
    entry = drills.named(book, 0, 0)
    place = book.take(entry)
    content = book.keep(entry, b"answer")
    since = book._store.entries()
    told = (place["entry"], place["head"], content)
    assert drills.all_accounted(book, 0, since, [told])
    assert not drills.all_accounted(book, 0, since[1:], [told])
    assert not drills.all_accounted(book, 0, [since[0], since[0], *since], [told])
    assert not drills.all_accounted(book, 0, since, [(1, "", b"another")])


# PostgreSQL


def test_a_ledger_in_a_database(server):
    url = server.url("clinic")
    ledger = dpf.Ledger(epsilon=1, path=url, dataset="clinic")
    first = PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="people", version="1")
    again = PEOPLE.dp.count(epsilon=0.25, ledger=pickle.loads(pickle.dumps(ledger)), label="people", version="1")
    assert again.equals(first)
    ledger.raise_limit(epsilon=1.5, reason="the board agreed")
    opened = dpf.Ledger.open(url)
    assert (opened.limit.epsilon, opened.spent.epsilon) == (1.5, 0.25)
    assert opened.verify(first.dp.provenance)["entry"] == 3
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=1.5, ledger=ledger)
    with pytest.raises(dpf.LedgerError, match=r"epsilon must be 1\.5"):
        dpf.Ledger(epsilon=1, path=url, dataset="clinic")


def test_a_changed_database_is_refused(server):
    import psycopg

    ledger = dpf.Ledger(epsilon=1, path=server.url("changed"))
    drills.take(ledger)
    drills.take(ledger)
    with psycopg.connect(host=str(server.folder), user=server.user, dbname="changed") as connection:
        connection.execute("DELETE FROM dpframe_entries WHERE entry = 1")
    with pytest.raises(dpf.LedgerError, match="was changed by something other"):
        ledger.verify()


def test_races_in_a_database(server):
    assert drills.races(server.url, 3).wrong == 0


def test_kills_in_a_database(server):
    assert drills.kills(server.url("kills"), 5).wrong == 0


def test_a_server_that_crashes_amid_charges(server):
    assert drills.restarts(server, 1).wrong == 0


def test_a_server_that_is_gone_is_told_and_nothing_is_read(server, monkeypatch):
    from dpframe.release import path as release

    ledger = dpf.Ledger(epsilon=1, path=server.url("gone"))
    monkeypatch.setattr(release, "totals", lambda *_: pytest.fail("a row was read"))
    server.stop("immediate")
    try:
        with pytest.raises(dpf.LedgerError, match="cannot be reached") as caught:
            PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
        assert caught.value.__cause__ is None
    finally:
        server.start()
    assert drills.take(ledger)["entry"] == 1


def test_a_lock_in_a_database_is_waited_for_and_then_refused(server, monkeypatch):
    import psycopg

    from dpframe.store import database

    monkeypatch.setattr(database, "WAIT", 0.1)
    ledger = dpf.Ledger(epsilon=1, path=server.url("locked"))
    with psycopg.connect(host=str(server.folder), user=server.user, dbname="locked") as other:
        other.execute("SELECT * FROM dpframe_ledger FOR UPDATE")
        with pytest.raises(dpf.LedgerError, match=r"locked by another process since 0\.1 seconds"):
            drills.take(ledger)
    assert drills.take(ledger)["entry"] == 1
