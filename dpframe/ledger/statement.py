"""A ledger as text: what was spent, what is left, and why a call is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from dpframe.accounting import Accounting
from dpframe.accounting.registry import KeysReserve
from dpframe.display import charts, pages
from dpframe.errors import NoLedger, harmless, how_many, writable
from dpframe.exact import Amount, exactly, plus, shown_down, shown_up, up
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import UNLISTED, Entry, Mark, Summary
from dpframe.ledger.terms import Limit, Terms
from dpframe.privacy import WEAK_DELTA, WEAK_EPSILON, PrivacyLoss, PrivacyUnit

DUE = "correction due"  # the start of the text on entries that understate their cost
RELEASES = 5  # the number of last entries that a printed ledger shows
WIDTH = 20  # characters of the bar
LONGEST_QUERY = 80  # characters of a query in a text table
LAST = ("last charges", "label", "query", "cost")
ALONE = ("accounting", "keys", "correction")  # facts that are shown without their name
BETWEEN = " · "
MOST_TIMES = 1_000_000  # the largest count, shown as "at least"
DIGITS = 5  # digits after the first one of a limit, to which spending is rounded up
SLACK = 1e-9  # in tenths of a percent: an excess up to this is float error, and is not rounded up
CLOSE = 1e-6  # relative tolerance for an epsilon that was rounded up
MOST_POINTS = 500  # points of a chart
SHORT = 60  # seconds; over a shorter time, a chart counts charges, since entries have whole seconds
COLUMNS = {
    "entry": int,
    "time": str,
    "kind": str,
    "label": str,
    "snapshot": str,
    "query": str,
    "unit": str,
    "epsilon": float,
    "delta": float,
    "amount": str,
}

ANSWERS = {name: kind for name, kind in COLUMNS.items() if name not in ("kind", "amount")} | {"stored": int}


@dataclass(frozen=True)
class Statement:
    """A statement of a ledger at one moment, as text and as HTML."""

    terms: Terms | None
    limit: Limit | None
    accounting: Accounting
    summary: Summary
    kept: str | None

    def text(self) -> str:
        """Return the statement as text for a terminal."""
        facts = [words if name in ALONE else f"{name} {words}" for name, words in self.facts()]
        if self.filled is not None:
            facts.insert(0, f"[{'#' * (filled := round(WIDTH * self.filled))}{'-' * (WIDTH - filled)}] {self.percent}")
        lines = [self.title, *(f"  {harmless(fact)}" for fact in facts)]
        if self.summary.latest:
            rows = [(time, label, _cut(query), cost) for time, label, query, cost in self._rows()]
            lines += ["", pages.text_table(LAST, rows)]
        return "\n".join(lines)

    def html(self) -> str:
        """Return the statement as HTML for a notebook."""
        bar = "" if self.filled is None else pages.html_bar(self.filled, self.percent)
        return pages.html_card(self.title, self.facts(), bar, LAST, self._rows())

    @property
    def title(self) -> str:
        """The heading, with the name of the data set."""
        dataset = None if self.terms is None else self.terms.dataset
        return "Ledger" if dataset is None else f"Ledger of {harmless(dataset)}"

    @property
    def filled(self) -> float | None:
        """The part of the limit that is spent; None without a limit, and before the first charge."""
        return None if self.limit is None or not any(self.summary.last.spent) else self._part

    @property
    def percent(self) -> str:
        """The part of the limit that is spent, rounded up to a tenth of a percent."""
        return f"{_tenths(self._part)}% of the limit"

    def facts(self, *, kept: bool = True) -> list[tuple[str, str]]:
        """Return named lines on the budget: spent and left, who is protected, how losses add up.

        Terminal, notebook, chart and page all show these. What is spent and what remains are in one unit, and add up to
        the limit: epsilon if epsilons add up, otherwise percent of the quantity that adds up.
        """
        last, charges = self.summary.last, self.summary.charges
        facts = self._budget()
        facts.append(("protects", "what each call names" if self.terms is None else str(self.terms.unit)))
        how = f"{self.accounting.name} accounting, {how_many(charges, 'charge')}"
        facts.append(("accounting", how + (f"; {self.accounting.adds}" if self.accounting.adds else "")))
        if self.limit is not None and self.limit.keys_delta:
            taken = shown_up(last.spent[-1]) if last.spent else 0.0
            words = f"keys that are found have taken {taken:g} of their keys_delta {float(self.limit.keys_delta):g}"
            facts.append(("keys", words))
        if (due := understated(self.accounting, last)) is not None:
            facts.append(("correction", due))
        if self.limit is not None and (self.limit.epsilon > WEAK_EPSILON or self.limit.delta > WEAK_DELTA):
            facts.append(("warning", f"weak privacy: a limit above epsilon {WEAK_EPSILON} or delta {WEAK_DELTA}"))
        if self.terms is not None and self.terms.dataset is not None:
            facts.append(("data set", repr(self.terms.dataset)))
        return facts if self.kept is None or not kept else [*facts, ("kept at", self.kept)]

    def _budget(self) -> list[tuple[str, str]]:
        """Return the budget in one unit: what is spent, what remains, and how many more calls like the last fit."""
        spent = self.summary.last.spent
        loss, left = spent_of(self.accounting, spent), left_of(self.limit, self.accounting, spent)
        if self.limit is None:
            return [("spent", f"{loss}; no limit: it only records")]
        whole = self.limit.whole
        if not any(spent):
            return [("budget", f"{whole}, all of it remains")]
        if not self.accounting.adds:
            gone, rest = _adding_up(loss, left, whole)
            facts = [("spent", f"{gone} of {whole}"), ("remaining", rest)]
        else:
            tenths = _tenths(self._part)
            of_one = f"equivalent to epsilon {_four_digits(left.epsilon, ROUND_FLOOR)} in one call"
            alike = f"equivalent to epsilon {_four_digits(loss.epsilon, ROUND_CEILING)}"
            facts = [
                ("spent", f"{tenths}% of the budget ({whole}), {alike}"),
                ("remaining", f"{_shortest(100 - float(tenths))}%, {of_one if left.epsilon else 'nothing'}"),
            ]
        latest = next((entry for entry in self.summary.latest[::-1] if entry.kind == "charge"), None)
        if latest is not None and any(latest.amount):
            more = times(self.limit, spent, latest.amount)
            facts.append(("fits", f"{counted(more)} more call{'' if more == 1 else 's'} like the last ({latest.cost})"))
        return facts

    def chart(self, entries: list[Entry]) -> Any:
        """Return a chart of the spent epsilon, or percent of the budget, over time."""
        points = self._points([entry for entry in entries if entry.kind not in UNLISTED])
        if len(points) > MOST_POINTS:  # evenly spaced points, with the first and the last
            points = [points[index * (len(points) - 1) // (MOST_POINTS - 1)] for index in range(MOST_POINTS)]
        adds = bool(self.accounting.adds) and self.limit is not None  # then percent add up, not epsilons

        def place(spent: Amount, limit: Limit | None) -> tuple[float, float | None]:
            if adds and limit is not None:
                return 100 * float(_part_of(limit, self.accounting, spent)), 100.0
            return spent_of(self.accounting, spent).epsilon, None if limit is None else limit.whole.epsilon

        rows = [
            {
                "time": entry.time,
                "charge": number,
                **dict(zip(("spent", "limit"), place(spent, limit), strict=True)),
                "label": entry.label or "",
                "query": entry.query,
            }
            for number, (entry, spent, limit) in enumerate(points)
        ]
        facts = dict(self.facts())
        words = charts.Words(
            self.title.replace("Ledger", "Privacy budget", 1),
            (),
            BETWEEN.join(f"{name} {facts[name]}" for name in ("budget", "spent", "remaining") if name in facts),
            f"{self.title}. {'. '.join(f'{name} {said}' for name, said in self.facts(kept=False))}.",
        )
        if len(rows) == 1:
            return charts.nothing("Nothing is spent yet.", words)
        by_time = _seconds(points[0][0].time, points[-1][0].time) >= SHORT
        return charts.budget(rows, words, "percent of the budget" if adds else "epsilon", by_time=by_time)

    def _points(self, listed: list[Entry]) -> list[tuple[Entry, Amount, Limit | None]]:
        """Return each entry with the total and the limit after it, preceded by an entry for the ledger's creation."""
        limit = self.limit if self.terms is None else self.terms.limit
        begun = listed[0].time if self.terms is None and listed else now() if self.terms is None else self.terms.created
        nothing = PrivacyUnit()
        points: list[tuple[Entry, Amount, Limit | None]] = []
        spent: Amount = ()
        for entry in [Entry(begun, "made", "", nothing, (), PrivacyLoss(0.0)), *listed]:
            spent = plus(spent, entry.amount)
            limit = entry.limit or limit
            points.append((entry, spent, limit))
        return points

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Return the last entries as rows, the newest first."""
        newest = self.summary.latest[::-1]
        return [(entry.time, " ".join((entry.label or "").split()), entry.query, str(entry.cost)) for entry in newest]

    @property
    def _part(self) -> float:
        """The part of the limit that is spent, in the quantity that the accounting adds up."""
        if self.limit is None:
            return 0.0
        return min(1.0, float(_part_of(self.limit, self.accounting, self.summary.last.spent)))


def _part_of(limit: Limit, accounting: Accounting, spent: Amount) -> Fraction:
    """Return the part of a limit that noise has spent. Unknown groups have their own reserve and their own line."""
    if not spent:
        return Fraction(0)
    if isinstance(accounting, KeysReserve):
        return accounting.inside.filled(spent[:-1], limit.amount[:-1])
    return accounting.filled(spent, limit.amount)


def times(limit: Limit, spent: Amount, amount: Amount) -> int:
    """Count how many more charges of this amount the limit holds; at most `MOST_TIMES`."""

    def fits(count: int) -> bool:
        return limit.holds(plus(spent, tuple(count * coordinate for coordinate in amount)))

    least, most = 0, 1
    while most < 2 * MOST_TIMES and fits(most):
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return min(least, MOST_TIMES)


def _cut(query: str) -> str:
    """Return a query, shortened for a text table if it is long; `to_frame` has it in full."""
    return query if len(query) <= LONGEST_QUERY else query[: LONGEST_QUERY - 3] + "..."


def counted(count: int) -> str:
    """Return a number of calls as text."""
    return "no" if not count else f"{count:,}" if count < MOST_TIMES else f"at least {MOST_TIMES:,}"


def _adding_up(spent: PrivacyLoss, left: PrivacyLoss, whole: PrivacyLoss) -> tuple[str, str]:
    """Return both as text, so that they add up to the limit; if six digits of each do not, `spent` is rounded up."""
    if spent.delta or left.delta or not left.epsilon:
        return str(spent), str(left)
    gone, rest, limit = (Decimal(f"{loss.epsilon:.6g}") for loss in (spent, left, whole))
    is_safe = float(gone) >= (1.0 - CLOSE) * spent.epsilon and float(rest) <= (1.0 + CLOSE) * left.epsilon
    if gone + rest == limit and is_safe:
        return str(spent), str(left)
    step = Decimal(1).scaleb(limit.adjusted() - DIGITS)
    gone = min(Decimal(spent.epsilon).quantize(step, ROUND_CEILING), limit)
    return f"epsilon {gone.normalize():f}", f"epsilon {(limit - gone).normalize():f}"


def _four_digits(value: float, rounding: str) -> str:
    """Return a number with four digits, rounded in the given direction if it has more."""
    if not 0 < value < math.inf or math.isclose(float(f"{value:.4g}"), value, rel_tol=CLOSE):
        return f"{value:.4g}"
    exact = Decimal(value)
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), rounding).normalize():f}"


def _tenths(part: float) -> str:
    """Return a part in percent, rounded up to a tenth: what remains is rounded down, and no part above 0 shows as 0."""
    return _shortest(min(100.0, max(math.ceil(1000 * part - SLACK), int(part > 0.0)) / 10))


def _shortest(percent: float) -> str:
    return f"{percent:.1f}".removesuffix(".0")


def listed(entries: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """Return the entries that are listed; entries that store answers and periods belong to an earlier charge."""
    return [(number, entry) for number, entry in entries if entry.kind not in UNLISTED]


def rows_of(entries: list[tuple[int, Entry]]) -> list[dict[str, Any]]:
    """Return every charge, raised limit, recovery and correction as a row of a table."""
    return [
        {
            "entry": number,
            "time": entry.time,
            "kind": "correction" if entry.is_correction else entry.kind,
            "label": entry.label and writable(entry.label),  # older ledgers may hold any text
            "snapshot": entry.snapshot and writable(entry.snapshot),
            "query": writable(entry.query),
            "unit": entry.unit.words(in_all=entry.stream is not None),
            "epsilon": entry.cost.epsilon,
            "delta": entry.cost.delta,
            "amount": ", ".join(_shown_exactly(coordinate) for coordinate in entry.amount),
        }
        for number, entry in listed(entries)
    ]


def answers_of(entries: list[tuple[int, Entry]]) -> list[dict[str, Any]]:
    """Return every stored answer as a row of a table, with its charge."""
    charges = {entry.name: (number, entry) for number, entry in entries if entry.kind == "charge" and entry.name}
    rows = []
    for number, entry in entries:
        if entry.kind != "answer" or entry.name not in charges:
            continue
        charge, paid = charges[entry.name]
        rows.append(
            {
                "entry": charge,
                "time": entry.time,
                "label": entry.label and writable(entry.label),
                "snapshot": entry.snapshot and writable(entry.snapshot),
                "query": writable(entry.query),
                "unit": entry.unit.words(in_all=entry.stream is not None),
                "epsilon": paid.cost.epsilon,
                "delta": paid.cost.delta,
                "stored": number,
            }
        )
    return rows


def spent_of(accounting: Accounting, spent: Amount) -> PrivacyLoss:
    """Return the sum of all charges, rounded up."""
    return accounting.loss(spent) if spent else PrivacyLoss(0.0)


def understated(accounting: Accounting, last: Mark) -> str | None:
    """Return the text on entries that understate their cost; None if there are none."""
    if last.due is None:
        return None
    one = len(last.due.entries) == 1
    entries, truth = spent_of(accounting, last.total), spent_of(accounting, last.spent)
    return (
        f"{DUE} for {len(last.due.entries):,} charge{'' if one else 's'} of local reports by dpframe 0.2, which "
        f"understate{'s' if one else ''} the cost: the entries add up to {entries}, and {truth} was spent. The next "
        "charge appends it."
    )


def left_of(most: Limit | None, accounting: Accounting, spent: Amount) -> PrivacyLoss:
    """Return the budget that is left, rounded down."""
    if most is None:
        return PrivacyLoss(float("inf"))
    if not any(spent):
        whole = most.whole  # the whole limit remains if one call can name and take it; otherwise a little less
        typed = accounting.tight and exactly("epsilon", whole.epsilon) == most.epsilon
        if not typed:
            return accounting.remaining(most.amount)
        rest = shown_down(most.delta - most.keys_delta)  # the reserve is for keys alone
        return PrivacyLoss(whole.epsilon, rest) if most.keys_delta else whole
    left = (max(coordinate - gone, Fraction(0)) for coordinate, gone in zip(most.amount, spent, strict=True))
    return accounting.remaining(tuple(left))  # a recovery may have charged more than the limit


def refusal(most: Limit, accounting: Accounting, entry: Entry, spent: Amount) -> str:
    """Return the message of BudgetExceeded."""
    if most.keys_delta and (over := _keys_refused(most, entry, spent)):
        return over
    cost, limit, remaining = entry.cost, most.whole, left_of(most, accounting, spent)
    costs, left = (str(cost), str(remaining)) if str(cost) != str(remaining) else (cost.digits, remaining.digits)
    words = f"the budget is exceeded: the call needs {costs}, and {left} of {limit} remains."
    if cost.delta and not limit.delta:
        return f"{words} Create a ledger with delta, or use Laplace with declared keys."
    if not remaining.epsilon:
        return f"{words} Use what was released freely, or raise the limit: ledger.raise_limit(epsilon=..., reason=...)."
    if hint := accounting.hint(entry.amount, most.amount):
        words = f"the budget is exceeded: the call needs {costs} ({hint}); {left} of {limit} remains."
    return f"{words} {entry.lower}, or call ledger.raise_limit(...)."


def _keys_refused(most: Limit, entry: Entry, spent: Amount) -> str:
    """Return the message if the reserve for keys does not hold a call; no smaller epsilon or raised limit helps."""
    needed, left = entry.amount[-1], most.amount[-1] - (spent[-1] if spent else 0)
    if needed <= left:
        return ""
    return (
        f"the budget is exceeded: finding keys needs {shown_up(needed):g} of keys_delta {float(most.keys_delta):g}, "
        f"and {shown_down(left):g} of it remains. It is fixed for good: take a smaller delta in dpf.discover, or name "
        "groups that were found in keys=[...]."
    )


def _seconds(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def _shown_exactly(value: Fraction) -> str:
    """Return an exact rational as text; a long one as a float, rounded up."""
    return str(value) if value.denominator < 10**30 else f"{up(value):.17g}"


def no_ledger() -> NoLedger:
    """Return the error of a call without a ledger, with the three solutions."""
    return NoLedger(
        "no ledger is given. Pass ledger=..., or write the call inside `with ledger:`, "
        "or call dpf.set_default_ledger(ledger)."
    )


def weak_delta(terms: Terms) -> str:
    """Return the warning that the delta of a ledger gives weak privacy."""
    return (
        f"weak privacy: delta {float(terms.limit.delta):.4g} is above {WEAK_DELTA}. "
        "Use a delta far below 1 / the number of units, such as 1e-6."
    )


def unlimited(unit: PrivacyUnit) -> str:
    """Return the warning of a release without a limit: the total grows, and a row may not be a person."""
    words = "this release is recorded, but nothing limits the total: create a dpf.Ledger(epsilon=...) to set a budget."
    if unit.column is None:
        words += (
            " Each row was counted as one person; if people have several rows, pass unit=dpf.PrivacyUnit(column=...)."
        )
    return words
