"""Texts on a released result, from its record alone: on adjusting, on what bounds left out, and a plain statement.

The record holds the errors of adjusted cells as text, with one byte per cell before compression.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display import rounding, subjects
from dpframe.display.pages import at_least, margin, number
from dpframe.display.rounding import AS_IT_WAS, CUT, Write, does, english, is_unplaced, short_words, step_words
from dpframe.errors import InvalidArgument, harmless, listed, no_markup, sentence
from dpframe.frames import build
from dpframe.mechanisms import gaussian_curve
from dpframe.privacy import WEAK_EPSILON, noun_of
from dpframe.queries.contributions import POPULATION
from dpframe.queries.query import NOISY

STEPS = 255  # equal factors from the least to the largest error: at most 4% each if these span four powers of ten
MANY = 2**16  # from so many cells on, a few percent less text are not worth the time
HARD, QUICK = 9, 2  # levels of zlib

Floats = NDArray[np.float64]


def packed(deviations: Floats) -> dict[str, Any]:
    """Return positive numbers as the least of them, the factor between steps, and the step of each, rounded up.

    The steps are text, since each copy of a frame would also copy a list of a million numbers.
    """
    flat = deviations.ravel()
    least, most = float(flat.min()), float(flat.max())
    ratio = math.exp(math.log(most / least) / STEPS) if most > least else 1.0
    steps = np.zeros(flat.size) if ratio == 1.0 else np.ceil(np.log(flat / least) / math.log(ratio) - 1e-9)
    codes = np.clip(steps, 0, STEPS).astype(np.uint8)
    text = zlib.compress(codes.tobytes(), HARD if flat.size < MANY else QUICK)
    return {"least": least, "ratio": ratio, "codes": base64.b64encode(text).decode()}


def unpacked(said: Mapping[str, Any], size: int) -> Floats:
    """Return the numbers of `size` cells; refuse a text of another size, since a file may come from anyone."""
    try:
        opened = zlib.decompressobj().decompress(base64.b64decode(said["codes"], validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error):
        opened = b""
    if len(opened) != size:
        raise InvalidArgument(
            f"the record must hold an error for each cell, {size:,} in all, and it does not. Ask for another record."
        )
    codes = np.frombuffer(opened, dtype=np.uint8).astype(np.float64)
    return np.asarray(np.minimum(float(said["least"]) * float(said["ratio"]) ** codes, np.finfo(np.float64).max))


DROWNED = "the noise is larger than most differences between these groups"  # the start of such a note
UNPLACED = "without intervals, which lie around the unbiased values that keep_noisy=False left out"
CUT_WITH_SUMS = f"{CUT}, with its sums"
PROJECTIONS = ("nonnegative", "isotonic")  # onto convex sets that hold the exact values, so the error never grows


def estimated_rmse(statistic: Mapping[str, Any]) -> list[float | None]:
    """Return the estimated error of the adjusted values, for each level of subtotals; None without an estimate.

    It is the estimate of the first denoiser. It holds after others only if these cannot increase the error.
    """
    first, *later = statistic["denoise"] or [{}]
    if any(step["name"] not in PROJECTIONS for step in later):
        return [None]
    return list(first.get("estimated_rmse_of_levels") or [first.get("estimated_rmse")])


def cell_rmse(statistic: Mapping[str, Any], size: int) -> Floats | None:
    """Return the estimated error of each adjusted cell, in the order of the declared cells; None without one."""
    first, *later = statistic["denoise"] or [{}]
    if "cell_rmse" not in first or any(step["name"] not in PROJECTIONS for step in later):
        return None
    return unpacked(first["cell_rmse"], size)


def with_changed(frame: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with the names of the statistics in whose released numbers adjusting changed some number.

    Without the unbiased values, any 0 may be a negative number that was raised.
    """
    changed = []
    for name in facts["measures"]:
        values = build.numbers(frame, name)
        kept = build.numbers(frame, name + NOISY) if name + NOISY in facts["columns"] else None
        if np.any(values == 0.0 if kept is None else values != kept):
            changed.append(name)
    return {**facts, "changed": changed}


