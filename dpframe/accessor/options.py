"""The options of verbs: their types, one table of their explanations, and the help and signatures made from it.

Options that a verb does not take are refused before anything else.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypedDict, TypeVar, cast, get_args, get_type_hints

from dpframe.errors import (
    InvalidArgument,
    InvalidType,
    MissingArgument,
    checked_column_name,
    closest,
    no_attribute,
    shown,
)
from dpframe.errors.tracebacks import trimmed
from dpframe.ledger.ledger import Ledger
from dpframe.planning.call import Calibration
from dpframe.privacy import PrivacyUnit
from dpframe.queries.limits import MOST_CELLS, refuse_misplaced
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.statistic import columns_of

Number = float | Fraction | Decimal  # taken exactly, since the cost depends on it
Within = float | Mapping[str, float]
DenoiserName = Literal[
    "auto",
    "empirical-bayes",
    "haar",
    "hard-threshold",
    "isotonic",
    "james-stein",
    "nonnegative",
    "rounded",
    "soft-threshold",
    "spanning-tree-wavelets",
    "sure-threshold",
    "trend-filter",
]
Denoiser = DenoiserName | Callable[..., Any]
Noise = Literal["laplace", "gaussian", "auto", "exponential"] | Calibration | None
Denoise = Literal["default"] | Denoiser | Sequence[Denoiser] | None


class Asked(TypedDict, total=False):
    """Options of every verb."""

    epsilon: Number | Sequence[Number] | None
    share: Number | None
    ledger: Ledger | None
    unit: PrivacyUnit | str | Sequence[str] | None
    label: str | None
    snapshot: str | None
    max_cells: int
    checks: Literal["auto"] | bool | Number
    memory: int | str | None
    progress: bool | None


class Bounded(Asked, total=False):
    """Options of a query with contribution bounds."""

    max_rows: int | None
    max_groups: int | None


class Noisy(TypedDict, total=False):
    """Options of a query that releases noisy numbers."""

    delta: Number | None
    within: Within | Sequence[Within] | None
    confidence: float | None
    mechanism: Noise
    keep_noisy: bool


class ModeOptions(Bounded, total=False):
    """Options of ``mode``."""


class TopKOptions(Bounded, total=False):
    """Options of ``top_k``."""

    delta: Number | None
    within: Within | Sequence[Within] | None
    confidence: float | None


class ContributionsOptions(Asked, Noisy, total=False):
    """Options of ``contributions``."""

    denoise: Denoise
    order: bool | str | None


class SuggestOptions(Bounded, total=False):
    """Options of ``suggest_bounds``."""

    delta: Number | None
    mechanism: Noise


class EcdfOptions(Bounded, Noisy, total=False):
    """Options of ``ecdf``."""

    size: int | None


class PairOptions(Bounded, Noisy, total=False):
    """Options of ``covariance`` and ``correlation``."""

    size: int | None


class MarginalsOptions(Bounded, Noisy, total=False):
    """Options of ``marginals``."""

    denoise: Denoise


class CallOptions(Bounded, Noisy, total=False):
    """Options of every other verb."""

    size: int | None
    weights: Mapping[str, float] | None
    denoise: Denoise
    rollup: bool
    cube: bool
    order: bool | str | None
    graph: Any


class SampledOptions(CallOptions, total=False):
    """Options of queries that can take the units as a sample of a population."""

    population: bool


@dataclass(frozen=True)
class Option:
    """One option as help shows it: its default, its type as numpydoc writes it, and its meaning."""

    default: Any
    type: str
    words: str


OPTIONS = {
    "epsilon": Option(
        None,
        "float",
        """The cost of the whole call. There is no default: give it here, as a `share`, or by `within`, if the verb has
        it. Fractions and decimals are taken exactly. A preview also takes a list of costs, or none.""",
    ),
    "delta": Option(
        None,
        "float, optional",
        "The second part of the cost, for Gaussian noise. By default that of the ledger, if its accounting has one.",
    ),
    "share": Option(
        None,
        "float or Fraction, optional",
        "Instead of `epsilon`: the cost as a share of the ledger's limit, such as ``Fraction(1, 52)``.",
    ),
    "within": Option(
        None,
        "float, or dict of them by output column, optional",
        """Instead of `epsilon`: the target half-width of the interval of the noise. The cost is the smallest epsilon
        that meets it. In `top_k`, it needs ``counts=True``. A preview also takes a list.""",
    ),
    "confidence": Option(
        None,
        "float, optional",
        "The confidence level of the interval in `within`; 0.95 by default.",
    ),
    "size": Option(
        None,
        "int, optional",
        """The assumed number of values in a group, from what you know. The error of a mean, proportion, ratio, share,
        variance, standard deviation, covariance, correlation or distribution function is shown for it. With `within`,
        these need it.""",
    ),
    "weights": Option(
        None,
        "dict of numbers by output column, optional",
        """The part of the cost that each output column takes, in epsilon (pure noise) or mu^2 (Gaussian). Columns
        without a weight have weight 1. A column of weight 4 has half the Gaussian noise of a column of weight 1.
        `within` does not change them.""",
    ),
    "mechanism": Option(
        None,
        '{"laplace", "gaussian", "auto", "exponential"} or callable, optional',
        """The noise (``docs/assurance/noise.md``). By default Gaussian noise if there is a delta, and Laplace noise
        otherwise. ``"auto"`` takes the noise with the least variance. For one quantile of the whole frame,
        ``"exponential"`` adds no noise and chooses the value by ranks.""",
    ),
    "denoise": Option(
        "default",
        'str, callable, list of them, or None, default "default"',
        """The adjustment of the noisy numbers, which costs no privacy: the name of a denoiser, a function ``(values,
        noise) -> values``, or a list of them, applied in order. ``"default"`` is ``"auto"`` for tables of counts and
        sums with declared keys or bins. It is None (no adjustment) for a single number and for `marginals`, which takes
        ``"auto"``, ``"nonnegative"`` or None. Means, shares, variances and quantiles are not adjusted
        (``docs/assurance/denoising.md``).""",
    ),
    "keep_noisy": Option(
        True,
        "bool, default True",
        "Keep the unbiased values in columns ``NAME_noisy``, next to the denoised ones.",
    ),
    "rollup": Option(
        False,
        "bool, default False",
        """After `group_by`: also release the subtotals by fewer and fewer of its columns, and the total. Each is the
        sum of its parts. For counts and sums of values by declared keys, without bins.""",
    ),
    "cube": Option(
        False,
        "bool, default False",
        """After `group_by`, instead of `rollup`: also release the total and the subtotals by every choice of its
        columns, such as both margins of a two-way table. Each is the sum of its parts. For counts and sums of values by
        declared keys, without bins.""",
    ),
    "order": Option(
        None,
        "bool or str, optional",
        """For denoising: which cells may have values like those of their neighbors. After `group_by`, True means that
        the keys are declared in such an order; the name of a column, that its keys are. The columns of `contributions`
        are ``"rows"`` and ``"groups"``. Bins are in order by default; False means that their order has no meaning.""",
    ),
    "graph": Option(
        None,
        "list of pairs, or frame, optional",
        """After `group_by`: edges between declared keys whose groups may have similar values. Public, like the keys.
        For counts and sums.""",
    ),
    "population": Option(
        False,
        "bool, default False",
        """Whether the units are a sample of a population, and intervals must cover sampling error too: see
        ``.dp.errors(covers="population")`` and `dpframe.compare`. A mean or a sum then also measures squares, for a
        part of the cost that a preview shows. Refused if the rows are not an independent sample
        (``docs/guide/compare.md``).""",
    ),
    "ledger": Option(
        None,
        "Ledger, optional",
        "The ledger to charge. By default that of the ``with`` around the call, then the default ledger.",
    ),
    "unit": Option(
        None,
        "PrivacyUnit, str or list of str, optional",
        """The privacy unit, if the ledger does not set it. A string names the column of the unit; a list, columns of
        which each combination of values is one unit.""",
    ),
    "max_rows": Option(
        None,
        "int, optional",
        """The largest number of rows of one unit that count at full weight in a group. By default that of the unit, or
        1 if only `max_groups` is given. A larger bound leaves out less and needs more noise: see `contributions`.
        Refused if each row is a unit.""",
    ),
    "max_groups": Option(
        None,
        "int, optional",
        """The largest number of groups in which rows of one unit count at full weight. The default is as for
        `max_rows`. A call with a single cell does not use it.""",
    ),
    "label": Option(
        None,
        "str, optional",
        "A name for the release, in the ledger, the provenance and the chart.",
    ),
    "snapshot": Option(
        None,
        "str, optional",
        """A name for the state of the data, such as a week or a commit. With a label, a durable ledger stores the
        result, and the same call on the same snapshot returns it at no cost (``docs/assurance/ledger.md``). A ledger in
        memory refuses it.""",
    ),
    "max_cells": Option(
        MOST_CELLS,
        "int, default 10,000,000",
        "The most cells (keys times bins), and edges of a graph, of the call. They are counted before any is made.",
    ),
    "checks": Option(
        "auto",
        '{"auto", True, False} or float, optional',
        """Measure what the bounds leave out, privately in the same call: how many rows or units have values beyond
        the bounds, are in no declared cell, or exceed the contribution bounds. The checks take 0.05 of the cost, or the
        share that is given here, above 0 and below 1. ``"auto"`` measures them if something can be clipped or cut,
        unless they would be too uncertain for `size`; False never does. True and a share always measure them, and are
        refused if the call has nothing to check, such as a count of all rows, a `mode` or `marginals`. The default is
        that of the ledger, or ``"auto"`` if it has none; an explicit ``"auto"`` overrides the ledger
        (``docs/guide/checks.md``). See ``.dp.checks()`` of the result.""",
    ),
    "memory": Option(
        None,
        "int or str, optional",
        """For a table that is read in batches (a LazyFrame, a pyarrow Dataset, a DuckDB relation): how much memory the
        process may add, in bytes or as ``"2GiB"``; at least 16 MiB. By default 1 GiB, or a quarter of the free memory
        if that is less. No result depends on it (``docs/reference/engines.md``). Refused for a frame in memory.""",
    ),
    "progress": Option(
        None,
        "bool, optional",
        """For the same tables: show a bar with the number of batches that were read (True) or not (False). By default
        it is shown in a terminal or a notebook, if tqdm is installed. Refused for a frame in memory.""",
    ),
}

UNTAKEN = {"population": "no interval for a population is known of it"}  # unless a verb has its own reason
COUNTS_OF_POPULATION = {"population": "its counts need nothing more: ask result.dp.errors(covers='population')"}
OF_PAIRS = {
    "denoise": "the nearest matrix that can be is taken anyway",
    "order": "pairs of columns have no order",
    "graph": "it is not denoised",
    "rollup": "those of groups do not add up",
    "cube": "those of groups do not add up",
    "weights": "it releases one column alone",
}
REFUSED = {  # the options that a verb does not take, with the reasons
    "covariance": OF_PAIRS,
    "correlation": OF_PAIRS,
    "count": {"bounds": "rows are counted, and no value is clipped"},
    "histogram": COUNTS_OF_POPULATION,
    "mode": {
        "delta": "a choice is purely private and needs none",
        "mechanism": "the accounting decides which choice is the better one",
        "denoise": "it releases no number",
        "keep_noisy": "it releases no number",
        "rollup": "it releases no number",
        "cube": "it releases no number",
        "order": "it releases no number",
        "graph": "it releases no number",
        "within": "its error is how far the chosen count is below the largest: preview.mode shows it for each epsilon",
        "confidence": "its error is how far the chosen count is below the largest: preview.mode shows it",
        "size": "it releases no mean",
        "weights": "it releases one column alone",
    },
    "top_k": {
        "mechanism": "public facts decide which choice errs less: preview.top_k says which",
        "denoise": "what it releases is in order, and no table",
        "keep_noisy": "its counts are the noisy ones",
        "rollup": "it releases no table",
        "cube": "it releases no table",
        "order": "it releases no table",
        "graph": "it releases no table",
        "size": "it releases no mean",
        "weights": "it measures one vector alone",
    },
    "ecdf": {
        "denoise": "its shares never fall, which is all that denoising would do",
        "order": "its bins are in order by themselves",
        "graph": "its bins are in order by themselves",
        "rollup": "shares of groups do not add up",
        "cube": "shares of groups do not add up",
        "weights": "it releases one column alone",
    },
    "marginals": {
        **COUNTS_OF_POPULATION,
        "order": "its denoisers look at sums alone",
        "graph": "its denoisers look at sums alone",
        "rollup": "it releases the subtotals anyway",
        "cube": "it releases the subtotals anyway",
        "size": "it releases no mean",
        "weights": "its objective divides the cost among the tables",
    },
    "suggest_bounds": {
        "within": "how near it is depends on how many rows there are: clipped_low and clipped_high tell",
        "confidence": "its intervals hold with 95%, all at once",
        **dict.fromkeys(("denoise", "keep_noisy", "rollup", "cube", "order", "graph"), "it releases candidates alone"),
        "size": "the number of rows is read off its own noisy counts",
        "weights": "its columns share the budget equally",
        "bounds": "it looks for them",
    },
    "contributions": {
        "max_rows": "each unit is counted once, whatever it contributes",
        "max_groups": "each unit is counted once, whatever it contributes",
        "rollup": "its cells are numbers of rows and groups, which have no subtotals",
        "cube": "its cells are numbers of rows and groups, which have no subtotals",
        "graph": "its cells are numbers of rows and groups",
        "size": "it releases no mean",
        "weights": "it releases one column alone",
    },
}


def options_of(hints: Mapping[str, Any]) -> type[Any]:
    """Return the typed dict of a verb's options, from ``Unpack[...]`` in its type hints, or else that of all."""
    unpacked = get_args(hints.get("options"))
    return cast(type[Any], unpacked[0]) if unpacked else SampledOptions


