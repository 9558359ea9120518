"""``${NAME}`` in a job file: what the command line says, or the environment, whose values are never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpframe.errors import InvalidArgument, shown

VARIABLE = re.compile(r"\$\{([^}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHORT = 4  # characters; a shorter secret is hidden only where it stands alone, or words could not be read


@dataclass
class Variables:
    """The values for ``${NAME}``: said ones before those of the environment."""

    said: Mapping[str, str]
    environment: Mapping[str, str]
    file: str = ""
    used: dict[str, str] = field(default_factory=dict)  # the names that the file has, with their values

    def filled(self, value: Any) -> Any:
        """A value of a file with its variables filled in; only strings have any."""
        if isinstance(value, str):
            return VARIABLE.sub(lambda found: self._value(found[1]), value)
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        if isinstance(value, dict):
            return {name: self.filled(one) for name, one in value.items()}
        return value

    def _value(self, name: str) -> str:
        if not NAME.fullmatch(name):
            raise InvalidArgument(
                f"{self.file}: a variable must be written as ${{NAME}}, of letters, digits and _, not "
                f"{shown('${' + name + '}')}."
            )
        value = self.said.get(name) or self.environment.get(name)
        if not value:
            raise InvalidArgument(
                f"{self.file}: ${{{name}}} must have a value, and has none. Say it as --set {name}=..., or set it in "
                "the environment."
            )
        self.used[name] = value
        return value

    def check_used(self) -> None:
        """Refuse a value that was said and that the file does not ask for."""
        for name in self.said:
            if name not in self.used:
                raise InvalidArgument(f"{self.file}: --set {name}=... must name a variable of the file. Drop it.")

    def hidden(self, words: str) -> str:
        """The same words, with the names of variables for what the environment holds."""
        secrets = {value: name for name, value in self.used.items() if name not in self.said}
        for value in sorted(secrets, key=len, reverse=True):
            name = f"${{{secrets[value]}}}"
            words = words.replace(shown(value), name)  # which is cut, or has escapes
            if len(value) >= SHORT:
                words = words.replace(value, name)
            else:
                words = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", name.replace("\\", r"\\"), words)
        return words


def said_of(pairs: Sequence[str]) -> dict[str, str]:
    """The values of ``--set NAME=VALUE``."""
    said = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not NAME.fullmatch(name) or not value:
            raise InvalidArgument(
                f"--set must be NAME=VALUE, not {shown(pair)}. Write for instance --set WEEK=2026-W47."
            )
        said[name] = value
    return said
