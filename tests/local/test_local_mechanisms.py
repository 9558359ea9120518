"""All outcomes of every local method, enumerated: no probability changes by more than a factor of e^epsilon."""

from __future__ import annotations

import branches
import mpmath
import numpy as np
import pytest
from published import check, inputs, published

import dpframe as dpf
from dpframe.local import report_text
from dpframe.local.categorical import Subsets, best_size
from dpframe.local.window import Window, best_window
from dpframe.noise import coins

LOCAL = dpf.local
METHODS = {
    "randomized response": LOCAL.RandomizedResponse(["a", "b", "c"], epsilon=1),
    "two answers": LOCAL.RandomizedResponse([0, 1], epsilon=0.3),
    "subset selection": LOCAL.SubsetSelection(list("abcde"), epsilon=1, size=2),
    "subset selection of three": LOCAL.SubsetSelection(range(4), epsilon=0.5, size=3),
    "sketch": LOCAL.CountMeanSketch(["a", "b", "c"], epsilon=2, hashes=2, cells=4, key="x"),
    "unary RAPPOR, its permanent bits": LOCAL.Rappor(["a", "b", "c"], f=0.5, p=0, q=1),
    "RAPPOR of two hashes": LOCAL.Rappor(["a", "b"], f=0.5, p=0, q=1, hashes=2, bits=4, cohorts=2, key="y"),
}
WINDOWS = [(1, 1, 1), (2, 1, 1), (4, 2, 1), (10, 4, 2)]


def laws(method, rows, monkeypatch):
    return [branches.outcomes(lambda row=row: method.reports(np.array([row]))[0], monkeypatch) for row in rows]


@pytest.mark.parametrize("name", METHODS)
def test_no_outcome_tells_more_than_epsilon(name, monkeypatch):
    method = METHODS[name]
    found = laws(method, range(-1, len(method.categories)), monkeypatch)
    assert all(map(branches.is_whole, found))
    assert branches.largest_ratio(found) <= float(method.loss) * (1 + 1e-15)
    if "hashes" not in name:  # bits of a Bloom filter may coincide, and the loss is then smaller
        assert branches.largest_ratio(found[1:]) >= float(method.loss) * (1 - 1e-12), "the budget is used up"


def test_once_and_forever(monkeypatch):
    method = LOCAL.Rappor(["a", "b"], f=0.25, p=0.25, q=0.75)
    once = branches.largest_ratio(laws(method, (0, 1), monkeypatch))
    forever = branches.largest_ratio(laws(method.permanent, (0, 1), monkeypatch))
    assert float(once) == pytest.approx(method.epsilon_once, rel=1e-14)
    assert float(forever) == pytest.approx(method.epsilon_forever, rel=1e-14)
    assert once <= method.epsilon_once
    assert forever <= method.epsilon_forever


