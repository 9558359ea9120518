"""A head kept elsewhere: every process refuses a ledger that was restored along with the files next to it."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dpf
from dpframe.ledger import database, heads, locks, rows, sql, witness
from dpframe.ledger.terms import Terms
from dpframe.streams import stream_path
from tests.killed_streams import stays, stream_of, told

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
STAYS = stays()
NUMBERS = iter(range(10**6))


class Kept:
    """An object that stores a text, as a place for a head."""

    def __init__(self):
        self.text, self.written = None, []

    def read(self):
        return self.text

    def write(self, text):
        self.text = text
        self.written.append(text)


def take(ledger, part="1/8"):
    amount = (Fraction(part), Fraction(0))
    return ledger.charge(amount, cost=dpf.PrivacyLoss(float(amount[0])), query="", unit=ledger.unit)


def locked(*_):
    raise locks.Locked("the ledger is locked: nothing was charged.")


def forget():
    """Forget what this process saw, so that the test goes on as in another process."""
    witness._newest.clear()


class Files:
    """A ledger in a file, which is restored along with the head next to it."""

    def __init__(self, folder):
        self.folder, self.url = folder, str(folder / "clinic.ledger")

    def elsewhere(self):
        return self.folder / f"{next(NUMBERS)}.elsewhere"

    def connected(self):
        return sqlite3.connect(self.url)

    def keep(self):
        for end in ("", ".head"):
            shutil.copy(self.url + end, f"{self.url}{end}.kept")

    def put_back(self):
        for end in ("", ".head"):
            shutil.copy(f"{self.url}{end}.kept", self.url + end)

    def drop(self):
        for end in ("", ".head"):
            os.unlink(self.url + end)


class Databases:
    """A ledger in a database, which is dumped and restored with the tools of administrators."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.name = f"witness{next(NUMBERS)}"
        self.url = server.url(self.name)
        self.dump = server.folder / f"{self.name}.dump"

    def elsewhere(self):
        return self.server.url(f"elsewhere{next(NUMBERS)}")

    def do(self, words, url=None):
        """Run SQL in the ledger's database, or in that of another URL."""
        import psycopg

        with psycopg.connect((url or self.url).replace("+psycopg", ""), autocommit=True) as connection:
            return connection.execute(words)

    def as_role(self, role, url):
        return re.sub("//[^@]*@", f"//{role}@", url, count=1)

    def run(self, program, *words):
        command = [str(self.server.programs / program), "-h", str(self.server.folder), *words]
        subprocess.run(command, check=True, user=self.server.user, cwd=self.server.folder, capture_output=True)

    def connected(self):
        import psycopg

        return psycopg.connect(host=str(self.server.folder), user=self.server.user, dbname=self.name)

    def keep(self):
        self.run("pg_dump", "-Fc", "-f", str(self.dump), self.name)

    def put_back(self):
        self.drop()
        self.run("pg_restore", "-d", self.name, str(self.dump))

    def drop(self):
        self.run("dropdb", "--force", self.name)
        self.run("createdb", self.name)


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def store(request, tmp_path):
    return Files(tmp_path) if request.param == "file" else Databases(request.getfixturevalue("server"), tmp_path)


@pytest.fixture(params=["path", "object", "address"])
def head(request, store, tmp_path):
    return {"path": lambda: tmp_path / "other.head", "object": Kept, "address": store.elsewhere}[request.param]()


def uses(store, head):
    return (
        lambda: dpf.Ledger.open(store.url, head=head),
        lambda: dpf.Ledger(epsilon=1, path=store.url, head=head),
    )


def test_153_a_ledger_that_was_put_back_is_refused_by_a_fresh_process(store, head):
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    take(ledger)
    store.keep()
    take(ledger)
    take(ledger)
    store.put_back()
    forget()
    for use in (*uses(store, head), lambda: take(ledger)):
        with pytest.raises(dpf.LedgerError, match=r"older copy: it holds 1 entry, and entry 3 .*head=\.\.\., reason"):
            use()
        forget()
    again = dpf.Ledger.recover(store.url, head=head, reason="the server was restored")
    assert again.spent.epsilon == 0.375
    take(again)
    forget()
    assert dpf.Ledger.open(store.url, head=head).verify()["entry"] == 3


def test_153_a_ledger_that_is_gone_does_not_begin_anew(store, head):
    take(dpf.Ledger(epsilon=1, path=store.url, head=head))
    store.drop()
    forget()
    for use in uses(store, head):
        with pytest.raises(dpf.LedgerError, match=r"is gone, but its head at .* says that entry 1 was"):
            use()
    take(dpf.Ledger(epsilon=1, path=store.url))  # created anew by a process that does not know the head
    forget()
    with pytest.raises(dpf.LedgerError, match="is not the one whose head, with 1 entry, is kept at"):
        dpf.Ledger.open(store.url, head=head)


