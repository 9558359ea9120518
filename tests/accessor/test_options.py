"""The table of options: the help and signature of each verb name exactly the options that it takes."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.accessor import options, private_frame
from dpframe.accessor.options import OPTIONS, REFUSED, UNTAKEN, CallOptions, DenoiserName, SampledOptions, options_of
from dpframe.denoise import DENOISERS

VERBS = {
    name: verb
    for kind in reversed(dpf.PrivateFrame.__mro__[:-1])
    for name, verb in vars(kind).items()
    if hasattr(verb, "__wrapped__") and not name.startswith("_") and name != "group_by"
}
STATISTICS = [name for name in VERBS if name != "agg" and hasattr(dpf, name)]
FRAME = pl.DataFrame({"age": [31.0, 45.0, 62.0], "ward": ["A", "B", "A"], "patient": [1, 1, 2]})
GIVEN = {"column": "age", "bounds": (1, 100)}  # for verbs that take them; some verbs need values above 0
WARDS = {"column": "ward", "categories": ["A", "B"]}
PAIR = {"columns": ["age", "patient"], "bounds": {"age": (0, 100), "patient": (0, 10)}}
NEEDED = {  # arguments of the verbs that need others
    "histogram": {"bins": [0, 50, 100]},
    "ecdf": {"bins": [0, 50, 100]},
    "quantile": {"q": 0.5},
    "n_distinct": {"max_values": 2},
    "mode": WARDS,
    "top_k": {**WARDS, "k": 1},
    "covariance": PAIR,
    "correlation": PAIR,
    "marginals": {"columns": ["ward", "patient"], "keys": {"ward": ["A", "B"], "patient": [1, 2]}},
    "agg": {"n": dpf.count()},
}
CALLS = {
    name: {one: given for one, given in GIVEN.items() if one in inspect.signature(verb).parameters}
    | NEEDED.get(name, {})
    for name, verb in VERBS.items()
}
COLUMNS = {"suggest_bounds": ("age",)}  # positional arguments
MORE = {"marginals": {"delta": 1e-6}}  # its noise is always Gaussian
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def parameters(verb):
    return inspect.signature(verb).parameters


def documented(docstring):
    """The names in the section "Parameters" of a docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", inspect.cleandoc(docstring), re.M | re.S)
    assert section is not None
    return [name for line in re.findall(r"^(\S.*)$", section[1], re.M) for name in line.split(" : ")[0].split(", ")]


@pytest.mark.parametrize("name", VERBS)
def test_help_explains_what_the_signature_takes_and_no_other(name):
    verb = VERBS[name]
    shown = {STARS.get(one.kind, "") + one.name for one in parameters(verb).values()} - {"self"}
    assert documented(verb.__doc__) == list(dict.fromkeys(documented(verb.__doc__)))
    assert set(documented(verb.__doc__)) == shown
    assert "See `PrivateFrame`" not in verb.__doc__


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_takes_the_options_of_its_type(name):
    taken = set(options_of(get_type_hints(VERBS[name].__wrapped__)).__annotations__)
    refused = {one for one in UNTAKEN if one not in taken} | set(REFUSED.get(name, {}))
    assert {one for one in parameters(VERBS[name]) if one in OPTIONS} == taken
    assert taken == set(OPTIONS) - refused
    assert set(inspect.get_annotations(VERBS[name])) >= taken


@pytest.mark.parametrize("name", VERBS)
def test_what_a_verb_refuses_it_refuses_with_the_reason(name):
    verb = getattr(FRAME.dp.preview, name)
    refused = {one: reason for one, reason in UNTAKEN.items() if one not in parameters(VERBS[name])}
    for option, reason in (refused | REFUSED.get(name, {})).items():
        with pytest.raises(dpf.InvalidType, match=f"{option} is not an argument of {name}: {re.escape(reason)}"):
            verb(*COLUMNS.get(name, ()), **CALLS[name], epsilon=1, **{option: None})


