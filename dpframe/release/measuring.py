"""The exact totals of a plan: of no rows before the charge, and after it of all, by the same function.

Of the look at rows nothing is told if it fails: an engine prints values in its errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpframe import noise
from dpframe.engines.engine import Reading
from dpframe.engines.found_keys import keyed
from dpframe.engines.sums.addends import NUMBERS
from dpframe.engines.totals import totals
from dpframe.errors import ReleaseFailed
from dpframe.errors.tracebacks import STOPS, withheld
from dpframe.planning.call import Call
from dpframe.planning.key_pricing import weights_of_units
from dpframe.planning.plan import Plan
from dpframe.queries.discovery import found_axis
from dpframe.queries.query import gathers


def measured(plan: Plan, frame: Any, reading: Reading | None = None, secret: int = 0) -> Any:
    """The exact totals of a frame, or where keys are to be found a table of them with the weights of their units.

    Among the totals are the numbers of the plan's checks, which come of the same rows.

    `secret` decides which groups or keys count of a unit that has more than may count; whatever it is, what a unit adds
    is bounded.
    """
    found, norm = found_axis(plan.query.keys) if plan.query.keys.unknown else None, plan.parts[0].mechanism.norm
    if found is not None:
        return keyed(frame, found, plan.unit, weights_of_units(found, plan.unit, norm), secret, reading)
    checks = None if plan.checks is None else plan.checks.checks
    return totals(frame, plan.query, plan.unit, norm, reading, secret, checks)


def measure(plan: Plan, call: Call) -> Any:
    """The only look at rows."""
    reading = Reading(call.bytes, call.words.progress)
    secret = noise.fresh_key() if gathers(plan.query) or plan.query.keys.unknown else 0
    return looked(lambda: measured(plan, call.frame, reading, secret))


def noisy_checks(plan: Plan, exact: Any) -> dict[str, Any]:
    """The facts of a record on the checks of a plan, whose numbers get their noise; nothing without checks.

    Their exact numbers are taken out of the totals.
    """
    if plan.checks is None:
        return {}
    return {"checks": plan.checks.rows(plan.checks.mechanism.add_noise(exact.pop(NUMBERS)))}


def looked(look: Callable[[], Any], stands: str = "the charge stands") -> Any:
    """The result of an engine that reads rows, after the charge; ReleaseFailed without its words where it fails."""
    result = _or_none(look)
    if result is None:
        raise ReleaseFailed(
            "the engine failed while it read the rows: its message may hold private values and is withheld; "
            f"{stands}. Run the frame's computation by itself to see the cause."
        )
    return result


def _or_none(look: Callable[[], Any]) -> Any:
    """The result, or None where the engine failed; who stops it is told where that was."""
    try:
        return withheld(look)
    except STOPS as stopped:
        stopped.add_note("dpframe was reading rows: the charge stands, and nothing was released.")
        raise
