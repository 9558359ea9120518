"""Numbers rounded to their errors and written as people write them: the step of each column, decimals, and marks.

Intervals of rounded numbers still hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.display.possible import HIGH, LOW
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.queries.query import ERROR, NOISY

NEEDS_LOCALE = "locale= needs Babel: pip install 'dpframe[tables]'"
NONE = "-"

Write = Callable[[float, int | None], str]


def writer(locale: str | None) -> Write:
    """A function that writes a number with so many decimals, or as it is, in the manner of a language.

    Without a locale in English.
    """
    return _english if locale is None else partial(_written, locale=checked_locale(locale))


def checked_locale(locale: object) -> Any:
    """Refuse what is no locale that Babel knows."""
    if not isinstance(locale, str):
        raise InvalidType(f'locale must be the code of a language, not {shown(locale, kind=True)}. Write "de" or "fr".')
    try:
        from babel import Locale
        from babel.core import UnknownLocaleError
    except ImportError:
        raise ImportError(NEEDS_LOCALE) from None
    try:
        return Locale.parse(locale.replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        pass
    raise InvalidArgument(f'locale must be one that Babel knows, not {shown(locale)}. Write for instance "de" or "fr".')


def _english(value: float, decimals: int | None) -> str:
    if value is None or value != value:
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if decimals is None:
        return f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.10g}"
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"  # no -0.0


def _written(value: float, decimals: int | None, *, locale: Any) -> str:
    if value is None or not math.isfinite(value):
        return _english(value, decimals)
    from babel.numbers import format_decimal

    if decimals is None:
        return str(format_decimal(Decimal(f"{value:.10g}"), locale=locale, decimal_quantization=False))
    exact = Decimal(repr(round(value, decimals) + 0.0))
    return str(format_decimal(exact, format=_pattern(max(decimals, 0), locale), locale=locale))


@cache
def _pattern(decimals: int, locale: Any) -> str:
    """The pattern of a language for numbers, with so many decimals."""
    whole = str(locale.decimal_formats[None].pattern).split(";")[0].partition(".")[0]
    return whole + (f".{'0' * decimals}" if decimals else "")


Floats = NDArray[np.float64]
Digits = int | Literal["error"]

MOST = 15  # decimals, and zeros before the point; a float has no more digits
KEPT = 2  # digits of the smallest error of a column
SLACK = 1e-12  # of floats that are whole steps but for their last bits


@dataclass(frozen=True)
class Rounded:
    """One statistic: to which decimals (below 0 for tens, hundreds, ...; None: as it is), and its columns by name."""

    decimals: int | None
    columns: Mapping[str, Floats]

    @property
    def step(self) -> float:
        """The distance of two rounded numbers; 0 where nothing was rounded."""
        return 0.0 if self.decimals is None else float(f"1e{-self.decimals}")


def checked_digits(digits: object) -> Digits:
    """Refuse what says no number of digits."""
    if digits == "error" and isinstance(digits, str):
        return "error"
    if isinstance(digits, bool) or not isinstance(digits, (int, np.integer)):
        raise InvalidType(f'digits must be "error" or a whole number of decimals, not {shown(digits, kind=True)}.')
    if not -MOST <= digits <= MOST:
        raise InvalidArgument(f"digits must be between -{MOST} and {MOST}, not {shown(digits)}. Write for instance 1.")
    return int(digits)


def rounded(name: str, columns: Mapping[str, Floats], digits: Digits) -> Rounded:
    """The columns of one statistic, rounded alike.

    With ``digits="error"`` the smallest error keeps two digits, and whole numbers stay whole. A value moves by at most
    half a step. Errors grow by the largest of these moves, and are rounded up; lower ends go down and upper ones up:
    so every interval holds what it held.
    """
    middle = name + NOISY if name + NOISY in columns else name  # around which the interval lies
    unbiased = columns[middle]
    decimals = _decimals(columns[name + ERROR], unbiased) if digits == "error" else digits
    made: dict[str, Floats] = {}
    for column in (name, name + NOISY):
        if column in columns:
            made[column] = _to_steps(columns[column], decimals, np.rint)
    known = np.isfinite(unbiased)
    moves = np.zeros(unbiased.shape)
    moves[known] = np.abs(made[middle][known] - unbiased[known])
    errors = columns[name + ERROR]
    sure = (errors == 0) & (moves == 0)  # such as the last value of a distribution function, which is 1
    made[name + ERROR] = np.where(sure, 0.0, _to_steps(errors + moves.max(initial=0.0), decimals, np.ceil))
    for column, down in ((name + LOW, True), (name + HIGH, False)):
        if column in columns:
            made[column] = _to_steps(columns[column], decimals, np.floor if down else np.ceil)
    return Rounded(decimals, made)


def _decimals(errors: Floats, values: Floats) -> int:
    """The decimals that keep two digits of the smallest error."""
    known = errors[np.isfinite(errors) & (errors > 0)]
    whole = bool(np.all(values[np.isfinite(values)] % 1 == 0))
    if not known.size:
        return 0 if whole else MOST
    decimals = KEPT - 1 - math.floor(math.log10(float(known.min())))
    return int(np.clip(decimals, -MOST, 0 if whole else MOST))


def _to_steps(values: Floats, decimals: int, towards: Any) -> Floats:
    """Each value on a multiple of the step; what is beyond the digits of a float stays as it is."""
    with np.errstate(over="ignore", invalid="ignore"):
        factor = float(f"1e{abs(decimals)}")
        steps = values * factor if decimals >= 0 else values / factor
        nearest = np.rint(steps)
        is_step = np.abs(steps - nearest) <= SLACK * np.maximum(np.abs(steps), 1.0)
        moved = np.where(is_step, nearest, towards(steps))
        made = moved / factor if decimals >= 0 else moved * factor
        return np.where(np.isfinite(made) & (np.abs(steps) < 2.0**52), made, values)


def step_words(step: float) -> str:
    """A step as people write it: 0.01, 1, 10, 1,000."""
    return f"{step:,.0f}" if step >= 1 else f"{step:.{max(0, round(-math.log10(step)))}f}"
