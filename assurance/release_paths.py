"""The registry of release paths: every way from a table to charged numbers, and tables for it.

A path runs one query at a given cost on a table with the columns of `table`. Its tables differ in one row, or in rows
of one person, who has the largest possible values, so that the noise is needed in full. `PATHS` defines the table of
`assurance.charges`. `tests/accounting/test_charges.py` fails if `charging` finds code that charges and has no path, or
if no path uses some verb, noise, sampler or method of the local model.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path as File
from typing import Any

import polars as pl

import dpframe as dpf
from dpframe.accessor.released_frame import VERBS

PACKAGE = File(dpf.__file__).parent
CHARGES = {"take", "begun", "charge"}  # functions that charge a ledger
CANNOT = {  # folders without a charge of a caller's ledger
    "engines",
    "noise",
    "mechanisms",
    "queries",
    "denoise",
    "accounting",
    "planning",
    "ledger",
    "frames",
    "testing",
}

NAMES = list("abcdefghij")
WEEKS = ["W1", "W2", "W3"]
PEOPLE = 300
Row = dict[str, Any]
HIGH: Row = {"d": "new", "g": "A", "x": 10.0, "z": 10.0, "c": "a", "w": "W1"}
LOW: Row = {"d": "old", "g": "B", "x": 0.0, "z": 0.0, "c": "b", "w": "W1"}
NONE: Row = {"d": "old", "g": "A", "x": None, "z": None, "c": "a", "w": "W1"}
MIXED: Row = {"d": "new", "g": "A", "x": 0.0, "z": 10.0, "c": "b", "w": "W1"}
ALONE: Row = {**HIGH, "g": "odd", "c": "odd"}  # keys that no other row has
RARE: Row = {**HIGH, "g": "rare"}  # a key that two other rows have
NOISES = ("pure", "gaussian")
DELTA = 1e-5  # delta of a Gaussian call under basic accounting
KEYS_DELTA = 1e-6

Ask = Callable[..., Any]  # (.dp of a frame or of its preview, ledger=, epsilon=, ...) -> a result, or a plan
tags = count()


@dataclass(frozen=True, eq=False)
class Path:
    """One way to a release: its query, its tables, and known facts about its charge.

    Parameters
    ----------
    name : str
        Name in the table; for a verb, it begins with the verb.
    ask : callable
        Function of a frame's ``.dp`` and a price that makes the release.
    units : tuple of {"rows", "people"}
        Privacy units that it supports.
    noises : tuple of {"pure", "gaussian"}
        Kinds of noise that it supports.
    noised : bool
        Whether it accepts ``mechanism=``.
    odd : sequence of pairs
        The row that differs, on either side; None means no row, under add-remove only.
    plan : callable, optional
        Function that returns its noises without a release; by default, a preview of the same query.
    half : float
        Least part of the charge that the exact loss of one entry must be, where its tables attain their bounds.
    """

    name: str
    ask: Ask
    units: tuple[str, ...] = ("rows", "people")
    noises: tuple[str, ...] = NOISES
    noised: bool = True
    odd: Sequence[tuple[Row, Row | None]] = ()
    plan: Callable[..., Any] | None = None
    half: float = 0.5
    keys: bool = False  # whether it finds unknown groups, with a separate delta
    durable: bool = False  # whether the ledger is a file
    locally: bool = False
    heavy: bool = False  # whether a release takes long: left out of mixtures
    needs_accounting: bool = False

    @property
    def verb(self) -> str:
        """The verb of the query, or the first word of its name."""
        return self.name.split(",")[0].split(" ")[0]

    def price(self, noise: str, accounting: str, epsilon: float) -> dict[str, Any]:
        """Return the arguments that give a call this noise under this accounting."""
        price: dict[str, Any] = {"epsilon": epsilon}
        if noise == "gaussian" and accounting == "basic":
            price["delta"] = DELTA
        if noise == "pure" and accounting != "basic" and self.noised:
            price["mechanism"] = "laplace"
        return price

    def pairs(self, neighbors: str) -> list[tuple[list[Row], list[Row]]]:
        """Return the rows that differ, for each pair of tables."""
        chosen = self.odd or ODD[neighbors]
        pairs = [(one, other) for one, other in chosen if (other is None) == (neighbors == "add-remove")]
        return [([one], [] if other is None else [other]) for one, other in pairs]


ODD: dict[str, tuple[tuple[Row, Row | None], ...]] = {
    "add-remove": ((HIGH, None), (LOW, None), (MIXED, None)),
    "replace": ((HIGH, LOW), (HIGH, NONE), (HIGH, MIXED)),
}
LATE: Row = {**HIGH, "w": "none"}  # a row in no period
STREAMED = ((HIGH, None), (LOW, None), (HIGH, LOW), (HIGH, LATE), (HIGH, {**HIGH, "w": "W3"}))
FOUND = ((HIGH, None), (ALONE, None), (RARE, None), (ALONE, HIGH), (RARE, HIGH), (HIGH, LOW))
LOCAL = ((HIGH, LOW),)


@cache
def table(odd: tuple[tuple[tuple[str, Any], ...], ...], times: int) -> pl.DataFrame:
    """Return the rows of all people, and those of the one who differs."""
    rows = [
        {
            "person": i,
            "g": "AB"[i % 2] if i > 1 else "rare",
            "x": float(i % 11),
            "z": float(i % 7),
            "c": NAMES[i % 10],
            "w": WEEKS[i % 3],
            "d": "old",
        }
        for i in range(PEOPLE)
    ]
    rows += [{"person": PEOPLE, **dict(row)} for row in odd for _ in range(times)]
    kinds = {
        "person": pl.Int64,
        "g": pl.String,
        "x": pl.Float64,
        "z": pl.Float64,
        "c": pl.String,
        "w": pl.String,
        "d": pl.String,
    }
    return pl.DataFrame(rows, schema=kinds)  # type: ignore[arg-type]


def frame_of(rows: Sequence[Row], unit: str) -> pl.DataFrame:
    """Return the table; a person has each odd row twice."""
    return table(tuple(tuple(row.items()) for row in rows), 2 if unit == "people" else 1)


def unit_of(unit: str, neighbors: str) -> dpf.PrivacyUnit:
    """Return the privacy unit."""
    people: dict[str, Any] = {"column": "person", "max_rows": 2, "max_groups": 1} if unit == "people" else {}
    return dpf.PrivacyUnit(neighbors=neighbors, **people)


def _numbers(groups: Any, **money: Any) -> Any:
    """Return the counts of units that a threshold is compared with; if each row is a unit, counts of rows."""
    return (groups.count if money["ledger"].unit.column is None else groups.n_units)(**money)


def noises_of(plan: Any) -> list[Any]:
    """Return the noise of everything that a plan measures, including its checks."""
    return [*plan.noises, *([] if plan.checks is None else [plan.checks.mechanism])]


def _together(*names: str, mechanisms: Sequence[str | None] = ()) -> tuple[Ask, Ask]:
    """Return a function that releases several plans at one cost, and one that plans them."""

    def plans(dp: Any, own: Sequence[str | None], **_: Any) -> dict[str, Any]:
        asked = {"count": dp.preview.count}
        asked["sum"] = lambda **more: dp.preview.sum("x", bounds=(0, 10), **more)
        asked["histogram"] = lambda **more: dp.preview.group_by("g", keys=["A", "B"]).count(**more)
        chosen = own or (None,) * len(names)
        more = {"gaussian": {"mechanism": "gaussian", "delta": DELTA}, "laplace": {"mechanism": "laplace"}, None: {}}
        return {name: asked[name](**more[kind]) for name, kind in zip(names, chosen, strict=True)}

    def made(verb: Any, dp: Any, ledger: Any, mechanism: Any = None, **price: Any) -> Any:
        own = mechanisms or ((mechanism,) * len(names) if mechanism else ())
        with ledger:
            return verb(plans(dp, own), ledger=ledger, **price)

    def release(dp: Any, **more: Any) -> Any:
        return made(dpf.release_together, dp, **more)

    def plan(dp: Any, **more: Any) -> list[Any]:
        return [one for each in made(dpf.plan_together, dp, **more).plans.values() for one in noises_of(each)]

    return release, plan


def _stream(statistic: Any) -> tuple[Ask, Ask]:
    def made(ledger: Any, **price: Any) -> dpf.Stream:
        named = f"stream {next(tags)}"
        return dpf.Stream(named, statistic=statistic, time="w", periods=WEEKS, ledger=ledger, **price)

    def release(dp: Any, ledger: Any, **price: Any) -> None:
        stream = made(ledger, **price)
        for number, week in enumerate(WEEKS):
            stream.release(dp._frame.filter(pl.col("w").is_in(WEEKS[: number + 1])), week)

    def plan(dp: Any, ledger: Any, **price: Any) -> list[Any]:
        return [made(ledger, **price).preview().mechanism]

    return release, plan


def _replayed(dp: Any, ledger: Any, **price: Any) -> Any:
    """Run the same query on the same snapshot twice, and another under its name, which is refused."""
    named = {"label": f"answer {next(tags)}", "snapshot": "first", "ledger": ledger, **price}
    for _ in range(2):
        result = dp.group_by("g", keys=["A", "B"]).count(**named)
    with suppress(dpf.LedgerError):
        dp.group_by("g", keys=["B", "A"]).sum("x", bounds=(0, 10), **named)
    return result


def _not_replayed(dp: Any, ledger: Any, **price: Any) -> list[Any]:
    return noises_of(dp.preview.group_by("g", keys=["A", "B"]).count(ledger=ledger, **price))


def _local(method: Callable[[float], Any], column: str) -> tuple[Ask, Ask]:
    def release(dp: Any, ledger: Any, epsilon: float) -> Any:
        return dp.local.randomize(column, method=method(epsilon), ledger=ledger)

    def plan(dp: Any, ledger: Any, epsilon: float) -> list[Any]:
        return [method(epsilon)]

    return release, plan


def _paths() -> Iterator[Path]:
    x, both, two = {"bounds": (0, 10)}, {"x": (0, 10), "z": (0, 10)}, {"keys": ["A", "B"]}
    edges = [0, 2, 4, 6, 8, 10]
    rows, people, pure, gaussian = ("rows",), ("people",), ("pure",), ("gaussian",)
    yield Path("count", lambda dp, **m: dp.count("x", **m))
    yield Path("sum", lambda dp, **m: dp.sum("x", **x, **m))
    yield Path("sum of both signs", lambda dp, **m: dp.sum("x", bounds=(-5, 10), **m))
    yield Path("mean", lambda dp, **m: dp.mean("x", **x, **m))
    yield Path("variance", lambda dp, **m: dp.variance("x", **x, **m))
    yield Path("std", lambda dp, **m: dp.std("x", **x, **m))
    yield Path("proportion", lambda dp, **m: dp.proportion("g", value="A", **m))
    yield Path("median", lambda dp, **m: dp.median("x", **x, step=1, **m))
    yield Path("quantile", lambda dp, **m: dp.quantile("x", q=0.25, **x, step=1, **m))
    yield Path(
        "quantile by a choice",
        lambda dp, mechanism=None, **m: dp.quantile("x", q=0.5, candidates=edges, mechanism="exponential", **m),
        noises=pure,
        noised=False,
    )
    yield Path("ecdf", lambda dp, **m: dp.ecdf("x", bins=edges, **m))
    yield Path("n_units", lambda dp, **m: dp.group_by("g", **two).n_units(**m), units=people)
    yield Path("n_distinct", lambda dp, **m: dp.n_distinct("d", max_values=1, **m))
    yield Path("histogram", lambda dp, **m: dp.histogram("x", bins=edges, **m))
    yield Path(
        "histogram, one look for ranges",
        lambda dp, **m: dp.histogram("x", bins=8, range=(0, 10), ranges=True, denoise=None, **m),
    )
    ranges = {"range": (0, 10), "ranges": True}
    yield Path(
        "histogram, ranges by several looks", lambda dp, **m: dp.histogram("x", bins=1_024, **ranges, **m), noises=pure
    )
    on_grid = {"bins": [256, 256], "range": [(0, 10), (0, 10)], "ranges": True}
    yield Path(
        "histogram, rectangles by several looks",
        lambda dp, **m: dp.histogram(["x", "z"], **on_grid, **m),
        units=rows,
        noises=gaussian,
        heavy=True,
    )
    yield Path("mode", lambda dp, **m: dp.mode("c", categories=NAMES, **m), noises=pure, noised=False)
    yield Path(
        "top_k, peeled", lambda dp, **m: dp.top_k("c", k=1, categories=NAMES, **m), noises=pure, noised=False, half=0.0
    )
    yield Path("top_k, sorted", lambda dp, **m: dp.top_k("c", k=2, categories=NAMES, counts=True, **m), noised=False)
    yield Path(  # with several groups, peeling has the lower error under every accounting
        "top_k, two places peeled",
        lambda dp, **m: dp.top_k("c", k=2, categories=NAMES, **{**m, "max_groups": 8}),
        units=people,
        noises=pure,
        noised=False,
        half=0.0,
    )
    yield Path("covariance", lambda dp, **m: dp.covariance(["x", "z"], bounds=both, **m))
    yield Path("correlation", lambda dp, **m: dp.correlation(["x", "z"], bounds=both, **m))
    yield Path(
        "marginals", lambda dp, **m: dp.marginals(["g", "c"], keys={"g": ["A", "B"], "c": NAMES}, **m), noises=gaussian
    )
    yield Path(
        "contributions",
        lambda dp, **m: dp.contributions(by="g", **two, **m),
        units=people,
        odd=(*ODD["add-remove"], (HIGH, ALONE)),  # replace may move two cells; this pair moves one
        half=0.49,
    )
    yield Path("suggest_bounds", lambda dp, **m: dp.suggest_bounds("x", **m))
    yield Path("suggest_bounds of two columns", lambda dp, **m: dp.suggest_bounds("x", "z", **m))
    yield Path(
        "agg",
        lambda dp, **m: dp.group_by("g", **two).agg(n=dpf.count(), s=dpf.sum("x", **x), a=dpf.mean("z", **x), **m),
    )
    moved = (*ODD["add-remove"], (HIGH, {**HIGH, "g": "B"}))
    yield Path("group_by", lambda dp, **m: dp.group_by("g", **two).sum("x", **x, **m), odd=moved)
    for name, mechanism in MECHANISMS.items():
        kinds = gaussian if name in ("shape 2", "shape 3") else pure
        yield Path(
            f"count, noise {name}",
            lambda dp, made=mechanism, **m: dp.count("x", **{**m, "mechanism": made}),
            units=rows,
            noises=kinds,
            noised=False,
            half=0.0 if kinds is gaussian else 0.5,
        )
    found = {"keys": dpf.discover(delta=KEYS_DELTA)}
    known = {"keys": dpf.discover(delta=KEYS_DELTA, known=["A", "B"])}
    yield Path("discover", lambda dp, **m: _numbers(dp.group_by("g", **found), **m), odd=FOUND, keys=True)
    yield Path(
        "discover and measure",
        lambda dp, **m: dp.group_by("g", **known).agg(n=dpf.count(), s=dpf.sum("x", **x), **m),
        odd=FOUND,
        keys=True,
    )
    yield Path(
        "discover and measure by weights",
        lambda dp, **m: dp.group_by("g", **known).agg(s=dpf.sum("x", **x), weights={"keys": 3}, **m),
        odd=FOUND,
        keys=True,
    )
    fewest = {"keys": dpf.discover(delta=KEYS_DELTA, at_least=3)}
    yield Path("discover, of three", lambda dp, **m: _numbers(dp.group_by("g", **fewest), **m), odd=FOUND, keys=True)
    yield from _several()
    for name, statistic in (("count", dpf.count()), ("sum", dpf.sum("x", **x))):
        release, plan = _stream(statistic)
        yield Path(f"stream of a {name}", release, plan=plan, odd=STREAMED)
    for name, (method, column) in METHODS.items():
        release, plan = _local(method, column)
        yield Path(f"local: {name}", release, plan=plan, noises=pure, noised=False, odd=LOCAL, locally=True)


def _several() -> Iterator[Path]:
    """Yield paths with one charge for several answers."""
    release, plan = _together("count", "sum", "histogram")
    yield Path("together", release, plan=plan)
    release, plan = _together("count", "sum", mechanisms=("laplace", "gaussian"))
    yield Path("together, mixed", release, plan=plan, noises=("gaussian",), noised=False, needs_accounting=True)
    yield Path("replayed", _replayed, plan=_not_replayed, durable=True, units=("rows",))


MECHANISMS: dict[str, Any] = {
    "shape 1": dpf.generalized_gaussian(p=1),
    "shape 2": dpf.generalized_gaussian(p=2),
    "shape 3": dpf.generalized_gaussian(p=3),
    "truncated": dpf.truncated_generalized_gaussian(p=2, output=(0, 400)),
    "inflated": dpf.truncated_generalized_gaussian(p=2, output=(0, 400), boundary="inflated"),
}
METHODS: dict[str, tuple[Callable[[float], Any], str]] = {
    "randomized response": (lambda epsilon: dpf.local.RandomizedResponse(NAMES, epsilon=epsilon), "c"),
    "subset selection": (lambda epsilon: dpf.local.SubsetSelection(NAMES[:6], epsilon=epsilon), "c"),
    "RAPPOR": (lambda epsilon: dpf.local.Rappor.for_epsilon(NAMES[:4], epsilon).permanent, "c"),
    "sketch": (
        lambda epsilon: dpf.local.CountMeanSketch(NAMES[:3], epsilon=epsilon, hashes=2, cells=4, key="x"),
        "c",
    ),
    "mean": (lambda epsilon: dpf.local.Mean((0, 10), epsilon=epsilon), "x"),
}


def _of_bounds(asked: set[str]) -> Iterator[Path]:
    """Yield a path for each verb of a column and its bounds that no other path covers."""
    for name in sorted(set(VERBS) - asked):
        if "bounds" in getattr(getattr(dpf.PrivateFrame, name), "__annotations__", {}):
            yield Path(name, lambda dp, verb=name, **m: getattr(dp, verb)("x", bounds=(1, 10), **m))


PATHS: tuple[Path, ...] = tuple(_paths())
PATHS += tuple(_of_bounds({path.verb for path in PATHS}))


def charging() -> set[str]:
    """Return the functions of the package above the ledger that charge it, found in the source code."""
    found = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] in CANNOT:
            continue
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(map(_charges, ast.walk(function))):
                found.add(f"{'.'.join(('dpframe', *parts))}.{function.name}")
    return found


def _charges(node: ast.AST) -> bool:
    """Return whether a node calls a ledger, and not an accounting, which only computes a cost."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=called)):
            return called in CHARGES and "accounting" not in ast.unparse(value)
        case ast.Call(func=ast.Name(id=called)):
            return called in CHARGES
    return False
