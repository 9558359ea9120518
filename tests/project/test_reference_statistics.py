"""Compare every comparable line of the files of reference values, and say which files cannot be compared and why.

The tests of each room check the values that the specification quotes. This file reads the original files, if they
lie next to a clone.
"""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpframe as dpf
from dpframe.local.categorical import Subsets, best_size
from dpframe.local.window import Window, best_window
from dpframe.mechanisms import gaussian_curve
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace, TruncatedLaplace
from dpframe.mechanisms.thresholded import chance_shown, smallest_line
from dpframe.queries.contributions import as_array, key_weights
from dpframe.queries.moments import bernstein_variance, centred_variance, two_sided_mean
from dpframe.queries.prefix_sums import PrefixSums, Tree, coefficients
from dpframe.queries.quotients import quotient_half_widths

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "reference_values" / "statistics"
Z = 1.959963984540054
FLOAT = r"(-?[\d.]+(?:e[-+]?\d+)?|inf)"
ELSEWHERE = {  # checked by tests of a room, line by line
    "checks_last": "test_selection.py, test_local_mechanisms.py, test_stream_design.py, test_contrasts.py",
    "discover_check": "test_key_lines.py::test_the_drill_of_the_audit; the rest is simulated",
    "marginals": "test_contrasts.py::test_every_variance_of_the_reference_values",
    "ranges": "test_prefix_sums.py; trees of noise that is not used here",
    "refs4": "test_stream_design.py, with the rounded coefficients",
}
NOT_COMPARED = {
    "keys_ledger": "enumerations of laws that the file does not name: the bound is proven, and audited",
    "keys_real_a": "simulated on tables that are not shipped",
    "keys_real_b": "simulated on tables that are not shipped",
    "local_sim": "simulated",
    "quantiles_real": "simulated on tables that are not shipped",
    "quantiles_ties": "simulated",
    "variance_sim": "simulated",
}

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the reference values are not part of this repository")


