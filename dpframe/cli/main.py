"""The command line: ``dpframe run``, ``preview``, ``report`` and ``ledger``. The commands are in `commands`.

It needs typer and rich, the extra ``dpframe[cli]``. ``import dpframe`` does not import them.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from dpframe.cli.exit_codes import EXPECTED, NOT_INSTALLED, NOT_UNDERSTOOD, STOPPED, code_of
from dpframe.errors import BoundsWarning, harmless

MISSING = 'dpframe: the command line needs typer and rich. Install them: pip install "dpframe[cli]"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``dpframe``; those of the process by default.

    Returns
    -------
    int
        The exit code (``docs/reference/command-line.md``). Words that are no command raise SystemExit with code 2.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("typer")
    >>> import dpframe as dpf, pathlib, tempfile
    >>> from dpframe.cli.main import main
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clinic.ledger"
    >>> _ = dpf.Ledger(epsilon=1.0, path=path)
    >>> main(["ledger", "export", str(path)])
    entry,time,kind,label,snapshot,query,unit,epsilon,delta,amount
    0
    """
    try:
        import rich
        import typer
    except ModuleNotFoundError:
        print(MISSING, file=sys.stderr)
        return NOT_INSTALLED
    del rich
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr: a label may have signs that it cannot show
    from dpframe.cli.commands import application, complain
    from dpframe.ledger.statement import DUE

    command: Any = typer.main.get_command(application())
    unclear: Any = typer.BadParameter.__bases__[0]  # UsageError, in whichever module this version of typer has it
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f"the ledger at .*: {DUE}")  # the commands report it
            warnings.simplefilter("ignore", BoundsWarning)  # a run prints these itself
            code = command.main(sys.argv[1:] if arguments is None else [*arguments], "dpframe", standalone_mode=False)
    except unclear as error:
        _explain(error)
        complain(error.format_message())
        raise SystemExit(NOT_UNDERSTOOD) from None
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED  # newer versions of typer return it
    except EXPECTED as error:
        complain(_words(error))
        return code_of(error)
    if code == STOPPED:
        complain("stopped. Run it again: stored results are free, and what was charged without a result costs again.")
    return code if isinstance(code, int) else 0


def _words(error: BaseException) -> str:
    """Return the text of an error; for a file, without the error number of the system."""
    is_of_file = isinstance(error, OSError) and error.strerror and error.filename is not None
    return f"{error.strerror}: {error.filename}" if is_of_file else str(error)  # type: ignore[attr-defined]


def _explain(error: Any) -> None:
    """Print the usage of the command, before the error itself."""
    context = getattr(error, "ctx", None)
    path = "dpframe" if context is None else context.command_path
    pieces = "" if context is None else " ".join(context.command.collect_usage_pieces(context))
    print(harmless(f"usage: {path} {pieces}".rstrip()), file=sys.stderr)
    print(harmless(f"Try '{path} --help'."), file=sys.stderr)