@pytest.mark.parametrize(("steps", "width", "epsilon"), WINDOWS)
def test_no_window_tells_more_than_epsilon(steps, width, epsilon, monkeypatch):
    method = LOCAL.Mean((0, steps), epsilon=epsilon, steps=steps, width=width)
    monkeypatch.setattr(coins, "rounded_randomly", lambda parts, bits: parts >> bits)
    rows = [0.0, float(steps), steps // 2, float("nan")]
    found = [branches.outcomes(lambda row=row: int(method.reports(np.array([row]))[0]), monkeypatch) for row in rows]
    assert all(map(branches.is_whole, found))
    assert branches.largest_ratio(found) <= epsilon * (1 + 1e-15)
    mean = sum(value * chance for value, chance in found[0].items())
    assert float(mean) == pytest.approx(method.law.offset, rel=1e-12)


def test_probabilities_are_those_of_the_formulas(monkeypatch):
    method = METHODS["subset selection"]
    reports = laws(method, (0,), monkeypatch)[0]
    with_truth = sum(chance for report, chance in reports.items() if int(report[0], 16) & 8)
    with_other = sum(chance for report, chance in reports.items() if int(report[0], 16) & 4)
    assert float(with_truth) == pytest.approx(method.p, rel=1e-14)
    assert float(with_other) == pytest.approx(method.q, rel=1e-14)


TABLE = [  # k, epsilon, d, p, q, variance of a rare category
    (2, 1, 1, 0.73105857863, 0.26894142137, 0.92067359),
    (4, 0.5, 2, 0.622459331202, 0.459180222933, 9.3148207),
    (4, 1, 1, 0.475366886419, 0.174877704527, 1.5980674),
    (10, 0.5, 4, 0.523616137777, 0.38626487358, 12.56611),
    (10, 1, 3, 0.538101526224, 0.273544274864, 2.8392095),
    (10, 2, 1, 0.450853060379, 0.0610163266245, 0.3769976),
    (50, 1, 13, 0.488509884454, 0.25533653297, 3.4971574),
    (50, 2, 6, 0.501892449791, 0.112206276535, 0.65599303),
    (1000, 2, 119, 0.499516466945, 0.118619102636, 0.7206134),
    (1000, 4, 18, 0.500195112376, 0.0175173222098, 0.073871682),
]


def test_many_reports_name_the_functions_that_made_them(monkeypatch):
    """Hardly any bit is flipped here, in one of 10^8 runs, and reports are made in batches of a few rows."""
    sketch = LOCAL.CountMeanSketch(list("abc"), epsilon=64, hashes=16, cells=64, key="x")
    rappor = LOCAL.Rappor(list("abc"), f=1e-12, p=0, q=1, hashes=2, bits=32, cohorts=16, key="y")
    monkeypatch.setattr(report_text, "CELLS", 256)
    truth = np.arange(200) % 3
    for method, numbers, width in ((sketch, 16, 64), (rappor, 16, 32)):
        parts = report_text.read(method.reports(truth), width, "reports", numbers=numbers)
        number, bits = (np.concatenate(each) for each in zip(*parts, strict=True))
        if method is sketch:
            assert (np.argmax(bits, axis=1) == sketch.places[number, truth]).all()
        else:
            assert (bits == rappor.bits_of(truth, number)).all()


@pytest.mark.parametrize(("k", "epsilon", "d", "p", "q", "variance"), TABLE)
def test_subset_selection_of_the_reference(k, epsilon, d, p, q, variance):
    method = LOCAL.SubsetSelection(range(k), epsilon=epsilon)
    assert method.size == d
    assert (method.p, method.q) == pytest.approx((p, q), rel=1e-10)
    assert method.variance() == pytest.approx(variance, rel=1e-7)


def test_the_size_that_is_searched_around_is_the_best_of_all():
    for k, epsilon in ((1_500, 0.5), (2_000, 3.0), (1_200, 7.0)):
        every = min(range(1, k), key=lambda size: Subsets(k, size, epsilon).variance(1 / k))
        assert best_size(k, epsilon) == every


def test_estimates_of_the_reference():
    method = LOCAL.SubsetSelection(range(5), epsilon=1, size=2)
    assert method.counts(np.array([450.0]), 1_000)[0][0] == pytest.approx(363.66278447822106, rel=1e-12)
    method = LOCAL.RandomizedResponse(range(10), epsilon=1)
    counts, variances = method.counts(np.array([120.0]), 1_000)
    assert counts[0] == pytest.approx(236.39534137386522, rel=1e-12)
    assert method.variance(1_000, counts[0] / 1_000) ** 0.5 == pytest.approx(68.8, abs=0.05)
    assert 1.0 < variances[0] ** 0.5 / 68.8 < 1.01
    sketch = LOCAL.CountMeanSketch(["a", "b"], epsilon=2, hashes=2, cells=4)
    sketch.__dict__["places"] = np.array([[0, 2], [1, 3]])
    ones = np.array([[1, 1, 0, 1], [1, 1, 0, 0]])
    counts, _ = sketch.counts(ones, np.array([2, 1]))
    assert counts[0] == pytest.approx(2.442635609159102, rel=1e-12)


@published("randomized_response")
def test_randomized_response_of_another_library(row):
    given = inputs(row)
    if "prob" in given:
        categories = range(given["categories"])
        assert LOCAL.RandomizedResponse(categories, epsilon=float(row["expected"])).p == pytest.approx(given["prob"])
    else:
        method = LOCAL.Rappor(["a", "b"], f=given["f"], p=0, q=1, hashes=given["max_weight"], bits=8)
        check(row, method.epsilon_forever)


def test_rappor_of_the_reference():
    for f, p, q, h, high, low, forever, once in (
        (0.5, 0.5, 0.75, 2, 0.6875, 0.5625, 4.39444915467, 1.07428586417),
        (0.75, 0.5, 0.75, 1, 0.65625, 0.59375, 1.02165124753, 0.26713754322),
        (0.25, 0.25, 0.75, 1, 0.6875, 0.3125, 3.89182029811, 1.57691472073),
        (0.5, 0.35, 0.65, 2, 0.575, 0.425, 4.39444915467, 1.20912348749),
    ):
        method = LOCAL.Rappor(["a", "b"], f=f, p=p, q=q, hashes=h, bits=8)
        assert tuple(map(float, method.seen)) == (low, high)
        assert (method.epsilon_forever, method.epsilon_once) == pytest.approx((forever, once), rel=1e-11)
    for epsilon, f in ((0.5, 0.875646998228), (1, 0.755081337596), (2, 0.53788284274), (4, 0.238405844044)):
        method = LOCAL.Rappor.for_epsilon(["a", "b"], epsilon)
        assert float(method.f) == pytest.approx(f, rel=1e-11)
        assert epsilon * (1 - 1e-12) < method.epsilon_forever <= epsilon
    low, high = map(float, LOCAL.Rappor(["a", "b"], f=0.5, p=0.5, q=0.75).seen)
    assert (620 - 1_000 * low) / (high - low) == pytest.approx(460)


def test_the_sketch_of_the_reference():
    for epsilon, flip, scale, noise in (
        (1, 0.377540668798, 4.08298816507, 3.917698089),
        (2, 0.26894142137, 2.16395341374, 0.9206735942),
        (4, 0.119202922022, 1.3130352855, 0.1810154152),
    ):
        method = LOCAL.CountMeanSketch(["a", "b"], epsilon=epsilon, cells=2**16)
        assert (method.flip, method.scale) == pytest.approx((flip, scale), rel=1e-10)
        assert method.variance() == pytest.approx(noise, rel=1e-4)


def test_windows_of_the_reference():
    for steps, width, epsilon, inside, slope, offset in (
        (1, 1, 1, 0.731058578630005, 0.462117157260010, 0.268941421369995),
        (2, 1, 1, 0.576116884765829, 0.364175327148744, 0.635824672851256),
        (4, 2, 1, 0.576116884765829, 0.364175327148744, 1.771649345702513),
        (10, 4, 2, 0.747195285880688, 0.646073400232963, 3.269632998835183),
        (100, 14, 4, 0.884309351765263, 0.868112661012400, 13.094366949380005),
    ):
        law = Window(steps, width, epsilon)
        assert (law.inside, law.slope, law.offset) == pytest.approx((inside, slope, offset), rel=1e-12)
    assert Window(1, 1, 0.5).worst_variance * 4 == pytest.approx(16.67079, abs=1e-5)
    assert Window(1, 1, 1.0).worst_variance * 4 == pytest.approx(4.68269, abs=1e-5)


def test_the_worst_variance_is_the_largest_of_all_truths():
    """On a grid of 41 values, the largest variance of ten steps at epsilon 4 is .15883; between them it is larger."""
    for steps, width, epsilon, on_grid in ((2, 1, 2, 0.99969), (10, 3, 4, 0.15883), (9, 3, 4, 0.15918)):
        law = Window(steps, width, epsilon)
        assert worst_of(steps, width, epsilon, 41) == pytest.approx(on_grid, abs=1e-5)
        assert law.worst_variance * (2 / steps) ** 2 == pytest.approx(
            worst_of(steps, width, epsilon, 100_001), rel=1e-7
        )
    assert [best_window(epsilon) for epsilon in (0.5, 1, 2, 4)] == [(1, 1), (1, 1), (2, 1), (9, 3)]


def worst_of(steps, width, epsilon, values):
    """Return the largest variance of an estimate on [-1, 1] over a grid of `values` truths, from all probabilities."""
    report = np.arange(steps + width)
    inside = [(t <= report) & (report < t + width) for t in range(steps + 1)]
    chance = np.where(inside, np.exp(epsilon), 1.0) / (width * np.exp(epsilon) + steps)
    first, second = chance @ report, chance @ report**2
    truth = np.linspace(0, steps, values)
    low = np.minimum(truth.astype(int), steps - 1)
    part = truth - low
    mean = (1 - part) * first[low] + part * first[low + 1]
    variance = (1 - part) * second[low] + part * second[low + 1] - mean**2
    return variance.max() / (first[1] - first[0]) ** 2 * (2 / steps) ** 2


def test_methods_survive_json():
    for method in [*METHODS.values(), LOCAL.Mean((-1.5, 2), epsilon=0.1), LOCAL.Rappor.for_epsilon([None, "a"], 2)]:
        again = LOCAL.from_json(method.to_json())
        assert again == method
        assert type(again) is type(method)
        assert type(method).from_json(method.to_json()) == method


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"method": "Mean"}', '{"method": 3}', "null", '{"method": "Other"}'])
def test_what_is_no_method_is_refused(text):
    with pytest.raises(dpf.InvalidArgument):
        LOCAL.from_json(text)
    with pytest.raises(dpf.InvalidArgument):
        LOCAL.Mean.from_json(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LOCAL.RandomizedResponse(["a"], epsilon=1),
        lambda: LOCAL.RandomizedResponse(["a", "a"], epsilon=1),
        lambda: LOCAL.RandomizedResponse("ab", epsilon=1),
        lambda: LOCAL.RandomizedResponse(["a", 1], epsilon=1),
        lambda: LOCAL.RandomizedResponse(["a", "b"], epsilon=0),
        lambda: LOCAL.RandomizedResponse(["a", "b"], epsilon=True),
        lambda: LOCAL.RandomizedResponse(["a", "b"], epsilon=65),
        lambda: LOCAL.SubsetSelection(["a", "b"], epsilon=1, size=2),
        lambda: LOCAL.Mean((1, 1), epsilon=1),
        lambda: LOCAL.Mean((0, 1), epsilon=1, steps=3),
        lambda: LOCAL.Mean(5, epsilon=1),
        lambda: LOCAL.Rappor(["a", "b"], f=0, p=0, q=1),
        lambda: LOCAL.Rappor(["a", "b"], f=0.5, p=0.5, q=0.5),
        lambda: LOCAL.Rappor(["a", "b"], f=0.5, p=0.5, q=0.75, cohorts=2),
        lambda: LOCAL.Rappor(["a", "b"], f=0.5, p=0.5, q=0.75, bits=1),
        lambda: LOCAL.CountMeanSketch(["a", "b"], epsilon=1, cells=1),
        lambda: LOCAL.CountMeanSketch(["a", "b"], epsilon=1, key=b"x"),
        lambda: LOCAL.CountMeanSketch(["a", "b"], epsilon=1, hashes=2**16, cells=2**16),
        lambda: LOCAL.Rappor(range(900), f=0.5, p=0.25, q=0.75, bits=64, cohorts=2**16),
        lambda: LOCAL.Mean((-1e308, 1e308), epsilon=1),
        lambda: LOCAL.Mean.of_facts({**LOCAL.Mean((0, 1), epsilon=1).facts(), "epsilon": "1e9999999999"}),
        lambda: LOCAL.Mean.of_facts({**LOCAL.Mean((0, 1), epsilon=1).facts(), "epsilon": "1/0"}),
    ],
)
def test_parameters_are_refused_in_words(make):
    with pytest.raises(dpf.InvalidArgument, match="must"):
        make()


def test_mpmath_agrees_with_double_precision():
    with mpmath.workdps(40):
        for size, others, epsilon in ((1, 1, "0.001"), (3, 7, "1"), (119, 881, "2")):
            e = mpmath.exp(mpmath.mpf(epsilon))
            p = size * e / (size * e + others)
            k = size + others
            q = (p * (size - 1) + (1 - p) * size) / (k - 1)
            law = Subsets(k, size, float(epsilon))
            assert (law.p, law.q, law.gap) == pytest.approx(tuple(map(float, (p, q, p - q))), rel=1e-13)


@pytest.mark.parametrize("method", [LOCAL.RandomizedResponse, LOCAL.SubsetSelection, LOCAL.CountMeanSketch])
def test_a_method_without_epsilon_is_refused_as_every_call_is(method):
    with pytest.raises(dpf.MissingArgument, match="epsilon must be given: the cost of one report"):
        method(["A", "B", "C"])
