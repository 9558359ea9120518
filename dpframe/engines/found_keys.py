"""Totals by undeclared keys, folded over whole units, and the labels of the keys that are shown.

Every unit that holds t keys adds v(t) steps to each, for a norm of the noise as in `contributions`. A unit with more
than T keys keeps T of them, in an order that a secret drawn for each release decides. Nothing here can fail on a value,
and what a unit adds depends on its own rows alone. Candidates are the keys of a table and the known keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.columns.found_labels import (
    codes_of_known,
    ends_of_times,
    form_of,
    in_order,
    is_written_as_text,
    labels,
)
from dpframe.engines.columns.identity import UNNAMED, without_bytes
from dpframe.engines.columns.source import ColumnRequest, ColumnType, collected, source_of, unit_requests
from dpframe.engines.engine import Engine, Partial, Reading
from dpframe.engines.sums.cells import Integers
from dpframe.engines.sums.weights import unit_codes
from dpframe.engines.task import RowTask
from dpframe.engines.totals import answered, engine_of
from dpframe.errors import InvalidType
from dpframe.privacy import PrivacyUnit
from dpframe.queries.discovery import FoundAxis

STEPS, UNITS = "steps", "units"  # sums for each key: the weights of its units, and the number of units that hold it
OWNER = "unit"
KNOWN = "known"


class KeyedPartial(Partial):
    """Exact totals by key of some units: sorted keys, each with int64 numbers. Partials are added key by key."""

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
    """Return the columns of the keys."""
    return [name for name in table.columns if name not in (STEPS, UNITS, OWNER)]


@dataclass(frozen=True)
class KeyedTask(RowTask):
    """Question of which keys exist and how many units hold each; it is public, except for its secret."""

    axis: FoundAxis
    unit: PrivacyUnit
    weights: tuple[int, ...]  # v(t) for t = 1, 2, ..., T
    secret: int  # of the order; no result shows it
    types: dict[str, ColumnType]

    @classmethod
    def of(cls, engine: Engine, axis: FoundAxis, unit: PrivacyUnit, weights: tuple[int, ...], secret: int) -> Self:
        """Return the task for a table of the engine's schema."""
        types = engine.schema()
        names = (*axis.columns, *unit.columns)
        return cls(axis, unit, weights, secret, {name: types[name] for name in names})

    def piece(self, frame: Any) -> KeyedPartial:
        """Return the keys of some rows (all rows of some units, if there is a unit)."""
        return self.weigh(self.coded(frame))

    def coded(self, frame: Any) -> pl.DataFrame:
        """Return coded rows: the key of each row, and its unit."""
        source = self._brought(frame)
        columns = self.axis.columns
        requests: list[ColumnRequest] = [(f"key{number}", of, "found", None) for number, of in enumerate(columns)]
        names = [name for name, *_ in requests]
        requests += unit_requests(self.unit)
        lazy = source.load(requests)
        assert self.axis.discovery is not None
        kept = [] if self.axis.discovery.nulls else names
        if self.by is not None and self.unit.nulls == "drop":
            kept = [*kept, OWNER]
        unnamed = [name for name, of, *_ in requests[: len(names)] if is_written_as_text(source.column(of))]
        if unnamed:  # drop values that nobody could declare as a key
            lazy = lazy.filter(*(pl.col(name).ne_missing(UNNAMED) for name in unnamed))
        for name, of, *_ in requests[: len(names)]:
            if (ends := ends_of_times(source.column(of))) is not None:
                lazy = lazy.filter(pl.col(name).cast(pl.Int64).is_between(*ends).fill_null(True))
        return without_bytes(collected(lazy.drop_nulls(kept) if kept else lazy, source.rows), names)

    def combine(self, table: pl.DataFrame) -> pl.DataFrame:
        """Combine coded rows: each pair of unit and key once."""
        return table.unique()

    def weigh(self, table: pl.DataFrame) -> KeyedPartial:
        """Return the keys of all rows of some units, or of all their pairs of unit and key."""
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
        """Return which pairs count: for a unit with more than `most` keys, the first ones in the secret order.

        The order is a hash of 64 bits; if two keys of a unit have the same hash, their values decide.
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
    """Return the sorted keys of a table, the steps of each, and its number of units. This releases no key."""
    engine = engine_of(frame, reading or Reading())
    task = KeyedTask.of(engine, axis, unit, weights, secret)
    partial = answered(engine, task)
    if not isinstance(partial, KeyedPartial):
        raise InvalidType("fold must return the sum of what piece gave")
    return partial.table


def key_candidates(
    frame: Any, axis: FoundAxis, table: pl.DataFrame
) -> tuple[pl.DataFrame, Integers, NDArray[np.bool_]]:
    """Return the keys that get noise, the steps of each, and which are known: these stay even if no row holds them.

    Of the other keys, those held by fewer than `at_least` units are dropped.
    """
    assert axis.discovery is not None
    names = keys_of(table)
    schema = {name: table.schema[name] for name in names}
    known = pl.DataFrame(codes_of_known(source_of(frame), axis), schema=schema, orient="row")
    nothing = [pl.lit(0, dtype=pl.Int64).alias(name) for name in (STEPS, UNITS)]
    both = [
        table.with_columns(pl.lit(False).alias(KNOWN)),
        known.with_columns(*nothing, pl.lit(True).alias(KNOWN)),
    ]
    whole = pl.concat(both).group_by(names).agg(pl.col(STEPS, UNITS).sum(), pl.col(KNOWN).any())
    kept = pl.col(KNOWN) | ((pl.col(UNITS) >= axis.discovery.at_least) & (pl.col(STEPS) > 0))
    candidates = whole.filter(kept).sort(names, nulls_last=True)
    return candidates.select(names), candidates[STEPS].to_numpy(), candidates[KNOWN].to_numpy().astype(bool)


def ordered(frame: Any, axis: FoundAxis, keys: pl.DataFrame) -> Integers:
    """Return the positions of keys in the order of their labels."""
    return in_order(list(label_columns(frame, axis, keys).values())).to_numpy().astype(np.int64)


def label_columns(frame: Any, axis: FoundAxis, keys: pl.DataFrame) -> dict[str, Any]:
    """Return the columns that name the keys; the schema decides their dtypes, whatever keys there are."""
    source = source_of(frame)
    return {name: labels(keys[f"key{number}"], source.column(name)) for number, name in enumerate(axis.columns)}


def forms(frame: Any, axis: FoundAxis) -> list[str]:
    """Return the form in which the values of each column of keys are encoded."""
    source = source_of(frame)
    return [form_of(source.column(name)) for name in axis.columns]


def written(keys: pl.DataFrame) -> list[list[Any]]:
    """Return keys column by column as plain JSON values; a float is exact as hexadecimal digits."""
    return [
        [value.hex() if isinstance(value, float) else value for value in column.to_list()]
        for column in keys.get_columns()
    ]


def read(lists: Sequence[list[Any]], empty: pl.DataFrame) -> pl.DataFrame:
    """Read keys back from the lists of `written`; `empty` has keys of the same dtypes."""
    columns = []
    for (name, dtype), values in zip(empty.select(keys_of(empty)).schema.items(), lists, strict=True):
        plain = [None if value is None else float.fromhex(value) for value in values] if dtype == pl.Float64 else values
        columns.append(pl.Series(name, plain, dtype=dtype))
    return pl.DataFrame(columns)
