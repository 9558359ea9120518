"""The table of checks: what each verb measures, and the numbers of every engine compared with plain Python.

No false alarm is possible: no noise is added, and random rows are seeded.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from assurance.engines import ENGINES, spark_frames
from dpframe.accessor.released_frame import VERBS
from dpframe.engines.columns.source import source_of
from dpframe.engines.compiled import kernel_units, kernels
from dpframe.engines.schema import check
from dpframe.engines.sums import places, row_totals, unit_blocks
from dpframe.engines.sums.addends import OF_CHECKS
from dpframe.engines.task import CheckTask
from dpframe.engines.totals import InMemory, check_counts, totals
from dpframe.planning.check_pricing import checks_of
from dpframe.privacy import PrivacyUnit
from tests.engines.test_random_tables import NEEDS

VALUES = (None, math.nan, math.inf, -math.inf, -4.0, 0.0, 0.3, 1.0, 3.0, 9.0)
KEYS = ["A", "B"]
LOW, HIGH = 0.0, 3.0
BOUNDS = (LOW, HIGH)
ABOVE_0 = (0.25, HIGH)  # for cases made from the name of a verb: some verbs need values above 0
NORMS = (1, 2, math.inf)
UNITS = {
    "rows": {},
    "people": {"column": "u", "max_rows": 2, "max_groups": 1},
    "people of few rows": {"column": "u", "max_rows": 1, "max_groups": 2, "nulls": "one-unit"},
}
BOUNDED = {name for name in VERBS if "bounds" in getattr(getattr(dpf.PrivateFrame, name), "__annotations__", {})}
CLIPPED = {*BOUNDED, "proportion", "ecdf"}  # ratios are tested within agg
ASKED = {  # the specification: the verbs that measure each number; rules that cut units go by what they count
    "below": CLIPPED,
    "outside": {"group_by", "histogram", "top_k"},
    "rows": {*CLIPPED, "count", "histogram", "top_k"},
    "groups": {"n_units", "sum"},
}
SAME = {
    "below": "below",
    "above": "below",
    **dict.fromkeys(("rows", "squares", "most rows"), "rows"),
    "groups": "groups",
}
NO_CHECKS = {"mode", "top_k", "marginals", "contributions", "suggest_bounds", "n_distinct", "local"}
FRAMES = {"group_by", "preview", "local", "agg"}  # these measure nothing by themselves


@dataclass(frozen=True)
class Case:
    """A query, with facts stated by hand: the columns that it clips, the cell of a row, and how it counts units."""

    verb: str
    ask: Callable[..., Any]
    clipped: tuple[tuple[str, float, float], ...] = ()
    cell: Callable[[dict[str, Any]], Any] | None = None  # None: one cell holds all rows
    groups: int = 1
    counting: tuple[str, ...] = ("rows",)
    in_all: bool = False  # bounds clip the sum of a unit in each group
    among: str | None = None
    subtotals: bool = False

    def rules(self, unit: PrivacyUnit, p: float) -> list[str]:
        """Return the rules that cut units, as the specification states them."""
        if unit.column is None:
            return []
        found = []
        if "rows" in self.counting:
            found.append({1: "rows", 2: "squares", math.inf: "most rows"}[p] if self.groups > 1 else "rows")
            found += ["rows"] if self.subtotals and p != 1 else []
        if "groups" in self.counting and unit.max_groups < self.groups and p != math.inf:
            found.append("groups")
        return found


def in_group(row):
    return row["g"] if row["g"] in KEYS else None


def in_bin(row):
    value = row["x"]
    there = value is not None and LOW <= value <= HIGH
    return None if not there else value >= 1.0


def by_name(verb, dp, **options):
    return getattr(dp, verb)("x", bounds=ABOVE_0, **options)


def grouped(dp, **options):
    return dp.group_by("g", keys=KEYS, **options)


X, Y = ("x", LOW, HIGH), ("y", -1.0, 1.0)
BOTH = {"x": BOUNDS, "y": (-1.0, 1.0)}
BINS = [LOW, 1.0, HIGH]
BY_GROUP = {"cell": in_group, "groups": 2}
ratio = dpf.ratio("x", "y", bounds=BOTH)
CASES = {
    **{verb: Case(verb, partial(by_name, verb), (("x", *ABOVE_0),)) for verb in sorted(BOUNDED)},
    "covariance": Case("covariance", lambda dp, **o: dp.covariance(["x", "y"], bounds=BOTH, **o), (X, Y)),
    "correlation": Case("correlation", lambda dp, **o: dp.correlation(["x", "y"], bounds=BOTH, **o), (X, Y)),
    "ratio": Case("agg", lambda dp, **o: dp.agg(r=ratio, **o), (X, Y)),
    "proportion": Case("proportion", lambda dp, **o: dp.proportion("x", **o), (("x", 0.0, 1.0),)),
    "proportion of a value": Case("proportion", lambda dp, **o: dp.proportion("x", value=1.0, **o)),
    "quantile": Case("quantile", lambda dp, **o: dp.quantile("x", q=0.2, bounds=BOUNDS, **o), (X,)),
    "ecdf": Case("ecdf", lambda dp, **o: dp.ecdf("x", bins=BINS, **o), (X,), among="x"),
    "count": Case("count", lambda dp, **o: dp.count(**o)),
    "histogram": Case("histogram", lambda dp, **o: dp.histogram("x", bins=BINS, **o), cell=in_bin, groups=2),
    "n_units": Case("n_units", lambda dp, **o: dp.n_units(**o), counting=("groups",)),
    "sum of units": Case(
        "sum", lambda dp, **o: dp.sum("x", unit_bounds=BOUNDS, **o), (X,), counting=("groups",), in_all=True
    ),
    "two statistics": Case(
        "agg",
        lambda dp, **o: dp.agg(dpf.count(), dpf.sum("y", bounds=Y[1:]), dpf.mean("x", bounds=BOUNDS), **o),
        (Y, X),
    ),
    "top_k": Case(
        "top_k", lambda dp, **o: dp.top_k("g", categories=KEYS, k=1, counts=True, **o), cell=in_group, groups=2
    ),
    "sum by group": Case("sum", lambda dp, **o: grouped(dp).sum("x", bounds=BOUNDS, **o), (X,), **BY_GROUP),
    "mean by group": Case("mean", lambda dp, **o: grouped(dp).mean("x", bounds=BOUNDS, **o), (X,), **BY_GROUP),
    "covariance by group": Case(
        "covariance", lambda dp, **o: grouped(dp).covariance(["x", "y"], bounds=BOTH, **o), (X, Y), **BY_GROUP
    ),
    "ecdf by group": Case("ecdf", lambda dp, **o: grouped(dp).ecdf("x", bins=BINS, **o), (X,), among="x", **BY_GROUP),
    "median by group": Case("median", lambda dp, **o: grouped(dp).median("x", bounds=BOUNDS, **o), (X,), **BY_GROUP),
    "count by group": Case("count", lambda dp, **o: grouped(dp).count(**o), **BY_GROUP),
    "rollup": Case("count", lambda dp, **o: grouped(dp).count(rollup=True, **o), subtotals=True, **BY_GROUP),
    "n_units by group": Case("n_units", lambda dp, **o: grouped(dp).n_units(**o), counting=("groups",), **BY_GROUP),
    "sum of units by group": Case(
        "sum",
        lambda dp, **o: grouped(dp).sum("x", unit_bounds=BOUNDS, **o),
        (X,),
        counting=("groups",),
        in_all=True,
        **BY_GROUP,
    ),
    "units and rows": Case(
        "agg", lambda dp, **o: grouped(dp).agg(dpf.n_units(), dpf.count(), **o), counting=("rows", "groups"), **BY_GROUP
    ),
}
OF_UNITS = {name for name, case in CASES.items() if "groups" in case.counting}  # these need a unit column
NONE = {  # bounds cannot make their noisy numbers wrong, or this version has no checks for them
    "mode": lambda dp, **o: dp.mode("g", categories=KEYS, **o),
    "top_k": lambda dp, **o: dp.top_k("g", categories=KEYS, k=1, **o),
    "marginals": lambda dp, **o: dp.marginals(["g", "h"], keys={"g": KEYS, "h": KEYS}, delta=1e-6, **o),
    "contributions": lambda dp, **o: dp.contributions(**o),
    "suggest_bounds": lambda dp, **o: dp.suggest_bounds("x", **o),
    "discover": lambda dp, **o: dp.group_by("g", keys=dpf.discover(delta=1e-6)).count(delta=1e-6, **o),
}


def random_rows(seed, size=40):
    generator = np.random.default_rng(seed)
    pick = lambda values: values[generator.integers(len(values))]  # noqa: E731
    values = {"u": [1, 2, 3, 4, None], "g": [*KEYS, "C", None], "x": VALUES, "y": VALUES}
    return [{name: pick(each) for name, each in values.items()} for _ in range(generator.integers(0, size))]


def frame_of(rows):
    return pl.DataFrame(rows, schema={"u": pl.Int64, "g": pl.String, "h": pl.String, "x": pl.Float64, "y": pl.Float64})


def unit_of(name, neighbors="add-remove"):
    return PrivacyUnit(**{"column": None, **UNITS[name]}, neighbors=neighbors)


def checks_for(name, unit, p):
    return checks_of(CASES[name].ask(frame_of([]).dp.preview, epsilon=1, unit=unit).query, unit, p)


def numbers_of(case, unit, rows, p):
    """Compute the numbers in plain Python, one unit after the other."""
    there = lambda value: value is not None and not math.isnan(value)  # noqa: E731
    people, found, most = defaultdict(list), Counter(), unit.max_rows or 1
    most_groups = min(unit.max_groups or 1, case.groups)
    for number, row in enumerate(rows):
        if unit.column is None or row["u"] is not None or unit.nulls == "one-unit":
            people[number if unit.column is None else row["u"]].append(row)
    for owned in people.values():
        inside = [(case.cell(row) if case.cell else "all", row) for row in owned]
        inside = [(cell, row) for cell, row in inside if cell is not None]
        for column, low, high in case.clipped:
            values = [(cell, row[column]) for cell, row in inside if there(row[column])]
            if case.in_all and unit.column is not None:
                cells = dict.fromkeys(cell for cell, _ in values)
                near = [(cell, min(max(value, -1e3), 1e3)) for cell, value in values]  # sums need finite values
                values = [(cell, sum(value for at, value in near if at == cell)) for cell in cells]
            found["below", column] += any(value < low for _, value in values)
            found["above", column] += any(value > high for _, value in values)
            found["present", column] += bool(values)
        n = Counter(cell for cell, row in inside if case.among is None or there(row[case.among]))
        found["outside", None] += len(inside) < len(owned)
        found["units", None] += 1
        found["cut", "rows"] += sum(n.values()) > most * most_groups
        found["cut", "squares"] += sum(rows**2 for rows in n.values()) > most**2 * most_groups
        found["cut", "most rows"] += max(n.values(), default=0) > most
        found["cut", "groups"] += len(n) > most_groups
    return [found[key] for key in asked_of(case, unit, p)]


def asked_of(case, unit, p):
    """Return the numbers that the specification asks for, in order."""
    rules = [("cut", rule) for rule in case.rules(unit, p)]
    asked = [(what, column) for column, *_ in case.clipped for what in ("below", "above")]
    asked += [("present", column) for column, *_ in case.clipped]
    asked += [("outside", None)] if case.cell else []
    return [*asked, *rules, *([("units", None)] if case.cell or rules else [])]


def pairs_of(unit):
    return [name for name in CASES if unit.column is not None or name not in OF_UNITS]


def test_every_pair_of_a_verb_and_a_number_is_listed():
    """Fail for a verb or a pair that the specification lacks, and for a pair that no case covers."""
    assert {*VERBS} - FRAMES == {case.verb for case in CASES.values()} - {"agg"} | NO_CHECKS - {"local"}
    tried = defaultdict(set)
    for unit in map(unit_of, UNITS):
        for name in pairs_of(unit):
            case = CASES[name]
            for p in NORMS:
                checks = checks_for(name, unit, p)
                rules = {rule.words: rule.counting for rule in checks.rules}
                kinds = [
                    ("cut", rules[one.of]) if one.what == "cut" else (one.what, one.of) for one in checks.indicators
                ]
                assert kinds == asked_of(case, unit, p), (name, unit, p)
                for what, of in kinds:
                    of_groups = what == "outside" and case.cell is in_group and case.verb != "top_k"
                    tried[SAME.get(of if what == "cut" else what, what)].add("group_by" if of_groups else case.verb)
    assert {what: verbs - {"agg"} for what, verbs in tried.items() if what in ASKED} == ASKED


@pytest.mark.parametrize("verb", NONE)
def test_verbs_without_checks_have_none(verb):
    unit = {"unit": PrivacyUnit("u", max_rows=2, max_groups=1)} if verb == "contributions" else {}
    ledger = dpf.Ledger(epsilon=10, delta=0.1, accounting="basic", **({"unit": "u"} if unit else {}))
    plan = NONE[verb](frame_of([]).dp.preview, epsilon=1, ledger=ledger)
    assert plan.checks is plan.unseen is None


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", UNITS)
def test_indicators_are_those_of_plain_python(unit, neighbors):
    unit = unit_of(unit, neighbors)
    for name in pairs_of(unit):
        for p in NORMS:
            checks = checks_for(name, unit, p)
            for seed in range(3):
                rows = random_rows(seed)
                assert check_counts(frame_of(rows), checks).tolist() == numbers_of(CASES[name], unit, rows, p), (
                    name,
                    p,
                )


def on_an_engine(make, unit, neighbors):
    """Compare an engine with plain Python: every verb, two norms."""
    seed, unit = list(UNITS).index(unit), unit_of(unit, neighbors)
    for name in pairs_of(unit):
        rows = random_rows([seed, len(name)], 120)
        for p in (1, 2):
            found = check_counts(make(frame_of(rows)), checks_for(name, unit, p)).tolist()
            assert found == numbers_of(CASES[name], unit, rows, p), (name, unit, p)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "spark"])
def test_every_engine_finds_the_numbers_of_plain_python(name, unit, neighbors):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with ENGINES[name]() as make:
        on_an_engine(make, unit, neighbors)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", UNITS)
def test_spark_finds_the_numbers_of_plain_python(spark, unit, neighbors):
    with spark_frames(spark) as make:
        on_an_engine(make, unit, neighbors)


@pytest.mark.parametrize("unit", ["us", "ms"])
def test_times_are_compared_with_edges_between_two_of_their_ticks(unit):
    begin, half = datetime(2024, 1, 1), timedelta(microseconds=500)
    edges = [begin + half + timedelta(milliseconds=step) for step in (0, 10, 20)]
    times = [begin + timedelta(milliseconds=step) for step in (0, 0, 1, 20, 21)]
    frame = pl.DataFrame({"t": times}, schema={"t": pl.Datetime(unit)})
    plan = frame.dp.preview.ecdf("t", bins=edges, epsilon=1, checks=True, ledger=dpf.Ledger(epsilon=1))
    below, above, present = 2, 1, 5
    assert check_counts(frame, plan.checks.checks).tolist() == [below, above, present]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("column", [None, "u"])
def test_neighbors_move_the_numbers_by_no_more_than_is_stated(name, column, neighbors):
    """Each number moves by at most one, and their sum by at most `moved`, which calibrates the noise."""
    if column is None and name in OF_UNITS:
        pytest.skip("asked where units are protected")
    bounds = {} if column is None else {"max_rows": 1, "max_groups": 1}
    unit = PrivacyUnit(column, neighbors=neighbors, **bounds)
    checks = checks_for(name, unit, 1)
    if not checks.indicators:
        pytest.skip("nothing is asked")
    far = [{"u": 7, "g": "A", "h": None, "x": value, "y": value} for value in (-4.0, 9.0)]
    for seed in range(12):
        generator = np.random.default_rng([seed, len(name)])
        rows = [row for row in random_rows(seed) if row["u"] is not None]
        own, new = ([{**row, "u": 7} for row in random_rows(seed + more, 6)] for more in (1_000, 2_000))
        if column is None:
            own, new = own[:1] or far[:1], new[:1] or far[1:]
        if neighbors == "add-remove":
            new = []
        elif column is not None and not (own and new):
            continue  # a unit without rows does not exist
        place = int(generator.integers(0, len(rows) + 1))
        one, other = (check_counts(frame_of([*rows[:place], *more, *rows[place:]]), checks) for more in (own, new))
        moved = np.abs(one - other)
        assert moved.max() <= 1
        assert moved.sum() <= checks.moved
    one, other, none = (check_counts(frame_of(rows), checks) for rows in (far[:1], far[1:], []))
    pairs = len(CASES[name].clipped)
    assert np.abs(one - other).sum() == 2 * pairs  # values move from below to above
    assert np.abs(one - none).sum() >= 1
    assert checks.moved >= 2 * pairs if neighbors == "replace" else checks.moved >= 1


def test_a_pair_of_one_column_counts_once_where_rows_come_and_go():
    assert checks_for("mean", PrivacyUnit(), 1).moved == 2  # one of below and above, and present
    assert checks_for("mean", PrivacyUnit(neighbors="replace"), 1).moved == 3  # below, above and present
    assert checks_for("mean by group", PrivacyUnit(neighbors="replace"), 1).moved == 4  # and outside, but not units
    people = PrivacyUnit("u", max_rows=1)
    assert checks_for("mean", people, 1).moved == 5  # below, above, present, cut and units
    assert checks_for("mean", PrivacyUnit("u", max_rows=1, neighbors="replace"), 1).moved == 4


def many_rows(seed, rows):
    """Return rows of units of skewed sizes, with values on, between and beyond bounds, missing values, other keys."""
    generator = np.random.default_rng(seed)
    values = np.array([np.nan if value is None else value for value in VALUES])
    missing = pl.Series(generator.random(rows) < 0.1)
    return pl.DataFrame(
        {
            "u": pl.Series(generator.zipf(1.4, rows) % 500).set(missing, None),
            "g": pl.Series([*KEYS, "C"])[generator.choice(3, rows, p=[0.6, 0.3, 0.1])],
            "h": pl.Series([None], dtype=pl.String).new_from_index(0, rows),
            "x": pl.Series(values[generator.integers(0, values.size, rows)]).set(missing.reverse(), None),
            "y": generator.integers(-3, 4, rows),
            "z": generator.integers(-(2**62), 2**62, rows),
        }
    )


WAYS = {"kernels": 0, "arrays": 2**40}  # kernels are used from this number of rows on


@pytest.mark.parametrize("unit", ["rows", "people", "people of few rows", "named people"])
@pytest.mark.parametrize("way", WAYS)
def test_one_read_gives_totals_and_the_numbers_of_a_read_of_their_own(way, unit, monkeypatch):
    """Kernels and arrays, in small blocks, must equal a read of totals alone and numbers from flags of each row."""
    if way == "kernels":
        pytest.importorskip("numba")
    for module in (places, unit_blocks):
        monkeypatch.setattr(module, "BLOCK", 700)
    for module, name, value in (
        (kernels, "FEW_ROWS", WAYS[way]),
        (kernels, "BLOCK", 700),
        (kernel_units, "PART_ROWS", 100),
        (row_totals, "BLOCK", 700),
        (row_totals, "FEW_ROWS", 0),
        (unit_blocks, "FEW_ROWS", 0),
        (unit_blocks, "PART_ROWS", 100),
        (unit_blocks, "STRIP", 300),
    ):
        monkeypatch.setattr(module, name, value)
    frame = many_rows(5, 1_500)
    if unit == "named people":
        frame = frame.with_columns(pl.format("person {}", "u").alias("u"))
    protected = unit_of({"named people": "people of few rows"}.get(unit, unit))
    for number, name in enumerate(pairs_of(protected)):
        query, p = CASES[name].ask(frame_of([]).dp.preview, epsilon=1, unit=protected).query, NORMS[number % 3]
        checks, resolved = checks_of(query, protected, p), check(frame, query, protected)
        alone = {total: one.tolist() for total, one in totals(frame, resolved, protected, p).items()}
        both = {total: one.tolist() for total, one in totals(frame, resolved, protected, p, checks=checks).items()}
        task = CheckTask.of(InMemory(source_of(frame)), checks)
        rows_apart = task.weigh(task.coded(frame)).totals[OF_CHECKS].tolist()
        assert both.pop(OF_CHECKS) == rows_apart == check_counts(frame, checks).tolist(), (name, p)
        assert both == alone, (name, p)


@pytest.mark.parametrize("way", WAYS)
def test_the_flags_of_many_columns_do_not_meet(way, monkeypatch):
    """A row has 16 bits of flags; columns that do not fit are looked at otherwise."""
    if way == "kernels":
        pytest.importorskip("numba")
    monkeypatch.setattr(kernels, "FEW_ROWS", WAYS[way])
    for many in range(1, 8):
        names = [f"x{number}" for number in range(many)]
        values = {name: [9.0, 0.5, None] if name == names[-1] else [None] * 3 for name in names}
        frame = pl.DataFrame({"u": [1, 1, 2], **values}, schema_overrides=dict.fromkeys(names, pl.Float64))
        asked = {name: dpf.mean(name, bounds=(0, 1)) for name in names}
        unit = PrivacyUnit("u", max_rows=2)
        checks = checks_of(frame.dp.preview.agg(asked, epsilon=1, unit=unit).query, unit, 1)
        found = [(one.of, n) for one, n in zip(checks.indicators, check_counts(frame, checks).tolist(), strict=True)]
        assert [n for of, n in found if of == names[-1]] == [0, 1, 1]  # below, above and present
        assert [n for of, n in found if of in names[:-1]] == [0] * 3 * (many - 1)


@pytest.mark.parametrize("way", WAYS)
def test_whole_numbers_that_floats_cannot_tell_apart_are_compared_as_floats(way, monkeypatch):
    """Kernels and arrays must round values and bounds beyond 2**53 alike; some bounds lie between whole numbers."""
    if way == "kernels":
        pytest.importorskip("numba")
    monkeypatch.setattr(kernels, "FEW_ROWS", WAYS[way])
    frame = pl.DataFrame({"z": [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 0, 1, 2, 3]})
    for low, high in ((0.5, 2.5), (-1.0, 2.0**53), (-(2.0**53), 2.0**53 - 1)):
        values = frame["z"].cast(pl.Float64).to_numpy()
        query = frame.dp.preview.sum("z", bounds=(low, high), epsilon=1).query
        for few in (0, 2**40):
            monkeypatch.setattr(row_totals, "FEW_ROWS", few)
            found = check_counts(frame, checks_of(query, PrivacyUnit(), 1)).tolist()
            assert found == [(values < low).sum(), (values > high).sum(), 9]
