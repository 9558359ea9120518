"""Errors and warnings that dpframe raises on purpose.

::

    DpframeError
    ├── InvalidArgument (ValueError)      a value breaks a rule
    │   ├── MissingArgument (TypeError)   a privacy-relevant argument has no default and was left out
    │   └── InvalidType (TypeError)       a value is of the wrong kind
    ├── UnknownColumn (ValueError)        the frame has no such column
    ├── WrongDtype (TypeError)            the dtype of the column does not suit the query
    ├── LedgerError (RuntimeError)
    │   ├── BudgetExceeded                the ledger has too little left
    │   ├── LedgerUnavailable             the ledger is temporarily unavailable: try again later
    │   └── NoLedger                      the call has no ledger
    ├── AlreadyReleased (TypeError)       the frame is a result, not private data
    ├── NoProvenance (LookupError)        the frame is not, or no longer, a result
    ├── ReleaseFailed (RuntimeError)      the engine, or a function of yours, failed after the charge
    ├── SourceFailed (RuntimeError)       a job cannot open its data; nothing was charged
    └── OutputFailed (OSError)            a file cannot be written; what was released is in the ledger

    UnlimitedBudgetWarning (UserWarning)  the default ledger records, but limits nothing
    BoundsWarning (UserWarning)           bounds clipped values or cut contributions of more than 1%
    WeakPrivacyWarning (UserWarning)      a cost, a limit or bounds give little protection
"""

from __future__ import annotations

import difflib
import inspect
import numbers
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from errno import EINVAL
from itertools import accumulate
from typing import Any, Literal

import numpy as np

PLAIN = (str, bytes, numbers.Number, Decimal, date, time, timedelta, range)


NOTHING = re.compile("nothing was charged|no row was read", re.IGNORECASE)
STAYS = "nothing was released, but what was charged stays charged"


class DpframeError(Exception):
    """Base class of every error that dpframe raises on purpose.

    It is raised itself if a call fails before any row is read, for a reason that dpframe did not foresee. Then the
    fault is in dpframe, nothing was charged, and the message asks for a report.

    Examples
    --------
    >>> import dpframe as dpf
    >>> issubclass(dpf.BudgetExceeded, dpf.DpframeError)
    True
    """


class InvalidArgument(DpframeError, ValueError):
    """A value breaks a rule. Raised before any row is read and before any charge.

    Examples
    --------
    >>> import dpframe as dpf
    >>> try:
    ...     dpf.sum("age", bounds=(90, 0))
    ... except dpf.InvalidArgument as error:
    ...     print(error)
    bounds must be two numbers with lower < upper, not (90, 0). Write for instance bounds=(0, 100).
    """


class MissingArgument(InvalidArgument, TypeError):
    """An argument that decides privacy is missing; dpframe has no default for it.

    Examples
    --------
    >>> import dpframe as dpf
    >>> try:
    ...     dpf.sum("age")
    ... except dpf.MissingArgument as error:
    ...     print(error)
    bounds must be given: they are never taken from the data. Write for instance bounds=(0, 100).
    """


class InvalidType(InvalidArgument, TypeError):
    """A value is of the wrong kind, such as ``epsilon="1"``.

    Examples
    --------
    >>> import dpframe as dpf
    >>> try:
    ...     dpf.Ledger(epsilon="1")
    ... except dpf.InvalidType as error:
    ...     print(error)
    epsilon must be a number, not '1' (str). Write for instance epsilon=0.5.
    """


class UnknownColumn(DpframeError, ValueError):
    """The frame has no column of that name. Nothing was charged.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> try:
    ...     pl.DataFrame({"age": [31]}).dp.count("agee", epsilon=1)
    ... except dpf.UnknownColumn as error:
    ...     print(error)
    column 'agee' is not in the frame. Did you mean 'age'?
    """


