"""Words on a released result, from its record alone: its denoising, what its bounds left out, a plain paragraph.

The errors of denoised cells are a byte a cell in the record, packed into text.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display import rounding, subjects
from dpframe.display.pages import number
from dpframe.display.rounding import AS_IT_WAS, CUT, does, is_unplaced, step_words
from dpframe.errors import InvalidArgument, capital, harmless, listed, no_markup
from dpframe.mechanisms import gaussian_curve
from dpframe.privacy import noun_of
from dpframe.queries.contributions import POPULATION

STEPS = 255  # from the least to the largest, each by the same factor: at most 4% where they span four powers of ten
MANY = 2**16  # cells from which it is not worth the time to pack them a few percent smaller
HARD, QUICK = 9, 2

Floats = NDArray[np.float64]


def packed(deviations: Floats) -> dict[str, Any]:
    """Positive numbers as the least of them, the factor between steps, and the step of each, rounded up.

    Text, since a list of a million numbers would be copied with every frame.
    """
    flat = deviations.ravel()
    least, most = float(flat.min()), float(flat.max())
    ratio = math.exp(math.log(most / least) / STEPS) if most > least else 1.0
    steps = np.zeros(flat.size) if ratio == 1.0 else np.ceil(np.log(flat / least) / math.log(ratio) - 1e-9)
    codes = np.clip(steps, 0, STEPS).astype(np.uint8)
    text = zlib.compress(codes.tobytes(), HARD if flat.size < MANY else QUICK)
    return {"least": least, "ratio": ratio, "codes": base64.b64encode(text).decode()}


def unpacked(said: Mapping[str, Any], size: int) -> Floats:
    """The numbers of `size` cells; refused is a text that does not hold so many, since a file may be of anybody."""
    try:
        opened = zlib.decompressobj().decompress(base64.b64decode(said["codes"], validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error):
        opened = b""
    if len(opened) != size:
        raise InvalidArgument(
            f"the record must hold an error for each of the {size} cells, and it does not. Ask for another record."
        )
    codes = np.frombuffer(opened, dtype=np.uint8).astype(np.float64)
    return np.asarray(np.minimum(float(said["least"]) * float(said["ratio"]) ** codes, np.finfo(np.float64).max))


DROWNED = "the noise is larger than most differences between these groups"  # how the words on that begin
UNPLACED = "without intervals, which lie around the unbiased values that keep_noisy=False left out"
CUT_WITH_SUMS = f"{CUT}, with its sums"
PROJECTIONS = ("nonnegative", "isotonic")  # on sets that hold the truth, so never farther from it


def estimated_rmse(statistic: Mapping[str, Any]) -> list[float | None]:
    """The estimate for the denoised values, of each level of subtotals; None where there is none.

    It is that of the first denoiser, and holds after others only where those cannot move values away from the truth.
    """
    first, *later = statistic["denoise"] or [{}]
    if any(step["name"] not in PROJECTIONS for step in later):
        return [None]
    return list(first.get("estimated_rmse_of_levels") or [first.get("estimated_rmse")])


def cell_rmse(statistic: Mapping[str, Any], size: int) -> Floats | None:
    """The estimate for each denoised cell, in the order of the declared cells; None where there is none."""
    first, *later = statistic["denoise"] or [{}]
    if "cell_rmse" not in first or any(step["name"] not in PROJECTIONS for step in later):
        return None
    return unpacked(first["cell_rmse"], size)


def denoised_words(facts: Mapping[str, Any], shown: Callable[[float], str]) -> list[str]:
    """Notes for charts and tables: denoised values are biased, and how far off they are expected to be.

    Where nothing was denoised nothing of it is said; where values below zero alone were moved, that is said.
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
            (lowered if any(does(step) == CUT_WITH_SUMS for step in statistic["denoise"]) else cut).append(name)
            continue
        errors = dict.fromkeys(shown(error) for error in estimated_rmse(statistic) if error is not None)
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
    return words + rounded_words(facts)


def rounded_words(facts: Mapping[str, Any]) -> list[str]:
    """A note on what `round` did to the numbers; none where it was not asked."""
    steps: dict[str, list[str]] = {}
    for name, step in facts.get("rounded", {}).get("steps", {}).items():
        steps.setdefault(step_words(step), []).append(name)
    said = "; ".join(f"{', '.join(names)} to {step}" for step, names in steps.items())
    return [f"rounded, and the errors contain it: {said}"] if said else []


