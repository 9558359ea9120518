"""Audits from outside: what an attacker can prove about a mechanism or a denoiser, no matter who wrote it.

`epsilon` and `mu` call a release on two neighboring data sets many times and bound the privacy loss from below by what
the answers show. An audit never proves privacy; it finds its absence.

Examples
--------
>>> import dpframe as dpf, polars as pl
>>> people = pl.DataFrame({"age": [31, 45, 62]})
>>> def one_count(frame):
...     return frame.dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
>>> found = dpf.audit.epsilon(
...     lambda: one_count(people), lambda: one_count(people[:2]), claimed=1.0, samples=400, confidence=0.999999
... )
>>> found.holds
True
"""

from __future__ import annotations

import contextlib
import heapq
import io
import logging
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.audit import rests
from dpframe.errors import InvalidArgument, InvalidType, how_many, named, shown
from dpframe.exact import between, checked_float, checked_whole
from dpframe.frames import build, changes, foreign
from dpframe.frames.kinds import is_collected, is_missing, is_pandas

__all__ = ["Finding", "epsilon", "mu"]

ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")  # the address of an object, which says nothing of the data
NUMERIC = "biufmM"
WORDS = (str, bytes, date, time, timedelta)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: its numbers, a row for each independent outcome, and the rest as text.

    `numbers` is None if there are none, as in a call that raised. Otherwise they are floats in the first of two planes,
    and their rests, which floats do not show, in the second (`rests`). `parts` has each part of the text: a warning, a
    key, a fact of the record. So a part that depends on noise, and is never seen again, hides no other.
    """

    numbers: Floats | None
    text: str
    parts: frozenset[str]


def observe(argument: str, release: Callable[[], Any], outcomes: int) -> Outcome:
    """Call once, and keep all that a caller could see, also an exception of the call; errors of reading are raised."""
    answer, reader = None, Reader(argument, outcomes, [])
    with watched() as seen:
        try:
            answer = release()
        except Exception as error:
            seen["raised"] = f"{type(error).__name__}: {error}"
    seen["answer"] = reader.text_of(answer)
    parts: set[str] = set()
    text = _with_parts("", seen, parts)
    return Outcome(reader.rows(), text, frozenset(parts))


def _with_parts(path: str, node: Any, parts: set[str]) -> str:
    """Return a tree of texts as one text; add it and each of its branches to `parts`."""
    if isinstance(node, dict):
        members = (f"{name!r}: {_with_parts(f'{path}/{name}', node[name], parts)}" for name in sorted(node))
        text = "{" + ", ".join(members) + "}"
    elif isinstance(node, (list, tuple)) and not all(map(_is_number, node)):
        text = "[" + ", ".join([_with_parts(path, member, parts) for member in node]) + "]"
    else:
        text = node if isinstance(node, str) else repr(node)
        if not path.startswith("/answer"):  # in an answer, such text was released
            text = ADDRESS.sub("0x", text)
    parts.add(sys.intern(f"{path}: {text}"))  # most calls have the same part, and share it
    return text


@contextlib.contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Collect warnings, log lines and prints of a call, with all levels of dpframe's own log."""
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


