"""RAPPOR's memory: bits that follow from a secret, and not from the value, so that they need not be stored to stay."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, named
from dpframe.exact import exactly
from dpframe.frames.columns import column_frame, values_of

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]

SIZE = 2**256  # how many values an HMAC-SHA256 has
SHORTEST = 16  # bytes of a secret


@dataclass(frozen=True)
class Drawn:
    """The draws for each person: a cohort, a value where there was none, and which bits are free of the truth."""

    cohort: Integers
    truth: Integers
    free: Flags  # whether the bit is random
    ones: Flags  # and then what it is

    def applied(self, bits_of: Callable[[Integers, Integers], Flags]) -> Flags:
        """The permanent bits."""
        return np.where(self.free, self.ones, bits_of(self.truth, self.cohort))


@dataclass(frozen=True, repr=False)
class Memo:
    """The person of each row, the period, and the secret from which each person's own follows."""

    secret: bytes
    people: tuple[str, ...]
    period: str | None
    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes):
            raise InvalidType(f"secret must be bytes, not {named(self.secret)}. Write secrets.token_bytes(32).")
        if len(self.secret) < SHORTEST:
            raise InvalidArgument(f"secret must be at least {SHORTEST} random bytes. Write secrets.token_bytes(32).")
        if not (self.period is None or isinstance(self.period, str)):
            raise InvalidType(f'period must be text or None, not {named(self.period)}. Write for instance "2026-11".')

    def first_rows(self, rows: int) -> tuple[Integers, Integers]:
        """The first row of each person, and which person each row is of."""
        if len(self.people) != rows:
            raise InvalidArgument(f"people must name one person a row, {rows:,} in all, not {len(self.people):,}.")
        _, first, whose = np.unique(np.array(self.people, dtype=object), return_index=True, return_inverse=True)
        return first, whose

    def draws(self, method: Any, truth: Integers) -> Drawn:
        """Draw from the secret for each person, in the order of `first_rows`; the value is no part of it."""
        facts = method.facts()
        digest = hashlib.sha256(
            json.dumps({name: facts[name] for name in facts if name not in ("p", "q")}).encode()
        ).digest()
        period = b"" if self.period is None else b"period" + self.period.encode()
        kept = joined(digest, self.column.encode(), period)
        people = sorted(set(self.people))
        each = [hmac.digest(self.secret, joined(b"person", person.encode()), "sha256") for person in people]
        # One at a time: HMAC has no other form, here and below.
        cohort = np.array(
            [number(secret, joined(digest, b"cohort")) % method.cohorts for secret in each], dtype=np.int64
        )
        instead = np.array([number(secret, joined(kept, b"value")) % len(method.categories) for secret in each])
        f = exactly("f", method.f)
        bits = [joined(kept, b"bit", str(bit).encode()) for bit in range(method.width)]
        numbers = [[number(secret, bit) for bit in bits] for secret in each]
        return Drawn(cohort, np.where(truth < 0, instead, truth), below(numbers, f), below(numbers, f / 2))


def joined(*parts: bytes) -> bytes:
    """Parts with their lengths, so that no two lists of parts are the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def number(secret: bytes, message: bytes) -> int:
    """HMAC-SHA256 as a number of 256 bits."""
    return int.from_bytes(hmac.digest(secret, message, "sha256"), "big")


def below(numbers: Sequence[Sequence[int]], chance: Fraction) -> Flags:
    """Tell whether each number of 256 bits is in the lowest part `chance` of all, rounded up; all bits are compared."""
    most = -(-chance.numerator * SIZE // chance.denominator)
    return np.array([[value < most for value in row] for row in numbers], dtype=np.bool_)


def checked_people(people: Any) -> tuple[str, ...]:
    """The person of each row, told apart by type and value: 1 and "1" are two."""
    values = list(people) if isinstance(people, (list, tuple)) else values_of(*column_frame(people, "people"))
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidType("people must be text or whole numbers, each of them there. Cast the column to text.")
    return tuple(f"{type(value).__name__}:{value}" for value in values)
