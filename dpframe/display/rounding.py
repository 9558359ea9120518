"""Numbers as people write them: intervals cut to possible values, and numbers rounded to their errors.

A released error is one half-width for both sides and stays as it is. The intervals that readers see are cut, and
marked where they say nothing. Intervals of rounded numbers still hold.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.display.pages import number
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.frames import build, foreign
from dpframe.frames.changes import view_of
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.quotients import within_limits

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Statistic = Mapping[str, Any]

LOW, HIGH = "_low", "_high"
SHARES = ("proportion", "share", "ecdf")
SPREADS = ("std", "var", "variance")
ANYTHING = (-math.inf, math.inf)
TOO_NOISY = "too noisy"
AS_IT_WAS, CUT = "none", "none, non-negative"  # the methods that denoise="auto" records if it did no more than this
OF_POSSIBLE = 1e-9  # the tolerance for float error, relative to the width of what is possible


@dataclass(frozen=True)
class Shown:
    """The intervals of one statistic as they are shown, with an entry per row.

    Parameters
    ----------
    low, high : array
        The ends of the intervals, cut to possible values.
    is_cut : bool
        Whether the cut moved any end away from the released one.
    below, above : array of bool
        Whether the end of a quantile's interval is a bound, so that the quantile may lie beyond it.
    noisy : array of bool
        Whether the noise is too large for the interval to say anything.
    unplaced : bool
        Whether the places of the intervals are unknown; their ends are then NaN.
    """

    low: Floats
    high: Floats
    is_cut: bool
    below: Booleans
    above: Booleans
    noisy: Booleans
    unplaced: bool = False

    @property
    def on_bounds(self) -> int:
        """The number of rows whose interval ends on a bound."""
        return int(np.count_nonzero(self.below | self.above))


def limits(statistic: Statistic) -> tuple[float, float] | None:
    """Return the limits of the possible values of a statistic; None where there are none."""
    verb = statistic["verb"]
    if "bounds" in statistic and _has_limits(statistic):
        lower, upper = _limits_between(statistic, *map(float, statistic["bounds"]))
        return float(lower), float(upper)
    if verb in SHARES:
        return 0.0, 1.0
    if verb == "correlation":
        return -1.0, 1.0
    if verb in SPREADS:
        return 0.0, math.inf
    if verb == "ratio" and "denominator_bounds" in statistic and "bounds" in statistic:
        return (0.0, math.inf) if min(statistic["bounds"][0], statistic["denominator_bounds"][0]) >= 0.0 else None
    return None


def placed(facts: Mapping[str, Any], places: NDArray[np.int64]) -> Mapping[str, Any]:
    """Return the record with the bounds of each row, in the order of the frame, for statistics with bounds by group.

    `places` gives for each row of the record its row in the frame.
    """
    own = {name: said for name, said in facts["measures"].items() if "bounds_of_groups" in said and _has_limits(said)}
    view, measures = view_of(facts), dict(facts["measures"])
    for name, said in own.items():
        ends, bounds = np.array(said["bounds_of_groups"], dtype=np.float64), np.empty((len(places), 2))
        bounds[places] = ends if view is None else ends[view.cells[view.measures[name][1]]]
        measures[name] = {**said, "bounds_of_rows": tuple(bounds.T)}
    return {**facts, "measures": measures} if own else facts


def _has_limits(statistic: Statistic) -> bool:
    """Return whether the bounds of the values limit a statistic: a quantile, a mean, or a spread of dpframe itself."""
    return "q" in statistic or statistic["verb"] == "mean" or (statistic["verb"] in SPREADS and "ddof" in statistic)


def _limits_between(statistic: Statistic, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the limits of a statistic of values between two bounds, which are numbers or arrays.

    The variance is largest if half of the values lie on each bound: the square of half the distance. For a sample of
    two values, the divisor n - 1 doubles it.
    """
    if statistic["verb"] not in SPREADS:
        return lower, upper
    most = ((upper - lower) / 2.0) ** 2 * (2.0 if statistic["ddof"] else 1.0)
    return 0.0 * most, most**0.5 if statistic["verb"] == "std" else most


def does(step: Mapping[str, Any]) -> str:
    """Return the method of a denoiser as text; "auto" may have chosen to do nothing."""
    return str(step.get("chose", {"nonnegative": CUT}.get(step["name"], step["name"])))


def is_unplaced(statistic: Statistic, name: str, columns: Container[str]) -> bool:
    """Return whether the places of intervals are unknown, since the columns lack the unbiased values at their middle.

    With empty `columns`, return whether adjusting moved values away from the middle of their intervals.
    A value that did not move is its own unbiased value. A negative number may be shown as 0: the interval around 0
    reaches at least as high, and holds all possible values of the unbiased interval.
    """
    if not foreign.is_around_noisy(statistic) or name + NOISY in columns or name + LOW in columns:
        return False
    least = min(statistic.get(bounds, [0.0])[0] for bounds in ("bounds", "unit_bounds"))
    harmless = (AS_IT_WAS, CUT) if least >= 0.0 else (AS_IT_WAS,)
    return any(does(step) not in harmless for step in statistic.get("denoise") or ())


