"""Calls that do not suit a signature are refused in words, wherever the library is entered."""

from __future__ import annotations

import pytest

import dpframe as dpf


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (dpf.median, dpf.MissingArgument, "column must be given to median. Its arguments are column, bounds"),
        (lambda: dpf.mean("age", bound=(0, 9)), dpf.InvalidType, "bound is not an argument of mean. Its arguments are"),
        (lambda: dpf.quantile("age", 0.5), dpf.InvalidType, "quantile must be given only column by position. Write"),
        (lambda: dpf.mean("age", column="x"), dpf.InvalidType, "column must be given once to mean. Drop it"),
    ],
)
def test_a_call_that_suits_no_signature_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_fault_within_a_call_keeps_its_own_words():
    def failing(*_):
        raise TypeError("of its own")

    class Odd:
        __eq__ = __hash__ = __lt__ = __float__ = failing

    with pytest.raises(TypeError) as caught:
        dpf.mean("age", bounds=(Odd(), 3))
    assert "argument" not in str(caught.value)
