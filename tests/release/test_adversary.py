"""Adversarial frames: no value, dtype or name may make a release fail, warn or change its form."""

from __future__ import annotations

import asyncio
import warnings
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dpf

EXACT = 1e9  # an epsilon whose noise is negligible
NEAR = 1e-3

OF_NOISE = ("sha256", "rows", "measures", "release", "checks")


def paid(unit: dpf.PrivacyUnit | None = None) -> dict[str, Any]:
    """Return call options with negligible noise: a huge epsilon, and a ledger that can be charged for it."""
    return {"epsilon": EXACT, "denoise": None, "ledger": dpf.Ledger(epsilon=1e15, unit=unit)}


def count(frame: Any, column: str | None = None, unit: dpf.PrivacyUnit | None = None) -> float:
    return frame.dp.count(column, **paid(unit))["count"].to_list()[0]


def total(frame: Any, column: str, bounds: tuple[float, float] = (0, 100)) -> float:
    return frame.dp.sum(column, bounds=bounds, **paid())[f"{column}_sum"].to_list()[0]


class TestOddValues:
    """One odd value among the numbers of an object column."""

    ODD: tuple[Any, ...] = (
        *(1 + 2j, np.complex128(1 + 2j), np.longdouble("1e4000"), np.array([1.0]), np.array(3.0), [1], {}, b"x"),
        *(Decimal("sNaN"), Decimal("1e400"), Fraction(10**400), 10**400, -(10**400), 2**63 - 1, 5e-324, -0.0),
        *(float("nan"), float("inf"), np.datetime64("NaT", "us"), np.timedelta64("NaT", "us"), date.min, datetime.max),
        *(timedelta.max, timedelta.min, "\ud800", "inf", range(3), object, pl.Series([1.0]), None),
    )
    QUESTIONS = (
        lambda dp, price: dp.count("x", **price),
        lambda dp, price: dp.sum("x", bounds=(0, 100), **price),
        lambda dp, price: dp.mean("x", bounds=(0, 100), **price),
        lambda dp, price: dp.histogram("x", bins=[0, 2, 4], outside="clip", **price),
        lambda dp, price: dp.histogram("x", bins=[date(2000, 1, 1), date(2001, 1, 1)], outside="clip", **price),
        lambda dp, price: dp.histogram("x", bins=[timedelta(0), timedelta(1)], outside="clip", **price),
        lambda dp, price: dp.group_by("x", keys=[1, 2, None]).count(**price),
        lambda dp, price: dp.group_by("x", keys=[date(2000, 1, 1)]).count(**price),
        lambda dp, price: dp.count(
            **price | {"ledger": dpf.Ledger(epsilon=1e15, unit=dpf.PrivacyUnit("x", max_rows=1))}
        ),
    )

    @staticmethod
    def frames(odd: Any) -> list[Any]:
        """Return two neighboring frames: three numbers, without and with the odd value."""
        pd = pytest.importorskip("pandas")
        values = np.empty(4, dtype=object)
        for place, value in enumerate([1, 2, 3, odd]):
            values[place] = value
        return [pd.DataFrame({"x": pd.Series(values[:3], dtype=object)}), pd.DataFrame({"x": pd.Series(values)})]

    @pytest.mark.slow
    @pytest.mark.parametrize("place", range(len(ODD)))
    def test_the_form_of_a_release_is_the_same(self, place, capfd):
        without, with_odd = self.frames(self.ODD[place])
        pd = pytest.importorskip("pandas")
        extra = self.frames(pd.NaT)[1], self.frames(pd.NA)[1]
        for question in self.QUESTIONS:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)  # public: it depends only on the epsilon
                forms = [
                    [(str(name), str(dtype)) for name, dtype in question(frame.dp, paid()).dtypes.items()]
                    for frame in (without, with_odd, *extra)
                ]
            assert all(form == forms[0] for form in forms)
        assert capfd.readouterr() == ("", "")

    @pytest.mark.slow
    @pytest.mark.parametrize("place", range(len(ODD)))
    def test_nothing_is_warned_of(self, place, recwarn):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)  # public: it depends only on the epsilon
        warnings.simplefilter("ignore", dpf.BoundsWarning)  # public: it depends only on noisy numbers
        for frame in self.frames(self.ODD[place]):
            for question in self.QUESTIONS:
                question(frame.dp, paid())
        assert not recwarn.list

    def test_long_doubles_beyond_the_largest_float_are_infinite(self):
        pd = pytest.importorskip("pandas")
        if np.finfo(np.longdouble).maxexp <= 1024:
            pytest.skip("long doubles are no longer than doubles here")
        huge = np.longdouble("1e4000")
        frame = pd.DataFrame({"x": np.array([1, huge, -huge], dtype=np.longdouble)})
        assert total(frame, "x") == pytest.approx(101, abs=NEAR)
        with pytest.raises(dpf.WrongDtype, match="must have a dtype whose values stay apart"):
            count(frame, unit=dpf.PrivacyUnit("x", max_rows=1))


