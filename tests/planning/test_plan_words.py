"""Words of plans on errors: the group size that a mean's error assumes, and what makes an epsilon the smallest."""

from __future__ import annotations

import importlib.util
import json
import re

import pytest
from seen import seen

import dpframe as dpf


def frame_of(engine):
    return engine({"age": [31.0, 45.0, 62.0], "ward": ["A", "B", "A"]})


STATISTICS = {"n": dpf.count(), "age": dpf.mean("age", bounds=(0, 100))}


def rows(frame):
    return frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")


def test_plans_of_a_median_count_its_error_in_ranks(engine):
    dp = frame_of(engine).dp
    question = {"n": dpf.count(), "m": dpf.median("age", bounds=(0, 99))}
    plan, table = (dp.preview.agg(question, epsilon=epsilon) for epsilon in (1, [0.1, 1]))
    assert re.search(r"error of n +error of m \(ranks\)\n", repr(table))
    assert "error of m (ranks)" in table._repr_html_()
    if importlib.util.find_spec("altair") is not None:
        for each in (plan, table):
            assert '"m (ranks)"' in json.dumps(each.plot().to_dict())


def test_a_plan_states_what_a_first_call_spends_if_that_is_more(engine):
    """Renyi divergences turn into a slightly larger epsilon than that of the noise, so a ledger may refuse the call."""
    dp = frame_of(engine).dp
    for accounting in ("basic", "gdp", "rdp"):
        ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting=accounting)
        stream = dpf.Stream("n", statistic=dpf.count(), time="age", periods=[31, 45], epsilon=0.5, ledger=ledger)
        plans = (
            dp.preview.count(epsilon=0.5, delta=1e-6, ledger=ledger),
            dpf.plan_together({"n": dp.preview.count()}, epsilon=0.5, delta=1e-6, ledger=ledger),
            stream.preview(),
        )
        if accounting != "rdp":
            assert not any("counts as" in repr(plan) for plan in plans)
            continue
        dp.count(epsilon=0.5, ledger=ledger)
        said = f"counts as +{re.escape(str(ledger.spent))} in a ledger of this limit without other charges: Renyi div"
        for plan in plans:
            assert re.search(said, repr(plan))
        assert "counts as" not in repr(dp.preview.count(epsilon=0.5, mechanism="laplace", ledger=ledger))


@pytest.mark.parametrize(("size", "words"), [(None, "1,000 values"), (250, "250 values")])
def test_a_mean_names_the_size_that_its_error_is_for(engine, size, words):
    assumed = size or 1_000
    dp = frame_of(engine).dp
    sized = {} if size is None else {"size": size}
    plan = dp.preview.agg(STATISTICS, epsilon=1, **sized)
    assert [(row["column"], row["size"]) for row in plan.rows()] == [("n", None), ("age", assumed)]
    assert plan.assumed_size == assumed
    assert f"of {assumed:,}" in repr(plan)
    assert f"of {assumed:,}" in plan._repr_html_()
    table = dp.preview.agg(STATISTICS, epsilon=[0.1, 1], **sized)
    assert f"error of age of {words}" in repr(table)
    assert f"error of age of {words}" in table._repr_html_()
    assert f"a mean's error is shown for a group of {words}" in repr(table)
    assert [row["size"] for row in rows(table.to_frame())] == [assumed] * 2
    joint = dpf.plan_together({"one": dp.preview.agg(STATISTICS, **sized)}, epsilon=1)
    assert repr(joint).count(f" of {words}") == joint._repr_html_().count(f" of {words}") == 1
    assert [row["size"] for row in rows(joint.to_frame())] == [None, assumed]


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_the_column_of_sizes_is_of_whole_numbers_or_missing(engine, like):
    if like == "pandas":
        pytest.importorskip("pandas")
    dp = frame_of(engine).dp
    for statistics in (STATISTICS, {"n": dpf.count()}):
        sizes = dp.preview.agg(statistics, epsilon=1).to_frame(like)["size"]
        assert str(sizes.dtype) == "Int64"
    assert "size" not in dp.preview.count(epsilon=[1]).to_frame(like).columns


def test_charts_of_plans_name_the_size(engine):
    pytest.importorskip("altair")
    dp = frame_of(engine).dp
    assert "age of 250 values" in str(seen(dp.preview.agg(STATISTICS, epsilon=1, size=250).plot()))
    assert "age of 250 values" in str(seen(dp.preview.agg(STATISTICS, epsilon=[0.1, 1], size=250).plot()))


def test_113_the_smallest_epsilon_is_so_for_its_weights(engine):
    dp = frame_of(engine).dp
    one = dp.preview.count(within=10)
    assert "the smallest epsilon that does\n" in repr(one)
    counts = {"n": dpf.count(), "total": dpf.sum("age", bounds=(0, 100))}
    goal = {"n": 10, "total": 10_000}
    equal = dp.preview.agg(counts, within=goal)
    assert "the smallest epsilon that does with equal weights; others may be cheaper" in repr(equal)
    better = dp.preview.agg(counts, within=goal, weights={"n": 9, "total": 1})
    assert "the smallest epsilon that does with these weights; others may be cheaper" in repr(better)
    assert better.cost.epsilon < equal.cost.epsilon


def test_a_plan_of_one_key_or_bin_says_so_in_the_singular(engine):
    dp = frame_of(engine).dp.preview
    asked = dp.group_by("ward", keys=["A"]), dp.group_by("ward", keys=["A", dpf.REST])
    one, rest = (str(each.count(epsilon=1).query) for each in asked)
    assert (one, rest) == ("count() by ward: 1 declared key", "count() by ward: 1 declared key and the rest")
    assert str(dp.histogram("age", bins=[0, 100], epsilon=1).query) == "count() by age: 1 bin"
    assert str(dp.ecdf("age", bins=[0, 100], epsilon=1).query) == "ecdf(age) by age: 1 bin"
    assert str(dp.histogram("age", bins=[0, 50, 100], epsilon=1).query) == "count() by age: 2 bins"


def test_no_row_is_in_no_subtotal_where_the_rest_is_a_group(engine):
    """With REST every row has a group, so the note on rows of other keys would be false."""
    dp = frame_of(engine).dp.preview
    notes = [dp.group_by("ward", keys=keys).count(rollup=True, epsilon=1).notes for keys in (["A"], ["A", dpf.REST])]
    assert ["rows of other keys are in none" in str(one) for one in notes] == [True, False]


def test_a_top_k_of_one_found_key_says_so_in_the_singular(engine):
    ledger = dpf.Ledger(epsilon=9, delta=1e-3, keys_delta=1e-4)
    ask = frame_of(engine).dp.preview.top_k
    for k, said in ((1, "1 of them is shown, that of the largest noisy number"), (2, "2 of them are shown, those of")):
        plan = ask("ward", k=k, categories=dpf.discover(delta=1e-6), epsilon=1, ledger=ledger)
        assert any(note.startswith(f"at most {said}") for note in plan.notes), plan.notes
