"""Every engine gives the integers of Polars in memory or refuses by schema; one that breaks this is found."""

from __future__ import annotations

import functools
import operator
import pickle

import polars as pl
import pytest

import dpframe as dpf
from dpframe.engines.schema import check
from dpframe.engines.totals import totals
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count
from dpframe.testing import Partial, check_engine


class Toy:
    """A third-party engine, with pieces of a few rows or of a few whole units."""

    def __init__(self, frame, size=97):
        self.frame, self.size = frame, size

    def schema(self):
        return self.frame.schema

    def fold(self, columns, piece, by):
        assert set(columns) <= set(self.frame.columns)
        return functools.reduce(
            operator.add, map(piece, self.pieces(self.frame.select(columns) if columns else self.frame, by))
        )

    def pieces(self, frame, by):
        if by is None:
            return [frame.clear(), *frame.iter_slices(self.size)]
        return [frame.clear(), *self.whole(frame, by)]

    def whole(self, frame, by):
        unit = pl.col(by).fill_nan(None) if frame[by].dtype.is_float() else pl.col(by)
        return frame.with_row_index("_").with_columns(pl.col("_").min().over(unit) % 3).partition_by("_")

    def push(self, task):
        assert pickle.loads(pickle.dumps(task)) == task


class Split(Toy):
    """A deliberately broken engine: one unit is in two pieces."""

    def whole(self, frame, by):
        return list(frame.iter_slices(max(1, -(-frame.height // 2))))


class Twice(Toy):
    """A deliberately broken engine: a row is read twice."""

    def pieces(self, frame, by):
        return [*super().pieces(frame, by), frame[:1]]


class Lost(Toy):
    """A deliberately broken engine: rows without a unit are lost."""

    def whole(self, frame, by):
        return [frame.drop_nulls(by)]


class Arrow(Toy):
    def pieces(self, frame, by):
        return [piece.to_arrow() for piece in super().pieces(frame, by)]


class WithoutPush:
    def __init__(self, frame):
        self.schema, self.fold = Toy(frame).schema, Toy(frame).fold


ENGINES = {
    "toy": Toy,
    "arrow": Arrow,
    "without push": WithoutPush,
    "polars": lambda frame: frame,
    "lazy": pl.DataFrame.lazy,
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_polars_in_memory_bit_for_bit(engine):
    check_engine(ENGINES[engine], tables=1)


@pytest.mark.parametrize("broken", [Split, Twice, Lost])
def test_an_engine_that_breaks_its_contract_is_found(broken):
    with pytest.raises(AssertionError, match="differ on the table"):
        check_engine(broken, tables=1)


@pytest.mark.slow
def test_an_engine_that_refuses_everything_is_found():
    def make(frame):
        raise dpf.WrongDtype("no")

    with pytest.raises(AssertionError, match="every question is refused"):
        check_engine(make, tables=0)


class Floats(Toy):
    """A deliberately broken engine: its ids become floats, which merge two people."""

    def pieces(self, frame, by):
        return [piece.with_columns(pl.col("u").cast(pl.Float64)) for piece in super().pieces(frame, by)]


class Halved(Toy):
    def fold(self, columns, piece, by):
        found = super().fold(columns, piece, by)
        return Partial({total: cells / 2 for total, cells in found.totals.items()})


class Nothing(Toy):
    def fold(self, columns, piece, by):
        return None


PEOPLE = pl.DataFrame({"u": [2**53, 2**53 + 1], "x": [1.0, 2.0]})


def test_pieces_of_other_dtypes_are_read_as_nothing():
    with dpf.Ledger(epsilon=1, unit="u") as ledger:
        with pytest.raises(dpf.ReleaseFailed):
            dpf.of(Floats(PEOPLE)).count(max_rows=1, epsilon=1)
        assert ledger.spent.epsilon == 1


@pytest.mark.parametrize("engine", [Halved, Nothing])
def test_what_an_engine_returns_must_be_a_sum_of_its_pieces(engine):
    with pytest.raises(dpf.ReleaseFailed):
        dpf.of(engine(PEOPLE)).sum("x", bounds=(0, 4), epsilon=1, ledger=dpf.Ledger(epsilon=1))
    asked = check(engine(PEOPLE), Query("count", Keys(()), (("n", Count()),)), dpf.PrivacyUnit())
    with pytest.raises(dpf.InvalidType, match="fold must return the sum of what piece gave"):
        totals(engine(PEOPLE), asked, dpf.PrivacyUnit(), 1)


def test_answers_of_an_engine_are_polars_frames_and_refusals_come_before_the_charge():
    with dpf.Ledger(epsilon=1e6 + 1, unit="u") as ledger:
        asked = dpf.of(Toy(PEOPLE))
        with pytest.raises(dpf.UnknownColumn, match="Did you mean 'x'"):
            asked.sum("xx", bounds=(0, 4), max_rows=1, epsilon=1)
        with pytest.raises(dpf.InvalidArgument, match="memory must be left out"):
            asked.count(max_rows=1, epsilon=1, memory="1GiB")
        assert ledger.spent.epsilon == 0
        found = asked.sum("x", bounds=(0, 4), max_rows=1, epsilon=1e6)
        assert isinstance(found, pl.DataFrame)
        assert round(found["x_sum"][0]) == 3
        assert asked.preview.count(max_rows=1, epsilon=1).cost.epsilon == 1