def test_153_nothing_is_charged_without_the_head_and_all_can_be_read(store, head):
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    take(ledger)
    reader = dpf.Ledger.open(store.url)
    assert reader.spent.epsilon == 0.125
    assert reader.verify()["entry"] == 1
    for use in (
        lambda: take(reader),
        lambda: PEOPLE.dp.count(epsilon=0.1, ledger=reader),
        lambda: reader.raise_limit(epsilon=2, reason="more"),
        lambda: dpf.Ledger.recover(store.url, reason="no"),
        lambda: stream_of(reader).release(STAYS, 1),
    ):
        with pytest.raises(dpf.LedgerError, match=r"kept elsewhere|Restore"):
            use()
    assert ledger.verify()["entry"] == 1


def test_153_a_lost_head_is_refused_until_a_recovery_says_why(store):
    head = Kept()
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    head.text = None  # nothing was spent, so the head is written anew
    take(ledger)
    head.text = None
    for use in (*uses(store, head), lambda: take(ledger), lambda: ledger.spent):
        with pytest.raises(dpf.LedgerError, match=r"missing: it is kept at a Kept\. Restore it"):
            use()
    for torn in ("", "{}", head.written[-1][:-1], "\ud800", head.written[-1].replace("0", "1", 1)):
        head.text = torn
        with pytest.raises(dpf.LedgerError, match="cannot be read as the head"):
            take(ledger)
    head.text = None
    assert dpf.Ledger.recover(store.url, head=head, reason="the bucket was emptied").spent.epsilon == 0.125
    assert take(dpf.Ledger.open(store.url, head=head))["entry"] == 3
    assert dpf.Ledger.recover(store.url, head=head, reason="again").verify()["entry"] == 3


@pytest.fixture
def clock(monkeypatch):
    """Make each entry one second later than the one before."""
    seconds = iter(range(1_000))
    for module in ("dpframe.ledger.ledger", "dpframe.ledger.sql"):
        monkeypatch.setattr(f"{module}.now", lambda: f"2026-01-01T00:{next(seconds):06d}+00:00")


