"""Whether more than one level of all cells is seen, and the result if only one is seen. Seeds are fixed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpframe import Gaussian, GeneralizedGaussian, InvalidArgument, Laplace, noise
from dpframe.denoise import choose as choosing
from dpframe.denoise.choose import choose, is_level

LAWS = {
    "laplace": Laplace(1, 10.0),
    "coarse laplace": Laplace(1, 0.9),
    "gaussian": Gaussian(1.0, 14.0),
    "coarse gaussian": Gaussian(1.0, 1.1),
    "between": GeneralizedGaussian(1.0, 12.0, p=1.5),
    "flat": GeneralizedGaussian(1.0, 2.5, p=4.0),
}
SHAPES = {"line": ((2048,), (0,)), "grid": ((48, 50), (0, 1)), "one axis": ((300, 7), (0,)), "no order": ((1500,), ())}
laws = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def tables(law, shape, count, truth=0):
    """Return noisy tables, all from one draw."""
    with noise.insecure_bits(5):
        cells = law.add_noise(np.broadcast_to(np.asarray(truth, dtype=np.int64), (count, *shape)).copy())
    return cells.astype(np.float64)


@laws
@pytest.mark.parametrize(("shape", "axes"), SHAPES.values(), ids=SHAPES.keys())
def test_noise_alone_is_rarely_taken_for_more(law, shape, axes):
    """Each of four tests errs in 1% of tables. At 4% in all, the count exceeds the bound with chance 1e-6."""
    drawn = tables(law, shape, 400, 7)
    wrong = sum(not is_level(one, law, axes) for one in drawn)
    assert wrong <= stats.binom.isf(1e-6, len(drawn), 0.04)


@laws
def test_a_cell_a_block_and_many_cells_are_seen(law):
    """Each is detected by the test designed for it; the other tests do not detect it."""
    deviation, places = math.sqrt(law.variance), np.arange(4096)
    some = np.where((places >= 1000) & (places < 1512), 1, 0)
    scattered = np.where(places * 2654435761 % 2**32 < 2**31, 1, -1)
    for shape, size in ((places == 77, 30.0), (some, 1.0), (scattered, 0.8)):
        truth = np.rint(shape * max(size * deviation, 1.0)).astype(np.int64)
        assert not any(is_level(one, law, (0,)) for one in tables(law, (4096,), 20, truth))
    if law.grid < 0.5 * deviation:
        block = np.rint(0.35 * deviation * some).astype(np.int64)
        assert not any(is_level(one, law, (0,)) for one in tables(law, (4096,), 20, block))
        mixed = np.random.default_rng(3).permutation(block)
        assert sum(is_level(one, law, ()) for one in tables(law, (4096,), 20, mixed)) >= 15


def test_a_slope_is_seen_that_no_block_shows():
    """Only all blocks of a width together show it; each block alone is within its noise."""
    law, places = LAWS["laplace"], np.arange(32)
    for truth, axes in ((np.add.outer(places, places) // 4, (0, 1)), (np.arange(2048) // 200, (0,))):
        assert not any(is_level(one, law, axes) for one in tables(law, truth.shape, 20, truth))


@laws
def test_a_cell_that_is_as_large_is_one_of_a_hundred_tables(law):
    """By 4 million draws, the bound has the stated tail, or is at most one step of the grid too far."""
    deviation = math.sqrt(law.variance)
    drawn = np.abs(tables(law, (1_000_000,), 4).ravel()) / deviation
    for cells in (1, 10, 100):  # as if a table had this number of cells
        far = choosing.largest_cell(cells, law)
        expected = 0.01 / cells
        nearer = float(np.mean(drawn >= far - law.grid / deviation))
        assert float(np.mean(drawn >= far)) <= 1.1 * expected
        assert nearer >= 0.9 * expected or far == 3.0


@laws
def test_the_spread_of_squares_is_that_of_draws(law):
    squares = np.square(tables(law, (1_000_000,), 4).ravel()) / law.variance
    assert choosing.spread_of_squares(law) == pytest.approx(float(squares.var()), rel=0.08)


@pytest.mark.parametrize("shape", [(4096,), (64, 64)])
def test_where_no_row_is_seen_cells_are_at_one_level_and_sums_no_worse(shape):
    """128 rows; the noise of the sum of all has deviation 905. Before, single cells of noise were released as rows."""
    law = LAWS["laplace"]
    truth = np.zeros(shape, dtype=np.int64)
    truth.ravel()[: 4096 // 8 : 4] = 1
    noisy = tables(law, shape, 60, truth)
    found = [choose(one, law, nonnegative=True, order=True if len(shape) == 1 else None) for one in noisy]
    levels = [one for one in found if one.name.startswith("one level")]
    assert len(levels) >= 55
    off = np.array([one.values for one in levels]) - truth
    assert np.square(off).mean() < 0.001 * law.variance
    assert min(one.values.min() for one in levels) >= 0.0
    for axes in (1,), (1, 2)[: len(shape)]:
        through, noises = off, noisy - truth
        for axis in axes:
            through, noises = through.cumsum(axis=axis), noises.cumsum(axis=axis)
        assert np.square(through).mean() < np.square(noises).mean()


@pytest.mark.slow
def test_of_few_cells_nothing_must_be_seen_and_on_a_graph_parts_of_it_may_be():
    law = LAWS["laplace"]
    ring = np.stack([np.arange(1024), (np.arange(1024) + 1) % 1024], axis=1)

    def levels(cells, truth=0, **known):
        found = [choose(one, law, nonnegative=True, **known) for one in tables(law, (cells,), 20, truth)]
        return sum("one level" in one.name for one in found)

    assert levels(1024, order=True) >= 15
    assert levels(1024) >= 15
    assert levels(1023, order=True) == 0
    assert levels(1024, graph=ring) >= 15
    mixed = np.random.default_rng(6).permutation(1024)
    truth = np.where(np.arange(1024) < 300, 8, 0)[mixed]
    assert levels(1024, truth) >= 10
    assert levels(1024, truth, graph=np.argsort(mixed)[ring]) == 0
    assert levels(1024, np.where(np.arange(1024) < 512, 40, 0), order=True) == 0


def test_the_error_that_is_expected_is_not_below_that_of_the_mean():
    law = LAWS["gaussian"]
    for one in tables(law, (4096,), 5):
        found = choose(one, law, nonnegative=True, order=True)
        assert math.sqrt(law.variance / 4096) <= found.estimated_rmse < 0.3 * math.sqrt(law.variance)
        assert found.deviations is None
        assert found.dominated


def test_nothing_is_said_of_what_is_not_this_noise():
    """After another denoiser, on a grid coarser than the noise, and with values that are not finite."""
    law = LAWS["laplace"]
    noisy = next(one for one in tables(law, (2048,), 20) if is_level(one, law, (0,)))
    assert not is_level(0.9 * noisy, law, (0,))
    soft = np.sign(noisy) * np.maximum(np.abs(noisy) - 60.0, 0.0)
    assert not is_level(soft, law, (0,))
    for sigma in (0.12, 0.15, 0.2, 0.3, 0.6):
        coarse = Gaussian(1.0, sigma)
        assert not is_level(*tables(coarse, (2048,), 1), coarse, (0,))
    for odd in (math.nan, math.inf):
        noisy[3] = odd
        with np.errstate(all="ignore"):
            assert not is_level(noisy, law, (0,))
        with pytest.raises(InvalidArgument, match="values must be finite to be denoised"):
            choose(noisy, law, order=True)
