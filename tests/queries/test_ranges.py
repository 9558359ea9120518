"""Counts for sums of neighboring bins: designs and their variances, sensitivity, intervals of sums, whole calls."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from neighbors import BY_GROUP, UNITS, by_group_and, given_as, largest_by_chance, query_of, ratios

import dpframe as dpf
from dpframe import InvalidArgument, InvalidType, MissingArgument, PrivacyUnit
from dpframe.queries.grids import Grid, _of_rectangles, fitted_grid, from_the_whole_down
from dpframe.queries.keys import Keys, bin_axes
from dpframe.queries.prefix_sums import PrefixSums, Tree
from dpframe.queries.quotients import sum_interval
from dpframe.queries.statistics import Ranges
from dpframe.queries.total import Measured
from tests.covering import chance_of_missing

NOISES = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]
LINES = [PrefixSums(size) for size in (1, 2, 13, 40)]
LINES += [Tree(*one) for one in ((1, 2), (7, 7), (13, 3), (26, 5), (33, 4), (65, 4), (125, 5))]
GRIDS = [Grid(PrefixSums(5, 8), PrefixSums(7, 8)), Grid(Tree(5, 2), Tree(6, 6)), Grid(Tree(1, 2), PrefixSums(3))]
BY_BINS = by_group_and("x", [0, 1, 2, 3, 4])
BY_GRID = Keys(
    (
        *BY_GROUP.axes,
        *bin_axes("x", [0, 1, 2, 3, 4], None, None, "clip"),
        *bin_axes("u", [-0.5, 0.5, 1.5, 9], None, None, "drop"),
    )
)
ASKED = {"line": (Ranges((4,)), BY_BINS), "grid": (Ranges((4, 3)), BY_GRID)}


def matrices(design):
    """Return the matrix from cells to measured numbers, and the matrix from these to running sums."""
    measured = design.exact_sums(np.eye(design.size, dtype=np.int64)).T * design.grid
    return measured, design.running(np.eye(design.width)).T


@pytest.mark.parametrize("design", LINES, ids=str)
def test_variances_of_bins_and_of_sums(design):
    """Compared with dense algebra, for every bin and for every sum of neighboring bins."""
    _, running = matrices(design)
    corner = np.pad(running @ running.T, (1, 0))
    own = np.diag(corner)
    sums = own[:, None] + own - 2 * corner
    assert design.bin_variances == pytest.approx(np.diag(sums, 1))
    assert design.largest_variance == pytest.approx(sums.max())
    if isinstance(design, Tree):
        assert design.mean_variance == pytest.approx(sums[np.triu_indices(design.size + 1, 1)].mean())


def test_trees_have_the_least_error_of_all_sums():
    """With few bins, the best tree is flat: a plain histogram."""
    assert [Tree.best_of_sums(size).levels for size in (5, 20, 64, 1_000)] == [1, 1, 2, 3]
    for size in (20, 300):
        tree = Tree.best_of_sums(size)
        assert tree.levels * tree.mean_variance**0.5 <= min(
            one.levels * one.mean_variance**0.5 for one in (Tree(size, size), Tree(size, 4), Tree(size, 16))
        )


@pytest.mark.parametrize("design", GRIDS, ids=str)
def test_grids_are_products(design):
    """Compared with the Kronecker product: least squares, norms of columns, and the variances of all rectangles."""
    measured, running = matrices(design)
    whole = np.kron(*(matrices(one)[0] for one in (design.first, design.second)))
    assert measured == pytest.approx(whole)
    lower = np.kron(*(np.tril(np.ones((one.size, one.size))) for one in (design.first, design.second)))
    assert running == pytest.approx(lower @ np.linalg.pinv(whole))
    steps = np.rint(measured / design.grid).astype(np.int64)
    assert (np.abs(steps).sum(axis=0).max(), (steps**2).sum(axis=0).max()) == (design.column_sum, design.column_square)
    assert (running**2).sum(axis=1) == pytest.approx(design.variances)
    cells = np.linalg.solve(lower, running)
    assert (cells**2).sum(axis=1) == pytest.approx(design.bin_variances)
    spans = [
        [(place >= start) & (place <= end) for start in place for end in place[start:]]
        for place in (np.arange(design.first.size), np.arange(design.second.size))
    ]
    rectangles = np.array([np.kron(one, other) for one in spans[0] for other in spans[1]])
    assert ((rectangles @ cells) ** 2).sum(axis=1).max() == pytest.approx(design.largest_variance)


@pytest.mark.slow
def test_published_errors():
    """1,000 bins at mu = 1: errors of prefixes and ranges, for a plain histogram and for the factorization."""
    design, size = PrefixSums(1_000), 1_000
    prefixes = np.sqrt(design.column_square * design.variances.mean()) * design.grid
    assert prefixes == pytest.approx(3.102, abs=1e-3)
    assert np.sqrt((size + 1) / 2) == pytest.approx(22.37, abs=5e-3)
    _, running = matrices(design)
    corner = np.pad(running @ running.T, (1, 0))
    sums = (np.diag(corner)[:, None] + np.diag(corner) - 2 * corner)[np.triu_indices(size + 1, 1)]
    assert np.sqrt(design.column_square * sums.mean()) * design.grid == pytest.approx(3.885, abs=1e-3)
    assert sums.max() == pytest.approx(design.largest_variance)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("name", ASKED)
def test_no_neighbor_is_farther_than_the_sensitivity(name, pure, unit):
    """Bins are not groups: a unit's weight depends on its rows in each group, not in each bin."""
    for p in (1, 2):
        assert largest_by_chance(query_of(*ASKED[name], pure), unit, p, tries=12) <= 1 + 1e-15


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_is_attained(neighbors, pure):
    """A unit has as many rows in the first bin as count in full; under replace, they move to another group."""
    query, p = query_of(*ASKED["line"], pure), 1 if pure else 2
    unit = PrivacyUnit("u", neighbors=neighbors, max_rows=2, max_groups=1)
    mine, instead = ([(group, 0.0)] * 2 for group in "AB")
    (found,) = ratios(query, unit, [mine], [instead if neighbors == "replace" else []], p).values()
    assert found == pytest.approx(1.0)