Facts = Mapping[str, Any]

SEEN = 0.01  # a share above which something was surely left out, and below which it is little
FARTHEST = 1e4  # times less noise, for which no epsilon is named
CONTRACTED = ("variance", "std")  # which clipping makes smaller, wherever it clips
UNKNOWN = ("covariance", "correlation")
OWN = (*CONTRACTED, *UNKNOWN, "count", "ecdf", "mean", "proportion", "quantile", "ratio", "share", "sum")  # of dpframe
ADDED = ("count", "n_distinct", "n_units", "sum")  # over units, each of which adds its part
COUNTED = ("below", "above", "outside", "cut")  # present and units are what these are shares of


def check_lines(facts: Facts) -> list[str]:
    """A line for each share of units of which something was clipped or left out."""
    return [words for words, _ in _lines(facts)]


def warned_lines(facts: Facts) -> list[str]:
    """The lines that a reader must not miss: surely more than 1% were clipped or count for less."""
    return [words for words, warns in _lines(facts) if warns]


def check_warning(facts: Facts) -> str | None:
    """The same as one text, a sentence a line; None without any."""
    lines = warned_lines(facts)
    return ".\n".join(lines) + "." if lines else None


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
            if bounds is not None and bounds[2]:
                yield from _of_values(row, units, *bounds, unsure=row["of"] in both, facts=facts)
        elif row["what"] == "outside":
            said = f"of {units} {'are' if column is None else 'have rows'} in no declared group or bin"
            yield _said(row, said, f"{said}, and are left out", facts), False
        else:
            said = f"of {units} have {row['of']}"
            found = (
                f"{said}, and are down-weighted: {_of_weights(facts['measures'])}, and the margins of error do not "
                "cover that. Raise max_rows= or max_groups="
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
    widen = "Widen " + (
        "unit_bounds=" if in_all else "weight_bounds=" if weighs else "bounds=, or ask for suggest_bounds"
    )
    if verbs == {"proportion"} and not weighs:  # of numbers that are not all 0 and 1
        widen = "Say which values it counts: value="
    unsure = unsure or (weighs and verbs != {"count"})  # values that count for less may be low or high
    off = f"{is_are} {_direction(verbs, above, unsure)}" if verbs <= set(OWN) else "may be off"
    wrong = f"{names} {off}, and {error} not cover that. {widen}"
    yield _said(row, f"{said}, clipped", f"{said}, clipped: {wrong}", facts), _found(row)


def _of_weights(measures: Facts) -> str:
    """The numbers that units which count for less make wrong: what adds up is nearer to 0, the rest leans to others."""
    added = {
        name: one.get("unit_bounds") or one.get("bounds") for name, one in measures.items() if one["verb"] in ADDED
    }
    negative = {name: bounds for name, bounds in added.items() if bounds and bounds[0] < 0}
    said = []
    if not measures or (added and not negative):  # no measures are those of a top-k: counts
        said = ["counts and sums are too low"]
    elif negative:
        too_high = [name for name, bounds in negative.items() if bounds[1] <= 0]
        ways = {
            "too low": [name for name in added if name not in negative],
            "too high": too_high,
            "too low or too high": [name for name in negative if name not in too_high],
        }
        said = [f"{no_markup(listed(of))} {'is' if len(of) == 1 else 'are'} {way}" for way, of in ways.items() if of]
    rest = [name for name in measures if name not in added]
    if rest:
        lean = "lean toward the other units" if {measures[name]["verb"] for name in rest} <= set(OWN) else "may be off"
        lean = lean.replace("lean ", "leans ", 1) if len(rest) == 1 else lean
        said.append(f"{no_markup(listed(rest))} {lean}")
    return ", ".join(said)


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
    return f"between {between} {said}: {_enough(row, facts)}"


def _percents(low: float, high: float) -> str:
    """An interval of shares in percent, its ends rounded outward."""
    digits = 0 if high - low >= 0.02 else 1
    scale = 10.0**digits
    ends = math.floor(100.0 * low * scale) / scale, math.ceil(min(100.0 * high * scale, 100.0 * scale)) / scale
    return f"{ends[0]:g}%" if ends[0] == ends[1] else f"{ends[0]:g}% to {ends[1]:g}%"


def _enough(row: Facts, facts: Facts) -> str:
    """Say at which epsilon the same question would tell a share of 0, or of twice `SEEN`, from one of `SEEN`.

    The noise of a count is within its half-width in 95 of 100 releases, and an interval reaches as far again: both
    together must be less than `SEEN` of the units, of which there are surely so many as their own interval begins with.
    Pure noise falls as epsilon grows, and Gaussian noise as mu does.
    """
    surely = 0.0
    for one in facts["checks"]:  # "units" comes last
        if (one["what"] == "present" and one["of"] == row["of"]) or (one["what"] == "units" and surely == 0.0):
            surely = one["count"] - one["count_error"]
    times = 2.0 * row["count_error"] / (SEEN * surely) if surely > 0.0 else math.inf
    if times <= 1.0:
        return f"too close to {100 * SEEN:g}% to tell"
    epsilon, delta = facts["cost"]["epsilon"], facts["cost"]["delta"]
    if times > FARTHEST or epsilon * times > gaussian_curve.LARGEST_EPSILON:
        return "too noisy to tell; a larger epsilon is needed"
    needed = epsilon * times
    if 0.0 < delta < 1.0:
        needed = gaussian_curve.epsilon_of_mu(gaussian_curve.largest_mu(epsilon, delta) * times, delta)
    rounded = float(Context(prec=2, rounding=ROUND_CEILING).create_decimal(f"{needed:.12g}"))
    return f"too noisy to tell; if it is 0% or over {200 * SEEN:g}%, an epsilon of {rounded:g} is enough"


def _clipped(facts: Facts) -> list[tuple[str, tuple[Any, Any], list[tuple[str, Facts]]]]:
    """The columns that a release clips, with bounds and the users that are shown, in the order of its checks.

    Checks are of the whole release, under its names: a changed frame may show other names, another order, or a part.
    """
    shown = getattr(facts.get("view"), "measures", None)  # of `changes.View`, which no file holds
    whole = facts if shown is None else facts["whole"]
    names: dict[str, list[str]] = {}
    for name in facts["measures"]:
        names.setdefault(name if shown is None else shown[name][0], []).append(name)
    found: dict[tuple[str, float, float], list[tuple[str, Facts]]] = {}
    for released, measure in whole["measures"].items():
        for column, (lower, upper) in _bounds_of(measure, whole):
            of = _under_conditions(column, measure)
            found.setdefault((of, lower, upper), []).extend((name, measure) for name in names.get(released, ()))
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


NOTHING = "No group is shown: none reached the threshold."
TOO_SMALL = "too small to distinguish from noise"
MOST_NAMED = 6  # columns of tables that a title lists, and groups that a sentence lists
SAME = 1e-6  # relative, of a cost that was rounded up


def statement_of(
    facts: Mapping[str, Any],
    values: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    ends: Mapping[str, rounding.Shown],
    cell: Callable[[int], str] | None = None,
) -> str:
    """Sentences on what was published, how it is protected, and how far to trust each number.

    `values` are the unbiased numbers by column, a row each, `errors` the half-widths of their 95% intervals, and `ends`
    these intervals as they are shown. `cell` names the cell of a row.
    """
    sentences = [f"{facts['warning']}."] if "warning" in facts else []
    sentences += [subjects.sentence(facts), method_words(facts), _promise(facts)]
    if all(map(len, errors.values())):
        told = rounding.sentences(
            {name: one for name, one in ends.items() if not _is_chosen(name, facts)}, facts["measures"]
        )
        sentences += [*_accuracy(facts, errors), *told, *_drowned(facts, values, errors, cell)]
    else:
        sentences.append(NOTHING)
    denoised = [f"{capital(words)}." for words in denoised_words(facts, number)]
    left_out = [f"Note: {note}." for note in facts["notes"]]
    left_out += [f"{capital(line)}." for line in check_lines(facts)]
    return harmless(" ".join([*sentences, *denoised, *left_out]))


def dearer_words(offered: float, cost: float, accounting: str) -> str | None:
    """Say why a call costs more epsilon than it names, and what to ask instead; None where it does not."""
    if cost <= offered * (1 + SAME):
        return None
    return (
        f"more than the epsilon {number(offered)} of this noise alone: {accounting} accounting does not add epsilons, "
        "and pure noise takes more of it. Ask for Gaussian noise, or take a ledger with basic accounting: there the "
        "epsilon that you type is what is charged"
    )


def margin_words(facts: Mapping[str, Any]) -> str:
    """The name of the half-width of an interval, and what it covers."""
    return f"{confidence_of(facts)} margin of error ({covered(facts)})"


def ends_words(facts: Mapping[str, Any]) -> str:
    """The name of an interval, and what it covers."""
    return f"{confidence_of(facts)} confidence interval ({covered(facts)})"


def covered(facts: Mapping[str, Any]) -> str:
    """The sources of error that intervals cover, named briefly."""
    return "noise and sample" if facts.get("covers") == POPULATION else "noise"


def confidence_of(facts: Mapping[str, Any]) -> str:
    """The confidence of the intervals, in percent."""
    return f"{100 * facts['confidence']:g}%"


def method_words(facts: Mapping[str, Any]) -> str:
    """A sentence on how the numbers were protected."""
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


def _promise(facts: Mapping[str, Any]) -> str:
    cost = facts["cost"]
    epsilon = cost["epsilon"]
    if "model" in facts:
        epsilon = facts["per_report"] * (facts["unit"]["max_rows"] or 1)  # of all reports of one unit
    said = _at_least(epsilon, 4)
    factor = f"{_at_least(math.exp(epsilon), 3):,.3g}" if epsilon < 50 else f"e^{said:.4g}"  # more is no float
    but = f", plus a probability of {_at_least(cost['delta'], 3):.3g}" if cost["delta"] else ""
    what = (
        "had another value" if "model" in facts or facts["unit"]["neighbors"] == "replace" else "were not in the data"
    )
    together = "" if facts["unit"]["column"] is None else f" All rows of one {one_of(facts)} are protected together."
    return (
        f"Whatever else a reader knows, no outcome is more than {factor} times as likely as if one {one_of(facts)} "
        f"{what}{but} (differential privacy, epsilon {said:.4g}).{together}"
    )


def _at_least(value: float, digits: int) -> float:
    """The value rounded up to so many digits, except for the last bits of a float: what is promised holds."""
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(f"{value:.12g}"))


