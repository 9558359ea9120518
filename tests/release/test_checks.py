"""Checks: noisy measurements of what the bounds of a call leave out, made in the same call.

Chance of a false alarm: each draw is seeded, or its noise is so small (epsilon 10,000) that an indicator is off by a
half or more with a probability below e^-100.
"""

from __future__ import annotations

import math
import re
import warnings
from datetime import date
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe.display.statements import check_lines, check_warning, warned_lines
from dpframe.jobs import job_file
from dpframe.jobs.running import planned
from dpframe.noise import insecure_bits
from dpframe.planning.check_pricing import shares_between
from dpframe.privacy import PrivacyUnit
from dpframe.release.facts import facts_of

INCOMES = [5_000.0] * 700 + [90_000.0] * 300
SURE = {"epsilon": 10_000.0}  # checks= is left at its default
UNCOVERED = "and its margin of error does not cover that. Widen bounds=, or ask for suggest_bounds"
BOTH_UNCOVERED = "and their margins of error do not cover that. Widen bounds=, or ask for suggest_bounds"


def incomes(copies=1):
    return pl.DataFrame({"income": INCOMES * copies, "who": list(range(1_000)) * copies})


@pytest.mark.parametrize("checks", [0.2, "auto"])
@pytest.mark.parametrize("delta", [{}, {"delta": 1e-6}])
@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_the_whole_call_costs_what_was_offered(accounting, delta, checks):
    """The noise of the answers grows by the share of checks: by default 5.3% (pure noise) or 2.6% (Gaussian)."""
    if accounting != "basic" and not delta:
        pytest.skip("needs a delta")
    limits = {"epsilon": 2, **delta} if accounting != "basic" else {"epsilon": 2}
    if accounting == "basic" and delta:
        limits |= delta
    ledger = dpf.Ledger(**limits, accounting=accounting)
    offered = {"epsilon": 0.5} | (delta if accounting == "basic" else {})
    with pytest.warns(dpf.BoundsWarning):
        incomes(40).dp.mean("income", bounds=(0, 20_000), checks=checks, ledger=ledger, **offered)
    other = dpf.Ledger(**limits, accounting=accounting)
    incomes(20).dp.mean("income", bounds=(0, 20_000), checks=False, ledger=other, **offered)
    assert ledger.spent.epsilon == pytest.approx(other.spent.epsilon, rel=1e-6)
    ask = incomes().dp.preview.mean
    plain = ask("income", bounds=(0, 20_000), checks=False, ledger=ledger, **offered)
    plan = ask("income", bounds=(0, 20_000), checks=checks, ledger=ledger, **offered)
    grown = plan.parts[0].mechanism.scale / plain.parts[0].mechanism.scale
    pure, rest = plan.checks.mechanism.name == "discrete Laplace", 0.8 if checks == 0.2 else 0.95
    assert grown == pytest.approx(1 / rest if pure else 1 / math.sqrt(rest), rel=1e-2 if checks == 0.2 else 1e-3)


def test_every_noise_that_is_drawn_is_charged():
    from dpframe.accounting.by_curves import GaussianDP

    plan = incomes().dp.preview.mean("income", bounds=(0, 2), checks=0.2, epsilon=0.5, ledger=dpf.Ledger(1, 1e-6))
    noises = [*plan.noises, plan.checks.mechanism]
    assert isinstance(plan.accounting, GaussianDP)
    assert plan.amount[0] >= sum(noise.mu_squared for noise in noises)
    assert plan.checks.mechanism.sensitivity == pytest.approx(math.sqrt(plan.checks.checks.moved))


def test_187_an_accounting_of_a_plan_counts_its_checks():
    for ledger in (dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1, delta=1e-6)):
        plan = incomes().dp.preview.sum("income", bounds=(0, 2), checks=0.2, epsilon=1, ledger=ledger)
        found = {row.accounting: row.epsilon for row in dpf.compare_accounting(plan, delta=1e-6).rows}
        named = ("gdp", "pld") if ledger.limit.delta else ("basic",)
        whole = {name: 1.0 for name in named if found[name] is not None}  # pld needs dp-accounting
        assert whole
        assert whole == pytest.approx({name: found[name] for name in whole}, rel=3e-3)
        assert all(found[name] >= 1.0 - 1e-9 for name in whole)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto", "callable"])
def test_any_noise_of_the_answers_goes_with_checks(mechanism):
    ledger = dpf.Ledger(epsilon=1, delta=0.1, accounting="basic")
    offered = {"epsilon": 1} | ({} if mechanism == "laplace" else {"delta": 0.1})
    how = cubic if mechanism == "callable" else mechanism
    plan = incomes().dp.preview.sum("income", bounds=(0, 20_000), mechanism=how, checks=True, ledger=ledger, **offered)
    assert plan.checks is not None
    drawn = [*plan.noises, plan.checks.mechanism]
    if mechanism == "laplace":
        assert sum(noise.pure_epsilon for noise in drawn) <= 1 + 1e-12
    elif mechanism == "gaussian":
        from dpframe.mechanisms import gaussian_curve

        assert math.sqrt(sum(noise.mu_squared for noise in drawn)) <= gaussian_curve.largest_mu(1.0, 0.1) * (1 + 1e-9)
    elif mechanism == "callable":  # planned by basic composition, then one factor reduces the noise of both
        from dpframe.accounting.comparison import composed_epsilon

        pytest.importorskip("dp_accounting")
        assert composed_epsilon(tuple(drawn), 0.1) <= 1 + 1e-6


def test_checks_beside_noise_of_the_callers_keep_their_part_of_epsilon_and_delta():
    """The cost of such a call is a sum of pairs; a part of mu^2 would cost more than its share of the pair."""
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting="basic")
    asked = {"mechanism": cubic, "checks": 0.2, "epsilon": 1, "delta": 1e-6}
    answer, checks = incomes().dp.preview.sum("income", bounds=(0, 20_000), ledger=ledger, **asked).drawn
    assert answer.delta(0.8) <= 0.8e-6
    assert checks.delta(0.2) <= 0.2e-6


def test_noise_of_the_callers_for_several_numbers_leaves_the_checks_their_part():
    """All of it is divided by one factor, so that answers and checks together cost what was offered."""
    from dpframe.mechanisms import gaussian_curve

    def calibration(sensitivity, loss):
        asked = {"epsilon": loss.epsilon, "delta": loss.delta, "grid": sensitivity.grid}
        return dpf.Gaussian.calibrate(sensitivity=sensitivity.norm(2), **asked)

    asked = {"mechanism": calibration, "checks": 0.2, "epsilon": 1, "delta": 1e-6}
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting="basic")
    plan = incomes().dp.preview.mean("income", bounds=(0, 20_000), ledger=ledger, **asked)
    assert len(plan.drawn) == 3
    most, whole = gaussian_curve.largest_mu(1.0, 1e-6), math.sqrt(sum(noise.mu_squared for noise in plan.drawn))
    assert most * (1 - 1e-6) < whole <= most * (1 + 1e-9)


