"""The weight of a unit in each of its groups is an exact whole number of steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpframe.queries.contributions import steps_of, unit_steps

NUMBERS = [1, 2, 3, 4, 5, 7, 10, 12, 30, 1000]
PUBLISHED = {
    (3, 1): [1048576, 1048576, 1048576, 786432, 629145, 449389, 314572, 262144, 104857, 3145],
    (3, 2): [1048576, 1048576, 1048576, 908093, 812223, 686454, 574328, 524288, 331588, 57432],
    (10, 2): [1048576] * 7 + [957214, 605395, 104857],
}


@pytest.mark.parametrize(("most", "p"), PUBLISHED)
def test_published_steps(most, p):
    assert unit_steps(np.array(NUMBERS), most, p).tolist() == PUBLISHED[most, p]


@pytest.mark.parametrize("most", [1, 2, 3, 10, 999, 2**30])
@pytest.mark.parametrize("p", [1, 2])
def test_no_unit_adds_more_than_the_norm_allows(most, p):
    for groups in [*range(1, 200), most, most + 1, 7 * most + 3, 2**40]:
        steps = steps_of(groups, most, p)
        assert groups * steps**p <= most * 2 ** (20 * p)
        assert groups <= most or groups * (steps + 1) ** p > most * 2 ** (20 * p)  # one step more would be too much


def test_a_selection_weighs_nobody_down():
    assert unit_steps(np.array([1, 5, 10**6]), 1, math.inf).tolist() == [2**20] * 3
