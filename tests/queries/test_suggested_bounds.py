"""Suggested bounds: the bins of the public grid on every engine, their sensitivity, and the candidate bounds."""

from __future__ import annotations

import math
import warnings
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from neighbors import EVERYTHING, UNITS, largest_by_chance, query_of

import dpframe as dpf
from assurance.engines import ENGINES
from assurance.suggested_bounds import lines, lost
from dpframe.engines.totals import totals
from dpframe.noise import insecure_bits
from dpframe.planning.bounds_suggestion import NoisyGrid, suggested
from dpframe.planning.suggestion import margin_of_tails, would_do
from dpframe.queries.statistics import suggested_bounds
from dpframe.queries.statistics.suggested_bounds import _number_edges, cuts_of, month_starts, sizes
from dpframe.release.results import exact_totals, noisy_of
from dpframe.testing import exact, seeded
from tests.covering import chance_of_missing

NEEDS = {"pandas": "pandas", "dataset": "pyarrow", "duckdb": "duckdb", "dask": "dask"}
COLUMNS = ["lower", "upper", "clipped", "clipped_low", "clipped_high", "noise", "total_error"]
ALARM = 1e-6
EDGES = (0.0, 2.0**-10, 2.0**-9, 1.0, 1.25, 2.0, 3.5, 8.0, 2.0**40)


def asked(*columns, statistic="mean", epsilon=0.5, whole=False):
    return suggested_bounds(columns, statistic, {"epsilon": epsilon}, whole)


def values_around_edges():
    """Return edges of the grid and adjacent floats, of both signs, and missing, infinite and far values."""
    around = [math.nextafter(edge, end) for edge in EDGES for end in (-math.inf, math.inf)]
    finite = [*EDGES, *around, 0.7, 5e-324, 3.0, 1e15]
    return [*finite, *(-value for value in finite), math.inf, -math.inf, math.nan, None]


def bin_of(value, whole=False):
    """Return the documented bin of a value: (a, b] above 0, [-b, -a) below, 0 by itself, and one at each end."""
    above = sizes(whole).tolist()
    if value == 0.0:
        return len(above) + 1
    place = sum(abs(value) > edge for edge in above)  # the smallest edge that is at least the absolute value
    return len(above) + 2 + place if value > 0 else len(above) - place


def counted(values, whole=False):
    counts = np.zeros(2 * sizes(whole).size + 3, dtype=np.int64)
    for value in values:
        if value is not None and not math.isnan(value):
            counts[bin_of(value, whole)] += 1
    return counts


def exact_counts(frame, whole=False, unit=None):
    statistic = asked("x", whole=whole)
    (values,) = totals(frame, query_of(statistic, EVERYTHING, True), unit or dpf.PrivacyUnit(), 1).values()
    return values


@pytest.mark.parametrize("whole", [False, True])
def test_the_bins_are_those_of_the_page(whole):
    values = values_around_edges() if not whole else [*range(-40, 41), 2**40, 2**40 + 1, 2**52]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64 if whole else pl.Float64)})
    assert exact_counts(frame, whole).tolist() == counted(values, whole).tolist()


