"""The start of every test: a process that has made no ledger; and the engines that a test runs on."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, settings

from assurance import postgres
from dpframe.engines.compiled import kernels
from dpframe.ledger import ledger as ledgers
from dpframe.release import path
from tests.repeated_bits import repeated

ENGINES = ("pandas", "polars", "lazy")
FIRST = 2  # cases of a quick test that coverage traces, which is slow: they run nearly all lines
TRACED = pytest.StashKey[set[str]]()  # names of these cases
# Slow examples, and examples that are rejected by chance, depend on the machine and are no faults of the code.
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much]
settings.register_profile("fresh", suppress_health_check=PATIENT, deadline=None)
settings.register_profile("repeated", suppress_health_check=PATIENT, deadline=None, derandomize=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose a share of the tests and the source of randomness."""
    parser.addoption("--quick", action="store_true", help="run the first case of each test, none slow, long or Spark")
    parser.addoption("--turn", metavar="K/N", help="of the slow tests run only share K of N, with K from 0 to N - 1")
    parser.addoption(
        "--first",
        type=int,
        metavar="CASES",
        help="run the first CASES of each test, of later ones the share of --turn",
    )
    parser.addoption("--fresh-bits", action="store_true", help="draw noise and examples anew in this run")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how examples are drawn; compile the kernels of the extra `fast` once, outside the time of any test."""
    settings.load_profile("fresh" if config.getoption("--fresh-bits") else "repeated")
    if not hasattr(config, "workerinput"):
        kernels.ready()


HAS_PANDAS = importlib.util.find_spec("pandas") is not None


@dataclass(frozen=True)
class Engine:
    """One way to hold a frame: call it with a dict of columns."""

    name: str

    @property
    def is_pandas(self) -> bool:
        return self.name == "pandas"

    def __call__(self, columns: Mapping[str, Any], **schema: Any) -> Any:
        """Return a frame of this engine; `schema` names the Polars dtype of columns whose values do not show it."""
        if self.is_pandas:
            import pandas

            return pandas.DataFrame(dict(columns))
        frame = pl.DataFrame(dict(columns), schema_overrides=schema or None)
        return frame.lazy() if self.name == "lazy" else frame

    def columns(self, result: Any) -> dict[str, list[Any]]:
        """Return a released frame as plain lists; missing integers of pandas become None."""
        return {
            name: [None if type(value).__name__ == "NAType" else value for value in result[name].to_list()]
            for name in result.columns
        }

    def __str__(self) -> str:
        return self.name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Seed each test's bits with its name, so that what passed cannot fail by chance; not with ``--fresh-bits``."""
    if item.nodeid not in item.config.stash[TRACED]:
        end_coverage()
    if item.config.getoption("--fresh-bits"):
        return (yield)
    with repeated(item.nodeid):
        return (yield)


def pytest_sessionfinish() -> None:
    """Save what coverage saw before this process reports that it is done, so that other processes need not wait."""
    end_coverage()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected; exempt the objects that exist then from later searches."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """In a quick run, let an idle worker take tests of another worker: the order of tests does not matter there."""
    if not config.getoption("--quick"):
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def end_coverage() -> None:
    """If coverage is measured, stop tracing in this process and in later ones, and save what was seen."""
    library = sys.modules.get("coverage")
    if library and (running := library.Coverage.current()):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
        running.stop()
        running.save()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that use Spark, which run in one process because a session takes seconds to start; keep a share.

    Under coverage, the first cases of quick tests run before all others, so that tracing does not slow the others down.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    turn = config.getoption("--turn")
    share, shares = map(int, turn.split("/")) if turn else (0, 1)
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    config.stash[TRACED] = traced = set()
    quick = config.getoption("--quick")
    first = len(items) if config.getoption("--first") is None else config.getoption("--first")
    for item in items:
        function = item.nodeid.partition("[")[0]
        seen[function] += 1
        is_slow = item.get_closest_marker("slow") is not None
        if seen[function] <= FIRST and not is_slow:
            traced.add(item.nodeid)
        if quick:
            is_left_out = is_slow or any(map(item.get_closest_marker, ("long", "spark")))
            is_kept = not is_left_out and seen[function] == 1
        else:
            is_kept = (seen[function] <= first and not is_slow) or turn_of(item, shares) == share
        (kept if is_kept else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = sorted(kept, key=lambda item: item.nodeid not in traced) if "COVERAGE_RUN" in os.environ else kept


def turn_of(item: pytest.Item, shares: int) -> int:
    """Return the share of `shares` that a test is in: its name decides, so the share stays the same."""
    return zlib.crc32(item.nodeid.encode()) % shares


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """One real session of two threads, which takes seconds to start; skipped without PySpark or Java."""
    from assurance import engines

    if why := engines.why_no_spark():
        pytest.skip(why)
    with engines.spark_session() as session:
        yield session


@pytest.fixture(autouse=True)
def fresh_ledgers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the state of ledgers: none was made, none is ambient or default, nothing is recorded, none has warned."""
    monkeypatch.setattr(ledgers, "_recording", ledgers.Ledger._unlimited())
    monkeypatch.setattr(ledgers, "_chosen", [])
    ledgers.made_any.clear()
    monkeypatch.setattr(ledgers, "_warned", threading.Event())
    token = ledgers.ambient.set(())
    yield
    ledgers.ambient.reset(token)


class Nothing(dict[Any, Any]):
    """A mapping that keeps nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        return


@pytest.fixture(autouse=True)
def planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the cache of plans: a plan that an earlier frame left could hide that a release depends on rows."""
    monkeypatch.setattr(path, "_kept", Nothing())


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn: ``frame = engine({"age": [31, 45]})``."""
    if request.param == "pandas" and not HAS_PANDAS:
        pytest.skip("pandas is not installed")
    return Engine(request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A PostgreSQL server for one module; skipped if none can be started."""
    why_not = postgres.missing()
    if why_not is not None:
        pytest.skip(why_not)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        try:
            one = stack.enter_context(postgres.server(folder / "server", waits=False))
        except (RuntimeError, OSError) as error:
            pytest.skip(f"the installed PostgreSQL server cannot be started: {error}")
        yield one
