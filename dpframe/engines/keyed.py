"""Totals by keys that nobody declared: the keyed fold, of whole units.

Every unit that holds t keys adds v(t) steps to each, for a norm of the noise as in `unit_weights`; of more than T keys
it keeps T, in an order of its own that a key drawn afresh for each release decides. Nothing here can fail on a value,
and what a unit adds depends on its own rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from dpframe.engines.cells import Integers
from dpframe.engines.choice import FromOutside, engine_of
from dpframe.engines.engine import Engine, Partial
from dpframe.engines.found_labels import is_coded
from dpframe.engines.key_codes import UNNAMED
from dpframe.engines.row_task import RowTask
from dpframe.engines.source import ColumnRequest, ColumnType, collected, types_of
from dpframe.engines.streaming import Reading
from dpframe.engines.utf8 import without_bytes
from dpframe.engines.weights import unit_codes
from dpframe.errors import InvalidType
from dpframe.privacy import PrivacyUnit
from dpframe.queries.discovery import FoundAxis

STEPS, UNITS = "steps", "units"  # what is summed for each key: the weights of its units, and how many hold it
OWNER = "unit"


class KeyedPartial(Partial):
    """Exact totals by key of some units: sorted keys, each with its int64 numbers. They are added key by key."""

    table: pl.DataFrame

    def __init__(self, table: pl.DataFrame) -> None:
        names = keys_of(table)
        summed = table.group_by(names).agg(pl.col(STEPS, UNITS).sum())
        object.__setattr__(self, "totals", {})
        object.__setattr__(self, "table", summed.sort(names, nulls_last=True))

    def __add__(self, other: Any) -> KeyedPartial:
        if not isinstance(other, KeyedPartial):
            return NotImplemented
        return KeyedPartial(pl.concat([self.table, other.table]))


def keys_of(table: pl.DataFrame) -> list[str]:
    """The columns of the keys."""
    return [name for name in table.columns if name not in (STEPS, UNITS, OWNER)]


@dataclass(frozen=True)
class KeyedTask(RowTask):
    """The question which keys are there, and by how many units each is held: public, but for the key of its order."""

    axis: FoundAxis
    unit: PrivacyUnit
    weights: tuple[int, ...]  # v(t) of t = 1, 2, ..., T
    secret: int  # of the order; it reaches no result
    types: dict[str, ColumnType]

    @classmethod
    def of(cls, engine: Engine, axis: FoundAxis, unit: PrivacyUnit, weights: tuple[int, ...], secret: int) -> Self:
        """The task for a table of the engine's schema."""
        types = types_of(engine.schema())
        names = [*axis.columns, *([] if unit.column is None else [unit.column])]
        return cls(axis, unit, weights, secret, {name: types[name] for name in names})

    def piece(self, frame: Any) -> KeyedPartial:
        """The keys of some rows; where there is a unit, of all rows of some units."""
        return self.weigh(self.coded(frame))

    def coded(self, frame: Any) -> pl.DataFrame:
        """The key of each row, and its unit."""
        source = self._brought(frame)
        columns = self.axis.columns
        requests: list[ColumnRequest] = [(f"key{number}", of, "found", None) for number, of in enumerate(columns)]
        names = [name for name, *_ in requests]
        if self.by is not None:
            requests.append((OWNER, self.by, "unit", None))
        lazy = source.load(requests)
        assert self.axis.discovery is not None
        kept = [] if self.axis.discovery.nulls else names
        if self.by is not None and self.unit.nulls == "drop":
            kept = [*kept, OWNER]
        unnamed = [name for name, of, *_ in requests[: len(names)] if is_coded(source.column(of))]
        if unnamed:  # values that nobody could declare as a key
            lazy = lazy.filter(*(pl.col(name).ne_missing(UNNAMED) for name in unnamed))
        return without_bytes(collected(lazy.drop_nulls(kept) if kept else lazy, source.rows), names)

    def combine(self, table: pl.DataFrame) -> pl.DataFrame:
        """Each unit and key once."""
        return table.unique()

    def weigh(self, table: pl.DataFrame) -> KeyedPartial:
        """The keys of all rows of some units, or of all their pairs of unit and key."""
        if self.by is None:
            of_one_row = [pl.lit(self.weights[0], dtype=pl.Int64).alias(STEPS), pl.lit(1, dtype=pl.Int64).alias(UNITS)]
            return KeyedPartial(table.with_columns(of_one_row))
        pairs = table.unique()  # before the cap: it is of keys, not of rows
        owner, size = unit_codes(pairs[OWNER])
        held = np.bincount(owner, minlength=size)[owner] if size else np.zeros(0, dtype=np.int64)
        most = len(self.weights)
        kept = self._kept(pairs, owner, held, most)
        steps = np.array(self.weights, dtype=np.int64)[np.minimum(held, most) - 1] if held.size else held
        numbers = [pl.Series(STEPS, steps, dtype=pl.Int64), pl.lit(1, dtype=pl.Int64).alias(UNITS)]
        return KeyedPartial(pairs.with_columns(numbers).drop(OWNER).filter(pl.Series(kept, dtype=pl.Boolean)))

    def _kept(self, pairs: pl.DataFrame, owner: Integers, held: Integers, most: int) -> Any:
        """Tell which pairs count: of a unit with more than `most` keys the first ones in the keyed order.

        The order is of 64 bits; where two keys of a unit have the same, their values decide.
        """
        kept = np.ones(pairs.height, dtype=bool)
        beyond = np.flatnonzero(held > most)
        if not beyond.size:
            return kept
        names = keys_of(pairs)
        few = pairs[beyond].select(names).with_columns(pl.Series(" owner", owner[beyond]), pl.Series(" place", beyond))
        few = few.with_columns(few.select(names).hash_rows(self.secret).alias(" order"))
        few = few.sort([" owner", " order", *names], nulls_last=True)
        rank = few.select(pl.int_range(pl.len()).over(" owner"))
        kept[few[" place"].to_numpy()] = rank.to_series().to_numpy() < most
        return kept


def keyed(
    frame: Any,
    axis: FoundAxis,
    unit: PrivacyUnit,
    weights: tuple[int, ...],
    secret: int,
    reading: Reading | None = None,
) -> pl.DataFrame:
    """The keys of a table in their order: what they are, the steps of each, and its units. No key is shown by this."""
    engine = engine_of(frame, reading or Reading())
    task: Any = KeyedTask.of(engine, axis, unit, weights, secret)
    partial: Any = None if isinstance(engine, FromOutside) else engine.push(task)  # one from outside knows no such task
    if partial is None:
        partial = engine.fold(task.columns, task.piece, task.by)
    if not isinstance(partial, KeyedPartial):
        raise InvalidType("fold must return the sum of what piece gave")
    return partial.table
