"""Calls that must fail cost nothing, sizes are checked before allocation, and no error or pickle carries rows."""

from __future__ import annotations

import copy
import io
import itertools
import json
import logging
import pickle
import re
import subprocess
import sys
import tempfile
import time
import traceback
import types
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines import schema
from dpframe.errors import ReleaseFailed
from dpframe.frames import register
from dpframe.release import path, results

SECRET = 123456789
BERLIN = ZoneInfo("Europe/Berlin")


def refused(ask, error=dpf.DpframeError):
    """Return the error of a call, after checking that nothing was charged."""
    ledger = dpf.Ledger(epsilon=10, delta=1e-6)
    with pytest.raises(error) as caught:
        ask(ledger)
    assert ledger.spent.epsilon == 0
    assert ledger.to_frame().height == 0
    return caught.value


# Attack 97: a call is charged, although it is certain to fail


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("keys", [[True, False], [True]])
def test_97_bool_keys_on_a_decimal_column_cost_nothing(lazy, keys):
    frame = pl.DataFrame({"k": [Decimal("1.0"), Decimal("2.0")]})
    frame = frame.lazy() if lazy else frame
    try:
        ledger = dpf.Ledger(epsilon=1)
        frame.dp.group_by("k", keys=keys).count(epsilon=1, ledger=ledger)
    except dpf.DpframeError:
        assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("library", ["polars", "lazy"])
def test_97_keys_in_two_zones_cost_nothing_if_no_column_can_hold_them(library):
    frame = pl.DataFrame({"t": [datetime(2024, 1, 1, tzinfo=UTC)]})
    frame = frame.lazy() if library == "lazy" else frame
    keys = [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=BERLIN)]
    try:
        ledger = dpf.Ledger(epsilon=1)
        frame.dp.group_by("t", keys=keys).count(epsilon=1, ledger=ledger)
    except dpf.DpframeError:
        assert ledger.spent.epsilon == 0


def test_97_integer_keys_that_nobody_can_print_are_refused(engine):
    frame = engine({"k": [1, 2]})
    for huge in (10**5000, -(10**5000)):
        refused(lambda ledger, huge=huge: frame.dp.mode("k", categories=[1, huge], epsilon=1, ledger=ledger))
        refused(lambda ledger, huge=huge: frame.dp.group_by("k", keys=[1, huge]).count(epsilon=1, ledger=ledger))


def test_97_a_choice_among_huge_integers_never_fails_after_the_charge(engine):
    frame = engine({"k": [1, 2]})
    for _ in range(8):
        ledger = dpf.Ledger(epsilon=1)
        try:
            frame.dp.mode("k", categories=[1, 10**400], epsilon=0.01, ledger=ledger)
        except dpf.InvalidArgument:
            assert ledger.spent.epsilon == 0


def test_97_a_choice_among_integers_of_any_dtype_is_hashed():
    """Whether the call fails must not depend on the option that is chosen."""
    frame = pl.DataFrame({"k": pl.Series([1, 2**100], dtype=pl.Int128)})
    options = [1, 2**70, 2**100]
    for _ in range(8):
        try:
            ledger = dpf.Ledger(epsilon=1)
            found = frame.dp.mode("k", categories=options, epsilon=0.01, ledger=ledger)
        except dpf.InvalidArgument:  # older versions of Polars have no arrays of Int128
            assert ledger.spent.epsilon == 0
        else:
            assert found["k"][0] in options


def test_97_an_engine_that_fails_on_no_rows_is_refused_with_its_words(engine, monkeypatch):
    def failing(frame, *_):
        assert len(frame) == 0
        raise RuntimeError("no such thing")

    frame = engine({"x": [SECRET]})
    monkeypatch.setattr(results, "totals", failing)
    error = refused(lambda ledger: frame.dp.count("x", epsilon=1, ledger=ledger), dpf.WrongDtype)
    assert "RuntimeError: no such thing" in str(error)
    assert "Nothing was charged" in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_97_a_panic_of_the_engine_is_refused_too(engine, monkeypatch):
    class Panic(BaseException):
        pass

    def failing(*_):
        raise Panic("not implemented")

    monkeypatch.setattr(results, "totals", failing)
    refused(lambda ledger: engine({"x": [1]}).dp.count("x", epsilon=1, ledger=ledger), dpf.WrongDtype)