def found(name, pattern):
    """Return the numbers of the lines that match."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    rows = [list(map(float, row)) for row in re.findall(pattern, text)]
    assert rows, name
    return rows


def one(*numbers):
    return [np.array([number]) for number in numbers]


def test_prefix_sums():
    pattern = rf"2\^-(\d+) n=(\d+): sum of squares (\d+) sens {FLOAT}; rmse {FLOAT} largest {FLOAT}"
    for bits, size, squares, sensitivity, error, largest in found("cumulative_grid", pattern):
        given = coefficients(int(size), int(bits)).astype(object)
        assert sum(given**2) == squares
        assert math.sqrt(squares) / 2**bits == pytest.approx(sensitivity, rel=1e-11)
        if bits == 12:
            design = PrefixSums(int(size))
            assert design.error == pytest.approx(error, rel=1e-9)
            assert math.sqrt(design.column_square * design.variances.max()) * design.grid == pytest.approx(largest)
    for size, tree, branching, flat, prefix in found(
        "auto_prefix", rf"n=(\d+): Laplace tree {FLOAT}/eps \(b=(\d+)\) flat {FLOAT}/eps; Gaussian prefix {FLOAT}/mu"
    ):
        best = Tree.best(int(size))
        assert best.branching == branching
        assert best.error == pytest.approx(tree, abs=6e-4)
        assert Tree(int(size), int(size)).error == pytest.approx(flat, abs=6e-4)
        assert PrefixSums(int(size)).error == pytest.approx(prefix, abs=6e-5)


def test_trees():
    text = (FOLDER / "refs_more.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^ n=(\d+): flat ([\d.]+)((?: b=\d+:[\d.]+)+)$", text, re.MULTILINE)
    assert len(rows) == 10
    for size, flat, others in rows:
        assert Tree(int(size), int(size)).error == pytest.approx(float(flat), abs=6e-4)
        for branching, error in re.findall(r"b=(\d+):([\d.]+)", others):
            assert Tree(int(size), int(branching)).error == pytest.approx(float(error), abs=6e-4)


def test_lines_of_keys():
    pattern = rf" eps={FLOAT} delta={FLOAT}(?: K=(\d+))?: tau=(\d+).*? achieved={FLOAT}"
    text = (FOLDER / "keys_exact.txt").read_text(encoding="utf-8")
    rows = re.findall(pattern, text)
    assert len(rows) == 10
    for epsilon, delta, keys, line, achieved in rows:
        law = Laplace.calibrate(sensitivity=int(keys or 1), epsilon=float(epsilon))
        weights = np.ones(int(keys or 1), dtype=np.int64)
        assert smallest_line(law.tail, weights, float(delta)) == int(line)
        assert chance_shown(law.tail, weights, int(line)) == pytest.approx(float(achieved), rel=1e-9)
    for sigma, keys, delta, line, achieved in found(
        "keys_exact", rf" sigma={FLOAT} K=(\d+) delta={FLOAT}: tau=(\d+) achieved={FLOAT}"
    ):
        law, weights = Gaussian(1.0, sigma, 1.0), np.ones(int(keys), dtype=np.int64)
        assert smallest_line(law.tail, weights, delta) == line
        assert chance_shown(law.tail, weights, int(line)) == pytest.approx(achieved, rel=1e-9)
    pattern = rf" p=(\d) scale={FLOAT} K=(\d+) T=(\d+) delta={FLOAT}: tau_steps=(\d+)"
    for p, scale, groups, most, delta, line in found("keys_exact", pattern):
        # the scale of Gaussian noise is printed to six digits
        law = Laplace(10 << 20, scale * 2**20, 2.0**-20) if p == 1 else Gaussian(1.0, scale * 2**20, 2.0**-20)
        weights = as_array(key_weights(int(most), int(groups), int(p))) << (20 if most <= groups else 0)
        assert smallest_line(law.tail, weights, delta) == pytest.approx(line, rel=0 if p == 1 else 1e-7)


def test_truncated_laplace():
    pattern = rf"eps={FLOAT} delta={FLOAT}: k=(\d+) P\(X=k\)={FLOAT}.* var={FLOAT} varDL"
    for epsilon, delta, reach, end, variance in found("tsgd", pattern):
        law = TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta)
        assert law.reach == reach
        assert law.end == pytest.approx(end, rel=1e-9)
        assert law.variance == pytest.approx(variance, rel=1e-7)


def test_choices():
    fine = 2**30
    for options, confidence, flip, weight in found(
        "pf_interval", rf"(\d+) {FLOAT} P&F continuous d/scale {FLOAT} EM {FLOAT}"
    ):
        for kind, expected in ((dpf.PermuteAndFlip, flip), (dpf.ExponentialMechanism, weight)):
            choice = kind.of_steps(fine, 1, monotonic=True, options=int(options), grid=1 / fine)
            assert choice.interval(confidence) == pytest.approx(expected, rel=1e-8)
    for epsilon, pure, half in found("selection_gdp", rf"eps={FLOAT}: mu_pure={FLOAT} mu_BR\(t=eps/2\)={FLOAT}"):
        assert gaussian_curve.pure_to_mu(epsilon) == pytest.approx(pure, rel=1e-11)
        assert gaussian_curve.pure_to_mu(epsilon / 2) == pytest.approx(half, rel=1e-11)


def test_moments():
    pattern = rf"\({FLOAT}, {FLOAT}, {FLOAT}\) -> {FLOAT} {FLOAT} {FLOAT} {FLOAT}"
    for low, middle, high, _, _, variance, spread in found("bernstein", pattern):
        answer = bernstein_variance(tuple(one(low, middle, high)), 199.83341664682539**0.5, 1.0, 0.5, 0)
        assert answer.values[0] == pytest.approx(variance, abs=1e-12)
        if low + middle + high >= 400 and middle**2 <= 4 * low * high:  # enough rows, and possible sums
            assert answer.half_widths[0] == pytest.approx(spread, rel=0.03)  # theirs is first order, this Fieller's
    for n, total, squares, variance, error in found(
        "refs_more", rf"\({FLOAT}, {FLOAT}, {FLOAT}\) -> {FLOAT} {FLOAT} std"
    ):
        answer = centred_variance(*one(n, total, squares), (3.0, 150.0, 3750.0), Z, 50.0, 1)
        assert answer.values[0] == pytest.approx(variance)
        if squares >= -1250 * n:  # possible sums
            assert answer.half_widths[0] == pytest.approx(error, rel=0.03)
    pattern = rf"\({', '.join([FLOAT] * 5)}\) scale {FLOAT} var {FLOAT} half95 (\d+) -> n, mean, error {FLOAT} {FLOAT}"
    for lower, upper, epsilon, above, below, _, variance, half, _, mean in found("refs3", pattern):
        noise = dpf.Laplace.calibrate(sensitivity=upper - lower, epsilon=epsilon)
        assert (noise.variance, noise.interval(0.95)) == pytest.approx((variance, half), rel=1e-11)
        answer = two_sided_mean(*one(above, below), (lower, upper), half)
        assert answer.values[0] == pytest.approx(mean)
    for top, bottom, top_spread, bottom_spread, ratio, half in found(
        "refs2", rf"\({', '.join([FLOAT] * 4)}\) -> {FLOAT} {FLOAT}"
    ):
        squares = ((Z * top_spread) ** 2, 0.0, (Z * bottom_spread) ** 2)
        answer = quotient_half_widths(*one(ratio, top, bottom), squares, math.inf)
        assert answer[0] == pytest.approx(half, rel=1e-9)


def test_weights():
    text = (FOLDER / "refs2.txt").read_text(encoding="utf-8")
    for p, groups, weights in re.findall(r" p=(\d) K=(\d+): (\{.*\})", text):
        given = key_weights(1_000, int(groups), int(p))
        assert {t: given[t - 1] for t in ast.literal_eval(weights)} == ast.literal_eval(weights)


def test_the_local_model():
    pattern = rf"k=(\d+) eps={FLOAT}: GRR {FLOAT} .*? SS d=(\d+) \(.*?\) {FLOAT} \| sums .*?; SS p={FLOAT} q={FLOAT}"
    for k, epsilon, response, d, variance, p, q in found("local_dp", pattern):
        assert best_size(int(k), epsilon) == d
        law = Subsets(int(k), int(d), epsilon)
        assert (law.p, law.q) == pytest.approx((p, q), rel=1e-10)
        assert law.variance() == pytest.approx(variance, rel=1e-7)
        assert Subsets(int(k), 1, epsilon).variance() == pytest.approx(response, rel=1e-7)
    # variances of values in [-1, 1]; the steps of a window begin at 0
    pattern = (
        rf"m=(\d+) w=(\d+) eps={FLOAT}: P\(inside window\)={FLOAT} slope={FLOAT} offset .*?={FLOAT} worst var {FLOAT}"
    )
    for steps, width, epsilon, inside, slope, offset, worst in found("local_mean", pattern):
        law = Window(int(steps), int(width), epsilon)
        assert (law.inside, law.slope, law.offset) == pytest.approx((inside, slope, offset), rel=1e-12)
        assert law.worst_variance * (2 / steps) ** 2 == pytest.approx(worst, rel=1e-9)
    pattern = rf"eps={FLOAT}: Duchi .*? best \(worst-case\) \[\(np.float64\({FLOAT}\), (\d+), (\d+)\)"
    for epsilon, worst, steps, width in found("local_mean", pattern):
        theirs, ours = (
            Window(*pair, epsilon).worst_variance * (2 / pair[0]) ** 2
            for pair in ((int(steps), int(width)), best_window(epsilon))
        )
        assert worst - 6e-6 < ours <= theirs < worst * 1.01  # theirs is the largest on a grid, ours of all


def test_every_file_is_compared_or_has_a_reason():
    text = Path(__file__).read_text(encoding="utf-8")
    here = set(re.findall(r'"(\w+)(?:\.txt)?"', text[text.index("def test_prefix_sums") :]))
    files = {path.stem for path in FOLDER.glob("*.txt")}
    assert files == (here & files) | set(ELSEWHERE) | set(NOT_COMPARED)
    assert not set(NOT_COMPARED) & here
