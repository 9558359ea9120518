"""Columns of Spark on their way to Python: several narrow ones in one word of 64 bits.

Spark brings rows to Arrow value by value, and takes as long for a byte as for a word. So a word carries as many narrow
columns as it holds: of each all its bits, and one that is set where the value is missing. Nothing is lost, and bits are
all that is worked on: no expression can fail on a value. Which columns share a word follows from the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

BITS = {pl.Boolean: 1, pl.Int8: 8, pl.Int16: 16, pl.Int32: 32, pl.Date: 32}
WORD = 64


@dataclass(frozen=True)
class Columns:
    """The columns that are read, and how they come: alone, or several in a word."""

    dtypes: Mapping[str, Any]
    unit: str | None = None  # comes alone: Spark shuffles by it

    @property
    def groups(self) -> list[list[str]]:
        """The names of each column that comes: of one column, or of those that share a word, lowest bits first."""
        groups: list[list[str]] = []
        used: list[int] = []
        for name, dtype in self.dtypes.items():
            bits = WORD if name == self.unit or dtype not in BITS else BITS[dtype] + 1
            place = next((place for place, others in enumerate(used) if others + bits <= WORD), len(groups))
            if place == len(groups):
                groups.append([])
                used.append(0)
            groups[place].append(name)
            used[place] += bits
        return groups


def word_in_sql(columns: Sequence[tuple[str, Any]]) -> str:
    """One word of some columns of given dtypes, as Spark's expression."""
    fields, shift = [], 0
    for column, dtype in columns:
        bits = BITS[dtype]
        number = f"unix_date({column})" if dtype == pl.Date else column
        field = f"coalesce(cast({number} as bigint) & {2**bits - 1}L, {2**bits}L)"
        fields.append(f"shiftleft({field}, {shift})")
        shift += bits + 1
    return " | ".join(fields)


def unpacked(word: pl.Series, names: Sequence[str], dtypes: Mapping[str, Any]) -> dict[str, pl.Series]:
    """The columns that share a word."""
    words, shift, found = word.to_numpy(), 0, {}
    for name in names:
        bits = BITS[dtypes[name]]
        field = words >> shift
        values = (field & (2**bits - 1)).astype(np.bool_ if bits == 1 else f"int{bits}")  # the upper half is negative
        missing = pl.Series(field & 2**bits != 0)
        column = pl.Series(values).cast(dtypes[name])
        found[name] = column.zip_with(~missing, pl.Series([None], dtype=dtypes[name])) if missing.any() else column
        shift += bits + 1
    return found
