"""A ledger in words: what was spent, what is left, and why a call is refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from dpframe.accounting import Accounting
from dpframe.display import charts, pages
from dpframe.errors import NoLedger
from dpframe.errors.words import harmless, writable
from dpframe.exact import Amount, plus, shown_up, up
from dpframe.ledger.canonical import now
from dpframe.ledger.entries import UNLISTED, Entry, Mark, Summary
from dpframe.ledger.terms import Limit, Terms
from dpframe.privacy import WEAK_DELTA, WEAK_EPSILON, PrivacyLoss, PrivacyUnit

DUE = "correction due"  # how the words begin on entries that understate their cost
RELEASES = 5  # the last ones, which a printed ledger shows
WIDTH = 20  # characters of the bar
MOST_POINTS = 500  # of a chart
SHORT = 60  # seconds: within them a chart counts charges, since entries have whole seconds
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
        """For a terminal."""
        facts = self._facts()
        if self.limit is not None:
            filled = round(WIDTH * self._part)
            facts.insert(1, f"[{'#' * filled}{'-' * (WIDTH - filled)}] {self._part:.0%} of the limit")
        lines = ["Ledger", *(f"  {harmless(fact)}" for fact in facts)]
        if self.summary.latest:
            lines += ["", pages.text_table(("last charges", "label", "query", "cost"), self._rows())]
        return "\n".join(lines)

    def html(self) -> str:
        """For a notebook."""
        bar = "" if self.limit is None else pages.html_bar(self._part)
        return pages.html_page("Ledger", self._facts(), ("last charges", "label", "query", "cost"), self._rows(), bar)

    @property
    def filled(self) -> float | None:
        """The part of the limit that is spent; None without one."""
        return None if self.limit is None else self._part

    def facts(self) -> list[str]:
        """Lines on the budget: spent and left, who is protected, how losses add up."""
        return self._facts()

    def chart(self, entries: list[Entry]) -> Any:
        """Epsilon spent over time, up to the limit."""
        points = self._points([entry for entry in entries if entry.kind not in UNLISTED])
        if len(points) > MOST_POINTS:  # evenly, and the last of all
            points = [points[index * (len(points) - 1) // (MOST_POINTS - 1)] for index in range(MOST_POINTS)]
        rows = [
            {
                "time": entry.time,
                "charge": number,
                "spent": spent_of(self.accounting, spent).epsilon,
                "limit": None if limit is None else limit.whole.epsilon,
                "label": entry.label or "",
                "query": entry.query,
            }
            for number, (entry, spent, limit) in enumerate(points)
        ]
        dataset = None if self.terms is None else self.terms.dataset
        title = "Budget" if dataset is None else f"Budget of {dataset}"
        words = charts.Words(title, tuple(self._facts()[:3]))
        return charts.budget(rows, words, by_time=_seconds(points[0][0].time, points[-1][0].time) >= SHORT)

    def _points(self, listed: list[Entry]) -> list[tuple[Entry, Amount, Limit | None]]:
        """Every entry with what was spent and the limit after it; the beginning is an entry too."""
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

    def _facts(self) -> list[str]:
        spent, count = self.summary.last.spent, self.summary.charges
        facts = [
            f"spent {spent_of(self.accounting, spent)} "
            f"{'no limit: it only records' if self.limit is None else f'of {self.limit.whole}'}",
            f"remaining {left_of(self.limit, self.accounting, spent)}",
            f"protects {'what each call names' if self.terms is None else self.terms.unit}",
            f"{self.accounting.name} accounting, {count} charge{'' if count == 1 else 's'}"
            + (f"; {self.accounting.adds}" if self.accounting.adds else ""),
        ]
        if self.limit is not None and self.limit.keys_delta:
            taken = shown_up(spent[-1]) if spent else 0.0
            facts.append(
                f"keys that are found have taken {taken:g} of their keys_delta {float(self.limit.keys_delta):g}"
            )
        if (words := understated(self.accounting, self.summary.last)) is not None:
            facts.append(words)
        if (
            self.limit is not None
            and max(self.limit.epsilon / WEAK_EPSILON, self.limit.delta / Fraction(WEAK_DELTA)) > 1
        ):
            facts.append(f"weak privacy: a limit above epsilon {WEAK_EPSILON} or delta {WEAK_DELTA} promises little")
        if self.terms is not None and self.terms.dataset is not None:
            facts.append(f"data set {self.terms.dataset!r}")
        return facts if self.kept is None else [*facts, f"kept at {self.kept}"]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """The last charges, the newest first."""
        newest = self.summary.latest[::-1]
        return [(entry.time, " ".join((entry.label or "").split()), entry.query, str(entry.cost)) for entry in newest]

    @property
    def _part(self) -> float:
        """The part of the limit that is spent, in the quantity that the accounting adds up."""
        if self.limit is None or not self.summary.last.spent:
            return 0.0
        return min(1.0, float(self.accounting.filled(self.summary.last.spent, self.limit.amount)))


def listed(entries: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """The entries that people ask for: that answers and periods were stored is told by the charge before them."""
    return [(number, entry) for number, entry in entries if entry.kind not in UNLISTED]


def rows_of(entries: list[tuple[int, Entry]]) -> list[dict[str, Any]]:
    """Every charge, raised limit, recovery and correction as a row of a table."""
    return [
        {
            "entry": number,
            "time": entry.time,
            "kind": "correction" if entry.is_correction else entry.kind,
            "label": entry.label and writable(entry.label),  # older ledgers hold any text
            "snapshot": entry.snapshot and writable(entry.snapshot),
            "query": writable(entry.query),
            "unit": str(entry.unit),
            "epsilon": entry.cost.epsilon,
            "delta": entry.cost.delta,
            "amount": ", ".join(_shown_exactly(coordinate) for coordinate in entry.amount),
        }
        for number, entry in listed(entries)
    ]


def answers_of(entries: list[tuple[int, Entry]]) -> list[dict[str, Any]]:
    """Every stored answer as a row of a table, with the charge that paid for it."""
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
                "unit": str(entry.unit),
                "epsilon": paid.cost.epsilon,
                "delta": paid.cost.delta,
                "stored": number,
            }
        )
    return rows


def spent_of(accounting: Accounting, spent: Amount) -> PrivacyLoss:
    """The sum of all charges, rounded up."""
    return accounting.loss(spent) if spent else PrivacyLoss(0.0)


def understated(accounting: Accounting, last: Mark) -> str | None:
    """The words on entries that understate their cost; None where there are none."""
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
    """The budget that is left, rounded down."""
    if most is None:
        return PrivacyLoss(float("inf"))
    if not any(spent):
        return most.whole if accounting.tight else accounting.remaining(most.amount)
    left = (max(coordinate - gone, Fraction(0)) for coordinate, gone in zip(most.amount, spent, strict=True))
    return accounting.remaining(tuple(left))  # a recovery may have charged more than the limit


def refusal(most: Limit, accounting: Accounting, entry: Entry, spent: Amount) -> str:
    """The words of BudgetExceeded."""
    cost, limit, remaining = entry.cost, most.whole, left_of(most, accounting, spent)
    costs, left = (str(cost), str(remaining)) if str(cost) != str(remaining) else (cost.digits, remaining.digits)
    words = f"the call costs {costs}, but only {left} of {limit} is left in the ledger."
    if cost.delta and not limit.delta:
        return f"{words} It has no delta: leave delta out, or make one with dpf.Ledger(epsilon=..., delta=...)."
    if not remaining.epsilon:
        return f"{words} Nothing more can be asked of it; what was released may be used freely."
    hint = accounting.hint(entry.amount, most.amount)
    return f"{words} Ask for less. ({hint})" if hint else f"{words} Ask for less."


def _seconds(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def _shown_exactly(value: Fraction) -> str:
    """An exact rational, or its float where it is long."""
    return str(value) if value.denominator < 10**30 else f"{up(value):.17g}"


def no_ledger() -> NoLedger:
    """The error of a call that sees no ledger, with the three ways out."""
    return NoLedger(
        "which ledger pays? Pass ledger=..., or write the call inside `with ledger:`, "
        "or call dpf.set_default_ledger(ledger)."
    )


def weak_delta(terms: Terms) -> str:
    """Say that the delta of a ledger promises little."""
    return (
        f"weak privacy: delta {float(terms.limit.delta):.4g} is above {WEAK_DELTA}, and it is the chance that one "
        f"{terms.unit.column or 'row'} is not protected at all. Take far less than one over their number, such as 1e-6."
    )


def unlimited(unit: PrivacyUnit) -> str:
    """The warning of a release that no ledger limits: the total grows, and rows may not be people."""
    words = "this release is recorded, but nothing limits the total: make a dpf.Ledger(epsilon=...) to set a budget."
    if unit.column is None:
        words += (
            " Each row was counted as one person; if people have several rows, say unit=dpf.PrivacyUnit(column=...)."
        )
    return words
