"""Neighboring frames of odd values, queries for them, and all that an answer shows in addition to noise.

``assurance/fuzz.py`` and the tests share them. A table is a list of rows; a `Kind` describes the values of its
columns, and the frames of each library that hold them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.accessor import PrivateFrame
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.statistics.statistic import Protecting

HAS_PANDAS = importlib.util.find_spec("pandas") is not None
HAS_ARROW = importlib.util.find_spec("pyarrow") is not None
ROWS = dpf.PrivacyUnit()
Row = dict[str, Any]
Ask = Callable[[Any], Any]

FLOATS = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, 0.1, 2.5, 7.0, -3.0, float(2**53), 1e308, -1e308]
FLOATS += [float("nan"), float("inf"), float("-inf")]
INTEGERS = [0, 1, 2, 7, -3, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
NAMES = ["x", "", "*", "^x.*$", "a.b", "count", "cell", "unit", "w", "rows", "0", "\U0001f600", "x y", "sum0", "{a}"]


@dataclass(frozen=True)
class Kind:
    """The values of one column: how to draw them, their Polars dtypes, and the pandas dtypes that hold them."""

    name: str
    values: st.SearchStrategy[Any]
    polars: tuple[Any, ...]
    pandas: tuple[str, ...]
    number: bool = True


def _integers(low: int, high: int) -> st.SearchStrategy[Any]:
    odd = [value for value in INTEGERS if low <= value <= high]
    return st.none() | st.sampled_from([*odd, low, high]) | st.integers(low, high) | st.integers(0, 10)


KINDS = [
    Kind("float64", st.none() | st.sampled_from(FLOATS) | st.floats(), (pl.Float64,), ("float64", "object", "Float64")),
    Kind("float32", st.none() | st.sampled_from(FLOATS) | st.floats(width=32), (pl.Float32,), ("float32",)),
    Kind("int64", _integers(-(2**63), 2**63 - 1), (pl.Int64,), ("Int64", "object")),
    Kind("int32", _integers(-(2**31), 2**31 - 1), (pl.Int32, pl.Int64), ("Int32", "Int64")),
    Kind("int8", _integers(-128, 127), (pl.Int8, pl.Int16, pl.Int32), ("Int8", "Int64", "object")),
    Kind("uint64", _integers(0, 2**64 - 1), (pl.UInt64,), ("UInt64", "object")),
    Kind("uint8", _integers(0, 255), (pl.UInt8, pl.UInt16), ("UInt8", "object")),
    Kind("bool", st.none() | st.booleans(), (pl.Boolean,), ("boolean", "object")),
    Kind(
        "decimal",
        st.none() | st.decimals(-1000, 1000, places=2, allow_nan=False),
        (pl.Decimal(20, 2), pl.Decimal(38, 2)),
        ("object",),
    ),
    Kind(
        "datetime",
        st.none()
        | st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(lambda when: when.replace(microsecond=0))
        | st.sampled_from([datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 3)]),
        (pl.Datetime("us"), pl.Datetime("ms"), pl.Datetime("ns")),
        ("datetime64[ns]", "object"),
        number=False,
    ),
    Kind(
        "duration",
        st.none() | st.timedeltas(timedelta(-1000), timedelta(1000)).map(lambda span: timedelta(seconds=span.days)),
        (pl.Duration("us"), pl.Duration("ns")),
        ("timedelta64[ns]", "object"),
        number=False,
    ),
    Kind(
        "date",
        st.none() | st.dates(date(1700, 1, 1), date(2200, 1, 1)) | st.just(date(2024, 1, 2)),
        (pl.Date,),
        ("object",),
        number=False,
    ),
    Kind(
        "text",
        st.none() | st.text(max_size=3) | st.sampled_from(["A", "B", "", "1", "NaN"]),
        (pl.String, pl.Categorical),
        ("object", "string", "category"),
        number=False,
    ),
]
WARDS = st.sampled_from(["A", "B", "C", "elsewhere", None])
PEOPLE = st.sampled_from([1, 2, 3, None])
UNITS = [
    dpf.PrivacyUnit(neighbors=neighbors, **of)  # type: ignore[arg-type]
    for neighbors in ("add-remove", "replace")
    for of in (
        {},
        {"column": "u", "max_rows": 1, "max_groups": 1},
        {"column": "u", "max_rows": 2, "max_groups": 2, "nulls": "one-unit"},
    )
]
BINS: dict[str, Any] = {
    "datetime": [datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 3)],
    "date": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)],
    "duration": [timedelta(0), timedelta(seconds=100), timedelta(seconds=500)],
}
KEYS: dict[str, list[Any]] = {
    "bool": [True, False, None],
    "decimal": [Decimal("1.00"), Decimal("2.50"), None],
    "text": ["A", "", None],
    **{name: [bins[1], bins[0], None] for name, bins in BINS.items()},
}


@dataclass(frozen=True)
class Pair:
    """Two neighboring tables, the kind of their values, the name of the value column, and the privacy unit."""

    kind: Kind
    name: str
    unit: dpf.PrivacyUnit
    first: list[Row]
    second: list[Row]
    turn: int  # selects verbs and engines


@st.composite
def pairs(draw: Any) -> Pair:
    """Draw tables that differ in one unit: one row where rows are units, else all rows of one id."""
    kind, unit = draw(st.sampled_from(KINDS)), draw(st.sampled_from(UNITS))
    row = st.fixed_dictionaries({"v": kind.values, "g": WARDS, "u": PEOPLE})
    others = draw(st.lists(row, max_size=8))
    mine, instead = draw(st.lists(row, max_size=6)), draw(st.lists(row, max_size=6))
    if unit.column is None:
        mine, instead = mine[:1], instead[:1]
        if unit.neighbors == "replace" and not (mine and instead):
            mine = instead = []
    else:
        mine, instead = ([{**owned, "u": 9} for owned in rows] for rows in (mine, instead))
    place = draw(st.integers(0, len(others)))
    second = instead if unit.neighbors == "replace" else []
    first, second = (others[:place] + rows + others[place:] for rows in (mine, second))
    return Pair(kind, draw(st.sampled_from(NAMES)), unit, first, second, draw(st.sampled_from(range(1_000))))


def asks(kind: Kind, name: str) -> dict[str, Callable[..., Any]]:
    """Return every verb that suits the column: (dp, **price) -> answer."""
    bins, keys = BINS.get(kind.name, [-3, 0.1, 2.5, 7]), KEYS.get(kind.name, [1, 0, None])
    found: dict[str, Callable[..., Any]] = {
        "count": lambda dp, **price: dp.count(**price),
        "present": lambda dp, **price: dp.count(name, **price),
        "keys": lambda dp, **price: dp.group_by(name, keys=keys).count(**price),
        "keys of two": lambda dp, **price: dp.group_by("g", name, keys={"g": ["B", "A"], name: keys}).count(**price),
        "subtotals": lambda dp, **price: dp.group_by("g", name, keys={"g": ["A", "C"], name: keys[:2]}).agg(
            rows=dpf.count(), rollup=True, **price
        ),
        "all subtotals": lambda dp, **price: dp.group_by(name, "g", keys={"g": ["A", "B"], name: keys[:2]}).agg(
            rows=dpf.count(), values=dpf.count(name), cube=True, **price
        ),
        "units": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).n_units(name, **price),
        "share of a value": lambda dp, **price: dp.group_by("g", keys=["A", None]).proportion(
            name, value=keys[0], **price
        ),
        "present in groups": lambda dp, **price: dp.group_by("g", keys=["A", "B", None]).count(name, **price),
        "contributions": lambda dp, **price: dp.contributions("g", keys=["A", "B", None], **price),
        "rows of a value": lambda dp, **price: dp.count(where={name: keys[:2], "g": ["A", "B", None]}, **price),
        "weighted rows": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).count(
            weight="u", weight_bounds=(0.3, 2), **price
        ),
    }
    if kind.name == "text":
        return found | {"categories": lambda dp, **price: dp.histogram(name, categories=keys, **price)}
    found |= {
        "histogram": lambda dp, **price: dp.histogram(name, bins=bins, **price),
        "clipped": lambda dp, **price: dp.histogram(name, bins=bins, outside="clip", **price),
        "histogram in groups": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).histogram(
            name, bins=bins, **price
        ),
    }
    found |= {"binned": lambda dp, **price: dp.group_by(dpf.bins(name, bins), "g", keys=["B", None]).count(**price)}
    if kind.name in ("date", "datetime"):
        week = dpf.dates("2023-12-25", "2024-01-01", every="1w")
        found |= {
            "weeks": lambda dp, **price: dp.group_by("g", name, keys={"g": ["A", "B"], name: week}).count(**price),
            "days": lambda dp, **price: dp.histogram(name, bins="1d", range=("2024-01-01", "2024-01-03"), **price),
        }
    if kind.number:
        both = {"s": dpf.sum(name, bounds=(-3, 7.3)), "m": dpf.mean(name, bounds=(0, 10)), "n": dpf.count(name)}
        found |= {
            "sum": lambda dp, **price: dp.sum(name, bounds=(-3, 7.3), **price),
            "largest bounds": lambda dp, **price: dp.sum(name, bounds=(-(2**53), 2**53), **price),
            "mean": lambda dp, **price: dp.mean(name, bounds=(0.1, 10), **price),
            "agg": lambda dp, **price: dp.group_by("g", keys=["C", "A", None]).agg(both, **price),
            "variance": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).variance(name, bounds=(-3, 7.3), **price),
            "quantiles": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).quantile(
                name, q=[0.5, 0.9], bounds=(0, 8), **price
            ),
            "share": lambda dp, **price: dp.proportion(name, **price),
            "where": lambda dp, **price: dp.sum(name, bounds=(-3, 7.3), where={name: (0, 7.1)}, **price),
            "weighted": lambda dp, **price: dp.sum(name, bounds=(-3, 7.3), weight="u", weight_bounds=(0, 1.7), **price),
            "weighted by it": lambda dp, **price: dp.mean(
                "u", bounds=(-1, 3), weight=name, weight_bounds=(0, 5), **price
            ),
            "bounds by group": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).mean(
                name, bounds={"A": (0, 10), "B": (-3, 0.7)}, **price
            ),
            "ratio": lambda dp, **price: dp.agg(dpf.ratio(name, "u", bounds={name: (0, 7.3), "u": (1, 3)}), **price),
            "sum of units": lambda dp, **price: dp.group_by("g", keys=["A", "B"]).sum(
                name, unit_bounds=(-3, 7.3), **price
            ),
            "grid": lambda dp, **price: dp.histogram(
                [name, "u"], bins=[2, 2], range=[(0, 8), (0, 4)], outside="clip", **price
            ),
        }
    return found


def asked(build: Ask) -> Any:
    """Return the Query of a call, without releasing anything."""
    found: list[Any] = []
    build(PrivateFrame(None, (), lambda call: found.append(call.question.query)))
    return found[0]


def exact(frame: Any, build: Ask, unit: dpf.PrivacyUnit = ROWS, p: float = 1.0) -> dict[Any, list[int]]:
    """Return the exact totals of a call, in grid steps, before noise is added."""
    query = asked(build).each(lambda one: one.protecting(unit) if isinstance(one, Protecting) else one)
    if query.keys.counted == "units":  # as a plan does: refuse units of rows, and ignore contribution bounds
        if unit.column is None:
            raise dpf.InvalidArgument("unit must have a column for contributions.")
        unit = unit.who
    query = check(frame, query.under(p == 1.0), unit)  # pure noise may measure other totals
    return {total: found.tolist() for total, found in totals(frame, query, unit, p).items()}


def columns_of(rows: Sequence[Row], name: str) -> dict[str, list[Any]]:
    """Return the rows as columns; `name` is the value column."""
    return {
        name: [row["v"] for row in rows],
        "g": [row["g"] for row in rows],
        "u": [row["u"] for row in rows],
    }


def polars_frame(rows: Sequence[Row], name: str, dtype: Any) -> pl.DataFrame:
    """Return a Polars frame; values that the dtype does not hold are missing."""
    base = pl.Decimal(38, 2) if isinstance(dtype, pl.Decimal) else pl.String if dtype == pl.Categorical else dtype
    columns = columns_of(rows, name)
    made = pl.Series(columns[name], dtype=base, strict=False)  # Polars takes some column names for patterns here
    return pl.DataFrame(
        {
            name: made.cast(dtype) if base != dtype else made,
            "g": pl.Series(columns["g"], dtype=pl.String),
            "u": pl.Series(columns["u"], dtype=pl.Int64),
        }
    )


def makers(kind: Kind) -> dict[str, Callable[[Sequence[Row], str], Any]]:
    """Return, for every library and dtype that holds such values exactly, a function of (rows, name) to a frame."""
    found: dict[str, Callable[[Sequence[Row], str], Any]] = {}
    for dtype in kind.polars:
        made = partial(_polars_as, dtype)
        found |= {f"{form} {dtype}": partial(made, form) for form in ("Polars", "LazyFrame", "chunks", "Arrow")}
        if not HAS_ARROW or dtype == pl.Categorical:
            del found[f"Arrow {dtype}"]
    if HAS_PANDAS:
        found |= {f"pandas {dtype}": partial(_pandas_as, kind, dtype) for dtype in kind.pandas}
    return found


def _polars_as(dtype: Any, form: str, rows: Sequence[Row], name: str) -> Any:
    frame = polars_frame(rows, name, dtype)
    if form == "LazyFrame":
        return frame.lazy()
    if form == "Arrow":
        return frame.to_arrow()
    half = frame.height // 2
    return pl.concat([frame[:half], frame[half:]], rechunk=False) if form == "chunks" else frame


def _pandas_as(kind: Kind, dtype: str, rows: Sequence[Row], name: str) -> Any:
    import pandas as pd

    columns = columns_of(rows, name)
    values = np.empty(len(rows), dtype=object)
    for place, value in enumerate(columns[name]):
        values[place] = value
    made = _fitting(pd, values, kind, dtype)
    frame = pd.DataFrame({name: made, "g": columns["g"], "u": pd.array(columns["u"], dtype="Int64")})
    frame["g"] = frame["g"].astype(object)
    return frame


def _fitting(pd: Any, values: Any, kind: Kind, dtype: str) -> Any:
    """Make a pandas column, by way of NumPy's floats where the dtype is one of theirs."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return pd.Series(np.array(values, dtype=np.float64).astype(np.float32))
    if dtype in ("float64", "Float64"):
        return pd.Series(np.array(values, dtype=np.float64)).astype(dtype)
    if dtype == "object":
        return pd.Series(values, dtype=object)
    if kind.number:
        return pd.Series(pd.array(list(values), dtype=dtype))
    return pd.Series(values, dtype=object).astype(dtype)


