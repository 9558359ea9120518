"""The rule of an engine: the same exact totals as those of Polars in memory, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpframe.engines import trial
from dpframe.testing.broken import ContractBroken


def check_engine(make: Callable[[Any], Any], *, tables: int = 3, seed: int = 0, every: int = 1) -> None:
    """Compare an engine with Polars in memory: each exact total is equal, or refused by its schema.

    Tried are counts, presences, sums, means, histograms, grids, groups and contributions, where each row is protected
    and where units are, in the norms of all noises; on values that are hard for engines: NaN, null, infinities, both
    zeros, subnormals, ties of the grid, every edge and its neighbors, integers that no float holds, dates, decimals,
    missing units and undeclared keys; on tables without rows and with one.

    Parameters
    ----------
    make : callable
        It is given a Polars DataFrame and returns what `dpframe.of` takes: the engine on these rows. An error of
        dpframe counts as a refusal.
    tables : int
        How many random tables of up to 2,000 rows are tried besides, with a few units that have most of the rows.
    seed : int
        Of these tables.
    every : int
        Each table is asked one in a number of the questions, the next table the next ones: many tables in little
        time. A prime above 3 brings each question together with each unit.

    Raises
    ------
    ContractBroken
        If a total differs, or everything is refused. It names the table, the question and the unit.

    Notes
    -----
    Nothing is released, and nothing charged: the tables are made up.

    Examples
    --------
    An engine that reads its rows in two halves, or whole where there are units:

    >>> import dpframe as dpf, polars as pl
    >>> from dpframe.testing import check_engine
    >>> class Halves:
    ...     def __init__(self, frame):
    ...         self.frame = frame
    ...     def schema(self):
    ...         return self.frame.schema
    ...     def fold(self, columns, piece, by):
    ...         half = self.frame.height // 2
    ...         whole = [self.frame] if by else [self.frame[:half], self.frame[half:]]
    ...         return sum(piece(part) for part in whole)
    ...     def push(self, task):
    ...         return None
    >>> check_engine(Halves, tables=1)
    >>> people = Halves(pl.DataFrame({"age": [31, 45, 62]}))
    >>> dpf.of(people).count(epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).columns
    ['count', 'count_error']
    """
    difference = trial.difference(make, tables, seed, every)
    if difference is not None:
        raise ContractBroken(f"totals: {difference}")
