"""The path of a stream: check the schema, charge once, measure a period, write the intent, draw the noise, store it.

A stream is charged once for all its periods. Each period is drawn at most once, in order, and in two steps. First, an
entry states that its noise is about to be drawn (`intent`). It is on disk before any random bit is drawn. Second, the
noisy numbers are stored with an entry of their hash (`values`), before anyone sees them. Anyone who asks again gets the
stored numbers. Whatever happens in between, a period is either stored or lost: only one call writes an intent, and
values are accepted only for the last intent. After a loss, the stream continues with the next period, whose record
names the lost one. A slow call that brings the values of a passed period is refused, and shows nothing. All work
that may fail on a frame precedes the intent: the schema is checked, the call is tried on no rows, the rows are read.

If the read of the rows fails, the call writes the intent all the same, and the period is lost. Otherwise, after one
charge, a caller could observe any number of times whether a read fails. Only the call that writes the intent reports
that its read failed. Any other call returns the stored numbers, or the period is lost for it, whatever it read.

An older copy of a ledger does not know which periods were drawn after it. So a recovery closes the streams that were
begun before it: their stored periods stay, and no other period is drawn.

`released` is the path. The functions that it calls follow in this order: the plan and its refusals, the draw, the steps
in the ledger, the hashes that identify a stream, and the stored content of a period.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe._version import VERSION
from dpframe.engines.first_rows import stream_totals
from dpframe.engines.schema import check, columns_of, emptied
from dpframe.engines.totals import check_whole
from dpframe.errors import InvalidArgument, LedgerError, ReleaseFailed, WrongDtype, after_the_charge, shown
from dpframe.errors.tracebacks import OF_VALUES, failed_read, tried
from dpframe.exact import checked_amount, plus
from dpframe.frames import build, prints
from dpframe.frames.build import public
from dpframe.ledger.canonical import LATER, digest, now, promised
from dpframe.ledger.entries import Entry, Mark, Step, StreamState, continued, differing
from dpframe.ledger.ledger import Ledger, PlanTerms, ledger_for, warn_of_cost
from dpframe.ledger.statement import no_ledger
from dpframe.ledger.unbroken import to_the_end, unbroken, until_it_goes_through
from dpframe.mechanisms.contract import Mechanism
from dpframe.noise import nonce
from dpframe.planning.plan import Planned
from dpframe.privacy import Price, PrivacyLoss, PrivacyUnit
from dpframe.queries.date_grid import time_of
from dpframe.queries.keys import Keys, plain_key
from dpframe.queries.prefix_sums import BITS, weights_of_period, weights_of_total
from dpframe.queries.sameness import same_key
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.statistics.statistic import told
from dpframe.queries.vectors import row_functions
from dpframe.release.facts import Written, as_keys, hash_of
from dpframe.release.path import try_function
from dpframe.release.provenance import SCHEMA, noise_facts
from dpframe.release.results import is_own, looked
from dpframe.streams.stream_plan import StreamPlan, StreamRequest, exact_sums, half_width

FORMAT = "dpframe.stream/1"
COLUMNS = ("total", "total_error", "period", "period_error")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STATISTICS = {"count": "Count", "sum": "Sum"}
NOISES = {"discrete Laplace": "Laplace", "rounded Gaussian": "Gaussian"}
PATIENCE = 5.0  # seconds to wait for another call that draws the same period
PAUSE = 0.02

log = logging.getLogger("dpframe")


def released(request: StreamRequest, frame: Any, period: Any, library: str) -> Any:
    """Return the numbers of a period: drawn now if it is the next one, otherwise as they were stored."""
    ledger = _ledger_of(request)
    plan = _planned(request, ledger)
    number = _number_of(plan, period)
    _check_frame(plan, frame)
    labels = _tried_on_no_rows(plan, frame, library)
    entry = entry_of(plan)
    state = known(ledger, entry)
    if state is None or number not in state.kept:
        _check_turn(plan, state, number, waits=True)
        warn_of_cost(ledger, plan.unit, plan.cost)
        state = begun(ledger, entry)
        with after_the_charge():
            exact = _looked(plan, frame, number)
            drawn = _draw(plan, ledger, entry, state, number, exact, labels, library)
            state = drawn or _wait(plan, ledger, entry, state, number)
        log.info(
            "released period %s of %s, for %s once for all periods, protecting %s",
            *(_named(plan, number), plan.words, plan.cost, plan.unit.words(in_all=True)),
        )
    return frame_of(Stored.of(contents(ledger, entry, state)[number]), labels, library)


def previewed(request: StreamRequest, frame: Any = None) -> StreamPlan:
    """Plan a stream, and check the schema of a frame, if there is one. Read no row, and spend nothing."""
    plan = _planned(request, ledger_for(request.ledger))
    if frame is not None:
        _check_frame(plan, frame)
    return plan


def so_far(request: StreamRequest) -> tuple[StreamPlan, dict[int, Stored]]:
    """Return the plan, and the released periods by their numbers, from the ledger alone."""
    ledger = _ledger_of(request)
    plan = _planned(request, ledger)
    entry = entry_of(plan)
    if (state := known(ledger, entry)) is None:
        return plan, {}
    stored = contents(ledger, entry, state)
    return plan, {number: Stored.of(stored[number]) for number in sorted(state.kept)}


def frame_so_far(request: StreamRequest, like: str) -> Any:
    """Return the released periods below one another, with their labels, as a public frame."""
    library = build.checked_library(like)
    plan, stored = so_far(request)
    groups = Keys(plan.query.keys.axes[1:])
    numbers = list(stored) or [1]  # a stream without a release needs one for the dtypes, and keeps no row
    label = f"{plan.time}_label" if plan.time in COLUMNS else plan.time
    columns: dict[str, Any] = {label: [plan.periods[one - 1] for one in numbers for _ in range(plan.groups)]}
    columns |= {name: list(values) * len(numbers) for name, values in groups.labels().items()}
    for name in COLUMNS:
        columns[name] = np.concatenate([one.released[name] for one in stored.values()] or [np.zeros(plan.groups)])
    frame = build.frame_of(columns, library)
    return public(frame if stored else frame.head(0))


def _ledger_of(request: StreamRequest) -> Ledger:
    ledger = ledger_for(request.ledger)
    if ledger is None:
        raise no_ledger()
    return ledger


def _planned(request: StreamRequest, ledger: Ledger | None) -> StreamPlan:
    terms = ledger.terms if ledger else PlanTerms()
    return request.plan(terms.unit_for(request.unit), terms.accounting, terms.limit)


def _number_of(plan: StreamPlan, period: Any) -> int:
    """Return the number of a declared period, from 1."""
    every = getattr(plan.query.keys.axes[0], "every", None)
    example = f'Write for instance "{_named(plan, 1)}".'
    token = same_key(plain_key(period, "period") if every is None else time_of("period", period, every, example))
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
        if zone := getattr(axis, "zone", None):  # its steps would differ from the periods in the entry
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
    """Return the label of a period as text; a date as a user types it."""
    label = plan.periods[number - 1]
    return shown(label) if isinstance(label, (str, int, float)) else str(label)


def _lost(plan: StreamPlan, number: int) -> str:
    return (
        f"period {_named(plan, number)} of the stream {shown(plan.name)} is lost, or still being drawn: its "
        "noise was to be drawn, but no numbers were stored. The process that drew it may have been stopped, or may "
        f"have failed to read the rows; noise is never drawn twice. {_following(plan, number)}."
    )


def _following(plan: StreamPlan, number: int) -> str:
    """Return what follows a lost period, without the final point."""
    if number < len(plan.periods):
        return f"Its rows count in the next period: release {_named(plan, number + 1)}"
    return "It was the last one"


def _looked(plan: StreamPlan, frame: Any, number: int) -> Any:
    """Return the exact totals of all periods up to this one, or None if that fails: the only read of the rows."""
    try:
        return looked(lambda: stream_totals(frame, plan.query, plan.unit, number))
    except ReleaseFailed:
        return None


@unbroken
def _draw(
    plan: StreamPlan,
    ledger: Ledger,
    entry: Entry,
    state: StreamState,
    number: int,
    exact: Any,
    labels: Mapping[str, Any],
    library: str,
) -> StreamState | None:
    """Write the intent, draw the noise and store the numbers; return None if another call draws the period.

    A signal waits until this is done. Once the intent is written, the call waits for every lock, and repeats the steps
    that the database breaks off. Otherwise the period would be lost. If the rows could not be read, it is lost.
    """
    mine, state = intended(ledger, entry, state, number)
    if not mine:
        return None
    if exact is None:  # only after the intent: the failure reveals something, so no one may try this period again
        lost = f"period {_named(plan, number)} of the stream {shown(plan.name)} is lost"
        raise failed_read(f"the charge stands, and {lost}. {_following(plan, number)}")
    to_the_end()
    stored = until_it_goes_through(contents, ledger, entry, state)
    kept = (*sorted(state.kept), number)
    noisy = plan.mechanism.add_noise(exact_sums(exact, kept, whole=plan.reach.whole))
    before = [Stored.of(stored[earlier]) for earlier in kept[:-1]]
    columns = read_off(plan, [*(earlier.noisy for earlier in before), noisy], kept)
    receipt = {"dataset": ledger.dataset, "entry": state.number, "head": state.head} if ledger.is_durable else None
    said = facts_said(plan, before)
    said = said if before else {**said, "release": nonce()}  # identifies the stream: all its periods have it
    record = record_of(plan, said, columns, labels, library, kept, receipt)
    return until_it_goes_through(keep, ledger, entry, state, number, Stored(record, noisy, columns).content())


def _wait(plan: StreamPlan, ledger: Ledger, entry: Entry, state: StreamState, number: int) -> StreamState:
    """Wait for another call that draws this period, and return the state of the stream with its numbers."""
    end = time.monotonic() + PATIENCE
    while True:
        state = continued(state, known(ledger, entry))
        if number in state.kept:
            return state
        waits = time.monotonic() < end
        _check_turn(plan, state, number, waits=waits)
        time.sleep(PAUSE)


def _tried_on_no_rows(plan: StreamPlan, frame: Any, library: str) -> dict[str, Any]:
    """Return the columns that name the groups, after a trial of the whole call on no rows."""
    for row in row_functions(plan.total):
        try_function(row)
    rule = "periods, keys and bounds must suit their columns, and the dataframe engine fails on them even without rows"
    with tried(WrongDtype, rule, "Write keys in the dtype of their column, or cast the column."):
        exact = stream_totals(emptied(frame, columns_of(plan.query, plan.unit)), plan.query, plan.unit, 1)
        columns = read_off(plan, [exact_sums(exact, (1,), whole=plan.reach.whole)], (1,))
    rule = "keys and names must be such that a record of them can be written, and it cannot"
    foreseen = OF_VALUES if is_own(type(plan.query.statistics[0][1])) else (Exception,)
    with tried(InvalidArgument, rule, "Let keys be numbers and strings of ordinary length.", foreseen=foreseen):
        labels = Keys(plan.query.keys.axes[1:]).labels()
        built = {name: build.column_of(name, values, library) for name, values in labels.items()}
        json.dumps(record_of(plan, facts_said(plan, ()), columns, built, library, (1,), None))
    return built


def known(ledger: Ledger, entry: Entry) -> StreamState | None:
    """Return the stream of this entry's name, or None if it was not begun; refuse other parameters. Write nothing."""
    stream: StreamState | None = ledger._store.stream(entry)
    if stream is not None:
        _refuse_other(entry, stream.entry)
    return stream


