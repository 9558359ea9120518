"""Trial of an engine on hard tables and questions: its totals must equal those of Polars in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.errors import DpframeError
from dpframe.privacy import PrivacyUnit
from dpframe.queries.contributions import Grouping, UnitGrid, grid_of
from dpframe.queries.date_grid import dates
from dpframe.queries.keys import REST, Keys, bin_axes, bins, group_axes, key_axes, running_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import (
    Contributors,
    Count,
    Statistic,
    count,
    marginals,
    mean,
    median,
    n_units,
    proportion,
    ratio,
    suggested_bounds,
    sum,
    variance,
)
from dpframe.queries.statistics.by_group import MeanByGroup, SumByGroup
from dpframe.queries.statistics.quantile import QuantileByGroup
from dpframe.queries.statistics.variance import VarianceByGroup

ROWS = 2_000
EDGES = [-3.0, 0.0, 0.1, 2.5, 10.0]
BESIDE = [math.nextafter(edge, end) for edge in EDGES for end in (-math.inf, math.inf)]
TIES = [(step + 0.5) * 2.0**-26 for step in (-3, 0, 1, 2**26)]  # halfway between steps of the grid for bounds up to 10
FLOATS = [
    *(*EDGES, *BESIDE, *TIES),
    *(None, math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 1e-310, 1e308, -1e308, 2.0**53, 2.0**53 + 2),
]
INTEGERS = [0, 1, -1, 2, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None]
WORDS = ["A", "a", "B", "\u00e1", "a\u0301", "", "A ", "other", None]
DAYS = [date(2024, 2, 29), date(2024, 3, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), None]
MOMENTS = [
    *(datetime(2024, 1, 1), datetime(2024, 1, 1, 23, 59, 59, 999_999), datetime(2024, 1, 2), datetime(2024, 1, 3)),
    *(datetime(1, 1, 1), datetime(9999, 12, 31), None),
]
AMOUNTS = [Decimal("0.1"), Decimal("0.10"), Decimal("-0.1"), Decimal("99999999.9999"), Decimal("0.0001"), None]
POOLS: dict[str, tuple[Any, list[Any]]] = {
    "x": (pl.Float64, FLOATS),
    "narrow": (pl.Float32, [0.1, 2.5, None, math.nan, math.inf, -0.0, 1e-45]),
    "whole": (pl.Int64, INTEGERS),
    "byte": (pl.UInt8, [0, 1, 255, None]),
    "large": (pl.UInt64, [0, 1, 2**53 + 1, 2**64 - 1, None]),
    "flag": (pl.Boolean, [True, False, None]),
    "word": (pl.String, WORDS),
    "day": (pl.Date, DAYS),
    "moment": (pl.Datetime("us"), MOMENTS),
    "instant": (
        pl.Datetime("us", "UTC"),
        [None if moment is None else moment.replace(tzinfo=UTC) for moment in MOMENTS],
    ),
    "amount": (pl.Decimal(12, 4), AMOUNTS),
}
WEEKS = dates("2024-02-26", "2024-03-04", every="1w")
UNITS: tuple[str | tuple[str, ...], ...] = (
    *("name", "word", "day", "moment", "amount", "whole", "large", "x", "flag"),
    *(("user", "word"), ("x", "whole"), ("word", "name", "narrow"), ("moment", "flag"), ("day", "amount", "large")),
)


def difference(make: Callable[[Any], Any], tables: int, seed: int, every: int = 1) -> str | None:
    """Describe the first question that an engine answers differently from Polars in memory; None if all agree.

    Each table gets one question in `every`, and the next table gets the next ones.
    """
    answered, refused = 0, None
    numbered = [(number, *question) for number, question in enumerate(questions().items())]
    for turn, (table, frame) in enumerate(hard_tables(tables, seed)):
        for number, name, query in numbered:
            for other, (unit, p) in enumerate(units(query, turn + number)):
                if (3 * number + other + turn) % every:
                    continue
                expected = totals(frame, check(frame, query, unit), unit, p)
                actual = _totals(make, frame, query, unit, p)
                if isinstance(actual, DpframeError):
                    refused = actual
                    continue
                answered += 1
                if {total: cells.tolist() for total, cells in expected.items()} != actual:
                    words = f"one {unit.one}" if unit.column is not None else "a row"
                    return f"the totals of {name!r} with {words} protected (p = {p:g}) differ on the table {table!r}"
    return None if answered else f"every question is refused: {refused}"


def _totals(
    make: Callable[[Any], Any], rows: pl.DataFrame, query: Query, unit: PrivacyUnit, p: float
) -> Mapping[Any, Any] | DpframeError:
    """Return the totals of an engine, or its refusal if it refuses before it reads a row."""
    try:
        frame = make(rows)
        resolved = check(frame, query, unit)
    except DpframeError as refusal:
        return refusal
    return {total: cells.tolist() for total, cells in totals(frame, resolved, unit, p).items()}


def hard_tables(tables: int, seed: int) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield tables of made-up rows: every hard value, none, one row, all missing, and mixed ones with skewed units."""
    longest = max(len(pool) for _, pool in POOLS.values())
    every = pl.DataFrame(
        {
            name: pl.Series([pool[row % len(pool)] for row in range(longest)], dtype=d)
            for name, (d, pool) in POOLS.items()
        }
    )
    user = pl.Series("user", [None if row % 7 == 6 else row % 5 for row in range(longest)], dtype=pl.Int64)
    every = every.with_columns(user, pl.format("\u00e9 {}", user).alias("name"))
    missing = every[:3].clear(3)
    fixed = {"every value": every, "no rows": every.clear(), "one row": every[:1], "only missing values": missing}
    yield from fixed.items()
    for number in range(tables):
        yield f"mixed {number}", _mixed(1_000_000 * seed + number)


