"""``dpf.Stream``: a series over declared periods that is charged once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from dpframe.accessor.entry import PublicFrame, accessor
from dpframe.accessor.private_frame import PrivateFrame, declared_axes, flat_columns
from dpframe.display.charts import Words
from dpframe.errors import (
    AlreadyReleased,
    InvalidArgument,
    InvalidType,
    MissingArgument,
    checked_name,
    harmless,
    how_many,
    sentence,
    shown,
)
from dpframe.errors.tracebacks import constructed, trimmed
from dpframe.frames.kinds import checked_frame, library_of
from dpframe.ledger.ledger import Ledger
from dpframe.privacy import PrivacyUnit
from dpframe.queries import limits
from dpframe.queries.bins import date_axis
from dpframe.queries.date_grid import Dates
from dpframe.queries.discovery import Discovery
from dpframe.queries.keys import PERIODS_EXAMPLE, Keys, value_axis
from dpframe.queries.limits import check_column
from dpframe.queries.query import Query
from dpframe.queries.statistics import Statistic
from dpframe.streams import stream_path, stream_plan
from dpframe.streams.stream_path import COLUMNS
from dpframe.streams.stream_plan import MOST_PERIODS, StreamPlan, StreamRequest, check_statistic

STATISTIC_EXAMPLE = "Write for instance statistic=dpf.count()."


@constructed
@dataclass(frozen=True)
class Stream:
    """A series of running totals over declared periods, such as 52 weeks, at one cost.

    Release each period when its rows are there. The result has the total of all rows up to it, and the number of the
    period alone, each with its error. The first release charges the cost of all periods. The ledger keeps every
    result: if any process asks for the period again, the result is the same and costs nothing.

    Parameters
    ----------
    name : str
        The name of the stream in its ledger. A Stream with the same name continues it, and must have the same
        parameters.
    statistic : Count or Sum
        ``dpf.count()``, ``dpf.count(column)`` or ``dpf.sum(column, bounds=...)``, also with `where` and `weight`, but
        not with `unit_bounds`.
    time : str
        The column with the period in which a row *entered the table*.
    periods : dpf.dates or list
        All periods in order, at most 4,096: ``dpf.dates(...)`` for a column of dates, otherwise a list of its values.
    by, keys : optional
        Groups of each period, as in ``group_by(*by, keys=keys)``, but neither bins nor unknown groups.
    max_rows : int, optional
        For a unit with a column: how many rows of a unit count, over all periods and groups together. The earliest
        rows count. If only some rows of a period can still count, a fixed shuffle of their groups and values decides.
    max_groups : int, optional
        Of no effect on the count of rows, which is over all groups. Without `max_rows`, that is then 1.
    epsilon, delta : float
        The cost of the whole series. With a delta, and in a ledger with one, the noise is Gaussian.
    within : float or dict, optional
        Replaces `epsilon`: the largest error of any `total` and any `period` if no period is lost, or a dict of both.
        The cost is the smallest epsilon of six digits that keeps it.
    confidence : float, optional
        The confidence of the errors in `within`; 0.95. The errors of results are always those of 95%.
    mechanism : {"laplace", "gaussian"}, optional
        The noise.
    unit : PrivacyUnit, str or list of str, optional
        Who is protected, if the ledger does not say it.
    ledger : Ledger, optional
        The ledger to charge, which keeps the results; by default that of the ``with`` block around a release. In a
        durable ledger, a stream outlives the process.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If an argument breaks its rule.

    Notes
    -----
    Period t measures y_t = sum of c_(t-j) x_j with its own noise, where x_j are the rows of each period j up to t. The
    totals follow from these numbers: the square-root factorization (Fichtenberger, Henzinger and Upadhyay, "Constant
    matters", ICML 2023). It is triangular, so later rows may depend on earlier releases (Denisov et al. 2022). Proofs
    are in ``docs/assurance/privacy.md``. Each release needs a frame with *all* rows up to its period, also those of
    earlier periods.

    The promise of a stream of sums does not hold for 2**33 rows or more in one period and group. Only a Polars with an
    index of 64 bits can hold so many (``docs/assurance/limits.md``, "Streams of sums").

    A Stream contains only these parameters. A copy of it is the same stream, and so is a pickle if the ledger is
    durable.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> stays = pl.DataFrame({"week": ["W01", "W01", "W02", "W02", "W02"]})
    >>> admissions = dpf.Stream(
    ...     "admissions", statistic=dpf.count(), time="week", periods=["W01", "W02", "W03"],
    ...     epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0),
    ... )
    >>> first = admissions.release(stays.filter(pl.col("week") == "W01"), "W01")
    >>> second = admissions.release(stays, "W02")
    >>> second.columns, admissions.ledger.spent.epsilon
    (['total', 'total_error', 'period', 'period_error'], 1.0)
    >>> admissions.release(stays, "W02").equals(second)
    True
    """

    name: str
    _: KW_ONLY
    statistic: Statistic | None = None
    time: str | None = None
    periods: Any = None
    by: str | Sequence[str] | None = None
    keys: Any = None
    max_rows: int | None = None
    max_groups: int | None = None
    epsilon: Any = None
    delta: Any = None
    within: Any = None
    confidence: Any = None
    mechanism: str | None = None
    unit: PrivacyUnit | str | Sequence[str] | None = None
    ledger: Ledger | None = None
    _request: StreamRequest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidType(f'name must be a string that is not blank, not {shown(self.name)}. Write "admissions".')
        checked_name("name", self.name)
        if self.statistic is None:
            raise MissingArgument(f"statistic must be given: what is added up. {STATISTIC_EXAMPLE}")
        statistic = check_statistic(self.statistic)
        if self.time is None:
            raise MissingArgument("time must be given: the column that says in which period a row entered the table.")
        keys = Keys((_period_axis(self.time, self.periods), *_group_axes(self.by, self.keys)))
        if keys.cells > limits.MOST_CELLS:
            raise InvalidArgument(
                f"periods and keys must make at most {limits.MOST_CELLS:,} cells together, not {keys.cells:,}. "
                "Declare fewer keys, or take longer periods."
            )
        for column in keys.names[1:]:
            if column in COLUMNS:
                raise InvalidArgument(
                    f"by must not name a column {column!r}: the result has one of that name. Rename it first."
                )
        query = Query("stream", keys, ((_free_name(keys), statistic),))
        request = StreamRequest(
            name=self.name,
            query=query,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=self.mechanism,
            unit=self.unit,
            max_rows=self.max_rows,
            max_groups=self.max_groups,
            ledger=self.ledger,
            within=self.within,
            confidence=self.confidence,
        )
        object.__setattr__(self, "_request", request)

    @trimmed
    def release(self, frame: Any, period: Any) -> Any:
        """Release a period: the running total, and the number of the period alone.

        Parameters
        ----------
        frame : DataFrame or LazyFrame
            A frame of pandas, Polars or Arrow, or ``dpf.of(frame)``, with *all* rows up to the period. Rows of later
            periods are left out. If a unit has a column, a frame with only the rows of the new period breaks the
            promise: `max_rows` rows of a unit would count in each period. A LazyFrame is run, and only the needed
            columns are loaded into memory.
        period : str, date or number
            Its label; for ``dpf.dates`` its first day, or for a week also ``"2026-W07"``. Release periods in order. If
            the period was released before, the same result is returned, and the frame is not read.

        Returns
        -------
        DataFrame
            A row for each group: the keys, ``total``, ``total_error``, ``period``, ``period_error``. Errors are
            half-widths of 95% intervals (``docs/concepts/errors.md``) around unbiased numbers. A `total` has far less
            noise than the sum of its periods.

        Raises
        ------
        BudgetExceeded, NoLedger
            If the ledger has too little left, or there is none. Nothing was charged.
        InvalidArgument
            If it is not the next period, or not a declared one.
        LedgerError
            If a stream of this name was begun with other parameters, or before the recovery of an older copy of the
            ledger.
        ReleaseFailed
            If the period is lost: the engine failed while it read the rows, or the process that drew the period was
            stopped before the numbers were stored. Noise is never drawn twice. Continue with the next period, in which
            the rows of the lost one count.
        UnknownColumn, WrongDtype
            If a column is missing, or cannot be used.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"week": [1, 1, 2], "ward": ["A", "B", "A"]})
        >>> stream = dpf.Stream(
        ...     "by ward", statistic=dpf.count(), time="week", periods=range(1, 53), by="ward", keys=["A", "B"],
        ...     epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0),
        ... )
        >>> stream.release(stays, 1)["ward"].to_list()
        ['A', 'B']
        """
        native, library = _private(frame)
        return stream_path.released(self._request, native, period, library)

    @trimmed
    def preview(self, frame: Any = None) -> StreamPlan:
        """Plan the stream: its cost, its noise, and the errors of each period. Spends nothing.

        Parameters
        ----------
        frame : DataFrame or LazyFrame, optional
            A frame whose schema is checked. No row is read.

        Examples
        --------
        >>> import dpframe as dpf
        >>> stream = dpf.Stream("n", statistic=dpf.count(), time="week", periods=range(1, 53), epsilon=1, delta=1e-6)
        >>> [round(error) for error in stream.preview().errors["total"][::17]]
        [13, 18, 19, 19]
        """
        return stream_path.previewed(self._request, None if frame is None else _private(frame)[0])

    @trimmed
    def to_frame(self, like: str = "polars") -> Any:
        """Return every period released so far, from the ledger, at no cost.

        Parameters
        ----------
        like : {"polars", "pandas"}
            The library of the frame.

        Returns
        -------
        DataFrame
            A row for each period and group, with the label of the period in the column `time`. If `time` is "total"
            or "period", that column is "total_label" or "period_label". The frame is marked as public
            (`dpframe.public`).
            Provenance is in the results of the releases.
        """
        return stream_path.frame_so_far(self._request, like)

    @trimmed
    def plot(self) -> Any:
        """Draw the released periods: lines over time, with bands of 95% intervals.

        Returns
        -------
        altair.Chart
            The running totals next to the single periods, a line for each group. ImportError without ``dpframe[plot]``.
        """
        plan, stored = stream_path.so_far(self._request)
        if not stored:
            raise InvalidArgument("the stream must have a released period to be drawn. Release the first one.")
        groups = _group_names(plan)[: stream_plan.MOST_LINES]
        rows = [
            {
                "place": number,
                "label": str(plan.periods[number - 1]),
                "group": name,
                **{column: float(one.released[column][place]) for column in COLUMNS},
            }
            for number, one in stored.items()
            for place, name in enumerate(groups)
        ]
        cut = [f"the first {len(groups)} of {plan.groups:,} groups"] if plan.groups > len(groups) else []
        notes = tuple(map(sentence, (*plan.notes, *cut)))
        price = f"{plan.cost}, once for all periods; protects {plan.unit.who}; shaded: 95% margin of error (noise)"
        return stream_plan.of_stream(rows, plan.time, Words(self.name, notes, price))

    def __repr__(self) -> str:
        keys = self._request.query.keys
        by = f" by {' and '.join(keys.columns[1:])}" if len(keys.axes) > 1 else ""
        words = f"{self._request.query.statistics[0][1]}{by}, {how_many(keys.axes[0].size, 'period')} of {self.time}"
        return harmless(f"<Stream {self.name}: {words}>")


def _private(frame: Any) -> tuple[Any, Any]:
    """Return the frame with the private rows, and the library of the answer."""
    dp = frame if isinstance(frame, PrivateFrame) else accessor(checked_frame(frame))
    if isinstance(dp, PrivateFrame):
        if dp._axes:
            raise InvalidArgument("frame must be the frame itself, not groups of it: a stream has by= and keys=.")
        return dp._frame, dp._like or library_of(dp._frame)
    what = "public (dpf.public)" if isinstance(dp, PublicFrame) else "a released result"
    raise AlreadyReleased(f"this frame is {what}: a stream is of private rows. Use it directly.")


def _period_axis(time: str, periods: Any) -> Any:
    """Return the axis of the periods."""
    check_column(time)
    if periods is None:
        raise MissingArgument(f"periods must be given: all of them, since they are charged together. {PERIODS_EXAMPLE}")
    size = limits.length(periods)
    if size > MOST_PERIODS:
        raise InvalidArgument(f"periods must be at most {MOST_PERIODS:,}, not {size:,}. Take longer ones.")
    if isinstance(periods, Dates):
        return date_axis(time, periods)
    if not isinstance(periods, (list, tuple, range)):
        raise InvalidType(
            f"periods must be a list, tuple or range that you wrote down, not {shown(periods)}. {PERIODS_EXAMPLE}"
        )
    axis = replace(value_axis(time, periods, "periods"), argument="keys")  # the name in the facts of streams
    if any(value is None for value in axis.values(0)):
        raise InvalidArgument("periods must not hold None: a row without a time is in no period. Leave it out.")
    return axis


def _group_axes(by: Any, keys: Any) -> tuple[Any, ...]:
    """Return the axes of the groups."""
    if by is None:
        if keys is not None:
            raise MissingArgument('by must be given with keys: the columns of the groups. Write by="ward".')
        return ()
    within = list(keys.values()) if isinstance(keys, dict) else [keys]
    if any(isinstance(values, Discovery) for values in within):
        raise InvalidArgument(
            "keys must be declared for a stream: the groups found in one period may differ from those in the next. "
            "Discover them in one release with dpf.discover, and declare these."
        )
    columns = flat_columns(tuple(by) if isinstance(by, (list, tuple)) else (by,))
    axes = limits.axes_made(declared_axes(columns, keys), limits.MOST_CELLS)
    for axis in axes:
        if axis.coding == "dtype":
            raise MissingArgument(
                "keys must be given for a stream: they stay the same in all its periods, whatever the dtype of a frame "
                'says. Write keys=["A", "B"].'
            )
    return axes


def _free_name(keys: Keys) -> str:
    """Return a name for the measured total that is no column of the keys."""
    return next(name for name in ("total", "stream_total", "stream_of_totals") if name not in keys.names)


def _group_names(plan: StreamPlan) -> list[str]:
    labels = Keys(plan.query.keys.axes[1:]).labels()
    columns = [list(values) for values in labels.values()]
    return [", ".join(map(str, row)) for row in zip(*columns, strict=True)] if columns else [""]
