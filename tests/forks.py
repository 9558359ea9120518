"""Calls of every verb in workers that a process forks.

``python -m tests.forks PARENT WAY FOLDER`` prepares a parent, starts a worker, and prints the outcome of each call
there as JSON. It is a process of its own, so that it is certain whether Polars worked before the fork.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
COLUMNS = {
    "who": [1, 2, 3],
    "ward": ["A", "B", "A"],
    "sex": ["f", "m", "f"],
    "age": [31, 45, 62],
    "cost": [1.0, 2.0, 3.0],
}
WAYS = ("os.fork", "Pool", "ProcessPoolExecutor", "preloading server", "joblib")
OTHERS = ("spawn", "forkserver", "loky")  # workers with threads of their own, whatever worked before
HAS_DUCKDB = importlib.util.find_spec("duckdb") is not None
HAS_TABLES = importlib.util.find_spec("great_tables") is not None
LIBRARIES = ("pandas", "polars", "lazy", "scan", "dataset", *(["duckdb"] if HAS_DUCKDB else []))
PATIENCE = 100  # seconds after which a worker counts as hanging

Said = dict[str, str]


def forked(parent: str, way: str, folder: Path) -> Any:
    """Return the outcomes of the calls of a worker; fail if it hangs."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.forks", parent, way, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


def frames(folder: Path) -> dict[str, Any]:
    """Return the same rows in each library; Polars does no work to make them."""
    import pandas
    import polars
    import pyarrow.dataset
    import pyarrow.parquet

    path = folder / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(COLUMNS), path)
    tables = {
        "pandas": pandas.DataFrame(COLUMNS),
        "polars": polars.DataFrame(COLUMNS),
        "lazy": polars.DataFrame(COLUMNS).lazy(),
        "scan": polars.scan_parquet(path),
        "dataset": pyarrow.dataset.dataset(path),
    }
    if HAS_DUCKDB:
        import duckdb

        tables["duckdb"] = duckdb.connect().sql(f"select * from '{path}'")
    return tables


def unit() -> Any:
    """Return a unit with a column, which all verbs can protect."""
    import dpframe as dpf

    return dpf.PrivacyUnit("who", max_rows=2, max_groups=2)


def calls() -> dict[str, Callable[[Any], Any]]:
    """Return calls of every verb, of the other functions that read rows, and of a preview."""
    import dpframe as dpf

    ages: dict[str, Any] = {"bounds": (0, 100)}
    both = {"age": (0, 100), "cost": (0, 9)}
    wards: dict[str, Any] = {"keys": {"ward": ["A", "B"]}}
    coin = dpf.local.RandomizedResponse(["A", "B"], epsilon=1)
    replace = dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit(neighbors="replace"))
    weeks = dpf.Stream(
        "wards", statistic=dpf.count(), time="ward", periods=["A", "B"], epsilon=1, ledger=dpf.Ledger(epsilon=9)
    )
    price: dict[str, Any] = {"epsilon": 1}
    return {
        "count": lambda dp: dp.count(**price),
        "sum": lambda dp: dp.sum("age", **ages, **price),
        "mean": lambda dp: dp.mean("age", **ages, **price),
        "variance": lambda dp: dp.variance("age", **ages, **price),
        "std": lambda dp: dp.std("age", **ages, **price),
        "proportion": lambda dp: dp.proportion("ward", value="A", **price),
        "median": lambda dp: dp.median("age", **ages, **price),
        "quantile": lambda dp: dp.quantile("age", q=0.5, **ages, **price),
        "ecdf": lambda dp: dp.ecdf("age", bins=[0, 50, 100], **price),
        "n_units": lambda dp: dp.n_units(**price),
        "n_distinct": lambda dp: dp.n_distinct("ward", max_values=2, **price),
        "histogram": lambda dp: dp.histogram("age", bins=[0, 50, 100], **price),
        "mode": lambda dp: dp.mode("ward", categories=["A", "B"], **price),
        "top_k": lambda dp: dp.top_k("ward", k=1, categories=["A", "B"], **price),
        "covariance": lambda dp: dp.covariance(["age", "cost"], bounds=both, **price),
        "correlation": lambda dp: dp.correlation(["age", "cost"], bounds=both, **price),
        "marginals": lambda dp: dp.marginals(["ward", "sex"], keys={"ward": ["A", "B"], "sex": ["f", "m"]}, **price),
        "contributions": lambda dp: dp.contributions(by="ward", **wards, **price),
        "agg": lambda dp: dp.agg(n=dpf.count(), age=dpf.mean("age", **ages), **price),
        "group_by": lambda dp: dp.group_by("ward", **wards).count(**price),
        "discover": lambda dp: dp.group_by("ward", keys=dpf.discover(delta=1e-6)).count(**price),
        "release_together": lambda dp: dpf.release_together({"n": dp.preview.count()}, **price),
        "preview": lambda dp: dp.preview.mean("age", **ages, **price),
        "local": lambda dp: dp.local.randomize("ward", method=coin, ledger=replace),
        "stream": lambda dp: weeks.release(dp, "A"),
    }