def denoised_words(facts: Mapping[str, Any], write: Write = english) -> list[str]:
    """Return notes for charts and tables: adjusted values are biased, with an estimate of their error.

    There is no such note where nothing was adjusted; values that were only raised to 0 have a note of their own, unless
    the record says by `with_changed` that none of them changed.
    """
    parts: list[str] = []
    unknown: list[str] = []
    cut: list[str] = []
    lowered: list[str] = []
    drowned: list[str] = []
    for name, statistic in facts["measures"].items():
        if any(step.get("noise_dominates") for step in statistic["denoise"] or ()):
            drowned.append(name)
        if not statistic["denoise"] or all(does(step) == AS_IT_WAS for step in statistic["denoise"]):
            continue
        if all(does(step) in (AS_IT_WAS, CUT, CUT_WITH_SUMS) for step in statistic["denoise"]):
            if name not in facts.get("changed", facts["measures"]):
                continue
            (lowered if any(does(step) == CUT_WITH_SUMS for step in statistic["denoise"]) else cut).append(name)
            continue
        errors = dict.fromkeys(short_words(error, write) for error in estimated_rmse(statistic) if error is not None)
        (parts if errors else unknown).append(f"{name} {', '.join(errors)}".strip())
    words = [f"denoised, so biased; estimated root mean squared error: {'; '.join(parts)}"] if parts else []
    if unknown:
        words.append(f"denoised, so biased, and how far is not estimated: {', '.join(unknown)}")
    if cut:
        words.append(f"not denoised; negative values shown as 0, so small values lean upward: {', '.join(cut)}")
    if lowered:
        words.append(
            f"not denoised; negative values shown as 0, the others lowered so that sums stay: {', '.join(lowered)}"
        )
    if drowned:
        words.append(f"{DROWNED}: {', '.join(drowned)}")
    if unplaced := [name for name, one in facts["measures"].items() if is_unplaced(one, name, facts["columns"])]:
        words.append(f"{UNPLACED}: {', '.join(unplaced)}")
    return words + rounded_words(facts, write)


def rounded_words(facts: Mapping[str, Any], write: Write = english) -> list[str]:
    """Return a note on what `round` did to the numbers; no note without a call of it."""
    steps: dict[str, list[str]] = {}
    for name, step in facts.get("rounded", {}).get("steps", {}).items():
        steps.setdefault(step_words(step, write), []).append(name)
    said = "; ".join(f"{', '.join(names)} to {step}" for step, names in steps.items())
    return [f"rounded, and the errors contain it: {said}"] if said else []


Facts = Mapping[str, Any]
Bounds = Sequence[Any]  # two bounds; those of dates are text
Users = Sequence[tuple[str, Facts]]  # statistics, each with the name that is shown

SEEN = 0.01  # a share whose interval lies above it is a finding; one whose interval lies below it is negligible
FARTHEST = 1e4  # the largest reduction of noise for which a note names an epsilon
CONTRACTED = ("variance", "std")  # statistics that clipping on either side makes smaller
UNKNOWN = ("covariance", "correlation", "ratio")
OWN = (*CONTRACTED, *UNKNOWN, "count", "ecdf", "mean", "proportion", "quantile", "share", "sum")  # dpframe's own verbs
ADDED = ("count", "n_units", "sum")  # totals of the parts that units add
BEYOND = ("below", "above")
COUNTED = ("below", "above", "outside", "cut")  # checks that have shares; "present" and "units" are the denominators


def check_lines(facts: Facts, write: Write = english) -> list[str]:
    """Return a line for each share of units whose data was clipped or left out; `write` writes the bounds."""
    return [words for words, _, _ in _lines(facts, write=write)]


def warned_lines(facts: Facts, of: Collection[str] | None = None) -> list[str]:
    """Return the lines that are warnings, such as those of shares whose interval lies above 1%.

    They concern all statistics, or the statistics in `of`, from which something is computed.
    """
    return [words for words, warns, _ in _lines(facts, of) if warns]


def warned_lines_by_share(facts: Facts) -> list[str]:
    """Return the warning lines by falling share, for places that may lack room for all."""
    return [words for words, warns, _ in sorted(_lines(facts), key=lambda line: -line[2]) if warns]


