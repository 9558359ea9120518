"""Streams in a ledger: charged once for all their periods, each of which is drawn at most once, in order.

A period takes two steps. First an entry says that its noise is about to be drawn (`intent`), and is on disk before a
random bit is. Then the noisy numbers are stored with an entry of their hash (`values`), before anybody sees them. What
happens in between, a period is stored or it is lost: an intent is written by one call alone, and values are taken only
for the last intent. After a loss the stream goes on with the next period, whose entry says so; anyone who was slow, and
comes with the values of a period that was passed by, is refused and shows nothing.

An older copy of a ledger does not know which periods were drawn since. So a recovery closes the streams that were begun
before it: their stored periods stay, and no other is drawn.
"""

from __future__ import annotations

from dataclasses import replace

from dpframe.errors import LedgerError, ReleaseFailed, shown
from dpframe.exact import checked_amount, plus
from dpframe.ledger.canonical import digest, now
from dpframe.ledger.entries import Entry, Mark, Step, StreamState, differing
from dpframe.ledger.ledger import Ledger
from dpframe.privacy import PrivacyLoss


def known(ledger: Ledger, entry: Entry) -> StreamState | None:
    """The stream of this entry's name, if it was begun; refused where it has other parameters. It is only read."""
    stream: StreamState | None = ledger._store.stream(entry)
    if stream is not None:
        _refuse_other(entry, stream.entry)
    return stream


def begun(ledger: Ledger, entry: Entry) -> StreamState:
    """The stream, charged now if it was not begun: all or nothing, and once, no matter who asks."""
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


def intended(ledger: Ledger, entry: Entry, period: int) -> tuple[bool, StreamState]:
    """Write that the noise of a period is about to be drawn; False where another call did, or the period is past."""
    mine = False

    def decide(stream: StreamState | None, last: Mark) -> Step | None:
        nonlocal mine
        mine = stream is not None and not stream.is_closed and stream.drawn == period - 1
        return (_free(entry, "intent", period), None) if mine else None

    stream = ledger._store.step(entry, decide)
    assert stream is not None
    return mine, stream


def keep(ledger: Ledger, entry: Entry, period: int, content: bytes) -> None:
    """Store what was drawn for the last intent; ReleaseFailed where the stream has passed it by."""

    def decide(stream: StreamState | None, last: Mark) -> Step | None:
        if stream is None or stream.is_closed or stream.drawn != period or not stream.is_open:
            raise ReleaseFailed(
                "drawing this period took so long that the stream went on without it. Its numbers were discarded and "
                "are never drawn again; its rows count in the next period."
            )
        return replace(_free(entry, "values", period), answer=digest(content)), content

    ledger._store.step(entry, decide)


def contents(ledger: Ledger, entry: Entry) -> dict[int, bytes]:
    """The contents that were stored of each period, held against the hashes of their entries."""
    return ledger._store.contents(entry)


def _free(entry: Entry, kind: str, period: int) -> Entry:
    """An entry of the stream that costs nothing."""
    nothing = tuple(coordinate * 0 for coordinate in entry.amount)
    step = replace(entry, time=now(), amount=nothing, cost=PrivacyLoss(0.0), asked=None, promises=(), period=period)
    return replace(step, kind=kind)  # type: ignore[arg-type]  # one of the kinds


def _refuse_other(entry: Entry, earlier: Entry) -> None:
    """One name, one stream."""
    if differ := differing(entry, earlier):
        raise LedgerError(
            f"the stream {shown(entry.stream)} of this ledger was begun with other parameters: {differ}. Nothing was "
            "charged. Open it exactly as it was begun, or give the new stream another name."
        )
