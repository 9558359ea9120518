"""The floors of the package: the purpose of each room, and from where it may import.

`tests/project/test_floors.py` compares the package with this file. `python -m tests.floors` writes the map in
CONTRIBUTING.md anew.
"""

from __future__ import annotations

from pathlib import Path

ROOMS: dict[str, tuple[float, str]] = {
    "__main__": (10, "python -m dpframe"),
    "__init__": (9, "public names"),
    "mypy": (9, "a plugin for mypy: the type of .dp"),
    "_names": (8.9, "where public names live"),
    "cli": (9, "the command line"),
    "jobs": (8.95, "a job file: its table, ledger, releases and outputs; planned as a whole, then run"),
    "reports": (8.5, "reports of files as HTML"),
    "streams": (8.2, "a series over declared periods that is charged once, from its question to its charts"),
    "accessor": (8, "df.dp: a call becomes a Call"),
    "local": (8, "the local model"),
    "audit": (8, "audits"),
    "testing": (8, "contract checks for extensions; contexts for tests of one's own pipeline"),
    "derived": (7.5, "numbers computed of released ones, with the exact law of their noise and a record of their own"),
    "release": (7, "the path: check, charge, measure, add noise, denoise, build; together; replay; provenance"),
    "ledger": (6, "the one mutable thing, with its stores, entries, heads and the words of a statement"),
    "planning": (5, "call, sensitivity, price, calibration, accuracy, auto, joint"),
    "accounting": (4, "how losses add up; compositions; the comparison of accountings"),
    "display": (
        3.5,
        "text, HTML, charts, tables of public numbers, by which plans, ledgers and results show themselves",
    ),
    "engines": (3, "rows in, exact totals out: a table's columns, their sums, the same compiled, tables in pieces"),
    "mechanisms": (3, "noise, calibrated"),
    "frames": (2.5, "results: build, mark, write, register; which library a frame is of, which engines ask as well"),
    "queries": (2, "query, keys, bins, statistics"),
    "privacy": (1, "who is protected, and how much"),
    "noise": (1, "draws every random bit"),
    "denoise": (1, "arrays in, arrays out"),
    "files": (1.5, "files that are written: whole, brought to disk, and never over a ledger"),
    "exact": (0.5, "directed rounding, exact decimals; it refuses, so errors stand below it"),
    "errors": (0, "every error"),
    "_version": (0, "the version"),
}
# Modules that are files, not folders.
TOP = {
    "__init__",
    "__main__",
    "_names",
    "_version",
    "errors",
    "exact",
    "files",
    "mypy",
    "privacy",
    "reports",
    "testing",
}

DATAFRAMES = {"narwhals", "pandas", "polars", "pyarrow"}
KNOW_DATAFRAMES = {"engines", "frames"}
REACH_ROWS = {"release", "streams", "testing"}  # the rooms that may import engines
WITHOUT_FRAMES = {"ledger"}  # rooms above frames that still must not import it
ENGINES_KNOW = {"frames.kinds"}  # the part of frames that engines may import: it builds and keeps no result

# Files whose built-in errors never reach a caller: small functions raise them, and others convert them.
PARSERS = {"exact", "frames.foreign", "ledger.reading", "ledger.terms", "release.facts", "release.path"}

ROOT = Path(__file__).parent.parent
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- map: python -m tests.floors -->\n", "<!-- end of map -->\n"


def map_of_rooms() -> str:
    """Return the rooms that exist, the highest floor first, as the block of text in CONTRIBUTING.md."""
    lines = []
    for room, (floor, words) in sorted(ROOMS.items(), key=lambda one: -one[1][0]):
        folder, file = ROOT / "dpframe" / room, ROOT / "dpframe" / f"{room}.py"
        if folder.is_dir() or file.is_file():
            lines.append(f"{floor:<4} {room + ('/' if folder.is_dir() else ''):<12} {words}\n")
    return "".join(["```\n", *lines, "```\n"])


def with_map(text: str) -> str:
    """Return a page with a new map between its two marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{map_of_rooms()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    CONTRIBUTING.write_text(with_map(CONTRIBUTING.read_text(encoding="utf-8")), encoding="utf-8")