def middle_of(statistic: Statistic, name: str, columns: Container[str]) -> str:
    """Return the column whose values are the middles of the intervals of a statistic, where these have a place."""
    return name + NOISY if name + NOISY in columns and foreign.is_around_noisy(statistic) else name


def columns_of(name: str) -> tuple[str, ...]:
    """Return the columns that a statistic of this name may have."""
    return tuple(name + end for end in ("", NOISY, ERROR, LOW, HIGH))


def of_frame(frame: Any, facts: Mapping[str, Any], name: str) -> Shown:
    """Return the intervals of one statistic of a released frame, in the order of its rows."""
    columns = {column: build.numbers(frame, column) for column in columns_of(name) if column in facts["columns"]}
    return intervals(facts["measures"][name], name, columns)


def intervals(statistic: Statistic, name: str, columns: Mapping[str, Floats]) -> Shown:
    """Return the intervals to show for one statistic, from its released `columns` by name."""
    errors = columns[name + ERROR]
    none = np.zeros(errors.shape, dtype=np.bool_)
    if is_unplaced(statistic, name, columns):
        nowhere = np.full(errors.shape, np.nan)
        return Shown(nowhere, nowhere, False, none, none, none, unplaced=True)
    middle = columns[middle_of(statistic, name, columns)]
    low, high = columns.get(name + LOW, middle - errors), columns.get(name + HIGH, middle + errors)
    within: Any = limits(statistic) or ANYTHING  # two numbers, or two arrays with an entry per row
    if "bounds_of_rows" in statistic:
        within = _limits_between(statistic, *statistic["bounds_of_rows"])
    cut_low, cut_high = within_limits(low, high, errors, within)
    is_quantile = "q" in statistic
    return Shown(
        cut_low,
        cut_high,
        not (np.array_equal(cut_low, low, equal_nan=True) and np.array_equal(cut_high, high, equal_nan=True)),
        cut_low <= within[0] if is_quantile else none,
        cut_high >= within[1] if is_quantile else none,
        none if statistic.get("by") == "choice" else _is_as_wide(cut_low, cut_high, within),
    )


def _is_as_wide(low: Floats, high: Floats, within: Any) -> Booleans:
    """Return for each row whether the cut interval reaches from the least to the largest possible number.

    An unknown end counts as open.
    """
    width = within[1] - within[0]
    slack = OF_POSSIBLE * np.where(np.isfinite(width), width, 0.0)
    return np.asarray(~(low > within[0] + slack) & ~(high < within[1] - slack))


def forms(seen: Shown, end: str) -> list[str]:
    """Return the form of each value, or of each end of the given kind; the number replaces the braces."""
    marks = {LOW: (seen.below, "<= {}"), HIGH: (seen.above, ">= {}")}
    marked, form = marks.get(end, (seen.noisy, f"{{}} ({TOO_NOISY})"))
    return [str(each) for each in np.where(marked, form, "{}")]


def notes_of(intervals_by_name: Mapping[str, Shown], measures: Mapping[str, Statistic], write: Write) -> list[str]:
    """Return notes on numbers that are too noisy, and on quantiles that may lie beyond their bounds."""
    noisy = [f"{name}{_in_rows(seen.noisy)}" for name, seen in intervals_by_name.items() if seen.noisy.any()]
    said = [f"{TOO_NOISY}, the interval is as wide as what is possible: {', '.join(noisy)}"] if noisy else []
    for name, seen in intervals_by_name.items():
        if seen.on_bounds:
            where = "<= or >="  # groups have bounds of their own
            if "bounds" in measures[name]:
                lower, upper = (write(float(bound), None) for bound in measures[name]["bounds"])
                where = f"<= {lower} or >= {upper}"
            said.append(f"an end of {name} on a bound of its values says that {name} may lie beyond it ({where})")
    return said


def sentences(intervals_by_name: Mapping[str, Shown], measures: Mapping[str, Statistic]) -> list[str]:
    """Return the notes of `notes_of` as sentences of a statement, with the interval where there is one row."""
    said = []
    for name, seen in intervals_by_name.items():
        if seen.noisy.any():
            said.append(f"The noise is too large to tell {name}{_in_rows(seen.noisy)}.")
        elif seen.low.size == 1 and (seen.is_cut or seen.on_bounds or "q" in measures[name]):
            said.append(f"With 95% the interval from {' to '.join(marked_ends(seen))} holds the exact {name}.")
        ending = int(np.count_nonzero((seen.below | seen.above) & ~seen.noisy))
        if ending:
            rows = "" if seen.low.size == 1 else f" of {ending:,} of {seen.low.size:,} rows"
            said.append(f"An end of the interval{rows} of {name} lies on a bound of its values, or beyond it.")
    return said


