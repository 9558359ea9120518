"""Definitions of the package by name: a seeded bug names the one that contains its text, whatever the file.

A symbol is a function, a class, a method or a constant of a module: ``_truncated``, ``Laplace.add_noise``, ``SHAVE``.
It is the end of a dotted path that only one definition has. If two modules define a name, the name of the module
precedes it: ``weights.checked``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

PACKAGE = "dpframe"


@dataclass(frozen=True)
class Definition:
    """A name of the package: its file, and its lines there, including decorators."""

    file: Path
    name: str  # name within its module: Laplace.add_noise
    first: int
    last: int

    def dotted(self, root: Path) -> str:
        """Return the full path: dpframe.mechanisms.laplace.Laplace.add_noise."""
        parts = self.file.relative_to(root).with_suffix("").parts
        return ".".join([*(parts[:-1] if parts[-1] == "__init__" else parts), self.name])


def definitions(file: Path) -> tuple[Definition, ...]:
    """Return the current definitions of a file."""
    return _defined(file, file.read_text(encoding="utf-8"))


def found(root: Path, symbol: str) -> Definition:
    """Return the one definition that a symbol names; raise LookupError if there is none or more than one."""
    alike = _names(root).get(symbol.rpartition(".")[2], {})
    named = {dotted: one for dotted, one in alike.items() if f".{dotted}".endswith(f".{symbol}")}
    if len(named) != 1:
        listed = ", ".join(named)
        raise LookupError(f"{symbol!r} must name one definition of the package, not {len(named)}: {listed}")
    (known,) = named.values()
    here = [one for one in definitions(known.file) if one.name == known.name]  # a change may have moved its lines
    if not here:
        raise LookupError(f"{symbol!r} is no longer in {known.file.name}: an earlier change took it away")
    # a name with several definitions, as for several systems, is one symbol from the first to the last of them
    return replace(here[0], first=min(one.first for one in here), last=max(one.last for one in here))


def replaced(definition: Definition, old: str, new: str) -> str:
    """Replace the one occurrence of a text in a definition; return the changed text of the whole file."""
    lines = definition.file.read_text(encoding="utf-8").splitlines(keepends=True)
    inside = "".join(lines[definition.first - 1 : definition.last])
    if inside.count(old) != 1:
        raise LookupError(f"{old!r} must occur once in {definition.name}, not {inside.count(old)} times")
    return "".join([*lines[: definition.first - 1], inside.replace(old, new), *lines[definition.last :]])


@cache
def _names(root: Path) -> dict[str, dict[str, Definition]]:
    """Return every definition of the package by its last name, then by its full name. `found` reads its lines again."""
    names: dict[str, dict[str, Definition]] = {}
    for file in sorted((root / PACKAGE).rglob("*.py")):
        for one in definitions(file):
            names.setdefault(one.name.rpartition(".")[2], {})[one.dotted(root)] = one
    return names


@lru_cache(maxsize=1_000)
def _defined(file: Path, text: str) -> tuple[Definition, ...]:
    return tuple(_within(ast.parse(text).body, file, ()))


def _within(body: list[ast.stmt], file: Path, outer: tuple[str, ...]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield Definition(file, ".".join([*outer, node.name]), first, node.end_lineno or node.lineno)
            if isinstance(node, ast.ClassDef):
                yield from _within(node.body, file, (*outer, node.name))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not outer:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
                yield Definition(file, name, node.lineno, node.end_lineno or node.lineno)
        elif isinstance(node, ast.If | ast.Try):
            yield from _within([*node.body, *node.orelse], file, outer)
