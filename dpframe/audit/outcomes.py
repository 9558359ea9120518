"""The outcome of one call: the numbers, and everything else as one text."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.audit.events import Floats
from dpframe.errors import InvalidArgument, shown
from dpframe.frames import build

ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")  # differs from object to object, and says nothing of the data
NUMERIC = "biuf"


@dataclass(frozen=True)
class Outcome:
    """One call: its numbers, one row per independent outcome, and the rest as text. No numbers where it raised."""

    numbers: Floats | None
    text: str


def observe(release: Callable[[], Any], outcomes: int) -> Outcome:
    """Call once, and keep all that a caller could see."""
    numbers = None
    with watched() as seen:
        try:
            arrays: list[Floats] = []
            seen["answer"] = _parts(release(), arrays)
            numbers = _rows(arrays, outcomes)
        except InvalidOutcomes as error:
            raise InvalidArgument(str(error)) from None
        except Exception as error:
            seen["raised"] = f"{type(error).__name__}: {error}"
    return Outcome(numbers, ADDRESS.sub("0x", json.dumps(seen, sort_keys=True, default=str)))


@contextlib.contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Warnings, log lines and prints of a call; dpframe's own log from its lowest level on."""
    seen: dict[str, Any] = {}
    printed, handler = io.StringIO(), logging.Handler()
    lines: list[str] = []
    handler.emit = lambda record: lines.append(f"{record.name} {record.levelname} {record.getMessage()}")  # type: ignore[method-assign]
    ours, root = logging.getLogger("dpframe"), logging.getLogger()
    level, spreads = ours.level, ours.propagate
    ours.addHandler(handler)
    root.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    ours.propagate = False
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            yield seen
    finally:
        ours.removeHandler(handler)
        root.removeHandler(handler)
        ours.setLevel(level)
        ours.propagate = spreads
    texts = [f"{warning.category.__name__}: {warning.message}" for warning in warned]
    seen |= {"warnings": texts, "logs": lines, "printed": printed.getvalue()}


class InvalidOutcomes(ValueError):
    """The rows of a call cannot be divided among its outcomes."""


def _rows(arrays: list[Floats], outcomes: int) -> Floats | None:
    """The numbers of a call, side by side, one row per outcome."""
    for numbers in arrays:
        if numbers.size % outcomes:
            raise InvalidOutcomes(
                f"outcomes must divide the {numbers.size:,} numbers that a call returns into equal parts, "
                f"not {outcomes:,}."
            )
    return np.concatenate([numbers.reshape(outcomes, -1) for numbers in arrays], axis=1) if arrays else None


def _parts(value: Any, arrays: list[Floats]) -> Any:
    """The text in a value, as JSON takes it; its numbers are appended to `arrays`."""
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        return _of_frame(value, arrays)
    if isinstance(value, dict):
        return {str(name): _parts(member, arrays) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        numbers = np.asarray(value, dtype=np.float64) if value and all(map(_is_number, value)) else None
        if numbers is None:
            return [type(value).__name__, *(_parts(member, arrays) for member in value)]
        arrays.append(numbers)
        return [type(value).__name__, len(value)]
    if _is_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in NUMERIC):
        array = np.asarray(value)
        arrays.append(array.astype(np.float64).reshape(-1))
        return [type(value).__name__, str(array.dtype), array.shape]
    return repr(value)


def _of_frame(frame: Any, arrays: list[Floats]) -> dict[str, Any]:
    """The text of a frame: its library, columns, dtypes, keys, their order, index, attrs and provenance."""
    record = build.record_of(frame)
    names = [str(name) for name in frame.columns]
    text: dict[str, Any] = {"library": f"{type(frame).__module__}.{type(frame).__name__}", "columns": names}
    if hasattr(frame, "collect"):
        return text | {"plan": str(frame)}
    columns = {name: frame[name] for name in frame.columns}
    text["dtypes"] = [str(column.dtype) for column in columns.values()]
    noisy = None if record is None else set(record["columns"])
    for name, column in columns.items():
        values = np.asarray(column.to_numpy())
        if values.dtype.kind in NUMERIC and (noisy is None or name in noisy):
            arrays.append(values.astype(np.float64))
        else:
            text[f"column {name}"] = [repr(cell) for cell in column.to_list()]
    attrs = {str(name): fact for name, fact in getattr(frame, "attrs", {}).items() if name != build.RECORD}
    index = getattr(frame, "index", None)
    levels = getattr(index, "tolist", lambda: None)()
    return text | {"rows": len(frame), "attrs": repr(attrs), "index": repr(levels), "provenance": public_record(record)}


def public_record(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """The provenance without what depends on noise, or on how many charges a ledger holds."""
    if record is None:
        return None
    facts = copy.deepcopy(record)
    for name in ("sha256", "ledger"):
        facts.pop(name, None)
    (facts.get("rows") or {}).pop("sha256", None)
    for statistic in facts["measures"].values():
        for step in statistic["denoise"] or []:
            step.pop("chose", None)
            step.pop("estimated_rmse", None)
    return facts


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))


def apart(first: list[str], second: list[str]) -> tuple[str, ...]:
    """The texts that only one side showed, each from a little before its difference from a text of the other side."""
    only = [(text, second) for text in sorted(set(first) - set(second))]
    only += [(text, first) for text in sorted(set(second) - set(first))]
    return tuple(_from_parting(text, others) for text, others in only[:4])


def _from_parting(text: str, others: list[str]) -> str:
    """The place where a text leaves the one that is nearest to it."""
    common = max((_common(text, other) for other in dict.fromkeys(others)), default=0)
    return shown(text[max(0, common - 30) : common + 28])


def _common(text: str, other: str) -> int:
    """The number of characters that two texts begin with alike."""
    alike = next((index for index, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), None)
    return min(len(text), len(other)) if alike is None else alike
