"""Contribution bounds belong to the query: the call's come before those of its unit, then the ledger's defaults."""

from __future__ import annotations

import math
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import stats
from seen import seen

import dpframe as dpf
from dpframe.engines.totals import totals
from dpframe.planning import suggestion
from dpframe.planning.suggestion import Cells, CutUnits
from tests.covering import chance_of_missing

YEARS = list(range(2016, 2026))


def panel(people: int = 2_000) -> pl.DataFrame:
    """Return rows of people with one or two rows a year, over up to ten years."""
    random = np.random.default_rng(7)
    rows = [
        (person, year)
        for person in range(people)
        for year in YEARS[: random.integers(1, 11)]
        for _ in range(random.integers(1, 3))
    ]
    return pl.DataFrame(rows, schema=["person", "year"], orient="row")


PANEL = panel()
PREVIEW = PANEL.dp.preview


def bounds_of(plan):
    return plan.unit.contribution.max_rows, plan.unit.contribution.max_groups


def test_one_ledger_answers_by_year_and_over_all_within_the_errors():
    truth = PANEL.group_by("year").len().sort("year")["len"].to_numpy()
    with dpf.Ledger(epsilon=100, delta=1e-4, unit="person", accounting="basic") as ledger:
        for price in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}):
            years = PANEL.dp.group_by("year", keys=YEARS).count(**price, max_rows=2, max_groups=10, denoise=None)
            whole = PANEL.dp.count(**price, max_rows=20)
            assert np.abs(years["count"].to_numpy() - truth).max() <= 3 * years["count_error"].max()
            assert abs(whole["count"][0] - PANEL.height) <= 3 * whole["count_error"][0]
    assert len(ledger.to_frame()["unit"].unique()) == 2


def test_the_bounds_of_the_call_go_before_those_of_its_unit_and_of_the_ledger():
    unit = dpf.PrivacyUnit("person", max_rows=3, max_groups=4)
    with dpf.Ledger(epsilon=9, unit=unit) as ledger:
        assert bounds_of(PREVIEW.count(epsilon=1)) == (3, 4)
        assert bounds_of(PREVIEW.count(epsilon=1, max_rows=7)) == (7, 4)
        assert bounds_of(PREVIEW.count(epsilon=1, max_groups=1)) == (3, 1)
        assert bounds_of(PREVIEW.count(epsilon=1, unit="person")) == (3, 4)
        other = dpf.PrivacyUnit("person", max_rows=5)
        assert bounds_of(PREVIEW.count(epsilon=1, unit=other)) == (5, 4)
        assert bounds_of(PREVIEW.count(epsilon=1, unit=other, max_rows=6, max_groups=2)) == (6, 2)
        counted = PANEL.dp.count(epsilon=1, max_rows=7)
    assert counted.dp.provenance["unit"]["max_rows"] == 7
    assert "at most 7 rows in each of 4 groups" in ledger.to_frame()["unit"][0]


def test_what_is_not_given_is_one_and_the_plan_and_the_record_say_so():
    asked = PANEL.dp.group_by("year", keys=YEARS)
    with dpf.Ledger(epsilon=9, unit="person"):
        rows = asked.count(epsilon=1, max_rows=2)
        groups = asked.count(epsilon=1, max_groups=2)
        plan = PREVIEW.group_by("year", keys=YEARS).count(epsilon=1, max_groups=2)
        both = asked.count(epsilon=1, max_rows=1, max_groups=2)
    assert "max_groups is 1, since only max_rows was given" in rows.dp.provenance["notes"]
    assert "max_rows is 1, since only max_groups was given" in groups.dp.provenance["notes"]
    assert "max_rows is 1, since only max_groups was given" in repr(plan)
    assert not any("since only" in note for note in both.dp.provenance["notes"])
    assert rows.dp.provenance["unit"] | {"max_rows": 1, "max_groups": 2} == groups.dp.provenance["unit"]


