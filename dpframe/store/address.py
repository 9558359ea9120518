"""Where a durable ledger is kept: a file, or a database on a server."""

from __future__ import annotations

import os
from dataclasses import dataclass

from dpframe.errors import InvalidArgument, InvalidType, shown

RULE = "path must be a file's name, or a database URL such as postgresql+psycopg://host/name"


@dataclass(frozen=True)
class Address:
    """A file (its full name, so that it stays the same file wherever the process goes) or a server's URL."""

    file: str | None = None
    url: str | None = None

    @classmethod
    def of(cls, path: object) -> Address:
        """Read the caller's words."""
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str):
            raise InvalidType(f"{RULE}, not {shown(path)}. Write for instance path='clinic.ledger'.")
        if not name or "\0" in name:
            raise InvalidArgument(f"{RULE}, not {shown(name)}. Write for instance path='clinic.ledger'.")
        if "://" in name:
            return cls._of_url(name)
        if name.startswith("sqlite:") or name == ":memory:":
            raise InvalidArgument(f"{RULE}, not {shown(name)}. Leave path out for a ledger in memory.")
        return cls(file=os.path.realpath(name))

    @classmethod
    def _of_url(cls, name: str) -> Address:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(name)
        except (ArgumentError, ValueError):  # its message could hold a password
            raise InvalidArgument(f"{RULE}: this one cannot be read.") from None
        backend = url.get_backend_name()
        if backend == "postgresql":
            return cls(url=name)
        if backend != "sqlite":
            raise InvalidArgument(f"{RULE}: sqlite and postgresql are known, not {shown(backend)}.")
        if not url.database or url.database == ":memory:" or url.database.startswith("file:") or url.query:
            raise InvalidArgument(f"{RULE}, not {shown(name)}. Write sqlite:///clinic.ledger, without options.")
        return cls(file=os.path.realpath(url.database))

    @property
    def key(self) -> str:
        """What leads here again: it goes into pickles, with a password if the URL has one."""
        return self.file or self.url or ""

    @property
    def shown(self) -> str:
        """For people to read, without a password."""
        if self.url is None:
            return repr(self.file)
        from sqlalchemy.engine import make_url

        return repr(make_url(self.url).render_as_string(hide_password=True))
