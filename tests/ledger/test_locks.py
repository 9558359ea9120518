"""Charges at the same time stay separate: locks of ledgers in files, forks, signals, readers, a process's memory."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from datetime import date
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from dpframe import errors
from dpframe.ledger import database, entries, heads, locks, rows, sql, unbroken, witness
from dpframe.ledger.address import Address
from tests.timers import TIMERS, ring_in, timer_as_ctrl_c

fcntl = pytest.importorskip("fcntl")

ROOT = Path(__file__).resolve().parents[2]
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
ANOTHER = """
import sys
from fractions import Fraction
import dpframe as dpf
from dpframe.ledger import database
for line in sys.stdin:
    path, wait = line.rstrip().rsplit(" ", 1)
    database.WAIT = float(wait)
    try:
        ledger = dpf.Ledger.open(path)
        ledger.charge((Fraction(1, 10), Fraction(0)), cost=dpf.PrivacyLoss(0.1), query="", unit=ledger.unit)
        print("charged", flush=True)
    except dpf.LedgerError as error:
        print(error, flush=True)
"""


@pytest.fixture(scope="module")
def another():
    """A function that charges in another process, not a fork, and returns what that process prints."""
    words = [sys.executable, "-W", "error", "-c", ANOTHER]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)

    def charge(path, wait=0.3):
        process.stdin.write(f"{path} {wait}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    yield charge
    process.stdin.close()
    process.stdout.close()
    process.wait()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.ledger"


def beside(path, end):
    return path.with_name(f"{path.name}.{end}")


def entry(ledger, part="1/10"):
    return entries.Entry("", None, "", ledger.unit, (Fraction(part), Fraction(0)), dpf.PrivacyLoss(0.1))


def take(ledger, part="1/10"):
    amount = (Fraction(part), Fraction(0))
    return ledger.charge(amount, cost=dpf.PrivacyLoss(float(amount[0])), query="", unit=ledger.unit)


# The lock


@pytest.mark.slow
@pytest.mark.parametrize("read", [lambda path: path.read_bytes(), lambda path: shutil.copy(path, f"{path}.copy")])
def test_92_a_file_that_is_read_amid_a_charge_stays_locked(path, read, another):
    """Closing a descriptor of the file drops SQLite's locks, but dpframe's own lock still keeps others out."""
    ledger, said = dpf.Ledger(epsilon=1, path=path), []

    def allowed(*_):
        read(path)
        shutil.copy(beside(path, "lock"), f"{path}.lock-copy")
        said.append(another(path))

    ledger._store.charge(entry(ledger), allowed)
    assert "locked by another process for 0.3 seconds: nothing was charged" in said[0]
    assert another(path) == "charged"
    assert ledger.verify()["entry"] == 2


@pytest.mark.slow
def test_92_the_head_is_written_under_the_lock_of_its_charge(path, monkeypatch, another):
    ledger, said, keep_head = dpf.Ledger(epsilon=1, path=path), [], sql.SqlStore._keep_head

    def kept(*arguments):
        said.append(another(path))
        keep_head(*arguments)

    monkeypatch.setattr(sql.SqlStore, "_keep_head", kept)
    take(ledger)
    assert "locked by another process" in said[0]


def test_92_a_lock_that_is_removed_amid_a_charge_ends_it(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    with pytest.raises(dpf.LedgerError, match=r"was removed or replaced while it was held: nothing was charged"):
        ledger._store.charge(entry(ledger), lambda *_: beside(path, "lock").unlink())
    assert ledger.spent.epsilon == 0
    assert take(ledger)["entry"] == 1
    assert beside(path, "lock").exists()


def test_92_whoever_waited_for_a_lock_that_was_removed_takes_the_new_one(path):
    ledger, lock = dpf.Ledger(epsilon=1, path=path), beside(path, "lock")
    with lock.open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        charged = []
        thread = threading.Thread(target=lambda: charged.append(take(ledger)))
        thread.start()
        time.sleep(0.1)
        assert not charged
        lock.unlink()
        fcntl.flock(held, fcntl.LOCK_UN)
        thread.join()
    assert charged
    assert charged[0]["entry"] == 1
    assert lock.exists()


def test_the_lock_has_the_rights_of_the_ledger_and_is_made_again(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    path.chmod(0o660)
    beside(path, "lock").unlink()
    take(ledger)
    assert beside(path, "lock").stat().st_mode & 0o777 == 0o660
    assert beside(path, "lock").stat().st_size == 0


def test_no_lock_is_made_where_there_is_no_ledger(path, tmp_path):
    path.write_text("a diary, of more than sixteen bytes")
    (tmp_path / "folder").mkdir()
    for file in (path, tmp_path / "none", tmp_path / "folder"):
        for use in (dpf.Ledger.open, lambda name: dpf.Ledger(epsilon=1, path=name)):
            if file.name != "none" or use is dpf.Ledger.open:
                with pytest.raises(dpf.LedgerError):
                    use(file)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["clinic.ledger", "folder"]


def test_a_lock_that_leads_elsewhere_is_refused(path, tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    beside(path, "lock").unlink()
    beside(path, "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(dpf.LedgerError, match=r"lock of the ledger at .* cannot be opened .*: nothing was charged"):
        take(ledger)
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_without_locks_is_refused(path, monkeypatch):
    def none(_):
        raise OSError(errno.ENOLCK, "No locks available")

    ledger = dpf.Ledger(epsilon=1, path=path)
    monkeypatch.setattr(locks, "_try", none)
    with pytest.raises(dpf.LedgerError, match=r"Its disk offers no locks\. Keep the ledger on a local disk"):
        take(ledger)
    assert not locks.open_ones


@FORKS
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root becomes another user")
def test_who_may_only_read_reads_without_a_lock(path, tmp_path):
    take(dpf.Ledger(epsilon=1, path=path))
    beside(path, "lock").unlink()
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):  # pytest's folders: a parallel run has one more level
        if folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    assert in_a_child(lambda: os.setuid(65534) or dpf.Ledger.open(path).verify()["entry"] == 1) == 0
    assert not beside(path, "lock").exists()


# Forks


def in_a_child(work):
    """Run `work` in a forked child and return its exit code: 0 if the work returns true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_closed(opened):
    try:
        os.fstat(opened)
    except OSError:
        return True
    return False


