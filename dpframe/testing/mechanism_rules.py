"""The rules of a mechanism: tests of its members, its curve, its charges and the law of its noise."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import noise
from dpframe.errors import InvalidArgument, named, shown
from dpframe.exact import is_number, up
from dpframe.mechanisms import curves
from dpframe.mechanisms.contract import Mechanism, is_mechanism
from dpframe.testing.broken import ContractBroken, may_not_fail, require, telling_nothing

Floats = NDArray[np.float64]

POINTS = 24  # points of a curve that are compared
FINE = 4_000  # points of an integral over a curve
SLACK = 1e-9  # relative, for the errors of double precision
LEAST = 1e-12  # bounds the error of a delta in double precision
TINY = 1e-200  # a smaller tail is not compared
ROUNDED = 4.0 * curves.ACCURACY  # bounds the upward rounding of a delta from tails
ORDERS = (Fraction(3, 2), Fraction(2), Fraction(8), Fraction(32))
CONFIDENCES = (0.5, 0.9, 0.95, 0.99, 0.999999)

DRAWS = 2**20
FEW = 2**10  # calls of one cell
TABLE = (2**10, 2**5)  # the shape of a table of unequal totals
FAR = (10**6 + 1, -(2**50), 2**62 + 1, np.iinfo(np.int64).max - 5)  # beyond 2**53, floats are not exact
MANY = 2**15  # with this many draws that are not 0, all pairs of cells are compared
CHOICES = 3_000
WIDE = 6.5  # standard deviations: each of some hundred comparisons fails by chance with probability 1e-10
FEWEST = 100  # the fewest draws for a normal approximation
MOST = np.iinfo(np.int64).max


@may_not_fail("a mechanism")
def check_mechanism(mechanism: Mechanism) -> None:
    """Check a calibrated mechanism against the rules of ``mechanism=``.

    Parameters
    ----------
    mechanism : Mechanism
        A calibrated mechanism, with a sensitivity and a scale of some grid steps. Check a few, on coarse and fine
        grids.

    Raises
    ------
    ContractBroken
        If a member is missing or of the wrong kind. If the curve rises, is not convex in e^epsilon, or is below that of
        the law that ``tail`` states. If an interval, the variance or a charge is too small for that law. If the drawn
        noise is not of that law: too small, not centered, dependent on the total, of another law in other shapes of
        totals, shared between cells, or not modulo 2**64. If `add_noise` prints, logs or warns.

    Notes
    -----
    The check makes about a million draws. It detects noise that is 2% too small, and refuses a mechanism that keeps the
    rules less often than once in a million. Without ``tail``, the curve is compared with the draws alone, which shows
    gross errors. A check detects no leak in the last bits of a draw: take your draws from `dpframe.noise`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> from dpframe.testing import check_mechanism
    >>> check_mechanism(dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5))
    """
    _check_members(mechanism)
    points = _points(mechanism)
    _check_curve(mechanism, points)
    if type(mechanism).tail is not Mechanism.tail:
        _check_law(mechanism, points)
    _check_charges(mechanism, points)
    check_draws(mechanism)


def _check_members(mechanism: Mechanism) -> None:
    require(is_mechanism(mechanism), "kind", f"a mechanism must be calibrated noise, not {named(mechanism)}.")
    require(isinstance(mechanism, Hashable), "frozen", "a mechanism must be a frozen value, which can be hashed.")
    for name, (rule, fits) in MEMBERS.items():  # in order: the last are derived from the first
        try:
            value = getattr(mechanism, name)
        except AttributeError as error:
            raise ContractBroken(f"members: a mechanism must have every member of dpf.Mechanism: {error}.") from error
        except InvalidArgument as error:
            raise ContractBroken(f"members: {error}") from error
        require(fits(value), "members", f"{name} must be {rule}, not {shown(value)}.")


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0.0 < value < math.inf


MEMBERS: dict[str, tuple[str, Any]] = {
    "name": ("a word for plans and provenances", lambda value: isinstance(value, str) and bool(value.strip())),
    "grid": ("a number above 0", _is_positive),
    "sensitivity": ("a number above 0", _is_positive),
    "norm": ("a number of at least 1", lambda value: is_number(value) and value >= 1.0),
    "p": ("a number of at least 1", lambda value: is_number(value) and value >= 1.0),
    "cells": ("a number of at least 1", lambda value: is_number(value) and value >= 1.0),
    "additive": ("True or False", lambda value: isinstance(value, bool)),
    "exact_mu": ("True or False", lambda value: isinstance(value, bool)),
    "details": ("a dict", lambda value: isinstance(value, dict)),
    "pure_epsilon": ("None or a number above 0", lambda value: value is None or _is_positive(value)),
    "variance": ("a number of at least 0", lambda value: is_number(value) and 0.0 <= value < math.inf),
    "scale": ("a number above 0", _is_positive),
}


def _points(mechanism: Mechanism) -> Floats:
    """Return epsilons from 0 to where delta is negligible."""
    pure_epsilon = mechanism.pure_epsilon
    if pure_epsilon is not None:
        return np.linspace(0.0, pure_epsilon, POINTS)
    farthest = 2.0**-20
    while mechanism.delta(farthest) > LEAST and farthest < 2.0**40:
        farthest *= 2.0
    return np.linspace(0.0, farthest, POINTS)


def _check_curve(mechanism: Mechanism, points: Floats) -> None:
    """Check that delta is in [0, 1], falls, is convex in e^epsilon, and agrees with `epsilon` and `deltas`."""
    deltas = np.array([mechanism.delta(float(point)) for point in points])
    require(((deltas >= 0.0) & (deltas <= 1.0)).all(), "curve", "delta must be between 0 and 1.")
    require((np.diff(deltas) <= LEAST).all(), "curve", "delta must not rise with epsilon.")
    weights = np.exp(np.minimum(points, curves.LARGEST_POWER))
    between = np.interp(weights[1:-1], weights[[0, -1]], deltas[[0, -1]])
    require((deltas[1:-1] <= between + LEAST).all(), "curve", "delta must be convex in e^epsilon.")
    pure_epsilon = mechanism.pure_epsilon
    if pure_epsilon is not None:
        require(mechanism.delta(pure_epsilon) == 0.0, "curve", "delta must be 0 from pure_epsilon on.")
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = mechanism.epsilon(delta)
        require(
            mechanism.delta(epsilon) <= delta * (1.0 + SLACK),
            "curve",
            f"epsilon must be rounded up: at delta {delta:g} it says {epsilon:g}, where delta is "
            f"{mechanism.delta(epsilon):g}.",
        )
    for sign in (1.0, -1.0):
        many = mechanism.deltas(sign * points)
        exact = deltas if sign > 0.0 else -np.expm1(-points) + np.exp(-points) * deltas
        require(many.shape == points.shape, "curve", "deltas must return an array of the shape that it gets.")
        low = many < exact * (1.0 - SLACK) - LEAST
        require(not low.any(), "curve", "deltas must not be below delta, or at -epsilon below what follows from it.")


def _check_law(mechanism: Mechanism, points: Floats) -> None:
    """Check the stated figures against those that follow from the tails."""
    tail, grid = mechanism.tail, mechanism.grid
    steps = np.unique(np.rint(np.geomspace(1.0, curves.reach_of_tail(tail, 1e-12) + 2.0, 64)))
    tails = tail(steps)
    require((np.diff(tails) <= 0.0).all() and (tails >= 0.0).all(), "tail", "tail must fall, and not be below 0.")
    require(tails[0] <= 0.5, "tail", "tail(1) must be at most 1/2: the noise is symmetric.")
    seen = tails > TINY
    slopes = np.diff(np.log(tails[seen])) / np.diff(steps[seen])
    concave = np.diff(slopes) <= SLACK * np.abs(slopes[1:]) + 1e-12
    require(concave.all(), "tail", "the noise must be log-concave: its tail must fall ever faster.")
    shift = curves.whole_steps(mechanism.sensitivity, grid)
    needed = curves.deltas_of_tail(tail, shift, points)
    for point, least in zip(points, needed, strict=True):
        said = mechanism.delta(float(point))
        require(
            said >= least * (1.0 - SLACK) - ROUNDED,
            "delta",
            f"delta must not be below that of the noise: at epsilon {point:.4g} it is {said:.6g}, and a total that "
            f"moves by {mechanism.sensitivity:g} gives {least:.6g}.",
        )
    for confidence in CONFIDENCES:
        width = curves.half_width_of_tail(tail, confidence - SLACK) * grid
        said = mechanism.interval(confidence)
        require(
            said >= width * (1.0 - SLACK),
            "interval",
            f"an interval must hold the noise: at {confidence:g} it is {said:g}, and {width:g} are needed.",
        )
    variance = curves.variance_of_tail(tail) * grid**2
    said = mechanism.variance
    fits = abs(said - variance) <= 1e-3 * variance + 1e-12 * grid**2
    require(fits, "variance", f"variance must be that of the noise, {variance:.6g}, not {said:.6g}.")


def _check_charges(mechanism: Mechanism, points: Floats) -> None:
    """Check that each charge covers the curve; a mechanism without a proven charge refuses with a typed error."""
    stated = mechanism.deltas(points)
    squared = _charge(lambda: mechanism.mu_squared, "mu_squared")
    if squared is not None:
        mu = math.nextafter(math.sqrt(up(squared)), math.inf)
        allowed = curves.both_sides(points, lambda some: curves.of_gaussian(mu, some))
        low = stated > allowed * (1.0 + SLACK) + LEAST
        require(not low.any(), "charge", f"mu_squared must cover its curve, and {float(squared):.6g} does not.")
    if not mechanism.additive:  # its curve may be the maximum over pairs, none of which has its divergence
        return
    fine = np.linspace(0.0, points[-1], FINE)
    deltas = mechanism.deltas(fine)
    for order in ORDERS:
        cost = _charge(lambda order=order: mechanism.renyi(order), "renyi")
        if cost is None:
            continue
        needed = _divergence(float(order), fine, deltas)
        require(
            float(cost) >= needed * (1.0 - SLACK) - LEAST,
            "charge",
            f"renyi must cover its curve: at order {order} it is {float(cost):.6g}, and {needed:.6g} are needed.",
        )


def _charge(read: Any, member: str) -> Fraction | None:
    """Return a charge, or None if it is refused with a message."""
    try:
        charge = read()
    except InvalidArgument:
        return None
    require(type(charge) is Fraction and charge >= 0, "charge", f"{member} must be a Fraction of at least 0.")
    return Fraction(charge)


def _divergence(order: float, epsilons: Floats, deltas: Floats) -> float:
    """Return a lower bound on the Rényi divergence of symmetric pairs with this curve.

    The moment is 1 + a (a - 1) times the integral of (e^((a - 1) s) + e^(-a s)) delta(s) over s >= 0, by partial
    integration for both signs of the loss. delta falls, so its value at the right end of each piece is a lower bound.
    """
    a = order
    kept = (a - 1.0) * epsilons <= curves.LARGEST_POWER  # omits a part of the integral, which is not negative
    epsilons, deltas = epsilons[kept], deltas[kept]
    up_to = np.expm1((a - 1.0) * epsilons) / (a - 1.0) - np.expm1(-a * epsilons) / a
    moment = 1.0 + a * (a - 1.0) * float((np.diff(up_to) * deltas[1:]).sum())
    return math.log(moment) / (a - 1.0)


def check_draws(mechanism: Mechanism) -> None:
    """Check the draws of a mechanism by kind: noise, bounded answers, or a choice."""
    if not math.isfinite(mechanism.p):
        _check_choices(mechanism)
        return
    _check_kinds(mechanism)
    if mechanism.additive:
        steps = sample_of(mechanism, 0)
        _check_spread(mechanism, steps)
        _check_independence(mechanism, steps)
        _check_shapes(mechanism, steps)
        _check_interval(mechanism, steps)
        _check_same_law(mechanism, steps)
        if type(mechanism).tail is not Mechanism.tail:
            _check_tail(mechanism, steps)
    _check_neighbors(mechanism)


def sample_of(mechanism: Mechanism, total: int, size: int = DRAWS) -> noise.Integers:
    """Return the noise of equal totals: noisy totals minus the totals."""
    return _drawn(mechanism, np.full(size, total, dtype=np.int64))


def _drawn(mechanism: Mechanism, totals: noise.Integers) -> noise.Integers:
    """Return the noise that is added to totals."""
    with telling_nothing("add_noise"):
        noisy = mechanism.add_noise(totals.copy())
    return (noisy.view(np.uint64) - totals.view(np.uint64)).view(np.int64)


def _check_kinds(mechanism: Mechanism) -> None:
    """Check for int64 of the same shape, unchanged totals, and no error at the ends of 64 bits."""
    for totals in (np.zeros((3, 5), np.int64), np.zeros(0, np.int64), np.full(64, MOST), np.full(64, -MOST - 1)):
        copied = totals.copy()
        try:
            with np.errstate(all="ignore"), telling_nothing("add_noise"):
                noisy = mechanism.add_noise(copied)
        except ContractBroken:
            raise
        except Exception as error:
            raise ContractBroken(
                f"add_noise: it must not fail, whatever the totals, and raised {type(error).__name__}: {error}"
            ) from error
        fits = isinstance(noisy, np.ndarray) and noisy.dtype == np.int64 and noisy.shape == totals.shape
        require(fits, "add_noise", "it must return an int64 array of the shape of the totals.")
        require(np.array_equal(copied, totals), "add_noise", "it must not change the totals that it gets.")
        if mechanism.additive and totals.size == 64:
            away = (noisy.view(np.uint64) - totals.view(np.uint64)).view(np.int64)
            close = np.abs(away.astype(np.float64)) * mechanism.grid <= 1e3 * math.sqrt(mechanism.variance) + 1e-9
            require(
                close.all(), "add_noise", "it must add modulo 2**64, and neither stop nor jump at the largest totals."
            )


def _check_spread(mechanism: Mechanism, steps: noise.Integers) -> None:
    """Check that the noise has the mean 0 and the stated variance."""
    values = steps.astype(np.float64)
    squares = values**2
    if np.count_nonzero(steps) < FEWEST:
        return
    mean, spread = float(values.mean()), float(values.std()) / math.sqrt(values.size)
    require(
        abs(mean) <= WIDE * spread, "centre", f"noise must have the mean 0, and that of the draws is {mean:.4g} steps."
    )
    variance, error = float(squares.mean()), float(squares.std()) / math.sqrt(values.size)
    said = mechanism.variance / mechanism.grid**2
    require(
        abs(variance - said) <= WIDE * error + 1e-6 * said,
        "variance",
        f"noise must have the variance that it states, {said:.6g} squared steps, and the draws have {variance:.6g}.",
    )


def _check_independence(mechanism: Mechanism, steps: noise.Integers) -> None:
    """Check that noise is independent between cells, at any distance or in reverse order, and between calls."""
    values = steps.astype(np.float64)
    if np.count_nonzero(steps) < FEWEST:
        return
    again = sample_of(mechanism, 0).astype(np.float64)
    many = bool(np.count_nonzero(steps) >= MANY)
    for kind in (np.asarray, np.abs):  # sizes may be dependent although signs are not
        for other, words in ((values, "cells"), (again, "calls")):
            shared = _shared(kind(values), kind(other), far=many, apart=other is values)
            require(
                shared <= WIDE / math.sqrt(values.size) * 2.0,
                "independence",
                f"noise of different {words} must be independent, and its correlation is {shared:.3g}.",
            )


def _shared(first: Floats, second: Floats, *, far: bool, apart: bool) -> float:
    """Return the largest correlation between cells of two samples, over all distances and sums of their places.

    Without `far`, only adjacent cells of one call, or the same cells of two calls, are compared.
    """
    first, second = first - first.mean(), second - second.mean()
    spread = float(first.std() * second.std()) * first.size
    if not spread:
        return 0.0
    if not far:
        return abs(float((first * np.roll(second, int(apart))).sum())) / spread
    waves = np.fft.rfft(first), np.fft.rfft(second)
    distances = np.fft.irfft(waves[0] * waves[1].conj(), first.size)[int(apart) :]  # no cell with itself
    sums = np.fft.irfft(waves[0] * waves[1], first.size)
    return float(max(np.abs(distances).max(initial=0.0), np.abs(sums).max())) / spread


def _check_shapes(mechanism: Mechanism, steps: noise.Integers) -> None:
    """Check that the noise has the same law in calls of one cell, and for unequal totals in rows and columns."""
    squares = steps.astype(np.float64) ** 2
    seen = np.count_nonzero(steps) / steps.size
    unequal = np.arange(math.prod(TABLE), dtype=np.int64).reshape(TABLE) * 997 - 10**6
    one = np.zeros(1, dtype=np.int64)
    for words, size, draw in (
        ("a call of one cell", FEW, lambda: np.concatenate([_drawn(mechanism, one) for _ in range(FEW)])),
        ("unequal totals in rows and columns", unequal.size, lambda: _drawn(mechanism, unequal).ravel()),
    ):
        if seen * size < FEWEST:
            continue
        values = draw().astype(np.float64)
        variance, error = float((values**2).mean()), WIDE * float(squares.std()) / math.sqrt(size)
        require(
            variance >= float(squares.mean()) - error,
            "shape",
            f"noise must be of one law whatever the shape of the totals: in {words} it has the variance "
            f"{variance:.6g}, and in many equal cells {squares.mean():.6g}.",
        )
        shared = _shared(values, values, far=bool(seen * size >= MANY / 4), apart=True)
        require(
            shared <= WIDE / math.sqrt(size) * 2.0,
            "independence",
            f"noise of different cells must be independent, and in {words} its correlation is {shared:.3g}.",
        )


def _check_interval(mechanism: Mechanism, steps: noise.Integers) -> None:
    sizes = np.abs(steps.astype(np.float64)) * mechanism.grid
    for confidence in (0.5, 0.95, 0.999):
        width = mechanism.interval(confidence)
        inside = float((sizes <= width * (1.0 + 1e-12)).mean())
        least = confidence - WIDE * math.sqrt(confidence * (1.0 - confidence) / sizes.size)
        require(
            inside >= least,
            "interval",
            f"an interval must hold the noise: that of {confidence:g} is {width:g} wide and holds {inside:.5g} of it.",
        )


def _check_same_law(mechanism: Mechanism, steps: noise.Integers) -> None:
    """Check that the noise does not depend on the total."""
    here = np.sort(steps)
    for total in FAR:
        there = np.sort(sample_of(mechanism, total))
        ends = here[:: max(1, here.size // 32)]
        counts = np.searchsorted(here, ends, side="right"), np.searchsorted(there, ends, side="right")
        shares = (counts[0] + counts[1]) / (2.0 * here.size)
        error = np.sqrt(2.0 * shares * (1.0 - shares) * here.size) + 1.0
        require(
            (np.abs(counts[0] - counts[1]) <= WIDE * error).all(),
            "additive",
            f"noise must not depend on the total, and is not the same around {total:,}. Say additive = False if "
            "that is meant.",
        )


def _check_tail(mechanism: Mechanism, steps: noise.Integers) -> None:
    """Check the share of the draws beyond some points, on both sides, against the tails."""
    sizes = np.sort(np.abs(steps))
    drawn = np.maximum(1, sizes[np.linspace(0, sizes.size - 1, 40).astype(np.int64)])
    beyond = np.rint(np.geomspace(1.0, curves.reach_of_tail(mechanism.tail, WIDE**2 / steps.size) + 1.0, 40))
    points = np.unique(np.concatenate([drawn, beyond])).astype(np.float64)  # where draws are and should be
    tails = mechanism.tail(points)
    for side in (steps, -steps):
        ordered = np.sort(side).astype(np.float64)
        shares = 1.0 - np.searchsorted(ordered, points, side="left") / steps.size
        error = WIDE * np.sqrt(tails * (1.0 - tails) / steps.size) + WIDE**2 / steps.size
        worst = int(np.argmax(np.abs(shares - tails) - error))
        require(
            (np.abs(shares - tails) <= error).all(),
            "tail",
            f"noise must have the tails that it states: of {points[worst]:,.0f} steps and more {tails[worst]:.5g}, and "
            f"the draws have {shares[worst]:.5g}.",
        )


def _check_neighbors(mechanism: Mechanism) -> None:
    """Check totals that differ by the sensitivity: half of the draws choose events, the other half test them."""
    shift = int(curves.whole_steps(mechanism.sensitivity, mechanism.grid))
    for total in (0, -(10**6), 10**6, shift):
        sample, neighbor = (sample_of(mechanism, start) + start for start in (total, total + shift))
        for first, second in ((sample, neighbor), (neighbor, sample)):
            _check_pair(mechanism, first, second)


def _check_pair(mechanism: Mechanism, first: Any, second: Any) -> None:
    """Check the answers below, above and at each point: at no epsilon may their delta exceed the curve."""
    half = first.size // 2
    learned = first[:half]
    points = np.unique([*learned[:: max(1, half // 64)], learned.min(), learned.max()])
    shares = [_shares(sample[half:], points) for sample in (first, second)]
    top = mechanism.pure_epsilon or mechanism.epsilon(1e-6)
    for epsilon in np.linspace(0.0, top, 5):
        said = mechanism.delta(float(epsilon))
        low = shares[0] - WIDE * np.sqrt(shares[0] * (1.0 - shares[0]) / half)
        high = shares[1] + WIDE * np.sqrt(shares[1] * (1.0 - shares[1]) / half) + WIDE**2 / half
        delta = float((low - math.exp(min(epsilon, 700.0)) * high).max())
        require(
            delta <= said,
            "delta",
            f"the draws must keep the curve: at epsilon {epsilon:.4g} delta is stated as {said:.4g}, and is more than "
            f"{delta:.4g}.",
        )


def _shares(sample: Any, points: Any) -> Any:
    """Return the shares of a sample below, above and at each point."""
    ordered = np.sort(sample)
    left, right = (np.searchsorted(ordered, points, side=side) / ordered.size for side in ("left", "right"))
    return np.concatenate([right, 1.0 - left, right - left])


def _check_choices(mechanism: Mechanism) -> None:
    """Check the marks of a choice, its interval for scores below the largest, and its epsilon for neighbors."""
    options = int(mechanism.details.get("options", 3))
    low = np.zeros(options, dtype=np.int64)
    marks = mechanism.add_noise(low)
    chosen = int(mechanism.details.get("chosen", 1))
    ranks = np.concatenate([low[chosen:], np.arange(1, chosen + 1)])
    fits = marks.dtype == np.int64 and marks.shape == low.shape and np.array_equal(np.sort(marks), ranks)
    require(
        fits, "choice", "a choice must mark one option with 1, or k of them with k, k - 1, ..., 1; the others with 0."
    )
    if options == 1:
        return
    far = low.copy()
    far[0] = round(mechanism.interval(0.95) / mechanism.grid) + 1
    missed = 1.0 - _chosen(mechanism, far)[0]
    most = 0.05 + WIDE * math.sqrt(0.05 * 0.95 / CHOICES)
    require(
        missed <= most,
        "interval",
        f"scores beyond the interval of 0.95 may be chosen 5% of the time, not {missed:.1%}.",
    )
    moved = low.copy()
    moved[0] = curves.whole_steps(mechanism.sensitivity, mechanism.grid)
    shares = _chosen(mechanism, low), _chosen(mechanism, moved)
    loss = mechanism.epsilon(0.0)
    for first, second in (shares, shares[::-1]):
        surely = first - WIDE * np.sqrt(first * (1.0 - first) / CHOICES)
        at_most = second + WIDE * np.sqrt(second * (1.0 - second) / CHOICES) + WIDE**2 / CHOICES
        require((surely <= math.exp(loss) * at_most).all(), "choice", f"a choice must keep epsilon {loss:g}, its own.")


def _chosen(mechanism: Mechanism, scores: noise.Integers) -> Any:
    """Return the share of draws in which each option is marked as the first."""
    first = int(mechanism.details.get("chosen", 1))
    return sum(mechanism.add_noise(scores) == first for _ in range(CHOICES)) / CHOICES
