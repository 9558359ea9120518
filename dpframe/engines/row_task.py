"""The parts that tasks on rows share."""

from __future__ import annotations

from typing import Any

from dpframe.engines.conditions import with_conditions
from dpframe.engines.source import ColumnType, Source, source_of
from dpframe.errors import InvalidType
from dpframe.privacy import PrivacyUnit


class RowTask:
    """The columns that a task reads, and of whom a piece must hold all rows. A task has both as fields."""

    unit: PrivacyUnit
    types: dict[str, ColumnType]  # of the columns that are read
    conditional: bool = False  # whether some are read under conditions

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return list(self.types)

    @property
    def by(self) -> str | None:
        """The column of the unit, whose rows must be in one piece."""
        return self.unit.column

    def _brought(self, frame: Any) -> Source:
        """A piece, whose dtypes must be those of the schema: keys and units are told apart by them."""
        source = source_of(frame)
        for name, column in self.types.items():
            if source.column(name).polars != column.polars:
                raise InvalidType("a piece must have the dtypes of the schema")
        return with_conditions(source) if self.conditional else source
