"""``df.dp.local``: the values of a private frame, randomized row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

from dpframe.accessor.options import Number
from dpframe.errors import InvalidArgument, is_one_of
from dpframe.errors.tracebacks import trimmed
from dpframe.ledger.ledger import Ledger
from dpframe.privacy import PrivacyUnit
from dpframe.queries.limits import AUTO, check_column, checked_checks
from dpframe.release import randomizing

F = TypeVar("F")  # the frame of the results


class LocalQuestions(Generic[F]):
    """The local model of a private frame, ``df.dp.local``."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @trimmed
    def randomize(
        self,
        column: str,
        *,
        method: randomizing.Method | None = None,
        ledger: Ledger | None = None,
        unit: PrivacyUnit | str | Sequence[str] | None = None,
        max_rows: int | None = None,
        label: str | None = None,
        checks: Literal["auto"] | bool | Number = "auto",
    ) -> F:
        """Randomize each value of a column, one report for each row.

        The reports are in the order of the rows. Nothing else is released.

        Parameters
        ----------
        column : str
            The column whose values are reported.
        method : one of dpframe.local
            The way to randomize, and the epsilon of each report.
        ledger : Ledger, optional
            The ledger to charge. By default that of the ``with`` around the call, then the default ledger. Its unit
            must have ``neighbors="replace"``.
        unit : PrivacyUnit, str or list of str, optional
            The privacy unit, if the ledger does not set it.
        max_rows : int, optional
            If the unit has a column: the most reports of a unit, whose costs add up. Each row after the first
            `max_rows` of its unit gives the report of a missing value.
        label : str, optional
            A name for the entry in the ledger and the provenance.
        checks : {"auto", False}
            As in every call. Reports have no checks, so both have no effect.

        Returns
        -------
        DataFrame
            One column of reports, for `dpframe.local.estimate`. The number of rows and their order are public.

        Raises
        ------
        InvalidArgument
            If the ledger hides participation (add-remove), or an argument breaks its rule. Nothing was charged.
        BudgetExceeded, NoLedger, UnknownColumn, WrongDtype
            As in every call.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(neighbors="replace"))
        >>> reports = people.dp.local.randomize("age", method=dpf.local.Mean((0, 120), epsilon=1), ledger=ledger)
        >>> reports.columns, reports.height, ledger.spent.epsilon
        (['age'], 3, 1.0)
        """
        check_column(column)
        if not is_one_of(checked_checks(checks), (None, AUTO, False)):
            raise InvalidArgument(
                "checks must be left out of randomize, whose reports have no bounds that leave something out. Drop "
                "checks."
            )
        reports: F = randomizing.randomized(
            self._frame, column, method, ledger=ledger, unit=unit, max_rows=max_rows, label=label
        )
        return reports

    def __repr__(self) -> str:
        return "<.dp.local of a private frame: randomize>"
