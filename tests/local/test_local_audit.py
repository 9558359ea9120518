"""A small part of ``assurance/local_audit.py``: the privacy loss of reports is at most epsilon, and close to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assurance import local_audit
from dpframe.noise import coins


@pytest.mark.slow
@pytest.mark.parametrize("name", local_audit.methods(1.0))
def test_reports_tell_no_more_than_epsilon(name):
    found = local_audit.audited(name, 1.0, 40_000)  # a false alarm for a sound method has a chance of at most 1e-6
    assert found.holds, found
    assert found.lower_bound > 0.5 * found.claimed, found  # the event distinguishes the two values


@pytest.mark.slow
def test_reports_of_twice_the_odds_are_seen(monkeypatch):
    tossed = coins.tossed

    def doubled(chance, size):
        return tossed(replace(chance, exponent=2 * chance.exponent), size)

    monkeypatch.setattr(coins, "tossed", doubled)
    assert not local_audit.audited("randomized response", 1.0, 40_000).holds