def _mixed(seed: int) -> pl.DataFrame:
    """Return hard values in the order of a hash; one user has half of all rows, another a sixth, and so on."""
    rows, columns_and_users = pl.int_range(ROWS >> 2 * (seed % 4), eager=True), range(len(POOLS) + 1)
    numbers = [rows.hash(100 * seed + number).to_numpy().astype(np.uint64) for number in columns_and_users]
    columns = [
        pl.Series(name, pool, dtype=dtype).gather(mixed % np.uint64(len(pool)))
        for (name, (dtype, pool)), mixed in zip(POOLS.items(), numbers, strict=False)
    ]
    user = pl.Series("user", (2.0**64 / (numbers[-1].astype(np.float64) + 1.0)).astype(np.int64) % 300)
    user = user.set(user == 7, None)
    return pl.DataFrame([*columns, user, pl.select(pl.format("\u00e9 {}", user).alias("name")).to_series()])


def units(query: Query, turn: int) -> Iterator[tuple[PrivacyUnit, float]]:
    """Yield the protected units: a row, a user, and another unit in turn; also the norms of noise, in turn."""
    if query.keys.counted == "rows":
        yield PrivacyUnit(), 1.0
    for number, column in enumerate(("user", UNITS[turn % len(UNITS)])):
        nulls: Any = "drop" if (turn + number) % 2 else "one-unit"
        p, rows, groups = ((1.0, 3, 2), (2.0, 2, 4), (math.inf, 5, 1))[(turn + number) % 3]
        yield PrivacyUnit(column, nulls=nulls, max_rows=rows, max_groups=groups), p


def questions() -> dict[str, Query]:
    """Return the questions for every table: each kind of total, of keys and of bins."""
    cells = _cells()
    sums: dict[str, Statistic] = {
        "n": Count(),
        "present": Count("x"),
        "s": sum("x", (-3, 10)),
        "m": mean("whole", (0, 7.3)),
    }
    more: dict[str, Statistic] = {
        "d": sum("amount", (-1, 1)),
        "f": mean("flag", (0, 1)),
        "r": sum("narrow", (0, 1)),
        "b": sum("byte", (0, 9)),
    }
    words = cells["words"]
    contributions = {
        "contributions": Grouping(),
        "contributions by word": Grouping(("word",)),
        "contributions by declared words": Grouping(("word",), words),
    }
    people = {"n": n_units(), "named": n_units("word"), "added": sum("x", unit_bounds=(-3, 10))}
    where, filtered = _under_conditions()
    spread = {
        "middle": median("x", bounds=(0, 10)),
        "variance": variance("x", bounds=(-3, 10)),
        "share": proportion("flag"),
        "quotient": ratio("x", "byte", bounds={"x": (0, 10), "byte": (0, 255)}),
    }
    return {
        **{
            f"{name} by words, {'pure' if pure else 'Gaussian'}": Query("agg", words, statistics).under(pure)
            for name, statistics in (
                *(("people", tuple(people.items())), ("spread", tuple(spread.items()))),
                ("scaled", tuple(_scaled(words).items())),
                *(("conditions", tuple(where.items())), ("people under conditions", tuple(filtered.items()))),
            )
            for pure in (True, False)
        },
        "counts, sums and means": Query(
            "agg", Keys(()), tuple({**sums, **more, "l": sum("large", (0, 2**53))}.items())
        ),
        **{name: Query("histogram", keys, (("count", Count()),)) for name, keys in cells.items()},
        "sums by words": Query("agg", words, tuple(sums.items())),
        "sums by words and days": Query("agg", cells["words and days"], tuple(more.items())),
        "all subtotals": Query("agg", cells["words and weeks"], (("n", Count()), ("s", sum("x", (-3, 10)))), "cube"),
        "marginals": Query("marginals", Keys(()), (("count", _all_tables()),)),
        **{
            f"bounds of {' and '.join(columns)}": Query("suggest_bounds", Keys(()), (("bounds", _bounds_of(*columns)),))
            for columns in (("x", "whole"), ("day",), ("moment",))
        },
        "sums in bins": Query("agg", cells["bins"], tuple(sums.items())),
        **{
            name: Query("contributions", UnitGrid(grid_of(grouping), grouping), (("count", Contributors()),))
            for name, grouping in contributions.items()
        },
    }


