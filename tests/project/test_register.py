"""The attack register by number (``docs/assurance/security.md``): attacks on other libraries, tried on every engine.

A statistical test has a false alarm with a chance below 1e-8. The register lists attacks that other files try as well.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import random
import re
import traceback
import warnings
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest
from forked import drawn_in_a_child

import dpframe as dpf
from assurance.bugs import MUTANTS
from assurance.fuzz_frames import asked, exact, public_parts
from dpframe import noise
from dpframe.engines.sums import row_totals
from dpframe.engines.sums.cells import added
from dpframe.noise import random_bits, samplers
from dpframe.planning.sensitivity import sensitivity_of

EXACT = 1e9  # an epsilon whose noise is negligible
CELLS = 20_000
EDGES = range(CELLS + 1)
SIX = 6.0  # standard deviations: exceeded with a chance of 2e-9
NOISES: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 0.5},
    "gaussian": {"epsilon": 0.5, "delta": 1e-6},
    "shape 3": {"epsilon": 0.5, "delta": 1e-6, "mechanism": dpf.generalized_gaussian(p=3)},
}


def paid(epsilon: Any = EXACT, unit: dpf.PrivacyUnit | None = None, **more: Any) -> dict[str, Any]:
    """Return the arguments of a release at this epsilon, with a new ledger whose budget covers it once."""
    delta = more.get("delta", 0)
    ledger = dpf.Ledger(epsilon=epsilon, delta=delta, unit=unit, accounting="basic")
    return {"epsilon": epsilon, "denoise": None, "ledger": ledger, **more}


def one(frame: Any, ask: Any, unit: dpf.PrivacyUnit = dpf.PrivacyUnit(), p: float = 1.0) -> list[int]:  # noqa: B008
    """The exact totals of a call with one statistic, in grid steps."""
    return next(iter(exact(frame, ask, unit, p).values()))


def values(result: Any, name: str) -> Any:
    return np.array(result[name].to_list(), dtype=np.float64)


def texts(frame: Any, column: str) -> Any:
    """Return the frame with a text dtype for the column: strings have another dtype in some versions of pandas."""
    return frame.astype({column: "string"}) if hasattr(frame, "astype") else frame


# NUM: the numbers themselves (1-14)


@pytest.mark.slow
@pytest.mark.parametrize("law", NOISES)
def test_01_to_05_numbers_lie_on_a_grid_that_is_public(engine, law):
    """Whatever the rows hold, each raw number is a multiple of the stated power of two, or the float nearest to it."""
    for column in ([0.1] * 9 + [math.pi], [1e-300, 0.3, 5e-324] * 3, [7.0]):
        frame = engine({"x": column})
        for _ in range(20):
            found = frame.dp.sum("x", bounds=(0, 10), **paid(**NOISES[law]))
            grid = found.dp.provenance["statistics"][0]["grid"]
            steps = values(found, "x_sum") / grid
            assert math.frexp(grid)[0] == 0.5
            assert float(steps[0]).is_integer()
            assert steps[0] * grid == values(found, "x_sum")[0]


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_02_to_04_noise_has_the_law_that_is_stated(engine, law):
    """20,000 cells have the stated variance, balanced signs and independent noise."""
    found = engine({"x": [0.5, 1.5]}).dp.histogram("x", bins=EDGES, **paid(**NOISES[law]))
    drawn = values(found, "count")[2:]
    variance = found.dp.provenance["statistics"][0]["variance"]
    kurtosis = 6.0 if law == "laplace" else 3.0
    near = SIX * math.sqrt((kurtosis - 1) / drawn.size)
    assert drawn.var() == pytest.approx(variance, rel=near)
    assert abs(drawn.mean()) < SIX * math.sqrt(variance / drawn.size)
    neighbors = np.mean(drawn[1:] * drawn[:-1]) / variance
    assert abs(neighbors) < SIX / math.sqrt(drawn.size)
    assert np.unique(drawn).size > 10


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_02_and_03_the_last_bits_of_large_noise_are_even(p):
    """At a scale of 2**40 steps, the lowest 8 bits of noise are nearly uniform: floating point leaves no pattern."""
    draw = (
        noise.discrete_laplace if p == 1.0 else lambda scale, size: noise.rounded_generalized_gaussian(p, scale, size)
    )
    found = np.bincount(draw(2.0**40, CELLS) & 255, minlength=256)
    expected = CELLS / 256
    surplus = ((found - expected) ** 2 / expected).sum() - 255
    assert abs(surplus) < 8 * math.sqrt(2 * 255)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_02_to_04_tails_are_not_cut(p, monkeypatch):
    """Far draws are as likely as the law says; the table of the sampler is cut, so that draws often lie beyond it."""
    monkeypatch.setattr(samplers, "REACH", 0.5)
    samplers.table_of.cache_clear()
    draw = (
        noise.discrete_laplace if p == 1.0 else lambda scale, size: noise.rounded_generalized_gaussian(p, scale, size)
    )
    try:
        drawn = np.abs(draw(1000.0, 3_000)) / 1000.0
    finally:
        samplers.table_of.cache_clear()
    beyond = 2.0 if p == 1.0 else 1.5
    expected = math.exp(-beyond) if p == 1.0 else math.erfc(beyond)
    assert np.mean(drawn > beyond) == pytest.approx(expected, abs=SIX * math.sqrt(expected / 3_000))


def test_02_to_04_what_double_precision_leaves_open_is_decided_exactly():
    """The approximate chance is one half and the exact one 0: more bits must decide."""
    nothing = mpmath.mpf(0), mpmath.mpf(0)
    assert not random_bits.accepted(np.full(100, 0.5), 1.0, lambda place: iter([nothing])).any()
    assert random_bits.accepted(np.full(100, 0.5), 2.0**-60, lambda place: iter([nothing])).any()  # float suffices


@pytest.mark.parametrize("denoiser", ["auto", "empirical-bayes", "soft-threshold", "james-stein", "nonnegative"])
def test_06_denoised_numbers_are_a_function_of_the_released_ones(engine, denoiser):
    frame = engine({"x": [0.5] * 60 + [1.5] * 7})
    found = frame.dp.histogram("x", bins=range(33), **paid(epsilon=0.5) | {"denoise": denoiser})
    mechanism = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5)
    function = getattr(dpf.denoise, denoiser.replace("-", "_"))
    options = {"auto": {"nonnegative": True, "order": True}, "empirical-bayes": {"nonnegative": True}}
    again = function(values(found, "count_noisy"), mechanism, **options.get(denoiser, {}))
    assert values(found, "count").tobytes() == np.asarray(again).tobytes()


@pytest.mark.parametrize("epsilon", [1e308, 1e300, 1e12])
def test_07_a_scale_that_underflows_costs_what_it_says(engine, epsilon):
    price = paid(epsilon=epsilon)
    found = engine({"x": [1, 2]}).dp.count(**price)
    assert values(found, "count") == [2]
    assert price["ledger"].spent.epsilon == epsilon


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20])
def test_08_a_scale_that_overflows_is_refused_before_any_charge(engine, epsilon):
    price = paid(epsilon=epsilon)
    with pytest.raises(dpf.InvalidArgument, match="64-bit"):
        engine({"x": [1.0]}).dp.sum("x", bounds=(0, 1), **price)
    assert price["ledger"].spent.epsilon == 0


def test_09_the_largest_noise_wraps_and_never_fails(engine):
    frame = engine({"x": [2.0**53, -(2.0**53)] * 4})
    for epsilon in (3e-7, 1e-6):
        found = frame.dp.sum("x", bounds=(-(2**53), 2**53), **paid(epsilon=epsilon))
        assert np.isfinite(values(found, "x_sum")).all()


def test_10_both_zeros_are_one_number_and_none_comes_out(engine):
    both = [engine({"x": [zero, zero, 1.0]}) for zero in (0.0, -0.0)]
    for ask in (
        lambda dp: dp.sum("x", bounds=(-1, 1)),
        lambda dp: dp.histogram("x", bins=[-1, 0, 1]),
        lambda dp: dp.group_by("x", keys=[0, 1]).count(),
    ):
        assert exact(both[0], ask) == exact(both[1], ask)
    assert one(both[0], lambda dp: dp.count(), dpf.PrivacyUnit("x", max_rows=1)) == one(
        both[1], lambda dp: dp.count(), dpf.PrivacyUnit("x", max_rows=1)
    )
    drawn = values(both[1].dp.histogram("x", bins=range(2_000), **paid(epsilon=1)), "count")
    assert not np.signbit(drawn[drawn == 0]).any()
    moved = both[1].dp.histogram("x", bins=range(2_000), **paid(epsilon=1) | {"denoise": "soft-threshold"})
    shrunk = values(moved, "count")
    assert not np.signbit(shrunk[shrunk == 0]).any()


def test_11_and_27_nothing_is_cut_at_zero_or_at_the_bounds(engine):
    """A sum without rows falls on both sides of 0, also beyond any possible sum."""
    frame = engine({"x": [0.0], "g": [-1]})
    found = values(frame.dp.group_by("g", keys=range(2_000)).sum("x", bounds=(0, 1), **paid(epsilon=0.5)), "x_sum")
    assert 800 < (found < 0).sum() < 1_200
    assert (found > 1).any()


def test_12_gaussian_noise_is_right_beyond_epsilon_one(engine):
    found = engine({"x": [1]}).dp.count(**paid(epsilon=5, delta=1e-6))
    assert found.dp.provenance["statistics"][0]["scale"] >= dpf.analytic_gaussian_sigma(5, 1e-6)
    with pytest.raises(dpf.InvalidArgument, match="epsilon"):
        dpf.classical_gaussian_sigma(5, 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1 / 3, 1e-5, 3.7])
def test_14_scales_are_not_rounded_below_what_was_paid(engine, epsilon):
    found = engine({"x": [1]}).dp.sum("x", bounds=(0, 7.3), **paid(epsilon=epsilon))
    facts = found.dp.provenance["statistics"][0]
    steps = Fraction(facts["scale"]) / Fraction(facts["grid"])
    reach = Fraction(facts["sensitivity"]) / Fraction(facts["grid"])
    assert steps * Fraction(repr(epsilon)) >= reach


# SENS: the sensitivity to one unit (15-30)


@pytest.mark.parametrize("kind", ["int64", "int32", "int8", "uint8", "uint64", "int16"])
def test_15_to_17_narrow_integers_do_not_wrap(engine, kind):
    most, rows = int(np.iinfo(kind).max), 3_000
    bound = min(most, 2**53)
    columns = {"x": np.full(rows, most, dtype=kind)}
    total = dpf.sum("x", bounds=(0, bound))
    found = exact(engine(columns), lambda dp: dp.agg(s=total, n=dpf.count("x")))
    counts = [found[s] for s in found if getattr(s, "bounds", None) is None]
    sums = [Fraction(found[s][0]) * Fraction(s.norm(weighted=False).grid) for s in found if s.values]
    assert counts == [[rows]]
    assert abs(sums[0] - rows * bound) <= rows * Fraction(next(s.norm(weighted=False).grid for s in found if s.values))


def test_15_counts_do_not_wrap_either(engine):
    frame = engine({"x": np.zeros(70_000), "g": np.zeros(70_000, dtype=np.int64)})
    for ask in (
        lambda dp: dp.count(),
        lambda dp: dp.histogram("x", bins=[0, 1]),
        lambda dp: dp.group_by("g", keys=[0]).count("x"),
    ):
        assert one(frame, ask) == [70_000]


def test_09_and_15_totals_are_added_modulo_2_64():
    found = added(np.array([2**62, 2**62, 3, 2**53, 1]), np.array([0, 0, 0, 1, 1]), 3)
    assert found.tolist() == [-(2**63) + 3, 2**53 + 1, 0]


def test_18_values_are_read_in_double_precision(engine):
    third = 1 / 3
    assert one(engine({"x": [third]}), lambda dp: dp.sum("x", bounds=(0, 1))) == [round(third * 2**30)]
    assert one(engine({"x": [2**24 + 1]}), lambda dp: dp.sum("x", bounds=(0, 2**25))) == [(2**24 + 1) * 2**5]
    assert one(engine({"x": [2**24 + 1]}), lambda dp: dp.histogram("x", bins=[0, 2**24 + 1, 2**25])) == [0, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_18_to_20_sums_do_not_depend_on_order_and_round_each_row_once(engine, dtype):
    """A large value hides small ones, in any order; 10,000 equal rows sum to 10,000 times one row."""
    column = np.array([1e9, *[0.1] * 505, -1e9, *[0.3] * 500], dtype=dtype)  # these sum to 200.5

    def ask(dp):
        return dp.sum("x", bounds=(-(10**9), 10**9))

    first = one(engine({"x": column}), ask)
    for order in range(5):
        assert one(engine({"x": np.random.default_rng(order).permutation(column)}), ask) == first
    single = one(engine({"x": np.array([0.1], dtype=dtype)}), lambda dp: dp.sum("x", bounds=(0, 1)))
    many = one(engine({"x": np.full(10_000, 0.1, dtype=dtype)}), lambda dp: dp.sum("x", bounds=(0, 1)))
    assert many == [10_000 * single[0]]


def test_21_chunks_and_threads_do_not_matter(engine, monkeypatch):
    monkeypatch.setattr(row_totals, "BLOCK", 2**16)
    rows = 100_000  # enough for the streaming engine, and for blocks of two threads
    column = np.random.default_rng(0).normal(size=rows)
    whole = engine({"x": column, "u": np.arange(rows) % 7_000, "g": np.arange(rows) % 3})
    if engine.is_pandas:
        pandas = pytest.importorskip("pandas")
        cut = pandas.concat([whole[:17], whole[17:40_000], whole[40_000:]])
    else:
        parts = [whole.lazy()[:17], whole.lazy()[17:40_000], whole.lazy()[40_000:]]
        cut = pl.concat([part.collect() for part in parts], rechunk=False)
        cut = cut.lazy() if engine.name == "lazy" else cut
    summed = [*np.floor(np.clip(column, -1, 1) * 2**30 + 0.5).astype(np.int64)]
    assert one(whole, lambda dp: dp.group_by("g", keys=range(3)).sum("x", bounds=(-1, 1))) == [
        sum(map(int, summed[group::3])) for group in range(3)
    ]
    for unit in (dpf.PrivacyUnit(), dpf.PrivacyUnit("u", max_rows=2)):
        for ask in (
            lambda dp: dp.mean("x", bounds=(-1, 1)),
            lambda dp: dp.group_by("g", keys=range(3)).mean("x", bounds=(-1, 1)),
            lambda dp: dp.histogram("x", bins=[-1, 0, 1]),
        ):
            assert exact(cut, ask, unit) == exact(whole, ask, unit)


def test_22_integers_beyond_2_53_are_told_apart_and_clip(engine):
    frame = engine({"x": [2**53, 2**53 + 1, -(2**53) - 1]})
    assert one(frame, lambda dp: dp.group_by("x", keys=[2**53 + 1, 2**53]).count()) == [1, 1]
    assert one(frame, lambda dp: dp.sum("x", bounds=(-(2**53), 2**53))) == [2**30]
    assert one(frame, lambda dp: dp.count(), dpf.PrivacyUnit("x", max_rows=1)) == [3 * 2**20]


def test_23_decimals_are_exact(engine):
    frame = engine({"x": [Decimal("0.10"), Decimal("0.25"), None, Decimal("2.50")]})
    assert one(frame, lambda dp: dp.group_by("x", keys=[Decimal("0.1"), Decimal("2.5"), None]).count()) == [1, 1, 1]
    steps = one(frame, lambda dp: dp.sum("x", bounds=(0, 1)))
    assert steps == [round(0.1 * 2**30) + 2**28 + 2**30]


def test_24_times_fall_in_the_bins_of_their_exact_ticks(engine):
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 1, 23, 59, 59, 999999), datetime(2024, 1, 2), None]
    spans = [timedelta(0), timedelta(microseconds=1), timedelta(hours=1), None]
    frame = engine({"t": moments, "d": spans})
    assert one(frame, lambda dp: dp.histogram("t", bins=[date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)])) == [
        2,
        1,
    ]
    assert one(frame, lambda dp: dp.histogram("d", bins=[timedelta(0), timedelta(microseconds=1), timedelta(1)])) == [
        1,
        2,
    ]


def test_25_bools_are_summed_as_numbers(engine):
    frame = engine({"x": [True, False, True, True]})
    assert one(frame, lambda dp: dp.sum("x", bounds=(0, 2))) == [3 * 2**29]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_26_a_mean_is_not_taken_over_the_exact_count(engine, law):
    """With 7 rows in each group, seven times a mean lies on the grid only if the noisy count is 7 as well."""
    groups = np.repeat(np.arange(1_000), 7)
    frame = engine({"x": np.full(7_000, 0.5), "g": groups})
    found = frame.dp.group_by("g", keys=range(1_000)).mean("x", bounds=(0, 1), **paid(**NOISES[law]))
    grid = found.dp.provenance["statistics"][0]["grid"]
    offset = (values(found, "x_mean") - 0.5) * 7 / grid
    whole = np.abs(offset - np.rint(offset)) < 1e-6
    inside = np.abs(values(found, "x_mean") - 0.5) < 0.5
    assert inside.sum() > 300
    assert (whole & inside).sum() < 0.7 * inside.sum()  # with the exact count it would be all of them
    counts = frame.dp.group_by("g", keys=range(1_000)).agg(
        n=dpf.count("x"), m=dpf.mean("x", bounds=(0, 1)), **paid(epsilon=2)
    )
    variance = counts.dp.provenance["statistics"][0]["variance"]
    assert values(counts, "n").var() == pytest.approx(2 * variance, rel=0.5)  # the sum of two draws


@pytest.mark.parametrize(("law", "reach"), [("laplace", 2.0), ("gaussian", math.sqrt(2))])
def test_28_a_histogram_under_replace_moves_two_cells(engine, law, reach):
    unit = dpf.PrivacyUnit(neighbors="replace")
    frame = engine({"x": [0.5, 1.5]})
    found = frame.dp.histogram("x", bins=[0, 1, 2], **paid(unit=unit, **NOISES[law]))
    assert found.dp.provenance["unit"]["neighbors"] == "replace"
    assert reach <= found.dp.provenance["statistics"][0]["sensitivity"] <= reach * (1 + 1e-12)


def test_29_asking_again_is_charged_again_and_parts_share_the_price(engine):
    frame, ledger = engine({"x": [1.0, 2.0]}), dpf.Ledger(epsilon=1)
    for times in (1, 2):
        frame.dp.count(epsilon=0.25, ledger=ledger)
        assert ledger.spent.epsilon == 0.25 * times
    parts = {"n": dpf.count("x"), "m": dpf.mean("x", bounds=(0, 1)), "s": dpf.sum("x", bounds=(0, 1))}
    for delta in ({}, {"delta": 1e-6}):
        totals = frame.dp.agg(parts, **paid(epsilon=0.5, **delta)).dp.provenance["statistics"]
        assert len(totals) == (3 if delta else 2)  # under pure noise, the count is part of the mean
        losses = [fact["sensitivity"] / fact["scale"] for fact in totals]
        if delta:
            assert sum(loss**2 for loss in losses) <= (1 / dpf.analytic_gaussian_sigma(0.5, 1e-6)) ** 2 * (1 + 1e-12)
        else:
            assert sum(losses) <= 0.5 * (1 + 1e-12)


def test_29_parts_of_a_call_under_gdp_share_mu_squared(engine):
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    parts = {"n": dpf.count("x"), "m": dpf.mean("x", bounds=(0, 1)), "s": dpf.sum("x", bounds=(0, 1))}
    facts = engine({"x": [1.0]}).dp.agg(parts, epsilon=0.5, ledger=ledger).dp.provenance["statistics"]
    whole = (1 / dpf.analytic_gaussian_sigma(0.5, 1e-6)) ** 2
    assert sum((fact["sensitivity"] / fact["scale"]) ** 2 for fact in facts) <= whole * (1 + 1e-12)
    assert ledger._store.last().total[0] <= Fraction(whole * (1 + 1e-12))


@pytest.mark.parametrize(
    "bounds", [(0, 0.1), (0, 0.7), (-0.1, 7.3), (-0.7, 0.3), (1e-3, 1e3), (-5, -math.pi), (2.0**52, 2.0**53)]
)
def test_30_the_bounds_that_are_applied_are_those_that_are_charged_for(engine, bounds):
    query = asked(lambda dp: dp.sum("x", bounds=bounds))
    reach = sensitivity_of(query.totals[0], dpf.PrivacyUnit(), 1).steps(1)
    ends = [one(engine({"x": [end]}), lambda dp: dp.sum("x", bounds=bounds))[0] for end in (math.inf, -math.inf)]
    assert max(map(abs, ends)) == reach
    stated = engine({"x": [1.0]}).dp.sum("x", bounds=bounds, **paid(1.0)).dp.provenance["statistics"][0]
    assert stated["sensitivity"] == reach * stated["grid"]


# SPEC: special values and frames (31-44)

SPECIAL = {"NaN": math.nan, "null": None, "+inf": math.inf, "-inf": -math.inf}
WITH_SPECIAL = {"NaN": (0, 0), "null": (0, 0), "+inf": (1, 10), "-inf": (1, -5)}  # added to count and sum


@pytest.mark.parametrize("special", SPECIAL)
def test_31_to_34_and_39_special_values_follow_one_rule(engine, special):
    frame = engine({"x": [1.0, SPECIAL[special]], "g": [0, 1]}, x=pl.Float64)
    present, part = WITH_SPECIAL[special]
    assert one(frame, lambda dp: dp.count("x")) == [1 + present]
    assert one(frame, lambda dp: dp.count()) == [2]
    query = asked(lambda dp: dp.sum("x", bounds=(-5, 10)))
    step = 1 / query.totals[0].norm(weighted=False).grid
    assert one(frame, lambda dp: dp.sum("x", bounds=(-5, 10))) == [(1 + part) * step]
    assert one(frame, lambda dp: dp.group_by("x", keys=[1.0, None]).count()) == [1, 1 - present]
    assert one(frame, lambda dp: dp.histogram("x", bins=[0, 2, 4], outside="clip"))[0] == 1 + (special == "-inf")


@pytest.mark.parametrize(
    "bounds", [(math.nan, 1), (0, math.nan), (2, 1), (0, math.inf), (-math.inf, 0), (1, 1), (0, 10**400)]
)
def test_35_to_38_bounds_are_refused_before_any_charge(engine, bounds):
    ledger = dpf.Ledger(epsilon=1)
    for verb in ("sum", "mean"):
        with pytest.raises(dpf.InvalidArgument, match="bounds must be"):
            getattr(engine({"x": [1.0]}).dp, verb)("x", bounds=bounds, epsilon=0.1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_43_objects_are_not_looked_into_before_the_charge(engine):
    if not engine.is_pandas:
        pytest.skip("only pandas has columns of objects")
    ledger = dpf.Ledger(epsilon=1)
    odd = engine({"x": np.array([1, "secret", [2], None], dtype=object)})
    found = odd.dp.sum("x", bounds=(0, 1), epsilon=1, ledger=ledger)
    assert np.isfinite(values(found, "x_sum")).all()
    assert ledger.spent.epsilon == 1


def test_44_a_value_outside_the_declared_levels_is_in_no_cell(engine):
    if engine.is_pandas:
        pandas = pytest.importorskip("pandas")
        frame = engine({"x": pandas.Categorical(["A", "B", "Z"])})
    else:
        frame = engine({"x": ["A", "B", "C", None]}, x=pl.Enum(["A", "B", "C", "D"]))
        assert one(frame, lambda dp: dp.group_by("x").count()) == [1, 1, 1, 0]
        with pytest.raises(dpf.InvalidArgument, match="must convert exactly"):
            frame.dp.group_by("x", keys=["Z"]).count(**paid())
    assert one(frame, lambda dp: dp.histogram("x", categories=["B", "A"])) == [1, 1]


# KEY: which rows a result has (45-54)


def test_45_46_and_49_rows_are_the_declared_keys_in_their_order(engine):
    """An undeclared rare key does not appear, a declared key without rows does, and the order of the data is lost."""
    keys = ["C", "empty", "A"]
    orders = (["A", "A", "C", "rare"], ["rare", "C", "A", "A"], ["C"], [])
    for column in orders:
        frame = engine({"g": column}, g=pl.String)
        frame = frame.astype(object) if engine.is_pandas else frame
        for found in (
            frame.dp.group_by("g", keys=keys).count(**paid(epsilon=1)),
            frame.dp.histogram("g", categories=keys, **paid(epsilon=1)),
        ):
            assert found["g"].to_list() == keys
            assert len(found) == 3


def test_46_and_47_empty_cells_have_noise_of_their_own(engine):
    drawn = [
        values(engine({"x": column}).dp.histogram("x", bins=range(400), **paid(epsilon=0.5)), "count")
        for column in ([], [0.5] * 50)
    ]
    for found in drawn:
        empty = found[1:]
        assert np.unique(empty).size > 5
        assert (empty != 0).mean() > 0.5
        assert not np.array_equal(empty[:199], empty[199:398])


def test_48_missing_keys_have_a_row_only_where_it_is_asked_for(engine):
    for column in (["A", None, None], ["A", "B"]):
        frame = engine({"g": column}, g=pl.String)
        assert one(frame, lambda dp: dp.group_by("g", keys=["A"]).count()) == [1]
        asked_for = frame.dp.group_by("g", keys=["A", None]).count(**paid())
        assert len(asked_for) == 2
        assert values(asked_for, "count")[1] == pytest.approx(column.count(None), abs=1e-3)


def test_50_levels_of_the_data_are_not_kept(engine):
    if engine.is_pandas:
        pandas = pytest.importorskip("pandas")
        frame = engine({"g": pandas.Categorical(["A", "secret"])})
    else:
        frame = engine({"g": ["A", "secret"]}, g=pl.Categorical)
    found = frame.dp.group_by("g", keys=["A", "B"]).count(**paid())
    assert "cat" not in str(found["g"].dtype).lower()
    assert "secret" not in repr(found) + repr(found.dp.provenance)
    with pytest.raises(dpf.MissingArgument, match="keys must be given"):
        frame.dp.group_by("g").count(**paid())


def test_51_and_52_bins_and_ranges_are_not_taken_from_data(engine):
    frame, ledger = engine({"x": [1.0, 99.0], "g": ["A", "B"]}), dpf.Ledger(epsilon=1)
    wrong: list[Any] = [
        lambda: frame.dp.histogram("x", epsilon=1, ledger=ledger),
        lambda: frame.dp.histogram("x", bins=10, epsilon=1, ledger=ledger),
        lambda: frame.dp.histogram("g", epsilon=1, ledger=ledger),
        lambda: frame.dp.sum("x", epsilon=1, ledger=ledger),
        lambda: frame.dp.mean("x", epsilon=1, ledger=ledger),
        lambda: frame.dp.group_by("g").count(epsilon=1, ledger=ledger),
    ]
    for call in wrong:
        with pytest.raises(dpf.MissingArgument):
            call()
    with pytest.raises(dpf.InvalidType, match="numbers that you wrote down, not a Series of them"):
        frame.dp.histogram("x", bins=pl.Series([1.0, 99.0]), epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("keys", [["A", "A"], [1, 1.0], [None, "A", None], [True, 1]])
def test_53_keys_are_declared_once(engine, keys):
    with pytest.raises(dpf.InvalidArgument, match="distinct"):
        engine({"g": ["A"]}).dp.group_by("g", keys=keys).count(**paid())


def test_54_keys_of_another_kind_match_nothing(engine):
    frame, ledger = texts(engine({"n": [1, 2], "t": ["1", "2"]}), "t"), dpf.Ledger(epsilon=1)
    for column, keys in (("n", ["1"]), ("t", [1])):
        with pytest.raises(dpf.WrongDtype):
            frame.dp.group_by(column, keys=keys).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
    if engine.is_pandas:
        mixed = engine({"o": np.array([1, "1", 1.0], dtype=object)})
        assert one(mixed, lambda dp: dp.group_by("o", keys=[1]).count()) == [2]
        assert one(mixed, lambda dp: dp.group_by("o", keys=["1"]).count()) == [1]


# USER: people with several rows (55-63)

PERSON = dpf.PrivacyUnit("u", max_rows=2, max_groups=2)


def crowd(engine: Any, groups: list[Any], user: int = 1) -> Any:
    """Return a frame with one person in many rows, and another person in one."""
    return engine({"u": [user] * len(groups) + [2], "g": [*groups, "A"], "x": [9.0] * len(groups) + [1.0]})


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("groups", [["A"] * 1_000, ["A", "B", "C", "D"] * 5, ["A"] * 9 + ["B"], ["A", "B"] * 2])
def test_55_61_and_63_one_person_reaches_no_farther_than_charged_for(engine, groups, p):
    def ask(dp):
        return dp.group_by("g", keys=["A", "B", "C", "D"]).agg(n=dpf.count(), s=dpf.sum("x", bounds=(0, 4)))

    with_them, without = crowd(engine, groups), engine({"u": [2], "g": ["A"], "x": [1.0]})
    first, second = (exact(frame, ask, PERSON, p) for frame in (with_them, without))
    for total in first:
        moved = [abs(a - b) ** p for a, b in zip(first[total], second[total], strict=True)]
        assert sum(moved) ** (1 / p) <= sensitivity_of(total, PERSON, 4).steps(p)


@pytest.mark.parametrize(("law", "p"), [("laplace", 1), ("gaussian", 2)])
def test_63_noise_covers_all_groups_of_a_person_in_its_own_norm(engine, law, p):
    frame = crowd(engine, ["A", "B"])
    found = frame.dp.group_by("g", keys=["A", "B", "C", "D"]).count(**paid(unit=PERSON, **NOISES[law]))
    fact = found.dp.provenance["statistics"][0]
    reach = 2 * 2 ** (1 / p)  # two rows in each of two groups
    assert fact["sensitivity"] >= reach * (1 - 1e-12)
    unit_scale = 2.0 if p == 1 else dpf.analytic_gaussian_sigma(0.5, 1e-6)
    assert fact["scale"] >= reach * unit_scale * (1 - 1e-12)


def test_56_and_57_bounds_apply_to_what_is_counted(engine):
    """Rows outside the declared keys or bins use none of a person's weight: bounding comes last."""
    once = dpf.PrivacyUnit("u", max_rows=1)
    frame = engine({"u": [1] * 6, "g": ["A", *["elsewhere"] * 5], "x": [1.0, *[50.0] * 5]})
    assert one(frame, lambda dp: dp.group_by("g", keys=["A", "B"]).count(), once) == [2**20, 0]
    assert one(frame, lambda dp: dp.histogram("x", bins=[0, 2, 4]), once) == [2**20, 0]
    crowded = engine({"u": [1] * 6, "g": ["A"] * 6, "x": [1.0] * 6})
    for ask in (lambda dp: dp.group_by("g", keys=["A", "B"]).count(), lambda dp: dp.histogram("x", bins=[0, 2, 4])):
        for p in (1.0, 2.0):
            assert sum(one(crowded, ask, once, p)) <= 2**20


