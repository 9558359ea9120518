"""All subtotals of a table: their rows, their noise, their sensitivity; integer keys that stay integers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seen import seen

import dpframe as dpf
from dpframe.engines.compiled import kernel_units
from dpframe.engines.engine import Reading
from dpframe.engines.task import Task
from dpframe.engines.totals import engine_of, totals
from dpframe.errors import InvalidArgument
from dpframe.planning.sensitivity import sensitivities_of
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, Statistic, Sum, Total
from dpframe.queries.total import over
from dpframe.queries.vectors import two_sided

ROWS = {
    "ward": ["A", "A", "A", "B", "B", "C", "Z", None] * 40,
    "age": [1, 2, 2, 1, 3, 1, 1, 1] * 40,
    "cost": [1.0, 2.0, 3.0, 4.0, 5.0, None, 7.0, 8.0] * 40,
    "who": [number // 3 for number in range(320)],
}
KEYS = {"ward": ["A", "B"], "age": [1, 2, 3]}
EXACT = 1e6  # an epsilon with practically no noise
LEVELS = [slice(0, 6), slice(6, 8), slice(8, 11), slice(11, 12)]
WAYS = two_sided("v", (0.0, 1.0))


def table(frame, **options):
    return frame.dp.group_by("ward", "age", keys=KEYS).agg(
        n=dpf.count(), cost=dpf.sum("cost", bounds=(0, 9)), **{"cube": True, **options}
    )


def ledger(**options):
    return dpf.Ledger(epsilon=1e9, delta=0.5, accounting="basic", **options)


# Rows and values


def test_rows_of_all_subtotals(engine):
    found = engine.columns(table(engine(ROWS), epsilon=EXACT, ledger=ledger()))
    wards = [value if value == value else None for value in found["ward"]]
    assert wards == ["A", "A", "A", "B", "B", "B", "A", "B", None, None, None, None]
    assert found["age"] == [1, 2, 3, 1, 2, 3, None, None, 1, 2, 3, None]
    assert found["n"] == [40, 80, 0, 40, 0, 40, 120, 80, 80, 80, 40, 200]
    costs = [40, 200, 0, 160, 0, 200, 240, 360, 200, 200, 200, 600]
    assert found["cost"] == pytest.approx(costs, abs=0.1)


def test_of_one_column_a_cube_is_a_rollup(engine):
    frame = engine(ROWS)
    asked = frame.dp.group_by("age", keys=[3, 1])
    cube, rollup = (
        engine.columns(asked.count(epsilon=EXACT, ledger=ledger(), **{option: True})) for option in ("cube", "rollup")
    )
    assert cube == rollup
    assert cube["count"] == [40, 200, 240]


def test_of_three_columns_there_are_eight_levels():
    frame = pl.DataFrame(ROWS).with_columns(day=pl.date(2025, 1, 6) + pl.duration(days=pl.int_range(320) % 21))
    weeks = dpf.dates("2025-01-06", "2025-01-20", every="1w")
    asked = frame.dp.group_by("ward", "age", "day", keys={**KEYS, "day": weeks})
    found = asked.count(cube=True, epsilon=EXACT, ledger=ledger())
    assert found.height == 3 * 4 * 4
    assert [level["columns"] for level in found.dp.provenance["levels"]] == [
        *(["ward", "age", "day"], ["ward", "age"], ["ward", "day"], ["age", "day"]),
        *(["ward"], ["age"], ["day"], []),
    ]
    assert found.schema["day"] == pl.Date
    for row in found.iter_rows(named=True):
        mine = frame.filter(pl.col("ward").is_in(KEYS["ward"]), pl.col("age").is_in(KEYS["age"]))
        for name in ("ward", "age"):
            mine = mine.filter(pl.col(name) == row[name]) if row[name] is not None else mine
        if row["day"] is not None:
            mine = mine.filter(pl.col("day").dt.truncate("1w") == row["day"])
        assert row["count"] == mine.height


@pytest.mark.parametrize("price", [{"epsilon": 0.3}, {"epsilon": 0.3, "delta": 1e-6}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("unit", [None, dpf.PrivacyUnit(column="who", max_rows=2, max_groups=2)], ids=str)
def test_every_subtotal_is_exactly_the_sum_of_its_parts(unit, price):
    frame = pl.DataFrame(ROWS)
    found = table(frame, ledger=ledger(unit=unit), **price)
    asked = frame.dp.group_by("ward", "age", keys=KEYS)
    signed = asked.sum("cost", bounds=(-5, 9), cube=True, ledger=ledger(unit=unit), **price)
    raw = table(frame, denoise=None, ledger=ledger(unit=unit), **price)

    def adds_up(values):
        cells = values[:6].reshape(2, 3)
        sums = np.concatenate([cells.sum(axis=1), cells.sum(axis=0), [cells.sum()]])
        return bool((sums == values[6:]).all())

    for name in ("n", "cost"):
        assert adds_up(found[name].to_numpy())
        assert found[name].min() >= 0.0
        assert not adds_up(raw[name].to_numpy())
    assert adds_up(signed["cost_sum"].to_numpy())
    assert (found["n"] == found["n"].round()).all()


@pytest.mark.slow
def test_the_fit_is_as_near_as_the_record_foresees_in_both_margins():
    truth = np.random.default_rng(1).integers(20, 60, (12, 10))
    frame = pl.DataFrame({"s": np.repeat(np.arange(12), 10), "c": np.tile(np.arange(10), 12), "n": truth.ravel()})
    frame = frame.select(pl.col("s", "c").repeat_by("n").explode())
    exact = np.concatenate([truth.ravel(), truth.sum(axis=1), truth.sum(axis=0), [truth.sum()]])
    levels = [slice(0, 120), slice(120, 132), slice(132, 142), slice(142, None)]
    fitted, measured, foreseen = np.zeros(4), np.zeros(4), np.zeros(4)
    for _ in range(40):
        asked = frame.dp.group_by("s", "c", keys={"s": range(12), "c": range(10)})
        found = asked.count(cube=True, epsilon=1.0, ledger=ledger())
        said = found.dp.provenance["measures"]["count"]["denoise"][0]["estimated_rmse_of_levels"]
        for place, level in enumerate(levels):
            fitted[place] += np.square(found["count"].to_numpy()[level] - exact[level]).mean()
            measured[place] += np.square(found["count_noisy"].to_numpy()[level] - exact[level]).mean()
            foreseen[place] += said[place] ** 2
    assert fitted[0] < 0.9 * measured[0]
    assert fitted[0] == pytest.approx(foreseen[0], rel=0.2)  # for 4,800 squares, more than five standard deviations
    assert fitted[1:3] / foreseen[1:3] == pytest.approx(np.ones(2), abs=0.75)  # for 480 and 400 squares, as many


# Noise and cost


def test_every_level_is_a_statistic_of_its_own():
    found = table(pl.DataFrame(ROWS), epsilon=0.8, checks=False, ledger=ledger())
    facts = found.dp.provenance
    assert [level["rows"] for level in facts["levels"]] == [6, 2, 3, 1]
    assert facts["measures"]["cost"]["statistics"] == [1, 3, 5, 7]
    said = [one["measures"] for one in facts["statistics"]]
    assert said[::2] == ["rows", "rows by ward", "rows by age", "rows, all together"]
    assert {one["scale"] for one in facts["statistics"][::2]} == {10.0}  # 8 statistics share epsilon 0.8
    assert sum(one["share"] for one in facts["statistics"]) == pytest.approx(1.0)
    errors = found.dp.errors()
    assert errors["by"].to_list() == ["ward, age", "ward, age", "ward", "ward", "age", "age", "", ""]
    plan = pl.DataFrame(ROWS).dp.preview.group_by("ward", "age", keys=KEYS).count(cube=True, within=20.0)
    assert max(plan.error.values()) <= 20.0
    assert plan.cost.epsilon == pytest.approx(4 * math.log(20) / 20, rel=0.2)
    assert "with all subtotals" in repr(plan)
    assert plan.query.shown.cells == 12


@pytest.mark.slow
def test_levels_have_independent_noise():
    frame = pl.DataFrame({"g": ["a"], "h": ["b"]})
    asked = frame.dp.group_by("g", "h", keys={"g": ["a"], "h": ["b"]})
    noisy = np.array(
        [asked.count(cube=True, epsilon=0.4, denoise=None, ledger=ledger())["count"].to_numpy() for _ in range(400)]
    )
    off = np.corrcoef(noisy.T) - np.eye(4)
    assert np.abs(off).max() < 0.27
    assert noisy.std(axis=0) == pytest.approx([10 * math.sqrt(2)] * 4, rel=0.35)


# Sensitivity

CELLS = tuple(itertools.product(("A", "B"), (1, 2)))
TWO_WAY = Keys((KeyAxis(("ward",), (("A", "B"),)), KeyAxis(("age",), ((1, 2),))))
QUERY = Query("agg", TWO_WAY, (("n", Count()), ("up", Sum("x", (0.0, 4.0))), ("both", Sum("x", (-3.0, 4.0)))), "cube")
UNITS = [
    dpf.PrivacyUnit(neighbors=neighbors, **of)
    for neighbors in ("add-remove", "replace")
    for of in (
        {},
        {"column": "u", "max_rows": 1, "max_groups": 1},
        {"column": "u", "max_rows": 2, "max_groups": 2},
        {"column": "u", "max_rows": 1, "max_groups": 9},
    )
]
ROW = st.tuples(st.sampled_from([*CELLS, ("C", 1)]), st.sampled_from([None, -9.0, -3.0, 0.3, 2.0, 4.0]))
UNIT_ROWS = st.lists(ROW, max_size=7)


def exact(units, unit, p):
    rows = [(owner, *group, value) for owner, owned in enumerate(units) for group, value in owned]
    schema = {"u": pl.Int64, "ward": pl.String, "age": pl.Int64, "x": pl.Float64}
    return totals(pl.DataFrame(rows, schema=schema, orient="row"), QUERY, unit, p)


def farthest(before, after, unit, p):
    """Return, for each Total, the distance of these neighbors divided by the sensitivity."""
    one, other = exact(before, unit, p), exact(after, unit, p)
    assert set(one) == set(QUERY.totals)
    stated = dict(zip(QUERY.totals, sensitivities_of(QUERY, unit), strict=True))
    return {
        total: float(np.linalg.norm((one[total] - other[total]).astype(np.float64), ord=p)) / stated[total].steps(p)
        for total in QUERY.totals
    }


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("p", [1, 2])
@settings(deadline=None, max_examples=25)
@given(others=st.lists(UNIT_ROWS, max_size=2), mine=UNIT_ROWS, instead=UNIT_ROWS)
def test_no_neighbor_is_farther_than_the_sensitivity(unit, p, others, mine, instead):
    replaced = unit.neighbors == "replace"
    if unit.column is None:
        mine, instead = mine[:1], instead[:1]
        if replaced and not (mine and instead):
            return
    found = farthest([*others, mine], [*others, instead if replaced else []], unit, p)
    assert max(found.values()) <= 1.0 + 1e-12


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("margin", [0, 1], ids=["rows of the table", "columns of the table"])
def test_a_unit_nearly_attains_the_bound_in_either_margin(p, margin):
    """A unit has 2 rows in each of 2 cells of one row or column of the table."""
    unit = dpf.PrivacyUnit(column="u", max_rows=2, max_groups=2)
    mine = [(cell, 4.0) for cell in CELLS if cell[margin] == CELLS[0][margin] for _ in range(2)]
    found = farthest([mine], [[]], unit, p)
    line = {0: ("ward",), 1: ("age",)}[margin]
    assert all(part > 1.0 - 1e-6 for total, part in found.items() if total.by in (None, line, ()))
    assert max(found.values()) <= 1.0


@pytest.mark.parametrize("p", [1, 2])
def test_a_unit_in_many_cells_stays_within_the_bound(p):
    mine = [(cell, 4.0) for cell in CELLS for _ in range(50)]
    assert max(farthest([mine], [[]], dpf.PrivacyUnit(column="u", max_rows=1), p).values()) <= 1.0


def test_weights_of_one_level_alone_would_break_the_bound(monkeypatch):
    """The test has power: with cell weights only, a unit in four cells moves the total by twice the bound."""
    alone = kernel_units.of_units
    monkeypatch.setattr(kernel_units, "of_units", lambda *given, merged: alone(*given, merged=False))
    mine = [(cell, 4.0) for cell in CELLS for _ in range(50)]
    found = farthest([mine], [[]], dpf.PrivacyUnit(column="u", max_rows=1), 2)
    assert found[Total(None, by=())] == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("option", ["rollup", "cube"])
@pytest.mark.parametrize("total", [Total(per_unit=True), Total("v", (0.0, 1.0), per_unit=True), Total(vector=WAYS)])
def test_statistics_from_outside_have_subtotals_of_rows_alone(option, total):
    @dataclass(frozen=True)
    class Outside(Statistic):
        verb: ClassVar[str] = "outside"

        def totals(self):
            return (total,)

    groups = pl.DataFrame({"u": [1], "g": ["A"], "v": [1.0]}).dp.preview.group_by("g", keys=["A", "B", "C"])
    unit = dpf.PrivacyUnit("u", max_rows=1, max_groups=2)
    with pytest.raises(InvalidArgument, match=f"{option} must be left out of statistics that measure units"):
        groups.agg(n=Outside(), epsilon=1, unit=unit, **{option: True})


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_rows_that_were_brought_together_weigh_the_same(p):
    """Tables that are read in parts combine their rows first and compute weights by another path."""
    generator = np.random.default_rng(7)
    places = generator.integers(0, 4, 600)
    columns = {"u": generator.integers(0, 12, 600), "ward": np.array(["A", "A", "B", "B"])[places]}
    frame = pl.DataFrame({**columns, "age": places % 2 + 1, "x": generator.uniform(-4.0, 5.0, 600)})
    unit = dpf.PrivacyUnit(column="u", max_rows=2, max_groups=2)
    task = Task.of(engine_of(frame, Reading()), QUERY, unit, p)
    whole = task.piece(frame).totals
    for coded in (task.coded(frame), task.combine(task.coded(frame)), task.combine(task.combine(task.coded(frame)))):
        found = task.weigh(coded).totals
        assert {total: cells.tolist() for total, cells in found.items()} == {
            total: cells.tolist() for total, cells in whole.items()
        }


def test_subtotals_are_sums_of_the_same_integers():
    unit = dpf.PrivacyUnit(column="u", max_rows=2)
    generator = np.random.default_rng(2)
    owned = [
        [(CELLS[place], float(value)) for place, value in zip(places, values, strict=True)]
        for places, values in zip(generator.integers(0, 4, (40, 5)), generator.integers(-5, 6, (40, 5)), strict=True)
    ]
    for p, total in itertools.product((1, 2), QUERY.of_cells):
        found = exact(owned, unit, p)
        cells = found[total].reshape(2, 2)
        assert found[over(total, ("ward",))].tolist() == cells.sum(axis=1).tolist()
        assert found[over(total, ("age",))].tolist() == cells.sum(axis=0).tolist()
        assert found[over(total, ())].tolist() == [cells.sum()]


# Pictures, tables, replay


@pytest.mark.slow
def test_charts_and_tables_show_both_margins(engine):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    found = table(engine(ROWS), epsilon=0.5, ledger=ledger())
    drawn = seen(found.dp.plot())
    assert len(drawn["concat"]) == 8
    assert [panel["title"]["text"] for panel in drawn["concat"][:4]] == [
        *("n, by ward and age", "n, by ward", "n, by age", "n, all together")
    ]
    assert found.dp.table().as_raw_html().count(">all<") == 7


def test_a_two_way_table_is_shown_as_one(engine):
    pytest.importorskip("great_tables")
    asked = engine(ROWS).dp.group_by("ward", "age", keys=KEYS)
    html = asked.count(cube=True, epsilon=EXACT, ledger=ledger()).dp.table().as_raw_html()
    rows = [line.split("</tr>")[0] for line in html.split("<tbody")[1].split("<tr>")[1:]]
    cells = [[part.split(">")[1].split("<")[0] for part in row.split("<td")[1:]] for row in rows]
    assert [row[0] for row in cells] == ["A", "B", "all"]
    assert [row[-1].split(" ")[0] for row in cells] == ["120", "80", "200"]
    assert [cell.split(" ")[0] for cell in cells[-1][1:]] == ["80", "80", "40", "200"]


def test_subtotals_are_replayed_and_released_together(engine, tmp_path):
    durable = dpf.Ledger(epsilon=1, path=tmp_path / "wards.ledger", dataset="wards")
    asked = {"epsilon": 0.5, "label": "wards", "snapshot": "1", "ledger": durable}
    once, again = (table(engine(ROWS), **asked) for _ in range(2))
    assert engine.columns(once)["n"] == engine.columns(again)["n"]
    assert engine.columns(once)["age"] == engine.columns(again)["age"]
    assert [str(dtype) for dtype in once.dtypes] == [str(dtype) for dtype in again.dtypes]
    assert again.dp.provenance == once.dp.provenance
    assert not again.dp.provenance["altered"]
    assert durable.spent.epsilon == 0.5
    with pytest.raises(dpf.LedgerError):
        table(engine(ROWS), rollup=True, cube=False, **asked)
    plans = engine(ROWS).dp.preview.group_by("ward", "age", keys=KEYS)
    both = dpf.release_together({"a": plans.count(cube=True), "b": plans.count()}, epsilon=1, ledger=ledger())
    assert len(both["a"]) == 12
    assert both["a"].dp.provenance["levels"][2]["columns"] == ["age"]


# Integer keys


def dtype_of(frame, name):
    return str(frame[name].dtype)


def test_integer_keys_stay_integers(engine, tmp_path):
    frame = engine(ROWS)
    whole = "Int64"  # both libraries spell it like this
    for option in ("rollup", "cube"):
        found = frame.dp.group_by("age", keys=[1, 2]).count(epsilon=1, ledger=ledger(), **{option: True})
        assert dtype_of(found, "age") == whole
        assert engine.columns(found)["age"] == [1, 2, None]
        assert not found.dp.provenance["altered"]
        found.dp.write_parquet(tmp_path / "ages.parquet")
        like = "pandas" if engine.is_pandas else "polars"
        read = dpf.read_parquet(tmp_path / "ages.parquet", like=like)
        assert dtype_of(read, "age") == whole
        assert not read.dp.provenance["altered"]
    missing = frame.dp.group_by("age", keys=[1, None]).count(epsilon=1, ledger=ledger())
    assert dtype_of(missing, "age") == whole
    large = frame.dp.group_by("age", keys=[2**53 + 1, -(2**53) - 1]).count(rollup=True, epsilon=1, ledger=ledger())
    assert engine.columns(large)["age"] == [2**53 + 1, -(2**53) - 1, None]
    assert not large.dp.provenance["altered"]
    plain = frame.dp.group_by("age", keys=[1, 2]).count(epsilon=1, ledger=ledger())
    assert dtype_of(plain, "age") == ("int64" if engine.is_pandas else whole)
    mixed = frame.dp.group_by("cost", keys=[1, 2.5]).count(rollup=True, epsilon=1, ledger=ledger())
    assert dtype_of(mixed, "cost").lower() == "float64"
    flags = frame.dp.group_by("age", keys=[True, False]).count(rollup=True, epsilon=1, ledger=ledger())
    assert engine.columns(flags)["age"][:2] == [True, False]


def test_integer_keys_in_pictures_and_joined(engine):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    frame = engine(ROWS)
    found = [frame.dp.group_by("age", keys=[1, 2]).count(rollup=True, epsilon=1, ledger=ledger()) for _ in range(2)]
    assert seen(found[0].dp.plot())
    assert found[0].dp.table().as_raw_html().count(">all<") == 1
    assert dtype_of(dpf.concat(found), "age") == "Int64"
    missing = frame.dp.group_by("age", keys=[1, None]).count(epsilon=1, ledger=ledger())
    assert "missing" in missing.dp.table().as_raw_html()
    assert "missing" in missing.dp.plot().to_json()
