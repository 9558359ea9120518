"""Toys of each kind, defined outside the package, checked by its contracts and used through ``.dp``.

No file of the package knows them: the contracts state all that a mechanism, a denoiser or an accounting must be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise
from dpframe.accounting import Accounting
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.statistics import CONFIDENCE, Clipped, RowFunction, Total, fieller
from dpframe.testing import check_accounting, check_denoiser, check_engine, check_mechanism, check_statistic

PEOPLE = pl.DataFrame({"age": [31, 45, 62, 70, 18] * 40, "ward": ["A", "B", "B", "C", "C"] * 40})
DELTA = 1e-6


# A mechanism: the difference of two geometric numbers, which is discrete Laplace noise


@dataclass(frozen=True)
class Geometric(dpf.Mechanism):
    """Noise with P(k) proportional to r^|k|, r = exp(-1/scale); pure and additive."""

    sensitivity: float
    steps: float  # the scale, in grid steps
    grid: float

    name = "geometric toy"
    norm = 1.0
    cells = math.inf

    @classmethod
    def calibrated(cls, sensitivity, loss):
        reach = sensitivity.norm(1)
        return cls(reach, math.nextafter(reach / sensitivity.grid / loss.epsilon, math.inf), sensitivity.grid)

    @property
    def pure_epsilon(self):
        return math.nextafter(self.sensitivity / self.grid / self.steps, math.inf)

    def tail(self, steps):
        rate = 1.0 / self.steps
        return np.exp(-rate * steps) / (1.0 + math.exp(-rate))

    def add_noise(self, totals):
        drawn = noise.discrete_laplace(self.steps, totals.size).reshape(totals.shape)
        return (totals.view(np.uint64) + drawn.view(np.uint64)).view(np.int64)


@dataclass(frozen=True)
class Rounded(dpf.Mechanism):
    """Rounded Gaussian noise that is known only by its tails: private for one cell, at a delta."""

    sensitivity: float
    sigma: float  # in grid steps
    grid: float

    name = "bell toy"
    norm = 2.0

    def tail(self, steps):
        from scipy.special import erfc

        return erfc((steps - 0.5) / (self.sigma * math.sqrt(2.0))) / 2.0

    def add_noise(self, totals):
        drawn = noise.rounded_generalized_gaussian(2.0, self.sigma * math.sqrt(2.0), totals.size).reshape(totals.shape)
        return (totals.view(np.uint64) + drawn.view(np.uint64)).view(np.int64)


def bell(sensitivity, loss):
    """Find the least sigma that keeps the loss, by bisection; a calibration from a sensitivity and a loss."""
    reach = sensitivity.norm(2)
    low, high = 1e-3, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        toy = Rounded(reach, middle / sensitivity.grid, sensitivity.grid)
        low, high = (low, middle) if toy.delta(loss.epsilon) <= loss.delta else (middle, high)
    return Rounded(reach, high / sensitivity.grid, sensitivity.grid)


@pytest.mark.slow
@pytest.mark.parametrize("grid", [1.0, 2.0**-20], ids=["coarse", "fine"])
def test_toy_mechanisms_keep_the_contract(grid):
    check_mechanism(Geometric(2.0, 3.0 / grid, grid))
    check_mechanism(Rounded(1.0, 4.0 / grid, grid))


def test_what_is_derived_is_what_is_known():
    """The toys have the laws of two shipped mechanisms, with closed forms of their variance, intervals and curves."""
    pairs = [
        (Geometric(2.0, 3.0, 1.0), dpf.Laplace(2, 3.0)),
        (Geometric(2.0, 3.0 * 2**20, 2.0**-20), dpf.Laplace(2 * 2**20, 3.0 * 2**20, 2.0**-20)),
        (Rounded(1.0, 4.0, 1.0), dpf.GeneralizedGaussian(1.0, 4.0 * math.sqrt(2.0), p=2.0)),
        (
            Rounded(1.0, 4.0 * 2**20, 2.0**-20),
            dpf.GeneralizedGaussian(2.0**20, 2**22 * math.sqrt(2.0), 2.0**-20, p=2.0),
        ),
    ]
    for toy, known in pairs:
        assert toy.variance == pytest.approx(known.variance, rel=1e-6)
        assert [toy.interval(share) for share in (0.5, 0.95, 0.999)] == pytest.approx(
            [known.interval(share) for share in (0.5, 0.95, 0.999)]
        )
        for epsilon in (0.0, 0.1, 0.3, 0.6):
            exact = known.delta(epsilon)
            rounding = 0.05 if isinstance(toy, Rounded) and toy.grid == 1.0 else 1e-9  # coarse tails give less
            assert exact * (1 - rounding) <= toy.delta(epsilon) <= exact * (1 + 1e-9) + 1e-11
        assert toy.epsilon(1e-4) == pytest.approx(known.epsilon(1e-4), rel=1e-2)
    geometric, laplace = pairs[0]
    assert geometric.mu_squared == pytest.approx(laplace.mu_squared, rel=1e-12)
    assert geometric.renyi(Fraction(8)) >= laplace.renyi(Fraction(8))
    assert geometric.scale == pytest.approx(3.0, rel=0.01)


def test_a_toy_mechanism_answers():
    ledger = dpf.Ledger(epsilon=2.0)
    released = PEOPLE.dp.group_by("ward", keys=["A", "B", "C"]).count(
        epsilon=0.5, mechanism=Geometric.calibrated, ledger=ledger
    )
    told = released.dp.provenance["statistics"][0]
    assert (told["noise"], told["p"]) == ("geometric toy", 1.0)
    assert told["variance"] == pytest.approx(dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5).variance, rel=1e-6)
    assert released["count_error"].to_list() == [dpf.Laplace.calibrate(sensitivity=1, epsilon=0.5).interval(0.95)] * 3
    assert ledger.spent.epsilon == 0.5
    assert (
        PEOPLE.dp.mean("age", bounds=(0, 100), epsilon=0.5, mechanism=Geometric.calibrated, ledger=ledger).height == 1
    )


@pytest.mark.parametrize("accounting", ["gdp", "rdp"])
def test_a_pure_toy_is_charged_as_any_pure_noise(accounting):
    ledger = dpf.Ledger(epsilon=3.0, delta=DELTA, accounting=accounting)
    plan = PEOPLE.dp.preview.count(epsilon=0.5, mechanism=Geometric.calibrated, ledger=ledger)
    (toy,) = plan.noises
    assert plan.amount[0] >= (toy.mu_squared if accounting == "gdp" else toy.renyi(ledger.accounting.orders[0]))
    PEOPLE.dp.count(epsilon=0.5, mechanism=Geometric.calibrated, ledger=ledger)


def test_a_toy_with_a_delta_answers_one_cell_and_is_refused_where_nothing_is_proven():
    count = PEOPLE.dp.preview.count(epsilon=1.0, delta=DELTA, mechanism=bell)
    assert count.noises[0].scale / math.sqrt(2.0) == pytest.approx(4.2247, rel=0.02)
    with pytest.raises(dpf.InvalidArgument, match="bell toy has none"):
        PEOPLE.dp.preview.count(epsilon=1.0, mechanism=bell, ledger=dpf.Ledger(epsilon=1, delta=DELTA))
    replaced = dpf.PrivacyUnit(neighbors="replace")
    with pytest.raises(dpf.InvalidArgument, match="must cover the 2 cells"):
        PEOPLE.dp.preview.group_by("ward", keys=["A", "B"]).count(
            epsilon=1.0, delta=DELTA, mechanism=bell, unit=replaced
        )


def test_a_mechanism_that_is_not_finished_says_what_it_lacks():
    @dataclass(frozen=True)
    class Half(dpf.Mechanism):
        sensitivity: float
        grid: float
        name = "half"
        norm = 1.0

    with pytest.raises(dpf.InvalidType, match=r"Half lacks delta. Write tail\(steps\)"):
        PEOPLE.dp.preview.count(epsilon=1.0, mechanism=lambda sensitivity, loss: Half(1.0, 1.0))
    with pytest.raises(dpf.InvalidType, match="Half lacks add_noise"):
        Half(1.0, 1.0).add_noise(np.zeros(1, np.int64))
    with pytest.raises(dpf.InvalidType, match="Half lacks tail"):
        _ = Half(1.0, 1.0).variance


# A denoiser: halfway to the mean, with the optional arguments that it declares


def halfway(values, noise, *, nonnegative=False, order=None):
    """Move each value halfway to the mean; not below 0 if totals cannot be negative."""
    found = (values + values.mean()) / 2.0
    SEEN.append((nonnegative, order))
    return np.maximum(found, 0.0) if nonnegative else found


def neighbors(values, noise, *, graph):
    """Average each cell with its neighbors in the graph, which is a required argument."""
    flat = values.ravel()
    total, many = flat.copy(), np.ones(flat.size)
    for one, other in ((graph[:, 0], graph[:, 1]), (graph[:, 1], graph[:, 0])):
        np.add.at(total, one, flat[other])
        np.add.at(many, one, 1.0)
    return (total / many).reshape(values.shape)


SEEN = []


def test_toy_denoisers_keep_the_contract():
    check_denoiser(halfway)
    check_denoiser(neighbors)


def test_a_toy_denoiser_answers_and_is_told_what_its_signature_names():
    SEEN.clear()
    released = PEOPLE.dp.histogram(
        "age", bins=[0, 30, 60, 90], epsilon=5.0, denoise=halfway, ledger=dpf.Ledger(epsilon=9)
    )
    noisy = released["count_noisy"].to_numpy()
    assert released["count"].to_numpy() == pytest.approx(np.maximum((noisy + noisy.mean()) / 2.0, 0.0))
    assert "'name': 'halfway'" in repr(released.dp.provenance)
    assert SEEN[-1] == (True, (0,))


def test_a_toy_denoiser_gets_a_graph():
    wards = PEOPLE.dp.group_by("ward", keys=["A", "B", "C"])
    ledger = dpf.Ledger(epsilon=9)
    released = wards.count(epsilon=1.0, denoise=neighbors, graph=[("A", "B")], ledger=ledger)
    noisy = released["count_noisy"].to_numpy()
    assert released["count"].to_numpy() == pytest.approx(
        [(noisy[0] + noisy[1]) / 2, (noisy[0] + noisy[1]) / 2, noisy[2]]
    )
    with pytest.raises(dpf.InvalidArgument, match="graph must be given for denoise=neighbors"):
        wards.count(epsilon=1.0, denoise=neighbors, ledger=ledger)
    with pytest.raises(dpf.InvalidArgument, match="graph must come with a denoiser that uses it"):
        wards.count(epsilon=1.0, denoise=halfway, graph=[("A", "B")], ledger=ledger)


# An accounting: zero-concentrated differential privacy


@dataclass(frozen=True)
class Concentrated(Accounting):
    """Sums of rho (Bun and Steinke 2016): mu^2 / 2 of Gaussian noise, epsilon^2 / 2 of pure noise."""

    delta: Fraction = Fraction(0)
    name = "zcdp"

    def of_ledger(self, epsilon, delta):
        return replace(self, delta=delta)

    def limit(self, epsilon, delta):
        log = -math.log(delta)
        return (Fraction((math.sqrt(log + epsilon) - math.sqrt(log)) ** 2 * (1 - 1e-9)),)

    def charge(self, price, limit, mechanisms):
        each = [one.mu_squared if one.exact_mu else Fraction(one.pure_epsilon) ** 2 for one in mechanisms]
        return (sum(each, Fraction(0)) / 2,)

    def loss(self, amount):
        rho, log = float(amount[0]), -math.log(self.delta)
        epsilon = (rho + 2 * math.sqrt(rho * log)) * (1 + 1e-9)
        return dpf.PrivacyLoss(epsilon, float(self.delta) if rho else 0.0)


@pytest.mark.slow
def test_a_toy_accounting_keeps_the_contract():
    check_accounting(Concentrated())


def test_a_toy_accounting_keeps_a_ledger():
    ledger = dpf.Ledger(epsilon=1.0, delta=DELTA, accounting=Concentrated())
    assert ledger.accounting.name == "zcdp"
    before = ledger.remaining.epsilon
    released = PEOPLE.dp.count(epsilon=0.2, ledger=ledger)
    PEOPLE.dp.count(share=0.25, ledger=ledger)
    PEOPLE.dp.count(epsilon=0.1, mechanism="laplace", ledger=ledger)
    wards = PEOPLE.dp.group_by("ward", keys=["A", "B"]).agg(
        dpf.count(), dpf.mean("age", bounds=(0, 100)), epsilon=0.2, mechanism="auto", ledger=ledger
    )
    assert wards.height == 2
    assert released.dp.provenance["cost"]["accounting"] == "zcdp"
    assert 0 < ledger.spent.epsilon < 1
    assert 0 < ledger.remaining.epsilon < before
    assert "zcdp accounting" in repr(ledger)
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=0.9, ledger=ledger)
    ledger.raise_limit(epsilon=3.0, reason="a toy may cost more")
    PEOPLE.dp.count(epsilon=0.9, ledger=ledger)


def test_a_toy_accounting_of_everything_together():
    ledger = dpf.Ledger(epsilon=1.0, delta=DELTA, accounting=Concentrated())
    with ledger:
        plans = {"rows": PEOPLE.dp.preview.count(), "ages": PEOPLE.dp.preview.histogram("age", bins=[0, 50, 100])}
        found = dpf.release_together(plans, epsilon=0.5)
    assert set(found) == {"rows", "ages"}
    assert 0.5 < ledger.spent.epsilon < 0.7  # zCDP converts Gaussian noise of epsilon 0.5 to a larger epsilon


def test_a_durable_ledger_refuses_a_toy_accounting(tmp_path):
    path = tmp_path / "toy.ledger"
    with pytest.raises(dpf.InvalidArgument, match=r"for a durable ledger, not zcdp.*Leave path out"):
        dpf.Ledger(epsilon=1.0, delta=DELTA, accounting=Concentrated(), path=path)
    assert not path.exists()


def test_an_accounting_has_a_name_of_its_own():
    class Renamed(Concentrated):
        name = "gdp"

    with pytest.raises(dpf.InvalidArgument, match="must have a name of its own, not 'gdp'"):
        dpf.Ledger(epsilon=1.0, delta=DELTA, accounting=Renamed())
    with pytest.raises(dpf.InvalidType, match="Nothing lacks limit"):
        dpf.Ledger(epsilon=1.0, delta=DELTA, accounting=type("Nothing", (Accounting,), {"name": "none"})())


# A statistic: the mean of squares, computed from a sum that dpframe does not have


BITS = 15  # low bits of a value, dropped before it is squared: its square then has at most 2**30 steps


def squares(steps):
    return (steps >> BITS) ** 2


@dataclass(frozen=True)
class MeanSquare(Clipped):
    """The mean of the squares of a column's values."""

    verb: ClassVar[str] = "mean_square"
    sized: ClassVar[bool] = True
    denoisable: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    def totals(self):
        grid = (step_length(self.bounds) * 2.0**BITS) ** 2
        most = max((step >> BITS) ** 2 for step in grid_steps(self.bounds))
        row = RowFunction(((self.column, self.bounds),), squares, (0, most), grid, f"squares of {self.column}")
        return Total(row=row), Total(self.column)

    def answer(self, measured):
        total, present = (measured[one] for one in self.totals())
        most = max(bound**2 for bound in self.bounds)
        enough = present.values >= 1.0
        size = np.where(enough, present.values, 1.0)
        quotient = np.where(enough, total.values / size, most / 2)
        values = np.clip(quotient, 0.0, most)
        farther = np.maximum(values, most - values)
        return values, fieller(quotient, size, total.noise, present.noise, enough, farther, CONFIDENCE)

    def expected_error(self, noises, size, confidence=CONFIDENCE):
        return (
            noises[0].interval(confidence) / size
            + max(map(abs, self.bounds)) ** 2 * noises[1].interval(confidence) / size
        )