def test_without_any_bounds_a_unit_is_refused_before_a_row_is_read_or_charged():
    ledger = dpf.Ledger(epsilon=1, unit="person")
    for verb in (PANEL.dp, PREVIEW):
        with pytest.raises(dpf.MissingArgument, match=r"df\.dp\.contributions"):
            verb.count(epsilon=1, ledger=ledger)
        with pytest.raises(dpf.MissingArgument, match="max_rows"):
            verb.mode("year", categories=YEARS, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}])
def test_bounds_that_a_question_does_not_use_cost_nothing(price):
    def errors(dp, **bounds):
        return dp.count(**price, unit="person", ledger=dpf.default_ledger(), max_rows=2, **bounds).error

    assert errors(PREVIEW) == errors(PREVIEW, max_groups=10)
    wards = PREVIEW.group_by("year", keys=YEARS)
    assert errors(wards, max_groups=10) == errors(wards, max_groups=1_000)
    assert errors(wards, max_groups=9) != errors(wards, max_groups=10)


def test_charts_notes_and_tables_say_what_the_bounds_leave_out():
    with dpf.Ledger(epsilon=9, unit="person"):
        years = PANEL.dp.group_by("year", keys=YEARS).count(epsilon=1, max_rows=5, max_groups=2, checks=False)
        one = PREVIEW.count(epsilon=1, max_rows=5)
        choice = PREVIEW.mode("year", categories=YEARS, epsilon=1, max_rows=5)
    words = "each row of a person with more than 5 rows in 2 groups has a lower weight"
    assert any(note.startswith(words) for note in years.dp.provenance["notes"])
    assert "with more than 5 rows has a lower weight" in repr(one)
    assert "with more than 5 rows in one of the options" in repr(choice)
    pytest.importorskip("great_tables")
    assert words in years.dp.table().as_raw_html()
    pytest.importorskip("altair")
    assert words[1:] in seen(years.dp.plot())["captions"]


def test_plans_released_together_keep_their_own_bounds():
    with dpf.Ledger(epsilon=9, unit="person") as ledger:
        plans = {
            "years": PREVIEW.group_by("year", keys=YEARS).count(max_rows=2, max_groups=10),
            "all": PREVIEW.count(max_rows=20),
        }
        together = dpf.plan_together(plans, epsilon=2)
        found = dpf.release_together(plans, epsilon=2)
    assert {name: bounds_of(plan) for name, plan in together.plans.items()} == {"years": (2, 10), "all": (20, 1)}
    assert found["years"].dp.provenance["unit"]["max_groups"] == 10
    assert found["all"].dp.provenance["unit"]["max_rows"] == 20
    assert found["years"].dp.provenance["statistics"][0]["sensitivity"] == 20
    assert abs(found["all"]["count"][0] - PANEL.height) <= 3 * found["all"]["count_error"][0]
    assert "full weight" not in ledger.to_frame()["unit"][0]  # their bounds differ, so the entry states none


def test_results_with_bounds_of_their_own_are_vouched_for(tmp_path):
    ledger = dpf.Ledger(epsilon=9, unit="person", path=tmp_path / "panel.ledger")
    years = PANEL.dp.group_by("year", keys=YEARS).count(epsilon=1, max_rows=2, max_groups=10, ledger=ledger)
    with ledger:
        plans = {"a": PREVIEW.count(max_rows=3), "b": PREVIEW.count(max_rows=20, max_groups=2)}
    together = dpf.release_together(plans, epsilon=2, ledger=ledger)
    opened = dpf.Ledger.open(tmp_path / "panel.ledger")
    assert opened.unit == dpf.PrivacyUnit("person")
    assert [one["record"] for one in opened.verify(years, *together.values())["releases"]] == ["as charged"] * 3
    forged = years.dp.provenance
    forged = {**forged, "unit": {**forged["unit"], "max_rows": 20}}
    with pytest.raises(dpf.LedgerError, match="unit"):
        opened.verify(forged)
    swapped = together["a"].dp.provenance
    swapped = {**swapped, "unit": {**swapped["unit"], "max_rows": 20}}
    with pytest.raises(dpf.LedgerError, match="not the one that the entry commits to"):
        opened.verify(swapped)


