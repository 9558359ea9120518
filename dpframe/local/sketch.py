"""Count-mean sketch: frequencies of many categories from reports whose length does not grow with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.exact import checked_whole, exact_epsilon
from dpframe.frames.columns import values_of
from dpframe.local import report_text
from dpframe.local.categorical import question_of, truths
from dpframe.local.method import (
    LocalMethod,
    check_cells,
    checked_categories,
    checked_epsilon,
    checked_key,
    hashed_places,
)
from dpframe.noise import coins
from dpframe.queries.query import Query

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CountMeanSketch(LocalMethod):
    """Apple's count-mean sketch: one of k public hash functions, and a row of m cells with random flips.

    Parameters
    ----------
    categories : list, tuple or range
        The declared values, from what you know and never from the data; None stands for a missing one.
    epsilon : float
        What one report costs the person who sends it.
    hashes, cells : int
        k and m. More cells mean fewer collisions and longer reports, m / 4 letters each.
    key : str
        Public text, from which the hash functions follow.

    Notes
    -----
    Apple, "Learning with Privacy at Scale" (2017). The client draws j, marks the cell that function j gives its value,
    and flips each cell with probability 1 / (1 + e^(epsilon / 2)): two values differ in at most two cells. The error
    contains collisions, with the estimates in place of the true counts.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked_categories(self.categories))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        for name, least in (("hashes", 1), ("cells", 2)):
            rule = f"a whole number from {least} to {report_text.LARGEST:,}"
            value = checked_whole(name, getattr(self, name), least, report_text.LARGEST, rule)
            object.__setattr__(self, name, value)
        larger = max(self.cells, len(self.categories))
        check_cells("hashes times cells, or times categories,", self.hashes * larger)
        checked_key(self.key)

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
        """The variance of an unbiased count from the flips of `n` reports; collisions add to it."""
        return n * (self.scale**2 - 1.0) / 4.0 * (self.cells / (self.cells - 1)) ** 2

    def question(self, column: str) -> Query:
        """The query that reads a row."""
        return question_of(column, self.categories)

    def reports(self, rows: Integers) -> list[str]:
        """A text for each row: which hash function, and its cells."""
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
        """The number of reports, the unbiased counts and their variances."""
        values = values_of(frame, column)
        ones, each = np.zeros((self.hashes, self.cells), dtype=np.int64), np.zeros(self.hashes, dtype=np.int64)
        words = f"text of one of {self.hashes} hash functions and {self.cells} cells"
        for function, bits in report_text.read(values, self.cells, words, numbers=self.hashes):
            report_text.summed(ones, function, bits)
            each += np.bincount(function, minlength=self.hashes)
        return len(values), *self.counts(ones, each)

    def counts(self, ones: Integers, each: Integers) -> tuple[Floats, Floats]:
        """The unbiased counts and their variances, from the sketch: ones of each cell, reports of each function."""
        n, m, k = int(each.sum()), self.cells, self.hashes
        cells = k * (self.scale / 2.0 * (2 * ones - each[:, None]) + each[:, None] / 2.0)
        averages = cells[np.arange(k)[:, None], self.places].mean(axis=0)
        estimate = m / (m - 1) * (averages - n / m)
        likely = np.clip(estimate, 0.0, n)
        likely *= min(1.0, n / max(likely.sum(), 1.0))
        collisions = (n - likely + ((likely**2).sum() - likely**2) / k) / (m - 1)
        return estimate, self.variance(n) + collisions