@dataclass(frozen=True)
class Reader:
    """Reader of an answer, which returns its text as a tree and appends its numbers to `arrays`."""

    argument: str
    outcomes: int
    arrays: list[Floats]

    def rows(self) -> Floats | None:
        """Return the numbers of a call: for each outcome, a row of floats and a row of their rests."""
        if not self.arrays:
            return None
        return np.concatenate([each.reshape(2, self.outcomes, -1) for each in self.arrays], axis=2).swapaxes(0, 1)

    def text_of(self, value: Any) -> Any:
        """Return the text in a value; refuse a value with numbers that no event would count."""
        if is_collected(value):
            return self._of_frame(value)
        if isinstance(value, dict):
            names = [ADDRESS.sub("0x", repr(name)) if not isinstance(name, WORDS) else repr(name) for name in value]
            members = zip(names, value.values(), strict=True)
            return {"": [type(value).__name__, *names]} | {name: self.text_of(member) for name, member in members}
        if isinstance(value, (list, tuple)):
            if not value or not all(map(_is_number, value)):
                return [type(value).__name__, *map(self.text_of, value)]
            self._keep_cells(value)
            return [type(value).__name__, len(value), _types(value)]
        if isinstance(value, np.ma.MaskedArray):
            return [type(value).__name__, self.text_of(value.data), self.text_of(np.ma.getmaskarray(value))]
        if isinstance(value, (np.ndarray, np.generic)):
            dtype = str(value.dtype)
            return [type(value).__name__, dtype, list(value.shape), self._of_cells(value, value.tolist, dtype)]
        if all(hasattr(value, name) for name in ("dtype", "to_list", "to_numpy")):  # a Series
            return [type(value).__name__, _dtype(value), repr(value.name), len(value), self._of_column(value)]
        if _is_number(value):
            self._keep_cells([value])
            return type(value).__name__
        if is_missing(value) or isinstance(value, WORDS):
            return repr(value)
        way_out = "End it with .collect()." if hasattr(value, "collect") else "Return the numbers in it."
        raise InvalidType(
            f"{self.argument} must return frames of pandas or Polars, columns, arrays, numbers, text, or lists, tuples "
            f"and dicts of these, not {named(value)}: an audit sees nothing else. {way_out}"
        )

    def _of_frame(self, frame: Any) -> dict[str, Any]:
        """Return the text of a frame: its library, columns, dtypes, keys, their order, index, attrs and provenance."""
        record = build.record_of(frame)
        records = [] if record is None else record.get("parts", [record])
        keys = {
            name for each in map(changes.viewed, records) for name in {*foreign.labels_of(each)} - {*each["columns"]}
        }
        columns = [column for _, column in frame.items()] if is_pandas(frame) else frame.get_columns()
        text: dict[str, Any] = {"library": f"{type(frame).__module__}.{type(frame).__name__}", "rows": len(frame)}
        text |= {"columns": [*map(repr, frame.columns)], "dtypes": [*map(_dtype, columns)]}
        text["names"] = repr(getattr(frame.columns, "names", None))  # the names of the column index of pandas
        for place, column in enumerate(columns):
            is_key = column.name in keys
            text[f"column {place}"] = [*map(repr, column.to_list())] if is_key else self._of_column(column)
        if self.outcomes == 1:  # with several, the outcome of a number in the record is unknown
            for numbers in noisy_facts(records):
                self._keep_cells(numbers)
        attrs = {str(name): fact for name, fact in getattr(frame, "attrs", {}).items() if name != build.RECORD}
        index = getattr(frame, "index", None)  # only pandas has one
        text["index"] = repr(index) if index is None or type(index).__name__ == "RangeIndex" else self.text_of(index)
        return text | {"attrs": ADDRESS.sub("0x", repr(attrs)), "provenance": list(map(public_record, records))}

    def _of_column(self, column: Any) -> Any:
        """Return the text in a column, read cell by cell if an array of NumPy would lose a mask or 128 bits."""
        if str(column.dtype) == "Time" and hasattr(column, "to_physical"):  # Python's times lose nanoseconds
            column = column.to_physical()
        by_cell = np.empty(len(column), dtype=object)
        array = by_cell if "128" in str(column.dtype) else np.asarray(column.to_numpy())
        if array.ndim > 1 and hasattr(column.dtype, "shape"):  # a Polars array in each row
            return [column.is_null().to_list(), self._of_column(column.reshape((-1,)))]
        array = by_cell if array.ndim > 1 else array  # each struct is a dict
        masked = column.null_count() if hasattr(column, "null_count") else not isinstance(column.dtype, np.dtype)
        if masked and array.dtype.kind in "biuf":  # a missing time is NaT
            array = by_cell
        return self._of_cells(array, column.to_list, str(column.dtype).lower())

    def _of_cells(self, array: Any, cells: Callable[[], Any], dtype: str) -> Any:
        """Return the text in a column or an array; for numbers and missing values of dtype object, their types."""
        if array.dtype.kind in NUMERIC:
            self._keep_array(array)
            return None
        listed = cells()
        if array.ndim == 1 and all(_is_number(cell) or is_missing(cell) for cell in listed):
            self._keep_cells(listed)
            return _types(listed) if dtype == "object" else None
        return [self.text_of(cell) for cell in listed] if isinstance(listed, list) else self.text_of(listed)

    def _keep_array(self, array: Any) -> None:
        exact = (array.view(np.int64) if array.dtype.kind in "mM" else array).reshape(-1)
        floats = exact.astype(np.float64)
        self._keep(floats, rests.of_array(exact, floats))

    def _keep_cells(self, cells: Sequence[Any]) -> None:
        floats = np.array([*map(rests.as_float, cells)])
        self._keep(floats, rests.of_cells(cells, floats))

    def _keep(self, floats: Floats, their_rests: Floats) -> None:
        if floats.size % self.outcomes:
            raise InvalidArgument(
                f"outcomes must divide the {how_many(floats.size, 'number')} that a call returns into equal parts, "
                f"not {self.outcomes:,}."
            )
        self.arrays.append(np.array([floats, their_rests]))


