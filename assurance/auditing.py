"""Black-box audits of privacy: releases on two neighboring frames, and the epsilon that their differences prove.

Only the public API is used, and `dpframe.audit` does the counting. A frame holds many equal public groups. Each is a
copy of one small table with its own people, so one call draws one independent sample per group. A person is in one
group only, so what holds for the call holds for each group. All else that a caller can see (exceptions, warnings,
logs, dtypes, keys, row order, provenance, charges) must be equal on both sides.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dpf
from assurance.fuzz_frames import public_parts
from dpframe import noise

Floats = NDArray[np.float64]
Row = tuple[int, Any, int]  # cell, value, person

GROUPS = 1_000  # samples per call
ROUNDING = 1e-9  # tolerance for epsilons that were converted from mu
READ_OFF = (
    "mean",
    "variance",
    "quantile",
    "proportion",
    "covariance",
    "correlation",
)  # their errors are also computed from noisy numbers
NOISE_DRAWS = ("discrete_laplace", "rounded_generalized_gaussian", "truncated_generalized_gaussian")


@dataclass(frozen=True)
class Price:
    """The cost of a call, and a ledger with exactly this budget."""

    name: str
    epsilon: float
    delta: float = 0.0
    accounting: str = "basic"
    mechanism: Any = None

    def ledger(self, unit: dpf.PrivacyUnit) -> dpf.Ledger:
        return dpf.Ledger(self.epsilon, self.delta, unit=unit, accounting=self.accounting)  # type: ignore[arg-type]

    def options(self, ledger: dpf.Ledger) -> dict[str, Any]:
        delta = {"delta": self.delta} if self.delta and self.accounting == "basic" else {}
        return {"epsilon": self.epsilon, "ledger": ledger, "mechanism": self.mechanism, "denoise": None, **delta}


LAPLACE = Price("Laplace", 1.0)
GAUSSIAN = Price("Gaussian", 1.0, 0.2)  # a large delta, since an audit sees no event of probability 1e-6
GAUSSIAN_GDP = Price("Gaussian, gdp", 4.0, 1e-3, "gdp")
SHAPE_3 = Price("shape 3", 1.0, 0.2, mechanism=dpf.generalized_gaussian(p=3))
OUTPUT = (0, 30)  # output bounds of answers
TRUNCATED = Price("truncated", 1.0, mechanism=dpf.truncated_generalized_gaussian(p=2, output=OUTPUT))
INFLATED = Price("inflated", 1.0, mechanism=dpf.truncated_generalized_gaussian(p=1, output=OUTPUT, boundary="inflated"))


@dataclass(frozen=True)
class Case:
    """Two neighboring tables, each copied into `groups` groups of a frame of `engine`, and the query."""

    name: str
    engine: str
    price: Price
    first: Sequence[Row]
    second: Sequence[Row]
    ask: Callable[..., Any]  # (frame.dp, groups, options) -> released frame
    unit: dpf.PrivacyUnit = field(default_factory=dpf.PrivacyUnit)
    groups: int = GROUPS

    def frame(self, rows: Sequence[Row]) -> Any:
        """Copy the rows into every group; "place" numbers the cells of all groups in one column, for histograms."""
        cell, value, person = (list(column) for column in zip(*rows, strict=True))
        group = np.repeat(np.arange(self.groups), len(rows))
        columns = {
            "group": group,
            "cell": np.tile(cell, self.groups),
            "value": value * self.groups,
            "user": np.tile(person, self.groups) + 100 * group,
            "place": np.tile(cell, self.groups) + 2 * group,
        }
        return frame_of(self.engine, columns)


def frame_of(engine: str, columns: dict[str, Any]) -> Any:
    """Make a frame as a user would: in pandas, missing values decide the dtype of "value"."""
    if engine == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    frame = pl.DataFrame(columns, schema_overrides={"value": pl.Float64}, strict=False)
    if engine == "Arrow":
        return frame.to_arrow()
    return frame.lazy() if engine == "LazyFrame" else frame


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    case: Case
    found: dpf.audit.Finding
    claimed: dpf.PrivacyLoss
    problems: tuple[str, ...]

    @property
    def flagged(self) -> bool:
        """True if privacy is violated: the loss exceeds the charge, or something other than noise differs."""
        return bool(self.problems) or not self.found.holds


def audit(case: Case, samples: int, alpha: float = 1e-4) -> Audit:
    """Draw `samples` on each side, and bound epsilon (mu under gdp) from below with confidence 1 - alpha."""
    frames = [case.frame(rows) for rows in (case.first, case.second)]
    charged = [charges(case, frame) for frame in frames]
    claimed = min((loss for loss, _ in charged), key=lambda loss: loss.epsilon)
    options = {"samples": samples, "outcomes": case.groups, "confidence": 1.0 - alpha}
    left, right = (lambda frame=frame: shown(case, frame) for frame in frames)
    if case.price.accounting == "gdp":
        mu = 0.0 if not claimed.epsilon else 1.0 / dpf.analytic_gaussian_sigma(claimed.epsilon, claimed.delta)
        found = dpf.audit.mu(left, right, claimed=mu, **options)
    else:
        found = dpf.audit.epsilon(left, right, claimed=claimed.epsilon, delta=claimed.delta, **options)
    return Audit(case, found, claimed, tuple(_problems(case, found, charged)))


def shown(case: Case, frame: Any) -> dict[str, Any]:
    """Release once on a new ledger; return the undenoised numbers of every group, and all the rest as text."""
    ledger = case.price.ledger(case.unit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.BoundsWarning)  # it depends only on the noisy numbers of the checks
        result = case.ask(dpf.of(frame), case.groups, case.price.options(ledger))
    results = list(result.values()) if isinstance(result, dict) else [result]
    tables = [one for one in results if not isinstance(one, np.ndarray)]  # an array holds only noisy numbers
    numbers = [one[name] for one in tables for name in noisy_columns(one)] if tables else result
    facts = {"public": [public_parts(one) for one in tables], "charges": ledger.to_frame().drop("time").to_dicts()}
    return {"numbers": numbers, "rest": json.dumps(facts, sort_keys=True, default=str)}


def charges(case: Case, frame: Any) -> tuple[dpf.PrivacyLoss, str]:
    """Return the charge of one call, and the refusal of a second call after the budget is spent."""
    ledger = case.price.ledger(case.unit)
    options = case.price.options(ledger)
    try:
        case.ask(dpf.of(frame), case.groups, options)
        spent = ledger.spent
        case.ask(dpf.of(frame), case.groups, options)
    except Exception as error:
        return ledger.spent, f"{type(error).__name__}: {error}"
    return spent, "a second call was answered although the ledger could pay for one only"


def noisy_columns(result: Any) -> list[str]:
    """Return the columns that hold the noise as drawn, one sample per group; denoising would mix groups.

    For a choice, this is the column of the chosen value.
    """
    facts, names = result.dp.provenance, []
    if not facts["measures"]:
        return list(facts["columns"])
    for name, statistic in facts["measures"].items():
        raw = f"{name}_noisy" if f"{name}_noisy" in result.columns else name
        names += [raw, *([f"{name}_error"] if statistic["verb"] in READ_OFF else [])]
    return names


def _problems(case: Case, found: dpf.audit.Finding, charged: list[tuple[dpf.PrivacyLoss, str]]) -> Iterator[str]:
    """Describe what differs between the sides in addition to the noise, and what was not charged."""
    losses, refusals = [loss.epsilon for loss, _ in charged], {refusal for _, refusal in charged}
    if min(losses) < case.price.epsilon * (1 - ROUNDING):
        yield f"charged {losses[0]:g} and {losses[1]:g} for {case.price.epsilon:g}"
    yield from (refusal for refusal in refusals if refusal.startswith("a second call was answered"))
    if len(refusals) > 1:
        yield f"refusals differ: {' | '.join(sorted(refusals))}"
    if found.differences:
        yield f"outputs differ: {' | '.join(found.differences)}"


# --- seeded bugs ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def scaled_noise(factor: float) -> Iterator[None]:
    """Draw noise of `factor` times the calibrated scale: a bug that an audit must find."""
    real = {name: getattr(noise, name) for name in NOISE_DRAWS}
    for name, draw in real.items():
        setattr(noise, name, _scaled(draw, factor))
    try:
        yield
    finally:
        for name, draw in real.items():
            setattr(noise, name, draw)


def _scaled(draw: Callable[..., Any], factor: float) -> Callable[..., Any]:
    signature = inspect.signature(draw)

    def broken(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        bound.arguments["scale"] *= factor
        return draw(*bound.args, **bound.kwargs)

    return broken
