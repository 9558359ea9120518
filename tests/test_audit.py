"""A small share of ``benchmarks/audit.py``: what neighboring frames let out bounds epsilon from below.

Every audit of a sound release objects with a chance of at most ALPHA, so this file fails by chance in at most one of
a million runs.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpframe as dpf
from dpframe.release import path as releases

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import audit_cases
import auditing
from auditing import GAUSSIAN, GAUSSIAN_GDP, LAPLACE

SAMPLES = 20_000
SOUND = [
    ("rows: count", "pandas", LAPLACE),
    ("rows: sum", "Polars", GAUSSIAN_GDP),
    ("rows: mean", "LazyFrame", GAUSSIAN),
    ("rows: agg", "pandas", GAUSSIAN_GDP),
    ("rows: histogram", "Polars", LAPLACE),
    ("rows: histogram in groups", "pandas", GAUSSIAN),
    ("rows: an infinite value", "LazyFrame", LAPLACE),
    ("rows: a missing value", "pandas", LAPLACE),
    ("rows replaced: sum", "pandas", LAPLACE),
    ("rows replaced: count of values", "pandas", GAUSSIAN_GDP),
    ("rows replaced: histogram", "LazyFrame", GAUSSIAN_GDP),
    ("full user: count", "Polars", GAUSSIAN),
    ("heavy user: agg", "pandas", LAPLACE),
    ("heavy user: count", "LazyFrame", LAPLACE),
    ("crammed user: count", "Polars", GAUSSIAN_GDP),
    ("user replaced: count", "pandas", LAPLACE),
    ("user replaced: agg", "Polars", GAUSSIAN_GDP),
]
ALPHA = 1e-6 / len(SOUND)


def case_of(name: str, engine: str, price: auditing.Price) -> auditing.Case:
    if engine == "pandas":
        pytest.importorskip("pandas")
    return audit_cases.case(name, engine, price)


def audited(name: str, engine: str, price: auditing.Price) -> auditing.Audit:
    return auditing.audit(case_of(name, engine, price), SAMPLES, ALPHA)


@pytest.mark.parametrize(("name", "engine", "price"), SOUND, ids=lambda value: getattr(value, "name", value))
def test_no_more_is_lost_than_charged_and_nothing_but_noise_differs(name, engine, price):
    found = audited(name, engine, price)
    assert not found.problems
    assert found.bound <= found.claimed.epsilon, found.event


@pytest.mark.parametrize("price", [LAPLACE, GAUSSIAN, GAUSSIAN_GDP], ids=lambda price: price.name)
@pytest.mark.parametrize("name", ["rows: sum", "full user: count"])
def test_noise_of_half_the_scale_is_found(name, price):
    with auditing.scaled_noise(0.5):
        found = audited(name, "Polars", price)
    assert found.bound > found.claimed.epsilon


def test_the_bound_comes_near_the_truth():
    assert audited("rows: count", "Polars", LAPLACE).bound > 0.7


def test_missing_clipping_is_found(monkeypatch):
    real = releases.totals

    def unclipped(frame, *more):
        found = real(frame, *more)
        values = frame.group_by("group", maintain_order=True).agg(value="value")["value"].to_list()
        for statistic, steps in found.items():
            inside = sum(min(max(value, audit_cases.LOW), audit_cases.HIGH) for value in values[0])
            found[statistic] = np.array([round(sum(group) * (steps[0] / inside)) for group in values])
        return found

    monkeypatch.setattr(releases, "totals", unclipped)
    found = audited("rows: sum", "Polars", LAPLACE)
    assert found.bound > found.claimed.epsilon


@pytest.mark.parametrize("price", [LAPLACE, GAUSSIAN_GDP], ids=lambda price: price.name)
def test_a_skipped_charge_is_found(monkeypatch, price):
    monkeypatch.setattr(dpf.Ledger, "charge", lambda *_, **__: None)
    found = audited("rows: count", "Polars", price)
    assert any(problem.startswith("charged 0 ") for problem in found.problems)
    assert any("second call was answered" in problem for problem in found.problems)


def test_a_warning_that_depends_on_rows_is_found():
    case = case_of("rows: count", "Polars", LAPLACE)

    def warns(dp, groups, options):
        warnings.warn(f"{len(dp._frame)} rows", stacklevel=1)
        return case.ask(dp, groups, options)

    found = auditing.audit(replace(case, ask=warns), auditing.GROUPS)
    assert any(problem.startswith("outputs differ") for problem in found.problems)


def test_an_error_that_depends_on_rows_is_found():
    case = case_of("rows: count", "Polars", LAPLACE)

    def fails(dp, groups, options):
        if len(dp._frame) > 3 * groups:
            raise ValueError("too many rows")
        return case.ask(dp, groups, options)

    found = auditing.audit(replace(case, ask=fails), auditing.GROUPS)
    assert any("no numbers were released" in problem for problem in found.problems)


def test_confidence_limits_are_exact_at_the_ends():
    size, alpha = 50, 1e-3
    assert auditing.at_least(size, size, alpha) == pytest.approx(alpha ** (1 / size), rel=1e-12)
    assert auditing.at_most(0, size, alpha) == pytest.approx(1 - alpha ** (1 / size), rel=1e-12)
    assert (auditing.at_least(0, size, alpha), auditing.at_most(size, size, alpha)) == (0.0, 1.0)


def test_epsilon_of_mu_inverts_the_calibration_of_gaussian_noise():
    mu = 1.0 / dpf.analytic_gaussian_sigma(4.0, 1e-3)
    assert auditing.epsilon_of_mu(mu, 1e-3)[0] == pytest.approx(4.0, rel=1e-6)