def check_warning(facts: Facts) -> str | None:
    """Return the warnings as one text with a sentence per line; None without any."""
    lines = warned_lines(facts)
    return ".\n".join(lines) + "." if lines else None


def _lines(
    facts: Facts, of: Collection[str] | None = None, write: Write = english
) -> Iterator[tuple[str, bool, float]]:
    """Yield the line of each share, whether it is a warning, and the lower end of the share's interval."""
    rows: Sequence[Facts] = [row for row in facts.get("checks", ()) if row["what"] in COUNTED]
    column = facts["unit"]["column"]
    units = "rows" if column is None else f"units ({noun_of(column)})"
    used = {name: one for name, one in facts["measures"].items() if of is None or name in of}
    clipped = iter(_clipped(facts, [row for row in rows if row["what"] in BEYOND], used))
    for row in rows:
        lines: list[tuple[str, bool]] = []
        if row["what"] in BEYOND:
            lines += _of_values(row, units, *next(clipped), facts=facts, write=write)
        elif row["what"] == "outside":
            said = f"of {units} {'are' if column is None else 'have rows'} in no declared group or bin"
            found = f"{said}, and are left out" if column is None else f"{said}; those rows are left out"
            lines.append((_said(row, said, found, facts, write), False))
        elif (low := _of_weights(row, used, facts)) is not None:
            said = f"of {units} have {row['of']}"
            found = f"{said}, and are down-weighted: {low}, and the margins of error do not cover that"
            lines.append((_said(row, said, f"{found}. {_more(row, facts)}", facts, write), _found(row)))
        yield from ((words, warns, row["share_low"]) for words, warns in lines)


def _of_values(
    row: Facts, units: str, bounds: Bounds | None, users: Users | None, *, facts: Facts, write: Write
) -> Iterator[tuple[str, bool]]:
    """Yield the lines on values below or above the bounds; quantiles have their own, and unused bounds have none."""
    above = row["what"] == "above"
    end = None if bounds is None else bounds[above]
    bound = end if end is None or isinstance(end, str) else write(end, None)
    in_all = any("unit_bounds" in measure for _, measure in users or ())
    column, own = _by_group(row, users or (), facts)
    of, groups = f"values of {column} are", f"their {own}"  # rows without a value do not count
    if facts["unit"]["column"] is not None:
        what = "one or a sum" if users is None else "a sum" if in_all else "one"
        of, groups = f"{units} with a value of {column} have {what}", f"its {own}"
    limit = bound or (f"the bounds of {groups}" if own else "its bounds")
    said = no_markup(f"of {of} {row['what']} {limit}")
    if users is None:  # the statistics are unknown, and the finding is reported all the same
        yield _said(row, f"{said}, clipped", f"{said}, clipped", facts, write), _found(row)
        return
    ranks = [(name, measure) for name, measure in users if measure["verb"] == "quantile"]
    moved = [(name, measure) for name, measure in users if measure["verb"] not in ("quantile", "ecdf")]
    if moved:
        wrong = f": {_moved(moved, row)}" if _found(row) else ""
        yield _said(row, f"{said}, clipped", f"{said}, clipped{wrong}", facts, write), _found(row)
    elif len(ranks) < len(users):
        yield _said(row, said, said, facts, write), False
    if ranks and (facts["unit"]["column"] is None or len(ranks) == len(users)):  # a share of units says no more
        yield from _of_quantiles(row, said, bound, ranks, facts, write)


def _by_group(row: Facts, users: Users, facts: Facts) -> tuple[str, str | None]:
    """Return the checked column with its condition, and the key column whose groups have bounds of their own, if any.

    The record names both in one text: "cost in its ward where ...".
    """
    whole = facts["whole"] if hasattr(facts.get("view"), "measures") else facts  # as in `_clipped`
    for _, measure in users:
        if "bounds_of_groups" in measure:
            column, key = str(measure["column"]), str(whole["cells"][0]["columns"][0])
            named = f"{column} in its {key}"
            if row["of"].startswith(named):
                return column + row["of"].removeprefix(named), key
    return str(row["of"]), None


