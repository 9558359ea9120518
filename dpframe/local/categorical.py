"""Frequencies of declared categories: randomized response, subset selection, and the count-mean sketch for many.

The length of a sketch's report does not grow with the number of categories.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.exact import checked_whole, exact_epsilon
from dpframe.frames.columns import values_of
from dpframe.local import report_text
from dpframe.local.method import (
    LocalMethod,
    check_cells,
    checked_categories,
    checked_epsilon,
    checked_key,
    hashed_places,
    wider_variances,
)
from dpframe.noise import coins
from dpframe.queries.keys import KeyAxis, Keys
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count
from dpframe.release import randomizing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def question_of(column: str, categories: tuple[Any, ...]) -> Query:
    """Return the query that reads a row: the place of its value among the categories."""
    axis = KeyAxis((column,), (categories,), "categories")
    return Query("randomize", Keys((axis,)), (("count", Count()),))


def truths(places: Integers, categories: int) -> Integers:
    """Return the places of the categories.

    A value that is missing or not declared gets a uniformly random place.
    """
    filled, nowhere = np.array(places, dtype=np.int64), np.flatnonzero(places < 0)
    filled[nowhere] = coins.uniform(categories - 1, nowhere.size)
    return filled


@dataclass(frozen=True)
class Subsets:
    """The probabilities and variances of subset selection.

    A report names d = `size` of k = `among` categories; the truth is one of them with probability p. In formulas, e is
    e^epsilon. An undeclared or missing value is randomized as one of the categories.
    """

    among: int
    size: int
    epsilon: float

    @property
    def _whole(self) -> float:
        return self.size * math.exp(self.epsilon) + self.among - self.size

    @property
    def p(self) -> float:
        """The probability that a report holds the truth: d e / (d e + k - d)."""
        return self.size * math.exp(self.epsilon) / self._whole

    @property
    def q(self) -> float:
        """The probability that a report holds any one other category."""
        return (self.p * (self.size - 1) + (1.0 - self.p) * self.size) / (self.among - 1)

    @property
    def gap(self) -> float:
        """The difference p - q, without cancellation."""
        d, k = self.size, self.among
        return d * (k - d) * math.expm1(self.epsilon) / (self._whole * (k - 1))

    def variance(self, share: Any = 0.0) -> Any:
        """Return the variance of an estimated count per report.

        `share` of the people have the category.
        """
        p, q = self.p, self.q
        return (share * p * (1.0 - p) + (1.0 - share) * q * (1.0 - q)) / self.gap**2


def best_size(among: int, epsilon: float) -> int:
    """Return the size with the least total variance, for equally common categories."""
    sizes = range(1, among)
    if among > 1_000:  # near the known optimum k / (e + 1) of Ye and Barg
        middle = int(among / (math.exp(epsilon) + 1.0))
        sizes = range(max(1, middle - 2), min(among, middle + 4))
    return min(sizes, key=lambda size: float(Subsets(among, size, epsilon).variance(1.0 / among)))


class _OfSubsets(LocalMethod):
    """The base of randomized response and subset selection."""

    categories: tuple[Any, ...]
    epsilon: Any

    @property
    def law(self) -> Subsets:
        """The probabilities and variances of the method."""
        raise NotImplementedError

    @property
    def loss(self) -> Fraction:
        """The epsilon of a report."""
        return exact_epsilon(self.epsilon)

    @property
    def p(self) -> float:
        """The probability that a report holds the truth."""
        return self.law.p

    @property
    def q(self) -> float:
        """The probability that a report holds any one other category."""
        return self.law.q

    def variance(self, n: int = 1, share: float = 0.0) -> float:
        """Return the variance of the unbiased count of a category that `share` of `n` people have."""
        return n * float(self.law.variance(share))

    def question(self, column: str) -> Query:
        """Return the query that reads a row."""
        return question_of(column, self.categories)

    def counts(self, support: Floats, n: int) -> tuple[Floats, Floats]:
        """Return the unbiased counts and their variances, from the number of `n` reports that hold each category."""
        counts = (np.asarray(support, dtype=np.float64) - n * self.law.q) / self.law.gap
        return counts, wider_variances(counts, n, self.variance(n), self.variance(n, 1.0), self.law.gap)

    def _holds(self, rows: int) -> coins.Flags:
        """Draw whether each report holds the truth: with exactly the probability p."""
        law = self.law
        return coins.tossed(coins.Chance(law.size, law.among - law.size, self.loss), rows)


@dataclass(frozen=True)
class RandomizedResponse(_OfSubsets):
    """k-ary randomized response: the truth, or any other category at random.

    A report is the truth with probability e^epsilon / (e^epsilon + k - 1).

    Parameters
    ----------
    categories : list, tuple or range
        The declared values, from what you know and never from the data; None stands for a missing value.
    epsilon : float
        The cost of one report for the person who sends it.

    Notes
    -----
    Warner (1965); Kairouz, Bonawitz and Ramage (2016). Two values of one person change the probability of a report by a
    factor of at most e^epsilon (``docs/assurance/privacy.md``). It is best for few categories or a large epsilon.

    Examples
    --------
    >>> import dpframe as dpf
    >>> method = dpf.local.RandomizedResponse(["no", "yes"], epsilon=1)
    >>> round(method.p, 4)
    0.7311
    >>> dpf.local.RandomizedResponse.from_json(method.to_json()) == method
    True
    """

    categories: tuple[Any, ...]
    epsilon: Any = None
    name: ClassVar[str] = "randomized response"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked_categories(self.categories))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @property
    def examples(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The categories, since each may be a report."""
        return self.categories

    @property
    def law(self) -> Subsets:
        """The probabilities of the method, as subsets of one category."""
        return Subsets(len(self.categories), 1, float(self.epsilon))

    def reports(self, rows: Integers) -> list[Any]:
        """Return a category for each row."""
        truth = truths(rows, len(self.categories))
        chosen = np.where(self._holds(truth.size), truth, coins.others(truth, len(self.categories)))
        every = np.empty(len(self.categories), dtype=object)
        every[:] = self.categories
        return list(every[chosen].tolist())

    def estimates(self, frame: Any, column: str) -> tuple[int, Floats, Floats]:
        """Return the number of reports, the unbiased counts and their variances."""
        places = randomizing.places_of(frame, column, self)
        if (places < 0).any():
            raise InvalidArgument(
                "reports must be categories of the method, and some are not. Give the reports of this very method, or "
                "leave out what others sent."
            )
        support = np.bincount(places, minlength=len(self.categories))
        return places.size, *self.counts(support.astype(np.float64), places.size)


