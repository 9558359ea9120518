"""Displayed intervals: cut to possible values, open where a quantile meets a bound, or marked as too noisy."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.display import rounding
from dpframe.frames import foreign
from dpframe.queries.quotients import within_limits
from dpframe.testing import seeded

SHARE = {"verb": "proportion", "column": "x", "statistics": [0, 1], "one_total": False}
MEDIAN = {"verb": "quantile", "column": "x", "q": 0.5, "bounds": [0.0, 100.0], "statistics": [0], "one_total": False}
MEAN = {"verb": "mean", "column": "x", "bounds": [0.0, 10.0], "statistics": [0, 1], "one_total": False}
STD = {"verb": "std", "column": "x", "bounds": [0, 16], "statistics": [0], "one_total": False}
RATIO = {
    **{"verb": "ratio", "column": "x", "bounds": [0.0, 9.0], "denominator": "y", "denominator_bounds": [0.0, 5.0]},
    "one_total": False,
}


def made(statistic, **columns):
    """Return the displayed intervals of a statistic `n`; each keyword is the suffix of one of its columns."""
    arrays = {f"n{end}".removesuffix("_value"): np.array(values, dtype=float) for end, values in columns.items()}
    return rounding.intervals(statistic, "n", arrays)


@pytest.mark.parametrize(
    ("statistic", "values", "errors", "ends", "noisy"),
    [
        (SHARE, [0.1, 0.98, 0.5, 0.4], [0.2, 0.05, 0.1, 0.6], [(0, 0.3), (0.93, 1), (0.4, 0.6), (0, 1)], [0, 0, 0, 1]),
        (SHARE, [0.16, 0.95], [0.5325, 0.6], [(0, 0.6925), (0.35, 1)], [0, 0]),  # twice the error exceeds the range
        (MEAN, [1, 5, 0], [2, 1, 10], [(0, 3), (4, 6), (0, 10)], [0, 0, 1]),
        ({"verb": "correlation", "one_total": False}, [1, 0.2], [2, 0.1], [(-1, 1), (0.1, 0.3)], [1, 0]),
        (
            {**STD, "ddof": 1},
            [1, 8],
            [2, 10],
            [(0, 3), (0, round(8 * 2**0.5, 12))],
            [0, 1],
        ),  # of two values, one on each bound
        ({**STD, "ddof": 0}, [1, 8], [2, 10], [(0, 3), (0, 8)], [0, 1]),
        ({**STD, "verb": "variance", "ddof": 1}, [100, 1], [200, 2], [(0, 128), (0, 3)], [1, 0]),
        (STD, [8], [10], [(0, 18)], [0]),  # the caller's own, whose divisor is unknown
    ],
)
def test_intervals_are_cut_to_what_is_possible(statistic, values, errors, ends, noisy):
    found = made(statistic, _value=values, _error=errors)
    assert list(zip(found.low.round(12), found.high.round(12), strict=True)) == ends
    assert found.is_cut
    assert found.noisy.tolist() == [bool(one) for one in noisy]


def test_nothing_is_left_of_an_interval():
    """An interval outside the limits becomes the nearest limit with the uncut half-width."""
    for low, high, ends in (([-0.4], [-0.2], (0.0, 0.1)), ([1.2], [1.4], (0.9, 1.0))):
        cut = within_limits(np.array(low), np.array(high), np.array([0.1]), (0.0, 1.0))
        assert np.allclose([end[0] for end in cut], ends)


def test_ratios_of_sums_that_are_not_negative():
    found = made(RATIO, _value=[1.0, 2.0], _error=[np.inf, 0.5], _low=[-np.inf, 1.5], _high=[np.inf, 2.5])
    assert (found.low.tolist(), found.high.tolist()) == ([0.0, 1.5], [np.inf, 2.5])
    assert found.noisy.tolist() == [True, False]
    one_end = made(RATIO, _value=[2.0], _error=[np.inf], _low=[1.5], _high=[np.inf])  # informative: at least 1.5
    assert (one_end.low.tolist(), one_end.noisy.tolist()) == ([1.5], [False])
    signed = made({**RATIO, "bounds": [-1.0, 9.0]}, _value=[1.0], _error=[3.0], _low=[-2.0], _high=[3.0])
    assert (signed.low.tolist(), signed.is_cut) == ([-2.0], False)


def test_ends_on_bounds():
    found = made(MEDIAN, _value=[50, 3, 99], _error=[5, 6, 9], _low=[45, 0, 90], _high=[55, 9, 100])
    assert found.below.tolist() == [False, True, False]
    assert rounding.forms(found, "_low") == ["{}", "<= {}", "{}"]
    assert rounding.forms(found, "_high") == ["{}", "{}", ">= {}"]
    assert not found.is_cut


def test_a_quantile_between_its_bounds_is_too_noisy_unless_it_was_chosen():
    columns = {"_value": [50, 3], "_error": [50, 97], "_low": [0, 0], "_high": [100, 90]}
    assert made(MEDIAN, **columns).noisy.tolist() == [True, False]
    assert made({**MEDIAN, "by": "choice"}, **columns).noisy.tolist() == [
        False,
        False,
    ]  # its interval is always so wide


def test_a_computed_number_without_any_end_is_too_noisy():
    change = {"verb": "change", "column": None, "statistics": [], "one_total": False}
    ends = {"_low": [-np.inf, -10.0, -np.inf], "_high": [np.inf, np.inf, 9.0]}
    found = made(change, _value=[392.0, 4.0, 5.0], _error=[np.inf] * 3, **ends)
    assert found.noisy.tolist() == [True, False, False]


@pytest.fixture(scope="module")
def empty():
    """The median, mean and deviation of three groups, of which C has no row."""
    rows = pl.DataFrame({"g": ["A", "B"] * 400, "x": [5.0, 40.0, 41.0, 90.0] * 200})
    words = {
        "m": dpf.median("x", bounds=(0, 100)),
        "s": dpf.std("x", bounds=(0, 100)),
        "a": dpf.mean("x", bounds=(0, 100)),
    }
    with seeded(2):
        return rows.dp.group_by("g", keys=["A", "B", "C"]).agg(**words, epsilon=4.0, ledger=dpf.Ledger(epsilon=4))


def test_no_number_of_a_group_without_rows_looks_like_data(empty):
    lines = empty.dp.table("markdown").replace("\\", "").splitlines()
    rows = {line.split(" |")[0].strip("| "): line for line in lines if line.startswith("|")}
    assert [rows[group].count("(too noisy)") for group in "ABC"] == [0, 0, 3]
    assert (
        "- too noisy, the interval is as wide as what is possible: m in 1 of 3 rows, s in 1 of 3 rows, a in 1 of 3 rows"
        in lines
    )
    assert empty.dp.errors(cells=True)["s_high"].to_list()[2] == pytest.approx(100 / 2**0.5)
    statement = empty.dp.statement()
    assert "The noise is too large to tell s in 1 of 3 rows." in statement
    assert "too small" not in statement


def test_charts_mark_every_number_of_a_group_without_rows(empty):
    pytest.importorskip("altair")
    chart = empty.dp.plot().to_dict()
    cells = [cell for data in found_in(chart, "values") for cell in data if "(too noisy)" in str(cell)]
    assert {cell["x_says"] for cell in cells} == {"C"}
    assert len(cells) == 3


@pytest.fixture(scope="module")
def low():
    """A median whose interval ends on its lower bound."""
    frame = pl.DataFrame({"x": [0.0] * 60 + [70.0] * 5})
    return frame.dp.median("x", bounds=(0, 100), epsilon=1.0, ledger=dpf.Ledger(epsilon=1))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.00213, 0.00239, ("0.00213", "0.00239")),  # four digits suffice
        (0.002134567, 0.002391234, ("0.00213", "0.0024")),
        (1_012.934, 1_013.4129, ("1,012.93", "1,013.42")),
        (1_013.456, 1_013.456, ("1,013", "1,014")),
        (-0.0, 12.3456, ("0", "13")),
        (-np.inf, 5.123456, ("-∞", "5.124")),
        (123_456.7, 234_567.8, ("120,000", "240,000")),
    ],
)
def test_an_interval_in_words_holds_what_it_held(low, high, said):
    assert rounding.end_words(low, high) == said
    least, most = (float(end.replace(",", "").replace("∞", "inf")) for end in said)
    assert least <= low <= high <= most


def test_a_statement_tells_the_interval_of_small_and_of_narrow_numbers():
    small = pl.DataFrame({"x": [0.001, 0.002, 0.003] * 400}).dp
    with dpf.Ledger(epsilon=99), seeded(2):
        median = small.median("x", bounds=(0, 0.004), epsilon=5.0)
        high = pl.DataFrame({"x": [1_012.0, 1_014.0] * 600}).dp
        mean = high.mean("x", bounds=(1_010, 1_016), epsilon=50.0, population=True)
    for said, errors, name in (
        (median.dp.statement(), median.dp.errors(cells=True), "x_median"),
        (mean.dp.statement(), mean.dp.errors(cells=True, covers="population"), "x_mean"),
    ):
        *_, (least, most) = re.findall(rf"interval from ([\d,.]+) to ([\d,.]+) \w+ (?:the exact )?{name}", said)
        low, high = float(least.replace(",", "")), float(most.replace(",", ""))
        assert low <= errors[f"{name}_low"].item() < errors[f"{name}_high"].item() <= high, said


@pytest.mark.parametrize("form", ["markdown", "html", "latex", "great_tables"])
def test_a_table_shows_that_the_quantile_may_lie_beyond(low, form):
    if form in ("latex", "great_tables"):
        pytest.importorskip("great_tables")
    table = low.dp.table(form)
    text = table if isinstance(table, str) else table.as_raw_html()
    assert any(words in text for words in ("<= 0", "&lt;= 0", "\\textless{}= 0"))
    assert "an end of x_median on a bound of its values" in text.replace("\\", "")


def test_numbers_stay_numbers_in_files_for_programs(low):
    lines = low.dp.table("csv").splitlines()
    assert lines[-1].split(",")[1] == "0"
    assert any("an end of x_median on a bound" in line for line in lines)


def test_a_statement_and_a_chart_show_it(low):
    assert "the interval from <= 0 to" in low.dp.statement()
    pytest.importorskip("altair")
    assert "(95%: <= 0 to" in str(low.dp.plot().to_dict())


def test_what_is_too_noisy_is_said_everywhere():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "ok": [True, False, True]})
    with seeded(3), dpf.Ledger(epsilon=9):  # seeded: in two of a hundred draws, noise makes 3 rows look like enough
        mean = frame.dp.mean("x", bounds=(0, 10), epsilon=0.01)
        share = frame.dp.proportion("ok", epsilon=0.01)
    for result, name in ((mean, "x_mean"), (share, "ok_proportion")):
        assert "(too noisy)" in result.dp.table("markdown").replace("\\", "")
        assert f"too noisy, the interval is as wide as what is possible: {name}" in result.dp.table("csv")
        assert f"The noise is too large to tell {name}." in result.dp.statement()
        assert np.isfinite(result[name].item())
    pytest.importorskip("altair")
    assert "(too noisy)" in str(mean.dp.plot().to_dict())
    assert "too noisy" in str(share.dp.plot().to_dict())


@pytest.mark.parametrize("happened", [False, True])
def test_a_share_of_none_or_of_all_keeps_its_interval(happened):
    frame, name = pl.DataFrame({"ok": [happened] * 300}), "ok_proportion"
    for epsilon in (1.0, 100.0):
        with dpf.Ledger(epsilon=9999), seeded(1):  # at least one of twenty is exactly 0 or 1
            shares = [frame.dp.proportion("ok", epsilon=epsilon) for _ in range(20)]
        share = next(one for one in shares if one[name].item() == happened)
        rounded = share.dp.round()
        assert share[f"{name}_error"].item() <= rounded[f"{name}_error"].item() < 1.2 * share[f"{name}_error"].item()
        low, high = map(float, share.dp.table("csv").splitlines()[-1].split(",")[-2:])
        assert high - low < 0.1


def test_an_error_is_never_cut():
    frame = pl.DataFrame({"ok": [True] * 400})
    result = frame.dp.proportion("ok", epsilon=0.2, ledger=dpf.Ledger(epsilon=1))
    table = result.dp.table("markdown").replace("\\", "")
    assert "| ok_proportion | ok_proportion from | ok_proportion to |" in table
    errors = result.dp.errors(cells=True)
    assert errors["ok_proportion_high"].item() <= 1.0
    assert errors["ok_proportion_interval"].item() == result["ok_proportion_error"].item() > 0


def test_ratios_are_cut_in_their_columns():
    frame = pl.DataFrame({"x": [0.1] * 300, "y": [1.0] * 300})
    with dpf.Ledger(epsilon=99):
        ends = [frame.dp.agg(dpf.ratio("x", "y", bounds={"x": (0, 1), "y": (0, 1)}), epsilon=0.05) for _ in range(40)]
    assert min(one["x_per_y_low"].item() for one in ends) == 0.0
    assert all(
        one["x_per_y_low"].item() <= max(one["x_per_y"].item(), 0.0) <= one["x_per_y_high"].item() for one in ends
    )


OWN = {"A": (0, 10), "B": (0, 100), "C": (0, 9)}


@pytest.fixture(scope="module")
def by_group():
    """All values of A and B lie above the bounds of their group, and C has only one row."""
    rows = pl.DataFrame({"g": ["A"] * 300 + ["B"] * 300 + ["C"], "x": [50.0] * 300 + [500.0] * 300 + [4.0]})
    with seeded(5):
        return rows.dp.group_by("g", keys=["A", "B", "C"]).agg(
            **{"m": dpf.median("x", bounds=OWN), "a": dpf.mean("x", bounds=OWN), "s": dpf.std("x", bounds=OWN)},
            **{"epsilon": 2.0, "ledger": dpf.Ledger(epsilon=2)},
        )


@pytest.mark.parametrize(
    "change",
    [
        lambda dp: dp.sort("m", descending=True),
        lambda dp: dp.filter({"g": ["C", "A"]}),
        lambda dp: dp.sort("g", descending=True).dp.relabel(columns={"g": "Ward"}),
        lambda dp: dp.filter({"g": "B"}),
    ],
)
def test_intervals_are_cut_to_the_bounds_of_their_own_group(by_group, change):
    made = change(by_group.dp)
    errors, uncut = made.dp.errors(cells=True), 0
    for row, released in zip(errors.rows(named=True), made.rows(named=True), strict=True):
        least, most = OWN[row.get("g", row.get("Ward"))]
        assert least <= row["a_low"] <= released["a"] <= row["a_high"] <= most
        assert row["m_high"] == most
        assert row["s_low"] >= 0
        uncut += released["a"] + released["a_error"] > most
    assert uncut


def test_a_wide_frame_has_the_bounds_of_each_group(by_group):
    for wide in (by_group.dp.wide("g"), by_group.dp.sort("m").dp.select("a", "m").dp.wide("g")):
        errors = wide.dp.errors(cells=True)
        for key, (least, most) in OWN.items():
            assert least <= errors[f"a_{key}_low"].item() <= errors[f"a_{key}_high"].item() <= most
            assert errors[f"m_{key}_high"].item() == most


def test_bounds_by_group_are_marked_and_too_noisy_is_said(by_group):
    lines = by_group.dp.sort("g", descending=True).dp.table("markdown").replace("\\", "").splitlines()
    row = {line.split(" |")[0].strip("| "): line for line in lines if line.startswith("|")}
    assert ">= 10" in row["A"]
    assert ">= 100" in row["B"]
    assert "(too noisy)" in row["C"]
    assert "(too noisy)" not in row["A"] + row["B"]
    assert "- an end of m on a bound of its values says that m may lie beyond it (<= or >=)" in lines
    assert "The noise is too large to tell a in 1 of 3 rows." in by_group.dp.statement()
    pytest.importorskip("altair")
    cells = [cell for data in found_in(by_group.dp.plot(value="a").to_dict(), "values") for cell in data]
    said = {cell["x_says"]: cell for cell in cells if "x_says" in cell}
    assert {key: bool(cell.get("noisy")) for key, cell in said.items()} == {"A": False, "B": False, "C": True}
    assert (said["A"]["high"], said["B"]["high"]) == (10.0, 100.0)


def found_in(part, name):
    """Return all lists with this name, at any depth."""
    if isinstance(part, list):
        return [one for each in part for one in found_in(each, name)]
    if not isinstance(part, dict):
        return []
    mine = [part[name]] if isinstance(part.get(name), list) else []
    return mine + [one for each in part.values() for one in found_in(each, name)]


def test_a_record_without_the_bounds_of_some_group_is_refused(by_group):
    record = json.loads(json.dumps(by_group.dp.provenance))
    assert foreign.problem_of(record) == ""
    record["measures"]["a"]["bounds_of_groups"].pop()
    assert "must have bounds for each group" in foreign.problem_of(record)


WARDS = pl.DataFrame({"g": [*"AAABBC"] * 20, "h": ["x", "y"] * 60, "x": [1.0, 5.0, 9.0] * 40})
MOVED = {  # releases whose adjusted values moved, so that they have no interval without the unbiased values
    "order": lambda dp, words: dp.group_by("g", keys=[*"ABC"]).count(order=True, epsilon=0.1, **words),
    "james-stein": lambda dp, words: dp.group_by("g", keys=[*"ABC"]).count(denoise="james-stein", epsilon=0.1, **words),
    "of any sign": lambda dp, words: dp.group_by("g", keys=[*"ABC"]).sum(
        "x", bounds=(-9, 9), denoise="nonnegative", epsilon=1.0, **words
    ),
    "bins": lambda dp, words: dp.histogram("x", bins=[0, 4, 8, 12], ranges=True, epsilon=1.0, **words),
    "subtotals": lambda dp, words: dp.group_by("g", "h", keys={"g": [*"ABC"], "h": ["x", "y"]}).count(
        cube=True, epsilon=1.0, **words
    ),
    "tables": lambda dp, words: dp.marginals(
        ["g", "h"], keys={"g": [*"ABC"], "h": ["x", "y"]}, denoise="auto", epsilon=1.0, delta=1e-6, **words
    ),
    "tables of one": lambda dp, words: dp.marginals(
        ["g", "h"], keys={"g": [*"ABC"], "h": ["x", "y"]}, degree=1, denoise="auto", epsilon=1.0, delta=1e-6, **words
    ),
}
LEFT_OUT = "without intervals, which lie around the unbiased values that keep_noisy=False left out: "


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_value_that_was_moved_has_no_interval_without_its_unbiased_one(name, library, tmp_path):
    if library == "pandas":
        pytest.importorskip("pandas")
    frame = WARDS if library == "polars" else WARDS.to_pandas()
    words = {"keep_noisy": False, "ledger": dpf.Ledger(epsilon=9, delta=1e-3)}
    with seeded(4):
        made = MOVED[name](frame.dp, words)
    (measure,) = made.dp.provenance["measures"]
    errors = made.dp.errors(cells=True)
    for end in ("low", "high"):
        assert all(value is None or value != value for value in errors[f"{measure}_{end}"].to_list())
    assert errors[f"{measure}_interval"].to_list() == made[f"{measure}_error"].to_list()
    table = made.dp.table("csv")
    assert LEFT_OUT + measure in table
    assert f'"{measure} ±"' not in table
    assert f"The margin of error (95%) of the unbiased values of {measure} is" in made.dp.statement()
    made.dp.write_html(tmp_path / "page.html", charts=False)
    pytest.importorskip("altair")
    chart = made.dp.plot().to_dict()
    cells = [cell for data in found_in(chart, "values") for cell in data if isinstance(cell, dict)]
    assert cells
    assert not any({"low", "high", "open"} & {*cell} or "±" in str(cell) for cell in cells)
    assert "bars" not in str(chart["title"])


def test_a_value_that_was_not_moved_keeps_its_interval():
    """Only negative counts change, to 0, and the interval around 0 still contains every possible count."""
    ledger = dpf.Ledger(epsilon=99)
    count = WARDS.dp.group_by("g", keys=[*"ABCDEF"]).count(
        denoise="nonnegative", keep_noisy=False, epsilon=1.0, ledger=ledger
    )
    errors = count.dp.errors(cells=True)
    assert (errors["count_high"] - count["count"]).to_list() == pytest.approx(count["count_error"].to_list())
    assert LEFT_OUT not in count.dp.table("csv")
    kept = WARDS.dp.group_by("g", keys=[*"ABC"]).count(denoise="james-stein", epsilon=1.0, ledger=ledger)
    found = kept.dp.errors(cells=True)
    assert (found["count_high"] - kept["count_noisy"]).to_list() == pytest.approx(kept["count_error"].to_list())
