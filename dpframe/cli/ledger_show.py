"""``dpframe ledger show``: what was spent, what is left, the last charges."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dpframe.cli.ledger_words import File, facts_of
from dpframe.cli.screen import Screen
from dpframe.ledger.ledger import Ledger


def show(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON, for programs.")] = False,
) -> None:
    """Show what was spent, what is left, and the last charges."""
    ledger, screen = Ledger.open(file), Screen()
    if as_json:
        screen.say(json.dumps(facts_of(ledger)))
        return
    for line in str(ledger).split("\n"):
        screen.say(line, "bold" if line.startswith(("Ledger", "last charges")) else _of_bar(line))


def _of_bar(line: str) -> str:
    """The color of the bar, by how much of the limit is spent."""
    if not line.startswith("  ["):
        return ""
    spent = line.count("#") / max(1, line.count("#") + line.count("-"))
    return "green" if spent < 0.75 else "yellow" if spent < 1 else "red"
