"""Charts mark what is unknown, in every format, and describe it for readers who do not see the picture."""

from __future__ import annotations

import io
import json
import math

import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.display import report, table_formats, theme
from dpframe.display.pages import margin
from dpframe.display.result_tables import Column, Table
from dpframe.display.statements import warned_lines
from dpframe.errors import capital
from dpframe.frames.changes import CHOSEN
from dpframe.testing import exact

altair = pytest.importorskip("altair")
WARDS = ["A", "B", "none"]
FRAME = pl.DataFrame({"ward": ["A", "B"] * 300, "age": [30.0, 60.0] * 300, "cost": [10.0, 20.0] * 300})


@pytest.fixture(scope="module")
def ratios():
    """Ratios of two groups with rows, and of one without, whose ratio is unknown."""
    bounds = {"age": (-1, 100), "cost": (0, 60)}  # the values may be negative, so no end of the interval is known
    groups = FRAME.dp.group_by("ward", keys=WARDS)
    for _ in range(40):  # noise alone looks like rows at most one time in ten: one false alarm in 10^40
        asked = groups.agg(r=dpf.ratio("age", "cost", bounds=bounds), epsilon=1, ledger=big())
        if math.isinf(asked["r_error"].to_list()[2]):
            break
    return asked


@pytest.fixture(scope="module")
def ages():
    """Mean ages of three groups."""
    return FRAME.dp.group_by("ward", keys=WARDS).mean("age", bounds=(0, 100), epsilon=1, ledger=big())


def big():
    """Return a ledger with enough budget for each test here."""
    return dpf.Ledger(epsilon=99)


def layers(chart, style):
    """Return the layers of a chart that have this style."""
    return [layer for layer in chart["layer"] if layer["mark"].get("style") == style]


def test_an_interval_without_an_end_is_hatched_from_edge_to_edge(ratios):
    """A bare point under the caption "95% margin of error" would read as certain."""
    chart = seen(ratios.dp.plot())
    (hatch,) = layers(chart, "open-intervals")
    assert hatch["mark"]["strokeDash"]
    assert {end: hatch["encoding"][end] for end in ("y", "y2")} == {"y": {"value": 300}, "y2": {"value": 0}}
    assert hatch["transform"] == [{"filter": "datum.open == 'both'"}]
    arrows = [(layer["mark"]["shape"], layer["encoding"]["y"]["value"]) for layer in layers(chart, "arrows")]
    assert arrows == [("triangle-down", 295), ("triangle-up", 5)]
    cells = chart["data"]["values"]
    assert [cell.get("open") for cell in cells] == [None, None, "both"]
    assert "95%: -∞ to ∞" in cells[2]["says"]
    assert chart["layer"][0]["encoding"]["x"]["sort"] == WARDS  # layers that show only some cells keep the order
    assert "Hatched, with arrows: intervals that have no end there" in chart["captions"]
    assert "-∞ to ∞" in chart["description"]


def test_closed_intervals_are_not_hatched(ages):
    chart = seen(ages.dp.plot())
    assert not layers(chart, "open-intervals")
    assert "Hatched" not in chart["captions"]


def test_an_open_end_of_a_line_is_hatched_in_its_color(ratios):
    bounds = {"age": (0, 100), "cost": (0, 60)}
    axis = dpf.bins("age", [0, 20, 40, 60, 80, 100])
    asked = FRAME.dp.group_by(axis, "ward", keys={"ward": WARDS})
    found = asked.agg(r=dpf.ratio("age", "cost", bounds=bounds), epsilon=1, ledger=big())
    chart = seen(found.dp.plot())
    hatched = layers(chart, "open-intervals")
    assert {layer["encoding"]["color"]["field"] for layer in hatched} == {"color"}
    assert len({layer["mark"]["xOffset"] for layer in hatched}) == len(WARDS)
    json.dumps(chart, allow_nan=False)


@pytest.mark.parametrize("kind", ["svg", "png", "notebook", "html"])
def test_every_picture_has_its_description(ratios, kind):
    pytest.importorskip("vl_convert")
    chart = ratios.dp.plot()
    said = chart.description
    assert said.startswith("Ratio of age to cost by ward. Released with differential privacy, epsilon 1.")
    if kind == "notebook":
        picture, more = chart._repr_mimebundle_()
        assert more["image/svg+xml"]["alt"] == picture["text/plain"] == said
        text = picture["image/svg+xml"]
    else:
        kept = io.BytesIO() if kind == "png" else io.StringIO()
        chart.save(kept, format=kind)
        text = kept.getvalue()
    if kind == "png":
        place = text.index(b"iTXtDescription\0\0\0\0\0")
        assert text[place + 20 :].startswith(said.encode())
        assert text.endswith(b"IEND\xaeB`\x82")
    elif kind == "html":
        assert json.dumps(said)[1:20] in text
    else:
        assert f'role="img" aria-label="{said}"' in text.replace("&#x27;", "'")