@pytest.mark.long
@FORKS
def test_92_a_forked_child_holds_no_lock_of_its_parent(path, another):
    dpf.Ledger(epsilon=1, path=path)
    with locks.held(str(path), wait=1.0, create=False) as held:
        assert held is not None
        assert in_a_child(lambda: is_closed(held) and "locked" in another(path, wait=0.1)) == 0
        assert "locked" in another(path, wait=0.1)
    assert another(path) == "charged"


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system does not fork")
def test_a_fork_waits_for_a_transaction_that_needs_one_more_lock(path, monkeypatch):
    """To lock a head kept elsewhere, the transaction needs `locks.opening`, so the fork must take that one last."""
    monkeypatch.setattr(database, "WAIT", 1)
    tables, under_way = dpf.Ledger(epsilon=1, path=path)._store.database, threading.Event()

    def charging():
        with tables._using:
            under_way.set()
            time.sleep(0.2)
            with locks.opening:
                pass

    thread = threading.Thread(target=charging)
    thread.start()
    assert under_way.wait(10)
    database._hold()
    try:
        assert tables._paused
    finally:
        database._release()
        thread.join()


# Signals


@TIMERS
def test_93_ctrl_c_ends_the_waiting_for_a_lock_and_charges_nothing(path, another):
    ledger = dpf.Ledger(epsilon=1, path=path)
    with timer_as_ctrl_c(), beside(path, "lock").open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        start = time.monotonic()
        ring_in(0.2)
        with pytest.raises(KeyboardInterrupt):
            take(ledger)
        assert time.monotonic() - start < 5
    assert not locks.open_ones
    assert ledger.spent.epsilon == 0
    assert another(path) == "charged"