class TestMissing:
    """NaN and null both count as missing, also in the dtypes of pandas that distinguish them."""

    def test_nan_of_arrow_columns_is_not_present(self):
        pd = pytest.importorskip("pandas")
        pa = pytest.importorskip("pyarrow")
        chunks = pa.chunked_array([pa.array([1.0, float("nan")]), pa.array([None, 3.0])])
        frame = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(chunks)})
        assert count(frame, "x") == pytest.approx(2, abs=NEAR)
        assert total(frame, "x") == pytest.approx(4, abs=NEAR)

    def test_nan_of_masked_columns_is_not_present(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(
            {"x": pd.arrays.FloatingArray(np.array([1.0, np.nan, 0.0, 3.0]), np.array([0, 0, 1, 0]) > 0)}
        )
        assert count(frame, "x") == pytest.approx(2, abs=NEAR)

    def test_what_is_missing_in_runs_or_unions_is_not_present(self):
        """Run-end-encoded and union arrays have no validity bitmap, and pandas looks at nothing else."""
        pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
        values = pa.array([1, None, 3])
        runs = pa.RunEndEncodedArray.from_arrays([1, 2, 3], values)
        union = pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [values])
        for array in (runs, union, values):
            if array is union and not array.is_null()[1].as_py():
                continue  # this version of pyarrow does not look into unions either
            frame = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(array)})
            assert count(frame, "x") == pytest.approx(2, abs=NEAR), array.type

    def test_a_missing_value_decides_nothing_of_a_sparse_column(self):
        """A missing value turns a sparse column of integers into one of floats."""
        pd = pytest.importorskip("pandas")
        for values, present in (([1, 0, 0], 3), ([1.0, 0.0, None], 2)):
            frame = pd.DataFrame({"x": pd.arrays.SparseArray(values)})
            assert count(frame, "x") == pytest.approx(present, abs=NEAR), frame["x"].dtype

    @pytest.mark.parametrize(("nulls", "units"), [("drop", 2), ("one-unit", 3)])
    @pytest.mark.parametrize("dtype", ["category", "object", "string", "Int64", "float64"])
    def test_missing_units_follow_the_rule_in_every_dtype(self, dtype, nulls, units):
        pd = pytest.importorskip("pandas")
        ids = ["a", "b", None, None] if dtype in ("category", "object", "string") else [1, 2, None, None]
        frame = pd.DataFrame({"u": pd.Series(ids, dtype=dtype)})
        assert count(frame, unit=dpf.PrivacyUnit("u", nulls=nulls, max_rows=1)) == pytest.approx(units, abs=NEAR)

    def test_days_and_midnights_are_the_same_key_in_objects_too(self):
        pd = pytest.importorskip("pandas")
        days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", None]))
        for odd in (None, "x"):
            values = days if odd is None else pd.Series([*days, odd], dtype=object)
            found = pd.DataFrame({"d": values}).dp.group_by("d", keys=[date(2020, 1, 1), None]).count(**paid())
            assert found["count"].to_list() == pytest.approx([1, 1], abs=NEAR)


class TestArrowTypes:
    """Columns of Arrow types that Polars cannot read: they can be counted, and other columns stay usable."""

    def test_exotic_arrow_columns_are_counted_and_else_refused(self, capfd):
        pd = pytest.importorskip("pandas")
        pa = pytest.importorskip("pyarrow")
        for kind, values in (
            (pa.decimal256(50, 10), [Decimal(1), None]),
            (pa.month_day_nano_interval(), [(1, 2, 3), None]),
            (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None]),
            (pa.struct([("a", pa.decimal256(50, 1))]), [{"a": Decimal(1)}, None]),
        ):
            frame = pd.DataFrame(
                {"x": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type=kind))), "y": [1, 2]}
            )
            assert total(frame, "y") == pytest.approx(3, abs=NEAR)
            assert count(frame, "x") == pytest.approx(1, abs=NEAR)
            with pytest.raises(dpf.WrongDtype):
                total(frame, "x")
        assert capfd.readouterr().err == ""  # a panic of the engine would be printed here

    @pytest.mark.parametrize("largest", [3, 2**100])
    def test_units_of_128_bits(self, largest):
        frame = pl.DataFrame({"u": pl.Series([1, 2, largest, None], dtype=pl.Int128)})
        assert count(frame, unit=dpf.PrivacyUnit("u", max_rows=1)) == pytest.approx(3, abs=NEAR)


