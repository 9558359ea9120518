"""Error messages of computed results, joined frames and totals name a way out, and it works."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dpf

KEYS = {"ward": ["A", "B"], "sex": ["f", "m"]}
STAYS = pl.DataFrame({"ward": ["A", "B"] * 20, "sex": ["f"] * 20 + ["m"] * 20, "age": list(range(40))})


@pytest.fixture
def ledger():
    return dpf.Ledger(epsilon=99, delta=1e-4)


def months(ledger):
    frame = pl.DataFrame({"month": list(range(1, 13)) * 5})
    return frame.dp.group_by("month", keys=list(range(1, 13))).count(epsilon=1, ledger=ledger)


def refused(words, ask):
    with pytest.raises(dpf.InvalidArgument, match=words):
        ask()


def test_a_computed_result_names_what_it_has_itself(ledger):
    moving = months(ledger).dp.rolling(3)
    refused(r"errors must be asked of a release.*in the columns NAME_error, or NAME_low", lambda: moving.dp.errors)
    assert "count_error" in moving.columns
    refused(r"Write \.dp\.table\(\), which rounds", lambda: moving.dp.round)
    assert "| 3 |" in str(moving.dp.table("markdown"))
    refused(r'Write frame\["NAME"\]\.to_numpy\(\)', lambda: moving.dp.to_numpy)
    assert moving["count"].to_numpy().size == 10
    for ask in (lambda: moving.dp.total, lambda: moving.dp.share, lambda: moving.dp.change(7)):
        refused(r"computed from some\. Ask the released frame\.$", ask)
    refused(
        "computed from some already. Pass the released frames", lambda: dpf.compare(moving, moving, samples="different")
    )


def test_a_test_is_read_off_its_frame(ledger):
    tested = STAYS.dp.group_by("ward", "sex", keys=KEYS).count(epsilon=1, ledger=ledger).dp.chi2()
    for ask in (lambda: tested.dp.errors, lambda: tested.dp.round):
        refused("Read the test off the frame", ask)


def test_a_joined_frame_names_the_verb_of_its_parts(ledger):
    result = months(ledger)
    joined = dpf.concat([result, result])
    refused(r"joins 2\. Write \[part\.dp\.total\(\.\.\.\) for part in frame\.dp\.parts\]", joined.dp.total)
    refused(r"\[part\.dp\.chi2\(\.\.\.\) for", joined.dp.chi2)
    refused(r"\[part\.dp\.rolling\(\.\.\.\) for", lambda: joined.dp.rolling(3))
    assert len([part.dp.rolling(3) for part in joined.dp.parts]) == 2
    refused(r"Pass each part by itself: frame\.dp\.parts", lambda: dpf.combine("a", {"a": joined}))


def test_a_total_beside_a_median_names_what_to_select(ledger):
    result = STAYS.dp.agg(n=dpf.count(), m=dpf.median("age", bounds=(0, 99)), epsilon=1, ledger=ledger)
    refused(r"it is a quantile.* Or leave it out: \.dp\.select\('n'\)\.dp\.total\(\.\.\.\)\.$", result.dp.total)
    assert len(result.dp.select("n").dp.total()) == 1
    refused("by their own intervals.$", result.dp.select("m").dp.total)


def test_a_column_that_no_expression_can_name_is_renamed_first(ledger):
    means = {"Mean age": dpf.mean("age", bounds=(0, 99)), "class": dpf.count(), "n": dpf.count()}
    result = STAYS.dp.group_by("ward", keys=["A", "B"]).agg(means, epsilon=1, denoise=None, ledger=ledger)
    wide = STAYS.dp.group_by("ward", "sex", keys=KEYS).count(epsilon=1, denoise=None, ledger=ledger).dp.wide("sex")
    wide = wide.dp.relabel(columns={"f": ">50K"})
    for expression, name in (
        ("r.Mean age / 2", "Mean age"),
        ("r.Mean_age", "Mean age"),
        ("r['Mean age']", "Mean age"),
        ("r.class", "class"),
        ("w.>50K", ">50K"),
    ):
        way = rf"Rename '{name}' first: result\.dp\.relabel\(columns=\{{'{name}': 'name'\}}\)\.$"
        refused(way, lambda expression=expression: dpf.combine(expression, {"r": result, "w": wide}))
    refused("Write for instance r.n", lambda: dpf.combine("r", {"r": result}))
    refused("Write for instance dpf.combine", lambda: dpf.combine("r.n ** 2", {"r": result}))
    assert len(dpf.combine("r.name / 2", {"r": result.dp.relabel(columns={"Mean age": "name"})})) == 2
    assert len(dpf.combine("w.name", {"w": wide.dp.relabel(columns={">50K": "name"})})) == 2


FILTER = (
    r"Filter it to one by all of its keys: result\.dp\.filter\(\{'ward': \[\.\.\.\], 'sex': \[\.\.\.\]\}\)\.dp\.share"
)


@pytest.mark.parametrize("kind", ["cube", "rollup", "marginals"])
def test_shares_of_subtotals_name_the_filter_to_one_table(ledger, kind):
    if kind == "marginals":
        result = STAYS.dp.marginals(["ward", "sex"], keys=KEYS, degree=2, epsilon=1, delta=1e-6, ledger=ledger)
    else:
        result = STAYS.dp.group_by("ward", "sex", keys=KEYS).count(epsilon=1, ledger=ledger, **{kind: True})
    spent = ledger.spent
    refused(FILTER, lambda: result.dp.share(by="sex"))
    assert len(result.dp.filter(KEYS).dp.share(by="sex")) == 4
    assert ledger.spent == spent


def test_a_mean_that_was_cut_is_noted_where_it_is_used_uncut(ledger):
    few = pl.DataFrame({"ward": ["A", "B"] * 2, "age": [99, 99, 99, 98]}).dp.group_by("ward", keys=["A", "B"])
    results = [few.mean("age", bounds=(0, 99), epsilon=0.2, ledger=ledger) for _ in range(40)]
    seen = set()  # each is beyond with a chance above 0.3: none is with a chance below 10^-6
    for result in results:
        combined = dpf.combine("2 * r.age_mean - r.age_mean", {"r": result})
        found = combined["value"].drop_nans()  # NaN where the noisy count leaves no mean
        is_beyond = not found.is_between(-1e-9, 99 + 1e-9).all()
        note = "r.age_mean is used before it was cut to what is possible, from 0 to 99"
        assert (note in combined.dp.provenance["notes"]) == is_beyond
        seen.add(is_beyond)
    assert True in seen
    assert not dpf.combine("r", {"r": few.count(epsilon=0.2, denoise=None, ledger=ledger)}).dp.provenance["notes"]


def test_columns_that_an_expression_may_name_are_the_unbiased_ones(ledger):
    counts = STAYS.dp.group_by("ward", keys=["A", "B"]).agg(
        n=dpf.count(), m=dpf.mean("age", bounds=(0, 99)), denoise="nonnegative", epsilon=1, ledger=ledger
    )
    assert "n_noisy" in counts.columns
    refused(r"there is none\. It has \['n_noisy', 'm'\]\.$", lambda: dpf.combine("a.foo", {"a": counts}))
    refused(r"has \['n_noisy', 'm'\]\. Write for instance a\.n_noisy\.$", lambda: dpf.combine("a", {"a": counts}))
    refused(r"Name one of \['n_noisy', 'm'\]\.$", lambda: dpf.combine("a.n_error", {"a": counts}))
    for column in ("n_noisy", "m"):
        assert len(dpf.combine(f"a.{column}", {"a": counts})) == 2


@pytest.mark.parametrize("by", [["ward"], ["ward", "sex"]], ids=" and ".join)
@pytest.mark.parametrize("verb", ["change", "difference", "rolling"])
def test_a_step_between_means_names_an_expression_of_their_rows(ledger, by, verb):
    keys = {name: KEYS[name] for name in by}
    means = STAYS.dp.group_by(*by, keys=keys).agg({"m": dpf.mean("age", bounds=(0, 99))}, epsilon=9, ledger=ledger)
    if len(by) == 1:
        way = r'Write for instance dpf\.combine\("b\.m - a\.m", .*, on=\[\]\)\.$'
        refused(f"m is a mean. {way}", lambda: getattr(means.dp, verb)(1))
    refused("m is a mean. Release a count or a sum.$", means.dp.share)
    rows = {"a": means.dp.filter({"ward": "A"}), "b": means.dp.filter({"ward": "B"})}
    on = by[1:]
    refused(
        rf"and \{by} has none\. Match them by fewer: on=\{on}\.$".replace("]", r"\]"),
        lambda: dpf.combine("b.m - a.m", rows),
    )
    assert len(dpf.combine("b.m - a.m", rows, on=on)) == 2 ** len(on)


def test_results_that_no_column_matches_are_released_by_the_same_keys(ledger):
    one, other = (
        STAYS.dp.group_by("ward", keys=keys).count(epsilon=1, denoise=None, ledger=ledger)
        for keys in (["A", "B"], ["C", "D"])
    )
    refused(
        r"\['ward'\] has none\. Release or filter them by the same keys\.$",
        lambda: dpf.combine("a - b", {"a": one, "b": other}),
    )


def test_what_goes_along_one_key_is_refused_in_the_singular(ledger):
    frame = pl.DataFrame({"x": [1.0] * 50})
    one = frame.dp.histogram("x", bins=[0, 2], epsilon=0.1, ledger=ledger)
    refused("difference must be along at least 2 keys, and this result has 1", one.dp.difference)
    refused("n must be at most 1, for there is 1 key", lambda: one.dp.rolling(2))
