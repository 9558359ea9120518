"""A small run of ``assurance/stream_audit.py``: the privacy loss of all periods is at most epsilon, and near it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assurance import stream_audit
from dpframe.streams.stream_plan import StreamReach


@pytest.mark.slow
@pytest.mark.parametrize("person", stream_audit.PEOPLE)
@pytest.mark.parametrize("price", stream_audit.PRICES)
def test_streams_tell_no_more_than_epsilon(person, price):
    found = stream_audit.audited(person, price, "count", 20_000)
    assert found.holds, found
    if person != "rows that come late":
        assert found.lower_bound > 0.5 * found.claimed, found  # the event does distinguish neighbors


@pytest.mark.slow
def test_noise_for_the_first_period_alone_is_seen(monkeypatch):
    of = StreamReach.of

    def understated(*given, **named):
        return replace(of(*given, **named), column_sum=4096)

    monkeypatch.setattr(StreamReach, "of", understated)
    assert not stream_audit.audited("a row", "Laplace", "count", 20_000).holds
