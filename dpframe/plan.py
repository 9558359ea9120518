"""A query priced from public facts alone: what will be measured, with what noise, at what cost."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpframe import charts, report
from dpframe import sensitivity as sensitivities
from dpframe.accounting import Accounting, Part
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, shown
from dpframe.frames import build
from dpframe.guarantee import Amount, Price, PrivacyLoss, PrivacyUnit, up
from dpframe.mechanisms.any_shape import GeneralizedGaussian
from dpframe.mechanisms.family import Gaussian, Laplace, Mechanism
from dpframe.queries.query import Query
from dpframe.queries.statistics import CONFIDENCE, Mean, Measure, Statistic
from dpframe.sensitivity import Sensitivity

Calibration = Callable[[Sensitivity, PrivacyLoss], Mechanism]

TYPICAL_SIZES = (100, 1_000, 10_000)  # groups for which a mean's error is shown
WORDS = {"laplace": True, "gaussian": False}  # whether the noise is pure
CALIBRATION_EXAMPLE = (
    "Write for instance lambda sensitivity, loss: dpf.Laplace.calibrate("
    "sensitivity=sensitivity.norm(1), epsilon=loss.epsilon, grid=sensitivity.grid)."
)


@dataclass(frozen=True)
class Planned:
    """One Statistic with its sensitivity, its noise, and which share of the price it takes.

    The share is of epsilon for Laplace noise, and of mu^2 for Gaussian noise, whose epsilons do not add up.
    """

    statistic: Statistic
    sensitivity: Sensitivity
    mechanism: Mechanism
    share: float


@dataclass(frozen=True, repr=False)
class Plan:
    """What a call would measure, at what cost and with what error. It has read no row and spent nothing.

    Parameters
    ----------
    query, unit, price
        What is asked, who is protected, what was offered.
    accounting, amount
        How losses add up, and what the call takes in that exact quantity.
    parts : tuple of Planned
        The Statistics to measure, each with `.statistic`, `.sensitivity`, `.mechanism` and `.share`.
    cost : PrivacyLoss
        What the call alone costs, rounded up.
    frame
        The frame that was asked; a plan remembers it and does not read it.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45]})
    >>> plan = people.dp.preview.histogram("age", bins=[0, 50, 100], epsilon=0.5)
    >>> plan
    Plan: count() by age: 2 bins
      protects    each row, add-remove neighbors
      costs       epsilon 0.5 (basic accounting)
      reads       nothing yet, spends nothing yet
      note        values of age outside [0, 100] are left out
    <BLANKLINE>
      column  measures  takes  noise             scale  95% error per cell
      ------  --------  -----  ----------------  -----  ------------------
      count   rows      100%   discrete Laplace  2      +-6
    """

    query: Query
    unit: PrivacyUnit
    price: Price
    accounting: Accounting
    amount: Amount
    parts: tuple[Planned, ...]
    cost: PrivacyLoss
    frame: Any = field(compare=False)

    @property
    def mechanisms(self) -> dict[str, Mechanism]:
        """The noise of each Statistic, by the Statistic's description."""
        return {part.statistic.describe(): part.mechanism for part in self.parts}

    @property
    def error(self) -> dict[str, float]:
        """The expected 95% half-width per output column; of a mean for a group of 1,000 values."""
        return {name: self.error_of(measure, TYPICAL_SIZES[1]) for name, measure in self.query.measures}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader must know of rows that are left out or weighed down."""
        return (*self.query.keys.notes(), *_weight_notes(self.unit))

    def noise_of(self, measure: Measure) -> tuple[Mechanism, ...]:
        """The noise of each Statistic that the measure is read off."""
        noise = {part.statistic: part.mechanism for part in self.parts}
        return tuple(noise[statistic] for statistic in measure.statistics())

    def error_of(self, measure: Measure, size: int) -> float:
        """The expected 95% half-width for a group of `size` values; only a mean's depends on the size."""
        noise = self.noise_of(measure)
        return (
            measure.expected_error(noise[0], noise[1], size)
            if isinstance(measure, Mean)
            else noise[0].interval(CONFIDENCE)
        )

    def to_frame(self, like: str = "polars") -> Any:
        """One row per output column and Statistic, as a Polars (or ``"pandas"``) frame."""
        rows = [
            {
                "column": name,
                "measures": planned.statistic.describe(),
                "share": planned.share,
                "noise": planned.mechanism.name,
                "scale": planned.mechanism.scale,
                "sensitivity": planned.mechanism.sensitivity,
                "error": self.error[name],
            }
            for name, planned in self._rows()
        ]
        return build.of_rows(rows, like)

    def plot(self) -> Any:
        """A point per output column: the expected 95% error (an Altair chart; needs ``dpframe[plot]``)."""
        points = []
        for name, measure in self.query.measures:
            sizes = TYPICAL_SIZES if isinstance(measure, Mean) else (None,)
            for size in sizes:
                words = name if size is None else f"{name} of {size:,} values"
                points.append((words, self.error_of(measure, size or 0)))
        return charts.expected_errors(points, charts.Words(f"Plan: {self.query}", self._plot_notes()))

    def _plot_notes(self) -> tuple[str, ...]:
        return (
            f"{self.cost} ({self.accounting.name} accounting), protects {self.unit}",
            "nothing is read or spent yet",
        )

    def _rows(self) -> list[tuple[str, Planned]]:
        planned = {part.statistic: part for part in self.parts}
        return [(name, planned[needed]) for name, measure in self.query.measures for needed in measure.statistics()]

    def _facts(self) -> list[tuple[str, str]]:
        cells = self.query.keys.cells
        facts = [
            ("protects", str(self.unit)),
            ("costs", f"{self.cost} ({self.accounting.name} accounting)"),
            ("reads", "nothing yet, spends nothing yet"),
        ]
        if cells > 2:
            facts.insert(2, ("releases", f"{cells:,} cells at that one price"))
        return facts + [("note", note) for note in self.notes]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["column", "measures", "takes", "noise", "scale", "95% error per cell"]
        rows = [
            [
                name,
                planned.statistic.describe(),
                f"{100 * planned.share:.3g}%",
                planned.mechanism.name,
                report.number(planned.mechanism.scale),
                self._error_words(name),
            ]
            for name, planned in self._rows()
        ]
        return header, rows

    def _error_words(self, name: str) -> str:
        measure = dict(self.query.measures)[name]
        if not isinstance(measure, Mean):
            return f"+-{report.number(self.error[name])}"
        errors = (f"+-{report.number(self.error_of(measure, size))} of {size:,}" for size in TYPICAL_SIZES)
        return "in groups: " + ", ".join(errors)

    def __repr__(self) -> str:
        return report.text_page(f"Plan: {self.query}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        facts = [f"{key}: {value}" for key, value in self._facts()]
        return report.html_page(f"Plan: {self.query}", facts, *self._table())


@dataclass(frozen=True, repr=False)
class PlanTable:
    """The same query at several prices: what a preview without a price returns.

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

    plans: tuple[Plan, ...]

    @property
    def cost(self) -> tuple[PrivacyLoss, ...]:
        """What the call would cost at each price."""
        return tuple(plan.cost for plan in self.plans)

    @property
    def mechanisms(self) -> dict[float, dict[str, Mechanism]]:
        """The noise by epsilon and Statistic."""
        return {plan.cost.epsilon: plan.mechanisms for plan in self.plans}

    @property
    def error(self) -> dict[float, dict[str, float]]:
        """The expected 95% half-widths by epsilon and output column."""
        return {plan.cost.epsilon: plan.error for plan in self.plans}

    def to_frame(self, like: str = "polars") -> Any:
        """One row per price, one column per expected error."""
        rows = [
            {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta}
            | {f"{name}_error": error for name, error in plan.error.items()}
            for plan in self.plans
        ]
        return build.of_rows(rows, like)

    def plot(self) -> Any:
        """Expected 95% error against epsilon (an Altair chart; needs ``dpframe[plot]``)."""
        points = [(plan.cost.epsilon, name, error) for plan in self.plans for name, error in plan.error.items()]
        notes = tuple(f"{key} {value}" for key, value in self._facts())
        return charts.errors_by_price(points, charts.Words(f"Plans: {self.plans[0].query}", notes))

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["epsilon", *(f"error of {name}" for name in self.plans[0].error)]
        rows = [
            [report.number(plan.cost.epsilon), *(f"+-{report.number(error)}" for error in plan.error.values())]
            for plan in self.plans
        ]
        return header, rows

    def _facts(self) -> list[tuple[str, str]]:
        first = self.plans[0]
        facts = [("protects", str(first.unit)), ("reads", "nothing, spends nothing")]
        facts += [("note", note) for note in first.notes]
        if any(isinstance(measure, Mean) for _, measure in first.query.measures):
            facts.append(("note", f"a mean's error is shown for a group of {TYPICAL_SIZES[1]:,} values"))
        return facts

    def __repr__(self) -> str:
        return report.text_page(f"Plans: {self.plans[0].query}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        facts = [f"{key}: {value}" for key, value in self._facts()]
        return report.html_page(f"Plans: {self.plans[0].query}", facts, *self._table())


def plan_of(
    query: Query,
    frame: Any,
    *,
    unit: PrivacyUnit,
    price: Price,
    mechanism: str | Calibration | None,
    accounting: Accounting,
    limit: Amount | None,
) -> Plan:
    """Price a query whose columns were already checked against the frame's schema."""
    reach = [(statistic, sensitivities.of(statistic, unit, query.keys.cells)) for statistic in query.statistics]
    pure = is_pure(mechanism, price, accounting, limit)
    offered = accounting.parts(price, limit, len(reach), pure=pure)
    parts = tuple(
        Planned(statistic, sensitivity, calibrated(mechanism, pure, sensitivity, part), 1 / len(reach))
        for (statistic, sensitivity), part in zip(reach, offered, strict=True)
    )
    if len({part.mechanism.p for part in parts}) > 1:
        raise InvalidArgument("mechanism must have one shape p for all statistics of a call: units have one weight.")
    amount = accounting.charge(price, limit, tuple(part.mechanism for part in parts))
    return Plan(query, unit, price, accounting, amount, parts, accounting.cost(price, amount, pure=pure), frame)


def is_pure(mechanism: str | Calibration | None, price: Price, accounting: Accounting, limit: Amount | None) -> bool:
    """Whether the call's noise is to be pure: by name, or (under basic accounting) because it names no delta."""
    if not (mechanism is None or (isinstance(mechanism, str) and mechanism in WORDS) or _takes_two(mechanism)):
        example = f" {CALIBRATION_EXAMPLE}" if callable(mechanism) else ""
        raise InvalidArgument(
            f"mechanism must be 'laplace', 'gaussian', a function (sensitivity, loss) -> Mechanism or None, "
            f"not {shown(mechanism)}.{example}"
        )
    has_delta = (
        accounting.name != "basic" or bool(price.delta) or (price.share is not None and bool((limit or (0, 0))[1]))
    )
    if mechanism == "gaussian" and not has_delta:
        raise _no_delta(price)
    if mechanism == "laplace" and price.delta:
        raise InvalidArgument(
            f"delta must be left out with Laplace noise, which needs none, not {up(price.delta):g}. "
            "Drop delta or mechanism."
        )
    if isinstance(mechanism, str):
        return WORDS[mechanism]
    return mechanism is None and not has_delta


def _no_delta(price: Price) -> InvalidArgument:
    """The error of a call that wants Gaussian noise at a price without a delta."""
    if price.share is not None:
        return InvalidArgument(
            "share must be a share of a ledger with a delta for Gaussian noise, and this ledger has none. "
            "Make one with dpf.Ledger(epsilon=..., delta=...), or leave mechanism out for Laplace."
        )
    if price.delta is not None:
        return InvalidArgument("delta must be above 0 for Gaussian noise. Write for instance delta=1e-6.")
    return MissingArgument(
        "delta must be given for Gaussian noise. Write for instance delta=1e-6, or leave mechanism out for Laplace."
    )


def _takes_two(mechanism: object) -> bool:
    """Whether it is a function of two arguments; a class such as dpf.Laplace would make uncalibrated noise."""
    if not callable(mechanism) or isinstance(mechanism, type):
        return False
    try:
        inspect.signature(mechanism).bind("sensitivity", "loss")
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature
        return True
    return True


def calibrated(mechanism: str | Calibration | None, pure: bool, sensitivity: Sensitivity, part: Part) -> Mechanism:
    """The noise of one Statistic for its part of the price."""
    if callable(mechanism):
        return _checked(mechanism(sensitivity, part.loss), sensitivity, part)
    if pure:
        assert part.epsilon is not None
        return Laplace.of_steps(math.ceil(sensitivity.steps(1)), part.epsilon, sensitivity.grid)
    assert part.mu is not None
    return Gaussian.of_mu(Fraction(sensitivity.steps(2)), part.mu, sensitivity.grid)


def _checked(mechanism: Mechanism, sensitivity: Sensitivity, part: Part) -> Mechanism:
    """Refuse a caller's noise that covers less than one unit's reach or costs more than its part of the price."""
    if not isinstance(mechanism, (Laplace, Gaussian, GeneralizedGaussian)):
        raise InvalidType(
            f"mechanism must return a calibrated dpframe mechanism, not {shown(mechanism)}. {CALIBRATION_EXAMPLE}"
        )
    if mechanism.grid != sensitivity.grid:
        raise InvalidArgument(
            f"mechanism must work on the statistic's grid {sensitivity.grid:g}, not {mechanism.grid:g}. "
            "Pass grid=sensitivity.grid."
        )
    if mechanism.cells < sensitivity.swayed:
        raise InvalidArgument(
            f"mechanism must cover the {sensitivity.swayed:,} cells that one unit may sway here, but the noise "
            f"({mechanism.name}) is private only where it sways {mechanism.cells:g}. Use Laplace or Gaussian noise."
        )
    needed = sensitivity.norm(mechanism.p)
    if mechanism.sensitivity < needed:
        raise InvalidArgument(
            f"mechanism must cover the sensitivity {needed:g} (l_{mechanism.p:g}), not only {mechanism.sensitivity:g}. "
            f"Pass sensitivity=sensitivity.norm({mechanism.p:g})."
        )
    if mechanism.delta(part.loss.epsilon) > part.loss.delta:  # no tolerance: calibrations round to the safe side
        raise InvalidArgument(
            f"mechanism must cost at most {part.loss}, but at that epsilon its delta is "
            f"{mechanism.delta(part.loss.epsilon):g}. "
            "Calibrate it to the loss that it is given."
        )
    return mechanism


def _weight_notes(unit: PrivacyUnit) -> Sequence[str]:
    """What the reader must know of how units are bounded."""
    if unit.column is None:
        return ()
    missing = "left out" if unit.nulls == "drop" else "counted as one unit"
    return (
        f"a {unit.column} beyond max_rows={unit.max_rows} and max_groups={unit.max_groups} counts with one weight "
        "below 1, so answers lean toward those with few rows",
        f"rows without a {unit.column} are {missing}",
    )
