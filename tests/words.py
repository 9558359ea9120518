"""Counts of the words that users read: private words, long sentences, long headings, wide code, long messages, length.

    python -m tests.words                  # the figures that are over their ceilings
    python -m tests.words docs/guide       # every finding in these pages or rooms, with its line
    python -m tests.words --write          # write the ceilings anew: look at the difference before you commit

A page is README.md or a page of ``docs/``; a room is a folder of ``dpframe/``, whose docstrings and messages count.
A message is the text of an error, or an entry of ``tests/refusals.toml``: a value in it counts as one word.
``tests/words.toml`` holds a ceiling for each page and room that is not at 0 yet. A page that it does not name has 0, so
a new page starts clean. If you lower a figure, lower its ceiling too. A page of Assurance may be of any length.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.floors import ROOT

DOCS, PACKAGE, CEILINGS = ROOT / "docs", ROOT / "dpframe", ROOT / "tests" / "words.toml"
REFUSALS = ROOT / "tests" / "refusals.toml"
# private words, long sentences, long headings, wide lines of code, long messages
COUNTED = ("words", "sentences", "headings", "code", "messages")
LONGEST = {"sentences": 30, "headings": 6, "code": 84, "messages": 30}  # in words, and code in characters

# The classes of dpframe's errors and warnings, read without importing it.
ERRORS = {
    node.name
    for node in ast.walk(ast.parse((PACKAGE / "errors" / "__init__.py").read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
}

# Private words of this project and idioms, each with the words to write instead.
INSTEAD = {
    r"prices?|priced|pricing": "cost, budget",
    r"pays?|paid|paying|buys?": "spend, cost, charge",
    r"sways?|swayed": "contribute, change",
    r"vouch(?:es|ed|ing)?": "verify, support",
    r"whoever": "anyone who, or name them",
    r"beside": "next to, with",
    r"but for": "except",
    r"so many of": "a number of",
    r"in words": "(say what it says)",
    r"to be had": "available",
    r"and else": "otherwise",
    r"nobody can list|nobody declared|found keys": "unknown groups",
    r"bounds? of contributions?": "contribution bounds",
    r"all tables at once": "two-way tables (marginals)",
    r"better guess(?:es)?": "adjusted value",
    r"error you can live with": "target error",
    r"whose rows? (?:it is|they are)": "the column that identifies the person",
}
PRIVATE = re.compile(rf"(?<![\w-])(?:{'|'.join(INSTEAD)})(?![\w-])", re.IGNORECASE)

# Words of each section, and of each of its pages: a page may have twice the mean planned for its section.
SECTIONS = {"": (1_150, 900), "start": (2_600, 1_050), "guide": (11_000, 1_850), "cookbook": (5_000, 2_000)} | {
    "operate": (3_500, 1_400),
    "concepts": (6_000, 1_500),
    "compare": (2_200, 750),
    "help": (900, 900),
}
FREE = ("assurance", "reference")  # proofs and registers; what is generated or looked up


@dataclass(frozen=True)
class Finding:
    """One finding to correct: its figure, its line and its words."""

    figure: str
    line: int
    text: str


def pages() -> dict[str, Path]:
    """Return every page by its name: README.md, and those of docs/."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return {page.relative_to(ROOT).as_posix(): page for page in found}


def rooms() -> dict[str, list[Path]]:
    """Return the files of each room of the package, by its name."""
    found: dict[str, list[Path]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        found.setdefault(f"dpframe/{file.relative_to(PACKAGE).parts[0]}", []).append(file)
    return found


def found_in_page(text: str) -> list[Finding]:
    """Return all findings of a page."""
    found: list[Finding] = []
    prose: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            if len(line) > LONGEST["code"]:
                found.append(Finding("code", number, line.strip()))
        elif line.startswith("#"):
            words = plain(line.lstrip("#"))
            if len(words.split()) > LONGEST["headings"]:
                found.append(Finding("headings", number, words.strip()))
            prose.append((number, f"{words}."))
        else:
            prose.append((number, line))
    for number, line in prose:
        found += [Finding("words", number, match[0]) for match in PRIVATE.finditer(plain(line))]
    found += [Finding("sentences", number, words) for number, words in long_sentences(prose)]
    return found


def plain(text: str) -> str:
    """Return a line without code, formulas and targets of links."""
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"\$[^$]+\$", "X", text)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<[^>]+>|\*\*|[*_]{1}(?=\w)|(?<=\w)[*_]{1}", "", text)


