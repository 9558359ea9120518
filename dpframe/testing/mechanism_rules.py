"""The rules of a mechanism: its members, its curve, its charges, and the noise that it draws."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, named, shown
from dpframe.exact import is_number, up
from dpframe.mechanisms import curves, from_tails
from dpframe.mechanisms.contract import Mechanism, is_mechanism
from dpframe.testing import drawn_noise
from dpframe.testing.broken import ContractBroken, require

Floats = NDArray[np.float64]

POINTS = 24  # of a curve
FINE = 4_000  # of an integral over it
SLACK = 1e-9  # relative: double precision
LEAST = 1e-12  # of a delta: below, double precision decides
TINY = 1e-200  # a tail below it is not compared
ROUNDED = 4.0 * from_tails.ACCURACY  # by which what follows from tails is rounded up
ORDERS = (Fraction(3, 2), Fraction(2), Fraction(8), Fraction(32))
CONFIDENCES = (0.5, 0.9, 0.95, 0.99, 0.999999)


def check_mechanism(mechanism: Mechanism) -> None:
    """Try a calibrated mechanism against the rules of ``mechanism=``.

    Parameters
    ----------
    mechanism : Mechanism
        Calibrated, of a sensitivity and a scale of some grid steps; try a few, on coarse and on fine grids.

    Raises
    ------
    ContractBroken
        If a member is missing or of the wrong kind; if the curve rises, is not convex in e^epsilon, or is below that
        of the law that ``tail`` states; if an interval, the variance or a charge is too small for it; or if the noise
        that is drawn is not of that law: too little, not centred, of the total, shared between cells, or not modulo
        2**64.

    Notes
    -----
    About a million draws: noise that is 2% too small is found; a mechanism that keeps the rules is refused less often
    than once in a million. Without ``tail`` the curve is compared with the draws alone, which shows gross errors. A
    check sees no leak in the last bits of a draw: take your draws from `dpframe.noise`.

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
    drawn_noise.check_draws(mechanism)


def _check_members(mechanism: Mechanism) -> None:
    require(is_mechanism(mechanism), "kind", f"a mechanism must be calibrated noise, not {named(mechanism)}.")
    require(isinstance(mechanism, Hashable), "frozen", "a mechanism must be a frozen value, which can be hashed.")
    for name, (rule, fits) in MEMBERS.items():  # the first ones decide what is derived of the last
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
    """Epsilons from 0 to where nothing is left of the curve."""
    pure_epsilon = mechanism.pure_epsilon
    if pure_epsilon is not None:
        return np.linspace(0.0, pure_epsilon, POINTS)
    farthest = 2.0**-20
    while mechanism.delta(farthest) > LEAST and farthest < 2.0**40:
        farthest *= 2.0
    return np.linspace(0.0, farthest, POINTS)


def _check_curve(mechanism: Mechanism, points: Floats) -> None:
    """From 0 to 1, falling, convex in e^epsilon; its inverse and its values at many points are the same curve."""
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
    """The stated figures against what follows from the tails."""
    tail, grid = mechanism.tail, mechanism.grid
    steps = np.unique(np.rint(np.geomspace(1.0, from_tails.reach(tail, 1e-12) + 2.0, 64)))
    tails = tail(steps)
    require((np.diff(tails) <= 0.0).all() and (tails >= 0.0).all(), "tail", "tail must fall, and not be below 0.")
    require(tails[0] <= 0.5, "tail", "tail(1) must be at most 1/2: the noise is symmetric.")
    seen = tails > TINY
    slopes = np.diff(np.log(tails[seen])) / np.diff(steps[seen])
    concave = np.diff(slopes) <= SLACK * np.abs(slopes[1:]) + 1e-12
    require(concave.all(), "tail", "the noise must be log-concave: its tail must fall ever faster.")
    shift = from_tails.steps_of(mechanism.sensitivity, grid)
    needed = from_tails.deltas(tail, shift, points)
    for point, least in zip(points, needed, strict=True):
        said = mechanism.delta(float(point))
        require(
            said >= least * (1.0 - SLACK) - ROUNDED,
            "delta",
            f"delta must not be below that of the noise: at epsilon {point:.4g} it is {said:.6g}, and a total that "
            f"moves by {mechanism.sensitivity:g} gives {least:.6g}.",
        )
    for confidence in CONFIDENCES:
        width = from_tails.half_width(tail, confidence - SLACK) * grid
        said = mechanism.interval(confidence)
        require(
            said >= width * (1.0 - SLACK),
            "interval",
            f"an interval must hold the noise: at {confidence:g} it is {said:g}, and {width:g} are needed.",
        )
    variance = from_tails.variance(tail) * grid**2
    said = mechanism.variance
    fits = abs(said - variance) <= 1e-3 * variance + 1e-12 * grid**2
    require(fits, "variance", f"variance must be that of the noise, {variance:.6g}, not {said:.6g}.")


def _check_charges(mechanism: Mechanism, points: Floats) -> None:
    """A charge covers the curve; a mechanism without a proven one refuses it by a typed error."""
    stated = mechanism.deltas(points)
    squared = _charge(lambda: mechanism.mu_squared, "mu_squared")
    if squared is not None:
        mu = math.nextafter(math.sqrt(up(squared)), math.inf)
        allowed = curves.both_sides(points, lambda some: curves.of_gaussian(mu, some))
        low = stated > allowed * (1.0 + SLACK) + LEAST
        require(not low.any(), "charge", f"mu_squared must cover its curve, and {float(squared):.6g} does not.")
    if not mechanism.additive:  # its curve may be the highest of several pairs, of which none has the divergence of it
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
    """A charge, or None where it is refused in words."""
    try:
        charge = read()
    except InvalidArgument:
        return None
    require(type(charge) is Fraction and charge >= 0, "charge", f"{member} must be a Fraction of at least 0.")
    return Fraction(charge)


def _divergence(order: float, epsilons: Floats, deltas: Floats) -> float:
    """A lower bound on the Rényi divergence of symmetric pairs with this curve.

    The moment is 1 + a (a - 1) times the integral of (e^((a - 1) s) + e^(-a s)) delta(s) over s >= 0: by parts from
    its definition, at both signs of the loss. delta falls, so its value on the right of each piece is not too large.
    """
    a = order
    kept = (a - 1.0) * epsilons <= curves.LARGEST_POWER  # a part of an integral of what is not below 0
    epsilons, deltas = epsilons[kept], deltas[kept]
    up_to = np.expm1((a - 1.0) * epsilons) / (a - 1.0) - np.expm1(-a * epsilons) / a
    moment = 1.0 + a * (a - 1.0) * float((np.diff(up_to) * deltas[1:]).sum())
    return math.log(moment) / (a - 1.0)