@pytest.mark.long
def test_a_chart_saved_as_a_page_fetches_nothing(ages, tmp_path):
    pytest.importorskip("vl_convert")
    ages.dp.plot().save(tmp_path / "ages.html")
    page = (tmp_path / "ages.html").read_text(encoding="utf-8")
    assert "<script src=" not in page
    assert "cdn.jsdelivr.net" not in page
    assert "cdn.jsdelivr.net" in ages.dp.plot().to_html(inline=False)  # on request, it loads Vega


def test_charts_compose_as_those_of_altair(ages, ratios):
    """The theme is set once for the whole chart, and the captions of both parts appear below it."""
    line = altair.Chart(altair.Data(values=[{"y": 50}])).mark_rule().encode(y="y:Q")
    layered = ages.dp.plot() + line
    assert seen(layered)["layer"][-1]["mark"]["type"] == "rule"
    for beside in (ages.dp.plot() | ratios.dp.plot(), ages.dp.plot() & ratios.dp.plot()):
        both = seen(beside)
        assert "config" in both
        assert "Hatched" in both["captions"]
        assert [view["title"]["text"] for view in both.get("hconcat", both.get("vconcat"))] == [
            "Mean of age by ward",
            "Ratio of age to cost by ward",
        ]
    wide = ages.dp.plot().configure_axis(grid=False).properties(width=700)
    assert (seen(wide)["width"], seen(wide)["config"]["axis"]["grid"]) == (700, False)
    assert seen(wide)["config"]["axis"]["labelColor"] == theme.LIGHT.ink  # the rest of the theme stays


def test_titles_of_panels_stand_on_one_line(ages):
    """A label of the y axis that extends above its plot would push up the title of its panel."""
    two = {"n": dpf.count(), "m": dpf.mean("age", bounds=(0, 100))}
    panels = FRAME.dp.group_by("ward", keys=WARDS).agg(**two, epsilon=9, ledger=big())
    assert panels.dp.plot().to_dict()["config"]["axisY"] == {"labelFlush": True}
    assert "axisY" not in ages.dp.plot().to_dict()["config"]


def test_a_width_is_that_of_each_panel():
    keys = {"ward": WARDS, "cost": [10.0, 20.0]}
    counts = FRAME.dp.group_by("ward", "cost", keys=keys).count(epsilon=1, ledger=big())
    small = seen(counts.dp.plot(facet="cost").properties(width=99))
    assert small["spec"]["width"] == 99
    two = FRAME.dp.group_by("ward", keys=WARDS).agg(
        n=dpf.count(), age=dpf.mean("age", bounds=(0, 100)), epsilon=1, ledger=big()
    )
    assert [panel["width"] for panel in seen(two.dp.plot().properties(width=99))["concat"]] == [99, 99]


def test_panels_of_one_quantity_share_one_scale():
    def scales(chart):
        found = []
        for panel in chart["concat"]:
            sides = [layer["encoding"][end] for layer in panel["layer"] for end in "xy" if end in layer["encoding"]]
            found.append(next(side["scale"].get("domain") for side in sides if side.get("field") == "value"))
        return found

    by_ward = FRAME.dp.group_by("ward", keys=WARDS)
    counts = by_ward.count(epsilon=0.5, ledger=big())
    one, other = scales(seen(counts.dp.plot(value=["count", "count_noisy"])))
    assert one == other is not None
    values = by_ward.agg(
        n=dpf.count(),
        low=dpf.mean("age", bounds=(0, 100)),
        high=dpf.median("age", bounds=(0, 100)),
        epsilon=1,
        ledger=big(),
    )
    alone, *shared = scales(seen(values.dp.plot()))
    assert alone != shared[0]
    assert shared[0] == shared[1] is not None


def test_maps_of_groups_and_of_tables_share_their_colors():
    by_ward = FRAME.dp.group_by("ward", keys=["A", "B"])
    bounds = {"age": (0, 100), "cost": (0, 60)}
    pairs = seen(by_ward.covariance(["age", "cost"], bounds=bounds, epsilon=1, ledger=big()).dp.plot())
    domains = [panel["layer"][0]["encoding"]["color"]["scale"]["domain"] for panel in pairs["concat"]]
    assert domains[0] == domains[1]
    tables = pl.DataFrame({"a": ["x", "y"] * 90, "b": ["p"] * 180, "c": ["s", "t", "u"] * 60})
    keys = {"a": ["x", "y"], "b": ["p"], "c": ["s", "t", "u"]}
    maps = seen(
        tables.dp.marginals(
            ["a", "b", "c"], keys=keys, degree=2, epsilon=1, ledger=dpf.Ledger(epsilon=9, delta=1e-6)
        ).dp.plot()
    )
    assert len({str(panel["encoding"]["color"]["scale"]["domain"]) for panel in maps["concat"]}) == 1


