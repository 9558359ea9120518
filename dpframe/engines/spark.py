"""Tables of Apache Spark: the executors compute totals of their own rows, and the driver adds these up.

No row reaches the driver. Each executor runs the Polars code of every other engine, on the rows of one partition at a
time; where there are units, one shuffle brings the rows of each into one partition.

No value fails on its way: strings leave Spark as bytes, since Spark lets them hold invalid UTF-8, and instants as
integers, since their time zone is only shown. Columns are told apart by place, since Spark tells names apart neither by
case nor where there are two of a kind.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from dpframe._dataclass import dataclass
from dpframe._version import VERSION
from dpframe.engines.engine import Partial, added_up
from dpframe.engines.source import ColumnType, types_of_spark
from dpframe.engines.spill import Spill
from dpframe.engines.task import Task
from dpframe.errors import InvalidArgument, ReleaseFailed, shown

ROWS = 2**18  # about so many are worked on at a time
MEMORY = 2**28  # bytes of units of one partition; beyond, they go through a file
MARK = "\0 not UTF-8: "  # no text of a table begins so, or it is marked as well
NEXT = "[89ab][0-9a-f]"  # a byte that goes on with a character
UTF8 = (  # well-formed UTF-8 in digits: the table of RFC 3629, section 4
    "^(?:[0-7][0-9a-f]"
    f"|(?:c[2-9a-f]|d[0-9a-f]){NEXT}"
    f"|(?:e0[ab][0-9a-f]|e[1-9abcef]{NEXT}|ed[89][0-9a-f]){NEXT}"
    f"|(?:f0[9ab][0-9a-f]|f[1-3]{NEXT}|f48[0-9a-f]){NEXT}{NEXT}"
    ")*$"
)
INSTANT = pl.Datetime("us", "UTC")
STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)


@dataclass(frozen=True)
class SparkTable:
    """The engine of a Spark DataFrame."""

    frame: Any

    def schema(self) -> Mapping[str, ColumnType]:
        """The columns as dpframe reads them; no job is run."""
        return types_of_spark(self.frame)

    def fold(self, columns: Sequence[str], piece: Callable[[Any], Partial], by: str | None) -> Partial:
        """The sum over pieces of partitions, or over partitions of whole units."""
        dtypes = self._dtypes(columns)
        return self._sum(dtypes, by, Whole(piece) if by is not None else InPieces(piece), piece(_empty(dtypes)))

    def push(self, task: Task) -> Partial | None:
        """Units: of each partition in bounded memory."""
        if task.by is None:
            return None
        dtypes = self._dtypes(task.columns)
        return self._sum(dtypes, task.by, InUnits(task), task.piece(_empty(dtypes)))

    def _dtypes(self, columns: Sequence[str]) -> dict[str, Any]:
        schema = self.schema()
        return {name: schema[name].polars for name in columns}

    def _sum(
        self, dtypes: dict[str, Any], by: str | None, answer: Callable[[Iterator[pl.DataFrame]], Partial], zero: Partial
    ) -> Partial:
        """The answer of each partition, as one row of bytes, added to the answer of no rows."""
        frame = self._chosen(dtypes, by)
        if by is not None:
            # Adaptive execution merges and splits partitions, but none of a shuffle whose number of them was chosen.
            frame = frame.repartition(_partitions(frame), f"c{list(dtypes).index(by)}")
        mapped = frame.mapInArrow(OnExecutor(dtypes, answer, (VERSION, pl.__version__)), "partial binary")
        return added_up([zero, *(pickle.loads(row[0]) for row in mapped.collect())])

    def _chosen(self, dtypes: Mapping[str, Any], by: str | None) -> Any:
        """The columns that are read, named by their places in `dtypes`: c0, c1, ..."""
        numbers = {name: number for number, name in enumerate(self.frame.columns)}
        numbered = self.frame.toDF(*(f"c{number}" for number in range(len(numbers))))
        expressions = [
            f"{_in_sql(f'c{numbers[name]}', dtype, by == name)} as c{number}"
            for number, (name, dtype) in enumerate(dtypes.items())
        ]
        return numbered.selectExpr(*(expressions or ["true as c0"]))


def _in_sql(column: str, dtype: Any, is_unit: bool) -> str:
    """A column as it leaves Spark; none of these expressions can fail on a value.

    Of floats that name units both zeros become one and NaN becomes null, as everywhere in dpframe: partitions are by a
    hash of bits.
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
    """Rows, piece by piece."""

    piece: Callable[[Any], Partial]

    def __call__(self, frames: Iterator[pl.DataFrame]) -> Partial:
        return added_up(map(self.piece, frames))


