"""Results changed through their ``.dp``: each number keeps its keys and errors, and the result keeps its record."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta

import hypothesis
import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames import build
from dpframe.frames.kinds import is_missing
from dpframe.ledger.chain import CHANGED

ROWS = 600
DATA = {
    "sex": [number * 7 % 3 % 2 for number in range(ROWS)],
    "ward": ["ABC"[number * number % 3] for number in range(ROWS)],
    "age": [float(number * 31 % 90) for number in range(ROWS)],
    "cost": [float(number * 17 % 100) for number in range(ROWS)],
    "day": [date(2026, 1, 1) + timedelta(days=number % 90) for number in range(ROWS)],
}
KEYS = {"sex": [0, 1], "ward": ["A", "B", "C"]}
EDGES = [0, 30, 60, 90]
WORDS = {0: "Men", 1: "Women"}
CALLS = {
    "count": lambda dp: dp.group_by("sex", "ward", keys=KEYS).count(epsilon=1),
    "one": lambda dp: dp.count(epsilon=1),
    "agg": lambda dp: dp.group_by("sex", "ward", keys=KEYS).agg(
        n=dpf.count(), mean=dpf.mean("age", bounds=(0, 90)), middle=dpf.median("age", bounds=(0, 90)), epsilon=3
    ),
    "histogram": lambda dp: dp.histogram("age", bins=EDGES, epsilon=1),
    "ranges": lambda dp: dp.histogram("age", bins=EDGES, ranges=True, epsilon=1),
    "quantiles": lambda dp: dp.group_by("sex", keys=[0, 1]).quantile("age", q=[0.25, 0.5], bounds=(0, 90), epsilon=3),
    "rollup": lambda dp: dp.group_by("sex", "ward", keys=KEYS).count(rollup=True, epsilon=1),
    "cube": lambda dp: dp.group_by("sex", "ward", keys=KEYS).count(cube=True, epsilon=1),
    "marginals": lambda dp: dp.marginals(["sex", "ward"], keys=KEYS, epsilon=1, delta=1e-7),
    "correlation": lambda dp: dp.correlation(["age", "cost"], bounds={"age": (0, 90), "cost": (0, 99)}, epsilon=1),
    "covariances": lambda dp: dp.group_by("sex", keys=[0, 1]).covariance(
        ["age", "cost"], bounds={"age": (0, 90), "cost": (0, 99)}, epsilon=1
    ),
    "mode": lambda dp: dp.mode("ward", categories=["A", "B", "C"], epsilon=1),
    "top": lambda dp: dp.top_k("ward", k=2, categories=["A", "B", "C"], epsilon=1),
    "top with counts": lambda dp: dp.top_k("ward", k=2, categories=["A", "B", "C"], counts=True, epsilon=1),
    "discovered": lambda dp: dp.group_by("ward", keys=dpf.discover(delta=1e-6)).count(epsilon=3),
    "dates": lambda dp: dp.group_by("day", keys=dpf.dates("2026-01-01", "2026-03-31", every="1mo")).count(epsilon=1),
}
CHOICES = ("mode", "top")
LEVELS = ("rollup", "cube", "marginals")


def keys_of(frame):
    return [name for axis in frame.dp.provenance["cells"] for name in axis["columns"]]


def labels_of(frame):
    return [name for name in frame.columns if name.removesuffix("_left").removesuffix("_right") in keys_of(frame)]


def table(frame, names):
    """Map the labels of each row to the values of its other columns, all as text."""
    others = [name for name in frame.columns if name not in names]
    rows = zip(*(frame[name].to_list() for name in (*names, *others)), strict=True)
    return {tuple(map(str, row[: len(names)])): tuple(map(str, row[len(names) :])) for row in rows}


def works(frame, ledger, folder):
    """Check that a changed release can still be shown, written and read, and that its ledger recognizes it."""
    record = frame.dp.provenance
    assert record["altered"] is False
    frame.dp.write_html(folder / "page.html", charts=False)
    frame.dp.write_parquet(folder / "file.parquet")
    back = dpf.read_parquet(folder / "file.parquet")
    assert type(back) is type(frame)
    assert back.dp.provenance == json.loads(json.dumps(record)) == record
    for one in (frame, back):
        assert ledger.verify(one)["releases"][0]["numbers"] == CHANGED
    ledger.report(folder / "report.html", frame, charts=False)
    if record["measures"] or record.get("top", {}).get("counts"):
        assert frame.dp.table("markdown")
        assert frame.dp.statement()
        assert len(frame.dp.errors(cells=True)) == len(frame)
        assert len(frame.dp.errors()) >= 1


@pytest.fixture(scope="module", params=["polars", "pandas"])
def released(request, tmp_path_factory):
    library = pl if request.param == "polars" else pytest.importorskip("pandas")
    path = tmp_path_factory.mktemp("changes") / "a.ledger"
    ledger = dpf.Ledger(epsilon=100, delta=1e-3, keys_delta=1e-4, path=path, dataset="stays")
    frame = library.DataFrame(DATA)
    with ledger:
        return {name: call(frame.dp) for name, call in CALLS.items()}, ledger


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_bins_of_a_column_that_is_named_as_the_statistic(library):
    """The shared name means the numbers: once, a sort by it used the edges of the bins, and select failed."""
    data = {"count": [1.0, 2.0, 3.0, 7.0, 12.0]}
    frame = pl.DataFrame(data) if library == "polars" else pytest.importorskip("pandas").DataFrame(data)
    counts = frame.dp.histogram("count", bins=[0, 4, 10, 20], epsilon=50, ledger=dpf.Ledger(epsilon=99), denoise=None)
    largest = counts.dp.sort("count", descending=True).dp.head(1)
    assert (list(largest["count_left"]), list(largest["count"])) == ([0], [3])
    assert largest.dp.provenance["shown"]["steps"][1]["by_numbers"]
    assert list(counts.dp.sort("count_left", descending=True)["count_left"]) == [10, 4, 0]
    assert list(counts.dp.select("count").columns) == list(counts.columns)
    assert list(counts.dp.select("count_left", "count").columns) == list(counts.columns)
    renamed = counts.dp.relabel(columns={"count": "n"})
    assert list(renamed.columns) == ["count_left", "count_right", "n", "n_error"]
    assert list(renamed.dp.sort("n")["n"]) == sorted(counts["count"])
    assert list(renamed.dp.provenance["shown"]["labels"]) == ["count"]
    assert "People" in counts.dp.table("csv", labels={"columns": {"count": "People"}})


@pytest.mark.parametrize("name", CALLS)
def test_a_renamed_result(released, name, tmp_path):
    frame, ledger = released[0][name], released[1]
    known = list(frame.dp.provenance["measures"])
    new = {old: f"the {old}" for old in [*keys_of(frame), *known]}
    if not new:
        pytest.skip("a frame without a name")
    made = frame.dp.relabel(columns=new)
    assert [str(dtype) for dtype in made.dtypes] == [str(dtype) for dtype in frame.dtypes]
    assert table(made, labels_after(made, frame, new)) == table(frame, labels_of(frame))
    works(made, ledger, tmp_path)
    before = frame.dp.provenance
    assert {field: fact for field, fact in made.dp.provenance.items() if field != "shown"} == before
    assert made.dp.provenance["shown"]["steps"] == [{"verb": "relabel", "columns": new, "values": {}}]
    assert "shown" not in frame.dp.provenance
    assert all(f"the {old}" in made.dp.errors()["column"].to_list() for old in known)


def labels_after(made, frame, new):
    old = labels_of(frame)
    ends = {name: end for name in old for end in ("_left", "_right", "") if name.removesuffix(end) in new}
    return [new[name.removesuffix(end)] + end for name, end in ((name, ends.get(name, "")) for name in old)]


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("one", "histogram", "ranges")])
def test_translated_keys(released, name, tmp_path):
    frame, ledger = released[0][name], released[1]
    column = keys_of(frame)[0]
    old = [value for value in frame[column].to_list() if not is_missing(value)]
    words = {value: f"<{str(value).removesuffix(' 00:00:00').removesuffix('.0')}>" for value in old}
    made = frame.dp.relabel({column: words})
    mine = labels_of(frame)
    place = mine.index(column)
    by_words = dict(table(made, mine).items())
    expected = {
        (*key[:place], f"<{key[place].removesuffix(' 00:00:00').removesuffix('.0')}>", *key[place + 1 :]): numbers
        for key, numbers in table(frame, mine).items()
        if key[place] not in ("None", "nan", "<NA>")
    }
    assert {key: numbers for key, numbers in by_words.items() if key[place] not in ("None", "nan", "<NA>")} == expected
    works(made, ledger, tmp_path)


def test_dates_of_a_zone_that_were_translated_are_matched_with_texts():
    """Texts have no time zone, so that the zone of the dates says nothing of them."""
    words = ["January", "February"]
    days = pl.DataFrame({"at": DATA["day"], "month": [words[number % 2] for number in range(ROWS)]})
    days = days.with_columns(pl.col("at").cast(pl.Datetime("us")).dt.replace_time_zone("Europe/Berlin"))
    with dpf.Ledger(epsilon=2):
        months = days.dp.group_by("at", keys=dpf.dates("2026-01-01", "2026-02-28", every="1mo")).count(epsilon=1)
        texts = days.dp.group_by("month", keys=words).count(epsilon=1)
    said = dict(zip(months["at"].to_list(), words, strict=True))
    named = months.dp.relabel({"at": said}, columns={"at": "month"})
    assert dpf.combine("a + b", {"a": named, "b": texts})["month"].to_list() == words


@pytest.mark.parametrize("name", CALLS)
def test_a_sorted_result(released, name, tmp_path):
    frame, ledger = released[0][name], released[1]
    last = list(frame.columns)[-1] if name != "mode" else "ward"
    made = frame.dp.sort(last, descending=True)
    assert table(made, labels_of(frame)) == table(frame, labels_of(frame))
    values = made[last].to_list()
    assert values == sorted(values, reverse=True)
    works(made, ledger, tmp_path)
    top = next(iter(table(made, labels_of(frame))))
    kept = [
        of.dp.filter([key == top for key in table(of, labels_of(frame))]).dp.provenance["shown"] for of in (made, frame)
    ]
    assert kept[0]["cells"] == kept[1]["cells"]
    if made.dp.provenance["measures"]:
        errors = table(frame.dp.errors(cells=True), labels_of(frame))
        assert table(made.dp.errors(cells=True), labels_of(frame)) == errors
        assert list(table(made.dp.errors(cells=True), labels_of(frame))) == list(table(made, labels_of(frame)))
        assert made.dp.table("csv") != ""
        assert "a total of them" not in " ".join(made.dp.table("csv"))


def test_each_column_is_sorted_in_its_own_direction(released):
    frame = released[0]["count"]
    for each in ([False, True], [True, False]):
        rows = frame.dp.sort("sex", "ward", descending=each)
        assert list(zip(rows["sex"], rows["ward"], strict=True)) == [
            (sex, ward) for sex in sorted([0, 1], reverse=each[0]) for ward in sorted("ABC", reverse=each[1])
        ]


def test_a_key_that_decides_ties_leaves_a_sort_by_numbers_what_it_is(released):
    frame = released[0]["count"]
    for columns, by_numbers in ((("count", "ward"), True), (("ward", "count"), True), (("ward", "sex"), False)):
        made = frame.dp.sort(*columns).dp.head(2)
        sort, head = made.dp.provenance["shown"]["steps"]
        assert (sort.get("numbers", False), head.get("by_numbers", False)) == (by_numbers, by_numbers)
        assert ("chosen for its noisy number" in made.dp.statement()) == by_numbers


@pytest.mark.parametrize("name", LEVELS)
def test_noise_that_differs_from_level_to_level_stands_beside_its_rows(released, name):
    """A sort by error puts the levels in another order than in the release; each row must keep its own error."""
    frame = released[0][name]
    made = frame.dp.sort("count_error")
    errors = table(frame.dp.errors(cells=True), labels_of(frame))
    assert table(made.dp.errors(cells=True), labels_of(frame)) == errors
    assert name != "marginals" or list(errors) != list(table(made, labels_of(frame)))


@pytest.mark.parametrize("name", CALLS)
def test_some_rows(released, name, tmp_path):
    frame, ledger = released[0][name], released[1]
    mask = [number % 2 == 0 for number in range(len(frame))]
    made = frame.dp.filter(mask)
    whole = list(table(frame, labels_of(frame)).items())
    assert list(table(made, labels_of(frame)).items()) == whole[::2]
    works(made, ledger, tmp_path)
    first = frame.dp.head(2)
    assert list(table(first, labels_of(frame)).items()) == whole[:2]
    works(first, ledger, tmp_path)
    if len(made) < len(frame) and name not in CHOICES:
        words = f"{len(made)} of {len(frame)} released rows are shown, so a total of them is no total of all"
        words = words if len(made) > 1 else f"1 of {len(frame)} released rows is shown, so a total of it is"
        assert words in made.dp.table("markdown")
        assert words in made.dp.statement()
        errors = table(frame.dp.errors(cells=True), labels_of(frame))
        assert table(made.dp.errors(cells=True), labels_of(frame)).items() <= errors.items()


@pytest.mark.parametrize(
    "name", ["count", "agg", "quantiles", "cube", "marginals", "covariances", "dates", "top with counts"]
)
def test_a_wide_table(released, name, tmp_path):
    frame, ledger = released[0][name], released[1]
    column = keys_of(frame)[0]
    others = [key for key in labels_of(frame) if key != column]
    made = frame.dp.relabel({column: WORDS}).dp.wide(column) if column == "sex" else frame.dp.wide(column)
    names = list(frame.dp.provenance["measures"]) or ["count"]
    known = frame.dp.errors(cells=True)
    wide_errors = made.dp.errors(cells=True)
    wide = table(made, others)
    seen = 0
    rows = zip(*(frame[key].to_list() for key in (column, *others)), strict=True)
    for row, (key, *rest) in enumerate(rows):
        text = str(key).removesuffix(" 00:00:00").removesuffix(".0")
        missing = is_missing(key)
        word = "all" if missing else WORDS.get(key, text) if column == "sex" else text
        place = list(wide).index(tuple(map(str, rest)))
        for statistic in names:
            new = word if len(names) == 1 else f"{statistic}_{word}"
            for end in ("", "_noisy", "_error", "_low", "_high"):
                assert (statistic + end in frame.columns) == (new + end in made.columns)
                if statistic + end in frame.columns:
                    assert made[new + end].to_list()[place] == frame[statistic + end].to_list()[row]
                    seen += 1
            for end in ("_interval", "_noisy_rmse", "_denoised_rmse"):
                mine, before = wide_errors[new + end].to_list()[place], known[statistic + end].to_list()[row]
                assert (is_missing(mine) and is_missing(before)) or mine == before
    assert seen == (len(made.columns) - len(others)) * len(made)
    works(made, ledger, tmp_path)
    works(made.dp.sort(made.columns[-1]), ledger, tmp_path)


@pytest.mark.parametrize("name", ["rollup", "mode"])
def test_what_cannot_be_wide(released, name):
    with pytest.raises(dpf.InvalidArgument, match=r"wide (needs a row for every pair|must be asked of a result with)"):
        released[0][name].dp.wide(keys_of(released[0][name])[0])


def test_statistics_keep_their_errors(released, tmp_path):
    frame, ledger = released[0]["agg"], released[1]
    made = frame.dp.select("mean", "n")
    assert list(made.columns) == ["sex", "ward", "mean", "mean_error", "n", "n_noisy", "n_error"]
    assert list(made.dp.errors()["column"].to_list()) == ["mean", "n"]
    works(made, ledger, tmp_path)
    assert list(frame.dp.select("ward", "n_error", "sex").columns) == ["ward", "sex", "n", "n_noisy", "n_error"]
    with pytest.raises(dpf.InvalidArgument, match=r"columns must tell the rows apart, and 'ward' does not"):
        frame.dp.select("ward", "n")
    men = frame.dp.filter({"sex": 0}).dp.select("ward", "n")
    assert list(men.columns) == ["ward", "n", "n_noisy", "n_error"]
    works(men, ledger, tmp_path)
    with pytest.raises(dpf.InvalidArgument, match="keep the keys of a result with totals"):
        released[0]["cube"].dp.select("ward")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sort"), st.integers(0, 5), st.booleans()),
        st.tuples(st.just("filter"), st.lists(st.booleans(), min_size=12, max_size=12)),
        st.tuples(st.just("head"), st.integers(1, 12)),
        st.tuples(st.just("relabel")),
        st.tuples(st.just("round")),
    ),
    max_size=4,
)


@hypothesis.settings(max_examples=15, deadline=None, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
@hypothesis.given(steps=STEPS, name=st.sampled_from(["agg", "cube", "histogram", "dates"]))
def test_chained_changes(released, steps, name):
    """After any chain of changes, each row is a row of the release and keeps its own errors."""
    frame = released[0][name]
    made, labels = frame, labels_of(frame)
    by_row = table(frame.dp.errors(cells=True), labels)
    is_rounded = False
    for kind, *how in steps:
        if kind == "sort":
            made = made.dp.sort(list(made.columns)[how[0] % len(made.columns)], descending=how[1])
        elif kind == "filter" and any(how[0][: len(made)]):
            made = made.dp.filter(how[0][: len(made)])
        elif kind == "head":
            made = made.dp.head(*how)
        elif kind == "relabel":
            first = keys_of(frame)[-1]
            new = {first: "other"} if "other" not in str(list(made.columns)) else {"other": first}
            made = made.dp.relabel(columns=new)
        elif kind == "round":
            made, is_rounded = made.dp.round(), True
    record = made.dp.provenance
    assert record["altered"] is False
    names = [f"other{name.removeprefix(keys_of(frame)[-1])}" if name not in made.columns else name for name in labels]
    if not is_rounded:
        whole = table(frame, labels)
        assert table(made, names).items() <= whole.items()
        assert table(made.dp.errors(cells=True), names).items() <= by_row.items()
    assert len(made.dp.errors(cells=True)) == len(made)
    assert made.dp.table("markdown").count("\n| ") >= 1


def test_what_is_missing_in_a_mask_is_false_in_a_list_too(released):
    frame = released[0]["count"]
    mask = [True, None, False, True, None, None]
    assert len(frame.dp.filter(mask)) == len(frame.dp.filter(np.array(mask, dtype=object))) == 2
    assert len(frame.dp.filter([math.nan if one is None else one for one in mask])) == 2
    for wrong in ([1, 0] * 3, [1.0, math.nan] * 3, ["x", None] * 3):
        with pytest.raises(dpf.InvalidType, match="must be a Boolean for each row"):
            frame.dp.filter(wrong)


def test_names_that_are_no_names_are_refused_in_words(released):
    frame = released[0]["count"]
    for verb in (frame.dp.select, frame.dp.sort, frame.dp.wide):
        with pytest.raises(dpf.InvalidType, match=r"must be the name of a column \(a string\), not \['ward'\]"):
            verb(["ward"])
    with pytest.raises(dpf.InvalidArgument) as refusal:
        frame.dp.sort("zzz")
    assert str(refusal.value).count("'ward'") == 1
    with pytest.raises(dpf.InvalidType, match="cells must be True or False, not 'x'"):
        frame.dp.errors(cells="x")
    with pytest.raises(dpf.InvalidType, match="title must be text, not 3"):
        frame.dp.write_html("x.html", title=3)


def test_a_single_number_has_no_keys_to_name():
    one = pl.DataFrame({"age": [1]}).dp.count(epsilon=1, ledger=dpf.Ledger(1))
    for call in (lambda: one.dp.filter({3: 3}), lambda: one.dp.wide("x")):
        with pytest.raises(dpf.InvalidArgument, match="This result has none"):
            call()


def test_everything_else_is_named_by_its_key_or_by_its_word():
    keys = ["A", dpf.REST]
    frame = pl.DataFrame({"ward": ["A", "B"]}).dp.group_by("ward", keys=keys).count(epsilon=1, ledger=dpf.Ledger(1))
    for key in (dpf.REST, "Other"):
        assert frame.dp.filter({"ward": ["A", key]})["ward"].to_list() == ["A", "Other"]
        some = frame.dp.filter({"ward": key})
        assert (some["ward"].to_list(), some.dp.provenance["shown"]["steps"][0]["where"]) == (
            ["Other"],
            {"ward": ["Other"]},
        )
        words = frame.dp.relabel({"ward": {key: "Elsewhere"}})
        assert words["ward"].to_list() == ["A", "Elsewhere"]


def test_a_mask_of_each_kind(released):
    frame = released[0]["count"]
    expected = [value for value in frame["count"].to_list() if value > 100]
    masks = [frame["count"] > 100, (frame["count"] > 100).to_list(), np.asarray(frame["count"]) > 100]
    if isinstance(frame, pl.DataFrame):
        masks.append(pl.col("count") > 100)
    else:
        masks.append((frame["count"] > 100).astype("boolean"))
    for mask in masks:
        assert frame.dp.filter(mask)["count"].to_list() == expected
    for wrong, words in (
        ([True], "6 of them, not 1"),
        ("ward", "Boolean for each row"),
        ([1, 0, 1, 0, 1, 0], "Boolean for each row"),
        ({"wards": "A"}, "Did you mean 'ward'"),
        ({"ward": "D"}, r"must name keys of 'ward', which are 'A', 'B', 'C', not 'D'"),
        ({"count": 3}, "give a mask"),
        ([False] * 6, "keeps none"),
        ([None] * 6, "keeps none"),
        ([True, [True], 0, 0, 0, 0], "Boolean for each row"),
        ([True, None, 0, None, 1, None], "Boolean for each row"),
    ):
        with pytest.raises((dpf.InvalidArgument, dpf.InvalidType), match=words):
            frame.dp.filter(wrong)
    if isinstance(frame, pl.DataFrame):
        some = r"Its columns are \['sex', 'ward', 'count', 'count_noisy', 'count_error'\]: name one of them"
        for expression, name in (
            (pl.col("zz") == "A", ", not 'zz'"),
            (pl.col("count") > pl.col("zz"), ", not 'zz'"),
            (pl.selectors.by_name("zz") == "A", ""),
        ):
            with pytest.raises(dpf.InvalidArgument, match=f"must read columns of the result{name}. {some}"):
                frame.dp.filter(expression)
        with pytest.raises(pl.exceptions.PolarsError):  # other errors of an expression stay its own
            frame.dp.filter(pl.col("ward").str.to_date("%Y") > pl.col("count"))
    bins = released[0]["histogram"]
    assert bins.dp.filter({"age_left": [0, 30.0]})["age_right"].to_list() == [30, 60]
    with pytest.raises(dpf.InvalidArgument, match="Name 'age_left' or 'age_right'"):
        bins.dp.filter({"age": 30})


def test_keys_of_a_filter_are_one_or_listed_and_no_column_of_data(released):
    frame = released[0]["count"]
    wanted = frame.dp.filter({"ward": ["A", "C"], "sex": [1]})
    for listed in (tuple, set):
        some = frame.dp.filter({"ward": listed(["A", "C"]), "sex": 1})
        assert build.rows(some) == build.rows(wanted)
    pandas = pytest.importorskip("pandas")
    for column in (np.array, pl.Series, pandas.Series, pandas.Index, pandas.Categorical):
        with pytest.raises(dpf.InvalidType, match=r"keys of 'ward' in a list that you wrote down, not in an? "):
            frame.dp.filter({"ward": column(["A", "C"])})


def test_the_index_of_pandas_stays(released):
    frame = released[0]["count"]
    if isinstance(frame, pl.DataFrame):
        return
    frame = frame.set_axis([*"uvwxyz"])
    assert frame.dp.sort("count").index.to_list() == frame.sort_values("count", kind="stable").index.to_list()
    assert frame.dp.filter(frame["count"] > 90).index.to_list() == frame[frame["count"] > 90].index.to_list()
    assert frame.dp.relabel(columns={"count": "n"}).index.to_list() == [*"uvwxyz"]
    with pytest.raises(dpf.InvalidArgument, match="has another"):
        frame.dp.filter((frame["count"] > 90).reset_index(drop=True))


def test_refused_words(released):
    frame = released[0]["agg"]
    for call, words in (
        (lambda dp: dp.relabel(), "values or columns must name"),
        (lambda dp: dp.relabel({"sex": {0: "x", 1: "x"}}), "keep keys different, and two of 'sex' would be 'x'"),
        (lambda dp: dp.relabel({"ward": {"A": "B"}}), "two of 'ward' would be 'B'"),
        (lambda dp: dp.relabel({"sex": {"f": "Men"}}), "must name keys of 'sex', which are '0', '1'"),
        (lambda dp: dp.relabel({"n": {0: "Men"}}), "must name columns of keys, not 'n'"),
        (lambda dp: dp.relabel({"sex": {0: 7}}), "must be words"),
        (lambda dp: dp.relabel(columns={"n": "mean"}), "two would be 'mean'"),
        (lambda dp: dp.relabel(columns={"n": "mean_error"}), "two would be 'mean_error'"),
        (lambda dp: dp.relabel(columns={"n_error": "x"}), "Name 'n', whose other columns follow"),
        (lambda dp: dp.relabel(columns={"wards": "x"}), "Did you mean 'ward'"),
        (lambda dp: dp.relabel(columns="n"), "must be a dict"),
        (lambda dp: dp.sort(), "at least one column"),
        (lambda dp: dp.sort("m"), "must name columns of the result, not 'm'"),
        (lambda dp: dp.sort("n", descending=1), "descending must be True or False"),
        (lambda dp: dp.head(0), "n must be at least 1"),
        (lambda dp: dp.head(True), "n must be a whole number"),
        (lambda dp: dp.select("m"), "must name columns of the result"),
        (lambda dp: dp.select(), "at least one column"),
        (lambda dp: dp.wide("n"), "must name a column of keys, not 'n'"),
        (lambda dp: dp.matrix(), "matrix must be asked of a correlation"),
    ):
        with pytest.raises(dpf.DpframeError, match=words):
            call(frame.dp)
    with pytest.raises(dpf.InvalidArgument, match="has bins, which show their edges"):
        released[0]["histogram"].dp.relabel({"age": {0: "young"}})
    with pytest.raises(dpf.InvalidArgument, match="which marks totals there"):
        released[0]["cube"].dp.relabel({"sex": {None: "both"}})


def test_words_for_missing_keys_and_a_part_of_the_keys(tmp_path):
    ledger = dpf.Ledger(epsilon=9, path=tmp_path / "a.ledger")
    frame = pl.DataFrame({"ward": ["A", None, "B"]})
    result = frame.dp.group_by("ward", keys=["A", "B", None]).count(epsilon=1, ledger=ledger)
    made = result.dp.relabel({"ward": {None: "unknown", "A": "first", "Z": "last"}})
    assert made["ward"].to_list() == ["first", "B", "unknown"]
    works(made, ledger, tmp_path)


def test_a_matrix_takes_no_pairs_of_several_groups():
    """As many rows as one group has pairs: each of another group, they made one matrix."""
    columns = ["x", "y", "z"]
    frame = pl.DataFrame({"group": ["A", "B", "C"] * 9} | {name: [1.0, 2.0, 3.0] * 9 for name in columns})
    asked = frame.dp.group_by("group", keys=["A", "B", "C"])
    bounds = dict.fromkeys(columns, (0, 4))
    pairs = asked.correlation(columns, bounds=bounds, epsilon=9, ledger=dpf.Ledger(epsilon=9))
    mixed = [True, False, False, False, True, False, False, False, True]
    with pytest.raises(dpf.InvalidArgument, match="must be of one group"):
        pairs.dp.filter(mixed).dp.matrix()
    assert pairs.dp.filter({"group": "B"}).dp.matrix().columns == ["column", *columns]


def test_matrices(released, tmp_path):
    frame = released[0]["correlation"]
    made = frame.dp.matrix()
    names = ["age", "cost"]
    value = frame["correlation"].to_list()[0]
    is_polars = isinstance(frame, pl.DataFrame)
    assert list(made.columns) == (["column", *names] if is_polars else names)
    square = np.array([made[name].to_list() for name in names])
    assert np.allclose(square, [[1, value], [value, 1]])
    assert (made["column"].to_list() if is_polars else made.index.to_list()) == names
    error = frame.dp.matrix("correlation_error")
    assert [error[name].to_list()[place] for place, name in enumerate(names)] == [0, 0]
    with pytest.raises(dpf.AlreadyReleased):
        made.dp.count(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match="must be of one group"):
        released[0]["covariances"].dp.matrix()
    women = released[0]["covariances"].dp.filter({"sex": 1})
    square = women.dp.matrix()
    for left, right, number in zip(*(women[name].to_list() for name in ("column", "other", "covariance")), strict=True):
        place = names.index(left)
        assert square[right].to_list()[place] == number


def test_plain_operations_lose_the_record_and_are_told_the_way(released):
    frame = released[0]["count"]
    plain = frame.filter(pl.col("count") > 90) if isinstance(frame, pl.DataFrame) else frame[frame["count"] > 90]
    with pytest.raises(dpf.DpframeError, match=r"\.dp\.filter"):
        plain.dp.table("markdown")
    renamed = frame.rename({"count": "n"}) if isinstance(frame, pl.DataFrame) else frame.rename(columns={"count": "n"})
    with pytest.raises(dpf.DpframeError, match=r"\.dp\.relabel"):
        renamed.dp.statement()


def test_reports_are_estimated_as_a_whole():
    people = pl.DataFrame({"drug": ["a", "b"] * 50})
    method = dpf.local.RandomizedResponse(["a", "b"], epsilon=1.0)
    ledger = dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit(neighbors="replace"))
    reports = people.dp.local.randomize("drug", method=method, ledger=ledger)
    for change in (lambda dp: dp.head(5), lambda dp: dp.sort("drug"), lambda dp: dp.filter([True] * 100)):
        with pytest.raises(dpf.InvalidArgument, match="reports are estimated as a whole"):
            change(reports.dp)
    estimates = dpf.local.estimate(reports)
    made = estimates.dp.sort(estimates.columns[1]).dp.head(1)
    assert made.dp.table("markdown")


def test_a_record_that_does_not_fit_its_release(released, tmp_path):
    frame = released[0]["count"].dp.head(3)
    for change in (
        lambda said: said.update(cells=["0 1 1"]),
        lambda said: said.update(cells=["0 1 9"]),
        lambda said: said.update(cells=["0 x 2"]),
        lambda said: said.update(labels={"other": "other"}),
        lambda said: said.update(measures={"count": ["count", 5]}),
        lambda said: said.update(measures={"count": ["mean", 0]}),
    ):
        record = json.loads(json.dumps(frame.dp.provenance))
        del record["altered"]
        change(record["shown"])
        build.write_parquet(frame, tmp_path / "forged.parquet", record)
        with pytest.raises(dpf.DpframeError):
            dpf.read_parquet(tmp_path / "forged.parquet").dp.table("markdown")
    record = json.loads(json.dumps(frame.dp.provenance))
    record["shown"]["steps"] = "none"
    build.write_parquet(frame, tmp_path / "forged.parquet", record)
    with pytest.raises(dpf.NoProvenance, match="its field shown"):
        dpf.read_parquet(tmp_path / "forged.parquet")


def test_numbers_that_were_altered_after_a_change(released):
    frame = released[0]["count"].dp.sort("count")
    if isinstance(frame, pl.DataFrame):
        return  # most changes of a Polars frame make a new frame, without the record
    frame.loc[frame.index[0], "count"] += 1
    assert frame.dp.provenance["altered"]
    with pytest.raises(dpf.InvalidArgument, match="some were changed"):
        frame.dp.head(2)


def test_charts_of_changed_results(released):
    pytest.importorskip("altair")
    results = released[0]
    for name, change in (
        ("count", lambda dp: dp.relabel({"sex": WORDS}, columns={"count": "People"})),
        ("agg", lambda dp: dp.wide("sex")),
        ("quantiles", lambda dp: dp.relabel(columns={"age_q0.25": "low", "age_q0.5": "middle"})),
        ("cube", lambda dp: dp.filter({"sex": [0]})),
        ("cube", lambda dp: dp.wide("sex")),
        ("marginals", lambda dp: dp.head(1)),
        ("marginals", lambda dp: dp.head(4)),
        ("correlation", lambda dp: dp.relabel({"column": {"age": "Age"}}, columns={"correlation": "r"})),
        ("covariances", lambda dp: dp.sort("covariance")),
        ("ranges", lambda dp: dp.head(2)),
        ("dates", lambda dp: dp.filter([True, False, True])),
        ("top with counts", lambda dp: dp.head(1)),
        ("discovered", lambda dp: dp.sort("count")),
    ):
        assert change(results[name].dp).dp.plot().to_dict(), name
    text = json.dumps(results["count"].dp.relabel({"sex": WORDS}, columns={"count": "People"}).dp.plot().to_dict())
    assert "Women" in text
    assert "People by sex and ward" in text
    labels = {"columns": {"count": "People", "ward": "Ward"}, "values": {"sex": WORDS}}
    chart = json.dumps(results["count"].dp.plot(x="ward", color="sex", value="count_noisy", labels=labels).to_dict())
    assert "Women" in chart
    assert "Ward" in chart


def test_labels_of_tables_and_pages(released, tmp_path):
    frame, ledger = released[0]["count"], released[1]
    labels = {"columns": {"count": "People", "ward": "Station"}, "values": {"sex": {"0": "Men", 1: "Women"}}}
    text = frame.dp.table("markdown", labels=labels)
    assert "Station" in text
    assert "| Men | A |" in text
    assert frame.columns[0] == "sex"
    frame.dp.write_html(tmp_path / "page.html", charts=False, labels=labels)
    assert "Women" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for wrong, words in (
        ({"count": "People"}, r"in 0\.2 it was flat.*Write labels={\"columns\": {'count': 'People'}}"),
        ({"columns": {"wards": "Ward"}}, "labels: columns must name keys or statistics.*Did you mean 'ward'"),
        (["People"], "labels must be a dict"),
    ):
        for write in (lambda of: frame.dp.table("csv", labels=of), lambda of: frame.dp.plot(labels=of)):
            with pytest.raises(dpf.DpframeError, match=words):
                write(wrong)
    named = pl.DataFrame(DATA).dp.count(epsilon=1, label="Stays", ledger=ledger)
    ledger.report(tmp_path / "all.html", named, charts=False, labels={"Stays": {"columns": {"count": "Persons"}}})
    assert "Persons" in (tmp_path / "all.html").read_text(encoding="utf-8")
    with pytest.raises(dpf.InvalidArgument, match=r"labels must name labels of the releases, \['Stays'\], not 'stays'"):
        ledger.report(tmp_path / "all.html", named, charts=False, labels={"stays": {}})


def test_joined_releases_with_names(released, tmp_path):
    frame, ledger = released[0]["count"], released[1]
    both = dpf.concat([frame, frame.dp.sort("count")], names=["Jan", "Feb"], column="month")
    assert next(iter(both.columns)) == "month"
    assert both["month"].to_list() == ["Jan"] * 6 + ["Feb"] * 6
    assert both.dp.provenance["names"] == ["Jan", "Feb"]
    assert table(both.dp.parts[1], ["sex", "ward"]) == table(frame, ["sex", "ward"])
    assert both.dp.to_numpy("count").shape == (2, 2, 3)
    works_joined(both, ledger, tmp_path)
    for names, column, words in (
        (["Jan"], "part", r"must be different, one for each release \(2 releases, none joined before\), not"),
        (["Jan", "Jan"], "part", "must be different, one for each release"),
        ("ab", "part", "names must be a list of text"),
        (["Jan", "Feb"], "ward", "column must be a name that no column"),
    ):
        with pytest.raises((dpf.InvalidArgument, dpf.InvalidType), match=words):
            dpf.concat([frame, frame], names=names, column=column)
    if not isinstance(both, pl.DataFrame):
        both.loc[0, "month"] = "Mar"
        assert both.dp.provenance["altered"]


def works_joined(frame, ledger, folder):
    frame.dp.write_parquet(folder / "both.parquet")
    back = dpf.read_parquet(folder / "both.parquet")
    assert type(back) is type(frame)
    assert back.dp.provenance == frame.dp.provenance
    assert not frame.dp.provenance["altered"]
    frame.dp.write_html(folder / "both.html", charts=False)
    ledger.verify(frame)
    assert len(frame.dp.errors()) == 2


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_floats_that_agree_in_15_digits_are_two_keys(library):
    near = 0.1 + 0.2
    rows = {"x": [0.3] * 30 + [near] * 90}
    frame = pl.DataFrame(rows) if library == "polars" else pytest.importorskip("pandas").DataFrame(rows)
    asked = {"epsilon": 1e6, "denoise": None, "ledger": dpf.Ledger(epsilon=1e9)}
    counts = frame.dp.group_by("x", keys=[0.3, near, 0.5]).count(**asked)
    for key, number in ((0.3, 30.0), (near, 90.0)):
        some = counts.dp.filter({"x": [key]})
        assert (list(some["x"]), list(some["count"])) == ([key], [number])
        assert some.dp.provenance["shown"]["steps"][-1]["where"] == {"x": [repr(key)]}
    with pytest.raises(
        dpf.InvalidArgument, match=r"keys of 'x', which are '0\.3', '0\.30000000000000004', '0\.5', not"
    ):
        counts.dp.filter({"x": [0.3 + 2e-16]})
    assert list(counts.dp.wide("x").columns)[::2] == ["0.3", "0.30000000000000004", "0.5"]
    named = counts.dp.relabel({"x": {0.3: "written", near: "summed"}})
    assert list(named["x"]) == ["written", "summed", "0.5"]


def test_edges_of_bins_are_named_as_people_write_them():
    frame = pl.DataFrame({"x": [0.05, 0.35, 0.95]})
    tenths = frame.dp.histogram("x", bins=10, range=(0, 1), epsilon=1e6, denoise=None, ledger=dpf.Ledger(epsilon=1e9))
    assert tenths["x_left"][3] == 0.1 + 0.2
    assert tenths.dp.filter({"x_left": [0.3]})["count"].to_list() == [1.0]
    assert tenths.dp.filter({"x_left": [0.1 + 0.2]})["count"].to_list() == [1.0]
    assert "0.3 to 0.4" in tenths.dp.wide("x").columns


def test_errors_of_a_wide_table():
    """In a wide cube, each cell has the error of its own level."""
    frame = pl.DataFrame(DATA)
    ledger = dpf.Ledger(epsilon=100, delta=1e-3, accounting="gdp")
    tables = frame.dp.marginals(["sex", "ward"], keys=KEYS, epsilon=1, delta=1e-6, ledger=ledger)
    wide = tables.dp.wide("sex").dp.errors(cells=True)
    before = tables.dp.errors(cells=True)
    for key, name in ((0, "0"), (1, "1"), (None, "all")):
        mine = before.filter(pl.col("sex").eq_missing(key)).sort("ward", nulls_last=True)
        after = wide.sort("ward", nulls_last=True)
        assert after[f"{name}_noisy_rmse"].to_list() == mine["count_noisy_rmse"].to_list()
        assert after[f"{name}_interval"].to_list() == mine["count_interval"].to_list()
    assert len(set(before["count_noisy_rmse"].round(6))) > 2


def test_steps_are_kept(released):
    made = released[0]["agg"].dp.sort("n").dp.filter({"sex": 1}).dp.relabel(columns={"n": "N"}).dp.head(2)
    steps = made.dp.provenance["shown"]["steps"]
    assert [step["verb"] for step in steps] == ["sort", "filter", "relabel", "head"]
    assert steps[1]["where"] == {"sex": ["1"]}
    assert "hold" in " ".join(made.dp.statement().split())
    again = made.dp.select("N")
    assert again.dp.provenance["shown"]["steps"][:4] == steps
