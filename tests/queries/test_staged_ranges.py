"""Counts by three looks: blocks and buckets, the sensitivity for any decisions, errors, whole calls."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from neighbors import UNITS, given_as, largest_by_chance, ratios

import dpframe as dpf
from dpframe import PrivacyUnit, noise
from dpframe.denoise.block_sums import buckets_of, shared_out, within_buckets
from dpframe.denoise.context import Context
from dpframe.engines.totals import totals
from dpframe.frames import foreign
from dpframe.queries.keys import Keys, bin_axes
from dpframe.queries.query import Query
from dpframe.queries.stages import (
    FEWEST,
    FLAT,
    GROWS,
    LAST_WEIGHT,
    MOST,
    MOST_LEVELS,
    PER,
    ROOM,
    SEEN,
    WEIGHT,
    Blocks,
    Buckets,
    Later,
    Scales,
    over_a_line,
    room_of,
    side_of,
)
from dpframe.queries.statistics import Ranges, StagedRanges
from dpframe.release.results import noisy_of
from tests.covering import chance_of_missing

SIDE = 24
EDGES = np.arange(SIDE + 1.0)


def buckets(shape, pure, seed, most=8, levels=None):
    """Return random buckets, as noise could lead to them."""
    generator = np.random.default_rng(seed)
    variances = generator.gamma(0.3, 1.0, shape) + 1e-9
    return Buckets(generator.random(shape), variances, buckets_of(variances, most), pure, levels)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (4096,), (1, 9), (5, 3), (64, 64)])
@pytest.mark.parametrize("most", [1, 4, 13, 1024])
def test_buckets_are_neighbors_and_no_more_than_asked(shape, most):
    names = buckets_of(np.random.default_rng(3).gamma(0.2, 1.0, shape) + 1e-12, most)
    count = names.max() + 1
    assert count <= most
    assert sorted(np.unique(names)) == list(range(count))
    grid = names.reshape(-1, shape[-1])
    rows, columns = np.indices(grid.shape)
    sides = [np.zeros(count, dtype=int) for _ in range(4)]
    for side, place, at in zip(sides, (rows, -rows, columns, -columns), (np.maximum,) * 4, strict=True):
        side[:] = -(10**6)
        at.at(side, grid.ravel(), place.ravel())
    area = (sides[0] + sides[1] + 1) * (sides[2] + sides[3] + 1)
    assert (area == np.bincount(grid.ravel())).all()  # each is a rectangle


def test_buckets_share_the_weight():
    weights = np.ones(1_024)
    weights[300:340] = 50.0
    found = np.bincount(buckets_of(weights, 32), weights)
    assert found.max() <= 2.5 * weights.sum() / 32


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 21])
def test_sums_are_shared_out_from_the_whole_down(size):
    sums = np.random.default_rng(size).normal(0.2, 1.0, size)
    found = shared_out(sums)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(max(sums.sum(), 0.0), abs=1e-12)
    assert shared_out(np.abs(sums)) == pytest.approx(np.abs(sums))


def test_cells_of_a_bucket_add_up_to_its_sum():
    made = buckets((30, 30), True, 5, most=20)
    sums = np.random.default_rng(1).gamma(1.0, 5.0, made.tree.size)
    found = within_buckets(made.values, made.variances, made.names, sums)
    assert (found >= 0).all()
    assert np.bincount(made.names.ravel(), found.ravel()) == pytest.approx(sums)


@pytest.mark.parametrize("pure", [True, False])
def test_whatever_is_decided_a_row_adds_no_more_than_is_stated(pure):
    """For each possible number of buckets: norms of columns, levels, and the room for all blocks."""
    stated = Later((MOST,), pure)
    for size in (*range(1, 70), *range(70, MOST, 31), 255, 256, 257, MOST - 1, MOST):
        for levels in (None, 1, 2, 3):
            made = Buckets(np.zeros(size), np.ones(size), np.arange(size), pure, levels)
            assert made.tree.size == size
            assert made.tree.levels <= (levels or MOST_LEVELS)
            assert made.tree.width <= ROOM
            assert made.tree.levels * made.weight <= stated.column_sum
            assert made.tree.levels * made.weight**2 <= stated.column_square == LAST_WEIGHT**2
    assert not pure or stated.column_sum == LAST_WEIGHT


@pytest.mark.parametrize("pure", [True, False])
def test_what_is_measured_are_weighted_blocks(pure):
    """Each column of the matrix has the weight once on each level, and the sums are those of the buckets."""
    made = buckets((6, 5), pure, 2, most=7)
    matrix = made.exact_sums(np.eye(30, dtype=np.int64)[:1])[0]
    rows = np.concatenate([made.exact_sums(np.eye(30, dtype=np.int64)[place][None]) for place in range(30)])
    assert matrix.shape == (ROOM,)
    assert (rows.sum(axis=1) == made.tree.levels * made.weight).all()
    assert ((rows**2).sum(axis=1) == made.tree.levels * made.weight**2).all()
    counts = np.random.default_rng(4).integers(0, 9, (1, 30))
    names, measured = made.names.ravel(), made.exact_sums(counts)[0]
    assert (measured[: made.tree.size] == made.weight * np.bincount(names, counts[0]).astype(int)).all()
    assert measured == pytest.approx(counts[0] @ rows)


SHAPES = [(1,), (2,), (7,), (1_000,), (4_096,), (1, 9), (5, 3), (64, 200), (256, 256)]
SIDES = (1, 2, 4, 8, 64)


@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_are_as_many_as_rows_are_worth_and_have_room(shape):
    """More rows never lead to larger blocks, many rows lead to none, and every possible decision fits the room."""
    sides = [side_of(shape, deviations) for deviations in (-50.0, 0.0, *np.geomspace(1e-3, 1e6, 80))]
    assert sides == sorted(sides, reverse=True)
    assert sides[-1] == 1
    for deviations in (-50.0, 0.0, *np.geomspace(1e-3, 1e6, 80)):
        side = side_of(shape, deviations)
        made = int(np.prod([-(-length // side) for length in shape]))
        assert side == 1 or made <= max(PER * deviations, FEWEST)
        assert side == 1 or made <= room_of(shape)
    assert side_of(shape, 1e-9) == 1 or side_of((4_096,), 1e-9) == 256


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("shape", SHAPES[:7])
def test_a_row_is_in_one_bin_and_one_block(shape, pure):
    """For each possible size of blocks: the norms of what a row adds, and the sums themselves."""
    size = int(np.prod(shape))
    stated = Scales(shape, pure)
    counts = np.random.default_rng(4).integers(0, 9, (1, size))
    for side in SIDES:
        made = Blocks(shape, side, pure)
        for place in np.random.default_rng(side).integers(0, size, 9):
            row = made.exact_sums(np.eye(1, size, place, dtype=np.int64))[0]
            assert row.sum() <= stated.column_sum
            assert (row**2).sum() <= stated.column_square == WEIGHT**2
            assert row[place] == made.weights[0]
            assert not pure or row.sum() == WEIGHT
        found = made.exact_sums(counts)
        assert found.shape == (1, stated.width)
        assert made.bins(found[0] / WEIGHT).tolist() == counts[0].tolist()
        starts = [range(0, length, side) for length in shape]
        whole = counts.reshape(shape)
        corners = itertools.product(*starts)
        blocks = [whole[tuple(slice(at, at + side) for at in corner)].sum() for corner in corners]
        if side > 1:
            assert (found[0, size : size + len(blocks)] == made.weights[1] * np.array(blocks)).all()
            assert not found[0, size + len(blocks) :].any()


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("pure", [True, False])
def test_no_neighbor_is_farther_than_the_sensitivity_whatever_is_decided(pure, unit):
    query = Query(
        "histogram", Keys(bin_axes("x", [0, 1, 2, 3, 4], None, None, "drop")), (("n", StagedRanges((4,), pure)),)
    )
    for seed, most, levels, side in ((1, 1, None, 1), (2, 2, 1, 2), (3, 4, 2, 4), (4, 4, None, 2)):
        found = largest_by_chance(
            query, unit, 1 if pure else 2, tries=12, decided=as_decided(pure, seed, most, levels, side)
        )
        assert found <= 1 + 1e-15


def as_decided(pure, seed, most, levels, side):
    """Return the function that measures four bins by blocks and buckets, as noise could decide them."""
    made = {Later: buckets((4,), pure, seed, most, levels), Scales: Blocks((4,), side, pure)}

    def decided(total, values):
        design = type(total.vector.design)
        return made[design].exact_sums(values).ravel() if design in made else values

    return decided


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_of_all_looks_is_attained(neighbors):
    """With one level, a row adds its whole weight to its bucket. Under replace it changes buckets; the total stays."""
    query = Query(
        "histogram", Keys(bin_axes("x", [0, 1, 2, 3, 4], None, None, "drop")), (("n", StagedRanges((4,), True)),)
    )
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    for side in (1, 2):
        after = [("A", 3.5)] * 2 if neighbors == "replace" else []
        found = ratios(query, unit, [[("A", 0.5)] * 2], [after], 1, as_decided(True, 1, 4, None, side))
        assert [*found.values()] == pytest.approx([0.0 if neighbors == "replace" else 1.0, 1.0, 1.0])


def test_numbers_of_buckets_grow_with_what_is_open_and_seen():
    """The rows seen limit the number of buckets, and one level has at most FLAT of them."""
    for rows in (-50.0, 0.0, 40.0, 1e3, 1e6):
        found = [over_a_line(wanted, rows) for wanted in np.geomspace(1.0, 1e5, 60)]
        most = max(rows, SEEN) ** GROWS
        assert all(0 < buckets <= most for buckets, _ in found)
        assert all(buckets <= FLAT for buckets, levels in found if levels == 1)
    assert over_a_line(20.0, 1e9) == (20.0, 1)
    assert over_a_line(1_000.0, -1e9) == over_a_line(1_000.0, 0.0)


def test_looks_take_their_parts_of_the_price_whatever_the_weights_of_columns():
    plan = pl.DataFrame({"x": [1.0]}).dp.preview
    for words in ({}, {"weights": {"count": 5}}):
        parts = plan.histogram("x", bins=range(2_001), ranges=True, epsilon=3.0, **words).parts
        assert [part.mechanism.pure_epsilon for part in parts] == pytest.approx([0.09, 0.87, 2.04])


def test_public_facts_choose_the_form():
    staged = StagedRanges((1_024,)), StagedRanges((16, 16)), StagedRanges((256, 256))
    assert [type(one.under(True)) for one in staged] == [StagedRanges] * 3
    assert [type(one.under(False)) for one in staged] == [Ranges, Ranges, StagedRanges]
    assert type(StagedRanges((1_000,)).under(True)) is Ranges
    frame = pl.DataFrame({"x": [1.0], "x2": [1.0], "g": ["A"]})
    words = {"bins": range(2_001), "ranges": True}
    asked = frame.dp.preview
    for plan, looks in (
        (asked.histogram("x", **words, epsilon=1.0), 3),
        (asked.histogram("x", **words, epsilon=1.0, denoise=None), 1),
        (asked.histogram("x", **words, within=50.0), 1),
        (asked.histogram("x", **words, epsilon=1.0, delta=1e-6), 1),
        (asked.group_by("g", keys=["A"]).histogram("x", **words, epsilon=1.0), 1),
    ):
        assert len(plan.parts) == looks
    looks = asked.histogram("x", **words, epsilon=1.0).parts
    assert [part.mechanism.pure_epsilon for part in looks] == pytest.approx([0.03, 0.29, 0.68])
    grid = asked.histogram(["x", "x2"], bins=[range(33), range(33)], ranges=True, epsilon=1.0).parts
    assert [part.mechanism.pure_epsilon for part in grid] == pytest.approx([0.03, 0.47, 0.5])
    assert [part.sensitivity.norm(1) for part in looks] == [1.0] * 3
    assert [part.mechanism.grid for part in looks] == [1.0, 1.0 / WEIGHT, 1.0 / LAST_WEIGHT]


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
def test_values_without_much_noise(library):
    generator = np.random.default_rng(5)
    frame = pl.DataFrame({"x": generator.gamma(2.0, 3.0, 5_000), "y": generator.uniform(0, SIDE, 5_000)})
    exact = np.histogram2d(frame["x"], frame["y"], [EDGES, EDGES])[0]
    ledger = dpf.Ledger(epsilon=1e9)
    found = given_as(frame, library).dp.histogram(
        ["x", "y"], bins=[EDGES, EDGES], ranges=True, epsilon=1e6, ledger=ledger
    )
    assert list(found.columns)[-3:] == ["count", "count_noisy", "count_error"]
    assert found.dp.to_numpy("count") == pytest.approx(exact, abs=1e-2)
    assert found.dp.provenance["measures"]["count"]["denoise"][0]["chose"].startswith("all looks")
    assert found.dp.errors()["interval"].to_list() == [0.0]


@pytest.mark.parametrize("gaussian", [False, True])
def test_rectangles_and_cells_err_less_than_by_the_fixed_design(gaussian):
    """Few cells hold all rows. With Gaussian noise on so large a grid, rectangles err alike, and cells far less."""
    shape, draws = ((256, 256), 1) if gaussian else ((128, 128), 4)
    truth = np.zeros(shape, dtype=np.int64)
    truth[3:9, 10:12], truth[40, 50], truth[20:30, 20:30] = 200, 5_000, 12
    row, column = (np.repeat(place.ravel(), truth.ravel()) for place in np.indices(shape))
    frame = pl.DataFrame({"x": row, "y": column})
    words = {"bins": [range(side + 1) for side in shape], "ranges": True, "epsilon": 0.2}
    words |= {"delta": 1e-6} if gaussian else {}
    spent = dpf.Ledger(epsilon=100, **({"delta": 1e-3} if gaussian else {}), accounting="basic")
    with noise.insecure_bits(11):
        off = {
            kept: [
                frame.dp.histogram(["x", "y"], ledger=spent, **words, **more).dp.to_numpy("count") - truth
                for _ in range(draws)
            ]
            for kept, more in (("staged", {}), ("fixed", {"denoise": None}))
        }
    cells = {kept: np.square(found).sum() for kept, found in off.items()}
    rectangles = {kept: sum(squares_of_rectangles(one) for one in found) for kept, found in off.items()}
    assert cells["staged"] < cells["fixed"] / 10
    assert rectangles["staged"] < rectangles["fixed"] * (2 if gaussian else 2 / 3)


def squares_of_rectangles(off):
    """Return the mean squared error of 2,000 random rectangles."""
    sums = np.pad(off.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    ends = np.sort(np.random.default_rng(5).integers(0, off.shape[0] + 1, (2, 2_000, 2)), axis=2)
    (top, bottom), (left, right) = ends[0].T, ends[1].T
    return ((sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]) ** 2).mean()


@pytest.mark.slow
@pytest.mark.parametrize("copies", [3, 1])
def test_looks_have_their_noise(copies, monkeypatch):
    """Laplace noise at 29% and 68% of epsilon, with blocks or without: 2% off is 4% of variance, 1e-6 alarms."""

    def plainly(values, *_, **__):
        return Context("as they are", values, 0.0, 0.0, lambda: np.ones(values.shape))

    monkeypatch.setattr("dpframe.queries.stages.in_context", plainly)
    frame = pl.DataFrame({"x": np.repeat(np.arange(1_024), copies)})
    plan = frame.dp.preview.histogram("x", bins=range(1_025), ranges=True, epsilon=0.4)
    looks, squares, sides = plan.query.statistics[0][1].totals()[1:], {0: [], 1: []}, set()
    for _ in range(350):
        measured = noisy_of(plan, totals(frame, plan.query, plan.unit, 1))
        for number, weight in ((0, WEIGHT), (1, LAST_WEIGHT)):
            look = measured[looks[number]]
            true = look.decided.exact_sums(totals(frame, plan.query, plan.unit, 1)[looks[number]])
            squares[number].append(np.square(look.values - true.ravel() / weight))
        sides.add(measured[looks[0]].decided.side)
    assert (sides == {1}) == (copies == 3)
    for number, price in ((0, 0.29), (1, 0.68)):
        variance = plan.parts[number + 1].mechanism.variance
        assert variance == pytest.approx(2 / (0.4 * price) ** 2, rel=1e-3)
        assert np.mean(squares[number]) == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize("epsilon", [0.5, 0.05])
def test_intervals_of_the_noisy_counts_cover(epsilon):
    """1,024 bins in 20 releases, with blocks and without: false alarms below 1e-6."""
    frame = pl.DataFrame({"x": np.repeat(np.arange(1_024), np.arange(1_024) % 7)})
    missed, errors = 0, set()
    for _ in range(20):
        found = frame.dp.histogram("x", bins=range(1_025), ranges=True, epsilon=epsilon, ledger=dpf.Ledger(epsilon=1))
        off = found["count_noisy"].to_numpy() - np.arange(1_024) % 7
        assert (found["count_error"] == found["count_error"][0]).all()
        errors.add(found["count_error"][0])
        missed += int((np.abs(off) > found["count_error"].to_numpy()).sum())
    plan = frame.dp.preview.histogram("x", bins=range(1_025), ranges=True, epsilon=epsilon)
    assert errors == {plan.error["count"] * (1 if epsilon == 0.5 else 4)}
    assert "4 times that if rows are few" in str(plan)
    assert chance_of_missing(missed, 20 * 1_024, 0.05) > 1e-6


@pytest.mark.parametrize("axes", [1, 2])
def test_blocks_help_where_few_rows_are_seen(axes, monkeypatch):
    """1,000 rows in a steep hill: sums have less error than if each bin were measured by itself."""
    generator = np.random.default_rng(3)
    shape = (4_096,) if axes == 1 else (128, 128)
    places = [np.clip(generator.normal(0.3, 0.03, 1_000) * length, 0, length - 1).astype(int) for length in shape]
    truth = np.zeros(shape, dtype=np.int64)
    np.add.at(truth, tuple(places), 1)
    frame = pl.DataFrame({f"x{axis}": place for axis, place in enumerate(places)})
    words = {"bins": [range(length + 1) for length in shape], "ranges": True, "epsilon": 0.2}
    means = []
    for kept in (PER, 1e9):
        monkeypatch.setattr("dpframe.queries.stages.PER", kept)
        with noise.insecure_bits(11):
            found = [frame.dp.histogram([*frame.columns], ledger=dpf.Ledger(epsilon=1), **words) for _ in range(12)]
        off = [one.dp.to_numpy("count").reshape(shape) - truth for one in found]
        sums = off if axes == 1 else [one.cumsum(axis=0) for one in off]
        means.append(np.mean([np.square(one.cumsum(axis=-1)).mean() for one in sums]))
    assert means[0] < means[1] / 1.5


def test_a_call_of_units_and_its_record():
    generator = np.random.default_rng(8)
    frame = pl.DataFrame(
        {"x": generator.gamma(3, 4, 9_000), "y": generator.gamma(3, 4, 9_000), "u": np.arange(9_000) // 3}
    )
    ledger = dpf.Ledger(epsilon=9, unit=PrivacyUnit("u", neighbors="replace", max_rows=3))
    found = frame.dp.histogram(["x", "y"], bins=[EDGES, EDGES], ranges=True, epsilon=2.0, ledger=ledger)
    inside = frame.filter((pl.col("x") <= SIDE) & (pl.col("y") <= SIDE)).height
    assert found["count"].sum() == pytest.approx(inside, rel=0.05)
    assert (found["count"] >= 0).all()
    *_, last = found.dp.provenance["statistics"]
    assert last["sensitivity"] == 2 * 3.0
    assert "all looks" in str(found.dp.provenance)
    assert ledger.spent.epsilon == 2


@pytest.mark.parametrize("epsilon", [1.0, 8_000.0])
def test_arithmetic_on_noisy_numbers_is_silent(epsilon):
    """No setting of `numpy.seterr` may make a charged call fail or warn."""
    frame = pl.DataFrame({"x": np.zeros(5_000)})
    with np.errstate(all="raise"):
        found = frame.dp.histogram("x", bins=range(1_025), ranges=True, epsilon=epsilon, ledger=dpf.Ledger(epsilon=1e4))
    assert np.isfinite(found["count"].to_numpy()).all()


def test_intervals_are_drawn_around_the_noisy_counts():
    frame = pl.DataFrame({"x": np.repeat(np.arange(1_024), 2)})
    found = frame.dp.histogram("x", bins=range(1_025), ranges=True, epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
    assert found.dp.provenance["measures"]["count"]["looks"] == 3
    assert foreign.is_around_noisy(found.dp.provenance["measures"]["count"])


def test_nothing_learned_is_no_failure():
    """An empty table with more bins than buckets, with much noise and with practically none."""
    empty = pl.DataFrame({"x": pl.Series([], dtype=pl.Float64)})
    for epsilon in (1e-3, 1e6):
        found = empty.dp.histogram("x", bins=range(2_001), ranges=True, epsilon=epsilon, ledger=dpf.Ledger(epsilon=1e6))
        assert np.isfinite(found["count"].to_numpy()).all()
        assert (found["count"] >= 0).all()
