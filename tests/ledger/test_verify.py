"""`verify` confirms that this ledger charged for this release, as its record says, and with these numbers."""

from __future__ import annotations

import copy
import json
import shutil

import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.cli.main import main
from dpframe.ledger import ledger as ledgers
from dpframe.ledger.entries import Row
from dpframe.release import results, together

COLUMNS = {"age": [31, 45, 62, 7], "ward": ["A", "B", "A", "B"]}
NAMED = {"label": "wards", "snapshot": "2026-W47"}
CALLS = {
    "count": lambda dp, **words: dp.count(**words),
    "agg": lambda dp, **words: dp.group_by("ward", keys=["A", "B"]).agg(
        dpf.count(), dpf.mean("age", bounds=(0, 9)), **words
    ),
    "histogram": lambda dp, **words: dp.histogram("age", bins=[0, 50, 100], denoise=["haar", "rounded"], **words),
    "plain": lambda dp, **words: dp.histogram("age", bins=[0, 50, 100], keep_noisy=False, **words),
    "rollup": lambda dp, **words: dp.group_by("ward", keys=["A", "B"]).count(rollup=True, **words),
    "select": lambda dp, **words: dp.mode("ward", categories=["A", "B"], **words),
    "auto": lambda dp, **words: dp.count(mechanism="auto", **words),
}


@pytest.fixture
def ledger(tmp_path):
    return dpf.Ledger(epsilon=9, path=tmp_path / "clinic.ledger", dataset="clinic")


@pytest.fixture
def same_second(monkeypatch):
    """Give all entries and ledgers the same time."""
    for module in (ledgers, results, together, __import__("dpframe.ledger.terms", fromlist=["now"])):
        monkeypatch.setattr(module, "now", lambda: "2026-11-22T10:00:00+00:00")


# Random bytes


def test_94_two_ledgers_of_one_second_begin_and_go_on_with_other_hashes(tmp_path, same_second):
    """Terms, time and cost are the same, but each ledger knows only its own release."""
    books = [dpf.Ledger(epsilon=1, path=tmp_path / name) for name in ("one", "two")]
    people = pl.DataFrame(COLUMNS)
    first, second = (people.dp.count(epsilon=0.5, ledger=book) for book in books)
    assert books[0]._store.identity[1] != books[1]._store.identity[1]
    with pytest.raises(dpf.LedgerError, match="does not know the release"):
        books[1].verify(first)
    assert books[1].verify(second)["entry"] == 1


def test_94_a_release_of_a_copy_does_not_verify_on_the_original(tmp_path, same_second, engine):
    original = dpf.Ledger(epsilon=1, path=tmp_path / "one")
    for ending in ("", ".head"):
        shutil.copy(tmp_path / f"one{ending}", tmp_path / f"two{ending}")
    twin = dpf.Ledger.open(tmp_path / "two")
    people = engine(COLUMNS)
    with noise.insecure_bits(7):
        first = people.dp.count(epsilon=0.5, ledger=original)
    with noise.insecure_bits(7):  # the same noise again, but the ledger's random bytes are never seeded
        second = people.dp.count(epsilon=0.5, ledger=twin)
    assert first.dp.provenance["sha256"] == second.dp.provenance["sha256"]
    for book, other in ((original, second), (twin, first)):
        with pytest.raises(dpf.LedgerError, match="does not know the release"):
            book.verify(other)


def test_94_random_bytes_are_the_system_s_and_never_the_seeded_ones():
    found = []
    for _ in range(2):
        with noise.insecure_bits(1):
            found.append(noise.nonce())
    assert len({*found, noise.nonce()}) == 3
    assert all(len(bytes.fromhex(one)) == 16 for one in found)


def test_94_every_entry_has_random_bytes_of_its_own(ledger):
    people = pl.DataFrame(COLUMNS)
    CALLS["count"](people.dp, epsilon=1, ledger=ledger, **NAMED)
    ledger.raise_limit(epsilon=10, reason="the board agreed")
    found = [row.facts["nonce"] for row in stored(ledger)]
    assert len(set(found)) == len(found) == 3
    assert ledger._terms.nonce not in found


