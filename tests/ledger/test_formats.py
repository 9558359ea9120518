"""Files of dpframe 0.1: ledgers are taken over whole or not at all, and their releases still verify."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import shutil
import sqlite3
import sys
import warnings
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from dpframe.cli.main import main
from dpframe.ledger import heads, rows
from dpframe.ledger.database import tables
from dpframe.ledger.ledger import _unpickled
from dpframe.ledger.sql import SqlStore

DATA = Path(__file__).parents[1] / "data" / "0.1"
KNOWN = json.loads((DATA / "clinic.json").read_text(encoding="utf-8"))
FRAME = [{"snapshot" if name == "version" else name: fact for name, fact in row.items()} for row in KNOWN["frame"]]
RESULTS = ("count", "wards", "age")
COLUMNS = {"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "C"], "age": [31, 31, 45, 62]}
PEOPLE = pl.DataFrame(COLUMNS)
UNIT = dpf.PrivacyUnit(column="patient", max_rows=2, max_groups=2)
NAMED = {"label": "wards", "snapshot": "2026-W47"}


@pytest.fixture
def path(tmp_path):
    """A writable copy of the ledger of 0.1 and its head."""
    return copied("clinic", tmp_path)


def copied(name, folder):
    for ending in ("", ".head"):
        shutil.copy(DATA / f"{name}.ledger{ending}", folder)
    return folder / f"{name}.ledger"


def terms_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("select terms from dpframe_ledger").fetchone()[0]


def tables_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute(f"select * from {name} order by 1").fetchall()
            for name in ("dpframe_entries", "dpframe_answers")
        ]


def edit(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def read_by_0_1(text):
    """Read the terms as dpframe 0.1 does, which first checks the format; the message is the one of 0.1."""
    found = json.loads(text)
    if found["format"] != "dpframe.ledger/1":
        raise dpf.LedgerError(
            f"the ledger is of the format {found['format']!r}, and this version of dpframe reads 'dpframe.ledger/1'. "
            "Open it with the version that made it."
        )
    return found


# Ledgers that are taken over


def test_20_a_ledger_of_0_1_is_taken_over(path):
    before, old = tables_of(path), terms_of(path)
    read_by_0_1(old)
    ledger = dpf.Ledger.open(path)
    assert tables_of(path) == before  # all entries, their hashes and the answers stay the same
    assert (ledger.limit, ledger.spent) == (dpf.PrivacyLoss(2.0), dpf.PrivacyLoss(0.875))
    assert (ledger.unit, ledger.dataset, ledger.accounting.name) == (UNIT, "clinic", "basic")
    assert ledger.to_frame().to_dicts() == FRAME
    found = ledger.verify()
    assert found == KNOWN["verify"] | {"without_nonce": 5}
    text = terms_of(path)
    assert json.loads(text)["was"] == old
    with pytest.raises(dpf.LedgerError, match=r"of the format 'dpframe\.ledger/2'"):
        read_by_0_1(text)
    assert dpf.Ledger.open(path).verify() == found
    assert terms_of(path) == text


def test_20_a_ledger_of_rdp_is_taken_over(tmp_path):
    path = copied("rdp", tmp_path)
    last = heads.read(str(path)).mark
    ledger = dpf.Ledger.open(path)
    assert ledger.limit == dpf.PrivacyLoss(1.0, 1e-6)
    assert ledger._store.last() == last
    assert 0.3 < ledger.spent.epsilon < 0.6
    assert ledger.accounting.name == "rdp"
    pl.DataFrame(COLUMNS).dp.count(epsilon=0.1, ledger=ledger)
    assert dpf.Ledger.open(path).verify()["without_nonce"] == 2


def test_20_new_entries_have_random_bytes_and_old_ones_stay_named(path):
    ledger = dpf.Ledger(epsilon=2, unit=UNIT, dataset="clinic", path=path)  # a script that creates it finds the old one
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    assert dpf.Ledger.open(path).spent == dpf.PrivacyLoss(1.0)
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=1.125, ledger=ledger)
    assert ledger.verify()["without_nonce"] == 5
    bodies = [json.loads(body) for _, body, *_ in tables_of(path)[0]]
    assert ["nonce" in body for body in bodies] == [False] * 5 + [True]


def test_20_releases_of_0_1_stay_known(path):
    ledger = dpf.Ledger.open(path)
    results = [dpf.read_parquet(DATA / f"{name}.parquet") for name in RESULTS]
    assert {result.dp.provenance["schema"] for result in results} == {"dpframe.provenance/1"}
    assert not any(result.dp.provenance["altered"] for result in results)
    found = ledger.verify(*results)["releases"]
    assert [one["entry"] for one in found] == [1, 2, 5]
    assert [one["record"] for one in found] == ["in part", "as charged", "in part"]
    assert [one["numbers"] for one in found] == ["as in its record", "as stored", "as in its record"]
    record = results[0].dp.provenance
    for change in (
        {"label": "another"},
        {"label": None},
        {"cost": record["cost"] | {"epsilon": 0.1}},
        {"cost": record["cost"] | {"accounting": "gdp"}},
        {"unit": record["unit"] | {"max_rows": 1}},
        {"ledger": record["ledger"] | {"dataset": None}},
        {"altered": True},
    ):
        with pytest.raises(dpf.LedgerError, match="is not as it was charged"):
            ledger.verify(record | change)


def test_20_the_schema_takes_records_of_both_versions(path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DATA.parents[2] / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for name in RESULTS:
        validator.validate(dpf.read_parquet(DATA / f"{name}.parquet").dp.provenance)
    record = PEOPLE.dp.count(epsilon=0.1, ledger=dpf.Ledger.open(path)).dp.provenance
    validator.validate(record)
    assert record["schema"] == "dpframe.provenance/2"


def test_20_an_answer_of_0_1_is_replayed(path, engine):
    ledger = dpf.Ledger.open(path)
    call = engine(COLUMNS).dp.group_by("ward", keys=["A", "B", "C"])
    again = call.count(epsilon=0.5, ledger=ledger, **NAMED)
    kept = dpf.read_parquet(DATA / "wards.parquet")
    assert again["count_noisy"].to_list() == kept["count_noisy"].to_list()
    assert ledger.spent.epsilon == 0.875
    with pytest.raises(dpf.LedgerError, match="name another release of this ledger"):
        call.count(epsilon=0.25, ledger=ledger, **NAMED)


def test_20_a_pickle_of_0_1_leads_to_it(path):
    ledger = _unpickled(str(path), KNOWN["pickled"])
    assert ledger.spent.epsilon == 0.875
    assert pickle.loads(pickle.dumps(ledger)).spent.epsilon == 0.875
    with pytest.raises(dpf.LedgerError, match="not the one that was pickled"):
        _unpickled(str(path), "0" * 64)


def test_20_the_command_line_names_old_entries(path, capsys):
    pytest.importorskip("typer", reason="the extra cli")
    assert main(["ledger", "verify", str(path), str(DATA / "count.parquet")]) == 0
    said = capsys.readouterr().out
    assert "intact: 5 entries, spent epsilon 0.875 of epsilon 2, and it knows 1 of 1 releases" in said
    assert "the entries up to number 5 are of dpframe 0.1 and have no random bytes" in said
    assert "record in part, numbers as in its record" in said


# Taken over whole, or not at all


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_20_a_crash_amid_it_leaves_the_ledger_of_0_1(path):
    """The process dies after it writes the new terms and before it commits them."""
    old, before = terms_of(path), tables_of(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        from sqlalchemy.engine import Connection

        with contextlib.suppress(BaseException):
            inner = Connection.execute

            def execute(self, statement, *arguments, **words):
                done = inner(self, statement, *arguments, **words)
                if getattr(statement, "is_update", False):
                    os._exit(7)
                return done

            Connection.execute = execute
            dpf.Ledger.open(path)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert terms_of(path) == old
    assert tables_of(path) == before
    assert dpf.Ledger.open(path).spent.epsilon == 0.875


def test_20_an_error_amid_it_leaves_the_ledger_of_0_1(path, monkeypatch):
    old = terms_of(path)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "Before", lambda *_: sys.exit("the process ends here"))
        with pytest.raises(SystemExit):
            dpf.Ledger.open(path)
    assert terms_of(path) == old
    assert dpf.Ledger.open(path).spent.epsilon == 0.875


@pytest.mark.parametrize(
    "statement",
    [
        "update dpframe_entries set body = replace(body, '1/4', '1/5') where entry = 1",
        "delete from dpframe_entries where entry = 5",
        "update dpframe_ledger set terms = replace(terms, '1/1', '2/1')",
        "update dpframe_ledger set terms = replace(terms, ',', ', ')",
    ],
)
def test_20_a_changed_ledger_of_0_1_is_not_taken_over(path, statement):
    edit(path, statement)
    old = terms_of(path)
    with pytest.raises(dpf.LedgerError, match=r"was changed by something|older copy|is not the one whose head"):
        dpf.Ledger.open(path)
    assert terms_of(path) == old


def test_20_an_older_copy_of_0_1_is_refused_and_may_be_recovered(path):
    edit(path, "delete from dpframe_entries where entry = 5")
    with pytest.raises(dpf.LedgerError, match="older copy: it holds 4 entries, and entry 5"):
        dpf.Ledger.open(path)
    ledger = dpf.Ledger.recover(path, reason="the disk was replaced")
    assert ledger.spent.epsilon == 0.875
    assert ledger.verify() | {"head": ""} == {"dataset": "clinic", "entry": 5, "head": "", "without_nonce": 4}


def test_20_without_its_head_it_is_refused_and_may_be_recovered(path):
    path.with_name("clinic.ledger.head").unlink()
    with pytest.raises(dpf.LedgerError, match=r"head of the ledger .* is missing"):
        dpf.Ledger.open(path)
    assert dpf.Ledger.recover(path, reason="moved without it").spent.epsilon == 0.875


def test_20_the_copy_of_before_is_taken_over_again_or_refused(path, tmp_path):
    """The restored file of 0.1 is still current if nothing was charged since; otherwise it is an older copy."""
    shutil.copy(path, tmp_path / "old")
    ledger = dpf.Ledger.open(path)
    shutil.copy(tmp_path / "old", path)
    assert dpf.Ledger.open(path).spent.epsilon == 0.875
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(dpf.LedgerError, match="older copy"):
        dpf.Ledger.open(path)


FORGED = {
    "more entries without random bytes": lambda facts: facts | {"entries": 6},
    "fewer": lambda facts: facts | {"entries": 4},
    "another end": lambda facts: facts | {"head": "0" * 64},
    "another limit": lambda facts: facts | {"was": facts["was"].replace('"1/1"', '"9/1"', 1)},
    "another unit": lambda facts: facts | {"was": facts["was"].replace('"max_rows":2', '"max_rows":1')},
    "taken over twice": lambda facts: facts | {"was": json.dumps(facts, sort_keys=True, separators=(",", ":"))},
    "more facts": lambda facts: facts | {"more": 1},
    "no head": lambda facts: {name: fact for name, fact in facts.items() if name != "head"},
}


@pytest.mark.parametrize("what", FORGED)
def test_20_terms_that_were_changed_after_it_are_refused(path, what):
    ledger = dpf.Ledger.open(path)
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    forged = json.dumps(FORGED[what](json.loads(terms_of(path))), sort_keys=True, separators=(",", ":"))
    edit(path, f"update dpframe_ledger set terms = '{forged}'")
    for use in (ledger.verify, lambda: dpf.Ledger.open(path), lambda: PEOPLE.dp.count(epsilon=0.125, ledger=ledger)):
        with pytest.raises(dpf.LedgerError):
            use()


def test_20_a_forged_charge_without_random_bytes_is_refused(path):
    """Every hash of the chain fits, but its last entry is written as 0.1 wrote entries."""
    ledger = dpf.Ledger.open(path)
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("select body, head from dpframe_entries order by entry").fetchall()
        facts = {name: fact for name, fact in json.loads(rows[5][0]).items() if name != "nonce"}
        body = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        link = hashlib.sha256(f"{rows[4][1]}\n{body}".encode()).hexdigest()
        connection.execute("update dpframe_entries set body = ?, head = ? where entry = 6", (body, link))
    with pytest.raises(dpf.LedgerError, match="entry 6 has not the random bytes"):
        dpf.Ledger.open(path)


# PostgreSQL


@pytest.mark.slow
def test_20_a_ledger_of_0_1_on_a_server_is_taken_over(server):
    """The tables come from a file of 0.1 and are copied into a database."""
    url = server.url("first")
    dpf.Ledger(epsilon=1, path=url)
    known, (entries, answers) = tables(), tables_of(DATA / "clinic.ledger")
    store = SqlStore.open(url)
    with store.database.transaction(write=True) as connection:
        connection.execute(known.terms.update().values(terms=terms_of(DATA / "clinic.ledger")))
        for entry, body, link, name in entries:
            connection.execute(known.entries.insert().values(entry=entry, body=body, head=link, name=name))
        for entry, content in answers:
            connection.execute(known.answers.insert().values(entry=entry, content=content))
    ledger = dpf.Ledger.open(url)
    assert ledger.verify(*(dpf.read_parquet(DATA / f"{name}.parquet") for name in RESULTS))["without_nonce"] == 5
    assert ledger._store.last().total == (Fraction(7, 8), 0)
    assert ledger.to_frame().to_dicts() == FRAME
    assert "3 charges" in repr(ledger)
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    assert dpf.Ledger.open(url).verify()["entry"] == 6
