"""The ledger: who is protected, the limit, every charge so far; and the choice of the ledger for a call."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakSet

from dpframe.accounting import Accounting, Basic
from dpframe.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidType,
    LedgerError,
    UnlimitedBudgetWarning,
    WeakPrivacyWarning,
    after_the_charge,
    checked_name,
    shown,
)
from dpframe.errors.tracebacks import depth_outside, trimmed
from dpframe.exact import Amount, checked_amount, plus
from dpframe.ledger.canonical import now
from dpframe.ledger.chain import vouched
from dpframe.ledger.entries import Allowed, Answer, Entry, Mark, MemoryStore, Store
from dpframe.ledger.shown_ledger import ShownLedger
from dpframe.ledger.statement import left_of, refusal, spent_of, times, unlimited, weak_delta
from dpframe.ledger.terms import Limit, Terms, accounting_of_terms, checked_reason, new_terms, raising, refuse_other
from dpframe.noise import trial_of
from dpframe.privacy import WEAK_DELTA, WEAK_EPSILON, PrivacyLoss, PrivacyUnit, checked_unit
from dpframe.queries.limits import checked_checks

if TYPE_CHECKING:
    from dpframe.ledger.witness import HeadOption
    from dpframe.planning.plan import Costing

ROWS = PrivacyUnit()
_NO_LIMIT = "ledger must have a limit to raise, and the default one has none. Make one with dpf.Ledger(epsilon=...)."

_NOTHING_FITS = (
    "ledger must have a limit to fit calls into, and the default one has none. Make one: dpf.Ledger(epsilon=...)."
)

ambient: ContextVar[tuple[Ledger, ...]] = ContextVar("dpframe_ambient", default=())
made_any = threading.Event()  # set once a ledger other than the default exists: calls then need a ledger


@dataclass(frozen=True)
class Foresight:
    """The predicted effect of several charges: which of them have a stored answer, and what would be left."""

    stored: Mapping[str, bool]
    left: PrivacyLoss


@dataclass(frozen=True)
class PlanTerms:
    """The public facts of a ledger that determine plans, read at once; without a ledger there is no limit."""

    unit: PrivacyUnit | None = None
    accounting: Accounting = field(default_factory=Basic)
    limit: Amount | None = None  # in the accounting's own exact quantity
    checks: Any = None  # the default of `checks` for calls

    def unit_for(self, unit: PrivacyUnit | str | Sequence[str] | None) -> PrivacyUnit:
        """Return the unit that a call protects: the ledger's own, or on the default ledger the call's.

        Contribution bounds belong to a call: each bound that the call's unit gives replaces the ledger's.
        """
        call_unit = checked_unit(unit)
        if self.unit is None or call_unit is None:
            return call_unit or self.unit or ROWS
        if call_unit.who != self.unit.who:
            raise InvalidArgument(
                f"unit must be left out or equal the ledger's ({_who(self.unit, call_unit)}), not "
                f"{_who(call_unit, self.unit)}. Create another ledger for another unit."
            )
        return self.unit.bounded(call_unit.max_rows, call_unit.max_groups)


class Ledger(ShownLedger):
    """A privacy budget for one privacy unit: append-only, exact, and charged before any row is read.

    Parameters
    ----------
    epsilon : float
        The most that all releases together may spend on the people in the data.
    delta : float
        0 for pure differential privacy.
    unit : PrivacyUnit, str or list of str, optional
        Who is protected. A string stands for ``PrivacyUnit(column)``, a list for each combination of its columns.
        Without it each row is a unit. Its `max_rows` and `max_groups` are only defaults for calls without them.
    accounting : {"basic", "gdp", "rdp"} or Accounting, optional
        How losses add up. The default is ``"basic"`` for delta = 0, otherwise ``"gdp"``. Only a ledger in memory takes
        an accounting of your own (``docs/reference/extending.md``).
    path : path-like or URL, optional
        A file (SQLite) or database (PostgreSQL) that keeps the ledger for all processes. If it already has a ledger,
        all parameters must agree with it; `Ledger.open` needs no parameters. Without a path the ledger ends with the
        process.
    dataset : str, optional
        The name of the data. It is shown, stored, and recorded in the provenance of releases from a durable ledger.
    keys_delta : float
        The part of `delta` that ``gdp`` and ``rdp`` accounting reserve for unknown groups (`dpframe.discover`). It
        cannot change later. ``basic`` needs none.
    head : path-like, URL or object, optional
        A second place for the hash of the newest entry: a file on another disk, another database, or an object with
        ``read() -> str | None`` and ``write(str)``. With it, every process notices if an older copy of the ledger was
        restored. The ledger then charges nothing without it. A stream on a server needs it
        (``docs/assurance/ledger.md``).
    checks : {"auto", False} or float, optional
        The default of `checks` for calls on this object: a share of each call's budget, or False for none; by default
        ``"auto"``. It is never written into the ledger.

    Raises
    ------
    InvalidArgument, InvalidType
        If an argument breaks its rule.
    LedgerError
        If the ledger at `path` differs, was changed, is an older copy, or cannot be used.

    Notes
    -----
    ``basic`` adds the decimals that you typed, as exact rationals: a ledger of 0.3 holds exactly three charges of 0.1.
    ``gdp`` adds mu^2 and ``rdp`` Rényi divergences, rounded up, against a limit rounded down
    (``docs/assurance/accounting.md``). Charges are never refunded. A copy is the same ledger. A ledger in memory cannot
    be pickled, and does not charge in a forked child. A durable ledger may go to other processes: its pickle contains
    its address and `checks`, never its budget (``docs/assurance/ledger.md``).

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62]})
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> with ledger:
    ...     released = people.dp.histogram("age", bins=[0, 50, 100], epsilon=0.25)
    >>> print(ledger.spent, "|", ledger.remaining)
    epsilon 0.25 | epsilon 0.75
    """

    __slots__ = ()

    @trimmed
    def __init__(
        self,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction = 0,
        *,
        unit: PrivacyUnit | str | Sequence[str] | None = None,
        accounting: Literal["basic", "gdp", "rdp"] | Accounting | None = None,
        path: str | PathLike[str] | None = None,
        dataset: str | None = None,
        keys_delta: float | Fraction = 0,
        head: HeadOption | None = None,
        checks: Literal["auto"] | bool | float | Fraction | None = None,
    ) -> None:
        checks = checked_checks(checks)
        durable = path is not None
        how, terms = new_terms(epsilon, delta, unit, accounting, dataset, durable=durable, keys_delta=keys_delta)
        if terms.limit.delta > WEAK_DELTA:
            warnings.warn(weak_delta(terms), WeakPrivacyWarning, stacklevel=depth_outside())
        store: Store = MemoryStore(terms.limit)
        if path is not None:
            from dpframe.ledger.sql import SqlStore

            store = SqlStore.make(path, terms, head)
            refuse_other(terms, store.terms, store.last().limit, store.shown)
            terms = store.terms
        elif head is not None:
            raise InvalidArgument(
                "head must be left out with a ledger in memory, which nothing puts back. Keep the ledger in a file or "
                "a database: path=..."
            )
        self._start(how, terms, store)
        self._checks = checks
        made_any.set()
        self._warn_understated()

    def _start(self, accounting: Accounting, terms: Terms | None, store: Store) -> None:
        self._accounting = accounting
        self._checks = None
        self._replayed = 0
        self._terms = terms
        self._store = store

    @classmethod
    def _unlimited(cls) -> Self:
        ledger = cls.__new__(cls)
        ledger._start(Basic(), None, MemoryStore())
        return ledger

    @classmethod
    @trimmed
    def open(cls, path: str | PathLike[str], *, head: HeadOption | None = None) -> Self:
        """Open an existing ledger in a file or database, with its own terms. Its chain is verified.

        Parameters
        ----------
        path : path-like or URL
            The file or database. LedgerError if it has no ledger, or if the ledger was changed or is an older copy.
        head : path-like, URL or object, optional
            The second place of its head. Without it, a ledger that has one can only be read.

        Examples
        --------
        >>> import dpframe as dpf, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "clinic.ledger"
        >>> _ = dpf.Ledger(epsilon=1.0, path=path, dataset="clinic")
        >>> dpf.Ledger.open(path).limit
        PrivacyLoss(epsilon=1.0, delta=0.0)
        """
        from dpframe.ledger.sql import SqlStore

        ledger = cls._of(SqlStore.open(path, head))
        ledger._warn_understated()
        return ledger

    @classmethod
    @trimmed
    def recover(cls, path: str | PathLike[str], *, reason: str, head: HeadOption | None = None) -> Self:
        """Recover a ledger from an older copy, or without its head, if the newest copy is lost.

        Parameters
        ----------
        path : path-like or URL
            The file or database.
        reason : str
            The reason, for readers of the ledger.
        head : path-like, URL or object, optional
            The second place of its head, old or new.

        Notes
        -----
        An entry records the recovery, and charges what the head knows and the copy does not. A ledger that lacks
        nothing stays as it is, except that a correction that is due is appended with this reason
        (``docs/assurance/ledger.md``). Streams that were begun before a recovery draw no further period.

        Examples
        --------
        >>> import dpframe as dpf, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "clinic.ledger"
        >>> _ = dpf.Ledger(epsilon=1.0, path=path)
        >>> dpf.Ledger.recover(path, reason="the disk was replaced").to_frame().height
        0
        """
        from dpframe.ledger.sql import SqlStore

        why = checked_reason(reason)
        store = SqlStore.open(path, head, check=False)
        store.recover(why, store.accounting.loss)
        SqlStore.open(path, head).correct(why)
        return cls.open(path, head=head)

    @classmethod
    def _of(cls, store: Any) -> Self:
        ledger = cls.__new__(cls)
        ledger._start(accounting_of_terms(store.terms, store.shown), store.terms, store)
        made_any.set()
        return ledger

    @property
    def checks(self) -> Any:
        """The default of `checks` for calls on this object; None if it was not given."""
        return self._checks

    @property
    def accounting(self) -> Accounting:
        """The accounting that adds up losses."""
        return self._accounting

    @property
    def unit(self) -> PrivacyUnit | None:
        """The unit that is protected; None on the default ledger, whose calls name it."""
        return None if self._terms is None else self._terms.unit

    @property
    def dataset(self) -> str | None:
        """The name of the data; None if none was given."""
        return None if self._terms is None else self._terms.dataset

    @property
    def is_durable(self) -> bool:
        """True if a file or a database keeps the ledger, so that it outlives the process."""
        return self._store.shown is not None

    @property
    def limit(self) -> PrivacyLoss | None:
        """The most that may be spent; None on the default ledger."""
        return None if self._terms is None else self._store.last().limit.whole

    @property
    def limit_amount(self) -> Amount | None:
        """The limit in the accounting's own exact quantity."""
        return None if self._terms is None else self._store.last().limit.amount

    @property
    def terms(self) -> PlanTerms:
        """The public facts that determine plans."""
        if self._terms is None:
            return PlanTerms(None, self._accounting, None, self._checks)
        return PlanTerms(self._terms.unit, self._accounting, self._store.last().limit.amount, self._checks)

    @property
    def spent(self) -> PrivacyLoss:
        """The sum of all charges so far, by every process, rounded up."""
        return spent_of(self._accounting, self._store.last().spent)

    @property
    def remaining(self) -> PrivacyLoss:
        """The most that one more call may cost, rounded down; infinite on the default ledger."""
        return left_of(self._limit_at(last := self._store.last()), self._accounting, last.spent)

    def charge(
        self, amount: Amount, *, cost: PrivacyLoss, query: str, unit: PrivacyUnit, label: str | None = None
    ) -> dict[str, Any] | None:
        """Charge `amount`, all or nothing. Releases do this themselves; nothing is ever refunded.

        Parameters
        ----------
        amount : tuple of Fraction
            In the accounting's own exact quantity: (epsilon, delta) under ``basic``, mu^2 under ``gdp``, a
            Rényi divergence for each order under ``rdp``.
        cost : PrivacyLoss
            The cost as epsilon and delta, for display.
        query, unit, label
            The query, who is protected, and the caller's label, which `to_frame` lists.

        Returns
        -------
        dict or None
            The entry of a durable ledger: ``dataset``, ``entry``, ``head``. None in memory. It raises BudgetExceeded
            if the limit would be exceeded, and LedgerError if the ledger cannot be charged.
        """
        label = None if label is None else checked_name("label", label)
        taken = self.take(Entry(now(), label, query, unit, amount, cost))
        assert not isinstance(taken, Answer)  # only an entry with a snapshot has a stored answer
        return taken

    def take(self, entry: Entry) -> dict[str, Any] | Answer | None:
        """Charge an entry, as `charge` does. If an answer is stored under its name, return it at no cost."""
        entry = replace(entry, amount=checked_amount(entry.amount, self._parts))
        mark = self._store.charge(entry, self._allowing(entry))
        if not isinstance(mark, Mark):
            self._replayed += mark is not None
            return mark
        return self._receipt(mark) | ({} if entry.snapshot is None else {"snapshot": entry.snapshot})

    def _allowing(self, entry: Entry) -> Allowed:
        """Return the function that refuses an entry if too little is left; refuse any trial in a durable ledger."""
        if self.is_durable and (trial := trial_of()) is not None:
            raise LedgerError(
                f"ledger must be in memory inside dpframe.testing.{trial}, whose results protect nobody, not in a file "
                "or a database. Make one for the test: dpf.Ledger(epsilon=1)."
            )

        def allowed(last: Mark, total: Amount) -> None:
            limit = self._limit_at(last)
            if limit is not None and not limit.holds(total):
                raise BudgetExceeded(refusal(limit, self._accounting, entry, last.total))

        return allowed

    def foresee(
        self, entries: Mapping[str, Entry], seen: Callable[[Mapping[str, Answer | None]], None] = lambda known: None
    ) -> Foresight:
        """Predict the effect of charging all of these entries, by the names that messages use; nothing is charged.

        `seen` receives their stored answers before the check that the others fit.

        Raises
        ------
        BudgetExceeded
            If they do not fit together; it names the first that does not. Those with a stored answer cost nothing.
        LedgerError
            If a label and a snapshot name another request in this ledger, or if its head is kept elsewhere and
            its place was not given.
        """
        checked = {name: replace(one, amount=checked_amount(one.amount, self._parts)) for name, one in entries.items()}
        last, known = self._store.answered([*checked.values()])
        seen(dict(zip(checked, known, strict=True)))
        stored = {name: answer is not None for name, answer in zip(checked, known, strict=True)}
        total, limit = last.spent, self._limit_at(last)
        for name, entry in checked.items():
            if stored[name]:
                continue
            after = plus(total, entry.amount)
            if limit is not None and not limit.holds(after):
                raise BudgetExceeded(f"{name}: {refusal(limit, self._accounting, entry, total)}")
            total = after
        left = left_of(limit, self._accounting, total)
        return Foresight(stored, left)

    @trimmed
    def affords(self, plan: Costing) -> int:
        """Count how many more times a plan fits into this ledger. Nothing is charged.

        Parameters
        ----------
        plan : Plan, StreamPlan or JointPlan
            From ``df.dp.preview``, a stream or `plan_together`, for this ledger or for one of the same accounting and
            unit. A plan with ``share=`` counts with the limit for which it was made.

        Returns
        -------
        int
            0 if the plan costs more than remains, and at most 1,000,000. A stored answer costs nothing, but counts
            like a new one. Another process may charge in the meantime.

        Raises
        ------
        InvalidArgument, InvalidType
            If it is no plan, or one for a ledger of another accounting or unit.
        LedgerError
            On the default ledger, which has no limit.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people, ledger = pl.DataFrame({"age": [31, 45, 62]}), dpf.Ledger(epsilon=1.0)
        >>> plan = people.dp.preview.count(epsilon=0.3, ledger=ledger)
        >>> ledger.affords(plan)
        3
        """
        from dpframe.planning.plan import Costing

        if not isinstance(plan, Costing):
            raise InvalidType(
                f"plan must be one plan, not {shown(plan, kind=True)}. Write df.dp.preview.count(epsilon=1)."
            )
        if self._terms is None:
            raise LedgerError(_NOTHING_FITS)
        if plan.accounting != self._accounting or plan.unit.who != self._terms.unit.who:
            same = (
                f"{self._accounting.name} accounting, the same delta and keys_delta, protecting {self._terms.unit.who}"
            )
            raise InvalidArgument(f"plan must be for a ledger like this one: {same}. Pass ledger= to the preview.")
        last = self._store.last()
        return times(last.limit, last.spent, plan.amount)

    def keep(self, entry: Entry, content: bytes) -> bytes:
        """Store the answer of a charged entry and return it; if another process was faster, return its answer."""
        with after_the_charge():
            return self._store.keep(replace(entry, time=now()), content).content

    @trimmed
    def raise_limit(self, *, epsilon: Any = None, delta: Any = None, reason: str | None = None) -> None:
        """Raise the limit. An entry records it, and every process that uses the ledger follows it.

        Parameters
        ----------
        epsilon, delta : float, optional
            The new limit; what you leave out stays. Under ``gdp`` and ``rdp`` accounting, leave delta out: it cannot
            change.
        reason : str
            The reason, for readers of the ledger.

        Raises
        ------
        InvalidArgument, InvalidType
            If nothing would be raised, or anything lowered.
        LedgerError
            On the default ledger, which has no limit, and if the ledger cannot be written.

        Notes
        -----
        From then on, the promise to the people in the data is the higher limit.

        Examples
        --------
        >>> import dpframe as dpf
        >>> ledger = dpf.Ledger(epsilon=1.0)
        >>> ledger.raise_limit(epsilon=1.5, reason="the board agreed to another quarter")
        >>> ledger.limit
        PrivacyLoss(epsilon=1.5, delta=0.0)
        """
        if self._terms is None:
            raise LedgerError(_NO_LIMIT)
        why, raised = checked_reason(reason), raising(self._accounting, epsilon, delta)
        nothing = tuple(coordinate * 0 for coordinate in self._terms.limit.amount)
        entry = Entry(now(), why, "limit raised", self._terms.unit, nothing, PrivacyLoss(0.0), kind="limit")
        self._store.raise_limit(entry, raised)

    @trimmed
    def verify(self, *releases: Any) -> dict[str, Any]:
        """Verify the chain of a durable ledger, and that it was charged for releases.

        Parameters
        ----------
        *releases : released frame or dict
            Results of this ledger, or their provenances. An older copy of the ledger does not know the newest ones.
            Cost, label, unit, accounting, data set and noise must be those of the charged entry, and the numbers of a
            frame those of its provenance. A stored answer is compared as a whole.

        Returns
        -------
        dict
            The end of the chain: ``dataset``, ``entry`` and ``head``. Store it elsewhere to recognize older copies.
            ``releases``, if any were given, has a dict for each: its ``entry``; ``record``, which is "as charged", or
            "in part" if the entry does not commit to all of it; and ``numbers``, which is "as stored", "as in its
            record" (a ledger that stored no answer knows no numbers), "rounded, not compared" or "changed, not
            compared" (no ledger knows these), or "not given".
            ``without_nonce``, if entries are from dpframe 0.1, counts those without random bytes, from the first on.
            ``understated``, if entries of dpframe 0.2 cost more than they say and are not corrected yet, has their
            numbers.

        Raises
        ------
        InvalidType, NoProvenance
            If something is no released frame and no provenance.
        LedgerError
            If the ledger is in memory, its chain was changed, or a release is of another ledger.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl, pathlib, tempfile
        >>> ledger = dpf.Ledger(epsilon=1.0, path=pathlib.Path(tempfile.mkdtemp()) / "clinic.ledger")
        >>> result = pl.DataFrame({"age": [31]}).dp.count(epsilon=0.5, ledger=ledger)
        >>> ledger.verify(result)["releases"]
        [{'entry': 1, 'record': 'as charged', 'numbers': 'as in its record'}]
        """
        trail = self._store.verify()
        assert self._terms is not None  # only a durable ledger has a chain
        receipt = self._receipt(trail.last)
        if self._terms.plain:
            receipt["without_nonce"] = self._terms.plain
        if trail.last.due is not None:
            receipt["understated"] = sorted(trail.last.due.entries)
        return receipt | ({"releases": vouched(self._store, self._terms, trail, releases)} if releases else {})

    def has_place(self, entry: int, head: str) -> bool:
        """Return whether a durable ledger contains an entry of this number and hash."""
        return self._store.head_at(entry) == head

    def last_place(self) -> dict[str, Any]:
        """Return the number and the hash of the newest entry of a durable ledger."""
        mark = self._store.last()
        return {"entry": mark.entry, "head": mark.head}

    @property
    def _parts(self) -> int:
        """The number of coordinates of an amount in the ledger's accounting."""
        return 2 if self._terms is None else len(self._terms.limit.amount)

    def _limit_at(self, last: Mark) -> Limit | None:
        return None if self._terms is None else last.limit

    def _receipt(self, mark: Mark) -> dict[str, Any]:
        return {"dataset": self.dataset, "entry": mark.entry, "head": mark.head}

    def __dir__(self) -> list[str]:
        """Return the names for users; the names that only releases use are left out."""
        internal = {"charge", "foresee", "has_place", "keep", "last_place", "limit_amount", "take", "terms"}
        return [name for name in super().__dir__() if name not in internal]

    def __enter__(self) -> Self:
        ambient.set((*ambient.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        inside = list(ambient.get())
        if self in inside:  # not always the last one: a generator may leave its `with` later than the code that runs it
            del inside[len(inside) - 1 - inside[::-1].index(self)]
        ambient.set(tuple(inside))

    def __copy__(self) -> Self:
        return self  # a copy would be a second budget for the same people

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*self._store.identity, self._store.head, self._checks)


def _unpickled(path: str, beginning: str, head: Any = None, checks: Any = None) -> Ledger:
    """Open the ledger at the address that a pickle carries, if it is still the same one."""
    from dpframe.ledger.sql import SqlStore

    ledger = Ledger._of(SqlStore.again(path, beginning, head))
    ledger._checks = checks
    return ledger


def _who(unit: PrivacyUnit, other: PrivacyUnit) -> str:
    """Return a unit as text, with its `nulls` if `other` has the same text."""
    return str(unit.who) if str(unit.who) != str(other.who) else f"{unit.who}, nulls={unit.nulls!r}"


def of_terms(
    path: str, unit: PrivacyUnit, said: Mapping[str, Any], head: str | None, *, new: bool, checks: Any = None
) -> Ledger:
    """Open the durable ledger of these terms: create it if `new`; otherwise it must exist and agree with them."""
    from dpframe.ledger.sql import SqlStore

    named = {name: said.get(name) for name in ("epsilon", "accounting", "dataset")}
    amounts = {name: said.get(name, 0) for name in ("delta", "keys_delta")}
    _, terms = new_terms(**named, **amounts, unit=unit, durable=True)
    store = SqlStore.make(path, terms, head, new=True) if new else SqlStore.open(path, head)
    refuse_other(terms, store.terms, store.last().limit, store.shown)
    ledger = Ledger._of(store)
    ledger._checks = checks
    return ledger


_warned = threading.Event()
_warned_of: WeakSet[Ledger] = WeakSet()  # ledgers that have warned of weak privacy
_recording = Ledger._unlimited()
_chosen: list[Ledger] = []


def default_ledger() -> Ledger:
    """Return the process-wide ledger that records every release and limits nothing, or the one set in its place.

    Returns
    -------
    Ledger
        In memory, ``basic``, without a limit. After you create any other ledger, pass it explicitly to use it.

    Examples
    --------
    >>> import dpframe as dpf
    >>> dpf.default_ledger().remaining.epsilon
    inf
    """
    return _chosen[0] if _chosen else _recording


@trimmed
def set_default_ledger(ledger: Ledger | None) -> None:
    """Set the ledger for calls without one; None restores the default.

    Parameters
    ----------
    ledger : Ledger or None
        The ledger for the whole process.

    Raises
    ------
    InvalidType
        If it is not a Ledger.

    Examples
    --------
    >>> import dpframe as dpf
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> dpf.set_default_ledger(ledger)
    >>> dpf.default_ledger() is ledger
    True
    >>> dpf.set_default_ledger(None)
    """
    _chosen[:] = [] if ledger is None else [checked_ledger(ledger)]


def ledger_for(ledger: Ledger | None) -> Ledger | None:
    """Return the ledger for a call: the named, the ambient or the default one; None if the call must name one."""
    if ledger is not None:
        return checked_ledger(ledger)
    if ambient.get():
        return ambient.get()[-1]
    if _chosen or not made_any.is_set():
        return default_ledger()
    return None


def warn_of_cost(ledger: Ledger, unit: PrivacyUnit, cost: PrivacyLoss) -> None:
    """Warn once per process of a budget without a limit, and once per ledger of an epsilon with weak privacy."""
    if ledger is _recording and not _warned.is_set():
        _warned.set()
        warnings.warn(unlimited(unit), UnlimitedBudgetWarning, stacklevel=depth_outside())
    if cost.epsilon <= WEAK_EPSILON or ledger in _warned_of:
        return
    _warned_of.add(ledger)
    short = f"{cost.epsilon:.4g}"
    epsilon = short if float(short) > WEAK_EPSILON else cost.epsilon
    warnings.warn(
        f"weak privacy: epsilon {epsilon} is above {WEAK_EPSILON}, so the result may reveal almost all "
        f"about one {unit.one}. Use 0.1 to 1 for a call.",
        WeakPrivacyWarning,
        stacklevel=depth_outside(),
    )


def checked_ledger(ledger: object) -> Ledger:
    """Check that a value is a Ledger."""
    if not isinstance(ledger, Ledger):
        raise InvalidType(
            f"ledger must be a dpf.Ledger, not {shown(ledger)}. Write for instance dpf.Ledger(epsilon=1.0)."
        )
    return ledger
