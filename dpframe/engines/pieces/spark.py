"""Tables of Apache Spark: the executors compute totals of their own rows, and the driver adds these up.

No row reaches the driver. Each executor runs the Polars code of every other engine, on the rows of one partition at a
time. If there are units, rows become coded rows first (see `Task`). One shuffle brings the parts of units, as bytes, to
where they are weighed: Spark moves few rows of many bytes instead of many rows.

No value fails on its way. Strings leave Spark as bytes, since Spark lets them hold invalid UTF-8. Instants leave it as
integers, since their time zone is only shown. Columns are identified by position, since Spark ignores case in names and
allows duplicates.

Spark converts rows to Arrow value by value, and takes as long for a byte as for a word. So a word of 64 bits carries as
many narrow columns as it holds: all bits of each, and one that is set for a missing value. Nothing is lost, because
only bits are moved. The schema decides which columns share a word.

**Totals by keys that Spark computes itself**, if each row is protected: plain columns of plain dtypes.
Handing rows to Python takes Spark longer than adding them up. So Spark adds if it is proven that its expressions give
the integers of the Polars code and fail on no value; all other questions use rows. The question and the schema decide.
The proof, expression by expression:

- The integer of a value: doubles of Java and of Polars are IEEE 754 binary64, and both do the same operations on them:
  the value as a double (exact, except for 64-bit integers, which both round to nearest), times a power of two, clipped,
  plus 0.5, and its floor. The floor is at most 2**30 + 1, so a bigint does not overflow. Null and NaN are handled
  before, since Spark takes NaN for the greatest number.
- The place of such an integer between its bounds, which means add: one integer below 2**63 is divided by another.
  Neither is negative, so rounding down and rounding toward zero are the same.
- Sums: in two limbs of a value v = 2**16 a + b with 0 <= b < 2**16, since Spark fails if a sum passes 2**63. No sum of
  limbs does below 2**47 rows. They are joined modulo 2**64, as sums are everywhere.
- Keys: integers and strings (as bytes) are compared as they are. Only rows whose every key is declared for its column
  are grouped, so that Spark sends no other key to the driver: only exact totals of cells leave it.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpframe.engines.columns.identity import MARK, NOWHERE, UTF8, Declared
from dpframe.engines.columns.source import ColumnType, source_of, types_of_spark
from dpframe.engines.engine import Partial, added_up
from dpframe.engines.pieces.unit_parts import FAILED, Spill, as_pairs, cost, in_parts, received, together, versions
from dpframe.engines.sums.addends import ROWS, Terms
from dpframe.engines.sums.cells import Cells
from dpframe.engines.sums.compound import Parts
from dpframe.engines.sums.row_totals import of_groups
from dpframe.engines.task import RowTask, Task
from dpframe.errors import InvalidArgument, ReleaseFailed, shown
from dpframe.errors.tracebacks import withheld
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.query import gathers
from dpframe.queries.row_functions import OnGrid, Present, RowFunction, plain_share

KEYS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.String)
VALUES = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Float32, pl.Float64)
MOST_KEYS = 2**10  # keys of a column; Spark compares with each of them
MOST_CELLS = 2**14  # maximum rows that may come to the driver
LIMB = 2**16


def by_sql(task: RowTask) -> bool:
    """Return whether Spark can add up by itself; the question and the schema decide."""
    if not isinstance(task, Task) or task.conditional:  # finding keys is no sum
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
    """Return the totals of a Spark frame whose columns are named by position, c0, c1, ..., with strings as bytes."""
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
    """Return the cells of a task, with the declared keys as the columns compare them."""
    empty = pl.DataFrame(schema={name: column.polars for name, column in task.types.items()})
    return Cells.of(source_of(empty), task.query.keys)


def among(column: str, keys: Declared) -> str:
    """Return SQL for the rows whose key is declared; a comparison with null is neither true nor false."""
    values = ", ".join(_literal(value) for value in keys.values)
    either = [f"{column} in ({values})"] if values else []
    return f"({' or '.join([*either, *([f'{column} is null'] if keys.missing != NOWHERE else [])])})"


def _literal(value: int | str) -> str:
    return f"X'{value.encode().hex()}'" if isinstance(value, str) else f"{value}L"


def integers_of(task: Task, terms: Terms, places: dict[str, str]) -> dict[str, str]:
    """Return SQL for the integers that are summed, by the engine's names; null if there is none."""
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
    """Return SQL for the place between bounds: at most 2**31 steps above the lower one, times 2**31, do not wrap."""
    share = plain_share(row)
    assert share is not None  # `by_sql` checks this
    length = share.upper - share.lower
    above = f"({_step(column, bounds)} - {share.lower}L) * {2 ** (share.bits + 1)}L"
    return f"({above} + {length}L) div {2 * length}L"