@pytest.mark.parametrize("more", [{}, {"unit": dpf.PrivacyUnit("u", max_rows=2)}], ids=["rows", "units"])
@pytest.mark.parametrize("column", ["x", "day"])
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "spark"])  # `check_engine` covers it
def test_every_engine_suggests_the_same(name, column, more):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    random = np.random.default_rng(3)
    days = [date(2020, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 900, 3_000)]
    frame = pl.DataFrame({"x": random.lognormal(0, 2, 3_000), "u": random.integers(0, 900, 3_000), "day": days})
    answers = []
    with ENGINES[name]() as make:
        for given in (frame, make(frame)):
            with seeded(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", dpf.BoundsWarning)
                result = dpf.of(given).suggest_bounds(column, epsilon=0.2, ledger=dpf.Ledger(epsilon=1, **more))
            answers.append({name: [str(value) for value in result[name].to_list()] for name in COLUMNS})
    assert answers[0]["noise"] == answers[1]["noise"]
    assert [each[:10] for each in answers[0]["lower"]] == [each[:10] for each in answers[1]["lower"]]


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_neighbors_move_the_counts_by_no_more_than_is_stated(unit, pure):
    p = 1 if pure else 2
    query = query_of(asked("x"), EVERYTHING, pure)
    largest = largest_by_chance(query, unit, p, tries=120)
    assert largest <= 1 + 1e-9
    assert largest > (0.99 if unit.column is None else 0.5)


@pytest.mark.parametrize("price", [{"epsilon": 0.6}, {"epsilon": 0.6, "delta": 1e-6}])
def test_several_columns_cost_as_one_vector_of_them(price):
    """One row moves the vector of three columns 3**(1/p) times as far, and the noise grows by the same factor."""
    frame = pl.DataFrame({"x": [1.0], "y": [2.0], "z": [3]})
    ledger = dpf.Ledger(epsilon=1, delta=1e-5, accounting="basic")
    one = frame.dp.preview.suggest_bounds("x", **price, ledger=ledger)
    three = frame.dp.preview.suggest_bounds("x", "y", "z", **price, ledger=ledger)
    p = one.noises[0].norm
    assert three.cost == one.cost
    assert len(three.noises) == 3
    for noise in three.noises:
        assert noise.scale == pytest.approx(one.noises[0].scale * 3 ** (1 / p), rel=1e-6)


def test_without_noise_the_shares_are_those_of_the_values():
    random = np.random.default_rng(5)
    for drawn in (random.lognormal(1, 1, 5_000), random.poisson(4, 5_000) * 1.0, random.laplace(0, 30, 5_000)):
        values = np.sort(drawn)
        with exact():
            result = pl.DataFrame({"x": values}).dp.suggest_bounds("x", epsilon=5, ledger=dpf.Ledger(epsilon=5))
        assert result.columns == COLUMNS
        assert result.height == 20
        below, above = result["lower"].to_numpy(), result["upper"].to_numpy()
        share = np.array([np.mean((values < low) | (values > high)) for low, high in zip(below, above, strict=True)])
        assert (result["clipped_low"].to_numpy() <= share + 1e-12).all()
        assert (share <= result["clipped_high"].to_numpy() + 1e-12).all()
        assert np.abs(result["clipped"].to_numpy() - share).max() < 0.02
        assert result["total_error"].is_sorted()
        assert (result["total_error"] >= result["noise"]).all()
        loss = lost(values, below, above)
        bins = np.maximum(np.abs(below), above) / 8  # at least half the width of a bin within the bounds
        assert (
            np.abs((result["total_error"] - result["noise"]).to_numpy() - loss) <= loss + bins * (share + 0.01)
        ).all()


@pytest.mark.parametrize("middle", [20, 0])
@pytest.mark.parametrize("statistic", ["mean", "sum"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_noise_is_that_of_the_call_that_is_planned(statistic, neighbors, middle):
    """Around 0 the bounds have both signs: a replaced row then moves a sum by the whole range."""
    random = np.random.default_rng(6)
    frame = pl.DataFrame({"x": random.normal(middle, 5, 20_000)})
    unit = dpf.PrivacyUnit(neighbors=neighbors)
    for planned in ({"epsilon": 0.3}, {"epsilon": 0.3, "delta": 1e-7}):
        ledger = dpf.Ledger(epsilon=9, delta=1e-5, accounting="basic", unit=unit)
        with exact():
            result = frame.dp.suggest_bounds("x", epsilon=5, statistic=statistic, planned=planned, ledger=ledger)
        for row in result.head(3).iter_rows(named=True):
            bounds = (row["lower"], row["upper"])
            plan = getattr(frame.dp.preview, statistic)("x", bounds=bounds, **planned, size=20_000, ledger=ledger)
            assert row["noise"] == pytest.approx(plan.error[f"x_{statistic}"], rel=0.02)


@pytest.mark.parametrize("dtype", [pl.Date, pl.Datetime("ms")], ids=["dates", "instants"])
def test_dates_have_bounds_of_whole_months(dtype):
    days = pl.date_range(date(2021, 2, 3), date(2021, 2, 3) + timedelta(days=599), eager=True)
    frame = pl.DataFrame({"day": pl.concat([days] * 50).cast(dtype)})
    with seeded(2):
        result = frame.dp.suggest_bounds("day", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    lower, upper = result["lower"][0], result["upper"][0]
    assert result.schema["lower"] == result.schema["upper"] == pl.Date
    assert date(2021, 1, 1) <= lower <= date(2021, 3, 1)
    assert lower.day == 1
    assert date(2022, 8, 31) <= upper <= date(2022, 10, 31)
    assert (upper + timedelta(days=1)).day == 1


def test_whole_numbers_have_whole_bounds_that_clip_nothing_on_them():
    frame = pl.DataFrame({"x": np.random.default_rng(7).integers(16, 91, 50_000)})
    with seeded(3):
        result = frame.dp.suggest_bounds("x", epsilon=1, whole=True, ledger=dpf.Ledger(epsilon=1))
    best = result.row(0, named=True)
    assert best["lower"] in (15.0, 13.0)
    assert best["upper"] in (96.0, 112.0)
    assert all(value == int(value) for value in (*result["lower"], *result["upper"]))


def test_units_are_weighed_by_their_rows():
    """With max_rows=1, the 4,000 large values of one person weigh as much as one row, and do not set the bounds."""
    frame = pl.DataFrame({"u": [0] * 4_000 + list(range(1, 4_001)), "x": [900.0] * 4_000 + [3.0] * 4_000})
    with exact():
        ledger = dpf.Ledger(epsilon=9, unit="u")
        result = frame.dp.suggest_bounds("x", epsilon=9, max_rows=1, ledger=ledger)
    assert result["upper"][0] <= 4.0
    assert result["clipped"][0] <= 0.001
    assert any("weighed" in note for note in result.dp.provenance["notes"])


def test_objects_of_pandas_may_hold_no_numbers():
    """The dtype does not show it, since one odd value makes a column of numbers objects; so the warning says it."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": pandas.Series(["a", "b"] * 500, dtype=object)})
    with pytest.warns(dpf.BoundsWarning, match=r"epsilon would do, unless x holds no numbers: then cast it\."):
        frame.dp.suggest_bounds("x", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    with pytest.warns(dpf.BoundsWarning, match=r"epsilon( of about [0-9.]+)? would do\.$"):
        pl.DataFrame({"x": [1.0]}).dp.suggest_bounds("x", epsilon=0.01, ledger=dpf.Ledger(epsilon=1))


def test_no_epsilon_is_suggested_that_protects_weakly():
    assert would_do(5.0, 1.0) == "an epsilon of about 5 would do"
    assert would_do(50.0, 1.0) == "only an epsilon above 10, which protects weakly, would do"


def test_the_problem_of_each_column_is_a_sentence():
    values = [float(value) for value in range(200)]
    with (
        insecure_bits(1),
        pytest.warns(dpf.BoundsWarning, match=r"^the counts of x are .* would do\. The counts of y are .* would do\.$"),
    ):
        pl.DataFrame({"x": values, "y": values}).dp.suggest_bounds("x", "y", epsilon=0.05, ledger=dpf.Ledger(epsilon=1))


def test_where_noise_rules_it_recommends_nothing_and_warns():
    frame = pl.DataFrame({"x": [float(value) for value in range(200)]})
    with pytest.warns(dpf.BoundsWarning, match=r"too noisy to tell.*Take none of them.*epsilon"):
        result = frame.dp.suggest_bounds("x", epsilon=0.05, ledger=dpf.Ledger(epsilon=1))
    assert result["clipped_high"][0] > 0.5
    assert "Take none" in result.dp.provenance["found"]["problem"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = frame.dp.suggest_bounds("x", epsilon=0.05, ledger=dpf.Ledger(epsilon=1))  # not raised after a charge
    assert result.height == 20


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.7e12, r"numbers beyond 2\*\*40.*Divide them by a number that you choose, and ask"),
        (-1.7e12, r"numbers beyond 2\*\*40"),
        (date(9999, 12, 31), "dates before 1900 or after 2100.*Put other dates in their place, and ask"),
    ],
    ids=str,
)
def test_bounds_that_end_before_most_values_are_not_recommended(value, words):
    """Milliseconds since 1970 lie beyond the last bin: bounds at its edge would clip all of them to one number."""
    others = [date(2020, 1, 1)] if isinstance(value, date) else [3.0]
    frame = pl.DataFrame({"x": [value] * 2_000 + others * 500})
    with exact(), pytest.warns(dpf.BoundsWarning, match=f"most values of x are {words}") as caught:
        result = frame.dp.suggest_bounds("x", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert "% of rows. Take none of them" in str(caught[0].message)
    assert "Take none" in result.dp.provenance["found"]["problem"]
    with exact(), warnings.catch_warnings():
        warnings.simplefilter("error", dpf.BoundsWarning)
        few = pl.DataFrame({"x": [value] * 500 + others * 2_000})
        few.dp.suggest_bounds("x", epsilon=1, ledger=dpf.Ledger(epsilon=1))


def test_a_noisy_plan_is_no_reason_to_measure_the_grid_again():
    """If the planned noise alone leads to bounds that clip most values, more epsilon for the grid changes nothing."""
    frame = pl.DataFrame({"x": np.linspace(0, 100, 100_000)})
    with exact(), warnings.catch_warnings():
        warnings.simplefilter("error", dpf.BoundsWarning)
        result = frame.dp.suggest_bounds("x", epsilon=10, planned={"epsilon": 3e-5}, ledger=dpf.Ledger(epsilon=10))
    assert result["clipped_high"][0] > 0.5
    assert "problem" not in result.dp.provenance["found"]


def test_the_margin_of_tails_holds_for_all_of_them_at_once():
    random = np.random.default_rng(8)
    for pure, deviation in ((True, 28.3), (False, 12.0), (True, 0.7)):
        margin, runs, bins = margin_of_tails(60, (pure, deviation)), 4_000, 60
        q = (deviation**2 + 1 - math.sqrt(2 * deviation**2 + 1)) / deviation**2
        noise = random.geometric(1 - q, (runs, bins)) - random.geometric(1 - q, (runs, bins))
        if not pure:
            noise = np.rint(random.normal(0, deviation, (runs, bins)))
        held = np.ones(runs, dtype=bool)
        for ordered in (noise, noise[:, ::-1]):
            far = np.abs(np.cumsum(ordered, axis=1)) / np.sqrt(np.arange(1, bins + 1))
            held &= far.max(axis=1) <= margin * deviation * (1 + 1e-9)
        assert chance_of_missing(runs - held.sum(), runs, 0.05) > ALARM


def test_values_on_a_lower_bound_are_not_surely_clipped():
    """A lower bound of 14 clips values of the bin (12, 14], but not 14 itself, and whole numbers lie on edges."""
    frame = pl.DataFrame({"x": np.concatenate([np.repeat([14.0], 50), np.repeat([15.0, 16.0, 20.0], 50_000)])})
    with exact():
        ledger = dpf.Ledger(epsilon=5)
        result = frame.dp.suggest_bounds("x", epsilon=5, planned={"epsilon": 1e-4}, ledger=ledger)
    (on_edge,) = result.filter(pl.col("lower") == 14.0, pl.col("upper") == 20.0).iter_rows(named=True)
    assert on_edge["clipped_low"] == 0.0
    assert on_edge["clipped_high"] > 50 / 150_050


def test_a_far_bin_of_noise_alone_is_left_out():
    cuts = cuts_of(False, False)
    counts = np.zeros(cuts.middles.size)
    counts[bin_of(3.0)] = 10_000.0
    counts[-2] = 150.0  # the bin of 2**40: noise in one of many bins can be as large
    grid = NoisyGrid(cuts, counts, (True, 28.3), 1.0)
    assert grid.seen == (bin_of(3.0), bin_of(3.0))
    assert grid.seen_ends == (2.5, 3.0)
    assert grid._inside.sum() == 10_000.0


def test_intervals_hold_and_errors_are_near_the_best():
    shapes = {"lognormal": lambda random, rows: random.lognormal(0.0, 1.0, rows)}
    shapes["counts"] = lambda random, rows: random.poisson(3.0, rows).astype(float)
    found = list(lines(shapes=shapes, sizes=(20_000,), planned=(0.05, 0.005), runs=30))
    assert not [str(line) for line in found if line.fails]
    assert any(line.must_be_near for line in found)


def test_months_are_a_public_grid():
    starts = month_starts()
    assert (str(starts[0]), str(starts[-1]), starts.size) == ("1900-01-01", "2101-01-01", 2413)


def test_the_noise_that_is_drawn_is_all_that_differs():
    frame = pl.DataFrame({"x": np.random.default_rng(9).lognormal(0, 1, 2_000)})
    with dpf.Ledger(epsilon=1):
        plan = frame.dp.preview.suggest_bounds("x", epsilon=0.5)
    counts = exact_totals(plan, frame)
    with insecure_bits(1):
        first, _ = suggested(plan, noisy_of(plan, dict(counts)))
    with insecure_bits(1):
        again, _ = suggested(plan, noisy_of(plan, dict(counts)))
    assert all(np.array_equal(first[name], again[name]) for name in COLUMNS)


@pytest.mark.parametrize("columns", [("x", "y"), ("x",), ("day",)], ids=str)
def test_a_stored_answer_comes_again_at_no_cost(columns, tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "a.ledger", dataset="made up")
    days = [date(2021, 2, 3) + timedelta(days=day % 600) for day in range(3_000)]
    frame = pl.DataFrame({"x": [float(value % 50) for value in range(3_000)], "y": 1.0, "day": days})
    named = {"epsilon": 1, "label": "bounds", "snapshot": "1", "ledger": ledger}
    first, again = (frame.dp.suggest_bounds(*columns, **named) for _ in range(2))
    assert first.equals(again)
    assert first.dp.provenance == again.dp.provenance
    first.dp.write_parquet(tmp_path / "a.parquet")
    assert dpf.read_parquet(tmp_path / "a.parquet").dp.provenance == first.dp.provenance
    assert not first.dp.provenance["altered"]
    assert ledger.remaining.epsilon == 0
    with pytest.raises(dpf.LedgerError):
        frame.dp.suggest_bounds("x", statistic="sum", **named)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ({"columns": ()}, dpf.MissingArgument, "columns must be given"),
        ({"columns": (["x"],)}, dpf.InvalidType, "names one after the other"),
        ({"columns": ("x", "x")}, dpf.InvalidArgument, "named twice"),
        ({"columns": ("x", "day")}, dpf.InvalidArgument, "all hold numbers, or all dates"),
        ({"columns": ("name",)}, dpf.WrongDtype, "must hold numbers or dates"),
        ({"columns": ("day",), "whole": True}, dpf.WrongDtype, "whole=True"),
        ({"columns": ("day",), "statistic": "sum"}, dpf.WrongDtype, "statistic='sum'"),
        ({"statistic": "median"}, dpf.InvalidArgument, "'mean' or 'sum'"),
        ({"planned": {}}, dpf.MissingArgument, "planned must have an epsilon"),
        ({"planned": {"epsilon": 0}}, dpf.InvalidArgument, "above 0"),
        ({"planned": {"epsilon": 1, "share": 1}}, dpf.InvalidArgument, "no other"),
        ({"planned": {"epsilon": 1, "mechanism": "exponential"}}, dpf.InvalidArgument, "mechanism"),
        ({"planned": 0.5}, dpf.InvalidType, "dict"),
        ({"whole": 1}, dpf.InvalidType, "True or False"),
        ({"checks": True}, dpf.InvalidArgument, "checks must be left out"),
        ({"checks": 0.2}, dpf.InvalidArgument, "checks must be left out"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_charged(call, error, words):
    frame = pl.DataFrame({"x": [1.0], "day": [date(2021, 1, 1)], "name": ["a"]})
    ledger = dpf.Ledger(epsilon=1)
    named = {"epsilon": 0.5, **call}
    with pytest.raises(error, match=words):
        frame.dp.suggest_bounds(*named.pop("columns", ("x",)), **named, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_it_is_no_question_of_groups():
    frame = pl.DataFrame({"x": [1.0], "g": ["a"]})
    with pytest.raises(dpf.InvalidArgument, match="whole frame"):
        frame.dp.group_by("g", keys=["a"]).suggest_bounds("x", epsilon=1)


def test_automatic_checks_take_nothing():
    frame = pl.DataFrame({"x": [1.0] * 100})
    ledger = dpf.Ledger(epsilon=1, checks=True)
    for checks in ("auto", False):
        plan = frame.dp.preview.suggest_bounds("x", epsilon=0.5, checks=checks, ledger=ledger)
        assert plan.checks is None
        assert plan.parts[0].share == 1.0


@pytest.mark.parametrize("whole", [False, True])
def test_edges_do_not_depend_on_what_a_caller_has_set(whole):
    """The float next to 0 underflows, and `numpy.seterr(all="raise")` turned that into a raw error."""
    with np.errstate(all="raise"):
        edges = _number_edges.__wrapped__(whole)
    assert edges == _number_edges(whole)
    assert 0.0 < min(edge for edge in edges if edge > 0) == math.nextafter(0.0, 1.0)


def test_suggested_bounds_can_be_changed_again_and_written(tmp_path):
    """A part of the candidates is a result as they are, with all their columns."""
    frame = pl.DataFrame({"x": [float(row % 97) for row in range(6_000)]})
    result = frame.dp.suggest_bounds("x", epsilon=5, ledger=dpf.Ledger(epsilon=5))
    first = result.dp.head(3).dp.relabel(columns={"upper": "most"}).dp.filter({"lower": result["lower"][:2].to_list()})
    assert first.columns == ["lower", "most", *COLUMNS[2:]]
    assert first.rows() == result.head(2).rows()
    first.dp.write_parquet(tmp_path / "bounds.parquet")
    first.dp.write_html(tmp_path / "bounds.html")
    read = dpf.read_parquet(tmp_path / "bounds.parquet")
    assert read.dp.head(1).rows() == result.head(1).rows()
