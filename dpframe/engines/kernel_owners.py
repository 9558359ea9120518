"""The units of rows, as kernels send them to parts: integers that lie close together, and strings of any bytes.

Integers are their own numbers. Strings are sent with all of their bytes, and numbered where they arrive, part by part:
so no array of all numbers is made, and of different strings no two have one number in their part.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import noise
from dpframe.engines.aggregates import Integers
from dpframe.engines.kernel_places import Places
from dpframe.engines.kernels import in_threads, read_only
from dpframe.engines.weights import close_together, unit_codes

Words = NDArray[np.uint64]

POLYNOMIAL = 2**61 - 1  # the prime that strings of several chunks are hashed by


class Owners(Protocol):
    """The units of rows: counted in a first pass over blocks of rows, sent in a second one, and numbered at the end."""

    def count(self, kernels: ModuleType, start: int, stop: int, counts: Integers) -> None:
        """Add the rows of a block to the first line of `counts`, by part, and the words of 64 bits to the second."""

    def block(self, start: int, stop: int) -> Any:
        """The columns that `send` reads of a block."""

    def send(self, kernels: ModuleType, block: Any, strip: slice, here: Places, target: Integers, to: Targets) -> None:
        """Find the target of each row of a strip, and write there what its unit is told by."""

    def number(self, kernels: ModuleType, starts: Integers, to: Told, workers: int) -> int:
        """Make the number of its unit within the part of each row; of how many units a part has at most."""


@dataclass(frozen=True)
class Told:
    """The place that units are written to: a number for each row, and the words of all parts."""

    units: NDArray[np.uint32]
    words: Words
    places: Places


@dataclass(frozen=True)
class Targets:
    """The targets of one thread: the next free row and word of each part, and the row for those in no cell."""

    free: Integers
    nowhere: int
    sent: Told


@dataclass(frozen=True)
class Numbered:
    """Units that have numbers: the last bits of a number are its part."""

    numbers: pl.Series | Integers
    low: int
    units: int
    bits: int

    def count(self, kernels: ModuleType, start: int, stop: int, counts: Integers) -> None:
        """Count rows by the last bits."""
        kernels.count_parts(self.block(start, stop), counts[0])

    def block(self, start: int, stop: int) -> Any:
        """The numbers, from 0 on; the last is for rows without a unit."""
        found = self.numbers[start:stop]
        if isinstance(found, pl.Series):
            found = (found.cast(pl.Int64) - self.low).fill_null(self.units - 1).to_numpy()
        return read_only(found)

    def send(self, kernels: ModuleType, block: Any, strip: slice, here: Places, target: Integers, to: Targets) -> None:
        """Write the other bits."""
        codes = block[strip]
        kernels.targets_of(codes, here, to.free[0], to.nowhere, target)
        kernels.send_codes(target, codes, self.bits, to.sent.units)

    def number(self, kernels: ModuleType, starts: Integers, to: Told, workers: int) -> int:
        """They are there already."""
        return (max(self.units - 1, 0) >> self.bits) + 1


@dataclass(frozen=True)
class Named:
    """Strings, told apart by all of their bytes; a missing one is a unit of its own."""

    names: pl.Series
    bits: int
    parts: NDArray[np.uint16]
    keys: Words

    def count(self, kernels: ModuleType, start: int, stop: int, counts: Integers) -> None:
        """Choose parts by a hash, and keep them for the second pass."""
        offsets, data, missing = _as_bytes(self.names[start:stop])
        kernels.names.count_names(offsets, data, missing, self.keys, self.bits, self.parts[start:stop], counts)

    def block(self, start: int, stop: int) -> Any:
        """The strings as bytes, and their parts."""
        return *_as_bytes(self.names[start:stop]), self.parts[start:stop]

    def send(self, kernels: ModuleType, block: Any, strip: slice, here: Places, target: Integers, to: Targets) -> None:
        """Write lengths and bytes."""
        offsets, data, missing, parts = block
        here_parts, bounds = parts[strip], offsets[strip.start : strip.stop + 1]
        kernels.names.targets_of_names(here_parts, here, to.free[0], to.nowhere, target)
        of_strip = bounds, data, missing[strip], here_parts, here, target
        kernels.names.send_names(*of_strip, to.free[1], to.sent.units, to.sent.words)

    def number(self, kernels: ModuleType, starts: Integers, to: Told, workers: int) -> int:
        """Number the strings of each part; lengths become numbers."""
        rows = int(np.diff(starts[0, :, 0]).max(initial=1))

        def work(thread: int) -> int:
            chosen = (thread, workers), starts[0], starts[1]
            return int(kernels.names.number_names(*chosen, rows, to.places, to.words, self.keys, to.units))

        return max(1, *in_threads(work, workers))  # rows in no cell have the number 0, also where there are no others


def owners_of(units: pl.Series, bits: int) -> Owners:
    """The units of rows for 2**bits parts; what is neither an integer nor a string is numbered first."""
    low, size = close_together(units) or (0, 0)
    if size:
        return Numbered(units, low, size, bits)
    if units.dtype in (pl.String, pl.Binary) or units.dtype.is_integer():
        return Named(units, bits, np.empty(len(units), dtype=np.uint16), keys_of_hashes())
    return Numbered(*_numbered(units), bits)


def _numbered(units: pl.Series) -> tuple[Integers, int, int]:
    codes, size = unit_codes(units)
    return codes, 0, size


def _as_bytes(names: pl.Series) -> tuple[Any, Any, Any]:
    """The places at which strings begin and the last ends, their bytes, and marks of missing ones, or none."""
    missing = read_only(names.is_null().to_numpy() if names.null_count() else np.zeros(0, dtype=np.bool_))
    if names.dtype.is_integer():
        values = read_only(names.fill_null(0) if names.null_count() else names)
        width = values.dtype.itemsize
        return read_only(np.arange(0, width * (len(names) + 1), width)), read_only(values.view(np.uint8)), missing
    arrow: Any = names.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = arrow.buffers()
    whole = np.frombuffer(offsets, dtype=np.int64)[arrow.offset : arrow.offset + len(arrow) + 1]
    return read_only(whole), read_only(np.frombuffer(data or b"", dtype=np.uint8)), missing


@functools.cache
def keys_of_hashes() -> Words:
    """Random keys, of this process: they decide on nothing but time. Always from the operating system: see `nonce`."""
    from dpframe.engines import compiled_names as names

    keys = np.frombuffer(hashlib.shake_256(noise.nonce().encode()).digest(8 * names.KEYS), dtype=np.uint64).copy()
    keys[: names.PLACE] >>= np.uint64(32)
    keys[names.PLACE] %= np.uint64(POLYNOMIAL)
    keys[names.PARTS :] |= np.uint64(1)
    return keys
