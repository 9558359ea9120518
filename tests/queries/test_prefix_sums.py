"""Running counts by the square-root factorization and by trees: exact designs, and their stated errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpframe.queries.prefix_sums import PrefixSums, Tree, coefficients

PUBLISHED = [  # bins, sum of squares of the first column in steps, root mean squared and largest error at mu = 1
    (4, 24969216, 1.381417298, 1.488281250),
    (11, 30574920, 1.682129804, 1.822389362),
    (52, 38965760, 2.164291079, 2.322468767),
    (101, 42524701, 2.373834616, 2.534527658),
    (365, 49395360, 2.781539930, 2.944055246),
    (1000, 54780380, 3.102239641, 3.265007937),
    (4096, 62311100, 3.551285417, 3.713903966),
]
TREES = {8: (8, 3.0), 16: (6, 4.0), 32: (12, 4.878), 64: (12, 5.844), 128: (24, 7.08), 256: (24, 8.438)}
TREES |= {512: (12, 9.543), 1024: (16, 11.007), 2048: (16, 12.446), 1000: (16, 10.947), 121: (16, 6.938)}
DESIGNS = [PrefixSums(size) for size in (1, 13, 40)]
DESIGNS += [Tree(*one) for one in ((1, 2), (7, 7), (13, 3), (26, 5), (125, 5))]


@pytest.mark.parametrize(("size", "squares", "error", "largest"), PUBLISHED)
def test_the_factorization_has_the_published_errors(size, squares, error, largest):
    design = PrefixSums(size)
    assert design.column_square == squares
    assert design.error == pytest.approx(error, rel=1e-9)
    assert (design.column_square * design.variances.max()) ** 0.5 * design.grid == pytest.approx(largest, rel=1e-9)


def test_coefficients_are_the_exact_ones_rounded():
    exact, found = Fraction(1), coefficients(1_000)
    for place in range(1_000):
        assert found[place] == round(exact * 2**12)
        exact *= Fraction(2 * place + 1, 2 * place + 2)
    assert (np.diff(coefficients(2**14)) <= 0).all()


@pytest.mark.parametrize("size", TREES)
def test_trees_have_the_published_errors(size):
    branching, error = TREES[size]
    tree = Tree.best(size)
    assert tree.branching == branching
    assert tree.error == pytest.approx(error, abs=6e-4)


def test_trees_have_the_levels_that_the_page_on_statistics_says():
    """2 levels up to about 250 candidates, 3 up to about 4,400, then 4."""
    assert [Tree.best(size).levels for size in (121, 230, 270, 1_000, 4_300, 4_500)] == [2, 2, 3, 3, 3, 4]


def test_levels_are_counted_by_whole_powers():
    assert Tree(125, 5).levels == 3  # log(125) / log(5) is 3.0000000000000004
    assert [Tree(size, 5).levels for size in (1, 5, 6, 25, 26, 126)] == [1, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_what_is_read_is_least_squares_and_its_covariances(design):
    """Compared with dense algebra: the measured matrix, its pseudo-inverse, and the covariance of running counts."""
    matrix = design.exact_sums(np.eye(design.size, dtype=np.int64)).T * design.grid
    running = np.tril(np.ones((design.size, design.size))) @ np.linalg.pinv(matrix)
    noise = np.random.default_rng(design.size).normal(size=(3, design.width))
    assert np.allclose(design.running(noise), noise @ running.T)
    covariances = running @ running.T
    assert np.allclose(np.diag(covariances), design.variances)
    assert np.allclose(covariances[:, -1], design.with_last)


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_one_row_moves_what_is_measured_by_no_more_than_stated(design):
    moved = design.exact_sums(np.eye(design.size, dtype=np.int64)).astype(object)
    assert max(sum(abs(entry) for entry in row) for row in moved) == design.column_sum
    assert max(sum(entry**2 for entry in row) for row in moved) == design.column_square
    assert (moved >= 0).all()


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_whole_counts_are_measured_exactly_and_wrap(design):
    counts = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (2, design.size))
    once, twice = design.exact_sums(counts), design.exact_sums(counts[:, :]) + design.exact_sums(counts)
    assert (design.exact_sums(counts + counts) == twice).all()
    exact = design.exact_sums(np.eye(design.size, dtype=np.int64)).astype(object)
    expected = [[int(value) for value in row] for row in counts.astype(object) @ exact]
    assert [[(value + 2**63) % 2**64 - 2**63 for value in row] for row in expected] == once.tolist()


@pytest.mark.parametrize("design", [PrefixSums(2**14), Tree.best(2**14)], ids=["factorization", "tree"])
def test_the_largest_number_of_candidates_is_read_exactly(design):
    counts = np.random.default_rng(2).integers(0, 1_000, (2, design.size))
    found = design.running(design.exact_sums(counts) * design.grid)
    assert np.abs(found - np.cumsum(counts, axis=1)).max() < 1e-6
