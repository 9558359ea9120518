"""Contrasts of tables: published values, dense algebra, and tables that are computed back from contrasts."""

from __future__ import annotations

import ast
import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpframe.queries.contrasts import ContrastDesign, contrasts_of, effects_of

FILE = Path(__file__).parents[3] / "shared" / "data" / "reference_values" / "statistics" / "marginals.txt"
ADULT = (9, 9, 16, 7, 15, 6, 5, 2, 5, 5, 10, 42, 2)
SPECIFIED = {  # sizes, objective -> variances at mu = 1
    ((2, 3), "cells"): {(0,): 2.2510006008, (1,): 1.7216040003, (0, 1): 1.1188448444},
    ((2, 3), "equal"): {(0,): 1.9511975997, (1,): 1.726536329, (0, 1): 1.2922459449},
    ((2, 3, 4), "cells"): {(0,): 4.5213329427, (0, 1): 2.4371304462, (0, 2): 2.1524823044, (1, 2): 1.844182055},
    ((5, 5, 5, 5), "cells"): {(0,): 9.4271182661, (2, 3): 4.4549043477},
}
TABLE = np.array([[5, 1, 0], [2, 4, 8]])


@pytest.mark.parametrize(("sizes", "objective"), SPECIFIED)
def test_the_variances_of_the_specification(sizes, objective):
    found = ContrastDesign(sizes, 2, objective).table_variances
    assert {table: found[table] for table in SPECIFIED[sizes, objective]} == pytest.approx(SPECIFIED[sizes, objective])


@pytest.mark.skipif(not FILE.exists(), reason="the reference values are not part of this repository")
def test_every_variance_of_the_reference_values():
    lines = [re.fullmatch(r"(\[.*?\]) (cells|equal) (\{.*\}) (\{.*\})", line) for line in FILE.read_text().splitlines()]
    found = [line.groups() for line in lines if line]
    assert len(found) == 6
    for sizes, objective, variances, tables in found:
        design = ContrastDesign(tuple(ast.literal_eval(sizes)), 2, objective)
        assert design.variances == pytest.approx(ast.literal_eval(variances), rel=1e-9)
        expected = ast.literal_eval(tables)
        assert {table: design.table_variances[table] for table in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("degree", "objective", "typical", "worst", "by_cell"),
    [
        (2, "equal", 6.9754, 7.8178, 7.4061),
        (2, "cells", 8.2383, 13.2991, 6.2954),
        (3, "equal", 12.1545, 14.2497, 13.1635),
    ],
)
def test_the_errors_of_adult(degree, objective, typical, worst, by_cell):
    """Standard deviations at mu = 1, over the tables of at least one attribute."""
    design = ContrastDesign(ADULT, degree, objective)
    variances = [(design.table_variances[table], design.cells(table)) for table in design.tables[1:]]
    assert len(variances) == {2: 91, 3: 377}[degree]
    assert math.sqrt(np.mean([variance for variance, _ in variances])) == pytest.approx(typical, abs=6e-5)
    assert math.sqrt(max(variance for variance, _ in variances)) == pytest.approx(worst, abs=6e-5)
    cells = sum(size for _, size in variances)
    assert math.sqrt(sum(variance * size for variance, size in variances) / cells) == pytest.approx(by_cell, abs=6e-5)


def test_the_contrasts_and_the_scales_of_the_specification():
    design = ContrastDesign((2, 3), 2, "cells")
    assert design.exact_sums(lambda _: TABLE.ravel()).tolist() == [20, -8, 2, -4, 6, 16]
    expected = [2.011767065, 2.226386238, 1.953392713, 3.383375427, 2.570809387, 4.452772475]
    assert design.scales == pytest.approx(expected, rel=1e-9)
    for made, table in zip(
        design.reconstructed(np.array([20.0, -8, 2, -4, 6, 16])), (20, [6, 14], [7, 5, 8], TABLE), strict=True
    ):
        assert made == pytest.approx(np.array(table))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (3, 1, 4, 2), (1, 1), (7,), (2, 2, 2, 2)])
