"""RAPPOR: permanent bits, drawn once for a period or derived from a secret, and any number of reports from them."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, named, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import checked_whole, exact_epsilon, exactly, rounded_up, to_digits
from dpframe.frames.columns import GENERATED, column_frame, own_name, taken, typed_frame, values_of
from dpframe.frames.kinds import library_of
from dpframe.local import report_text
from dpframe.local.categorical import question_of, truths
from dpframe.local.method import (
    LocalMethod,
    check_cells,
    checked_categories,
    checked_key,
    checked_probability,
    hashed_places,
    wider_variances,
)
from dpframe.noise import coins
from dpframe.queries.query import Query
from dpframe.release import randomizing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

DIGITS = 60
MOST_CATEGORIES = 1_000  # the matrix of all pairs is inverted
WORST_CONDITION = 1e8
SIZE = 2**256  # the number of values of HMAC-SHA256
SHORTEST = 16  # bytes of the shortest secret
MOST_HASHES = 16
HASHES = f"a whole number from 1 to {MOST_HASHES}"


@dataclass(frozen=True)
class Rappor(LocalMethod):
    """RAPPOR: bits are randomized once for a period, and again in every report.

    The bits of a value, randomized once, are permanent: the client keeps them for the period.

    Parameters
    ----------
    categories : list, tuple or range
        The declared values, from what you know and never from the data; None stands for a missing value.
    f : float
        A permanent bit is 1 with probability f / 2, 0 with f / 2, and otherwise the truth. Above 0 and below 1.
    p, q : float
        A report's bit is 1 with probability q if the permanent bit is 1, otherwise with p; p < q.
    hashes : int
        The number of bits that a value sets: 1 without `bits`.
    bits : int, optional
        The length of a Bloom filter; by default, each category has its own bit.
    cohorts : int
        The number of groups into which people are divided at random, each with its own hash functions.
    key : str
        Public text that determines the hash functions.

    Notes
    -----
    Erlingsson, Pihur and Korolova (2014). All reports of a period are made from the permanent bits. Together they cost
    at most `epsilon_forever` = 2 h ln((1 - f/2) / (f/2)), however many they are, and this is charged to a ledger. One
    report alone costs `epsilon_once`. See ``docs/guide/local.md`` for how a client keeps its bits.

    Examples
    --------
    >>> import dpframe as dpf
    >>> method = dpf.local.Rappor(["a", "b", "c"], f=0.25, p=0.25, q=0.75)
    >>> round(method.epsilon_forever, 6), round(method.epsilon_once, 6)
    (3.89182, 1.576915)
    """

    categories: tuple[Any, ...]
    f: Any
    p: Any
    q: Any
    hashes: int = 1
    bits: int = 0
    cohorts: int = 1
    key: str = ""
    name: ClassVar[str] = "RAPPOR"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked_categories(self.categories))
        for name in ("f", "p", "q"):
            object.__setattr__(self, name, checked_probability(name, getattr(self, name)))
        if not 0 < self._exact("f") < 1:
            raise InvalidArgument(f"f must be above 0 and below 1, not {shown(self.f)}. Write for instance f=0.5.")
        if not self._exact("p") < self._exact("q"):
            raise InvalidArgument(f"p must be below q, not {shown(self.p)} and {shown(self.q)}. Swap them.")
        for name, most in (
            ("hashes", MOST_HASHES),
            ("bits", report_text.LARGEST),
            ("cohorts", report_text.LARGEST),
        ):
            least = 0 if name == "bits" else 1
            value = checked_whole(name, getattr(self, name), least, most, f"a whole number from {least} to {most:,}")
            object.__setattr__(self, name, value)
        if not self.bits and (self.hashes, self.cohorts) != (1, 1):
            raise InvalidArgument("bits must be given with hashes or cohorts: without it each category has a bit.")
        if self.bits and not (self.bits > 1 and len(self.categories) <= MOST_CATEGORIES):
            raise InvalidArgument(f"bits must be at least 2, for at most {MOST_CATEGORIES:,} categories. Leave it out.")
        if self.bits:
            larger = max(self.bits, len(self.categories))
            check_cells(
                "cohorts times categories times bits or categories", self.cohorts * len(self.categories) * larger
            )
        object.__setattr__(self, "key", checked_key(self.key))

    @classmethod
    def for_epsilon(cls, categories: Any, epsilon: Any, **parameters: Any) -> Self:
        """Return the method whose `epsilon_forever` is `epsilon` or just below.

        By default, p = 1/2 and q = 3/4.

        Examples
        --------
        >>> import dpframe as dpf
        >>> method = dpf.local.Rappor.for_epsilon(["a", "b"], epsilon=2)
        >>> round(float(method.f), 6), method.epsilon_forever <= 2
        (0.537883, True)
        """
        import mpmath

        exact = exact_epsilon(epsilon)
        hashes = checked_whole("hashes", parameters.get("hashes", 1), 1, MOST_HASHES, HASHES)
        with to_digits(DIGITS):
            f = 2 / (1 + mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator / 2 / hashes))
            steps = int(mpmath.ceil(f * 10**15))  # rounded up: more noise
        return cls(categories, Fraction(steps, 10**15), **{"p": 0.5, "q": 0.75, **parameters})

    def _exact(self, name: str) -> Fraction:
        return exactly(name, getattr(self, name))

    @property
    def width(self) -> int:
        """The number of bits of a report."""
        return self.bits or len(self.categories)

    @property
    def seen(self) -> tuple[Fraction, Fraction]:
        """The probabilities p* and q* that a report's bit is 1.

        They are for values that do not set the bit, and that do.
        """
        f, p, q = map(self._exact, "fpq")
        return f * (p + q) / 2 + (1 - f) * p, f * (p + q) / 2 + (1 - f) * q

    @property
    def loss(self) -> Fraction:
        """The epsilon that is charged, for all reports of a period together."""
        return Fraction(self.epsilon_forever)

    @property
    def epsilon_forever(self) -> float:
        """The epsilon of any number of reports from the same permanent bits, rounded up."""
        return _odds(2 * self.hashes, 1 - self._exact("f") / 2, self._exact("f") / 2)

    @property
    def epsilon_once(self) -> float:
        """The epsilon of one report whose permanent bits are never used again, rounded up."""
        low, high = self.seen
        if low == 0 or high == 1:
            return math.inf
        return _odds(self.hashes, high * (1 - low), low * (1 - high))

    @property
    def permanent(self) -> Rappor:
        """The method whose reports are the permanent bits themselves."""
        return replace(self, p=0, q=1)

    def variance(self, n: int = 1, share: float = 0.0) -> float:
        """Return the variance of an unbiased count, if `share` of `n` people have the category.

        Each category has its own bit.
        """
        low, high = map(float, self.seen)
        return n * (share * high * (1.0 - high) + (1.0 - share) * low * (1.0 - low)) / (high - low) ** 2

    @cached_property
    def _filters(self) -> coins.Flags | None:
        if not self.bits:
            return None
        return filters(self.key, self.cohorts, self.hashes, len(self.categories), self.bits)

    def question(self, column: str) -> Query:
        """Return the query that reads a row."""
        return question_of(column, self.categories)

    def reports(self, rows: Integers) -> list[str]:
        """Return a text for each row, from permanent bits that are drawn for it and not kept."""
        truth = truths(rows, len(self.categories))
        cohort = coins.uniform(self.cohorts - 1, truth.size)
        texts: list[str] = []
        for some in report_text.batches(truth.size, self.width):
            bits = self.bits_of(truth[some], cohort[some])
            free = coins.tossed(coins.Chance.of(self._exact("f")), bits.size).reshape(bits.shape)
            half = coins.tossed(coins.Chance(1, 1), bits.size).reshape(bits.shape)
            texts += self._written(self._responded(np.where(free, half, bits)), cohort[some])
        return texts

    def bits_of(self, truth: Integers, cohort: Integers) -> coins.Flags:
        """Return the bits that values set, without any randomness."""
        if self._filters is not None:
            return np.asarray(self._filters[cohort, truth])
        bits = np.zeros((truth.size, self.width), dtype=np.bool_)
        bits[np.arange(truth.size), truth] = True
        return bits

    def _responded(self, permanent: coins.Flags) -> coins.Flags:
        """Return the bits of reports, drawn anew from permanent bits."""
        low, high = (coins.Chance.of(self._exact(name)) for name in "pq")
        shape = permanent.shape
        ones, zeros = (coins.tossed(chance, permanent.size).reshape(shape) for chance in (high, low))
        return np.where(permanent, ones, zeros)

    def _written(self, bits: coins.Flags, cohort: Integers) -> list[str]:
        return report_text.written(bits, cohort if self.cohorts > 1 else None)

    def _read(self, frame: Any, column: str) -> tuple[list[Any], Any]:
        values = values_of(frame, column)
        words = f"text of {self.width} bits" + (f" and one of {self.cohorts} cohorts" if self.cohorts > 1 else "")
        return values, report_text.read(values, self.width, words, numbers=self.cohorts if self.cohorts > 1 else 0)

    @trimmed
    def memoize(self, series: Any, *, secret: bytes, people: Any, period: str | None = None) -> Any:
        """Draw people's permanent bits for a period from secrets: once, to keep.

        Call it once, keep the bits, and make each `report` from them.

        Parameters
        ----------
        series : Series of pandas or Polars
            The value of each row's person at the first report of the period. If a person has several rows, the first
            one counts.
        secret : bytes
            At least 16 random bytes that never leave the client (``secrets.token_bytes(32)``).
        people : Series or list
            The person of each row: text or whole numbers. A client alone writes ``people=["me"]``.
        period : str, optional
            The name of the period, which is declared and public; without it, there is one period for all time.

        Returns
        -------
        Series
            Permanent bits as text. You may store them where you may not store the value: they cost `epsilon_forever`,
            once.

        Notes
        -----
        The bits are those of HMAC-SHA256 under HMAC(secret, person), so that a client that crashed before it kept them
        makes the same ones. The value is not hashed: bits that change with the value would reveal that it changed. For
        the same reason, never call this again in a period with another value: the kept bits stay. The guarantee is
        computational here: it holds against anyone who cannot distinguish HMAC-SHA256 from random bits.

        The name of the series is hashed too: name each question differently, and never rename it. Two questions of one
        name would share their random bits, and so reveal whether their answers differ. A series without a name is
        refused, and so are names that libraries generate, such as ``column_0``.
        """
        _, name = column_frame(series)
        if GENERATED.fullmatch(own := own_name(series)):
            raise InvalidArgument(
                f"series must have a name that you chose, not {shown(own)}: two columns without one would share their "
                'random bits. Write for instance pl.Series("home", values).'
            )
        known = Memo(secret, checked_people(people), period, name)
        return randomizing.randomized_series(series, _Memoized(self, known))

    @trimmed
    def report(self, permanent: Any) -> Any:
        """Make a new report from each row of permanent bits, at no further cost.

        Parameters
        ----------
        permanent : Series, or released frame of one column
            The result of `memoize`, or of ``df.dp.local.randomize`` with ``method=method.permanent``.

        Returns
        -------
        Series
            A report for each row.
        """
        randomizing.refuse_exact()
        frame, name = column_frame(permanent, "permanent")
        _, parts = self._read(frame, name)
        texts = [text for cohort, bits in parts for text in self._written(self._responded(bits), cohort)]
        return taken(typed_frame(name, texts, self.examples, library_of(frame)), name)

    @trimmed
    def randomize(  # with more parameters than other methods
        self, series: Any, *, secret: bytes | None = None, people: Any = None, period: str | None = None
    ) -> Any:
        """Make one report for each row.

        With `people`, it is made from the permanent bits of `memoize`; otherwise, from bits that are not kept.

        Parameters
        ----------
        series : Series of pandas or Polars
            A person's own values. Nothing is charged, since this is the client's side.
        secret, people, period
            As in `memoize`. Without any of them, nothing is memoized. Pass `people` with the others: two people with
            equal values must not share bits.

        Returns
        -------
        Series
            The reports.
        """
        if people is None:
            if secret is not None or period is not None:
                raise InvalidArgument(
                    "people must be given with secret or period: without it, each call draws the bits anew and keeps "
                    'none. Write for instance people=["me"].'
                )
            return randomizing.randomized_series(series, self)
        if secret is None:
            raise InvalidArgument(
                "secret must be given with people. Write secret=secrets.token_bytes(32), and keep it."
            )
        return self.report(self.memoize(series, secret=secret, people=people, period=period))

    def estimates(self, frame: Any, column: str) -> tuple[int, Floats, Floats]:
        """Return the number of reports, the unbiased counts and their variances."""
        values, parts = self._read(frame, column)
        ones, each = np.zeros((self.cohorts, self.width), dtype=np.int64), np.zeros(self.cohorts, dtype=np.int64)
        for cohort, bits in parts:
            report_text.summed(ones, cohort, bits)
            each += np.bincount(cohort, minlength=self.cohorts)
        low, high = map(float, self.seen)
        truths_of_bits = (ones - each[:, None] * low) / (high - low)
        if self._filters is None:
            n, counts = len(values), truths_of_bits[0]
            return n, counts, wider_variances(counts, n, self.variance(n), self.variance(n, 1.0), high - low)
        return len(values), *decoded(self._filters, truths_of_bits, len(values), low, high)


@dataclass(frozen=True)
class _Memoized:
    """RAPPOR's permanent bits as a method, so that the code that reads rows needs no `Memo`."""

    method: Rappor
    memo: Memo
    examples: ClassVar[tuple[Any, ...]] = ("",)

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def loss(self) -> Fraction:
        return self.method.loss

    def facts(self) -> dict[str, Any]:
        return self.method.facts()

    def question(self, column: str) -> Query:
        return self.method.question(column)

    def reports(self, rows: Integers) -> list[str]:
        if not rows.size:  # the trial on no rows
            return []
        method = self.method
        first, whose = self.memo.first_rows(rows.size)
        drawn = self.memo.draws(method, rows[first])
        permanent = drawn.applied(method.bits_of)
        return method._written(permanent[whose], drawn.cohort[whose])


