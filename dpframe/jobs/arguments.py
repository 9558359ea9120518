"""The arguments of a release: a verb takes in a job file what it takes in Python, by the same names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpframe.accessor.private_frame import PrivateFrame
from dpframe.accessor.released_frame import VERBS as OF_FRAMES
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, shown
from dpframe.jobs.job import Question, Table, placed, plain
from dpframe.queries import statistics
from dpframe.queries.date_grid import dates
from dpframe.queries.discovery import discover
from dpframe.queries.group_axes import bins

VERBS = tuple(sorted({*OF_FRAMES} - {"group_by", "preview", "local"}))
ELSEWHERE = ("self", "ledger", "unit", "graph", "memory", "progress")  # said by other tables, or no plain values
OWN = ("verb", "label", "snapshot", "group_by", "keys")
EXACT = ("epsilon", "delta")  # decimals as they are written
STATISTICS = {
    name: getattr(statistics, name)
    for name in (
        *("count", "sum", "mean", "variance", "std", "proportion", "median", "quantile"),
        *("n_units", "n_distinct", "ratio", "covariance", "correlation"),
    )
}


def question_of(table: Table, snapshot: str | None) -> Question:
    """A release of a job file; `snapshot` is that of the whole job."""
    label = table.text("label", 'label = "wards"')
    named = Table(f"{table.where} {label!r}", table.values)
    verb = named.choice("verb", VERBS, named.text("verb", 'verb = "count"'))
    assert verb is not None
    takes = (*parameters_of(getattr(PrivateFrame, verb)), *(["columns"] if _open(verb) == "columns" else []))
    named.check_keys({*OWN, *takes, *(["statistics"] if _open(verb) == "statistics" else [])})
    snapshot = named.maybe_text("snapshot") or snapshot
    if snapshot is None:
        raise MissingArgument(
            f"{named.where}: snapshot must be given, here or above all tables: the name of the state of the data. "
            'Write for instance snapshot = "2026-W47".'
        )
    keys = None if "keys" not in named.values else _keys(named, named.values["keys"])
    by = _group_by(named)
    arguments = {name: _argument(named, name, named.values[name]) for name in takes if name in named.values}
    if "keys" in takes and keys is not None:
        arguments["keys"] = keys
    elif keys is not None and not by:
        raise InvalidArgument(f"{named.where}: keys must come with group_by, the columns that they are of.")
    arguments |= {"label": label, "snapshot": snapshot}
    return Question(named.where, label, verb, by, keys, _statistics(named, verb), arguments)


def parameters_of(function: Any) -> tuple[str, ...]:
    """The names that a function takes from a job file."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = inspect.signature(function).parameters.values()
    return tuple(one.name for one in given if one.kind in kinds and one.name not in ELSEWHERE)


def asked(question: Question, dp: Any, ledger: Any) -> Any:
    """The answer of a private frame to a question, or its plan where `dp` previews."""
    with placed(question.where):
        of_groups = dp.group_by(*question.group_by, keys=question.keys) if question.group_by else dp
        verb = getattr(of_groups, question.verb)
        named = dict(question.arguments)
        several = [question.statistics] if question.statistics else []
        if _open(question.verb) == "columns":
            columns = named.pop("columns", [])
            several = columns if isinstance(columns, list) else [columns]
        return verb(*several, **named, ledger=ledger)


def _open(verb: str) -> str | None:
    """The things that a verb takes any number of: statistics or columns; None of most verbs."""
    given = inspect.signature(getattr(PrivateFrame, verb)).parameters.values()
    return next((one.name for one in given if one.kind is inspect.Parameter.VAR_POSITIONAL), None)


def _argument(table: Table, name: str, value: Any) -> Any:
    if name == "share":
        return _share(table, value)
    if name in EXACT:
        if isinstance(value, list):
            raise InvalidType(f"{table.where}: {name} must be one number; a job has one cost. Keep one of them.")
        return value
    if name == "denoise" and value == "none":
        return None
    if name == "bounds" and isinstance(value, dict):
        return {column: tuple(plain(pair)) if isinstance(pair, list) else pair for column, pair in value.items()}
    if name in ("bounds", "unit_bounds", "weight_bounds") and isinstance(value, list):
        return tuple(plain(value))
    if name == "where" and isinstance(value, dict):
        return {column: _condition(one) for column, one in value.items()}
    if name == "categories" and isinstance(value, dict):
        return _keys(table, value)
    return plain(value)


def _condition(value: Any) -> Any:
    """A value or a list of them; a range is a table: ``{low = 18, high = 65}``, and either end may be left out."""
    if isinstance(value, dict) and value and set(value) <= {"low", "high"}:
        return plain(value.get("low")), plain(value.get("high"))
    return plain(value)


def _share(table: Table, value: Any) -> Any:
    """A share of the ledger: a number, or a fraction that is written out."""
    if not isinstance(value, str):
        return value
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise InvalidArgument(
            f"{table.where}: share must be a number or a fraction, not {shown(value)}. Write for instance "
            'share = "1/52".'
        ) from None


def _group_by(table: Table) -> tuple[Any, ...]:
    value = table.values.get("group_by", [])
    columns = value if isinstance(value, list) else [value]
    return tuple(_binned(table, one) if isinstance(one, dict) else one for one in columns)


def _binned(table: Table, value: Mapping[str, Any]) -> Any:
    """Bins among the columns of a group-by: ``{column = "age", bins = [0, 18, 65, 120]}``."""
    inner = Table(f"{table.where}, group_by", value)
    return _called(inner, bins)


def _keys(table: Table, value: Any) -> Any:
    """Keys of columns: a list, a table of lists, a grid of dates, or keys that are to be found."""
    if not isinstance(value, dict):
        return plain(value)
    if "every" in value:
        return _called(Table(f"{table.where}, keys", value), dates)
    if set(value) == {"discover"} and isinstance(value["discover"], dict):
        return _called(Table(f"{table.where}, keys", value["discover"]), discover)
    return {column: _keys(table, values) for column, values in value.items()}


def _statistics(table: Table, verb: str) -> dict[str, Any]:
    """The statistics of an ``agg`` by the names of their columns."""
    if _open(verb) != "statistics":
        return {}
    given = table.values.get("statistics")
    if not isinstance(given, dict) or not given or not all(isinstance(one, dict) for one in given.values()):
        raise MissingArgument(
            f"{table.where}: statistics must be given: a table for each column of the result. Write for instance "
            'statistics.stays = {statistic = "count"}.'
        )
    return {name: _statistic(Table(f"{table.where}, statistics.{name}", one)) for name, one in given.items()}


def _statistic(table: Table) -> Any:
    name = table.choice("statistic", STATISTICS, table.text("statistic", 'statistic = "mean"'))
    assert name is not None
    rest = {key: one for key, one in table.values.items() if key != "statistic"}
    return _called(Table(table.where, rest), STATISTICS[name])


def _called(table: Table, function: Any) -> Any:
    """A function of dpframe called with the values of a table."""
    takes = parameters_of(function)
    table.check_keys(takes)
    given = inspect.signature(function).parameters
    missing = [name for name in takes if name not in table.values and given[name].default is inspect.Parameter.empty]
    if missing:
        raise MissingArgument(f"{table.where}: {missing[0]} must be given.")
    with placed(table.where):
        return function(**{name: _argument(table, name, one) for name, one in table.values.items()})
