"""Streams as users call them: the same on every engine, unbiased, with errors that hold and clear refusals."""

from __future__ import annotations

import copy
import html
import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe import noise
from dpframe.engines.first_rows import stream_totals
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import Sum
from dpframe.streams import stream_path
from tests import covering
from tests.killed_streams import lose

START = date(2026, 1, 5)
WEEKS = dpf.dates("2026-01-05", "2026-02-23", every="1w")
GROUPS = 20_000
ALARM = 1e-6


def stays(rows=600, seed=3):
    generator = np.random.default_rng(seed)
    days = generator.integers(-7, 70, rows).tolist()
    return {
        "person": generator.integers(0, 80, rows).tolist(),
        "day": [START + timedelta(days=day) for day in days],
        "ward": generator.choice(["A", "B", "C"], rows).tolist(),
        "cost": [None if value < 5 else value for value in generator.uniform(0, 100, rows).round(2).tolist()],
    }


def stream_of(ledger=None, **changed):
    ledger = dpf.Ledger(epsilon=100) if ledger is None else ledger
    asked = {"statistic": dpf.count(), "time": "day", "periods": WEEKS, "epsilon": 1.0, "ledger": ledger}
    return dpf.Stream("stays", **{**asked, **changed})


@pytest.fixture
def without_noise(monkeypatch):
    for kind in (Laplace, Gaussian):
        monkeypatch.setattr(kind, "add_noise", lambda noise, totals: totals)


@pytest.mark.usefixtures("without_noise")
def test_totals_are_those_of_the_rows_on_every_engine(engine):
    columns = stays()
    frame = engine(columns)
    by = {"by": "ward", "keys": ["A", "B", "Z"]}
    plain = pl.DataFrame(columns).filter(pl.col("day") >= START)
    for statistic, column in ((dpf.count(), pl.lit(1)), (dpf.sum("cost", bounds=(0, 50)), pl.col("cost").clip(0, 50))):
        stream = stream_of(statistic=statistic, **by)
        for number, week in enumerate(["2026-01-05", date(2026, 1, 12), "2026-W04"], start=1):
            found = engine.columns(stream.release(frame, week))
            assert found["ward"] == ["A", "B", "Z"]
            end = START + timedelta(weeks=number)
            for name, begin in (("total", START), ("period", end - timedelta(weeks=1))):
                inside = plain.filter((pl.col("day") >= begin) & (pl.col("day") < end))
                expected = [inside.filter(pl.col("ward") == ward).select(column.sum()).item() for ward in "ABZ"]
                if statistic == dpf.count():
                    expected = [inside.filter(pl.col("ward") == ward).height for ward in "ABZ"]
                assert found[name] == pytest.approx(expected, abs=1e-4)


@pytest.mark.usefixtures("without_noise")
def test_of_a_person_the_earliest_rows_count():
    frame = pl.DataFrame(
        {
            "person": [1, 1, 1, 1, 2, None],
            "week": [3, 1, 2, 9, 2, 1],
            "ward": ["A", "A", "B", "A", "Z", "A"],
        }
    )
    asked = {"time": "week", "periods": [1, 2, 3], "by": "ward", "keys": ["A", "B"], "max_rows": 2}
    stream = stream_of(dpf.Ledger(epsilon=1, unit="person"), **asked)
    assert [stream.release(frame, week)["total"].round(9).to_list() for week in (1, 2, 3)] == [[1, 0], [1, 1], [1, 1]]
    one_unit = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("person", nulls="one-unit"))
    assert stream_of(one_unit, **asked).release(frame, 1)["total"].to_list() == [2, 0]