class WrongDtype(DpframeError, TypeError):
    """The dtype of a column does not suit the query. Nothing was charged.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> try:
    ...     pl.DataFrame({"name": ["Ann"]}).dp.sum("name", bounds=(0, 1), epsilon=1)
    ... except dpf.WrongDtype as error:
    ...     print(error)
    column 'name' must hold numbers, but its dtype is String. Convert it to numbers, count its rows, group by it, or \
ask for proportion('name', value=...).
    """


class LedgerError(DpframeError, RuntimeError):
    """The ledger cannot be used.

    It was changed, is an older copy, or does not match the call.

    Examples
    --------
    >>> import dpframe as dpf, pickle
    >>> try:
    ...     pickle.dumps(dpf.Ledger(epsilon=1))
    ... except dpf.LedgerError as error:
    ...     print(error)
    a ledger in memory cannot be pickled: the copy would be a second budget for the same people.
    """


class BudgetExceeded(LedgerError):
    """The call costs more than the ledger has left.

    No row was read and nothing was charged.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> ledger = dpf.Ledger(epsilon=1)
    >>> try:
    ...     pl.DataFrame({"age": [31]}).dp.count(epsilon=1.5, ledger=ledger)
    ... except dpf.BudgetExceeded as error:
    ...     print(error)
    the budget is exceeded: the call needs epsilon 1.5, and epsilon 1 of epsilon 1 remains. Lower epsilon,
    or call ledger.raise_limit(...).
    """


class LedgerUnavailable(LedgerError):
    """The ledger is temporarily unavailable: try again later. No row was read.

    It is raised if a server cannot be reached, has no connection left or is stopped, or if another process holds a
    lock. Causes that do not pass by themselves (a wrong password, a missing right, a changed ledger) raise a plain
    `LedgerError`.

    Attributes
    ----------
    charged : {"no", "unknown"}
        ``"no"``: nothing was charged. ``"unknown"``: the connection was lost while the server committed the charge, or
        the failure came after the charge. A charge may stand, and a second call may be charged again.

    Examples
    --------
    >>> import dpframe as dpf
    >>> error = dpf.LedgerUnavailable("the server is stopped: nothing was charged.")
    >>> error.charged
    'no'
    """

    def __init__(self, *words: object, charged: Literal["no", "unknown"] = "no") -> None:
        super().__init__(*words)
        self.charged: Literal["no", "unknown"] = charged


class NoLedger(LedgerError):
    """The call has no ledger, although this process created one.

    It names none and is in no ``with`` block.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> ledger = dpf.Ledger(epsilon=1)
    >>> try:
    ...     pl.DataFrame({"age": [31]}).dp.count(epsilon=1)
    ... except dpf.NoLedger as error:
    ...     print(error)
    no ledger is given. Pass ledger=..., or write the call inside `with ledger:`, or call
    dpf.set_default_ledger(ledger).
    """


class AlreadyReleased(DpframeError, TypeError):
    """The frame is a released result, which is public: no verb need charge for it.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> result = pl.DataFrame({"age": [31]}).dp.count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    >>> try:
    ...     result.dp.count(epsilon=1)
    ... except dpf.AlreadyReleased as error:
    ...     print(error)
    this frame is a released result: it is public, so use it directly, without .dp.count.
    """


class NoProvenance(DpframeError, LookupError):
    """The frame has no provenance: it is not a result, or an operation dropped it.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> try:
    ...     pl.DataFrame({"age": [31]}).dp.provenance
    ... except dpf.NoProvenance as error:
    ...     print(str(error)[:33])
    this frame carries no provenance:
    """


class ReleaseFailed(DpframeError, RuntimeError):
    """The dataframe engine, or the caller's own function, failed after the charge.

    The charge stands. The engine's own message may hold private values and is withheld.

    Examples
    --------
    >>> import dpframe as dpf
    >>> issubclass(dpf.ReleaseFailed, RuntimeError)
    True
    """


