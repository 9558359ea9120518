"""Covariances and correlations: what a row adds, sensitivity, and the values that are computed from noisy sums."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, EVERYTHING, UNITS, given_as, largest_by_chance, query_of, ratios
from seen import seen

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument, PrivacyUnit
from dpframe.queries import moments
from dpframe.queries.limits import grid_steps
from dpframe.queries.moments import Pair
from dpframe.queries.total import Measured
from dpframe.queries.vectors import centred_products, pair_cells
from tests.covering import chance_of_missing

ASKED = {"covariance": dpf.covariance, "correlation": dpf.correlation}
BOUNDS = [((0.0, 4.0), (-3.0, 4.0)), ((-(2.0**53), 2.0**53), (1e-9, 1.0))]
NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]
PUBLISHED = [  # n, Sx, Sy, Txx, Tyy, Sxy in [-1, 1] -> covariance, correlation
    (100, 0, 0, -40, -40, 5, 0.05050505050505051, 0.5),
    (100, 20, -10, -30, -35, -8, -0.06060606060606061, -0.40089186286863654),
    (1000, 100, 200, -250, -300, 150, 0.13013013013013014, 0.6634034720037774),
    (50, 0, 0, -25, -20, 1, 0.020408163265306124, 0),
    (400, -40, 40, -100, -100, 90, 0.2355889724310777, 0.9791666666666667),
]


def steps_of(bounds, generator):
    lower, upper = grid_steps(bounds)
    return np.array([lower, upper, *generator.integers(lower, upper + 1, 200).tolist()])


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("degree", [1, 2])
def test_cells_are_not_negative_and_make_a_whole(degree, bounds):
    """Compared with exact rationals, for values that include the corners of the bounds."""
    generator = np.random.default_rng(4)
    x, y = (steps_of(each, generator) for each in bounds)
    x, y = np.repeat(x, y.size), np.tile(y, x.size)
    vector = pair_cells((("x", bounds[0]), ("y", bounds[1])), 0, 1, degree)
    found = np.stack([entry.function(x, y) for entry in vector.entries])
    assert found.min() == 0
    assert (found.sum(axis=0) == vector.most[0]).all()
    assert (found.astype(object) ** 2).sum(axis=0).max() == vector.most[1]
    assert pickle.loads(pickle.dumps(vector)) == vector
    for place in range(0, x.size, 997):
        t, s = (
            Fraction(int(one[place]) - lower, upper - lower)
            for one, (lower, upper) in zip((x, y), map(grid_steps, bounds), strict=True)
        )
        of = ((lambda v: (1 - v, v)), (lambda v: ((1 - v) ** 2, 2 * v * (1 - v), v**2)))[degree - 1]
        exact = [a * b for a in of(t) for b in of(s)]
        each = [abs(Fraction(int(found[k, place]), 2**30) - one) for k, one in enumerate(exact)]
        assert max(each) <= Fraction(1, 2**26)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_centred_products_stay_within_their_reach(bounds):
    generator = np.random.default_rng(4)
    x, y = (steps_of(each, generator) for each in bounds)
    x, y = np.repeat(x, y.size), np.tile(y, x.size)
    rows = centred_products((("x", bounds[0]), ("y", bounds[1])))
    scaled = [
        2.0 * (one - lower) / (upper - lower) - 1.0
        for one, (lower, upper) in zip((x, y), map(grid_steps, bounds), strict=True)
    ]
    exact = [np.ones(x.size), *scaled, *(one**2 - 0.5 for one in scaled), scaled[0] * scaled[1]]
    for row, wanted in zip(rows, exact, strict=True):
        found = row.function(x, y)
        assert row.reach[0] <= found.min()
        assert found.max() == row.reach[1]
        assert np.abs(found * row.grid - wanted).max() < 2.0**-27
        assert pickle.loads(pickle.dumps(row)) == row


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("keys", [BY_GROUP, EVERYTHING], ids=["by group", "in one cell"])
@pytest.mark.parametrize("pure", [True, False])
def test_no_neighbor_is_farther_than_the_sensitivity(pure, keys, unit):
    bounds = {"x": (0.0, 4.0), "z": (-3.0, 4.0)}
    for ask in ASKED.values():
        query = query_of(ask(["x", "z"], bounds=bounds), keys, pure)
        assert largest_by_chance(query, unit, 1 if pure else 2, tries=12, values_of=2) <= 1 + 1e-15


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("name", ASKED)
def test_the_sensitivity_is_attained(name, neighbors, p):
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=3, max_groups=2)
    query = query_of(ASKED[name](["x", "z"], bounds={"x": (0.0, 4.0), "z": (0.0, 1.0)}), BY_GROUP, pure=p == 1)
    mine = [(group, 9.0, 9.0) for group in "AB" for _ in range(3)]
    others = [[(group, *one) for group in "AB" for _ in range(3)] for one in ((-9.0, -9.0), (-9.0, 9.0), (2.0, 9.0))]
    largest: dict = {}
    for instead in others if neighbors == "replace" else [[]]:
        for total, found in ratios(query, unit, [mine], [instead], p).items():
            largest[total] = max(found, largest.get(total, 0.0))
    if neighbors == "add-remove":
        assert list(largest.values()) == pytest.approx([1.0] * len(largest), abs=1e-6)
    assert max(largest.values()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("n", "x", "y", "xx", "yy", "xy", "covariance", "correlation"), PUBLISHED)
def test_published_readings(n, x, y, xx, yy, xy, covariance, correlation):
    pair = Pair(np.array([[n, x, y, xx + n / 2, yy + n / 2, xy]], dtype=float), np.zeros((6, 6)), 1.96)
    assert moments.covariances(pair, 1)[0] == pytest.approx(covariance)
    assert moments.correlations(pair)[0] == pytest.approx(correlation)


@pytest.mark.parametrize("degree", [1, 2])
def test_moments_of_cells(degree):
    generator = np.random.default_rng(2)
    t = generator.random((2, 50))
    of = ((lambda v: (1 - v, v)), (lambda v: ((1 - v) ** 2, 2 * v * (1 - v), v**2)))[degree - 1]
    cells = np.array([(a * b).sum() for a in of(t[0]) for b in of(t[1])])
    y = 2 * t - 1
    squares = (y**2).sum(axis=1) if degree == 2 else np.zeros(2)
    assert moments.of_cells(degree) @ cells == pytest.approx([50, *y.sum(axis=1), *squares, (y[0] * y[1]).sum()])


def test_the_nearest_matrices():
    """They have no negative eigenvalue and a diagonal within its limit; a valid matrix stays as it is."""
    generator = np.random.default_rng(1)
    noisy = generator.normal(size=(200, 4, 4))
    noisy = noisy + noisy.transpose(0, 2, 1)
    for found in (moments.nearest_covariances(noisy, np.full(200, 1.5)), moments.nearest_correlations(noisy)):
        assert np.linalg.eigvalsh(found).min() > -1e-9
        assert np.diagonal(found, axis1=1, axis2=2).max() <= 1.5 + 1e-9
    assert np.diagonal(moments.nearest_correlations(noisy), axis1=1, axis2=2) == pytest.approx(np.ones((200, 4)))
    real = np.corrcoef(generator.normal(size=(4, 90)))[None]
    assert moments.nearest_correlations(real) == pytest.approx(real)
    assert moments.nearest_covariances(real, np.ones(1)) == pytest.approx(real)


def people(rows=30_000):
    generator = np.random.default_rng(5)
    base = generator.normal(0.0, 10.0, rows)
    x, z = base + 50.0, 3.0 * base + generator.normal(0.0, 20.0, rows)
    y = generator.gamma(2.0, 5.0, rows)
    x[::9], y[::7] = np.nan, np.nan
    return pl.DataFrame({"x": x, "z": z, "y": y, "g": generator.choice(["A", "B"], rows)})


LIMITS = {"x": (0, 100), "z": (-100, 100), "y": (0, 60)}


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_values_without_much_noise(name, library, noise):
    """With little noise, they equal NumPy's for the clipped rows in which all three columns are present."""
    frame = people()
    ledger = dpf.Ledger(epsilon=1e8, delta=1e-3, accounting="basic")
    asked = given_as(frame, library).dp.group_by("g", keys=["A", "B"])
    found = getattr(asked, name)(list(LIMITS), bounds=LIMITS, epsilon=1e7, ledger=ledger, **noise)
    assert list(found.columns) == ["g", "column", "other", name, f"{name}_noisy", f"{name}_error"]
    assert list(found["column"]) == ["x", "x", "z"] * 2
    assert list(found["other"]) == ["z", "y", "y"] * 2
    for place, group in enumerate("AB"):
        mine = frame.filter(g=group).select(*LIMITS).to_numpy()
        mine = mine[~np.isnan(mine).any(axis=1)].clip(*np.array(list(LIMITS.values())).T)
        exact = np.cov(mine.T) if name == "covariance" else np.corrcoef(mine.T)
        values = found[name].to_numpy()[3 * place : 3 * place + 3]
        assert values == pytest.approx(exact[np.triu_indices(3, 1)], abs=2e-3 if name == "covariance" else 1e-4)
    assert found.dp.provenance["measures"][name]["columns"] == list(LIMITS)