def _of_quantiles(
    row: Facts, said: str, bound: str | None, users: Users, facts: Facts, write: Write
) -> Iterator[tuple[str, bool]]:
    """Yield the line on quantiles that lie beyond the bounds, or may; yield none if too few values lie beyond.

    With a unit column, the share counts units with any such value. It says nothing about quantiles of all values.
    """
    above = row["what"] == "above"
    groups = _groups(facts)  # one small group may hold all values beyond the bounds
    missed = [name for name, one in users if groups > 1 or row["share_low"] > ((1.0 - one["q"]) if above else one["q"])]
    if not missed or (groups > 1 and not _found(row)):
        return
    if facts["unit"]["column"] is not None:
        yield _said(row, said, said, facts, write), False
        return
    beyond, end = ("its bounds", "that bound") if bound is None else ("the bounds", bound)
    where = f"{'lies' if len(missed) == 1 else 'lie'} beyond {beyond}, and {_are(missed)} shown as {end}"
    if groups > 1:
        where = f"of some group may lie beyond {beyond}, and {_are(missed)} then shown as {end}"
    share = _percents(row["share_low"], row["share_high"], write)
    yield f"{share} {said}: {no_markup(listed(missed))} {where}. Widen bounds=", True


def _groups(facts: Facts) -> int:
    """Return the number of groups of the whole release; bins of a distribution function are no groups."""
    whole = facts["whole"] if hasattr(facts.get("view"), "measures") else facts  # as in `_clipped`
    return math.prod(axis["size"] for axis in whole["cells"] if axis.get("closed") != "right")


def _moved(users: Users, row: Facts) -> str:
    """Return text on which numbers clipping on one side makes smaller or larger, and on the remedy."""
    column, above = row["of"], row["what"] == "above"
    weights = {name for name, one in users if _is_weight(column, one)}
    ways: dict[str, list[str]] = {}
    for name, one in users:
        ways.setdefault(_direction(one["verb"], above, name in weights), []).append(name)
    said = no_markup(listed([way.format(listed(names)) for way, names in ways.items()]))
    error = "its margin of error does" if len(users) == 1 else "their margins of error do"
    in_all = any("unit_bounds" in one for _, one in users)
    widen = "unit_bounds=" if in_all else "weight_bounds=" if weights else "bounds=, or ask for suggest_bounds"
    widen = f"Widen {widen}"
    if not weights and all(one["verb"] == "proportion" for _, one in users):  # of values other than 0 and 1
        widen = "Say which values it counts: value="
    return f"this {said}, and {error} not cover that. {widen}"


def _is_weight(column: str, measure: Facts) -> bool:
    """Return whether a column, with its condition, holds the weights of a statistic."""
    return "weight" in measure and _under_conditions(measure["weight"], measure) == column


def _direction(verb: str, above: bool, of_weights: bool) -> str:
    """Return text on how clipping on one side changes a number, regardless of the other side."""
    if verb not in OWN:
        return "may move {}"
    if verb in UNKNOWN or (of_weights and verb != "count"):  # down-weighted values may be low or high
        return "moves {} in an unknown direction"
    return "lowers {}" if above or verb in CONTRACTED else "raises {}"


def _are(names: Sequence[Any]) -> str:
    return "is" if len(names) == 1 else "are"


def _of_weights(row: Facts, used: Facts, facts: Facts) -> str | None:
    """Return text on the numbers that a contribution bound biases: totals toward 0, others toward the other units.

    Return None where the bound applies to none of the numbers that are used.
    """
    measures = {name: one for name, one in used.items() if _is_under(row, one)}
    if used and not measures:
        return None
    added = {
        name: one.get("unit_bounds") or one.get("bounds") for name, one in measures.items() if one["verb"] in ADDED
    }
    negative = {name: bounds for name, bounds in added.items() if bounds and bounds[0] < 0}
    too_high = [name for name, bounds in negative.items() if bounds[1] <= 0]
    ways = {
        "too low": [name for name in added if name not in negative],
        "too high": too_high,
        "too low or too high": [name for name in negative if name not in too_high],
    }
    said = [f"{no_markup(listed(of))} {_are(of)} {way}" for way, of in ways.items() if of]
    every = len(measures) == len(facts["measures"])
    if not measures or (added and not negative and every):  # without measures, it is a top-k: counts
        said = ["counts and sums are too low"]
    rest = [name for name in measures if name not in added]
    if rest:
        lean = "lean toward the other units" if {measures[name]["verb"] for name in rest} <= set(OWN) else "may be off"
        lean = lean.replace("lean ", "leans ", 1) if len(rest) == 1 else lean
        said.append(f"{no_markup(listed(rest))} {lean}")
    return ", ".join(said)


