"""Job files: a job asks for exactly what its file says, and a wrong file is refused with the reason and the place."""

from __future__ import annotations

import inspect
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import dpframe as dpf
from dpframe.accessor.private_frame import PrivateFrame
from dpframe.jobs import job_file, running
from dpframe.jobs.job import Table, Variables, words_of
from dpframe.jobs.output_formats import FORMATS
from dpframe.privacy import Price
from dpframe.queries import statistics

ROOT = Path(__file__).resolve().parents[2]
TEXT = """engine = "polars"
snapshot = "${WEEK}"

[source]
path = "stays.parquet"

[ledger]
path = "clinic.ledger"
unit = "patient"
epsilon = 1.5

[[release]]
label = "wards"
verb = "agg"
group_by = "ward"
keys = ["A", {missing = true}]
statistics.n = {statistic = "count"}
statistics.cost = {statistic = "sum", column = "cost", bounds = [0, 0.5]}
max_rows = 2
share = "1/52"

[[release]]
label = "weeks"
verb = "count"
group_by = [{column = "age", bins = [0, 18, 65]}, "day"]
keys = {day = {first = 2026-01-05, last = 2026-03-01, every = "1w"}}
epsilon = 0.1
denoise = "none"

[[output]]
release = "wards"
path = "out/wards.md"
"""


def read(tmp_path, text, said=("WEEK=w1",), **environment):
    path = tmp_path / "release.toml"
    path.write_text(text, encoding="utf-8")
    return job_file.read(path, said, environment)


def test_a_file_is_read_as_it_is_written(tmp_path):
    job = read(tmp_path, TEXT)
    wards, weeks = job.questions
    assert (job.engine, job.scan.path, job.scan.format) == ("polars", str(tmp_path / "stays.parquet"), "parquet")
    assert job.ledger.unit == dpf.PrivacyUnit("patient")
    assert job.ledger.terms == {"epsilon": Decimal("1.5")}
    assert (wards.verb, wards.group_by, wards.keys) == ("agg", ("ward",), ["A", None])
    assert wards.statistics == {"n": dpf.count(), "cost": dpf.sum("cost", bounds=(0, 0.5))}
    assert wards.arguments == {"share": Fraction(1, 52), "max_rows": 2, "label": "wards", "snapshot": "w1"}
    assert weeks.group_by == (dpf.bins("age", [0, 18, 65]), "day")
    assert weeks.keys == {"day": dpf.dates(date(2026, 1, 5), date(2026, 3, 1), every="1w")}
    assert weeks.arguments["epsilon"] == Decimal("0.1")
    assert weeks.arguments["denoise"] is None
    (output,) = job.outputs
    assert (output.label, output.path, output.format) == ("wards", tmp_path / "out" / "wards.md", "markdown")


def test_the_snapshot_of_a_release_goes_before_that_of_its_job(tmp_path):
    text = TEXT.replace('label = "weeks"', 'label = "weeks"\nsnapshot = "w0"')
    assert [question.snapshot for question in read(tmp_path, text).questions] == ["w1", "w0"]


