"""Errors that an operator can act on: their cause, whether they are temporary, and whether a charge may stand."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from fractions import Fraction
from types import SimpleNamespace

import polars as pl
import pytest
from looking import of_rows
from sqlalchemy.exc import OperationalError, ProgrammingError

import dpframe as dpf
from dpframe.cli.exit_codes import code_of
from dpframe.errors import reworded
from dpframe.ledger import database, rows, sql
from dpframe.ledger.address import Address
from dpframe.ledger.database import refusal
from dpframe.release import results
from tests.killed_streams import stays, stream_of

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
NUMBERS = iter(range(10**6))
ADDRESS = Address.of("postgresql+psycopg://analyst:hush@host/name")


def take(ledger):
    amount = (Fraction(1, 8), Fraction(0))
    return ledger.charge(amount, cost=dpf.PrivacyLoss(0.125), query="", unit=ledger.unit)


class Refused(Exception):
    """An error of a database driver."""

    def __init__(self, words, sqlstate=None):
        super().__init__(words)
        self.sqlstate = sqlstate


def meant(words, state=None, *, committing=False, kind=OperationalError):
    return refusal(kind("", {}, Refused(words, state)), ADDRESS, wait=30.0, committing=committing)


PASSING = {
    "08006": "server closed the connection",
    "57P01": "terminating connection due to administrator command",
    "57P03": "the database system is starting up",
    "53300": "sorry, too many clients already",
    "53200": "out of memory",
    "55P03": "canceling statement due to lock timeout",
    "57014": "canceling statement due to statement timeout",
    "40001": "could not serialize access",
    "40P01": "deadlock detected",
}
PERMANENT = {
    "28P01": "password authentication failed for user",
    "28000": "no pg_hba.conf entry for host",
    "3D000": 'database "x" does not exist',
    "42501": "permission denied for table dpframe_entries",
    "42P01": 'relation "dpframe_entries" does not exist',
    "25006": "cannot execute INSERT in a read-only transaction",
    "0A000": "cannot set transaction read-write mode during recovery",
    "53100": "No space left on device",
    "22021": "invalid byte sequence",
    "XX001": "invalid page in block",
}


@pytest.mark.parametrize("state", [*PASSING, *PERMANENT])
def test_156_a_state_of_the_server_decides_what_passes(state):
    error = meant(f"{PASSING.get(state) or PERMANENT[state]}\nDETAIL: more", state)
    assert isinstance(error, dpf.LedgerUnavailable) == (state in PASSING)
    assert code_of(error) == (75 if state in PASSING else 1)
    assert "nothing was charged" in str(error)
    assert state == "55P03" or (PASSING.get(state) or PERMANENT[state]) in str(error)
    assert getattr(error, "charged", "no") == "no"
    assert not any(word in str(error) for word in ("file", "folder", "DETAIL", "hush", "may stand"))


@pytest.mark.parametrize("state", [None, "08006", "57P01", "57P02", "XX000"])
def test_156_only_a_commit_that_was_lost_may_stand(state):
    error = meant("server closed the connection unexpectedly", state, committing=True)
    assert (type(error), error.charged) == (dpf.LedgerUnavailable, "unknown")
    assert "the charge may stand" in str(error)
    for refused in ("40001", "53100", "23505"):  # the server answered, and rolled the charge back
        assert getattr(meant("no", refused, committing=True), "charged", "no") == "no"


def test_156_the_cause_is_whole_and_holds_no_password():
    said = 'connection to server at "a-very-long-name.of.a.host.example.org" (10.0.0.1), port 5432 failed: FATAL:  '
    error = meant(f'connection failed: {said}password authentication failed for user "hush" {"x" * 100}\n')
    assert f'(password authentication failed for user "***" {"x" * 100})' in str(error)
    two = (
        'Multiple connection attempts failed. All failures were:\n- host: "a": connection failed: Connection refused\n'
    )
    assert "(Connection refused)" in str(meant(two))
    odd = meant("invalid connection option", kind=ProgrammingError)
    assert type(odd) is dpf.LedgerError
    assert "(invalid connection option)" in str(odd)


def test_156_other_words_keep_what_may_stand():
    error = dpf.LedgerUnavailable("a", charged="unknown")
    assert reworded(error, "b").charged == "unknown"
    import pickle

    assert pickle.loads(pickle.dumps(error)).charged == "unknown"


def test_157_a_locked_file_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.05)
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(dpf.LedgerUnavailable, match=r"locked by another process.*nothing was charged") as caught:
            take(ledger)
    assert (caught.value.charged, code_of(caught.value)) == ("no", 75)
    assert take(ledger)["entry"] == 1


def test_157_what_fails_after_a_charge_never_says_no(tmp_path, monkeypatch):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger")

    def locked(*_):
        raise dpf.LedgerUnavailable("the ledger is locked: nothing was charged.")

    monkeypatch.setattr(sql.SqlStore, "keep", locked)
    with pytest.raises(dpf.LedgerUnavailable, match="what was charged stays charged") as caught:
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="a", snapshot="b")
    assert caught.value.charged == "unknown"
    assert ledger.spent.epsilon == 0.25
    append = rows.append

    def appended(connection, last, entry):
        return locked() if entry.kind == "intent" else append(connection, last, entry)

    monkeypatch.setattr(rows, "append", appended)
    with pytest.raises(dpf.LedgerUnavailable, match="what was charged stays charged") as caught:
        stream_of(ledger).release(stays(), 1)
    assert caught.value.charged == "unknown"
    assert ledger.spent.epsilon == 0.75


# On a server


@pytest.fixture
def place(server):
    """A database for a ledger, and a function that runs SQL as its administrator."""
    import psycopg

    name = f"errors{next(NUMBERS)}"
    url = server.url(name)

    def do(words):
        facts = {"host": str(server.folder), "user": server.user, "dbname": name, "autocommit": True}
        with psycopg.connect(**facts) as connection:
            connection.execute(words)

    return SimpleNamespace(url=url, name=name, do=do, server=server)


def as_role(place, role, password=""):
    return place.url.replace("//", f"//{role}{password}@", 1).replace(f"{place.server.user}@/", "/", 1)


@contextmanager
def role(place, words):
    name = f"role{next(NUMBERS)}"
    place.do(f"CREATE ROLE {name} {words}")
    yield name
    place.do(f"DROP OWNED BY {name}")
    place.do(f"DROP ROLE {name}")


def refused(url, use=dpf.Ledger.open):
    with pytest.raises(dpf.LedgerError) as caught:
        use(url)
    error = caught.value
    assert not any(word in str(error) for word in ("file", "folder", "hush", "may stand"))
    assert "nothing was charged" in str(error)
    return error


@pytest.mark.slow
def test_158_what_does_not_pass_on_a_server(place):
    dpf.Ledger(epsilon=1, path=place.url)
    for url, words in (
        (place.url.replace(f"/{place.name}?", "/nowhere?"), 'no such database (database "nowhere" does not exist)'),
        (as_role(place, "nobody2"), 'does not let this role in (role "nobody2" does not exist)'),
    ):
        error = refused(url)
        assert (type(error), code_of(error)) == (dpf.LedgerError, 1)
        assert words in str(error)
    with role(place, "LOGIN") as name:
        error = refused(as_role(place, name))
        assert type(error) is dpf.LedgerError
        assert "may not be used by this role (permission denied for table dpframe_ledger)" in str(error)
    with role(place, "LOGIN CONNECTION LIMIT 0") as name:
        error = refused(as_role(place, name))
        assert (type(error), error.charged) == (dpf.LedgerUnavailable, "no")
        assert f'(too many connections for role "{name}")' in str(error)
    rules = place.server.folder / "data" / "pg_hba.conf"
    before = rules.read_text(encoding="utf-8")
    with role(place, "LOGIN PASSWORD 'right'") as name:
        rules.write_text(f"local all {name} scram-sha-256\n{before}", encoding="utf-8")
        try:
            place.server.stop()
            place.server.start()
            for password, words in ((":hush", "password authentication failed"), ("", "no password supplied")):
                error = refused(as_role(place, name, password))
                assert type(error) is dpf.LedgerError
                assert f"the password is missing or wrong ({words}" in str(error) or words in str(error)
        finally:
            rules.write_text(before, encoding="utf-8")
            place.server.stop()
            place.server.start()
    ledger = dpf.Ledger.open(place.url)
    place.do("DROP TABLE dpframe_entries")
    error = refused(ledger, take)
    assert type(error) is dpf.LedgerError
    assert 'has lost a table, or a part of one (relation "dpframe_entries" does not exist)' in str(error)


def terminate(place):
    """End every connection that has an open transaction."""
    idle = f"datname = '{place.name}' AND state = 'idle in transaction'"
    place.do(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {idle}")


@pytest.mark.slow
def test_158_a_database_without_a_ledger_is_called_one(place):
    with pytest.raises(dpf.LedgerError, match=r"the database at .* is not a ledger\. If there was one") as caught:
        dpf.Ledger.open(place.url)
    assert "file" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_any_encoding_holds_a_ledger(place, encoding):
    """initdb makes databases of SQL_ASCII where the locale is C."""
    place.do(f"CREATE DATABASE {place.name}_other ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    url = place.url.replace(f"/{place.name}?", f"/{place.name}_other?")
    ledger = dpf.Ledger(epsilon=1, path=url, head=place.url, dataset="Aufnahmen in Zürich, 日本")
    first, again = (PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="ü 日本", snapshot="1") for _ in range(2))
    assert first["count"][0] == again["count"][0]
    again = dpf.Ledger.open(url, head=place.url)
    assert (again.spent.epsilon, again.dataset) == (0.25, "Aufnahmen in Zürich, 日本")
    assert "ü 日本" in list(again.to_frame()["label"])


@pytest.mark.slow
@pytest.mark.parametrize("at_commit", [False, True])
def test_158_a_connection_that_is_ended_before_or_at_the_commit(place, monkeypatch, at_commit):
    ledger = dpf.Ledger(epsilon=1, path=place.url)
    monkeypatch.setattr(results, "totals", of_rows(lambda *_: pytest.fail("a row was read")))
    if at_commit:
        check = database.Database._check_lock
        monkeypatch.setattr(
            database.Database, "_check_lock", lambda *given: check(*given) or (given[1] and terminate(place))
        )
    else:
        append = rows.append
        monkeypatch.setattr(rows, "append", lambda *given: terminate(place) or append(*given))
    with pytest.raises(dpf.LedgerUnavailable, match="terminating connection") as caught:
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    assert caught.value.charged == ("unknown" if at_commit else "no")
    assert ("may stand" in str(caught.value)) == at_commit
    monkeypatch.undo()
    assert take(ledger)["entry"] == 1


@pytest.mark.slow
def test_158_a_server_that_stops_after_the_commit_says_that_the_charge_stands(place, tmp_path, monkeypatch):
    head = tmp_path / "other.head"
    ledger = dpf.Ledger(epsilon=1, path=place.url, head=head)
    newest = sql.SqlStore._write_newest

    def stopped(*given):
        place.server.stop("immediate")
        return newest(*given)

    monkeypatch.setattr(sql.SqlStore, "_write_newest", stopped)
    try:
        with pytest.raises(dpf.LedgerUnavailable, match="what was charged stays charged") as caught:
            take(ledger)
    finally:
        place.server.start()
    assert caught.value.charged == "unknown"
    monkeypatch.undo()
    assert take(ledger)["entry"] == 2  # the first charge stands, though its head is missing


@pytest.mark.slow
def test_158_no_charge_is_made_twice_where_the_server_breaks_the_head_off(place, tmp_path, monkeypatch):
    from dpframe.ledger.unbroken import Again

    ledger = dpf.Ledger(epsilon=1, path=place.url, head=tmp_path / "other.head")
    newest, torn = sql.SqlStore._write_newest, [1, 1]

    def once_more(*given):
        if torn:
            torn.pop()
            raise Again("deadlock detected")
        return newest(*given)

    monkeypatch.setattr(sql.SqlStore, "_write_newest", once_more)
    assert take(ledger)["entry"] == 1
    assert ledger.verify()["entry"] == 1