@TIMERS
def test_93_ctrl_c_amid_a_transaction_leaves_it_whole_and_the_file_free(path, another):
    """The handler raises while the transaction is open: the charge is committed, and nothing stays locked."""
    ledger, kept = dpf.Ledger(epsilon=1, path=path), None

    def allowed(*_):
        ring_in(0.01)
        time.sleep(0.1)

    with timer_as_ctrl_c():
        try:
            ledger._store.charge(entry(ledger), allowed)
        except KeyboardInterrupt as error:
            kept = error  # a notebook keeps the error, and so all objects in its frames
    assert kept is not None
    assert another(path) == "charged"
    assert ledger.verify()["entry"] == 2


def test_work_runs_also_where_no_thread_can_begin(path, monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(unbroken._thread, "start_new_thread", none)
    assert take(dpf.Ledger(epsilon=1, path=path))["entry"] == 1


def test_what_a_database_breaks_off_is_begun_anew(path, monkeypatch):
    ledger, last, failures = dpf.Ledger(epsilon=1, path=path), sql.SqlStore._last, [0] * 3

    def torn(*arguments):
        if failures:
            failures.pop()
            raise unbroken.Again("could not serialize access")
        return last(*arguments)

    monkeypatch.setattr(sql.SqlStore, "_last", torn)
    assert take(ledger)["entry"] == 1
    failures[:] = [0] * 100
    with pytest.raises(dpf.LedgerError, match="could not serialize access"):
        take(ledger)


# Rolled back


@pytest.fixture
def rolled_back(path, tmp_path):
    """A ledger with three charges, whose file and head are then restored to the state after the first."""
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger, "1/4")
    files = (path, beside(path, "head"))
    kept = [shutil.copy(file, tmp_path / f"kept{number}") for number, file in enumerate(files)]
    take(ledger, "1/4")
    take(ledger, "1/4")
    for copied, file in zip(kept, files, strict=True):
        shutil.copy(copied, file)
    return ledger


def test_96_a_file_that_is_put_back_with_its_head_does_not_go_on(path, rolled_back):
    for use in (
        lambda: take(rolled_back),
        lambda: rolled_back.spent,
        rolled_back.verify,
        rolled_back.to_frame,
        lambda: take(dpf.Ledger.open(path)),
        lambda: dpf.Ledger(epsilon=1, path=path),
        lambda: pickle.loads(pickle.dumps(rolled_back)),
    ):
        with pytest.raises(dpf.LedgerError, match=r"older copy: it holds 1 entry, and entry 3 .*Ledger\.recover"):
            use()


@FORKS
def test_96_a_forked_child_remembers(rolled_back):
    def refused():
        try:
            take(rolled_back)
        except dpf.LedgerError as error:
            return "older copy" in str(error)

    assert in_a_child(refused) == 0


def test_96_a_recovery_charges_what_the_process_saw(path, rolled_back):
    identity = rolled_back._store.identity
    mark = witness.newest(identity)
    ledger = dpf.Ledger.recover(path, reason="the disk broke")
    assert ledger.spent.epsilon == 0.75
    take(rolled_back, "1/8")
    witness._newest[identity] = mark  # as in another process, which saw the newest entry but not the recovery
    take(rolled_back, "1/8")
    with pytest.raises(dpf.BudgetExceeded):
        take(ledger)
    assert ledger.verify()["entry"] == 4
    assert dpf.Ledger.recover(path, reason="again").to_frame().height == 4