def test_hours_are_times_of_toml(tmp_path):
    """They have no offset, so they are in the time zone of the column."""
    text = TEXT.replace(
        "first = 2026-01-05, last = 2026-03-01", "first = 2026-03-29T00:00:00, last = 2026-03-29T23:00:00"
    )
    assert text != TEXT
    job = read(tmp_path, text.replace('every = "1w"', 'every = "1h"'))
    assert job.questions[1].keys == {"day": dpf.dates("2026-03-29T00:00", "2026-03-29T23:00", every="1h")}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('engine = "polars"', "", "release.toml: engine must be given"),
        ('"polars"', '"pollars"', "engine must be one of polars, duckdb, spark, not 'pollars'. Did you mean 'polars'?"),
        ("[source]", "[sorce]", "release.toml: 'sorce' is not a key of this table. Did you mean 'source'?"),
        ("engine =", "engine", "release.toml: a job must be a TOML file"),
        ('path = "stays.parquet"', "", "[source]: exactly one of path, table and sql must be given"),
        ('path = "stays.parquet"', 'path = "stays.csv"', "[source]: columns must be given for a CSV file"),
        (
            'path = "stays.parquet"',
            'path = "file:///data/*.parquet"',
            "[source]: path must be the name of files, not a URL of local ones such as 'file:///data/*.parquet'",
        ),
        ('path = "stays.parquet"', 'table = "stays"', "table must be left out with engine = 'polars'"),
        ('path = "stays.parquet"', 'path = "stays.xlsx"\nformat = "excel"', "format must be one of parquet, csv"),
        ('path = "stays.parquet"', 'path = "s.csv"\ncolumns = {a = "text"}', "the type of column 'a' must be one of"),
        ('unit = "patient"', "", "[ledger]: unit must be given"),
        ('unit = "patient"', 'unit = "patient"\neach_row = true', "[ledger]: unit and each_row must not both be given"),
        ('unit = "patient"', 'unit = "patient"\neach_row = false', "[ledger]: each_row must be true, not "),
        ('unit = "patient"', 'unit = ["a", "a"]', "[ledger]: unit must name each column once"),
        ('unit = "patient"', "unit = []", "[ledger]: unit must name at least one column"),
        ('unit = "patient"', 'unit = "patient"\nneighbors = "nobody"', "[ledger]: neighbors must"),
        ("epsilon = 1.5", "", "[ledger]: epsilon must be given"),
        ("epsilon = 1.5", "epsilon = 1.5\nmax_rows = 2", "[ledger]: 'max_rows' is not a key"),
        ('path = "clinic.ledger"', "", "[ledger]: path must be given, or url"),
        ('path = "clinic.ledger"', 'path = "a"\nurl = "b"', "[ledger]: path and url must not both be given: each is"),
        ('label = "wards"', "", "[[release]] 1: label must be given"),
        ('label = "weeks"', 'label = "wards"', "label must differ from that of every other release"),
        ('verb = "agg"', 'verb = "ag"', "[[release]] 1 'wards': verb must be one of"),
        ('verb = "agg"', 'verb = "group_by"', "verb must be one of"),
        ('verb = "agg"', 'verb = "stream"', "not 'stream'. Release streams in Python, with dpf.Stream."),
        ('verb = "agg"', 'verb = "agg"\nsnapshot = 2026-11-22', "not empty, not 2026-11-22. Write it in quotes."),
        ('verb = "agg"', 'verb = "agg"\nsnapshot = 47', "must be a string that is not empty, not 47. Write it in"),
        ("epsilon = 0.1", "epsillon = 0.1", "'weeks': 'epsillon' is not a key of this table. Did you mean 'epsilon'?"),
        ("epsilon = 0.1", "epsilon = [0.1, 1]", "epsilon must be one number"),
        ("epsilon = 0.1", "ledger = 1", "'ledger' is not a key"),
        ('"1/52"', '"1/0"', "share must be a number or a fraction, not '1/0'"),
        ('"1/52"', '"__import__"', "share must be a number or a fraction"),
        ("epsilon = 0.1", f"epsilon = 1{'0' * 4400}", "a job must be a TOML file, and this one cannot be read"),
        ("epsilon = 0.1", f"keys = {'[' * 3000}{']' * 3000}", "a job must be a TOML file, and this one cannot be read"),
        ("epsilon = 0.1", f"{'a.' * 900}a = {{ {'a.' * 900}a = 1 }}", "tables must not lie in so many others"),
        ("wards.md", "wards\\u0000.md", "path must not hold the character 0"),
        ("clinic.ledger", "clinic\\u0000.ledger", "path must not hold the character 0"),
        (', bounds = [0, 0.5]', "", "statistics.cost: bounds must be given"),
        (', bounds = [0, 0.5]', ", bounds = [1, 0]", "statistics.cost: bounds must be two numbers with lower < upper"),
        ('statistic = "sum"', 'statistic = "fieller"', "statistic must be one of"),
        ('statistic = "sum", ', "", "statistics.cost: statistic must be given"),
        ('statistics.n = {statistic = "count"}', 'n = {statistic = "count"}', "'n' is not a key"),
        ('group_by = "ward"', "", "keys must come with group_by"),
        ('column = "age", ', "", "column must be given"),
        ('every = "1w"', 'every = "1f"', "every must"),
        ('snapshot = "${WEEK}"', 'audit = "${WEEK}"', "snapshot must be given"),
        ('release = "wards"', 'release = "ward"', "release must be the label of a release, not 'ward'. Did you mean"),
        ("wards.md", "wards.doc", "path must end in .parquet, .csv"),
        ("${WEEK}", "${DAY}", "${DAY} must have a value"),
        ("${WEEK}", "${WEEK; rm}", "a variable must be written as ${NAME}"),
        ("${WEEK}", "w1", "--set WEEK=... must name a variable of the file"),
    ],
    ids=lambda value: value[:40].replace("\n", " "),
)  # fmt: skip
def test_what_breaks_a_rule_is_refused_in_words_with_its_place(old, new, words, tmp_path):
    assert old in TEXT
    with pytest.raises(dpf.InvalidArgument) as caught:
        read(tmp_path, TEXT.replace(old, new))
    assert words in str(caught.value)
    assert str(caught.value).startswith("release.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["release.toml"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (", bounds = [0, 0.5]", "", "Write for instance bounds=[0, 100]."),
        (", bounds = [0, 0.5]", ", bounds = [1, 0]", "not [1, 0]. Write for instance bounds=[0, 100]."),
        ('engine = "polars"', 'engine = "polars"\nchecks = 2', 'must be "auto", true, false, or a share'),
        (
            "epsilon = 1.5",
            'epsilon = 1.5\naccounting = "zcdp"',
            "must be 'basic', 'gdp', 'rdp' or left out, not 'zcdp'",
        ),
        ("[ledger]", "[[ledger]]", "ledger must be a table. Write [ledger] above its keys."),
        ("[[output]]", '[report]\nreleases = ["x"]\n[[output]]', "['wards', 'weeks'], not 'x'. Write one of these."),
    ],
)
def test_a_refusal_shows_what_to_write_in_toml(old, new, words, tmp_path):
    assert old in TEXT
    with pytest.raises(dpf.DpframeError) as caught:
        running.planned(read(tmp_path, TEXT.replace(old, new)), charge=False)
    assert words in words_of(caught.value, Variables({}, {}))


