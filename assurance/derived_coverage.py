"""Measure coverage of the intervals of `dpf.combine`, ``.dp.total`` and related methods, by noise, design and form.

    python -m assurance.derived_coverage [--draws 10000] [--only TEXT]

Each call releases many equal public groups with independent noise, so one call draws as many samples as there are rows.
`tests/derived/test_derived_coverage.py` runs a small share of the same code. The noise of sums is nearly continuous,
so exact intervals cover 95% almost exactly. Counts move in whole steps, so their intervals cover slightly more.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from assurance import verdict
from tests.covering import Covered, cubic, too_many

Floats = NDArray[np.float64]

LAWS: dict[str, dict[str, Any]] = {
    "Laplace": {"mechanism": "laplace"},
    "Gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    "p = 3": {"mechanism": cubic, "delta": 1e-6},
}
FORMS: dict[str, tuple[str, Callable[[Floats, Floats], Floats]]] = {
    "sum": ("{a} + {b}", lambda a, b: a + b),
    "difference": ("{a} - {b}", lambda a, b: a - b),
    "share": ("{a} / ({a} + {b})", lambda a, b: a / (a + b)),
    "ratio": ("{a} / {b}", lambda a, b: a / b),
    "percent": ("100 * ({a} / {b} - 1)", lambda a, b: 100.0 * (a / b - 1.0)),
    "product": ("{a} * {b}", lambda a, b: a * b),
}
ALARM = 1e-6  # false alarm rate of a whole run with sound intervals
BOUNDS, VALUE = (0, 100), 37.5
FIRST, SECOND = 60, 40  # rows per group, of the first and the second operand
REGIONS = 10
SQUARE = 20  # number of keys of each of two columns
GAUSSIAN_ONLY = ("marginals",)
NOT_CUBIC = ("stream", "marginals")


@dataclass(frozen=True)
class Operands:
    """Two numbers that an expression names, and their true values, row by row."""

    results: dict[str, Any]
    first: str
    second: str
    truth: Callable[[Any], tuple[Floats, Floats]]  # true values for the rows of an answer


def _price(law: str) -> dict[str, Any]:
    ledger = dpf.Ledger(epsilon=1e9, delta=0.9, accounting="basic")
    return {"epsilon": 1.0, "ledger": ledger, "denoise": None, **LAWS[law]}


@cache
def _frame(groups: int, rows: int) -> pl.DataFrame:
    unit = np.repeat(np.arange(groups), rows)
    return pl.DataFrame({"unit": unit, "region": unit % REGIONS, "x": np.full(unit.size, VALUE)})


def cells(law: str, groups: int) -> Operands:
    """Release two Totals in one release."""
    rows = _frame(groups, FIRST).with_columns(y=pl.lit(VALUE * SECOND / FIRST))
    asked = {"a": dpf.sum("x", bounds=BOUNDS), "b": dpf.sum("y", bounds=BOUNDS)}
    result = rows.dp.group_by("unit", keys=range(groups)).agg(asked, **_price(law))
    # values lie on the grid of their bounds
    return Operands({"r": result}, "r.a", "r.b", lambda answer: _equal(len(answer), VALUE * FIRST, VALUE * SECOND))


def counts(law: str, groups: int) -> Operands:
    """Release counts in two releases, with noise in whole steps."""
    results = {
        name: _frame(groups, rows).dp.group_by("unit", keys=range(groups)).count(**_price(law))
        for name, rows in (("a", FIRST), ("b", SECOND))
    }
    return Operands(results, "a", "b", lambda answer: _equal(len(answer), FIRST, SECOND))


def two_releases(law: str, groups: int) -> Operands:
    """Release the same Total in two releases."""
    return Operands(_sums(law, groups, {}), "a", "b", lambda answer: _equal(len(answer), VALUE * FIRST, VALUE * SECOND))


def rollup(law: str, groups: int) -> Operands:
    """Release cells and all their subtotals."""
    return Operands(_sums(law, groups, {"rollup": True}), "a", "b", lambda answer: _of_levels(answer, groups))


def cube(law: str, groups: int) -> Operands:
    """Release cells and all their margins."""
    return Operands(_sums(law, groups, {"cube": True}), "a", "b", lambda answer: _of_levels(answer, groups))


def marginals(law: str, groups: int) -> Operands:
    """Release all tables of two columns in two releases; the cells of one table are nearly independent."""
    keys = {"p": range(SQUARE), "q": range(SQUARE)}
    p, q = np.divmod(np.arange(SQUARE**2), SQUARE)
    results = {}
    for name, rows in (("a", FIRST), ("b", SECOND)):
        frame = pl.DataFrame({"p": np.repeat(p, rows), "q": np.repeat(q, rows)})
        price = {key: value for key, value in _price(law).items() if key != "mechanism"}
        results[name] = frame.dp.marginals(["p", "q"], keys=keys, **price)

    def truth(answer: Any) -> tuple[Floats, Floats]:
        nulls = answer["p"].is_null().cast(pl.Int64) + answer["q"].is_null().cast(pl.Int64)
        size = float(SQUARE) ** nulls.to_numpy()
        return FIRST * size, SECOND * size

    return Operands(results, "a", "b", truth)


def stream(law: str, groups: int) -> Operands:
    """Release two periods of one stream: running totals, whose noise shares draws."""
    price = {key: value for key, value in _price(law).items() if key != "denoise"}
    series = dpf.Stream(
        "s",
        statistic=dpf.sum("x", bounds=BOUNDS),
        time="week",
        periods=range(1, 9),
        by="unit",
        keys=range(groups),
        **price,
    )
    rows = pl.concat([_frame(groups, FIRST // 3).with_columns(week=pl.lit(week)) for week in (1, 2, 3)])
    periods = [series.release(rows, week) for week in (1, 2, 3)]
    each = VALUE * (FIRST // 3)
    results = {"a": periods[2], "b": periods[1]}
    return Operands(results, "a.total", "b.total", lambda answer: _equal(len(answer), 3 * each, 2 * each))


DESIGNS: dict[str, Callable[[str, int], Operands]] = {
    "cells": cells,
    "counts": counts,
    "two releases": two_releases,
    "rollup": rollup,
    "cube": cube,
    "marginals": marginals,
    "stream": stream,
}


def _sums(law: str, groups: int, more: dict[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {"unit": range(groups)}
    if more:  # a small second key, so that a cube has few cells without rows
        keys = {"unit": range(groups // REGIONS), "region": range(REGIONS)}
    results = {}
    for name, rows in (("a", FIRST), ("b", SECOND)):
        frame = _frame(groups, rows)
        if more:
            frame = frame.with_columns(unit=pl.col("unit") // REGIONS)
        by = frame.dp.group_by(*keys, keys=keys)
        results[name] = by.sum("x", bounds=BOUNDS, **_price(law) | {"denoise": "default"} | more)
    return results


def _equal(rows: int, first: float, second: float) -> tuple[Floats, Floats]:
    return np.full(rows, float(first)), np.full(rows, float(second))


def _of_levels(answer: Any, groups: int) -> tuple[Floats, Floats]:
    size = np.where(answer["unit"].is_null(), groups // REGIONS, 1) * np.where(answer["region"].is_null(), REGIONS, 1)
    return VALUE * FIRST * size.astype(np.float64), VALUE * SECOND * size.astype(np.float64)


def covered(
    law: str, design: str, groups: int, forms: tuple[str, ...] = tuple(FORMS)
) -> Iterator[tuple[Covered, float]]:
    """Yield, for each form, how many intervals miss and which share is unbounded, in one pair of releases."""
    operands = DESIGNS[design](law, groups)
    for form in forms:
        text, exact = FORMS[form]
        answer = dpf.combine(text.format(a=operands.first, b=operands.second), operands.results)
        truth = exact(*operands.truth(answer))
        if "value_error" in answer.columns:
            low, high = answer["value"] - answer["value_error"], answer["value"] + answer["value_error"]
        else:
            low, high = answer["value_low"], answer["value_high"]
        slack = 1e-6 * np.abs(truth)  # values lie on the grid of their bounds, to 2**-30 of them
        missed = (truth < low.to_numpy() - slack) | (truth > high.to_numpy() + slack)
        unbounded = float(np.isinf(high.to_numpy()).mean())
        yield Covered(f"{law}, {design}, {form}", form, len(answer), int(missed.sum())), unbounded


def of_views(releases: int, seed: int = 0) -> Iterator[Covered]:
    """Count how many intervals miss, for totals, shares and differences of some rows of marginals.

    The rows of one release share noise, so each release contributes only one row, which varies between releases.
    """
    generator = np.random.default_rng(seed)
    rows = pl.DataFrame({"p": generator.integers(0, 6, 3_000), "q": generator.integers(0, 5, 3_000)})
    keys = {"p": range(6), "q": range(5)}
    price = {key: value for key, value in _price("Gaussian").items() if key != "mechanism"}
    found: dict[str, list[bool]] = {"total": [], "share": [], "difference": []}
    for _ in range(releases):
        kept = sorted(generator.choice(6, 3, replace=False).tolist())
        tables, q = rows.dp.marginals(["p", "q"], keys=keys, **price), int(generator.integers(1, 5))
        mine = rows.filter(pl.col("p").is_in(kept))
        counts = np.bincount(mine["q"].to_numpy(), minlength=5)
        total = tables.dp.filter({"p": kept}).dp.total(by="q").row(q, named=True)
        found["total"].append(abs(total["count"] - counts[q]) > total["count_error"])
        one, other = (tables.dp.filter(pl.col("q").is_not_null() & (pl.col("p") == key)) for key in kept[:2])
        counts, fewer = (np.bincount(rows.filter(pl.col("p") == key)["q"].to_numpy(), minlength=5) for key in kept[:2])
        share = one.dp.share().row(q, named=True)
        found["share"].append(not share["count_low"] <= counts[q] / counts.sum() <= share["count_high"])
        apart = dpf.combine("a.count_noisy - b.count_noisy", {"a": one, "b": other}, on="q").row(q, named=True)
        found["difference"].append(abs(apart["value"] - (counts[q] - fewer[q])) > apart["value_error"])
    return (Covered(f"some rows of marginals, {name}", name, releases, sum(missed)) for name, missed in found.items())


def cases() -> list[tuple[str, str]]:
    """Return all combinations of noise and design."""
    return [
        (law, design)
        for law in LAWS
        for design in DESIGNS
        if not (design in GAUSSIAN_ONLY and law != "Gaussian") and not (design in NOT_CUBIC and law == "p = 3")
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    every: list[Covered] = []
    for law, design in cases():
        if options.only not in f"{law}, {design}":
            continue
        samples, misses = dict.fromkeys(FORMS, 0), dict.fromkeys(FORMS, 0)
        while samples["sum"] < options.draws:
            for found, _ in covered(law, design, options.groups):
                samples[found.column] += found.samples
                misses[found.column] += found.misses
        every += [Covered(f"{law}, {design}, {form}", form, samples[form], misses[form]) for form in FORMS]
        rates = "  ".join(f"{form} {1 - misses[form] / samples[form]:.4f}" for form in FORMS)
        print(f"{law:9} {design:13} {samples['sum']:6}  {rates}", flush=True)
    if options.only in "some rows of marginals":
        for found in of_views(options.draws):
            every.append(found)
            print(f"{found.case:35} {found.samples:6}  {found.rate:.4f}", flush=True)
    wrong = [one for one in every if too_many(one, ALARM / len(every))]
    for one in wrong:
        print(f"OBJECTION: {one}")
    least = min((one.rate for one in every), default=1.0)
    return verdict(len(wrong), cases=len(every), intervals=sum(one.samples for one in every), least_rate=least)


if __name__ == "__main__":
    raise SystemExit(main())
