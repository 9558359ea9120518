"""Charts of results and plans: valid Vega-Lite, the right marks, the right words."""

from __future__ import annotations

import copy
import pickle
import sys
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.display import layout, result_charts, theme
from dpframe.display.drawing import OF_DAYS, OF_HOURS, OF_MONTHS

BINS = [0, 50, 100]
DAYS = [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)]
COLUMNS = {
    "age": [31.0, 45.0, 62.0, 28.0],
    "ward": ["A", "B", "A", None],
    "day": [*DAYS, DAYS[0]],
    "person": [1, 1, 2, 3],
}


@pytest.fixture
def altair():
    return pytest.importorskip("altair")


@pytest.fixture
def frame(engine, altair):
    found = engine(COLUMNS)
    if engine.is_pandas:
        found["day"] = found["day"].astype("datetime64[s]")
    return found


@pytest.fixture
def ledger():
    return dpf.Ledger(epsilon=100.0)


def marks(chart):
    """Return the kinds of marks of a chart, including its layers and panels."""
    found = []
    if "mark" in chart:
        found.append(chart["mark"]["type"])
    for part in ("layer", "concat"):
        for inner in chart.get(part, []):
            found += marks(inner)
    return found


def test_a_histogram_has_bars_between_its_edges_and_intervals(frame, ledger):
    ages = frame.dp.histogram("age", bins=BINS, epsilon=1.0, ledger=ledger)
    chart = seen(ages.dp.plot())
    assert marks(chart) == ["bar", "rule", "tick", "tick"]
    bar = chart["layer"][0]["encoding"]
    assert bar["x"]["type"] == "quantitative"
    assert bar["x"]["axis"]["values"] == [0, 50, 100]
    assert (bar["x2"]["field"], bar["y2"]["field"]) == ("right", "zero")
    values = chart["data"]["values"]
    for cell, noisy, error in zip(values, ages["count_noisy"].to_list(), ages["count_error"].to_list(), strict=True):
        assert (cell["low"], cell["high"]) == (noisy - error, noisy + error)
        assert cell["zero"] == 0
        assert cell["middle"] == (cell["left"] + cell["right"]) / 2


def test_the_title_says_what_and_the_small_print_says_how(frame, ledger):
    ages = frame.dp.histogram("age", bins=BINS, epsilon=0.5, ledger=ledger)
    chart = seen(ages.dp.plot())
    assert chart["title"]["text"] == "Number of rows by age"
    assert chart["title"]["subtitle"] == "ε = 0.5 · each row protected · bars: 95% margin of error (noise)"
    assert "Values of age outside [0, 100] are left out." in chart["captions"]
    values = chart["data"]["values"]
    cut = any(cell["value"] == 0 and cell["low"] + cell["high"] < 0 for cell in values)
    assert ("umbers below 0 are shown as 0" in chart["captions"]) is cut  # the note needs a value that was cut at 0
    moved = any(
        abs(cell["low"] + cell["high"] - 2 * cell["value"]) > 0.02 * (cell["high"] - cell["low"]) for cell in values
    )
    assert ("Intervals surround the unbiased values" in chart["captions"]) is moved
    labeled = seen(frame.dp.histogram("age", bins=BINS, epsilon=0.5, ledger=ledger, label="Ages").dp.plot())
    assert labeled["title"]["text"] == "Ages"


def test_delta_and_the_unit_are_in_the_small_print(frame):
    unit = dpf.PrivacyUnit(column="person", max_rows=2)
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6, unit=unit)
    said = seen(frame.dp.count(epsilon=0.5, ledger=ledger).dp.plot())["title"]["subtitle"]
    assert said.startswith("ε = 0.5, δ = 1e-06 · each person protected · ")


def test_days_stand_on_a_scale_of_time(frame, ledger):
    chart = seen(frame.dp.histogram("day", bins=DAYS, epsilon=1.0, ledger=ledger).dp.plot())
    x = chart["layer"][0]["encoding"]["x"]
    assert (x["type"], x["scale"]["type"]) == ("temporal", "utc")
    values = chart["data"]["values"]
    assert [cell["left"][:10] for cell in values] == ["2026-01-01", "2026-02-01"]
    assert values[0]["middle"] == "2026-01-16T12:00:00.000Z"


@pytest.mark.parametrize(
    ("every", "last", "ends"),
    [("1w", "2026-01-18", ["2026-01-12", "2026-01-19"]), ("1mo", "2026-03-01", ["2026-02-01", "2026-03-01"])],
)
def test_dates_as_keys_stand_on_a_scale_of_time(frame, ledger, every, last, ends):
    first = {"1w": "2026-01-05", "1mo": "2026-01-01"}[every]
    keys = dpf.dates(first, last, every=every)
    chart = seen(frame.dp.group_by("day", keys=keys).count(epsilon=1.0, ledger=ledger).dp.plot())
    x = chart["layer"][0]["encoding"]["x"]
    assert (x["field"], x["type"], x["scale"]["type"]) == ("left", "temporal", "utc")
    values = chart["data"]["values"]
    assert [cell["left"][:10] for cell in values[:2]] == [first, ends[0]]
    assert [cell["right"][:10] for cell in values[:2]] == ends


