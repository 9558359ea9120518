"""Terms of a ledger: the unit, the limit, the accounting; how they are made, and how a limit is raised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from dpframe import noise
from dpframe.accounting import Accounting, with_reserve
from dpframe.accounting.registry import checked_limit, is_shipped
from dpframe.errors import (
    LONGEST_REASON,
    InvalidArgument,
    InvalidType,
    LedgerError,
    MissingArgument,
    checked_name,
    shown,
)
from dpframe.exact import (
    SMALLEST_NORMAL,
    Amount,
    exact_delta,
    exact_epsilon,
    exact_text,
    exact_texts,
    keeps,
    shown_down,
)
from dpframe.ledger import reading
from dpframe.ledger.canonical import canonical, now
from dpframe.privacy import PrivacyLoss, PrivacyUnit, checked_unit

FORMAT = "dpframe.ledger/2"
ELSEWHERE = "dpframe.ledger/3"  # a ledger whose head is also kept elsewhere; dpframe 0.2 would not update that head
FIRST = "dpframe.ledger/1"  # dpframe 0.1, whose terms and entries have no random bytes
LIMIT = {"epsilon", "delta", "amount", "one_is_enough"}  # facts of every limit
LAST = 2**31  # above the number of any entry
LARGEST = Fraction(1.7976931348623157e308)  # the largest float: epsilon and amounts are displayed as floats


@dataclass(frozen=True)
class Limit:
    """The most that may be spent: as it was typed, and in the accounting's own quantity."""

    epsilon: Fraction
    delta: Fraction
    amount: Amount  # stored with epsilon and delta, so that every process compares with the same number
    one_is_enough: bool = False  # true for Rényi orders, of which one within its limit is enough
    keys_delta: Fraction = Fraction(0)  # the part of delta reserved for keys; if not 0, the last part of `amount`

    def facts(self) -> dict[str, Any]:
        """Return the limit as plain JSON values."""
        typed = {"epsilon": exact_text(self.epsilon), "delta": exact_text(self.delta)}
        reserve = {"keys_delta": exact_text(self.keys_delta)} if self.keys_delta else {}  # older ledgers have none
        return {**typed, "amount": exact_texts(self.amount), "one_is_enough": self.one_is_enough, **reserve}

    @classmethod
    def of(cls, facts: Any) -> Limit:
        """Read the result of `facts`; ValueError if it is not a limit."""
        if not isinstance(facts, dict) or facts.keys() - {"keys_delta"} != LIMIT:
            raise ValueError("no limit")
        epsilon, delta = (Fraction(*reading.pair(facts[name])) for name in ("epsilon", "delta"))
        amount = tuple(Fraction(*part) for part in reading.pairs(facts["amount"]))
        if not (_is_normal(epsilon) and epsilon <= LARGEST and (not delta or _is_normal(delta)) and delta < 1):
            raise ValueError("no limit")
        if not isinstance(facts["one_is_enough"], bool) or not amount or max(amount) > LARGEST:
            raise ValueError("no limit")
        reserve = Fraction(*reading.pair(facts["keys_delta"])) if "keys_delta" in facts else Fraction(0)
        if "keys_delta" in facts and not (
            _is_normal(reserve) and reserve < delta and amount[1:] and amount[-1] == reserve
        ):
            raise ValueError("no limit")
        return cls(epsilon, delta, amount, facts["one_is_enough"], reserve)

    @property
    def whole(self) -> PrivacyLoss:
        """The limit for display, rounded down."""
        return PrivacyLoss(shown_down(self.epsilon), shown_down(self.delta))

    def holds(self, amount: Amount) -> bool:
        """Return whether this amount may be spent."""
        if amount and self.keys_delta:  # the keys must stay within their reserve, independent of the noise
            rest = keeps(amount[:-1], self.amount[:-1], one_is_enough=self.one_is_enough)
            return rest and keeps(amount[-1:], self.amount[-1:])
        return not amount or keeps(amount, self.amount, one_is_enough=self.one_is_enough)

    def joined(self, other: Limit) -> Limit:
        """Return the higher of both limits, part by part."""
        most = tuple(map(max, self.amount, other.amount))
        typed = max(self.epsilon, other.epsilon), max(self.delta, other.delta)
        return Limit(*typed, most, self.one_is_enough, max(self.keys_delta, other.keys_delta))

    def within(self, other: Limit) -> bool:
        """Return whether `other` is this limit or a higher one."""
        typed = (self.epsilon <= other.epsilon, self.delta <= other.delta, self.keys_delta == other.keys_delta)
        return all(typed) and self.one_is_enough == other.one_is_enough and keeps(self.amount, other.amount)


@dataclass(frozen=True)
class Before:
    """A ledger of dpframe 0.1 at its takeover: its original terms, and the end of its chain."""

    terms: str
    entries: int
    head: str


