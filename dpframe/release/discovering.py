"""Keys that are found: the second half of a release whose groups nobody declared.

The numbers of units by key get their noise first. The keys that reach the line are then public, with these numbers;
what else is asked is asked of them, as of declared ones, in weights and noise that were fixed before the charge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe.engines.found_keys import key_candidates, ordered, written
from dpframe.engines.keyed import keyed
from dpframe.engines.streaming import Reading
from dpframe.engines.totals import totals
from dpframe.frames import build
from dpframe.ledger.entries import Entry
from dpframe.ledger.ledger import Ledger
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.planning.key_pricing import weights_of_units
from dpframe.planning.plan import Plan
from dpframe.queries.discovery import FoundAxis, Needed
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.total import Measured, Total
from dpframe.release import replay, results
from dpframe.release.shown_labels import labels_of, nothing_of

Integers = NDArray[np.int64]


def keys_of(plan: Plan, frame: Any, reading: Reading | None = None) -> Any:
    """The keys of a table with the exact weights of their units: a look at rows, and nothing to be shown."""
    axis = _axis(plan)
    weights = weights_of_units(axis, plan.unit, plan.parts[0].mechanism.norm)
    return keyed(frame, axis, plan.unit, weights, noise.fresh_key(), reading)


def rehearse_keys(plan: Plan, empty: Any) -> None:
    """Both looks at rows, on none, with no bits drawn."""
    labels_of(plan, nothing_of(plan))
    rest = _rest(plan, ())
    if rest.query.statistics:
        totals(empty, rest.query, rest.unit, rest.parts[0].mechanism.norm)


def released(plan: Plan, table: Any, entry: Entry, ledger: Ledger, receipt: Any, measure: Callable[[Plan], Any]) -> Any:
    """The released frame: keys that reach the line, in the order of their values."""
    axis, law = _axis(plan), _law(plan)
    keys, steps, known = key_candidates(plan.frame, axis, table)
    noisy = law.add_noise(steps)
    shown = np.flatnonzero(known | law.is_shown(noisy))
    order = shown[ordered(plan.frame, axis, keys[shown])]
    keys, noisy = keys[order], noisy[order]
    measured = {axis.people: _as_measured(noisy, law), **_measured(plan, keys.rows(), measure)}
    columns, steps_of = _numbers(plan, measured, keys.rows())
    frame = build.frame_of({**labels_of(plan, keys), **columns}, plan.asked.library)
    facts = results.facts(plan, frame, steps_of, receipt, plan.asked.recording.label)
    return replay.kept(plan, build.attach(frame, facts), None, entry, ledger, written(keys))


def _measured(plan: Plan, rows: list[tuple[Any, ...]], measure: Callable[[Plan], Any]) -> dict[Total, Measured]:
    """The other Totals of the keys that are shown, with their noise."""
    rest = _rest(plan, tuple(rows))
    if not rest.query.statistics:
        return {}
    exact, found = measure(rest), {}
    for part in rest.parts:
        there: Integers = exact[part.total][: len(rows) * part.total.width]  # the others are room, in which no row is
        found[part.total] = _as_measured(part.mechanism.add_noise(there), part.mechanism)
    return found


def _rest(plan: Plan, rows: tuple[tuple[Any, ...], ...]) -> Plan:
    """The plan of what is measured besides the numbers of units, of these keys; as many groups are room as before."""
    parts = plan.parts[1:]
    asked = tuple((str(place), Needed(part.total)) for place, part in enumerate(parts))
    keys = Keys((replace(_axis(plan), rows=rows, discovery=None),))
    return replace(plan, query=Query(plan.query.verb, keys, asked), parts=parts)


def _numbers(
    plan: Plan, measured: Mapping[Total, Measured], rows: list[tuple[Any, ...]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of numbers, and what was done to denoise them; of no keys those of a made-up one, cut off."""
    size = len(rows)
    if not size:
        noises = {total: one.noise for total, one in measured.items()}
        measured = {total: Measured(np.zeros(total.width), law) for total, law in noises.items()}
    keys = Keys((replace(_axis(plan), rows=tuple(rows) or ((None,),), room=0, discovery=None),))
    columns, steps = results.numbers_of(replace(plan, query=replace(plan.query, keys=keys)), measured)
    if not size:
        return {name: values[:0] for name, values in columns.items()}, dict.fromkeys(steps)
    return columns, steps


def _as_measured(noisy: Integers, law: Mechanism) -> Measured:
    """Noisy steps in the user's units."""
    return Measured(noisy.astype(np.float64) * law.grid, law)


def _axis(plan: Plan) -> FoundAxis:
    assert plan.query.found is not None
    return plan.query.found


def _law(plan: Plan) -> Thresholded:
    law = plan.parts[0].mechanism
    assert isinstance(law, Thresholded)
    return law
