"""The plan of a stream: the cost of all its periods together, the noise, and the errors to expect in each of them.

Running totals over declared periods are measured by the square-root factorization. Its matrix C (`prefix_sums`) is
lower triangular, so that period t needs no later period, and its entries are whole multiples of 2**-12. Period t
measures y_t = sum of c_(t-j) x_j, where x_j are the rows of each period j up to t. If the noisy number of a period was
lost, the period is left out, and its rows count with those of the next stored one. The rest of the matrix is triangular
too, so the totals still follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting import Accounting
from dpframe.display import charts, pages
from dpframe.display.charts import Words
from dpframe.display.statements import dearer_words
from dpframe.errors import InvalidArgument, how_many, is_one_of, no_markup, shown, with_article
from dpframe.exact import Amount, exact_delta, root_up, up
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.planning.auto import Accuracy, smallest_epsilon
from dpframe.planning.plan import Costing
from dpframe.planning.price import is_pure
from dpframe.privacy import Price, PrivacyLoss, PrivacyUnit, checked_bound
from dpframe.queries.prefix_sums import BITS, PrefixSums, coefficients, weights_of_period, weights_of_total
from dpframe.queries.query import Query
from dpframe.queries.statistics import CONFIDENCE, Statistic
from dpframe.queries.statistics.statistic import Labelled, choosing
from dpframe.queries.total import OfRows, RowsTotal, Total

MOST_LINES = 12
HALF_WIDTH = 300


def of_stream(rows: Sequence[Mapping[str, Any]], time: str, words: Words) -> Any:
    """Return two panels, the running totals and the single periods: a line for each group, in a band of 95% intervals.

    `rows` have ``place`` (of the period, from 1), ``label``, ``group`` (a name, "" if there is only one), and
    ``total, total_error, period, period_error``.
    """
    panels = [
        charts.panel(_lines(_banded(rows, name), time), title)
        for name, title in (("total", "running total"), ("period", "each period"))
    ]
    return charts.beside(panels, words)


def of_errors(labels: Sequence[str], errors: Mapping[str, Sequence[float]], time: str, words: Words) -> Any:
    """Return a chart of the expected errors of a plan by period: a line for the totals, and one for the periods."""
    rows = [
        {"place": place, "label": label, "group": name, "value": error, "text": f"±{pages.number(error)}"}
        for name, values in errors.items()
        for place, (label, error) in enumerate(zip(labels, values, strict=True), start=1)
    ]
    altair = charts.imported()
    base = altair.Chart(charts.public_data(rows)).encode(
        **_across(altair, rows, time), tooltip=["label:N", "group:N", "text:N"]
    )
    lines = base.mark_line(point=True).encode(
        y=altair.Y("value:Q", title="expected 95% error", scale=altair.Scale(zero=True)), color=_color(altair, rows)
    )
    return charts.titled(lines.properties(width=charts.WIDTH, height=charts.HEIGHT), words)


def _banded(rows: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    return [
        {
            **{key: row[key] for key in ("place", "label", "group")},
            "value": row[name],
            "low": row[name] - row[f"{name}_error"],
            "high": row[name] + row[f"{name}_error"],
            "text": f"{pages.number(row[name])} ± {pages.margin(row[f'{name}_error'])}",
        }
        for row in rows
    ]


def _lines(rows: Sequence[Mapping[str, Any]], time: str) -> Any:
    altair = charts.imported()
    across, color = _across(altair, rows, time), _color(altair, rows)
    base = altair.Chart(charts.public_data([dict(row) for row in rows]))
    low = altair.Y("low:Q", title=None)  # the panel has a title
    band = base.mark_area(opacity=0.25).encode(**across, y=low, y2="high:Q", color=color)
    line = base.mark_line(point=altair.OverlayMarkDef(size=18)).encode(
        **across, y=altair.Y("value:Q", title=None), color=color, tooltip=["label:N", "group:N", "text:N"]
    )
    return altair.layer(band, line).properties(width=HALF_WIDTH, height=charts.HEIGHT)


def _across(altair: Any, rows: Sequence[Mapping[str, Any]], time: str) -> dict[str, Any]:
    """Return the encoding of the periods in their declared order, with as many labels as fit."""
    labels = [label for _, label in sorted({(row["place"], row["label"]) for row in rows})]
    axis = altair.Axis(labelOverlap="greedy", labelAngle=-40, labelLimit=0)
    return {"x": altair.X("label:N", sort=[no_markup(label) for label in labels], title=time, axis=axis)}


def _color(altair: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    names = list(dict.fromkeys(no_markup(row["group"]) for row in rows))
    legend = altair.Legend(title=None) if len(names) > 1 else None
    return altair.Color("group:N", sort=names, scale=altair.Scale(domain=names), legend=legend)


FINE = 2**BITS  # a coefficient is a multiple of 1 / FINE
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_PERIODS = 4096  # beyond, coefficients are too few steps long to differ
STEP, LAST = 0.05, 200.0  # step and end of the integral for Laplace noise; the rest is below 1e-9
ROUNDS = 50
ABOVE = 1.0 + 1e-7  # a factor above the relative error of the integral
MASK = 2**BITS - 1


class Draws(Protocol):
    """The facts on noise that determine the law of a weighted sum of independent draws."""

    @property
    def p(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def grid(self) -> float: ...


def exact_sums(totals: Integers, kept: Sequence[int], *, whole: bool) -> Integers:
    """Return the number y of the last period for each group, from the totals (periods, groups) of all periods up to it.

    `kept` has the periods, from 1, that are not lost; y is that of the last one. Rows of a lost period count with those
    of the next. For counts (`whole`), y is a whole number of steps of 2**-12. Any other total stays on its own grid: y
    is rounded down, to the same number in any order of the rows.

    If a count wraps modulo 2**64, y wraps alike and moves no farther. Rounding differs: if a total reaches 2**63 steps,
    which takes 2**33 rows at the larger bound, one row may move y by more than its sensitivity. A Polars DataFrame with
    an index of 32 bits cannot hold so many rows (``docs/assurance/limits.md``).
    """
    now = kept[-1]
    counted_at = np.asarray(kept)[np.searchsorted(kept, np.arange(1, now + 1))]
    weights = coefficients(now)[now - counted_at]
    if whole:
        return np.asarray(weights @ totals)
    # the sum of c x over 2**12, rounded down; both products fit 64 bits, because a total is below 2**63 steps
    return np.asarray(weights @ (totals >> BITS) + ((weights @ (totals & MASK)) >> BITS))


def half_width(noise: Draws, weights: Floats, confidence: float) -> float:
    """Return the half-width of the interval of a weighted sum of draws: exact for Laplace and for Gaussian noise.

    A discrete draw differs from a continuous one by less than a step, so a step times its absolute weight is added.
    """
    (quantile,) = _quantiles(noise.p, weights[::-1], confidence, every=False)
    return noise.scale * quantile + noise.grid * float(np.abs(weights).sum())


def half_widths(noise: Draws, periods: int, confidence: float) -> tuple[Floats, Floats]:
    """Return the half-widths of the running totals and of the single periods, for each period, if none is lost."""
    everything = tuple(range(1, periods + 1))
    widths = []
    for weights in (weights_of_total(everything)[::-1], weights_of_period(everything)[::-1]):
        quantiles = np.array(list(_quantiles(noise.p, weights, confidence, every=True)))
        widths.append(noise.scale * quantiles + noise.grid * np.cumsum(np.abs(weights)))
    return widths[0], widths[1]


def _quantiles(p: float, weights: Floats, confidence: float, *, every: bool) -> Iterator[float]:
    """Yield half-widths for draws of scale 1: of the sum of the first draw, of the first two, ...; or only the last."""
    normal = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    if p == 2.0:
        spreads = np.sqrt(np.cumsum(weights**2))
        yield from normal * (spreads if every else spreads[-1:])
        return
    points = np.arange(STEP / 2.0, LAST, STEP)
    curve, spread, half = np.full(points.size, STEP * 2.0 / math.pi), 0.0, 0.9 * normal
    for place, weight in enumerate(weights.tolist()):
        curve /= 1.0 + (weight * points) ** 2  # the characteristic function of Laplace noise
        spread += 2.0 * weight**2
        if not (every or place == weights.size - 1):
            continue
        if place == 0:  # one draw alone: its curve falls too slowly for the integral
            yield -abs(weight) * math.log1p(-confidence)
            continue
        solved = _laplace_quantile(points, curve, half * math.sqrt(spread), confidence)
        half = solved / math.sqrt(spread)  # a start for the next sum, which has nearly the same
        yield solved * ABOVE


def _laplace_quantile(points: Floats, curve: Floats, start: float, confidence: float) -> float:
    """Solve P(|sum| <= h) = confidence for h by Newton's method; P is the integral of sin(u h) / u on the curve."""
    half = start
    for _ in range(ROUNDS):
        chance = float((np.sin(points * half) / points) @ curve)
        step = (confidence - chance) / float(np.cos(points * half) @ curve)
        half = max(half + step, half / 2.0)
        if abs(step) <= 1e-10 * half:
            break
    return half


