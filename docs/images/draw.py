"""Draw every picture of the README and of the docs from what stands beside this file.

    python docs/images/draw.py                # all pictures, and what they are made of: specifications.json
    python docs/images/draw.py age wages      # these

Each is drawn for light pages (``age.png``) and for dark ones (``age-dark.png``), which differ in colors alone.
A ``.parquet`` file is a released result with its record, or counts of public data; a ``.csv`` file holds figures that
a script of papers/ or benchmarks/ printed. Nothing is drawn from random bits here, so that a test can compare what the
charts are made of (``tests/project/test_pictures.py``). A result is released anew by the calls that its record tells.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # where papers/, benchmarks/ and examples/ are

import dpframe as dpf  # noqa: E402
from benchmarks import growth_charts, local_model, which_noise  # noqa: E402
from dpframe.display import charts, pages  # noqa: E402
from dpframe.display.charts import Words  # noqa: E402
from examples import taxi, weekly_stream  # noqa: E402
from papers import (  # noqa: E402
    balle_wang_means,
    balle_wang_variance,
    counts,
    liu_adult_declared,
    liu_figure_2,
    liu_figure_3,
    liu_figures_4_5,
)
from papers.reporting import smaller  # noqa: E402

SPECIFICATIONS = HERE / "specifications.json"
TABLES = ("values", "roads", "junctions")
SCALE = 2  # pixels of a picture for each of its chart

Row = dict[str, Any]


def result(name: str, **arguments: Any) -> Any:
    """The chart of a released result."""
    return dpf.read_parquet(HERE / f"{name}.parquet").dp.plot(**arguments)


def figures(name: str) -> list[Row]:
    """The rows of a table of figures."""
    return pl.read_csv(HERE / f"{name}.csv", infer_schema_length=None).to_dicts()


def titled(chart: Any, title: str, *notes: str) -> Any:
    """A chart of figures with the same look as those of results."""
    return charts.titled(chart, Words(title, notes[1:], "".join(notes[:1]), f"{title}. {'. '.join(notes)}"))


def accounting() -> Any:
    """Six accountings of one workload."""
    points = [(row["accounting"], row["epsilon"]) for row in figures("accounting")]
    words = Words("Epsilon of the same 52 releases by six accountings", (), "52 x Gaussian noise, at delta 1e-06")
    return charts.named_points(points, "epsilon (logarithmic)", pages.number, words)


def denoising() -> Any:
    """A dot for each histogram and denoiser, and the mean of each denoiser."""
    import altair

    rows = [row for row in figures("denoising") if row["denoiser"] not in ("non-negative", "hard-threshold")]
    names = list(dict.fromkeys(row["denoiser"] for row in rows))
    title = "squared error / that of no denoising (logarithmic; less is better)"
    axis = altair.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g")
    across = altair.X("error:Q", title=title, scale=altair.Scale(type="log"), axis=axis)
    up = altair.Y("denoiser:N", sort=names, title=None)
    each = altair.Chart(altair.Data(values=[row for row in rows if row["histogram"] != "all"]))
    mean = altair.Chart(altair.Data(values=[row for row in rows if row["histogram"] == "all"]))
    one = altair.Chart(altair.Data(values=[{"error": 1}])).mark_rule(style="limits").encode(x="error:Q")
    dots = each.mark_point(style="points", filled=True, opacity=0.6).encode(x=across, y=up)
    ticks = mean.mark_tick(style="caps", thickness=3, size=24).encode(x=across, y=up)
    chart = altair.layer(one, dots, ticks).properties(width=charts.WIDTH, height=220)
    words = "a dot for each of eight histograms, over six noises; a tick at the geometric mean; dashed: no denoising"
    return titled(chart, "Denoisers on the DPBench histograms", words)


def dpbench() -> Any:
    """The mean and the worst case of each figure, of both kinds of release and of an older version."""
    import altair

    rows = figures("dpbench")
    names, versions = (list(dict.fromkeys(row[field] for row in rows)) for field in ("figure", "version"))
    panels = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        data = altair.Chart(altair.Data(values=[row for row in rows if row["kind"] == kind]))
        axis = altair.Axis(values=[0.01, 0.1, 1, 10], format="~g", grid=False)
        title = "relative to the noisy values (logarithmic)"
        across = altair.X("mean:Q", title=title, scale=altair.Scale(type="log", domain=[5e-3, 20]), axis=axis)
        scale = altair.Scale(domain=versions)
        beside = {"y": altair.Y("figure:N", sort=names, title=None), "yOffset": altair.YOffset("version:N")}
        color = altair.Color("version:N", title=None, scale=scale)
        line = data.mark_rule(strokeWidth=2).encode(**beside, x=across, x2="worst:Q", color=color)
        shape = altair.Shape("version:N", title=None, scale=scale)
        dot = data.mark_point(filled=True, size=60, opacity=1).encode(**beside, x=across, color=color, shape=shape)
        one = altair.Chart(altair.Data(values=[{"mean": 1}])).mark_rule(style="limits").encode(x="mean:Q")
        panels.append(altair.layer(one, line, dot).properties(width=300, height=200, title=kind))
    words = "points: geometric means of 45 and 27 DPBench cases; lines reach to the worst; dashed: the noisy values"
    return titled(altair.hconcat(*panels), "Denoised by default (auto) or for sums (ranges=True)", words)


def local() -> Any:
    """One noisy histogram beside one of randomized reports."""
    models = {"one noisy histogram": "jobs-central", "randomized reports": "jobs-local"}
    found = [
        dpf.read_parquet(HERE / f"{name}.parquet").select("job", "count", "count_noisy", "count_error")
        for name in models.values()
    ]
    rows = pl.concat([frame.with_columns(model=pl.lit(name)) for name, frame in zip(models, found, strict=True)])
    words = "epsilon 1 for each of 45,211 bank customers, replace neighbors; error bars: 95% intervals"
    return titled(local_model.picture(rows, "job"), "What trusting nobody costs: customers by job", words)


def taxi_map(name: str, epsilon: float) -> Any:
    """Maps of the true, the noisy and the denoised counts of one hour."""
    junctions = pl.read_parquet(HERE / f"{name}.parquet")
    chart = taxi.maps(junctions, pl.read_parquet(HERE / "taxi-roads.parquet"), epsilon)
    title, words = "Pick-ups in one hour, by junction", f"epsilon {epsilon:g}, delta 1e-06, at most five trips a driver"
    return titled(chart, title, words, "above each map: its root mean squared error")


def of_papers(name: str, chart: Callable[[list[Row]], Any], title: str, *notes: str) -> Callable[[], Any]:
    """The picture of a script of papers/, from the figures that it printed."""
    return lambda: titled(chart(figures(f"papers-{name}")), title, *notes)


def distances(fields: dict[str, str]) -> Callable[[list[Row]], Any]:
    """Distances of tables by noise, epsilon and delta."""
    return lambda rows: counts.chart(rows, fields)


BOTH = {"l1": "l1 distance", "kl": "KL divergence"}


def growth(axis: str) -> Any:
    """Processor's time against one size."""
    chart = growth_charts.chart(axis, growth_charts.recorded())
    return titled(chart, "Seconds of the processor, and how they grow", "both sides logarithmic; lower is faster")


