"""A job: the plain values of its file, and the tables of that file, whose errors name the place in it.

In a value, ``${NAME}`` stands for a value of the command line or of the environment. The latter are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from dpframe.errors import DpframeError, InvalidArgument, InvalidType, MissingArgument, closest, reworded, shown
from dpframe.frames.scans import Scan
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import REST


@dataclass(frozen=True)
class Table:
    """One table: its place in the file, as errors name it, and its values."""

    where: str
    values: Mapping[str, Any]

    def check_keys(self, known: Iterable[str]) -> None:
        """Refuse a key that does not exist, and suggest the one that was probably meant."""
        names = sorted(known)
        for key in self.values:
            if key not in names:
                near = closest(key, names)
                way_out = f"Did you mean {near!r}?" if near else f"Its keys are {', '.join(names)}."
                raise InvalidArgument(f"{self.where}: {key!r} is not a key of this table. {way_out}")

    def text(self, key: str, example: str) -> str:
        """Return a string that must be given."""
        value = self.maybe_text(key)
        if value is None:
            raise MissingArgument(f"{self.where}: {key} must be given. Write for instance {example}.")
        return value

    def maybe_text(self, key: str) -> str | None:
        """Return a string, or None if it is not given."""
        value = self.values.get(key)
        if value is not None and not (isinstance(value, str) and value):
            words = str(value) if isinstance(value, (date, time)) else shown(value)
            quotes = type(value) in (int, Decimal, date, datetime, time)
            way_out = " Write it in quotes." if quotes else ""
            raise InvalidType(f"{self.where}: {key} must be a string that is not empty, not {words}.{way_out}")
        if value is not None and "\0" in value:
            raise InvalidArgument(f"{self.where}: {key} must not hold the character 0, unlike {shown(value)}. Drop it.")
        return value

    def choice(self, key: str, options: Iterable[str], value: str | None) -> str | None:
        """Return the value of a key, if it is None or one of the options."""
        names = list(options)
        if value is None or value in names:
            return value
        near = closest(value, names)
        way_out = f"Did you mean {near!r}?" if near else "Take one of them."
        raise InvalidArgument(f"{self.where}: {key} must be one of {', '.join(names)}, not {shown(value)}. {way_out}")

    def table(self, key: str) -> Table:
        """Return a table inside this one, or an empty one if it is not given."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise InvalidType(f"{self.where}: {key} must be a table. Write [{key}] above its keys.")
        return Table(f"{self.where.partition(',')[0]}, [{key}]", value)

    def tables(self, key: str) -> list[Table]:
        """Return the tables of a list, each with its number."""
        value = self.values.get(key, [])
        if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
            raise InvalidType(f"{self.where}: {key} must be a list of tables. Write [[{key}]] above the keys of each.")
        return [Table(f"{self.where}, [[{key}]] {number}", one) for number, one in enumerate(value, start=1)]


def plain(value: Any) -> Any:
    """Return a value of a file in Python: floats, None for ``{missing = true}`` and REST for ``{rest = true}``."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        if value == {"rest": True}:
            return REST
        return None if value == {"missing": True} else {name: plain(one) for name, one in value.items()}
    return value


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Add the part of the file to the message of a refusal."""
    try:
        yield
    except DpframeError as error:
        words = str(error)
        raise reworded(error, words if words.startswith(where) else f"{where}: {words}") from None


