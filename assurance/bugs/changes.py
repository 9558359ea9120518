"""Seeded bugs of changed results: numbers, labels and errors that no longer match, and records that are lost."""

from __future__ import annotations

from assurance.bugs.seeding import bug

CHANGED = "accessor/test_changed_frame.py"
PRINTS = "frames/test_prints.py"

CHANGES = (
    bug(
        "changes",
        "translated keys on other rows",
        "frames.changes._texts",
        "return [new[rank] for rank in ranks.tolist()]",
        "return [new[rank] for rank in np.sort(ranks).tolist()]",
        f"{CHANGED}::test_translated_keys",
    ),
    bug(
        "changes",
        "numbers of a wide table on other rows than their keys",
        "frames.changes.widened",
        "build.numbers(frame, old)[grid[:, number]]",
        "build.numbers(frame, old)[np.sort(grid[:, number])[::-1]]",
        f"{CHANGED}::test_a_wide_table",
    ),
    bug(
        "changes",
        "expected errors in the order of the release after a sort",
        "frames.changes.Release.of_rows",
        "self.cells[:, places]",
        "self.cells[:, np.sort(places)]",
        f"{CHANGED}::test_a_sorted_result",
    ),
    bug(
        "changes",
        "expected errors of other columns in a wide table",
        "frames.changes.widened",
        "measures[new] = [of, at * len(words) + number]",
        "measures[new] = [of, at * len(words)]",
        f"{CHANGED}::test_errors_of_a_wide_table",
    ),
    bug(
        "changes",
        "left-out rows without a word",
        "frames.changes._notes",
        "if shown_rows == view.released:",
        "if shown_rows <= view.released:",
        f"{CHANGED}::test_some_rows",
    ),
    bug(
        "changes",
        "only the last change in the record",
        "frames.changes.Release.made",
        'said["steps"] = [*said["steps"], dict(step)]',
        'said["steps"] = [dict(step)]',
        f"{CHANGED}::test_steps_are_kept",
    ),
    bug(
        "changes",
        "two keys under one label",
        "frames.changes._texts",
        "if new.count(text) > 1",
        "if new.count(text) > len(new)",
        f"{CHANGED}::test_refused_words",
    ),
    bug(
        "changes",
        "changed numbers called as stored",
        "ledger.chain._vouched",
        'CHANGED if "shown" in record else ROUNDED if',
        "ROUNDED if",
        f"{CHANGED}::test_some_rows",
    ),
    bug(
        "changes",
        "totals alone called altered in the other library",
        "frames.prints.ranked_of",
        'label.kind if label.different or by_types else "missing"',
        "label.kind",
        f"{PRINTS}::test_columns_without_a_label_are_the_same_in_both_libraries",
    ),
    bug(
        "changes",
        "totals alone of records of before called altered",
        "frames.prints.places_of",
        "for by_types in (False, True))",
        "for by_types in (False,))",
        f"{PRINTS}::test_records_of_before_know_columns_without_a_label",
    ),
    bug(
        "changes",
        "many late times that wrap in the hash of their rows",
        "frames.prints._ticks",
        "LARGEST // size",
        "LARGEST",
        f"{PRINTS}::test_many_labels_have_the_bytes_of_few",
    ),
    bug(
        "changes",
        "floats that agree in 15 digits taken for one key",
        "columns.texts_of",
        "exact = len({*map(text_of, keys)}) < len(keys)",
        "exact = False",
        f"{CHANGED}::test_floats_that_agree_in_15_digits_are_two_keys",
    ),
)
