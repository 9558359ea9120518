"""The rules of a statistic: what ships keeps them, and one that breaks a rule is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import dpframe as dpf
from dpframe.queries.statistics import Contributors, Mean, Mode, RowFunction, Statistic, Total
from dpframe.testing import ContractBroken, check_statistic

SHIPPED = [dpf.count(), dpf.count("x"), dpf.sum("x", bounds=(-3, 8)), dpf.mean("x", bounds=(-3, 8)), Mode()]


@pytest.mark.slow
@pytest.mark.parametrize("statistic", SHIPPED, ids=str)
def test_what_ships_keeps_the_rules(statistic):
    check_statistic(statistic)


class TwoPercent(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values, errors * 0.8


class Forgetful(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values[:-1], errors[:-1]


class Infinite(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values, np.full_like(errors, np.inf)


class Random(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values + np.random.default_rng().normal(size=values.shape), errors


class Writing(Mean):
    def answer(self, measured):
        for one in measured.values():
            one.values[:] = 0
        return super().answer(measured)


class AddingUp(Mean):
    adds_up: ClassVar[bool] = True


class Unnamed(Mean):
    def facts(self):
        return {"verb": self.verb}


class Changing(Mean):
    def totals(self):
        return tuple(replace(one, column=f"{one.column}{np.random.default_rng().random()}") for one in super().totals())


@pytest.mark.slow
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


@pytest.mark.parametrize("reach", [(1, 0), (0, 2**31 + 1), (-(2**40), 0)])
def test_a_reach_that_cannot_be_summed_exactly_is_refused(reach):
    with pytest.raises(dpf.InvalidArgument, match="reach must be"):
        RowFunction((("x", (0.0, 1.0)),), abs, reach, 1.0, "x")


def test_kinds_that_dpframe_asks_itself_keep_the_words():
    assert (Contributors().default_name, str(Mode())) == ("count", "mode()")
    assert isinstance(Contributors(), Statistic)
