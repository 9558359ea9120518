"""What a ledger is: whose, of what limit, in which accounting."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from dpframe.errors import LedgerError, shown
from dpframe.exact import Amount, exact_amount, exact_of, exact_text, exact_texts, keeps, shown_down
from dpframe.guarantee import PrivacyLoss, PrivacyUnit
from dpframe.store.texts import canonical

FORMAT = "dpframe.ledger/1"


@dataclass(frozen=True)
class Limit:
    """The most that may be spent: as it was typed, and in what the accounting adds up."""

    epsilon: Fraction
    delta: Fraction
    amount: Amount  # kept beside epsilon and delta: every process compares with one and the same number
    one_is_enough: bool = False  # of Rényi orders one must stay within its part, of anything else every part

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        typed = {"epsilon": exact_text(self.epsilon), "delta": exact_text(self.delta)}
        return {**typed, "amount": exact_texts(self.amount), "one_is_enough": self.one_is_enough}

    @classmethod
    def of(cls, facts: Any) -> Limit:
        """Read what `facts` wrote."""
        return cls(
            exact_of(facts["epsilon"]),
            exact_of(facts["delta"]),
            exact_amount(facts["amount"]),
            bool(facts["one_is_enough"]),
        )

    @property
    def whole(self) -> PrivacyLoss:
        """For people to read."""
        return PrivacyLoss(shown_down(self.epsilon), shown_down(self.delta))

    def holds(self, amount: Amount) -> bool:
        """Whether so much may be spent."""
        return not amount or keeps(amount, self.amount, one_is_enough=self.one_is_enough)

    def joined(self, other: Limit) -> Limit:
        """The higher of both, part by part."""
        most = tuple(map(max, self.amount, other.amount))
        return Limit(max(self.epsilon, other.epsilon), max(self.delta, other.delta), most, self.one_is_enough)

    def within(self, other: Limit) -> bool:
        """Whether `other` is this limit or a higher one."""
        typed = (self.epsilon <= other.epsilon, self.delta <= other.delta, self.one_is_enough == other.one_is_enough)
        return all(typed) and keeps(self.amount, other.amount)


@dataclass(frozen=True)
class Terms:
    """What is fixed when a ledger is made, and the limit that it begins with: the first link of its chain."""

    unit: PrivacyUnit
    limit: Limit
    accounting: str
    dataset: str | None
    created: str

    def text(self) -> str:
        """The terms as canonical JSON."""
        facts = {"unit": asdict(self.unit), "limit": self.limit.facts(), "accounting": self.accounting}
        return canonical({"format": FORMAT, **facts, "dataset": self.dataset, "created": self.created})

    @classmethod
    def of_text(cls, text: str, where: str) -> Terms:
        """Read what `text` wrote."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise LedgerError(
                    f"the ledger at {where} is of the format {found['format']!r}, and this version of dpframe reads "
                    f"{FORMAT!r}. Open it with the version that made it."
                )
            unit, limit = PrivacyUnit(**found["unit"]), Limit.of(found["limit"])
            return cls(unit, limit, found["accounting"], found["dataset"], found["created"])
        except (ValueError, KeyError, TypeError):
            raise changed(where, "its terms cannot be read") from None


def changed(where: str, what: str) -> LedgerError:
    """The refusal of a store that dpframe did not leave so."""
    return LedgerError(
        f"the ledger at {where} was changed by something other than dpframe: {what}. "
        "Put its newest intact copy back; nothing can be charged to it as it is."
    )


def refuse_other(asked: Terms, found: Terms, limit: Limit, where: str) -> None:
    """Refuse to open a ledger with other terms than its own; `limit` is the one that it has by now."""
    pairs = {
        "epsilon": (limit.epsilon, asked.limit.epsilon),
        "delta": (limit.delta, asked.limit.delta),
        "unit": (found.unit, asked.unit),
        "accounting": (found.accounting, asked.accounting),
        "dataset": (found.dataset, asked.dataset),
    }
    for name, (kept, wanted) in pairs.items():
        if wanted != kept:
            raise LedgerError(
                f"{name} must be {_said(kept)}, as in the ledger at {where}, not {_said(wanted)}. "
                "Open it with dpf.Ledger.open(path), or take another path for other people's data."
            )


def _said(value: object) -> str:
    if isinstance(value, PrivacyUnit):
        return f"({value})"
    return f"{shown_down(value)!r}" if isinstance(value, Fraction) else shown(value)
