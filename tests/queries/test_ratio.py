"""Ratios of two sums, and means in which missing values count as the middle."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, UNITS, given_as, largest_by_chance, query_of

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument
from tests.covering import chance_of_missing

BOUNDS = {"cost": (0, 50), "days": (0, 9)}
COST = dpf.ratio("cost", "days", bounds=BOUNDS)
NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]


def stays(rows=4_000):
    generator = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "cost": generator.uniform(0, 40, rows),
            "days": generator.integers(1, 9, rows).astype(float),
            "g": generator.choice(["A", "B"], rows),
        }
    )
    return frame.with_columns(cost=pl.when(pl.col("cost") > 4).then(pl.col("cost")))


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_ratios_without_much_noise(library, noise):
    frame = stays()
    given = given_as(frame, library)
    ledger = dpf.Ledger(epsilon=1e8, delta=1e-3, accounting="basic")
    found = given.dp.group_by("g", keys=["A", "B"]).agg(COST, epsilon=1e6, ledger=ledger, **noise)
    assert list(found.columns)[1:] == [f"cost_per_days{end}" for end in ("", "_error", "_low", "_high")]
    for place, group in enumerate("AB"):
        rows = frame.filter(g=group)
        assert found["cost_per_days"].to_numpy()[place] == pytest.approx(
            rows["cost"].sum() / rows["days"].sum(), abs=1e-3
        )


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("size", [2, 20, 200])
def test_intervals_cover(size, noise):
    """Over 3,000 groups of the same values; a false alarm has a chance below 1e-6 / 6."""
    groups = 3_000
    cost, days = np.resize([10.0, 30.0], size), np.resize([2.0, 6.0], size)
    frame = pl.DataFrame(
        {"g": np.repeat(np.arange(groups), size), "cost": np.tile(cost, groups), "days": np.tile(days, groups)}
    )
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    found = frame.dp.group_by("g", keys=range(groups)).agg(COST, epsilon=1.0, ledger=ledger, **noise)
    low, high = (found[f"cost_per_days{end}"].to_numpy() for end in ("_low", "_high"))
    missed = (low > cost.sum() / days.sum()) | (high < cost.sum() / days.sum())
    assert chance_of_missing(int(missed.sum()), groups, 0.05) > 1e-6 / 6


def test_a_divisor_of_unknown_sign_has_no_bounded_interval(tmp_path):
    frame = stays(4)
    asked = (frame.dp.agg(COST, n=dpf.count(), epsilon=0.01, ledger=dpf.Ledger(epsilon=1)) for _ in range(6))
    # one time in twenty, the noisy divisor is still far from zero: in all six with a chance of one in 6e7
    found = next(result for result in asked if result["cost_per_days_error"].item() == np.inf)
    assert (found["cost_per_days_low"].item(), found["cost_per_days_high"].item()) == (
        0.0,
        np.inf,
    )  # neither sum can be negative
    found.dp.write_parquet(tmp_path / "found.parquet")
    assert dpf.read_parquet(tmp_path / "found.parquet").equals(found)
    pytest.importorskip("altair")
    json.dumps(found.dp.plot().to_dict(), allow_nan=False)
    assert repr(frame.dp.preview.agg(COST, epsilon=0.01, size=5))


def test_an_interval_reaches_below_0_where_either_sum_may():
    frame = pl.DataFrame({"cost": [30.0] * 100, "days": [-3.0] * 100})
    bounds = {"cost": (0, 50), "days": (-9, 0)}
    for of, by, truth in (("cost", "days", -10.0), ("days", "cost", -0.1)):
        found = frame.dp.agg(r=dpf.ratio(of, by, bounds=bounds), epsilon=1e6, ledger=dpf.Ledger(epsilon=1e8))
        low, high = found["r_low"].item(), found["r_high"].item()
        room = 10 * (high - low)  # beyond it, noise has a chance below 10^-20
        assert low < high < 0.0
        assert low - room <= truth <= high + room


def test_refusals():
    with pytest.raises(MissingArgument, match="bounds must be given for both"):
        dpf.ratio("cost", "days")
    with pytest.raises(InvalidArgument, match="both columns and no other"):
        dpf.ratio("cost", "days", bounds={"cost": (0, 1)})
    with pytest.raises(InvalidType, match="dict of pairs"):
        dpf.ratio("cost", "days", bounds=(0, 1))
    with pytest.raises(InvalidArgument, match="another column"):
        dpf.ratio("cost", "cost", bounds=BOUNDS)
    with pytest.raises(InvalidArgument, match="missing must be 'drop' or 'midpoint'"):
        dpf.mean("cost", bounds=(0, 1), missing="zero")


# Means in which missing values count as the middle


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbor_is_farther_than_the_sensitivity(unit):
    for p in (1, 2):
        query = query_of(dpf.mean("x", bounds=(-3.0, 4.0), missing="midpoint"), BY_GROUP, p == 1)
        assert largest_by_chance(query, unit, p, tries=15) <= 1 + 1e-15


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_missing_values_count_as_the_middle(noise):
    frame = stays()
    ledger = dpf.Ledger(epsilon=1e8, delta=1e-3, accounting="basic")
    found = frame.dp.mean("cost", bounds=(0, 50), missing="midpoint", epsilon=1e6, ledger=ledger, **noise)
    assert found["cost_mean"].item() == pytest.approx(frame["cost"].fill_null(25.0).mean(), abs=1e-3)
    assert found.dp.provenance["measures"]["cost_mean"]["missing"] == "midpoint"


def test_it_shares_the_count_of_rows():
    asked = stays().dp.preview
    words = {"bounds": (0, 50), "missing": "midpoint"}
    for price, of_shared, of_own in (({"epsilon": 1.0}, 2, 3), ({"epsilon": 1.0, "delta": 1e-6}, 3, 5)):
        shared = asked.agg(n=dpf.count(), m=dpf.mean("cost", **words), k=dpf.mean("days", **words), **price)
        assert len(shared.parts) == of_shared
        means = {"m": dpf.mean("cost", bounds=(0, 50)), "k": dpf.mean("days", bounds=(0, 50))}
        assert len(asked.agg(n=dpf.count(), **means, **price).parts) == of_own


def test_no_error_is_nothing_on_the_smallest_bounds():
    least = 2.0**-400
    frame = pl.DataFrame({"a": [0.0] * 100, "b": [0.0] * 100})
    bounds = {"a": (0, least), "b": (0, least)}
    found = frame.dp.agg(dpf.ratio("a", "b", bounds=bounds), epsilon=0.01, ledger=dpf.Ledger(epsilon=9))
    assert found["a_per_b_error"].item() > 0
    assert found["a_per_b_low"].item() < found["a_per_b_high"].item()
    assert frame.dp.preview.std("a", bounds=(0, least), size=100, epsilon=0.01).error["a_std"] > 0
    with pytest.raises(dpf.InvalidArgument, match=r"reach beyond 2\*\*-400"):
        dpf.std("a", bounds=(0, least / 2))
