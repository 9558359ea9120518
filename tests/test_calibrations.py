"""A small share of ``benchmarks/calibrations.py``: random parameters, against definitions and against dp-accounting."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import calibrations

PARAMETERS = {"gaussian": 6, "laplace": 12, "generalized": 4, "truncated": 8}


@pytest.mark.parametrize("family", calibrations.FAMILIES)
def test_calibrations_are_never_below_the_exact_value_and_close_to_it(family):
    if family in ("gaussian", "laplace"):
        pytest.importorskip("dp_accounting")
    for row in calibrations.FAMILIES[family](np.random.default_rng(20), PARAMETERS[family]):
        assert row.compared >= 4
        assert not row.below, row.cases
        assert row.exact < 1e-12
        assert row.peer < 1e-7


def test_the_drill_sees_a_scale_that_is_too_small(monkeypatch):
    """Seeded: noise that is a part in a billion too small, and a delta that is."""
    real = calibrations.dpf.analytic_gaussian_sigma
    monkeypatch.setattr(calibrations.dpf, "analytic_gaussian_sigma", lambda *price: real(*price) * (1 - 1e-9))
    sigma, _curve = calibrations.gaussians(np.random.default_rng(1), 5)
    assert sigma.below == 5