class SourceFailed(DpframeError, RuntimeError):
    """A job cannot open its data. It charged no release without a result."""


class OutputFailed(DpframeError, OSError):
    """A file cannot be written.

    The ledger holds what was released, so that a second run of the job costs nothing.
    """


class UnlimitedBudgetWarning(UserWarning):
    """The default ledger records what is spent, but nothing limits the total.

    It is given once in a process.

    Examples
    --------
    >>> import dpframe as dpf
    >>> issubclass(dpf.UnlimitedBudgetWarning, UserWarning)
    True
    """


class BoundsWarning(UserWarning):
    """The bounds of a release affect more than 1% of rows or units.

    They clip values, or cut contributions. The warning comes after the answer, from the noisy numbers of its checks
    alone, and costs nothing. `suggest_bounds` and ``.dp.suggest`` give it if they are too uncertain to recommend any
    bounds. If a filter turns it into an error, the answer is still returned, and the message goes to the log.

    Examples
    --------
    >>> import dpframe as dpf
    >>> issubclass(dpf.BoundsWarning, UserWarning)
    True
    """


class WeakPrivacyWarning(UserWarning):
    """A cost, a limit or bounds give little protection.

    The warning depends on public facts alone, and comes before any charge. It is given once in a ledger for calls with
    an epsilon above 10, and for a ledger with a delta above 0.001. It is also given for bounds that are NumPy scalars,
    such as ``df["age"].min()``: bounds that come from the data reveal something about it.

    Examples
    --------
    >>> import dpframe as dpf, warnings
    >>> with warnings.catch_warnings(record=True) as warned:
    ...     warnings.simplefilter("always")
    ...     ledger = dpf.Ledger(epsilon=1.0, delta=0.01)
    >>> [warning.category.__name__ for warning in warned]
    ['WeakPrivacyWarning']
    """


def reworded(error: DpframeError, said: str) -> DpframeError:
    """Return the same error with another message, and with all its other attributes."""
    other = type(error)(said)
    other.__dict__.update(error.__dict__)
    return other


def stands(error: LedgerError) -> LedgerError:
    """Return the same error for use after a charge; its own message assumes a call that only begins."""
    words = NOTHING.sub(STAYS, str(error))
    if isinstance(error, LedgerUnavailable):
        return LedgerUnavailable(words, charged="unknown")
    return type(error)(words)


@contextmanager
def after_the_charge() -> Iterator[None]:
    """Report each ledger error inside as one that comes after a charge."""
    try:
        yield
    except LedgerError as error:
        raise stands(error) from None


def shown(value: object, *, kind: bool = False) -> str:
    """Return a public argument as an error shows it: its repr, at most 60 characters, with its type if `kind` is set.

    A value that is not plain (a Series, an array, a frame) is only named: its repr would print private values.
    """
    if not _is_plain(value):
        return named(value)
    try:
        text = repr(value.item()) if isinstance(value, np.floating | np.integer) else repr(value)  # as it was typed
    except Exception:  # an int with more digits than Python prints, or a class of the caller
        return named(value)
    text = text if len(text) <= 60 else text[:57] + "..."
    return f"{text} ({type(value).__name__})" if kind else text


def shown_names(names: Iterable[str]) -> str:
    """Return names as an error shows them: whole names within 60 characters, and how many more there are."""
    every = [shown(name) for name in names]
    ends = accumulate(len(text) + 2 for text in every)
    count = max(sum(end <= 60 for end in ends), 1)
    more = f" and {len(every) - count:,} more" if len(every) > count else ""
    return f"[{', '.join(every[:count])}]{more}"


