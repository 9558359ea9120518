"""Unknown groups, whose keys are found in the data: what is asked, shown, charged and refused."""

from __future__ import annotations

import json
import math
import warnings
from datetime import UTC, date, datetime, time
from decimal import Decimal, FloatOperation, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import stand_ins
from seen import seen

import dpframe as dpf
from dpframe import noise
from dpframe.errors import BudgetExceeded, InvalidArgument, InvalidType, LedgerError, MissingArgument, WrongDtype
from dpframe.planning import price

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))
FOUND = dpf.discover(delta=1e-7)
LIBRARIES = ["polars", "lazy", "pandas"]


def given(frame, library):
    if library == "pandas":
        pytest.importorskip("pandas")
        with warnings.catch_warnings():  # older versions of pandas and pyarrow warn about each other
            warnings.simplefilter("ignore", DeprecationWarning)
            return frame.to_pandas()
    return frame.lazy() if library == "lazy" else frame


def plain(frame):
    return frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)


def ledger(**more):
    return dpf.Ledger(**{"epsilon": 1e6, "delta": 1e-3, "keys_delta": 1e-4, "unit": "u", **more})


def rows_ledger(**more):
    return dpf.Ledger(epsilon=1e6, delta=1e-2, accounting="basic", **more)


def visits(groups, size=400):
    """Return `size` people per group, with two rows each, and as many groups of a single person."""
    people = pl.DataFrame({"u": range(groups * size)}).with_columns(k=pl.col("u") % groups, x=pl.lit(1.0))
    rare = pl.DataFrame({"u": range(groups), "k": range(1_000, 1_000 + groups), "x": [1.0] * groups})
    return pl.concat([people, people, rare])


def test_keys_of_several_types_are_sorted_in_any_context_of_decimals():
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"k": pandas.Series([Decimal("0.1"), 0.5, 2] * 400, dtype=object)})
    with localcontext() as context:
        context.traps[FloatOperation] = True  # comparing a Decimal with a float raises
        found = mixed.dp.group_by("k", keys=FOUND).count(epsilon=1, ledger=rows_ledger())
    assert found["k"].tolist() == [Decimal("0.1"), 0.5, 2]


@pytest.mark.parametrize("library", LIBRARIES)
def test_large_groups_are_found_with_their_people_and_small_ones_are_not(library):
    frame = given(visits(7), library)
    result = frame.dp.group_by("k", keys=FOUND).agg(
        n=dpf.n_units(), s=dpf.sum("x", bounds=(0, 1)), m=dpf.mean("x", bounds=(0, 2)), c=dpf.count(),
        max_rows=2, max_groups=2, epsilon=50, ledger=ledger(),
    )  # fmt: skip
    found = plain(result)
    assert found["k"].to_list() == list(range(7))
    assert found["n"].to_numpy() == pytest.approx(400, abs=10)
    assert found["s"].to_numpy() == pytest.approx(800, abs=40)
    assert found["c"].to_numpy() == pytest.approx(800, abs=40)
    assert found["m"].to_numpy() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_verbs_ask_of_groups_that_are_found(library):
    groups = given(visits(3), library).dp.group_by("k", keys=FOUND)
    price = {"max_rows": 2, "max_groups": 1, "epsilon": 50, "ledger": ledger()}
    assert plain(groups.n_units(**price)).columns == ["k", "n_units", "n_units_error"]
    assert plain(groups.count(**price))["count"].to_numpy() == pytest.approx(800, abs=40)
    assert plain(groups.sum("x", bounds=(0, 1), **price))["x_sum"].to_numpy() == pytest.approx(800, abs=40)
    assert plain(groups.mean("x", bounds=(0, 2), **price))["x_mean"].to_numpy() == pytest.approx(1, abs=0.1)
    assert plain(groups.n_units("x", **price))["n_units"].to_numpy() == pytest.approx(400, abs=20)
    assert plain(groups.median("x", bounds=(0, 2), **price))["x_median"].len() == 3
    assert plain(groups.variance("x", bounds=(0, 2), **price))["x_var"].len() == 3


def test_the_numbers_that_decide_are_the_answer():
    frame = visits(400, 24)
    price = {"max_groups": 1, "epsilon": 1, "delta": 1e-5, "ledger": ledger()}
    result = frame.dp.group_by("k", keys=FOUND).n_units(**price)
    (part,) = frame.dp.preview.group_by("k", keys=FOUND).n_units(**price).parts
    assert 0 < result.height < 400
    assert result["n_units"].min() >= part.mechanism.threshold
    assert result["n_units"].mean() > 24 + part.mechanism.scale / 2  # near the threshold only high ones are shown


def test_a_group_exactly_at_the_line_is_shown_half_the_time():
    plan_of = lambda frame: frame.dp.preview.group_by("k", keys=FOUND).n_units(  # noqa: E731
        max_groups=1_000, epsilon=20, ledger=ledger()
    )
    people = math.ceil(plan_of(visits(1)).parts[0].mechanism.threshold)
    frame = pl.DataFrame({"u": range(3_000 * people)}).with_columns(k=pl.col("u") % 3_000)
    shown = frame.dp.group_by("k", keys=FOUND).n_units(max_groups=1_000, epsilon=20, ledger=ledger()).height / 3_000
    assert 0.4 < shown < 0.7


def test_row_units_share_one_number_for_keys_and_counts():
    frame = visits(5)
    plan = frame.dp.preview.group_by("k", keys=FOUND).agg(c=dpf.count(), n=dpf.count(), epsilon=1, ledger=rows_ledger())
    assert [part.mechanism.name for part in plan.parts] == ["truncated Laplace"]
    assert plan.amount == (1, Fraction(1, 10**7))
    result = frame.dp.group_by("k", keys=FOUND).agg(c=dpf.count(), n=dpf.count(), epsilon=1, ledger=rows_ledger())
    assert result["c"].to_list() == result["n"].to_list()
    assert result["c"].to_numpy() == pytest.approx(800, abs=20)


def test_row_units_with_a_delta_pay_the_larger_delta():
    plan = (
        visits(5)
        .dp.preview.group_by("k", keys=dpf.discover(delta=1e-6))
        .count(epsilon=1, delta=1e-6, ledger=rows_ledger())
    )
    law = plan.parts[0].mechanism
    assert plan.amount == (1, Fraction(1, 10**6))
    assert (law.scale, law.line) == (pytest.approx(4.2246789, rel=1e-7), 22)
    assert "a group of 22 rows is shown half the time, of 29 rows 95% of the time" in repr(plan)


