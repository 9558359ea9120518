"""The rules of a statistic: the statistics that ship keep them, and one that breaks a rule is refused."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from assurance.engines import as_dask, as_dataset, as_relation, in_pandas
from dpframe import engines
from dpframe.engines.compiled import kernels
from dpframe.engines.totals import WAY_CHANGES
from dpframe.queries import row_functions
from dpframe.queries.row_functions import Share, TwoSided, centred_squares
from dpframe.queries.statistics import Clipped, Contributors, Mean, Mode, RowFunction, Statistic, Sum, Total
from dpframe.queries.total import Norm, SumTotal
from dpframe.queries.vectors import bernstein, pair_cells, two_sided
from dpframe.testing import ContractBroken, check_statistic, statistic_rules

SHIPPED = [dpf.count(), dpf.count("x"), dpf.sum("x", bounds=(-3, 8)), dpf.mean("x", bounds=(-3, 8)), Mode()]


@pytest.mark.slow
@pytest.mark.parametrize("statistic", SHIPPED, ids=str)
def test_what_ships_keeps_the_rules(statistic):
    check_statistic(statistic)


class TwoPercent(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values, errors * 0.8


class Forgetful(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values[:-1], errors[:-1]


class Infinite(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values, np.full_like(errors, np.inf)


class Random(Mean):
    def answer(self, measured):
        values, errors = super().answer(measured)
        return values + np.random.default_rng().normal(size=values.shape), errors


class Writing(Mean):
    def answer(self, measured):
        for one in measured.values():
            one.values[:] = 0
        return super().answer(measured)


class Hopeful(Mean):
    def expected_error(self, noises, size, confidence=0.95):
        return super().expected_error(noises, size, confidence) / 3.0


class AddingUp(Mean):
    adds_up: ClassVar[bool] = True


class Thousands(Sum):
    """Reads one noisy Total, but does not answer it unchanged."""

    verb: ClassVar[str] = "thousands"

    def answer(self, measured):
        values, errors = super().answer(measured)
        return values / 1000, errors / 1000

    def expected_error(self, noises, size, confidence=0.95):
        return super().expected_error(noises, size, confidence) / 1000


class Percent(Mean):
    """Gives another answer under the verb of a mean."""

    def answer(self, measured):
        values, errors = super().answer(measured)
        return 100 * values, 100 * errors

    def expected_error(self, noises, size, confidence=0.95):
        return 100 * super().expected_error(noises, size, confidence)


class Unnamed(Mean):
    def facts(self):
        return {"verb": self.verb}


class Changing(Mean):
    def totals(self):
        return tuple(replace(one, column=f"{one.column}{np.random.default_rng().random()}") for one in super().totals())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (TwoPercent, "coverage"),
        (Forgetful, "shape"),
        (Infinite, "finite"),
        (Random, "arithmetic"),
        (Writing, "arithmetic"),
        (Hopeful, "expected error: .* about the error of a release"),
        (AddingUp, "totals"),
        (Thousands, "denoisable"),
        (Percent, "success: .* verb must be a word of its own"),
        (Unnamed, "record"),
        (Changing, "totals"),
    ],
)
def test_one_that_breaks_a_rule_is_refused(kind, rule):
    with pytest.raises(ContractBroken, match=rf"^{rule}"):
        check_statistic(kind("x", (0, 8)))


@pytest.mark.parametrize("bounds", [(50, 60), (-60, -50), (0, 8)])
def test_values_that_are_made_up_lie_within_the_bounds(bounds):
    made = statistic_rules._inside(dpf.mean("x", bounds=bounds), np.random.default_rng(0), 100)["x"]
    assert bounds[0] <= made.min() < made.max() <= bounds[1]
    present = statistic_rules._inside(dpf.count("x"), np.random.default_rng(0), 100)["x"]
    assert 0.0 <= present.min() < present.max() <= 1.0


def test_something_else_is_no_statistic():
    with pytest.raises(ContractBroken, match="kind"):
        check_statistic(lambda values: values)  # type: ignore[arg-type]


def test_a_sum_whose_charge_is_too_small_is_refused(monkeypatch):
    monkeypatch.setattr(SumTotal, "norm", lambda total, weighted: Norm(2.0**-26))
    with pytest.raises(ContractBroken, match="sensitivity"):
        check_statistic(dpf.sum("x", bounds=(0, 8)))


@pytest.mark.parametrize("reach", [(1, 0), (0, 2**31 + 1), (-(2**40), 0)])
def test_a_reach_that_cannot_be_summed_exactly_is_refused(reach):
    with pytest.raises(dpf.InvalidArgument, match="reach must be"):
        RowFunction((("x", (0.0, 1.0)),), abs, reach, 1.0, "x")


def test_kinds_that_dpframe_asks_itself_keep_the_words():
    assert (Contributors().default_name, str(Mode())) == ("count", "mode()")
    assert isinstance(Contributors(), Statistic)


# Attacks 144 and 145: each row function has one definition


BITS = 30
X = (("x", (0.0, 8.0)),)


OWN_SHARE = Share(0, 2**30, BITS)


@dataclass(frozen=True)
class UpperHalf:
    """Counts fully for values in the upper half; its attributes are those of dpframe's own linear share."""

    share_of: Share = OWN_SHARE
    share: Share = OWN_SHARE
    above: bool = True
    mirror: None = None

    def __call__(self, steps):
        return np.where(steps >= 2**29, 2**BITS, 0)