@pytest.mark.parametrize(("nulls", "people"), [("drop", 1), ("one-unit", 2)])
def test_58_rows_without_a_person_follow_the_stated_rule(engine, nulls, people):
    frame = engine({"u": [1, None, None, None]}, u=pl.Int64)
    unit = dpf.PrivacyUnit("u", nulls=nulls, max_rows=1)
    steps = one(frame, lambda dp: dp.count(), unit)[0]
    assert people * 2**20 - 2 <= steps <= people * 2**20
    assert frame.dp.count(**paid(1.0, unit)).dp.provenance["unit"]["nulls"] == nulls


def test_59_ids_of_other_kinds_are_other_people(engine):
    if engine.is_pandas:
        frame = engine({"u": np.array(["1", 1, 1.0, True, "01"], dtype=object)})
        assert one(frame, lambda dp: dp.count(), dpf.PrivacyUnit("u", max_rows=1))[0] <= 3 * 2**20
    for ids in ([1, 2, 2], ["1", "01", "01"], [1.0, 1.5, 1.5]):
        steps = one(engine({"u": ids}), lambda dp: dp.count(), dpf.PrivacyUnit("u", max_rows=1))[0]
        assert 2 * 2**20 - 2 <= steps <= 2 * 2**20


def test_60_the_order_of_rows_decides_nothing(engine):
    groups = ["A", "A", "A", "B", "C", "D", "D"]
    rows = {"u": [1] * 7, "g": groups, "x": [1.0, 9.0, 3.0, 4.0, 5.0, 0.5, 2.0]}

    def ask(dp):
        return dp.group_by("g", keys=["A", "B", "C", "D"]).sum("x", bounds=(0, 10))

    first = one(engine(rows), ask, PERSON, 2.0)
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(7)
        shuffled = {name: [column[place] for place in order] for name, column in rows.items()}
        assert one(engine(shuffled), ask, PERSON, 2.0) == first