def test_shares_are_covered():
    """At least 94.5% of intervals from 20,000 seeded draws must hold the true share; the promise is 95%."""
    plan = incomes().dp.preview.mean("income", bounds=(0, 20_000), epsilon=1)
    with insecure_bits(7):
        for made in (
            dpf.Laplace.calibrate(sensitivity=3, epsilon=0.05),
            dpf.Gaussian.calibrate(sensitivity=math.sqrt(3), epsilon=0.05, delta=1e-6),
        ):
            for truth, whole in ((0, 1_000), (30, 1_000), (600, 1_000), (9_000, 10_000), (40, 200)):
                drawn = made.add_noise(np.full(40_000, 0, dtype=np.int64)).reshape(2, -1)
                low, high = shares_between(truth + drawn[0], (whole + drawn[1]).astype(float), made)
                held = np.mean((low <= truth / whole) & (truth / whole <= high))
                assert held >= 0.945, (made.name, truth, whole, held)
    rows = plan.checks.rows(np.array([10, 20, 100]))
    assert [(row["what"], row["share"]) for row in rows] == [("below", 0.1), ("above", 0.2), ("present", None)]


FAILURES = {  # the call, its unit and bounds, two texts of its check line, and the same call in a job
    "a clipped mean": (
        lambda dp, **o: dp.mean("income", bounds=(0, 20_000), **o),
        {},
        "income are above 20,000",
        "this lowers income_mean",
        'verb = "mean"\ncolumn = "income"\nbounds = [0, 20000]',
    ),
    "a clipped total of each person": (
        lambda dp, **o: dp.sum("income", unit_bounds=(0, 20_000), **o),
        {"unit": "who", "max_groups": 1},
        "income have a sum above 20,000",
        "this lowers income_sum",
        'verb = "sum"\ncolumn = "income"\nunit_bounds = [0, 20000]\nmax_groups = 1',
    ),
    "a count of too few rows": (
        lambda dp, **o: dp.count(**o),
        {"unit": "who", "max_rows": 2},
        "more than 2 rows",
        "counts and sums are too low",
        'verb = "count"\nmax_rows = 2',
    ),
    "a top-k with counts": (
        lambda dp, **o: dp.top_k("band", categories=["low", "high"], k=1, counts=True, **o),
        {"unit": "who", "max_rows": 2},
        "more than 2 rows in all",
        "too low",
        'verb = "top_k"\ncolumn = "band"\ncategories = ["low", "high"]\nk = 1\ncounts = true\nmax_rows = 2',
    ),
    "a median": (
        lambda dp, **o: dp.quantile("income", q=0.9, bounds=(0, 20_000), **o),
        {},
        "income are above 20,000",
        "lies beyond the bounds",
        'verb = "quantile"\ncolumn = "income"\nq = 0.9\nbounds = [0, 20000]',
    ),
}
JOB = """engine = "polars"
snapshot = "1"

[source]
path = "incomes.parquet"

[ledger]
path = "a.ledger"
epsilon = 30000
%s

[[release]]
label = "wrong"
epsilon = 10000
%s
"""
ENDINGS = ("html", "md", "json", "parquet", "csv")


def incomes_by_band():
    band = pl.when(pl.col("income") > 20_000).then(pl.lit("high")).otherwise(pl.lit("low"))
    return incomes(6).with_columns(band=band)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_an_answer_that_bounds_made_wrong_says_so_everywhere(failure, library, tmp_path):
    if library == "pandas":
        pytest.importorskip("pandas")
    call, who, of, wrong, _ = FAILURES[failure]
    frame = incomes_by_band() if library == "polars" else incomes_by_band().to_pandas()
    ledger = dpf.Ledger(epsilon=30_000, path=tmp_path / "a.ledger", unit=who.get("unit"))
    with pytest.warns(dpf.BoundsWarning, match=wrong) as caught:
        result = call(frame.dp, **who, **SURE, ledger=ledger)
    assert caught[0].filename == __file__
    (line,) = [line for line in check_lines(result.dp.provenance) if wrong in line]
    assert of in line
    assert line[0].isdigit()
    rows = result.dp.checks()
    assert list(rows.columns) == ["of", "what", "share", "share_low", "share_high", "count", "count_error"]
    assert type(rows) is type(result)
    assert [row["what"] for row in result.dp.provenance["checks"]] == list(rows["what"])
    path = tmp_path / "page.html"
    result.dp.write_html(path, charts=False)
    assert of in path.read_text(encoding="utf-8").replace("&#x27;", "'")
    assert line in result.dp.statement()
    assert line in result.dp.table("markdown").replace("\\", "")
    result.dp.write_parquet(tmp_path / "page.parquet")
    again = dpf.read_parquet(tmp_path / "page.parquet", like=library)
    assert again.dp.provenance["checks"] == result.dp.provenance["checks"]
    assert ledger.verify(result)["releases"][0]["record"] == "as charged"
    pytest.importorskip("altair")
    assert line in " ".join(in_pictures(result.dp.plot().to_dict()))


def in_pictures(spec):
    """Yield each text of a chart, with its lines joined."""
    if isinstance(spec, list) and all(isinstance(line, str) for line in spec):
        yield " ".join(spec)
    elif isinstance(spec, (dict, list)):
        for part in spec.values() if isinstance(spec, dict) else spec:
            yield from in_pictures(part)
    elif isinstance(spec, str):
        yield spec


@pytest.mark.parametrize("failure", FAILURES)
def test_a_job_says_what_its_bounds_made_wrong(failure, tmp_path, capsys):
    """The run prints the warning, and so does each file that can hold text; a CSV file has only numbers."""
    pytest.importorskip("typer")
    from dpframe.cli.main import main

    _, who, of, wrong, words = FAILURES[failure]
    incomes_by_band().write_parquet(tmp_path / "incomes.parquet")
    unit = f'unit = "{who["unit"]}"' if who else "each_row = true"
    files = [f'[[output]]\nrelease = "wrong"\npath = "wrong.{ending}"' for ending in ENDINGS]
    job = tmp_path / "job.toml"
    job.write_text("\n\n".join([JOB % (unit, words), *files]) + "\n", encoding="utf-8")
    assert main(["ledger", "create", str(job)]) == 0
    for _ in range(2):  # first computed, then replayed from the ledger
        assert main(["run", str(job)]) == 0
        (said,) = [
            line for line in capsys.readouterr().err.splitlines() if line.startswith("wrong: ") and wrong in line
        ]
        assert of in said
    for ending in ENDINGS[:3]:
        text = (tmp_path / f"wrong.{ending}").read_text(encoding="utf-8")
        assert of in text.replace("\\", "") or (ending == "json" and '"above"' in text)
    record = dpf.read_parquet(tmp_path / "wrong.parquet").dp.provenance
    assert any(wrong in line for line in check_lines(record))
    for changed, share in (("checks = false", None), ("checks = 0.5", 0.5)):
        said = job.read_text(encoding="utf-8").replace('snapshot = "1"', 'snapshot = "2"')
        (other := tmp_path / "other.toml").write_text(changed + "\n" + said, encoding="utf-8")
        (plan,) = planned(job_file.read(other, []), charge=False).plans.values()
        assert (plan.checks and float(plan.checks.share)) == share