@pytest.mark.long
def test_a_toy_statistic_keeps_the_contract_and_answers():
    toy = MeanSquare("x", (0, 8))
    check_statistic(toy)
    people = pl.DataFrame({"x": [1.0, 2.0, 3.0, None, 11.0] * 200, "ward": ["A", "B"] * 500})
    with dpf.Ledger(epsilon=2e7):
        found = people.dp.group_by("ward", keys=["A", "B"]).agg(x=toy, n=dpf.count(), epsilon=1e6)
    assert found.columns == ["ward", "x", "x_error", "n", "n_noisy", "n_error"]
    # a value loses its last 15 of 30 bits before it is squared
    assert found["x"].to_list() == pytest.approx([(1 + 4 + 9 + 64) / 4] * 2, rel=1e-3)
    assert found.dp.provenance["measures"]["x"]["verb"] == "mean_square"
    assert found.dp.provenance["statistics"][0]["measures"] == "squares of x"
    plan = people.dp.preview.agg(x=toy, within=0.5, size=1_000)
    assert plan.error["x"] == pytest.approx(0.5, rel=1e-5)
    pytest.importorskip("altair")
    assert found.dp.plot().to_dict()["$schema"]


@pytest.mark.parametrize("unit", [None, dpf.PrivacyUnit("u", max_rows=3, max_groups=2)])
def test_a_toy_statistic_is_its_definition_for_rows_and_units(unit):
    rows = {"x": [1.0, 2.0, 30.0, None, math.nan, -4.0], "u": [1, 1, 2, 2, 3, 3], "g": ["A", "A", "A", "B", "B", "Z"]}
    frame, toy = pl.DataFrame(rows), MeanSquare("x", (0, 8))
    ledger = dpf.Ledger(epsilon=1e9, unit=unit or dpf.PrivacyUnit())
    found = frame.dp.group_by("g", keys=["A", "B"]).agg(x=toy, epsilon=1e8, ledger=ledger)
    assert found["x"].to_list() == pytest.approx([(1 + 4 + 64) / 3, 32.0], rel=1e-3)  # no values: the middle


