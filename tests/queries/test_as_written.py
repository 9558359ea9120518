"""The `repr` of statistics and bins is the call that makes them: evaluating it gives an equal object."""

from __future__ import annotations

import datetime
import pickle
import zoneinfo
from dataclasses import dataclass
from typing import ClassVar

import pytest

import dpframe as dpf
from dpframe.queries.statistics import Statistic
from dpframe.queries.total import COUNTED

WARDS = "{'A': (0, 10), 'B': (0, 100)}"
WRITTEN = [
    "dpf.count()",
    "dpf.count('age')",
    "dpf.count(where={'a': 1})",
    "dpf.count('age', where={'a': [1, 2], 'b': (18, None), 'c': (None, 0.5), 'd': (1, 2)})",
    "dpf.count(where={'day': (datetime.date(2025, 1, 1), None)})",
    "dpf.count(where={'at': (datetime.datetime(2025, 1, 1, 6, 0, tzinfo=datetime.timezone.utc), None)})",
    "dpf.count(where={'ward': [None, 'A']})",
    "dpf.count(weight='w', weight_bounds=(0, 5))",
    "dpf.count(weight='w', weight_bounds=(0, 5), where={'a': 'x'})",
    "dpf.sum('cost', bounds=(0, 5000))",
    "dpf.sum('cost', unit_bounds=(-0.5, 5000))",
    "dpf.sum('cost', bounds=(0, 5), weight='w', weight_bounds=(0, 5))",
    f"dpf.sum('cost', bounds={WARDS})",
    "dpf.mean('age', bounds=(0, 120))",
    "dpf.mean('age', bounds=(0, 120), missing='midpoint')",
    "dpf.mean('age', bounds=(0, 120), where={'a': 1})",
    "dpf.mean('age', bounds=(0, 120), weight='w', weight_bounds=(0, 5))",
    f"dpf.mean('age', bounds={WARDS}, where={{'a': 1}})",
    "dpf.variance('age', bounds=(0, 120), ddof=0)",
    "dpf.std('age', bounds=(0, 120))",
    f"dpf.std('age', bounds={WARDS})",
    "dpf.proportion('smoker')",
    "dpf.proportion('ward', value='A', where={'a': 1})",
    "dpf.proportion('smoker', weight='w', weight_bounds=(0, 5))",
    "dpf.ratio('cost', 'days', bounds={'cost': (0, 50), 'days': (0, 3)}, where={'a': 1})",
    "dpf.covariance(['age', 'cost'], bounds={'age': (0, 120), 'cost': (0, 50)}, where={'a': 1})",
    "dpf.correlation(['age', 'cost'], bounds={'age': (0, 120), 'cost': (0, 50)})",
    "dpf.median('age', bounds=(0, 120))",
    "dpf.median('age', bounds=(0, 0.7))",
    "dpf.median('age', bounds=(0, 120), step=0.5)",
    "dpf.median('age', bounds=(0, 10), step=3)",
    f"dpf.median('age', bounds={WARDS})",
    "dpf.quantile('age', q=0.9, candidates=[0, 1, 5, 9])",
    "dpf.quantile('age', q=[0.25, 0.75], bounds=(0, 120), where={'a': 1})",
    f"dpf.quantile('age', bounds={WARDS}, q=[0.25, 0.5])",
    f"dpf.quantile('age', bounds={WARDS}, q=0.5)",
    "dpf.n_units()",
    "dpf.n_distinct('product', max_values=3)",
    "dpf.discover(delta=1e-07)",
    "dpf.discover(delta=0.001, max_keys=50, at_least=5, known=['A', None], nulls=True)",
    "dpf.discover(delta=1e-09, known=[('A', 1)])",
    "dpf.bins('age', [0, 18, 65])",
    "dpf.bins('age', [0, 0.5, 1], outside='clip')",
    "dpf.bins('day', [datetime.date(2025, 1, 1), datetime.date(2025, 1, 2)])",
    "dpf.bins('at', [datetime.datetime(2025, 1, 1, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='Europe/Berlin')), "
    "datetime.datetime(2025, 1, 2, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='Europe/Berlin'))])",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_what_is_shown_makes_the_same_again(written):
    names = {"dpf": dpf, "datetime": datetime, "zoneinfo": zoneinfo}
    made = eval(written, names)
    for one in (made, pickle.loads(pickle.dumps(made))):
        assert repr(one) == written
        again = eval(repr(one), names)
        assert again == made
        assert hash(again) == hash(made)


def test_long_lists_are_cut():
    assert repr(dpf.bins("age", list(range(100)))) == "dpf.bins('age', [0, 1, 2, ..., 99])"
    irregular = [number**2 for number in range(2_000)]
    assert repr(dpf.median("age", candidates=irregular)) == "dpf.median('age', candidates=[0, 1, 4, ..., 3996001])"
    assert repr(dpf.bins("age", 2 * 10**7, range=(0, 1))) == "dpf.bins('age', 20000000)"


def test_an_end_in_nanoseconds_is_shown_to_the_microsecond():
    pandas = pytest.importorskip("pandas")
    shown = repr(dpf.count(where={"at": (pandas.Timestamp("2025-01-01T00:00:00.000001002", tz="UTC"), None)}))
    assert "datetime.datetime(2025, 1, 1, 0, 0, 0, 1, tzinfo=datetime.timezone.utc)" in shown


def test_a_statistic_of_another_keeps_the_repr_that_its_class_gives_it():
    @dataclass(frozen=True)
    class Mine(Statistic):
        verb: ClassVar[str] = "mine"

        column: str = "x"

        def totals(self):
            return (COUNTED,)

    assert repr(Mine("y")).endswith("Mine(column='y')")