@cache
def hints_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the options of a typed dict, cached since several verbs share one at import."""
    return get_type_hints(kind)


@cache
def parameters_of(kind: type[Any]) -> list[inspect.Parameter]:
    """Return the options of a typed dict as parameters of a signature, with their types as written."""
    annotations = kind.__annotations__
    written = {name: getattr(annotation, "__forward_arg__", annotation) for name, annotation in annotations.items()}
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=written[name])
        for name, option in OPTIONS.items()
        if name in written
    ]


def explained(docstring: str, names: Sequence[str]) -> str:
    """Return a docstring with these options added at the end of its section "Parameters"."""
    lines = inspect.cleandoc(docstring).split("\n")
    heads = [index - 1 for index, line in enumerate(lines) if index and line and not line.strip("-")]
    section = next((index for index in heads if lines[index] == "Parameters"), None)
    end = next((index for index in heads if section is None or index > section), len(lines) + 1)
    before, after = lines[: end - 1], lines[end - 1 :]
    if section is None:
        before += ["", "Parameters", "----------"]
    for name in names:
        before += _lines_of(name)
    return "\n".join([*before, *after])


@cache
def _lines_of(name: str) -> list[str]:
    """Return the lines that explain one option in a docstring."""
    words = textwrap.fill(" ".join(OPTIONS[name].words.split()), 110, break_on_hyphens=False)
    return [f"{name} : {OPTIONS[name].type}", textwrap.indent(words, "    ")]


Verb = TypeVar("Verb", bound=Callable[..., Any])


def asks(verb: Verb) -> Verb:
    """Make a verb's signature and help from the table of options, and refuse arguments that do not fit."""
    said = get_type_hints(verb)
    kind: Any = options_of(said)
    options = parameters_of(kind)
    written = inspect.signature(verb)
    parameters = [parameter for parameter in written.parameters.values() if parameter.name != "options"]
    index = len(parameters) - any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    signature = written.replace(parameters=[*parameters[:index], *options, *parameters[index:]])

    @trimmed
    @functools.wraps(verb)
    def wrapped(*positional: Any, **named: Any) -> Any:
        if verb.__name__ != "agg":  # its statistics may have any name
            _check_call(verb.__name__, signature, positional, named)
        if isinstance(named.get("denoise"), str) and named["denoise"] == OPTIONS["denoise"].default:
            del named["denoise"]
        return verb(*positional, **named)

    wrapped.__signature__ = signature  # type: ignore[attr-defined]
    hints = {name: hint for name, hint in said.items() if name != "options"}
    wrapped.__annotations__ = hints | hints_of(kind)
    if verb.__doc__ is not None:  # it is None under python -OO
        wrapped.__doc__ = explained(verb.__doc__, [option.name for option in options])
    return cast(Verb, wrapped)


