"""A release with label= and snapshot= is stored: the same call replays it at no cost, another call is refused."""

from __future__ import annotations

import json
import math
import multiprocessing
import shutil
import sqlite3
import threading
import warnings
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from looking import of_rows

import dpframe as dpf
from dpframe.ledger import sql
from dpframe.queries.bins import BinAxis
from dpframe.release import results
from dpframe.release.facts import _plain

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {
    "age": [31, 45, 62, 7],
    "ward": ["A", "B", "A", None],
    "patient": [1, 1, 2, 3],
    "day": [date(2026, 1, 1)] * 4,
}
PEOPLE = pl.DataFrame(COLUMNS)
NAMED = {"label": "wards", "snapshot": "2026-W47"}
DAYS = [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)]


@pytest.fixture
def ledger(tmp_path):
    return dpf.Ledger(epsilon=9, path=tmp_path / "clinic.ledger", dataset="clinic")


def wards(frame=PEOPLE, **words):
    call = {"n": dpf.count(), "age": dpf.mean("age", bounds=(0, 120)), "epsilon": 1, **NAMED, **words}
    return frame.dp.group_by("ward", keys=["A", "B", "C"]).agg(**call)


def charges(ledger):
    return ledger.to_frame().height


def numbers(engine, result):
    return {name: values for name, values in engine.columns(result).items() if name != "ward"}


# Replays of the same call

