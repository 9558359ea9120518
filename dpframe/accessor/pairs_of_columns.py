"""The verbs for pairs of columns: covariances and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, Unpack

from dpframe.accessor.calls import asks
from dpframe.accessor.options import PairOptions
from dpframe.queries import statistics
from dpframe.queries.contributions import Grouping
from dpframe.queries.statistics import Statistic

F = TypeVar("F")  # the frame of the results


class PairsOfColumns(Generic[F]):
    """Verbs of a private frame; their options are those of `PrivateFrame`."""

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
            Two columns of numbers or more. A row in which one of them is null or NaN is left out.
        bounds : dict of pairs of numbers by column
            The lower and the upper bound of the values of each, from what you know and never from the data.
        ddof : {1, 0}
            What is taken off the number of rows in the divisor.
        where : dict, optional
            Only rows that hold these values count, as for `dpframe.count`: ``{"age": (18, None), "ward": ["A", "B"]}``.

        Returns
        -------
        DataFrame
            One row per pair (of each group): ``column``, ``other``, ``covariance``, ``covariance_noisy`` (what the
            noisy numbers say of this pair alone) and ``covariance_error`` (half-width of the 95% interval around
            ``covariance``, which ``docs/concepts/errors.md`` explains). It raises what `count` raises.

        Notes
        -----
        See `dpframe.covariance`: under Gaussian noise the covariances are those of a matrix that has no negative
        eigenvalue.

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
            As for `covariance`, with ``correlation`` (within [-1, 1]; 0 where a noisy variance is not positive),
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
