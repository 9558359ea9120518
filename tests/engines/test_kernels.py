"""Compiled kernels give the integers of the Polars expressions, bit for bit; nothing but time depends on them."""

from __future__ import annotations

import pytest

from dpframe.engines import kernels, trial
from dpframe.engines.schema import check
from dpframe.engines.totals import totals

pytest.importorskip("numba", reason="the extra fast is not installed: there are no kernels to compare")


@pytest.fixture
def always(monkeypatch):
    """Kernels for any number of rows, in blocks of a few."""
    monkeypatch.setattr(kernels, "FEW_ROWS", 0)
    monkeypatch.setattr(kernels, "BLOCK", 257)
    monkeypatch.setattr(kernels, "STRIP", 100)


def without(monkeypatch, ask):
    """What a question gives where no kernels are installed."""
    with monkeypatch.context() as patched:
        patched.setattr(kernels, "ready", lambda: False)
        return ask()


def plain(found):
    return {total: cells.tolist() for total, cells in found.items()}


def compared(monkeypatch, tables, seed, every):
    """How many questions of hard tables were asked both ways; the first that differs fails."""
    asked = 0
    for turn, (table, frame) in enumerate(trial.hard_tables(tables, seed)):
        for number, (name, query) in enumerate(trial.questions().items()):
            for other, (unit, p) in enumerate(trial.units(query, turn + number)):
                if (3 * number + other + turn) % every:
                    continue
                resolved = check(frame, query, unit)
                ask = lambda: plain(totals(frame, resolved, unit, p))  # noqa: B023,E731
                assert ask() == without(monkeypatch, ask), (table, name, unit, p)
                asked += 1
    return asked


def test_kernels_are_polars_on_hard_tables(always, monkeypatch):
    assert compared(monkeypatch, 2, 1, 7) > 50
