"""Seeded bugs of the room "jobs"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

JOBS = (
    bug(
        "jobs",
        "releases that fit one by one, and not together",
        "Ledger.foresee",
        "            total = after\n",
        "",
        "jobs/test_jobs.py::test_a_job_that_does_not_fit_as_a_whole_is_not_begun",
        "jobs/test_jobs.py::test_the_foreseen_rest_is_the_rest",
    ),
    bug(
        "jobs",
        "a preview that makes the ledger",
        "planning_jobs._ledger",
        "there = charge or is_there(job.ledger.place)",
        "there = True",
        "jobs/test_jobs.py::test_a_preview_reads_no_row_and_makes_no_file",
    ),
    bug(
        "jobs",
        "releases without their snapshot, charged at each run",
        "arguments.question_of",
        'arguments |= {"label": label, "snapshot": snapshot}',
        'arguments |= {"label": label}',
        "jobs/test_jobs.py::test_a_job_that_is_run_again_costs_nothing_and_says_the_same",
        "jobs/test_job_file.py::test_a_file_is_read_as_it_is_written",
    ),
    bug(
        "jobs",
        "secrets of the environment in errors and in the trail",
        "Variables.hidden",
        "        secrets = {value: name for name, value in self.used.items() if name not in self.said}\n",
        "        return words\n",
        "jobs/test_job_file.py::test_the_environment_fills_in_what_is_not_said_and_is_hidden",
        "jobs/test_job_commands.py::test_no_secret_is_printed_or_kept",
    ),
    bug(
        "jobs",
        "the engine's own words on a table that it cannot open",
        "planning_jobs.opened",
        "({type(error).__name__}; its message is withheld, ",
        "({type(error).__name__}: {error}; ",
        "jobs/test_jobs.py::test_a_table_of_a_database",
    ),
    bug(
        "jobs",
        "the words of any error in the trail",
        "Trail._words",
        "known = isinstance(error, (DpframeError, ImportError))",
        "known = True",
        "jobs/test_jobs.py::test_the_trail_holds_no_words_of_others",
    ),
    bug(
        "jobs",
        "fields of a text file that can fail",
        "_read_by_polars",
        "return clear.cast(OF_POLARS[kind], strict=False)",
        "return text.cast(OF_POLARS[kind], strict=True)",
        "jobs/test_jobs.py::test_the_same_job_on_other_engines_by_one_changed_line",
    ),
    bug(
        "jobs",
        "a unit that the ledger of a job does not know",
        "planning_jobs._ledger",
        "unit=job.ledger.unit, ",
        "",
        "jobs/test_jobs.py::test_the_ledger_of_a_job_protects_its_unit",
    ),
    bug(
        "jobs",
        "ids of a text file whose bytes were replaced by one sign",
        "scans._read_by_polars",
        '(text != "") & ~text.str.contains(REPLACED, literal=True)',
        'text != ""',
        "jobs/test_jobs.py::test_names_that_are_no_utf8_are_not_taken_for_one_person",
    ),
    bug(
        "jobs",
        "ids of a text file read as floats",
        "job_file._check_unit",
        '== "number"',
        '== "numbers"',
        "jobs/test_job_file.py::test_ids_are_not_read_as_floats",
    ),
)