FROM_NOISE = {"sha256", "ledger", "release", "totals", "square_totals", "sides"}
FROM_NOISE |= {"chose", "estimated_rmse", "estimated_rmse_of_levels", "cell_rmse", "noise_dominates"}  # of denoisers
FROM_NOISE |= {"found"}  # of suggested bounds
FROM_NOISE |= {"share", "share_low", "share_high", "count"}  # of checks


def public_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the provenance without facts that depend on noise, or on the number of charges in a ledger."""
    facts = _public(record)
    facts |= {name: _public(facts[name], "rows", "order") for name in ("rows", "rounded", "shown") if facts.get(name)}
    facts |= {name: [_public(each) for each in facts[name]] for name in ("checks", "of") if facts.get(name)}
    said = {name: _public(one) for name, one in record["measures"].items()}
    for one in said.values():
        one["denoise"] = one.get("denoise") and [_public(step) for step in one["denoise"]]
    return facts | {"measures": said}


def _public(facts: dict[str, Any], *also: str) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if name not in FROM_NOISE and name not in also}


def noisy_facts(records: list[dict[str, Any]]) -> list[Sequence[float]]:
    """Return the noisy numbers in a provenance: the counts of checks, and the totals behind a statistic."""
    found = [[check["count"] for check in each.get("checks") or []] for each in records]
    for said in (said for each in records for said in each["measures"].values()):
        found += [totals for kind in build.TOTALS for totals in said.get(kind, ())]
    return [numbers for numbers in found if numbers]


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, int, np.bool_, Real, Decimal)) and not isinstance(value, np.timedelta64)


def _types(cells: Sequence[Any]) -> str:
    """Return the types of cells in their order, or one type if all are the same."""
    names = [str(cell.dtype) if isinstance(cell, np.generic) else type(cell).__name__ for cell in cells]
    return " ".join(names if len(set(names)) > 1 else names[:1])


def _dtype(column: Any) -> str:
    """Return the dtype of a column, with all levels and their order if pandas does not name them."""
    levels = getattr(column.dtype, "categories", None)
    if levels is None or not hasattr(levels, "to_list"):
        return str(column.dtype)
    return f"{column.dtype} {levels.to_list()!r} {getattr(column.dtype, 'ordered', '')}"


def apart(first: list[str], second: list[str]) -> tuple[str, ...]:
    """Return up to four texts that only one side showed, each from just before its difference from the other side."""
    left = [(text, second) for text in sorted(set(first) - set(second))]
    right = [(text, first) for text in sorted(set(second) - set(first))]
    some = [*left[: 4 - min(len(right), 2)], *right[: 4 - min(len(left), 2)]]  # of both sides, if both have any
    return tuple(_from_parting(text, others) for text, others in some)


def _from_parting(text: str, others: list[str]) -> str:
    """Return the part of a text around the place where it leaves the most similar of the others."""
    common = max((_common(text, other) for other in dict.fromkeys(others)), default=0)
    return shown(text[max(0, common - 30) : common + 28])


def _common(text: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    alike = next((index for index, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), None)
    return min(len(text), len(other)) if alike is None else alike


Floats = NDArray[np.float64]
Bound = Callable[[Any, Any, int, float], Floats]  # hits of each side, samples of a side, chance of error
Integers = NDArray[np.int64]
Score = Callable[[Any], Floats]  # a number for each sample; a large one favors the first side
Teach = Callable[[Any, Any], Sequence[tuple[str, Score]]]  # learns scores from samples of both sides

THRESHOLDS = 200
TEXTS = 64  # the number of texts that get a score of their own
LOW_BITS = 8  # of an integer or a significand, in which a careless sampler shows its input
LARGEST = np.finfo(np.float64).max


def strongest(first: Any, second: Any, teach: Teach, bound: Bound, alpha: float) -> tuple[float, str]:
    """Return the bound that holds except for a chance of alpha, and the event that shows it.

    A quarter of the samples teaches the scores, and a quarter chooses score and threshold, because a score looks too
    good on its own samples. The other half is used once, so its confidence limits hold for the chosen event.
    """
    learn, choose, test = ([first[start::step], second[start::step]] for start, step in ((0, 4), (2, 4), (1, 2)))
    best, event = -1.0, None
    for words, score in teach(*learn):
        sides = [score(side) for side in choose]
        cuts = np.unique(np.quantile(np.concatenate(sides), np.linspace(0, 1, THRESHOLDS), method="lower"))
        for below, turn in ((False, 1), (False, -1), (True, 1), (True, -1)):
            more, fewer = (_hits(side, cuts, below) for side in sides[::turn])
            bounds = bound(more, fewer, len(sides[0]), alpha)
            if bounds.max() > best:
                best, event = float(bounds.max()), (words, score, float(cuts[bounds.argmax()]), below, turn)
    if event is None:
        return 0.0, "none"
    words, score, cut, below, turn = event
    more, fewer = (_hits(score(side), np.array([cut]), below) for side in test[::turn])
    return float(bound(more, fewer, len(test[0]), alpha)[0]), f"{words} {'<' if below else '>='} {cut:.6g}"


def _hits(values: Floats, cuts: Floats, below: bool) -> Integers:
    """Return the number of values at or above each cut, or below it."""
    under = np.searchsorted(np.sort(values), cuts)
    return under if below else values.size - under


def of_numbers(first: Floats, second: Floats) -> list[tuple[str, Score]]:
    """Return scores of `finite` numbers: values, rests if they differ, low bits, and likelihood ratios."""
    scores: list[tuple[str, Score]] = []
    differs = [(side[:, 1] != first[0, 1]).any(axis=0) for side in (first, second)]
    for column in range(first.shape[2]):
        scores.append((f"value {column}", _plane(0, column)))
        if differs[0][column] or differs[1][column]:
            scores.append((f"rest of value {column}", _plane(1, column)))
        scores.append((f"low bits of value {column}", _low_bits(first, second, column)))
    if first.shape[2] > 1:
        scores.append(("Gaussian likelihood ratio", _gaussian(first[:, 0], second[:, 0])))
        scores.append(("Laplace likelihood ratio", _laplace(first[:, 0], second[:, 0])))
    return scores


def of_texts(first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> list[tuple[str, Score]]:
    """Return scores of texts: whether each of the texts that distinguish best is seen, and a log ratio of all texts."""
    counts = [Counter(chain.from_iterable(side)) for side in (first, second)]
    uneven = [text for text in counts[0] | counts[1] if counts[0][text] != counts[1][text]]
    ratio = {text: math.log((counts[0][text] + 1) / (counts[1][text] + 1)) for text in uneven}
    far = {
        text: abs(counts[0][text] - counts[1][text]) / math.sqrt(counts[0][text] + counts[1][text]) for text in uneven
    }
    telling = heapq.nsmallest(TEXTS, uneven, key=lambda text: (-far[text], len(text), text))
    return [
        *((f"shows {shown(text)}:", _shows(text)) for text in telling),
        ("what is not a number: log ratio", lambda samples: _summed(samples, ratio)),
    ]


def _shows(text: str) -> Score:
    return lambda samples: np.array([text in sample for sample in samples], dtype=np.float64)


def _summed(samples: Sequence[frozenset[str]], ratio: dict[str, float]) -> Floats:
    return np.array([math.fsum(ratio[text] for text in sample if text in ratio) for sample in samples])


def finite(numbers: Floats) -> Floats:
    """Return numbers that can be ordered and added up; NaN is below all others."""
    return np.nan_to_num(numbers, nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST)


def _plane(plane: int, column: int) -> Score:
    return lambda samples: np.asarray(samples[:, plane, column])


def _gaussian(first: Floats, second: Floats) -> Score:
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (first.var(axis=0) + second.var(axis=0)) / 2
        weights = (first.mean(axis=0) - second.mean(axis=0)) / np.where(variance > 0, variance, 1.0)
    weights = np.where(np.isfinite(weights) & np.isfinite(variance), weights, 0.0)
    return lambda samples: finite(np.where(weights == 0.0, 0.0, samples[:, 0]) @ weights)


def _laplace(first: Floats, second: Floats) -> Score:
    with np.errstate(over="ignore", invalid="ignore"):
        first_median, second_median = np.median(first, axis=0), np.median(second, axis=0)
        scale = np.abs(second - second_median).mean(axis=0)
    used = np.isfinite(scale) & (np.abs(first_median) < LARGEST) & (np.abs(second_median) < LARGEST)
    scale = np.where(used & (scale > 0), scale, 1.0)

    def score(samples: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (np.abs(samples[:, 0] - second_median) - np.abs(samples[:, 0] - first_median)) / scale
        return finite(np.where(used, finite(apart), 0.0).sum(axis=1))

    return score


def _low_bits(first: Floats, second: Floats, column: int) -> Score:
    """Return a score of the lowest bits of a sample: how much more often the first side showed them."""
    counts = [np.bincount(_bits(side, column), minlength=2**LOW_BITS) + 1.0 for side in (first, second)]
    ratio = np.log(counts[0] / counts[1])
    return lambda samples: np.asarray(ratio[_bits(samples, column)])


def _bits(samples: Floats, column: int) -> Integers:
    """Return the lowest bits of a whole number, from its float and its rest; of any other float, its significand's."""
    values, beside = samples[:, 0, column], samples[:, 1, column]
    low = np.mod(values, 2.0**LOW_BITS)
    whole = (low == np.floor(low)) & ((np.abs(values) < 2.0**53) | (beside != 0.0))
    bits = np.floor(low + np.mod(beside, 2.0**LOW_BITS)).astype(np.int64)
    return np.asarray(np.where(whole, bits, np.ascontiguousarray(values).view(np.int64)) & (2**LOW_BITS - 1))


