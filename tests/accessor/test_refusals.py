"""Wrong calls raise the message in `refusals.toml`, before any row is read and before any charge."""

from __future__ import annotations

import inspect
import re
import traceback
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import HAS_PANDAS
from looking import of_rows
from refusals import REFUSALS, Refusal, private_frame

import dpframe as dpf
from dpframe import errors
from dpframe.release import results

LONGEST = 330
WARNINGS = (dpf.BoundsWarning, dpf.UnlimitedBudgetWarning, dpf.WeakPrivacyWarning)
CASES = [pytest.param(entry, name, id=f"{entry.id}-{name}") for entry in REFUSALS for name in entry.engines]
SUBJECTS = {  # allowed subjects of a message, in addition to the arguments of the public API
    "dpf.bins",
    "dpf.dates",
    "output columns",
    "mode",
    "top_k",
    "the call",
    "the file",
    "the frame",
    "the name of a statistic",
    "this frame",
    "a ledger",
    "no ledger",
    "the budget",
    "each argument of agg",
    "agg",
    "sum",
    "histogram",
}
RULES = (
    "must",
    "is not",
    "cannot",
    "carries no",
    "is exceeded",
    "is given",
    "is a released result",
    "is an option",
    "?",
)


def watched(frame: Any, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the frame, changed so that any read of its rows fails and is noted in `reads`."""

    def read(*_: Any) -> Any:
        reads.append("a row was read")
        raise AssertionError("a row was read")

    if isinstance(frame, pl.LazyFrame):
        return frame.map_batches(read, schema=frame.collect_schema())
    monkeypatch.setattr(results, "totals", of_rows(read))
    return frame


def message_of(refusal: Refusal, subject: Any, ledger: dpf.Ledger | None) -> str:
    """Make the call, check its error against the table, and return the message."""
    with ledger or nullcontext(), pytest.raises(dpf.DpframeError) as caught:
        refusal.call(subject)
    error = caught.value
    assert type(error) is refusal.error
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return str(error)


@pytest.mark.parametrize(("refusal", "engine"), CASES, indirect=["engine"])
def test_refused_in_words_before_a_row_is_read_or_charged(
    refusal: Refusal, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    subject = watched(refusal.prepare(private_frame(engine)), reads, monkeypatch)
    ledger = refusal.ledger()
    message = message_of(refusal, subject, ledger)
    if isinstance(refusal.words, str):
        assert message == refusal.words
    for part in refusal.words if isinstance(refusal.words, tuple) else ():
        assert part in message
    assert len(message) <= LONGEST
    assert "\n" not in message, "a Series, an array or a frame was printed"
    assert not re.search(r"0x[0-9A-Fa-f]{6}", message), "an address says nothing to a reader"
    paying = ledger or dpf.default_ledger()
    assert reads == []
    assert paying.spent == dpf.PrivacyLoss(0.0)
    assert paying.to_frame().height == 0


def test_the_watch_sees_a_row_being_read(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    subject = watched(private_frame(engine), reads, monkeypatch)
    with pytest.raises(dpf.ReleaseFailed) as caught:
        subject.dp.count("age", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert reads
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "an engine's message may hold private values"


@cache
def arguments() -> set[str]:
    """Return the names of all arguments of the public API."""
    called = [getattr(dpf, name) for name in dpf.__all__ if callable(getattr(dpf, name))]
    verbs = [
        getattr(owner, name, None)  # a `derived` member of dpf.Mechanism exists only on instances
        for owner in called
        if inspect.isclass(owner)
        for name in vars(owner)
        if name[0] != "_"
    ]
    accepted = [found for found in [*called, *verbs] if callable(found) and found not in WARNINGS]
    names = {"column", "by", "keys", "k", "counts"}
    for function in accepted:
        try:
            names |= set(inspect.signature(function).parameters)
        except ValueError:  # exceptions have no signature
            continue
    return names


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.id)
def test_the_words_name_their_subject_and_a_rule(refusal: Refusal) -> None:
    words = refusal.words if isinstance(refusal.words, str) else " ".join(refusal.words)
    subject = next((subject for subject in SUBJECTS if words.startswith(subject)), words.split()[0])
    misspelt = "is not an argument" in words or "is not an option" in words or "is not in the frame" in words
    total = "must be a statistic" in words  # its first word is the caller's own name
    assert subject in SUBJECTS | arguments() or misspelt or total
    assert any(rule in words for rule in RULES)


def test_the_table_is_large_and_without_repetition() -> None:
    assert len(REFUSALS) >= 180
    assert len({refusal.id for refusal in REFUSALS}) == len(REFUSALS)


def test_every_kind_of_refusal_occurs() -> None:
    public = {kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, dpf.DpframeError)}
    # not in the table: the base class, an unavailable ledger, failures after the charge, and errors of jobs
    no_refusals = {dpf.DpframeError, dpf.LedgerUnavailable, dpf.ReleaseFailed, errors.OutputFailed, errors.SourceFailed}
    assert public - no_refusals == {refusal.error for refusal in REFUSALS}


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_no_series_is_ever_printed(name: str) -> None:
    series = pl.Series([31, 45]) if name == "polars" else pytest.importorskip("pandas").Series([31, 45])
    for value in (series, [series], {"age": series}, (1, series)):
        assert "31" not in errors.shown(value)
        assert "31" not in errors.shown(value, kind=True)


def test_shown_values_are_short() -> None:
    assert len(errors.shown(list(range(1000)))) == 60
    assert errors.shown(10**5000) == "an int"


VERBS_MEANT = {
    "medain": "Write median",
    "groupby": "Write group_by(",
    "var": "Write variance",
    "nunique": "Write n_distinct",
    "value_counts": "Write histogram(",
    "discover": "keys=dpf.discover(",
    "max": "q=0.95",
    "min": "q=0.05",
    "ratio": "Write agg(dpf.ratio(",
    "filter": "Write it before .dp, as in df.filter(...).dp",
}


@pytest.mark.parametrize("name", VERBS_MEANT)
def test_a_verb_that_is_none_names_the_one_that_was_meant(name):
    with pytest.raises(AttributeError) as refusal:
        getattr(pl.DataFrame({"age": [1]}).dp, name)
    assert str(refusal.value).startswith(f".dp has no '{name}'. ")
    assert VERBS_MEANT[name] in str(refusal.value)


def test_python_adds_no_guess_to_the_words_of_a_missing_name():
    private = pl.DataFrame({"age": [1]})
    result = private.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    cases = [(private.dp, "avg"), (result.dp, "to_csv"), (result.dp, "tabel"), (dpf.public(private).dp, "parts_")]
    for dp, name in cases:
        with pytest.raises(AttributeError) as refusal:
            getattr(dp, name)
        last = "".join(traceback.format_exception_only(refusal.value)).strip()
        assert last == f"AttributeError: {refusal.value}"


def test_groups_list_no_verb_that_they_refuse():
    dp = pl.DataFrame({"age": [1]}).dp
    groups = dp.group_by("age", keys=[1])
    refused = {
        "mode": lambda: groups.mode("age", categories=[1], epsilon=1),
        "top_k": lambda: groups.top_k("age", k=1, categories=[1], epsilon=1),
        "marginals": lambda: groups.marginals(["age"], keys={"age": [1]}, epsilon=1, delta=1e-6),
        "suggest_bounds": lambda: groups.suggest_bounds("age", epsilon=1),
        "contributions": lambda: groups.contributions(epsilon=1),
    }
    for name, ask in refused.items():
        with pytest.raises(dpf.InvalidArgument, match=f"{name} must be called on the whole frame"):
            ask()
    hidden = {*refused, "local"}
    for shown in (
        dir(groups),
        repr(groups).replace(",", " ").split(),
        re.findall(r"<code>(\w+)", groups._repr_html_()),
    ):
        assert {"count", "histogram", "agg"} <= {*shown}
        assert not hidden & {*shown}
    assert hidden <= {*repr(dp).replace(",", " ").split()}
    assert "local" not in repr(dp.preview)


def test_local_is_no_attribute_of_groups_and_previews():
    dp = pl.DataFrame({"age": [1]}).dp
    assert "local" in dir(dp)
    assert hasattr(dp, "local")
    for other in (dp.group_by("age", keys=[1]), dp.preview, dp.preview.group_by("age", keys=[1])):
        assert "local" not in dir(other)
        assert not hasattr(other, "local")
        assert inspect.getmembers(other)
        with pytest.raises(dpf.InvalidArgument, match=r"local must follow df\.dp itself"):
            other.local.randomize("age")


def test_a_median_may_be_a_choice_and_its_refusal_says_so():
    dp = pl.DataFrame({"age": [1.0]}).dp.preview
    for ask, said in ((dp.median, True), (dp.mean, False), (dp.group_by("age", keys=[1.0]).median, False)):
        with pytest.raises(dpf.InvalidArgument, match="mechanism must be 'laplace', 'gaussian', 'auto'") as refusal:
            ask("age", bounds=(0, 9), epsilon=1, mechanism="x")
        assert ("'exponential'" in str(refusal.value)) is said


OF_RESULTS_MEANT = {
    "to_csv": 'Write table("csv")',
    "to_excel": 'Write table("excel")',
    "to_parquet": "Write write_parquet(path)",
    "cost": 'Write provenance["cost"]',
    "tabel": "Did you mean 'table'?",
}


@pytest.mark.parametrize("name", OF_RESULTS_MEANT)
def test_what_a_result_has_not_names_what_was_meant(name):
    result = pl.DataFrame({"age": [1]}).dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    with pytest.raises(AttributeError) as refusal:
        getattr(result.dp, name)
    assert str(refusal.value).startswith(f".dp of a result has no '{name}'. {OF_RESULTS_MEANT[name]}")


@pytest.mark.parametrize("name", ["__array__", "zzz"])
def test_what_is_like_no_verb_is_refused_without_a_guess(name):
    with pytest.raises(AttributeError) as refusal:
        getattr(pl.DataFrame({"age": [1]}).dp, name)
    assert str(refusal.value) == f".dp has no '{name}'"


ODD = {
    "a column": pl.Series([1, 2]),
    "an expression": pl.col("x"),
    "a frame": pl.DataFrame({"x": [1]}),
    "an array": np.array([1, 2]),
    "an array of no dimension": np.array(1.5),
}
CALLED = {
    "mechanism": lambda dp, **option: dp.count(**option),
    "progress": lambda dp, **option: dp.count(**option),
    "graph": lambda dp, **option: dp.group_by("x", keys=[1.0]).count(**option),
    "missing": lambda dp, **option: dp.mean("x", bounds=(0, 1), **option),
    "ddof": lambda dp, **option: dp.variance("x", bounds=(0, 1), **option),
    "step": lambda dp, **option: dp.median("x", bounds=(0, 1), **option),
    "outside": lambda dp, **option: dp.histogram("x", bins=[0, 1], **option),
    "bins": lambda dp, **option: dp.histogram("x", **option),
    "categories": lambda dp, **option: dp.histogram("x", **option),
    "objective": lambda dp, **option: dp.marginals(["x"], keys={"x": [1.0]}, degree=1, delta=1e-7, **option),
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
@pytest.mark.parametrize("option", CALLED)
def test_what_cannot_be_compared_is_refused_in_words(option, value):
    if option == "bins" and isinstance(value, np.ndarray | pl.Series) and value.shape:
        return  # a valid value for bins
    if option == "graph" and isinstance(value, pl.DataFrame):
        return
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting="basic")
    with pytest.raises(dpf.InvalidArgument) as refusal:
        CALLED[option](pl.DataFrame({"x": [1.0]}).dp, epsilon=0.5, ledger=ledger, **{option: value})
    assert str(refusal.value).startswith(option)
    assert ledger.spent.epsilon == 0


def test_a_step_that_is_hardly_above_0_is_refused():
    with pytest.raises(dpf.InvalidArgument, match="candidates must be at most"):
        pl.DataFrame({"x": [1.0]}).dp.preview.median("x", bounds=(0, 1), step=5e-324, epsilon=1)


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_terms_that_cannot_be_compared_are_refused_in_words(value):
    for name in ("neighbors", "nulls"):
        with pytest.raises(dpf.InvalidArgument, match=name):
            dpf.PrivacyUnit("patient", **{name: value})
    with pytest.raises(dpf.InvalidArgument, match="accounting"):
        dpf.Ledger(epsilon=1, accounting=value)


def test_114_declared_values_are_counted_before_they_are_made():
    many = range(10**12)
    for call in (lambda: dpf.discover(delta=1e-6, known=many), lambda: dpf.local.RandomizedResponse(many, epsilon=1)):
        with pytest.raises(dpf.InvalidArgument, match="1,000,000,000,000"):
            call()


SECRET = "Ann of Springfield"
LISTED = pl.Enum([SECRET, "B"])


def listed(library):
    table = pl.DataFrame(
        {
            "who": pl.Series([SECRET], dtype=LISTED),
            "all": pl.Series([[SECRET]], dtype=pl.List(LISTED)),
            "by": [{SECRET: 1}],
            "x": [1],
        }
    )
    if library == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.sql(f"create type listed as enum ('{SECRET}', 'B')")
        connection.sql(f'create table t (who listed, "all" listed[], "by" struct("{SECRET}" integer), x integer)')
        return connection.table("t")
    if library == "pandas":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame({"who": pandas.Categorical([SECRET]), "all": [[SECRET]], "by": [{SECRET: 1}]})
    return {"polars": table, "lazy": table.lazy(), "arrow": table.to_arrow()}[library]


@pytest.mark.parametrize("library", ["polars", "lazy", "arrow", "duckdb", "pandas"])
@pytest.mark.parametrize("column", ["who", "all", "by"])
def test_164_a_dtype_is_shown_without_the_values_that_it_lists(library, column):
    """Categories of an Enum and fields of a struct may be the names of people, and thousands of them."""
    ledger, frame = dpf.Ledger(epsilon=9, delta=1e-6), dpf.of(listed(library))
    ask = {"epsilon": 0.1, "ledger": ledger}
    months = dpf.dates("2026-01-01", "2026-03-01", every="1mo")
    found = dpf.discover(max_keys=2, delta=1e-7, known=["zz"])
    questions = (
        lambda: frame.sum(column, bounds=(0, 1), **ask),
        lambda: frame.histogram(column, bins=[0, 1], **ask),
        lambda: frame.group_by(column, keys=[1]).count(**ask),
        lambda: frame.group_by(column, keys=["zz"]).count(**ask),
        lambda: frame.group_by(column, keys=months).count(**ask),
        lambda: frame.group_by(column, keys=found).count(**ask),
        lambda: frame.proportion(column, value=3, **ask),
        lambda: frame.count(epsilon=0.1, ledger=dpf.Ledger(epsilon=1, unit=column)),
    )
    said = []
    for question in questions:
        try:
            question()
        except dpf.DpframeError as error:
            said.append(str(error))
    assert said
    assert not [words for words in said if SECRET in words or len(words) >= LONGEST]


@pytest.mark.parametrize("keys", ["frame", "pandas", "list", "dict", "none", "found"])
def test_164_a_column_that_is_named_twice_is_refused_by_name(keys):
    """Once, a frame of keys raised Polars' own message, and contributions without keys had an unreadable record."""
    frame = pl.DataFrame({"s": ["a", "b"], "u": [1, 2], "t": ["p", "q"]})
    declared = {
        "frame": pl.DataFrame({"s": ["a", "b"]}),
        "pandas": pl.DataFrame({"s": ["a"]}).to_pandas() if keys == "pandas" and HAS_PANDAS else None,
        "list": [("a", "a")],
        "dict": {"s": ["a"]},
        "none": None,
        "found": dpf.discover(max_keys=2, delta=1e-7),
    }[keys]
    ask = {"epsilon": 0.1, "ledger": dpf.Ledger(epsilon=9, delta=1e-6, unit="u"), "max_rows": 1, "max_groups": 1}
    alone = {"epsilon": 0.1, "ledger": ask["ledger"]}
    stream = {"statistic": dpf.count(), "time": "t", "periods": ["p", "q"], "by": ["s", "s"], "keys": declared}
    questions = [lambda: frame.dp.contributions(by=["s", "s"], keys=declared, **alone)] if keys != "found" else []
    if declared is not None:
        questions += [
            lambda: frame.dp.group_by(["s", "s"], keys=declared).count(**ask),
            lambda: frame.dp.group_by("s", "s", keys=declared).count(rollup=True, **ask),
            lambda: frame.dp.group_by("s", "s", keys=declared).count(cube=True, **ask),
        ]
    if declared is not None and keys != "found":  # a stream needs declared keys
        questions.append(lambda: dpf.Stream("s", **stream, max_rows=1, **alone).release(frame, "p"))
    for question in questions:
        with pytest.raises(dpf.InvalidArgument, match="by must name each column once, but 's' occurs twice") as caught:
            question()
        assert caught.value.__cause__ is None
    assert ask["ledger"].spent.epsilon == 0


@pytest.mark.parametrize("library", ["arrow", "pandas"])
def test_164_frames_with_two_columns_of_one_name_are_refused_by_name(library):
    pyarrow, frame = pytest.importorskip("pyarrow"), pl.DataFrame({"s": ["a", "b"]})
    if library == "arrow":
        table = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["s", "s"])
    else:
        table = pytest.importorskip("pandas").DataFrame([["a", "b"]], columns=["s", "s"])
    ask = {"epsilon": 0.1, "ledger": dpf.Ledger(epsilon=9)}
    for question in (
        lambda: frame.dp.group_by("s", keys=table).count(**ask),
        lambda: frame.dp.group_by("s", keys=["a", "b"]).count(graph=table, denoise="graph", **ask),
        lambda: dpf.of(table).count(**ask),
    ):
        with pytest.raises(dpf.InvalidArgument, match=r"different names|in the frame once|each column once"):
            question()
