"""Limits of what a call may name: columns, bounds of values, checks, and the number of cells before they are made."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, ClassVar, TypeGuard

import numpy as np

from dpframe.errors import (
    InvalidArgument,
    InvalidType,
    MissingArgument,
    WeakPrivacyWarning,
    checked_column_name,
    is_one_of,
    shown,
)
from dpframe.errors.tracebacks import depth_outside
from dpframe.exact import checked_whole, exact_share, exactly, is_number, is_whole, nearest

AUTO = "auto"  # of checks: measure what bounds leave out, with the usual share of the cost
LARGEST_EXACT = 2.0**53  # every integer up to this is exact as a float
SMALLEST_BOUND = 2.0**-400  # below this, squares of errors would underflow to 0
STEP_BITS = 30  # a bound is between 2**29 and 2**30 grid steps long
NARROWEST = 2.0**-14  # of the larger bound: rounding moves a value by half a step, at most 2**-16 of this range
DISTINCT = 2.0**-30  # of the larger bound: the limit for candidates, whose values are not rounded to a grid
BOUNDS_EXAMPLE = "Write for instance bounds=(0, 100)."
OF_DATA = (
    "{0} look taken from the data: they are NumPy scalars, such as df.age.min(), which reveal values. "
    "Write numbers that you know, such as {0}=(0, 100), or float(x) of a released x."
)


class Placed:
    """A public value that is allowed in one place of a call; `where` names the place and shows how to write it."""

    where: ClassVar[str]


def refuse_misplaced(value: object) -> None:
    """Refuse a value that is allowed only in another place."""
    if isinstance(value, Placed):
        raise InvalidType(value.where)


def step_length(bounds: tuple[float, float]) -> float:
    """Return the length of a step: the power of two that makes the larger bound 2**29 to 2**30 steps long."""
    fraction, exponent = math.frexp(max(map(math.fabs, bounds)))  # abs() overflows for NumPy's least integer
    return math.ldexp(1.0, exponent - STEP_BITS - (fraction == 0.5))


def grid_steps(bounds: tuple[float, float]) -> tuple[int, int]:
    """Return the bounds, rounded to whole steps; everything else is computed from these."""
    grid = step_length(bounds)
    return round(bounds[0] / grid), round(bounds[1] / grid)


def check_column(column: object) -> None:
    """Refuse anything that is not the name of a column."""
    refuse_misplaced(column)
    if not isinstance(column, str):
        raise InvalidType(f"column must be the name of a column (a string), not {shown(column)}. {_name_words(column)}")
    checked_column_name("column", column)


def _name_words(column: object) -> str:
    """Return the hint for a caller who passes something other than a name."""
    if isinstance(column, float):
        return f"Everything but the column is given by its name, as in epsilon={shown(column)}."
    if isinstance(column, (int, tuple)):
        return "Columns named otherwise can be renamed: df.rename(columns=str)."
    return 'Write its name, as in "age".'


def checked_columns(columns: Any, least: int, most: int, example: str) -> tuple[str, ...]:
    """Check and return the names of several columns, all different."""
    if not isinstance(columns, (list, tuple)):
        raise InvalidType(f"columns must be a list of names, not {shown(columns)}. {example}")
    for column in columns:
        check_column(column)
    if not least <= len(columns) <= most or len(set(columns)) < len(columns):
        raise InvalidArgument(
            f"columns must be {least} to {most} different ones, not {shown(list(columns))}. {example}"
        )
    return tuple(columns)


def checked_bounds(
    bounds: object, argument: str = "bounds", example: str = BOUNDS_EXAMPLE, narrowest: float = NARROWEST
) -> tuple[float, float]:
    """Return two finite numbers with lower < upper, within +-2**53, far enough apart for the grid of values."""
    if bounds is None:
        raise MissingArgument(f"{argument} must be given: they are never taken from the data. {example}")
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InvalidType(f"{argument} must be a pair (lower, upper), not {shown(bounds)}. {example}")
    lower, upper = (_bound(bound, argument, example) for bound in bounds)
    if any(isinstance(bound, np.generic) for bound in bounds):
        warnings.warn(OF_DATA.format(argument), WeakPrivacyWarning, stacklevel=depth_outside())
    if not lower < upper:
        raise InvalidArgument(f"{argument} must be two numbers with lower < upper, not {shown(bounds)}. {example}")
    largest = max(abs(lower), abs(upper))
    if largest < SMALLEST_BOUND:
        raise InvalidArgument(
            f"{argument} must reach beyond 2**-400, unlike {shown(bounds)}. Multiply the column first."
        )
    steps = grid_steps((lower, upper))
    if steps[0] == steps[1] or upper - lower < narrowest * largest:
        least = Context(prec=4, rounding=ROUND_CEILING).create_decimal(narrowest * largest)  # rounded up, to comply
        raise InvalidArgument(
            f"{argument} must be at least {float(least):g} apart, 2**{round(math.log2(narrowest))} of the "
            f"larger one, unlike {shown(bounds)}. Subtract a constant from the column first."
        )
    return lower, upper


def checked_place(argument: str, value: object, way_out: str) -> float:
    """Return a finite number within +-2**53, where integers and floats compare alike, as the nearest float."""
    if type(value) in (int, float) and -LARGEST_EXACT <= value <= LARGEST_EXACT:  # type: ignore[operator]
        return float(value) + 0.0  # type: ignore[arg-type]  # exact without a Fraction, and 0.0 for -0.0
    rule = "finite and within +-2**53"
    number = exactly(argument, value, rule, f" {way_out}", typed=False)
    if abs(number) > LARGEST_EXACT:  # compared exactly: 2**53 + 1 rounds to 2**53
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}. {way_out}")
    return nearest(number)


def _bound(bound: Any, argument: str, example: str) -> float:
    if not is_number(bound):
        raise InvalidType(f"{argument} must be two numbers, not {shown(bound, kind=True)}. {example}")
    return checked_place(argument, bound, example)


MOST_CELLS = 10**7  # more are rarely intended, take minutes and fill the memory
LARGEST_CELLS = 2**30  # unit * cells + cell must fit 64 bits
LEAST_MEMORY = 2**24
MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(MB|MiB|GB|GiB|TB|TiB)", re.IGNORECASE)
UNITS_OF_MEMORY = {"mb": 10**6, "mib": 2**20, "gb": 10**9, "gib": 2**30, "tb": 10**12, "tib": 2**40}


class AsWritten:
    """A dataclass with ``repr=False`` whose `repr` is the call of `dpframe` that makes it, as a person writes it.

    Nothing else depends on this text: records, names of columns and comparisons do not use it.
    """

    verb: ClassVar[str]

    def written(self) -> dict[str, Any]:
        """Return the arguments of that call by name: the fields that a `repr` shows, except those at their default."""
        shown_fields = [one for one in fields(self) if one.init and one.repr]  # type: ignore[arg-type]
        given = {one.name: getattr(self, one.name) for one in shown_fields}
        return {one.name: given[one.name] for one in shown_fields if given[one.name] != one.default}

    def __repr__(self) -> str:
        given = self.written()
        columns = [one for value in given.values() for one in (value if isinstance(value, list) else [value])]
        where = next((one.where for one in columns if isinstance(one, str) and hasattr(one, "where")), None)
        given = {name: value for name, value in given.items() if getattr(value, "of", value) is not None}
        said = [("" if name in FIRST else f"{name}=") + in_code(value) for name, value in given.items()]
        said += [f"where={in_code(where)}"] if where else []
        return f"dpf.{getattr(self, 'named', '') or self.verb}({', '.join(said)})"


FIRST = ("column", "columns", "denominator", "bins")  # the arguments that are written without a name
MOST_WRITTEN = 20  # the most parts of a list that is written in full


def in_code(value: Any) -> str:
    """Return a public value as a person writes it: whole numbers without a point, long lists by their ends."""
    if isinstance(value, str):
        return repr(str(getattr(value, "of", value)))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return repr(int(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{in_code(key)}: {in_code(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        parts = list(map(in_code, value))
        parts = parts if len(parts) <= MOST_WRITTEN else [*parts[:3], "...", parts[-1]]
        ends = "[]" if isinstance(value, list) else "()"
        return ends[0] + ", ".join(parts) + ends[1]
    return repr(value)


@dataclass(frozen=True)
class Later:
    """Axes that are so large that they are made only after the call has allowed their number of cells."""

    size: int
    make: Callable[[], tuple[Any, ...]]


def axes_or_later(size: int, make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the axes or, if they have many cells, a `Later` that makes them."""
    return make() if size <= MOST_CELLS else (Later(size, make),)


