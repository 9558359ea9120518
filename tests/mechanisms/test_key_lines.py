"""Thresholds of discovered keys: reference values, high precision, and the noise that they are for."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from published import inputs, published
from scipy.stats import chisquare

import dpframe as dpf
from dpframe import noise
from dpframe.accounting import comparison
from dpframe.errors import InvalidArgument
from dpframe.exact import exactly
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace, TruncatedLaplace
from dpframe.mechanisms.thresholded import Thresholded, chance_shown, chances_shown, of_noise, smallest_line
from dpframe.queries.contributions import as_array, key_weights

FINE = 2.0**-20
ONE = np.array([1])


def ones(keys):
    return np.ones(keys, dtype=np.int64)


@pytest.mark.parametrize(
    ("scale", "line", "chance"),
    [(1, 4, 0.0363972634352), (2, 10, 0.00691489855552), (10, 100, 2.63406638179e-5)],
)
def test_one_key_under_discrete_laplace_is_shown_with_the_exact_chance(scale, line, chance):
    law = Laplace.calibrate(sensitivity=1, epsilon=Fraction(1, scale))
    assert chances_shown(law.tail, ONE, line)[0] == pytest.approx(chance, rel=1e-11)


@pytest.mark.parametrize(
    ("epsilon", "delta", "keys", "line", "achieved"),
    [
        (0.1, 1e-6, 1, 133, 9.71527113054e-7),
        (0.5, 1e-6, 1, 28, 8.53366276016e-7),
        (1, 1e-6, 1, 15, 6.07896203478e-7),
        (1, 1e-8, 1, 20, 4.09597239998e-9),
        (2, 1e-9, 1, 12, 2.45695534531e-10),
        (0.3, 1e-5, 1, 38, 8.68116132995e-6),
        (1, 1e-6, 2, 30, 6.27871718915e-7),
        (1, 1e-6, 5, 76, 8.40977195446e-7),
        (1, 1e-6, 20, 324, 9.92808694e-7),
        (0.5, 1e-7, 10, 357, 9.53344503486e-8),
    ],
)
def test_the_smallest_line_under_discrete_laplace(epsilon, delta, keys, line, achieved):
    law = Laplace.calibrate(sensitivity=keys, epsilon=epsilon)
    found = smallest_line(law.tail, ones(keys), delta)
    assert found == line
    assert chance_shown(law.tail, ones(keys), found) == pytest.approx(achieved, rel=1e-9)
    assert chance_shown(law.tail, ones(keys), found - 1) > delta


@pytest.mark.parametrize(
    ("sigma", "keys", "delta", "line"),
    [(4, 1, 1e-6, 21), (10, 1, 1e-6, 50), (10, 10, 1e-6, 54), (13.4, 10, 5e-7, 73), (0.8, 3, 1e-9, 7)],
)
def test_the_smallest_line_under_rounded_gaussian(sigma, keys, delta, line):
    assert smallest_line(Gaussian(1.0, sigma, 1.0).tail, ones(keys), delta) == line


@pytest.mark.parametrize(("most", "line"), [(10, 162790880), (1000, 210041498)])
def test_weighted_keys_under_discrete_laplace(most, line):
    law = Laplace(10 << 20, float(10 << 20), FINE)
    assert smallest_line(law.tail, as_array(key_weights(most, 10, 1)) << (20 if most == 10 else 0), 1e-6) == line


@pytest.mark.parametrize("norms", [(1, 2), (2, 1)])
def test_weights_of_keys_are_those_of_the_norm_that_is_asked_for(norms):
    """Earlier calls in this process must not matter: with l_2 weights, the l_1 norm of a unit would be too large."""
    most_keys, most_groups = 37 + norms[0], 3
    for p in norms:
        weights = key_weights(most_keys, most_groups, p)
        norms_of_keys = [(t * weight**p) ** (1 / p) for t, weight in enumerate(weights, start=1)]
        assert 0.999 < max(norms_of_keys) / (most_groups ** (1 / p) * 2**20) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("epsilon", "delta", "groups", "most", "sigma", "line", "worst"),
    [
        (1, 1e-6, 1, 1, 4.36515494114, 23438569, 1),
        (1, 1e-6, 5, 5, 9.7607831807, 54263396, 5),
        (1, 1e-6, 5, 50, 9.7607831807, 57769989, 50),
        (0.5, 1e-7, 10, 200, 29.2942671605, 191268355, 200),
        (2, 1e-5, 3, 100, 3.58050523204, 20180439, 100),
    ],
)
def test_weighted_keys_under_rounded_gaussian(epsilon, delta, groups, most, sigma, line, worst):
    law = Gaussian.calibrate(sensitivity=math.sqrt(groups), epsilon=epsilon, delta=delta / 2, grid=FINE)
    weights = as_array(key_weights(most, groups, 2)) << (20 if most <= groups else 0)
    assert law.scale == pytest.approx(sigma, rel=1e-10)
    assert smallest_line(law.tail, weights, delta / 2) == line
    assert chances_shown(law.tail, weights, line).argmax() + 1 == worst


def fine_noise(given):
    """Return the noise and the weights of a published row, in steps of 2**-20, which are nearly continuous."""
    keys, largest = given["l0"], given["linf"]
    if "sigma" in given:
        law = Gaussian(1.0, given["sigma"] / FINE, FINE)
    elif given["gaussian"]:
        delta = given.get("noise_delta", given.get("delta", 0.0) / 2)
        law = Gaussian.calibrate(
            sensitivity=largest * math.sqrt(keys), epsilon=given["epsilon"], delta=delta, grid=FINE
        )
    else:
        law = Laplace.calibrate(sensitivity=keys * largest, epsilon=given["epsilon"], grid=FINE)
    return law, ones(keys) * (largest << 20)


def agrees(found, row, *, abs_tol=0.0):
    """Check a value against the source, and against the value of 60 digits if there is one."""
    expected, exact = float(row["expected"]), float(row["independent"] or row["expected"])
    tolerance = float(row["abs_tol"] or 0.0) + float(row["rel_tol"] or 0.0) * abs(expected) + abs_tol
    closed = abs(expected - exact) > tolerance  # the one row whose source is known to be wrong
    assert closed or abs(found - expected) <= tolerance
    assert found == pytest.approx(exact, rel=1e-5, abs=abs_tol)


@published("gaussian_threshold", "laplace_threshold")
def test_lines_and_chances_of_other_libraries(row):
    """Other libraries have continuous noise, so a line here is the next step above theirs."""
    given = inputs(row) | {"gaussian": row["family"] == "gaussian_threshold"}
    law, weights = fine_noise(given)
    if "threshold" in given:
        agrees(chance_shown(law.tail, weights, int(given["threshold"] * 2**20)), row)
    else:
        half = given["delta"] / 2 if given["gaussian"] and "delta" in given else None
        delta = given.get("threshold_delta", half or given.get("delta"))
        agrees(smallest_line(law.tail, weights, delta) * FINE, row, abs_tol=2 * FINE)


@published("opendp_threshold")
def test_the_chance_of_more_than_a_threshold(row):
    """The source states the chance to exceed the threshold, although it shows keys at it; our chance includes it."""
    given = inputs(row)
    steps = 2**20 if "gaussian" in row["quantity"] else 1
    kind = Gaussian if steps > 1 else Laplace
    law = kind(1, float(given["scale"] * steps), 1 / steps)
    above = given["threshold"] * steps + (1 if steps == 1 else 0)
    agrees(chances_shown(law.tail, ONE * given["linf"] * steps, above)[0], row)


def test_the_drill_of_the_audit():
    law = Gaussian(math.sqrt(3) * 2**20, 2.0 * 2**20, FINE)
    weights = as_array(key_weights(20, 3, 2))
    line = smallest_line(law.tail, weights, 0.01)
    shown = chances_shown(law.tail, weights, line)[[0, 3, 19]]
    assert line * FINE == pytest.approx(6.965667724609375, abs=3 * FINE)
    assert shown == pytest.approx([0.00142797, 0.00457170, 0.00999999], rel=1e-5)


def exact_chance(law, weights, line):
    """Return the chance of `chance_shown` in 60 digits."""
    with mpmath.workdps(60):
        found = []
        for place, weight in enumerate(weights.tolist()):
            gap = line - weight
            if isinstance(law, Gaussian):
                far = mpmath.erfc((mpmath.mpf(gap) - 0.5) / (mpmath.mpf(law.step_scale) * mpmath.sqrt(2))) / 2
            else:
                ratio = mpmath.exp(-1 / mpmath.mpf(law.step_scale))
                far = ratio**gap / (1 + ratio) if gap >= 1 else 1 - ratio ** (1 - gap) / (1 + ratio)
            found.append(1 - (1 - far) ** (place + 1))
        return max(found)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("most", [1, 7, 60])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_chance_is_rounded_up_down_to_deltas_of_1e_12(kind, most, delta):
    if kind == "laplace":
        law, p = Laplace(3 << 20, 3.3 * 2**20, FINE), 1
    else:
        law, p = Gaussian(math.sqrt(3) * 2**20, 7.7 * 2**20, FINE), 2
    weights = as_array(key_weights(most, 3, p))
    line = smallest_line(law.tail, weights, delta)
    exact = exact_chance(law, weights, line)
    assert exact <= chance_shown(law.tail, weights, line) <= exact * (1 + 1e-11)
    assert exact <= delta < exact_chance(law, weights, line - 1) * (1 + 1e-10)


@pytest.mark.parametrize(
    ("epsilon", "delta", "reach", "end"),
    [
        (0.1, 1e-6, 109, 9.221595461e-7),
        (0.5, 1e-6, 25, 9.127294785e-7),
        (1, 1e-6, 14, 3.842638597e-7),
        (1, 1e-5, 11, 7.718211828e-6),
        (2, 1e-8, 10, 1.569762554e-9),
        (1, 1e-8, 18, 7.038035002e-9),
    ],
)
def test_truncated_laplace(epsilon, delta, reach, end):
    law = TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta)
    assert law.reach == reach
    assert law.end == pytest.approx(end, rel=1e-9)
    assert law.delta(epsilon) == law.infinite == law.end
    assert TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta, counts=2).reach >= reach


def most_shown(epsilon, delta, units):
    """Return the chances that the rule that shows the most keys shows a key of 0, 1, ... units."""
    chances = [0.0]
    for _ in range(units):
        rising = math.exp(epsilon) * chances[-1] + delta
        falling = 1.0 - math.exp(-epsilon) * (1.0 - chances[-1] - delta)
        chances.append(min(rising, falling, 1.0))
    return np.array(chances)


def test_no_rule_of_its_own_delta_shows_more_keys_than_truncated_laplace():
    """At the requested delta, some rule shows more: the reach is whole, so the noise's own delta may be well below."""
    law = TruncatedLaplace.calibrate(epsilon=1, delta=1e-6)
    steps = np.arange(-law.reach, law.reach + 1)
    masses = law._masses(steps.astype(float))
    shown = np.array([masses[steps + units > law.reach].sum() for units in range(31)])
    assert shown == pytest.approx(most_shown(1.0, law.end, 30), rel=1e-9, abs=1e-15)
    assert law.end < 4e-7
    assert (most_shown(1.0, 1e-6, 30)[1 : law.reach + 3] > shown[1 : law.reach + 3] + 5e-7).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-9, 1e-12), (1e-15, 1e-2), (1e-8, 1e-2)])
