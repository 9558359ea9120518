"""A ledger as an HTML page, and the answers that it stores."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

import dpframe as dpf
from dpframe.release import results

PEOPLE = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})


@pytest.fixture
def ledger(tmp_path):
    ledger = dpf.Ledger(epsilon=3, path=tmp_path / "secret-place.ledger", dataset="<clinic>")
    with ledger:
        for snapshot in ("2026-04", "2026-05"):
            PEOPLE.dp.count(epsilon=0.5, label="patients </script>", snapshot=snapshot)
        PEOPLE.dp.count(epsilon=0.25, label="not stored")
    ledger.raise_limit(epsilon=4, reason="the board agreed")
    return ledger


def test_answers_are_listed(ledger):
    found = ledger.answers()
    assert found.columns == ["entry", "time", "label", "snapshot", "query", "unit", "epsilon", "delta", "stored"]
    assert found["snapshot"].to_list() == ["2026-04", "2026-05"]
    assert found["entry"].to_list() == [1, 3]
    assert found["stored"].to_list() == [2, 4]
    assert found["epsilon"].to_list() == [0.5, 0.5]
    assert ledger.to_frame().filter(pl.col("entry").is_in(found["entry"].to_list()))["kind"].unique().to_list() == [
        "charge"
    ]


def test_an_answer_is_listed_with_the_charge_that_it_was_made_for(tmp_path, monkeypatch):
    ledger = dpf.Ledger(epsilon=3, path=tmp_path / "clinic.ledger")
    asked = {"epsilon": 0.5, "label": "patients", "snapshot": "2026-05", "ledger": ledger}
    with monkeypatch.context() as patch:
        patch.setattr("dpframe.release.path.measure", lambda *_: results.looked(lambda: None))
        with pytest.raises(dpf.ReleaseFailed):
            PEOPLE.dp.count(**asked)
    PEOPLE.dp.count(**asked)
    assert ledger.to_frame()["entry"].to_list() == [1, 2]
    assert ledger.answers().select("entry", "stored").rows() == [(2, 3)]


def test_a_ledger_in_memory_stores_none():
    assert dpf.Ledger(epsilon=1).answers().height == 0
    pandas = pytest.importorskip("pandas")
    assert isinstance(dpf.Ledger(epsilon=1).answers(like="pandas"), pandas.DataFrame)


def test_a_page_says_what_was_spent(ledger, tmp_path):
    with ledger:
        wards = PEOPLE.dp.group_by("ward", keys=["A", "B"]).count(epsilon=0.5, label="wards <b>")
    ledger.report(tmp_path / "x.html", wards, charts=False, title="Spring & fall")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    for words in ("Spring &amp; fall", "epsilon 1.75 of epsilon 4", ledger.verify()["head"], "the board agreed"):
        assert words in page
    for words in ("Stored answers", "2026-05", "wards &lt;b&gt;", "What was spent", "add-remove neighbors"):
        assert words in page
    assert "secret-place" not in page
    assert "<b>" not in page
    assert page.count("</script>") == 1
    assert not re.search(r"(?:src|href)=.(?!#)", page)
    assert "http:" not in page
    assert "https:" not in page
    (records,) = re.findall(r'<script type="application/json" id="records">(.*)</script>', page)
    spent, release = json.loads(records)
    assert spent["charges"][0]["label"] == "patients </script>"
    assert release["label"] == "wards <b>"


def test_a_page_of_a_ledger_that_spent_nothing(tmp_path):
    dpf.Ledger(epsilon=1).report(tmp_path / "x.html", charts=False)
    assert "Nothing was charged." in (tmp_path / "x.html").read_text(encoding="utf-8")
    dpf.default_ledger().report(tmp_path / "x.html", charts=False)
    assert "no limit" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_page_has_charts_for_light_and_dark(ledger, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    ledger.report(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1  # one chart for both: it takes its colors from the page
    assert "http:" not in page


def test_what_is_no_release_is_refused(ledger, tmp_path):
    with pytest.raises(dpf.InvalidType, match="released frames, not 3"):
        ledger.report(tmp_path / "x.html", 3, charts=False)
    with pytest.raises(dpf.NoProvenance, match="report the result"):
        ledger.report(tmp_path / "x.html", PEOPLE, charts=False)
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("price", "way"),
    [({"epsilon": 2}, "Lower epsilon"), ({"share": 0.8}, "Lower share"), ({"within": 1}, "Raise within")],
    ids=str,
)
@pytest.mark.parametrize("path", [None, "people.ledger"])
def test_a_budget_that_is_exceeded_names_what_the_caller_wrote(tmp_path, path, price, way):
    ledger = dpf.Ledger(epsilon=1, path=path and tmp_path / path)
    frame = pl.DataFrame({"age": [1, 2]})
    frame.dp.count(epsilon=0.5, ledger=ledger)
    with pytest.raises(dpf.BudgetExceeded, match=rf"remains\. {way}, or call ledger\.raise_limit"):
        frame.dp.count(**price, ledger=ledger)
    if "within" not in price:
        with pytest.raises(dpf.BudgetExceeded, match=rf"remains\. {way}, or call"):
            dpf.release_together({"n": frame.dp.preview.count()}, **price, ledger=ledger)
    assert ledger.spent.epsilon == 0.5


def test_a_long_query_is_cut_in_the_text_of_a_ledger():
    ledger = dpf.Ledger(epsilon=1)
    frame = pl.DataFrame({"age": [1, 2]})
    plans = {f"part {number}": frame.dp.preview.sum("age", bounds=(0, number + 1)) for number in range(12)}
    dpf.release_together(plans, epsilon=0.5, ledger=ledger)
    query = ledger.to_frame()["query"][0]
    assert len(query) > 200
    assert f"{query[:77]}...  epsilon 0.5" in repr(ledger)
    assert query in ledger._repr_html_()


def test_the_table_of_charges_rounds_up(tmp_path):
    ledger = dpf.Ledger(epsilon=3)
    PEOPLE.dp.count(epsilon=0.33334999, ledger=ledger)
    ledger.report(tmp_path / "page.html", charts=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<td class="n">0.3334</td>' in page


@pytest.mark.parametrize(("epsilon", "spent", "left"), [(0.33333349, "0.33334", "0.66666"), (0.25, "0.25", "0.75")])
def test_what_was_spent_is_rounded_up_and_what_remains_down(epsilon, spent, left):
    ledger = dpf.Ledger(epsilon=1)
    PEOPLE.dp.count(epsilon=epsilon, ledger=ledger)
    assert f"spent epsilon {spent} of epsilon 1\n" in repr(ledger)
    assert f"remaining epsilon {left}\n" in repr(ledger)