def axes_made(axes: Sequence[Any], most: object) -> tuple[Any, ...]:
    """Make all axes; refuse them first if their product has more cells than `most` (by default `MOST_CELLS`)."""
    allowed = MOST_CELLS if most is None else checked_most(most)
    refuse_many("keys and bins must make", "cells", math.prod(axis.size for axis in axes), allowed)
    return tuple(finished for axis in axes for finished in (axis.make() if isinstance(axis, Later) else (axis,)))


def checked_most(most: Any) -> int:
    """Check and return the number of cells that a call allows."""
    if not is_whole(most):
        raise InvalidType(f"max_cells must be a whole number of cells, not {shown(most)}. Write max_cells=20_000_000.")
    if not 1 <= int(most) <= LARGEST_CELLS:
        raise InvalidArgument(f"max_cells must be from 1 to 2**30, not {shown(most)}. Declare fewer keys or bins.")
    return int(most)


def refuse_many(what: str, parts: str, count: int, most: int) -> None:
    """Refuse more `parts`, such as cells or edges, than the ``max_cells`` of the call."""
    if count > most:
        meant = f", or say that you mean it: max_cells={count:_}" if count <= LARGEST_CELLS else ""
        raise InvalidArgument(f"{what} at most max_cells={most:_} {parts}, not {shown(count)}. Declare fewer{meant}.")


