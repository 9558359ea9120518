"""Gives frames of pandas, Polars and Dask their ``.dp``, whichever of ``import dpframe`` and their own comes first."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import polars as pl

DOC = """Private counts, sums, means and histograms: see dpframe.

df.dp of a private frame:

  count
    count          The number of rows, or of the values of column that are present
    n_units        The number of units, such as people, that have a row
    n_distinct     The number of distinct values of column, for each of which some unit vouches
    proportion     The share of the values of column that are true, or that are value

  measure
    sum            The sum of column, each value clipped to bounds
    mean           The mean of column, each value clipped to bounds
    median         The median of column, one of declared candidates
    quantile       Quantiles of column, each one of declared candidates
    variance       The variance of column, each value clipped to bounds
    std            The standard deviation of column, each value clipped to bounds

  spread
    histogram      The number of rows in each bin of column, or in each pair of bins of two columns
    ecdf           The distribution function of column
    mode           The most common value of column among declared ones, chosen privately
    top_k          The k most common values of column among declared ones, in order

  relate
    covariance     The covariance of each pair of columns, each value clipped to its bounds
    correlation    The correlation of each pair of columns, each value clipped to its bounds
    marginals      The counts of all tables of up to degree of the columns, at one price

  group
    group_by       The same questions per group
    agg            Several statistics, priced and released as one call

  plan
    preview        The same questions, answered by a Plan
    suggest_bounds Bounds for columns of which nobody knows any
    contributions  The numbers of units by their rows and groups
    local          The local model

result.dp of a released result:

  show
    plot           A chart of the released numbers with their 95% intervals
    table          A table for a report
    statement      A paragraph for readers without mathematics
    errors         The errors of the released numbers
    provenance     The record of the question, of its protection and of its cost

  change
    relabel        Rename columns and translate keys
    filter         Keep some rows
    sort           Sort the rows
    head           Keep the first n rows
    select         Keep some statistics, each with its errors
    wide           Turn the keys of one column into columns
    round          The frame with numbers rounded to their errors

  take
    to_numpy       A released column as an array in the shape of the cells
    matrix         The square table of a correlation or covariance
    measurements   The unbiased tables of marginals, each with the variance of its cells
    suggest        Bounds of contribution for counts by the same groups, from a result of contributions
    parts          The releases that dpframe.concat joined, each a frame with its own record

  keep
    write_html     Write a report
    write_parquet  Write the frame with its provenance
"""
OF_A_COLUMN = (
    ".dp must be asked of a frame, not of one of its columns. Write the column's name in the verb, as in "
    'df.dp.mean("age", bounds=(0, 100), epsilon=0.5).'
)
WAITED_FOR = ("pandas", "dask.dataframe")  # modules whose DataFrame is given its .dp when they are imported


def register(accessor: Callable[[Any], Any]) -> None:
    """Set ``.dp`` as a property, which keeps nothing alive and holds no state, on every frame class."""
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
    if module.__name__ == "pandas":  # the Series of Polars has words of its own for what it does not have
        _refuse(module.Series)


def _refuse(column_class: Any) -> None:
    """Say where ``.dp`` is to be asked, to those who ask a column; ``hasattr`` finds none."""

    def dp(column: Any) -> None:
        raise AttributeError(OF_A_COLUMN)

    if inspect.getattr_static(column_class, "dp", None) is None:
        column_class.dp = property(dp, doc=OF_A_COLUMN)


def _give(frame_class: Any, accessor: Callable[[Any], Any]) -> None:
    other = inspect.getattr_static(frame_class, "dp", None)
    if other is not None and getattr(other, "__doc__", None) != DOC:
        words = f"dpframe replaces the accessor .dp that another library gave {frame_class.__module__} frames."
        warnings.warn(words, UserWarning, stacklevel=2)
    frame_class.dp = property(accessor, doc=DOC)  # of this very type: completers look for no other


class _Finder(MetaPathFinder):
    """Waits for the first import of a module, lets it happen, and registers the accessor after it."""

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
    """A loader that does what the real one does and then registers."""

    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self.loader, self.finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader  # others see the real loader
        self.loader.exec_module(module)
        _give_all(module, self.finder.accessor)
        # until now: whoever only asks whether it is there must not end the wait; and a new list, since another thread
        # that goes through the old one to import something would skip a finder
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self.finder]
