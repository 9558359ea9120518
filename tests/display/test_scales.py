"""The scales of charts: bars start at zero, and the colors of heatmaps distinguish their numbers."""

from __future__ import annotations

import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.display import theme


@pytest.fixture
def ledger():
    return dpf.Ledger(epsilon=100.0)


@pytest.mark.parametrize(("bounds", "ends"), [((20, 80), [0, 80]), ((-80, -20), [-80, 0]), ((-20, 80), [-20, 80])])
def test_the_bar_of_one_number_stands_on_zero_whatever_its_bounds_are(ledger, bounds, ends):
    pytest.importorskip("altair")
    mean = pl.DataFrame({"x": [sum(bounds) / 2] * 1000}).dp.mean("x", bounds=bounds, epsilon=1.0, ledger=ledger)
    bar, point = (seen(mean.dp.plot(kind=kind)) for kind in ("bar", "point"))
    scales = [chart["layer"][place]["encoding"]["x"]["scale"] for chart, place in ((bar, 0), (point, -1))]
    assert [scale["domain"] for scale in scales] == [ends, list(bounds)]


def domains(chart):
    """Return the domains of the color scales of a chart."""
    found = [chart["encoding"]["color"]["scale"]["domain"]] if "color" in chart.get("encoding", {}) else []
    return found + [
        domain for part in ("layer", "concat") for inner in chart.get(part, ()) for domain in domains(inner)
    ]


def test_colors_of_maps_reach_to_one_only_where_numbers_are_counted(ledger):
    """Otherwise all tiles of proportions and of small sums have the same color."""
    pytest.importorskip("altair")
    frame = pl.DataFrame({"x": [5.0, 15.0] * 500, "y": [5.0, 15.0] * 500, "k": ["a", "b"] * 500, "c": ["u", "v"] * 500})
    shares = frame.dp.histogram(["x", "y"], bins=[[0, 10, 20]] * 2, normalize=True, epsilon=9.0, ledger=ledger)
    groups = frame.dp.group_by("k", "c", keys={"k": ["a", "b"], "c": ["u", "v"]})
    asked = {"bounds": (0, 1e-6), "epsilon": 9.0, "ledger": ledger}
    small, table = groups.sum("x", **asked), groups.sum("x", cube=True, **asked)
    for chart, most in (
        (shares.dp.plot(), 0.6),
        (small.dp.plot(kind="heatmap"), 1e-2),
        (table.dp.plot(), 1e-2),
    ):
        ((least, end),) = domains(seen(chart))
        assert least <= 0 < end < most / theme.PALE
    empty = frame.head(0).dp.group_by("k", "c", keys={"k": ["a", "b"], "c": ["u", "v"]})
    ((_, end),) = domains(seen(empty.count(epsilon=20.0, ledger=ledger).dp.plot(kind="heatmap")))
    assert end >= 1