VARIABLE = re.compile(r"\$\{([^}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CUT = "..."  # the end of a text that `shown` has cut
SHORT = 4  # a secret of fewer characters is hidden only as a whole word, so that messages stay readable


@dataclass
class Variables:
    """The values for ``${NAME}``: those of the command line (`said`) precede those of the environment."""

    said: Mapping[str, str]
    environment: Mapping[str, str]
    file: str = ""
    used: dict[str, str] = field(default_factory=dict)  # the names in the file, with their values
    forms: dict[str, str] = field(default_factory=dict)  # texts with values of the environment, and their shown form

    def filled(self, value: Any) -> Any:
        """Return a value of a file with the variables in its strings filled in."""
        if isinstance(value, str):
            text = VARIABLE.sub(lambda found: self._value(found[1]), value)
            written = VARIABLE.sub(lambda found: self.said.get(found[1]) or found[0], value)
            if text != written:
                self.forms[text] = written
            return text
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
                f"{self.file}: ${{{name}}} must have a value, and has none. Set it in the environment, or, unless it "
                f"is secret, write --set {name}=..."
            )
        self.used[name] = value
        return value

    def written(self, text: str) -> str:
        """Return a whole value of the file for people to read, with names instead of values of the environment."""
        return self.forms.get(text, text)

    def made_of(self, given: str, *texts: str) -> None:
        """Show texts derived from a value of the file, such as its path on this machine, as that value is shown."""
        if given in self.forms:
            self.forms |= dict.fromkeys(texts, self.forms[given])

    def check_used(self) -> None:
        """Refuse a value of the command line for a variable that the file does not have."""
        for name in self.said:
            if name not in self.used:
                raise InvalidArgument(f"{self.file}: --set {name}=... must name a variable of the file. Drop it.")

    def hidden(self, words: str) -> str:
        """Return the words with the names of variables instead of values of the environment."""
        secrets = {value: f"${{{name}}}" for name, value in self.used.items() if name not in self.said} | self.forms
        secrets |= {form(value): name for value, name in secrets.items() for form in (shown, _escaped)}
        patterns = [
            re.escape(value) if len(value) >= SHORT else _alone(value)
            for value in sorted(secrets, key=len, reverse=True)
        ]
        if not patterns:
            return words
        *before, last = re.sub("|".join(patterns), lambda found: secrets[found[0]], words).split(CUT)
        return CUT.join([*(_without_beginning(part, secrets) for part in before), last])


def _alone(value: str) -> str:
    """Return a pattern of a short value outside of words; a folder such as "." is not the end of a sentence."""
    text = re.escape(value)
    if set(value) <= set("./\\"):
        return rf"(?<!\S){text}(?!\S)|(?<=['\"]){text}(?=['\"])"
    return rf"(?<!\w){text}(?!\w)"


def _escaped(value: str) -> str:
    """Return a text as it appears in the repr of a list."""
    return repr(value)[1:-1]


def _without_beginning(words: str, secrets: Mapping[str, str]) -> str:
    """Return words that were cut at the end, with the name of a secret instead of its beginning there."""
    for value in sorted(secrets, key=len, reverse=True):
        for length in range(min(len(value), len(words)), SHORT - 1, -1):
            if words.endswith(value[:length]):
                return words[:-length] + secrets[value]
    return words