def at_least(hits: Any, size: int, alpha: float) -> Floats:
    """Return the lower limit of a probability (Clopper and Pearson 1934), wrong with a chance of at most alpha."""
    from scipy import special

    counted = np.asarray(hits)
    return np.where(counted > 0, special.betaincinv(np.maximum(counted, 1), size - counted + 1, alpha), 0.0)


def at_most(hits: Any, size: int, alpha: float) -> Floats:
    """Return the upper limit of a probability, wrong with a chance of at most alpha."""
    return np.asarray(1.0 - at_least(size - np.asarray(hits), size, alpha))


def epsilon_bound(delta: float) -> Bound:
    """Return the bound log((P - delta) / Q), from limits below P and above Q, each wrong with a chance of alpha / 2."""

    def bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
        more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
        return np.asarray(np.log(np.maximum((more - delta) / fewer, 1.0)))

    return bound


def mu_bound(hits: Any, others: Any, size: int, alpha: float) -> Floats:
    """Return Phi^-1(P) - Phi^-1(Q), at most mu under mu-Gaussian privacy (Dong, Roth and Su 2022, Definition 2.6)."""
    from scipy import special

    more, fewer = at_least(hits, size, alpha / 2), at_most(others, size, alpha / 2)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.maximum(special.ndtri(more) - special.ndtri(fewer), 0.0), nan=0.0))


