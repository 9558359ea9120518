"""`dpf.combine`, ``.dp.total`` and related verbs: which draw of noise is in which number, and what is refused."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.derived.linear import Linear, half_widths
from dpframe.derived.sums_of_noise import Law, half_width
from dpframe.derived.traced import Source, contrast_weights
from dpframe.queries.contrasts import ContrastDesign
from dpframe.queries.statistics import Clipped, RowFunction, Total
from dpframe.testing import seeded
from tests.killed_streams import lose

STAYS = {
    "ward": ["A", "B", "A", "C"] * 50,
    "month": [1, 2, 3, 4] * 50,
    "cost": [1.0, 5.0, 9.0, 2.0] * 50,
    "days": [1.0, 2.0, 3.0, 1.0] * 50,
}
WARDS, MONTHS = ["A", "B", "C"], [1, 2, 3, 4]
KEYS = {"ward": WARDS, "month": MONTHS}


@pytest.fixture
def ledger():
    return dpf.Ledger(epsilon=1e6, delta=0.5, accounting="basic")


def values(frame, name):
    return np.asarray(frame[name], dtype=np.float64)


def forms(frame, column):
    return Source.of("it", frame).form(column)


# Which draw of noise is in which number -----------------------------------------------------------------------------


def test_a_number_less_itself_is_exactly_nothing(engine, ledger):
    result = engine(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    same = dpf.combine("a - b", {"a": result, "b": result})
    assert values(same, "value").tolist() == values(same, "value_error").tolist() == [0.0] * 3
    one = dpf.combine("a / b", {"a": result, "b": result})
    assert np.allclose(values(one, "value_low"), 1.0)
    assert np.allclose(values(one, "value_high"), 1.0)
    means = engine(STAYS).dp.group_by("ward", keys=WARDS).mean("days", bounds=(0, 9), epsilon=0.01, ledger=ledger)
    same = dpf.combine("a - b", {"a": means, "b": means})  # also if the noise hides the divisor
    assert values(same, "value").tolist() == values(same, "value_error").tolist() == [0.0] * 3


def test_a_replay_is_the_same_number_and_another_release_is_not(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=9, path=tmp_path / "a.ledger")
    wards = engine(STAYS).dp.group_by("ward", keys=WARDS)
    ask = {"epsilon": 1, "denoise": None, "ledger": ledger, "label": "n"}
    first, again, other = (wards.count(**ask, snapshot=name) for name in ("May", "May", "June"))
    assert values(dpf.combine("a - b", {"a": first, "b": again}), "value_error").tolist() == [0.0] * 3
    assert values(dpf.combine("a - b", {"a": first, "b": other}), "value_error").tolist() == [4.0] * 3


def test_parts_of_one_charge_are_independent(ledger):
    preview = pl.DataFrame(STAYS).dp.preview
    plans = {name: preview.count(denoise=None) for name in ("a", "b")}
    parts = dpf.release_together(plans, epsilon=2, ledger=ledger)
    apart = dpf.combine("a - b", parts)
    single = values(parts["a"], "count_error")[0]
    assert values(apart, "value_error")[0] > single


def test_rows_of_one_result_may_share_the_keys_of_another(engine, ledger):
    """The counts by ward come from another release; a ward that only one of the results has is left out."""
    price = {"epsilon": 1, "denoise": None, "ledger": ledger}
    fine = engine(STAYS).dp.group_by("ward", "month", keys=KEYS).count(**price)
    wards = engine(STAYS).dp.group_by("ward", keys=["D", "C", "B", "A"]).count(**price)
    for order in (["fine", "wards"], ["wards", "fine"]):
        results = {"fine": fine, "wards": wards}
        of_ward = dpf.combine("fine - 0.25 * wards", {name: results[name] for name in order}, on="ward")
        assert list(of_ward.columns) == ["ward", "month", "value", "value_error", "covers"]
        assert list(of_ward["ward"]) == list(fine["ward"])
        assert list(of_ward["month"]) == list(fine["month"])
        count_of = dict(zip(wards["ward"], wards["count"], strict=True))
        expected = [count - 0.25 * count_of[ward] for ward, count in zip(fine["ward"], fine["count"], strict=True)]
        assert values(of_ward, "value").tolist() == expected
        assert "1 key that only some of the results have is left out" in of_ward.dp.statement()


def test_an_index_to_a_base_divides_each_row_by_one(engine, ledger):
    months = engine(STAYS).dp.group_by("month", keys=MONTHS).count(epsilon=1, denoise=None, ledger=ledger)
    base = months.dp.filter({"month": [2]})
    for results in ({"n": months, "base": base}, {"base": base, "n": months}):
        index = dpf.combine("100 * n / base", results, on=[])
        assert list(index["month"]) == MONTHS
        assert values(index, "value") == pytest.approx(100 * values(months, "count") / values(base, "count")[0])
        low, high = values(index, "value_low"), values(index, "value_high")
        assert (low[1], high[1]) == pytest.approx((100, 100))  # a number divided by itself
        assert (low[[0, 2, 3]] < high[[0, 2, 3]]).all()
    only = dpf.combine("a - b", {"a": base, "b": months.dp.filter({"month": [3]})}, on=[])
    assert list(only.columns) == ["value", "value_error", "covers"]


def test_the_title_of_an_expression_keeps_its_names(ledger):
    pytest.importorskip("altair")
    result = pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    title = dpf.combine("jan.count*2", {"jan": result}).dp.plot().to_dict()["title"]["text"]
    assert title == "jan.count*2 by ward"
    assert result.dp.plot().to_dict()["title"]["text"] == "Number of rows by ward"


def test_pictures_and_pages_say_the_confidence_that_was_asked_for(ledger, tmp_path):
    pytest.importorskip("altair")
    result = pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    half = dpf.combine("jan.count*2", {"jan": result}, confidence=0.5)
    for frame, said, other in ((half, "50%", "95%"), (result, "95%", "50%")):
        assert f"({said}: " in frame.dp.plot().description
        frame.dp.write_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert f"is half the width of the {said} confidence interval of the noise: in {said[:-1]} of 100" in page
        assert f"{other} confidence" not in page


def test_two_statistics_of_one_law_are_two_draws(ledger):
    result = (
        pl.DataFrame(STAYS)
        .dp.group_by("ward", keys=WARDS)
        .agg(
            a=dpf.sum("cost", bounds=(0, 10)), b=dpf.sum("days", bounds=(0, 10)), epsilon=2, denoise=None, ledger=ledger
        )
    )
    error = values(dpf.combine("r.a - r.b", {"r": result}), "value_error")
    assert (error > values(result, "a_error")).all()


def test_the_variance_is_that_of_the_dense_matrix(ledger):
    """Compare a rollup, a stream and bins with ranges=True with dense covariances computed by hand."""
    frame = pl.DataFrame(STAYS)
    rollup = frame.dp.group_by("ward", "month", keys=KEYS).count(rollup=True, epsilon=1, ledger=ledger)
    form = forms(rollup, "count_noisy")
    facts = rollup.dp.provenance
    each = [facts["statistics"][number]["variance"] for number in facts["measures"]["count"]["statistics"]]
    dense = np.repeat(each, [level["rows"] for level in facts["levels"]])
    weights = np.random.default_rng(0).normal(size=(4, dense.size))
    assert np.allclose(form.summed(weights_of(weights)).variances(), weights**2 @ dense, rtol=1e-9)

    stream = dpf.Stream(
        "s", statistic=dpf.count(), time="month", periods=MONTHS, epsilon=1, mechanism="laplace", ledger=ledger
    )
    periods = [stream.release(frame, month) for month in MONTHS[:3]]
    with pytest.raises(
        dpf.InvalidArgument, match=r"not two periods of one stream, which share noise. Write dpf.combine"
    ):
        dpf.compare(periods[2], periods[0], samples="different")
    both = dpf.combine("2 * c.total - a.total", {"c": periods[2], "a": periods[0]})
    law = forms(periods[0], "total").noise
    ((block, _),) = law.values()
    rows = [forms(period, "total").noise[block.key][1].toarray()[0] for period in periods]
    combined = 2 * rows[2] - rows[0]
    assert math.isclose(
        forms(periods[2], "total").times(2.0).sum_with(forms(periods[0], "total"), -1.0).variances()[0],
        block.law.variance * float(combined @ combined),
        rel_tol=1e-9,
    )
    assert len(both) == 1

    bins = frame.dp.histogram("cost", bins=range(0, 9), ranges=True, epsilon=1, denoise=None, ledger=ledger)
    said = bins.dp.provenance["measures"]["count"]
    name = "count_noisy" if said["denoise"] else "count"
    deviations = np.sqrt(forms(bins, name).variances())
    assert np.isclose(
        deviations.max(), said["sums"]["bin"] * math.sqrt(bins.dp.provenance["statistics"][0]["variance"])
    )


@pytest.mark.parametrize("sizes", [(2, 3), (3, 4, 2), (1, 3)])
def test_contrasts_of_weighted_cells_by_dense_algebra(sizes):
    from scipy.sparse import csr_array

    design = ContrastDesign(sizes, min(2, len(sizes)))
    noise = np.random.default_rng(1).normal(size=design.width)
    cells = np.concatenate([table.ravel() for table in design.reconstructed(noise)])
    dense = np.stack([np.concatenate([t.ravel() for t in design.reconstructed(one)]) for one in np.eye(design.width)])
    weights = np.random.default_rng(2).normal(size=(5, cells.size))
    found = contrast_weights(design, csr_array(weights))
    assert np.allclose(found, weights @ dense.T, rtol=1e-9, atol=1e-12)
    assert np.allclose(found @ noise, weights @ cells)
    covariance = dense.T @ np.diag(design.scales**2) @ dense
    variances = np.einsum("ij,jk,ik->i", weights, covariance, weights)
    assert np.allclose((found**2) @ design.scales**2, variances, rtol=1e-9)


def test_sums_inside_marginals_have_the_error_of_their_contrasts(engine, ledger):
    """The cells of a table add up to the measured total: adding their squared errors would overstate it many times."""
    keys = {"ward": [f"w{i}" for i in range(12)], "month": list(range(12))}
    frame = engine({"ward": ["w1"] * 40, "month": [3] * 40})
    tables = frame.dp.marginals(["ward", "month"], keys=keys, epsilon=1, delta=1e-6, denoise=None, ledger=ledger)
    source = Source.of("it", tables)
    form = source.form("count")
    levels = source.facts["levels"]
    largest = np.zeros((1, source.rows))
    largest[0, -levels[-1]["rows"] :] = 1.0
    total = form.summed(weights_of(largest))
    assert math.isclose(total.variances()[0], form.variances()[0], rel_tol=1e-9)
    squares = math.sqrt(float(form.variances()[-levels[-1]["rows"] :].sum()))
    assert math.sqrt(total.variances()[0]) < squares / 2
    assert values(tables.dp.total("ward"), "count_error").max() <= values(tables, "count_error")[1] * 1.000001


def weights_of(dense):
    from scipy.sparse import csr_array

    return csr_array(dense)


# Noise distributions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [Law(1.0, 2.0, 1.0), Law(2.0, 4.2, 1.0), Law(3.0, 12.5, 1.0), Law(1.0, 50.0, 2.0**-30)])
@pytest.mark.parametrize("weights", [(1.0,), (1.0, 1.0), (1.0, -0.3, 2.5), (0.7,) * 40])
def test_a_quantile_is_that_of_many_draws(law, weights):
    """Compare with 2 * 10**5 draws; a count outside the tolerance has a probability below 1e-9."""
    rng, size = np.random.default_rng(3), 200_000
    if law.p == 1.0:
        steps = [rng.geometric(-np.expm1(-law.grid / law.scale), size) for _ in range(2 * len(weights))]
        draws = [one - other for one, other in zip(steps[::2], steps[1::2], strict=True)]
    else:
        signs = [rng.choice([-1.0, 1.0], size) for _ in weights]
        powers = [rng.gamma(1.0 / law.p, size=size) ** (1.0 / law.p) for _ in weights]
        scale = law.scale * (math.sqrt(2.0) if law.p == 2.0 else 1.0)
        draws = [np.rint(sign * power * scale / law.grid) for sign, power in zip(signs, powers, strict=True)]
    total = sum(weight * law.grid * draw for weight, draw in zip(weights, draws, strict=True))
    terms: dict[float, int] = {}
    for weight in weights:
        terms[abs(weight)] = terms.get(abs(weight), 0) + 1
    half = half_width(tuple((law, weight, count) for weight, count in terms.items()), 0.0, 0.95)
    inside = int((np.abs(total) <= half * (1 + 1e-12)).sum())
    spread = math.sqrt(size * 0.95 * 0.05)
    assert inside >= 0.95 * size - 6 * spread
    below = int((np.abs(total) <= half * 0.97 - law.grid * min(map(abs, weights)) * 1.01).sum())
    assert below <= 0.95 * size + 6 * spread


def test_one_draw_has_the_interval_that_its_release_states(ledger):
    for more in ({}, {"delta": 1e-6, "mechanism": "gaussian"}):
        result = pl.DataFrame(STAYS).dp.count(epsilon=1, denoise=None, ledger=ledger, **more)
        (half,) = half_widths(forms(result, "count"), 0.95)
        assert half == result["count_error"][0]


def test_a_period_after_a_lost_one_has_the_interval_that_its_release_states(ledger, monkeypatch):
    stream = dpf.Stream(
        "s", statistic=dpf.count(), time="month", periods=MONTHS, epsilon=1, mechanism="laplace", ledger=ledger
    )
    frame = pl.DataFrame(STAYS)
    stream.release(frame, 1)
    lose(stream, frame, 2, monkeypatch)
    found = stream.release(frame, 3)
    for name in ("total", "period"):
        (half,) = half_widths(forms(found, name), 0.95)
        assert half == pytest.approx(found[f"{name}_error"][0], rel=1e-3)


@pytest.mark.parametrize("other", [dpf.mean("x", bounds=(0, 10)), dpf.variance("x", bounds=(0, 10))], ids=str)
def test_a_count_that_is_read_off_another_total_is_a_number_like_others(other, ledger):
    """Its noise is a sum of several draws, and its error agrees with that of the rounded count in the release."""
    frame = pl.DataFrame({"w": list("AAABBB"), "x": [1.0, 2.0, 5.0, 3.0, 4.0, 9.0]})
    by = frame.dp.group_by("w", keys=["A", "B"])
    result = by.agg(n=dpf.count("x"), m=other, epsilon=1, denoise=None, ledger=ledger)
    assert len(result.dp.provenance["measures"]["n"]["totals"]) == 1
    assert half_widths(forms(result, "n"), 0.95) == pytest.approx(result["n_error"].to_numpy(), abs=0.5)
    doubled = dpf.combine("a.n * 2", {"a": result})["value"]
    assert [round(value / 2) for value in doubled] == result["n"].to_list()
    assert result.dp.select("n").dp.total()["n"][0] == pytest.approx(doubled.sum() / 2)
    assert (dpf.compare(result, "B", "A")["statistic"] == "n").any()


def test_a_quotient_whose_divisor_may_be_0_has_no_finite_end(ledger):
    """The angle of an infinite slope is computed in two ways that differ by a rounding error."""
    frame, keys = pl.DataFrame({"w": ["A"]}), list(map(str, range(200)))
    price = {"delta": 1e-6, "mechanism": "gaussian", "denoise": None, "ledger": ledger}
    one, other = (frame.dp.group_by("w", keys=keys).count(epsilon=0.1, **price) for _ in range(2))
    for expression in ("a.count / b.count", "b.count / (a.count + b.count)", "100 * (b.count - a.count) / a.count"):
        found = dpf.combine(expression, {"a": one, "b": other})
        ends = np.stack([found["value_low"].to_numpy(), found["value_high"].to_numpy()])
        assert np.isinf(ends).any()
        assert np.abs(ends[np.isfinite(ends)]).max(initial=0.0) < 1e9


def test_expressions_are_as_deep_as_python_follows():
    results = {"a": pl.DataFrame({"n": [1, 2]}).dp.count(epsilon=1, denoise=None, ledger=dpf.Ledger(epsilon=1))}
    assert dpf.combine("+".join(["a"] * 100), results)["value"][0] == 100 * results["a"]["count"][0]
    for long in ("+".join(["a"] * 300), "-" * 990 + "a", "a" + "/2" * 101):
        with pytest.raises(dpf.InvalidArgument, match="nest at most 100 operations"):
            dpf.combine(long, results)


def test_of_no_group_nothing_is_computed():
    """All discovered keys may stay below the threshold, so that no group is shown."""
    ledger = dpf.Ledger(epsilon=9, delta=0.1, keys_delta=0.01)
    frame = pl.DataFrame({"w": ["A"], "y": [1.0]}).clear()
    asked = {"n": dpf.count(), "s": dpf.sum("y", bounds=(-9, 9)), "m": dpf.mean("y", bounds=(-9, 9))}
    empty = frame.dp.group_by("w", keys=dpf.discover(delta=1e-9)).agg(asked, epsilon=3, delta=1e-6, ledger=ledger)
    assert not len(empty)
    for computed in (empty.dp.total, lambda: empty.dp.total("w"), empty.dp.share, empty.dp.change):
        with pytest.raises(dpf.InvalidArgument, match="result with rows, and no group is shown"):
            computed()
    with pytest.raises(dpf.InvalidArgument, match="result with rows, and no group is shown"):
        dpf.combine("a.s", {"a": empty})


def test_steps_between_keys_that_were_found_are_refused():
    """A key between two discovered ones may be missing, and the result does not show it."""
    frame = pl.DataFrame({"year": [2019, 2021, 2022] * 500, "x": [1.0] * 1_500})
    ledger = dpf.Ledger(epsilon=9, delta=0.1, keys_delta=0.01)
    by = frame.dp.group_by("year", keys=dpf.discover(delta=1e-6))
    found = by.agg(n=dpf.count(), s=dpf.sum("x", bounds=(0, 2)), epsilon=5, ledger=ledger).dp.select("s")
    for steps in (found.dp.difference, found.dp.change, lambda: found.dp.rolling(2)):
        with pytest.raises(dpf.InvalidArgument, match="along declared keys, and those of year were discovered"):
            steps()
    assert len(found.dp.cumulative()) == 3


def test_what_was_not_adjusted_is_unbiased_without_a_noisy_column():
    """Where "auto" chose no adjustment, keep_noisy=False removed nothing."""
    frame = pl.DataFrame({"w": list("AB") * 500, "y": [9.0, -9.0] * 500})
    by = frame.dp.group_by("w", keys=["A", "B"])
    price = {"epsilon": 50, "keep_noisy": False, "ledger": dpf.Ledger(epsilon=99)}
    kept = by.sum("y", bounds=(-9, 9), **price)
    (step,) = kept.dp.provenance["measures"]["y_sum"]["denoise"]
    assert (step["chose"], kept.columns) == ("none", ["w", "y_sum", "y_sum_error"])
    assert kept.dp.total()["y_sum"][0] == pytest.approx(kept["y_sum"].sum())


def test_of_noise_that_is_nothing_nothing_is_left():
    assert half_width((), 0.0, 0.95) == 0.0
    assert half_widths(Linear(np.zeros(3), {}), 0.95).tolist() == [0.0] * 3


# Expressions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("a.n ** 2", "a.n if 1 else 2", "abs(a.n)", "__import__('os')", "a.n.real", "a['n']", "'x' * a", "a.n; 1", ""),
        *("a.n @ a.n", "lambda: 1", "a.n < 2", "[a.n]", "True * a.n", "1j * a.n", "a.n +", "1 if a else 2", "a:=1"),
        "(" * 300 + "a" + ")" * 300,
    ],
)
def test_what_is_no_arithmetic_is_refused_and_never_run(text, ledger):
    result = pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).agg(n=dpf.count(), epsilon=1, ledger=ledger)
    with pytest.raises((dpf.InvalidArgument, dpf.MissingArgument), match="expression must"):
        dpf.combine(text, {"a": result})


def test_arithmetic_is_that_of_numbers(engine, ledger):
    frame = engine(STAYS)
    a, b = (frame.dp.group_by("ward", keys=WARDS).count(epsilon=9, denoise=None, ledger=ledger) for _ in range(2))
    x, y = values(a, "count"), values(b, "count")
    cases = {
        "a + b": x + y,
        "-(a - 2 * b) / 4": -(x - 2 * y) / 4,
        "100 * (b / a - 1)": 100 * (y / x - 1),
        "a / (a + b)": x / (x + y),
        "1 / (a / b)": y / x,
        "a * b": x * y,
        "a / b + b / a": x / y + y / x,
        "a / b / 2 - 1": x / y / 2 - 1,
        "a * b / b": x * y / y,
    }
    for text, expected in cases.items():
        found = dpf.combine(text, {"a": a, "b": b})
        assert np.allclose(values(found, "value"), expected), text
        if "value_low" in found.columns:
            assert (values(found, "value_low") <= expected).all()
            assert (values(found, "value_high") >= expected).all()
    assert list(found.columns) == ["ward", "value", "value_low", "value_high", "covers"]
    assert type(found) is type(a)


def test_quotients_by_one_divisor_are_not_taken_as_independent(ledger):
    counts = {name: pl.DataFrame(STAYS).dp.count(epsilon=1, denoise=None, ledger=ledger) for name in "abc"}
    product = dpf.combine("(a / c) * (b / c)", counts, confidence=0.5)
    each = [dpf.combine(text, counts, confidence=0.75) for text in ("a / c", "b / c")]
    for end in ("value_low", "value_high"):
        assert product[end][0] == pytest.approx(each[0][end][0] * each[1][end][0])


def test_a_divisor_that_may_be_nothing_gives_everything(ledger):
    empty = pl.DataFrame({"x": pl.Series([], dtype=pl.Int64)})
    a, b = (empty.dp.count(epsilon=0.1, denoise=None, ledger=ledger) for _ in range(2))
    found = dpf.combine("a / b", {"a": a, "b": b})
    low, high = found["value_low"][0], found["value_high"][0]
    if abs(b["count"][0]) <= b["count_error"][0]:
        assert (low, high) == (-math.inf, math.inf)
    assert low <= high


def test_keys_are_matched_in_any_order_and_library(ledger):
    pandas = pytest.importorskip("pandas")
    frame = pl.DataFrame(STAYS)
    a = frame.dp.group_by("ward", keys=["C", "A"]).count(epsilon=1, denoise=None, ledger=ledger)
    b = pandas.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    found = dpf.combine("b - a", {"a": a, "b": b[::-1]})
    assert found["ward"].to_list() == ["C", "A"]
    both = dict(zip(b["ward"], b["count"], strict=True))
    assert found["value"].to_list() == [both["C"] - a["count"][0], both["A"] - a["count"][1]]
    assert found.dp.provenance["notes"][0] == "1 key that only some of the results have is left out"
    compared = dpf.compare(b, a, samples="different")
    assert compared["ward"].tolist() == ["A", "C"]
    assert compared.dp.provenance["notes"][0] == found.dp.provenance["notes"][0]
    assert "1 key that only some of the results have is left out" in compared.dp.statement()


def test_a_single_number_stands_beside_every_row(engine, ledger):
    frame = engine(STAYS)
    all_of_them = frame.dp.count(epsilon=9, denoise=None, ledger=ledger)
    wards = frame.dp.group_by("ward", keys=WARDS).count(epsilon=9, denoise=None, ledger=ledger)
    found = dpf.combine("100 * w / n", {"w": wards, "n": all_of_them})
    assert list(found["ward"]) == WARDS


# Refusals -----------------------------------------------------------------------------------------------------------


def refused(match, ask, error=dpf.InvalidArgument):
    with pytest.raises(error, match=match):
        ask()


def test_numbers_without_a_known_law_are_refused_by_name(ledger):
    frame = pl.DataFrame(STAYS)
    wards = frame.dp.group_by("ward", keys=WARDS)
    price = {"epsilon": 1, "ledger": ledger}
    adjusted = wards.count(**price)
    hidden = wards.count(keep_noisy=False, **price)
    refused("use count_noisy", lambda: dpf.combine("a.count", {"a": adjusted}))
    refused("keep_noisy=False", lambda: dpf.combine("a", {"a": hidden}))
    refused("there is none. Did you mean 'count_noisy'", lambda: dpf.combine("a.cuont", {"a": adjusted}))
    refused("not the end or the size", lambda: dpf.combine("a.count_error", {"a": adjusted}))
    refused("is none. Did you mean", lambda: dpf.combine("jan - fbe", {"jan": adjusted, "feb": adjusted}))
    refused("rounded", lambda: dpf.combine("a", {"a": adjusted.dp.round(-1)}))
    median = wards.median("cost", bounds=(0, 10), **price)
    refused("a quantile", lambda: dpf.combine("a", {"a": median}))
    spread = wards.std("cost", bounds=(0, 10), **price)
    refused("is a std", lambda: dpf.combine("a", {"a": spread}))
    top = frame.dp.top_k("ward", k=2, categories=WARDS, counts=True, **price)
    refused("top-k", lambda: dpf.combine("a", {"a": top}))
    two = wards.agg(n=dpf.count(), m=dpf.count("cost"), **price)
    refused("must name a column of a", lambda: dpf.combine("a", {"a": two}))
    refused("numbers alone", lambda: dpf.combine("1 + 1", {"a": two}), dpf.MissingArgument)
    refused("must be a string", lambda: dpf.combine(1, {"a": two}), dpf.InvalidType)
    refused("must be a dict", lambda: dpf.combine("a", [two]), dpf.InvalidType)
    refused("must carry its provenance", lambda: dpf.combine("a", {"a": pl.DataFrame(two)}), dpf.NoProvenance)
    refused("some were changed", lambda: dpf.combine("a.n_noisy", {"a": altered(two)}))
    refused("computed from some already", lambda: dpf.combine("a", {"a": adjusted.dp.total()}))
    refused("joins 2", lambda: dpf.combine("a", {"a": dpf.concat([adjusted, adjusted])}))
    refused("divide by 0", lambda: dpf.combine("a / 0", {"a": adjusted}))
    refused("confidence must", lambda: dpf.combine("a", {"a": adjusted}, confidence=1.0))
    refused("on must", lambda: dpf.combine("a", {"a": adjusted}, on="month"))
    both = frame.dp.group_by("ward", "month", keys=KEYS).count(**price)
    refused("rows of all results but one", lambda: dpf.combine("a - b", {"a": both, "b": both}, on="ward"))
    refused("b also has .'ward'", lambda: dpf.combine("a - b", {"a": adjusted, "b": adjusted}, on=[]))
    refused("the same keys", lambda: dpf.combine("a - b", {"a": adjusted, "b": both}))
    other = frame.dp.group_by("ward", keys=["X"]).count(**price)
    refused("keys in common", lambda: dpf.combine("a - b", {"a": adjusted, "b": other}))


def altered(frame):
    from dpframe.frames import build

    return build.attach(frame.with_columns(n=pl.col("n") + 1), build.record_of(frame))


def test_the_counts_that_chose_their_groups_are_refused(ledger):
    frame = pl.DataFrame({"ward": ["A"] * 500 + ["B"] * 400, "person": range(900)})
    ledger = dpf.Ledger(epsilon=9, delta=1e-3, unit="person", accounting="basic")
    found = frame.dp.group_by("ward", keys=dpf.discover(delta=1e-4, max_keys=3)).agg(
        people=dpf.n_units(), n=dpf.count(), epsilon=2, max_rows=1, denoise=None, ledger=ledger
    )
    refused("groups were chosen", lambda: dpf.combine("a.people", {"a": found}))
    assert len(dpf.combine("a.n", {"a": found})) == 2


def test_old_records_combine_with_themselves_alone(ledger):
    from dpframe.frames import build

    result = pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    record = {name: fact for name, fact in build.record_of(result).items() if name != "release"}
    old = build.attach(result.clone(), record)
    assert values(dpf.combine("a - b", {"a": old, "b": old}), "value_error").tolist() == [0.0] * 3
    refused("0.3 or newer", lambda: dpf.combine("a - b", {"a": old, "b": result}))


# Totals and steps ---------------------------------------------------------------------------------------------------


def test_totals_shares_and_steps_are_those_of_the_numbers(engine, ledger):
    frame = engine(STAYS)
    cells = frame.dp.group_by("ward", "month", keys=KEYS).count(epsilon=9, denoise=None, ledger=ledger)
    table = values(cells, "count").reshape(3, 4)
    assert np.allclose(values(cells.dp.total("ward"), "count"), table.sum(axis=1))
    assert np.allclose(values(cells.dp.total(["month"]), "count"), table.sum(axis=0))
    assert np.allclose(values(cells.dp.total(), "count"), table.sum())
    assert np.allclose(values(cells.dp.share("ward"), "count"), (table / table.sum(axis=1, keepdims=True)).ravel())
    line = frame.dp.group_by("month", keys=MONTHS).count(epsilon=9, denoise=None, ledger=ledger)
    series = values(line, "count")
    assert np.allclose(values(line.dp.cumulative(), "count"), np.cumsum(series))
    assert np.allclose(values(line.dp.rolling(2), "count"), (series[1:] + series[:-1]) / 2)
    assert np.allclose(values(line.dp.difference(2), "count"), series[2:] - series[:-2])
    assert np.allclose(values(line.dp.change(), "count"), 100 * (series[1:] / series[:-1] - 1))
    assert list(line.dp.change().columns) == ["month", "count", "count_low", "count_high", "covers"]
    assert list(line.dp.rolling(3)["month"]) == [3, 4]


def test_lines_run_along_the_ordered_key_within_groups(engine, ledger):
    axes = dpf.bins("cost", [0, 3, 6, 10])
    cells = engine(STAYS).dp.group_by(axes, "ward", keys=WARDS).count(epsilon=9, denoise=None, ledger=ledger)
    table = values(cells, "count").reshape(3, 3)
    assert np.allclose(values(cells.dp.cumulative(), "count").reshape(3, 3), np.cumsum(table, axis=0))
    assert np.allclose(values(cells.dp.difference(), "count").reshape(2, 3), np.diff(table, axis=0))
    two = engine(STAYS).dp.group_by("ward", "month", keys=KEYS).count(epsilon=1, ledger=ledger)
    refused("one key in order", two.dp.cumulative)
    refused("n must be at most", lambda: cells.dp.difference(3))
    refused("n must be a whole number", lambda: cells.dp.rolling(0))


def test_means_are_pooled_exactly(engine, ledger):
    wards = engine(STAYS).dp.group_by("ward", keys=WARDS)
    ask = {"m": dpf.mean("cost", bounds=(0, 10)), "p": dpf.proportion("month", value=1)}
    for price in ({"epsilon": 50}, {"epsilon": 50, "delta": 1e-6, "mechanism": "gaussian"}):
        result = wards.agg(ask, ledger=ledger, **price)
        whole = result.dp.total()
        assert abs(values(whole, "m")[0] - 4.25) < 0.2
        assert abs(values(whole, "p")[0] - 0.25) < 0.05
        assert values(whole, "m_low")[0] < values(whole, "m")[0] < values(whole, "m_high")[0]


@pytest.mark.long
def test_shares_and_pooled_means_are_within_what_is_possible():
    """The total of one group is its released mean; intervals of small groups cover at most the possible range."""
    frame = pl.DataFrame({"w": list("AABBBC") * 2, "x": [0.0, 5.0, 5.0, 5.0, 5.0, 0.0] * 2, "ok": [True] * 12})
    possible = {"m": (0.0, 5.0), "p": (0.0, 1.0)}
    for seed in range(20):
        with seeded(seed):
            asked = frame.dp.group_by("w", keys=["A", "B", "C", "D"])
            own = dpf.Ledger(epsilon=10, checks=False)
            shares = asked.count(epsilon=0.5, denoise=None, ledger=own).dp.share()
            means = asked.agg(m=dpf.mean("x", bounds=(0, 5)), p=dpf.proportion("ok"), epsilon=1, ledger=own)
        assert shares["count_low"].min() >= 0.0
        assert shares["count_high"].max() <= 1.0
        alone = means.dp.total(by="w")
        for name, (least, most) in possible.items():
            assert alone[f"{name}_low"].min() >= least
            assert alone[f"{name}_high"].max() <= most
            assert alone[name].is_between(least, most).all()


def test_a_mean_beside_a_count_is_refused_with_the_count_to_select(engine, ledger):
    wards = engine(STAYS).dp.group_by("ward", keys=WARDS)
    result = wards.agg(n=dpf.count(), m=dpf.mean("cost", bounds=(0, 10)), epsilon=1, ledger=ledger)
    refused(r"m is a mean\. Write for instance \.dp\.select\('n'\)\.dp\.share\(\.\.\.\)", result.dp.share)
    assert len(result.dp.select("n").dp.share()) == 3
    refused("m is a mean. Write for instance dpf.combine", result.dp.select("m").dp.change)


def test_sum_of_a_result_names_total(engine, ledger):
    result = engine(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, ledger=ledger)
    refused(r"write \.dp\.total\(\)", lambda: result.dp.sum("count"), dpf.AlreadyReleased)


# Records ------------------------------------------------------------------------------------------------------------

SCHEMA = Path(__file__).parents[2] / "docs" / "derived.schema.json"


DERIVED = {
    "the total of a key": lambda cells, line, cube: cells.dp.total("ward"),
    "the total": lambda cells, line, cube: cells.dp.total(),
    "shares": lambda cells, line, cube: cells.dp.share("month"),
    "changes": lambda cells, line, cube: line.dp.change(),
    "rolling": lambda cells, line, cube: line.dp.rolling(2),
    "a quotient": lambda cells, line, cube: dpf.combine("a / b", {"a": line, "b": line}),
    "of subtotals": lambda cells, line, cube: dpf.combine("a - b", {"a": cube, "b": cube}),
}


@pytest.mark.parametrize("how", DERIVED)
def test_a_derived_result_says_where_it_comes_from_and_costs_nothing(engine, ledger, how, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("altair")
    cells = engine(STAYS).dp.group_by("ward", "month", keys=KEYS).count(epsilon=1, ledger=ledger, label="cells")
    line = engine(STAYS).dp.group_by("month", keys=MONTHS).count(epsilon=1, denoise=None, ledger=ledger)
    cube = engine(STAYS).dp.group_by("ward", "month", keys=KEYS).count(cube=True, epsilon=1, ledger=ledger)
    spent = ledger.spent
    result = DERIVED[how](cells, line, cube)
    facts = result.dp.provenance
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(facts)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["altered"] is False
    assert facts["cost"]["epsilon"] == 0.0
    assert facts["of"][0]["release"]
    result.dp.plot().to_dict()
    for kind in ("markdown", "html", "csv"):
        assert result.dp.table(kind)
    assert "at no cost" in result.dp.statement()
    result.dp.write_html(tmp_path / "x.html")
    result.dp.write_parquet(tmp_path / "x.parquet")
    for like in ("polars", "pandas") if engine.is_pandas else ("polars",):
        read = dpf.read_parquet(tmp_path / "x.parquet", like)
        assert read.dp.provenance == facts
        assert read.dp.statement() == result.dp.statement()
    assert ledger.spent == spent


def test_one_release_that_is_not_private_is_enough_for_a_result_that_is_not(ledger):
    def count():
        return pl.DataFrame(STAYS).dp.count(epsilon=1, denoise=None, ledger=ledger)

    private = count()
    with seeded(1):
        repeatable = count()
    for first, second in ((private, repeatable), (repeatable, private)):
        found = dpf.combine("a + b", {"a": first, "b": second})
        assert found.dp.provenance["warning"] == repeatable.dp.provenance["warning"]


def test_a_release_from_a_file_combines_as_the_release(engine, ledger, tmp_path):
    result = engine(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    result.dp.write_parquet(tmp_path / "x.parquet")
    read = dpf.read_parquet(tmp_path / "x.parquet", "polars")
    assert values(dpf.combine("a - b", {"a": result, "b": read}), "value_error").tolist() == [0.0] * 3
    assert list(read.dp.total()["count_error"]) == list(result.dp.total()["count_error"])


def test_what_was_changed_or_is_no_release_is_refused(engine, ledger):
    result = engine(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, ledger=ledger)
    whole = result.dp.total("ward")
    for name in ("round", "errors", "total", "share", "to_numpy"):
        refused("must be asked of a release", lambda name=name: getattr(whole.dp, name))
    if not engine.is_pandas:
        from dpframe.frames import build

        forged = build.attach(whole.with_columns(covers=pl.lit("population")), build.record_of(whole))
        refused("some were changed", forged.dp.plot)
        assert forged.dp.provenance["altered"] is True


def test_a_total_is_no_missing_key(ledger):
    frame = pl.DataFrame({"ward": ["A", "B", None, "A"] * 50})
    subtotals = frame.dp.group_by("ward", keys=["A", "B"]).count(epsilon=9, rollup=True, denoise=None, ledger=ledger)
    cells = frame.dp.group_by("ward", keys=["A", None]).count(epsilon=9, denoise=None, ledger=ledger)
    both = dpf.combine("a - b", {"a": subtotals, "b": cells})
    assert both["ward"].to_list() == ["A"]
    assert both.dp.provenance["notes"][0].startswith("3 keys")
    again = dpf.combine("a - b", {"a": subtotals, "b": subtotals})
    assert again["ward"].to_list() == ["A", "B", None]


def test_factors_that_leave_what_floats_hold_are_refused(ledger):
    a = pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=1, denoise=None, ledger=ledger)
    tiny = "a" + " / 9e18" * 20
    many = "*".join(["(a*a*a)"] * 60)
    for expression in ("1e-320 * a", "a / 1e-320", "9e18 * " * 20 + "a", tiny, "a / 1e-200 / 1e-200", many):
        with pytest.raises(dpf.InvalidArgument, match=r"factors from 1e-100 to 1e\+100"):
            dpf.combine(expression, {"a": a})
    assert values(dpf.combine("1e-60 * a", {"a": a}), "value_error")[0] > 0.0


def test_no_column_is_also_the_end_of_an_interval(ledger):
    wards = pl.DataFrame({"ward": ["A", "A_low", "B"] * 50, "cost": [1.0, 2.0, 3.0] * 50}).dp.group_by(
        "ward", keys=["A", "A_low", "B"]
    )
    with pytest.raises(dpf.InvalidArgument, match="'n_low' occurs twice"):
        wards.agg(n=dpf.count(), n_low=dpf.count("cost"), epsilon=9, ledger=ledger)
    result = wards.agg(n=dpf.count(), covers=dpf.count("cost"), epsilon=9, denoise=None, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match="keep names different, and two would be 'n_high'"):
        result.dp.relabel(columns={"covers": "n_high"})
    with pytest.raises(dpf.InvalidArgument, match="'A_low' would be the end of an interval"):
        result.dp.select("n").dp.wide("ward")
    with pytest.raises(dpf.InvalidArgument, match="must not have a column 'covers'"):
        result.dp.total()
    assert result.dp.relabel(columns={"covers": "known"}).dp.total().columns[2:4] == ["known", "known_error"]


def test_names_are_those_that_are_written(ledger):
    composed, decomposed = "n\u00e9", "ne\u0301"
    wards = pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS)
    release = {"epsilon": 9, "denoise": None, "ledger": ledger}
    one = wards.agg(**{decomposed: dpf.count()}, **release)
    for name in (composed, decomposed):
        found = dpf.combine(f"{name}.{name}", {decomposed: one})
        assert found["value"].to_list() == one[decomposed].to_list()
    both = wards.agg(**{composed: dpf.count(), decomposed: dpf.sum("cost", bounds=(0, 9))}, **release)
    with pytest.raises(dpf.InvalidArgument, match="are all written so"):
        dpf.combine(f"a.{decomposed}", {"a": both})
    with pytest.raises(dpf.InvalidArgument, match="are all written so"):
        dpf.combine(decomposed, {composed: one, decomposed: both})


def test_numbers_of_things_that_groups_share_have_no_total():
    people = dpf.Ledger(epsilon=1e9, unit="person", accounting="basic")
    frame = pl.DataFrame({**STAYS, "person": [place % 60 for place in range(200)]})
    by = frame.dp.group_by("ward", keys=WARDS)
    ask = {"epsilon": 1e6, "denoise": None, "ledger": people}
    asked = {
        "people": dpf.n_units(),
        "months": dpf.n_distinct("month", max_values=4),
        "n": dpf.count(),
        "cost": dpf.sum("cost", unit_bounds=(0, 100)),
    }
    many, one = (by.agg(asked, **ask, max_rows=9, max_groups=groups) for groups in (3, 1))
    shared = r"one person may be in several groups of people\. Release it with max_groups=1, or by fewer keys; or leave"
    for verb in ("total", "share", "cumulative"):
        with pytest.raises(dpf.InvalidArgument, match=rf"^{verb} must be of numbers that add up, and {shared}"):
            getattr(many.dp, verb)()
        for result in (many, one):
            with pytest.raises(
                dpf.InvalidArgument, match=r"two groups of months may have the same values\. Release it"
            ):
                getattr(result.dp.select("months").dp, verb)()
        getattr(many.dp.select("n", "cost").dp, verb)()  # the way out: bounded row contributions add up
        getattr(one.dp.select("people").dp, verb)()
        getattr(many.dp.filter({"ward": ["A"]}).dp, verb)()  # a single group
    assert values(many.dp.select("cost").dp.total(), "cost")[0] == pytest.approx(sum(STAYS["cost"]), abs=1)
    averages = many.dp.rolling(2)  # an average, not a number of people
    assert values(averages, "people").tolist() == pytest.approx(
        [(values(many, "people")[at] + values(many, "people")[at + 1]) / 2 for at in (0, 1)]
    )
    many.dp.difference()


def test_a_release_that_has_two_names_is_one(ledger):
    first, second = (
        pl.DataFrame(STAYS).dp.group_by("ward", keys=WARDS).count(epsilon=epsilon, denoise=None, ledger=ledger)
        for epsilon in (1, 1)
    )
    one = dpf.combine("a - b", {"a": first, "b": first.dp.filter({"ward": ["A", "B"]})})
    assert "computed from 1 release (epsilon 1), at no cost" in one.dp.statement()
    assert "computed from 2 releases (epsilon 1, each)" in dpf.combine("a-b", {"a": first, "b": second}).dp.statement()
    plans = {name: pl.DataFrame(STAYS).dp.preview.count(denoise=None) for name in ("a", "b")}
    parts = dpf.combine("a - b", dpf.release_together(plans, epsilon=2, ledger=ledger))
    assert "computed from 2 releases" in parts.dp.statement()  # each took a part of the budget
    stream = dpf.Stream(
        "t", statistic=dpf.count(), time="month", periods=MONTHS, epsilon=1, mechanism="laplace", ledger=ledger
    )
    periods = {f"p{month}": stream.release(pl.DataFrame(STAYS), month) for month in MONTHS[:2]}
    said = dpf.combine("p2.total - p1.total", periods).dp.statement()
    assert "computed from 2 periods of one release (epsilon 1 in all), at no cost" in said
    periods["whole"] = pl.DataFrame(STAYS).dp.count(epsilon=1, denoise=None, ledger=ledger)
    said = dpf.combine("p2.total - p1.total + whole", periods).dp.statement()
    assert "computed from 2 releases (epsilon 1, each), at no cost" in said


def test_a_result_without_rows_has_nothing_in_order():
    ledger = dpf.Ledger(epsilon=9, delta=1e-3, unit="person", accounting="basic")
    frame = pl.DataFrame({"ward": ["A"], "person": [1]})
    empty = frame.dp.group_by("ward", keys=dpf.discover(delta=1e-9)).agg(
        n=dpf.count(), epsilon=1, max_rows=1, max_groups=1, denoise=None, ledger=ledger
    )
    assert not len(empty)  # one unit, whose group is shown with a chance of at most 1e-9
    for verb, asked in {"cumulative": (), "rolling": (1,), "difference": (), "change": ()}.items():
        with pytest.raises(dpf.InvalidArgument, match=rf"^{verb} must be asked of a result with rows, and no group is"):
            getattr(empty.dp, verb)(*asked)


def test_what_each_release_protects_is_named_where_units_differ(tmp_path):
    rows = pl.DataFrame({"who": [1, 1, 2, 2] * 50, "g": ["x", "y"] * 100})
    people = dpf.Ledger(epsilon=9, unit="who")

    def asked(ledger, **more):
        grouped = rows.dp.group_by("g", keys=["x", "y"])
        return grouped.agg(n=dpf.count(), epsilon=1, denoise=None, checks=False, ledger=ledger, **more)

    a, b = asked(people, max_rows=2, max_groups=2), asked(dpf.Ledger(epsilon=9))
    found = dpf.combine("a.n / b.n", {"a": a, "b": b})
    said = found.dp.statement(unit="patient")
    assert "whose noise protects each who in a and each row in b; so" in said
    value, add = "each value of 'who' (at most {} in each of 2 groups at full weight), {}", "add-remove neighbors"
    full = f"protects {value.format('2 rows', add)} (in a); each row, {add} (in b)"
    assert full in found.dp.table("markdown")
    if find_spec("altair"):
        assert "each who in a and each row in b protected" in found.dp.plot().to_dict()["title"]["subtitle"]
    found.dp.write_html(tmp_path / "page.html", charts=False)
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.count(full.removeprefix("protects ")) > 2
    fewer = dpf.combine("a.n / b.n", {"a": a, "b": asked(people, max_rows=1, max_groups=2)})
    assert "each patient; so" in fewer.dp.statement(unit="patient")
    assert "at most 1 row in each of 2 groups at full weight), add-remove neighbors (in b)" in fewer.dp.table(
        "markdown"
    )
    same = dpf.combine("a.n - b.n", {"a": b, "b": asked(dpf.Ledger(epsilon=9))})
    assert "protects each row, add-remove neighbors;" in same.dp.table("markdown")


def test_what_clipping_did_to_a_release_is_not_said_of_what_is_computed_of_it():
    """Clipped values of B lower its sum and raise the share of A; the effect on a difference may have any sign."""
    frame = pl.DataFrame({"g": ["A", "B"] * 500, "x": [10.0, 100.0] * 500}).dp.group_by("g", keys=["A", "B"])
    with pytest.warns(dpf.BoundsWarning, match="this lowers x_sum"):
        found = frame.sum("x", bounds=(0, 20), epsilon=9, denoise=None, ledger=dpf.Ledger(epsilon=9))
    lowers = "of values of x are above 20, clipped: this lowers x_sum, and its margin of error does not cover that"
    unknown = "The size and direction of the effect on this result are unknown"
    for made in (found.dp.share(), found.dp.difference(), found.dp.change()):
        assert re.search(f"Note: in the release, [^:]*{lowers}.*{unknown}", made.dp.statement())
    combined = dpf.combine("a.x_sum / b.x_sum", {"a": found, "b": found}).dp.statement()
    assert all(re.search(f"Note: in {name}, [^:]*{lowers}", combined) for name in "ab")
    for made in (found.dp.total(), found.dp.cumulative(), found.dp.rolling(2)):  # these are too low where the sums are
        assert lowers in made.dp.statement()
        assert unknown not in made.dp.statement()


def test_what_bounds_did_to_a_statistic_is_said_of_what_is_computed_of_it_alone():
    rows = pl.DataFrame({"g": ["A", "B"] * 500, "h": ["A", "A", "B", "B"] * 250, "x": [10.0, 100.0] * 500})
    ledger, statistics = dpf.Ledger(epsilon=9), {"n": dpf.count(), "m": dpf.mean("x", bounds=(0, 20))}
    asked = {"epsilon": 1, "denoise": None, "population": True, "ledger": ledger}

    def released(*by):
        with pytest.warns(dpf.BoundsWarning, match="this lowers m"):
            return rows.dp.group_by(*by, keys={name: ["A", "B"] for name in by}).agg(**statistics, **asked)

    a, b, table = released("g"), released("g"), released("g", "h")
    both, counts = {"a": a, "b": b}, (a.dp.select("n"), b.dp.select("n"))
    for made in (
        dpf.combine("b.n - a.n", both),
        dpf.compare(*counts, samples="different"),
        table.dp.select("n").dp.chi2(),
    ):
        assert "lowers" not in made.dp.statement()
    assert "lowers m" not in table.dp.select("n").dp.total().dp.statement()
    one = dpf.combine("2 * (b.m - b.n) / a.n", both).dp.statement()
    assert "Note: in b, " in one
    assert "Note: in a, " not in one
    assert "lowers m" in dpf.compare(a, b, samples="different").dp.statement()


def test_sums_over_keys_say_which_rows_are_in_none():
    """A release with bins, dates, levels or dpf.REST has this note already."""
    rows = pl.DataFrame({"g": ["A", "B", "C"] * 200, "h": [0, 1] * 300, "x": [1.0] * 600})
    asked = {"epsilon": 1, "denoise": None, "ledger": dpf.Ledger(epsilon=1e3, delta=1e-3, accounting="basic")}
    keys, undeclared = {"g": ["A", "B"], "h": [0, 1, 2]}, "rows with undeclared keys are in no total"

    def said(made):
        return [note for note in made.dp.provenance["notes"] if "undeclared" in note or "not shown" in note]

    g = rows.dp.group_by("g", keys=["A", "B"]).count(**asked)
    for made in (g.dp.total(), g.dp.share(), g.dp.cumulative()):
        assert said(made) == [undeclared]
        assert f"Note: {undeclared}." in made.dp.statement()
    for made in (g.dp.rolling(2), g.dp.difference(), g.dp.change(), g.dp.total(by="g")):
        assert said(made) == []
    rest = rows.dp.group_by("g", "h", keys={**keys, "g": ["A", dpf.REST]}).count(**asked)
    assert said(rest.dp.total(by="h")) == []
    assert said(rest.dp.total(by="g")) == said(rest.dp.total()) == [undeclared]
    assert said(rest.dp.filter({"h": 1}).dp.cumulative()) == []
    subtotals = rows.dp.group_by("g", "h", keys=keys).count(rollup=True, **asked).dp.total()
    assert said(subtotals) == []
    assert "subtotals are of the declared keys: rows of other keys are in none" in subtotals.dp.provenance["notes"]
    assert said(rows.dp.histogram("x", bins=[0, 2, 4], **asked).dp.total()) == []
    found = rows.dp.group_by("g", keys=dpf.discover(delta=1e-6)).sum("x", bounds=(0, 1), **asked)
    for made in (found.dp.total(), found.dp.share(), found.dp.cumulative()):
        assert said(made) == ["groups that are not shown are in no total"]


@dataclass(frozen=True)
class Balance(Clipped):
    """Rows above half of the bounds minus rows below it."""

    verb: ClassVar[str] = "balance"
    whole: ClassVar[bool] = True

    def totals(self) -> tuple[Total, ...]:
        """Return the one total."""
        row = RowFunction(((self.column, self.bounds),), _balance, (-1, 1), 1.0, f"balance of {self.column}")
        return (Total(row=row),)


def _balance(steps):
    return np.where(steps >= 2**29, 1, -1).astype("int64")


def test_shares_and_changes_of_a_statistic_of_both_signs_are_not_cut(ledger):
    frame = pl.DataFrame({"month": [1] * 500 + [2] * 900, "cost": [60.0] * 500 + [1.0] * 900})
    months = frame.dp.group_by("month", keys=[1, 2])
    result = months.agg(n=Balance("cost", (0, 64)), epsilon=50, ledger=ledger, denoise=None, checks=False)
    assert list(values(result.dp.share(), "n")) == pytest.approx([-1.25, 2.25])
    assert list(values(result.dp.share(), "n_low")) == pytest.approx([-1.25, 2.25])
    change = result.dp.change()
    assert values(change, "n_low")[0] == pytest.approx(-280.0)
    assert values(change, "n_high")[0] == pytest.approx(-280.0)