def test_no_order_of_rows_matters():
    columns = stays(2_000)
    frame = pl.DataFrame(columns)
    unit = dpf.PrivacyUnit("person", max_rows=3)
    keys = stream_of(by="ward", keys=["A", "B"])._request.query.keys
    for statistic in (dpf.count("cost"), dpf.sum("cost", bounds=(0, 50))):
        query = Query("stream", keys, (("total", statistic),))
        expected = stream_totals(frame, query, unit, 6)
        for seed in range(3):
            shuffled = frame.sample(fraction=1.0, shuffle=True, seed=seed)
            for given in (shuffled, shuffled.lazy()):
                assert (stream_totals(given, query, unit, 6) == expected).all()
    assert Keys(keys.axes[1:]).cells == 2


@pytest.mark.usefixtures("without_noise")
def test_rows_that_come_late_count_in_part():
    """Half of a late row counts at once, and more with each period, as the page of limits states."""
    asked = {"time": "week", "periods": range(1, 9)}
    stream = stream_of(**asked)
    empty = pl.DataFrame({"week": []}, schema={"week": pl.Int64})
    stream.release(empty, 1)
    late = pl.DataFrame({"week": [1]})
    totals = [stream.release(late, week)["total"].item() for week in range(2, 9)]
    assert totals[0] == 0.5
    assert all(before < after < 1 for before, after in pairwise(totals))


@pytest.mark.slow
@pytest.mark.parametrize("price", [{}, {"delta": 1e-6}], ids=["Laplace", "Gaussian"])
def test_intervals_cover_as_often_as_they_say(price, monkeypatch):
    """20,000 groups without rows over eight weeks, one of which is lost; noise that is 2% off is detected."""
    frame = pl.DataFrame({"day": [START], "group": [-1]})
    ledger = dpf.Ledger(epsilon=1, delta=price.get("delta", 0))
    stream = stream_of(ledger, by="group", keys=range(GROUPS), **price)
    plan = stream.preview()
    for number, week in enumerate(plan.periods, start=1):
        if number == 4:
            lose(stream, frame, week, monkeypatch)
            continue
        found = stream.release(frame, week)
        for name in ("total", "period"):
            case = covering.missed("stream", name, found, 0.0)
            assert not covering.too_many(case, ALARM / 28)
            short = covering.missed("stream", name, found, 0.0, factor=0.9)
            assert covering.too_many(short, 1e-3)
            if number < 4:
                assert found[f"{name}_error"][0] == pytest.approx(plan.errors[name][number - 1], rel=1e-6)
    _, stored = stream_path.so_far(stream._request)
    drawn = np.concatenate([one.noisy for one in stored.values()]) * plan.mechanism.grid
    kurtosis = 6.0 if plan.mechanism.p == 1 else 3.0
    spread = 5 * np.sqrt((kurtosis - 1) / drawn.size)
    assert (drawn**2).mean() / plan.mechanism.variance == pytest.approx(1.0, abs=spread)
    assert spread < 1.02**2 - 1


def test_the_plan_states_what_a_release_charges():
    ledger = dpf.Ledger(epsilon=2, delta=1e-6, unit="person")
    stream = stream_of(ledger, max_rows=5, by="ward", keys=["A", "B"])
    plan = stream.preview(pl.DataFrame(stays()))
    assert ledger.spent.epsilon == 0.0
    assert plan.to_frame().columns == ["day", "total_error", "period_error"]
    text = repr(plan)
    assert "epsilon 1, delta 1e-06 (gdp accounting), once for all periods" in text
    assert "in all periods and groups together count" in text
    assert "<table" in plan._repr_html_()
    frame = stream.release(pl.DataFrame(stays()), "2026-W02")
    assert ledger.spent.epsilon == pytest.approx(plan.cost.epsilon)
    assert frame.dp.provenance["statistics"][0]["scale"] == plan.mechanism.scale