def test_62_groups_that_overlap_are_charged_each(engine):
    """One group-by has one charge and one bound; two filtered frames are two charges."""
    frame = engine({"u": [1, 1], "g": ["A", "B"], "x": [1.0, 2.0]})
    ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("u", max_groups=2))
    frame.dp.group_by("g", keys=["A", "B"]).count(epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.25
    for least in (0.0, 1.5):
        part = frame[frame["x"] > least] if engine.is_pandas else frame.filter(pl.col("x") > least)
        part.dp.count(epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.75
    with pytest.raises(dpf.InvalidArgument, match="once"):
        frame.dp.group_by("g", "g", keys={"g": ["A"]}).count(**paid())


# META: what is shown next to the numbers (64-74)


def told(engine: Any, frame: Any, caplog: Any, capfd: Any) -> str:
    """Return everything that a release shows except its noisy numbers."""
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    shown: list[Any] = []
    ledger = dpf.Ledger(epsilon=9)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for ask in (
            lambda dp: dp.count("x", epsilon=1, ledger=ledger),
            lambda dp: dp.mean("x", bounds=(0, 9), epsilon=1, ledger=ledger),
            lambda dp: dp.histogram("x", bins=[0, 5, 9], epsilon=1, ledger=ledger),
            lambda dp: dp.group_by("g", keys=["B", "A", None]).agg(
                n=dpf.count(), s=dpf.sum("x", bounds=(0, 9)), epsilon=1, ledger=ledger
            ),
        ):
            try:
                found = ask(frame.dp)
            except Exception as error:
                shown.append(repr(error))
                continue
            shown.append(public_parts(found))
    shown += [repr(frame.dp), repr(frame.dp.preview.count("x", epsilon=1, ledger=ledger))]
    shown += [
        [record.getMessage() for record in caplog.records],
        [str(one.message) for one in warned if one.category is not dpf.BoundsWarning],  # from noisy numbers only
        capfd.readouterr(),
    ]
    return repr((shown, ledger.to_frame().drop("time").to_dicts()))


@pytest.mark.slow
def test_64_to_71_nothing_but_the_noise_depends_on_a_row(engine, caplog, capfd):
    """attrs, dtypes, provenance, repr, logs, warnings, exceptions and prints are equal on neighbors of every kind."""
    base = {"x": [1.0, 2.0, 3.0], "g": ["A", "B", "A"]}
    tables = [base, {name: column[:2] for name, column in base.items()}]
    tables += [
        {"x": [1.0, 2.0, odd], "g": ["A", "B", "A"]} for odd in (None, math.nan, math.inf, -math.inf, 1e308, -0.0)
    ]
    tables += [{"x": [1.0, 2.0, 3.0], "g": ["A", "B", odd]} for odd in (None, "rare", "\u00e9", "")]
    tables += [{"x": [4.0, 4.0, 4.0], "g": ["A", "A", "A"]}, {"x": [], "g": []}]
    forms = set()
    for table in tables:
        frame = engine(table, x=pl.Float64, g=pl.String)
        if engine.is_pandas:
            frame = frame.astype({"x": "float64", "g": object})
            frame.attrs = {"secret": len(frame)}
        forms.add(told(engine, frame, caplog, capfd))
    assert len(forms) == 1


def test_68_the_call_of_a_plan_shows_no_row(engine):
    frame = texts(engine({"x": ["secret", "123-45-6789"], "n": [1, 2]}), "x")
    plan = frame.dp.preview.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    shown = repr(plan.call) + str(vars(plan))
    assert "secret" not in shown
    assert "6789" not in shown


def test_65_dtypes_of_a_result_are_fixed(engine):
    for column in ([1, 2], [1.0, 2.0], [True, False]):
        found = engine({"x": column}).dp.agg(n=dpf.count("x"), s=dpf.sum("x", bounds=(0, 9)), **paid(1.0))
        assert {str(found[name].dtype).lower() for name in found.columns} == {"float64"}


def test_239_the_error_of_a_plan_shows_no_number_of_rows(tmp_path):
    """Polars' own error shows the plan, and for each Parquet file the rows that its footer counts."""
    told = set()
    for rows in (48_173, 48_174):
        path = tmp_path / "same.parquet"
        pl.DataFrame({"x": range(rows)}).write_parquet(path)
        wrong = pl.scan_parquet(path).with_columns(y=pl.col("z"))
        ledger = dpf.Ledger(epsilon=1)
        calls: list[Any] = [
            lambda wrong=wrong, ledger=ledger: wrong.dp.count(epsilon=1, ledger=ledger),
            lambda wrong=wrong, ledger=ledger: wrong.dp.preview.count(epsilon=1, ledger=ledger),
            lambda wrong=wrong, ledger=ledger: wrong.dp.group_by("x", keys=[1]).count(epsilon=1, ledger=ledger),
            lambda wrong=wrong, ledger=ledger: (
                pl.DataFrame({"x": [1]}).dp.group_by("x", keys=wrong).count(epsilon=1, ledger=ledger)
            ),
            lambda wrong=wrong: dpf.local.Mean((0, 1), epsilon=1).randomize(wrong),
        ]
        for call in calls:
            with pytest.raises(dpf.InvalidArgument, match="follow from its plan") as caught:
                call()
            told.add("".join(traceback.format_exception(caught.value)))
        assert ledger.spent.epsilon == 0
    assert len(told) == len(calls)
    assert not any("4817" in text.replace(",", "").replace("_", "") for text in told)


def test_243_the_error_of_a_guessed_schema_shows_no_character_of_a_row(tmp_path):
    """Polars reads rows of such files for their types before any charge, and quotes them in its errors."""
    told = set()
    for number, secret in enumerate(["{'id': 7}", "QX", '["QX"]']):
        path = tmp_path / f"{number}.ndjson"
        path.write_text('{"id": 1, "x": 2}\n{"id": 2, "x": ' + secret + "}\n", encoding="utf-8")
        ledger = dpf.Ledger(epsilon=1)
        with pytest.raises(dpf.InvalidArgument, match="follow from its plan") as caught:
            pl.scan_ndjson(path).dp.count(epsilon=1, ledger=ledger)
        told |= {str(caught.value), str(caught.value.__cause__), str(caught.value.__context__)}
    assert not any("character" in text or "QX" in text or "JSON" in text for text in told)


def test_243_the_error_of_a_damaged_file_does_not_show_its_size(tmp_path):
    parquet, datasets = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.dataset")
    table = pl.DataFrame({"x": range(1_000)}).to_arrow()
    path = tmp_path / "damaged.parquet"
    parquet.write_table(table, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + (10**6).to_bytes(4, "little") + b"PAR1")
    frame = datasets.dataset(path, schema=table.schema, format="parquet")
    with pytest.raises(dpf.InvalidArgument, match="files whose schemas can be read") as caught:
        dpf.of(frame).preview.count(epsilon=1)
    assert str(len(whole)) not in str(caught.value)


def test_a_missing_file_is_no_fault_of_dpframe(tmp_path):
    for scan in (pl.scan_parquet, pl.scan_csv, pl.scan_ipc):
        with pytest.raises(dpf.InvalidArgument, match="FileNotFoundError"):
            scan(tmp_path / "nowhere").dp.preview.count(epsilon=1)


def test_72_errors_show_no_value(engine):
    frame = texts(engine({"x": ["secret", "123-45-6789"], "n": [1, 2]}), "x")
    ledger = dpf.Ledger(epsilon=1)
    wrong: list[Any] = [
        lambda: frame.dp.sum("x", bounds=(0, 1), epsilon=1, ledger=ledger),
        lambda: frame.dp.histogram("x", bins=[0, 1], epsilon=1, ledger=ledger),
        lambda: frame.dp.group_by("x", keys=[1]).count(epsilon=1, ledger=ledger),
        lambda: frame.dp.count("y", epsilon=1, ledger=ledger),
        lambda: frame.dp.count(frame, epsilon=1, ledger=ledger),
        lambda: frame.dp.group_by("n", keys=frame).count(epsilon=1, ledger=ledger),
        lambda: frame.dp.count(epsilon=frame, ledger=ledger),
    ]
    for call in wrong:
        with pytest.raises(dpf.DpframeError) as caught:
            call()
        assert "secret" not in str(caught.value)
        assert "6789" not in str(caught.value)
    assert ledger.spent.epsilon == 0


def test_73_a_failing_engine_leaves_no_frame_of_its_own_in_the_traceback(engine):
    """Reports of errors show the locals of every stack frame; none of these is inside the room that reads rows."""
    if engine.name != "lazy":
        pytest.skip("only a LazyFrame can fail by itself")

    def explode(frame):
        raise ValueError(f"secret {frame['x'][0]}")

    lazy = engine({"x": [123456789]}).map_batches(explode)
    with pytest.raises(dpf.ReleaseFailed) as caught:
        lazy.dp.count("x", **paid(1.0))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    package = Path(dpf.__file__).parent  # a clone may have the same name
    steps = [(Path(step.f_code.co_filename), step) for step, _ in traceback.walk_tb(caught.value.__traceback__)]
    own = [(path.relative_to(package), step) for path, step in steps if path.is_relative_to(package)]
    assert own
    for path, step in own:
        assert path.parts[0] != "engines"
        assert "123456789" not in repr(step.f_locals)


# BUDGET and RNG: what may be spent (75-90)


def test_84_a_cell_that_is_run_again_is_charged_again(engine, tmp_path):
    frame = engine({"x": [1.0, 2.0]})
    for times in (1, 2, 3):
        ledger = dpf.Ledger(epsilon=1, path=tmp_path / "people.ledger")
        frame.dp.count(epsilon=0.25, ledger=ledger)
        copy.deepcopy(frame).dp.count(epsilon=0.0625, ledger=copy.deepcopy(ledger))
        assert ledger.spent.epsilon == 0.3125 * times


def test_85_and_89_limits_hold_to_the_last_digit(engine):
    frame = engine({"x": [1.0]})
    ledger = dpf.Ledger(epsilon=0.3)
    for _ in range(3):
        frame.dp.count(epsilon=0.1, ledger=ledger)
    for epsilon in (1e-15, 2.3e-308):
        with pytest.raises((dpf.BudgetExceeded, dpf.InvalidArgument)):
            frame.dp.count(epsilon=epsilon, ledger=ledger)
    almost = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.BudgetExceeded):
        frame.dp.count(epsilon=Fraction(10**12 + 1, 10**12), ledger=almost)
    deltas = dpf.Ledger(epsilon=10, delta=1e-6, accounting="basic")
    frame.dp.count(epsilon=0.1, delta=1e-6, ledger=deltas)
    assert deltas.spent.delta == 1e-6
    with pytest.raises(dpf.BudgetExceeded):
        frame.dp.count(epsilon=0.1, delta=1e-9, ledger=deltas)


def test_85_a_budget_of_mu_is_not_passed_by_rounding(engine):
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting="gdp")
    frame = engine({"x": [1.0]})
    found = frame.dp.count(epsilon=1, ledger=ledger).dp.provenance["statistics"][0]
    mu = Fraction(found["sensitivity"]) / Fraction(found["scale"])
    assert ledger.limit_amount[0] <= Fraction(1 / dpf.analytic_gaussian_sigma(1, 1e-6) * (1 + 1e-15)) ** 2
    assert ledger._store.last().total[0] >= mu**2
    with pytest.raises(dpf.BudgetExceeded):
        frame.dp.count(epsilon=1e-3, ledger=ledger)