NAMES = [
    "",
    "*",
    "^a.*$",
    "^.*$",
    "a.b",
    "counts",
    "key0",
    "unit",
    "cell",
    "w",
    "rows",
    "sum0",
    "sum0 n",
    "0",
    "\U0001f600",
]
NAMES += ["value0", "present0", "dp", "dpframe", "index", "literal", "len", "x\ny", "{a}", 'a"b', "columns", "`a`", "v"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_columns_of_any_name(engine, name):
    columns = {name: [1, 2, 3, None], "a1": [1.0, 2.0, 3.0, 4.0], "ward": ["A", "B", "A", "A"], "person": [1, 1, 2, 3]}
    frame = engine(columns)
    assert total(frame, name) == pytest.approx(6, abs=NEAR)
    assert count(frame, name) == pytest.approx(3, abs=NEAR)
    binned = frame.dp.histogram(name, bins=[0, 2, 4], **paid())
    assert binned["count"].to_list() == pytest.approx([1, 2], abs=NEAR)
    assert list(binned.columns)[:2] == [f"{name}_left", f"{name}_right"]
    asked = {"q": dpf.sum("a1", bounds=(0, 10)), "m": dpf.mean(name, bounds=(0, 10))}
    grouped = frame.dp.group_by(name, keys=[1, 2, None]).agg(asked, **paid())
    assert grouped["q"].to_list() == pytest.approx([1, 2, 4], abs=NEAR)
    assert next(iter(grouped.columns)) == name
    combinations = engine({"ward": ["A", "B"], name: [3, 2]})
    pairs = frame.dp.group_by("ward", name, keys=combinations).count(**paid(dpf.PrivacyUnit("person", max_rows=5)))
    assert pairs["count"].to_list() == pytest.approx([1, 1], abs=NEAR)
    people = frame.dp.group_by("ward", keys=["A", "B"]).agg(asked, **paid(dpf.PrivacyUnit(name, max_rows=5)))
    assert people["q"].to_list() == pytest.approx([4, 2], abs=NEAR)


class TestKeysThatDoNotFit:
    """Keys that the dtype cannot hold: Polars refuses them by schema before the charge, pandas counts 0 rows."""

    REFUSED = (
        (pl.Float32, 10**400),
        (pl.Float64, 10**400),
        (pl.Int64, Decimal("1e400")),
        (pl.Decimal(30, 3), Decimal("12345678901234567890123456789.5")),
        (pl.Decimal(30, 3), 1e300),
        (pl.Datetime("ns"), date(9999, 1, 1)),
        (pl.Duration("us"), timedelta.max),
    )

    @pytest.mark.parametrize(("dtype", "key"), REFUSED)
    def test_on_polars(self, dtype, key):
        ledger = dpf.Ledger(epsilon=1)
        frame = pl.DataFrame({"x": pl.Series([1, 2]).cast(dtype)})
        with pytest.raises(dpf.InvalidArgument, match="must convert exactly"):
            frame.dp.group_by("x", keys=[key]).count(epsilon=1, ledger=ledger)
        assert ledger.spent.epsilon == 0

    def test_on_pandas(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"d": pd.Series(["2020-01-01"]).astype("datetime64[ns]"), "x": [1]})
        days = frame.dp.group_by("d", keys=[date(9999, 1, 1), date(2020, 1, 1)]).count(**paid())
        assert days["count"].to_list() == pytest.approx([0, 1], abs=NEAR)
        for dtype in ("int64", "float64", "float32", "Int64", "bool", "object"):
            numbers = frame.astype({"x": dtype}).dp.group_by("x", keys=[1, 2.5, 2**64, 10**400, None]).count(**paid())
            assert numbers["count"].to_list() == pytest.approx([1, 0, 0, 0, 0], abs=NEAR)