def test_replace_costs_sqrt_2_and_max_groups_nothing():
    scales = []
    for neighbors in ("add-remove", "replace"):
        ledger = dpf.Ledger(epsilon=1, delta=1e-6, unit=dpf.PrivacyUnit("person", neighbors=neighbors))
        for groups in (None, 7):
            stream = stream_of(ledger, max_rows=4, max_groups=groups, by="ward", keys=["A", "B"])
            scales.append(stream.preview().mechanism.scale)
    assert scales[0] == scales[1]
    assert scales[2] == scales[3]
    assert scales[2] / scales[0] == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_every_accounting_charges_it(accounting):
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting=accounting)
    stream_of(ledger, epsilon=0.5, delta=1e-6 if accounting == "basic" else None).release(
        pl.DataFrame(stays()), "2026-W02"
    )
    assert 0.4 < ledger.spent.epsilon <= 1.0


def test_results_know_what_they_are(tmp_path, engine):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "l.ledger")
    stream = stream_of(ledger, by=["ward"], keys={"ward": ["B", "A"]})
    before = stream.to_frame(like="pandas" if engine.is_pandas else "polars")
    frame = stream.release(engine(stays()), "2026-W02")
    assert list(frame.columns) == ["ward", "total", "total_error", "period", "period_error"]
    record = frame.dp.provenance
    assert record["period"] == {"name": "2026-01-05", "number": 1, "since": 1}
    assert record["stream"] == {"time": "day", "periods": 8, "bits": 12}
    assert record["ledger"]["entry"] == 1
    assert not record["altered"]
    assert frame.dp.statement().startswith(
        "stays, 2026-01-05: number of rows up to this period as total and number of rows in this period as period "
        "by ward. "
    )
    renamed = frame.dp.relabel(columns={"total": "so far", "period": "new"})
    assert renamed.dp.statement().startswith(
        "stays, 2026-01-05: number of rows up to this period as so far and number of rows in this period as new by ward"
    )
    assert "number of rows in this period" in frame.dp.select("period").dp.statement()
    assert frame.dp.errors()["column"].to_list() == ["total", "period"]
    frame.dp.write_parquet(tmp_path / "week.parquet")
    assert dpf.read_parquet(tmp_path / "week.parquet").dp.provenance == record
    again = stream.release(engine(stays()), "2026-W02")
    assert again.dp.provenance == record
    so_far = stream.to_frame(like="pandas" if engine.is_pandas else "polars")
    assert list(so_far.columns) == ["day", *frame.columns]
    assert len(before) == 0
    assert list(before.dtypes) == list(so_far.dtypes)
    with pytest.raises(dpf.AlreadyReleased):
        so_far.dp.count(epsilon=1)
    if not engine.is_pandas:
        assert copy.deepcopy(stream).release(engine(stays()), "2026-W02").equals(frame)


def test_the_bound_of_a_unit_is_said_to_be_over_all_periods_and_groups(tmp_path):
    """No row of a stream has a lower weight: the earliest rows of a unit count, and no others."""
    ledger = dpf.Ledger(epsilon=9, unit="person")
    stream = stream_of(ledger, by=["ward"], keys={"ward": ["A", "B"]}, max_rows=3)
    weeks = [stream.release(pl.DataFrame(stays()), week) for week in ("2026-W02", "2026-W03")]
    said = "each value of 'person' (at most 3 rows in all), add-remove neighbors"
    derived = dpf.combine("b.total - a.total", {"a": weeks[0], "b": weeks[1]})
    assert ledger.to_frame(like="polars")["unit"].to_list() == [said]
    for text in (repr(weeks[0].dp), weeks[0].dp.table("markdown"), derived.dp.table("markdown")):
        assert said in text
        assert "full weight" not in text
    assert weeks[0].dp.provenance["unit"] == {
        "column": "person",
        "max_rows": 3,
        "max_groups": 1,
        "neighbors": "add-remove",
        "nulls": "drop",
    }
    pytest.importorskip("altair")
    weeks[1].dp.write_html(tmp_path / "week.html")
    page = html.unescape((tmp_path / "week.html").read_text(encoding="utf-8"))
    assert said in page
    assert "full weight" not in page


def test_tables():
    pytest.importorskip("great_tables")
    frame = stream_of(by="ward", keys=["A", "B"]).release(pl.DataFrame(stays()), "2026-W02")
    assert "total" in frame.dp.table().as_raw_html()


