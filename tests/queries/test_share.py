"""Shares of bins: the nearest that add up to 1, the answers of whole calls, and how often their intervals cover."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from neighbors import given_as
from scipy.optimize import minimize

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument
from dpframe.queries.quotients import nearest_shares
from dpframe.queries.statistics import Share, Total
from tests.covering import chance_of_missing

NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_nearest_shares(size):
    """They add up to 1 for any input, and equal the solution of the quadratic program by another algorithm."""
    values = np.random.default_rng(4).normal(1 / size, 0.7, (200, size))
    found = nearest_shares(values)
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(1.0)
    for noisy, shares in zip(values[:8], found, strict=False):
        best = minimize(
            lambda x, noisy=noisy: ((x - noisy) ** 2).sum(),
            np.full(size, 1 / size),
            bounds=[(0, 1)] * size,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"ftol": 1e-14},
        )
        assert shares == pytest.approx(best.x, abs=1e-4)
    assert nearest_shares(found) == pytest.approx(found)
    truth = np.random.default_rng(5).dirichlet(np.ones(size), 200)
    assert (((found - truth) ** 2).sum(axis=1) <= ((values - truth) ** 2).sum(axis=1) + 1e-12).all()


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_values_without_much_noise(library, noise):
    frame = pl.DataFrame(
        {"x": [1.0] * 300 + [5.0] * 100 + [None] * 50 + [99.0] * 50 + [1.0] * 200, "g": ["A"] * 500 + ["B"] * 200}
    )
    ledger = dpf.Ledger(epsilon=1e8, delta=1e-3, accounting="basic")
    asked = given_as(frame, library).dp.group_by("g", keys=["A", "B", "none"])
    found = asked.histogram("x", bins=[0, 2, 10], normalize=True, epsilon=1e6, ledger=ledger, **noise)
    assert list(found.columns) == ["g", "x_left", "x_right", "share", "share_noisy", "share_error"]
    for name in ("share", "share_noisy"):
        assert found[name].to_numpy() == pytest.approx([0.75, 0.25, 1.0, 0.0, 0.5, 0.5], abs=1e-3)
    assert found["share_error"].to_numpy()[4:] == pytest.approx([0.5, 0.5])
    beyond = given_as(frame, library).dp.histogram(
        "x", bins=[0, 2, 10], outside="clip", normalize=True, keep_noisy=False, epsilon=1e6, ledger=ledger, **noise
    )
    assert list(beyond.columns) == ["x_left", "x_right", "share", "share_error"]
    assert beyond["share"].to_numpy() == pytest.approx([500 / 650, 150 / 650], abs=1e-3)
    wards = given_as(frame, library).dp.histogram(
        "g", categories=["A", "B"], normalize=True, epsilon=1e6, ledger=ledger, **noise
    )
    assert wards["share"].to_numpy() == pytest.approx([5 / 7, 2 / 7], abs=1e-3)


def test_shares_of_a_grid_and_of_units():
    """With several columns, all cells of a group together add up to 1, also where units are weighted."""
    generator = np.random.default_rng(9)
    frame = pl.DataFrame(
        {"u": generator.integers(0, 20, 400), "a": generator.uniform(0, 4, 400), "b": generator.uniform(0, 9, 400)}
    )
    ledger = dpf.Ledger(epsilon=9.0, unit=dpf.PrivacyUnit("u", max_rows=2, max_groups=2))
    found = frame.dp.histogram(
        ["a", "b"], bins=[2, 3], range=[(0, 4), (0, 9)], normalize=True, epsilon=1.0, ledger=ledger
    )
    assert found["share"].sum() == pytest.approx(1.0)
    assert (found["share"].to_numpy() >= 0.0).all()
    assert found.dp.provenance["measures"]["share"]["column"] == "a, b"


def test_it_measures_what_a_histogram_measures():
    """Therefore its sensitivity and its cost are those of counts."""
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    plans = [frame.dp.preview.histogram("x", bins=[0, 2, 10], normalize=one, epsilon=0.5) for one in (False, True)]
    assert Share("x", 2).totals() == (Total(),)
    assert plans[0].cost == plans[1].cost
    assert [plan.parts[0].mechanism for plan in plans] == [plans[0].parts[0].mechanism] * 2


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("size", [3, 12, 200])
@pytest.mark.parametrize("bins", [2, 5])
def test_intervals_cover(bins, size, noise):
    """Each bin over 3,000 groups of the same values; a false alarm has a chance below 1e-6 / 42."""
    groups = 3_000
    values = np.minimum(np.arange(size) ** 2 // size, size - 1) * bins // size  # more in the first bins, some empty
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values + 0.5, groups)})
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    asked = frame.dp.group_by("g", keys=range(groups))
    found = asked.histogram("x", bins=range(bins + 1), normalize=True, epsilon=1.0, ledger=ledger, **noise)
    exact = np.tile(np.bincount(values, minlength=bins) / size, groups)
    missed = np.abs(found["share"].to_numpy() - exact) > found["share_error"].to_numpy() + 1e-12
    for each in missed.reshape(groups, bins).sum(axis=0):
        assert chance_of_missing(int(each), groups, 0.05) > 1e-6 / 42


@pytest.mark.parametrize("epsilon", [2.0, 3.7, 5.0])
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("bins", [2, 20])
def test_small_whole_noise_is_covered(bins, noise, epsilon):
    """The interval of one draw, nearly always 0, has width 0. Each bin over 1,000 groups: a false alarm below 1e-6."""
    groups, size = 1_000, 100
    values = np.arange(size) % bins
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    asked = frame.dp.group_by("g", keys=range(groups))
    found = asked.histogram("x", bins=range(bins + 1), normalize=True, epsilon=epsilon, ledger=ledger, **noise)
    missed = np.abs(found["share"].to_numpy() - 1 / bins) > found["share_error"].to_numpy() + 1e-12
    chances = chance_of_missing(missed.reshape(groups, bins).sum(axis=0), groups, 0.065)
    assert (chances > 1e-6 / (6 * 22)).all()
    plan = frame.dp.preview.histogram("x", bins=range(bins + 1), normalize=True, epsilon=epsilon, size=size, **noise)
    middle = np.median(found["share_error"].to_numpy())
    assert plan.error["share"] == pytest.approx(middle, rel=0.1)


def test_refusals():
    frame = pl.DataFrame({"x": [1.0], "ward": pl.Series(["A"], dtype=pl.Enum(["A", "B"]))})
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(MissingArgument, match="bins or categories must be given with normalize=True"):
        frame.dp.histogram("ward", normalize=True, epsilon=0.5, ledger=ledger)
    with pytest.raises(InvalidArgument, match="denoise must be left out with normalize=True, not 'haar'"):
        frame.dp.histogram("x", bins=[0, 1], normalize=True, denoise="haar", epsilon=0.5, ledger=ledger)
    with pytest.raises(InvalidType, match="normalize must be"):
        frame.dp.histogram("x", bins=[0, 1], normalize=1, epsilon=0.5, ledger=ledger)
    with pytest.raises(InvalidArgument, match="rollup"):
        frame.dp.histogram("x", bins=[0, 1], normalize=True, rollup=True, epsilon=0.5, ledger=ledger)
    with pytest.raises(MissingArgument, match="size must be given with within= for shares"):
        frame.dp.histogram("x", bins=[0, 1], normalize=True, within=0.1, ledger=ledger)
    assert not ledger.spent.epsilon
