"""The published values of other libraries, where they lie beside the repository: rows, inputs and comparison."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

VALUES = Path(__file__).parents[2] / "shared" / "data" / "reference_values" / "values.csv"
REASON = "the reference values of other libraries are not part of this repository"


def rows(family):
    if not VALUES.exists():
        return []
    with VALUES.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["family"] == family]


def published(*families):
    """Rows of these families, or one that is skipped."""
    found = [row for family in families for row in rows(family)]
    missing = pytest.param(None, marks=pytest.mark.skip(reason=REASON))
    return pytest.mark.parametrize("row", found or [missing], ids=lambda row: row["id"] if row else "absent")


def inputs(row):
    return json.loads(row["inputs"])


def check(row, found):
    expected = float(row["expected"])
    tolerance = float(row["abs_tol"] or 0) + float(row["rel_tol"] or 0) * abs(expected)
    assert abs(found - expected) <= tolerance
    if row["independent"]:
        assert found == pytest.approx(float(row["independent"]), rel=1e-9, abs=1e-12)
