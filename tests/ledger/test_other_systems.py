"""Ledgers in files on Windows and macOS: their system calls are simulated on this system."""

from __future__ import annotations

import importlib.util
import ntpath
import os
import sqlite3
import sys
import threading
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import unquote

import polars as pl
import pytest

import dpframe as dpf
from dpframe import files
from dpframe.ledger import database, locks
from dpframe.ledger.address import Address

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})


class Locking:
    """`msvcrt.locking`: one handle locks a byte of a file, against all other handles of this and other processes."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        self.held = {}
        self.places = set()

    def locking(self, opened, mode, size):
        assert size == 1
        facts = os.fstat(opened)
        place = (facts.st_dev, facts.st_ino, os.lseek(opened, 0, os.SEEK_CUR))
        self.places.add(place[2])
        if mode == self.LK_UNLCK:
            if self.held.get(place) != opened:
                raise OSError(13, "Permission denied")
            del self.held[place]
        elif place in self.held:
            raise PermissionError(13, "Permission denied")
        else:
            self.held[place] = opened


def loaded(module, name):
    """Load a second copy of a module, as another system would run it."""
    spec = importlib.util.spec_from_file_location(name, module.__file__)
    copy = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look up their module there
    try:
        spec.loader.exec_module(copy)
    finally:
        del sys.modules[name]
    return copy


@pytest.fixture
def windows(monkeypatch):
    """Lock ledgers as Windows does, and hide the calls that Windows lacks."""
    msvcrt = Locking()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        patch.setitem(sys.modules, "msvcrt", msvcrt)
        copy = loaded(locks, "locks_of_windows")
    monkeypatch.setattr(locks, "_try", copy._try)
    monkeypatch.setattr(locks, "_free", copy._free)
    for name in ("fchown", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "fdatasync"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(files, "synchronized", os.fsync)
    return msvcrt


def test_a_ledger_is_charged_under_the_locks_of_windows(windows, tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path)
    with locks.held(str(path), wait=0, create=False):
        assert len(windows.held) == 1
        with pytest.raises(locks.Locked), locks.held(str(path), wait=0.01, create=False):
            pass
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    assert dpf.Ledger.open(path).spent.epsilon == 0.25
    assert not windows.held
    assert not locks.open_ones
    assert windows.places == {1 << 30}
    assert (tmp_path / "clinic.ledger.lock").stat().st_size == 0


def test_threads_charge_in_turn_under_the_locks_of_windows(windows, tmp_path):
    path = tmp_path / "clinic.ledger"
    dpf.Ledger(epsilon=1, path=path)

    def charge():
        PEOPLE.dp.count(epsilon=0.125, ledger=dpf.Ledger.open(path))

    threads = [threading.Thread(target=charge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dpf.Ledger.open(path).spent.epsilon == 0.5
    dpf.Ledger.open(path).verify()


def test_a_system_with_fchmod_and_without_owners_makes_a_lock(monkeypatch, tmp_path):
    path = tmp_path / "clinic.ledger"
    monkeypatch.delattr(os, "fchown", raising=False)
    monkeypatch.setattr(os, "fchmod", lambda *_: pytest.fail("rights of POSIX"), raising=False)
    dpf.Ledger(epsilon=1, path=path)
    assert (tmp_path / "clinic.ledger.lock").exists()


class TestHeads:
    """A new head replaces the one before and is forced to the disk."""

    @pytest.fixture
    def held_open(self, monkeypatch):
        """Another process has the old head open during the first three tries."""
        tries, replace = [], os.replace

        def refused(new, old):
            tries.append(new)
            if len(tries) < 4:
                raise PermissionError(13, "The process cannot access the file")
            replace(new, old)

        monkeypatch.setattr(files.os, "replace", refused)
        return tries

    def put(self, folder):
        (folder / "new").write_bytes(b"new")
        (folder / "old").write_bytes(b"old")
        files._put(str(folder / "new"), str(folder / "old"))
        return (folder / "old").read_bytes()

    def test_windows_waits_for_whoever_reads_it(self, held_open, monkeypatch, tmp_path):
        monkeypatch.setattr(files, "os", SimpleNamespace(name="nt", replace=os.replace))
        assert self.put(tmp_path) == b"new"
        assert len(held_open) == 4

    def test_windows_waits_no_longer_than_it_says(self, held_open, monkeypatch, tmp_path):
        monkeypatch.setattr(files, "os", SimpleNamespace(name="nt", replace=os.replace))
        monkeypatch.setattr(files, "PATIENCE", 0.0)
        with pytest.raises(PermissionError):
            self.put(tmp_path)
        assert (tmp_path / "old").read_bytes() == b"old"

    def test_elsewhere_a_refusal_is_final(self, held_open, tmp_path):
        if os.name == "nt":
            pytest.skip("this is Windows")
        with pytest.raises(PermissionError):
            self.put(tmp_path)
        assert len(held_open) == 1

    @pytest.mark.parametrize("knows", [True, False], ids=["full", "plain"])
    def test_macos_waits_for_the_disk_itself(self, knows, monkeypatch, tmp_path):
        asked = []

        def control(opened, word):
            asked.append(word)
            if not knows:
                raise OSError(45, "Operation not supported")

        with monkeypatch.context() as patch:
            patch.setattr(sys, "platform", "darwin")
            patch.setitem(sys.modules, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=control))
            copy = loaded(files, "files_of_macos")
        monkeypatch.setattr(copy.os, "fsync", lambda opened: asked.append("fsync"))
        with (tmp_path / "x").open("wb") as opened:
            copy.synchronized(opened.fileno())
        assert asked == ([51] if knows else [51, "fsync"])


class TestAddresses:
    """Drives, network shares and file URLs."""

    @pytest.fixture
    def of_windows(self, monkeypatch):
        from dpframe.ledger import address

        fake = SimpleNamespace(path=ntpath, fspath=os.fspath, PathLike=os.PathLike)
        monkeypatch.setattr(address, "os", fake)

    @pytest.mark.parametrize(
        ("name", "file"),
        [
            (r"C:\data\clinic.ledger", r"C:\data\clinic.ledger"),
            ("C:/data/clinic.ledger", r"C:\data\clinic.ledger"),
            ("C://data/clinic.ledger", r"C:\data\clinic.ledger"),
            (r"C:\data\..\clinic.ledger", r"C:\clinic.ledger"),
            (r"\\server\share\clinic.ledger", r"\\server\share\clinic.ledger"),
            (r"\\?\C:\very\long\clinic.ledger", r"\\?\C:\very\long\clinic.ledger"),
            ("sqlite:///C:/data/clinic.ledger", r"C:\data\clinic.ledger"),
        ],
    )
    def test_a_file_of_windows_is_a_file(self, of_windows, name, file):
        assert Address.of(name).file == file

    @pytest.mark.parametrize("name", ["file:///C:/data/clinic.ledger", "file://server/share/clinic.ledger"])
    def test_file_urls_are_refused_with_a_way_out(self, of_windows, name):
        with pytest.raises(dpf.InvalidArgument, match=r"sqlite and postgresql are known, not 'file'"):
            Address.of(name)

    def test_where_there_are_no_drives_a_url_is_a_url(self):
        with pytest.raises(dpf.InvalidArgument, match=r"sqlite and postgresql are known"):
            Address.of("c://data/clinic.ledger")

    @pytest.mark.parametrize(
        "file",
        [
            r"C:\data\clinic.ledger",
            r"\\server\share\clinic.ledger",
            "/data/50% & more?#.ledger",
            "/data/año.ledger",
        ],
    )
    def test_sqlite_is_given_every_name_whole(self, file, monkeypatch):
        given = []

        def connect(address, **_):
            given.append(address)
            raise sqlite3.OperationalError

        monkeypatch.setattr(database.sqlite3, "connect", connect)
        with pytest.raises(sqlite3.OperationalError):
            database._sqlite(file, create=False)
        path, _, options = given[0].removeprefix("file:").partition("?")
        assert options == "mode=rw"
        assert not path.startswith("//")  # SQLite must read no part as the name of a host
        assert unquote(path) == file

    @pytest.mark.skipif(os.name == "nt", reason="a name that Windows does not allow")
    def test_sqlite_opens_a_name_of_windows_letter_by_letter(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with closing(database._sqlite(r"C:\data\clinic.ledger", create=True)) as connection:
            connection.execute("create table t (x)")
        assert [file.name for file in tmp_path.iterdir() if not file.name.endswith("journal")] == [
            r"C:\data\clinic.ledger"
        ]


def test_two_names_of_one_file_share_their_lock(tmp_path):
    """As on a case-insensitive disk: both names lead to the same lock file, so charges exclude each other."""
    path = tmp_path / "clinic.ledger"
    dpf.Ledger(epsilon=1, path=path)
    for end in ("", ".lock", ".head"):
        os.link(f"{path}{end}", tmp_path / f"CLINIC.LEDGER{end}")
    with (
        locks.held(str(path), wait=0, create=False),
        pytest.raises(locks.Locked),
        locks.held(str(tmp_path / "CLINIC.LEDGER"), wait=0.01, create=False),
    ):
        pass
    for name in ("clinic.ledger", "CLINIC.LEDGER", "clinic.ledger"):
        PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger.open(tmp_path / name))
    assert dpf.Ledger.open(path).spent.epsilon == 0.75
