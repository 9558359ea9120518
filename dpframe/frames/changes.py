"""Changes that people make to results: rename, filter, sort, widen. `shown` in the record lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_column_name, closest, shown
from dpframe.frames import build, foreign, prints
from dpframe.frames.columns import distinct, is_of_keys, keys_in, mask_of, texts_of
from dpframe.frames.kinds import check_threads, is_missing, is_pandas
from dpframe.frames.prints import Places

Facts = Mapping[str, Any]

COMPANIONS = ("", "_noisy", "_error", "_low", "_high")  # suffixes of the columns of a statistic
MOST_NAMED = 8  # maximum number of values that an error lists
CHOSEN = "the interval of a row that was chosen for its noisy number holds less often than it says"


@dataclass(frozen=True)
class View:
    """Part of a release that a changed frame shows, in the order of the release."""

    rows: int
    shape: tuple[int, ...]
    cells: NDArray[np.int64]  # (across, rows): the released row of each number
    released: int  # rows of the release
    measures: Mapping[str, tuple[str, int]]  # shown name -> (released statistic, its index in `cells`)
    is_sorted: bool
    chosen: str  # how noisy numbers chose some rows, or may have; "" if keys chose all rows
    across: tuple[str, ...] = ()  # the columns whose keys became columns
    notes: tuple[str, ...] = ()  # on rows that are left out; the notes of the record end with these

    @property
    def is_whole(self) -> bool:
        """True if every released row is present, as a row of its own."""
        return len(self.cells) == 1 and self.rows == self.released


def counted(record: Facts) -> Facts:
    """Return the record with the counts of a top-k as a measure, if the top-k released them."""
    if not record.get("top", {}).get("counts"):
        return record
    counts = {"verb": "count", "column": None, "statistics": [0], "denoise": None}
    return {**record, "measures": {"count": counts}}


def view_of(facts: Facts) -> View | None:
    """Return the view of a changed frame; None if the frame is as it was released."""
    view = facts.get("view")
    return view if isinstance(view, View) else None  # a file may hold a field of this name


def is_whole(facts: Facts) -> bool:
    """Return whether the rows are those of the release, each as a row of its own."""
    view = view_of(facts)
    return view is None or view.is_whole


def viewed(record: Facts) -> Facts:
    """Return the record of the columns and rows that a changed frame shows; of a released frame, the record itself.

    Raise InvalidArgument if a change in a file does not fit its release.
    """
    if "shown" not in record:
        return record
    said = record["shown"]
    base = counted({name: fact for name, fact in record.items() if name not in ("shown", "view")})
    labels, measures = said["labels"], {name: (of, at) for name, (of, at) in said["measures"].items()}
    total = foreign.rows_of(base)
    cells = _cells_of(said["cells"], total)
    _check_fits(said, base, cells, measures)
    rows, shape = cells.shape[1], _shape(base, labels, cells)
    levels, kinds = _levels(base, labels, cells)
    count = len(base.get("levels", ()))
    facts: dict[str, Any] = {**base, "cells": _axes(base, said, cells), "rows": said["rows"]}
    facts["measures"] = {}
    for name, (of, at) in measures.items():
        places = None if levels is None else [int(each[at]) for each in kinds]
        facts["measures"][name] = _measure(base["measures"][of], name, of, places, count)
    facts["columns"] = [
        *(labels[name] for name in base["columns"] if name in labels and name not in base["measures"]),  # chosen keys
        *(name + end for name, (of, _) in measures.items() for end in COMPANIONS if of + end in base["columns"]),
        *(beside for of in dict.fromkeys(of for of, _ in measures.values()) for beside in _beside(base, of)),
        *(name for name in base["columns"] if not base["measures"] and name not in foreign.labels_of(base)),
    ]
    if levels is not None:
        facts["levels"] = levels
    if "top" in base:
        facts["top"] = {**base["top"], "k": rows}
    if "suggested" in base:
        facts["suggested"] = {**base["suggested"], "rows": rows}
    steps = {name: base.get("rounded", {}).get("steps", {}).get(of) for name, (of, _) in measures.items()}
    steps |= {name: step for name, step in said.get("rounded", {}).items() if name in measures}
    if steps := {name: step for name, step in steps.items() if step is not None}:
        facts["rounded"] = {**base.get("rounded", {}), "steps": steps}
    is_sorted = any(step["verb"] == "sort" for step in said["steps"])
    wide = (step.get("column") for step in said["steps"] if step["verb"] == "wide")
    across = tuple(column for column in wide if isinstance(column, str))  # a file may leave it out
    view = View(rows, shape, cells, total, measures, is_sorted, _chosen(said["steps"]), across)
    view = replace(view, notes=tuple(_notes(base, view)))
    return {**facts, "notes": [*base["notes"], *view.notes], "view": view}


def _beside(facts: Facts, name: str) -> list[str]:
    """Return the columns that a statistic does not name: interval ends and p-values of comparisons."""
    ends = facts["measures"][name].get("ends", ())
    return [column for column in facts["columns"] if ends and column != name]


def _cells_of(texts: Sequence[str] | None, total: int) -> NDArray[np.int64]:
    """Return the released row of each number; None stands for all rows, as they were released."""
    if texts is None:
        return np.arange(total, dtype=np.int64)[None]
    try:
        return np.array([text.split() for text in texts], dtype=np.int64).reshape(len(texts), -1)
    except (ValueError, OverflowError):
        raise _broken() from None


def _check_fits(said: Facts, base: Facts, cells: NDArray[np.int64], measures: Mapping[str, tuple[str, int]]) -> None:
    known = [name for axis in base["cells"] for name in axis["columns"]]
    total = foreign.rows_of(base)
    fits = set(said["labels"]) <= set(known) and all(of in base["measures"] for of, _ in measures.values())
    fits = fits and all(at < len(cells) for _, at in measures.values())
    inside = not cells.size or (cells.min() >= 0 and cells.max() < total and len(np.unique(cells)) == cells.size)
    if not fits or not inside:
        raise _broken()


def _broken() -> InvalidArgument:
    return InvalidArgument("the record must say what is shown of its release, and it does not. Ask for another file.")


def _shape(base: Facts, labels: Mapping[str, str], cells: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the shape of the shown cells if they are all combinations of their keys; else one axis."""
    rows = cells.shape[1]
    if "levels" in base or "top" in base or not base["measures"]:
        return (rows,)
    sizes = _sizes(base, cells)
    kept = tuple(
        size for size, axis in zip(sizes, base["cells"], strict=True) if any(name in labels for name in axis["columns"])
    )
    return kept if int(np.prod(kept, dtype=np.int64)) == rows else (rows,)