def test_a_ledger_that_may_only_be_read_shows_its_streams(tmp_path, monkeypatch):
    stream = stream_of(dpf.Ledger(epsilon=1, path=tmp_path / "l.ledger"))
    stream.release(pl.DataFrame(stays()), "2026-W02")
    monkeypatch.setattr(type(stream.ledger._store), "step", lambda *_: 1 / 0)
    assert stream.to_frame().height == 1
    assert stream.release(pl.DataFrame(stays()), "2026-W02").height == 1


def test_periods_can_be_joined():
    stream = stream_of(by="ward", keys=["A", "B"])
    weeks = [stream.release(pl.DataFrame(stays()), week) for week in ("2026-W02", "2026-W03")]
    joined = dpf.concat(weeks)
    assert [part.dp.provenance["period"]["number"] for part in joined.dp.parts] == [1, 2]


def test_without_a_ledger_it_is_recorded():
    stream = stream_of(dpf.default_ledger())
    with pytest.warns(dpf.UnlimitedBudgetWarning) as warned:
        first = stream.release(pl.DataFrame(stays()), "2026-W02")
    assert warned[0].filename == __file__
    assert stream.release(pl.DataFrame(stays()), "2026-W02").equals(first)


def test_seeded_bits_are_stamped():
    with noise.insecure_bits(1):
        frame = stream_of().release(pl.DataFrame(stays()), "2026-W02")
    assert frame.dp.provenance["warning"].startswith("NOT PRIVATE")


def test_charts(tmp_path):
    altair = pytest.importorskip("altair")
    stream = stream_of(by="ward", keys=["A", "B"])
    with pytest.raises(dpf.InvalidArgument, match="released period"):
        stream.plot()
    for week in ("2026-W02", "2026-W03"):
        stream.release(pl.DataFrame(stays()), week)
    for chart in (stream.plot(), stream.preview().plot()):
        assert isinstance(chart, altair.TopLevelMixin)
        json.dumps(chart.to_dict())
    captions = seen(stream.plot())["captions"]
    assert captions.startswith("Rows with a value of day before ")
    assert "are in no group. A row that appears only" in captions
    assert captions.endswith(".")


def test_the_chart_of_one_period_says_which():
    pytest.importorskip("altair")
    stream = stream_of()
    for week in ("2026-W02", "2026-W03"):
        released = stream.release(pl.DataFrame(stays()), week)
        name = f"stays, {released.dp.provenance['period']['name']}"
        chart = released.dp.plot().to_dict()
        assert chart["title"]["text"] == name
        assert chart["description"].startswith(f"{name}. ")
        assert released.dp.statement().startswith(f"{name}: ")


REFUSED = {
    "no statistic": ({"statistic": None}, "statistic must be given"),
    "a mean": ({"statistic": dpf.mean("cost", bounds=(0, 1))}, "statistic must be dpf.count"),
    "units": ({"statistic": dpf.n_units()}, "statistic must be dpf.count"),
    "a word": ({"statistic": "count"}, "statistic must be dpf.count"),
    "no time": ({"time": None}, "time must be given"),
    "no periods": ({"periods": None}, "periods must be given"),
    "periods from data": ({"periods": np.arange(3)}, "periods must be a list"),
    "a missing period": ({"periods": ["a", None]}, "must not hold None"),
    "no period": ({"periods": []}, "periods must name at least one value of 'day'. Write periods="),
    "a period twice": ({"periods": [1, 2, 1]}, "periods must be distinct, but 1 occurs twice"),
    "too many periods": ({"periods": range(5_000)}, "at most 4,096"),
    "too many cells": ({"by": "ward", "keys": range(2_000_000)}, "at most 10,000,000 cells together"),
    "keys without by": ({"keys": ["A"]}, "by must be given"),
    "by without keys": ({"by": "ward"}, "keys must be given"),
    "keys to be found": ({"by": "ward", "keys": dpf.discover(delta=1e-7)}, "keys must be declared"),
    "by the time": ({"by": "day", "keys": [START]}, "must be named once"),
    "a column of the result": ({"by": "total", "keys": ["A"]}, "by must not name a column 'total'"),
    "no price": ({"epsilon": None}, "epsilon must be given"),
    "any noise": ({"mechanism": "auto"}, "mechanism must be 'laplace', 'gaussian' or None"),
    "a bound below 1": ({"max_rows": 0}, "max_rows must be"),
}


