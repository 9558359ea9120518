"""The number of cells that a call asks for, counted before any of them is made."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import is_whole

MOST_CELLS = 10**7  # more are rarely meant, take minutes and fill the memory
LARGEST_CELLS = 2**30  # unit * cells + cell must fit 64 bits
LEAST_MEMORY = 2**24
MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(MB|MiB|GB|GiB|TB|TiB)", re.IGNORECASE)
UNITS_OF_MEMORY = {"mb": 10**6, "mib": 2**20, "gb": 10**9, "gib": 2**30, "tb": 10**12, "tib": 2**40}


@dataclass(frozen=True)
class Later:
    """Axes that are so large that they are made only once the call says that it means them."""

    size: int
    make: Callable[[], tuple[Any, ...]]


def axes_or_later(size: int, make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The axes, or the promise of them where there are many."""
    return make() if size <= MOST_CELLS else (Later(size, make),)


def made(axes: Sequence[Any], most: int) -> tuple[Any, ...]:
    """All axes, made; refused before that where their product has more cells than the call allows."""
    refuse_many("keys and bins must make", "cells", math.prod(axis.size for axis in axes), most)
    return tuple(finished for axis in axes for finished in (axis.make() if isinstance(axis, Later) else (axis,)))


def checked_most(most: object) -> int:
    """The number of cells that a call allows."""
    if not isinstance(most, numbers.Integral) or isinstance(most, bool):
        raise InvalidType(f"max_cells must be a whole number of cells, not {shown(most)}. Write max_cells=20_000_000.")
    if not 1 <= int(most) <= LARGEST_CELLS:
        raise InvalidArgument(f"max_cells must be from 1 to 2**30, not {shown(most)}. Declare fewer keys or bins.")
    return int(most)


def refuse_many(what: str, parts: str, count: int, most: int) -> None:
    """Refuse more than the call allows by name."""
    if count > most:
        meant = f", or say that you mean it: max_cells={count:_}" if count <= LARGEST_CELLS else ""
        raise InvalidArgument(f"{what} at most max_cells={most:_} {parts}, not {shown(count)}. Declare fewer{meant}.")


def of_keys(keys: object) -> int:
    """The number of cells of declared keys: the length of a list, the product of a dict's; 1 for anything else."""
    if isinstance(keys, dict):
        return math.prod(map(length, keys.values()))
    return length(keys)


def of_bins(columns: int, bins: Any, categories: Any) -> int:
    """The number of cells of the bins or categories of so many columns; 1 for what is refused later."""
    if categories is not None:
        return length(categories)
    listed = columns > 1 and isinstance(bins, (list, tuple)) and len(bins) == columns
    each = bins if listed else [bins] * columns
    return math.prod(max(1, int(one) if is_whole(one) else length(one) - 1) for one in each)


def length(values: object) -> int:
    """The number of values, told without making any; 1 where nobody knows."""
    if isinstance(values, range):  # of which len fails beyond 2**63
        return max(0, -((values.start - values.stop) // values.step))
    try:
        return len(values) if isinstance(values, Sized) and not isinstance(values, (str, bytes)) else 1
    except TypeError:  # an array of no dimension
        return 1


def checked_memory(memory: object) -> int | None:
    """Bytes, given as a number or as a text such as "2GiB"."""
    size = memory
    if isinstance(memory, str) and (match := MEMORY.fullmatch(memory.strip())):
        size = int(Fraction(match[1]) * UNITS_OF_MEMORY[match[2].lower()])
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or size < LEAST_MEMORY:
        raise InvalidArgument(
            f'memory must be at least 16 MiB, in bytes or as "2GiB", not {shown(memory)}. '
            "Leave it out for a quarter of what is free, at most 1 GiB."
        )
    return size