def _sizes(base: Facts, cells: NDArray[np.int64]) -> list[int]:
    """Return the number of cells of each axis that the rows have."""
    released = [axis["size"] for axis in base["cells"]]
    if "levels" in base or "top" in base or not base["measures"] or not cells.size:
        return released
    return [len(np.unique(codes)) for codes in np.unravel_index(cells[0], released)] if released else []


def _axes(base: Facts, said: Facts, cells: NDArray[np.int64]) -> list[dict[str, Any]]:
    made = []
    for axis, size in zip(base["cells"], _sizes(base, cells), strict=True):
        kept = [name for name in axis["columns"] if name in said["labels"]]
        if not kept:
            continue
        names = [said["labels"][name] for name in kept]
        new = {**axis, "columns": names, "size": size}
        if "keys" in axis:
            kinds = dict(zip(axis["columns"], axis["keys"], strict=True))
            new["keys"] = ["text" if name in said["texts"] else kinds[name] for name in kept]
        if any(name in said["texts"] for name in kept):
            new = {name: fact for name, fact in new.items() if name not in ("every", "starts", "zone", "first", "last")}
        made.append(new if names == axis["columns"] else {**new, "released": axis["columns"]})
    return made


def _levels(
    base: Facts, labels: Mapping[str, str], cells: NDArray[np.int64]
) -> tuple[list[dict[str, Any]] | None, list[NDArray[np.int64]]]:
    """Return the shown levels, and for each of them its released level in each column across."""
    if "levels" not in base:
        return None, []
    released = base["levels"]
    of = np.searchsorted(np.cumsum([level["rows"] for level in released]), cells, side="right")
    first = of[0]
    starts = np.flatnonzero(np.diff(first, prepend=-1))
    sizes = np.diff(starts, append=first.size)
    columns = [[labels[name] for name in released[first[start]]["columns"] if name in labels] for start in starts]
    levels = [{"columns": names, "rows": int(size)} for names, size in zip(columns, sizes, strict=True)]
    return levels, [of[:, start] for start in starts]


