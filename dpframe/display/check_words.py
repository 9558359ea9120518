"""Words on what the bounds of a release left out: a line for each indicator, from its noisy numbers alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpframe.errors import listed, no_markup
from dpframe.privacy import noun_of

Facts = Mapping[str, Any]

SEEN = 0.01  # a share above which something was surely left out, and below which it is little
CONTRACTED = ("variance", "std")  # which clipping makes smaller, wherever it clips
UNKNOWN = ("covariance", "correlation")
COUNTED = ("below", "above", "outside", "cut")  # present and units are what these are shares of


def check_lines(facts: Facts) -> list[str]:
    """A line for each share of units of which something was clipped or left out."""
    return [words for words, _ in _lines(facts)]


def warned_lines(facts: Facts) -> list[str]:
    """The lines that a reader must not miss: surely more than 1% were clipped or count for less."""
    return [words for words, warns in _lines(facts) if warns]


def check_warning(facts: Facts) -> str | None:
    """The same as one text; None without any."""
    return " ".join(warned_lines(facts)) or None


def _lines(facts: Facts) -> Iterator[tuple[str, bool]]:
    rows: Sequence[Facts] = [row for row in facts.get("checks", ()) if row["what"] in COUNTED]
    column = facts["unit"]["column"]
    units = "rows" if column is None else f"units ({noun_of(column)})"
    clipped = iter(_clipped(facts))
    bounds: tuple[str, tuple[Any, Any], list[tuple[str, Facts]]] | None = None
    both = {row["of"] for row in rows if row["what"] == "below" and _found(row)}
    both &= {row["of"] for row in rows if row["what"] == "above" and _found(row)}
    for row in rows:
        if row["what"] == "below":  # of a Boolean column there are bounds, and no check
            bounds = next((one for one in clipped if one[0] == row["of"]), None)
        if row["what"] in ("below", "above"):
            if bounds is not None:
                yield from _of_values(row, units, *bounds, unsure=row["of"] in both, facts=facts)
        elif row["what"] == "outside":
            said = f"of {units} {'have rows' if column else 'are'} in no declared group or bin"
            yield _said(row, said, f"{said}, and are left out", facts), False
        else:
            said = f"of {units} have {row['of']}"
            found = (
                f"{said}, and are down-weighted: counts and sums are too low, and their margins of error do not cover "
                "that. Raise max_rows= or max_groups="
            )
            yield _said(row, said, found, facts), _found(row)


def _of_values(
    row: Facts,
    units: str,
    column: str,
    bounds: tuple[Any, Any],
    measures: list[tuple[str, Facts]],
    *,
    unsure: bool,
    facts: Facts,
) -> Iterator[tuple[str, bool]]:
    """The line of values below or above the bounds."""
    above = row["what"] == "above"
    bound = bounds[above] if isinstance(bounds[above], str) else f"{bounds[above]:,g}"  # of dates, text
    verbs = {measure["verb"] for _, measure in measures}
    in_all = any("unit_bounds" in measure for _, measure in measures)
    values = f"{column} {'in all ' if in_all else ''}{row['what']} {bound}"
    said = no_markup(f"of {units} have {values}")
    if verbs == {"ecdf"}:
        yield _said(row, said, said, facts), False
        return
    if verbs == {"quantile"}:
        qs = [measure["q"] for _, measure in measures]
        groups = max(len(measure.get("bounds_of_groups", [()])) for _, measure in measures)  # of which one may hold all
        missed = [q for q in qs if row["share_low"] > (1.0 - q if above else q) / groups]
        if missed:
            names = no_markup(listed([name for name, measure in measures if measure["q"] in missed]))
            where = f"lies beyond the bounds, and is shown as {bound}"
            if groups > 1:
                where = "of some group may lie beyond its bounds, and is then shown as that bound"
            yield _said(row, said, f"{said}: {names} {where}. Widen bounds=", facts), True
        return
    names = no_markup(listed([name for name, _ in measures]))
    is_are = "is" if len(measures) == 1 else "are"
    error = "its margin of error does" if len(measures) == 1 else "their margins of error do"
    weighs = any(_under_conditions(one["weight"], one) == column for _, one in measures if "weight" in one)
    widen = "unit_bounds=" if in_all else "weight_bounds=" if weighs else "bounds=, or ask for suggest_bounds"
    unsure = unsure or (weighs and verbs != {"count"})  # values that count for less may be low or high
    wrong = f"{names} {is_are} {_direction(verbs, above, unsure)}, and {error} not cover that. Widen {widen}"
    yield _said(row, f"{said}, clipped", f"{said}, clipped: {wrong}", facts), _found(row)


def _direction(verbs: set[str], above: bool, unsure: bool) -> str:
    if verbs <= set(CONTRACTED):
        return "too low"
    if unsure or "ratio" in verbs or verbs & {*CONTRACTED, *UNKNOWN}:
        return "off in an unknown direction"
    return "too low" if above else "too high"


def _found(row: Facts) -> bool:
    return bool(row["share_low"] > SEEN)


def _said(row: Facts, said: str, found: str, facts: Facts) -> str:
    low, high = row["share_low"], row["share_high"]
    if low > SEEN:
        return f"{_percents(low, high)} {found}"
    if high < SEEN:
        return f"fewer than 1% {said}"
    between = _percents(low, high).replace(" to ", " and ")
    return f"between {between} {said}: too noisy to tell; {_enough(low, high, facts)} would be enough"


def _percents(low: float, high: float) -> str:
    """An interval of shares in percent, its ends rounded outward."""
    digits = 0 if high - low >= 0.02 else 1
    scale = 10.0**digits
    ends = math.floor(100.0 * low * scale) / scale, math.ceil(min(100.0 * high * scale, 100.0 * scale)) / scale
    return f"{ends[0]:g}%" if ends[0] == ends[1] else f"{ends[0]:g}% to {ends[1]:g}%"


def _enough(low: float, high: float, facts: Facts) -> str:
    """The epsilon at which the interval would be about a percentage point wide: noise falls as epsilon grows."""
    if high - low >= 1.0:
        return "a larger epsilon"
    needed = facts["cost"]["epsilon"] * (high - low) / SEEN
    digits = 1 - math.floor(math.log10(needed)) if needed > 0.0 else 0
    rounded = math.ceil(needed * 10.0**digits) / 10.0**digits
    return f"an epsilon of {rounded:g}"


def _clipped(facts: Facts) -> list[tuple[str, tuple[Any, Any], list[tuple[str, Facts]]]]:
    """The columns that the statistics of a record clip, with bounds and users, in the order of its checks."""
    found: dict[tuple[str, float, float], list[tuple[str, Facts]]] = {}
    for name, measure in facts["measures"].items():
        for column, (lower, upper) in _bounds_of(measure, facts):
            of = _under_conditions(column, measure)
            found.setdefault((of, lower, upper), []).append((name, measure))
    return [(column, (lower, upper), users) for (column, lower, upper), users in found.items()]


def _under_conditions(column: str, measure: Facts) -> str:
    return f"{column} where {measure['where']}" if "where" in measure else column


def _bounds_of(measure: Facts, facts: Facts) -> list[tuple[str, tuple[Any, Any]]]:
    column = measure.get("column")
    if "bounds_of_columns" in measure:
        return [
            (name, tuple(bounds)) for name, bounds in zip(measure["columns"], measure["bounds_of_columns"], strict=True)
        ]
    if "bounds_of_groups" in measure:
        return [(f"{column} in its {facts['cells'][0]['columns'][0]}", ("its bounds", "its bounds"))]
    if measure["verb"] == "ecdf":
        return [
            (str(column), (axis["first"], axis["last"]))
            for axis in facts["cells"]
            if axis["columns"] == [column] and "bins" in axis
        ]
    found = [(str(column), tuple(measure[name])) for name in ("bounds", "unit_bounds") if name in measure]
    if measure["verb"] == "proportion" and "value" not in measure:
        found.append((str(column), (0.0, 1.0)))
    for more in ("denominator", "weight"):
        if more in measure:
            found.append((measure[more], tuple(measure[f"{more}_bounds"])))
    return found