PICTURES: dict[str, Callable[[], Any]] = {
    **{f"growth-{axis}": partial(growth, axis) for axis in growth_charts.ACROSS},
    "first": lambda: result("first"),  # the release of the README, whose table is printed there
    "age": lambda: result("age"),
    "religious": lambda: result("religious"),
    "age_and_marriage": lambda: result("age_and_marriage"),
    "taxi-days": lambda: result("taxi-days"),
    "taxi-boroughs": lambda: result("taxi-boroughs", facet="dropoff_borough"),
    "wages": lambda: result("wages"),
    "experience": lambda: result("experience", title="Mean weekly wage by experience, full time and part time, 1988"),
    "regions": lambda: result("regions", color="ethnicity", title="Wage earners by region and ethnicity, 1988"),
    "wage-histograms": lambda: result("wage-histograms", title="Weekly wages in four regions, 1988"),
    "rides": lambda: result("rides"),
    "products": lambda: result("products"),
    "accounting": accounting,
    "denoising": denoising,
    "dpbench": dpbench,
    "local": local,
    "which-noise": lambda: titled(
        which_noise.charts(figures("which-noise")),
        "Variance at one price, by the shape of the noise",
        "left: one cell; dashed where Gaussian noise beats Laplace noise. Right: Laplace against Gaussian noise",
    ),
    "stream": lambda: titled(
        weekly_stream.chart(figures("stream")),
        "A number that is published every week, at one price for the year",
        "epsilon 1, delta 1e-6 for all 52 weeks; of each customer 5 purchases count",
        "bands: 95% intervals; every number in this picture was released",
    ),
    "taxi-city": lambda: taxi_map("taxi-city", 0.5),
    "taxi-sample": lambda: taxi_map("taxi-sample", 5.0),
    "taxi-errors": lambda: titled(
        taxi.chart_of_errors(figures("taxi-errors")),
        "Error of a map of pick-ups against epsilon",
        "means of twelve releases",
    ),
    "papers-variance": of_papers(
        "variance", balle_wang_variance.chart, "The analytic sigma of Gaussian noise against the classical one"
    ),
    "papers-means": of_papers(
        "means",
        lambda rows: balle_wang_means.chart(rows, "error", "l2 error"),
        "Error of private means against the dimension",
        "500 vectors, delta 1e-4, means of 100 releases",
    ),
    "papers-histograms": of_papers(
        "histograms",
        lambda rows: balle_wang_means.chart(rows, "error", "l1 error"),
        "Error of private histograms against the number of bins",
        "500 elements, delta 1e-4, means of 100 releases",
    ),
    "papers-least-scale": of_papers("least-scale", liu_figure_2.chart, "The least scale b against the shape p"),
    "papers-sigmas": of_papers("sigmas", liu_figure_3.chart, "Two sigmas over the classical one, against epsilon"),
    "papers-tails": of_papers(
        "tails",
        liu_figures_4_5.chart,
        "Tails of Laplace over Gaussian noise, and epsilons at equal tails",
        "dim: neither tail is above 1e-4",
    ),
    "papers-mildew": of_papers("mildew", distances(BOTH), "Mildew: distances of private counts from the true ones"),
    "papers-czech": of_papers(
        "czech", distances(BOTH), "Czech workers: distances of private counts from the true ones"
    ),
    "papers-adult": of_papers(
        "adult", distances({"l1": "l1 distance"}), "Adult: distances of private counts from the true ones"
    ),
    "papers-adult-declared": of_papers(
        "adult-declared", liu_adult_declared.chart, "Accuracy of machines trained on declared cells, against epsilon"
    ),
}


