"""A stream as its caller described it: the question, its cost, who is protected and which ledger is charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.accounting import Accounting
from dpframe.errors import InvalidArgument, is_one_of, shown
from dpframe.exact import Amount, exact_delta
from dpframe.planning.accuracy import Accuracy, smallest_epsilon
from dpframe.planning.stream_plan import StreamPlan, planned
from dpframe.privacy import Price, PrivacyUnit, checked_bound
from dpframe.queries.query import Query
from dpframe.queries.statistics import Statistic
from dpframe.queries.statistics.capabilities import Labelled, choosing
from dpframe.queries.total import OfRows

COLUMNS = ("total", "period")  # that have an error
MECHANISMS = (None, "laplace", "gaussian")


@dataclass(frozen=True)
class StreamRequest:
    """The parameters of a stream; all are public, and none says anything of a frame."""

    name: str
    query: Query  # whose first axis are the periods
    epsilon: Any
    delta: Any
    mechanism: str | None
    unit: PrivacyUnit | str | Sequence[str] | None
    max_rows: int | None
    max_groups: int | None
    ledger: Any
    within: Any = None
    confidence: Any = None

    def __post_init__(self) -> None:
        if not is_one_of(self.mechanism, MECHANISMS):
            raise InvalidArgument(
                f"mechanism must be 'laplace', 'gaussian' or None for a stream, not {shown(self.mechanism)}: a unit "
                "moves the numbers of many periods, which no other noise covers. Leave it out."
            )
        self._check_price()  # what is wrong with it is told now
        for argument in ("max_rows", "max_groups"):
            checked_bound(argument, getattr(self, argument))

    def _check_price(self) -> None:
        if self.within is None:
            Price.of(self.epsilon, self.delta, None)
            if self.confidence is not None:
                raise InvalidArgument("confidence must come with within=: it is that of the error. Leave it out.")
            return
        if self.epsilon is not None:
            raise InvalidArgument(
                "within and epsilon must not both be given: each says what the stream costs. Keep one."
            )
        Accuracy.of(self.within, self.confidence).targets(COLUMNS)

    def plan(self, unit: PrivacyUnit, accounting: Accounting, limit: Amount | None) -> StreamPlan:
        """The plan for a ledger that protects this unit."""
        bounded = unit.bounded(self.max_rows, self.max_groups)
        # rows count over all groups together: however many groups are allowed, it is the same stream
        whole = bounded if unit.column is None else unit.who.bounded(bounded.contribution.max_rows, 1)

        def planned_at(price: Price) -> StreamPlan:
            return planned(
                self.name,
                self.query,
                unit=whole,
                price=price,
                mechanism=self.mechanism,
                accounting=accounting,
                limit=limit,
            )

        if self.within is None:
            return planned_at(Price.of(self.epsilon, self.delta, None))
        accuracy = Accuracy.of(self.within, self.confidence)
        delta = None if self.delta is None else exact_delta(self.delta)

        def errors_at(epsilon: Fraction) -> dict[str, float]:
            return planned_at(Price(epsilon, delta)).largest_errors(accuracy.confidence)

        return planned_at(Price(smallest_epsilon(accuracy.targets(COLUMNS), errors_at), delta))


def check_statistic(statistic: object) -> Statistic:
    """One clipped sum over rows is what a stream adds up; anything else is refused."""
    totals = statistic.totals() if isinstance(statistic, Statistic) and choosing(statistic) is None else ()
    plain = len(totals) == 1 and isinstance(totals[0], OfRows)
    if not plain or not statistic.adds_up or isinstance(statistic, Labelled):  # type: ignore[attr-defined]  # then it is a Statistic
        raise InvalidArgument(
            f"statistic must be dpf.count(...) or dpf.sum(column, bounds=...) for a stream, not {shown(statistic)}: "
            "only what adds up over rows has running totals. For a mean, use two streams: its sum and its count."
        )
    return statistic  # type: ignore[return-value]