def test_97_label_columns_that_cannot_be_built_are_refused(engine, monkeypatch):
    def failing(*_):
        raise OverflowError("too large")

    monkeypatch.setattr(path.build, "column_of", failing)
    ask = engine({"k": [1, 2]}).dp.group_by("k", keys=[1, 2]).count
    error = refused(lambda ledger: ask(epsilon=1, ledger=ledger), dpf.InvalidArgument)
    assert "those of k are not (OverflowError: too large)" in str(error)


class Wordy(dpf.Laplace):
    @property
    def details(self):
        return {"maker": object()}


def test_97_a_provenance_that_is_not_json_is_refused(engine):
    def wordy(sensitivity, loss):
        return Wordy.calibrate(sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid)

    ask = engine({"x": [1]}).dp.count
    error = refused(lambda ledger: ask(epsilon=1, mechanism=wordy, ledger=ledger), dpf.InvalidArgument)
    assert "plain JSON" in str(error)


@pytest.mark.parametrize("raised", [TypeError, AttributeError, KeyError, AssertionError, RecursionError, NameError])
@pytest.mark.parametrize("step", ["totals", "labels", "record"])
def test_161_an_unforeseen_failure_without_rows_is_called_a_fault_of_dpframe(engine, monkeypatch, step, raised):
    def failing(*_, **__):
        raise raised("it went wrong")

    # make the fault appear to come from a function of dpframe
    failing = types.FunctionType(failing.__code__, {"__name__": "dpframe.made_up"}, closure=failing.__closure__)
    place = {"totals": "exact_totals", "labels": "build.column_of", "record": "provenance.record"}[step]
    monkeypatch.setattr(f"dpframe.release.path.{place}", failing)
    frame = engine({"k": [1, 2]})
    error = refused(lambda ledger: frame.dp.group_by("k", keys=[1, 2]).count(epsilon=1, ledger=ledger))
    if raised is TypeError and step != "record":  # looks like keys whose type differs from their column
        assert isinstance(error, (dpf.WrongDtype, dpf.InvalidArgument))
        return
    assert type(error) is dpf.DpframeError
    assert "The fault is in dpframe, not in the call. Nothing was charged." in str(error)
    assert "it went wrong" in str(error)
    assert "release/path.py" in error.__notes__[0]


def test_161_a_failure_of_the_callers_code_is_not_called_a_fault_of_dpframe(engine, monkeypatch):
    def failing(*_):
        raise AttributeError("of an engine of one's own")

    monkeypatch.setattr(results, "totals", failing)
    refused(lambda ledger: engine({"x": [1]}).dp.count("x", epsilon=1, ledger=ledger), dpf.WrongDtype)


AT_ONCE = """
import sys, threading, time
import polars as pl
lazy = next(sys.modules[name] for name in ("polars._dependencies", "polars.dependencies") if name in sys.modules)
real = lazy.import_module
lazy.import_module = lambda name: (real(name), time.sleep(0.15 if threading.current_thread().name == "1" else 0.3))[0]
import dpframe as dpf
frame, start, wrong = pl.DataFrame({"ward": ["A", "B"]}), threading.Barrier(6), []

def ask():
    start.wait()
    try:
        frame.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    except BaseException as error:
        wrong.append(error)

threads = [threading.Thread(target=ask, name=str(number)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong)
"""


@pytest.mark.long
def test_162_threads_that_ask_first_at_once_are_all_answered():
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