@pytest.mark.parametrize("name", VERBS)
def test_the_defaults_of_help_are_those_of_the_call(name):
    dp = FRAME.dp.preview
    fixed = {"epsilon": 1.0, "unit": dpf.PrivacyUnit("patient", max_rows=2, max_groups=2), **MORE.get(name, {})}
    columns = COLUMNS.get(name, ())
    plain = getattr(dp, name)(*columns, **CALLS[name], **fixed)
    shown = {one.name: one.default for one in parameters(VERBS[name]).values() if one.name in OPTIONS}
    assert getattr(dp, name)(*columns, **CALLS[name], **{**shown, **fixed}) == plain


def test_denoise_is_auto_in_tables_and_none_for_a_number():
    ledger = dpf.Ledger(epsilon=9)
    for asked in ({}, {"denoise": "default"}):
        assert FRAME.dp.count(epsilon=1, ledger=ledger, **asked).columns == ["count", "count_error"]
        table = FRAME.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=ledger, **asked)
        assert table.columns == ["ward", "count", "count_noisy", "count_error"]
        assert table.dp.provenance["measures"]["count"]["denoise"][0]["name"] == "auto"
    array = np.array(["default", "auto"])  # comparing the option with text must not raise before the refusal
    with pytest.raises(dpf.InvalidArgument, match="denoise must be"):
        FRAME.dp.count(epsilon=1, ledger=ledger, denoise=array)


@pytest.mark.parametrize("name", STATISTICS)
def test_verb_and_statistic_take_the_same(name):
    own = [one for one in parameters(VERBS[name]).values() if one.name not in OPTIONS and one.name != "self"]
    made = list(parameters(getattr(dpf, name)).values())
    assert [(one.name, one.default, one.annotation) for one in own] == [
        (one.name, one.default, one.annotation) for one in made
    ]


def test_signatures_show_nothing_but_python():
    for verb in VERBS.values():
        written = str(inspect.signature(verb))
        ast.parse(f"def verb{written}: ...")


def test_the_names_of_denoisers_are_those_that_calls_know():
    assert set(get_args(DenoiserName)) == set(DENOISERS), "name a new denoiser in options.DenoiserName as well"


def test_agg_is_typed_as_other_verbs():
    (stub, *_) = [
        node
        for node in ast.walk(ast.parse(Path(private_frame.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "agg"
    ]
    typed = {one.arg: ast.unparse(one.annotation) for one in stub.args.kwonlyargs}
    meant = {name: one.__forward_arg__ for name, one in SampledOptions.__annotations__.items()}
    assert typed == meant, (
        "agg in accessor/private_frame.py writes out the options of SampledOptions, for type checkers"
    )


def test_every_type_is_of_options_of_the_table():
    for kind in (CallOptions, options.ModeOptions, options.ContributionsOptions, options.EcdfOptions):
        assert set(kind.__annotations__) <= set(OPTIONS)
    assert set(SampledOptions.__annotations__) == set(OPTIONS)


@pytest.mark.slow
def test_python_may_leave_docstrings_out():
    code = "import dpframe as dpf; assert dpf.PrivateFrame.count.__doc__ is None"
    found = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("lower", "bounds"),
        ("high", "bounds"),
        ("range", "bounds"),
        ("eps", "epsilon"),
        ("bound", "bounds"),
        ("accuracy", "within"),
        ("max_partitions_contributed", "max_groups"),
    ],
)
def test_words_of_other_libraries_are_understood(word, meant):
    people = pl.DataFrame({"age": [31, 45, 62]})
    with pytest.raises(dpf.InvalidType, match=f"{word} is not an argument of mean. Did you mean {meant}"):
        people.dp.mean("age", **{word: 1})


def test_the_print_of_an_accessor_says_what_it_is_of():
    frame = pl.DataFrame({"ward": ["A"]})
    assert repr(frame.dp).startswith(".dp of a private frame; ")
    assert repr(frame.dp.group_by("ward", keys=["A"])).startswith(".dp of a private frame in groups of ward; ")
    groups = repr(frame.dp.preview.group_by("ward", dpf.bins("age", [0, 9]), keys=["A"]))
    assert groups.startswith("preview of .dp of a private frame in groups of ward, age; ")