def test_a_ledger_is_opened_again_without_naming_its_default_bounds(tmp_path):
    path = tmp_path / "panel.ledger"
    dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit("person", max_rows=3), path=path)
    assert dpf.Ledger(epsilon=9, unit="person", path=path).unit == dpf.PrivacyUnit("person", max_rows=3)
    with pytest.raises(dpf.LedgerError, match="unit must be"):
        dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit("person", max_rows=4), path=path)
    with pytest.raises(dpf.LedgerError, match="unit must be"):
        dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit("person", neighbors="replace"), path=path)


def test_one_name_is_one_question_with_one_pair_of_bounds(tmp_path):
    ledger = dpf.Ledger(epsilon=9, unit="person", path=tmp_path / "panel.ledger")
    named = {"label": "rows", "snapshot": "2026", "ledger": ledger, "epsilon": 1}
    first = PANEL.dp.count(**named, max_rows=20)
    assert PANEL.dp.count(**named, max_rows=20, max_groups=1).equals(first)
    with pytest.raises(dpf.LedgerError, match="max_rows differs"):
        PANEL.dp.count(**named, max_rows=2)
    assert ledger.spent.epsilon == 1


# How much units contribute

VISITS = pl.DataFrame(
    {
        "person": [1, 1, 2, 3, 3, 3, None, None, 4, 5],
        "ward": ["A", "B", "A", "C", "A", "C", "A", "B", None, "D"],
        "sex": ["f", "f", "m", "m", "m", "f", "f", "f", "m", "m"],
    }
)
FRAMES = {"polars": lambda: VISITS, "lazy": VISITS.lazy, "pandas": VISITS.to_pandas}
NEARLY_EXACT = {"epsilon": 1e6, "denoise": None}


def cells_of(frame, *, nulls="drop", **asked):
    """Return the counts of the occupied grid cells, by the lower ends of their rows and groups."""
    unit = dpf.PrivacyUnit("person", nulls=nulls)
    found = dpf.of(frame).contributions(**asked, **NEARLY_EXACT, ledger=dpf.Ledger(epsilon=1e6, unit=unit))
    columns = (found[name].to_numpy() for name in ("rows_left", "groups_left", "count"))
    return {(int(rows), int(groups)): int(count) for rows, groups, count in zip(*columns, strict=True) if count}


@pytest.mark.parametrize("engine", FRAMES)
def test_each_unit_falls_in_the_cell_of_its_rows_and_groups(engine):
    if engine == "pandas":
        pytest.importorskip("pandas")
    frame = FRAMES[engine]()
    assert cells_of(frame) == {(1, 1): 3, (2, 1): 1, (3, 1): 1}
    assert cells_of(frame, by="ward") == {(1, 1): 3, (2, 2): 1, (3, 2): 1}  # a missing ward is a group
    assert cells_of(frame, by="ward", keys=["A", "B"]) == {(1, 1): 2, (2, 2): 1}  # rows of other wards are in no cell
    assert cells_of(frame, by="ward", keys=["A", None]) == {(1, 1): 4}
    assert cells_of(frame, by="ward", nulls="one-unit") == {(1, 1): 3, (2, 2): 2, (3, 2): 1}
    assert cells_of(frame, by=["ward", "sex"]) == {(1, 1): 3, (2, 2): 1, (3, 3): 1}
    keys = {"ward": ["A", "C"], "sex": ["f", "m"]}
    assert cells_of(frame, by=["ward", "sex"], keys=keys) == {(1, 1): 2, (3, 3): 1}


