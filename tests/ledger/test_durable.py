"""A ledger in a file: processes share one budget, charges commit before rows are read, older copies are refused."""

from __future__ import annotations

import copy
import dataclasses
import errno
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from looking import of_rows

import dpframe as dpf
from dpframe import files
from dpframe.ledger import database, entries, heads, sql, witness
from dpframe.release import results

PEOPLE = pl.DataFrame({"age": [31, 45, 62], "who": ["a", "b", "b"]})
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.ledger"


def head_of(path):
    return path.with_name(path.name + ".head")


def take(ledger, part, label=None):
    """Charge a part of epsilon, without a release."""
    amount = (Fraction(part), Fraction(0))
    return ledger.charge(amount, cost=dpf.PrivacyLoss(float(amount[0])), query="", unit=ledger.unit, label=label)


def spent(path):
    return dpf.Ledger.open(path)._store.last().total


def keep(path, to):
    """Copy the ledger's file, without its head."""
    shutil.copy(path, to)
    return to


# Creating and opening


def test_a_charge_outlives_its_ledger(path):
    unit = dpf.PrivacyUnit(column="who", max_rows=2)
    ledger = dpf.Ledger(epsilon=1, unit=unit, path=path, dataset="clinic")
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="first")
    for again in (dpf.Ledger.open(path), dpf.Ledger(epsilon=1, unit=unit, path=str(path), dataset="clinic")):
        assert again.spent == ledger.spent
        assert (again.unit, again.limit, again.dataset) == (unit, dpf.PrivacyLoss(1.0), "clinic")
        assert again.to_frame().equals(ledger.to_frame())
        PEOPLE.dp.count(epsilon=0.25, ledger=again)
        with pytest.raises(dpf.BudgetExceeded):
            PEOPLE.dp.count(epsilon=1, ledger=ledger)
    assert dpf.Ledger.open(path).spent.epsilon == 0.75


def test_gdp_is_kept_to_the_last_bit(path):
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, path=path)
    PEOPLE.dp.count(epsilon=0.1, ledger=ledger)
    memory = dpf.Ledger(epsilon=1, delta=1e-6)
    PEOPLE.dp.count(epsilon=0.1, ledger=memory)
    again = dpf.Ledger.open(path)
    assert again.accounting == memory.accounting
    assert again.limit_amount == memory.limit_amount
    assert again._store.last().total == memory._store.last().total
    assert again.remaining == memory.remaining


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"epsilon": 2}, "epsilon must be 1.0, as in the ledger"),
        ({"epsilon": 1, "delta": 1e-6}, "delta must be 0.0"),
        ({"epsilon": 1, "unit": dpf.PrivacyUnit("who", max_rows=1)}, "unit must be (each row"),
        ({"epsilon": 1, "dataset": "ward"}, "dataset must be 'clinic'"),
    ],
)
def test_a_ledger_that_differs_is_refused(path, words, said):
    dpf.Ledger(epsilon=1, path=path, dataset="clinic")
    with pytest.raises(dpf.LedgerError) as caught:
        dpf.Ledger(**{"dataset": "clinic", **words}, path=path)
    assert str(caught.value).startswith(said)
    assert "Ledger.open" in str(caught.value)
    assert ("raise_limit" in str(caught.value)) == said.startswith(("epsilon", "delta"))
    assert len(str(caught.value)) < 400


def test_another_accounting_is_refused(path):
    dpf.Ledger(epsilon=1, delta=1e-6, path=path)
    with pytest.raises(dpf.LedgerError, match="accounting must be 'gdp'"):
        dpf.Ledger(epsilon=1, delta=1e-6, accounting="basic", path=path)


@pytest.mark.parametrize("wrong", [3, b"clinic", "", "sqlite://", ":memory:", "mysql://host/name", "a\0b", "x://"])
def test_what_is_no_path_is_refused(wrong):
    with pytest.raises(dpf.InvalidArgument, match="path must be"):
        dpf.Ledger(epsilon=1, path=wrong)