CALLS = {
    "count": lambda dp, **words: dp.count(**words),
    "agg": lambda dp, **words: dp.group_by("ward", keys=["A", None]).agg(
        dpf.count(), total=dpf.sum("age", bounds=(-5, 100)), average=dpf.mean("age", bounds=(0, 9)), **words
    ),
    "histogram": lambda dp, **words: dp.histogram("age", bins=[0, 50, 100], **words),
    "days": lambda dp, **words: dp.histogram("day", bins=DAYS, keep_noisy=False, **words),
    "grid": lambda dp, **words: dp.histogram(["age", "patient"], bins=[[0, 50, 100], [0, 2, 4]], **words),
    "categories": lambda dp, **words: dp.histogram("ward", categories=["A", "B"], denoise=["haar", "rounded"], **words),
    "rollup": lambda dp, **words: dp.group_by("ward", keys=["A", "B"]).count(rollup=True, **words),
    "select": lambda dp, **words: dp.mode("ward", categories=["A", None, "B"], **words),
    "top": lambda dp, **words: dp.top_k("ward", k=2, categories=["A", None, "B"], **words),
    "top with counts": lambda dp, **words: dp.top_k("ward", k=2, categories=["A", None, "B"], counts=True, **words),
    "select a day": lambda dp, **words: dp.mode("day", categories=DAYS, **words),
    "laplace": lambda dp, **words: dp.count(
        mechanism=lambda sensitivity, loss: dpf.Laplace.calibrate(
            sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid
        ),
        **words,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_the_same_call_answers_the_same_at_no_cost(call, ledger, engine):
    frame = engine(COLUMNS)
    first = CALLS[call](frame.dp, epsilon=1, ledger=ledger, **NAMED)
    again = CALLS[call](frame.dp, epsilon=1, ledger=dpf.Ledger.open(ledger._store.identity[0]), **NAMED)
    assert type(again) is type(first)
    assert again.equals(first)
    assert list(again.dtypes) == list(first.dtypes)
    assert again.dp.provenance == first.dp.provenance
    assert not again.dp.provenance["altered"]
    assert (charges(ledger), ledger.spent.epsilon) == (1, 1.0)
    ledger.verify(again.dp.provenance)


def test_an_answer_returns_in_the_library_of_the_caller(ledger):
    pandas = pytest.importorskip("pandas")
    first = wards(ledger=ledger)
    again = wards(pandas.DataFrame(COLUMNS), ledger=ledger)
    lazy = wards(PEOPLE.lazy(), ledger=ledger)
    assert isinstance(again, pandas.DataFrame)
    for name in first.dp.provenance["columns"]:
        assert np.array_equal(first[name].to_numpy(), again[name].to_numpy(), equal_nan=True)
    assert lazy.equals(first)
    assert again.dp.provenance == first.dp.provenance
    assert charges(ledger) == 1


def test_it_is_kept_to_the_last_bit(ledger):
    first = wards(ledger=ledger, epsilon=1e-3)
    again = wards(ledger=ledger, epsilon=1e-3)
    for name in first.dp.provenance["columns"]:
        assert first[name].to_numpy().tobytes() == again[name].to_numpy().tobytes()


def test_the_way_in_which_a_number_was_typed_does_not_matter(ledger):
    first = wards(ledger=ledger, epsilon=0.1)
    for same in (Fraction(1, 10), Decimal("0.1"), np.float64(0.1)):
        assert wards(ledger=ledger, epsilon=same).equals(first)
    assert charges(ledger) == 1


def test_no_row_is_read_and_none_matters(ledger, monkeypatch):
    first = wards(ledger=ledger)
    monkeypatch.setattr(results, "totals", of_rows(lambda *_: pytest.fail("a row was read")))
    assert wards(PEOPLE.head(1), ledger=ledger).equals(first)  # as documented: only the snapshot counts


def test_a_replay_needs_no_budget(tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger")
    first = wards(ledger=ledger)
    assert ledger.remaining.epsilon == 0
    assert wards(ledger=ledger).equals(first)


def test_a_share_is_known_again_after_the_limit_was_raised(ledger):
    first = wards(ledger=ledger, epsilon=None, share=0.25)
    ledger.raise_limit(epsilon=10, reason="why not")
    assert wards(ledger=ledger, epsilon=None, share=Fraction(1, 4)).equals(first)


# Calls that are never replayed


@pytest.mark.filterwarnings("ignore:snapshot= without label=")
@pytest.mark.parametrize("words", [{}, {"label": "wards"}, {"snapshot": "2026-W47"}], ids=str)
def test_without_both_names_a_call_is_new_and_charged(ledger, words):
    for _ in range(2):
        PEOPLE.dp.count(epsilon=1, ledger=ledger, **words)
    assert charges(ledger) == 2
    assert ledger.spent.epsilon == 2
    assert ledger.to_frame()["snapshot"].to_list() == [words.get("snapshot")] * 2


def test_edges_are_in_the_time_zone_of_the_answer(ledger, monkeypatch):
    """The same instants in another zone are the same question. Before 0.3, records and edges had no zone."""
    edges = [datetime(2026, 1, day, tzinfo=ZoneInfo("Europe/Berlin")) for day in (1, 2)]
    aware = PEOPLE.select(day=pl.col("day").cast(pl.Datetime("us", "Europe/Berlin")))
    utc = [edge.astimezone(UTC) for edge in edges]

    def binned(edges, label):
        return aware.dp.histogram("day", bins=edges, epsilon=1, ledger=ledger, label=label, snapshot="2026")

    first = binned(edges, "new")
    again = binned(utc, "new")
    assert again.equals(first)
    assert again["day_left"].dtype == pl.Datetime("us", "Europe/Berlin")
    with monkeypatch.context() as before:
        plain = {"labels": BinAxis.labels, "facts": BinAxis.facts}
        for name, told in plain.items():
            before.setattr(BinAxis, name, lambda self, told=told: told(replace(self, zone=None)))
        old = binned(edges, "old")
    assert old["day_left"].to_list() == [utc[0].replace(tzinfo=None)]
    again = binned(edges, "old")
    assert again.equals(old)
    assert len(again.dp.filter({"day_left": old["day_left"].to_list()})) == 1  # the replay finds its own labels
    assert charges(ledger) == 2


def test_another_label_or_version_is_new(ledger):
    wards(ledger=ledger)
    wards(ledger=ledger, snapshot="2026-W48")
    wards(ledger=ledger, label="all wards")
    assert charges(ledger) == 3
    assert ledger.to_frame()["snapshot"].to_list() == ["2026-W47", "2026-W48", "2026-W47"]


# Refusals

OTHERS = {
    "statistic": {"age": dpf.mean("age", bounds=(0, 121))},
    "cost": {"epsilon": 2},
    "mechanism": {"mechanism": "laplace"},
    "denoise": {"denoise": None},
    "keep_noisy": {"keep_noisy": False},
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_public_facts_are_refused(what, ledger):
    wards(ledger=ledger)
    with pytest.raises(dpf.LedgerError, match=f"{what} differs. Nothing was charged"):
        wards(ledger=ledger, **OTHERS[what])
    assert (charges(ledger), ledger.spent.epsilon) == (1, 1.0)


@pytest.mark.parametrize("named", [{"step": 1}, {"bounds": None, "candidates": range(121)}])
def test_235_a_word_of_the_caller_that_an_interval_rests_on_is_a_fact(named, ledger):
    """Bounds alone give the same candidates, but a wider interval: nothing then states that values lie on them."""
    asked = {"bounds": (0, 120), "epsilon": 1, "ledger": ledger, **NAMED}
    PEOPLE.dp.median("age", **{name: each for name, each in {**asked, **named}.items() if each is not None})
    with pytest.raises(dpf.LedgerError, match=r"statistic differs\. Nothing was charged"):
        PEOPLE.dp.median("age", **asked)
    assert charges(ledger) == 1


def test_bounds_of_a_call_are_a_fact_where_the_ledger_has_bounds_too(tmp_path):
    unit = dpf.PrivacyUnit("patient", max_rows=2, max_groups=1)
    ledger = dpf.Ledger(epsilon=9, unit=unit, path=tmp_path / "clinic.ledger")
    wards(ledger=ledger, max_rows=1, max_groups=2)
    for other in ({"max_rows": 50, "max_groups": 2}, {"max_rows": 1, "max_groups": 1}, {}):
        with pytest.raises(dpf.LedgerError, match=r"max_.* differ"):
            wards(ledger=ledger, **other)
    assert charges(ledger) == 1


@pytest.mark.parametrize("categories", [["B", "A"], ["A", "B", "C"], ["A"]], ids="".join)
def test_234_a_stored_answer_is_not_replayed_for_keys_that_a_dtype_declares_otherwise(categories, tmp_path):
    """With the categories in another order, a replay once showed the numbers of one category next to another."""
    ledger = dpf.Ledger(epsilon=9, delta=1e-3, path=tmp_path / "clinic.ledger")

    def asked(categories):
        dtypes = {"ward": pl.Enum(categories), "sex": pl.Enum(["f", "m"])}
        frame = pl.DataFrame({"ward": ["A"] * 9, "sex": ["f"] * 9}, schema_overrides=dtypes)
        return frame.dp.marginals(["ward", "sex"], epsilon=1, delta=1e-6, ledger=ledger, **NAMED)

    first = asked(["A", "B"])
    with pytest.raises(dpf.LedgerError, match="has other keys than the dtype of a column declares today"):
        asked(categories)
    assert asked(["A", "B"]).equals(first)
    assert charges(ledger) == 1


@pytest.mark.parametrize("verb", ["count", "marginals"])
def test_234_a_stored_answer_is_not_replayed_for_the_clock_of_another_zone(verb, tmp_path):
    ledger = dpf.Ledger(epsilon=9, delta=1e-3, path=tmp_path / "clinic.ledger")
    hours = dpf.dates("2025-01-06T08:00", "2025-01-06T16:00", every="1h")
    utc = pl.DataFrame({"at": [datetime(2025, 1, 6, 9, 30, tzinfo=UTC)] * 3, "b": [True] * 3})

    def asked(frame):
        words = {"epsilon": 1, "delta": 1e-6, "ledger": ledger, **NAMED}
        if verb == "marginals":
            return frame.dp.marginals(["at", "b"], keys={"at": hours, "b": [True, False]}, **words)
        return frame.dp.group_by("at", keys=hours).count(**words)

    first = asked(utc)
    with pytest.raises(dpf.LedgerError, match=r"differs\. Nothing was charged"):
        asked(utc.with_columns(pl.col("at").dt.convert_time_zone("Europe/Berlin")))
    assert asked(utc).equals(first)
    assert charges(ledger) == 1


def test_stored_bounds_of_numbers_are_none_of_dates(ledger):
    def asked(values):
        return pl.DataFrame({"x": values}).dp.suggest_bounds("x", epsilon=1, ledger=ledger, **NAMED)

    asked([1.0, 2.0])
    with pytest.raises(dpf.LedgerError, match="statistic differs"):
        asked([date(2025, 1, 1)] * 2)
    assert charges(ledger) == 1


def test_candidates_that_bounds_alone_could_not_have_may_be_stored(ledger):
    frame, candidates = pl.DataFrame({"x": [1e12] * 3}), [1e12, 1e12 + 0.01, 1e12 + 0.02]
    first = frame.dp.median("x", candidates=candidates, epsilon=1, ledger=ledger, **NAMED)
    assert frame.dp.median("x", candidates=candidates, epsilon=1, ledger=ledger, **NAMED).equals(first)


def test_other_keys_are_refused(ledger):
    PEOPLE.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=ledger, **NAMED)
    for keys in (["B", "A"], ["A", "B", "C"], ["A", None]):
        with pytest.raises(dpf.LedgerError, match="keys differs"):
            PEOPLE.dp.group_by("ward", keys=keys).count(epsilon=1, ledger=ledger, **NAMED)
    with pytest.raises(dpf.LedgerError, match="keys and verb differ"):
        PEOPLE.dp.histogram("age", bins=[0, 50, 100], epsilon=1, ledger=ledger, **NAMED)
    assert charges(ledger) == 1


def test_the_first_question_of_a_name_is_its_question_also_where_it_failed(ledger, monkeypatch):
    def fail(*_):
        raise ValueError("a secret")

    with monkeypatch.context() as patch:
        patch.setattr(results, "totals", of_rows(fail))
        with pytest.raises(dpf.ReleaseFailed):
            wards(ledger=ledger)
    with pytest.raises(dpf.LedgerError, match="name another release"):
        wards(ledger=ledger, epsilon=2)
    wards(ledger=ledger)
    assert charges(ledger) == 2


def test_a_function_of_the_caller_cannot_be_known_again(ledger):
    with pytest.raises(dpf.InvalidArgument, match="snapshot must be left out where denoise is a function of your own"):
        wards(ledger=ledger, denoise=lambda values, noise: values)
    wards(ledger=ledger, denoise=dpf.denoise.james_stein)
    wards(ledger=ledger, denoise="james-stein")
    assert charges(ledger) == 1


def test_a_snapshot_without_a_label_warns_that_nothing_is_stored(ledger):
    with pytest.warns(UserWarning, match="snapshot= without label= stores no result.*pass a label") as told:
        PEOPLE.dp.count(epsilon=1, snapshot="1", ledger=ledger)
    assert [one.filename for one in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="charged again"):  # raised before the charge
            PEOPLE.dp.count(epsilon=1, snapshot="1", ledger=ledger)
        wards(ledger=ledger)
    assert charges(ledger) == 2


@pytest.mark.parametrize("wrong", [47, b"W47", date(2026, 1, 1), "", "  "], ids=str)
def test_a_version_is_a_word(ledger, wrong):
    with pytest.raises(dpf.InvalidArgument, match="snapshot must"):
        wards(ledger=ledger, snapshot=wrong)
    assert charges(ledger) == 0


@pytest.mark.parametrize("which", [lambda: dpf.Ledger(epsilon=1), dpf.default_ledger], ids=["memory", "default"])
def test_in_memory_nothing_is_stored(which):
    ledger = which()
    with pytest.raises(dpf.LedgerError, match=r"snapshot must be left out with a ledger in memory.*path="):
        wards(ledger=ledger, unit=None)
    assert charges(ledger) == 0


def test_a_preview_may_name_a_version():
    plan = PEOPLE.dp.preview.count(epsilon=1, **NAMED)
    assert plan.cost.epsilon == 1


# Crashes and races


def test_a_crash_before_the_answer_is_stored_is_charged_again(ledger, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sql.SqlStore, "keep", crash)
        with pytest.raises(KeyboardInterrupt):
            wards(ledger=ledger)
    first = wards(ledger=ledger)
    assert charges(ledger) == 2
    assert wards(ledger=ledger).equals(first)
    assert charges(ledger) == 2


def test_an_answer_that_cannot_be_stored_is_not_released(ledger, monkeypatch):
    def full(*_):
        raise dpf.LedgerError("the ledger cannot be written")

    monkeypatch.setattr(sql.SqlStore, "keep", full)
    with pytest.raises(dpf.LedgerError, match="cannot be written"):
        wards(ledger=ledger)
    assert ledger.spent.epsilon == 1


def ask(barrier, path, results, price):
    ledger = dpf.Ledger.open(path)
    barrier.wait()
    try:
        results.put(wards(ledger=ledger, epsilon=price).to_dicts())
    except dpf.LedgerError as error:
        results.put(type(error).__name__)


def asked_at_once(path, prices):
    """Return the results of several processes that make the same named call at the same moment."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(len(prices)), context.Queue()
    children = [context.Process(target=ask, args=(barrier, path, results, price)) for price in prices]
    for child in children:
        child.start()
    found = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join()
    results.close()
    results.join_thread()
    return found


@pytest.mark.slow
def test_processes_that_ask_at_once_get_one_answer(tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=9, path=path)
    found = asked_at_once(path, [1] * 4)
    assert all(rows == found[0] for rows in found)
    assert 1 <= charges(ledger) <= 4
    assert answers(path) == 1
    assert wards(ledger=ledger).to_dicts() == found[0]


def test_threads_that_ask_at_once_get_one_answer(ledger):
    found, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        found.append(wards(ledger=ledger))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.equals(found[0]) for one in found)
    assert 1 <= charges(ledger) <= 8
    assert answers(ledger._store.identity[0]) == 1


def test_whoever_is_second_gets_what_was_stored_meanwhile(ledger, monkeypatch):
    """If another process stores an answer between a charge and its answer, both return it, and both are charged."""
    stored = []
    original = results.totals

    def slow(*arguments):
        if not stored:
            stored.append(None)
            stored[0] = wards(ledger=dpf.Ledger.open(ledger._store.identity[0]))
        return original(*arguments)

    monkeypatch.setattr(results, "totals", of_rows(slow))
    assert wards(ledger=ledger).equals(stored[0])
    assert charges(ledger) == 2


# Changed files


def answers(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("select count(*) from dpframe_answers").fetchone()[0]


@pytest.mark.parametrize(
    "statement",
    [
        "update dpframe_answers set content = cast(replace(content, 'dpframe', 'dpfreme') as blob)",
        "update dpframe_answers set content = x'00'",
        "delete from dpframe_answers",
        "update dpframe_entries set name = null",
        "update dpframe_entries set name = 'x' where entry = 1",
        "update dpframe_entries set body = replace(body, 'W47', 'W48') where entry = 2",
        "insert into dpframe_answers select 1, content from dpframe_answers",
    ],
)
def test_a_changed_answer_is_refused(ledger, statement):
    wards(ledger=ledger)
    with closing(sqlite3.connect(ledger._store.identity[0])) as connection, connection:
        connection.execute(statement)
    with pytest.raises(dpf.LedgerError, match="was changed by something other"):
        ledger.verify()


def test_a_changed_answer_is_not_replayed(ledger):
    wards(ledger=ledger)
    PEOPLE.dp.count(epsilon=1, ledger=ledger)
    with closing(sqlite3.connect(ledger._store.identity[0])) as connection, connection:
        connection.execute("update dpframe_answers set content = x'00'")
    with pytest.raises(dpf.LedgerError, match="is not the one that was stored"):
        wards(ledger=ledger)


def test_an_older_copy_does_not_replay(ledger, tmp_path):
    wards(ledger=ledger)
    path = Path(ledger._store.identity[0])
    shutil.copy(path, tmp_path / "copy")
    wards(ledger=ledger, snapshot="2026-W48")
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(dpf.LedgerError, match="older copy"):
        wards(ledger=ledger)


def test_what_is_stored_is_what_was_released(ledger):
    """The file holds no data except the released numbers."""
    first = wards(ledger=ledger)
    with closing(sqlite3.connect(ledger._store.identity[0])) as connection:
        (content,) = connection.execute("select content from dpframe_answers").fetchone()
    header = json.loads(content.split(b"\n", 1)[0])
    assert sorted(header) == ["columns", "format", "provenance", "rows"]
    assert header["columns"] == dict.fromkeys(first.dp.provenance["columns"])
    assert len(content.split(b"\n", 1)[1]) == 8 * first.height * len(header["columns"])


# Facts of a call


def test_equal_facts_are_written_alike_and_others_are_not():
    assert _plain(1) == _plain(1.0) == _plain(np.int64(1)) == _plain(Fraction(1)) == _plain(Decimal("1.00"))
    assert _plain((1, 2)) == _plain([1, 2]) == _plain(range(1, 3))
    different = [None, True, 1, "1", "None", [1], math.inf, math.nan, date(2026, 1, 1), datetime(2026, 1, 1)]
    different += [timedelta(1), dpf.count(), dpf.count("age"), {"a": 1}, np.arange(2), np.arange(2.0)]
    texts = [json.dumps(_plain(value)) for value in different]
    assert len(set(texts)) == len(texts)
    with pytest.raises(TypeError, match="a function of your own"):
        _plain(lambda: 0)
    with pytest.raises(TypeError, match="a DataFrame"):
        _plain(PEOPLE)
