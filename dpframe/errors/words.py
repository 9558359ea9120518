"""Names that people give (labels, data sets, columns): which are refused, and how the strange ones are shown.

A name is written into a ledger that is never rewritten, and read in terminals, notebooks, charts and spreadsheets. A
surrogate cannot be written there at all, an escape character commands a terminal, and a mark of direction makes a
line read backwards.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

LONGEST_NAME = 200  # characters of a label, a snapshot, a data set, the name of a plan
LONGEST_REASON = 2_000
LONGEST_COLUMN = 1_000  # no database and no file format that is in use has longer ones
COMMANDS = {"Cc", "Zl", "Zp"}  # control characters, and the two separators that break a line
HIDDEN = {*COMMANDS, "Cf", "Cs"}  # what is not shown as it is: also what formats, and surrogates
JOINERS = "\u200c\u200d"  # words of Persian and many emoji are spelled with them
TAG = re.compile("<(?=[A-Za-z/!?])")
WIDE = "\uff1d\uff0b\uff0d\uff20"  # = + - @ as wide as the letters of Chinese and Japanese
FORMULA_STARTS = ("=", "+", "-", "@", *WIDE)  # a spreadsheet reads such a cell as a formula, blanks before it or not
PART = rf"(?=[=+@{WIDE}-])(?![+-][0-9.]+(?:[,;)\]]|$))"  # the start of a formula that is no number by itself
IN_CELL, IN_LINE = (re.compile(rf'([{signs}]["\s]*){PART}') for signs in (";", ",;"))


def fault_of_name(text: str, longest: int) -> str | None:
    """The fault of a new name; None where it has none."""
    if len(text) > longest:
        return f"have at most {longest:,} characters, not {len(text):,}"
    if text.isprintable():
        return None
    if (fault := fault_of_column(text, longest)) is not None:
        return fault
    if any(unicodedata.category(letter) in COMMANDS for letter in text):
        return "hold no control characters, such as tabs, line breaks or escapes"
    return None


def fault_of_column(text: str, longest: int = LONGEST_COLUMN) -> str | None:
    """As `fault_of_name`, for a column that a frame has already: only what no file and no screen can hold."""
    if len(text) > longest:
        return f"have at most {longest:,} characters, not {len(text):,}"
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return "be text that UTF-8 can write, without the character 0"
    return None


def harmless(text: str) -> str:
    r"""The text with control characters, marks of direction and the like as escapes (``\u202e``), all else as it is.

    The escapes are those of JSON, so that printed JSON still says the same.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(letter) if _is_hidden(letter) else letter for letter in text)


def writable(text: str) -> str:
    """The text with surrogates as escapes: what any file and any frame can hold."""
    if text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return "".join(_escaped(letter) if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def capital(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names as a sentence lists them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def no_formula(text: str) -> str:
    """The text as a cell of a spreadsheet that stays text, also where it is cut at semicolons, as in much of Europe."""
    plain = IN_CELL.sub(r"\1'", text)
    return f"'{plain}" if plain.startswith("\t") or plain.lstrip().startswith(FORMULA_STARTS) else plain


def no_formulas(line: str) -> str:
    """A line of words, which a spreadsheet may cut into cells, of which none becomes a formula."""
    return IN_LINE.sub(r"\1'", line)


def spreadsheet(value: Any) -> Any:
    """A value for a cell of a spreadsheet: text that would be a formula there stays text, and breaks no line."""
    return no_formula(harmless(value)) if isinstance(value, str) else value


def no_markup(text: str) -> str:
    """The text without tags and backslashes, for a chart.

    Pages write the words of a chart into a script as they are, and a tag would end it. Vega makes expressions of titles
    and reads what follows a backslash there: an escape would become the character again, in a label that is read aloud.
    """
    return TAG.sub("\u2039", harmless(text)).replace("\\", "\u29f5")


def _is_hidden(letter: str) -> bool:
    return unicodedata.category(letter) in HIDDEN and letter not in JOINERS


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))
