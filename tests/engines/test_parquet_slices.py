"""Slices of scans of Parquet files: each row comes once, in order, and only a plain scan is sliced."""

from __future__ import annotations

import os
import time

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyarrow import parquet

import dpframe as dpf
from dpframe.engines.engine import Reading
from dpframe.engines.pieces import batches
from dpframe.engines.pieces.batches import of_dataset, of_lazy, slices

GROUP = 1_000


def table(rows, first=0):
    place = pl.Series("place", range(first, first + rows))
    names = [f"name {one % 7}" for one in range(rows)]
    columns = {"cost": place * 1.0, "name": names, "a.b": place % 3, "a": [[one, one] for one in range(rows)]}
    return pl.DataFrame({"place": place, **columns})


def write(frame, path):
    """Write by pyarrow, which makes row groups of exactly this size."""
    parquet.write_table(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), path, row_group_size=GROUP)


@pytest.fixture
def scan(tmp_path):
    first = 0
    for number, rows in enumerate((3_500, 1, 0, 2_000)):
        write(table(rows, first), tmp_path / f"{number}.parquet")
        first += rows
    return pl.scan_parquet(tmp_path / "*.parquet")


@pytest.mark.parametrize("memory", [1, 60_000, 150_000, 10**9])
@pytest.mark.parametrize("columns", [["place"], ["name", "a.b"], ["a", "place"], ["place", "cost", "name", "a.b", "a"]])
def test_slices_are_the_rows_in_order(scan, memory, columns):
    narrow = scan.select(columns)
    parts = [one.collect() for one in slices(narrow, memory)]
    assert_frame_equal(pl.concat(parts), narrow.collect())
    if memory == 1:  # a slice for each row group
        assert [part.height for part in parts] == [1_000, 1_000, 1_000, 500, 1, 1_000, 1_000]
    if memory == 10**9:
        assert len(parts) == 1


def test_slices_are_as_large_as_the_memory(scan):
    few, more = (len(list(slices(scan.select("place"), memory))) for memory in (60_000, 20_000))
    assert 1 < few < more <= 7
    assert len(list(slices(scan.select("place", "cost", "name"), 60_000))) > few  # more columns take more bytes


@pytest.mark.parametrize(
    "settings",
    [
        {"row_index_name": "index", "row_index_offset": 5},
        {"include_file_paths": "path"},
        {"low_memory": True},
        {"parallel": "columns"},
        {"schema": {**table(1).schema, "place": pl.Int64}},
    ],
)
def test_slices_have_the_columns_that_the_scan_makes(scan, tmp_path, settings):
    made = pl.scan_parquet(tmp_path / "*.parquet", **settings)
    parts = [one.collect() for one in slices(made, 1)]
    assert_frame_equal(pl.concat(parts), made.collect())
    assert len(parts) == 7


def test_columns_of_folders_are_kept(tmp_path):
    for ward in (1, 2):
        (tmp_path / f"ward={ward}").mkdir()
        write(table(2_000), tmp_path / f"ward={ward}" / "0.parquet")
    made = pl.scan_parquet(tmp_path, hive_partitioning=True)
    parts = [one.collect() for one in slices(made, 1)]
    assert len(parts) in (1, 4)  # 1 in Polars 1.34, which shows no plan of folders
    assert_frame_equal(pl.concat(parts), made.collect())


OTHERS = {
    "a filter": lambda scan: scan.filter(pl.col("cost") > 100),
    "the first rows": lambda scan: scan.head(2_500),
    "the last rows": lambda scan: scan.tail(2_500),
    "some rows": lambda scan: scan.slice(100, 2_500),
    "an order": lambda scan: scan.sort("cost", descending=True),
    "a new column": lambda scan: scan.with_columns(pl.col("cost").cum_sum()),
    "different rows": lambda scan: scan.unique("name"),
    "groups": lambda scan: scan.group_by("name").agg(pl.len()),
    "a join": lambda scan: scan.join(pl.LazyFrame({"name": ["name 1"]}), on="name"),
    "two": lambda scan: pl.concat([scan, scan]),
    "a function": lambda scan: scan.map_batches(lambda frame: frame.head(3)),
    "a function of a column": lambda scan: scan.with_columns(pl.col("cost").map_batches(lambda one: one)),
    "memory": lambda scan: scan.collect().lazy(),
    "reversed": lambda scan: scan.reverse(),
}


@pytest.mark.parametrize("other", OTHERS)
def test_anything_but_a_plain_scan_is_one_slice(scan, other, capfd):
    made = OTHERS[other](scan)
    assert [*slices(made, 1)] == [made]
    assert capfd.readouterr() == ("", "")