def test_162_a_wait_for_a_module_that_ends_skips_no_finder(monkeypatch):
    """Another thread may be iterating over `sys.meta_path`, so the finder replaces the list and never changes it."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = sys.meta_path
    finder = register._Finder("a_module_to_come", None)
    sys.meta_path = [finder, *before]
    list_of_another = sys.meta_path
    module = types.SimpleNamespace(__spec__=None, DataFrame=type("DataFrame", (), {}), __name__="a_module_to_come")
    loader = types.SimpleNamespace(exec_module=lambda module: None)
    monkeypatch.setattr(register, "_give_all", lambda *_: None)
    register._ThenRegister(loader, finder).exec_module(module)
    assert list_of_another == [finder, *before]
    assert sys.meta_path == before


def too_short(values, _):
    return values[:-1]


def raising(values, _):
    raise ZeroDivisionError(f"of {values[0]:g}")


def words(values, _):
    return "many"


@pytest.mark.parametrize("denoiser", [too_short, raising, words])
@pytest.mark.parametrize("listed", [False, True])
def test_97_a_denoiser_that_cannot_work_is_refused_before_the_charge(engine, denoiser, listed):
    frame = engine({"x": [0.5, 1.5]})
    wanted = ["nonnegative", denoiser] if listed else denoiser
    error = refused(
        lambda ledger: frame.dp.histogram("x", bins=[0, 1, 2], epsilon=1, denoise=wanted, ledger=ledger),
        dpf.InvalidArgument,
    )
    fault = {too_short: "returns values of another shape", words: "raises ValueError"}.get(denoiser, "raises Zero")
    assert re.match(rf"denoise must .* it {fault}.* Nothing was charged\.", str(error))


def test_97_a_denoiser_that_fails_later_fails_in_words_and_shows_only_its_own_code(engine):
    called = []

    def later(values, _):
        called.append(values)
        if len(called) == 1:  # the trial before the charge
            return values
        raise ZeroDivisionError("later")

    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(ReleaseFailed, match="raised ZeroDivisionError on the noisy values") as caught:
        engine({"x": [0.5]}).dp.histogram("x", bins=[0, 1, 2], epsilon=1, denoise=later, ledger=ledger)
    assert ledger.spent.epsilon == 1
    cause = caught.value.__cause__
    assert [step.name for step in traceback.extract_tb(cause.__traceback__)] == ["later"]


def test_97_a_denoiser_that_returns_another_shape_later_says_that_the_charge_stands(engine):
    called = []

    def later(values, _):
        called.append(values)
        return values[len(called) - 1 :]  # all values in the trial before the charge

    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(ReleaseFailed, match=r"of the shape \(2,\) .*, and later returned \(1,\) .*The charge stands\."):
        engine({"x": [0.5]}).dp.histogram("x", bins=[0, 1, 2], epsilon=1, denoise=later, ledger=ledger)
    assert ledger.spent.epsilon == 1


@pytest.mark.parametrize(
    "steps", [lambda f: f, lambda f: [f, "auto"], lambda f: [f, "haar"]], ids=["alone", "auto", "haar"]
)
def test_97_a_denoiser_that_returns_nan_later_says_that_the_charge_stands(engine, steps):
    """A logarithm of noisy counts does so when one is negative: the call must fail and release no NaN."""
    called = []

    def later(values, _):
        called.append(values)
        return values if len(called) == 1 else values * float("nan")

    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(ReleaseFailed, match=r"finite numbers, and later returned NaN .*The charge stands\."):
        engine({"x": [0.5]}).dp.histogram("x", bins=[0, 1, 2], epsilon=1, denoise=steps(later), ledger=ledger)
    assert ledger.spent.epsilon == 1


def test_what_a_partial_has_fixed_is_not_told_again(engine):
    """dpframe does not overwrite the graph and the assumptions on values that the caller fixed with `partial`."""
    told = {}

    def denoiser(values, noise, *, nonnegative=None, order=None, graph="none"):
        told.update(nonnegative=nonnegative, order=order, graph=graph)
        return values

    asked = {"bins": [0, 1, 2], "epsilon": 1.0}
    frame = engine({"x": [0.5]})
    for fixed in ({"graph": "mine"}, {"nonnegative": False}, {"order": False}, {}):
        frame.dp.histogram("x", denoise=partial(denoiser, **fixed), ledger=dpf.Ledger(epsilon=1), **asked)
        assert told == {"nonnegative": True, "order": (0,), "graph": "none"} | fixed


def test_97_plans_that_are_certain_to_fail_cost_nothing_together(engine):
    frame = engine({"x": [0.5, 1.5]})
    plans = {
        "good": frame.dp.preview.count(),
        "bad": frame.dp.preview.histogram("x", bins=[0, 1, 2], denoise=too_short),
    }
    refused(lambda ledger: dpf.release_together(plans, epsilon=1, ledger=ledger), dpf.InvalidArgument)


def test_97_the_rehearsal_runs_no_code_of_a_lazy_frame():
    ran = []

    def watch(frame):
        ran.append(frame.height)
        return frame

    source = pl.DataFrame({"x": [0.5, 1.5], "who": [1, 2]})
    lazy = source.lazy().map_batches(watch, schema=source.schema)
    refused(lambda ledger: lazy.dp.histogram("x", bins=[0, 1, 2], denoise=too_short, epsilon=1, ledger=ledger))
    refused(lambda ledger: lazy.dp.group_by("x", keys=[0.5]).count(epsilon=11, ledger=ledger), dpf.BudgetExceeded)
    assert ran == []


def test_97_the_rehearsal_sees_neither_rows_nor_levels(engine):
    frame = engine({"x": [0.5, SECRET], "who": ["Ann", "Bob"], "left": [1, 2]})
    found = schema.emptied(frame, ["x", "who"])
    assert list(found.columns) == ["x", "who"]
    assert len(found) == 0
    if engine.is_pandas:
        levels = schema.emptied(frame.astype({"who": "category"}), ["who"])
        assert list(levels["who"].cat.categories) == []
        categories = frame.astype({"who": "category"})
        assert schema.dtypes_of_all(categories) == schema.dtypes_of_all(categories.iloc[:0])


def test_97_the_rehearsal_has_no_index_of_the_rows(engine):
    """pandas cannot align a MultiIndex with the new index of an empty Categorical, so no index is kept."""
    if not engine.is_pandas:
        pytest.skip("only pandas has an index")
    frame = engine({"s": ["A", "B"], "ward": ["A", "B"], "site": ["x", "y"], "who": [1, 2]})
    frame = frame.astype({"ward": "category"}).set_index(["site", "who"])
    assert schema.emptied(frame, ["s", "ward"]).index.names == [None]
    wards = frame.dp.group_by("s", "ward", keys={"s": ["A"], "ward": ["A"]})
    assert len(wards.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))) == 1


def test_97_what_was_answered_once_is_not_tried_again_but_true_is_not_1(engine, monkeypatch):
    tried, exact_totals = [], path.exact_totals
    monkeypatch.setattr(path, "_kept", {})
    monkeypatch.setattr(path, "exact_totals", lambda plan, empty: tried.append(plan) or exact_totals(plan, empty))
    frame, ledger = engine({"k": [1.0, 0.0], "x": [1, 2]}), dpf.Ledger(epsilon=100)
    for keys in ([1, 0], [1, 0], [True, False], [1.0, 0.0], [Decimal(1), Decimal(0)]):
        frame.dp.group_by("k", keys=keys).count(epsilon=1, ledger=ledger)
    assert len(tried) == 4
    frame.dp.group_by("k", keys=[1, 0]).count("x", epsilon=1, ledger=ledger)
    assert len(tried) == 5


def test_97_the_noise_is_drawn_once_and_the_rehearsal_is_not_shown(engine, monkeypatch):
    drawn = []
    real = dpf.DiscreteLaplace.add_noise if hasattr(dpf, "DiscreteLaplace") else dpf.Laplace.add_noise
    owner = dpf.DiscreteLaplace if hasattr(dpf, "DiscreteLaplace") else dpf.Laplace

    def counting(self, totals):
        drawn.append(totals.size)
        return real(self, totals)

    monkeypatch.setattr(owner, "add_noise", counting)
    frame = engine({"x": [0.5] * 7000})
    found = frame.dp.histogram("x", bins=range(4), epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert drawn == [3]
    assert found["count_noisy"].to_list()[0] > 6000
    assert len(found) == 3


def test_97_a_frame_of_another_library_is_rehearsed():
    pyarrow = pytest.importorskip("pyarrow")
    table = dpf.of(pyarrow.table({"k": ["A", "B"], "x": [1.0, 2.0]}))
    found = table.group_by("k", keys=["A", "B"]).agg(
        n=dpf.count(), m=dpf.mean("x", bounds=(0, 1)), epsilon=1, ledger=dpf.Ledger(epsilon=1)
    )
    assert found["k"].to_list() == ["A", "B"]
    refused(lambda ledger: table.histogram("x", bins=[0, 1, 2], denoise=too_short, epsilon=1, ledger=ledger))


def test_97_dtypes_that_polars_does_not_know_are_refused_in_words():
    pyarrow = pytest.importorskip("pyarrow")
    strange = pyarrow.table({"k": pyarrow.array([(1, 1, 1)], type=pyarrow.month_day_nano_interval())})
    refused(lambda ledger: dpf.of(strange).count("k", epsilon=1, ledger=ledger), dpf.WrongDtype)
    assert dpf.of(strange).count(epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))["count"].to_list() == [1]


# Attack 114: no limit on the number of cells


LARGE = {
    "keys": lambda dp, o: dp.group_by("k", keys=range(10**8)).count(**o),
    "endless": lambda dp, o: dp.group_by("k", keys=range(10**30)).count(**o),
    "product": lambda dp, o: dp.group_by("k", "x", keys={"k": range(10**4), "x": range(10**4)}).count(**o),
    "frame": lambda dp, o: dp.group_by("k", keys=pl.select(k=pl.int_range(10**7 + 1))).count(**o),
    "lazy keys": lambda dp, o: dp.group_by("k", keys=pl.select(k=pl.int_range(10**7 + 1)).lazy()).count(**o),
    "bins": lambda dp, o: dp.histogram("x", bins=2**30, range=(0, 1), **o),
    "edges": lambda dp, o: dp.histogram("x", bins=range(10**9), **o),
    "grid": lambda dp, o: dp.histogram(["k", "x"], bins=10**4, range=[(0, 1), (0, 1)], **o),
    "keys by bins": lambda dp, o: dp.group_by("k", keys=range(5_000)).histogram("x", bins=5_000, range=(0, 1), **o),
    "categories": lambda dp, o: dp.histogram("k", categories=range(10**9), **o),
    "choice": lambda dp, o: dp.mode("k", categories=range(10**9), **o),
    "graph": lambda dp, o: dp.group_by("k", keys=[1, 2]).count(graph=[(1, 2)] * (10**7 + 1), **o),
    "preview": lambda dp, o: dp.preview.group_by("k", keys=range(10**8)).count(epsilon=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("ask", LARGE.values(), ids=LARGE)
def test_114_too_many_cells_are_refused_before_they_are_made(engine, ask):
    frame = engine({"k": [1, 2], "x": [0.5, 1.5]})
    frame.dp.preview.count(epsilon=1)  # import all modules before the timing
    began = time.process_time()  # CPU time, so other processes do not count
    error = refused(lambda ledger: ask(frame.dp, {"epsilon": 1, "ledger": ledger}), dpf.InvalidArgument)
    assert time.process_time() - began < 2
    assert "at most max_cells=10_000_000" in str(error)


@pytest.mark.slow
def test_114_edges_without_a_length_end_somewhere(engine):
    frame = engine({"x": [0.5]})
    error = refused(lambda ledger: frame.dp.histogram("x", bins=itertools.count(), epsilon=1, ledger=ledger))
    assert "must have a length" in str(error)


def test_114_max_cells_allows_and_refuses_by_name(engine):
    dp, ledger = engine({"k": [1, 2], "x": [0.5, 1.5]}).dp, dpf.Ledger(epsilon=10)
    assert len(dp.group_by("k", keys=range(50)).count(epsilon=1, ledger=ledger, max_cells=50)) == 50
    assert len(dp.histogram("x", bins=50, range=(0, 1), epsilon=1, ledger=ledger, max_cells=50)) == 50
    for ask in (
        lambda paying: dp.group_by("k", keys=range(50)).count(epsilon=1, max_cells=49, ledger=paying),
        lambda paying: dp.group_by("k", keys=range(50)).agg(n=dpf.count(), epsilon=1, max_cells=49, ledger=paying),
        lambda paying: dp.histogram("x", bins=50, range=(0, 1), epsilon=1, max_cells=49, ledger=paying),
        lambda paying: dp.mode("k", categories=range(50), epsilon=1, max_cells=49, ledger=paying),
        lambda paying: dp.group_by("k", keys=[1, 2]).count(graph=[(1, 2)] * 3, epsilon=1, max_cells=2, ledger=paying),
    ):
        refused(ask, dpf.InvalidArgument)


def test_114_more_are_made_once_they_are_meant(monkeypatch):
    from dpframe.queries import limits

    monkeypatch.setattr(limits, "MOST_CELLS", 10)
    asker = pl.DataFrame({"k": [1, 2]}).dp.group_by("k", keys=range(20))
    assert len(asker.count(epsilon=1, ledger=dpf.Ledger(epsilon=1), max_cells=20)) == 20
    refused(lambda ledger: asker.count(epsilon=1, ledger=ledger, max_cells=19), dpf.InvalidArgument)
    unmade = pl.DataFrame({"k": [1]}).dp.group_by("k", keys=[1] * 20)
    with pytest.raises(dpf.InvalidArgument, match="occurs twice"):
        unmade.count(epsilon=1, max_cells=20)


def test_114_the_levels_of_a_dtype_are_counted_as_well():
    levels = pl.Enum([str(level) for level in range(40)])
    frame = pl.DataFrame({"a": ["1"], "b": ["2"]}, schema={"a": levels, "b": levels})
    refused(
        lambda ledger: frame.dp.group_by("a", "b").count(epsilon=1, ledger=ledger, max_cells=1_000),
        dpf.InvalidArgument,
    )


def test_114_max_cells_does_not_name_another_question(tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "people.ledger")
    frame = pl.DataFrame({"k": [1, 2]})
    ask = frame.dp.group_by("k", keys=[1, 2]).count
    first = ask(epsilon=1, ledger=ledger, label="a", snapshot="1")
    again = ask(epsilon=1, ledger=ledger, label="a", snapshot="1", max_cells=2)
    assert again.equals(first)


# Attack 107: a pickled plan contains its frame


def plans_of(frame):
    ledger = dpf.Ledger(epsilon=1)
    plan = frame.dp.preview.count("x", epsilon=1, ledger=ledger, denoise=lambda values, noise: values)
    return {
        "plan": plan,
        "table": frame.dp.preview.count("x", epsilon=[0.1, 1]),
        "joint": dpf.plan_together({"one": plan}, epsilon=1, ledger=ledger),
    }


def frames_in(value):
    plans = getattr(value, "plans", (value,))
    return [plan.call and plan.call.frame for plan in (plans.values() if isinstance(plans, dict) else plans)]


@pytest.mark.parametrize("kind", ["plan", "table", "joint"])
def test_107_no_copy_of_a_plan_carries_rows(engine, kind):
    plan = plans_of(engine({"x": [SECRET], "who": ["Ann Secret"]}))[kind]
    written = pickle.dumps(plan)
    assert b"Ann Secret" not in written
    assert SECRET.to_bytes(8, "little") not in written
    for other in (pickle.loads(written), copy.deepcopy(plan)):
        assert set(frames_in(other)) == {None}
        assert repr(other) == repr(plan)
        assert other == plan
    if kind == "plan":
        assert copy.copy(plan).call is None
    assert all(frame is not None for frame in frames_in(plan))


def test_107_a_plan_without_its_frame_is_refused_with_the_way_out(engine):
    plans = plans_of(engine({"x": [1.0]}))
    for kind in ("plan", "table"):
        lost = pickle.loads(pickle.dumps(plans[kind]))
        error = refused(lambda ledger, lost=lost: dpf.release_together({"a": lost}, epsilon=1, ledger=ledger))
        assert "Preview it again" in str(error)


# Attack 73: tracebacks show local variables


def calls():
    def exceeded(frame, ledger):
        frame.dp.histogram("x", bins=[0, 1], epsilon=100, ledger=ledger)

    def misspelt(frame, ledger):
        frame.dp.group_by("who", keys=["Ann"]).sum("y", bounds=(0, 1), epsilon=1, ledger=ledger)

    def unmeant(frame, ledger):
        frame.dp.group_by("who", keys=[1.5, "Ann"]).count(epsilon=1, ledger=ledger)

    def doubled(frame, ledger):
        frame.dp.group_by("who", "who", keys=["Ann"])

    def together(frame, ledger):
        dpf.release_together({"n": frame.dp.preview.count("x")}, epsilon=100, ledger=ledger)

    def previewed(frame, ledger):
        frame.dp.preview.count("y", epsilon=1, ledger=ledger)

    return [exceeded, misspelt, unmeant, doubled, together, previewed]


def told(error):
    """Return all that error reporters print: each traceback of the chain, with its local variables."""
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def innermost(error, call):
    """Return the error as the caller sees it: without the frames of this test, whose locals hold the rows."""
    steps = error.__traceback__
    while steps.tb_frame.f_code.co_name != call:
        steps = steps.tb_next
    return error.with_traceback(steps.tb_next)


@pytest.mark.parametrize("call", calls(), ids=lambda call: call.__name__)
def test_73_a_refusal_shows_no_rows_in_the_locals_of_its_traceback(engine, call):
    frame, ledger = engine({"x": [SECRET], "who": ["Ann Secret"]}), dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.DpframeError) as caught:
        call(frame, ledger)
    report = told(innermost(caught.value, call.__name__))
    assert str(SECRET) not in report
    assert "Ann Secret" not in report
    for error in (caught.value, caught.value.__context__, caught.value.__cause__):
        for step, _ in traceback.walk_tb(error and error.__traceback__):
            assert not any(value is frame for value in step.f_locals.values())


def test_73_a_refusal_that_is_logged_shows_no_rows(engine):
    frame, ledger = engine({"x": [SECRET]}), dpf.Ledger(epsilon=1)
    stream = io.StringIO()
    logger = logging.getLogger("a program")
    logger.addHandler(handler := logging.StreamHandler(stream))
    try:
        frame.dp.count("x", epsilon=100, ledger=ledger)
    except dpf.BudgetExceeded:
        logger.exception("refused")
    finally:
        logger.removeHandler(handler)
    assert "BudgetExceeded" in stream.getvalue()
    assert str(SECRET) not in stream.getvalue()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, ValueError])
def test_73_an_error_that_nobody_foresaw_shows_places_but_no_locals(engine, monkeypatch, kind):
    def failing(*_, **__):
        raise kind("at a bad moment")

    def call(frame, ledger):
        frame.dp.count("x", epsilon=1, ledger=ledger)

    monkeypatch.setattr(results, "noisy_of", failing)  # after the charge, where locals hold exact totals
    with pytest.raises(kind) as caught:
        call(engine({"x": [SECRET, 1]}), dpf.Ledger(epsilon=1))
    report = told(innermost(caught.value, "call"))
    assert str(SECRET) not in report
    assert "found =" not in report
    assert "release/path.py:" in "".join(caught.value.__notes__).replace("\\", "/")


def test_73_an_error_of_the_caller_keeps_its_own_traceback():
    frame, ledger = pl.DataFrame({"x": [SECRET]}), dpf.Ledger(epsilon=1)

    def call():
        try:
            raise LookupError("mine")
        except LookupError:
            frame.dp.count("x", epsilon=100, ledger=ledger)

    with pytest.raises(dpf.BudgetExceeded) as caught:
        call()
    assert isinstance(caught.value.__context__, LookupError)
    assert caught.value.__context__.__traceback__ is not None
    assert caught.value.__cause__ is None
    names = [step.f_code.co_name for step, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert names[1:] == ["call", "door"]


def test_73_what_is_no_frame_is_not_kept_by_its_refusal():
    rows = [f"Ann Secret {SECRET}"]
    with pytest.raises(dpf.InvalidType) as caught:
        dpf.of(rows)
    report = told(innermost(caught.value, "test_73_what_is_no_frame_is_not_kept_by_its_refusal"))
    assert str(SECRET) not in report


def test_json_of_a_rehearsed_record_is_that_of_the_answer(engine):
    found = engine({"x": [0.5]}).dp.histogram(
        "x", bins=[0, 1], epsilon=1, label="a", ledger=dpf.Ledger(epsilon=1), keep_noisy=False
    )
    assert json.loads(json.dumps(found.dp.provenance)) == found.dp.provenance


@pytest.mark.parametrize("denoise", [[None], ["auto", None], ("haar", None)])
def test_97_a_list_of_denoisers_with_none_among_them_costs_nothing(denoise):
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    error = refused(lambda ledger: frame.dp.histogram("x", bins=[0, 1, 2], epsilon=1, denoise=denoise, ledger=ledger))
    assert str(error).startswith("denoise must be one of")
    assert "a list of them, or None, not (" in str(error)


def test_97_a_list_of_denoisers_that_is_changed_after_the_preview_changes_nothing():
    steps = ["haar"]
    plan = pl.DataFrame({"x": [1.0, 2.0]}).dp.preview.histogram("x", bins=[0, 1, 2], epsilon=1, denoise=steps)
    steps[0] = "no such denoiser"
    released = dpf.release_together({"x": plan}, epsilon=1, ledger=dpf.Ledger(epsilon=1))["x"]
    assert released.dp.provenance["measures"]["count"]["denoise"][0]["name"] == "haar"


EXTREMES = {
    "an ecdf of very many bins": lambda dp, **paid: dp.ecdf("x", bins=range(10**9), **paid),
    "cells in a span of time": lambda dp, **paid: dp.count(max_cells=np.timedelta64(10**6, "s"), **paid),
}


@pytest.mark.parametrize("ask", EXTREMES.values(), ids=EXTREMES)
def test_114_extreme_numbers_of_cells_are_refused_in_words(ask):
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    error = refused(lambda ledger: ask(frame.dp, epsilon=1, ledger=ledger), dpf.InvalidArgument)
    assert "must be" in str(error) or "at most" in str(error)


def test_a_choice_whose_noise_vanishes_is_planned():
    plan = pl.DataFrame({"x": ["a"]}).dp.preview.top_k("x", categories=["a", "b"], k=1, epsilon=1e308)
    assert plan.cost.epsilon == 1e308


AT_THE_END = """
import atexit

