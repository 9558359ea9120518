"""The second half of a release with unknown groups: find the keys, and measure the rest for them.

The numbers of units by key get their noise first. The keys that reach the threshold are then public, with their noisy
numbers. The other Totals are measured for them as for declared keys; weights and noise were fixed before the charge.
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
Found = tuple[tuple[Any, ...], ...]  # for each column, the shown keys in the form in which keys are compared


def try_rest(plan: Plan, frame: Any, empty: Any, nothing: Any) -> None:
    """Try the second measurement and the labels on no rows; `nothing` is their table of keys."""
    labels_of(plan, frame, nothing)
    rest = _rest(plan, ((),) * len(_axis(plan).columns))
    if rest.query.statistics:
        exact_totals(rest, empty)


def released(prepared: Prepared, table: Any, call: Call, entry: Entry, ledger: Ledger, receipt: Any) -> Any:
    """Return the released frame: the shown keys in the order of their values, or the largest first for a top-k."""
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
    """For a top-k, keep the keys with the largest noisy numbers, the largest first; ties stay in the order of keys."""
    most = None if axis.discovery is None else axis.discovery.largest
    if most is None:
        return order
    return order[np.argsort(~noisy[order], kind="stable")[:most]]  # ~n falls as n grows, and cannot overflow


def _measured(plan: Plan, found: Found, call: Call) -> dict[Total, Measured]:
    """Return the other Totals of the shown keys, with their noise."""
    rest = _rest(plan, found)
    if not rest.query.statistics:
        return {}
    exact, noisy = measure(rest, call), {}
    for part in rest.parts:
        width = part.total.norm(False).width
        there: Integers = exact[part.total][: len(found[0]) * width]  # the rest is room without rows
        noisy[part.total] = _as_measured(with_noise(part.mechanism, there), part)
    return noisy


def _rest(plan: Plan, found: Found) -> Plan:
    """Return the plan of all Totals except the numbers of units, for these keys; the room for groups stays the same."""
    parts = plan.parts[1:]
    statistics = tuple((str(index), Needed(part.total)) for index, part in enumerate(parts))
    keys = Keys((replace(_axis(plan), by_column=found, discovery=None),))
    return replace(plan, query=Query(plan.query.verb, keys, statistics), parts=parts)


def _numbers(plan: Plan, measured: Mapping[Total, Measured], found: Found) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of numbers and the denoising steps. Without keys, a made-up key gives empty columns."""
    size = len(found[0])
    if not size:
        zeros = {total: np.zeros(total.norm(False).width) for total in measured}
        measured = {total: replace(numbers, values=zeros[total]) for total, numbers in measured.items()}
    columns, steps = results.numbers_of(of_keys(plan, found) if size else of_one_key(plan), measured)
    if not size:
        return {name: values[:0] for name, values in columns.items()}, dict.fromkeys(steps)
    return columns, steps


def of_keys(plan: Plan, found: Found) -> Plan:
    """Return the plan as if these keys were declared."""
    keys = Keys((replace(_axis(plan), by_column=found, room=0, discovery=None),))
    return replace(plan, query=replace(plan.query, keys=keys))


def of_one_key(plan: Plan) -> Plan:
    """Return the plan as if one made-up key were declared."""
    return of_keys(plan, ((None,),) * len(_axis(plan).columns))


def _as_measured(noisy: Integers, part: Planned) -> Measured:
    """Convert noisy steps to the user's units."""
    return Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism, part.sensitivity.weighted)


def _axis(plan: Plan) -> FoundAxis:
    axis = found_axis(plan.query.keys)
    assert axis is not None
    return axis


def _law(plan: Plan) -> Thresholded:
    law = plan.parts[0].mechanism
    assert isinstance(law, Thresholded)
    return law
