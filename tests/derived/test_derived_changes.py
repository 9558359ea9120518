"""Numbers computed from releases can be changed, labeled, shown and written like releases."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import polars as pl
import pytest
from seen import seen, table_of_page

import dpframe as dpf
from dpframe import noise
from dpframe.derived.linear import half_widths
from dpframe.derived.traced import Source
from dpframe.frames import foreign
from dpframe.queries.contrasts import ContrastDesign

ROWS = {"ward": ["A", "B", "A", "C"] * 100, "sex": [0, 1, 1, 0] * 100}
KEYS = {"ward": ["A", "B", "C"], "sex": [0, 1]}


def _counts(library: str):
    if library == "pandas":
        pytest.importorskip("pandas")
    rows = pl.DataFrame(ROWS) if library == "polars" else pl.DataFrame(ROWS).to_pandas()
    return rows.dp.group_by("ward", "sex", keys=KEYS).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))


MADE = {
    "total": lambda counts: counts.dp.total(by="ward"),
    "share": lambda counts: counts.dp.share(),
    "combine": lambda counts: dpf.combine("2 * a.count_noisy", {"a": counts}),
    "compare": lambda counts: dpf.compare(counts, 0, 1, by="sex"),
}
CHANGES = {
    "relabel": lambda made, name: made.dp.relabel({"ward": {"A": "One"}}),
    "columns": lambda made, name: made.dp.relabel(columns={name: "number"}),
    "filter": lambda made, name: made.dp.filter({"ward": ["A", "B"]}),
    "mask": lambda made, name: made.dp.filter(made[name] == made[name]),
    "sort": lambda made, name: made.dp.sort(name, descending=True),
    "head": lambda made, name: made.dp.head(2),
    "select": lambda made, name: made.dp.select(name),
    "several": lambda made, name: made.dp.sort(name).dp.head(2).dp.relabel(columns={name: "number"}),
}


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("change", CHANGES)
def test_derived_results_are_changed_with_their_record(made, change, library, tmp_path):
    pytest.importorskip("altair")
    derived = MADE[made](_counts(library))
    name = next(iter(derived.dp.provenance["measures"]))
    changed = CHANGES[change](derived, name)
    assert "covers" in changed.columns
    assert changed.dp.provenance["schema"] == "dpframe.derived/1"
    assert changed.dp.provenance["shown"]["steps"]
    assert not changed.dp.provenance["altered"]
    assert changed.dp.statement()
    assert changed.dp.table("markdown")
    assert changed.dp.plot().to_dict()
    changed.dp.write_parquet(tmp_path / "changed.parquet")
    again = dpf.read_parquet(tmp_path / "changed.parquet")
    assert list(again.columns) == list(changed.columns)
    assert not again.dp.provenance["altered"]


def test_a_wide_share_has_a_column_for_each_key():
    wide = _counts("polars").dp.share().dp.wide("sex")
    assert wide.columns == ["ward", "0", "0_low", "0_high", "1", "1_low", "1_high", "covers"]
    with pytest.raises(dpf.InvalidArgument, match=r"this is a comparison"):
        dpf.compare(_counts("polars"), 0, 1, by="sex").dp.wide("ward")


@pytest.mark.parametrize("made", MADE)
def test_labels_are_taken(made, tmp_path):
    pytest.importorskip("altair")
    derived = MADE[made](_counts("polars"))
    name = next(iter(derived.dp.provenance["measures"]))
    labels = {"columns": {name: "People"}, "values": {"ward": {"A": "Cardiology"}}}
    text = derived.dp.table("markdown", labels=labels)
    assert "People" in text
    assert "Cardiology" in text
    assert "Cardiology" in str(derived.dp.plot(labels=labels).to_dict())
    derived.dp.write_html(tmp_path / "page.html", labels=labels)
    assert "Cardiology" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(dpf.InvalidArgument, match=r"labels"):
        derived.dp.table("markdown", labels={"ward": "Station"})


@pytest.mark.parametrize(
    ("verb", "n", "of_weeks", "of_keys"),
    [
        ("rolling", 3, "moving average of count over 3 weeks", "moving average of count over 3 places"),
        ("difference", 2, "difference of count from 2 weeks before", "difference of count from 2 places before"),
        ("change", 2, "change of count in percent over 2 weeks", "change of count in percent over 2 places"),
        ("change", 1, "change of count in percent", "change of count in percent"),
    ],
)
def test_words_name_the_number_of_steps(verb, n, of_weeks, of_keys):
    rows = pl.DataFrame({"day": [date(2026, 1, 5), date(2026, 1, 14), date(2026, 1, 20), date(2026, 1, 30)] * 50})
    weeks = rows.dp.group_by("day", keys=dpf.dates("2026-01-05", "2026-01-26", every="1w"))
    counts = weeks.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    for frame, said in ((counts, of_weeks), (_counts("polars").dp.filter({"sex": 0}), of_keys)):
        changed = getattr(frame.dp, verb)(n)
        assert changed.dp.statement().startswith(f"This is the {said} by ")
        assert said[1:] in changed.dp.table("markdown")


def with_subtotals(words):
    """Return numbers computed from all subtotals of a table (cube), or from those of its first keys (rollup)."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ward": ["A"] * 300 + ["B"] * 200 + ["C"] * 100, "sex": [0, 1] * 300})
    by = frame.dp.group_by("ward", "sex", keys=KEYS)
    with dpf.Ledger(epsilon=20):
        first, second = (by.count(**{words: True}, epsilon=5, denoise=None) for _ in range(2))
    return dpf.combine("2 * a.count - b.count", {"a": first, "b": second})