import numpy as np
import polars as pl

import dpframe as dpf


@atexit.register
def ask():
    for rows in (1_000, 200_000):
        frame = pl.DataFrame({"x": np.ones(rows), "patient": np.arange(rows)})
        for unit in (None, dpf.PrivacyUnit("patient", max_rows=1, max_groups=1)):
            for asked in (frame, frame.lazy()):
                ledger = dpf.Ledger(epsilon=1, unit=unit)
                try:
                    dpf.of(asked).sum("x", bounds=(0, 1), epsilon=1, ledger=ledger)
                except dpf.DpframeError as error:
                    print(type(error).__name__, type(asked).__name__, ledger.spent.epsilon)
                else:
                    print("answered", type(asked).__name__, ledger.spent.epsilon)
"""


def test_250_at_the_end_of_a_process_no_number_of_rows_decides_whether_a_call_fails():
    """Executors then take no work; many rows of a frame in memory are shared among threads."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines() == ["answered DataFrame 1.0", "InvalidArgument LazyFrame 0.0"] * 4


WITHOUT_A_FOLDER = {
    "LazyFrame": lambda frame: frame.lazy(),
    "Dataset": lambda frame: pytest.importorskip("pyarrow.dataset").dataset(frame.to_arrow()),
    "relation": lambda frame: pytest.importorskip("duckdb").from_arrow(frame.to_arrow()),
}