def test_little_that_is_clipped_is_said_and_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)
        result = incomes().dp.mean("income", bounds=(0, 100_000), **SURE, ledger=dpf.Ledger(10_000))
    lines = check_lines(result.dp.provenance)
    assert [line.startswith("fewer than 1% of values of income are") for line in lines] == [True, True]
    assert check_warning(result.dp.provenance) is None


def said_above(share, epsilon, delta, rows=5_000, **more):
    """Return the check line on values above the bounds, for data in which a given share of values is above them."""
    frame = pl.DataFrame({"x": np.where(np.arange(rows) < share * rows, 200.0, 50.0)})
    ledger = dpf.Ledger(epsilon=10_000, **({"delta": 1e-3} if delta else {}))
    result = frame.dp.mean("x", bounds=(0, 100), epsilon=epsilon, checks=True, ledger=ledger, **delta, **more)
    return next(line for line in check_lines(result.dp.provenance) if "above" in line)


@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize("delta", [{}, {"delta": 1e-6}])
def test_the_epsilon_that_is_named_where_noise_is_too_large_is_enough(delta, share):
    """It suffices for shares of 0% and 2% in at least 95% of releases: 13 of 40 fail with a probability below 2e-7."""
    with warnings.catch_warnings(), insecure_bits(1):
        warnings.simplefilter("ignore", dpf.BoundsWarning)
        first = said_above(share, 0.2, delta)
        named = re.search(r"too noisy to tell; if it is 0% or over 2%, an epsilon of ([\d.]+) is enough", first)
        assert named, first
        again = [said_above(share, float(named[1]), delta) for _ in range(40)]
    assert sum(" to tell" in line for line in again) < 13


def test_the_epsilon_that_is_named_has_so_much_less_noise_also_where_it_is_gaussian():
    """The noise takes whole values, so the limit allows one step more."""
    frame, ledger = pl.DataFrame({"x": [50.0] * 5_000}), dpf.Ledger(epsilon=100, delta=1e-3)
    ask = partial(frame.dp.mean, "x", bounds=(0, 100), delta=1e-6, checks=True, ledger=ledger)
    with insecure_bits(1):
        first = ask(epsilon=0.2).dp.provenance
        named = re.search(r"above 100.*over 2%, an epsilon of ([\d.]+) is", " ".join(check_lines(first)))
        again = ask(epsilon=float(named[1])).dp.provenance
    (present,) = [row for row in first["checks"] if row["what"] == "present"]
    assert 2 * again["checks"][0]["count_error"] <= 0.01 * (present["count"] - present["count_error"]) + 1


def test_no_epsilon_is_named_for_a_share_of_about_the_limit_or_of_hardly_any_rows():
    with insecure_bits(1):
        assert said_above(0.01, 10.0, {}).endswith(": too close to 1% to tell")
        assert said_above(0.0, 0.01, {}).endswith(": too noisy to tell; a larger epsilon is needed")


@pytest.mark.parametrize("delta", [{}, {"delta": 1e-6}])
def test_no_epsilon_is_named_that_protects_weakly(delta):
    """A ledger warns above epsilon 10: nobody should be told that more is enough."""
    with insecure_bits(1):
        line = said_above(0.0, 1.0, delta, rows=300)
    words = ": too noisy to tell; only an epsilon above 10, which protects weakly, would surely be enough"
    assert line.endswith(words)


def test_the_direction_of_the_error_is_told_as_far_as_it_is_known():
    """Each line states the effect of values beyond one bound, whatever the values beyond the other bound do."""
    frame = pl.DataFrame({"x": [-50.0] * 400 + [50.0] * 400 + [5.0] * 400, "one": [1.0] * 1_200})
    ratio = dpf.ratio("x", "one", bounds={"x": (0, 100), "one": (0, 2)})
    both, low = {"m": dpf.mean("x", bounds=(0, 10))}, {"s": dpf.sum("x", bounds=(0, 100))}
    for statistics, said in (
        (both, ["x are below 0, clipped: this raises m, and its", "x are above 10, clipped: this lowers m, and its"]),
        (low, ["x are below 0, clipped: this raises s, and its"]),
        ({"v": dpf.std("x", bounds=(0, 100))}, ["x are below 0, clipped: this lowers v, and its"]),
        ({"r": ratio}, ["x are below 0, clipped: this moves r in an unknown direction, and its"]),
        (
            {**low, "v": dpf.std("x", bounds=(0, 100)), "t": dpf.mean("x", bounds=(0, 100))},
            ["x are below 0, clipped: this raises s and t and lowers v, and their"],
        ),
        (
            {"a": dpf.mean("x", bounds=(-60, 10)), "b": dpf.mean("x", bounds=(0, 100))},
            ["x are above 10, clipped: this lowers a, and its", "x are below 0, clipped: this raises b, and its"],
        ),
    ):
        with pytest.warns(dpf.BoundsWarning):
            lines = warned_lines(frame.dp.agg(**statistics, **SURE, ledger=dpf.Ledger(10_000)).dp.provenance)
        assert [line.split(" values of ")[1].split(" margin")[0] for line in lines] == said


def test_a_direction_that_few_values_may_turn_is_not_claimed():
    """Clipping the 2% above the bounds lowers the mean; clipping the 0.9% below them raises it by far more."""
    frame = pl.DataFrame({"x": [101.0] * 200 + [-1e6] * 90 + [50.0] * 9_710})
    with pytest.warns(dpf.BoundsWarning, match="x are above 100, clipped: this lowers x_mean, and its") as caught:
        found = frame.dp.mean("x", bounds=(0, 100), **SURE, ledger=dpf.Ledger(10_000))
    assert frame["x"].mean() < found["x_mean"].item()
    assert "too low" not in found.dp.statement() + str(caught[0].message)


def test_what_clipping_does_to_a_statistic_of_ones_own_is_not_known():
    frame = pl.DataFrame({"x": [50.0] * 300})
    with pytest.warns(dpf.BoundsWarning):
        facts = frame.dp.mean("x", bounds=(0, 10), **SURE, ledger=dpf.Ledger(10_000)).dp.provenance
    facts["measures"]["x_mean"]["verb"] = "geometric_mean"
    assert warned_lines(facts) == [f"100% of values of x are above 10, clipped: this may move x_mean, {UNCOVERED}"]


def test_a_filter_that_makes_errors_of_warnings_costs_no_answer(tmp_path, caplog):
    ledger = dpf.Ledger(epsilon=30_000, path=tmp_path / "a.ledger")
    named = {"label": "income", "snapshot": "1"}
    with warnings.catch_warnings(), caplog.at_level("INFO", logger="dpframe"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpf.WeakPrivacyWarning)
        first = incomes().dp.mean("income", bounds=(0, 20_000), **SURE, **named, ledger=ledger)
        again = incomes().dp.mean("income", bounds=(0, 20_000), **SURE, **named, ledger=ledger)
    assert [record.message for record in caplog.records if "this lowers" in record.message] == [
        check_warning(first.dp.provenance)
    ]
    assert first.equals(again)
    assert again.dp.provenance["checks"] == first.dp.provenance["checks"]


