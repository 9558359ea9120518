"""A report for sharing: findings first, text of the author, several releases, technical details last."""

from __future__ import annotations

import html
import re

import polars as pl
import pytest
from weekly_jobs import TEXT, job, lay_out, run

import dpframe as dpf
from dpframe.display.report import own_words, picture
from dpframe.jobs.running import planned
from dpframe.ledger.sql import is_there

PEOPLE = pl.DataFrame({"age": [31.0, 45.0, 62.0] * 100, "ward": ["A", "B", "A"] * 100})
REPORT = """
[report]
path = "out/week-${WEEK}.html"
title = "Week ${WEEK}"
releases = ["nights", "wards"]
order = ["nights"]
text.nights = "Most stays are **short**."
labels.wards.columns = {stays = "Stays"}
labels.wards.values.ward = {A = "Surgery"}
"""


@pytest.fixture(scope="module")
def results():
    with dpf.Ledger(epsilon=3, dataset="clinic") as ledger:
        wards = PEOPLE.dp.group_by("ward", keys=["A", "B"]).count(epsilon=0.5, label="Wards")
        ages = PEOPLE.dp.histogram("age", bins=[0, 50, 100], epsilon=0.25, label="Ages")
        usual = PEOPLE.dp.mode("ward", categories=["A", "B"], epsilon=0.25, label="Usual")
    return ledger, wards, ages, usual


def report(results, path, **options):
    """Return the HTML of a report without charts."""
    ledger, *releases = results
    ledger.report(path, *releases, charts=False, **options)
    return path.read_text(encoding="utf-8")


def test_weeks_of_one_label_are_told_apart_by_their_snapshots(tmp_path):
    ledger = dpf.Ledger(epsilon=3, path=tmp_path / "clinic.ledger")
    asked = {"epsilon": 0.5, "label": "Wards", "ledger": ledger}
    weeks = [
        PEOPLE.dp.group_by("ward", keys=["A", "B"]).count(snapshot=week, **asked) for week in ("2026-W47", "2026-W48")
    ]
    page = report((ledger, *weeks), tmp_path / "x.html")
    for week in ("2026-W47", "2026-W48"):
        assert f"Wards, {week}</h2>" in page


def test_what_was_found_stands_first_and_how_it_was_made_last(results, tmp_path):
    page = report(results, tmp_path / "x.html", title="Spring")
    found, trusted, budget, appendix = (
        page.index(words)
        for words in ("Number of rows by ward: from", 'id="trust-head"', "Spent epsilon 1", 'id="appendix-head"')
    )
    assert page.index("<h1>Spring</h1>") < found < trusted < budget < appendix
    visible = page[: page.index('<script type="application/json"')]
    for machinery in ("discrete Laplace, scale", results[1].dp.provenance["sha256"], "Charges", "basic accounting"):
        assert machinery not in visible[:appendix]
        assert machinery in visible[appendix:]
    assert visible[trusted:].count("in 95 of 100 cases the noise stays within it") == 1
    assert visible[trusted:budget].count("values of age outside [0, 100] are left out") == 1


def test_the_least_and_the_largest_number_are_told_without_margins(results, tmp_path):
    """They are the extremes of noisy numbers, so their margins of error would hold too seldom."""
    page = report(results, tmp_path / "x.html")
    counts = {ward: round(count) for ward, count in results[1].select("ward", "count").rows()}
    assert f"from {counts['B']} (B) to {counts['A']} (A)." in page


def test_own_words_stand_with_their_release_in_their_order(results, tmp_path):
    text = {"Ages": "Half are **over 50**.\n\n- one\n- two", "Wards": "A has *more*."}
    page = report(results, tmp_path / "x.html", text=text, order=["Usual", "Ages"])
    usual, ages, wards = (
        page.index(f'<h2 id="part{number}-head">{name}') for number, name in ((1, "Usual"), (2, "Ages"), (3, "Wards"))
    )
    assert usual < ages < page.index("Half are <strong>over 50</strong>.") < wards < page.index("A has <em>more</em>.")
    assert "<ul><li>one</li><li>two</li></ul>" in page
    assert "Number of rows by ward: from" not in page  # the given text replaces this sentence