@pytest.mark.parametrize(
    ("python", "toml"),
    [
        ("(epsilon=Decimal('0.5'), share=Decimal('0.1'))", "(epsilon=0.5, share=0.1)"),
        ("share=0.25 or share=Fraction(1, 52)", 'share=0.25 or share="1/52"'),
        ('keys={"ward": ["A", "B"], "sex": ["f"]}', 'keys={"ward" = ["A", "B"], "sex" = ["f"]}'),
        ('as in marginals(["age", "cost"], keys=...).', 'as in columns = ["age", "cost"].'),
        ('as in histogram("age", bins=...).', 'as in column = "age".'),
        ('as in contributions(by="ward", epsilon=0.1).', 'as in by = "ward".'),
        ('as in top_k("ward", k=10, categories=[...]).', "as in k = 10."),
        ("or a dict with an error for each.", "or a table with an error for each."),
        (
            "dpf.discover needs it. Write for instance dpf.Ledger(epsilon=2, delta=1e-6, keys_delta=1e-7).",
            "{discover = {}} needs it. Write for instance keys_delta = 1e-7 in [ledger].",
        ),
        ("Say where: dpf.Ledger.open(path, head=...).", 'Write head = "..." in [ledger].'),
        ('bounds={"age": (0, 120), "cost": (0, 5_000)}', 'bounds={"age" = [0, 120], "cost" = [0, 5_000]}'),
        ('where={"ward": ["A"], "age": (18, None)}', 'where={"ward" = ["A"], "age" = {low = 18}}'),
        ("bins=[20, 30], range=[(0, 100), (0, 5_000)]", "bins=[20, 30], range=[[0, 100], [0, 5_000]]"),
        ("bins=range(0, 101, 10), or bins=20, range=(0, 100)", "bins=20, range=[0, 100]"),
        ('keys=dpf.dates("a", "b", every="1w")', 'keys={first = "a", last = "b", every = "1w"}'),
        ("keys=dpf.discover(delta=1e-7)", "keys={discover = {delta = 1e-7}}"),
        ("denoise must be 'nonnegative' or None for", "denoise must be 'nonnegative' or \"none\" for"),
        (
            "dataset must be 'a', as in the ledger at 'b', not None.",
            "dataset must be 'a', as in the ledger at 'b', not left out.",
        ),
        (
            "release.toml, [[release]] 1 'None or True': x must be 1",
            "release.toml, [[release]] 1 'None or True': x must be 1",
        ),
    ],
)
def test_python_in_a_refusal_is_said_in_toml(python, toml):
    assert words_of(dpf.InvalidArgument(python), Variables({}, {})) == toml