@pytest.mark.parametrize("more", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("knows", ["process", "head"])
@pytest.mark.usefixtures("clock")
def test_178_a_recovery_charges_all_where_a_copy_went_on(store, knows, more):
    """Two charges, four that the copy lacks, then `more` charges on the copy by a process that saw none of the four."""
    kept = Kept() if knows == "head" else None
    ledger = dpf.Ledger(epsilon=4, path=store.url, head=kept)
    for _ in range(2):
        take(ledger)
    store.keep()
    begun = None if kept is None else kept.text
    for _ in range(4):
        take(ledger)
    known, newest = dict(witness._newest), None if kept is None else kept.text
    store.put_back()
    forget()
    if kept is not None:
        kept.text = begun  # the head is restored too; its newest text turns up later
    other = dpf.Ledger.open(store.url, head=kept)
    for _ in range(more):
        take(other)
    if kept is not None:
        kept.text = newest
    forget()
    if knows == "process":
        witness._newest.update(known)
    whole = 6 / 8 if not more else 2 / 8 + more / 8 + 6 / 8  # the fork point is unknown: all 6/8 are charged on top
    assert dpf.Ledger.recover(store.url, head=kept, reason="both went on").spent.epsilon == whole
    forget()
    witness._newest.update(known)  # a process that saw the four goes on: they are not charged again
    take(dpf.Ledger.open(store.url, head=kept))
    witness._newest.update(known)
    assert dpf.Ledger.recover(store.url, head=kept, reason="again").spent.epsilon == whole + 1 / 8


@pytest.mark.usefixtures("clock")
def test_178_a_recovery_of_a_copy_that_had_gone_on_covers_no_process_that_knew_more(store):
    """The total of the copy equals the total that the process saw, but lacks two charges that the process saw."""
    ledger = dpf.Ledger(epsilon=4, path=store.url)
    take(ledger)
    store.keep()
    for _ in range(2):
        take(ledger)
    known = dict(witness._newest)
    store.put_back()
    forget()
    other, kept = dpf.Ledger.open(store.url), Kept()
    for _ in range(2):
        take(other)
    recovered = dpf.Ledger.recover(store.url, head=kept, reason="it had none")
    assert recovered.spent.epsilon == 3 / 8
    witness._newest.update(known)
    with pytest.raises(dpf.LedgerError, match="older copy"):
        take(recovered)
    assert dpf.Ledger.recover(store.url, head=kept, reason="both went on").spent.epsilon == 6 / 8


def test_whoever_detects_an_older_copy_names_the_call_that_recovers_it(tmp_path):
    """The head next to the ledger detects the copy first, and the call must still name the head kept elsewhere."""
    path, older, head = tmp_path / "clinic.ledger", tmp_path / "older", tmp_path / "elsewhere"
    ledger = dpf.Ledger(epsilon=1, path=path, head=head)
    take(ledger)
    shutil.copy(path, older)
    take(ledger)
    beside = tmp_path / "clinic.ledger.head"
    newest = beside.read_bytes()
    shutil.copy(older, path)
    call = r"call dpf\.Ledger\.recover\(path, head=\.\.\., reason=\.\.\.\)\."
    with pytest.raises(dpf.LedgerError, match=f"older copy: .*{call}"):  # this process saw the newest
        take(ledger)
    forget()
    for given in (head, None):
        with pytest.raises(dpf.LedgerError, match=f"older copy: .*{call}"):
            dpf.Ledger.open(path, head=given)
    beside.unlink()
    with pytest.raises(dpf.LedgerError, match=f"is missing: .*{call}"):
        dpf.Ledger.open(path, head=head)
    beside.write_bytes(b"torn")
    with pytest.raises(dpf.LedgerError, match=f"cannot be read as the head .*{call}"):
        dpf.Ledger.open(path, head=head)
    beside.write_bytes(newest)
    with pytest.raises(dpf.LedgerError, match=f"head must be given: .*{call.replace('call', 'Say where:')}"):
        dpf.Ledger.recover(path, reason="disk lost")
    assert dpf.Ledger.recover(path, head=head, reason="disk lost").spent.epsilon == 2 / 8


@pytest.mark.skipif(not hasattr(os, "fchown"), reason="this system has no groups")
def test_a_head_that_is_begun_anew_keeps_its_rights(tmp_path):
    """With other rights, the other users of a group could no longer charge."""
    path, older = tmp_path / "clinic.ledger", tmp_path / "older"
    stream = stream_of(dpf.Ledger(epsilon=1, path=path))
    shutil.copy(path, older)
    stream.release(STAYS, 1)
    shutil.copy(older, path)
    head = tmp_path / "clinic.ledger.head"
    head.chmod(0o664)
    forget()
    dpf.Ledger.recover(path, reason="the disk broke")
    assert head.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("kind", ["beside", "elsewhere"])
@pytest.mark.parametrize("shows", ["release", "to_frame"])
def test_195_a_period_is_shown_by_nobody_before_the_heads_know_it(tmp_path, monkeypatch, kind, shows):
    """The process dies between commit and head. An older copy would treat the period as lost and reuse its rows."""
    path, older = tmp_path / "clinic.ledger", tmp_path / "older"
    head = Kept() if kind == "elsewhere" else None
    stream = stream_of(dpf.Ledger(epsilon=1, path=path, head=head))
    keep_head = sql.SqlStore._keep_head

    def dying(self, mark):
        if mark.entry == 3:  # entries 1 to 3: the charge, the intent, the values
            raise KeyboardInterrupt
        keep_head(self, mark)
        shutil.copy(path, older)

    with monkeypatch.context() as patched:
        patched.setattr(sql.SqlStore, "_keep_head", dying)
        with pytest.raises(KeyboardInterrupt):
            stream.release(STAYS, 1)
    forget()
    other = stream_of(dpf.Ledger.open(path, head=head))
    with monkeypatch.context() as patched:
        patched.setattr(sql.SqlStore, "_write_newest", locked)
        with pytest.raises(dpf.LedgerUnavailable, match="is locked"):
            other.release(STAYS, 1) if shows == "release" else other.to_frame()
    assert (other.release(STAYS, 1) if shows == "release" else other.to_frame()).height == 2
    shutil.copy(older, path)
    forget()
    with pytest.raises(dpf.LedgerError, match="older copy: it holds 2 entries, and entry 3 was written"):
        stream_of(dpf.Ledger.open(path, head=head)).release(STAYS, 2)


def test_200_a_period_is_shown_by_nobody_who_does_not_know_the_head(store):
    """As above, but the caller does not say where the head is kept, so that head would stay behind."""
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=(head := Kept()))
    stream_of(ledger).release(STAYS, 1)
    reader = dpf.Ledger.open(store.url)
    for shows in (lambda stream: stream.release(STAYS, 1), lambda stream: stream.to_frame()):
        with pytest.raises(dpf.LedgerError, match="head must be given"):
            shows(stream_of(reader))
        assert shows(stream_of(dpf.Ledger.open(store.url, head=head))).height == 2
    assert reader.verify()["entry"] == 3
    assert stream_of(reader, name="another").to_frame().height == 0


def test_153_a_head_may_begin_later(store, head):
    """A new head needs no reason if nothing was charged; otherwise it takes a recovery with a reason."""
    dpf.Ledger(epsilon=1, path=store.url)
    ledger, before = dpf.Ledger.open(store.url, head=head), dpf.Ledger.open(store.url)
    take(ledger)
    with pytest.raises(dpf.LedgerError, match="head must be given"):
        take(before)
    moved = Kept()
    with pytest.raises(dpf.LedgerError, match="is missing: it is kept at a Kept"):
        dpf.Ledger.open(store.url, head=moved)
    assert dpf.Ledger.recover(store.url, head=moved, reason="another place").spent == ledger.spent