@dataclass(frozen=True)
class SubsetSelection(_OfSubsets):
    """Subset selection: a report names d of k categories.

    They hold the truth more often than by chance.

    Parameters
    ----------
    categories : list, tuple or range
        The declared values, from what you know and never from the data; None stands for a missing value.
    epsilon : float
        The cost of one report for the person who sends it.
    size : int, optional
        The number of categories in a report; by default, the number with the least variance.

    Notes
    -----
    Ye and Barg (2018); Wang et al. (2016). With e = e^epsilon, the truth is in the report with probability
    p = d e / (d e + k - d); the others are a uniform choice. For any two values, the probabilities of a report are in
    the ratio e, 1 or 1 / e (``docs/assurance/privacy.md``). Of all methods with declared categories, it has the least
    error, or nearly so. With ``size=1`` it is k-ary randomized response. A report is text in hexadecimal: each letter
    has four bits, and each category one bit.

    Examples
    --------
    >>> import dpframe as dpf
    >>> method = dpf.local.SubsetSelection(list("abcdefghij"), epsilon=1)
    >>> method.size, round(method.p, 6), round(method.variance(), 6)
    (3, 0.538102, 2.83921)
    """

    categories: tuple[Any, ...]
    epsilon: Any = None
    size: int = 0
    name: ClassVar[str] = "subset selection"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked_categories(self.categories))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        among = len(self.categories)
        rule = "a whole number from 1 to one less than there are categories"
        size = self.size or best_size(among, float(self.epsilon))
        object.__setattr__(self, "size", checked_whole("size", size, 1, among - 1, rule))

    @property
    def law(self) -> Subsets:
        """The probabilities and variances of the method."""
        return Subsets(len(self.categories), self.size, float(self.epsilon))

    def reports(self, rows: Integers) -> list[Any]:
        """Return a text for each row, which encodes a subset."""
        truth = truths(rows, len(self.categories))
        holds = self._holds(truth.size)
        texts: list[str] = []
        for some in report_text.batches(truth.size, len(self.categories)):
            texts += report_text.written(self.subsets(truth[some], holds[some]))
        return texts

    def subsets(self, truth: Integers, holds: coins.Flags) -> coins.Flags:
        """Return a uniform subset of `size` categories for each row: with the truth if `holds`, otherwise without."""
        last = len(self.categories) - 1
        flags = np.zeros((truth.size, last + 1), dtype=np.bool_)
        for with_truth in (True, False):
            rows = np.flatnonzero(holds == with_truth)
            flags[rows, :last] = coins.subsets(self.size - with_truth, last, rows.size)
        rows = np.arange(truth.size)
        flags[rows, last] = flags[rows, truth]  # the place of the truth stood for the last category
        flags[rows, truth] = holds
        return flags

    def estimates(self, frame: Any, column: str) -> tuple[int, Floats, Floats]:
        """Return the number of reports, the unbiased counts and their variances."""
        values = values_of(frame, column)
        support = np.zeros(len(self.categories))
        words = f"text that names {self.size} of {len(self.categories)} categories"
        for _, bits in report_text.read(values, len(self.categories), words):
            wrong = np.flatnonzero(bits.sum(axis=1) != self.size)
            if wrong.size:
                raise report_text.unlike(report_text.written(bits[wrong[:1]])[0], words)
            support += bits.sum(axis=0)
        return len(values), *self.counts(support, len(values))


