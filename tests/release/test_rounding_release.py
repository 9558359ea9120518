"""A rounded result is still the release: its record is honest, files keep it, ledgers know it."""

from __future__ import annotations

import copy

import numpy as np
import polars as pl
import pytest

import dpframe as dpf

DATA = {"ward": ["A", "B", "C"] * 400, "cost": [float(number % 977) + 0.5 for number in range(1_200)]}


@pytest.fixture
def ledger(tmp_path):
    return dpf.Ledger(epsilon=9, path=tmp_path / "wards.ledger", dataset="wards")


def asked(frame, ledger, **more):
    return frame.dp.group_by("ward", keys=["C", "A", "B"]).agg(
        n=dpf.count(), cost=dpf.mean("cost", bounds=(0, 1_000)), epsilon=0.5, ledger=ledger, **more
    )


def test_rounded_is_still_a_release(engine, ledger, tmp_path):
    result = asked(engine(DATA), ledger)
    made = result.dp.round()
    assert type(made) is type(result)
    assert list(made.columns) == list(result.columns)
    assert [str(dtype) for dtype in made.dtypes] == [str(dtype) for dtype in result.dtypes]
    assert not made.dp.provenance["altered"]
    assert not result.dp.provenance["altered"]
    assert "rounded" not in result.dp.provenance
    said = made.dp.provenance["rounded"]
    assert said["sha256"] == result.dp.provenance["sha256"]
    assert said["steps"]["cost"] >= 0.1
    assert (np.asarray(made["cost_error"]) >= np.asarray(result["cost_error"])).all()
    assert "Rounded, and the errors contain it" in made.dp.statement()
    assert made.dp.to_numpy("n").shape == (3,)
    made.dp.write_parquet(tmp_path / "made.parquet")
    assert dpf.read_parquet(tmp_path / "made.parquet").dp.provenance == made.dp.provenance
    assert len(dpf.concat([made, made])) == 6


def test_the_order_of_rows_stays(ledger):
    result = asked(pl.DataFrame(DATA), ledger)
    pandas = pytest.importorskip("pandas")
    frame = asked(pandas.DataFrame(DATA), ledger)
    turned = frame.sort_values("ward")
    assert turned.dp.round()["ward"].to_list() == ["A", "B", "C"]
    assert turned.dp.round().index.to_list() == turned.index.to_list()
    assert not turned.dp.round().dp.provenance["altered"]
    assert turned.dp.round().dp.provenance == frame.dp.round().dp.provenance
    assert result.dp.round()["ward"].to_list() == ["C", "A", "B"]


def test_a_ledger_knows_the_release(ledger):
    plain = asked(pl.DataFrame(DATA), ledger).dp.round()
    stored = asked(pl.DataFrame(DATA), ledger, label="wards", snapshot="1").dp.round(-1)
    twice = stored.dp.round(-2)
    for made in (plain, stored, twice):
        (said,) = ledger.verify(made)["releases"]
        assert (said["record"], said["numbers"]) == ("as charged", "rounded, not compared")


def test_a_forged_rounding_is_found(ledger):
    stored = asked(pl.DataFrame(DATA), ledger, label="wards", snapshot="1").dp.round()
    record = stored.dp.provenance
    for path, value in (("sha256", "0" * 64), ("rows", "0" * 64)):
        forged = copy.deepcopy(record)
        forged["rounded"][path] = value
        with pytest.raises(dpf.LedgerError, match="stored under its name is another"):
            ledger.verify(forged)
    changed = stored.clone()
    changed._dpframe_record = {key: fact for key, fact in record.items() if key != "altered"}
    changed[0, "n"] = 12345.0
    assert changed.dp.provenance["altered"]


def test_what_cannot_be_rounded(ledger):
    frame = pl.DataFrame(DATA)
    with ledger:
        ranges = frame.dp.histogram("cost", bins=8, range=(0, 1_000), ranges=True, epsilon=0.5)
        staged = frame.dp.histogram("cost", bins=1_024, range=(0, 1_000), ranges=True, epsilon=0.5)
        mode = frame.dp.mode("ward", categories=["A", "B"], epsilon=0.5)
        top = frame.dp.top_k("ward", k=2, categories=["A", "B", "C"], counts=True, epsilon=0.5)
        both = dpf.concat([asked(frame, ledger), asked(frame, ledger)])
    for bins in (ranges, staged):
        with pytest.raises(dpf.InvalidArgument, match="bins for range queries"):
            bins.dp.round()
    with pytest.raises(dpf.InvalidArgument, match=r"a selection is one of the declared options alone\. Read it"):
        mode.dp.round()
    with pytest.raises(dpf.InvalidArgument, match="must be asked of one release"):
        both.dp.round()
    assert top.dp.round(-1)["count"][0] % 10 == 0
    assert not top.dp.round(-1).dp.provenance["altered"]
    assert ranges.dp.table("csv")


def test_subtotals_and_whole_numbers(engine, ledger):
    frame = engine(DATA)
    cube = frame.dp.group_by("ward", keys=["A", "B"]).count(rollup=True, epsilon=0.5, ledger=ledger, denoise=None)
    made = cube.dp.round(-1)
    assert [str(dtype) for dtype in made.dtypes] == [str(dtype) for dtype in cube.dtypes]
    assert all(value % 10 == 0 for value in engine.columns(made)["count"])
    assert not made.dp.provenance["altered"]


def test_tables_of_several_columns_are_measured_as_released():
    people = pl.DataFrame({"sex": ["f", "m"] * 50, "ward": ["A", "B"] * 50})
    keys = {"sex": ["f", "m"], "ward": ["A", "B"]}
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    tables = people.dp.marginals(["sex", "ward"], keys=keys, epsilon=1.0, delta=1e-6, ledger=ledger)
    made = tables.dp.round(-1)
    assert not made.dp.provenance["altered"]
    with pytest.raises(dpf.InvalidArgument, match="these were rounded"):
        made.dp.measurements()
    assert tables.dp.table("csv")
