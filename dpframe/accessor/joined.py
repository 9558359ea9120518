"""Releases of one shape, joined into one frame that keeps the record of each release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, NoProvenance, how_many, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, foreign
from dpframe.frames.kinds import checked_frame, is_frame, is_pandas, library_of
from dpframe.queries.sameness import HASH
from dpframe.release import provenance

Frame = TypeVar("Frame")


@trimmed
def concat(releases: Sequence[Frame], names: Sequence[str] | None = None, column: str = "part") -> Frame:
    """Join releases of one shape, row below row, and keep the record of each.

    Parameters
    ----------
    releases : list of DataFrame
        Results of dpframe from one library, all released or all computed from releases. They have the same columns and
        dtypes, and the same statistics, with the same ``q``, ``value``, ``where``, ``weight`` and so on. Costs, noise,
        bounds, keys and bins may differ. A result of `concat` counts as its parts.
    names : list of str, optional
        A name for each release, such as ``["Jan", "Feb"]``. The names become the first column, of strings.
    column : str
        The name of that column.

    Returns
    -------
    DataFrame
        Its ``.dp.provenance`` is ``{"schema": "dpframe.parts/1", "parts": [...], "altered": ...}`` with a record for
        each part, in their order. ``.dp.parts`` returns the parts, and ``.dp.write_parquet`` keeps all records.
        ``.dp.plot`` and ``.dp.table`` need a part, except for "excel".

    Raises
    ------
    MissingArgument
        If there is no release, or `column` is given without `names`.
    NoProvenance
        If a frame has no record.
    InvalidArgument
        If the releases do not have one shape, are reports of the local model, or one was changed by other means than
        its ``.dp``. Also if `names` is not one different name for each release, or `column` exists already.

    Notes
    -----
    It costs nothing. Add no column of your own, since no release would cover it. `names`, keys that differ between
    parts, or ``.dp.parts`` distinguish them.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> visits = pl.DataFrame({"week": [1, 1, 2]})
    >>> with dpf.Ledger(epsilon=1.0):
    ...     first, second = (visits.dp.group_by("week", keys=[week]).count(epsilon=0.5) for week in (1, 2))
    >>> both = dpf.concat([first, second])
    >>> both["week"].to_list(), len(both.dp.parts)
    ([1, 2], 2)
    >>> dpf.concat([first, second], names=["one", "two"], column="of").columns
    ['of', 'week', 'count', 'count_noisy', 'count_error']
    """
    if is_frame(releases) or not isinstance(releases, (list, tuple)):
        raise InvalidType(f"releases must be a list of released frames, not {shown(releases, kind=True)}.")
    if not releases:
        raise MissingArgument("releases must hold at least one released frame. Write dpf.concat([first, second]).")
    if names is None and column != "part":
        raise MissingArgument("names must be given with column: the column holds a name of each release.")
    frames: list[Any] = []
    records: list[dict[str, Any]] = []
    for frame in releases:
        for part, facts in parts_of(checked_frame(frame)):
            if foreign.is_reports(facts):  # their record does not state their number
                raise InvalidArgument(
                    "releases must hold released numbers, and reports are estimated as a whole. Estimate those of each "
                    "release: dpf.concat([dpf.local.estimate(first), dpf.local.estimate(second)])."
                )
            provenance.checked(part, facts)
            _check_alike(part, facts, frames, records)
            frames.append(part)
            records.append(facts)
    whole: Any = build.stacked(frames)
    record: dict[str, Any] = {"schema": foreign.PARTS, "parts": records}
    if names is not None:
        record |= {"names": _checked_names(names, column, releases, frames), "column": column}
        listed = [name for name, part in zip(names, frames, strict=True) for _ in range(len(part))]
        whole = build.with_first(whole, column, listed)
    return build.attach(whole, record)  # type: ignore[no-any-return]


def _checked_names(names: Any, column: Any, releases: Sequence[Any], frames: Sequence[Any]) -> list[str]:
    """Return the names, if each release has a different one and the column does not exist yet."""
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InvalidType(f"names must be a list of text, one for each release, not {shown(names)}.")
    if len(names) != len(releases) or len(set(names)) != len(names) or len(frames) != len(releases):
        count = how_many(len(releases), "release")
        raise InvalidArgument(
            f"names must be different, one for each release ({count}, none joined before), not {shown(names)}. "
            "Name each release."
        )
    if not isinstance(column, str) or not column or column in frames[0].columns:
        raise InvalidArgument(f"column must be a name that no column of the releases has, not {shown(column)}.")
    return list(names)


def parts_of(frame: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Return the parts of a released frame, each with its record, or the frame itself if it was not joined."""
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
            f"the frame must have the {how_many(sum(sizes), 'row')} of its parts, not {len(frame):,}. "
            "Ask the joined frame, before it is reshaped."
        )
    if "column" in facts:
        column, names = facts["column"], facts["names"]
        expected = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
        if column not in frame.columns or frame[column].to_list() != expected:
            raise InvalidArgument(
                f"the frame must have the column {shown(column)} with the names of its parts, and it was changed. "
                "Ask the joined frame, before it is reshaped."
            )
        frame = frame.drop(columns=column) if is_pandas(frame) else frame.drop(column)
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    cut = [build.rows_between(frame, start, start + size) for start, size in zip(starts, sizes, strict=True)]
    return [(build.attach(part, record), record) for part, record in zip(cut, facts["parts"], strict=True)]


