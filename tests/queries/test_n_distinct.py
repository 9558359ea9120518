"""Numbers of distinct values: published numbers, sensitivity, which values are equal, and whole calls."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, GROUPS, UNITS, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument, PrivacyUnit, WrongDtype
from dpframe.engines.engine import Reading
from dpframe.engines.pieces.unit_parts import Spill
from dpframe.engines.totals import totals
from tests.covering import chance_of_missing

HELD = {  # the values of each unit; the number at max_values of 1, 2, 3 and 10
    "one unit with five values": (["abcde"], (1, 2, 3, 5)),
    "five units with one value": (["a"] * 5, (1, 1, 1, 1)),
    "a chain": (["ab", "bc", "ca"], (3, 3, 3, 3)),
    "a shared value and four of their own": (["xa", "xb", "xc", "xd"], (4, 5, 5, 5)),
    "two with six": (["abcdef", "defghi"], (2, 4, 6, 9)),
    "nobody": ([], (0, 0, 0, 0)),
}


def table(held):
    rows = [(unit, value) for unit, values in enumerate(held) for value in values]
    return pl.DataFrame(rows, schema={"u": pl.Int64, "v": pl.String}, orient="row")


def exact(frame, column, most, *, unit="u", **options):
    ledger = dpf.Ledger(epsilon=1e9, unit=unit) if unit else dpf.Ledger(epsilon=1e9)
    found = frame.dp.n_distinct(column, max_values=most, epsilon=1e6, ledger=ledger, **options)
    return float(np.asarray(found[f"{column}_n_distinct"])[0])


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("name", HELD)
def test_published_numbers(name, library):
    held, expected = HELD[name]
    frame = given_as(table(held), library)
    assert tuple(exact(frame, "v", most) for most in (1, 2, 3, 10)) == expected
    assert exact(frame, "v", None, unit=None) == len(set("".join(held)))


STATISTICS = {most: dpf.n_distinct("x", max_values=most) for most in (1, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("most", STATISTICS)
def test_no_neighbor_is_farther_than_the_sensitivity(most, keys, unit):
    for p in (1, 2):
        assert largest_by_chance(query_of(STATISTICS[most], keys, p == 1), unit, p) <= 1 + 1e-15


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, p):
    query = query_of(dpf.n_distinct("x", max_values=3), BY_GROUP, p == 1)
    instead = [("C", float(value)) for value in range(9)] if neighbors == "replace" else []
    mine = [(group, float(value)) for group in "A" for value in range(9)]
    unit = PrivacyUnit("u", neighbors=neighbors, max_groups=1)
    (found,) = ratios(query, unit, [mine], [instead], p).values()
    assert found == pytest.approx(1.0)
    everywhere = [(group, float(value)) for group in GROUPS for value in range(9)]
    unit = PrivacyUnit("u", neighbors=neighbors, max_groups=3)
    (found,) = ratios(query, unit, [everywhere], [[]], p).values()
    assert found == pytest.approx(1.0 if neighbors == "add-remove" else 2 ** (-1 / p))


def test_sensitivities_are_those_of_the_proof():
    frame = table(["ab"]).with_columns(g=pl.lit("A"))
    for neighbors, factor in (("add-remove", 1), ("replace", 2)):
        ledger = dpf.Ledger(epsilon=1.0, unit=PrivacyUnit("u", neighbors=neighbors))
        one = frame.dp.preview.n_distinct("v", max_values=3, epsilon=1.0, ledger=ledger).parts[0].sensitivity
        assert (one.norm(1), one.norm(2)) == (3.0, 3.0)
        asked = frame.dp.preview.group_by("g", keys=list("ABCDE"))
        several = asked.n_distinct("v", max_values=3, max_groups=2, epsilon=1.0, ledger=ledger).parts[0].sensitivity
        assert several.norm(1) == 3.0 * factor * 2
        assert several.norm(2) == pytest.approx(3.0 * math.sqrt(factor * 2), rel=1e-15)
        assert several.swayed == 2 * factor
    rows = frame.dp.preview.group_by("g", keys=list("ABCDE")).n_distinct("v", epsilon=1.0).parts[0].sensitivity
    assert (rows.norm(1), rows.norm(2)) == (1.0, 1.0)


def many(library="polars"):
    """Return rows of 600 units, each with 4 values of its own in each of 5 groups."""
    unit, group, value = (axis.ravel() for axis in np.meshgrid(range(600), range(5), range(4), indexing="ij"))
    names = [f"id {number}" for number in unit]
    frame = pl.DataFrame({"u": names, "g": np.array(list("ABCDE"))[group], "v": unit * 100 + group * 10 + value})
    return given_as(frame, library)


def by_group(frame, secret, most=2, groups=2, unit="u"):
    keys = dpf.PrivacyUnit(unit, max_groups=groups)
    plan = frame.dp.preview.group_by("g", keys=list("ABCDE")).n_distinct("v", max_values=most, epsilon=1.0, unit=keys)
    (numbers,) = totals(frame, plan.query, plan.unit, 1.0, None, secret).values()
    return numbers


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
def test_a_unit_counts_in_so_many_groups(library):
    numbers = by_group(many(library), 5)
    assert numbers.sum() == 600 * 2 * 2
    assert (np.abs(numbers - 480) < 6 * 2 * math.sqrt(600 * 0.24)).all()  # each group gets its share of the units
    if library == "lazy":
        assert numbers.tolist() == by_group(many(), 5).tolist()


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_the_groups_of_a_unit_depend_on_its_own_rows(library):
    """Other units change nothing, even one that sorts first or that changes the dtype of the unit column."""
    frame = many().with_columns(u=pl.col("u").str.strip_prefix("id ").cast(pl.Int64))
    alone = [by_group(given_as(frame.filter(pl.col("u") == unit), library), 9) for unit in range(20)]
    few = frame.filter(pl.col("u") < 20)
    other = pl.DataFrame({"u": [-(10**6)], "g": ["A"], "v": [1]}, schema=frame.schema)
    nobody = pl.DataFrame({"u": [None], "g": ["A"], "v": [1]}, schema=frame.schema)
    both = given_as(pl.concat([other, nobody, few]), library)
    assert (by_group(both, 9) - sum(alone)).tolist() == [1, 0, 0, 0, 0]


def test_each_release_draws_its_groups_anew():
    frame, ledger = many().filter(pl.col("u") == "id 7"), dpf.Ledger(epsilon=1e9, unit="u")
    asked = frame.dp.group_by("g", keys=list("ABCDE"))
    seen = {
        tuple(asked.n_distinct("v", max_values=9, max_groups=1, epsilon=1e6, ledger=ledger)["v_n_distinct"])
        for _ in range(20)
    }
    assert len(seen) > 1  # all 20 draws pick the same of five groups once in 10**13


VALUES = {
    "floats": (pl.Series([0.0, -0.0, math.nan, None, 1.0, math.inf, -math.inf, 1e-320]), 5),
    "halves": (pl.Series([0.1, 0.1, 2.0], dtype=pl.Float32), 2),
    "large integers": (pl.Series([2**53, 2**53 + 1, 2**53 + 1, -(2**63), None]), 3),
    "words": (pl.Series(["\u00e1", "a\u0301", "a", "A", "", " ", None]), 6),
    "days": (pl.Series([date(1, 1, 1), date(9999, 12, 31), date(1, 1, 1), None]), 2),
    "decimals": (pl.Series([Decimal("0.1"), Decimal("0.10"), Decimal("99999999.9999")], dtype=pl.Decimal(12, 4)), 2),
    "categories": (pl.Series(["a", "b", "a", None], dtype=pl.Categorical), 2),
    "wide integers": (pl.Series([2**100, 2**100 + 1, 2**100], dtype=pl.Int128), 2),
    "flags": (pl.Series([True, False, None, True]), 2),
    "nothing": (pl.Series([None, None], dtype=pl.Null), 0),
}


@pytest.mark.parametrize("lazy", [False, True], ids=["in memory", "lazy"])
@pytest.mark.parametrize("name", VALUES)
def test_values_are_told_apart_as_keys_are(name, lazy):
    values, expected = VALUES[name]
    frame = pl.DataFrame({"v": values, "u": np.arange(len(values)), "g": ["A"] * len(values)})
    frame = frame.lazy() if lazy else frame
    assert exact(frame, "v", None, unit=None) == expected
    assert exact(frame, "v", 1) == expected
    numbers = by_group(frame, 3, most=1)
    assert numbers.tolist() == [expected, 0, 0, 0, 0]


def test_objects_of_pandas_are_told_apart_as_keys_are():
    pandas = pytest.importorskip("pandas")
    mixed = [1, 1.0, True, "1", 2**53, 2**53 + 1, float("nan"), None, pandas.NA, pandas.NaT, Decimal("1"), (1, 2)]
    frame = pandas.DataFrame({"v": pandas.Series(mixed, dtype=object), "u": range(len(mixed))})
    assert exact(frame, "v", None, unit=None) == 5
    assert exact(frame, "v", 1) == 5


def test_pieces_give_the_same_numbers(monkeypatch):
    generator = np.random.default_rng(3)
    rows = 20_000
    frame = pl.DataFrame(
        {
            "u": generator.integers(0, 900, rows),
            "g": generator.choice(list("ABCDEF"), rows),
            "v": [f"value {number}" for number in generator.zipf(1.4, rows).clip(max=3_000)],
            "x": generator.random(rows),
        }
    )
    monkeypatch.setattr(Spill, "_piece", 2**16)  # so that unit weights are computed in many parts
    for unit, lazily in (("u", frame.lazy()), (None, pl.concat([frame.lazy()] * 2))):
        protected = dpf.PrivacyUnit(unit, max_groups=3) if unit else dpf.PrivacyUnit()
        asked = {"d": dpf.n_distinct("v", max_values=2), "n": dpf.count(), "s": dpf.sum("x", bounds=(0, 1))}
        plan = frame.dp.preview.group_by("g", keys=list("ABCDE")).agg(asked, epsilon=1.0, unit=protected)
        in_memory = totals(lazily.collect(), plan.query, plan.unit, 1.0, None, 4)
        in_parts = totals(lazily, plan.query, plan.unit, 1.0, Reading(2**20, False), 4)
        assert {total: numbers.tolist() for total, numbers in in_parts.items()} == {
            total: numbers.tolist() for total, numbers in in_memory.items()
        }


def test_it_is_never_above_the_true_number():
    generator = np.random.default_rng(8)
    frame = pl.DataFrame({"u": generator.integers(0, 50, 3_000), "v": generator.zipf(1.3, 3_000).clip(max=10**6)})
    numbers = [exact(frame, "v", most) for most in (1, 2, 5, 20, 1_000)]
    assert numbers == sorted(numbers)
    assert numbers[0] == 50
    assert numbers[-1] == frame["v"].n_unique()


def test_wrong_calls_are_refused_before_anything_is_charged():
    frame, ledger = table(["ab", "b"]).with_columns(w=[["x"], ["y"], ["z"]]), dpf.Ledger(epsilon=1.0, unit="u")
    with pytest.raises(MissingArgument, match="max_values must be given for n_distinct of 'v'"):
        frame.dp.n_distinct("v", epsilon=0.5, ledger=ledger)
    for wrong in (0, -1, 1.5, True, 2**31 + 1):
        with pytest.raises((InvalidArgument, InvalidType), match="max_values must be"):
            dpf.n_distinct("v", max_values=wrong)
    with pytest.raises(WrongDtype, match="stay apart to be counted"):
        frame.dp.n_distinct("w", max_values=1, epsilon=0.5, ledger=ledger)
    with pytest.raises(InvalidArgument, match="not the sum of its parts"):
        frame.dp.group_by("v", keys=["a"]).n_distinct("v", max_values=1, rollup=True, epsilon=0.5, ledger=ledger)
    with pytest.raises(MissingArgument, match="contributions"):
        frame.dp.group_by("v", keys=["a", "b"]).n_distinct("v", max_values=1, epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_tables_elsewhere_are_refused_by_schema():
    dataset = pytest.importorskip("pyarrow.dataset").dataset(table(["ab"]).to_arrow())
    with pytest.raises(InvalidType, match=r"in memory, or a Polars LazyFrame, for n_distinct.*scan_parquet"):
        dpf.of(dataset).n_distinct("v", max_values=1, epsilon=0.5, ledger=dpf.Ledger(epsilon=1.0, unit="u"))


def test_everything_says_that_it_is_a_lower_bound():
    ledger = dpf.Ledger(epsilon=9.0, unit="u")
    asked = many().dp.group_by("g", keys=list("ABCDE"))
    found = asked.n_distinct("v", max_values=2, max_groups=2, epsilon=1.0, ledger=ledger)
    for said in (
        repr(many().dp.preview.n_distinct("v", max_values=2, epsilon=1.0, ledger=ledger)),
        found.dp.statement(),
        " ".join(found.dp.provenance["notes"]),
        many().dp.n_distinct.__doc__,
        dpf.n_distinct.__doc__.replace("**", ""),
    ):
        assert "at most the true number" in " ".join(said.split())
    assert "count in at most 2 groups, drawn at random" in found.dp.statement()
    assert found.dp.provenance["measures"]["v_n_distinct"]["max_values"] == 2
    assert "at most 2 per unit" in repr(ledger)
    rows = table(["ab"]).dp.preview.n_distinct("v", max_values=2, epsilon=1.0)
    assert not rows.notes  # the number is exact if each row is a unit


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_answers_are_replayed_and_released_together(library, tmp_path):
    frame = given_as(table(["ab", "bc", "c"] * 30), library)
    ledger = dpf.Ledger(epsilon=9.0, unit="u", path=tmp_path / "a.ledger")
    options = {"max_values": 2, "epsilon": 0.5, "ledger": ledger, "label": "v", "snapshot": "one"}
    first, again = (frame.dp.n_distinct("v", **options) for _ in range(2))
    assert np.asarray(first["v_n_distinct"])[0] == np.asarray(again["v_n_distinct"])[0]
    assert float(ledger.spent.epsilon) == 0.5
    plans = {"d": frame.dp.preview.n_distinct("v", max_values=2, unit="u")}
    together = dpf.release_together(plans, epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6, unit="u"))
    assert np.asarray(together["d"]["v_n_distinct"])[0] == 3.0


def test_within_buys_the_error():
    frame = table(["ab"] * 9)
    plan = frame.dp.preview.n_distinct("v", max_values=3, within=20, unit="u")
    assert plan.error["v_n_distinct"] <= 20
    assert 0.4 < float(plan.price.epsilon) < 0.5


def test_intervals_cover():
    """Over 4,000 groups of 3 people with 2 values each; a false alarm has a chance below 1e-6."""
    groups = 4_000
    unit = np.repeat(np.arange(3 * groups), 2)
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), 6), "u": unit, "v": np.tile([1, 2, 1, 3, 1, 4], groups)})
    asked = frame.dp.group_by("g", keys=range(groups))
    ledger = dpf.Ledger(epsilon=1.0, unit="u")
    found = asked.n_distinct("v", max_values=2, max_groups=1, epsilon=0.4, denoise=None, ledger=ledger)
    missed = int((np.abs(found["v_n_distinct"].to_numpy() - 4.0) > found["v_n_distinct_error"].to_numpy()).sum())
    assert chance_of_missing(missed, groups, 0.05) > 1e-6
