"""`dpf.REST`: a group of everything except declared keys, on every engine and in all uses of results.

False alarms: noise at an epsilon of 10^7 or more exceeds the asserted tolerances with a chance below 10^-6.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from neighbors import GROUPS, UNITS, given_as, largest_by_chance, query_of

import dpframe as dpf
from assurance.engines import ENGINES as EVERY_ENGINE
from dpframe import InvalidArgument, InvalidType, PrivacyUnit, WrongDtype
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.keys import Keys, key_axes
from tests.engines.test_random_tables import NEEDS

NOBODY = PrivacyUnit()
ROWS = pl.DataFrame(
    {
        "ward": ["A", "B", "C", None, "A", "", "b", "B", "D", None] * 3,
        "n": [1, 2, 3, None, 5, 2**53 + 1, 2**53, 1, 2, -(2**63)] * 3,
        "narrow": pl.Series([1, 2, 3, None, 5, 6, 7, 1, 2, 255] * 3, dtype=pl.UInt8),
        "x": [0.0, -0.0, math.nan, None, math.inf, 1.5, 2.5, 1.5, 3.0, -1.0] * 3,
        "amount": [Decimal("0.1"), Decimal("0.2"), None, *[Decimal("0.3")] * 7] * 3,
        "flag": [True, False, None, True, True, False, None, True, False, True] * 3,
        "day": [date(2024, 1, 1 + place) for place in range(9)] + [None] + [date(2024, 2, 1)] * 20,
        "at": [datetime(2024, 1, 1 + place, 12) for place in range(9)] + [None] + [datetime(2024, 2, 1)] * 20,
        "u": [row % 7 for row in range(30)],
        "y": [float(row) for row in range(30)],
    }
)
KEYS = {  # column -> its declared keys
    "ward": ["A", "B"],
    "n": [2**53 + 1, 1],
    "narrow": [1, 2],
    "x": [0.0, 1.5],
    "amount": [Decimal("0.1")],
    "flag": [True],
    "day": [date(2024, 1, 2), date(2030, 1, 1)],
    "at": [datetime(2024, 1, 2, 12)],
}


def counted(frame, column, keys, unit=NOBODY, p=1.0):
    query = query_of(dpf.count(), Keys(key_axes((column,), [*keys, dpf.REST], None)), True)
    (found,) = totals(frame, check(frame, query, unit), unit, p).values()
    return found.tolist()


def expected(column, keys):
    """Return counts by the definition in Python: both zeros are one value, and NaN is missing."""
    values = [None if value != value else value for value in ROWS[column].to_list()]
    found = Counter(value if value in keys else dpf.REST for value in values)
    return [found[key] for key in (*keys, dpf.REST)]


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
@pytest.mark.parametrize("missing", [False, True], ids=["", "missing ones apart"])
@pytest.mark.parametrize("column", KEYS)
def test_every_row_is_in_a_group(column, missing, library):
    keys = [*KEYS[column], *([None] if missing else [])]
    frame = ROWS.with_columns(n=pl.col("n").fill_null(0)) if library == "pandas" else ROWS  # a null makes it floats
    found = counted(given_as(frame, library), column, keys)
    exact = expected(column, keys)
    if column == "n" and library == "pandas" and missing:
        exact = [*exact[:-2], 0, exact[-1] + exact[-2]]
    assert found == exact
    assert sum(found) == ROWS.height


@pytest.mark.parametrize("engine", [name for name in EVERY_ENGINE if name != "spark"])
@pytest.mark.parametrize("unit", [NOBODY, PrivacyUnit("u", max_rows=2, max_groups=2)], ids=["rows", "units"])
def test_every_engine_gives_the_same(engine, unit):
    if engine in NEEDS:
        pytest.importorskip(NEEDS[engine])
    rows = ROWS.select("ward", "narrow", "u").with_columns(pl.col("narrow").fill_null(9))
    with EVERY_ENGINE[engine]() as given:
        for column in ("ward", "narrow"):
            found = counted(given(rows), column, KEYS[column], unit)
            assert found == counted(rows, column, KEYS[column], unit)
            if unit is NOBODY:
                assert found == expected(column, KEYS[column])


BESIDE = Keys(key_axes(("g",), ["A", dpf.REST], None))


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", ["rows", "people", "sum", "mean", "median", "sums of people"])
def test_no_neighbor_is_farther_than_the_sensitivity(name, unit):
    assert len(GROUPS) == 3  # one is declared; two and unlisted rows are the rest
    statistic = {
        "rows": dpf.count(),
        "people": dpf.n_units(),
        "sum": dpf.sum("x", bounds=(-3, 4)),
        "mean": dpf.mean("x", bounds=(-3, 4)),
        "median": dpf.median("x", bounds=(-3, 4)),
        "sums of people": dpf.sum("x", unit_bounds=(-3, 4)),
    }[name]
    for p in (1, 2):
        assert largest_by_chance(query_of(statistic, BESIDE, p == 1), unit, p, tries=12) <= 1 + 1e-15


def released(**more):
    asked = {"epsilon": 1e7, "ledger": dpf.Ledger(epsilon=1e9), "denoise": None, "checks": False, **more}
    by_day = {"ward": ["A", "B", dpf.REST], "flag": [True, False, None]}
    return ROWS.dp.group_by("ward", "flag", keys=by_day).agg(n=dpf.count(), y=dpf.mean("y", bounds=(0, 30)), **asked)


def test_a_result_shows_the_rest_and_keeps_its_record(tmp_path):
    found = released()
    assert found["ward"].unique(maintain_order=True).to_list() == ["A", "B", "Other"]
    assert found["n"].sum() == pytest.approx(30, abs=0.01)
    axis = found.dp.provenance["cells"][0]
    assert axis == {"columns": ["ward"], "size": 3, "keys": ["text"], "rest": "Other"}
    assert "Other holds the rows whose ward is none of the declared keys, or missing" in found.dp.provenance["notes"]
    wide = found.dp.select("n").dp.wide("ward")
    assert [name for name in wide.columns if "Other" in name]
    assert "Other" in found.dp.table("markdown")
    found.dp.write_parquet(tmp_path / "a.parquet")
    again = dpf.read_parquet(tmp_path / "a.parquet")
    assert again.dp.provenance == found.dp.provenance
    assert again.dp.filter({"ward": "Other"}).height == 3
    assert found.dp.relabel({"ward": {"Other": "elsewhere"}})["ward"].to_list()[-1] == "elsewhere"
    assert found.dp.total(by="flag").height == 3


def test_charts_draw_the_rest():
    pytest.importorskip("altair")
    assert "Other" in str(released().dp.plot(value="n").to_dict())


def test_numbers_and_dates_are_shown_as_text_beside_the_rest():
    asked = {"epsilon": 1e7, "ledger": dpf.Ledger(epsilon=1e9), "denoise": None, "checks": False}
    numbers = ROWS.dp.group_by("n", keys=[1, 2, None, dpf.REST]).count(**asked)
    assert numbers["n"].to_list() == ["1", "2", None, "Other"]
    assert numbers["count"].round().to_list() == [6, 6, 3, 15]
    days = ROWS.dp.group_by("day", keys=[date(2024, 2, 1), dpf.REST]).count(**asked)
    assert days["day"].to_list() == ["2024-02-01", "Other"]
    assert days["count"].round().to_list() == [20, 10]


@pytest.mark.parametrize("subtotals", ["rollup", "cube"])
def test_subtotals_add_up_to_all_rows(subtotals):
    keys = {"ward": ["A", dpf.REST], "flag": [True, dpf.REST]}
    found = ROWS.dp.group_by("ward", "flag", keys=keys).count(
        epsilon=1e8, ledger=dpf.Ledger(epsilon=1e9), checks=False, **{subtotals: True}
    )
    total = found.filter(pl.col("ward").is_null() & pl.col("flag").is_null())
    assert total["count"].item() == pytest.approx(30, abs=0.1)


def test_with_bins_marginals_contributions_and_streams():
    asked = {"epsilon": 1e7, "checks": False}
    by = ROWS.dp.group_by(dpf.bins("y", [0, 10, 30]), "ward", keys={"ward": ["A", dpf.REST]})
    assert by.count(**asked, denoise=None, ledger=dpf.Ledger(epsilon=1e9))["count"].round().to_list() == [2, 8, 4, 16]
    tables = ROWS.dp.marginals(
        ["ward", "flag"],
        keys={"ward": ["A", dpf.REST], "flag": [True, dpf.REST]},
        ledger=dpf.Ledger(epsilon=1e9, delta=1e-4),
        delta=1e-6,
        epsilon=1e7,
    )
    assert tables.filter(pl.col("ward") == "Other", pl.col("flag").is_null())["count"].item() == pytest.approx(
        24, abs=0.1
    )
    unit = dpf.Ledger(epsilon=1e9, unit="u")
    grid = ROWS.dp.contributions("ward", keys=["A", dpf.REST], epsilon=1e7, ledger=unit)
    assert grid["count"].sum() == pytest.approx(7, abs=0.1)
    weeks = {"time": "day", "periods": dpf.dates("2024-01-01", "2024-01-15", every="1w"), "epsilon": 1e7}
    rows = ROWS.filter(pl.col("day").is_not_null())
    ledger = dpf.Ledger(epsilon=1e9)
    stream = dpf.Stream("s", statistic=dpf.count(), by="ward", keys=["A", dpf.REST], **weeks, ledger=ledger)
    first = stream.release(rows, date(2024, 1, 1))
    assert (first["ward"].to_list(), first["total"].round().to_list()) == (["A", "Other"], [2, 5])
    other = dpf.Stream("s", statistic=dpf.count(), by="ward", keys=["B", dpf.REST], **weeks, ledger=ledger)
    with pytest.raises(dpf.DpframeError, match="by or keys"):
        other.release(rows, date(2024, 1, 8))


def test_a_ledger_knows_the_rest_again(tmp_path):
    ledger = dpf.Ledger(epsilon=10, path=str(tmp_path / "a.ledger"))
    asked = {"epsilon": 1, "label": "n", "snapshot": "w1", "ledger": ledger, "checks": False}
    first = ROWS.dp.group_by("ward", keys=["A", "B", dpf.REST]).count(**asked)
    assert ROWS.dp.group_by("ward", keys=["A", "B", dpf.REST]).count(**asked).equals(first)
    assert ledger.spent.epsilon == 1
    for keys in (["A", "B"], ["A", "B", "Other"], ["A", "B", None, dpf.REST]):
        with pytest.raises(dpf.LedgerError, match="keys differs"):
            ROWS.dp.group_by("ward", keys=keys).count(**asked)


def test_no_row_is_outside_for_checks():
    ledger = dpf.Ledger(epsilon=1e9, unit=PrivacyUnit("u", max_rows=1))
    found = ROWS.dp.group_by("ward", keys=["A", dpf.REST]).count(max_groups=1, epsilon=1e7, ledger=ledger, checks=True)
    assert set(found.dp.checks()["what"]) == {"cut", "units"}


@pytest.mark.parametrize(
    ("keys", "error", "words"),
    [
        ([dpf.REST], InvalidArgument, "at least one value"),
        ([dpf.REST, "A"], InvalidType, "must stand last"),
        (["A", dpf.REST, dpf.REST], InvalidType, "must stand last"),
        (["A", "Other", dpf.REST], InvalidArgument, "different as text"),
        (["A", "A", dpf.REST], InvalidArgument, "distinct"),
        (dpf.REST, InvalidType, "a list, tuple or range|must stand last"),
    ],
    ids=str,
)
def test_what_breaks_a_rule_is_refused(keys, error, words):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(error, match=words):
        ROWS.dp.group_by("ward", keys=keys).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_the_schema_and_other_places_refuse_it():
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(WrongDtype):
        ROWS.dp.group_by("ward", keys=[1, dpf.REST]).count(epsilon=1, ledger=ledger)
    with pytest.raises(InvalidType, match="must stand last"):
        ROWS.dp.histogram("ward", categories=["A", dpf.REST], epsilon=1, ledger=ledger)
    with pytest.raises(InvalidType, match="must stand last"):
        ROWS.dp.count(where={"ward": ["A", dpf.REST]}, epsilon=1, ledger=ledger)
    with pytest.raises(InvalidArgument, match="None"):
        ROWS.dp.group_by("ward", keys=["A", None, dpf.REST]).count(rollup=True, epsilon=1, ledger=ledger)


def test_there_is_one_rest():
    assert repr(dpf.REST) == "dpf.REST"
    assert copy.deepcopy(dpf.REST) == pickle.loads(pickle.dumps(dpf.REST)) == dpf.REST


def test_objects_and_categories_of_pandas():
    pandas = pytest.importorskip("pandas")
    odd = [None, math.nan, "A", 1, True, [1], object(), Decimal("NaN"), "A"]
    frame = pandas.DataFrame({"o": pandas.Series(odd, dtype=object), "c": pandas.Categorical(["A", "B", None] * 3)})
    assert counted(frame, "o", ["A", "Z"]) == [2, 0, 7]
    assert counted(frame, "c", ["A", None]) == [3, 3, 3]
