"""The commands on ledgers: what one says of itself, whether it affords a release, what it verifies, its entries."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from dpframe.accessor import released
from dpframe.cli.exit_codes import TOO_LITTLE
from dpframe.cli.screen import Screen
from dpframe.errors import InvalidArgument, spreadsheet
from dpframe.exact import exact_epsilon
from dpframe.frames import build
from dpframe.frames.build import read_parquet
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.statement import COLUMNS
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


class Format(StrEnum):
    """The formats of the table."""

    csv = "csv"
    json = "json"
    parquet = "parquet"


def export(
    file: File,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; else it is printed.")
    ] = None,
    format: Annotated[Format | None, typer.Option(help="By default as the output's name ends, or csv.")] = None,
) -> None:
    """Write every charge, raised limit and recovery, one row each."""
    kind = format.value if format else (output or "csv").rpartition(".")[2]
    if kind not in set(Format):
        raise InvalidArgument(f"output must end in .csv, .json or .parquet, not {output!r}. Or say --format.")
    if kind == Format.parquet and output is None:
        raise InvalidArgument("output must be named for a Parquet file. Write -o charges.parquet.")
    frame = Ledger.open(file).to_frame()
    if kind == Format.csv:
        rows = [{name: spreadsheet(value) for name, value in row.items()} for row in build.rows(frame)]
        frame = build.of_rows(rows, "polars", COLUMNS)
    written = getattr(frame, f"write_{kind}")(*([output] if output else []))
    if output is None:
        Screen().say(written.rstrip("\n"))


def verify(
    file: File,
    releases: Annotated[
        list[str] | None, typer.Argument(metavar="RELEASES", help="Parquet files of releases that it must know.")
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="HEAD", help="Where else its head is kept: a file or a URL.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    """Follow the chain; exit code 1 if the ledger was changed, is an older copy, or does not know a release.

    A database that was put back is seen only with --head.
    """
    ledger = Ledger.open(file)
    if head is not None:
        if ledger._terms is None or not ledger._terms.has_head:  # which opening it with a head would change
            raise InvalidArgument("head must be left out: this ledger keeps its head nowhere else. Drop --head.")
        ledger = Ledger.open(file, head=head)
    named = [(name, release) for name in releases or [] for release in _releases_in(name)]
    receipt = ledger.verify(*(release for _, release in named))
    if quiet:
        return
    screen, proofs = Screen(), receipt.get("releases", [])
    known = f", and it knows {len(proofs)} of {len(named)} releases" if proofs else ""
    screen.say(f"intact: {receipt['entry']} entries, spent {ledger.spent} of {ledger.limit}{known}", "green")
    if "without_nonce" in receipt:
        screen.say(f"the first {receipt['without_nonce']} entries are of dpframe 0.1 and have no random bytes")
    say_understated(ledger, screen)
    for (name, _), proof in zip(named, proofs, strict=True):
        screen.say(f"{name!r} is entry {proof['entry']}: record {proof['record']}, numbers {proof['numbers']}")
    screen.say(f"head {receipt['head']}")


def _releases_in(file: str) -> list[Any]:
    """The releases in a file: several where they were joined."""
    releases = released(read_parquet(file)).parts
    if any("ledger" not in released(release).provenance for release in releases):
        raise InvalidArgument(f"releases must be of a ledger in a file, and {file!r} is of one in memory.")
    return releases
