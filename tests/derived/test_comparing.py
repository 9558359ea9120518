"""Comparisons of groups and of releases, intervals for populations, and tests of independence: values and refusals."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dpf
from dpframe.derived.comparing import _compared, _holm, told
from dpframe.derived.independence import _binomial, _multinomial, _steps
from dpframe.derived.population import UNTRACED, Estimate, counted, shared
from dpframe.derived.sums_of_noise import Law
from dpframe.display.pages import margin
from dpframe.display.rounding import end_words
from dpframe.frames import build, foreign
from dpframe.noise import insecure_bits
from dpframe.queries.mixing import uniforms
from dpframe.queries.row_functions import squares

CLEAR = 1e6  # an epsilon at which noise is negligible


def _ledger(unit: str | dpf.PrivacyUnit | None = None) -> dpf.Ledger:
    return dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic", unit=unit)


def _shop(rows: int = 4_000) -> pl.DataFrame:
    generator = np.random.default_rng(0)
    variant = np.repeat(["A", "B"], rows // 2)
    bought = generator.random(rows) < np.where(variant == "B", 0.2, 0.1)
    return pl.DataFrame({"variant": variant, "bought": bought, "spend": generator.exponential(40.0, rows)})


def _test(epsilon: float = CLEAR, shop: pl.DataFrame | None = None, **more):
    asked = {
        "n": dpf.count(),
        "p": dpf.proportion("bought"),
        "m": dpf.mean("spend", bounds=(0, 500)),
        "s": dpf.sum("spend", bounds=(0, 500)),
    }
    by = (_shop() if shop is None else shop).dp.group_by("variant", keys=["A", "B"])
    return by.agg(asked, **{"epsilon": epsilon, "population": True, "ledger": _ledger(), **more})


@pytest.fixture(scope="module")
def clear():
    return _test()


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_without_noise_intervals_are_those_of_textbooks(law):
    shop = _shop()
    errors = _test(mechanism=law, **({"delta": 1e-6} if law == "gaussian" else {})).dp.errors(
        cells=True, covers="population"
    )
    groups = shop.partition_by("variant", maintain_order=True)
    for row, group in zip(errors.iter_rows(named=True), groups, strict=True):
        n, hits, spend = len(group), int(group["bought"].sum()), group["spend"].to_numpy()
        garwood = stats.chi2.ppf(0.025, 2 * n) / 2, stats.chi2.ppf(0.975, 2 * n + 2) / 2
        assert (row["n_low"], row["n_high"]) == pytest.approx(garwood, rel=1e-4)
        pearson = stats.binomtest(hits, n).proportion_ci(method="exact")
        assert (row["p_low"], row["p_high"]) == pytest.approx(tuple(pearson), rel=1e-3)
        half = stats.t.ppf(0.975, n - 1) * spend.std(ddof=1) / np.sqrt(n)
        assert (row["m_low"], row["m_high"]) == pytest.approx((spend.mean() - half, spend.mean() + half), rel=1e-3)
        limits = _fay_and_feuer(spend.sum(), (spend**2).sum(), 500.0)
        assert (row["s_low"], row["s_high"]) == pytest.approx(limits, rel=1e-3)


def _fay_and_feuer(total: float, squares: float, most: float) -> tuple[float, float]:
    """Return the limits of a weighted sum of Poisson variables (equation 6 of their paper of 1997)."""
    more, more_squares = total + most, squares + most**2
    low = squares / (2.0 * total) * stats.chi2.ppf(0.025, 2.0 * total**2 / squares)
    return low, more_squares / (2.0 * more) * stats.chi2.ppf(0.975, 2.0 * more**2 / more_squares)


def test_sums_of_the_bound_are_as_sure_as_their_count():
    """Each value equals the bound, so the limits are Garwood's for the number of values; losses mirror them."""
    rows = pl.DataFrame({"ward": ["A"] * 3 + ["B"] * 40, "paid": [5.0] * 43, "lost": [-5.0] * 43})
    asked = {
        "paid": dpf.sum("paid", bounds=(0, 5)),
        "lost": dpf.sum("lost", bounds=(-5, 0)),
        "either": dpf.sum("paid", bounds=(-5, 5)),
    }
    by = rows.dp.group_by("ward", keys=["A", "B", "C"])
    errors = by.agg(asked, epsilon=CLEAR, population=True, denoise=None, ledger=_ledger()).dp.errors(
        cells=True, covers="population"
    )
    for row, n in zip(errors.iter_rows(named=True), (3, 40, 0), strict=True):
        low, high = stats.chi2.ppf(0.025, 2 * n) / 2 if n else 0.0, stats.chi2.ppf(0.975, 2 * n + 2) / 2
        assert (row["paid_low"], row["paid_high"]) == pytest.approx((5.0 * low, 5.0 * high), rel=1e-3, abs=0.05)
        assert (row["lost_low"], row["lost_high"]) == pytest.approx((-5.0 * high, -5.0 * low), rel=1e-3, abs=0.05)
        farther = 5.0 * (high - n)
        assert row["either_interval"] == pytest.approx(farther, rel=1e-3, abs=0.05)


def test_intervals_of_a_population_hold_the_noise():
    result = _test(0.1, denoise=None)  # where the sampling error is far smaller than the noise
    table, people = (result.dp.errors(covers=covers)["interval"].to_list() for covers in ("table", "population"))
    assert all(wide >= narrow for wide, narrow in zip(people, table, strict=True)), (table, people)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_intervals_of_a_population_hold_those_of_the_noise_in_small_groups(law):
    """The margin of a mean is the farther end for both sides, though its noise reaches less far to one of them."""
    groups = 60
    rows = pl.DataFrame({"part": [*range(groups)] * 30, "x": [float(row % 50) for row in range(30 * groups)]})
    asked = {
        "n": dpf.count(),
        "p": dpf.proportion("x", value=0.0),
        "m": dpf.mean("x", bounds=(0, 50)),
        "s": dpf.sum("x", bounds=(0, 50)),
        "d": dpf.sum("x", bounds=(-50, 50)),
    }
    more = {"mechanism": "gaussian", "delta": 1e-6} if law == "gaussian" else {}
    by = rows.dp.group_by("part", keys=range(groups))
    found = by.agg(asked, epsilon=2.0, denoise=None, population=True, ledger=_ledger(), **more)
    table, people = (found.dp.errors(cells=True, covers=covers) for covers in ("table", "population"))
    for name in asked:
        least = -np.inf if name == "d" else 0.0  # the noise of a count may reach below, where no population has any
        assert (people[f"{name}_low"] <= np.maximum(table[f"{name}_low"], least) + 1e-9).all(), name
        assert (people[f"{name}_high"] >= table[f"{name}_high"] - 1e-9).all(), name
        assert (people[f"{name}_interval"] >= table[f"{name}_interval"] - 1e-9).all(), name


