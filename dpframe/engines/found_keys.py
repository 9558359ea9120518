"""Candidates for keys: those of a table together with what is known, and the labels of those that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.found_labels import codes_of_known, form_of, in_order, labels
from dpframe.engines.keyed import STEPS, UNITS, keys_of
from dpframe.engines.source import source_of
from dpframe.queries.discovery import FoundAxis

KNOWN = "known"
Integers = NDArray[np.int64]


def key_candidates(
    frame: Any, axis: FoundAxis, table: pl.DataFrame
) -> tuple[pl.DataFrame, Integers, NDArray[np.bool_]]:
    """The keys that get noise, the steps of each, and which are known: these are there whether a row holds them or not.

    Of the others those of fewer than `at_least` units are dropped.
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
    """The places of keys in the order of their labels."""
    return in_order(list(label_columns(frame, axis, keys).values())).to_numpy().astype(np.int64)


def label_columns(frame: Any, axis: FoundAxis, keys: pl.DataFrame) -> dict[str, Any]:
    """The columns that name the keys; their dtypes are those of the schema, whatever keys there are."""
    source = source_of(frame)
    return {name: labels(keys[f"key{number}"], source.column(name)) for number, name in enumerate(axis.columns)}


def forms(frame: Any, axis: FoundAxis) -> list[str]:
    """The forms in which the values of each column of keys are written down."""
    source = source_of(frame)
    return [form_of(source.column(name)) for name in axis.columns]


def written(keys: pl.DataFrame) -> list[list[Any]]:
    """Keys column by column as plain JSON values; a float as its hexadecimal digits, which are exact."""
    return [
        [value.hex() if isinstance(value, float) else value for value in column.to_list()]
        for column in keys.get_columns()
    ]


def read(lists: Sequence[list[Any]], empty: pl.DataFrame) -> pl.DataFrame:
    """The same read back; `empty` has keys of the same dtypes."""
    columns = []
    for (name, dtype), values in zip(empty.select(keys_of(empty)).schema.items(), lists, strict=True):
        plain = [None if value is None else float.fromhex(value) for value in values] if dtype == pl.Float64 else values
        columns.append(pl.Series(name, plain, dtype=dtype))
    return pl.DataFrame(columns)
