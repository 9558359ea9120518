"""Keys that are found, planned: the noise of the numbers of units, the line above which a key is shown, and the rest.

Everything is fixed before the charge, whatever keys there are: a unit counts in full in so many groups as the call
says, and never in fewer because fewer are found.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpframe.accounting import Accounting, Part
from dpframe.accounting.protocol import Shares
from dpframe.errors import InvalidArgument, MissingArgument, is_one_of, shown
from dpframe.exact import Amount
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.laplace import TruncatedLaplace
from dpframe.mechanisms.thresholded import Thresholded, of_noise
from dpframe.planning.call import Calibration
from dpframe.planning.price import Priced, calibrated, equal, is_pure, parts_of, weights_of
from dpframe.planning.sensitivity import Sensitivity, of
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.contributions import as_array, key_weights
from dpframe.queries.discovery import Discovery, FoundAxis, found_axis
from dpframe.queries.query import Query
from dpframe.queries.total import WEIGHT_BITS

KEYS = "keys"  # in `weights`, of the numbers of units where no column is one


def priced_with_keys(
    query: Query,
    *,
    unit: PrivacyUnit,
    price: Price,
    mechanism: str | Calibration | None,
    accounting: Accounting,
    limit: Amount | None,
    weights: Any = None,
) -> Priced:
    """Plan a query whose keys are to be found, and whose columns were already checked against the frame's schema."""
    if not is_one_of(mechanism, (None, "laplace", "gaussian")):
        raise InvalidArgument(
            "mechanism must be 'laplace', 'gaussian' or None for keys that are found, whose threshold is known for "
            f"these alone, not {shown(mechanism)}. Leave it out."
        )
    axis, _ = _found(query)
    if not accounting.takes_keys:
        raise MissingArgument(
            f"keys_delta must be given when a ledger with {accounting.name} accounting is created: dpf.discover needs "
            "a part of its delta. Write for instance "
            "dpf.Ledger(epsilon=2, delta=1e-6, keys_delta=1e-7)."
        )
    pure = is_pure(query, mechanism, price, accounting, limit)
    query = query.under(pure)
    shares = _shares(query, weights)
    offered = accounting.parts(price, limit, shares, pure=pure)
    reach = [of_people(axis, unit), *(of(total, unit, query.keys.cells) for total in query.totals[1:])]
    rest = [
        calibrated(mechanism, pure, sensitivity, part) for sensitivity, part in zip(reach[1:], offered[1:], strict=True)
    ]
    people = _people(query, unit, reach[0], offered[0], accounting, pure=pure)
    noises = (people, *rest)
    amount = accounting.charge(price, limit, noises)
    cost = accounting.cost(price, amount, pure=pure)
    return Priced(price, amount, parts_of(query, reach, noises, shares), cost, None, query)


def of_people(axis: FoundAxis, unit: PrivacyUnit) -> Sensitivity:
    """The sensitivity of the numbers of units: K^(1/p) with K the smaller of max_groups and the most keys of a unit."""
    if axis.by_rows:
        return of(axis.people, unit, axis.size)
    discovery = axis.discovery
    assert discovery is not None
    most = unit.contribution.max_groups
    fine = discovery.max_keys > most
    return Sensitivity(
        reach=(0, 2**WEIGHT_BITS if fine else 1),
        cells=axis.size,
        rows=1,
        groups=min(most, discovery.max_keys),
        weighted=True,
        replace=unit.neighbors == "replace",
        grid=axis.people.norm(fine).grid,
    )


def weights_of_units(axis: FoundAxis, unit: PrivacyUnit, p: float) -> tuple[int, ...]:
    """v(t) for each number of keys that a unit may keep; where each row is a unit, it has one."""
    assert axis.discovery is not None
    if axis.by_rows:
        return (1,)
    return key_weights(axis.discovery.max_keys, unit.contribution.max_groups, p)


def _people(
    query: Query, unit: PrivacyUnit, reach: Sensitivity, part: Part, accounting: Accounting, *, pure: bool
) -> Thresholded:
    """The noise of the numbers of units, and the line above which their key is shown.

    Where each unit has one key, and the cost is charged as it is, truncated noise shows more keys than any other. A
    unit that is added there has a key that nobody else has or one that others have, and not both: `apart`. A unit that
    is replaced may have left the one and joined the other, so there the deltas add up.
    """
    axis, discovery = _found(query)
    single = axis.by_rows or discovery.max_keys == 1
    alone = axis.by_rows or len(query.totals) == 1
    law: Mechanism
    if single and pure and accounting.charges_price:
        assert part.epsilon is not None
        counts = 2 if unit.neighbors == "replace" else 1
        law = TruncatedLaplace.calibrate(epsilon=part.epsilon, delta=discovery.delta, counts=counts)
    else:
        law = calibrated(None, pure, reach, part)
    apart = single and alone and unit.neighbors == "add-remove"
    weights = as_array(weights_of_units(axis, unit, law.norm))
    return of_noise(law, weights, discovery.delta, at_least=discovery.at_least, apart=apart)


def _found(query: Query) -> tuple[FoundAxis, Discovery]:
    axis = found_axis(query.keys)
    assert axis is not None
    assert axis.discovery is not None
    return axis, axis.discovery


def _shares(query: Query, weights: Any) -> Shares:
    """The share of each Total; the numbers of units take one as well where no column is read off them."""
    if weights is None:
        return equal(len(query.totals))
    axis, _ = _found(query)
    names = [name for name, _ in query.statistics]
    hidden = not any(axis.people in statistic.totals() for _, statistic in query.statistics)
    of_column = weights_of(weights, [*names, *([KEYS] if hidden else [])], "output column")
    shares = dict.fromkeys(query.totals, Fraction(0))
    for name, statistic in query.statistics:
        for total in statistic.totals():
            shares[total] += of_column[name] / len(statistic.totals())
    if hidden:
        shares[axis.people] += of_column[KEYS]
    return tuple(shares.values())


def check_asked(**options: Any) -> None:
    """Refuse options that speak of cells which are known beforehand, where keys are to be found."""
    for name, value in options.items():
        if value is not None:
            raise InvalidArgument(
                f"{name} must be left out with keys=dpf.discover(...), whose groups nobody knows beforehand, not "
                f"{shown(value)}. Declare the keys to say something of them."
            )
