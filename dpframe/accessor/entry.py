"""Which accessor a frame has: of a private frame the questions, of a released one its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from dpframe.accessor.private_frame import PrivateFrame, without_provenance
from dpframe.accessor.released_frame import ReleasedFrame
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build
from dpframe.frames.kinds import checked_frame

if TYPE_CHECKING:
    from dpframe.frames.kinds import PandasFrame, PolarsFrame, PolarsLazyFrame


@overload
def of(frame: PolarsFrame | PolarsLazyFrame) -> PrivateFrame[PolarsFrame]: ...


@overload
def of(frame: PandasFrame) -> PrivateFrame[PandasFrame]: ...


@overload
def of(frame: Any) -> PrivateFrame[Any]: ...


@trimmed
def of(frame: Any) -> PrivateFrame[Any] | ReleasedFrame:
    """The accessor of a frame: ``df.dp``, typed, and for frames that have no ``.dp``.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Dataset, relation or engine
        Of pandas or Polars; a pyarrow Dataset or a DuckDB relation, which are read in batches; a frame of another
        library that narwhals reads, which is brought to Polars as a whole; or an engine of your own (see
        ``docs/engines.md``). Results of all but pandas are of Polars.

    Returns
    -------
    PrivateFrame
        Of the frames that its answers are of. Of a result, `ReleasedFrame`; `released` is typed so.

    Raises
    ------
    InvalidType
        If it is no frame.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> dpf.of(pl.DataFrame({"age": [31]}))
    <.dp of a private frame: count, sum, mean, histogram, mode, contributions, group_by(...).agg, preview>
    """
    return accessor(checked_frame(frame))


@trimmed
def released(frame: Any) -> ReleasedFrame:
    """The record of a result, typed: its ``.dp``, for type checkers, which do not see registered accessors.

    Parameters
    ----------
    frame : DataFrame
        A result of dpframe that carries its provenance.

    Returns
    -------
    ReleasedFrame

    Raises
    ------
    NoProvenance
        If it carries none.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> ages = pl.DataFrame({"age": [31, 45]}).dp.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    >>> dpf.released(ages).provenance["cost"]["epsilon"]
    1.0
    """
    found = accessor(checked_frame(frame))
    if isinstance(found, ReleasedFrame):
        return found
    raise without_provenance()


def accessor(frame: Any) -> PrivateFrame[Any] | ReleasedFrame:
    """What ``.dp`` gives."""
    facts = build.record_of(frame)
    return PrivateFrame(frame) if facts is None else ReleasedFrame(frame, facts)
