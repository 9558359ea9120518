"""The ledger, the only mutable object: charged before rows are read, exact, never refunded, never duplicated."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import os
import pickle
import threading
import traceback
import warnings
from fractions import Fraction

import polars as pl
import pytest
from looking import of_rows

import dpframe as dpf
from dpframe.errors import LedgerError
from dpframe.ledger import entries
from dpframe.release import results

PEOPLE = pl.DataFrame({"age": [31, 45, 62], "who": ["a", "b", "b"]})
BINS = [0, 50, 100]


def charges(ledger):
    return ledger.to_frame().height


# Check, charge, read rows


def test_the_charge_stands_before_any_row_is_read(monkeypatch):
    ledger, seen = dpf.Ledger(epsilon=1), []
    original = results.totals

    def spy(*arguments):
        seen.append(ledger.spent.epsilon)
        return original(*arguments)

    monkeypatch.setattr(results, "totals", of_rows(spy))
    PEOPLE.dp.histogram("age", bins=BINS, epsilon=0.25, ledger=ledger)
    assert seen == [0.25]


def test_nothing_is_read_when_the_budget_is_exceeded(monkeypatch):
    monkeypatch.setattr(results, "totals", of_rows(lambda *_: pytest.fail("a row was read")))
    ledger = dpf.Ledger(epsilon=0.1)
    with pytest.raises(dpf.BudgetExceeded, match=r"0\.2.*0\.1"):
        PEOPLE.dp.count(epsilon=0.2, ledger=ledger)
    assert charges(ledger) == 0


class Panic(BaseException):
    """The error that the Polars engine raises when it panics: it is not an `Exception`."""


@pytest.mark.parametrize("kind", [ValueError, Panic, MemoryError])
def test_a_failing_engine_keeps_the_charge_and_says_nothing(monkeypatch, kind):
    def fail(*_):
        raise kind("conversion of 'a secret diagnosis' failed")

    monkeypatch.setattr(results, "totals", of_rows(fail))
    ledger = dpf.Ledger(epsilon=1)
    for times in (1, 2):
        with pytest.raises(dpf.ReleaseFailed) as caught:
            PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "secret" not in "".join(traceback.format_exception(caught.value))
        assert ledger.spent.epsilon == 0.25 * times


def test_an_interrupt_keeps_the_charge(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "totals", of_rows(interrupt))
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(KeyboardInterrupt):
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.25


@pytest.mark.parametrize(
    "ask",
    [
        lambda frame, **words: frame.dp.count("agee", **words),
        lambda frame, **words: frame.dp.sum("who", bounds=(0, 1), **words),
        lambda frame, **words: frame.dp.histogram("age", bins=[5, 1], **words),
        lambda frame, **words: frame.dp.count(**words, unit=dpf.PrivacyUnit(column="nobody", max_rows=1)),
        lambda frame, **words: frame.dp.count(**words, mechanism="gauss"),
        lambda frame, **words: frame.dp.count(**words, delta=2),
    ],
)
def test_what_the_schema_refuses_costs_nothing(ask):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.DpframeError):
        ask(PEOPLE, epsilon=0.5, ledger=ledger)
    assert ledger.spent == dpf.PrivacyLoss(0.0)
    assert charges(ledger) == 0


def test_previews_cost_nothing():
    ledger = dpf.Ledger(epsilon=1)
    PEOPLE.dp.preview.count(epsilon=0.5, ledger=ledger)
    PEOPLE.dp.preview.count(ledger=ledger)
    assert charges(ledger) == 0


def test_nothing_refunds():
    ledger = dpf.Ledger(epsilon=1)
    PEOPLE.dp.count(epsilon=0.5, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match="negative"):
        ledger.charge((Fraction(-1, 2), Fraction(0)), cost=dpf.PrivacyLoss(0.0), query="", unit=ledger.unit)
    with pytest.raises(dpf.InvalidArgument, match="negative"):
        ledger.charge((float("nan"), Fraction(0)), cost=dpf.PrivacyLoss(0.0), query="", unit=ledger.unit)
    assert ledger.spent.epsilon == 0.5


def test_a_refused_charge_leaves_the_rest_to_smaller_ones():
    ledger = dpf.Ledger(epsilon=1)
    PEOPLE.dp.count(epsilon=0.7, ledger=ledger)
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=0.4, ledger=ledger)
    PEOPLE.dp.count(epsilon=0.3, ledger=ledger)
    assert ledger.remaining.epsilon == 0.0


def test_shares_are_of_the_ledger():
    ledger = dpf.Ledger(epsilon=2)
    PEOPLE.dp.count(share=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.5
    with pytest.raises(dpf.MissingArgument, match="share"):
        PEOPLE.dp.count(share=0.25, ledger=dpf.default_ledger())


# Ambient ledgers


def test_ambient_ledgers_nest():
    outer, inner = dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1)
    with outer:
        PEOPLE.dp.count(epsilon=0.125)
        with inner:
            PEOPLE.dp.count(epsilon=0.25)
            PEOPLE.dp.count(epsilon=0.5, ledger=outer)
        with outer:
            PEOPLE.dp.count(epsilon=0.125)
        PEOPLE.dp.count(epsilon=0.25)
    assert (outer.spent.epsilon, inner.spent.epsilon) == (1.0, 0.25)
    with pytest.raises(dpf.NoLedger):
        PEOPLE.dp.count(epsilon=0.1)


def test_a_ledger_that_is_entered_again_ends_where_it_was_entered_last():
    outer, inner = dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1)
    with outer, inner:
        with outer:
            pass
        PEOPLE.dp.count(epsilon=0.25)
    assert (outer.spent.epsilon, inner.spent.epsilon) == (0.0, 0.25)


def test_an_exception_ends_the_ambient_ledger():
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(KeyError), ledger:
        raise KeyError
    with pytest.raises(dpf.NoLedger):
        PEOPLE.dp.count(epsilon=0.1)


def test_async_tasks_inherit_the_ambient_ledger():
    ledger = dpf.Ledger(epsilon=1)

    async def ask():
        await asyncio.sleep(0)
        PEOPLE.dp.count(epsilon=0.25)

    async def several():
        with ledger:
            tasks = [asyncio.create_task(ask()) for _ in range(4)]
        await asyncio.gather(*tasks)
        with pytest.raises(dpf.NoLedger):
            PEOPLE.dp.count(epsilon=0.1)

    asyncio.run(several())
    assert ledger.spent.epsilon == 1.0


def in_threads(count, work):
    """Run `work` in threads that start together; return the errors that they raised."""
    raised, barrier = [], threading.Barrier(count)

    def run():
        barrier.wait()
        try:
            work()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_do_not_inherit_the_ambient_ledger():
    with dpf.Ledger(epsilon=1) as ledger:
        raised = in_threads(1, lambda: PEOPLE.dp.count(epsilon=0.1))
    assert [type(error) for error in raised] == [dpf.NoLedger]
    assert ledger.spent.epsilon == 0.0


# The default ledger


def test_the_default_ledger_records_and_warns_once():
    with pytest.warns(dpf.UnlimitedBudgetWarning, match="nothing limits the total") as caught:
        PEOPLE.dp.count(epsilon=0.5)
    PEOPLE.dp.count(epsilon=7)  # a second warning would be an error
    assert "Each row was counted as one person" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert dpf.default_ledger().spent.epsilon == 7.5
    assert charges(dpf.default_ledger()) == 2


def test_the_warning_says_nothing_of_rows_where_a_unit_is_named():
    with pytest.warns(dpf.UnlimitedBudgetWarning) as caught:
        PEOPLE.dp.count(epsilon=0.5, unit=dpf.PrivacyUnit(column="who", max_rows=1))
    assert "Each row" not in str(caught[0].message)


def test_with_another_ledger_made_the_default_is_closed_unless_named():
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.NoLedger) as caught:
        PEOPLE.dp.count(epsilon=0.1)
    for way_out in ("ledger=", "with ledger", "set_default_ledger"):
        assert way_out in str(caught.value)
    PEOPLE.dp.count(epsilon=0.1, ledger=ledger)
    with ledger:
        PEOPLE.dp.count(epsilon=0.1)
    dpf.set_default_ledger(ledger)
    PEOPLE.dp.count(epsilon=0.1)
    assert dpf.default_ledger() is ledger
    assert ledger.spent.epsilon == 0.3
    dpf.set_default_ledger(None)
    with pytest.warns(dpf.UnlimitedBudgetWarning):
        PEOPLE.dp.count(epsilon=0.1, ledger=dpf.default_ledger())


def test_a_ledger_that_was_refused_closes_nothing():
    with pytest.raises(dpf.InvalidArgument):
        dpf.Ledger(epsilon=-1)
    with pytest.warns(dpf.UnlimitedBudgetWarning):
        PEOPLE.dp.count(epsilon=0.1)


@pytest.mark.parametrize("wrong", [1.0, "ledger", dpf.Ledger])
def test_only_ledgers_are_ledgers(wrong):
    with pytest.raises(dpf.InvalidType, match="ledger must be"):
        PEOPLE.dp.count(epsilon=0.1, ledger=wrong)
    with pytest.raises(dpf.InvalidType, match="ledger must be"):
        dpf.set_default_ledger(wrong)


# Copies


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda ledger: copy.deepcopy({"a": [ledger]})["a"][0]])
def test_copies_are_the_same_ledger(copied):
    ledger = dpf.Ledger(epsilon=1)
    assert copied(ledger) is ledger


@pytest.mark.parametrize("name", ["epsilon", "limit", "spent", "budget"])
def test_a_limit_that_is_written_over_is_refused(name):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(AttributeError, match=name):
        setattr(ledger, name, 5)
    assert ledger.limit.epsilon == 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused(protocol):
    with pytest.raises(LedgerError, match="second budget"):
        pickle.dumps(dpf.Ledger(epsilon=1), protocol)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("number", ["another", "the same"])
def test_204_a_forked_child_is_refused(monkeypatch, number):
    """Also if parent and child have the same process ID, as the first processes of two containers have."""
    if number == "the same":
        monkeypatch.setattr(os, "getpid", lambda: 1)
    ledger = dpf.Ledger(epsilon=1)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
        child = os.fork()
    if child == 0:
        try:
            ledger.charge((Fraction(1, 2), Fraction(0)), cost=dpf.PrivacyLoss(0.5), query="", unit=ledger.unit)
            os.write(writer, b"charged")
        except LedgerError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"forked child" in os.read(reader, 1000)
    os.close(reader)
    os.close(writer)
    PEOPLE.dp.count(epsilon=0.5, ledger=ledger)  # the parent goes on
    assert ledger.spent.epsilon == 0.5


# Units


def test_a_ledger_protects_one_unit():
    unit = dpf.PrivacyUnit(column="who", max_rows=2)
    ledger = dpf.Ledger(epsilon=1, unit=unit)
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, unit=dpf.PrivacyUnit(column="who", max_rows=2))
    for other in (
        dpf.PrivacyUnit("who", neighbors="replace"),
        dpf.PrivacyUnit("who", nulls="one-unit"),
        dpf.PrivacyUnit(),
    ):
        with pytest.raises(dpf.InvalidArgument, match="unit must be"):
            PEOPLE.dp.count(epsilon=0.25, ledger=ledger, unit=other)
    assert charges(ledger) == 2
    assert set(ledger.to_frame()["unit"]) == {str(unit)}
    with pytest.raises(dpf.InvalidArgument, match="unit must be"):
        PEOPLE.dp.count(epsilon=0.25, ledger=dpf.Ledger(epsilon=1), unit=unit)
    with pytest.raises(dpf.InvalidType, match="unit must be"):
        dpf.Ledger(epsilon=1, unit=1)
    assert dpf.Ledger(epsilon=1, unit=["who"]).unit == dpf.Ledger(epsilon=1, unit="who").unit


# Races


@pytest.mark.parametrize("words", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], ids=["basic", "gdp"])
def test_threads_at_a_barrier_never_exceed_the_limit(words):
    """Eight threads each try 25 charges of a hundredth of the limit: exactly 100 fit, and the sum is exact."""
    ledger = dpf.Ledger(**words)
    hundredth = tuple(part / 100 for part in ledger.limit_amount)
    refused = []

    def work():
        for _ in range(25):
            try:
                ledger.charge(hundredth, cost=dpf.PrivacyLoss(0.01), query="", unit=ledger.unit)
            except dpf.BudgetExceeded:
                refused.append(1)

    assert in_threads(8, work) == []
    assert charges(ledger) == 100
    assert len(refused) == 100
    assert ledger._store.last().total == ledger.limit_amount


def test_a_charge_that_comes_amid_another_waits_for_it(monkeypatch):
    """Between adding up and writing the entry, no other charge may spend the budget that remains."""
    ledger, add, others = dpf.Ledger(epsilon=1), entries.plus, []

    def work():
        PEOPLE.dp.count(epsilon=1, ledger=ledger)

    def plus(total, amount):
        found = add(total, amount)
        if not others:
            others.append(threading.Thread(target=lambda: refused.append(in_threads(1, work))))
            others[0].start()
            others[0].join(0.5)  # long enough for the charge, if it did not have to wait
        return found

    refused = []
    monkeypatch.setattr(entries, "plus", plus)
    work()
    others[0].join()
    assert [type(error) for (error,) in refused] == [dpf.BudgetExceeded]
    assert (charges(ledger), ledger.spent.epsilon) == (1, 1.0)


@pytest.mark.parametrize("kind", ["charge", "limit"])
def test_a_charge_of_a_handler_that_interrupts_another_is_refused_at_once(kind, monkeypatch):
    """Once, a signal handler that released amid a charge waited forever for its own thread."""
    ledger, add, caught = dpf.Ledger(epsilon=1), entries.plus, []

    def handler():
        try:
            if kind == "charge":
                PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
            else:
                ledger.raise_limit(epsilon=2, reason="more")
        except LedgerError as error:
            caught.append(error)

    def plus(total, amount):
        if not caught and not charges(ledger):
            handler()  # runs in the thread that holds the lock, as a signal handler does
        return add(total, amount)

    with monkeypatch.context() as patched:
        patched.setattr(entries, "plus", plus)
        work = threading.Thread(target=lambda: PEOPLE.dp.count(epsilon=0.5, ledger=ledger), daemon=True)
        work.start()
        work.join(20)
        assert not work.is_alive()
    assert [type(error) for error in caught] == [LedgerError]
    assert "the handler charged nothing" in str(caught[0])
    assert (charges(ledger), ledger.spent.epsilon, ledger.limit.epsilon) == (1, 0.5, 1.0)
    assert in_threads(2, lambda: PEOPLE.dp.count(epsilon=0.25, ledger=ledger)) == []  # no lock is held
    assert (charges(ledger), ledger.spent.epsilon) == (3, 1.0)


def test_releases_in_threads_never_exceed_the_limit():
    ledger = dpf.Ledger(epsilon=1)
    raised = in_threads(8, lambda: PEOPLE.dp.count(epsilon=0.25, ledger=ledger))
    assert [type(error) for error in raised] == [dpf.BudgetExceeded] * 4
    assert ledger.spent.epsilon == 1.0


# Reading a ledger


def filled():
    ledger = dpf.Ledger(epsilon=1)
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="<b>first & only</b>")
    PEOPLE.dp.histogram("age", bins=BINS, epsilon=0.5, ledger=ledger)
    return ledger


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_every_charge_is_a_row(like):
    if like == "pandas" and importlib.util.find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    frame = filled().to_frame(like)
    assert type(frame).__module__.startswith(like)
    rows = frame.to_dicts() if like == "polars" else frame.to_dict("records")
    assert [row["entry"] for row in rows] == [1, 2]
    assert [row["epsilon"] for row in rows] == [0.25, 0.5]
    assert [row["delta"] for row in rows] == [0.0, 0.0]
    assert rows[0]["label"] == "<b>first & only</b>"
    assert rows[1]["query"] == "count() by age: 2 bins"
    assert rows[0]["amount"] == "1/4, 0"
    assert rows[0]["time"].endswith("+00:00")


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_the_dtypes_do_not_depend_on_what_was_charged(like):
    if like == "pandas" and importlib.util.find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    ledger = dpf.Ledger(epsilon=1)
    before = ledger.to_frame(like).dtypes
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger)
    without = ledger.to_frame(like).dtypes
    PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label="named")
    assert list(before) == list(without) == list(ledger.to_frame(like).dtypes)
    assert not any(dtype == pl.Null for dtype in before)


def test_other_libraries_are_refused():
    with pytest.raises(dpf.InvalidArgument, match="like must be"):
        dpf.Ledger(epsilon=1).to_frame("duckdb")


def test_the_text_says_what_was_spent_of_what():
    words = repr(filled())
    for part in (
        "spent epsilon 0.75 of epsilon 1",
        "remaining epsilon 0.25",
        "each row",
        "basic accounting",
        "2 charges",
    ):
        assert part in words
    assert "no limit" in repr(dpf.default_ledger())
    assert "gdp accounting" in repr(dpf.Ledger(epsilon=1, delta=1e-6))


def test_the_html_is_escaped():
    page = filled()._repr_html_()
    assert "<b>first" not in page
    assert "&lt;b&gt;first &amp; only&lt;/b&gt;" in page
    assert "epsilon 0.75 of epsilon 1</td>" in page


@pytest.mark.parametrize(
    "words",
    [
        *({}, {"epsilon": True}, {"epsilon": "1"}, {"epsilon": float("nan")}, {"epsilon": 0}, {"epsilon": 1e-320}),
        *({"epsilon": 1, "delta": 1}, {"epsilon": 1, "accounting": "rdp?"}, {"epsilon": 1, "accounting": "gdp"}),
    ],
    ids=str,
)
def test_ledgers_that_cannot_be_are_refused(words):
    with pytest.raises(dpf.InvalidArgument, match="must"):
        dpf.Ledger(**words)


def test_the_default_accounting_follows_delta():
    assert dpf.Ledger(epsilon=1).accounting.name == "basic"
    assert dpf.Ledger(epsilon=1, delta=1e-6).accounting.name == "gdp"
    assert dpf.Ledger(epsilon=1, delta=1e-6, accounting="basic").accounting.name == "basic"


def test_a_ledger_that_is_passed_is_charged_whatever_a_generator_holds_open():
    """A documented limit: a generator that is suspended inside `with` leaves its ledger ambient for its caller."""
    mine, its = dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=100)
    people = pl.DataFrame({"age": [31, 45, 62]})

    def parts():
        with its:
            for _ in range(2):
                yield people.dp.count(epsilon=0.1)

    with mine:
        for _ in parts():
            people.dp.count(epsilon=0.25, ledger=mine)
    assert (mine.spent.epsilon, its.spent.epsilon) == (0.5, 0.2)
    with mine:
        assert people.dp.count(epsilon=0.25).height == 1
    assert mine.spent.epsilon == 0.75
