"""A repeated question reuses its plan, and its answer is always the one that a new process would give."""

from __future__ import annotations

import contextlib
import gc
import weakref
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.release import path

KEYS = ["A", "B", "C"]
PEOPLE = {"g": ["A", "B", "A", "D"], "x": [1.0, 2.5, 3.0, 40.0], "k": [1, 2, 1, 2], "u": [1, 1, 2, 3]}
REPLACE = dpf.PrivacyUnit(neighbors="replace")


@pytest.fixture(autouse=True)
def plans_are_kept(monkeypatch):
    """Start with no plans, as a new process does, and keep plans, which other tests turn off."""
    monkeypatch.setattr(path, "_kept", {})


def made(library, columns):
    """Return a frame of the library."""
    return pl.DataFrame(columns) if library == "polars" else pytest.importorskip("pandas").DataFrame(columns)


@pytest.fixture
def planned(monkeypatch):
    """Return a list to which each question is added when it is planned."""
    asked, plan = [], path.make_plan

    def counted(frame, question, ledger):
        asked.append(question.query)
        return plan(frame, question, ledger)

    monkeypatch.setattr(path, "make_plan", counted)
    return asked


def by(frame, keys=KEYS, column="g"):
    return frame.dp.group_by(column, keys=keys)


CALLS = {  # no two of these ask the same question
    "count": lambda f, led: by(f).count(epsilon=1, ledger=led),
    "another price": lambda f, led: by(f).count(epsilon=0.1, ledger=led),
    "a price that is no decimal": lambda f, led: by(f).count(epsilon=Fraction(0.1), ledger=led),
    "gaussian": lambda f, led: by(f).count(epsilon=1, delta=1e-6, ledger=led),
    "auto": lambda f, led: by(f).count(epsilon=1, delta=1e-6, mechanism="auto", ledger=led),
    "not denoised": lambda f, led: by(f).count(epsilon=1, denoise=None, ledger=led),
    "without noisy ones": lambda f, led: by(f).count(epsilon=1, keep_noisy=False, ledger=led),
    "in order": lambda f, led: by(f).count(epsilon=1, order=True, ledger=led),
    "a graph": lambda f, led: by(f).count(epsilon=1, graph=[("A", "B")], ledger=led),
    "fewer keys": lambda f, led: by(f, KEYS[:2]).count(epsilon=1, ledger=led),
    "another order of keys": lambda f, led: by(f, KEYS[::-1]).count(epsilon=1, ledger=led),
    "whole keys": lambda f, led: by(f, [1, 2], "k").count(epsilon=1, ledger=led),
    "one and zero keys": lambda f, led: by(f, [1, 0], "k").count(epsilon=1, ledger=led),
    "keys with a point": lambda f, led: by(f, [1.0, 2.0], "k").count(epsilon=1, ledger=led),
    "decimal keys": lambda f, led: by(f, [Decimal(1), Decimal(2)], "k").count(epsilon=1, ledger=led),
    "true keys": lambda f, led: by(f, [True, False], "k").count(epsilon=1, ledger=led),
    "zero": lambda f, led: by(f, [0.0, 1.0], "x").count(epsilon=1, ledger=led),
    "zero from below": lambda f, led: by(f, [-0.0, 1.0], "x").count(epsilon=1, ledger=led),
    "sum": lambda f, led: by(f).sum("x", bounds=(0, 10), epsilon=1, ledger=led),
    "wider": lambda f, led: by(f).sum("x", bounds=(0, 20), epsilon=1, ledger=led),
    "names": lambda f, led: by(f).agg(m=dpf.count(), s=dpf.sum("x", bounds=(0, 10)), epsilon=1, ledger=led),
    "mean": lambda f, led: f.dp.mean("x", bounds=(0, 10), epsilon=1, size=10, ledger=led),
    "bins": lambda f, led: f.dp.histogram("x", bins=[0, 10, 20], epsilon=1, ledger=led),
    "other bins": lambda f, led: f.dp.histogram("x", bins=[0, 10, 30], epsilon=1, ledger=led),
    "bins that clip": lambda f, led: f.dp.histogram("x", bins=[0, 10, 20], outside="clip", epsilon=1, ledger=led),
    "subtotals": lambda f, led: by(f).count(rollup=True, epsilon=1, ledger=led),
    "share": lambda f, led: by(f).count(share=0.125, ledger=led),
    "replace": lambda f, led: by(f).count(epsilon=1, ledger=dpf.Ledger(epsilon=9, unit=REPLACE)),
    "units": lambda f, led: by(f).count(max_rows=2, epsilon=1, ledger=dpf.Ledger(epsilon=9, unit="u")),
    "more of units": lambda f, led: by(f).count(max_rows=3, epsilon=1, ledger=dpf.Ledger(epsilon=9, unit="u")),
    "in more groups": lambda f, led: by(f).count(max_groups=2, epsilon=1, ledger=dpf.Ledger(epsilon=9, unit="u")),
    "share of another limit": lambda f, led: by(f).count(share=0.125, ledger=dpf.Ledger(epsilon=5, delta=1e-3)),
    "gdp": lambda f, led: by(f).count(epsilon=1, ledger=dpf.Ledger(epsilon=9, delta=1e-6, accounting="rdp")),
}  # fmt: skip
OF_NOISE = ("sha256", "rows", "measures", "release", "checks")