def ticks_of(chart):
    """Return the days with a tick and the expression of their labels; the days are None if Vega chooses the ticks."""
    axis = seen(chart)["layer"][0]["encoding"]["x"]["axis"]
    values = axis.get("values")
    days = None if values is None else [str(np.datetime64(int(value), "ms"))[:10] for value in values]
    return days, axis.get("labelExpr")


@pytest.mark.parametrize(
    ("every", "last", "ticks", "words"),
    [
        ("1mo", "2026-03-31", ["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"], OF_MONTHS),
        ("1mo", "2029-06-30", None, OF_MONTHS),
        ("1d", "2026-01-03", ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], OF_DAYS),
        ("1d", "2026-01-31", None, OF_DAYS),
        ("1y", "2027-12-31", ["2026-01-01", "2027-01-01", "2028-01-01"], None),
    ],
)
def test_few_steps_of_time_have_a_tick_each(altair, ledger, every, last, ticks, words):
    """Ticks that Vega chooses itself repeated the name of a day."""
    days = pl.DataFrame({"day": [date(2026, 1, 5)], "x": [1.0]})
    steps = days.dp.group_by("day", keys=dpf.dates("2026-01-01", last, every=every))
    assert ticks_of(steps.mean("x", bounds=(0, 9), epsilon=1, ledger=ledger).dp.plot()) == (ticks, words)


@pytest.mark.parametrize(
    ("first", "last", "every", "periods", "tick", "words"),
    [
        ("2026-01-01", "2026-02-28", "1mo", 1, "2026-02-01", OF_MONTHS),
        ("2025-12-01", "2026-01-31", "1mo", 1, "2026-01-01", OF_MONTHS),
        ("2026-01-01", "2026-06-30", "1mo", 5, "2026-06-01", OF_MONTHS),
        ("2026-01-01", "2026-01-02", "1d", 1, "2026-01-02", OF_DAYS),
        ("2025-01-01", "2026-12-31", "1y", 1, "2026-01-01", None),
    ],
)
def test_a_single_step_of_time_has_one_tick(altair, ledger, first, last, every, periods, tick, words):
    """The end of the step lies at the same place, since the scale of one value has no width."""
    steps = pl.DataFrame({"day": [date(2026, 1, 1)]}).dp.group_by("day", keys=dpf.dates(first, last, every=every))
    chart = steps.count(epsilon=1, ledger=ledger).dp.change(periods).dp.plot()
    assert ticks_of(chart) == ([tick], words)


@pytest.mark.parametrize(("last", "every"), [("2026-01-19", 1), ("2026-06-29", 2), ("2027-01-04", None)])
def test_ticks_of_weeks_are_the_days_on_which_they_begin(frame, ledger, last, every):
    keys = dpf.dates("2026-01-05", last, every="1w")
    days, _ = ticks_of(frame.dp.group_by("day", keys=keys).count(epsilon=1.0, ledger=ledger).dp.plot())
    assert every is None or {date.fromisoformat(day).isoweekday() for day in days} == {1}
    assert (days is None) == (every is None)


