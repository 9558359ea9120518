"""``.dp`` in completion, help and notebook cards, none of which may show anything about the rows."""

from __future__ import annotations

import inspect
import pydoc

import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames.register import DOC, OF_FRAMES, OF_RESULTS, protected

LIBRARIES = ("polars", "pandas")
DATA = {"ward": ["A", "B"] * 1234, "age": [31, 45] * 1234}
PRIVATE = {"count", "sum", "mean", "histogram", "agg"}
OF_A_RESULT = {"plot", "table", "relabel", "filter", "wide", "provenance"}


def frame_of(library):
    return pl.DataFrame(DATA) if library == "polars" else pytest.importorskip("pandas").DataFrame(DATA)


@pytest.mark.slow  # starting IPython and Jedi takes seconds
@pytest.mark.parametrize("library", LIBRARIES)
def test_tab_offers_the_verbs(library):
    completer = pytest.importorskip("IPython.core.completer")
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    frame = frame_of(library)
    result = frame.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    shell.user_ns.update(frame=frame, result=result, dpf=dpf)
    assert shell.Completer.use_jedi  # as it is by default
    for text, expected in (
        ("frame.dp.", PRIVATE | {"group_by", "preview"}),
        ("frame.dp.preview.", PRIVATE),
        ('frame.dp.group_by("ward", keys=["A"]).', PRIVATE),
        ("result.dp.", OF_A_RESULT),
        ("dpf.of(frame).", PRIVATE),
    ):
        with completer.provisionalcompleter():
            offered = {one.text.lstrip(".") for one in shell.Completer.completions(text, len(text))}
        assert expected <= offered, text


@pytest.mark.parametrize("library", LIBRARIES)
def test_help_lists_the_verbs_in_groups(library):
    kind = type(frame_of(library))
    text = pydoc.render_doc(kind.dp, renderer=pydoc.plaintext)
    for groups in (OF_FRAMES, OF_RESULTS):
        for title, lines in groups.items():
            assert f"  {title}\n" in text
            for name, line in lines.items():
                assert f"    {name:<14} {line}\n" in text
    assert kind.dp.__doc__ == DOC
    assert max(map(len, DOC.splitlines())) <= 120


@pytest.mark.parametrize(("kind", "groups"), [(dpf.PrivateFrame, OF_FRAMES), (dpf.ReleasedFrame, OF_RESULTS)])
def test_every_verb_is_listed_with_the_beginning_of_its_own_help(kind, groups):
    """`dpframe.frames.register` repeats the first lines of help by hand, since it imports no verb."""
    listed = {name: line for lines in groups.values() for name, line in lines.items()}
    assert set(listed) == {name for name in dir(kind) if not name.startswith("_")}
    for name, line in listed.items():
        own = inspect.getdoc(inspect.getattr_static(kind, name)).partition("\n")[0].replace("`", "")
        assert own.startswith(line), name


@pytest.mark.parametrize("library", LIBRARIES)
def test_cards_say_who_is_protected_and_nothing_of_rows(library):
    frame = frame_of(library)
    with dpf.Ledger(epsilon=1, unit="age"):
        shown = repr(frame.dp) + frame.dp._repr_html_()
        groups = repr(frame.dp.group_by("ward", keys=["A", "B"]))
        preview = frame.dp.preview._repr_html_()
    assert "protects" in shown
    assert "age" in shown.splitlines()[0]
    assert "of a private frame in groups of ward;" in groups
    assert "preview of .dp" in preview
    for text in (shown, groups, preview):
        assert "2468" not in text
        assert "2,468" not in text
        assert "A" not in {word.strip("'") for word in text.split()}
    assert "<code>histogram</code>" in shown
    result = frame.dp.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    card = result.dp._repr_html_()
    assert "protects each row" in card
    assert "<code>relabel</code>" in card
    assert "write_parquet" in repr(result.dp)
    assert "protects each row" in repr(dpf.concat([result, result]).dp)


def test_a_result_without_numbers_lists_only_what_it_answers(tmp_path):
    frame = pl.DataFrame({"ward": ["A", "B", "A"] * 200, "age": [30.0, 50.0, 70.0] * 200})
    cost = {"epsilon": 1, "ledger": dpf.Ledger(epsilon=9)}
    wards = {"categories": ["A", "B", "C"], **cost}
    calls = {
        "provenance": lambda dp: dp.provenance,
        "relabel": lambda dp: dp.relabel(columns={next(iter(dp.provenance["cells"][0]["columns"])): "x"}),
        "filter": lambda dp: dp.filter({}),
        "sort": lambda dp: dp.sort(next(iter(dp.provenance["cells"][0]["columns"]))),
        "head": lambda dp: dp.head(1),
        "write_html": lambda dp: dp.write_html(tmp_path / "page.html"),
        "write_parquet": lambda dp: dp.write_parquet(tmp_path / "it.parquet"),
        "checks": lambda dp: dp.checks(),
    }
    found = {
        "2 most common of ward": frame.dp.top_k("ward", k=2, **wards),
        "Mode of ward": frame.dp.mode("ward", **wards),
        "Suggested bounds of age": frame.dp.suggest_bounds("age", **cost),
    }
    for title, result in found.items():
        listed = repr(result.dp)
        names = {name.strip() for line in listed.splitlines()[1:] for name in line[11:].split(",")}
        assert names == set(calls)
        for call in calls.values():
            call(result.dp)
        assert title in (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "statement" not in result.dp._repr_html_()
    assert "statement" in repr(frame.dp.top_k("ward", k=2, counts=True, **wards).dp)
    assert "statement" in repr(dpf.concat([found["Mode of ward"]] * 2).dp)


def test_numbers_computed_from_a_release_list_only_what_they_answer(tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    frame = pl.DataFrame({"a": [0, 1] * 200, "b": [0, 1, 1, 0] * 100})
    table = frame.dp.group_by("a", "b", keys={"a": [0, 1], "b": [0, 1]}).count(epsilon=9, ledger=dpf.Ledger(epsilon=9))
    calls = {
        "plot": lambda dp: dp.plot(),
        "table": lambda dp: dp.table(),
        "statement": lambda dp: dp.statement(),
        "provenance": lambda dp: dp.provenance,
        "relabel": lambda dp: dp.relabel(columns={"count": "n"}),
        "filter": lambda dp: dp.filter({"a": [0]}),
        "sort": lambda dp: dp.sort("count"),
        "head": lambda dp: dp.head(1),
        "select": lambda dp: dp.select("count"),
        "wide": lambda dp: dp.wide("b"),
        "parts": lambda dp: dp.parts,
        "write_html": lambda dp: dp.write_html(tmp_path / "page.html"),
        "write_parquet": lambda dp: dp.write_parquet(tmp_path / "it.parquet"),
        "checks": lambda dp: dp.checks(),
    }
    test = {"statement", "provenance", "write_parquet"}
    for result, names in ((table.dp.share(), set(calls)), (table.dp.chi2(), test)):
        listed = {name.strip() for line in repr(result.dp).splitlines()[1:] for name in line[11:].split(",")}
        assert listed == names
        assert "errors" not in dir(result.dp)
        for name in names:
            calls[name](result.dp)


def test_without_a_ledger_in_sight():
    assert "no ledger yet" in protected(None)


def test_help_of_the_package_is_short():
    text = pydoc.render_doc(dpf, renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 150
    assert "df.dp" in text
    names: dict[str, object] = {}
    exec("from dpframe import *", names)
    assert names["Ledger"] is dpf.Ledger