def test_a_release_that_is_not_private_says_so_above_own_words(tmp_path):
    from dpframe import noise

    ledger = dpf.Ledger(epsilon=1)
    with noise.insecure_bits(1):
        found = PEOPLE.dp.count(epsilon=1, ledger=ledger, label="n")
    ledger.report(tmp_path / "x.html", found, charts=False, text={"n": "Mine."})
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.index("NOT PRIVATE") < page.index("Mine.")


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a\nb\n\nc", "<p>a b</p>\n<p>c</p>"),
        ("**a *b* c** `x*y*z`", "<p><strong>a <em>b</em> c</strong> <code>x*y*z</code></p>"),
        ("### A *b*\nc", "<h3>A <em>b</em></h3><p>c</p>"),
        ("They are:\n- a\n  b\n- c", "<p>They are:</p><ul><li>a b</li><li>c</li></ul>"),
        ("1. a\n2) b", "<ol><li>a</li><li>b</li></ol>"),
        ("2 * 3 * 4 and a_b_c", "<p>2 * 3 * 4 and a_b_c</p>"),
        ("", ""),
    ],
)
def test_a_little_markdown_is_known(markdown, html):
    assert own_words(markdown) == html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "**<img src=x onerror=alert(1)>**",
        "`<b>` & <i>",
        '[a](javascript:alert(1)) [b](https://example.org/"><script>)',
        "- <svg/onload=alert(1)>\n# <h1>",
        "</script><style>*{display:none}</style>",
        "a\u202eb\x1b[31m\x00",
    ],
)
def test_own_words_are_text_whatever_they_hold(hostile):
    made = own_words(hostile)
    tags = set(re.findall(r"<\s*([^\s>]*)", made))
    assert tags <= {mark + tag for tag in ("p", "ul", "ol", "li", "h3", "strong", "em", "code") for mark in ("", "/")}
    assert not re.search(r"<[^>]*=", made)
    assert not {"\u202e", "\x1b", "\x00"} & set(made)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"text": {"ages": "x"}}, dpf.InvalidArgument, "text must name labels of the releases, .*Did you mean 'Ages'"),
        ({"text": {"Ages": 3}}, dpf.InvalidType, "text must be a dict of text, not 3 for 'Ages'"),
        ({"text": "x"}, dpf.InvalidType, "text must be a dict of releases' labels"),
        ({"text": {"Ages": "x" * 100_001}}, dpf.InvalidArgument, "at most 100,000 characters"),
        ({"order": "Ages"}, dpf.InvalidType, "order must be a list of labels"),
        ({"order": ["Ages", "Ages"]}, dpf.InvalidArgument, "order must name each label once"),
        ({"order": ["Beds"]}, dpf.InvalidArgument, "order must name labels of the releases"),
        (
            {"labels": {"Ages": {"count": "n"}}},
            dpf.InvalidArgument,
            r"must have the parts \"columns\" and \"values\".* Write labels={'Ages': {\"columns\": {'count': 'n'}}}\.",
        ),
    ],
    ids=str,
)
def test_what_names_no_release_is_refused_and_nothing_is_written(results, tmp_path, options, kind, words):
    with pytest.raises(kind, match=words):
        report(results, tmp_path / "x.html", **options)
    assert not (tmp_path / "x.html").exists()


def test_notes_that_several_releases_have_are_said_once(tmp_path):
    ledger = dpf.Ledger(epsilon=3)
    with ledger:
        found = [PEOPLE.dp.histogram("age", bins=[0, 50, 60], epsilon=1, label=label) for label in ("a", "b")]
    ledger.report(tmp_path / "x.html", *found, charts=False)
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    shown = page[: page.index('id="appendix-head"')]
    found, trusted = shown.split("How far to trust these numbers</h2>")
    assert "values of age outside [0, 60] are left out" not in found
    assert "values of age outside [0, 60] are left out" in trusted