def test_bins_of_days_have_the_ticks_of_days_and_the_whole_range(frame, ledger):
    chart = frame.dp.histogram("day", bins="1d", range=("2026-01-01", "2026-01-04"), epsilon=1.0, ledger=ledger)
    plot = chart.dp.plot()
    days = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    assert ticks_of(plot) == (days, OF_DAYS)
    ends = seen(plot)["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert [str(np.datetime64(int(end), "ms"))[:10] for end in ends] == [days[0], days[-1]]


def test_ticks_of_hours_name_the_day_where_it_begins(altair, ledger):
    times = pl.DataFrame({"at": [datetime(2026, 1, 5, 3)]})
    hours = times.dp.group_by("at", keys=dpf.dates("2026-01-05T00:00", "2026-01-05T05:00", every="1h"))
    _, words = ticks_of(hours.count(epsilon=1, ledger=ledger).dp.plot())
    assert words == OF_HOURS


def test_bars_of_days_between_which_some_are_left_out_are_of_one_width(frame, ledger):
    keys = dpf.dates("2026-01-01", "2026-01-31", every="1d")
    days = frame.dp.group_by("day", keys=keys).count(epsilon=1.0, ledger=ledger)
    chart = days.dp.filter({"day": ["2026-01-01", "2026-01-08", "2026-01-15"]}).dp.plot()
    assert seen(chart)["layer"][0]["mark"]["type"] == "bar"  # a line would join days that are a week apart
    assert "differ in width" not in str(seen(chart))


def test_the_last_year_of_the_calendar_can_be_drawn(frame, ledger):
    keys = dpf.dates("9998-01-01", "9999-12-31", every="1y")
    chart = seen(frame.dp.group_by("day", keys=keys).count(epsilon=1.0, ledger=ledger).dp.plot())
    assert [cell["right"][:10] for cell in chart["data"]["values"]] == ["9999-01-01", "9999-12-31"]


def test_dates_of_a_cube_stand_on_a_scale_of_time_by_themselves(frame, ledger):
    keys = {"day": dpf.dates("2026-01-01", "2026-02-28", every="1mo"), "ward": ["A", "B"]}
    chart = seen(frame.dp.group_by("day", "ward", keys=keys).count(cube=True, epsilon=1.0, ledger=ledger).dp.plot())
    places = [panel.get("spec", panel)["layer"][0]["encoding"] for panel in chart["concat"]]
    assert [place["x"]["type"] for place in places] == ["temporal", "temporal", "nominal", "quantitative"]
    assert [panel["title"]["text"] for panel in chart["concat"]] == [
        "by day and ward",
        "by day",
        "by ward",
        "all together",
    ]


@pytest.mark.parametrize("totals", ["cube", "rollup"])
def test_bars_of_each_panel_of_totals_are_grouped_by_its_own_names(altair, ledger, totals):
    """All panels shared one scale of the places in a group, so that bars were slivers beside their names."""
    keys = {"ward": ["A", "B"], "age": [20, 70], "day": ["x", "y", "z"]}
    rows = pl.DataFrame({"ward": ["A", "B"], "age": [20, 70], "day": ["x", "y"]})
    counts = rows.dp.group_by("ward", "age", "day", keys=keys).count(**{totals: True}, epsilon=1.0, ledger=ledger)
    chart = seen(counts.dp.plot())
    grouped = [panel for panel in chart["concat"] if "Offset" in str(panel)]
    assert len(grouped) > 1
    scales = chart["resolve"]["scale"]
    assert {name: scales.get(name) for name in ("color", "xOffset", "yOffset")} == dict.fromkeys(
        ("color", "xOffset", "yOffset"), "independent"
    )


def test_cells_of_a_map_are_equal_where_bins_differ_in_width(frame):
    """With unequal areas, a large cell would look like a large number."""
    ledger = dpf.Ledger(epsilon=1.0, unit="person")
    contributions = seen(frame.dp.contributions(by="ward", epsilon=0.5, ledger=ledger).dp.plot())
    uneven = [[0, 1, 100], [0, 10, 1000]]
    grid = frame.with_columns(cost=pl.col("age")) if hasattr(frame, "with_columns") else frame.assign(cost=frame["age"])
    counts = seen(grid.dp.histogram(["age", "cost"], bins=uneven, epsilon=0.5, ledger=ledger, max_rows=1).dp.plot())
    for chart in (contributions, counts):
        drawn = chart if "encoding" in chart else chart["layer"][0]
        for side in ("x", "y"):
            assert drawn["encoding"][side]["type"] == "nominal"
        assert "x2" not in drawn["encoding"]
    assert "Cells are drawn equal, though their bins differ in width." in counts["captions"]
    sides = [counts["layer"][0]["encoding"][side]["sort"] for side in ("x", "y")]
    assert sides == [None, ["10 to 1000", "0 to 10"]]  # the lowest bin at the bottom


@pytest.mark.parametrize(
    ("bins", "dropped"), [([0, 50, 100, 200, 500, 1000, 5000], "greedy"), (range(0, 100_001, 10_000), "parity")]
)
def test_labels_of_edges_are_dropped_where_there_is_no_room(altair, ledger, bins, dropped):
    """Without every second label until all fit, unequal bins had a label at both ends alone."""
    counts = pl.DataFrame({"cost": [10.0, 300.0]}).dp.histogram("cost", bins=bins, epsilon=1.0, ledger=ledger)
    axis = seen(counts.dp.plot())["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == list(bins)
    assert axis["labelOverlap"] == dropped


@pytest.mark.parametrize("every", ["1w", "1mo"])
def test_labels_of_even_ticks_are_dropped_evenly(altair, ledger, every):
    """Single labels were left out: Jan 29, Feb 12, no label, Mar 11."""
    rows = pl.DataFrame({"day": [date(2026, 1, 5)], "x": [1.0]})
    first = {"1w": "2026-01-05", "1mo": "2026-01-01"}[every]
    steps = rows.dp.group_by("day", keys=dpf.dates(first, "2026-06-30", every=every)).count(epsilon=1, ledger=ledger)
    assert seen(steps.dp.plot())["layer"][0]["encoding"]["x"]["axis"]["labelOverlap"] == "parity"
    mean = rows.dp.mean("x", bounds=(0, 2_500_000), epsilon=1, ledger=ledger)
    axes = [layer["encoding"]["x"].get("axis") for layer in seen(mean.dp.plot())["layer"] if "x" in layer["encoding"]]
    assert {axis["labelOverlap"] for axis in axes if axis} == {"parity"}


def test_a_group_by_has_a_panel_for_each_measure_and_points_for_means(frame, ledger):
    wards = frame.dp.group_by("ward", keys=["A", "B", None]).agg(
        n=dpf.count(),
        present=dpf.count("age"),
        total=dpf.sum("age", bounds=(0, 100)),
        age=dpf.mean("age", bounds=(0, 100)),
        epsilon=1.0,
        checks=False,
        ledger=ledger,
    )
    chart = seen(wards.dp.plot())
    assert [marks(panel)[0 if number < 3 else -1] for number, panel in enumerate(chart["concat"])] == [
        "bar", "bar", "bar", "point",
    ]  # fmt: skip
    assert [panel["title"]["text"] for panel in chart["concat"]] == ["n", "present", "total", "age"]
    titles = [panel["layer"][0]["encoding"]["y"]["title"] for panel in chart["concat"]]
    assert titles == [
        "number of rows",
        "present values of age",
        "sum of age",
        "mean of age",
    ]
    clipped = "Values of age are clipped to [0, 100]."  # left out if notes about the noise fill the caption
    assert clipped in chart["captions"] or chart["captions"].endswith("More: .dp.statement().")
    assert chart["title"]["text"] == "4 numbers by ward"
    two = frame.dp.group_by("ward", keys=["A", "B"]).agg(
        n=dpf.count(), age=dpf.mean("age", bounds=(0, 100)), epsilon=1.0, ledger=ledger
    )
    assert seen(two.dp.plot())["title"]["text"] == "Number of rows and mean of age by ward"


def test_long_names_lie_on_their_side(engine, altair, ledger):
    wards = ["Obstetrics and gynecology", "Cardiology", "Accident and emergency", "Pediatrics"]
    counts = engine({"ward": wards}).dp.group_by("ward", keys=wards).count(epsilon=1.0, ledger=ledger)
    bar = seen(counts.dp.plot())["layer"][0]["encoding"]
    assert (bar["y"]["field"], bar["x"]["field"]) == ("cell", "value")


def test_missing_keys_and_products_have_names(frame, ledger):
    asked = frame.dp.group_by("ward", "person", keys={"ward": ["A", None], "person": [1, 2]})
    chart = seen(asked.count(epsilon=1.0, ledger=ledger).dp.plot())
    cells = [(cell["cell"], cell["color"].removesuffix(".0")) for cell in chart["data"]["values"]]
    assert cells == [("A", "1"), ("A", "2"), ("missing", "1"), ("missing", "2")]


def test_bins_in_groups_are_panels(frame, ledger):
    counts = frame.dp.group_by("ward", keys=["A", "B"]).histogram("age", bins=BINS, epsilon=1.0, ledger=ledger)
    chart = seen(counts.dp.plot())
    assert chart["facet"]["sort"] == ["A", "B"]
    assert marks(chart["spec"])[0] == "bar"
    values = chart["data"]["values"]
    assert [(cell["facet"], cell["left"], cell["x_says"]) for cell in values[:2]] == [
        ("A", 0, "0 to 50"),
        ("A", 50, "50 to 100"),
    ]


def test_durations_are_named_cells(engine, altair, ledger):
    edges = [timedelta(0), timedelta(days=1), timedelta(days=2)]
    frame = engine({"wait": edges})
    chart = seen(frame.dp.histogram("wait", bins=edges, epsilon=1.0, ledger=ledger).dp.plot())
    bar = chart["layer"][0]["encoding"]
    assert "cell" in (bar["x"].get("field"), bar["y"].get("field"))


@pytest.mark.parametrize("denoise", ["auto", None])
def test_a_grid_is_a_map(frame, ledger, denoise):
    grid = frame.dp.histogram(["age", "day"], bins=[BINS, DAYS], epsilon=1.0, denoise=denoise, ledger=ledger)
    chart = seen(grid.dp.plot())
    assert marks(chart) == ["rect"]
    assert chart["encoding"]["y"]["type"] == "temporal"
    assert "95% margin of error (noise) of each cell: ±3" in chart["title"]["subtitle"]
    low, high = chart["encoding"]["color"]["scale"]["domain"]
    assert low <= 0 < high
    assert chart["encoding"]["x2"]["field"] == "right"


def test_one_number_is_one_bar_that_lies(frame, ledger):
    chart = seen(frame.dp.count(epsilon=1.0, ledger=ledger).dp.plot())
    assert marks(chart)[0] == "bar"
    assert chart["layer"][0]["encoding"]["y"]["field"] == "cell"


def test_too_many_bars_are_cut_and_the_small_print_says_so(frame, ledger, monkeypatch):
    monkeypatch.setattr(result_charts, "MOST_CELLS", 5)
    chart = seen(frame.dp.histogram("age", bins=10, range=(0, 100), epsilon=1.0, ledger=ledger).dp.plot())
    assert "The first 5 of 10 cells." in chart["captions"]


def test_a_plan_shows_its_errors(frame, ledger):
    plan = frame.dp.preview.group_by("ward", keys=["A"]).agg(
        n=dpf.count(), age=dpf.mean("age", bounds=(0, 100)), epsilon=1.0, ledger=ledger
    )
    chart = seen(plan.plot())
    assert marks(chart) == ["point", "text"]
    values = chart["data"]["values"]
    assert [row["name"] for row in values] == [
        "n", "age of 100 values", "age of 1,000 values", "age of 10,000 values",
    ]  # fmt: skip
    assert values[0]["value"] == plan.error["n"]
    assert chart["captions"] == "Nothing is read or spent yet."


def test_a_table_of_plans_is_a_line_for_each_column(frame, ledger):
    table = frame.dp.preview.group_by("ward", keys=["A"]).agg(
        n=dpf.count(), total=dpf.sum("age", bounds=(0, 100)), epsilon=[0.1, 1.0], ledger=ledger
    )
    chart = seen(table.plot())
    assert marks(chart) == ["line"]
    assert chart["encoding"]["x"]["axis"]["values"] == [0.1, 1.0]
    assert chart["encoding"]["color"]["sort"] == ["n", "total"]
    assert chart["title"]["subtitle"] == f"protects {table.first.protects}"


def test_captions_of_a_table_of_plans_are_sentences(altair, ledger):
    """They were keys and values of its text: "checks 5% of the cost", "note a mean's error is shown"."""
    people = pl.DataFrame({"person": [1], "ward": ["A"], "age": [30.0]})
    asked = people.dp.preview.group_by("ward", keys=["A", "B", "C"])
    words = {"unit": "person", "max_groups": 2, "epsilon": [0.5, 1.0], "checks": True}
    table = asked.mean("age", bounds=(0, 100), **words, ledger=dpf.Ledger(epsilon=9, unit="person"))
    captions = seen(table.plot())["captions"]
    assert captions.startswith("Nothing is read or spent yet. ")
    assert "Checks: 5% of the cost measures what the bounds leave out" in captions
    assert "max_rows is 1, since only max_groups was given." in captions  # names keep their case
    assert captions.endswith("A mean's error is shown for a group of 1,000 values.")
    assert " note " not in captions
    assert "+-" not in captions
    options = people.dp.preview.top_k("age", k=1, categories=[1, 2], epsilon=[0.5, 1.0], ledger=ledger)
    assert "Checks: none, since such a call cannot measure" in seen(options.plot())["captions"]


def test_errors_of_zero_are_shown_at_the_edge_of_logarithmic_charts(frame, ledger):
    """A logarithmic scale has no 0, and a silently dropped point looks as if it was never requested."""
    for epsilons in (50.0, [0.5, 50.0]):
        chart = seen(frame.dp.preview.count(epsilon=epsilons, ledger=ledger).plot())
        (values,) = {str(layer["data"]) for layer in chart["layer"] if "data" in layer} or {str(chart["data"])}
        assert "±0" in values
        assert "None" not in values  # Vega does not draw a mark without a position
        assert any("datum.beyond" in str(layer.get("transform")) for layer in chart["layer"])
        assert "an error of 0, which a logarithmic scale does not reach" in chart["captions"]
    few = seen(frame.dp.preview.count(epsilon=[0.1, 0.5], ledger=ledger).plot())
    assert "captions" in few
    assert "logarithmic scale does not reach" not in few["captions"]


@pytest.mark.slow
def test_a_ledger_of_a_moment_is_drawn_by_the_number_of_its_charges(altair, monkeypatch):
    people = pl.DataFrame({"age": [31, 45, 62]})
    for seconds, axis in ((0, "charge"), (3_600, "time")):
        ledger = dpf.Ledger(epsilon=1)
        for number in range(3):
            when = datetime.now(UTC) + timedelta(seconds=seconds * number)
            monkeypatch.setattr("dpframe.release.results.now", when.isoformat)
            people.dp.count(epsilon=0.25, ledger=ledger)
        chart = seen(ledger.plot())
        assert {layer["encoding"]["x"]["field"] for layer in chart["layer"]} == {axis}


def test_a_ledger_says_what_adds_up_and_that_nothing_is_left(frame):
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting="gdp")
    assert "gdp accounting, 0 charges; squares of mu add up, not epsilons" in repr(ledger)
    spent = dpf.Ledger(epsilon=1)
    frame.dp.count(epsilon=1, ledger=spent)
    with pytest.raises(dpf.BudgetExceeded, match=r"remains\. Use what was released freely"):
        frame.dp.count(epsilon=0.1, ledger=spent)


@pytest.mark.slow
def test_a_chart_is_written_as_png(frame, ledger, tmp_path):
    pytest.importorskip("vl_convert")
    path = tmp_path / "ages.png"
    frame.dp.histogram("age", bins=BINS, epsilon=1.0, ledger=ledger).dp.plot().save(path, scale_factor=2)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("zone", [timezone(timedelta(hours=2)), None])
def test_edges_lie_where_their_own_clock_shows_them(zone):
    row = {"at_left": datetime(2026, 1, 1, 12, tzinfo=zone), "at_right": datetime(2026, 1, 2, tzinfo=zone)}
    placed = layout.place(row, {"columns": ["at"], "bins": "datetime"}, ("left", "right"))
    assert placed == {"left": "2026-01-01T12:00:00.000Z", "right": "2026-01-02T00:00:00.000Z"}


def test_without_altair_the_error_says_what_to_install(engine, ledger, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    released = engine({"age": [31]}).dp.count(epsilon=1.0, ledger=ledger)
    with pytest.raises(ImportError, match=r"pip install 'dpframe\[plot\]'"):
        released.dp.plot()


def test_a_chart_shows_itself_without_a_network_unless_another_renderer_is_chosen(altair):
    pytest.importorskip("vl_convert")
    people = pl.DataFrame({"age": [31, 45, 62]})
    ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
    chart = ages.dp.plot()
    assert isinstance(chart, altair.LayerChart)
    for shown in (chart, chart.properties(width=100), copy.deepcopy(chart), pickle.loads(pickle.dumps(chart))):
        bundle, more = shown._repr_mimebundle_()
        assert list(bundle) == ["image/svg+xml", "text/plain"]
        assert "<script" not in bundle["image/svg+xml"]
        assert more["image/svg+xml"]["alt"] == bundle["text/plain"] == chart.description
    assert pickle.loads(pickle.dumps(chart)).to_dict() == chart.to_dict()
    with altair.renderers.enable("mimetype"):
        assert "image/svg+xml" not in chart._repr_mimebundle_()


WARDS = ["A", "B", "C", "D", "E"]
WEEKS = dpf.dates("2026-01-05", "2026-03-29", every="1w")


@pytest.fixture(scope="module")
def weekly():
    """Counts over twelve weeks, five wards and two sexes, for different choices of these keys."""
    pytest.importorskip("altair")
    days = [date(2026, 1, 5) + timedelta(days=number % 84) for number in range(840)]
    visits = pl.DataFrame({"day": days, "ward": (WARDS * 168), "sex": ["f", "m"] * 420})
    keys = {"day": WEEKS, "ward": WARDS, "sex": ["f", "m"]}
    ledger = dpf.Ledger(epsilon=10)
    return {
        2: visits.dp.group_by("day", "sex", keys={"day": WEEKS, "sex": ["f", "m"]}).count(epsilon=1, ledger=ledger),
        3: visits.dp.group_by("day", "ward", "sex", keys=keys).count(epsilon=1, ledger=ledger),
        5: visits.dp.group_by("day", "ward", keys={"day": WEEKS, "ward": WARDS}).count(epsilon=1, ledger=ledger),
        10: visits.dp.group_by("ward", "sex", keys={"ward": WARDS, "sex": ["f", "m"]}).count(epsilon=1, ledger=ledger),
    }


def test_weeks_by_a_few_names_are_a_line_for_each(weekly):
    chart = seen(weekly[2].dp.plot())
    assert marks(chart) == ["area", "line", "point"]
    line = chart["layer"][1]["encoding"]
    assert (line["x"]["type"], line["stroke"]["field"], line["stroke"]["scale"]["domain"]) == (
        "temporal",
        "color",
        ["f", "m"],
    )
    assert chart["title"]["subtitle"].endswith("shaded: 95% margin of error (noise)")
    assert chart["layer"][2]["encoding"]["shape"]["field"] == "color"  # shapes for readers who do not see colors


def test_weeks_by_more_names_are_a_panel_for_each(weekly):
    chart = seen(weekly[5].dp.plot())
    assert chart["facet"]["sort"] == WARDS
    assert "line" in marks(chart["spec"])
    both = seen(weekly[3].dp.plot())
    assert both["facet"]["title"] == "ward"
    assert both["spec"]["layer"][1]["encoding"]["stroke"]["title"] == "sex"


def test_every_column_goes_where_it_is_told(weekly):
    chart = weekly[3].dp.plot(x="ward", color="sex", facet="day", kind="bar", title="Visits", notes="Source: a ward")
    told = seen(chart)
    assert told["facet"]["title"] == "day"
    assert len(told["facet"]["sort"]) == 12
    bar = told["spec"]["layer"][0]
    assert (bar["mark"]["type"], bar["encoding"]["fill"]["title"]) == ("bar", "sex")
    assert told["title"]["text"] == "Visits"
    assert told["captions"].endswith("Source: a ward")
    bare = seen(weekly[3].dp.plot(notes=False))
    assert "subtitle" not in bare["title"]


def test_a_heat_map_has_the_column_that_is_left_up_its_side(weekly):
    chart = seen(weekly[5].dp.plot(kind="heatmap"))
    assert marks(chart) == ["rect"]
    assert (chart["encoding"]["x"]["title"], chart["encoding"]["y"]["title"]) == ("day", "ward")
    names = seen(weekly[10].dp.plot(kind="heatmap"))
    assert marks(names) == ["rect", "text"]
    assert "95% margin of error (noise) of each cell: ±" in names["title"]["subtitle"]


def test_noisy_values_can_be_shown(weekly):
    counts = weekly[5]
    values = seen(counts.dp.plot(value="count_noisy"))["data"]["values"]
    assert [cell["value"] for cell in values] == counts["count_noisy"].to_list()


def test_quantiles_of_one_column_share_a_chart(altair):
    people = pl.DataFrame({"age": list(range(100)), "ward": ["A", "B"] * 50})
    ledger = dpf.Ledger(epsilon=10)
    grouped = people.dp.group_by("ward", keys=["A", "B"])
    ages = grouped.quantile("age", q=[0.25, 0.5, 0.75], bounds=(0, 100), epsilon=1.0, ledger=ledger)
    chart = seen(ages.dp.plot())
    assert chart["title"]["text"] == "Quantiles of age by ward"
    assert {cell["color"] for cell in chart["data"]["values"]} == {"first quartile", "median", "third quartile"}
    panels = seen(ages.dp.plot(facet="quantile"))
    assert panels["facet"]["sort"] == ["first quartile", "median", "third quartile"]


def test_a_median_by_choice_says_what_its_error_is(altair):
    people = pl.DataFrame({"age": list(range(100))})
    ledger = dpf.Ledger(epsilon=1)
    median = people.dp.median("age", bounds=(0, 120), mechanism="exponential", epsilon=1.0, ledger=ledger)
    ranks = median.dp.provenance["statistics"][0]["ranks"]
    said = f"in 95 of 100 cases age_median is within {ranks:g} ranks of the exact answer"
    chart = seen(median.dp.plot())
    assert said[1:] in chart["captions"]
    assert said[1:] in median.dp.statement()
    assert chart["layer"][-1]["encoding"]["x"]["scale"]["domain"] == [0.0, 120.0]


def test_a_distribution_function_is_a_line_through_the_ends_of_its_bins(frame, ledger):
    chart = seen(frame.dp.ecdf("age", bins=[0, 25, 50, 75, 100], epsilon=1.0, ledger=ledger).dp.plot())
    line = chart["layer"][1]["encoding"]
    assert (line["x"]["field"], chart["layer"][0]["encoding"]["y"]["scale"]["domain"]) == ("right", [0.0, 1.0])
    assert chart["title"]["text"] == "Distribution function of age"


def test_eighty_long_names_are_lines_that_are_not_cut(altair):
    names = [f"Diagnosis {number} with a name that takes more than a line of a chart's side" for number in range(80)]
    found = pl.DataFrame({"code": names}).dp.group_by("code", keys=names)
    chart = seen(found.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1)).dp.plot())
    bar = chart["layer"][0]["encoding"]
    assert (bar["y"]["field"], bar["y"]["axis"]["labelExpr"]) == ("cell", "split(datum.label, '\\n')")
    assert all(len(line) <= 46 for cell in chart["data"]["values"] for line in cell["cell"].split("\n"))
    assert 80 * 15 <= chart["height"] <= 80 * 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": "wrd"}, "x must be a column of the cells, one of 'day', 'ward', not 'wrd'"),
        ({"color": "sex"}, "color must be a column of the cells"),
        ({"x": 1}, "x must be text"),
        ({"facet": "ward", "color": "ward"}, "facet must be another column than color"),
        ({"kind": "pie"}, "kind must be one of 'bar', 'line', 'point', 'heatmap', not 'pie'"),
        ({"kind": "heatmap", "color": "ward"}, "color must not be given where kind='heatmap'"),
        ({"kind": "bar", "color": "ward"}, "kind must not be 'bar' where color splits bins or dates"),
        ({"x": "ward", "color": "day"}, "color must be a column with at most 8 values, not 'day' with 12"),
        ({"value": "cost"}, "value must be one or several of 'count', 'count_noisy', not 'cost'"),
        ({"value": []}, "value must be one or several of"),
        ({"notes": 3}, "notes must be True, False, or lines of text"),
        ({"title": 3}, "title must be text"),
    ],
)
def test_arguments_that_cannot_be_drawn_are_refused(weekly, arguments, words):
    with pytest.raises(dpf.InvalidArgument) as refusal:
        weekly[5].dp.plot(**arguments)
    assert words in str(refusal.value)


