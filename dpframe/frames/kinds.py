"""Detection of the library of a frame without importing any, and of threads that a forked process has lost.

A query of Polars or DuckDB waits forever for lost threads. A fork copies the memory of a process, but only the thread
that forks. If a thread pool had started before, the child believes that the pool exists, but none of its threads does.
Only a query reveals this. So dpframe runs one on made-up rows, in its own thread, for a bounded time, once per process,
and only in a forked process. The process may have forked before it imported dpframe, so nothing is recorded before a
fork.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import polars as pl

from dpframe.errors import InvalidArgument, InvalidType, named
from dpframe.errors.tracebacks import said

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame
    from polars import LazyFrame as PolarsLazyFrame

    __all__ = ["PandasFrame", "PolarsFrame", "PolarsLazyFrame"]

Library = Literal["pandas", "polars"]
T = TypeVar("T")

OLDEST_DUCKDB = 2  # the first part of its version; in older ones a read may end early without an error

OF_PLANS = (  # errors that name columns and files of a plan, and quote no row
    pl.exceptions.ColumnNotFoundError,
    pl.exceptions.DuplicateError,
    pl.exceptions.SchemaFieldNotFoundError,
    pl.exceptions.StructFieldNotFoundError,
    FileNotFoundError,
    NotADirectoryError,
    IsADirectoryError,
    PermissionError,
)

EXPORT = (
    "Export its columns to Parquet with the tools of the database, and scan them: dpf.of(pl.scan_parquet(path)). "
    "A table of DuckDB is read as it is: dpf.of(connection.sql(query))."
)
WAYS_OUT = {  # advice by package that narwhals reads but dpframe refuses: a row may decide how its values convert
    "ibis": EXPORT,
    "sqlframe": EXPORT,
    "modin": "Convert it: dpf.of(frame.modin.to_pandas()).",
    "cudf": "Convert it: dpf.of(frame.to_arrow()).",
    "unknown": "Make one: pl.DataFrame(...).",
}


def schema_of(frame: pl.LazyFrame) -> pl.Schema:
    """Return the schema of a LazyFrame."""
    return planned("frame", frame.collect_schema)


def planned(argument: str, columns: Callable[[], T]) -> T:
    """Return the columns of a plan.

    Polars' own error would show the plan, with the rows of Parquet files, or quote a row of a file of text whose types
    it guesses. Its words are shown for wrong names and missing files alone, up to an equals sign: in a path, such as
    ``patient=Ann/stays.parquet``, a value follows. A file that may not be read was perhaps found in a folder, so it is
    not named.
    """
    try:
        return columns()
    except Exception as error:
        known = isinstance(error, OF_PLANS)
        withheld = f"{type(error).__name__}, whose message may quote rows and is withheld"
        told = type(error).__name__ if isinstance(error, PermissionError) else said(error)
        words = re.sub("(?s)=.*", "=...", told) if known else withheld
        correct = "Correct the path, or its permissions." if isinstance(error, OSError) else "Correct the plan."
        way_out = correct if known else "Look for the cause with collect_schema()."
        raise InvalidArgument(
            f"{argument} must have columns that follow from its plan ({words}). Nothing was charged. {way_out}"
        ) from None


def is_frame(value: object) -> bool:
    """Return whether a value is a frame that narwhals or dpframe reads; a public frame may be of any library."""
    if type(value) in (list, tuple, range, dict, str, int, float, type(None)):
        return False  # most keys have these types, so no library is asked
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)) or is_pandas(value) or is_dataset(value) or is_engine(value):
        return True
    if is_spark(value) or is_dask(value):
        return True
    if isinstance(value, (list, tuple, range, dict, str, int, float)):
        return False  # a subclass: narwhals is not needed, and its import takes much of a process's start-up time
    import narwhals.stable.v2 as nw

    try:
        native = nw.from_native(value, pass_through=True)
    except nw.exceptions.DuplicateError:  # a frame with two columns of one name; the code that reads it raises an error
        return True
    return isinstance(native, (nw.DataFrame, nw.LazyFrame))


def is_pandas(value: object) -> bool:
    """Return whether a value is a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and hasattr(pandas, "DataFrame") and isinstance(value, pandas.DataFrame)


def is_collected(value: object) -> bool:
    """Return whether a value is a DataFrame in memory, of pandas or Polars, as results are."""
    return isinstance(value, pl.DataFrame) or is_pandas(value)


def is_arrow(value: object) -> bool:
    """Return whether a value is a pyarrow Table."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and hasattr(pyarrow, "Table") and isinstance(value, pyarrow.Table)


def is_dataset(value: object) -> bool:
    """Return whether a value is a pyarrow Dataset."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(value, dataset.Dataset)