@dataclass(frozen=True)
class Whole:
    """All rows of some units in one piece."""

    piece: Callable[[Any], Partial]

    def __call__(self, frames: Iterator[pl.DataFrame]) -> Partial:
        return self.piece(pl.concat(frames))


@dataclass(frozen=True)
class InUnits:
    """All rows of some units, which are weighed together; in a file of the executor where they are many."""

    task: Task

    def __call__(self, frames: Iterator[pl.DataFrame]) -> Partial:
        with Spill(MEMORY, self.task.combine, self.task.weigh) as spill:
            for frame in frames:
                spill.add(self.task.coded(frame))
            return spill.total()


@dataclass(frozen=True)
class OnExecutor:
    """The work of an executor on a partition: Arrow batches in, one pickled Partial out.

    Errors are told without their words: Spark sends these to the driver, and writes them to logs.
    """

    dtypes: Mapping[str, Any]
    answer: Callable[[Iterator[pl.DataFrame]], Partial]
    versions: tuple[str, str]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        if (VERSION, pl.__version__) != self.versions:  # of an executor that came after `check_executors`
            raise ReleaseFailed("the versions of dpframe and Polars are not those of the driver")
        partial = self._answered(batches)
        if partial is None:
            raise ReleaseFailed("dpframe failed on this partition; why is withheld, since it may hold private values")
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([pickle.dumps(partial)], pyarrow.binary())], ["partial"])

    def _answered(self, batches: Iterator[Any]) -> Partial | None:
        try:
            return self.answer(self._frames(batches))
        except STOPS:
            raise
        except BaseException:  # a panic of the Polars engine is no Exception
            return None

    def _frames(self, batches: Iterator[Any]) -> Iterator[pl.DataFrame]:
        """Frames of many batches each, and one without rows, so that there is one at least."""
        yield _empty(self.dtypes)
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            if sum(kept.num_rows for kept in held) >= ROWS:
                yield self._frame(held)
                held = []
        if held:
            yield self._frame(held)

    def _frame(self, batches: list[Any]) -> pl.DataFrame:
        import pyarrow

        table = pl.DataFrame(pl.from_arrow(pyarrow.Table.from_batches(batches)))
        if not self.dtypes:
            return table
        columns = zip(self.dtypes.items(), table.get_columns(), strict=True)
        return pl.DataFrame([_brought(column, dtype).alias(name) for (name, dtype), column in columns])


def _brought(column: pl.Series, dtype: Any) -> pl.Series:
    """A column as its schema says, of what `_in_sql` made of it."""
    if dtype == pl.String:
        return texts(column)
    return column.cast(INSTANT) if dtype == INSTANT else column


def texts(column: pl.Series) -> pl.Series:
    """Bytes as text. What is no UTF-8 becomes its digits behind a mark: no two values become one, and none is lost.

    A text that begins with the mark is marked too. So a text is either itself, without a mark, or the digits of its
    bytes behind one; both ways lead back to the bytes.
    """
    marked = column.bin.starts_with(MARK.encode()).fill_null(False)
    try:
        if not marked.any():
            return column.cast(pl.String)
    except pl.exceptions.ComputeError:  # some are no UTF-8
        pass
    digits = column.bin.encode("hex")
    marked |= ~digits.str.contains(UTF8).fill_null(True)
    shown_as = pl.select(pl.lit(MARK) + digits).to_series()
    plain = digits.set(marked, "").str.decode("hex").cast(pl.String)  # of new bytes: a cast looks behind nulls too
    return plain.zip_with(~marked, shown_as).zip_with(column.is_not_null(), pl.Series([None], dtype=pl.String))


def check_executors(frame: Any) -> None:
    """Refuse executors of other versions than the driver's. They are asked by a job on the numbers from 0 to 1023.

    No row of the frame is read: what comes of it depends on the cluster alone. An executor that takes part only later
    is asked again before it reads a row.
    """

    def report(batches: Iterator[Any]) -> Iterator[Any]:  # carried there whole: dpframe may be missing
        import pyarrow

        try:
            import polars

            from dpframe import _version

            versions = f"dpframe {_version.VERSION}, Polars {polars.__version__}"
        except ImportError as error:
            versions = f"no {error.name}"
        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([versions])], ["found"])

    expected = f"dpframe {VERSION}, Polars {pl.__version__}"
    try:
        there = {row[0] for row in frame.sparkSession.range(1024).mapInArrow(report, "found string").collect()}
    except Exception as error:  # of made-up numbers, so that it may be shown
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