def test_one_number_has_no_columns_to_lay_out(frame, ledger):
    count = frame.dp.count(epsilon=1.0, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match="x must not be given here: the result is one number"):
        count.dp.plot(x="ward")
    with pytest.raises(dpf.InvalidArgument, match="kind must not be 'heatmap' where fewer than two columns"):
        count.dp.plot(kind="heatmap")


@pytest.mark.parametrize(
    ("column", "every", "said"),
    [
        ("day", "1d", "day"),
        ("day", "1w", "day (weeks)"),
        ("week", "1w", "week"),
        ("day", "1mo", "day (months)"),
        ("day", "1h", "day (hours)"),
    ],
)
def test_words_name_the_steps_that_dates_stand_for(column, every, said):
    first = "2026-06-01T00:00" if every == "1h" else "2026-06-01"
    keys = dpf.dates(first, first, every=every)
    rows = pl.DataFrame({column: [datetime(2026, 6, 1)] * 9})
    found = rows.dp.group_by(column, keys=keys).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert found.dp.statement().startswith(f"Result: number of rows by {said}. ")
    assert found.dp.share().dp.statement().startswith(f"This is the share of count by {said}, ")


def test_a_chart_says_what_is_seen_to_who_does_not_see_it(weekly):
    said = seen(weekly[2].dp.plot())["description"]
    assert said.startswith(
        "Number of rows by day (weeks) and sex. Released with differential privacy, epsilon 1. Line chart of "
    )
    few = seen(weekly[10].dp.plot())
    assert "Bar chart of number of rows. A, f: " in few["description"]