def _odds(times: int, above: Fraction, below: Fraction) -> float:
    """Return `times` ln(above / below), rounded up."""
    import mpmath

    ratio = above / below
    with to_digits(DIGITS):
        exact = times * mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        return rounded_up(exact * (1 + mpmath.mpf(10) ** -50))  # more than the rounding error


def filters(key: str, cohorts: int, hashes: int, categories: int, bits: int) -> Flags:
    """Return the bits that each category sets in each cohort."""
    places = hashed_places(key, cohorts * hashes, categories, bits).reshape(cohorts, hashes, categories)
    sets = np.zeros((cohorts, categories, bits), dtype=np.bool_)
    for function in range(hashes):
        np.put_along_axis(sets, places[:, function, :, None], True, axis=2)
    return sets


def decoded(sets: Flags, bits: Floats, n: int, low: float, high: float) -> tuple[Floats, Floats]:
    """Return the unbiased counts of categories and their variances.

    `bits` are unbiased counts of each cohort's bits. The score of a category is the mean over its bits, added up over
    cohorts. If people are in random cohorts, the expected scores are the counts times a public matrix of overlaps,
    which is inverted. The variance is that of one report given its value, over bits and cohorts. It is added up with
    the estimates in place of the true counts.
    """
    each = sets / sets.sum(axis=2, keepdims=True)
    overlaps = np.einsum("cdj,cej->cde", each, sets.astype(np.float64), optimize=True)
    matrix = overlaps.mean(axis=0)
    if np.linalg.cond(matrix) > WORST_CONDITION:
        raise InvalidArgument("bits and cohorts must tell all categories apart, and these do not. Take more of them.")
    inverse = np.linalg.inv(matrix)
    counts = inverse @ np.einsum("cdj,cj->d", each, bits)
    likely = np.clip(counts, 0.0, n)
    likely *= min(1.0, n / max(likely.sum(), 1.0))
    likely += (n - likely.sum()) / len(likely)  # people whom no estimate shows are spread evenly
    variances = -(np.eye(len(counts)) ** 2 @ likely)
    unset, more = low * (1.0 - low), high * (1.0 - high) - low * (1.0 - low)
    for means, overlap, ones in zip(each, overlaps, sets, strict=True):  # one cohort at a time, to save memory
        weights = (inverse @ means) ** 2
        noise = (weights.sum(axis=1) * unset * likely.sum() + more * (weights @ (likely @ ones))) / (high - low) ** 2
        variances += (noise + (inverse @ overlap) ** 2 @ likely) / len(sets)
    return counts, np.maximum(variances, 0.0)


