"""The verbs for numbers of units, shares, variances, quantiles, distribution functions and most common values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, Unpack

from dpframe.accessor.options import CallOptions, EcdfOptions, SampledOptions, TopKOptions, asks
from dpframe.errors import InvalidArgument, MissingArgument
from dpframe.exact import checked_whole
from dpframe.planning.call import checked_flag
from dpframe.queries import limits, statistics
from dpframe.queries.contributions import Grouping
from dpframe.queries.discovery import Discovery, found_axes
from dpframe.queries.keys import Keys, category_axis, key_columns, running_axes
from dpframe.queries.statistics import Ecdf, NUnits, Statistic, TopK
from dpframe.queries.statistics.statistic import columns_of

F = TypeVar("F")  # the frame of the results


class Quantities(Generic[F]):
    """The verbs of `PrivateFrame` for numbers of units, spread and ranks."""

    _axes: tuple[Any, ...]

    @asks
    def n_units(
        self, column: str | None = None, *, where: Mapping[str, Any] | None = None, **options: Unpack[SampledOptions]
    ) -> F:
        """Release the number of units, such as people, with a row or a value.

        Parameters
        ----------
        column : str, optional
            Count the units with a value in it that is neither null nor NaN; without it, the units with a row.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            As for `count`, with ``n_units`` and ``n_units_error``. A unit in more groups than `max_groups` counts for
            less in each. It raises what `count` raises.

        Notes
        -----
        A unit in t groups counts floor(2**20 min(1, (K / t)**(1/p))) / 2**20 in each. K is the smaller of `max_groups`
        and the number of groups. For add-remove neighbors, the sensitivity is K**(1/p), whatever the number of rows
        (``docs/assurance/privacy.md``). With several groups, replace neighbors need more: a preview shows the
        ``sensitivity`` in its ``to_frame()``. A ledger that protects each row is refused, since rows are not people:
        use `count`.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> visits = pl.DataFrame({"patient": [1, 1, 2]})
        >>> visits.dp.n_units(epsilon=0.5, ledger=dpf.Ledger(epsilon=1, unit="patient")).columns
        ['n_units', 'n_units_error']
        """
        return self._asked("n_units", {"n_units": statistics.n_units(column, where=where)}, options)

    @asks
    def n_distinct(
        self,
        column: str,
        *,
        max_values: int | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> F:
        """Release the number of distinct values, at most the true number.

        Parameters
        ----------
        column : str
            A column of any dtype that `group_by` takes. Nulls and NaN are no values; 0.0 and -0.0 are one.
        max_values : int
            The largest number of values of `column` that one unit supports in each group. A larger bound leaves out
            less and needs more noise. Optional if each row is a unit: a row has one value.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            As for `count`, with ``COL_n_distinct`` and ``COL_n_distinct_error``. It raises what `count` raises, and
            MissingArgument without `max_values` if a unit can have several rows.

        Notes
        -----
        It counts the most values that can each be given a unit that has it, with at most `max_values` for one unit: a
        maximum flow (Knop and Steinke 2023). So the number is at most that of all distinct values, and less if only
        units with many values have some of them; the error covers the noise alone. It is exact if each row is a unit. A
        unit in more than `max_groups` groups counts in that many of them, drawn at random; `max_rows` is not used. For
        add-remove neighbors, the sensitivity is ``max_values * K**(1/p)``, K the smaller of `max_groups` and the number
        of groups. With several groups, replace neighbors need more: a preview shows the ``sensitivity`` in its
        ``to_frame()``. The frame must be in memory, or a Polars LazyFrame. The time depends on which units have which
        values (``docs/assurance/limits.md``).

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> baskets = pl.DataFrame({"buyer": [1, 1, 2], "product": ["tea", "milk", "tea"]})
        >>> ledger = dpf.Ledger(epsilon=1, unit="buyer")
        >>> baskets.dp.n_distinct("product", max_values=2, epsilon=0.5, ledger=ledger).columns
        ['product_n_distinct', 'product_n_distinct_error']
        """
        statistic = statistics.n_distinct(column, max_values=max_values, where=where)
        return self._asked("n_distinct", dict(columns_of(statistic, None)), options)

    @asks
    def proportion(
        self,
        column: str,
        *,
        value: Any = None,
        where: Mapping[str, Any] | None = None,
        weight: str | None = None,
        weight_bounds: tuple[float, float] | None = None,
        **options: Unpack[SampledOptions],
    ) -> F:
        """Release the share of values that are true, or that are `value`.

        Parameters
        ----------
        column : str
            A Boolean column, or one of numbers, each clipped to [0, 1]. With `value`, a column of any dtype that
            `group_by` takes. Nulls and NaN are left out.
        value : str, number, bool, date, datetime, timedelta or time, optional
            Release the share of this value. It is compared like a declared key.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.
        weight, weight_bounds : str and tuple of two numbers, optional
            A column of weights, such as survey weights, and their bounds: as in `dpframe.proportion`.

        Returns
        -------
        DataFrame
            As for `count`, with ``COL_proportion`` and ``COL_proportion_error``. It raises the same.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"smoker": [True, False, None], "drug": ["A", "B", None]})
        >>> people.dp.proportion("smoker", epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['smoker_proportion', 'smoker_proportion_error']
        >>> people.dp.proportion("drug", value="A", epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['drug_proportion', 'drug_proportion_error']
        """
        statistic = statistics.proportion(column, value, where=where, weight=weight, weight_bounds=weight_bounds)
        return self._asked("proportion", dict(columns_of(statistic, None)), options)

    @asks
    def variance(
        self,
        column: str,
        *,
        bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
        ddof: int = 1,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> F:
        """Release the variance of a column, each value clipped to `bounds`.

        Parameters
        ----------
        column : str
            A column of numbers. Nulls and NaN are left out.
        bounds : tuple of two numbers, or dict of them by key
            As for `sum`. The noise grows with the square of their distance.
        ddof : {1, 0}
            Subtracted from the number of values in the divisor.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            As for `count`, with ``COL_var`` and ``COL_var_error``. It raises the same. If the noisy number of values is
            below 2, the result is the largest variance that the bounds allow.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> people.dp.variance("age", bounds=(0, 120), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['age_var', 'age_var_error']
        """
        statistic = statistics.variance(column, bounds, ddof=ddof, where=where)
        return self._asked("variance", dict(columns_of(statistic, None)), options)

    @asks
    def std(
        self,
        column: str,
        *,
        bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
        ddof: int = 1,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> F:
        """Release the standard deviation of a column, clipped to `bounds`.

        Parameters
        ----------
        column, bounds, ddof
            As for `variance`.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            As for `variance`, with ``COL_std`` and ``COL_std_error``.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> people.dp.std("age", bounds=(0, 120), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['age_std', 'age_std_error']
        """
        statistic = statistics.std(column, bounds, ddof=ddof, where=where)
        return self._asked("std", dict(columns_of(statistic, None)), options)

    @asks
    def median(
        self,
        column: str,
        *,
        bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
        step: float | None = None,
        candidates: Sequence[float] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> F:
        """Release the median of a column, one of declared candidates.

        Parameters
        ----------
        column, bounds, step, candidates, where
            As for `quantile`.

        Returns
        -------
        DataFrame
            As for `quantile`, with the one column ``COL_median`` instead of ``COL_q0.5``.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> people.dp.median("age", bounds=(0, 120), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['age_median', 'age_median_error', 'age_median_low', 'age_median_high']
        """
        statistic = statistics.median(column, bounds=bounds, step=step, candidates=candidates, where=where)
        return self._asked("median", dict(columns_of(statistic, None)), options)

    @asks
    def quantile(
        self,
        column: str,
        *,
        q: float | Sequence[float] | None = None,
        bounds: tuple[float, float] | Mapping[Any, tuple[float, float]] | None = None,
        step: float | None = None,
        candidates: Sequence[float] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> F:
        """Release quantiles of a column, each one of declared candidates.

        Parameters
        ----------
        column : str
            A column of numbers. Nulls and NaN are left out; other values are clipped and move to the nearest candidate.
        q : float or list of floats
            Above 0 and below 1. All share one release, and the results are always in order.
        bounds : tuple of two numbers, or dict of them by key
            The first and the last candidate, from what you know and never from the data. After `group_by` of one column
            of declared keys, a dict gives each group its own candidates: ``{"A": (0, 10), "B": (0, 100)}``.
        step : float, optional
            The distance between candidates. By default 1 if both bounds are whole and at most 4,096 apart, otherwise a
            thousandth of their distance.
        candidates : list of numbers, optional
            Instead of `bounds` and `step`: increasing numbers, at most 2**14 of them.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            As for `count`. For each q ``COL_q0.25``, with ``_error``, and the ends of its 95% interval, ``_low`` and
            ``_high``. It raises what `count` raises.

        Notes
        -----
        Quantiles are read from noisy running counts; see `dpframe.quantile`. With ``mechanism="exponential"``, one
        quantile of the whole frame is chosen instead, by permute-and-flip or the exponential mechanism, with scores
        that stay valid if values are tied. It is nearer to the true one in ranks (the plan states by how much), but the
        distance in values is unknown: its interval holds all candidates. `docs/assurance/privacy.md` has the proof.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> people.dp.quantile("age", q=0.9, bounds=(0, 120), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['age_q0.9', 'age_q0.9_error', 'age_q0.9_low', 'age_q0.9_high']
        """
        statistic = statistics.quantile(column, q=q, bounds=bounds, step=step, candidates=candidates, where=where)
        return self._asked("quantile", dict(columns_of(statistic, None)), options)

    @asks
    def ecdf(
        self,
        column: str,
        *,
        bins: Any = None,
        range: Any = None,
        **options: Unpack[EcdfOptions],
    ) -> F:
        """Release a distribution function: the share of values up to each edge.

        Parameters
        ----------
        column : str
            A column of numbers, dates, datetimes or durations. Missing values are left out.
        bins : sequence of edges, int, or str
            As for `histogram`, but each bin contains its *right* edge. Values below the first edge count in all rows of
            the result. Values above the last edge count in none, but in the divisor. A number or a step needs `range`.
        range : pair
            The first and the last edge of equal bins.

        Returns
        -------
        DataFrame
            One row per bin (of each group): ``COL_left``; ``COL_right``; ``ecdf``, the share of values that are at most
            ``COL_right`` (within [0, 1], never falling; the last is below 1 if values are above it); ``ecdf_noisy``,
            the quotient of noisy counts; and ``ecdf_error``, the half-width of its 95% interval (see
            ``docs/concepts/errors.md``). It raises what `count` raises.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> people.dp.ecdf("age", bins=range(0, 101, 20), epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['age_left', 'age_right', 'ecdf', 'ecdf_noisy', 'ecdf_error']
        """
        size = limits.of_bins(1, bins, None)
        later = limits.axes_or_later(size, lambda: running_axes(column, bins, range))
        axes = limits.axes_made(later, options.get("max_cells"))
        with_default = {"denoise": None, **options}
        return self._inside(axes)._asked("ecdf", {"ecdf": Ecdf(column, Keys(axes).shown.cells)}, with_default)

    @asks
    def top_k(
        self,
        column: str,
        *,
        k: int | None = None,
        categories: Any = None,
        counts: bool = False,
        **options: Unpack[TopKOptions],
    ) -> F:
        """Release the `k` most common of declared values, in order.

        Parameters
        ----------
        column : str
            A column of strings, numbers, dates or other values that a group-by can have.
        k : int
            The number of values; at most the number of categories.
        categories : list or Discovery
            As for `mode`: the values to choose from, from what you know and never from the data. If they are unknown,
            `dpframe.discover`: the values with the most units among those that it finds.
        counts : bool
            Whether to release the noisy counts of these values too.

        Returns
        -------
        DataFrame
            `k` rows with the column `column`. With `counts` also ``count`` and ``count_error``
            (``docs/concepts/errors.md``), the half-width of an interval that holds with 95% for all categories
            together, and so for the chosen ones. With `dpframe.discover` at most `k` rows, always with the noisy
            numbers of units by which they were found. After ``.preview``, a Plan instead, with the way of choosing.

        Raises
        ------
        InvalidArgument, InvalidType, MissingArgument
            If an argument breaks its rule, such as `k` above the number of categories, or after `group_by`.

        Notes
        -----
        There are two ways: to sort the noisy counts of all categories, or to choose one place after the other
        (peeling), each by permute-and-flip or the exponential mechanism among the remaining values. With `counts`, they
        are always sorted. Otherwise the plan takes the way with the smaller variance, from public facts alone: peeling
        if a unit may be in many categories, since it does not depend on `max_groups`; sorting if `k` is large. If noisy
        counts are equal, the category that was declared first comes first. `docs/assurance/privacy.md` has the proof.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A"] * 900 + ["B"] * 400})
        >>> top = stays.dp.top_k("ward", k=2, categories=["A", "B", "C"], epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> top["ward"].to_list()
        ['A', 'B']
        """
        if self._axes:
            raise InvalidArgument(
                "top_k must be called on the whole frame, not per group: one unit may change many groups. "
                "Use group_by(...).histogram(column, categories=[...]) and sort its counts."
            )
        if k is None:
            raise MissingArgument('k must be given: how many values, as in top_k("ward", k=10, categories=[...]).')
        asked = TopK(checked_whole("k", k, 1, 2**53, "a whole number above 0"), checked_flag("counts", counts))
        if isinstance(categories, Discovery):
            found = found_axes(key_columns((column,)), replace(categories, largest=asked.k))
            return self._inside(found)._asked("top_k", {"count": NUnits(or_rows=True)}, {"denoise": None, **options})
        axes = axes_of(column, categories)
        name = "count" if asked.counts else f"{column}_shortfall"
        return self._inside(axes)._asked("top_k", {name: asked}, {"denoise": None, **options})

    def _inside(self, axes: Any) -> Self:
        """Return the same verbs in each cell of further axes."""
        raise NotImplementedError

    def _asked(self, verb: str, statistics: dict[str, Statistic], options: Any, grouping: Grouping | None = None) -> F:
        raise NotImplementedError


def axes_of(column: str, categories: Any) -> Any:
    """Return the axis of the declared options of a choice; a large axis is made later."""
    return limits.axes_or_later(limits.of_bins(1, None, categories), lambda: (category_axis(column, categories),))
