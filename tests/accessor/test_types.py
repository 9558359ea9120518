"""Type checkers on a user's script know the type of every result, and report every typo."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpframe as dpf

pytestmark = pytest.mark.slow
pytest.importorskip("pandas", reason="pandas is not installed")
POLARS, PANDAS, PLAN, FACTS = "DataFrame of Polars", "DataFrame of pandas", "Plan", "dict[str, Any]"
ROOT = Path(dpf.__file__).parents[1]

REVEALED = {  # expressions of the script, with their types
    "dpf.of(people).count(epsilon=Fraction(1, 2))": POLARS,
    'dpf.of(people).sum("x", bounds=(0, 1), epsilon=1)': POLARS,
    'dpf.of(people).mean("x", bounds=(0, 1), epsilon=1)': POLARS,
    'dpf.of(people).histogram("x", bins=[0, 1], epsilon=1, denoise=["auto", "rounded"])': POLARS,
    'dpf.of(people).mode("x", categories=[1], epsilon=1)': POLARS,
    'dpf.of(people).contributions("x", epsilon=1)': POLARS,
    "dpf.of(people).agg(n=dpf.count(), epsilon=1, denoise=lambda values, noise: values)": POLARS,
    'dpf.of(people).agg({"n": dpf.count()}, epsilon=1)': POLARS,
    'dpf.of(people.lazy()).group_by("x", keys=[1]).agg(dpf.mean("x", bounds=(0, 1)), epsilon=1)': POLARS,
    'dpf.of(people).group_by(dpf.bins("x", [0, 1]), "y", keys=["a"]).count(cube=True, epsilon=1)': POLARS,
    'dpf.of(people).group_by("d", keys=dpf.dates("2025-01-06", "2025-01-13", every="1w")).count(epsilon=1)': POLARS,
    'dpf.of(table).sum("x", bounds=(0, 1), epsilon=1)': PANDAS,
    'dpf.of(people).preview.histogram("x", bins=[0, 1])': PLAN,
    'dpf.of(table).preview.group_by("x", keys=[1]).agg(n=dpf.count())': PLAN,
    "dpf.released(people).provenance": FACTS,
}
MISTYPED = [
    "dpf.of(people).cuont(epsilon=1)",
    "dpf.of(people).count(epsilom=1)",
    'dpf.of(people).count(epsilon="much", share=[1])',
    'dpf.of(people).count(epsilon=1, mechanism="laplase")',
    'dpf.of(people).count(epsilon=1, denoise="atuo")',
    "dpf.of(people).agg(n=dpf.count(), epsilom=1)",
    'dpf.of(people).agg(n=dpf.count(), epsilon=1, mechanism="laplase")',
    'dpf.of(people).mode("x", delta=1)',
    'dpf.of(people).contributions("x", max_rows=1)',
    'dpf.of(people).histogram("x", bins=[0, 1], outside="clp", epsilon=1)',
    'dpf.of(people).group_by("x", key=[1])',
    'dpf.of(people).group_by("x", keys=[1]).count(epsilon=1, rolup=True)',
    'dpf.PrivacyUnit("x", neighbors="ad-remove")',
    'dpf.Ledger(epsilon=1, accounting="gpd")',
]
BEFORE = """\
from fractions import Fraction

import pandas as pd
import polars as pl

import dpframe as dpf

