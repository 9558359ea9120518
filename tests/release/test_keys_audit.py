"""A small run of ``assurance/keys_audit.py``: how often a lone key is shown, and whether epsilon and delta hold."""

from __future__ import annotations

import pytest

from assurance import keys_audit


def test_the_drill_is_the_one_that_was_worked_out():
    law = keys_audit.plan().parts[0].mechanism
    assert law.scale == pytest.approx(2.0, rel=1e-9)
    assert law.threshold == pytest.approx(6.965667724609375, rel=1e-6)
    assert law.shown == pytest.approx(0.00999999, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [*keys_audit.EXACT, 30])
def test_a_person_alone_shows_a_key_as_often_as_delta_says(keys):
    found = keys_audit.share(keys, 60_000)  # its limits miss the truth with a probability of at most 1e-6
    low, high = found.limits
    assert low <= keys_audit.EXACT[min(keys, 20)] <= high
    if keys >= 20:
        assert low > 0.6 * keys_audit.KEYS_DELTA  # delta has a visible effect


@pytest.mark.slow
@pytest.mark.parametrize("name", keys_audit.sides())
def test_neighbors_are_told_apart_no_better_than_claimed(name):
    found = keys_audit.audited(name, 40_000)
    assert found.holds, found


@pytest.mark.slow
def test_without_the_delta_of_keys_the_audit_objects():
    """One audit of so few people detects it one time in three; all forty miss it with a probability of 1e-7."""
    asked = (keys_audit.audited("a person alone, 20 keys", 80_000, delta=0.0) for _ in range(40))
    found = next(finding for finding in asked if not finding.holds)
    assert found.lower_bound > keys_audit.EPSILON