def test_cells_are_powers_of_two_and_the_last_is_open_above():
    random = np.random.default_rng(3)
    sizes = [1, 2, 3, 4, 5, 8, 9, 2**10, 2**10 + 1, 2**20, 2**20 + 1, 2**20 + 2**19]
    frame = pl.DataFrame({"person": random.permutation(np.repeat(np.arange(len(sizes)), sizes))})
    last = 2**19 + 1
    assert cells_of(frame) == {
        (1, 1): 1,
        (2, 1): 1,
        (3, 1): 2,
        (5, 1): 2,
        (9, 1): 1,
        (2**9 + 1, 1): 1,
        (2**10 + 1, 1): 1,
        (last, 1): 3,
    }
    with dpf.Ledger(epsilon=1, unit="person"):
        grid = frame.dp.contributions(epsilon=1)
    assert grid["rows_left"].to_list() == [1.0, 2.0, *(2.0**power + 1 for power in range(1, 20))]
    assert grid["rows_right"].to_list() == [*grid["rows_left"].to_list()[1:], 2.0**20 + 1]


def test_the_grid_ends_with_the_declared_groups():
    with dpf.Ledger(epsilon=9, unit="person"):
        three = VISITS.dp.contributions("ward", ["A", "B", "C"], epsilon=1)
        every = VISITS.dp.contributions("ward", epsilon=1)
    assert three["groups_right"].max() == 5
    assert (three.height, every.height) == (21 * 3, 21 * 21)
    assert three.dp.provenance["groups"] == {"columns": ["ward"], "size": 3}
    assert every.dp.provenance["groups"] == {"columns": ["ward"], "size": None}


@pytest.mark.slow
@pytest.mark.parametrize(("neighbors", "most"), [("add-remove", 1), ("replace", 2)])
def test_searched_sensitivity_of_contributions(neighbors, most):
    random = np.random.default_rng(11)
    unit = dpf.PrivacyUnit("person", neighbors=neighbors)
    ledger = dpf.Ledger(epsilon=9, unit=unit)

    def rows(person):
        size = random.integers(1, 12)
        return pl.DataFrame({"person": [person] * size, "ward": random.choice(["A", "B", "C", "D"], size)})

    def exact(frame, asked):
        plan = frame.dp.preview.contributions(**asked, epsilon=1, ledger=ledger)
        (found,) = totals(frame, plan.query, plan.unit, 1).values()
        return plan.parts[0].sensitivity, found

    farthest = {1: 0.0, 2: 0.0}
    for trial in range(120):
        asked = [{}, {"by": "ward"}, {"by": "ward", "keys": ["A", "B", "C"]}][trial % 3]
        others = [rows(person) for person in range(random.integers(1, 6))]
        mine, instead = rows(99), rows(99)
        frame = pl.concat([*others, mine])
        neighbor = pl.concat(others if neighbors == "add-remove" else [*others, instead])
        sensitivity, ours = exact(frame.sample(fraction=1, shuffle=True, seed=trial), asked)
        _, theirs = exact(neighbor, asked)
        for p in (1, 2):
            moved = float(np.linalg.norm((ours - theirs).astype(float), p))
            farthest[p] = max(farthest[p], moved)
            assert moved <= sensitivity.norm(p)
    assert farthest[1] == most == sensitivity.norm(1)
    assert farthest[2] == pytest.approx(most**0.5) == sensitivity.norm(2)


def test_contributions_take_the_whole_path(tmp_path):
    ledger = dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit("person", max_rows=9), path=tmp_path / "visits.ledger")
    named = {"by": "ward", "keys": ["A", "B"], "epsilon": 1, "ledger": ledger, "label": "bounds", "snapshot": "1"}
    first = VISITS.dp.contributions(**named)
    assert VISITS.dp.contributions(**named).equals(first)
    assert ledger.spent.epsilon == 1
    assert ledger.verify(first)["releases"] == [{"entry": 1, "record": "as charged", "numbers": "as stored"}]
    assert "full weight" not in ledger.to_frame()["unit"][0]
    facts = first.dp.provenance
    assert facts["verb"] == "contributions"
    assert (facts["unit"]["max_rows"], facts["statistics"][0]["sensitivity"]) == (None, 1.0)
    first.dp.write_parquet(tmp_path / "bounds.parquet")
    assert dpf.read_parquet(tmp_path / "bounds.parquet").dp.provenance == facts
    assert first.dp.to_numpy("count").shape == (21, 2)
    with ledger:
        plans = {"grid": VISITS.dp.preview.contributions("ward"), "n": VISITS.dp.preview.count(max_rows=3)}
        together = dpf.release_together(plans, epsilon=2)
    assert [one["record"] for one in ledger.verify(*together.values())["releases"]] == ["as charged"] * 2


