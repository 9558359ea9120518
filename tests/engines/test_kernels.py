"""Compiled kernels give the integers of the Polars expressions, bit for bit; they change only the speed."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import threading
import time

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines import trial
from dpframe.engines.compiled import kernel_units, kernels
from dpframe.engines.engine import Reading
from dpframe.engines.schema import check
from dpframe.engines.sums import places, weights
from dpframe.engines.sums.addends import Terms
from dpframe.engines.totals import totals
from dpframe.privacy import PrivacyUnit
from dpframe.queries.bins import BinAxis
from dpframe.queries.keys import Keys, bin_axes, key_axes
from dpframe.queries.query import Query
from dpframe.queries.row_functions import Share
from dpframe.queries.statistics import Count, Total, mean, sum

ROWS = PrivacyUnit()
TERMS = Terms.of((Total(None), Total("x", (0, 5000)), Total("x"), Total("y", (-3, 120), centred=True), Total("z")))
fast = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="the extra fast is not installed")


@pytest.fixture
def always(monkeypatch):
    """Use kernels even for few rows, in small blocks and parts."""
    monkeypatch.setattr(kernels, "FEW_ROWS", 0)
    monkeypatch.setattr(kernels, "BLOCK", 257)
    monkeypatch.setattr(kernel_units, "PART_ROWS", 64)


def without(monkeypatch, ask):
    """Ask as if no kernels were installed."""
    with monkeypatch.context() as patched:
        patched.setattr(kernels, "ready", lambda: False)
        return ask()


def whole(frame, query, unit=ROWS, p=1.0):
    found = totals(frame, check(frame, query, unit), unit, p)
    return {total: cells.tolist() for total, cells in found.items()}


def agree(monkeypatch, frame, query, unit=ROWS, p=1.0):
    found = whole(frame, query, unit, p)
    assert found == without(monkeypatch, lambda: whole(frame, query, unit, p)), (query, unit, p)
    return found


def ask_all(monkeypatch, tables, seed, every):
    """Ask each `every`-th question of hard tables with and without kernels."""
    for turn, (_, frame) in enumerate(trial.hard_tables(tables, seed)):
        for number, query in enumerate(trial.questions().values()):
            for other, (unit, p) in enumerate(trial.units(query, turn + number)):
                if (3 * number + other + turn) % every == 0:
                    agree(monkeypatch, frame, query, unit, p)


@fast
def test_hard_tables(always, monkeypatch):
    ask_all(monkeypatch, 2, 1, 23)


@fast
@pytest.mark.slow
def test_every_question_of_hard_tables(always, monkeypatch):
    ask_all(monkeypatch, 2, 7, 1)


@fast
def test_kernels_are_what_is_asked(always, monkeypatch):
    """The two ways that `agree` compares differ: only one of them loads kernels."""
    used = []
    loaded = kernels._loaded()
    monkeypatch.setattr(kernels, "_loaded", lambda: used.append(1) or loaded)
    frame = pl.DataFrame({"x": [1.0], "u": [1]})
    query = Query("agg", Keys(()), (("m", mean("x", (0, 1))),))
    for unit in (ROWS, PrivacyUnit("u", max_rows=1)):
        whole(frame, query, unit)
    asked = len(used)
    assert asked >= 2
    without(monkeypatch, lambda: whole(frame, query))
    assert len(used) == asked


def skewed(seed, rows, users, cells):
    """Return random coded rows, most of them of a few units."""
    rng = np.random.default_rng(seed)
    x = pl.Series(rng.integers(0, 2**30, rows)).set(pl.Series(rng.random(rows) < 0.1), None)
    columns = {"sum0": x, "sum1": rng.integers(-(2**25), 2**30, rows), "present0": rng.integers(0, 2, rows)}
    cell = np.minimum(rng.geometric(0.3, rows) - 1, cells - 1)
    user = rng.zipf(1.3, rows) % users
    return pl.DataFrame({**columns, "unit": user, "cell": cell}, schema_overrides={"cell": pl.Int64})


@fast
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
@pytest.mark.parametrize(("rows", "users", "cells"), [(0, 5, 3), (1, 5, 3), (3_000, 40, 24), (3_000, 2_000, 300)])
def test_weighed_rows_are_those_of_polars(p, rows, users, cells, always):
    for seed, (bounds, merged) in enumerate([((3, 2), False), ((1, 1), True), ((40, 5), False)]):
        table = skewed(seed, rows, users, cells)
        for ids in (table, table.with_columns(unit=pl.format("person {}", "unit"))):
            unit = PrivacyUnit("unit", max_rows=bounds[0], max_groups=bounds[1])
            found = kernel_units.weighed_rows(ids, TERMS, unit, p, cells, merged=merged)
            expected = weights.bounded(table, TERMS, unit, p, cells, merged=merged)
            assert {t: one.tolist() for t, one in found.items()} == {t: one.tolist() for t, one in expected.items()}


HARD_NAMES = [
    *["", "\0", "\0" * 7, "\0" * 8, "\0" * 9, "a", "a\0", "a\0\0", "ab", "abcdefg", "abcdefgh", "abcdefghi", "A", None],
    *["same prefix of all, then 1", "same prefix of all, then 2", "same prefix of all, then", "\u00e9", "e\u0301"],
    *["x" * 255, "x" * 256, "x" * 257, "x" * 256 + "y", "x" * 300 + "y" * 300, "y" * 300 + "x" * 300, "x" * 512 + "\0"],
    *["1", "01", "1.0", "NaN", "null", "\U0001f600", "user-1000000001", "user-1000000002", "user-100000000"],
]


def owners(names, rows, seed):
    """Return coded rows in which each of these names is a unit, and the same rows with numbers for names."""
    table = skewed(seed, rows, 9, 7)
    number = pl.Series(np.random.default_rng(seed).permutation(np.arange(rows) % len(names)))
    return table.with_columns(names.gather(number).alias("unit")), table.with_columns(number.alias("unit"))


def same_totals(named, numbered, p=2.0):
    unit = PrivacyUnit("unit", max_rows=3, max_groups=2)
    found = kernel_units.weighed_rows(named, TERMS, unit, p, 7, merged=False)
    expected = weights.bounded(numbered, TERMS, unit, p, 7)
    assert {t: one.tolist() for t, one in found.items()} == {t: one.tolist() for t, one in expected.items()}


@fast
@pytest.mark.parametrize("keys", ["random", "all strings with one hash"])
def test_strings_are_told_apart_by_all_of_their_bytes(keys, always, monkeypatch):
    """This holds even if all strings have one hash, since equal hashes never make two units one."""
    if keys != "random":
        monkeypatch.setattr(kernel_units, "keys_of_hashes", lambda: np.zeros(kernels._loaded().KEYS, np.uint64))
    hard = pl.Series(HARD_NAMES)
    for seed, names in enumerate((hard, hard.drop_nulls(), hard[:1], pl.Series([None], dtype=pl.String))):
        named, numbered = owners(names, 2_000, seed)
        same_totals(named, numbered)
        pieces = [named[:700], named[700:701], named[701:]]
        same_totals(pl.concat(pieces, rechunk=False)[5:], numbered[5:])


@fast
def test_bytes_and_integers_of_any_size_are_units(always):
    """Bytes need not be text, and distant integers are compared by their bytes."""
    kinds = [
        pl.Series([b"", b"\0", b"\xff", b"\xff\xfe", b"\xc3\x28", b"\xc3", b"\xed\xa0\x80", None], dtype=pl.Binary),
        pl.Series([0, 1, -1, 2**62, -(2**63), 2**63 - 1, 255, 256, None], dtype=pl.Int64),
        pl.Series([0, 1, 2**64 - 1, 2**63, 2**56], dtype=pl.UInt64),
        pl.Series([0, -1, 2**31 - 1, -(2**31)], dtype=pl.Int32),
        pl.Series([0.0, 1.0, 5e-324, math.inf, -math.inf, 2.0**53, None], dtype=pl.Float64),
        pl.Series([5, 6, 7, None], dtype=pl.Int64),
    ]
    for seed, names in enumerate(kinds):
        same_totals(*owners(names, 1_000, seed))


@fast
def test_units_of_every_dtype(always, monkeypatch):
    """Categories, decimals and dates give the same units as without kernels, also with rows in no cell."""
    number = pl.Series(np.random.default_rng(5).integers(0, 40, 1_500))
    texts = pl.Series([None, *(f"{place % 7}{'-' * place}" for place in range(39))])
    kinds = {
        "categories": texts.cast(pl.Categorical).gather(number),
        "levels": texts.cast(pl.Enum(texts.drop_nulls().unique())).gather(number),
        "decimals": number.cast(pl.Decimal(38, 2)),
        "days": number.cast(pl.Date),
        "texts": texts.gather(number),
    }
    query = Query("agg", Keys(key_axes(("k",), [0, 2, 3], None)), (("n", Count()), ("m", mean("x", (0, 400)))))
    for owner in kinds.values():
        frame = pl.DataFrame({"u": owner, "k": np.arange(1_500) % 5, "x": np.arange(1_500.0)})
        for nulls in ("drop", "one-unit"):
            agree(monkeypatch, frame, query, PrivacyUnit("u", max_rows=3, max_groups=2, nulls=nulls), 2.0)


@fast
def test_hashes_are_keyed_and_spread():
    """Other hash keys give other hashes, and few of many similar strings share one, whatever their length."""
    loops = kernels._loaded()
    for width in (1, 9, 300):
        texts = pl.Series([f"{'a' * width}{number:05}{'b' * width}" for number in range(4_000)])
        offsets, data, missing = kernel_units._as_bytes(texts)
        parts, other, counts = np.zeros(4_000, np.uint16), np.zeros(4_000, np.uint16), np.zeros((2, 1024), np.int64)
        loops.count_names(offsets, data, missing, kernel_units.keys_of_hashes(), 10, parts, counts)
        assert counts[0].sum() == 4_000
        assert counts[0].max() < 60  # 4 are expected in each
        assert counts[1].sum() == 4_000 * -(-(2 * width + 5) // 8)
        keys = kernel_units.keys_of_hashes.__wrapped__()
        loops.count_names(offsets, data, missing, keys, 10, other, counts)
        assert (parts != other).mean() > 0.9


@fast
@pytest.mark.parametrize("outside", ["drop", "clip"])
def test_values_beside_edges_fall_in_numpys_bins(outside, always, monkeypatch):
    for lower, upper, size in ((0.0, 1.0, 10), (-3.0, 0.1, 7), (1e-300, 1e-299, 49), (2.0**52, 2.0**53, 101)):
        edges = np.linspace(lower, upper, size + 1)
        beside = np.concatenate([edges, np.nextafter(edges, -math.inf), np.nextafter(edges, math.inf)])
        values = np.concatenate([beside, [math.nan, math.inf, -math.inf, 0.0, -0.0]])
        axes = bin_axes("x", edges.tolist(), None, None, outside)
        found = agree(
            monkeypatch, pl.DataFrame({"x": [*values, None]}), Query("histogram", Keys(axes), (("n", Count()),))
        )
        if outside == "drop":
            assert [*found.values()] == [np.histogram(values[np.isfinite(values)], edges)[0].tolist()]
    assert isinstance(axes[0], BinAxis)


@fast
@pytest.mark.parametrize(
    "keys",
    [["a", "", "a\0", "twelve bytes"], ["a", None, "\u00e9" * 6], ["thirteen long", "a"]],
)
def test_short_and_long_strings(keys, always, monkeypatch):
    words = ["a", "", "a\0", "twelve bytes", "twelve bytes.", "thirteen long", "thirteen lont", "\u00e9" * 6, "A", None]
    frame = pl.DataFrame({"w": words * 40, "x": np.arange(400.0)})
    query = Query("agg", Keys(key_axes(("w",), keys, None)), (("n", Count()), ("s", sum("x", (0, 400)))))
    found = agree(monkeypatch, frame, query)
    assert found[Total(None)] == [40] * len(keys)
    alike = pl.DataFrame({"w": [f"same{number:08}" for number in range(1_000)], "x": np.arange(1_000.0)})
    declared = Query("agg", Keys(key_axes(("w",), ["same00000007", "same00000500"], None)), (("n", Count()),))
    assert agree(monkeypatch, alike, declared)[Total(None)] == [1, 1]
    agree(monkeypatch, pl.concat([frame[3:7], frame[1:9], frame], rechunk=False)[2:], query)


@fast
def test_integers_of_any_size_among_keys(always, monkeypatch):
    values = [0, 1, -1, 5, 6, 2**62, -(2**63), 2**63 - 1, None]
    frame = pl.DataFrame({"k": values * 9, "x": np.arange(81.0)}, schema_overrides={"k": pl.Int64})
    for keys in ([5, 0, 1], [-1, 6, None], [2**63 - 1, 0], [-(2**63)]):
        query = Query("agg", Keys(key_axes(("k",), keys, None)), (("n", Count()), ("s", sum("x", (0, 400)))))
        assert agree(monkeypatch, frame, query)[Total(None)] == [9] * len(keys)


@fast
def test_shares_are_exact():
    for lower, upper in ((0, 3), (-(2**30), 2**30), (0, 2**29 + 1), (-7, 2**30 - 5), (1, 2)):
        steps = np.unique(np.clip(np.linspace(lower, upper, 4_001).astype(np.int64), lower, upper))
        if (length := upper - lower) % 2:  # shares nearly halfway, which a quotient of floats may round either way
            near = [lower + (rest - length) // 2 * pow(2**30, -1, length) % length for rest in range(-2001, 2001, 2)]
            steps = np.unique(np.concatenate([steps, near]))
        share, found = Share(lower, upper, 30), steps.astype(np.int32)
        kernels._loaded().to_share(found, lower, upper - lower, 30)
        assert found.tolist() == share(steps).tolist()


@fast
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("bits", [0, 30])
def test_values_are_added_where_they_belong(lanes, bits):
    """There are more values than the kernel takes at once, and missing ones in some of its rounds only."""
    rng, loops = np.random.default_rng(5), kernels._loaded()
    values, cells = rng.normal(0, 3, 3 * loops.NEAR + 5), 7
    values[loops.NEAR : loops.NEAR + 9], values[:3] = math.nan, (math.inf, -math.inf, -0.0)
    places = rng.integers(0, cells + 1, values.size).astype(np.uint32)
    sums, absent = np.zeros(lanes * (cells + 1), np.int64), np.zeros(cells + 1, np.int64)
    view = kernels.read_only(values)
    loops.add_values(places, view, (2.0**20, -(2.0**20), 2.0**22), (-(2**20), 5 * 2**20, bits), lanes, sums, absent)
    there = ~np.isnan(values)
    steps = np.floor(np.clip(values[there] * 2.0**20, -(2.0**20), 2.0**22) + 0.5).astype(np.int64)
    adds = Share(-(2**20), 2**22, bits)(steps) if bits else steps
    expected, missing = np.zeros((2, cells + 1), np.int64)
    np.add.at(expected, places[there], adds)
    np.add.at(missing, places[~there], 1)
    assert sums.reshape(lanes, -1).sum(axis=0).tolist() == expected.tolist()
    assert absent.tolist() == missing.tolist()


@fast
def test_cells_of_several_directions():
    """A row outside the keys of any one direction is in no cell."""
    places, inner = np.array([0, 0, 3, 3, 1, 70_000], np.uint32), np.array([0, 2, 0, 5, 1, 9], np.uint32)
    kernels._loaded().combine(inner, np.uint32(9), places)
    assert places.tolist() == [0, 0, 0, 23, 1, 630_000]


@fast
def test_sums_wrap_modulo_2_64():
    places, steps, sums = np.ones(8, np.uint32), np.full(8, 2**31 - 1, np.int32), np.array([0, 2**63 - 1])
    kernels._loaded().add_steps(places, steps, 1, sums)
    assert sums[1] == 2**63 - 1 + 8 * (2**31 - 1) - 2**64


@fast
@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
@pytest.mark.parametrize("few", [0, 5_000], ids=["by kernels", "some batches by Polars"])
def test_rows_that_are_spilled(few, text, nulls, always, monkeypatch):
    """Coded rows of units are spilled to parts of a file, one of which is too large for memory."""
    monkeypatch.setattr(kernels, "FEW_ROWS", few)
    rng = np.random.default_rng(3)
    user = np.where(rng.random(12_000) < 1 / 3, 7, rng.integers(0, 900, 12_000))
    columns = {"u": user, "k": rng.integers(0, 5, 12_000), "x": rng.random(12_000) * 500}
    frame = pl.DataFrame(columns).with_columns(
        x=pl.when(pl.col("x") > 20).then("x"), u=pl.when(pl.col("u") != 5).then("u")
    )
    query = Query("agg", Keys(key_axes(("k",), [0, 2, 3], None)), (("n", Count()), ("m", mean("x", (0, 400)))))
    table = frame.with_columns(u=pl.format("person {}", "u") if text else "u")
    unit = PrivacyUnit("u", max_rows=3, max_groups=2, nulls=nulls)
    expected = without(monkeypatch, lambda: whole(table, query, unit, 2.0))
    for memory in (30_000, 2_000_000):
        checked = check(table.lazy(), query, unit)
        found = totals(table.lazy(), checked, unit, 2.0, Reading(memory=memory))
        assert {total: cells.tolist() for total, cells in found.items()} == expected


@fast
def test_pieces_of_other_tables(always, monkeypatch):
    frame = pl.DataFrame({"u": np.arange(900) % 70, "k": np.arange(900) % 5, "x": np.arange(900.0)})
    query = Query("agg", Keys(key_axes(("k",), range(5), None)), (("n", Count()), ("m", mean("x", (0, 400)))))
    for unit, p in ((ROWS, 1.0), (PrivacyUnit("u", max_rows=2, max_groups=2), 2.0)):
        expected = agree(monkeypatch, frame, query, unit, p)
        tables = [frame.lazy(), frame.to_arrow()]
        if importlib.util.find_spec("pandas"):
            tables.append(frame.to_pandas())
        for table in tables:
            assert whole(table, query, unit, p) == expected


def test_without_numba_nothing_changes_and_nothing_is_said(monkeypatch, caplog):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    caplog.set_level(logging.DEBUG)
    assert kernels.ready.__wrapped__() is False
    assert caplog.text == ""


def test_a_numba_that_fails_is_said_once_and_not_used(monkeypatch, caplog, tmp_path):
    def fail():
        raise ImportError("Numba needs NumPy 1.99 or less")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(kernels, "_mark", lambda: tmp_path / "mark")
    monkeypatch.setattr(kernels, "_loaded", fail)
    assert kernels.ready.__wrapped__() is False
    assert "answers without its compiled kernels" in caplog.text
    assert not (tmp_path / "mark").exists()


def test_kernels_that_no_longer_load_are_not_used(always, monkeypatch, caplog):
    def fail():
        raise ImportError("no llvmlite")

    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(kernels, "ready", lambda: True)
    monkeypatch.setattr(kernels, "_loaded", fail)
    frame = pl.DataFrame({"x": [0.5, None], "u": [1, 1]})
    query = Query("agg", Keys(()), (("n", Count()), ("s", sum("x", (0, 1)))))
    assert [*whole(frame, query).values()] == [[2], [2**29]]
    assert [*whole(frame, query, PrivacyUnit("u", max_rows=2)).values()] == [[2 * 2**20], [2**29]]
    assert caplog.text == ""


@fast
def test_kernels_that_are_not_compiled_are_not_used(monkeypatch):
    """With NUMBA_DISABLE_JIT they are Python functions, which warn if an integer made from a value wraps."""
    compiled = importlib.import_module("dpframe.engines.compiled.loops")
    monkeypatch.setattr(compiled, "add_rows", compiled.add_rows.py_func)
    monkeypatch.setattr(kernels, "_loaded", kernels._loaded.__wrapped__)
    monkeypatch.setattr(kernels, "ready", lambda: True)
    assert kernels.kernels_for(2**20) is None


@fast
def test_205_a_unit_with_rows_in_every_group_is_counted_within_its_arrays(monkeypatch):
    """As Python functions, kernels check every index. Once, the compiled ones wrote behind the end of an array."""
    loops = importlib.import_module("dpframe.engines.compiled.loops")
    for name in ("add_unit", "add_broken"):
        monkeypatch.setattr(loops, name, getattr(loops, name).py_func)
    ends, units = np.array([0, 3]), np.zeros(4, np.uint32)
    places, flags = np.array([1, 2, 1, 0], np.uint32), np.zeros(4, np.uint16)
    rules, groups, found = np.array([[1, 1]]), np.zeros(2, np.int64), np.zeros(3, np.int64)
    loops.check_parts.py_func((0, 1), ends, units, places, flags, (1, 2, 1, 0, 1), rules, groups, found)
    assert found.tolist() == [1, 0, 1]  # one unit breaks the rule, none has a row outside, one unit in all


@fast
def test_rows_of_which_none_is_in_a_cell_have_a_place(always, monkeypatch):
    """A kernel uses the place of unit 0 for them. Once, that was behind the end if no unit had a number."""
    numbers, number = [], kernel_units.Named.number
    monkeypatch.setattr(
        kernel_units.Named, "number", lambda *arguments: numbers.append(number(*arguments)) or numbers[-1]
    )
    frame = pl.DataFrame({"u": ["a", "b", "a"], "k": [7, 8, 9]})
    query = Query("agg", Keys(key_axes(("k",), [1, 2], None)), (("n", Count()),))
    assert [*agree(monkeypatch, frame, query, PrivacyUnit("u", max_rows=1)).values()] == [[0, 0]]
    assert numbers == [1]


@fast
def test_compiling_is_said_once_for_any_number_of_rows(monkeypatch, caplog, tmp_path):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(kernels, "_mark", lambda: tmp_path / "mark")
    monkeypatch.setattr(kernels, "ready", kernels.ready.__wrapped__)
    with dpf.Ledger(epsilon=3):
        for _ in range(2):
            pl.DataFrame({"x": [1.0]}).dp.count(epsilon=1)  # far too few rows for kernels
    assert caplog.text.count("compiles its kernels") == caplog.text.count("has compiled its kernels") == 1


SHORT_NAMES = {
    "letters and numbers": [f"k{number}" for number in range(24)],
    "two digits": [f"{number:02d}" for number in range(24)],
    "numbers": [str(number) for number in range(1_000)],
    "codes of diagnoses": [f"{chr(65 + number // 100)}{number % 100:02d}" for number in range(2_600)],
    "long names": [f"hospital {number:03d}" for number in range(999)],
}


@fast
@pytest.mark.parametrize("names", SHORT_NAMES.values(), ids=SHORT_NAMES)
def test_a_key_is_found_where_it_is_looked_for_first(names):
    """Once, the hash of short strings had few values, so that each of 10^7 rows took up to ten lookups."""
    views = places.views_of(pl.Series(names))
    if views is None:
        pytest.skip("this version of pyarrow has no views of strings")
    loops, slots = kernels._loaded(), 2 ** (16 * len(names)).bit_length()
    keys, inner_of = np.zeros(2 * slots, dtype=np.uint64), np.zeros(slots, dtype=np.uint32)
    loops.table_of_views(views, keys, inner_of)
    displaced = 0
    for slot in np.flatnonzero(inner_of).tolist():
        displaced += int(loops.mixed(keys[2 * slot], keys[2 * slot + 1])) % slots != slot
    assert displaced <= max(2, len(names) / 16)  # about 1 of 32 by chance


@pytest.mark.parametrize("started", [0, 2, 4])
def test_250_work_whose_thread_cannot_start_is_done_all_the_same(started, monkeypatch):
    start, left = threading.Thread.start, iter(range(started))

    def start_some(thread):
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    assert kernels.in_threads(lambda thread: thread**2, 4) == [0, 1, 4, 9]


def test_the_first_error_of_any_thread_is_raised_after_all_have_ended():
    ended = []

    def work(thread):
        if thread in (1, 2):
            raise ValueError(thread)
        time.sleep(0.05)
        ended.append(thread)

    with pytest.raises(ValueError, match=r"^1$"):
        kernels.in_threads(work, 4)
    assert sorted(ended) == [0, 3]
