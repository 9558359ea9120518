"""The accessor of a frame: verbs for a private frame, the record of a released one, none for a public one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from dpframe.accessor.derived_frame import DerivedFrame
from dpframe.accessor.private_frame import PrivateFrame, without_provenance
from dpframe.accessor.released_frame import OF_RESULTS, VERBS, ReleasedFrame
from dpframe.errors import AlreadyReleased, InvalidArgument, NoProvenance, no_attribute
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, foreign
from dpframe.frames.build import is_public
from dpframe.frames.kinds import Library, checked_frame

if TYPE_CHECKING:
    from dpframe.frames.kinds import PandasFrame, PolarsFrame, PolarsLazyFrame

    F = TypeVar("F")

    class Accessor(PrivateFrame[F], ReleasedFrame):
        """The type of ``.dp`` under `dpframe.mypy`, for a frame that may be private or a result."""


class PublicFrame:
    """``.dp`` of a public frame: it refuses every verb and has no record."""

    if not TYPE_CHECKING:  # so that a type checker reports a mistyped name

        def __getattr__(self, name: str) -> Any:
            if name in VERBS:
                raise AlreadyReleased(
                    f"this frame is public (dpf.public): use it directly, without .dp.{name}. "
                    "If it holds private rows, make it anew."
                )
            if name in OF_RESULTS:
                raise NoProvenance(
                    f"this frame is public (dpf.public), and no release covers it, so .dp has no {name}. "
                    "Draw it or write it as any other frame."
                )
            raise no_attribute(f".dp of a public frame has no {name!r}")

    def __repr__(self) -> str:
        return "<.dp of a public frame, which needs no protection>"


@overload
def of(frame: Any, like: Literal["pandas"]) -> PrivateFrame[PandasFrame]: ...


@overload
def of(frame: Any, like: Literal["polars"]) -> PrivateFrame[PolarsFrame]: ...


@overload
def of(frame: PolarsFrame | PolarsLazyFrame, like: None = None) -> PrivateFrame[PolarsFrame]: ...


@overload
def of(frame: PandasFrame, like: None = None) -> PrivateFrame[PandasFrame]: ...


@overload
def of(frame: Any, like: None = None) -> PrivateFrame[Any]: ...


@trimmed
def of(frame: Any, like: Library | None = None) -> PrivateFrame[Any] | ReleasedFrame | PublicFrame:
    """Return ``df.dp``, typed, also for frames that have no ``.dp``.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table, Dataset, relation or engine
        A frame of pandas or Polars; a pyarrow Table; a pyarrow Dataset or a DuckDB relation, which are read in batches;
        a DataFrame of Apache Spark or Dask, which its workers read; a narwhals frame of one of these; or an engine of
        your own (see ``docs/reference/engines.md``).
    like : {"pandas", "polars"}, optional
        The library of the results. By default pandas for pandas, Spark and Dask, and Polars for all others.

    Returns
    -------
    PrivateFrame
        Typed by the frames of its results. For a result, `ReleasedFrame`; use `released` to have it typed so.

    Raises
    ------
    InvalidType
        If it is not a frame, or a frame of another library: its values may change when they are converted.
    InvalidArgument
        If `like` has another value, or is given for a result, which is a frame already; or if a frame of Spark is a
        stream.
    ImportError
        If the library of `like` is not installed. Nothing was charged.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> print(repr(dpf.of(pl.DataFrame({"age": [31]}))))  # doctest: +ELLIPSIS
    .dp of a private frame; ...
      count    count, n_units, ...
    """
    frame = checked_frame(frame)
    dp = accessor(frame)
    if like is None:
        return dp
    library = build.checked_library(like)
    if not isinstance(dp, PrivateFrame):
        raise InvalidArgument("like must be left out for a public frame, which dpframe does not convert. Drop it.")
    if library == "pandas":
        import_module("pandas")  # an import error must come before the charge
    return PrivateFrame(frame, like=library)


@trimmed
def released(frame: Any) -> ReleasedFrame:
    """Return the ``.dp`` of a result, typed as `ReleasedFrame`.

    It is for type checkers, which do not see registered accessors.

    Parameters
    ----------
    frame : DataFrame
        A result of dpframe with its provenance.

    Returns
    -------
    ReleasedFrame

    Raises
    ------
    NoProvenance
        If it has none.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> ages = pl.DataFrame({"age": [31, 45]}).dp.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    >>> dpf.released(ages).provenance["cost"]["epsilon"]
    1.0
    """
    dp = accessor(checked_frame(frame))
    if isinstance(dp, ReleasedFrame):
        return dp
    raise without_provenance()


def accessor(frame: Any) -> PrivateFrame[Any] | ReleasedFrame | PublicFrame:
    """Return the value of ``.dp`` for a frame."""
    if is_public(frame):
        return PublicFrame()
    facts = build.record_of(frame)
    if facts is None:
        return PrivateFrame(frame)
    first = facts.get("parts", [facts])[0]
    return (DerivedFrame if first["schema"] == foreign.DERIVED else ReleasedFrame)(frame, facts)