@dataclass(frozen=True)
class Terms:
    """The facts that are fixed when a ledger is created, and its first limit. They are the first link of its chain."""

    unit: PrivacyUnit
    limit: Limit
    accounting: str
    dataset: str | None
    created: str
    nonce: str | None = None  # makes the first hash unique; ledgers of dpframe 0.1 have none
    before: Before | None = None
    has_head: bool = False  # whether its head is also kept elsewhere; then nothing is charged without that head

    @property
    def is_first(self) -> bool:
        """True for a ledger of dpframe 0.1 that has not been taken over yet."""
        return self.nonce is None and self.before is None

    @property
    def plain(self) -> int:
        """The number of entries of dpframe 0.1, which have no random bytes; `LAST` if all entries are."""
        if self.before is not None:
            return self.before.entries
        return LAST if self.is_first else 0

    @property
    def beginning(self) -> str:
        """The text whose hash begins the chain; for a ledger that was taken over, its original terms."""
        return self.plain_text() if self.before is None else self.before.terms

    def text(self) -> str:
        """Return the terms as canonical JSON."""
        plain = self.plain_text()
        return canonical({"format": ELSEWHERE, "terms": plain}) if self.has_head else plain

    def plain_text(self) -> str:
        """Return the terms as if no head were kept elsewhere: the hash that begins the chain does not depend on it."""
        if self.before is not None:
            was = self.before
            return canonical({"format": FORMAT, "was": was.terms, "entries": was.entries, "head": was.head})
        unit = self.unit.facts() if self.is_first else asdict(self.unit)  # dpframe 0.1 always wrote bounds
        facts: dict[str, Any] = {"unit": unit, "limit": self.limit.facts(), "accounting": self.accounting}
        facts |= {"dataset": self.dataset, "created": self.created}
        facts |= {"format": FIRST} if self.nonce is None else {"format": FORMAT, "nonce": self.nonce}
        return canonical(facts)

    @classmethod
    def of_text(cls, text: str, where: str) -> Terms:
        """Read the result of `text`."""
        try:
            facts = reading.facts_of(text)
            name = reading.text(facts["format"])
            if name not in (FIRST, FORMAT, ELSEWHERE):
                raise _of_another_format(name, where)
            if name == ELSEWHERE:
                return cls.of_text(reading.text(facts["terms"]), where)._with_head()._written_so(text)
            if name == FORMAT and "was" in facts:
                return cls._taken_over(facts, where)._written_so(text)
            terms = cls(
                reading.unit(facts["unit"]),
                Limit.of(facts["limit"]),
                reading.text(facts["accounting"]),
                reading.text_or_none(facts["dataset"]),
                reading.text(facts["created"]),
                None if name == FIRST else reading.nonce(facts["nonce"]),
            )
            return terms._written_so(text)
        except (ValueError, KeyError, TypeError):
            raise changed(where, "its terms cannot be read") from None

    def _with_head(self) -> Terms:
        if self.is_first:
            raise ValueError("never taken over")
        return replace(self, has_head=True)

    @classmethod
    def _taken_over(cls, facts: dict[str, Any], where: str) -> Terms:
        first = cls.of_text(reading.text(facts["was"]), where)
        if not first.is_first:
            raise ValueError("taken over twice")
        entries, head = reading.whole(facts["entries"]), reading.hexadecimal(facts["head"])
        return replace(first, before=Before(facts["was"], entries, head))

    def _written_so(self, text: str) -> Terms:
        """Return the terms if `text` is exactly what dpframe writes for them, so that any change is detected."""
        if self.text() != text:
            raise ValueError("written by something else")
        return self


def new_terms(
    epsilon: object,
    delta: object,
    unit: object,
    accounting: object,
    dataset: object,
    *,
    durable: bool = False,
    keys_delta: object = 0,
) -> tuple[Accounting, Terms]:
    """Return the accounting and the terms of a new ledger."""
    if epsilon is None:
        words = "epsilon must be given: the most that may be spent. Write for instance Ledger(epsilon=1.0)."
        raise MissingArgument(words)
    if dataset is not None and not isinstance(dataset, str):
        raise InvalidType(f"dataset must be a string or None, not {shown(dataset)}. Write dataset='clinic'.")
    if dataset is not None:
        checked_name("dataset", dataset)
    typed = (exact_epsilon(epsilon), exact_delta(delta))
    reserve = exact_delta(keys_delta, "keys_delta")
    how = with_reserve(accounting, *typed, reserve)
    if durable and not is_shipped(how):
        raise InvalidArgument(
            f"accounting must be 'basic', 'gdp', 'rdp' or None for a durable ledger, not {how.name}, which is not "
            "dpframe's: every process that opens the ledger must know it. Leave path out."
        )
    limit = Limit(*typed, checked_limit(how, *typed), how.one_is_enough, reserve)
    return how, Terms(checked_unit(unit) or PrivacyUnit(), limit, how.name, dataset, now(), noise.nonce())


