"""Bugs in tables, rounded results and pages."""

from __future__ import annotations

from assurance.bugs.seeding import Mutant, bug

PAGES = "test_spending.py::test_a_page_says_what_was_spent"
ROUNDED = "test_rounding.py::test_every_interval_holds_what_it_held"
TABLES = "test_result_tables.py"
PICTURES = "test_honest_pictures.py"
VIEW = "test_one_view.py"
LETTERS = "test_reports.py"

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
    bug(
        "reports",
        "an interval without an end drawn as a bare point",
        "Panel.open_of",
        'low = cell["low"] is None or cell["low"] < least',
        "low = False",
        f"{PICTURES}::test_an_interval_without_an_end_is_hatched_from_edge_to_edge",
    ),
    bug(
        "reports",
        "panels of one quantity with scales of their own",
        "result_charts._comparable",
        "if len(numbers) > 1:",
        "if False:",
        f"{PICTURES}::test_panels_of_one_quantity_share_one_scale",
    ),
    bug(
        "reports",
        "an error of 0 dropped from a logarithmic chart",
        "charts.errors_by_price",
        '"error": below if error == 0 else error if math.isfinite(error) else None,',
        '"error": error or None,',
        "test_charts.py::test_errors_of_zero_are_shown_at_the_edge_of_logarithmic_charts",
    ),
    bug(
        "reports",
        "a chart of the smallest groups",
        "result_charts._largest",
        "key=lambda label: -sizes[label]",
        "key=lambda label: sizes[label]",
        f"{PICTURES}::test_of_many_groups_the_largest_are_drawn_and_the_rest_is_counted",
    ),
    bug(
        "reports",
        "totals that stretch the colors of a table",
        "drawing.with_margins",
        'for cell in panel.cells if not cell["margin"]]',
        "for cell in panel.cells]",
        f"{PICTURES}::test_a_cube_is_the_table_that_it_is_with_margins",
    ),
    bug(
        "reports",
        "a chart saved as a page whose scripts are fetched",
        "still._save",
        'options = {"inline": True, **options}',
        "options = {**options}",
        f"{PICTURES}::test_a_chart_saved_as_a_page_fetches_nothing",
    ),
    bug(
        "reports",
        "one call more than fits",
        "statement.times",
        "return min(least, MOST_TIMES)",
        "return min(most, MOST_TIMES)",
        f"{VIEW}::test_what_fits_is_what_is_taken",
    ),
    bug(
        "reports",
        "noise that stretches the colors of a map",
        "drawing._reach",
        'told = [cell["value"] for cell in panel.cells if "noisy" not in cell]',
        'told = [cell["value"] for cell in panel.cells]',
        f"{PICTURES}::test_a_tile_that_tells_nothing_is_crossed_out_and_stretches_no_colors",
    ),
    bug(
        "reports",
        "a point that tells nothing as one that does",
        "result_charts.interval",
        'noisy = {"noisy": True} if made.noisy[0] else {}',
        "noisy: dict[str, bool] = {}",
        f"{PICTURES}::test_a_point_that_tells_nothing_is_hollow",
    ),
    bug(
        "reports",
        "own words of a report as markup",
        "report_page._spans",
        'return "".join([*made, text(words[last:])])',
        'return "".join([*made, words[last:]])',
        f"{LETTERS}::test_own_words_are_text_whatever_they_hold",
    ),
    bug(
        "reports",
        "own words in place of the words that a release is not private",
        "spending._warned",
        'return report_page.paragraph(warning, "warning") if warning else ""',
        'return ""',
        f"{LETTERS}::test_a_release_that_is_not_private_says_so_above_own_words",
    ),
    bug(
        "reports",
        "an appendix that stands first",
        "report.page",
        """{body}
{_appendix(sections, budget)}
""",
        """{_appendix(sections, budget)}
{body}
""",
        f"{LETTERS}::test_what_was_found_stands_first_and_how_it_was_made_last",
    ),
    bug(
        "reports",
        "words of a job's report that are checked after the charge",
        "running._check_report",
        "if name not in known[part]:",
        "if False:",
        f"{LETTERS}::test_a_report_that_cannot_be_written_is_refused_before_the_charge",
    ),
    bug(
        "reports",
        "a picture with the colors of a light page alone",
        "report_page.picture",
        "for side in (0, 1)]",
        "for side in (0, 0)]",
        "test_pages_in_a_browser.py::test_a_report_as_people_see_it",
    ),
    bug(
        "reports",
        "a spent part of a budget rounded down",
        "statement._tenths",
        "math.ceil(1000 * part - SLACK)",
        "math.floor(1000 * part)",
        f"{VIEW}::test_what_is_spent_and_what_remains_add_up",
    ),
)