@pytest.mark.parametrize(("changed", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_when_it_is_described(changed, words):
    with pytest.raises(dpf.InvalidArgument, match=words):
        stream_of(**changed)


def test_the_text_of_a_week_names_no_day_and_no_month():
    """ISO 8601 writes 1 June 2026 as 2026-W23, too: a month would be drawn for good, for the label of a week."""
    for every, last in (("1mo", "2026-12-31"), ("1d", "2026-06-30")):
        stream = stream_of(periods=dpf.dates("2026-06-01", last, every=every))
        with pytest.raises(
            dpf.InvalidArgument, match="period must be the first day of its step, not the week '2026-W23'"
        ):
            stream.release(pl.DataFrame(stays()), "2026-W23")
        assert stream.release(pl.DataFrame(stays()), "2026-06-01").height == 1


def test_what_is_refused_when_it_is_asked():
    frame = pl.DataFrame(stays())
    stream = stream_of(dpf.Ledger(epsilon=1))
    for asked, words in (
        (lambda: stream.release(frame, "2026-W40"), "one of the 8 declared ones, 2026-01-05 to 2026-02-23"),
        (lambda: stream.release(frame, "2026-01-06"), "period must be one of .* Name a period by its beginning"),
        (lambda: stream.release(frame, 7), 'must be a day .* Write for instance "2026-01-05"'),
        (lambda: stream.release(frame, "2026-01"), "not '2026-01'. Write for instance \"2026-01-05\""),
        (lambda: stream.release(frame.drop("day"), "2026-W02"), "column 'day' is not in the frame"),
        (lambda: stream.release(frame.with_columns(day=pl.lit("x")), "2026-W02"), "must hold dates"),
        (lambda: stream.release(dpf.public(frame), "2026-W02"), "public"),
        (lambda: stream.release(dpf.of(frame).group_by("ward", keys=["A"]), "2026-W02"), "the frame itself"),
        (lambda: stream_of(dpf.Ledger(epsilon=1, unit="person")).preview(), "max_rows or max_groups must be given"),
        (lambda: stream_of(dpf.Ledger(epsilon=1), max_rows=2).preview(), "max_rows"),
        (lambda: stream_of(mechanism="gaussian", ledger=dpf.Ledger(epsilon=1)).preview(), "delta must be given"),
    ):
        with pytest.raises(dpf.DpframeError, match=words):
            asked()
    assert stream.ledger.spent.epsilon == 0.0


def test_tables_that_are_read_in_pieces_are_refused():
    dataset = pytest.importorskip("pyarrow.dataset")
    table = dataset.dataset(pl.DataFrame(stays()).to_arrow())
    with pytest.raises(dpf.InvalidType, match=r"in memory for streams.*LazyFrame"):
        stream_of().release(table, "2026-W02")


def test_datetimes_and_the_day_of_a_row():
    frame = pl.DataFrame({"at": [datetime(2026, 1, 11, 23, 59), datetime(2026, 1, 12)]})
    stream = stream_of(time="at", epsilon=100)
    assert round(stream.release(frame, "2026-W02")["total"].item()) == 1
    assert round(stream.release(frame, "2026-W03")["period"].item()) == 1


def test_provenances_are_as_documented():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(__file__).parents[2] / "docs" / "provenance.schema.json").read_text())
    jsonschema.validate(stream_of().release(pl.DataFrame(stays()), "2026-W02").dp.provenance, schema)


