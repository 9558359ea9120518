"""Seeded bugs of people, vectors and what is read off them."""

from __future__ import annotations

from assurance.bugs.seeding import bug

UNITS = "test_n_units.py"
SUMS = "test_unit_sums.py"
SPREAD = "test_variance.py"
RANKS = "test_quantile.py"
STATISTICS = (
    bug(
        "statistics",
        "a unit in many groups counts in full in each",
        "unit_weights.steps_of",
        "if groups <= most or p == math.inf:",
        "if groups <= 2 * most or p == math.inf:",
        f"{UNITS}::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "units weighed as for Laplace noise by the root",
        "unit_weights.steps_of",
        "if p == 1:",
        "if p == 0:",
        "test_unit_weights.py::test_published_steps",
    ),
    bug(
        "statistics",
        "rows counted for units",
        "compound._units",
        "pairs = np.unique(code * cells + cell)",
        "pairs = np.sort(code * cells + cell)",
        f"{UNITS}::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "the groups of a unit forgotten in the sensitivity of units",
        "sensitivity._of_whole_units",
        "groups=most if weighted else 1,",
        "groups=1,",
        f"{UNITS}::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "the sum of a unit clipped only row by row",
        "compound._clipped",
        "sums = np.clip(added(values, place.reshape(-1), pairs.size), *total.steps)",
        "sums = added(np.clip(values, *total.steps), place.reshape(-1), pairs.size)",
        f"{SUMS}::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "the sum of a unit rounded away from zero",
        "compound._clipped",
        "weighed = np.sign(sums) * ((np.abs(sums) * steps) >> WHOLE_BITS)",
        "weighed = np.sign(sums) * (((np.abs(sums) * steps) >> WHOLE_BITS) + 1)",
        f"{SUMS}::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "replace neighbors of vectors counted as add-remove",
        "Sensitivity._of_vectors",
        "doubled = 2 if self.replace else 1",
        "doubled = 1",
        f"{RANKS}::test_no_neighbor_is_farther_than_the_sensitivity",
        f"{RANKS}::test_the_sensitivity_is_attained",
    ),
    bug(
        "statistics",
        "the rows of a unit counted by bin, not by group",
        "compound._measured",
        "light = pair_weights(code, size, group, unit, p, groups)",
        "light = pair_weights(code, size, group * bins + np.maximum(place, 0), unit, p, groups)",
        f"{RANKS}::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "a matrix taken for one whose columns have length 1",
        "PrefixSums.column_square",
        "return int((coefficients(self.size) ** 2).sum())",
        "return 2 ** (2 * BITS)",
        "test_prefix_sums.py::test_one_row_moves_what_is_measured_by_no_more_than_stated",
    ),
    bug(
        "statistics",
        "the levels of a tree counted by a float logarithm",
        "Tree.levels",
        "while blocks < self.size:",
        "while blocks * self.branching <= self.size:",
        "test_prefix_sums.py::test_one_row_moves_what_is_measured_by_no_more_than_stated",
        "test_prefix_sums.py::test_levels_are_counted_by_whole_powers",
    ),
    bug(
        "statistics",
        "the middle of Bernstein's polynomials counted twice",
        "Bernstein.__call__",
        "return (rest * rest, 2 * t * rest, t * t)[self.power]",
        "return (rest * rest, 4 * t * rest, t * t)[self.power]",
        f"{SPREAD}::test_what_a_row_adds",
    ),
    bug(
        "statistics",
        "a quantile's interval from half the noise",
        "quantiles._width",
        "return noise.interval(confidence)",
        "return 0.5 * noise.interval(confidence)",
        f"{RANKS}::test_intervals_cover",
    ),
    bug(
        "statistics",
        "the noise of the squares left out of a variance's error",
        "moments.centred_variance",
        "spread = noise_squares**2 + 4.0",
        "spread = 4.0",
        "test_moment_readings.py::test_published_variances",
    ),
    bug(
        "statistics",
        "a proportion whose other side is all rows",
        "TwoSided.__call__",
        "return share if self.above else 2**self.share.bits - share",
        "return share if self.above else np.full_like(share, 2**self.share.bits)",
        "test_proportion.py::test_both_ways_make_the_whole_way",
        "test_proportion.py::test_no_neighbor_is_farther_than_the_sensitivity",
    ),
    bug(
        "statistics",
        "the noise of the divisor left out of a ratio's interval",
        "Ratio._read",
        "squares = squared * spreads[0], 0.0, squared * spreads[1]",
        "squares = squared * spreads[0], 0.0, 0.0",
        "test_ratio.py::test_intervals_cover",
    ),
    bug(
        "statistics",
        "a mean over all rows that counts present values",
        "Mean.totals",
        'counted = Total(self.column) if self.missing == "drop" else Total(None)',
        "counted = Total(self.column)",
        "test_ratio.py::test_missing_values_count_as_the_middle",
    ),
)
