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
    bug(
        "keys",
        "weights of keys that were kept for another norm",
        "contributions.key_weights",
        "return tuple(unit_steps(np.arange(1, most_keys + 1), most_groups, p).tolist())",
        "made = tuple(unit_steps(np.arange(1, most_keys + 1), most_groups, p).tolist())\n"
        '    return vars(key_weights).setdefault(f"{most_keys} {most_groups}", made)',
        "test_key_lines.py::test_weights_of_keys_are_those_of_the_norm_that_is_asked_for",
    ),
    bug(
        "engines",
        "an error of Polars after the last batch taken for the end of the rows",
        "collected_batches",
        "        work.result()\n",
        "        failed = work.exception()\n"
        "        if not isinstance(failed, pl.exceptions.PolarsError):\n"
        "            work.result()\n",
        "test_batches.py::test_209_an_expression_that_fails_on_the_last_row_has_no_answer",
    ),
    bug(
        "results",
        "a sort by numbers that is one by keys, as a key decides ties",
        "sorted_by",
        "ranks, missing = found.ranks.astype(np.float64), found.missing",
        "ranks, missing, by_numbers = found.ranks.astype(np.float64), found.missing, False",
        "test_changed_frame.py::test_a_key_that_decides_ties_leaves_a_sort_by_numbers_what_it_is",
    ),
    bug(
        "ledger",
        "a quiet check that looks at no release",
        "cli.commands.verify",
        "    receipt = ledger.verify(*(release for _, release in named))\n    if quiet:",
        "    receipt = ledger.verify(*(release for _, release in named if not quiet))\n    if quiet:",
        "test_cli.py::test_a_release_that_the_ledger_never_charged_is_exit_code_1",
    ),
    bug(
        "ledger",
        "epsilons that are subtracted under every accounting",
        "cli.commands.check",
        "    remaining = ledger.remaining\n",
        "    remaining = PrivacyLoss(ledger.limit.epsilon - ledger.spent.epsilon, ledger.limit.delta)\n",
        "test_cli.py::test_check_knows_what_a_ledger_would_grant_where_epsilons_do_not_add_up",
    ),
    bug(
        "jobs",
        "an audit trail with a byte that is no UTF-8 taken for an empty one",
        "Trail._lines",
        'content.split(b"\\n")',
        '(content if content.decode("utf-8", "ignore").encode() == content else b"").split(b"\\n")',
        "test_jobs.py::test_153_a_ledger_that_was_put_back_is_held_against_the_audit_trail",
    ),
    bug(
        "accounting",
        "weights that are lost where calls are planned anew",
        "joint_plan",
        '"limit": limit, "weights": weights}',
        '"limit": limit}',
        "test_together.py::test_weights_stand_where_checks_that_would_tell_nothing_are_left_out",
    ),
)
