"""Names of keys in `filter`, `relabel` and `labels=`: a value equal to the key, or else the key's text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames.kinds import is_missing

LIBRARIES = pytest.mark.parametrize("library", ["polars", "pandas"])
BERLIN = ZoneInfo("Europe/Berlin")
TWICE = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)]  # both are 2:30 in Berlin


def _counts(values, library):
    """Return counts with negligible noise: the first key has one row, the second has two, and so on."""
    rows = [value for number, value in enumerate(values, 1) for _ in range(number)]
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame({"k": rows})
    else:
        frame = pl.DataFrame({"k": pl.Series(rows)})
    ledger = dpf.Ledger(epsilon=1e9)
    return frame.dp.group_by("k", keys=list(values)).count(epsilon=1e6, denoise=None, ledger=ledger)


@LIBRARIES
def test_a_missing_key_is_not_the_empty_text(library):
    counts = _counts(["A", "", None], library)
    for key, number, said in ((None, 3.0, None), ("", 2.0, ""), (np.nan, 3.0, None)):
        some = counts.dp.filter({"k": [key]})
        assert list(some["count"]) == [number]
        assert some.dp.provenance["shown"]["steps"][-1]["where"] == {"k": [said]}
    for words, expected, step in (
        ({None: "unknown"}, ["A", "", "unknown"], {"values": {"k": {}}, "missing": {"k": "unknown"}}),
        ({"": "none"}, ["A", "none", None], {"values": {"k": {"": "none"}}}),
        ({"A": "a", "": "b", None: "c"}, [*"abc"], {"values": {"k": {"A": "a", "": "b"}}, "missing": {"k": "c"}}),
    ):
        made = counts.dp.relabel({"k": words})
        assert [None if is_missing(key) else key for key in made["k"]] == expected
        (last,) = made.dp.provenance["shown"]["steps"]
        assert json.loads(json.dumps(last)) == {"verb": "relabel", "columns": {}, **step}
    assert "unknown" in counts.dp.table("csv", labels={"values": {"k": {None: "unknown"}}})
    present = counts.dp.filter({"k": ["A"]})
    for key in ("", None):
        with pytest.raises(dpf.InvalidArgument, match=r"must name keys of 'k', which are 'A', not"):
            present.dp.filter({"k": key})
        with pytest.raises(dpf.InvalidArgument, match=r"must name keys of 'k', which are 'A', not"):
            present.dp.relabel({"k": {key: "other"}})


@LIBRARIES
@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ([Decimal("1.10"), Decimal("2.5")], [Decimal("2.5"), Decimal("2.500")]),
        ([timedelta(hours=1), timedelta(days=2)], [timedelta(days=2), np.timedelta64(48, "h")]),
        ([time.astimezone(BERLIN) for time in TWICE], [TWICE[1], TWICE[1].astimezone(BERLIN)]),
        ([datetime(2026, 1, 1), datetime(2026, 1, 1, 5)], [np.datetime64("2026-01-01T05"), "2026-01-01 05:00:00"]),
        ([date(2026, 1, 1), date(2026, 1, 2)], [date(2026, 1, 2), datetime(2026, 1, 2), "2026-01-02"]),
        ([1, 2], [2, 2.0, np.int8(2), Decimal(2), "2"]),
        (["a", "a 00:00:00"], ["a 00:00:00"]),
    ],
    ids=["decimals", "durations", "instants", "times", "days", "numbers", "texts"],
)
def test_a_value_that_is_the_same_names_a_key(library, keys, names):
    counts = _counts(keys, library)
    for name in names:
        assert list(counts.dp.filter({"k": [name]})["count"]) == [2.0]
        assert list(counts.dp.relabel({"k": {name: "second"}})["k"])[1] == "second"
        assert len({*counts.dp.relabel({"k": {name: "second"}})["k"]}) == 2
    for name in (["no", "key"], {}, "none", object()):
        with pytest.raises(dpf.InvalidArgument, match="must name keys of 'k', which are"):
            counts.dp.filter({"k": [name]})


@LIBRARIES
def test_an_empty_text_is_no_name_of_a_column(library):
    counts = _counts(["A", ""], library)
    with pytest.raises(dpf.InvalidArgument, match=r"a key of 'k' is the empty text\. Relabel its keys first"):
        counts.dp.wide("k")
    assert list(counts.dp.relabel({"k": {"": "none"}}).dp.wide("k").columns)[::2] == ["A", "none"]
    assert list(_counts(["A", None], library).dp.wide("k").columns)[::2] == ["A", "missing"]
