"""Shortened conditions and values: two that print alike stay different, and two spellings of one stay the same."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames import build, foreign
from dpframe.queries.sameness import agree, hash_of, same, written
from dpframe.queries.statistics.statistic import told

KEYS = [f"c{number}" for number in range(60)]
A, B = KEYS[:20], KEYS[:6] + KEYS[40:54]  # the same first six keys, and 14 others
LONG = "y" * 100
CLEAR = {"epsilon": 1e6, "checks": False}
ALIKE = "reads alike"
UNKNOWN = "known in part alone"


def _ledger():
    return dpf.Ledger(epsilon=1e9)


def _facts(where):
    return told(dpf.mean("x", bounds=(0, 1), where=where))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"k": A}, {"k": A[::-1]}),
        ({"k": A, "j": (1, None)}, {"j": (1.0, None), "k": A}),
        ({"k": [1, 2]}, {"k": [2.0, Decimal(1)]}),
        ({"k": 0.5}, {"k": [np.float32(0.5)]}),
        ({"k": date(2026, 1, 1)}, {"k": [datetime(2026, 1, 1)]}),
        ({"k": (18, 65)}, {"k": (18.0, 65.0)}),
    ],
    ids=str,
)
def test_two_spellings_of_one_condition_are_one(one, other):
    assert agree(_facts(one), _facts(other), "where")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"k": A}, {"k": B}),
        ({"k": LONG + "a"}, {"k": LONG + "b"}),
        ({"k": 10**80}, {"k": 10**80 + 1}),
        ({"k": "1"}, {"k": 1}),
        ({"k": "x' and m is 'y"}, {"k": "x", "m": "y"}),
        ({"k": "\u202e"}, {"k": r"\u202e"}),
        ({"k": None}, {"k": "None"}),
        ({"k": (1, None)}, {"k": (None, 1)}),
        ({"k": (1, None)}, {"k": 1}),
        ({"k": (1.0, None)}, {"k": (1.0 + 2**-52, None)}),
        ({"k": datetime(2026, 1, 1)}, {"k": datetime(2026, 1, 1, tzinfo=UTC)}),
        ({"k": A}, {"j": A}),
        ({"k": A}, None),
    ],
    ids=str,
)
def test_two_conditions_are_two_however_they_read(one, other):
    assert not agree(_facts(one), _facts(other), "where")
    assert not agree(_facts(other), _facts(one), "where")


def test_a_hash_depends_on_the_value_alone():
    """Python's limit on the digits of integers and its Unicode version do not change a hash."""
    assert len(hash_of(10 ** (sys.get_int_max_str_digits() + 1))) == 64
    assert written("é\u202e") == r"'\xe9\u202e'"
    assert [written(same(value)) for value in (True, 1.0, -0.0, 0.5, float("inf"), (1, "a"))] == [
        "1/1",
        "1/1",
        "0/1",
        "1/2",
        "inf",
        "('tuple',1/1,'a')",
    ]


def test_the_spread_of_rows_that_read_alike_does_not_stand_in_for_a_mean():
    """A has values 0 and 1, B only 0.5: with the spread of B, the interval of the mean of A held in 6% of releases."""
    x = [0.0, 1.0] * 7 * 50 + [0.5] * 14 * 50
    frame = pl.DataFrame({"k": np.repeat(A[6:] + B[6:], 50), "x": x})
    mean = {"m": dpf.mean("x", bounds=(0, 2), where={"k": A})}
    for where, deviation in ((B, 1.0), (A[::-1], float(np.std(x[:700], ddof=1)))):
        spread = {"s": dpf.std("x", bounds=(0, 2), where={"k": where})}
        told = frame.dp.agg(mean | spread, **CLEAR, ledger=_ledger()).dp.errors(covers="population")
        assert told["interval"][0] == pytest.approx(1.96 * deviation / np.sqrt(700), rel=0.01), where
    other = {"s": dpf.std("x", bounds=(0, 2), where={"k": B})}
    result = frame.dp.agg(mean | other, **CLEAR, ledger=_ledger())
    assert "how far values of m differ was not measured" in dpf.compare(
        result, frame.dp.agg(mean, **CLEAR, ledger=_ledger()), samples="different"
    ).dp.statement().replace("\n", " ")


