"""``.dp`` of what was computed from releases: its record, a chart, a table, a paragraph, files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpframe.accessor.changed_frame import Labels
from dpframe.accessor.joined import parts_of
from dpframe.accessor.released_frame import ReleasedFrame
from dpframe.derived.comparing import told
from dpframe.derived.record import shown
from dpframe.display import derived_words, result_charts, result_tables
from dpframe.display.layout import Asked
from dpframe.display.report import Section
from dpframe.errors import InvalidArgument
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build
from dpframe.release import provenance

NOT_HERE = (
    "errors",
    "round",
    "suggest",
    "to_numpy",
    "measurements",
    "total",
    "share",
    "cumulative",
    "rolling",
    "difference",
    "change",
    "chi2",
)


OFFERED = "provenance, plot, table, statement, write_parquet, write_html"


class DerivedFrame(ReleasedFrame):
    """The record of numbers that were computed from releases: what `dpframe.combine` and ``.dp.total`` give.

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
            raise InvalidArgument(
                f"{name} must be asked of a release, and this frame is computed from some. Ask the released frame, or "
                "write dpf.combine."
            )
        return super().__getattribute__(name)

    def _shown(self) -> tuple[Any, dict[str, Any]]:
        """The frame and its record as charts and tables read them; refused where something was changed."""
        facts = provenance.counted(self._facts)
        provenance.checked_numbers(self._frame, facts)
        return shown(self._frame, facts)

    @trimmed
    def plot(self, *, labels: Labels | None = None, **asked: Any) -> Any:
        """A chart with intervals: `x`, `color`, `facet`, `kind`, `value`, `title`, `notes`, `labels` as of a result."""
        defaults = {"x": None, "color": None, "facet": None, "kind": None, "value": None, "title": None, "notes": True}
        self._check_drawn("plot")
        frame, facts = self._labeled(labels, "plot")._shown()
        names = (labels or {}).get("columns") or {}
        return result_charts.of_result(frame, facts, {}, Asked(**{**defaults, **asked}).renamed(names))

    def _table(self, labels: Labels | None, look: result_tables.Look) -> result_tables.Table:
        """The table, of tests with their p-values."""
        self._check_drawn("table")
        frame, facts = self._labeled(labels, "table")._shown()
        table = result_tables.of_result(frame, facts, {}, look)
        if "p_value" not in self._facts["columns"]:
            return table
        tests = max(one.get("tests", 1) for one in self._facts["measures"].values())
        column = result_tables.Column("p", told(build.numbers(self._frame, "p_value").tolist(), tests))
        return replace(table, columns=(*table.columns, column))

    def _check_drawn(self, verb: str) -> None:
        """Refuse a chart or a table of a test that has no interval."""
        if self._facts["verb"] == "chi2":
            raise InvalidArgument(
                f"{verb} must be of numbers with intervals, and chi2 is a test. Read it off the frame."
            )

    @trimmed
    def statement(self, *, unit: str | None = None) -> str:
        """A paragraph for readers without mathematics: from which releases it is computed, and how near it is."""
        frame, facts = self._shown()
        return derived_words.statement_of(facts, frame, unit)

    def _sections(self, *, charts: bool, labels: Any = None, named: Any = None) -> list[Section]:
        """A section for each part, for pages."""
        sections = []
        for frame, facts in parts_of(self._frame):
            words = (named or {}).get(facts["label"] or "", labels)
            part = DerivedFrame(frame, facts)._labeled(words, "write_html")
            _, said = part._shown()
            table = part._table(None, result_tables.Look())
            chart = part.plot() if charts else None
            sections.append(derived_words.section(said, table, statement=part.statement(), chart=chart))
        return sections

    def __repr__(self) -> str:
        stamp = f"{self._facts['warning']}; " if "warning" in self._facts else ""
        return f"<.dp of numbers computed from releases: {stamp}{OFFERED}>"
