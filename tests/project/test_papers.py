"""A small share of ``papers/``: claims of the papers that hold, and claims that do not."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from papers import (
    balle_wang_histograms,
    balle_wang_means,
    balle_wang_variance,
    counts,
    liu_adult,
    liu_figure_2,
    liu_figure_3,
    liu_figures_4_5,
    liu_machines,
    liu_tables,
    reporting,
)

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[3] / "shared" / "data"
HAS_DATA = pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not beside this clone")


def errors(rows):
    return {row["method"]: row["error"] for row in rows}


class TestBalleAndWang:
    """Figures 1, 3 and 4."""

    def test_the_gain_near_one_is_at_least_1_4_but_for_tiny_delta(self):
        gains = [balle_wang_variance.compared(0.999, delta)["gain"] for delta in (2e-9, 1e-6, 1e-4, 1e-2)]
        assert min(gains) >= 1.4
        assert gains == sorted(gains)
        assert balle_wang_variance.compared(0.999, 1e-10)["gain"] < 1.4
        assert balle_wang_variance.reaching(1.5) == pytest.approx(1.25e-7, rel=0.01)

    @pytest.mark.parametrize("delta", [1e-8, 1e-6, 1e-4, 1e-2])
    def test_the_gain_rises_as_epsilon_falls(self, delta):
        gains = [balle_wang_variance.compared(epsilon, delta)["gain"] for epsilon in balle_wang_variance.EPSILONS]
        assert gains == sorted(gains, reverse=True)

    def test_the_gain_is_orders_of_magnitude_where_epsilon_is_not_far_above_delta(self):
        assert balle_wang_variance.compared(1e-3, 1e-3)["gain"] > 100
        assert balle_wang_variance.compared(1e-6, 1e-6)["gain"] > 100
        assert balle_wang_variance.compared(1e-3, 1e-10)["gain"] < 10

    def test_denoised_means_are_orders_of_magnitude_better_at_a_small_epsilon(self):
        found = errors(balle_wang_means.measured(0.01, 1_000, repeats=3))
        assert found["Lap"] > 5 * found["cGM"] > 10 * found["aGM"] > 50 * max(found["aGM-JS"], found["aGM-TH"])

    def test_james_stein_beats_thresholds_for_means_at_larger_epsilons(self):
        for epsilon in (0.1, 1.0):
            found = errors(balle_wang_means.measured(epsilon, 1_000, repeats=3))
            assert found["aGM-JS"] < found["aGM-TH"]
            assert found["aGM-JS"] < found["aGM"] < found["cGM"] < found["Lap"]

    def test_thresholds_beat_james_stein_for_sparse_histograms(self):
        found = errors(balle_wang_histograms.measured(0.01, 316, repeats=4))
        assert found["aGM-TH"] < found["aGM-JS"] < found["aGM"] < found["Lap"] < found["cGM"]

    def test_at_epsilon_one_laplace_beats_gaussian_noise_in_histograms_but_not_thresholds(self):
        found = errors(balle_wang_histograms.measured(1.0, 316, repeats=4))
        assert found["Lap"] < min(found["aGM"], found["aGM-JS"]) < found["cGM"]
        assert found["aGM-TH"] < found["Lap"]

    def test_the_elements_come_from_few_bins(self):
        drawn = balle_wang_histograms.drawn(1_000, np.random.default_rng(1))
        assert drawn.shape == (500,)
        assert len(set(drawn.tolist())) < 30

    def test_a_histogram_has_the_sensitivities_of_the_paper(self):
        elements = pl.DataFrame({"bin": [0, 1]})
        ledger = dpf.Ledger(epsilon=1.0, delta=1e-4, accounting="basic", unit=balle_wang_histograms.UNIT)
        asked = {"categories": range(9), "epsilon": 1.0, "ledger": ledger}
        noises = [{}, {"delta": 1e-4, "mechanism": "gaussian"}]
        plans = [elements.dp.preview.histogram("bin", **asked, **noise) for noise in noises]
        assert [plan.parts[0].mechanism.sensitivity for plan in plans] == pytest.approx([2.0, 2**0.5])


class TestLiuFigures:
    """Figures 2 to 5, Propositions 11 and 12."""

    def test_one_statistic_needs_what_corollary_9_says(self):
        for p, epsilon in ((2, 0.5), (5, 2.0)):
            rows = liu_figure_2.bounds(p, epsilon, repeats=100_000)
            generator = np.random.default_rng(1)
            drawn = generator.gamma(1 / p, size=(1, 100_000)) ** (1 / p)
            for row in rows:
                simulated = np.quantile(liu_figure_2.least_scales(drawn, p, epsilon), 1 - row["delta"])
                assert simulated == pytest.approx(row["one"], rel=0.03)
                assert row["three"] > row["one"]

    def test_gaussian_noise_is_the_case_p_2(self):
        for row in liu_figure_2.bounds(2, 1.0, repeats=1_000):
            sigma = dpf.probabilistic_gaussian_sigma(row["epsilon"], row["delta"])
            assert row["one"] == pytest.approx(sigma * 2**0.5, rel=1e-9)

    def test_newton_finds_where_the_loss_is_epsilon(self):
        drawn = np.abs(np.random.default_rng(1).standard_normal((3, 1_000)))
        reach = np.array(liu_figure_2.SENSITIVITIES)[:, None]
        for p in liu_figure_2.SHAPES:
            scales = liu_figure_2.least_scales(drawn, p, 0.1)
            loss = ((drawn + reach / scales) ** p - drawn**p).sum(axis=0)
            assert loss == pytest.approx(np.full(1_000, 0.1), rel=1e-6)

    def test_b_rises_as_privacy_rises_and_with_p_unless_delta_is_large(self):
        b = {
            (p, epsilon, delta): dpf.generalized_gaussian_scale(p, epsilon, delta, guarantee="probabilistic")
            for p in (2, 3, 6)
            for epsilon in (0.1, 1.0)
            for delta in (0.01, 0.25)
        }
        assert all(b[p, 0.1, delta] > b[p, 1.0, delta] for p, _, delta in b)
        assert all(b[p, epsilon, 0.01] > b[p, epsilon, 0.25] for p, epsilon, _ in b)
        assert b[2, 1.0, 0.01] < b[3, 1.0, 0.01] < b[6, 1.0, 0.01]
        assert b[6, 0.1, 0.25] < b[2, 0.1, 0.25]  # contradicts the paper's "b increases with p"

    def test_sigma_of_probabilistic_is_below_classical(self):
        rows = [liu_figure_3.compared(epsilon, delta) for epsilon in (0.01, 0.5, 0.99) for delta in liu_figure_3.DELTAS]
        assert all(row["exact"] < row["pdp"] < 1.0 for row in rows)
        by_delta = [[row["pdp"] for row in rows if row["delta"] == delta] for delta in liu_figure_3.DELTAS]
        assert all(ratios == sorted(ratios) for ratios in by_delta)  # smaller for smaller epsilon
        small = [row["pdp"] for row in rows if row["epsilon"] == 0.01]
        assert small == sorted(small, reverse=True)  # and for larger delta
        assert rows[-1]["pdp"] > rows[-2]["pdp"]  # but not near epsilon 1 and delta 0.5

    def test_tails_fall_apart_and_meet_again(self):
        for epsilon, delta in ((0.1, 0.1), (1.0, 0.05), (2.0, 0.2)):
            found = liu_figures_4_5.curve(epsilon, delta)
            ratio, lowest = found["tails"], int(np.argmin(found["tails"]))
            assert ratio[0] < 1.0
            assert np.all(np.diff(ratio[: lowest + 1]) <= 0.0)
            assert np.all(np.diff(ratio[lowest : lowest + 200]) >= 0.0)
            meant = found["matters"] & (ratio < 1e200)
            assert np.array_equal(ratio[meant] > 1.0, found["cost"][meant] < 1.0)  # both figures turn at one place

    def test_the_cost_of_figure_5_gives_laplaces_tail(self):
        found = liu_figures_4_5.curve(1.0, 0.05)
        for at in (100, 1_000, 4_000):
            sigma = dpf.probabilistic_gaussian_sigma(float(found["cost"][at]), 0.05)
            tail = 2.0 * liu_figures_4_5.ndtr(-found["distance"][at] / sigma)
            assert tail == pytest.approx(found["laplace"][at], rel=1e-6)

    @pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 5.0])
    def test_proposition_12(self, epsilon):
        ratio = lambda delta: dpf.probabilistic_gaussian_sigma(epsilon, delta) ** 2 * epsilon**2 / 2  # noqa: E731
        assert ratio(liu_figures_4_5.THRESHOLD * 0.999) > 1.0
        assert abs(liu_figures_4_5.THRESHOLD - 0.1573) < 1e-4
        assert (ratio(liu_figures_4_5.THRESHOLD * 1.01) < 1.0) == (epsilon < 0.01)  # sufficient, not necessary


def sparse() -> liu_tables.Table:
    """Return a made-up table of 70 records in a third of the cells."""
    generator = np.random.default_rng(3)
    cells = generator.choice(generator.permutation(64)[:22], p=generator.dirichlet(np.ones(22)), size=70)
    levels = {f"locus_{place}": ((cells >> (5 - place)) & 1) + 1 for place in range(6)}
    return liu_tables.Table(pl.DataFrame(levels), (1, 2))


def l1(records, noise, epsilon, delta, repeats=40):
    return {row["kind"]: row for row in liu_tables.measured(records, counts.Setting(noise, epsilon, delta), repeats)}


class TestLiuTables:
    """Section 4."""

    def test_releases_are_of_the_counts_in_their_order(self):
        records = sparse()
        exact = records.released(counts.Setting("Laplace", 1e9, 0.01))
        assert exact.tolist() == records.truth().tolist()
        assert records.truth().sum() == 70

    def test_the_noise_is_the_paper_s(self):
        law = {name: counts.Setting(name, 1.0, 0.05).law() for name in counts.NOISES}
        assert law["Laplace"].scale == 1.0
        assert law["Gaussian pDP"].scale == pytest.approx(2.1889, abs=1e-3)  # z = 1.96: (sqrt(z^2 + 2) + z) / 2
        assert law["Gaussian aDP"].scale == pytest.approx((2 * np.log(25)) ** 0.5)
        assert law["GG-3 pDP"].scale == pytest.approx(4.662, abs=1e-3)
        assert law["Gaussian analytic"].scale < law["Gaussian pDP"].scale
        assert all(one.sensitivity == 1.0 for one in law.values())

    def test_sanitized_counts_are_in_bounds_and_sum_to_n(self):
        noisy = np.array([[-3.0, 5.0, 80.0], [-1.0, -2.0, -3.0]])
        assert counts.bounded(noisy, 70) == pytest.approx(np.array([[0, 14 / 3, 196 / 3], [70 / 3] * 3]))

    def test_distances(self):
        truth = np.array([3, 0, 1])
        found = counts.distances(np.array([[3.0, 0.0, 1.0], [2.0, 1.0, 1.0]]), truth)
        assert found["l1"].tolist() == [0.0, 2.0]
        p, q = np.array([3.5, 0.5, 1.5]) / 5.5, np.array([2.5, 1.5, 1.5]) / 5.5
        assert found["kl"] == pytest.approx([0.0, (p * np.log(p / q)).sum()])
        assert found["kl reversed"] == pytest.approx([0.0, (q * np.log(q / p)).sum()])

    @pytest.mark.parametrize("kind", ["integers", "continuous"])
    def test_laplace_wins_and_gg_3_is_the_worst(self, kind):
        records = sparse()
        found = {name: l1(records, name, 1.0, 0.01)[kind] for name in counts.NOISES}
        ordered = ["Laplace", "Gaussian analytic", "Gaussian pDP", "Gaussian aDP", "GG-3 pDP"]
        for statistic in ("l1", "kl"):
            assert sorted(found, key=lambda name: found[name][statistic]) == ordered

    def test_laplace_does_not_win_where_delta_is_large(self):
        records = sparse()
        assert (
            l1(records, "Gaussian analytic", 1.0, 0.25)["integers"]["l1"]
            < l1(records, "Laplace", 1.0, 0.25)["integers"]["l1"]
        )

    @HAS_DATA
    def test_the_tables_of_the_paper(self):
        mildew, czech = liu_tables.mildew(DATA), liu_tables.czech(DATA)
        assert mildew.truth().sum() == 70
        assert (mildew.truth() > 0).sum() == 22
        assert czech.truth().sum() == 1_841
        assert (czech.truth() > 0).sum() == 63
        for noise in ("Laplace", "Gaussian pDP"):
            halves = [l1(czech, noise, epsilon, 0.05, repeats=10)["integers"]["l1"] for epsilon in (0.5, 1.0, 2.0)]
            assert halves[0] - halves[1] > 1.5 * (halves[1] - halves[2])  # a large drop, then a much smaller one

    @HAS_DATA
    def test_machines_hardly_need_the_counts(self):
        pytest.importorskip("sklearn", reason="scikit-learn (the extra benchmarks) is not installed")
        adult = liu_adult.read(DATA)
        assert adult.counts.sum() == 20_009
        assert len(adult.answers) == 10_005
        assert adult.counts.size == pytest.approx(17_985, rel=0.02)
        exact = adult.accuracy(liu_machines.linear(), adult.counts.astype(float))
        blind = adult.accuracy(liu_machines.linear(), np.ones(adult.counts.size))
        row = liu_adult.measured(adult, counts.Setting("Gaussian aDP", 0.5, 0.01), repeats=2)
        assert exact == pytest.approx(0.85, abs=0.01)
        assert exact - blind < 0.01
        assert row["l1"] > 20_009  # the counts say almost nothing


class TestReporting:
    """Tables and charts."""

    def test_a_script_writes_its_table_and_its_chart(self, tmp_path, monkeypatch, capsys):
        pytest.importorskip("altair")
        pytest.importorskip("vl_convert")
        monkeypatch.setattr(sys, "argv", ["liu_figure_3.py", "--out", str(tmp_path)])
        liu_figure_3.main()
        assert "| epsilon | delta 1e-09 |" in capsys.readouterr().out
        assert {file.suffix for file in tmp_path.iterdir()} == {".csv", ".md", ".png"}
        assert len((tmp_path / "liu_figure_3.csv").read_text().splitlines()) == 111
        assert (tmp_path / "liu_figure_3.png").read_bytes().startswith(reporting.PNG)

    def test_a_smaller_picture_is_the_same_picture(self):
        rows = b"\0" + bytes(300)
        parts = [
            (b"IHDR", struct.pack(">IIBBBBB", 300, 1, 8, 0, 0, 0, 0)),
            (b"IDAT", zlib.compress(rows, 0)),
            (b"IEND", b""),
        ]
        loose = reporting.PNG + b"".join(map(reporting.chunk, parts))
        tight = reporting.smaller(loose)
        assert len(tight) < len(loose)
        assert tight.startswith(loose[:33])
        assert tight.endswith(loose[-12:])
        assert zlib.decompress(tight[41:-16]) == rows

    def test_the_classical_formula_goes_on_where_the_theorem_ends(self):
        assert reporting.classical_sigma(0.5, 1e-4) == dpf.classical_gaussian_sigma(0.5, 1e-4)
        assert reporting.classical_sigma(2.0, 1e-4) == pytest.approx((2 * np.log(1.25e4)) ** 0.5 / 2)

    def test_pictures_of_the_document_are_small(self):
        pictures = list((Path(__file__).parents[2] / "docs" / "images").glob("papers-*"))
        assert all(picture.stat().st_size < 150_000 for picture in pictures)
