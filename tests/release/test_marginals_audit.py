"""A small run of ``assurance/marginals_audit.py``: its lower bound on the privacy loss is near the claim, not above."""

from __future__ import annotations

import pytest

from assurance import marginals_audit
from dpframe.mechanisms.gaussian import ContrastGaussian


@pytest.mark.slow
@pytest.mark.parametrize("name", marginals_audit.PAIRS)
def test_neighbors_are_told_apart_no_better_than_claimed(name):
    found = marginals_audit.audited(name, 6_000)
    assert found.holds, found


@pytest.mark.slow
def test_an_audit_sees_noise_that_is_too_small(monkeypatch):
    """The lower bound is close to the claim, so the audit would detect noise that is only slightly too small."""
    real = ContrastGaussian.add_noise

    def smaller(noise, totals):
        return totals + ((real(noise, totals) - totals) * 0.7).round().astype("int64")

    monkeypatch.setattr(ContrastGaussian, "add_noise", smaller)
    found = marginals_audit.audited("a row", 6_000)
    assert not found.holds
