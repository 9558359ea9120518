"""``.dp`` of what was computed from releases: its record, a chart, a table, a paragraph, files."""

from __future__ import annotations

from typing import Any

from dpframe.accessor.joined import parts_of
from dpframe.accessor.released_frame import ReleasedFrame
from dpframe.derived.record import shown
from dpframe.display import derived_words, result_charts, result_tables, rounding, table_formats
from dpframe.display.layout import Asked
from dpframe.display.report import Section
from dpframe.errors import InvalidArgument
from dpframe.errors.tracebacks import trimmed
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
        provenance.checked_numbers(self._frame, self._facts)
        return shown(self._frame, self._facts)

    @trimmed
    def plot(self, **asked: Any) -> Any:
        """A chart with intervals: `x`, `color`, `facet`, `kind`, `value`, `title`, `notes` as of a released result."""
        defaults = {"x": None, "color": None, "facet": None, "kind": None, "value": None, "title": None, "notes": True}
        frame, facts = self._shown()
        return result_charts.of_result(frame, facts, {}, Asked(**{**defaults, **asked}))

    @trimmed
    def table(self, format: str = "great_tables", **look: Any) -> Any:
        """A table for a report: `digits`, `locale` and `labels` as of a released result."""
        kind = table_formats.checked_format(format)
        frame, facts = self._shown()
        return table_formats.formatted(result_tables.of_result(frame, facts, {}, _look(**look)), kind)

    @trimmed
    def statement(self, *, unit: str | None = None) -> str:
        """A paragraph for readers without mathematics: from which releases it is computed, and how near it is."""
        frame, facts = self._shown()
        return derived_words.statement_of(facts, frame, unit)

    def _sections(self, *, charts: bool, labels: Any = None, named: Any = None) -> list[Section]:
        """A section for each part, for pages."""
        sections = []
        for frame, facts in parts_of(self._frame):
            part = DerivedFrame(frame, facts)
            plain, said = part._shown()
            table = result_tables.of_result(plain, said, {}, result_tables.Look())
            chart = part.plot() if charts else None
            sections.append(derived_words.section(said, table, statement=part.statement(), chart=chart))
        return sections

    def __repr__(self) -> str:
        stamp = f"{self._facts['warning']}; " if "warning" in self._facts else ""
        return f"<.dp of numbers computed from releases: {stamp}{OFFERED}>"


def _look(digits: Any = "error", **rest: Any) -> result_tables.Look:
    return result_tables.Look(None if digits is None else rounding.checked_digits(digits), **rest)
