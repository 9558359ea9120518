"""Contexts for tests of users' pipelines: results made inside stay marked, and no durable ledger is charged."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import warnings

import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.testing import exact, seeded

pytestmark = pytest.mark.filterwarnings("ignore::dpframe.WeakPrivacyWarning")
FRAME = pl.DataFrame(
    {"x": [float(i % 10) for i in range(1_000)], "g": ["ab"[i % 2] for i in range(1_000)], "p": [*range(500)] * 2}
)
SEEDED = "NOT PRIVATE: drawn from seeded bits, which are for tests only"
EXACT = "NOT PRIVATE: no noise was added, which is for tests only"
TRIALS = {"seeded": (lambda: seeded(1), SEEDED), "exact": (exact, EXACT)}
DELTA = 1e-7
ASKS = {
    "count": lambda dp, **m: dp.count(**m),
    "mean": lambda dp, **m: dp.mean("x", bounds=(0, 9), **m),
    "histogram": lambda dp, **m: dp.histogram("x", bins=5, range=(0, 10), **m),
    "ranges": lambda dp, **m: dp.histogram("x", bins=1_024, range=(0, 10), ranges=True, **m),
    "sums by group": lambda dp, **m: dp.group_by("g", keys=["a", "b"]).sum("x", bounds=(0, 9), delta=DELTA, **m),
    "median": lambda dp, **m: dp.median("x", bounds=(0, 10), **m),
    "median by a choice": lambda dp, **m: dp.median("x", bounds=(0, 10), mechanism="exponential", **m),
    "mode": lambda dp, **m: dp.mode("g", categories=["a", "b"], **m),
    "top_k": lambda dp, **m: dp.top_k("g", k=1, categories=["a", "b"], **m),
    "top_k with counts": lambda dp, **m: dp.top_k("g", k=1, counts=True, categories=["a", "b"], **m),
    "marginals": lambda dp, **m: dp.marginals(["g"], degree=1, keys={"g": ["a", "b"]}, delta=DELTA, **m),
    "discover": lambda dp, **m: dp.group_by("g", keys=dpf.discover(delta=DELTA)).count(**m),
    "suggest_bounds": lambda dp, **m: dp.suggest_bounds("x", **m),
    "correlation": lambda dp, **m: dp.correlation(["x", "p"], bounds={"x": (0, 9), "p": (0, 500)}, delta=DELTA, **m),
    "truncated": lambda dp, **m: dp.count(mechanism=dpf.truncated_generalized_gaussian(p=2, output=(0, 4_000)), **m),
    "checks": lambda dp, **m: dp.mean("x", bounds=(0, 5), checks=0.3, **m),
    "together": lambda dp, **m: dpf.release_together({"n": dp.preview.count()}, **m)["n"],
    "a shown part": lambda dp, **m: dp.histogram("x", bins=5, range=(0, 10), **m).dp.head(2),
    "rounded": lambda dp, **m: dp.histogram("x", bins=5, range=(0, 10), **m).dp.round(),
    "a total": lambda dp, **m: dp.histogram("x", bins=5, range=(0, 10), **m).dp.total(),
}


def ledger(**more):
    return dpf.Ledger(epsilon=1e6, delta=1e-4, accounting="basic", **more)


def released(name, trial):
    with trial(), warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.BoundsWarning)
        return ASKS[name](FRAME.dp, epsilon=2.0, ledger=ledger())


def texts_of(result, folder):
    """Yield every text that describes a result."""
    yield "card", repr(result.dp)
    if result.dp.provenance["measures"]:
        yield "statement", result.dp.statement()
        if result.dp.provenance["schema"] != "dpframe.derived/1":
            dpf.Ledger(epsilon=1).report(folder / "report.html", result, charts=False)
            yield "report", (folder / "report.html").read_text(encoding="utf-8")
    result.dp.write_html(folder / "page.html", charts=False)
    yield "page", (folder / "page.html").read_text(encoding="utf-8")
    result.dp.write_parquet(folder / "result.parquet")
    yield "file", json.dumps(dpf.read_parquet(folder / "result.parquet").dp.provenance)


@pytest.mark.parametrize("kind", TRIALS)
@pytest.mark.parametrize("name", ASKS)
def test_all_that_speaks_of_a_result_says_that_it_is_not_private(name, kind, tmp_path):
    trial, stamp = TRIALS[kind]
    result = released(name, trial)
    assert result.dp.provenance["warning"] == stamp
    for what, text in texts_of(result, tmp_path):
        assert stamp in text, what


@pytest.mark.parametrize("kind", TRIALS)
def test_charts_and_tables_say_it_whatever_their_notes(kind):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    trial, stamp = TRIALS[kind]
    for name in ("histogram", "marginals", "median", "a total"):
        result = released(name, trial)
        for notes in (True, False, "Source: made up"):
            assert "NOT PRIVATE" in json.dumps(result.dp.plot(notes=notes).to_dict())
        assert stamp in result.dp.table().as_raw_html()


@pytest.mark.parametrize("name", ASKS)
def test_seeded_noise_repeats_and_another_seed_is_other_noise(name):
    first, again = (released(name, lambda: seeded(5)) for _ in range(2))
    assert first.equals(again)
    if name not in ("mode", "top_k", "median by a choice", "top_k with counts", "truncated"):
        assert not all(first.equals(released(name, lambda seed=seed: seeded(seed))) for seed in range(6, 14))


@pytest.mark.parametrize("first", [lambda: noise.insecure_bits(1), *(make for make, _ in TRIALS.values())])
def test_181_contexts_that_end_in_another_order_leave_nothing_unstamped(first):
    """Generators can hold contexts open; results without noise, or from seeded bits, must still be marked."""
    outer, inner = first(), exact()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    try:
        silent = FRAME.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
        assert noise.is_secure() is not noise.is_silent()
        assert noise.is_secure() or "NOT PRIVATE" in silent.dp.provenance["warning"]
    finally:
        inner.__exit__(None, None, None)
        noise.random_bits._source.set(os.urandom)
        noise.random_bits._trial.set(None)


def test_exact_answers_are_exact():
    def of(name):
        return released(name, exact)

    assert of("count")["count"].to_list() == [1_000]
    assert of("mean")["x_mean"].to_list() == pytest.approx([4.5], abs=1e-6)
    assert of("sums by group")["x_sum_noisy"].to_list() == pytest.approx([2_000, 2_500], abs=1e-3)
    assert of("histogram")["count_noisy"].to_list() == [200] * 5
    assert of("median")["x_median"].to_list() == [4.0]
    assert of("mode")["g"].to_list() == ["a"]
    assert of("discover")["count"].to_list() == [500, 500]
    assert of("truncated")["count"].to_list() == [1_000]
    assert of("marginals")["count"].to_list() == pytest.approx([1_000, 500, 500])
    assert of("count").dp.provenance["cost"]["epsilon"] == 2.0
    assert of("count")["count_error"].to_list() == FRAME.dp.count(epsilon=2.0, ledger=ledger())["count_error"].to_list()


@pytest.mark.parametrize("kind", TRIALS)
def test_a_durable_ledger_refuses_every_charge_inside(kind, tmp_path):
    trial, _ = TRIALS[kind]
    kept = ledger(path=tmp_path / "clinic.ledger", dataset="clinic")
    FRAME.dp.count(epsilon=1, label="n", snapshot="1", ledger=kept)
    before = (tmp_path / "clinic.ledger").read_bytes(), kept.remaining
    words = f"ledger must be in memory inside dpframe.testing.{kind}"
    stream = dpf.Stream("weeks", statistic=dpf.count(), time="g", periods=["a", "b"], ledger=kept, epsilon=1)
    asks = (
        lambda: FRAME.dp.count(epsilon=1, ledger=kept),
        lambda: FRAME.dp.count(epsilon=1, label="n", snapshot="1", ledger=kept),  # not even a stored answer
        lambda: dpf.release_together({"n": FRAME.dp.preview.count()}, epsilon=1, ledger=kept),
        lambda: stream.release(FRAME.filter(pl.col("g") == "a"), "a"),
    )
    with trial():
        for ask in asks:
            with pytest.raises(dpf.LedgerError, match=words):
                ask()
    assert ((tmp_path / "clinic.ledger").read_bytes(), kept.remaining) == before
    private = FRAME.dp.count(epsilon=1, ledger=kept)
    assert "warning" not in private.dp.provenance


def test_local_reports_are_refused_without_noise_and_stamped_with_seeded_one():
    replace = dpf.PrivacyUnit(neighbors="replace")
    method = dpf.local.RandomizedResponse(["a", "b"], epsilon=1)
    with exact(), pytest.raises(dpf.InvalidArgument, match="nothing but noise"):
        FRAME.dp.local.randomize("g", method=method, ledger=dpf.Ledger(epsilon=9, unit=replace))
    with exact(), pytest.raises(dpf.InvalidArgument, match="nothing but noise"):
        method.randomize(pl.Series(["a", "b"]))
    rappor = dpf.local.Rappor(["a", "b"], f=0.5, p=0.25, q=0.75)
    permanent = rappor.permanent.randomize(pl.Series(["a", "b"]))
    with exact(), pytest.raises(dpf.InvalidArgument, match="nothing but noise"):
        rappor.report(permanent)
    with seeded(1):
        reports = FRAME.dp.local.randomize("g", method=method, ledger=dpf.Ledger(epsilon=9, unit=replace))
    assert reports.dp.provenance["warning"] == SEEDED
    assert dpf.local.estimate(reports).dp.provenance["warning"] == SEEDED


def test_what_is_asked_after_it_is_private():
    for trial, _ in TRIALS.values():
        with pytest.raises(KeyError), trial():
            raise KeyError
        assert noise.is_secure()
        assert noise.stamp() is None
        assert noise.trial_of() is None
    with exact(), seeded(1):
        assert noise.stamp() == SEEDED
        assert not noise.is_silent()


def test_threads_are_not_in_it_and_tasks_are():
    said = []
    with seeded(1):
        thread = threading.Thread(target=lambda: said.append(FRAME.dp.count(epsilon=1, ledger=ledger())))
        thread.start()
        thread.join()
    assert "warning" not in said[0].dp.provenance

    async def main():
        async def late():
            await asyncio.sleep(0)
            return FRAME.dp.count(epsilon=1, ledger=ledger())

        with seeded(1):
            task = asyncio.create_task(late())
        return await task, await late()

    inside, after = asyncio.run(main())
    assert inside.dp.provenance["warning"] == SEEDED  # it outlived the context and keeps its warning
    assert "warning" not in after.dp.provenance


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "0", None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises((dpf.InvalidArgument, dpf.InvalidType), match="seed must be"), seeded(seed):
        pass


def test_no_variable_and_no_option_turns_it_on(monkeypatch):
    for name in ("DPFRAME_SEED", "DPFRAME_EXACT", "DPFRAME_TESTING", "DPFRAME_TRIAL"):
        monkeypatch.setenv(name, "1")
    assert noise.is_secure()
    assert "warning" not in FRAME.dp.count(epsilon=1, ledger=ledger()).dp.provenance