@pytest.mark.parametrize(
    "epsilon", [True, "1", math.nan, math.inf, -math.inf, 0, -1, 1e-320, 5e-324, None, 1j, [1], {}]
)
def test_86_and_87_an_epsilon_that_is_none_is_refused(engine, epsilon):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises((dpf.InvalidArgument, dpf.InvalidType, dpf.MissingArgument), match="epsilon"):
        engine({"x": [1.0]}).dp.count(epsilon=epsilon, ledger=ledger)
    with pytest.raises((dpf.InvalidArgument, dpf.InvalidType, dpf.MissingArgument), match="epsilon"):
        dpf.Ledger(epsilon=epsilon)
    assert ledger.spent.epsilon == 0


def test_88_denoising_is_not_charged_and_sees_noisy_numbers_only(engine):
    frame, seen = engine({"x": [0.5] * 40}), []

    def watching(noisy, _):
        seen.append(noisy.copy())
        return noisy

    for denoiser in (None, "auto", watching, [watching, "nonnegative"]):
        ledger = dpf.Ledger(epsilon=1)
        found = frame.dp.histogram("x", bins=range(9), epsilon=0.25, ledger=ledger, denoise=denoiser)
        assert ledger.spent.epsilon == 0.25
    assert np.array_equal(seen[-1], values(found, "count_noisy"))