_VALUE = r"""[-+\w.'"]+"""
_TEXT = r"""("[^"]*"|'[^']*')"""
_START, _END = r"(?<!['\"\w])", r"(?!['\"\w])"  # a word in the quotes of a name stays
_OPEN = r"Open it with dpf\.Ledger\.open\(path\)"
IN_TOML = tuple(
    (re.compile(python), toml)
    for python, toml in (
        (r"Decimal\('([^']*)'\)", r"\1"),
        (r"Fraction\((\d+), (\d+)\)", r'"\1/\2"'),
        (r"\w+=range\([^)]*\), or ", ""),
        (rf"dpf\.dates\({_TEXT}, {_TEXT}, every={_TEXT}\)", r"{first = \1, last = \2, every = \3}"),
        (r"dpf\.discover\(delta=([-\w.]+)\)", r"{discover = {delta = \1}}"),
        (rf"dpf\.bins\({_TEXT}, (\[[^\]]*\])\)", r"{column = \1, bins = \2}"),
        (r"dpf\.REST", "{rest = true}"),
        (rf"\(({_VALUE}), None\)", r"{low = \1}"),
        (rf"((?:[=:\[,]|not|unlike|pair) ?)\(({_VALUE}(?:, {_VALUE})+|lower, upper)\)", r"\1[\2]"),
        (rf"([{{,] ?){_TEXT}: ", r"\1\2 = "),
        (r", a function \([^)]*\) -> \w+", ""),
        (r"list, tuple or range", "list"),
        (r"must be a dict", "must be a table"),
        (rf"(denoise must .*?){_START}None{_END}", r'\1"none"'),
        (r"durations or None", "durations or {missing = true}"),
        (rf"{_START}(must be|or|as in .*, not) None{_END}", r"\1 left out"),
        (rf"{_START}True{_END}", "true"),
        (rf"{_START}False{_END}", "false"),
        (r"Name a release by its label: count\(.*?\)\.", "Write one of these."),
        (rf"{_OPEN}, and raise its limit with raise_limit, or", "Say the same here, raise its limit in Python, or"),
        (rf"{_OPEN}, or", "Say the same here, or"),
        (r"Say where: dpf\.Ledger\.open\(path, head=\.\.\.\)", 'Write head = "..." in [ledger]'),
        (r"dpf\.discover needs", "{discover = {}} needs"),
        (r"dpf\.Ledger\(.*?(keys_delta)=([-\w.]+)\)", r"\1 = \2 in [ledger]"),
        (r"or a dict with", "or a table with"),
        (r"as in \w+\((\[[^\]]*\]), \w+=\.\.\.\)", r"as in columns = \1"),
        (rf"as in \w+\({_TEXT}, \w+=\.\.\.\)", r"as in column = \1"),
        (rf"as in \w+\((?:{_TEXT}, )?(\w+)=({_VALUE}), [^)]*\)", r"as in \2 = \3"),
    )
)


def words_of(error: BaseException, variables: Variables) -> str:
    """Return the words of an error for a job. Secrets are hidden first, as they were written."""
    words = variables.hidden(str(error))
    for python, toml in IN_TOML:
        words = python.sub(toml, words)
    return words


def said_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--set NAME=VALUE``."""
    said = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not NAME.fullmatch(name) or not value:
            raise InvalidArgument(
                f"--set must be NAME=VALUE, not {shown(pair)}. Write for instance --set WEEK=2026-W47."
            )
        said[name] = value
    return said


@dataclass(frozen=True)
class LedgerTerms:
    """The ledger to charge: its place, its privacy unit and its budget."""

    where: str
    place: str = field(repr=False)  # a URL may hold a password
    unit: PrivacyUnit
    terms: Mapping[str, Any]  # those of epsilon, delta, accounting, keys_delta and dataset that are given
    given: str = field(repr=False)  # its path or URL, with its variables filled in, without the job's folder
    head: str | None = field(default=None, repr=False)  # the other place where its head is kept


@dataclass(frozen=True)
class Question:
    """One release: a verb with its arguments, for groups or for all rows."""

    where: str
    label: str
    verb: str
    group_by: tuple[Any, ...]
    keys: Any
    statistics: Mapping[str, Any]
    arguments: Mapping[str, Any]  # including the cost, label and snapshot

    @property
    def snapshot(self) -> str:
        """The name of the state of the data."""
        return str(self.arguments["snapshot"])


@dataclass(frozen=True)
class Output:
    """One file to write from a release."""

    where: str
    label: str
    path: Path
    format: str
    written: str  # its path as the job file has it, with names of variables for values of the environment


@dataclass(frozen=True)
class Report:
    """The report of several releases of a job."""

    where: str
    path: Path
    written: str  # its path as the job file has it
    title: str | None
    labels: tuple[str, ...]  # the labels of its releases, in the order of the job
    words: Mapping[str, Any]  # text, labels and order, as `Ledger.report` takes them

    @property
    def label(self) -> str:
        """The labels of its releases, as the audit trail names them."""
        return ", ".join(self.labels)


@dataclass(frozen=True)
class Job:
    """A whole job."""

    file: Path
    digest: str
    engine: str
    scan: Scan
    source_where: str
    ledger: LedgerTerms
    questions: tuple[Question, ...]
    outputs: tuple[Output, ...]
    audit: Path | None
    variables: Variables = field(repr=False)
    report: Report | None = None
    checks: Any = None  # the default of `checks` for its releases