def said_of(call: Callable[[], Any]) -> str:
    """Return "done" if a call returns, and otherwise the name and the message of its error."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"


TABLES: dict[str, Any] = {}  # of the parent; forked workers inherit them
RESULTS: dict[str, Any] = {}


def asked(folder: str) -> Said:
    """In a worker, make every call on every table; return the outcomes and the number of ledger entries."""
    import dpframe as dpf

    said = {}
    with dpf.Ledger(epsilon=10_000, delta=0.5, keys_delta=0.1, unit=unit(), path=Path(folder) / "ledger.db") as ledger:
        for library, frame in TABLES.items():
            for verb, call in calls().items():
                said[f"{verb} of {library}"] = said_of(lambda call=call, frame=frame: call(dpf.of(frame)))
        said["entries"] = str(len(ledger.to_frame()))
    return said


def asked_anew(folder: str) -> Said:
    """In a worker that inherits nothing, make the same calls on some tables that it creates itself."""
    TABLES.update({library: table for library, table in frames(Path(folder)).items() if library in ("pandas", "scan")})
    return asked(folder)


def shown(folder: str) -> Said:
    """In a worker, use results of its parent, of both libraries."""
    import dpframe as dpf

    said = {}
    for library, (first, second) in RESULTS.items():
        path = Path(folder) / f"{library}.parquet"
        doors: dict[str, Callable[[], Any]] = {
            "provenance": lambda first=first: first.dp.provenance,
            "errors": lambda first=first: first.dp.errors(),
            "statement": lambda first=first: first.dp.statement(),
            "write_html": lambda first=first: first.dp.write_html(Path(folder) / "page.html"),
            "write_parquet": lambda first=first, path=path: first.dp.write_parquet(path.with_suffix(".new")),
            "round": lambda first=first: first.dp.round(10),
            "concat": lambda first=first, second=second: dpf.concat([first, second]),
            "read_parquet": lambda path=path, library=library: dpf.read_parquet(path, like=library),
            "select": lambda first=first: first.dp.select("count"),
            "filter": lambda first=first: first.dp.filter({"ward": ["A"]}),
            "sort": lambda first=first: first.dp.sort("count"),
            "head": lambda first=first: first.dp.head(1),
            "wide": lambda first=first: first.dp.wide("ward"),
            "keys": lambda first=first: dpf.of(TABLES["pandas"]).preview.group_by("ward", keys=first[["ward"]]).count(),
        }
        if HAS_TABLES:
            doors["table"] = lambda first=first: first.dp.table().as_raw_html()
        said |= {f"{door} of {library}": said_of(call) for door, call in doors.items()}
    return said


def by_hand(work: Callable[[str], Said], folder: str) -> Said:
    """Return the answer of a child of `os.fork`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writer, "w") as pipe:
                json.dump(work(folder), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said: Said = json.load(pipe)
    os.waitpid(child, 0)
    return said


def started(way: str, work: Callable[[str], Said], folder: str) -> Said:
    """Return the answer of a worker that was started in this way."""
    if way == "os.fork":
        return by_hand(work, folder)
    if way in ("Pool", "spawn", "forkserver"):
        with multiprocessing.get_context("fork" if way == "Pool" else way).Pool(1) as pool:
            return pool.map(work, [folder])[0]
    if way == "ProcessPoolExecutor":
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as executor:
            return next(executor.map(work, [folder]))
    if way == "preloading server":  # its master prepares everything, and forks a manager that forks the worker
        return by_hand(lambda folder: by_hand(work, folder), folder)
    if importlib.util.find_spec("joblib") is None:  # a pool in its place
        with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
            return pool.apply(work, (folder,))
    import joblib

    with joblib.parallel_backend("loky" if way == "loky" else "multiprocessing", n_jobs=2):
        answers: list[Said] = joblib.Parallel()([joblib.delayed(work)(folder), joblib.delayed(len)(folder)])
    return answers[0]


def _numba_works() -> None:
    """Start the threads of Numba, which forked children lack, and use kernels for tables of any size there."""
    import numba
    import numpy as np

    from dpframe.engines.compiled import kernels

    kernels.FEW_ROWS = 0

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator]
    def doubled(values: Any) -> Any:
        for place in numba.prange(values.size):
            values[place] *= 2
        return values

    doubled(np.ones(1_000))


def main(parent: str, way: str, folder: str) -> Any:  # noqa: PLR0911, one for each kind of parent
    """Prepare the parent and start a worker."""
    if parent == "imported late":  # Polars works first, and only the worker imports dpframe
        import polars

        polars.DataFrame(COLUMNS).group_by("ward").len()
    TABLES.update(frames(Path(folder)))
    if parent == "imported late":
        assert "dpframe" not in sys.modules
        return started(way, asked, folder)
    import dpframe as dpf

    if parent == "Numba worked":
        _numba_works()
        for library in LIBRARIES[1:]:
            TABLES.pop(library)
    if parent in ("imported", "Numba worked"):
        TABLES.pop("duckdb", None)  # its connection belongs to the parent
        return started(way, asked, folder)
    if parent == "child that worked":  # Polars works in a child, which forks
        return started(way, lambda folder: {"first": str(asked(folder)["entries"]), **by_hand(asked, folder)}, folder)
    if parent == "previewed":  # a preview of a LazyFrame starts only some threads of Polars
        dpf.of(TABLES["lazy"]).preview.count(epsilon=1)
        return started(way, asked, folder)
    if parent == "DuckDB worked":
        TABLES["duckdb"].fetchall()
        kept = {"duckdb": TABLES["duckdb"], "pandas": TABLES["pandas"]}
        TABLES.clear()
        TABLES.update(kept)
        return started(way, asked, folder)
    with dpf.Ledger(epsilon=10):  # it worked, and a scan makes each version of Polars start its threads
        dpf.of(TABLES["scan"]).group_by("ward", keys=["A", "B"]).count(epsilon=1)
        if parent == "released":
            return started(way, asked_anew if way in OTHERS else asked, folder)
        for library in ("pandas", "polars"):
            wards = dpf.of(TABLES[library]).group_by("ward", keys=["A", "B"])
            RESULTS[library] = (wards.count(epsilon=1), wards.count(epsilon=1))
            RESULTS[library][0].dp.write_parquet(Path(folder) / f"{library}.parquet")
    return started(way, shown, folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
    print(json.dumps(main(*sys.argv[1:])))
