"""An entry of the ledger raises the limit: never lowers it, never raises it by a typo, and every process sees it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dpf

PEOPLE = pl.DataFrame({"age": [31, 45, 62]})
WHY = "the board agreed"


@pytest.fixture(params=["file", "memory"])
def make(request, tmp_path):
    """Make a ledger of either kind."""
    path = {} if request.param == "memory" else {"path": tmp_path / "clinic.ledger"}
    return lambda **words: dpf.Ledger(**path, **words)


def test_a_raised_limit_is_the_limit(make):
    ledger = make(epsilon=1)
    PEOPLE.dp.count(epsilon=1, ledger=ledger)
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=0.5, ledger=ledger)
    ledger.raise_limit(epsilon=1.5, reason=WHY)
    assert (ledger.limit, ledger.remaining) == (dpf.PrivacyLoss(1.5), dpf.PrivacyLoss(0.5))
    PEOPLE.dp.count(share=Fraction(1, 3), ledger=ledger)
    assert ledger.spent == ledger.limit
    rows = ledger.to_frame().to_dicts()
    assert [row["kind"] for row in rows] == ["charge", "limit", "charge"]
    assert (rows[1]["label"], rows[1]["epsilon"]) == (WHY, 0.0)
    assert "spent epsilon 1.5 of epsilon 1.5" in repr(ledger)
    assert "2 charges" in repr(ledger)


def test_delta_is_raised_too_where_losses_just_add_up(make):
    ledger = make(epsilon=1)
    ledger.raise_limit(delta=1e-6, reason=WHY)
    assert ledger.limit == dpf.PrivacyLoss(1.0, 1e-6)
    PEOPLE.dp.count(epsilon=0.5, delta=1e-6, ledger=ledger)


def test_under_gdp_epsilon_alone_is_raised(make):
    ledger = make(epsilon=1, delta=1e-6)
    before = ledger.limit_amount
    with pytest.raises(dpf.InvalidArgument, match="delta must be left out: gdp accounting"):
        ledger.raise_limit(epsilon=2, delta=1e-5, reason=WHY)
    ledger.raise_limit(epsilon=2, reason=WHY)
    assert ledger.limit_amount == dpf.Ledger(epsilon=2, delta=1e-6).limit_amount > before
    assert ledger.limit == dpf.PrivacyLoss(2.0, 1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "epsilon must be given"),
        ({"epsilon": 1}, "epsilon must be above the ledger's 1.0"),
        ({"epsilon": 0.5}, "epsilon must not be below the ledger's 1.0, not 0.5"),
        ({"epsilon": 2, "delta": 0}, "delta must not be below the ledger's 1e-06, not 0.0"),
        ({"epsilon": "2"}, "epsilon must be a number"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number"),
        ({"epsilon": 2, "reason": " "}, "reason must be a sentence"),
    ],
    ids=str,
)
def test_what_raises_nothing_is_refused_and_leaves_nothing(make, words, said):
    ledger = make(epsilon=1, delta=1e-6, accounting="basic")
    with pytest.raises(dpf.InvalidArgument) as caught:
        ledger.raise_limit(**{"reason": WHY, **words})
    assert str(caught.value).startswith(said)
    assert ledger.to_frame().height == 0
    assert ledger.limit == dpf.PrivacyLoss(1.0, 1e-6)


def test_the_default_ledger_has_none():
    with pytest.raises(dpf.LedgerError, match="must have a limit to raise"):
        dpf.default_ledger().raise_limit(epsilon=1, reason=WHY)


def test_every_object_sees_it_and_a_script_must_say_it(tmp_path):
    path = tmp_path / "clinic.ledger"
    old = dpf.Ledger(epsilon=1, path=path)
    dpf.Ledger.open(path).raise_limit(epsilon=2, reason=WHY)
    assert old.limit == dpf.PrivacyLoss(2.0)
    PEOPLE.dp.count(epsilon=1.75, ledger=old)
    with pytest.raises(dpf.LedgerError, match=r"epsilon must be 2\.0, as in the ledger"):
        dpf.Ledger(epsilon=1, path=path)
    assert dpf.Ledger(epsilon=2, path=path).spent.epsilon == 1.75
    assert old.verify()["entry"] == 2


def test_threads_that_raise_at_once_only_raise(tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger")
    barrier, refused = threading.Barrier(8), []

    def work(number):
        barrier.wait()
        try:
            ledger.raise_limit(epsilon=2 + number, reason=WHY)
        except dpf.InvalidArgument:
            refused.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.limit.epsilon == 9
    assert ledger.to_frame().height == 8 - len(refused) == ledger.verify()["entry"]


def test_an_older_copy_without_the_raise_gets_it_back(tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path)
    PEOPLE.dp.count(epsilon=0.5, ledger=ledger)
    shutil.copy(path, tmp_path / "copy")
    ledger.raise_limit(epsilon=2, reason=WHY)
    PEOPLE.dp.count(epsilon=1, ledger=ledger)
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(dpf.LedgerError, match="older copy"):
        ledger.raise_limit(epsilon=3, reason=WHY)
    again = dpf.Ledger.recover(path, reason="the disk broke")
    assert (again.limit.epsilon, again.spent.epsilon) == (2.0, 1.5)
    assert again.to_frame()["kind"].to_list() == ["charge", "recovery"]
    PEOPLE.dp.count(epsilon=0.5, ledger=again)
    assert again.verify()["entry"] == 3


def test_a_limit_that_was_raised_otherwise_is_refused(tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path)
    PEOPLE.dp.count(epsilon=0.5, ledger=ledger)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('update dpframe_entries set body = replace(body, \'"epsilon":"1/1"\', \'"epsilon":"2/1"\')')
    with pytest.raises(dpf.LedgerError, match="was changed by something other"):
        PEOPLE.dp.count(epsilon=0.5, ledger=ledger)


@pytest.mark.parametrize("accounting", ["basic", "gdp"])
def test_a_fresh_ledger_pays_for_what_it_says_remains(accounting):
    """No float equals epsilons such as 1/3: under gdp, ledgers with such limits once refused their own `remaining`."""
    for epsilon in (Fraction(over, under) for over in range(1, 10) for under in range(1, 14)):
        ledger = dpf.Ledger(epsilon=epsilon, delta=1e-6, accounting=accounting)
        left = ledger.remaining.epsilon
        assert 0.999999 * epsilon <= Fraction(repr(left)) <= epsilon
        PEOPLE.dp.count(epsilon=left, ledger=ledger)
        assert ledger.spent.epsilon == pytest.approx(left, rel=1e-9)
