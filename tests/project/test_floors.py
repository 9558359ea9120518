"""Tests of the floors: imports go downward, each room keeps to its purpose, and no module lies outside the floors."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import floors
import pytest

import dpframe as dpf
from dpframe.queries.statistics import Statistic
from tests.sources import FILES, PACKAGE, nodes_of


def all_below(kind):
    return {one for below in kind.__subclasses__() for one in (below, *all_below(below))}


BARE = {"ValueError", "TypeError", "KeyError", "LookupError", "RuntimeError", "Exception"}
NAMES = {repr(name) for name in ("basic", "gdp", "rdp", "pld")}  # names of accountings
MECHANISMS = {name for name in dpf.__all__ if hasattr(getattr(dpf, name), "add_noise")}
STATISTICS = {one.__name__ for one in all_below(Statistic)}
LONGEST_FILE, LONGEST_FUNCTION = 700, 60  # lines


def name_of(path):
    """Return the name of a file within the package: ledger.payer; a folder's own file is ledger."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


NAMED = {name_of(path): path for path in FILES}


def room(file):
    return file.split(".")[0]


def floor(file):
    return floors.ROOMS[room(file)][0]


def imported(path):
    """Yield every import of a file, anywhere in it: modules of the package, and other packages with an ! at the end."""
    for node in nodes_of(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "dpframe":
                yield rest if rest in NAMED else rest.rpartition(".")[0] or "__init__"
            else:
                yield f"{first}!"


@cache
def imports():
    """Return pairs of each file and a module that it imports."""
    return {(file, name) for file, path in NAMED.items() for name in imported(path)}


@cache
def own():
    """Return pairs of each file and a module of the package that it imports."""
    return {pair for pair in imports() if not pair[1].endswith("!")}


def climbs():
    return {(file, name) for file, name in own() if room(file) != room(name) and floor(name) >= floor(file)}


def reaches():
    rooms = {*floors.REACH_ROWS, "engines"}
    return {(file, name) for file, name in own() if room(name) == "engines" and room(file) not in rooms}


def dataframes():
    found = {(file, name[:-1]) for file, name in imports() - own() if room(file) not in floors.KNOW_DATAFRAMES}
    return {(file, name) for file, name in found if name in floors.DATAFRAMES}


def with_frames():
    return {(file, name) for file, name in own() if room(file) in floors.WITHOUT_FRAMES and room(name) == "frames"}


def builders():
    found = {(file, name) for file, name in own() if room(file) == "engines" and room(name) == "frames"}
    return {(file, name) for file, name in found if name not in floors.ENGINES_KNOW}


def bare():
    return {(file, name) for file, path in NAMED.items() if file not in floors.PARSERS for name in bare_errors(path)}


def bare_errors(path):
    """Yield the built-in errors that a file raises by name: callers of dpframe catch DpframeError."""
    for node in nodes_of(path):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in BARE:
                yield raised.id


def compared_names():
    """Yield comparisons with an accounting's name outside its room: each accounting defines its own differences."""
    for file, node in nodes(ast.Compare):
        compared = {ast.unparse(one) for one in [node.left, *node.comparators]}
        if room(file) != "accounting" and any(one.endswith("accounting.name") or one in NAMES for one in compared):
            yield file, ast.unparse(node)


def listed_kinds():
    """Yield tuples and unions of two or more mechanisms outside their room: each defines its own differences."""
    for file, node in nodes(ast.Tuple | ast.BinOp):
        listed = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & MECHANISMS
        if room(file) not in {"mechanisms", "__init__"} and len(listed) > 1:
            yield file, ast.unparse(node)


def asked_kinds():
    """Yield checks for a kind of statistic, or of call, outside their room: each defines its own differences."""
    for file, node in nodes(ast.Call):
        if room(file) != "queries" and ast.unparse(node.func) == "isinstance":
            if {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & STATISTICS:
                yield file, ast.unparse(node)
    for file, node in nodes(ast.Compare):
        if room(file) != "queries" and any(
            ast.unparse(one).endswith(".verb") for one in [node.left, *node.comparators]
        ):
            yield file, ast.unparse(node)


def nodes(kind):
    return ((file, node) for file, path in NAMED.items() for node in nodes_of(path) if isinstance(node, kind))


def loose():
    return {path.stem for path in PACKAGE.glob("*.py")} - floors.TOP


def twice():
    names = Counter(path.stem for path in FILES if path.stem != "__init__")
    return {name for name, many in names.items() if many > 1}


def long():
    return {(file, what) for file, path in NAMED.items() for what in long_parts(path)}


def long_parts(path):
    """Yield "file" for a file with too many lines, and the names of functions that are too long without docstring."""
    if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE:
        yield "file"
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = (ast.get_docstring(node, clean=False) or "").count("\n")
            if node.end_lineno - node.lineno - said > LONGEST_FUNCTION:
                yield node.name


OFFENCES = {
    "imports fall": climbs,
    "rows are reached from the release path alone": reaches,
    "two rooms know dataframe libraries": dataframes,
    "the ledger holds no frames": with_frames,
    "engines build no results": builders,
    "errors are typed": bare,
    "accountings answer for themselves": compared_names,
    "mechanisms answer for themselves": listed_kinds,
    "statistics answer for themselves": asked_kinds,
    "the modules at the top are those of the floors": loose,
    "no file name occurs twice": twice,
    "files and functions are short": long,
}


@pytest.mark.parametrize("rule", OFFENCES)
def test_nothing_offends(rule):
    assert sorted(OFFENCES[rule]()) == []


def test_every_file_has_a_room():
    assert {room(file) for file in NAMED} <= set(floors.ROOMS)


def test_the_map_for_contributors_is_this_table():
    text = floors.CONTRIBUTING.read_text(encoding="utf-8")
    assert text == floors.with_map(text), "write it anew: python -m tests.floors"
