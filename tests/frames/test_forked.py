"""Forked processes in which a query would hang, since Polars (or the DuckDB of a relation) ran before the fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames import kinds
from dpframe.release import path
from tests import forks

pd = pytest.importorskip("pandas")
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
REFUSED = "InvalidArgument: the process must not be forked after Polars had started its threads"
OF_DUCKDB = "InvalidArgument: frame must be a relation of a connection that was opened in this process"
IN_MEMORY = "frame must be in memory"


@FORKS
@pytest.mark.slow
@pytest.mark.parametrize("way", forks.WAYS)
def test_147_every_verb_is_refused_in_a_worker_forked_after_a_release(tmp_path, way):
    said = forks.forked("released", way, tmp_path)
    assert said.pop("entries") == "0"
    assert len(said) == len(forks.LIBRARIES) * 25
    assert _refused(said)


@FORKS
@pytest.mark.slow
@pytest.mark.parametrize("parent", ["imported late", "child that worked"])
def test_147_a_worker_is_refused_whoever_worked_and_imported_before_the_fork(tmp_path, parent):
    said = forks.forked(parent, "os.fork", tmp_path)
    worked = said.pop("first", "0")
    assert said.pop("entries") == worked
    assert (worked == "0") == (parent == "imported late")
    assert _refused(said)


@FORKS
@pytest.mark.slow
def test_147_threads_of_a_preview_alone_let_no_worker_hang(tmp_path):
    said = forks.forked("previewed", "os.fork", tmp_path)
    assert _refused({**said, "entries": REFUSED}) or _released(said)  # depends on the version of Polars


@FORKS
@pytest.mark.slow
@pytest.mark.parametrize("way", ["Pool", "ProcessPoolExecutor"])
def test_a_worker_whose_parent_only_imported_answers(tmp_path, way):
    assert _released(forks.forked("imported", way, tmp_path))


@FORKS
@pytest.mark.slow
@pytest.mark.parametrize("way", forks.OTHERS)
def test_147_workers_with_threads_of_their_own_answer_whatever_worked_before(tmp_path, way):
    if way == "loky":
        pytest.importorskip("joblib")
    assert _released(forks.forked("released", way, tmp_path))


@FORKS
@pytest.mark.slow
def test_147_a_worker_answers_where_numba_worked_in_its_parent(tmp_path):
    """The compiled kernels start new threads in each call."""
    pytest.importorskip("numba")
    assert _released(forks.forked("Numba worked", "Pool", tmp_path))


@FORKS
@pytest.mark.slow
@pytest.mark.skipif(not forks.HAS_DUCKDB, reason="DuckDB is not installed")
def test_146_a_relation_of_a_connection_of_the_parent_is_refused_and_frames_are_answered(tmp_path):
    said = forks.forked("DuckDB worked", "os.fork", tmp_path)
    of_duckdb = {call: words for call, words in said.items() if call.endswith("of duckdb")}
    if any(words.startswith(OF_DUCKDB) for words in of_duckdb.values()):  # DuckDB 2.0 and newer
        assert all(words.startswith(OF_DUCKDB) or IN_MEMORY in words for words in of_duckdb.values())
    assert _released({call: words for call, words in said.items() if call not in of_duckdb})


@FORKS
@pytest.mark.slow
def test_147_results_of_the_parent_are_shown_or_refused(tmp_path):
    said = forks.forked("results", "os.fork", tmp_path)
    drawn = ("keys of", "table of")  # these need Polars, whatever the library of the result
    of_pandas = {call: words for call, words in said.items() if call.endswith("of pandas")}
    assert {words for call, words in of_pandas.items() if not call.startswith(drawn)} == {"done"}
    assert all(words.startswith(REFUSED) for call, words in of_pandas.items() if call.startswith(drawn))
    assert said["provenance of polars"] == said["statement of polars"] == said["select of polars"] == "done"
    changes = ("filter", "sort", "head", "wide", *(["table"] if forks.HAS_TABLES else []))
    for door in ("errors", "write_html", "write_parquet", "round", "concat", "read_parquet", "keys", *changes):
        assert said[f"{door} of polars"].startswith(REFUSED)


def _refused(said: dict[str, str]) -> bool:
    """Return whether every call was refused, due to the fork or because it takes only frames in memory."""
    return all(words.startswith(REFUSED) or IN_MEMORY in words for words in said.values())


def _released(said: dict[str, str]) -> bool:
    """Return whether every call was answered, except those that take only frames in memory."""
    return all(words == "done" or IN_MEMORY in words for call, words in said.items() if call != "entries")


@pytest.fixture
def dead(monkeypatch):
    """Simulate a process in which Polars would hang."""
    monkeypatch.setattr(kinds, "polars_works", lambda: False)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.usefixtures("dead")
def test_147_a_refusal_is_before_the_charge_and_a_preview_is_refused_too(library):
    frame = (pd.DataFrame if library == "pandas" else pl.DataFrame)(forks.COLUMNS)
    for verb, call in forks.calls().items():
        with dpf.Ledger(epsilon=1_000, delta=0.5, keys_delta=0.1, unit=forks.unit()) as ledger:
            assert forks.said_of(lambda call=call: call(dpf.of(frame))).startswith(REFUSED), verb
        assert not len(ledger.to_frame())


def test_147_a_question_that_was_asked_before_is_refused_too(monkeypatch):
    monkeypatch.setattr(path, "_kept", {})  # keeps plans, which a fixture turns off for all other tests
    frame = pl.DataFrame(forks.COLUMNS)
    with dpf.Ledger(epsilon=10) as ledger:
        frame.dp.count(epsilon=1)
        monkeypatch.setattr(path, "make_plan", lambda *_: pytest.fail("it was planned anew"))
        monkeypatch.setattr(kinds, "polars_works", lambda: False)
        with pytest.raises(dpf.InvalidArgument, match="spawn"):
            frame.dp.count(epsilon=1)
    assert ledger.spent == dpf.PrivacyLoss(1)


def test_a_process_that_was_not_forked_asks_nothing(monkeypatch):
    monkeypatch.setattr(kinds, "_is_forked", lambda: False)
    monkeypatch.setattr(kinds, "_ends", lambda *_: pytest.fail("it was asked"))
    kinds.polars_works.cache_clear()
    kinds.check_threads()
    kinds.polars_works.cache_clear()


def test_a_fork_in_which_polars_works_is_asked_once(monkeypatch):
    monkeypatch.setattr(kinds, "_is_forked", lambda: True)
    asked = []
    ends = kinds._ends
    monkeypatch.setattr(kinds, "_ends", lambda *given: asked.append(given) or ends(*given))
    kinds.polars_works.cache_clear()
    kinds.check_threads()
    kinds.check_threads()
    kinds.polars_works.cache_clear()
    assert len(asked) == 1


def test_a_query_that_fails_has_ended_and_one_that_waits_has_not():
    busy = threading.Event()
    assert kinds._ends(lambda: 1 / 0, 60)
    assert not kinds._ends(busy.wait, 0.01)
    assert not kinds._ends(lambda: 1 / 0, 60)  # a failure does not count while an earlier call is still busy
    busy.set()
    kinds._left.clear()


@pytest.mark.slow
@FORKS
def test_174_a_chart_is_refused_in_a_worker_forked_after_another_was_drawn(tmp_path):
    """The chart library has threads, and holds the interpreter while it waits for them, so no timeout would work."""
    code = """
import os, signal, sys
import polars as pl
import dpframe as dpf
ledger = dpf.Ledger(epsilon=1)
pl.DataFrame({"a": [1]}).dp.count(epsilon=0.5, ledger=ledger)
page, *drawn = sys.argv[1:]
if drawn:
    ledger.report(page)
child = os.fork()
if not child:
    signal.alarm(40)  # which ends it, if it waits
    try:
        ledger.report(page)
    except dpf.InvalidArgument as error:
        os._exit(7 if "after a chart was drawn" in str(error) else 8)
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    for words, ends in ((["drawn"], 7), ([], 0)):
        command = [sys.executable, "-c", code, str(tmp_path / "page.html"), *words]
        done = subprocess.run(command, cwd=forks.ROOT, capture_output=True, check=False)
        assert done.returncode == ends, (words, done.stderr.decode()[-2_000:])
