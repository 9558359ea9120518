"""The denoisers that a call may name, and what each of them takes of what a call knows: its signature says it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from dpframe import denoise

NEED_MORE = ("consistent", "posterior_mean", "public_total")  # what is public and no call can know

DENOISERS = {name.replace("_", "-"): getattr(denoise, name) for name in denoise.__all__ if name not in NEED_MORE}
TAKES = [(function, tuple(signature(function).parameters)[2:]) for function in DENOISERS.values()]


def taken(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    """The known facts that a denoiser of dpframe takes; another one gets values and noise alone."""
    names = next((names for one, names in TAKES if one is function), ())  # a caller's may not be hashable
    return {name: known[name] for name in names if name in known}
