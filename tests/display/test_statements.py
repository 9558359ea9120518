"""Statements: what was published, how it is protected and how accurate it is, in sentences."""

from __future__ import annotations

import json
import math
import re
import warnings

import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe import noise
from dpframe.display import subjects
from dpframe.errors import capital
from dpframe.testing import seeded

PEOPLE = pl.DataFrame({"age": [31, 45, 62] * 300, "id": range(900), "ward": ["a", "b", "c"] * 300})


def test_a_statement_says_what_how_protected_and_how_accurate():
    ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("id", max_rows=1))
    count = PEOPLE.dp.count(epsilon=0.5, denoise=None, ledger=ledger, label="Patients in 2026")
    words = count.dp.statement()
    assert words.startswith("Patients in 2026: number of rows. The numbers were computed exactly")
    assert "no outcome is more than 1.65 times as likely as if one id were not in the data (" in words
    assert "epsilon 0.5). All rows of one id are protected together." in words
    assert "to mask any one patient." in count.dp.statement(unit="patient")
    with pytest.raises(dpf.InvalidType, match="unit must be text, not 3"):
        count.dp.statement(unit=3)
    assert f"The margin of error (95%) of count is {count['count_error'][0]:.4g}" in words
    assert "rows without an id are left out." in words


def test_delta_and_replaced_rows_are_in_the_promise():
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, unit=dpf.PrivacyUnit(neighbors="replace"), accounting="basic")
    words = PEOPLE.dp.count(epsilon=0.5, delta=1e-6, ledger=ledger).dp.statement()
    assert "as if one row had another value, plus a probability of 1e-06 (differential privacy" in words


def test_errors_that_differ_by_row_are_a_range():
    means = PEOPLE.dp.group_by("ward", keys=["a", "b", "z"]).mean(
        "age", bounds=(0, 100), epsilon=1, ledger=dpf.Ledger(epsilon=1)
    )
    least, most = sorted(means["age_mean_error"])[0], sorted(means["age_mean_error"])[-1]
    assert least < most
    assert "depending on the row." in means.dp.statement()


def test_one_rank_is_singular():
    people = pl.DataFrame({"age": list(range(100))})
    asked = {"bounds": (0, 120), "mechanism": "exponential", "epsilon": 5, "ledger": dpf.Ledger(epsilon=5)}
    median = people.dp.median("age", **asked)
    assert median.dp.provenance["statistics"][0]["ranks"] == 1.0
    assert "is within 1 rank of the exact answer" in median.dp.statement()


def test_an_answer_that_was_chosen_had_nothing_added_to_it():
    middle = PEOPLE.dp.median("age", bounds=(0, 100), epsilon=1, mechanism="exponential", ledger=dpf.Ledger(epsilon=1))
    words = middle.dp.statement()
    assert "chosen at random among declared values" in words
    assert "was added" not in words