people = pl.DataFrame({"x": [1]})
table = pd.DataFrame({"x": [1]})
"""


def line_of(place: int) -> int:
    """Return the line number of an expression in the script, counted from 1."""
    return BEFORE.count("\n") + 1 + place


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("user") / "script.py"
    lines = [*(f"reveal_type({words})" for words in REVEALED), *MISTYPED]
    file.write_text(BEFORE + "\n".join(lines) + "\n", encoding="utf-8")
    return file


Said = tuple[dict[int, str], set[int]]  # revealed types by line, and lines with errors


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def said(request: pytest.FixtureRequest, script: Path) -> Said:
    return by_mypy(script) if request.param == "mypy" else by_pyright(script)


def by_mypy(script: Path) -> Said:
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(script)]
    text = run(command, {"MYPYPATH": str(ROOT)})
    notes = re.findall(r'script\.py:(\d+): note: Revealed type is "(.*)"', text)
    return {int(line): kind for line, kind in notes}, set(map(int, re.findall(r"script\.py:(\d+): error:", text)))


def by_pyright(script: Path) -> Said:
    """Run pyright or basedpyright. Neither is a test requirement: one needs the network, and both install Node."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = shutil.which("basedpyright", path=folders) or shutil.which("pyright", path=folders)
    if command is None:
        pytest.skip("neither basedpyright nor pyright is installed")
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (script.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    text = run([command, "--outputjson", "--pythonpath", sys.executable, "--project", str(script.parent)], {})
    try:
        found = json.loads(text)["generalDiagnostics"]
    except (ValueError, KeyError):
        pytest.skip(f"{Path(command).name} is installed but does not run")
    revealed, errors = {}, set()
    for one in found:
        line = one["range"]["start"]["line"] + 1
        if one["severity"] == "information":
            revealed[line] = one["message"].rpartition(' is "')[2].removesuffix('"')
        elif one["severity"] == "error":
            errors.add(line)
    return revealed, errors


def run(command: list[str], more: dict[str, str]) -> str:
    environment = {**os.environ, **more}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment).stdout


def fits(revealed: str, wanted: str) -> bool:
    """Return whether a type is the expected one: mypy reports its full name, pyright the short one."""
    kind, _, library = wanted.partition(" of ")
    plain = revealed.replace("builtins.", "")
    if library and "." in plain and library.lower() not in plain:
        return False
    return plain == kind or plain.endswith(f".{kind}")


def test_the_frame_of_every_answer_is_known(said: Said) -> None:
    revealed, _ = said
    for place, (words, wanted) in enumerate(REVEALED.items()):
        assert fits(revealed[line_of(place)], wanted), words


def test_what_is_mistyped_is_seen_and_nothing_else(said: Said) -> None:
    first = line_of(len(REVEALED))
    assert said[1] == set(range(first, first + len(MISTYPED)))


PLUGGED = {  # expressions that mypy types by the plugin, with their types
    "table.dp.count(epsilon=1)": PANDAS,
    'table.dp.group_by("x", keys=[1]).mean("x", bounds=(0, 1), epsilon=1)': PANDAS,
    'table.dp.suggest_bounds("x", "y", epsilon=1)': PANDAS,
    "table.dp.count(epsilon=1).dp.provenance": FACTS,
    "table.dp.preview.count()": PLAN,
    "people.dp.count(epsilon=1)": POLARS,
    "people.lazy().dp.count(epsilon=1)": POLARS,
    "people.dp.count(epsilon=1).dp.provenance": FACTS,
}
WRONG = ["table.dp.cuont(epsilon=1)", "table.dp.count(epsilom=1)", "people.dp.plto()", "people.lazy().dp.meen()"]


def test_the_plugin_of_mypy_knows_the_accessor(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    stubs = Path(pytest.__file__).parents[1] / "pandas-stubs"
    if not stubs.is_dir():
        pytest.skip("pandas-stubs is not installed")
    file = tmp_path / "script.py"
    lines = [*(f"reveal_type({words})" for words in PLUGGED), *WRONG]
    file.write_text(BEFORE + "\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nplugins = dpframe.mypy\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"), "--no-error-summary"]
    text = run([*command, "--cache-dir", str(tmp_path / "cache"), str(file)], {"MYPYPATH": str(ROOT)})
    notes = re.findall(r'script\.py:(\d+): note: Revealed type is "(.*)"', text)
    revealed = {int(line): kind for line, kind in notes}
    for place, (words, wanted) in enumerate(PLUGGED.items()):
        assert fits(revealed.get(line_of(place), text), wanted), words
    errors = set(map(int, re.findall(r"script\.py:(\d+): error:", text)))
    assert errors == {line_of(len(PLUGGED) + place) for place in range(len(WRONG))}
