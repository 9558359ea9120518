"""What is a mechanism: told by what it answers, not by a list of classes, so that one from outside is one as well."""

from __future__ import annotations

import math
from typing import TypeGuard

from dpframe.mechanisms.laplace import Mechanism

ANSWERS = ("add_noise", "delta", "deltas", "epsilon", "interval", "renyi")


def is_mechanism(value: object) -> TypeGuard[Mechanism]:
    """Whether a value is calibrated noise, or a calibrated choice; a class of them is not calibrated."""
    return not isinstance(value, type) and all(callable(getattr(type(value), name, None)) for name in ANSWERS)


def adds_noise(value: object) -> TypeGuard[Mechanism]:
    """Whether it is a mechanism whose noise totals get; one that chooses among them has no shape."""
    return is_mechanism(value) and math.isfinite(value.p)
