"""Tables of results for reports, by great-tables: an extra, imported when a table is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display.denoised import denoised_words
from dpframe.display.pages import number
from dpframe.errors.words import harmless
from dpframe.frames import build
from dpframe.queries.query import ERROR, NOISY

Column = tuple[str, list[str]]  # its title, and what stands in it
Errors = Mapping[str, NDArray[np.float64]]  # of denoised values, by the name of their column

MOST_ACROSS = 30  # columns of a two-way table; a wider one is shown row by row
NEEDS_TABLES = "tables need great-tables: pip install 'dpframe[tables]'"


def of_result(frame: Any, facts: Mapping[str, Any], errors: Errors) -> Any:
    """A row per cell, each measure as its value and its 95% error; what it cost stands below.

    `errors` are, by measure, the expected errors of denoised values, in the order of the rows.
    """
    try:
        import great_tables
    except ImportError:
        raise ImportError(NEEDS_TABLES) from None
    rows = build.rows(frame)
    statistics = list(facts["measures"])
    labels = [name for name in (rows[0] if rows else {}) if name not in facts["columns"]]
    if _is_two_way(facts):
        named, shown = labels[:1], _two_way(rows, labels, statistics[0], facts["levels"])
    else:
        named, shown = labels, _long(rows, labels, errors, statistics, "all" if "levels" in facts else "missing")
    identifiers = [f"column{number}" for number in range(len(shown))]  # a name may be a pattern to great-tables
    cells = {identifier: column for identifier, (_, column) in zip(identifiers, shown, strict=True)}
    table = great_tables.GT(build.frame_of(cells, "polars"))
    shown_names: dict[str, Any] = {
        identifier: harmless(name) for identifier, (name, _) in zip(identifiers, shown, strict=True)
    }
    table = table.cols_label(**shown_names)
    table = table.tab_header(title=harmless(facts["label"] or " and ".join(statistics)), subtitle=_subtitle(facts))
    table = table.cols_align(align="right", columns=identifiers[len(named) :])
    for note in (*denoised_words(facts, number), *facts["notes"]):
        table = table.tab_source_note(harmless(note))
    return table


def _is_two_way(facts: Mapping[str, Any]) -> bool:
    """Tell whether it is one number for each pair of keys, with both margins, and not too wide to be read."""
    levels = [level["columns"] for level in facts.get("levels", ())]
    two_way = len(levels) == 4 and len(levels[0]) == 2 and len(facts["measures"]) == 1
    return two_way and facts["levels"][2]["rows"] <= MOST_ACROSS


def _long(
    rows: Sequence[Mapping[str, Any]], labels: Sequence[str], errors: Errors, statistics: Sequence[str], missing: str
) -> list[Column]:
    """A line for each row of the result."""
    columns = [(name, [_label(row[name], missing) for row in rows]) for name in labels]
    for name in statistics:
        expected = errors[name].tolist() if name in errors else [None] * len(rows)
        columns.append((name, [_with_error(row, name, error) for row, error in zip(rows, expected, strict=True)]))
    return columns


def _two_way(
    rows: Sequence[Mapping[str, Any]], labels: Sequence[str], name: str, levels: Sequence[Mapping[str, Any]]
) -> list[Column]:
    """A line for each key of the first column, a column for each of the second; the margins stand last."""
    down, across = levels[1]["rows"], levels[2]["rows"]
    cells, edge = down * across, down * across + down  # where the margins of the first and of the second column begin
    columns = [(labels[0], [*(_label(rows[row * across][labels[0]], "") for row in range(down)), "all"])]
    for column in range(across):
        lines = [*range(column, cells, across), edge + column]
        title = f"{labels[1]} {_label(rows[column][labels[1]], '')}"
        columns.append((title, [_with_error(rows[line], name) for line in lines]))
    return [*columns, ("all", [_with_error(row, name) for row in (*rows[cells:edge], rows[-1])])]


def _with_error(row: Mapping[str, Any], name: str, expected: float | None = None) -> str:
    noisy = row.get(name + NOISY)
    value = f"{number(row[name])} ± {number(row[name + ERROR])}"
    around = [] if noisy is None or noisy == row[name] else [f"around {number(noisy)}"]
    words = around + ([] if expected is None else [f"itself off by about {number(expected)}"])
    return f"{value} ({'; '.join(words)})" if words else value


def _label(value: Any, missing: str) -> str:
    if value is None or value != value:
        return missing
    return number(value) if isinstance(value, float) else harmless(str(value).removesuffix(" 00:00:00"))  # of a day


def _subtitle(facts: Mapping[str, Any]) -> str:
    cost = facts["cost"]
    delta = f", delta {cost['delta']:.3g}" if cost["delta"] else ""
    interval = (
        "holds for all categories at once with 95%" if "top" in facts else "is the 95% interval of the unbiased value"
    )
    return f"differentially private: epsilon {cost['epsilon']:.4g}{delta}; ± {interval}"
