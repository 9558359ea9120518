"""A statistic from outside: one that keeps the rules, used through ``.dp``, and those that break them, each refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.queries.clipping import grid_steps, step_length
from dpframe.queries.statistics import CONFIDENCE, Clipped, Contributors, Mode, RowFunction, Statistic, Total, fieller
from dpframe.testing import ContractBroken, check_statistic

SHIPPED = [dpf.count(), dpf.count("x"), dpf.sum("x", bounds=(-3, 8)), dpf.mean("x", bounds=(-3, 8)), Mode()]
BITS = 15  # of a value that are left out before it is squared: its square then has at most 2**30 steps


def squares(steps):
    return (steps >> BITS) ** 2


@dataclass(frozen=True)
class MeanSquare(Clipped):
    """The mean of the squares of a column's values."""

    verb: ClassVar[str] = "mean_square"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    def totals(self):
        grid = (step_length(self.bounds) * 2.0**BITS) ** 2
        most = max((step >> BITS) ** 2 for step in grid_steps(self.bounds))
        row = RowFunction(((self.column, self.bounds),), squares, (0, most), grid, f"squares of {self.column}")
        return Total(row=row), Total(self.column)

    def answer(self, measured):
        total, present = (measured[one] for one in self.totals())
        most = max(bound**2 for bound in self.bounds)
        enough = present.values >= 1.0
        size = np.where(enough, present.values, 1.0)
        quotient = np.where(enough, total.values / size, most / 2)
        values = np.clip(quotient, 0.0, most)
        farther = np.maximum(values, most - values)
        return values, fieller(quotient, size, total.noise, present.noise, enough, farther, CONFIDENCE)

    def expected_error(self, noises, size, confidence=CONFIDENCE):
        return (
            noises[0].interval(confidence) / size
            + max(map(abs, self.bounds)) ** 2 * noises[1].interval(confidence) / size
        )


@pytest.mark.parametrize("statistic", SHIPPED, ids=str)
def test_what_ships_keeps_the_rules(statistic):
    check_statistic(statistic)


def test_one_from_outside_keeps_them_and_is_asked():
    toy = MeanSquare("x", (0, 8))
    check_statistic(toy)
    people = pl.DataFrame({"x": [1.0, 2.0, 3.0, None, 11.0] * 200, "ward": ["A", "B"] * 500})
    with dpf.Ledger(epsilon=2e7):
        found = people.dp.group_by("ward", keys=["A", "B"]).agg(x=toy, n=dpf.count(), epsilon=1e6)
    assert found.columns == ["ward", "x", "x_error", "n", "n_noisy", "n_error"]
    # a value loses its last 15 of 30 bits before it is squared
    assert found["x"].to_list() == pytest.approx([(1 + 4 + 9 + 64) / 4] * 2, rel=1e-3)
    assert found.dp.provenance["measures"]["x"]["verb"] == "mean_square"
    assert found.dp.provenance["statistics"][0]["measures"] == "squares of x"
    found.dp.plot()
    plan = people.dp.preview.agg(x=toy, within=0.5, size=1_000)
    assert plan.error["x"] == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("unit", [None, dpf.PrivacyUnit("u", max_rows=3, max_groups=2)])
def test_its_totals_are_its_definition_for_rows_and_units(unit):
    rows = {"x": [1.0, 2.0, 30.0, None, math.nan, -4.0], "u": [1, 1, 2, 2, 3, 3], "g": ["A", "A", "A", "B", "B", "Z"]}
    frame, toy = pl.DataFrame(rows), MeanSquare("x", (0, 8))
    ledger = dpf.Ledger(epsilon=1e9, unit=unit or dpf.PrivacyUnit())
    found = frame.dp.group_by("g", keys=["A", "B"]).agg(x=toy, epsilon=1e8, ledger=ledger)
    assert found["x"].to_list() == pytest.approx([(1 + 4 + 64) / 3, 32.0], rel=1e-3)  # of no values the middle


def wrong_reach(steps):
    return squares(steps) * 4


class TwoPercent(MeanSquare):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values, errors * 0.8


class Forgetful(MeanSquare):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values[:-1], errors[:-1]


class Infinite(MeanSquare):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values, np.full_like(errors, np.inf)


class Random(MeanSquare):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values + np.random.default_rng().normal(size=values.shape), errors


class Writing(MeanSquare):
    def answer(self, measured):
        for one in measured.values():
            one.values[:] = 0
        return super().answer(measured)


class AddingUp(MeanSquare):
    adds_up: ClassVar[bool] = True


class Unnamed(MeanSquare):
    def facts(self):
        return {"verb": self.verb}


class Changing(MeanSquare):
    def totals(self):
        return tuple(replace(one, column=f"{one.column}{np.random.default_rng().random()}") for one in super().totals())


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (TwoPercent, "coverage"),
        (Forgetful, "shape"),
        (Infinite, "finite"),
        (Random, "arithmetic"),
        (Writing, "arithmetic"),
        (AddingUp, "totals"),
        (Unnamed, "record"),
        (Changing, "totals"),
    ],
)
def test_one_that_breaks_a_rule_is_refused(kind, rule):
    with pytest.raises(ContractBroken, match=rf"^{rule}"):
        check_statistic(kind("x", (0, 8)))


def test_something_else_is_no_statistic():
    with pytest.raises(ContractBroken, match="kind"):
        check_statistic(lambda values: values)  # type: ignore[arg-type]


def test_a_sum_whose_charge_is_too_small_is_refused(monkeypatch):
    monkeypatch.setattr(Total, "reach", (0, 1))
    with pytest.raises(ContractBroken, match="sensitivity"):
        check_statistic(dpf.sum("x", bounds=(0, 8)))


def test_what_a_row_adds_stays_within_its_reach_whatever_the_function_does():
    frame = pl.DataFrame({"x": [8.0] * 10})
    toy = MeanSquare("x", (0, 8))
    honest, count = toy.totals()
    assert honest.row is not None

    class Wild(MeanSquare):
        def totals(self):
            return replace(honest, row=replace(honest.row, function=wrong_reach)), count

    check_statistic(Wild("x", (0, 8)))
    found = frame.dp.agg(x=Wild("x", (0, 8)), epsilon=1e6, ledger=dpf.Ledger(epsilon=1e7))
    assert found["x"][0] == pytest.approx(64.0, rel=1e-3)


@pytest.mark.parametrize("reach", [(1, 0), (0, 2**31 + 1), (-(2**40), 0)])
def test_a_reach_that_cannot_be_summed_exactly_is_refused(reach):
    with pytest.raises(dpf.InvalidArgument, match="reach must be"):
        RowFunction((("x", (0.0, 1.0)),), squares, reach, 1.0, "x")


def test_kinds_that_dpframe_asks_itself_keep_the_words():
    assert (Contributors().default_name, str(Mode())) == ("count", "mode()")
    assert isinstance(Contributors(), Statistic)
