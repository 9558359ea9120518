"""Results laid out as tables: columns of labels, columns of numbers that are rounded to their errors, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display import rounding, subjects
from dpframe.display.layout import to_the_minute, unlike
from dpframe.display.pages import at_least
from dpframe.display.rounding import HIGH, LOW, Digits, Rounded, Shown, Write, rounded, step_words, writer
from dpframe.display.statements import check_lines, denoised_words, ends_words, margin_words, promised, with_changed
from dpframe.errors import harmless
from dpframe.frames import build, changes, foreign
from dpframe.queries.query import ERROR, NOISY

Errors = Mapping[str, NDArray[np.float64]]  # of adjusted values, by the name of their column
Row = Mapping[str, Any]

MOST_ACROSS = 30  # columns of a two-way table; a wider one has a row per cell
PLUS_MINUS, UNBIASED, EXPECTED = " ±", " unbiased", " itself off by about"
ENDS = {LOW: " from", HIGH: " to"}


@dataclass(frozen=True)
class Column:
    """A column: its title and its cells, which are labels (text or numeric keys) or numbers with so many decimals.

    Each of the `forms`, if there are any, is the text around one number, with braces in its place.
    """

    title: str
    cells: Sequence[Any]
    is_number: bool = False
    decimals: int | None = None
    forms: Sequence[str] | None = None


@dataclass(frozen=True)
class Table:
    """A table of a result: its columns, of which the row labels come first, and the words around it."""

    title: str
    subtitle: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    name: str  # identifies the table in a page
    write: Write

    def texts(self) -> list[list[str]]:
        """Return the cells of each row as text."""
        return list(map(list, zip(*map(self.written, self.columns), strict=True)))

    def written(self, column: Column) -> list[str]:
        """Return the cells of a column as text."""
        if not column.is_number:
            write = partial(self.write, is_key=True)
            return [write(cell, None) if isinstance(cell, float) else str(cell) for cell in column.cells]
        texts = [self.write(value, column.decimals) for value in column.cells]
        return texts if column.forms is None else list(map(str.format, column.forms, texts))


@dataclass(frozen=True)
class Look:
    """The caller's options for a table: digits and a language."""

    digits: Digits | None = "error"
    locale: str | None = None


def of_result(frame: Any, facts: Mapping[str, Any], errors: Errors, look: Look) -> Table:
    """Return a table with a row per cell, or a two-way table, with each statistic and its error.

    `errors` holds, by statistic, the expected errors of adjusted values in the order of the rows.
    """
    write, facts = writer(look.locale), with_changed(frame, facts)
    rows, statistics = build.rows(frame), list(facts["measures"])
    ends = {name: rounding.of_frame(frame, facts, name) for name in statistics}
    kinds = kinds_of(rows, facts)
    numbers = {name: _numbers(frame, facts, name, look.digits, ends[name], kinds) for name in statistics}
    extra: list[str] = []
    if is_two_way(facts):
        columns, extra = _two_way(rows, facts, numbers, write, "unbiased " if ends[statistics[0]].unplaced else "")
    else:
        columns = _label_columns(rows, facts, write)
        for name in statistics:
            columns += _statistic_columns(name, numbers[name], errors.get(name), ends[name])
    extra += rounding.notes_of(ends, facts["measures"], write)
    return Table(
        harmless(subjects.titled(facts, _title(facts))),
        harmless(_subtitle(facts, ends)),
        tuple(columns),
        tuple(map(harmless, [*extra, *notes_of(facts, numbers, write), source(facts)])),
        str(facts["sha256"] if changes.view_of(facts) is None else facts["rows"]["sha256"])[:12],
        write,
    )


def notes_of(facts: Mapping[str, Any], numbers: Mapping[str, Rounded], write: Write) -> list[str]:
    """Return the notes below a table: on warnings, rounding, adjusting and what was left out."""
    steps: dict[str, list[str]] = {}
    for name, made in numbers.items():
        if made.step > 1:  # for smaller steps, the decimals show the rounding
            steps.setdefault(step_words(made.step, write), []).append(name)
    said = [f"rounded to {step}: {', '.join(names)}" for step, names in steps.items() if "rounded" not in facts]
    warning = [facts["warning"]] if "warning" in facts else []
    return [*warning, *said, *denoised_words(facts, write), *check_lines(facts, write), *facts["notes"]]


