"""Streams in a ledger file of dpframe 0.2.0 continue, whatever texts later versions use to describe them."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from dpframe.streams import stream_path
from dpframe.streams.stream_path import identity_of
from dpframe.streams.stream_plan import StreamPlan

DATA = Path(__file__).parents[1] / "data" / "0.2"
KNOWN = json.loads((DATA / "streams.json").read_text(encoding="utf-8"))
STAYS = pl.DataFrame(
    {
        "patient": [1, 1, 2, 3, 3, 4],
        "week": [1, 2, 1, 3, 2, 1],
        "day": [date(2026, 1, 5), date(2026, 1, 12), date(2026, 1, 6), date(2026, 1, 20), date(2026, 1, 13), None],
        "ward": ["A", "B", "A", "A", "B", "B"],
        "cost": [10.0, 2.5, None, 80.0, 7.0, 3.0],
    }
)
WEEKS = dpf.dates("2026-01-05", "2026-01-26", every="1w")
STREAMS = {
    "counts": {"statistic": dpf.count(), "time": "week", "periods": [1, 2, 3, 4], "epsilon": 0.5, "max_rows": 2},
    "costs": {
        "statistic": dpf.sum("cost", bounds=(0, 50)),
        "time": "day",
        "periods": WEEKS,
        "by": "ward",
        "keys": ["A", "B"],
        "epsilon": 1,
        "delta": 1e-6,
        "max_rows": 3,
    },
    "lost": {
        "statistic": dpf.count("cost"),
        "time": "week",
        "periods": range(1, 4),
        "by": ["ward", "day"],
        "keys": {"ward": ["A", None], "day": WEEKS},
        "epsilon": 0.25,
        "mechanism": "laplace",
        "max_rows": 1,
    },
}


REPLACED = {"statistic": dpf.count(), "time": "week", "periods": ["a", "b"], "epsilon": 0.5, "max_rows": 4}
UNITS = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("patient", neighbors="replace", nulls="one-unit"))

UNITS_HASHED = {
    "statistic": "1712d64fe1968fa06664c9cffba5119ddf453ab853fef7af1a5639dff5054028",
    "time or periods": "d5ccd6272cb463a993fa1defa1bad844a6c4b781b72d5dd306cae3a1bfaf7e28",
    "by or keys": "1aaf47602f2522f654a38f549d2f7d5e7d8d507ac9c7b3ae9a1afefd330855b7",
    "max_rows": "ddc68fb56eaef11e431036f966c0b42e7946a02750e6c3d0828d87b834637c99",
    "unit": "d55f1687436bd56454adcacfe766b84763879fe560247f3b51d9672b9a0ff805",
    "price": "cd8f9cd4956a87f3b72f63038ee9796b3c04e2fe095f683a1bd42704cf30598d",
    "noise": "d6d41f6e3064319d8259b935d8e7975143ab077f5f27b8b21c5c8acf5b08c003",
    "random bits": "b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b",
}


def stream_of(name, ledger, **changed):
    return dpf.Stream(name, **{**STREAMS[name], "ledger": ledger, **changed})


def told(frame):
    return json.loads(json.dumps(frame.to_dict(as_series=False), default=str))


def plan_of(stream, ledger):
    return stream._request.plan(ledger.unit, ledger.accounting, ledger.limit_amount)


@pytest.fixture
def ledger(tmp_path):
    for ending in ("", ".head"):
        shutil.copy(DATA / f"streams.ledger{ending}", tmp_path)
    return dpf.Ledger.open(tmp_path / "streams.ledger")


@pytest.fixture(params=["the same words", "other words"])
def words(request, monkeypatch):
    """The texts of this version, or those of a later version that describes the same streams differently."""
    if request.param == "other words":
        monkeypatch.setattr(StreamPlan, "notes", ("rows that come late count in part",))
        monkeypatch.setattr(StreamPlan, "words", "a series of totals")
        monkeypatch.setattr(stream_path, "VERSION", "0.9.0")


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("name", STREAMS)
def test_a_stored_stream_goes_on(name, ledger):
    spent = ledger.spent
    stream = stream_of(name, ledger)
    periods = plan_of(stream, ledger).periods
    second = stream.release(STAYS, periods[1])
    assert told(second) == KNOWN[name]["columns"]
    record = second.dp.provenance
    assert record == KNOWN[name]["record"]
    if name == "lost":
        with pytest.raises(dpf.ReleaseFailed, match="is lost"):
            stream.release(STAYS, periods[0])
    third = stream.release(STAYS, periods[2])
    assert ledger.spent == spent
    assert ledger.verify(second, third)["releases"][-1] | {"entry": 0} == {
        "entry": 0,
        "record": "as charged",
        "numbers": "as stored",
    }
    assert third.dp.provenance["notes"] == KNOWN[name]["record"]["notes"]


@pytest.mark.parametrize("name", STREAMS)
def test_the_facts_that_name_a_stream_are_frozen(name, ledger):
    """Each fact has the hash that dpframe 0.2.0 wrote, so that a refusal can still name the one that differs."""
    entries = [entry for _, entry in ledger._store.entries() if entry.stream == name and entry.kind == "charge"]
    assert [entry.asked for entry in entries] == [identity_of(plan_of(stream_of(name, ledger), ledger))]
    assert identity_of(plan_of(dpf.Stream("units", ledger=UNITS, **REPLACED), UNITS)) == UNITS_HASHED


def test_other_facts_are_other_streams(ledger):
    for changed, word in (
        ({"epsilon": 0.25}, "noise and cost"),
        ({"statistic": dpf.count("ward")}, "statistic"),
        ({"periods": [1, 2, 3]}, "noise and time or periods"),
        ({"by": "ward", "keys": ["A"]}, "by or keys"),
    ):
        with pytest.raises(dpf.LedgerError, match=f"begun with other parameters: {word} differ"):
            stream_of("counts", ledger, **changed).release(STAYS, 1)
