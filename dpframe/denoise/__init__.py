"""Denoising functions ``(values, noise) -> values`` that read only noisy numbers: post-processing costs no privacy.

Every function takes an array of noisy values and the law of their noise (a mechanism), and returns an array of the
same shape. Denoised values have a little bias and much less variance; the noisy values are unbiased. A call can name
most of these functions. A function receives a fact about the cells (see `FACTS`) if its signature has a keyword of
that name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any

from dpframe.denoise.bayes import empirical_bayes
from dpframe.denoise.choose import auto
from dpframe.denoise.estimators import isotonic, james_stein, nonnegative, rounded, soft_threshold
from dpframe.denoise.published.spanning_trees import spanning_tree_wavelets
from dpframe.denoise.published.thresholds_and_priors import hard_threshold, posterior_mean, sure_threshold
from dpframe.denoise.published.trend_filter import trend_filter
from dpframe.denoise.sums import consistent, public_total
from dpframe.denoise.wavelets import haar
from dpframe.errors import takes_two

__all__ = [
    "auto",
    "consistent",
    "empirical_bayes",
    "haar",
    "hard_threshold",
    "isotonic",
    "james_stein",
    "nonnegative",
    "posterior_mean",
    "public_total",
    "rounded",
    "soft_threshold",
    "spanning_tree_wavelets",
    "sure_threshold",
    "trend_filter",
]


def __dir__() -> list[str]:
    return [*__all__]


FACTS = ("nonnegative", "order", "graph")  # facts about the cells that a call can pass
NEED_MORE = ("consistent", "posterior_mean", "public_total")  # each needs a public fact that no call knows

DENOISERS = {name.replace("_", "-"): globals()[name] for name in __all__ if name not in NEED_MORE}


def facts_of(denoiser: Any) -> tuple[str, ...]:
    """Return the names of the facts that the signature of a denoiser has; `denoiser` is a name or a function."""
    return tuple(parameter.name for parameter in _facts(denoiser))


def takes(denoiser: Any, fact: str) -> bool:
    """Return whether a denoiser takes a fact by keyword."""
    return fact in facts_of(denoiser)


def needs(denoiser: Any, fact: str) -> bool:
    """Return whether a denoiser requires a fact."""
    return any(parameter.name == fact and parameter.default is Parameter.empty for parameter in _facts(denoiser))


def named_facts(function: Callable[..., Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return the known facts that the signature of a function names.

    A fact that is None is left out unless the function requires it.
    """
    needed = {parameter.name for parameter in _facts(function) if parameter.default is Parameter.empty}
    told = {name: known[name] for name in facts_of(function) if name in known}
    return {name: fact for name, fact in told.items() if fact is not None or name in needed}


def can_be_called(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with values, noise and the facts that its signature names."""
    return takes_two(function, *facts_of(function))


def _facts(denoiser: Any) -> list[Parameter]:
    function = DENOISERS.get(denoiser) if isinstance(denoiser, str) else denoiser
    if not callable(function):
        return []
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # a function in C may have no signature
        return []
    by_keyword = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    by_position = [parameter for parameter in parameters if parameter.kind is not Parameter.KEYWORD_ONLY]
    first = by_position[:2]  # values and noise, whatever their names
    facts = [parameter for parameter in parameters if parameter.name in FACTS and parameter.kind in by_keyword]
    fixed = function.keywords if isinstance(function, partial) else {}  # facts that the caller has set
    return [fact for fact in facts if fact not in first and fact.name not in fixed]
