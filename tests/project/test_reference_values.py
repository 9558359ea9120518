"""Families of published values: those that are compared with dpframe, and those that cannot be compared, and why."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from published import VALUES

ALL = Path(__file__).parents[3] / "shared" / "data" / "reference_values" / "values.csv"  # next to a clone, if present

NOT_APPLIED = {
    "discrete_gaussian_delta": "Gaussian noise is rounded here, not the discrete Gaussian",
    "discrete_gaussian_delta_poisson": "Gaussian noise is rounded here, and rows are never sampled",
    "discrete_gaussian_moments": "Gaussian noise is rounded here, not the discrete Gaussian",
    "discrete_gaussian_sigma": "Gaussian noise is rounded here, not the discrete Gaussian",
    "discrete_laplace_delta_poisson": "rows are never sampled",
    "gaussian_delta_poisson": "rows are never sampled",
    "gaussian_sigma_poisson": "rows are never sampled",
    "laplace_delta_poisson": "rows are never sampled",
    "partition_selection_truncated_geometric": "keys are found by their noisy counts, which is another rule",
    "renyi_randomized_response": "the local model states pure losses alone",
}


def applied():
    text = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    decorators = re.findall(r"^@published\(([^)]*)\)", text, re.MULTILINE)
    return {family for found in decorators for family in re.findall(r'"(\w+)"', found)}


def families(file):
    with file.open(newline="") as opened:
        return {row["family"] for row in csv.DictReader(opened)}


def test_every_family_that_is_shipped_is_applied():
    assert families(VALUES) == applied()
    assert not applied() & set(NOT_APPLIED)


@pytest.mark.skipif(not ALL.exists(), reason="all that was collected is not part of this repository")
def test_every_family_is_applied_or_has_a_reason():
    assert families(ALL) == applied() | set(NOT_APPLIED)
    with VALUES.open(newline="") as shipped, ALL.open(newline="") as collected:
        known = {row["id"]: row for row in csv.DictReader(collected)}
        for row in csv.DictReader(shipped):
            assert row == {name: known[row["id"]][name] for name in row}
