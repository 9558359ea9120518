"""Seeded bugs of the contracts for extensions, and of the checks of these contracts."""

from __future__ import annotations

from assurance.bugs.seeding import bug

CHECKS = "test_contracts.py"
TOYS = "test_toys.py"

CONTRACTS = (
    bug(
        "contracts",
        "a curve from tails of half the shift",
        "curves.deltas_of_tail",
        "above = tail_at_least(tail, steps - shift)",
        "above = tail_at_least(tail, steps - np.floor(shift / 2))",
        f"{TOYS}::test_what_is_derived_is_what_is_known",
    ),
    bug(
        "contracts",
        "an interval from tails that is a step too narrow",
        "curves.half_width_of_tail",
        "tail(np.array([middle + 1.0]))",
        "tail(np.array([middle + 2.0]))",
        f"{TOYS}::test_what_is_derived_is_what_is_known",
    ),
    bug(
        "contracts",
        "a sensitivity between two grid steps rounded down where the curve is derived",
        "curves.whole_steps",
        "math.ceil(Fraction(sensitivity) / Fraction(grid) * (1 - Fraction(1, 2**50)))",
        "max(1, math.floor(Fraction(sensitivity) / Fraction(grid)))",
        f"{CHECKS}::test_a_sensitivity_between_two_steps_counts_as_the_next",
    ),
    bug(
        "contracts",
        "noise of one cell taken for noise of any number of cells",
        "Mechanism.cells",
        "return 1.0",
        "return math.inf",
        f"{TOYS}::test_a_toy_with_a_delta_answers_one_cell_and_is_refused_where_nothing_is_proven",
    ),
    bug(
        "contracts",
        "pure noise from outside at half its mu",
        "Mechanism.mu_squared",
        "Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2",
        "Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon) / 2) ** 2",
        f"{CHECKS}::test_the_toy_that_the_broken_ones_are_made_of_is_whole",
    ),
    bug(
        "contracts",
        "an accounting from outside that gives each statistic the whole cost",
        "Accounting.parts",
        "root_down(whole * share)",
        "root_down(whole)",
        f"{CHECKS}::test_the_accounting_that_the_broken_ones_are_made_of_is_whole",
    ),
    bug(
        "contracts",
        "an accounting from outside that says more remains than does",
        "Accounting.remaining",
        "return PrivacyLoss(low,",
        "return PrivacyLoss(1.01 * low,",
        f"{CHECKS}::test_the_accounting_that_the_broken_ones_are_made_of_is_whole",
    ),
    bug(
        "contracts",
        "a durable ledger of an accounting that others do not know",
        "new_terms",
        "if durable and not is_shipped(how):",
        "if False:",
        f"{TOYS}::test_a_durable_ledger_refuses_a_toy_accounting",
    ),
    bug(
        "contracts",
        "bounds of a Total taken as they are",
        "total._kind",
        'checked_bounds(given["bounds"], narrowest=DISTINCT)',
        'given["bounds"]',
        "test_total_kinds.py::test_199_bounds_of_a_total_that_are_no_bounds_are_refused",
    ),
    bug(
        "contracts",
        "221: the size of bounds in a type of NumPy, where that of the least one is negative",
        "step_length",
        "max(map(math.fabs, bounds))",
        "max(map(abs, bounds))",
        "test_total_kinds.py::test_221_a_step_is_as_long_for_bounds_of_numpy",
    ),
    bug(
        "contracts",
        "222: a reach in a type of NumPy",
        "RowFunction.__post_init__",
        '        object.__setattr__(self, "reach", reach)\n',
        "",
        "test_own_code.py::test_221_222_bounds_and_reach_of_numpy_are_numbers_that_do_not_wrap",
    ),
    bug(
        "contracts",
        "a check that lets noise of any variance pass",
        "_check_spread",
        "abs(variance - said) <= WIDE * error + 1e-6 * said",
        "abs(variance - said) <= WIDE * error + 0.1 * said",
        f"{CHECKS}::test_broken_mechanisms_are_refused",
    ),
    bug(
        "contracts",
        "a check that lets an expected error of a third pass",
        "_check_answers",
        "expected >= usual / MOST_TIMES",
        "expected >= usual / 4.0",
        "test_statistic_rules.py::test_one_that_breaks_a_rule_is_refused",
    ),
    bug(
        "contracts",
        "a check that fills a limit to nine tenths",
        "_Ledger.many",
        "return min(MOST, (max if self.accounting.one_is_enough else min)(fits))",
        "return min(MOST, (max if self.accounting.one_is_enough else min)(fits)) * 9 // 10",
        f"{CHECKS}::test_broken_accountings_are_refused",
    ),
    bug(
        "accounting",
        "a curve of pure noise that is 0 where exponentials overflow",
        "curves.of_discrete_laplace",
        "np.exp(beyond - rate) * -np.expm1(-beyond)",
        "math.exp(-rate) * np.expm1(beyond)",
        "test_compositions.py::test_curves_of_pure_noise_hold_where_exponentials_overflow",
    ),
)
