"""Measure default denoising on the histograms of DPBench: cells and sums of cells, at several scales and epsilons.

    python -m benchmarks.dpbench --draws 3 --json new.json --chart docs/images/dpbench.png
    python -m benchmarks.dpbench --against old.json --json new.json     # old.json: the same by an older dpframe
    python -m benchmarks.dpbench --ranges --json ranges.json            # releases that are made for range sums

Every figure is relative to the noisy values of one release. A histogram keeps the shape of its data set; its counts are
drawn anew with the given total (Hay et al. 2016). The histograms are not part of the repository: `--data` names their
folder.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe import denoise, noise
from dpframe.denoise import choose

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dpbench"
SCALES, EPSILONS = (1e3, 1e5, 1e7), (0.01, 0.1, 1.0)
QUERIES = 2_000  # number of ranges, drawn once
CLAIMS_NOTHING: dict[str, Any] = {"actual over claimed": None}
FIGURES = ("cells", "total variation", "prefixes", "ranges", "total")
# Geometric means relative to noisy values, recorded by others with ported algorithms on held-out sets, which differ
# from the sets here. Columns: cells, total variation, prefixes, ranges.
RECORDED = {
    "lines": {"DAWA": (0.388, 0.346, 0.336, 0.331), "HB": (15.0, 3.96, 0.278, 0.342)},
    "grids": {"DAWA": (0.030, 0.032, None, 0.170), "AGrid": (0.169, 0.091, None, 0.231)},
}


@dataclass(frozen=True)
class Case:
    """True counts, and the epsilon at which they are released."""

    name: str
    scale: float
    epsilon: float
    truth: Any
    number: int  # the seeds of the case follow from it

    @property
    def kind(self) -> str:
        """The kind of histogram: "lines" for one dimension, "grids" for two."""
        return "lines" if self.truth.ndim == 1 else "grids"


def main() -> int:
    """Measure the errors, print and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of histograms_1d.npz and histograms_2d.npz")
    parser.add_argument("--draws", type=int, default=3, help="draws of the noise that are averaged")
    parser.add_argument("--kinds", nargs="+", default=["lines", "grids"])
    parser.add_argument("--scales", type=float, nargs="+", default=list(SCALES))
    parser.add_argument("--permuted", action="store_true", help="mix the cells, so that their order means nothing")
    parser.add_argument("--ranges", action="store_true", help="histogram(ranges=True), by calls on tables of rows")
    parser.add_argument("--gaussian", action="store_true", help="Gaussian noise, with delta 1e-6")
    parser.add_argument("--against", type=Path, help="figures of another version, from the same draws")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--chart", type=Path, help="write a chart here (.svg, .png or .html); it needs altair")
    options = parser.parse_args()
    rows = []
    for case in cases(options.data, options.kinds, options.scales, options.permuted):
        ask = released_for_ranges if options.ranges else measured
        rows.append(ask(case, options.draws, options.gaussian))
        print("\t".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in rows[-1].values()))
    if not rows:
        print(f"No histograms in {options.data}. Get DPBench (Hay et al. 2016) and name its folder with --data.")
        return 1
    before = json.loads(options.against.read_text()) if options.against else None
    print(table(rows, before))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if options.chart:
        chart(rows, before).save(options.chart)
    return 0


def cases(folder: Path, kinds: list[str], scales: list[float], permuted: bool) -> Iterator[Case]:
    """Yield every data set at every scale and epsilon."""
    generator, number = np.random.default_rng(0), 0
    for axes, kind in ((1, "lines"), (2, "grids")):
        file = folder / f"histograms_{axes}d.npz"
        if kind not in kinds or not file.exists():
            continue
        for name, cells in np.load(file).items():
            shares = (cells / cells.sum()).ravel()
            shares = generator.permutation(shares) if permuted else shares
            for scale in scales:
                truth = generator.multinomial(int(scale), shares).reshape(cells.shape)
                for epsilon in EPSILONS:
                    number += 1
                    yield Case(name, scale, epsilon, truth, number)


