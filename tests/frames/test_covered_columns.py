"""Coverage of a record: columns outside it, changed numbers and changed labels are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.frames import build, prints
from dpframe.release import provenance

DAYS = [dt.date(2025, 1, day) for day in range(1, 5)]
FRAMES = {
    "ward": ["A", "B", "C", "A"],
    "floor": [1, 2, 3, 1],
    "age": [31.0, 45.0, 62.0, 70.0],
    "day": DAYS,
    "cost": [1.0, 2.0, 3.0, 4.0],
}
QUESTIONS = {
    "keys": lambda dp: dp.group_by("ward", keys=["C", "A", "B"]).agg(n=dpf.count(), epsilon=1),
    "two keys": lambda dp: dp.group_by("ward", "floor", keys={"ward": ["B", "A"], "floor": [3, 1, 2]}).count(epsilon=1),
    "missing key": lambda dp: dp.group_by("floor", keys=[3, None, 1]).count(epsilon=1),
    "numbers": lambda dp: dp.histogram("age", bins=[0, 40, 60, 90], epsilon=1),
    "days": lambda dp: dp.histogram("day", bins=[DAYS[0], DAYS[2], DAYS[3]], epsilon=1),
    "grid": lambda dp: dp.histogram(["age", "cost"], bins=[[0, 40, 90], [0, 2, 3, 5]], epsilon=1),
    "one number": lambda dp: dp.mean("age", bounds=(0, 100), epsilon=1),
    "rollup": lambda dp: dp.group_by("ward", "floor", keys={"ward": ["B", "A"], "floor": [2, 1]}).count(
        epsilon=1, rollup=True
    ),
    "selection": lambda dp: dp.mode("ward", categories=["B", "A"], epsilon=1),
}
NUMBERS = [name for name in QUESTIONS if name != "selection"]


def released(engine, question):
    frame = engine(FRAMES)
    if engine.is_pandas:
        frame["day"] = frame["day"].astype("datetime64[s]")
    with dpf.Ledger(epsilon=9):
        return QUESTIONS[question](frame.dp)


def again(frame, like):
    """Attach the record to another frame, as pandas' operations and Polars' in-place ones keep it."""
    return build.attach(frame, build.record_of(like))


def added(frame, name, values):
    if isinstance(frame, pl.DataFrame):
        return again(frame.with_columns(pl.Series(name, values)), frame)
    return frame.assign(**{name: values})


def in_order(frame, places):
    return again(build.reordered(frame, np.array(places)), frame)


def doors(frame, path):
    """Return the calls that present the numbers of a frame as released."""
    name = build.record_of(frame)["columns"][0]
    return {
        "plot": frame.dp.plot,
        "table": frame.dp.table,
        "errors": frame.dp.errors,
        "to_numpy": lambda: frame.dp.to_numpy(name),
        "write_parquet": lambda: frame.dp.write_parquet(path),
    }


@pytest.mark.parametrize("question", QUESTIONS)
def test_108_a_column_that_no_release_covers_is_refused(engine, question, tmp_path):
    found = released(engine, question)
    names = added(found, "patient", ["Ada Lovelace"] * len(found))
    for door, call in doors(names, tmp_path / "out.parquet").items():
        wanted = "covered by no release" if question != "selection" or door == "write_parquet" else "a selection is"
        with pytest.raises(dpf.InvalidArgument, match=wanted):
            call()
    assert not (tmp_path / "out.parquet").exists()


def test_108_the_way_out_is_to_leave_it_out(engine, tmp_path):
    found = added(released(engine, "keys"), "patient", ["Ada Lovelace"] * 3)
    without = again(found.drop("patient") if isinstance(found, pl.DataFrame) else found.drop(columns="patient"), found)
    without.dp.write_parquet(tmp_path / "out.parquet")
    assert not dpf.read_parquet(tmp_path / "out.parquet").dp.provenance["altered"]


def test_108_neither_an_index_nor_other_attributes_are_written(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FRAMES)
    with dpf.Ledger(epsilon=9):
        found = frame.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1)
    found.index = ["Ada Lovelace", "Grace Hopper"]
    found.index.name = "Mary Shelley"
    found.columns.name = "Emmy Noether"
    found.attrs["patients"] = ["Ada Lovelace"]
    found.dp.write_parquet(tmp_path / "out.parquet")
    content = (tmp_path / "out.parquet").read_bytes()
    for name in (b"Lovelace", b"Hopper", b"Shelley", b"Noether"):
        assert name not in content
    assert pl.read_parquet(tmp_path / "out.parquet").columns == list(found.columns)


@pytest.mark.parametrize("question", NUMBERS)
def test_109_a_changed_number_is_refused(engine, question, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    found = released(engine, question)
    for name in found.dp.provenance["columns"]:
        values = found[name].to_numpy().copy()
        values[-1] = np.nextafter(values[-1], np.inf)
        changed = added(found, name, values)
        assert changed.dp.provenance["altered"]
        for call in doors(changed, tmp_path / "out.parquet").values():
            with pytest.raises(dpf.InvalidArgument, match="some were changed"):
                call()


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name not in ("one number", "days", "selection")])
def test_109_a_changed_label_is_refused(engine, question, tmp_path):
    found = released(engine, question)
    label = build.record_of(found)["rows"]["labels"][0]
    values = found[label].to_list()
    for other in ([values[-1], *values[1:]], [type(values[0])(7), *values[1:]]):
        changed = added(found, label, other)
        assert changed.dp.provenance["altered"]
        with pytest.raises(dpf.InvalidArgument, match="some were changed"):
            changed.dp.write_parquet(tmp_path / "out.parquet")


@pytest.mark.parametrize("question", NUMBERS)
def test_109_numbers_of_two_rows_that_changed_places_are_refused(engine, question):
    found = released(engine, question)
    if len(found) < 2:
        return
    name = build.record_of(found)["columns"][-1]
    found = added(found, name, np.arange(float(len(found))))
    facts = {**build.record_of(found)}
    columns, labels = facts["columns"], facts["rows"]["labels"]
    facts["rows"] = {**facts["rows"], "sha256": print_of(found, labels, columns, facts).sha256}
    swapped = added(build.attach(found, facts), name, np.arange(float(len(found)))[::-1])
    assert not found.dp.provenance["altered"]
    assert swapped.dp.provenance["altered"]


def print_of(frame, labels, columns, facts):
    return prints.print_of(frame, labels, columns, prints.layout_of(facts.get("levels")))


@pytest.mark.slow
@pytest.mark.parametrize("question", NUMBERS)
def test_the_order_of_rows_is_no_change(engine, question, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("great_tables")
    found = released(engine, question)
    rng = np.random.default_rng(7)
    for _ in range(5):
        mixed = in_order(found, rng.permutation(len(found)))
        assert not mixed.dp.provenance["altered"]
        for name in found.dp.provenance["columns"]:
            assert np.array_equal(mixed.dp.to_numpy(name), found.dp.to_numpy(name))
        assert str(engine.columns(mixed.dp.errors())) == str(engine.columns(found.dp.errors()))  # NaN may be among them
        assert mixed.dp.table() is not None
        assert mixed.dp.plot() is not None
        mixed.dp.write_parquet(tmp_path / "out.parquet")
        for like in ("polars", "pandas") if engine.is_pandas else ("polars",):
            back = dpf.read_parquet(tmp_path / "out.parquet", like=like)
            assert not back.dp.provenance["altered"]
            name = back.dp.provenance["columns"][0]
            assert np.array_equal(back.dp.to_numpy(name), found.dp.to_numpy(name))


def test_a_chart_of_subtotals_shows_each_level_in_its_panel(engine):
    pytest.importorskip("altair")
    found = released(engine, "rollup")
    mixed = in_order(found, list(range(len(found)))[::-1])
    assert mixed.dp.plot().to_dict() == found.dp.plot().to_dict()


def test_lost_doubled_and_cut_rows_are_refused(engine):
    found = released(engine, "keys")
    for places in ([0, 1], [0, 0, 1], [0, 1, 2, 2]):
        changed = in_order(found, places)
        assert changed.dp.provenance["altered"]
        with pytest.raises(dpf.InvalidArgument, match=r"rows of the release|some were changed"):
            changed.dp.to_numpy("n")


KEYS = {
    "text": ["b", "a", "", "é", "\x00"],
    "numbers": [3, 1, -2],
    "large": [2**53 + 1, 2**53 + 3, 5],
    "fractions": [0.5, -0.25, 1e300],
    "decimals": [Decimal("0.25"), Decimal("0.1"), Decimal("3")],
    "days": [dt.date(2025, 5, 1), dt.date(2024, 1, 1), dt.date(9999, 12, 31)],
    "times": [dt.datetime(2025, 5, 1, 12, 0, 0, 1), dt.datetime(2024, 1, 1)],
    "instants": [dt.datetime(2025, 5, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
    "durations": [dt.timedelta(days=3), dt.timedelta(microseconds=1)],
    "hours": [dt.time(12, 30), dt.time(1)],
    "truth": [True, False],
    "missing": [None, "x"],
}


@pytest.mark.filterwarnings("ignore:DatetimeTZBlock")  # older versions of pyarrow use it in pandas
@pytest.mark.parametrize("kind", KEYS)
def test_labels_are_known_again_in_the_other_library_and_in_files(kind, tmp_path):
    pytest.importorskip("pandas")
    columns = {"key": KEYS[kind], "n": np.arange(float(len(KEYS[kind])))}
    found = {}
    for library in ("polars", "pandas"):
        frame = build.frame_of(columns, library)
        found[library] = prints.print_of(frame, ["key"], ["n"])
        import pyarrow
        import pyarrow.parquet

        arrow = pyarrow.Table.from_pandas(frame) if library == "pandas" else frame.to_arrow()
        pyarrow.parquet.write_table(arrow, tmp_path / "keys.parquet")
        back = pyarrow.parquet.read_table(tmp_path / "keys.parquet")
        for like, read in (("polars", pl.DataFrame(pl.from_arrow(back))), ("pandas", back.to_pandas())):
            assert prints.print_of(read, ["key"], ["n"]).sha256 == found[library].sha256, (library, like)
    assert found["polars"].sha256 == found["pandas"].sha256


def test_a_record_of_before_is_read_as_it_was(engine, tmp_path):
    """An old record covers no labels, and one order of rows only. Other columns are refused as with a new one."""
    found = added(released(engine, "keys"), "n_noisy", [1.0, 2.0, 3.0])
    facts = {name: fact for name, fact in build.record_of(found).items() if name != "rows"}
    facts["sha256"] = build.fingerprint(found, facts["columns"])
    old = build.attach(build.reordered(found, np.arange(3)), facts)
    assert not old.dp.provenance["altered"]
    assert old.dp.to_numpy("n_noisy").tolist() == [1.0, 2.0, 3.0]
    old.dp.write_parquet(tmp_path / "old.parquet")
    turned = build.attach(build.reordered(found, np.array([2, 1, 0])), facts)
    with pytest.raises(dpf.InvalidArgument, match="some were changed"):
        turned.dp.to_numpy("n")
    with pytest.raises(dpf.InvalidArgument, match="covered by no release"):
        added(old, "patient", ["Ada"] * 3).dp.write_parquet(tmp_path / "out.parquet")


def test_the_record_of_sorted_keys_is_small_and_others_know_their_order():
    frame = pl.DataFrame({"x": [1]})
    with dpf.Ledger(epsilon=9):
        ordered = frame.dp.group_by("x", keys=range(1_000)).count(epsilon=1)
        turned = frame.dp.group_by("x", keys=range(999, -1, -1)).count(epsilon=1)
    assert ordered.dp.provenance["rows"]["order"] is None
    assert turned.dp.provenance["rows"]["order"].split(" ") == [str(place) for place in range(999, -1, -1)]
    assert provenance.checked(turned, build.record_of(turned)).tolist() == list(range(1_000))


def test_labels_that_come_again_are_ranked_as_each_would_be():
    """Runs and cycles of repeated labels are ranked by a shortcut, which must agree with the ranks of all rows."""
    random = np.random.default_rng(7)
    columns = {
        "text": pl.Series(["b", None, "a", "c"]),
        "number": pl.Series([None, 2.5, -1.0]),
        "whole": pl.Series([2**60, 5, None]),
        "day": pl.Series([*DAYS, None]),
        "amount": pl.Series([Decimal("1.50"), None, Decimal("0.2")]),
    }
    for labels in columns.values():
        for start in range(len(labels)):
            turned = np.roll(np.arange(len(labels)), start)
            shapes = [np.repeat(turned, 3_000), np.tile(turned, 3_000), np.tile(np.repeat(turned, 300), 40)]
            shapes += [random.permutation(shapes[0]), np.append(shapes[1], 0), np.repeat(np.tile(turned, 300), 40)]
            for shape in shapes:
                _, plain = prints._plain(labels.gather(shape))
                different, ranks = prints._ranked(plain)
                expected = (plain.rank("dense").cast(pl.Int64) - 1).fill_null(len(different))
                assert different.equals(plain.drop_nulls().unique().sort())
                assert ranks.dtype == np.int64
                assert np.array_equal(ranks, expected.to_numpy())


def test_large_tables_are_covered_in_any_order():
    frame = pl.DataFrame(
        {"x": np.repeat(np.arange(90.0), 90), "y": np.tile(np.arange(90), 90), "n": np.arange(8_100.0)}
    )
    first = prints.print_of(frame, ["x", "y"], ["n"])
    assert np.array_equal(first.places, np.arange(8_100))
    mixed = np.random.default_rng(3).permutation(8_100)
    again = prints.print_of(frame[mixed], ["x", "y"], ["n"])
    assert again.sha256 == first.sha256
    assert np.array_equal(mixed[again.places], np.arange(8_100))
    assert prints.print_of(frame.with_columns(n=pl.col("n") + 1.0), ["x", "y"], ["n"]).sha256 != first.sha256


@pytest.mark.parametrize("question", ["two keys", "missing key"])
def test_208_levels_that_are_no_value_of_a_row_are_not_written(engine, question, tmp_path):
    """The hash of a result does not cover unused levels, which may come from a private column."""
    import pyarrow.parquet

    result, path = released(engine, question), tmp_path / "out.parquet"
    if engine.is_pandas:
        import pandas

        for name, own in {"ward": ["John Smith", "A", "B"], "floor": [987654321, 1, 2, 3]}.items():
            if name in result:
                result[name] = result[name].astype(pandas.CategoricalDtype(own))
        result.columns.name = "John Smith"
    elif "ward" in result:
        enum = pl.Enum(["John Smith", "A", "B"])
        result = again(result.with_columns(pl.col("ward").cast(enum)), result)
    result.dp.write_parquet(path)
    held = path.read_bytes()
    assert not [word for word in (b"John Smith", b"num_categories", (987654321).to_bytes(8, "little")) if word in held]
    assert not any("dictionary" in str(field.type) or field.metadata for field in pyarrow.parquet.read_schema(path))
    back = dpf.read_parquet(path)
    assert back.dp.provenance == result.dp.provenance
    assert not back.dp.provenance["altered"]


def test_an_empty_category_has_the_type_of_a_plain_column_in_files(tmp_path):
    """Without values, a column of the newest pandas has the type text, and one of older versions has none."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"g": ["a"]})
    ledger = dpf.Ledger(epsilon=1, delta=1e-3, accounting="basic")
    found = frame.dp.group_by("g", keys=dpf.discover(delta=1e-9)).count(epsilon=0.1, delta=1e-9, ledger=ledger)
    assert len(found) == 0, "but for a chance of 2e-9"
    path, types = tmp_path / "empty.parquet", []
    for dtype in (found["g"].dtype, pandas.CategoricalDtype(["John Smith"])):
        found["g"] = found["g"].astype(dtype)
        found.dp.write_parquet(path)
        types.append(dpf.read_parquet(path, like="polars").schema["g"])
    assert types[0] == types[1]


def test_a_statement_is_of_rows_by_their_place_whatever_their_index():
    """Before version 3, pandas slices an index of floats by label, not by place."""
    pandas = pytest.importorskip("pandas")
    with dpf.Ledger(epsilon=9), noise.insecure_bits(4):
        few = pandas.DataFrame({"g": ["a"] * 100}).dp.group_by("g", keys=["a", "b"]).count(epsilon=0.2, denoise=None)
    few.index = [0.5, 1.5]
    assert "In count, b is too small to distinguish from noise." in few.dp.statement()
