"""Units that NumPy weighs part by part, in little memory, give the integers of Polars, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from dpframe.engines import trial
from dpframe.engines.compiled import kernels
from dpframe.engines.schema import check
from dpframe.engines.sums import cells, places, unit_blocks
from dpframe.engines.totals import totals
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys, key_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, mean, sum

BOUNDS = [{"max_rows": 3, "max_groups": 2}, {"max_rows": 1}, {"max_rows": 400, "max_groups": 50}]


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    """Weigh even small tables in blocks and parts of few rows, on threads."""
    monkeypatch.setattr(kernels, "ready", lambda: False)
    monkeypatch.setattr(unit_blocks, "FEW_ROWS", 0)
    monkeypatch.setattr(unit_blocks, "BLOCK", 257)
    monkeypatch.setattr(unit_blocks, "PART_ROWS", 64)
    for module, name in ((unit_blocks, "STRIP"), (places, "BLOCK"), (cells, "EVEN_BLOCK")):
        monkeypatch.setattr(module, name, 61)


def whole(frame, query, unit, p):
    found = totals(frame, check(frame, query, unit), unit, p)
    return {total: cells.tolist() for total, cells in found.items()}


def agree(monkeypatch, frame, query, unit, p=1.0):
    """Return the totals, after a check that Polars gives the same."""
    found = whole(frame, query, unit, p)
    with monkeypatch.context() as patched:
        patched.setattr(unit_blocks, "MOST_NUMBERS", -1)
        assert found == whole(frame, query, unit, p), (query, unit, p)
    return found


def ask_all(monkeypatch, tables, seed, every):
    for turn, (_, frame) in enumerate(trial.hard_tables(tables, seed)):
        for number, query in enumerate(trial.questions().values()):
            for other, (unit, p) in enumerate(trial.units(query, turn + number)):
                if unit.column is not None and (3 * number + other + turn) % every == 0:
                    agree(monkeypatch, frame, query, unit, p)


def test_hard_tables(monkeypatch):
    ask_all(monkeypatch, 1, 1, 23)


@pytest.mark.slow
def test_every_question_of_hard_tables(monkeypatch):
    ask_all(monkeypatch, 1, 7, 1)


def table(seed, rows, users, cells):
    """Return random rows, most of them of a few units, with missing and infinite values."""
    rng = np.random.default_rng(seed)
    x = pl.Series("x", rng.normal(50, 400, rows)).set(pl.Series(rng.random(rows) < 0.1), None)
    y = pl.Series("y", rng.choice([math.nan, math.inf, -math.inf, 0.0, 7.25], rows))
    z = pl.Series("z", rng.integers(-300, 300, rows)).set(pl.Series(rng.random(rows) < 0.2), None)
    user = rng.zipf(1.3, rows) % users
    return pl.DataFrame({"u": user, "k": rng.geometric(0.3, rows) % (cells + 1), "x": x, "y": y, "z": z})


def by(cells):
    statistics = ("n", Count()), ("x", sum("x", (0, 500))), ("y", mean("y", (-3, 120))), ("z", sum("z", (-9, 300)))
    return Query("agg", Keys(key_axes(("k",), list(range(cells)), None)), (*statistics, ("m", mean("z", (-9, 300)))))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5, np.inf])
@pytest.mark.parametrize(("rows", "users", "cells"), [(0, 5, 3), (1, 5, 3), (2_000, 40, 24), (2_000, 900, 300)])
def test_units_of_every_kind(p, rows, users, cells, monkeypatch):
    """Light, dense and middle units, with ids that are close integers, distant integers, floats and strings."""
    for seed, bounds in enumerate(BOUNDS):
        close, user = table(seed, rows, users, cells), pl.col("u")
        names = pl.format("person {}", "u")
        others = [user * 2**40, user * 0.5, names, user.cast(pl.UInt64) * 2**50, user - 10**9]
        unit = PrivacyUnit("u", **bounds)
        expected = agree(monkeypatch, close, by(cells), unit, p)
        for other in others[seed::3]:
            assert whole(close.with_columns(other.alias("u")), by(cells), unit, p) == expected


def test_units_of_few_rows(monkeypatch):
    """A small table takes one thread, and Polars finds the cells of its strings."""
    monkeypatch.setattr(unit_blocks, "FEW_ROWS", 2**16)
    frame = table(5, 700, 60, 8)
    words = pl.format("{} and some more", "k")
    keys = [f"{place} and some more" for place in range(5)]
    for turn, unit in enumerate((pl.col("u"), pl.format("person {}", "u"))):
        named = frame.with_columns(unit.alias("u"), pl.when(pl.col("k") != 3).then(words).alias("k"))
        axes = key_axes(("k",), [*keys, None], None)
        asked = Query("agg", Keys(axes), (("n", Count()), ("x", sum("x", (0, 500))), ("m", mean("z", (-9, 300)))))
        agree(monkeypatch, named, asked, PrivacyUnit("u", max_rows=2, max_groups=2), (1.0, 2.0)[turn])
        agree(monkeypatch, named, asked.under(pure=True), PrivacyUnit("u", max_rows=2))  # with functions of rows
        agree(monkeypatch, frame.with_columns(unit.alias("u")), by(6), PrivacyUnit("u", **BOUNDS[turn]))
        margins = Query("count", Keys(by(6).keys.axes), (("n", Count()),), "cube")
        agree(
            monkeypatch, frame.with_columns(unit.alias("u")), margins, PrivacyUnit("u", max_rows=1, max_groups=3), 2.0
        )
    agree(monkeypatch, named.clear(), asked, PrivacyUnit("u", max_rows=2))


def test_parts_are_what_is_asked(monkeypatch):
    """The two ways that `agree` compares differ: only one of them uses parts, and it uses all 32."""
    parts = []
    added = unit_blocks._add_part
    monkeypatch.setattr(
        unit_blocks, "_add_part", lambda rows, part, *more: parts.append(part) or added(rows, part, *more)
    )
    agree(monkeypatch, table(1, 2_000, 40, 24), by(24), PrivacyUnit("u", max_rows=3))
    assert sorted(parts) == list(range(32))


@pytest.mark.parametrize("size", [2**16 - 2, 2**16 - 1, 2**16])
def test_the_last_of_very_many_cells_has_a_place_of_its_own(size):
    """Places have 16 bits if all of them fit, with the one of rows in no cell."""
    frame = pl.DataFrame({"k": [0, size - 1, size - 1, size], "u": [1, 2, 3, 4]})
    query = Query("agg", Keys(key_axes(("k",), range(size), None)), (("n", Count()),))
    (found,) = whole(frame, query, PrivacyUnit("u", max_rows=1), 1.0).values()
    assert np.flatnonzero(found).tolist() == [0, size - 1]


@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
def test_missing_units_and_rows_in_no_cell(nulls, monkeypatch):
    frame = table(3, 1_500, 30, 5)
    for column in (
        "u",
        pl.col("u") * 2**40,
        pl.col("u") * 0.5,
        pl.format("person {}", "u"),
        pl.lit(None, dtype=pl.Int64),
    ):
        unit = pl.col(column) if isinstance(column, str) else column
        holes = frame.with_columns(u=pl.when(pl.int_range(pl.len()) % 7 > 0).then(unit))
        agree(monkeypatch, holes, by(4), PrivacyUnit("u", max_rows=3, nulls=nulls), 2.0)
        agree(monkeypatch, holes, by(1), PrivacyUnit("u", max_rows=3, nulls=nulls), 2.0)


def test_strings_of_one_hash_are_told_apart(monkeypatch):
    """Equal hashes never make two units one: if the hashes of two strings collide, Polars answers instead."""
    compared, told_apart = [], unit_blocks.Narrow.told_apart

    def same_hashes(strings):
        few = strings.hash().to_numpy() & np.uint64(1)
        return few, few

    def told(rows, workers):
        compared.append(told_apart(rows, workers))
        return compared[-1]

    frame = table(5, 1_500, 30, 5).with_columns(u=pl.format("person {}", "u"))
    unit = PrivacyUnit("u", max_rows=3)
    expected = agree(monkeypatch, frame, by(5), unit)
    monkeypatch.setattr(unit_blocks, "hashes", same_hashes)
    monkeypatch.setattr(unit_blocks.Narrow, "told_apart", told)
    assert whole(frame, by(5), unit, 1.0) == expected
    assert compared == [False]


def test_strings_of_any_bytes_and_many_chunks(monkeypatch):
    names = ["", "\0", "\0\0", "a", "a\0", "\u00e9", "e\u0301", "x" * 300, "x" * 300 + "\0", "x" * 299, None, "None"]
    frame = table(6, 1_200, len(names), 5)
    named = frame.with_columns(u=pl.Series(names, dtype=pl.String).gather(frame["u"]))
    pieces = pl.concat([named[:5], named[5:700], named[700:]], rechunk=False)
    for nulls in ("drop", "one-unit"):
        unit = PrivacyUnit("u", max_rows=2, nulls=nulls)
        assert agree(monkeypatch, pieces, by(5), unit, 2.0) == whole(named, by(5), unit, 2.0)


def test_keys_are_a_bijection_whatever_the_numbers_are():
    for units in (1, 2, 3, 64, 1_000, 2**14):
        for bits in (0, 1, 5, 8):
            owners = unit_blocks.owners_of(pl.Series(np.arange(units)), bits, drops=True)
            keys, part = owners.keys(0, units)
            _, size = owners.numbers(keys)
            assert np.unique(keys.astype(np.int64) * 256 + part).size == units
            assert keys.max(initial=0) < size
            assert part.max(initial=0) < 2**bits
    steps = pl.Series(np.arange(10_000) * 4)  # their last two bits are all 0
    _, part = unit_blocks.owners_of(steps, 5, drops=True).keys(0, 10_000)
    assert np.bincount(part, minlength=32).max() < 400


def test_pairs_of_numbers_that_do_not_fit_one_integer():
    """If unit, cell and row need more than 63 bits, positions are sorted instead of numbers."""
    rng = np.random.default_rng(8)
    code, places = rng.integers(0, 5, 300), rng.integers(1, 4, 300).astype(np.uint32)
    steps = [rng.integers(0, 2**30, 300).astype(np.int32)]
    narrow = unit_blocks._sorted(code, 5, 3, places, steps, slice(None))
    wide = unit_blocks._sorted(code, 2**40, 2**29, places, steps, slice(None))
    assert narrow.sums[0].tolist() == wide.sums[0].tolist()
    assert narrow.size.tolist() == wide.size.tolist()
    assert narrow.owner.tolist() == wide.owner.tolist()


@pytest.mark.parametrize("least", [2**62 - 2, 2**63 - 2, 2**64 - 4])
def test_large_numbers_of_units_that_lie_close_together_do_not_fail(least, monkeypatch):
    frame = pl.DataFrame({"u": pl.Series([least, least + 1, least + 2, least + 3] * 2, dtype=pl.UInt64)})
    query = Query("agg", Keys(()), (("n", Count()),))
    assert [*agree(monkeypatch, frame, query, PrivacyUnit("u", max_rows=2)).values()] == [[8 * 2**20]]


def test_186_frames_of_more_rows_than_32_bits_number_are_counted_otherwise(monkeypatch):
    """Polars with a 64-bit index holds such frames. Code with 32-bit row numbers or squares of counts is left out."""
    named, unit = table(3, 200, 9, 4).with_columns(pl.format("{}", pl.col("u"))), PrivacyUnit("u", max_rows=2)
    expected = whole(named, by(5), unit, 2.0)
    monkeypatch.setattr(unit_blocks, "MOST_ROWS", 200)
    monkeypatch.setattr(unit_blocks, "narrow_rows", None)
    assert whole(named, by(5), unit, 2.0) == expected
    monkeypatch.setattr(kernels, "ready", lambda: True)
    monkeypatch.setattr(kernels, "FEW_ROWS", 0)
    monkeypatch.setattr(kernels, "MOST_ROWS", 200)
    assert kernels.kernels_for(200) is None
