"""Blocks of rows that NumPy adds up give the integers of the Polars expressions, bit for bit."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import polars as pl
import pytest

from dpframe.engines import trial
from dpframe.engines.compiled import kernels
from dpframe.engines.schema import check
from dpframe.engines.sums import cells, places, row_totals
from dpframe.engines.sums.addends import OF_CHECKS
from dpframe.engines.sums.cells import HalfOpenBins
from dpframe.engines.totals import totals
from dpframe.planning.check_pricing import checks_of
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys, bin_axes, key_axes
from dpframe.queries.query import Query
from dpframe.queries.row_functions import RowFunction, Share, TwoSided
from dpframe.queries.statistics import Count, Total, mean, sum, variance

ROWS = PrivacyUnit()


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    """Add up even small tables in blocks of few rows, on threads, strings included."""
    monkeypatch.setattr(kernels, "ready", lambda: False)
    monkeypatch.setattr(row_totals, "FEW_ROWS", 0)
    for module in (places, row_totals):
        monkeypatch.setattr(module, "BLOCK", 257)
    monkeypatch.setattr(cells, "EVEN_BLOCK", 61)


def whole(frame, query):
    found = totals(frame, check(frame, query, ROWS), ROWS, 1.0)
    return {total: cells.tolist() for total, cells in found.items()}


def agree(monkeypatch, frame, query):
    """Return the totals, after a check that Polars gives the same."""
    found = whole(frame, query)
    with monkeypatch.context() as patched:
        patched.setattr(row_totals, "MOST_CELLS", -1)
        assert found == whole(frame, query), query
    return found


def by(column, keys, **statistics):
    return Query("agg", Keys(key_axes((column,), keys, None)), (("n", Count()), *statistics.items()))


def test_hard_tables(monkeypatch):
    for turn, (_, frame) in enumerate(trial.hard_tables(2, 3)):
        for number, query in enumerate(trial.questions().values()):
            units = [unit for unit, _ in trial.units(query, number)]
            if any(unit.column is None for unit in units) and (number + turn) % 3 == 0:
                agree(monkeypatch, frame, query)


def test_blocks_are_what_is_asked(monkeypatch):
    """The two ways that `agree` compares differ: only one of them uses blocks."""
    used = []
    placed = row_totals.places_of
    monkeypatch.setattr(row_totals, "places_of", lambda *a, **b: used.append(1) or placed(*a, **b))
    agree(monkeypatch, pl.DataFrame({"k": [1, 2], "x": [1.0, 2.0]}), by("k", [1, 2], m=mean("x", (0, 1))))
    assert len(used) == 1


def test_values_of_any_size_and_kind(monkeypatch):
    """Bounds are narrow and wide, on the grid and off it; values are integers (which are counted) and floats."""
    edge = [0, 1, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 7, 2**40 + 3 * 2**10, 100, 101, 120, None]
    whole_numbers = pl.Series("x", edge * 50, dtype=pl.Int64)
    floats = [
        0.0,
        -0.0,
        0.49999999999999994,
        2.0**-27,
        99.5,
        1e300,
        -1e300,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        100 / 3,
        None,
    ]
    keys = pl.Series("k", [place % 4 for place in range(650)])
    middle = 2**40 + 3 * 2**10  # between two steps of more than 1: one bound rounds down, the other up
    steps, far = (middle - 2**27 - 1, middle + 2), (2**40 - 2**27 - 1536, 2**40)
    narrow = (0, 120), (-3, 100), (0.5, 99.25), (-7.3, -0.1), far, (-1e-9, 3e-9), steps
    for bounds in (*narrow, (0, 2**31)):
        asked = by("k", [2, 0, 1], s=sum("x", bounds), m=mean("x", bounds))
        for column in (
            *(whole_numbers, whole_numbers.drop_nulls(), pl.Series("x", floats * 50, dtype=pl.Float64)),
            *(pl.Series("x", [250, 0, None] * 200, dtype=pl.UInt8), pl.Series("x", floats * 50, dtype=pl.Float32)),
        ):
            frame = pl.DataFrame([keys[: len(column)], column])
            agree(monkeypatch, frame, asked)
            agree(monkeypatch, frame, by("k", [1, 3], v=variance("x", bounds)))


def test_whole_numbers_that_are_counted_tell_which_lie_beyond_their_bounds():
    frame = pl.DataFrame({"k": [1, 2, 3] * 200, "x": [0, 1, 2, 3, 5, None] * 100})
    query = by("k", [1, 2, 3], s=sum("x", (1, 2)))
    found = totals(frame, check(frame, query, ROWS), ROWS, 1.0, checks=checks_of(query, ROWS, 1.0))
    below, above, present, outside, rows = 100, 200, 500, 0, 600
    assert found[OF_CHECKS].tolist() == [below, above, present, outside, rows]


def test_whole_numbers_that_are_counted_are_compared_with_each_pair_of_bounds():
    frame = pl.DataFrame({"k": [1, 2, 3] * 200, "x": [0, 1, 2, 3, 5, None] * 100})
    query = by("k", [1, 2, 3], s=sum("x", (1, 2)), t=sum("x", (-1, 4)))
    found = totals(frame, check(frame, query, ROWS), ROWS, 1.0, checks=checks_of(query, ROWS, 1.0))
    assert found[OF_CHECKS].tolist()[:4] == [100, 200, 0, 100]


def test_few_rows_in_one_cell(monkeypatch):
    """Without keys: NumPy adds up a small table, and Polars a large one."""
    used = []
    monkeypatch.setattr(row_totals, "FEW_ROWS", 2**16)
    placed = row_totals.places_of
    monkeypatch.setattr(row_totals, "places_of", lambda *a, **b: used.append(1) or placed(*a, **b))
    statistics = ("n", Count()), ("x", sum("x", (-3, 90))), ("m", mean("y", (0, 7))), ("v", variance("x", (-3, 90)))
    for turn, (_, frame) in enumerate(trial.hard_tables(2, 9)):
        numbers = [name for name, dtype in frame.schema.items() if dtype.is_numeric() or dtype == pl.Boolean]
        named = pl.DataFrame([frame[numbers[turn]].alias("x"), frame[numbers[-1]].alias("y")])
        tables = [named, named.clear(), *([named.to_pandas()] if importlib.util.find_spec("pandas") else [])]
        for table in tables:
            agree(monkeypatch, table, Query("agg", Keys(()), statistics))
            agree(monkeypatch, table, Query("agg", Keys(()), statistics).under(pure=True))
            agree(monkeypatch, table, Query("count", Keys(()), statistics[:1]))
    assert len(used) >= 12


@pytest.mark.parametrize("far", [[-5], [-(2**63)], [7], [2**63 - 1], [-(2**63), 2**63 - 1]], ids=str)
def test_whole_numbers_that_are_counted_may_all_lie_on_one_side(far, monkeypatch):
    values = [0, 1, 2, None, *far]
    frame = pl.DataFrame({"k": [1] * len(values), "x": values})
    found = agree(monkeypatch, frame, by("k", [1], s=sum("x", (0, 2))))
    assert next(iter(found.values())) == [len(values)]


def test_sums_of_a_block_are_exact():
    """All 2**15 rows are at a bound, except one that is 1 less: a float sum that rounded would lose this 1."""
    rows = 2**15
    places = np.ones(rows, dtype=np.int64)
    for bound in (2.0**31 - 1, -(2.0**31)):
        steps = np.full(rows, bound)
        steps[-1] -= 1
        assert int(np.bincount(places, steps)[1]) == rows * int(bound) - 1


def test_shares_are_exact():
    for lower, upper in ((0, 3), (0, 120 * 2**23), (-(2**30), 2**30), (0, 2**29 + 1), (-7, 2**30 - 5), (1, 2)):
        steps = np.unique(np.clip(np.linspace(lower, upper, 4_001).astype(np.int64), lower, upper))
        if (length := upper - lower) % 2:  # shares nearly halfway, which a quotient of floats may round either way
            near = [lower + (rest - length) // 2 * pow(2**30, -1, length) % length for rest in range(-2001, 2001, 2)]
            steps = np.unique(np.concatenate([steps, near]))
        share = TwoSided(Share(lower, upper, 30), above=True)
        row = RowFunction((("x", (0.0, 1.0)),), share, (0, 2**30), 1.0, "a share")
        found = row.of_steps(np.append(steps, math.nan).astype(np.float64))
        exact = [(2 * (step - lower) * 2**30 + length) // (2 * length) for step in steps.tolist()]
        assert found[:-1].tolist() == exact
        assert math.isnan(found[-1])


def test_integers_of_any_size_among_keys(monkeypatch):
    values = [0, 1, -1, 5, 6, 2**62, -(2**63), 2**63 - 1, None]
    frame = pl.DataFrame({"k": values * 90, "x": np.arange(810.0)}, schema_overrides={"k": pl.Int64})
    for keys in ([5, 0, 1], [0, 1], [-1, 6, None], [None, 6], [2**63 - 1, 0], [-(2**63)]):
        assert agree(monkeypatch, frame, by("k", keys, s=sum("x", (0, 400))))[Total(None)] == [90] * len(keys)
    small = pl.DataFrame({"k": pl.Series([0, 255, 3] * 200, dtype=pl.UInt8), "j": [True, False] * 300})
    both = Query("agg", Keys(key_axes(("k", "j"), {"k": [3, 255], "j": [True, False]}, None)), (("n", Count()),))
    assert agree(monkeypatch, small, both)[Total(None)] == [100] * 4


@pytest.fixture(params=[0, 2**16], ids=["many", "few"])
def rows_are(request, monkeypatch):
    """Compare strings by their views, as in large tables, or by an Enum, as in small ones."""
    monkeypatch.setattr(row_totals, "FEW_ROWS", request.param)


@pytest.mark.usefixtures("rows_are")
@pytest.mark.parametrize(
    "keys",
    [["a", "", "a\0", "twelve bytes"], ["a", None, "\u00e9" * 6], ["thirteen long", "a"], ["same1", "same2"]],
)
def test_short_and_long_strings(keys, monkeypatch):
    words = ["a", "", "a\0", "twelve bytes", "twelve bytes.", "thirteen long", "thirteen lont", "\u00e9" * 6, "A", None]
    words += ["same1", "same2", "same12", "sam1"]
    frame = pl.DataFrame({"w": words * 40, "x": np.arange(560.0)})
    asked = by("w", keys, s=sum("x", (0, 400)))
    assert agree(monkeypatch, frame, asked)[Total(None)] == [40] * len(keys)
    agree(monkeypatch, pl.concat([frame[3:7], frame[1:9], frame], rechunk=False)[2:], asked)
    if importlib.util.find_spec("pandas"):
        for table in (frame.to_pandas(), frame.to_pandas()[2:], frame.to_pandas().astype({"w": "string[pyarrow]"})):
            assert whole(table, asked) == whole(frame[560 - len(table) :], asked)


@pytest.mark.usefixtures("rows_are")
def test_strings_that_share_a_slot(monkeypatch):
    """Other strings fall in the slots of declared keys, and only a comparison of both words tells them apart."""
    alike = [f"same{number:08}" for number in range(2_000)] + [f"{number:04}same" for number in range(2_000)]
    frame = pl.DataFrame({"w": alike, "x": np.arange(4_000.0)})
    for keys in (alike[:200:7], alike[2_000:2_250], alike[1_990:2_010]):
        assert agree(monkeypatch, frame, by("w", keys, s=sum("x", (0, 4_000))))[Total(None)] == [1] * len(keys)


def test_strings_that_begin_otherwise_than_all_keys(monkeypatch):
    """Keys of one length and beginning are compared by their ends; no other length or beginning may match."""
    keys = ["site-01", "site-02", "site-\0\0"]
    others = ["sitE-01", "site-01\0", "site-0", "zite-01", "site", "", "site-\0", "site-01 and more bytes", None]
    for other in others:
        frame = pl.DataFrame({"k": [*keys, other] * 200})
        found = agree(monkeypatch, frame, by("k", keys))
        assert found[Total(None)] == [200] * 3


@pytest.mark.parametrize("outside", ["drop", "clip"])
def test_bins_and_keys_together(outside, monkeypatch):
    random = np.random.default_rng(5)
    frame = pl.DataFrame({"x": random.normal(0, 2, 900), "k": random.integers(0, 5, 900), "y": random.random(900)})
    frame = frame.with_columns(x=pl.when(pl.col("x") > 3).then(None).otherwise(pl.col("x").round(1)))
    axes = (*bin_axes("x", [-2.0, -1.0, 0.0, 1.0, 2.0], None, None, outside), *key_axes(("k",), [3, 1], None))
    agree(monkeypatch, frame, Query("agg", Keys(axes), (("n", Count()), ("s", sum("y", (0, 1))))))


def edges_of(random):
    """Return random edges of bins with equal or nearly equal widths, or None if they are not valid."""
    size = int(random.integers(2, 60))
    lower = float(random.choice([0, -1, 1e-3, 1e6, -1e300, 1e9, random.normal() * 10.0 ** random.integers(-5, 12)]))
    width = float(random.choice([1, 10, 0.1, 1e-9, 1e300, random.gamma(1) * 10.0 ** random.integers(-6, 8)]))
    with np.errstate(all="ignore"):
        edges = np.linspace(lower, lower + width, size + 1)
        edges = edges * (1 + random.normal(size=size + 1) * 1e-10) if random.random() < 0.3 else edges
        return edges if np.isfinite(edges).all() and (np.diff(edges) > 0).all() else None


def test_even_bins_are_those_of_a_search(monkeypatch):
    random, even = np.random.default_rng(1), 0
    far = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, 2.0**63, -(2.0**63), 2.0**64]
    for _ in range(400):
        if (edges := edges_of(random)) is None:
            continue
        edges[-1] = math.nextafter(edges[-1], math.inf)
        width = (edges[-1] - edges[0]) / (edges.size - 1)
        steps = [edges + sign * width * 2.0**-26 * count for count in (1, 2, 3, 1000) for sign in (1, -1)]
        anywhere = random.uniform(edges[0] - width, edges[-1] + width, 100)
        values = np.concatenate(
            [edges, np.nextafter(edges, math.inf), np.nextafter(edges, -math.inf), anywhere, far, *steps]
        )
        inside = (values >= edges[0]) & (values < edges[-1])
        expected = np.where(inside, np.searchsorted(edges, values, side="right") - 1, -1)
        bins = HalfOpenBins.of(edges, closed=False)
        assert bins.codes(values).tolist() == expected.tolist()
        counts = np.bincount(expected[inside], minlength=edges.size - 1)
        assert bins.counted(values).tolist() == counts.tolist()
        even += bins.even is not None
    assert even > 100


def test_histograms_of_whole_numbers_on_edges():
    """Each value lies on an edge, which is the slowest case."""
    values = np.arange(-10, 5_011).astype(np.float64)
    edges = np.linspace(0, 5_000, 1_001)
    bins = HalfOpenBins.of(np.append(edges[:-1], math.nextafter(5_000, math.inf)), closed=False)
    assert bins.even is not None
    assert bins.counted(values).tolist() == np.histogram(values, edges)[0].tolist()


def test_bins_that_are_narrower_than_a_number_to_a_unit_can_tell():
    """A guess by division would be infinite, and NumPy would warn of the overflow."""
    for width in (5e-324, 1e-310, 5e-309, 3e-308, 1e-300):
        edges = np.array([0.0, 1.0, 2.0, 3.0, 9.0]) * width
        values = np.repeat(edges, 3) + np.tile([-width, 0.0, width], 5)
        found = cells.HalfOpenBins.of(edges, False).codes(values)
        places = np.searchsorted(edges, values, side="right") - 1
        assert found.tolist() == np.where((values >= 0.0) & (values < edges[-1]), places, -1).tolist()