def test_a_secret_that_looks_like_python_is_hidden(tmp_path):
    """It is hidden as it was written, before the words change."""
    with pytest.raises(dpf.DpframeError) as caught:
        read(tmp_path, TEXT.replace('engine = "polars"', 'engine = "${PW}"'), PW="None=(1, 2) or True")
    assert "engine must be one of polars, duckdb, spark, not ${PW}." in str(caught.value)


def test_a_share_of_a_billion_digits_is_not_worked_out(tmp_path):
    (question, *_) = read(tmp_path, TEXT.replace('"1/52"', '"1e999999999"')).questions
    with pytest.raises(dpf.InvalidArgument, match=r"share must be a number of at most 1,000 digits"):
        Price.of(None, None, question.arguments["share"])


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(dpf.InvalidArgument, match="JOB must be a file that can be read"):
        job_file.read(tmp_path / "none.toml")


@pytest.mark.parametrize("pair", ["WEEK", "=w1", "WEEK=", "a b=c"])
def test_a_value_is_said_as_name_and_value(pair, tmp_path):
    with pytest.raises(dpf.InvalidArgument, match="--set must be NAME=VALUE"):
        read(tmp_path, TEXT, [pair])


def test_the_environment_fills_in_what_is_not_said_and_is_hidden(tmp_path):
    text = TEXT.replace('path = "clinic.ledger"', 'url = "postgresql://me:${PW}@host/db"').replace("w1", "w")
    job = read(tmp_path, text, PW="s3cret-w1", WEEK="w2")
    assert job.ledger.place == "postgresql://me:s3cret-w1@host/db"
    assert job.questions[0].snapshot == "w1"
    assert job.variables.hidden("no s3cret-w1 of w1") == "no ${PW} of w1"
    assert "s3cret" not in repr(job)
    short = read(tmp_path, text, PW="it")
    assert short.variables.hidden("it is written") == "${PW} is written"


def test_a_secret_that_begins_like_another_is_hidden_whole(tmp_path):
    text = TEXT.replace('path = "clinic.ledger"', 'url = "postgresql://${NAME}:${PW}@host/db"')
    job = read(tmp_path, text, NAME="clinic", PW="clinic-s3cret")
    assert job.variables.hidden("no clinic-s3cret of clinic") == "no ${PW} of ${NAME}"


@pytest.mark.parametrize("ends", ["", "'", '"', "\\"])
def test_214_what_the_environment_filled_in_is_hidden_where_an_error_cuts_it(tmp_path, ends):
    secret = f"postgresql+psycopg://me:s3cret{ends}-of-the-clinic@host.example.org/wards-and-weeks"
    for old, new in (
        ('path = "clinic.ledger"', 'url = ["${URL}"]'),
        ('label = "wards"', 'label = ["a", ["${URL}"]]'),
        ('engine = "polars"', 'engine = ["${URL}", 1]'),
    ):
        path = tmp_path / "release.toml"
        path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(dpf.DpframeError) as caught:
            job_file.read(path, ["WEEK=w1"], {"URL": secret})
        assert "${URL}" in str(caught.value)
        assert "post" not in str(caught.value)


@pytest.mark.parametrize("other", ["out/wards.md/b.md", "out"])
def test_outputs_that_could_not_both_be_written_are_refused(tmp_path, other):
    text = f'{TEXT}\n[[output]]\nrelease = "wards"\npath = "{other}"\nformat = "markdown"\n'
    with pytest.raises(dpf.InvalidArgument, match="path must be apart from the other outputs, and"):
        read(tmp_path, text)