def test_what_contributions_refuse():
    ledger = dpf.Ledger(epsilon=1, unit="person")
    refusals = [
        (dpf.InvalidType, "max_rows is not an argument of contributions", {"max_rows": 2}),
        (dpf.InvalidType, "max_groups is not an argument of contributions", {"max_groups": 2}),
        (dpf.InvalidArgument, "keys must come with by", {"keys": ["A"]}),
        (dpf.UnknownColumn, "'wardd'", {"by": "wardd"}),
        (dpf.MissingArgument, "epsilon must be given", {"epsilon": None}),
        (dpf.InvalidArgument, "unit must have a column", {"ledger": dpf.Ledger(epsilon=1)}),
    ]
    for kind, words, asked in refusals:
        with pytest.raises(kind, match=words):
            VISITS.dp.contributions(**{"epsilon": 1, "ledger": ledger} | asked)
    with pytest.raises(dpf.InvalidArgument, match="not per group"):
        VISITS.dp.group_by("ward", keys=["A"]).contributions(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


# Bounds that are suggested from the grid


def grid_of(frame=PANEL, epsilon=1e6, *, neighbors="add-remove", **asked):
    unit = dpf.PrivacyUnit("person", neighbors=neighbors)
    return frame.dp.contributions(**asked, epsilon=epsilon, ledger=dpf.Ledger(epsilon=1e6, unit=unit))


def alike(people, *, rows, groups):
    """Return rows of people who all have `rows` rows in each of `groups` groups."""
    pairs = [(person, group) for person in range(people) for group in range(groups) for _ in range(rows)]
    return pl.DataFrame(pairs, schema=["person", "group"], orient="row")


def test_suggest_asks_for_the_cost_of_the_planned_count():
    with pytest.raises(dpf.MissingArgument, match=r"epsilon must be given: the cost of the planned count\. "):
        grid_of().dp.suggest()


def test_what_is_suggested_is_read_off_the_noisy_numbers_whatever_is_done_to_them():
    """Adjusted counts vary less than the noise that the intervals assume, so suggestions use the noisy counts."""
    found = []
    for denoise in (None, "nonnegative"):
        with dpf.testing.seeded(3):
            grid = grid_of(epsilon=0.3, by="year", keys=YEARS, denoise=denoise)
            found.append((grid["count"].to_list(), grid.dp.suggest(epsilon=0.5)))
    assert found[0][0] != found[1][0]
    assert found[0][1].equals(found[1][1])


def test_a_grid_in_another_order_suggests_the_same():
    pytest.importorskip("pandas")
    ledger = dpf.Ledger(epsilon=1, unit="person")
    grid = PANEL.to_pandas().dp.contributions(epsilon=1, by="year", keys=YEARS, ledger=ledger)
    found = grid.sort_values("count_noisy").dp.suggest(epsilon=1)
    assert found.equals(grid.dp.suggest(epsilon=1))


def test_adjusted_counts_without_the_noisy_ones_suggest_nothing():
    """Cells cut at 0 add up to hundreds of units that do not exist, so no interval would hold."""
    for asked in ({"denoise": "nonnegative"}, {}):
        grid = grid_of(epsilon=0.3, by="year", keys=YEARS, keep_noisy=False, **asked)
        with pytest.raises(dpf.InvalidArgument, match="unbiased counts, which keep_noisy=False left out"):
            grid.dp.suggest(epsilon=0.5)
    assert grid_of(keep_noisy=False, denoise=None).dp.suggest(epsilon=0.5).height >= 10


def test_suggested_is_a_plain_frame_of_candidates_the_best_first():
    for asked in ({}, {"by": "year"}, {"by": "year", "keys": YEARS}):
        found = grid_of(**asked).dp.suggest(epsilon=1)
        assert found.columns == [
            *("max_rows", "max_groups", "rows_kept", "noise", "left_out", "total_error"),
            *("units_cut", "units_cut_low", "units_cut_high"),
        ]
        assert found.height >= 10
        assert found["total_error"].is_sorted()
        assert (found["total_error"] - found["noise"] - found["left_out"]).abs().max() < 1e-6
        with pytest.raises(AttributeError):
            _ = found.dp.no_such_thing
    pandas = pytest.importorskip("pandas")
    ledger = dpf.Ledger(epsilon=1, unit="person")
    assert isinstance(
        PANEL.to_pandas().dp.contributions(epsilon=1, ledger=ledger).dp.suggest(epsilon=1), pandas.DataFrame
    )


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("p", [1, 2])
def test_suggested_numbers_are_those_of_a_plain_computation(rows, p):
    """All people are alike, so one weight gives the kept rows; the noise is that of a plan."""
    frame, groups = alike(1_000, rows=rows, groups=2), 2
    price = {"epsilon": 1} if p == 1 else {"epsilon": 1, "delta": 1e-6}
    plans = frame.dp.preview.group_by("group", keys=[0, 1])
    found = grid_of(frame, by="group", keys=[0, 1]).dp.suggest(**price)
    size = 2 if rows == 1 else 3.5  # the middle of 3 to 4 rows
    for one in found.iter_rows(named=True):
        reach = one["max_rows"] * min(one["max_groups"], groups) ** (1 / p)
        weight = min(1.0, reach / (size / groups ** (1 - 1 / p)))
        assert one["rows_kept"] == pytest.approx(1_000 * size * weight, rel=1e-3)
        bounds = {name: one[name] for name in ("max_rows", "max_groups")}
        plan = plans.count(**price, **bounds, unit="person", checks=False, ledger=dpf.default_ledger())
        spread = plan.parts[0].mechanism.variance ** 0.5 * (2**-0.5 if p == 1 else (2 / np.pi) ** 0.5)
        assert one["noise"] == pytest.approx(groups * spread, rel=1e-3)


def test_suggested_bounds_suit_the_panel_at_a_small_price():
    """The true error of the best candidate (rows left out, plus noise) is near the least that bounds can have."""
    sizes = PANEL.group_by("person").len()["len"].to_numpy().astype(int)

    def error(max_rows, max_groups):
        reach = max_rows * min(max_groups, 10)
        return np.maximum(sizes - reach, 0).sum() + 10 * reach

    least = min(error(rows, 1) for rows in range(1, 60))
    for epsilon in (0.2, 0.5, 1e6):
        best = grid_of(epsilon=epsilon, by="year", keys=YEARS).dp.suggest(epsilon=1).row(0, named=True)
        assert error(best["max_rows"], best["max_groups"]) <= 2.5 * least
        assert best["max_rows"] * best["max_groups"] <= 60  # noise in far cells must not lead to bounds of a million


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 4.8, 5.8, 7.0, 20.0, 36.9])
@pytest.mark.parametrize("numbers", [10, 400])
def test_what_stands_out_is_beyond_the_exact_tail_of_the_noise(epsilon, numbers):
    """At a large epsilon the noise is 0 or 1 and seldom more: a limit below 1 would take each 1 for units."""
    ratio = math.exp(-epsilon)
    deviation = math.sqrt(2 * ratio) / (1 - ratio)
    least = math.floor(suggestion.stands_out(numbers, (True, deviation))) + 1  # the least number that stands out
    assert ratio**least / (1 + ratio) <= suggestion.RARE / numbers * (1 + 1e-9)
    assert least == 1 or ratio ** (least - 1) / (1 + ratio) > suggestion.RARE / numbers * (1 - 1e-9)
    tail = stats.norm.sf(math.floor(suggestion.stands_out(numbers, (False, deviation))) + 0.5, scale=deviation)
    assert tail <= suggestion.RARE / numbers, "of rounded Gaussian noise"