def test_deltas_add_up_where_one_unit_may_lose_both():
    unit = dpf.PrivacyUnit(neighbors="replace")
    plan = visits(5).dp.preview.group_by("k", keys=FOUND).count(epsilon=1, delta=1e-6, ledger=rows_ledger(unit=unit))
    assert plan.amount == (1, Fraction(1, 10**6) + Fraction(1, 10**7))
    frame = visits(5).dp.preview.group_by("k", keys=dpf.discover(delta=1e-7, max_keys=1))
    basic = rows_ledger(unit="u")
    alone = frame.n_units(max_groups=1, epsilon=1, delta=1e-6, ledger=basic)
    more = frame.agg(n=dpf.n_units(), c=dpf.count(), max_rows=1, max_groups=1, epsilon=1, delta=1e-6, ledger=basic)
    assert (alone.amount[1], more.amount[1]) == (Fraction(1, 10**6), Fraction(1, 10**6) + Fraction(1, 10**7))


def test_truncated_noise_under_replace_is_halved():
    unit = dpf.PrivacyUnit(neighbors="replace")
    law = visits(2).dp.preview.group_by("k", keys=dpf.discover(delta=2e-6)).count(
        epsilon=2, ledger=rows_ledger(unit=unit)
    ).parts[0].mechanism  # fmt: skip
    assert (law.noise.reach, law.noise.scale, law.line) == (14, 1.0, 15)
    assert law.shown <= 2e-6


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_curves_take_no_truncated_noise(accounting):
    book = dpf.Ledger(epsilon=9, delta=1e-5, keys_delta=1e-6, accounting=accounting)
    plan = visits(2).dp.preview.group_by("k", keys=FOUND).count(epsilon=1, mechanism="laplace", ledger=book)
    assert plan.parts[0].mechanism.name == "discrete Laplace"
    assert plan.amount[-1] == Fraction(1, 10**7)


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_found_gives_an_empty_frame_of_the_planned_dtypes(library):
    def asked(frame):
        return given(frame, library).dp.group_by("k", "w", keys=FOUND).agg(
            n=dpf.n_units(), s=dpf.sum("x", bounds=(0, 1)), max_rows=1, max_groups=1, epsilon=30, ledger=ledger()
        )  # fmt: skip

    full = visits(2).with_columns(w=pl.lit("A"))
    none, some = asked(full.head(2)), asked(full)
    assert (len(none), len(some)) == (0, 2)
    assert list(none.columns) == list(some.columns)
    assert list(map(str, none.dtypes)) == list(map(str, some.dtypes))
    assert none.dp.provenance["cells"][0]["size"] == 0
    assert not none.dp.provenance["altered"]


COLUMNS = {
    "text": (pl.String, ["b", "a", "é"]),
    "whole": (pl.Int64, [2**60 + 1, -5, 2**60]),
    "tiny": (pl.UInt8, [200, 3, 7]),
    "float": (pl.Float64, [2.5, -1.0, math.inf]),
    "half": (pl.Float32, [0.5, 1.25, -3.0]),
    "flag": (pl.Boolean, [True, False, None]),
    "day": (pl.Date, [date(2024, 2, 29), date(1960, 1, 1), date(2024, 3, 1)]),
    "moment": (pl.Datetime("us"), [datetime(2024, 1, 2), datetime(2024, 1, 1), datetime(1969, 1, 1)]),
    "instant": (pl.Datetime("ms", "UTC"), [datetime(2024, 1, day, tzinfo=UTC) for day in (3, 2, 1)]),
    "amount": (pl.Decimal(10, 2), [Decimal("1.10"), Decimal("-0.01"), Decimal("3.00")]),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_labels_are_those_of_the_column_in_their_order(name, library):
    dtype, values = COLUMNS[name]
    if library == "pandas" and name == "half":
        pytest.skip("pandas has its own floats")
    keys = pl.Series("k", values * 300, dtype=dtype)
    frame = pl.DataFrame([keys]).with_columns(u=pl.int_range(pl.len()))
    result = given(frame, library).dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=40, ledger=ledger())
    expected = sorted(value for value in values if value is not None)
    days = name == "day" and library == "pandas"  # pandas has no dtype for days
    assert [key.date() if days else key for key in result["k"]] == expected
    if library != "pandas":
        assert result["k"].dtype == dtype


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_known_keys_have_the_labels_of_their_column(name, library):
    dtype, values = COLUMNS[name]
    finite = [value for value in values if value is not None and value != math.inf]
    frame = pl.DataFrame({"k": pl.Series(values, dtype=dtype)}).with_columns(u=pl.int_range(pl.len())).head(1)
    known = dpf.discover(delta=1e-7, known=finite)
    if library == "pandas" and name == "day":
        known = dpf.discover(delta=1e-7, known=[datetime(one.year, one.month, one.day) for one in finite])
    result = given(frame, library).dp.group_by("k", keys=known).n_units(max_groups=1, epsilon=40, ledger=ledger())
    days = name == "day" and library == "pandas"
    assert [key.date() if days else key for key in result["k"]] == sorted(finite)
    there = [float(value == values[0]) for value in sorted(finite)]
    assert plain(result)["n_units"].to_numpy() == pytest.approx(there, abs=0.9)


def test_plans_name_a_delta_only_for_laplace_noise_in_several_groups():
    """In one group, or with a small delta, Gaussian noise finds fewer groups: the advice is to compare."""
    groups, advice = visits(3).dp.preview.group_by, "Gaussian noise may find more groups"

    def text(keys=FOUND, max_groups=2, **more):
        asked = groups("k", keys=keys)
        return repr(asked.n_units(max_groups=max_groups, epsilon=1, ledger=rows_ledger(unit="u"), **more))

    assert advice in text()
    assert advice not in text(max_groups=1)
    assert advice not in text(max_groups=3, delta=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        "people.group_by('k', keys=FOUND).n_units(max_groups=3, epsilon=1, ledger=pure)",
        "people.group_by('k', keys=[1, 2]).count(max_rows=1, epsilon=1, delta=1e-6, ledger=pure)",
    ],
)
def test_a_ledger_without_a_delta_names_a_way_out_that_helps(call):
    pure = dpf.Ledger(epsilon=5, unit="u")
    with pytest.raises(BudgetExceeded, match="Create a ledger with delta, or use Laplace with declared keys"):
        eval(call, {"people": visits(3).dp, "pure": pure, "FOUND": FOUND})


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_keys_are_a_group_only_where_they_are_asked_for(library):
    frame = pl.DataFrame({"k": [1.0, None, math.nan, -0.0, 0.0] * 300}).with_columns(u=pl.int_range(pl.len()))
    groups = given(frame, library).dp
    price = {"max_groups": 1, "epsilon": 40, "ledger": ledger()}
    without = plain(groups.group_by("k", keys=FOUND).n_units(**price))
    assert [float(k) for k in without["k"]] == [0.0, 1.0]
    assert all(math.copysign(1, float(k)) == 1 for k in without["k"])
    found = groups.group_by("k", keys=dpf.discover(delta=1e-7, nulls=True)).n_units(**price)
    assert len(found) == 3
    assert plain(found)["n_units"].to_numpy() == pytest.approx([600, 300, 600], abs=20)


