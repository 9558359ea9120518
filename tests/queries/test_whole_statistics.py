"""Every statistic in every kind of call: previews, joint releases, replay, records, charts, tables, all accountings."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.queries.statistics.statistic import Adapting
from dpframe.testing import check_statistic

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "provenance.schema.json").read_text())
OF_UNITS = {
    "n_units": lambda dp, **words: dp.n_units(**words),
    "n_units of x": lambda dp, **words: dp.n_units("x", **words),
}
ASKED = {
    "unit sum": lambda dp, **words: dp.sum("x", unit_bounds=(0, 50), **words),
    "variance": lambda dp, **words: dp.variance("x", bounds=(0, 100), **words),
    "std": lambda dp, **words: dp.std("x", bounds=(0, 100), **words),
    "median": lambda dp, **words: dp.median("x", bounds=(0, 100), **words),
    "quantile": lambda dp, **words: dp.quantile("x", q=[0.25, 0.75], bounds=(0, 100), **words),
    "proportion": lambda dp, **words: dp.proportion("b", **words),
    "proportion of a value": lambda dp, **words: dp.proportion("drug", value="A", **words),
    "mean": lambda dp, **words: dp.mean("x", bounds=(0, 100), missing="midpoint", **words),
    "ratio": lambda dp, **words: dp.agg(dpf.ratio("x", "z", bounds={"x": (0, 100), "z": (0, 9)}), **words),
    "ecdf": lambda dp, **words: dp.ecdf("x", bins=[0, 30, 60, 100], **words),
    "covariance": lambda dp, **words: dp.covariance(["x", "z"], bounds={"x": (0, 100), "z": (0, 9)}, **words),
    "correlation": lambda dp, **words: dp.correlation(
        ["x", "z", "u"], bounds={"x": (0, 100), "z": (0, 9), "u": (0, 200)}, **words
    ),
    "shares": lambda dp, **words: dp.histogram("x", bins=[0, 30, 60, 100], normalize=True, **words),
    "shares of a grid": lambda dp, **words: dp.histogram(
        ["x", "z"], bins=[2, 3], range=[(0, 100), (0, 9)], normalize=True, **words
    ),
    "ranges": lambda dp, **words: dp.histogram("x", bins=range(0, 101, 5), ranges=True, **words),
    "ranges of a grid": lambda dp, **words: dp.histogram(
        ["x", "z"], bins=[5, 3], range=[(0, 100), (0, 9)], ranges=True, **words
    ),
    "all": lambda dp, **words: dp.agg(
        dpf.quantile("x", q=[0.1, 0.5], bounds=(0, 100)),
        dpf.std("x", bounds=(0, 100)),
        n=dpf.count(),
        mean=dpf.mean("x", bounds=(0, 100)),
        total=dpf.sum("x", unit_bounds=(0, 50)),
        **words,
    ),
}
CHECKED = {
    "n_units": dpf.n_units(),
    "n_units of x": dpf.n_units("x"),
    "unit sum": dpf.sum("x", unit_bounds=(-3, 50)),
    "variance": dpf.variance("x", bounds=(0, 100)),
    "std": dpf.std("x", bounds=(-20, 100), ddof=0),
    "median": dpf.median("x", bounds=(0, 100)),
    "quantile": dpf.quantile("x", q=0.9, bounds=(0, 100)),
    "quantile of wide bounds": dpf.quantile("x", q=0.5, bounds=(0, 1e6)),
    "proportion": dpf.proportion("x"),
    "proportion of a value": dpf.proportion("x", value="A"),
    "mean": dpf.mean("x", bounds=(0, 100), missing="midpoint"),
    "ratio": dpf.ratio("x", "z", bounds={"x": (0, 100), "z": (0, 9)}),
    "covariance": dpf.covariance(["x", "z"], bounds={"x": (-5, 100), "z": (0, 9)}),
    "correlation": dpf.correlation(["x", "z"], bounds={"x": (0, 100), "z": (0, 9)}),
}
SIZED = (
    "variance",
    "std",
    "ecdf",
    "proportion",
    "proportion of a value",
    "mean",
    "ratio",
    "covariance",
    "correlation",
    "shares",
    "shares of a grid",
)
WITHIN = {"variance": 60.0, "std": 3.0, "ecdf": 0.2, "proportion": 0.1, "proportion of a value": 0.1, "mean": 5.0}
WITHIN |= {"covariance": 40.0, "correlation": 0.2, "shares": 0.1, "shares of a grid": 0.1}


def frame(rows=900):
    generator = np.random.default_rng(6)
    return pl.DataFrame(
        {
            "u": generator.integers(0, 200, rows),
            "g": generator.choice(["A", "B"], rows),
            "x": generator.normal(50, 20, rows),
            "b": generator.random(rows) < 0.3,
            "z": generator.uniform(2, 9, rows),
            "drug": generator.choice(["A", "B", "C"], rows),
        }
    )


def asker(given, grouped, preview=False):
    dp = given.dp.preview if preview else given.dp
    return dp.group_by("g", keys=["A", "B"]) if grouped else dp


@pytest.mark.slow
@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
@pytest.mark.parametrize("name", [*ASKED, *OF_UNITS])
def test_under_every_accounting(name, accounting, unit):
    """The charge is that of the preview, the record is valid, and every library gives the same columns."""
    if name in OF_UNITS and unit is None:
        pytest.skip("it is refused where each row is a unit")
    asked = {**ASKED, **OF_UNITS}[name]
    jsonschema = pytest.importorskip("jsonschema")
    if accounting == "rdp":
        pytest.importorskip("dp_accounting")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    words = {"max_rows": 2, "max_groups": 1} if unit else {}
    for grouped in (False, True):
        ledger = dpf.Ledger(epsilon=4.0, delta=1e-6, unit=unit, accounting=accounting)
        plan = asked(asker(frame(), grouped, preview=True), epsilon=0.5, ledger=ledger, **words)
        found = asked(asker(frame(), grouped), epsilon=0.5, ledger=ledger, **words)
        assert ledger.spent.epsilon > 0.0
        assert accounting == "rdp" or ledger.spent.epsilon == pytest.approx(plan.cost.epsilon, rel=1e-6)
        facts = found.dp.provenance
        jsonschema.validate(facts, SCHEMA)
        validator.validate(json.loads(json.dumps(facts)))
        numbers = found.select(facts["columns"]).to_numpy()
        assert np.isfinite(numbers).all()
        for kind in [frame().lazy(), *([frame().to_pandas()] if find_spec("pandas") else [])]:
            again = asked(
                asker(kind, grouped), epsilon=0.5, ledger=dpf.Ledger(epsilon=9, delta=1e-6, unit=unit), **words
            )
            assert list(again.columns) == found.columns
            assert isinstance(again, pl.DataFrame) == isinstance(kind, pl.LazyFrame)


@pytest.mark.parametrize("noise", [{}, {"delta": 1e-6}], ids=["pure", "gaussian"])
@pytest.mark.parametrize("name", ASKED)
def test_within_gives_the_smallest_price(name, noise):
    if name == "all":
        pytest.skip("its errors have different units")
    size = {"size": 500} if name in SIZED else {}
    within = 2.0 if name == "ratio" else WITHIN.get(name, 40.0)
    plan = ASKED[name](frame().dp.preview, within=within, **size, **noise)
    assert max(plan.error.values()) <= within
    epsilon = float(plan.price.epsilon)
    worse = ASKED[name](frame().dp.preview, epsilon=epsilon * 0.7, **noise)
    if not size:
        assert max(worse.error.values()) > within
    repr(plan)
    plan._repr_html_()
    plan.to_frame()


@pytest.mark.parametrize("noise", [{}, {"delta": 1e-6}], ids=["pure", "gaussian"])
def test_released_together(noise):
    """In a joint release, each statistic takes the form for the joint noise, whatever noise its preview was for."""
    plans = {name: ask(frame().dp.preview) for name, ask in ASKED.items()}
    ledger = dpf.Ledger(epsilon=5.0, accounting="basic", **({"delta": 1e-5} if noise else {}))
    joint = dpf.plan_together(plans, epsilon=2.0, ledger=ledger, **noise)
    repr(joint)
    found = dpf.release_together(plans, epsilon=2.0, ledger=ledger, **noise)
    assert sorted(found) == sorted(ASKED)
    assert {part.mechanism.p for plan in joint.plans.values() for part in plan.parts} == ({2.0} if noise else {1.0})
    tree = not noise
    assert (joint.plans["median"].parts[0].sensitivity.steps(1) == 2) == tree
    assert ledger.spent.epsilon == pytest.approx(2.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_replayed_at_no_cost(name, tmp_path):
    ledger = dpf.Ledger(epsilon=5.0, path=tmp_path / "clinic.ledger", dataset="clinic")
    words = {"epsilon": 0.5, "label": "x", "snapshot": "2026-W47", "ledger": ledger}
    once, again = (ASKED[name](asker(frame(), True), **words) for _ in range(2))
    assert once.equals(again)
    assert ledger.to_frame().height == 1
    other = ASKED["median" if name != "median" else "std"]
    with pytest.raises(dpf.LedgerError):
        other(asker(frame(), True), **words)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_charts_and_tables(name, tmp_path):
    found = ASKED[name](asker(frame(), True), epsilon=0.5, ledger=dpf.Ledger(epsilon=1.0))
    pytest.importorskip("altair")
    found.dp.plot().to_dict()
    pytest.importorskip("great_tables")
    found.dp.table().as_raw_html()
    assert found.dp.errors().height >= 1
    found.dp.write_parquet(tmp_path / "found.parquet")
    assert dpf.read_parquet(tmp_path / "found.parquet").equals(found)


@pytest.mark.parametrize("name", ASKED)
def test_other_noises(name):
    """A caller's own noise and "auto" work; shape p = 3 is refused where a row adds to several numbers."""
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-5)

    def laplace(sensitivity, loss):
        return dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid)

    ASKED[name](frame().dp, epsilon=0.5, mechanism=laplace, ledger=dpf.Ledger(epsilon=9.0))
    ASKED[name](frame().dp, epsilon=0.5, delta=1e-6, mechanism="auto", ledger=ledger)
    if name in ("median", "quantile", "ecdf", "all", "ranges", "ranges of a grid"):
        with pytest.raises(dpf.InvalidArgument):
            ASKED[name](frame().dp, epsilon=0.5, delta=1e-6, mechanism=dpf.generalized_gaussian(p=3), ledger=ledger)


@pytest.mark.slow
@pytest.mark.parametrize("pure", [True, False], ids=["pure", "gaussian"])
@pytest.mark.parametrize("name", CHECKED)
def test_the_contract_of_statistics(name, pure):
    """In either form, with either noise: no unit exceeds the stated sensitivity, and the intervals cover."""
    statistic = CHECKED[name]
    check_statistic(statistic.under(pure) if isinstance(statistic, Adapting) else statistic)