def labels_of(facts: Mapping[str, Any], taken: Collection[str]) -> tuple[str | None, list[Any]]:
    """Return the column that distinguishes joined parts and its value for each: a name, or a number from 0.

    A release that was not joined has no such column. If the name of the column is `taken`, it is ``part`` instead.
    """
    if "parts" not in facts:
        return None, [0]
    column = facts.get("column", "part")
    if column in taken and "part" in taken:
        raise InvalidArgument(
            "the joined results must not have a column 'part' of keys, by which this table names them. Before you join "
            "them, name it otherwise: result.dp.relabel(columns={...})."
        )
    return "part" if column in taken else column, facts.get("names", list(range(len(facts["parts"]))))


def _check_alike(frame: Any, facts: dict[str, Any], frames: list[Any], records: list[dict[str, Any]]) -> None:
    """Refuse a release that does not have the shape of the first one."""
    if not frames:
        return
    first, number = frames[0], len(frames) + 1
    for words, expected, actual in (
        ("be all released or all computed", _kind(records[0]), _kind(facts)),
        ("be of one library", library_of(first), library_of(frame)),
        ("have the same columns", list(first.columns), list(frame.columns)),
        ("have the same dtypes", build.dtypes_of(first), build.dtypes_of(frame)),
        ("have the same statistics", _statistics(records[0], facts), _statistics(facts, records[0])),
    ):
        if expected != actual:
            raise InvalidArgument(
                f"releases must {words}: those of the first are {shown(expected)}, "
                f"and of number {number} {shown(actual)}. Join releases of one question."
            )


def _kind(record: dict[str, Any]) -> str:
    return "computed" if record["schema"] == foreign.DERIVED else "released"


MEANING = ("verb", "column", "columns", "q", "value", "where", "denominator", "weight", "missing", "expression")


def _statistics(record: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the meaning of each column of a record, with the hashes of shortened texts that `other` also has."""
    facts, others = provenance.counted(record), provenance.counted(other)["measures"]
    if not facts["measures"]:
        return {"verb": facts["verb"]}
    computed = {"expression": facts["expression"]} if facts["verb"] == "combine" else {}
    hashed = [f"{fact}{HASH}" for fact in MEANING]
    return {
        name: {fact: said[fact] for fact in MEANING if said.get(fact) is not None}
        | computed
        | {fact: said[fact] for fact in hashed if fact in said and fact in others.get(name, ())}
        for name, said in facts["measures"].items()
    }