def test_truncated_noise_that_is_listed_or_drawn_for_ever_is_refused(epsilon, delta):
    """One has 50 GiB of steps. For the others, nearly every draw lies beyond the last step and is repeated."""
    rows = pl.DataFrame({"k": [1, 2]}).dp.preview.group_by("k", keys=dpf.discover(delta=delta))
    with pytest.raises(InvalidArgument, match="large enough for truncated noise"):
        rows.count(epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 1.3])
def test_the_curve_of_truncated_laplace_is_that_of_its_atoms(epsilon):
    law = TruncatedLaplace.calibrate(epsilon=1, delta=1e-3)
    steps = np.arange(-law.reach - 1, law.reach + 2)
    masses = law._masses(steps.astype(float))
    assert masses.sum() == pytest.approx(1.0)
    exact = np.maximum(0.0, masses - math.exp(epsilon) * np.roll(masses, 1)).sum()
    assert exact <= law.delta(epsilon) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("counts", [1, 2])
@pytest.mark.parametrize("scale", [6.135054958766702, 0.7, 17.3, 29.000000000000004])
def test_the_delta_of_truncated_laplace_is_rounded_up_next_to_its_loss(scale, counts):
    """The loss, counts / scale, lies between two floats. At the lower one, delta is above the chance of an end."""
    for reach in (3, 17, 45):
        law = TruncatedLaplace(1, scale, reach=reach, counts=counts)
        for epsilon in (0.0, 0.01, *np.nextafter(counts / scale, [0.0, 0.0, 9.0]).tolist(), counts / scale):
            with mpmath.workdps(60):
                gap = Fraction(counts) / Fraction(scale) - Fraction(epsilon)
                ratio = mpmath.exp(-1 / mpmath.mpf(scale))
                whole = (1 + ratio - 2 * ratio ** (reach + 1)) / (1 - ratio)
                end, rest = ratio**reach / whole, mpmath.fsum(ratio**step / whole for step in range(reach))
                held = rest if counts == 1 else 1 / (1 + ratio**2)
                finite = -mpmath.expm1(-mpmath.mpf(max(gap, 0).numerator) / max(gap, 0).denominator) * held
                exact = counts * end + finite
                close = exact * (1 + mpmath.mpf(10) ** -15)
            typed = exactly("epsilon", epsilon) >= Fraction(counts) / Fraction(scale) > Fraction(epsilon)
            assert (counts * end if typed else exact) <= law.delta(epsilon) <= close