@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_values_without_much_noise(library, noise):
    generator = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "x": np.where(generator.random(4_000) < 0.1, np.nan, generator.uniform(-5, 60, 4_000)),
            "z": generator.uniform(0, 4, 4_000),
            "g": generator.choice(["A", "B"], 4_000),
        }
    )
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic")
    words = {"ranges": True, "epsilon": 1e7, "ledger": ledger, **noise}
    given = given_as(frame, library)
    edges = np.arange(0.0, 51.0)
    found = given.dp.group_by("g", keys=["A", "B", "none"]).histogram("x", bins=edges, **words)
    assert list(found.columns) == ["g", "x_left", "x_right", "count", "count_noisy", "count_error"]
    exact = np.concatenate([np.histogram(frame.filter(g=g)["x"].drop_nans(), edges)[0] for g in ("A", "B", "none")])
    for name in ("count", "count_noisy"):
        assert found[name].to_numpy() == pytest.approx(exact, abs=1e-2)
    clipped = given.dp.histogram("x", bins=edges, outside="clip", denoise=None, **words)
    assert list(clipped.columns) == ["x_left", "x_right", "count", "count_error"]
    assert clipped["count"].to_numpy().sum() == pytest.approx(frame["x"].is_not_nan().sum(), abs=1e-2)
    grid = given.dp.histogram(["x", "z"], bins=[edges, [0, 1, 4]], keep_noisy=False, **words)
    exact = np.histogram2d(frame["x"].fill_nan(-1), frame["z"], [edges, [0, 1, 4]])[0]
    assert grid.dp.to_numpy("count") == pytest.approx(exact, abs=1e-2)


