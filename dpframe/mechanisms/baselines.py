"""Older calibrations of Gaussian noise, to compare with the analytic one and to reproduce papers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

from dpframe.errors import InvalidArgument, MissingArgument, is_one_of, shown
from dpframe.exact import between, positive, rounded_up, to_digits, up
from dpframe.mechanisms.contract import LARGEST_SIGMA, scale_of, steps_of
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.gaussian_curve import LARGEST_EPSILON, typed
from dpframe.mechanisms.generalized_gaussian import Reach
from dpframe.privacy import PrivacyLoss

DIGITS = 60
SMALLEST = 5e-324  # the least float above 0
CLASSICAL = "classical (Dwork and Roth 2014, Theorem A.1)"
PROBABILISTIC = "probabilistic, {} (Liu 2018, Proposition 11), which implies (epsilon, delta)-differential privacy"

Tail = Literal["two-sided", "one-sided"]


def classical_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Compute the classical sigma of Gaussian noise, for epsilon below 1.

    It is sqrt(2 ln(1.25 / delta)) sensitivity / epsilon.

    Parameters
    ----------
    epsilon : float
        0 < epsilon < 1: the proof needs it, and for larger epsilon there may be too little noise.
    delta : float
        0 < delta < 1.
    sensitivity : float
        The l2 sensitivity, in any unit; sigma is in the same unit.

    Returns
    -------
    float
        Rounded up. Such noise is (epsilon, delta)-differentially private, but larger than needed:
        `analytic_gaussian_sigma` gives the least.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.

    Notes
    -----
    Theorem A.1 of Dwork and Roth, "The Algorithmic Foundations of Differential Privacy" (2014).

    Examples
    --------
    >>> import dpframe as dpf
    >>> round(dpf.classical_gaussian_sigma(epsilon=0.5, delta=1e-6), 3)
    10.598
    >>> round(dpf.analytic_gaussian_sigma(epsilon=0.5, delta=1e-6), 3)
    8.058
    """
    import mpmath

    rule = "a number with 0 < epsilon < 1 for the classical formula"
    between("epsilon", epsilon, 0.0, 1.0, rule, " Use analytic_gaussian_sigma, which holds for any epsilon.")
    outside = typed("delta", delta, 0.0, 1.0, closed=False)
    reach = up(positive("sensitivity", sensitivity))
    with to_digits(DIGITS):
        factor = mpmath.sqrt(2 * mpmath.log(mpmath.mpf("1.25") / outside))
        loss = typed("epsilon", epsilon, 0.0, 1.0, closed=False)
        return rounded_up(factor * mpmath.mpf(reach) / loss)  # rounded up: more noise


def probabilistic_gaussian_sigma(
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    *,
    tail: Tail = "two-sided",
) -> float:
    """Compute sigma so that the privacy loss rarely exceeds epsilon.

    The privacy loss of Gaussian noise with this sigma exceeds epsilon with probability at most delta.

    Parameters
    ----------
    epsilon : float
        0 < epsilon <= 1e12.
    delta : float
        0 < delta < 1.
    sensitivity : float
        The l2 sensitivity, in any unit; sigma is in the same unit.
    tail : {"two-sided", "one-sided"}
        ``"two-sided"`` is Liu's value: P(abs(loss) > epsilon) <= delta, probabilistic differential privacy.
        ``"one-sided"`` gives less noise: P(loss > epsilon) <= delta, for either order of the two data sets.

    Returns
    -------
    float
        Rounded up. Both tails imply (epsilon, delta)-differential privacy, with more noise than it needs.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.

    Notes
    -----
    Proposition 11 of Liu, "Generalized Gaussian Mechanism for Differential Privacy" (2018), written for sigma:
    (sensitivity / (2 epsilon)) (sqrt(z^2 + 2 epsilon) + z), z = -Phi^-1(delta / 2). Its proof bounds the loss from
    above on both sides, so the least sigma with P(abs(loss) > epsilon) <= delta lies between the two values. With s =
    sigma / sensitivity, the loss is normal with mean 1 / (2 s^2) and standard deviation 1 / s, so that one tail alone
    is exact with z = -Phi^-1(delta). Post-processing does not keep probabilistic differential privacy, but it keeps the
    (epsilon, delta)-differential privacy that this implies.

    Examples
    --------
    >>> import dpframe as dpf
    >>> round(dpf.probabilistic_gaussian_sigma(epsilon=1.0, delta=1e-6), 3)
    4.992
    >>> round(dpf.probabilistic_gaussian_sigma(epsilon=1.0, delta=1e-6, tail="one-sided"), 3)
    4.856
    """
    import mpmath

    _check_tail(tail)
    reach = up(positive("sensitivity", sensitivity))
    leak = typed("delta", delta, 0.0, 1.0, closed=False)
    rule = f"a number with 0 < epsilon <= {LARGEST_EPSILON:g}"
    between("epsilon", epsilon, SMALLEST, LARGEST_EPSILON, rule, closed=True)
    most = typed("epsilon", epsilon, 0.0, LARGEST_EPSILON, closed=True)
    with to_digits(DIGITS):
        loss, outside = mpmath.mpf(most), mpmath.mpf(leak)
        z = _upper_quantile(outside / 2 if tail == "two-sided" else outside)
        root = mpmath.sqrt(z * z + 2 * loss)
        factor = (root + z) / (2 * loss) if z > 0 else 1 / (root - z)  # two equal forms; each avoids cancellation
        return rounded_up(factor * mpmath.mpf(reach))  # rounded up: more noise


