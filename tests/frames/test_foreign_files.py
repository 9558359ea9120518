"""Files from untrusted sources: every broken record raises one typed error, and a usable one raises none."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import json
import os
import random
from types import SimpleNamespace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpframe as dpf
from dpframe.cli import main
from dpframe.display.statements import check_lines
from dpframe.frames import build, foreign, prints

DAY = dt.date(2025, 1, 1)
FRAME = pl.DataFrame({"age": [31.0, 45.0, 62.0], "ward": ["A", "B", "C"], "day": [DAY] * 3})
QUESTIONS = (
    lambda dp: dp.histogram("age", bins=[0, 50, 100], epsilon=1),
    lambda dp: dp.histogram("day", bins=[DAY, dt.date(2025, 1, 3)], epsilon=1),
    lambda dp: dp.group_by("ward", keys=["C", "A"]).agg(n=dpf.count(), m=dpf.mean("age", bounds=(0, 100)), epsilon=1),
    lambda dp: dp.group_by("ward", keys=["C", "A", "B"]).count(rollup=True, epsilon=1),
    lambda dp: dp.histogram(["age", "day"], bins=[[0, 50, 100], [DAY, dt.date(2025, 1, 3)]], epsilon=1),
    lambda dp: dp.mode("ward", categories=["A", "B"], epsilon=1),
    lambda dp: dp.count(epsilon=1),
    lambda dp: dp.histogram("age", bins=range(0, 101, 20), ranges=True, epsilon=1),
)
JUNK = [None, True, 0, -1, 10**30, 1.5, 1e308, "x", "", "\x00", [], {}, [[]], [None], {"a": 1}, ["a"], [1], "0 1"]
LIKE = ["polars"] if not __import__("conftest").HAS_PANDAS else ["polars", "pandas"]


def released(question=0):
    with dpf.Ledger(epsilon=9):
        return QUESTIONS[question](FRAME.dp)


def written(path, frame, text):
    pq.write_table(frame.to_arrow().replace_schema_metadata({b"dpframe": text}), path)
    return path


def nested(depth):
    return b'{"a":' * depth + b"1" + b"}" * depth


BROKEN = {
    "no text": b"\xff\xfe",
    "no JSON": b"{",
    "an array": b"[]",
    "a number": b"1",
    "null": b"null",
    "deep": nested(100_000),
    "deep arrays": b"[" * 1_000_000,
    "long digits": b'{"schema": ' + b"9" * 10_000 + b"}",
    "nothing": b"",
    "empty": b"{}",
    "of a later version": b'{"schema": "dpframe.provenance/9"}',
    "of another": b'{"schema": "someone.else/1"}',
    "schema alone": b'{"schema": "dpframe.provenance/1"}',
}


@pytest.mark.parametrize("like", LIKE)
@pytest.mark.parametrize("kind", BROKEN)
def test_118_broken_records_are_refused_by_one_error(kind, like, tmp_path):
    path = written(tmp_path / "x.parquet", released(), BROKEN[kind])
    with pytest.raises(dpf.NoProvenance, match="the file") as caught:
        dpf.read_parquet(path, like=like)
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_118_numbers_that_are_not_finite_are_refused(word, tmp_path):
    text = json.dumps(build.record_of(released())).replace('"epsilon": 1.0', f'"epsilon": {word}')
    assert word in text
    with pytest.raises(dpf.NoProvenance):
        dpf.read_parquet(written(tmp_path / "x.parquet", released(), text.encode()))


def test_118_every_field_is_needed_and_of_its_type(tmp_path):
    record = build.record_of(released(2))
    for name in foreign.NEEDED:
        missing = {key: value for key, value in record.items() if key != name}
        assert foreign.problem_of(missing) == f"its field {name} is missing"
        for junk in ({"?": object()}, 10**400, float("nan"), [[]]):
            assert foreign.problem_of({**record, name: junk}), (name, junk)
    assert foreign.problem_of({**record, "a field of tomorrow": 1}) == ""


def test_118_the_identity_and_the_totals_of_a_release_have_a_form():
    with dpf.Ledger(epsilon=1):
        record = build.record_of(FRAME.dp.mean("age", bounds=(0, 100), epsilon=1))
    (name,) = record["measures"]
    for junk in [*JUNK, "0" * 31, "0" * 33, "g" * 32, "A" * 32]:
        assert foreign.problem_of({**record, "release": junk}), junk
    for junk in [None, "x", {}, [], [[]], [["x"]], [[1.0]] * 2, [[float("nan")]], [[1.0, 2.0], [True]], [1.0]]:
        forged = {**record, "measures": {name: {**record["measures"][name], "totals": junk}}}
        assert foreign.problem_of(forged), junk
    for junk in (None, -1, 1.5, "0"):
        assert foreign.problem_of({**record, "part": junk}), junk


SAMPLES = pl.DataFrame({"g": ["A", "B"] * 200, "h": [0, 1, 2, 0] * 100, "x": [float(i % 7) for i in range(400)]})


def sampled(**more):
    """Release every kind of statistic that can estimate a population."""
    bounds = {"bounds": (0, 7)}
    named = {"n": dpf.count(), "s": dpf.sum("x", **bounds)}
    named |= {} if more else {"m": dpf.mean("x", **bounds), "p": dpf.proportion("g", "A")}
    price = {"epsilon": 20, "delta": 1e-6, "mechanism": "gaussian", "ledger": dpf.Ledger(epsilon=20, delta=1e-6)}
    asked = SAMPLES.dp.group_by("g", "h", keys={"g": ["A", "B"], "h": [0, 1, 2]})
    return asked.agg(**named, denoise=None, population=True, **price, **more)


def of_a_population(found):
    """Return the calls that use the totals in a record."""
    return (
        lambda: found.dp.errors(covers="population"),
        lambda: found.dp.errors(covers="population", cells=True),
        found.dp.errors,
        found.dp.statement,
        lambda: dpf.compare(found, "A", "B", by="g"),
        lambda: found.dp.total(by="g"),
        lambda: found.dp.filter({"g": ["A"]}),
        *(lambda name=name: dpf.combine(f"a.{name} / 2", {"a": found}) for name in found.dp.provenance["measures"]),
    )


@pytest.mark.parametrize("more", [{}, {"rollup": True}, {"cube": True}])
def test_182_squares_of_every_level_are_of_the_form(more, tmp_path):
    found = sampled(**more)
    found.dp.write_parquet(tmp_path / "x.parquet")
    assert "square_totals" in dpf.read_parquet(tmp_path / "x.parquet").dp.provenance["measures"]["s"]
    if not more:
        for call in of_a_population(found):
            call()


def forged(field, value):
    """Return a record with another value in one field, or without that field if the value is None."""
    record = copy.deepcopy(build.record_of(sampled()))
    *path, last = field
    part = record
    for key in path:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return record


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (("measures", "s", "squares"), [99]),
        (("measures", "s", "squares"), None),
        (("measures", "s", "square_totals"), [[1.0]]),
        (("measures", "m", "square_totals"), [[1.0] * 6] * 2),
        (("confidence",), 1.5),
        (("confidence",), 1),
        (("cells", 0, "keys"), []),
        (("cells", 0, "keys"), ["text", "text"]),
    ],
)
def test_182_records_that_contradict_themselves_are_refused(field, value):
    assert foreign.problem_of(forged(field, value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (("measures", "n", "verb"), "mean"),
        (("measures", "n", "verb"), "proportion"),
        (("measures", "m", "verb"), "sum"),
        (("measures", "p", "verb"), "count"),
        (("measures", "m", "bounds"), None),
        (("measures", "s", "bounds"), None),
        (("measures", "m", "square_totals"), None),
        (("measures", "m", "totals"), None),
    ],
)
def test_182_what_a_record_does_not_tell_is_refused_in_words(field, value, tmp_path):
    record = forged(field, value)
    result = sampled()
    path = written(tmp_path / "x.parquet", result, json.dumps(hashed(result, record)).encode())
    with contextlib.suppress(dpf.NoProvenance):
        for call in of_a_population(dpf.read_parquet(path)):
            with contextlib.suppress(dpf.DpframeError):
                call()


def test_182_counts_of_a_top_k_need_a_noise_that_is_known():
    found = SAMPLES.dp.top_k("g", k=1, counts=True, categories=["A", "B"], epsilon=1, ledger=dpf.Ledger(epsilon=1))
    record = copy.deepcopy(build.record_of(found))
    del record["statistics"][0]["variance"]
    assert "counts" in foreign.problem_of(record)


@pytest.mark.parametrize("question", range(len(QUESTIONS)))
def test_118_what_is_released_is_of_the_form(question):
    record = build.record_of(released(question))
    assert foreign.problem_of(json.loads(json.dumps(record))) == ""


def test_118_sizes_are_bounded_before_anything_is_read(monkeypatch, tmp_path):
    record = build.record_of(released())
    path = written(tmp_path / "x.parquet", released(), json.dumps({**record, "label": "x" * 100_000}).encode())
    assert dpf.read_parquet(path).dp.provenance["label"] == "x" * 100_000
    monkeypatch.setattr(foreign, "LARGEST", 50_000)
    monkeypatch.setattr(foreign, "parsed", lambda *_: pytest.fail("it was read"))
    with pytest.raises(dpf.NoProvenance, match="and none has more than 50000"):
        dpf.read_parquet(path)


def test_118_a_record_itself_is_bounded():
    with pytest.raises(dpf.NoProvenance, match="bytes, and none has more"):
        foreign.parsed(b" " * (foreign.LARGEST + 1), "it")


def test_163_other_rows_than_the_record_speaks_of_are_refused_unread(tmp_path, monkeypatch):
    """A file of a few kB may unpack to any number of equal rows."""
    result = released(3)
    both = dpf.concat([released(6), released(6)])
    monkeypatch.setattr(foreign, "_unpacked", lambda *_: pytest.fail("it was read"))
    for frame, record in ((result, build.record_of(result)), (both, build.record_of(both))):
        for other in (frame.head(len(frame) - 1), pl.concat([frame] * 3), frame.head(0)):
            path = written(tmp_path / "x.parquet", other, json.dumps(record).encode())
            with pytest.raises(
                dpf.NoProvenance, match=f"has {len(other)} rows?, and its provenance is of {len(frame)}"
            ):
                dpf.read_parquet(path)


@pytest.mark.parametrize("like", LIKE)
def test_163_equal_values_do_not_take_all_memory(like, tmp_path, monkeypatch):
    """The record of randomized reports holds no number of rows, and texts may be long: the size is bounded."""
    ledger = dpf.Ledger(epsilon=9, unit=dpf.PrivacyUnit(neighbors="replace"))
    method = dpf.local.SubsetSelection(["A", "B"], epsilon=1)
    reports = FRAME.dp.local.randomize("ward", method=method, ledger=ledger)
    record = json.dumps(build.record_of(reports)).encode()
    million = pl.concat([reports.head(1)] * 2).sample(2**20, with_replacement=True)
    path = written(tmp_path / "x.parquet", million, record)
    assert len(dpf.read_parquet(path, like=like)) == 2**20
    texts = pl.DataFrame({reports.columns[0]: ["x" * 2**12] * 2**14})
    long = written(tmp_path / "y.parquet", texts, record)
    assert long.stat().st_size < 2**20
    numbers = written(tmp_path / "n.parquet", pl.DataFrame({reports.columns[0]: [1.5] * 2**18}), record)
    assert numbers.stat().st_size < 2**16
    monkeypatch.setattr(foreign, "LARGEST_TABLE", 2**20)
    monkeypatch.setattr(foreign, "MOST_UNPACKED", 10)
    for name in (path, long, numbers):
        with pytest.raises(dpf.NoProvenance, match="would take more than"):
            dpf.read_parquet(name, like=like)
    words = pl.DataFrame({reports.columns[0]: ["a", None, "Süd" * 50] * 1_000})
    back = dpf.read_parquet(written(tmp_path / "z.parquet", words, record))
    assert back.equals(words)


def test_163_what_little_may_unpack_to_much_is_refused_unread(tmp_path, monkeypatch):
    """A file may declare a page of each column small that unpacks to 2 GiB, so packing without a bound is refused."""
    result = released(3)
    path = tmp_path / "x.parquet"
    table, metadata = result.to_arrow(), {build.RECORD.encode(): json.dumps(build.record_of(result)).encode()}
    for packing in ("none", "snappy", "gzip", "lz4"):
        pq.write_table(table.replace_schema_metadata(metadata), path, compression=packing)
        assert dpf.read_parquet(path).equals(result)
    monkeypatch.setattr(foreign, "_unpacked", lambda *_: pytest.fail("it was read"))
    for packing in ("zstd", "brotli"):
        pq.write_table(table.replace_schema_metadata(metadata), path, compression=packing)
        with pytest.raises(dpf.NoProvenance, match=f"is packed by '{packing.upper()}', in which little may unpack"):
            dpf.read_parquet(path)


@pytest.mark.parametrize("column", range(2))
@pytest.mark.parametrize("group", range(2))
def test_163_the_packing_of_every_column_in_every_row_group_is_looked_at(group, column):
    """No library writes two packings of one column into a file, but anybody can change a byte of one."""
    packings = [["SNAPPY"] * 2 for _ in range(2)]
    packings[group][column] = "ZSTD"
    columns = [[SimpleNamespace(compression=packing) for packing in each] for each in packings]
    groups = [SimpleNamespace(num_columns=2, column=each.__getitem__) for each in columns]
    metadata = SimpleNamespace(num_row_groups=2, row_group=groups.__getitem__)
    with pytest.raises(dpf.NoProvenance, match="is packed by 'ZSTD'"):
        foreign._check_packing(SimpleNamespace(schema_arrow=[], metadata=metadata), "it")


def test_163_bytes_that_are_no_text_are_refused_unread(tmp_path, monkeypatch):
    """Values stored as bytes, such as decimals of any length, may each repeat a long one before them."""
    result = released(3)
    path = written(tmp_path / "x.parquet", result, json.dumps(build.record_of(result)).encode())
    monkeypatch.setattr(foreign, "_unpacked", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(foreign, "_is_text", lambda kind: False)
    with pytest.raises(dpf.NoProvenance, match="that is stored as bytes"):
        dpf.read_parquet(path)


def test_163_a_file_of_very_many_columns_is_refused_unread(tmp_path, monkeypatch):
    result = released(3)
    path = written(tmp_path / "x.parquet", result, json.dumps(build.record_of(result)).encode())
    monkeypatch.setattr(foreign, "MOST_COLUMNS", len(result.columns) - 1)
    with pytest.raises(dpf.NoProvenance, match=f"has {len(result.columns)} columns, and no release has more than"):
        dpf.read_parquet(path)
    with pytest.raises(dpf.InvalidArgument, match="must have at most"):
        result.dp.write_parquet(tmp_path / "y.parquet")
    assert not (tmp_path / "y.parquet").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_159_a_pipe_in_place_of_a_record_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(dpf.NoProvenance, match="is no Parquet file"):
            dpf.read_parquet(tmp_path / name)


def test_118_what_is_no_parquet_file_is_refused(tmp_path):
    for content in (b"", b"PAR1", b"x" * 100, b"PAR1" + b"\x00" * 50 + b"\xff\xff\xff\xffPAR1"):
        path = tmp_path / "x.parquet"
        path.write_bytes(content)
        with pytest.raises(dpf.NoProvenance):
            dpf.read_parquet(path)
    with pytest.raises(FileNotFoundError):
        dpf.read_parquet(tmp_path / "none.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "plain.parquet")
    with pytest.raises(dpf.NoProvenance, match="carries no provenance"):
        dpf.read_parquet(tmp_path / "plain.parquet")


@pytest.mark.parametrize("values", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"x"])])
def test_118_columns_of_types_that_no_release_has_are_refused(values, tmp_path):
    text = json.dumps(build.record_of(released())).encode()
    pq.write_table(pa.table({"x": values}).replace_schema_metadata({b"dpframe": text}), tmp_path / "x.parquet")
    with pytest.raises(dpf.NoProvenance, match="a column of type"):
        dpf.read_parquet(tmp_path / "x.parquet")


def test_118_pandas_own_description_is_not_trusted(tmp_path):
    pytest.importorskip("pandas")
    metadata = {b"dpframe": json.dumps(build.record_of(released())).encode(), b"pandas": b"{broken"}
    pq.write_table(released().to_arrow().replace_schema_metadata(metadata), tmp_path / "x.parquet")
    assert dpf.read_parquet(tmp_path / "x.parquet", like="pandas").dp.provenance["verb"] == "histogram"


def test_118_a_broken_record_in_attrs_is_none():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"count": [1.0]})
    frame.attrs["dpframe"] = {"sha256": "0" * 64, "columns": [], "measures": None}
    with pytest.raises(dpf.NoProvenance):
        frame.dp.provenance  # noqa: B018


def test_118_the_command_line_says_it_in_a_line(tmp_path, capsys):
    pytest.importorskip("typer")
    dpf.Ledger(epsilon=1.0, path=tmp_path / "clinic.ledger")
    for kind, text in BROKEN.items():
        path = written(tmp_path / "x.parquet", released(), text)
        assert main.main(["ledger", "verify", str(tmp_path / "clinic.ledger"), str(path)]) == 1, kind
        printed = capsys.readouterr().err
        assert printed.startswith("dpframe: the file")
        assert printed.count("\n") == 1


def mutated(source, record):
    """Return the record with one random part deleted or replaced by junk."""
    spots = []

    def walk(part):
        for key in part if isinstance(part, dict) else range(len(part)):
            spots.append((part, key))
            if isinstance(part[key], (dict, list)):
                walk(part[key])

    walk(record)
    part, key = source.choice(spots)
    if source.random() < 0.2:
        del part[key]
    else:
        part[key] = copy.deepcopy(source.choice(JUNK))
    return record


def hashed(frame, record):
    """Return the record with hashes that match its frame, as a forger would compute them."""
    try:
        numbers = record["columns"] if record["measures"] else []
        found = prints.print_of(frame, record["rows"]["labels"], numbers, prints.layout_of(record.get("levels")))
        record["rows"]["sha256"] = found.sha256
        record["sha256"] = build.fingerprint(frame, record["columns"])
    except (AttributeError, KeyError, TypeError, ValueError):  # too broken for hashes
        pass
    return record


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_118_no_record_leads_to_a_raw_error(seed, tmp_path):
    """Records and columns with replaced parts, but matching hashes, give an answer or a typed refusal."""
    source = random.Random(seed)
    for _ in range(25):
        frame = released(source.randrange(len(QUESTIONS)))
        record = mutated(source, copy.deepcopy(build.record_of(frame)))
        other = frame.clone()
        if source.random() < 0.4:
            junk = source.choice([["a"], [None], [float("nan")], [True], [float("inf")], [10**18]])
            other = other.with_columns(pl.Series(source.choice(other.columns), junk * len(other)))
        if source.random() < 0.3 and "rows" in record:
            del record["rows"]
        path = written(tmp_path / "x.parquet", other, json.dumps(hashed(other, record)).encode())
        for like in LIKE:
            try:
                found = dpf.read_parquet(path, like=like)
            except dpf.NoProvenance:
                continue
            everything(found, tmp_path / "y.parquet")


def everything(found, path):
    assert found.dp.provenance["altered"] in (True, False)
    name = found.dp.provenance["columns"][0]
    for call in (
        found.dp.plot,
        found.dp.table,
        found.dp.errors,
        lambda: found.dp.to_numpy(name),
        lambda: found.dp.write_parquet(path),
    ):
        with contextlib.suppress(dpf.DpframeError, ImportError):  # ImportError: an optional extra is not installed
            call()


def test_a_record_of_another_kind_is_told_which_schema_it_must_have():
    assert foreign.problem_of({"schema": "someone.else/1"}) == "its schema must be dpframe.provenance/ and a number"


def checked_question():
    """Release a mean with checks of every kind."""
    frame = SAMPLES.with_columns(i=pl.int_range(400))
    ledger = dpf.Ledger(epsilon=1, unit="i")
    return frame.dp.group_by("g", keys=["A"]).mean("x", bounds=(0, 3), max_rows=1, epsilon=1, ledger=ledger)


def test_118_numbers_of_checks_are_shares_and_what_they_are_shares_of():
    record = build.record_of(checked_question())
    assert {row["what"] for row in record["checks"]} == {"below", "above", "present", "outside", "cut", "units"}
    assert not foreign.problem_of(record)
    for number, row in enumerate(record["checks"]):
        for name in ("share", "share_low", "share_high"):
            for value in (1e308, -0.1, 2, True):
                assert foreign.problem_of(with_check(record, number, {name: value})), (row["what"], name, value)
        no_shares = dict.fromkeys(("share", "share_low", "share_high"))
        others = row["what"] in ("present", "units")
        assert bool(foreign.problem_of(with_check(record, number, no_shares))) == (not others)
        assert foreign.problem_of(with_check(record, number, {"share_low": None, "share_high": 0.5}))
        assert foreign.problem_of(with_check(record, number, {"share_low": 0.6, "share_high": 0.5}))
        for count in (5e-324, -1e308, 1e308):
            forged = with_check(record, number, {"count": count, "count_error": 0.0})
            assert not foreign.problem_of(forged)
            assert check_lines(forged)


def with_check(record, number, other):
    checks = [{**row, **other} if place == number else row for place, row in enumerate(record["checks"])]
    return {**record, "checks": checks}


@pytest.mark.parametrize("scale", [0, 0.0, -0.0])
def test_118_noise_of_a_known_shape_has_a_scale(scale):
    record = copy.deepcopy(build.record_of(released()))
    record["statistics"][0]["scale"] = scale
    assert "its field statistics" in foreign.problem_of(record)
    del record["statistics"][0]["p"]  # without p, the noise has no known shape
    assert not foreign.problem_of(record)


@pytest.mark.parametrize(
    ("name", "value"), [("measures", "m"), ("measures", [1]), ("bounds", [0]), ("bounds", [0, [1]]), ("bounds", "0, 1")]
)
def test_what_a_record_says_of_checks_is_of_the_right_form(name, value):
    found = SAMPLES.dp.mean("x", bounds=(0, 1), epsilon=1, checks=True, ledger=dpf.Ledger(epsilon=1))
    record = copy.deepcopy(build.record_of(found))
    assert foreign.problem_of(record) == ""
    record["checks"][0][name] = value
    assert "its field checks" in foreign.problem_of(record)
