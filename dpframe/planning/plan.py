"""A plan: what a call will measure, with what noise, at what cost and with what error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dpframe.accounting import Accounting
from dpframe.display import charts, pages
from dpframe.display.statements import SAME, dearer_words
from dpframe.errors import how_many, sentence, with_article
from dpframe.exact import Amount
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.thresholded import Thresholded
from dpframe.planning.auto import Accuracy, Choice
from dpframe.planning.call import Call, Question
from dpframe.planning.check_pricing import NONE, PlannedChecks, has_none, line_of_checks, line_of_none
from dpframe.planning.sensitivity import Sensitivity, groups_in, one_group, uses_rows, uses_units
from dpframe.privacy import Price, PrivacyLoss, PrivacyUnit
from dpframe.queries.discovery import found_axis
from dpframe.queries.query import Query, by_choice, chooses
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.statistics.statistic import Choosing, InWords, Noting, PlanRow, Tables, choosing
from dpframe.queries.total import Total, over

MOST_LINES = 20  # of the table in the text of a plan
UNREAD = "Nothing is read or spent yet."
OF_POPULATION = "its units are taken as a sample: .dp.errors(covers='population') includes sampling chance"
TYPICAL_SIZES = (100, 1_000, 10_000)  # group sizes for which a mean's error is shown


@dataclass(frozen=True)
class Planned:
    """One Total with its sensitivity, its noise and its share of the cost.

    The share is of epsilon for Laplace noise, and of mu^2 for Gaussian noise, whose epsilons do not add up.
    """

    total: Total
    sensitivity: Sensitivity
    mechanism: Mechanism
    share: float


def expected_errors(query: Query, parts: Sequence[Planned], size: int | None, confidence: float) -> dict[str, float]:
    """Return the expected half-width of each output column at a confidence: the largest of all levels of subtotals."""
    noise = {part.total: part.mechanism for part in parts}
    return {
        name: max(
            statistic.expected_error([noise[over(total, by)] for total in totals], size or TYPICAL_SIZES[1], confidence)
            for by in query.shown.groupings
        )
        for name, statistic in query.statistics
        for totals in [statistic.totals()]
    }


class Costing:
    """A plan whose cost a ledger can check before it is charged: of one call, several together, or a stream."""

    unit: PrivacyUnit
    accounting: Accounting
    amount: Amount  # in the accounting's own exact quantity
    cost: PrivacyLoss  # of the call alone

    def _in_new_ledger(self) -> list[tuple[str, str]]:
        """Return a line on what a ledger of this limit has spent after this call alone, if it is more than the cost."""
        spent = self.accounting.loss(self.amount)
        if spent.epsilon <= self.cost.epsilon * (1 + SAME):
            return []
        why = self.accounting.adds or "losses are added up in another quantity"
        return [("counts as", f"{spent} in a ledger of this limit without other charges: {why}")]


@dataclass(frozen=True, repr=False)
class Plan(Costing):
    """A plan of a call: the numbers to measure, the cost and the error.

    It has read no row and spent nothing.

    Parameters
    ----------
    query, unit, price
        The query, the privacy unit, and the cost that the call gave.
    accounting, amount
        The accounting, and the exact quantity in it that the call takes.
    parts : tuple of Planned
        The Totals to measure, each with `.total`, `.sensitivity`, `.mechanism` and `.share`.
    cost : PrivacyLoss
        The cost of the call alone, rounded up.
    question : Question
        The public facts from which the plan follows. An unpickled plan has none.
    call : Call, optional
        For a preview, the call for `release_together`, with its label and its frame, which is not read. An unpickled
        plan has None: rows travel with no plan.
    choice : Choice, optional
        With ``mechanism="auto"``: the noise that was chosen, and `.why`.
    accuracy : Accuracy, optional
        With ``within=``: the error for which the cost was found.
    size : int, optional
        The number of values that a mean is assumed to have, if the call gives it.
    together : tuple of str
        The names of the plans that are released together at one cost, including its own.
    checks : PlannedChecks, optional
        The checks that it measures of what the bounds leave out.
    unseen : PlannedChecks, optional
        Checks that are not measured, because they would be too uncertain.
    known_by : tuple of Mechanism, optional
        The noise that it would have without checks, if a ledger identifies the call by its noise.

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
    question: Question = field(compare=False)
    choice: Choice | None = None
    accuracy: Accuracy | None = None
    size: int | None = None
    together: tuple[str, ...] = ()
    call: Call | None = field(default=None, compare=False)
    checks: PlannedChecks | None = None
    unseen: PlannedChecks | None = None
    known_by: tuple[Mechanism, ...] | None = None

    def __dir__(self) -> list[str]:
        """Return the names for users, without those that only the release of the plan needs."""
        internal = {
            "accounting",
            "accuracy",
            "amount",
            "assumed_size",
            "by_total",
            "call",
            "drawn",
            "known_by",
            "named",
        }
        internal |= {"noise_of", "noises", "parts", "price", "protects", "question", "rows", "size_of"}
        internal |= {"together", "unseen"}
        return [name for name in super().__dir__() if name not in internal]

    def __getstate__(self) -> dict[str, Any]:
        # the call holds the frame and may name a ledger; the question may hold functions: none of these is pickled
        return {**self.__dict__, "question": None, "call": None}

    @property
    def noises(self) -> tuple[Mechanism, ...]:
        """The noise of each Total, in their order."""
        return tuple(part.mechanism for part in self.parts)

    @property
    def drawn(self) -> tuple[Mechanism, ...]:
        """The noise of all draws of its release: of each Total, and of its checks."""
        return self.noises if self.checks is None else (*self.noises, self.checks.mechanism)

    @cached_property
    def by_total(self) -> Mapping[Total, Planned]:
        """The parts by Total."""
        return {part.total: part for part in self.parts}

    @property
    def mechanisms(self) -> dict[str, Mechanism]:
        """The noise of each Total, by its description, with a number if several have the same."""
        found: dict[str, Mechanism] = {}
        times: Counter[str] = Counter()
        for part in self.parts:
            described = part.total.describe()
            times[described] += 1
            found[described if times[described] == 1 else f"{described} ({times[described]})"] = part.mechanism
        return found

    @property
    def error(self) -> dict[str, float]:
        """The expected 95% half-width per output column; for a mean with `size` values, or 1,000 by default."""
        return self.errors(CONFIDENCE)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the output columns."""
        return tuple(name for name, _ in self.query.statistics)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, such as on rows that are left out or have a lower weight."""
        declared = "subtotals are of the declared keys: rows of other keys are in none"
        leaves_out = any(axis.coding != "rest" for axis in self.query.keys.axes)
        subtotals = (declared,) if self.query.subtotals and leaves_out else ()
        names = ", ".join(self.together)
        together = (f"released together, at one cost for all: {names}",) if self.together else ()
        of_keys = _found_notes(self) if self.query.keys.unknown else []
        of_values = tuple(
            note
            for _, statistic in self.query.statistics
            if isinstance(statistic, Noting)
            for note in statistic.notes(self.unit, groups_in(self.query))
        )
        of_units = () if self.unit.column is None else _weight_notes(self.unit, self.query)
        return (*self.query.shown.notes(), *of_keys, *subtotals, *dict.fromkeys(of_values), *of_units, *together)

    @property
    def protects(self) -> str:
        """The privacy unit as text, with the contribution bounds that the query uses."""
        return self.unit.words(rows=uses_rows(self.query))

    def noise_of(self, statistic: Statistic, by: tuple[str, ...] | None = None) -> tuple[Mechanism, ...]:
        """Return the noise of each Total that the statistic is computed from; `by` names a level of subtotals."""
        return tuple(self.by_total[over(total, by)].mechanism for total in statistic.totals())

    def errors(self, confidence: float) -> dict[str, float]:
        """Return the expected half-width per output column at any confidence: the largest of all subtotals."""
        return expected_errors(self.query, self.parts, self.size, confidence)

    def error_of(
        self, statistic: Statistic, size: int, confidence: float = CONFIDENCE, by: tuple[str, ...] | None = None
    ) -> float:
        """Return the expected half-width for a group of `size` values; only that of a mean depends on the size."""
        return statistic.expected_error(self.noise_of(statistic, by), size, confidence)

    @property
    def assumed_size(self) -> int:
        """The number of values that a mean is assumed to have, if one error is shown for all groups."""
        return self.size or TYPICAL_SIZES[1]

    def size_of(self, name: str) -> int | None:
        """Return the number of values that the error of an output column assumes; None if it does not depend on it."""
        return self.assumed_size if dict(self.query.statistics)[name].sized else None

    def named(self, name: str) -> str:
        """Return the output column, with the unit of its error if that differs, and with the size if it is a mean."""
        size, unit = self.size_of(name), getattr(dict(self.query.statistics)[name], "error_unit", "")
        of_values = name if size is None else f"{name} of {how_many(size, 'value')}"
        return f"{of_values} ({unit})" if unit else of_values

    @property
    def _sizes(self) -> tuple[int, ...]:
        return TYPICAL_SIZES if self.size is None else (self.size,)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per output column and Total, as plain values; `size` is the group size for a mean's error."""
        return [
            {
                "column": name,
                "measures": row.measures,
                "share": row.share,
                "noise": planned.mechanism.name,
                "scale": row.scale,
                "sensitivity": planned.mechanism.sensitivity,
                "error": row.error,
                "size": self.size_of(name),
            }
            for name, planned in self._rows()
            for row in self._lines(name, planned)
        ]

    def to_frame(self, like: str = "polars") -> Any:
        """Return one row for each output column and Total, as a Polars (or ``"pandas"``) frame.

        ``error`` is the expected 95% half-width; for a mean, that of a group of ``size`` values. Otherwise ``size`` is
        null.
        """
        return pages.as_frame(self.rows(), like, whole=("size",))

    def plot(self) -> Any:
        """Draw the expected 95% error of each output column as a point (an Altair chart; needs ``dpframe[plot]``)."""
        points = []
        for name, statistic in self.query.statistics:
            if not statistic.sized:
                points.append((self.named(name), self.error_of(statistic, 0)))
            for size in self._sizes if statistic.sized else ():
                points.append((f"{name} of {how_many(size, 'value')}", self.error_of(statistic, size)))
        price = f"{self.cost} ({self.accounting.name} accounting), protects {self.protects}"
        return charts.expected_errors(points, charts.Words(f"Plan: {self.query}", (UNREAD,), price))

    def _rows(self) -> list[tuple[str, Planned]]:
        return [
            (name, self.by_total[over(needed, by)])
            for name, statistic in self.query.statistics
            for by in self.query.shown.groupings
            for needed in statistic.totals()
        ]

    def _error(self, name: str, planned: Planned) -> float:
        """Return the expected error of a row of `_rows`."""
        return self.error_of(dict(self.query.statistics)[name], self.assumed_size, by=planned.total.by)

    def _facts(self) -> list[tuple[str, str]]:
        cells = self.query.shown.cells
        facts = [
            ("protects", self.protects),
            ("costs", f"{self.cost} ({self.accounting.name} accounting)"),
            ("reads", "nothing yet, spends nothing yet"),
        ]
        if self.query.keys.unknown:
            facts.insert(2, ("releases", "the groups that are found, and nothing of any other"))
        elif chooses(self.query):
            most = max(choice.chosen for choice in self.query.choices if isinstance(choice, Choosing))
            facts.insert(2, ("releases", f"{'one' if most == 1 else f'{most:,} in order'} of {cells:,} options"))
        elif cells > 2:
            facts.insert(2, ("releases", f"{cells:,} cells at that one cost"))
        offered = None if self.price.epsilon is None else float(self.price.epsilon)
        if offered is not None and (why := dearer_words(offered, self.cost.epsilon, self.accounting.name)):
            facts.insert(2, ("which is", why))
        facts[2:2] = self._in_new_ledger()
        if self.accuracy is not None:
            facts.insert(2, ("gives", f"{self.accuracy}: {self._smallest}"))
        if self.choice is not None:
            facts.append(("noise", self.choice.why))
        facts += [("by", said["why"]) for choice in self.query.choices if (said := choice.choice_facts()) is not None]
        if self.checks is not None:
            facts.append(("checks", line_of_checks([self.checks], self.size)))
        elif self.unseen is not None:
            facts.append(("checks", line_of_none(self.unseen, self.size)))
        elif has_none(self.query, self.unit):
            facts.append(("checks", NONE))
        of_sample = (OF_POPULATION,) if self.question and self.question.population else ()  # None after unpickling
        return facts + [("note", note) for note in (*self.notes, *of_sample)]

    @property
    def _smallest(self) -> str:
        """The sense in which the epsilon of ``within=`` is the smallest, as text: the weights are fixed."""
        if len(self.columns) == 1:
            return "the smallest epsilon that does"
        equal = len({part.share for part in self.parts}) == 1
        return f"the smallest epsilon that does with {'equal' if equal else 'these'} weights; others may be cheaper"

    def _lines(self, name: str, planned: Planned) -> Sequence[PlanRow]:
        """Return one row for a Total, or one for each table that a statistic makes of it."""
        statistic = dict(self.query.statistics)[name]
        if isinstance(statistic, Tables):
            tables = statistic.rows_of_plan([planned.mechanism])
            return [replace(row, share=row.share * planned.share) for row in tables]
        scale, error = planned.mechanism.scale, self._error(name, planned)
        return [PlanRow(planned.total.describe(), planned.share, scale, error)]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["column", "measures", "takes", "noise", "scale", "95% error per cell"]
        lines = [(name, planned, row) for name, planned in self._rows() for row in self._lines(name, planned)]
        rows = [
            [
                name,
                row.measures,
                f"{100 * row.share:.3g}%",
                planned.mechanism.name,
                pages.number(row.scale),
                self._error_words(name, row.error),
            ]
            for name, planned, row in lines[:MOST_LINES]
        ]
        if len(lines) > MOST_LINES:
            rest = lines[MOST_LINES:]
            share = f"{100 * sum(row.share for *_, row in rest):.3g}%"
            least, most = (pages.number(end(row.error for *_, row in rest)) for end in (min, max))
            rows.append(["", f"{len(rest):,} more: to_frame() has all", share, "", "", f"+-{least} to {most}"])
        return header, rows

    def _error_words(self, name: str, error: float) -> str:
        statistic = dict(self.query.statistics)[name]
        if not statistic.sized:
            distance = pages.number(error)
            return statistic.error_words(distance) if isinstance(statistic, InWords) else f"+-{distance}"
        errors = (f"+-{pages.number(self.error_of(statistic, size))} of {size:,}" for size in self._sizes)
        return "in groups: " + ", ".join(errors)

    def __repr__(self) -> str:
        return pages.text_page(f"Plan: {self.query}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page_of_facts(f"Plan: {self.query}", self._facts(), *self._table())


def _weight_notes(unit: PrivacyUnit, query: Query) -> Sequence[str]:
    """Return notes for the reader on contribution bounds, and on rows without a unit."""
    missing = "left out" if unit.nulls == "drop" else "counted as one unit"
    a_unit = with_article(unit.one)
    if query.keys.counted == "units":
        return (f"{unit.without} are {missing}",)
    rows = (
        f"each row of {a_unit} with more than {_bounds_words(unit, query)} has a lower weight; the margins of error "
        "do not cover this, and results lean toward those with few rows"
    )
    groups = min(unit.contribution.max_groups, groups_in(query))
    units = (
        f"{a_unit} in more than {how_many(groups, 'group')} has a lower weight in each; the margins "
        "of error do not cover this"
    )
    left_out = [rows] if uses_rows(query) else []
    left_out += [units] if uses_units(query) and groups < groups_in(query) else []
    return (*left_out, *_implied_notes(unit, query), f"{unit.without} are {missing}")


def _bounds_words(unit: PrivacyUnit, query: Query) -> str:
    """Return the bounds as text: the numbers of rows and groups that count fully; for a choice, in each option."""
    bounds = unit.contribution
    rows = how_many(bounds.max_rows, "row")
    if one_group(query):
        return f"{rows} in one of the options" if by_choice(query) and chooses(query) else rows
    groups = min(bounds.max_groups, groups_in(query))
    return f"{rows} in {how_many(groups, 'group')}"


def _implied_notes(unit: PrivacyUnit, query: Query) -> Sequence[str]:
    """Return notes on a bound that is used and is 1 because only the other one was given."""
    used = (["max_rows"] if uses_rows(query) else []) + ([] if one_group(query) else ["max_groups"])
    bounds = {"max_rows": unit.max_rows, "max_groups": unit.max_groups}
    missing = [name for name in used if bounds[name] is None]
    return tuple(f"{name} is 1, since only {_other(name)} was given" for name in missing)


def _other(name: str) -> str:
    return "max_groups" if name == "max_rows" else "max_rows"


def _found_notes(plan: Plan) -> list[str]:
    """Return notes for the reader on unknown groups."""
    unit, query, law = plan.unit, plan.query, plan.parts[0].mechanism
    axis = found_axis(query.keys)
    if axis is None or axis.discovery is None:
        return []
    assert isinstance(law, Thresholded)
    units, verb = ("rows", "count") if axis.by_rows else ("units", "n_units")
    nouns = ("row", "rows") if axis.by_rows else (f"unit ({unit.one})", f"units ({unit.one})")
    said = [law.words(*nouns), "among groups that are shown, the numbers of those near the threshold are too high"]
    if axis.discovery.largest:
        largest = axis.discovery.largest
        few = f"{largest:,} of them are shown, those of the largest noisy numbers"
        said.append(f"at most {few if largest > 1 else '1 of them is shown, that of the largest noisy number'}")
    if not any(axis.people in statistic.totals() for _, statistic in query.statistics):
        said.append(f"the numbers of {units} are measured in any case: ask for {verb} too, at no further cost")
    if axis.discovery.max_keys > 1 and not axis.by_rows:
        said.append(f"of a unit with more than {axis.discovery.max_keys:,} groups a random choice of them counts")
    if law.p == 1 and unit.contribution.max_groups > 1 and not axis.by_rows and plan.accounting.charges_price:
        said.append("Gaussian noise may find more groups: preview the call with a delta too, and compare")
    if not axis.discovery.nulls:
        said.append(f"rows without a value of {' or '.join(axis.columns)} are in no group")
    return said


@dataclass(frozen=True, repr=False, eq=False)
class PlanTable:
    """The plans of one query at several costs.

    A preview returns it if the call gives a list of costs or none.

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

    prices: tuple[Callable[[], Plan], ...]  # each plan except the first is made when it is needed

    @cached_property
    def first(self) -> Plan:
        """The plan at the first cost; what all plans have in common can be read from it."""
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
        return {"prices": (), "first": self.first, "plans": self.plans}  # the functions in `prices` hold the frame

    @property
    def cost(self) -> tuple[PrivacyLoss, ...]:
        """The cost of each plan, in order."""
        return tuple(plan.cost for plan in self.plans)

    @property
    def mechanisms(self) -> dict[float, dict[str, Mechanism]]:
        """The noise by epsilon and Total."""
        return {plan.cost.epsilon: plan.mechanisms for plan in self.plans}

    @property
    def error(self) -> dict[float, dict[str, float]]:
        """The expected 95% half-widths by epsilon and output column.

        Those of a mean are for the number of values in column ``size`` of `to_frame`.
        """
        return {plan.cost.epsilon: plan.error for plan in self.plans}

    def to_frame(self, like: str = "polars") -> Any:
        """Return one row for each cost and one column for each expected error; ``size`` is the group size of means."""
        size = {"size": self.first.assumed_size} if self._has_means else {}
        rows = [
            {"epsilon": plan.cost.epsilon, "delta": plan.cost.delta}
            | {f"{name}_error": error for name, error in plan.error.items()}
            | size
            for plan in self.plans
        ]
        return pages.as_frame(rows, like, whole=tuple(size))

    @property
    def _has_means(self) -> bool:
        return any(statistic.sized for _, statistic in self.first.query.statistics)

    def plot(self) -> Any:
        """Draw the expected 95% error against epsilon (an Altair chart; needs ``dpframe[plot]``)."""
        points = [
            (plan.cost.epsilon, plan.named(name), error) for plan in self.plans for name, error in plan.error.items()
        ]
        said = [f"checks: {value}" if key == "checks" else value for key, value in self._notes()]
        notes = (UNREAD, *(sentence(words.replace("+-", "±")) for words in said))
        who = f"protects {self.first.protects}"
        return charts.errors_by_price(points, charts.Words(f"Plans: {self.first.query}", notes, who))

    def _table(self) -> tuple[list[str], list[list[str]]]:
        words, sign = ("most below the largest, 95%", "") if not _numbered(self.first) else ("error of {}", "+-")
        header = ["epsilon", *(words.format(self.first.named(name)) for name in self.first.error)]
        rows = [
            [pages.number(plan.cost.epsilon), *(f"{sign}{pages.number(error)}" for error in plan.error.values())]
            for plan in self.plans
        ]
        return header, rows

    def _facts(self) -> list[tuple[str, str]]:
        return [("protects", self.first.protects), ("reads", "nothing, spends nothing"), *self._notes()]

    def _notes(self) -> list[tuple[str, str]]:
        """Return the facts that are notes for the reader, or on checks."""
        first = self.first
        shared = [note for note in first.notes if all(note in plan.notes for plan in self.plans)]
        facts = [
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
        if has_none(first.query, first.unit):
            facts.append(("checks", NONE))
        if self._has_means:
            facts.append(("note", f"a mean's error is shown for a group of {how_many(first.assumed_size, 'value')}"))
        return facts

    def __repr__(self) -> str:
        return pages.text_page(f"Plans: {self.first.query}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page_of_facts(f"Plans: {self.first.query}", self._facts(), *self._table())


def _numbered(plan: Plan) -> bool:
    """Return whether the errors of a plan are those of numbers, not distances of a choice from the largest count."""
    return any((choice := choosing(statistic)) is None or choice.numbered for _, statistic in plan.query.statistics)