def test_other_files_are_one_slice(scan, tmp_path):
    frame = scan.drop("a").collect()
    frame.write_csv(tmp_path / "table.csv")
    frame.write_ipc(tmp_path / "table.arrow")
    with (tmp_path / "0.parquet").open("rb") as file:
        for made in (
            pl.scan_csv(tmp_path / "table.csv"),
            pl.scan_ipc(tmp_path / "table.arrow"),
            pl.scan_parquet(tmp_path / "*.parquet", n_rows=3_000),
            pl.scan_parquet(file),
        ):
            assert [*slices(made, 1)] == [made]


def written(folder):
    os.utime(folder / "0.parquet", ns=(1, 1))


def replaced(folder):
    write(table(3_500), folder / "new")
    (folder / "new").replace(folder / "0.parquet")


def taken_away(folder):
    (folder / "3.parquet").unlink()


@pytest.mark.parametrize("change", [written, replaced, taken_away])
def test_files_that_change_while_they_are_read_fail(scan, tmp_path, change):
    """Otherwise rows could be read twice."""
    parts = slices(scan, 1)
    next(parts)
    change(tmp_path)
    with pytest.raises(OSError, match=r"files changed while they were read|No such file"):
        list(parts)


def test_a_file_that_is_added_while_others_are_read_is_not_seen_or_fails(scan, tmp_path):
    places = []
    try:
        for number, part in enumerate(slices(scan, 1)):
            places += part.collect()["place"].to_list()
            if not number:
                table(1_000).write_parquet(tmp_path / "00.parquet")
    except OSError:
        return
    assert places == list(range(5_501))


@pytest.mark.parametrize("unit", [None, "name"])
def test_totals_are_those_of_the_whole(scan, monkeypatch, unit):
    monkeypatch.setattr("dpframe.engines.pieces.batches.AHEAD", 2**24)  # a slice for each row group
    bounds = {"max_rows": 10**6, "max_groups": 3} if unit else {}
    sums = []
    for made in (scan, scan.filter(pl.col("place") >= 0), scan.collect()):
        ledger = dpf.Ledger(epsilon=1e9, **({"unit": unit} if unit else {}))
        memory = {"memory": "16MiB"} if isinstance(made, pl.LazyFrame) else {}
        groups = made.dp.group_by("a.b", keys=[0, 1, 2])
        asked = (dpf.count(), dpf.sum("cost", bounds=(0, 10_000)))
        found = groups.agg(*asked, epsilon=1e8, ledger=ledger, **bounds, **memory)
        sums.append(found.select("count", "cost_sum").to_numpy())
    truth = scan.group_by("a.b").agg(pl.len(), pl.sum("cost")).sort("a.b").collect().to_numpy()[:, 1:]
    for found in sums:
        assert np.abs(found / truth - 1).max() < 1e-3


def test_batches_are_of_all_slices(scan):
    engine = of_lazy(scan, Reading(2))
    places = [place for frame in engine._frames(["place"]) for place in frame["place"]]
    assert sorted(places) == list(range(5_501))


def test_a_dataset_of_parquet_files_keeps_no_bytes_that_it_has_read(scan, tmp_path):
    """By default, pyarrow keeps all bytes of a file in memory until its end."""
    from pyarrow import dataset

    files = dataset.dataset([tmp_path / f"{number}.parquet" for number in range(4)])
    assert batches._unbuffered(files).pre_buffer is False
    places = [
        place for frame in of_dataset(files, Reading(2**24))._frames(["place"]) for place in frame["place"].to_pylist()
    ]
    assert sorted(places) == list(range(5_501))
    scan.drop("a").collect().write_csv(tmp_path / "table.csv")
    for other in (dataset.dataset(tmp_path / "table.csv", format="csv"), dataset.dataset(table(3).to_arrow())):
        assert batches._unbuffered(other) is None


def test_no_batch_of_a_dataset_is_decoded_long_before_it_is_asked_for(tmp_path):
    import pyarrow
    from pyarrow import dataset

    numbers = np.random.default_rng(1).random(2**20)
    parquet.write_table(pyarrow.table({"x": numbers}), tmp_path / "0.parquet", row_group_size=2**13)
    frames, before = of_dataset(dataset.dataset(tmp_path / "0.parquet"), Reading(2**24))._frames(["x"]), None
    for _ in range(20):
        rows = next(frames).num_rows
        before = before or pyarrow.total_allocated_bytes()
        time.sleep(0.01)  # time for threads to decode ahead
    assert rows <= 2**13
    assert pyarrow.total_allocated_bytes() - before < numbers.nbytes / 2  # threads would have decoded nearly all of it


def test_what_the_caller_of_a_dataset_chose_is_kept(tmp_path):
    from pyarrow import dataset

    write(table(2_000), tmp_path / "0.parquet")
    options = dataset.ParquetFragmentScanOptions(thrift_string_size_limit=1)  # too small for any footer
    chosen = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    schema = dataset.dataset(tmp_path / "0.parquet").schema
    with pytest.raises(OSError, match="size limit"):
        list(of_dataset(dataset.dataset(tmp_path / "0.parquet", schema=schema, format=chosen), Reading())._frames([]))