def wrong_reach(steps):
    return squares(steps) * 4


@pytest.mark.long
def test_what_a_row_adds_stays_within_its_reach_whatever_the_toy_does():
    frame = pl.DataFrame({"x": [8.0] * 10})
    toy = MeanSquare("x", (0, 8))
    honest, count = toy.totals()
    assert honest.row is not None

    class Wild(MeanSquare):
        def totals(self):
            return replace(honest, row=replace(honest.row, function=wrong_reach)), count

    check_statistic(Wild("x", (0, 8)))
    found = frame.dp.agg(x=Wild("x", (0, 8)), epsilon=1e6, ledger=dpf.Ledger(epsilon=1e7))
    assert found["x"][0] == pytest.approx(64.0, rel=1e-3)


# An engine: rows in blocks, which are passed one after the other


class Blocks:
    """A table in blocks of rows. If there are units, it collects the rows of each from all blocks."""

    def __init__(self, frame):
        self.columns = frame.schema
        self.blocks = [frame[start : start + 7] for start in range(0, frame.height, 7)] or [frame]

    def schema(self):
        return self.columns

    def fold(self, columns, piece, by):
        if by is None:
            return sum(piece(block.select(columns or self.columns)) for block in self.blocks)
        whole = pl.concat(self.blocks)
        units = whole[by].fill_nan(None) if whole[by].dtype.is_float() else whole[by]
        parts = whole.with_columns(part=units.hash(seed=1) % 3).partition_by("part", include_key=False)
        return sum(map(piece, parts or [whole]))