def test_153_a_head_of_a_ledger_with_entries_takes_a_reason(store, head):
    old = dpf.Ledger(epsilon=1, path=store.url)
    take(old)
    with pytest.raises(dpf.LedgerError, match=r"has entries, and its head was never kept elsewhere.*reason=\.\.\."):
        dpf.Ledger.open(store.url, head=head)
    take(old)
    new = dpf.Ledger.recover(store.url, head=head, reason="it was never restored")
    assert new.to_frame()["query"].to_list()[-1].startswith("recovered: ")
    assert new.spent.epsilon == 0.25
    with pytest.raises(dpf.LedgerError, match="kept elsewhere since it was opened"):
        take(old)
    store.keep()
    take(new)
    store.put_back()
    forget()
    with pytest.raises(dpf.LedgerError, match="older copy"):
        dpf.Ledger.open(store.url, head=head)


def test_153_the_head_is_written_after_the_commit_and_is_never_ahead(store, monkeypatch):
    head = Kept()
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    advance, ahead = witness.Witness.advance, []

    def looked(self, terms, mark, **named):
        with closing(store.connected()) as other:  # this connection sees only what is committed
            found = other.execute(f"SELECT head FROM dpframe_entries WHERE entry = {mark.entry}").fetchone()
        ahead.append(found == (mark.head,))
        advance(self, terms, mark, **named)

    with monkeypatch.context() as patch:
        patch.setattr(sql.SqlStore, "_keep_head", lambda *_, **__: None)  # killed between the commit and the head
        take(ledger)
    assert heads.of_slots(head.text.encode()).mark.entry == 0, (
        "a head was written, though the commit alone was let go on"
    )
    monkeypatch.setattr(witness.Witness, "advance", looked)
    assert take(ledger)["entry"] == 2  # the head is behind, and the charge goes on
    assert heads.of_slots(head.text.encode()).mark.entry == 2
    assert ahead == [True]


def test_153_a_slow_writer_does_not_take_the_head_back(store, head):
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    take(ledger)
    early = ledger._store.last()
    take(ledger)
    kept = ledger._store.witness
    kept.advance(ledger._store.terms, early)
    assert kept.read().mark.entry == 2


@pytest.fixture
def copies(tmp_path, head):
    """A ledger and its copy on another disk, which share one head."""
    places = [tmp_path / part / "clinic.ledger" for part in ("one", "two")]
    for place in places:
        place.parent.mkdir()
    dpf.Ledger(epsilon=1, path=places[0], head=head)
    for end in ("", ".head", ".lock"):
        shutil.copy(f"{places[0]}{end}", f"{places[1]}{end}")
    return places


def test_201_of_two_copies_that_charge_at_once_one_releases_nothing(copies, head, monkeypatch):
    """The copies lock different files, so each commits before it can see the head that the other writes."""
    first, second = (dpf.Ledger.open(copy, head=head) for copy in copies)
    write_newest = sql.SqlStore._write_newest

    def later(self, mine, anew):
        monkeypatch.setattr(sql.SqlStore, "_write_newest", write_newest)
        take(first, "1")
        write_newest(self, mine, anew)

    monkeypatch.setattr(sql.SqlStore, "_write_newest", later)
    with pytest.raises(dpf.LedgerError, match="its entry 1 is not the one that was written"):
        PEOPLE.dp.count(epsilon=1, ledger=second)
    assert first.spent.epsilon == 1
    first.verify()


class _Hurried(Kept):
    """An object whose text another copy replaces right after a write."""

    def __init__(self):
        super().__init__()
        self.then = None

    def write(self, text):
        super().write(text)
        then, self.then = self.then, None
        if then is not None:
            self.text = then


@pytest.mark.parametrize("head", [_Hurried()])
def test_201_an_object_is_read_once_more_after_it_was_written(copies, head):
    first, second = (dpf.Ledger.open(copy, head=head) for copy in copies)
    before = head.text
    take(first)
    head.then, head.text = head.text, before  # the second reads and writes before the first one's text arrives
    with pytest.raises(dpf.LedgerError, match="its entry 1 is not the one that was written"):
        take(second)


def test_201_nobody_writes_a_head_in_a_file_between_a_look_and_the_writing(tmp_path, monkeypatch):
    head = tmp_path / "other.head"
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=head)
    write_at, held = heads.write_at, []

    def written(path, new, old):
        if path == str(head):
            with pytest.raises(locks.Locked), locks.held_head(path, wait=0):
                pass
            held.append(path)
        write_at(path, new, old)

    monkeypatch.setattr(heads, "write_at", written)
    take(ledger)
    assert held == [str(head)]


def test_201_a_head_that_cannot_be_locked_is_refused_before_the_charge(tmp_path):
    head = tmp_path / "other.head"
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=head)
    os.unlink(f"{head}.lock")
    os.mkdir(f"{head}.lock")
    with pytest.raises(dpf.LedgerError, match=r"cannot be written to .*other\.head.*nothing was charged"):
        take(ledger)
    assert ledger.spent.epsilon == 0


