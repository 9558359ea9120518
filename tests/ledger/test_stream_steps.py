"""A stream in its ledger: charged once; each period is stored, and drawn at most once, whatever happens."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from contextlib import closing
from importlib.util import find_spec

import polars as pl
import pytest

import dpframe as dpf
from dpframe.ledger import heads, locks, rows, sql, unbroken, witness
from dpframe.mechanisms.laplace import Laplace
from dpframe.release import results
from dpframe.streams import stream_path
from dpframe.streams.stream_path import entry_of
from tests import killed_streams
from tests.killed_streams import STEPS, lose, stays, stream_of, told
from tests.timers import TIMERS, ring_in, timer_as_ctrl_c

STAYS = stays()
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.ledger"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(stream_path, "PATIENCE", 0.3)


def made(path):
    return dpf.Ledger(epsilon=1, path=path)


@pytest.fixture(params=["memory", "file"])
def ledger(request, path):
    return dpf.Ledger(epsilon=1) if request.param == "memory" else made(path)


def test_a_stream_is_charged_once(ledger):
    stream = stream_of(ledger)
    assert ledger.spent.epsilon == 0.0
    for week in (1, 2, 3):
        stream.release(STAYS, week)
        assert ledger.spent.epsilon == 0.5
    assert ledger.to_frame().height == 1
    assert ledger.to_frame()["kind"].to_list() == ["charge"]
    assert "1 charge" in repr(ledger)


def test_a_period_asked_again_is_the_stored_one(ledger):
    stream = stream_of(ledger)
    first = [told(stream.release(STAYS, week)) for week in (1, 2)]
    others = STAYS.head(0)  # the rows no longer matter
    assert [told(stream.release(others, week)) for week in (1, 2)] == first
    assert [told(stream_of(ledger).release(STAYS.lazy(), week)) for week in (1, 2)] == first
    assert stream.to_frame()["total"].to_list() == [value for one in first for value in one["total"]]


def test_it_goes_on_in_a_ledger_that_was_opened_again(path):
    first = told(stream_of(made(path)).release(STAYS, 1))
    again = stream_of(dpf.Ledger.open(path))
    assert told(again.release(STAYS, 1)) == first
    again.release(STAYS, 2)
    assert dpf.Ledger.open(path).spent.epsilon == 0.5
    copied = pickle.loads(pickle.dumps(again))
    assert told(copied.release(STAYS, 1)) == first


def test_other_parameters_are_refused(ledger):
    stream_of(ledger).release(STAYS, 1)
    for changed, word in (
        ({"epsilon": 0.25}, "cost"),
        ({"statistic": dpf.count("week")}, "statistic"),
        ({"periods": [1, 2, 3, 4, 5]}, "periods"),
        ({"keys": ["B", "A"]}, "keys"),
    ):
        with pytest.raises(dpf.LedgerError, match=rf"begun with other parameters: .*{word}"):
            stream_of(ledger, **changed).release(STAYS, 2)
    assert ledger.spent.epsilon == 0.5


def test_a_stream_that_costs_too_much_is_refused(ledger):
    with pytest.raises(dpf.BudgetExceeded):
        stream_of(ledger, epsilon=2).release(STAYS, 1)
    assert ledger.to_frame().height == 0
    stream_of(ledger).release(STAYS, 1)  # the name is still free


def test_periods_are_drawn_in_order(ledger):
    stream = stream_of(ledger)
    with pytest.raises(dpf.InvalidArgument, match="in order, and 1 comes before 2"):
        stream.release(STAYS, 2)
    assert ledger.spent.epsilon == 0.0
    stream.release(STAYS, 1)
    with pytest.raises(dpf.InvalidArgument, match="in order, and 2 comes before 4"):
        stream.release(STAYS, 4)


FAILING = STAYS.lazy().with_columns(week=pl.col("ward").cast(pl.Int64))  # a strict cast that fails on the rows


@pytest.mark.parametrize("week", [1, 2, 4])
def test_252_a_read_that_fails_loses_its_period(ledger, monkeypatch, week):
    """Otherwise one charge lets a caller observe any number of times whether a read fails."""
    stream = stream_of(ledger, epsilon=1)
    monkeypatch.setattr(Laplace, "add_noise", lambda noise, totals: totals)  # to see the exact numbers
    for earlier in range(1, week):
        stream.release(STAYS, earlier)
    following = f"Its rows count in the next period: release {week + 1}" if week < 4 else "It was the last one"
    with pytest.raises(
        dpf.ReleaseFailed,
        match=rf"failed while it read.*charge stands, and period {week} of the stream 'stays' is lost\. {following}\.",
    ):
        stream.release(FAILING, week)
    assert ledger.spent.epsilon == 1
    again = []
    for frame in (FAILING, STAYS):  # the rows no longer matter
        with pytest.raises(dpf.ReleaseFailed, match="is lost, or still being drawn") as caught:
            stream.release(frame, week)
        again.append(str(caught.value))
    assert again[0] == again[1]
    if week < 4:
        after = stream.release(STAYS, week + 1)
        assert after.dp.provenance["period"]["since"] == week
        rows = [STAYS.filter(pl.col("week").is_between(week, week + 1) & (pl.col("ward") == ward)) for ward in "AB"]
        assert after["period"].to_list() == pytest.approx([one.height for one in rows])
    if ledger.is_durable:
        ledger.verify()


def test_252_a_frame_that_the_schema_refuses_loses_no_period(ledger):
    stream = stream_of(ledger)
    stream.release(STAYS, 1)
    for wrong in (STAYS.drop("ward"), STAYS.with_columns(week=pl.col("week").cast(pl.String))):
        with pytest.raises((dpf.UnknownColumn, dpf.WrongDtype)):
            stream.release(wrong, 2)
    assert stream.release(STAYS, 2).dp.provenance["period"]["since"] == 2


@pytest.mark.parametrize("frame", [FAILING, STAYS], ids=["fails", "reads"])
def test_252_a_call_that_was_overtaken_does_not_tell_whether_its_read_failed(ledger, monkeypatch, frame):
    """Only the call that writes the intent tells that, so calls at the same moment reveal no more than one."""
    stream, withheld, first = stream_of(ledger), results.withheld, []

    def overtaken(look):
        monkeypatch.setattr(results, "withheld", withheld)
        first.append(told(stream.release(STAYS, 1)))
        return withheld(look)

    monkeypatch.setattr(results, "withheld", overtaken)
    assert [told(stream.release(frame, 1))] == first
    assert stream.release(STAYS, 2).dp.provenance["period"]["since"] == 2


def test_252_a_read_that_is_interrupted_loses_no_period(ledger, monkeypatch):
    stream = stream_of(ledger)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(results, "withheld", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.release(STAYS, 1)
    stream.release(STAYS, 1)


def test_252_a_failed_read_whose_intent_cannot_be_written_reports_the_ledger(path, monkeypatch):
    stream = stream_of(made(path))

    def locked(*_):
        raise locks.Locked("the ledger is locked: nothing was charged.")

    said = []
    for frame in (FAILING, STAYS):
        with monkeypatch.context() as patched:
            patched.setattr(stream_path, "intended", locked)
            with pytest.raises(dpf.LedgerUnavailable, match="stays charged") as caught:
                stream.release(frame, 1)
        said.append(str(caught.value))
    assert said[0] == said[1]
    stream.release(STAYS, 1)


# A process that is killed at any step


@pytest.fixture(scope="module")
def elsewhere():
    """Another process, whose children release periods and may be killed."""
    with killed_streams.server() as ask:
        yield ask


@FORKS
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("week", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_period_is_drawn_later_or_returned_or_lost(path, step, week, monkeypatch, elsewhere):
    """Whatever the step at which its process is killed, the noise of a period is never drawn twice."""
    ledger = made(path)
    if week == 2:
        stream_of(ledger).release(STAYS, 1)
    _, outcome = STEPS[step]
    assert elsewhere(path, [week], step) == ["killed"]
    drawn = []
    add_noise = Laplace.add_noise
    monkeypatch.setattr(Laplace, "add_noise", lambda noise, totals: drawn.append(1) or add_noise(noise, totals))
    again = dpf.Ledger.open(path)
    stream = stream_of(again)
    if outcome == "lost":
        with pytest.raises(dpf.ReleaseFailed, match=f"is lost.*release {week + 1}"):
            stream.release(STAYS, week)
    else:
        shown = told(stream.release(STAYS, week))
        assert told(stream.release(STAYS, week)) == shown
    assert len(drawn) == (outcome == "drawn")
    following = stream.release(STAYS, week + 1)
    assert following.dp.provenance["period"]["since"] == (week if outcome == "lost" else week + 1)
    assert stream.release(STAYS, week + 2).dp.provenance["period"]["since"] == week + 2  # nothing was lost in between
    if outcome == "lost":
        with pytest.raises(dpf.ReleaseFailed, match="is lost"):
            stream.release(STAYS, week)
    assert again.spent.epsilon == 0.5
    assert again.verify(following)["releases"][0]["numbers"] == "as stored"


def test_rows_of_a_lost_period_count_in_the_next(path, monkeypatch):
    stream = stream_of(made(path), epsilon=1)
    monkeypatch.setattr(Laplace, "add_noise", lambda noise, totals: totals)  # to see the exact numbers
    stream.release(STAYS, 1)
    lose(stream, STAYS, 2, monkeypatch)
    frame = stream.release(STAYS, 3)
    assert frame["total"].to_list() == pytest.approx([4, 2])
    assert frame["period"].to_list() == pytest.approx([3, 1])
    assert stream.release(STAYS, 4)["period"].to_list() == pytest.approx([0, 1], abs=1e-9)
    assert stream.to_frame()["week"].to_list() == [1, 1, 3, 3, 4, 4]
    if find_spec("altair"):
        drawn = json.dumps(stream.plot().to_dict())
        assert [f'"label": "{week}"' in drawn for week in (1, 2, 3, 4)] == [True, False, True, True]


# Several processes or threads at once


def test_whoever_was_passed_by_shows_nothing(path, monkeypatch):
    """A process that draws a period, then sleeps while another goes on, must no longer store it."""
    stream = stream_of(made(path))
    keep = stream_path.keep

    def overtaken(ledger, entry, state, period, content):
        monkeypatch.setattr(stream_path, "keep", keep)
        stream_of(dpf.Ledger.open(path)).release(STAYS, period + 1)
        return keep(ledger, entry, state, period, content)

    monkeypatch.setattr(stream_path, "keep", overtaken)
    with pytest.raises(dpf.ReleaseFailed, match="went on without it"):
        stream.release(STAYS, 1)
    assert stream.to_frame()["week"].to_list() == [2, 2]


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_threads_that_race_get_the_same_numbers(kind, path, monkeypatch):
    monkeypatch.setattr(stream_path, "PATIENCE", 60.0)
    ledger = dpf.Ledger(epsilon=1) if kind == "memory" else made(path)
    barrier, shown = threading.Barrier(4), []

    def ask():
        stream = stream_of(ledger)
        for week in (1, 2, 3):
            barrier.wait()
            shown.append((week, str(told(stream.release(STAYS, week)))))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shown) == 12
    assert len(set(shown)) == 3
    assert ledger.spent.epsilon == 0.5


@pytest.mark.long
@FORKS
def test_processes_that_race_get_the_same_numbers(path, elsewhere):
    made(path)
    answers = elsewhere(path, [1, 2], processes=3)
    assert len(answers) == 3
    assert len(set(answers)) == 1
    ledger = dpf.Ledger.open(path)
    assert ledger.spent.epsilon == 0.5
    assert stream_of(ledger).to_frame().height == 4
    ledger.verify()


@FORKS
def test_a_forked_child_draws_nothing_from_a_ledger_in_memory():
    stream = stream_of(dpf.Ledger(epsilon=1))
    stream.release(STAYS, 1)
    entry = entry_of(stream.preview())
    state = stream_path.known(stream.ledger, entry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            stream_path.intended(stream.ledger, entry, state, 2)
        except dpf.LedgerError:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


class _Interrupted(list):
    """A list of entries; Ctrl-C arrives right after an entry is appended."""

    def append(self, entry):
        super().append(entry)
        raise KeyboardInterrupt


def test_202_ctrl_c_leaves_no_stream_in_memory_that_was_not_charged(monkeypatch):
    ledger = dpf.Ledger(epsilon=1)
    with monkeypatch.context() as patched:
        patched.setattr(ledger._store, "_entries", _Interrupted())
        with pytest.raises(KeyboardInterrupt):
            stream_of(ledger, epsilon=1).release(STAYS, 1)
    assert ledger.spent.epsilon == 1
    with pytest.raises(dpf.BudgetExceeded):
        stream_of(ledger, epsilon=1).release(STAYS, 1)


class _Taken:
    """A lock; Ctrl-C arrives right after it is acquired."""

    def __init__(self, lock):
        self.lock, self.release = lock, lock.release

    def acquire(self, timeout=-1):
        assert self.lock.acquire(timeout=min(timeout, 10) if timeout > 0 else 10), "it waits for what it holds"
        raise KeyboardInterrupt


def test_203_ctrl_c_just_as_the_work_ends_waits_for_nothing():
    work = unbroken._Work(lambda: 1)
    work.done, work.to_its_end = _Taken(work.done), True
    with pytest.raises(KeyboardInterrupt):
        work.result()
    assert work.value == 1
    assert not work.done.lock.acquire(timeout=0)  # the interrupted caller holds it, and nothing acquires it again


@TIMERS
def test_ctrl_c_while_the_lock_is_waited_for_loses_no_period(path, monkeypatch):
    stream, keep, heard = stream_of(made(path)), stream_path.keep, threading.Event()

    def hear(*_):
        heard.set()
        raise KeyboardInterrupt

    def interrupted(*arguments):
        held = threading.Event()

        def hold():
            with locks.held(str(path), wait=5.0, create=False):
                held.set()
                heard.wait(10)
                time.sleep(0.2)  # a call that gives up on Ctrl-C does so while the lock is held

        threading.Thread(target=hold).start()
        assert held.wait(10)
        ring_in(0.05)
        return keep(*arguments)

    with timer_as_ctrl_c(hear), monkeypatch.context() as patched:
        patched.setattr(unbroken, "GRACE", 0.01)
        patched.setattr(stream_path, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.release(STAYS, 1)
    monkeypatch.setattr(Laplace, "add_noise", None)
    assert len(told(stream.release(STAYS, 1))["total"]) == 2


@TIMERS
def test_ctrl_c_while_a_period_is_drawn_waits_until_it_is_stored(ledger, monkeypatch):
    stream, add_noise, drawn = stream_of(ledger), Laplace.add_noise, []

    def interrupted(*arguments):
        ring_in(0.01)
        time.sleep(0.3)
        drawn.append(add_noise(*arguments))
        return drawn[0]

    with timer_as_ctrl_c(), monkeypatch.context() as patched:
        patched.setattr(unbroken, "GRACE", 0.01)
        patched.setattr(Laplace, "add_noise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.release(STAYS, 1)
        assert drawn
    monkeypatch.setattr(Laplace, "add_noise", None)
    assert len(told(stream.release(STAYS, 1))["total"]) == 2


@TIMERS
def test_213_ctrl_c_between_the_intent_and_a_head_that_is_kept_elsewhere_loses_no_period(path, tmp_path, monkeypatch):
    """The lock of the head is free, so Ctrl-C must not end the call where it acquires that lock."""
    head = tmp_path / "elsewhere"
    stream, append = stream_of(dpf.Ledger(epsilon=1, path=path, head=head)), rows.append

    def interrupted(connection, last, entry):
        mark = append(connection, last, entry)
        if entry.kind == "intent":
            ring_in(0.01)
            time.sleep(0.3)
        return mark

    with timer_as_ctrl_c(), monkeypatch.context() as patched:
        patched.setattr(rows, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.release(STAYS, 1)
    monkeypatch.setattr(Laplace, "add_noise", None)
    assert len(told(stream.release(STAYS, 1))["total"]) == 2


INTERRUPTED_TWICE = """
import os, signal, sys, threading, time
import dpframe as dpf
from dpframe.mechanisms.laplace import Laplace
from tests.killed_streams import stays, stream_of

