"""A small weekly job, for the tests that run it."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

import dpframe as dpf
from dpframe.frames import scans
from dpframe.jobs import job_file, running
from dpframe.ledger.sql import is_there

STAYS = pl.DataFrame(
    {"patient": range(600), "ward": ["A", "B", "C"] * 200, "nights": [1.0, 4.0, 9.0, None] * 150, "well": [True] * 600}
)
TEXT = """engine = "polars"
snapshot = "${WEEK}"
audit = "audit.jsonl"

[source]
path = "stays.parquet"

[ledger]
path = "clinic.ledger"
dataset = "clinic"
unit = "patient"
epsilon = 1.0

[[release]]
label = "wards"
verb = "agg"
group_by = "ward"
keys = ["A", "B", "C"]
statistics.stays = {statistic = "count"}
statistics.nights = {statistic = "mean", column = "nights", bounds = [0, 30]}
max_rows = 2
epsilon = 0.3

[[release]]
label = "nights"
verb = "histogram"
column = "nights"
bins = [0, 2, 4, 8, 16]
max_rows = 2
epsilon = 0.2

[[output]]
release = "wards"
path = "out/wards.parquet"

[[output]]
release = "nights"
path = "out/nights-${WEEK}.csv"
"""


def lay_out(folder):
    """Write the table and the job file to a folder, and return the folder."""
    STAYS.write_parquet(folder / "stays.parquet")
    (folder / "release.toml").write_text(TEXT, encoding="utf-8")
    return folder


def job(folder, week="w1", text=None):
    if text is not None:
        (folder / "release.toml").write_text(text, encoding="utf-8")
    return job_file.read(folder / "release.toml", [f"WEEK={week}"], {})


def run(job, told=lambda words: None):
    """Run a job; create its ledger before the first run."""
    if not is_there(job.ledger.place):
        running.create(job)
    return running.run(job, told)


EXACT = TEXT.replace("epsilon = 1.0", "epsilon = 1e9").replace("epsilon = 0.3", "epsilon = 4e8")
COLUMNS = 'columns = {patient = "integer", ward = "string", nights = "number", well = "boolean", day = "date"}'
ODD = '''patient,ward,nights,well,day
1,A,1.5,true,2026-01-05
2,"B, ""b""",1e1,false,2026-01-06
3,,nan,TRUE,2026-13-01
4,A,,,
x,"C
c",0x10,1,05.01.2026
5, A,-2.25,true,2026-02-30
"6
",D,"1.5
",true,"2026-01-05
"
'''
READ = [
    (1, "A", 1.5, True, "2026-01-05"),
    (2, 'B, "b"', 10.0, False, "2026-01-06"),
    (3, None, None, None, None),
    (4, "A", None, None, None),
    (None, "C\nc", None, None, None),
    (5, " A", -2.25, True, None),
    (None, "D", None, True, None),
]


def rows_of(frame):
    """Return the rows of a frame that an engine of jobs opened."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect().rows()
    return [tuple(row) for row in (frame.collect() if hasattr(frame, "collect") else frame.fetchall())]


def check_job_on(engine, folder):
    """Check that an engine reads text files like the others, and that the same job gives the same totals."""
    (folder / "odd.csv").write_text(ODD, encoding="utf-8")
    kinds = {"patient": "integer", "ward": "string", "nights": "number", "well": "boolean", "day": "date"}
    frame = scans.opened(engine, scans.Scan(str(folder / "odd.csv"), "csv", kinds))
    rows = rows_of(frame)
    assert [(*row[:4], None if row[4] is None else str(row[4])) for row in rows] == READ
    run(job(folder, engine, EXACT.replace('"polars"', f'"{engine}"')))
    wards = dpf.read_parquet(folder / "out" / "wards.parquet")
    assert [round(value, 3) for value in wards["stays"]] == [200, 200, 200]
    assert [round(value, 3) for value in wards["nights"]] == [4.667, 4.667, 4.667]


def check_ids_on(engine, folder):
    """Check that 007 is never the person 7 in a unit column, and is the number 7 in other columns."""
    (folder / "odd.csv").write_text(
        "patient,ward,nights\n7,A,07\n007,B,7\n-0,C,0\n0,A,-0\n-12,A,-012\n", encoding="utf-8"
    )
    text = TEXT.replace(
        '"stays.parquet"', '"odd.csv"\ncolumns = {patient = "integer", ward = "string", nights = "integer"}'
    )
    one = job(folder, text=text.replace('"polars"', f'"{engine}"', 1))
    frame = scans.opened(one.engine, one.scan)
    rows = rows_of(frame)
    assert rows == [(7, "A", 7), (None, "B", 7), (None, "C", 0), (0, "A", 0), (-12, "A", -12)]


def check_packed_on(engine, folder):
    """Check that an engine reads text files that gzip compressed, in parts too, and that their names are compared."""
    (folder / "days-1.csv.gz").write_bytes(gzip.compress(b"p,w\n1,A\n2,B\n") + gzip.compress(b"3,C\n"))
    (folder / "days-2.csv.GZ").write_bytes(gzip.compress(b"p,w\n4,D\n"))
    (folder / "days-3.csv").write_bytes(b"p,w\n5,E\n")
    scan = scans.Scan(str(folder / "days-*"), "csv", {"p": "id", "w": "string"})
    assert sorted(rows_of(scans.opened(engine, scan))) == [(1, "A"), (2, "B"), (3, "C"), (4, "D"), (5, "E")]
    (folder / "days-2.csv.GZ").write_bytes(gzip.compress(b"w,p\n4,4\n"))
    with pytest.raises(dpf.InvalidArgument, match="path must be of files with the same first line, and that of 'days"):
        scans.opened(engine, scan)


def check_returns_on(engine, folder):
    """Check that a carriage return ends no row.

    pandas and Python's csv write it without quotes, and DuckDB took what one person typed for rows of many others.
    """
    others = "\r".join(f"{person},A" for person in range(100, 1_100))
    for name, note in (("without", "fine"), ("with", f"fine\r{others}")):
        people = "".join(f"{person},B,fine\n" for person in range(9))
        (folder / f"{name}.csv").write_bytes(f"p,w,note\n{people}9,B,{note}\n10,B,fine\n".encode())
        frame = scans.opened(engine, scans.Scan(str(folder / f"{name}.csv"), "csv", {"p": "id", "w": "string"}))
        assert sorted(rows_of(frame)) == [(person, "B") for person in range(11)]
        found = dpf.of(frame).n_units(epsilon=1e6, ledger=dpf.Ledger(epsilon=1e9, unit="p"))
        assert [round(units) for units in found["n_units"].to_list()] == [11]


FILES = ["a.", "b[1].", "b1.", ".hidden.", "in/c.", "in/.hidden.", "in/deep/d.", ".in/e.", "_in/f."]  # rows 0, 1, ...
NAMED = {
    "*.": [0, 1, 2],
    "**/*.": [0, 1, 2, 4, 6, 8],
    "**/**/*.": [0, 1, 2, 4, 6, 8],
    "*/../b*.": [1, 2],
    "b?1?.": [1],
    "[!b].": [0],
    "b[1].": [2],
    ".h*.": [3],
    "*/*.": [4, 8],
    "in": [4, 6],
    "i*": [4, 6],
    ".": [0, 1, 2, 4, 6],
}


def check_files_on(engine, format, pattern, folder):
    """Check that an engine reads the files that were checked and no others, however it reads patterns itself."""
    for row, name in enumerate(FILES):
        place = folder / f"{name}{format}"
        place.parent.mkdir(exist_ok=True, parents=True)
        table = pl.DataFrame({"x": [row]})
        table.write_csv(place) if format == "csv" else table.write_parquet(place)
    kinds = {"columns": {"x": "integer"}} if format == "csv" else {}
    path = str(folder / pattern) + (format if pattern.endswith(".") and pattern != "." else "")
    scan = scans.Scan(path, format, **kinds)
    frame = scans.opened(engine, scan)
    (folder / f"late.{format}").write_bytes((folder / f"a.{format}").read_bytes())  # in no list of files
    rows = rows_of(frame)
    assert sorted(row for (row,) in rows) == NAMED[pattern]


def check_folders_on(engine, format, folder):
    """Check that folder names are no columns: engines would read p=01 and p=1 as one number, and so as one unit."""
    table = pl.DataFrame({"x": [1.0]})
    for name in ("p=01", "p=1"):
        (folder / "stays" / name).mkdir(parents=True)
        write = table.write_parquet if format == "parquet" else table.write_csv
        write(folder / "stays" / name / f"a.{format}")
    kinds = {"columns": {"x": "number"}} if format == "csv" else {}
    frame = scans.opened(engine, scans.Scan(str(folder / "stays" / "*" / f"*.{format}"), format, **kinds))
    with pytest.raises(dpf.UnknownColumn, match="'p'"):
        dpf.of(frame).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1, unit="p"))