def test_a_table_for_a_page_brings_its_own_background():
    """Without one, a light page that is read in dark mode shows near-white text on white."""
    column = Column("n", (1.0,), is_number=True, decimals=0)
    html = table_formats.html_block(Table("T", "", (column,), ("a note",), "x", lambda value, _: str(value)))
    rule = html[html.index("#dpframe-x {") : html.index("}")]
    assert "background:var(--page);color:var(--ink)" in rule


def test_of_numbers_below_zero_the_largest_are_drawn_too():
    keys = list(range(30))
    losses = pl.DataFrame({"key": keys, "loss": [-300.0] * 27 + [-10.0] * 3}).dp.group_by("key", keys=keys)
    sums = losses.sum("loss", bounds=(-300, 0), epsilon=90, denoise=None, ledger=big())
    drawn = seen(sums.dp.plot(limit=3))["data"]["values"]
    assert [cell["cell"] for cell in drawn] == ["27", "28", "29"]


def test_of_many_groups_the_largest_are_drawn_and_the_rest_is_counted():
    """A chart of 300 keys was 5,906 pixels high."""
    keys = list(range(300))
    frame = pl.DataFrame({"key": [key for key in keys for _ in range(key + 1)]})
    counts = frame.dp.group_by("key", keys=keys).count(epsilon=50, denoise=None, ledger=big())
    chart = seen(counts.dp.plot())
    assert [cell["cell"] for cell in chart["data"]["values"]] == [str(key) for key in range(240, 300)]  # in key order
    assert "The 60 values of key with the largest numbers; 240 others are not drawn." in chart["captions"]
    assert f"{capital(CHOSEN)}." in chart["captions"]
    assert chart["height"] < 1_600
    few = seen(counts.dp.plot(limit=5))
    assert [cell["cell"] for cell in few["data"]["values"]] == ["295", "296", "297", "298", "299"]
    assert len(seen(counts.dp.plot(limit=300))["data"]["values"]) == 300
    assert "1 other is not drawn" in seen(counts.dp.plot(limit=299))["captions"]
    for wrong in (0, 2.5, True, "all"):
        with pytest.raises(dpf.InvalidArgument, match="limit must be a whole number of groups"):
            counts.dp.plot(limit=wrong)


def test_a_cube_is_the_table_that_it_is_with_margins():
    keys = {"ward": ["A", "B"], "cost": [10.0, 20.0]}
    cube = FRAME.dp.group_by("ward", "cost", keys=keys).count(cube=True, epsilon=1, denoise=None, ledger=big())
    chart = seen(cube.dp.plot())
    tiles, margins, *_ = chart["layer"]
    assert (tiles["transform"], tiles["mark"]["type"]) == ([{"filter": "!datum.margin"}], "rect")
    assert (margins["transform"], margins["mark"]["style"]) == ([{"filter": "datum.margin"}], "margins")
    assert [tiles["encoding"][side]["sort"] for side in ("x", "y")] == [["10", "20", "all"], ["A", "B", "all"]]
    cells = {(cell["up"], cell["cell"]): cell["value"] for cell in chart["data"]["values"]}
    numbers = {
        (row["ward"] or "all", f"{row['cost']:g}" if row["cost"] else "all"): row["count"] for row in cube.to_dicts()
    }
    assert cells == numbers
    inner = [number for (up, across), number in cells.items() if "all" not in (up, across)]
    least = min(0.0, *inner)  # the scale covers the cells, not the totals
    ends = [least, pytest.approx(least + (max(inner) - least) / theme.PALE)]
    assert tiles["encoding"]["color"]["scale"]["domain"] == ends


def test_a_distribution_function_is_drawn_in_steps():
    found = FRAME.dp.ecdf("age", bins=[0, 25, 50, 75, 100], epsilon=1, ledger=big())
    drawn = [layer["mark"] for layer in seen(found.dp.plot())["layer"]]
    assert [mark.get("interpolate") for mark in drawn if mark["type"] in ("area", "line")] == ["step-after"] * 2


def test_shares_of_bins_are_bars():
    found = FRAME.dp.histogram("age", bins=[0, 50, 100], normalize=True, epsilon=1, ledger=big())
    assert seen(found.dp.plot())["layer"][0]["mark"]["type"] == "bar"