def test_a_url_leads_to_the_same_file(path):
    dpf.Ledger(epsilon=1, path=f"sqlite:///{path}", dataset="d")
    take(dpf.Ledger.open(path), "1/4")
    assert dpf.Ledger.open(f"sqlite:///{path}").spent.epsilon == 0.25


def test_where_there_is_none_nothing_is_opened_and_nothing_made(tmp_path):
    with pytest.raises(dpf.LedgerError, match=r"no such file"):
        dpf.Ledger.open(tmp_path / "none.ledger")
    with pytest.raises(dpf.LedgerError, match=r"existing folder"):
        dpf.Ledger(epsilon=1, path=tmp_path / "none" / "clinic.ledger")
    assert list(tmp_path.iterdir()) == []


def test_names_with_odd_characters(tmp_path):
    path = tmp_path / "a b%20?mode=ro#x'é.ledger"
    take(dpf.Ledger(epsilon=1, path=path), "1/2", label="' \" %")
    assert path.exists()
    assert dpf.Ledger.open(path).to_frame()["epsilon"].to_list() == [0.5]


def test_a_relative_name_stays_the_same_file(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ledger = dpf.Ledger(epsilon=1, path="clinic.ledger")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    take(ledger, "1/2")
    assert spent(path)[0] == Fraction(1, 2)


def test_numbers_of_any_length(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    part = Fraction(1, 3**20_000)
    take(ledger, part)
    take(ledger, part)
    assert spent(path)[0] == 2 * part


# Exact sums, and charges before rows


def test_the_charge_is_committed_before_a_row_is_read(path, monkeypatch):
    seen = []

    def spy(*_):
        with closing(sqlite3.connect(path)) as other:
            seen.append(other.execute("select count(*) from dpframe_entries").fetchone()[0])
        raise ValueError("a secret")

    monkeypatch.setattr(results, "totals", of_rows(spy))
    ledger = dpf.Ledger(epsilon=1, path=path)
    with pytest.raises(dpf.ReleaseFailed):
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    assert seen == [1]
    assert spent(path)[0] == Fraction(1, 4)


def test_a_refused_charge_leaves_nothing(path):
    ledger = dpf.Ledger(epsilon=0.3, path=path)
    before = path.read_bytes()
    with pytest.raises(dpf.BudgetExceeded, match=r"epsilon 0\.3 of epsilon 0\.3 remains"):
        PEOPLE.dp.count(epsilon=0.4, ledger=ledger)
    assert path.read_bytes() == before


def run(code, *arguments):
    """Run the code in another process that is not a fork."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environ)


@pytest.mark.slow
def test_three_tenths_are_three_times_a_tenth_in_three_processes(path):
    dpf.Ledger(epsilon=0.3, path=path)
    code = (
        "import sys, polars as pl, dpframe as dpf\n"
        "pl.DataFrame({'a': [1]}).dp.count(epsilon=0.1, ledger=dpf.Ledger(epsilon=0.3, path=sys.argv[1]))"
    )
    for _ in range(3):
        found = run(code, path)
        assert found.returncode == 0, found.stderr
    fourth = run(code, path)
    assert "BudgetExceeded" in fourth.stderr
    assert spent(path)[0] == Fraction(3, 10)


# Processes and threads


def race(barrier, made, path, tries, results):
    """Run in one of several processes that create or open, and charge, the same ledger at once."""
    barrier.wait()
    ledger = dpf.Ledger(epsilon=1, path=path) if made else dpf.Ledger.open(path)
    charged = 0
    for _ in range(tries):
        try:
            take(ledger, Fraction(1, 10))
            charged += 1
        except dpf.BudgetExceeded:
            continue
    results.put(charged)


def racing(context, path, *, rounds, makers, processes=8):
    for number in range(rounds):
        file = path.with_name(f"{number}.ledger")
        if not makers:
            dpf.Ledger(epsilon=1, path=file)
        barrier, results = context.Barrier(processes), context.Queue()
        children = [context.Process(target=race, args=(barrier, makers, file, 2, results)) for _ in range(processes)]
        for child in children:
            child.start()
        charged = [results.get(timeout=120) for _ in children]
        for child in children:
            child.join()
            child.close()
        results.close()
        results.join_thread()
        ledger = dpf.Ledger.open(file)
        assert sum(charged) == ledger.to_frame().height == 10
        assert ledger._store.last().total == (1, 0)


@pytest.mark.slow
def test_eight_spawned_processes_never_pass_the_limit(path):
    racing(multiprocessing.get_context("spawn"), path, rounds=1, makers=False)


@pytest.mark.slow
@FORKS
def test_eight_forked_processes_never_pass_the_limit(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
        racing(multiprocessing.get_context("fork"), path, rounds=3, makers=True)


def test_eight_threads_never_pass_the_limit(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    barrier, charged, raised = threading.Barrier(8), [], []

    def work():
        barrier.wait()
        for _ in range(3):
            try:
                charged.append(take(ledger, "1/10"))
            except Exception as error:
                raised.append(type(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(place["entry"] for place in charged) == list(range(1, 11))
    assert raised == [dpf.BudgetExceeded] * 14
    assert ledger.verify()["entry"] == 10


@FORKS
def test_forks_amid_the_charges_of_a_thread(path):
    """The process forks while another thread charges: the child must not inherit half of a transaction."""
    ledger, stop, charged = dpf.Ledger(epsilon=1000, path=path), threading.Event(), []

    def work():
        while not stop.is_set():
            charged.append(take(ledger, "1/10"))

    thread = threading.Thread(target=work)
    thread.start()
    codes = []
    for _ in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                take(ledger, "1/10")
                code = 0
            finally:
                os._exit(code)
        codes.append(os.waitpid(child, 0)[1])
    stop.set()
    thread.join()
    assert codes == [0] * 8
    assert ledger.verify()["entry"] == len(charged) + 8


# Copies


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_the_same_ledger(path, copied):
    ledger = dpf.Ledger(epsilon=1, path=path)
    assert copied(ledger) is ledger


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_carries_the_address_and_no_budget(path, protocol):
    ledger = dpf.Ledger(epsilon=1, path=path, dataset="clinic", checks=False)
    kept = pickle.dumps(ledger, protocol)
    take(ledger, "3/4")
    again = pickle.loads(kept)
    assert again.checks is False  # otherwise its calls would spend a part of their budget on checks
    assert again.remaining.epsilon == 0.25
    with pytest.raises(dpf.BudgetExceeded):
        take(again, "1/2")


def test_a_pickle_of_another_ledger_is_refused(path):
    kept = pickle.dumps(dpf.Ledger(epsilon=1, path=path))
    path.unlink()
    dpf.Ledger(epsilon=2, path=path)
    with pytest.raises(dpf.LedgerError, match="not the one that was pickled"):
        pickle.loads(kept)


def test_a_ledger_that_is_replaced_under_an_object_is_refused(path, tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    path.unlink()
    dpf.Ledger(epsilon=2, path=path)
    with pytest.raises(dpf.LedgerError, match="another was put in its place"):
        take(ledger, "1/2")


def test_a_file_that_is_replaced_amid_a_charge_is_no_free_release(path, tmp_path, monkeypatch):
    """The copy agrees with the head, but the charge went into the file that was replaced."""
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger, "1/4")
    copied, keep_head = keep(path, tmp_path / "copy"), sql.SqlStore._keep_head

    def replaced(*arguments):
        os.replace(copied, path)
        keep_head(*arguments)

    monkeypatch.setattr(sql.SqlStore, "_keep_head", replaced)
    monkeypatch.setattr(results, "totals", of_rows(lambda *_: pytest.fail("a row was read")))
    with pytest.raises(dpf.LedgerError, match="was replaced while it was charged"):
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger)


@pytest.mark.parametrize("replaced", [shutil.copy, os.replace], ids=["in place", "by another"])
def test_one_object_sees_what_is_put_under_it(path, tmp_path, replaced):
    """The connection stays open between charges, but must not go on with a file that was replaced."""
    ledger, other = dpf.Ledger(epsilon=1, path=path), dpf.Ledger.open(path)
    take(ledger, "1/4")
    older = keep(path, tmp_path / "older")
    take(other, "1/4")
    newest = keep(path, tmp_path / "newest")
    assert take(ledger, "1/4")["entry"] == 3
    replaced(older, path)
    for one in (ledger, other):
        with pytest.raises(dpf.LedgerError, match="older copy"):
            take(one, "1/4")
    replaced(newest, path)
    with pytest.raises(dpf.LedgerError, match="older copy: it holds 2 entries, and entry 3"):
        take(other, "1/4")


# Older copies, changed files


@pytest.fixture
def restored(path, tmp_path):
    """A ledger with three charges, whose file is then restored to the state after the first."""
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger, "1/4")
    copied = keep(path, tmp_path / "copy")
    take(ledger, "1/4")
    take(ledger, "1/4")
    newest = keep(path, tmp_path / "newest")
    shutil.copy(copied, path)
    return ledger, newest


def test_an_older_copy_is_refused(path, restored):
    ledger, newest = restored
    for use in (
        lambda: dpf.Ledger.open(path),
        lambda: dpf.Ledger(epsilon=1, path=path),
        lambda: take(ledger, "1/4"),
        lambda: ledger.spent,
        ledger.to_frame,
        ledger.verify,
    ):
        witness._newest.clear()  # as in a process that saw no entry: only the head detects the copy
        with pytest.raises(dpf.LedgerError, match=r"older copy: it holds 1 entry, and entry 3 .*Ledger\.recover"):
            use()
    assert "older copy" in repr(ledger)
    assert "older copy" in ledger._repr_html_()
    shutil.copy(newest, path)
    take(ledger, "1/4")
    assert spent(path)[0] == 1


def test_the_newer_copy_of_a_recovered_ledger_is_refused_in_fitting_words(path, restored):
    """The newer copy comes with its own head, so only the process that saw the recovery can detect it."""
    _, newest = restored
    head = path.with_name(f"{path.name}.head").read_bytes()
    recovered = dpf.Ledger.recover(path, reason="the disk broke")
    shutil.copy(newest, path)
    path.with_name(f"{path.name}.head").write_bytes(head)
    with pytest.raises(dpf.LedgerError, match=r"continued from an older copy: its entry 2 is not the one"):
        take(recovered, "1/4")


def test_to_recover_charges_what_the_copy_does_not_know(path, restored):
    ledger = dpf.Ledger.recover(path, reason="the disk broke")
    assert ledger.spent.epsilon == 0.75
    rows = ledger.to_frame().to_dicts()
    assert rows[-1]["label"] == "the disk broke"
    assert rows[-1]["epsilon"] == 0.5
    take(restored[0], "1/4")
    with pytest.raises(dpf.BudgetExceeded):
        take(ledger, "1/100")
    assert dpf.Ledger.recover(path, reason="again").to_frame().height == 3


@pytest.mark.parametrize("reason", [None, "", "  ", 3])
def test_to_recover_takes_a_reason(path, reason):
    missing = reason is None
    with pytest.raises(dpf.MissingArgument if missing else dpf.InvalidType, match="reason must be"):
        dpf.Ledger.recover(path, reason=reason)


def test_a_chain_that_forked_from_an_older_copy_is_refused(path, restored):
    ledger, _ = restored
    kept = head_of(path).read_bytes()
    head_of(path).unlink()
    witness._newest.clear()  # as in another process, which never saw the newest entry
    dpf.Ledger.recover(path, reason="a second history")
    for _ in range(4):
        take(ledger, "1/8")
    head_of(path).write_bytes(kept)
    with pytest.raises(dpf.LedgerError, match="older copy"):
        take(ledger, "1/8")


def test_a_crash_before_the_head_is_written_is_no_restore(path, monkeypatch):
    ledger = dpf.Ledger(epsilon=1, path=path)
    with monkeypatch.context() as patch:
        patch.setattr(sql.SqlStore, "_keep_head", lambda *_: None)
        for _ in range(3):
            take(ledger, "1/8")
    assert heads.read(str(path)).mark.entry == 0
    again = dpf.Ledger.open(path)
    assert take(again, "1/8")["entry"] == 4
    assert heads.read(str(path)).mark.entry == 4


def test_a_head_never_falls_back(path, restored, monkeypatch):
    """An older file replaces the ledger between a commit and the update of its head: the head stays at entry 4."""
    ledger, newest = restored
    shutil.copy(newest, path)
    kept = ledger._store
    mark = kept.charge(
        entries.Entry("", None, "", ledger.unit, (Fraction(1, 8), Fraction(0)), dpf.PrivacyLoss(0.1)),
        lambda *_: None,
    )
    shutil.copy(newest, path)
    with pytest.raises(dpf.LedgerError, match=r"was replaced while it was charged: nothing was released"):
        kept._keep_head(mark)
    assert heads.read(str(path)).mark.entry == 4


def test_a_missing_head_is_refused(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    head_of(path).unlink()
    take(ledger, "1/4")  # nothing was spent yet: the head is written anew
    head_of(path).unlink()
    for use in (lambda: take(ledger, "1/4"), lambda: dpf.Ledger.open(path), lambda: ledger.spent):
        with pytest.raises(dpf.LedgerError, match=r"head of the ledger .* is missing"):
            use()
    assert dpf.Ledger.recover(path, reason="moved without it").spent.epsilon == 0.25
    take(ledger, "1/4")
    assert ledger.to_frame()["epsilon"].to_list() == [0.25, 0.0, 0.25]


def test_a_broken_head_is_refused(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    head_of(path).write_text("{}")
    with pytest.raises(dpf.LedgerError, match="cannot be read as the head"):
        take(ledger, "1/4")


def test_a_ledger_that_is_gone_does_not_begin_anew(path):
    take(dpf.Ledger(epsilon=1, path=path), "1/4")
    path.unlink()
    with pytest.raises(dpf.LedgerError, match="is gone, but its head"):
        dpf.Ledger(epsilon=1, path=path)
    assert not path.exists()
    path.write_bytes(b"")
    with pytest.raises(dpf.LedgerError, match="is gone, but its head"):
        dpf.Ledger(epsilon=1, path=path)


def test_another_ledger_under_the_head_is_refused(path, tmp_path):
    take(dpf.Ledger(epsilon=1, path=path), "1/4")
    take(dpf.Ledger(epsilon=9, path=tmp_path / "other.ledger"), "1/4")
    shutil.copy(tmp_path / "other.ledger", path)
    with pytest.raises(dpf.LedgerError, match="is not the one whose head"):
        dpf.Ledger.open(path)
    with pytest.raises(dpf.LedgerError, match="is not the one whose head"):
        dpf.Ledger.recover(path, reason="no")


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "update dpframe_entries set body = replace(body, '1/8', '1/9') where entry = 1",
        "update dpframe_entries set body = replace(body, '1/8', '1/9') where entry = 3",
        "update dpframe_entries set head = 'x' where entry = 2",
        "update dpframe_entries set body = 'x' where entry = 2",
        "delete from dpframe_entries where entry = 3",
        "delete from dpframe_entries where entry = 1",
        "delete from dpframe_entries",
        "delete from dpframe_ledger",
        "update dpframe_ledger set terms = replace(terms, '1/1', '2/1')",
        "update dpframe_ledger set terms = 'x'",
        "update dpframe_ledger set terms = replace(terms, 'ledger/2', 'ledger/3')",
        "drop table dpframe_entries",
    ],
)
def test_a_changed_file_is_refused(path, statement):
    ledger = dpf.Ledger(epsilon=1, path=path)
    for _ in range(3):
        take(ledger, "1/8")
    edit(path, statement)
    with pytest.raises(dpf.LedgerError):
        dpf.Ledger.open(path)
    with pytest.raises(dpf.LedgerError):
        ledger.verify()


@pytest.mark.parametrize("left", [0, 50, 1000, 4096, 9000])
def test_a_truncated_file_is_refused(path, left):
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger, "1/8")
    path.write_bytes(path.read_bytes()[:left])
    for use in (lambda: dpf.Ledger.open(path), lambda: take(ledger, "1/8")):
        with pytest.raises(dpf.LedgerError) as caught:
            use()
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_foreign_file_is_refused_and_left_alone(path, tmp_path):
    path.write_text("a diary, of more than sixteen bytes")
    for use in (lambda: dpf.Ledger.open(path), lambda: dpf.Ledger(epsilon=1, path=path)):
        with pytest.raises(dpf.LedgerError, match="not one that dpframe made"):
            use()
    assert path.read_text() == "a diary, of more than sixteen bytes"
    other = tmp_path / "other.db"
    edit(other, "create table diary (day)")
    with pytest.raises(dpf.LedgerError, match="not a ledger"):
        dpf.Ledger.open(other)
    with pytest.raises(dpf.LedgerError, match="database of something else"):
        dpf.Ledger(epsilon=1, path=other)


# Disks and locks


def test_a_lock_of_another_is_waited_for_and_then_refused(path, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.1)
    ledger = dpf.Ledger(epsilon=1, path=path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(dpf.LedgerError, match=r"locked by another process for 0\.1 seconds"):
            take(ledger, "1/4")
        other.execute("rollback")
    assert take(ledger, "1/4")["entry"] == 1


@FORKS
def test_a_full_disk_charges_nothing_that_it_does_not_report(path):
    resource = pytest.importorskip("resource")
    ledger = dpf.Ledger(epsilon=1000, path=path)
    take(ledger, "1/10")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        charged = 0
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 8192,) * 2)
            for _ in range(100):
                take(ledger, "1/10", label="x" * 200)
                charged += 1
        except dpf.LedgerError as error:
            os._exit(charged if "Make room" in str(error) else 201)
        finally:
            os._exit(200)
    charged = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 0 < charged < 100
    assert dpf.Ledger.open(path).to_frame().height == 1 + charged


@FORKS
def test_a_file_that_may_not_be_written_is_read_and_not_charged(path, tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger, "1/4")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):  # pytest's folders: a parallel run has one more level
        if folder.stat().st_uid == os.geteuid() and folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    path.chmod(0o444)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)  # the user nobody: root may write any file
            else:
                tmp_path.chmod(0o555)
            assert dpf.Ledger.open(path).spent.epsilon == 0.25
            take(ledger, "1/4")
        except dpf.LedgerError as error:
            code = 0 if re.search(r"cannot be written.*: nothing was charged", str(error)) else 2
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tmp_path.chmod(0o755)
    path.chmod(0o644)
    assert code == 0
    assert dpf.Ledger.open(path).spent.epsilon == 0.25


def test_a_head_that_cannot_be_written_keeps_the_charge(path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    ledger = dpf.Ledger(epsilon=1, path=path)
    monkeypatch.setattr(files, "synchronized", full)
    with pytest.raises(dpf.LedgerError, match=r"head of the ledger cannot be written .* stays charged"):
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.25


def test_a_clock_that_goes_back_is_harmless(path, monkeypatch):
    ledger = dpf.Ledger(epsilon=1, path=path)
    from dpframe.ledger import ledger as ledgers

    for time_of_day in ("2030-01-01T00:00:00+00:00", "1999-01-01T00:00:00+00:00"):
        monkeypatch.setattr(ledgers, "now", lambda told=time_of_day: told)
        take(ledger, "1/4")
    assert ledger.verify()["entry"] == 2
    assert dpf.Ledger.open(path).to_frame()["epsilon"].to_list() == [0.25, 0.25]


# The record of a release


def test_a_release_knows_its_entry(path):
    ledger = dpf.Ledger(epsilon=1, path=path, dataset="clinic")
    results = [PEOPLE.dp.count(epsilon=0.25, ledger=ledger) for _ in range(2)]
    places = [result.dp.provenance["ledger"] for result in results]
    assert [place["entry"] for place in places] == [1, 2]
    assert {place["dataset"] for place in places} == {"clinic"}
    verified = ledger.verify(*(result.dp.provenance for result in results))
    assert places[-1].items() <= verified.items()
    assert "ledger" not in PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1)).dp.provenance


def test_the_record_of_a_durable_release_fits_the_schema(path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))
    facts = PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1, path=path)).dp.provenance
    jsonschema.Draft202012Validator(schema).validate(facts)
    assert json.loads(json.dumps(facts))["ledger"]["entry"] == 1


def test_a_release_tells_of_an_older_copy_and_its_head(path, tmp_path):
    """The head is restored along with the file, so only the record of a release reveals the older copy."""
    ledger = dpf.Ledger(epsilon=1, path=path)
    kept = [keep(file, tmp_path / f"kept{number}") for number, file in enumerate((path, head_of(path)))]
    result = PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    shutil.copy(kept[0], path)
    shutil.copy(kept[1], head_of(path))
    witness._newest.clear()  # as in another process: this one would remember
    assert ledger.verify()["entry"] == 0
    with pytest.raises(dpf.LedgerError, match="does not know the release that is its entry 1"):
        ledger.verify(result.dp.provenance)


def test_there_is_nothing_to_verify_in_memory():
    with pytest.raises(dpf.LedgerError, match="it has no chain"):
        dpf.Ledger(epsilon=1).verify()


def test_it_says_where_it_is_kept(path):
    ledger = dpf.Ledger(epsilon=1, path=path, dataset="clinic")
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="<first>")
    for part in (
        "spent epsilon 0.25 of epsilon 1",
        "[#####-",
        "25% of the limit",
        "data set 'clinic'",
        f"kept at '{path}'",
    ):
        assert part in repr(ledger)
    page = ledger._repr_html_()
    assert "&lt;first&gt;" in page
    assert "25.0%" in page
    assert path.name in page


def test_the_password_of_a_server_is_not_shown():
    from dpframe.ledger.address import Address

    address = Address.of("postgresql+psycopg://analyst:secret@host/name")
    assert "secret" not in address.shown
    assert "secret" in address.key


def test_97_a_head_that_cannot_be_written_is_known_before_the_charge(path, monkeypatch):
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger, "1/4")

    def read_only(file, mode="r", **words):
        if "+" in mode:
            raise OSError(errno.EROFS, "Read-only file system")
        return open(file, mode, **words)

    with monkeypatch.context() as patch:
        patch.setattr(heads, "open", read_only, raising=False)
        with pytest.raises(dpf.LedgerError, match=r"the head of the ledger cannot be written .*: nothing was charged"):
            take(ledger, "1/4")
    assert ledger.spent.epsilon == 0.25


def test_196_a_torn_head_leaves_the_one_before_also_after_a_skipped_entry(path, tmp_path):
    """A process that dies between a commit and its head skips an entry; then a loss of power tears the next head."""
    ledger = dpf.Ledger(epsilon=1, path=path)
    terms, mark, beside = ledger._store.terms, ledger._store.last(), head_of(path)
    for entry in (1, 2, 3, 5, 7, 8, 10, 13, 15):
        before, old = beside.read_bytes(), heads.read(path)
        heads.write(path, terms, dataclasses.replace(mark, entry=entry))
        after = beside.read_bytes()
        changed = [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
        torn = bytearray(before)
        for place in changed[: len(changed) // 2]:
            torn[place] = after[place]
        assert heads.of_slots(bytes(torn)) == old
        assert heads.read(path).mark.entry == entry