def several(groups, size, bins=40):
    """Return many public groups of the same values, and the exact counts of a group in bins of length 1."""
    values = np.resize([1.5, 1.5, 7.2, 20.0, 33.3], size)
    frame = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(values, groups)})
    return frame.dp.group_by("g", keys=range(groups)), np.histogram(values, np.arange(bins + 1.0))[0]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 20.0])
def test_intervals_of_sums_cover(epsilon, noise):
    """Bins, running sums and sums of neighboring bins, over 4,000 groups; false alarms below 1e-6 in all."""
    groups = 4_000
    asked, exact = several(groups, 10)
    ledger = dpf.Ledger(epsilon=99.0, delta=1e-4, accounting="basic")
    found = asked.histogram("x", bins=range(41), ranges=True, epsilon=epsilon, ledger=ledger, **noise)
    bins, first, near = found.dp.errors()["interval"]
    off = found["count_noisy"].to_numpy().reshape(groups, 40) - exact
    running = np.pad(np.cumsum(off, axis=1), ((0, 0), (1, 0)))
    places = [(0, 1), (1, 40), (3, 19), (5, 36), (13, 25), (20, 22), (39, 40)]
    sums = np.stack([running[:, to] - running[:, at] for at, to in places], axis=1)
    errors = found["count_error"].to_numpy().reshape(groups, 40)
    assert errors.max() == pytest.approx(bins)
    missed = [*(np.abs(off) > errors + 1e-9).sum(axis=0), *(np.abs(running[:, 1:]) > first + 1e-9).sum(axis=0)]
    missed += [*(np.abs(sums) > near + 1e-9).sum(axis=0)]
    for each in missed:
        assert chance_of_missing(int(each), groups, 0.05) > 1e-6 / 400


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_noise_of_sums_is_what_is_said(noise):
    """Variances of sums, from 100,000 draws; noise 2% off changes them by 4%. False alarms below 1e-6 each."""
    groups, bins = 100_000, 16
    asked, exact = several(groups, 4, bins)
    words = {
        "ranges": True,
        "epsilon": 0.5,
        "ledger": dpf.Ledger(epsilon=99.0, delta=1e-4, accounting="basic"),
        **noise,
    }
    found = asked.histogram("x", bins=range(bins + 1), denoise=None, **words)
    off = found["count"].to_numpy().reshape(groups, bins) - exact
    (part,) = asked.preview.histogram("x", bins=range(bins + 1), **words).parts
    running = np.pad(matrices(part.total.vector.design)[1], ((1, 0), (0, 0)))
    for at, to in ((0, 16), (2, 3), (4, 13)):
        variance = ((running[to] - running[at]) ** 2).sum() * part.mechanism.variance
        assert (off[:, at:to].sum(axis=1) ** 2).mean() == pytest.approx(variance, rel=0.03)