def test_pandas_columns_that_one_value_turns_into_others_give_the_same_frame():
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame({"u": range(600), "k": [1, 2, 3] * 200})
    floats = pandas.DataFrame({"u": range(601), "k": [1, 2, 3] * 200 + [None]})
    objects = pandas.DataFrame({"u": range(602), "k": pandas.Series([1, 2, 3] * 200 + [None, "odd"], dtype=object)})
    categories = whole.assign(k=whole["k"].astype("category"))
    results = [
        frame.dp.group_by("k", keys=FOUND).agg(
            n=dpf.n_units(), c=dpf.count(), max_rows=1, max_groups=1, epsilon=40, ledger=ledger()
        )
        for frame in (whole, floats, objects, categories)
    ]
    for result in results:
        assert result["k"].tolist() == [1, 2, 3]
        assert [type(key) for key in result["k"]] == [int] * 3
        assert result["k"].dtype == object
        assert result["c"].to_numpy() == pytest.approx(200, abs=20)


PANDAS = {
    "datetime64[ns]": ["2024-01-01T00:00:00.000000001", "2023-01-01"],
    "datetime64[us, Europe/Berlin]": ["2024-01-01", "2023-01-01"],
    "timedelta64[us]": [5, 3],
    "Int64": [2, None],
    "boolean": [True, False],
    "float32": [0.5, 2],
    "uint64": [2**64 - 1, 1],
    "string": ["b", "a"],
    "category": ["b", "a"],
    "object": ["b", "a"],
    "int8[pyarrow]": [3, 1],
    "string[pyarrow]": ["b", "a"],
    "date32[pyarrow]": ["2024-01-01", "2023-01-01"],
    "decimal128(5, 2)[pyarrow]": [Decimal("1.10"), Decimal("-2.00")],
}


@pytest.mark.parametrize("dtype", PANDAS)
@pytest.mark.parametrize("nulls", [False, True])
def test_pandas_dtypes_of_labels_are_the_same_whatever_is_found(dtype, nulls):
    pandas = pytest.importorskip("pandas")
    values = PANDAS[dtype]
    found = [date.fromisoformat(one) for one in values] if dtype.startswith("date32") else values
    kind = dtype if "pyarrow" not in dtype or dtype == "string[pyarrow]" else pandas.ArrowDtype(arrow_type(dtype))
    keys = pandas.Series(pandas.Series(found).tolist() * 200).astype(kind)
    frame = pandas.DataFrame({"u": range(400), "k": keys})
    some, none = [
        one.dp.group_by("k", keys=dpf.discover(delta=1e-7, nulls=nulls)).agg(
            n=dpf.n_units(), c=dpf.count(), max_rows=1, max_groups=1, epsilon=50, ledger=ledger()
        )
        for one in (frame, frame.head(0))
    ]
    assert some["k"].dtype == none["k"].dtype
    assert some["c"].to_numpy() == pytest.approx(200, abs=20)
    present = keys.dropna().nunique()
    assert len(some) == present + (nulls and keys.isna().any())
    assert not some.dp.provenance["altered"]


def arrow_type(dtype):
    pyarrow = pytest.importorskip("pyarrow")
    return {"int8": pyarrow.int8(), "date32": pyarrow.date32()}.get(dtype.partition("[")[0], pyarrow.decimal128(5, 2))


def test_dtypes_whose_steps_polars_has_not_are_refused():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for kind in (pyarrow.time64("us"), pyarrow.timestamp("s")):
        keys = pandas.Series([None, None], dtype=pandas.ArrowDtype(kind))
        with pytest.raises(WrongDtype, match="time unit"):
            pandas.DataFrame({"u": [1, 2], "k": keys}).dp.group_by("k", keys=FOUND).n_units(
                max_groups=1, epsilon=1, ledger=ledger()
            )


@pytest.mark.parametrize("nulls", [False, True])
def test_integers_of_any_width_reach_pandas(nulls):
    pytest.importorskip("pandas")
    frame = pl.DataFrame({"k": pl.Series([2**100, 1] * 300, dtype=pl.Int128)}).with_columns(u=pl.int_range(pl.len()))
    groups = dpf.of(frame, like="pandas").group_by("k", keys=dpf.discover(delta=1e-7, nulls=nulls))
    assert groups.n_units(max_groups=1, epsilon=50, ledger=ledger())["k"].tolist() == [1, 2**100]


@pytest.mark.parametrize("shown", [[False, True], [True, None]], ids=["both", "one and missing ones"])
def test_the_dtype_of_booleans_in_pandas_is_that_of_the_schema(shown):
    pytest.importorskip("pandas")
    frame = pl.DataFrame({"k": pl.Series(shown * 300, dtype=pl.Boolean)}).with_columns(u=pl.int_range(pl.len()))
    groups = dpf.of(frame, like="pandas").group_by("k", keys=dpf.discover(delta=1e-7, nulls=True))
    keys = groups.n_units(max_groups=1, epsilon=50, ledger=ledger())["k"]
    assert str(keys.dtype) == "boolean"
    assert [None if key is keys.dtype.na_value else key for key in keys] == shown


@pytest.mark.parametrize("shown", [[1, 2], [1, None]], ids=["both", "one and missing ones"])
def test_the_dtype_of_integers_in_pandas_is_that_of_the_schema(shown):
    pytest.importorskip("pandas")
    frame = pl.DataFrame({"k": shown * 300}).with_columns(u=pl.int_range(pl.len()))
    groups = dpf.of(frame, like="pandas").group_by("k", keys=dpf.discover(delta=1e-7, nulls=True))
    keys = groups.n_units(max_groups=1, epsilon=50, ledger=ledger())["k"]
    assert str(keys.dtype) == "Int64"


def test_times_of_nanoseconds_reach_pandas():
    """Arrow once refused them after the charge, with a message that quoted one of the private values."""
    pytest.importorskip("pandas")
    times = pl.Series([1, 3_600_000_000_000] * 300, dtype=pl.Int64).cast(pl.Time)
    frame = pl.DataFrame({"k": times}).with_columns(u=pl.int_range(pl.len()))
    groups = dpf.of(frame, like="pandas").group_by("k", keys=FOUND)
    keys = groups.n_units(max_groups=1, epsilon=50, ledger=ledger())["k"]
    assert keys.dtype == object
    assert keys.tolist() == [time(0), time(1)]


