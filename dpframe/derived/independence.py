"""A test whether two columns of a released table are independent, given its noise and the sampling error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.linear import Block, Linear
from dpframe.derived.population import check_asked
from dpframe.derived.record import facts_of, frame_of, measure_of
from dpframe.derived.sums_of_noise import Law
from dpframe.derived.traced import Source
from dpframe.errors import InvalidArgument, shown
from dpframe.queries.contributions import POPULATION
from dpframe.queries.mixing import uniforms

Floats = NDArray[np.float64]

DRAWS = 1_999
LEAST_EXPECTED = 0.5  # the smallest expected count of a cell that the statistic uses
LEAST_TOTAL = 1.0  # the smallest count of rows that can be tested
TWO = 2  # columns, and keys of each
WHOLE = 2.0**52  # below it, x + 1 is another float than x
SURE = 2.0**15  # the standard deviation in rows from which the normal approximation of a binomial draw is used as is
ASKED = ".dp.chi2()"
COUNTS = ("count", "marginals")  # verbs that count rows
CONFIDENCE = 0.95


def tested(frame: Any) -> Any:
    """Return the statistic of Pearson's test of independence, its p-value, and its degrees of freedom.

    The p-value is the share of simulated tables that are at least as far from independence. Each of the `DRAWS` tables
    is drawn from the fitted margins and gets noise of the released law. The draws are pseudorandom (`uniforms`) and
    depend only on the release, so it always has the same p-value. Nothing private depends on them.
    """
    source = Source.of("result", frame, "chi2")
    name, rows, shape = _counts_of(source)
    form = source.form(source.unbiased(name))
    assert isinstance(form, Linear)
    table = form.at(rows)
    degrees = (shape[0] - 1) * (shape[1] - 1)
    seed = int(source.facts["sha256"][:15], 16)
    statistic, p_value = _test(table, shape, seed)
    facts = facts_of("compare", "chi2", f"chi2({name})", [source], CONFIDENCE, used={source.name: [name]})
    numbers = {"statistic": statistic, "p_value": p_value, "degrees": degrees}
    columns: dict[str, Any] = {column: np.array([number]) for column, number in numbers.items()}
    measures = {"statistic": {**measure_of(facts), "ends": ["statistic", "statistic"]}}
    place = np.zeros(1, dtype=np.int64)
    return frame_of(source, [], place, columns, facts, POPULATION, measures=measures, covered=False)


def _counts_of(source: Source) -> tuple[str, NDArray[np.int64], tuple[int, int]]:
    """Return the counts of a two-way table, the rows of its cells, and its shape; refuse dependent units."""
    axes, unit = source.facts["cells"], source.facts["unit"]
    if len(axes) != TWO or any(len(axis["columns"]) > 1 for axis in axes) or min(axis["size"] for axis in axes) < TWO:
        raise InvalidArgument(
            "chi2 must be asked of a table of two columns with at least two keys each. "
            "Write group_by(first, second, keys={...}).count(...)."
        )
    wanted = COUNTS if unit["column"] is None else ("n_units",)
    names = [name for name, said in source.measures.items() if said["verb"] in wanted and said["column"] is None]
    if not names or (unit["column"] is not None and unit["max_groups"] != 1):
        way = (
            "Write group_by(...).count(...)."
            if unit["column"] is None
            else "Write group_by(...).n_units(max_groups=1, ...)."
        )
        raise InvalidArgument(f"chi2 must be asked of counts in which each unit is in one cell. {way}")
    if len(names) > 1:
        raise InvalidArgument(
            f"chi2 must be asked of one count, and this result has {shown(names)}. "
            f"Write result.dp.select({shown(names[0])}).dp.chi2()."
        )
    check_asked(source, names[0], ASKED)
    both = [column for axis in axes for column in axis["columns"]]
    start = 0
    for level in source.facts.get("levels") or [{"columns": both, "rows": source.rows}]:
        if len(level["columns"]) == TWO:
            rows = start + np.arange(level["rows"])
            return names[0], rows, _checked_shape(source, rows)
        start += level["rows"]
    raise InvalidArgument("chi2 must be asked of a table of two columns together. Write marginals(..., degree=2).")


def _checked_shape(source: Source, rows: NDArray[np.int64]) -> tuple[int, int]:
    """Return the shape of a table; filters may leave out whole rows and columns of it, but no single cell."""
    tokens = [source.tokens([label]) for label in (source.labels[0], source.labels[-1])]
    first, second = (len({column[row] for row in rows.tolist()}) for column in tokens)
    if first * second != rows.size or min(first, second) < TWO:
        raise InvalidArgument(
            "chi2 must be asked of a table with every pair of at least two keys each, and some were left out. "
            'Filter by keys: result.dp.filter({"ward": ["A", "B"]}).'
        )
    return first, second


def _test(table: Linear, shape: tuple[int, ...], seed: int) -> tuple[float, float]:
    """Return Pearson's statistic of a noisy table, and its p-value."""
    counts = table.values.reshape(shape)
    statistic, expected, total = (each[0] for each in _pearson(counts[None]))
    if total < LEAST_TOTAL:
        return float(statistic), 1.0
    size = int(np.rint(total))
    drawn = _multinomial(size, (expected / expected.sum()).ravel(), seed) + _noise(table, seed)
    others, _, _ = _pearson(drawn.reshape(-1, *shape))
    return float(statistic), float((1 + np.count_nonzero(others >= statistic)) / (DRAWS + 1))


