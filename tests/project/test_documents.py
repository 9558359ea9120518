"""The code in documents, docstrings and examples runs, and the provenance matches its schema."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import itertools
import json
import pkgutil
import re
import runpy
import sys
import types
from datetime import date
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
WITH_NUMBA = {"dpframe.engines.compiled.loops"}
NOT_HERE = set() if importlib.util.find_spec("numba") else WITH_NUMBA
COMMANDS = () if importlib.util.find_spec("typer") else ("dpframe.cli.", "dpframe.__main__")
OPTIONAL = COMMANDS if importlib.util.find_spec("mypy") else (*COMMANDS, "dpframe.mypy")
MODULES = sorted({found.name for found in pkgutil.walk_packages(dpf.__path__, "dpframe.")} - NOT_HERE)
MODULES = [name for name in MODULES if not name.startswith(OPTIONAL)]
NEEDS = {
    "import pandas": "pandas",
    "import dask": "dask",
    ".plot()": "altair",
    ".table()": "great_tables",
    "statsmodels": "statsmodels",
    "dpframe.cli": "typer",
    '"pandas"': "pandas",
}
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|work|Users|mnt|opt|var)/|[A-Z]:\\")

relative = lambda path: str(path.relative_to(ROOT))  # noqa: E731


def skip_where_missing(code: str) -> None:
    """Skip the test if the code needs a package that is not installed."""
    for words, module in NEEDS.items():
        if words in code:
            pytest.importorskip(module)


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("document", [document for document in DOCUMENTS if blocks(document, "python")], ids=relative)
def test_every_block_of_a_document_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks(document, "python")
    skip_where_missing("".join(code))
    module = types.ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", module)  # so that its definitions can be pickled, as from __main__
    namespace = vars(module)
    pairs = with_outputs(document)
    assert [block for block, _, _ in pairs] == code
    for number, (block, shown, is_shown) in enumerate(pairs, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, f"{document.name}, block {number}", "exec", dont_inherit=True), namespace)
        if shown is not None:
            assert masked(printed.getvalue()) == masked(shown), f"block {number}"
        assert is_shown or not printed.getvalue(), f"block {number} prints what the page does not show"


def with_outputs(document: Path) -> list[tuple[str, str | None, bool]]:
    """Return each block of Python, the block of text right after it to compare, and whether output follows."""
    text = document.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    found: list[tuple[str, str | None, bool]] = []
    for block, after in itertools.zip_longest(blocks, blocks[1:]):
        if block[1] == "python":
            rest = text[block.end() :].lstrip()
            shown = after[2] if after is not None and rest.startswith("```text\n") else None
            found.append((block[2], shown, rest.startswith(("```text\n", "```json\n", "```\n", "|"))))
    return found


def masked(text: str) -> str:
    """Return a text without its numbers, which noise changes, and without the widths of its columns."""
    text = re.sub(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?", "#", text)
    return " ".join(re.sub(r"[-─═┄]{2,}", "-", text).split())


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_runs_and_holds_its_outputs(notebook):
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    code = ["".join(cell["source"]) for cell in cells]
    skip_where_missing("".join(code))
    namespace: dict[str, object] = {}
    for number, block in enumerate(code, start=1):
        exec(compile(block, f"{notebook.name}, cell {number}", "exec", dont_inherit=True), namespace)
    assert any("image/svg+xml" in output.get("data", {}) for cell in cells for output in cell["outputs"])
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])


def docstring_tests() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(name) for name in ["dpframe", *MODULES]]
    found = {test.name: test for module in modules for test in finder.find(module) if test.examples}
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("test", docstring_tests(), ids=lambda test: test.name)
def test_every_docstring_runs(test):
    skip_where_missing(test.docstring)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


def public_objects() -> dict[str, object]:
    rooms = {"audit": dpf.audit, "denoise": dpf.denoise, "local": dpf.local}
    found = {name: getattr(dpf, name) for name in dpf.__all__ if name not in ("__version__", *rooms)}
    return found | {f"{room}.{name}": getattr(rooms[room], name) for room in rooms for name in rooms[room].__all__}


@pytest.mark.parametrize("name", public_objects())
def test_every_public_name_has_an_example(name):
    documentation = inspect.getdoc(public_objects()[name])
    assert documentation is not None
    assert ">>>" in documentation


@pytest.mark.parametrize("name", [name for name, public in public_objects().items() if inspect.isclass(public)])
def test_every_public_method_has_a_docstring(name):
    members = vars(public_objects()[name]).items()
    methods = {key: value for key, value in members if not key.startswith("_") and not isinstance(value, (str, float))}
    methods = {key: value for key, value in methods.items() if callable(value) or isinstance(value, property)}
    assert [key for key, value in methods.items() if not inspect.getdoc(value)] == []


def test_everything_public_is_listed_once_and_exists():
    assert len(dpf.__all__) == len(set(dpf.__all__))
    assert all(hasattr(dpf, name) for name in dpf.__all__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.stem not in ("demo", "spark_release")], ids=relative
)
def test_every_example_runs(example, tmp_path, monkeypatch, capsys):
    skip_where_missing(example.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path)])
    runpy.run_path(str(example), run_name="__main__")
    assert "epsilon" in capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_shows_a_refusal_and_draws(tmp_path, monkeypatch, capsys):
    for module in ("pandas", "statsmodels", "altair", "vl_convert"):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "BudgetExceeded: the budget is exceeded: the call needs epsilon 0.5, and epsilon 0.1 of epsilon 1" in said
    pictures = sorted((tmp_path / "demo_output").glob("*.png"))
    assert len(pictures) == 4
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_relative_link_leads_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)\s]*)\)", text):
        file = (document.parent / target).resolve() if target else document
        assert file.is_relative_to(ROOT), target
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("file", [*DOCUMENTS, *NOTEBOOKS, *EXAMPLES, ROOT / "dev.py"], ids=relative)
def test_no_document_names_a_machine_path(file):
    assert not MACHINE_PATH.search(file.read_text(encoding="utf-8"))


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "images").glob("*"))
    assert pictures
    assert all(picture.stat().st_size < 450_000 for picture in pictures)


# The provenance against its schema ----------------------------------------------------------------------------------

SCHEMA = json.loads((ROOT / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))
DAYS = [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)]

CALLS = {
    "count": lambda dp, **price: dp.count(**price),
    "count of a column": lambda dp, **price: dp.count("age", **price),
    "sum": lambda dp, **price: dp.sum("age", bounds=(0, 100), **price),
    "mean": lambda dp, **price: dp.mean("age", bounds=(0, 100), **price),
    "histogram": lambda dp, **price: dp.histogram("age", bins=[0, 50, 100], **price),
    "clipped histogram": lambda dp, **price: dp.histogram("age", bins=4, range=(0, 9), outside="clip", **price),
    "histogram of days": lambda dp, **price: dp.histogram("day", bins=DAYS, **price),
    "categories": lambda dp, **price: dp.histogram("ward", categories=["A", "B"], **price),
    "select": lambda dp, **price: dp.mode("ward", categories=["A", None], **price),
    "top": lambda dp, **price: dp.top_k("ward", k=2, categories=["A", None, "B"], **price),
    "top with counts": lambda dp, **price: dp.top_k("ward", k=2, categories=["A", None, "B"], counts=True, **price),
    "grid": lambda dp, **price: dp.histogram(["age", "day"], bins=[[0, 50, 100], DAYS], **price),
    "denoised by a function": lambda dp, **price: dp.histogram(
        "age", bins=[0, 50, 100], denoise=["james-stein", lambda values, noise: values], keep_noisy=False, **price
    ),
    "group_by": lambda dp, **price: dp.group_by("ward", keys=["A", None]).count(label="wards", **price),
    "rollup": lambda dp, **price: dp.group_by("ward", "age", keys={"ward": ["A"], "age": [1, 2]}).agg(
        dpf.count(), total=dpf.sum("age", bounds=(-5, 100)), rollup=True, **price
    ),
    "cube": lambda dp, **price: dp.group_by("ward", "age", keys={"ward": ["A"], "age": [1, 2]}).count(
        cube=True, **price
    ),
    "binned groups": lambda dp, **price: dp.group_by(dpf.bins("age", [0, 50, 100]), "ward", keys=["A"]).count(**price),
    "dates": lambda dp, **price: dp.group_by("day", keys=dpf.dates("2026-01-01", "2026-03-01", every="1mo")).count(
        **price
    ),
    "weeks": lambda dp, **price: dp.histogram("day", bins="1w", range=("2025-12-29", "2026-01-12"), **price),
    "agg": lambda dp, **price: dp.group_by("ward", "age", keys={"ward": ["A"], "age": [1, 2]}).agg(
        dpf.count(), total=dpf.sum("age", bounds=(-5, 100)), average=dpf.mean("age", bounds=(0, 9)), **price
    ),
}
LEDGERS = {
    "rows, basic": {"epsilon": 9.0},
    "rows, gdp": {"epsilon": 9.0, "delta": 1e-6},
    "people, replace": {
        "epsilon": 9.0,
        "unit": dpf.PrivacyUnit(column="person", max_rows=2, max_groups=2, neighbors="replace"),
    },
}


def test_the_provenance_of_contributions_fits_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    frame = pl.DataFrame({"person": [1, 1, 2], "ward": ["A", "B", "A"]})
    for asked in ({}, {"by": "ward"}, {"by": "ward", "keys": ["A", "B"]}):
        released = frame.dp.contributions(**asked, epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0, unit="person"))
        jsonschema.Draft202012Validator(SCHEMA).validate(released.dp.provenance)


@pytest.mark.parametrize("ledger", LEDGERS)
@pytest.mark.parametrize("call", CALLS)
def test_the_provenance_of_every_verb_fits_the_schema(call, ledger, engine):
    jsonschema = pytest.importorskip("jsonschema")
    columns = {"person": [1, 1, 2], "ward": ["A", "B", "A"], "age": [31.0, 45.0, 62.0], "day": [DAYS[0]] * 3}
    frame = engine(columns)
    if engine.is_pandas:
        frame["day"] = frame["day"].astype("datetime64[s]")
    released = CALLS[call](frame.dp, epsilon=1.0, ledger=dpf.Ledger(**LEDGERS[ledger]))
    facts = released.dp.provenance
    jsonschema.Draft202012Validator(SCHEMA).validate(facts)
    assert facts["altered"] is False
    assert json.loads(json.dumps(facts)) == facts


def test_the_example_of_the_provenance_fits_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    (example,) = blocks(ROOT / "docs" / "reference" / "provenance.md", "json")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(example))


def test_the_schema_refuses_what_it_should():
    jsonschema = pytest.importorskip("jsonschema")
    facts = pl.DataFrame({"age": [31]}).dp.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)).dp.provenance
    valid = jsonschema.Draft202012Validator(SCHEMA).is_valid
    assert valid(facts)
    assert not valid({**facts, "rows": 1})
    assert not valid({**facts, "schema": "dpframe.provenance/3"})
    assert not valid({name: value for name, value in facts.items() if name != "cost"})


def test_every_field_of_the_schema_is_documented():
    text = (ROOT / "docs" / "reference" / "provenance.md").read_text(encoding="utf-8")
    fields = {*SCHEMA["properties"], *SCHEMA["$defs"]["bins"]["properties"], *SCHEMA["$defs"]["keys"]["properties"]}
    for part in ("unit", "cost", "ledger"):
        fields |= set(SCHEMA["properties"][part]["properties"])
    fields |= set(SCHEMA["properties"]["statistics"]["items"]["properties"])
    fields |= set(SCHEMA["properties"]["measures"]["additionalProperties"]["properties"])
    rows = " ".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE))
    assert {field for field in fields if not re.search(rf"[`.]{field}`", rows)} == set()