def test_153_threads_and_objects_write_the_head_in_order(store, head):
    dpf.Ledger(epsilon=100, path=store.url, head=head)
    raised = []

    def work():
        try:
            one = dpf.Ledger.open(store.url, head=head)
            for _ in range(5):
                take(one)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not raised
    ledger = dpf.Ledger.open(store.url, head=head)
    assert ledger._store.witness.read().mark.entry == ledger.verify()["entry"] == 15


def test_153_a_pickle_carries_the_place_of_the_head(store, head):
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    again = pickle.loads(pickle.dumps(ledger))
    take(again)
    kept = again._store.witness.read()
    assert kept.mark.entry == 1
    assert isinstance(head, Kept) or ledger._store.witness.read() == kept


@pytest.mark.parametrize(("error", "passes"), [(ConnectionError, True), (TimeoutError, True), (KeyError, False)])
def test_153_an_object_that_fails(store, error, passes):
    class Failing(Kept):
        fails = ""

        def read(self):
            if self.fails == "read":
                raise error("hush")
            return super().read()

        def write(self, text):
            if self.fails == "write":
                raise error("hush")
            super().write(text)

    head = Failing()
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    for what, charged, words in (("read", "no", "nothing was charged"), ("write", "unknown", "stays charged")):
        head.fails = what
        with pytest.raises(dpf.LedgerError, match=words) as caught:
            take(ledger)
        assert "hush" not in str(caught.value)
        assert str(caught.value).count("stays charged") == (what == "write")
        assert isinstance(caught.value, dpf.LedgerUnavailable) == passes
        assert getattr(caught.value, "charged", charged) == charged
    head.fails = ""
    assert take(ledger)["entry"] == 2


@pytest.mark.parametrize("gives", [7, b"head"], ids=["number", "bytes"])
def test_an_object_that_gives_no_text_after_the_commit_leaves_the_charge_known(tmp_path, gives):
    """The error once blamed only the argument and did not mention that the charge stands."""

    class Odd(Kept):
        committed = False

        def read(self):
            return gives if self.committed else super().read()

        def write(self, text):
            super().write(text)
            self.committed = committing

    head, committing = Odd(), False
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=head)
    committing = True
    with pytest.raises(
        dpf.LedgerError, match=r"read from an Odd: nothing was released, but what .*stays charged"
    ) as no:
        take(ledger)
    assert str(no.value).count("charged") == 2
    with pytest.raises(dpf.LedgerError, match=r"read from an Odd: nothing was charged\. Its read\(\) must give"):
        take(ledger)
    head.committed = committing = False
    assert take(ledger)["entry"] == 2


def test_an_object_that_cannot_write_makes_no_ledger(tmp_path):
    class Failing(Kept):
        def write(self, text):
            raise KeyError("hush")

    with pytest.raises(dpf.LedgerError, match=r"written to a Failing: no ledger was made\. Mend what KeyError says\."):
        dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=Failing())
    assert not [each for each in tmp_path.iterdir() if each.stat().st_size and each.suffix == ".ledger"]


PLACES = {"number": 3, "bytes": b"x", "object": object(), "class": Kept, "empty": "", "mysql": "mysql://host/name"}


@pytest.mark.parametrize("wrong", [*PLACES.values(), ["a"]], ids=[*PLACES, "list"])
def test_153_what_is_no_place_for_a_head_is_refused(tmp_path, wrong):
    with pytest.raises(dpf.InvalidArgument, match="head must be"):
        dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=wrong)
    assert list(tmp_path.iterdir()) == []


def test_153_a_ledger_whose_head_cannot_be_written_is_not_made(tmp_path):
    place = tmp_path / "none" / "elsewhere"
    for _ in range(2):
        with pytest.raises(
            dpf.LedgerError, match=r"the head of the ledger cannot be written .*: no ledger was made"
        ) as no:
            dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=place)
        assert "charged" not in str(no.value)
    place.parent.mkdir()
    with dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=place) as ledger:
        PEOPLE.dp.count(epsilon=1)
    assert ledger.spent == dpf.PrivacyLoss(1)