@pytest.mark.parametrize("counts", [1, 2])
def test_many_deltas_of_truncated_laplace_are_its_delta(counts):
    law = TruncatedLaplace.calibrate(epsilon=1, delta=1e-3, counts=counts)
    points = np.linspace(0.0, 1.2, 13)
    assert law.deltas(points) == pytest.approx([law.delta(float(point)) for point in points], rel=1e-9)


def test_the_interval_of_truncated_laplace_may_reach_to_its_end():
    law = TruncatedLaplace.calibrate(epsilon=1, delta=0.05)
    assert law.infinite > 0.01
    assert [law.interval(confidence) for confidence in (0.9, 0.99)] == [law.reach - 1, law.reach]


def test_truncated_laplace_draws_its_law():
    law = TruncatedLaplace.calibrate(epsilon=1, delta=0.01)
    with noise.insecure_bits(7):
        drawn = law.add_noise(np.zeros(400_000, dtype=np.int64))
    assert np.abs(drawn).max() == law.reach
    steps = np.arange(-law.reach, law.reach + 1)
    counts = np.bincount(drawn + law.reach, minlength=steps.size)
    assert chisquare(counts, law._masses(steps.astype(float)) * drawn.size).pvalue > 1e-6
    thinner = TruncatedLaplace.calibrate(epsilon=1.02, delta=0.01)._masses(steps.astype(float))
    assert chisquare(counts, thinner / thinner.sum() * drawn.size).pvalue < 1e-6


