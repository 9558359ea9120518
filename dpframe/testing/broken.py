"""The error of a check, which names the broken rule of a contract."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from dpframe.errors import DpframeError


class ContractBroken(DpframeError, AssertionError):
    """An extension breaks a rule of its contract.

    The message starts with the rule.

    Examples
    --------
    >>> from dpframe.testing import ContractBroken, check_denoiser
    >>> try:
    ...     check_denoiser(lambda values, noise: values[:1])
    ... except ContractBroken as error:
    ...     print(error)
    shape: a denoiser must return an array of the shape that it got, (2,), not (1,).
    """


@contextmanager
def may_not_fail(what: str) -> Iterator[None]:
    """Turn any error of the tested extension into ContractBroken; also a decorator."""
    try:
        yield
    except ContractBroken:
        raise
    except Exception as error:
        raise ContractBroken(f"success: {what} must not fail, and it raised {type(error).__name__}: {error}") from error


def require(kept: object, rule: str, words: str) -> None:
    """Raise ContractBroken unless a rule is kept."""
    if not kept:
        raise ContractBroken(f"{rule}: {words}")


@contextmanager
def telling_nothing(what: str) -> Iterator[None]:
    """Refuse code that prints, logs or warns, since its output could reveal rows."""
    lines: list[str] = []
    printed, handler, root = io.StringIO(), logging.Handler(), logging.getLogger()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(), redirect_stdout(printed), redirect_stderr(printed):
            warnings.simplefilter("error")
            yield
    finally:
        root.removeHandler(handler)
    require(not lines and not printed.getvalue(), "silence", f"{what} must not print or log anything.")
