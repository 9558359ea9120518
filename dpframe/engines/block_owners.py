"""The units of rows, as blocks send them to parts: a key for each row, from which units are numbered part by part.

Integers that lie close together are their own numbers, spread over parts by a bijection. The key of any other value is
64 bits: the value itself where it has no more, a hash of a string. Every string is compared in the end with the first
one of its hash, so that numbers tell strings apart, not hashes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engines.aggregates import Integers
from dpframe.engines.cells import NARROW
from dpframe.engines.weights import close_together, unit_codes
from dpframe.queries.mixing import GOLDEN, mixed

Part = NDArray[np.uint8]  # of each row
Keys = NDArray[Any]
Words = NDArray[np.uint64]

MOST_BITS = 8  # of the number of parts: rows are put in their order by a radix sort of one byte
WIDE = (*NARROW, pl.UInt64, pl.Float64)  # as what values are told apart that are their own keys


class Owners(Protocol):
    """The units of rows: asked for keys in blocks, and for numbers part by part."""

    @property
    def dtype(self) -> Any:
        """The dtype of keys."""

    @property
    def strings(self) -> pl.Series | None:
        """The strings to compare, row by row, where units of one key may be different."""

    def keys(self, start: int, stop: int) -> tuple[Keys, Part]:
        """The keys of a block of rows, and their parts."""

    def numbers(self, keys: Keys) -> tuple[Integers, int]:
        """A number for each row of a part, the same for the same key, below the number that is returned too."""


@dataclass(frozen=True)
class Numbered:
    """Units that have numbers below `units`, from `low` on; the last is for rows without a unit."""

    values: pl.Series
    low: int
    units: int
    bits: int
    dtype: Any = np.uint32
    strings: None = None

    @property
    def _inner(self) -> int:
        """The bits of a number within its part."""
        return max((self.units - 1).bit_length() - self.bits, 0)

    def keys(self, start: int, stop: int) -> tuple[Keys, Part]:
        """A product with an odd number, modulo a power of two: the first bits are the part, and the others the key."""
        values = self.values[start:stop].cast(pl.Int64) - self.low
        if values.null_count():
            values = values.fill_null(self.units - 1)
        whole = self._inner + self.bits
        spread = values.to_numpy() * ((int(GOLDEN) >> (64 - whole) if whole else 0) | 1)  # modulo 2**64
        spread &= 2**whole - 1
        return (spread & (2**self._inner - 1)).astype(np.uint32), (spread >> self._inner).astype(np.uint8)

    def numbers(self, keys: Keys) -> tuple[Integers, int]:
        """They are numbers."""
        return keys, 2**self._inner


@dataclass(frozen=True)
class Keyed:
    """Units that have a key of 64 bits each."""

    values: pl.Series
    bits: int
    words: Callable[[pl.Series], tuple[Words, Words]]  # keys, and what parts are chosen by
    strings: pl.Series | None = None
    dtype: Any = np.uint64

    def keys(self, start: int, stop: int) -> tuple[Keys, Part]:
        """A block's keys, and the last bits of their mixtures."""
        keys, spread = self.words(self.values[start:stop])
        return keys, (spread & np.uint64(2**self.bits - 1)).astype(np.uint8)

    def numbers(self, keys: Keys) -> tuple[Integers, int]:
        """One for each key."""
        import pyarrow

        encoded = pyarrow.array(keys).dictionary_encode()
        return encoded.indices.to_numpy(), len(encoded.dictionary)


def own_words(values: pl.Series) -> tuple[Words, Words]:
    """Integers and floats of 64 bits are told apart by these."""
    values = values.fill_null(0)  # without a unit, and left out
    if values.dtype not in (pl.UInt64, pl.Float64):
        values = values.cast(pl.Int64)
    words = values.to_numpy().view(np.uint64)
    return words, mixed(words + GOLDEN)


def hashes(values: pl.Series) -> tuple[Words, Words]:
    """Hashes of strings; a missing one is a unit of its own."""
    found = values.hash().to_numpy()
    return found, found


def owners_of(units: pl.Series, bits: int, *, drops: bool) -> Owners:
    """The units of rows for 2**bits parts; `drops` says that rows without a unit are left out."""
    if (close := close_together(units)) is not None:
        return Numbered(units, *close, bits)
    if units.dtype == pl.String:
        strings = units.rechunk()
        return Keyed(strings, bits, hashes, strings)
    if units.dtype in WIDE and (drops or not units.null_count()):
        return Keyed(units, bits, own_words)
    codes, size = unit_codes(units)
    return Numbered(pl.Series(codes), 0, size, bits)