def test_it_is_the_result_of_agg_too():
    ledger = dpf.Ledger(epsilon=9.0)
    frame = people()
    found = frame.dp.agg(c=dpf.covariance(["x", "z"], bounds={"x": (0, 100), "z": (-9, 9)}), epsilon=1.0, ledger=ledger)
    assert found.columns == ["column", "other", "c", "c_noisy", "c_error"]
    bare = frame.dp.correlation(
        ["x", "z"], bounds={"x": (0, 100), "z": (-9, 9)}, epsilon=1.0, ledger=ledger, keep_noisy=False
    )
    assert bare.columns == ["column", "other", "correlation", "correlation_error"]


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_matrices_that_can_be(name, noise):
    """With much noise, correlations still form a valid matrix, and covariances stay within their bounds."""
    frame = people(2_000)
    groups = 50
    keyed = pl.concat([frame.with_columns(k=pl.lit(k)).head(20) for k in range(groups)])
    ledger = dpf.Ledger(epsilon=9.0, delta=1e-4, accounting="basic")
    asked = keyed.dp.group_by("k", keys=range(groups))
    found = getattr(asked, name)(list(LIMITS), bounds=LIMITS, epsilon=1.0, ledger=ledger, **noise)
    values = found[name].to_numpy().reshape(groups, 3)
    assert (found[f"{name}_noisy"].to_numpy() != found[name].to_numpy()).any()
    if name == "correlation":
        matrices = np.tile(np.eye(3), (groups, 1, 1))
        for place, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
            matrices[:, i, j] = matrices[:, j, i] = values[:, place]
        assert np.abs(values).max() <= 1.0
        assert np.linalg.eigvalsh(matrices).min() > -1e-9
    else:
        half = np.array([50.0 * 100.0, 50.0 * 30.0, 100.0 * 30.0])
        assert (np.abs(values) <= 2.0 * half).all()


