"""The common part of the commands on ledgers: their argument, and what a ledger says of itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from dpframe.ledger.ledger import Ledger
from dpframe.privacy import PrivacyLoss

VARIABLE = "DPFRAME_LEDGER"
File = Annotated[
    str, typer.Argument(metavar="LEDGER", envvar=VARIABLE, help="The ledger: a file, or the URL of a database.")
]


def facts_of(ledger: Ledger) -> dict[str, Any]:
    """The facts of a durable ledger, as plain JSON values."""
    receipt, unit, limit = ledger.verify(), ledger.unit, ledger.limit
    assert unit is not None  # only the default ledger, in memory, has neither
    assert limit is not None
    return {
        "dataset": ledger.dataset,
        "unit": asdict(unit),
        "accounting": ledger.accounting.name,
        "limit": loss_facts(limit),
        "spent": loss_facts(ledger.spent),
        "remaining": loss_facts(ledger.remaining),
        "entries": receipt["entry"],
        "head": receipt["head"],
    }


def loss_facts(loss: PrivacyLoss) -> dict[str, float]:
    """A loss as plain JSON values."""
    return {"epsilon": loss.epsilon, "delta": loss.delta}
