"""The identity of a release, and the noisy totals behind its quotients: what a record states about its noise."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.ledger.canonical import promised

STAYS = {"ward": ["A", "B", "A"] * 20, "cost": [1.0, 5.0, 9.0] * 20, "week": [1, 1, 2] * 20}
FORMS = {
    "pure": {"epsilon": 100.0},
    "gaussian": {"epsilon": 100.0, "delta": 1e-6, "mechanism": "gaussian"},
}


def release_of(frame):
    return frame.dp.provenance["release"]


def test_each_charge_draws_an_identity(engine):
    frame, ledger = engine(STAYS), dpf.Ledger(epsilon=9)
    with noise.insecure_bits(1):  # this repeats the noise, but not the identity
        first, second = (frame.dp.count(epsilon=1, ledger=ledger) for _ in range(2))
    assert release_of(first) != release_of(second)
    assert all(len(bytes.fromhex(release_of(one))) == 16 for one in (first, second))
    assert release_of(frame.dp.mode("ward", categories=["A", "B"], epsilon=1, ledger=ledger))


def test_a_replay_has_the_identity_of_its_release(engine, tmp_path):
    frame, ledger = engine(STAYS), dpf.Ledger(epsilon=1, path=tmp_path / "a.ledger")
    ask = {"epsilon": 0.5, "ledger": ledger, "label": "n", "snapshot": "May"}
    first, again = (frame.dp.group_by("ward", keys=["A", "B"]).count(**ask) for _ in range(2))
    assert first.dp.provenance == again.dp.provenance
    assert "release" in first.dp.provenance


def test_parts_of_one_charge_share_the_identity_and_are_told_apart(engine):
    preview = engine(STAYS).dp.preview
    plans = {"n": preview.count(), "mean": preview.mean("cost", bounds=(0, 10))}
    parts = dpf.release_together(plans, epsilon=1, ledger=dpf.Ledger(epsilon=1)).values()
    facts = [part.dp.provenance for part in parts]
    assert len({one["release"] for one in facts}) == 1
    assert [one["part"] for one in facts] == [0, 1]


def test_periods_of_a_stream_share_the_identity(engine):
    stream = dpf.Stream(
        "s", statistic=dpf.count(), time="week", periods=[1, 2, 3], epsilon=1, ledger=dpf.Ledger(epsilon=1)
    )
    first, second = (stream.release(engine(STAYS), week) for week in (1, 2))
    assert release_of(first) == release_of(second)
    assert release_of(stream.release(engine(STAYS), 1)) == release_of(first)
    assert "lost" not in second.dp.provenance["period"]


def test_no_ledger_promises_what_the_charge_draws(engine, tmp_path):
    frame, ledger = engine(STAYS), dpf.Ledger(epsilon=9, path=tmp_path / "a.ledger")
    mean = frame.dp.group_by("ward", keys=["A", "B"]).mean("cost", bounds=(0, 10), epsilon=1, ledger=ledger)
    facts = mean.dp.provenance
    bare = json.loads(json.dumps(facts))
    del bare["release"], bare["measures"]["cost_mean"]["totals"]
    assert promised(bare) == promised(facts)
    assert ledger.verify(mean)["releases"][0]["record"] == "as charged"


@pytest.mark.parametrize("form", FORMS)
def test_the_totals_are_those_that_quotients_were_computed_from(form, engine):
    statistics = {
        "mean": dpf.mean("cost", bounds=(0, 10)),
        "part": dpf.proportion("ward", value="A"),
        "rate": dpf.ratio("cost", "week", bounds={"cost": (0, 10), "week": (0, 52)}),
        "spread": dpf.variance("cost", bounds=(0, 10)),
        "n": dpf.count("cost"),
    }
    ledger = dpf.Ledger(epsilon=900, delta=1e-3 if form == "gaussian" else 0)
    result = engine(STAYS).dp.group_by("ward", keys=["A", "B"]).agg(statistics, **FORMS[form], ledger=ledger)
    measures = result.dp.provenance["measures"]
    for name in ("mean", "part", "rate", "spread"):
        assert len(measures[name]["totals"]) == len(measures[name]["statistics"])
    top, bottom = map(np.array, measures["rate"]["totals"])
    assert np.allclose(np.asarray(result["rate"]), top / bottom)
    above, below = np.array(measures["part"]["totals"][0]).reshape(2, 2).T
    assert np.allclose(np.asarray(result["part"]), np.clip(above / np.maximum(above + below, 1e-300), 0, 1), atol=1e-9)
    if form == "pure":
        shared = np.array(measures["n"]["totals"][0]).reshape(2, -1).sum(axis=1)
        assert np.array_equal(np.rint(shared), np.asarray(result["n"]))
    else:
        assert "totals" not in measures["n"]


def test_large_tables_do_not_tell_their_totals():
    frame = pl.DataFrame({"k": [1, 2], "x": [1.0, 2.0]})
    with dpf.Ledger(epsilon=9):
        large = frame.dp.group_by("k", keys=range(2**15 + 1)).mean("x", bounds=(0, 10), epsilon=1)
    assert "totals" not in large.dp.provenance["measures"]["x_mean"]


def test_found_groups_tell_the_totals_of_those_that_are_shown(engine):
    frame = engine({"ward": ["A"] * 500 + ["B"], "cost": [1.0] * 501, "person": list(range(501))})
    ledger = dpf.Ledger(epsilon=9, delta=1e-3, unit="person", accounting="basic")
    found = frame.dp.group_by("ward", keys=dpf.discover(delta=1e-4, max_keys=3)).mean(
        "cost", bounds=(0, 10), epsilon=2, max_rows=1, ledger=ledger
    )
    totals = found.dp.provenance["measures"]["cost_mean"]["totals"]
    assert {len(values) % max(len(found), 1) for values in totals} == {0}