def _check_call(verb: str, signature: inspect.Signature, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    arguments = list(signature.parameters)[1:]
    for name, value in named.items():
        if name not in arguments:
            reason = (UNTAKEN | REFUSED.get(verb, {})).get(name)
            words = f"{name} is not an argument of {verb}"
            raise InvalidType(f"{words}: {reason}." if reason else f"{words}. {nearest_of(name, arguments)}")
        if isinstance(value, Statistic):
            raise InvalidType(_option_words(name))
    by_position = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    several = signature.parameters.get("columns")
    if several is not None and several.kind is inspect.Parameter.VAR_POSITIONAL:
        return
    if len(positional) > len(by_position) and arguments[0] == "columns":
        names = f"[{', '.join(map(shown, positional[1:]))}]"
        raise InvalidType(f"columns must be one list, not several arguments. Write {verb}({names}, ...).")
    if len(positional) > len(by_position):
        raise InvalidType(
            f"{verb} must be given everything but the column by name, so {shown(positional[len(by_position)])} "
            f"is not clear. Write for instance {verb}({shown(positional[1])}, {arguments[1]}=...)."
        )
    first = next((name for name in ("column", "columns") if name in arguments), None)
    if first is None or len(positional) > 1 or first in named:
        return
    if signature.parameters[first].default is inspect.Parameter.empty:
        words, example = ("column", '"age"') if first == "column" else ("columns", '["age", "cost"]')
        raise MissingArgument(f"{first} must be given: name the {words}, as in {verb}({example}, {arguments[1]}=...).")


ELSEWHERE = {  # arguments of other libraries, and their names here
    **dict.fromkeys(("lower", "upper", "low", "high", "min", "max", "min_value", "max_value", "clip"), "bounds"),
    **dict.fromkeys(("range", "limits", "min_sum_per_partition", "max_sum_per_partition"), "bounds"),
    **dict.fromkeys(("edges", "bin_edges", "breaks"), "bins"),
    **dict.fromkeys(("quantiles", "percentiles", "percentile", "quantile"), "q"),
    **dict.fromkeys(("accuracy", "error", "max_error", "tolerance"), "within"),
    **dict.fromkeys(("eps", "budget", "privacy_budget"), "epsilon"),
    **dict.fromkeys(("noise", "mech"), "mechanism"),
    **dict.fromkeys(("groups", "values", "partitions", "public_partitions"), "keys"),
    **dict.fromkeys(("max_contributions", "max_rows_per_id", "max_contributions_per_partition"), "max_rows"),
    "max_partitions_contributed": "max_groups",
    **dict.fromkeys(("privacy_unit", "id", "identifier", "user"), "unit"),
    **dict.fromkeys(("accountant", "session"), "ledger"),
}


VERBS_ELSEWHERE = {  # verbs of other libraries, and their replacements here
    "groupby": "group_by(..., keys=[...])",
    "value_counts": 'histogram("column", categories=[...])',
    "hist": "histogram",
    **dict.fromkeys(("avg", "average"), "mean"),
    **dict.fromkeys(("cut", "qcut"), 'group_by(dpf.bins("column", [0, 10, 20]))'),
    "var": "variance",
    "cov": "covariance",
    "corr": "correlation",
    **dict.fromkeys(
        ("nunique", "n_unique", "approx_n_unique", "count_distinct"),
        'n_distinct("column", max_values=3), or n_units() for the people of a ledger with unit="column"',
    ),
    "min": 'quantile("column", q=0.05, bounds=(lower, upper)): the least value is that of one person',
    "max": 'quantile("column", q=0.95, bounds=(lower, upper)): the largest value is that of one person',
    **dict.fromkeys(("len", "size", "height", "shape"), "count"),
    **dict.fromkeys(("describe", "aggregate", "select"), "agg(...) with the statistics to release"),
    "ratio": 'agg(dpf.ratio("numerator", "denominator", ...))',
    **dict.fromkeys(("nlargest", "head", "top"), 'top_k("column", categories=[...], k=10)'),
    **dict.fromkeys(("crosstab", "pivot", "pivot_table"), "group_by(...).count(cube=True)"),
    **dict.fromkeys(
        ("filter", "query", "where", "loc", "iloc", "assign", "with_columns", "drop", "dropna", "drop_nulls", "fillna"),
        "it before .dp, as in df.filter(...).dp: what is done to each row by itself is done to the frame",
    ),
    **dict.fromkeys(("discover", "unique"), 'group_by("column", keys=dpf.discover(delta=1e-7)).count(...)'),
    "dp": "the verb itself: this is .dp already",
}


def no_verb(name: str, verbs: Iterable[str]) -> AttributeError:
    """Return the error for a verb that does not exist, with the one that was probably meant."""
    meant = VERBS_ELSEWHERE.get(name) or (None if name.startswith("_") else closest(name, verbs))
    return no_attribute(f".dp has no {name!r}" + (f". Write {meant}." if meant else ""))


def no_item(name: Any) -> str:
    """Return the message that refuses a column in brackets."""
    column = shown(name) if isinstance(name, str) else '"age"'
    return f"column must be named in the verb of .dp, not in brackets. Write .dp.mean({column}, bounds=(0, 100))."


def nearest_of(name: str, arguments: Sequence[str]) -> str:
    """Suggest a replacement for an argument that does not exist."""
    if name in ("by", "keys"):
        return "Ask in groups: df.dp.group_by(..., keys=[...])."
    meant = ELSEWHERE.get(name)
    near = meant if meant in arguments else closest(name, arguments)
    return f"Did you mean {near}?" if near else f"Its arguments are {', '.join(arguments)}."


def undenoised(options: Any) -> dict[str, Any]:
    """Return the options without denoising, for a query whose result no denoiser takes."""
    if options.get("denoise") is not None:
        raise InvalidArgument(
            f"denoise must be left out with normalize=True, not {shown(options['denoise'])}: shares are the nearest to "
            "the noisy ones that add up to 1. Leave normalize out for counts that are denoised."
        )
    return {**options, "denoise": None}


def summed(options: Any, *, normalize: bool) -> Any:
    """Return the options of counts with ranges=True, if they fit: such counts have their own denoising and order."""
    if normalize:
        raise InvalidArgument(
            "normalize must be left out with ranges=True, which gives counts. Ask for df.dp.ecdf(...): the share of a "
            "range is the difference of two of its values."
        )
    denoise = options.get("denoise")
    if not (denoise is None or (isinstance(denoise, str) and denoise == "auto")):
        raise InvalidArgument(
            f"denoise must be 'auto' or None with ranges=True, not {shown(denoise)}: other denoisers are for noise "
            "that is drawn for each bin by itself. Leave it out."
        )
    for name in ("order", "graph"):
        if options.get(name) is not None:
            raise InvalidArgument(
                f"{name} must be left out with ranges=True: bins are in order by themselves. Drop it."
            )
    return options


def is_fixed(options: Any) -> bool:
    """Return whether errors of counts for sums must be known in advance: without denoising, or with `within`."""
    return ("denoise" in options and options["denoise"] is None) or options.get("within") is not None


def sorted_out(statistics: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Statistic], dict[str, Any]]:
    """Divide the arguments of `agg` into the statistics by name and the options."""
    entries: list[tuple[str, Any]] = []
    for statistic in statistics:
        entries += statistic.items() if isinstance(statistic, dict) else _expanded(None, statistic)
    options = {}
    for name, value in named.items():
        if name not in SampledOptions.__annotations__:
            entries.append((name, value))
        elif isinstance(value, Statistic):
            raise InvalidType(_option_words(name))
        else:
            options[name] = value
    for name, value in entries:
        if not isinstance(name, str):
            raise InvalidType(f"the name of a statistic must be a string, not {shown(name)}.")
        checked_column_name("the name of a statistic", name)
        refuse_misplaced(value)
        if not isinstance(value, Statistic):
            raise InvalidType(_no_statistic_words(name, value))
    entries = [each for name, value in entries for each in _expanded(name, value)]
    if not entries:
        raise MissingArgument(
            "agg must be given at least one statistic. Write for instance agg(n=dpf.count(), epsilon=1)."
        )
    names = [name for name, _ in entries]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(
                f"output columns must have different names, but {name!r} occurs twice. "
                "Name the statistics yourself, as in agg(n=dpf.count())."
            )
    return dict(entries), options


def _expanded(name: str | None, statistic: Any) -> list[tuple[str, Any]]:
    """Return the output columns of an argument of `agg`, most often one."""
    if not isinstance(statistic, Statistic):
        return [("each argument of agg" if name is None else name, statistic)]
    return [*columns_of(statistic, name)]


def _no_statistic_words(name: str, value: Any) -> str:
    near = closest(name, SampledOptions.__annotations__)
    if near:
        return f"{name} is not an option of agg, and {shown(value)} is not a statistic. Did you mean {near}?"
    words = f"{name} must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not {shown(value)}."
    is_uncalled = inspect.isfunction(value) and value.__module__.startswith("dpframe.queries.")
    return f"{words} Call it: dpf.{value.__name__}(...)." if is_uncalled else words


def _option_words(name: str) -> str:
    return (
        f"{name} is an option of every call, so it cannot name a statistic directly. "
        f"Write agg({{{name!r}: ...}}) with a dict instead."
    )
