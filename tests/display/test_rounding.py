"""Rounding to the error: the smallest error decides the digits, and rounded intervals contain the exact ones."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType
from dpframe.display.rounding import checked_digits, rounded, step_words


def column(values, errors, **more):
    return {"n": np.array(values, float), "n_error": np.array(errors, float)} | {
        f"n_{end}": np.array(numbers, float) for end, numbers in more.items()
    }


@pytest.mark.parametrize(
    ("values", "errors", "decimals"),
    [
        ([828.25], [3.0], 1),
        ([828.0], [3.0], 0),  # whole numbers stay whole
        ([828.0], [340.0], -1),
        ([0.0, 1.0], [0.0123, 0.2], 3),  # proportions that happen to be whole are not counts
        ([0.0], [0.5], 2),
        ([49.0], [2.5], 1),
        ([1.5, 2.5], [0.0123, 40.0], 3),  # the smallest error decides
        ([1.5, 2.5], [np.inf, 0.99], 2),
        ([0.5], [np.nan], 4),
        ([5.0], [np.inf], 0),
        ([1.6e7], [599_146.45], -4),
        ([1.95, 2.5], [0.0, 1.0], 2),  # a value without an error keeps its digits
        ([1.0, 0.4], [0.0, 1.0], 1),
        ([1 / 3, 0.4], [0.0, 1.0], 1),  # except a number without a finite decimal form
        ([1234.0, 900.0], [0.0, 340.0], 0),
        ([np.nan, 900.0], [0.0, 340.0], -1),
    ],
)
def test_the_smallest_error_keeps_two_digits(values, errors, decimals):
    assert rounded("n", column(values, errors), "error").decimals == decimals


def test_every_interval_holds_what_it_held():
    random = np.random.default_rng(5)
    for _ in range(300):
        scale = 10.0 ** random.uniform(-6, 9)
        noisy, errors = random.normal(0, 10 * scale, 20), scale * random.uniform(1, 30, 20)
        ends = {"low": noisy - errors, "high": noisy + 2 * errors}
        digits = "error" if random.random() < 0.7 else int(random.integers(-6, 6))
        found = rounded("n", column(noisy + 0.3 * scale, errors, noisy=noisy, **ends), digits, {"verb": "count"})
        made, slack = found.columns, 1e-9 * scale
        assert (made["n_noisy"] - made["n_error"] <= noisy - errors + slack).all()
        assert (made["n_noisy"] + made["n_error"] >= noisy + errors - slack).all()
        assert (made["n_low"] <= ends["low"] + slack).all()
        assert (made["n_high"] >= ends["high"] - slack).all()
        assert (np.abs(made["n"] - noisy - 0.3 * scale) <= found.step / 2 + slack).all()
        if digits == "error":
            assert (made["n_error"] <= errors + 0.151 * errors.min() + slack).all()
        for name in ("n", "n_error", "n_noisy"):
            steps = made[name] / found.step
            assert np.allclose(steps, np.rint(steps), atol=1e-6)


@pytest.mark.parametrize(
    ("statistic", "middle"), [({"verb": "ecdf", "one_total": False}, "n"), ({"verb": "count"}, "n_noisy")], ids=str
)
def test_errors_grow_by_the_moves_of_the_values_that_intervals_lie_around(statistic, middle):
    random = np.random.default_rng(6)
    for _ in range(100):
        noisy, errors = random.uniform(0, 1, 5), random.uniform(0.05, 0.2, 5)
        numbers = column(noisy + random.uniform(0, 0.1, 5), errors, noisy=noisy)
        made = rounded("n", numbers, int(random.integers(0, 3)), statistic).columns
        assert (made[middle] - made["n_error"] <= numbers[middle] - errors + 1e-9).all()
        assert (made[middle] + made["n_error"] >= numbers[middle] + errors - 1e-9).all()


def test_no_number_is_rounded_to_minus_zero():
    columns = column([-1.0, 0.0, -0.0, -60.0], [30.0] * 4)
    numbers = rounded("n", columns, checked_digits(-2)).columns["n"].tolist()
    assert [str(number) for number in numbers] == ["0.0", "0.0", "0.0", "-100.0"]


def test_rounding_twice_is_rounding_once():
    once = rounded("n", column([12.3456], [0.31]), 2)
    twice = rounded("n", once.columns, 2)
    assert {name: numbers.tolist() for name, numbers in once.columns.items()} == {
        name: numbers.tolist() for name, numbers in twice.columns.items()
    }


def test_numbers_that_are_none_stay():
    made = rounded("n", column([np.nan, np.inf, -np.inf, 1e300], [1.0, 1.0, np.inf, 1.0]), 3).columns["n"]
    assert np.isnan(made[0])
    assert made[1:].tolist() == [np.inf, -np.inf, 1e300]


def test_digits_are_checked():
    assert checked_digits("error") == "error"
    assert checked_digits(-3) == -3
    for digits, error in (("all", InvalidType), (1.5, InvalidType), (True, InvalidType), (99, InvalidArgument)):
        with pytest.raises(error, match="digits must be"):
            checked_digits(digits)


def test_steps_are_written_as_people_do():
    assert [step_words(step) for step in (1000.0, 1.0, 0.1, 0.001)] == ["1,000", "1", "0.1", "0.001"]


INFINITE = np.array([np.inf])


@pytest.mark.parametrize(
    ("columns", "decimals"),
    [
        ({"n": [4.280112327246290], "n_low": [-np.inf], "n_high": [np.inf]}, 3),
        ({"n": [4.280112327246290], "n_low": [0.0], "n_high": [np.inf]}, 1),
        ({"n": [0.00428011], "n_low": [0.00427], "n_high": [np.inf]}, 6),
        ({"n": [123_456.789], "n_low": [-np.inf], "n_high": [np.inf]}, -2),
        ({"n": [1_234.0]}, 0),
    ],
)
def test_numbers_without_a_finite_error_are_no_row_of_digits(columns, decimals):
    arrays = {name: np.array(values) for name, values in columns.items()}
    made = rounded("n", arrays | {"n_error": INFINITE}, "error")
    assert made.decimals == decimals
    assert made.columns["n"] == pytest.approx(arrays["n"], rel=2e-2)
    assert made.columns["n_error"].tolist() == [np.inf]


def test_exact_numbers_keep_their_digits():
    made = rounded("n", {"n": np.array([0.123456789]), "n_error": np.zeros(1)}, "error")
    assert (made.columns["n"].item(), made.columns["n_error"].item()) == (0.123456789, 0.0)


def test_a_median_of_prices_that_is_exact_keeps_its_pence():
    prices = pl.DataFrame({"country": ["UK"] * 400 + ["FR"] * 20, "price": [1.95] * 400 + [0.85, 3.75, 2.1, 9.95] * 5})
    groups = prices.dp.group_by("country", keys=["UK", "FR"])
    found = groups.median("price", bounds=(0, 20), step=0.01, epsilon=4, ledger=dpf.Ledger(epsilon=4))
    assert found["price_median"][0] == found["price_median_low"][0] == found["price_median_high"][0] == 1.95
    assert found["price_median_error"][1] > 0.5
    for made in (found.dp.round(), found.dp.filter({"country": "UK"}).dp.round()):
        assert made["price_median"][0] == made["price_median_low"][0] == made["price_median_high"][0] == 1.95
    assert "1.95" in str(found.dp.table("markdown"))
