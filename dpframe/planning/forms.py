"""The choice of the form: where pure and Gaussian noise suit different Totals, "auto" compares the expected errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.accounting import Accounting
from dpframe.accounting.protocol import Shares
from dpframe.exact import Amount
from dpframe.planning.auto import Choice, Noises, gaussian_of, laplace_of, reach_in_words
from dpframe.planning.plan import Planned, expected_errors
from dpframe.planning.sensitivity import Sensitivity, reaches
from dpframe.planning.shares import shares_of
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.query import Query
from dpframe.queries.statistics import CONFIDENCE

LEAST = 1e-300  # of an error whose logarithm is taken


@dataclass(frozen=True)
class Formed:
    """A question in one form, with the noise of each Total and its typical squared error."""

    query: Query
    reach: list[Sensitivity]
    shares: Shares
    noises: Noises
    squared_error: float


def has_forms(query: Query) -> bool:
    """Tell whether other Totals are measured for pure noise than for Gaussian noise."""
    return query.under(True) != query.under(False)


def best_form(
    query: Query,
    unit: PrivacyUnit,
    price: Price,
    accounting: Accounting,
    limit: Amount | None,
    weights: Any,
    *,
    pure: bool,
    whole: Fraction = Fraction(1),
) -> tuple[Formed, Choice]:
    """The form with the least typical expected error at this cost, from public facts alone; and why."""
    tried = []
    for form in (True, False):
        candidate = query.under(form)
        shares, reach = shares_of(candidate, weights, whole), reaches(candidate, unit)
        offered = accounting.parts(price, limit, shares, pure=pure)
        if any((part.epsilon if form else part.mu) is None for part in offered):
            continue
        made = laplace_of if form else gaussian_of
        noises = tuple(made(sensitivity, part) for sensitivity, part in zip(reach, offered, strict=True))
        tried.append(Formed(candidate, reach, shares, noises, _squared_error(candidate, noises)))
    best = min(tried, key=lambda formed: formed.squared_error)
    ordered = sorted(tried, key=lambda formed: formed.squared_error)
    errors = tuple((formed.noises[0].name, formed.squared_error) for formed in ordered)
    is_pure = best.query == query.under(True)
    names = tuple(formed.noises[0].name for formed in tried)
    return best, Choice(best.noises, errors, is_pure, reach_in_words(best.reach[0]), names)


def _squared_error(query: Query, noises: Noises) -> float:
    """The geometric mean of the expected errors, squared: their units differ, and a factor in each counts alike."""
    parts = [
        Planned(total, None, noise, 0.0)  # type: ignore[arg-type]  # whose noise alone is read
        for total, noise in zip(query.totals, noises, strict=True)
    ]
    errors = expected_errors(query, parts, None, CONFIDENCE).values()
    finite = [max(error, LEAST) for error in errors if math.isfinite(error)]
    mean = math.fsum(map(math.log, finite)) / len(finite) if finite else 0.0
    return math.exp(2.0 * mean)
