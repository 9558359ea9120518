"""The formats of outputs: each is a function that writes a released frame to a path.

A file is written completely or not at all, even if the process is killed (`files.write_whole`).
"""

from __future__ import annotations

import csv
import errno
import importlib.util
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpframe import files
from dpframe.accessor import released
from dpframe.display.pages import lower_end, margin, number
from dpframe.display.rounding import HIGH, LOW
from dpframe.display.table_formats import marked
from dpframe.errors import OutputFailed, spreadsheet
from dpframe.frames import build
from dpframe.frames.changes import counted
from dpframe.queries.query import ERROR


def write_output(path: Path, write: Callable[[Path], object]) -> str:
    """Write a file of a job, make its folders, and return the hash of the content."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return files.write_whole("path", path, write)
    except Exception as error:  # the numbers are public and in the ledger, whatever fails
        said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"  # no path, which may be secret
        raise OutputFailed(
            f"{path.name} cannot be written ({said}). What was released is in the ledger: "
            "run the job again, at no cost."
        ) from None


def append_line(path: Path, line: bytes) -> None:
    """Append a line in one step, so that lines of two processes do not mix."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        at_once = getattr(os, "O_NONBLOCK", 0)  # refuse a pipe without a reader instead of waiting
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | at_once, 0o644)
        try:
            if line:
                whole = (b"\n" if _is_cut(path, number) else b"") + line + b"\n"
                if os.write(number, whole) < len(whole):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if stat.S_ISREG(os.fstat(number).st_mode):  # a pipe or a device cannot be synchronized
                    os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        raise OutputFailed(f"the audit trail {path.name} cannot be written ({error.strerror}).") from None


def _is_cut(path: Path, number: int) -> bool:
    """Return whether a file ends within a line, after a full disk or a kill: the next line would be lost too."""
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or not facts.st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _parquet(frame: Any, path: Path) -> None:
    released(frame).write_parquet(path)


def _csv(frame: Any, path: Path) -> None:
    """Write CSV for spreadsheets, in which text that looks like a formula stays text."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(map(spreadsheet, frame.columns))
        for row in build.rows(frame):
            lines.writerow(map(spreadsheet, row.values()))


def _html(frame: Any, path: Path) -> None:
    """Write a self-contained page, with charts if they can be drawn."""
    released(frame).write_html(path, charts=can_draw())


def _markdown(frame: Any, path: Path) -> None:
    """Write a Markdown table, with the statement below it."""
    dp = released(frame)
    writers = {name + end: write for name in counted(dp.provenance)["measures"] for end, write in OUTWARD.items()}
    rows = [[_cell(value, writers.get(name, number)) for name, value in row.items()] for row in build.rows(frame)]
    lines = [f"# {_cell(dp.provenance['label'])}", "", _row([_cell(name) for name in frame.columns])]
    lines += [_row(["---"] * len(frame.columns)), *map(_row, rows), "", _cell(dp.statement()), ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


OUTWARD = {ERROR: margin, LOW: lower_end, HIGH: margin}  # so that an interval still holds what it held


def _cell(value: Any, write: Callable[[float], str] = number) -> str:
    if value is None:
        return ""
    return marked(write(value) if isinstance(value, float) else str(value))


def _record(frame: Any, path: Path) -> None:
    path.write_text(json.dumps(released(frame).provenance, indent=1) + "\n", encoding="utf-8")


def _workbook(frame: Any, path: Path) -> None:
    path.write_bytes(released(frame).table("excel"))


def _picture(kind: str, frame: Any, path: Path) -> None:
    released(frame).plot().save(str(path), format=kind)


PLOT = ("altair", "vl_convert")


def can_draw() -> bool:
    """Return whether pages can have charts."""
    return all(map(_is_installed, PLOT))


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@dataclass(frozen=True)
class Format:
    """A format: the ending of its files, the function that writes them, and the packages that it needs."""

    ending: str
    write: Callable[[Any, Path], None]
    modules: tuple[str, ...] = ()
    extra: str = ""
    needs_numbers: bool = False  # True if it cannot show a choice without numbers

    def check_installed(self) -> None:
        """Refuse a format whose packages are not installed, before any charge."""
        for module in self.modules:
            if not _is_installed(module):
                words = f"{self.ending} needs {module}: pip install 'dpframe[{self.extra}]'"
                raise ImportError(words)


FORMATS: Mapping[str, Format] = {
    "parquet": Format(".parquet", _parquet),
    "csv": Format(".csv", _csv),
    "json": Format(".json", _record),
    "html": Format(".html", _html),
    "markdown": Format(".md", _markdown, needs_numbers=True),
    "excel": Format(".xlsx", _workbook, ("xlsxwriter",), "tables", needs_numbers=True),
    "png": Format(".png", partial(_picture, "png"), PLOT, "plot", needs_numbers=True),
    "svg": Format(".svg", partial(_picture, "svg"), PLOT, "plot", needs_numbers=True),
}
ENDINGS = {format.ending: name for name, format in FORMATS.items()}