@dataclass(frozen=True)
class LikeShares(TwoSided):
    """A subclass of dpframe's own class that computes something else."""

    def __call__(self, steps):
        return np.where(steps >= 2**29, 2**BITS, 0)


def row_of(function, reach=(0, 2**BITS), values=X, missing=None):
    return RowFunction(values, function, reach, 2.0**-BITS, "a row", missing)


@dataclass(frozen=True)
class ByRows(Clipped):
    """A statistic of one function of a row."""

    verb: ClassVar[str] = "by_rows"
    row: RowFunction | None = None

    def totals(self):
        return (Total(row=self.row),)


def statistic_of(row):
    (column, bounds), *_ = row.columns
    return ByRows(column, bounds, row)


OTHER_GRID = RowFunction((("x", (0.0, 5.0)),), TwoSided(OWN_SHARE, True), (0, 2**BITS), 1.0, "a row")
LOOKALIKES = {
    "attributes": row_of(UpperHalf()),
    "subclass": row_of(LikeShares(OWN_SHARE, True)),
    "other way of a subclass": row_of(LikeShares(OWN_SHARE, False)),
    "other bounds": OTHER_GRID,
    "narrow reach": row_of(TwoSided(OWN_SHARE, False), (0, 2**29)),
    "more bits": row_of(TwoSided(Share(0, 2**30, 31), True), (0, 2**31)),
    "two columns": row_of(lambda x, y: UpperHalf()(x), values=(*X, ("y", (0.0, 1.0)))),
}
OWN = [row for vector in (two_sided("x", (-3.0, 8.0)), bernstein("x", (0.1, 0.7))) for row in vector.entries]
OWN += [*two_sided("x", (-1e-9, 5e4), everyone=True).entries, centred_squares("x", (-3.0, 8.0))]
OWN += [*pair_cells((("x", (0.0, 1.0)), ("y", (-2.0, 5.0))), 0, 1, 1).entries]


@pytest.mark.slow
@pytest.mark.parametrize("row", [*LOOKALIKES.values(), *OWN], ids=[*LOOKALIKES, *map(str, range(len(OWN)))])
def test_144_every_way_adds_up_what_the_function_gives(row):
    statistic_rules._check_row_functions(statistic_of(row))


@pytest.mark.parametrize("name", LOOKALIKES)
def test_144_only_dpframes_own_shares_have_expressions(name):
    """Spark sums its own expressions for a share that the engine knows, so nothing else may be taken for one."""
    row = LOOKALIKES[name]
    assert row_functions.plain_share(row) is None
    assert row_functions.reading_of(row) == row_functions.Reading(row, sum=1)
    below, above = two_sided("x", (0.0, 8.0)).entries[::-1]
    assert row_functions.plain_share(above) is above.function.share
    assert row_functions.reading_of(below) == row_functions.Reading(above, present=2**BITS, sum=-1)


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "dataset", "duckdb", "dask"])
@pytest.mark.parametrize("rows", [5_000, 300_000])
def test_144_an_answer_does_not_depend_on_the_number_of_rows(kind, rows):
    """Half of the values are in the upper half. A linear share would give a quarter, in large tables only."""
    x = np.where(np.arange(rows) % 2, 4.1, 0.1) - 0.1
    frame = pl.DataFrame({"x": x, "k": np.resize(["A", "B", "B", "A"], rows)})
    make = {"polars": pl.DataFrame, "lazy": pl.DataFrame.lazy, "pandas": in_pandas, "dataset": as_dataset}
    make |= {"duckdb": as_relation, "dask": as_dask}
    for package in {"pandas": ["pandas"], "dask": ["pandas", "dask"], "duckdb": ["duckdb"]}.get(kind, []):
        pytest.importorskip(package)
    found = dpf.of(make[kind](frame)).group_by("k", keys=["A", "B"])
    ledger = dpf.Ledger(epsilon=1e9)
    half = found.agg(x=statistic_of(LOOKALIKES["attributes"]), epsilon=1e9, ledger=ledger, denoise=None)
    assert list(half["x"] / (rows / 2)) == pytest.approx([0.5, 0.5], abs=1e-6)


