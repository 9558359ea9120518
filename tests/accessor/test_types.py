"""What type checkers see of a user's script: the frame of every answer, and what is mistyped."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpframe as dpf

pytestmark = pytest.mark.slow
pytest.importorskip("mypy", reason="mypy is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")
SCRIPT = """
import pandas as pd
import polars as pl

import dpframe as dpf

people = pl.DataFrame({"x": [1]})
reveal_type(dpf.of(people).count(epsilon=1))
reveal_type(dpf.of(people.lazy()).group_by("x", keys=[1]).agg(n=dpf.count(), epsilon=1))
reveal_type(dpf.of(pd.DataFrame({"x": [1]})).sum("x", bounds=(0, 1), epsilon=1))
reveal_type(dpf.of(people).mode("x", categories=[1], epsilon=1))
reveal_type(dpf.of(people).preview.histogram("x", bins=[0, 1]))
reveal_type(dpf.released(people).provenance)
dpf.of(people).cuont(epsilon=1)
dpf.of(people).count(epsilom=1)
dpf.of(people).count(epsilon=1, mechanism="laplase")
"""
POLARS, PANDAS = "polars.dataframe.frame.DataFrame", "pandas.core.frame.DataFrame"
REVEALED = [POLARS, POLARS, PANDAS, POLARS, "dpframe.planning.plan.Plan", "dict[str, Any]"]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    file = tmp_path_factory.mktemp("user") / "script.py"
    file.write_text(SCRIPT, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(dpf.__file__).parents[1],
    )
    return found.stdout


def test_the_frame_of_every_answer_is_known(said):
    found = re.findall(r'Revealed type is "(?:builtins\.)?(.*?)"', said)
    assert [one.replace("builtins.", "") for one in found] == REVEALED


def test_what_is_mistyped_is_seen(said):
    errors = [line for line in said.splitlines() if " error: " in line]
    assert len(errors) == 3, said
    assert 'has no attribute "cuont"' in errors[0]
    assert 'Unexpected keyword argument "epsilom"' in errors[1]
    assert "Literal['laplase']" in errors[2]
