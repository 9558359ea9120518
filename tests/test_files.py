"""Files that are written: never over a ledger, never by halves, and never over what is no plain file."""

from __future__ import annotations

import errno
import io
import os
import stat
import time

import polars as pl
import pytest

import dpframe as dpf
from dpframe import files
from dpframe.errors import OutputFailed
from dpframe.ledger import heads
from dpframe.reports import write_report

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
WRITERS = {
    "Ledger.report": ("path", lambda ledger, _, path: ledger.report(path, charts=False)),
    "write_html": ("path", lambda _, result, path: result.dp.write_html(path, charts=False)),
    "write_parquet": ("path", lambda _, result, path: result.dp.write_parquet(path)),
    "save": ("fp", lambda _, result, path: result.dp.plot().save(path, format="json")),
    "write_report": ("output", lambda ledger, _, path: write_report([], path, ledger=ledger, charts=False)),
}
OF_LEDGERS = (  # existing files, and one name that SQLite would use itself
    *("clinic.ledger", "clinic.ledger.head", "clinic.ledger.lock", "clinic.ledger-journal", "clinic.ledger-wal"),
    *("other.ledger", "kept", "kept.new", "kept.lock", "by_link", "hard"),
)


@pytest.fixture
def books(tmp_path):
    """A ledger, another one whose head is kept elsewhere, and links to them."""
    books = [dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger", dataset="clinic")]
    books += [dpf.Ledger(epsilon=1, path=tmp_path / "other.ledger", head=tmp_path / "kept")]
    results = [PEOPLE.dp.count(epsilon=0.5, ledger=book) for book in books]
    try:
        (tmp_path / "by_link").symlink_to(tmp_path / "clinic.ledger.head")
        (tmp_path / "hard").hardlink_to(tmp_path / "clinic.ledger")
    except OSError:
        pytest.skip("no links here")
    return books[0], results[0]


@pytest.fixture
def result():
    return PEOPLE.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("writer", WRITERS)
def test_219_nothing_is_written_over_a_ledger_or_its_head(writer, books, tmp_path):
    if writer == "save":
        pytest.importorskip("altair")
    argument, write = WRITERS[writer]
    before = content(tmp_path)
    for name in OF_LEDGERS:
        with pytest.raises(dpf.InvalidArgument, match=rf"^{argument} must be another file than a ledger.*'{name}'"):
            write(*books, tmp_path / name)
    assert content(tmp_path) == before
    write(*books, tmp_path / "new")
    write(*books, str(tmp_path / "new"))  # over a file of its own kind
    assert dpf.Ledger.open(tmp_path / "clinic.ledger").spent.epsilon == 0.5


def test_219_a_head_is_known_by_either_of_its_slots_and_a_ledger_that_is_away_by_its_head(books, tmp_path):
    head = tmp_path / "kept"
    whole = head.read_bytes()
    for torn in (b"\0" * (len(whole) // 2 - 1) + b"\n" + whole[len(whole) // 2 :], whole[: len(whole) // 2]):
        head.write_bytes(torn)
        assert heads.of_slots(torn) is not None
        with pytest.raises(dpf.InvalidArgument, match="a ledger, its head"):
            files.checked_output("path", head)
    (tmp_path / "clinic.ledger").rename(tmp_path / "moved")
    with pytest.raises(dpf.InvalidArgument, match="a ledger, its head"):
        files.checked_output("path", tmp_path / "clinic.ledger")
    head.write_bytes(b"0" * 64 + b" a line that is no hash of what follows")
    assert files.checked_output("path", head) == os.path.realpath(head)


def test_what_is_no_name_of_a_file_is_refused(tmp_path, result):
    with pytest.raises(dpf.InvalidType, match="path must be the name of a file, not 7"):
        result.dp.write_html(7, charts=False)
    with pytest.raises(dpf.InvalidArgument, match="path must be a new file, or one that can be read"):
        result.dp.write_html(tmp_path / ("a" * 300), charts=False)
    kept = io.BytesIO()
    result.dp.write_parquet(kept)
    kept.seek(0)
    assert pl.read_parquet(kept).columns == list(result.columns)


def test_a_file_that_is_read_is_not_written_by_another_name(tmp_path):
    (tmp_path / "ages.parquet").write_bytes(b"PAR1")
    (tmp_path / "hard.html").hardlink_to(tmp_path / "ages.parquet")
    for name in ("ages.parquet", "hard.html"):
        with pytest.raises(dpf.InvalidArgument, match=r"output must be another file than those that are read"):
            files.checked_output("output", tmp_path / name, tmp_path / "ages.parquet", tmp_path / "none.parquet")
    files.checked_output("output", tmp_path / "none.html", tmp_path / "none.parquet")


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_cannot_be_written_leaves_the_one_before_whole(writer, books, tmp_path, monkeypatch):
    if writer == "save":
        pytest.importorskip("altair")
    name = "out.parquet" if writer == "write_parquet" else "out.html"
    out = tmp_path / name
    out.write_text("whole", encoding="utf-8")
    before = content(tmp_path)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "bring_to_disk", full)
    with pytest.raises(OutputFailed, match=rf"^{name} cannot be written \(No space left on device\)") as failed:
        WRITERS[writer][1](*books, out)
    assert isinstance(failed.value, OSError)
    assert content(tmp_path) == before
    with pytest.raises(
        OutputFailed, match=rf"^{name} cannot be written .*\. Make its folder first, or name another\.$"
    ):
        WRITERS[writer][1](*books, tmp_path / "none" / name)


@pytest.mark.parametrize("writer", [one for one in WRITERS if one != "save"])
def test_a_file_that_ends_as_one_of_another_format_is_refused(writer, books, tmp_path):
    before = content(tmp_path)
    ending = ".parquet" if writer == "write_parquet" else ".html"
    for name in ("out.PDF", "out.csv", "out.html" if ending == ".parquet" else "out.parquet"):
        words = rf"^{WRITERS[writer][0]} must end in {ending}, not '{name}'\. Rename it\.$"
        with pytest.raises(dpf.InvalidArgument, match=words):
            WRITERS[writer][1](*books, tmp_path / name)
    assert content(tmp_path) == before
    WRITERS[writer][1](*books, tmp_path / "out")


def test_what_is_no_plain_file_is_refused_and_stays(tmp_path, result):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    for name in ("pipe", "folder", "itself"):
        with pytest.raises(dpf.InvalidArgument, match=rf"path must be a plain file or a new one, and '{name}' is no"):
            result.dp.write_parquet(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_behind_a_link_the_file_is_written_that_it_leads_to(tmp_path, result):
    (tmp_path / "far").mkdir()
    (tmp_path / "latest.parquet").symlink_to(tmp_path / "far" / "real.parquet")
    for _ in range(2):  # a new file, and then over the previous one
        result.dp.write_parquet(tmp_path / "latest.parquet")
        assert (tmp_path / "latest.parquet").is_symlink()
        assert dpf.read_parquet(tmp_path / "far" / "real.parquet").dp.provenance == result.dp.provenance
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["real.parquet"]


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_a_file_keeps_the_rights_of_the_one_before(tmp_path, result, monkeypatch):
    out, seen = tmp_path / "out.parquet", []
    result.dp.write_parquet(out)
    usual = stat.S_IMODE(out.stat().st_mode)
    (tmp_path / "other").touch()
    assert usual == stat.S_IMODE((tmp_path / "other").stat().st_mode)
    for rights in (0o600, 0o640, 0o400):
        out.chmod(rights)
        files.write_whole("path", out, lambda part: seen.append(stat.S_IMODE(part.stat().st_mode)))
        assert stat.S_IMODE(out.stat().st_mode) == rights
    assert seen == [0o600] * 3


def test_parts_that_were_left_behind_are_removed_once_they_are_old(tmp_path, result):
    old, new = (tmp_path / f".out[1].parquet.{word}.part" for word in ("old", "new"))
    for part in (old, new):
        part.touch()
    os.utime(old, (time.time() - 2 * files.OLD,) * 2)
    result.dp.write_parquet(tmp_path / "out[1].parquet")
    assert not old.exists()
    assert new.exists()


@pytest.mark.skipif(os.name == "nt", reason="whole paths of at most 260 characters")
@pytest.mark.parametrize("size", [100, 101, 143, 236, 240, 255])
def test_a_part_has_a_name_that_fits_wherever_that_of_its_file_does(tmp_path, size):
    name, seen = "ä" * 40 + "a" * (size - 80), []
    assert len(os.fsencode(name)) == size
    files.write_whole("path", tmp_path / name, lambda part: seen.append(part.name))
    (part,) = seen
    assert len(os.fsencode(part)) <= max(size, 119)
    left = [part.replace(part.split(".")[-2], "0" * 12), ".another.000000000000.part"]
    left += [f".{name}.000000000000.part"] if size <= 236 else []  # the name in dpframe 0.2
    for one in left:
        (tmp_path / one).touch()
        os.utime(tmp_path / one, (time.time() - 2 * files.OLD,) * 2)
    files.write_whole("path", tmp_path / name, lambda part: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".another.000000000000.part", name]