@dataclass(frozen=True)
class Drawn:
    """The draws for each person: a cohort, a value if there is none, and free bits.

    The free bits do not depend on the truth.
    """

    cohort: Integers
    truth: Integers
    free: Flags  # whether the bit is random
    ones: Flags  # its value if it is random

    def applied(self, bits_of: Callable[[Integers, Integers], Flags]) -> Flags:
        """Return the permanent bits."""
        return np.where(self.free, self.ones, bits_of(self.truth, self.cohort))


@dataclass(frozen=True, repr=False)
class Memo:
    """The person of each row, the period, and the secret.

    Each person's own secret follows from it.
    """

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
        """Return the first row of each person, and the person of each row."""
        if len(self.people) != rows:
            raise InvalidArgument(f"people must name one person a row, {rows:,} in all, not {len(self.people):,}.")
        _, first, whose = np.unique(np.array(self.people, dtype=object), return_index=True, return_inverse=True)
        return first, whose

    def draws(self, method: Any, truth: Integers) -> Drawn:
        """Draw from the secret for each person, in the order of `first_rows`.

        The draws do not depend on the value.
        """
        facts = {name: fact for name, fact in method.facts().items() if name not in ("p", "q")}
        facts |= {"f": _spelled(method.f), "categories": [_as_integer(value) for value in method.categories]}
        digest = hashlib.sha256(json.dumps(facts).encode()).digest()
        period = b"" if self.period is None else b"period" + _text_bytes(self.period)
        kept = joined(digest, _text_bytes(self.column), period)
        people = sorted(set(self.people))
        each = [hmac.digest(self.secret, joined(b"person", _text_bytes(person)), "sha256") for person in people]
        # HMAC has no vectorized form, so the draws here and below are made one at a time.
        cohort = np.array(
            [number(secret, joined(digest, b"cohort")) % method.cohorts for secret in each], dtype=np.int64
        )
        instead = np.array([number(secret, joined(kept, b"value")) % len(method.categories) for secret in each])
        f = exactly("f", method.f)
        bits = [joined(kept, b"bit", str(bit).encode()) for bit in range(method.width)]
        numbers = [[number(secret, bit) for bit in bits] for secret in each]
        return Drawn(cohort, np.where(truth < 0, instead, truth), below(numbers, f), below(numbers, f / 2))