def test_153_a_head_must_be_elsewhere(tmp_path):
    path = tmp_path / "clinic.ledger"
    for end in ("", ".head", ".lock", "-journal", "-wal", "-shm"):
        with pytest.raises(dpf.InvalidArgument, match="head must be kept elsewhere"):
            dpf.Ledger(epsilon=1, path=path, head=f"{path}{end}")
    with pytest.raises(dpf.InvalidArgument, match="head must be kept elsewhere"):
        dpf.Ledger.open("postgresql+psycopg://a@host/name", head="postgresql://b:c@host/name?sslmode=require")
    with pytest.raises(dpf.InvalidArgument, match="in memory"):
        dpf.Ledger(epsilon=1, head=tmp_path / "x.head")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_171_a_head_in_the_ledgers_own_database_is_refused_whatever_its_url_says(server, tmp_path):
    """A server has many names, and restoring the database would restore a head in it too."""
    store = Databases(server, tmp_path)
    same = store.url.replace(str(server.folder), f"{server.folder}/.")
    for head in (same, f"{same}&options=-csearch_path%3Dpg_temp"):
        with pytest.raises(dpf.InvalidArgument, match="head must be kept elsewhere"):
            dpf.Ledger(epsilon=1, path=store.url, head=head)
    ledger = dpf.Ledger(epsilon=1, path=store.url)  # the refused calls made no ledger
    with pytest.raises(dpf.InvalidArgument, match="head must be kept elsewhere"):
        dpf.Ledger.open(store.url, head=same)
    take(ledger)
    with pytest.raises(dpf.InvalidArgument, match="head must be kept elsewhere"):
        dpf.Ledger.recover(store.url, head=same, reason="a head from here on")
    assert take(dpf.Ledger.recover(store.url, head=store.elsewhere(), reason="a head from here on"))["entry"] == 3


def test_172_a_charge_whose_head_could_not_follow_releases_nothing(store, head, monkeypatch):
    """The ledger stays locked after the commit, so the head stays behind."""
    ledger = dpf.Ledger(epsilon=1, path=store.url, head=head)
    with monkeypatch.context() as patch:
        patch.setattr(sql.SqlStore, "_write_newest", locked)
        with pytest.raises(dpf.LedgerUnavailable, match="stays charged") as caught:
            PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    assert caught.value.charged == "unknown"
    assert ledger.spent.epsilon == 0.125
    assert take(ledger)["entry"] == 2


def locked_at(monkeypatch, path, kind):
    """Let another program, without dpframe, lock the ledger just after an entry of this kind is committed.

    Return its connection.
    """
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    write_newest = sql.SqlStore._write_newest

    def lock_first(store, mark, anew):
        ((_, entry),) = store.entries()[-1:]
        if entry.kind == kind and not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")
        write_newest(store, mark, anew)

    monkeypatch.setattr(sql.SqlStore, "_write_newest", lock_first)
    return other


@pytest.mark.parametrize("way_on", ["charge", "recover"])
def test_253_a_charge_whose_head_next_to_the_file_could_not_follow_releases_nothing(tmp_path, monkeypatch, way_on):
    """The copy from before the charge contains the head that stayed behind, and would not contain the charge."""
    monkeypatch.setattr(database, "WAIT", 0.1)
    path, older = tmp_path / "clinic.ledger", tmp_path / "older"
    ledger = dpf.Ledger(epsilon=1, path=path)
    shutil.copy(path, older)
    with monkeypatch.context() as patched, closing(locked_at(patched, path, "charge")) as other:
        with pytest.raises(
            dpf.LedgerUnavailable, match=r"locked.*nothing was released.*stays charged.*Ask again"
        ) as no:
            PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
        assert no.value.charged == "unknown"
        assert ledger.spent.epsilon == 0.125  # reading goes on, also while the other program holds its lock
        assert ledger.affords(PEOPLE.dp.preview.count(epsilon=0.25, ledger=ledger)) == 3
        assert dpf.Ledger.open(path).verify()["entry"] == 1
        other.execute("ROLLBACK")
    assert heads.read(str(path)).mark.entry == 0
    if way_on == "recover":  # an intact ledger stays as it is
        assert dpf.Ledger.recover(path, reason="is it whole?").spent.epsilon == 0.125
    assert PEOPLE.dp.count(epsilon=0.25, ledger=ledger).shape == (1, 2)
    assert ledger.spent.epsilon == 0.375
    assert heads.read(str(path)).mark.entry == 2
    shutil.copy(older, path)
    forget()
    with pytest.raises(dpf.LedgerError, match="older copy: it holds 0 entries, and entry 2 was written"):
        dpf.Ledger.open(path)


@pytest.mark.parametrize("kind", ["charge", "intent", "values"])
def test_253_a_period_is_not_shown_before_the_head_next_to_the_file_knows_it(tmp_path, monkeypatch, kind):
    """As 195, but the call that drew the period goes on itself."""
    monkeypatch.setattr(database, "WAIT", 0.1)
    monkeypatch.setattr(stream_path, "PATIENCE", 0.3)
    path, older = tmp_path / "clinic.ledger", tmp_path / "older"
    stream, append = stream_of(dpf.Ledger(epsilon=1, path=path)), rows.append

    def copied(connection, last, entry):
        if entry.kind == "values":
            shutil.copy(path, older)
        return append(connection, last, entry)

    monkeypatch.setattr(rows, "append", copied)
    with monkeypatch.context() as patched, closing(locked_at(patched, path, kind)) as other:
        with pytest.raises(dpf.LedgerUnavailable, match=r"locked.*nothing was released.*stays charged.*Ask again"):
            stream.release(STAYS, 1)
        other.execute("ROLLBACK")
    if kind == "intent":
        with pytest.raises(dpf.ReleaseFailed, match=r"is lost.*release 2"):
            stream.release(STAYS, 1)
        assert stream.release(STAYS, 2).dp.provenance["period"]["since"] == 1
        return
    shown = told(stream.release(STAYS, 1))
    assert heads.read(str(path)).mark.entry == 3  # the charge, the intent, the values
    assert told(stream_of(dpf.Ledger.open(path)).release(STAYS, 1)) == shown
    shutil.copy(older, path)
    forget()
    with pytest.raises(dpf.LedgerError, match="older copy: it holds 2 entries, and entry 3 was written"):
        stream_of(dpf.Ledger.open(path)).release(STAYS, 2)