def form_of(frame: Any, ask: Callable[..., Any], unit: dpf.PrivacyUnit, watch: Any) -> str:
    """Return everything that a call shows except the noisy numbers, and its charge."""
    ledger = dpf.Ledger(epsilon=1, unit=unit)
    with watch() as seen:
        try:
            result = ask(dpf.of(frame), epsilon=1, ledger=ledger)
        except Exception as error:
            seen["raised"], result = f"{type(error).__name__}: {error}", None
    seen["spent"] = str(ledger.spent)
    # a BoundsWarning depends only on the noisy numbers of the checks
    seen["warnings"] = [words for words in seen.get("warnings", ()) if not words.startswith("BoundsWarning")]
    return repr((sorted(seen.items()), None if result is None else public_parts(result)))


def public_parts(result: Any) -> Mapping[str, Any]:
    """Return library, columns, dtypes, keys, order, attrs and provenance of a result, without what noise decides."""
    facts = {name: fact for name, fact in result.dp.provenance.items() if name not in ("sha256", "release")}
    facts["rows"] = {name: fact for name, fact in (facts.get("rows") or {}).items() if name != "sha256"}
    noisy = set(facts["columns"])
    checks = facts.get("checks") or []
    facts["checks"] = [{name: check[name] for name in ("of", "what", "count_error")} for check in checks]
    facts["measures"] = {
        name: {
            **{fact: value for fact, value in statistic.items() if fact not in ("totals", "square_totals")},
            "denoise": [step["name"] for step in statistic["denoise"]]
            if statistic["denoise"]
            else statistic["denoise"],
        }
        for name, statistic in facts["measures"].items()
    }
    return {
        "library": f"{type(result).__module__}.{type(result).__name__}",
        "dtypes": [(name, str(result[name].dtype)) for name in result.columns],
        "public": {name: [repr(key) for key in result[name].to_list()] for name in result.columns if name not in noisy},
        "attrs": repr({name: fact for name, fact in getattr(result, "attrs", {}).items() if name != "dpframe"}),
        "index": repr(getattr(result, "index", "")),
        "provenance": facts,
    }