def _measure(released: Facts, name: str, of: str, levels: Sequence[int] | None, count: int) -> dict[str, Any]:
    """Return the facts of a statistic for the shown levels, out of `count` levels."""
    made = dict(released) if name == of else {**released, "words": name}
    if levels is None:
        return made
    each = len(made["statistics"]) // count
    made["statistics"] = [made["statistics"][level * each + number] for level in levels for number in range(each)]
    if "deviations" in made:
        made["deviations"] = [made["deviations"][level] for level in levels]
    made["denoise"] = made["denoise"] and [_step(step, levels) for step in made["denoise"]]
    return made


def _step(step: Facts, levels: Sequence[int]) -> dict[str, Any]:
    """Return the facts of a denoiser for these levels; a single estimate is of the first level alone."""
    by_level = "estimated_rmse_of_levels"
    if by_level in step:
        return {**step, by_level: [step[by_level][level] for level in levels]}
    return {name: fact for name, fact in step.items() if name != "estimated_rmse" or levels[:1] == [0]}


def _notes(base: Facts, view: View) -> list[str]:
    """Return notes on rows that are left out."""
    shown_rows = view.cells.size
    if shown_rows == view.released:
        return []
    are, them = ("is", "it") if shown_rows == 1 else ("are", "them")
    words = f"{shown_rows:,} of {view.released:,} released rows {are} shown, so a total of {them} is no total of all"
    if base["verb"] == "compare":  # nobody adds up differences of several statistics
        words = f"{shown_rows:,} of {view.released:,} comparisons {are} shown"
    return [words, CHOSEN] if view.chosen else [words]


def _chosen(steps: Sequence[Facts]) -> str:
    """Describe how steps chose rows by their noisy numbers, or may have; "" if none did."""
    number = next((number for number, step in enumerate(steps) if step.get("by_numbers")), None)
    if number is None:
        return ""
    if steps[number]["verb"] == "filter":
        return "a mask may have chosen some by their noisy numbers"
    if any(step["verb"] == "sort" and step.get("numbers") for step in steps[:number]):
        return "some were chosen by their noisy numbers"
    return "head may have chosen some by their noisy numbers, because .dp.sort did not make the order of the rows"


def _order_of(cells: NDArray[np.int64]) -> str | None:
    """Return a hash of the order of the rows; None if it is the order of the release."""
    in_order = bool((np.diff(cells[0]) > 0).all())
    return None if in_order else hashlib.sha256(cells[0].astype("<i8").tobytes()).hexdigest()