@pytest.mark.parametrize("name", ["clinic.ledger", "clinic.ledger.head"])
def test_another_name_of_the_ledger_is_no_audit_trail(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    try:
        (tmp_path / "trail.jsonl").hardlink_to(tmp_path / name)
    except OSError:
        pytest.skip("no links here")
    with pytest.raises(dpf.InvalidArgument, match="audit must be a file of its own"):
        read(tmp_path, f'audit = "trail.jsonl"\n{TEXT}')


def test_a_job_takes_what_the_verbs_of_python_take():
    for verb in job_file.VERBS:
        takes = set(job_file.parameters_of(getattr(PrivateFrame, verb)))
        assert {"epsilon", "label", "snapshot"} <= takes, verb
        assert not takes & {"ledger", "unit", "self"}
    functions = {name for name in dpf.__all__ if inspect.isfunction(getattr(dpf, name))}
    public = {name for name in functions if getattr(dpf, name).__module__.startswith(f"{statistics.__name__}.")}
    assert set(job_file.STATISTICS) == public > {"count", "sum", "mean", "ratio"}


def test_a_condition_is_said_by_values_and_ends(tmp_path):
    conditions = (
        'where = {ward = ["A", {missing = true}], age = {low = 18}, day = {low = 2026-01-05, high = 2026-02-02}}'
    )
    text = TEXT.replace('{statistic = "count"}', f'{{statistic = "count", {conditions}}}')
    asked = read(tmp_path, text).questions[0].statistics["n"]
    where = {"ward": ["A", None], "age": (18, None), "day": (date(2026, 1, 5), date(2026, 2, 2))}
    assert asked == dpf.count(where=where)
    with pytest.raises(dpf.InvalidArgument, match=r"where 'age': 'hihg' is not a key.* Did you mean 'high'\?"):
        read(tmp_path, text.replace("age = {low = 18}", "age = {low = 18, hihg = 65}"))


def test_weights_and_bounds_by_group_are_lists_and_tables():
    """They are read, and refused, as the arguments of the Python function are."""
    of_pair = Table("release", {"statistic": "mean", "column": "x", "bounds": [0, 5]})
    weighted = Table("release", {**of_pair.values, "weight": "w", "weight_bounds": [0, 4]})
    grouped = Table("release", {**of_pair.values, "bounds": {"A": [0, 5], "B": [0, 9]}})
    assert job_file._statistic(weighted) == dpf.mean("x", bounds=(0, 5), weight="w", weight_bounds=(0, 4))
    assert job_file._statistic(grouped) == dpf.mean("x", bounds={"A": (0, 5), "B": (0, 9)})
    assert job_file._statistic(of_pair) == dpf.mean("x", bounds=(0, 5))
    with pytest.raises(dpf.MissingArgument, match="weight must be given"):
        job_file._statistic(Table("release", {**of_pair.values, "weight_bounds": [0, 4]}))


def test_everything_else_is_the_last_of_the_keys(tmp_path):
    text = TEXT.replace('keys = ["A", {missing = true}]', 'keys = ["A", {missing = true}, {rest = true}]')
    assert read(tmp_path, text).questions[0].keys == ["A", None, dpf.REST]


def test_every_key_is_on_the_page():
    page = (ROOT / "docs" / "reference" / "job-file.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z_]+)`", page, re.MULTILINE))
    keys = {*job_file.TOP, *job_file.OF_SOURCE, *job_file.OF_LEDGER, *job_file.OF_OUTPUT, *job_file.OWN, "statistics"}
    assert keys - named == set()
    assert all(f"`{kind}`" in page for kind in FORMATS)


