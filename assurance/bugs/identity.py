"""Seeded bugs of the room "identity"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

IDENTITY = (
    bug(
        "identity",
        "units in seconds read as milliseconds, which clip",
        "load",
        'values.view(f"{values.dtype.kind}8[ms]") if is_name else _milliseconds(values)',
        "_milliseconds(values)",
        "test_identity.py::test_102_no_two_stored_times_are_one_unit",
    ),
    bug(
        "identity",
        "times of Arrow as Polars reads them",
        "arrow_storage",
        "    if not types.is_temporal(plain):\n        return array",
        "    if True:\n        return array",
        "test_identity.py::test_102_no_two_stored_times_are_one_unit",
    ),
    bug(
        "identity",
        "long doubles as floats",
        "identity_of_numpy",
        'Identity("float", bits=bits) if bits in (16, 32, 64) else None  # a long double has no exact column',
        'Identity("float", bits=64)',
        "test_identity.py::test_102_dtypes_without_a_proof_are_refused_before_the_charge",
    ),
    bug(
        "identity",
        "seconds of another library's frame",
        "_comes_over_exactly",
        "return theirs.time_unit == ours.time_unit",
        "return True",
        "test_identity.py::test_102_seconds_of_an_arrow_table_are_refused",
    ),
    bug(
        "identity",
        "keys that the dtype does not tell apart",
        "schema._checked_keys",
        "if (again := twice(known)) is not None:",
        "if (again := twice(known)) is not None and not known:",
        "test_identity.py::test_99_keys_that_the_dtype_does_not_tell_apart_are_refused",
    ),
    bug(
        "identity",
        "a repeated hour as Python compares it",
        "KeyAxis.__post_init__",
        "            tokens = tuple(map(same_key, row))\n",
        "            tokens = row\n",
        "test_identity.py::test_99_both_hours_of_a_repeated_one_are_two_keys",
    ),
    bug(
        "identity",
        "a value next to the keys counted as one of them",
        "_looked_up",
        "return table.take(filled(values, first).to_numpy() - first,",
        "return table[1:-1].take(filled(values, first).to_numpy() - first - 1,",
        "test_identity.py::test_100_101_each_row_has_one_position_however_many_rows_there_are",
    ),
    bug(
        "identity",
        "objects by their own equality",
        "_unit_codes",
        "return seen.setdefault(same(value), len(seen))",
        "return seen.setdefault(value, len(seen))",
        "test_identity.py::test_102_an_object_cannot_pass_for_another_unit_or_key",
    ),
    bug(
        "identity",
        "bytes beside text",
        "_TOKENS",
        '(bytes, lambda value: ("bytes", bytes.decode(value, "latin-1"))),',
        "(bytes, bytes),",
        "test_identity.py::test_105_106_nothing_is_written_of_the_rows",
    ),
    bug(
        "identity",
        "an engine that talks",
        "check_quiet",
        "if value.lower() not in SILENT:",
        "if False:",
        "test_identity.py::test_105_an_engine_that_talks_is_refused_before_the_charge",
    ),
    bug(
        "identity",
        "a replayed choice of another place",
        "content_of",
        '"chosen": places, **more, "provenance"',
        '"chosen": 0, **more, "provenance"',
        "test_identity.py::test_a_replayed_choice_is_the_one_that_was_released",
    ),
    bug(
        "identity",
        "texts hashed as floats",
        "_bytes_of",
        'if values.dtype.kind == "f":\n',
        'if values.dtype.kind in "fO":\n',
        "test_identity.py::test_a_changed_choice_is_altered",
    ),
)
