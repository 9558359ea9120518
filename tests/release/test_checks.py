"""Checks: what the bounds of a call leave out, measured in the same call.

Chance: every draw here is seeded, or of noise so small (epsilon 10,000) that an indicator is off by less than a half
but for a chance below e^-100.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from assurance.engines import ENGINES as EVERY_ENGINE
from dpframe.display.check_words import check_lines, check_warning
from dpframe.engines.check_counts import check_counts
from dpframe.noise import insecure_bits
from dpframe.planning.check_pricing import PlannedChecks, checks_of, shares_between
from dpframe.privacy import PrivacyUnit
from tests.engines.test_random_tables import NEEDS

VALUES = (None, math.nan, math.inf, -math.inf, -4.0, 0.0, 0.3, 1.0, 3.0, 9.0)
GROUPS = ("A", "B", "C", None)
KEYS = ["A", "B"]
LOW, HIGH = 0.0, 3.0
CALLS = {
    "mean": lambda dp, **o: dp.mean("x", bounds=(LOW, HIGH), **o),
    "sum by group": lambda dp, **o: dp.group_by("g", keys=KEYS).sum("x", bounds=(LOW, HIGH), **o),
    "count by group": lambda dp, **o: dp.group_by("g", keys=KEYS).count(**o),
    "rollup": lambda dp, **o: dp.group_by("g", keys=KEYS).count(rollup=True, **o),
    "median": lambda dp, **o: dp.median("x", bounds=(LOW, HIGH), **o),
    "ecdf": lambda dp, **o: dp.group_by("g", keys=KEYS).ecdf("x", bins=[LOW, 1.0, HIGH], **o),
    "units": lambda dp, **o: dp.group_by("g", keys=KEYS).n_units(**o),
    "sum of units": lambda dp, **o: dp.group_by("g", keys=KEYS).sum("x", unit_bounds=(LOW, HIGH), **o),
    "histogram": lambda dp, **o: dp.histogram("x", bins=[LOW, 1.0, HIGH], **o),
    "variance": lambda dp, **o: dp.variance("x", bounds=(LOW, HIGH), **o),
}
UNITS = {
    "rows": PrivacyUnit(),
    "people": PrivacyUnit("u", max_rows=2, max_groups=1),
    "people of many rows": PrivacyUnit("u", max_rows=1, max_groups=2, nulls="one-unit"),
}


def random_rows(seed, size=40):
    generator = np.random.default_rng(seed)
    pick = lambda values: values[generator.integers(len(values))]  # noqa: E731
    return [(pick([1, 2, 3, 4, None]), pick(GROUPS), pick(VALUES)) for _ in range(generator.integers(0, size))]


def frame_of(rows):
    return pl.DataFrame(rows, schema={"u": pl.Int64, "g": pl.String, "x": pl.Float64}, orient="row")


def checks_for(call, unit, p):
    plan = CALLS[call](frame_of([]).dp.preview, epsilon=1, unit=unit)
    return checks_of(plan.query, unit, p)


def in_plain_python(call, unit, rows, p):
    """The same numbers in another way: each person's rows, one after the other."""
    people = defaultdict(list)
    for number, (who, group, value) in enumerate(rows):
        if unit.column is None:
            people[number].append((group, value))
        elif who is not None or unit.nulls == "one-unit":
            people[who].append((group, value))
    found = Counter(units=len(people))
    by_group = call not in ("mean", "median", "histogram", "variance")
    for owned in people.values():
        there = [(g if by_group else "", v) for g, v in owned if not by_group or g in KEYS]
        if call == "histogram":
            there = [("bin", v) for _, v in there if v is not None and LOW <= v <= HIGH]
        found["outside"] += len(there) < len(owned)
        values = [(g, v) for g, v in there if v is not None and not math.isnan(v)]
        if call == "sum of units" and unit.column is not None:
            sums = defaultdict(float)
            for group, value in values:
                sums[group] += min(max(value, -1024 * HIGH), 1024 * HIGH)
            values = list(sums.items())
        found["below"] += any(v < LOW for _, v in values)
        found["above"] += any(v > HIGH for _, v in values)
        found["present"] += bool(values)
        counted = Counter(g for g, v in (values if call == "ecdf" else there))
        groups = min(unit.max_groups or 1, 3 if call == "histogram" else 2) if by_group or call == "histogram" else 1
        if unit.column is not None:
            most = unit.max_rows
            whole = {
                1: sum(counted.values()) > most * groups,
                2: sum(n * n for n in counted.values()) > most**2 * groups,
            }
            found["rows"] += whole[p] if by_group else sum(counted.values()) > most
            found["all"] += whole[1]
            found["groups"] += len(counted) > groups
    return found