def classical_gaussian(sensitivity: Reach, loss: PrivacyLoss) -> Gaussian:
    """Calibrate Gaussian noise by the classical formula, as ``mechanism=`` of a verb.

    Use it to reproduce published results.

    Parameters
    ----------
    sensitivity : Sensitivity
        The most that one unit can change; a verb gives it.
    loss : PrivacyLoss
        The cost of one statistic, with epsilon below 1; a verb gives it: its part of the cost of the call.

    Returns
    -------
    Gaussian
        It has more noise than the cost needs without this formula.

    Raises
    ------
    InvalidArgument
        If the epsilon of `loss` is not below 1, as the formula requires. Accounting other than basic rounds this
        epsilon down by a billionth, so a call of one statistic may cost epsilon 1 there.
    MissingArgument
        If there is no delta.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45]})
    >>> people.dp.preview.count(epsilon=0.5, delta=1e-6, mechanism=dpf.classical_gaussian).error
    {'count': 21.0}
    """
    _check_delta(loss)
    return _gaussian(sensitivity, classical_gaussian_sigma(loss.epsilon, loss.delta), CLASSICAL)


def probabilistic_gaussian(*, tail: Tail = "two-sided") -> Callable[[Reach, PrivacyLoss], Gaussian]:
    """Calibrate Gaussian noise by Liu's formula, as ``mechanism=`` of a verb.

    Use it to reproduce published results. A verb post-processes what it releases. This keeps the (epsilon,
    delta)-differential privacy that the formula implies, but not the probabilistic kind. So the ledger and the
    provenance record the former.

    Parameters
    ----------
    tail : {"two-sided", "one-sided"}
        See `probabilistic_gaussian_sigma`.

    Returns
    -------
    callable
        ``(sensitivity, loss) -> Gaussian``, with more noise than the cost needs without this formula.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45]})
    >>> people.dp.preview.count(epsilon=0.5, delta=1e-6, mechanism=dpf.probabilistic_gaussian()).error
    {'count': 19.0}
    """
    _check_tail(tail)

    def calibration(sensitivity: Reach, loss: PrivacyLoss) -> Gaussian:
        _check_delta(loss)
        sigma = probabilistic_gaussian_sigma(loss.epsilon, loss.delta, tail=tail)
        return _gaussian(sensitivity, sigma, PROBABILISTIC.format(tail))

    return calibration


def _gaussian(sensitivity: Reach, sigma: float, words: str) -> Gaussian:
    """Return noise with a sigma of this many times the l2 sensitivity, both rounded up."""
    steps = up(steps_of(sensitivity.norm(2.0), sensitivity.grid))
    scale = scale_of(Fraction(steps) * Fraction(sigma), Fraction(1), LARGEST_SIGMA)
    return Gaussian(steps, scale, sensitivity.grid, calibration=words)


def _check_delta(loss: PrivacyLoss) -> None:
    if loss.delta == 0.0:
        raise MissingArgument(
            "delta must be given, above 0, for Gaussian noise. Write for instance delta=1e-6, in a ledger that has one."
        )


def _check_tail(tail: object) -> None:
    if not is_one_of(tail, ("two-sided", "one-sided")):
        raise InvalidArgument(f"tail must be 'two-sided' or 'one-sided', not {shown(tail)}.")


def _upper_quantile(outside: Any) -> Any:
    """Return the z with Phi(-z) = outside at the current precision, by Newton steps from a double-precision value."""
    import mpmath
    from scipy.special import ndtri_exp

    z = -mpmath.mpf(float(ndtri_exp(float(mpmath.log(outside)))))
    for _ in range(6):
        z += (mpmath.erfc(z / mpmath.sqrt(2)) / 2 - outside) / mpmath.npdf(z)
    return z
