"""One unit, one weight: contribution bounding without sampling.

A unit with n_g rows in declared cell g gets the weight w = min(1, R / ||n||_p), R = max_rows * groups**(1/p), counted
before any statistic drops missing values. Each of its counts becomes w n_g and each of its sums w S_g, on the grid,
truncated toward zero. So its counts have l_p norm at most R and its sums at most max(|lower|, |upper|) R, because
|S_g| <= max(|lower|, |upper|) n_g; that holds for sums that wrapped, too, since a wrapped |S_g| is the smaller one.

Where cells are merged into subtotals, w is at most max_rows * groups / ||n||_1 too: then no sum of a unit's entries is
larger than max_rows * groups (times the larger bound). For p = 1 that is the same weight.

For p of infinity (a selection) R is max_rows and the norm is the largest n_g: no count of a unit exceeds max_rows.

Units with at most R rows in all have weight 1 in any norm (the l_1 norm is the largest). Of the others, the pairs of
unit and cell are found by sorting one integer per row; a row that is alone in its pair is weighed as it is, and only
the rows that share a pair are brought together first.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.aggregates import Terms
from dpframe.engines.cells import Integers, added, placed
from dpframe.engines.source import collected
from dpframe.privacy import PrivacyUnit
from dpframe.queries.total import WEIGHT_BITS, Total

Floats = NDArray[np.float64]

SHAVE = 1.0 - 1e-9  # R is taken this much smaller, so that floating point cannot break the inequality
THREADS = 2 ** ((cpu_count() or 1).bit_length() - 1)
MANY_ROWS = 2**17  # below, threads cost more than they save
EXACT_ROWS = 2**22  # up to here a unit's sums are below 2**53 steps: at weight 1 they are exact as floats


def bounded(
    table: pl.DataFrame, terms: Terms, unit: PrivacyUnit, p: float, cells: int, *, merged: bool = False
) -> dict[Total, Integers]:
    """The weighted totals of rows that carry `unit` and `cell`; `merged` where subtotals are made of them."""
    if unit.nulls == "drop" and table["unit"].null_count():
        table = table.filter(pl.col("unit").is_not_null())
    bounds = unit.contribution
    groups = min(bounds.max_groups, cells)
    most = bounds.max_rows * groups ** (1.0 / p)
    code, units = unit_codes(table["unit"])
    rows = np.bincount(code, minlength=units)
    heavy = (rows > most)[code]
    chosen = np.flatnonzero(heavy) if np.count_nonzero(heavy) < heavy.size // 2 else slice(None)  # or all: as right
    sharing, starts = _sharing(code[chosen], table["cell"].to_numpy()[chosen])
    sharing = chosen[sharing] if isinstance(chosen, np.ndarray) else sharing
    light = _weights(rows, code[sharing], starts, most, p)
    if merged:  # no unit that is not heavy may get a weight below 1: their rows are not brought together
        most_rows = bounds.max_rows * groups
        light = np.where(rows <= most_rows, light, np.minimum(light, most_rows * SHAVE / np.maximum(rows, 1)))
    alone = light[code]
    alone[sharing] = 0.0  # what they add is added below, pair by pair
    weighted = table.select("cell", *terms.names()).with_columns(pl.Series("w", alone)).lazy()
    asked = [_truncated(terms.each(s), pl.col("w"), s).sum().alias(str(n)) for n, s in enumerate(terms.totals)]
    by_cell = collected(weighted.group_by("cell").agg(asked), table.height)
    found = {
        s: placed(by_cell[str(n)].to_numpy(), by_cell["cell"].to_numpy(), cells) for n, s in enumerate(terms.totals)
    }
    if sharing.size:
        shared = table[sharing]
        for total in terms.totals:
            values = shared.with_columns(each=terms.each(total).fill_null(0))["each"].to_numpy()
            pairs = pl.DataFrame({"v": np.add.reduceat(values, starts), "w": light[code[sharing[starts]]]})
            whole = pairs.select(_truncated(pl.col("v"), pl.col("w"), total)).to_series().to_numpy()
            found[total] = found[total] + added(whole, shared["cell"].to_numpy()[starts], cells)
    return found


def pair_weights(code: Integers, units: int, group: Integers, unit: PrivacyUnit, p: float, cells: int) -> Floats:
    """The weight of every unit, by its rows in each group, as in `bounded`."""
    bounds = unit.contribution
    most = bounds.max_rows * min(bounds.max_groups, cells) ** (1.0 / p)
    order = np.argsort(code * cells + group, kind="stable")
    pairs = (code * cells + group)[order]
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    return _weights(np.bincount(code, minlength=units), code[order], starts, most, p)


def _truncated(values: pl.Expr, weight: pl.Expr, total: Total) -> pl.Expr:
    """W S on the grid, toward zero: the direction that never adds to a unit's reach."""
    grid = 2.0**WEIGHT_BITS if total.counts else 1.0
    return (values.cast(pl.Float64) * (weight * grid)).cast(pl.Int64, strict=False, wrap_numerical=True)


def _weights(rows: Integers, owner: Integers, starts: Integers, most: float, p: float) -> Floats:
    """The weight of every unit. Its sum of n_g**p is its number of rows, and n_g**p - n_g for each pair of several."""
    size = np.diff(np.append(starts, owner.size)).astype(np.float64)
    if p == np.inf:  # the largest n_g: 1 but for what is in pairs of several
        norm = np.ones(rows.size)
        np.maximum.at(norm, owner[starts], size)
        return np.where(rows <= min(most, EXACT_ROWS), 1.0, np.minimum(SHAVE, most * SHAVE / norm))
    powers = _powers(rows, owner[starts], size, p)
    norm = np.maximum(powers, 1.0) ** (1.0 / p)
    return np.where(rows <= min(most, EXACT_ROWS), 1.0, np.minimum(SHAVE, most * SHAVE / norm))