def _missing(column: str, dtype: Any) -> str:
    return f"{column} is null or isnan({column})" if dtype.is_float() else f"{column} is null"


def _summed(name: str) -> tuple[str, str, str]:
    """Return SQL for the number of integers, and for the sums of their upper and lower limbs."""
    return (
        f"count({name}) as {name}_n",
        f"coalesce(sum(shiftright({name}, 16)), 0L) as {name}_upper",
        f"coalesce(sum({name} & {LIMB - 1}L), 0L) as {name}_lower",
    )


def table(found: list[tuple[Any, ...]], keys: dict[str, Any], integers: list[str]) -> pl.DataFrame:
    """Return the groups as the engine of rows has them."""
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


BITS = {pl.Boolean: 1, pl.Int8: 8, pl.Int16: 16, pl.Int32: 32, pl.Date: 32}
WORD_BITS = 64

AT_A_TIME = 2**17  # approximate rows to process at a time; with more, parts are objects too large for Java's memory
ROWS_OF_PART = 2**10  # rows of a part that are sent at a time; with fewer, each part takes longer than its rows
MOST_ROWS = 2**20  # rows to process at a time, however many parts there are
MEMORY = 2**28  # bytes of the units of one partition; beyond this, they go through a file
MOST_PARTS = 2**12
INSTANT = pl.Datetime("us", "UTC")
WORD = 2**32


@dataclass(frozen=True)
class Columns:
    """Columns that are read, each sent alone or with others in a word."""

    dtypes: Mapping[str, Any]
    unit: str | None = None  # sent alone: Spark shuffles by it

    @property
    def groups(self) -> list[list[str]]:
        """Names of each sent column: of one column, or of those that share a word, lowest bits first."""
        groups: list[list[str]] = []
        used: list[int] = []
        for name, dtype in self.dtypes.items():
            bits = WORD_BITS if name == self.unit or dtype not in BITS else BITS[dtype] + 1
            place = next((place for place, others in enumerate(used) if others + bits <= WORD_BITS), len(groups))
            if place == len(groups):
                groups.append([])
                used.append(0)
            groups[place].append(name)
            used[place] += bits
        return groups


def word_in_sql(columns: Sequence[tuple[str, Any]]) -> str:
    """Return one word of some columns of given dtypes, as a Spark expression."""
    fields, shift = [], 0
    for column, dtype in columns:
        bits = BITS[dtype]
        number = f"unix_date({column})" if dtype == pl.Date else column
        field = f"coalesce(cast({number} as bigint) & {2**bits - 1}L, {2**bits}L)"
        fields.append(f"shiftleft({field}, {shift})")
        shift += bits + 1
    return " | ".join(fields)


def unpacked(word: pl.Series, names: Sequence[str], dtypes: Mapping[str, Any]) -> dict[str, pl.Series]:
    """Return the columns that share a word."""
    words, shift, found = word.to_numpy(), 0, {}
    for name in names:
        bits = BITS[dtypes[name]]
        field = words >> shift
        values = (field & (2**bits - 1)).astype(np.bool_ if bits == 1 else f"int{bits}")  # the upper half is negative
        missing = pl.Series(field & 2**bits != 0)
        column = pl.Series(values).cast(dtypes[name])
        found[name] = column.zip_with(~missing, pl.Series([None], dtype=dtypes[name])) if missing.any() else column
        shift += bits + 1
    return found