def test_contributions_end_with_the_last_cell_that_has_data():
    people = pl.DataFrame({"person": [number // 3 for number in range(900)], "ward": ["A", "B", "C"] * 300})
    with exact():  # with noise, an empty cell stands out in one of twenty releases
        grid = people.dp.contributions(by="ward", epsilon=5, ledger=dpf.Ledger(epsilon=9, unit="person"))
    chart = seen(grid.dp.plot())
    drawn = chart if "data" in chart else chart["layer"][0]
    places = {cell["x_says"] for cell in drawn["data"]["values"]}
    assert places == {"1", "2", "3 to 4"}
    assert "Cells beyond the last that stands out from the noise are left out." in chart["captions"]


def test_a_correlation_is_a_full_matrix_with_an_empty_diagonal():
    bounds = {"age": (0, 100), "cost": (0, 60)}
    found = FRAME.dp.correlation(["age", "cost"], bounds=bounds, epsilon=1, ledger=big())
    cells = [(cell["across"], cell["up"]) for cell in seen(found.dp.plot())["data"]["values"]]
    assert sorted(cells) == [("age", "cost"), ("cost", "age")]


def test_a_covariance_within_its_margin_of_error_has_no_color_and_stretches_none():
    """The largest numbers were those with the most noise, and had the strongest color."""
    rows = pl.DataFrame({"a": [0.0, 10.0] * 3000, "b": [0.0, 10.0] * 3000, "c": [0.0] * 6000})
    bounds = {"a": (0, 10), "b": (0, 10), "c": (-3_000, 3_000)}
    found = rows.dp.covariance(["a", "b", "c"], bounds=bounds, epsilon=5, checks=False, ledger=big())
    chart = seen(found.dp.plot())
    value, error = (found[name].to_list() for name in ("covariance", "covariance_error"))
    told = [abs(of) > reach for of, reach in zip(value, error, strict=True)]
    cells = chart["data"]["values"]
    assert [cell.get("noisy") for cell in cells] == [None if clear else True for clear in told] * 2
    tiles = {layer["mark"].get("style"): layer for layer in chart["layer"]}
    if not all(told):
        assert tiles["tiles"]["transform"] == [{"filter": "!datum.noisy"}]
        assert tiles["empty-tiles"]["transform"] == [{"filter": "datum.noisy"}]
        assert "Without color: the margin of error reaches 0." in chart["captions"]
    ends = tiles["tiles"]["encoding"]["color"]["scale"]["domain"]
    most = max((abs(of) for of, clear in zip(value, told, strict=True) if clear), default=1.0)
    assert ends == [pytest.approx(-most / theme.PALE_OF_TWO), 0, pytest.approx(most / theme.PALE_OF_TWO)]


@pytest.mark.parametrize(("names", "kept"), [(["yellow", "green"], True), (["yellow", "Ann"], False)])
def test_names_of_colors_keep_their_colors(names, kept):
    """Yellow taxis were drawn in blue, and green ones in orange."""
    frame = pl.DataFrame({"taxi": names * 50})
    counts = frame.dp.group_by("taxi", keys=names).count(epsilon=1, ledger=big())
    bars = seen(counts.dp.plot(color="taxi"))["layer"][0]["encoding"]["fill"]["scale"]
    assert bars.get("range") == ([theme.NAMED[name] for name in names] if kept else None)
    for of in (theme.LIGHT, theme.DARK):
        assert all(color.lower() != of.page for color in theme.NAMED.values())


@pytest.fixture(scope="module")
def drowned():
    """Proportions of two groups with rows, and of one without, whose proportion the noise hides."""
    rows = FRAME.with_columns(old=pl.col("age") > 40)
    groups = rows.dp.group_by("ward", keys=WARDS)
    for _ in range(40):  # noise alone looks like rows in less than half of the cases: one false alarm in 10^12
        found = groups.proportion("old", epsilon=1, ledger=big())
        if found["old_proportion_error"].to_list()[2] > 0.5:
            break
    return found


def test_a_point_that_tells_nothing_is_hollow(drowned, ages):
    chart = seen(drowned.dp.plot())
    assert [cell.get("noisy") for cell in chart["data"]["values"]] == [None, None, True]
    points = [layer for layer in chart["layer"] if layer["mark"]["type"] == "point"]
    assert [(one["mark"]["filled"], one["transform"][0]["filter"]) for one in points] == [
        (True, "!datum.noisy"),
        (False, "datum.noisy"),
    ]
    assert chart["layer"][0]["encoding"]["x"]["sort"] == WARDS
    assert "Hollow: too noisy" in chart["captions"]
    one = seen(FRAME.dp.mean("age", bounds=(0, 100), epsilon=1, ledger=big()).dp.plot())
    assert "Hollow" not in one["captions"]
    assert "datum.noisy" not in str(one)


def test_a_tile_that_tells_nothing_is_crossed_out_and_stretches_no_colors():
    """A heatmap showed groups without rows in the darkest blue."""
    keys = {"ward": WARDS, "sex": ["f", "m"]}
    rows = FRAME.with_columns(sex=pl.Series(["f", "m", "m", "f"] * 150))
    for _ in range(3):  # the mean of no rows is random, so the test tries three releases
        found = rows.dp.group_by("ward", "sex", keys=keys).mean("cost", bounds=(0, 9_000), epsilon=99, ledger=big())
        chart = seen(found.dp.plot(kind="heatmap"))
        values = found.filter(pl.col("ward") != "none")["cost_mean"]
        tiles = [layer for layer in flat(chart["layer"]) if "color" in layer["encoding"]]
        least, most = values.min(), values.max()
        pale = least + (most - least) / theme.PALE  # tiles stay pale enough for the numbers written on them
        assert [one["encoding"]["color"]["scale"]["domain"] for one in tiles] == [[least, pytest.approx(pale)]]
        assert [one["transform"] for one in tiles] == [[{"filter": "!datum.noisy"}]]
        (crossed,) = layers({"layer": flat(chart["layer"])}, "crossings")
        assert crossed["encoding"]["x"]["bandPosition"] == 0
        assert crossed["encoding"]["x2"]["bandPosition"] == 1
        assert "Crossed out: too noisy" in chart["captions"]
        said = [one for one in flat(chart["layer"]) if one["mark"]["type"] == "text"]
        assert [one["transform"] for one in said] == [[{"filter": "!datum.noisy"}]]


def flat(layered):
    """Return the layers, including nested ones."""
    return [one for layer in layered for one in (flat(layer["layer"]) if "layer" in layer else [layer])]


def test_captions_have_two_lines_and_say_where_the_rest_is():
    visits = pl.DataFrame({"person": [1, 1, 2, 3, 4] * 40, "ward": ["A", "B", "C", "A", "B"] * 40})
    ledger = dpf.Ledger(epsilon=99, unit="person")
    found = visits.dp.contributions("ward", keys=["A", "B", "C"], epsilon=5, ledger=ledger)
    whole = found.dp.plot().to_dict()
    first, *lines = whole["vconcat"][0]["title"]["text"]
    assert first == "Cells beyond the last that stands out from the noise are left out."
    assert len(lines) <= 2
    assert lines[-1].endswith("More: .dp.statement().")
    own = found.dp.plot(notes=["One.", "Two."]).to_dict()["vconcat"][0]["title"]["text"]
    assert own[-2:] == ["One.", "Two."]  # all notes of the caller are shown


@pytest.fixture(scope="module")
def clipped():
    """Means of 30 groups; one tenth of the values lies below the bounds, and four tenths above."""
    frame = pl.DataFrame(
        {"g": [f"g{place:02}" for place in range(30)] * 100, "v": ([-1.0] + [5.0] * 5 + [9.0] * 4) * 300}
    )
    asked = frame.dp.group_by("g", keys=sorted(set(frame["g"])))
    with pytest.warns(dpf.BoundsWarning):
        return asked.agg(m=dpf.mean("v", bounds=(0, 7)), n=dpf.count(), epsilon=20, ledger=big())


@pytest.mark.parametrize(
    ("asked", "left_out"),
    [
        ({"limit": 20}, "The 20 values of g with the largest numbers; 10 others are not drawn."),
        ({"facet": "g"}, "The first 24 of 30 panels."),
    ],
)
def test_a_caption_on_bounds_takes_no_room_of_the_one_on_what_is_left_out(clipped, asked, left_out):
    for drawn in (
        clipped.dp.plot(value="m", **asked),
        clipped.dp.plot(value="m", **asked) | clipped.dp.plot(value="n"),
    ):
        captions = seen(drawn)["captions"]
        assert captions.startswith(left_out)
        assert "of values of v are above 7, clipped: this lowers m, and" in captions
    chart = clipped.dp.plot(value="m", **asked)
    assert left_out in report.caption_of(chart, ()), "and of a page"
    assert not seen(clipped.dp.plot(value="m", notes=False, **asked))["captions"]


def test_of_several_warnings_that_of_the_largest_share_comes_first(clipped):
    below, above = warned_lines(clipped.dp.provenance)
    captions = seen(clipped.dp.plot(value="m"))["captions"]
    assert captions.startswith(f"{above}. ")
    assert below not in captions, "there is no room"


def test_maps_of_more_groups_than_there_are_panels_say_so():
    groups = FRAME.dp.group_by("ward", keys=[f"w{place}" for place in range(26)])
    bounds = {"age": (0, 100), "cost": (0, 60)}
    chart = seen(groups.covariance(["age", "cost"], bounds=bounds, epsilon=1, ledger=big()).dp.plot())
    assert len(chart["concat"]) == 24
    assert "The first 24 of 26 panels." in chart["captions"]


def test_a_chart_of_chosen_categories_has_intervals_of_all_at_once():
    """The intervals of a top-k cover every choice among its categories, so the chart needs no warning."""
    rows = pl.DataFrame({"ward": [f"w{place:02}" for place in range(12) for _ in range(10 * place)]})
    found = rows.dp.top_k("ward", k=8, categories=sorted(set(rows["ward"])), epsilon=9, counts=True, ledger=big())
    captions = seen(found.dp.plot(limit=5))["captions"]
    assert "3 others are not drawn" in captions
    assert capital(CHOSEN) not in captions


@pytest.mark.parametrize("descending", [False, True])
def test_sums_of_the_first_bins_are_those_of_the_released_order_after_a_sort(descending):
    rows = pl.DataFrame({"age": [30.0] * 900 + [70.0] * 30 + [10.0] * 300})
    made = rows.dp.histogram("age", bins=[0, 20, 40, 60, 80], ranges=True, epsilon=1, ledger=big())
    chart = seen(made.dp.plot())
    after = seen(made.dp.sort("count", descending=descending).dp.plot())
    assert after["concat"] == chart["concat"]


def test_sums_of_the_first_bins_stand_on_the_scale_of_the_bins_and_say_the_same():
    """One panel was of the number of rows from 0, and the other of "count" from the end of the first bin."""
    rows = pl.DataFrame({"age": [30.0] * 900 + [70.0] * 30 + [10.0] * 300})
    made = rows.dp.histogram("age", bins=[0, 20, 40, 60, 80], ranges=True, epsilon=1, ledger=big())
    bins, sums = (panel["layer"] for panel in seen(made.dp.plot())["concat"])
    assert bins[0]["encoding"]["y"]["title"] == "number of rows"
    assert {layer["encoding"]["y"]["title"] for layer in sums} == {"number of rows, all bins up to here"}
    for layer in sums:
        x = layer["encoding"]["x"]
        assert x["scale"]["domain"] == [0, 80]
        assert x["axis"]["values"] == bins[0]["encoding"]["x"]["axis"]["values"] == [0, 20, 40, 60, 80]


def test_a_map_states_the_margins_of_error_that_were_released():
    """An interval that is cut at 0 is one-sided, so half of its width is not the margin of error."""
    sides = list("abcd")
    rows = pl.DataFrame({"x": [x for x in sides for _ in sides] * 400, "y": sides * 1_600})
    rows = rows.with_columns(p=pl.int_range(6_400) % 199 == 0)
    asked = rows.dp.group_by("x", "y", keys={"x": sides, "y": sides})
    shares = asked.agg(p=dpf.proportion("p"), epsilon=1, checks=False, ledger=big())
    subtitle = seen(shares.dp.plot(kind="heatmap"))["title"]["subtitle"]
    least, most = (margin(end(shares["p_error"])) for end in (min, max))
    assert subtitle.endswith(f"of each cell: ±{least} to ±{most}")


def test_intervals_of_small_counts_make_no_room_below_zero():
    """The axis extended to a round number below 0, which took a seventh of the picture."""
    rows = pl.DataFrame({"age": [30.0] * 6_000 + [70.0] * 3})
    chart = seen(rows.dp.histogram("age", bins=[0, 20, 40, 60, 80], epsilon=1, ledger=big()).dp.plot())
    scales = [layer["encoding"]["y"]["scale"] for layer in flat(chart["layer"]) if "scale" in layer["encoding"]["y"]]
    assert scales
    for scale in scales:
        assert -20 < scale["domain"][0] <= 0
        assert not scale["nice"]


def test_names_below_a_map_are_turned_and_none_is_left_out():
    names = [f"a long name {number}" for number in range(16)]
    rows = pl.DataFrame({"name": names * 40, "ward": ["A", "B"] * 320})
    keys = {"name": names, "ward": ["A", "B"]}
    chart = seen(rows.dp.group_by("name", "ward", keys=keys).count(epsilon=1, ledger=big()).dp.plot(kind="heatmap"))
    axis = next(layer for layer in flat(chart.get("layer", [chart])) if "x" in layer["encoding"])["encoding"]["x"][
        "axis"
    ]
    assert axis["labelAngle"] == -40
    assert axis["labelOverlap"] is False


@pytest.mark.parametrize(("every", "last", "words"), [("1mo", "2011-12-31", "%b'"), ("1d", "2010-12-31", "%b %-d'")])
def test_ticks_of_dates_are_of_one_kind_with_the_year_where_it_begins(every, last, words):
    from datetime import date

    rows = pl.DataFrame({"day": [date(2010, 12, 5), date(2010, 12, 20)] * 50})
    keys = {"day": dpf.dates("2010-12-01", last, every=every)}
    chart = seen(rows.dp.group_by("day", keys=keys).count(epsilon=1, ledger=big()).dp.plot())
    axes = [layer["encoding"]["x"]["axis"] for layer in flat(chart["layer"]) if "axis" in layer["encoding"]["x"]]
    assert axes
    for axis in axes:
        assert words in axis["labelExpr"]
        assert "%Y" in axis["labelExpr"]


def test_what_is_computed_of_releases_is_named_in_words(ages):
    counts = FRAME.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=big())
    chart = seen(counts.dp.share().dp.plot())
    assert chart["title"]["text"] == "Share of count by ward"
    assert "share of count" in str(chart["layer"])


def light(color):
    """The relative luminance of a color (WCAG 2.1)."""
    parts = [part / 255 for part in color]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    darker, lighter = sorted((light(one), light(other)))
    return (lighter + 0.05) / (darker + 0.05)


def rgb(color):
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]


def along(colors, share):
    """Return the color at `share` of the way along a list of colors."""
    place = min(share * (len(colors) - 1), len(colors) - 1.000001)
    first, rest = int(place), place - int(place)
    pairs = zip(rgb(colors[first]), rgb(colors[first + 1]), strict=True)
    return [left + (right - left) * rest for left, right in pairs]


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_what_is_behind_them(dark):
    """White numbers on light blue had a contrast of only 2.1 to 1."""
    of = theme.colors(dark=dark)
    for text in (of.ink, of.faint):
        assert contrast(rgb(text), rgb(of.page)) >= 4.5
    for step in range(101):
        share = step / 100
        assert contrast(rgb(of.on_tiles), along(of.ramp, share * theme.PALE)) >= 4.5
        for end in (of.above, of.below):
            assert contrast(rgb(of.on_tiles), along((of.page, end), share * theme.PALE_OF_TWO)) >= 4.5
    for mark in (of.edge, of.rule, *of.series[:4]):
        assert contrast(rgb(mark), rgb(of.page)) >= 3


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (-9.65e-05, 0.1081, "0.00 ± 0.11"),
        (0.68621, 0.02431, "0.686 ± 0.025"),
        (-0.5, 0.5, "-0.50 ± 0.50"),
        (1234.5, 12.0, "1,234 ± 13"),
        (2.0, math.inf, "2 ± ∞"),
        (57.0, 3.2, "57.0 ± 3.2"),
        (57.0, 3.0, "57 ± 3"),
    ],
)
def test_a_number_on_a_map_is_rounded_to_its_margin(value, error, said):
    from dpframe.display.charts import with_margin

    assert with_margin(value, error) == said