def _is_under(row: Facts, measure: Facts) -> bool:
    """Return whether a contribution bound applies to a statistic: row bounds to row statistics, group bounds to units.

    Neither applies to numbers of distinct values. The caller's own statistics are unknown, so both may apply to them.
    """
    verb = measure["verb"]
    if verb not in (*OWN, "n_units"):
        return bool(verb != "n_distinct")
    return (verb == "n_units" or "unit_bounds" in measure) is _is_of_groups(row)


def _is_of_groups(row: Facts) -> bool:
    """Return whether a contribution bound limits the groups of a unit, and not its rows."""
    return " row" not in str(row["of"])


def _more(row: Facts, facts: Facts) -> str:
    """Return the advice for down-weighted units: which contribution bound to raise."""
    if _is_of_groups(row):
        return "Raise max_groups="
    in_each = str(row["of"]).endswith("in a group")
    all_count = _groups(facts) <= (facts["unit"]["max_groups"] or 1)  # a larger max_groups= has no effect
    return "Raise max_rows=" if in_each or all_count else "Raise max_rows= or max_groups="


def _found(row: Facts) -> bool:
    return bool(row["share_low"] > SEEN)


def _said(row: Facts, said: str, found: str, facts: Facts, write: Write) -> str:
    low, high = row["share_low"], row["share_high"]
    if low > SEEN:
        return f"{_percents(low, high, write)} {found}"
    if high < SEEN:
        return f"fewer than 1% {said}"
    between = _percents(low, high, write).replace(" to ", " and ")
    return f"between {between} {said}: {_enough(row, facts)}"


def _percents(low: float, high: float, write: Write) -> str:
    """Return an interval of shares in percent, its ends rounded outward."""
    digits = 0 if high - low >= 0.02 else 1
    scale = 10.0**digits
    ends = math.floor(100.0 * low * scale) / scale, math.ceil(min(100.0 * high * scale, 100.0 * scale)) / scale
    return " to ".join(f"{write(end, None)}%" for end in dict.fromkeys(ends))


def _enough(row: Facts, facts: Facts) -> str:
    """Return text with the epsilon at which the same query can separate a share of 0, or of twice `SEEN`, from `SEEN`.

    In 95 of 100 releases, the noise of a count is within its half-width, and the interval adds that width again. Both
    together must be below `SEEN` of the units, whose number is taken at the lower end of its interval. Pure noise is
    inversely proportional to epsilon, and Gaussian noise to mu. An epsilon that protects weakly is not named.
    """
    surely = 0.0
    for one in facts["checks"]:  # "units" comes last
        if (one["what"] == "present" and one["of"] == row["of"]) or (one["what"] == "units" and surely == 0.0):
            surely = one["count"] - one["count_error"]
    seen = SEEN * surely  # may underflow to 0 where `surely` is positive
    times = 2.0 * row["count_error"] / seen if seen > 0.0 else math.inf
    if times <= 1.0:
        return f"too close to {100 * SEEN:g}% to tell"
    epsilon, delta = facts["cost"]["epsilon"], facts["cost"]["delta"]
    if times > FARTHEST:
        return "too noisy to tell; a larger epsilon is needed"
    needed = epsilon * times
    if needed <= gaussian_curve.LARGEST_EPSILON and 0.0 < delta < 1.0:
        needed = gaussian_curve.epsilon_of_mu(gaussian_curve.largest_mu(epsilon, delta) * times, delta)
    rounded = at_least(needed, 2)
    if rounded > WEAK_EPSILON:
        return f"too noisy to tell; only an epsilon above {WEAK_EPSILON}, which protects weakly, would surely be enough"
    return f"too noisy to tell; if it is 0% or over {200 * SEEN:g}%, an epsilon of {rounded:g} is enough"