def test_subtotals_that_were_computed_stand_at_their_keys_in_any_order_of_rows(tmp_path):
    """Two-way tables place each cell by its keys; other tables keep the order of the rows."""
    pytest.importorskip("altair")
    whole, double = map(with_subtotals, ("cube", "rollup"))
    moved = whole.sort_values("value", ascending=False)  # this keeps the record
    assert moved.dp.table("markdown") == whole.dp.table("markdown")
    assert moved.dp.statement() == whole.dp.statement()
    assert table_of_page(moved, tmp_path) == table_of_page(whole, tmp_path)
    order = double.dp.sort("value").dp.table("csv").splitlines()
    assert [float(line.split(",")[2]) for line in order[-len(double) :]] == sorted(double["value"])


@pytest.mark.parametrize("asked", [{}, {"x": "ward"}], ids=str)
@pytest.mark.parametrize("words", ["cube", "rollup"])
def test_charts_find_computed_subtotals_by_their_place(words, asked):
    pytest.importorskip("altair")
    one = with_subtotals(words)
    for first, second in ((one, one.sort_values("value")), (one.dp.sort("ward"), one.dp.sort("value"))):
        assert first.dp.plot(**asked).to_dict() == second.dp.plot(**asked).to_dict()


# Some rows of a release ---------------------------------------------------------------------------------------------

MONTHS = [1, 2, 3, 4, 5]
VISITS = {"ward": ["A", "B", "A", "C"] * 100, "sex": [0, 1, 1, 0] * 100, "month": [1, 2, 3, 4, 5] * 80}
ALL_KEYS = {**KEYS, "month": MONTHS}
DAYS = [date(2026, month, 3) for month in VISITS["month"]]


def _tables(frame, **more):
    ledger = dpf.Ledger(epsilon=10, delta=1e-4)
    return frame.dp.marginals(list(ALL_KEYS), keys=ALL_KEYS, epsilon=1, delta=1e-6, ledger=ledger, **more)


def _series(frame):
    months = dpf.dates("2026-01-01", "2026-05-31", every="1mo")
    frame = frame.assign(day=DAYS) if hasattr(frame, "assign") else frame.with_columns(day=pl.Series(DAYS))
    by = frame.dp.group_by("ward", "day", keys={"ward": KEYS["ward"], "day": months})
    return by.count(epsilon=1, ledger=dpf.Ledger(epsilon=1), denoise=None)


def _numbers(frame, name):
    return np.asarray(frame[name], dtype=np.float64)


def _dense(tables):
    """Return the covariance of all cells of marginals, computed from their design only."""
    facts = tables.dp.provenance
    said = facts["measures"]["count"]
    design = ContrastDesign(tuple(axis["size"] for axis in facts["cells"]), said["degree"], said["objective"])
    moved = [np.concatenate([t.ravel() for t in design.reconstructed(one)]) for one in np.eye(design.width)]
    return np.stack(moved).T @ np.diag((design.scales * facts["statistics"][0]["scale"]) ** 2) @ np.stack(moved)


