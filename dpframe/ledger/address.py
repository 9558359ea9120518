"""The address of a durable ledger: a file, or a database on a server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.files import BESIDE

SHOWN = ("host", "port", "dbname", "user", "service", "sslmode")  # URL options for display; any other may be a secret
SECRET = ("pass", "secret", "token", "key")  # words in the names of secret URL options
PLACE = ("host", "port", "dbname", "user", "service", "options")  # URL options that decide which database is reached
MAKE = "dpf.Ledger(epsilon=..., path=...)"  # how Python makes a ledger; jobs and commands name theirs instead
RULE = "{} must be a file's name, or a database URL such as postgresql+psycopg://host/name"


@dataclass(frozen=True)
class Address:
    """A file, by its full name, which stays valid if the process changes its folder; or the URL of a server."""

    file: str | None = None
    url: str | None = field(default=None, repr=False)  # it may hold a password

    @classmethod
    def of(cls, path: object, argument: str = "path", folder: str = "") -> Address:
        """Read the caller's path or URL; a relative file name is below `folder`, by default the current folder."""
        rule = RULE.format(argument)
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str):
            raise InvalidType(f"{rule}, not {shown(path)}. Write for instance {argument}='clinic.ledger'.")
        if not name or "\0" in name:
            raise InvalidArgument(f"{rule}, not {shown(name)}. Write for instance {argument}='clinic.ledger'.")
        if "://" in name and not os.path.splitdrive(name)[0]:  # C://clinic.ledger is a Windows path
            return cls._of_url(name, rule, folder)
        if name.startswith("sqlite:") or name == ":memory:":
            raise InvalidArgument(f"{rule}, not {shown(name)}. Leave {argument} out for a ledger in memory.")
        return cls(file=os.path.realpath(os.path.join(folder, name)))

    @classmethod
    def _of_url(cls, name: str, rule: str, folder: str) -> Address:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(name)
        except (ArgumentError, ValueError):  # its message could hold a password
            raise InvalidArgument(f"{rule}: this one cannot be read.") from None
        backend = url.get_backend_name()
        if backend == "postgresql":
            return cls(url=name)
        if backend != "sqlite":
            raise InvalidArgument(f"{rule}: sqlite and postgresql are known, not {shown(backend)}.")
        if not url.database or url.database == ":memory:" or url.database.startswith("file:") or url.query:
            raise InvalidArgument(f"{rule}, not {shown(name)}. Write sqlite:///clinic.ledger, without options.")
        return cls(file=os.path.realpath(os.path.join(folder, url.database)))

    @property
    def key(self) -> str:
        """The file name or URL. Pickles carry it, with the password if the URL has one."""
        return self.file or self.url or ""

    @property
    def place(self) -> str:
        """A text that is the same for every spelling of an address: it omits driver, password and timeouts."""
        url = self._parsed()
        if url is None:
            return self.file or ""
        facts = {"host": url.host, "port": url.port, "dbname": url.database, "user": url.username}
        facts |= {name: value for name, value in url.query.items() if name in PLACE}
        return repr(sorted((name, str(value)) for name, value in facts.items() if value))

    def is_beside(self, other: Address) -> bool:
        """Return whether restoring `other` also restores this address: one of its files, or the same database."""
        if self.url is None or other.url is None:
            mine, its = self.file or "", other.file or ""
            return bool(mine) and mine.removeprefix(its) in BESIDE and mine.startswith(its)
        return self._database() == other._database()

    def _database(self) -> tuple[Any, ...]:
        url = self._parsed()
        named = {**{"host": url.host, "port": url.port, "dbname": url.database}, **url.query}
        return tuple(str(named.get(name) or "") for name in ("host", "port", "dbname", "service"))

    @property
    def shown(self) -> str:
        """The address for display, without the password and other possible secrets of a URL."""
        url = self._parsed()
        if url is None:
            return repr(self.file)
        plain = {name: value for name, value in url.query.items() if name in SHOWN}
        return repr(url.set(query=plain).render_as_string(hide_password=True))

    def without_secrets(self, words: str) -> str:
        """Return a text with the secrets of this URL replaced by ``***``."""
        url = self._parsed()
        if url is None:
            return words
        hidden = [value for name, value in url.query.items() if any(word in name for word in SECRET)]
        secrets = [
            url.password,
            *(text for value in hidden for text in ((value,) if isinstance(value, str) else value)),
        ]
        for secret in sorted((str(value) for value in secrets if value), key=len, reverse=True):
            words = words.replace(secret, "***")
        return words

    def _parsed(self) -> Any:
        from sqlalchemy.engine import make_url

        return None if self.url is None else make_url(self.url)
