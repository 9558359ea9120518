"""A share of ``assurance/drills.py`` and ``killed_jobs.py``: races, kills and restores of ledgers; killed jobs."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
import warnings
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from assurance import drills, killed_jobs

pytestmark = pytest.mark.slow

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
MEMORY = Path("/dev/shm")  # the drills test processes, not disks

drills.prepare()


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def test_races(folder):
    assert drills.races(lambda name: folder / name, 50).wrong == 0


@pytest.mark.skipif(os.name != "posix", reason="this system has no SIGKILL")
def test_jobs_that_are_killed(folder):
    wrong, seen = killed_jobs.drilled(folder, 3)
    assert (wrong, seen.total()) == (0, 6)


def test_92_races_in_which_each_process_copies_the_file(folder):
    """Closing any descriptor of the file drops SQLite's locks of the process, but the ledger's own lock stays."""
    assert drills.races(lambda name: folder / name, 10, copied=True).wrong == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_93_charges_that_are_broken_off_by_a_signal(folder):
    assert drills.interrupts(folder / "interrupts.ledger", 60).wrong == 0


def test_kills(folder):
    assert drills.kills(folder / "kills.ledger", 50).wrong == 0


def test_restores(folder):
    assert drills.restores(folder, 5).wrong == 0


def test_the_drill_of_kills_finds_what_was_not_charged(folder):
    """The drill detects an answer that was returned without a charge, and a charge that was made twice."""
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
    first = PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="people", snapshot="1")
    again = PEOPLE.dp.count(epsilon=0.25, ledger=pickle.loads(pickle.dumps(ledger)), label="people", snapshot="1")
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
    from looking import of_rows

    from dpframe.release import results

    ledger = dpf.Ledger(epsilon=1, path=server.url("gone"))
    monkeypatch.setattr(results, "totals", of_rows(lambda *_: pytest.fail("a row was read")))
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

    from dpframe.ledger import database

    monkeypatch.setattr(database, "WAIT", 0.1)
    ledger = dpf.Ledger(epsilon=1, path=server.url("locked"))
    with psycopg.connect(host=str(server.folder), user=server.user, dbname="locked") as other:
        other.execute("SELECT * FROM dpframe_ledger FOR UPDATE")
        with pytest.raises(dpf.LedgerError, match=r"locked by another process for 0\.1 seconds"):
            drills.take(ledger)
    assert drills.take(ledger)["entry"] == 1


def test_96_a_database_that_is_rolled_back_does_not_go_on(server):
    """A server has no separate head file: the process remembers the head, and recovery charges what it saw."""
    import psycopg

    ledger = dpf.Ledger(epsilon=1, path=server.url("rolled"))
    for _ in range(3):
        drills.take(ledger)
    with psycopg.connect(host=str(server.folder), user=server.user, dbname="rolled") as connection:
        connection.execute("DELETE FROM dpframe_entries WHERE entry > 1")
    for use in (drills.take, dpf.Ledger.verify, lambda one: one.spent):
        with pytest.raises(dpf.LedgerError, match="older copy: it holds 1 entry, and entry 3"):
            use(ledger)
    again = dpf.Ledger.recover(ledger._store.identity[0], reason="the server was restored")
    assert again.spent.epsilon == ledger.spent.epsilon == 0.3
    assert dpf.Ledger.recover(ledger._store.identity[0], reason="again").verify()["entry"] == 2
    assert drills.take(ledger)["entry"] == 3


def test_117_races_where_transactions_are_serializable_unless_told(server):
    import psycopg

    def place(name):
        url = server.url(name)
        with psycopg.connect(host=str(server.folder), user=server.user, dbname=name, autocommit=True) as connection:
            for setting in ("isolation = 'serializable'", "read_only = on"):
                connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_{setting}')
        return url

    assert drills.races(lambda name: place(f"strict-{name}"), 2).wrong == 0


# A network that stops responding


@contextlib.contextmanager
def line_to(place):
    """Yield a local port that forwards to a socket, and an event that silences it; with None it never forwards."""
    silent, ends, listener = threading.Event(), [], socket.create_server(("127.0.0.1", 0))

    def forward(one, other):
        with contextlib.suppress(OSError):
            while words := one.recv(65536):
                if silent.is_set():
                    return  # the connection stays open, and nothing more is sent
                other.sendall(words)
            other.shutdown(socket.SHUT_RDWR)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                ends.append(listener.accept()[0])
                if place is not None:
                    ends.append(socket.socket(socket.AF_UNIX))
                    ends[-1].connect(str(place))
                    for pair in (ends[-2:], ends[:-3:-1]):
                        threading.Thread(target=forward, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], silent
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def refused_while_others_go_on(use, folder):
    """Return the error of a use that waits for a silent server, while others of its process continue.

    If others waited for it, they would end after it on every attempt. On a busy machine they may also be slower than
    it by themselves, so there are several attempts.
    """
    told = []

    def work():
        try:
            use()
        except Exception as error:
            told.append(error)

    for attempt in range(10):
        told.clear()
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.3)
        others_go_on(folder / f"other-{attempt}.ledger")
        waits = thread.is_alive()
        thread.join(300)
        assert not thread.is_alive()
        if waits:
            return told[0]
    raise AssertionError(f"others went on only after the use that waits for the silent server, which was told {told}")


def others_go_on(path):
    """Create and charge another ledger in this process, and fork the process."""
    assert drills.take(dpf.Ledger(epsilon=1, path=path))["entry"] == 1
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


@pytest.fixture
def impatient(monkeypatch):
    from dpframe.ledger import database

    monkeypatch.setattr(database, "WAIT", 1.0)
    monkeypatch.setattr(database, "SILENCE", 1.0)


def test_117_a_server_that_accepts_and_never_answers(folder, impatient):
    pytest.importorskip("psycopg")
    with line_to(None) as (port, _):
        url = f"postgresql+psycopg://someone:hush@127.0.0.1:{port}/name?sslmode=disable&sslpassword=hush"
        refusal = refused_while_others_go_on(lambda: dpf.Ledger.open(url), folder)
    assert isinstance(refusal, dpf.LedgerError)
    assert "cannot be reached" in str(refusal)
    assert "hush" not in str(refusal)


def test_117_a_network_that_falls_silent_amid_charges(server, folder, impatient):
    direct = server.url("silent")
    with line_to(server.folder / ".s.PGSQL.5432") as (port, silent):
        url = f"postgresql+psycopg://{server.user}@127.0.0.1:{port}/silent?sslmode=disable"
        ledger = dpf.Ledger(epsilon=1, path=url)
        drills.take(ledger)
        silent.set()
        refusal = refused_while_others_go_on(lambda: drills.take(ledger), folder)
        assert isinstance(refusal, dpf.LedgerError)
        assert "cannot be reached" in str(refusal)
        silent.clear()
        assert drills.take(ledger)["entry"] == 2
    assert dpf.Ledger.open(direct).verify()["entry"] == 2
