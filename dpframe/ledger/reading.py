"""Facts that a ledger wrote, read defensively: any malformed text raises ValueError and nothing else."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpframe.exact import Amount
from dpframe.privacy import PrivacyUnit

LONGEST = 100_000  # characters of a number: far more than any sum of typed costs has, and fast to read
RATIONAL = re.compile(r"(?:0|[1-9][0-9]*|0x[1-9a-f][0-9a-f]*)/(?:[1-9][0-9]*|0x[1-9a-f][0-9a-f]*)", re.ASCII)
HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
NONCE = re.compile(r"[0-9a-f]{32}", re.ASCII)

Pair = tuple[int, int]  # a nonnegative exact rational: numerator and denominator

NOTHING: Pair = (0, 1)
KINDS = ("charge", "limit", "recovery", "answer", "intent", "values")
NEEDED = frozenset(
    ("entry", "kind", "time", "label", "query", "unit", "amount", "total", "limit", "epsilon", "delta"),
)
KNOWN = NEEDED | {"version", "asked", "answer", "promises", "nonce", "stream", "period"}


def facts_of(text: object) -> dict[str, Any]:
    """Parse a JSON object."""
    if not isinstance(text, str):
        raise ValueError("no text")
    try:
        facts = json.loads(text)
    except RecursionError:  # lists in lists in lists
        raise ValueError("too deep") from None
    if not isinstance(facts, dict):
        raise ValueError("no object")
    return facts


def entry_facts(text: object) -> dict[str, Any]:
    """Parse the facts of an entry: all required ones, no unknown ones, each of its type."""
    facts = facts_of(text)
    if not (NEEDED <= facts.keys() <= KNOWN and facts["kind"] in KINDS):
        raise ValueError("other facts")
    strings = type(facts["time"]) is type(facts["query"]) is str
    costs = _is_cost(facts["epsilon"]) and _is_cost(facts["delta"])
    if not (strings and costs and type(facts["entry"]) is int and _is_name(facts["label"])):
        raise ValueError("other types")
    if "nonce" in facts:
        nonce(facts["nonce"])
    if len(facts) > len(NEEDED) + ("nonce" in facts):
        _check_rest(facts)
    return facts


def _check_rest(facts: dict[str, Any]) -> None:
    """Check the facts that only some entries have."""
    hashes, promises = facts.get("asked"), facts.get("promises", [])
    if not (hashes is None or (isinstance(hashes, dict) and all(isinstance(value, str) for value in hashes.values()))):
        raise ValueError("no hashes of public facts")
    if not (isinstance(promises, list) and all(isinstance(value, str) for value in promises)):
        raise ValueError("no hashes of records")
    if not (_is_name(facts.get("version")) and _is_name(facts.get("answer"))):
        raise ValueError("no text")
    stream, period = facts.get("stream"), facts.get("period")
    if not _is_name(stream) or (stream is None and period is not None):
        raise ValueError("no stream")
    if not (period is None or (type(period) is int and 0 < period < 2**31)):
        raise ValueError("no period")


def _is_cost(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1.7976931348623157e308  # type: ignore[operator]


def _is_name(value: object) -> bool:
    return value is None or type(value) is str


def pair(text: object) -> Pair:
    """Parse an exact rational as two whole numbers."""
    if not isinstance(text, str) or len(text) > LONGEST or RATIONAL.fullmatch(text) is None:
        raise ValueError("no rational")
    numerator, denominator = text.split("/")
    return int(numerator, 0), int(denominator, 0)


def pairs(texts: object, parts: int | None = None) -> tuple[Pair, ...]:
    """Parse exact rationals in order; `parts` is the required number of them, if known."""
    if not isinstance(texts, list) or parts not in (None, len(texts)):
        raise ValueError("no amount")
    return tuple([NOTHING if text == "0/1" else pair(text) for text in texts])


@lru_cache(maxsize=512)
def amount_of(texts: tuple[str, ...], parts: int) -> tuple[Pair, ...]:
    """Parse an amount as `pairs` does, with a cache, because many charges have equal amounts."""
    return pairs(list(texts), parts)


def fractions(texts: object) -> Amount:
    """Parse the amount of an entry."""
    if not isinstance(texts, list) or not all(isinstance(value, str) for value in texts):
        raise ValueError("no amount")
    return _fractions(tuple(texts))


@lru_cache(maxsize=512)
def _fractions(texts: tuple[str, ...]) -> Amount:
    return tuple(Fraction(*pair(text)) for text in texts)


def unit(facts: object) -> PrivacyUnit:
    """Parse the unit that is protected. A wrong value raises InvalidArgument, which is a ValueError."""
    if not isinstance(facts, dict) or facts.keys() != {"column", "max_rows", "max_groups", "neighbors", "nulls"}:
        raise ValueError("no unit")
    try:
        column = facts["column"]
        return _unit(**{**facts, "column": tuple(column) if isinstance(column, list) else column})
    except TypeError:  # a list in the place of a name
        raise ValueError("no unit") from None


@lru_cache(maxsize=64, typed=True)
def _unit(column: Any, max_rows: Any, max_groups: Any, neighbors: Any, nulls: Any) -> PrivacyUnit:
    facts = {"column": column, "neighbors": neighbors, "nulls": nulls, "max_rows": max_rows, "max_groups": max_groups}
    return PrivacyUnit.of_facts(facts)


def printable(written: str) -> str:
    """Return a text that every terminal and frame accepts: lone surrogates, which dpframe 0.1 allowed, are escaped."""
    return written if written.isascii() else written.encode("utf-8", "backslashreplace").decode("utf-8")


def text(value: object) -> str:
    """Check that a value is a string."""
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def text_or_none(value: object) -> str | None:
    """Check that a value is a string or None."""
    return None if value is None else text(value)


def whole(value: object) -> int:
    """Check the number of an entry: 0 to 2**31 - 1, the range of the databases' column."""
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError("no whole number")
    return value


def hexadecimal(value: object) -> str:
    """Check that a value is a SHA-256 hash in hexadecimal."""
    if not isinstance(value, str) or HASH.fullmatch(value) is None:
        raise ValueError("no hash")
    return value


def nonce(value: object) -> str:
    """Check that a value is 16 random bytes in hexadecimal."""
    if not isinstance(value, str) or NONCE.fullmatch(value) is None:
        raise ValueError("no random bytes")
    return value
