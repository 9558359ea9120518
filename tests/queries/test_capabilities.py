"""Capabilities of a few statistics are found by their members, in a caller's own classes as in dpframe's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.queries.statistics import Mode, Statistic, TopK, Total
from dpframe.queries.statistics.statistic import Deciding, choosing

FRAME = pl.DataFrame({"ward": ["A"] * 900 + ["B"] * 10, "age": [30] * 910})


@dataclass(frozen=True)
class Common(Statistic):
    """A statistic that states by a class constant alone that it chooses cells."""

    verb: ClassVar[str] = "common"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    chooses: ClassVar[bool] = True

    def totals(self):
        return (Total(),)

    def facts(self):
        return None


@dataclass(frozen=True)
class Doubled(Statistic):
    """Twice the number of rows, with its own name, column, fit and words, but without a base class for them."""

    verb: ClassVar[str] = "doubled"
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = ("_half",)
    default_name: ClassVar[str] = "twice"

    def totals(self):
        return (Total(),)

    def answer(self, measured):
        (only,) = measured.values()
        return 2.0 * only.values, np.full(only.values.shape, 2.0 * only.noise.interval(0.95))

    def more(self, measured):
        return {"_half": self.answer(measured)[0] / 2.0}

    def fitted(self, values, measured):
        return np.zeros_like(values), "zeros"

    def error_words(self, error):
        return f"off by {error}"

    def check_target(self, name, target, size):
        raise dpf.InvalidArgument("within must be left out. Leave it out.")


def grouped(of):
    return of.group_by("ward", keys=["A", "B", "C"])


def test_of_a_number_of_ones_own_nothing_is_known_but_its_own_interval():
    doubled = grouped(FRAME.dp).agg(Doubled(), denoise=None, epsilon=1, ledger=dpf.Ledger(epsilon=10))
    for computed in (doubled.dp.total, lambda: dpf.combine("a.twice", {"a": doubled})):
        with pytest.raises(dpf.InvalidArgument, match=r"known law, and it is a 'doubled'\. Compare it by its own"):
            computed()


def test_a_class_constant_says_that_cells_are_chosen():
    ledger = dpf.Ledger(epsilon=10)
    found = grouped(FRAME.dp).agg(Common(), epsilon=5, ledger=ledger)
    assert found.rows() == [("A",)]  # a false choice has a chance below e^-1000
    plan = grouped(FRAME.dp.preview).agg(Common(), epsilon=5)
    assert "one of 3 options" in repr(plan)
    assert str(plan.query) == "most common of ward: 3 declared keys"


def test_members_alone_make_a_capability():
    ledger = dpf.Ledger(epsilon=10)
    found = grouped(FRAME.dp).agg(Doubled(), epsilon=5, denoise=None, ledger=ledger)
    assert found.columns == ["ward", "twice", "twice_error", "twice_half"]
    assert (found["twice"] == 2.0 * found["twice_half"]).all()
    fitted = grouped(FRAME.dp).agg(Doubled(), epsilon=5, denoise="auto", ledger=ledger)
    assert fitted["twice"].to_list() == [0.0, 0.0, 0.0]
    assert "off by" in repr(grouped(FRAME.dp.preview).agg(Doubled(), epsilon=5))
    with pytest.raises(dpf.InvalidArgument, match="within must be left out"):
        grouped(FRAME.dp.preview).agg(Doubled(), within=3)


def test_choices_are_told_apart():
    median = dpf.median("age", bounds=(0, 120))
    assert isinstance(median, Deciding)
    assert not median.by_choice
    assert choosing(median) is None
    top, common = choosing(TopK(3, counts=True)), choosing(Common())
    assert top is not None
    assert (top.chosen, top.numbered) == (3, True)
    assert common is not None
    assert (common.chosen, common.numbered, common.by_choice) == (1, False, True)
    assert choosing(Mode()) is not None
    assert choosing(dpf.count()) is None