@pytest.mark.parametrize(
    ("where", "by", "members"),
    [
        ({"ward": ["A", "C"]}, None, {"ward": ["A", "C"], "sex": [None], "month": [None]}),
        ({"ward": ["A", "C"]}, "month", {"ward": ["A", "C"], "sex": [None]}),
        ({"ward": "B", "month": [2, 5]}, None, {"ward": ["B"], "sex": [None], "month": [2, 5]}),
        ({"month": [1, 2, 3]}, ["sex"], {"ward": [None], "month": [1, 2, 3]}),
    ],
)
def test_totals_of_filtered_marginals_have_the_variance_of_the_dense_matrix(where, by, members):
    from scipy.sparse import csr_array

    tables = _tables(pl.DataFrame(VISITS), denoise=None)
    some = tables.dp.filter(where)
    total = some.dp.total(by)
    labels = [by] if isinstance(by, str) else by or []
    rows = tables.with_row_index().with_columns(pl.col("index").cast(pl.Int64))
    kept = [
        all(row[name] in keys for name, keys in members.items()) and all(row[name] is not None for name in labels)
        for row in rows.to_dicts()
    ]
    mine = rows.filter(kept)
    groups = (
        mine.group_by(labels, maintain_order=True).agg("index", "count")
        if labels
        else mine.select(pl.col("index").implode(), pl.col("count").implode())
    )
    assert np.allclose(_numbers(total, "count"), [sum(group) for group in groups["count"].to_list()])
    weights = np.zeros((len(groups), len(tables)))
    for number, places in enumerate(groups["index"].to_list()):
        weights[number, places] = 1.0
    dense = np.einsum("ij,jk,ik->i", weights, _dense(tables), weights)
    whole = Source.of("it", tables).form("count").summed(csr_array(weights))
    assert np.allclose(whole.variances(), dense, rtol=1e-9)
    assert np.allclose(_numbers(total, "count_error"), half_widths(whole, 0.95), rtol=1e-9)
    form = Source.of("it", some).form("count")
    places = [
        place for place, row in enumerate(rows.to_dicts()) if all(row[n] in np.ravel(k) for n, k in where.items())
    ]
    assert np.allclose(form.variances(), np.diag(_dense(tables))[places], rtol=1e-9)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_some_rows_are_those_cells_in_any_order(library):
    """Filters, sorts, new names and wide tables keep the numbers and the noise of the remaining cells."""
    if library == "pandas":
        pytest.importorskip("pandas")
    frame = pl.DataFrame(VISITS) if library == "polars" else pl.DataFrame(VISITS).to_pandas()
    counts = _series(frame)
    whole = counts.dp.difference()
    kept = [row for row in zip(whole["ward"], whole["day"], whole["count"], strict=True) if row[0] != "B"]
    mask = {"ward": ["C", "A"]} if library == "pandas" else pl.col("ward") != "B"
    renamed = counts.dp.relabel({"ward": {"A": "One"}}, columns={"count": "n", "day": "when"})
    views = {
        "mapping": (counts.dp.filter({"ward": ["A", "C"]}), "count"),
        "mask": (counts.dp.filter(mask), "count"),
        "sorted": (counts.dp.filter(mask).dp.sort("count", descending=True), "count"),
        "names": (renamed.dp.filter({"ward": ["One", "C"]}), "n"),
    }
    for view, name in views.values():
        found = view.dp.difference()
        assert _numbers(found, name).tolist() == [row[2] for row in kept]
        assert set(_numbers(found, f"{name}_error")) == set(_numbers(whole, "count_error"))
        assert _numbers(view.dp.total(), name)[0] == sum(
            n for w, n in zip(counts["ward"], counts["count"], strict=True) if w != "B"
        )
    wide = counts.dp.wide("ward")
    assert _numbers(wide.dp.total(), "B").tolist() == [_numbers(counts.dp.total("ward"), "count")[1]]
    apart = dpf.combine("w.A - w.C", {"w": wide})
    assert set(_numbers(apart, "value_error")) == {4.0}
    assert (_numbers(dpf.combine("a - b", {"a": counts, "b": counts.dp.filter(mask)}), "value_error") == 0.0).all()
    record = views["mapping"][0].dp.total().dp.provenance
    assert record["of"][0]["shown"][0]["where"] == {"ward": ["A", "C"]}
    assert "10 of 15 released rows are shown, so a total of them is no total of all" in record["notes"]
    record = counts.dp.head(1).dp.total().dp.provenance
    assert "1 of 15 released rows is shown, so a total of it is no total of all" in record["notes"]


def test_shares_stand_as_the_rows_of_their_frame():
    counts = _series(pl.DataFrame(VISITS)).dp.sort("count", descending=True)
    share = counts.dp.share()
    assert share.select("ward", "day").equals(counts.select("ward", "day"))
    assert np.allclose(share["count"], counts["count"] / counts["count"].sum())


def test_shares_of_sums_of_both_signs_are_not_cut_to_0_and_1(tmp_path):
    rows = pl.DataFrame({"ward": ["A", "B", "C"] * 100, "gain": [10.0, -8.0, 3.0] * 100})
    wards = rows.dp.group_by("ward", keys=["A", "B", "C"])
    price = {"epsilon": 10, "checks": False, "ledger": dpf.Ledger(epsilon=20)}
    gains, costs = (wards.sum("gain", bounds=bounds, **price) for bounds in ((-20, 20), (-20, 0)))
    share = gains.dp.share()
    share.dp.write_parquet(tmp_path / "share.parquet")
    for one in (share, dpf.read_parquet(tmp_path / "share.parquet")):
        lines = [line.split(",") for line in one.dp.table("csv").splitlines()[-3:]]
        for (_, value, low, high), exact in zip(lines, (2.0, -1.6, 0.6), strict=True):
            assert float(low) < float(value) < float(high)
            assert abs(float(value) - exact) < 0.5
    assert costs.dp.share().dp.provenance["measures"]["gain_sum"]["verb"] == "share"