def test_pairs_of_columns_are_named_as_such():
    frame = PEOPLE.with_columns(old=pl.col("age") * 2)
    bounds = {"age": (0, 100), "old": (0, 200)}
    pairs = frame.dp.covariance(["age", "old"], bounds=bounds, epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert pairs.dp.statement().startswith("Result: covariance of pairs of columns. ")
    grouped = frame.dp.group_by("ward", keys=["a"]).covariance(
        ["age", "old"], bounds=bounds, epsilon=1, ledger=dpf.Ledger(epsilon=1)
    )
    assert grouped.dp.statement().startswith("Result: covariance of pairs of columns by ward. ")


def test_a_statement_and_a_table_say_which_statistic_has_which_name():
    wards = PEOPLE.dp.group_by("ward", keys=["a", "b"])
    asked = {"n": dpf.count(), "med": dpf.median("age", bounds=(0, 100))}
    with dpf.Ledger(epsilon=9):
        one, labeled = wards.agg(**asked, epsilon=1), wards.agg(**asked, epsilon=1, label="Ages")
    subject = "number of rows as n and median of age as med by ward"
    assert one.dp.statement().startswith(f"Result: {subject}. ")
    assert labeled.dp.statement().startswith(f"Ages: {subject}. ")
    assert f"{subject}; differentially private" in labeled.dp.table("markdown")
    renamed = labeled.dp.select("ward", "n").dp.relabel(columns={"n": "People"})
    assert renamed.dp.statement().startswith("Ages: number of rows as People by ward. ")


def test_what_wide_made_of_a_statistic_keeps_its_words():
    keys = {"ward": ["a", "b"], "age": [31, 45]}
    with dpf.Ledger(epsilon=9):
        long = PEOPLE.dp.group_by("ward", "age", keys=keys).mean("id", bounds=(0, 900), epsilon=1)
    wide = long.dp.wide("age")
    assert wide.dp.statement().startswith("Result: mean of id by ward and age. ")
    assert "**Mean of id by ward and age**" in wide.dp.table("markdown")
    assert wide.dp.relabel(columns={"31": "young"}).dp.statement().startswith("Result: mean of id by ward and age. ")
    pytest.importorskip("altair")
    chart = seen(wide.dp.plot())
    assert chart["title"]["text"] == "Mean of id by ward and age"
    assert '"title": "mean of id, 45"' in json.dumps(chart)


def test_counts_of_the_most_common_say_that_others_were_left_out():
    ledger = dpf.Ledger(epsilon=9)
    asked = {"counts": True, "epsilon": 1, "categories": list("abcd"), "ledger": ledger}
    found = PEOPLE.dp.top_k("ward", k=2, **asked)
    of = "number of rows by ward, of the 2 most common of 4 categories"
    margin = f"The margin of error (95%, of all categories at once) of count is {found['count_error'][0]:g}."
    for result in (found, found.dp.head(1), found.dp.sort("ward")):
        words = result.dp.statement()
        assert words.startswith(f"Result: {of}. ")
        assert margin in words
        assert f"{of}; differentially private" in result.dp.table("markdown")
        assert "margin of error (noise), of all categories at once\n" in result.dp.table("markdown")
    first, every = (PEOPLE.dp.top_k("ward", k=k, **asked).dp.statement() for k in (1, 4))
    assert first.startswith("Result: number of rows by ward, of the most common of 4 categories. ")
    assert every.startswith("Result: number of rows by ward. ")
    pytest.importorskip("altair")
    chart = seen(found.dp.plot())
    assert chart["title"]["text"] == capital(of)
    assert chart["title"]["subtitle"].endswith("margin of error (noise), of all categories at once")


def test_a_statement_of_a_stream_names_the_period():
    facts = {"label": "Visits", "period": {"name": "2026-W03"}, "cells": [], "unit": {"column": None}}
    facts |= {"measures": {"count": {"verb": "count", "column": None}}}
    assert subjects.sentence(facts) == "Visits, 2026-W03: number of rows."
    assert subjects.sentence({**facts, "label": None}) == "Result, 2026-W03: number of rows."


def test_a_statement_of_the_local_model_names_what_each_person_gave():
    method = dpf.local.RandomizedResponse(["a", "b", "c"], epsilon=1)
    words = method.estimate(method.randomize(PEOPLE["ward"])).dp.statement()
    assert "randomized before anybody collected it" in words
    assert "no outcome is more than 2.72 times as likely as if one row had another value" in words


def test_a_changed_number_has_no_statement():
    ages = PEOPLE.dp.histogram("age", bins=[0, 50, 100], epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
    changed = ages.clone()
    changed[0, "count_noisy"] = 10_000.0
    with pytest.raises(dpf.DpframeError):
        changed.dp.statement()


def test_numbers_below_their_errors_are_told():
    frame = pl.DataFrame({"ward": ["A"] * 500 + ["B"]})
    with dpf.Ledger(epsilon=9), noise.insecure_bits(4):
        wards = frame.dp.group_by("ward", keys=["A", "B", "C"]).count(epsilon=0.2)
        none = frame.filter(pl.col("ward") == "D").dp.count(epsilon=0.2)
    assert "In count, B and C are too small to distinguish from noise." in wards.dp.statement()
    assert " count is too small to distinguish from noise." in none.dp.statement()
    assert (
        "All numbers of count are too small to distinguish from noise."
        in wards.dp.filter({"ward": ["B", "C"]}).dp.statement()
    )


def test_numbers_whose_intervals_leave_out_0_are_distinguished_from_noise():
    """The interval excludes 0 even if its longer half is larger than the number itself."""
    frame = pl.DataFrame(
        {"cost": [float(row % 100) for row in range(300)], "days": [(row % 20) / 10 for row in range(300)]}
    )
    bounds = {"cost": (0, 100), "days": (0, 10)}
    with dpf.Ledger(epsilon=1), noise.insecure_bits(0):
        ratio = frame.dp.agg(r=dpf.ratio("cost", "days", bounds=bounds), epsilon=0.4, checks=False)
    assert 0 < ratio["r_low"].item() < ratio["r"].item() < ratio["r_error"].item()
    assert "distinguish" not in ratio.dp.statement()


@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
def test_no_quantile_is_called_small_because_its_interval_ends_at_0(mechanism):
    with dpf.Ledger(epsilon=1), noise.insecure_bits(0):
        median = PEOPLE[:30].dp.median("age", bounds=(0, 100), mechanism=mechanism, epsilon=0.2, checks=False)
    assert median.dp.errors(cells=True)["age_median_low"].item() == 0.0
    assert "distinguish" not in median.dp.statement()


def test_rows_that_are_too_noisy_to_tell_are_not_called_small():
    frame = pl.DataFrame({"g": ["A"] * 500 + ["B"], "x": [0] * 500 + [1]})
    with dpf.Ledger(epsilon=9), noise.insecure_bits(0):
        shares = frame.dp.group_by("g", keys=["A", "B"]).proportion("x", epsilon=0.2, checks=False)
    words = shares.dp.statement()
    assert "The noise is too large to tell x_proportion in 1 of 2 rows." in words
    assert "In x_proportion, A is too small to distinguish from noise." in words
    assert "distinguish" not in shares.dp.filter({"g": ["B"]}).dp.statement()


def test_cells_of_noise_are_named_by_all_their_columns_where_they_are_few():
    frame = pl.DataFrame({"ward": ["A"] * 500, "day": ["Mon"] * 250 + ["Tue"] * 250})
    keys = {"ward": ["A", "B"], "day": ["Mon", "Tue"]}
    with dpf.Ledger(epsilon=9), noise.insecure_bits(4):
        table = frame.dp.group_by(["ward", "day"], keys=keys).count(epsilon=0.9, cube=True, denoise=None)
        many = frame.dp.group_by("ward", keys=["A", *map(str, range(7))]).count(epsilon=0.9, denoise=None)
        alike = frame[:100].dp.group_by("ward", keys=[*"ABCDEFGHIJ"]).count(epsilon=0.05)
    assert (alike["count"] != alike["count_noisy"]).all()
    assert re.search(r"In count \(unbiased\), [^.]* too small to distinguish from noise\.", alike.dp.statement())
    without = (
        frame[:100]
        .dp.group_by("ward", keys=[*"ABCDEFGHIJ"])
        .count(epsilon=0.05, keep_noisy=False, ledger=dpf.Ledger(epsilon=1))
    )
    assert "distinguish" not in without.dp.statement(), "nobody can tell where their intervals lie"
    assert "In count, (B, Mon), (B, Tue) and (B, all) are too" in table.dp.statement()
    assert "In count, 7 of 8 numbers are too small to distinguish from noise." in many.dp.statement()


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (0.01, "no outcome is more than 1.02 times as likely"),  # e^0.01 is 1.01005
        (math.log(3.0), "no outcome is more than 3 times as likely"),
        (10.0, "no outcome is more than 2.21e+04 times as likely"),  # 22,026.5
        (1 / 3, "(differential privacy, epsilon 0.3334)"),
        (0.1, "(differential privacy, epsilon 0.1)"),
    ],
)
def test_what_is_promised_is_rounded_up(epsilon, said):
    frame = pl.DataFrame({"x": [1.0] * 30})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)
        released = frame.dp.count(epsilon=epsilon, ledger=dpf.Ledger(epsilon=20.0))
    assert said in released.dp.statement()