@pytest.mark.slow
def test_five_charts_are_below_400_kb(tmp_path):
    """A page once held each chart twice, light and dark, with ARIA labels that are never read on each bar: 1.25 MB."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    ledger, keys = dpf.Ledger(epsilon=9), {"ward": ["A", "B"], "age": [31.0, 45.0, 62.0]}
    with ledger:
        found = [
            PEOPLE.dp.histogram("age", bins=40, range=(0, 100), epsilon=1),
            PEOPLE.dp.group_by("ward", "age", keys=keys).count(epsilon=1, cube=True),
            PEOPLE.dp.group_by("ward", keys=["A", "B"]).mean("age", bounds=(0, 100), epsilon=1),
            PEOPLE.dp.group_by(dpf.bins("age", list(range(0, 105, 5))), "ward", keys={"ward": ["A", "B"]}).count(
                epsilon=1
            ),
            PEOPLE.dp.ecdf("age", bins=list(range(0, 105, 5)), epsilon=1),
        ]
    ledger.report(tmp_path / "x.html", *found)
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 6
    assert len(page.encode()) < 400_000
    names = set(re.findall(r"var\(--([\w-]+)\)", page.split("</style>", 1)[1]))
    for name in names:
        assert len(re.findall(rf"--{name}:#?\w", page)) == 2 or name in ("page", "ink", "faint")  # light and dark


def test_a_job_writes_a_report_of_its_releases(tmp_path):
    folder = lay_out(tmp_path)
    run(job(folder, text=TEXT + REPORT))
    page = (folder / "out" / "week-w1.html").read_text(encoding="utf-8")
    assert "<h1>Week w1</h1>" in page
    assert page.index("Most stays are <strong>short</strong>.") < page.index("Surgery")
    assert "Stays ±" in page
    assert "Spent epsilon 0.5 of epsilon 1" in page
    told = []
    run(job(folder), told.append)
    assert "wrote week-${WEEK}.html" in told or "wrote week-w1.html" in told
    line = (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert '"release": "wards, nights", "path": "out/week-' in line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'releases = ["nights", "wards"]',
            'releases = ["knights"]',
            "releases must name labels .*Did you mean 'nights'",
        ),
        ('releases = ["nights", "wards"]', "releases = []", "releases must be a list of labels"),
        ('order = ["nights"]', 'order = ["beds"]', "order must name labels"),
        ("text.nights", "text.beds", "text must name labels"),
        ('"Most stays are **short**."', "3", "text must be a table of text, not 3"),
        ("week-${WEEK}.html", "week-${WEEK}.pdf", "path must end in .html"),
        ("week-${WEEK}.html", "nights-${WEEK}.csv", "path must"),
        ('title = "Week ${WEEK}"', 'name = "Week ${WEEK}"', "'name' is not a key"),
        ('columns = {stays = "Stays"}', 'columns = {beds = "Stays"}', "labels of 'wards' must name its columns"),
        ("labels.wards.values.ward", "labels.wards.value.ward", 'must have the parts "columns" and "values"'),
        ("labels.wards.values.ward =", "labels.wards.values =", "labels of 'wards' must name its columns"),
        ("labels.wards.values.ward", "labels.wards.values.stays", "labels of 'wards' must name its columns of keys"),
        ('columns = {stays = "Stays"}', "columns = {stays = 3}", "labels.wards.columns.stays must be text, not 3"),
        ('columns = {stays = "Stays"}', 'columns = {stays = ""}', "labels.wards.columns.stays must be text, not ''"),
        (
            'columns = {stays = "Stays"}',
            'columns = {stays = "\\u0000"}',
            "columns.stays must be text that UTF-8 can write",
        ),
        ("labels.wards.values.ward = {", 'labels.wards.values = {ward = "A"}  # {', "values.ward must be a table"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_charge(old, new, words, tmp_path):
    folder = lay_out(tmp_path)
    with pytest.raises((dpf.InvalidArgument, dpf.InvalidType), match=rf"(?s)\[report\].*{words}"):
        planned(job(folder, text=TEXT + REPORT.replace(old, new)), charge=False)
    assert not is_there(folder / "clinic.ledger")


def test_a_job_writes_workbooks(tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    folder = lay_out(tmp_path)
    more = '\n[[output]]\nrelease = "wards"\npath = "out/wards.xlsx"\n'
    run(job(folder, text=TEXT + more))
    book = openpyxl.load_workbook(folder / "out" / "wards.xlsx")
    assert book.sheetnames == ["Result", "Notes"]
    assert [cell.value for cell in book["Result"]["A"]][3:] == ["ward", "A", "B", "C"]


def test_margins_that_count_the_sample_are_not_said_to_leave_it_out(tmp_path):
    halves = PEOPLE.with_columns(arm=pl.Series(["x", "y"] * 150))
    ledger = dpf.Ledger(epsilon=99)
    arms = halves.dp.group_by("arm", keys=["x", "y"]).agg(n=dpf.count(), denoise=None, epsilon=9, ledger=ledger)
    compared = dpf.compare(arms, "x", "y", by="arm")
    ledger.report(tmp_path / "both.html", arms, compared, charts=False)
    ledger.report(tmp_path / "compared.html", compared, charts=False)
    both, alone = ((tmp_path / name).read_text(encoding="utf-8") for name in ("both.html", "compared.html"))
    assert "the margins of error do not include that" in both
    assert "include the noise and the chance of who is in the data" in both
    assert "do not include that" not in alone
    assert "confidence interval of the noise" in both
    assert "<h3>Noise</h3>" not in alone  # the section would be empty
    assert "±: 95% margin of error (noise)" in both
    assert "95% confidence interval (noise and sample)" in alone


def test_a_page_says_no_note_twice_and_no_verb_that_a_reader_lacks(tmp_path):
    pytest.importorskip("altair")
    ledger = dpf.Ledger(epsilon=99)
    arms = PEOPLE.dp.group_by("ward", keys=["A", "B"]).agg(
        m=dpf.mean("age", bounds=(0, 40)), population=True, epsilon=9, ledger=ledger
    )
    bins = PEOPLE.dp.histogram("age", bins=[30, 50, 60], epsilon=9, ledger=ledger)
    for name, result in (
        ("arms", arms),
        ("bins", bins),
        ("total", bins.dp.total()),
        ("b", dpf.compare(arms, "A", "B")),
    ):
        result.dp.write_html(tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        visible = page[: page.index('id="appendix-head"')]
        assert ".dp." not in visible
        assert visible.count("are left out") <= 1
    ledger.report(tmp_path / "usual.html", PEOPLE.dp.mode("ward", categories=["A", "B"], epsilon=9, ledger=ledger))
    assert "of the noise:" not in (tmp_path / "usual.html").read_text(encoding="utf-8")


def test_maps_have_one_name_for_their_gradients_however_many_were_drawn(tmp_path):
    """vl-convert numbers gradients across all pictures of a process, so light, dark and later pictures would differ."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    frame = pl.DataFrame({"x": [0.5, 1.5], "y": [1.0, 2.0]})
    edges = [[0, 1, 2], [0, 1, 2]]
    found = frame.dp.histogram(["x", "y"], bins=edges, epsilon=1, ledger=dpf.Ledger(epsilon=9))
    for page in ("one.html", "other.html"):
        found.dp.write_html(tmp_path / page)
    assert "gradient_0" in (tmp_path / "other.html").read_text(encoding="utf-8")


