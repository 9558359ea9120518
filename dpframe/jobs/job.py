"""A job: what its file says, as plain values; and tables of that file, whose errors say where in it.

In a value ``${NAME}`` stands for what the command line says, or the environment, whose values are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from dpframe.errors import DpframeError, InvalidArgument, InvalidType, MissingArgument, closest, reworded, shown
from dpframe.frames.scans import Scan
from dpframe.privacy import PrivacyUnit
from dpframe.queries.keys import REST


@dataclass(frozen=True)
class Table:
    """One table: where it stands, for people to read, and its values."""

    where: str
    values: Mapping[str, Any]

    def check_keys(self, known: Iterable[str]) -> None:
        """Refuse a key that is none, with the one that was meant where it is clear."""
        names = sorted(known)
        for key in self.values:
            if key not in names:
                near = closest(key, names)
                way_out = f"Did you mean {near!r}?" if near else f"Its keys are {', '.join(names)}."
                raise InvalidArgument(f"{self.where}: {key!r} is not a key of this table. {way_out}")

    def text(self, key: str, example: str) -> str:
        """A string that must be there."""
        value = self.maybe_text(key)
        if value is None:
            raise MissingArgument(f"{self.where}: {key} must be given. Write for instance {example}.")
        return value

    def maybe_text(self, key: str) -> str | None:
        """A string, or None where there is none."""
        value = self.values.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise InvalidType(f"{self.where}: {key} must be a string that is not empty, not {shown(value)}.")
        if value is not None and "\0" in value:
            raise InvalidArgument(f"{self.where}: {key} must not hold the character 0, unlike {shown(value)}. Drop it.")
        return value

    def choice(self, key: str, options: Iterable[str], value: str | None) -> str | None:
        """The value of a key that must be one of a few words."""
        names = list(options)
        if value is None or value in names:
            return value
        near = closest(value, names)
        way_out = f"Did you mean {near!r}?" if near else "Take one of them."
        raise InvalidArgument(f"{self.where}: {key} must be one of {', '.join(names)}, not {shown(value)}. {way_out}")

    def table(self, key: str) -> Table:
        """A table inside this one; an empty one where there is none."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise InvalidType(f"{self.where}: {key} must be a table, not {shown(value)}. Write [{key}] above its keys.")
        return Table(f"{self.where.partition(',')[0]}, [{key}]", value)

    def tables(self, key: str) -> list[Table]:
        """The tables of a list, each of which says its number."""
        value = self.values.get(key, [])
        if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
            raise InvalidType(f"{self.where}: {key} must be a list of tables. Write [[{key}]] above the keys of each.")
        return [Table(f"{self.where}, [[{key}]] {number}", one) for number, one in enumerate(value, start=1)]


def plain(value: Any) -> Any:
    """A value of a file as Python has it: floats, None for ``{missing = true}`` and REST for ``{rest = true}``."""
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
    """Say of a refusal to which part of the file it belongs."""
    try:
        yield
    except DpframeError as error:
        words = str(error)
        raise reworded(error, words if words.startswith(where) else f"{where}: {words}") from None


VARIABLE = re.compile(r"\$\{([^}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CUT = "..."  # behind what `shown` has cut
SHORT = 4  # characters; a shorter secret is hidden only where it stands alone, or words could not be read


@dataclass
class Variables:
    """The values for ``${NAME}``: said ones before those of the environment."""

    said: Mapping[str, str]
    environment: Mapping[str, str]
    file: str = ""
    used: dict[str, str] = field(default_factory=dict)  # the names that the file has, with their values
    forms: dict[str, str] = field(default_factory=dict)  # texts that hold values of the environment, as they are shown

    def filled(self, value: Any) -> Any:
        """A value of a file with its variables filled in; only strings have any."""
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
        """A whole value of the file, for people to read: with names for what the environment filled in."""
        return self.forms.get(text, text)

    def made_of(self, given: str, *texts: str) -> None:
        """Show texts that were made of a value of the file (its place on this machine) as that value is shown."""
        if given in self.forms:
            self.forms |= dict.fromkeys(texts, self.forms[given])

    def check_used(self) -> None:
        """Refuse a value that was said and that the file does not ask for."""
        for name in self.said:
            if name not in self.used:
                raise InvalidArgument(f"{self.file}: --set {name}=... must name a variable of the file. Drop it.")

    def hidden(self, words: str) -> str:
        """The same words, with the names of variables for what the environment holds."""
        secrets = {value: f"${{{name}}}" for name, value in self.used.items() if name not in self.said} | self.forms
        secrets |= {form(value): name for value, name in secrets.items() for form in (shown, _escaped)}
        patterns = [
            re.escape(value) if len(value) >= SHORT else rf"(?<!\w){re.escape(value)}(?!\w)"
            for value in sorted(secrets, key=len, reverse=True)
        ]
        if not patterns:
            return words
        *before, last = re.sub("|".join(patterns), lambda found: secrets[found[0]], words).split(CUT)
        return CUT.join([*(_without_beginning(part, secrets) for part in before), last])


def _escaped(value: str) -> str:
    """A text as it stands in the repr of a list."""
    return repr(value)[1:-1]


def _without_beginning(words: str, secrets: Mapping[str, str]) -> str:
    """The same words, which were cut behind, with its name for the beginning of a secret at their end."""
    for value in sorted(secrets, key=len, reverse=True):
        for length in range(min(len(value), len(words)), SHORT - 1, -1):
            if words.endswith(value[:length]):
                return words[:-length] + secrets[value]
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


@dataclass(frozen=True)
class LedgerTerms:
    """The ledger that is charged: where it is, whom it protects, and how much it holds."""

    where: str
    place: str = field(repr=False)  # a URL may hold a password
    unit: PrivacyUnit
    terms: Mapping[str, Any]  # epsilon, delta, accounting, keys_delta, dataset, as far as they are said
    given: str = field(repr=False)  # its path or URL, before it was put below the folder of the job
    head: str | None = field(default=None, repr=False)  # where else its head is kept


@dataclass(frozen=True)
class Question:
    """One release: a verb with its arguments, of groups or of all rows."""

    where: str
    label: str
    verb: str
    group_by: tuple[Any, ...]
    keys: Any
    statistics: Mapping[str, Any]
    arguments: Mapping[str, Any]  # the price, label and snapshot among them

    @property
    def snapshot(self) -> str:
        """The name of the state of the data."""
        return str(self.arguments["snapshot"])


@dataclass(frozen=True)
class Output:
    """One file that is written of a release."""

    where: str
    label: str
    path: Path
    format: str
    written: str  # its path as the job file has it, with the names of variables that the environment fills in


@dataclass(frozen=True)
class Report:
    """The report that is written of the releases of a job together."""

    where: str
    path: Path
    written: str  # its path as the job file has it
    title: str | None
    labels: tuple[str, ...]  # of the releases that it shows, in the order of the job
    words: Mapping[str, Any]  # text, labels and order, as `Ledger.report` takes them

    @property
    def label(self) -> str:
        """The releases, as the audit trail names them."""
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
    checks: Any = None  # what its releases check, where they do not say it
