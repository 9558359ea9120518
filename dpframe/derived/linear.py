"""Released numbers with the noise in them: linear forms, quotients of two, and trees of both, with intervals.

A draw of noise is one entry of a block, and a block is one Total of a release. A linear form has the released values,
and for each value the weights of the draws in it. Draws of one block are independent, and so are different blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.sums_of_noise import FINE, Law, half_width
from dpframe.queries.mixing import GOLDEN, mixed

Floats = NDArray[np.float64]
Sparse = Any  # a sparse SciPy array: a row of weights for each row of the form
Spread = Callable[[Sparse], Floats]

FIRST, NARROW = 8, 2.0**-100  # cells of slopes at the start; the smallest half-width of a cell that is halved
CLOSE = 2.0**-7  # the largest excess of a bound on a quotient's noise, as a share of the bound or its deviation
ROUNDED = 2.0**-44  # an angle: this close to an infinite slope, rounding errors dominate
STEEPEST = 2.0**-36  # the smallest angle to an infinite slope; for a steeper quotient, angles have too few digits
SPARED = 2.0**-8  # the share of the chance of error that the bounds within cells use
COARSE = 10  # bits of the grid for these bounds
CHUNK = 2**22  # the number of floats in a chunk


@dataclass(frozen=True, eq=False)
class Block:
    """The draws of one Total of a release: their identity, their law and their number.

    `spread` is given if the entries are sums of other draws. It maps weights of entries to weights of draws, with shape
    (rows, draws). These draws are Gaussian with standard deviations `scales`, rounded to `law.grid`.
    """

    key: tuple[Any, ...]
    law: Law
    size: int
    spread: Spread | None = None
    scales: Floats | None = None


@dataclass(frozen=True, eq=False)
class Linear:
    """Released values, one for each row, and the weights of the draws in them, by block."""

    values: Floats
    noise: Mapping[tuple[Any, ...], tuple[Block, Sparse]]

    @property
    def is_fixed(self) -> bool:
        """True if there is no noise in it."""
        return all(weights.nnz == 0 for _, weights in self.noise.values())

    def sum_with(self, other: Linear, sign: float = 1.0) -> Linear:
        """Return this form plus `sign` times the other; the weights of a draw in both are added."""
        noise = dict(self.noise)
        for key, (block, weights) in other.noise.items():
            known = noise.get(key)
            added = sign * weights if known is None else known[1] + sign * weights
            added.eliminate_zeros()
            noise[key] = (block, added)
        return Linear(self.values + sign * other.values, noise)

    def times(self, factor: Floats | float) -> Linear:
        """Return the form with each row multiplied by a number."""
        from scipy.sparse import diags_array

        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), self.values.shape)
        scaled = diags_array(factors)
        noise = {key: (block, (scaled @ weights).tocsr()) for key, (block, weights) in self.noise.items()}
        for _, weights in noise.values():
            weights.eliminate_zeros()
        return Linear(self.values * factors, noise)

    def at(self, rows: NDArray[np.int64] | slice) -> Linear:
        """Return the given rows, in this order."""
        return Linear(self.values[rows], {key: (block, weights[rows]) for key, (block, weights) in self.noise.items()})

    def summed(self, sums: Sparse) -> Linear:
        """Return weighted sums of rows; each row of `sums` has the weights of one sum."""
        noise = {key: (block, (sums @ weights).tocsr()) for key, (block, weights) in self.noise.items()}
        for _, weights in noise.values():
            weights.eliminate_zeros()
        return Linear(sums @ self.values, noise)

    def same(self, other: Linear) -> bool:
        """Return whether both forms have the same values and the same noise."""
        if not np.array_equal(self.values, other.values):
            return False
        return self.sum_with(other, -1.0).is_fixed

    def variances(self) -> Floats:
        """Return the variance of each row."""
        return np.asarray(Moments.of(self, self).variances[0])


@dataclass(frozen=True, eq=False)
class Quotient:
    """A linear form divided by another, row by row.

    If many rows have noise of one law, `rows` has the numerators, the denominators, and for each row the row of the
    forms that has its noise. Such a quotient is final: arithmetic and `at` would ignore `rows`, so none may follow.
    """

    top: Linear
    bottom: Linear
    rows: tuple[Floats, Floats, NDArray[np.int64]] | None = None

    def at(self, rows: NDArray[np.int64] | slice) -> Quotient:
        """Return the given rows of both forms, in this order."""
        return Quotient(self.top.at(rows), self.bottom.at(rows))

    @property
    def expanded(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """The numerator and the denominator of each row, and the row of the forms that has its noise."""
        return self.rows or (self.top.values, self.bottom.values, np.arange(self.top.values.size))

    @property
    def values(self) -> Floats:
        """The quotients; NaN where the divisor is 0."""
        above, below, _ = self.expanded
        there = below != 0.0
        return np.where(there, above / np.where(there, below, 1.0), np.nan)


@dataclass(frozen=True, eq=False)
class Tree:
    """A product, a quotient or a sum that is neither linear nor one quotient; interval arithmetic gives its range."""

    operation: str
    left: Form
    right: Form

    @property
    def values(self) -> Floats:
        """The value of the operation in each row."""
        left, right = self.left.values, self.right.values
        with np.errstate(all="ignore"):
            if self.operation == "/":
                return np.where(right != 0.0, left / np.where(right != 0.0, right, 1.0), np.nan)
            return {"+": np.add, "-": np.subtract, "*": np.multiply}[self.operation](left, right)


Form = Linear | Quotient | Tree


def add(left: Form, right: Form, sign: float) -> Form:
    """Return the sum or the difference of two forms."""
    if isinstance(left, Linear) and isinstance(right, Linear):
        return left.sum_with(right, sign)
    if isinstance(left, Quotient) and isinstance(right, Linear) and right.is_fixed:
        return Quotient(left.top.sum_with(left.bottom.times(right.values), sign), left.bottom)
    if isinstance(right, Quotient) and isinstance(left, Linear) and left.is_fixed:
        return Quotient(right.bottom.times(left.values).sum_with(right.top, sign), right.bottom)
    if isinstance(left, Quotient) and isinstance(right, Quotient) and left.bottom.same(right.bottom):
        top = left.top.sum_with(right.top, sign)
        return top if top.is_fixed and not top.values.any() else Quotient(top, left.bottom)  # a - a is 0
    return Tree("+" if sign > 0.0 else "-", left, right)


def multiply(left: Form, right: Form) -> Form:
    """Return the product of two forms."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Linear) and one.is_fixed:
            if isinstance(other, Linear):
                return other.times(one.values)
            if isinstance(other, Quotient):
                return Quotient(other.top.times(one.values), other.bottom)
        if isinstance(one, Linear) and isinstance(other, Quotient) and one.same(other.bottom):
            return other.top
    return Tree("*", left, right)