def test_the_text_of_a_chart_says_of_what_it_was_computed():
    pytest.importorskip("altair")
    said = _counts("polars").dp.share().dp.plot().to_dict()["description"]
    assert "Computed from 1 release (epsilon 1), at no cost." in said
    assert "epsilon 0" not in said


def test_a_step_between_keys_that_were_left_out_is_refused():
    counts = _series(pl.DataFrame(VISITS))
    gap = counts.dp.filter(pl.col("day").dt.month().is_in([1, 2, 4]))
    for verb in ("difference", "change", "rolling"):
        with pytest.raises(dpf.InvalidArgument, match=r"even steps, and of day some between others were left out"):
            getattr(gap.dp, verb)(2)
    assert gap.dp.cumulative()["day"].dt.month().to_list() == [1, 2, 4] * 3
    odd = counts.dp.filter(pl.col("day").dt.month().is_in([1, 3, 5])).dp.filter({"ward": "A"})
    assert odd.dp.difference()["day"].dt.month().to_list() == [3, 5]
    with pytest.raises(dpf.InvalidArgument, match=r"n must be at most 2"):
        odd.dp.difference(3)


def test_a_line_runs_where_the_other_keys_are_filtered_to_one():
    by = pl.DataFrame({**VISITS, "day": DAYS, "age": [float(n % 90) for n in range(400)]}).dp
    months, price = dpf.dates("2026-01-01", "2026-05-31", every="1mo"), {"epsilon": 1, "denoise": None}
    with dpf.Ledger(epsilon=2):
        bins = by.group_by("day", keys=months).histogram("age", bins=[0, 30, 60, 90], **price)
        pairs = by.group_by("ward", "sex", keys=KEYS).count(**price)
    for result, one, along in ((bins, {"age_left": 30}, "day"), (pairs, {"ward": "A"}, "sex")):
        with pytest.raises(dpf.InvalidArgument, match=r"one key in order.*filter the others to one key: result"):
            result.dp.cumulative()
        line = result.dp.filter(one)
        assert line.dp.cumulative()["count"].to_list() == line["count"].cum_sum().to_list()
        assert line.dp.difference()[along].to_list() == line[along].to_list()[1:]
    day = bins.dp.filter({"day": date(2026, 2, 1)})
    assert day.dp.cumulative()["count"].to_list() == day["count"].cum_sum().to_list()


def test_sums_of_a_moving_average_have_as_many_times_its_error():
    line = _series(pl.DataFrame(VISITS)).dp.filter({"ward": "A"})
    mean, total = line.dp.rolling(4), line.dp.head(4).dp.total()
    for name in ("count", "count_error"):
        assert 4 * mean[name][0] == total[name][0]


def test_what_was_chosen_by_its_noise_is_refused():
    counts = _series(pl.DataFrame(VISITS))
    asked = {
        "expression": counts.dp.filter(pl.col("count") > 20),
        "a column by its place": counts.dp.filter(pl.nth(counts.columns.index("count")) > 20),
        "a pattern of names": counts.dp.filter(pl.col("^count$") > 20),
        "a series in an expression": counts.dp.filter((pl.col("ward") == "A") & (counts["count"] > 0)),
        "places": counts.dp.sort("count", descending=True).dp.filter(pl.int_range(pl.len()) < 3),
        "mask": counts.dp.filter(counts["count"] > 20),
        "both": counts.dp.filter((counts["ward"] == "A") & (counts["count"] > 0)),
        "head": counts.dp.sort("count", descending=True).dp.head(3),
    }
    for chosen in asked.values():
        with pytest.raises(dpf.InvalidArgument, match=r"chosen (some )?by their noisy numbers.*Compute first"):
            chosen.dp.total()
        with pytest.raises(dpf.InvalidArgument, match=r"chosen (some )?by their noisy numbers"):
            dpf.combine("a + 1", {"a": chosen})
    with pytest.raises(dpf.InvalidType, match="this expression gives several columns"):
        counts.dp.filter(pl.col("count", "ward").is_not_null())
    last = counts.dp.filter(pl.col("day") == pl.col("day").max())
    assert last.dp.total()["count"][0] == last["count"].sum()
    first = counts.dp.share().dp.sort("count", descending=True).dp.head(3)
    assert len(first) == 3
    assert counts.dp.head(5).dp.total()["count"][0] == counts["count"][:5].sum()


