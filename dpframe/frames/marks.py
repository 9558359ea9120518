"""Public frames, marked as such, so that ``.dp`` refuses to charge for them."""

from __future__ import annotations

from typing import Any, TypeVar

import polars as pl

from dpframe.errors import InvalidType, named
from dpframe.frames import build
from dpframe.frames.kinds import is_pandas

Frame = TypeVar("Frame")

MARK = "dpframe_public"  # the key in pandas' attrs
ATTRIBUTE = "_dpframe_public"  # on a Polars frame


def public(frame: Frame) -> Frame:
    """Mark a frame as public: its ``.dp`` then refuses to charge for what needs no noise.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
        Of pandas or Polars: what everybody may know, such as a map, a price list, or a result with columns of your own.

    Returns
    -------
    DataFrame or LazyFrame
        A new frame of the same rows, with the mark. The record of a release is left out, since it does not speak of
        what was added or changed; the frame itself keeps it. pandas keeps the mark in ``attrs``, also through most
        operations; on Polars an operation makes a new frame without it.

    Raises
    ------
    InvalidType
        If it is no frame of pandas or Polars.

    Notes
    -----
    The mark is your word, which dpframe cannot check. It changes no number and protects nothing.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> beds = dpf.public(pl.DataFrame({"ward": ["A", "B"], "beds": [12, 30]}))
    >>> try:
    ...     beds.dp.count(epsilon=1.0)
    ... except dpf.AlreadyReleased as error:
    ...     print(error)
    this frame is public (dpf.public): use it directly, without .dp.count. If it holds private rows, make it anew.
    """
    if is_pandas(frame):
        plain = frame.copy(deep=False)  # type: ignore[attr-defined]
        plain.attrs = {name: value for name, value in plain.attrs.items() if name != build.RECORD} | {MARK: True}
        return plain  # type: ignore[no-any-return]
    if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        raise InvalidType(
            f"frame must be a pandas DataFrame or a Polars DataFrame or LazyFrame to be marked, not {named(frame)}. "
            "Convert it first."
        )
    copy = frame.clone()
    setattr(copy, ATTRIBUTE, True)
    return copy  # type: ignore[return-value]  # a frame of its own class


def is_public(frame: Any) -> bool:
    """True of a frame that `public` marked."""
    return bool(frame.attrs.get(MARK, False)) if is_pandas(frame) else getattr(frame, ATTRIBUTE, False) is True