def test_differences_are_first_minus_second(clear):
    found = dpf.compare(clear, "B", "A")
    back = dpf.compare(clear, "A", "B")
    assert found.columns == ["statistic", "effect", "low", "high", "p_value", "covers"]
    assert found["statistic"].to_list() == ["n", "p", "m", "s"]
    assert set(found["covers"]) == {"population"}
    assert found["effect"].to_list() == pytest.approx([-value for value in back["effect"]])
    assert found["low"].to_list() == pytest.approx([-value for value in back["high"]])
    assert found["p_value"].to_list() == pytest.approx(back["p_value"].to_list())
    shop = _shop()
    means = [shop.filter(variant=group)["spend"].mean() for group in ("B", "A")]
    mean = found.filter(statistic="m")
    welch = stats.ttest_ind(*(shop.filter(variant=group)["spend"] for group in ("B", "A")), equal_var=False)
    assert mean["effect"][0] == pytest.approx(means[0] - means[1], abs=1e-3)
    assert mean["p_value"][0] == pytest.approx(welch.pvalue, rel=0.03)
    assert found.filter(statistic="p")["p_value"][0] == 1e-6


def test_shares_that_noise_moved_beyond_0_and_1_keep_an_interval():
    def share(middle):
        reach = np.array([0.003]), np.array([0.003])
        value = np.clip([middle], 0.0, 1.0)
        return Estimate(value, np.array([middle]), lambda _: reach, lambda _: reach, 0.0, 1.0, np.array([True]))

    near, far = share(1.008), share(-0.006)
    effect, low, high, _ = _compared(near, far, 0.95)
    assert (effect[0], high[0]) == (1.0, 1.0)
    assert low[0] == pytest.approx(1.0 - 0.006)
    assert [end[0] for end in near.limits(0.95)] == pytest.approx([1.0 - 0.003 * np.sqrt(2.0), 1.0])
    assert [end[0] for end in far.limits(0.95)] == pytest.approx([0.0, 0.003 * np.sqrt(2.0)])
    reach, value = (np.array([10.0]), np.array([12.0])), np.array([-16.0])
    count = Estimate(value, value, lambda _: reach, lambda _: reach, 0.0, np.inf, np.array([True]))
    assert [end[0] for end in count.limits(0.95)] == pytest.approx([-16.0, 12.0 * np.sqrt(2.0)])  # around 0
    # 300 pairs of proportions 0 and 1: one interval in a hundred had no width
    pairs = pl.DataFrame({"pair": np.repeat(range(600), 300) // 2, "all": np.repeat([False, True] * 300, 300)})
    by = pairs.dp.group_by("pair", "all", keys={"pair": range(300), "all": [False, True]})
    with insecure_bits(3):
        shares = by.proportion("all", epsilon=0.5, population=True, denoise=None, ledger=_ledger())
    found, each = dpf.compare(shares, True, False, by="all"), shares.dp.errors(cells=True, covers="population")
    assert (found["low"] < found["high"] - 1e-3).all()
    assert (each["all_proportion_low"] < each["all_proportion_high"] - 1e-3).all()


@pytest.mark.parametrize("confidence", [0.5, 0.95, pytest.param(0.9, marks=pytest.mark.slow), 0.999])
@pytest.mark.parametrize("epsilon", [5.0, pytest.param(0.3, marks=pytest.mark.slow), CLEAR])
def test_p_values_agree_with_intervals(confidence, epsilon):
    with insecure_bits(5):  # seeded: one of two thousand comparisons lies at the edge
        found = dpf.compare(_test(epsilon), "B", "A", confidence=confidence)
    for row in found.iter_rows(named=True):
        outside = row["low"] > 0.0 or row["high"] < 0.0
        assert outside == (row["p_value"] < 1.0 - confidence), row
        assert row["low"] <= row["effect"] <= row["high"]


def test_two_results_of_different_people():
    rows = _shop()
    later, earlier = (frame.dp.count(epsilon=5.0, ledger=_ledger()) for frame in (rows, rows.head(3_000)))
    found = dpf.compare(later, earlier, samples="different")
    assert found["effect"][0] == later["count"][0] - earlier["count"][0]
    assert found.dp.provenance["kind"] == "compare"
    assert len(found.dp.provenance["of"]) == 2
    assert found["p_value"][0] == 1e-6


@pytest.mark.parametrize(
    ("asked", "other", "said"),
    [
        (dpf.count(), dpf.count(where={"bought": True}), r"its where is None and 'bought is True'"),
        (
            dpf.mean("spend", bounds=(0, 500)),
            dpf.mean("spend", bounds=(0, 500), where={"bought": True}),
            r"its where is None and 'bought is True'",
        ),
        (dpf.sum("spend", bounds=(0, 500)), dpf.sum("spend", bounds=(0, 400)), r"its bounds is \[0\.0, 500\.0\] and"),
        (dpf.count(), dpf.count("spend"), r"its column is None and 'spend'"),
        (
            dpf.mean("spend", bounds=(0, 500)),
            dpf.mean("spend", bounds=(0, 500), missing="midpoint"),
            r"x must have missing='drop' for dpf\.compare",
        ),
    ],
)
def test_different_statistics_of_two_results_are_not_compared(asked, other, said):
    one, two = (_shop().dp.agg(x=each, epsilon=1.0, ledger=_ledger(), checks=False) for each in (asked, other))
    with pytest.raises(dpf.InvalidArgument, match=said):
        dpf.compare(one, two, samples="different")
    with pytest.raises(dpf.InvalidArgument):
        dpf.compare(two, one, samples="different")


@pytest.mark.parametrize("verb", ["count", "sum", "n_units", "unit_sum"])
def test_sizes_of_groups_that_their_sample_chose_tell_of_no_population(verb):
    """Discovery shows groups with many sampled rows, so their sizes are too high: intervals held in 4% of samples."""
    rows = pl.DataFrame({"person": range(400), "ward": ["A", "B"] * 200, "cost": [5.0] * 400})
    asked = {
        "count": dpf.count(),
        "sum": dpf.sum("cost", bounds=(0, 9)),
        "n_units": dpf.n_units(),
        "unit_sum": dpf.sum("cost", unit_bounds=(0, 9)),
    }[verb]
    ledger = dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic", unit="person")
    by = rows.dp.group_by("ward", keys=dpf.discover(delta=1e-6))
    price = {"epsilon": 50.0, "delta": 1e-5, "max_groups": 1, "max_rows": 1, "checks": False, "ledger": ledger}
    with pytest.raises(
        dpf.InvalidArgument, match=r"must be of declared groups for population=True, and these were fou"
    ):
        by.agg(s=asked, population=True, **price)
    assert not len(ledger.to_frame())
    found = by.agg(s=asked, m=dpf.mean("cost", bounds=(0, 9)), **price)
    for refused in (
        lambda: found.dp.errors(covers="population"),
        lambda: dpf.compare(found, "A", "B"),
        lambda: found.dp.select("s").dp.plot(covers="population"),
    ):
        with pytest.raises(
            dpf.InvalidArgument, match=r"s must be of declared groups for .*covers='population'|compare"
        ):
            refused()
    means = found.dp.select("m")
    assert np.isfinite(means.dp.errors(covers="population")["interval"][0])
    assert dpf.compare(means, "A", "B")["statistic"].to_list() == ["m"]


def test_a_mean_with_values_in_place_of_missing_ones_tells_of_no_population():
    mean = _shop().dp.mean("spend", bounds=(0, 500), missing="midpoint", epsilon=1.0, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match=r"spend_mean must have missing='drop' for covers='population'"):
        mean.dp.errors(covers="population")


def test_results_of_different_units_are_not_compared():
    rows = _visits()
    by_row = rows.dp.count(epsilon=1.0, ledger=_ledger())
    by_person = rows.dp.count(epsilon=1.0, max_rows=1, ledger=_ledger("person"))
    with pytest.raises(dpf.InvalidArgument, match=r"the same unit in as many groups, not rows and person in 1 group\."):
        dpf.compare(by_row, by_person, samples="different")
    ledger, by = _ledger("person"), rows.dp.group_by("ward", keys=["A", "B"])
    one, two = (by.n_units(epsilon=1.0, max_groups=groups, ledger=ledger) for groups in (1, 2))
    with pytest.raises(dpf.InvalidArgument, match=r"not person in 1 group and person in 2 groups\."):
        dpf.compare(one, two, samples="different")
    many = by.n_units(epsilon=1.0, max_groups=3, ledger=ledger)  # only two groups exist
    assert len(dpf.compare(two, many, samples="different")) == 2


def test_other_keys_are_kept_and_libraries_too():
    pd = pytest.importorskip("pandas")
    rows = _shop().with_columns(month=pl.int_range(pl.len()) % 3)
    for frame in (rows, rows.to_pandas()):
        keys = {"variant": ["A", "B"], "month": [0, 1, 2]}
        result = frame.dp.group_by("variant", "month", keys=keys).count(epsilon=5.0, ledger=_ledger())
        with pytest.raises(dpf.MissingArgument, match=r"by must name the column of the two groups"):
            dpf.compare(result, "B", "A")
        found = dpf.compare(result, "B", "A", by="variant")
        assert list(found.columns) == ["month", "statistic", "effect", "low", "high", "p_value", "covers"]
        assert list(found["month"]) == [0, 1, 2]
        assert isinstance(found, pd.DataFrame) == isinstance(frame, pd.DataFrame)


def test_holm_widens_intervals_and_raises_p_values(clear):
    plain, adjusted = (dpf.compare(clear, "B", "A", adjust=adjust) for adjust in (None, "holm"))
    assert adjusted.columns == [*plain.columns, "adjusted"]
    assert set(adjusted["adjusted"]) == {"holm"}
    assert (adjusted["low"] <= plain["low"]).all()
    assert (adjusted["p_value"] >= plain["p_value"]).all()
    assert _holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjusted["p_value"].min() == 4e-6  # four times the smallest p-value of a single test
    assert "<= 4e-06" in adjusted.dp.table("markdown")
    assert "<= 4e-06" in adjusted.dp.sort("p_value").dp.head(1).dp.table("markdown")  # still one of four comparisons
    assert "<= 1e-06" in plain.dp.table("markdown")
    note = "for 4 comparisons by Holm's method, and intervals by Bonferroni's: all hold together with 95%"
    for words in (adjusted.dp.statement(), adjusted.dp.table("markdown"), adjusted.dp.provenance["notes"][0]):
        assert note in words.replace("\\", "")
    assert (
        "Holm" not in plain.dp.statement() + dpf.compare(clear.dp.select("n"), "B", "A", adjust="holm").dp.statement()
    )
    assert told([1e-6, 4e-6, 0.01], 4) == ["<= 4e-06", "<= 4e-06", "0.01"]


def test_a_page_does_not_call_the_adjustment_of_p_values_left_out(clear, tmp_path):
    adjusted = dpf.compare(clear, "B", "A", adjust="holm").dp.head(3)
    adjusted.dp.write_html(tmp_path / "page.html", charts=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    below, trust = page.split("How far to trust these numbers", maxsplit=1)
    trust = trust.split("Appendix", maxsplit=1)[0]
    for note in ("p-values are adjusted for 4 comparisons", "3 of 4 comparisons are shown"):
        assert note in below.split("</table>")[-1]
        assert note not in trust
    assert "what was left out" not in trust


def test_a_filtered_comparison_is_no_part_of_a_total(clear):
    found = dpf.compare(clear, "B", "A")
    for shown, note in ((1, "1 of 4 comparisons is shown"), (2, "2 of 4 comparisons are shown")):
        text = found.dp.head(shown).dp.statement()
        assert note in text
        assert "total" not in text


@pytest.mark.long
def test_comparisons_are_shown_and_written(clear, tmp_path):
    pytest.importorskip("altair")
    found = dpf.compare(clear, "B", "A")
    assert "| p |" in found.dp.table("markdown")
    said = found.dp.statement()
    assert said.startswith("This is B minus A by statistic, computed from 1 release")
    assert "In 95 of 100 samples noise and sampling together move effect of p by at most 0.0" in said
    by_kind = {row.split(" | ")[0]: row for row in found.dp.table("markdown").splitlines()}
    assert re.match(r"\| p \| -?0\.\d+ \|", by_kind["| p"])
    assert re.match(r"\| s \| -?[\d,]+ \|", by_kind["| s"])  # each rounded to its own error
    title = found.dp.plot().to_dict()["title"]
    assert title["text"] == "B and A"
    effects = found.dp.plot(value="effect").to_dict()
    assert effects["title"]["text"] == "B minus A"
    panels = [str(panel) for panel in effects["concat"]]
    assert len(panels) == len(set(found["statistic"])) > 1, "their units differ: each has a scale of its own"
    assert all(f"'title': '{name}'" in panel for name, panel in zip(found["statistic"], panels, strict=True))
    covered = "95% margin of error (noise and sample)"
    assert title["subtitle"].endswith(covered)
    assert clear.dp.plot(covers="population").to_dict()["title"]["subtitle"].endswith(covered)
    assert clear.dp.plot().to_dict()["title"]["subtitle"].endswith("95% margin of error (noise)")
    with pytest.raises(dpf.InvalidArgument, match=r"covers must be left out: these intervals are computed"):
        found.dp.plot(covers="population")
    found.dp.write_parquet(tmp_path / "found.parquet")
    again = dpf.read_parquet(tmp_path / "found.parquet")
    assert again.dp.provenance["cost"]["epsilon"] == 0.0
    assert again.equals(found)
    found.dp.write_html(tmp_path / "found.html", charts=False)
    assert found.dp.plot().to_dict()["title"]
    assert clear.dp.plot(covers="population").to_dict()["title"]
    sentence = "For the population behind these data, the margin of error of n (noise and sampling) is 89.62."
    assert sentence in clear.dp.statement()


def test_a_statement_tells_the_farther_end_of_an_interval():
    pytest.importorskip("altair")
    few = _shop(200).dp.group_by("bought", keys=[True]).count(epsilon=CLEAR, population=True, ledger=_ledger())
    errors = few.dp.errors(covers="population", cells=True)
    low, high = end_words(errors["count_low"][0], errors["count_high"][0])
    said = f"In 95 of 100 samples, the interval from {low} to {high} contains count of the population."
    assert said in few.dp.statement()
    both = _test(shop=_shop(200))
    margins = both.dp.errors(covers="population", cells=True)["p_interval"]
    sizes = f"{margin(margins.min())} to {margin(margins.max())}, depending on the row."
    assert f"the margin of error of p (noise and sampling) is {sizes}" in both.dp.statement()


@pytest.mark.parametrize(
    "changed",
    [
        lambda result: result.dp.round(),
        lambda result: result.dp.sort("n", descending=True).dp.head(1),
        lambda result: result.dp.filter(pl.col("n") > 0),
        lambda result: result.dp.sort("n").dp.round().dp.filter({"variant": "A"}),
        lambda result: _test(1.0, keep_noisy=False, denoise="nonnegative"),
    ],
)
def test_a_statement_says_where_nothing_is_known_of_the_population(clear, changed, tmp_path):
    part = changed(clear)
    assert part.dp.statement().endswith(UNTRACED)
    part.dp.write_html(tmp_path / "part.html", charts=False)
    assert UNTRACED in (tmp_path / "part.html").read_text(encoding="utf-8")
    by_keys = clear.dp.filter({"variant": "A"}).dp.statement()
    assert "In 95 of 100 samples" in by_keys
    assert UNTRACED not in by_keys


REFUSED = [
    (lambda: dpf.quantile("spend", q=0.5, bounds=(0, 500)), "quantile"),
    (lambda: dpf.ratio("spend", "bought", bounds={"spend": (0, 9), "bought": (0, 1)}), "ratio"),
    (lambda: dpf.variance("spend", bounds=(0, 500)), "variance"),
    (lambda: dpf.n_distinct("spend"), "n_distinct"),
]


def _points(chart):
    """Return the values that a chart of a comparison shows, by row and side."""
    parts, cells = [chart.to_dict()], []
    for part in parts:  # the loop appends nested parts
        parts += [inner for name in ("vconcat", "concat", "layer") for inner in part.get(name, ())]
        cells += [cell for cell in part.get("data", {}).get("values", ()) if "side" in cell]
    return {(cell["cell"], cell["side"]): (cell["value"], cell["low"], cell["high"]) for cell in cells}


def test_a_comparison_is_drawn_as_both_values_and_their_intervals():
    pytest.importorskip("altair")
    shop = _shop().with_columns(region=pl.Series(["x", "y", "z", "x"] * 1_000))
    keys = {"variant": ["A", "B"], "region": ["y", "z", "x"]}
    release = {"epsilon": CLEAR, "population": True, "ledger": _ledger()}
    regions = shop.dp.group_by("variant", "region", keys=keys).proportion("bought", **release)
    found = dpf.compare(regions, "B", "A", by="variant")
    expected = dict(zip(found["region"], found["effect"], strict=True))
    for shown in (found, found.dp.sort("effect"), found.dp.filter({"region": ["z", "x"]})):
        points = _points(shown.dp.plot())
        assert {cell for cell, _ in points} == {*shown["region"]}
        for region in shown["region"]:
            (first, low, high), (second, *_) = points[region, 0], points[region, 1]
            assert first - second == pytest.approx(expected[region])
            assert low < first < high
    assert found.dp.plot().to_dict()["title"]["text"] == "Proportion of bought of B and A by region"
    renamed = found.dp.relabel({"region": {"x": "North"}}).dp.plot()
    assert _points(renamed)["North", 0] == _points(found.dp.plot())["x", 0]
    assert "sides" not in str(dpf.compare(regions, "B", "A", by="variant").dp.plot(value="effect").to_dict())


def test_what_clipping_did_is_inherited():
    few = _shop().dp.group_by("variant", keys=["A", "B"])
    with pytest.warns(dpf.BoundsWarning, match="clipped"):
        clipped = few.mean("spend", bounds=(0, 5), epsilon=CLEAR, population=True, ledger=_ledger())
    found = dpf.compare(clipped, "B", "A")
    moved = "clipped: this lowers spend_mean, .* The size and direction of the effect on this result are unknown"
    assert re.search(f"^in the release, .* {moved}", found.dp.provenance["notes"][0])  # captions lack room for all
    assert re.search(moved, found.dp.statement())


def test_two_spreads_alone_tell_of_no_population():
    pytest.importorskip("altair")
    spreads = {"x": dpf.variance("spend", bounds=(0, 500)), "s": dpf.std("spend", bounds=(0, 500))}
    result = _shop().dp.agg(spreads, epsilon=1.0, ledger=_ledger())
    for ask in (result.dp.errors, result.dp.plot):
        with pytest.raises(dpf.InvalidArgument, match=r"x must be a count, .* and it is a variance"):
            ask(covers="population")


def test_contributions_have_no_bounds_that_a_population_needs():
    pytest.importorskip("altair")
    result = pl.DataFrame({"who": [1, 1, 2]}).dp.contributions(epsilon=1.0, ledger=dpf.Ledger(epsilon=1, unit="who"))
    for ask in (result.dp.errors, result.dp.plot):
        with pytest.raises(dpf.InvalidArgument, match="contribution bounds for covers='population'"):
            ask(covers="population")


@pytest.mark.parametrize("covers", ["table", "population"])
def test_errors_of_cells_are_of_one_kind(covers):
    beside = {"m": dpf.mean("spend", bounds=(0, 500)), "spread": dpf.std("spend", bounds=(0, 500))}
    result = _shop().dp.agg(beside, epsilon=1.0, ledger=_ledger())
    errors, cells = (result.dp.errors(covers=covers, cells=cells) for cells in (False, True))
    named = ["m"] if covers == "population" else ["m", "spread"]
    assert errors["column"].to_list() == named
    ends = ("interval", "low", "high", "noisy_rmse", "denoised_rmse")
    assert cells.columns == [f"{name}_{end}" for name in named for end in ends]
    assert cells["m_interval"].max() == errors["interval"][0]


def test_sums_of_bins_have_no_interval_of_one_bin():
    rows = pl.DataFrame({"x": [0.5, 1.5, 2.5, 3.5] * 100})
    bins = rows.dp.histogram("x", bins=range(65), ranges=True, epsilon=1.0, ledger=_ledger())
    assert len(bins.dp.errors()) == 3
    told = bins.dp.errors(covers="population")
    assert told["by"].to_list() == ["x"]
    assert told["interval"][0] == bins.dp.errors(covers="population", cells=True)["count_interval"].max()
    assert told["interval"][0] > bins.dp.errors()["interval"][0]


@pytest.mark.parametrize("covers", ["table", "population"])
def test_errors_of_subtotals_are_those_of_their_rows(covers):
    cube = (
        _shop()
        .dp.group_by("variant", "bought", keys={"variant": ["A", "B"], "bought": [True, False]})
        .count(epsilon=1.0, rollup=True, ledger=_ledger())
    )
    by_number = [cube.dp.sort("count")] if covers == "table" else []  # it is refused for a population
    for frame in (cube, cube.dp.sort("variant", "bought", descending=True), *by_number):
        told, cells = (frame.dp.errors(covers=covers, cells=cells) for cells in (False, True))
        by_rows = [
            cells.filter(pl.col("bought").is_not_null()),
            cells.filter(pl.col("bought").is_null() & pl.col("variant").is_not_null()),
            cells.filter(pl.col("variant").is_null()),
        ]
        assert told["by"].to_list() == ["variant, bought", "variant", ""]
        assert told["interval"].to_list() == [rows["count_interval"].max() for rows in by_rows]


@pytest.mark.parametrize(
    "asked",
    [{}, {"x": "variant"}, {"labels": {"values": {"variant": {"A": "One"}}}}],
    ids=["as it is", "along a key", "in other words"],
)
@pytest.mark.parametrize("table", ["rollup", "cube"])
def test_charts_of_a_population_show_subtotals_at_their_keys_in_any_order_of_rows(table, asked):
    pytest.importorskip("altair")
    pandas = pytest.importorskip("pandas")
    by = _shop().dp.group_by("variant", "bought", keys={"variant": ["A", "B"], "bought": [True, False]})
    price = {"epsilon": 1.0, "denoise": None, "population": True, "ledger": _ledger()}
    found = by.count(**price, **{table: True})
    sort = [found.dp.sort("bought", "variant"), found.dp.sort("count")]
    plain = pandas.DataFrame({name: found[name].to_list() for name in found.columns})
    moved = build.attach(plain, build.record_of(found)).sort_values("count")
    for one, other in (sort, (found, moved)):
        first, second = (result.dp.plot(covers="population", **asked).to_dict() for result in (one, other))
        assert first == second


def test_a_refusal_gives_a_statistic_the_article_that_it_needs():
    result = pl.DataFrame({"x": [1, 2]}).dp.ecdf("x", bins=[0, 2, 4], epsilon=1.0, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match="and it is an ecdf"):
        result.dp.errors(covers="population")
    with pytest.raises(dpf.InvalidArgument, match="and it is an ecdf"):
        result.dp.total()


@pytest.mark.parametrize(("asked", "verb"), REFUSED)
def test_other_statistics_are_refused_by_name(asked, verb):
    result = _shop().dp.group_by("variant", keys=["A", "B"]).agg(x=asked(), epsilon=1.0, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match=rf"x must be a count, .* and it is an? {verb}"):
        dpf.compare(result, "B", "A")


def _visits() -> pl.DataFrame:
    return pl.DataFrame({"person": [1, 1, 2, 3] * 50, "ward": ["A", "B", "B", "A"] * 50, "cost": [5.0] * 200})


def test_rows_that_are_no_sample_are_refused_before_a_charge():
    ledger = _ledger("person")
    by = _visits().dp.group_by("ward", keys=["A", "B"])
    with pytest.raises(dpf.InvalidArgument, match=r"one person has up to 3 rows in it"):
        by.count(epsilon=1.0, max_rows=3, population=True, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match=r"population must be left out of a quantile"):
        by.agg(x=dpf.quantile("cost", q=0.5, bounds=(0, 9)), epsilon=1.0, population=True, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match=r"cost_mean must have missing='drop'"):
        by.mean("cost", bounds=(0, 9), missing="midpoint", epsilon=1.0, max_rows=1, population=True, ledger=ledger)
    both_signs = dpf.sum("cost", unit_bounds=(-5, 9))
    for others in ({}, {"n": dpf.n_units(where={"cost": (0, 1)})}, {"n": dpf.n_units("ward")}):
        with pytest.raises(dpf.InvalidArgument, match=r"total must come with the number of units for population=True"):
            by.agg(total=both_signs, **others, epsilon=1.0, max_groups=1, population=True, ledger=ledger)
    by_counts = _visits().dp.group_by("ward", keys=dpf.discover(delta=1e-6))
    found = {"epsilon": 1.0, "delta": 1e-5, "max_groups": 1, "population": True, "ledger": ledger}
    with pytest.raises(dpf.InvalidArgument, match=r"must be of declared groups for population=True"):
        by_counts.n_units(**found)
    assert not len(ledger.to_frame())
    means = by_counts.mean("cost", bounds=(0, 9), max_rows=1, checks=False, **found)
    assert not len(means)  # no group has enough people
    assert "No group is shown" in means.dp.statement()
    assert means.dp.errors(covers="population")["interval"].to_list() == [None]
    assert not len(means.dp.errors(cells=True, covers="population"))
    result = by.count(epsilon=1.0, max_rows=3, max_groups=1, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match=r"n_units, for a sum with unit_bounds=, or write max_rows=1"):
        result.dp.errors(covers="population")
    people = by.n_units(epsilon=1.0, max_groups=2, population=True, ledger=ledger)
    assert people.dp.provenance["population"] is True
    assert people.dp.errors(covers="population")["interval"][0] > people.dp.errors()["interval"][0]
    with pytest.raises(dpf.InvalidArgument, match=r"one person may be in 2 of them. Release them with max_groups=1"):
        dpf.compare(people, "A", "B")
    alone = by.n_units(epsilon=1.0, max_groups=1, ledger=ledger)
    assert len(dpf.compare(alone, "A", "B")) == 1
    alike = {"total": dpf.sum("cost", unit_bounds=(-5, 9), where={"cost": (0, 6)})}
    where = {"n": dpf.n_units(where={"cost": (0, 6)}), **alike}
    for others in ({"n": dpf.n_units()}, {"n": dpf.n_units("cost")}, where, {"n": dpf.n_units(), **alike}):
        told = by.agg(**{"total": both_signs, **others}, epsilon=1.0, max_groups=1, population=True, ledger=ledger)
        assert len(dpf.compare(told, "A", "B")) == 2


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("law", [{}, {"delta": 1e-6, "mechanism": "gaussian"}])
def test_rows_of_one_person_that_may_be_in_one_group_are_no_sample(law, neighbors):
    """Four rows of one person in one of the allowed groups all count, so there are fewer people than rows."""
    unit = dpf.PrivacyUnit("person", neighbors=neighbors)
    rows = pl.DataFrame({"person": [1, 1, 1, 1], "ward": ["A"] * 4, "cost": [5.0] * 4})
    many = {"max_rows": 1, "max_groups": 4, "checks": False}
    by, keys = rows.dp.group_by("ward", keys=list("ABCD")), {"ward": list("ABCD"), "cost": [5.0, 6.0]}
    with dpf.testing.exact():
        counted = by.count(epsilon=1.0, ledger=_ledger(unit), denoise=None, **law, **many)
    assert counted["count"][0] == pytest.approx(2.0 if law else 4.0, abs=1e-5)  # weighted in the norm of the noise
    ledger = _ledger(unit)
    asks = {
        "count": lambda **more: by.count(epsilon=1.0, ledger=ledger, **law, **many, **more),
        "mean": lambda **more: by.mean("cost", bounds=(0, 9), epsilon=1.0, ledger=ledger, **law, **many, **more),
        "proportion": lambda **more: by.proportion(
            "cost", value=5.0, epsilon=1.0, ledger=ledger, **law, **many, **more
        ),
        "sum": lambda **more: by.sum("cost", bounds=(0, 9), epsilon=1.0, ledger=ledger, **law, **many, **more),
    }
    for ask in asks.values():
        with pytest.raises(
            dpf.InvalidArgument, match=r"one person has up to 4 rows in it\. .* max_rows=1 and max_groups=1"
        ):
            ask(population=True)
    assert not len(ledger.to_frame())
    for ask in asks.values():
        with pytest.raises(dpf.InvalidArgument, match=r"one person has up to 4 rows in it"):
            ask().dp.errors(covers="population")
    part = asks["count"]().dp.filter({"ward": "A"})
    with pytest.raises(dpf.InvalidArgument, match=r"one person has up to 4 rows in it"):  # the filter keeps the weights
        part.dp.errors(covers="population")
    whole = rows.dp.count(epsilon=1.0, ledger=ledger, **law, **many)  # a single number, of one group
    tables = rows.dp.marginals(["ward", "cost"], keys=keys, epsilon=1.0, delta=1e-6, ledger=ledger, max_rows=1)
    for sound in (whole, tables, by.n_units(epsilon=1.0, max_groups=4, ledger=ledger, **law)):
        assert np.isfinite(sound.dp.errors(covers="population")["interval"].to_numpy()).all()


def test_independence_is_never_assumed():
    one, other = (_shop().dp.count(epsilon=1.0, ledger=_ledger()) for _ in range(2))
    with pytest.raises(dpf.MissingArgument, match=r"the same people in both years are not two samples"):
        dpf.compare(one, other)
    with pytest.raises(dpf.InvalidArgument, match=r"two releases, and they are one"):
        dpf.compare(one, one, samples="different")
    groups = _test(1.0)
    with pytest.raises(dpf.InvalidArgument, match=r"samples must be left out"):
        dpf.compare(groups, "B", "A", samples="different")
    with pytest.raises(dpf.InvalidType, match=r"second must be a key of variant, not \['A'\]"):
        dpf.compare(groups, "B", ["A"])
    with pytest.raises(dpf.InvalidArgument, match=r"first must be a key of variant, not 'C'"):
        dpf.compare(groups, "C", "A")
    with pytest.raises(dpf.InvalidArgument, match=r"adjust must be"):
        dpf.compare(groups, "B", "A", adjust="bonferroni")
    with pytest.raises(dpf.InvalidArgument, match=r"covers must be"):
        groups.dp.errors(covers="people")


def test_numbers_that_share_noise_are_refused():
    rows = _shop()
    cube = rows.dp.group_by("variant", "bought", keys={"variant": ["A", "B"], "bought": [True, False]})
    with pytest.raises(dpf.InvalidArgument, match=r"this one has subtotals"):
        dpf.compare(cube.count(epsilon=1.0, cube=True, ledger=_ledger()), "B", "A", by="variant")
    bins = rows.dp.histogram("spend", bins=range(0, 513, 8), ranges=True, epsilon=1.0, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument):
        dpf.compare(bins, 0, 8, by="spend")
    plain = rows.dp.histogram("spend", bins=[0, 10, 20, 30, 500], epsilon=1.0, ledger=_ledger())
    assert dpf.compare(plain, 0, 10, by="spend_left").columns[0] == "statistic"


def test_bounds_stand_in_for_squares_that_nobody_measured():
    rows = _shop()
    plain = rows.dp.agg(
        m=dpf.mean("spend", bounds=(0, 500)), s=dpf.sum("spend", bounds=(0, 500)), epsilon=CLEAR, ledger=_ledger()
    )
    errors = plain.dp.errors(covers="population")["interval"].to_list()
    n, total = len(rows), float(rows["spend"].sum())
    assert errors[0] == pytest.approx(1.96 * 250.0 / np.sqrt(n), rel=0.01)
    assert errors[1] == pytest.approx(_fay_and_feuer(total, 500.0 * total, 500.0)[1] - total, rel=0.01)
    beside = {"m": dpf.mean("spend", bounds=(0, 500)), "spread": dpf.std("spend", bounds=(0, 500))}
    helped = rows.dp.agg(beside, epsilon=CLEAR, ledger=_ledger()).dp.errors(covers="population")
    assert helped["column"].to_list() == ["m"]
    assert helped["interval"][0] == pytest.approx(1.96 * float(rows["spend"].std()) / np.sqrt(n), rel=0.01)
    signed = rows.dp.sum("spend", bounds=(-500, 500), epsilon=CLEAR, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match=r"Ask for it with population=True"):
        signed.dp.errors(covers="population")


@pytest.mark.parametrize("law", [{}, {"delta": 1e-6, "mechanism": "gaussian"}])
def test_the_spread_of_some_rows_does_not_stand_in_for_that_of_all(law):
    rows = _shop().with_columns(few=pl.col("spend") < 100)
    mean, few = {"m": dpf.mean("spend", bounds=(0, 500))}, {"where": {"few": True}}
    spread = {"sd": dpf.std("spend", bounds=(0, 500), **few)}
    release = {"epsilon": CLEAR, "ledger": _ledger(), **law}
    told = rows.dp.agg(mean | spread, **release).dp.errors(covers="population")
    assert told["interval"][0] == pytest.approx(1.96 * 250.0 / np.sqrt(len(rows)), rel=0.01)
    mean = {"m": dpf.mean("spend", bounds=(0, 500), **few)}
    told, values = rows.dp.agg(mean | spread, **release).dp.errors(covers="population"), rows.filter("few")["spend"]
    assert told["interval"][0] == pytest.approx(1.96 * float(values.std()) / np.sqrt(len(values)), rel=0.01)


def test_the_number_of_some_rows_does_not_stand_in_for_that_of_all():
    rows = _shop().with_columns(few=pl.col("spend") < 5)
    signed, few = {"s": dpf.sum("spend", bounds=(-500, 500))}, {"where": {"few": True}}
    release = {"epsilon": CLEAR, "ledger": _ledger()}
    for beside in (dpf.count(**few), dpf.count("variant")):
        with pytest.raises(dpf.InvalidArgument, match=r"Ask for it with population=True"):
            rows.dp.agg(signed | {"n": beside}, **release).dp.errors(covers="population")
    signed_few = {"s": dpf.sum("spend", bounds=(-500, 500), **few)}
    for sums, rows_of in ((signed, {}), (signed_few, few), (signed_few, {})):  # all rows are at least some
        told = rows.dp.agg(sums | {"n": dpf.count(**rows_of)}, **release).dp.errors(covers="population")
        n = rows["few"].sum() if rows_of else len(rows)
        assert told["interval"][0] == pytest.approx(500.0 * (stats.chi2.ppf(0.975, 2 * n + 2) / 2 - n), rel=0.01)


def test_the_plan_says_what_squares_cost():
    by = _shop().dp.group_by("variant", keys=["A", "B"]).preview
    release = {"epsilon": 1.0, "ledger": _ledger(), "checks": False}
    takes = [
        [part.share for part in by.sum("spend", bounds=(0, 500), **release, **more).parts]
        for more in ({}, {"population": True})
    ]
    assert takes == [[1.0], [0.8, 0.2]]
    plan = by.mean("spend", bounds=(0, 500), mechanism="laplace", population=True, **release)
    assert [part.total.describe() for part in plan.parts] == ["Bernstein sums of spend"]
    assert "taken as a sample" in str(plan)


def test_squares_are_exact():
    row = squares("x", (-3.0, 2.0))
    values = np.array([-3.0, 2.0, 0.5, np.nan, 9.0])
    steps = row.steps(values)
    assert (steps[~np.isnan(steps)] * row.grid).tolist() == pytest.approx([9.0, 4.0, 0.25, 4.0], abs=1e-7)
    assert row.reach[1] * row.grid == pytest.approx(9.0)


def test_two_way_tables_are_tested():
    pytest.importorskip("altair")
    generator = np.random.default_rng(1)
    apart = pl.DataFrame({"a": np.repeat([0, 1], 2_000), "b": generator.integers(0, 2, 4_000)})
    together = apart.with_columns(b=pl.when(pl.int_range(4_000) % 4 == 0).then(pl.col("a")).otherwise(pl.col("b")))
    keys = {"a": [0, 1], "b": [0, 1]}
    release = {"epsilon": 5.0, "ledger": _ledger()}
    found = together.dp.group_by("a", "b", keys=keys).count(**release).dp.chi2()
    assert found.columns == ["statistic", "p_value", "degrees"]
    assert (found["p_value"][0], found["degrees"][0]) == (1 / 2_000, 1)
    table = apart.dp.group_by("a", "b", keys=keys).count(epsilon=CLEAR, ledger=_ledger())
    plain = stats.chi2_contingency(table["count"].to_numpy().reshape(2, 2), correction=False)
    mine = table.dp.chi2()
    assert mine["statistic"][0] == pytest.approx(plain.statistic)
    assert mine["p_value"][0] == pytest.approx(plain.pvalue, abs=0.05)
    assert mine["p_value"][0] == table.dp.chi2()["p_value"][0]
    assert "(1 degree of freedom)" in mine.dp.statement()
    assert repr(mine.dp).split("\n") == [
        ".dp of numbers computed from releases, which are public",
        "  show     statement, provenance",
        "  keep     write_parquet",
    ]
    for verb, given in (("plot", ()), ("table", ()), ("write_html", ("x.html",))):
        with pytest.raises(dpf.InvalidArgument, match=rf"{verb} must be of numbers with intervals, and chi2 is a test"):
            getattr(mine.dp, verb)(*given)
    for more in ({"cube": True}, {"rollup": True}):
        result = apart.dp.group_by("a", "b", keys=keys).count(epsilon=CLEAR, ledger=_ledger(), **more)
        assert result.dp.chi2()["statistic"][0] == pytest.approx(plain.statistic)


def test_tables_that_cannot_be_tested_are_refused():
    rows = _visits().with_columns(sex=pl.Series([0, 1] * 100))
    keys = {"ward": ["A", "B"], "sex": [0, 1]}
    with pytest.raises(dpf.InvalidArgument, match=r"two columns with at least two keys"):
        rows.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1.0, ledger=_ledger()).dp.chi2()
    people = {"epsilon": 1.0, "ledger": _ledger("person")}
    with pytest.raises(dpf.InvalidArgument, match=r"each unit is in one cell"):
        rows.dp.group_by("ward", "sex", keys=keys).n_units(max_groups=2, **people).dp.chi2()
    with pytest.raises(dpf.InvalidArgument, match=r"each unit is in one cell"):
        rows.dp.group_by("ward", "sex", keys=keys).count(max_rows=1, max_groups=1, **people).dp.chi2()
    two = {"n": dpf.count(), "few": dpf.count(where={"sex": [0]})}
    both = rows.dp.group_by("ward", "sex", keys=keys).agg(two, epsilon=CLEAR, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match=r"one count, and this result has \['n', 'few'\].*select\('n'\)"):
        both.dp.chi2()
    assert both.dp.select("n").dp.chi2()["degrees"][0] == 1
    few = rows.head(0).dp.group_by("ward", "sex", keys=keys).n_units(max_groups=1, **{**people, "epsilon": CLEAR})
    assert few.dp.chi2()["p_value"][0] == 1.0
    adjusted = rows.dp.group_by("ward", "sex", keys=keys).count(epsilon=1.0, keep_noisy=False, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match=r"adjusted"):
        adjusted.dp.chi2()


def test_drawn_tables_and_noise_have_their_laws():
    # fixed uniform numbers: no false alarm
    drawn = _multinomial(100, np.array([0.2, 0.5, 0.3]), 7)
    assert (drawn.sum(axis=1) == 100).all()
    assert drawn.mean(axis=0) == pytest.approx([20, 50, 30], abs=0.5)
    assert drawn.var(axis=0) == pytest.approx([16, 25, 21], rel=0.1)
    sizes = np.full(4_000, 12.0)
    ones = _binomial(sizes, 0.3, uniforms((4_000,), 3))
    assert stats.kstest(uniforms((20_000,), 5), "uniform").pvalue > 1e-3
    assert np.bincount(ones.astype(int), minlength=13)[:7] / 4_000 == pytest.approx(
        stats.binom.pmf(range(7), 12, 0.3), abs=0.02
    )
    for size, chance in ((3e9, 0.3), (3e9, 1e-9), (2.0**51, 1.0 - 1e-14)):  # sizes beyond 32 bits
        many = _binomial(np.full(4_000, size), chance, uniforms((4_000,), 3))
        spread = np.sqrt(size * chance * (1.0 - chance))
        assert many.mean() == pytest.approx(size * chance, abs=5.0 * spread / np.sqrt(4_000), rel=1e-15)
        assert many.std() == pytest.approx(spread, rel=0.06)
    assert (_binomial(np.full(9, 2.0**60), 1.0 - 1e-15, uniforms((9,), 3)) <= 2.0**60).all()  # and the sampler ends
    for law in (Law(1.0, 3.0, 1.0), Law(2.0, 5.0, 0.5), Law(3.0, 4.0, 1.0)):
        steps = _steps(law, uniforms((100_000,), 11))
        assert steps.mean() == pytest.approx(0.0, abs=0.1)
        assert steps.var() == pytest.approx(law.variance, rel=0.02)


def test_exact_limits_are_wider_than_those_of_differences():
    counts, sizes = np.array([0.0, 1.0, 7.5, 400.0]), np.full(4, 500.0)
    for exact, other in (
        (counted(counts, 0.95, True), counted(counts, 0.95, False)),
        (shared(counts / sizes, sizes, 0.95, True), shared(counts / sizes, sizes, 0.95, False)),
    ):
        assert all((wide >= narrow).all() for wide, narrow in zip(exact, other, strict=True))


def test_stored_answers_tell_population_apart(tmp_path):
    ledger = dpf.Ledger(path=tmp_path / "people.ledger", epsilon=3.0)
    rows, asked = _shop(), {"epsilon": 1.0, "label": "n", "snapshot": "1", "ledger": ledger}
    first = rows.dp.count(**asked)
    assert rows.dp.count(**asked).equals(first)
    with pytest.raises(dpf.LedgerError, match=r"population differs"):
        rows.dp.count(**asked, population=True)


def test_values_that_differ_beyond_what_is_shown_are_not_compared():
    from dpframe.frames import build

    ends = ["x" * 300 + end for end in "AB"]
    frame = pl.DataFrame({"s": [ends[0]] * 900 + [ends[1]] * 100})
    ask = {"epsilon": CLEAR, "ledger": _ledger()}
    one, other, again = (frame.dp.agg(p=dpf.proportion("s", value=value), **ask) for value in (*ends, ends[0]))
    with pytest.raises(
        dpf.InvalidArgument, match=r"its value is 'x+\.\.\. and another that reads alike\. Release both"
    ):
        dpf.compare(one, other, samples="different")
    assert len(dpf.compare(one, again, samples="different")) == 1
    record = build.record_of(other)
    said = {name: fact for name, fact in record["measures"]["p"].items() if name != "value_sha256"}
    old = build.attach(other.clone(), {**record, "measures": {"p": said}})
    with pytest.raises(dpf.InvalidArgument, match=r"its value is known in part alone: 'x+"):  # an old record
        dpf.compare(one, old, samples="different")


def test_a_spread_that_was_not_measured_is_said():
    """The release has the same note: an unmeasured spread makes the interval of the difference wider."""
    frame = pl.DataFrame({"variant": ["A", "B"] * 500, "spend": [5.0, 9.0, 30.0, 2.0] * 250})
    asked = frame.dp.group_by("variant", keys=["A", "B"])
    said = "how far values of m differ was not measured: the most that its bounds allow is taken"
    for population in (False, True):
        mean = dpf.mean("spend", bounds=(0, 500))
        result = asked.agg(m=mean, epsilon=1, population=population, ledger=_ledger())
        compared = dpf.compare(result, "B", "A")
        assert (said in compared.dp.provenance["notes"]) is not population
        assert (f" Note: {said}." in compared.dp.statement()) is not population


def test_a_sum_whose_count_was_left_out_is_refused_in_words(engine):
    """The count came from the totals of the mean; without its column, the library failed with an internal error."""
    frame = engine({"k": ["A", "B"] * 50, "v": [1.0, -1.0] * 50}).dp.group_by("k", keys=["A", "B"])
    sums = {"s": dpf.sum("v", bounds=(-5, 5)), "m": dpf.mean("v", bounds=(-5, 5)), "n": dpf.count("v")}
    result = frame.agg(**sums, epsilon=9, checks=False, ledger=dpf.Ledger(epsilon=9))
    assert len(result.dp.errors(covers="population")) >= 2
    for names in (["s"], ["s", "m"]):
        with pytest.raises(dpf.InvalidArgument, match=r"s must come with what tells .* keep the count"):
            result.dp.select(*names).dp.errors(covers="population")
        with pytest.raises(dpf.InvalidArgument, match=r"s must come with what tells .* keep the count"):
            dpf.compare(result.dp.select(*names), "A", "B")


def test_a_sum_of_weights_is_not_taken_for_the_number_of_rows_behind_a_sum():
    """The variance of a sum is at most the squared bound times its number of rows, which weights do not give."""
    frame = pl.DataFrame({"x": [-10.0, 10.0] * 500, "w": [0.05] * 1_000})
    ledger = dpf.Ledger(epsilon=9)
    asked = {"epsilon": 1, "ledger": ledger, "checks": False}
    one = frame.dp.agg(s=dpf.sum("x", bounds=(-10, 10)), n=dpf.count(), **asked)
    other = frame.dp.agg(s=dpf.sum("x", bounds=(-10, 10)), k=dpf.count(weight="w", weight_bounds=(0, 1)), **asked)
    with pytest.raises(dpf.InvalidArgument, match="s must come with what tells how far its values differ"):
        dpf.compare(one, other, samples="different")


def test_keys_that_are_no_texts_are_told_with_their_column():
    pytest.importorskip("altair")
    rows = pl.DataFrame(
        {"id": range(800), "female": [0, 1] * 400, "kids": [0, 0, 1, 1] * 200, "ward": list("AB") * 400}
    )
    ledger = dpf.Ledger(epsilon=4, delta=1e-6, unit="id")
    keys = {"female": [0, 1], "kids": [0, 1], "ward": ["A", "B"]}
    for by, said in (("female", ("female 0", "female 1")), ("ward", ("A", "B"))):
        counts = rows.dp.group_by(by, "kids", keys={by: keys[by], "kids": [0, 1]})
        units = counts.n_units(max_groups=1, epsilon=1, ledger=ledger)
        found = dpf.compare(units, *keys[by], by=by)
        assert found.dp.statement().startswith(f"This is {said[0]} minus {said[1]} by kids and statistic,")
        assert f"**{said[0]} minus {said[1]}**" in found.dp.table("markdown")
        title = found.dp.plot().to_dict()["title"]["text"]
        assert title == f"Number of units (id) of {said[0]} and {said[1]} by kids"
        assert found.dp.provenance["measures"]["effect"]["sides"]["names"] == list(said)
        assert foreign.problem_of(found.dp.provenance) == ""


def test_a_title_does_not_change_a_name_that_it_begins_with():
    pytest.importorskip("altair")
    rows = pl.DataFrame({"female": [0, 1] * 400, "x": [1.0, 2.0] * 400})
    asked = {"n": dpf.count(), "mean": dpf.mean("x", bounds=(0, 3))}
    result = rows.dp.group_by("female", keys=[0, 1]).agg(
        asked, denoise=None, population=True, epsilon=1, ledger=dpf.Ledger(epsilon=1)
    )
    found = dpf.compare(result, 0, 1)
    assert found.dp.plot().to_dict()["title"]["text"] == "female 0 and female 1"
    effects = found.dp.plot(kind="point").to_dict()
    assert effects["title"]["text"] == "female 0 minus female 1"
    quotient = dpf.combine("res/2", {"res": result.dp.select("n")})
    assert quotient.dp.plot().to_dict()["title"]["text"] == "res/2 by female"
    renamed = quotient.dp.relabel(columns={"value": "half of them"})
    assert renamed.dp.plot().to_dict()["title"]["text"] == "Half of them by female"