@dataclass(frozen=True)
class Release:
    """Released frame that is about to be changed: checked, with the released row of each of its numbers."""

    frame: Any
    record: Facts
    facts: Facts  # the record as the frame shows it
    cells: NDArray[np.int64]  # (across, rows), by the rows of the frame

    @property
    def said(self) -> dict[str, Any]:
        """Changes so far; an order of rows that none of them made counts as one, perhaps by noisy numbers."""
        names = {name: name for axis in self.facts["cells"] for name in axis["columns"]}
        measures = {name: [name, 0] for name in self.facts["measures"]}
        said: dict[str, Any] = {"steps": [], "labels": names, "measures": measures, "texts": []}
        said |= self.record.get("shown", {})
        if _order_of(self.cells) not in (None, said.get("order")):
            said["steps"] = [*said["steps"], {"verb": "reorder", "numbers": True}]
        return said

    @property
    def statistics(self) -> dict[str, list[str]]:
        """Columns of each statistic."""
        columns = self.facts["columns"]
        return {
            name: [*(name + end for end in COMPANIONS if name + end in columns), *_beside(self.facts, name)]
            for name in self.facts["measures"]
        }

    @property
    def labels(self) -> dict[str, list[str]]:
        """Columns of each column of keys or bins; a name that bins share with a statistic means the statistic."""
        return {
            name: [name + end for end in (foreign.ENDS if "bins" in axis else ("",))]
            for axis in self.facts["cells"]
            for name in axis["columns"]
        }

    def made(self, frame: Any, cells: NDArray[np.int64], step: Facts, **changes: Any) -> Any:
        """Return the changed frame with its record; `cells` follows the rows of the frame."""
        said: dict[str, Any] = {**self.said, **changes}
        said["steps"] = [*said["steps"], dict(step)]
        order = np.argsort(cells[0], kind="stable")
        declared = cells[:, order]
        base = {name: fact for name, fact in self.record.items() if name != "shown"}
        whole = len(declared) == 1 and np.array_equal(declared[0], np.arange(foreign.rows_of(base)))
        said["cells"] = None if whole else [" ".join(map(str, row)) for row in declared.tolist()]
        said |= {"order": _order_of(cells), "rows": {"labels": [], "sha256": "", "order": None}}
        facts = viewed({**base, "shown": said})
        labels = foreign.labels_of(facts)
        numbers = [name for name in facts["columns"] if name not in labels]
        printed = prints.print_of(frame, labels, numbers, prints.layout_of(facts.get("levels")))
        if printed is None:
            raise InvalidArgument(
                "the result must have keys of one type each to be changed with its record. Declare keys as text."
            )
        ranks = np.empty_like(order)
        ranks[order] = np.arange(order.size)
        places = ranks[printed.places]
        in_order = bool(np.array_equal(places, np.arange(places.size)))
        text = None if in_order else " ".join(map(str, places.tolist()))  # a string: pandas does not deep-copy it
        said["rows"] = {"labels": labels, "sha256": printed.sha256, "order": text}
        return build.attach(frame, {**base, "shown": said})

    def of_rows(self, places: NDArray[np.int64], step: Facts) -> Any:
        """Return some rows of the frame, in this order."""
        frame = self.frame if is_pandas(self.frame) else self.frame.clone()
        return self.made(build.reordered(frame, places), self.cells[:, places], step)


def release_of(frame: Any, record: Facts, facts: Facts, places: Places) -> Release:
    """Return the Release of a frame that matches its record; `places` follows the order of the release."""
    view = view_of(facts)
    declared = np.arange(len(places), dtype=np.int64)[None] if view is None else view.cells
    cells = np.empty_like(declared)
    cells[:, places] = declared
    return Release(frame, record, facts, cells)


def relabeled(release: Release, values: Any, columns: Any, of: str = "") -> Any:
    """Rename columns and translate keys; `of` prefixes the arguments in errors."""
    names, words = checked_columns(columns, release, of), checked_values(values, release, of)
    if not names and not words:
        raise MissingArgument(
            f'{of}values or columns must name what to change. Write relabel(columns={{"n": "People"}}).'
        )
    frame = release.frame.copy(deep=False) if is_pandas(release.frame) else release.frame.clone()
    for name, column_words in words.items():
        frame = _with_texts(frame, name, _texts(release, name, column_words, of))
    bins = [name for name in release.labels if name not in release.statistics]  # bins and keys not named as a statistic
    renamed = {
        old: names[name] + old.removeprefix(name)
        for name, mine in {**release.labels, **release.statistics}.items()
        if name in names
        for old in mine
        if old.startswith(name)
    }
    all_names = [renamed.get(name, name) for name in frame.columns]
    owners = [names.get(name, name) for name in (*bins, *release.statistics)]
    twice = next((name for many in (all_names, owners) for name in many if many.count(name) > 1), None)
    if twice := twice or end_taken(owners[len(bins) :]):
        raise InvalidArgument(
            f"{of}columns must keep names different, and two would be {shown(twice)}. Name one otherwise."
        )
    frame = frame.set_axis(all_names, axis=1) if is_pandas(frame) else frame.rename(renamed)
    said = release.said
    measures = {names.get(name, name): place for name, place in said["measures"].items()}
    labels = {of: names[name] if name in names and name in bins else name for of, name in said["labels"].items()}
    texts = [released for released, name in said["labels"].items() if name in words or released in said["texts"]]
    more = {}
    if "rounded" in said:
        more["rounded"] = {names.get(name, name): step for name, step in said["rounded"].items()}
    plain = {name: {key: word for key, word in each.items() if key is not None} for name, each in words.items()}
    step: dict[str, Any] = {"verb": "relabel", "columns": names, "values": plain}
    if missing := {name: each[None] for name, each in words.items() if None in each}:
        step["missing"] = missing
    return release.made(frame, release.cells, step, measures=measures, labels=labels, texts=texts, **more)


