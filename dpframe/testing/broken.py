"""The error of a check: which rule of a contract is broken, and by what."""

from __future__ import annotations

from dpframe.errors import DpframeError


class ContractBroken(DpframeError, AssertionError):
    """An extension breaks a rule of its contract. The message names the rule first.

    Examples
    --------
    >>> from dpframe.testing import ContractBroken, check_denoiser
    >>> try:
    ...     check_denoiser(lambda values, noise: values[:1])
    ... except ContractBroken as error:
    ...     print(error)
    shape: a denoiser must return an array of the shape that it got, (2,), not (1,).
    """


def require(kept: object, rule: str, words: str) -> None:
    """Raise ContractBroken unless a rule is kept."""
    if not kept:
        raise ContractBroken(f"{rule}: {words}")