def test_a_time_outside_a_day_fails_no_release():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    steps = pyarrow.array([-1, 3_600_000_000_000] * 300, pyarrow.int64()).view(pyarrow.time64("ns"))
    times = pandas.Series(steps, dtype=pandas.ArrowDtype(pyarrow.time64("ns")))
    groups = pandas.DataFrame({"u": range(600), "k": times}).dp.group_by("k", keys=FOUND)
    assert time(1) in groups.n_units(max_groups=1, epsilon=50, ledger=ledger())["k"].tolist()


def test_a_decimal_beyond_its_precision_fails_no_release():
    """A column may hold such a value, since Arrow does not check the precision."""
    pyarrow = pytest.importorskip("pyarrow")
    wide = pyarrow.array([Decimal(10) ** 35, Decimal(1)] * 300, pyarrow.decimal128(38, 0))
    narrow = pyarrow.Array.from_buffers(pyarrow.decimal128(5, 0), len(wide), wide.buffers())
    table = pyarrow.table({"u": range(600), "k": narrow})
    groups = dpf.of(table).group_by("k", keys=FOUND)
    keys = groups.n_units(max_groups=1, epsilon=50, ledger=ledger())
    assert Decimal(1) in list(keys["k"])


def test_pandas_objects_of_many_kinds_are_told_apart():
    pandas = pytest.importorskip("pandas")
    values = [
        1,
        1.0,
        True,
        "1",
        Decimal("0.1"),
        datetime(2024, 1, 1),
        date(2024, 1, 1),
        (1, 2),
        b"x",
        float("inf"),
        None,
    ]
    keys = pandas.Series(values * 200, dtype=object)
    frame = pandas.DataFrame({"u": range(len(keys)), "k": keys})
    result = frame.dp.group_by("k", keys=FOUND).agg(
        n=dpf.n_units(), c=dpf.count(), max_rows=1, max_groups=1, epsilon=40, ledger=ledger()
    )
    found = dict(zip(result["k"], result["c"], strict=True))
    assert set(found) == {1, "1", Decimal("0.1"), datetime(2024, 1, 1), float("inf")}
    assert found[1] == pytest.approx(600, abs=20)
    assert found[datetime(2024, 1, 1)] == pytest.approx(400, abs=20)


def test_long_decimals_keep_all_their_digits():
    values = [Decimal("1234567890123456789012345678.9012345678"), Decimal("-1234567890123456789012345678.9012345679")]
    frame = pl.DataFrame([pl.Series("k", values * 200, dtype=pl.Decimal(38, 10))]).with_columns(
        u=pl.int_range(pl.len())
    )
    result = frame.dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=40, ledger=ledger())
    assert result["k"].to_list() == values[::-1]


def test_weighted_counts_read_off_others_are_not_rounded():
    def counts(book, **bounds):
        groups = visits(3).dp.group_by("k", keys=FOUND)
        asked = {"m": dpf.mean("x", bounds=(0, 2)), "c": dpf.count("x")}
        return groups.agg(**asked, mechanism="laplace", epsilon=3, ledger=book, **bounds)["c"].to_numpy()

    weighted, whole = counts(ledger(), max_rows=2, max_groups=1), counts(rows_ledger())
    assert (weighted != np.rint(weighted)).all()
    assert (whole == np.rint(whole)).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_several_columns_are_found_as_combinations(library):
    frame = visits(4).with_columns(w=pl.when(pl.col("k") < 2).then(pl.lit("low")).otherwise(pl.lit("high")))
    result = given(frame, library).dp.group_by("w", "k", keys=FOUND).agg(
        c=dpf.count(), max_rows=2, max_groups=1, epsilon=50, ledger=ledger()
    )  # fmt: skip
    found = plain(result)
    assert list(zip(found["w"], found["k"], strict=True)) == [("high", 2), ("high", 3), ("low", 0), ("low", 1)]
    assert found["c"].to_numpy() == pytest.approx(800, abs=40)


@pytest.mark.parametrize("library", LIBRARIES)
def test_known_keys_are_shown_in_any_case(library):
    found = dpf.discover(delta=1e-7, known=[5_000, 0, 1_001])
    result = given(visits(2), library).dp.group_by("k", keys=found).agg(
        n=dpf.n_units(), c=dpf.count(), max_rows=2, max_groups=1, epsilon=50, ledger=ledger()
    )  # fmt: skip
    assert list(result["k"]) == [0, 1, 1_001, 5_000]
    assert plain(result)["n"].to_numpy() == pytest.approx([400, 400, 1, 0], abs=10)


def test_known_keys_have_noise_of_their_own():
    found = dpf.discover(delta=1e-7, known=range(5_000, 5_300))
    result = visits(1).dp.group_by("k", keys=found).n_units(max_groups=1, epsilon=1, ledger=ledger())
    assert result["n_units"].n_unique() > 200


def test_groups_of_fewer_units_than_asked_are_never_shown():
    frame = pl.DataFrame({"u": range(300 * 30)}).with_columns(k=pl.col("u") % 300)
    shown = {
        least: frame.dp.group_by("k", keys=dpf.discover(delta=0.2, max_keys=1, at_least=least)).n_units(
            max_groups=1, epsilon=0.3, ledger=ledger(delta=0.5, keys_delta=0.4)
        ).height
        for least in (1, 30, 31)
    }  # fmt: skip
    assert shown[1] > 0
    assert shown[31] == 0
    assert shown[30] < shown[1] + 30


def test_a_unit_with_many_keys_keeps_some_and_others_each_time():
    frame = pl.DataFrame({"k": list(range(50)) * 40, "u": [u for u in range(40) for _ in range(50)]})
    found = dpf.discover(delta=1e-5, max_keys=10)
    chosen = [
        frame.dp.group_by("k", keys=found).n_units(max_groups=10, epsilon=1e4, ledger=ledger(epsilon=1e9))
        for _ in range(2)
    ]
    numbers = [result["n_units"].sum() for result in chosen]
    assert numbers == pytest.approx([400, 400], abs=20)
    exact = [dict(zip(result["k"], result["n_units"].round(), strict=True)) for result in chosen]
    assert exact[0] != exact[1]


def test_seeded_releases_repeat():
    frame = visits(30, 40)
    results = []
    for _ in range(2):
        with noise.insecure_bits(11):
            results.append(frame.dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=2, ledger=ledger()))
    assert results[0].equals(results[1])


def test_the_order_of_rows_and_first_labels_play_no_part():
    frame = visits(9)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    results = []
    for one in (frame, shuffled, shuffled.lazy()):
        with noise.insecure_bits(2):
            results.append(
                one.dp.group_by("k", keys=FOUND).agg(
                    n=dpf.n_units(), c=dpf.count(), max_rows=2, max_groups=1, epsilon=5, ledger=ledger()
                )
            )
    assert results[0].equals(results[1])
    assert results[0].equals(results[2])