Release = Callable[[], Any]

FEWEST = 40  # the fewest samples, and the fewest calls whose texts are counted; fewer show nothing


def epsilon(
    left: Release,
    right: Release,
    *,
    claimed: float,
    delta: float = 0.0,
    samples: int = 10_000,
    outcomes: int = 1,
    confidence: float = 0.95,
) -> Finding:
    """Bound epsilon from below by what a release reveals of two data sets.

    Parameters
    ----------
    left, right : callable
        Each takes no arguments and releases once: the same release, from one and from the other of two data sets that
        differ in one unit. They may return frames of pandas or Polars, columns, arrays, numbers, text, or lists,
        tuples and dicts of these. A number within a text is seen as text alone. Choose data that differ as much as
        one unit can make them differ.
    claimed : float
        The epsilon that the release claims.
    delta : float
        The delta that it claims.
    samples : int
        The outcomes to draw of each side, at least 40, in whole calls; 100,000 detect noise that is a tenth too small.
    outcomes : int
        The number of independent outcomes that one call returns. A group-by of a thousand groups with different people
        is a thousand releases at once; the rows of the answer, in their order, are divided evenly among them. A
        denoiser mixes rows: leave it out there. Text counts only from 40 calls on: with fewer, read `differences`.
    confidence : float
        The confidence of the bound: a release whose claim is true gets an objection with a chance of at most
        1 - `confidence`.

    Returns
    -------
    Finding
        It has ``.lower_bound``, ``.claimed``, ``.holds``, ``.event`` and ``.differences``, and prints as text.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument breaks its rule.

    Notes
    -----
    An event E is chosen on one half of the samples: a threshold on a value, on the rest of a value, on the lowest bits
    of a value, on a likelihood ratio of all values, on whether a text is seen, or on how strongly all texts of a call
    indicate one side. Values are floats of 64 bits. A rest is what such a float does not show: the digits that are
    rounded off an integer, a time or a decimal; 1 for -0.0 and infinity, 2 for NaN, 3 for null. Texts are everything
    that is not a number: exceptions, warnings, log lines, prints, types, dtypes, columns, keys, row order, category
    levels, attrs, provenance. Each warning, key and fact is a text, and so are all of a call together. With
    ``outcomes=1``, noisy numbers in the provenance are values like those of the frame: the totals behind a statistic,
    and the counts of checks. On the other half, P(E) and Q(E) get limits by Clopper and Pearson (1934), and log((P -
    delta) / Q) bounds epsilon by the definition of differential privacy. A high bound is a proof of loss; a low bound
    proves nothing.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=2.0)  # half of the noise that epsilon 1 needs
    >>> def release(total):
    ...     return noise.add_noise(np.full(1_000, total, dtype=np.int64))
    >>> found = dpf.audit.epsilon(
    ...     lambda: release(10), lambda: release(11), claimed=1.0, samples=40_000, outcomes=1_000, confidence=0.999999
    ... )
    >>> found.holds
    False
    """
    delta = checked_float("delta", delta)
    if not 0.0 <= delta < 1.0:
        raise InvalidArgument(f"delta must be a number with 0 <= delta < 1, not {shown(delta)}.")
    return _audited("epsilon", left, right, epsilon_bound(delta), claimed, delta, samples, outcomes, confidence)


