"""The state of a stream in a ledger, as its entries tell it, and the steps that it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dpframe.errors import LedgerError, shown
from dpframe.ledger.entries import Entry, Mark
from dpframe.ledger.terms import changed


@dataclass(frozen=True)
class StreamState:
    """A stream as far as its entries tell."""

    entry: Entry  # the charge
    number: int  # of that entry
    head: str
    drawn: int = 0  # the last period for which noise was to be drawn
    kept: Mapping[int, int] = field(default_factory=dict)  # periods that are stored, with the numbers of their entries
    is_closed: bool = False

    @property
    def is_open(self) -> bool:
        """Tell whether the last period is still being drawn, or was lost."""
        return self.drawn > 0 and self.drawn not in self.kept


Step = tuple[Entry, bytes | None]  # an entry to append, and what is stored with it
Decide = Callable[[StreamState | None, Mark], Step | None]


def stream_of(
    entries: Iterable[tuple[int, str, Entry]], *, last_recovery: int = 0, where: str | None = None
) -> StreamState | None:
    """The stream that entries of one name make, None of none; LedgerError where they do not follow its steps."""
    stream = None
    for number, head, entry in entries:
        if stream is None:
            if entry.kind != "charge":
                raise _changed(entry, where)
            stream = StreamState(entry, number, head, is_closed=last_recovery > number)
        elif entry.kind == "intent" and entry.period == stream.drawn + 1:
            stream = replace(stream, drawn=stream.drawn + 1)
        elif entry.kind == "values" and entry.period == stream.drawn and stream.is_open and entry.answer is not None:
            stream = replace(stream, kept={**stream.kept, stream.drawn: number})
        else:
            raise _changed(entry, where)
    return stream


def _changed(entry: Entry, where: str | None) -> LedgerError:
    return changed(str(where), f"the entries of the stream {shown(entry.stream)} do not follow its steps")