LONG = (
    "How often in the last twelve months did you go to a doctor because of pain in your back, your neck or a shoulder: "
)
ALIKE = ["A", "A ", "missing", None, LONG + "daily", LONG + "never", 12345678901.0, 12345678902.0]


@pytest.mark.parametrize("keys", [ALIKE[:4], ALIKE[4:6], ALIKE[6:], [None, "missing"], ["(2) A", "A", "A "]])
def test_keys_that_look_alike_do_not_lie_on_each_other(keys):
    frame = pl.DataFrame({"g": keys * 5, "h": ["x", "y"] * (len(keys) * 5 // 2) + ["x"] * (len(keys) * 5 % 2)})
    with exact():
        one = frame.dp.group_by("g", keys=keys).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0))
        two = frame.dp.group_by("g", "h", keys={"g": keys, "h": ["x", "y"]}).count(
            epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0)
        )
    cells = values_of(one.dp.plot())
    assert len({cell["cell"] for cell in cells}) == len(keys)
    for options in ({"facet": "g"}, {"color": "g"}, {"kind": "heatmap"}):
        cells = values_of(two.dp.plot(**options))
        assert len({tuple(cell.get(side) for side in ("cell", "up", "color", "facet")) for cell in cells}) == len(two)


def values_of(chart):
    """Return the cells of a chart with one panel."""
    return next(part["values"] for part in parts_of(chart.to_dict(), "values") if "says" in part["values"][0])


