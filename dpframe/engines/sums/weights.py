"""One unit, one weight: contribution bounding without sampling.

A unit with n_g rows in declared cell g gets the weight w = min(1, R / ||n||_p), R = max_rows * groups**(1/p). Rows are
counted before any statistic drops missing values. Each count of the unit becomes w n_g and each sum w S_g, on the grid,
truncated toward zero. So its counts have l_p norm at most R and its sums at most max(|lower|, |upper|) R, because |S_g|
<= max(|lower|, |upper|) n_g. A sum of 2**32 rows or more counts as 0: it may have wrapped to the other sign.

If cells are merged into subtotals, w is also at most max_rows * groups / ||n||_1: then no sum of a unit's entries is
larger than max_rows * groups (times the larger bound). For p = 1 that is the same weight.

For p of infinity (a selection) R is max_rows and the norm is the largest n_g: no count of a unit exceeds max_rows.

What a unit adds depends on its pairs of unit and cell alone: on the rows of each, and on their sums. The way to find
the pairs affects only speed. Units are of three kinds:

- *light*, with at most R rows in all: weight 1 in any norm (the l_1 norm is the largest). Rows are added as they are.
- *dense*, with more rows than there are cells: each has an array of all cells, in which its rows are counted.
- *middle*, all others: pairs are found by sorting one integer per row. A row that is alone in its pair is weighted as
  it is, and only rows that share a pair are combined first.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.compiled.kernels import in_threads
from dpframe.engines.sums.addends import ROWS, Terms
from dpframe.engines.sums.cells import Integers, added
from dpframe.privacy import PrivacyUnit
from dpframe.queries.total import WEIGHT_BITS, RowsTotal, Total

Floats = NDArray[np.float64]

SHAVE = 1.0 - 1e-9  # R is reduced by this factor, so that floating point cannot break the inequality
THREADS = 2 ** ((cpu_count() or 1).bit_length() - 1)
MANY_ROWS = 2**17  # below this, threads cost more time than they save
MOST_CODE = 2**32 - 2  # maximum number of integer units: with one more for missing, times 2**30 cells, it fits 64 bits
MOST_ROWS = 2**32  # rows of a pair, of up to 2**31 steps each: below this, no sum wraps
EXACT_ROWS = 2**22  # up to here a unit's sums are below 2**53 steps: at weight 1 they are exact as floats
DENSE = 1  # a unit is dense with more rows than cells / DENSE: its array is then no larger than its rows


@dataclass(frozen=True)
class Pairs:
    """Pairs of unit and cell with all their rows: each pair once, in any order."""

    owner: Integers  # the number of the unit
    cell: Integers
    size: Integers  # the number of rows
    sums: dict[Total, Integers]  # sums of what each row adds, modulo 2**64


@dataclass(frozen=True)
class Reach:
    """Part of one unit that counts in full, in the norm of the noise."""

    most: float  # R as above
    p: float
    merged: int | None = None  # the rows that count in full if cells are merged

    @classmethod
    def of(cls, unit: PrivacyUnit, p: float, cells: int, *, merged: bool) -> Reach:
        """Return the reach that contribution bounds allow over `cells` cells."""
        bounds = unit.contribution
        groups = min(bounds.max_groups, cells)
        return cls(bounds.max_rows * groups ** (1.0 / p), p, bounds.max_rows * groups if merged else None)

    @property
    def light(self) -> float:
        """Number of rows up to which a unit has weight 1, whatever its pairs."""
        return min(self.most, EXACT_ROWS)

    def weights(self, rows: Integers, owner: Integers, size: Integers) -> Floats:
        """Return the weight of every unit, from its rows and its pairs; pairs of one row may be left out."""
        weights = _weights(rows, owner, size.astype(np.float64), self.most, self.p)
        if self.merged is None:
            return weights
        return np.where(rows <= self.merged, weights, np.minimum(weights, self.merged * SHAVE / np.maximum(rows, 1)))


def bounded(
    table: pl.DataFrame, terms: Terms, unit: PrivacyUnit, p: float, cells: int, *, merged: bool = False
) -> dict[Total, Integers]:
    """Return the weighted totals of rows that carry `unit` and `cell`; `merged` if subtotals are made of them.

    If rows without a unit are left out, the caller has removed them.
    """
    reach = Reach.of(unit, p, cells, merged=merged)
    code, units = unit_codes(table["unit"])
    table = pl.DataFrame([table[name] for name in ("cell", *terms.names())])
    rows = np.bincount(code, minlength=units)
    dense = rows > max(reach.light, cells // DENSE)
    sharing, pairs = _paired(table, terms, code, rows_chosen(((rows > reach.light) & ~dense)[code]))
    together = [pairs]
    if dense.any():
        whole = rows_chosen(dense[code])
        together.append(_addressed(table[whole], terms, code[whole], dense, cells))
        sharing = np.concatenate([sharing, np.arange(code.size)[whole]])
    owner, size = (np.concatenate([getattr(pairs, name) for pairs in together]) for name in ("owner", "size"))
    weights = reach.weights(rows, owner, size)
    alone = weights[code]
    alone[sharing] = 0.0  # they are added below, pair by pair
    totals, cell = {}, table["cell"].to_numpy()
    for total in terms.lines:
        values = values_of(table, total, terms)
        totals[total] = added(_truncated_steps(np.ones(1) if values is None else values, alone, total), cell, cells)
    for pairs in together:
        for total, whole_sums in weighed(pairs, weights, cells).items():
            totals[total] = totals[total] + whole_sums
    return totals


def of_pairs(
    table: pl.DataFrame, terms: Terms, unit: PrivacyUnit, p: float, cells: int, *, merged: bool = False
) -> dict[Total, Integers]:
    """Return the result of `bounded` for rows combined by unit and cell: the same integers, bit for bit.

    A unit of weight 1 adds its sums as they are, which are exact as floats. For any other unit each pair is truncated
    once, also a pair of a single row.
    """
    if p not in (1.0, 2.0, np.inf):
        table = table.sort("unit", "cell")  # sums of other powers are floats: keep the order of cells of `bounded`
    code, units = unit_codes(table["unit"])
    size, cell = table[ROWS].to_numpy(), table["cell"].to_numpy()
    sums = {total: terms.read(total, table) for total in terms.lines}
    weights = Reach.of(unit, p, cells, merged=merged).weights(added(size, code, units), code, size)
    return weighed(Pairs(code, cell, size, sums), weights, cells)


def weighed(pairs: Pairs, weights: Floats, cells: int) -> dict[Total, Integers]:
    """Return the steps that pairs add to each Total, with the weights of their units."""
    totals, fits = {}, pairs.size < MOST_ROWS
    for total, sums in pairs.sums.items():
        held = sums if isinstance(total, RowsTotal) else np.where(fits, sums, 0)
        totals[total] = added(_truncated_steps(held, weights[pairs.owner], total), pairs.cell, cells)
    return totals


def rows_chosen(mask: NDArray[np.bool_]) -> Any:
    """Return the positions of chosen rows; a slice if all are chosen."""
    places = np.flatnonzero(mask)
    return places if places.size < mask.size else slice(None)


def values_of(table: pl.DataFrame, total: Total, terms: Terms) -> Integers | None:
    """Return the steps that each row adds to a Total; None if each adds 1."""
    line = terms.lines[total]
    if line.name is None:
        return None
    column = table[line.name]
    missing = column.null_count() > 0
    if not missing and line.sum == 0 and line.present == 1:
        return None
    values = (column.fill_null(0) if missing else column).to_numpy()
    values = values if line.sum == 1 else values * line.sum
    if not line.present:
        return values
    return values + (line.present * column.is_not_null().to_numpy() if missing else line.present)


def _paired(table: pl.DataFrame, terms: Terms, code: Integers, chosen: Any) -> tuple[Integers, Pairs]:
    """Return the chosen rows that share a pair, and these pairs; only what is summed of them is gathered."""
    places, starts = _sharing(code[chosen], table["cell"].to_numpy()[chosen])
    sharing = chosen[places] if isinstance(chosen, np.ndarray) else places
    size, first = np.diff(np.append(starts, sharing.size)), sharing[starts]
    sums = {}
    for total in terms.lines:
        values = values_of(table, total, terms) if sharing.size else None
        sums[total] = size if values is None else np.add.reduceat(values.take(sharing), starts)
    return sharing, Pairs(code[first], table["cell"].to_numpy()[first], size, sums)


def _addressed(table: pl.DataFrame, terms: Terms, code: Integers, dense: NDArray[np.bool_], cells: int) -> Pairs:
    """Return the pairs of dense units, from all of their rows: each unit has an address for every cell."""
    owners = np.flatnonzero(dense)
    starts = np.zeros(dense.size, dtype=np.int64)
    starts[owners] = np.arange(owners.size) * cells
    address = starts[code] + table["cell"].to_numpy()
    size = np.bincount(address, minlength=owners.size * cells)
    there = np.flatnonzero(size)
    sums = {}
    for total in terms.lines:
        values = values_of(table, total, terms)
        if values is None:
            sums[total] = size[there]
        elif int(size.max(initial=0)) <= EXACT_ROWS:  # sums are then below 2**53: exact as floats
            sums[total] = np.bincount(address, values, minlength=size.size)[there].astype(np.int64)
        else:
            sums[total] = added(values, address, size.size)[there]
    return Pairs(owners[there // cells], there % cells, size[there], sums)


def pair_weights(code: Integers, units: int, group: Integers, unit: PrivacyUnit, p: float, cells: int) -> Floats:
    """Return the weight of every unit, by its rows in each group, as in `bounded`."""
    order = np.argsort(code * cells + group, kind="stable")
    pairs = (code * cells + group)[order]
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    size = np.diff(np.append(starts, order.size))
    reach = Reach.of(unit, p, cells, merged=False)
    return reach.weights(np.bincount(code, minlength=units), code[order[starts]], size)


def _truncated_steps(values: NDArray[Any], weights: Floats, total: Total) -> Integers:
    """Return W S on the grid, truncated toward zero: this never adds to a unit's reach.

    What units of less than full weight add is below 2**63, and so is what others add: no sum wraps.
    """
    with np.errstate(all="ignore"):  # no value may cause a warning
        return (values.astype(np.float64) * (weights * grid_of(total))).astype(np.int64)


def grid_of(total: Total) -> float:
    """Return the steps in one step of a row: counts are weighted on a finer grid."""
    return 2.0**WEIGHT_BITS if isinstance(total, RowsTotal) else 1.0


def _weights(rows: Integers, owner: Integers, size: Floats, most: float, p: float) -> Floats:
    """Return every unit's weight. Its sum of n_g**p is its rows, plus n_g**p - n_g for each pair of several rows."""
    if p == np.inf:  # the largest n_g: 1, unless a pair has several rows
        norm = np.ones(rows.size)
        np.maximum.at(norm, owner, size)
        return np.where(rows <= min(most, EXACT_ROWS), 1.0, np.minimum(SHAVE, most * SHAVE / norm))
    powers = _powers(rows, owner, size, p)
    norm = np.maximum(powers, 1.0) ** (1.0 / p)
    return np.where(rows <= min(most, EXACT_ROWS), 1.0, np.minimum(SHAVE, most * SHAVE / norm))


