"""Unknown groups: their keys are found privately, by the noisy number of units that hold each key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.exact import checked_whole, exact_delta, shown_up
from dpframe.queries.bins import Coding
from dpframe.queries.keys import KeyAxis, Keys, plain_key
from dpframe.queries.limits import MOST_CELLS, AsWritten, length
from dpframe.queries.sameness import same_key
from dpframe.queries.statistics import Statistic
from dpframe.queries.total import RowsTotal, Total, UnitsTotal

LEAST_DELTA = Fraction(1, 10**300)
MOST_KEYS = 2**20  # of one unit; thresholds consider each number of keys up to this
EXAMPLE = "Write for instance keys=dpf.discover(delta=1e-7)."


@dataclass(frozen=True, repr=False)
class Discovery(AsWritten):
    """The way to find unknown groups; made by `dpframe.discover`, whose arguments it holds.

    Examples
    --------
    >>> import dpframe as dpf
    >>> print(dpf.discover(delta=1e-7, at_least=5))
    keys to be found at delta 1e-07, held by at least 5 units
    """

    verb: ClassVar[str] = "discover"
    delta: Fraction
    max_keys: int = 1_000
    at_least: int = 1
    known: tuple[tuple[Any, ...], ...] = ()
    nulls: bool = False
    # For a top-k, the number of found groups to show; None shows all, in the order of the keys
    largest: int | None = field(default=None, repr=False)

    def written(self) -> dict[str, Any]:
        known = [key[0] if len(key) == 1 else key for key in self.known]
        return {**super().written(), "delta": float(self.delta), **({"known": known} if known else {})}

    def __str__(self) -> str:
        rare = f", held by at least {self.at_least:,} units" if self.at_least > 1 else ""
        known = f", {len(self.known):,} of them known" if self.known else ""
        largest = f", the {self.largest:,} largest" if self.largest else ""
        return f"keys to be found at delta {float(self.delta):g}{rare}{known}{largest}"


@trimmed
def discover(
    *, delta: Any = None, max_keys: int = 1_000, at_least: int = 1, known: Iterable[Any] = (), nulls: bool = False
) -> Discovery:
    """Discover unknown groups privately (partition selection), as ``keys=``.

    A group is shown if the noisy number of its units reaches a threshold. A group of a single unit reaches it with a
    probability of at most `delta`. The noisy number is also the answer of ``dpf.n_units()``, or of ``dpf.count()`` if
    the ledger protects each row, at no further cost.

    Parameters
    ----------
    delta : float
        The probability that a group of only one unit is shown, 0 < delta < 1. It is charged in addition to the cost of
        the call. Choose it far below 1 / (number of units). A ledger with ``gdp`` or ``rdp`` accounting needs a
        reserve for it: ``dpf.Ledger(epsilon=2, delta=1e-6, keys_delta=1e-7)``.
    max_keys : int
        The largest number of groups in which a unit counts. If it is in more, a random choice of them counts, drawn
        anew in each release. A large number costs little: the threshold grows with the root of its logarithm.
    at_least : int
        Groups of fewer units are never shown, whatever the noise; the threshold rises by as much.
    known : list
        Values whose groups are always shown. Take them from what you know, never from the data. For several columns
        they are tuples.
    nulls : bool
        Whether rows with a missing key are a group that may be found. Otherwise they are left out.

    Returns
    -------
    Discovery
        What `keys` takes.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule.

    Notes
    -----
    Thresholds are due to Korolova, Kenthapadi, Mishra and Ntoulas (2009), and the truncated noise of row units under
    ``basic`` to Desfontaines, Voss, Gipson and Mandayam (2022). The exact threshold for weighted units is from dpframe,
    with a proof in ``docs/assurance/privacy.md``. ``docs/guide/found-keys.md`` explains how to use it.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> visits = pl.DataFrame({"patient": range(3_000), "ward": ["A", "B", "B"] * 1_000})
    >>> ledger = dpf.Ledger(epsilon=1, delta=1e-6, keys_delta=1e-7, unit="patient")
    >>> wards = visits.dp.group_by("ward", keys=dpf.discover(delta=1e-7)).n_units(
    ...     max_groups=1, epsilon=0.5, ledger=ledger
    ... )
    >>> wards["ward"].to_list()
    ['A', 'B']
    """
    if delta is None:
        raise MissingArgument(
            f"delta must be given: the chance that a group which only one unit has is shown. {EXAMPLE}"
        )
    chance = exact_delta(delta)
    if not chance:
        raise InvalidArgument(f"delta must be above 0 for keys to be found. {EXAMPLE}")
    if chance < LEAST_DELTA:
        raise InvalidArgument(
            f"delta must be at least {float(LEAST_DELTA):g} for keys to be found: double precision cannot hold the "
            f"tails of noise below it. {EXAMPLE}"
        )
    most = checked_whole("max_keys", max_keys, 1, MOST_KEYS, "a whole number from 1 to 2**20")
    fewest = checked_whole("at_least", at_least, 1, 2**31, "a whole number from 1 to 2**31")
    if not isinstance(nulls, bool):
        raise InvalidType(f"nulls must be True or False, not {shown(nulls)}.")
    return Discovery(chance, most, fewest, _known(known), nulls)


def _known(known: object) -> tuple[tuple[Any, ...], ...]:
    if not isinstance(known, (list, tuple, range)):
        raise InvalidType(
            f"known must be a list of values that you wrote down, not {shown(known, kind=True)}. "
            'Write for instance known=["A", "B"].'
        )
    if length(known) > MOST_CELLS:
        raise InvalidArgument(f"known must name at most {MOST_CELLS:,} values, not {length(known):,}. Name fewer.")
    rows = [key if isinstance(key, tuple) else (key,) for key in known]
    return tuple(tuple(plain_key(value, "known") for value in row) for row in rows)


@dataclass(frozen=True)
class FoundAxis(KeyAxis):
    """Unknown keys: first the columns and how keys are found; after a release, the keys in `by_column`.

    `room` is a number of cells above the number of groups in which a unit may count. Weights and grids are those for
    that many groups, whatever number is found.
    """

    by_column: tuple[tuple[Any, ...], ...] = ()
    discovery: Discovery | None = field(kw_only=True)
    room: int = field(default=0, kw_only=True)
    by_rows: bool = field(default=False, kw_only=True)  # whether each row is a unit

    def __post_init__(self) -> None:
        """Set the names, values and size; there are no declared keys to check."""
        object.__setattr__(self, "names", self.columns)
        object.__setattr__(self, "by_column", self.by_column or ((),) * len(self.columns))
        object.__setattr__(self, "size", max(len(self.by_column[0]), self.room, 0 if self.discovery is None else 2))

    @property
    def coding(self) -> Coding:  # type: ignore[override]
        return "found" if self.discovery is None else "unknown"

    @property
    def people(self) -> Total:
        """The Total that decides which keys are shown; it is also the answer of n_units."""
        return RowsTotal() if self.by_rows else UnitsTotal()

    def labels(self) -> dict[str, Sequence[Any] | NDArray[Any]]:
        return {column: [] for column in self.columns}

    def facts(self) -> dict[str, Any]:
        """Return how the keys are found; only the released frame has their number and kinds."""
        discovery = self.discovery
        assert discovery is not None
        said = {"max_keys": discovery.max_keys, "at_least": discovery.at_least, "known": len(discovery.known)}
        largest = {} if discovery.largest is None else {"largest": discovery.largest}
        how = {"delta": shown_up(discovery.delta), **said, "nulls": discovery.nulls, **largest}
        return {"columns": list(self.columns), "size": 0, "discovered": how}

    def __str__(self) -> str:
        return f"{' x '.join(self.columns)}: {self.discovery}"


def found_axes(by: tuple[str, ...], discovery: Discovery) -> tuple[FoundAxis, ...]:
    """Return the axis of ``group_by(*by, keys=dpf.discover(...))``."""
    for row in discovery.known:
        if len(row) != len(by):
            way_out = f"tuples of {len(by)}" if len(by) > 1 else "plain values"
            raise InvalidArgument(
                f"known must have a value for each of {', '.join(by)}, unlike {shown(row)}. Write {way_out}."
            )
        if None in row and not discovery.nulls:
            raise InvalidArgument("known must not hold None without nulls=True, which counts missing keys. Add it.")
    _check_twice(discovery.known)
    for position, column in enumerate(by):
        if discovery.known:
            KeyAxis((column,), (tuple({same_key(row[position]): row[position] for row in discovery.known}.values()),))
    return (FoundAxis(by, discovery=discovery),)


def _check_twice(known: tuple[tuple[Any, ...], ...]) -> None:
    seen: set[tuple[Any, ...]] = set()
    for row in known:
        tokens = tuple(map(same_key, row))
        if tokens in seen:
            twice = shown(row[0] if len(row) == 1 else row)
            raise InvalidArgument(f"known must be distinct, but {twice} occurs twice. Name each value once.")
        seen.add(tokens)


def found_axis(keys: Keys) -> FoundAxis | None:
    """Return the axis of keys that are still to be found; None if all keys are declared."""
    return next((axis for axis in keys.axes if axis.coding == "unknown"), None)  # type: ignore[return-value]


@dataclass(frozen=True)
class Needed(Statistic):
    """A Total as a statistic of its own, to measure it for the groups that were found."""

    verb: ClassVar[str] = "needed"
    total: Total

    def totals(self) -> tuple[Total, ...]:
        """Return the Total itself."""
        return (self.total,)
