"""The library of a frame, told without importing any that is not there; and threads that a forked child does not have.

A query of Polars or DuckDB would wait for such threads for ever. A fork copies the memory of a process, and of its
threads the one that forks. Where a pool of threads had started, the child believes that it is there, and none of its
threads is. Only a query tells, so one of made-up rows is asked, in a thread of its own, for a bounded time, once in a
process; and only where the process is a fork. It may have been forked before it imported dpframe, so nothing is noted
before a fork.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from dpframe.errors import InvalidArgument, InvalidType, named

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame
    from polars import LazyFrame as PolarsLazyFrame

    __all__ = ["PandasFrame", "PolarsFrame", "PolarsLazyFrame"]

Library = Literal["pandas", "polars"]

EXPORT = (
    "Export its columns to Parquet with the tools of the database, and scan them: dpf.of(pl.scan_parquet(path)). "
    "A table of DuckDB is read as it is: dpf.of(connection.sql(query))."
)
WAYS_OUT = {  # of the kinds that narwhals reads and dpframe refuses: what their values become, a row may decide
    "ibis": EXPORT,
    "sqlframe": EXPORT,
    "modin": "Convert it: dpf.of(frame.modin.to_pandas()).",
    "cudf": "Convert it: dpf.of(frame.to_arrow()).",
    "unknown": "Make one: pl.DataFrame(...).",
}


def is_frame(value: object) -> bool:
    """Tell whether a value is a frame of any library that narwhals reads, or dpframe itself; public ones may be any."""
    if type(value) in (list, tuple, range, dict, str, int, float, type(None)):
        return False  # as most keys are: nobody needs to be asked
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)) or is_pandas(value) or is_dataset(value) or is_engine(value):
        return True
    if is_spark(value) or is_dask(value):
        return True
    if isinstance(value, (list, tuple, range, dict, str, int, float)):
        return False  # of a class of its own: narwhals takes a good part of the start of a process, and is not needed
    import narwhals.stable.v2 as nw

    try:
        native = nw.from_native(value, pass_through=True)
    except nw.exceptions.DuplicateError:  # it is one, of which two columns have one name: whoever reads it says so
        return True
    return isinstance(native, (nw.DataFrame, nw.LazyFrame))


def is_pandas(value: object) -> bool:
    """Tell whether a value is a pandas DataFrame; pandas is not imported to find out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and hasattr(pandas, "DataFrame") and isinstance(value, pandas.DataFrame)


def is_collected(value: object) -> bool:
    """Tell whether a value is a DataFrame as results are: of pandas, or of Polars with its rows."""
    return isinstance(value, pl.DataFrame) or is_pandas(value)


def is_arrow(value: object) -> bool:
    """Tell whether a value is a pyarrow Table."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and hasattr(pyarrow, "Table") and isinstance(value, pyarrow.Table)


def is_dataset(value: object) -> bool:
    """Tell whether a value is a pyarrow Dataset."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(value, dataset.Dataset)


def is_relation(value: object) -> bool:
    """Tell whether a value is a DuckDB relation."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(value, duckdb.DuckDBPyRelation)


def is_spark(value: object) -> bool:
    """Tell whether a value is a DataFrame of Apache Spark, of a session in this process or of Spark Connect."""
    modules = (sys.modules.get("pyspark.sql"), sys.modules.get("pyspark.sql.connect.dataframe"))
    return any(hasattr(module, "DataFrame") and isinstance(value, module.DataFrame) for module in modules if module)


def is_dask(value: object) -> bool:
    """Tell whether a value is a Dask DataFrame."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and hasattr(dask, "DataFrame") and isinstance(value, dask.DataFrame)


def is_engine(value: object) -> bool:
    """Tell whether a value is an engine from outside: an object that has its methods."""
    if isinstance(value, (type, pl.DataFrame, pl.LazyFrame)) or is_relation(value) or is_spark(value):
        return False
    if is_dask(value) or _foreign(value):  # whatever methods their versions to come have
        return False
    return all(callable(getattr(value, name, None)) for name in ("schema", "fold"))


def library_of(frame: Any) -> Library:
    """The library of the results from this frame: pandas for pandas, Spark and Dask, Polars for any other.

    Where pandas is not installed, they are of Polars for Spark too.
    """
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return "polars"
    if is_spark(frame):
        return "pandas" if importlib.util.find_spec("pandas") else "polars"
    return "pandas" if is_pandas(frame) or is_dask(frame) else "polars"


def checked_frame(value: object) -> Any:
    """The frame itself, where narwhals is wrapped around one; refuse what dpframe does not read, and what has no end.

    The kind decides, and no row. The rows of other lazy frames are elsewhere: what a database makes of a value, dpframe
    cannot know, and one that it cannot hand over would fail the release. Other eager ones choose dtypes by their rows.
    """
    frame = unwrapped(value)
    own = isinstance(frame, (pl.DataFrame, pl.LazyFrame)) or is_pandas(frame) or is_arrow(frame) or is_dataset(frame)
    if not own and not (is_relation(frame) or is_spark(frame) or is_dask(frame) or is_engine(frame)):
        package = _foreign(frame)
        raise InvalidType(
            "frame must be a table of pandas, Polars, Arrow, DuckDB, Spark or Dask, or an engine, "
            f"not {named(frame)}{f' of {package}' if package else ''}. {_made_of(frame, package)}"
        )
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


