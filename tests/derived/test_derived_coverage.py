"""Intervals of numbers computed from releases cover the truth: a small share of ``assurance.derived_coverage``."""

from __future__ import annotations

import pytest

from assurance.derived_coverage import DESIGNS, FORMS, cases, covered, of_views
from tests.covering import too_many

GROUPS = 400
ALARM = 1e-6 / (len(cases()) * len(FORMS))
QUICK = [("Laplace", "cells"), ("Gaussian", "marginals"), ("Laplace", "stream")]


@pytest.mark.parametrize(("law", "design"), QUICK)
def test_sums_and_differences_cover(law, design):
    for found, _ in covered(law, design, GROUPS, ("sum", "difference")):
        assert not too_many(found, ALARM), found


def test_quotients_cover():
    for found, unbounded in covered("Laplace", "two releases", 1_000, ("ratio", "share")):
        assert not too_many(found, ALARM), found
        assert unbounded < 0.5


@pytest.mark.slow
def test_some_rows_of_marginals_cover():
    for found in of_views(150):
        assert not too_many(found, 1e-6 / 3.0), found


@pytest.mark.slow
@pytest.mark.parametrize(("law", "design"), cases())
def test_every_form_covers(law, design):
    assert design in DESIGNS
    for found, unbounded in covered(law, design, GROUPS):
        assert not too_many(found, ALARM), found
        assert unbounded < 0.9