@pytest.mark.parametrize("descending", [True, False])
def test_keys_that_noisy_numbers_put_first_are_chosen_by_them(descending):
    """This holds even if they are first by chance; without a sort by numbers, the first key is fixed."""
    with dpf.Ledger(epsilon=10), noise.insecure_bits(1):
        rising = pl.DataFrame({"k": [2, 4, 4]}).dp.group_by("k", keys=[1, 2, 3, 4]).count(epsilon=9, denoise=None)
    assert rising["count"].to_list() == [0, 1, 0, 2]
    key = pl.col("k")
    for given in (key == key.first(), (key == key.first()) | (key == key.last()), key.is_in(key.head(2).implode())):
        chosen = rising.dp.sort("count", descending=descending).dp.filter(given)
        with pytest.raises(dpf.InvalidArgument, match="by their noisy numbers"):
            chosen.dp.total()
        assert rising.dp.filter(given).dp.total()["count"][0] >= 0
        assert rising.dp.sort("k", descending=True).dp.filter(given).dp.total()["count"][0] >= 0
    assert len(rising.dp.sort("count", descending=descending).dp.filter(key >= 2).dp.total()) == 1


def test_no_statistic_gets_the_name_of_a_column_of_another():
    """A column `n_noisy` is read as the unbiased values of `n`, the center of its interval."""
    frame = pl.DataFrame({"g": ["x", "y"], "k": ["a", "a_noisy"]})
    keys = {"g": ["x", "y"], "k": ["a", "a_noisy"]}
    with dpf.Ledger(epsilon=10):
        both = frame.dp.group_by("g", keys=["x", "y"]).agg(n=dpf.count(), m=dpf.count("k"), epsilon=1, denoise=None)
        cells = frame.dp.group_by("g", "k", keys=keys).count(epsilon=1, denoise=None)
    for end in ("noisy", "error", "low", "high"):
        with pytest.raises(dpf.InvalidArgument, match=f"n_{end}"):
            both.dp.relabel(columns={"m": f"n_{end}"})
    with pytest.raises(dpf.InvalidArgument, match="a_noisy"):
        cells.dp.wide("k")


def test_a_joined_frame_says_what_all_its_parts_protect():
    frame = pl.DataFrame({"u": [1, 1, 2], "g": ["x", "y", "y"]})
    rows = frame.dp.group_by("g", keys=["x", "y"]).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    people = frame.dp.group_by("g", keys=["x", "y"]).count(
        epsilon=1, max_rows=1, ledger=dpf.Ledger(epsilon=1, unit="u")
    )
    with dpf.testing.exact():
        exact = frame.dp.group_by("g", keys=["x", "y"]).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert "protects each row, add-remove neighbors or each value of 'u'" in repr(dpf.concat([rows, people]).dp)
    assert "NOT PRIVATE" in repr(dpf.concat([rows, exact]).dp)
    assert "NOT PRIVATE" in repr(dpf.concat([rows.dp.share(), exact.dp.share()]).dp)


