"""Seeded bugs of the room "audits": what an audit overlooks."""

from __future__ import annotations

from assurance.bugs.seeding import bug, bugs

AUDITS = (
    bugs(
        "audits",
        "an answer that cannot be read taken for one that failed",
        (
            ("audit.observe", "answer = release()", 'seen["answer"] = reader.text_of(release())'),
            ("audit.observe", 'seen["answer"] = reader.text_of(answer)', 'seen.setdefault("answer", answer)'),
        ),
        "test_audit.py::test_an_answer_that_cannot_be_read_is_no_outcome",
    ),
    bug(
        "audits",
        "an object taken for the text that it prints",
        "Reader.text_of",
        "if is_missing(value) or isinstance(value, WORDS):",
        "if True:",
        "test_audit.py::test_an_answer_that_cannot_be_looked_at_is_refused",
    ),
    bug(
        "audits",
        "numbers of a column of objects taken one by one",
        "Reader._of_cells",
        "if array.ndim == 1 and all(",
        "if False and all(",
        "test_audit.py::test_a_column_of_objects_is_divided_among_outcomes",
    ),
    bug(
        "audits",
        "noisy numbers of a record that nobody looks at",
        "Reader._of_frame",
        "self.arrays.extend(noisy_facts(records))",
        "pass",
        "test_audit.py::test_noisy_numbers_of_the_record_are_looked_at",
    ),
    bug(
        "audits",
        "a warning that noise elsewhere hides",
        "audit._with_parts",
        "    parts.add(",
        "    path or parts.add(",
        "test_audit.py::test_a_warning_is_not_hidden_by_numbers_of_the_record",
    ),
    bug(
        "audits",
        "an event counted on the samples that taught it",
        "audit.strongest",
        "((0, 4), (2, 4), (1, 2))",
        "((0, 2), (0, 2), (0, 2))",
        "test_audit.py::test_texts_that_are_never_seen_again_prove_nothing",
    ),
)
