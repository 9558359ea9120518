"""Tables with all their margins: the nearest table to noisy cells and noisy margins, in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.denoise.noise_law import Floats, NoiseLaw

STEPS = 100  # of the search for the nearest non-negative table; measured to be enough up to 10**5 cells
BETWEEN = 0.4  # where its step lies between the least and the largest eigenvalue, on a logarithmic scale
RELAXED = 1.6  # over-relaxation (Boyd et al. 2011, section 3.4.3)
LEAST = 2.0**-40  # of the largest variance: margins without noise weigh no more than this says

Axes = tuple[int, ...]


@dataclass(frozen=True)
class FittedTable:
    """The cells of a table, and for each margin the variance of its entries before they were made non-negative."""

    cells: Floats
    variances: dict[Axes, float]


def margins(axes: int) -> list[Axes]:
    """Every set of axes: the table itself first, then its margins by fewer and fewer axes, the total last."""
    return [kept for count in range(axes, -1, -1) for kept in itertools.combinations(range(axes), count)]


def fitted_table(noisy: Mapping[Axes, Floats], laws: Mapping[Axes, NoiseLaw], *, nonnegative: bool) -> FittedTable:
    """The least squares fit of a table to its noisy cells and noisy margins, each weighed by its variance.

    Parameters
    ----------
    noisy : dict of arrays
        For every set of axes the noisy margin that keeps them; for all axes the cells.
    laws : dict of Mechanism
        The law of the noise of each.
    nonnegative : bool
        Whether no true cell is negative; the table is then the nearest without a negative cell.

    Notes
    -----
    A table is the sum of one part for each set A of axes: what is left along the axes in A once their means are taken
    off, and constant along the others. A margin S holds the part A where S contains A, times m_S, the number of cells
    that are added up for one of its entries, and else nothing of it. So the parts can be fitted one by one, with the
    precision l_A = sum over S containing A of m_S / var_S: the linear unbiased estimate of least variance (Gauss and
    Markov). An entry of the margin S has on average the variance m_S / |S| sum over A in S of d_A / l_A, d_A being the
    number of degrees of freedom of the part and |S| that of the margin's entries. The non-negative table is found by
    the alternating direction method of multipliers (Boyd et al. 2011), whose linear step the same parts solve.
    """
    axes = max(map(len, noisy))
    shape = noisy[tuple(range(axes))].shape
    sets = margins(axes)
    measured = _variances(laws)
    merged = {kept: math.prod(shape[axis] for axis in range(axes) if axis not in kept) for kept in sets}
    precision = {part: sum(merged[s] / measured[s] for s in sets if {*part} <= {*s}) for part in sets}
    added = np.zeros(shape)
    for kept in sets:
        added += noisy[kept].reshape([shape[axis] if axis in kept else 1 for axis in range(axes)]) / measured[kept]
    best = {part: values / precision[part] for part, values in _parts(added).items()}
    cells = _whole(best, shape)
    free = {part: math.prod(shape[axis] - 1 for axis in part) for part in sets}
    entries = {kept: math.prod(shape[axis] for axis in kept) for kept in sets}
    noiseless = all(law.variance == 0.0 for law in laws.values())
    variances = {
        kept: 0.0
        if noiseless
        else merged[kept] / entries[kept] * sum(free[part] / precision[part] for part in sets if {*part} <= {*kept})
        for kept in sets
    }
    return FittedTable(_nonnegative(cells, best, precision) if nonnegative else cells, variances)


def _variances(laws: Mapping[Axes, NoiseLaw]) -> dict[Axes, float]:
    """The variances; where there is no noise all weigh the same."""
    largest = max(law.variance for law in laws.values()) or 1.0
    return {kept: max(law.variance, largest * LEAST) for kept, law in laws.items()}


def _parts(table: Floats) -> dict[Axes, Floats]:
    """The parts of a table by their axes; along all others they have one entry."""
    found: dict[Axes, Floats] = {(): table}
    for axis in range(table.ndim):
        split: dict[Axes, Floats] = {}
        for kept, values in found.items():
            mean = values.mean(axis=axis, keepdims=True)
            split |= {kept: mean, (*kept, axis): values - mean}
        found = split
    return found


def _whole(parts: Mapping[Axes, Floats], shape: Sequence[int]) -> Floats:
    table = np.zeros(shape)
    for values in parts.values():
        table += values
    return table


def _nonnegative(cells: Floats, best: Mapping[Axes, Floats], precision: Mapping[Axes, float]) -> Floats:
    """The table without a negative cell that is nearest to the fit, in the fit's own weights."""
    if cells.min(initial=0.0) >= 0.0:
        return cells
    least, largest = min(precision.values()), max(precision.values())
    step = least * (largest / least) ** BETWEEN
    found, over = np.maximum(cells, 0.0), np.zeros(cells.shape)
    for _ in range(STEPS):
        toward = _parts(found - over)
        moved = _whole(
            {
                part: (precision[part] * values + step * toward[part]) / (precision[part] + step)
                for part, values in best.items()
            },
            cells.shape,
        )
        relaxed = RELAXED * moved + (1.0 - RELAXED) * found
        found = np.maximum(relaxed + over, 0.0)
        over += relaxed - found
    return found
