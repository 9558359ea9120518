"""Every engine gives the integers of Polars in memory, or refuses by schema; one that breaks its contract is found."""

from __future__ import annotations

import functools
import operator
import pickle

import polars as pl
import pytest

import dpframe as dpf
from dpframe.testing import check_engine


class Toy:
    """An engine from outside: pieces of a few rows, or of a few whole units."""

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
    """The drill: one unit is in two pieces."""

    def whole(self, frame, by):
        return list(frame.iter_slices(max(1, -(-frame.height // 2))))


class Twice(Toy):
    """A row is read twice."""

    def pieces(self, frame, by):
        return [*super().pieces(frame, by), frame[:1]]


class Lost(Toy):
    """Rows without a unit are lost."""

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


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_polars_in_memory_bit_for_bit(engine):
    check_engine(ENGINES[engine], tables=1)


@pytest.mark.parametrize("broken", [Split, Twice, Lost])
def test_an_engine_that_breaks_its_contract_is_found(broken):
    with pytest.raises(AssertionError, match="differ on the table"):
        check_engine(broken, tables=1)


def test_an_engine_that_refuses_everything_is_found():
    def make(frame):
        raise dpf.WrongDtype("no")

    with pytest.raises(AssertionError, match="every question is refused"):
        check_engine(make, tables=0)
