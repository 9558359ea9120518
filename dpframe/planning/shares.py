"""The shares of a cost: weights by name, in what the accounting adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpframe.accounting.protocol import Shares
from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.exact import exact_weight, is_number
from dpframe.queries.query import Query
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.capabilities import Weighing
from dpframe.queries.total import Total, over


def equal(count: int) -> Shares:
    """The same share for each."""
    return (Fraction(1, count),) * count


def shares_of(query: Query, weights: Any, whole: Fraction = Fraction(1)) -> Shares:
    """The share of each Total of a query, `whole` together: all the same, or as the weights of its columns say.

    The weight of a column is divided among the Totals that it is read off (a mean takes two, each level of subtotals
    its own), equally where the statistic does not say otherwise; a Total that several columns are read off takes from
    each.
    """
    if weights is None:
        weight_of: dict[Total, int | Fraction] = {}
        for _, statistic in query.statistics:
            for total, weight in _relative(statistic).items():
                weight_of[total] = max(weight_of.get(total, 0), weight)
        each = [weight_of.get(over(total, None), 1) for total in query.totals]  # 1 of what finds the keys
        return tuple(whole * share for share in _scaled(each))
    of_column = weights_of(weights, [name for name, _ in query.statistics], "output column")
    shares = dict.fromkeys(query.totals, Fraction(0))
    for name, statistic in query.statistics:
        relative = _relative(statistic)
        needed = [total for total in query.totals if over(total, None) in relative]
        for total, part in zip(needed, _scaled([relative[over(total, None)] for total in needed]), strict=True):
            shares[total] += whole * of_column[name] * part
    return tuple(shares.values())


def _relative(statistic: Statistic) -> dict[Total, int | Fraction]:
    """The weight of each Total of a statistic among its own."""
    totals = statistic.totals()
    weights = statistic.weights() if isinstance(statistic, Weighing) else (1,) * len(totals)
    return dict(zip(totals, weights, strict=True))


def _scaled(weights: Sequence[int | Fraction]) -> Shares:
    """Weights as shares that add up to exactly 1."""
    return tuple(Fraction(weight) / sum(weights) for weight in weights)


def weights_of(weights: Any, names: Sequence[str], what: str) -> dict[str, Fraction]:
    """The checked weights of all `names`, scaled to add up to 1."""
    example = f"Write for instance weights={{{names[0]!r}: 2}}: a name that is left out weighs 1."
    if not isinstance(weights, Mapping):
        raise InvalidType(f"weights must be a dict of numbers by {what}, not {shown(weights)}. {example}")
    for name, value in weights.items():
        if name not in names:
            raise InvalidArgument(f"weights must name the {what}s {', '.join(names)}, not {shown(name)}. {example}")
        if not is_number(value):
            raise InvalidType(f"weights must be numbers above 0, and that of {name!r} is {shown(value)}. {example}")
    exact = {name: exact_weight(weights.get(name, 1)) for name in names}
    total = sum(exact.values(), Fraction(0))
    return {name: weight / total for name, weight in exact.items()}
