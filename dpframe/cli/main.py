"""The command line: ``dpframe ledger show|verify|export``. It reads ledgers; only code charges them.

The exit code is 0 where all is well, 1 where the ledger is refused (it is broken, an older copy, or not there), and 2
where the command is not understood.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from dpframe._version import VERSION
from dpframe.accessor import released
from dpframe.errors import DpframeError, InvalidArgument
from dpframe.errors.words import harmless, no_formula
from dpframe.frames import build
from dpframe.frames.build import read_parquet
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.statement import COLUMNS

FORMATS = ("csv", "json", "parquet")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``dpframe``; those of the process by default.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> import dpframe as dpf, pathlib, tempfile
    >>> from dpframe.cli.main import main
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clinic.ledger"
    >>> _ = dpf.Ledger(epsilon=1.0, path=path)
    >>> main(["ledger", "export", str(path)])
    entry,time,kind,label,snapshot,query,unit,epsilon,delta,amount
    0
    """
    options = _parser().parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except InvalidArgument as error:
        _print(f"dpframe: {error}", file=sys.stderr)
        return 2
    except (DpframeError, OSError) as error:
        _print(f"dpframe: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dpframe", description="Look at privacy ledgers. Nothing is ever charged.")
    parser.add_argument("--version", action="version", version=f"dpframe {VERSION}")
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="ledger")
    ledger = subjects.add_parser("ledger", help="a ledger in a file or a database")
    commands = ledger.add_subparsers(dest="command", required=True, metavar="{show,verify,export}")
    show = commands.add_parser("show", help="what was spent, what is left, the last charges")
    verify = commands.add_parser("verify", help="follow the chain; exit code 1 if it was changed or is an older copy")
    export = commands.add_parser("export", help="every charge as a table")
    for command in (show, verify, export):
        command.add_argument("file", help="the ledger: a file or a database URL")
    verify.add_argument("releases", nargs="*", help="Parquet files of releases that the ledger must know")
    export.add_argument("-o", "--output", help="the file to write; without it the table is printed")
    export.add_argument("--format", choices=FORMATS, help="by default as the output's name ends, or csv")
    return parser


def _show(options: Any) -> None:
    _print(str(Ledger.open(options.file)))


def _verify(options: Any) -> None:
    ledger = Ledger.open(options.file)
    named_releases = [(name, release) for name in options.releases for release in _releases_in(name)]
    receipt = ledger.verify(*(release for _, release in named_releases))
    proofs = receipt.get("releases", [])
    known = f", and it knows {len(proofs)} of {len(named_releases)} releases" if proofs else ""
    print(f"intact: {receipt['entry']} entries, spent {ledger.spent} of {ledger.limit}{known}")
    if "without_nonce" in receipt:
        print(f"the first {receipt['without_nonce']} entries are of dpframe 0.1 and have no random bytes")
    for (name, _), proof in zip(named_releases, proofs, strict=True):
        print(f"{name!r} is entry {proof['entry']}: record {proof['record']}, numbers {proof['numbers']}")
    print(f"head {receipt['head']}")


def _releases_in(file: str) -> list[Any]:
    """The releases in a file: several where they were joined."""
    releases = released(read_parquet(file)).parts
    if any("ledger" not in released(release).provenance for release in releases):
        raise InvalidArgument(f"releases must be of a ledger in a file, and {file!r} is of one in memory.")
    return releases


def _export(options: Any) -> None:
    kind = options.format or (options.output or "").rpartition(".")[2]
    if options.output is None:
        kind = options.format or "csv"
    if kind not in FORMATS:
        raise InvalidArgument(f"output must end in .csv, .json or .parquet, not {options.output!r}. Or say --format.")
    if kind == "parquet" and options.output is None:
        raise InvalidArgument("output must be named for a Parquet file. Write -o charges.parquet.")
    frame = Ledger.open(options.file).to_frame()
    if kind == "csv":
        frame = build.of_rows([_as_cells(row) for row in build.rows(frame)], "polars", COLUMNS)
    written = getattr(frame, f"write_{kind}")(*([options.output] if options.output else []))
    if options.output is None:
        _print(written.rstrip("\n"))


def _as_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for a spreadsheet: text that reads as a formula there is quoted, and nothing breaks a line."""
    return {name: no_formula(harmless(value)) if isinstance(value, str) else value for name, value in row.items()}


def _print(text: str, file: TextIO | None = None) -> None:
    """Print what a ledger or a path holds; the screen obeys nothing in it."""
    print("\n".join(map(harmless, text.split("\n"))), file=file)


COMMANDS = {"show": _show, "verify": _verify, "export": _export}