def test_a_single_number_that_the_noise_hides_is_no_row_of_some():
    """The sign of the divisor is hidden, so the quotient may be any number; the wording depends on the rows."""
    hidden = {"x": dpf.ratio("age", "id", bounds={"age": (-1, 1), "id": (-1, 1)})}
    sums = {"a": dpf.sum("age", bounds=(-1, 1)), "b": dpf.sum("id", bounds=(-1, 1))}
    wards = PEOPLE.dp.group_by("ward", keys=["a", "b"])
    with seeded(0), dpf.Ledger(epsilon=1):  # seeded: in one of twenty draws, the sign of a divisor shows
        one, each = (dp.agg(**hidden, epsilon=1e-6) for dp in (PEOPLE.dp, wards))
        added = [dp.agg(**sums, denoise=None, epsilon=1e-6) for dp in (PEOPLE.dp, wards)]
    assert "The noise hides x entirely." in one.dp.statement()
    assert "For some rows the noise hides x entirely." in each.dp.statement()
    alone, several = (dpf.combine("r.a / r.b", {"r": result}).dp.statement() for result in added)
    assert "For value the noise leaves nothing to be said." in alone
    assert "For 2 of 2 rows of value the noise leaves nothing to be said." in several


def test_noise_that_is_seldom_other_than_0_is_no_margin_of_error_of_0():
    found = pl.DataFrame({"x": [1, 2]}).dp.count(epsilon=5, ledger=dpf.Ledger(epsilon=9))
    assert found["count_error"].to_list() == [0.0]
    words = found.dp.statement()
    assert "The noise of count is 0 with a chance of 95% or more, and whole steps otherwise." in words
    assert "margin of error (95%) of count is 0" not in words