def begun(ledger: Ledger, entry: Entry) -> StreamState:
    """Return the stream, charged now if it was not begun: all or nothing, and once for any number of calls."""
    entry = replace(entry, amount=checked_amount(entry.amount, ledger._parts))
    allowed = ledger._allowing(entry)

    def decide(stream: StreamState | None, last: Mark) -> Step | None:
        if stream is not None:
            _refuse_other(entry, stream.entry)
            return None
        allowed(last, plus(last.total, entry.amount))
        return entry, None

    stream: StreamState | None = ledger._store.step(entry, decide)
    assert stream is not None
    return stream


def intended(ledger: Ledger, entry: Entry, begun: StreamState, period: int) -> tuple[bool, StreamState]:
    """Write that a period is about to be drawn; return whether this call wrote it, and the state of the stream."""
    mine = False

    def decide(stream: StreamState | None, last: Mark) -> Step | None:
        nonlocal mine
        stream = continued(begun, stream)
        mine = not stream.is_closed and stream.drawn == period - 1
        return (_free(entry, "intent", period), None) if mine else None

    stream = ledger._store.step(entry, decide)
    assert stream is not None
    return mine, stream


def keep(ledger: Ledger, entry: Entry, begun: StreamState, period: int, content: bytes) -> StreamState:
    """Store the numbers of the last intent; raise ReleaseFailed if the stream has passed that period."""

    def decide(stream: StreamState | None, last: Mark) -> Step | None:
        stream = continued(begun, stream)
        if stream.is_closed or stream.drawn != period or not stream.is_open:
            raise ReleaseFailed(
                "drawing this period took so long that the stream went on without it. Its numbers were discarded and "
                "are never drawn again; its rows count in the next period."
            )
        return replace(_free(entry, "values", period), answer=digest(content)), content

    stream: StreamState | None = ledger._store.step(entry, decide)
    assert stream is not None
    return stream