def test_81_a_commit_is_on_the_disk_before_it_is_reported(tmp_path):
    """SQLite waits for the disk: a charge that a release relies on survives a loss of power."""
    from dpframe.ledger import database

    connection = database._sqlite(str(tmp_path / "people.ledger"), create=True)
    try:
        assert connection.execute("PRAGMA synchronous").fetchone() in ((2,), (3,))  # FULL or EXTRA
    finally:
        connection.close()


def test_90_seeds_and_repetition_do_not_repeat_the_noise(engine):
    frame = engine({"x": [0.5]})
    drawn = []
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)
        drawn.append(values(frame.dp.histogram("x", bins=range(200), **paid(epsilon=0.1)), "count").tobytes())
    assert len(set(drawn)) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_90_a_forked_child_shares_no_draw_with_its_parent():
    assert np.count_nonzero(drawn_in_a_child(200) == noise.discrete_laplace(1e12, 200)) <= 1


# The register itself


def test_the_register_is_whole():
    """docs/assurance/security.md has every number once, and every test that it names exists."""
    tests = Path(__file__).parents[1]
    page = (tests.parent / "docs" / "assurance" / "security.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|(.*)\|(.*)\|(.*)\|$", page, flags=re.MULTILINE)
    assert [int(row[0]) for row in rows] == [*range(1, 267)]
    assert f"{len(rows)} attacks" in page
    assert f"number from 1 to {len(rows)} is" in page
    files = {file.name: file.read_text(encoding="utf-8") for file in tests.rglob("test_*.py")}
    for number, _, answer, named in rows:
        places = re.findall(r"`([^`]+)`", named)
        assert places or "limits.md" in answer, number
        for place in places:
            file, _, name = place.rpartition("::")
            text = files[file or "test_register.py"]
            assert re.search(rf"(def|class) {name}\b", text), place


def test_every_attack_has_a_seeded_bug():
    """For each row of docs/assurance/security.md, some bug of ``assurance/bugs`` must fail one of its tests."""
    page = (Path(__file__).parents[2] / "docs" / "assurance" / "security.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|$", page, flags=re.MULTILINE)
    aimed_at = {"::".join(Path(test).name.split("::")[:2]) for mutant in MUTANTS for test in mutant.tests}
    assert len(rows) > 180
    without = []
    for number, named in rows:
        tests = {Path(place).name for place in re.findall(r"`([^`]+)`", named)}
        if not aimed_at & {test if "::" in test else f"test_register.py::{test}" for test in tests}:
            without.append(int(number))
    assert without == []
