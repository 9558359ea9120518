"""Public hash functions of categories: keyed, independent for any three of them, the same in every process."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, shown

Integers = NDArray[np.int64]

PRIME = 2**31 - 1  # more than there are categories, and products of two numbers below it fit 62 bits
DEGREE = 3  # coefficients of a polynomial: any so many categories have independent cells
LONGEST_KEY = 200


def places(key: str, functions: int, categories: int, cells: int) -> Integers:
    """The cell of each category by each function, (a x^2 + b x + c mod P) mod cells, x the category's place.

    Wegman and Carter (1981): over random coefficients any three categories are independent modulo P. So are then any
    two collisions with a third category, which the variance of a sketch relies on.
    """
    pieces = range(0, 16 * DEGREE, 16)
    seeds = (f"dpframe.local\0{key}\0{function}".encode() for function in range(functions))
    drawn = [hashlib.shake_256(seed).digest(16 * DEGREE) for seed in seeds]
    numbers = [[int.from_bytes(digest[start : start + 16], "big") % PRIME for start in pieces] for digest in drawn]
    values = np.zeros((functions, categories), dtype=np.int64)
    for coefficient in np.array(numbers, dtype=np.int64).T:
        values = (values * np.arange(categories, dtype=np.int64) + coefficient[:, None]) % PRIME
    return values % cells


def checked_key(key: object) -> str:
    """The public key of the hash functions, for which any text will do."""
    if not isinstance(key, str):
        raise InvalidType(f'key must be text that everybody may know, not {shown(key)}. Write key="emoji".')
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise InvalidArgument(f"key must be printable text of at most {LONGEST_KEY} characters, not {shown(key)}.")
    return key
