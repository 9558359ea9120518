"""The source of the package for tests about it: its files, each parsed once in a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "dpframe"
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return every node of a file, its module first."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