def one_of(facts: Mapping[str, Any]) -> str:
    """The noun for who is protected."""
    return str(facts.get("word") or noun_of(facts["unit"]["column"]))


def _is_chosen(name: str, facts: Mapping[str, Any]) -> bool:
    return chosen_words(name, facts) is not None


def chosen_words(name: str, facts: Mapping[str, Any]) -> str | None:
    """The error of an answer that was chosen by ranks, whose interval holds all candidates; None of other answers."""
    statistic = facts["measures"][name]
    parts = facts["statistics"]
    if statistic.get("by") != "choice" or not statistic["statistics"]:
        return None
    ranks = parts[statistic["statistics"][0]].get("ranks") if statistic["statistics"][0] < len(parts) else None
    near = (
        "" if ranks is None else f"in 95 of 100 cases {name} is within {number(ranks)} ranks of the exact answer, but "
    )
    return (
        f"{near}no choice by ranks tells how far off {name} is in values, so its interval holds all that were declared"
    )


def _accuracy(facts: Mapping[str, Any], errors: Mapping[str, Sequence[float]]) -> list[str]:
    said = []
    for name, all_of_them in errors.items():
        if (chosen := chosen_words(name, facts)) is not None:
            said.append(f"{capital(chosen)}.")
            continue
        least, most = min(all_of_them), max(all_of_them)
        of = f"the unbiased values of {name}" if is_unplaced(facts["measures"][name], name, ()) else name
        if not math.isfinite(most):
            said.append(f"{'The' if len(all_of_them) == 1 else 'For some rows the'} noise hides {name} entirely.")
        elif most == 0.0 and any(
            facts["statistics"][place]["variance"] for place in facts["measures"][name]["statistics"]
        ):
            said.append(f"The noise of {of} is 0 with a chance of 95% or more, and whole steps otherwise.")
        elif math.isclose(least, most) or number(least) == number(most):
            said.append(f"The margin of error (95%) of {of} is {number(most)}.")
        else:
            said.append(
                f"The margin of error (95%) of {of} is {number(least)} to {number(most)}, depending on the row."
            )
    return said


def _drowned(
    facts: Facts,
    values: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
    cell: Callable[[int], str] | None,
) -> list[str]:
    """Numbers that are smaller than their errors, so that even their sign may be that of the noise.

    Where there are few, they are named by their cells.
    """
    said = []
    for name, numbers in values.items():
        pairs = zip(numbers, errors[name], strict=True)
        small = [row for row, (value, error) in enumerate(pairs) if error > 0 and abs(value) <= error]
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