@dataclass(frozen=True)
class StreamReach:
    """The largest effect of one unit on the numbers of a stream, kept in integers.

    Notes
    -----
    A row that adds between -L and U to period j moves y_t by c_(t-j) times that. Let M = max(L, U). At most `rows` rows
    of a unit count in the whole stream, the earliest ones. Even if rows enter the table late, a unit's part of y_t has
    an l_1 norm over the groups of at most M times the sum of c_(t - t_i), where t_i is the first release that held i of
    its rows (``docs/assurance/privacy.md``). So over all periods, the l_p norm is at most rows M ||c||_p.

    **Replace.** Two such vectors are subtracted. So the l_1 norm is at most 2 rows M ||c||_1. By the bounds of single
    numbers (see `Sensitivity`), the l_2 norm is at most sqrt(2 (U^2 + L^2)) rows ||c||_2; U = 1 and L = 0 for counts.

    **Rounding.** Counts are measured exactly, in steps of 2**-12. Any other total is rounded down to its own grid. This
    moves each number that differs by less than one step more, and at most `entries` of them differ.

    Examples
    --------
    >>> from dpframe.queries.total import Total
    >>> reach = StreamReach.of(Total(), PrivacyUnit(), periods=52, groups=1)
    >>> round(reach.steps(2) * reach.grid, 6)
    1.523988
    """

    reach: tuple[int, int]  # the least and the greatest that a row may add, in steps of its total
    whole: bool  # whether rows are counted, so that nothing is rounded
    column_sum: int  # the l_1 norm of c, in steps of 2**-12
    column_square: int  # the squared l_2 norm of c, in squared steps
    rows: int
    entries: int
    replace: bool
    grid: float

    @classmethod
    def of(cls, total: Total, unit: PrivacyUnit, *, periods: int, groups: int) -> StreamReach:
        """Return the reach of one unit in the stream of one Total."""
        design, rows = PrefixSums(periods), 1 if unit.column is None else unit.contribution.max_rows
        norm, replace, whole = total.norm(weighted=False), unit.neighbors == "replace", isinstance(total, RowsTotal)
        return cls(
            reach=norm.reach,
            whole=whole,
            column_sum=design.column_sum,
            column_square=design.column_square,
            rows=rows,
            entries=periods * min(groups, rows * (2 if replace else 1)),
            replace=replace,
            grid=design.grid if whole else norm.grid,
        )

    def steps(self, p: float) -> float:
        """Return the l_1 or l_2 norm in grid steps, rounded up."""
        least, greatest = -self.reach[0], self.reach[1]
        largest, fine = max(least, greatest), 1 if self.whole else FINE
        if p == 1.0:
            moved = Fraction(self.rows * largest * self.column_sum * (2 if self.replace else 1), fine)
            return up(moved if self.whole else moved + self.entries)
        squares = 2 * (least**2 + greatest**2) if self.replace else largest**2
        moved = Fraction(_root_up(self.rows**2 * squares * self.column_square)) / fine
        return up(moved if self.whole else moved + Fraction(_root_up(self.entries)))


