"""Which accessor a frame has: of a private frame the questions, of a released one its record."""

from __future__ import annotations

from typing import Any

from dpframe.accessor.private_frame import Asker
from dpframe.accessor.released_frame import Released
from dpframe.engines.source import is_frame, source_of
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build


@trimmed
def of(frame: Any) -> Asker | Released:
    """The accessor of a frame: ``df.dp``, typed, and for frames that have no ``.dp``.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
        Of pandas or Polars, or of another library that narwhals reads (Arrow, DuckDB, ...): its rows are then
        collected into Polars, and so is the result.

    Returns
    -------
    Asker or Released

    Raises
    ------
    InvalidType
        If it is no frame.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> dpf.of(pl.DataFrame({"age": [31]}))
    <.dp of a private frame: count, sum, mean, histogram, select, contributions, group_by(...).agg, preview>
    """
    if not is_frame(frame):
        source_of(frame)  # raises, in words
    return accessor(frame)


def accessor(frame: Any) -> Asker | Released:
    """What ``.dp`` gives."""
    facts = build.record_of(frame)
    return Asker(frame) if facts is None else Released(frame, facts)
