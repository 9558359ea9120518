"""What a call says besides what it asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpframe.errors import InvalidArgument, InvalidType, shown
from dpframe.guarantee import PrivacyUnit
from dpframe.ledger.ledger import Ledger
from dpframe.plan.pricing import Calibration
from dpframe.release.denoising import DENOISERS


@dataclass(frozen=True)
class Options:
    """How a call is to be answered: everything but what is asked."""

    epsilon: Any = None
    delta: Any = None
    share: Any = None
    mechanism: str | Calibration | None = None
    denoise: Any = None
    raw: bool = True
    ledger: Ledger | None = None
    unit: PrivacyUnit | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.raw, bool):
            raise InvalidType(f"raw must be True or False, not {shown(self.raw)}.")
        if self.label is not None and not isinstance(self.label, str):
            raise InvalidType(f"label must be a string, not {shown(self.label)}.")
        for name in self.denoise if isinstance(self.denoise, (list, tuple)) else [self.denoise]:
            if not (name is None or callable(name) or (isinstance(name, str) and name in DENOISERS)):
                raise InvalidArgument(
                    f"denoise must be one of {sorted(DENOISERS)}, a function (values, noise) -> values, "
                    f"a list of them, or None, not {shown(name)}."
                )
