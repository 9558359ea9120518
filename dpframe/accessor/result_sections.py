"""Released results worked on for people: a section of a page, and the bounds that a grid of contributions suggests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dpframe.display import result_page, result_tables
from dpframe.display.report import Section
from dpframe.errors import MissingArgument
from dpframe.exact import checked_whole
from dpframe.frames import build, foreign
from dpframe.planning import suggestion
from dpframe.planning.cut_units import Cells
from dpframe.privacy import PrivacyUnit
from dpframe.release import provenance


class Shown(Protocol):
    """A release that says of itself what a page shows."""

    def plot(self) -> Any:
        """The chart."""

    def statement(self) -> str:
        """The paragraph."""


def section_of(release: Shown, frame: Any, said: dict[str, Any], *, charts: bool) -> Section:
    """The section of one release in a page; of a choice without numbers it is a table alone."""
    facts = provenance.counted(said)
    look = result_tables.Look()
    if not facts["measures"] and not foreign.is_reports(facts):
        provenance.checked(frame, facts)
        table = result_tables.of_result(frame, facts, {}, look)
        return result_page.section(facts, table, said, statement="", chart=None, errors=[])
    places = provenance.checked_numbers(frame, facts)
    errors = provenance.errors(build.reordered(frame, places), facts)
    table = table_of(frame, facts, look)
    chart = release.plot() if charts else None
    return result_page.section(facts, table, said, statement=release.statement(), chart=chart, errors=errors)


def table_of(frame: Any, facts: Mapping[str, Any], look: result_tables.Look) -> result_tables.Table:
    """The table of a release with numbers: row by row in the order of the frame, two-way in that of the keys."""
    places = provenance.checked_numbers(frame, facts)
    if result_tables.is_two_way(facts):  # whose rows are found by where they stand
        frame, places = build.reordered(frame, places), np.arange(len(places))
    return result_tables.of_result(frame, facts, provenance.cell_errors(facts, places), look)


def suggested(
    frame: Any, facts: Mapping[str, Any], *, epsilon: Any, delta: Any, mechanism: str | None, most_rows: Any
) -> tuple[list[dict[str, Any]], str | None]:
    """The contribution bounds that a grid of contributions speaks for, the best first, and what is wrong with them.

    The words name the epsilon that would do.
    """
    if epsilon is None:
        raise MissingArgument("epsilon must be given: the cost of the planned count. Write for instance epsilon=0.5.")
    rule = "a whole number from 1 to 2**31"
    most = None if most_rows is None else checked_whole("most_rows", most_rows, 1, 2**31, rule)
    places = provenance.checked_numbers(frame, facts)
    frame, shape = build.reordered(frame, places), foreign.shape(facts)
    noisy = "count_noisy" if "count_noisy" in facts["columns"] else "count"
    names = ("rows_left", "rows_right", "groups_left", "groups_right", noisy)
    *each, values = (build.numbers(frame, name).reshape(shape) for name in names)
    ends, law = dict(zip(names, each, strict=False)), facts["statistics"][0]
    unit, groups = PrivacyUnit.of_facts(facts["unit"]), facts["groups"]["size"]
    price = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
    cells = Cells.of(ends, values, law, most)
    return suggestion.candidates(
        suggestion.grid_of(ends, values, law),
        cells,
        unit,
        groups,
        **price,
        paid=float(facts["cost"]["epsilon"]),
        rows_too=most is not None,
    )