add_noise, heard = Laplace.add_noise, threading.Semaphore(0)

def hear(*_):
    heard.release()
    raise KeyboardInterrupt

def slowly(noise, totals):
    for seconds in (0.1, 0.2):  # until its caller waits, and waits again
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)
        heard.acquire(timeout=30)  # two that come before the first is heard are one
    time.sleep(0.3)
    return add_noise(noise, totals)

Laplace.add_noise = slowly
signal.signal(signal.SIGINT, hear)
release = lambda: stream_of(dpf.Ledger.open(sys.argv[1])).release(stays(), 1)
if sys.argv[2] == "itself":
    release()
import multiprocessing
worker = multiprocessing.get_context("fork").Process(target=release)
worker.start()
worker.join()
sys.exit(worker.exitcode)
"""


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="this system has other signals")
@pytest.mark.parametrize("process", ["itself", "worker"])
def test_a_process_that_ctrl_c_ends_twice_over_stores_its_period(path, monkeypatch, process):
    """The second Ctrl-C ends the wait and the process, but only after the period is stored."""
    ledger = made(path)
    command = [sys.executable, "-c", INTERRUPTED_TWICE, str(path), process]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=killed_streams.ROOT, timeout=60)
    assert ended.returncode != 0
    assert "KeyboardInterrupt" in ended.stderr
    assert "Ask for it again" in ended.stderr
    monkeypatch.setattr(Laplace, "add_noise", None)
    assert len(told(stream_of(ledger).release(STAYS, 1))["total"]) == 2


@FORKS
def test_a_forked_child_does_not_wait_for_work_of_its_parent():
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.set()
        ended.wait(60)

    threading.Thread(target=unbroken.unbroken(work)).start()
    assert begun.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(len(unbroken._running))
    ended.set()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("step", ["intended", "contents", "keep"])
def test_what_a_database_breaks_off_loses_no_period(path, step, monkeypatch):
    stream, whole, stored = stream_of(made(path)), getattr(stream_path, step), sql.SqlStore._entries_of
    failures = []

    def torn(*arguments):
        if failures:
            failures.pop()
            raise unbroken.Again("deadlock detected")
        return stored(*arguments)

    def failing(*arguments):
        if not failing.failed:
            failing.failed = True
            failures[:] = [1, 1, 1]
        return whole(*arguments)

    failing.failed = False
    monkeypatch.setattr(sql.SqlStore, "_entries_of", torn)
    monkeypatch.setattr(stream_path, step, failing)
    first = told(stream.release(STAYS, 1))
    assert failing.failed
    assert not failures
    assert told(stream.release(STAYS, 1)) == first


# Restored copies, and changed files


def test_a_recovered_ledger_draws_no_other_period(path, tmp_path):
    """The older copy does not know that week 2 was drawn, so a stream that goes on would draw it again."""
    stream = stream_of(made(path))
    first = told(stream.release(STAYS, 1))
    shutil.copy(path, tmp_path / "older")
    stream.release(STAYS, 2)
    stream.ledger._store.database.close()
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(dpf.LedgerError, match="older copy"):
        stream_of(dpf.Ledger.open(path)).release(STAYS, 2)
    witness._newest.clear()
    recovered = dpf.Ledger.recover(path, reason="the disk was replaced")
    again = stream_of(recovered)
    assert told(again.release(STAYS, 1)) == first
    with pytest.raises(dpf.LedgerError, match="recovered from an older copy"):
        again.release(STAYS, 2)
    stream_of(recovered, name="another").release(STAYS, 1)
    recovered.verify()


@pytest.mark.parametrize("begins", [None, 0.125, 0.5])
@pytest.mark.parametrize("step", ["_looked", "intended", "contents", "keep", "kept", "_wait", "to_frame"])
def test_a_copy_that_is_put_back_and_recovered_amid_a_call_ends_it(path, tmp_path, monkeypatch, step, begins):
    """The call shows nothing of the lost stream, and stores nothing in a new stream of the same name."""
    stream = stream_of(dpf.Ledger(epsilon=4, path=path))
    shutil.copy(path, tmp_path / "older")
    if step != "keep":
        stream.release(STAYS, 1)
    at = {"kept": "contents", "to_frame": "contents"}.get(step, step)
    whole, draw, entries = getattr(stream_path, at), stream_path._draw, []

    def put_back(*arguments):
        monkeypatch.setattr(stream_path, at, whole)
        monkeypatch.setattr(stream_path, "_draw", draw)
        stream.ledger._store.database.close()
        shutil.copy(tmp_path / "older", path)
        witness._newest.clear()
        recovered = dpf.Ledger.recover(path, reason="the disk was replaced")
        if begins is not None:
            other = stream_of(recovered, epsilon=begins)
            entry = entry_of(other.preview())
            if step == "keep":
                stream_path.intended(recovered, entry, stream_path.begun(recovered, entry), 1)
            else:
                other.release(STAYS, 1)
        entries[:] = recovered._store.entries()
        return whole(*arguments)

    monkeypatch.setattr(stream_path, at, put_back)
    if step == "_wait":
        monkeypatch.setattr(stream_path, "_draw", lambda *_: None)
    with pytest.raises(dpf.LedgerError, match=r"no longer contains the stream 'stays'|begun with other parameters"):
        stream.to_frame() if step == "to_frame" else stream.release(STAYS, 1 if step in ("kept", "keep") else 2)
    assert dpf.Ledger.open(path)._store.entries() == entries


def changed(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def test_changed_values_are_refused(path):
    ledger = made(path)
    stream = stream_of(ledger)
    stream.release(STAYS, 1)
    ledger._store.database.close()
    changed(path, "UPDATE dpframe_answers SET content = ?", b"{}\n")
    with pytest.raises(dpf.LedgerError, match="is not the one that was stored"):
        stream.release(STAYS, 1)
    with pytest.raises(dpf.LedgerError, match="stored answers are not those"):
        dpf.Ledger.open(path).verify()


@pytest.mark.parametrize("steps", [["intent", "intent"], ["values"], ["intent", "values", "values"]])
def test_verify_refuses_steps_that_no_stream_takes(path, steps):
    """Write access is enough to forge a chain whose hashes fit, but its entries must still be steps of a stream."""
    ledger = made(path)
    stream_of(ledger).release(STAYS, 1)
    store = ledger._store
    found = [entry for _, entry in store.entries()]
    intent, values = (dataclasses.replace(entry, period=2) for entry in found[1:3])
    forged = {"intent": intent, "values": values}
    for kind in steps:
        with store._writing() as (connection, last):
            mark = rows.append(connection, last, forged[kind])
            if kind == "values":
                rows.insert_answer(connection, mark.entry, b"")
        heads.write(store.database.address.file, store.terms, mark)
    with pytest.raises(dpf.LedgerError, match="do not follow its steps"):
        ledger.verify()
    with pytest.raises(dpf.LedgerError, match="do not follow its steps"):
        stream_of(ledger).release(STAYS, 3)


def test_verify_tells_records_that_were_changed(path):
    ledger = made(path)
    frame = stream_of(ledger).release(STAYS, 1)
    stream_of(ledger).release(STAYS, 2)
    record = frame.dp.provenance
    assert ledger.verify(frame, record)["releases"][0]["record"] == "as charged"
    for name, value in (("period", {"name": "2", "number": 2, "since": 2}), ("sha256", "0" * 64)):
        with pytest.raises(dpf.LedgerError, match="another"):
            ledger.verify({**record, name: value})
    with pytest.raises(dpf.LedgerError, match="commits to"):
        ledger.verify({**record, "stream": {**record["stream"], "periods": 5}})
    with pytest.raises(dpf.LedgerError, match="never stored"):
        ledger.verify({**record, "period": {"name": "4", "number": 4, "since": 4}})
