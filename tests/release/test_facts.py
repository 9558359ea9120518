"""The facts that identify a stored call are frozen: renaming a class, field or sentence must not change them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sqlite3
import sys
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.laplace import TruncatedLaplace
from dpframe.privacy import Price
from dpframe.queries import bins, discovery, keys, statistics
from dpframe.queries.statistics import Statistic, marginals
from dpframe.queries.total import UnitsTotal
from dpframe.queries.where import Conditional, RangeAxis
from dpframe.release import facts, results
from tests.data import answers

DATA = Path(__file__).parents[1] / "data" / "0.2"
CALLS = json.loads((DATA / "answers.json").read_text(encoding="utf-8"))
EMPTY = answers.people().clear()
# Classes that plans derive from a statistic, and base classes: no call asks for these.
OF_A_PLAN = {"Clipped", "Squaring", "Counted", "Needed", "SharedCount", "Weighted", "ByGroup"}


def subclasses(kind):
    """Return all subclasses of a class that dpframe defines."""
    found = [one for child in kind.__subclasses__() for one in (child, *subclasses(child))]
    return {one for one in found if one.__module__.startswith("dpframe.")}


@contextlib.contextmanager
def renamed():
    """Rename every dataclass of dpframe and hide its fields, within a `with` block."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("dpframe")]
    kinds = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    own = [one for one in kinds if one.__module__.startswith("dpframe.") and "__dataclass_fields__" in vars(one)]
    before = [(one, one.__name__, one.__qualname__, one.__dataclass_fields__) for one in own]
    try:
        for one in own:
            one.__name__ = one.__qualname__ = "Renamed"
            one.__dataclass_fields__ = {}
        yield len(own)
    finally:
        for one, name, qualified, known in before:
            one.__name__, one.__qualname__, one.__dataclass_fields__ = name, qualified, known


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledgers")
    for name in answers.LEDGERS:
        for ending in ("", ".head"):
            shutil.copy(DATA / f"{name}.ledger{ending}", folder)
    return {name: dpf.Ledger.open(folder / f"{name}.ledger") for name in answers.LEDGERS}


ASKED_AGAIN = [said for said in CALLS if "ecdf(" not in said["call"]]  # ecdf asks another question today
ASKED_AGAIN = [said for said in ASKED_AGAIN if said["label"] != "rows 34"]  # n_units of rows is refused today


@pytest.mark.parametrize("said", ASKED_AGAIN, ids=[said["label"] for said in ASKED_AGAIN])
def test_a_stored_answer_is_known_where_every_class_and_field_is_renamed(said, ledgers, monkeypatch):
    if "pd." in said["call"]:
        pytest.importorskip("pandas")
    told = []

    def facts_of(plan, *ledger):
        with renamed() as classes:
            assert classes > 50
            told.append(facts.facts_of(plan, *ledger))
        return told[0]

    monkeypatch.setattr(results, "facts_of", facts_of)
    assert answers.answered(said["call"], EMPTY, ledgers[said["ledger"]])["columns"] == said["columns"]
    assert told[0] == hashes_of(said["ledger"])[said["label"]]


@cache
def hashes_of(name):
    """Return the hash of each label, as version 0.2.0 wrote it."""
    with contextlib.closing(sqlite3.connect(f"file:{DATA / name}.ledger?immutable=1", uri=True)) as connection:
        bodies = [json.loads(body) for (body,) in connection.execute("select body from dpframe_entries")]
    return {body["label"]: body["asked"] for body in bodies if body.get("asked")}


def test_every_class_that_a_call_may_be_made_of_has_its_line():
    asked = {kind for kind in subclasses(Statistic) if kind.__name__ not in OF_A_PLAN}
    assert asked <= set(facts.FORMS)
    assert {keys.KeyAxis, keys.DtypeAxis, *subclasses(keys.KeyAxis), bins.BinAxis, *subclasses(bins.BinAxis)} <= set(
        facts.FORMS
    )
    noises = {kind for kind in subclasses(Mechanism) if getattr(kind, "additive", False) is True}
    made_by_a_plan = {"ContrastGaussian", "Stepped", "Thresholded"}
    assert {kind for kind in noises if kind.__name__ not in made_by_a_plan} <= set(facts.FORMS)


NO_FACTS = {  # fields that other facts imply, or that only affect the interval, which the record states
    statistics.Quantile: {"most_rows"},
    statistics.NUnits: {"or_rows"},
    statistics.SumByGroup: {"axis"},  # implied by the keys of the call
    statistics.MeanByGroup: {"axis"},
    statistics.QuantileByGroup: {"axis", "most_rows"},
    statistics.VarianceByGroup: {"axis"},
    statistics.StdByGroup: {"axis"},
    keys.KeyAxis: {"kinds"},  # of the columns of the frame
    discovery.FoundAxis: {"kinds"},
    bins.BinAxis: {"zone", "holds"},  # the zone of the labels, and the kind of the frame's column
    bins.RunningAxis: {"zone", "holds"},
    bins.DateAxis: {"shown", "holds"},  # implied by the edges and the zone
    RangeAxis: {"words", "outside", "closed", "zone", "holds"},  # a text for refusals, and constants
}


