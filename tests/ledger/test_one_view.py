"""One view of a budget: terminal, notebook, chart and page show the same numbers, which add up, and what still fits."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.display.statements import dearer_words

PEOPLE = pl.DataFrame({"age": [31.0, 45.0, 62.0] * 10, "ward": ["A", "B", "C"] * 10})
LEDGERS = {
    "basic": {"epsilon": 3},
    "gdp": {"epsilon": 2, "delta": 1e-6},
    "rdp": {"epsilon": 2, "delta": 1e-6, "accounting": "rdp"},
}


def spend(ledger, *epsilons):
    """Release one count for each epsilon."""
    for epsilon in epsilons:
        PEOPLE.dp.count(epsilon=epsilon, ledger=ledger)
    return ledger


@pytest.mark.parametrize("name", LEDGERS)
def test_the_same_budget_in_four_places_says_the_same(name, tmp_path):
    pytest.importorskip("altair")
    ledger = spend(dpf.Ledger(**LEDGERS[name], dataset="clinic"), 0.5, 0.3)
    said = dict(ledger._statement().facts())
    chart = seen(ledger.plot())
    ledger.report(tmp_path / "spent.html", charts=False)
    places = {
        "terminal": repr(ledger),
        "notebook": ledger._repr_html_(),
        "chart": chart["title"]["subtitle"],
        "words of the chart": chart["description"],
        "page": (tmp_path / "spent.html").read_text(encoding="utf-8"),
    }
    for fact in ("spent", "remaining"):
        assert {place for place, text in places.items() if said[fact] in text} == set(places)
    for place in ("terminal", "notebook", "page"):
        assert said["fits"] in places[place]
    assert ledger._statement().percent in places["terminal"]


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("epsilons", [(0.5, 0.3), (0.001,), (0.123456789, 0.2), (Fraction(1, 3), Fraction(1, 7))])
def test_what_is_spent_and_what_remains_add_up(name, epsilons):
    """In epsilon if epsilons add up, otherwise in percent; the spent part is never understated."""
    ledger = spend(dpf.Ledger(**LEDGERS[name]), *epsilons)
    said = dict(ledger._statement().facts())
    pattern = r"epsilon ([0-9.e-]+)" if name == "basic" else r"([0-9.]+)%"
    spent, left = (Decimal(re.match(pattern, said[fact]).group(1)) for fact in ("spent", "remaining"))
    assert spent + left == (3 if name == "basic" else 100)
    if name == "basic":
        assert float(spent) >= ledger.spent.epsilon * (1 - 1e-5)
    else:
        limit = ledger.limit_amount
        assert float(spent) / 100 >= float(ledger.accounting.filled(ledger._store.last().spent, limit)) - 1e-12
        alike = [float(re.search(r"to epsilon ([0-9.e-]+)", said[fact]).group(1)) for fact in ("spent", "remaining")]
        assert ledger.spent.epsilon * (1 - 1e-6) <= alike[0] <= ledger.spent.epsilon * 1.001
        assert ledger.remaining.epsilon * 0.999 <= alike[1] <= ledger.remaining.epsilon * (1 + 1e-6)


def test_what_was_spent_is_rounded_up_where_six_digits_do_not_add_up():
    said = dict(spend(dpf.Ledger(epsilon=3), 0.1234123)._statement().facts())
    assert (said["spent"], said["remaining"]) == ("epsilon 0.12342 of epsilon 3", "epsilon 2.87658")


@pytest.mark.parametrize("name", LEDGERS)
def test_what_fits_is_what_is_taken(name):
    ledger = spend(dpf.Ledger(**LEDGERS[name]), 0.5)
    plan = PEOPLE.dp.preview.count(epsilon=0.3, ledger=ledger)
    fits = ledger.affords(plan)
    assert fits > 1
    spend(ledger, *[0.3] * fits)
    assert ledger.affords(plan) == 0
    assert "fits no more calls like the last" in repr(ledger)
    with pytest.raises(dpf.BudgetExceeded):
        spend(ledger, 0.3)


def test_what_fits_is_counted_in_calls_like_the_last():
    assert "fits 7 more calls like the last (epsilon 0.25)" in repr(spend(dpf.Ledger(epsilon=3), 0.5, 0.5, 0.25))
    assert "fits 1 more call like the last (epsilon 1)" in repr(spend(dpf.Ledger(epsilon=3), 0.5, 0.25, 1))


def test_many_calls_are_counted_up_to_a_million():
    ledger = dpf.Ledger(epsilon=1)
    assert ledger.affords(PEOPLE.dp.preview.count(epsilon=1e-9, ledger=ledger)) == 1_000_000
    spend(ledger, 1e-9)
    assert "fits at least 1,000,000 more calls like the last (epsilon 1e-09)" in repr(ledger)


def test_a_plan_of_another_ledger_is_refused():
    ledger, other = dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1, delta=1e-6)
    with pytest.raises(dpf.InvalidArgument, match="plan must be for a ledger like this one: basic accounting"):
        ledger.affords(PEOPLE.dp.preview.count(epsilon=0.1, ledger=other))
    with pytest.raises(dpf.InvalidArgument, match="gdp accounting, the same delta and keys_delta, protecting each row"):
        other.affords(PEOPLE.dp.preview.count(epsilon=0.1, ledger=dpf.Ledger(epsilon=1, delta=1e-7)))
    with pytest.raises(dpf.InvalidArgument, match="protecting each row"):
        ledger.affords(PEOPLE.dp.preview.count(epsilon=0.1, max_rows=1, ledger=dpf.Ledger(epsilon=1, unit="ward")))
    with pytest.raises(dpf.InvalidType, match="plan must be one plan, not"):
        ledger.affords(PEOPLE.dp.preview.count(epsilon=[0.1, 0.2], ledger=ledger))
    with pytest.raises(dpf.LedgerError, match="must have a limit to fit calls into"):
        dpf.default_ledger().affords(PEOPLE.dp.preview.count(epsilon=0.1, ledger=ledger))


def test_a_ledger_affords_several_plans_together_as_often_as_they_fit():
    ledger = dpf.Ledger(epsilon=1)
    plans = {"all": PEOPLE.dp.preview.count(), "more": PEOPLE.dp.preview.count()}
    assert ledger.affords(dpf.plan_together(plans, epsilon=0.3, ledger=ledger)) == 3
    with pytest.raises(dpf.InvalidArgument, match="plan must be for a ledger like this one"):
        ledger.affords(dpf.plan_together(plans, epsilon=0.3, delta=1e-6, ledger=dpf.Ledger(1, 1e-6, accounting="gdp")))


@pytest.mark.parametrize("name", LEDGERS)
def test_a_fresh_ledger_is_a_card(name, tmp_path):
    pytest.importorskip("altair")
    ledger = dpf.Ledger(**LEDGERS[name])
    text, html = repr(ledger), ledger._repr_html_()
    assert f"budget {ledger.limit}, all of it remains" in text
    for empty in ("[---", "last charges", "spent"):
        assert empty not in text
    assert "<thead>" not in html
    assert "aria-label" not in html  # no progress bar
    ledger.report(tmp_path / "spent.html")
    page = (tmp_path / "spent.html").read_text(encoding="utf-8")
    assert 'class="bar"' not in page
    assert "Nothing is spent yet." in str(ledger.plot().to_dict())


def test_charges_are_counted_in_whole_numbers():
    pytest.importorskip("altair")
    one = seen(spend(dpf.Ledger(epsilon=1), 0.5).plot())
    axes = [layer["encoding"]["x"]["axis"]["values"] for layer in one["layer"] if "axis" in layer["encoding"]["x"]]
    assert axes == [[0, 1]] * len(axes)
    many = seen(spend(dpf.Ledger(epsilon=100), *[0.5] * 40).plot())
    ticks = many["layer"][1]["encoding"]["x"]["axis"]["values"]
    assert len(ticks) <= 14
    assert all(isinstance(tick, int) for tick in ticks)


def test_percent_are_drawn_where_epsilons_do_not_add_up():
    pytest.importorskip("altair")
    ledger = spend(dpf.Ledger(epsilon=2, delta=1e-6), 0.5, 0.5)
    chart = seen(ledger.plot())
    rows = chart["data"]["values"] if "data" in chart else chart["layer"][0]["data"]["values"]
    assert [row["limit"] for row in rows] == [100.0] * 3
    assert rows[2]["spent"] == pytest.approx(2 * rows[1]["spent"], rel=1e-6)  # squares of mu add up
    assert chart["layer"][0]["encoding"]["y"]["title"] == "percent of the budget"


def test_a_page_of_many_charges_lists_the_last_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("dpframe.ledger.spending.MOST_ROWS", 2)
    ledger = dpf.Ledger(epsilon=1)
    for label in ("first", "second", "third"):
        PEOPLE.dp.count(epsilon=0.25, ledger=ledger, label=label)
    ledger.report(tmp_path / "spent.html", charts=False)
    page = (tmp_path / "spent.html").read_text(encoding="utf-8")
    assert "The last 2 of 3; ledger.to_frame() has all." in page
    assert [label for label in ("first", "second", "third") if f"<td>{label}</td>" in page] == ["second", "third"]


def test_a_cost_above_the_typed_epsilon_is_explained(tmp_path):
    """Pure noise costs more epsilon in a ledger that adds mu^2: the plan and the page give the reason."""
    ledger = dpf.Ledger(epsilon=9, delta=1e-6)
    asked = {"epsilon": 1, "mechanism": "laplace", "ledger": ledger}
    said = "more than the epsilon 1 of this noise alone: gdp accounting does not add epsilons"
    assert said in repr(PEOPLE.dp.preview.count(**asked))
    PEOPLE.dp.count(**asked).dp.write_html(tmp_path / "n.html", charts=False)
    assert said in (tmp_path / "n.html").read_text(encoding="utf-8")
    for plain in ({"epsilon": 1, "ledger": ledger}, {"epsilon": 1, "ledger": dpf.Ledger(epsilon=1)}):
        assert "more than the epsilon" not in repr(PEOPLE.dp.preview.count(**plain))
    PEOPLE.dp.count(epsilon=1, ledger=ledger).dp.write_html(tmp_path / "n.html", charts=False)
    assert "more than the epsilon" not in (tmp_path / "n.html").read_text(encoding="utf-8")
    assert dearer_words(1.0, 1.0 + 1e-9, "gdp") is None