def _powers(rows: Integers, owner: Integers, size: Floats, p: float) -> Floats:
    """Return the sum of n_g**p of every unit, the same for any order of the pairs.

    Squares are added as integers: a float sum would depend on the order beyond 2**53. They fit below 2**32 rows, since
    a sum of squares is at most the square of the sum, (2**32 - 1)**2 < 2**64. A frame has no more rows, but pairs of
    many frames may have. Then the square of the sum replaces it, which is no smaller, so that no weight is larger.
    """
    if p == 2.0:
        whole, exact = size.astype(np.uint64), rows.astype(np.uint64)
        np.add.at(exact, owner, whole * whole - whole)
        return np.where(rows < 2**32, exact.astype(np.float64), rows.astype(np.float64) ** 2)
    powers = rows.astype(np.float64)
    np.add.at(powers, owner, size**p - size)
    return powers


def _sharing(code: Integers, cell: Integers) -> tuple[Integers, Integers]:
    """Return the rows whose unit has another row in their cell, ordered by pair; and where each pair starts."""
    if code.size < MANY_ROWS:
        return _pairs(code, cell, np.arange(code.size))
    if (rows := _in_doubt(code, cell)) is not None:
        return _pairs(code, cell, rows)

    def of_thread(thread: int) -> tuple[Integers, Integers]:
        return _pairs(code, cell, np.flatnonzero(code & (THREADS - 1) == thread))

    by_thread = in_threads(of_thread, THREADS)  # one thread has all rows of a unit
    before = np.cumsum([0, *(rows.size for rows, _ in by_thread)])
    starts = [starts + first for (_, starts), first in zip(by_thread, before, strict=False)]
    return np.concatenate([rows for rows, _ in by_thread]), np.concatenate(starts)