def _spelled(f: Any) -> float | str:
    """Return one spelling of f, however it was typed: a float if that is exact, otherwise the fraction as text."""
    exact = exactly("f", f)
    return float(exact) if exactly("f", float(exact)) == exact else str(exact)


def _as_integer(value: Any) -> Any:
    """Return one spelling of equal categories, such as 1, 1.0 and True."""
    return int(value) if isinstance(value, (bool, float)) and value == value // 1 else value


def _text_bytes(text: str) -> bytes:
    """Return a text as bytes; a lone surrogate, which JSON and file names may hold, becomes three bytes."""
    return text.encode("utf-8", "surrogatepass")


def joined(*parts: bytes) -> bytes:
    """Return parts joined with their lengths, so that different lists of parts give different bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def number(secret: bytes, message: bytes) -> int:
    """Return HMAC-SHA256 as a number of 256 bits."""
    return int.from_bytes(hmac.digest(secret, message, "sha256"), "big")


def below(numbers: Sequence[Sequence[int]], chance: Fraction) -> Flags:
    """Return whether each number of 256 bits is in the lowest share `chance` of all.

    The share is rounded up, and all bits are compared.
    """
    most = -(-chance.numerator * SIZE // chance.denominator)
    return np.array([[value < most for value in row] for row in numbers], dtype=np.bool_)


def checked_people(people: Any) -> tuple[str, ...]:
    """Return the person of each row, distinguished by kind and value.

    1 and "1" are two people. A subclass of either type is the same person as its plain value.
    """
    values = list(people) if isinstance(people, (list, tuple)) else values_of(*column_frame(people, "people"))
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidType(
                f"people must be text or Python's whole numbers, each of them there, not {named(value)}. "
                "Write people=[int(one) for one in people] for whole numbers of NumPy; cast anything else to text."
            )
    return tuple(f"str:{str.__str__(one)}" if isinstance(one, str) else f"int:{int.__repr__(one)}" for one in values)