def variants() -> dict[str, Any]:
    """Return pandas frames whose dtypes may differ by a single row: bool, int, float and object count as one class."""
    pd = pytest.importorskip("pandas")
    frozen = np.arange(3)
    frozen.flags.writeable = False
    columns: dict[str, Any] = {
        "int64": [1, 2, 3],
        "int8": np.array([1, 2, 3], dtype=np.int8),
        "uint64": np.array([1, 2, 2**64 - 1], dtype=np.uint64),
        "big-endian": np.array([1, 2, 3], dtype=">i8"),
        "float16": np.array([1, 2, 3], dtype=np.float16),
        "float64": [1, 2, float("nan")],
        "infinite": [1, float("-inf"), float("inf")],
        "beyond 2**53": [1, 2, 2**53 + 1],
        "beyond 2**63": [1, 2, 2**70],
        "zeros and subnormals": [-0.0, 5e-324, 1],
        "objects": [1, 2, "x"],
        "lists": [1, [2], {}],
        "bool": [True, False, True],
        "bool and None": [True, None, False],
        "None": [None, None, None],
        "Int64": pd.array([1, 2, None], dtype="Int64"),
        "boolean": pd.array([True, None, False], dtype="boolean"),
        "empty": [],
        "empty objects": pd.Series([], dtype=object),
        "read-only": frozen,
        "strided": np.arange(9)[::3],
        "reversed": np.arange(3)[::-1],
    }
    frames = {name: pd.DataFrame({"x": values}).assign(one=1.5, ward="A") for name, values in columns.items()}
    frames["odd index"] = frames["int64"].set_axis([7, 7, -1])
    frames["names as index"] = frames["int64"].set_axis(["b", "a", "a"])
    frames["a view"] = frames["int64"].iloc[::-2]
    frames["a column of rows"] = frames["int64"].loc[:, ["ward", "x", "one"]].T.T
    frames["attrs"] = frames["int64"].copy()
    frames["attrs"].attrs = {"secret": 1}
    return frames


VARIANTS = {
    "count": lambda dp, price: dp.count("x", **price),
    "sum": lambda dp, price: dp.sum("x", bounds=(0, 4), **price),
    "mean": lambda dp, price: dp.mean("x", bounds=(0, 4), **price),
    "histogram": lambda dp, price: dp.histogram("x", bins=[0, 2, 4], **price),
    "clip": lambda dp, price: dp.histogram("x", bins=4, range=(0, 4), outside="clip", **price),
    "grid": lambda dp, price: dp.histogram(["x", "one"], bins=[2, 2], range=[(0, 4), (0, 4)], **price),
    "keys": lambda dp, price: dp.group_by("x", keys=[3, 1, 2.5, None]).sum("one", bounds=(0, 2), **price),
    "product": lambda dp, price: dp.group_by("ward", "x", keys={"ward": ["B", "A"], "x": [1, 0]}).count(**price),
    "agg": lambda dp, price: dp.group_by("ward", keys=["A"]).agg(
        dpf.count("x"), dpf.mean("x", bounds=(-1, 1)), n=dpf.count(), **price
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", [None, "x"])
@pytest.mark.parametrize("question", VARIANTS)
def test_one_row_changes_nothing_but_the_noise(question, unit, caplog, capfd):
    """Columns, dtypes, index, keys, provenance, cost, log and output must be the same on all neighbors."""
    caplog.set_level("DEBUG")
    forms = {}
    for name, frame in variants().items():
        caplog.clear()
        ledger = dpf.Ledger(epsilon=2, unit=dpf.PrivacyUnit(unit, max_rows=2) if unit else None)
        found = VARIANTS[question](frame.dp, {"epsilon": 1, "ledger": ledger})
        facts = {key: value for key, value in found.dp.provenance.items() if key not in OF_NOISE}
        public = [column for column in found.columns if column not in facts["columns"]]
        labels = [[str(label) for label in found[column]] for column in public]
        index = (type(found.index), found.index.dtype, len(found.index))
        dtypes = [str(dtype) for dtype in found.dtypes]
        log = [record.getMessage() for record in caplog.records]
        form = (type(found), list(found.columns), dtypes, labels, index, list(found.attrs), facts, log, ledger.spent)
        forms[name] = repr(form)
    assert len(set(forms.values())) == 1
    assert capfd.readouterr() == ("", "")


class TestReleasedFrames:
    """The record in pandas `attrs` survives changes of the frame: the answer is then right, or a typed refusal."""

    @pytest.fixture
    def released(self) -> Any:
        """A histogram in pandas."""
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"age": [31, 45, 62]})
        return frame.dp.histogram("age", bins=[0, 40, 80, 90], epsilon=1, ledger=dpf.Ledger(epsilon=1))

    def test_lost_rows_and_columns_are_refused(self, released):
        pytest.importorskip("altair")
        with pytest.raises(dpf.InvalidArgument, match="3 rows of the release, not 2"):
            released.head(2).dp.to_numpy("count")
        for changed in (
            released.drop(columns="count_error"),
            released.rename(columns={"count": "n"}),
            released.set_index("age_left"),
        ):
            with pytest.raises(dpf.InvalidArgument, match="columns that were released"):
                changed.dp.plot()
            assert changed.dp.provenance["altered"]
        with pytest.raises(dpf.InvalidArgument, match="3 rows of the release, not 2"):
            released.head(2).dp.plot()

    def test_concatenated_frames_are_altered(self, released):
        pd = pytest.importorskip("pandas")
        assert pd.concat([released, released]).dp.provenance["altered"]
        with pytest.raises(dpf.InvalidArgument, match="not alone"):
            pd.concat([released, released], axis=1).dp.to_numpy("count")

    def test_another_record_in_attrs_is_none_of_ours(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"age": [31, 45, 62]})
        frame.attrs["dpframe"] = {}
        assert count(frame) == pytest.approx(3, abs=NEAR)

    def test_missing_days_are_named_so_in_charts(self):
        pd = pytest.importorskip("pandas")
        pytest.importorskip("altair")
        frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", None])})
        keys = [datetime(2020, 1, 1), None]
        found = frame.dp.group_by("day", keys=keys).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
        assert "missing" in str(found.dp.plot().to_dict())