@pytest.mark.parametrize("page", ["docs/operate/jobs.md", "docs/reference/job-file.md"])
def test_the_jobs_on_the_pages_are_jobs(page, tmp_path):
    blocks = re.findall(r"^```toml\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    whole = [block for block in blocks if "[[release]]" in block and "[ledger]" in block]
    assert whole
    for block in whole:
        assert read(tmp_path, block, [], WEEK="2026-W47", CLINIC_LEDGER="clinic.ledger").questions


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("path", "clinic.ledger"),
        ("path", "clinic.ledger.head"),
        ("path", "stays.parquet"),
        ("path", "../{folder}/release.toml"),
        ("path", "clinic.ledger.head.new"),
        ("audit", "clinic.ledger"),
        ("audit", "clinic.ledger-wal"),
        *(("path", f"other.head{end}") for end in ("", ".lock", ".new")),
    ],
)
@pytest.mark.parametrize("start", ["", "sqlite:///{folder}/"], ids=["path", "url"])
def test_nothing_is_written_over_what_the_job_needs(tmp_path, key, place, start):
    (tmp_path / "stays.parquet").touch()
    place, start = place.format(folder=tmp_path.name), start.format(folder=tmp_path)
    more = f'\n[[output]]\nrelease = "wards"\npath = "{place}"\nformat = "parquet"\n'
    ledger = f'{"url" if start else "path"} = "{start}clinic.ledger"\nhead = "{start}other.head"'
    text = TEXT.replace('path = "clinic.ledger"', ledger)
    text = text + more if key == "path" else f'audit = "{place}"\n' + text
    with pytest.raises(dpf.InvalidArgument, match=f"{key} must be a file of its own"):
        read(tmp_path, text)


def test_no_refusal_of_a_file_shows_the_environment(tmp_path):
    secret = "AKIAverysecret99"
    spark = '[source]\nsettings = {"a.secret" = "${PW}", "spark.executor.cores" = 4}'
    for wrong in (TEXT.replace("[source]", spark), TEXT.replace('"polars"', '"${PW}"')):
        with pytest.raises(dpf.DpframeError) as refused:
            read(tmp_path, wrong, PW=secret)
        assert "AKIA" not in str(refused.value)


@pytest.mark.parametrize("place", ['table = "stays"', 'sql = "select 1"'])
def test_duckdb_reads_tables_of_a_file_that_is_named(tmp_path, place):
    text = TEXT.replace('"polars"', '"duckdb"').replace('path = "stays.parquet"', place)
    with pytest.raises(dpf.MissingArgument, match=r"\[source\]: database must be given: the one file that"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "name", ["spark.jars", "spark.plugins", "spark.driver.extraJavaOptions", "spark.sql.runSQLOnFiles"]
)
def test_settings_of_spark_name_no_code(tmp_path, name):
    text = TEXT.replace('"polars"', '"spark"').replace("[source]", f'[source]\nsettings = {{"{name}" = "x"}}')
    with pytest.raises(dpf.InvalidArgument, match=f"settings must be sizes, .*, not '{name}'.*spark-defaults.conf"):
        read(tmp_path, text)
    sizes = 'settings = {"spark.master" = "local[2]", "spark.executor.memory" = "2g"}'
    job = read(tmp_path, TEXT.replace('"polars"', '"spark"').replace("[source]", f"[source]\n{sizes}"))
    assert job.scan.settings["spark.executor.memory"] == "2g"


def test_ids_are_not_read_as_floats(tmp_path):
    """As floats, two ids of 17 or more digits could become equal, and two people one privacy unit."""
    text = TEXT.replace('path = "stays.parquet"', 'path = "stays.csv"\ncolumns = {patient = "number", ward = "string"}')
    with pytest.raises(
        dpf.InvalidArgument, match="the type of column 'patient' must keep each value of the unit apart"
    ):
        read(tmp_path, text)


def test_no_column_of_a_unit_is_read_as_floats(tmp_path):
    columns = 'path = "stays.csv"\ncolumns = {household = "integer", member = "integer", ward = "string"}'
    text = TEXT.replace('path = "stays.parquet"', columns).replace('"patient"', '["household", "member"]')
    assert read(tmp_path, text).scan.columns == {"household": "id", "member": "id", "ward": "string"}
    with pytest.raises(dpf.InvalidArgument, match="the type of column 'member' must keep each value of the unit apart"):
        read(tmp_path, text.replace('member = "integer"', 'member = "number"'))
