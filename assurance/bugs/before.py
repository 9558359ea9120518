"""Seeded bugs of the room "before"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

CHARGED = "test_before_the_charge.py"
WORDS = "test_words.py"
BEFORE = (
    bug(
        "before the charge",
        "a call that is not tried before it is charged",
        "rehearse",
        "        _rehearse_totals(plan)\n",
        "        pass\n",
        f"{CHARGED}::test_97_an_engine_that_fails_on_no_rows_is_refused_with_its_words",
    ),
    bug(
        "before the charge",
        "a denoiser that is not tried before the charge",
        "rehearse",
        "    _rehearse_denoisers(plan)\n    return labels",
        "    return labels",
        f"{CHARGED}::test_97_a_denoiser_that_cannot_work_is_refused_before_the_charge",
    ),
    bug(
        "before the charge",
        "a call that is tried on the rows themselves",
        "_rehearse_totals",
        "totals(emptied(plan.frame, columns), plan.query, plan.unit, norm)",
        "totals(plan.frame, plan.query, plan.unit, norm)",
        f"{CHARGED}::test_97_the_rehearsal_runs_no_code_of_a_lazy_frame",
        f"{CHARGED}::test_97_an_engine_that_fails_on_no_rows_is_refused_with_its_words",
    ),
    bug(
        "before the charge",
        "levels of a Categorical, which come from rows, in the try on no rows",
        "emptied",
        "            if isinstance(column.dtype, pandas.CategoricalDtype):",
        "            if False:",
        f"{CHARGED}::test_97_the_rehearsal_sees_neither_rows_nor_levels",
    ),
    bug(
        "before the charge",
        "cells that are made before they are counted",
        "axes_or_later",
        "return make() if size <= MOST_CELLS else (Later(size, make),)",
        "return make()",
        f"{CHARGED}::test_114_more_are_made_once_they_are_meant",
    ),
    bug(
        "before the charge",
        "a plan whose pickle holds the rows",
        "Plan.__getstate__",
        '{**self.__dict__, "request": None}',
        "{**self.__dict__}",
        f"{CHARGED}::test_107_no_copy_of_a_plan_carries_rows",
    ),
    bug(
        "before the charge",
        "a refusal with the caller's frame in its traceback",
        "cleaned",
        "    return error.with_traceback(None)",
        "    return error",
        f"{CHARGED}::test_73_a_refusal_shows_no_rows_in_the_locals_of_its_traceback",
    ),
    bug(
        "before the charge",
        "a label that no report can print",
        "checked_name",
        "    if (fault := words.fault_of_name(value, longest)) is not None:",
        "    if False and (fault := words.fault_of_name(value, longest)) is not None:",
        f"{WORDS}::test_110_new_names_that_break_reports_are_refused_before_the_charge",
    ),
    bug(
        "before the charge",
        "names of older ledgers that command the screen",
        "_is_hidden",
        "    return unicodedata.category(letter) in HIDDEN and letter not in JOINERS",
        "    return False",
        f"{WORDS}::test_110_what_older_ledgers_hold_is_shown_harmlessly",
    ),
    bug(
        "before the charge",
        "formulas in an exported table",
        "no_formula",
        """    return f"'{text}" if text.startswith(FORMULA_STARTS) else text""",
        "    return text",
        f"{WORDS}::test_110_the_command_line_shows_older_ledgers_harmlessly",
    ),
    bug(
        "before the charge",
        "a name that ends the script of a chart",
        "no_markup",
        'TAG.sub("\\u2039", harmless(text))',
        "harmless(text)",
        f"{WORDS}::test_110_charts_and_tables_hold_no_markup",
    ),
)
