"""Seeded bugs of the room "stated"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

STATED = (
    bug(
        "stated",
        "a mean's interval capped at half the range",
        "Mean.answer",
        "        farther = np.maximum(values - lower, upper - values)\n",
        "        farther = np.full(values.shape, (upper - lower) / 2)\n",
        "test_intervals.py::test_111_the_mean_that_was_found",
    ),
    bug(
        "stated",
        "intervals that are 2% too narrow",
        "Statistic.answer",
        "only.noise.interval(CONFIDENCE)",
        "0.98 * only.noise.interval(CONFIDENCE)",
        "test_intervals.py::test_intervals_that_are_a_little_too_narrow_are_seen",
        "test_intervals.py::test_the_interval_of_a_count_is_that_of_the_law",
    ),
    bug(
        "stated",
        "an estimated error that may be 0",
        "Candidate.rmse",
        "max(max(self.risk, 0.0) + MARGIN * self.margin, variance) / size",
        "max(self.risk + MARGIN * self.margin, 0.0) / size",
        "test_errors_of_results.py::test_112_no_error_is_estimated_as_nothing",
        "test_errors_of_results.py::test_112_risk_below_zero_is_cut_before_its_margin",
    ),
    bug(
        "stated",
        "denoised where nothing was",
        "denoised_words",
        'if not statistic["denoise"] or all(_does(step) == NOTHING for step in statistic["denoise"]):',
        'if not statistic["denoise"]:',
        "test_errors_of_results.py::test_112_nothing_is_said_to_be_denoised_where_nothing_was",
    ),
    bug(
        "stated",
        "the smallest epsilon, whatever the weights",
        "Plan._smallest",
        "        if len(self.columns) == 1:\n            return",
        "        if True:\n            return",
        "test_plan_words.py::test_113_the_smallest_epsilon_is_so_for_its_weights",
    ),
    bug(
        "stated",
        "a column that no release covers in a file",
        "_check_columns",
        '    if other:\n        raise InvalidArgument(\n            f"the frame must hold released columns alone',
        '    if False:\n        raise InvalidArgument(\n            f"the frame must hold released columns alone',
        "test_covered_columns.py::test_108_a_column_that_no_release_covers_is_refused",
    ),
    bug(
        "stated",
        "an index of names in a file",
        "_arrow",
        "from_pandas(plain, preserve_index=False)",
        "from_pandas(plain)",
        "test_covered_columns.py::test_108_neither_an_index_nor_other_attributes_are_written",
    ),
    bug(
        "stated",
        "numbers of sorted rows in the wrong cells",
        "ReleasedFrame.to_numpy",
        "build.numbers(self._frame, name)[places].reshape",
        "build.numbers(self._frame, name).reshape",
        "test_covered_columns.py::test_the_order_of_rows_is_no_change",
    ),
    bug(
        "stated",
        "labels that no hash covers",
        "print_of",
        "        _add(digest, label.kind.encode(), label.different, label.ranks[places]",
        "        _add(digest, label.kind.encode(), label.ranks[places]",
        "test_covered_columns.py::test_109_a_changed_label_is_refused",
    ),
    bug(
        "stated",
        "a foreign record that is used as it is",
        "parsed",
        "    problem = problem_of(record)\n    if problem:",
        "    problem = problem_of(record)\n    if False:",
        "test_foreign_files.py::test_118_broken_records_are_refused_by_one_error",
    ),
    bug(
        "stated",
        "a description of any size",
        "_check_footer",
        "    if size > LARGEST:",
        "    if False:",
        "test_foreign_files.py::test_118_sizes_are_bounded_before_anything_is_read",
    ),
)