def expected_of(call, unit, rows, p):
    found, checks = in_plain_python(call, unit, rows, p), checks_for(call, unit, p)
    names = {"squares": "rows", "rows": "all" if call == "rollup" and p == 2 else "rows", "groups": "groups"}
    cut = [names[rule.counting] for rule in checks.rules]
    each = [indicator.what for indicator in checks.indicators if indicator.what != "cut"]
    return [found[what] for what in [*each[:-1], *cut, "units"]]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("call", [call for call in CALLS if call != "histogram"])
def test_indicators_are_those_of_plain_python(call, unit):
    if call in ("units", "sum of units") and unit == "rows":
        pytest.skip("units and their sums are asked where units are protected")
    for p in (1, 2):
        checks = checks_for(call, UNITS[unit], p)
        for seed in range(12):
            rows = random_rows(seed)
            assert check_counts(frame_of(rows), checks).tolist() == expected_of(call, UNITS[unit], rows, p), (p, seed)


@pytest.mark.parametrize("name", [name for name in EVERY_ENGINE if name != "spark"])
def test_every_engine_finds_the_same(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with EVERY_ENGINE[name]() as make:
        for seed, call in enumerate(CALLS):
            frame = frame_of(random_rows(seed, 200))
            for unit in UNITS.values():
                if unit.column is None and call in ("units", "sum of units"):
                    continue
                checks = checks_for(call, unit, 2)
                assert check_counts(make(frame), checks).tolist() == check_counts(frame, checks).tolist(), call


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("column", [None, "u"])
def test_neighbors_move_the_numbers_by_no_more_than_is_stated(call, column, neighbors):
    """At most one of each number, and the numbers together by what the noise covers."""
    if column is None and call in ("units", "sum of units"):
        pytest.skip("asked where units are protected")
    bounds = {} if column is None else {"max_rows": 1, "max_groups": 1}
    unit = PrivacyUnit(column, neighbors=neighbors, **bounds)
    checks = checks_for(call, unit, 1)
    farthest = 0
    for seed in range(60):
        generator = np.random.default_rng([seed, len(call)])
        whose = 7
        rows = [(who, group, value) for who, group, value in random_rows(seed) if who is not None]
        own = [(whose, *rest) for _, *rest in random_rows(seed + 1_000, 6)]
        new = [(whose, *rest) for _, *rest in random_rows(seed + 2_000, 6)]
        own, new = (own[:1] or [(whose, "A", -4.0)], new[:1] or [(whose, "A", 9.0)]) if column is None else (own, new)
        if neighbors == "add-remove":
            new = []
        elif column is not None and not (own and new):
            continue  # a unit without rows is no unit
        place = int(generator.integers(0, len(rows) + 1))
        one, other = (check_counts(frame_of([*rows[:place], *more, *rows[place:]]), checks) for more in (own, new))
        moved = np.abs(one - other)
        assert moved.max() <= 1
        assert moved.sum() <= checks.moved
        farthest = max(farthest, int(moved.sum()))
    one = check_counts(frame_of([(7, "A", -4.0)]), checks) - check_counts(frame_of([(7, "A", 9.0)]), checks)
    if neighbors == "replace" and {"below", "above"} <= {indicator.what for indicator in checks.indicators}:
        assert np.abs(one).sum() >= 2 or call == "variance"
    assert farthest >= 1


def test_a_pair_of_one_column_counts_once_where_rows_come_and_go():
    call = "mean"
    assert checks_for(call, PrivacyUnit(), 1).moved == 3  # below or above, present, units
    assert checks_for(call, PrivacyUnit(neighbors="replace"), 1).moved == 3  # below, above, present
    people = PrivacyUnit("u", max_rows=1)
    assert checks_for(call, people, 1).moved == 5  # one person may have both, and be cut
    assert checks_for(call, PrivacyUnit("u", max_rows=1, neighbors="replace"), 1).moved == 4


INCOMES = [5_000.0] * 700 + [90_000.0] * 300
SURE = {"epsilon": 10_000.0, "checks": True}


def incomes(copies=1):
    return pl.DataFrame({"income": INCOMES * copies, "who": list(range(1_000)) * copies})


@pytest.mark.parametrize("delta", [{}, {"delta": 1e-6}])
@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_the_whole_call_costs_what_was_offered(accounting, delta):
    if accounting != "basic" and not delta:
        pytest.skip("needs a delta")
    limits = {"epsilon": 2, **delta} if accounting != "basic" else {"epsilon": 2}
    if accounting == "basic" and delta:
        limits |= delta
    ledger = dpf.Ledger(**limits, accounting=accounting)
    offered = {"epsilon": 0.5} | (delta if accounting == "basic" else {})
    with pytest.warns(dpf.BoundsWarning):
        incomes(20).dp.mean("income", bounds=(0, 20_000), checks=0.2, ledger=ledger, **offered)
    other = dpf.Ledger(**limits, accounting=accounting)
    incomes(20).dp.mean("income", bounds=(0, 20_000), ledger=other, **offered)
    assert ledger.spent.epsilon == pytest.approx(other.spent.epsilon, rel=1e-6)
    plain = incomes().dp.preview.mean("income", bounds=(0, 20_000), ledger=ledger, **offered)
    plan = incomes().dp.preview.mean("income", bounds=(0, 20_000), checks=0.2, ledger=ledger, **offered)
    grown = plan.parts[0].mechanism.scale / plain.parts[0].mechanism.scale
    pure = plan.checks.mechanism.name == "discrete Laplace"
    assert grown == pytest.approx(1 / 0.8 if pure else 1 / math.sqrt(0.8), rel=1e-2)


def test_every_noise_that_is_drawn_is_charged():
    from dpframe.accounting.gaussian_dp import GaussianDP

    plan = incomes().dp.preview.mean("income", bounds=(0, 2), checks=0.2, epsilon=0.5, ledger=dpf.Ledger(1, 1e-6))
    noises = [*plan.noises, plan.checks.mechanism]
    assert isinstance(plan.accounting, GaussianDP)
    assert plan.amount[0] >= sum(noise.mu_squared for noise in noises)
    assert plan.checks.mechanism.sensitivity == pytest.approx(math.sqrt(plan.checks.checks.moved))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto", "callable"])
def test_any_noise_of_the_answers_goes_with_checks(mechanism):
    def cubic(sensitivity, loss):
        return dpf.GeneralizedGaussian.calibrate(
            p=3, sensitivity=sensitivity.norm(3), epsilon=loss.epsilon, delta=loss.delta, grid=sensitivity.grid
        )

    ledger = dpf.Ledger(epsilon=1, delta=0.1, accounting="basic")
    offered = {"epsilon": 1} | ({} if mechanism == "laplace" else {"delta": 0.1})
    how = cubic if mechanism == "callable" else mechanism
    plan = incomes().dp.preview.sum("income", bounds=(0, 20_000), mechanism=how, checks=True, ledger=ledger, **offered)
    assert plan.checks is not None
    drawn = [*plan.noises, plan.checks.mechanism]
    if mechanism == "laplace":
        assert sum(noise.pure_epsilon for noise in drawn) <= 1 + 1e-12
    elif mechanism == "gaussian":
        from dpframe.mechanisms import gaussian_curve

        assert math.sqrt(sum(noise.mu_squared for noise in drawn)) <= gaussian_curve.largest_mu(1.0, 0.1) * (1 + 1e-9)
    elif mechanism == "callable":  # basic composition of both, before one factor sharpens them
        from dpframe.accounting.comparison import composed_epsilon

        pytest.importorskip("dp_accounting")
        assert composed_epsilon(tuple(drawn), 0.1) <= 1 + 1e-6


def test_shares_are_covered():
    """Of 20,000 draws of seeded noise at least 94.5% of intervals hold the share: 95% is promised."""
    checks = checks_for("mean", PrivacyUnit(), 1)
    with insecure_bits(7):
        for made in (
            dpf.Laplace.calibrate(sensitivity=3, epsilon=0.05),
            dpf.Gaussian.calibrate(sensitivity=math.sqrt(3), epsilon=0.05, delta=1e-6),
        ):
            for truth, whole in ((0, 1_000), (30, 1_000), (600, 1_000), (9_000, 10_000), (40, 200)):
                drawn = made.add_noise(np.full(40_000, 0, dtype=np.int64)).reshape(2, -1)
                low, high = shares_between(truth + drawn[0], (whole + drawn[1]).astype(float), made)
                held = np.mean((low <= truth / whole) & (truth / whole <= high))
                assert held >= 0.945, (made.name, truth, whole, held)
    assert isinstance(PlannedChecks(checks, made, 0).rows(np.array([1, 2, 3, 4])), list)


FAILURES = {
    "a clipped mean": (
        lambda dp, **o: dp.mean("income", bounds=(0, 20_000), **o),
        {},
        "income above 20,000",
        "too low",
    ),
    "a clipped total of each person": (
        lambda dp, **o: dp.sum("income", unit_bounds=(0, 20_000), **o),
        {"unit": "who", "max_groups": 1},
        "income in all above 20,000",
        "too low",
    ),
    "a count of too few rows": (
        lambda dp, **o: dp.count(**o),
        {"unit": "who", "max_rows": 2},
        "more than 2 rows",
        "counts and sums are too low",
    ),
    "a top-k with counts": (
        lambda dp, **o: dp.top_k("band", categories=["low", "high"], k=1, counts=True, **o),
        {"unit": "who", "max_rows": 2},
        "more than 2 rows in all",
        "too low",
    ),
    "a median": (
        lambda dp, **o: dp.quantile("income", q=0.9, bounds=(0, 20_000), **o),
        {},
        "income above 20,000",
        "lies beyond the bounds",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_an_answer_that_bounds_made_wrong_says_so_everywhere(failure, library, tmp_path):
    if library == "pandas":
        pytest.importorskip("pandas")
    call, who, of, wrong = FAILURES[failure]
    frame = incomes(6).with_columns(
        band=pl.when(pl.col("income") > 20_000).then(pl.lit("high")).otherwise(pl.lit("low"))
    )
    frame = frame if library == "polars" else frame.to_pandas()
    ledger = dpf.Ledger(epsilon=30_000, path=tmp_path / "a.ledger", unit=who.get("unit"))
    with pytest.warns(dpf.BoundsWarning, match=wrong) as caught:
        result = call(frame.dp, **who, **SURE, ledger=ledger)
    assert caught[0].filename == __file__
    (line,) = [line for line in check_lines(result.dp.provenance) if wrong in line]
    assert of in line
    assert line[0].isdigit()
    rows = result.dp.checks()
    assert list(rows.columns) == ["of", "what", "share", "share_low", "share_high", "count", "count_error"]
    assert type(rows) is type(result)
    assert [row["what"] for row in result.dp.provenance["checks"]] == list(rows["what"])
    path = tmp_path / "page.html"
    result.dp.write_html(path, charts=False)
    assert of in path.read_text(encoding="utf-8").replace("&#x27;", "'")
    if "top" not in result.dp.provenance:
        assert line in result.dp.statement()
        assert line in result.dp.table("markdown").replace("\\", "")
        result.dp.write_parquet(tmp_path / "page.parquet")
        again = dpf.read_parquet(tmp_path / "page.parquet", like=library)
        assert again.dp.provenance["checks"] == result.dp.provenance["checks"]
    assert ledger.verify(result)["releases"][0]["record"] == "as charged"


def test_little_that_is_clipped_is_said_and_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)
        result = incomes().dp.mean("income", bounds=(0, 100_000), **SURE, ledger=dpf.Ledger(10_000))
    lines = check_lines(result.dp.provenance)
    assert [line.startswith("fewer than 1% of rows have income") for line in lines] == [True, True]
    assert check_warning(result.dp.provenance) is None


def test_where_the_noise_is_too_large_to_tell_an_epsilon_that_would_do_is_named():
    with insecure_bits(1):
        result = incomes().dp.mean("income", bounds=(0, 20_000), epsilon=0.2, checks=True, ledger=dpf.Ledger(1))
    (line,) = [line for line in check_lines(result.dp.provenance) if "above" in line]
    assert "too noisy to tell" in line


def test_the_direction_of_the_error_is_told_as_far_as_it_is_known():
    frame = pl.DataFrame({"x": [-50.0] * 400 + [50.0] * 400 + [5.0] * 400, "one": [1.0] * 1_200})
    ratio = dpf.ratio("x", "one", bounds={"x": (0, 100), "one": (0, 2)})
    for statistic, direction in (
        (dpf.mean("x", bounds=(0, 10)), "off in an unknown direction"),
        (dpf.sum("x", bounds=(0, 100)), "too high"),
        (dpf.std("x", bounds=(0, 100)), "too low"),
        (ratio, "off in an unknown direction"),
    ):
        with pytest.warns(dpf.BoundsWarning, match=direction):
            frame.dp.agg(statistic, **SURE, ledger=dpf.Ledger(10_000))


def test_a_filter_that_makes_errors_of_warnings_costs_no_answer(tmp_path, caplog):
    ledger = dpf.Ledger(epsilon=30_000, path=tmp_path / "a.ledger")
    named = {"label": "income", "snapshot": "1"}
    with warnings.catch_warnings(), caplog.at_level("INFO", logger="dpframe"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)
        first = incomes().dp.mean("income", bounds=(0, 20_000), **SURE, **named, ledger=ledger)
        again = incomes().dp.mean("income", bounds=(0, 20_000), **SURE, **named, ledger=ledger)
    assert [record.message for record in caplog.records if "too low" in record.message] == [
        check_warning(first.dp.provenance)
    ]
    assert first.equals(again)
    assert again.dp.provenance["checks"] == first.dp.provenance["checks"]


def test_nothing_is_checked_where_nobody_asks():
    result = incomes().dp.mean("income", bounds=(0, 20_000), epsilon=1, ledger=dpf.Ledger(1))
    assert "checks" not in result.dp.provenance
    rows = result.dp.checks()
    assert rows.height == 0
    assert rows.schema == {
        **dict.fromkeys(("of", "what"), pl.String),
        **dict.fromkeys(("share", "share_low", "share_high", "count", "count_error"), pl.Float64),
    }


def test_a_ledger_may_say_it_for_all_its_calls(tmp_path):
    ledger = dpf.Ledger(epsilon=10, checks=0.5, path=tmp_path / "a.ledger")
    ask = incomes().dp.preview.mean
    assert ask("income", bounds=(0, 2), epsilon=1, ledger=ledger).checks.share == 0.5
    assert ask("income", bounds=(0, 2), epsilon=1, checks=False, ledger=ledger).checks is None
    assert ask("income", bounds=(0, 2), epsilon=1, checks="auto", ledger=ledger).checks is None
    assert dpf.Ledger.open(tmp_path / "a.ledger").checks is None  # it is this object's, and never the ledger's


@pytest.mark.parametrize(
    "call",
    [
        lambda dp: dp.mode("band", categories=["low"], epsilon=1, checks=True),
        lambda dp: dp.top_k("band", categories=["low", "high"], k=1, epsilon=1, checks=0.1),
        lambda dp: dp.count(epsilon=1, checks=True),
        lambda dp: dp.median("income", bounds=(0, 9), mechanism="exponential", epsilon=1, checks=True),
        lambda dp: dp.group_by("band", keys=dpf.discover(delta=1e-6)).count(epsilon=1, delta=1e-6, checks=True),
    ],
)
def test_checks_are_refused_where_there_is_nothing_to_check(call):
    frame = incomes().with_columns(band=pl.lit("low"))
    ledger = dpf.Ledger(epsilon=1, delta=0.1, accounting="basic")
    with ledger, pytest.raises(dpf.InvalidArgument, match="checks must be left out"):
        call(frame.dp)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    ("checks", "kind"), [(0, "a"), (1, "a"), (1.5, "a"), (-1, "a"), ("yes", "t"), ([1], "t"), (math.nan, "a")]
)
def test_a_share_that_is_none_is_refused(checks, kind):
    with pytest.raises(dpf.InvalidArgument if kind == "a" else dpf.InvalidType, match="checks must be"):
        incomes().dp.mean("income", bounds=(0, 2), epsilon=1, checks=checks)


def test_plans_released_together_are_checked_each():
    plans = {
        "a": incomes().dp.preview.mean("income", bounds=(0, 20_000), checks=True),
        "b": incomes().dp.preview.count("income"),
    }
    ledger = dpf.Ledger(epsilon=20_000)
    with pytest.warns(dpf.BoundsWarning, match="above 20,000"):
        results = dpf.release_together(plans, epsilon=20_000, ledger=ledger)
    assert "checks" in results["a"].dp.provenance
    assert "checks" not in results["b"].dp.provenance
    assert ledger.remaining.epsilon == 0
    both = dpf.plan_together(plans, epsilon=1.0, ledger=dpf.Ledger(1)).plans
    drawn = [*both["a"].noises, both["a"].checks.mechanism, *both["b"].noises]
    assert sum(noise.pure_epsilon for noise in drawn) <= 1.0 + 1e-12


def test_accuracy_is_priced_with_the_checks_in():
    ask = incomes().dp.preview.sum
    plain = ask("income", bounds=(0, 100), within=500)
    checked = ask("income", bounds=(0, 100), within=500, checks=0.2)
    assert checked.cost.epsilon == pytest.approx(plain.cost.epsilon / 0.8, rel=1e-3)
    assert checked.error["income_sum"] == pytest.approx(plain.error["income_sum"], rel=1e-5)


def test_a_plan_says_what_to_expect():
    plan = incomes().dp.preview.mean("income", bounds=(0, 20_000), epsilon=1, checks=0.1, size=5_000)
    assert "10% of the cost measures what the bounds leave out" in repr(plan)
    assert "of 5,000 rows" in repr(plan)


def test_a_boolean_column_of_polars_cannot_be_clipped():
    frame = pl.DataFrame({"smoker": [True, False, None], "g": ["A", "B", "A"]})
    plan = frame.dp.preview.group_by("g", keys=KEYS).proportion("smoker", epsilon=1, checks=True)
    assert [one.what for one in plan.checks.checks.indicators] == ["outside", "units"]
