"""Prints of released frames: a hash shows if one was changed, in any library and any order of its rows.

Labels identify rows: the keys, or the edges of bins. Each label column is ranked and rows are sorted by these ranks.
One hash covers labels and numbers in that order, which is called the canonical order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.frames import build
from dpframe.frames.kinds import is_pandas

Places = NDArray[np.int64]

NANOSECONDS = {"ms": 10**6, "us": 10**3, "ns": 1}
FEW = 2**12  # rows up to which NumPy ranks labels in less time than Polars plans its queries
EXACT = 2**53  # integers up to here are exact floats, so that 1 and 1.0 are one label
MANY = 2**12  # rows from which repeated labels are searched for, and all labels joined at once
AGAIN = 8  # minimum number of repetitions that this search uses
LARGEST = 2**63 - 1
SIZE = 8  # bytes that encode the length of a word
LONGEST = 2**31 - 1  # bytes that one text of Polars can certainly hold
WIDEST = 2**62  # combinations of ranks that one integer can encode


@dataclass(frozen=True)
class Print:
    """Hash of a frame's rows in canonical order, and the position of each of these rows in the frame."""

    sha256: str
    places: Places


@dataclass(frozen=True)
class Labels:
    """Column of labels: its kind, the distinct labels in order as bytes, and the rank of each row."""

    kind: str
    different: bytes
    ranks: Places
    missing: NDArray[np.bool_]  # missing labels rank last


Layout = Literal["cells", "subtotals", "tables"]


@dataclass(frozen=True)
class Ranked:
    """Label columns of a frame: their part of its print, and its rows in canonical order."""

    digest: Any  # a hashlib object, copied before more is added
    places: Places
    in_order: bool


def layout_of(levels: Sequence[Mapping[str, Any]] | None) -> Layout:
    """Return the order in which rows are released: subtotals after the cells, tables after their total, or neither."""
    if not levels:
        return "cells"
    return "subtotals" if levels[0]["columns"] else "tables"


def print_of(
    frame: Any, labels: Sequence[str], numbers: Sequence[str], layout: Layout = "cells", *, by_types: bool = False
) -> Print | None:
    """Return the print of these columns; None if one is missing, is there twice or has a type that no release has.

    Rows come in the order of released levels. With subtotals, rows with the fewest missing labels come first. For
    tables, rows with the most come first, table by table. `by_types` is as in `ranked_of`.
    """
    names = list(frame.columns)
    if any(names.count(name) != 1 for name in (*labels, *numbers)):
        return None
    ranked = ranked_of(frame, labels, layout, by_types=by_types)
    return None if ranked is None else with_numbers(ranked, frame, numbers)


def ranked_of(frame: Any, labels: Sequence[str], layout: Layout, *, by_types: bool = False) -> Ranked | None:
    """Return the part of a print that covers labels; None if one has a type that no release has.

    A column without a label has a different type in each library, so its kind is "missing". `by_types` uses the kind of
    its type all the same, as older records do.
    """
    columns = [labels_of(frame, name) for name in labels]
    places = _canonical([label for label in columns if label is not None], len(frame), layout)
    digest = hashlib.sha256()
    in_order = bool(np.array_equal(places, np.arange(places.size)))
    for label in columns:
        if label is None:
            return None
        ranks = label.ranks if in_order else label.ranks[places]
        kind = label.kind if label.different or by_types else "missing"
        _add(digest, kind.encode(), label.different, ranks)
    return Ranked(digest, places, in_order)


def with_numbers(ranked: Ranked, frame: Any, numbers: Sequence[str]) -> Print | None:
    """Return the print of labels and these columns of numbers; None if a column does not hold numbers."""
    digest = ranked.digest.copy()
    for name in numbers:
        value = numbers_of(frame, name)
        if value is None:
            return None
        _add(digest, value if ranked.in_order else value[ranked.places])
    return Print(digest.hexdigest(), ranked.places)


