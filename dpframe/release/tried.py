"""Work that is tried before anything is charged, on no rows: what fails is refused, with the error's own words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpframe.errors import InvalidArgument, WrongDtype
from dpframe.errors.withholding import STOPS

LONGEST_MESSAGE = 300


@contextmanager
def tried(kind: type[InvalidArgument | WrongDtype], rule: str, way_out: str) -> Iterator[None]:
    """Refuse what fails in here: "RULE (the error). Nothing was charged. WAY OUT"."""
    try:
        yield
    except STOPS:
        raise
    except BaseException as error:
        raise kind(f"{rule} ({said(error)}). Nothing was charged. {way_out}") from None


def said(error: BaseException) -> str:
    """The text of an error that has seen no row, on one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."