@pytest.mark.parametrize("made", WITHOUT_A_FOLDER.values(), ids=WITHOUT_A_FOLDER)
def test_249_no_number_of_rows_decides_whether_a_call_without_a_folder_for_temporary_files_fails(
    made, tmp_path, monkeypatch
):
    """Only many rows need the file."""
    unit = dpf.PrivacyUnit("patient", max_rows=1, max_groups=1)
    frame = pl.DataFrame({"x": [1.0] * 10, "patient": range(10)})
    table = dpf.of(made(frame))
    asked = {"x": lambda ledger: table.sum("x", bounds=(0, 1), epsilon=1, ledger=ledger)}
    asked["found"] = lambda ledger: table.group_by("x", keys=dpf.discover(delta=1e-7)).count(epsilon=1, ledger=ledger)
    plans = {"x": table.preview.sum("x", bounds=(0, 1), epsilon=1, unit=unit)}
    asked["together"] = lambda ledger: dpf.release_together(plans, epsilon=1, ledger=ledger)
    asked["x"](dpf.Ledger(epsilon=1, unit=unit))  # the same question later is not prepared again
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    for ask in asked.values():
        ledger = dpf.Ledger(epsilon=2, delta=1e-6, keys_delta=5e-7, unit=unit)
        with pytest.raises(dpf.InvalidArgument, match="TMPDIR must be a folder in which this process may write"):
            ask(ledger)
        assert ledger.spent.epsilon == 0
    assert table.preview.sum("x", bounds=(0, 1), epsilon=1, unit=unit).cost.epsilon == 1
    assert table.count(epsilon=1, ledger=dpf.Ledger(epsilon=1)).shape == (1, 2)  # each row is a unit
    assert dpf.of(frame).count(epsilon=1, ledger=dpf.Ledger(epsilon=1, unit=unit)).shape == (1, 2)