@pytest.mark.parametrize("scale", [4.0, 1e5])
def test_truncated_laplace_of_a_reach_below_its_scale_draws_its_law(scale):
    """If the whole law were drawn first, nearly all draws would be repeated."""
    with noise.insecure_bits(7):
        drawn = noise.truncated_discrete_laplace(scale, 3, 400_000)
    counts = np.bincount(drawn + 3, minlength=7)
    masses = np.exp(-np.abs(np.arange(-3, 4)) / scale)
    assert chisquare(counts, masses / masses.sum() * drawn.size).pvalue > 1e-6
    wrong = np.exp(-np.abs(np.arange(-3, 4)) / (scale * 1.1) if scale == 4.0 else -np.abs(np.arange(-3, 4)) / 8)
    assert chisquare(counts, wrong / wrong.sum() * drawn.size).pvalue < 1e-6


def test_truncated_laplace_has_no_place_in_ledgers_that_charge_curves():
    law = TruncatedLaplace.calibrate(epsilon=1, delta=1e-6)
    with pytest.raises(InvalidArgument, match="proven mu"):
        _ = law.mu_squared
    with pytest.raises(InvalidArgument, match="Rényi"):
        law.renyi(Fraction(2))


SHIPPED = {
    "laplace": of_noise(Laplace.calibrate(sensitivity=1, epsilon=1), ONE, Fraction(1, 10**6)),
    "gaussian": of_noise(Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6), ONE, Fraction(1, 10**6), apart=True),
    "truncated": TruncatedLaplace.calibrate(epsilon=1, delta=1e-6),
}


def test_a_key_is_shown_at_the_line_and_not_below():
    assert SHIPPED["laplace"].is_shown(np.array([14, 15, 16])).tolist() == [False, True, True]


def test_at_least_raises_the_line_by_the_others():
    law = Laplace.calibrate(sensitivity=1, epsilon=1)
    assert of_noise(law, ONE, Fraction(1, 10**6), at_least=5).line == 15 + 4
    fine = Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6, grid=FINE)
    weights = as_array(key_weights(9, 1, 2))
    plain, raised = (of_noise(fine, weights, Fraction(1, 10**6), at_least=least) for least in (1, 3))
    assert raised.line - plain.line == 2 << 20