def test_who_changes_a_record_that_was_read_changes_no_frame():
    counts = _series(pl.DataFrame(VISITS))
    first, joined = counts.dp.filter({"ward": ["A"]}), dpf.concat([counts, counts])
    before = json.dumps(counts.dp.provenance)
    for frame in (first, counts, joined):
        said = frame.dp.provenance
        for record in said.get("parts", [said]):
            record["statistics"][0]["scale"] = 1e-3
            record["cost"]["epsilon"] = 1e-9
            record["notes"].append("exact")
    assert json.dumps(counts.dp.provenance) == before
    by_group = dict.fromkeys(range(101), (0, 1))
    grouped = pl.DataFrame({"k": [1], "x": [0.5]}).dp.group_by("k", keys=range(101))
    sums = grouped.sum("x", bounds=by_group, epsilon=1, ledger=dpf.Ledger(epsilon=1))
    sums.dp.provenance["measures"]["x_sum"]["bounds_of_groups"][0][1] = 99
    assert sums.dp.provenance["measures"]["x_sum"]["bounds_of_groups"][0] == [0.0, 1.0]
    assert first.dp.provenance["cost"] == counts.dp.provenance["cost"] != said["parts"][0]["cost"]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_mask_of_keys_may_have_been_made_of_numbers(library):
    """A mask that is mapped from keys, or looked up in the keys of the largest numbers, has the name of the keys."""
    if library == "pandas":
        pytest.importorskip("pandas")
    wards = _counts(library).dp.filter({"sex": 0})
    ward, numbers = wards["ward"], dict(zip(wards["ward"], wards["count"], strict=True))
    top = sorted(numbers, key=numbers.get)[1:]
    of_keys = ward.isin(top) if library == "pandas" else ward.is_in(top)
    mapped = ward.map(numbers) if library == "pandas" else ward.replace_strict(numbers)
    for mask in (of_keys, mapped >= numbers[top[0]]):
        assert mask.name == "ward"
        chosen = wards.dp.filter(mask)
        assert chosen.dp.provenance["shown"]["steps"][-1]["by_numbers"]
        assert "chosen for its noisy number" in chosen.dp.statement()
        with pytest.raises(dpf.InvalidArgument, match=r"a mask may have chosen some .*result\.dp\.filter\(\{"):
            chosen.dp.total()
    assert "chosen for its noisy number" not in wards.dp.filter({"ward": top}).dp.statement()


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_the_first_rows_of_an_order_that_was_not_recorded_are_taken_as_chosen_by_noise(library, tmp_path):
    """Noise leaves 20 equal groups in their declared order with a chance below 1e-6: then none would be chosen."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ward": [*range(20)] * 200})
    counts = frame.dp.group_by("ward", keys=[*range(20)]).count(epsilon=0.2, denoise=None, ledger=dpf.Ledger(epsilon=1))
    sort = counts.sort_values("count", ascending=False)  # this keeps the record
    sort.dp.write_parquet(tmp_path / "sorted.parquet")
    by_keys = counts.dp.sort("ward", descending=True)
    by_keys.dp.write_parquet(tmp_path / "keys.parquet")
    if library == "polars":
        counts = dpf.read_parquet(tmp_path / "keys.parquet", like="polars").dp.sort("ward")
    sort, by_keys = (dpf.read_parquet(tmp_path / name, like=library) for name in ("sorted.parquet", "keys.parquet"))
    moved = {
        "as it is": sort,
        "filtered": sort.dp.filter({"ward": [*range(15)]}),
        "renamed": sort.dp.relabel({"ward": {0: "none"}}),
        "fewer": sort.dp.head(10),
    }
    if library == "pandas":
        moved["after a sort by keys"] = by_keys.sort_values("count")
    for chosen in moved.values():
        with pytest.raises(dpf.InvalidArgument, match=r"head may have chosen some .*\.dp\.sort did not make the order"):
            chosen.dp.head(3).dp.total()
        assert "chosen for its noisy number" in chosen.dp.head(3).dp.statement()
    assert sort.dp.head(3).dp.provenance["shown"]["steps"][0] == {"verb": "reorder", "numbers": True}
    assert sort.dp.total().equals(counts.dp.total())
    named = by_keys.dp.relabel({"ward": {19: "last"}})
    for first, wards in ((counts, [0, 1, 2]), (by_keys, [19, 18, 17]), (named, ["last", "18", "17"])):
        assert first.dp.head(5).dp.head(3)["ward"].to_list() == wards
        assert first.dp.head(5).dp.head(3).dp.total()["count"].to_list() == [sum(first["count"].to_list()[:3])]


def test_other_changes_of_a_frame_are_refused_with_the_way_out():
    pandas = pytest.importorskip("pandas")
    counts = _series(pandas.DataFrame(VISITS))
    for changed in (counts[counts["ward"] == "A"], counts.loc[2:4], counts.head(3), counts.nlargest(2, "count")):
        with pytest.raises(dpf.InvalidArgument, match=r"15 rows of the release.*\.dp\.filter"):
            changed.dp.total()
    for order in (counts.sort_values("count"), counts[::-1], counts.sample(frac=1.0, random_state=0)):
        assert order.dp.total(by="ward").equals(counts.dp.total(by="ward"))
    polars = _series(pl.DataFrame(VISITS)).filter(pl.col("ward") == "A")
    with pytest.raises(dpf.NoProvenance, match=r"\.dp\.filter"):
        dpf.combine("a", {"a": polars})


def test_a_total_is_of_the_level_whose_sums_have_the_least_noise():
    rows = {"ward": ["A", "B"] * 300, "sex": [0, 1, 1] * 200, "week": [*range(20)] * 30, "id": [*range(100)] * 6}
    keys = {**KEYS, "week": [*range(20)]}
    by = pl.DataFrame(rows).dp.group_by(*keys, keys=keys)
    for shape in ({"rollup": True}, {"cube": True}):
        found = by.count(epsilon=1, denoise=None, ledger=dpf.Ledger(epsilon=1), **shape)
        some = found if "rollup" in shape else found.dp.filter({"ward": ["A", "B", "C"]})  # drops the level (sex,)
        pairs = found.filter(pl.col("ward").is_not_null(), pl.col("sex").is_not_null(), pl.col("week").is_null())
        sums = pairs.group_by("sex", maintain_order=True).agg(pl.col("count").sum())
        assert some.dp.total("sex").select("sex", "count").equals(sums)
        single = found.filter(pl.col("ward").is_not_null(), pl.col("sex").is_null(), pl.col("week").is_null())
        assert some.dp.total("ward")["count"].to_list() == single["count"].to_list()
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, unit="id")
    price = {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian", "max_rows": 1, "max_groups": 40, "checks": False}
    found = by.count(rollup=True, denoise=None, ledger=ledger, **price)
    cells = found.filter(pl.col("week").is_not_null()).group_by("sex", maintain_order=True).agg(pl.col("count").sum())
    assert np.allclose(found.dp.total("sex")["count"], cells["count"])  # 60 cells have less noise than 3 pairs


def test_a_mask_of_two_columns_of_keys_is_not_said_to_be_of_numbers():
    counts = _counts("pandas")
    both = counts.dp.filter((counts["ward"] == "A") & (counts["sex"] == 1))  # pandas keeps no name for this mask
    with pytest.raises(dpf.InvalidArgument, match=r"a mask may have chosen some .*result\.dp\.filter\(\{"):
        both.dp.total()
    counts.dp.filter({"ward": "A", "sex": 1}).dp.total()


def test_tables_of_which_different_keys_were_filtered_are_refused():
    tables = _tables(pl.DataFrame(VISITS))
    for uneven in (
        tables.dp.head(3),
        tables.dp.filter((pl.col("ward") == "A") | (pl.col("sex") == 1)),
        tables.dp.filter({"ward": ["A", None]}),
    ):
        with pytest.raises(dpf.InvalidArgument, match=r"the same keys in all of its tables"):
            uneven.dp.total()
    one = tables.dp.filter(pl.col("month").is_not_null() & pl.col("ward").is_null() & pl.col("sex").is_null())
    assert one.dp.difference()["month"].to_list() == [2, 3, 4, 5]
    assert one.dp.share()["count"].sum() == pytest.approx(1.0)
    with pytest.raises(dpf.InvalidArgument, match=r"the cells of one table"):
        tables.dp.filter({"ward": "A"}).dp.difference()


def test_populations_and_tests_of_some_rows_are_those_of_the_whole():
    frame = pl.DataFrame({**VISITS, "cost": [1.0, 5.0, 9.0, 2.0] * 100})
    asked = {"n": dpf.count(), "cost": dpf.mean("cost", bounds=(0, 10)), "all": dpf.sum("cost", bounds=(0, 10))}
    wards = frame.dp.group_by("ward", keys=KEYS["ward"]).agg(
        asked, epsilon=3, population=True, ledger=dpf.Ledger(epsilon=3)
    )
    some = wards.dp.filter({"ward": ["C", "A"]})
    whole = wards.dp.errors(cells=True, covers="population")
    assert some.dp.errors(cells=True, covers="population").equals(whole.filter(pl.col("ward") != "B"))
    assert dpf.compare(some, "C", "A").equals(dpf.compare(wards, "C", "A"))
    only = some.dp.select("cost").dp.errors(cells=True, covers="population")
    assert only["cost_interval"].to_list() == whole.filter(pl.col("ward") != "B")["cost_interval"].to_list()
    assert "margin of error of cost (noise and sampling)" in some.dp.statement()
    cross = _counts("polars")
    test = cross.dp.filter({"ward": ["A", "C"]}).dp.chi2()
    assert test["degrees"].to_list() == [1]
    with pytest.raises(dpf.InvalidArgument, match=r"every pair of at least two keys"):
        cross.dp.head(5).dp.chi2()


@pytest.mark.parametrize("value", [5, [], {}, None, "5"], ids=str)
@pytest.mark.parametrize("field", ["shown", "top", "suggested", "rounded", "checks", "stream", "found"])
def test_a_field_that_no_computed_result_has_is_told_before_it_is_used(field, value):
    """A forged file may claim anything about computed numbers, too."""
    frame = pl.DataFrame({"w": list("AABB")})
    counts = frame.dp.group_by("w", keys=["A", "B"]).count(epsilon=1, denoise=None, ledger=dpf.Ledger(epsilon=9))
    record = counts.dp.share().dp.filter({"w": ["B"]}).dp.provenance
    assert foreign.problem_of(record) == ""
    assert f"its field {field} must be" in foreign.problem_of(record | {field: value})


def test_steps_between_dates_that_a_filter_left_are_stated():
    months = dpf.dates("2026-01-01", "2026-12-31", every="1mo")
    rows = pl.DataFrame({"day": [date(2026, month, 9) for month in range(1, 13)] * 20})
    counts = rows.dp.group_by("day", keys=months).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    odd = counts.dp.filter({"day": [f"2026-{month:02}-01" for month in range(1, 13, 2)]})
    said = {
        "difference of count from 2 months before": odd.dp.difference(),
        "difference of count from 4 months before": odd.dp.difference(2),
        "change of count in percent over 4 months": odd.dp.change(2),
        "moving average of count over 2 places": odd.dp.rolling(2),
        "difference of count": counts.dp.difference(),
        "moving average of count over 2 months": counts.dp.rolling(2),
    }
    for words, result in said.items():
        assert result.dp.statement().startswith(f"This is the {words} by day (months),")


@pytest.mark.parametrize("verb", ["change", "difference", "rolling"])
@pytest.mark.parametrize("by", ["bins", "dates"])
def test_rows_that_a_step_leaves_keep_their_bins_and_dates(verb, by):
    pytest.importorskip("altair")
    if by == "bins":
        frame = pl.DataFrame({**VISITS, "age": [float(n % 90) for n in range(400)]})
        wards = frame.dp.group_by(dpf.bins("age", [0, 15, 30, 45, 60, 75, 90]), "ward", keys={"ward": KEYS["ward"]})
        counts = wards.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    else:
        counts = _series(pl.DataFrame(VISITS))
    made = getattr(counts.dp, verb)(2)
    axes, whole = ({axis["columns"][0]: axis for axis in one.dp.provenance["cells"]} for one in (made, counts))
    column = "age" if by == "bins" else "day"
    cut = {**whole[column], "size": whole[column]["size"] - (1 if verb == "rolling" else 2)}
    assert axes == {"ward": whole["ward"], column: cut}
    chart = str(made.dp.plot().to_dict())
    assert f"'title': '{column}'" in chart
    assert "age_left" not in chart
    assert "'field': 'cell'" not in chart  # the field of an axis of names


def test_groups_that_are_not_all_combinations_of_their_keys_are_one_axis():
    counts = _series(pl.DataFrame(VISITS))
    uneven = counts.dp.filter((pl.col("ward") == "A") | (pl.col("day").dt.month() < 4))
    (axis,) = uneven.dp.difference().dp.provenance["cells"]
    assert axis == {"columns": ["ward", "day"], "size": 8, "keys": ["key", "key"]}


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda counts: counts.dp.change(), "change of count in percent"),
        (lambda counts: counts.dp.rolling(3), "moving average of count over 3 months"),
        (lambda counts: counts.dp.share("ward").dp.relabel(columns={"count": "part"}), "share of count"),
        (lambda counts: dpf.combine("a.count*2", {"a": counts}), "a.count*2"),
    ],
    ids=["change", "rolling", "share", "combine"],
)
def test_a_wide_computed_result_says_what_was_computed(made, words):
    pytest.importorskip("altair")
    wide = made(_series(pl.DataFrame(VISITS))).dp.wide("ward")
    title = f"{words if '.' in words else words.capitalize()} by day (months) and ward"
    assert f"**{title}**" in wide.dp.table("markdown").replace("\\", "")
    assert f"is the {words} by day (months) and ward," in wide.dp.statement().replace("is a.", "is the a.")
    chart = seen(wide.dp.plot())
    assert chart["title"]["text"] == title
    assert f"'{words}, A'" in str(chart)
    assert "number of rows" not in str(chart)


@pytest.mark.parametrize("verb", ["mean", "proportion", "ratio"])
def test_a_mean_of_all_groups_together_is_not_called_a_total(verb):
    pytest.importorskip("altair")
    frame = pl.DataFrame({"ward": list("AB") * 200, "x": [0.0, 1.0, 1.0, 0.0] * 100, "n": [1.0] * 400})
    asked = {
        "mean": dpf.mean("x", bounds=(0, 1)),
        "proportion": dpf.proportion("x"),
        "ratio": dpf.ratio("x", "n", bounds={"x": (0, 1), "n": (0, 1)}),
    }[verb]
    result = frame.dp.group_by("ward", keys=["A", "B"]).agg(
        {"part": asked, "rows": dpf.count()}, epsilon=50, ledger=dpf.Ledger(epsilon=50)
    )
    total = result.dp.total()
    assert abs(total["part"][0] - 0.5) < 0.2
    assert total.dp.provenance["measures"]["part"]["verb"] == verb
    words = "part of all groups together"
    assert f"This is the {words} and total of rows, computed" in total.dp.statement()
    assert f"**{words}, total of rows**" in total.dp.table("markdown")
    assert seen(total.dp.select("part").dp.plot())["title"]["text"] == words  # a name stays as it is
    assert f"the {words} by ward, computed" in result.dp.total("ward").dp.select("part").dp.statement()


def test_what_an_expression_takes_of_a_release_is_not_said_to_be_left_out():
    counts = _counts("polars")
    parts = {"a": counts.dp.filter({"sex": [0]}), "b": counts.dp.filter({"sex": [1]})}
    made = dpf.combine("a.count_noisy - b.count_noisy", parts, on="ward")
    assert not any("released rows" in note for note in made.dp.provenance["notes"])


def test_a_count_falls_by_100_percent_at_most():
    rows = pl.DataFrame({"k": [0] * 30 + [1], "x": [-1.0] * 31})
    asked = rows.dp.group_by("k", keys=[0, 1])
    asked_of = {"epsilon": 0.5, "ledger": dpf.Ledger(epsilon=9)}
    for _ in range(20):
        made = asked.count(denoise=None, **asked_of).dp.change()
        assert -100 <= made["count_low"][0] <= made["count"][0] <= made["count_high"][0]
        both = asked.sum("x", bounds=(-1, 1), **asked_of).dp.change()
        if both["x_sum_low"][0] < -100:
            break
    else:
        pytest.fail("sums of both signs may change by more")


def test_names_of_parts_come_with_their_column():
    parts = [_counts("polars"), _counts("polars")]
    with pytest.raises(dpf.MissingArgument, match="names must be given with column"):
        dpf.concat(parts, column="month")
    assert dpf.concat(parts, names=["a", "b"], column="month").columns[0] == "month"
