"""Bugs in tables, rounded results and pages."""

from __future__ import annotations

from assurance.bugs.seeding import Mutant, bug

PAGES = "test_spending.py::test_a_page_says_what_was_spent"
ROUNDED = "test_rounding.py::test_every_interval_holds_what_it_held"
TABLES = "test_result_tables.py"

REPORTS: tuple[Mutant, ...] = (
    bug(
        "reports",
        "errors that leave out what rounding moved",
        "rounding.rounded",
        "errors + moves.max(initial=0.0)",
        "errors",
        ROUNDED,
    ),
    bug(
        "reports",
        "errors rounded to the nearest step",
        "rounding.rounded",
        "decimals, np.ceil))",
        "decimals, np.rint))",
        ROUNDED,
    ),
    bug(
        "reports",
        "lower ends of intervals rounded up",
        "rounding.rounded",
        "np.floor if down else np.ceil",
        "np.ceil",
        ROUNDED,
    ),
    bug(
        "reports",
        "a rounded release that stands for any stored answer",
        "as_released",
        '    return facts | {"sha256": before["sha256"], "rows": rows}',
        '    return facts | {"sha256": "0" * 64, "rows": rows}',
        "test_rounding_release.py::test_a_ledger_knows_the_release",
    ),
    bug(
        "reports",
        "a name that ends the script of a page",
        "report_page.data",
        """    return written.replace("<", "\\\\u003c").replace(">", "\\\\u003e").replace("&", "\\\\u0026")""",
        "    return written",
        PAGES,
    ),
    bug(
        "reports",
        "a label as markup of a page",
        "report_page.text",
        "    return html.escape(harmless(words))",
        "    return words",
        PAGES,
    ),
    bug(
        "reports",
        "a key that a spreadsheet runs",
        "table_formats._cell",
        "        return no_formula(harmless(value))",
        "        return harmless(value)",
        f"{TABLES}::test_110_a_spreadsheet_computes_nothing",
    ),
    bug(
        "reports",
        "results without a record charged as private rows",
        "_refuse_results",
        "    if is_result or asked & {*values}:",
        "    if asked & {*values}:",
        "test_marks.py::test_results_without_their_record_are_no_private_rows",
    ),
    bug(
        "reports",
        "a chart that is drawn in a child forked after another",
        "still.drawn",
        "_drawn_in not in (None, os.getpid())",
        "False",
        "test_forked.py::test_174_a_chart_is_refused_in_a_worker_forked_after_another_was_drawn",
    ),
)
