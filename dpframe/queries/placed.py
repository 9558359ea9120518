"""Values that mean something in one place of a call only, and the refusal of them in any other."""

from __future__ import annotations

from typing import ClassVar

from dpframe.errors import InvalidType


class Placed:
    """A public value that stands in one place; `where` says which, and how to write it there."""

    where: ClassVar[str]


def refuse_misplaced(value: object) -> None:
    """Refuse a value that stands somewhere else."""
    if isinstance(value, Placed):
        raise InvalidType(value.where)
