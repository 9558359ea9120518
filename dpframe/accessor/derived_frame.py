"""``.dp`` of numbers that were computed from releases: their record, a chart, a table, a paragraph, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dpframe.accessor.changed_frame import Labels
from dpframe.accessor.joined import parts_of
from dpframe.accessor.released_frame import ReleasedFrame
from dpframe.derived.comparing import told
from dpframe.derived.record import shown
from dpframe.display import derived, result_charts, result_tables
from dpframe.display.layout import Asked
from dpframe.display.report import Section
from dpframe.errors import InvalidArgument
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, register
from dpframe.frames.prints import Places
from dpframe.release import provenance

RELEASE, READ = "Ask the released frame.", "Read the test off the frame."
NOT_HERE = {  # verbs that only releases have, and their replacements
    "errors": "Its intervals are in the columns NAME_error, or NAME_low and NAME_high.",
    "round": "Write .dp.table(), which rounds.",
    "suggest": RELEASE,
    "to_numpy": 'Write frame["NAME"].to_numpy().',
    "measurements": RELEASE,
    "total": RELEASE,
    "share": RELEASE,
    "cumulative": RELEASE,
    "rolling": RELEASE,
    "difference": RELEASE,
    "change": RELEASE,
    "chi2": RELEASE,
}


class DerivedFrame(ReleasedFrame):
    """The record of numbers that were computed from releases.

    `dpframe.combine` and ``.dp.total`` give such numbers.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> stays = pl.DataFrame({"ward": ["A", "B", "A"]})
    >>> wards = stays.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    >>> record = wards.dp.total().dp.provenance
    >>> record["schema"], record["kind"], record["cost"]["epsilon"]
    ('dpframe.derived/1', 'changed', 0.0)
    """

    def __getattribute__(self, name: str) -> Any:
        if name in NOT_HERE:
            of_test = super().__getattribute__("_records")[0]["verb"] == "chi2" and name in ("errors", "round")
            raise InvalidArgument(
                f"{name} must be asked of a release, and this frame is computed from some. "
                f"{READ if of_test else NOT_HERE[name]}"
            )
        return super().__getattribute__(name)

    def _shown(self) -> tuple[Any, dict[str, Any]]:
        """Return the frame and its record for tables and statements, and refuse changed numbers."""
        return self._placed(drawn=False)[:2]

    def _placed(self, *, drawn: bool) -> tuple[Any, dict[str, Any], Places]:
        """Return the frame, its record, and for each row of the record the matching row of the frame.

        Charts and two-way tables find cells of levels by position, so these rows are in the order of the record.
        """
        facts = provenance.counted(self._facts)
        frame, places = self._frame, provenance.checked_numbers(self._frame, facts)
        if "levels" in facts and (drawn or result_tables.is_two_way(facts)):
            frame, places = build.reordered(frame, places), np.arange(places.size)
        return (*shown(frame, facts), places)

    @trimmed
    def plot(
        self,
        *,
        x: str | None = None,
        color: str | None = None,
        facet: str | None = None,
        kind: Literal["bar", "line", "point", "heatmap"] | None = None,
        value: str | Sequence[str] | None = None,
        title: str | None = None,
        notes: bool | str | Sequence[str] = True,
        limit: int = 60,
        labels: Labels | None = None,
        covers: object = None,
    ) -> Any:
        """Draw a chart with intervals; the arguments except `covers` are as for a release.

        Raises
        ------
        InvalidArgument
            If `covers` is given: the frame states what these intervals cover. For a test, which has none.
        """
        if covers is not None:
            raise InvalidArgument(
                "covers must be left out: these intervals are computed, and the column covers says what they cover."
            )
        self._check_drawn("plot")
        asked = Asked(x, color, facet, kind, value, title, notes, limit)
        frame, facts, places = self._labeled(labels, "plot")._placed(drawn=True)
        if not (asked.lays_out or value) and (sides := derived.sides_of(facts, places)):
            return derived.of_comparison(frame, facts, sides, asked)
        if derived.statistics_of(frame, facts) > 1:
            return derived.of_effects(frame, facts, asked)
        return result_charts.of_result(frame, facts, {}, asked.renamed((labels or {}).get("columns") or {}))

    def _table(self, labels: Labels | None, look: result_tables.Look) -> result_tables.Table:
        """Return the table, with a column of p-values for tests."""
        self._check_drawn("table")
        frame, facts = self._labeled(labels, "table")._shown()
        table = result_tables.of_result(frame, facts, {}, look)
        if "p_value" not in self._facts["columns"]:
            return table
        tests = max(one.get("tests", 1) for one in self._facts["measures"].values())
        column = result_tables.Column("p", told(build.numbers(self._frame, "p_value").tolist(), tests))
        return replace(table, columns=(*table.columns, column))

    def _check_drawn(self, verb: str) -> None:
        """Refuse a chart or a table of a chi2 test, which has no interval."""
        if self._alone(verb)["verb"] == "chi2":
            raise InvalidArgument(
                f"{verb} must be of numbers with intervals, and chi2 is a test. Read it off the frame, or write "
                "statement()."
            )

    @trimmed
    def statement(self, *, unit: str | None = None) -> str:
        """Describe in a paragraph from which releases the numbers are computed, and their accuracy."""
        self._alone("statement")
        frame, facts = self._shown()
        return derived.statement_of(facts, frame, unit)

    def _sections(self, *, charts: bool, labels: Any = None, named: Any = None) -> list[Section]:
        """Return the section of each part for a page."""
        sections = []
        for frame, facts in parts_of(self._frame):
            words = (named or {}).get(facts["label"] or "", labels)
            part = DerivedFrame(frame, facts)._labeled(words, "write_html")
            part._check_drawn("write_html")
            plain, said = part._shown()
            table = part._table(None, result_tables.Look())
            chart = part.plot() if charts else None
            sections.append(derived.section(said, table, plain, chart))
        return sections

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in NOT_HERE]

    @property
    def _verbs(self) -> register.Verbs:
        """The verbs to list."""
        return register.OF_TESTS if self._records[0]["verb"] == "chi2" else register.OF_COMPUTED

    def _title(self) -> str:
        return ".dp of numbers computed from releases, which are public" + (f"; {self._stamp}" if self._stamp else "")