def test_nothing_is_checked_where_a_call_says_so():
    result = incomes().dp.mean("income", bounds=(0, 20_000), checks=False, epsilon=1, ledger=dpf.Ledger(1))
    assert "checks" not in result.dp.provenance
    rows = result.dp.checks()
    assert rows.height == 0
    assert rows.schema == {
        **dict.fromkeys(("of", "what"), pl.String),
        **dict.fromkeys(("share", "share_low", "share_high", "count", "count_error"), pl.Float64),
    }


@pytest.mark.parametrize(
    ("ask", "share"),
    [
        (lambda dp, **o: dp.mean("income", bounds=(0, 20_000), **o), Fraction(1, 20)),
        (lambda dp, **o: dp.ecdf("income", bins=[0, 1, 2], **o), Fraction(1, 20)),
        (lambda dp, **o: dp.count(unit="who", max_rows=1, **o), Fraction(1, 20)),
        (lambda dp, **o: dp.histogram("income", bins=[0, 1], unit="who", max_rows=1, **o), Fraction(1, 20)),
        (lambda dp, **o: dp.group_by("who", keys=[1, 2]).n_units(unit="who", max_groups=1, **o), Fraction(1, 20)),
        (lambda dp, **o: dp.count(**o), None),
        (lambda dp, **o: dp.histogram("income", bins=[0, 1], **o), None),
        (lambda dp, **o: dp.group_by("who", keys=[1, 2]).count(**o), None),
        (lambda dp, **o: dp.proportion("income", value=1.0, **o), None),
        (lambda dp, **o: dp.n_units(unit="who", **o), None),
        (lambda dp, **o: dp.median("income", bounds=(0, 9), mechanism="exponential", **o), None),
    ],
)
@pytest.mark.parametrize("said", [{}, {"checks": "auto"}])
def test_a_twentieth_goes_to_checks_where_something_may_be_clipped_or_cut(ask, share, said):
    plan = ask(incomes().dp.preview, epsilon=1, **said)
    assert (plan.checks and plan.checks.share) == share
    assert ("5% of the cost measures" in repr(plan)) == (share is not None)
    assert ask(incomes().dp.preview, epsilon=1, checks=False).checks is None


def test_checks_that_would_tell_nothing_are_measured_only_for_who_asks():
    ask = incomes().dp.preview.mean
    few, many = (ask("income", bounds=(0, 9), epsilon=1, size=size) for size in (100, 10_000))
    assert (few.checks, many.unseen) == (None, None)
    assert "what the bounds leave out is not measured: of 100 rows" in repr(few)
    assert few.noises == ask("income", bounds=(0, 9), epsilon=1, size=100, checks=False).noises
    assert ask("income", bounds=(0, 9), epsilon=1, size=100, checks=True).checks.share == Fraction(1, 20)
    assert ask("income", bounds=(0, 9), epsilon=1, size=100, ledger=dpf.Ledger(9, checks=0.5)).checks.share == 0.5
    assert ask("income", bounds=(0, 9), epsilon=100, size=100).checks is not None
    groups = incomes().dp.preview.group_by("who", keys=range(100)).mean("income", bounds=(0, 9), epsilon=1, size=100)
    assert "of 10,000 rows" in repr(groups)
    assert "not measured" in repr(ask("income", bounds=(0, 9), size=100))
    plans = ask("income", bounds=(0, 9))
    for plan in (few, many, plans):  # a terminal may lack the sign ±, so only HTML has it
        assert repr(plan).isascii()
        assert "within ±" in plan._repr_html_()
    assert "within +-" in repr(plans)


@pytest.mark.parametrize("within", [0.001, 1.0])
def test_whether_checks_tell_nothing_is_decided_at_the_price_that_is_taken(within):
    """Checks raise the epsilon that `within=` needs: if they are too noisy at that epsilon, they are left out."""
    ask = incomes().dp.preview.mean
    plan = ask("income", bounds=(0, 9), within=within, size=1_000)
    other = ask("income", bounds=(0, 9), within=within, size=1_000, checks=within == 0.001)
    assert (plan.checks is None) == (within == 1.0)
    assert plan.cost == other.cost
    assert plan.noises == other.noises


def test_plans_that_are_released_together_decide_at_the_price_of_the_whole():
    plans = {
        "few": incomes().dp.preview.mean("income", bounds=(0, 9), size=200),  # its checks are too noisy at epsilon 0.01
        "none": incomes().dp.preview.mean("income", bounds=(0, 9), size=2),
        "all": incomes().dp.preview.mean("income", bounds=(0, 9), size=2, checks=True),
    }
    joint = dpf.plan_together(plans, epsilon=30.0)
    assert [plan.checks is None for plan in joint.plans.values()] == [False, True, False]
    assert joint.plans["none"].unseen is not None
    assert "of none: what the bounds leave out is not measured" in repr(joint)
    drawn = [noise for plan in joint.plans.values() for noise in plan.noises]
    drawn += [plan.checks.mechanism for plan in joint.plans.values() if plan.checks]
    assert 30 * (1 - 1e-9) <= sum(noise.pure_epsilon for noise in drawn) <= 30 * (1 + 1e-12)


def cubic(sensitivity, loss):
    return dpf.GeneralizedGaussian.calibrate(
        p=3, sensitivity=sensitivity.norm(3), epsilon=loss.epsilon, delta=loss.delta, grid=sensitivity.grid
    )


@pytest.mark.parametrize("mechanism", [None, "gaussian", cubic])
def test_an_answer_that_was_stored_without_checks_is_the_answer_of_a_call_that_says_nothing(mechanism, tmp_path):
    ledger = dpf.Ledger(epsilon=9, delta=0.1, accounting="basic", path=tmp_path / "a.ledger")
    named = {"label": "income", "snapshot": "1", "mechanism": mechanism, "epsilon": 1, "ledger": ledger}
    named |= {} if mechanism is None else {"delta": 0.01}
    if mechanism is cubic:
        pytest.importorskip("dp_accounting")
    ask = partial(incomes().dp.sum, "income", bounds=(0, 100_000))
    facts = facts_of(incomes().dp.preview.sum("income", bounds=(0, 100_000), **named, checks=False), PrivacyUnit())
    stored = facts_of(incomes().dp.preview.sum("income", bounds=(0, 100_000), **named), PrivacyUnit())
    assert {name: fact for name, fact in facts.items() if name != "checks"} == stored  # the facts that 0.2 stored
    first = ask(**named)
    assert first.equals(ask(**named))
    assert first.equals(ask(**named, checks="auto"))
    assert "checks" in first.dp.provenance
    assert ledger.spent.epsilon == 1
    with pytest.raises(dpf.LedgerError):
        ask(**named, checks=0.2)


