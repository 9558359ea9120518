"""A private PostgreSQL server for the drills, in a folder and on a socket in it, never on a network.

It uses an installed server, and installs none.
"""

from __future__ import annotations

import getpass
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)  # Debian's folders of programs not on PATH


@dataclass(frozen=True)
class Server:
    """A cluster that can be stopped and started."""

    programs: Path
    folder: Path
    user: str | None  # the user that runs it: a server refuses to run as root
    waits: bool = True  # for the disk, which a crash of the server alone does not require

    def run(self, program: str, *words: str) -> None:
        command = [str(self.programs / program), *words]
        log = self.folder / "command.log"  # a file, not a pipe: the server would keep the pipe open
        with log.open("w") as output:
            done = subprocess.run(command, stdout=output, stderr=output, check=False, user=self.user, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(f"{program}: {log.read_text()[-400:]}")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c max_connections=60"
        options += "" if self.waits else " -c fsync=off"
        log = str(self.folder / "server.log")
        self.run("pg_ctl", "start", "-w", "-t", "300", "-D", str(self.folder / "data"), "-l", log, "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; ``immediate`` is a crash: nothing is written, and the next start recovers."""
        self.run("pg_ctl", "stop", "-w", "-t", "300", "-D", str(self.folder / "data"), "-m", mode)

    def url(self, name: str) -> str:
        """Create a database and return its address."""
        import psycopg

        owner = self.user or getpass.getuser()
        with psycopg.connect(host=str(self.folder), user=owner, dbname="postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return f"postgresql+psycopg://{owner}@/{name}?host={self.folder}"


def missing() -> str | None:
    """Return why no server can be started here, or None."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'dpframe[postgres]'"
    if programs() is None:
        return "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    if os.name == "posix" and os.geteuid() == 0 and runner() is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody"
    return None


def programs() -> Path | None:
    """Return the folder of initdb and pg_ctl."""
    found = shutil.which("pg_ctl")
    folders = [*([Path(found).resolve().parent] if found else []), *FOLDERS]
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def runner() -> str | None:
    """Return the user as whom root runs the server."""
    import pwd

    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@contextmanager
def server(folder: Path, *, waits: bool = True) -> Iterator[Server]:
    """Yield a new cluster in a folder; it ends with the block. Raise RuntimeError if the installed programs fail."""
    found, user = programs(), runner()
    assert found is not None
    folder.mkdir(parents=True, exist_ok=True)
    if user is not None:
        shutil.chown(folder, user)
    one = Server(found, folder, user, waits)
    one.run("initdb", "-D", str(folder / "data"), "-U", user or getpass.getuser(), "-A", "trust", "-E", "UTF8")
    one.start()
    try:
        yield one
    finally:
        one.stop("immediate")
