"""A private heat map of taxi pick-ups: a count for each junction of a city, denoised along the roads.

It follows section 5.3 of Balle and Wang (ICML 2018). Run it with ``python examples/taxi.py FOLDER --maps``.
``--repeats 12 --epsilons 0.1 0.5 1 2 5 10`` measures the figures of docs/assurance/taxi.md. The example reads the New
York City sample from ``../shared/data``; without it, it makes up a small town.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
UNIT = dpf.PrivacyUnit(column="driver_id", max_rows=5)  # so one driver's counts have an l2 norm of at most 5
DELTA = 1e-6
BUSIEST = 10  # the busiest hour of the sample
NAMES = ("noisy", "james-stein", "soft-threshold", "wavelets", "trend filter", "auto, no graph", "auto")
SHOWN = ("true", "noisy", "wavelets", "trend filter", "auto")


@dataclass(frozen=True)
class City:
    """A city: its junctions, the roads between them, and its taxi trips."""

    name: str
    junctions: pl.DataFrame  # columns: junction, x, y
    roads: pl.DataFrame  # columns: u, v (the junctions at both ends)
    trips: pl.DataFrame  # columns: driver_id, pickup_junction, hour

    @property
    def keys(self) -> list[int]:
        """The public keys: every junction of the map, whether or not a taxi stopped there."""
        return self.junctions["junction"].to_list()


def main() -> None:
    """Print the errors at each epsilon and, with --maps, draw the maps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("."), help="where the maps are written")
    parser.add_argument("--repeats", type=int, default=1, help="releases whose errors are averaged")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5], help="values of epsilon to compare")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the New York City sample")
    parser.add_argument("--maps", action="store_true", help="draw maps; it needs dpframe[plot]")
    options = parser.parse_args()
    city = sampled(options.data) or made_up_city()
    print(f"The map: {city.name}, {city.junctions.height:,} junctions and {city.roads.height:,} roads.")
    cases = {"the sample": busiest_hour(city)} | {
        f"{volume:,} made-up pick-ups": made_up_hour(city, volume) for volume in (20_000, 50_000)
    }
    rows = []
    for case, trips in cases.items():
        found = measured(city, trips, options.epsilons, options.repeats)
        print(f"\n{case}: {trips.height:,} pick-ups\n{table(found)}")
        rows += [{"case": case, **row} for row in found]
    if options.maps:
        chart_of_errors(rows).save(options.folder / "taxi-errors.png")
        draw(city, cases["50,000 made-up pick-ups"], 0.5, options.folder / "taxi-city.png")
        draw(city, cases["the sample"], 5.0, options.folder / "taxi-sample.png")


def released(city: City, trips: pl.DataFrame, epsilon: float) -> pl.DataFrame:
    """Release the private map: a count for each junction, denoised along the roads at no extra cost."""
    ledger = dpf.Ledger(epsilon=epsilon, delta=DELTA, unit=UNIT)
    with ledger:
        return trips.dp.group_by("pickup_junction", keys=city.keys).count(graph=city.roads, epsilon=epsilon)


def estimates(city: City, trips: pl.DataFrame, epsilon: float) -> dict[str, Any]:
    """Return the same noisy counts, denoised in several ways."""
    result = released(city, trips, epsilon)
    noise = dpf.Gaussian.calibrate(sensitivity=UNIT.max_rows, epsilon=epsilon, delta=DELTA)
    noisy = result["count_noisy"].to_numpy()
    places = {key: place for place, key in enumerate(city.keys)}
    graph = np.array([(places[u], places[v]) for u, v in city.roads.select("u", "v").rows()])
    return {
        "noisy": noisy,
        "james-stein": dpf.denoise.james_stein(noisy, noise),
        "soft-threshold": dpf.denoise.soft_threshold(noisy, noise),
        "wavelets": dpf.denoise.spanning_tree_wavelets(noisy, noise, graph=graph),
        "trend filter": dpf.denoise.trend_filter(noisy, noise, graph=graph),
        "auto, no graph": dpf.denoise.auto(noisy, noise, nonnegative=True),
        "auto": result["count"].to_numpy(),
    }


