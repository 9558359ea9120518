"""Every public function and method refuses arguments that do not fit its signature, with a helpful message."""

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
        (dpf.read_parquet, dpf.MissingArgument, "path must be given to read_parquet. Its arguments are path, like"),
        (lambda: dpf.read_parquet("x", lik=3), dpf.InvalidType, "lik is not an argument of read_parquet"),
        (lambda: dpf.read_parquet(3), dpf.InvalidType, "path must be the name of a file, not 3"),
        (dpf.public, dpf.MissingArgument, "frame must be given to public"),
        (lambda: dpf.public(1, 2), dpf.InvalidType, "public must be given only frame by position"),
        (dpf.set_default_ledger, dpf.MissingArgument, "ledger must be given to set_default_ledger"),
        (dpf.Stream, dpf.MissingArgument, "name must be given to Stream"),
        (lambda: dpf.PrivacyUnit("p", max_row=1), dpf.InvalidType, "max_row is not an argument of PrivacyUnit. Its"),
        (lambda: dpf.Ledger(1).to_frame(lik="x"), dpf.InvalidType, "lik is not an argument of to_frame"),
        (lambda: dpf.Ledger(1).answers(lik="x"), dpf.InvalidType, "lik is not an argument of answers"),
        (dpf.compare_accounting, dpf.MissingArgument, "workload must be given to compare_accounting"),
        (dpf.optimal_composition, dpf.MissingArgument, "epsilon must be given to optimal_composition"),
        (lambda: dpf.Ledger(eps=1), dpf.InvalidType, "eps is not an argument of Ledger"),
        (lambda: dpf.Ledger(1, 0, 3), dpf.InvalidType, "Ledger must be given only epsilon, delta by position"),
        (lambda: dpf.Ledger(1).report("x.html", title=3), dpf.InvalidType, "title must be text, not 3"),
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