def places_of(frame: Any, facts: Mapping[str, Any]) -> Places | None:
    """Return the position in the frame of each released row; None if rows are not those that were released."""
    rows, columns = facts.get("rows"), facts["columns"]
    if rows is None:  # an older record covers no labels, and knows its rows in their first order only
        same = build.fingerprint(frame, columns) == facts["sha256"]
        return np.arange(len(frame), dtype=np.int64) if same else None
    numbered = facts["measures"] or "top" in facts or "suggested" in facts
    numbers = [name for name in columns if name not in rows["labels"]] if numbered else []
    layout = layout_of(facts.get("levels"))
    prints = (print_of(frame, rows["labels"], numbers, layout, by_types=by_types) for by_types in (False, True))
    current = next((each for each in prints if each is not None and each.sha256 == rows["sha256"]), None)
    if current is None:
        return None
    if rows["order"] is None:
        return current.places
    order = _order(rows["order"], len(frame))
    if order is None:
        return None
    places = np.empty_like(order)
    places[order] = current.places
    return places


def order_text(places: Places) -> str:
    """Return places as a text of numbers, which `places_of` reads."""
    return str(pl.Series(places).cast(pl.String).str.join(" ").item())


def _order(text: str, rows: int) -> Places | None:
    """Return the order of rows in a record; None if it does not have every place once."""
    try:
        order = np.array(text.split(" "), dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return order if np.array_equal(np.sort(order), np.arange(rows)) else None


def _add(digest: Any, *parts: bytes | NDArray[Any]) -> None:
    """Hash bytes and arrays of numbers or ranks; copy only arrays with another memory layout."""
    for part in parts:  # the length comes first, so that different lists of parts never give the same bytes
        raw: bytes | memoryview
        if isinstance(part, bytes):
            raw = part
        else:
            raw = np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")).view(np.uint8).data
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)


def _canonical(labels: Sequence[Labels], rows: int, layout: Layout) -> Places:
    if not labels:
        return np.arange(rows, dtype=np.int64)
    keys = [label.ranks for label in reversed(labels)]
    missing = [label.missing.astype(np.int64) for label in reversed(labels)] if layout != "cells" else []
    if layout == "subtotals":
        keys.append(np.sum(missing, axis=0))
    elif layout == "tables":
        keys += [*missing, -np.sum(missing, axis=0)]
    if _ascend(keys[::-1]):
        return np.arange(rows, dtype=np.int64)
    return np.asarray(np.lexsort(keys), dtype=np.int64)


def _ascend(keys: Sequence[Places]) -> bool:
    """Return whether rows are in the order of these ranks, first key first. They nearly always are."""
    number, most = np.zeros(keys[0].size, dtype=np.int64), 1
    for key in keys if keys[0].size else ():
        least, span = int(key.min()), int(key.max()) - int(key.min()) + 1
        most *= span
        if most > WIDEST:
            return False
        if span > 1:
            number *= span
            number += key
            number -= least
    return bool((number[1:] >= number[:-1]).all())


def labels_of(frame: Any, name: str) -> Labels | None:
    """Return a column of labels, ranked; None if it holds values that no label can have."""
    series = _series(frame, name)
    if series is None:
        return None
    if len(series) <= FEW and (few := _few(series)) is not None:
        return few
    kind_and_plain = _plain(series)
    if kind_and_plain is None:
        return None
    kind, plain = kind_and_plain
    different, ranks = _ranked(plain)
    return Labels(kind, _bytes(kind, different), ranks, ranks == len(different))