def end_taken(statistics: Sequence[str]) -> str | None:
    """Return a name that a statistic shares with a companion column of another; None if there is none."""
    return next((name + end for name in statistics for end in COMPANIONS[1:] if name + end in statistics), None)


def checked_columns(columns: Any, release: Release, of: str) -> dict[str, str]:
    """Return the new names of columns; refuse a name that is no column of keys and no statistic."""
    if columns is None:
        return {}
    known = [*release.labels, *release.statistics]
    if not isinstance(columns, Mapping) or not all(isinstance(word, str) and word for word in columns.values()):
        raise InvalidType(
            f'{of}columns must be a dict of names and new names, not {shown(columns)}. Write {{"n": "People"}}.'
        )
    for word in columns.values():
        checked_column_name(f"each word of {of}columns", word)
    for name in columns:
        if name not in known:
            owner = next((one for one, mine in release.statistics.items() if name in mine), None)
            hint = f"Name {owner!r}, whose other columns follow." if owner else _near(name, known)
            raise InvalidArgument(f"{of}columns must name keys or statistics of the result, not {shown(name)}. {hint}")
    return dict(columns)


def checked_values(values: Any, release: Release, of: str) -> dict[str, dict[str | None, str]]:
    """Return by column the words for its keys, by the text of the key; a missing key is None."""
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not all(isinstance(words, Mapping) for words in values.values()):
        raise InvalidType(
            f"{of}values must be a dict of columns, each with a dict of keys and words, not {shown(values)}. "
            'Write {"sex": {0: "Men", 1: "Women"}}.'
        )
    made: dict[str, dict[str | None, str]] = {}
    for name, words in values.items():
        if name not in release.labels:
            raise InvalidArgument(
                f"{of}values must name columns of keys, not {shown(name)}. {_near(name, list(release.labels))}"
            )
        if release.labels[name] != [name]:
            raise InvalidArgument(
                f"{of}values must name columns of keys, and {shown(name)} has bins, which show their edges. "
                f"Rename the column: columns={{{shown(name)}: ...}}."
            )
        if not all(isinstance(word, str) for word in words.values()):
            raise InvalidType(f"{of}values must be words for keys, not {shown(list(words.values()))}. Write text.")
        for word in words.values():
            checked_column_name(f"each word of {of}values", word, "Write other words.")
        if "levels" in release.facts and any(is_missing(key) for key in words):
            raise InvalidArgument(
                f"{of}values must leave out None of {shown(name)}, which marks totals there. Drop it."
            )
        text = texts_of(distinct(release.frame, name)[0])
        made[name] = {text(key): str(word) for key, word in words.items()}
    return made


def _texts(release: Release, name: str, words: Mapping[str | None, str], of: str) -> list[str | None]:
    """Return the words of each row; keys that are not named keep their own."""
    different, ranks = distinct(release.frame, name)
    old = list(map(texts_of(different), different))
    if old and not any(text in words for text in old):
        raise InvalidArgument(
            f"{of}values must name keys of {shown(name)}, which are {_listed(old)}, not {_listed(list(words))}. "
            "Write them as they stand there."
        )
    new = [words.get(text, text) for text in old]
    if twice := next((text for text in new if new.count(text) > 1), None):
        raise InvalidArgument(
            f"{of}values must keep keys different, and two of {shown(name)} would be {shown(twice)}. Rename one."
        )
    return [new[rank] for rank in ranks.tolist()]


def _with_texts(frame: Any, name: str, texts: Sequence[str | None]) -> Any:
    if not is_pandas(frame):
        check_threads()
        return frame.with_columns(pl.Series(name, texts, dtype=pl.String))
    import pandas

    frame[name] = pandas.Series(list(texts), index=frame.index)
    return frame


