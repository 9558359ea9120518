"""The common part of the commands on ledgers: their argument, and what a ledger says of itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from dpframe.cli.screen import Screen
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
    facts = {
        "dataset": ledger.dataset,
        "unit": asdict(unit),
        "accounting": ledger.accounting.name,
        "limit": loss_facts(limit),
        "spent": loss_facts(ledger.spent),
        "remaining": loss_facts(ledger.remaining),
        "entries": receipt["entry"],
        "head": receipt["head"],
    }
    return facts | ({"understated": receipt["understated"]} if "understated" in receipt else {})


def say_understated(ledger: Ledger, screen: Screen) -> None:
    """Say that entries of dpframe 0.2 understate their cost, where some do."""
    if (words := ledger._understated) is not None:
        screen.say(words, "yellow")


def loss_facts(loss: PrivacyLoss) -> dict[str, float]:
    """A loss as plain JSON values."""
    return {"epsilon": loss.epsilon, "delta": loss.delta}