def parts_of(specification, name):
    """Yield all mappings that hold a list under this name."""
    if isinstance(specification, dict):
        if isinstance(specification.get(name), list):
            yield specification
        for part in specification.values():
            yield from parts_of(part, name)
    elif isinstance(specification, list):
        for part in specification:
            yield from parts_of(part, name)


def test_a_key_that_is_called_all_is_no_total():
    frame = pl.DataFrame({"g": ["a", "all"] * 50, "h": ["x", "x", "all", "y"] * 25})
    keys = {"g": ["a", "all"], "h": ["x", "all", "y"]}
    with exact():
        cube = frame.dp.group_by("g", "h", keys=keys).count(cube=True, epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0))
    cells = values_of(cube.dp.plot())
    assert len({(cell["cell"], cell["up"]) for cell in cells}) == len(cube) == 12
    assert {cell["cell"] for cell in cells if cell["margin"]} == {"(all)", "x", "all", "y"}
    text = cube.dp.table("markdown", digits=0)
    assert "| g | h x | h all | h y | (all) |" in text
    assert "| (all) | " in text


def test_compared_rows_with_long_names_stand_apart():
    keys = {"question": [LONG * 2], "answer": ["daily", "never"], "arm": ["new", "old"]}
    rows = [(LONG * 2, answer, arm) for answer in keys["answer"] for arm in keys["arm"]] * 50
    frame = pl.DataFrame(rows, schema=list(keys), orient="row")
    counts = frame.dp.group_by(*keys, keys=keys).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0))
    cells = values_of(dpf.compare(counts, "new", "old", by="arm").dp.plot())
    assert len({cell["cell"] for cell in cells}) == 2


