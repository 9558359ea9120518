"""Several plans before any of them is released: whether they fit together, and which are answered already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpframe.ledger.entries import Entry
from dpframe.ledger.ledger import Foresight, Ledger
from dpframe.planning.plan import Plan
from dpframe.release.path import rehearsed
from dpframe.release.replay import entry_of


def foreseen(plans: Mapping[str, Plan], ledger: Ledger) -> Foresight:
    """Try each plan on no rows, and all of them on the ledger; nothing is charged and no row is read.

    BudgetExceeded names the first plan that does not fit beside those before it.
    """
    for plan in plans.values():
        rehearsed(plan)
    return ledger.foresee({name: _entry(plan, ledger) for name, plan in plans.items()})


def _entry(plan: Plan, ledger: Ledger) -> Entry:
    """The entry of its charge; a ledger that is yet to be made stores nothing, and knows no snapshot."""
    request = plan.asked
    if not ledger.is_durable:
        request = replace(request, recording=replace(request.recording, snapshot=None))
    return entry_of(request, plan, ledger)