def mu(
    left: Release,
    right: Release,
    *,
    claimed: float,
    samples: int = 10_000,
    outcomes: int = 1,
    confidence: float = 0.95,
) -> Finding:
    """Bound the mu of Gaussian DP from below: the sharper test for Gaussian noise.

    Parameters
    ----------
    left, right, samples, outcomes, confidence
        As for `epsilon`.
    claimed : float
        The mu that the release claims: its sensitivity over its sigma, or the root of the sum of squares of several.

    Returns
    -------
    Finding
        With ``quantity`` "mu".

    Notes
    -----
    Under mu-Gaussian privacy, Phi^-1(P(E)) - Phi^-1(Q(E)) <= mu for every event E (Dong, Roth and Su 2022,
    Definition 2.6), and for Gaussian noise, every threshold attains it. No events of probability delta are needed.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> found = dpf.audit.mu(
    ...     lambda: noise.add_noise(np.full(1_000, 10, dtype=np.int64)),
    ...     lambda: noise.add_noise(np.full(1_000, 11, dtype=np.int64)),
    ...     claimed=noise.mu, samples=10_000, outcomes=1_000, confidence=0.999999,
    ... )
    >>> found.holds
    True
    """
    return _audited("mu", left, right, mu_bound, claimed, 0.0, samples, outcomes, confidence)


