"""The verbs of several columns: covariances and correlations of pairs, and tables of columns (marginals)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Unpack

from dpframe.accessor.options import MarginalsOptions, PairOptions, asks
from dpframe.errors import InvalidArgument
from dpframe.queries import limits, statistics
from dpframe.queries.contributions import Grouping
from dpframe.queries.statistics import Statistic

F = TypeVar("F")  # the frame of the results


class PairsOfColumns(Generic[F]):
    """The verbs of `PrivateFrame` for pairs of columns."""

    @asks
    def covariance(
        self,
        columns: Sequence[str],
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        ddof: int = 1,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[PairOptions],
    ) -> F:
        """Release the covariance of each pair of columns, clipped to bounds.

        Parameters
        ----------
        columns : list of str
            Two or more columns of numbers. A row in which one of them is null or NaN is left out.
        bounds : dict of pairs of numbers by column
            The lower and the upper bound of each column, from what you know and never from the data.
        ddof : {1, 0}
            Subtracted from the number of rows in the divisor.
        where : dict, optional
            Use only rows with these values, as in `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            One row per pair (of each group): ``column``, ``other``, ``covariance``, ``covariance_noisy`` (from the
            noisy numbers of this pair alone) and ``covariance_error`` (half-width of the 95% interval around
            ``covariance``, which ``docs/concepts/errors.md`` explains). It raises what `count` raises.

        Notes
        -----
        Under Gaussian noise, the covariances form a matrix without negative eigenvalues: see `dpframe.covariance`.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62], "cost": [100.0, 150.0, 120.0]})
        >>> bounds = {"age": (0, 120), "cost": (0, 5_000)}
        >>> people.dp.covariance(["age", "cost"], bounds=bounds, epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['column', 'other', 'covariance', 'covariance_noisy', 'covariance_error']
        """
        asked = statistics.covariance(columns, bounds, ddof=ddof, where=where)
        return self._asked("covariance", {"covariance": asked}, options)

    @asks
    def correlation(
        self,
        columns: Sequence[str],
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[PairOptions],
    ) -> F:
        """Release the correlation of each pair of columns, clipped to bounds.

        Parameters
        ----------
        columns, bounds, where
            As for `covariance`.

        Returns
        -------
        DataFrame
            As for `covariance`, with ``correlation`` (within [-1, 1]; 0 if a noisy variance is not positive),
            ``correlation_noisy`` and ``correlation_error``.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62], "cost": [100.0, 150.0, 120.0]})
        >>> bounds = {"age": (0, 120), "cost": (0, 5_000)}
        >>> people.dp.correlation(["age", "cost"], bounds=bounds, epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
        ['column', 'other', 'correlation', 'correlation_noisy', 'correlation_error']
        """
        asked = statistics.correlation(columns, bounds, where=where)
        return self._asked("correlation", {"correlation": asked}, options)

    def _asked(self, verb: str, statistics: dict[str, Statistic], options: Any, grouping: Grouping | None = None) -> F:
        raise NotImplementedError


class TablesOfColumns(Generic[F]):
    """The verb of `PrivateFrame` for tables of columns (marginals)."""

    _axes: tuple[Any, ...]

    @asks
    def marginals(
        self,
        columns: Sequence[str],
        *,
        keys: Mapping[str, Any] | None = None,
        degree: int = 2,
        objective: Literal["equal", "cells"] = "equal",
        **options: Unpack[MarginalsOptions],
    ) -> F:
        """Release all tables of up to `degree` columns (marginals), consistently.

        Parameters
        ----------
        columns : list of str
            The columns, at most 64. A row with a missing or undeclared value in one of them is in no table.
        keys : dict of lists by column
            The values of each column, from what you know and never from the data, without None. Leave it out if all
            columns are Polars Enums, which declare their own. Cut numbers into bins of your own choice first.
        degree : int
            The number of columns of the largest tables: 2 for all two-way tables, with their margins and the total.
        objective : {"equal", "cells"}
            The sum that is minimized: of the variances of one cell of each table, or of all cells. With ``"cells"``,
            large tables have less noise, and small ones more.

        Returns
        -------
        DataFrame
            One long frame. It has a column for each of `columns`, with null for "all" if a table does not have that
            column; then ``count``, ``count_noisy`` (the unbiased value) and ``count_error`` (half-width of its 95%
            interval, the same for all cells of a table; see ``docs/concepts/errors.md``). The total comes first, then
            tables of one column, of two, and so on, in the order of `columns` and of their keys. Without denoising,
            counts are not whole numbers, and some are below 0. With ``denoise="auto"``, tables of up to two columns
            still add up and have no negative cell. ``"nonnegative"`` raises each negative cell to 0, so tables no
            longer add up. It raises what `count` raises.

        Notes
        -----
        ResidualPlanner (Xiao, He, Zhang and Kifer 2023) in integers: it measures what each table adds to the smaller
        ones. The noise is Gaussian, so a delta is needed. If a unit has more than `max_rows` rows (with declared values
        in all columns), each of them has a lower weight in every table; `max_groups` is not used.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"sex": ["f", "m", "f"], "ward": ["A", "B", "B"]})
        >>> keys = {"sex": ["f", "m"], "ward": ["A", "B"]}
        >>> ledger = dpf.Ledger(epsilon=1, delta=1e-6)
        >>> tables = people.dp.marginals(["sex", "ward"], keys=keys, epsilon=1.0, delta=1e-6, ledger=ledger)
        >>> tables.select("sex", "ward").rows()[:4], tables.height
        ([(None, None), ('f', None), ('m', None), (None, 'A')], 9)
        """
        if self._axes:
            raise InvalidArgument(
                "marginals must be called on the whole frame, not per group: its tables are groups themselves. "
                "Name the columns of group_by among its columns."
            )
        asked = statistics.marginals(
            columns,
            keys,
            degree=degree,
            objective=objective,
            denoise=options.get("denoise"),
            most=limits.checked_most(options.get("max_cells", limits.MOST_CELLS)),
        )
        return self._asked("marginals", {asked.default_name: asked}, options)

    def _asked(self, verb: str, statistics: dict[str, Statistic], options: Any, grouping: Grouping | None = None) -> F:
        raise NotImplementedError
