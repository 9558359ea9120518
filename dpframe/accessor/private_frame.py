"""The verbs of a private frame: each makes a Call for a release or a preview (see `_asked`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar, Unpack

from dpframe.accessor.local_questions import LocalQuestions
from dpframe.accessor.options import (
    VERBS_ELSEWHERE,
    CallOptions,
    ContributionsOptions,
    Denoise,
    ModeOptions,
    Noise,
    Number,
    SampledOptions,
    SuggestOptions,
    Within,
    asks,
    is_fixed,
    nearest_of,
    no_item,
    no_verb,
    sorted_out,
    summed,
    undenoised,
)
from dpframe.accessor.quantities import Quantities, axes_of
from dpframe.accessor.released_frame import OF_RESULTS
from dpframe.accessor.several_columns import PairsOfColumns, TablesOfColumns
from dpframe.errors import InvalidArgument, InvalidType, NoProvenance
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import register
from dpframe.frames.columns import height_of, names_of, values_of_keys
from dpframe.frames.kinds import Library, is_frame
from dpframe.ledger.ledger import ledger_for
from dpframe.planning.call import Call, checked_flag
from dpframe.planning.plan import Plan
from dpframe.queries import limits, statistics
from dpframe.queries.contributions import Grouping, UnitGrid, grid_of, of_population
from dpframe.queries.discovery import Discovery, found_axes
from dpframe.queries.keys import Bins, Keys, bin_axes, check_once, group_axes, key_columns, key_names, size_of
from dpframe.queries.limits import check_column
from dpframe.queries.query import Query, option_of
from dpframe.queries.statistics import Contributors, Count, Mode, Ranges, StagedRanges, Statistic
from dpframe.queries.statistics import ranges as sums_of_bins
from dpframe.queries.statistics.ratio import share_of_axes
from dpframe.queries.statistics.statistic import ByKeys, columns_of
from dpframe.release.path import preview, release

if TYPE_CHECKING:
    from dpframe.ledger.ledger import Ledger
    from dpframe.privacy import PrivacyUnit


def flat_columns(by: tuple[Any, ...], *, binned: bool = False) -> tuple[Any, ...]:
    """Return the columns to group by, given separately or as one list; with `binned`, also bins."""
    flat: tuple[Any, ...] = tuple(by[0]) if len(by) == 1 and isinstance(by[0], (list, tuple)) else by
    for column in flat:
        if not (binned and isinstance(column, Bins)):
            check_column(column)
    check_once(key_names(flat))
    return flat


def declared_axes(by: tuple[Any, ...], keys: Any) -> tuple[Any, ...]:
    """Return the axes of declared keys and bins (large axes are made later), or of unknown groups to find."""
    within = keys.values() if isinstance(keys, dict) else [keys] if any(isinstance(item, Bins) for item in by) else []
    if any(isinstance(values, Discovery) for values in within):
        raise InvalidArgument(
            "keys=dpf.discover(...) must stand alone, without bins or declared values of another column: it finds the "
            "combinations of all columns. Write group_by(*columns, keys=dpf.discover(...))."
        )
    if isinstance(keys, Discovery):
        return found_axes(key_columns(by), keys)
    framed = is_frame(keys)
    if framed:
        names_of(keys, "keys")
    size = size_of(by, height_of(keys) if framed else limits.of_keys(keys))
    return limits.axes_or_later(
        size, lambda: group_axes(by, keys, values_of_keys(keys, key_names(by)) if framed else None)
    )


F = TypeVar("F")  # the frame of the results


OF_WHOLE = frozenset({"mode", "top_k", "marginals", "suggest_bounds", "contributions"})  # verbs refused in groups
NO_LOCAL = (
    "local must follow df.dp itself: reports have no groups, and no preview, since each costs its method's epsilon "
    "(float(method.loss)). Write df.dp.local.randomize(...)."
)


class NoLocal(InvalidArgument, AttributeError):
    """An error for ``local`` after `group_by` or `preview`, which do not have it."""


class PrivateFrame(Quantities[F], PairsOfColumns[F], TablesOfColumns[F]):
    """The verbs of a private frame, ``df.dp``.

    Every verb takes the column first and everything else by keyword. ``help(df.dp.count)`` explains its options.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})
    >>> with dpf.Ledger(epsilon=1.0):
    ...     result = people.dp.group_by("ward", keys=["A", "B"]).agg(n=dpf.count(), epsilon=0.5)
    >>> result.columns
    ['ward', 'n', 'n_noisy', 'n_error']
    """

    def __init__(
        self,
        frame: Any,
        axes: tuple[Any, ...] = (),
        answer: Callable[[Call], F] = release,
        like: Library | None = None,
    ) -> None:
        # the axes of the groups so far; the function that answers the Call; the library of the result, if named
        self._frame, self._axes, self._answer, self._like = frame, axes, answer, like

    @asks
    def count(
        self,
        column: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        weight: str | None = None,
        weight_bounds: tuple[float, float] | None = None,
        **options: Unpack[SampledOptions],
    ) -> F:
        """Release the number of rows, or of the present values of a column.

        Parameters
        ----------
        column : str, optional
            Count its values that are neither null nor NaN; without it, count rows.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.
        weight, weight_bounds : str and tuple of two numbers, optional
            A column of weights, such as survey weights, and their bounds: as in `dpframe.count`.

        Returns
        -------
        DataFrame
            One row (one per declared key after `group_by`): ``count``, and ``count_error``, the half-width of the 95%
            interval of its noise (``docs/concepts/errors.md`` explains what it covers). After ``.preview``, a Plan
            instead.

        Raises
        ------
        InvalidArgument, InvalidType, MissingArgument
            If an argument breaks its rule, or the cost is left out.
        UnknownColumn, WrongDtype
            If the schema does not fit the query. Nothing was charged.
        BudgetExceeded, NoLedger
            If too little of the budget remains, or no ledger is given. No row was read.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, None]})
        >>> people.dp.count("age", epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['count', 'count_error']
        """
        statistic = statistics.count(column, where=where, weight=weight, weight_bounds=weight_bounds)
        return self._asked("count", {"count": statistic}, options)

    @asks
    def sum(
        self,
        column: str,
        *,
        bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
        unit_bounds: tuple[float, float] | None = None,
        where: Mapping[str, Any] | None = None,
        weight: str | None = None,
        weight_bounds: tuple[float, float] | None = None,
        **options: Unpack[SampledOptions],
    ) -> F:
        """Release the sum of a column, clipped by value or by unit.

        Parameters
        ----------
        column : str
            A column of numbers. Nulls and NaN add nothing; infinities are clipped like any value.
        bounds : tuple of two numbers, or dict of them by key
            The lower and the upper bound, in the units of the column; from what you know, never from the data. By key,
            as in `dpframe.sum`, after `group_by` of one column.
        unit_bounds : tuple of two numbers
            Instead of `bounds`: bounds of the sum that one unit adds to one group, over any number of rows; `max_rows`
            is not used.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.
        weight, weight_bounds : str and tuple of two numbers, optional
            A column of weights, such as survey weights, and their bounds: as in `dpframe.sum`.

        Returns
        -------
        DataFrame
            As for `count`, with ``COL_sum`` and ``COL_sum_error`` in the units of the column. It raises the same.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"cost": [10.0, 20.0, 30.0]})
        >>> stays.dp.sum("cost", bounds=(0, 100), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['cost_sum', 'cost_sum_error']
        """
        statistic = statistics.sum(
            column, bounds, unit_bounds=unit_bounds, where=where, weight=weight, weight_bounds=weight_bounds
        )
        return self._asked("sum", dict(columns_of(statistic, None)), options)

    @asks
    def mean(
        self,
        column: str,
        *,
        bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
        missing: Literal["drop", "midpoint"] = "drop",
        where: Mapping[str, Any] | None = None,
        weight: str | None = None,
        weight_bounds: tuple[float, float] | None = None,
        **options: Unpack[SampledOptions],
    ) -> F:
        """Release the mean of a column, each value clipped to `bounds`.

        Parameters
        ----------
        column : str
            A column of numbers. Nulls and NaN are left out of numerator and denominator.
        bounds : tuple of two numbers, or dict of them by key
            As for `sum`. The result never lies outside them.
        missing : {"drop", "midpoint"}
            Whether missing values are left out, or count as the middle of the bounds.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.
        weight, weight_bounds : str and tuple of two numbers, optional
            A column of weights, such as survey weights, and their bounds: as in `dpframe.mean`.

        Returns
        -------
        DataFrame
            As for `count`, with ``COL_mean`` and ``COL_mean_error``. It raises the same. Under Gaussian noise, the
            cost is split between a centered sum and a count of present values. Pure noise has one vector for both.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> people.dp.mean("age", bounds=(0, 120), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['age_mean', 'age_mean_error']
        """
        statistic = statistics.mean(
            column, bounds, missing=missing, where=where, weight=weight, weight_bounds=weight_bounds
        )
        return self._asked("mean", dict(columns_of(statistic, None)), options)

    @asks
    def histogram(
        self,
        column: str | Sequence[str],
        *,
        bins: Any = None,
        range: Any = None,
        categories: Any = None,
        outside: Literal["drop", "clip"] = "drop",
        normalize: bool = False,
        ranges: bool = False,
        **options: Unpack[CallOptions],
    ) -> F:
        """Release the number of rows in each bin of one or several columns.

        Parameters
        ----------
        column : str or list of str
            One column, or several for a grid.
        bins : sequence of edges, int, or str
            Edges of numbers, dates, datetimes or durations; half-open, the last bin closed, exactly as in
            ``numpy.histogram``. A number of bins needs `range`. So does a step of dates: ``"1d"``, ``"1w"`` (weeks from
            Monday), ``"1mo"``, ``"1q"`` or ``"1y"``, and for datetimes also ``"15m"``, ``"30m"``, ``"1h"``, ``"3h"``,
            ``"6h"`` or ``"12h"``; its last bin is half-open too. For several columns, a list of these. Intervals of
            pandas that are closed on the left are edges too.
        range : pair
            The first and the last edge of equal bins. A step must begin at each of the two.
        categories : list
            Instead of bins, for strings and other values of one column. A Polars Enum declares its own.
        outside : {"drop", "clip"}
            Whether values outside the edges are left out or counted in the end bins.
        normalize : bool
            Release shares instead of counts: shares of the rows that are in some bin (of each group).
        ranges : bool
            Draw the noise for sums of neighboring bins (of one column, or rectangles of two), which then err far less
            than sums of a plain histogram. With ``denoise=None`` or ``within=``, the errors in a preview and in
            ``.dp.errors()`` hold for any such sum. Otherwise, many bins are measured twice: each bin, then sums of
            bins that are still uncertain. `denoise` must be ``"auto"`` or None.

        Returns
        -------
        DataFrame
            One row per bin, row-major: ``COL_left``, ``COL_right`` (``COL`` for categories), ``count``,
            ``count_noisy`` (the unbiased value) and ``count_error`` (half-width of its 95% interval). With `normalize`,
            ``share`` (at least 0; they add up to 1), ``share_noisy`` (the quotient of noisy counts) and
            ``share_error``. ``docs/concepts/errors.md`` explains what errors cover. It raises what `count` raises.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> ages = people.dp.histogram("age", bins=range(0, 101, 20), epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
        >>> ages["age_left"].to_list()
        [0.0, 20.0, 40.0, 60.0, 80.0]
        """
        columns = len(column) if isinstance(column, (list, tuple)) else 1
        size = limits.of_bins(columns, bins, categories)
        axes = limits.axes_or_later(size, lambda: bin_axes(column, bins, range, categories, outside))
        shares, sums = checked_flag("normalize", normalize), checked_flag("ranges", ranges)
        if sums:
            sum_options, shape = summed(options, normalize=shares), sums_of_bins.shape_of(axes)
            fixed = bool(self._axes) or is_fixed(options)
            counted = Ranges(shape) if fixed else StagedRanges(shape)
            return self._inside(axes)._asked("histogram", {"count": counted}, sum_options)
        if shares:
            return self._inside(axes)._asked("histogram", {"share": share_of_axes(column, axes)}, undenoised(options))
        return self._inside(axes)._asked("histogram", {"count": Count()}, options)

    @asks
    def mode(self, column: str, *, categories: Any = None, **options: Unpack[ModeOptions]) -> F:
        """Release the most common of declared values, without its count.

        Parameters
        ----------
        column : str
            A column of strings, numbers, dates or other values that a group-by can have.
        categories : list
            The values to choose from, from what you know and never from the data; None among them stands for missing
            values. A Polars Enum declares its own.

        Returns
        -------
        DataFrame
            One row with one column, named like `column`: the chosen value. After ``.preview``, a Plan instead: its
            error is how far the count of the chosen value may be below the largest.

        Raises
        ------
        InvalidArgument, InvalidType, MissingArgument
            If an argument breaks its rule, or after `group_by`, since one unit changes many groups.

        Notes
        -----
        The choice goes by exact counts, is purely epsilon-private and is drawn exactly. It is by permute-and-flip
        (McKenna and Sheldon 2020) if the call is charged its epsilon. It is by the exponential mechanism (McSherry and
        Talwar 2007), whose losses have a bounded range, if the ledger charges it by its curve. See `PermuteAndFlip` and
        `ExponentialMechanism`. Tied values have the same chance; in an empty frame, all values.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A"] * 900 + ["B"] * 40})
        >>> ward = stays.dp.mode("ward", categories=["A", "B", "C"], epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
        >>> ward["ward"].to_list()
        ['A']
        """
        if self._axes:
            raise InvalidArgument(
                "mode must be called on the whole frame, not per group: one unit may change many groups. "
                "Use group_by(...).histogram(column, categories=[...]) and take the largest count."
            )
        return self._inside(axes_of(column, categories))._asked(
            "mode", {f"{column}_shortfall": Mode()}, {"denoise": None, **options}
        )

    @asks
    def contributions(
        self, by: str | Sequence[str] | None = None, keys: Any = None, **options: Unpack[ContributionsOptions]
    ) -> F:
        """Release how many units have how many rows, to choose contribution bounds.

        Parameters
        ----------
        by : str or list of str, optional
            The columns by which later calls group. Without it, all rows are one group.
        keys : list, tuple, range, dict or frame, optional
            The groups, declared as in `group_by`: other rows are in no group. Without it, the distinct values of `by`
            are the groups, a missing value included.

        Returns
        -------
        DataFrame
            One row per cell of a grid: ``rows_left`` and ``rows_right``, the rows of a unit in all groups together;
            ``groups_left`` and ``groups_right``, the number of their groups; ``count``, the number of such units, with
            ``count_noisy`` and ``count_error`` as in a histogram. A cell ends below its right edge: 1, 2, 3 to 4, 5 to
            8, ... The last one, up to 2**20, holds everything above too. If the number of groups is public, the grid
            ends with it. ``.dp.suggest(epsilon=...)`` of the result suggests bounds.

        Raises
        ------
        InvalidArgument
            If each row is a unit, or after `group_by`. Otherwise as `count`.

        Notes
        -----
        A unit is in one cell or in none, whatever its rows are. So no bounds and no weights are needed, and the
        sensitivity is 1 (under replace 2 or sqrt 2, as of a histogram of rows).

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> visits = pl.DataFrame({"patient": [1, 1, 2] * 500, "ward": ["A", "B", "A"] * 500})
        >>> ledger = dpf.Ledger(epsilon=1, unit="patient")
        >>> grid = visits.dp.contributions(by="ward", keys=["A", "B", "C"], epsilon=0.5, ledger=ledger)
        >>> grid.height, grid.columns[:5]
        (63, ['rows_left', 'rows_right', 'groups_left', 'groups_right', 'count'])
        """
        if self._axes:
            raise InvalidArgument(
                "contributions must be called on the whole frame, not per group: it counts the groups of each unit. "
                'Name their columns as by=, as in contributions(by="ward", epsilon=0.1).'
            )
        if isinstance(keys, Discovery):
            raise InvalidArgument(
                "keys must be declared or left out of contributions, whose groups are the distinct values of `by`, and "
                "not found. Leave keys out."
            )
        if by is None and keys is not None:
            raise InvalidArgument('keys must come with by=, the columns that they are of, as in by="ward".')
        columns = flat_columns(() if by is None else (by,))
        declared = (
            None if keys is None else Keys(limits.axes_made(declared_axes(columns, keys), options.get("max_cells")))
        )
        grouping = Grouping(columns, declared)
        return self._inside(grid_of(grouping))._asked("contributions", {"count": Contributors()}, options, grouping)

    @asks
    def suggest_bounds(
        self,
        *columns: str,
        statistic: Literal["mean", "sum"] = "mean",
        planned: Mapping[str, Any] = MappingProxyType({"epsilon": 0.5}),
        whole: bool = False,
        **options: Unpack[SuggestOptions],
    ) -> F:
        """Release candidates for unknown bounds, with the share that each clips.

        Parameters
        ----------
        *columns : str
            Columns of numbers, or of dates and datetimes, but not both. Several share the cost equally.
        statistic : {"mean", "sum"}
            The statistic that needs the bounds. ``"sum"`` is for numbers.
        planned : dict
            The cost of that statistic: ``epsilon``, and optionally ``delta`` and ``mechanism``.
        whole : bool
            Declare all values as whole numbers: then the grid has no finer bins.

        Returns
        -------
        DataFrame
            For each column 20 candidates, the best first: ``column`` (if several), ``lower`` and ``upper`` (for dates
            the first and the last day of a month); ``clipped``, the share of values beyond them, with the ends
            ``clipped_low`` and ``clipped_high``, which hold for all bounds of a column together with 95%; ``noise``,
            the margin of error of the planned statistic (of a mean midway between them); ``total_error``, the sum of
            `noise` and of what clipping removes. With a privacy unit, the shares are of rows weighted by `max_rows`.

        Warns
        -----
        BoundsWarning
            If the result is too noisy to recommend any bounds: the best ones may clip more than half of the values. The
            message names a sufficient epsilon. Or if most values lie beyond the grid.

        Raises
        ------
        InvalidArgument
            After `group_by`. Otherwise as `count`.

        Notes
        -----
        It counts the values in each bin of one public grid: 0, powers of two from 2**-10 to 2**40 split into four, and
        the same below 0; for dates the months from 1900 to 2100. ``total_error`` is an estimate, which assumes that
        values are in the middle of their bins. Beyond the last bin that exceeds the noise, it assumes as many values as
        the noise may hide, close to it. `clipped_high` is the most there may be; how large they are remains unknown.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"income": [float(i % 900) for i in range(90_000)]})
        >>> bounds = people.dp.suggest_bounds("income", epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
        >>> bounds.columns
        ['lower', 'upper', 'clipped', 'clipped_low', 'clipped_high', 'noise', 'total_error']
        >>> bounds.height, bounds["lower"][0], bounds["upper"][0] in (1024.0, 1280.0, 1536.0)
        (20, 0.0, True)
        """
        if self._axes:
            raise InvalidArgument(
                "suggest_bounds must be called on the whole frame, not per group: all groups share one pair of bounds. "
                'Write df.dp.suggest_bounds("income", epsilon=0.05).'
            )
        asked = statistics.suggested_bounds(columns, statistic, planned, whole)
        return self._asked("suggest_bounds", {"bounds": asked}, {"denoise": None, **options})

    if TYPE_CHECKING:  # SampledOptions, and statistics under any other name, which Unpack[...] cannot express

        def agg(
            self,
            *statistics: Statistic | Mapping[str, Statistic],
            epsilon: Number | Sequence[Number] | None = ...,
            delta: Number | None = ...,
            share: Number | None = ...,
            within: Within | Sequence[Within] | None = ...,
            confidence: float | None = ...,
            size: int | None = ...,
            weights: Mapping[str, float] | None = ...,
            mechanism: Noise = ...,
            denoise: Denoise = ...,
            keep_noisy: bool = ...,
            rollup: bool = ...,
            cube: bool = ...,
            order: bool | str | None = ...,
            graph: Any = ...,
            population: bool = ...,
            ledger: Ledger | None = ...,
            unit: PrivacyUnit | str | Sequence[str] | None = ...,
            max_rows: int | None = ...,
            max_groups: int | None = ...,
            label: str | None = ...,
            snapshot: str | None = ...,
            max_cells: int = ...,
            checks: Literal["auto"] | bool | Number = ...,
            memory: int | str | None = ...,
            progress: bool | None = ...,
            **named: Statistic,
        ) -> F:
            """Release several statistics in one call, at one cost."""

    else:

        @asks
        def agg(self, *statistics: Statistic | Mapping[str, Statistic], **named: Statistic) -> F:
            """Release several statistics in one call, at one cost.

            Parameters
            ----------
            *statistics : Count, Sum, Mean or other statistics, or one dict of them
                Made by ``dpf.count``, ``dpf.sum``, ``dpf.mean`` and so on. They get their default names.
            **named
                Statistics by the name of their output column. If the name is that of an option, use the dict.

            Returns
            -------
            DataFrame
                One row per declared key. For each statistic ``NAME``, ``NAME_noisy`` if denoised, and ``NAME_error``
                (``docs/concepts/errors.md`` explains what it covers).

            Examples
            --------
            >>> import dpframe as dpf, polars as pl
            >>> people = pl.DataFrame({"age": [31, 45, 62]})
            >>> people.dp.agg(n=dpf.count(), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
            ['n', 'n_error']
            """
            named_statistics, options = sorted_out(statistics, named)
            return self._asked("agg", named_statistics, options)

    @trimmed
    def group_by(self, *by: str | Bins | Sequence[str | Bins], keys: Any = None, **others: Never) -> PrivateFrame[F]:
        """Group by declared columns or bins, and release statistics per group.

        Parameters
        ----------
        *by : str or dpf.bins
            The columns to group by, and bins of columns: ``dpf.bins("age", [0, 18, 65, 120])``.
        keys : list, tuple, range, dpf.dates, dict, frame or Discovery
            The declared groups of the named columns: values of one column, a dict of values per column (their
            product), or a frame of the allowed combinations. None among them is the group of rows whose key is missing.
            `dpframe.REST` as the last key is the group of all other rows. For dates,
            ``dpf.dates("2025-01-06", "2025-12-29", every="1w")``. A single Polars Enum declares its own keys. For
            unknown groups, `dpframe.discover` alone, without declared keys or bins, finds those of many units.
        **others
            Refused: options belong to the verb that follows.

        Returns
        -------
        PrivateFrame
            It has the same verbs. Their results have one row per declared key, in the order of `keys`; unknown groups
            that were found are in the order of their values. It raises InvalidArgument, InvalidType or MissingArgument
            if an argument breaks its rule.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"ward": ["A", "B", "A"]})
        >>> wards = people.dp.group_by("ward", keys=["A", "B", "C"]).count(epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
        >>> wards["ward"].to_list()
        ['A', 'B', 'C']
        """
        for name in others:
            if name in SampledOptions.__annotations__:
                raise InvalidType(
                    f"{name} is not an argument of group_by, but of the question after it: "
                    f"group_by(...).count({name}=...)."
                )
            raise InvalidType(f"{name} is not an argument of group_by. {nearest_of(name, ['keys'])}")
        return self._inside(declared_axes(flat_columns(by, binned=True), keys))

    @property
    def preview(self) -> PrivateFrame[Plan]:
        """Preview the same verbs: cost and expected errors, without reading rows."""
        answer: Callable[[Call], Any] = preview  # it returns a PlanTable for several costs
        return PrivateFrame(self._frame, self._axes, answer, self._like)

    def _inside(self, axes: tuple[Any, ...]) -> PrivateFrame[F]:
        """Return the same frame, with a row in its results for each place of these axes too."""
        return PrivateFrame(self._frame, (*self._axes, *axes), self._answer, self._like)

    @property
    def local(self) -> LocalQuestions[F]:
        """Randomize single values, row by row (local differential privacy)."""
        if not self._is_whole:
            raise NoLocal(NO_LOCAL)
        return LocalQuestions(self._frame)

    @property
    def _is_whole(self) -> bool:
        """True for ``df.dp`` itself, without groups and not a preview."""
        return not self._axes and self._answer is release

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._refused]

    @property
    def _refused(self) -> frozenset[str]:
        """The verbs that are refused here: in groups, the verbs of the whole frame."""
        return (OF_WHOLE if self._axes else frozenset()) | (set() if self._is_whole else {"local"})

    @property
    def _offered(self) -> register.Verbs:
        """The verbs that are available here, by title."""
        of_title = {
            title: {name: line for name, line in verbs.items() if name not in self._refused}
            for title, verbs in register.OF_FRAMES.items()
        }
        return {title: verbs for title, verbs in of_title.items() if verbs}

    def _asked(self, verb: str, statistics: dict[str, Statistic], options: Any, grouping: Grouping | None = None) -> F:
        """Make the Query and the Call of a verb, and return a released frame, or the plan of a preview."""
        axes = limits.axes_made(self._axes, options.get("max_cells"))
        keys = Keys(axes) if grouping is None else UnitGrid(axes, grouping)
        rollup = checked_flag("rollup", options.get("rollup", False))
        cube = checked_flag("cube", options.get("cube", False))
        if checked_flag("population", options.get("population", False)):
            statistics = {name: of_population(name, statistic) for name, statistic in statistics.items()}
        each = ((name, one.of_keys(keys) if isinstance(one, ByKeys) else one) for name, one in statistics.items())
        query = Query(verb, keys, tuple(each), option_of(rollup, cube))
        with_default = {"denoise": "auto" if self._axes else None, **options}
        return self._answer(Call.of(self._frame, query, with_default, like=self._like))

    if not TYPE_CHECKING:  # so that a type checker reports a mistyped verb

        def __getitem__(self, name: Any) -> Any:
            raise InvalidType(no_item(name))

        def __getattr__(self, name: str) -> Any:
            if name in OF_RESULTS and name not in VERBS_ELSEWHERE:
                raise without_provenance()
            if name == "local":  # Python calls this if the property `local` raises
                raise NoLocal(NO_LOCAL)
            raise no_verb(name, (verb for verb in dir(type(self)) if not verb.startswith("_")))

    def __repr__(self) -> str:
        return register.in_terminal(self._title(), self._offered)

    def _repr_html_(self) -> str:
        return register.in_notebook(self._title(), self._offered)

    def _title(self) -> str:
        """Return the title: a private frame, its groups and the protected unit, without facts about its rows."""
        what = "preview of .dp of a private frame" if self._answer is not release else ".dp of a private frame"
        columns = ", ".join(name for axis in self._axes for name in axis.columns)
        groups = f" in groups of {columns}" if self._axes else ""
        return f"{what}{groups}; {register.protected(ledger_for(None))}"


for _chained in (PrivateFrame.group_by, vars(PrivateFrame)["preview"].fget):
    _chained.__annotations__["return"] = PrivateFrame  # Jedi reads this on Tab, and reads no class with a parameter


def without_provenance() -> NoProvenance:
    """Return the error for a frame without provenance where a result is required."""
    return NoProvenance(
        "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. Use methods that "
        "keep it: .dp.filter, .dp.sort, .dp.head, .dp.select, .dp.relabel, .dp.wide or dpf.concat."
    )