KINDS = {
    "even": lambda n, random: random.uniform(-1, 1, (2, n)),
    "alike": lambda n, random: np.tile(random.uniform(-1, 1, n), (2, 1)),
    "leaning": lambda n, random: np.array([[0.3, 0.0], [0.24, 0.18]]) @ random.normal(size=(2, n)),
    "one end": lambda n, random: np.ones((2, n)),
    "both ends": lambda n, random: np.tile(np.where(np.arange(n) % 2, 1.0, -1.0), (2, 1)) * [[1.0], [-1.0]],
    "one apart": lambda n, random: np.where(np.arange(n) == 0, -1.0, 1.0) * np.ones((2, 1)),
    "near an end": lambda n, random: random.exponential(0.2, (2, n)) - 1.0,
}


@pytest.mark.parametrize("size", [2, 5, 20, 200])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("name", ASKED)
def test_intervals_cover(name, pure, kind, size):
    """Over 6,000 draws of the noise; a false alarm has a chance below 1e-6 / 112."""
    repeats, epsilon = 6_000, 1.0
    y = KINDS[kind](size, np.random.default_rng(size)).clip(-1.0, 1.0)
    asked = ASKED[name](["a", "b"], bounds={"a": (-1, 1), "b": (-1, 1)}).under(pure)
    frame = pl.DataFrame({"a": y[0], "b": y[1]})
    exact = totals_of(asked, frame)
    measured = {}
    for total, steps in exact.items():
        norm = total.norm(False)
        reach = 1.0 if norm.vector is not None else max(-norm.reach[0], norm.reach[1]) * norm.grid
        law = (
            dpf.Laplace.calibrate(sensitivity=reach, epsilon=epsilon, grid=norm.grid)
            if pure
            else dpf.Gaussian.calibrate(sensitivity=reach, epsilon=epsilon, delta=1e-3, grid=norm.grid)
        )
        noisy = law.add_noise(np.tile(steps, repeats))
        measured[total] = Measured(noisy * norm.grid, law)
    values, errors = asked.answer(measured)
    with np.errstate(all="ignore"):
        truth = np.cov(y)[0, 1] if name == "covariance" else np.nan_to_num(np.corrcoef(y)[0, 1])
    missed = int((np.abs(values - truth) > errors + 1e-6).sum())
    assert chance_of_missing(missed, repeats, 0.05) > 1e-6 / 112
    assert np.isfinite(values).all()
    assert np.isfinite(errors).all()