def test_a_ledger_may_say_it_for_all_its_calls(tmp_path):
    ledger = dpf.Ledger(epsilon=10, checks=0.5, path=tmp_path / "a.ledger")
    ask = incomes().dp.preview.mean
    assert ask("income", bounds=(0, 2), epsilon=1, ledger=ledger).checks.share == 0.5
    assert ask("income", bounds=(0, 2), epsilon=1, checks=False, ledger=ledger).checks is None
    assert ask("income", bounds=(0, 2), epsilon=1, checks="auto", ledger=ledger).checks.share == Fraction(1, 20)
    assert dpf.Ledger.open(tmp_path / "a.ledger").checks is None  # a setting of the object, not stored in the file
    none = dpf.Ledger(epsilon=10, checks=False)
    assert ask("income", bounds=(0, 2), epsilon=1, ledger=none).checks is None


@pytest.mark.parametrize(("before", "after"), [(0.9, False), (False, None), (None, 0.9), ("auto", True)])
def test_a_stored_answer_is_no_answer_where_the_ledger_asks_for_other_checks(before, after, tmp_path):
    first, other = (dpf.Ledger(epsilon=9, checks=one, path=tmp_path / "a.ledger") for one in (before, after))
    named = {"label": "income", "snapshot": "1", "epsilon": 1}
    ask = partial(incomes().dp.sum, "income", bounds=(0, 100_000), **named)
    answer = ask(ledger=first)
    with pytest.raises(dpf.LedgerError, match="checks differs"):
        ask(ledger=other)
    given = {"checks": "auto" if before is None else before}
    assert answer.equals(ask(ledger=first))
    assert answer.equals(ask(ledger=other, **given))  # the call names the checks of the first ledger
    assert other.spent.epsilon == 1


@pytest.mark.parametrize("checks", [0.9, True, False])
def test_the_checks_of_a_ledger_are_no_fact_of_a_question_with_nothing_to_check(checks, tmp_path):
    first, other = (dpf.Ledger(epsilon=9, checks=one, path=tmp_path / "a.ledger") for one in (None, checks))
    named = {"label": "rows", "snapshot": "1", "epsilon": 1}
    assert incomes().dp.count(**named, ledger=first).equals(incomes().dp.count(**named, ledger=other))
    assert first.spent.epsilon == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda dp: dp.mode("band", categories=["low"], epsilon=1, checks=True),
        lambda dp: dp.top_k("band", categories=["low", "high"], k=1, epsilon=1, checks=0.1),
        lambda dp: dp.count(epsilon=1, checks=True),
        lambda dp: dp.median("income", bounds=(0, 9), mechanism="exponential", epsilon=1, checks=True),
        lambda dp: dp.group_by("band", keys=dpf.discover(delta=1e-6)).count(epsilon=1, delta=1e-6, checks=True),
    ],
)
def test_checks_are_refused_where_there_is_nothing_to_check(call):
    frame = incomes().with_columns(band=pl.lit("low"))
    ledger = dpf.Ledger(epsilon=1, delta=0.1, accounting="basic")
    with ledger, pytest.raises(dpf.InvalidArgument, match="checks must be left out"):
        call(frame.dp)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    ("checks", "kind"), [(0, "a"), (1, "a"), (1.5, "a"), (-1, "a"), ("yes", "t"), ([1], "t"), (math.nan, "a")]
)
def test_a_share_that_is_none_is_refused(checks, kind):
    with pytest.raises(dpf.InvalidArgument if kind == "a" else dpf.InvalidType, match="checks must be"):
        incomes().dp.mean("income", bounds=(0, 2), epsilon=1, checks=checks)


def test_plans_released_together_are_checked_each():
    plans = {
        "a": incomes().dp.preview.mean("income", bounds=(0, 20_000), checks=True),
        "b": incomes().dp.preview.count("income"),
    }
    ledger = dpf.Ledger(epsilon=20_000)
    with pytest.warns(dpf.BoundsWarning, match="above 20,000"):
        results = dpf.release_together(plans, epsilon=20_000, ledger=ledger)
    assert "checks" in results["a"].dp.provenance
    assert "checks" not in results["b"].dp.provenance
    assert ledger.remaining.epsilon == 0
    both = dpf.plan_together(plans, epsilon=1.0, ledger=dpf.Ledger(1)).plans
    drawn = [*both["a"].noises, both["a"].checks.mechanism, *both["b"].noises]
    assert sum(noise.pure_epsilon for noise in drawn) <= 1.0 + 1e-12


def test_accuracy_is_priced_with_the_checks_in():
    ask = incomes().dp.preview.sum
    plain = ask("income", bounds=(0, 100), within=500, checks=False)
    checked = ask("income", bounds=(0, 100), within=500, checks=0.2)
    assert checked.cost.epsilon == pytest.approx(plain.cost.epsilon / 0.8, rel=1e-3)
    assert checked.error["income_sum"] == pytest.approx(plain.error["income_sum"], rel=1e-5)


def test_a_plan_says_what_to_expect():
    plan = incomes().dp.preview.mean("income", bounds=(0, 20_000), epsilon=1, checks=0.1, size=5_000)
    assert "10% of the cost measures what the bounds leave out" in repr(plan)
    assert "of 5,000 rows" in repr(plan)


def test_plans_at_several_costs_say_what_to_expect_at_the_least_and_at_the_most():
    plans = incomes().dp.preview.mean("income", bounds=(0, 20_000), epsilon=[1, 4], size=1_000)
    few, many = (plan.checks.expected(1_000)[0] for plan in plans.plans)
    assert f"within +-{many:.4g} to +-{few:.4g} percentage points of 1,000 rows" in repr(plans)


def test_a_group_of_bins_for_sums_is_all_of_its_bins():
    ask = incomes().dp.preview.group_by("who", keys=[1, 2]).histogram
    plan = ask("income", bins=range(0, 100_001, 10_000), ranges=True, epsilon=1, checks=True, size=100)
    assert "of 200 rows" in repr(plan)


def test_a_unit_is_assumed_in_as_many_groups_as_count_in_full():
    """Two groups of 100 rows are 100 people if each of them is in both."""
    ask = incomes().dp.preview.group_by("income", keys=[5_000.0, 90_000.0]).count
    for groups, people in ((1, 200), (2, 100), (9, 100)):
        plan = ask(epsilon=1, unit="who", max_rows=1, max_groups=groups, checks=True, size=100)
        assert f"of {people} units (who)" in repr(plan)


def test_a_proportion_of_other_numbers_is_told_of_its_value():
    frame, ledger = pl.DataFrame({"age": [20, 30, 40] * 1_000}), dpf.Ledger(epsilon=100)
    with pytest.warns(
        dpf.BoundsWarning, match=r"values of age are above 1, clipped: .* Say which values it counts: value=\.$"
    ):
        frame.dp.proportion("age", epsilon=100, ledger=ledger)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda dp: dp.mode("who", categories=[1, 2], epsilon=1), True),
        (lambda dp: dp.mode("who", categories=[1, 2], epsilon=[1, 2]), True),
        (lambda dp: dp.top_k("who", categories=[1, 2], k=1, epsilon=1), True),
        (lambda dp: dp.median("income", bounds=(0, 9), mechanism="exponential", epsilon=1), True),
        (lambda dp: dp.group_by("who", keys=dpf.discover(delta=1e-6)).count(epsilon=1, delta=1e-6), True),
        (lambda dp: dp.top_k("who", categories=[1, 2], k=1, counts=True, epsilon=1), False),
        (lambda dp: dp.count(epsilon=1), False),
        (lambda dp: dp.count(unit="who", max_rows=1, epsilon=1), False),
        (lambda dp: dp.mean("income", bounds=(0, 9), epsilon=1, checks=False), False),
        (lambda dp: dp.suggest_bounds("income", epsilon=1), False),
        (lambda dp: dp.contributions(unit="who", epsilon=1), False),
    ],
)
def test_a_plan_says_where_nothing_can_be_checked(ask, said):
    assert ("cannot measure what is clipped, left out" in repr(ask(incomes().dp.preview))) == said


