"""Numbers as people write them: so many decimals, and the marks of a language."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Any

from dpframe.errors import InvalidArgument, InvalidType, shown

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