@pytest.mark.slow
def test_a_toy_engine_keeps_the_contract():
    check_engine(Blocks, tables=1)


def test_a_toy_engine_answers():
    rows = dpf.of(Blocks(PEOPLE))
    found = rows.group_by("ward", keys=["A", "B", "C"]).count(epsilon=1e6, ledger=dpf.Ledger(epsilon=1e6))
    by_age = rows.count(epsilon=1e6, max_rows=1, ledger=dpf.Ledger(epsilon=1e6, unit="age"))
    assert found["count_noisy"].to_list() == [40, 80, 80]
    assert by_age["count"].to_list() == pytest.approx([5], abs=1e-3)  # each of five ages counts once


def test_a_toy_statistic_with_a_size_needs_it_for_a_target():
    with pytest.raises(dpf.MissingArgument, match=r"size must be given with within= for mean_square \(x\)"):
        PEOPLE.dp.preview.agg(x=MeanSquare("age", (0, 64)), within=5)


@dataclass(frozen=True)
class Answering(MeanSquare):
    """A statistic whose answer is replaced by `gives`."""

    gives: ClassVar[Any] = None

    def answer(self, measured):
        return type(self).gives(super().answer(measured))


def nothing(answer):
    return None


def failing(answer):
    raise ZeroDivisionError("division by zero")


