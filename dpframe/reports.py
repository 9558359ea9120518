"""The report of results that were written to files, as ``dpframe report`` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from dpframe.accessor import released
from dpframe.display import report
from dpframe.errors import MissingArgument
from dpframe.files import PAGES, checked_output, write_page
from dpframe.frames.build import read_parquet
from dpframe.ledger.canonical import now
from dpframe.ledger.ledger import Ledger


def write_report(
    files: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    ledger: str | PathLike[str] | Ledger | None = None,
    title: str | None = None,
    charts: bool = True,
) -> None:
    """Write one HTML file of released results, and of the ledger that was charged.

    Parameters
    ----------
    files : list of path-like
        Parquet files that ``.dp.write_parquet`` wrote.
    output : path-like
        The file to write.
    ledger : Ledger, path-like or URL, optional
        The ledger of the releases: it is verified that it charged for each of them, and what was spent is shown too.
    title : str, optional
        The heading of the page.
    charts : bool
        Whether it has charts, which need the extra ``dpframe[plot]``.

    Raises
    ------
    InvalidArgument
        If the output is one of the files, belongs to a ledger, is no plain file, or ends as one of another format.
    MissingArgument
        If there is neither a file nor a ledger.
    NoProvenance
        If a file is no released result.
    LedgerError
        If the ledger cannot be used, or did not charge for a release.
    OutputFailed
        If the output cannot be written.

    Examples
    --------
    >>> import dpframe as dpf, pathlib, polars as pl, tempfile
    >>> from dpframe.reports import write_report
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> count = pl.DataFrame({"age": [31]}).dp.count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    >>> count.dp.write_parquet(folder / "count.parquet")
    >>> write_report([folder / "count.parquet"], folder / "report.html", charts=False)
    """
    if not files and ledger is None:
        raise MissingArgument("files must name at least one result, or ledger a ledger. Name them.")
    checked_output("output", output, *files, endings=PAGES)
    releases: list[Any] = [read_parquet(file) for file in files]
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        if releases:
            book.verify(*releases)
        book.report(output, *releases, title=title, charts=charts)
        return
    sections = [section for release in releases for section in released(release)._sections(charts=charts)]
    heading = title or (sections[0].title if len(sections) == 1 else "Report")
    write_page("output", output, report.page(heading, report.lead(sections), sections, now()))
