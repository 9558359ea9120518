"""Tables of results for reports, by great-tables: an extra, imported when a table is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.display.denoised import denoised_words
from dpframe.display.pages import number
from dpframe.errors.words import harmless
from dpframe.frames import build
from dpframe.queries.query import ERROR, NOISY

NEEDS_TABLES = "tables need great-tables: pip install 'dpframe[tables]'"


def of_result(frame: Any, facts: Mapping[str, Any], errors: Mapping[str, NDArray[np.float64]]) -> Any:
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
    missing = "all" if "levels" in facts else "missing"
    shown: dict[str, list[str]] = {name: [_label(row[name], missing) for row in rows] for name in labels}
    for name in statistics:
        expected = errors[name].tolist() if name in errors else [None] * len(rows)
        shown[name] = [_with_error(row, name, error) for row, error in zip(rows, expected, strict=True)]
    places = {name: f"column{place}" for place, name in enumerate(shown)}  # a name may be a pattern to great-tables
    table = great_tables.GT(build.frame_of({places[name]: cells for name, cells in shown.items()}, "polars"))
    shown_names: dict[str, Any] = {place: harmless(name) for name, place in places.items()}
    table = table.cols_label(**shown_names)
    table = table.tab_header(title=harmless(facts["label"] or " and ".join(statistics)), subtitle=_subtitle(facts))
    table = table.cols_align(align="right", columns=[places[name] for name in statistics])
    for note in (*denoised_words(facts, number), *facts["notes"]):
        table = table.tab_source_note(harmless(note))
    return table


def _with_error(row: Mapping[str, Any], name: str, expected: float | None) -> str:
    noisy = row.get(name + NOISY)
    value = f"{number(row[name])} ± {number(row[name + ERROR])}"
    around = [] if noisy is None or noisy == row[name] else [f"around {number(noisy)}"]
    words = around + ([] if expected is None else [f"itself off by about {number(expected)}"])
    return f"{value} ({'; '.join(words)})" if words else value


def _label(value: Any, missing: str) -> str:
    if value is None or value != value:
        return missing
    return number(value) if isinstance(value, float) else harmless(str(value))


def _subtitle(facts: Mapping[str, Any]) -> str:
    cost = facts["cost"]
    delta = f", delta {cost['delta']:.3g}" if cost["delta"] else ""
    return f"differentially private: epsilon {cost['epsilon']:.4g}{delta}; ± is the 95% interval of the unbiased value"