def test_tables_are_read_off_their_contrasts_exactly(sizes):
    joint = np.random.default_rng(len(sizes)).integers(0, 1_000, sizes)
    for degree, objective in itertools.product(range(1, len(sizes) + 1), ("equal", "cells")):
        design = ContrastDesign(sizes, degree, objective)
        contrasts = design.exact_sums(lambda table: _margin(joint, table))
        assert contrasts.dtype == np.int64
        assert contrasts.size == design.width == design.scales.size
        for table, made in zip(design.tables, design.reconstructed(contrasts.astype(float)), strict=True):
            assert made == pytest.approx(_margin(joint, table).astype(float))


def _margin(joint, table):
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in table))


@pytest.mark.parametrize("sizes", [(2, 3), (2, 3, 4), (3, 1, 2)])
@pytest.mark.parametrize("objective", ["equal", "cells"])
def test_the_cost_and_the_variances_by_dense_algebra(sizes, objective):
    """A row in any cell moves the scaled contrasts by 1, and each cell has the stated variance."""
    design = ContrastDesign(sizes, min(2, len(sizes)), objective)
    columns = []
    for cell in range(math.prod(sizes)):
        joint = np.zeros(math.prod(sizes), dtype=np.int64)
        joint[cell] = 1
        columns.append(design.exact_sums(lambda table, joint=joint: _margin(joint.reshape(sizes), table)))
    measured = np.array(columns).T
    assert np.linalg.norm(measured / design.scales[:, None], axis=0) == pytest.approx(np.ones(math.prod(sizes)))
    assert abs(design.cost - 1) < 1e-14
    assert design.cost == sum(
        (design.weight(part) / Fraction(design.variances[part]) for part in design.parts), Fraction(0)
    )
    read = [np.concatenate([t.ravel() for t in design.reconstructed(row)]) for row in np.eye(design.width)]
    variances = (np.array(read).T ** 2 * design.scales**2).sum(axis=1)
    stated = np.repeat(*zip(*((design.table_variances[t], design.cells(t)) for t in design.tables), strict=True))
    assert variances == pytest.approx(stated)
    assert np.abs(np.array(read)).sum(axis=0).max() <= 1.0 + 1e-12  # so rounding moves no cell by more than a half


def test_the_scales_are_not_below_what_the_cost_says():
    """In exact rationals, a squared scale is at least the variance times the squared length of the contrast."""
    design = ContrastDesign((3, 4, 2), 2)
    start = 0
    for part in design.parts:
        for position in itertools.product(*(range(1, n + 1) for n in design.shape(part))):
            squared = Fraction(design.variances[part]) * math.prod(k * (k + 1) for k in position)
            assert squared <= Fraction(float(design.scales[start])) ** 2 <= squared * (1 + Fraction(1, 2**40))
            start += 1
    assert start == design.width


def test_no_split_of_the_price_does_better():
    """The weighted sum of variances is least at its cost: random other splits of that cost all have a larger one."""
    generator = np.random.default_rng(1)
    for objective in ("equal", "cells"):
        design = ContrastDesign((2, 3, 5), 2, objective)
        weights = [design.cells(table) if objective == "cells" else 1 for table in design.tables[1:]]
        influence = [dict(design._inside(table)) for table in design.tables[1:]]

        def loss(variances, weights=weights, influence=influence):
            return sum(
                w * sum(variances[part] * c for part, c in one.items())
                for w, one in zip(weights, influence, strict=True)
            )

        best = loss(design.variances)
        for _ in range(50):
            other = {part: v * math.exp(generator.normal(0, 0.3)) for part, v in design.variances.items()}
            price = sum(float(design.weight(part)) / v for part, v in other.items())
            assert loss({part: v * price for part, v in other.items()}) > best


def test_contrasts_wrap_as_all_sums_do():
    """They wrap modulo 2**64, so no value can raise an error."""
    high = np.array([2**62, 2**62, 2**62])
    assert contrasts_of(high).tolist() == [0, 0]
    assert contrasts_of(np.array([0, 0, 2**62]))[1] == -(2**63)


def test_effects_add_up_to_nothing():
    effects = effects_of(np.random.default_rng(2).normal(size=(3, 4)))
    assert effects.shape == (4, 5)
    assert effects.sum(axis=0) == pytest.approx(np.zeros(5))
    assert effects.sum(axis=1) == pytest.approx(np.zeros(4))
