"""Tables of a job file: keys that are checked, and errors that say where in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dpframe.errors import DpframeError, InvalidArgument, InvalidType, MissingArgument, closest, reworded, shown
from dpframe.queries.keys import REST


@dataclass(frozen=True)
class Table:
    """One table: where it stands, for people to read, and its values."""

    where: str
    values: Mapping[str, Any]

    def check_keys(self, known: Iterable[str]) -> None:
        """Refuse a key that is none, with the one that was meant where it is clear."""
        names = sorted(known)
        for key in self.values:
            if key not in names:
                near = closest(key, names)
                way_out = f"Did you mean {near!r}?" if near else f"Its keys are {', '.join(names)}."
                raise InvalidArgument(f"{self.where}: {key!r} is not a key of this table. {way_out}")

    def text(self, key: str, example: str) -> str:
        """A string that must be there."""
        value = self.maybe_text(key)
        if value is None:
            raise MissingArgument(f"{self.where}: {key} must be given. Write for instance {example}.")
        return value

    def maybe_text(self, key: str) -> str | None:
        """A string, or None where there is none."""
        value = self.values.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise InvalidType(f"{self.where}: {key} must be a string that is not empty, not {shown(value)}.")
        return value

    def choice(self, key: str, options: Iterable[str], value: str | None) -> str | None:
        """The value of a key that must be one of a few words."""
        names = list(options)
        if value is None or value in names:
            return value
        near = closest(value, names)
        way_out = f"Did you mean {near!r}?" if near else "Take one of them."
        raise InvalidArgument(f"{self.where}: {key} must be one of {', '.join(names)}, not {shown(value)}. {way_out}")

    def table(self, key: str) -> Table:
        """A table inside this one; an empty one where there is none."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise InvalidType(f"{self.where}: {key} must be a table, not {shown(value)}. Write [{key}] above its keys.")
        return Table(f"{self.where.partition(',')[0]}, [{key}]", value)

    def tables(self, key: str) -> list[Table]:
        """The tables of a list, each of which says its number."""
        value = self.values.get(key, [])
        if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
            raise InvalidType(f"{self.where}: {key} must be a list of tables. Write [[{key}]] above the keys of each.")
        return [Table(f"{self.where}, [[{key}]] {number}", one) for number, one in enumerate(value, start=1)]


def plain(value: Any) -> Any:
    """A value of a file as Python has it: floats, None for ``{missing = true}`` and REST for ``{rest = true}``."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        if value == {"rest": True}:
            return REST
        return None if value == {"missing": True} else {name: plain(one) for name, one in value.items()}
    return value


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Say of a refusal to which part of the file it belongs."""
    try:
        yield
    except DpframeError as error:
        words = str(error)
        raise reworded(error, words if words.startswith(where) else f"{where}: {words}") from None