def totals_of(asked, frame):
    from dpframe.engines.totals import totals

    return totals(frame, query_of(asked, EVERYTHING, asked.pure), PrivacyUnit(), 1.0)


def test_errors_are_no_larger_than_needed():
    """With 10,000 rows, half-widths are 1.96 standard deviations of the answers, to within 10%."""
    random = np.random.default_rng(3)
    y = random.uniform(-1, 1, (2, 10_000))
    found = dpf.correlation(["a", "b"], bounds={"a": (-1, 1), "b": (-1, 1)}).under(False)
    spread = 20.0
    sums = [10_000.0, *y.sum(axis=1), *(y**2 - 0.5).sum(axis=1), (y[0] * y[1]).sum()]
    law = dpf.Gaussian.calibrate(sensitivity=spread, epsilon=1.0, delta=1e-3, grid=2.0**-20)
    measured = {
        total: Measured(one + law.variance**0.5 * random.normal(size=4_000), law)
        for total, one in zip(found.totals(), sums, strict=True)
    }
    values, errors = found.answer(measured)
    assert np.median(errors) == pytest.approx(1.96 * values.std(), rel=0.1)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_error_of_a_plan_is_that_of_the_least_certain_pair(delta):
    """Of the same columns in any order: the first pair may have the narrowest bounds."""
    frame = pl.DataFrame({"a": [1.0], "b": [1.0], "c": [1.0]})
    bounds = {"a": (0, 2), "b": (0, 3), "c": (0, 1_000)}
    asked = {"bounds": bounds, "epsilon": 1, "delta": delta, "size": 1_000, "ledger": dpf.Ledger(epsilon=1, delta=1e-6)}
    errors = [frame.dp.preview.covariance(list(order), **asked).error for order in ("abc", "cab", "bca")]
    assert errors[1] == pytest.approx(errors[0])
    assert errors[2] == pytest.approx(errors[0])


