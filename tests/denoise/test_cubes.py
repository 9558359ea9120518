"""Tables with all their margins: the closed form against dense least squares, and the nearest non-negative table."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpframe.denoise.cubes import fitted_table, margins


@dataclass(frozen=True)
class Law:
    variance: float
    grid: float = 1.0


def sums(shape):
    """For each set of axes the matrix that adds cells up to its margin."""
    eye = np.eye(math.prod(shape)).reshape(*shape, -1)
    found = {}
    for kept in margins(len(shape)):
        gone = tuple(axis for axis in range(len(shape)) if axis not in kept)
        found[kept] = eye.sum(axis=gone).reshape(-1, math.prod(shape))
    return found


def noisy(shape, generator, low=-20.0):
    return {kept: generator.uniform(low, 30.0, [shape[axis] for axis in kept]) for kept in margins(len(shape))}


def laws(shape, generator):
    return {kept: Law(generator.uniform(0.5, 9.0)) for kept in margins(len(shape))}


SHAPES = [(4,), (3, 4), (2, 1), (1, 1, 3), (2, 3, 4), (2, 2, 2, 2)]


def test_margins_are_in_the_order_of_levels():
    assert margins(2) == [(0, 1), (0,), (1,), ()]
    assert margins(3) == [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,), ()]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_fit_is_that_of_least_squares_and_so_are_its_variances(shape):
    generator = np.random.default_rng(sum(shape))
    values, noise, design = noisy(shape, generator), laws(shape, generator), sums(shape)
    found = fitted_table(values, noise, nonnegative=False)
    precision = sum(design[kept].T @ design[kept] / noise[kept].variance for kept in design)
    right = sum(design[kept].T @ values[kept].ravel() / noise[kept].variance for kept in design)
    assert found.cells.ravel() == pytest.approx(np.linalg.solve(precision, right), rel=1e-9, abs=1e-9)
    covariance = np.linalg.inv(precision)
    for kept, matrix in design.items():
        assert found.variances[kept] == pytest.approx(np.diag(matrix @ covariance @ matrix.T).mean(), rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_nonnegative_table_is_the_nearest_one(shape):
    """By the conditions of Karush, Kuhn and Tucker: no gradient is negative, and where it is not 0 the cell is."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        values, noise, design = noisy(shape, generator), laws(shape, generator), sums(shape)
        found = fitted_table(values, noise, nonnegative=True).cells.ravel()
        assert found.min() >= 0.0
        gradient = sum(
            design[kept].T @ (design[kept] @ found - values[kept].ravel()) / noise[kept].variance for kept in design
        )
        assert gradient.min() > -0.02
        assert np.abs(gradient * found).max() < 0.3


def test_a_table_that_agrees_stays_as_it_is_with_or_without_noise():
    table = np.random.default_rng(3).integers(0, 50, (3, 4, 2)).astype(np.float64)
    values = {kept: table.sum(axis=tuple(axis for axis in range(3) if axis not in kept)) for kept in margins(3)}
    for variance, one in itertools.product((0.0, 2.0), (True, False)):
        found = fitted_table(values, dict.fromkeys(values, Law(variance)), nonnegative=one)
        assert found.cells == pytest.approx(table, abs=1e-9)
        assert (max(found.variances.values()) > 0.0) == (variance > 0.0)
    exact_total = {kept: Law(0.0 if kept == () else 2.0) for kept in values}
    moved = {**values, (): values[()] + 24.0}
    found = fitted_table(moved, exact_total, nonnegative=False)
    assert found.cells.sum() == pytest.approx(values[()] + 24.0)


def test_a_sparse_table_is_nearer_than_its_cells_and_its_margins_are_no_worse():
    generator = np.random.default_rng(4)
    truth = generator.poisson(generator.gamma(0.15, 20.0, (40, 30))).astype(float)
    errors = []
    for _ in range(10):
        values = {
            kept: (whole := truth.sum(axis=tuple(axis for axis in range(2) if axis not in kept)))
            + generator.normal(0.0, 20.0, np.shape(whole))
            for kept in margins(2)
        }
        found = fitted_table(values, dict.fromkeys(values, Law(400.0)), nonnegative=True).cells
        margin = [found - truth, *(found.sum(axis=axis) - truth.sum(axis=axis) for axis in (0, 1))]
        errors.append([math.sqrt((one**2).mean()) for one in margin])
    cells, across, down = np.mean(errors, axis=0)
    assert cells < 12.0  # of 20
    assert max(across, down) < 20.0