def test_94_an_entry_without_them_is_refused(ledger, monkeypatch):
    """Only entries from dpframe 0.1 have none, and a ledger that 0.1 did not make has no such entry."""
    monkeypatch.setattr("dpframe.ledger.entries.canonical", plain)
    pl.DataFrame(COLUMNS).dp.count(epsilon=1, ledger=ledger)
    with pytest.raises(dpf.LedgerError, match="entry 1 has not the random bytes"):
        ledger.verify()


def plain(facts):
    if isinstance(facts, dict):
        facts = {name: fact for name, fact in facts.items() if name != "nonce"}
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def stored(ledger) -> list[Row]:
    from dpframe.ledger import rows

    with ledger._store.database.transaction(write=False) as connection:
        return rows.all_of(connection)


# Forged records


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("words", [{}, NAMED], ids=["plain", "named"])
def test_95_an_honest_release_verifies(call, words, ledger, engine, tmp_path):
    result = CALLS[call](engine(COLUMNS).dp, epsilon=1, ledger=ledger, **words)
    numbers = "as stored" if words else "as in its record"
    assert ledger.verify(result)["releases"] == [{"entry": 1, "record": "as charged", "numbers": numbers}]
    record = result.dp.provenance
    told = "as stored" if words else "not given"
    assert (
        ledger.verify(record, json.loads(json.dumps(record)))["releases"]
        == [{"entry": 1, "record": "as charged", "numbers": told}] * 2
    )
    result.dp.write_parquet(tmp_path / "result.parquet")
    for like in ("polars", "pandas") if engine.is_pandas else ("polars",):
        read = dpf.read_parquet(tmp_path / "result.parquet", like)
        assert ledger.verify(read)["releases"][0]["numbers"] == numbers


FORGED = {
    "cost": lambda facts: facts["cost"].update(epsilon=0.1),
    "delta": lambda facts: facts["cost"].update(delta=0.5),
    "accounting": lambda facts: facts["cost"].update(accounting="gdp"),
    "label": lambda facts: facts.update(label="another"),
    "no label": lambda facts: facts.update(label=None),
    "unit": lambda facts: facts["unit"].update(column="patient"),
    "neighbors": lambda facts: facts["unit"].update(neighbors="replace"),
    "verb": lambda facts: facts.update(verb="sum"),
    "scale": lambda facts: facts["statistics"][0].update(scale=0.001),
    "column": lambda facts: facts["measures"]["count"].update(column="age"),
    "notes": lambda facts: facts.update(notes=["nobody was left out"]),
    "keep_noisy": lambda facts: facts.update(keep_noisy=not facts["keep_noisy"]),
    "confidence": lambda facts: facts.update(confidence=0.99),
    "cells": lambda facts: facts.update(cells=[]),
    "measures": lambda facts: facts.update(statistics=[]),
    "more": lambda facts: facts.update(more=1),
    "schema": lambda facts: facts.update(schema="dpframe.provenance/1"),
    "data set": lambda facts: facts["ledger"].update(dataset="hospital"),
    "snapshot": lambda facts: facts["ledger"].update(snapshot="2026-W48"),
    "head": lambda facts: facts["ledger"].update(head="0" * 64),
    "entry": lambda facts: facts["ledger"].update(entry=2),
    "place": lambda facts: facts.update(ledger=3),
    "altered": lambda facts: facts.update(altered=True),
    "not JSON": lambda facts: facts.update(notes={1, 2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("words", [{"label": "wards"}, NAMED], ids=["plain", "named"])
@pytest.mark.parametrize("what", FORGED)
def test_95_a_forged_record_is_refused(what, words, ledger, engine):
    result = engine(COLUMNS).dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=ledger, **words)
    record = copy.deepcopy(result.dp.provenance)
    FORGED[what](record)
    with pytest.raises(dpf.LedgerError):
        ledger.verify(record)


@pytest.mark.parametrize("fact", ["sha256", "columns", "denoise", "release", "totals"])
def test_95_a_stored_answer_is_compared_as_a_whole(fact, ledger, engine):
    result = engine(COLUMNS).dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=ledger, **NAMED)
    record = copy.deepcopy(result.dp.provenance)
    if fact == "denoise":
        record["measures"]["count"]["denoise"] = None
    elif fact == "totals":
        record["measures"]["count"]["totals"] = [[1.0, 2.0]]
    elif fact == "release":
        record["release"] = "0" * 32
    else:
        record[fact] = "0" * 64 if fact == "sha256" else ["count"]
    with pytest.raises(dpf.LedgerError, match="the answer that was stored under its name is another"):
        ledger.verify(record)


@pytest.mark.parametrize("words", [{}, NAMED], ids=["plain", "named"])
def test_95_changed_numbers_are_refused(words, ledger, engine):
    result = engine(COLUMNS).dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=ledger, **words)
    changed = pl.DataFrame(engine.columns(result)).with_columns(pl.col("count") + 1)
    changed._dpframe_record = dict(result.dp.provenance)
    with pytest.raises(dpf.LedgerError, match="its numbers were changed after the release"):
        ledger.verify(changed)
    if words:  # also if the record is forged to fit the numbers
        from dpframe.frames import build

        record = dict(result.dp.provenance)
        changed._dpframe_record = record | {"sha256": build.fingerprint(changed, record["columns"]), "rows": None}
        with pytest.raises(dpf.LedgerError, match="the answer that was stored under its name is another"):
            ledger.verify(changed)