def test_long_names_have_room_for_their_lines():
    keys = [LONG + "daily", LONG + "never", *"abcdefgh"]
    frame = pl.DataFrame({"g": keys * 5})
    chart = frame.dp.group_by("g", keys=keys).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0)).dp.plot()
    (panel,) = parts_of(chart.to_dict(), "layer")
    assert panel["height"] >= len(keys) * 3 * 13


@pytest.mark.parametrize(
    ("measures", "line"), [({"n": dpf.count()}, 32), ({"n": dpf.count(), "s": dpf.sum("age", bounds=(0, 3))}, 17)]
)
def test_headings_of_panels_fit_the_width_of_a_panel(measures, line):
    """Their lines were as long as in a wide chart, so that words in the middle were cut."""
    wards = ["Internal medicine and rheumatology, main building", "Surgery", "Pediatrics (second floor, east wing)"]
    rows = pl.DataFrame({"ward": wards, "age": [1, 2, 3]})
    keys = {"ward": wards, "age": [1, 2, 3]}
    counts = rows.dp.group_by("ward", "age", keys=keys).agg(**measures, epsilon=1, ledger=big())
    chart = seen(counts.dp.plot(facet="ward"))
    for panel in chart.get("concat", [chart]):
        headings = panel["facet"]["sort"]
        assert [heading.replace("\n", " ") for heading in headings] == wards
        assert max(len(part) for heading in headings for part in heading.split("\n")) <= line