def _ranked(plain: pl.Series) -> tuple[pl.Series, Places]:
    """Return the distinct labels in order, and the rank of each row, missing labels last.

    Labels of large tables come in runs or repeat, since cells are all combinations of keys: then only a few are ranked.
    """
    rows = len(plain)
    if rows >= MANY:
        changes = plain.slice(1).ne_missing(plain.head(rows - 1))
        if int(changes.sum()) * AGAIN < rows:
            starts = np.concatenate([[0], np.flatnonzero(changes.to_numpy()) + 1])
            different, ranks = _ranked(plain.gather(starts))
            return different, np.repeat(ranks, np.diff(starts, append=rows))
        if period := _period(plain):
            different, ranks = _ranked(plain.head(period))
            return different, np.tile(ranks, rows // period)
    different = plain.drop_nulls().unique().sort()
    ranks = (plain.rank("dense").cast(pl.Int64) - 1).fill_null(len(different)).to_numpy()
    return different, ranks.astype(np.int64)


def _period(plain: pl.Series) -> int:
    """Return the number of rows after which all labels repeat; 0 if they do not, or seldom do."""
    rows = len(plain)
    again = plain.slice(1).eq_missing(plain.head(1))
    period = int(again.arg_max() or 0) + 1
    regular = again[period - 1] and rows % period == 0 and period * AGAIN <= rows
    return period if regular and plain.slice(period).equals(plain.head(rows - period), null_equal=True) else 0


def _few(series: pl.Series) -> Labels | None:
    """Rank text and numbers as `labels_of` does, by NumPy; return None for labels of other types."""
    if series.dtype == pl.String:
        values: NDArray[Any] = np.array(series.to_list(), dtype=object)
        missing = np.equal(values, None).astype(bool)  # type: ignore[call-overload]  # of objects
        kind = "text"  # Python orders text as Polars orders its UTF-8 bytes
    elif series.dtype.is_float() or (series.dtype.is_integer() and _is_small(series)):
        values = _positive_zeros(series)
        missing, kind = np.isnan(values), "number"
    else:
        return None
    different, ranks = np.unique(values[~missing], return_inverse=True)
    places = np.full(len(values), len(different), dtype=np.int64)
    places[~missing] = ranks
    whole = different.astype("<f8").tobytes() if kind == "number" else _joined(different.tolist())
    return Labels(kind, whole, places, missing)


def _plain(series: pl.Series) -> tuple[str, pl.Series] | None:
    """Return the kind of a column of labels, and the column in a form that both libraries rank and hash alike."""
    dtype = series.dtype
    if dtype in (pl.String, pl.Enum, pl.Categorical):
        return "text", series.cast(pl.String)
    if dtype == pl.Boolean:
        return "truth", series.cast(pl.Float64)
    if dtype.is_float():
        return "number", pl.Series("label", _positive_zeros(series), nan_to_null=True)
    if dtype.is_integer():
        return "number", series.cast(pl.Float64) if _is_small(series) else series
    if dtype == pl.Decimal:
        return "decimal", series
    if dtype == pl.Date:
        return "moment", series.cast(pl.Datetime("ms"))
    if dtype == pl.Datetime:
        return "moment" if getattr(dtype, "time_zone", None) is None else "instant", series
    if dtype == pl.Duration:
        return "duration", series
    if dtype == pl.Time:
        return "time", series
    return ("missing", series.cast(pl.Float64)) if dtype == pl.Null else None


def _positive_zeros(series: pl.Series) -> NDArray[np.float64]:
    """Return floats, with NaN for missing ones and 0.0 for -0.0 (by NumPy, since Polars skips adding 0.0)."""
    return np.asarray(series.cast(pl.Float64).to_numpy() + 0.0, dtype=np.float64)


def _is_small(series: pl.Series) -> bool:
    """Return whether every integer is exact as a float."""
    least, most = series.min(), series.max()
    return least is None or most is None or max(-int(least), int(most)) <= EXACT  # type: ignore[arg-type]


def _bytes(kind: str, different: pl.Series) -> bytes:
    """Return the distinct labels as bytes, alike for each type that a kind has in the libraries and in files."""
    dtype = different.dtype
    if dtype == pl.Float64:
        return different.to_numpy().astype("<f8").tobytes()
    if dtype in (pl.Datetime, pl.Duration, pl.Time):
        return _ticks(different.to_physical().to_numpy(), NANOSECONDS[getattr(dtype, "time_unit", "ns") or "us"])
    if kind == "decimal":  # its scale belongs to the column, and a file or the other library may change it
        words = map(str, different.to_list())
        return _joined([word.rstrip("0").rstrip(".") if "." in word else word for word in words])
    return _joined(different.to_list()) if len(different) < MANY else _joined_many(different.cast(pl.String))


def _ticks(ticks: NDArray[np.int64], size: int) -> bytes:
    """Convert ticks of `size` nanoseconds to nanoseconds, as text."""
    if ticks.size < MANY or max(-int(ticks.min()), int(ticks.max())) > LARGEST // size:
        return ",".join(map(str, ticks.astype(object) * size)).encode()  # Python integers do not overflow
    return str(pl.Series(ticks * size).cast(pl.String).str.join(",").item()).encode()


def _joined(words: Sequence[Any]) -> bytes:
    """Return labels as text, each after its length."""
    encoded = [str(word).encode("utf-8") for word in words]
    return b"".join(len(word).to_bytes(SIZE, "little") + word for word in encoded)


def _joined_many(words: pl.Series) -> bytes:
    """Return the bytes of `_joined` for many labels, in a fifth of the time."""
    sizes = words.str.len_bytes().to_numpy().astype("<i8")
    if int(sizes.sum()) > LONGEST:
        return _joined(words.to_list())
    starts = np.cumsum(sizes + SIZE) - sizes - SIZE
    made = np.empty(int(sizes.sum()) + SIZE * sizes.size, dtype=np.uint8)
    is_size = np.zeros(made.size, dtype=bool)
    is_size[starts[:, None] + np.arange(SIZE)] = True
    made[is_size] = sizes.view(np.uint8)
    made[~is_size] = np.frombuffer(str(words.str.join("").item()).encode("utf-8"), dtype=np.uint8)
    return made.tobytes()


def numbers_of(frame: Any, name: str) -> NDArray[np.float64] | None:
    """Return a column of numbers as floats, missing ones as NaN; None if it is not such a column."""
    if isinstance(frame, dict):
        return np.asarray(frame[name], dtype=np.float64)
    if is_pandas(frame):
        column = frame[name]
        if isinstance(column.dtype, np.dtype):
            return column.to_numpy().astype(np.float64, copy=False) if column.dtype.kind in "iuf" else None
    series = _series(frame, name) if is_pandas(frame) else frame.get_column(name)
    if series is None or not (series.dtype.is_float() or series.dtype.is_integer()):
        return None
    return series.cast(pl.Float64).to_numpy().astype(np.float64, copy=False)  # missing values become NaN


def _series(frame: Any, name: str) -> pl.Series | None:
    """Return a column as a Polars series; None if its values have no common type.

    It is renamed, because Polars reads a name like "^a.*$" as a pattern.
    """
    if not is_pandas(frame):
        return frame.get_column(name).rename("label")  # type: ignore[no-any-return]
    column = frame[name]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufmM":
        values = np.ascontiguousarray(column.to_numpy())
        if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] == "s":  # a unit that Polars lacks
            values = values.astype(f"{'timedelta64' if values.dtype.kind == 'm' else 'datetime64'}[ms]")
        return pl.Series("label", values)
    try:
        return _of_objects(column)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # objects that cannot be labels
        return None


def _of_objects(column: Any) -> pl.Series:
    zone = getattr(column.dtype, "tz", None)
    if zone is not None:
        values = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        unit = np.datetime_data(values.dtype)[0]
        values = values.astype("datetime64[ms]") if unit == "s" else values
        return pl.Series("label", values).dt.replace_time_zone("UTC")
    values = column.astype(object).where(column.notna(), None).to_list()
    return pl.Series("label", values, strict=False)  # not strict, as for results