def test_hidden_numbers_of_units_take_their_share_and_a_weight():
    groups = visits(3).dp.preview.group_by("k", keys=FOUND)
    price = {"max_rows": 1, "max_groups": 1, "epsilon": 1, "ledger": ledger()}
    plan = groups.sum("x", bounds=(0, 1), **price)
    assert [part.share for part in plan.parts] == [0.5, 0.5]
    assert "the numbers of units are measured in any case: ask for n_units too" in repr(plan)
    rows = visits(2).dp.preview.group_by("k", keys=FOUND)
    plan = rows.agg(s=dpf.sum("x", bounds=(0, 1)), epsilon=1, ledger=rows_ledger())
    assert "the numbers of rows are measured in any case: ask for count too" in repr(plan)
    weighted = groups.sum("x", bounds=(0, 1), weights={"keys": 3, "x_sum": 1}, **price)
    assert [part.share for part in weighted.parts] == [0.75, 0.25]
    named = groups.agg(n=dpf.n_units(), s=dpf.sum("x", bounds=(0, 1)), weights={"n": 3}, **price)
    assert [part.share for part in named.parts] == [0.75, 0.25]


@pytest.mark.parametrize("weights", [{}, {"b": 3}, {"keys": 1000}], ids=["none", "of another", "of it"])
def test_210_a_column_that_is_named_as_the_numbers_of_units_takes_no_share_twice(weights):
    """One weight once applied to both, and each took the whole share: up to twice the charged epsilon was spent."""
    columns = {"keys": dpf.sum("x", bounds=(0, 1)), "b": dpf.sum("x", bounds=(0, 2))}
    for preview in (False, True):
        payer = rows_ledger()
        dp = visits(2).dp.preview if preview else visits(2).dp
        with pytest.raises(InvalidArgument, match=r"weights must tell the output column 'keys' from .* another name"):
            dp.group_by("k", keys=FOUND).agg(columns, epsilon=1, weights=weights, ledger=payer)
        assert payer.spent.epsilon == 0
    groups = visits(2).dp.preview.group_by("k", keys=FOUND)
    assert [part.share for part in groups.agg(columns, epsilon=1, ledger=rows_ledger()).parts] == [1 / 3] * 3
    named = {"keys": dpf.count(), "b": dpf.sum("x", bounds=(0, 1))}  # the numbers of rows that decide are this column
    plan = groups.agg(named, epsilon=1, weights={"keys": 3}, ledger=rows_ledger())
    assert [part.share for part in plan.parts] == [0.75, 0.25]


def test_210_no_division_of_a_cost_is_more_than_the_whole(monkeypatch):
    """The charge is the cost as stated, so a division into more than the whole would add too little noise."""
    monkeypatch.setattr(price, "weights_of", lambda weights, names, what: dict.fromkeys(names, Fraction(2, 3)))
    payer = rows_ledger()
    columns = {"a": dpf.count(), "b": dpf.sum("x", bounds=(0, 1))}
    for groups in (visits(2).dp.group_by("k", keys=FOUND), visits(2).dp):
        with pytest.raises(dpf.DpframeError, match=r"into more than the whole\. Nothing was charged"):
            groups.agg(columns, epsilon=1, weights={"a": 3}, ledger=payer)
    assert payer.spent.epsilon == 0


def test_the_number_of_rows_that_decides_is_the_answer_of_count():
    """It is measured in any case, and with less noise than the count that a mean next to it measures."""
    asked = {"n": dpf.count(), "m": dpf.mean("x", bounds=(0, 2), missing="midpoint"), "epsilon": 1, "checks": False}
    plan = visits(2).dp.preview.group_by("k", keys=FOUND).agg(**asked, ledger=rows_ledger())
    (first, second) = plan.parts
    assert plan.query.statistics[0][1].totals() == (first.total,)
    assert (first.share, second.share) == (0.5, 0.5)
    known = visits(2).dp.preview.group_by("k", keys=[0, 1]).agg(**asked, ledger=rows_ledger())
    assert len(known.parts) == 1  # with declared keys, one measurement serves both


@pytest.mark.parametrize(
    ("asked", "apart"),
    [
        ({"n": dpf.n_units()}, True),
        ({"s": dpf.sum("x", bounds=(0, 5))}, False),
        ({"n": dpf.n_units(), "s": dpf.sum("x", bounds=(0, 5))}, False),
    ],
    ids=["units", "a sum", "both"],
)
def test_deltas_are_those_of_different_units_only_where_nothing_else_is_measured(asked, apart):
    """A sum is measured in addition to the numbers of units: a person with a key of their own changes both."""
    groups = visits(2).dp.preview.group_by("k", keys=dpf.discover(delta=5e-7, max_keys=1))
    plan = groups.agg(**asked, epsilon=1, delta=1e-6, max_rows=1, max_groups=1, unit="u", checks=False)
    assert plan.parts[0].mechanism.apart == apart
    assert plan.cost.delta == (1e-6 if apart else 1.5e-6)


def test_no_word_tells_how_many_groups_there_are_where_none_is_shown(caplog):
    """The number of groups that are not shown is private, at every level of the log."""
    caplog.set_level("DEBUG")
    said = []
    for groups in (2, 5):
        caplog.clear()
        lonely = visits(groups).filter(pl.col("k") >= 1_000)
        found = lonely.dp.group_by("k", keys=FOUND).n_units(
            max_groups=1, epsilon=1, ledger=dpf.Ledger(epsilon=1, delta=1e-6, keys_delta=2e-7, unit="u")
        )
        assert found.height == 0
        said.append([record.getMessage() for record in caplog.records])
    assert said[0] == said[1]


def test_210_checks_take_a_part_of_the_whole_too(monkeypatch):
    """If answers divided the whole cost after checks took a part of it, the noise would be for more than is charged."""
    whole = price.shares_of
    monkeypatch.setattr(price, "shares_of", lambda query, weights, _=None: whole(query, weights))
    payer = dpf.Ledger(epsilon=1, checks=True)
    with pytest.raises(dpf.DpframeError, match=r"into more than the whole\. Nothing was charged"):
        visits(2).dp.agg({"a": dpf.count(), "b": dpf.sum("x", bounds=(0, 1))}, epsilon=1, ledger=payer)
    assert payer.spent.epsilon == 0