def contents(ledger: Ledger, entry: Entry, state: StreamState) -> dict[int, bytes]:
    """Return the stored content of each period, checked against the hashes in its entries."""
    return ledger._store.contents(entry, state)


def _free(entry: Entry, kind: str, period: int) -> Entry:
    """Return an entry of the stream that costs nothing."""
    nothing = tuple(coordinate * 0 for coordinate in entry.amount)
    step = replace(entry, time=now(), amount=nothing, cost=PrivacyLoss(0.0), asked=None, promises=(), period=period)
    return replace(step, kind=kind)  # type: ignore[arg-type]  # one of the kinds


def _refuse_other(entry: Entry, earlier: Entry) -> None:
    """Refuse a stream whose name belongs to one with other parameters."""
    if differ := differing(entry, earlier):
        raise LedgerError(
            f"the stream {shown(entry.stream)} of this ledger was begun with other parameters: {differ}. Nothing was "
            "charged. Open it exactly as it was begun, or give the new stream another name."
        )


def identity_of(plan: StreamPlan) -> dict[str, str]:
    """Return a hash of each parameter of a stream, by the words that a refusal uses for it."""
    time, *groups = plan.query.keys.axes
    facts = {
        "statistic": _statistic(plan.query.statistics[0][1]),
        "time or periods": _axis(time),
        "by or keys": _written("Keys", {"axes": [_axis(axis) for axis in groups]}, {"axes": []}),
        "max_rows": plan.reach.rows,
        "unit": _unit(plan.unit),  # a ledger without terms does not fix it
        "price": _price(plan.price),
        "noise": _noise(plan.mechanism),
        "random bits": noise.is_secure(),  # totals depend on all periods: seeded and secure bits must not mix
    }
    return {name: hash_of(name, fact) for name, fact in facts.items()}