@pytest.mark.parametrize("noised", [{}, {"delta": 1e-6}], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("within", [30, {"total": 12.5, "period": 40}], ids=["number", "dict"])
def test_within_is_the_least_price_that_keeps_both_errors(within, noised):
    wide = {**noised, "ledger": dpf.Ledger(epsilon=100, **noised), "epsilon": None}
    stream = stream_of(**wide, within=within, by="ward", keys=["A", "B"])
    plan = stream.preview()
    targets = within if isinstance(within, dict) else dict.fromkeys(("total", "period"), within)
    assert all(max(plan.errors[name]) <= target for name, target in targets.items())
    assert plan.largest_errors(0.95) == pytest.approx({name: max(each) for name, each in plan.errors.items()})
    less = stream_of(**{**wide, "epsilon": float(plan.price.epsilon) * 0.999}, by="ward", keys=["A", "B"]).preview()
    assert any(max(less.errors[name]) > target for name, target in targets.items())
    released = stream.release(pl.DataFrame(stays()), START)
    again = stream_of(**wide, within=within, by="ward", keys=["A", "B"])
    assert again.release(pl.DataFrame(stays()), START).equals(released)
    assert stream.ledger.spent.epsilon == pytest.approx(float(plan.price.epsilon), rel=1e-9)


def test_within_speaks_of_the_confidence_that_is_asked():
    surer, plain = (stream_of(epsilon=None, within=30, confidence=level).preview() for level in (0.99, None))
    assert surer.largest_errors(0.99)["total"] <= 30 < surer.largest_errors(0.999)["total"]
    assert surer.price.epsilon > plain.price.epsilon


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"within": 5}, "within and epsilon must not both be given"),
        ({"confidence": 0.9}, "confidence must come with within="),
        ({"epsilon": None, "within": {"total": 5}}, "within must name every output column once"),
        ({"epsilon": None, "within": -1}, "within must be a finite number of at least 0"),
    ],
)
def test_within_is_refused_in_words(asked, words):
    with pytest.raises(dpf.InvalidArgument, match=words):
        stream_of(**asked)


def test_who_is_protected_stays_the_same_where_the_ledger_does_not_say_it():
    """On the default ledger each call names its unit: a stream of patients must not continue with another unit."""
    frame = pl.DataFrame({"patient": [1, 1, 2], "doctor": [1, 2, 3], "day": [START] * 3})
    ledger = dpf.Ledger._unlimited()  # like the default ledger
    asked = {"statistic": dpf.count(), "time": "day", "periods": WEEKS, "epsilon": 1.0, "max_rows": 1, "ledger": ledger}
    dpf.Stream("of whom", **asked, unit="patient").release(frame, START)
    for other in ("doctor", dpf.PrivacyUnit("patient", nulls="one-unit"), dpf.PrivacyUnit(neighbors="add-remove")):
        more = {**asked, "max_rows": None} if isinstance(other, dpf.PrivacyUnit) and other.column is None else asked
        with pytest.raises(dpf.LedgerError):
            dpf.Stream("of whom", **more, unit=other).release(frame, START + timedelta(days=7))


def test_periods_of_seeded_bits_are_of_no_stream_that_promises_anything():
    ledger = dpf.Ledger(epsilon=9)
    frame = pl.DataFrame(stays())
    with noise.insecure_bits(3):
        seeded = stream_of(ledger).release(frame, START)
    assert "NOT PRIVATE" in seeded.dp.provenance["warning"]
    with pytest.raises(dpf.LedgerError, match="random bits"):
        stream_of(ledger).release(frame, START + timedelta(days=7))