def test_a_warning_has_a_line_for_each_indicator():
    ledger = dpf.Ledger(epsilon=30_000, unit="who")
    with pytest.warns(dpf.BoundsWarning) as caught:
        incomes(6).dp.mean("income", bounds=(0, 20_000), max_rows=2, **SURE, ledger=ledger)
    clipped, cut = str(caught[-1].message).split("\n")
    assert clipped.endswith("or ask for suggest_bounds.")
    assert cut.endswith("Raise max_rows=.")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"n": dpf.count()}, "down-weighted: counts and sums are too low, and the"),
        ({"m": dpf.mean("income", bounds=(0, 10**9))}, "down-weighted: m leans toward the other units, and the"),
        (
            {"n": dpf.count(), "m": dpf.mean("income", bounds=(0, 10**9)), "s": dpf.std("income", bounds=(0, 10**9))},
            "down-weighted: counts and sums are too low, m and s lean toward the other units, and the",
        ),
        (
            {"n": dpf.count(), "s": dpf.sum("income", bounds=(0, 10**9))},
            "down-weighted: counts and sums are too low, and",
        ),
        ({"s": dpf.sum("income", bounds=(-9, 0))}, "down-weighted: s is too high, and the"),
        (
            {"n": dpf.count(), "s": dpf.sum("income", bounds=(-9, 10**9)), "m": dpf.mean("income", bounds=(0, 9))},
            "down-weighted: n is too low, s is too low or too high, m leans toward the other units, and the",
        ),
    ],
)
def test_units_that_count_for_less_move_each_number_in_its_own_way(asked, said):
    ledger = dpf.Ledger(epsilon=30_000, unit="who")
    with pytest.warns(dpf.BoundsWarning, match=said):
        incomes(6).dp.agg(**asked, max_rows=2, **SURE, ledger=ledger)


@pytest.mark.parametrize(
    ("rows", "most", "said"),
    [
        (1, 1, "more than 1 row in all"),
        (2, 1, "more than 2 rows, by the sum of squares over groups"),
        (1, 2, "more than 1 row in each of 2 groups, by the sum of squares"),
    ],
)
def test_a_rule_of_gaussian_noise_is_told_in_a_sentence(rows, most, said):
    frame = pl.DataFrame({"who": [*range(900)] * 12, "g": [0, 1, 2] * 3_600})
    ledger = dpf.Ledger(epsilon=30_000, delta=1e-5, unit="who")
    cost = {"epsilon": 3_000, "delta": 1e-6}
    with pytest.warns(dpf.BoundsWarning, match=f"100% of units \\(who\\) have {said}, and are down-weighted"):
        found = frame.dp.group_by("g", keys=[0, 1, 2, 3]).count(max_rows=rows, max_groups=most, **cost, ledger=ledger)
    assert f"have {said}, and are" in found.dp.statement()
    group = frame.dp.preview.group_by("g", keys=[0, 1, 2, 3])
    plan = group.count(rollup=True, max_rows=rows, max_groups=most, checks=True, **cost, ledger=ledger)
    rules = [rule.words for rule in plan.checks.checks.rules]
    assert rules == [said] if rows == most == 1 else [said, "more than 2 rows in all"]


@pytest.mark.parametrize(
    ("groups", "most", "said"),
    [  # each unit has five rows in one of two groups, or one row in each of them
        (1, 1, "more than 2 rows in all, and are down-weighted: n is too low|Raise max_rows= or max_groups="),
        (1, 2, "more than 4 rows in all, and are down-weighted: n is too low|Raise max_rows="),
        (2, 1, "more than 1 group, and are down-weighted: u and s are too low|Raise max_groups="),
    ],
)
def test_a_rule_is_told_of_the_numbers_that_count_by_it(groups, most, said):
    """A rule on rows affects counts of rows, one on groups affects statistics of units; neither affects n_distinct."""
    rows = [(who, (who + row) % groups) for who in range(1_000) for row in range(5 if groups == 1 else 2)]
    frame = pl.DataFrame(rows, schema=["who", "g"], orient="row").with_columns(x=1.0)
    asked = {"n": dpf.count(), "u": dpf.n_units(), "s": dpf.sum("x", unit_bounds=(0, 9))}
    asked |= {"d": dpf.n_distinct("g", max_values=1)}
    with pytest.warns(dpf.BoundsWarning) as caught:
        found = frame.dp.group_by("g", keys=[0, 1]).agg(
            **asked, max_rows=2, max_groups=most, **SURE, ledger=dpf.Ledger(epsilon=30_000, unit="who")
        )
    uncovered = ", and the margins of error do not cover that. "
    (line,) = str(caught[-1].message).split("\n")
    assert line == f"100% of units (who) have {said.replace('|', uncovered)}."
    hit, missed = (["n"], ["u", "s", "d"]) if groups == 1 else (["u", "s"], ["n", "d"])
    assert said.split(":")[0] in found.dp.select(*hit).dp.statement()
    assert f"have {said.split(',')[0]}" not in found.dp.select(*missed).dp.statement()
    assert "down-weighted: counts and sums are too low, and" in found.dp.select(*hit).dp.statement()
    own = found.dp.provenance
    own["measures"]["n"]["verb"] = own["measures"]["u"]["verb"] = "mine"
    assert "n and u may be off" in warned_lines(own)[0] or groups == 2
    assert "lean" not in warned_lines(own)[0]