def measured(case: Case, draws: int, gaussian: bool) -> dict[str, Any]:
    """Return the errors of denoised over noisy values, summed over the draws, the time, and claimed errors."""
    law: Any = dpf.Laplace.calibrate(sensitivity=1, epsilon=case.epsilon)
    if gaussian:
        law = dpf.Gaussian.calibrate(sensitivity=1, epsilon=case.epsilon, delta=1e-6)
    noisy, found = np.zeros(len(FIGURES)), np.zeros(len(FIGURES))
    claims, seconds = [], 0.0
    for seed in range(case.number * 1000, case.number * 1000 + draws):
        with noise.insecure_bits(seed):  # the same noise each time: a benchmark, not a release
            values = law.add_noise(case.truth).astype(np.float64)
        start = time.process_time()
        denoised = denoise.auto(values, law, nonnegative=True, order=True if case.kind == "lines" else None)
        seconds += time.process_time() - start
        noisy += errors(values - case.truth)
        found += errors(denoised - case.truth)
        claims.append(claimed(case, values, law, denoised))
    relative = found / noisy
    relative[2:] = np.sqrt(relative[2:])
    known = [one for one in claims if one is not None]
    return {
        "kind": case.kind,
        "set": case.name,
        "scale": case.scale,
        "epsilon": case.epsilon,
        **dict(zip(FIGURES, relative.tolist(), strict=True)),
        "seconds": seconds / draws,
        "actual over claimed": math.sqrt(float(np.mean(np.square(known)))) if known else None,
    }


def released_for_ranges(case: Case, draws: int, gaussian: bool) -> dict[str, Any]:
    """Return the same figures for ``ranges=True`` on a table with these counts, relative to plain noisy values."""
    places = [place.ravel() for place in np.indices(case.truth.shape)]
    columns = {f"x{axis}": np.repeat(place, case.truth.ravel()) for axis, place in enumerate(places)}
    frame = pl.DataFrame(columns)
    bins = [range(length + 1) for length in case.truth.shape]
    price = {"epsilon": case.epsilon} | ({"delta": 1e-6} if gaussian else {})
    law: Any = dpf.Laplace.calibrate(sensitivity=1, epsilon=case.epsilon)
    if gaussian:
        law = dpf.Gaussian.calibrate(sensitivity=1, epsilon=case.epsilon, delta=1e-6)
    noisy, found, seconds = np.zeros(len(FIGURES)), np.zeros(len(FIGURES)), 0.0
    for _ in range(draws):
        ledger = dpf.Ledger(**price)
        start = time.process_time()
        released = frame.dp.histogram([*columns], bins=bins, ranges=True, ledger=ledger, **price)
        seconds += time.process_time() - start
        found += errors(released.dp.to_numpy("count") - case.truth)
        noisy += errors(law.add_noise(np.zeros_like(case.truth)).astype(np.float64))
    relative = found / noisy
    relative[2:] = np.sqrt(relative[2:])
    told = {"kind": case.kind, "set": case.name, "scale": case.scale, "epsilon": case.epsilon}
    return told | dict(zip(FIGURES, relative.tolist(), strict=True)) | {"seconds": seconds / draws} | CLAIMS_NOTHING


def errors(off: Any) -> Any:
    """Return the squared error of cells, absolute error, and mean squared errors of prefixes, ranges and the total."""
    through = np.pad(off, [(1, 0)] * off.ndim)
    for axis in range(off.ndim):
        through = np.cumsum(through, axis=axis)
    generator = np.random.default_rng(5)
    ends = [np.sort(generator.integers(0, length, (QUERIES, 2)), axis=1) + np.array([0, 1]) for length in off.shape]
    if off.ndim == 1:
        ((low, high),) = (one.T for one in ends)
        ranges = through[high] - through[low]
    else:
        (low, high), (left, right) = (one.T for one in ends)
        ranges = through[high, right] - through[low, right] - through[high, left] + through[low, left]
    inner = through[tuple(slice(1, None) for _ in off.shape)]
    return np.array(
        [
            np.square(off).sum(),
            np.abs(off).sum(),
            np.square(inner).mean(),
            np.square(ranges).mean(),
            np.square(off.sum()),
        ]
    )


def claimed(case: Case, values: Any, law: Any, denoised: Any) -> float | None:
    """Return the error of the nonzero cells over their claimed error, or None where no error is claimed."""
    found = choose.choose(values, law, nonnegative=True, order=True if case.kind == "lines" else None)
    deviations = getattr(found, "deviations", None)
    some = case.truth > 0
    if deviations is None or not some.any():
        return None
    return math.sqrt(float(np.square(denoised - case.truth)[some].sum() / np.square(deviations)[some].sum()))


