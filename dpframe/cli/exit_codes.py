"""The exit codes of the command line, and their meanings."""

from __future__ import annotations

from dpframe.errors import (
    BudgetExceeded,
    DpframeError,
    InvalidArgument,
    LedgerUnavailable,
    OutputFailed,
    ReleaseFailed,
    SourceFailed,
    UnknownColumn,
    WrongDtype,
)

DONE, REFUSED, NOT_UNDERSTOOD, TOO_LITTLE, UNREADABLE, UNWRITTEN, NOT_INSTALLED, CHARGED = range(8)
UNAVAILABLE, STOPPED = 75, 130  # 75 is EX_TEMPFAIL of sysexits.h, a temporary failure

WORDS = {  # docs/reference/command-line.md explains them
    DONE: "done",
    REFUSED: "the ledger or a file is refused",
    NOT_UNDERSTOOD: "the command or the job file is wrong",
    TOO_LITTLE: "too little budget",
    UNREADABLE: "the table cannot be opened",
    UNWRITTEN: "a file cannot be written",
    NOT_INSTALLED: "something is not installed",
    CHARGED: "a release failed after its charge",
    UNAVAILABLE: "the ledger is temporarily unavailable",
    STOPPED: "stopped",
}

OF_ERRORS: tuple[tuple[type[BaseException], int], ...] = (  # the first match counts
    (BudgetExceeded, TOO_LITTLE),
    (SourceFailed, UNREADABLE),
    (ReleaseFailed, CHARGED),
    (OutputFailed, UNWRITTEN),
    (InvalidArgument, NOT_UNDERSTOOD),
    (UnknownColumn, NOT_UNDERSTOOD),
    (WrongDtype, NOT_UNDERSTOOD),
    (LedgerUnavailable, UNAVAILABLE),
    (DpframeError, REFUSED),
    (ImportError, NOT_INSTALLED),
    (OSError, REFUSED),
)
EXPECTED = tuple(kind for kind, _ in OF_ERRORS)  # the errors that a command may raise; any other is a fault of dpframe


def code_of(error: BaseException) -> int:
    """Return the exit code of an error that a command raised."""
    return next(code for kind, code in OF_ERRORS if isinstance(error, kind))
