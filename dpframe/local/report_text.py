"""The form of reports: bits as text of one length, which any frame, file and network can carry.

A report has hexadecimal digits. If the method has a public number (a hash function or a cohort), the first four encode
it. Each other digit encodes four bits. Anyone can send a report, so a text that is no report raises a typed error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, shown

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]

DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
NO_DIGIT = 255
VALUES = np.full(256, NO_DIGIT, dtype=np.uint8)
VALUES[DIGITS] = np.arange(16)
CELLS = 2**22  # the number of bits in a batch, so that memory stays bounded
LARGEST = 2**16  # public numbers are below this

__all__ = ["CELLS", "LARGEST", "batches", "read", "summed", "unlike", "written"]


def batches(rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that together have a bounded number of bits."""
    step = max(1, CELLS // max(width, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def written(bits: Flags, number: Integers | None = None) -> list[str]:
    """Return a text for each row of flags, which starts with its public number if there is one."""
    data = np.packbits(bits, axis=1)
    if number is not None:
        data = np.hstack([number.astype(">u2").view(np.uint8).reshape(-1, 2), data])
    letters = np.empty((len(data), 2 * data.shape[1]), dtype=np.uint8)
    letters[:, 0::2], letters[:, 1::2] = DIGITS[data >> 4], DIGITS[data & 15]
    width = letters.shape[1]
    return list(letters.view(f"S{width}").ravel().astype(f"U{width}").tolist())


def read(values: Sequence[Any], width: int, words: str, *, numbers: int = 0) -> Iterator[tuple[Integers, Flags]]:
    """Yield the public numbers and the flags of reports, in batches of rows.

    The numbers must be below `numbers`; if this is 0, reports have none, and 0 is yielded.
    """
    for rows in batches(len(values), width):
        yield _read(list(values[rows]), width, words, numbers)


def _read(values: list[Any], width: int, words: str, numbers: int) -> tuple[Integers, Flags]:
    size = 2 * (-(-width // 8)) + 4 * (numbers > 0)
    if set(map(type, values)) - {str} or set(map(len, values)) - {size} or not all(map(str.isascii, values)):
        fits = (isinstance(value, str) and len(value) == size and value.isascii() for value in values)
        raise unlike(values[list(fits).index(False)], words)
    digits = VALUES[np.frombuffer("".join(values).encode(), dtype=np.uint8).reshape(len(values), size)]
    wrong = np.flatnonzero((digits == NO_DIGIT).any(axis=1))
    if wrong.size:
        raise unlike(values[int(wrong[0])], words)
    data = (digits[:, 0::2] << 4) | digits[:, 1::2]
    number = np.zeros(len(values), dtype=np.int64)
    if numbers:
        number, data = data[:, 0].astype(np.int64) * 256 + data[:, 1], data[:, 2:]
    bits = np.unpackbits(np.ascontiguousarray(data), axis=1)
    wrong = np.flatnonzero(bits[:, width:].any(axis=1) | (number >= max(numbers, 1)))
    if wrong.size:
        raise unlike(values[int(wrong[0])], words)
    return number, bits[:, :width].astype(np.bool_)


def summed(ones: Integers, numbers: Integers, bits: Flags) -> None:
    """Add the bits of reports to the rows of their public numbers."""
    order = np.argsort(numbers, kind="stable")
    there, starts = np.unique(numbers[order], return_index=True)
    ones[there] += np.add.reduceat(bits[order], starts, axis=0, dtype=np.int64)


def unlike(value: Any, words: str) -> InvalidArgument:
    """Return the error for a value that is no report of the method."""
    return InvalidArgument(
        f"reports must be {words}, unlike {shown(value)}. Give the reports of this very method, "
        "or leave out what others sent."
    )