@dataclass(frozen=True)
class SparkTable:
    """Engine of a Spark DataFrame."""

    frame: Any

    def schema(self) -> Mapping[str, ColumnType]:
        """Return the columns as dpframe reads them; no job is run."""
        return types_of_spark(self.frame)

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """Return the sum over pieces of partitions, or over partitions of whole units."""
        read = self._columns(columns, by)
        return self._sum(read, Whole(piece) if by is not None else InPieces(piece), piece(_empty(read.dtypes)))

    def push(self, task: Task) -> Partial | None:
        """Return totals of units, from coded rows in parts of whole units, in bounded memory; totals of rows by SQL."""
        read = self._columns(task.columns, task.by)
        if task.by is None:
            return self._by_sql(self._plain(read), task) if by_sql(task) else None
        chosen = self._chosen(read)
        parts = min(_partitions(chosen), MOST_PARTS)
        sent = chosen.mapInArrow(Sending(read, task, tuple(even_numbers(parts)), versions()), "part int, rows binary")
        answered = self._exchanged(sent, parts).mapInArrow(Weighing(task, versions()), "partial binary")
        return _added(answered, task.piece(_empty(read.dtypes)))

    def _by_sql(self, chosen: Any, task: Task) -> Partial | None:
        return totals_by_sql(chosen, task)

    def _exchanged(self, sent: Any, parts: int) -> Any:
        """Return the same parts, with those of one number in one partition.

        Adaptive execution merges and splits partitions, but not those of a shuffle with a chosen number of them.
        """
        return sent.repartition(parts, "part")

    def _columns(self, columns: Sequence[str], by: str | None) -> Columns:
        schema = self.schema()
        return Columns({name: schema[name].polars for name in columns}, by)

    def _sum(self, read: Columns, answer: Callable[[Iterator[pl.DataFrame]], Partial], zero: Partial) -> Partial:
        """Return the answers of all partitions, one row of bytes each, added to the answer of no rows."""
        frame = self._chosen(read)
        if read.unit is not None:
            frame = frame.repartition(_partitions(frame), f"c{read.groups.index([read.unit])}")
        return _added(frame.mapInArrow(OnExecutor(read, answer, versions()), "partial binary"), zero)

    def _plain(self, read: Columns) -> Any:
        """Return the columns that are read, named by position: c0, c1, ..."""
        numbers = {name: number for number, name in enumerate(self.frame.columns)}
        numbered = self.frame.toDF(*(f"c{number}" for number in range(len(numbers))))
        expressions = [
            f"{_in_sql(f'c{numbers[name]}', dtype, read.unit == name)} as c{number}"
            for number, (name, dtype) in enumerate(read.dtypes.items())
        ]
        return numbered.selectExpr(*(expressions or ["true as c0"]))

    def _chosen(self, read: Columns) -> Any:
        """Return the columns as they go to Python: c0, c1, ... are single columns, or words that several share."""
        places = {name: f"c{place}" for place, name in enumerate(read.dtypes)}
        groups = [[(places[name], read.dtypes[name]) for name in group] for group in read.groups]
        sent = [group[0][0] if len(group) == 1 else word_in_sql(group) for group in groups]
        return self._plain(read).selectExpr(*(f"{sql} as c{place}" for place, sql in enumerate(sent or ["c0"])))


def _in_sql(column: str, dtype: Any, is_unit: bool) -> str:
    """Return a column as it leaves Spark, in SQL; none of these expressions can fail on a value.

    For floats that name units, both zeros become one and NaN becomes null, as everywhere in dpframe: Spark partitions
    by a hash of bits.
    """
    if dtype == pl.String:
        return f"cast({column} as binary)"
    if dtype == INSTANT:
        return f"unix_micros({column})"
    if is_unit and dtype.is_float():
        zero = f"cast(0 as {'float' if dtype == pl.Float32 else 'double'})"
        return f"case when isnan({column}) then null when {column} = {zero} then {zero} else {column} end"
    return column


def _empty(dtypes: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(schema=dtypes or {"c0": pl.Boolean})


def _partitions(frame: Any) -> int:
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))


@dataclass(frozen=True)
class InPieces:
    """Answer from rows, piece by piece."""

    piece: Callable[[Any], Partial]

    def __call__(self, frames: Iterator[pl.DataFrame]) -> Partial:
        return added_up(map(self.piece, frames))


@dataclass(frozen=True)
class Whole:
    """Answer from all rows of some units in one piece."""

    piece: Callable[[Any], Partial]

    def __call__(self, frames: Iterator[pl.DataFrame]) -> Partial:
        return self.piece(pl.concat(frames))


