"""The screen: answers to stdout, words about the work to stderr, colors only where a terminal shows them.

The colors follow NO_COLOR. The screen obeys nothing in the words: they come from ledgers, paths and job files.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from dpframe.errors import harmless


@dataclass(frozen=True)
class Screen:
    """The two streams of a command; a quiet one keeps the words about the work to itself, and tells errors."""

    quiet: bool = False

    def say(self, words: str, style: str = "") -> None:
        """Print an answer, as it is asked for."""
        _print(words, style, console())

    def note(self, words: str, style: str = "") -> None:
        """Say what is done meanwhile."""
        if not self.quiet:
            _print(words, style, console(stderr=True))

    @property
    def is_live(self) -> bool:
        """Tell whether somebody watches: a bar may be drawn."""
        return not self.quiet and console(stderr=True).is_terminal


def console(*, stderr: bool = False) -> Console:
    """A console on a stream as it is now; nothing in its text is markup, and no line is broken where none was."""
    return Console(
        file=sys.stderr if stderr else sys.stdout, markup=False, highlight=False, emoji=False, soft_wrap=True
    )


def complain(words: str) -> None:
    """Say what is wrong."""
    line = Text("dpframe: ", style="bold red")
    line.append(_harmless(words), style="not bold default")
    console(stderr=True).print(line)


def _print(words: str, style: str, stream: Console) -> None:
    stream.print(Text(_harmless(words), style=style))


def _harmless(words: str) -> str:
    return "\n".join(map(harmless, words.split("\n")))
