"""Warnings of large epsilon, large delta and bounds from the data; refusals of answers that would be exact."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import dpframe as dpf

PEOPLE = pl.DataFrame({"age": [31, 45, 62], "who": [1, 1, 2]})


def warned(action):
    """Return the privacy warnings of an action, whatever the warning filters are."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [one for one in found if one.category is dpf.WeakPrivacyWarning]


def test_a_large_epsilon_is_warned_of_once_a_ledger_at_the_call():
    ledger = dpf.Ledger(epsilon=100)
    (one,) = warned(lambda: PEOPLE.dp.count(epsilon=11, ledger=ledger))
    assert "weak privacy: epsilon 11 is above 10" in str(one.message)
    assert one.filename == __file__
    assert not warned(lambda: PEOPLE.dp.count(epsilon=12, ledger=ledger))
    assert len(warned(lambda: PEOPLE.dp.count(epsilon=12, ledger=dpf.Ledger(epsilon=20)))) == 1
    assert not warned(lambda: PEOPLE.dp.count(epsilon=10, ledger=dpf.Ledger(epsilon=10)))
    assert not warned(lambda: PEOPLE.dp.preview.count(epsilon=50))
    (near,) = warned(lambda: PEOPLE.dp.count(epsilon=10.0001, ledger=dpf.Ledger(epsilon=20)))
    assert "weak privacy: epsilon 10.0001 is above 10" in str(near.message)


def test_other_paths_warn_too():
    plans = {"n": PEOPLE.dp.preview.count(), "m": PEOPLE.dp.preview.mean("age", bounds=(0, 100))}
    assert len(warned(lambda: dpf.release_together(plans, epsilon=12, ledger=dpf.Ledger(epsilon=20)))) == 1
    replace = dpf.PrivacyUnit(neighbors="replace")
    method = dpf.local.SubsetSelection([31, 45, 62], epsilon=12)
    asked = lambda: PEOPLE.dp.local.randomize(  # noqa: E731
        "age", method=method, ledger=dpf.Ledger(epsilon=20, unit=replace)
    )
    assert len(warned(asked)) == 1


def test_it_comes_before_the_charge():
    ledger = dpf.Ledger(epsilon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpf.WeakPrivacyWarning):
            PEOPLE.dp.count(epsilon=11, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_it_comes_before_the_charge_of_other_paths():
    plans = {"n": PEOPLE.dp.preview.count(), "m": PEOPLE.dp.preview.mean("age", bounds=(0, 100))}
    stream = {"statistic": dpf.count(), "time": "age", "periods": [31, 45], "epsilon": 11}
    asks = (
        lambda ledger: dpf.release_together(plans, epsilon=11, ledger=ledger),
        lambda ledger: dpf.Stream("ages", **stream, ledger=ledger).release(PEOPLE, 31),
    )
    for ask in asks:
        ledger = dpf.Ledger(epsilon=100)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(dpf.WeakPrivacyWarning):
                ask(ledger)
        assert ledger.spent.epsilon == 0


def test_a_large_delta_of_a_ledger():
    (one,) = warned(lambda: dpf.Ledger(epsilon=1, delta=0.002, unit="who"))
    assert "delta 0.002 is above 0.001. Use a delta" in str(one.message)
    assert one.filename == __file__
    assert not warned(lambda: dpf.Ledger(epsilon=1, delta=0.001))


@pytest.mark.parametrize(
    ("limit", "says"), [({"epsilon": 11}, True), ({"epsilon": 10}, False), ({"epsilon": 1, "delta": 0.01}, True)]
)
def test_a_large_limit_is_on_the_card(limit, says):
    ledger = dpf.Ledger(**limit)
    assert ("weak privacy: a limit above" in repr(ledger)) is says
    assert ("weak privacy: a limit above" in ledger._repr_html_()) is says


def test_bounds_that_look_taken_from_the_data():
    """Only their type is checked: NumPy scalars look computed. The warning shows no value."""
    ages = PEOPLE["age"].to_numpy()
    (one,) = warned(lambda: PEOPLE.dp.mean("age", bounds=(0, ages.max()), epsilon=1, ledger=dpf.Ledger(epsilon=1)))
    assert "bounds look taken from the data" in str(one.message)
    assert "or float(x) of a released x" in str(one.message)
    assert "62" not in str(one.message)
    assert one.filename == __file__
    assert len(warned(lambda: dpf.sum("age", bounds=(np.float64(0), np.int64(9))))) == 1
    assert not warned(lambda: dpf.sum("age", bounds=(0.0, 9)))


@pytest.mark.parametrize(
    "asked",
    [
        lambda dp, **more: dp.count(within=0, **more),
        lambda dp, **more: dp.count(within=0.4, **more),
        lambda dp, **more: dp.sum("age", bounds=(0, 1), within=0, **more),
        lambda dp, **more: dp.count(within=0, confidence=0.5, **more),
    ],
)
def test_an_answer_that_would_be_exact_is_refused(asked):
    ledger = dpf.Ledger(epsilon=1e9)
    for dp in (PEOPLE.dp, PEOPLE.dp.preview):
        with pytest.raises(dpf.InvalidArgument, match="within must be"):
            asked(dp, ledger=ledger)
    assert ledger.spent.epsilon == 0
    assert PEOPLE.dp.preview.count(within=1).price.epsilon > 1
