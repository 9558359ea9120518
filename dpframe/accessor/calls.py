"""What a call may say: the options of every verb, and refusals in words for what its signature rules out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, Literal, TypedDict, TypeVar, cast

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_column_name, closest, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.ledger.ledger import Ledger
from dpframe.planning.price import Calibration
from dpframe.planning.request import Options
from dpframe.privacy import PrivacyUnit
from dpframe.queries.statistics import Count, Mean, Statistic, Sum

Verb = TypeVar("Verb", bound=Callable[..., Any])

STATISTICS = (Count, Sum, Mean)


class _AutoInTables:
    """How help shows the default of `denoise`, which depends on whether the answer is a table."""

    def __repr__(self) -> str:
        return "'auto' in tables"


AUTO_IN_TABLES = _AutoInTables()


NOT_OF = {  # what a verb does not take of the options, and why
    "mode": {
        "delta": "the exponential mechanism is purely private and needs none",
        "mechanism": "it is the exponential mechanism itself",
        "denoise": "it releases no number",
        "keep_noisy": "it releases no number",
        "rollup": "it releases no number",
        "order": "it releases no number",
        "within": "its error is how far the chosen count is below the largest: preview.mode shows it for each price",
        "confidence": "its error is how far the chosen count is below the largest: preview.mode shows it",
        "size": "it releases no mean",
    },
    "contributions": {
        "max_rows": "each unit is counted once, whatever it contributes",
        "max_groups": "each unit is counted once, whatever it contributes",
        "rollup": "its cells are numbers of rows and groups, which have no subtotals",
        "graph": "its cells are numbers of rows and groups",
        "size": "it releases no mean",
    },
}


class ModeOptions(TypedDict, total=False):
    """What ``mode`` takes besides its own arguments."""

    epsilon: float | Fraction | Sequence[float] | None
    share: float | Fraction | None
    ledger: Ledger | None
    unit: PrivacyUnit | str | None
    max_rows: int | None
    max_groups: int | None
    label: str | None
    snapshot: str | None
    max_cells: int
    memory: int | str | None
    progress: bool | None


class CallOptions(TypedDict, total=False):
    """What every verb takes besides its own arguments."""

    epsilon: float | Fraction | Sequence[float] | None
    delta: float | Fraction | None
    share: float | Fraction | None
    within: float | Mapping[str, float] | Sequence[float] | None
    confidence: float | None
    size: int | None
    weights: Mapping[str, float] | None
    mechanism: Literal["laplace", "gaussian", "auto"] | Calibration | None
    denoise: Any
    keep_noisy: bool
    rollup: bool
    order: bool | str | None
    graph: Any
    ledger: Ledger | None
    unit: PrivacyUnit | str | None
    max_rows: int | None
    max_groups: int | None
    label: str | None
    snapshot: str | None
    max_cells: int
    memory: int | str | None
    progress: bool | None


def asks(verb: Verb) -> Verb:
    """Let help show the options by name instead of ``**options``, and refuse in words what the signature rules out."""
    own = [p for p in inspect.signature(verb).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    defaults = {field.name: field.default for field in fields(Options)} | {"denoise": AUTO_IN_TABLES}
    by_name = inspect.Parameter.KEYWORD_ONLY
    left_out = NOT_OF.get(verb.__name__, {})
    options = [inspect.Parameter(name, by_name, default=defaults[name]) for name in defaults if name not in left_out]
    signature = inspect.Signature([*own, *options])

    @trimmed
    @functools.wraps(verb)
    def asked(*given: Any, **named: Any) -> Any:
        if verb.__name__ != "agg":  # whose statistics may have any name
            _check_call(verb.__name__, signature, given, named)
        return verb(*given, **named)

    asked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Verb, asked)


def _check_call(verb: str, signature: inspect.Signature, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    arguments = list(signature.parameters)[1:]
    for name, value in named.items():
        if name not in arguments:
            reason = NOT_OF.get(verb, {}).get(name)
            words = f"{name} is not an argument of {verb}"
            raise InvalidType(f"{words}: {reason}." if reason else f"{words}. {nearest_of(name, arguments)}")
        if isinstance(value, STATISTICS):
            raise InvalidType(_option_words(name))
    by_place = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(given) > len(by_place):
        raise InvalidType(
            f"{verb} must be given everything but the column by name, so {shown(given[len(by_place)])} is not clear. "
            f"Write for instance {verb}({shown(given[1])}, {arguments[1]}=...)."
        )
    needed = "column" in arguments and signature.parameters["column"].default is inspect.Parameter.empty
    if len(given) < 2 and "column" not in named and needed:
        raise MissingArgument(f'column must be given: name the column, as in {verb}("age", {arguments[1]}=...).')


def nearest_of(name: str, arguments: Sequence[str]) -> str:
    """What to tell the caller of an argument that is none."""
    near = closest(name, arguments)
    return f"Did you mean {near}?" if near else f"Its arguments are {', '.join(arguments)}."


def sorted_out(statistics: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Statistic], dict[str, Any]]:
    """Statistics by name, and the options."""
    asked: list[tuple[str, Any]] = []
    for statistic in statistics:
        asked += statistic.items() if isinstance(statistic, dict) else [(_default_name(statistic), statistic)]
    options = {}
    for name, value in named.items():
        if name not in CallOptions.__annotations__:
            asked.append((name, value))
        elif isinstance(value, STATISTICS):
            raise InvalidType(_option_words(name))
        else:
            options[name] = value
    for name, value in asked:
        if not isinstance(name, str):
            raise InvalidType(f"the name of a statistic must be a string, not {shown(name)}.")
        checked_column_name("the name of a statistic", name)
        if not isinstance(value, STATISTICS):
            raise InvalidType(_no_statistic_words(name, value))
    if not asked:
        raise MissingArgument(
            "agg must be given at least one statistic. Write for instance agg(n=dpf.count(), epsilon=1)."
        )
    names = [name for name, _ in asked]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(
                f"output columns must have different names, but {name!r} occurs twice. "
                "Name the statistics yourself, as in agg(n=dpf.count())."
            )
    return dict(asked), options


def _default_name(statistic: Any) -> str:
    return statistic.default_name if isinstance(statistic, STATISTICS) else "each argument of agg"


def _no_statistic_words(name: str, value: Any) -> str:
    near = closest(name, CallOptions.__annotations__)
    if near:
        return f"{name} is not an option of agg, and {shown(value)} is not a statistic. Did you mean {near}?"
    return f"{name} must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not {shown(value)}."


def _option_words(name: str) -> str:
    return (
        f"{name} is an option of every call, so it cannot name a statistic directly. "
        f"Write agg({{{name!r}: ...}}) with a dict instead."
    )