def _clipped(facts: Facts, rows: Sequence[Facts], used: Facts) -> list[tuple[Bounds | None, Users | None]]:
    """Return the bounds of each check of values, and the used statistics that they clip; None where these are unknown.

    Checks cover the whole release under its names; a changed frame may have other names, another order, or a part.
    The bounds are also None where each group has its own.
    """
    shown = getattr(facts.get("view"), "measures", None)  # only a `changes.View` has measures; a file holds none
    whole = facts if shown is None else facts["whole"]
    names: dict[str, list[str]] = {}
    for name in used:
        names.setdefault(name if shown is None else shown[name][0], []).append(name)
    measures: Facts = whole["measures"]
    found: list[tuple[Bounds | None, Users | None]] = []
    by_words = None if all("measures" in row for row in rows) else _by_words(whole, rows)
    for place, row in enumerate(rows):
        bounds, released = (row.get("bounds"), row["measures"]) if by_words is None else by_words[place]
        known = [name for name in released if name in measures]
        users = [(name, measures[one]) for one in known for name in names.get(one, ())]
        found.append((bounds, users if known else None))
    return found


def _by_words(facts: Facts, rows: Sequence[Facts]) -> list[tuple[Bounds | None, list[str]]]:
    """Return the bounds and the statistics of each check by its column text, for records that do not name them.

    Checks with the same text follow the order of the statistics. Where their number differs, they stay unknown.
    """
    said: dict[str, dict[Any, tuple[Bounds | None, list[str]]]] = {}
    for name, measure in facts["measures"].items():
        for column, bounds in _bounds_of(measure, facts):
            own = str(measure.get("bounds_of_groups")) if bounds is None else bounds
            alike = said.setdefault(_under_conditions(column, measure), {})
            alike.setdefault(("unit_bounds" in measure, own), (bounds, []))[1].append(name)
    places: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault((row["of"], row["what"]), []).append(place)
    found: list[tuple[Bounds | None, list[str]]] = [(None, []) for _ in rows]
    for (of, _), mine in places.items():
        alike = said.get(of, {})
        if len(alike) == len(mine):
            for place, one in zip(mine, alike.values(), strict=True):
                found[place] = one
    return found


def _under_conditions(column: str, measure: Facts) -> str:
    return f"{column} where {measure['where']}" if "where" in measure else column


def _bounds_of(measure: Facts, facts: Facts) -> list[tuple[str, Bounds | None]]:
    column = measure.get("column")
    if "bounds_of_columns" in measure:
        return [
            (name, tuple(bounds)) for name, bounds in zip(measure["columns"], measure["bounds_of_columns"], strict=True)
        ]
    if "bounds_of_groups" in measure:
        return [(f"{column} in its {facts['cells'][0]['columns'][0]}", None)]
    if measure["verb"] == "ecdf":
        return [
            (str(column), (axis["first"], axis["last"]))
            for axis in facts["cells"]
            if axis["columns"] == [column] and "bins" in axis
        ]
    found: list[tuple[str, Bounds | None]]
    found = [(str(column), tuple(measure[name])) for name in ("bounds", "unit_bounds") if name in measure]
    if measure["verb"] == "proportion" and "value" not in measure:
        found.append((str(column), (0.0, 1.0)))
    for more in ("denominator", "weight"):
        if more in measure:
            found.append((measure[more], tuple(measure[f"{more}_bounds"])))
    return found


NOTHING = "No group is shown: none reached the threshold."
TOO_SMALL = "too small to distinguish from noise"
MOST_NAMED = 6  # groups that a sentence lists
SAME = 1e-6  # the relative tolerance for a cost that was rounded up


