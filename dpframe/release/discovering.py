"""Keys that are found: the second half of a release whose groups are unknown.

The numbers of units by key get their noise first. The keys that reach the line are then public, with these numbers;
what else is asked is asked of them, as of declared ones, in weights and noise that were fixed before the charge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.engines.found_keys import key_candidates, ordered, written
from dpframe.frames import build
from dpframe.ledger.entries import Entry
from dpframe.ledger.ledger import Ledger
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.noise import nonce
from dpframe.planning.call import Call
from dpframe.planning.plan import Plan, Planned
from dpframe.queries.discovery import FoundAxis, Needed, found_axis
from dpframe.queries.keys import Keys
from dpframe.queries.query import Query
from dpframe.queries.total import Measured, Total
from dpframe.release import provenance, results
from dpframe.release.provenance import Prepared
from dpframe.release.results import exact_totals, labels_of, measure, with_noise

Integers = NDArray[np.int64]
Found = tuple[tuple[Any, ...], ...]  # of each column the keys that are shown, as they are told apart


def try_rest(plan: Plan, frame: Any, empty: Any, nothing: Any) -> None:
    """The second look and the labels, of no rows and of `nothing`, the keys that are found in them."""
    labels_of(plan, frame, nothing)
    rest = _rest(plan, ((),) * len(_axis(plan).columns))
    if rest.query.statistics:
        exact_totals(rest, empty)


def released(prepared: Prepared, table: Any, call: Call, entry: Entry, ledger: Ledger, receipt: Any) -> Any:
    """The released frame: keys that reach the line, in the order of their values."""
    plan = prepared.plan
    axis, law = _axis(plan), _law(plan)
    keys, steps, known = key_candidates(call.frame, axis, table)
    noisy = with_noise(law, steps)
    shown = np.flatnonzero(known | law.is_shown(noisy))
    order = shown[ordered(call.frame, axis, keys[shown])]
    order = _largest(order, noisy, axis)
    keys, noisy = keys[order], noisy[order]
    found = tuple(tuple(column.to_list()) for column in keys.get_columns())
    measured = {axis.people: _as_measured(noisy, plan.parts[0]), **_measured(plan, found, call)}
    columns, steps_of = _numbers(plan, measured, found)
    frame = build.frame_of({**labels_of(plan, call.frame, keys), **columns}, plan.question.library)
    facts = provenance.record(
        prepared,
        frame,
        call.words,
        denoised=steps_of,
        receipt=receipt,
        drawn={"release": nonce()},
        totals=results.totals_behind(plan, measured),
    )
    return results.kept(plan, call.frame, build.attach(frame, facts), None, entry, ledger, written(keys))


def _largest(order: NDArray[np.intp], noisy: Integers, axis: FoundAxis) -> NDArray[np.intp]:
    """Of a top-k those of the most units by their noisy numbers, the largest first; equal ones in the order of keys."""
    most = None if axis.discovery is None else axis.discovery.largest
    if most is None:
        return order
    return order[np.argsort(~noisy[order], kind="stable")[:most]]  # ~n falls as n grows, and never wraps


def _measured(plan: Plan, found: Found, call: Call) -> dict[Total, Measured]:
    """The other Totals of the keys that are shown, with their noise."""
    rest = _rest(plan, found)
    if not rest.query.statistics:
        return {}
    exact, noisy = measure(rest, call), {}
    for part in rest.parts:
        width = part.total.norm(False).width
        there: Integers = exact[part.total][: len(found[0]) * width]  # the others are room, in which no row is
        noisy[part.total] = _as_measured(with_noise(part.mechanism, there), part)
    return noisy


def _rest(plan: Plan, found: Found) -> Plan:
    """The plan of what is measured besides the numbers of units, of these keys; as many groups are room as before."""
    parts = plan.parts[1:]
    statistics = tuple((str(index), Needed(part.total)) for index, part in enumerate(parts))
    keys = Keys((replace(_axis(plan), by_column=found, discovery=None),))
    return replace(plan, query=Query(plan.query.verb, keys, statistics), parts=parts)


def _numbers(plan: Plan, measured: Mapping[Total, Measured], found: Found) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of numbers, and what was done to denoise them; of no keys those of a made-up one, cut off."""
    size = len(found[0])
    if not size:
        zeros = {total: np.zeros(total.norm(False).width) for total in measured}
        measured = {total: replace(numbers, values=zeros[total]) for total, numbers in measured.items()}
    columns, steps = results.numbers_of(of_keys(plan, found) if size else of_one_key(plan), measured)
    if not size:
        return {name: values[:0] for name, values in columns.items()}, dict.fromkeys(steps)
    return columns, steps


def of_keys(plan: Plan, found: Found) -> Plan:
    """The plan as of these keys, which are declared."""
    keys = Keys((replace(_axis(plan), by_column=found, room=0, discovery=None),))
    return replace(plan, query=replace(plan.query, keys=keys))


def of_one_key(plan: Plan) -> Plan:
    """The plan as of a made-up key."""
    return of_keys(plan, ((None,),) * len(_axis(plan).columns))


def _as_measured(noisy: Integers, part: Planned) -> Measured:
    """Noisy steps in the user's units."""
    return Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism, part.sensitivity.weighted)


def _axis(plan: Plan) -> FoundAxis:
    axis = found_axis(plan.query.keys)
    assert axis is not None
    return axis


def _law(plan: Plan) -> Thresholded:
    law = plan.parts[0].mechanism
    assert isinstance(law, Thresholded)
    return law
