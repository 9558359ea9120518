"""Contexts for tests of your own pipeline: noise that repeats, or no noise. Releases inside are not private.

Only a `with` block turns them on and off: no setting, environment variable or option does. Every record of a result
from inside states NOT PRIVATE permanently, and so do its statement, tables, charts, pages and files. Inside, a ledger
in a file or a database refuses every charge.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpframe.exact import checked_whole
from dpframe.noise import trial


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Repeat the same noise in a `with` block: for tests, NOT PRIVATE.

    The same calls in the same order give the same numbers.

    Parameters
    ----------
    seed : int
        From 0 to 2**63 - 1; other seeds give other noise.

    Raises
    ------
    InvalidArgument, InvalidType
        If `seed` is no such number.
    LedgerError
        Inside the block, on every charge of a ledger in a file or a database.

    Notes
    -----
    It holds for the thread or the asynchronous task that enters it, and for tasks that are started inside, even if they
    outlive it. It does not hold for threads that are started inside: their releases have noise of the operating system,
    and are private. Numbers may differ between versions of dpframe.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> from dpframe.testing import seeded
    >>> people = pl.DataFrame({"age": [31, 45, 62]})
    >>> def pipeline():
    ...     return people.dp.count(epsilon=0.1, ledger=dpf.Ledger(epsilon=1))
    >>> with seeded(0):
    ...     first = pipeline()
    >>> with seeded(0):
    ...     again = pipeline()
    >>> first.equals(again), first.dp.provenance["warning"]
    (True, 'NOT PRIVATE: drawn from seeded bits, which are for tests only')
    """
    checked = checked_whole("seed", seed, 0, 2**63 - 1, "a whole number from 0 to 2**63 - 1", " Write for instance 0.")
    with trial("seeded", checked):
        yield


@contextmanager
def exact() -> Iterator[None]:
    """Add no noise in a `with` block, and always choose the best: NOT PRIVATE.

    Bounds and weights still apply.

    Raises
    ------
    LedgerError
        Inside the block, on every charge of a ledger in a file or a database.
    InvalidArgument
        Inside the block, from ``df.dp.local``, whose reports are nothing but noise.

    Notes
    -----
    Threads and tasks are as for `seeded`. Records, plans and errors state the noise that would have been added.
    Denoising works on the exact numbers as on noisy ones, and may change them. Variances, covariances and correlations
    allow for noise that was not added, and are near the exact ones.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> from dpframe.testing import exact
    >>> people = pl.DataFrame({"age": [31, 45, 62]})
    >>> with exact():
    ...     count = people.dp.count(epsilon=0.1, ledger=dpf.Ledger(epsilon=1))
    >>> count["count"].to_list(), count.dp.provenance["warning"]
    ([3.0], 'NOT PRIVATE: no noise was added, which is for tests only')
    """
    with trial("exact", 0):
        yield
