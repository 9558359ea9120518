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
    """The local model of a private frame: what ``df.dp.local`` is."""

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
        """Randomize each value of a column: a report a row, in the order of the rows, and nothing else.

        Parameters
        ----------
        column : str
            The column whose values are reported.
        method : one of dpframe.local
            How, and at what epsilon for each report.
        ledger : Ledger, optional
            The ledger to charge; by default the ``with`` around the call. Its unit must have ``neighbors="replace"``.
        unit : PrivacyUnit, str or list of str, optional
            Who is protected, where the ledger does not say it.
        max_rows : int, optional
            Where the unit has a column: how many reports a unit may make, which add up. Each row after the first
            `max_rows` of its unit makes the report of a missing value.
        label : str, optional
            A name for the ledger's entry and the provenance.
        checks : {"auto", False}
            As in every question. Reports have no checks, so both do nothing.

        Returns
        -------
        DataFrame
            One column of reports; `dpframe.local.estimate` takes it. How many rows there are, and in which order, is
            public.

        Raises
        ------
        InvalidArgument
            If the ledger promises to hide who takes part, or an argument breaks its rule. Nothing was charged.
        BudgetExceeded, NoLedger, UnknownColumn, WrongDtype
            As every question.

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