def test_within_is_of_sums_and_the_form_follows_the_noise():
    frame = pl.DataFrame({"x": [1.0]})
    for noise, p in (({}, 1.0), ({"delta": 1e-6}, 2.0)):
        plan = frame.dp.preview.histogram("x", bins=range(1_001), ranges=True, within=40, **noise)
        assert 30 < plan.error["count"] <= 40
        assert "of any sum of neighboring bins" in repr(plan)
        assert plan.parts[0].mechanism.p == p
        once = frame.dp.preview.histogram("x", bins=range(1_001), ranges=True, epsilon=1.0, **noise)
        assert once.error["count"] == pytest.approx(
            sum_interval(once.parts[0].mechanism, 0.95) * once.parts[0].total.vector.design.largest_variance ** 0.5
        )
    gaussian = frame.dp.preview.histogram("x", bins=range(1_001), ranges=True, epsilon=1.0, delta=1e-6)
    assert gaussian.parts[0].sensitivity.norm(2) == pytest.approx(1.806976781965)
    for bins, name in ((100, "discrete Laplace"), (1_000, "rounded Gaussian")):  # by the public number of bins
        words = {"ranges": True, "epsilon": 1.0, "delta": 1e-6, "mechanism": "auto"}
        assert frame.dp.preview.histogram("x", bins=range(bins + 1), **words).choice.name == name


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_fit_is_never_farther_from_the_truth(noise):
    """Adjusted counts are at least 0, and their running sums are no farther from the truth than the unbiased ones."""
    asked, exact = several(300, 10)
    ledger = dpf.Ledger(epsilon=99.0, delta=1e-4, accounting="basic")
    found = asked.histogram("x", bins=range(41), ranges=True, epsilon=0.3, ledger=ledger, **noise)
    assert (found["count"].to_numpy() >= 0).all()
    fitted, noisy = (
        ((np.cumsum(found[name].to_numpy().reshape(300, 40) - exact, axis=1)) ** 2).sum(axis=1)
        for name in ("count", "count_noisy")
    )
    assert (fitted <= noisy + 1e-6).all()
    assert found.dp.provenance["measures"]["count"]["denoise"] == [
        {"name": "auto", "chose": "running sums that never fall"}
    ]


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 9), (2, 8, 3), (1, 1, 1), (2, 16, 16)])
def test_counts_of_a_grid_are_shared_out(shape):
    """Counts become at least 0, the total of each group stays, and a grid without negative counts stays as it is."""
    values = np.random.default_rng(4).normal(0.4, 1.0, shape)
    found = from_the_whole_down(values)
    assert found.shape == shape
    assert (found >= 0).all()
    assert found.sum(axis=(1, 2)) == pytest.approx(np.maximum(values.sum(axis=(1, 2)), 0.0), abs=1e-9)
    assert from_the_whole_down(found) == pytest.approx(found)
    assert from_the_whole_down(np.abs(values)) == pytest.approx(np.abs(values))
    halves = values.copy()
    halves[:, : shape[1] // 2] = -1.0
    assert (from_the_whole_down(halves)[:, : shape[1] // 2] >= 0).all()


@pytest.mark.parametrize("pure", [True, False])
def test_a_grid_is_fitted_where_that_brings_its_sums_nearer(pure):
    """Sparse counts are fitted. Stripes are not, because a fit would move their sums, which have little noise."""
    asked = Ranges((24, 24), pure)
    design, generator = asked.design, np.random.default_rng(7)
    noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.1)
    sparse, stripes = np.zeros((24, 24)), np.tile([0.0, 60.0], (24, 12))
    sparse[3, 5], sparse[20, 20] = 900, 40
    for truth, fits in ((sparse, True), (stripes, False)):
        before = after = 0.0
        for _ in range(20):
            drawn = generator.laplace(scale=(noise.variance / 2) ** 0.5, size=(1, design.width))
            off = asked._apart(design.running(drawn)).reshape(24, 24)
            measured = {asked.totals()[0]: Measured(off, noise)}
            values, _ = asked.fitted((truth + off).ravel(), measured)
            before += squares_of_rectangles(off)
            after += squares_of_rectangles(values.reshape(24, 24) - truth)
        assert after <= (0.7 if fits else 1.1) * before
    whole = np.full((1, 24, 24), 5.0)
    assert fitted_grid(whole, noise, lambda draws: np.zeros((1, 24, 24)), 4) is None


def squares_of_rectangles(cells):
    """Return the mean square of the sums of all rectangles, computed one by one."""
    sums = np.pad(cells.cumsum(0).cumsum(1), (1, 0))
    rows = (sums[None] - sums[:, None])[np.triu_indices(sums.shape[0], 1)]
    both = (rows[:, None] - rows[:, :, None])[(slice(None), *np.triu_indices(sums.shape[1], 1))]
    return (both**2).mean()


def test_squares_of_rectangles_are_those_of_what_is_compared():
    cells = np.random.default_rng(2).normal(size=(5, 7))
    found = (_of_rectangles(cells[None]) ** 2).sum()
    other = np.abs(cells)
    assert found / squares_of_rectangles(cells) == pytest.approx(
        (_of_rectangles(other[None]) ** 2).sum() / squares_of_rectangles(other)
    )


def test_sums_of_many_small_whole_draws_have_an_interval():
    """A draw that is 0 with at least 95% has an interval of width 0, but a sum of three draws is 0 with only 93%."""
    noise = dpf.Laplace.calibrate(sensitivity=1, epsilon=4.4)
    assert noise.interval(0.95) == 0
    draws = np.asarray(noise.add_noise(np.zeros(3 * 2**18, dtype=np.int64))).reshape(-1, 3)
    assert np.mean(np.abs(draws.sum(axis=1)) > 3**0.5 * sum_interval(noise, 0.95)) < 0.05
    wide = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.01)
    assert sum_interval(wide, 0.95) == wide.interval(0.95)
    assert sum_interval(wide, 0.5) == pytest.approx(0.6745 * wide.variance**0.5, rel=1e-3)


def test_units_count_by_group_whatever_their_bins():
    """With max_rows=10, a unit of 50 rows in one group counts as much as a unit of 10 rows."""
    frame = pl.DataFrame({"x": [10.0] * 25 + [60.0] * 25 + [90.0] * 20, "u": [1] * 50 + [2] * 10 + [3] * 10})
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, unit="u", accounting="basic")
    found = frame.dp.histogram("x", bins=[0, 50, 70, 100], ranges=True, max_rows=10, epsilon=1e7, ledger=ledger)
    assert found["count"].to_list() == pytest.approx([5, 5, 20], abs=1e-2)


