"""Seeded bugs of readers who knew the package and none of its tests: what they found in it, and what no test saw."""

from __future__ import annotations

from assurance.bugs.seeding import bug

READINGS = (
    bug(
        "accounting",
        "keys that are found take no delta from theorems of composition",
        "_of_equal",
        "left, lost = _left(noises, delta), Fraction(first.infinite)",
        "left, lost = delta, Fraction(0)",
        "test_compositions.py::test_keys_that_are_found_take_their_delta_from_every_accounting",
    ),
    bug(
        "accounting",
        "a reserve for keys under which epsilons seem to add up",
        "KeysReserve.adds",
        "return self.inside.adds",
        'return ""',
        "test_keys_delta.py::test_a_ledger_with_a_reserve_says_how_losses_add_up",
    ),
    bug(
        "accounting",
        "answers that divide the whole beside checks",
        "price.parts_of",
        "if sum(shares) + taken > 1:",
        "if sum(shares) > 1:",
        "test_found_keys.py::test_210_checks_take_a_part_of_the_whole_too",
    ),
    bug(
        "ledger",
        "a stored median for a call that did not say where values lie",
        "facts._quantile",
        '"said": statistic.said_usual',
        '"said": False',
        "test_replay.py::test_a_word_of_the_caller_that_an_interval_rests_on_is_a_fact",
    ),
    bug(
        "statistics",
        "no row of a unit in the ranks where one bound is left out",
        "QuantileAnswers.protecting",
        "unit.column is not None and unit.is_bounded",
        "unit.column is not None and unit.max_rows is not None",
        "test_quantile_by_group.py::test_a_bound_that_is_left_out_is_one_row_in_intervals_too",
    ),
    bug(
        "identity",
        "a file that is read once for each hard link to it",
        "scans._one_of",
        "if known.st_nlink > 1 else",
        "if False else",
        "test_jobs.py::test_a_hard_link_to_a_file_is_another_name_of_it",
    ),
    bug(
        "identity",
        "Numba that tells whether rows are many",
        "check_quiet",
        "(*TALKS, *(name for name in os.environ if name.startswith(NUMBA_TALKS)))",
        "TALKS",
        "test_preparing.py::test_the_engine_must_be_quiet_each_time",
    ),
    bug(
        "reports",
        "a number that is rounded to minus zero",
        "_to_steps",
        "made, values) + 0.0",
        "made, values)",
        "test_rounding.py::test_no_number_is_rounded_to_minus_zero",
    ),
)
