"""Compare calibrations and privacy curves at random parameters with dp-accounting and with high-precision integrals.

python -m assurance.calibrations --parameters 1000

Epsilons, deltas and sensitivities are random for each family of noise. "never below" counts how often dpframe states a
delta or a scale below the exact one. mpmath evaluates the exact one from the definition, an integral or a sum, and not
from the formulas of the package. The largest relative differences to it and to dp-accounting are shown, too.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

import dpframe as dpf
from assurance import verdict

DIGITS = 40
FAR = 60.0  # exponent at which sums and integrals of densities end: the rest is below exp(-60)
SMALLEST = 1e-12  # smaller deltas are not compared with dp-accounting, which computes in double precision


@dataclass
class Comparison:
    """What is compared, how often dpframe is on the wrong side, and the largest relative differences."""

    name: str
    compared: int = 0
    below: int = 0
    exact: float = 0.0
    peer: float = 0.0
    cases: list[str] = field(default_factory=list)

    def add(self, found: float, exact: Any, peer: float | None, case: str) -> None:
        """Add one value; `exact` is an mpmath number."""
        self.compared += 1
        with mpmath.workdps(DIGITS):
            if mpmath.mpf(found) < exact * (1 - mpmath.mpf(10) ** -25):
                self.below += 1
                self.cases.append(case)
            if exact > 0:
                self.exact = max(self.exact, float(abs(found / exact - 1)))
        if peer is not None and peer > 0.0:
            self.peer = max(self.peer, abs(found / peer - 1.0))


def normal_tail(x: Any) -> Any:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def gaussian_delta(sigma: float, shift: float, epsilon: float) -> Any:
    """Return the integral of max(0, f(x) - e^epsilon f(x + shift)), whose integrand is positive below one point."""
    with mpmath.workdps(DIGITS + 40):
        s, d, e = (mpmath.mpf(value) for value in (sigma, shift, epsilon))
        turning = e * s / d - d / (2 * s)
        return normal_tail(turning) - mpmath.exp(e) * normal_tail(turning + d / s)


def least_sigma(guess: float, shift: float, epsilon: float, delta: float) -> Any:
    """Return the sigma at which delta has exactly this value."""
    with mpmath.workdps(DIGITS):
        excess = lambda sigma: mpmath.log(gaussian_delta(sigma, shift, epsilon) / mpmath.mpf(delta))  # noqa: E731
        return mpmath.findroot(excess, guess, tol=1e-32)


def generalized_delta(p: float, b: float, shift: float, epsilon: float) -> Any:
    """Return the same integral for generalized Gaussian noise by numerical integration, in units of b."""
    with mpmath.workdps(DIGITS):
        shape, d, e = mpmath.mpf(p), mpmath.mpf(shift) / mpmath.mpf(b), mpmath.mpf(epsilon)
        loss = lambda x: (x + d) ** shape - abs(x) ** shape  # noqa: E731
        low, high = -d / 2, mpmath.mpf(FAR + 40) ** (1 / shape)
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (low, middle) if loss(middle) > e else (middle, high)
        density = lambda x: mpmath.exp(-(abs(x) ** shape)) * -mpmath.expm1(e - loss(x))  # noqa: E731
        width = 1 / (1 + shape * max(high, 0) ** (shape - 1))
        ends = (
            [high, 0, *(high + width * 2**k for k in range(-2, 7))]
            if high < 0
            else [high + width * 2**k for k in range(-2, 7)]
        )
        ends = sorted({high, *ends, high + width * 200})
        return mpmath.quad(density, ends) / (2 * mpmath.gamma(1 + 1 / shape))


def laplace_delta(shift: int, scale: float, epsilon: float) -> Any:
    """Return the sum over the outcomes, for P(k) proportional to exp(-abs(k) / scale)."""
    with mpmath.workdps(DIGITS):
        t, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        weight = mpmath.tanh(1 / (2 * t))
        upto = math.ceil(FAR * scale)
        mass = lambda k: weight * mpmath.exp(-abs(k) / t)  # noqa: E731
        return mpmath.fsum(max(0, mass(k) - mpmath.exp(e) * mass(k - shift)) for k in range(-upto, shift + 1))


def truncated_loss(noise: dpf.TruncatedGeneralizedGaussian) -> Any:
    """Return the largest log-ratio over all answers and pairs of totals, from the probabilities of the answers."""
    lowest, highest = noise.step_output
    with mpmath.workdps(DIGITS + 200):  # far answers are differences of numbers close to 1
        shape, b = mpmath.mpf(noise.p), mpmath.mpf(noise.step_scale)
        span = highest - lowest
        inside = [mpmath.gammainc(1 / shape, 0, ((k + mpmath.mpf(1) / 2) / b) ** shape) for k in range(span + 1)]
        below = lambda k: inside[k] if k >= 0 else -inside[-k - 1]  # noqa: E731  # mass from the total to k + 1/2
        whole = mpmath.gamma(1 / shape)
        laws = []
        for total in range(span + 1):
            ends = [below(k - total) for k in range(-1, span + 1)]
            if noise.boundary == "inflated":
                ends[0], ends[-1] = -whole, whole
            laws.append([(high - low) / (ends[-1] - ends[0]) for low, high in itertools.pairwise(ends)])
        shift = min(span, int(noise.step_sensitivity))
        pairs = ((laws[q], laws[q + d]) for d in range(1, shift + 1) for q in range(span + 1 - d))
        return max(max(abs(mpmath.log(a / c)) for a, c in zip(*pair, strict=True)) for pair in pairs)


def gaussians(random: np.random.Generator, count: int) -> Iterator[Comparison]:
    from dp_accounting.pld import privacy_loss_mechanism as peer

    curve, sigma = Comparison("Gaussian delta"), Comparison("analytic Gaussian sigma")
    for _ in range(count):
        epsilon, delta = 10 ** random.uniform(-3, 2), 10 ** random.uniform(-15, -1)
        shift = 10 ** random.uniform(-2, 3)
        case = f"epsilon={epsilon!r}, delta={delta!r}, sensitivity={shift!r}"
        found = dpf.analytic_gaussian_sigma(epsilon, delta, shift)
        sigma.add(found, least_sigma(found, shift, epsilon, delta), None, case)
        noise = dpf.Gaussian(shift, found)
        stated = noise.delta(epsilon)
        theirs = peer.GaussianPrivacyLoss(found, sensitivity=shift).get_delta_for_epsilon(epsilon)
        curve.add(stated, gaussian_delta(found, shift, epsilon), theirs if stated > SMALLEST else None, case)
    yield sigma
    yield curve


def laplaces(random: np.random.Generator, count: int) -> Iterator[Comparison]:
    from dp_accounting.pld import privacy_loss_mechanism as peer

    curve = Comparison("discrete Laplace delta")
    for _ in range(count):
        shift, scale = int(random.integers(1, 20)), 10 ** random.uniform(-0.5, 1.5)
        epsilon = float(random.uniform(0.0, 1.0) * shift / scale)
        theirs = peer.DiscreteLaplacePrivacyLoss(1 / scale, sensitivity=shift).get_delta_for_epsilon(epsilon)
        stated = dpf.Laplace(shift, scale).delta(epsilon)
        case = f"sensitivity={shift}, scale={scale!r}, epsilon={epsilon!r}"
        curve.add(stated, laplace_delta(shift, scale, epsilon), theirs if stated > SMALLEST else None, case)
    yield curve


def generalized(random: np.random.Generator, count: int) -> Iterator[Comparison]:
    curve = Comparison("generalized Gaussian delta")
    for _ in range(count):
        p, epsilon, delta = random.uniform(1.05, 8), 10 ** random.uniform(-2, 1), 10 ** random.uniform(-12, -0.5)
        shift = 10 ** random.uniform(-2, 3)
        b = dpf.generalized_gaussian_scale(p, epsilon, delta, shift)
        case = f"p={p!r}, b={b!r}, sensitivity={shift!r}, epsilon={epsilon!r}"
        curve.add(
            dpf.GeneralizedGaussian(shift, b, p=p).delta(epsilon), generalized_delta(p, b, shift, epsilon), None, case
        )
    yield curve


def truncated(random: np.random.Generator, count: int) -> Iterator[Comparison]:
    for boundary in ("truncated", "inflated"):
        loss = Comparison(f"{boundary} noise: epsilon over the worst loss")
        for _ in range(count // 2):
            span = int(random.integers(1, 30))
            noise = dpf.TruncatedGeneralizedGaussian.calibrate(
                p=float(random.choice([1, 2, 3, random.uniform(2, 8)])),
                sensitivity=int(random.integers(1, span + 2)),
                epsilon=10 ** random.uniform(-2, 1.3),
                output=(0, span),
                boundary=boundary,
            )
            loss.add(noise.epsilon(0.0), truncated_loss(noise), None, repr(noise))
        yield loss


FAMILIES: dict[str, Callable[[np.random.Generator, int], Iterator[Comparison]]] = {
    "gaussian": gaussians,
    "laplace": laplaces,
    "generalized": generalized,
    "truncated": truncated,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    given = parser.parse_args()
    print("| compared | parameters | below the exact value | largest difference to it | to dp-accounting |")
    print("|---|---|---|---|---|")
    rows = []
    for name in given.only:
        for row in FAMILIES[name](np.random.default_rng(given.seed), given.parameters):
            rows.append(row)
            peer = f"{row.peer:.1e}" if row.peer else ""
            print(f"| {row.name} | {row.compared} | {row.below} | {row.exact:.1e} | {peer} |", flush=True)
            for case in row.cases:
                print(f"  below: {case}")
    compared, largest = sum(row.compared for row in rows), max(row.exact for row in rows)
    return verdict(sum(row.below for row in rows), compared=compared, largest_difference=largest)


if __name__ == "__main__":
    raise SystemExit(main())