def test_rows_that_are_left_out_leave_the_other_rows_of_their_units():
    frame = pl.DataFrame({"who": [0, 0, 1, 1] * 200, "g": ["A", "C"] * 400})
    frame = frame.with_columns(who=pl.int_range(pl.len()) // 2)
    for unit, said in (
        (None, "are in no {}, and are left out"),
        ("who", "have rows in no {}; those rows are left out"),
    ):
        bounds = {} if unit is None else {"max_rows": 2}
        found = frame.dp.group_by("g", keys=["A"]).agg(
            n=dpf.count(), checks=0.5, **bounds, **SURE, ledger=dpf.Ledger(epsilon=30_000, unit=unit)
        )
        assert said.format("declared group or bin") in found.dp.statement()


def test_a_boolean_column_of_polars_cannot_be_clipped():
    frame = pl.DataFrame({"smoker": [True, False, None], "g": ["A", "B", "A"]})
    plan = frame.dp.preview.group_by("g", keys=["A", "B"]).proportion("smoker", epsilon=1, checks=True)
    assert [one.what for one in plan.checks.checks.indicators] == ["outside", "units"]


def test_bounds_of_one_column_that_differ_are_told_apart():
    """All values are above 10, and none is above 100."""
    frame = pl.DataFrame({"x": [50.0] * 300})
    found = frame.dp.agg(
        wide=dpf.mean("x", bounds=(0, 100)),
        tight=dpf.mean("x", bounds=(0, 10)),
        checks=0.5,
        **SURE,
        ledger=dpf.Ledger(epsilon=1e6),
    )
    counts = [(row["what"], round(row["count"])) for row in found.dp.checks().rows(named=True)]
    assert counts == [("below", 0), ("above", 0), ("below", 0), ("above", 300), ("present", 300)]
    assert warned_lines(found.dp.provenance) == [
        f"100% of values of x are above 10, clipped: this lowers tight, {UNCOVERED}"
    ]


@pytest.fixture(scope="module")
def clipped():
    """Means with bounds for all groups or for each group; all of them clip values, except `loose`."""
    rows = pl.DataFrame({"g": ["A", "B"] * 200, "x": [50.0, 500.0] * 200, "y": [5.0] * 400})
    own = {"A": (0, 10), "B": (0, 100)}
    return rows.dp.group_by("g", keys=["A", "B"]).agg(
        **{"loose": dpf.mean("x", bounds=(0, 900)), "y": dpf.mean("y", bounds=(0, 1))},
        **{"tight": dpf.mean("x", bounds=(0, 20)), "own": dpf.mean("x", bounds=own)},
        **{"low": dpf.mean("x", bounds=own, where={"y": (0, 9)})},
        checks=0.5,
        epsilon=1e5,
        ledger=dpf.Ledger(epsilon=1e6),
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda dp: dp.relabel({"g": {"A": "a"}}, columns={"g": "Ward", "own": "Mean"}), {"Mean": 1, "low": 1, "y": 1}),
        (lambda dp: dp.select("low", "own", "tight", "y", "loose"), {"low": 1, "own": 1, "tight": 1, "y": 1}),
        (lambda dp: dp.select("tight"), {"tight": 1, "y": 0, "own": 0}),
        (lambda dp: dp.select("loose"), {"loose": 0, "tight": 0}),
        (lambda dp: dp.select("own").dp.filter({"g": "B"}).dp.relabel(columns={"g": "Ward"}), {"own": 1, "low": 0}),
    ],
)
def test_what_bounds_made_wrong_is_said_of_changed_frames(clipped, change, said):
    """Each statistic that is shown keeps the check of its own bounds, under any name and in any order."""
    made = change(clipped.dp)
    for text in (made.dp.statement(), made.dp.table("csv")):
        assert {name: text.count(f"clipped: this lowers {name}, {UNCOVERED}") for name in said} == said, text
    if "own" in said:
        assert text.count("x are above the bounds of their g") == said["own"]


def test_what_bounds_made_wrong_is_said_of_wide_frames(clipped, tmp_path):
    wide = clipped.dp.select("own").dp.wide("g")
    line = f"100% of values of x are above the bounds of their g, clipped: this lowers A and B, {BOTH_UNCOVERED}"
    for made in (wide, wide.dp.round()):
        assert line in made.dp.statement()
        assert line in made.dp.table("csv")
    wide.dp.write_html(tmp_path / "page.html", charts=False)
    assert "x are above the bounds of their g" in (tmp_path / "page.html").read_text(encoding="utf-8")
    labeled = clipped.dp.table("csv", labels={"columns": {"g": "Ward"}})
    assert "x are above the bounds of their g" in labeled
    pytest.importorskip("altair")
    assert line.split(", clipped", maxsplit=1)[0] in str(wide.dp.plot().to_dict())


def test_what_lies_beyond_the_edges_is_said_of_a_renamed_distribution():
    frame = pl.DataFrame({"x": [50.0] * 100 + [90.0] * 100})
    found = frame.dp.ecdf("x", bins=[0, 20, 60], **SURE, ledger=dpf.Ledger(epsilon=1e6))
    assert "50% of values of x are above 60" in found.dp.statement()
    assert "50% of values of x are above 60" in found.dp.relabel(columns={"x": "Cost"}).dp.statement()


