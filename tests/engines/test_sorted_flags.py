"""Polars believes that a column is sorted if its flag says so; dpframe does not."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines.columns import source
from dpframe.engines.first_rows import numbers_of_rows

IDS = {
    "integers": list(range(1_000)),
    "floats": [float(place) for place in range(1_000)],
    "dates": [dt.date(2020, 1, 1) + dt.timedelta(place) for place in range(1_000)],
    "texts": [f"{place:04}" for place in range(1_000)],
}


def of_kind(column, kind, folder):
    """Return a frame whose column "p" has the flag of a sorted one, in memory, in a plan or in a file."""
    if kind == "file":
        parquet = pytest.importorskip("pyarrow.parquet")
        if not hasattr(parquet, "SortingColumn"):
            pytest.skip("this pyarrow writes no order into files")
        table = pl.DataFrame({"p": column}).to_arrow()
        parquet.write_table(table, folder / "rows.parquet", sorting_columns=[parquet.SortingColumn(0)])
        return pl.scan_parquet(folder / "rows.parquet")
    frame = pl.DataFrame({"p": column}).with_columns(pl.col("p").set_sorted())
    return frame.lazy() if kind == "lazy" else frame


@pytest.mark.parametrize("kind", ["memory", "lazy", "file"])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_256_one_row_out_of_order_changes_no_other_unit(ids, kind, tmp_path):
    """Minima and joins of all rows would be wrong, and kernels wrote outside of their arrays."""
    late = ids[5]
    for rows in (ids, [*ids, late], [late, *ids]):
        ledger = dpf.Ledger(epsilon=1e9, unit="p")
        frame = of_kind(rows, kind, tmp_path)
        assert round(dpf.of(frame).n_units(epsilon=1e6, ledger=ledger)["n_units"][0]) == 1_000
        counted = dpf.of(frame).count(max_rows=1, epsilon=1e6, ledger=ledger)["count"][0]
        assert counted == pytest.approx(1_000, abs=0.1)


@pytest.mark.parametrize(
    "keys", [[0.0, 1.0, 2.0, 3.0], [0, 10**12, 2 * 10**12, 3 * 10**12]], ids=["floats", "far apart"]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_256_one_row_out_of_order_changes_no_other_key(keys, lazy):
    rows = [keys[place] for place in (3, 2, 2, 1, 1, 0, 0, 0, 0, 3)]
    frame = pl.DataFrame({"x": rows}).with_columns(pl.col("x").set_sorted())
    found = (frame.lazy() if lazy else frame).dp.group_by("x", keys=keys)
    assert list(found.count(epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))["count"]) == [4, 2, 2, 2]


@pytest.mark.parametrize("kind", ["memory", "lazy", "file"])
def test_256_one_row_out_of_order_fails_no_period_of_a_stream(kind, tmp_path):
    """A stream collects a LazyFrame as a whole, with its flags."""
    for rows in ([1, 0, *range(2, 1_000)], [*range(1_000), 5]):
        stream = dpf.Stream(
            "s",
            statistic=dpf.count(),
            max_rows=1,
            time="t",
            periods=[1, 2],
            epsilon=1e6,
            ledger=dpf.Ledger(epsilon=1e9, unit="p"),
        )
        frame = of_kind(rows, kind, tmp_path).with_columns(t=pl.lit(1))
        assert round(stream.release(frame, 1)["total"][0]) == 1_000


@pytest.mark.parametrize("kind", ["memory", "lazy", "file"])
def test_256_one_row_out_of_order_changes_no_condition_of_a_stream(kind, tmp_path):
    """Polars compares a column that it calls sorted with a number by one search."""
    frame = of_kind([*range(500, 1_000), *range(500)], kind, tmp_path).with_columns(t=pl.lit(1))
    ledger = dpf.Ledger(epsilon=1e9)
    few = dpf.count(where={"p": (100, 300)})
    stream = dpf.Stream("s", statistic=few, time="t", periods=[1, 2], epsilon=1e6, ledger=ledger)
    assert round(stream.release(frame, 1)["total"][0]) == 200
    assert round(dpf.of(frame).count(where={"p": (100, 300)}, epsilon=1e6, ledger=ledger)["count"][0]) == 200


@pytest.mark.parametrize("kind", ["memory", "lazy", "file"])
def test_256_one_row_out_of_order_leaves_each_first_report(kind, tmp_path):
    frame = of_kind([1, 0, *range(2, 100), 1], kind, tmp_path).with_columns(x=pl.lit(1.0))
    first = numbers_of_rows(frame, "x", dpf.PrivacyUnit("p"), 1)
    assert list(np.flatnonzero(np.isnan(first))) == [100]


OF_EACH = {
    "integers": [1, 3, 2, None],
    "floats": [1.0, float("nan"), -0.0],
    "texts": ["b", "a", None],
    "bytes": [b"b", b"a"],
    "lists": [[2], [1], None],
    "structs": [{"a": 2}, {"a": 1}],
    "times": [dt.time(2), dt.time(1)],
}
DTYPES = {
    "categories": (["b", "a"], pl.Categorical),
    "levels": (["b", "a"], pl.Enum(["a", "b"])),
    "instants": ([dt.datetime(2021, 1, 1), dt.datetime(2020, 1, 1)], pl.Datetime("ns", "Europe/Berlin")),
    "decimals": (["2.5", "1.5"], pl.Decimal(20, 2)),
    "large integers": ([2**100, 1], pl.Int128),
}


@pytest.mark.parametrize("name", [*OF_EACH, *DTYPES])
def test_a_column_without_its_flag_is_the_same_column(name):
    values, dtype = DTYPES.get(name) or (OF_EACH[name], None)
    column = pl.Series("x", values).cast(dtype) if name == "decimals" else pl.Series("x", values, dtype=dtype)
    plain = source._unflagged(column.set_sorted())
    assert not any(plain.flags[flag] for flag in ("SORTED_ASC", "SORTED_DESC"))
    assert (plain.name, plain.dtype) == ("x", column.dtype)
    assert repr(plain.to_list()) == repr(column.to_list())


def test_a_column_without_its_flag_has_the_same_memory():
    column = pl.Series(np.arange(10**6)).set_sorted()
    assert (
        source._unflagged(column).to_numpy().__array_interface__["data"]
        == column.to_numpy().__array_interface__["data"]
    )