def named(value: object) -> str:
    """Return how an error names a value without showing it: "a Series", "None", "the class Laplace"."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return with_article(type(value).__name__)


_SPELLED = "[b-df-hj-np-tv-xz]*(?![a-z])"  # the rest of a word without a vowel, whose letters are spoken one by one
_SPOKEN_CONSONANT = re.compile(
    rf"eu|one(?=_|\b)|once|st[dr](?![a-z])|u(?:ni(?!n|m|de)|[ku]|r[il]|s(?!h)|t[eic]|id|{_SPELLED})", re.IGNORECASE
)
_SPOKEN_VOWEL = re.compile(
    rf"[aeiou]|hour|heir|hono|honest|ndarray$|(?:hmo|mri|[lm]soa)(?![a-z])|[fhlmnrsx]{_SPELLED}|8|1[18](?!\d)",
    re.IGNORECASE,
)


def with_article(noun: str) -> str:
    """Return a noun with the article that its sound needs: a user, an office, an hour, an MRN, an 8."""
    vowel = _SPOKEN_VOWEL.match(noun) and not _SPOKEN_CONSONANT.match(noun)
    return f"{'an' if vowel else 'a'} {noun}"


LONGEST_NAME = 200  # maximum characters of a label, or of the name of a snapshot, a data set or a plan


def checked_name(argument: str, value: str, longest: int = LONGEST_NAME) -> str:
    """Return a name that people give; refuse one that a record could not hold."""
    checked_text(argument, value)
    if (fault := fault_of_name(value, longest)) is not None:
        raise InvalidArgument(f"{argument} must {fault}, unlike {shown(value)}. Write plain words.")
    return value


def checked_column_name(argument: str, value: str, way_out: str = "Rename the column.") -> str:
    """Return the name of a column; refuse one that no file could hold."""
    if (fault := fault_of_column(value)) is not None:
        raise InvalidArgument(f"{argument} must {fault}, unlike {shown(value)}. {way_out}")
    return value


def checked_text(argument: str, value: object) -> None:
    """Refuse a value that is neither text nor None."""
    if value is not None and not isinstance(value, str):
        raise InvalidType(f"{argument} must be text, not {shown(value)}.")


def no_attribute(words: str) -> AttributeError:
    """Return the error for a missing attribute, to whose message Python adds no guess of its own."""
    return AttributeError(words, name=None, obj=None)


def is_one_of(value: object, choices: Collection[Any]) -> bool:
    """Return whether a value is a plain one among the choices; arrays, columns and expressions are none of them."""
    return (value is None or isinstance(value, (str, bool, int, float))) and value in choices


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that a misspelled name most likely meant, for a "Did you mean"."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1)), None)


def takes_two(function: Callable[..., Any], *named: str) -> bool:
    """Return whether a function can be called with two arguments by position, and with those that are named."""
    try:
        inspect.signature(function).bind(None, None, **dict.fromkeys(named))
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature
        return True
    return True


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(member) for pair in value.items() for member in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    is_period = type(value).__name__ == "Period" and type(value).__module__.partition(".")[0] == "pandas"
    return value is None or isinstance(value, PLAIN) or is_period


LONGEST_REASON = 2_000
LONGEST_COLUMN = 1_000  # no database and no file format in use has longer ones
COMMANDS = {"Cc", "Zl", "Zp"}  # control characters, and the two separators that break a line
HIDDEN = {*COMMANDS, "Cf", "Cs"}  # characters that are not shown as they are: also format characters and surrogates
NO_XML = "\ufffe\uffff"  # not allowed in pictures and workbooks: the library that draws charts would end the process
JOINERS = "\u200c\u200d"  # Persian words and many emoji are spelled with them
TAG = re.compile("<(?=[A-Za-z/!?])")
WIDE = "\uff1d\uff0b\uff0d\uff20"  # full-width = + - @
FORMULA_STARTS = ("=", "+", "-", "@", *WIDE)  # such a cell is a formula in a spreadsheet, also after blanks
FORMULA = rf"(?=[=+@{WIDE}-])"
NUMBER = r"[+-][0-9.]+"  # no formula, if its cell ends after it; a comma between semicolons belongs to a number
AT_SEMICOLON = rf'[;]["\s]*{FORMULA}(?!{NUMBER}(?:,[0-9]+)?[)\]]?(?:;|$))'
AT_COMMA = rf'[,]["\s]*{FORMULA}(?!{NUMBER}(?:[,;)\]]|$))'
IN_CELL, IN_LINE = re.compile(f"({AT_SEMICOLON})"), re.compile(f"({AT_SEMICOLON}|{AT_COMMA})")


def fault_of_name(text: str, longest: int) -> str | None:
    """Return the fault of a new name; None if it has none."""
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
    """Return the fault of a column name that a frame already has: only what no file and no screen can hold."""
    if len(text) > longest:
        return f"have at most {longest:,} characters, not {len(text):,}"
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return "be text that UTF-8 can write, without the character 0"
    return None


def harmless(text: str) -> str:
    r"""Return the text with control characters, marks of direction and the like escaped (``\u202e``).

    The escapes are those of JSON, so that printed JSON still has the same meaning.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(letter) if _is_hidden(letter) else letter for letter in text)


