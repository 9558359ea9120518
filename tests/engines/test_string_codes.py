"""Strings of Arrow among declared keys: their positions are those of Python, and totals those of Polars."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from dpframe.engines.columns import short_strings
from dpframe.engines.columns.identity import NOWHERE, TEXT, declared
from dpframe.engines.compiled import kernels
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import Keys, key_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, mean, proportion, sum
from dpframe.queries.statistics.statistic import Protecting

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

KEYS = ["A", "", "Berlin", "site-07", "site-70", "7-bytes", "zwölf", "a\0", "\0", "日本"]
WORDS = [
    *(*KEYS, "a", "B", "site-07-annex", "site-071", "zwolf", "zwo\u0308lf", "日本国", "日", "\0\0", "x" * 7, "x" * 8),
    *(
        "7-bytes" + "\x07",
        "Berlin" * 50,
        "A" + "\0" * 255,
        "A" + "\0" * 256,
        "\ufeffA",
        "a ",
        " a",
        "É" * 3,
        "\U0001f600",
        None,
        None,
    ),
]


@pytest.fixture(autouse=True, params=["NumPy", "kernels"])
def few(request, monkeypatch):
    """Look up even small tables in blocks of few rows, on threads."""
    monkeypatch.setattr(short_strings, "FEW_ROWS", 0)
    monkeypatch.setattr(short_strings, "BLOCK", 37)
    if request.param == "kernels":
        pytest.importorskip("numba")
        monkeypatch.setattr(kernels, "FEW_ROWS", 0)
    else:
        monkeypatch.setattr(kernels, "ready", lambda: False)


def words(rows, seed=0, some=tuple(WORDS)):
    return [some[place] for place in np.random.default_rng(seed).integers(0, len(some), rows)]


def expected(values, keys):
    known = {key: place for place, key in enumerate(key for key in keys if key is not None)}
    missing = len(known) if None in keys else NOWHERE
    return [missing if value is None else known.get(value, NOWHERE) for value in values]


def found(array, keys):
    codes = short_strings.codes_of(array, declared(keys, TEXT))
    assert codes is not None
    assert codes.dtype == pl.Int16
    return codes.to_list()


@pytest.mark.parametrize("keys", [KEYS, [*KEYS, None], ["site-07"], ["site-07", None], [""], [None, "a\0", "a"]])
@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_positions_of_strings(keys, kind):
    """Arrays are chunked, sliced, of one length, at the end of a buffer, with and without missing values."""
    kind = getattr(pa, kind)()
    for rows in (1, 2, 36, 37, 38, 500):
        values = words(rows, rows)
        whole = pa.array(values, kind)
        assert found(whole, keys) == expected(values, keys)
        assert found(whole[rows // 3 : rows - rows // 4], keys) == expected(values[rows // 3 : rows - rows // 4], keys)
        parts = [whole[: rows // 2], whole[rows:], whole[rows // 2 :]]
        assert found(pa.chunked_array(parts), keys) == expected(values, keys)
        there = [value for value in values if value is not None] or ["A"]
        assert found(pa.array(there, kind), keys) == expected(there, keys)
    parts = [pa.array(words(rows, rows), kind) for rows in (2, 30, 5, 37, 90, 1)]
    assert found(pa.chunked_array(parts), keys) == expected([word for part in parts for word in part.to_pylist()], keys)
    for same in (["A", "B", "C"], ["site-07", "site-70", "site-71", "Berlin7"], ["site-071", "7-bytes\7"], [""]):
        values = words(300, 1, tuple(same))
        assert found(pa.array(values, kind), keys) == expected(values, keys)
    for empty in (pa.array([], kind), pa.chunked_array([], kind), pa.array([None] * 3, kind)):
        assert found(empty, keys) == expected([None] * len(empty), keys)


def test_bytes_from_an_odd_address_and_at_the_end_of_a_buffer():
    values = words(200, 3, ("A", "", "site-07", "Berlin", "Berliner"))
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)])
    for odd in range(9):
        room = np.frombuffer(b"?" * odd + b"".join(encoded), dtype=np.uint8)[odd:]
        array = pa.Array.from_buffers(pa.large_string(), 200, [None, pa.py_buffer(ends), pa.py_buffer(room)])
        assert found(array, KEYS) == expected(values, KEYS)


def test_bytes_that_are_no_text_and_bytes_of_missing_rows():
    """Bytes of a missing row are ignored, and bytes that are no UTF-8 are compared as they are."""
    encoded = [b"A", b"\xff", b"\xc3", "é".encode(), b"A", b"Berlin", b"\xed\xa0\x80"] * 30
    ends, keys = np.cumsum([0, *map(len, encoded)]), ["é", "A", "Berlin"]
    there = np.array([place % 7 not in (0, 5) for place in range(len(encoded))])
    bits = pa.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [bits, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    array = pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)
    assert found(array, keys) == [-1, -1, -1, 0, 1, -1, -1] * 30
    assert found(array, [*keys, None]) == [3, -1, -1, 0, 1, 3, -1] * 30


def test_keys_that_are_left_to_polars(monkeypatch):
    for keys in (["eight by"], [None], [str(place) for place in range(257)]):
        assert short_strings.codes_of(pa.array(["A"]), declared(keys, TEXT)) is None
    for kind in (pa.binary(), pa.int64(), pa.dictionary(pa.int8(), pa.string())):
        assert short_strings.codes_of(pa.array([], kind), declared(["A"], TEXT)) is None
    monkeypatch.setattr(short_strings, "FEW_ROWS", 2)
    assert short_strings.codes_of(pa.array(["A"]), declared(["A"], TEXT)) is None
    assert short_strings.codes_of(pa.chunked_array([["A"], ["B"], ["A"]]), declared(["A"], TEXT)) is None


def test_as_many_keys_as_fit():
    keys = [f"{place:x}" for place in range(255)]
    values = words(2_000, 5, (*keys, "100", None))
    assert found(pa.array(values), [*keys, None]) == expected(values, [*keys, None])


def columns():
    """Yield a column for each way in which pandas keeps strings in Arrow, and as objects and categories."""
    values = words(400, 7)
    types = ["string[pyarrow]", pd.ArrowDtype(pa.string()), pd.ArrowDtype(pa.large_string())]
    yield from (pd.Series(values, dtype=dtype) for dtype in types)
    parts = [pd.Series(values[start : start + 150], dtype=types[0]) for start in (0, 150, 300)]
    yield pd.concat(parts, ignore_index=True)  # in chunks
    yield pd.concat([parts[0], *parts], ignore_index=True)[150:].reset_index(drop=True)
    yield pd.Series(values, dtype=object)
    if pd.__version__ >= "3":  # older categories end at a byte of 0
        yield pd.Series(values, dtype="str")
        yield pd.Series(values, dtype="category")


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("u", max_rows=3, max_groups=2)])
def test_the_integers_of_polars(unit, monkeypatch):
    """Groups by one column and by two, listed combinations of keys, and the proportion of one value."""
    generator = np.random.default_rng(4)
    numbers = {name: generator.integers(0, most, 400) for name, most in (("y", 3), ("u", 90))}
    numbers["x"] = np.where(generator.random(400) < 0.1, np.nan, generator.normal(0, 9, 400))
    statistics = ("n", Count()), ("s", sum("x", (-5, 8))), ("m", mean("x", (-5, 8))), ("t", sum("y", (0, 2)))
    by_words, by_two = key_axes(("k",), [*KEYS, None], None), key_axes(("k", "y"), {"k": KEYS[:4], "y": [0, 2]}, None)
    some = key_axes(("k", "y"), None, [["A", "", "Berlin", None], [0, 1, 2, 1]])
    queries = [Query("agg", Keys(axes), statistics) for axes in (by_words, by_two, some)]
    queries.append(Query("agg", Keys(()), (("p", proportion("k", "Berlin")),)))
    polars = pl.DataFrame({"k": words(400, 7), **numbers})
    coded, codes_of = [], short_strings.codes_of
    monkeypatch.setattr(short_strings, "codes_of", lambda *asked: coded.append(codes_of(*asked)) or coded[-1])
    for query in queries:
        asked = query.each(lambda one: one.protecting(unit) if isinstance(one, Protecting) else one)
        wanted = {key: cells.tolist() for key, cells in totals(polars, check(polars, asked, unit), unit, 1.0).items()}
        for column in columns():
            frame = pd.DataFrame({"k": column, **numbers})
            answer = totals(frame, check(frame, asked, unit), unit, 1.0)
            assert {key: cells.tolist() for key, cells in answer.items()} == wanted, (column.dtype, query)
    assert len([codes for codes in coded if codes is not None]) >= 4 * 5


def test_a_table_of_no_rows():
    frame = pd.DataFrame({"k": pd.Series([], dtype="string[pyarrow]"), "x": pd.Series([], dtype=float)})
    query = Query("agg", Keys(key_axes(("k",), KEYS, None)), (("n", Count()), ("s", sum("x", (0, 1)))))
    answer = totals(frame, check(frame, query, PrivacyUnit()), PrivacyUnit(), 1.0)
    assert all(not cells.any() for cells in answer.values())