def shifted(steps):
    return steps - steps.min(initial=2**30)


def by_size(steps):
    return np.full(steps.shape, int(steps.size > 100))


def as_floats(steps):
    return steps / 2.0


def at_once(steps):
    return steps.max(initial=0)


calls: list[int] = []


def by_turns(steps):
    calls.append(0)
    return np.full(steps.shape, len(calls) % 2)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (shifted, "must give a row the same, whatever the other rows are"),
        (by_size, "must give a row the same, whatever the other rows are"),
        (by_turns, "must give a row the same, whatever the other rows are"),
        (as_floats, "must be an integer for each row"),
        (at_once, "must be an integer for each row"),
    ],
)
def test_145_a_function_of_more_than_its_row_is_refused(function, words):
    with pytest.raises(ContractBroken, match=rf"^rows: a row {words}"):
        check_statistic(statistic_of(row_of(function)))


def speaking(steps):
    print(steps[:1])
    return np.zeros(steps.shape, dtype=np.int64)


def test_a_function_that_prints_is_refused():
    with pytest.raises(ContractBroken, match=r"^silence: a RowFunction must not print"):
        check_statistic(statistic_of(row_of(speaking)))


def test_145_an_engine_that_takes_another_function_is_found(monkeypatch):
    """The engine reads a share from the attribute and does not call the function, as it once did."""
    monkeypatch.setattr(RowFunction, "of_steps", lambda row, steps: row.function.share_of(steps.astype(np.int64)) * 1.0)
    with pytest.raises(ContractBroken, match=r"^rows: of a row, the engine must add up what its function gives"):
        check_statistic(statistic_of(LOOKALIKES["attributes"]))


@pytest.mark.slow
def test_145_ways_that_differ_in_large_tables_alone_are_found(monkeypatch):
    if not kernels.ready():
        pytest.skip("compiled kernels are not installed")
    monkeypatch.setattr(kernels._loaded(), "to_share", lambda *_: None)
    with pytest.raises(ContractBroken, match=r"^rows: .*, and does not in 131,073 rows"):
        check_statistic(statistic_of(OWN[0]))


def failing(steps):
    raise ValueError(steps)


def writing(steps):
    steps += 1
    return steps


@pytest.mark.parametrize("function", [failing, writing, as_floats, at_once])
def test_145_a_function_that_cannot_be_called_costs_nothing(engine, function):
    """Engines do not call it for an empty frame, so it is tried on the bounds before the charge."""
    ledger, half = dpf.Ledger(epsilon=1), statistic_of(row_of(function))
    for rows in ([1.0, None], [1.0, 2.0], []):
        with pytest.raises(dpf.InvalidArgument, match="the function of 'a row' must"):
            engine({"x": rows}, x=pl.Float64).dp.agg(x=half, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_145_all_numbers_of_rows_at_which_the_way_changes_are_tried():
    """If this fails, add the engine's new constant to WAY_CHANGES, or to `other` if no row function depends on it."""
    other = {"PARALLEL_ROWS", "MOST_ROWS", "EXACT_ROWS"}  # of histograms, of pieces and pairs, of one unit
    found = set()
    for module in pkgutil.walk_packages(engines.__path__, engines.__name__ + "."):
        if module.name.rpartition(".")[2] == "loops":
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if type(value) is int and (name == "BLOCK" or name.endswith("_ROWS")) and name not in other:
                found.add(value)
    assert {value for value in found if value > 2**15} == set(WAY_CHANGES)  # larger tables also reach the smaller ones
