"""Totals by keys that Spark computes itself, where each row is protected: plain columns of plain dtypes.

Handing rows to Python takes Spark longer than to add them up. So where it is proven that Spark's expressions give the
integers of the Polars code and fail on no value, Spark adds; everything else goes the way of rows. What decides is the
question and the schema. The proof, expression by expression:

- The integer of a value: doubles of Java and of Polars are IEEE 754 binary64, and both do the same operations on them:
  the value as a double (exact, but of 64-bit integers, which both round to nearest), times a power of two, clipped,
  plus 0.5, and its floor, which is at most 2**30 + 1 and so is no overflow of a bigint. Null and NaN are sorted out
  before, since Spark takes NaN for the greatest number.
- The place of such an integer between its bounds, which means add: integers below 2**63 that are divided by another,
  none of them negative, so that rounding down and toward zero are the same.
- Sums: in two limbs of a value v = 2**16 a + b with 0 <= b < 2**16, since Spark fails where a sum passes 2**63. No sum
  of limbs does below 2**47 rows. They are joined modulo 2**64, as sums are everywhere.
- Keys: integers and strings (as bytes) are told apart as they are. Only rows whose every key is among the declared
  ones of its column are grouped, so that Spark tells the driver of no other: exact totals of cells alone leave it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.columns.identity import NOWHERE, Declared
from dpframe.engines.columns.source import source_of
from dpframe.engines.engine import Partial, RowTask
from dpframe.engines.sums.addends import ROWS, Terms
from dpframe.engines.sums.cells import Cells
from dpframe.engines.sums.compound import Parts
from dpframe.engines.sums.row_totals import of_groups
from dpframe.engines.task import Task
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.query import gathers
from dpframe.queries.row_functions import OnGrid, Present, RowFunction, plain_share

KEYS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.String)
VALUES = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Float32, pl.Float64)
MOST_KEYS = 2**10  # of a column: Spark compares with each of them
MOST_CELLS = 2**14  # so many rows may come to the driver
LIMB = 2**16


def by_sql(task: RowTask) -> bool:
    """Tell whether Spark can add up by itself; decided by the question and the schema."""
    if not isinstance(task, Task) or task.conditional:  # which keys there are is no sum
        return False
    parts = Parts.of(task.query, task.unit)
    if task.by is not None or task.query.keys.counted == "units" or gathers(task.query) or parts.others:
        return False
    if any(axis.coding == "rest" for axis in task.query.keys.axes):  # rows of all keys would come to the driver
        return False
    cells, dtypes = cells_of(task), {name: column.polars for name, column in task.types.items()}
    if cells.bins or any(dtypes[name] not in VALUES for name in parts.terms.values):
        return False
    if any(isinstance(addend, RowFunction) and plain_share(addend) is None for addend in parts.terms.addends):
        return False
    sizes = [keys.size for keys in cells.declared.values()]
    small = all(0 < size <= MOST_KEYS for size in sizes) and int(np.prod(sizes, dtype=np.float64)) <= MOST_CELLS
    return small and set(cells.columns) == set(cells.declared) and all(dtypes[name] in KEYS for name in cells.columns)


def totals_by_sql(frame: Any, task: Task) -> Partial:
    """The totals of a Spark frame whose columns are named by their places, c0, c1, ..., with strings as bytes."""
    from pyspark.sql.functions import expr

    cells, parts = cells_of(task), Parts.of(task.query, task.unit)
    places = {name: f"c{place}" for place, name in enumerate(task.columns)}
    keys = {cells.columns[name]: places[name] for name in cells.columns}
    inside = [among(places[name], declared) for name, declared in cells.declared.items()]
    integers = integers_of(task, parts.terms, places)
    prepared = frame.where(" and ".join(inside) or "true").selectExpr(
        *(f"{place} as {name}" for name, place in keys.items()), *(f"{sql} as {name}" for name, sql in integers.items())
    )
    sums = [f"count(1) as {ROWS}", *(one for name in integers for one in _summed(name))]
    found = prepared.groupBy(*keys).agg(*map(expr, sums)).collect()
    groups = table(
        [tuple(row) for row in found],
        {name: task.types[column].polars for column, name in cells.columns.items()},
        [*integers],
    )
    sums_of_terms = of_groups(groups, cells.codes(groups), parts.terms, task.query.keys.cells)
    return Partial(parts.assembled(sums_of_terms))


def cells_of(task: Task) -> Cells:
    """The cells of a task, and the declared keys as the columns compare them."""
    empty = pl.DataFrame(schema={name: column.polars for name, column in task.types.items()})
    return Cells.of(source_of(empty), task.query.keys)


def among(column: str, keys: Declared) -> str:
    """The rows whose key is declared; a comparison with null is neither true nor false."""
    values = ", ".join(_literal(value) for value in keys.values)
    either = [f"{column} in ({values})"] if values else []
    return f"({' or '.join([*either, *([f'{column} is null'] if keys.missing != NOWHERE else [])])})"


def _literal(value: int | str) -> str:
    return f"X'{value.encode().hex()}'" if isinstance(value, str) else f"{value}L"


def integers_of(task: Task, terms: Terms, places: dict[str, str]) -> dict[str, str]:
    """The expressions of the integers that are summed, by the engine's names; null where there is none."""
    missing = {name: _missing(place, task.types[name].polars) for name, place in places.items()}
    found = {}
    for addend, name in terms.addends.items():
        match addend:
            case OnGrid(column, bounds):
                rest, integer = "null", _step(places[column], bounds)
            case RowFunction(columns=((column, bounds),)):
                rest = "null" if addend.missing is None else f"{addend.missing}L"
                integer = _share(addend, places[column], bounds)
            case Present(column):
                rest, integer = "0L", "1L"
        found[name] = f"case when {missing[column]} then {rest} else {integer} end"
    return found