def _powers(rows: Integers, owner: Integers, size: Floats, p: float) -> Floats:
    """The sum of n_g**p of every unit, the same in whatever order the pairs come.

    Squares are added as integers: a float sum would depend on the order beyond 2**53. They fit, for the engine numbers
    the rows of a frame by 32 bits, and a sum of squares is at most the square of the sum, (2**32 - 1)**2 < 2**64.
    """
    if p == 2.0:
        whole, exact = size.astype(np.uint64), rows.astype(np.uint64)
        np.add.at(exact, owner, whole * whole - whole)
        return exact.astype(np.float64)
    powers = rows.astype(np.float64)
    np.add.at(powers, owner, size**p - size)
    return powers


def _sharing(code: Integers, cell: Integers) -> tuple[Integers, Integers]:
    """The rows whose unit has another row in their cell, ordered by pair; and where each pair starts."""
    if code.size < MANY_ROWS:
        return _pairs(code, cell, np.arange(code.size))
    if (rows := _in_doubt(code, cell)) is not None:
        return _pairs(code, cell, rows)

    def of_part(part: int) -> tuple[Integers, Integers]:
        return _pairs(code, cell, np.flatnonzero(code & (THREADS - 1) == part))

    with ThreadPoolExecutor(THREADS) as pool:  # all rows of a unit are in one part
        parts = list(pool.map(of_part, range(THREADS)))
    before = np.cumsum([0, *(rows.size for rows, _ in parts)])
    starts = [starts + first for (_, starts), first in zip(parts, before, strict=False)]
    return np.concatenate([rows for rows, _ in parts]), np.concatenate(starts)


def _pairs(code: Integers, cell: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """As `_sharing`, among some rows.

    Where unit, cell and row fit 63 bits one plain sort brings pairs together; else a slower sort of positions.
    """
    code, cell = code[rows], cell[rows]
    cell_bits, row_bits = int(cell.max(initial=0)).bit_length(), int(rows.max(initial=0)).bit_length()
    key = (code << cell_bits) | cell
    if int(code.max(initial=0)).bit_length() + cell_bits + row_bits <= 63:
        key <<= row_bits
        key |= rows
        key.sort()
        rows = key & ((1 << row_bits) - 1)
        key >>= row_bits
    else:
        order = np.argsort(key, kind="stable")
        key, rows = key[order], rows[order]
    same = key[1:] == key[:-1]
    with_next, with_last = np.append(same, False), np.append(False, same)
    shared = np.flatnonzero(with_next | with_last)
    return rows[shared], np.flatnonzero(~with_last[shared])


def _in_doubt(code: Integers, cell: Integers) -> Integers | None:
    """All rows that share a pair and a few others, by a quick sort without places; None if they are many."""
    cell_bits, bits = (int(number.max(initial=0)).bit_length() for number in (cell, code))
    kind: Any = np.uint32 if bits + cell_bits <= 32 else np.int64
    key: NDArray[Any] = (code.astype(kind) << cell_bits) | cell.astype(kind)
    ordered = np.sort(key)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size > key.size // 8:
        return None
    last_bits = 2 ** max(16, (16 * twice.size).bit_length()) - 1
    seen = np.zeros(last_bits + 1, dtype=np.bool_)
    seen[twice & last_bits] = True
    return np.flatnonzero(seen[key & last_bits])


def unit_codes(units: pl.Series) -> tuple[Integers, int]:
    """An integer below the returned size for each unit, different for different ones: more than a hash.

    Integers in a range not much larger than their number are taken as they are; anything else is numbered.
    """
    missing = units.null_count() > 0
    low, high = (int(units.min() or 0), int(units.max() or 0)) if units.dtype.is_integer() else (0, 2**64)  # type: ignore[arg-type]
    if high - low <= 4 * len(units) + 1000 and -(2**62) < low <= high < 2**62:
        return (units.cast(pl.Int64) - low).fill_null(high - low + 1).to_numpy(), high - low + 1 + missing
    if units.dtype == pl.String and len(units) >= MANY_ROWS and (numbered := _by_hash(units)) is not None:
        return numbered
    import pyarrow

    encoded = pyarrow.chunked_array([units.to_arrow()]).combine_chunks().dictionary_encode()
    codes = pl.Series(pl.from_arrow(encoded.indices)).cast(pl.Int64)
    distinct = len(encoded.dictionary)
    return codes.fill_null(distinct).to_numpy(), distinct + missing


def _by_hash(units: pl.Series) -> tuple[Integers, int] | None:
    """Numbers of the strings' hashes, which is faster; None if two different strings share a hash.

    Every string is compared with one of those that have its number, so that numbers tell strings apart, not hashes.
    """
    import pyarrow

    hashes, size, parts = units.hash().to_numpy(), len(units), THREADS
    codes = np.empty(size, dtype=np.int64)

    def number(part: int) -> None:
        rows = np.flatnonzero(hashes & np.uint64(parts - 1) == part)
        encoded = pyarrow.array(hashes[rows]).dictionary_encode()
        codes[rows] = encoded.indices.to_numpy().astype(np.int64) * parts + part

    def alike(part: int) -> bool:
        rows = slice(size * part // parts, size * (part + 1) // parts)
        return bool(units[rows].eq_missing(chosen.gather(codes[rows])).all())

    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(number, range(parts)))
        distinct = int(codes.max(initial=-1)) + 1
        places = np.zeros(distinct, dtype=np.int64)
        places[codes] = np.arange(size)
        chosen = units.gather(places)
        return (codes, distinct) if all(pool.map(alike, range(parts))) else None
