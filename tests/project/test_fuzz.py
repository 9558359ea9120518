"""A share of ``assurance/fuzz.py``: odd neighboring frames on every engine, and seeded bugs that the checks detect."""

from __future__ import annotations

import warnings
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings

import dpframe as dpf
from assurance import fuzz
from assurance.fuzz_frames import KINDS, ROWS, Pair, asks, form_of, pairs
from dpframe.audit import watched
from dpframe.queries.total import SumTotal

pytestmark = pytest.mark.slow

SOME = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def a_pair(verb: str) -> Pair:
    """Return neighbors for a verb: numbers with one large row, and the same without it."""
    kind = next(kind for kind in KINDS if kind.name == "float64")
    rows = [{"v": value, "g": "A", "u": 1} for value in (1.0, 2.0, 1e6)]
    return Pair(kind, "x", ROWS, rows, rows[:2], list(asks(kind, "x")).index(verb))


@example(a_pair("sum"))  # a row at the bound itself, which random pairs may lack
@settings(max_examples=20, **SOME)
@given(pairs())
def test_totals_of_neighbors_stay_within_reach_on_every_engine(pair):
    fuzz.check_totals(pair)


@pytest.mark.parametrize("unit", [ROWS, dpf.PrivacyUnit("u", max_rows=2, max_groups=2)], ids=["rows", "people"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in ("float64", "datetime", "text")])
def test_every_verb_is_asked_of_rows_and_of_people(kind, unit):
    rows = [{"v": None, "g": "A", "u": 1}, {"v": None, "g": "B", "u": 2}]
    for turn in range(2 * len(asks(kind, "x"))):  # in both norms
        fuzz.check_totals(Pair(kind, "x", unit, rows, rows[:1], turn))


@settings(max_examples=5, **SOME)
@given(pairs())
def test_neighbors_show_nothing_but_noise(pair):
    fuzz.check_seen(pair)


def test_a_sensitivity_that_is_too_small_is_found(monkeypatch):
    norm = SumTotal.norm
    monkeypatch.setattr(SumTotal, "norm", lambda self, weighted: replace(norm(self, weighted), reach=(0, 1)))
    with pytest.raises(AssertionError, match="moves by"):
        fuzz.check_totals(a_pair("sum"))


def test_the_share_of_the_sensitivity_that_a_pair_moves_is_told():
    farthest = {}
    for verb in ("sum", "largest bounds"):  # 10^6 is beyond the first bounds, and small within the others
        fuzz.check_totals(a_pair(verb), farthest=farthest)
    assert farthest["sum"] == 1.0
    assert farthest["largest bounds"] < 0.01


def test_a_warning_that_depends_on_a_value_is_found():
    def asks(dp, **price):
        found = dp.count(**price)
        if dp._frame.height > 2:
            warnings.warn("many rows", stacklevel=2)
        return found

    shown = [form_of(pl.DataFrame({"x": [1] * rows}), asks, dpf.PrivacyUnit(), watched) for rows in (2, 3)]
    assert shown[0] != shown[1]
