"""Ledgers of many entries: printing reads only the last ones, and following the chain does no needless arithmetic."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

import dpframe as dpf
from benchmarks import large_ledger
from dpframe.ledger import chain, rows

COUNT = 3_000


@pytest.fixture(scope="module", params=["basic", "gdp", "rdp"])
def path(request, tmp_path_factory):
    found = tmp_path_factory.mktemp("large") / f"{request.param}.ledger"
    large_ledger.written(found, COUNT, request.param)
    return found


@pytest.mark.slow
def test_116_printing_reads_the_last_entries_alone(path, monkeypatch):
    ledger, read = dpf.Ledger.open(path), []
    inner = rows._row
    monkeypatch.setattr(rows, "_row", lambda found: read.append(found.entry) or inner(found))
    said = repr(ledger)
    assert f"{COUNT:,} charges" in said
    assert f"report {COUNT - 1}" in said
    assert f"report {COUNT - 6}" not in said
    assert len(read) <= 10


@pytest.mark.slow
def test_116_what_is_printed_is_what_the_entries_say(path):
    ledger = dpf.Ledger.open(path)
    entries = [entry for _, entry in ledger._store.entries()]
    told = ledger._store.summary(4)
    assert told.latest == entries[-4:]
    assert told.charges == COUNT
    assert told.last.total == tuple(map(sum, zip(*(entry.amount for entry in entries), strict=True)))


def test_116_answers_and_raised_limits_are_not_counted_as_charges(tmp_path):
    import polars as pl

    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "clinic.ledger")
    words = {
        "label": '","kind":"charge","',
        "snapshot": '","kind":"answer","',
    }  # a caller's text must not count as the kind of an entry
    pl.DataFrame({"age": [31]}).dp.count(epsilon=0.25, ledger=ledger, **words)
    ledger.raise_limit(epsilon=2, reason='","kind":"charge","')
    told = ledger._store.summary(9)
    assert told.charges == 1
    assert [entry.kind for entry in told.latest] == ["charge", "limit"]


def test_116_a_chain_is_followed_without_a_fraction_for_each_entry(path, monkeypatch):
    made = []

    class Counted(Fraction):
        def __new__(cls, *arguments):
            made.append(arguments)
            return Fraction(*arguments)

    monkeypatch.setattr(chain, "Fraction", Counted)
    dpf.Ledger.open(path).verify()
    assert len(made) < 100


def test_116_many_entries_are_followed_fast(path):
    """The limit is 0.2 ms of CPU time for each entry; a busy machine takes 0.02 to 0.03 ms."""
    ledger = dpf.Ledger.open(path)
    start = time.process_time()
    ledger.verify()
    assert time.process_time() - start < COUNT * 2e-4


def test_116_whole_numbers_say_what_fractions_say():
    from hypothesis import given
    from hypothesis import strategies as st

    rational = st.fractions(min_value=0, max_denominator=60)

    @given(rational, rational, rational, rational)
    def check(before, amount, off, most):
        pairs = [(part.as_integer_ratio(),) for part in (before, amount, before + amount, before + amount + off)]
        assert chain._adds_up(*pairs[:3])
        assert chain._adds_up(pairs[0], pairs[1], pairs[3]) == (off == 0)
        assert chain._adds_up(pairs[0], pairs[3], pairs[2]) == (before + off == 0)  # a total that is too small
        assert chain._adds_up((), pairs[1], pairs[1])
        place = chain._Place(0, "", (), large_limit(most), (most.as_integer_ratio(),), None, None)
        assert chain._holds(place, pairs[2]) == (before + amount <= most)

    check()
    assert chain._adds_up(((5, 1),), ((3, 1),), ((8, 1),))
    assert not any(chain._adds_up(((5, 1),), ((3, 1),), ((total, 1),)) for total in (0, 3, 5, 7, 9))


def large_limit(most):
    from dpframe.ledger.terms import Limit

    return Limit(Fraction(1), Fraction(0), (most,))