def test_95_a_record_for_an_entry_that_is_no_release_is_refused(ledger):
    people = pl.DataFrame(COLUMNS)
    record = people.dp.count(epsilon=1, ledger=ledger).dp.provenance
    place = ledger.charge((1, 0), cost=dpf.PrivacyLoss(1.0), query="count()", unit=ledger.unit)
    ledger.raise_limit(epsilon=10, reason="the board agreed")
    with pytest.raises(dpf.LedgerError, match="is not the one that the entry commits to"):
        ledger.verify(record | {"ledger": place})
    with pytest.raises(dpf.LedgerError, match="that entry is no charge: its kind is 'limit'"):
        ledger.verify(record | {"ledger": ledger.verify()})
    assert ledger.verify(place)["releases"] == [{"entry": 2, "record": "in part", "numbers": "not given"}]
    assert ledger.verify(ledger.verify())["entry"] == 3


def test_95_a_record_that_goes_for_a_receipt_is_refused(ledger):
    """A receipt names only an entry of the ledger; a record with any other field is compared as a whole."""
    start = ledger.verify()
    released = pl.DataFrame(COLUMNS).dp.count(epsilon=1, ledger=ledger).dp.provenance
    cheap = {**released, "cost": {**released["cost"], "epsilon": 0.01}}
    receipt = cheap["ledger"]
    plain = {name: fact for name, fact in cheap.items() if name != "ledger"}
    forged = {
        "entry 0": {**cheap, "ledger": start},
        "flat": {**plain, **receipt},
        "no parts": {**cheap, "parts": []},
        "good parts": {**cheap, "parts": [released]},
        "joined, of none": {"schema": "dpframe.parts/1", "parts": []},
        "joined, one forged": {"schema": "dpframe.parts/1", "parts": [released, cheap]},
    }
    for record in forged.values():
        with pytest.raises(dpf.LedgerError, match=r"is not as it was charged|not one that dpframe wrote"):
            ledger.verify(record)
    both = {"schema": "dpframe.parts/1", "parts": [released, released]}
    assert [one["record"] for one in ledger.verify(both)["releases"]] == ["as charged"] * 2
    assert ledger.verify(start)["releases"] == [{"entry": 0, "record": "in part", "numbers": "not given"}]


