"""The path of a stream: check the schema, charge once, measure a period, write that it is drawn, draw it, store it.

Nothing that was drawn is shown before it is stored, and what was stored is shown to anyone who asks again. What can
fail is done before the intent is written: the schema is checked, the whole call is tried on no rows, the rows are read.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframe.accounting import Basic
from dpframe.engines.choice import check_whole
from dpframe.engines.first_rows import stream_totals
from dpframe.engines.schema import check, columns_of, emptied
from dpframe.errors import InvalidArgument, LedgerError, ReleaseFailed, WrongDtype, after_the_charge, shown
from dpframe.errors.tracebacks import OF_VALUES, tried
from dpframe.frames import build
from dpframe.frames.build import public
from dpframe.ledger import ambient, streams
from dpframe.ledger.entries import Entry, StreamState
from dpframe.ledger.ledger import ROWS, Ledger
from dpframe.ledger.statement import no_ledger
from dpframe.ledger.unbroken import to_the_end, unbroken, until_it_goes_through
from dpframe.noise import nonce
from dpframe.planning.stream_plan import StreamPlan
from dpframe.planning.stream_request import StreamRequest
from dpframe.privacy import checked_unit
from dpframe.queries.date_grid import time_of
from dpframe.queries.keys import Keys, plain_key
from dpframe.queries.sameness import same_key
from dpframe.queries.stream_design import measured
from dpframe.release.measuring import looked
from dpframe.release.stream_record import COLUMNS, Stored, entry_of, facts_said, frame_of, read_off, record_of

PATIENCE = 5.0  # seconds to wait for another call that draws the same period
PAUSE = 0.02
PERIOD_EXAMPLE = 'Write for instance "2026-W07" or date(2026, 2, 9).'

log = logging.getLogger("dpframe")


def previewed(request: StreamRequest, frame: Any = None) -> StreamPlan:
    """Plan a stream. Reads no row, spends nothing; with a frame its schema is checked."""
    plan = _planned(request, ambient.ledger_for(request.ledger))
    if frame is not None:
        _check_frame(plan, frame)
    return plan


def released(request: StreamRequest, frame: Any, period: Any, library: str) -> Any:
    """The numbers of a period: drawn now if it is the next one, else as they were stored."""
    ledger = _ledger_of(request)
    plan = _planned(request, ledger)
    number = _number_of(plan, period)
    _check_frame(plan, frame)
    labels = _rehearsed(plan, frame, library)
    entry = entry_of(plan)
    state = streams.known(ledger, entry)
    if state is None or number not in state.kept:
        _check_turn(plan, state, number, waits=True)
        ambient.warn_unlimited(ledger, plan.unit, depth=4)
        ambient.warn_weak(ledger, plan.unit, plan.cost)
        streams.begun(ledger, entry)
        with after_the_charge():
            exact = _looked(plan, frame, number)
            if not _draw(plan, ledger, entry, number, exact, labels, library):
                _wait(plan, ledger, entry, number)
        log.info("released period %s of %s for %s, protecting %s", number, plan.words, plan.cost, plan.unit)
    return frame_of(Stored.of(streams.contents(ledger, entry)[number]), labels, library)


def so_far(request: StreamRequest) -> tuple[StreamPlan, dict[int, Stored]]:
    """The periods that were released, by their numbers, from the ledger alone."""
    ledger = _ledger_of(request)
    plan = _planned(request, ledger)
    entry = entry_of(plan)
    if streams.known(ledger, entry) is None:
        return plan, {}
    contents = streams.contents(ledger, entry)
    return plan, {number: Stored.of(contents[number]) for number in sorted(contents)}


def frame_so_far(request: StreamRequest, like: str) -> Any:
    """The periods that were released, one below the other, with their labels; public."""
    library = build.checked_library(like)
    plan, stored = so_far(request)
    groups = Keys(plan.query.keys.axes[1:])
    periods = [plan.periods[number - 1] for number in stored]
    columns: dict[str, Any] = {plan.time: [label for label in periods for _ in range(plan.groups)]}
    columns |= {name: list(values) * len(stored) for name, values in groups.labels().items()}
    for name in COLUMNS:
        parts = [one.released[name] for one in stored.values()]
        columns[name] = np.concatenate(parts) if parts else np.zeros(0)
    return public(build.frame_of(columns, library))


def _ledger_of(request: StreamRequest) -> Ledger:
    ledger = ambient.ledger_for(request.ledger)
    if ledger is None:
        raise no_ledger()
    return ledger


def _planned(request: StreamRequest, ledger: Ledger | None) -> StreamPlan:
    unit = ledger.unit_for(request.unit) if ledger else checked_unit(request.unit) or ROWS
    return request.plan(unit, ledger.accounting if ledger else Basic(), ledger.limit_amount if ledger else None)


def _number_of(plan: StreamPlan, period: Any) -> int:
    """The number of a declared period, from 1."""
    every = getattr(plan.query.keys.axes[0], "every", None)
    token = same_key(plain_key(period, "period") if every is None else time_of("period", period, every, PERIOD_EXAMPLE))
    places = [place for place, label in enumerate(plan.periods, start=1) if same_key(label) == token]
    if not places:
        first, last = _named(plan, 1), _named(plan, len(plan.periods))
        way_out = "Name a period by its beginning. " if every is not None else ""
        raise InvalidArgument(
            f"period must be one of the {len(plan.periods)} declared ones, {first} to {last}, not {shown(period)}. "
            f"{way_out}A longer stream needs a name and a cost of its own."
        )
    return places[0]


def _check_frame(plan: StreamPlan, frame: Any) -> None:
    check_whole(frame, "streams", "Bring its rows to pandas, Polars or Arrow first; a LazyFrame will do.")
    for axis in check(frame, plan.query, plan.unit).keys.axes:
        if zone := getattr(axis, "zone", None):  # its steps would be others than the periods that the entry names
            raise WrongDtype(
                f"column {axis.columns[0]!r} must have no time zone in a stream, and it has that of {zone}. "
                "Convert it to local time, and drop the zone."
            )


def _check_turn(plan: StreamPlan, state: StreamState | None, number: int, *, waits: bool) -> None:
    """Refuse a period that cannot be drawn now: periods are drawn in order, each once."""
    if state is None:
        state_drawn, following = 0, 1
    else:
        state_drawn, following = state.drawn, state.drawn + 1
    name = _named(plan, number)
    if number > following:
        next_period = _named(plan, following)
        raise InvalidArgument(
            f"period must be released in order, and {next_period} comes before {name}. Release that first: its running "
            "total is a part of all later ones."
        )
    if state is not None and state.is_closed and number > state_drawn:
        raise LedgerError(
            f"the stream {shown(plan.name)} was begun before this ledger was recovered from an older copy, and nobody "
            "knows which of its periods were drawn since. Begin a stream under another name."
        )
    if number < following and not (waits and number == state_drawn):
        raise ReleaseFailed(_lost(plan, number))


def _named(plan: StreamPlan, number: int) -> str:
    """A period as text; of dates as they are typed."""
    label = plan.periods[number - 1]
    return shown(label) if isinstance(label, (str, int, float)) else str(label)


def _lost(plan: StreamPlan, number: int) -> str:
    following = (
        f"Its rows count in the next period: release {_named(plan, number + 1)}."
        if number < len(plan.periods)
        else "It was the last one."
    )
    return (
        f"period {_named(plan, number)} of the stream {shown(plan.name)} is lost, or still being drawn: its "
        "noise was to be drawn, but no numbers were stored. The process that drew it may have been stopped; noise is "
        f"never drawn twice. {following}"
    )


def _looked(plan: StreamPlan, frame: Any, number: int) -> Any:
    """The exact totals of all periods up to this one: the only look at rows."""
    return looked(
        lambda: stream_totals(frame, plan.query, plan.unit, number),
        "the charge stands, and the period can be asked for again",
    )


@unbroken
def _draw(
    plan: StreamPlan,
    ledger: Ledger,
    entry: Entry,
    number: int,
    exact: Any,
    labels: Mapping[str, Any],
    library: str,
) -> bool:
    """Write the intent, draw, store; False where another call draws it.

    A signal waits until it is done. Once the intent is written no lock is given up for it, and what the database breaks
    off is done again: else the period would be lost.
    """
    mine, state = streams.intended(ledger, entry, number)
    if not mine:
        return False
    to_the_end()
    contents = until_it_goes_through(streams.contents, ledger, entry)
    kept = (*sorted(state.kept), number)
    noisy = plan.mechanism.add_noise(measured(exact, kept, whole=plan.reach.whole))
    before = [Stored.of(contents[earlier]) for earlier in kept[:-1]]
    columns = read_off(plan, [*(earlier.noisy for earlier in before), noisy], kept)
    receipt = {"dataset": ledger.dataset, "entry": state.number, "head": state.head} if ledger.is_durable else None
    said = facts_said(plan, before)
    said = said if before else {**said, "release": nonce()}  # of the stream: all its periods have it
    record = record_of(plan, said, columns, labels, library, kept, receipt)
    until_it_goes_through(streams.keep, ledger, entry, number, Stored(record, noisy, columns).content())
    return True


def _wait(plan: StreamPlan, ledger: Ledger, entry: Entry, number: int) -> None:
    """Another call draws this period: what it stores is the answer of both."""
    end = time.monotonic() + PATIENCE
    while True:
        state = streams.known(ledger, entry)
        assert state is not None
        if number in state.kept:
            return
        waits = time.monotonic() < end
        _check_turn(plan, state, number, waits=waits)
        time.sleep(PAUSE)


def _rehearsed(plan: StreamPlan, frame: Any, library: str) -> dict[str, Any]:
    """The columns that name the groups, once the whole call was tried on no rows."""
    rule = "periods, keys and bounds must suit their columns, and the dataframe engine fails on them even without rows"
    with tried(WrongDtype, rule, "Write keys in the dtype of their column, or cast the column."):
        exact = stream_totals(emptied(frame, columns_of(plan.query, plan.unit)), plan.query, plan.unit, 1)
        columns = read_off(plan, [measured(exact, (1,), whole=plan.reach.whole)], (1,))
    rule = "keys and names must be such that a record of them can be written, and it cannot"
    with tried(InvalidArgument, rule, "Let keys be numbers and strings of ordinary length.", foreseen=OF_VALUES):
        labels = Keys(plan.query.keys.axes[1:]).labels()
        built = {name: build.column_of(name, values, library) for name, values in labels.items()}
        json.dumps(record_of(plan, facts_said(plan, ()), columns, built, library, (1,), None))
    return built
