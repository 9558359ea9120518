"""The delta for unknown groups (`keys_delta`) is a separate coordinate of limits, charges, stores and messages."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from dpframe.accounting import Accounting, Basic
from dpframe.accounting.registry import KeysReserve
from dpframe.errors import BudgetExceeded, InvalidArgument, LedgerError
from dpframe.ledger.terms import Limit
from dpframe.mechanisms import gaussian_curve

OLD = Path(__file__).parent.parent / "data" / "0.1"
FRAME = pl.DataFrame({"u": range(900)}).with_columns(k=pl.col("u") % 3)


def found(book, epsilon=0.1, delta=1e-7, **more):
    groups = FRAME.dp.group_by("k", keys=dpf.discover(delta=delta))
    return groups.n_units(max_groups=1, epsilon=epsilon, ledger=book, **more)


def book(**more):
    return dpf.Ledger(**{"epsilon": 2, "delta": 1e-6, "keys_delta": 5e-7, "unit": "u", **more})


@pytest.mark.parametrize(
    ("epsilon", "delta", "reserve", "mu"),
    [
        (2, 1e-6, 0, 0.44833474039519),
        (2, 1e-6, 1e-7, 0.44626060132368),
        (2, 1e-6, 5e-7, 0.43516019804487),
        (1, 1e-5, 1e-6, 0.26636463310517),
    ],
)
def test_the_limit_of_noise_is_read_at_the_rest_of_delta(epsilon, delta, reserve, mu):
    found = dpf.Ledger(epsilon=epsilon, delta=delta, keys_delta=reserve).limit_amount
    assert math.sqrt(found[0]) == pytest.approx(mu, rel=1e-12)
    assert found[1:] == ((Fraction(str(reserve)),) if reserve else ())


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_a_ledger_with_a_reserve_says_how_losses_add_up(accounting):
    """As without a reserve, epsilons do not add up, so the text states percentages of the limit."""
    ledger = book(accounting=accounting)
    FRAME.dp.count(max_rows=1, epsilon=0.3, ledger=ledger)
    told = str(ledger)
    assert f"{accounting} accounting, 1 charge; {ledger.accounting.inside.adds}" in told
    assert "% of the budget (epsilon 2, delta 1e-06), equivalent to epsilon" in told


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_charges_of_keys_add_up_exactly_beside_those_of_noise(accounting):
    ledger = book(accounting=accounting)
    parts = len(ledger.limit_amount)
    found(ledger, delta=1e-7)
    FRAME.dp.count(max_rows=1, epsilon=0.1, ledger=ledger)
    found(ledger, delta=2e-7)
    total = ledger._store.last().total
    assert len(total) == parts
    assert total[-1] == Fraction(3, 10**7)
    spent = ledger.spent
    assert spent.delta == pytest.approx(5e-7 + 3e-7, rel=1e-12)
    assert ledger.remaining.delta == 5e-7
    assert f"{ledger!r}".count("keys that are found have taken 3e-07 of their keys_delta 5e-07") == 1
    found(ledger, delta=2e-7)
    with pytest.raises(BudgetExceeded, match="keys_delta"):
        found(ledger, delta=1e-9)


def test_the_cost_of_a_call_is_read_with_its_keys():
    plan = FRAME.dp.preview.group_by("k", keys=dpf.discover(delta=1e-7)).n_units(
        max_groups=1, epsilon=0.5, ledger=book()
    )
    mu = gaussian_curve.largest_mu(0.5, 5e-7)
    assert math.sqrt(plan.amount[0]) == pytest.approx(mu, rel=1e-9)
    assert plan.amount[1] == Fraction(1, 10**7)
    assert (plan.cost.epsilon, plan.cost.delta) == (0.5, pytest.approx(6e-7))


def test_noise_cannot_use_the_reserve_nor_keys_the_noise():
    ledger = book(epsilon=1)
    FRAME.dp.count(max_rows=1, epsilon=1, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        FRAME.dp.count(max_rows=1, epsilon=0.01, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        found(ledger, epsilon=0.01)


def test_one_order_is_enough_but_never_for_keys():
    limit = Limit(Fraction(1), Fraction(1, 10), (Fraction(1), Fraction(1), Fraction(1, 100)), True, Fraction(1, 100))
    assert limit.holds((Fraction(9), Fraction(1), Fraction(1, 100)))
    assert not limit.holds((Fraction(1), Fraction(1), Fraction(1, 99)))
    assert not limit.holds((Fraction(9), Fraction(9), Fraction(0)))


def test_basic_adds_the_delta_of_keys_to_its_own():
    ledger = dpf.Ledger(epsilon=9, delta=1e-5, accounting="basic", unit="u")
    found(ledger, delta=1e-7)
    groups = FRAME.dp.group_by("k", keys=dpf.discover(delta=2e-7))
    groups.agg(n=dpf.n_units(), c=dpf.count(), max_rows=1, max_groups=1, epsilon=1, delta=1e-6, ledger=ledger)
    assert ledger._store.last().total == (Fraction(11, 10), Fraction(13, 10**7))
    with pytest.raises(BudgetExceeded, match="delta"):
        found(dpf.Ledger(epsilon=9, unit="u"))


def test_a_share_is_of_the_noise_alone():
    ledger = book()
    found(ledger, epsilon=None, share=0.25)
    total = ledger._store.last().total
    assert float(total[0] / ledger.limit_amount[0]) == pytest.approx(0.25, rel=1e-9)
    assert total[1] == Fraction(1, 10**7)


def test_a_reserve_is_checked():
    for wrong, words in (
        ({"keys_delta": 1e-6}, "below delta"),
        ({"keys_delta": 2e-6}, "below delta"),
        ({"keys_delta": -1e-7}, "keys_delta"),
        ({"keys_delta": 1e-7, "accounting": "basic"}, "left out with basic"),
        ({"delta": 0, "keys_delta": 1e-7}, "below delta"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            book(**wrong)


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_durable_ledgers_keep_the_reserve(tmp_path, accounting):
    path = tmp_path / "book.ledger"
    ledger = book(path=path, accounting=accounting)
    result = found(ledger, label="a", snapshot="b")
    again = dpf.Ledger.open(path)
    assert again.limit_amount == ledger.limit_amount
    assert again._store.last().total == ledger._store.last().total
    assert again.spent == ledger.spent
    assert again.verify(result)["releases"][0]["record"] == "as charged"
    assert book(path=path, accounting=accounting).limit == ledger.limit
    for _ in range(4):
        found(again)
    with pytest.raises(BudgetExceeded, match="keys_delta"):
        found(dpf.Ledger.open(path))
    with pytest.raises(LedgerError, match="keys_delta"):
        book(path=path, accounting=accounting, keys_delta=1e-7)
    dpf.Ledger.open(path).verify()


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_a_reserve_says_of_itself_what_the_accounting_inside_says(accounting):
    """A reserve has the constants of the accounting inside, except `takes_keys`: only the reserve takes keys."""
    reserve = book(accounting=accounting).accounting
    constants = {name for name, kind in Accounting.__annotations__.items() if str(kind).startswith("ClassVar")}
    assert {"adds", "tight", "takes_keys"} <= constants
    told = {
        name for name in (*constants, "name", "reads_at") if getattr(reserve, name) == getattr(reserve.inside, name)
    }
    assert told == {*constants, "name", "reads_at"} - {"takes_keys"}


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_what_remains_of_a_new_ledger_may_be_asked_for(accounting):
    """The reserve is only for keys, so `remaining` must leave it out: a call of noise cannot take the whole delta."""
    ledger = book(accounting=accounting)
    rest = ledger.remaining
    assert rest.delta == 5e-7
    FRAME.dp.count(max_rows=1, epsilon=rest.epsilon, delta=rest.delta, mechanism="gaussian", ledger=ledger)
    assert accounting == "rdp" or rest.epsilon == 2


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_a_raised_limit_keeps_its_reserve(tmp_path, accounting):
    path = tmp_path / "book.ledger"
    ledger = book(path=path, accounting=accounting)
    ledger.raise_limit(epsilon=4, reason="the board agreed")
    fresh = book(epsilon=4, accounting=accounting)
    assert ledger.limit_amount[-1] == Fraction(5, 10**7)
    if accounting == "gdp":
        assert ledger.limit_amount == fresh.limit_amount
    assert dpf.Ledger.open(path).limit.epsilon == 4
    for _ in range(5):
        found(ledger)
    with pytest.raises(BudgetExceeded):
        found(ledger)
    ledger.verify()


def test_a_ledger_that_lost_its_head_is_recovered_with_its_keys(tmp_path):
    path = tmp_path / "book.ledger"
    ledger = book(path=path)
    shutil.copy(path, tmp_path / "copy")
    found(ledger, delta=2e-7)
    total = ledger._store.last().total
    del ledger
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(LedgerError):
        dpf.Ledger.open(path)
    again = dpf.Ledger.recover(path, reason="the disk was replaced")
    assert again._store.last().total == total


def test_a_reserve_cannot_be_written_into_a_ledger(tmp_path):
    path = tmp_path / "book.ledger"
    found(book(path=path))
    with closing(sqlite3.connect(path)) as database, database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
            for column in columns:
                rows = database.execute(f"select rowid, {column} from {table}").fetchall()
                for row, text in rows:
                    if isinstance(text, str) and "1/2000000" in text:
                        changed = text.replace("1/2000000", "1/1000000")
                        database.execute(f"update {table} set {column} = ? where rowid = ?", (changed, row))
    with pytest.raises(LedgerError):
        dpf.Ledger.open(path).verify()


@pytest.mark.parametrize("name", ["clinic", "rdp"])
def test_ledgers_of_before_have_no_reserve(tmp_path, name):
    for end in ("", ".head"):
        shutil.copy(OLD / f"{name}.ledger{end}", tmp_path / f"{name}.ledger{end}")
    ledger = dpf.Ledger.open(tmp_path / f"{name}.ledger")
    assert ledger._store.last().limit.keys_delta == 0
    assert "keys_delta" not in json.dumps(ledger._store.last().limit.facts())
    assert "keys that are found" not in repr(ledger)


def test_limits_are_written_and_read_again():
    limit = book().limit_amount
    found = Limit(Fraction(2), Fraction(1, 10**6), limit, False, Fraction(1, 2 * 10**6))
    assert Limit.of(found.facts()) == found
    for wrong in ("1/1", "0/1", "x", None):
        with pytest.raises(ValueError, match=r"no limit|no rational"):
            Limit.of({**found.facts(), "keys_delta": wrong})


def test_no_reserve_is_within_another():
    one, other = (
        Limit(Fraction(2), Fraction(1, 10), (Fraction(1), Fraction(1)), False, part)
        for part in (Fraction(1, 99), Fraction(1, 98))
    )
    assert one.within(one)
    assert not one.within(other)


def test_basic_and_a_reserve_take_keys_and_others_do_not():
    assert Basic.takes_keys
    assert KeysReserve.takes_keys
    assert not dpf.Ledger(epsilon=1, delta=1e-6).accounting.takes_keys
    assert book().accounting.name == "gdp"


def test_the_default_ledger_records_keys():
    before = dpf.default_ledger().to_frame().height
    with pytest.warns(dpf.UnlimitedBudgetWarning):
        FRAME.dp.group_by("k", keys=dpf.discover(delta=1e-7)).n_units(epsilon=1, max_groups=1, unit="u")
    last = dpf.default_ledger().to_frame()
    assert last.height == before + 1
    assert last["delta"][-1] == 1e-7


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_everything_else_is_released_from_a_ledger_with_a_reserve(accounting):
    ledger = book(accounting=accounting, epsilon=9)
    groups = FRAME.dp.preview.group_by("k", keys=[0, 1, 2])
    plans = {
        "n": groups.n_units(max_groups=1, epsilon=1, ledger=ledger),
        "c": groups.count(max_rows=1, epsilon=1, ledger=ledger),
    }
    both = dpf.release_together(plans, epsilon=1, ledger=ledger)
    assert both["n"].height == both["c"].height == 3
    FRAME.dp.group_by("k", keys=[0, 1, 2]).count(max_rows=1, share=0.1, rollup=True, ledger=ledger)
    FRAME.dp.contributions(by="k", epsilon=0.1, ledger=ledger)
    FRAME.dp.count(max_rows=1, within=30, ledger=ledger)
    FRAME.dp.count(max_rows=1, epsilon=0.1, mechanism="laplace", ledger=ledger)
    total = ledger._store.last().total
    assert len(total) == len(ledger.limit_amount)
    assert total[-1] == 0
    assert 0 < ledger.spent.epsilon < 9
    assert ledger.spent.delta == 5e-7
    assert 0 < ledger.remaining.epsilon < 9
    assert ledger.to_frame().height == 5


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_the_budget_is_that_of_noise_and_keys_have_a_line_of_their_own(accounting):
    """The reserve is used up, but most of the budget remains: a bar at 100% would make its owner stop."""
    ledger = book(epsilon=1, keys_delta=1e-7, accounting=accounting)
    found(ledger)
    text = str(ledger)
    assert "100%" not in text
    assert "keys that are found have taken 1e-07 of their keys_delta 1e-07" in text
    spent, limit = ledger._store.last().total, ledger._store.last().limit.amount
    said = float(text.partition("% of the limit")[0].rpartition("] ")[2])
    least = 100 * float(min(one / other for one, other in zip(spent[:-1], limit[:-1], strict=True) if other))
    assert least <= said <= (least + 0.11 if accounting == "gdp" else 10.0)
    remaining = float(text.partition("remaining ")[2].partition("%")[0])
    assert remaining == pytest.approx(100.0 - said, abs=1e-9)
    assert ledger.affords(FRAME.dp.preview.count(epsilon=0.1, ledger=ledger, max_rows=1, max_groups=1)) > 0


def test_a_reserve_that_is_used_up_is_told_with_what_helps():
    """Neither a smaller epsilon nor a raised limit enlarges the reserve, so the message must not advise them."""
    ledger = book(epsilon=1, keys_delta=1.5e-7)
    found(ledger)
    for epsilon in (0.1, 1e-6):
        with pytest.raises(BudgetExceeded, match=r"finding keys needs 1e-07 of keys_delta 1.5e-07, and 5e-08 of it re"):
            found(ledger, epsilon=epsilon)
    with pytest.raises(BudgetExceeded) as refused:
        found(ledger)
    assert "raise_limit" not in str(refused.value)
    assert "Lower epsilon" not in str(refused.value)
    found(ledger, delta=5e-8)
    with pytest.raises(BudgetExceeded, match=r"or call ledger.raise_limit"):
        FRAME.dp.count(epsilon=1.5, max_rows=1, max_groups=1, ledger=ledger)