def test_margins_of_error_are_of_unbiased_values_where_adjusting_moved_them(tmp_path):
    """The margin of a noisy value does not hold for an adjusted one, least of all in a group unlike the others."""
    frame = pl.DataFrame({"g": [str(group) for group in range(9) for _ in range(100)] + ["9"] * 160})
    grouped = frame.dp.group_by("g", keys=[str(group) for group in range(10)])
    pages = []
    for denoise in ("auto", None):
        with seeded(1):
            found = grouped.count(epsilon=0.1, denoise=denoise, ledger=dpf.Ledger(epsilon=1))
        found.dp.write_html(tmp_path / "page.html", charts=False)
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
        of = "the unbiased values of count" if denoise else "count"
        assert f"The margin of error (95%) of {of} is 30." in found.dp.statement()
    for page in pages:  # no margins: noise selects the least and the largest number, so theirs would hold too seldom
        assert re.search(r"From \d+ \(\d\) to \d+ \(\d\)\.", page)
    for denoise, words in ((None, r"rows: [\d,]+ ± 30\."), (halved, r"rows: [\d,.]+\.")):
        found = frame.dp.count(epsilon=0.1, denoise=denoise, ledger=dpf.Ledger(epsilon=1))
        found.dp.write_html(tmp_path / "page.html", charts=False)
        assert re.search(words, (tmp_path / "page.html").read_text(encoding="utf-8"), re.IGNORECASE)


def halved(values, noise):
    """Halve each value, as a denoiser of the caller."""
    return values / 2


@pytest.mark.parametrize("name", ["nonnegative", "isotonic", "james_stein", "none", "none, non-negative"])
def test_a_function_of_the_callers_is_not_known_by_the_name_of_one_of_dpframes(name):
    """dpframe's own denoisers move no value away from the truth; a caller's function with the same name may."""

    def moved(values, noise):
        return values * 0 + 500

    moved.__name__ = name
    frame = pl.DataFrame({"g": ["A", "B"] * 50})
    asked = {"epsilon": 1, "ledger": dpf.Ledger(epsilon=9)}
    grouped = frame.dp.group_by("g", keys=["A", "B"])
    found = grouped.count(denoise=moved, keep_noisy=False, **asked)
    assert "without intervals" in found.dp.statement().lower()
    assert found.dp.provenance["measures"]["count"]["denoise"] == [{"name": f"{name} (your own)"}]
    later = grouped.count(denoise=["auto", moved], **asked)
    assert later.dp.errors()["denoised_rmse"].is_null().all()


def test_a_mean_of_all_rows_says_that_missing_values_count():
    frame = pl.DataFrame({"x": [1.0, None] * 50})
    found = frame.dp.mean("x", bounds=(0, 20), missing="midpoint", epsilon=1, ledger=dpf.Ledger(epsilon=1))
    assert "mean of x (missing values as the middle of the bounds)." in found.dp.statement()


def test_bounds_have_all_their_digits(tmp_path):
    """With six digits, 1,234,567 read as 1.23457e+06, above which the values that were clipped need not lie."""
    frame = pl.DataFrame({"x": [2e6, 1e3] * 500})
    asked = {"epsilon": 9.0, "ledger": dpf.Ledger(epsilon=99)}
    found = frame.dp.mean("x", bounds=(0, 1_234_567), checks=0.5, **asked)
    found.dp.write_html(tmp_path / "page.html", charts=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (found.dp.statement(), found.dp.table("csv"), page):
        assert "values of x are above 1,234,567, clipped" in text
    assert "those above 1,234,567 as 1,234,567" in page
    low = frame.dp.median("x", bounds=(0, 999.9375), step=0.0625, checks=False, **asked)
    assert "<= 0 or >= 999.9375" in low.dp.table("csv")
    pytest.importorskip("altair")
    plain = frame.dp.mean("x", bounds=(0, 2_500_000), checks=False, **asked)
    assert "Values of x are clipped to [0, 2,500,000]." in seen(plain.dp.plot())["captions"]


def test_a_page_writes_an_open_margin_as_everywhere_else(tmp_path):
    """The divisor of a ratio of three rows may be 0, so its margin is infinite."""
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 1.0, 1.0]})
    bounds = {"x": (0, 9), "y": (0, 9)}
    with seeded(1), dpf.Ledger(epsilon=9):
        found = frame.dp.agg(r=dpf.ratio("x", "y", bounds=bounds), epsilon=0.01, checks=False)
    assert math.isinf(found["r_error"].item())
    found.dp.write_html(tmp_path / "page.html", charts=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    errors = page[page.index("Errors: the largest of all rows") :]
    assert '<td class="n">∞</td>' in errors
    assert ">inf<" not in page