def test_errors_are_those_of_the_noise_and_can_be_asked_for():
    groups = visits(3).dp
    plan = groups.preview.group_by("k", keys=FOUND).n_units(max_groups=2, within=20, ledger=ledger())
    assert plan.error["n_units"] <= 20
    result = groups.group_by("k", keys=FOUND).n_units(max_groups=2, within=20, ledger=ledger())
    assert (result["n_units_error"] <= 20).all()
    with pytest.raises(InvalidArgument, match="within"):
        groups.group_by("k", keys=FOUND).n_units(max_groups=2, within=-1, ledger=ledger())


def test_a_table_of_prices_says_what_is_shown_at_each():
    groups = visits(3).dp.preview.group_by("k", keys=FOUND)
    words = repr(groups.n_units(max_groups=1, epsilon=[0.1, 1], ledger=ledger()))
    assert "at epsilon 0.1 a group of 113 units (u) is shown half the time" in words
    assert "at epsilon 1 a group of 17 units (u) is shown half the time" in words
    assert words.count("rows without a value of k are in no group") == 1


def test_more_groups_than_keys_of_a_unit_are_counted_whole():
    plan = (
        visits(3)
        .dp.preview.group_by("k", keys=dpf.discover(delta=1e-7, max_keys=5))
        .n_units(max_groups=9, epsilon=1, ledger=ledger())
    )
    part = plan.parts[0]
    assert (part.mechanism.grid, part.sensitivity.groups) == (1.0, 5)
    fine = visits(3).dp.preview.group_by("k", keys=FOUND).n_units(max_groups=9, epsilon=1, ledger=ledger())
    assert (fine.parts[0].mechanism.grid, fine.parts[0].sensitivity.groups) == (2.0**-20, 9)


def test_other_statistics_are_of_max_groups_however_many_are_found():
    plan = (
        visits(3)
        .dp.preview.group_by("k", keys=FOUND)
        .agg(s=dpf.sum("x", bounds=(0, 1)), n=dpf.n_units("x"), max_rows=3, max_groups=50, epsilon=1, ledger=ledger())
    )
    sum_of, people = plan.parts[1:]
    assert sum_of.sensitivity.norm(2) == pytest.approx(3 * math.sqrt(50), rel=1e-6)
    assert people.sensitivity.norm(2) == pytest.approx(math.sqrt(50), rel=1e-6)
    frame = visits(3)
    result = frame.dp.group_by("k", keys=FOUND).agg(
        s=dpf.sum("x", bounds=(0, 1)), n=dpf.n_units("x"), max_rows=3, max_groups=50, epsilon=900, ledger=ledger()
    )
    assert result["n"].to_numpy() == pytest.approx(400, abs=5)
    assert result["s"].to_numpy() == pytest.approx(800, abs=20)


REFUSED = {
    "a dict with it": (lambda dp: dp.group_by("k", "u", keys={"k": FOUND, "u": [1]}), "stand alone"),
    "bins": (lambda dp: dp.group_by("k", keys=FOUND).histogram("x", bins=[0, 1], epsilon=1), "stand alone"),
    "rollup": (lambda dp: dp.group_by("k", keys=FOUND).count(rollup=True, epsilon=1), "rollup"),
    "order": (lambda dp: dp.group_by("k", keys=FOUND).count(order=True, max_rows=1, epsilon=1), "order"),
    "a graph": (lambda dp: dp.group_by("k", keys=FOUND).count(graph=[(1, 2)], max_rows=1, epsilon=1), "graph"),
    "another noise": (
        lambda dp: dp.group_by("k", keys=FOUND).count(mechanism="auto", max_rows=1, epsilon=1),
        "mechanism",
    ),
    "contributions": (lambda dp: dp.contributions(by="k", keys=FOUND, epsilon=1), "contributions"),
    "no bounds": (lambda dp: dp.group_by("k", keys=FOUND).n_units(epsilon=1), "max_groups|max_rows"),
    "a known key of another kind": (
        lambda dp: dp.group_by("k", keys=dpf.discover(delta=1e-7, known=["A"])).n_units(max_groups=1, epsilon=1),
        "known",
    ),
    "known keys that are two values": (
        lambda dp: dp.group_by("k", keys=dpf.discover(delta=1e-7, known=[(1, 2)])).n_units(max_groups=1, epsilon=1),
        "known",
    ),
    "known keys that are missing": (
        lambda dp: dp.group_by("k", keys=dpf.discover(delta=1e-7, known=[None])).n_units(max_groups=1, epsilon=1),
        "nulls",
    ),
    "known keys twice": (
        lambda dp: dp.group_by("k", keys=dpf.discover(delta=1e-7, known=[1, 1.0])).n_units(max_groups=1, epsilon=1),
        "distinct",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_groups_beforehand_is_refused_before_the_charge(name):
    ask, words = REFUSED[name]
    book = ledger()
    with book, pytest.raises((InvalidArgument, MissingArgument), match=words):
        ask(visits(2).dp)
    assert book.to_frame().height == 0


def test_nested_columns_are_refused_by_their_dtype():
    frame = pl.DataFrame({"u": [1], "k": [[1]]})
    with pytest.raises(WrongDtype, match="told apart"):
        frame.dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=1, ledger=ledger())


def test_arguments_of_discover_are_checked():
    for wrong in ({}, {"delta": 0}, {"delta": 1}, {"delta": -0.1}, {"delta": 1e-7, "max_keys": 0}):
        with pytest.raises((InvalidArgument, MissingArgument)):
            dpf.discover(**wrong)
    for wrong in ({"max_keys": 2.5}, {"at_least": True}, {"nulls": 1}, {"known": "abc"}, {"known": np.array([1])}):
        with pytest.raises(InvalidType):
            dpf.discover(delta=1e-7, **wrong)
    with pytest.raises(InvalidArgument):
        dpf.discover(delta=1e-7, at_least=0)


def test_plans_are_not_released_together():
    plan = visits(2).dp.preview.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=1, ledger=ledger())
    with pytest.raises(InvalidArgument, match="declared keys"):
        dpf.release_together({"n": plan}, epsilon=1, ledger=ledger())


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_a_ledger_without_a_reserve_refuses_and_says_how(accounting):
    book = dpf.Ledger(epsilon=1, delta=1e-6, unit="u", accounting=accounting)
    with pytest.raises(MissingArgument, match="keys_delta=1e-7"):
        visits(2).dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=0.1, ledger=book)


def test_a_reserve_that_is_used_up_refuses():
    book = dpf.Ledger(epsilon=9, delta=1e-6, keys_delta=2e-7, unit="u")
    groups = visits(2).dp.group_by("k", keys=FOUND)
    for _ in range(2):
        groups.n_units(max_groups=1, epsilon=0.1, ledger=book)
    with pytest.raises(BudgetExceeded, match="keys_delta"):
        groups.n_units(max_groups=1, epsilon=0.1, ledger=book)
    visits(2).dp.count(max_rows=1, epsilon=0.1, ledger=book)
    assert "have taken 2e-07 of their keys_delta 2e-07" in repr(book)