def _pairs(code: Integers, cell: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Return the result of `_sharing` among some rows.

    If unit, cell and row fit 63 bits one plain sort brings pairs together; else a slower sort of positions does.
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
    """Return all rows that share a pair and a few others, by a quick sort without positions; None if they are many."""
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
    """Return an integer below the returned size for each unit, different for different units, unlike a hash.

    Integers in a range not much larger than their number are taken as they are; other values are numbered.
    """
    missing = units.null_count() > 0
    if (close := close_together(units)) is not None:
        low, size = close
        codes = units.cast(pl.Int64)
        codes = codes.fill_null(low + size - 1) if missing else codes
        return codes.to_numpy() - low, size
    if units.dtype == pl.String and len(units) >= MANY_ROWS and (numbered := _by_hash(units)) is not None:
        return numbered
    import pyarrow

    encoded = pyarrow.chunked_array([units.to_arrow()]).combine_chunks().dictionary_encode()
    codes = pl.Series(pl.from_arrow(encoded.indices)).cast(pl.Int64)
    distinct = len(encoded.dictionary)
    return codes.fill_null(distinct).to_numpy(), distinct + missing


def close_together(units: pl.Series) -> tuple[int, int] | None:
    """Return the least of integers in a range not much larger than their number, and its size, plus one for missing."""
    if not units.dtype.is_integer():
        return None
    low, high = int(units.min() or 0), int(units.max() or 0)  # type: ignore[arg-type]
    if high - low <= min(4 * len(units) + 1000, MOST_CODE) and -(2**62) < low <= high < 2**62:
        return low, high - low + 1 + (units.null_count() > 0)
    return None


def _by_hash(units: pl.Series) -> tuple[Integers, int] | None:
    """Return numbers of strings by their hashes, which is faster; None if two different strings share a hash.

    Every string is compared with one of those that have its number, so that numbers identify strings, not hashes.
    """
    import pyarrow

    hashes, size, threads = units.hash().to_numpy(), len(units), THREADS
    codes = np.empty(size, dtype=np.int64)

    def number(thread: int) -> None:
        rows = np.flatnonzero(hashes & np.uint64(threads - 1) == thread)
        encoded = pyarrow.array(hashes[rows]).dictionary_encode()
        codes[rows] = encoded.indices.to_numpy().astype(np.int64) * threads + thread

    def alike(thread: int) -> bool:
        rows = slice(size * thread // threads, size * (thread + 1) // threads)
        return bool(units[rows].eq_missing(chosen.gather(codes[rows])).all())

    in_threads(number, threads)
    distinct = int(codes.max(initial=-1)) + 1
    places = np.zeros(distinct, dtype=np.int64)
    places[codes] = np.arange(size)
    chosen = units.gather(places)
    return (codes, distinct) if all(in_threads(alike, threads)) else None