def _root_up(square: int) -> float:
    """Return the square root, rounded up."""
    return root_up(Fraction(square), math.sqrt(square))


ROWS = 8  # rows of the printed table


@dataclass(frozen=True, repr=False)
class StreamPlan(Costing):
    """A plan of a stream: its cost for all periods and the errors of each. It has read no row and spent nothing.

    Made by `Stream.preview`.

    Parameters
    ----------
    name : str
        Of the stream.
    query, unit, price
        What is asked, who is protected, what was offered.
    accounting, amount
        How losses add up, and what the whole stream takes in that exact quantity, once.
    reach, mechanism
        How far one unit can move what is measured, and the noise that covers it.
    cost : PrivacyLoss
        What the whole stream costs, rounded up.

    Examples
    --------
    >>> import dpframe as dpf
    >>> weeks = dpf.dates("2026-01-05", "2026-12-28", every="1w")
    >>> stream = dpf.Stream("admissions", statistic=dpf.count(), time="day", periods=weeks, epsilon=1, delta=1e-6)
    >>> plan = stream.preview()
    >>> round(plan.mechanism.scale, 2), plan.to_frame().height
    (6.44, 52)
    """

    name: str
    query: Query
    unit: PrivacyUnit
    price: Price
    accounting: Accounting
    amount: Amount
    reach: StreamReach
    mechanism: Any
    cost: PrivacyLoss

    @property
    def total(self) -> Total:
        """The Total that is measured of each period."""
        (total,) = self.query.of_cells
        return total

    @property
    def time(self) -> str:
        """The column that says in which period a row entered the table."""
        return self.query.keys.columns[0]

    @property
    def periods(self) -> Sequence[Any]:
        """The labels of the periods, in order."""
        (labels,) = self.query.keys.axes[0].labels().values()
        return labels.tolist() if hasattr(labels, "tolist") else labels

    @property
    def groups(self) -> int:
        """The number of rows of each release."""
        return math.prod(self.query.keys.shape[1:])

    @property
    def words(self) -> str:
        """The question as text, for the ledger."""
        statistic, groups = self.query.statistics[0][1], " x ".join(map(str, self.query.keys.axes[1:]))
        by = f" by {groups}" if groups else ""
        return f"stream of {statistic}{by}, {how_many(len(self.periods), 'period')} of {self.time}"

    @cached_property
    def errors(self) -> dict[str, list[float]]:
        """The expected 95% half-widths by period: of the running total, and of the period alone."""
        total, period = half_widths(self.mechanism, len(self.periods), CONFIDENCE)
        return {"total": total.tolist(), "period": period.tolist()}

    def largest_errors(self, confidence: float) -> dict[str, float]:
        """Return the half-widths in the last period, which are the largest, because each period adds draws."""
        everything = tuple(range(1, len(self.periods) + 1))
        weights = {"total": weights_of_total(everything), "period": weights_of_period(everything)}
        return {name: half_width(self.mechanism, each, confidence) for name, each in weights.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader on rows that are left out or count in part."""
        notes = [f"rows in no declared period of {self.time} are left out", *self.query.keys.notes()]
        if len(notes) > 1:
            del notes[0]
        notes.append(
            "a row that appears only after its period was released counts in part in the running totals, and in later "
            "periods; the margins of error do not cover this"
        )
        if self.unit.column is None:
            return tuple(notes)
        most = self.unit.contribution.max_rows
        of_all = f"of {with_article(self.unit.one)} in all periods and groups together"
        counting = f"{most:,} rows {of_all} count, and no others" if most > 1 else f"row {of_all} counts, and no other"
        missing = "left out" if self.unit.nulls == "drop" else "counted as one unit"
        notes.append(f"the earliest {counting}; the margins of error do not cover this")
        return (*notes, f"{self.unit.without} are {missing}")

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per period: its label, and the expected errors."""
        pairs = zip(self.periods, self.errors["total"], self.errors["period"], strict=True)
        return [{self.time: label, "total_error": total, "period_error": period} for label, total, period in pairs]

    def to_frame(self, like: str = "polars") -> Any:
        """Return the expected 95% half-widths of every period, as a Polars (or ``"pandas"``) frame.

        Columns: the label of the period, ``total_error`` of the running total up to it, ``period_error`` of it alone.
        """
        return pages.as_frame(self.rows(), like)

    def plot(self) -> Any:
        """Draw the expected errors of the running totals and of the periods as lines (needs ``dpframe[plot]``)."""
        words = charts.Words(f"Plan: {self.name}", (), f"{self.cost}, once for all periods; protects {self.unit.who}")
        return of_errors([str(label) for label in self.periods], self.errors, self.time, words)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("asks", self.words),
            ("protects", str(self.unit.who)),
            ("costs", f"{self.cost} ({self.accounting.name} accounting), once for all periods"),
            ("reads", "nothing yet, spends nothing yet"),
            ("noise", f"{self.mechanism.name} of scale {pages.number(self.mechanism.scale)} in each period"),
        ]
        offered = None if self.price.epsilon is None else float(self.price.epsilon)
        if offered is not None and (why := dearer_words(offered, self.cost.epsilon, self.accounting.name)):
            facts.insert(3, ("which is", why))
        facts[3:3] = self._in_new_ledger()
        return facts + [("note", note) for note in self.notes]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = self.rows()
        places = sorted({round(place * (len(rows) - 1) / (ROWS - 1)) for place in range(ROWS)})
        return [self.time, "total", "period"], [
            [str(rows[place][self.time]), *(f"+-{pages.number(rows[place][f'{name}_error'])}" for name in self.errors)]
            for place in places
        ]

    def __repr__(self) -> str:
        return pages.text_page(f"Plan of the stream {self.name}", self._facts(), *self._table())

    def _repr_html_(self) -> str:
        return pages.html_page_of_facts(f"Plan of the stream {self.name}", self._facts(), *self._table())


