"""A share of ``assurance/power_loss.py``: power fails after each call of a ledger, and no reported answer is lost."""

from __future__ import annotations

import pytest

from assurance import power_loss
from assurance.power_loss import FORGOTTEN, PLACES, Disk, Step


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """The steps of a ledger, by the place of its head; skipped if no process can be traced."""
    if why_not := power_loss.missing():
        pytest.skip(why_not)
    return {place: power_loss.traced(tmp_path_factory.mktemp(place) / "work", place) for place in PLACES}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_nothing_that_was_told_is_lost_with_the_power(steps, place):
    seen = list(power_loss.objections(steps[place], place, 0))
    assert len(seen) > 300
    assert not [words for words in seen if words]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("forgotten", FORGOTTEN)
def test_a_wait_that_is_left_out_is_seen(steps, place, forgotten):
    """These are the steps of a ledger that waits for the disk for every file and folder except one."""
    assert any(power_loss.objections(steps[place], place, 1, forgotten))


@pytest.mark.slow
def test_a_head_that_is_written_before_its_entry_is_seen(steps):
    """The head names an entry that does not exist, so the ledger looks like an older copy."""
    wrong = list(steps["beside"])
    head = [number for number, step in enumerate(wrong) if step.kind == "write" and step.path.endswith(".head")][2]
    begun = max(number for number in range(head) if wrong[number].kind == "told") + 1
    both = [wrong.pop(head), wrong.pop(head)]
    assert both[1].kind == "wait"
    wrong[begun:begun] = both
    assert any("older copy" in words for words in power_loss.objections(wrong, "beside", 0))


def wrote(offset, data):
    return Step("write", "a/file", offset, data)


def test_a_disk_keeps_what_was_waited_for_and_any_part_of_the_rest():
    disk = Disk()
    for step in (Step("make", "a/file"), wrote(0, b"x" * 600), Step("wait", "a/file"), Step("wait", "a")):
        disk.take(step)
    assert disk.after(lambda: False) == {"a/file": b"x" * 600}
    disk.take(wrote(500, b"y" * 100))
    halves = iter([False, True])
    assert disk.after(lambda: False) == {"a/file": b"x" * 600}
    assert disk.after(lambda: True) == {"a/file": b"x" * 500 + b"y" * 100}
    assert disk.after(lambda: next(halves)) == {"a/file": b"x" * 512 + b"y" * 88}


def test_a_disk_keeps_names_once_their_folder_was_waited_for():
    disk = Disk()
    for step in (Step("make", "a/new"), Step("write", "a/new", data=b"x"), Step("rename", "a/new", to="a/file")):
        disk.take(step)
    disk.take(Step("wait", "a/file"))
    assert disk.after(lambda: False) == {}
    assert disk.after(lambda: True) == {"a/file": b"x"}
    disk.take(Step("wait", "a"))
    assert disk.after(lambda: False) == {"a/file": b"x"}
    disk.take(Step("remove", "a/file"))
    assert disk.after(lambda: False) == {"a/file": b"x"}
    assert disk.after(lambda: True) == {}


def test_a_file_that_grows_has_zeros_where_its_sectors_are_lost():
    disk = Disk()
    for step in (Step("make", "a/file"), Step("wait", "a"), wrote(0, b"x" * 1024), Step("cut", "a/file", 1100)):
        disk.take(step)
    kept = iter([False, True, True])
    assert disk.after(lambda: next(kept)) == {"a/file": bytes(512) + b"x" * 512 + bytes(76)}
