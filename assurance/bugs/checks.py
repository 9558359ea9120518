"""Seeded bugs of the room "checks"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

NEIGHBORS = "test_checks_table.py::test_neighbors_move_the_numbers_by_no_more_than_is_stated"
PLAIN = "test_checks_table.py::test_indicators_are_those_of_plain_python"
PAIRS = "test_checks_table.py::test_a_pair_of_one_column_counts_once_where_rows_come_and_go"
COSTS = "test_checks.py::test_the_whole_call_costs_what_was_offered"
CHARGED = "test_checks.py::test_every_noise_that_is_drawn_is_charged"
LISTED = "test_checks_table.py::test_every_pair_of_a_verb_and_a_number_is_listed"
NOTHING = "test_checks.py::test_checks_that_would_tell_nothing_are_measured_only_for_who_asks"
TOGETHER = "test_checks.py::test_plans_that_are_released_together_decide_at_the_price_of_the_whole"
STORED = "test_checks.py::test_an_answer_that_was_stored_without_checks_is_the_answer_of_a_call_that_says_nothing"
OTHER = "test_checks.py::test_a_stored_answer_is_no_answer_where_the_ledger_asks_for_other_checks"
ONE_READ = "test_checks_table.py::test_one_read_gives_totals_and_the_numbers_of_a_read_of_their_own"
SAID = "test_checks.py::test_an_answer_that_bounds_made_wrong_says_so_everywhere"

CHECKS = (
    bug(
        "checks",
        "187: an accounting of a plan without its checks",
        "Plan.drawn",
        "return self.noises if self.checks is None else (*self.noises, self.checks.mechanism)",
        "return self.noises",
        "test_checks.py::test_187_an_accounting_of_a_plan_counts_its_checks",
    ),
    bug(
        "checks",
        "a pair counts once under replace too",
        "Checks.moved",
        "return numbers - self.counts_units  # the number of units stays",
        "return numbers - self.counts_units - len(self.between)",
        NEIGHBORS,
        PAIRS,
    ),
    bug(
        "checks",
        "a pair of a unit of many rows counts once",
        "Checks.moved",
        "if self.unit.column is None else numbers",
        "",
        PAIRS,
    ),
    bug(
        "checks",
        "a unit counts once for each group",
        "CheckTask.weigh",
        "each = [one.any() for one in has]",
        "each = [one.sum() for one in has]",
        NEIGHBORS,
        PLAIN,
    ),
    bug(
        "checks",
        "values in no declared cell are clipped ones too",
        "CheckTask.weigh",
        "has += [inside & (below > 0), inside & (above > 0)]",
        "has += [below > 0, above > 0]",
        PLAIN,
    ),
    bug(
        "checks",
        "NaN lies above the bounds",
        "CheckTask._flags",
        "there = value.is_not_null() & value.is_not_nan()",
        "there = value.is_not_null()",
        PLAIN,
    ),
    bug(
        "checks",
        "checks that are not charged",
        "priced",
        "    amount = accounting.charge(price, limit, every)\n",
        "    amount = accounting.charge(price, limit, noises)\n",
        CHARGED,
    ),
    bug(
        "checks",
        "answers that take the whole cost in addition to their checks",
        "priced",
        "shares, sensitivities = shares_of(query, weights, rest), sensitivities_of(query, unit)",
        "shares, sensitivities = shares_of(query, weights), sensitivities_of(query, unit)",
        COSTS,
    ),
    bug(
        "checks",
        "a page that says nothing of checks",
        "result_tables.notes_of",
        "*check_lines(facts), ",
        "",
        SAID,
    ),
    bug(
        "checks",
        "both directions are one",
        "_of_values",
        'above = row["what"] == "above"',
        "above = False",
        SAID,
    ),
    bug(
        "checks",
        "a call that says nothing is known by its noise with checks",
        "release.facts.facts_of",
        "list(plan.known_by or plan.noises)",
        "list(plan.noises)",
        STORED,
    ),
    bug(
        "checks",
        "a stored answer returned where its ledger asks for other checks",
        "release.facts._checks",
        "usual if checked else None",
        "None",
        OTHER,
    ),
    bug(
        "checks",
        "a pickle of a ledger without its checks",
        "Ledger.__reduce__",
        ", self._checks)",
        ")",
        "test_durable.py::test_a_pickle_carries_the_address_and_no_budget",
    ),
    bug(
        "checks",
        "what tells nothing is measured all the same",
        "PlannedChecks.tell_nothing",
        "return self.asked.by_default and size is not None",
        "return False and size is not None",
        NOTHING,
    ),
    bug(
        "checks",
        "plans together decide at the cost of their previews",
        "together._asked",
        "plan.checks or plan.unseen for name",
        "plan.checks for name",
        TOGETHER,
    ),
    bug(
        "checks",
        "subtotals cut by the norm of groups alone",
        "_rules",
        "if p != 1 and query.subtotals is not None:",
        "if p == 3 and query.subtotals is not None:",
        LISTED,
    ),
    bug(
        "checks",
        "rows of all groups of a unit are one group's",
        "CheckTask._by_group",
        "return sums or any(",
        "return sums and any(",
        PLAIN,
    ),
    bug(
        "checks",
        "values of rows in no cell are compared with bounds",
        "add_beyond",
        "below += inside & (value < lower)",
        "below += value < lower",
        ONE_READ,
    ),
    bug(
        "checks",
        "whole numbers beyond the bounds are counted as those on them",
        "row_totals._counted",
        "math.floor(bounds[0]) - 1, math.ceil(bounds[1]) + 1",
        "math.floor(bounds[0]), math.ceil(bounds[1])",
        "engines/test_block_totals.py::test_whole_numbers_that_are_counted_tell_which_lie_beyond_their_bounds",
    ),
    bug(
        "checks",
        "rows in no cell are left out before they are counted",
        "RowFlags.place_outside",
        "if self.checks.outside and",
        "if not self.checks.outside and",
        ONE_READ,
        PLAIN,
    ),
    bug(
        "checks",
        "rows in no cell weigh too",
        "unit_blocks._add_part",
        "if places.max(initial=0) > cells:",
        "if places.max(initial=0) > cells + 1:",
        ONE_READ,
    ),
    bug(
        "checks",
        "squares of rows are held against the rows",
        "RowFlags._cut",
        "** np.uint64(2)",
        "** np.uint64(1)",
        ONE_READ,
    ),
    bug(
        "checks",
        "the number of units is told where it is no denominator",
        "Checks.counts_units",
        "return self.outside or bool(self.rules)",
        "return True",
        LISTED,
    ),
    bug(
        "checks",
        "the last bounds of a column checked for all of them",
        "PlannedChecks.rows",
        "for indicator, count in counted:",
        "for indicator, count in counts.items():",
        "test_checks.py::test_bounds_of_one_column_that_differ_are_told_apart",
    ),
    bug(
        "checks",
        "checks looked for under the names of a changed frame",
        "statements._clipped",
        'whole = facts if shown is None else facts["whole"]',
        "whole = facts",
        "test_checks.py::test_what_bounds_made_wrong_is_said_of_changed_frames",
    ),
    bug(
        "checks",
        "an epsilon that is named as enough and leaves no room for the noise of a count",
        "statements._enough",
        "2.0 * row",
        "row",
        "release/test_checks.py::test_the_epsilon_that_is_named_where_noise_is_too_large_is_enough",
    ),
    bug(
        "checks",
        "Gaussian noise that is said to fall as epsilon grows",
        "statements._enough",
        "if 0.0 < delta < 1.0:",
        "if False:",
        "release/test_checks.py::test_the_epsilon_that_is_named_has_so_much_less_noise_also_where_it_is_gaussian",
    ),
)