def specification(chart: Any) -> Row:
    """The Vega-Lite of a chart without the number of its version, each table of data as its length and its hash."""
    plain = json.loads(json.dumps(chart.to_dict()))
    plain.pop("$schema")
    plain.pop("usermeta", None)  # the name of a theme, for what shows the chart
    plain["config"] = {"sha256": _hash(plain["config"])}
    return dict(_hashed(plain))


def _hashed(part: Any) -> Any:
    if isinstance(part, list):
        return [_hashed(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        name: {"rows": len(one), "sha256": _hash(one)} if name in TABLES and isinstance(one, list) else _hashed(one)
        for name, one in part.items()
    }


def _hash(part: Any) -> str:
    text = json.dumps(_rounded(part), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rounded(part: Any) -> Any:
    """Numbers to nine digits: the last ones of a fit depend on the processor."""
    if isinstance(part, list):
        return [_rounded(one) for one in part]
    if isinstance(part, dict):
        return {name: _rounded(one) for name, one in part.items()}
    return f"{part:.9g}" if isinstance(part, float) else part


def in_the_dark(name: str) -> Any:
    """The chart for a dark page."""
    import altair

    with altair.theme.enable("dark"):
        return PICTURES[name]()


def main() -> None:
    """Draw all pictures, or those that are named."""
    names = sys.argv[1:] or list(PICTURES)
    known = json.loads(SPECIFICATIONS.read_text(encoding="utf-8")) if SPECIFICATIONS.exists() else {}
    for name in names:
        chart = PICTURES[name]()
        for picture, drawn in ((HERE / f"{name}.png", chart), (HERE / f"{name}-dark.png", in_the_dark(name))):
            drawn.save(str(picture), scale_factor=SCALE)
            picture.write_bytes(smaller(picture.read_bytes()))
        known[name] = specification(chart)
        print(f"{name}.png")
    kept = {name: known[name] for name in sorted(known) if name in PICTURES}
    SPECIFICATIONS.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
