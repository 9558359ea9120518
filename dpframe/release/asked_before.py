"""Questions that were asked before: their plans are kept, since nothing in them depends on a row.

Two calls ask the same where every public fact is the same and of the same type: the question and its options, the
columns and dtypes of the frame, who is protected, the accounting and the limit. Only plain values are compared. What is
anything else, such as a function of the caller's, is planned anew each time, and so is what was refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from dpframe import noise
from dpframe.engines.no_rows import dtypes_of_all
from dpframe.ledger.ledger import Ledger
from dpframe.planning.plan import FEW_ROWS, Plan
from dpframe.planning.request import Request

MOST = 256  # plans that are kept

EXACT = frozenset({bool, int, str, bytes, type(None)})  # whose equal values are the same, of one type
WRITTEN = frozenset({float, Decimal, date, timedelta})  # told apart by their text: 0.0 equals -0.0, and 1.0 equals 1.00


@dataclass(frozen=True)
class Ready:
    """A question that was planned and tried on no rows."""

    plan: Plan  # without a frame
    labels: Mapping[str, Any]  # the columns that name the cells


_known: dict[Hashable, Ready] = {}


def known(key: Hashable) -> Ready | None:
    """The plan and the labels of a question that was asked before."""
    return None if key is None else _known.get(key)


def keep(key: Hashable, plan: Plan, labels: Mapping[str, Any]) -> None:
    """Keep the plan and the labels of a question, without its frame."""
    if key is None or plan.query.rows > FEW_ROWS:
        return
    if len(_known) >= MOST:
        _known.clear()
    _known[key] = Ready(plan.asked_by(None), labels)


def key_of(request: Request, ledger: Ledger) -> Hashable:
    """All public facts that a plan depends on; None where one of them is no plain value, or there are many cells."""
    query, dtypes = request.query, dtypes_of_all(request.frame)
    if dtypes is None or query.found is not None or query.keys.cells > FEW_ROWS or not noise.is_secure():
        return None
    asked = (
        (query, request.noising, request.denoising, request.reading, request.max_cells, request.library),
        replace(request.pricing, ledger=None),
        (ledger.unit, ledger.accounting, ledger.limit_amount),
    )
    parts: list[Any] = [dtypes]
    return tuple(parts) if _told(asked, parts) else None


def _told(value: Any, parts: list[Any]) -> bool:
    """Add a value to the parts, with the types of all that it is made of; False where something is not plain."""
    kind: Any = type(value)
    if kind in EXACT:
        parts += (kind, value)
        return True
    if kind in WRITTEN:
        parts += (kind, repr(value))
        return True
    if kind is Fraction:  # one that was forged is of anything
        parts.append(kind)
        return _told((value.numerator, value.denominator), parts)
    if kind is tuple:
        parts += (kind, len(value))
        return all(_told(part, parts) for part in value)
    names = _names(kind)
    if names is None:
        return False
    parts.append(kind)
    return all(_told(getattr(value, name), parts) for name in names)


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass of dpframe's; None of anything else, of which nothing is known."""
    own = kind.__module__.startswith("dpframe.") and is_dataclass(kind)
    return tuple(field.name for field in fields(kind)) if own else None