@dataclass(frozen=True)
class OnExecutor:
    """Work of an executor on a partition: Arrow batches in, one pickled Partial out.

    Errors lose their messages, because Spark sends these to the driver and writes them to logs.
    """

    read: Columns
    answer: Callable[[Iterator[pl.DataFrame]], Partial]
    versions: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        check_versions(self.versions)
        empty = _empty(self.read.dtypes)  # so that there is at least one frame
        frames = itertools.chain([empty], frames_of(batches, self.read, AT_A_TIME))
        yield _as_batch(partial=[pickle.dumps(answered(self.answer, frames))])
        keep_loaded()


@dataclass(frozen=True)
class Sending:
    """Work of an executor that sends the rows of a partition: one row of bytes for each part of units."""

    read: Columns
    task: Task
    numbers: tuple[int, ...]  # numbers of the parts, as Spark knows them
    versions: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        check_versions(self.versions)
        rows = max(AT_A_TIME, min(len(self.numbers) * ROWS_OF_PART, MOST_ROWS))
        frames = frames_of(batches, self.read, rows)
        while sent := answered(self._batch, frames):
            yield from sent
        keep_loaded()

    def _batch(self, frames: Iterator[pl.DataFrame]) -> list[Any]:
        """Return the parts of the next frame, in one batch; no batch if there is no frame."""
        return [self._sent(frame) for frame in itertools.islice(frames, 1)]

    def _sent(self, frame: pl.DataFrame) -> Any:
        coded = self.task.coded(frame)
        parts, rows = in_parts(coded, coded["unit"], len(self.numbers), self.task.combine)
        return _as_batch(part=[self.numbers[part] for part in parts], rows=rows)


@dataclass(frozen=True)
class Weighing:
    """Work of an executor on parts that hold all rows of their units; many rows go through a file."""

    task: Task
    versions: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        check_versions(self.versions)
        for partial in answered(self._weighed, batches):
            yield _as_batch(partial=[pickle.dumps(partial)])
        keep_loaded()

    def _weighed(self, batches: Iterator[Any]) -> list[Partial]:
        """Return the total of a partition; none if nothing was sent to it."""
        tables: list[pl.DataFrame] = []
        held = 0
        sent = (received(rows.as_py()) for batch in batches for rows in batch.column(1))
        for table in sent:
            tables.append(table)
            held += cost(table)
            if held > MEMORY:
                return [self._spilled(itertools.chain(tables, sent))]
        return [self.task.weigh(together(self.task, tables))] if tables else []

    def _spilled(self, tables: Iterator[pl.DataFrame]) -> Partial:
        with Spill(MEMORY, self.task.combine, lambda pairs: self.task.weigh(together(self.task, [pairs]))) as spill:
            for table in tables:
                spill.add(as_pairs(self.task, table))
            return spill.total()


def check_versions(expected: str) -> None:
    """Fail on an executor that joined after `check_executors` with other versions."""
    if versions() != expected:
        raise ReleaseFailed("the versions of dpframe, Polars and pandas are not those of the driver")


@functools.cache
def keep_loaded() -> None:
    """Exclude from garbage collection what this process has loaded by the end of its first task.

    Spark asks for a collection after each task, which takes a tenth of a second to look through all modules.
    """
    import gc

    gc.freeze()


def answered(function: Callable[[Any], Any], argument: Any) -> Any:
    """Return the result of a function; raise its errors without their messages."""
    found = withheld(lambda: function(argument))
    if found is None:
        raise ReleaseFailed(FAILED)
    return found


def even_numbers(parts: int) -> list[int]:
    """Return a number for each of `parts` partitions that Spark sends there, so that each has one part.

    Spark takes the remainder of a hash of integers, MurmurHash3 (A. Appleby, 2011; 32 bits, seed 42). With another
    hash, partitions would have several parts or none, and answers would be the same.
    """
    numbers: dict[int, int] = {}
    for number in itertools.count():
        place = _signed(_murmur(number)) % parts
        numbers.setdefault(place, number)
        if len(numbers) == parts:
            return [numbers[place] for place in range(parts)]
    raise AssertionError