def _written(kind: str, facts: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    return Written(kind, {name: fact for name, fact in facts.items() if name not in defaults or fact != defaults[name]})


def _statistic(statistic: Statistic) -> Any:
    """Return the record of a built-in statistic; return a custom one as it is, to be hashed by its class and fields."""
    facts = statistic.facts()
    if facts is None or not is_own(type(statistic)) or facts["verb"] not in STATISTICS or "weight" in facts:
        return statistic
    said = {name: facts.get(name) for name in ("column", "bounds")}
    return _written(STATISTICS[facts["verb"]], said, {"column": None, "bounds": None})


def _axis(axis: Any) -> Any:
    if axis.coding == "keys":
        facts = {"columns": list(axis.columns), "rows": as_keys(axis.rows)}
        return _written("KeyAxis", facts, {})
    if axis.coding == "rest":
        return _written("RestAxis", {"declared": _axis(axis.declared)}, {})
    facts = {"column": axis.column, "edges": list(axis.edges), "kind": axis.kind, "closed": axis.closed}
    return _written("DateAxis", {**facts, "every": axis.every}, {"every": "1d"})


def _unit(unit: PrivacyUnit) -> Any:
    facts = {"column": unit.facts()["column"], "neighbors": unit.neighbors, "nulls": unit.nulls}
    return _written("PrivacyUnit", facts, {"column": None, "neighbors": "add-remove", "nulls": "drop"})


def _price(price: Price) -> Any:
    facts = {"epsilon": price.epsilon, "delta": price.delta}
    return _written("Price", facts, {"epsilon": None, "delta": None})


def _noise(mechanism: Mechanism) -> Any:
    facts = {name: getattr(mechanism, name) for name in ("step_sensitivity", "step_scale", "grid")}
    return _written(NOISES[mechanism.name], facts, {"grid": 1.0})


@dataclass(frozen=True)
class Stored:
    """The content that a ledger stores for a period: record, noisy number of each group, and released values."""

    record: dict[str, Any]
    noisy: Integers
    released: dict[str, Floats]

    def content(self) -> bytes:
        """Return the content as bytes."""
        header = json.dumps({"format": FORMAT, "rows": self.noisy.size, "provenance": self.record}).encode()
        columns = [self.released[name].astype("<f8").tobytes() for name in COLUMNS]
        return b"".join([header, b"\n", self.noisy.astype("<i8").tobytes(), *columns])

    @classmethod
    def of(cls, content: bytes) -> Stored:
        """Read what `content` wrote."""
        text, numbers = content.split(b"\n", 1)
        header = json.loads(text)
        size = 8 * header["rows"]
        parts = [numbers[start : start + size] for start in range(0, size * (len(COLUMNS) + 1), size)]
        released = {
            name: np.frombuffer(part, "<f8").astype(np.float64) for name, part in zip(COLUMNS, parts[1:], strict=True)
        }
        return cls(header["provenance"], np.frombuffer(parts[0], "<i8").astype(np.int64), released)


def entry_of(plan: StreamPlan) -> Entry:
    """Return the charge of a stream, with a hash for each of its parameters."""
    return Entry(
        now(),
        plan.name,
        plan.words,
        plan.unit,
        plan.amount,
        plan.cost,
        asked=identity_of(plan),
        promises=(promised(known_facts(plan)),),
        stream=plan.name,
    )


def known_facts(plan: StreamPlan) -> dict[str, Any]:
    """Return the facts of a record that do not depend on a period."""
    statistic = told(plan.query.statistics[0][1])
    assert statistic is not None
    measure = {**statistic, "statistics": [0], "one_total": False, "denoise": None}
    part = Planned(plan.total, plan.reach, plan.mechanism, 1.0)  # type: ignore[arg-type]  # its reach is not read
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "dpframe": VERSION,
        "label": plan.name,
        "verb": "stream",
        "unit": plan.unit.facts(),
        "cost": {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta, "accounting": plan.accounting.name},
        "cells": [axis.facts() for axis in plan.query.keys.axes[1:]],
        "measures": {"total": measure, "period": dict(measure)},
        "statistics": [noise_facts(part)],
        "notes": list(plan.notes),
        "confidence": CONFIDENCE,
        "stream": {"time": plan.time, "periods": len(plan.periods), "bits": BITS},
    }
    if (stamp := noise.stamp()) is not None:
        facts["warning"] = stamp
    return facts