def contrast(one, other):
    """Return the ratio of the luminance of two colors as WCAG 2.1 defines it."""
    lights = []
    for color in (one, other):
        parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


@pytest.mark.parametrize("dark", [False, True])
def test_colors_stand_out_from_the_page(dark):
    of = theme.colors(dark=dark)
    assert min(contrast(color, of.page) for color in (*of.series[:4], of.edge, of.rule)) >= 3
    assert min(contrast(color, of.page) for color in (of.ink, of.faint)) >= 4.5
    assert contrast(of.ink, of.fill) >= 3  # intervals on bars


def test_the_theme_follows_that_of_altair(weekly):
    altair = pytest.importorskip("altair")
    if not hasattr(getattr(altair, "theme", None), "enable"):
        pytest.skip("before Altair 5.5")
    light = seen(weekly[10].dp.plot())
    with altair.theme.enable("dark"):
        dark = seen(weekly[10].dp.plot())
    assert (light["config"]["background"], dark["config"]["background"]) == (theme.LIGHT.page, theme.DARK.page)
    with altair.theme.enable("ggplot2"):
        assert "style" not in seen(weekly[10].dp.plot())["config"]


def scale_of(chart):
    """Return the scale of the values of a chart."""
    encodings = [layer["encoding"] for layer in seen(chart)["layer"]]
    return next(encoding["x"].get("scale", {}) for encoding in encodings if encoding["x"]["field"] == "value")