def _pearson(tables: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the statistics of tables, the expected count of each cell under independence, and the total counts."""
    rows, columns = (np.maximum(tables.sum(axis=axis, keepdims=True), 0.0) for axis in (2, 1))
    total = np.maximum(tables.sum(axis=(1, 2)), 0.0)
    whole = np.sqrt(np.maximum(rows.sum(axis=(1, 2)) * columns.sum(axis=(1, 2)), 1e-300))
    expected = rows * columns / whole[:, None, None]
    floor = np.maximum(expected, LEAST_EXPECTED)
    return ((tables - floor) ** 2 / floor).sum(axis=(1, 2)), expected, total


def _multinomial(size: int, shares: Floats, seed: int) -> Floats:
    """Return tables of `size` rows with these shares: each cell is a binomial draw, given the cells before it."""
    drawn, left, share = np.zeros((DRAWS, shares.size)), np.full(DRAWS, float(size)), 1.0
    chances = uniforms((shares.size, DRAWS), seed, 0)
    for cell, part in enumerate(shares.tolist()):
        chance = min(max(part / share, 0.0), 1.0) if share > 0.0 else 0.0
        drawn[:, cell] = _binomial(left, chance, chances[cell]) if cell + 1 < shares.size else left
        left, share = left - drawn[:, cell], share - part
    return drawn


def _binomial(sizes: Floats, chance: float, uniform: Floats) -> Floats:
    """Return binomial draws from the inverse distribution: a normal approximation with skewness, then steps of one."""
    from scipy.special import betainc, ndtri

    if chance in (0.0, 1.0):
        return sizes * chance
    score = ndtri(uniform)
    spread = np.sqrt(sizes * chance * (1.0 - chance))
    guess = sizes * chance + score * spread + (1.0 - 2.0 * chance) * (score**2 - 1.0) / 6.0
    drawn: Floats = np.clip(np.floor(guess), 0.0, sizes)
    near = np.flatnonzero((spread < SURE) & (sizes < WHOLE))
    for step in (1.0, -1.0):  # up or down to the first number whose cumulative probability reaches `uniform`
        moving = near
        while moving.size:
            n, lower = sizes[moving], drawn[moving] if step > 0.0 else drawn[moving] - 1.0
            rest = np.maximum(n - lower, 0.0)  # SciPy's bdtr is the same, but only for n below 2**31
            at_most = np.where(
                rest > 0.0, betainc(np.maximum(rest, 1.0), np.maximum(lower, 0.0) + 1.0, 1.0 - chance), 1.0
            )
            reached = np.where(lower < 0.0, 0.0, at_most) >= uniform[moving]
            moving = moving[~reached if step > 0.0 else reached]
            drawn[moving] += step
    return drawn


def _noise(table: Linear, seed: int) -> Floats:
    """Return noise of the same law as the table's noise: of its draws, or of the contrasts behind them."""
    total = np.zeros((DRAWS, table.values.size))
    for place, (block, weights) in enumerate(table.noise.values(), 1):
        total += _drawn(block, weights, seed, place)
    return total


def _drawn(block: Block, weights: Any, seed: int, place: int) -> Floats:
    from scipy.special import ndtri

    if block.spread is not None:
        assert block.scales is not None
        matrix = block.spread(weights)
        return np.asarray(ndtri(uniforms((DRAWS, matrix.shape[1]), seed, place)) * block.scales @ matrix.T)
    used = np.unique(weights.indices)
    steps = _steps(block.law, uniforms((DRAWS, used.size), seed, place))
    return np.asarray((weights[:, used] @ steps.T).T)


def _steps(law: Law, uniform: Floats) -> Floats:
    """Return draws of a law from its inverse distribution, in the user's units."""
    from scipy.special import gammainccinv, ndtri

    tail, scale = np.minimum(uniform, 1.0 - uniform), law.scale / law.grid
    if law.p == 1.0:
        size = np.maximum(np.floor(-scale * np.log(tail * (1.0 + np.exp(-1.0 / scale)))), 0.0)
    elif law.p == 2.0:
        size = np.rint(-scale * ndtri(tail))
    else:
        size = np.rint(scale * gammainccinv(1.0 / law.p, 2.0 * tail) ** (1.0 / law.p))
    return np.asarray(np.where(uniform < 0.5, -size, size) * law.grid)
