"""``dpframe preview``: what a job would cost, and how far it would err."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from dpframe.cli.job_words import File, Values, opened
from dpframe.cli.screen import Screen
from dpframe.display.pages import number, text_table
from dpframe.jobs.planning_jobs import planned
from dpframe.planning.plan import Plan


def preview(
    file: File,
    values: Values = None,
    details: Annotated[bool, typer.Option("--details", help="Show the whole plan of each release.")] = False,
) -> None:
    """Show the price and the error of each release. No row is read, and nothing is charged.

    The exit code is that of a run: 3 if the releases do not fit into the ledger together.
    """
    screen = Screen()

    def show(plans: Mapping[str, Plan]) -> None:
        screen.say(text_table(("release", "asks", "costs", "95% error"), [_row(*one) for one in plans.items()]))
        for plan in plans.values() if details else ():
            screen.say(f"\n{plan}")

    with opened(file, values) as job:
        whole = planned(job, charge=False, seen=show)
    screen.say("")
    stored = [label for label, known in whole.foresight.stored.items() if known]
    if stored:
        screen.say(f"in the ledger already, at no cost: {', '.join(stored)}")
    screen.say(f"all of them fit; after the run {whole.foresight.left} would be left", "green")


def _row(label: str, plan: Plan) -> tuple[str, str, str, str]:
    errors = ", ".join(f"{plan.named(name)} +-{number(error)}" for name, error in plan.error.items())
    return label, str(plan.query), str(plan.cost), errors
