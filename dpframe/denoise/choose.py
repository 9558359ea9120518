"""The choice of a denoiser by its estimated risk, from the noisy values alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpframe.denoise.bayes import Mixture
from dpframe.denoise.block_sums import DOUBTS, positive_mean, with_sums
from dpframe.denoise.context import MANY, Context, contexts
from dpframe.denoise.estimators import (
    MARGIN,
    Centre,
    Floats,
    Integers,
    Law,
    NoiseLaw,
    Order,
    best_threshold,
    centred,
    james_stein,
    ordered_axes,
    shrinkage,
    soft_threshold,
)
from dpframe.denoise.estimators import nonnegative as projected
from dpframe.denoise.graphs import NO_EDGES, edges_of
from dpframe.denoise.published.spanning_trees import tree_order, tree_shrunk
from dpframe.denoise.published.trend_filter import Penalty, filtered, is_fine
from dpframe.denoise.wavelets import blocks_among, shrunk
from dpframe.errors import InvalidArgument

FEWEST = 3  # cells; with fewer, no candidate is tried
ENOUGH = 32  # cells; with fewer, James-Stein is the only candidate
WORTHWHILE = 0.98  # of the squared error of no denoising: a smaller gain is not worth a bias
FEW = 12  # cells; with fewer, a required gain of 2% selects tables whose values the noise made small, which does harm
WORTHWHILE_OF_FEW = 0.999
ALONE = 0.99  # weight above which the chosen candidate is used alone
SURELY = 2.0  # standard errors by which empirical Bayes in context must be better than the earlier choice
UNLIKELY = 3.0  # standard errors that are subtracted from the risk of wavelets as blocks of cells estimate it
FAR_WORSE = 1.1  # times the risk of the best: on a large table, wavelets are tried only if theirs may be below
MANY_CELLS = 1_024  # cells from which a test for one level is made: in smaller tables, it would miss too much
OF_LEVELS = (0.0, 1.5, 1.5, 1.5, 1.5)  # as `block_sums.DOUBTS`, for a table with no more than one level
MANY_ROWS = 4.0  # deviations of the noise in the sum; if the sum of such a table is larger, `DOUBTS` are used
LEVEL = 0.9  # of the mean: how far values may fall below it in a table that is mostly noise
TINY = 1e-6  # standard deviations of the noise; the name of a choice states sums only if a cell moves by more
LARGEST_GRAPH = 2**18  # edges up to which a trend filter is tried
LARGEST_LINEAR = 2**17  # pairs of edges with a common end up to which degree 1 is tried: its matrix has as many entries

SIMPLEST = 2.0  # standard errors by which another estimate must be better than the simplest one to be chosen
MARGIN_OF_OTHERS = 3.0  # standard errors by which an estimate must seem better than the chosen one to get a weight
EXCHANGES = 100  # exchanges between two estimates at most; most tables need a few
LEAST_GAIN = 1e-9  # of the largest risk: the gain that an exchange must have
LARGEST_WEIGHED = 2**17  # cells up to which estimates are averaged: with more, the choice is sure and averages are slow

RARE = 100.0  # one in this number of tables of noise alone fails a test


@dataclass(frozen=True)
class Choice:
    """A chosen denoiser, its values, and its estimated root mean squared error.

    `deviations` has the error of each cell, if that is known.
    """

    name: str
    values: Floats
    estimated_rmse: float
    deviations: Floats | None = None
    dominated: bool = False  # whether noise is larger than most differences between cells


def auto(
    values: Floats,
    noise: NoiseLaw,
    *,
    nonnegative: bool | None = None,
    graph: Any = None,
    order: Order = None,
) -> Floats:
    """Denoise by the estimator with the least estimated risk, which may be none.

    Parameters
    ----------
    values : array
        Noisy values, of any shape. Values of two or more dimensions are a grid, whose neighbors may be similar.
    noise : Mechanism
        The law of their noise.
    nonnegative : bool, optional
        Whether the true totals are known not to be negative. The result is then not negative either.
    graph : array of integers, (m, 2), optional
        Edges between cells that may be similar, as pairs of positions in ``values.ravel()``. Public.
    order : bool or tuple of int, optional
        Whether the order of a line is meaningful. False means that the axes of a grid have no order. A tuple names the
        axes along which neighbors may be similar.

    Returns
    -------
    array
        Of the same shape.

    Notes
    -----
    Its sums agree with the noisy ones: that of all cells and, on lines and grids, those of their halves, quarters and
    so on (`block_sums.with_sums`). So cells move a little once more after the choice.

    The candidates are James-Stein around zero and around the mean, a risk-chosen soft threshold and empirical Bayes. If
    neighbors are meaningful, Haar wavelets are one too; on a graph, spanning-tree wavelets and trend filters are. The
    risk of each is estimated from the noisy values y = t + z (Stein 1981), on their grid g. With h what the candidate
    subtracts, E[z h(y)] = v E[(H(y + g) - H(y - g)) / 2g] for noise of variance v. For discrete Laplace noise, that is
    exact with H(y) = E[h(y + z')], z' a second draw of the same law. For rounded Gaussian noise, H = h, up to v min(1,
    (g / sigma)^2) / 8 in cells within a step of a threshold. (Stein's own identity is the limit of a fine grid; on a
    coarse one, it promises gains from zeros that the noise did not change.) For other shapes than these two, the
    identity of the Gaussian is an approximation. A wavelet coefficient is c times a sum of cells, and one cell changes
    it by c, so the same holds with c z' for z'. Empirical Bayes learns from the values; its risk is that of priors
    fitted to one half of the cells and tested on the other. For a trend filter, E[z h] is v times the cells less the
    degrees of freedom (Tibshirani and Taylor 2012): patches for degree 0, and kinks for degree 1, which is a candidate
    for Gaussian noise on a fine grid only. For other noise, the patches are counted after small moves of a quarter of
    the cells at a time, as the identity above requires.

    A candidate is admitted only if its estimate beats no denoising by a standard error and by 2%, since less is not
    worth a bias. Of those admitted, the one with the least estimate is used. If James-Stein, the simplest, is admitted,
    another must be better by two standard errors of the difference. Fewer than 32 cells have James-Stein alone, around
    zero or, if that is better by a standard error, around their mean. Its theorem is about always shrinking: to require
    2% first would harm fewer than 12 cells, by up to 5% in simulations, so 0.1% is required for them.

    From 1,024 cells on, none of these is tried if no more than one level of all cells is seen (`is_level`): a method
    that learns from noise alone takes its largest cells for rows. Each cell is then the mean of all, and is moved with
    its part of the table until sums agree.

    Lines and grids of at least 64 cells then use empirical Bayes in context (`context.in_context`) if its cross-fitted
    risk is smaller by two standard errors of the difference. (Fine classes are used only if another candidate, coarse
    classes among them, promises a gain of 2%.) Up to 131,072 cells, the choice is averaged with the other estimates
    that surely improve it (`weighed`).

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> noise = dpf.Gaussian.calibrate(sensitivity=1, epsilon=0.1, delta=1e-6)
    >>> noisy = np.array([30.0, -12.0, 8.0, -41.0, 22.0, -5.0, 17.0, -28.0, 3.0, 11.0] * 50)
    >>> float(np.abs(dpf.denoise.auto(noisy, noise)).max()) < 1.0
    True
    """
    return choose(values, noise, nonnegative=bool(nonnegative), graph=graph, order=order).values


def choose(
    values: Floats,
    noise: NoiseLaw,
    *,
    nonnegative: bool = False,
    graph: Any = None,
    order: Order = None,
    never_zero: bool = False,
) -> Choice:
    """Choose as `auto` does, and return the name and the estimated errors of the choice as well.

    With `never_zero`, the values are sums of values. However small they are, they are not all set to 0.
    """
    values, noise = np.asarray(values, dtype=np.float64), Law.of(noise)
    if not np.isfinite(values).all():
        raise InvalidArgument("values must be finite to be denoised, and some are not. Replace them before.")
    edges = NO_EDGES if graph is None else edges_of(graph, values.size)
    candidate: Candidate | None = None
    axes = ordered_axes(values, order)
    if values.size >= FEWEST and noise.variance > 0.0:
        if never_zero and is_dominated(values, noise):
            candidate = _around_a_positive_mean(values, noise) if nonnegative else _james_stein(values, noise, "mean")
        elif values.size < ENOUGH:
            candidate = _of_few(values, noise)
        elif values.size >= MANY_CELLS and _is_level(values, noise, edges, axes):
            candidate = _one_level(values, noise)
        else:
            candidate = _learned(values, noise, edges, axes, nonnegative)
    return _choice(values, noise, candidate, axes, nonnegative=nonnegative, never_zero=never_zero)


def _of_few(values: Floats, noise: NoiseLaw) -> Candidate | None:
    """Return James-Stein around zero or around the mean, or None if its gain is not worth a bias."""
    around_zero, around_mean = _james_stein(values, noise, 0.0), _james_stein(values, noise, "mean")
    first = around_mean if around_mean.risk + MARGIN * around_mean.margin < around_zero.risk else around_zero
    most = WORTHWHILE_OF_FEW if values.size < FEW else WORTHWHILE
    return first if first.risk < most * values.size * noise.variance else None


def _is_level(values: Floats, noise: NoiseLaw, edges: Integers, axes: tuple[int, ...]) -> bool:
    """Return whether only one level is seen, along the axes or along a spanning tree of the graph."""
    if not len(edges):
        return is_level(values, noise, axes)
    return is_level(values, noise, ()) and is_level(values.ravel()[tree_order(edges, values.size)], noise, (0,))


def _one_level(values: Floats, noise: NoiseLaw) -> Candidate:
    """Return the candidate that replaces each cell by the mean of all."""
    mean = float(values.mean())
    risk = float(np.square(values - mean).sum()) - (values.size - 2) * noise.variance
    margin = math.sqrt(values.size * spread_of_squares(noise)) * noise.variance
    many = abs(mean) > MANY_ROWS * math.sqrt(noise.variance / values.size)
    doubts = DOUBTS if many else OF_LEVELS
    return Candidate("one level", risk, margin, partial(np.full, values.shape, mean), doubts=doubts)


def _learned(
    values: Floats, noise: NoiseLaw, edges: Integers, axes: tuple[int, ...], nonnegative: bool
) -> Candidate | None:
    """Return the best of all candidates; a large table tries wavelets only if some of its blocks suggest them."""
    together = Mixture.of(values, noise, nonnegative=nonnegative)
    later = bool(axes) and values.size > MANY
    candidates = [*_candidates(values, noise, together, edges, () if later else axes)]
    limit = WORTHWHILE * values.size * noise.variance
    needed = math.inf if any(candidate.risk < limit for candidate in candidates) else limit
    steps = contexts(values, noise, axes, nonnegative=nonnegative, together=together, needed=needed)
    base: Candidate | None = None
    others: list[Candidate] = []
    # if coarse classes are far better, the best of the others does not matter, and to find it takes many passes
    if values.size <= LARGEST_WEIGHED or not _far_better(values, noise, steps, candidates):
        base, others = _least(values, noise, candidates, nonnegative)
    best = climbed(values, noise, base, steps, nonnegative=nonnegative)
    if later and _may_be_smooth(values, noise, axes, best):
        base, others = _least(values, noise, [*candidates, _haar(values, noise, axes)], nonnegative)
        best = climbed(values, noise, base, steps, nonnegative=nonnegative)
    if best is None or not steps or values.size > LARGEST_WEIGHED:
        return best
    return weighed_with(noise, best, [*others, *(_candidate(step, noise) for step in steps)], nonnegative)


def _far_better(values: Floats, noise: NoiseLaw, steps: Sequence[Context], candidates: Sequence[Candidate]) -> bool:
    """Return whether coarse classes are surely better than all these candidates and than James-Stein.

    The distance between two estimates is at most about the sum of their distances from the truth.
    """
    if not steps:
        return False
    mine = steps[0].risk
    simple = (_james_stein(values, noise, 0.0), _james_stein(values, noise, "mean"))
    for other in (*simple, *candidates):
        apart = math.sqrt(max(other.risk, 0.0)) + math.sqrt(max(mine, 0.0))
        doubt = math.sqrt(noise.variance) * (apart + math.sqrt(values.size * noise.variance))
        if mine + 2.0 * SURELY * doubt >= other.risk:
            return False
    return True


def _may_be_smooth(values: Floats, noise: NoiseLaw, axes: tuple[int, ...], best: Candidate | None) -> bool:
    """Return whether wavelets may be better than the best so far: blocks of cells do not show that they are far worse.

    To leave wavelets out wrongly loses a gain, but does no harm.
    """
    some = blocks_among(values, axes)
    smooth = shrunk(some, noise, tuple(range(1, some.ndim)))
    least = (smooth.risk - UNLIKELY * smooth.error) / some.size
    return least < FAR_WORSE * (noise.variance if best is None else best.risk / values.size)


def _around_a_positive_mean(values: Floats, noise: NoiseLaw) -> Candidate:
    """Return James-Stein around the mean, which is taken as not negative, shrunk until no value is negative."""
    candidate, rest = _james_stein(values, noise, "mean"), values - values.mean()
    middle = positive_mean(float(values.sum()), math.sqrt(values.size * noise.variance)) / values.size
    kept = 1.0 - shrinkage(rest, noise, 1)
    less = min(kept, LEVEL * middle / max(-float(rest.min()), middle))
    more = (kept - less) ** 2 * float(np.square(rest).sum())
    return replace(candidate, risk=candidate.risk + more, denoised=lambda: middle + less * rest)


def _choice(
    values: Floats,
    noise: NoiseLaw,
    candidate: Candidate | None,
    axes: tuple[int, ...],
    *,
    nonnegative: bool,
    never_zero: bool,
) -> Choice:
    """Return a choice: the values of a candidate or the noisy ones, with their sums, and not below 0 if required."""
    name, best, rmse = "none", values, math.sqrt(noise.variance)
    deviations: Floats | None = None
    doubt: tuple[float, ...] = DOUBTS
    if candidate is not None:
        name, best, rmse = candidate.name, candidate.denoised(), candidate.rmse(values.size, noise.variance)
        deviations, doubt = candidate.deviations(), candidate.doubts
    if deviations is not None:  # at least the error of the mean of all cells, as in `Candidate.rmse`
        deviations = np.maximum(deviations, math.sqrt(noise.variance / values.size))
    if nonnegative:
        name, best = f"{name}, non-negative", projected(best, noise)
    dominated = is_dominated(values, noise)
    doubt = doubt[:1] if not axes or (never_zero and dominated) else doubt  # halves may have no meaning
    kept = with_sums(best, values, noise, nonnegative=nonnegative, doubt=doubt, never_zero=never_zero)
    moved = kept - best
    if max(moved.max(initial=0.0), -moved.min(initial=0.0)) > TINY * math.sqrt(noise.variance):
        name = f"{name}, with its sums"
        deviations = None if deviations is None else np.hypot(deviations, moved, out=moved)
        best = kept
    return Choice(name, best + 0.0, rmse, deviations, dominated)


def is_dominated(values: Floats, noise: NoiseLaw) -> bool:
    """Return whether the noise is larger than most differences between cells.

    Together, such cells cannot be distinguished from noise. The sum of squares around the mean is below twice that of
    noise alone. No cell is farther from the mean than any cell is in 99 of 100 tables of noise alone.
    """
    if values.size < FEWEST or not noise.variance > 0.0:
        return False
    rest = values - values.mean()
    small = float(np.square(rest).sum()) < 2.0 * (values.size - 1) * noise.variance
    return small and float(np.abs(rest).max()) < largest_cell(values.size, noise) * math.sqrt(noise.variance)


@dataclass(frozen=True)
class Candidate:
    """A name, an estimated summed squared error, its standard error, and the values.

    The values are computed when they are needed.
    """

    name: str
    risk: float
    margin: float
    denoised: Callable[[], Floats]
    deviations: Callable[[], Floats | None] = lambda: None  # of each cell, if the method knows them
    doubts: tuple[float, ...] = DOUBTS  # the `doubt` of `with_sums` for its sums
    slow: bool = False  # whether its values take much longer than its risk
    besides: float = 0.0  # further variance of the estimated error: see `Estimate`

    def rmse(self, size: int, variance: float) -> float:
        """Return the expected root mean squared error, with the margin.

        An estimate of risk may fall below zero, but the error cannot, so it is raised to 0 before the margin is added.
        The result is at least sqrt(variance / n) for n cells: even the mean of all cells, the best known number, has
        this error.
        """
        return math.sqrt(max(max(self.risk, 0.0) + MARGIN * self.margin, variance) / size)


def climbed(
    values: Floats, noise: NoiseLaw, base: Candidate | None, steps: Sequence[Context], *, nonnegative: bool
) -> Candidate | None:
    """Return the base, or empirical Bayes in context if that is better by `SURELY` standard errors."""
    if not steps:
        return base
    current = _none(values, noise, nonnegative) if base is None else _estimate(base, nonnegative)
    for context in steps:
        if not context.risk < current.risk:
            continue
        step = _estimate(_candidate(context, noise), nonnegative)
        if step.risk + SURELY * step.doubt(current, noise) < current.risk:
            base, current = _candidate(context, noise), step
    return base


def weighed_with(noise: NoiseLaw, chosen: Candidate, others: Sequence[Candidate], nonnegative: bool) -> Candidate:
    """Return the chosen candidate, averaged with the others that surely improve it.

    It is the candidate itself if none does.
    """
    first = _estimate(chosen, nonnegative)
    rest = [_estimate(other, nonnegative) for other in others if other.name != chosen.name]
    found = weighed(first, rest, noise)
    if found.chosen > ALONE:
        return chosen

    def deviations() -> Floats | None:
        known = chosen.deviations()
        return None if known is None else np.hypot(known, found.values - first.values)

    name = f"{chosen.name}, weighed with others"
    return replace(chosen, name=name, risk=found.risk, denoised=lambda: found.values, deviations=deviations)


def _estimate(candidate: Candidate, nonnegative: bool) -> Estimate:
    found = candidate.denoised()
    return Estimate(np.maximum(found, 0.0) if nonnegative else found, candidate.risk, candidate.besides)


def _none(values: Floats, noise: NoiseLaw, nonnegative: bool) -> Estimate:
    return Estimate(np.maximum(values, 0.0) if nonnegative else values, values.size * noise.variance)


def _candidate(context: Context, noise: NoiseLaw) -> Candidate:
    name = f"context-empirical-bayes in {context.name} classes"
    besides = context.values.size * noise.variance**2 / 8.0  # the variance of cross-fitting, from simulations
    return Candidate(
        name, context.risk, context.error, lambda: context.values, lambda: context.deviations, besides=besides
    )


def _least(
    values: Floats, noise: NoiseLaw, candidates: Sequence[Candidate], nonnegative: bool
) -> tuple[Candidate | None, list[Candidate]]:
    """Return the candidate to choose, or None, and the compared ones; all are surely better than no denoising.

    The choice has the least estimated risk. But James-Stein, the simplest, stays unless another is better by `SIMPLEST`
    standard errors: the more a method learns from noise, the more optimistic its estimate.
    """
    spread = values.size * noise.variance
    around_zero, around_mean = _james_stein(values, noise, 0.0), _james_stein(values, noise, "mean")
    limit = WORTHWHILE * spread
    simple, others = (
        [candidate for candidate in some if candidate.risk + MARGIN * candidate.margin < limit]
        for some in ((around_zero, around_mean), candidates)
    )
    best: Candidate | None = min(simple, key=lambda candidate: candidate.risk, default=None)
    simplest = _none(values, noise, nonnegative) if best is None else _estimate(best, nonnegative)
    least, looked_at = simplest.risk if best else math.inf, [*simple]
    for candidate in sorted(others, key=lambda candidate: candidate.risk):
        if candidate.risk >= least and candidate.slow:
            continue
        looked_at.append(candidate)
        found = _estimate(candidate, nonnegative)
        risk = found.risk + SIMPLEST * found.doubt(simplest, noise)
        if risk < least:
            best, least = candidate, risk
    return best, looked_at


def _candidates(
    values: Floats, noise: NoiseLaw, together: Mixture, edges: Integers, axes: tuple[int, ...]
) -> Iterator[Candidate]:
    best = best_threshold(values, noise)
    name = f"soft-threshold at {best.level / math.sqrt(noise.variance):.2f} standard deviations"
    yield Candidate(
        name, best.risk, math.sqrt(best.spread), partial(soft_threshold, values, noise, threshold=best.level)
    )
    if axes:
        yield _haar(values, noise, axes)
    if len(edges):
        yield from _on_graph(values, noise, edges)
    denoised, deviations = (lambda: together.values + 0.0), (lambda: np.sqrt(together.variances))
    besides = values.size * noise.variance**2 / 32.0
    yield Candidate("empirical-bayes", *together.risk, denoised, deviations, slow=True, besides=besides)


def _haar(values: Floats, noise: NoiseLaw, axes: tuple[int, ...]) -> Candidate:
    smooth = shrunk(values, noise, axes)
    return Candidate("haar", smooth.risk, smooth.error, partial(np.add, smooth.values, 0.0))


def _on_graph(values: Floats, noise: NoiseLaw, edges: Integers) -> Iterator[Candidate]:
    """Yield the candidates that a graph adds to those of `_candidates`."""
    smooth = tree_shrunk(values, noise, edges)
    yield Candidate("spanning-tree-wavelets", smooth.risk, smooth.error, partial(np.add, smooth.values, 0.0))
    pairs = int(np.square(np.bincount(edges.ravel())).sum())
    for degree, is_tried in enumerate((len(edges) <= LARGEST_GRAPH, pairs <= LARGEST_LINEAR and is_fine(noise))):
        if is_tried:
            trend = filtered(values, noise, Penalty.of(edges, values.size, degree))
            name = f"trend-filter of degree {degree} at {trend.strength / math.sqrt(noise.variance):.2f}"
            denoised = partial(np.add, trend.values, 0.0)
            yield Candidate(f"{name} standard deviations", trend.risk, trend.error, denoised)


def _james_stein(values: Floats, noise: NoiseLaw, centre: Centre) -> Candidate:
    """Return James-Stein with Stein's estimate of its error and the standard error of that estimate."""
    rest = values - centred(values, centre)
    fitted = int(isinstance(centre, str))  # the number of parameters of the center that come from the values
    free = values.size - fitted  # the remaining dimensions
    taken = shrinkage(rest, noise, fitted)
    margin = math.sqrt(2.0 * values.size) * noise.variance * taken**2
    if taken == 1.0:
        risk = float(np.square(rest).sum()) - (2 * free - values.size) * noise.variance
    else:
        risk = (values.size - taken * (free - 2)) * noise.variance
    name = "james-stein" if centre == 0.0 else "james-stein around the mean"
    left = 1.0 - taken * (1.0 - fitted / values.size)  # share of the variance under the prior that shrinks like this
    unsure = math.sqrt(2.0 / values.size) * taken**2  # the same margin: the spread of the totals is not known exactly
    deviations = partial(np.full, values.shape, math.sqrt((max(left, 1.0 / values.size) + unsure) * noise.variance))
    return Candidate(name, risk, margin, partial(james_stein, values, noise, centre=centre), deviations)


@dataclass(frozen=True)
class Estimate:
    """Values, the estimate of their summed squared error, and its further variance.

    Two estimates of risk share the noise of the noisy values. For noise of variance v and values t and t', their
    difference has a variance of about v |t - t'|^2. Cross-fitting adds a further variance, `besides`, which the values
    do not show.
    """

    values: Floats
    risk: float
    besides: float = 0.0

    def doubt(self, other: Estimate, noise: NoiseLaw) -> float:
        """Return the standard error of the difference of the two risks."""
        apart = self.values - other.values
        squares = float(np.square(apart, out=apart).sum())
        return math.sqrt(noise.variance * squares + max(self.besides, other.besides))


@dataclass(frozen=True)
class Weighed:
    """The weighted mean of some estimates, and the estimate of its risk.

    `chosen` is the weight of the chosen estimate.
    """

    values: Floats
    risk: float
    chosen: float


def weighed(chosen: Estimate, others: list[Estimate], noise: NoiseLaw) -> Weighed:
    """Return the weighted mean of these estimates with the least estimated risk.

    For weights w of sum 1, the squared error of the mean of estimates t_k is the mean of theirs less that of their
    squared distances from it: sum w_k R_k - 1/2 sum w_k w_l |t_k - t_l|^2, whatever the truth. With unbiased estimates
    of the R_k, that is an unbiased estimate too, and convex in w. Its minimum is near the best possible mean (Leung and
    Barron 2006; Dai, Rigollet and Zhang 2012; Bellec 2018). An estimate other than the chosen one has
    `MARGIN_OF_OTHERS` standard errors added to its risk, so that it gets a weight only if it surely helps.
    """
    every = [chosen, *others]
    base = chosen.values
    rest = np.stack([(one.values - base).ravel() for one in every])  # of similar size, so that squares lose no digits
    products = rest @ rest.T
    squares = np.diag(products)
    apart = np.maximum(squares[:, None] + squares - 2.0 * products, 0.0)
    risks = np.array([one.risk for one in every])
    besides = np.maximum(np.array([one.besides for one in every]), chosen.besides)
    margins = MARGIN_OF_OTHERS * np.sqrt(noise.variance * apart[0] + besides)
    margins[0] = 0.0
    weights = least_mean(risks + margins, apart)
    risk = float(weights @ risks - 0.5 * weights @ apart @ weights)
    return Weighed(base + (weights @ rest).reshape(base.shape), risk, float(weights[0]))


def least_mean(risks: Floats, apart: Floats) -> Floats:
    """Return the weights that minimize w'R - w'D w / 2, by exact exchanges between two of them.

    Weights are not negative and add up to 1. The first estimate starts with all the weight. D holds squared distances,
    for which -w'D w is convex if weights add up to a constant.
    """
    weights = np.zeros(risks.size)
    weights[0] = 1.0
    tolerance = LEAST_GAIN * max(float(np.abs(risks).max()), 1e-300)
    for _ in range(EXCHANGES):
        slope = risks - apart @ weights
        to = int(np.argmin(slope))
        used = np.flatnonzero(weights > 0.0)
        source = int(used[np.argmax(slope[used])])
        gain, distance = float(slope[source] - slope[to]), float(apart[to, source])
        if gain <= tolerance or distance == 0.0:
            break
        step = min(gain / (2.0 * distance), float(weights[source]))
        weights[to] += step
        weights[source] -= step
    return weights


def is_level(values: Floats, noise: NoiseLaw, axes: tuple[int, ...]) -> bool:
    """Return whether all cells may have one level.

    If so, no cell and no block of neighbors stands out, and neither do all of them together.

    Parameters
    ----------
    values : array
        Noisy values.
    noise : NoiseLaw
        The law of their noise.
    axes : tuple of int
        The axes along which neighbors may be similar. Blocks are 2, 4, 8 and more cells wide along each.

    Returns
    -------
    bool
        About 99 in 100 tables of noise around one level pass each of four tests. Two tests compare the largest cell and
        the largest sum of a block (blocks overlap by half) with bounds on their tails. Two compare the squares of cells
        and of blocks of each width with the chi-squared law that has the variance of their sum. The result is also
        False if squares of cells are too small for this noise, as after another denoiser, or if a value is not finite.
        It is False as well if the grid is coarser than the noise, so that these laws do not hold.

    Examples
    --------
    >>> import dpframe as dpf, numpy as np
    >>> law = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    >>> noisy = law.add_noise(np.zeros(4096, dtype=np.int64)).astype(float)
    >>> is_level(noisy + 7.0 * (np.arange(4096) < 1024), law, (0,))
    False
    """
    if noise.grid > math.sqrt(noise.variance):
        return False
    rest = (values - values.mean()) / math.sqrt(noise.variance)
    if not float(np.abs(rest).max()) < largest_cell(rest.size, noise) or _are_small(rest, noise):
        return False
    widths = max((rest.shape[axis].bit_length() for axis in axes), default=0)
    parts, cells = rest, 1
    while not _are_seen(parts, cells, noise, 1 if cells == 1 else widths):
        wide = [axis for axis in axes if parts.shape[axis] > 2]
        if not wide:
            return True
        blocks = parts
        for axis in wide:  # sums of two neighbors: `blocks` from each place on, `parts` from every second
            blocks, parts = _pairs(blocks, axis, 1), _pairs(parts, axis, 2)
        cells *= 2 ** len(wide)
        if float(np.abs(blocks).max()) >= largest_block(cells, blocks.size, noise):
            return False
    return False


def largest_cell(cells: int, noise: NoiseLaw) -> float:
    """Return a bound that no cell exceeds in 99 of 100 tables, in deviations of the noise.

    It is at least 3.
    """
    deviation = math.sqrt(noise.variance)
    if noise.p == 1.0:  # on its grid P(|z| >= k) = 2 r^k / (1 + r)
        rare = math.log(RARE * cells) + math.log(2.0 / (1.0 + math.exp(-noise.grid / noise.scale)))
        return max(rare * noise.scale / deviation, 3.0)
    from scipy.special import gammainccinv

    unit = math.sqrt(math.gamma(1.0 / noise.p) / math.gamma(3.0 / noise.p))  # the scale at which the variance is 1
    far = unit * math.pow(gammainccinv(1.0 / noise.p, 1.0 / (RARE * cells)), 1.0 / noise.p)
    return max(far + 0.5 * noise.grid / deviation, 3.0)


def spread_of_squares(noise: NoiseLaw) -> float:
    """Return the variance of the square of a noise of variance 1: its kurtosis less 1."""
    kurtosis = math.gamma(5.0 / noise.p) * math.gamma(1.0 / noise.p) / math.gamma(3.0 / noise.p) ** 2
    return kurtosis - 1.0 + (noise.grid**2 / noise.variance if noise.p == 1.0 else 0.0)  # for the discrete law


def largest_block(cells: int, blocks: int, noise: NoiseLaw) -> float:
    """Return a bound like `largest_cell` for the sums of `blocks` blocks of `cells` cells each.

    P(sum of m > sqrt(2 m x) + c x) <= e^(-x) for noise of variance 1 whose tails fall by e within c, as for Laplace
    noise, or faster (Boucheron, Lugosi and Massart 2013, section 2.4). For Gaussian or lighter tails, c is 0.
    """
    heavy = noise.scale / math.sqrt(noise.variance) if noise.p == 1.0 else math.sqrt(0.5) if noise.p < 2.0 else 0.0
    rare = math.log(2.0 * RARE * blocks)
    return math.sqrt(2.0 * cells * rare) + heavy * rare


def _are_seen(parts: Floats, cells: int, noise: NoiseLaw, tests: int) -> bool:
    """Return whether squares of sums of `cells` cells add up to more than noise explains, in one of `tests` tests."""
    return float(np.square(parts).sum()) / cells >= _squares(parts.size, cells, noise, 1.0 / (RARE * tests))


def _are_small(rest: Floats, noise: NoiseLaw) -> bool:
    """Return whether squares of cells add up to less than noise gives, as after another denoiser."""
    return float(np.square(rest).sum()) <= _squares(rest.size, 1, noise, 1.0 - 1.0 / RARE)


def _squares(parts: int, cells: int, noise: NoiseLaw, share: float) -> float:
    """Return the number that the squares of `parts` sums exceed in this share of tables, for noise of variance 1."""
    from scipy.special import chdtri

    times = 1.0 + (spread_of_squares(noise) - 2.0) / (2.0 * cells)  # of the variance for Gaussian noise
    return times * float(chdtri((parts - 1) / times, share))


def _pairs(parts: Floats, axis: int, step: int) -> Floats:
    """Return the sums of two neighbors along an axis, one for every `step` places; the last may be one cell alone."""
    parts = np.moveaxis(parts, axis, 0)
    firsts, seconds = parts[: None if step > 1 else -1 : step], parts[1::step]
    sums = firsts.copy()
    sums[: len(seconds)] += seconds
    return np.moveaxis(sums, 0, axis)