def long_sentences(prose: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the sentences over the limit; a paragraph, a list item and a table cell end a sentence."""
    start, held = 0, ""
    for number, line in [*prose, (0, "")]:
        begins = bool(re.match(r"\s*(?:[-*|>]|\d+\.|:\s|\[\^)", line))
        if not line.strip() or begins or line.startswith("#"):
            yield from ((start, one) for one in sentences(held) if len(one.split()) > LONGEST["sentences"])
            held = ""
        if line.strip():
            start, held = (start if held else number), f"{held} {line.strip()}"


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph, or of the cells of a table row."""
    cells = paragraph.split("|") if paragraph.lstrip().startswith("|") else [paragraph]
    return [one for cell in cells for one in re.split(r"(?<=[.!?:;])\s+", plain(cell))]


def found_in_source(text: str) -> list[Finding]:
    """Return private words in the docstrings and messages of a file of the package, and long messages."""
    nodes = list(ast.walk(ast.parse(text)))
    strings = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = [
        Finding("words", node.lineno, match[0])
        for node in strings
        if " " in node.value
        for match in PRIVATE.finditer(re.sub(r"`[^`]*`", "X", node.value))
    ]
    errors = [node for node in nodes if isinstance(node, ast.Call) and named(node.func) in ERRORS]
    return found + [
        Finding("messages", error.lineno, message)
        for error in errors
        for message in map(message_of, error.args[:1])
        if len(message.split()) > LONGEST["messages"]
    ]


def named(function: ast.expr) -> str:
    """Return the last name of a called expression."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def message_of(node: ast.expr) -> str:
    """Return a message as it is written, with X for each value in it; empty if it is made elsewhere."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(message_of, node.values))
    if isinstance(node, ast.FormattedValue):
        return "X"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def found_in_refusals(text: str) -> list[Finding]:
    """Return the messages in the table of refusals that are too long; the parts of a list count together."""
    return [
        Finding("messages", 0, f"{part}.{name}: {words}")
        for part, cases in tomllib.loads(text).items()
        for name, case in cases.items()
        for words in [case["words"] if isinstance(case["words"], str) else " X ".join(case["words"])]
        if len(words.split()) > LONGEST["messages"]
    ]


@cache
def findings() -> dict[str, list[Finding]]:
    """Return the findings by page and by room."""
    found = {name: found_in_page(page.read_text(encoding="utf-8")) for name, page in pages().items()}
    for room, files in rooms().items():
        found[room] = [one for file in files for one in found_in_source(file.read_text(encoding="utf-8"))]
    found["tests/refusals.toml"] = found_in_refusals(REFUSALS.read_text(encoding="utf-8"))
    return found


def figures() -> dict[str, dict[str, int]]:
    """Return the number of findings by page or room and figure, without zeros."""
    counts = {
        name: {figure: sum(one.figure == figure for one in found) for figure in COUNTED}
        for name, found in findings().items()
    }
    return {
        name: {figure: count for figure, count in of.items() if count}
        for name, of in counts.items()
        if any(of.values())
    }


def lengths() -> dict[str, int]:
    """Return the words of each page, with its code."""
    return {name: len(page.read_text(encoding="utf-8").split()) for name, page in pages().items()}


def section_of(name: str) -> str:
    """Return the section of a page: the folder that it is in."""
    parts = Path(name).parts
    return parts[1] if len(parts) > 2 else ""


def too_long() -> dict[str, int]:
    """Return the pages and sections that have more words than planned, with their words."""
    words = lengths()
    found = {
        name: count
        for name, count in words.items()
        if section_of(name) not in FREE and count > SECTIONS[section_of(name)][1]
    }
    for section, (budget, _) in SECTIONS.items():
        total = sum(count for name, count in words.items() if section_of(name) == section)
        if total > budget:
            found[f"section {section}"] = total
    return found


def planned(name: str) -> int:
    """Return the planned number of words of a page or a section."""
    if name.startswith("section "):
        return SECTIONS[name.removeprefix("section ")][0]
    return SECTIONS[section_of(name)][1]


def ceilings() -> dict[str, dict[str, int]]:
    """Return the ceilings: a table for each page or room, and the table ``length``."""
    return tomllib.loads(CEILINGS.read_text(encoding="utf-8"))


def over() -> list[str]:
    """Return the figures that are over their ceilings."""
    held = ceilings()
    said = [
        f"{name}: {count} {figure}, held {held.get(name, {}).get(figure, 0)}"
        for name, of in figures().items()
        for figure, count in of.items()
        if count > held.get(name, {}).get(figure, 0)
    ]
    lengths_held = held.get("length", {})
    return said + [
        f"{name}: {count} words, at most {lengths_held.get(name, planned(name))}: shorten it, or another page of it"
        for name, count in too_long().items()
        if count > lengths_held.get(name, 0)
    ]


def written() -> str:
    """Return the ceilings of today as TOML."""
    lines = [
        "# Ceilings of tests/words.py: they fall, and what is not named here is 0. `python -m tests.words --write`",
        "",
    ]
    for name, of in sorted(figures().items()):
        lines += [f'["{name}"]', *(f"{figure} = {count}" for figure, count in of.items()), ""]
    hundreds = {name: -(-count // 100) * 100 for name, count in too_long().items()}  # room for a sentence more
    lines += ["[length]  # in words", *(f'"{name}" = {count}' for name, count in sorted(hundreds.items()))]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print or write what the docstring of this file says."""
    if arguments == ["--write"]:
        CEILINGS.write_text(written(), encoding="utf-8")
        return 0
    if arguments:
        for name, found in findings().items():
            for one in found if name.startswith(tuple(arguments)) else ():
                print(f"{name}:{one.line}: {one.figure}: {one.text}")
        return 0
    found = over()
    print("\n".join(found) or "Nothing is over its ceiling.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