def test_numbers_that_lie_beyond_the_bounds_of_values_are_not_cut(altair):
    """A variance and a ratio do not lie between the bounds of their column."""
    frame = pl.DataFrame({"age": [10, 50, 90] * 100, "cost": [5.0, 6.0, 7.0] * 100})
    bounds = {"age": (0, 100), "cost": (0, 9)}
    with dpf.Ledger(epsilon=99, checks=False):
        spread = frame.dp.variance("age", bounds=(0, 100), epsilon=9).dp.plot()
        ratio = frame.dp.agg(dpf.ratio("age", "cost", bounds=bounds), epsilon=9).dp.plot()
        mean = frame.dp.mean("age", bounds=(0, 100), epsilon=9).dp.plot()
    assert scale_of(spread)["domain"] == [0.0, 5000.0]  # of two values, one on each bound
    assert "domain" not in scale_of(ratio)
    assert scale_of(mean)["domain"] == [0, 100]
    assert seen(ratio)["title"]["text"] == "Ratio of age to cost"
    title = next(layer["encoding"]["x"]["title"] for layer in seen(ratio)["layer"])
    assert "".join(title) == "ratio of age to cost"
    assert "Values of age are clipped to [0, 100]. Values of cost are clipped to [0, 9]." in seen(ratio)["captions"]


