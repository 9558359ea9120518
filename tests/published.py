"""Numbers that the tests of other libraries expect, or that were computed to 60 digits: rows, inputs and comparison.

Each row of ``data/published.csv`` is a fact, "these inputs give this output", with its source and its source's license.
Only numbers were taken. `expected` is the source's value, `independent` the same value from the closed form.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

VALUES = Path(__file__).parent / "data" / "published.csv"


def rows(family):
    with VALUES.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["family"] == family]


def published(*families):
    """Parametrize a test by the rows of these families."""
    found = [row for family in families for row in rows(family)]
    assert found, families
    return pytest.mark.parametrize("row", found, ids=lambda row: row["id"])


def inputs(row):
    return json.loads(row["inputs"])


def check(row, found):
    expected = float(row["expected"])
    tolerance = float(row["abs_tol"] or 0) + float(row["rel_tol"] or 0) * abs(expected)
    assert abs(found - expected) <= tolerance
    if row["independent"]:
        assert found == pytest.approx(float(row["independent"]), rel=1e-9, abs=1e-12)