def test_noise_alone_suggests_the_smallest_bounds():
    few = alike(2, rows=1, groups=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.BoundsWarning)  # it warns that it recommends none of them
        smallest = [grid_of(few, epsilon=0.01).dp.suggest(epsilon=1).row(0)[:2] for _ in range(20)]
    assert smallest.count((1, 1)) >= 15


def test_suggested_noise_is_larger_where_units_are_replaced():
    noise = {
        neighbors: grid_of(neighbors=neighbors, by="year", keys=YEARS)
        .dp.suggest(epsilon=1)
        .sort("max_rows", "max_groups")
        for neighbors in ("add-remove", "replace")
    }
    both = noise["add-remove"].join(noise["replace"], on=["max_rows", "max_groups"])
    assert both.height >= 5
    assert (both["noise_right"] / both["noise"] - 2).abs().max() < 1e-3


def test_suggest_takes_a_price_of_its_own_and_a_grid_as_it_was_released():
    grid = grid_of(by="year", keys=YEARS)
    gaussian, both = grid.dp.suggest(epsilon=1, delta=1e-6), grid.dp.suggest(epsilon=1, delta=1e-6, mechanism="auto")
    assert both["total_error"][0] <= min(gaussian["total_error"][0], grid.dp.suggest(epsilon=1)["total_error"][0])
    refusals = [
        (dpf.MissingArgument, "epsilon must be given", {}),
        (dpf.MissingArgument, "delta must be given", {"epsilon": 1, "mechanism": "gaussian"}),
        (dpf.InvalidArgument, "delta must be left out", {"epsilon": 1, "delta": 1e-6, "mechanism": "laplace"}),
        (dpf.InvalidArgument, "mechanism must be", {"epsilon": 1, "mechanism": "cauchy"}),
        (dpf.InvalidArgument, "epsilon must be", {"epsilon": -1}),
    ]
    for kind, words, asked in refusals:
        with pytest.raises(kind, match=words):
            grid.dp.suggest(**asked)
    with pytest.raises(dpf.InvalidArgument, match="result of contributions"):
        PANEL.dp.count(epsilon=1, max_rows=2, ledger=dpf.Ledger(epsilon=1, unit="person")).dp.suggest(epsilon=1)
    with pytest.raises(dpf.NoProvenance):
        PANEL.dp.suggest(epsilon=1)