def facts(found):
    """Return all of a result that is not noise: its record, names, dtypes and labels."""
    record = {name: fact for name, fact in found.dp.provenance.items() if name not in OF_NOISE}
    record["checks"] = [(row["of"], row["what"]) for row in found.dp.provenance.get("checks", ())]
    said = {name: set(measure) for name, measure in found.dp.provenance["measures"].items()}
    labels = [repr(found[name].to_list()) for name in found.columns if name not in record["columns"]]
    return record, said, list(found.columns), [str(dtype) for dtype in found.dtypes], labels


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_process_that_was_asked_much_answers_as_a_new_one(library, planned):
    frame, ledger = made(library, PEOPLE), dpf.Ledger(epsilon=1000, delta=1e-3)
    calls = {name: call for name, call in CALLS.items() if library == "polars" or "keys" in name or "zero" in name}
    asked = [{name: facts(call(frame, ledger)) for name, call in calls.items()} for _ in range(2)]
    assert len(planned) == len(calls) == len(path._kept)  # each is planned once, and no two share a plan
    for name, call in calls.items():
        path._kept.clear()
        assert facts(call(frame, ledger)) == asked[0][name] == asked[1][name]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_another_frame_is_another_question_by_its_dtypes_alone(library, planned):
    ledger = dpf.Ledger(epsilon=100)
    frames = [
        {"g": ["A", "B"], "x": [1, 2]},
        {"g": ["A", "B"], "x": [1.0, 2.0]},
        {"g": ["A", "B"], "x": [1, 2], "y": [1, 2]},
        {"x": [1, 2], "g": ["A", "B"]},
    ]
    for columns in frames * 2:
        by(made(library, columns)).sum("x", bounds=(0, 1), epsilon=1, ledger=ledger)
    assert len(planned) == 4
    other = {"g": ["Z"] * 50, "x": list(range(50))}  # other rows, and another number of them
    by(made(library, other)).sum("x", bounds=(0, 1), epsilon=1, ledger=ledger)
    assert len(planned) == 4


def test_levels_of_a_pandas_categorical_are_in_no_question(planned):
    pandas = pytest.importorskip("pandas")
    for levels in (["A", "B"], ["A", "secret"]):
        frame = pandas.DataFrame({"g": pandas.Categorical(["A"], categories=levels)})
        by(frame).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert len(planned) == 1
    assert "secret" not in repr(path._kept)


def test_the_numbers_are_those_of_the_rows_and_the_noise_is_new():
    ledger = dpf.Ledger(epsilon=1e6)
    for rows in (10, 1_000, 50_000):
        frame = pl.DataFrame({"g": ["A"] * rows})
        found = [by(frame).count(epsilon=1, denoise=None, ledger=ledger)["count"] for _ in range(8)]
        assert all(abs(counts[0] - rows) < 60 for counts in found)  # a false alarm has the probability e^-57
        assert len({tuple(counts) for counts in found}) > 1  # at most (1/4)^21