def test_the_record_is_whole(tmp_path):
    frame = visits(3)
    result = frame.dp.group_by("k", keys=dpf.discover(delta=1e-7, at_least=2, known=[0])).agg(
        n=dpf.n_units(), c=dpf.count(), max_rows=2, max_groups=1, epsilon=50, ledger=ledger(), label="keys"
    )
    facts = result.dp.provenance
    pytest.importorskip("jsonschema").validate(facts, SCHEMA)
    told = {"delta": 1e-7, "max_keys": 1000, "at_least": 2, "known": 1, "nulls": False}
    assert facts["cells"] == [{"columns": ["k"], "size": 3, "discovered": told}]
    assert facts["statistics"][0]["keys_delta"] == 1e-7
    assert "shown half the time" in facts["notes"][0]
    assert facts["measures"]["n"]["denoise"] is None
    result.dp.write_parquet(tmp_path / "keys.parquet")
    again = dpf.read_parquet(tmp_path / "keys.parquet")
    assert again.equals(result)
    assert not again.dp.provenance["altered"]
    assert result.dp.to_numpy("n").shape == (3,)
    assert result.dp.errors().height == 2


def test_charts_and_tables_are_drawn():
    pytest.importorskip("altair")
    result = visits(3).dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=50, ledger=ledger())
    assert seen(result.dp.plot())
    pytest.importorskip("great_tables")
    assert "n_units" in result.dp.table().as_raw_html()


@pytest.mark.parametrize("library", LIBRARIES)
def test_answers_are_replayed_with_their_keys(tmp_path, library):
    frame = visits(5).with_columns(w=pl.col("k").cast(pl.String), d=pl.date(2024, 1, 1), f=pl.col("k") * 0.1)
    book = dpf.Ledger(epsilon=100, delta=1e-3, keys_delta=1e-4, unit="u", path=tmp_path / "book.ledger")

    def ask(found=FOUND):
        return given(frame, library).dp.group_by("w", "d", "f", keys=found).agg(
            n=dpf.n_units(), s=dpf.sum("x", bounds=(0, 1)), max_rows=2, max_groups=1, epsilon=30,
            ledger=book, label="keys", snapshot="week 1",
        )  # fmt: skip

    first, second = ask(), ask()
    assert plain(first).equals(plain(second))
    assert list(map(str, first.dtypes)) == list(map(str, second.dtypes))
    assert len(first) == 5
    assert book.to_frame().height == 1
    assert book.verify(first)["releases"][0]["numbers"] == "as stored"
    with pytest.raises(LedgerError, match="keys"):
        ask(dpf.discover(delta=1e-8))


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Boolean, pl.String, pl.Decimal(10, 2), pl.Date, "pandas"])
def test_answers_are_not_replayed_for_columns_of_another_dtype(tmp_path, dtype):
    book = dpf.Ledger(epsilon=100, delta=1e-3, keys_delta=1e-4, unit="u", path=tmp_path / "book.ledger")
    frame = visits(3).with_columns(pl.col("k").cast(pl.Int32))

    def ask(one):
        return one.dp.group_by("k", keys=FOUND).n_units(
            max_groups=1, epsilon=20, ledger=book, label="a", snapshot="b"
        )  # fmt: skip

    first = ask(frame)
    other = given(frame, "pandas") if dtype == "pandas" else frame.with_columns(pl.col("k").cast(dtype))
    with pytest.raises(LedgerError, match="must have the dtype that it had"):
        ask(other)
    assert ask(frame.lazy()).equals(first)
    assert book.to_frame().height == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_result_without_rows_has_no_interval_and_no_groups_to_compare(library, tmp_path):
    few = given(visits(2).head(3), library)
    none = few.dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=1, ledger=ledger())
    assert len(none) == 0
    (interval,) = none.dp.errors()["interval"]
    assert interval is None or interval != interval
    none.dp.write_html(tmp_path / "none.html", charts=False)
    for ask in (lambda: dpf.compare(none, "A", "B"), lambda: dpf.compare(none, none, samples="different")):
        with pytest.raises(dpf.InvalidArgument, match=r"compare must be asked of a result with rows, and no group is"):
            ask()


def test_an_empty_answer_is_replayed(tmp_path):
    book = dpf.Ledger(epsilon=100, delta=1e-3, keys_delta=1e-4, unit="u", path=tmp_path / "book.ledger")
    frame = visits(3).head(3)
    results = [
        frame.dp.group_by("k", keys=FOUND).n_units(max_groups=1, epsilon=1, ledger=book, label="a", snapshot="b")
        for _ in range(2)
    ]
    assert results[0].height == 0
    assert results[0].equals(results[1])
    book.verify(*results)


class Halves:
    """A third-party engine that shows its rows in two frames: by row number, or by unit, even and odd."""

    def __init__(self, frame):
        self.frame = frame

    def schema(self):
        return self.frame.schema

    def fold(self, columns, piece, by):
        odd = pl.col(by) % 2 == 1 if by else pl.int_range(pl.len()) % 2 == 1
        return sum(piece(self.frame.filter(half)) for half in (odd, ~odd))

    def push(self, task):
        raise AssertionError("a task of keys is none that an engine from outside knows")


def test_engines_from_outside_find_keys_by_their_pieces():
    result = (
        dpf.of(Halves(visits(4)))
        .group_by("k", keys=FOUND)
        .agg(n=dpf.n_units(), max_groups=2, epsilon=50, ledger=ledger())
    )
    assert result["k"].to_list() == [0, 1, 2, 3]
    assert result["n"].to_numpy() == pytest.approx(400, abs=10)


DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not beside this clone")
def test_as_many_products_are_found_as_was_simulated():
    orders = pl.read_parquet(DATA / "online_retail" / "online_retail.parquet")
    found = [
        orders.dp.group_by("description", keys=dpf.discover(delta=5e-6)).n_units(
            max_groups=groups, epsilon=1, ledger=ledger(epsilon=1, delta=1e-5, keys_delta=5e-6, unit="customer_id")
        )
        for groups in (1, 5, 20)
    ]
    assert [result.height for result in found] == pytest.approx([340, 339, 322], abs=40)


