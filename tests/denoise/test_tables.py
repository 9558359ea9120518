"""Tables with all their margins: the closed form against dense least squares, and the nearest non-negative table."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpframe.denoise import public_total
from dpframe.denoise.sums import fitted_table, margins


@dataclass(frozen=True)
class Law:
    variance: float
    grid: float = 1.0


def sums(shape):
    """Return, for each set of axes, the matrix that adds cells up to its margin."""
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
def test_a_table_without_negatives_is_settled_from_the_total_down(shape):
    for seed in range(5):
        generator = np.random.default_rng(seed)
        values, noise = noisy(shape, generator), laws(shape, generator)
        free = fitted_table(values, noise, nonnegative=False).cells
        found = fitted_table(values, noise, nonnegative=True).cells
        assert found.min() >= 0.0
        total = max(free.sum(), 0.0)
        assert found.sum() == pytest.approx(total, abs=0.1)
        for axis in range(len(shape)):
            gone = tuple(one for one in range(len(shape)) if one != axis)
            wanted = public_total(free.sum(axis=gone), Law(1.0), total=total, nonnegative=True)
            off = 0.1 if len(shape) < 3 else 0.3 * len(shape)  # margins of three axes may fit no table
            assert found.sum(axis=gone) == pytest.approx(wanted, abs=off)


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


@pytest.mark.parametrize("shape", [(40, 30), (16, 20, 25)], ids=str)
def test_a_sparse_table_is_nearer_and_no_margin_is_worse_than_was_measured(shape):
    generator = np.random.default_rng(4)
    truth = generator.poisson(generator.gamma(0.15, 20.0, shape)).astype(float)
    sets = margins(len(shape))
    gone = {kept: tuple(axis for axis in range(len(shape)) if axis not in kept) for kept in sets}
    squares = dict.fromkeys(sets, 0.0)
    for _ in range(10):
        values = {
            kept: truth.sum(axis=gone[kept]) + generator.normal(0.0, 20.0, [shape[axis] for axis in kept])
            for kept in sets
        }
        found = fitted_table(values, dict.fromkeys(values, Law(400.0)), nonnegative=True).cells
        for kept in sets:
            squares[kept] += np.square((found - truth).sum(axis=gone[kept])).mean() / 10
    errors = {kept: math.sqrt(square) for kept, square in squares.items()}
    assert errors[sets[0]] < 12.0  # the noise has 20
    assert max(errors[kept] for kept in sets if len(kept) > 1) < 20.0
    assert max(errors[kept] for kept in sets if kept) < 24.0
    assert errors[()] < 40.0  # a single number in each of ten draws