def checked_reason(reason: object) -> str:
    """Refuse a reason that is not a sentence for later readers."""
    if reason is None:
        raise MissingArgument(
            "reason must be given: a sentence for those who read the ledger later. Write reason='...'."
        )
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidType(f"reason must be a sentence for the record, not {shown(reason)}. Write why.")
    return checked_name("reason", reason, LONGEST_REASON)


def raising(accounting: Accounting, epsilon: object, delta: object) -> Callable[[Limit], Limit]:
    """Return the function that computes the higher limit from the limit at the time when the entry is written."""
    if epsilon is None and delta is None:
        raise MissingArgument("epsilon must be given: the new limit. Write for instance raise_limit(epsilon=2.0, ...).")
    if delta is not None and accounting.has_own_delta:
        raise InvalidArgument(
            f"delta must be left out: {accounting.name} accounting reads every loss at the delta that the ledger was "
            "made with. Raise epsilon."
        )
    new_epsilon = None if epsilon is None else exact_epsilon(epsilon)
    new_delta = None if delta is None else exact_delta(delta)

    def raised(limit: Limit) -> Limit:
        pairs = {"epsilon": (new_epsilon, limit.epsilon), "delta": (new_delta, limit.delta)}
        for name, (new, held) in pairs.items():
            if new is not None and new < held:
                raise InvalidArgument(
                    f"{name} must not be below the ledger's {shown_down(held)!r}, not {shown_down(new)!r}: "
                    "a limit is only raised. Leave it out to keep it."
                )
        higher = (new_epsilon or limit.epsilon, limit.delta if new_delta is None else new_delta)
        if higher == (limit.epsilon, limit.delta):
            raise InvalidArgument(
                f"epsilon must be above the ledger's {shown_down(limit.epsilon)!r} to raise it. Write more."
            )
        amount = tuple(map(max, limit.amount, accounting.limit(*higher)))
        return replace(limit, epsilon=higher[0], delta=higher[1], amount=amount)

    return raised


def _of_another_format(name: str, where: str) -> LedgerError:
    return LedgerError(
        f"the ledger at {where} is of the format {shown(name)}, and this version of dpframe reads {FIRST!r}, "
        f"{FORMAT!r} and {ELSEWHERE!r}. Open it with the version that made it."
    )


def _is_normal(value: Fraction) -> bool:
    return value >= SMALLEST_NORMAL


def changed(where: str, fault: str) -> LedgerError:
    """Return the refusal of a store that something other than dpframe changed."""
    return LedgerError(
        f"the ledger at {where} was changed by something other than dpframe: {fault}. "
        "Put its newest intact copy back; nothing can be charged to it as it is."
    )


def accounting_of_terms(terms: Terms, where: str) -> Accounting:
    """Return the accounting of a stored ledger, made for its first limit, which fixes the orders of rdp for good."""
    try:
        first = terms.limit
        found = with_reserve(reading.text(terms.accounting), first.epsilon, first.delta, first.keys_delta)
        parts = len(found.limit(terms.limit.epsilon, terms.limit.delta))
    except (ValueError, ArithmeticError):
        raise changed(where, "its terms name no accounting of this limit") from None
    if parts != len(terms.limit.amount) or found.one_is_enough != terms.limit.one_is_enough:
        raise changed(where, f"its limit is not one of {found.name} accounting")
    return found


def refuse_other(asked: Terms, found: Terms, limit: Limit, where: str) -> None:
    """Refuse to open a ledger with terms other than its own; `limit` is its current limit."""
    pairs = {
        "epsilon": (limit.epsilon, asked.limit.epsilon),
        "delta": (limit.delta, asked.limit.delta),
        "keys_delta": (limit.keys_delta, asked.limit.keys_delta),
        "unit": (found.unit, _with_defaults(asked.unit, found.unit)),
        "accounting": (found.accounting, asked.accounting),
        "dataset": (found.dataset, asked.dataset),
    }
    for name, (kept, wanted) in pairs.items():
        if wanted != kept:
            raised = ", and raise its limit with raise_limit" if name in ("epsilon", "delta") else ""
            raise LedgerError(
                f"{name} must be {_said(kept)}, as in the ledger at {where}, not {_said(wanted)}. "
                f"Open it with dpf.Ledger.open(path){raised}, or take another path for other people's data."
            )


def _with_defaults(requested: PrivacyUnit, kept: PrivacyUnit) -> PrivacyUnit:
    """Return the requested unit; bounds that it does not give are those of the ledger."""
    return requested if requested.column is None else replace(kept, **_given(requested))


def _given(unit: PrivacyUnit) -> dict[str, Any]:
    """Return the fields of a unit, without bounds that it does not give."""
    return {name: value for name, value in asdict(unit).items() if value is not None}


def _said(value: object) -> str:
    if isinstance(value, PrivacyUnit):
        return f"({value})"
    return f"{shown_down(value)!r}" if isinstance(value, Fraction) else shown(value)