def test_keys_that_no_frame_can_show_are_refused(engine):
    with pytest.raises(dpf.InvalidArgument, match="UTF-8"):
        engine({"x": ["a"]}).dp.group_by("x", keys=["\ud800", "a"]).count(**paid())


class TestAmbientLedgers:
    """The ledger that is charged, however the `with` blocks are entered and left."""

    @pytest.fixture
    def pair(self) -> tuple[dpf.Ledger, dpf.Ledger]:
        """Two ledgers."""
        return dpf.Ledger(epsilon=10), dpf.Ledger(epsilon=10)

    @staticmethod
    def ask() -> None:
        pl.DataFrame({"x": [1]}).dp.count(epsilon=1)

    def test_nested_and_left_by_an_exception(self, pair):
        outer, inner = pair

        def fails() -> None:
            with inner, outer, inner:
                self.ask()
                raise KeyError

        with outer:
            with pytest.raises(KeyError):
                fails()
            self.ask()
        assert (outer.spent.epsilon, inner.spent.epsilon) == (1, 1)
        with pytest.raises(dpf.NoLedger):
            self.ask()

    def test_left_in_another_order_than_entered(self, pair):
        outer, inner = pair

        def rows():
            with inner:
                yield 1

        with outer:
            held = rows()
            next(held)
        self.ask()  # the generator is still inside its `with`
        held.close()
        assert (outer.spent.epsilon, inner.spent.epsilon) == (0, 1)
        with pytest.raises(dpf.NoLedger):
            self.ask()

    def test_tasks_do_not_disturb_each_other(self, pair):
        async def spend(ledger: dpf.Ledger, times: int) -> None:
            with ledger:
                for _ in range(times):
                    await asyncio.sleep(0)
                    self.ask()

        async def together() -> None:
            with pair[0]:
                await asyncio.gather(spend(pair[1], 3), spend(pair[0], 2), asyncio.to_thread(self.ask))

        asyncio.run(together())
        assert (pair[0].spent.epsilon, pair[1].spent.epsilon) == (3, 3)


def test_an_unnamed_column_keeps_its_name(tmp_path):
    """Polars renames a column of Arrow, and a Series, whose name is empty."""
    pytest.importorskip("pyarrow")
    table = pl.DataFrame({"": [1, 2, 2], "g": ["A", "B", "B"]}).to_arrow()
    assert dpf.of(table).count(**paid())["count"].to_list() == pytest.approx([3], abs=NEAR)
    found = dpf.of(table).group_by("", keys=[1, 2]).count(**paid())
    assert found["count"].to_list() == pytest.approx([1, 2], abs=NEAR)
    found.dp.write_parquet(tmp_path / "counts.parquet")
    for result in (found, dpf.read_parquet(tmp_path / "counts.parquet")):
        assert result.columns == ["", "count", "count_error"]
        assert not result.dp.provenance["altered"]