@pytest.mark.parametrize("place", ["keys", "periods"])
def test_223_a_stream_does_not_go_on_with_keys_that_are_written_alike(place):
    """Otherwise counted rows would disappear, and later rows of the same unit would take their places."""
    pd = pytest.importorskip("pandas")

    def opened(first):
        keys = {"by": "g", "keys": [first, 0.7]} if place == "keys" else {"periods": [first, 0.7], "time": "g"}
        keys = {"time": "w", "periods": [1, 2], **keys}
        return dpf.Stream("s", statistic=dpf.count(), max_rows=1, unit="u", epsilon=1, ledger=ledger, **keys)

    ledger = dpf.Ledger(epsilon=9, unit="u")
    frame = pd.DataFrame({"u": ["a", "a"], "w": [1, 2], "g": [0.1, 0.7]})
    opened(0.1).release(frame, 1 if place == "keys" else 0.1)
    with pytest.raises(dpf.LedgerError, match=r"begun with other parameters: .* differ"):
        opened(Decimal("0.1")).release(frame, 2 if place == "keys" else 0.7)


def test_a_stream_does_not_go_on_with_another_statistic_of_the_callers():
    @dataclass(frozen=True)
    class Own(Sum):
        other: str = "x"

    ledger = dpf.Ledger(epsilon=9)
    frame = pl.DataFrame({"w": [1, 2], "x": [1.0, 2.0]})
    asked = {"time": "w", "periods": [1, 2], "epsilon": 1, "ledger": ledger}
    dpf.Stream("s", statistic=Own("x", (0, 1)), **asked).release(frame, 1)
    with pytest.raises(dpf.LedgerError, match="begun with other parameters: statistic differs"):
        dpf.Stream("s", statistic=Own("x", (0, 1), other="y"), **asked).release(frame, 2)


def test_facts_of_a_callers_statistic_that_are_no_json_are_refused_as_the_callers():
    @dataclass(frozen=True)
    class Own(Sum):
        def facts(self):
            return {**super().facts(), "a set": {1}}

    ledger = dpf.Ledger(epsilon=9)
    frame = pl.DataFrame({"w": [1, 2], "x": [1.0, 2.0]})
    stream = dpf.Stream("s", statistic=Own("x", (0, 1)), time="w", periods=[1, 2], epsilon=1, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match=r"set is not JSON serializable\)\. Nothing was charged"):
        stream.release(frame, 1)
    assert ledger.spent.epsilon == 0


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (dpf.count(where={"sex": "f"}), 200.0),
        (dpf.count("cost"), 200.0),
        (dpf.sum("cost", bounds=(0, 5)), 600.0),
        (dpf.sum("cost", bounds=(0, 5), where={"sex": "f"}), 600.0),
    ],
    ids=str,
)
def test_rows_that_add_nothing_use_up_no_bound(statistic, expected):
    """Once, they did, in the same order for each unit: the total of 200 people with a second row was 0."""
    people = range(200)
    frame = pl.DataFrame(
        {
            "person": [person for person in people for _ in range(3)],
            "sex": ["m", "f", "f"] * 200,
            "cost": [None, 3.0, 3.0] * 200,
            "week": [1, 2, 2] * 200,
        }
    )
    ledger = dpf.Ledger(epsilon=100, unit="person")
    asked = {"statistic": statistic, "time": "week", "periods": [1, 2], "max_rows": 1, "epsilon": 1.0}
    stream = dpf.Stream("f", ledger=ledger, **asked)
    stream.release(frame, 1)
    assert stream.release(frame, 2)["total"].to_list() == pytest.approx([expected], rel=1e-6)


@pytest.mark.parametrize("time", ["total", "period"])
def test_periods_keep_their_labels_whatever_their_column_is_called(time):
    stream = dpf.Stream(
        "s", statistic=dpf.count(), time=time, periods=[7, 8], epsilon=1.0, ledger=dpf.Ledger(epsilon=1)
    )
    for period in (7, 8):
        stream.release(pl.DataFrame({time: [7, 7, 8]}), period)
    found = stream.to_frame()
    assert found.columns == [f"{time}_label", *stream_path.COLUMNS]
    assert found[f"{time}_label"].to_list() == [7, 8]