def _bounds_of(*columns: str) -> Statistic:
    """Return counts of columns in the bins of a public grid."""
    return suggested_bounds(columns, "mean", {"epsilon": 1}, whole=False)


def _under_conditions() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return statistics under conditions: of rows, and of people."""
    where = {  # each kind of Total under conditions, and each kind of column in a condition
        "n": count(where={"word": ["A", None], "x": (0.1, None)}),
        "present": count("x", where={"flag": True}),
        "s": sum("x", (-3, 10), where={"day": (date(2024, 2, 29), date(9999, 1, 1)), "whole": (None, 2)}),
        "m": mean("whole", (0, 7.3), where={"moment": [datetime(2024, 1, 1), None]}),
        "middle": median("narrow", bounds=(0, 10), where={"x": (-3, 10)}),
        "variance": variance("x", bounds=(-3, 10), where={"amount": [Decimal("0.1"), Decimal("0.0001")]}),
        "share": proportion("word", "A", where={"instant": (None, datetime(2024, 1, 3, tzinfo=UTC))}),
    }
    filtered = {
        "people": n_units(where={"word": ["A", "B"]}),
        "added": sum("x", unit_bounds=(-3, 10), where={"byte": (1, None)}),
    }
    return where, filtered


def _scaled(words: Keys) -> dict[str, Statistic]:
    """Return statistics of weighted rows, and of groups with their own bounds."""
    by_byte: dict[str, Any] = {"weight": "byte", "weight_bounds": (0.5, 9)}
    pairs = ((-3, 10), (0, 1), (5, 255), (-9, -1), (0.1, 0.3))
    keys: Any = words.axes[0]
    bounds: Any = tuple(zip(keys.values(0), pairs, strict=True))
    return {
        "s by group": SumByGroup("x", bounds).of_keys(words),
        "m by group": MeanByGroup("byte", bounds).of_keys(words),
        "v by group": VarianceByGroup("x", bounds).of_keys(words),
        "middle by group": QuantileByGroup("x", bounds).of_keys(words),
        "n": count(weight="narrow", weight_bounds=(0, 2)),
        "s": sum("x", (-3, 10), **by_byte),
        "m": mean("whole", (0, 7.3), where={"flag": True}, **by_byte),
        "true": proportion("flag", **by_byte),
        "is A": proportion("word", "A", where={"x": (-3, 10)}, **by_byte),
    }


def _all_tables() -> Statistic:
    """Return every table of up to two of three columns, by contrasts."""
    keys = {"word": ["A", "a", "B", "absent"], "flag": [True, False], "day": [date(2024, 2, 29), date(2024, 3, 1)]}
    return marginals([*keys], keys)


def _cells() -> dict[str, Keys]:
    days = [date(2024, 2, 29), date(2024, 3, 1), None]
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    aware = [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC)]
    keys = {
        "words": ("word", ["A", "a", "a\u0301", "absent", None]),
        "integers": ("whole", [2**53 + 1, 2**53, 2**63 - 1, -(2**63)]),
        "floats": ("x", [0.0, 0.1, 5e-324, None]),
        "days": ("day", days),
        "amounts": ("amount", [Decimal("0.1"), Decimal("99999999.9999")]),
        "words and the rest": ("word", ["A", "a", REST]),
        "integers and the rest": ("byte", [0, None, REST]),
    }
    edges_of = {
        "bins": ("x", EDGES, "drop"),
        "clipped bins": ("x", EDGES, "clip"),
        "bins of integers": ("whole", [-(2.0**53), 0, 1, 2.0**53], "drop"),
        "bins of moments": ("moment", moments, "drop"),
        "bins of instants": ("instant", aware, "clip"),
    }
    return {
        **{name: Keys(key_axes((column,), values, None)) for name, (column, values) in keys.items()},
        **{name: Keys(bin_axes(column, edges, None, None, end)) for name, (column, edges, end) in edges_of.items()},
        "bins closed on the right": Keys(running_axes("x", EDGES, None)),
        "words and days": Keys(key_axes(("word", "day"), {"word": ["A", None], "day": days}, None)),
        "a grid": Keys(bin_axes(["x", "whole"], [EDGES, [0, 1, 2.0**53]], None, None, "drop")),
        "words and bins": Keys((*key_axes(("word",), ["B", ""], None), *bin_axes("x", EDGES, None, None, "drop"))),
        "bins and words": Keys(group_axes((bins("x", EDGES), "word"), ["B", ""], None)),
        "weeks": Keys(key_axes(("day",), WEEKS, None)),
        "months": Keys(key_axes(("moment",), dates("2023-12-01", "2024-03-01", every="1mo"), None)),
        "hours of instants": Keys(
            key_axes(("instant",), dates(*aware, every="1h"), None)  # UTC, the zone of the column
        ),
        "words, the rest and bins": Keys(
            (*key_axes(("word",), ["B", REST], None), *bin_axes("x", EDGES, None, None, "drop"))
        ),
        "words and weeks": Keys(key_axes(("word", "day"), {"word": ["A", "a", "B"], "day": WEEKS}, None)),
    }
