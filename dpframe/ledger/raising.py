"""A limit is raised by name and for a reason, never lowered and never by a typo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpframe.accounting import Accounting
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_name, shown
from dpframe.errors.words import LONGEST_REASON
from dpframe.exact import exact_delta, exact_epsilon, shown_down
from dpframe.ledger.terms import Limit


def checked_reason(reason: object) -> str:
    """Refuse what tells later readers nothing."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidType(f"reason must be a sentence for the record, not {shown(reason)}. Write why.")
    return checked_name("reason", reason, LONGEST_REASON)


def raising(accounting: Accounting, epsilon: object, delta: object) -> Callable[[Limit], Limit]:
    """What makes the higher limit of the one that the ledger has when the entry is written."""
    if epsilon is None and delta is None:
        raise MissingArgument("epsilon must be given: the new limit. Write for instance raise_limit(epsilon=2.0, ...).")
    if delta is not None and accounting.has_own_delta:
        raise InvalidArgument(
            f"delta must be left out: {accounting.name} accounting reads every loss at the delta that the ledger was "
            "made with. Raise epsilon."
        )
    new_epsilon = None if epsilon is None else exact_epsilon(epsilon)
    new_delta = None if delta is None else exact_delta(delta)

    def raised(limit: Limit) -> Limit:
        pairs = {"epsilon": (new_epsilon, limit.epsilon), "delta": (new_delta, limit.delta)}
        for name, (wanted, now) in pairs.items():
            if wanted is not None and wanted < now:
                raise InvalidArgument(
                    f"{name} must not be below the ledger's {shown_down(now)!r}, not {shown_down(wanted)!r}: "
                    "a limit is only raised. Leave it out to keep it."
                )
        higher = (new_epsilon or limit.epsilon, limit.delta if new_delta is None else new_delta)
        if higher == (limit.epsilon, limit.delta):
            raise InvalidArgument(
                f"epsilon must be above the ledger's {shown_down(limit.epsilon)!r} to raise it. Write more."
            )
        amount = tuple(map(max, limit.amount, accounting.limit(*higher)))
        return replace(limit, epsilon=higher[0], delta=higher[1], amount=amount)

    return raised
