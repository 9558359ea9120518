"""Seeded bugs of the room "local": the local model."""

from __future__ import annotations

from assurance.bugs.seeding import bug, bugs

ENUMERATED = "test_local_mechanisms.py::test_no_outcome_tells_more_than_epsilon"

LOCAL = (
    bugs(
        "local",
        "coins whose first byte decides all",
        (
            ("coins.tossed", "np.less(drawn, sure, out=batch)", "np.less_equal(drawn, sure, out=batch)"),
            ("coins.tossed", "np.flatnonzero(drawn == sure)", "np.flatnonzero(drawn > 255)"),
        ),
        "test_local_draws.py::test_open_coins_are_decided_by_more_bits",
        "test_local_draws.py::test_coins_have_their_probability_and_no_other",
    ),
    bug(
        "local",
        "coins of the probability of a double",
        "coins.tossed",
        "accepted(np.full(open_places.size, rest), CLOSE, lambda _: _left_over(chance, sure))",
        "numbers(open_places.size, 63) * 2.0**-63 < rest",
        "test_local_draws.py::test_open_coins_are_decided_by_more_bits",
    ),
    bug(
        "local",
        "a truth that is held with the odds of twice epsilon",
        "_OfSubsets._holds",
        "coins.Chance(law.size, law.among - law.size, self.loss)",
        "coins.Chance(law.size, law.among - law.size, 2 * self.loss)",
        ENUMERATED,
    ),
    bug(
        "local",
        "subsets that never hold the last category unless it is the truth",
        "SubsetSelection.subsets",
        "        flags[rows, last] = flags[rows, truth]  # the place of the truth stood for the last category\n",
        "",
        ENUMERATED,
    ),
    bug(
        "local",
        "cells of a sketch that are flipped with 1 / (1 + e^epsilon)",
        "CountMeanSketch.reports",
        "coins.Chance(1, 1, -self.loss / 2)",
        "coins.Chance(1, 1, -self.loss)",
        ENUMERATED,
    ),
    bug(
        "local",
        "a window that is left open at its end",
        "window.Mean.reports",
        "far + self.width * (far >= truth)",
        "far + self.width * (far > truth)",
        "test_local_mechanisms.py::test_no_window_tells_more_than_epsilon",
    ),
    bug(
        "local",
        "a missing value that is always the first category",
        "truths",
        "coins.uniform(categories - 1, nowhere.size)",
        "0",
        "test_local_draws.py::test_a_missing_value_is_any_category",
    ),
    bug(
        "local",
        "permanent bits that are memoized by value: a changed value redraws them",
        "Memo.draws",
        "        numbers = [[number(secret, bit) for bit in bits] for secret in each]\n",
        "        numbers = [\n"
        "            [number(secret, bit + bytes([value % 256])) for bit in bits]\n"
        "            for secret, value in zip(each, truth.tolist(), strict=True)\n"
        "        ]\n",
        "test_rappor.py::test_which_bits_are_random_does_not_depend_on_the_value",
    ),
    bug(
        "local",
        "permanent bits that are redrawn at every report: averages tell the truth",
        "Memo.draws",
        "kept = joined(digest, self.column.encode(), period)",
        'kept = joined(digest, self.column.encode(), period, __import__("os").urandom(16))',
        "test_rappor.py::test_bits_stay_and_belong_to_person_period_column_and_parameters",
    ),
    bug(
        "local",
        "bits that two people of equal values share",
        "Memo.draws",
        'joined(b"person", person.encode())',
        'joined(b"person")',
        "test_rappor.py::test_bits_stay_and_belong_to_person_period_column_and_parameters",
    ),
    bug(
        "local",
        "a charge for one report, whatever follows from its permanent bits",
        "Rappor.loss",
        "Fraction(self.epsilon_forever)",
        "Fraction(self.epsilon_once)",
        "test_rappor.py::test_a_period_is_charged_once_whatever_changes",
    ),
    bug(
        "local",
        "a ledger of add-remove neighbors that is charged for reports",
        "randomized",
        '    if whose.neighbors != "replace":\n',
        "    if False:\n",
        "test_local_release.py::test_a_ledger_that_hides_who_takes_part_refuses",
    ),
    bug(
        "local",
        "one report charged for a person who makes several",
        "randomized",
        "PureLoss(method.loss * most)",
        "PureLoss(method.loss)",
        "test_local_release.py::test_reports_of_one_person_add_up",
    ),
    bug(
        "local",
        "reports charged as a choice of bounded range",
        "randomized",
        "PureLoss(method.loss * most)",
        '__import__("dpframe.accounting", fromlist=["_"]).BoundedRange(method.loss * most)',
        "test_declared.py::test_as_many_reports_as_keep_the_promise",
    ),
    bug(
        "local",
        "a declared pure loss at a quarter of its mu squared",
        "PureLoss.mu_squared",
        "gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2",
        "gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2 / 4",
        "test_declared.py::test_a_pure_loss_costs_what_randomized_response_costs",
        "test_declared.py::test_as_many_reports_as_keep_the_promise",
    ),
    bug(
        "local",
        "a declared pure loss with the divergence of a bounded range",
        "PureLoss.renyi",
        "renyi.of_pure(self.pure_epsilon, renyi.checked_order(order))",
        "renyi_of_range(self.budget, renyi.checked_order(order))",
        "test_declared.py::test_a_pure_loss_costs_what_randomized_response_costs",
    ),
    bug(
        "local",
        "rows of a person beyond the bound that report the truth",
        "categories_of_rows",
        "    codes[_beyond(table, unit, most)] = NOT_THERE\n",
        "",
        "test_local_release.py::test_rows_beyond_the_bound_say_nothing",
    ),
    bug(
        "local",
        "the statement of an estimate that names the epsilon of one report",
        "statements._promise",
        'facts["per_report"] * (facts["unit"]["max_rows"] or 1)',
        'facts["per_report"]',
        "test_local_release.py::test_197_the_statement_counts_all_reports_of_a_person",
    ),
)