@pytest.mark.parametrize(
    ("second", "spent"),
    [
        ("the same", 0.75),  # the time of the last charge: the copy did not go on, so its 1/4 is part of the 3/4
        ("later", 1.0),  # the copy may have gone on before its recovery, so the whole 3/4 is charged on top
    ],
)
def test_96_a_recovery_of_another_process_that_knew_less_is_refused(path, rolled_back, monkeypatch, second, spent):
    identity = rolled_back._store.identity
    mark = witness.newest(identity)
    monkeypatch.setattr(sql, "now", lambda: mark.time if second == "the same" else "2100-01-01T00:00:00+00:00")
    witness._newest.clear()
    beside(path, "head").unlink()
    dpf.Ledger.recover(path, reason="moved without its head")
    witness._newest[identity] = mark
    with pytest.raises(dpf.LedgerError, match="older copy: it holds 2 entries, and entry 3"):
        take(rolled_back)
    assert dpf.Ledger.recover(path, reason="it was older, too").spent.epsilon == spent


def test_96_reading_amid_the_charges_of_threads_is_not_taken_for_an_older_copy(path):
    ledger, raised = dpf.Ledger(epsilon=1000, path=path), []
    others = [dpf.Ledger.open(path) for _ in range(3)]

    def work(one, use):
        try:
            for _ in range(30):
                use(one)
        except dpf.LedgerError as error:
            raised.append(error)

    uses = [take, lambda one: one.spent, take]
    threads = [threading.Thread(target=work, args=pair) for pair in zip(others, uses, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not raised
    assert ledger.verify()["entry"] == 60


def test_96_what_was_seen_only_grows(path):
    ledger = dpf.Ledger(epsilon=1, path=path)
    early = ledger._store.last()
    take(ledger)
    late = ledger._store.last()
    witness.note(ledger._store.identity, early)  # by a slow thread, which read this mark earlier
    assert witness.newest(ledger._store.identity) == late


# Readers


def test_115_a_charge_goes_on_between_the_parts_of_a_reading(path, monkeypatch):
    ledger, other = dpf.Ledger(epsilon=100, path=path), dpf.Ledger.open(path)
    for _ in range(10):
        take(ledger)
    monkeypatch.setattr(rows, "BATCH", 3)
    part, waits = sql.SqlStore._part, []

    def then_charge(*arguments):
        found = part(*arguments)
        start = time.monotonic()
        take(other)
        waits.append(time.monotonic() - start)
        return found

    monkeypatch.setattr(sql.SqlStore, "_part", then_charge)
    assert ledger.to_frame().height == 10
    assert len(waits) == 4
    assert ledger.verify()["entry"] == 14
    assert dpf.Ledger.open(path).to_frame().height > 14
    assert max(waits) < 5


def test_115_answers_are_read_in_parts(path, monkeypatch):
    ledger = dpf.Ledger(epsilon=100, path=path)
    for version in range(7):
        one = entries.Entry(
            "", "a", "", ledger.unit, (Fraction(1), Fraction(0)), dpf.PrivacyLoss(1.0), snapshot=str(version)
        )
        ledger.take(one)
        ledger.keep(one, b"answer %d" % version)
    monkeypatch.setattr(rows, "BATCH", 2)
    monkeypatch.setattr(rows, "MOMENT", 0.0)
    assert ledger.verify()["entry"] == 14


# Damaged files


def uses_of(path):
    return (
        lambda: dpf.Ledger.open(path).verify(),
        lambda: dpf.Ledger(epsilon=1000, path=path),
        lambda: take(dpf.Ledger.open(path)),
        lambda: dpf.Ledger.recover(path, reason="damaged"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_damage_of_any_kind_is_a_typed_error(path, tmp_path, seed):
    draw = random.Random(seed)
    ledger = dpf.Ledger(epsilon=1000, path=path)
    for _ in range(12):
        take(ledger)
    whole, said = path.read_bytes(), []
    for number in range(12):
        content = bytearray(whole)
        start = draw.randrange(len(content))
        length = draw.choice([1, 8, 200, 4096])
        content[start : start + length] = draw.randbytes(len(content[start : start + length]))
        damaged = tmp_path / f"damaged{number}.ledger"
        damaged.write_bytes(bytes(content) if draw.random() < 0.8 else bytes(content[:start]))
        shutil.copy(beside(path, "head"), beside(damaged, "head"))
        for use in uses_of(damaged):
            try:
                use()
            except dpf.DpframeError as error:
                said.append(str(error))
    assert said
    assert not any("another path" in words and "other people" not in words for words in said)


def a_socket(file):
    here = os.getcwd()
    os.chdir(file.parent)  # the address of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(file.name)
    finally:
        os.chdir(here)


IN_THE_WAY = {"folder": Path.mkdir}
if hasattr(os, "mkfifo"):
    IN_THE_WAY |= {"pipe": os.mkfifo, "socket": a_socket, "device": lambda file: file.symlink_to("/dev/zero")}


@pytest.mark.parametrize("kind", IN_THE_WAY)
@pytest.mark.parametrize("end", ["", ".head", ".lock", ".head.new", "-journal"])
def test_159_a_pipe_or_a_folder_in_place_of_a_file_is_a_typed_error_at_once(path, end, kind):
    ledger = dpf.Ledger(epsilon=1, path=path)
    take(ledger)
    for file in (Path(f"{path}{end}"), Path(f"{path}.head") if end == ".head.new" else None):
        if file is not None:
            file.unlink(missing_ok=True)
    IN_THE_WAY[kind](Path(f"{path}{end}"))
    told = []

    def use_all():
        for use in (lambda: take(ledger, "1/1000"), *uses_of(path)):
            try:
                use()
            except BaseException as error:
                told.append(error)

    thread = threading.Thread(target=use_all, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for a pipe"
    assert all(isinstance(error, dpf.DpframeError) for error in told), told
    if end in ("", ".head", ".lock"):
        assert told


# Faults of the disk


class Faulty:
    """The ledger's calls of `os` and `open`, of which one fails."""

    def __init__(self, monkeypatch):
        self.left, self.name, self.made = -1, None, 0
        for module in (heads, locks, errors):
            monkeypatch.setattr(module, "os", self._os())
        for module in (heads, locks):
            monkeypatch.setattr(module, "open", self._open, raising=False)

    def arm(self, number):
        self.left, self.name, self.made = number, None, 0

    def strike(self, name):
        if self.left < 0 or self.name is not None:
            return
        self.made += 1
        if self.made > self.left:
            self.name = name
            raise OSError(errno.EIO, "Input/output error")

    def _os(self):
        def failing(name):
            def call(*arguments, **named):
                if name != "close":
                    self.strike(name)
                found = getattr(os, name)(*arguments, **named)
                if name == "close":  # Linux closes the descriptor even if close reports an error
                    self.strike(name)
                return found

            return call

        names = ("open", "close", "fstat", "stat", "fsync", "fdatasync", "replace", "fchmod", "fchown")
        faulty = types.SimpleNamespace(**{name: getattr(os, name) for name in dir(os)})
        for name in names:
            if hasattr(os, name):
                setattr(faulty, name, failing(name))
        faulty.path = os.path
        return faulty

    @contextlib.contextmanager
    def _open(self, *arguments, **named):
        self.strike("open")
        with open(*arguments, **named) as file:
            yield FaultyFile(file, self)
        self.strike("close")


class FaultyFile:
    def __init__(self, file, faults):
        self.file, self.faults = file, faults

    def __getattr__(self, name):
        if name in ("read", "write", "seek", "flush"):
            self.faults.strike(name)
        return getattr(self.file, name)


def asked(ledger, **names):
    return pl.DataFrame({"age": [31, 45]}).dp.count(epsilon=0.125, ledger=ledger, **names)


def streamed(ledger):
    weeks = dpf.dates(date(2026, 1, 5), date(2026, 2, 1), every="1w")
    stream = dpf.Stream("s", statistic=dpf.count(), time="day", periods=weeks, epsilon=0.125, ledger=ledger)
    return stream.release(pl.DataFrame({"day": [date(2026, 1, 6)]}), date(2026, 1, 5))


@pytest.mark.slow
@pytest.mark.parametrize("work", ["plain", "named", "stream"])
def test_160_a_fault_of_any_call_is_a_typed_error_with_the_right_words(tmp_path, monkeypatch, work):
    """Each system call on lock and head fails once: the message must agree with what the ledger then contains."""
    uses = {"plain": asked, "named": lambda ledger: asked(ledger, label="x", snapshot="1"), "stream": streamed}
    dpf.Ledger(epsilon=1, path=tmp_path / "first.ledger")
    uses[work](dpf.Ledger(epsilon=1, path=tmp_path / "warm.ledger"))
    faults, number, struck = Faulty(monkeypatch), 0, set()
    while True:
        path = tmp_path / f"{number}.ledger"
        for end in ("", ".head"):
            shutil.copy(f"{tmp_path / 'first.ledger'}{end}", f"{path}{end}")
        error = None
        faults.arm(number)
        try:
            uses[work](dpf.Ledger.open(path))
        except BaseException as caught:
            error = caught
        faults.left = -1
        if faults.name is None:
            break
        struck.add(faults.name)
        spent = dpf.Ledger.open(path).spent.epsilon
        assert spent in (0, 0.125)
        if error is None:
            assert spent == 0.125
        else:
            assert isinstance(error, dpf.LedgerError), (number, faults.name, error)
            assert ("nothing was charged" in str(error)) == (spent == 0), (number, faults.name, error)
            assert spent == 0 or heads.STAYS in str(error), (number, faults.name, error)
        number += 1
    assert {"open", "close", "read", "fstat", "stat", "write"} <= struck


@pytest.mark.parametrize(
    "statement",
    [
        "update dpframe_entries set body = replace(body, '1/8', '1/0')",
        "update dpframe_entries set body = '" + "[" * 100_000 + "'",
        "update dpframe_entries set body = x'ff00'",
        "update dpframe_entries set body = 'null'",
        "update dpframe_entries set head = null",
        "update dpframe_entries set entry = entry + 4000000000",
        "update dpframe_ledger set terms = 'null'",
        "update dpframe_ledger set terms = x'ff'",
        "update dpframe_ledger set terms = '" + "[" * 100_000 + "'",
    ],
)
def test_rows_that_are_no_entries_are_a_typed_error(path, statement):
    import sqlite3
    from contextlib import closing

    ledger = dpf.Ledger(epsilon=1000, path=path)
    take(ledger, "1/8")
    with closing(sqlite3.connect(path)) as connection, connection:
        try:
            connection.execute(statement)
        except sqlite3.IntegrityError:
            pytest.skip("the database refuses it by itself")
    for use in (lambda: take(ledger), ledger.to_frame, *uses_of(path)):
        with pytest.raises(dpf.LedgerError):
            use()


# Addresses


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://analyst:hush@host/name",
        "postgresql+psycopg://host/name?user=analyst&password=hush",
        "postgresql+psycopg://analyst@host/name?sslpassword=hush&sslmode=require",
        "postgresql+psycopg://analyst@host/name?options=-cmy.token%3Dhush",
    ],
)
def test_117_a_password_is_never_shown(url):
    address = Address.of(url)
    assert "hush" in address.key
    assert "hush" not in address.shown
    assert "hush" not in repr(address)
    assert "hush" not in repr(database.Database(address))
    error = Exception('connection to server failed: password "hush" is wrong')
    if "password" in url or ":hush" in url:
        assert "hush" not in str(database.refusal(error, address, wait=1))


def test_117_a_secret_that_begins_like_another_is_hidden_whole():
    address = Address.of("postgresql+psycopg://analyst:hush@host/name?sslpassword=hush-of-the-key")
    assert address.without_secrets("no hush-of-the-key and no hush") == "no *** and no ***"


def test_a_schema_of_a_database_is_a_place_of_its_own():
    """Otherwise a process that saw the ledger of one schema would refuse that of another."""
    url = "postgresql+psycopg://host/name?options=-csearch_path%3D"
    assert Address.of(f"{url}wards").place != Address.of(f"{url}labs").place
    assert Address.of(f"{url}wards").place == Address.of(f"{url}wards&password=hush&connect_timeout=5").place