def test_nothing_is_found_on_a_hundred_patients():
    pytest.importorskip("pandas")
    codes = pl.from_pandas(stand_ins.table("mimic_iii_demo/diagnoses_icd.csv")[["subject_id", "icd9_code"]])
    result = codes.dp.group_by("icd9_code", keys=FOUND).agg(
        n=dpf.n_units(),
        max_groups=5,
        epsilon=1,
        ledger=ledger(epsilon=1, delta=1e-6, keys_delta=1e-7, unit="subject_id"),
    )
    assert result.height == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_most_common_of_found_keys_stand_in_order(library, tmp_path):
    sizes = {"b": 900, "c": 500, "a": 1_400, "rare": 1}
    frame = pl.DataFrame({"k": [key for key, size in sizes.items() for _ in range(size)]}).with_row_index("u")
    kept = ledger(epsilon=100, path=tmp_path / "x.ledger", dataset="x")
    for k, keys in ((2, ["a", "b"]), (9, ["a", "b", "c"])):
        price = {"epsilon": 5, "max_groups": 1, "label": f"top {k}", "snapshot": "1"}
        result = given(frame, library).dp.top_k("k", k=k, categories=FOUND, ledger=kept, **price)
        assert plain(result)["k"].to_list() == keys
        assert plain(result)["count"].to_list() == pytest.approx([sizes[key] for key in keys], abs=20)
        record = result.dp.provenance
        jsonschema = pytest.importorskip("jsonschema")
        jsonschema.validate(record, SCHEMA)
        assert record["cells"][0]["discovered"]["largest"] == k
        again = given(frame, library).dp.top_k("k", k=k, categories=FOUND, ledger=kept, **price)
        assert plain(again).equals(plain(result))
    assert kept.to_frame().height == 2


def test_a_top_k_of_found_keys_says_how_many_are_shown():
    plan = visits(3).dp.preview.top_k("k", k=2, categories=FOUND, epsilon=1, max_groups=1, ledger=ledger())
    assert "at most 2 of them are shown, those of the largest noisy numbers" in plan.notes


def test_keys_that_are_no_text_have_no_name():
    """Arrow strings may hold any bytes, and Polars accepts them unchecked; writing them would panic."""
    pyarrow = pytest.importorskip("pyarrow")
    words = [b"A"] * 100 + [b"\xff\xfe"] * 100 + [b"a long key of its own"] * 100 + [b"\xf0\x9f" * 9] * 100
    ends = np.cumsum([0, *map(len, words)]).astype(np.int32)
    buffers = [None, pyarrow.py_buffer(ends.tobytes()), pyarrow.py_buffer(b"".join(words))]
    column = pyarrow.Array.from_buffers(pyarrow.string(), len(words), buffers)
    ledger = dpf.Ledger(epsilon=50, delta=1e-3, keys_delta=1e-3 / 2)
    keys = dpf.discover(delta=1e-4, nulls=True)
    found = dpf.of(pyarrow.table({"k": column})).group_by("k", keys=keys).count(epsilon=20, ledger=ledger)
    assert found["k"].to_list() == ["A", "a long key of its own"]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_nothing_found_is_shown_as_nothing(library, tmp_path):
    frame = given(pl.DataFrame({"k": ["a", "b"], "x": [1.0, 2.0]}), library)
    wanted = {"n": dpf.count(), "m": dpf.mean("x", bounds=(0, 2))}
    found = frame.dp.group_by("k", keys=FOUND).agg(
        wanted, epsilon=1, ledger=dpf.Ledger(epsilon=1, delta=1e-3, keys_delta=1e-3 / 2)
    )
    assert found.shape[0] == 0
    assert "No group is shown" in found.dp.statement()
    assert "may be larger" not in found.dp.statement()
    assert found.dp.table(format="markdown").count("\n")
    pytest.importorskip("altair")
    assert "No group is shown" in str(seen(found.dp.plot()))
    found.dp.write_html(tmp_path / "found.html")
    assert "No group is shown" in (tmp_path / "found.html").read_text(encoding="utf-8")


FAR = {  # dtypes, and the first and last integers that store a time which Python can hold
    "dates": (pl.Date(), -719_162, 2_932_896),
    "times": (pl.Datetime("us"), -62_135_596_800_000_000, 253_402_300_799_999_999),
    "milliseconds": (pl.Datetime("ms"), -62_135_596_800_000, 253_402_300_799_999),
    "in UTC": (pl.Datetime("ms", "UTC"), -62_135_596_800_000, 253_402_300_799_999),
    "in Berlin": (pl.Datetime("ms", "Europe/Berlin"), -62_135_596_800_000, 253_402_300_799_999 - 3_600_000),
    "in New York": (pl.Datetime("ms", "America/New_York"), -62_135_596_800_000 + 17_762_000, 253_402_300_799_999),
    "spans": (pl.Duration("ms"), -999_999_999 * 86_400_000, 1_000_000_000 * 86_400_000 - 1),
    "times of day": (pl.Time(), 0, 86_400_000_000_000 - 1_000),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("dtype", "first", "last"), FAR.values(), ids=FAR)
def test_a_time_that_python_cannot_hold_is_in_no_group(dtype, first, last, library, tmp_path):
    """It has no label: tables and charts failed on it after the charge."""
    if library == "pandas" and getattr(dtype, "time_zone", None) not in (None, "UTC"):
        pandas = pytest.importorskip("pandas")
        if int(pandas.__version__.partition(".")[0]) < 3:
            pytest.skip("this version of pandas ends the process on early times of a time zone")
    of_python = [first, 0, last]
    stored = of_python if dtype == pl.Time else [first - 1, *of_python, last + 1]
    keys = pl.Series("k", stored, dtype=pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
    frame = pl.concat([keys.to_frame()] * 400).with_row_index("u")
    found = dpf.of(given(frame, library)).group_by("k", keys=FOUND).n_units(epsilon=10, max_groups=1, ledger=ledger())
    assert len(found) == len(set(of_python))
    if library != "pandas":
        assert found["k"].to_physical().to_list() == sorted({*of_python})
    assert found.dp.table(format="markdown").count("\n")
    pytest.importorskip("altair")
    found.dp.write_html(tmp_path / "found.html")


def test_a_known_time_that_python_cannot_hold_in_the_zone_of_its_column_is_refused():
    frame = pl.DataFrame({"k": [datetime(2020, 1, 1, tzinfo=UTC)], "u": [1]})
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    for zone, fits in {"UTC": True, "America/New_York": True, "Europe/Berlin": False}.items():
        asked = frame.with_columns(pl.col("k").dt.convert_time_zone(zone)).dp.preview
        grouped = asked.group_by("k", keys=dpf.discover(delta=1e-7, known=[last]))
        if fits:
            grouped.n_units(epsilon=1, max_groups=1, ledger=ledger())
            continue
        with pytest.raises(InvalidArgument, match="known of column 'k' must convert exactly to its dtype"):
            grouped.n_units(epsilon=1, max_groups=1, ledger=ledger())