def _audited(
    quantity: str,
    left: Release,
    right: Release,
    bound: Bound,
    claimed: float,
    delta: float,
    samples: int,
    outcomes: int,
    confidence: float,
) -> Finding:
    for argument, release in (("left", left), ("right", right)):
        if not callable(release):
            raise InvalidType(f"{argument} must be a function that releases once, not {shown(release)}.")
    claimed = checked_float("claimed", claimed)
    if not 0.0 <= claimed < math.inf:
        raise InvalidArgument(f"claimed must be finite and not negative, not {shown(claimed)}.")
    confidence = between("confidence", confidence, 0.0, 1.0, "between 0 and 1", " Write for instance 0.95.")
    per_call = _whole("outcomes", outcomes, 1)
    calls = math.ceil(_whole("samples", samples, FEWEST) / per_call)
    sides = (("left", left), ("right", right))
    seen = [[observe(argument, release, per_call) for _ in range(calls)] for argument, release in sides]
    alpha = (1.0 - confidence) / 2  # half for the numbers, half for the texts
    findings = [(0.0, "none")]
    if calls >= FEWEST:
        shows = [[outcome.parts for outcome in side] for side in seen]
        findings.append(strongest(shows[0], shows[1], of_texts, bound, alpha))
    first_numbers, second_numbers = (_stacked(side, per_call) for side in seen)
    if first_numbers.shape[2] and second_numbers.shape[2]:
        width = max(first_numbers.shape[2], second_numbers.shape[2])
        first_numbers, second_numbers = (finite(_widened(side, width)) for side in (first_numbers, second_numbers))
        findings.append(strongest(first_numbers, second_numbers, of_numbers, bound, alpha))
    proved, event = max(findings)
    texts = [[outcome.text for outcome in side] for side in seen]
    return Finding(quantity, proved, claimed, delta, confidence, calls * per_call, event, apart(*texts))


def _stacked(side: list[Outcome], per_call: int) -> NDArray[np.float64]:
    """Return the numbers of all calls of one side, a row for each outcome, with NaN where a call has fewer or none."""
    width = max(0 if outcome.numbers is None else outcome.numbers.shape[2] for outcome in side)
    empty = np.full((per_call, 2, 0), np.nan)
    return np.concatenate([_widened(empty if outcome.numbers is None else outcome.numbers, width) for outcome in side])


def _widened(rows: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.pad(rows, ((0, 0), (0, 0), (0, width - rows.shape[2])), constant_values=np.nan)


def _whole(argument: str, value: object, least: int) -> int:
    return checked_whole(argument, value, least, 2**53, f"a whole number from {least} on")


@dataclass(frozen=True)
class Finding:
    """A lower bound on a privacy loss, from releases of two neighboring data sets.

    Made by `dpframe.audit.epsilon` and `dpframe.audit.mu`.

    Parameters
    ----------
    quantity : {"epsilon", "mu"}
        The quantity that is bounded.
    lower_bound : float
        The quantity is above this, except for a chance of at most 1 - `confidence`.
    claimed : float
        The claim of the release.
    delta : float
        The delta of the claim; 0 for mu.
    confidence : float
        The confidence of the bound.
    samples : int
        The number of outcomes of each side.
    event : str
        The event that shows it, chosen on one half of the samples and counted on the other.
    differences : tuple of str
        Everything but numbers that only one side showed: texts, dtypes, keys, their order, warnings, log lines,
        exceptions. It is by chance if it depends on the noise; otherwise, each difference distinguishes the sides.

    Examples
    --------
    >>> import dpframe as dpf
    >>> finding = dpf.audit.Finding("epsilon", 0.93, 1.0, 0.0, 0.95, 20_000, "value 0 >= 3", ())
    >>> finding.holds
    True
    >>> print(finding)
    epsilon is at least 0.93 (confidence 95%, 20,000 samples a side); 1 is claimed: no objection
      event: value 0 >= 3
    """

    quantity: str
    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    samples: int
    event: str
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if the samples are consistent with the claim. They never prove it."""
        return self.lower_bound <= self.claimed

    def __str__(self) -> str:
        at = f" at delta {self.delta:g}" if self.delta else ""
        verdict = "no objection" if self.holds else "OBJECTION, more is lost than is claimed"
        sure = f"(confidence {100 * self.confidence:.10g}%, {self.samples:,} samples a side)"
        lines = [
            f"{self.quantity} is at least {self.lower_bound:.4g}{at} {sure}; {self.claimed:.4g} is claimed: {verdict}",
            f"  event: {self.event}",
        ]
        return "\n".join(lines + [f"  only one side showed: {text}" for text in self.differences])


def __dir__() -> list[str]:
    return [*__all__]