def test_a_picture_changes_no_key_that_reads_like_a_part_of_it(tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    keys = ["gradient_7", "gradient_3", "url(#a)", 'id="x"', 'fill="red"', 'href="#b"']
    frame = pl.DataFrame({"k": keys})
    frame.dp.group_by("k", keys=keys).count(epsilon=1, ledger=dpf.Ledger(epsilon=9)).dp.write_html(tmp_path / "k.html")
    page = (tmp_path / "k.html").read_text(encoding="utf-8")
    drawn = page[page.index("<svg") : page.index("</svg>")]
    texts = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", drawn)]
    assert [text for text in texts if text in keys] == keys


def test_a_picture_has_other_colors_on_a_dark_page():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    with dpf.Ledger(epsilon=1):
        chart = pl.DataFrame({"g": ["a", "b"]}).dp.group_by("g", keys=["a", "b"]).count(epsilon=1).dp.plot()
    drawn = picture(chart.to_dict(), "counts", "c")
    light, dark = re.findall(r":root\{([^}]*)\}", drawn)
    assert [name for name, _ in re.findall("(--c[0-9]+):(#?[^;]+);", light)] == re.findall("(--c[0-9]+):", dark)
    assert light != dark
    assert "--c0" in light


def test_releases_of_one_label_have_headings_of_their_own(tmp_path):
    with dpf.Ledger(epsilon=3) as ledger:
        counted = PEOPLE.dp.group_by("ward", keys=["A", "B"]).count(epsilon=0.5, label="Tables")
        mean = PEOPLE.dp.mean("age", bounds=(0, 100), epsilon=0.5, label="Tables")
        other = PEOPLE.dp.count(epsilon=0.5, label="All")
    page = report((ledger, counted, mean, other), tmp_path / "x.html")
    titles = ["Tables: number of rows by ward", "Tables: mean of age", "All"]
    for number, title in enumerate(titles, 1):
        assert f'<a href="#part{number}">{title}</a>' in page
        assert f'<h2 id="part{number}-head">{title}</h2>' in page


def test_a_page_of_joined_releases_has_the_names_of_all(tmp_path):
    with dpf.Ledger(epsilon=3):
        halves = [PEOPLE.dp.count(epsilon=0.5, label=name) for name in ("first", "second")]
    path = tmp_path / "x.html"
    for both, heading in (
        (dpf.concat(halves, names=["H1", "H2"]), "H1, H2"),
        (dpf.concat(halves), "first, second"),
    ):
        both.dp.write_html(path, charts=False)
        page = path.read_text(encoding="utf-8")
        assert f"<h1>{heading}</h1>" in page
        assert f"<title>{heading}</title>" in page