def _step(column: str, bounds: tuple[float, float]) -> str:
    lower, upper = (float(step) for step in grid_steps(bounds))
    scaled = f"cast({column} as double) * {1.0 / step_length(bounds)!r}D"
    return f"floor(least(greatest({scaled}, {lower!r}D), {upper!r}D) + 0.5D)"


def _share(row: RowFunction, column: str, bounds: tuple[float, float]) -> str:
    """The place between bounds: at most 2**31 steps lie above the lower one, and 2**31 times as many do not wrap."""
    share = plain_share(row)
    assert share is not None  # as `by_sql` asks
    length = share.upper - share.lower
    above = f"({_step(column, bounds)} - {share.lower}L) * {2 ** (share.bits + 1)}L"
    return f"({above} + {length}L) div {2 * length}L"


def _missing(column: str, dtype: Any) -> str:
    return f"{column} is null or isnan({column})" if dtype.is_float() else f"{column} is null"


def _summed(name: str) -> tuple[str, str, str]:
    """The number of integers, and the sums of their upper and lower limbs."""
    return (
        f"count({name}) as {name}_n",
        f"coalesce(sum(shiftright({name}, 16)), 0L) as {name}_upper",
        f"coalesce(sum({name} & {LIMB - 1}L), 0L) as {name}_lower",
    )


def table(found: list[tuple[Any, ...]], keys: dict[str, Any], integers: list[str]) -> pl.DataFrame:
    """The groups as the engine of rows has them."""
    columns = list(zip(*found, strict=True)) if found else [()] * (len(keys) + 1 + 3 * len(integers))
    table = {}
    for (name, dtype), values in zip(keys.items(), columns, strict=False):
        texts = [None if value is None else bytes(value).decode() for value in values] if dtype == pl.String else values
        table[name] = pl.Series(name, texts, dtype=dtype)
    numbers = [np.array(values, dtype=np.int64) for values in columns[len(keys) :]]
    table[ROWS] = pl.Series(ROWS, numbers[0])
    for place, name in enumerate(integers):
        count, upper, lower = numbers[1 + 3 * place : 4 + 3 * place]
        table[f"{name} n"], table[name] = pl.Series(count), pl.Series(upper * LIMB + lower)  # modulo 2**64
    return pl.DataFrame(table)