def test_153_the_format_says_that_a_head_is_kept_elsewhere(tmp_path):
    """dpframe 0.2 would not update the head, so the format makes it refuse the ledger; the chain begins as usual."""
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=tmp_path / "other.head")
    terms = ledger._store.terms
    assert '"format":"dpframe.ledger/3"' in terms.text()
    assert Terms.of_text(terms.text(), "") == terms
    assert terms.beginning == terms.plain_text()
    for text in (terms.text() + " ", terms.text().replace("/3", "/4"), terms.text().replace("epsilon", "epsilom")):
        with pytest.raises(dpf.LedgerError):
            Terms.of_text(text, "")


# Streams


@pytest.mark.slow
def test_154_a_stream_on_a_server_needs_a_head(server, tmp_path):
    store = Databases(server, tmp_path)
    ledger = dpf.Ledger(epsilon=1, path=store.url)
    with pytest.raises(dpf.LedgerError, match=r"a stream needs a ledger whose head is kept elsewhere.*head=\.\.\."):
        stream_of(ledger).release(STAYS, 1)
    assert ledger.spent.epsilon == 0
    head = tmp_path / "other.head"
    stream = stream_of(dpf.Ledger.open(store.url, head=head))
    first = told(stream.release(STAYS, 1))
    store.keep()
    second = told(stream.release(STAYS, 2))
    store.put_back()
    forget()
    with pytest.raises(dpf.LedgerError, match="older copy"):
        stream_of(dpf.Ledger.open(store.url, head=head)).release(STAYS, 2)
    forget()
    with pytest.raises(dpf.LedgerError, match="head must be given"):
        stream_of(dpf.Ledger.open(store.url)).release(STAYS, 2)
    again = stream_of(dpf.Ledger.recover(store.url, head=head, reason="restored"))
    assert told(again.release(STAYS, 1)) == first
    with pytest.raises(dpf.LedgerError, match="Begin a stream under another name"):
        again.release(STAYS, 2)
    assert second is not None


def test_154_a_stream_with_a_lost_head_draws_nothing(store):
    head = Kept()
    stream = stream_of(dpf.Ledger(epsilon=1, path=store.url, head=head))
    stream.release(STAYS, 1)
    head.text = None
    with pytest.raises(dpf.LedgerError, match="is missing"):
        stream.release(STAYS, 2)


# On a server whose rights and schemas differ from role to role


@pytest.fixture
def roles(server, tmp_path):
    """A database for a ledger, and two roles that may read and write the tables of one another."""
    store = Databases(server, tmp_path)
    names = [f"role{next(NUMBERS)}" for _ in range(2)]
    for name in names:
        store.do(f"CREATE ROLE {name} LOGIN")
    store.names = names
    return store


def shared(store, url):
    """Let both roles make tables in the schema public, for one another."""
    first, second = store.names
    store.do(f"GRANT ALL ON SCHEMA public TO {first}, {second}", url)
    for role, other in ((first, second), (second, first)):
        store.do(f"ALTER DEFAULT PRIVILEGES FOR ROLE {role} IN SCHEMA public GRANT ALL ON TABLES TO {other}", url)


def versions(store, head):
    """Return what the table of the head holds, with the numbers of the transactions that wrote and locked it."""
    return store.do("SELECT xmin, xmax, ctid, head FROM dpframe_head", head).fetchall()


@pytest.mark.slow
def test_258_a_head_that_a_role_cannot_write_is_refused_before_the_charge(roles, tmp_path):
    head, path = roles.elsewhere(), tmp_path / "clinic.ledger"
    dpf.Ledger(epsilon=1, path=path, head=head)
    role = roles.names[0]
    roles.do("REVOKE CREATE ON SCHEMA public FROM PUBLIC", head)  # as in PostgreSQL 15 from the start
    roles.do(f"GRANT SELECT ON dpframe_head TO {role}", head)
    ledger = dpf.Ledger.open(path, head=roles.as_role(role, head))
    before = versions(roles, head)
    for right in ("UPDATE", "INSERT"):
        with pytest.raises(dpf.LedgerError, match=r"permission denied for table dpframe_head\): nothing was charged"):
            PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
        roles.do(f"GRANT {right} ON dpframe_head TO {role}", head)
    assert ledger.spent.epsilon == 0
    ledger._store.witness.check_writable()
    assert versions(roles, head) == before  # the check writes nothing
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger)  # the role may not create tables, and needs not
    assert ledger.spent.epsilon == 0.25
    ledger.verify()