def is_relation(value: object) -> bool:
    """Return whether a value is a DuckDB relation."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(value, duckdb.DuckDBPyRelation)


def is_spark(value: object) -> bool:
    """Return whether a value is a Spark DataFrame, of a session in this process or of Spark Connect."""
    modules = (sys.modules.get("pyspark.sql"), sys.modules.get("pyspark.sql.connect.dataframe"))
    return any(hasattr(module, "DataFrame") and isinstance(value, module.DataFrame) for module in modules if module)


def is_dask(value: object) -> bool:
    """Return whether a value is a Dask DataFrame."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and hasattr(dask, "DataFrame") and isinstance(value, dask.DataFrame)


def is_engine(value: object) -> bool:
    """Return whether a value is an external engine: an object with the methods of an engine."""
    if isinstance(value, (type, pl.DataFrame, pl.LazyFrame)) or is_relation(value) or is_spark(value):
        return False
    if is_dask(value) or _foreign(value):  # even if future versions of these libraries add such methods
        return False
    return all(callable(getattr(value, name, None)) for name in ("schema", "fold"))


def library_of(frame: Any) -> Library:
    """Return the library of results from this frame: pandas for pandas, Spark and Dask, Polars for any other.

    For Spark, results are Polars frames if pandas is not installed.
    """
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return "polars"
    if is_spark(frame):
        return "pandas" if importlib.util.find_spec("pandas") else "polars"
    return "pandas" if is_pandas(frame) or is_dask(frame) else "polars"


def checked_frame(value: object) -> Any:
    """Return the frame without its narwhals wrapper; refuse unsupported and streaming frames.

    The kind decides, never a row. Other lazy frames have their rows elsewhere: dpframe cannot know how a database
    converts values, and a failed conversion would fail the release. Other eager frames choose dtypes by their rows.
    """
    frame = unwrapped(value)
    own = isinstance(frame, (pl.DataFrame, pl.LazyFrame)) or is_pandas(frame) or is_arrow(frame) or is_dataset(frame)
    if not own and not (is_relation(frame) or is_spark(frame) or is_dask(frame) or is_engine(frame)):
        package = _foreign(frame)
        raise InvalidType(
            "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
            f"not {named(frame)}{f' of {package}' if package else ''}. {_made_of(frame, package)}"
        )
    if is_relation(frame):
        check_duckdb()
    if is_spark(frame) and frame.isStreaming:
        raise InvalidArgument(
            "frame must be a table with an end, not a streaming DataFrame of Spark. Write a part of it to files "
            "(writeStream), and read these (spark.read)."
        )
    if is_dask(frame) and not is_pandas(frame._meta):
        raise InvalidType(
            "frame must be a Dask DataFrame with partitions of pandas, not of another library. "
            'Convert them: frame.to_backend("pandas").'
        )
    return frame


def check_duckdb() -> None:
    """Refuse a version of DuckDB in which another query on the connection ends a read early, without an error."""
    version = str(sys.modules["duckdb"].__version__)
    if int(version.partition(".")[0]) < OLDEST_DUCKDB:
        raise InvalidArgument(
            f"duckdb must be version {OLDEST_DUCKDB}.0 or newer, not {version}: in older versions, other queries on "
            "the connection make dpframe miss rows. Nothing was charged. Upgrade it: pip install 'dpframe[duckdb]'."
        )


@contextmanager
def idle_connection() -> Iterator[None]:
    """Refuse a relation of DuckDB whose connection another query or thread uses."""
    try:
        yield
    except sys.modules["duckdb"].ResourceInUseException:
        raise InvalidArgument(
            "frame must be of an idle connection, and another query or thread uses this one. Nothing was charged. "
            "Make it from a cursor of its own: dpf.of(connection.cursor().sql(query))."
        ) from None


def unwrapped(value: object) -> Any:
    """Return the frame or column inside a narwhals wrapper, or any other value unchanged."""
    narwhals = sys.modules.get("narwhals")
    if narwhals is None or not isinstance(value, (narwhals.DataFrame, narwhals.LazyFrame, narwhals.Series)):
        return value
    return value.to_native()


def _foreign(value: object) -> str | None:
    """Return the package of a refused frame, found by the classes of the value; None for any other value."""
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((package for package in packages if package in WAYS_OUT), None)