# How many units bounds cut


def cut(frame, groups, reach, p):
    """Return the share of units with a weight below 1, and the number of rows that they lose, in plain Python."""
    sizes = {}
    for person, group in frame.select("person", groups).iter_rows():
        sizes.setdefault(person, {}).setdefault(group, 0)
        sizes[person][group] += 1
    norms = [(sum(n**p for n in each.values()) ** (1 / p), sum(each.values())) for each in sizes.values()]
    lost = sum(rows * max(0.0, 1 - reach / norm) for norm, rows in norms)
    return sum(norm > reach * (1 + 1e-12) for norm, _ in norms) / len(norms), lost


def uneven(people=1_500):
    """Return rows of people of whom a few have hundreds of rows, some of them all in one group."""
    random = np.random.default_rng(5)
    rows = np.minimum(random.zipf(1.6, people), 400)
    places = random.random((people, 4)).cumsum(axis=1)
    owners = np.repeat(np.arange(people), rows)
    groups = (random.random(owners.size)[:, None] > (places / places[:, -1:])[owners]).sum(axis=1)
    return pl.DataFrame({"person": owners, "group": groups})


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("price", [{}, {"delta": 1e-6}], ids=["pure", "gaussian"])
def test_intervals_of_all_bounds_hold_at_once(epsilon, price):
    """Of 60 releases, at most 5% may have an interval that misses. A false alarm has a chance below 1e-6."""
    frame, known, missed = uneven(), {}, [0, 0]
    for _ in range(60):
        ledger = dpf.Ledger(epsilon=9, delta=1e-3, unit="person", accounting="basic")
        grid = frame.dp.contributions(by="group", keys=[0, 1, 2, 3], epsilon=epsilon, ledger=ledger, **price)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpf.BoundsWarning)
            found = grid.dp.suggest(epsilon=1.0, most_rows=400, **price)
        holds = [True, True]
        for one in found.iter_rows(named=True):
            p = 2 if price else 1
            reach = one["max_rows"] * min(one["max_groups"], 4) ** (1 / p)
            key = round(reach, 6)
            known[key] = known.get(key) or cut(frame, "group", reach, p)
            for place, name in enumerate(("units_cut", "left_out")):
                holds[place] &= one[f"{name}_low"] - 1e-9 <= known[key][place] <= one[f"{name}_high"] + 1e-9
        missed = [count + (not held) for count, held in zip(missed, holds, strict=True)]
    for count in missed:
        assert chance_of_missing(count, 60, 0.05) > 1e-6 / 16