def unwrapped(value: object) -> Any:
    """The frame or column that narwhals is wrapped around; any other value as it is."""
    narwhals = sys.modules.get("narwhals")
    if narwhals is None or not isinstance(value, (narwhals.DataFrame, narwhals.LazyFrame, narwhals.Series)):
        return value
    return value.to_native()


def _foreign(value: object) -> str | None:
    """The package whose frames are refused that made a value, by the classes that it is of."""
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((package for package in packages if package in WAYS_OUT), None)


def _made_of(value: object, package: str | None) -> str:
    """The way to a frame from what is none."""
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
    """None, NaN (of decimals the signaling one too), NaT and pandas.NA; what else there is says nothing of itself.

    Only the classes that have such values are asked, and none of a cell's own: its methods may warn, print or end all,
    and a signaling NaN sets flags of the caller's context where it is compared.
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
    except Exception:  # it says that it is of a class that it is not of
        return False
    pandas = sys.modules.get("pandas")
    return value is None or any(value is getattr(pandas, name, ...) for name in ("NA", "NaT"))


def _meet_arrays() -> None:
    """Let Polars meet an array in one thread, while the others wait for this import.

    It imports NumPy then, and where two threads are first at once one of them fails: Polars keeps its own `_globals`,
    which NumPy's module of that name replaces meanwhile. A TypeError says that a thread of the caller was there first.
    """
    with suppress(TypeError):
        pl.Series(np.zeros(0))


_meet_arrays()


PATIENCE = 5.0  # seconds for a query that takes milliseconds, also where others keep all processors busy
SHORT_PATIENCE = 1.0  # where the threads of the process are listed as well, and none is of Polars
FORKED = 0x40  # PF_FORKNOEXEC of Linux: forked, and no program was started since
WAY_OUT = (
    'a query would never end. Nothing was charged. Start workers with multiprocessing.get_context("spawn") or '
    '"forkserver".'
)


def check_threads(frame: Any = None) -> None:
    """Refuse a process in which Polars, or DuckDB for a relation of its own, would never end. No row is read."""
    if not polars_works():
        raise InvalidArgument(f"the process must not be forked after Polars had started its threads: {WAY_OUT}")
    if _is_forked() and is_relation(frame) and not _ends(partial(_ask_duckdb, frame), PATIENCE):
        raise InvalidArgument(
            "frame must be a relation of a connection that was opened in this process, not before it was forked: "
            f"{WAY_OUT}"
        )


_left: list[Callable[[], object]] = []  # queries that have not ended: what they asked may be busy, and fail at once


@cache
def polars_works() -> bool:
    """Tell whether a query of Polars ends in this process."""
    return not _is_forked() or _ends(_ask_polars, _patience())


@cache
def _is_forked() -> bool:
    """Tell whether the process goes on from where another was; True where that is not known."""
    if not hasattr(os, "fork"):
        return False
    try:
        flags = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[6])
    except (OSError, ValueError, IndexError):
        return True
    return not flags or bool(flags & FORKED)  # a sandbox that keeps no flags shows 0


def _forget() -> None:
    """In a forked child: what was found is the parent's."""
    polars_works.cache_clear()
    _is_forked.cache_clear()
    _left.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _patience() -> float:
    pl.thread_pool_size()  # which starts the threads, unless they are believed to be there
    try:
        names = [task.read_bytes() for task in Path("/proc/self/task").glob("*/comm")]
    except OSError:
        return PATIENCE
    known = names and not any(name.startswith(b"polars-") and name[7:8].isdigit() for name in names)
    return SHORT_PATIENCE if known else PATIENCE


def _ends(ask: Callable[[], object], patience: float) -> bool:
    """Tell whether a query ends within the time. One that does not is left alone in its thread.

    One that fails has ended: what is wrong is told when the question itself is tried.
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
    """Each pool is asked: the one that computes, the one that streams, and the one that reads files."""
    frame = pl.DataFrame({"group": [0, 1, 0], "value": [1, 2, 3]})
    frame.group_by("group").agg(pl.col("value").sum())
    file = BytesIO()
    frame.write_parquet(file)
    pl.scan_parquet(file).filter(pl.col("value") > 1).collect(engine="streaming")


def _ask_duckdb(relation: Any) -> None:
    """The connection of the relation reads a file of its own, for which versions from 2.0 have threads."""
    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"value": [1, 2, 3]}), file)
        path = str(file).replace("'", "''")
        nothing = relation.limit(0).aggregate("count(*) as n")
        nothing.project(f"(select sum(value) from read_parquet('{path}')) as total").fetchall()
