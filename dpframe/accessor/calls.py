"""Calls of verbs: help and signature made from the table of options, and clear refusals of what they rule out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast, get_type_hints

from dpframe.accessor.options import OPTIONS, REFUSED, SampledOptions, explained, hints_of, options_of, parameters_of
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_column_name, closest, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.limits import refuse_misplaced
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.statistic import columns_of

Verb = TypeVar("Verb", bound=Callable[..., Any])


def asks(verb: Verb) -> Verb:
    """Make a verb's signature and help from the table of options, and refuse clearly what the signature rules out."""
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
        if verb.__name__ != "agg":  # whose statistics may have any name
            _check_call(verb.__name__, signature, positional, named)
        if isinstance(named.get("denoise"), str) and named["denoise"] == OPTIONS["denoise"].default:
            del named["denoise"]
        return verb(*positional, **named)

    wrapped.__signature__ = signature  # type: ignore[attr-defined]
    hints = {name: hint for name, hint in said.items() if name != "options"}
    wrapped.__annotations__ = hints | hints_of(kind)
    if verb.__doc__ is not None:  # it is under python -OO
        wrapped.__doc__ = explained(verb.__doc__, [option.name for option in options])
    return cast(Verb, wrapped)


def _check_call(verb: str, signature: inspect.Signature, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    arguments = list(signature.parameters)[1:]
    for name, value in named.items():
        if name not in arguments:
            reason = REFUSED.get(verb, {}).get(name)
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


ELSEWHERE = {  # words of other libraries, and what they are here
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


VERBS_ELSEWHERE = {  # verbs of other libraries, and what to write here
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
    "dp": "the verb itself: this is .dp already",
}


def no_verb(name: str, verbs: Iterable[str]) -> AttributeError:
    """The refusal of a verb that is none, with the one that was meant where it is clear."""
    meant = VERBS_ELSEWHERE.get(name) or (None if name.startswith("_") else closest(name, verbs))
    return AttributeError(f".dp has no {name!r}" + (f". Write {meant}." if meant else ""))


def no_item(name: Any) -> str:
    """The refusal of a column in brackets."""
    column = shown(name) if isinstance(name, str) else '"age"'
    return f"column must be named in the verb of .dp, not in brackets. Write .dp.mean({column}, bounds=(0, 100))."


def nearest_of(name: str, arguments: Sequence[str]) -> str:
    """The way out for the caller of an argument that is none."""
    if name in ("by", "keys"):
        return "Ask in groups: df.dp.group_by(..., keys=[...])."
    meant = ELSEWHERE.get(name)
    near = meant if meant in arguments else closest(name, arguments)
    return f"Did you mean {near}?" if near else f"Its arguments are {', '.join(arguments)}."


def undenoised(options: Any) -> dict[str, Any]:
    """The options of a question whose answer no denoiser takes."""
    if options.get("denoise") is not None:
        raise InvalidArgument(
            f"denoise must be left out with normalize=True, not {shown(options['denoise'])}: shares are the nearest to "
            "the noisy ones that add up to 1. Leave normalize out for counts that are denoised."
        )
    return {**options, "denoise": None}


def summed(options: Any, *, normalize: bool) -> Any:
    """The options of counts that are made to be added up, which have a fit of their own and an order."""
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
    """Tell whether counts for sums must have errors that are known before: without denoising, or within an error."""
    return ("denoise" in options and options["denoise"] is None) or options.get("within") is not None


def sorted_out(statistics: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Statistic], dict[str, Any]]:
    """Statistics by name, and the options."""
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
    """The output columns of an argument of `agg`, most often one."""
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