def test_every_call_is_charged_and_the_last_is_refused():
    ledger, frame = dpf.Ledger(epsilon=1), pl.DataFrame(PEOPLE)
    for _ in range(3):
        by(frame).count(epsilon=Fraction(1, 3), label="a", ledger=ledger)
    assert ledger.spent.epsilon == 1.0
    with pytest.raises(dpf.BudgetExceeded):
        by(frame).count(epsilon=Fraction(1, 3), ledger=ledger)
    assert ledger.to_frame().height == 3


def test_labels_and_records_are_those_of_the_call():
    ledger, frame = dpf.Ledger(epsilon=9), pl.DataFrame(PEOPLE)
    found = [by(frame).count(epsilon=1, label=label, ledger=ledger) for label in (None, "a", "b", None)]
    assert [result.dp.provenance["label"] for result in found] == [None, "a", "b", None]
    assert [*ledger.to_frame()["label"]] == [None, "a", "b", None]
    promises = [entry.promises for _, entry in ledger._store.entries()]
    assert promises[0] == promises[3]
    assert len({*promises}) == 3


def test_a_mapping_that_the_caller_changes_later_changes_no_plan(planned):
    ledger, frame = dpf.Ledger(epsilon=99, checks=False), pl.DataFrame(PEOPLE)
    weights = {"n": 3, "s": 1}
    ask = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 10))}
    first = by(frame).agg(ask, weights=weights, epsilon=1, ledger=ledger).dp.provenance["statistics"]
    weights["n"] = 1
    second = by(frame).agg(ask, weights=weights, epsilon=1, ledger=ledger).dp.provenance["statistics"]
    assert [part["share"] for part in first] == [0.75, 0.25]
    assert [part["share"] for part in second] == [0.5, 0.5]
    by(frame).agg(ask, weights={"n": 3, "s": 1}, epsilon=1, ledger=ledger)
    assert len(planned) == 2


def test_the_words_of_a_call_are_in_no_plan_that_is_kept():
    ledger, frame = dpf.Ledger(epsilon=9), pl.DataFrame(PEOPLE)
    by(frame).count(epsilon=1, label="of the first caller", ledger=ledger)
    ((key, ready),) = path._kept.items()
    _ = ready.promise
    assert "first caller" not in repr((key, ready, ready.plan.__dict__, ready.record))


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_whoever_changes_a_result_changes_no_later_one(library):
    ledger = dpf.Ledger(epsilon=100)
    frame = made(library, PEOPLE)
    for keys, column in ((KEYS, "g"), ([1, 2], "k"), ([1.0, 2.5], "x")):
        for _ in range(2):
            found = by(frame, keys, column).count(epsilon=1, ledger=ledger)
            assert found[column].to_list() == keys
            assert found.dp.provenance["altered"] is False
            found.dp.provenance["cells"].clear()
            if library == "polars":
                found[0, column] = keys[1]
                found[column][0] = keys[1]
            else:
                found.loc[0, column] = keys[1]
                with contextlib.suppress(ValueError):  # newer versions return a read-only array
                    found[column].to_numpy(copy=False)[:] = keys[1]
        assert by(frame, keys, column).count(epsilon=1, ledger=ledger)[column].to_list() == keys


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_second_release_leaves_the_record_of_the_first_as_it_is(library):
    """Both share what is prepared once, but not the facts of a single release."""
    frame = pl.DataFrame(PEOPLE) if library == "polars" else pytest.importorskip("pandas").DataFrame(PEOPLE)
    ledger = dpf.Ledger(epsilon=9)

    def asked():
        return frame.dp.mean("x", bounds=(0, 50), epsilon=1, ledger=ledger)

    first = asked()
    before = first.dp.provenance
    asked()
    assert first.dp.provenance == before


def test_no_frame_is_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PEOPLE)
    gone = weakref.ref(frame)
    by(frame).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert len(path._kept) == 1
    assert all(ready.plan.call is None for ready in path._kept.values())
    del frame
    gc.collect()
    assert gone() is None


