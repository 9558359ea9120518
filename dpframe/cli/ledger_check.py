"""``dpframe ledger check``: whether enough is left, told by the exit code."""

from __future__ import annotations

from typing import Annotated

import typer

from dpframe.cli.exit_codes import TOO_LITTLE
from dpframe.cli.ledger_words import File, say_understated
from dpframe.cli.screen import Screen
from dpframe.exact import exact_epsilon
from dpframe.ledger.ledger import Ledger


def check(
    file: File,
    min_remaining: Annotated[
        float, typer.Option("--min-remaining", metavar="EPSILON", help="The epsilon that must be left.")
    ],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    """Tell by the exit code whether an epsilon is left: 0 if so, 3 if not.

    What is left is the most that one more release may cost. The chain of the ledger is followed as well.
    """
    exact_epsilon(min_remaining)
    ledger, screen = Ledger.open(file), Screen(quiet)
    remaining = ledger.remaining
    enough = remaining.epsilon >= min_remaining
    if not quiet:
        words = (
            f"{'enough' if enough else 'too little'}: {remaining} is left, and epsilon {min_remaining:g} is asked for"
        )
        screen.say(words, "green" if enough else "red")
        say_understated(ledger, screen)
    if not enough:
        raise typer.Exit(TOO_LITTLE)