def test_every_fact_of_a_class_is_told():
    """The facts of a class cover each of its fields, and know the default of each field that has one."""
    for kind, form in facts.FORMS.items():
        if kind in (UnitsTotal, Conditional):  # one field gives two facts, or the facts of its content
            continue
        told = form.facts(Anything())
        given = [field for field in dataclasses.fields(kind) if field.init]  # the other fields are derived
        names = {field.name for field in given} if kind is not statistics.Mode else set()
        known = [field for field in given if field.name not in NO_FACTS.get(kind, ())]
        names &= {field.name for field in known}
        assert len(told) == len(names), kind
        has_default = [field for field in known if field.default is not dataclasses.MISSING]
        assert set(form.defaults) <= set(told), kind
        assert len(form.defaults) == len(has_default), kind


class Anything:
    """An object with every attribute, whose value is its name."""

    def __getattr__(self, name):
        return name


NUMBER = {"number": "1"}
WRITTEN = {  # statistics, and their facts as version 0.2.0 wrote them
    "contributors": (statistics.Contributors(), ("Contributors", {})),
    "units": (statistics.NUnits("age", True), ("NUnits", {"column": "age", "of_rows": True})),
    "mode": (statistics.Mode(), ("Count", {})),
    "a form for pure noise": (
        statistics.Mean("age", (1, 1.5), pure=True, shared=True),
        ("Mean", {"column": "age", "bounds": [NUMBER, {"number": "3/2"}], "pure": True, "shared": True}),
    ),
    "a choice": (
        statistics.TopK(1, True, "choice", 1, "so"),
        ("TopK", {"k": NUMBER, "counts": True, "by": "choice", "options": NUMBER, "why": "so"}),
    ),
    "a ratio": (
        statistics.Ratio("a", (1, 2), "b", (1, 2)),
        (
            "Ratio",
            {
                "column": "a",
                "bounds": [NUMBER, {"number": "2"}],
                "denominator": "b",
                "denominator_bounds": [NUMBER, {"number": "2"}],
            },
        ),
    ),
    "a total": (statistics.Total("age", by=("ward",)), ("Total", {"column": "age", "by": ["ward"]})),
    "rows": (statistics.Total(), ("Total", {})),
    "a centred total": (
        statistics.Total("age", (1, 2), centred=True),
        ("Total", {"column": "age", "bounds": [NUMBER, {"number": "2"}], "centred": True}),
    ),
    "a total of units": (statistics.Total("age", per_unit=True), ("Total", {"column": "age", "per_unit": True})),
    "units, each once": (statistics.Total(units=True), ("Total", {"units": True})),
    "a total of each unit": (
        statistics.Total("age", (1, 2), per_unit=True),
        ("Total", {"column": "age", "bounds": [NUMBER, {"number": "2"}], "per_unit": True}),
    ),
    "distinct values": (
        statistics.Total("age", per_unit=True, distinct=1),
        ("Total", {"column": "age", "per_unit": True, "distinct": NUMBER}),
    ),
    "times": (
        bins.BinAxis("at", (1, 2), "datetime", True, "clip", False),
        (
            "BinAxis",
            {
                "column": "at",
                "edges": [NUMBER, {"number": "2"}],
                "kind": "datetime",
                "aware": True,
                "outside": "clip",
                "closed": False,
            },
        ),
    ),
    "keys to be found": (
        discovery.FoundAxis(("ward",), discovery=discovery.Discovery(Fraction(1, 2))),
        (
            "FoundAxis",
            {"columns": ["ward"], "discovery": {"class": "Discovery", "parts": {"delta": {"number": "1/2"}}}},
        ),
    ),
    "a share": (Price(share=Fraction(1, 4)), ("Price", {"share": {"number": "1/4"}})),
    "truncated noise": (
        TruncatedLaplace(1, 1.0, 0.5, reach=1, counts=2),
        (
            "TruncatedLaplace",
            {
                "step_sensitivity": NUMBER,
                "step_scale": NUMBER,
                "grid": {"number": "1/2"},
                "reach": NUMBER,
                "counts": {"number": "2"},
            },
        ),
    ),
    "noise of another shape": (
        dpf.GeneralizedGaussian(1, 1.0, p=3.0, calibration="x"),
        (
            "GeneralizedGaussian",
            {"step_sensitivity": NUMBER, "step_scale": NUMBER, "calibration": "x", "p": {"number": "3"}},
        ),
    ),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_what_no_stored_answer_has_is_written_as_by_0_2(what):
    value, (kind, parts) = WRITTEN[what]
    with renamed():
        assert facts._plain(value) == {"class": kind, "parts": parts}


def test_the_words_that_ask_for_keys_are_in_no_fact():
    """If a dtype declares the keys, the table holds a sentence for people; a better one must not change the hash."""
    told = marginals(["ward", "sex"]).attributes[0]
    better = dataclasses.replace(told, missing="Declare keys.")
    assert facts.hash_of("keys", better) == facts.hash_of("keys", told)
    assert told.missing != better.missing


OTHERWISE = {  # a text of a stored call, and its replacement, which changes one fact
    "weights": ("weights={'n': 4}, epsilon", "weights={'n': 5}, epsilon"),
    "bounds": ("dp.sum('cost', bounds=(0, 100), epsilon", "dp.sum('cost', bounds=(0, 99), epsilon"),
    "ddof": ("ddof=0", "ddof=1"),
    "candidates": ("candidates=[0, 10,", "candidates=[0, 11,"),
    "value": ("dp.proportion('drug', value='d1'", "dp.proportion('drug', value='d2'"),
    "missing": ("missing='midpoint'", "missing='drop'"),
    "keys": ("keys=('B', 'A')", "keys=('A', 'B')"),
    "every": (
        "dpf.dates('2026-01-01', '2026-02-01', every='1mo')",
        "dpf.dates('2026-01-01', '2026-01-02', every='1d')",
    ),
    "outside": ("outside='clip', epsilon", "epsilon"),
    "counts": ("dp.top_k('unit', k=2, epsilon", "dp.top_k('unit', k=2, counts=True, epsilon"),
    "k": ("dp.top_k('unit', k=2, epsilon", "dp.top_k('unit', k=1, epsilon"),
    "degree": ("degree=1", "degree=2"),
    "at_least": ("at_least=2", "at_least=3"),
    "known": ("known=[('A', 'f')]", "known=[('A', 'm')]"),
    "order": ("order='ward'", "order='sex'"),
    "graph": ("graph=[('A', 'B'), ('B', 'C')]", "graph=[('A', 'B'), ('A', 'C')]"),
    "denoise": ("denoise=['nonnegative', 'rounded']", "denoise=['rounded', 'nonnegative']"),
    "keep_noisy": ("keep_noisy=False, ", ""),
    "mechanism": ("mechanism='laplace', ", "mechanism='gaussian', delta=1e-6, "),
    "epsilon": ("epsilon=Decimal('0.125')", "epsilon=Decimal('0.126')"),
    "confidence": ("confidence=0.9", "confidence=0.95"),
    "max_rows": ("dp.count(max_rows=5", "dp.count(max_rows=6"),
    "its own statistic": ("Middle('age', (0, 100), 3)", "Middle('age', (0, 100), 4)"),
    "noise of its own": ("mechanism=louder", "mechanism=laplace"),
}


@pytest.mark.parametrize("fact", OTHERWISE)
def test_a_question_that_differs_in_one_fact_is_refused(fact, ledgers):
    stored, other = OTHERWISE[fact]
    said = next(said for said in CALLS if said["ledger"] == "basic" and stored in said["call"])
    ledger = ledgers["basic"]
    spent = ledger.spent
    assert answers.answered(said["call"], EMPTY, ledger)["columns"] == said["columns"]
    with pytest.raises(dpf.LedgerError, match="name another release of this ledger"):
        answers.answered(said["call"].replace(stored, other), EMPTY, ledger)
    assert ledger.spent == spent


ALIKE = [(0.1, Decimal("0.1")), (0.3, Decimal("0.30")), (1e23, 10**23), (2.0**60, 1_152_921_504_606_847_000)]
SAME = [(0.5, Decimal("0.5")), (1.0, 1), (Decimal("0.1"), Decimal("0.10")), (3, Decimal(3))]


@pytest.mark.parametrize(("one", "other"), [*ALIKE, *SAME], ids=str)
def test_223_keys_of_one_decimal_and_other_values_are_other_keys(one, other):
    pd = pytest.importorskip("pandas")
    dp = pd.DataFrame({"x": pd.Series([7], dtype=object)}).dp.preview

    def of(key):
        yield dp.group_by("x", keys=[key, 7]).count(epsilon=1).question.query.keys
        yield dp.group_by("x", keys=[key, 7, dpf.REST]).count(epsilon=1).question.query.keys
        yield dp.agg(n=dpf.count(where={"x": [key, 7]}), epsilon=1).question.query.statistics
        yield dpf.proportion("x", value=key)
        yield dpf.discover(delta=1e-7, known=[key])

    for first, second in zip(of(one), of(other), strict=True):
        assert (facts.hash_of("keys", first) == facts.hash_of("keys", second)) is ((one, other) in SAME)


def test_a_price_is_the_decimal_that_was_typed():
    dp = pl.DataFrame({"x": [1]}).dp.preview
    prices = [dp.count(epsilon=epsilon).price for epsilon in (0.1, Decimal("0.1"), Fraction(1, 10))]
    assert len({facts.hash_of("price", price) for price in prices}) == 1


def test_223_a_stored_answer_is_not_replayed_for_another_key(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"g": pd.Series([0.1] * 5 + [Decimal("0.1")] * 50, dtype=object)})
    ledger = dpf.Ledger(epsilon=200, path=tmp_path / "l.ledger", head=tmp_path / "l.head")
    asked = {"epsilon": 50, "ledger": ledger, "label": "q", "snapshot": "v1"}
    frame.dp.group_by("g", keys=[0.1, 7]).count(**asked)
    with pytest.raises(dpf.LedgerError, match="keys differ"):
        frame.dp.group_by("g", keys=[Decimal("0.1"), 7]).count(**asked)