def divide(left: Form, right: Form) -> Form:
    """Return the quotient of two forms."""
    if isinstance(right, Linear) and right.is_fixed and not isinstance(left, Tree) and (right.values != 0.0).all():
        return multiply(left, Linear(1.0 / right.values, {}))
    if isinstance(left, Linear) and isinstance(right, Linear):
        return Quotient(left, right)
    if isinstance(left, Linear) and left.is_fixed and isinstance(right, Quotient):
        return Quotient(right.bottom.times(left.values), right.top)
    if isinstance(left, Quotient) and isinstance(right, Quotient) and left.bottom.same(right.bottom):
        return Quotient(left.top, right.top)
    return Tree("/", left, right)


# Intervals -----------------------------------------------------------------------------------------------------------


def half_widths(form: Linear, confidence: float) -> Floats:
    """Return the half-widths of the intervals of a linear form."""
    patterns = Moments.of(form, form)
    widths = np.empty(form.values.size)
    for rows, one in patterns.groups():
        widths[rows] = one.half_width(0.0, 1.0, confidence)
    return widths + patterns.rounded()[:, 1]


def ends(form: Form, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of a form."""
    if isinstance(form, Linear):
        half = half_widths(form, confidence)
        return form.values - half, form.values + half
    if isinstance(form, Quotient):
        return _fieller(form, confidence)
    atoms = _atoms(form)
    each = confidence ** (1.0 / len(atoms))
    if _share_draws(atoms):  # then chances do not multiply; the chances of error add up
        each = 1.0 - (1.0 - confidence) / len(atoms)
    return _box(form, [(atom, ends(atom, each)) for atom in atoms])


def _atoms(form: Form) -> list[Linear | Quotient]:
    """Return the different linear forms and quotients in a tree, without plain numbers."""
    if isinstance(form, Tree):
        atoms = _atoms(form.left)
        return atoms + [one for one in _atoms(form.right) if not any(_is_same(one, known) for known in atoms)]
    return [] if isinstance(form, Linear) and form.is_fixed else [form]


def _is_same(one: Linear | Quotient, other: Linear | Quotient) -> bool:
    if isinstance(one, Linear) and isinstance(other, Linear):
        return one.same(other)
    if isinstance(one, Quotient) and isinstance(other, Quotient):
        return one.top.same(other.top) and one.bottom.same(other.bottom)
    return False


def _share_draws(atoms: Sequence[Linear | Quotient]) -> bool:
    """Return whether a block has noise in two of the forms."""
    seen: set[Any] = set()
    for atom in atoms:
        parts = (atom,) if isinstance(atom, Linear) else (atom.top, atom.bottom)
        keys = {key for part in parts for key, (_, weights) in part.noise.items() if weights.nnz}
        if keys & seen:
            return True
        seen |= keys
    return False


def _box(form: Form, known: Sequence[tuple[Linear | Quotient, tuple[Floats, Floats]]]) -> tuple[Floats, Floats]:
    """Return the range of a tree if each of its forms lies in its interval, by interval arithmetic."""
    if not isinstance(form, Tree):
        if isinstance(form, Linear) and form.is_fixed:
            return form.values, form.values
        return next(interval for atom, interval in known if _is_same(atom, form))
    (a, b), (c, d) = _box(form.left, known), _box(form.right, known)
    with np.errstate(all="ignore"):
        if form.operation == "+":
            return a + c, b + d
        if form.operation == "-":
            return a - d, b - c
        if form.operation == "/":
            crosses = (c <= 0.0) & (d >= 0.0)
            c, d = np.where(crosses, -np.inf, 1.0 / d), np.where(crosses, np.inf, 1.0 / c)
        corners = np.stack([_product(a, c), _product(a, d), _product(b, c), _product(b, d)])
    return corners.min(axis=0), corners.max(axis=0)


def _product(one: Floats, other: Floats) -> Floats:
    """Return a product in which 0 times infinity is 0, since the infinite end of an interval is never attained."""
    return np.where((one == 0.0) | (other == 0.0), 0.0, one * other)


def _fieller(form: Quotient, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of Fieller's set {r : abs(top - r bottom) <= q(r)}, where q(r) is the quantile of the noise.

    Noise has discrete steps, so q(r) is not convex: it rises steeply near slopes at which the steps of both forms
    coincide, such as 1, 2 and 1/2. The slopes are divided into cells (`Cells`), each with a bound on q. The answer is
    the hull of the slopes that these bounds admit. Cells with an end in them are halved until the bound is close to q.
    If the set is unbounded, the answer is the whole line.
    """
    above, below, group = form.expanded
    moments = Moments.of(form.top, form.bottom)
    lower, upper = np.full(above.size, -np.inf), np.full(above.size, np.inf)
    order = np.argsort(group, kind="stable")
    stops = np.searchsorted(group[order], np.arange(moments.size + 1))
    for mine, one in moments.groups():
        rows = np.concatenate([order[stops[place] : stops[place + 1]] for place in mine.tolist()])
        found = _hull(above[rows], below[rows], one, moments.rounded(group[rows]), confidence)
        lower[rows], upper[rows] = found
    return lower, upper


def _hull(top: Floats, bottom: Floats, one: Pattern, rounded: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the hulls of Fieller's sets of rows whose noise has one pattern.

    At an angle t, r = tilt + scale tan(t) and cos(t) (top - r bottom) = length sin(middle - t).
    """
    if one.is_fixed(second=True):
        half = one.half_width(1.0, 0.0, confidence) + rounded[:, 0]
        divisor = np.where(bottom == 0.0, np.nan, np.abs(bottom))
        ends = top / np.where(bottom == 0.0, np.nan, bottom) + half / divisor * np.array([[-1.0], [1.0]])
        return np.where(bottom == 0.0, -np.inf, ends[0]), np.where(bottom == 0.0, np.inf, ends[1])
    if one.is_fixed(second=False):
        half = one.half_width(0.0, 1.0, confidence) + rounded[:, 1]
        ends = top / np.where(np.abs(bottom) > half, bottom + half * np.array([[-1.0], [1.0]]), np.nan)
        return np.nan_to_num(ends.min(axis=0), nan=-np.inf), np.nan_to_num(ends.max(axis=0), nan=np.inf)
    cells = Cells.all_around(one, confidence)
    sign = np.where(bottom < 0.0, -1.0, 1.0)
    across, along = sign * (top - cells.tilt * bottom), np.abs(cells.scale * bottom)
    middle, length = np.arctan2(across, along), np.hypot(across, along)
    turns, places = np.full((2, top.size), math.pi), np.zeros((2, top.size), dtype=np.int64)
    turned = np.arange(top.size)  # the rows whose ends may still move
    while turned.size:
        for side, sense in enumerate((-1.0, 1.0)):
            known = sense * middle[turned], length[turned], rounded[turned]
            turns[side, turned], places[side, turned] = cells.facing(sense).last_left_in(*known, turns[side, turned])
        met = np.stack([cells.edges.size - 2 - places[0, turned], places[1, turned]])
        loose = cells.is_loose[met]
        halved = np.unique(met[loose])
        turned = turned[loose.any(axis=0)]
        cells = cells.halved(halved, one, confidence) if halved.size else cells
    rooms = np.arctan2(along, across * np.array([[-1.0], [1.0]]))  # angles from the middle to the infinite slopes
    bounded = (turns < rooms - ROUNDED).all(axis=0) & (rooms > STEEPEST).all(axis=0)
    along = np.where(bounded, along, 1.0)
    quotient = top / np.where(bounded, bottom, 1.0)
    found = []
    for side, sense in enumerate((-1.0, 1.0)):  # a difference of tangents without cancellation
        turn, room = np.where(bounded, turns[side], 0.0), np.where(bounded, rooms[side], 1.0)
        far = cells.scale * np.sin(turn) * length / (along * np.sin(room - turn))
        found.append(np.where(bounded, quotient + sense * far, sense * np.inf))
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of slopes r = tilt + scale tan(angle), each with a bound on the noise of cos(angle) (top - r bottom).

    Let N(t) be this noise at angle t, which is the sum of a cosine and a sine, and N' its derivative. With the middle
    m of a cell, N(t) = cos(t - m) N(m) + sin(t - m) N'(m). So abs(N(t)) is at most abs(N(m)) plus sin(half the cell)
    times abs(N'(m)). The first term stays within its quantile at a slightly higher confidence. The second exceeds its
    bound with a chance of at most that difference. So both hold together at the confidence, whatever the law is.
    """

    tilt: float
    scale: float
    edges: Floats  # angles, from -pi/2 to pi/2
    reach: Floats  # (cells,): the bound
    parts: Floats  # (2, cells): factors of the rounding errors of the top and the bottom in the bound
    is_loose: NDArray[np.bool_]  # whether the second term is more than a small share of the bound
    deviations: tuple[float, float]  # standard deviations of N at 0 and at pi/2
    farthest: tuple[float, float]  # bounds on abs(N) at 0 and at pi/2 that hold except for a small chance

    @classmethod
    def all_around(cls, one: Pattern, confidence: float) -> Cells:
        """Return the first few cells, which cover all slopes."""
        tilt, scale, deviations = one.frame()
        little = 1.0 - (1.0 - confidence) * SPARED / 2.0
        farthest = one.half_width(1.0, -tilt, little, COARSE), one.half_width(0.0, scale, little, COARSE)
        edges = np.linspace(-math.pi / 2.0, math.pi / 2.0, FIRST + 1)
        empty = cls(
            tilt, scale, edges, np.zeros(0), np.zeros((2, 0)), np.zeros(0, dtype=np.bool_), deviations, farthest
        )
        return replace(empty, **empty.told(edges[:-1], edges[1:], one, confidence))

    def told(self, lower: Floats, upper: Floats, one: Pattern, confidence: float) -> dict[str, Any]:
        """Return the fields of cells between these edges."""
        middle, away = (lower + upper) / 2.0, np.sin((upper - lower) / 2.0 * (1.0 + 2.0**-40))
        cosine, sine = np.cos(middle), np.sin(middle)
        of_bottom = -(self.tilt * cosine + self.scale * sine)
        more = confidence + (1.0 - confidence) * SPARED
        noise = [
            one.half_width(first, second, more, COARSE)
            for first, second in zip(cosine.tolist(), of_bottom.tolist(), strict=True)
        ]
        rest = away * (np.abs(sine) * self.farthest[0] + cosine * self.farthest[1])
        turned = np.abs(self.tilt * sine - self.scale * cosine)
        parts = np.stack([cosine + away * np.abs(sine), np.abs(of_bottom) + away * turned])
        reach = np.array(noise) + rest
        deviation = np.hypot(cosine * self.deviations[0], sine * self.deviations[1])
        is_loose = (rest > CLOSE * np.maximum(reach, deviation)) & (away > NARROW)
        return {"reach": reach, "parts": parts, "is_loose": is_loose}

    def halved(self, places: NDArray[np.int64], one: Pattern, confidence: float) -> Cells:
        """Return the cells with some of them halved; the bound of a half is at most that of the whole cell."""
        lower, upper = self.edges[places], self.edges[places + 1]
        middle = (lower + upper) / 2.0
        ends = np.stack([lower, middle, upper], axis=1)
        told = self.told(ends[:, :2].ravel(), ends[:, 1:].ravel(), one, confidence)
        into = np.repeat(places, 2)
        kept = {name: np.delete(getattr(self, name), places, axis=-1) for name in told}
        at = into - np.repeat(np.arange(places.size), 2)  # their places among the cells that are kept
        told["reach"] = np.minimum(told["reach"], self.reach[into])
        told["parts"] = np.minimum(told["parts"], self.parts[:, into])
        fields = {name: np.insert(kept[name], at, told[name], axis=-1) for name in told}
        return replace(self, edges=np.insert(self.edges, places + 1, middle), **fields)

    def facing(self, sense: float) -> Cells:
        """Return the cells, or their mirror image for a negative sense."""
        if sense > 0.0:
            return self
        names = ("reach", "parts", "is_loose")
        return replace(self, edges=-self.edges[::-1], **{name: getattr(self, name)[..., ::-1] for name in names})

    def last_left_in(
        self, middle: Floats, length: Floats, rounded: Floats, turn: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return the distance from `middle` to the last angle that the bounds admit, and the cell of that angle.

        The search starts at `turn`, because tighter bounds never increase it. The cell of `middle` is always admitted.
        """
        far = np.empty_like(turn)
        places = np.searchsorted(self.edges, middle + turn, side="right") - 1
        places = np.minimum(places, self.edges.size - 2)
        rest = np.arange(turn.size)
        while rest.size:
            mine = places[rest]
            near, beyond = np.maximum(self.edges[mine] - middle[rest], 0.0), self.edges[mine + 1] - middle[rest]
            reach = self.reach[mine] + (rounded[rest] * self.parts[:, mine].T).sum(axis=1)
            share = reach / np.where(length[rest] > 0.0, length[rest], np.nan)
            inside = ~(np.minimum(np.sin(near), np.sin(beyond)) > share)  # NaN counts as inside
            stops = np.arcsin(np.minimum(share, 1.0))
            far[rest] = np.where(np.sin(beyond) > share, np.clip(stops, near, beyond), beyond)
            inside |= mine == 0
            rest = rest[~inside]
            places[rest] -= 1
        return np.minimum(far, turn), places


@dataclass(frozen=True, eq=False)
class Pattern:
    """The noise of two forms: for each law, both weights and the number of draws with them; and a Gaussian pair."""

    terms: tuple[tuple[Law, float, float, int], ...]
    normal: tuple[float, float, float]  # the variance of the first, the covariance, and the variance of the second

    def half_width(self, first: float, second: float, confidence: float, bits: int = FINE) -> float:
        """Return the half-width of the interval of the noise of `first` times one form and `second` times the other."""
        weights: dict[tuple[Law, float], int] = {}
        for law, one, other, count in self.terms:
            if weight := abs(first * one + second * other):
                weights[law, weight] = weights.get((law, weight), 0) + count
        of_first, of_both, of_second = self.normal
        spread = first**2 * of_first + 2.0 * first * second * of_both + second**2 * of_second
        terms = tuple((law, weight, count) for (law, weight), count in sorted(weights.items()))
        return half_width(terms, math.sqrt(max(spread, 0.0)), confidence, bits)

    def is_fixed(self, *, second: bool) -> bool:
        """Return whether there is no noise in the second form, or in the first if `second` is False."""
        return self.normal[2 * second] == 0.0 and all(weights[second] == 0.0 for _, *weights, _ in self.terms)

    def frame(self) -> tuple[float, float, tuple[float, float]]:
        """Return the tilt, which is the r at which top - r bottom has least noise; the scale of r; and two deviations.

        The deviations are those of top - tilt bottom and of scale bottom, which have no covariance.
        """
        top, both, bottom = self.normal
        for law, one, other, count in self.terms:
            variance = law.variance * count
            top, both, bottom = top + one**2 * variance, both + one * other * variance, bottom + other**2 * variance
        tilt = both / bottom if bottom else 0.0
        rest = max(top - tilt * both, 0.0)
        scale = math.sqrt(rest / bottom) if bottom and rest else max(abs(tilt), 1.0)
        return tilt, scale, (math.sqrt(rest), scale * math.sqrt(bottom))


@dataclass(frozen=True, eq=False)
class Moments:
    """The noise of two forms, row by row: single draws of blocks without `spread`, moments of blocks with it."""

    size: int
    laws: tuple[Law, ...]
    entries: tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]  # row, law, the weight in each form
    spread: Floats  # (3, rows): variances and covariance from blocks with `spread`, as in `variances`
    roundings: tuple[Floats, ...]  # (rows, 2) each: the most by which the rounding of draws moves each form

    @classmethod
    def of(cls, first: Linear, second: Linear) -> Moments:
        """Return the noise of two forms of the same rows."""
        size = first.values.size
        keys = {**first.noise, **second.noise}
        laws: dict[Law, int] = {}
        parts: list[tuple[Any, ...]] = []
        spread, roundings = np.zeros((3, size)), []
        for key, (block, _) in keys.items():
            weights = [_weights_of(form, key, block) for form in (first, second)]
            if block.spread is None:
                parts.append((laws.setdefault(block.law, len(laws)), *_both(weights)))
            else:
                more, rounded = _of_spread(block, weights)
                spread += more
                roundings.append(rounded)
        empty: list[Any] = [np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)]
        columns = [
            np.concatenate([empty[place], *(_column(part, place) for part in parts)]) for place in range(len(empty))
        ]
        return cls(size, tuple(laws), tuple(columns), spread, tuple(roundings))  # type: ignore[arg-type]

    @cached_property
    def variances(self) -> Floats:
        """The variance of the first form, the covariance, and the variance of the second: (3, rows)."""
        rows, laws, one, other = self.entries
        each = np.array([law.variance for law in self.laws] or [0.0])[laws]
        sums = [np.bincount(rows, each * product, self.size) for product in (one * one, one * other, other * other)]
        return np.asarray(np.stack(sums) + self.spread)

    def rounded(self, rows: Any = slice(None)) -> Floats:
        """Return the most by which rounding moves the spread noise of each form, half a step per draw: (rows, 2)."""
        return np.asarray(sum(self.roundings, start=np.zeros((self.size, 2)))[rows])

    def groups(self) -> list[tuple[NDArray[np.int64], Pattern]]:
        """Return each pattern once, with the rows that have it."""
        rows, laws, one, other = self.entries
        flip = (other < 0.0) | ((other == 0.0) & (one < 0.0))  # both signs may flip, since the laws are symmetric
        one, other = np.where(flip, -one, one), np.where(flip, -other, other)
        kinds, kind = np.unique(np.stack([laws.astype(np.float64), one, other]), axis=1, return_inverse=True)
        kind = np.ravel(kind)
        marks = _marks(kinds.shape[1])
        words = np.zeros((self.size, 2), dtype=np.uint64)
        np.add.at(words, rows, marks[kind])
        spread = np.array([float(f"{value:.12g}") for value in self.spread.ravel()]).reshape(self.spread.shape)
        told = np.concatenate([words, np.ascontiguousarray(spread.T).view(np.uint64)], axis=1)
        _, firsts, group = np.unique(told, axis=0, return_index=True, return_inverse=True)
        members = np.split(np.argsort(np.ravel(group), kind="stable"), np.cumsum(np.bincount(np.ravel(group)))[:-1])
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(self.size + 1))
        found = []
        for first, mine in zip(firsts.tolist(), members, strict=True):
            counted = np.unique(kind[order[starts[first] : starts[first + 1]]], return_counts=True)
            terms = tuple(
                (self.laws[int(kinds[0, place])], float(kinds[1, place]), float(kinds[2, place]), int(count))
                for place, count in zip(*counted, strict=True)
            )
            found.append((mine, Pattern(terms, tuple(self.spread[:, first].tolist()))))
        return found


def _column(part: tuple[Any, ...], place: int) -> Any:
    law, rows, one, other = part
    return (rows, np.full(rows.size, law, dtype=np.int64), one, other)[place]


def _marks(kinds: int) -> NDArray[np.uint64]:
    """Return two words for each kind of draw; their sums distinguish rows with different draws."""
    return np.asarray(mixed(np.arange(1, 2 * kinds + 1, dtype=np.uint64) * GOLDEN).reshape(kinds, 2))


def _weights_of(form: Linear, key: tuple[Any, ...], block: Block) -> Sparse:
    from scipy.sparse import csr_array

    return form.noise[key][1] if key in form.noise else csr_array((form.values.size, block.size))


def _both(weights: Sequence[Sparse]) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the rows of the entries in which either form has a weight, and both weights."""
    first, second = (one.tocoo() for one in weights)
    rows = np.concatenate([first.row, second.row]).astype(np.int64)
    places = np.concatenate([first.col, second.col]).astype(np.int64)
    codes, inverse = np.unique(rows * weights[0].shape[1] + places, return_inverse=True)
    inverse = np.ravel(inverse)
    one, other = np.zeros(codes.size), np.zeros(codes.size)
    one[inverse[: first.nnz]] = first.data  # no entry occurs twice
    other[inverse[first.nnz :]] = second.data
    return np.asarray(codes // weights[0].shape[1], dtype=np.int64), one, other


def _of_spread(block: Block, weights: Sequence[Sparse]) -> tuple[Floats, Floats]:
    """Return the moments of the spread draws, and the most by which their rounding moves each form, chunk by chunk."""
    assert block.spread is not None
    assert block.scales is not None
    size = weights[0].shape[0]
    moments, moved = np.zeros((3, size)), np.zeros((size, 2))
    variances = block.scales**2
    each = max(1, CHUNK // max(block.scales.size, block.size))
    for start in range(0, size, each):
        mine = slice(start, start + each)
        same = weights[0] is weights[1]
        one = block.spread(weights[0][mine])
        other = one if same else block.spread(weights[1][mine])
        moments[:, mine] = [
            np.einsum("ij,ij,j->i", a, b, variances) for a, b in ((one, one), (one, other), (other, other))
        ]
        for place, form in enumerate((one, other)):
            moved[mine, place] = np.abs(form).sum(axis=1) * block.law.grid / 2.0
    return moments, moved
