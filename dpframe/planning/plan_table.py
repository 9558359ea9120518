"""The same query at several costs, to choose one by its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpframe.display import charts, listing, pages
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.check_pricing import line_of_checks, line_of_none
from dpframe.planning.plan import Plan
from dpframe.privacy import PrivacyLoss
from dpframe.queries.statistics.statistic import choosing


@dataclass(frozen=True, repr=False, eq=False)
class PlanTable:
    """The same query at several costs: what a preview without a cost returns.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> pl.DataFrame({"age": [31]}).dp.preview.count(epsilon=[0.1, 1])
    Plans: count()
      protects    each row, add-remove neighbors
      reads       nothing, spends nothing
    <BLANKLINE>
      epsilon  error of count
      -------  --------------
      0.1      +-30
      1        +-3
    """

    prices: tuple[Callable[[], Plan], ...]  # a plan is made where it is looked at, but for the first

    @cached_property
    def first(self) -> Plan:
        """The plan at the first cost: what all of them have in common can be read from it."""
        return self.prices[0]()

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """A plan for each cost."""
        return (self.first, *(price() for price in self.prices[1:]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanTable) and self.plans == other.plans

    def __hash__(self) -> int:
        return hash(self.plans)

    def __getstate__(self) -> dict[str, Any]:
        return {"prices": (), "first": self.first, "plans": self.plans}  # what makes plans holds the frame

    @property
    def cost(self) -> tuple[PrivacyLoss, ...]:
        """The cost of the call, by epsilon."""
        return tuple(plan.cost for plan in self.plans)

    @property
    def mechanisms(self) -> dict[float, dict[str, Mechanism]]:
        """The noise by epsilon and Total."""
        return {plan.cost.epsilon: plan.mechanisms for plan in self.plans}

    @property
    def error(self) -> dict[float, dict[str, float]]:
        """The expected 95% half-widths by epsilon and output column; a mean's for the plans' `assumed_size` values."""
        return {plan.cost.epsilon: plan.error for plan in self.plans}

    def to_frame(self, like: str = "polars") -> Any:
        """One row per cost, one column per expected error; with a mean among them, `size` says for how many values."""
        size = {"size": self.first.assumed_size} if self._has_means else {}
        rows = [
            {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta}
            | {f"{name}_error": error for name, error in plan.error.items()}
            | size
            for plan in self.plans
        ]
        return listing.as_frame(rows, like, whole=tuple(size))

    @property
    def _has_means(self) -> bool:
        return any(statistic.sized for _, statistic in self.first.query.statistics)

    def plot(self) -> Any:
        """Expected 95% error against epsilon (an Altair chart; needs ``dpframe[plot]``)."""
        points = [
            (plan.cost.epsilon, plan.named(name), error) for plan in self.plans for name, error in plan.error.items()
        ]
        who, *notes = (f"{key} {value}" for key, value in self._facts())
        return charts.errors_by_price(points, charts.Words(f"Plans: {self.first.query}", tuple(notes), who))

    def _table(self) -> tuple[list[str], list[list[str]]]:
        words, sign = ("most below the largest, 95%", "") if not _numbered(self.first) else ("error of {}", "+-")
        header = ["epsilon", *(words.format(self.first.named(name)) for name in self.first.error)]
        rows = [
            [pages.number(plan.cost.epsilon), *(f"{sign}{pages.number(error)}" for error in plan.error.values())]
            for plan in self.plans
        ]
        return header, rows

    def _facts(self) -> list[tuple[str, str]]:
        first = self.first
        facts = [("protects", str(first.unit)), ("reads", "nothing, spends nothing")]
        shared = [note for note in first.notes if all(note in plan.notes for plan in self.plans)]
        facts += [
            ("note", f"at epsilon {pages.number(plan.cost.epsilon)} {note}")
            for plan in self.plans
            for note in plan.notes
            if note not in shared
        ]
        facts += [("note", note) for note in shared]
        if checks := [plan.checks for plan in self.plans if plan.checks is not None]:
            facts.append(("checks", line_of_checks(checks, first.size)))
        facts += [
            ("checks", f"at epsilon {pages.number(plan.cost.epsilon)} {line_of_none(plan.unseen, plan.size)}")
            for plan in self.plans
            if plan.unseen is not None
        ]
        if self._has_means:
            facts.append(("note", f"a mean's error is shown for a group of {first.assumed_size:,} values"))
        return facts

    def __repr__(self) -> str:
        return pages.text_page(f"Plans: {self.first.query}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page_of_facts(f"Plans: {self.first.query}", self._facts(), *self._table())


def _numbered(plan: Plan) -> bool:
    """Tell whether its errors are of numbers, and not how far below the largest a choice may be."""
    return any((choice := choosing(statistic)) is None or choice.numbered for _, statistic in plan.query.statistics)
