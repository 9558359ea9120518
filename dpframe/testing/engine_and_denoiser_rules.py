"""The rules of an engine, whose totals must equal those of Polars in memory bit for bit, and of a denoiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.random import get_state
from numpy.typing import NDArray

from dpframe.denoise import DENOISERS, can_be_called, facts_of
from dpframe.denoise.estimators import NoiseLaw
from dpframe.engines import trial
from dpframe.errors import how_many, named, shown
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.testing.broken import ContractBroken, may_not_fail, require


@may_not_fail("an engine")
def check_engine(make: Callable[[Any], Any], *, tables: int = 3, seed: int = 0, every: int = 1) -> None:
    """Compare an engine with Polars in memory.

    Each exact total must be equal, or refused by its schema. The check covers counts, presences, sums, means,
    histograms, grids, groups and contributions, with protected rows and with protected units, in the norms of all
    noises. It uses values that are hard for engines: NaN, null, infinities, both zeros, subnormals, ties of the grid,
    every edge and its neighbors, integers that no float holds, dates, decimals, missing units and undeclared keys. It
    also uses tables without rows and with one row.

    Parameters
    ----------
    make : callable
        A function that takes a Polars DataFrame and returns what `dpframe.of` takes: the engine on these rows. An error
        of dpframe counts as a refusal.
    tables : int
        The number of additional random tables of up to 2,000 rows, with a few units that have most of the rows.
    seed : int
        The seed of these tables.
    every : int
        Run one in `every` queries on each table, and the next ones on the next table, to check many tables in little
        time. A prime above 3 combines each query with each unit.

    Raises
    ------
    ContractBroken
        If a total differs, or everything is refused. The error names the table, the query and the unit.

    Notes
    -----
    Nothing is released, and nothing is charged: the tables are made up.

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


Floats = NDArray[np.float64]

SHAPES = ((2,), (1,), (3,), (40,), (6, 9))


def check_denoiser(denoise: str | Callable[..., Any]) -> None:
    """Check a denoiser against the rules of ``denoise=``.

    A denoiser is a function ``(values, noise, *, ...) -> values``.

    Parameters
    ----------
    denoise : callable or str
        A function, or the name of one of dpframe's. In addition to values and their noise, it receives those facts that
        its signature names: ``nonnegative`` (bool), ``order`` (True, or the axes along which neighbors may be similar)
        and ``graph`` (pairs of positions).

    Raises
    ------
    ContractBroken
        If it cannot be called so; raises an error; changes the values that it gets; returns another shape, or values
        that are not finite numbers; gives two results for the same values; or uses NumPy's global random numbers.

    Notes
    -----
    The values are made up: whole numbers and others, equal ones, zeros, negative and very large ones, on a line and on
    a grid, under discrete Laplace and Gaussian noise on a coarse and on a fine grid. The check does not cover whether a
    denoiser makes errors smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from dpframe.testing import check_denoiser
    >>> check_denoiser(lambda values, noise: np.maximum(values, 0.0))
    >>> check_denoiser("haar")
    """
    function = DENOISERS.get(denoise) if isinstance(denoise, str) else denoise
    if not callable(function):
        raise ContractBroken(
            f"signature: a denoiser must be a function or one of {sorted(DENOISERS)}, not {shown(denoise)}."
        )
    require(
        can_be_called(function),
        "signature",
        "a denoiser must be a function (values, noise, *, ...) whose other parameters have defaults or are "
        "nonnegative, order or graph.",
    )
    for noise in _laws():
        for shape in SHAPES:
            for values in _made_up(shape, noise):
                for facts in _facts(shape):
                    _check_once(function, values, noise, {name: facts[name] for name in facts_of(function)})


def _laws() -> Iterator[NoiseLaw]:
    yield Laplace.calibrate(sensitivity=1, epsilon=0.5)
    yield Gaussian.calibrate(sensitivity=1, epsilon=0.5, delta=1e-6)
    yield Gaussian.calibrate(sensitivity=2.5, epsilon=0.5, delta=1e-6, grid=2.0**-20)


def _made_up(shape: tuple[int, ...], noise: NoiseLaw) -> Iterator[Floats]:
    """Yield multiples of the noise's grid, like released totals."""
    places = np.arange(float(np.prod(shape))).reshape(shape)
    spread = np.sqrt(noise.variance)
    for values in (
        places + 1.0,
        np.zeros(shape),
        np.full(shape, 7.0),
        spread * 3.0 * np.sin(1.7 * places),
        200.0 * np.exp(-places) - 5.0 * spread * np.cos(2.3 * places),
        1e12 * np.cos(places),
    ):
        yield np.rint(values / noise.grid) * noise.grid


def _facts(shape: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    places = np.arange(int(np.prod(shape)))
    graph = np.stack([places[:-1], places[1:]], axis=1).astype(np.int64)
    yield {"nonnegative": True, "order": True, "graph": graph}
    yield {"nonnegative": False, "order": (0,), "graph": graph[:1]}


def _check_once(function: Callable[..., Any], values: Floats, noise: NoiseLaw, facts: dict[str, Any]) -> None:
    copied, state = values.copy(), _random_state()
    told = deepcopy(facts)
    results = []
    for _ in range(2):
        try:
            denoised = function(copied, noise, **facts)
        except Exception as error:
            raise ContractBroken(
                f"success: a denoiser must not fail, and on {how_many(values.size, 'value')} it raised "
                f"{type(error).__name__}: {error}"
            ) from error
        results.append(_as_floats(denoised))
        shape = results[-1].shape
        kept = np.array_equal(copied, values) and all(np.array_equal(facts[name], fact) for name, fact in told.items())
        require(kept, "input", "a denoiser must not change the values, or the graph, that it gets.")
        require(
            shape == values.shape,
            "shape",
            f"a denoiser must return an array of the shape that it got, {values.shape}, not {shape}.",
        )
        require(np.isfinite(results[-1]).all(), "finite", "a denoiser must return finite numbers for finite values.")
    require(
        results[0].tobytes() == results[1].tobytes(),
        "determinism",
        "a denoiser must give one result for the same values: a replayed release shows the same numbers, and all "
        "random bits come from dpframe.noise.",
    )
    require(_random_state() == state, "randomness", "a denoiser must not touch NumPy's global random numbers.")


def _as_floats(denoised: Any) -> Floats:
    try:
        return np.array(denoised, dtype=np.float64)
    except (TypeError, ValueError):
        raise ContractBroken(f"numbers: a denoiser must return an array of numbers, not {named(denoised)}.") from None


def _random_state() -> tuple[bytes, int]:
    """Return the state of NumPy's global generator, only to compare it; nothing is drawn from it."""
    state: Any = get_state(legacy=False)
    return state["state"]["key"].tobytes(), int(state["state"]["pos"])