def _made_of(value: object, package: str | None) -> str:
    """Return advice on how to turn an unsupported value into a frame."""
    if package is not None:
        return WAYS_OUT[package]
    if isinstance(value, (str, Path)):
        return "Read the file first: dpf.of(pl.scan_parquet(path))."
    if callable(getattr(value, "to_frame", None)):
        return "Take its frame, and name the column in the verb."
    if callable(getattr(value, "sql", None)):
        return "Ask it for a table: dpf.of(connection.sql(...))."
    for name in ("to_arrow", "to_pandas"):
        if callable(getattr(value, name, None)):
            return f"Convert it: dpf.of(frame.{name}())."
    return WAYS_OUT["unknown"]


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN (also a signaling NaN of decimals), NaT or pandas.NA.

    Only the methods of built-in classes run, never those of a cell's own class: these may warn, print or end the
    process. Comparing a signaling NaN would set flags in the caller's decimal context.
    """
    try:
        if isinstance(value, float):
            return float.__ne__(value, value)
        if isinstance(value, Decimal):
            return Decimal.is_nan(value)
        if isinstance(value, np.generic):
            return value.dtype.kind in "fcmM" and bool(np.generic.__ne__(value, value))
        if isinstance(value, complex):
            return complex.__ne__(value, value)
    except Exception:  # the value claims a class that it does not have
        return False
    pandas = sys.modules.get("pandas")
    return value is None or any(value is getattr(pandas, name, ...) for name in ("NA", "NaT"))


def _meet_arrays() -> None:
    """Let Polars handle its first array in one thread, while the others wait for this import.

    Polars then imports NumPy. If two threads do so at once, one of them fails: Polars keeps its own `_globals`, which
    NumPy's module of that name replaces meanwhile. A TypeError means that a thread of the caller came first.
    """
    with suppress(TypeError):
        pl.Series(np.zeros(0))


_meet_arrays()


PATIENCE = 5.0  # seconds to wait for a query that takes milliseconds, even if other work keeps all processors busy
SHORT_PATIENCE = 1.0  # seconds to wait if the list of the process's threads shows none of Polars
FORKED = 0x40  # PF_FORKNOEXEC of Linux: the process was forked and has started no program since
WAY_OUT = (
    'a query would never end. Nothing was charged. Start workers with multiprocessing.get_context("spawn") or '
    '"forkserver".'
)


def check_threads(frame: Any = None) -> None:
    """Refuse a process in which a query of Polars, or of a DuckDB relation, would never end. Read no row.

    Refuse a LazyFrame and a Dask DataFrame, which are read in threads, also in a process that starts none any more.
    """
    if not polars_works():
        raise InvalidArgument(f"the process must not be forked after Polars had started its threads: {WAY_OUT}")
    if _is_forked() and is_relation(frame) and not _ends(partial(_ask_duckdb, frame), PATIENCE):
        raise InvalidArgument(
            "frame must be a relation of a connection that was opened in this process, not before it was forked: "
            f"{WAY_OUT}"
        )
    if (isinstance(frame, pl.LazyFrame) or is_dask(frame)) and not _starts_threads():
        raise InvalidArgument(
            f"frame must be in memory where no thread starts, as in an atexit handler, not {named(frame)}. Nothing "
            "was charged. Release before the main thread ends."
        )


def _starts_threads() -> bool:
    """Return whether an executor of Python starts a thread, which it does not once the main thread has ended."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
    except RuntimeError:
        return False
    return True


_left: list[Callable[[], object]] = []  # queries that did not end; they may keep a connection busy, which fails others


@cache
def polars_works() -> bool:
    """Return whether a Polars query ends in this process."""
    return not _is_forked() or _ends(_ask_polars, _patience())


@cache
def _is_forked() -> bool:
    """Return whether the process is a fork of another one; True if that is unknown."""
    if not hasattr(os, "fork"):
        return False
    try:
        flags = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[6])
    except (OSError, ValueError, IndexError):
        return True
    return not flags or bool(flags & FORKED)  # a sandbox that keeps no flags shows 0


def _forget() -> None:
    """Clear, in a forked child, the answers that are true of its parent."""
    polars_works.cache_clear()
    _is_forked.cache_clear()
    _left.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _patience() -> float:
    pl.thread_pool_size()  # starts the threads, unless the process believes that they exist
    try:
        names = [task.read_bytes() for task in Path("/proc/self/task").glob("*/comm")]
    except OSError:
        return PATIENCE
    known = names and not any(name.startswith(b"polars-") and name[7:8].isdigit() for name in names)
    return SHORT_PATIENCE if known else PATIENCE


def _ends(ask: Callable[[], object], patience: float) -> bool:
    """Return whether a query ends in time; leave one that does not alone in its thread.

    A query that fails counts as ended, unless an earlier one never ended: the user's own query raises the error later.
    """
    ended, failed = threading.Event(), threading.Event()

    def asked() -> None:
        try:
            ask()
        except BaseException:
            failed.set()
        finally:
            ended.set()

    threading.Thread(target=asked, daemon=True).start()
    if not ended.wait(patience):
        _left.append(ask)
    return ended.is_set() and not (failed.is_set() and _left)


def _ask_polars() -> None:
    """Query each thread pool: the one that computes, the one that streams, and the one that reads files."""
    frame = pl.DataFrame({"group": [0, 1, 0], "value": [1, 2, 3]})
    frame.group_by("group").agg(pl.col("value").sum())
    file = BytesIO()
    frame.write_parquet(file)
    pl.scan_parquet(file).filter(pl.col("value") > 1).collect(engine="streaming")


def _ask_duckdb(relation: Any) -> None:
    """Let the connection of the relation read a new file, for which DuckDB uses threads from version 2.0."""
    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"value": [1, 2, 3]}), file)
        path = str(file).replace("'", "''")
        nothing = relation.limit(0).aggregate("count(*) as n")
        nothing.project(f"(select sum(value) from read_parquet('{path}')) as total").fetchall()