def test_233_the_engine_must_be_quiet_each_time(monkeypatch):
    ledger, frame = dpf.Ledger(epsilon=9), pl.DataFrame(PEOPLE)
    by(frame).count(epsilon=1, ledger=ledger)
    for name, who in (("POLARS_VERBOSE", "Polars"), ("NUMBA_DEBUG_CACHE", "Numba"), ("NUMBA_DUMP_IR", "Numba")):
        with monkeypatch.context() as during:
            during.setenv(name, "1")
            with pytest.raises(dpf.InvalidArgument, match=f"{name} must be unset .* with it {who} tells how many rows"):
                by(frame).count(epsilon=1, ledger=ledger)
            during.setenv(name, "0")
            by(frame).count(epsilon=1, ledger=ledger)
    assert ledger.to_frame().height == 4


def test_what_is_not_plain_is_planned_each_time(planned):
    dataset = pytest.importorskip("pyarrow.dataset")
    ledger, frame = dpf.Ledger(epsilon=99, delta=1e-3, keys_delta=1e-6), pl.DataFrame(PEOPLE)

    def calibrated(sensitivity, loss):
        return dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid)

    class Ward(str):
        pass

    calls = [
        lambda: by(frame).count(epsilon=1, mechanism=calibrated, ledger=ledger),
        lambda: by(frame).count(epsilon=1, denoise=lambda values, noise: values, ledger=ledger),
        lambda: by(frame, [Ward("A"), Ward("B")]).count(epsilon=1, ledger=ledger),
        lambda: by(frame).count(epsilon=np.float64(1.0), ledger=ledger),
        lambda: by(frame).agg(n=type("Counted", (type(dpf.count()),), {})(), epsilon=1, ledger=ledger),
        lambda: by(frame, dpf.discover(delta=1e-7), "g").count(epsilon=1, ledger=ledger),
        lambda: dpf.of(dataset.dataset(frame.to_arrow())).group_by("g", keys=KEYS).count(epsilon=1, ledger=ledger),
        lambda: by(frame, range(2_000), "k").count(epsilon=1, ledger=ledger),
    ]
    for number, call in enumerate(calls):
        before = len(planned)
        call()
        call()
        assert (number, len(planned)) == (number, before + 2)
    assert not path._kept


def test_a_lazy_frame_is_known_by_its_schema_and_no_frame_in_memory(planned):
    ledger, lazy = dpf.Ledger(epsilon=99), pl.LazyFrame(PEOPLE)
    for frame in (lazy, pl.LazyFrame(PEOPLE), lazy.filter(pl.col("x") > 2), pl.DataFrame(PEOPLE)):
        by(frame).count(epsilon=1, ledger=ledger)
    assert len(planned) == 2
    by(lazy.with_columns(pl.col("g").cast(pl.Categorical))).count(epsilon=1, ledger=ledger)
    assert len(planned) == 3
    with pytest.raises(dpf.UnknownColumn):
        by(lazy.select("x")).count(epsilon=1, ledger=ledger)


def test_so_many_plans_are_kept_and_not_more(monkeypatch):
    monkeypatch.setattr(path, "MOST", 5)
    ledger, frame = dpf.Ledger(epsilon=1000), pl.DataFrame(PEOPLE)
    for upper in range(1, 13):
        by(frame).sum("x", bounds=(0, upper), epsilon=1, ledger=ledger)
        assert 1 <= len(path._kept) <= 5


def test_what_was_refused_is_refused_again():
    ledger, frame = dpf.Ledger(epsilon=9), pl.DataFrame(PEOPLE)
    for _ in range(2):
        with pytest.raises(dpf.UnknownColumn):
            by(frame, KEYS, "ward").count(epsilon=1, ledger=ledger)
        with pytest.raises(dpf.MissingArgument):
            by(frame).count(ledger=ledger)
    by(frame).count(epsilon=1, ledger=ledger)
    with pytest.raises(dpf.UnknownColumn):
        by(frame.rename({"g": "h"})).count(epsilon=1, ledger=ledger)


class Crowded(dict):
    """Plans that another thread seems to clear after each lookup."""

    def __contains__(self, key):
        return super().__contains__(key) and (self.clear() or True)

    def get(self, key, default=None):
        found = super().get(key, default)
        self.clear()
        return found


def test_176_a_thread_that_clears_plans_fails_no_call_of_another(monkeypatch):
    kept = Crowded()
    monkeypatch.setattr(path, "_kept", kept)
    frame, ledger = pl.DataFrame(PEOPLE), dpf.Ledger(epsilon=9)
    for _ in range(3):
        by(frame).count(epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 3.0
