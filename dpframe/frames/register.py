"""Registration of ``.dp`` on frames of pandas, Polars and Dask, before or after these libraries are imported.

It also lists the verbs of ``.dp`` in groups, with one line each, for help, a terminal and a notebook.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from textwrap import wrap
from types import ModuleType
from typing import Any

import polars as pl

from dpframe.errors import DpframeError, no_attribute

Verbs = Mapping[str, Mapping[str, str]]  # group -> verb -> first line of its help; kept here, as no verb is loaded yet

OF_FRAMES: Verbs = {
    "count": {
        "count": "Release the number of rows, or of the present values of a column",
        "n_units": "Release the number of units, such as people, with a row or a value",
        "n_distinct": "Release the number of distinct values, at most the true number",
        "proportion": "Release the share of values that are true, or that are value",
    },
    "measure": {
        "sum": "Release the sum of a column, clipped by value or by unit",
        "mean": "Release the mean of a column, each value clipped to bounds",
        "median": "Release the median of a column, one of declared candidates",
        "quantile": "Release quantiles of a column, each one of declared candidates",
        "variance": "Release the variance of a column, each value clipped to bounds",
        "std": "Release the standard deviation of a column, clipped to bounds",
    },
    "spread": {
        "histogram": "Release the number of rows in each bin of one or several columns",
        "ecdf": "Release a distribution function",
        "mode": "Release the most common of declared values, without its count",
        "top_k": "Release the k most common of declared values, in order",
    },
    "relate": {
        "covariance": "Release the covariance of each pair of columns, clipped to bounds",
        "correlation": "Release the correlation of each pair of columns, clipped to bounds",
        "marginals": "Release all tables of up to degree columns (marginals), consistently",
    },
    "group": {
        "group_by": "Group by declared columns or bins, and release statistics per group",
        "agg": "Release several statistics in one call, at one cost",
    },
    "plan": {
        "preview": "Preview the same verbs",
        "suggest_bounds": "Release candidates for unknown bounds, with the share that each clips",
        "contributions": "Release how many units have how many rows, to choose contribution bounds",
        "local": "Randomize single values, row by row (local differential privacy)",
    },
}
OF_RESULTS: Verbs = {
    "show": {
        "plot": "Draw a chart of the released numbers with their 95% intervals",
        "table": "Make a table",
        "statement": "Describe the release in a paragraph",
        "errors": "Show the intervals of the noise, and the errors of adjusted values",
        "provenance": "The record of the query, its protection and its cost",
    },
    "change": {
        "relabel": "Rename columns and translate keys",
        "filter": "Keep some rows",
        "sort": "Sort the rows",
        "head": "Keep the first n rows",
        "select": "Keep some statistics, each with its errors",
        "wide": "Turn the keys of one column into columns",
        "round": "Round numbers to their errors",
    },
    "take": {
        "to_numpy": "Return a released column as an array in the shape of the cells",
        "matrix": "Make the square table of a correlation or covariance",
        "measurements": "Return the unbiased tables of marginals and their variances",
        "suggest": "Suggest contribution bounds from a result of contributions, at no cost",
        "parts": "The releases that dpframe.concat joined, each a frame with its own record",
    },
    "keep": {
        "write_html": "Write the result as one HTML file, with its errors and its record",
        "write_parquet": "Write the frame with its provenance",
    },
    "more": {
        "change": "Compute the growth over n places of the ordered key, in percent",
        "checks": "Show what the bounds left out, as measured with checks=",
        "chi2": "Test whether the two columns of a released table are independent",
        "cumulative": "Compute the running sum along the ordered key, within other groups",
        "difference": "Compute the difference over n places of the ordered key",
        "rolling": "Compute the moving average of n numbers along the ordered key",
        "share": "Compute the share of total, over all rows or those that agree in by",
        "total": "Compute the sum of the rows, or of those that agree in by",
    },
}


def _among(*names: str) -> Verbs:
    """Return some verbs of a result, in their groups."""
    return {
        title: mine
        for title, verbs in OF_RESULTS.items()
        if (mine := {name: line for name, line in verbs.items() if name in names})
    }


# A choice and suggested bounds hold no numbers with errors.
OF_CHOICES = _among("provenance", "relabel", "filter", "sort", "head", "write_html", "write_parquet", "checks")
OF_COMPUTED = _among(
    *("plot", "table", "statement", "provenance", "relabel", "filter", "sort", "head", "select", "wide"),
    *("parts", "write_html", "write_parquet", "checks"),
)
OF_TESTS = _among("statement", "provenance", "write_parquet")  # a test has no interval


def _help(verbs: Verbs) -> list[str]:
    return [
        line
        for title, lines in verbs.items()
        for line in ("", f"  {title}", *(f"    {name:<14} {words}" for name, words in lines.items()))
    ]


DOC = "\n".join(
    [
        "Private counts, sums, means and histograms: see dpframe.",
        "",
        "df.dp of a private frame:",
        *_help(OF_FRAMES),
        "",
        "result.dp of a released result:",
        *_help(OF_RESULTS),
        "",
    ]
)
OF_A_COLUMN = (
    ".dp must be asked of a frame, not of one of its columns. Write the column's name in the verb, as in "
    'df.dp.mean("age", bounds=(0, 100), epsilon=0.5).'
)
WIDTH = 88
CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top"
WAITED_FOR = ("pandas", "dask.dataframe")  # modules whose DataFrame gets .dp when they are imported


def register(accessor: Callable[[Any], Any]) -> None:
    """Set ``.dp`` on every frame class, as a property that holds no state and keeps no frame alive."""
    for frame_class in (pl.DataFrame, pl.LazyFrame):
        _give(frame_class, accessor)
    for name in WAITED_FOR:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "DataFrame"):
            _give_all(module, accessor)
        else:
            sys.meta_path = [_Finder(name, accessor), *sys.meta_path]


def _give_all(module: ModuleType, accessor: Callable[[Any], Any]) -> None:
    _give(module.DataFrame, accessor)
    if module.__name__ == "pandas":  # a Polars Series raises its own clear error for a missing attribute
        _refuse(module.Series)


def _refuse(column_class: Any) -> None:
    """Make ``.dp`` of a column raise an error that points to its frame; ``hasattr`` returns False."""

    def dp(column: Any) -> None:
        raise no_attribute(OF_A_COLUMN)

    if inspect.getattr_static(column_class, "dp", None) is None:
        column_class.dp = property(dp, doc=OF_A_COLUMN)


def _give(frame_class: Any, accessor: Callable[[Any], Any]) -> None:
    other = inspect.getattr_static(frame_class, "dp", None)
    if other is not None and getattr(other, "__doc__", None) != DOC:
        words = f"dpframe replaces the accessor .dp that another library gave {frame_class.__module__} frames."
        warnings.warn(words, UserWarning, stacklevel=2)
    frame_class.dp = property(accessor, doc=DOC)  # a plain property: code completers look for exactly this type


class _Finder(MetaPathFinder):
    """Finder that waits for the first import of a module and registers the accessor after it."""

    def __init__(self, name: str, accessor: Callable[[Any], Any]) -> None:
        self.name, self.accessor = name, accessor

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        others = (finder for finder in tuple(sys.meta_path) if finder is not self)
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenRegister(spec.loader, self)
        return spec


class _ThenRegister(Loader):
    """Loader that runs the real loader and then registers the accessor."""

    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self.loader, self.finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader  # other code sees the real loader
        self.loader.exec_module(module)
        _give_all(module, self.finder.accessor)
        # remove the finder only now, since code may call `find_spec` without importing the module; build a new list,
        # since another thread that iterates over the old one during an import would skip a finder
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self.finder]


def in_terminal(first: str, verbs: Verbs) -> str:
    """Return the first line, then the names of the verbs of each group."""
    lines = [first]
    for title, mine in verbs.items():
        names = wrap(", ".join(mine), WIDTH)
        lines += [f"  {title if number == 0 else '':<8} {part}" for number, part in enumerate(names)]
    return "\n".join(lines)


def in_notebook(first: str, verbs: Verbs) -> str:
    """Return the same content as an HTML card, with the help line of every verb."""
    rows = "".join(
        f'<tr><th scope="row" style="{CELL}">{escape(title) if number == 0 else ""}</th>'
        f'<td style="{CELL}"><code>{escape(name)}</code></td><td style="{CELL}">{escape(line)}</td></tr>'
        for title, mine in verbs.items()
        for number, (name, line) in enumerate(mine.items())
    )
    return f"<div><p>{escape(first)}</p><table><tbody>{rows}</tbody></table></div>"


def protected(ledger: Any) -> str:
    """Describe whom a ledger protects; None stands for no ledger."""
    if ledger is None:
        return 'no ledger yet: write with dpf.Ledger(epsilon=1, unit="user_id"): ...'
    try:
        unit = ledger.unit
    except DpframeError:  # displaying the object in a notebook must not raise
        return "the ledger cannot be read"
    return "protects each row, unless unit= names others" if unit is None else f"protects {unit}"