@pytest.mark.parametrize("notes", [True, False])
def test_who_does_not_see_a_chart_hears_what_is_not_drawn(notes):
    counts = pl.DataFrame({"k": [1]}).dp.group_by("k", keys=range(500)).count(epsilon=1.0, ledger=big())
    said = seen(counts.dp.plot(notes=notes))["description"]
    assert "Bar chart of number of rows: 60 values from " in said
    assert "The 60 values of k with the largest numbers; 440 others are not drawn." in said


def _of_many(keys=100):
    rows = pl.DataFrame({"y": [place % keys for place in range(3_000)], "w": ["A", "B", "A"] * 1_000})
    by = rows.dp.group_by("y", "w", keys={"y": range(keys), "w": ["A", "B"]})
    return by.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))


def test_a_chart_of_adjusted_rows_that_noise_chose_says_so():
    captions = seen(_of_many().dp.sort("count", descending=True).dp.head(8).dp.plot())["captions"]
    assert "8 of 200 released rows are shown" in captions
    assert "The interval of a row that was chosen for its noisy number" in captions


def test_a_chart_of_a_comparison_has_as_many_rows_as_its_limit():
    compared = dpf.compare(_of_many(), "A", "B", by="w")
    for limit in (10, 99, 100):
        chart = seen(compared.dp.plot(limit=limit))
        assert len({row["cell"] for row in chart["layer"][0]["data"]["values"]}) == limit
        others = {10: "90 others are", 99: "1 other is"}.get(limit)
        if others is None:
            assert "not drawn" not in chart["captions"]
        else:
            assert f"The {limit} rows with the largest numbers; {others} not drawn." in chart["captions"]
            assert "The interval of a row that was chosen for its noisy number" in chart["captions"]


def test_bars_of_wide_marginals_say_what_their_ends_are():
    rows = pl.DataFrame({"w": ["A", "B"] * 50, "s": ["f", "m", "m", "f"] * 25})
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    tables = rows.dp.marginals(
        ["w", "s"], keys={"w": ["A", "B"], "s": ["f", "m"]}, epsilon=1, delta=1e-6, ledger=ledger
    )
    subtitle = seen(tables.dp.wide("s").dp.plot())["title"]["subtitle"]
    assert "bars: 95% margin of error (noise)" in subtitle