def filtered(release: Release, given: Any) -> Any:
    """Keep some rows: those of a mask, or those with some keys."""
    if isinstance(given, Mapping):
        mask, where = _mask_of_keys(release, given)
        step: dict[str, Any] = {"verb": "filter", "where": where}
    else:
        labels = foreign.labels_of(release.facts)
        mask = mask_of(release.frame, given)
        # An expression can be tested on keys; a mask cannot: numbers mapped onto keys carry the name of the keys
        by_keys = isinstance(given, pl.Expr) and all(
            is_of_keys(release.frame.select(labels)[order], given, mask[order]) for order in _orders_of(release)
        )
        step = {"verb": "filter", **({} if by_keys else {"by_numbers": True})}
    kept = np.flatnonzero(mask)
    if not kept.size and len(release.frame):
        raise InvalidArgument("mask_or_mapping must keep at least one row, and it keeps none. Ask for other rows.")
    return release.of_rows(kept, {**step, "rows": int(kept.size)})


def _orders_of(release: Release) -> list[NDArray[np.int64]]:
    """Return orders of the rows to test: the present one and, if noisy numbers made it, three that they did not."""
    orders = [np.arange(len(release.frame))]
    if any(step.get("numbers") for step in release.said["steps"]):
        released = np.argsort(release.cells[0], kind="stable")
        orders += [released, released[::-1], np.roll(released, len(released) // 2)]
    return orders


def _mask_of_keys(release: Release, given: Mapping[Any, Any]) -> tuple[NDArray[np.bool_], dict[str, list[str | None]]]:
    """Return the mask of the rows with some keys, and these keys as text, a missing one as None."""
    known = [column for mine in release.labels.values() for column in mine]
    mask, where = np.ones(len(release.frame), dtype=bool), dict[str, list[str | None]]()
    for name, keys in given.items():
        if name not in known:
            ends = release.labels.get(name)
            hint = f"Name {ends[0]!r} or {ends[1]!r}." if ends else _near(name, known)
            if name in release.facts["columns"]:
                hint = "For numbers give a mask: result['n'] > 10."
            raise InvalidArgument(f"mask_or_mapping must name columns of keys, not {shown(name)}. {hint}")
        different, ranks = distinct(release.frame, name)
        text = texts_of(different)
        asked, texts = list(map(text, keys_in(keys, name))), list(map(text, different))
        if len(release.frame) and (unknown := [one for one in asked if one not in texts]):
            raise InvalidArgument(
                f"mask_or_mapping must name keys of {shown(name)}, which are {_listed(texts)}, not "
                f"{shown(unknown[0])}. Write them as they stand there."
            )
        mask &= np.isin(ranks, [place for place, text in enumerate(texts) if text in asked])
        where[str(name)] = asked
    return mask, where


def sorted_by(release: Release, columns: Sequence[Any], descending: Any) -> Any:
    """Sort the rows; missing values come last."""
    if not columns:
        raise MissingArgument('columns must name at least one column. Write sort("n", descending=True).')
    each = list(descending) if isinstance(descending, (list, tuple)) else [descending] * len(columns)
    if len(each) != len(columns) or not all(isinstance(one, bool) for one in each):
        raise InvalidType(f"descending must be True or False, or one of them a column, not {shown(descending)}.")
    ends = {name: mine[0] for name, mine in release.labels.items()}
    known = [*ends, *(name for mine in release.labels.values() for name in mine), *release.facts["columns"]]
    keys: list[NDArray[Any]] = []
    by_numbers = False
    for name, down in zip(columns, each, strict=True):
        _check_is_name("each of columns", name, 'sort("ward", "n")')
        if name not in known:
            raise InvalidArgument(f"columns must name columns of the result, not {shown(name)}. {_near(name, known)}")
        label = name if name in release.facts["columns"] else ends.get(name, name)
        if label in foreign.labels_of(release.facts):
            found = prints.labels_of(release.frame, label)
            if found is None:
                raise InvalidArgument(f"columns must name columns of one type, and {shown(name)} holds several.")
            ranks, missing = found.ranks.astype(np.float64), found.missing
        else:
            ranks = build.numbers(release.frame, name)
            missing, by_numbers = np.isnan(ranks), True
        ranks = np.where(missing, np.inf, -ranks if down else ranks)
        keys += [missing, ranks]
    step = {"verb": "sort", "columns": list(map(str, columns)), "descending": each, "numbers": by_numbers}
    return release.of_rows(np.lexsort(keys[::-1]).astype(np.int64), step)


def first(release: Release, n: Any) -> Any:
    """Keep the first rows."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise InvalidType(f"n must be a whole number of rows, not {shown(n, kind=True)}. Write head(10).")
    if n < 1:
        raise InvalidArgument(f"n must be at least 1, not {shown(n)}. Write head(10).")
    rows = min(int(n), len(release.frame))
    chosen = rows < len(release.frame) and any(step.get("numbers") for step in release.said["steps"])
    step = {"verb": "head", "rows": rows, **({"by_numbers": True} if chosen else {})}
    return release.of_rows(np.arange(rows, dtype=np.int64), step)


def selected(release: Release, names: Sequence[Any]) -> Any:
    """Keep some statistics, each with all of its columns; keys stay unless some of them are named."""
    labels, statistics = release.labels, release.statistics
    if not names:
        raise MissingArgument('columns must name at least one column. Write select("ward", "n").')
    owners: dict[str, tuple[bool, str]] = {}  # whether it is a statistic, and its name
    for of, named_columns in ((False, labels), (True, statistics)):
        owners |= {column: (of, name) for name, mine in named_columns.items() for column in [name, *mine]}
    for name in names:
        _check_is_name("each of columns", name, 'select("ward", "n")')
        if name not in owners:
            raise InvalidArgument(
                f"columns must name columns of the result, not {shown(name)}. {_near(name, list(owners))}"
            )
    named = list(dict.fromkeys(owners[name] for name in names))
    keys = [name for is_statistic, name in named if not is_statistic] or list(labels)
    kept = [name for is_statistic, name in named if is_statistic]
    kept = kept or list(statistics)
    if "levels" in release.facts and len(keys) < len(labels):
        raise InvalidArgument(
            f"columns must keep the keys of a result with totals, {_listed(list(labels))}. Name all of them, or none."
        )
    _check_told_apart(release, [column for name in keys for column in labels[name]])
    columns = [column for name in keys for column in labels[name]]
    columns += [column for name in kept for column in statistics[name]]
    columns += release.facts.get("texts", ())
    frame = release.frame[columns]  # no Polars query, which would wait forever in a forked child
    said = release.said
    measures = {name: said["measures"][name] for name in kept}
    mine = {released: name for released, name in said["labels"].items() if name in keys}
    texts = [name for name in said["texts"] if name in mine]
    return release.made(
        frame, release.cells, {"verb": "select", "columns": columns}, measures=measures, labels=mine, texts=texts
    )


def _check_told_apart(release: Release, columns: Sequence[str]) -> None:
    """Refuse keys that are the same in two rows."""
    if len(release.frame) > 1 and len(np.unique(_row_codes(release.frame, columns))) < len(release.frame):
        raise InvalidArgument(
            f"columns must tell the rows apart, and {_listed(list(columns)) or 'none'} does not. "
            "Name more of the keys, or filter first."
        )


def _row_codes(frame: Any, columns: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for each row, the same for rows with the same labels."""
    codes = np.zeros(len(frame), dtype=np.int64)
    for column in columns:
        _, ranks = distinct(frame, column)
        _, codes = np.unique(codes * (int(ranks.max(initial=0)) + 1) + ranks, return_inverse=True)
    return codes.astype(np.int64)


def widened(release: Release, column: Any) -> Any:
    """Turn the keys of one column into columns: each statistic gets one for each key."""
    labels, statistics = release.labels, release.statistics
    _check_is_name("column", column, 'wide("ward")')
    if column not in labels:
        raise InvalidArgument(f"column must name a column of keys, not {shown(column)}. {_near(column, list(labels))}")
    if not statistics:
        raise InvalidArgument("wide must be asked of a result with numbers, and a choice has none. Read it as it is.")
    if any("ends" in said for said in release.facts["measures"].values()):
        raise InvalidArgument("wide must be asked of a result, and this is a comparison. Read it row by row.")
    if not len(release.frame):
        raise InvalidArgument("wide must be asked of a result with rows, and no group is shown here. Read it as it is.")
    frame, others = release.frame, [name for key, mine in labels.items() if key != column for name in mine]
    codes, keys = _row_codes(frame, others), _row_codes(frame, labels[column])
    _, first_rows, rows = np.unique(codes, return_index=True, return_inverse=True)
    _, first_keys, across = np.unique(keys, return_index=True, return_inverse=True)
    by_row, by_key = np.argsort(first_rows), np.argsort(first_keys)  # in order of appearance
    grid = np.full((len(first_rows), len(first_keys)), -1, dtype=np.int64)
    grid[np.argsort(by_row)[rows], np.argsort(by_key)[across]] = np.arange(len(frame))
    if (grid < 0).any():
        raise InvalidArgument(
            f"wide needs a row for every pair of {shown(column)} and the other keys, and some are not there. "
            "Filter the rest to the same keys, or take another column."
        )
    words = _key_texts(release, column, first_keys[by_key])
    if "" in words:
        raise InvalidArgument(
            f"column must give columns with names, and a key of {shown(column)} is the empty text. "
            f"Relabel its keys first: result.dp.relabel({{{shown(column)}: {{'': 'none'}}}})."
        )
    base = build.reordered(frame, first_rows[by_row].astype(np.int64))
    columns: dict[str, Any] = {name: base[name] for name in others}
    measures, rounded = {}, {}
    said = release.said
    for name, mine in statistics.items():
        of, at = said["measures"][name]
        for number, word in enumerate(words):
            new = word if len(statistics) == 1 else f"{name}_{word}"
            measures[new] = [of, at * len(words) + number]
            if name in said.get("rounded", {}):
                rounded[new] = said["rounded"][name]
            for old in mine:
                if new + old.removeprefix(name) in columns:
                    raise InvalidArgument(
                        f"column must give columns of different names, and two would be {shown(new)}. "
                        "Relabel its keys first: result.dp.relabel({...})."
                    )
                columns[new + old.removeprefix(name)] = build.numbers(frame, old)[grid[:, number]]
    if taken := end_taken(list(measures)):
        raise InvalidArgument(
            f"column must give columns of different names, and {shown(taken)} would be the end of an interval, too. "
            "Relabel its keys first: result.dp.relabel({...})."
        )
    columns |= {name: base[name] for name in release.facts.get("texts", ())}
    wide = _frame_of(columns, base)
    cells = np.concatenate([each[grid.T] for each in release.cells])
    mine_labels = {released: name for released, name in said["labels"].items() if name != column}
    texts = [name for name in said["texts"] if name in mine_labels]
    more = {"rounded": rounded} if rounded else {}
    step = {"verb": "wide", "column": column, "keys": words}
    return release.made(wide, cells, step, measures=measures, labels=mine_labels, texts=texts, **more)


def _frame_of(columns: Mapping[str, Any], base: Any) -> Any:
    if not is_pandas(base):
        check_threads()
        return pl.DataFrame([pl.Series(name, values) for name, values in columns.items()])
    import pandas

    plain = {
        name: values.reset_index(drop=True) if hasattr(values, "reset_index") else values
        for name, values in columns.items()
    }
    return pandas.DataFrame(plain)


def _key_texts(release: Release, column: str, rows: NDArray[np.int64]) -> list[str]:
    """Return the keys of a column in some rows as text; a bin shows both edges."""
    missing, texts = "all" if "levels" in release.facts else "missing", []
    for name in release.labels[column]:
        different, ranks = distinct(release.frame, name)
        text = texts_of(different)
        texts.append(
            [missing if is_missing(different[rank]) else text(different[rank]) for rank in ranks[rows].tolist()]
        )
    return [missing if missing in edges else " to ".join(edges) for edges in zip(*texts, strict=True)]


def _check_is_name(argument: str, name: object, example: str) -> None:
    if not isinstance(name, str):
        raise InvalidType(f"{argument} must be the name of a column (a string), not {shown(name)}. Write {example}.")


def _near(name: Any, known: Sequence[str]) -> str:
    near = closest(str(name), known)
    if near or not known:
        return f"Did you mean {near!r}?" if near else "This result has none."
    return f"Name some of {_listed(list(dict.fromkeys(known)))}."


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(shown(name) for name in names[:MOST_NAMED]) + more