def statement_of(
    facts: Mapping[str, Any],
    values: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    ends: Mapping[str, rounding.Shown],
    cell: Callable[[int], str] | None = None,
) -> str:
    """Return sentences on what was published, how it is protected, and how large the errors are.

    By column, `values` holds the unbiased number of each row, `errors` the half-widths of the 95% intervals, and
    `ends` these intervals as they are shown. `cell` names the cell of a row.
    """
    sentences = [f"{facts['warning']}."] if "warning" in facts else []
    sentences += [subjects.sentence(facts), method_words(facts), _promise(facts)]
    if all(map(len, errors.values())):
        told = rounding.sentences(
            {name: one for name, one in ends.items() if not _is_chosen(name, facts)}, facts["measures"]
        )
        sentences += [*_accuracy(facts, errors), *told, *_drowned(facts, values, errors, ends, cell)]
    else:
        sentences.append(NOTHING)
    denoised = list(map(sentence, denoised_words(facts)))
    left_out = [f"Note: {note}." for note in facts["notes"]]
    left_out += map(sentence, check_lines(facts))
    return harmless(" ".join([*sentences, *denoised, *left_out]))


def dearer_words(offered: float, cost: float, accounting: str) -> str | None:
    """Return why a call costs more epsilon than its noise alone, with an alternative; None where it does not."""
    if cost <= offered * (1 + SAME):
        return None
    return (
        f"more than the epsilon {number(offered)} of this noise alone: {accounting} accounting does not add epsilons, "
        "and pure noise takes more of it. Ask for Gaussian noise, or take a ledger with basic accounting: there the "
        "epsilon that you type is what is charged"
    )


def margin_words(facts: Mapping[str, Any]) -> str:
    """Return the name of the half-width of an interval, with the errors that it covers."""
    return f"{confidence_of(facts)} margin of error ({covered(facts)}){_at_once(facts)}"


def _at_once(facts: Mapping[str, Any]) -> str:
    """Return text on the intervals of a top-k, whose shown counts depend on the noise of all categories."""
    return ", of all categories at once" if "top" in facts else ""


def ends_words(facts: Mapping[str, Any]) -> str:
    """Return the name of an interval, with the errors that it covers."""
    return f"{confidence_of(facts)} confidence interval ({covered(facts)})"


def covered(facts: Mapping[str, Any]) -> str:
    """Return the sources of error that intervals cover, in a few words."""
    return "noise and sample" if facts.get("covers") == POPULATION else "noise"


def confidence_of(facts: Mapping[str, Any]) -> str:
    """Return the confidence of the intervals in percent, as text."""
    return f"{100 * facts['confidence']:g}%"


def method_words(facts: Mapping[str, Any]) -> str:
    """Return a sentence on how the numbers were protected."""
    if "model" in facts:
        return (
            "Every person's value was randomized before anybody collected it, and the numbers are estimated from the "
            "randomized values."
        )
    if any(statistic.get("by") == "choice" for statistic in facts["measures"].values()):
        return (
            "The result was chosen at random among declared values, to mask any one "
            f"{one_of(facts)}. Values near the exact one were far likelier."
        )
    return f"The numbers were computed exactly, and random noise was added to each to mask any one {one_of(facts)}."


def promised(facts: Mapping[str, Any]) -> tuple[float, float]:
    """Return the epsilon and delta that protect one unit: the cost, or for the local model those of its reports.

    Reports are purely private. Accounting that does not add epsilons charges them more, with a delta.
    """
    if "model" in facts:
        return facts["per_report"] * (facts["unit"]["max_rows"] or 1), 0.0
    return facts["cost"]["epsilon"], facts["cost"]["delta"]


def _promise(facts: Mapping[str, Any]) -> str:
    (epsilon, delta), cost = promised(facts), facts["cost"]
    said = at_least(epsilon, 4)
    factor = f"{at_least(math.exp(epsilon), 3):,.3g}" if epsilon < 50 else f"e^{said:.4g}"  # exp overflows later
    but = f", plus a probability of {at_least(delta, 3):.3g}" if delta else ""
    what = (
        "had another value" if "model" in facts or facts["unit"]["neighbors"] == "replace" else "were not in the data"
    )
    together = "" if facts["unit"]["column"] is None else f" All rows of one {one_of(facts)} are protected together."
    charged = ""
    if "model" in facts and (cost["delta"] or cost["epsilon"] > epsilon * (1 + SAME)):
        more = f" and delta {at_least(cost['delta'], 3):.3g}" if cost["delta"] else ""
        charged = (
            f" The ledger charged epsilon {at_least(cost['epsilon'], 4):.4g}{more}, since {cost['accounting']} "
            "accounting does not add epsilons."
        )
    return (
        f"Whatever else a reader knows, no outcome is more than {factor} times as likely as if one {one_of(facts)} "
        f"{what}{but} (differential privacy, epsilon {said:.4g}).{together}{charged}"
    )


