"""Releases of one shape, joined into one frame that keeps a record for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, NoProvenance, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, foreign
from dpframe.frames.kinds import checked_frame, is_frame, library_of
from dpframe.release import provenance

Frame = TypeVar("Frame")


@trimmed
def concat(releases: Sequence[Frame]) -> Frame:
    """Join releases of one shape, row below row, and keep the record of each.

    Parameters
    ----------
    releases : list of DataFrame
        Results of dpframe, of one library: the same columns of the same dtypes, and the same statistics. Prices, noise,
        bounds, keys and bins may differ. A result of `concat` counts as its parts.

    Returns
    -------
    DataFrame
        Its ``.dp.provenance`` is ``{"schema": "dpframe.parts/1", "parts": [...], "altered": ...}`` with a record for
        each part, in their order. ``.dp.parts`` gives the parts back, ``.dp.write_parquet`` keeps all records, and
        ``.dp.plot`` and ``.dp.table`` are asked of a part.

    Raises
    ------
    MissingArgument
        If there is no release.
    NoProvenance
        If a frame carries no record.
    InvalidArgument
        If the releases are not of one shape, or one was changed after its release.

    Notes
    -----
    It costs nothing. No column says which part a row is of: add none, since no release would cover it. Keys that differ
    from part to part, or ``.dp.parts``, tell them apart.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> visits = pl.DataFrame({"week": [1, 1, 2]})
    >>> with dpf.Ledger(epsilon=1.0):
    ...     first, second = (visits.dp.group_by("week", keys=[week]).count(epsilon=0.5) for week in (1, 2))
    >>> both = dpf.concat([first, second])
    >>> both["week"].to_list(), len(both.dp.parts)
    ([1, 2], 2)
    """
    if is_frame(releases) or not isinstance(releases, (list, tuple)):
        raise InvalidType(f"releases must be a list of released frames, not {shown(releases, kind=True)}.")
    if not releases:
        raise MissingArgument("releases must hold at least one released frame. Write dpf.concat([first, second]).")
    frames: list[Any] = []
    records: list[dict[str, Any]] = []
    for frame in releases:
        for part, facts in parts_of(checked_frame(frame)):
            provenance.checked(part, facts)
            _check_alike(part, facts, frames, records)
            frames.append(part)
            records.append(facts)
    whole: Frame = build.stacked(frames)
    return build.attach(whole, {"schema": foreign.PARTS, "parts": records})  # type: ignore[no-any-return]


def parts_of(frame: Any) -> list[tuple[Any, dict[str, Any]]]:
    """The parts of a released frame, each with its record: itself, where it was not joined."""
    facts = build.record_of(frame)
    if facts is None:
        raise NoProvenance(
            "releases must carry their provenance, and this frame has none: it is no result of dpframe, or an "
            "operation dropped it. Join the released frames themselves."
        )
    if "parts" not in facts:
        return [(frame, facts)]
    sizes = [foreign.rows_of(record) for record in facts["parts"]]
    if sum(sizes) != len(frame):
        raise InvalidArgument(
            f"the frame must have the {sum(sizes)} rows of its parts, not {len(frame)}. "
            "Ask the joined frame, before it is reshaped."
        )
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    cut = [build.rows_between(frame, start, start + size) for start, size in zip(starts, sizes, strict=True)]
    return [(build.attach(part, record), record) for part, record in zip(cut, facts["parts"], strict=True)]


def _check_alike(frame: Any, facts: dict[str, Any], frames: list[Any], records: list[dict[str, Any]]) -> None:
    """Refuse a release that is not of the shape of the first one."""
    if not frames:
        return
    first, number = frames[0], len(frames) + 1
    for words, expected, actual in (
        ("be of one library", library_of(first), library_of(frame)),
        ("have the same columns", list(first.columns), list(frame.columns)),
        ("have the same dtypes", build.dtypes_of(first), build.dtypes_of(frame)),
        ("have the same statistics", _statistics(records[0]), _statistics(facts)),
    ):
        if expected != actual:
            raise InvalidArgument(
                f"releases must {words}: those of the first are {shown(expected)}, "
                f"and of number {number} {shown(actual)}. Join releases of one question."
            )


def _statistics(facts: dict[str, Any]) -> dict[str, Any]:
    if not facts["measures"]:
        return {"verb": facts["verb"]}
    return {name: (measure["verb"], measure["column"]) for name, measure in facts["measures"].items()}
