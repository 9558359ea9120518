"""The public facts of a call, as text: what tells whether two calls ask the same, whoever asks and with which frame."""

from __future__ import annotations

import hashlib
import json
import numbers
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.denoise.by_name import DENOISERS
from dpframe.errors import InvalidArgument, named
from dpframe.planning.plan import Plan
from dpframe.planning.request import Request
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import DtypeAxis, Keys

# as dpframe 0.1 called them, whose answers are replayed
NAMED = {"keep_noisy": "raw", "statistics": "measures"}
VERBS = {"mode": "select"}
CLASSES = {"Mode": "Count"}
# what does not shape the answer, or is the ledger's own; bounds are told once they are resolved
UNASKED = ("ledger", "unit", "max_rows", "max_groups", "label", "snapshot", "most")


@dataclass(frozen=True)
class Written:
    """Facts under a name, written down one by one: no class has a say in them."""

    kind: str
    parts: Mapping[str, Any]


def facts_of(request: Request, plan: Plan, unit: PrivacyUnit) -> dict[str, str]:
    """A hash for each part of the question and each option that shapes the law of the answer.

    Bounds of contribution are told where they are not those of `unit`, the ledger's own: dpframe 0.1 had no others.
    """
    query = request.query
    facts = _parts(replace(query, keys=_resolved(query.keys, plan.query.keys), grouping=plan.query.grouping))
    said = (request.pricing, request.noising, request.denoising, request.recording)
    facts |= {name: fact for value in said for name, fact in _parts(value).items() if name not in UNASKED}
    if request.pricing.within is None:
        for name in ("epsilon", "delta", "share"):
            facts.pop(name, None)
        facts["price"] = plan.price
    if plan.unit.is_bounded and not (unit.is_bounded and plan.unit.contribution == unit.contribution):
        facts |= asdict(plan.unit.contribution)
    if callable(request.noising.mechanism):  # whatever the function is, this is the noise that it chose
        facts["mechanism"] = [part.mechanism for part in plan.parts]
    facts["verb"] = VERBS.get(query.verb, query.verb)
    return {NAMED.get(name, name): hash_of(name, value) for name, value in facts.items()}


def _resolved(keys: Keys, checked: Keys) -> Keys:
    """The keys as they were typed; those that a dtype declares, as it declares them."""
    pairs = zip(keys.axes, checked.axes, strict=True)
    return Keys(tuple(checked_axis if isinstance(axis, DtypeAxis) else axis for axis, checked_axis in pairs))


def _parts(value: Any) -> dict[str, Any]:
    """The fields of a dataclass but for those at their defaults: a new field of a later version then says nothing."""
    contents = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {name: content for name, (content, default) in contents.items() if not _is_default(content, default)}


def _is_default(content: Any, default: Any) -> bool:
    return default is not MISSING and type(content) is type(default) and bool(content == default)


def hash_of(name: str, value: Any) -> str:
    """The hash of a public fact."""
    try:
        plain = _plain(value)
    except TypeError as error:
        raise InvalidArgument(
            f"snapshot must be left out where {name} is {error}: what it does cannot be told from what another "
            "one does, so the answer could not be known again. Use one of dpframe's by name, or leave snapshot out."
        ) from None
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Plain JSON of a public value, equal where values are equal: 1 and 1.0 are one number, a tuple is a list."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (numbers.Real, Decimal)):
        return {"number": _number(value.item() if isinstance(value, np.generic) else value)}
    if isinstance(value, (date, time, timedelta)):
        return {"time": [type(value).__name__, str(value)]}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [value.dtype.str, list(value.shape), digest]}
    if isinstance(value, (list, tuple, range)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, Written):
        return {"class": value.kind, "parts": {name: _plain(part) for name, part in value.parts.items()}}
    if is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        parts = {field: _plain(content) for field, content in _parts(value).items()}
        return {"class": CLASSES.get(name, name), "parts": parts}
    known = [name for name, function in DENOISERS.items() if function is value]
    if known:
        return known[0]
    raise TypeError("a function of your own" if callable(value) else named(value))


def _number(value: Any) -> str:
    try:
        return str(Fraction(repr(value) if isinstance(value, float) else value))  # the decimal that was typed
    except (ValueError, OverflowError):  # infinite, or no number
        return repr(float(value))
