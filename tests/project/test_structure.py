"""Tests of the architecture: no import cycles, one room for dataframes, one file for random bits, lean imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache

import pytest

import dpframe as dpf
from dpframe import _names
from tests.sources import FILES, PACKAGE, nodes_of

DATAFRAMES = {"narwhals", "pandas", "polars", "pyarrow"}
RANDOMNESS = {"random", "secrets", "uuid"}


def dotted(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def room(name):
    return name.split(".")[1] if "." in name else "__init__"


@cache
def imported(path):
    """Return every module that a file imports, anywhere in it."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            own = {name for name in submodules if (PACKAGE.parent / (name.replace(".", "/") + ".py")).exists()}
            folders = {name for name in submodules if (PACKAGE.parent / name.replace(".", "/")).is_dir()}
            found |= (own | folders) or {node.module}
    return found


def own(path):
    return {name for name in imported(path) if name.split(".")[0] == "dpframe"}


def test_no_circles():
    graph = {dotted(path): own(path) for path in FILES}
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, f"circle: {[*open_, name]}"
        if name not in done:
            open_.append(name)
            for other in graph.get(name, ()):
                visit(other)
            open_.pop()
            done.add(name)

    for name in graph:
        visit(name)


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_one_room_knows_dataframes_and_one_file_randomness(path):
    outside = {name.split(".")[0] for name in imported(path)}
    if room(dotted(path)) not in {"engines", "frames"}:
        assert not outside & DATAFRAMES
    text = path.read_text()
    assert not outside & RANDOMNESS
    if dotted(path) != "dpframe.noise.random_bits":
        assert "urandom" not in text
        assert "dpframe.noise.random_bits" not in own(path) or room(dotted(path)) == "noise"
    if room(dotted(path)) != "testing":  # it generates made-up tables
        assert "np.random" not in text
        assert "default_rng" not in text


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_no_file_gives_one_name_two_values(path):
    """The second value would hide the first from functions above it, and no tool reports it."""
    body = nodes_of(path)[0].body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    stored = [one for target in targets for one in ast.walk(target) if isinstance(getattr(one, "ctx", None), ast.Store)]
    names = [one.id for one in stored if isinstance(one, ast.Name)]
    assert sorted(set(names)) == sorted(names)


def test_denoisers_cannot_reach_a_row():
    for path in (PACKAGE / "denoise").rglob("*.py"):
        assert {room(name) for name in own(path)} <= {"denoise", "errors"}


def test_all_is_exact():
    assert all(dpf.__getattr__(name) for name in ("audit", "local"))  # imported on first use
    public = {name for name in {*vars(dpf), *vars(_names)} if not name.startswith("_")}
    modules = {name for name in public if type(getattr(dpf, name)).__name__ == "module"} - {"audit", "denoise", "local"}
    assert public - modules - {"annotations"} == set(dpf.__all__) - {"__version__"}
    assert list(dpf.__all__) == sorted(dpf.__all__, key=lambda name: (not name.isupper(), name))
    assert dir(dpf) == sorted(dpf.__all__)


AT_START = 12  # modules of dpframe that importing it loads, to give frames their .dp
MODULES = 290  # and modules that its first use loads
STANDARD = {"_statistics", "difflib", "fractions", "html", "statistics", "unicodedata"}  # beyond NumPy's and Polars'


def run(code):
    found = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.mark.slow
def test_importing_is_light():
    heavy = run(
        "import sys, dpframe; dpframe.count; print([name for name in "
        "('scipy', 'scipy.stats', 'dp_accounting', 'pandas', 'altair', 'sqlalchemy', 'mpmath', 'great_tables', "
        "'typer', 'rich') "
        "if name in sys.modules])"
    )
    assert heavy == "[]"


@pytest.mark.slow
def test_a_process_starts_with_few_modules():
    """Time depends on the machine, but modules do not: dpframe loads its own rooms and no library but NumPy."""
    count = "sum(name.startswith('dpframe') for name in sys.modules)"
    before = "import sys, numpy, polars; before = {*sys.modules}; import dpframe; "
    assert int(run(f"{before}print({count})")) <= AT_START
    assert int(run(f"{before}dpframe.count; print({count})")) <= MODULES
    theirs = "print(*{name.split('.')[0] for name in {*sys.modules} - before} - sys.stdlib_module_names)"
    theirs = run(f"{before}dpframe.count; {theirs}")
    assert {*theirs.split()} <= {"dpframe", "numpy"}
    taken = run(f"{before}dpframe.count; print(*{{*sys.modules}} - before)").split()
    standard = {name for name in taken if name.split(".")[0] in sys.stdlib_module_names and "." not in name}
    assert standard <= STANDARD
    released = run(
        f"{before}frame = polars.DataFrame({{'g': ['A', 'B'], 'x': [1.0, 2.0]}}); ledger = dpframe.Ledger(epsilon=1); "
        "frame.dp.group_by('g', keys=['A', 'B']).agg(n=dpframe.count(), epsilon=1, ledger=ledger); "
        "print(*[name for name in ('narwhals', 'scipy.stats', 'pandas', 'sqlalchemy', 'altair', 'numba', "
        "'dpframe.local', 'dpframe.audit') if name in sys.modules])"
    )
    assert released == ""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import dpframe; import pandas as pd", "import pandas as pd; import dpframe"])
def test_accessor_whichever_comes_first(first):
    pytest.importorskip("pandas")
    assert "count" in run(f"{first}; print(pd.DataFrame({{'x': [1]}}).dp)")


@pytest.mark.slow
def test_asking_for_pandas_before_it_is_imported():
    pytest.importorskip("pandas")
    code = (
        "import dpframe, importlib.util; importlib.util.find_spec('pandas'); "
        "import pandas as pd; print(pd.DataFrame({'x': [1]}).dp, pd.__spec__.loader.__class__.__name__)"
    )
    assert "SourceFileLoader" in run(code)


@pytest.mark.slow
def test_other_accessors_stay():
    pytest.importorskip("pandas")
    assert run("import dpframe, pandas as pd; print(pd.Series(['a']).str.upper()[0])") == "A"


QUESTIONS = {"What", "Whether", "How", "Where", "Who", "Whom", "When", "Which", "Why"}


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_a_docstring_opens_with_a_noun_or_a_verb(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (said := ast.get_docstring(node)):
            assert said.split()[0].rstrip(",:?") not in QUESTIONS, f"{path}: {said.splitlines()[0]}"