@pytest.mark.slow
def test_258_a_head_on_a_standby_is_refused_before_the_charge(roles, tmp_path):
    head, path, server = roles.elsewhere(), tmp_path / "clinic.ledger", roles.server
    dpf.Ledger(epsilon=1, path=path, head=head)
    standby = dataclasses.replace(server, folder=server.folder / "standby")
    roles.run("pg_basebackup", "-c", "fast", "-R", "-D", str(standby.folder / "data"))
    standby.start()
    try:
        ledger = dpf.Ledger.open(path, head=head.replace(str(server.folder), str(standby.folder)))
        with pytest.raises(dpf.LedgerError, match=r"takes no changes .*: nothing was charged.*not its standby"):
            PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
        assert ledger.spent.epsilon == 0
    finally:
        standby.stop("immediate")


@pytest.mark.slow
def test_258_a_check_of_a_head_commits_nothing_that_could_be_lost(roles, tmp_path, monkeypatch):
    head = roles.elsewhere()
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", head=head)
    check, checked = database.Database._check_lock, []

    def ended(self, write):
        """End the connection of the check, if it has a transaction that would be committed now."""
        if self.what == "head" and write and not checked:
            checked.append(self)
            idle = "datname = current_database() AND state = 'idle in transaction'"
            roles.do(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {idle}", head)
        return check(self, write)

    monkeypatch.setattr(database.Database, "_check_lock", ended)
    assert take(ledger)["entry"] == 1
    assert checked


@pytest.mark.slow
def test_259_a_head_stays_in_its_table_when_a_schema_appears(roles):
    """A role looks in the schema of its name first, also if that is made later."""
    head = roles.elsewhere()
    for url in (roles.url, head):
        shared(roles, url)
    anna, bert = roles.names
    take(dpf.Ledger(epsilon=1, path=roles.as_role(anna, roles.url), head=roles.as_role(anna, head)))
    roles.keep()
    roles.do(f"CREATE SCHEMA {anna} AUTHORIZATION {anna}", head)
    take(dpf.Ledger.open(roles.as_role(anna, roles.url), head=roles.as_role(anna, head)))
    roles.put_back()
    for role in (anna, bert):
        forget()
        with pytest.raises(dpf.LedgerError, match="older copy: it holds 1 entry, and entry 2 was written"):
            dpf.Ledger.open(roles.as_role(role, roles.url), head=roles.as_role(role, head))


@pytest.mark.slow
def test_259_two_tables_of_heads_are_refused(roles, tmp_path):
    """dpframe 0.2 left such tables behind: the first that a role sees may be the older."""
    head, path, anna = roles.elsewhere(), tmp_path / "clinic.ledger", roles.names[0]
    ledger = dpf.Ledger(epsilon=1, path=path, head=head)
    roles.do(f'CREATE SCHEMA "{anna} 100%"', head)
    roles.do(f'CREATE TABLE "{anna} 100%".dpframe_head AS SELECT * FROM public.dpframe_head', head)
    take(ledger)  # it does not look there
    both = f"{head}&options=-csearch_path%3D%22{anna}%5C%20100%25%22,public"
    with pytest.raises(
        dpf.LedgerError, match=rf"in the schemas '{anna} 100%', 'public': nothing was charged\. Drop all"
    ):
        dpf.Ledger.open(path, head=both)
    roles.do(f'DROP SCHEMA "{anna} 100%" CASCADE', head)
    take(dpf.Ledger.open(path, head=both))
    assert ledger.spent.epsilon == 0.25


# Addresses


@pytest.mark.slow
def test_155_a_database_that_is_made_anew_is_refused(server, tmp_path):
    """The process remembers the address, however it is written, and grants no second budget there."""
    store = Databases(server, tmp_path)
    take(dpf.Ledger(epsilon=1, path=store.url), "9/10")
    store.drop()
    for url in (store.url, store.url + "&connect_timeout=5"):
        with pytest.raises(dpf.LedgerError, match=r"another ledger was at .* before, with 1 entry,"):
            dpf.Ledger(epsilon=1, path=url)
        with pytest.raises(dpf.LedgerError, match=r"another ledger was at .* before"):
            dpf.Ledger.open(url)
    known = dict(witness._newest)
    forget()
    dpf.Ledger(epsilon=1, path=store.url)  # as by another process
    witness._newest.update(known)
    with pytest.raises(dpf.LedgerError, match=r"another ledger was at .* before"):
        dpf.Ledger.open(store.url)