def two_of_one_column(which):
    """Release two statistics whose checks have the same wording; only the check of `late`, the second, finds values."""
    asked = {"epsilon": 1e5, "checks": 0.5, "ledger": dpf.Ledger(epsilon=1e9, unit="p" if which == "units" else None)}
    rows = {"p": [0, 0, 1, 1] * 100, "g": ["A", "B"] * 200, "x": [8.0, 80.0] * 200, "y": [60.0] * 400}
    frame, days = pl.DataFrame(rows), dpf.mean("y", bounds=(0, 30))
    if which == "units":
        rows["p"] = [place // 2 for place in range(400)]
        each, total = dpf.mean("x", bounds=(0, 85)), dpf.sum("x", unit_bounds=(0, 85))
        frame, bounds = pl.DataFrame(rows), {"max_rows": 2, "max_groups": 1}
        return frame.dp.agg(each=each, late=total, days=days, **bounds, **asked)
    if which == "groups":
        wide, late = (
            dpf.mean("x", bounds={"A": (0, 10), "B": (0, 100)}),
            dpf.std("x", bounds={"A": (0, 5), "B": (0, 9)}),
        )
        return frame.dp.group_by("g", keys=["A", "B"]).agg(wide=wide, late=late, days=days, **asked)
    codes = [f"c{place}" for place in range(20)]
    first, other = codes[:10], [*codes[:6], *codes[16:]]  # the text names six of them
    frame = pl.DataFrame({"k": codes * 20, "x": ([5.0] * 16 + [50.0] * 4) * 20, "y": [60.0] * 400})
    means = (dpf.mean("x", bounds=(0, 10), where={"k": each}) for each in (first, other))
    return frame.dp.agg(wide=next(means), late=next(means), days=days, **asked)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("units", "100% of units (p) with a value of x have a sum above 85,"),
        ("groups", "100% of values of x are above the bounds of their g,"),
        (
            "conditions",
            "40% of values of x where k is 'c0', 'c1', 'c2', 'c3', 'c4', 'c5' or one of 4 more are above 10,",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::dpframe.BoundsWarning")
def test_checks_of_the_same_words_are_told_each_of_its_own_statistics(which, said, tmp_path):
    """Later checks are named too, also from a file; old records, without `measures`, still report what was found."""
    found = two_of_one_column(which)
    found.dp.write_parquet(tmp_path / "found.parquet")
    for facts in (found.dp.provenance, dpf.read_parquet(tmp_path / "found.parquet").dp.provenance):
        lines = [line for line in warned_lines(facts) if "down-weighted" not in line]
        assert [line.split(" clipped", maxsplit=1)[0] for line in lines] == [
            said,
            f"100% of {'units (p) with a value of y have one' if which == 'units' else 'values of y are'} above 30,",
        ]
        assert [re.findall(r"\b(wide|each|late|days)\b", line) for line in lines] == [["late"], ["days"]]
    old = found.dp.provenance
    for row in old["checks"]:
        row.pop("measures", None)
        row.pop("bounds", None)
    first, last = [line for line in warned_lines(old) if "down-weighted" not in line]
    assert "days" in last
    if which == "conditions":  # both texts are shortened alike, so the statistic is unknown
        assert first == said.removesuffix("10,") + "its bounds, clipped"
    else:
        assert "late" in first


def test_a_check_of_which_nobody_knows_what_it_is_of_is_told():
    frame = pl.DataFrame({"x": [50.0] * 300})
    asked = {"epsilon": 1e5, "ledger": dpf.Ledger(epsilon=1e9)}
    with pytest.warns(dpf.BoundsWarning):
        facts = frame.dp.mean("x", bounds=(0, 10), **asked).dp.provenance
    facts["checks"][1]["measures"] = ["gone"]
    assert warned_lines(facts) == ["100% of values of x are above 10, clipped"]


def test_a_record_says_which_statistics_a_check_is_of():
    frame = pl.DataFrame({"g": ["A"] * 300, "x": [50.0] * 300, "w": [1.0] * 300})
    asked = {"epsilon": 1e5, "ledger": dpf.Ledger(epsilon=1e9)}
    found = frame.dp.group_by("g", keys=["A"]).agg(
        m=dpf.mean("x", bounds=(0, 100)),
        s=dpf.std("x", bounds=(0, 100)),
        own=dpf.mean("x", bounds={"A": (0, 90)}),
        heavy=dpf.mean("x", bounds=(0, 100), weight="w", weight_bounds=(0, 7)),
        **asked,
    )
    rows = [row for row in found.dp.provenance["checks"] if "measures" in row]
    assert [(row["what"], row["of"], row["measures"], row["bounds"]) for row in rows] == [
        (what, *said)
        for said in (
            ("x", ["m", "s", "heavy"], [0.0, 100.0]),
            ("x in its g", ["own"], None),
            ("w", ["heavy"], [0.0, 7.0]),
        )
        for what in ("below", "above")
    ]
    days = pl.DataFrame({"day": [date(2024, 5, 1)] * 300})
    edges = [date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)]
    above = days.dp.ecdf("day", bins=edges, **asked).dp.provenance["checks"][1]
    assert (above["measures"], above["bounds"]) == (["ecdf"], ["2024-01-01", "2024-03-01"])


def quiet(call):
    """Return the result of a call, which must give no BoundsWarning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpf.BoundsWarning)
        return call()


def test_a_share_of_units_makes_no_claim_on_a_quantile():
    """Each unit has one of ten values above the bounds: that is 100% of units, but the median of values is within."""
    frame = pl.DataFrame({"p": [place // 10 for place in range(3_000)], "x": ([1_000.0] + [5.0] * 9) * 300})
    for most in ({"max_rows": 10, "max_groups": 1}, {"max_rows": 1, "max_groups": 1}):
        asked = {"epsilon": 1e5, "checks": 0.5, "ledger": dpf.Ledger(epsilon=1e9, unit="p")}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", dpf.BoundsWarning)
            found = frame.dp.median("x", bounds=(0, 10), **most, **asked)
        assert found["x_median"].item() == 5.0
        assert not any("x_median lie" in str(each.message) for each in caught)
        assert "100% of units (p) with a value of x have one above 10. " in found.dp.statement() + " "


def test_a_share_of_units_is_said_once_for_a_quantile_beside_other_statistics():
    frame = pl.DataFrame({"p": [place // 10 for place in range(3_000)], "x": ([1_000.0] + [5.0] * 9) * 300})
    statistics = {"doc": dpf.median("x", bounds=(0, 10)), "sp": dpf.std("x", bounds=(0, 10))}
    asked = {"epsilon": 1e5, "checks": 0.5, "max_rows": 10, "ledger": dpf.Ledger(epsilon=1e9, unit="p")}
    with pytest.warns(dpf.BoundsWarning):
        found = frame.dp.agg(**statistics, **asked)
    (line,) = (line for line in check_lines(found.dp.provenance) if "above" in line)
    assert line.startswith("100% of units (p) with a value of x have one above 10, clipped: this lowers sp, and")


@pytest.mark.parametrize("share", [0.03, 0.6])
def test_a_quantile_beside_a_mean_of_the_same_bounds_has_a_line_of_its_own(share):
    frame = pl.DataFrame({"x": [1_000.0 if place < share * 1_000 else 5.0 for place in range(1_000)]})
    asked = {"epsilon": 1e5, "checks": 0.5, "ledger": dpf.Ledger(epsilon=1e9)}
    statistics = {"m": dpf.mean("x", bounds=(0, 10)), "q": dpf.median("x", bounds=(0, 10))}
    statistics["r"] = dpf.quantile("x", q=0.45, bounds=(0, 10))
    with pytest.warns(dpf.BoundsWarning):
        lines = warned_lines(frame.dp.agg(**statistics, **asked).dp.provenance)
    assert re.findall(r"\b(m|q|r)\b", lines[0]) == ["m"]
    named = "q and r lie beyond the bounds, and are shown as 10. Widen bounds="
    assert lines[1:] == ([] if share < 0.5 else [f"60% of values of x are above 10: {named}"])


def test_less_than_one_percent_beyond_the_bounds_may_be_enough_for_a_quantile():
    frame = pl.DataFrame({"x": [50.0] * 50 + [5.0] * 9_950})
    asked = {"epsilon": 1e5, "checks": 0.5, "ledger": dpf.Ledger(epsilon=1e9)}
    with pytest.warns(
        dpf.BoundsWarning, match="^0.5% of values of x are above 10: x_q0.999 lies beyond the bounds, and is"
    ):
        frame.dp.quantile("x", q=0.999, bounds=(0, 10), **asked)
    quiet(lambda: frame.dp.quantile("x", q=0.99, bounds=(0, 10), **asked))


def test_a_share_is_said_to_be_of_those_that_have_a_value():
    """Of 1,000 rows, 100 have a value, and half of those are above 10: the text once called that half of all rows."""
    rows = {"p": range(1000), "s": ["f", "m"] * 500, "x": [None] * 900 + [5.0, 5.0, 50.0, 50.0] * 25}
    for unit, share in ((None, "of values of {} are"), ("p", "of units (p) with a value of {} have one")):
        asked = {"m": dpf.mean("x", bounds=(0, 10)), "n": dpf.mean("x", bounds=(0, 10), where={"s": "m"})}
        bounds = {"max_rows": 1} if unit else {}
        ledger = dpf.Ledger(epsilon=1e6, unit=unit)
        with pytest.warns(dpf.BoundsWarning) as caught:
            found = pl.DataFrame(rows).dp.agg(asked, **bounds, checks=0.5, **SURE, ledger=ledger)
        for text in (str(caught[-1].message), found.dp.statement()):
            for column in ("x", "x where s is 'm'"):
                assert f"50% {share.format(column)} above 10, clipped" in text
            assert "of rows" not in text