def planned(
    name: str,
    query: Query,
    *,
    unit: PrivacyUnit,
    price: Price,
    mechanism: str | None,
    accounting: Accounting,
    limit: Amount | None,
) -> StreamPlan:
    """Plan a stream."""
    pure = is_pure(query, mechanism, price, accounting, limit)
    (total,) = query.of_cells
    periods = query.keys.axes[0].size
    reach = StreamReach.of(total, unit, periods=periods, groups=query.keys.cells // periods)
    (part,) = accounting.parts(price, limit, (Fraction(1),), pure=pure)
    noise: Mechanism
    if pure:
        assert part.epsilon is not None
        noise = Laplace.of_steps(math.ceil(reach.steps(1)), part.epsilon, reach.grid)
    else:
        assert part.mu is not None
        noise = Gaussian.of_mu(Fraction(reach.steps(2)), part.mu, reach.grid)
    amount = accounting.charge(price, limit, (noise,))
    cost = accounting.cost(price, amount, pure=pure)
    return StreamPlan(name, query, unit, price, accounting, amount, reach, noise, cost)


COLUMNS = ("total", "period")  # the columns with an error
MECHANISMS = (None, "laplace", "gaussian")


@dataclass(frozen=True)
class StreamRequest:
    """The parameters of a stream; all are public, and none depends on a frame."""

    name: str
    query: Query  # its first axis has the periods
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
        self._check_price()  # so that its errors are raised now
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
        """Return the plan for a ledger that protects this unit."""
        bounded = unit.bounded(self.max_rows, self.max_groups)
        # max_rows is over all groups together, so max_groups does not change the stream
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
    """Return a statistic that is one clipped sum over rows, which a stream can add up; refuse any other.

    Totals follow from its noisy numbers without a call of `answer`, so a custom statistic must not override it.
    """
    totals = statistic.totals() if isinstance(statistic, Statistic) and choosing(statistic) is None else ()
    plain = len(totals) == 1 and isinstance(totals[0], OfRows) and type(statistic).answer is Statistic.answer  # type: ignore[attr-defined]  # then it is a Statistic
    if not plain or not statistic.adds_up or isinstance(statistic, Labelled):  # type: ignore[attr-defined]
        raise InvalidArgument(
            f"statistic must be dpf.count(...) or dpf.sum(column, bounds=...) for a stream, not {shown(statistic)}. "
            "For a mean, use two streams: its sum and its count."
        )
    return statistic  # type: ignore[return-value]