def writable(text: str) -> str:
    """Return the text with surrogates escaped: any file and any frame can hold it."""
    if text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return "".join(_escaped(letter) if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def capital(text: str) -> str:
    """Return the text with a capital first letter, unless it begins with code such as `a.count*2` or `max_rows`."""
    first = text.partition(" ")[0]
    return text if "." in first[:-1] or "_" in first else text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    return f"{capital(text)}."


def how_many(count: int, noun: str, several: str = "") -> str:
    """Return a number with its noun: 1 row, 2 rows; `several` is the plural if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names as a sentence lists them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def no_formula(text: str) -> str:
    """Return the text for a spreadsheet cell, where it stays text even if cut at semicolons, as in much of Europe."""
    plain = IN_CELL.sub(r"\1'", text)
    return f"'{plain}" if plain.startswith("\t") or plain.lstrip().startswith(FORMULA_STARTS) else plain


def no_formulas(line: str) -> str:
    """Return a line of words that a spreadsheet may cut into cells, none of which becomes a formula."""
    return IN_LINE.sub(r"\1'", line)


def spreadsheet(value: Any) -> Any:
    """Return a value for a spreadsheet cell: text that would be a formula there stays text, and breaks no line."""
    return no_formula(harmless(value)) if isinstance(value, str) else value


def no_markup(text: str) -> str:
    """Return the text without tags and backslashes, for a chart.

    Pages write the words of a chart into a script as they are, and a tag would end the script. Vega makes expressions
    of titles and interprets backslashes there: an escape would become the character again, for screen readers.
    """
    return TAG.sub("\u2039", harmless(text)).replace("\\", "\u29f5")


def _is_hidden(letter: str) -> bool:
    if letter in NO_XML:
        return True
    return unicodedata.category(letter) in HIDDEN and letter not in JOINERS


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))


NOT_PLAIN = "is no plain file, but a folder, a pipe, a socket or a device"


class NoPlainFile(OSError):
    """Error for a pipe, a socket, a device or a folder in the place of a file."""


def plain(path: str | bytes | os.PathLike[str], flags: int) -> int:
    """Open a plain file at once, or refuse anything else: the `opener` of ``open``."""
    more = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # no effect on a plain file
    opened = os.open(path, flags | more, 0o666)
    try:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return opened
        raise NoPlainFile(EINVAL, f"it {NOT_PLAIN}", os.fspath(path))
    except BaseException:
        os.close(opened)
        raise


def stands_in_the_way(path: str | os.PathLike[str]) -> bool:
    """Return whether something other than a plain file is at a path, without opening it."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:  # nothing is there, or opening it says why not
        return False


def said(error: OSError) -> str:
    """Return the message of the system for an error, without the path."""
    return error.strerror or " ".join(str(error).split()) or type(error).__name__