def test_an_arrow_table_of_no_columns():
    pa = pytest.importorskip("pyarrow")
    found = dpf.of(pa.table({})).count(epsilon=EXACT, ledger=dpf.Ledger(epsilon=EXACT))
    assert found["count"].to_list() == pytest.approx([0], abs=NEAR)


@pytest.mark.parametrize("dtype", ["float64", "float32", "object", "Float64", "double[pyarrow]"])
def test_both_zeros_name_one_unit(engine, dtype):
    zeros = {"u": [0.0, -0.0, 1.0]}
    frame = engine(zeros).astype(dtype) if engine.is_pandas else engine(zeros)
    assert count(frame, unit=dpf.PrivacyUnit("u", max_rows=1)) == pytest.approx(2, abs=NEAR)
    keyed = frame.dp.group_by("u", keys=[-0.0, 1]).count(**paid())
    assert keyed["count"].to_list() == pytest.approx([2, 1], abs=NEAR)


@pytest.mark.parametrize(("family", "ends"), [("M", datetime), ("m", timedelta)])
def test_seconds_beyond_the_milliseconds_clip(family, ends):
    pd = pytest.importorskip("pandas")
    seconds = np.array([0, 2**62, -(2**62), 10, np.iinfo(np.int64).min]).view(f"{family}8[s]")
    bins = [datetime(1970, 1, 1), datetime(1970, 1, 2)] if ends is datetime else [timedelta(0), timedelta(1)]
    frame = pd.DataFrame({"t": seconds})
    assert frame["t"].dtype == seconds.dtype
    found = [frame.dp.histogram("t", bins=bins, outside=outside, **paid()) for outside in ("drop", "clip")]
    assert [count["count"].to_list()[0] for count in found] == pytest.approx([2, 4], abs=NEAR)


@pytest.mark.parametrize("kept", [False, True])
def test_ids_of_a_frame_that_a_function_changes_after_its_check_are_not_merged(kept):
    """A denoiser, called after the check of the schema, swaps in long doubles, which would merge if read as doubles."""
    pd = pytest.importorskip("pandas")
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("long doubles are no longer than doubles here")
    frame = pd.DataFrame({"u": [1, 2, 3, 4], "g": ["A"] * 4})
    changes = []

    def replacing(values, noise):
        if changes:
            frame["u"] = np.longdouble(2**60) + np.arange(4)
        return values

    unit = dpf.PrivacyUnit("u", max_rows=1)
    price = paid(unit) | {"denoise": replacing}
    if kept:
        frame.dp.group_by("g", keys=["A"]).count(**price)
    changes.append("from now on")
    with pytest.raises(dpf.ReleaseFailed, match="the charge stands"):
        frame.dp.group_by("g", keys=["A"]).count(**price)


@pytest.mark.parametrize("settings", ["raise", "warn", "call"])
def test_what_numpy_is_told_to_say_of_small_numbers_tells_nothing(settings):
    """Scientific code often calls `numpy.seterr`: an underflow would then fail, warn or call, and reveal a value."""
    heard = []
    unit = dpf.PrivacyUnit("u", max_rows=1)
    with np.errstate(all=settings, call=lambda *said: heard.append(said)), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)  # public: it depends only on the epsilon
        for value in (0.5, 5e-324, 1e308, -1e308, float("inf"), float("nan")):
            frame = pl.DataFrame({"x": [value, 1.0, 2.0, 3.0], "u": [1, 2, 3, 3]})
            frame.dp.histogram("x", bins=[0, 1, 2.1, 3], **paid(unit))  # widths that are almost equal
            frame.dp.histogram("x", bins=[0, 1, 2.1, 3], **paid(unit) | {"denoise": "auto"})
            frame.dp.mean("x", bounds=(0, 3), **paid(unit))
            basic = dpf.Ledger(epsilon=100, delta=0.1, accounting="basic")
            frame.dp.mean("x", bounds=(-3, 7.3), epsilon=30, delta=1e-9, ledger=basic)
            frame.dp.variance("x", bounds=(0, 9), epsilon=10, delta=1e-9, ledger=basic)
            cubic = dpf.generalized_gaussian(p=3)
            frame.dp.mean("x", bounds=(0, 3), epsilon=10, delta=1e-9, mechanism=cubic, ledger=basic)
    assert heard == []