def facts_said(plan: StreamPlan, earlier: Sequence[Stored]) -> dict[str, Any]:
    """Return the known facts as the first stored period has them, because the entry promises them in this form."""
    if not earlier:
        return known_facts(plan)
    kept = {"dpframe", "release"}
    said = {name: fact for name, fact in earlier[0].record.items() if name not in LATER or name in kept}
    return {**said, "dpframe": VERSION}


def read_off(plan: StreamPlan, noisy: Sequence[Integers], kept: Sequence[int]) -> dict[str, Floats]:
    """Return the columns of the last period from the noisy numbers of it and of those before: linear, and so unbiased.

    `kept` has the numbers of these periods, in order: the stored ones, and the one that is drawn.
    """
    values = np.array(noisy, dtype=np.float64) * plan.mechanism.grid
    columns = {}
    for name, weights in (("total", weights_of_total(kept)), ("period", weights_of_period(kept))):
        columns[name] = weights @ values
        columns[f"{name}_error"] = np.full(values.shape[1], half_width(plan.mechanism, weights, CONFIDENCE))
    return columns


def frame_of(stored: Stored, labels: Mapping[str, Any], library: str) -> Any:
    """Return the released frame of a period, with its record."""
    return build.attach(build.frame_of({**labels, **stored.released}, library), stored.record)


def record_of(
    plan: StreamPlan,
    said: Mapping[str, Any],
    columns: Mapping[str, Floats],
    labels: Mapping[str, Any],
    library: str,
    kept: Sequence[int],
    receipt: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the provenance of the last period that is kept."""
    frame = build.frame_of({**labels, **columns}, library)
    covered = prints.print_of(frame, list(labels), list(COLUMNS))
    rows = None
    if covered is not None:
        in_order = bool(np.all(np.diff(covered.places) > 0))
        order = None if in_order else " ".join(map(str, covered.places.tolist()))
        rows = {"labels": list(labels), "sha256": covered.sha256, "order": order}
    number, since = kept[-1], (kept[-2] + 1 if len(kept) > 1 else 1)
    later: dict[str, Any] = {"columns": list(COLUMNS), "sha256": build.fingerprint(frame, COLUMNS), "rows": rows}
    later["period"] = {"name": str(plan.periods[number - 1]), "number": number, "since": since}
    if lost := sorted({*range(1, number)} - {*kept}):  # they determine the weights of a total
        later["period"]["lost"] = lost
    facts = {**said, **later}
    return facts if receipt is None else {**facts, "ledger": dict(receipt)}