def test_the_number_of_rows_that_read_alike_does_not_stand_in_for_a_sum():
    """All rows are in A, and B has none of its own: with its count, the interval of the sum held in 2% of releases."""
    frame = pl.DataFrame({"k": A[6:] * 50, "x": [1.0, -1.0] * 350})
    asked = {"s": dpf.sum("x", bounds=(-1, 1), where={"k": A})}
    for where in (A[::-1], None):
        result = frame.dp.agg(asked | {"n": dpf.count(where=where and {"k": where})}, **CLEAR, ledger=_ledger())
        told = result.dp.errors(covers="population")
        assert told["interval"][0] == pytest.approx(1.96 * np.sqrt(700), rel=5e-2)
    result = frame.dp.agg(asked | {"n": dpf.count(where={"k": B})}, **CLEAR, ledger=_ledger())
    with pytest.raises(dpf.InvalidArgument, match=r"Ask for it with population=True"):
        result.dp.errors(covers="population")


def _before(result):
    """Return the result as an older version wrote it, without hashes."""
    record = build.record_of(result)
    measures = {
        name: {fact: value for fact, value in said.items() if not fact.endswith("_sha256")}
        for name, said in record["measures"].items()
    }
    return build.attach(result.clone(), {**record, "measures": measures})


@pytest.mark.parametrize(("one", "other"), [(A, B), (LONG + "a", LONG + "b")])
def test_results_of_conditions_that_read_alike_are_not_compared(one, other):
    frame = pl.DataFrame({"k": [*KEYS, LONG + "a", LONG + "b"] * 20, "b": [True, False] * 620})

    def released(where):
        return frame.dp.agg(p=dpf.proportion("b", where={"k": where}), **CLEAR, ledger=_ledger())

    first, second, again = released(one), released(other), released(one)
    words = [result.dp.provenance["measures"]["p"]["where"] for result in (first, second)]
    assert words[0] == words[1]
    with pytest.raises(dpf.InvalidArgument, match=rf"its where is k is 'c0'.*{ALIKE}|its where is k is 'y+.*{ALIKE}"):
        dpf.compare(first, second, samples="different")
    for spelled in (one, one[::-1] if one is A else [one]):
        assert len(dpf.compare(first, released(spelled), samples="different")) == 1
    for pair in ((_before(first), second), (first, _before(again)), (_before(first), _before(again))):
        with pytest.raises(dpf.InvalidArgument, match=rf"its where is {UNKNOWN}: k is "):
            dpf.compare(*pair, samples="different")


def test_older_records_of_conditions_that_are_not_cut_are_compared():
    frame = pl.DataFrame({"k": KEYS * 20, "b": [True, False] * 600})
    first, second, other = (
        frame.dp.agg(p=dpf.proportion("b", value=True, where={"k": where}), **CLEAR, ledger=_ledger())
        for where in (A[:6], A[:6], A[:5])
    )
    for pair in ((first, _before(second)), (_before(first), second), (_before(first), _before(second))):
        assert len(dpf.compare(*pair, samples="different")) == 1
    with pytest.raises(dpf.InvalidArgument, match=r"its where is .* and "):
        dpf.compare(first, _before(other), samples="different")


@pytest.mark.parametrize("hashed", ["", "0" * 63, "0" * 63 + "X", 1, None])
def test_a_hash_of_a_record_has_one_form(hashed):
    measures, _ = foreign.FIELDS["measures"]
    for fact in ("where_sha256", "value_sha256"):
        said = {"verb": "count", "column": None, "statistics": [0], "denoise": None, fact: "0" * 64}
        assert measures({"n": said})
        assert not measures({"n": said | {fact: hashed}})


def test_every_statistic_under_a_condition_records_its_hash():
    weight = {"weight": "w", "weight_bounds": (0, 5)}
    bounds = {"x": (0, 1), "y": (0, 1)}
    hashes = {
        told(statistic)["where_sha256"]
        for statistic in (
            dpf.count(where={"k": A}),
            dpf.count(where={"k": A}, **weight),
            dpf.proportion("x", where={"k": A}, **weight),
            dpf.ratio("x", "y", bounds=bounds, where={"k": A}),
            dpf.correlation(["x", "y"], bounds=bounds, where={"k": A}),
        )
    }
    assert hashes == {_facts({"k": A})["where_sha256"]}
    plain, weighed = (told(dpf.proportion("x", value=LONG, **more)) for more in ({}, weight))
    assert plain["value_sha256"] == weighed["value_sha256"] == hash_of(LONG)


def test_noises_of_what_is_described_alike_are_all_told():
    frame = pl.DataFrame({"k": KEYS})
    plan = frame.dp.preview.agg(a=dpf.count(where={"k": A}), b=dpf.count(where={"k": B}), epsilon=1, ledger=_ledger())
    first, second = plan.mechanisms
    assert second == f"{first} (2)"
    assert list(plan.mechanisms.values()) == [part.mechanism for part in plan.parts]
