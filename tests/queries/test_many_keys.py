"""Keys that are checked all at once are kept or refused, with the same words, as keys that are checked one by one."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.engines.columns import identity
from dpframe.queries import keys

MANY = settings(max_examples=200, deadline=None)
WHOLE = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**63, 2**64, -(2**70), 10**4_000])
TEXT = st.sampled_from(["", "a", "A", "1", "é", "e\u0301", "\ud800", "a\x00"])
OTHER = st.sampled_from([None, True, 1.0, 0.5, Decimal(2), np.int64(3), float("nan"), float("inf"), b"a"])
LISTS = (
    st.lists(WHOLE, max_size=6)
    | st.lists(TEXT, max_size=6)
    | st.lists(WHOLE | OTHER, max_size=4)
    | st.lists(TEXT | OTHER)
)
FORMS = [
    identity.Identity("integer", -(2**63), 2**63 - 1),
    identity.Identity("integer", 0, 2),
    identity.Identity("integer", 0, 2**64 - 1),
    identity.Identity("float", bits=64),
    identity.TEXT,
    identity.Identity("text", levels=frozenset({"a", "1"})),
    identity.Identity("decimal", -(10**9), 10**9, scale=2),
]


def told(function):
    """Return the result, or the type and the message of a refusal."""
    try:
        return function()
    except dpf.DpframeError as refused:
        return type(refused), str(refused)


def one_by_one(values):
    """Return the rows of an axis that is made key by key, and the place of the first repeated key."""
    rows = tuple((keys.plain_key(value),) for value in values)
    tokens = [keys.same_key(value) for (value,) in rows]
    again = next((place for place, token in enumerate(tokens) if token in tokens[:place]), None)
    return rows, again


@MANY
@given(LISTS)
def test_an_axis_has_the_keys_that_it_would_have_one_by_one(values):
    found, expected = told(lambda: keys.value_axis("x", values, "keys")), told(lambda: one_by_one(values))
    if isinstance(expected[0], type):
        assert found == expected
    elif isinstance(found, keys.KeyAxis):
        rows, again = expected
        assert (found.rows, again) == (rows, None)
        assert list(map(type, found.values(0))) == [type(value) for (value,) in rows]
    else:
        kinds = {keys.kind_of(value) for (value,) in expected[0] if value is not None}
        assert not values or len(kinds) > 1 or expected[1] is not None


@MANY
@given(LISTS, st.sampled_from(FORMS))
def test_keys_are_stored_as_they_would_be_one_by_one(values, form):
    plain = told(lambda: [keys.plain_key(value) for value in values])
    if isinstance(plain, tuple):
        return
    kept = [identity.stored(value, form) for value in plain]
    known = list(dict.fromkeys(key for key in kept if key is not None and key is not identity.NOTHING))
    found = identity.declared(plain, form)
    assert list(found.values) == known
    assert found.missing == (len(known) if None in plain else identity.NOWHERE)
    places = [
        found.missing if key is None else identity.NOWHERE if key is identity.NOTHING else known.index(key)
        for key in kept
    ]
    assert found.rows.tolist() == places
    assert found.rows.dtype == np.int64


def test_a_list_that_says_something_else_each_time_is_read_once():
    class Changing(list):
        turns = 0

        def __iter__(self):
            self.turns += 1
            return iter([1, 2] if self.turns == 1 else [float("nan"), b"no"])

    assert keys.value_axis("x", Changing([1, 2]), "keys").rows == ((1,), (2,))


@pytest.mark.parametrize("wanted", [range(10**6), [f"key {place}" for place in range(10**6)]], ids=["whole", "text"])
def test_a_million_keys_take_no_turn_each(wanted, monkeypatch):
    monkeypatch.setattr(keys, "plain_key", None)
    monkeypatch.setattr(identity, "stored", None)
    axis = keys.value_axis("x", wanted, "keys")
    form = identity.TEXT if isinstance(wanted, list) else FORMS[0]
    assert identity.declared(axis.values(0), form).size == axis.size == 10**6


COLUMNS = [st.integers(0, 2), st.sampled_from(["a", "é", "b"]), st.sampled_from([None, True, 1, 0.5, "1"])]


@MANY
@given(st.data())
def test_combinations_are_refused_where_two_rows_are_alike(data):
    kinds = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3))
    rows = data.draw(st.lists(st.tuples(*kinds), min_size=1, max_size=6))
    tokens = [tuple(map(keys.same_key, row)) for row in rows]
    names = tuple("xyz"[: len(kinds)])
    found = told(lambda: keys.KeyAxis(names, tuple(zip(*rows, strict=True))))
    if isinstance(found, keys.KeyAxis):
        assert (found.rows, len(set(tokens))) == (tuple(rows), len(rows))
    else:
        assert len(set(tokens)) < len(rows) or "must be of one kind" in found[1]


@pytest.mark.parametrize("columns", [2, 7, 8], ids=["a few combinations", "almost 2**63", "more than 2**63"])
def test_combinations_of_many_columns_are_declared_once(columns):
    names, each = tuple(map(str, range(columns))), tuple(range(400 if columns > 7 else 500))
    keys.KeyAxis(names, (each,) * columns)
    shifted = (*each[1:], 0)
    keys.KeyAxis(names, (each,) * (columns - 1) + (shifted,))
    with pytest.raises(dpf.InvalidArgument, match="occurs twice"):
        keys.KeyAxis(names, ((*each, 3),) * columns)


def test_a_million_combinations_take_no_turn_each(monkeypatch):
    monkeypatch.setattr(keys, "same_key", None)
    whole = np.arange(10**6)
    axis = keys.KeyAxis(("x", "y"), (tuple((whole // 1000).tolist()), tuple((whole % 1000).tolist())))
    assert axis.size == 10**6
    assert [len(values) for values, _ in axis.numbered] == [1000, 1000]
