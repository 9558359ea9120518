"""The calls of the record: verbs by units, accountings, options and frames; previews, calibrations and refusals.

The name of a call describes the query, and stays when the API changes: then the call is rewritten here, and the entry
of the record shows what else changed.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Any

import polars as pl

import dpframe as dpf
from assurance.record_refusals import WRONG

HAS_PANDAS = importlib.util.find_spec("pandas") is not None
HAS_ACCOUNTING = importlib.util.find_spec("dp_accounting") is not None
ROWS = 60


@dataclass(frozen=True)
class Call:
    """A call: its query, frame and ledger."""

    name: str
    room: str  # the file of the record that contains it
    ask: Callable[[Any, Any], Any]  # (.dp of the frame, the ledger) -> a result
    ledger: Callable[[], dpf.Ledger] | None = None
    frame: str = "polars"
    like: Call | None = None  # the same call on another frame; only differences from it are recorded
    needs_accounting: bool = False

    @property
    def can_be_made(self) -> bool:
        """True if the required packages are installed."""
        return (self.frame != "pandas" or HAS_PANDAS) and (not self.needs_accounting or HAS_ACCOUNTING)


@cache
def people() -> pl.DataFrame:
    """Return sixty rows with every kind of column, with missing and odd values, computed without randomness."""
    start, numbers = date(2026, 1, 1), range(ROWS)
    odd = {7: math.nan, 11: math.inf, 13: -math.inf, 17: 1e308, 19: -0.0, 23: 5e-324}
    return pl.DataFrame(
        {
            "age": [None if i % 13 == 5 else (i * 37) % 101 for i in numbers],
            "cost": [odd.get(i, None if i % 17 == 4 else (i * 7919) % 1009 / 8) for i in numbers],
            "gain": [(i * 31) % 41 - 20.5 for i in numbers],
            "small": pl.Series([(i * 11) % 120 for i in numbers], dtype=pl.Int8),
            "ward": [("A", "B", "C", "elsewhere", None)[(i * 3 + i // 7) % 5] for i in numbers],
            "sex": [("f", "m")[i % 2] for i in numbers],
            "ok": [None if i % 19 == 3 else i % 3 == 0 for i in numbers],
            "day": [start + timedelta(days=(i * 5) % 40) for i in numbers],
            "at": [datetime(2026, 1, 1, 12) + timedelta(hours=(i * 29) % 200) for i in numbers],
            "zoned": [datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(hours=(i * 29) % 200) for i in numbers],
            "stay": [timedelta(minutes=(i * 97) % 3000) for i in numbers],
            "price": pl.Series([Decimal((i * 53) % 700) / 100 for i in numbers], dtype=pl.Decimal(20, 2)),
            "patient": [None if i % 23 == 9 else 1 if i % 4 == 0 else i // 3 for i in numbers],
            "name": [f"p{(i * i) % 17}" for i in numbers],
        }
    )


def frame_of(kind: str) -> Any:
    """Return the same rows in another library or engine."""
    if kind == "polars":
        return people()
    if kind == "lazy":
        return people().lazy()
    import pandas

    held = {"age": "Int64", "ok": "boolean", "patient": "Int64", "small": "int8", "at": "datetime64[ns]"}
    columns = {name: people()[name].to_list() for name in people().columns}
    return pandas.DataFrame({name: pandas.Series(values, dtype=held.get(name)) for name, values in columns.items()})


UNITS: dict[str, Any] = {
    "rows": None,
    "rows replaced": dpf.PrivacyUnit(neighbors="replace"),
    "patients": dpf.PrivacyUnit("patient", max_rows=2, max_groups=3),
    "patients replaced": dpf.PrivacyUnit("patient", max_rows=3, max_groups=1, neighbors="replace", nulls="one-unit"),
    "names": dpf.PrivacyUnit("name", max_rows=1, max_groups=2),
}
PRICES: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 1},
    "gaussian": {"epsilon": 0.5, "delta": 1e-6},
    "gdp": {"epsilon": 1},
    "rdp": {"epsilon": 1},
}


def ledger(unit: str, price: str, checks: Any = False) -> dpf.Ledger:
    """Return a ledger with budget for several calls; without checks, except in calls about them."""
    accounting = price if price in ("gdp", "rdp") else "basic"
    delta = {"laplace": 0, "gaussian": 1e-3}.get(price, 1e-6)
    return dpf.Ledger(epsilon=10, delta=delta, unit=UNITS[unit], accounting=accounting, checks=checks)


WARDS = ["B", "A", "C", None]
DAYS = [date(2026, 1, 1), date(2026, 1, 11), date(2026, 2, 9)]
NOONS = [datetime(2026, 1, 1, 12), datetime(2026, 1, 3), datetime(2026, 1, 5)]
PAIRS = pl.DataFrame({"ward": ["A", "A", "C"], "sex": ["f", "m", "m"]})
TWO = {"ward": ["A", "C"], "sex": ["m", "f"]}
Ask = Callable[..., Any]
STATISTICS = {"n": dpf.count(), "ages": dpf.count("age"), "cost": dpf.sum("cost", bounds=(0, 100))}
MEANS = {"age": dpf.mean("age", bounds=(0, 100)), "gain": dpf.sum("gain", bounds=(-10, 20)), "n": dpf.count()}

ASKS: dict[str, Ask] = {
    "count": lambda dp, **price: dp.count(**price),
    "count of values": lambda dp, **price: dp.count("cost", **price),
    "sum": lambda dp, **price: dp.sum("cost", bounds=(0, 100), **price),
    "sum of both signs": lambda dp, **price: dp.sum("gain", bounds=(-10, 20.5), **price),
    "sum of small integers": lambda dp, **price: dp.sum("small", bounds=(5, 100), **price),
    "sum of decimals": lambda dp, **price: dp.sum("price", bounds=(0, 5), **price),
    "sum of flags": lambda dp, **price: dp.sum("ok", bounds=(0, 1), **price),
    "mean": lambda dp, **price: dp.mean("age", bounds=(0, 100), **price),
    "mean of odd values": lambda dp, **price: dp.mean("cost", bounds=(-50, 50), **price),
    "agg": lambda dp, **price: dp.agg(MEANS, **price),
    "histogram": lambda dp, **price: dp.histogram("age", bins=[0, 20, 40, 60, 80, 100], **price),
    "histogram clipped": lambda dp, **price: dp.histogram("cost", bins=[0, 10.5, 50, 100], outside="clip", **price),
    "histogram of equal bins": lambda dp, **price: dp.histogram("cost", bins=12, range=(0, 120), **price),
    "histogram of days": lambda dp, **price: dp.histogram("day", bins=DAYS, **price),
    "histogram of times": lambda dp, **price: dp.histogram("at", bins=NOONS, **price),
    "histogram of spans": lambda dp, **price: dp.histogram("stay", bins=4, range=(timedelta(0), timedelta(2)), **price),
    "categories": lambda dp, **price: dp.histogram("ward", categories=WARDS, **price),
    "grid": lambda dp, **price: dp.histogram(["age", "gain"], bins=[12, 7], range=[(0, 100), (-21, 21)], **price),
    "keys": lambda dp, **price: dp.group_by("ward", keys=WARDS).count(**price),
    "keys of days": lambda dp, **price: dp.group_by("day", keys=DAYS).count("age", **price),
    "keys of flags": lambda dp, **price: dp.group_by("ok", keys=[True, False, None]).count(**price),
    "keys of integers": lambda dp, **price: dp.group_by("age", keys=range(0, 40, 3)).count(**price),
    "keys of decimals": lambda dp, **price: dp.group_by("price", keys=[Decimal("0.53"), Decimal("1.06")]).count(
        **price
    ),
    "keys of two": lambda dp, **price: dp.group_by("ward", "sex", keys=TWO).agg(STATISTICS, **price),
    "keys of a frame": lambda dp, **price: dp.group_by("ward", "sex", keys=PAIRS).count(**price),
    "means in groups": lambda dp, **price: dp.group_by("ward", keys=WARDS).agg(MEANS, **price),
    "histogram in groups": lambda dp, **price: dp.group_by("ward", keys=["A", "B"]).histogram(
        "age", bins=[0, 50, 100], **price
    ),
    "subtotals": lambda dp, **price: dp.group_by("ward", "sex", keys=TWO).agg(STATISTICS, rollup=True, **price),
    "choice": lambda dp, **price: dp.mode("ward", categories=["A", "B", "C"], **price),
}
OVER = (
    ("rows", "laplace"),
    ("patients", "gdp"),
    ("rows replaced", "gaussian"),
    ("patients replaced", "rdp"),
    ("names", "gaussian"),
)
PURE = ("choice",)  # has no Gaussian form, so a ledger's delta does not apply to it


def asked(ask: Ask, options: dict[str, Any], dp: Any, ledger: dpf.Ledger) -> Any:
    return ask(dp, ledger=ledger, **options)


def releases() -> Iterator[Call]:
    """Yield every query at row and unit level on all frames, and with other units and accountings on one."""
    for unit, price in OVER:
        for name, ask in ASKS.items():
            options = {"denoise": None, **PRICES["laplace" if name in PURE else price]}
            if name in PURE:
                options.pop("denoise")
            call = Call(f"{name}; {unit}; {price}", price, partial(asked, ask, options), partial(ledger, unit, price))
            yield call
            for frame in ("pandas", "lazy") if unit in ("rows", "patients") else ():
                yield replace(call, name=f"{call.name}; {frame}", frame=frame, like=call)


MECHANISMS: dict[str, Any] = {
    "laplace": "laplace",
    "gaussian": "gaussian",
    "auto": "auto",
    "shape 3": dpf.generalized_gaussian(p=3),
    "shape 1": dpf.generalized_gaussian(p=1),
    "truncated": dpf.truncated_generalized_gaussian(p=1, output=(0, 100)),
    "classical": dpf.classical_gaussian,
    "probabilistic": dpf.probabilistic_gaussian(),
}
NOISY_ASKS = ("count", "sum", "histogram", "means in groups")
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "label": {"label": "a name"},
    "share": {"share": 0.25, "epsilon": None},
    "an epsilon as text": {"epsilon": Decimal("0.1")},
    "denoised, noisy values left out": {"keep_noisy": False, "denoise": "auto"},
    "non-negative": {"denoise": "nonnegative"},
    "rounded": {"denoise": ["nonnegative", "rounded"]},
    "a function": {"denoise": lambda values, noise: values},
    "order": {"order": True},
    "order of one column": {"order": "ward"},
    "no order": {"order": False},
    "graph": {"graph": [("A", "B"), ("B", "C")]},
    "within": {"within": 60, "epsilon": None},
    "within, another confidence": {"within": 60, "confidence": 0.9, "epsilon": None},
    "within, with a size": {"within": 60, "size": 500, "epsilon": None},
    "weights": {"weights": {"n": 4}},
    "within of each": {"within": {"n": 40, "ages": 50, "cost": 5000}, "epsilon": None},
    "weights of two": {"weights": {"n": 4, "age": 2}},
}
OPTION_ASKS = ("count", "mean", "histogram", "keys", "keys of two", "means in groups")


def options() -> Iterator[Call]:
    """Yield every option with every query that takes or refuses it, and every mechanism."""
    for name in OPTION_ASKS:
        for option, more in OPTIONS.items():
            said = {key: value for key, value in {"epsilon": 1, **more}.items() if value is not None}
            ask = partial(asked, ASKS[name], said)
            yield Call(f"{name}; {option}", "options", ask, partial(ledger, "rows", "laplace"))
    for name in NOISY_ASKS:
        for noise, mechanism in MECHANISMS.items():
            for unit in ("rows", "patients"):
                said = {"epsilon": 0.5, "delta": 1e-6, "mechanism": mechanism, "denoise": None}
                if noise in ("laplace", "truncated"):
                    said.pop("delta")
                named, ask = f"{name}; {unit}; noise {noise}", partial(asked, ASKS[name], said)
                composed = name == "means in groups" and noise.startswith("shape")  # tighter with dp-accounting
                pays = partial(ledger, unit, "gaussian")
                yield Call(named, "mechanisms", ask, pays, needs_accounting=composed)


def previews() -> Iterator[Call]:
    """Yield plans of every query, with tables of epsilons, and of several queries together."""
    for name, ask in ASKS.items():
        for unit, price in (("rows", "laplace"), ("patients", "gdp")):
            said = PRICES["laplace" if name in PURE else price]
            yield Call(
                f"preview of {name}; {unit}; {price}",
                "previews",
                partial(_previewed, ask, said),
                partial(ledger, unit, price),
            )
    for prices in ({}, {"epsilon": [0.1, 1]}, {"within": [5, 50]}, {"epsilon": 1, "mechanism": "auto", "delta": 1e-6}):
        for name in ("count", "means in groups"):
            said = " ".join(f"{key}={value}" for key, value in prices.items()) or "no price"
            ask = partial(_previewed, ASKS[name], {**prices, "checks": False})
            yield Call(f"preview of {name}; {said}", "previews", ask)
    yield from _together()


def _previewed(ask: Ask, options: dict[str, Any], dp: Any, ledger: dpf.Ledger | None) -> Any:
    return ask(dp.preview, **({} if ledger is None else {"ledger": ledger}), **options)


def _together() -> Iterator[Call]:
    def plans(dp: Any) -> dict[str, Any]:
        return {name: ASKS[name](dp.preview) for name in ("count", "histogram", "means in groups")}

    def mixed(dp: Any) -> dict[str, Any]:
        return {
            "a": ASKS["count"](dp.preview, mechanism="laplace"),
            "b": ASKS["sum"](dp.preview, mechanism="gaussian", delta=1e-6),
        }

    for name, made in (("together", plans), ("together, mixed", mixed)):
        for unit, price in (("rows", "gaussian"), ("patients", "gdp"), ("rows replaced", "rdp")):
            said = {"epsilon": 1, "delta": 1e-6} if price == "gaussian" else {"epsilon": 1}
            needs = made is mixed
            for kind, verb in (("plan", dpf.plan_together), ("release", dpf.release_together)):
                ask = partial(_jointly, verb, made, said)
                yield Call(
                    f"{kind} {name}; {unit}; {price}",
                    "together",
                    ask,
                    partial(ledger, unit, price),
                    needs_accounting=needs,
                )
    weighted = partial(_jointly, dpf.release_together, plans, {"share": 0.5, "weights": {"histogram": 4}})
    yield Call("release together; weights and share", "together", weighted, partial(ledger, "rows", "gdp"))


def _jointly(verb: Any, made: Any, options: dict[str, Any], dp: Any, ledger: dpf.Ledger) -> Any:
    with ledger:
        return verb(made(dp), ledger=ledger, **options)


def formulas() -> Iterator[Call]:
    """Yield calibrations and compositions as functions, and comparisons of accountings."""
    noises = [
        dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.5, delta=1e-6),
        dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1),
    ]
    calls: dict[str, Callable[[], Any]] = {
        "analytic sigma": lambda: dpf.analytic_gaussian_sigma(0.5, 1e-6, 3.0),
        "analytic sigma, a large epsilon": lambda: dpf.analytic_gaussian_sigma(20, 1e-9),
        "classical sigma": lambda: dpf.classical_gaussian_sigma(0.5, 1e-6),
        "probabilistic sigma": lambda: dpf.probabilistic_gaussian_sigma(0.5, 1e-6),
        "scale of shape 3": lambda: dpf.generalized_gaussian_scale(3, 0.5, 1e-6),
        "scale of truncated noise": lambda: dpf.truncated_generalized_gaussian_scale(1, 1.0, output=(0, 10)),
        "advanced composition": lambda: dpf.advanced_composition(0.1, 0, count=30, slack=1e-6),
        "optimal composition": lambda: dpf.optimal_composition(0.1, 0, count=30, total_delta=1e-6),
        "laplace": lambda: repr(noises[1]),
        "gaussian": lambda: repr(noises[0]),
        "accountings": lambda: dpf.compare_accounting(noises * 3, delta=1e-6).to_frame().to_dicts(),
        "accountings of equal releases": lambda: (
            dpf.compare_accounting(noises[:1] * 9, delta=1e-6).to_frame().to_dicts()
        ),
    }
    for name, call in calls.items():
        yield Call(name, "formulas", partial(_alone, call), needs_accounting=name.startswith("accountings"))


def _alone(call: Callable[[], Any], dp: Any, ledger: Any) -> Any:
    return call()


def ledgers() -> Iterator[Call]:
    """Yield sequences of calls with one ledger."""

    def spent_up(dp: Any, ledger: dpf.Ledger) -> Any:
        for _ in range(3):
            dp.count(epsilon=4, ledger=ledger)

    def replayed(dp: Any, _: dpf.Ledger) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            kept = dpf.Ledger(epsilon=10, path=f"{folder}/people.ledger")
            say = {"epsilon": 1, "label": "ages", "snapshot": "w1", "ledger": kept, "denoise": None}
            found = {"first": dp.count("age", **say), "again": dp.count("age", **say)}
            return {**found, "spent": str(kept.spent), "entries": kept.to_frame().height}

    def raised(dp: Any, ledger: dpf.Ledger) -> Any:
        ledger.raise_limit(epsilon=12, reason="a second study")
        return dp.count(epsilon=11, ledger=ledger)

    def stated(dp: Any, ledger: dpf.Ledger) -> Any:
        result = dp.histogram("age", bins=[0, 50, 100], epsilon=1, ledger=ledger, denoise=None)
        return {"released": str(result.dp), "errors": result.dp.errors().to_dicts()}

    yield Call("replayed", "ledgers", replayed)
    for name, ask in {"spent up": spent_up, "raised": raised}.items():
        for price in ("laplace", "gdp", "rdp"):
            yield Call(f"{name}; {price}", "ledgers", ask, partial(ledger, "rows", price))
    yield Call("stated", "ledgers", stated, partial(ledger, "rows", "laplace"))


def refusals() -> Iterator[Call]:
    """Yield calls that are refused, with their messages."""
    for name, ask in WRONG.items():
        yield Call(name, "refusals", ask, partial(ledger, "rows", "laplace"))


def contributions() -> Iterator[Call]:
    """Yield calls that report contributions of units, and calls with contribution bounds."""
    asks: dict[str, Ask] = {
        "contributions": lambda dp, **price: dp.contributions(**price),
        "contributions to distinct wards": lambda dp, **price: dp.contributions("ward", **price),
        "contributions to declared wards": lambda dp, **price: dp.contributions("ward", ["A", None], **price),
        "bounds in the call": lambda dp, **price: dp.group_by("ward", keys=WARDS).count(max_rows=4, **price),
        "both bounds in the call": lambda dp, **price: dp.group_by("ward", keys=WARDS).agg(
            STATISTICS, max_rows=1, max_groups=99, **price
        ),
    }
    for name, ask in asks.items():
        for unit in ("patients", "patients replaced"):
            for price in ("laplace", "gdp"):
                said = {**PRICES[price], "denoise": None}
                yield Call(
                    f"{name}; {unit}; {price}", "contributions", partial(asked, ask, said), partial(ledger, unit, price)
                )


def checks() -> Iterator[Call]:
    """Yield checks of what the bounds leave out, by default and where a call requests them."""
    for name, ask in ASKS.items():
        for unit, price in (("rows", "laplace"), ("patients", "gdp")):
            said = PRICES["laplace" if name in PURE else price]
            pays = partial(ledger, unit, price, None)
            yield Call(f"{name}; {unit}; {price}; checks", "checks", partial(asked, ask, said), pays)
    wanted: dict[str, dict[str, Any]] = {
        "no price": {},
        "asked": {"checks": True, "epsilon": 1},
        "a share": {"checks": 0.2, "epsilon": 1},
        "within": {"within": 1},
        "few": {"epsilon": 1, "size": 20},
        "few, asked": {"epsilon": 1, "size": 20, "checks": True},
        "few, within": {"within": 1, "size": 20},
        "Gaussian": {"epsilon": 1, "delta": 1e-6},
        "a function": {"epsilon": 1, "delta": 0.01, "mechanism": dpf.generalized_gaussian(p=3)},
    }
    for name in ("count", "sum", "mean", "histogram", "means in groups"):
        for words, said in wanted.items():
            needs = "mechanism" in said
            ask = partial(_previewed, ASKS[name], said)
            yield Call(f"preview of {name}; checks, {words}", "checks", ask, needs_accounting=needs)


def suggested_bounds() -> Iterator[Call]:
    """Yield suggested bounds of columns with unknown bounds."""
    asks: dict[str, Ask] = {
        "bounds of a mean": lambda dp, **price: dp.suggest_bounds("age", **price),
        "bounds of two sums": lambda dp, **price: dp.suggest_bounds("age", "cost", statistic="sum", **price),
    }
    for name, ask in asks.items():
        for unit in ("rows", "patients"):
            for price in ("laplace", "gdp"):
                said = PRICES[price]
                yield Call(
                    f"{name}; {unit}; {price}",
                    "suggested_bounds",
                    partial(asked, ask, said),
                    partial(ledger, unit, price),
                )


CALLS = (
    *releases(),
    *contributions(),
    *suggested_bounds(),
    *options(),
    *previews(),
    *formulas(),
    *ledgers(),
    *refusals(),
    *checks(),
)