def test_the_interval_of_a_mean_stays_within_its_bounds(altair):
    frame = pl.DataFrame({"ward": ["A"] * 5, "age": [90.0] * 5})
    with dpf.Ledger(epsilon=9):
        chart = frame.dp.group_by("ward", keys=["A", "B"]).mean("age", bounds=(0, 100), epsilon=0.01).dp.plot()
    cells = seen(chart)["data"]["values"]
    assert all(0 <= cell["low"] <= cell["value"] <= cell["high"] <= 100 for cell in cells)


def test_verbs_are_told_in_words(altair):
    frame = pl.DataFrame({"age": [10, 50, 90], "{sex}": ["f", "m", "f"]})
    with dpf.Ledger(epsilon=99):
        charts = [
            frame.dp.std("age", bounds=(0, 100), epsilon=1).dp.plot(),
            frame.dp.n_distinct("{sex}", epsilon=1).dp.plot(),
            frame.dp.histogram("age", bins=[0, 50, 100], normalize=True, epsilon=1).dp.plot(),
            frame.dp.proportion("{sex}", value="f", epsilon=1).dp.plot(),
        ]
    assert [seen(chart)["title"]["text"] for chart in charts] == [
        "Standard deviation of age",
        "Distinct values of {sex}",
        "Share of rows by age",
        "Proportion of {sex} that is 'f'",
    ]