def test_words_say_when_groups_are_shown():
    law = of_noise(Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6), ONE, Fraction(1, 10**6))
    assert law.line == 22
    assert law.words("person", "people") == "a group of 22 people is shown half the time, of 29 people 95% of the time"
    assert law.words("row", "rows") == "a group of 22 rows is shown half the time, of 29 rows 95% of the time"
    lowest = replace(law, line=1).words("row", "rows")
    assert lowest == "a group of 1 row is shown half the time, of 8 rows 95% of the time"
    people = int(law.likely_shown(0.95))
    with noise.insecure_bits(3):
        rates = [law.is_shown(law.add_noise(np.full(100_000, size))).mean() for size in (people, people - 1)]
    assert rates[0] > 0.95 > rates[1]


def test_words_count_people_where_people_in_several_groups_weigh_less():
    law = Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6, grid=FINE)
    found = of_noise(law, as_array(key_weights(9, 1, 2)), Fraction(1, 10**6))
    said = "a group of 23 people is shown half the time, of 30 people 95% of the time"
    assert found.words("person", "people") == said


def test_the_loss_of_both_is_added_and_the_larger_where_units_differ():
    law = Gaussian.calibrate(sensitivity=1, epsilon=1, delta=1e-6)
    both = of_noise(law, ONE, Fraction(1, 10**6))
    apart = SHIPPED["gaussian"]
    assert both.delta(1.0) == pytest.approx(law.delta(1.0) + both.shown)
    assert apart.delta(1.0) == max(law.delta(1.0), apart.shown)
    assert both.epsilon(2e-6) == pytest.approx(law.epsilon(2e-6 - both.shown))
    with pytest.raises(InvalidArgument, match="at least"):
        both.epsilon(both.shown / 2)
    assert both.keys_delta == Fraction(1, 10**6)
    assert both.infinite == both.shown


def test_a_loss_distribution_holds_the_infinite_losses():
    pytest.importorskip("dp_accounting")
    both = SHIPPED["laplace"]
    assert comparison.composed_epsilon([both], 1e-5) <= 1.0 + 1e-6
    many = comparison.composed_epsilon([both] * 4, 1e-5)
    assert many == pytest.approx(comparison.composed_epsilon([both.noise] * 4, 1e-5 - 4 * both.shown), rel=1e-6)
    with pytest.raises(InvalidArgument, match="keys that are found"):
        comparison.composed_epsilon([both] * 20, 1e-5)
    alone = comparison.composed_epsilon([SHIPPED["truncated"]], 1e-6)
    assert alone == pytest.approx(1.0, rel=1e-3)


def test_accountings_compare_noise_of_keys_that_are_found():
    rows = dpf.compare_accounting([SHIPPED["laplace"]] * 3, delta=1e-5).rows
    found = {row.accounting: row.epsilon for row in rows}
    plain = {
        row.accounting: row.epsilon for row in dpf.compare_accounting([SHIPPED["laplace"].noise] * 3, delta=1e-5).rows
    }
    assert found["gdp"] > plain["gdp"]
    assert found["rdp"] > plain["rdp"]
    rows = dpf.compare_accounting([SHIPPED["laplace"]] * 30, delta=1e-5).rows
    assert {row.accounting: row.epsilon for row in rows}["gdp"] is None


def test_thresholds_are_frozen_values():
    assert hash(SHIPPED["laplace"]) == hash(of_noise(SHIPPED["laplace"].noise, ONE, Fraction(1, 10**6)))
    assert isinstance(SHIPPED["gaussian"], Thresholded)


def test_truncated_noise_has_no_row_of_divergences():
    law = TruncatedLaplace.calibrate(epsilon=1, delta=1e-7)
    rows = {row.accounting: row for row in dpf.compare_accounting([law] * 3, delta=1e-5).rows}
    assert (rows["rdp"].epsilon, rows["rdp"].note) == (None, "a noise has no proven Rényi divergence")


def test_a_delta_of_keys_below_the_numbers_of_tails_is_refused():
    """Below it, tails are rounded to 0, and the line would be too low."""
    assert dpf.discover(delta=1e-300).delta == Fraction(1, 10**300)
    with pytest.raises(InvalidArgument, match=r"delta must be at least 1e-300 for keys to be found"):
        dpf.discover(delta=1e-301)
