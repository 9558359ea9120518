"""Seeded bugs of marginals."""

from __future__ import annotations

from assurance.bugs.seeding import bug

CONTRASTS = "test_contrasts.py"
REACH = "test_contrast_sensitivity.py"
SCALED = "test_scaled.py"
ALL = "test_marginals.py"
MARGINALS = (
    bug(
        "marginals",
        "noise of one scale for all contrasts",
        "ContrastGaussian.add_noise",
        "scales = self.design.scales * self.step_scale * ABOVE",
        "scales = np.ones_like(self.design.scales) * self.step_scale * ABOVE",
        f"{ALL}::test_noise_that_is_2_percent_off_is_seen",
    ),
    bug(
        "marginals",
        "one draw of noise for all contrasts of a release",
        "ContrastGaussian.add_noise",
        "noise.scaled_gaussian(np.asarray(scales))",
        "np.round(noise.scaled_gaussian(np.array([1e6])) / 1e6 * scales).astype(np.int64)",
        f"{ALL}::test_noise_that_is_2_percent_off_is_seen",
    ),
    bug(
        "marginals",
        "the cost of each table divided by its cells, as if rows were in one contrast only",
        "ContrastDesign.weight",
        "Fraction(self.sizes[i] - 1, self.sizes[i])",
        "Fraction(1, self.sizes[i])",
        f"{CONTRASTS}::test_the_cost_and_the_variances_by_dense_algebra",
        f"{REACH}::test_a_unit_attains_the_bound_in_every_cell",
    ),
    bug(
        "marginals",
        "contrasts scaled as rows of length k, not the root of k (k + 1)",
        "ContrastDesign.scales",
        "squares[..., None] * (k * (k + 1.0))",
        "squares[..., None] * (k * k)",
        f"{CONTRASTS}::test_the_contrasts_and_the_scales_of_the_specification",
        f"{REACH}::test_a_unit_attains_the_bound_in_every_cell",
    ),
    bug(
        "marginals",
        "the weight of a person forgotten",
        "compound._declared_steps",
        "return np.asarray(np.minimum(2**INNER_BITS, in_full // np.maximum(rows, 1)))[code]",
        "return np.full(code.size, 2**INNER_BITS)",
        f"{REACH}::test_a_unit_of_different_rows_has_one_weight_for_all_tables",
        f"{REACH}::test_a_unit_attains_the_bound_in_every_cell",
    ),
    bug(
        "marginals",
        "the weight of a person rounded up",
        "compound._declared_steps",
        "in_full // np.maximum(rows, 1)",
        "-(-in_full // np.maximum(rows, 1))",
        f"{REACH}::test_a_unit_attains_the_bound_in_every_cell",
    ),
    bug(
        "marginals",
        "a row of an undeclared value counted in the tables without that column",
        "declared_rows",
        "declared = np.logical_and.reduce([code >= 0 for code in codes.values()])",
        "declared = next(iter(codes.values())) >= 0\n"
        "    codes = {name: np.maximum(code, 0) for name, code in codes.items()}",
        f"{ALL}::test_the_tables_in_their_order_and_dtypes",
        f"{REACH}::test_a_unit_of_different_rows_has_one_weight_for_all_tables",
    ),
    bug(
        "marginals",
        "replaced rows of contrasts as vectors without negative entries",
        "TableContrasts",
        "    signed = True\n",
        "    signed = False\n",
        f"{REACH}::test_replaced_rows_may_lie_on_opposite_sides",
    ),
    bug(
        "marginals",
        "a draw that leaves two integers open rounded at its middle",
        "samplers.scaled_gaussian",
        "for place in np.flatnonzero(open_places):",
        "for place in ():",
        f"{SCALED}::test_points_that_must_be_drawn_closer_have_the_same_law",
    ),
    bug(
        "marginals",
        "points within the interval of a draw all kept",
        "samplers._exactly",
        "if known == 0 or _kept_exactly(law, start, bits, known):",
        "if True:",
        f"{SCALED}::test_points_that_must_be_drawn_closer_have_the_same_law",
    ),
)
