"""Subtotals that add up: their rows, their noise, their sensitivity, their consistency."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seen import seen

import dpframe as dpf
from dpframe import noise
from dpframe.engines.compiled import kernel_units
from dpframe.engines.totals import totals
from dpframe.planning.sensitivity import sensitivity_of
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.query import Query, levels_of, parents_of, rollup_of
from dpframe.queries.statistics import Count, Sum, Total
from dpframe.queries.total import over

ROWS = {
    "state": ["A", "A", "A", "B", "B", "C", "Z", None] * 40,
    "county": [1, 2, 2, 1, 3, 1, 1, 1] * 40,
    "cost": [1.0, 2.0, 3.0, 4.0, 5.0, None, 7.0, 8.0] * 40,
    "who": [number // 3 for number in range(320)],
}
COMBINATIONS = {"state": ["A", "B", "A", "B", "C"], "county": [2, 1, 1, 3, 9]}
EXACT = 1e6  # an epsilon with practically no noise


def groups(frame, keys=None, **options):
    declared = pl.DataFrame(COMBINATIONS) if keys is None else keys
    return frame.dp.group_by("state", "county", keys=declared).agg(
        n=dpf.count(), cost=dpf.sum("cost", bounds=(0, 9)), rollup=True, **options
    )


# Rows and values


def test_rows_of_all_levels(engine):
    with dpf.Ledger(epsilon=9 * EXACT):
        found = engine.columns(groups(engine(ROWS), epsilon=EXACT))
    none = [value if value == value else None for value in found["state"]]
    assert none == ["A", "B", "A", "B", "C", "A", "B", "C", None]
    assert [value if value == value else None for value in found["county"]] == [2, 1, 1, 3, 9, *[None] * 4]
    assert found["n"] == [80, 40, 40, 40, 0, 120, 80, 0, 200]
    assert found["cost"] == pytest.approx([200, 160, 40, 200, 0, 240, 360, 0, 600], abs=0.1)
    assert list(found) == ["state", "county", *(f"{name}{end}" for name in ("n", "cost") for end in ENDS)]


ENDS = ("", "_noisy", "_error")


def test_products_and_one_column(engine):
    frame = engine(ROWS)
    with dpf.Ledger(epsilon=9 * EXACT):
        one = engine.columns(frame.dp.group_by("state", keys=["B", "A"]).count(rollup=True, epsilon=EXACT))
        keys = {"state": ["A", "B"], "county": [1, 2, 3]}
        both = engine.columns(
            frame.dp.group_by("county", "state", keys=keys).sum("cost", bounds=(0, 9), rollup=True, epsilon=EXACT)
        )
    assert one["count"] == [80, 120, 200]
    assert both["cost_sum"] == pytest.approx([40, 160, 200, 0, 0, 200, 200, 200, 200, 600], abs=0.1)
    counties = [value if value == value else None for value in both["county"]]
    assert counties == [1, 1, 2, 2, 3, 3, 1, 2, 3, None]


def test_levels_of_a_product_and_their_parents():
    keys = Keys((KeyAxis(("a", "b"), ((1, 2, 1), ("x", "x", "y"))), KeyAxis(("c",), ((True, False),))))
    levels = levels_of(keys, rollup_of(keys.columns))
    assert [level.columns for level in levels] == [("a", "b", "c"), ("a", "b"), ("a",), ()]
    assert [level.size for level in levels] == [6, 3, 2, 1]
    assert parents_of(levels).tolist() == [6, 6, 7, 7, 8, 8, 9, 10, 9, 11, 11, -1]


def adds_up(values, levels):
    parents = parents_of(levels)
    children = np.bincount(parents[:-1], values[:-1], minlength=values.size)
    start = levels[0].size
    return bool((children[start:] == values[start:]).all())


@pytest.mark.parametrize("price", [{"epsilon": 0.3}, {"epsilon": 0.3, "delta": 1e-6}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("unit", [dpf.PrivacyUnit(), dpf.PrivacyUnit(column="who", max_rows=2, max_groups=2)], ids=str)
def test_every_subtotal_is_exactly_the_sum_of_its_parts(unit, price):
    frame = pl.DataFrame(ROWS)
    with dpf.Ledger(epsilon=9, delta=1e-3, accounting="basic", unit=unit):
        found = groups(frame, **price)
        signed = frame.dp.group_by("state", keys=["A", "B", "C"]).sum("cost", bounds=(-5, 9), rollup=True, **price)
        raw = groups(frame, denoise=None, **price)
    keys = Keys((KeyAxis(("state", "county"), tuple(map(tuple, COMBINATIONS.values()))),))
    levels = levels_of(keys, rollup_of(keys.columns))
    for name in ("n", "cost"):
        values = found.dp.to_numpy(name)
        assert values.shape == (9,)
        assert adds_up(values, levels)
        assert values.min() >= 0.0
        assert not adds_up(raw.dp.to_numpy(name), levels)
    assert (found["n"] == found["n"].round()).all()
    assert signed["cost_sum"][:-1].sum() == signed["cost_sum"][-1]


def test_the_fit_is_nearer_than_what_was_measured():
    truth = np.random.default_rng(1).integers(0, 60, (20, 10))
    frame = pl.DataFrame({"s": np.repeat(np.arange(20), 10), "c": np.tile(np.arange(10), 20), "n": truth.ravel()})
    frame = frame.select(pl.col("s", "c").repeat_by("n").explode())
    keys = {"s": range(20), "c": range(10)}
    exact = np.concatenate([truth.ravel(), truth.sum(axis=1), [truth.sum()]])
    levels = [slice(0, 200), slice(200, 220), slice(220, None)]
    fitted, measured, foreseen = np.zeros(3), np.zeros(3), np.zeros(3)
    with dpf.Ledger(epsilon=1e9), noise.insecure_bits(8):  # the same noise in each run, because 25 draws vary much
        for _ in range(25):
            found = frame.dp.group_by("s", "c", keys=keys).count(rollup=True, epsilon=0.3)
            said = found.dp.provenance["measures"]["count"]["denoise"][0]["estimated_rmse_of_levels"]
            for place, level in enumerate(levels):
                fitted[place] += np.square(found.dp.to_numpy("count")[level] - exact[level]).mean()
                measured[place] += np.square(found.dp.to_numpy("count_noisy")[level] - exact[level]).mean()
                foreseen[place] += said[place] ** 2
    assert (fitted[:2] < 0.95 * measured[:2]).all()
    assert fitted[0] < 1.02 * foreseen[0]  # the estimate ignores the gain from non-negativity
    assert 0.5 < fitted[1] / foreseen[1] < 1.5


def test_each_level_is_weighed_by_its_own_noise():
    """If people are in several groups, a total has more noise than a cell. Compared with dense least squares."""
    rows = pl.DataFrame({"who": range(4000), "ward": ["A", "B", "C", "D"] * 1000})
    asked = {"epsilon": 1, "delta": 1e-6, "max_rows": 1, "max_groups": 4, "rollup": True, "checks": False}
    keys = ["A", "B", "C", "D"]
    plan = rows.dp.preview.group_by("ward", keys=keys).count(unit="who", **asked)
    cells, total = (law.variance for law in plan.noises)
    assert total > 1.1 * cells
    ledger = dpf.Ledger(epsilon=9, delta=1e-5, unit="who")
    found = rows.dp.group_by("ward", keys=keys).count(ledger=ledger, **asked)
    sums_of = np.vstack([np.eye(4), np.ones((1, 4))])
    weighed = sums_of.T / np.array([cells] * 4 + [total])
    solved = np.linalg.solve(weighed @ sums_of, weighed)
    spread = sums_of @ np.linalg.inv(weighed @ sums_of) @ sums_of.T
    levels = [spread[0, 0] ** 0.5, spread[4, 4] ** 0.5]
    facts = found.dp.provenance["measures"]["count"]["denoise"][0]
    assert facts["estimated_rmse_of_levels"] == pytest.approx(levels, rel=1e-9)
    fitted = sums_of @ (solved @ found.dp.to_numpy("count_noisy"))
    assert np.abs(found.dp.to_numpy("count") - fitted).max() <= 1.5  # released counts are whole numbers that add up


def test_the_error_of_a_plan_is_that_of_its_noisiest_level():
    asked = {"delta": 1e-6, "unit": "who", "max_rows": 1, "max_groups": 3, "rollup": True, "checks": False}
    ask = pl.DataFrame(ROWS).dp.preview.group_by("state", keys=["A", "B", "C"]).count
    plan, within = ask(epsilon=1, **asked), ask(within=20, **asked)
    cells, total = plan.to_frame()["error"].to_list()
    assert total > 1.5 * cells
    assert plan.error == {"count": total}
    assert within.to_frame()["error"].max() <= 20.0


# Noise and cost


def test_every_level_is_a_statistic_of_its_own():
    frame = pl.DataFrame(ROWS)
    with dpf.Ledger(epsilon=9, checks=False):
        found = groups(frame, epsilon=0.6).dp.provenance
        plan = frame.dp.preview.group_by("state", keys=["A"]).count(rollup=True, within=20.0)
    assert found["levels"] == [
        {"columns": ["state", "county"], "rows": 5},
        {"columns": ["state"], "rows": 3},
        {"columns": [], "rows": 1},
    ]
    assert found["measures"]["cost"]["statistics"] == [1, 3, 5]
    said = [one["measures"] for one in found["statistics"]]
    assert said[::2] == ["rows", "rows by state", "rows, all together"]
    assert sum(one["share"] for one in found["statistics"]) == pytest.approx(1.0)
    assert {one["scale"] for one in found["statistics"][::2]} == {10.0}  # 6 statistics share epsilon 0.6
    assert plan.cost.epsilon == pytest.approx(2 * math.log(20) / 20, rel=0.2)
    assert max(plan.error.values()) <= 20.0
    assert plan.to_frame()["measures"].to_list() == ["rows", "rows, all together"]
    assert "with subtotals" in repr(plan)


@pytest.mark.slow
def test_levels_have_independent_noise():
    frame = pl.DataFrame({"g": ["a"]})
    with dpf.Ledger(epsilon=1e9):
        noisy = np.array(
            [
                frame.dp.group_by("g", keys=["a"]).count(rollup=True, epsilon=0.2, denoise=None)["count"].to_numpy()
                for _ in range(400)
            ]
        )
    assert abs(np.corrcoef(noisy.T)[0, 1]) < 0.25
    assert noisy.std(axis=0) == pytest.approx([10 * math.sqrt(2)] * 2, rel=0.35)


# Sensitivity

GROUPS = (("A", 1), ("A", 2), ("B", 1))
KEYS = Keys((KeyAxis(("state", "county"), tuple(zip(*GROUPS, strict=True))),))
QUERY = Query("agg", KEYS, (("n", Count()), ("up", Sum("x", (0.0, 4.0))), ("both", Sum("x", (-3.0, 4.0)))), "rollup")
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
ROW = st.tuples(st.sampled_from([*GROUPS, ("C", 1)]), st.sampled_from([None, -9.0, -3.0, 0.3, 2.0, 4.0]))
UNIT_ROWS = st.lists(ROW, max_size=7)


def exact(units, unit, p):
    rows = [(owner, *group, value) for owner, owned in enumerate(units) for group, value in owned]
    schema = {"u": pl.Int64, "state": pl.String, "county": pl.Int64, "x": pl.Float64}
    return totals(pl.DataFrame(rows, schema=schema, orient="row"), QUERY, unit, p)


def stated(total, unit, p):
    sizes = {level.columns: level.size for level in QUERY.shown.levels}
    merged = None if total.by is None else sizes[total.by]
    return sensitivity_of(total, unit, 3, merged).steps(p)


def farthest(before, after, unit, p):
    """Return, for each statistic, the distance of these neighbors divided by the sensitivity."""
    one, other = exact(before, unit, p), exact(after, unit, p)
    assert set(one) == set(QUERY.totals)
    return {
        total: float(np.linalg.norm((one[total] - other[total]).astype(np.float64), ord=p)) / stated(total, unit, p)
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
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_unit_nearly_attains_the_bound_in_every_level(p, neighbors):
    """2 rows in each of 2 counties of one state, against no rows; under replace, against 4 rows in another state."""
    unit = dpf.PrivacyUnit(column="u", max_rows=2, max_groups=2, neighbors=neighbors)
    mine = [(group, 4.0) for group in GROUPS[:2] for _ in range(2)]
    found = farthest([mine], [[]], dpf.PrivacyUnit(column="u", max_rows=2, max_groups=2), p)
    assert all(part > 1.0 - 1e-6 for total, part in found.items())
    if neighbors == "replace":
        assert max(farthest([mine], [[(GROUPS[2], -3.0)] * 4], unit, p).values()) <= 1.0 + 1e-12


@pytest.mark.parametrize("p", [1, 2])
def test_a_unit_in_many_cells_stays_within_the_bound(p):
    unit = dpf.PrivacyUnit(column="u", max_rows=1)
    mine = [(group, 4.0) for group in GROUPS for _ in range(50)]
    assert max(farthest([mine], [[]], unit, p).values()) <= 1.0


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_units_at_full_weight_do_not_depend_on_others(p, neighbors):
    """The number of heavy units decides how rows are combined; the numbers must not depend on it."""
    unit = dpf.PrivacyUnit(column="u", max_rows=2, max_groups=2, neighbors=neighbors)
    full = [(GROUPS[0], None)] * 4
    assert max(farthest([full], [full, [(GROUPS[0], None)] * 5], unit, p).values()) <= 1.0
    assert max(farthest([full], [full, [(GROUPS[0], None)] * 2 + [(GROUPS[1], None)] * 3], unit, p).values()) <= 1.0


def test_weights_of_one_level_alone_would_break_the_bound(monkeypatch):
    """The test has power: with cell weights only, a unit in three cells moves the total by sqrt(3) times the bound."""
    alone = kernel_units.of_units
    monkeypatch.setattr(kernel_units, "of_units", lambda *given, merged: alone(*given, merged=False))
    mine = [(group, 4.0) for group in GROUPS for _ in range(50)]
    found = farthest([mine], [[]], dpf.PrivacyUnit(column="u", max_rows=1), 2)
    assert found[Total(None, by=())] == pytest.approx(math.sqrt(3), rel=1e-3)


def test_subtotals_are_sums_of_the_same_integers():
    unit = dpf.PrivacyUnit(column="u", max_rows=2)
    generator = np.random.default_rng(2)
    owned = [
        [(GROUPS[place], float(value)) for place, value in zip(places, values, strict=True)]
        for places, values in zip(generator.integers(0, 3, (40, 5)), generator.integers(-5, 6, (40, 5)), strict=True)
    ]
    for p, total in itertools.product((1, 2), QUERY.of_cells):
        found = exact(owned, unit, p)
        cells = found[total]
        assert found[over(total, ("state",))].tolist() == [cells[0] + cells[1], cells[2]]
        assert found[over(total, ())].tolist() == [cells.sum()]


# Pictures, tables


@pytest.mark.slow
def test_charts_and_tables_show_the_levels(engine):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    with dpf.Ledger(epsilon=9):
        found = groups(engine(ROWS), epsilon=0.5)
    drawn = seen(found.dp.plot())
    assert len(drawn["concat"]) == 6
    assert drawn["concat"][2]["title"]["text"] == "n, all together"
    html = found.dp.table().as_raw_html()
    assert "missing" not in html
    assert html.count(">all<") == 5


@pytest.mark.slow
def test_subtotals_are_replayed(engine, tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "towns.ledger", dataset="towns")
    asked = {"epsilon": 0.5, "label": "towns", "snapshot": "1", "ledger": ledger}
    once, again = (groups(engine(ROWS), **asked) for _ in range(2))
    assert engine.columns(once)["n"] == engine.columns(again)["n"]
    assert len(again) == 9
    assert again.dp.provenance == once.dp.provenance
    assert ledger.spent.epsilon == 0.5
