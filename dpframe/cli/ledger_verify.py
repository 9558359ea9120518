"""``dpframe ledger verify``: whether the ledger is whole, and whether it charged for releases as they say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpframe.accessor import released
from dpframe.cli.ledger_words import File, say_understated
from dpframe.cli.screen import Screen
from dpframe.errors import InvalidArgument
from dpframe.frames.build import read_parquet
from dpframe.ledger.ledger import Ledger


def verify(
    file: File,
    releases: Annotated[
        list[str] | None, typer.Argument(metavar="RELEASES", help="Parquet files of releases that it must know.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
) -> None:
    """Follow the chain; exit code 1 if the ledger was changed, is an older copy, or does not know a release."""
    ledger = Ledger.open(file)
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
