"""Seeded bugs of streams, in several rooms."""

from __future__ import annotations

from assurance.bugs.seeding import bug

REACH = "test_stream_reach.py"
STEPS = "test_stream_steps.py"
ASKED = "test_streams.py"
FILES = "test_stream_files.py"

STREAMS = (
    bug(
        "streams",
        "noise for one period",
        "StreamReach.of",
        "column_square=design.column_square",
        "column_square=design.column_square // design.size",
        f"{REACH}::test_the_stated_sensitivity_is_reached",
    ),
    bug(
        "streams",
        "pure noise for one period",
        "StreamReach.of",
        "column_sum=design.column_sum",
        "column_sum=2**12",
        f"{REACH}::test_the_stated_sensitivity_is_reached",
    ),
    bug(
        "streams",
        "replace as add-remove",
        "StreamReach.of",
        'unit.neighbors == "replace", isinstance',
        "False, isinstance",
        f"{ASKED}::test_replace_costs_sqrt_2_and_max_groups_nothing",
    ),
    bug(
        "streams",
        "max_rows in each period",
        "first_rows._earliest",
        "owner = code[order]",
        "owner = (code * 2**20 + periods)[order]",
        f"{ASKED}::test_of_a_person_the_earliest_rows_count",
    ),
    bug(
        "streams",
        "the latest rows of a unit",
        "first_rows._earliest",
        "_shuffled(cell, added), periods, code",
        "_shuffled(cell, added), -periods, code",
        f"{REACH}::test_a_row_that_comes_late_pushes_out_a_later_one",
    ),
    bug(
        "streams",
        "rows of one period by the order of the frame",
        "first_rows._earliest",
        "np.lexsort((added, cell, _shuffled(cell, added), periods, code))",
        "np.lexsort((periods, code))",
        f"{ASKED}::test_no_order_of_rows_matters",
        f"{REACH}::test_no_neighbor_moves_a_stream_by_more_than_is_stated",
    ),
    bug(
        "streams",
        "a lost period drawn again",
        "stream_path.intended",
        "stream.drawn == period - 1",
        "period not in stream.kept",
        f"{STEPS}::test_a_killed_period_is_drawn_later_or_returned_or_lost",
    ),
    bug(
        "streams",
        "no intent before the noise",
        "stream_path.intended",
        '(_free(entry, "intent", period), None) if mine else None',
        "None",
        f"{STEPS}::test_a_killed_period_is_drawn_later_or_returned_or_lost",
    ),
    bug(
        "streams",
        "values that come too late",
        "stream_path.keep",
        "if stream.is_closed or stream.drawn != period or not stream.is_open:",
        "if False:",
        f"{STEPS}::test_whoever_was_passed_by_shows_nothing",
    ),
    bug(
        "streams",
        "a stream beyond the limit",
        "stream_path.begun",
        "        allowed(last, plus(last.total, entry.amount))\n",
        "",
        f"{STEPS}::test_a_stream_that_costs_too_much_is_refused",
    ),
    bug(
        "streams",
        "other parameters under an old name",
        "stream_path._refuse_other",
        "    if differ := differing(entry, earlier):",
        '    if differ := "":',
        f"{STEPS}::test_other_parameters_are_refused",
    ),
    bug(
        "streams",
        "a recovered ledger goes on",
        "entries.stream_of",
        "is_closed=last_recovery > number",
        "is_closed=False",
        f"{STEPS}::test_a_recovered_ledger_draws_no_other_period",
    ),
    bug(
        "streams",
        "rows of a lost period counted for longer",
        "stream_plan.exact_sums",
        "np.asarray(kept)[np.searchsorted(kept, np.arange(1, now + 1))]",
        "np.arange(1, now + 1)",
        "test_stream_design.py::test_lost_periods_count_with_the_next_one",
    ),
    bug(
        "streams",
        "a sum rounded by parts",
        "stream_plan.exact_sums",
        "weights @ (totals >> BITS) + ((weights @ (totals & MASK)) >> BITS)",
        "weights @ (totals >> BITS)",
        "test_stream_design.py::test_sums_are_exact_integers_rounded_down",
    ),
    bug(
        "streams",
        "a process that ends before its period is stored",
        "unbroken._wait_for_all",
        "    for work in list(_running):",
        "    for work in list[_Work[Any]]():",
        f"{STEPS}::test_a_process_that_ctrl_c_ends_twice_over_stores_its_period",
    ),
    bug(
        "streams",
        "a lock given up after the intent",
        "stream_path._draw",
        "    to_the_end()\n",
        "",
        f"{STEPS}::test_ctrl_c_while_the_lock_is_waited_for_loses_no_period",
    ),
    bug(
        "streams",
        "a stream named without its cost",
        "stream_path.identity_of",
        '"price": _price(plan.price)',
        '"price": None',
        f"{FILES}::test_the_facts_that_name_a_stream_are_frozen",
    ),
    bug(
        "streams",
        "a record in the words of another version",
        "stream_path.facts_said",
        "if not earlier:",
        "if earlier or not earlier:",
        f"{FILES}::test_a_stored_stream_goes_on",
    ),
)