def one_of(facts: Mapping[str, Any]) -> str:
    """Return the noun for the privacy unit."""
    return str(facts.get("word") or noun_of(facts["unit"]["column"]))


def _is_chosen(name: str, facts: Mapping[str, Any]) -> bool:
    return chosen_words(name, facts) is not None


def chosen_words(name: str, facts: Mapping[str, Any]) -> str | None:
    """Return text on the error of an answer that was chosen by ranks; None for other answers."""
    statistic = facts["measures"][name]
    parts = facts["statistics"]
    if statistic.get("by") != "choice" or not statistic["statistics"]:
        return None
    ranks = parts[statistic["statistics"][0]].get("ranks") if statistic["statistics"][0] < len(parts) else None
    noun = "rank" if ranks == 1.0 else "ranks"
    near = (
        "" if ranks is None else f"in 95 of 100 cases {name} is within {number(ranks)} {noun} of the exact answer, but "
    )
    return (
        f"{near}no choice by ranks tells how far off {name} is in values, so its interval holds all that were declared"
    )


def _accuracy(facts: Mapping[str, Any], errors: Mapping[str, Sequence[float]]) -> list[str]:
    said, level = [], f"95%{_at_once(facts)}"
    for name, all_of_them in errors.items():
        if (chosen := chosen_words(name, facts)) is not None:
            said.append(sentence(chosen))
            continue
        least, most = min(all_of_them), max(all_of_them)
        of = f"the unbiased values of {name}" if is_unplaced(facts["measures"][name], name, ()) else name
        if not math.isfinite(most):
            said.append(f"{'The' if len(all_of_them) == 1 else 'For some rows the'} noise hides {name} entirely.")
        elif most == 0.0 and any(
            facts["statistics"][place]["variance"] for place in facts["measures"][name]["statistics"]
        ):
            said.append(f"The noise of {of} is 0 with a chance of 95% or more, and whole steps otherwise.")
        elif math.isclose(least, most) or margin(least) == margin(most):
            said.append(f"The margin of error ({level}) of {of} is {margin(most)}.")
        else:
            sizes = f"{margin(least)} to {margin(most)}, depending on the row"
            said.append(f"The margin of error ({level}) of {of} is {sizes}.")
    return said


def _drowned(
    facts: Facts,
    values: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    ends: Mapping[str, rounding.Shown],
    cell: Callable[[int], str] | None,
) -> list[str]:
    """Return sentences on numbers whose shown interval holds 0, so that noise may decide even their sign.

    Where there are few, the sentences name their cells. They leave out rows that another sentence calls too noisy, and
    quantiles: a median is not small because its interval ends on a bound that is 0.
    """
    said = []
    for name, numbers in values.items():
        if "q" in facts["measures"][name]:
            continue
        seen = ends[name]
        may_be_0 = (seen.low <= 0.0) & (seen.high >= 0.0) & (np.array(errors[name]) > 0.0) & ~seen.noisy
        small = np.flatnonzero(may_be_0).tolist()
        are = "is" if len(small) == 1 else "are"
        of = f"{name} (unbiased)" if is_unplaced(facts["measures"][name], name, ()) else name
        if len(small) == len(numbers):
            said.append(f"{of if len(small) == 1 else f'All numbers of {of}'} {are} {TOO_SMALL}.")
        elif small and cell and len(small) <= MOST_NAMED:
            cells = [f"({each})" if "," in each else each for each in map(cell, small)]
            said.append(f"In {of}, {listed(cells)} {are} {TOO_SMALL}.")
        elif small:
            said.append(f"In {of}, {len(small):,} of {len(numbers):,} numbers {are} {TOO_SMALL}.")
    return said