def of_keys(keys: object) -> int:
    """Return the number of cells of declared keys: a list's length, a dict's product of lengths, or 1 for others."""
    if isinstance(keys, dict):
        return math.prod(map(length, keys.values()))
    return length(keys)


def of_bins(columns: int, bins: Any, categories: Any) -> int:
    """Return the number of cells of the bins or categories of some columns; 1 for what is refused later."""
    if categories is not None:
        return length(categories)
    listed = columns > 1 and isinstance(bins, (list, tuple)) and len(bins) == columns
    each = bins if listed else [bins] * columns
    return math.prod(max(1, int(one) if is_whole(one) else length(one) - 1) for one in each)


def length(values: object) -> int:
    """Return the number of values without making any; 1 if it is unknown."""
    if isinstance(values, range):  # whose len() fails beyond 2**63
        return max(0, -((values.start - values.stop) // values.step))
    try:
        return len(values) if isinstance(values, Sized) and not isinstance(values, (str, bytes)) else 1
    except TypeError:  # an array without dimensions
        return 1


def checked_memory(memory: object) -> int | None:
    """Return a number of bytes, given as a number or as text such as "2GiB"."""
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


def checked_checks(checks: object) -> Any:
    """Check ``checks=``: "auto", True, False, or a share of the budget of the call."""
    if checks is None or isinstance(checks, bool) or is_one_of(checks, (AUTO,)):
        return checks
    rule = f'checks must be "auto", True, False, or a share of the budget below 1, not {shown(checks)}. '
    example = "Write for instance checks=0.1, or leave it out."
    if not is_number(checks):
        raise InvalidType(rule + example)
    try:
        share = exact_share(checks)
    except InvalidArgument:
        share = Fraction(1)
    if share >= 1:
        raise InvalidArgument(rule + example)
    return share


def checked_size(size: object) -> int | None:
    """Check and return the assumed number of values of a mean."""
    if size is None:
        return None
    return checked_whole("size", size, 1, 2**53, "a whole number above 0", " Write for instance size=1_000.")


def are_by_group(bounds: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether bounds are a dict by group; a dict of numbers alone is refused later, as a wrong pair."""
    return isinstance(bounds, Mapping) and not (bounds and all(map(is_number, bounds.values())))
