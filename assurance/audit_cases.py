"""The neighboring tables and the queries that are audited. The person who differs contributes the most possible."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpframe as dpf
from assurance.auditing import GAUSSIAN, GAUSSIAN_GDP, INFLATED, LAPLACE, SHAPE_3, TRUNCATED, Case, Price

ENGINES = ("pandas", "Polars", "LazyFrame", "Arrow")
PRICES = (LAPLACE, GAUSSIAN, GAUSSIAN_GDP, SHAPE_3, TRUNCATED, INFLATED)
CELLS = 3
LOW, HIGH = 0, 10
BOTH = {"value": (LOW, HIGH), "cell": (0, CELLS - 1)}

OTHERS = [(0, 2, 1), (0, 7, 2), (0, 4, 3)]  # cell, value, person
CROWD = [(0, 5, person) for person in range(1, 13)]
VARIED = [(cell, value, 9) for cell in (0, 1) for value in range(100, 110)]
HEAVY = [(cell, 10**6, 9) for cell in (0, 0, 0, 0, 0, 0, 1, 1, 1, 2)]  # more rows than count in full
SPREAD = [(0, 2, 1), (1, 7, 2), (2, 4, 3), (1, 1, 3)]

ROWS = {neighbors: dpf.PrivacyUnit(neighbors=neighbors) for neighbors in ("add-remove", "replace")}
USERS = {
    neighbors: dpf.PrivacyUnit(column="user", max_rows=2, max_groups=2, neighbors=neighbors)
    for neighbors in ("add-remove", "replace")
}


def cases(engines: tuple[str, ...] = ENGINES, prices: tuple[Price, ...] = PRICES) -> Iterator[Case]:
    """Yield combinations of noises, engines, units, neighbors and verbs; OPTIONS run on one engine each, in turn."""
    for price in prices:
        for engine in engines:
            for place, (name, unit, first, second, ask, more) in enumerate(_asked()):
                turn = ENGINES[(place + PRICES.index(price)) % len(ENGINES)]
                if _possible(price, unit, ask) and (ask not in OPTIONS or engine == turn):
                    yield Case(name, engine, price, first, second, ask, unit, **more)


def case(name: str, engine: str, price: Price) -> Case:
    """Return one case by name, on any engine."""
    for found, unit, first, second, ask, more in _asked():
        if found == name and _possible(price, unit, ask):
            return Case(name, engine, price, first, second, ask, unit, **more)
    raise LookupError(f"{name} is not audited with {price.name}")


def _possible(price: Price, unit: dpf.PrivacyUnit, ask: Any) -> bool:
    """Return whether the noise is offered for the case, and can be calibrated in time."""
    if price == SHAPE_3:  # proven for one moved cell only; with many totals each would need its own calibration
        return unit == ROWS["add-remove"] and ask not in (*SEVERAL_NUMBERS, *MANY_TOTALS, *OPTIONS)
    if price in (TRUNCATED, INFLATED):  # these noises serve one number only
        return unit == ROWS["add-remove"] and ask in ONE_TOTAL
    return ask not in CHOICES or price == LAPLACE  # pure, and charged exactly under basic accounting only


def _asked() -> Iterator[tuple[Any, ...]]:
    yield from _rows_added()
    yield from _rows_replaced()
    yield from _users()
    yield from _read_off()
    yield from _whole_units()
    yield from _without_groups()
    yield from _options()
    yield from _options_of_units()
    yield from _at_once()


def _rows_added() -> Iterator[tuple[Any, ...]]:
    unit = ROWS["add-remove"]
    yield "rows: count", unit, [*OTHERS, (0, 5, 9)], OTHERS, count, {}
    yield "rows: sum", unit, [*OTHERS, (0, 10**6, 9)], OTHERS, total, {}
    yield "rows: mean", unit, [*CROWD, (0, 10**6, 99)], CROWD, mean, {}
    yield "rows: agg", unit, [*OTHERS, (0, 10**6, 9)], OTHERS, several, {}
    yield "rows: histogram in groups", unit, [*OTHERS, (0, 9, 9)], OTHERS, grouped_histogram, {}
    yield "rows: histogram", unit, [*OTHERS, (1, 0, 9)], OTHERS, histogram, {}
    yield "rows: an infinite value", unit, [*OTHERS, (0, math.inf, 9)], OTHERS, several, {}
    yield "rows: a missing value", unit, [*OTHERS, (0, None, 9)], OTHERS, several, {}


def _rows_replaced() -> Iterator[tuple[Any, ...]]:
    unit = ROWS["replace"]
    low, high = [*OTHERS, (0, -(10**6), 9)], [*OTHERS, (0, 10**6, 9)]
    elsewhere = [*OTHERS, (1, 10**6, 9)]
    yield "rows replaced: sum", unit, high, elsewhere, cell_total, {}
    yield "rows replaced: sum in a group", unit, high, low, total, {}
    yield "rows replaced: agg", unit, high, low, several, {}
    yield "rows replaced: count of values", unit, [*OTHERS, (0, 5, 9)], [*OTHERS, (0, None, 9)], present, {}
    yield "rows replaced: histogram", unit, [*OTHERS, (0, 0, 9)], [*OTHERS, (1, 0, 9)], histogram, {}


def _users() -> Iterator[tuple[Any, ...]]:
    full = [(cell, 10**6, 9) for cell in (0, 0, 1, 1)]  # the most that counts in full: two rows in each of two groups
    crammed = [(0, 10**6, 9)] * 9
    for words, rows in (("full", full), ("heavy", HEAVY), ("crammed", crammed)):
        unit = USERS["add-remove"]
        yield f"{words} user: count", unit, [*SPREAD, *rows], SPREAD, cell_counts, {}
        yield f"{words} user: agg", unit, [*SPREAD, *rows], SPREAD, cell_several, {}
    low = [(cell, -(10**6), 9) for cell, _, _ in HEAVY]
    elsewhere = [(2, 10**6, 9)] * 4
    yield "user replaced: agg", USERS["replace"], [*SPREAD, *HEAVY], [*SPREAD, *low], cell_several, {}
    yield "user replaced: count", USERS["replace"], [*SPREAD, *full], [*SPREAD, *elsewhere], cell_counts, {}


def _read_off() -> Iterator[tuple[Any, ...]]:
    unit, replaced = ROWS["add-remove"], ROWS["replace"]
    low, high = [*CROWD, (0, -(10**6), 99)], [*CROWD, (0, 10**6, 99)]
    yield "rows: variance", unit, high, CROWD, spread, {}
    yield "rows: quantile", unit, high, CROWD, ranks, {}
    yield "rows: proportion", unit, high, CROWD, share, {}
    yield "rows: share of a value", unit, [*OTHERS, (1, 5, 9)], OTHERS, share_of_value, {}
    yield "rows: mean of all rows", unit, [*CROWD, (0, None, 99)], CROWD, mean_of_all, {}
    yield "rows: mean, count and variance", unit, high, CROWD, on_one_vector, {}
    corner = [*CROWD, (2, 10**6, 99)]  # the largest values of both columns
    yield "rows: covariance", unit, corner, CROWD, together, {}
    yield "rows: correlation", unit, corner, CROWD, alike, {}
    yield "rows replaced: correlation", replaced, corner, [*CROWD, (0, 10**6, 99)], alike, {}
    yield "rows replaced: mean", replaced, high, low, mean, {}
    yield "rows replaced: variance", replaced, high, [*CROWD, (0, 5, 99)], spread, {}
    yield "rows: shares", unit, [*OTHERS, (0, 9, 9)], OTHERS, shares, {}
    yield "rows: bins beside keys", unit, [*OTHERS, (0, 5, 9)], OTHERS, bins_beside_keys, {}
    yield "rows: sums of bins", unit, [*OTHERS, (0, 1, 9)], OTHERS, sums_of_bins, {}
    yield "rows replaced: sums of bins", replaced, [*OTHERS, (0, 1, 9)], [*OTHERS, (0, 9, 9)], sums_of_bins, {}
    yield "rows replaced: quantile", replaced, high, low, ranks, {}
    yield (
        "rows replaced: share of a value",
        replaced,
        [*OTHERS, (0, 5, 9)],
        [*OTHERS, (1, 5, 9)],
        share_of_value,
        {},
    )


def _whole_units() -> Iterator[tuple[Any, ...]]:
    instead = [(cell, 4, 9) for cell, _, _ in HEAVY]
    yield "heavy user: n_distinct", USERS["add-remove"], [*SPREAD, *VARIED], SPREAD, different, {}
    for name, ask in (
        ("n_units", units),
        ("variance", cell_spread),
        ("quantile", cell_ranks),
        ("sums of bins", sums_of_bins),
        ("covariance", together),
    ):
        yield f"heavy user: {name}", USERS["add-remove"], [*SPREAD, *HEAVY], SPREAD, ask, {}
    binned = [(0, value, 9) for value in (1, 1, 1, 1, 5, 5, 5, 5, 9, 9)]
    yield "heavy user: bins beside keys", USERS["add-remove"], [*SPREAD, *binned], SPREAD, bins_beside_keys, {}
    yield "user replaced: n_units", USERS["replace"], [*SPREAD, *HEAVY], [*SPREAD, (2, 1, 9)], units, {}
    yield "user replaced: n_distinct", USERS["replace"], [*SPREAD, *VARIED], [*SPREAD, (2, 1, 9)], different, {}
    yield "user replaced: variance", USERS["replace"], [*SPREAD, *HEAVY], [*SPREAD, *instead], cell_spread, {}


def _without_groups() -> Iterator[tuple[Any, ...]]:
    unit, one = ROWS["add-remove"], {"groups": 1}
    yield "one count a call", unit, [*OTHERS, (0, 5, 9)], OTHERS, lambda dp, _, options: dp.count(**options), one
    yield "one sum a call", unit, [*OTHERS, (0, 10**6, 9)], OTHERS, lone_sum, one
    yield "one mode a call", unit, [*SPREAD, (1, 0, 9)], SPREAD, choice, one
    yield "one mode a call, replaced", ROWS["replace"], [*SPREAD, (1, 0, 9)], [*SPREAD, (0, 0, 9)], choice, one
    crammed = [(cell, value, 9) for cell in range(CELLS) for value in (LOW, LOW, LOW)]
    few = [(0, 0, 1), (0, 10, 2)]
    yield "one median a call", unit, [*few, (0, 10, 9)], few, chosen_median, one
    yield "one median a call, replaced", ROWS["replace"], [*few, (0, 0, 9)], [*few, (0, 10, 9)], chosen_median, one
    yield "one median a call, heavy user", USERS["add-remove"], [*few, *crammed], few, chosen_median, one
    yield "one top-k a call", unit, [*SPREAD, (1, 0, 9)], SPREAD, top, one
    yield "one top-k a call, heavy user", USERS["add-remove"], [*SPREAD, *[(2, 0, 9)] * 9], SPREAD, top, one
    yield "one top-k a call, replaced", ROWS["replace"], [*SPREAD, (1, 0, 9)], [*SPREAD, (0, 0, 9)], top, one


def _options() -> Iterator[tuple[Any, ...]]:
    unit, replaced = ROWS["add-remove"], ROWS["replace"]
    high, low, corner = (0, 10**6, 9), (0, -(10**6), 9), (2, 10**6, 9)
    yield "rows: ratio", unit, [*CROWD, corner], CROWD, quotient, {}
    yield "rows replaced: ratio", replaced, [*CROWD, corner], [*CROWD, low], quotient, {}
    yield "rows: where", unit, [*OTHERS, corner], OTHERS, some_rows, {}
    yield "rows replaced: where", replaced, [*OTHERS, corner], [*OTHERS, high], some_rows, {}
    yield "rows: weights", unit, [*OTHERS, corner], OTHERS, weighted, {}
    yield "rows replaced: weights", replaced, [*OTHERS, corner], [*OTHERS, high], weighted, {}
    yield "rows: weighted mean", unit, [*CROWD, corner], CROWD, weighted_mean, {}
    yield "rows: bounds by group", unit, [*OTHERS, high], OTHERS, bounds_by_group, {}
    yield "rows replaced: bounds by group", replaced, [*OTHERS, high], [*OTHERS, low], bounds_by_group, {}
    yield "rows: population", unit, [*CROWD, high], CROWD, of_population, {}


def _options_of_units() -> Iterator[tuple[Any, ...]]:
    crammed = [(2, 10**6, 9)] * 9
    for name, ask, rows in (
        ("ratio", quotient, crammed),
        ("where", some_rows, crammed),
        ("weights", weighted, crammed),
        ("bounds by group", bounds_by_group, crammed),
        ("sum of units", sum_of_units, HEAVY),
    ):
        instead = [(cell, -(10**6), 9) for cell, _, _ in rows]
        yield f"heavy user: {name}", USERS["add-remove"], [*SPREAD, *rows], SPREAD, ask, {}
        yield f"user replaced: {name}", USERS["replace"], [*SPREAD, *rows], [*SPREAD, *instead], ask, {}


def _at_once() -> Iterator[tuple[Any, ...]]:
    unit, users, one = ROWS["add-remove"], USERS["add-remove"], {"groups": 1}
    yield "released together", unit, [*OTHERS, (0, 10**6, 9)], OTHERS, at_once, {}
    yield "released together, heavy user", users, [*SPREAD, *HEAVY], SPREAD, at_once, {}
    yield "one rollup a call", unit, [*SPREAD, (1, 0, 9)], SPREAD, subtotals, one
    yield "one rollup a call, heavy user", users, [*SPREAD, *HEAVY], SPREAD, subtotals, one
    yield "one cube a call, heavy user", users, [*SPREAD, *HEAVY], SPREAD, all_subtotals, one
    yield "one grid of contributions a call", users, [*SPREAD, *HEAVY], SPREAD, contributed, one
    few = [(0, 10**6, person) for person in range(1, 14)]  # as many as stand out from the noise half of the time
    yield "one suggestion of bounds a call", unit, [*few, (0, 10**6, 99)], few, suggestion, one


def count(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).count(**options)


def present(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).count("value", **options)


def total(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).sum("value", bounds=(LOW, HIGH), **options)


def lone_sum(dp: Any, _: int, options: dict[str, Any]) -> Any:
    return dp.sum("value", bounds=(LOW, HIGH), **options)


def mean(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).mean("value", bounds=(LOW, HIGH), **options)


def several(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).agg(_statistics(), **options)


def histogram(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.histogram("place", bins=range(2 * groups + 1), **options)


def grouped_histogram(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).histogram("value", bins=[0, 3, 8, 10], **options)


def bins_beside_keys(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", dpf.bins("value", [0, 3, 8, 10]), keys={"group": range(groups)}).count(**options)


def cell_counts(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", "cell", keys={"group": range(groups), "cell": range(CELLS)}).count(**options)


def cell_total(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(groups), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).sum("value", bounds=(LOW, HIGH), **options)


def cell_several(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(groups), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).agg(_statistics(), **options)


def spread(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).variance("value", bounds=(LOW, HIGH), **options)


def mean_of_all(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    asked = dp.group_by("group", keys=range(groups))
    return asked.mean("value", bounds=(LOW, HIGH), missing="midpoint", **options)


def on_one_vector(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    statistics = {"n": dpf.count("value"), "v": dpf.variance("value", bounds=(LOW, HIGH))}
    statistics["m"] = dpf.mean("value", bounds=(LOW, HIGH))
    return dp.group_by("group", keys=range(groups)).agg(statistics, **options)


def together(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    asked = dp.group_by("group", keys=range(groups))
    return asked.agg(dpf.covariance(["value", "cell"], bounds=BOTH), **options)


def alike(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    asked = dp.group_by("group", keys=range(groups))
    return asked.agg(dpf.correlation(["value", "cell"], bounds=BOTH), **options)


def ranks(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).quantile("value", q=[0.5, 0.9], bounds=(LOW, HIGH), **options)


def share(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).proportion("value", **options)


def share_of_value(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).proportion("cell", value=0, **options)


def shares(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).histogram("value", bins=[0, 3, 8, 10], normalize=True, **options)


def sums_of_bins(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    bins = range(LOW, HIGH + 1)
    return dp.group_by("group", keys=range(groups)).histogram(
        "value", bins=bins, ranges=True, outside="clip", **options
    )


def units(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", "cell", keys={"group": range(groups), "cell": range(CELLS)}).n_units(**options)


def different(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(groups), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).n_distinct("value", max_values=2, **options)


def cell_spread(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(groups), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).variance("value", bounds=(LOW, HIGH), **options)


def cell_ranks(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(groups), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).quantile("value", q=0.5, bounds=(LOW, HIGH), **options)


def choice(dp: Any, _: int, options: dict[str, Any]) -> Any:
    return dp.mode("cell", categories=range(CELLS), epsilon=options["epsilon"], ledger=options["ledger"])


def chosen_median(dp: Any, _: int, options: dict[str, Any]) -> Any:
    price = {"epsilon": options["epsilon"], "ledger": options["ledger"]}
    return dp.median("value", candidates=[LOW, HIGH], mechanism="exponential", **price)


def top(dp: Any, _: int, options: dict[str, Any]) -> Any:
    return dp.top_k("cell", k=2, categories=range(CELLS), epsilon=options["epsilon"], ledger=options["ledger"])


def quotient(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).agg(dpf.ratio("value", "cell", bounds=BOTH), **options)


def some_rows(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    statistics = {
        "n": dpf.count(where={"cell": [1, 2]}),
        "total": dpf.sum("value", bounds=(LOW, HIGH), where={"value": (5, None)}),
    }
    return dp.group_by("group", keys=range(groups)).agg(statistics, **options)


def weighted(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    of = {"weight": "cell", "weight_bounds": (0, 2)}
    return dp.group_by("group", keys=range(groups)).sum("value", bounds=(LOW, HIGH), **of, **options)


def weighted_mean(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    of = {"weight": "cell", "weight_bounds": (0.5, 2)}
    return dp.group_by("group", keys=range(groups)).mean("value", bounds=(LOW, HIGH), **of, **options)


def bounds_by_group(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    bounds = {group: (LOW - group % 2, HIGH - group % 2) for group in range(groups)}
    return dp.group_by("group", keys=range(groups)).sum("value", bounds=bounds, **options)


def of_population(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    return dp.group_by("group", keys=range(groups)).mean("value", bounds=(LOW, HIGH), population=True, **options)


def sum_of_units(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(groups), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).sum("value", unit_bounds=(LOW, HIGH), **options)


def at_once(dp: Any, groups: int, options: dict[str, Any]) -> Any:
    price = {name: options[name] for name in ("epsilon", "delta", "ledger") if name in options}
    asked = dp.preview.group_by("group", keys=range(groups))
    plans = {
        "counts": asked.count(denoise=None, mechanism=options["mechanism"], **price),
        "sums": asked.sum("value", bounds=(LOW, HIGH), denoise=None, mechanism=options["mechanism"], **price),
    }
    return dpf.release_together(plans, **price)


def subtotals(dp: Any, _: int, options: dict[str, Any]) -> Any:
    return dp.group_by("cell", keys=range(CELLS)).agg(_sums(), rollup=True, **options)


def all_subtotals(dp: Any, _: int, options: dict[str, Any]) -> Any:
    keys = {"group": range(2), "cell": range(CELLS)}
    return dp.group_by("group", "cell", keys=keys).agg(_sums(), cube=True, **options)


def contributed(dp: Any, _: int, options: dict[str, Any]) -> Any:
    return dp.contributions("cell", keys=range(CELLS), **options)


def suggestion(dp: Any, _: int, options: dict[str, Any]) -> Any:
    """Return the recommended row only, because noise decides which candidates there are, and how many."""
    price = {name: options[name] for name in ("epsilon", "delta", "ledger", "mechanism") if name in options}
    return np.array(dp.suggest_bounds("value", **price).to_numpy()[0], dtype=np.float64)


CHOICES = (choice, chosen_median, top)
ONE_TOTAL = (count, present, total, histogram, cell_total)
SEVERAL_NUMBERS = (ranks, share, share_of_value, sums_of_bins)  # per group: bounded in l_1 and l_2 only
MANY_TOTALS = (together, alike)
AT_ONCE = (at_once, subtotals, all_subtotals, contributed, suggestion)
OPTIONS = (quotient, some_rows, weighted, weighted_mean, bounds_by_group, of_population, sum_of_units, *AT_ONCE)


def _statistics() -> dict[str, Any]:
    return {**_sums(), "centre": dpf.mean("value", bounds=(LOW, HIGH))}


def _sums() -> dict[str, Any]:
    return {"n": dpf.count(), "total": dpf.sum("value", bounds=(LOW, HIGH))}