def too_few(answer):
    return answer[0][:-1], answer[1][:-1]


def words(answer):
    return answer[0].astype(str), answer[1]


def not_finite(answer):
    return answer[0] * math.nan, answer[1]


def failing_on_noise(answer):
    return answer if not answer[0].any() or np.all(answer[0] == 32.0**2 * 2) else failing(answer)


@pytest.mark.parametrize("gives", [nothing, failing, too_few, words, not_finite])
def test_a_toy_statistic_that_cannot_answer_costs_nothing(gives):
    ledger = dpf.Ledger(epsilon=1)
    toy = type("Wrong", (Answering,), {"gives": staticmethod(gives)})("age", (0, 64))
    with pytest.raises(dpf.InvalidArgument, match=r"x \(mean_square\) fails on zeros .* Nothing was charged"):
        PEOPLE.dp.group_by("ward", keys=["A", "B"]).agg(x=toy, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_toy_statistic_that_fails_on_noisy_totals_says_that_the_charge_stands():
    ledger = dpf.Ledger(epsilon=1)
    toy = type("Wrong", (Answering,), {"gives": staticmethod(failing_on_noise)})("age", (0, 64))
    with pytest.raises(dpf.ReleaseFailed, match=r"mean_square raised ZeroDivisionError .* The charge stands"):
        PEOPLE.dp.agg(x=toy, epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 1


def test_a_toy_accounting_that_reads_losses_at_a_delta_needs_one():
    with pytest.raises(dpf.InvalidArgument, match="delta must be above 0 for zcdp accounting"):
        dpf.Ledger(epsilon=1.0, accounting=Concentrated())


def test_a_toy_statistic_says_not_in_which_direction_clipping_moves_it():
    frame = pl.DataFrame({"x": [100.0] * 500 + [1.0] * 500})
    with pytest.warns(dpf.BoundsWarning, match="above 8, clipped: this may move x, and its margin of error does not"):
        frame.dp.agg(x=MeanSquare("x", (0, 8)), epsilon=9, ledger=dpf.Ledger(9))
