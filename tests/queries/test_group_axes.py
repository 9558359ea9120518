"""Bins inside group_by: alone and with keys, for every statistic, exactly as a histogram cuts them."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.keys import Bins, KeyAxis

EXACT = 1e7  # an epsilon with practically no noise
EDGES = [0, 18, 65, 120]
AGES = [5.0, 18.0, math.nextafter(18.0, 0.0), 64.0, 65.0, 120.0, math.nextafter(120.0, 121.0), -1.0, math.inf, None]
ROWS = {
    "age": AGES * 12,
    "sex": ["f", "m", "f", "x", None, "m"] * 20,
    "ward": ["A", "B", "B"] * 40,
    "cost": [float(number % 7) for number in range(120)],
    "who": [number // 4 for number in range(120)],
}
PEOPLE = {"unit": dpf.PrivacyUnit("who", max_rows=4, max_groups=6)}


def ledger(**options):
    return dpf.Ledger(epsilon=1e12, delta=0.5, accounting="basic", **options)


def alike(engine, one, other):
    """Check that two results have equal labels, and equal counts except for the remaining noise."""
    one, other = engine.columns(one), engine.columns(other)
    assert list(one) == list(other)
    for name in one:
        assert one[name] == (other[name] if name.startswith("age") else pytest.approx(other[name], abs=0.01))


def in_bin(age, place):
    if age is None:
        return False
    left, right = EDGES[place], EDGES[place + 1]
    return left <= age < right or (place == 2 and age == right)


def expected(place, sex):
    rows = zip(ROWS["age"], ROWS["sex"], ROWS["cost"], strict=True)
    return [cost for age, one, cost in rows if in_bin(age, place) and one == sex]


def test_bins_and_keys_make_the_groups_in_the_order_in_which_they_are_named(engine):
    asked = engine(ROWS).dp.group_by(dpf.bins("age", EDGES), "sex", keys={"sex": ["f", "m"]})
    found = engine.columns(
        asked.agg(n=dpf.count(), c=dpf.sum("cost", bounds=(0, 9)), denoise=None, epsilon=EXACT, ledger=ledger())
    )
    assert list(found)[:3] == ["age_left", "age_right", "sex"]
    assert found["age_left"] == [0.0, 0.0, 18.0, 18.0, 65.0, 65.0]
    assert found["age_right"] == [18.0, 18.0, 65.0, 65.0, 120.0, 120.0]
    assert found["sex"] == ["f", "m"] * 3
    groups = [expected(place, sex) for place in range(3) for sex in ("f", "m")]
    assert found["n"] == [len(group) for group in groups]
    assert found["c"] == pytest.approx([sum(group) for group in groups], abs=0.01)


def test_the_order_of_names_is_the_order_of_columns():
    frame, keys = pl.DataFrame(ROWS), {"ward": ["A", "B"], "sex": ["f"]}
    ages = dpf.bins("age", EDGES)
    asked = frame.dp.group_by("sex", ages, "ward", keys=keys).count(epsilon=1, ledger=ledger())
    assert asked.columns[:4] == ["sex", "age_left", "age_right", "ward"]
    listed = frame.dp.group_by(["ward", "sex", ages], keys=keys).count(epsilon=1, ledger=ledger())
    assert listed.columns[:4] == ["ward", "sex", "age_left", "age_right"]
    pairs = pl.DataFrame({"ward": ["A", "B", "B"], "sex": ["f", "f", "m"]})
    combined = frame.dp.group_by("sex", ages, "ward", keys=pairs).count(denoise=None, epsilon=EXACT, ledger=ledger())
    assert combined.columns[:4] == ["sex", "ward", "age_left", "age_right"]
    assert combined.height == 9
    for row in combined.iter_rows(named=True):
        at = [
            (a is not None and row["age_left"] <= a < row["age_right"]) or a == 120.0 == row["age_right"]
            for a in ROWS["age"]
        ]
        mine = [w == row["ward"] and s == row["sex"] for w, s in zip(ROWS["ward"], ROWS["sex"], strict=True)]
        assert row["count"] == sum(one and other for one, other in zip(at, mine, strict=True))


@pytest.mark.parametrize("unit", [{}, PEOPLE], ids=["rows", "people"])
@pytest.mark.parametrize("outside", ["drop", "clip"])
def test_bins_alone_are_those_of_a_histogram(engine, unit, outside):
    frame, price = engine(ROWS), {"denoise": None, "epsilon": EXACT, "ledger": ledger(**unit)}
    binned = frame.dp.group_by(dpf.bins("age", EDGES, outside=outside)).count(**price)
    cut = frame.dp.histogram("age", bins=EDGES, outside=outside, **price)
    alike(engine, binned, cut)
    equal = dpf.bins("age", 4, range=(0, 120), outside=outside)
    alike(
        engine,
        frame.dp.group_by(equal).count(**price),
        frame.dp.histogram("age", bins=4, range=(0, 120), outside=outside, **price),
    )


STATISTICS = {
    "count": dpf.count("cost"),
    "sum": dpf.sum("cost", bounds=(0, 9)),
    "unit sum": dpf.sum("cost", unit_bounds=(0, 9)),
    "mean": dpf.mean("cost", bounds=(0, 9)),
    "variance": dpf.variance("cost", bounds=(0, 9)),
    "std": dpf.std("cost", bounds=(0, 9)),
    "median": dpf.median("cost", bounds=(0, 9)),
    "units": dpf.n_units(),
    "proportion": dpf.proportion("ward", value="A"),
    "ratio": dpf.ratio("cost", "age", bounds={"cost": (0, 9), "age": (0, 120)}),
}


@pytest.mark.parametrize("delta", [None, 1e-6], ids=["pure", "gaussian"])
@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_of_binned_groups_is_that_of_the_groups_as_keys(name, delta):
    """The exact integers equal those of groups by a column that holds the bin of each row."""
    place = pl.coalesce(
        *(
            pl.when(
                pl.col("age").ge(EDGES[bin])
                & (pl.col("age").lt(EDGES[bin + 1]) | ((pl.lit(bin) == 2) & pl.col("age").eq(EDGES[3])))
            ).then(pl.lit(bin))
            for bin in range(3)
        ),
        pl.lit(None),
    )
    frame = pl.DataFrame(ROWS).with_columns(place.alias("place"))
    preview = {"epsilon": 1.0, "delta": delta, **PEOPLE}
    binned = frame.dp.preview.group_by(dpf.bins("age", EDGES), "ward", keys=["A", "B"]).agg(
        x=STATISTICS[name], **preview
    )
    keyed = frame.dp.preview.group_by("place", "ward", keys={"place": [0, 1, 2], "ward": ["A", "B"]}).agg(
        x=STATISTICS[name], **preview
    )
    assert [part.sensitivity for part in binned.parts] == [part.sensitivity for part in keyed.parts]
    norm = binned.parts[0].mechanism.norm
    one, other = (totals(frame, plan.query, plan.unit, norm) for plan in (binned, keyed))
    assert [values.tolist() for values in one.values()] == [values.tolist() for values in other.values()]


def test_a_histogram_per_bin_and_a_distribution_per_bin(engine):
    asked = engine(ROWS).dp.group_by(dpf.bins("age", EDGES))
    grid = engine.columns(asked.histogram("cost", bins=[0, 3, 7], denoise=None, epsilon=EXACT, ledger=ledger()))
    assert list(grid)[:4] == ["age_left", "age_right", "cost_left", "cost_right"]
    costs = [expected(place, sex) for place in range(3) for sex in ("f", "m", "x", None)]
    mine = [[cost for group in costs[4 * place : 4 * place + 4] for cost in group] for place in range(3)]
    assert grid["count"] == [
        sum(low <= c < low + wide for c in group) for group in mine for low, wide in ((0, 3), (3, 4.1))
    ]
    running = engine.columns(asked.ecdf("cost", bins=[0, 3, 7], epsilon=EXACT, ledger=ledger()))
    assert running["ecdf"][1::2] == pytest.approx([1.0] * 3)


def test_in_preview_within_together_and_pictures(engine):
    frame, ages = engine(ROWS), dpf.bins("age", EDGES)
    asked = frame.dp.preview.group_by(ages, "sex", keys=["f", "m"])
    plan = asked.agg(n=dpf.count(), epsilon=1)
    assert plan.query.keys.cells == 6
    assert "values of age outside [0, 120] are left out" in plan.notes
    assert asked.count(within=20).cost.epsilon < 0.3
    both = dpf.release_together({"ages": asked.count(), "all": frame.dp.preview.count()}, epsilon=1, ledger=ledger())
    assert len(both["ages"]) == 6
    found = frame.dp.group_by(ages, "sex", keys=["f", "m"]).agg(
        n=dpf.count(), m=dpf.mean("cost", bounds=(0, 9)), epsilon=EXACT, ledger=ledger()
    )
    cells = found.dp.provenance["cells"]
    assert cells[0] == {"columns": ["age"], "size": 3, "bins": "number", "outside": "drop", "first": 0.0, "last": 120.0}
    assert cells[1] == {"columns": ["sex"], "size": 2, "keys": ["text"]}
    assert not found.dp.provenance["altered"]
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    assert seen(found.dp.plot())["concat"]
    assert "0" in found.dp.table().as_raw_html()
    one = frame.dp.group_by(ages).mean("cost", bounds=(0, 9), epsilon=EXACT, ledger=ledger())
    assert seen(one.dp.plot())


def test_binned_groups_are_replayed(engine, tmp_path):
    durable = dpf.Ledger(epsilon=1, path=tmp_path / "ages.ledger", dataset="ages")
    asked = {"epsilon": 0.5, "label": "ages", "snapshot": "1", "ledger": durable}
    ages = dpf.bins("age", EDGES)
    once, again = (
        engine.columns(engine(ROWS).dp.group_by(ages, "sex", keys=["f", "m"]).count(**asked)) for _ in range(2)
    )
    assert once == again
    assert durable.spent.epsilon == 0.5
    with pytest.raises(dpf.LedgerError):
        engine(ROWS).dp.group_by(dpf.bins("age", [0, 18, 66, 120]), "sex", keys=["f", "m"]).count(**asked)


def test_bins_are_a_plain_value():
    ages = dpf.bins("age", EDGES)
    assert ages == dpf.bins("age", EDGES) == pickle.loads(pickle.dumps(ages))
    assert repr(ages) == "dpf.bins('age', [0, 18, 65, 120])"
    assert isinstance(ages, Bins)
    many = dpf.bins("age", 2 * 10**7, range=(0, 1))  # no edges are made until a call allows as many by max_cells
    assert many.size == 2 * 10**7
    with pytest.raises(dpf.InvalidArgument, match="max_cells=20_000_000"):
        pl.DataFrame(ROWS).dp.preview.group_by(many).count(epsilon=1)


def test_intervals_of_pandas_are_edges_where_they_are_closed_on_the_left(engine):
    pandas = pytest.importorskip("pandas")
    frame = engine(ROWS)
    price = {"denoise": None, "epsilon": EXACT, "ledger": ledger()}
    index = pandas.IntervalIndex.from_breaks(EDGES, closed="left")
    inside = [
        sum(a is not None and left <= a < right for a in ROWS["age"]) for left, right in itertools.pairwise(EDGES)
    ]
    for intervals in (index, list(index), index.array):
        assert engine.columns(frame.dp.histogram("age", bins=intervals, **price))["count"] == inside
        assert engine.columns(frame.dp.group_by(dpf.bins("age", intervals)).count(**price))["count"] == inside
    running = engine.columns(frame.dp.ecdf("age", bins=index, epsilon=EXACT, ledger=ledger()))
    assert len(running["ecdf"]) == 3
    there = [age for age in ROWS["age"] if age is not None]
    assert running["ecdf"][-1] == pytest.approx(sum(age <= EDGES[-1] for age in there) / len(there), abs=1e-6)
    for wrong in (index.set_closed("right"), index[:0], index[0], [index[0], index[2]], [index[0], 18]):
        with pytest.raises(dpf.InvalidArgument, match=r"Write their edges, as in bins=\[0, 18, 65\]"):
            frame.dp.preview.histogram("age", bins=wrong, epsilon=1)
    with pytest.raises(dpf.InvalidType, match=r"Group by bins: group_by\(dpf.bins"):
        frame.dp.preview.group_by("age", keys=list(index)).count(epsilon=1)


def test_a_category_declared_by_a_dtype_stands_beside_bins():
    frame = pl.DataFrame(ROWS).with_columns(pl.col("ward").cast(pl.Enum(["A", "B", "C"])))
    plan = frame.dp.preview.group_by(dpf.bins("age", EDGES), "ward").count(epsilon=1)
    assert plan.query.keys.shape == (3, 3)
    assert isinstance(check(frame, plan.query, dpf.PrivacyUnit()).keys.axes[1], KeyAxis)


def test_the_noise_of_binned_groups_is_of_every_cell():
    frame = pl.DataFrame({"age": np.full(10, 5.0), "sex": ["f"] * 10})
    found = (
        frame.dp.group_by(dpf.bins("age", range(101)), "sex", keys=["f", "m"])
        .count(denoise=None, epsilon=0.5, ledger=ledger())["count"]
        .to_numpy()
    )
    assert np.std(np.delete(found, 10)) == pytest.approx(math.sqrt(2 * math.exp(-0.5)) / (1 - math.exp(-0.5)), rel=0.6)


def test_bins_without_edges_are_refused_with_an_example():
    with pytest.raises(dpf.MissingArgument, match=r"Write for instance dpf\.bins\('age', \[0, 18, 65, 120\]\)"):
        dpf.bins("age")


@pytest.mark.parametrize("ask", [dpf.n_units(), dpf.sum("age", unit_bounds=(0, 9))], ids=["n_units", "sum"])
def test_a_unit_may_be_in_each_category_that_a_dtype_declares(ask):
    frame = pl.DataFrame(
        {"who": [1, 1, 2], "ward": pl.Series(["A", "B", "A"], dtype=pl.Enum(["A", "B"])), "age": [1, 2, 3]}
    )
    unit = dpf.PrivacyUnit("who")
    with pytest.raises(dpf.MissingArgument, match="max_groups must be given"):
        frame.dp.preview.group_by("ward").agg(asked=ask, epsilon=1, unit=unit)
    one = frame.with_columns(pl.col("ward").replace("B", "A").cast(pl.Enum(["A"])))
    plan = one.dp.preview.group_by("ward").agg(asked=ask, epsilon=1, unit=unit)
    assert plan.unit.max_groups == 1