def source(facts: Mapping[str, Any]) -> str:
    """Return a line on the release that the numbers come from."""
    receipt = facts.get("ledger")
    entry = ""
    if receipt:
        dataset = "" if receipt["dataset"] is None else f" of {receipt['dataset']}"
        entry = f"; entry {receipt['entry']} of the ledger{dataset}"
    unit, record = facts.get("protects") or subjects.protected(facts), facts["sha256"][:12]
    return f"dpframe {facts['dpframe']}, protects {unit}{entry}; record {record}"


def is_two_way(facts: Mapping[str, Any]) -> bool:
    """Return whether a result has one number per pair of keys, with both margins, and is narrow enough to read."""
    levels = [level["columns"] for level in facts.get("levels", ())]
    view = changes.view_of(facts)
    two_way = len(levels) == 4 and len(levels[0]) == 2 and len(facts["measures"]) == 1
    if view is not None and (view.is_sorted or not view.is_whole):
        return False
    return two_way and facts["levels"][2]["rows"] <= MOST_ACROSS


def label(value: Any, missing: str, write: Write) -> Any:
    """Return a key as a table shows it; whole numbers stay numbers."""
    if value is None or value != value:
        return missing
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return harmless(str(value).removesuffix(" 00:00:00"))  # a day has no clock time
    return int(value) if isinstance(value, (int, np.integer)) else write(float(value), None, is_key=True)


def _key(value: Any, missing: str, write: Write) -> Any:
    """Return a key as a table stores it; all numbers stay numbers, so that programs can read them in any language."""
    return float(value) if isinstance(value, (float, np.floating)) and value == value else label(value, missing, write)