def mean(figures: Any) -> float:
    """Return the geometric mean."""
    return math.exp(np.mean([math.log(max(figure, 1e-9)) for figure in figures]))


def table(rows: list[dict[str, Any]], before: list[dict[str, Any]] | None) -> str:
    """Return a Markdown table of geometric means, with the worst case in brackets, and of the recorded figures."""
    lines = [f"| relative to noisy | {' | '.join(FIGURES)} |", "|---|" + "---:|" * len(FIGURES)]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        old = [row for row in before or () if row["kind"] == kind]
        for name, some in (("auto", mine), ("auto, before", old)):
            if some:
                lines.append(f"| {kind}: {name} | " + " | ".join(_summed_up(some, figure) for figure in FIGURES) + " |")
        if old:
            both = [
                {figure: new[figure] / max(one[figure], 1e-9) for figure in FIGURES}
                for new, one in zip(mine, old, strict=True)
            ]
            lines.append(f"| {kind}: new over old | " + " | ".join(_summed_up(both, one) for one in FIGURES) + " |")
        for name, recorded in RECORDED[kind].items():
            words = " | ".join("-" if one is None else f"{one:.3g}" for one in (*recorded, None))
            lines.append(f"| {kind}: {name}, recorded on other sets | {words} |")
        known = [row["actual over claimed"] for row in mine if row["actual over claimed"] is not None]
        if known:
            lines.append(
                f"\n{kind}: error of cells that are not empty over what is claimed: {mean(known):.2f}, from "
                f"{min(known):.2f} to {max(known):.2f}, in {len(known)} of {len(mine)} cases. Processor time: at most "
                f"{max(row['seconds'] for row in mine):.2f} s.\n"
            )
    return "\n".join(lines)


def _summed_up(rows: list[dict[str, Any]], figure: str) -> str:
    found = [row[figure] for row in rows]
    return f"{mean(found):.3g} ({max(found):.3g})"


def chart(rows: list[dict[str, Any]], before: list[dict[str, Any]] | None) -> Any:
    """Draw a dot for each case on a log scale where 1 is the noisy values, and a tick at the geometric mean."""
    import altair

    told = {"auto": rows} | ({"auto, before": before} if before else {})
    points = [
        {"kind": row["kind"], "version": version, "figure": figure, "error": max(row[figure], 1e-3)}
        for version, some in told.items()
        for row in some
        for figure in FIGURES[:4]
    ]
    means = [
        {"kind": kind, "version": version, "figure": figure, "error": mean(row[figure] for row in some)}
        for version, every in told.items()
        for kind in dict.fromkeys(row["kind"] for row in every)
        for some in [[row for row in every if row["kind"] == kind]]
        for figure in FIGURES[:4]
    ]
    colour = altair.Color("version:N", title=None, scale=altair.Scale(range=["#0b2f5e", "#e0a458"]))
    across = altair.X(
        "error:Q",
        title="relative to the noisy values (logarithmic; less is better)",
        scale=altair.Scale(type="log", domain=[1e-3, 20], clamp=True),
        axis=altair.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g"),
    )
    up = altair.Y("figure:N", sort=list(FIGURES), title=None)
    beside = altair.YOffset("version:N")
    base = altair.Chart().encode(x=across, y=up, yOffset=beside, color=colour)
    one = altair.Chart().mark_rule(color="#333333", strokeDash=[4, 3]).encode(x=altair.datum(1))
    panels = [
        altair.layer(
            one.properties(data=altair.Data(values=[{}])),
            base.mark_circle(size=22, opacity=0.5).properties(
                data=altair.Data(values=[point for point in points if point["kind"] == kind])
            ),
            base.mark_tick(thickness=3, size=16).properties(
                data=altair.Data(values=[point for point in means if point["kind"] == kind])
            ),
        ).properties(width=330, height=200, title=altair.TitleParams(kind, anchor="start"))
        for kind in dict.fromkeys(row["kind"] for row in rows)
    ]
    title = altair.TitleParams(
        "Denoised by default, on DPBench",
        subtitle=["a dot per histogram, scale and epsilon; a tick at the geometric mean; dashed: the noisy values"],
        anchor="start",
    )
    return altair.hconcat(*panels, title=title).configure_view(stroke=None)


if __name__ == "__main__":
    sys.exit(main())
