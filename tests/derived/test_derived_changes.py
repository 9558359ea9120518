"""Numbers that were computed from releases are changed, labelled, shown and written as releases are."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dpf

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
