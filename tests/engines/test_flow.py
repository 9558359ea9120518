"""The largest assignment of distinct values to units: its size by two other algorithms, and hard graphs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from dpframe.engines.sums.distinct import covered


def by_definition(edges, most):
    """Return the size of the largest set of values of which every subset meets Hall's condition."""
    values = sorted({value for _, value in edges})
    held = {value: {unit for unit, other in edges if other == value} for value in values}

    def fits(chosen):
        subsets = (part for size in range(1, len(chosen) + 1) for part in combinations(chosen, size))
        return all(len(part) <= most * len(set.union(*(held[value] for value in part))) for part in subsets)

    sizes = range(len(values), 0, -1)
    return next((size for size in sizes if any(fits(chosen) for chosen in combinations(values, size))), 0)


def by_matching(unit, value, units, values, most):
    """Return the size of SciPy's matching with `most` copies of each unit."""
    copies = np.concatenate([unit * most + copy for copy in range(most)])
    edges = (np.ones(copies.size, dtype=np.int8), (copies, np.tile(value, most)))
    graph = csr_array(edges, shape=(units * most, values))
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)  # SciPy 1.12 needs this
    matched = maximum_bipartite_matching(graph, perm_type="column")
    return int((matched >= 0).sum())


def drawn(generator, most_units, most_values, per_unit):
    units, values = (int(generator.integers(1, most)) for most in (most_units, most_values))
    size = min(units * values, int(generator.integers(1, per_unit * units + 1)))
    unit, value = np.divmod(generator.choice(units * values, size, replace=False), values)
    return unit, value, units, values


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_largest_by_definition(seed):
    generator = np.random.default_rng(seed)
    unit, value, units, values = drawn(generator, 6, 7, 5)
    for most in (1, 2, 4):
        found = covered(unit, value, units, values, most).sum()
        assert found == by_definition(list(zip(unit.tolist(), value.tolist(), strict=True)), most)


@pytest.mark.parametrize("seed", range(120))
def test_it_is_that_of_another_algorithm(seed):
    generator = np.random.default_rng([seed, 1])
    unit, value, units, values = drawn(generator, 400, 400, int(generator.integers(1, 5)))
    order = generator.permutation(unit.size)
    for most in (1, 2, 3):
        expected = by_matching(unit, value, units, values, most)
        assert covered(unit, value, units, values, most).sum() == expected
        assert covered(unit[order], value[order], units, values, most).sum() == expected


def mixed(unit, value, units, values):
    generator = np.random.default_rng(7)
    return generator.permutation(units)[unit], generator.permutation(values)[value], units, values


def chain(size):
    each = np.arange(size)
    return mixed(np.concatenate([each, each[1:]]), np.concatenate([each, each[1:] - 1]), size, size)


def triangle(size):
    return mixed(*np.tril_indices(size), size, size)


def ladder(groups, size):
    """Return a chain of blocks in which greedy choices are wrong, which is hard for searches by levels."""
    block, (unit, value) = np.arange(groups)[:, None] * size, np.tril_indices(size)
    units = np.concatenate([(block + unit).ravel()] * 2)
    values = np.concatenate([(block + value).ravel(), (block + size + value).ravel()])
    inside = values < groups * size
    return mixed(units[inside], values[inside], groups * size, groups * size)


@pytest.mark.parametrize("graph", [chain(3_000), triangle(150), ladder(300, 6)], ids=["chain", "triangle", "ladder"])
def test_hard_shapes_are_solved(graph):
    assert covered(*graph, 1).sum() == graph[2]


def test_large_bounds_need_no_copies():
    unit, value = np.repeat(np.arange(3), 30_000), np.tile(np.arange(30_000), 3)
    assert covered(unit, value, 3, 30_000, 9_000).sum() == 27_000
    assert covered(unit, value, 3, 30_000, 2**31).sum() == 30_000


def test_nothing_is_nothing():
    nothing = np.zeros(0, dtype=np.int64)
    assert covered(nothing, nothing, 0, 0, 1).sum() == 0
    assert covered(nothing, nothing, 4, 3, 1).sum() == 0
