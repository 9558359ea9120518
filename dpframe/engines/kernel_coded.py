"""Coded rows by compiled kernels, in few bytes: places of 32 bits, and steps of 32 bits of which the least is missing.

They say what the coded rows of `row_totals` say, and become these where rows are brought together or are few. Whether a
question's rows are coded so follows from what is installed and from the question.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from dpframe.engines.aggregates import Terms
from dpframe.engines.cells import Cells
from dpframe.engines.kernel_places import Placing
from dpframe.engines.kernel_steps import FITS, Slots, loaded
from dpframe.engines.kernels import block_ends, in_threads, kernels_for, strips, threads
from dpframe.engines.source import Source
from dpframe.privacy import PrivacyUnit

PLACE = "place"  # the number of the cell plus one
MISSING = -FITS - 1


def narrow_rows(source: Source, cells: Cells, terms: Terms, unit: PrivacyUnit) -> pl.DataFrame | None:
    """The rows that fall in a cell, and have a unit where others are left out; None where they are too few."""
    assert unit.column is not None
    slots = Slots.of(terms)
    assert slots is not None
    table = loaded(source, cells, terms, ("unit", unit.column, "unit", None))
    kernels = kernels_for(table.height)
    if kernels is None:
        return None
    placing = Placing.of(kernels, cells, table.schema)
    places = np.empty(table.height, dtype=np.uint32)
    steps = np.empty((len(slots.slots), table.height), dtype=np.int32)
    ends, workers = block_ends(table.height), threads(1, 1)

    def work(thread: int) -> None:
        for start, stop in ends[thread::workers]:
            rows = table[start:stop]
            places[start:stop] = placing(rows)
            for number, ((_, slot), values) in enumerate(zip(slots.slots, slots.columns(rows), strict=True)):
                for strip in strips(stop - start):
                    slot.fill(kernels, values[strip], steps[number, start:stop][strip])

    in_threads(work, workers)
    columns = {slot.name: steps[number] for number, (_, slot) in enumerate(slots.slots)}
    coded = pl.DataFrame({PLACE: places, **columns, "unit": table["unit"]})
    if unit.nulls == "drop" and coded["unit"].null_count():
        coded = coded.filter(pl.col("unit").is_not_null())
    return coded if places.min(initial=1) > 0 else coded.filter(pl.col(PLACE) > 0)


def narrowed(table: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """Coded rows in as few bytes."""
    steps = [pl.col(name).fill_null(MISSING).cast(pl.Int32) for name in terms.names()]
    return table.select((pl.col("cell") + 1).cast(pl.UInt32).alias(PLACE), *steps, "unit")


def widened(table: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """The same as coded rows of 64 bits; these as they are."""
    if PLACE not in table.columns:
        return table
    steps = [pl.when(pl.col(name) != MISSING).then(pl.col(name).cast(pl.Int64)) for name in terms.names()]
    return table.select(*steps, "unit", (pl.col(PLACE).cast(pl.Int64) - 1).alias("cell"))