def _murmur(number: int) -> int:
    mixed = _turned(number * 0xCC9E2D51 % WORD, 15) * 0x1B873593 % WORD
    mixed = (_turned(42 ^ mixed, 13) * 5 + 0xE6546B64) % WORD ^ 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B % WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 % WORD
    return mixed ^ mixed >> 16


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) % WORD


def _signed(word: int) -> int:
    return word - WORD if word >= WORD // 2 else word


def _added(partials: Any, zero: Partial) -> Partial:
    """Return the sum of the partials that executors answer, as rows of bytes, and of the partial of no rows."""
    return added_up([zero, *(pickle.loads(row[0]) for row in partials.collect())])


def _as_batch(**columns: list[Any]) -> Any:
    import pyarrow

    types = {"part": pyarrow.int32()}
    arrays = [pyarrow.array(values, types.get(name, pyarrow.binary())) for name, values in columns.items()]
    return pyarrow.RecordBatch.from_arrays(arrays, [*columns])


def frames_of(batches: Iterator[Any], read: Columns, rows: int) -> Iterator[pl.DataFrame]:
    """Yield frames of at least `rows` rows, except for the last."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(kept.num_rows for kept in held) >= rows:
            yield _frame(held, read)
            held = []
    if held:
        yield _frame(held, read)


def _frame(batches: list[Any], read: Columns) -> pl.DataFrame:
    import pyarrow

    table = pl.DataFrame(pl.from_arrow(pyarrow.Table.from_batches(batches)))
    if not read.dtypes:
        return table
    found: dict[str, pl.Series] = {}
    for group, column in zip(read.groups, table.get_columns(), strict=True):
        if len(group) == 1:
            found[group[0]] = _brought(column, read.dtypes[group[0]])
        else:
            found |= unpacked(column, group, read.dtypes)
    return pl.DataFrame({name: found[name] for name in read.dtypes})


def _brought(column: pl.Series, dtype: Any) -> pl.Series:
    """Return a column as its schema says, from what `_in_sql` made of it."""
    if dtype == pl.String:
        return texts(column)
    return column.cast(INSTANT) if dtype == INSTANT else column


def texts(column: pl.Series) -> pl.Series:
    """Return bytes as text. Bytes that are not UTF-8 become digits after a mark: no two values become one.

    A text that begins with the mark is marked too. So a text is either itself, without a mark, or the digits of its
    bytes after one. Both forms lead back to the bytes, so nothing is lost.
    """
    marked = column.bin.starts_with(MARK.encode()).fill_null(False)
    try:
        if not marked.any():
            return column.cast(pl.String)
    except pl.exceptions.ComputeError:  # some are not UTF-8
        pass
    digits = column.bin.encode("hex")
    marked |= ~digits.str.contains(UTF8).fill_null(True)
    shown_as = pl.select(pl.lit(MARK) + digits).to_series()
    plain = digits.set(marked, "").str.decode("hex").cast(pl.String)  # new bytes: a cast also looks behind nulls
    return plain.zip_with(~marked, shown_as).zip_with(column.is_not_null(), pl.Series([None], dtype=pl.String))


def check_executors(frame: Any) -> None:
    """Refuse executors with other versions than the driver. A job on the numbers from 0 to 1023 asks them.

    No row of the frame is read: the result depends on the cluster alone. An executor that joins later is asked again
    before it reads a row.
    """

    def report(batches: Iterator[Any]) -> Iterator[Any]:  # self-contained: dpframe may be missing there
        import pyarrow

        try:
            from importlib.metadata import version

            import polars

            from dpframe import _version

            found = f"dpframe {_version.VERSION}, Polars {polars.__version__}, pandas {version('pandas')}"
        except ImportError as error:
            found = f"no {error.name}"
        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([found])], ["found"])

    expected = versions()
    try:
        there = {row[0] for row in frame.sparkSession.range(1024).mapInArrow(report, "found string").collect()}
    except Exception as error:  # it is about made-up numbers, so it may be shown
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InvalidArgument(
            f"frame must be of a session whose executors run Python with pyarrow, and they fail ({said}). Nothing "
            "was charged. Install dpframe on them."
        ) from None
    if there != {expected}:
        raise InvalidArgument(
            f"frame must be of a session whose executors have {expected}, as the driver has, not "
            f"{shown('; '.join(sorted(there - {expected})))}. Nothing was charged. Install these versions there."
        )