def true_counts(city: City, trips: pl.DataFrame) -> Any:
    """Return the true counts. They are not private and serve only to measure errors."""
    counts = trips.group_by("pickup_junction").agg(pl.len())
    keys = pl.DataFrame({"pickup_junction": city.keys})
    return keys.join(counts, on="pickup_junction", how="left", maintain_order="left")["len"].fill_null(0).to_numpy()


def measured(city: City, trips: pl.DataFrame, epsilons: list[float], repeats: int) -> list[dict[str, Any]]:
    """Return root mean squared errors over the junctions: their mean and standard deviation over the releases."""
    truth = true_counts(city, trips)
    rows = []
    for epsilon in epsilons:
        found: dict[str, list[float]] = {name: [] for name in NAMES}
        for _ in range(repeats):
            for name, values in estimates(city, trips, epsilon).items():
                found[name].append(rmse(values, truth))
        rows += [
            {"epsilon": epsilon, "name": name, "rmse": statistics.fmean(errors), "spread": statistics.pstdev(errors)}
            for name, errors in found.items()
        ]
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a row for each epsilon."""
    lines = ["| epsilon | " + " | ".join(NAMES) + " |", "|---:|" + "---:|" * len(NAMES)]
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        figures = [f"{row['rmse']:.2f} +- {row['spread']:.2f}" for row in rows if row["epsilon"] == epsilon]
        lines.append(f"| {epsilon:g} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


def rmse(values: Any, truth: Any) -> float:
    """Return the root mean squared error over the junctions."""
    return float(np.sqrt(np.square(values - truth).mean()))


def sampled(folder: Path) -> City | None:
    """Load Manhattan and 10,000 trips of one Sunday, or return None if the files are missing."""
    graph = folder / "manhattan_graph"
    trips = folder / "nyc_taxi_2013" / "trips.csv"
    if not (graph.exists() and trips.exists()):
        return None
    junctions = pl.read_csv(graph / "junction_nodes.csv").select("junction", x="lon", y="lat")
    roads = pl.read_csv(graph / "junction_edges.csv").select("u", "v")
    rides = pl.read_csv(trips, try_parse_dates=True).filter(pl.col("pickup_junction") >= 0)
    hours = rides.select("driver_id", "pickup_junction", hour=pl.col("pickup_datetime").dt.hour())
    return City("Manhattan, with real trips", junctions, roads, hours)


def made_up_city(height: int = 30, width: int = 12, trips: int = 2_000) -> City:
    """Make up a town with a grid of roads, a busy center and a station."""
    random = np.random.default_rng(1)
    y, x = np.divmod(np.arange(height * width), width)
    junctions = pl.DataFrame({"junction": np.arange(height * width), "x": x / width, "y": y / height})
    ways = pl.concat(
        [
            junctions.filter(pl.col("junction") % width < width - 1).select(u="junction", v=pl.col("junction") + 1),
            junctions.filter(pl.col("junction") < (height - 1) * width).select(
                u="junction", v=pl.col("junction") + width
            ),
        ]
    )
    busy = 0.2 + 6.0 * ((abs(y - 12) < 5) & (abs(x - 6) < 3)) + 40.0 * ((y == 22) & (x == 3))
    rows = {
        "driver_id": random.integers(0, trips // 2, trips),
        "pickup_junction": random.choice(height * width, trips, p=busy / busy.sum()),
        "hour": np.full(trips, BUSIEST),
    }
    return City("a made-up town (the New York City sample is not here)", junctions, ways, pl.DataFrame(rows))


def busiest_hour(city: City) -> pl.DataFrame:
    """Return the trips of the busiest hour."""
    return city.trips.filter(pl.col("hour") == BUSIEST)


def made_up_hour(city: City, volume: int) -> pl.DataFrame:
    """Make up an hour with `volume` pick-ups: draw trips of all hours, then move each by up to three junctions."""
    random = np.random.default_rng(volume)
    ends = np.array(city.roads.rows() + [(v, u) for u, v in city.roads.rows()] + [(key, key) for key in city.keys])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first, degrees = np.searchsorted(ends[:, 0], np.arange(ends.max() + 2)), np.bincount(ends[:, 0])
    at = random.choice(city.trips["pickup_junction"].to_numpy(), volume)
    for _ in range(3):
        at = ends[first[at] + random.integers(0, degrees[at]), 1]
    return pl.DataFrame({"driver_id": np.arange(volume) // 3, "pickup_junction": at})  # three trips per driver


def draw(city: City, trips: pl.DataFrame, epsilon: float, path: Path) -> None:
    """Draw maps of one release: the true counts, the noisy counts, and three ways to denoise them."""
    found = {"true": true_counts(city, trips)} | estimates(city, trips, epsilon)
    columns = {name: np.round(found[name], 2) for name in SHOWN}
    maps(city.junctions.select("junction", "x", "y").with_columns(**columns), city.roads, epsilon).save(path)
    print(f"\nepsilon {epsilon:g}: drew {path.name}")


def maps(junctions: pl.DataFrame, roads: pl.DataFrame, epsilon: float) -> Any:
    """Return a map for each column of `junctions` that `SHOWN` names."""
    import altair

    truth = junctions["true"].to_numpy()
    top = float(np.quantile(truth, 0.995))
    places = junctions.select("junction", "x", "y")
    ends = roads.join(places, left_on="u", right_on="junction").join(places, left_on="v", right_on="junction")
    axis = {"axis": None, "scale": altair.Scale(zero=False, nice=False)}
    lines = (
        altair.Chart(altair.NamedData(name="roads"))
        .mark_rule(color="#ddd", strokeWidth=0.2)
        .encode(x=altair.X("x:Q", **axis), y=altair.Y("y:Q", **axis), x2="x2:Q", y2="y2:Q")
    )
    colors = altair.Scale(range="heatmap", domain=[0, top])
    charts = []
    for place, name in enumerate(SHOWN):
        title = name if name == "true" else f"{name}: {rmse(junctions[name].to_numpy(), truth):.2f}"
        color = altair.Color(f"map{place}:Q", scale=colors, title="pick-ups")
        points = altair.Chart(altair.NamedData(name="junctions")).mark_square(size=3.5, opacity=1.0)
        both = lines + points.encode(x="x:Q", y="y:Q", color=color)
        charts.append(both.properties(width=110, height=245, title=altair.Title(title, fontSize=12)))
    words = f"Pick-ups in one hour, epsilon {epsilon:g}, delta {DELTA:g}; root mean squared error by map"
    together = altair.hconcat(*charts, spacing=4, title=words)
    shown = {f"map{place}": junctions[name].clip(0.0, top).round(1) for place, name in enumerate(SHOWN)}
    together.datasets = {  # shared by all maps
        "roads": ends.select("x", "y", x2="x_right", y2="y_right").to_dicts(),
        "junctions": places.with_columns(**shown).sort("map0", "junction").to_dicts(),
    }
    return together


def chart_of_errors(rows: list[dict[str, Any]]) -> Any:
    """Return a chart of the error against epsilon, for each way to denoise and each hour."""
    import altair

    chart = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(point=altair.OverlayMarkDef(size=20), strokeWidth=1.5)
        .encode(
            x=altair.X(
                "epsilon:Q",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(values=[0.1, 0.5, 1, 2, 5, 10], grid=False),
            ),
            y=altair.Y(
                "rmse:Q",
                scale=altair.Scale(type="log"),
                title="root mean squared error",
                axis=altair.Axis(grid=False, tickCount=4),
            ),
            color=altair.Color("name:N", sort=list(NAMES), title=None),
            column=altair.Column("case:N", sort=None, title=None),
        )
    )
    return chart.properties(width=190, height=230)


if __name__ == "__main__":
    main()
