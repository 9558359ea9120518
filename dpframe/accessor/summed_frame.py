"""``.dp`` of a released result: sums, shares and differences of its numbers, each with the exact law of its noise.

The tables of a release of marginals are also available as arrays with their variances, to fit a model to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe.derived import along, independence
from dpframe.errors.tracebacks import trimmed
from dpframe.queries.statistics.marginals import places_of_levels


class Measurement(NamedTuple):
    """A table of counts with unbiased noise: its columns, its values, and the variance of each of its cells."""

    columns: tuple[str, ...]
    values: NDArray[np.float64]
    variance: float


def measurements_of(values: NDArray[np.float64], facts: Mapping[str, Any]) -> list[Measurement]:
    """Return the tables of a record, given all values in the order of the release."""
    (measure,), (statistic,) = facts["measures"].values(), facts["statistics"]
    sizes = {axis["columns"][0]: axis["size"] for axis in facts["cells"]}
    return [
        Measurement(
            tuple(level["columns"]),
            values[place].reshape([sizes[column] for column in level["columns"]]),
            deviation**2 * statistic["variance"],
        )
        for level, place, deviation in zip(
            facts["levels"], places_of_levels(facts["levels"]), measure["deviations"], strict=True
        )
    ]


class SummedFrame:
    """The part of `ReleasedFrame` that computes new results at no cost, each with its own record."""

    _frame: Any

    @trimmed
    def total(self, by: str | Sequence[str] | None = None) -> Any:
        """Compute the sum of the rows, or of those that agree in `by`.

        Parameters
        ----------
        by : str or list of str, optional
            The columns of keys or bins that are kept; without it, the result is one row.

        Returns
        -------
        DataFrame
            The keys; for each statistic ``NAME`` and ``NAME_error``, the half-width of its 95% interval; ``covers``,
            which is ``"table"``: the noise alone (``docs/concepts/errors.md``). It adds up unbiased values, even if
            adjusted ones were released. A mean, a proportion or a ratio becomes that of the groups together, with
            ``NAME_low`` and ``NAME_high``. With subtotals or `marginals`, it is the table of these columns, or else
            the table with more columns whose sums have the least noise.

        Raises
        ------
        InvalidArgument, InvalidType
            If `by` names no columns of keys, or a number cannot be traced to noise of a known law or does not add up:
            `n_distinct`, and `n_units` if a unit may be in several groups.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A", "B", "A"]})
        >>> wards = stays.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> wards["count_error"].to_list(), wards.dp.total()["count_error"].to_list()
        ([3.0, 3.0], [4.0])
        """
        return along.totals_by(self._frame, by)

    @trimmed
    def share(self, by: str | Sequence[str] | None = None) -> Any:
        """Compute the share of total, over all rows or those that agree in `by`.

        Parameters
        ----------
        by : str or list of str, optional
            The columns of keys or bins within which shares add up to 1.

        Returns
        -------
        DataFrame
            The keys; for each statistic ``NAME``, ``NAME_low`` and ``NAME_high``, the ends of its 95% interval
            (Fieller's set, from the exact law), and ``covers``. The ends are infinite if noise hides the sign of the
            sum.

        Raises
        ------
        InvalidArgument, InvalidType
            As for `total`, and for means and other quotients.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A", "B", "A"] * 500})
        >>> wards = stays.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> wards.dp.share().columns
        ['ward', 'count', 'count_low', 'count_high', 'covers']
        """
        return along.shares_by(self._frame, by)

    @trimmed
    def cumulative(self) -> Any:
        """Compute the running sum along the ordered key, within other groups.

        Returns
        -------
        DataFrame
            The keys, for each statistic ``NAME`` and ``NAME_error``, and ``covers``, as for `total`. The order is that
            of dates or bins, or of the declared keys if the result has one column of them.

        Raises
        ------
        InvalidArgument
            If no key or several keys are ordered, and as for `share`.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> ages = pl.DataFrame({"age": [31, 45, 62]}).dp.histogram(
        ...     "age", bins=[0, 40, 60, 100], epsilon=1.0, ledger=dpf.Ledger(epsilon=1)
        ... )
        >>> ages.dp.cumulative()["count_error"].to_list()
        [3.0, 4.0, 5.0]
        """
        return along.running(self._frame)

    @trimmed
    def rolling(self, n: int) -> Any:
        """Compute the moving average of `n` numbers along the ordered key.

        Parameters
        ----------
        n : int
            How many. Rows with fewer values up to them are left out.

        Returns
        -------
        DataFrame
            As for `cumulative`. The sums of `n` numbers are `n` times these means, and so are their errors.

        Raises
        ------
        InvalidArgument
            As for `cumulative`, and if `n` is not a whole number from 1 on, or above the number of keys.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> weeks = pl.DataFrame({"week": [1, 1, 2, 3]}).dp.group_by("week", keys=[1, 2, 3, 4])
        >>> result = weeks.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> result.dp.rolling(4)["count_error"].to_list()
        [1.25]
        """
        return along.moving(self._frame, n)

    @trimmed
    def difference(self, n: int = 1) -> Any:
        """Compute the difference over `n` places of the ordered key.

        Parameters
        ----------
        n : int
            The distance to the earlier value. The first `n` rows are left out.

        Returns
        -------
        DataFrame
            As for `cumulative`.

        Raises
        ------
        InvalidArgument
            As for `cumulative`, and if `n` is not a whole number from 1 on, or not below the number of keys.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> weeks = pl.DataFrame({"week": [1, 1, 2, 3]}).dp.group_by("week", keys=[1, 2, 3])
        >>> result = weeks.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> result.dp.difference()["count_error"].to_list()
        [4.0, 4.0]
        """
        return along.steps(self._frame, n)

    @trimmed
    def change(self, n: int = 1) -> Any:
        """Compute the growth over `n` places of the ordered key, in percent.

        Parameters
        ----------
        n : int
            The distance to the earlier value: 12 for months is year over year. The first `n` rows are left out.

        Returns
        -------
        DataFrame
            The keys, for each statistic ``NAME`` in percent with ``NAME_low`` and ``NAME_high``, and ``covers``, as for
            `share`.

        Raises
        ------
        InvalidArgument
            As for `difference`.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> weeks = pl.DataFrame({"week": [1, 2, 2] * 500}).dp.group_by("week", keys=[1, 2])
        >>> result = weeks.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> result.dp.change().columns
        ['week', 'count', 'count_low', 'count_high', 'covers']
        """
        return along.changes(self._frame, n)

    @trimmed
    def chi2(self) -> Any:
        """Test whether the two columns of a released table are independent.

        Returns
        -------
        DataFrame
            One row: ``statistic``, Pearson's for the noisy counts; ``p_value``, at least 1/2000; ``degrees`` of
            freedom. It costs nothing.

        Raises
        ------
        InvalidArgument
            If the result does not have two columns of at least two keys; with a column of units, if it is not
            ``n_units`` with ``max_groups=1``; if counts are adjusted and their unbiased values were not kept.

        Notes
        -----
        The p-value compares the statistic with those of 1,999 tables, which are drawn from the fitted margins and get
        noise of the same law. Their seed is the hash of the released numbers, so one release has one p-value. It is 1
        if the noisy total is below 1. ``docs/guide/compare.md`` states how often it errs.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"sex": ["f", "m"] * 2_000, "ward": ["A", "B", "B", "A"] * 1_000})
        >>> keys = {"sex": ["f", "m"], "ward": ["A", "B"]}
        >>> table = stays.dp.group_by("sex", "ward", keys=keys).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> test = table.dp.chi2()
        >>> test.columns, test["degrees"][0], bool(test["p_value"][0] > 1e-3)
        (['statistic', 'p_value', 'degrees'], 1, True)
        """
        return independence.tested(self._frame)