def marked_ends(seen: Shown) -> list[str]:
    """Return the ends of the first interval as text; an end on a bound is written as that bound, with a mark."""
    ends = float(seen.low[0]), float(seen.high[0])
    on_bound = seen.below[0], seen.above[0]
    words = [english(ends[i], None) if on_bound[i] else word for i, word in enumerate(end_words(*ends))]
    return [forms(seen, end)[0].format(word) for end, word in zip((LOW, HIGH), words, strict=True)]


def end_words(low: float, high: float) -> tuple[str, str]:
    """Return an interval's ends as text: exact if four digits suffice, or rounded outward to two digits of its width.

    Examples
    --------
    >>> end_words(1012.93, 1013.41), end_words(0.0017, 0.00231), end_words(0.0, 12.3456)
    (('1,012.93', '1,013.41'), ('0.0017', '0.00231'), ('0', '13'))
    """
    width, nearer = high - low, min(abs(low), abs(high))
    size = width if 0.0 < width < math.inf else nearer / 100.0  # keeps four digits of the only end
    return _outward(low, size, np.floor), _outward(high, size, np.ceil)


def _outward(end: float, size: float, towards: Any) -> str:
    if not math.isfinite(end):
        return english(end, None)
    plain = number(end + 0.0)  # no -0
    if float(plain.replace(",", "")) == end or not 0.0 < size < math.inf:
        return plain
    decimals = int(np.clip(KEPT - 1 - math.floor(math.log10(size)), -MOST, MOST))
    text = english(float(_to_steps(np.array([end]), decimals, towards)[0]), decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _in_rows(rows: Booleans) -> str:
    return "" if rows.size == 1 else f" in {np.count_nonzero(rows):,} of {rows.size:,} rows"


NEEDS_LOCALE = "locale= needs Babel: pip install 'dpframe[tables]'"
NONE = "-"


class Write(Protocol):
    """Writes a number with the decimals that are given or with all digits, as a measured value or as a key."""

    def __call__(self, value: float, decimals: int | None, *, is_key: bool = False) -> str: ...


def writer(locale: str | None) -> Write:
    """Return a function that writes a number in a locale, with the decimals that are given or with all digits.

    Without a locale, it writes English.
    """
    return english if locale is None else partial(_written, locale=checked_locale(locale))


def checked_locale(locale: object) -> Any:
    """Return the locale that Babel knows by a code; refuse any other value."""
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


def english(value: float, decimals: int | None, *, is_key: bool = False) -> str:
    """Return a number in English, with the decimals that are given or with all digits."""
    if value is None or value != value:
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if decimals is None:
        may_be_a_year = is_key and abs(value) < 10_000
        return f"{value:.15g}" if may_be_a_year else f"{value:,.15g}"
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"  # no -0.0


def _written(value: float, decimals: int | None, *, is_key: bool = False, locale: Any) -> str:
    if value is None or not math.isfinite(value):
        return english(value, decimals)
    from babel.numbers import format_decimal

    if decimals is None:
        return str(format_decimal(Decimal(f"{value:.15g}"), locale=locale, decimal_quantization=False))
    exact = Decimal(repr(round(value, decimals) + 0.0))
    return str(format_decimal(exact, format=_pattern(max(decimals, 0), locale), locale=locale))


@cache
def _pattern(decimals: int, locale: Any) -> str:
    """Return the number pattern of a locale with so many decimals."""
    whole = str(locale.decimal_formats[None].pattern).split(";")[0].partition(".")[0]
    return whole + (f".{'0' * decimals}" if decimals else "")


Digits = int | Literal["error"]

MOST = 15  # decimals, or zeros before the point, at most: a float has no more digits
KEPT = 2  # digits that the smallest error of a column keeps
EXACT = 6  # the most decimals that a value without an error keeps; with more, it is a fraction such as a third
SLACK = 1e-12  # the relative tolerance for floats that differ from whole steps only in their last bits


@dataclass(frozen=True)
class Rounded:
    """One rounded statistic: its decimals (-1 for tens, -2 for hundreds; None: not rounded) and its columns by name."""

    decimals: int | None
    columns: Mapping[str, Floats]

    @property
    def step(self) -> float:
        """The distance between neighboring rounded numbers; 0 where nothing was rounded."""
        return 0.0 if self.decimals is None else float(f"1e{-self.decimals}")


def checked_digits(digits: object) -> Digits:
    """Return the digits; refuse values that are neither "error" nor a number of decimals."""
    if digits == "error" and isinstance(digits, str):
        return "error"
    if isinstance(digits, bool) or not isinstance(digits, (int, np.integer)):
        raise InvalidType(f'digits must be "error" or a whole number of decimals, not {shown(digits, kind=True)}.')
    if not -MOST <= digits <= MOST:
        raise InvalidArgument(f"digits must be between -{MOST} and {MOST}, not {shown(digits)}. Write for instance 1.")
    return int(digits)


def rounded(name: str, columns: Mapping[str, Floats], digits: Digits, statistic: Statistic | None = None) -> Rounded:
    """Return the columns of one statistic, all rounded to the same decimals.

    With ``digits="error"``, the smallest error keeps two digits, values without an error stay as they are, and whole
    numbers with whole errors stay whole. A value moves by at most half a step. Errors grow by the largest of these
    moves and are rounded up; lower ends are rounded down and upper ends up. So every interval still holds what it held
    before. `statistic` is the record of the statistic.
    """
    middle = name if statistic is None else middle_of(statistic, name, columns)
    unbiased = columns[middle]
    ends = [columns[name + end] for end in (LOW, HIGH) if name + end in columns]
    decimals = _decimals(columns[name + ERROR], unbiased, ends) if digits == "error" else digits
    made: dict[str, Floats] = {}
    for column in (name, name + NOISY):
        if column in columns:
            made[column] = _to_steps(columns[column], decimals, np.rint)
    known = np.isfinite(unbiased)
    moves = np.zeros(unbiased.shape)
    moves[known] = np.abs(made[middle][known] - unbiased[known])
    errors = columns[name + ERROR]
    sure = (errors == 0) & (moves == 0)  # for example the last value of a distribution function, which is 1
    made[name + ERROR] = np.where(sure, 0.0, _to_steps(errors + moves.max(initial=0.0), decimals, np.ceil))
    for column, down in ((name + LOW, True), (name + HIGH, False)):
        if column in columns:
            made[column] = _to_steps(columns[column], decimals, np.floor if down else np.ceil)
    return Rounded(decimals, made)


def _decimals(errors: Floats, values: Floats, ends: Sequence[Floats]) -> int:
    """Return the decimals that keep two digits of the smallest error above 0, and values whose error is 0.

    Without such an error, they keep two digits of the smallest distance to an end, or four of the smallest value.
    """
    known = errors[np.isfinite(errors) & (errors > 0)]
    whole = bool(np.all(values[np.isfinite(values)] % 1 == 0) and np.all(known % 1 == 0))  # a value of 0 may be a share
    if not known.size and whole:
        return 0
    if not known.size and np.isfinite(errors).all():  # each of them is 0
        return MOST
    if not known.size:
        known = next(filter(np.size, (_positive(*(end - values for end in ends)), _positive(values) / 100.0)))
    decimals = KEPT - 1 - math.floor(math.log10(float(known.min())))
    decimals = int(np.clip(decimals, -MOST, 0 if whole else MOST))
    return _of_exact(values[(errors == 0) & np.isfinite(values)], decimals)


def _of_exact(values: Floats, decimals: int) -> int:
    """Return the decimals, raised so that values without an error stay as they are, unless that takes too many."""
    kept = (more for more in range(decimals, EXACT + 1) if np.array_equal(_to_steps(values, more, np.rint), values))
    return next(kept, decimals)


def _positive(*numbers: Floats) -> Floats:
    """Return the absolute values of the numbers that are finite and not 0."""
    sizes = np.abs(np.concatenate([np.empty(0), *numbers]))
    return np.asarray(sizes[np.isfinite(sizes) & (sizes > 0)])


def _to_steps(values: Floats, decimals: int, towards: Any) -> Floats:
    """Return each value moved to a multiple of the step; values beyond the digits of a float stay as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        factor = float(f"1e{abs(decimals)}")
        steps = values * factor if decimals >= 0 else values / factor
        nearest = np.rint(steps)
        is_step = np.abs(steps - nearest) <= SLACK * np.maximum(np.abs(steps), 1.0)
        moved = np.where(is_step, nearest, towards(steps))
        made = moved / factor if decimals >= 0 else moved * factor
        return np.where(np.isfinite(made) & (np.abs(steps) < 2.0**52), made, values) + 0.0  # no -0.0


def step_words(step: float, write: Write = english) -> str:
    """Return a step as people write it: 0.01, 1, 10, 1,000."""
    return write(step, max(0, round(-math.log10(step))))


def short_words(value: float, write: Write = english) -> str:
    """Return a number as `number` shortens it, written by `write`."""
    short = number(value)
    return short if write is english else write(float(short.replace(",", "")), None)
