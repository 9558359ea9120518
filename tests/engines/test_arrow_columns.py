"""Columns of Arrow: no value, chunk or file decides how the other values of a column are read."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest

import dpframe as dpf

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset  # noqa: E402  # after the skip
import pyarrow.feather  # noqa: E402

OF_NUMBERS = {
    "floats": ([0.0, 0.0], [-0.0, 0.0, float("nan")], pa.float64(), 1, 4),
    "integers": ([1, 2], [2, 3, None], pa.int64(), 3, 4),
    "bools": ([True, True], [False, None], pa.bool_(), 2, 3),
}


def numbers(frame, unit):
    """Return the number of units, of their rows (at most one of each), and of the values of a column."""
    ledger, rows = dpf.Ledger(epsilon=1e9, unit=unit), dpf.Ledger(epsilon=1e9)
    units = dpf.of(frame).n_units(epsilon=1e6, ledger=ledger)["n_units"][0]
    counted = dpf.of(frame).count(max_rows=1, epsilon=1e6, ledger=ledger)["count"][0]
    values = dpf.of(frame).count(unit, epsilon=1e6, ledger=rows)["count"][0]
    return tuple(map(round, (units, counted, values)))


@pytest.mark.parametrize(("first", "then", "dtype", "units", "values"), OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_244_chunks_of_a_dictionary_of_numbers_are_numbers(first, then, dtype, units, values):
    """Polars makes texts of such a column if it has two chunks: 0.0 and -0.0 were two units, and NaN was one, too."""
    chunks = [pa.array(some, dtype).dictionary_encode() for some in (first, then)]
    whole = pa.array(first + then, dtype).dictionary_encode()
    for column in (pa.chunked_array(chunks), pa.chunked_array([whole])):
        assert numbers(pa.table({"p": column}), "p") == (units, units, values)
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"p": pd.Series(pd.arrays.ArrowExtensionArray(column))})
        assert numbers(frame, "p") == (units, units, values)


def test_244_no_number_of_rows_decides_whether_a_dictionary_is_read(tmp_path):
    """Files of Feather have a chunk for each 65,536 rows; here for each five."""
    pd = pytest.importorskip("pandas")
    for rows in (5, 6):
        column = pa.array([1.0, 2.0] * 3, pa.float64())[:rows].dictionary_encode()
        pyarrow.feather.write_feather(pa.table({"x": column}), tmp_path / "x.feather", chunksize=5)
        frame = pd.read_feather(tmp_path / "x.feather", dtype_backend="pyarrow")
        ledger = dpf.Ledger(epsilon=1e9)
        assert round(frame.dp.sum("x", bounds=(0, 2), epsilon=1e6, ledger=ledger)["x_sum"][0]) == {5: 7, 6: 9}[rows]


def test_244_a_dictionary_of_nulls_holds_nothing():
    """Some versions of pyarrow end the process when they look into one."""
    pd = pytest.importorskip("pandas")
    column = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.nulls(1))
    frame = pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column])))})
    assert round(frame.dp.count("x", epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))["count"][0]) == 0


def of_one_name(arrays, metadata, how):
    """Return a Dataset, or a table of two parts, whose column "p" has this metadata in its first part."""
    tables = [pa.table({"p": array}) for array in arrays]
    schema = pa.schema([tables[0].schema.field("p").with_metadata(metadata)])
    parts = [table.cast(schema) for table in tables]
    return pa.concat_tables(parts) if how == "table" else pyarrow.dataset.dataset(parts)


@pytest.mark.parametrize("how", ["table", "dataset"])
def test_245_an_extension_that_nobody_knows_makes_no_units(how):
    """Polars gives such a field a dtype of its own, in which 0.0 and -0.0 were two units."""
    metadata = {"ARROW:extension:name": "my.id", "ARROW:extension:metadata": ""}
    frame = of_one_name([pa.array([0.0, -0.0, float("nan")]), pa.array([-0.0, 1.0])], metadata, how)
    assert numbers(frame, "p") == (2, 2, 4)


@pytest.mark.parametrize("how", ["table", "dataset"])
def test_245_ids_that_the_first_file_lacks_are_units(how):
    """Polars writes the levels of an Enum into the metadata, and those of the first file hid the others."""
    first = pl.DataFrame({"p": ["A"]}, schema={"p": pl.Enum(["A"])}).to_arrow()
    then = pl.DataFrame({"p": ["A", "C", "D"]}, schema={"p": pl.Enum(["A", "C", "D"])}).to_arrow()
    then = then.cast(first.schema)  # with the metadata of the first
    frame = pa.concat_tables([first, then]) if how == "table" else pyarrow.dataset.dataset([first, then])
    assert numbers(frame, "p") == (3, 3, 4)


@pytest.mark.parametrize("rows", [250, 300])
def test_245_no_number_of_categories_decides_whether_a_column_is_read(rows):
    categories = getattr(pl, "Categories", None)
    if categories is None:
        pytest.skip("this Polars has one size of categories")
    small = pl.Categorical(categories("small", physical=pl.UInt8))
    field = pl.DataFrame({"p": ["v0"]}, schema={"p": small}).to_arrow().schema.field("p")
    parts = [pa.array([f"v{place}" for place in range(start, rows, 2)]).dictionary_encode() for start in (0, 1)]
    frame = of_one_name(parts, field.metadata, "table")
    assert numbers(frame, "p") == (rows, rows, rows)


WITH_A_DICTIONARY = pa.struct([pa.field("x", pa.dictionary(pa.int8(), pa.string()))])


@pytest.mark.parametrize("how", ["table", "dataset"])
@pytest.mark.parametrize("value", [None, {"x": None}, {"x": "a"}])
def test_246_no_value_decides_whether_a_struct_is_read(value, how):
    """Polars fails on three structs whose dictionary is empty."""
    table = pa.table({"x": pa.array([None, None, value], WITH_A_DICTIONARY)})
    frame = table if how == "table" else pyarrow.dataset.dataset(table)
    found = dpf.of(frame).count("x", epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))
    assert round(found["count"][0]) == (value is not None)


@pytest.mark.parametrize(
    "values", [[None], [[{"x": None}]], [[{"x": Decimal(1)}]], [[{"x": Decimal(1)}]] * 2, []], ids=str
)
def test_246_no_number_of_rows_decides_whether_a_list_is_read(values):
    """Polars fails on one row of a list of structs of short decimals."""
    short = getattr(pa, "decimal32", pa.decimal128)
    table = pa.table({"x": pa.array(values, pa.list_(pa.struct([pa.field("x", short(9, 2))])))})
    found = dpf.of(table).count("x", epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))
    assert round(found["count"][0]) == sum(value is not None for value in values)


def test_246_a_dictionary_of_dictionaries_is_read_with_and_without_rows():
    for rows in (0, 1, 3):
        inner = pa.array(["a", "b", "a"][:rows], pa.string()).dictionary_encode()
        column = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int8()), inner)
        assert numbers(pa.table({"p": column}), "p") == (min(rows, 2), min(rows, 2), rows)


@pytest.mark.parametrize("rows", [127, 128])
def test_246_no_number_of_rows_decides_whether_a_dictionary_of_bytes_is_read(rows):
    """Decoded, it would have 2 GiB, which is more than its offsets can hold."""
    pd = pytest.importorskip("pandas")
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([b"x" * 2**24]))
    for frame in (pa.table({"x": column}), pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(column))})):
        found = dpf.of(frame).count("x", epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))
        assert round(found["count"][0]) == rows


@pytest.mark.parametrize("value", [None, {"x": None}, {"x": "a"}])
def test_246_no_value_decides_whether_a_dictionary_of_structs_is_read(value):
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), pa.array([value], WITH_A_DICTIONARY))
    found = dpf.of(pa.table({"x": column})).count("x", epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9))
    assert round(found["count"][0]) == (0 if value is None else 2)


@pytest.mark.parametrize("value", ["v5", "v150"])
@pytest.mark.parametrize("plain", [False, True], ids=["dictionaries", "texts"])
def test_247_no_value_decides_whether_the_codes_of_a_file_fit(value, plain, tmp_path):
    """The codes of the first file have 8 bits: pyarrow would fail on a value of the second with a larger code."""
    levels = [f"v{place}" for place in range(200)]
    first = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(levels[:100]))
    then = pa.DictionaryArray.from_arrays(pa.array([levels.index(value)], pa.int16()), pa.array(levels))
    for place, column in enumerate([first, then.dictionary_decode() if plain else then]):
        pyarrow.feather.write_feather(pa.table({"x": column}), tmp_path / f"{place}.feather")
    frame = pyarrow.dataset.dataset(tmp_path, format="feather")
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.WrongDtype, match="unlike one that differs between its files"):
        dpf.of(frame).count("x", epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_247_a_file_whose_type_this_pyarrow_cannot_cast_is_refused_before_the_charge(tmp_path):
    """Every call was charged and failed."""
    for place, column in enumerate([pa.array([1, 2]).dictionary_encode(), pa.array([1, 2])]):
        pyarrow.feather.write_feather(pa.table({"x": column}), tmp_path / f"{place}.feather")
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.WrongDtype, match="unlike one that differs between its files"):
        dpf.of(pyarrow.dataset.dataset(tmp_path, format="feather")).count("x", epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