def test_intervals_of_many_bars_are_a_band():
    pytest.importorskip("altair")
    frame = pl.DataFrame({"x": [0.5] * 50})
    ledger = dpf.Ledger(epsilon=2)
    few, many = (frame.dp.histogram("x", bins=size, range=(0, 1), epsilon=1, ledger=ledger) for size in (40, 50))
    drawn = [[layer["mark"].get("style") for layer in seen(one.dp.plot())["layer"]] for one in (few, many)]
    assert (drawn[0][0], drawn[0].count("caps")) == ("bars", 2)
    assert (drawn[1][:2], drawn[1].count("caps")) == (["bars", "crowded-intervals"], 0)
    assert seen(many.dp.plot())["title"]["subtitle"].endswith("bands: 95% margin of error (noise)")


def test_quantiles_of_different_rows_have_panels_of_their_own():
    """They were points of one color in one panel, both labeled as the median of the whole column."""
    pytest.importorskip("altair")
    frame = pl.DataFrame({"ward": ["A", "B"] * 500, "sex": ["f"] * 300 + ["m"] * 700, "x": [1.0] * 300 + [9.0] * 700})
    by = frame.dp.group_by("ward", keys=["A", "B"])
    f, m = {"sex": "f"}, {"sex": "m"}
    more = {"epsilon": 100, "ledger": dpf.Ledger(epsilon=1_000)}

    def drawn(one, other):
        asked = {"a": dpf.median("x", bounds=(0, 10), step=1, where=one)}
        asked["b"] = dpf.quantile("x", q=0.9, bounds=(0, 10), step=1, where=other)
        return str(by.agg(asked, **more).dp.plot().to_dict())

    apart, together, of_all = drawn(f, m), drawn(f, f), drawn(None, None)
    assert "Median of x where sex is 'f' and 0.9-quantile of x where sex is 'm' by ward" in apart
    assert "uantiles of x" not in apart
    assert "Quantiles of x where sex is 'f' by ward" in together
    assert "Quantiles of x by ward" in of_all
