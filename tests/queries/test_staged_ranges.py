"""Counts by two looks: buckets, the sensitivity of what they decide, errors, whole calls."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from neighbors import UNITS, given_as, largest_by_chance, ratios
from scipy.stats import binom

import dpframe as dpf
from dpframe import PrivacyUnit, noise
from dpframe.denoise.buckets import buckets_of, shared_out, within_buckets
from dpframe.denoise.context import Context
from dpframe.engines.totals import totals
from dpframe.queries.keys import Keys, bin_axes
from dpframe.queries.query import Query
from dpframe.queries.stages import FLAT, GROWS, MOST, MOST_LEVELS, ROOM, SEEN, WEIGHT, Buckets, Later, over_a_line
from dpframe.queries.statistics import Ranges, StagedRanges
from dpframe.release.results import noisy_of

SIDE = 24
EDGES = np.arange(SIDE + 1.0)


def buckets(shape, pure, seed, most=8, levels=None):
    """Buckets as noise may have made them."""
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
    """Numbers of buckets that there may be: norms of columns, levels, and the room for all blocks."""
    stated = Later((MOST,), pure)
    for size in (*range(1, 70), *range(70, MOST, 31), 255, 256, 257, MOST - 1, MOST):
        for levels in (None, 1, 2, 3):
            made = Buckets(np.zeros(size), np.ones(size), np.arange(size), pure, levels)
            assert made.tree.size == size
            assert made.tree.levels <= (levels or MOST_LEVELS)
            assert made.tree.width <= ROOM
            assert made.tree.levels * made.weight <= stated.column_sum
            assert made.tree.levels * made.weight**2 <= stated.column_square == WEIGHT**2
    assert not pure or stated.column_sum == WEIGHT


@pytest.mark.parametrize("pure", [True, False])
def test_what_is_measured_are_weighted_blocks(pure):
    """Each column of the matrix has the weight once on each level; the sums are those of the buckets."""
    made = buckets((6, 5), pure, 2, most=7)
    matrix = made.measured(np.eye(30, dtype=np.int64)[:1])[0]
    rows = np.concatenate([made.measured(np.eye(30, dtype=np.int64)[place][None]) for place in range(30)])
    assert matrix.shape == (ROOM,)
    assert (rows.sum(axis=1) == made.tree.levels * made.weight).all()
    assert ((rows**2).sum(axis=1) == made.tree.levels * made.weight**2).all()
    counts = np.random.default_rng(4).integers(0, 9, (1, 30))
    names, measured = made.names.ravel(), made.measured(counts)[0]
    assert (measured[: made.tree.size] == made.weight * np.bincount(names, counts[0]).astype(int)).all()
    assert measured == pytest.approx(counts[0] @ rows)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("pure", [True, False])
def test_no_neighbor_is_farther_than_the_sensitivity_whatever_is_decided(pure, unit):
    query = Query(
        "histogram", Keys(bin_axes("x", [0, 1, 2, 3, 4], None, None, "drop")), (("n", StagedRanges((4,), pure)),)
    )
    for seed, most, levels in ((1, 1, None), (2, 2, 1), (3, 4, 2), (4, 4, None)):
        made = buckets((4,), pure, seed, most, levels)

        def decided(total, values, made=made):
            return values if isinstance(total.vector.design, Later) is False else made.measured(values).ravel()

        found = largest_by_chance(query, unit, 1 if pure else 2, tries=12, decided=decided)
        assert found <= 1 + 1e-15


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_of_the_second_look_is_attained(neighbors):
    """With one level a row adds the whole weight to its bucket; under replace it moves to another."""
    query = Query(
        "histogram", Keys(bin_axes("x", [0, 1, 2, 3, 4], None, None, "drop")), (("n", StagedRanges((4,), True)),)
    )
    made = buckets((4,), True, 1, 4)
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    after = [("A", 3.5)] * 2 if neighbors == "replace" else []
    found = ratios(
        query,
        unit,
        [[("A", 0.5)] * 2],
        [after],
        1,
        lambda total, values: made.measured(values).ravel() if isinstance(total.vector.design, Later) else values,
    )
    assert [*found.values()] == pytest.approx([1.0, 1.0])


def test_numbers_of_buckets_grow_with_what_is_open_and_seen():
    """Never more than are worth their noise or than rows seen allow; more levels only over more buckets."""
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
        assert [part.mechanism.pure_epsilon for part in parts] == [1.0, 2.0]


def test_public_facts_choose_the_form():
    staged = StagedRanges((1_024,)), StagedRanges((16, 16)), StagedRanges((256, 256))
    assert [type(one.under(True)) for one in staged] == [StagedRanges] * 3
    assert [type(one.under(False)) for one in staged] == [Ranges, Ranges, StagedRanges]
    assert type(StagedRanges((1_000,)).under(True)) is Ranges
    frame = pl.DataFrame({"x": [1.0], "x2": [1.0], "g": ["A"]})
    words = {"bins": range(2_001), "ranges": True}
    asked = frame.dp.preview
    for plan, looks in (
        (asked.histogram("x", **words, epsilon=1.0), 2),
        (asked.histogram("x", **words, epsilon=1.0, denoise=None), 1),
        (asked.histogram("x", **words, within=50.0), 1),
        (asked.histogram("x", **words, epsilon=1.0, delta=1e-6), 1),
        (asked.group_by("g", keys=["A"]).histogram("x", **words, epsilon=1.0), 1),
    ):
        assert len(plan.parts) == looks
    first, second = asked.histogram("x", **words, epsilon=1.0).parts
    assert (first.mechanism.pure_epsilon, second.mechanism.pure_epsilon) == pytest.approx((1 / 3, 2 / 3))
    grid = asked.histogram(["x", "x2"], bins=[range(33), range(33)], ranges=True, epsilon=1.0).parts
    assert [part.mechanism.pure_epsilon for part in grid] == [0.5, 0.5]
    assert second.sensitivity.norm(1) == 1.0
    assert second.mechanism.grid == 1.0 / WEIGHT


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
    assert found.dp.provenance["measures"]["count"]["denoise"][0]["chose"].startswith("both looks")
    assert found.dp.errors()["interval"].to_list() == [0.0]


@pytest.mark.parametrize("gaussian", [False, True])
def test_rectangles_and_cells_err_less_than_by_the_fixed_design(gaussian):
    """Few places hold all rows. With Gaussian noise rectangles of so large a grid err alike, and cells far less."""
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
    """The mean square of the errors of 2,000 rectangles."""
    sums = np.pad(off.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    ends = np.sort(np.random.default_rng(5).integers(0, off.shape[0] + 1, (2, 2_000, 2)), axis=2)
    (top, bottom), (left, right) = ends[0].T, ends[1].T
    return ((sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]) ** 2).mean()


@pytest.mark.slow
def test_the_second_look_has_its_noise(monkeypatch):
    """Its blocks are off by Laplace noise of two thirds of the price: 2% off is 4% of variance, 1e-6 false alarms."""
    plainly = Context("as they are", np.zeros(1_024), 0.0, 0.0, lambda: np.ones(1_024))
    monkeypatch.setattr("dpframe.queries.stages.in_context", lambda *_, **__: plainly)
    frame = pl.DataFrame({"x": np.repeat(np.arange(1_024), 3)})
    plan = frame.dp.preview.histogram("x", bins=range(1_025), ranges=True, epsilon=0.4)
    looks = plan.query.statistics[0][1].totals()
    squares = []
    for _ in range(350):
        exact = totals(frame, plan.query, plan.unit, 1)
        measured = noisy_of(plan, exact)
        second = measured[looks[1]]
        true = second.decided.measured(totals(frame, plan.query, plan.unit, 1)[looks[1]])
        squares.append(np.square(second.values - true.ravel() / WEIGHT))
    variance = plan.parts[1].mechanism.variance
    assert variance == pytest.approx(2 / (0.8 / 3) ** 2, rel=1e-3)
    assert np.mean(squares) == pytest.approx(variance, rel=0.02)


def test_intervals_of_the_noisy_counts_cover():
    """1,024 bins by 20 draws: false alarms below 1e-6."""
    frame = pl.DataFrame({"x": np.repeat(np.arange(1_024), np.arange(1_024) % 7)})
    missed = 0
    for _ in range(20):
        found = frame.dp.histogram("x", bins=range(1_025), ranges=True, epsilon=0.3, ledger=dpf.Ledger(epsilon=1))
        off = found["count_noisy"].to_numpy() - np.arange(1_024) % 7
        assert (found["count_error"] == found["count_error"][0]).all()
        missed += int((np.abs(off) > found["count_error"].to_numpy()).sum())
    assert binom.sf(missed - 1, 20 * 1_024, 0.05) > 1e-6


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
    _, second = found.dp.provenance["statistics"]
    assert second["sensitivity"] == 2 * 3.0
    assert "both looks" in str(found.dp.provenance)
    assert ledger.spent.epsilon == 2


def test_nothing_learned_is_no_failure():
    """An empty table, one whose noise is nothing, and more cells than buckets."""
    empty = pl.DataFrame({"x": pl.Series([], dtype=pl.Float64)})
    for epsilon in (1e-3, 1e6):
        found = empty.dp.histogram("x", bins=range(2_001), ranges=True, epsilon=epsilon, ledger=dpf.Ledger(epsilon=1e6))
        assert np.isfinite(found["count"].to_numpy()).all()
        assert (found["count"] >= 0).all()