def kinds_of(rows: Sequence[Row], facts: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the rows of each kind of numbers: of each statistic of a comparison, or else all rows under ""."""
    if facts["verb"] != "compare" or not facts["cells"] or not facts["cells"][-1]["columns"]:
        return {"": list(range(len(rows)))}
    (column,), kinds = facts["cells"][-1]["columns"][-1:], dict[str, list[int]]()
    for place, row in enumerate(rows):
        kinds.setdefault(str(row[column]), []).append(place)
    return kinds if len(kinds) > 1 else {"": list(range(len(rows)))}


def _numbers(
    frame: Any,
    facts: Mapping[str, Any],
    name: str,
    digits: Digits | None,
    ends: Shown,
    kinds: Mapping[str, list[int]],
) -> Rounded:
    """Return the rounded columns of a statistic, with the ends of intervals where these are cut.

    Without digits, nothing is rounded. Several kinds of numbers in one column are each rounded to their own errors.
    """
    released = [column for column in rounding.columns_of(name) if column in facts["columns"]]
    columns = {column: build.numbers(frame, column) for column in released}
    if ends.is_cut:
        columns |= {name + LOW: ends.low, name + HIGH: ends.high}
    if digits is None:
        return Rounded(None, columns)
    if len(kinds) < 2:
        return rounded(name, columns, digits, facts["measures"][name])
    made = {column: values.copy() for column, values in columns.items()}
    for of_kind in kinds.values():
        chosen = {column: values[of_kind] for column, values in columns.items()}
        each = rounded(name, chosen, digits, facts["measures"][name])
        for column, values in each.columns.items():
            made[column][of_kind] = values + 0.0  # no -0.0
    return Rounded(None, made)


def _label_columns(rows: Sequence[Row], facts: Mapping[str, Any], write: Write) -> list[Column]:
    """Return a table column for each column of keys or bins."""
    columns, of_none = [], "all" if "levels" in facts else "missing"
    in_words = _whole if "groups" in facts else _bin  # these bins are counts of rows and of groups
    for axis in facts["cells"]:
        for name in axis["columns"]:
            missing = of_none if "bins" in axis else unlike(of_none, (row[name] for row in rows))
            if "bins" in axis:
                left, right = (name + end for end in foreign.ENDS)
                cells: list[Any] = [in_words(row[left], row[right], missing, write) for row in rows]
            else:
                cells = [_key(to_the_minute(row[name], axis), missing, write) for row in rows]
            columns.append(Column(harmless(name), cells))
    return columns


def _bin(left: Any, right: Any, missing: str, write: Write) -> str:
    if left is None or left != left:
        return missing
    ends = [float(end) if isinstance(end, int) else end for end in (left, right)]
    return " to ".join(str(label(end, missing, write)) for end in ends)


def _whole(left: int, right: int, missing: str, write: Write) -> str:
    """Return the whole numbers from `left` to below `right` as text."""
    if left is None or left != left:
        return missing
    last = int(right) - 1
    return " to ".join(write(float(end), None) for end in dict.fromkeys((int(left), last)))


def _statistic_columns(name: str, numbers: Rounded, expected: Any, ends: Shown) -> list[Column]:
    """Return the columns of a statistic: its value, its interval, and its unbiased value where adjusting moved it."""
    made, decimals = numbers.columns, numbers.decimals
    title = harmless(name)
    parts = [("", made[name], rounding.forms(ends, "") if ends.noisy.any() else None)]
    if name + LOW in made:
        on_bounds = ends.on_bounds > 0
        for end, words in ENDS.items():
            parts.append((words, made[name + end], rounding.forms(ends, end) if on_bounds else None))
    else:
        parts.append((f"{UNBIASED if ends.unplaced else ''}{PLUS_MINUS}", made[name + ERROR], None))
    if name + NOISY in made and not np.array_equal(made[name + NOISY], made[name], equal_nan=True):
        parts.append((UNBIASED, made[name + NOISY], None))
    columns = [Column(title + words, cells.tolist(), True, decimals, forms) for words, cells, forms in parts]
    if expected is None:
        return columns
    digits = rounded(name, {name: expected, name + ERROR: expected}, "error")
    return [*columns, Column(title + EXPECTED, digits.columns[name].tolist(), True, digits.decimals)]


def _two_way(
    rows: Sequence[Row],
    facts: Mapping[str, Any],
    numbers: Mapping[str, Rounded],
    write: Write,
    of: str,
) -> tuple[list[Column], list[str]]:
    """Return a row for each key of the first column and a column for each of the second, with the margins last.

    Also return a note on the errors, which has the largest of each kind of cell; `of` is "unbiased " or empty.
    """
    (name,), levels = facts["measures"], facts["levels"]
    first, second = levels[0]["columns"]
    down, across = levels[1]["rows"], levels[2]["rows"]
    cells, edge = down * across, down * across + down  # the first row of each of the two margins
    made = numbers[name]
    values, errors = made.columns[name].tolist(), made.columns[name + ERROR]
    whole = [unlike("all", (row[column] for row in rows)) for column in (first, second)]
    columns = [
        Column(harmless(first), [*(_key(rows[row * across][first], "", write) for row in range(down)), whole[0]])
    ]
    for column in range(across):
        lines = [*range(column, cells, across), edge + column]
        title = f"{second} {label(rows[column][second], 'missing', write)}"
        columns.append(Column(harmless(title), [values[line] for line in lines], True, made.decimals))
    lines = [*range(cells, edge), len(rows) - 1]
    columns.append(Column(whole[1], [values[line] for line in lines], True, made.decimals))
    said, sizes, start = [], [], 0
    kinds = ("each cell", f"totals by {first}", f"totals by {second}", "the total")
    for kind, level in zip(kinds, levels, strict=True):
        most = float(np.max(errors[start : start + level["rows"]]))
        sizes.append(write(most, made.decimals))
        said.append(f"{sizes[-1]} ({kind})")
        start += level["rows"]
    if len(set(sizes)) == 1:
        return columns, [f"{margin_words(facts)} of each {of}number: ±{sizes[0]}"]
    return columns, [f"{margin_words(facts)}{of and ' of unbiased numbers'}: ±{', ±'.join(said)}"]


def _title(facts: Mapping[str, Any]) -> str:
    if subjects.across(facts):
        return subjects.short(facts)
    return ", ".join(_named(name, facts) for name in facts["measures"]) or subjects.without_numbers(facts)


def _named(name: str, facts: Mapping[str, Any]) -> str:
    """Return the name of a statistic for a title; a number computed from releases has words of its own."""
    return str(facts["measures"][name]["words"]) if "said" in facts else name


def _subtitle(facts: Mapping[str, Any], shown_ends: Mapping[str, Shown]) -> str:
    epsilon, delta = promised(facts)
    but = f", delta {at_least(delta, 3):.3g}" if delta else ""
    price = str(facts.get("said", f"differentially private: epsilon {at_least(epsilon, 4):.4g}{but}"))
    if not facts["measures"]:
        return price
    ranged = {f"{name}{LOW}" in facts["columns"] or shown_ends[name].is_cut for name in facts["measures"]}
    is_said = "said" in facts or (subjects.across(facts) and not facts["label"])  # the title names the numbers
    said = "" if is_said else f"{subjects.full(facts)}; "
    halves = f"; ±: {margin_words(facts)}" if False in ranged else ""
    ends = f"; from, to: {ends_words(facts)}" if True in ranged else ""
    return f"{said}{price}{halves}{ends}"