def test_units_cut_without_noise():
    """Intervals run from the units of cells that are surely cut to those of cells in which some may be cut."""
    frame = alike(1_000, rows=4, groups=1)
    found = grid_of(frame).dp.suggest(epsilon=1, most_rows=4)
    ends = {one["max_rows"]: (one["units_cut_low"], one["units_cut_high"]) for one in found.iter_rows(named=True)}
    assert ends[1] == ends[2] == (1.0, 1.0)
    assert ends[3] == (0.0, 1.0)  # the units of a cell have 3 rows or 4
    assert ends[4] == (0.0, 0.0)
    rows = {one["max_rows"]: (one["left_out_low"], one["left_out_high"]) for one in found.iter_rows(named=True)}
    assert rows[2] == (1_000, 2_000)  # the units of a cell have 3 rows or 4
    assert "left_out_low" not in grid_of(frame).dp.suggest(epsilon=1).columns


def test_units_that_fit_exactly_are_not_cut():
    """As a float, 3 / sqrt(3) exceeds sqrt(3); still, max_groups=3 allows one row in each of three groups."""
    ends = {name: np.array([value]) for name, value in (("rows_left", 3.0), ("rows_right", 5.0))}
    ends |= {name.replace("rows", "groups"): end for name, end in ends.items()}
    law = {"variance": 0.0, "p": 2.0}
    for bounds, low, high in ((3, 0.0, 1.0), (2, 1.0, 1.0), (9, 0.0, 0.0)):
        units = CutUnits(Cells.of(ends, np.array([1_000.0]), law, None), 2.0, (bounds**0.5,))
        assert units.share(bounds**0.5)[1:] == (low, high)
    assert cut(alike(10, rows=1, groups=3), "group", 3**0.5, 2)[0] == 0.0


def test_nothing_is_recommended_where_noise_rules(caplog):
    frame = uneven(60)
    with pytest.warns(dpf.BoundsWarning, match="too noisy to tell.*ask for contributions again:.*would do") as caught:
        found = grid_of(frame, epsilon=0.02).dp.suggest(epsilon=1)
    assert caught[0].filename == __file__
    assert "% of units (" in str(caught[0].message)
    assert found["units_cut_high"][0] > 0.5
    with warnings.catch_warnings(), caplog.at_level("INFO", logger="dpframe"):
        warnings.simplefilter("error", dpf.BoundsWarning)  # a filter that refuses it takes no answer away
        grid = grid_of(frame, epsilon=0.02)
        assert grid.dp.suggest(epsilon=1).columns == found.columns
    assert "too noisy to tell" in caplog.text
    for wrong in (0, 1.5, "many"):
        with pytest.raises(dpf.DpframeError, match="most_rows must be"):
            grid_of(frame).dp.suggest(epsilon=1, most_rows=wrong)