def test_refusals():
    frame = pl.DataFrame({"x": [1.0], "y": [1.0], "z": [1.0], "ward": ["A"]})
    ledger = dpf.Ledger(epsilon=1.0)
    asked, words = frame.dp, {"ranges": True, "epsilon": 0.5, "ledger": ledger}
    two = [0, 1]
    refused = [
        (
            MissingArgument,
            "bins must be given with ranges=True",
            lambda: asked.histogram("ward", categories=["A"], **words),
        ),
        (MissingArgument, "bins must be given with ranges=True", lambda: asked.histogram("ward", **words)),
        (
            InvalidArgument,
            "one column or two, not 3",
            lambda: asked.histogram(["x", "y", "z"], bins=[two] * 3, **words),
        ),
        (
            InvalidArgument,
            "at most 16,384 of a column with ranges=True, not 20,000",
            lambda: asked.histogram("x", bins=20_000, range=(0, 1), **words),
        ),
        (
            InvalidArgument,
            "normalize must be left out",
            lambda: asked.histogram("x", bins=two, normalize=True, **words),
        ),
        (
            InvalidArgument,
            "denoise must be 'auto' or None",
            lambda: asked.histogram("x", bins=two, denoise="haar", **words),
        ),
        (
            InvalidArgument,
            "denoise must be 'auto' or None",
            lambda: asked.histogram("x", bins=two, denoise=[], **words),
        ),
        (InvalidArgument, "order must be left out", lambda: asked.histogram("x", bins=two, order=True, **words)),
        (InvalidArgument, "graph must be left out", lambda: asked.histogram("x", bins=two, graph=[(0, 0)], **words)),
        (InvalidArgument, "rollup must be left out", lambda: asked.histogram("x", bins=two, rollup=True, **words)),
        (InvalidType, "ranges must be", lambda: asked.histogram("x", bins=two, **{**words, "ranges": 1})),
        (
            InvalidArgument,
            "p = 1 or 2",
            lambda: asked.histogram("x", bins=two, mechanism=dpf.generalized_gaussian(p=3), delta=1e-6, **words),
        ),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
    assert not ledger.spent.epsilon


@pytest.mark.slow
def test_many_bins_are_counted_and_priced():
    frame = pl.DataFrame({"x": np.random.default_rng(3).uniform(0, 1, 5_000)})
    ledger = dpf.Ledger(epsilon=1e9, delta=1e-3, accounting="basic")
    found = frame.dp.histogram("x", bins=2**14, range=(0, 1), ranges=True, denoise=None, epsilon=1e6, ledger=ledger)
    assert found["count"].to_numpy().sum() == pytest.approx(5_000, abs=0.1)