def test_95_a_charge_whose_answer_was_never_stored_released_nothing(ledger, monkeypatch):
    people = pl.DataFrame(COLUMNS)
    told = []
    with monkeypatch.context() as patch:
        patch.setattr(results, "kept", lambda plan, asked, frame, *_: told.append(frame.dp.provenance) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            people.dp.count(epsilon=1, ledger=ledger, **NAMED)
    with pytest.raises(dpf.LedgerError, match="its answer was never stored, so it was never released"):
        ledger.verify(told[0])
    again = people.dp.count(epsilon=1, ledger=ledger, **NAMED)
    assert ledger.verify(again)["releases"][0]["entry"] == 2
    with pytest.raises(dpf.LedgerError, match="is another"):
        ledger.verify(told[0])


@pytest.mark.parametrize("name", ["n", "mean(age)"])  # the second begins as the query of a single release does
def test_95_what_is_released_together_verifies_one_by_one(ledger, engine, name):
    frame = engine(COLUMNS)
    plans = {
        name: frame.dp.preview.count(ledger=ledger, label="own"),
        "ages": frame.dp.preview.histogram("age", bins=[0, 50, 100], ledger=ledger),
    }
    results = dpf.release_together(plans, epsilon=1, ledger=ledger, label="both")
    found = ledger.verify(*results.values())["releases"]
    assert [one["record"] for one in found] == ["as charged"] * 2
    for result in results.values():
        for change in ({"label": "another"}, {"cost": result.dp.provenance["cost"] | {"epsilon": 0.5}}):
            with pytest.raises(dpf.LedgerError):
                ledger.verify(result.dp.provenance | change)


@pytest.mark.parametrize("release", [None, 3, "entry 1", [1], pl.Series([1])], ids=str)
def test_95_what_is_no_release_is_refused(release, ledger):
    with pytest.raises(dpf.InvalidType, match="releases must be released frames or their provenances"):
        ledger.verify(release)


def test_95_a_frame_without_a_record_is_refused(ledger, engine):
    with pytest.raises(dpf.NoProvenance, match="this frame has none"):
        ledger.verify(engine(COLUMNS))


@pytest.mark.parametrize("record", [{}, {"ledger": {}}, {"entry": -1, "head": None}, {"ledger": None}], ids=str)
def test_95_a_record_without_a_place_is_refused(record, ledger):
    with pytest.raises(dpf.LedgerError, match=r"does not know the release|names no entry of a ledger"):
        ledger.verify(record)


def test_a_result_that_names_no_entry_is_not_said_to_be_of_an_older_copy(ledger, engine):
    """The error once advised to restore a newer copy, so an auditor might have replaced a ledger that is correct."""
    people = engine(COLUMNS)
    computed = people.dp.count(epsilon=0.25, ledger=ledger).dp.total()
    in_memory = people.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1))
    for result in (computed, in_memory):
        with pytest.raises(dpf.LedgerError, match="names no entry of a ledger") as refusal:
            ledger.verify(result)
        assert "older copy" not in str(refusal.value)


def test_95_a_bottomless_record_is_refused(ledger):
    record = pl.DataFrame(COLUMNS).dp.count(epsilon=1, ledger=ledger).dp.provenance
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    for name in ("notes", "cost", "label"):
        with pytest.raises(dpf.LedgerError):
            ledger.verify(record | {name: deep})


def test_95_the_command_line_holds_numbers_against_the_ledger(ledger, tmp_path, capsys):
    pytest.importorskip("typer", reason="the extra cli")
    result = pl.DataFrame(COLUMNS).dp.count(epsilon=1, ledger=ledger, label="first")
    result.dp.write_parquet(tmp_path / "first.parquet")
    words = ["ledger", "verify", str(tmp_path / "clinic.ledger"), str(tmp_path / "first.parquet")]
    assert main(words) == 0
    assert "first.parquet' is entry 1: record as charged, numbers as in its record" in capsys.readouterr().out
    changed = result + 1
    changed._dpframe_record = result._dpframe_record
    from dpframe.frames import build

    build.write_parquet(changed, tmp_path / "first.parquet", result._dpframe_record)
    assert main(words) == 1
    assert "its numbers were changed after the release" in capsys.readouterr().err
