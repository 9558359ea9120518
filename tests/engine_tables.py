"""The tables of docs/reference/engines.md: which verbs and which dtypes each engine takes.

`tests/engines/test_engine_tables.py` compares the page with them. `python -m tests.engine_tables` writes them anew.
Verbs are called on a small table of each engine; the schema check sees dtypes as tables without rows.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl

import dpframe as dpf
from assurance import engines
from dpframe.engines.columns.source import types_of_spark
from dpframe.engines.schema import check
from dpframe.errors import DpframeError
from dpframe.queries.keys import Keys, bin_axes, key_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, sum

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "engines.md"
MARKS = {
    name: (f"<!-- {name}: python -m tests.engine_tables -->\n", f"<!-- end of {name} -->\n")
    for name in ("verbs", "dtypes")
}
MANY = 1e6
LOCAL = "local.randomize"
STREAM = "Stream.release"
OTHERS = "all other verbs"  # which every engine answers

DAYS, MOMENTS = [date(2024, 1, 1), date(2024, 1, 2)], [datetime(2024, 1, 1), datetime(2024, 1, 2)]
DTYPES: dict[str, tuple[Any, list[Any]]] = {  # with two values that serve as keys and edges
    "Boolean": (pl.Boolean, [False, True]),
    "integers of 8 to 64 bits": (pl.Int64, [0, 1]),
    "the same without a sign": (pl.UInt64, [0, 1]),
    "integers of 128 bits": (pl.Int128, [0, 1]),
    "floats of 32 bits": (pl.Float32, [0.0, 1.0]),
    "floats of 64 bits": (pl.Float64, [0.0, 1.0]),
    "decimals": (pl.Decimal(12, 4), [Decimal(0), Decimal(1)]),
    "strings": (pl.String, ["A", "B"]),
    "Categorical, dictionaries": (pl.Categorical, ["A", "B"]),
    "Enum": (pl.Enum(["A", "B"]), ["A", "B"]),
    "dates": (pl.Date, DAYS),
    "datetimes": (pl.Datetime("us"), MOMENTS),
    "datetimes with a time zone": (pl.Datetime("us", "UTC"), [one.replace(tzinfo=UTC) for one in MOMENTS]),
    "durations": (pl.Duration("us"), [timedelta(0), timedelta(1)]),
    "times": (pl.Time, [time(0), time(1)]),
    "binary": (pl.Binary, ["A", "B"]),
    "lists": (pl.List(pl.Int64), [0, 1]),
    "structs": (pl.Struct({"a": pl.Int64}), [0, 1]),
    "Null": (pl.Null, [0, 1]),
}
SPARK = {
    **{pl.Boolean: "BooleanType", pl.Int64: "LongType", pl.Float32: "FloatType", pl.Float64: "DoubleType"},
    **{pl.String: "StringType", pl.Date: "DateType", pl.Binary: "BinaryType", pl.Null: "NullType"},
    **{pl.Datetime("us"): "TimestampNTZType", pl.Datetime("us", "UTC"): "TimestampType"},
    pl.Duration("us"): "DayTimeIntervalType",
}
ENGINES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "pandas": engines.in_pandas,
    "Polars": lambda frame: frame,
    "LazyFrame": pl.DataFrame.lazy,
    "Dataset": engines.as_dataset,
    "DuckDB": engines.as_relation,
    "Dask": engines.as_dask,
}


def calls() -> ModuleType:
    """Import the test of verbs' options: its CALLS hold a call of each verb, and FRAME is the table of the calls."""
    path = ROOT / "tests" / "accessor" / "test_options.py"
    spec = importlib.util.spec_from_file_location("calls_of_verbs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(frame: Any, verb: str, call: dict[str, Any], more: dict[str, Any], columns: tuple[str, ...] = ()) -> bool:
    """Return whether an engine answers a verb; a refusal must come before the charge."""
    unit = dpf.PrivacyUnit("patient", max_rows=1, max_groups=1)
    ledger = dpf.Ledger(epsilon=MANY, unit=dpf.PrivacyUnit(neighbors="replace") if verb == LOCAL else unit, **more)
    try:
        if verb == STREAM:
            asked = {"statistic": dpf.count(), "time": "age", "periods": [31], "max_rows": 1, "epsilon": 1}
            dpf.Stream("table", **asked, ledger=ledger).release(dpf.of(frame), 31)
        elif verb == LOCAL:
            dpf.of(frame).local.randomize("age", method=dpf.local.Mean((0, 100), epsilon=1), ledger=ledger)
        else:
            getattr(dpf.of(frame), verb)(*columns, **call, **more, epsilon=1.0, ledger=ledger)
    except DpframeError:
        assert ledger.spent.epsilon == 0
        return False
    return True


def verbs(make: Callable[[pl.DataFrame], Any]) -> dict[str, str]:
    """Return for each verb whether an engine answers it."""
    known = calls()
    frame = make(known.FRAME)
    asked = {**known.CALLS, LOCAL: {}, STREAM: {}}
    return {
        f"`{verb}`": "yes"
        if answers(frame, verb, asked[verb], known.MORE.get(verb, {}), known.COLUMNS.get(verb, ()))
        else "no"
        for verb in sorted(asked)
    }


def verbs_on_the_page(name: str, asked: Iterable[str]) -> dict[str, str]:
    """Return what the page says of an engine for these verbs, and for any other verb that it lists."""
    head, *rows = written(PAGE.read_text(encoding="utf-8"), "verbs")
    listed = {row[0]: row[head.index(name)] for row in rows}
    return {**dict.fromkeys(asked, listed.pop(OTHERS)), **listed}


def questions(values: list[Any]) -> dict[str, tuple[Query, dpf.PrivacyUnit]]:
    """Return a query about a column "c" for each role that the column may play."""
    nobody = dpf.PrivacyUnit()
    whole = Keys(())
    edges = [float(one) for one in values] if isinstance(values[0], (bool, Decimal)) else values
    asked = {
        "count": (Query("agg", whole, (("n", Count("c")),)), nobody),
        "sum, mean, ...": (Query("agg", whole, (("s", sum("c", (0, 1))),)), nobody),
        "keys": (Query("agg", Keys(key_axes(("c",), values, None)), (("n", Count()),)), nobody),
        "units": (Query("agg", whole, (("n", Count()),)), dpf.PrivacyUnit("c", max_rows=1, max_groups=1)),
    }
    if not isinstance(edges[0], (str, time)):
        asked["bins"] = (Query("agg", Keys(bin_axes("c", edges, None, None, "drop")), (("n", Count()),)), nobody)
    return asked


class OnSchema:
    """A table of Spark that is only a schema."""

    def __init__(self, dtype: Any) -> None:
        from pyspark.sql import types

        found = types.DecimalType(12, 4) if dtype == pl.Decimal(12, 4) else getattr(types, SPARK[dtype])()
        session = SimpleNamespace(conf={"spark.sql.session.timeZone": "UTC"})
        schema = SimpleNamespace(fields=[SimpleNamespace(name="c", dataType=found)])
        self.told = SimpleNamespace(schema=schema, sparkSession=session)

    def schema(self) -> Any:
        """Return the columns as dpframe reads them."""
        return types_of_spark(self.told)

    def fold(self, columns: Any, piece: Any, by: Any) -> Any:
        """Fail: no test reads rows of it."""
        raise NotImplementedError


def columns_of(dtype: Any) -> Iterator[tuple[str, Any]]:
    """Yield a table with a column "c" of this dtype for each engine that has the dtype."""
    frame = pl.DataFrame(schema={"c": dtype})
    for name, make in ENGINES.items():
        try:
            made = make(frame)
        except ImportError:
            raise
        except Exception:  # the engine has no such dtype; each library raises its own error
            continue
        yield name, made
    if dtype in SPARK or dtype == pl.Decimal(12, 4):
        yield "Spark", OnSchema(dtype)


def dtypes() -> list[list[str]]:
    """Return the dtypes by role: "yes" if all engines that have the dtype take it, "no", or the engines that do."""
    roles = ["count", "sum, mean, ...", "bins", "keys", "units"]
    lines = []
    for words, (dtype, values) in DTYPES.items():
        frames = dict(columns_of(dtype))
        told = []
        for role in roles:
            asked = questions(values).get(role)
            takes = [name for name, frame in frames.items() if asked is not None and _takes(frame, *asked)]
            told.append("yes" if len(takes) == len(frames) else ", ".join(takes) or "no")
        lacking = [name for name in [*ENGINES, "Spark"] if name not in frames]
        lines.append([words, *told, ", ".join(lacking) or "-"])
    return [["dtype", *roles, "not there in"], *lines]


def _takes(frame: Any, query: Query, unit: dpf.PrivacyUnit) -> bool:
    try:
        check(frame, query, unit)
    except DpframeError:
        return False
    return True


def written(text: str, name: str) -> list[list[str]]:
    """Return a table of the page, with its header."""
    begin, end = MARKS[name]
    lines = text.split(begin)[1].split(end, maxsplit=1)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def replaced(text: str, name: str, rows: list[list[str]]) -> str:
    """Return the page with one of its tables replaced."""
    begin, end = MARKS[name]
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    table = "".join(f"| {' | '.join(row)} |\n" for row in lines)
    before, rest = text.split(begin)
    return f"{before}{begin}{table}{end}{rest.split(end)[1]}"


def main() -> None:
    """Write both tables, which starts Spark."""
    with engines.in_spark() as as_spark:
        columns = {name: verbs(make) for name, make in {**ENGINES, "Spark": as_spark}.items()}
    rows = [[verb, *(column[verb] for column in columns.values())] for verb in columns["Polars"]]
    rows = [*[row for row in rows if "no" in row], [OTHERS, *["yes"] * len(columns)]]
    page = replaced(PAGE.read_text(encoding="utf-8"), "verbs", [["verb", *columns], *rows])
    PAGE.write_text(replaced(page, "dtypes", dtypes()), encoding="utf-8")


if __name__ == "__main__":
    main()