@dataclass(frozen=True)
class CountMeanSketch(LocalMethod):
    """Apple's count-mean sketch: m cells with random flips.

    Each report uses one of k public hash functions.

    Parameters
    ----------
    categories : list, tuple or range
        The declared values, from what you know and never from the data; None stands for a missing value.
    epsilon : float
        The cost of one report for the person who sends it.
    hashes, cells : int
        k and m. More cells mean fewer collisions and longer reports, about m / 4 letters each.
    key : str
        Public text that determines the hash functions.

    Notes
    -----
    Apple, "Learning with Privacy at Scale" (2017). The client draws j, marks the cell that function j gives its value,
    and flips each cell with probability 1 / (1 + e^(epsilon / 2)): two values differ in at most two cells. The error
    contains collisions, with the estimates in place of the true counts. It is that of a random key: under one key, the
    same categories collide in every collection.

    Examples
    --------
    >>> import dpframe as dpf
    >>> method = dpf.local.CountMeanSketch(["heart", "laugh", "sad"], epsilon=2, hashes=16, cells=64)
    >>> round(method.flip, 6), round(method.scale, 6)
    (0.268941, 2.163953)
    """

    categories: tuple[Any, ...]
    epsilon: Any = None
    hashes: int = 256
    cells: int = 1_024
    key: str = ""
    name: ClassVar[str] = "count-mean sketch"
    notes: ClassVar[tuple[str, ...]] = (
        "margins of error hold for a random key: under one key the same categories collide each time, so that some "
        "are off by more",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked_categories(self.categories))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        for name, least in (("hashes", 1), ("cells", 2)):
            rule = f"a whole number from {least} to {report_text.LARGEST:,}"
            value = checked_whole(name, getattr(self, name), least, report_text.LARGEST, rule)
            object.__setattr__(self, name, value)
        larger = max(self.cells, len(self.categories))
        check_cells("hashes times cells, or times categories,", self.hashes * larger)
        object.__setattr__(self, "key", checked_key(self.key))

    @property
    def loss(self) -> Fraction:
        """The epsilon of a report."""
        return exact_epsilon(self.epsilon)

    @property
    def flip(self) -> float:
        """The probability that a cell is flipped."""
        return 1.0 / (1.0 + math.exp(float(self.epsilon) / 2.0))

    @property
    def scale(self) -> float:
        """The factor that makes a cell's mean the truth: (e^(epsilon / 2) + 1) / (e^(epsilon / 2) - 1)."""
        return 1.0 / math.tanh(float(self.epsilon) / 4.0)

    @cached_property
    def places(self) -> Integers:
        """The cell of each category by each hash function."""
        return hashed_places(self.key, self.hashes, len(self.categories), self.cells)

    def variance(self, n: int = 1) -> float:
        """Return the variance of an unbiased count due to the flips of `n` reports.

        Collisions add to it.
        """
        return n * (self.scale**2 - 1.0) / 4.0 * (self.cells / (self.cells - 1)) ** 2

    def question(self, column: str) -> Query:
        """Return the query that reads a row."""
        return question_of(column, self.categories)

    def reports(self, rows: Integers) -> list[str]:
        """Return a text for each row, which encodes a hash function and its cells."""
        truth = truths(rows, len(self.categories))
        function = coins.uniform(self.hashes - 1, truth.size)
        flip = coins.Chance(1, 1, -self.loss / 2)
        texts: list[str] = []
        for some in report_text.batches(truth.size, self.cells):
            marked = self.places[function[some], truth[some]]
            bits = coins.tossed(flip, marked.size * self.cells).reshape(marked.size, self.cells)
            bits[np.arange(marked.size), marked] ^= True  # the marked cell is 1, and is flipped like the others
            texts += report_text.written(bits, function[some])
        return texts

    def estimates(self, frame: Any, column: str) -> tuple[int, Floats, Floats]:
        """Return the number of reports, the unbiased counts and their variances."""
        values = values_of(frame, column)
        ones, each = np.zeros((self.hashes, self.cells), dtype=np.int64), np.zeros(self.hashes, dtype=np.int64)
        words = f"text of one of {self.hashes} hash functions and {self.cells} cells"
        for function, bits in report_text.read(values, self.cells, words, numbers=self.hashes):
            report_text.summed(ones, function, bits)
            each += np.bincount(function, minlength=self.hashes)
        return len(values), *self.counts(ones, each)

    def counts(self, ones: Integers, each: Integers) -> tuple[Floats, Floats]:
        """Return the unbiased counts and their variances, from the sums of a sketch.

        These are the number of ones in each cell, and the number of reports of each function.
        """
        n, m, k = int(each.sum()), self.cells, self.hashes
        cells = k * (self.scale / 2.0 * (2 * ones - each[:, None]) + each[:, None] / 2.0)
        averages = cells[np.arange(k)[:, None], self.places].mean(axis=0)
        estimate = m / (m - 1) * (averages - n / m)
        likely = np.clip(estimate, 0.0, n)
        likely *= min(1.0, n / max(likely.sum(), 1.0))
        collisions = (n - likely + ((likely**2).sum() - likely**2) / k) / (m - 1)
        step = self.scale * m / (m - 1)  # one report's effect; half of it, squared, is added as in `wider_variances`
        return estimate, self.variance(n) + collisions + (step / 2.0) ** 2
