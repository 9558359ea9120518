"""The display of a ledger: a statement, a table of charges, stored answers, a chart, a page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from html import escape
from os import PathLike
from typing import Any

from dpframe.accounting import Accounting
from dpframe.display import pages
from dpframe.errors import LedgerError
from dpframe.errors.tracebacks import trimmed
from dpframe.ledger.entries import Store
from dpframe.ledger.statement import ANSWERS, COLUMNS, RELEASES, Statement, answers_of, rows_of, understated
from dpframe.ledger.terms import Terms


class ShownLedger:
    """The part of `Ledger` for readers: it changes nothing."""

    __slots__ = (
        "__weakref__",
        "_accounting",
        "_checks",
        "_replayed",
        "_store",
        "_terms",
    )  # so that no attribute can be added, and ledger.limit = 5 is refused

    _accounting: Accounting
    _checks: Any
    _replayed: int  # the number of stored answers returned so far
    _terms: Terms | None
    _store: Store

    @trimmed
    def to_frame(self, like: str | None = None) -> Any:
        """Return every entry as a frame, in order: charges, raised limits, recoveries.

        Parameters
        ----------
        like : {"polars", "pandas"}, optional
            The library of the frame; Polars by default.

        Returns
        -------
        DataFrame
            ``epsilon`` and ``delta`` are rounded up; ``amount`` is the accounting's own exact quantity.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.Ledger(epsilon=1.0).to_frame().columns
        ['entry', 'time', 'kind', 'label', 'snapshot', 'query', 'unit', 'epsilon', 'delta', 'amount']
        """
        return pages.as_frame(rows_of(self._store.entries()), like or "polars", types=COLUMNS)

    @trimmed
    def answers(self, like: str | None = None) -> Any:
        """Return the stored answers, which cost nothing with the same label and snapshot.

        Parameters
        ----------
        like : {"polars", "pandas"}, optional
            The library of the frame; Polars by default.

        Returns
        -------
        DataFrame
            A row for each answer, in the order of storing: ``entry``, ``time``, ``label``, ``snapshot``, ``query``,
            ``unit``, ``epsilon`` and ``delta`` of its charge, and ``stored``, the entry with the answer's hash. It is
            empty for a ledger in memory, which stores no answers.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl, pathlib, tempfile
        >>> ledger = dpf.Ledger(epsilon=1.0, path=pathlib.Path(tempfile.mkdtemp()) / "clinic.ledger")
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> _ = people.dp.count(epsilon=0.5, ledger=ledger, label="patients", snapshot="2026-05")
        >>> ledger.answers().select("label", "snapshot", "epsilon").rows()
        [('patients', '2026-05', 0.5)]
        """
        return pages.as_frame(answers_of(self._store.entries()), like or "polars", types=ANSWERS)

    @trimmed
    def report(
        self,
        path: str | PathLike[str],
        *releases: Any,
        title: str | None = None,
        charts: bool = True,
        text: Mapping[str, str] | None = None,
        labels: Mapping[str, Any] | None = None,
        order: Sequence[str] | None = None,
    ) -> None:
        """Write a report as one HTML file: what was found, how far to trust it, and what was spent.

        Parameters
        ----------
        path : path-like
            The file.
        *releases : released frame
            The results. Each gets a chart and a table, in this order.
        title : str, optional
            The heading of the page.
        charts : bool
            Whether to draw charts, which need ``dpframe[plot]``.
        text : dict, optional
            A mapping from the label of a release to your own text, which replaces the sentence above its chart. It
            takes paragraphs, lists, headings, ``**strong**``, ``*emphasis*`` and `` `code` `` of Markdown. HTML in it
            is shown as text.
        labels : dict, optional
            A mapping from the label of a release to its names for columns and keys, as ``.dp.write_html`` takes them:
            ``{"Stays": {"columns": {"n": "People"}, "values": {"sex": {0: "Men"}}}}``.
        order : list of str, optional
            Labels in the order of their sections; other releases follow.

        Raises
        ------
        InvalidArgument, InvalidType
            If no release has a label in `text`, `labels` or `order`, if `labels` names a column or key that a release
            does not have, or if `path` belongs to a ledger, is not a plain file, or ends as one of another format.
            Nothing is written then.
        NoProvenance
            For a private or public frame, which is no release.
        OutputFailed
            If the file cannot be written. An earlier file stays whole.

        Notes
        -----
        An appendix says how the numbers were made: noise, costs, records, charges, the end of the chain. It is folded
        on a screen and printed last. The file fetches nothing, runs no script, and has colors for light and dark
        screens. Every reader sees the labels. Releases are not verified.

        Examples
        --------
        >>> import dpframe as dpf, pathlib, polars as pl, tempfile
        >>> ledger = dpf.Ledger(epsilon=1.0, dataset="clinic")
        >>> stays = pl.DataFrame({"ward": ["A", "B", "A"]})
        >>> wards = stays.dp.group_by("ward", keys=["A", "B"]).count(epsilon=0.5, label="Stays", ledger=ledger)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> ledger.report(path, wards, charts=False, text={"Stays": "Ward A is the **larger** one."})
        >>> "Ward A is the <strong>larger</strong> one." in path.read_text(encoding="utf-8")
        True
        """
        from dpframe.ledger import spending  # imported here, because few programs write a page

        spending.write(
            path,
            self._statement(),
            self._store.entries(),
            releases,
            title=title,
            charts=charts,
            text=text,
            labels=labels,
            order=order,
        )

    def plot(self) -> Any:
        """Draw the spent budget over time, with the limit.

        Returns
        -------
        altair.Chart
            A line of steps. A notebook displays it; ``.save("budget.png")`` writes it. ImportError without
            ``dpframe[plot]``.
        """
        return self._statement().chart([entry for _, entry in self._store.entries()])

    @property
    def _understated(self) -> str | None:
        """The text on entries that understate their cost; None if there are none."""
        return understated(self._accounting, self._store.last())

    def _warn_understated(self) -> None:
        """Warn anyone who opens the ledger of entries that understate their cost: less is left than they show."""
        if (words := self._understated) is not None:
            warnings.warn(f"the ledger at {self._store.shown}: {words}", UserWarning, stacklevel=4)

    def __repr__(self) -> str:
        try:
            return self._statement().text()
        except LedgerError as error:  # displaying a ledger in a notebook must not raise
            return f"Ledger\n  {error}"

    def _repr_html_(self) -> str:
        try:
            return self._statement().html()
        except LedgerError as error:
            return f"<pre>{escape(f'Ledger: {error}')}</pre>"

    def _statement(self) -> Statement:
        summary = self._store.summary(RELEASES)
        limit = None if self._terms is None else summary.last.limit
        return Statement(self._terms, limit, self._accounting, summary, self._store.shown)
