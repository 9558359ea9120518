"""Seeded bugs of bins, dates and subtotals."""

from __future__ import annotations

from assurance.bugs.seeding import bug

DATES, CUBE, REFUSED = "test_dates.py", "test_cube.py", "test_refusals.py"
WORDS = f"{REFUSED}::test_refused_in_words_before_a_row_is_read_or_charged"
GRIDS = (
    bug(
        "grids",
        "the Monday after the last week counted in it",
        "half_open_edges",
        "        if axis.closed:\n            ticks[-1]",
        "        if True:\n            ticks[-1]",
        f"{DATES}::test_a_histogram_of_weeks_has_whole_weeks",
        f"{DATES}::test_datetimes_of_every_unit_to_the_last_tick",
    ),
    bug(
        "grids",
        "weeks that begin on Sunday",
        "date_grid.number_of",
        "(day.toordinal() - 1 + BEFORE_MONDAY[starts]) // EVERY[every]",
        "(day.toordinal() + BEFORE_MONDAY[starts]) // EVERY[every]",
        f"{DATES}::test_every_day_is_in_the_step_that_polars_truncates_it_to",
    ),
    bug(
        "grids",
        "days of instants counted as if they had no time zone",
        "_checked_bins",
        '    if axis.kind == "date" and column.aware:',
        "    if False:",
        WORDS,
    ),
    bug(
        "grids",
        "intervals that hold their right edge taken for ones that hold their left",
        "bins.edges_of",
        'if any(interval.closed != "left" for interval in each):',
        "if False:",
        WORDS,
    ),
    bug(
        "units",
        "the weights of single cells for the margins of a cube",
        "Task._totals",
        "merged = self.query.subtotals is not None",
        'merged = self.query.subtotals == "rollup"',
        f"{CUBE}::test_a_unit_in_many_cells_stays_within_the_bound",
    ),
    bug(
        "units",
        "the same where Polars brings them together",
        "Task._weighed",
        "merged = self.query.subtotals is not None",
        'merged = self.query.subtotals == "rollup"',
        "test_block_units.py::test_units_of_few_rows",
    ),
    bug(
        "units",
        "the same where units are brought together in parts",
        "Task.weigh",
        "merged = self.query.subtotals is not None",
        'merged = self.query.subtotals == "rollup"',
        f"{CUBE}::test_rows_that_were_brought_together_weigh_the_same",
    ),
    bug(
        "sensitivity",
        "subtotals of a statistic from outside that measures units, with the reach of single cells",
        "query._check_subtotals",
        "if not all(isinstance(total, OfRows) for total in query.of_cells):",
        "if False:",
        f"{CUBE}::test_statistics_from_outside_have_subtotals_of_rows_alone",
    ),
    bug(
        "sensitivity",
        "margins of a cube with the reach of single cells",
        "sensitivity.reaches",
        "None if total.by is None else sizes[total.by]",
        'None if total.by is None or query.subtotals == "cube" else sizes[total.by]',
        f"{CUBE}::test_no_neighbor_is_farther_than_the_sensitivity",
        f"{CUBE}::test_a_unit_nearly_attains_the_bound_in_either_margin",
    ),
    bug(
        "grids",
        "rows of a cube made before they are counted",
        "plans.make_plan",
        '    if checked.subtotals == "cube":',
        "    if False:",
        WORDS,
    ),
)
