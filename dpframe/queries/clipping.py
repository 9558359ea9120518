"""Columns and bounds of values, and the grid of integers on which values between them are summed.

Values that mean something in one place of a call only are refused in any other.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import numpy as np

from dpframe.errors import (
    InvalidArgument,
    InvalidType,
    MissingArgument,
    WeakPrivacyWarning,
    checked_column_name,
    shown,
)
from dpframe.errors.tracebacks import depth_outside
from dpframe.exact import exactly, is_number, nearest

LARGEST_EXACT = 2.0**53  # every integer up to here is a float of its own
SMALLEST_BOUND = 2.0**-900  # below, grid steps would be subnormal
STEP_BITS = 30  # a bound is between 2**29 and 2**30 grid steps long
BOUNDS_EXAMPLE = "Write for instance bounds=(0, 100)."
OF_DATA = (
    "{0} look taken from the data, because they are NumPy scalars, such as df.age.min(): such bounds reveal values. "
    "Write numbers that you know, such as {0}=(0, 100)."
)


class Placed:
    """A public value that stands in one place; `where` says which, and how to write it there."""

    where: ClassVar[str]


def refuse_misplaced(value: object) -> None:
    """Refuse a value that stands somewhere else."""
    if isinstance(value, Placed):
        raise InvalidType(value.where)


def step_length(bounds: tuple[float, float]) -> float:
    """The length of a step: the power of two that makes the larger bound 2**29 to 2**30 steps long."""
    fraction, exponent = math.frexp(max(abs(bound) for bound in bounds))
    return math.ldexp(1.0, exponent - STEP_BITS - (fraction == 0.5))


def grid_steps(bounds: tuple[float, float]) -> tuple[int, int]:
    """The bounds, rounded to whole steps: everything else is taken from these."""
    grid = step_length(bounds)
    return round(bounds[0] / grid), round(bounds[1] / grid)


def check_column(column: object) -> None:
    """Refuse what is not the name of a column."""
    refuse_misplaced(column)
    if not isinstance(column, str):
        raise InvalidType(f"column must be the name of a column (a string), not {shown(column)}. {_name_words(column)}")
    checked_column_name("column", column)


def _name_words(column: object) -> str:
    """The way out for anyone who gives something else than a name."""
    if isinstance(column, float):
        return f"Everything but the column is given by its name, as in epsilon={shown(column)}."
    if isinstance(column, (int, tuple)):
        return "Columns named otherwise can be renamed: df.rename(columns=str)."
    return 'Write its name, as in "age".'


def checked_columns(columns: Any, least: int, most: int, example: str) -> tuple[str, ...]:
    """The names of several columns, all different."""
    if not isinstance(columns, (list, tuple)):
        raise InvalidType(f"columns must be a list of names, not {shown(columns)}. {example}")
    for column in columns:
        check_column(column)
    if not least <= len(columns) <= most or len(set(columns)) < len(columns):
        raise InvalidArgument(
            f"columns must be {least} to {most} different ones, not {shown(list(columns))}. {example}"
        )
    return tuple(columns)


def checked_bounds(bounds: object, argument: str = "bounds", example: str = BOUNDS_EXAMPLE) -> tuple[float, float]:
    """Two finite numbers with lower < upper, within +-2**53, that the grid can tell apart."""
    if bounds is None:
        raise MissingArgument(f"{argument} must be given: they are never taken from the data. {example}")
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InvalidType(f"{argument} must be a pair (lower, upper), not {shown(bounds)}. {example}")
    lower, upper = (_bound(bound, argument, example) for bound in bounds)
    if any(isinstance(bound, np.generic) for bound in bounds):
        warnings.warn(OF_DATA.format(argument), WeakPrivacyWarning, stacklevel=depth_outside())
    if not lower < upper:
        raise InvalidArgument(f"{argument} must be two numbers with lower < upper, not {shown(bounds)}. {example}")
    if max(abs(lower), abs(upper)) < SMALLEST_BOUND:
        raise InvalidArgument(
            f"{argument} must reach beyond 2**-900, unlike {shown(bounds)}. Multiply the column first."
        )
    steps = grid_steps((lower, upper))
    if steps[0] == steps[1]:
        raise InvalidArgument(
            f"{argument} must differ by more than 2**-30 of their size, unlike {shown(bounds)}. "
            "Subtract a constant first."
        )
    return lower, upper


def checked_place(argument: str, value: object, way_out: str) -> float:
    """A finite number within +-2**53, where integers and floats compare alike, as the float nearest to it."""
    if type(value) in (int, float) and -LARGEST_EXACT <= value <= LARGEST_EXACT:  # type: ignore[operator]
        return float(value) + 0.0  # type: ignore[arg-type]  # which it is exactly, and 0.0 for -0.0: no Fraction is needed
    rule = "finite and within +-2**53"
    number = exactly(argument, value, rule, f" {way_out}", typed=False)
    if abs(number) > LARGEST_EXACT:  # exactly: 2**53 + 1 rounds to 2**53
        raise InvalidArgument(f"{argument} must be {rule}, not {shown(value)}. {way_out}")
    return nearest(number)


def _bound(bound: Any, argument: str, example: str) -> float:
    if not is_number(bound):
        raise InvalidType(f"{argument} must be two numbers, not {shown(bound, kind=True)}. {example}")
    return checked_place(argument, bound, example)