def test_within_gives_the_error():
    plan = people().dp.preview.correlation(
        ["x", "z"], bounds={"x": (0, 100), "z": (-100, 100)}, within=0.05, size=5_000, delta=1e-6, checks=False
    )
    assert 0.0499 < plan.error["correlation"] <= 0.05
    assert [part.share for part in plan.parts] == [pytest.approx(1 / 6)] * 6
    assert [part.mechanism.sensitivity for part in plan.parts] == [1.0, 1.0, 1.0, 0.5, 0.5, 1.0]
    pure = people().dp.preview.covariance(["x", "z"], bounds={"x": (0, 100), "z": (-100, 100)}, epsilon=1.0)
    assert [part.mechanism.sensitivity for part in pure.parts] == [1.0]


def test_a_map_of_pairs():
    pytest.importorskip("altair")
    ledger = dpf.Ledger(epsilon=9.0)
    found = people().dp.correlation(list(LIMITS), bounds=LIMITS, epsilon=1.0, ledger=ledger)
    chart = seen(found.dp.plot())
    marks = [layer["mark"]["type"] for layer in chart["layer"]]
    assert marks[0] == "rect"  # a second layer outlines pairs whose margin reaches 0
    assert set(marks) == {"rect", "text"}
    assert len(chart["data"]["values"]) == 6  # each pair on both sides of the diagonal
    by_group = people().dp.group_by("g", keys=["A", "B"])
    grouped = by_group.covariance(list(LIMITS), bounds=LIMITS, epsilon=1.0, ledger=ledger)
    assert len(seen(grouped.dp.plot())["concat"]) == 2
    assert grouped.dp.errors().height == 1


def test_refusals():
    bounds = {"x": (0, 100), "z": (0, 1)}
    with pytest.raises(MissingArgument, match="bounds must be given for each column"):
        dpf.covariance(["x", "z"])
    with pytest.raises(MissingArgument, match="columns must be given"):
        people().dp.preview.covariance(bounds=bounds, epsilon=1.0)
    with pytest.raises(InvalidArgument, match="2 to 64 different ones"):
        dpf.correlation(["x", "x"], bounds=bounds)
    with pytest.raises(InvalidArgument, match="2 to 64 different ones"):
        dpf.correlation(["x"], bounds=bounds)
    with pytest.raises(InvalidType, match="list of names"):
        dpf.covariance("x", bounds=bounds)
    with pytest.raises(InvalidArgument, match="each column and no other"):
        dpf.covariance(["x", "y"], bounds=bounds)
    with pytest.raises(InvalidType, match="dict of pairs"):
        dpf.covariance(["x", "y"], bounds=(0, 1))
    with pytest.raises(InvalidArgument, match="ddof must be 0 or 1"):
        dpf.covariance(["x", "z"], bounds=bounds, ddof=2)
    ledger = dpf.Ledger(epsilon=1.0)
    frame = people()
    with pytest.raises(InvalidArgument, match=r"must be alone in its call.*release_together"):
        frame.dp.agg(dpf.covariance(["x", "z"], bounds=bounds), n=dpf.count(), epsilon=1.0, ledger=ledger)
    renamed = frame.rename({"g": "other"}).dp.group_by("other", keys=["A"])
    with pytest.raises(InvalidArgument, match="Rename it first"):
        renamed.covariance(["x", "z"], bounds=bounds, epsilon=1.0, ledger=ledger)
    with pytest.raises(InvalidArgument, match="rollup must be left out"):
        frame.dp.group_by("g", keys=["A"]).agg(
            dpf.covariance(["x", "z"], bounds=bounds), rollup=True, epsilon=1.0, ledger=ledger
        )
    with pytest.raises(MissingArgument, match="size must be given"):
        frame.dp.covariance(["x", "z"], bounds=bounds, within=1.0, ledger=ledger)
    assert not ledger.spent.epsilon
