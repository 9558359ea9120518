"""Names from users: new names that are refused, and how existing names are shown (register: Attack 110)."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import polars as pl
import pytest

import dpframe as dpf
from dpframe import errors
from dpframe.cli.main import main
from dpframe.display import pages as report
from dpframe.ledger.entries import Entry
from dpframe.ledger.ledger import Ledger
from dpframe.privacy import PrivacyLoss, PrivacyUnit

SURROGATE, ESCAPE, TURNED = "a\ud800", "a\x1b[2J", "a\u202eb"
STRANGE = [
    "<script>alert(1)</script>",
    "a.b",
    "a[0]",
    "=cmd|' /C calc'!A0",
    "\u202ecba",
    "a\nb",
    "",
    " ",
    "*",
    "^a$",
    'a"b',
    "a:N",
    "a\x1b[2J",
    "&amp;",
]
BREAKING = [SURROGATE, ESCAPE, "a\nb", "a\tb", "a\0", "a\x9b2J", "a\u2028b", "x" * 201]


def refused(ask):
    ledger = dpf.Ledger(epsilon=10)
    with pytest.raises(dpf.InvalidArgument) as caught:
        ask(ledger)
    assert ledger.spent.epsilon == 0
    return str(caught.value)


@pytest.mark.parametrize("name", BREAKING, ids=ascii)
def test_110_new_names_that_break_reports_are_refused_before_the_charge(engine, name):
    frame = engine({"x": [1.0]})
    assert "label must" in refused(lambda ledger: frame.dp.count(epsilon=1, label=name, ledger=ledger))
    assert "snapshot must" in refused(lambda ledger: frame.dp.count(epsilon=1, snapshot=name, ledger=ledger))
    plans = {"n": frame.dp.preview.count()}
    assert "label must" in refused(lambda ledger: dpf.release_together(plans, epsilon=1, label=name, ledger=ledger))
    named = {name: frame.dp.preview.count()}
    assert "each name of plans" in refused(lambda ledger: dpf.release_together(named, epsilon=1, ledger=ledger))
    free = {"cost": PrivacyLoss(0.0), "query": "q", "unit": PrivacyUnit(), "label": name}
    assert "label must" in refused(lambda ledger: ledger.charge((0, 0), **free))
    with pytest.raises(dpf.InvalidArgument, match="dataset must"):
        dpf.Ledger(epsilon=1, dataset=name)


def test_a_number_and_its_noun_agree():
    assert [errors.how_many(count, "row") for count in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [errors.how_many(count, "entry", "entries") for count in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize("name", [*BREAKING[:-1], "x" * 2_001], ids=lambda name: ascii(name)[:20])
def test_110_reasons_are_checked_as_names_are_but_may_be_longer(name):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match="reason must"):
        ledger.raise_limit(epsilon=2, reason=name)
    assert ledger.limit.epsilon == 1
    ledger.raise_limit(epsilon=2, reason="x" * 2_000)


@pytest.mark.parametrize("name", [SURROGATE, "a\0b", "x" * 1_001], ids=lambda name: ascii(name)[:20])
def test_110_columns_that_no_file_can_hold_are_refused(engine, name):
    dp = engine({"x": [1.0]}).dp
    for ask in (
        lambda ledger: dp.count(name, epsilon=1, ledger=ledger),
        lambda ledger: dp.group_by(name, keys=[1]).count(epsilon=1, ledger=ledger),
        lambda ledger: dp.histogram(name, bins=[0, 1], epsilon=1, ledger=ledger),
        lambda ledger: dp.mode(name, categories=[1], epsilon=1, ledger=ledger),
        lambda ledger: dp.agg({name: dpf.count()}, epsilon=1, ledger=ledger),
    ):
        refused(ask)
    with pytest.raises(dpf.InvalidArgument):
        dpf.mean(name, bounds=(0, 1))
    with pytest.raises(dpf.InvalidArgument):
        dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(name, max_rows=1))


@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_110_columns_that_the_frame_has_work_and_are_shown_harmlessly(engine, name):
    frame, ledger = engine({name: [0.5, 1.5]}), dpf.Ledger(epsilon=100, dataset="<b>clinic</b></script>")
    results = [
        frame.dp.histogram(name, bins=[0, 1, 2], epsilon=1, ledger=ledger, label="</script><script>alert(1)</script>"),
        frame.dp.agg({name: dpf.mean(name, bounds=(0, 1))}, epsilon=1, ledger=ledger),
        frame.dp.group_by(name, keys=[0.5, 1.5]).count(epsilon=1, ledger=ledger),
    ]
    assert next(iter(results[2].columns)) == name
    plans = [frame.dp.preview.count(name, epsilon=1), frame.dp.preview.count(name)]
    plans.append(dpf.plan_together({"a": plans[0]}, epsilon=1))
    pages = [one for plan in plans for one in (repr(plan), plan._repr_html_())] + [repr(ledger), ledger._repr_html_()]
    for page in pages:
        assert is_harmless(page)
    for page in [plan._repr_html_() for plan in plans] + [ledger._repr_html_()]:
        assert "<script" not in page
        assert "<b>clinic" not in page


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_110_charts_and_tables_hold_no_markup(name):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    frame = pl.DataFrame({name: [0.5, 1.5], "who": [name, "B"]})
    ledger = dpf.Ledger(epsilon=100, dataset="</script><script>alert(1)</script>")
    label = "</script><!-- <script>alert(1)</script>"
    results = [
        frame.dp.histogram(name, bins=[0, 1, 2], epsilon=1, ledger=ledger, label=label),
        frame.dp.group_by("who", keys=[name, "B"]).agg({name: dpf.mean(name, bounds=(0, 1))}, epsilon=1, ledger=ledger),
        frame.dp.group_by(name, keys=[0.5]).count(epsilon=1, ledger=ledger),
        frame.dp.agg({name: dpf.count()}, epsilon=1, ledger=ledger),
    ]
    previews = [frame.dp.preview.agg({name: dpf.count(), "n": dpf.count()}, epsilon=epsilon) for epsilon in (1, [1, 2])]
    charts = [result.dp.plot() for result in results] + [plan.plot() for plan in previews] + [ledger.plot()]
    for chart in charts:
        written = json.dumps(chart.to_dict(), ensure_ascii=False)  # as a script of a page contains it
        assert not any(tag in written for tag in ("<script", "</", "<!--", "<b>"))
        assert is_harmless(written)
    for result in results:
        html = result.dp.table().as_raw_html()
        assert "<script" not in html
        assert is_harmless(html)


def is_harmless(page):
    shown = {unicodedata.category(letter) for letter in page if letter not in "\n\u200c\u200d"}
    return not shown & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def older(ledger, label, kind="charge"):
    """Write an entry as an older version did, which refused no label."""
    nothing = tuple(part * 0 for part in ledger.limit_amount)
    unit = PrivacyUnit()
    return ledger.take(Entry("2026-01-01T00:00:00+00:00", label, label, unit, nothing, PrivacyLoss(0.0), kind))


@pytest.fixture(params=["memory", "file"])
def kept(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "older.ledger"
    ledger = Ledger(epsilon=1, path=path)
    for label in (SURROGATE, ESCAPE, TURNED, "=1+1", "@sum", "+1", "-1", "\tx", "\rx", "plain", "1-2"):
        older(ledger, label)
    return ledger


def test_110_what_older_ledgers_hold_is_shown_harmlessly(kept):
    frame = kept.to_frame()
    assert frame["label"].to_list()[:3] == ["a\\ud800", ESCAPE, TURNED]
    assert frame.write_csv()
    for page in (repr(kept), kept._repr_html_()):
        page.encode()
        assert is_harmless(page)
    pytest.importorskip("pandas")
    assert len(kept.to_frame("pandas")) == 11


def test_110_the_budget_chart_of_an_older_ledger_can_be_written(kept):
    pytest.importorskip("altair")
    assert is_harmless(json.dumps(kept.plot().to_dict(), ensure_ascii=False))


def test_110_the_command_line_shows_older_ledgers_harmlessly(tmp_path, capsys):
    pytest.importorskip("typer", reason="the extra cli")
    path = tmp_path / "older.ledger"
    ledger = Ledger(epsilon=1, path=path)
    texts = [SURROGATE, ESCAPE, TURNED, "=1+1", "@sum", "+1", "-1", "\tx", "\rx", "plain", "1-2"]
    for label in texts:
        older(ledger, label)
    for command in (["show"], ["verify"], ["export"], ["export", "--format", "json"]):
        assert main(["ledger", command[0], str(path), *command[1:]]) == 0
        out = capsys.readouterr().out
        out.encode()
        assert is_harmless(out)
    assert [row["label"] for row in json.loads(out)] == [errors.writable(text) for text in texts]
    assert main(["ledger", "export", str(path)]) == 0
    labels = [row["label"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert labels[3:] == ["'=1+1", "'@sum", "'+1", "'-1", "\\u0009x", "\\u000dx", "plain", "1-2"]
    assert main(["ledger", "show", str(tmp_path / "none\x1b[2J")]) == 1
    assert is_harmless(capsys.readouterr().err)


def test_110_numbers_in_a_csv_stay_numbers(tmp_path):
    pytest.importorskip("typer", reason="the extra cli")
    path, output = tmp_path / "people.ledger", tmp_path / "charges.csv"
    ledger = dpf.Ledger(epsilon=1, path=path)
    pl.DataFrame({"x": [1]}).dp.count(epsilon=0.25, ledger=ledger, label="-1")
    assert main(["ledger", "export", str(path), "-o", str(output)]) == 0
    (row,) = csv.DictReader(io.StringIO(output.read_text()))
    assert (row["label"], row["epsilon"]) == ("'-1", "0.25")


def test_110_harmless_text_stays_as_it_is():
    for text in ("", "plain", "Krankenhaus Süd", "病院", "می\u200cشود", "👩\u200d⚕", "a < b", "5 €"):
        assert errors.harmless(text) == text
        assert errors.no_markup(text) == text
        assert errors.fault_of_name(text, 200) is None
    assert errors.harmless("a\u202eb\x00\U000e0041") == "a\\u202eb\\u0000\\udb40\\udc41"
    assert json.loads(f'"{errors.harmless(TURNED)}"') == TURNED
    assert report.text_table(("a\x1b",), [("b\nc",)]) == "  a\\u001b\n  --------\n  b\\u000ac"


TYPED = "a\\u202eb\\x07"  # an escape as people type it: Vega would turn it into the character


@pytest.mark.slow
@pytest.mark.parametrize("name", [TURNED, ESCAPE, TYPED], ids=ascii)
def test_165_labels_that_are_read_aloud_hold_no_hidden_characters(name, tmp_path):
    pytest.importorskip("altair")
    converter = pytest.importorskip("vl_convert")
    frame = pl.DataFrame({name: [0.5, 1.5], "who": [name, "B"], "y": [1.0, 2.0]})
    ledger = dpf.Ledger(epsilon=100)
    ask = {"epsilon": 1, "ledger": ledger}
    results = [
        frame.dp.histogram(name, bins=[0, 1, 2], **ask),
        frame.dp.histogram([name, "y"], bins=[[0, 1, 2], [0, 1, 2]], **ask),
        frame.dp.group_by("who", keys=[name, "B"]).agg({name: dpf.mean(name, bounds=(0, 1))}, **ask),
        frame.dp.agg({name: dpf.count()}, **ask),
    ]
    for result in results:
        drawn = converter.vegalite_to_svg(result.dp.plot().to_dict())
        result.dp.write_html(tmp_path / "page.html")
        for page in (drawn, (tmp_path / "page.html").read_text(encoding="utf-8")):
            assert is_harmless(page)


@pytest.mark.parametrize("name", [TURNED, "\u2066clinic"])
def test_180_a_ledger_shows_the_name_of_its_data_set_harmlessly(name, capsys):
    ledger = dpf.Ledger(epsilon=1, dataset=name)
    print(ledger)
    for page in (repr(ledger), capsys.readouterr().out, ledger._repr_html_()):
        assert is_harmless(page)


def test_165_words_of_charts_hold_no_backslash():
    assert errors.no_markup("C:\\new\\u202e") == "C:\u29f5new\u29f5u202e"
    assert "\\" not in errors.no_markup(TURNED)


@pytest.mark.parametrize("sign", ["\ufffe", "\uffff"], ids=["fffe", "ffff"])
def test_192_signs_that_no_picture_holds_are_shown_as_escapes(sign):
    """The renderer of charts ends the process at such a character: after the charge, and again at each retry."""
    assert errors.no_markup(f"a{sign}b") == f"a\u29f5u{ord(sign):x}b"
    assert errors.harmless(f"a{sign}b") == f"a\\u{ord(sign):x}b"


def test_an_unknown_column_names_whole_columns_and_how_many_more(engine):
    frame = engine({f"column_{number}": [1.0] for number in range(16)})
    has = ", ".join(f"'column_{number}'" for number in range(5))
    with pytest.raises(dpf.UnknownColumn, match=rf"It has \[{has}\] and 11 more\.$"):
        frame.dp.mean("zzz", bounds=(0, 1), epsilon=1, ledger=dpf.Ledger(epsilon=1))
    with pytest.raises(dpf.UnknownColumn, match=r"It has \['a{56}\.\.\.\] and 1 more\.$"):
        engine({"a" * 99: [1.0], "b": [1.0]}).dp.mean("zzz", bounds=(0, 1), epsilon=1, ledger=dpf.Ledger(epsilon=1))


@pytest.mark.parametrize(
    ("article", "nouns"),
    [
        ("a", "user user_id unit university uuid uid url union UK utility euro one one_time us_state patient"),
        ("a", "UN UPRN unidirectional honey household str std strata row 1 7 110"),
        ("an", "office ID employee urgent_case uncle umbrella uninsured usher onset hour hour_2 honor ndarray int"),
        ("an", "MRN nhs_number SSN HMO hmo_id lsoa11 x-ray s3_key n_units unidentified honest upvote 8 11 18_days"),
    ],
)
def test_an_article_follows_the_sound_of_its_noun(article, nouns):
    """Units are named by their columns, and ``user`` is the most common name."""
    assert [errors.with_article(noun) for noun in nouns.split()] == [f"{article} {noun}" for noun in nouns.split()]
