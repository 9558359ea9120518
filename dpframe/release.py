"""The path of a release: plan, charge, measure, add noise, denoise, build. In this order, and nothing refunds."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import denoise, noise, provenance
from dpframe import ledger as ledgers
from dpframe.accounting import Basic
from dpframe.denoise import choose, estimators
from dpframe.errors import InvalidArgument, InvalidType, ReleaseFailed, shown
from dpframe.frames import build
from dpframe.frames.check import check
from dpframe.frames.source import library_of
from dpframe.frames.totals import totals
from dpframe.guarantee import Price, PrivacyUnit, checked_unit
from dpframe.ledger import Ledger
from dpframe.plan import Calibration, Plan, PlanTable, plan_of
from dpframe.queries.edges import BinAxis
from dpframe.queries.query import ERROR, NOISY, Query
from dpframe.queries.statistics import Mean, Measure, Measured, Statistic
from dpframe.statement import no_ledger

Floats = NDArray[np.float64]

VERSION = "0.1.0"
PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what a preview without a price tabulates
DENOISERS = {name.replace("_", "-"): getattr(denoise, name) for name in denoise.__all__}

log = logging.getLogger("dpframe")


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


def release(frame: Any, query: Query, options: Options) -> Any:
    """Answer a query privately: check the schema, charge, look."""
    price = Price.of(options.epsilon, options.delta, options.share)
    ledger = ledgers.ledger_for(options.ledger)
    if ledger is None:
        raise no_ledger()
    plan = _planned(frame, query, options, price, ledger)
    ledgers.warn_unlimited(ledger, plan.unit)
    place = ledger.charge(plan.amount, cost=plan.cost, query=str(plan.query), unit=plan.unit, label=options.label)
    found = _look(plan)
    if found is None:
        raise ReleaseFailed(
            "the dataframe engine failed while it read the rows. Its message is withheld, since it may hold private "
            "values; the charge stands. Run the frame's own computation by itself to see the cause."
        )
    log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)
    return _answered(plan, found, options, place)


def preview(frame: Any, query: Query, options: Options) -> Plan | PlanTable:
    """Price a query. Reads no row, spends nothing."""
    ledger = ledgers.ledger_for(options.ledger)
    several = options.epsilon if options.epsilon is not None or options.share is not None else PRICES
    if not isinstance(several, (list, tuple)):
        return _planned(frame, query, options, Price.of(options.epsilon, options.delta, options.share), ledger)
    listed = [Price.of(epsilon, options.delta, options.share) for epsilon in several]
    if not listed:
        raise InvalidArgument("epsilon must list at least one price. Write for instance epsilon=[0.1, 1].")
    return PlanTable(tuple(_planned(frame, query, options, price, ledger) for price in listed))


def _planned(frame: Any, query: Query, options: Options, price: Price, ledger: Ledger | None) -> Plan:
    unit = ledger.unit_for(options.unit) if ledger else checked_unit(options.unit) or ledgers.ROWS
    return plan_of(
        check(frame, query, unit),
        frame,
        unit=unit,
        price=price,
        mechanism=options.mechanism,
        accounting=ledger.accounting if ledger else Basic(),
        limit=ledger.limit_amount if ledger else None,
    )


def _look(plan: Plan) -> dict[Statistic, NDArray[np.int64]] | None:
    """The exact totals, or None where the engine failed: its error must not be chained, for it may hold values."""
    try:
        return totals(plan.frame, plan.query, plan.unit, plan.parts[0].mechanism.p)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # a panic of the Polars engine is no Exception, and its message may hold values as well
        return None


def _answered(
    plan: Plan, found: dict[Statistic, NDArray[np.int64]], options: Options, place: dict[str, Any] | None
) -> Any:
    """Everything from here on is noise and arithmetic on noisy numbers."""
    measured = {}
    for part in plan.parts:
        noisy = part.mechanism.add_noise(found.pop(part.statistic))
        measured[part.statistic] = Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism)
    columns: dict[str, Any] = dict(plan.query.keys.labels())
    denoised: dict[str, Any] = {}
    for name, measure in plan.query.measures:
        values, errors = measure.answer(measured)
        better, denoised[name] = _denoised(values, measure, plan, options.denoise)
        columns[name] = better
        if denoised[name] is not None and options.raw:
            columns[name + NOISY] = values
        columns[name + ERROR] = errors
    frame = build.frame_of(columns, library_of(plan.frame))
    facts = provenance.record(
        plan,
        frame,
        version=VERSION,
        label=options.label,
        denoised=denoised,
        secure=noise.is_secure(),
        raw=options.raw,
        place=place,
    )
    return build.attach(frame, facts)


def _denoised(values: Floats, measure: Measure, plan: Plan, wanted: Any) -> tuple[Floats, Any]:
    """The denoised values in their cells' shape, and what the provenance says of them; a mean stays as it is."""
    if wanted is None or isinstance(measure, Mean):
        return values, None
    law = plan.noise_of(measure)[0]
    keys = plan.query.keys
    cells = values.reshape(keys.shape) if keys.is_grid else values
    ordered = all(isinstance(axis, BinAxis) for axis in keys.axes)
    said: list[dict[str, Any]] = []
    for denoiser in wanted if isinstance(wanted, (list, tuple)) else [wanted]:
        cells, words = _step(cells, denoiser, law, measure.statistics()[0].nonnegative, ordered)
        said.append(words)
    return cells.reshape(values.shape), said


def _step(cells: Floats, denoiser: Any, law: Any, nonnegative: bool, ordered: bool) -> tuple[Floats, dict[str, Any]]:
    if denoiser == "auto" or denoiser is denoise.auto:
        choice = choose.choose(cells, law, nonnegative=nonnegative, order=ordered)
        return choice.values, {"name": "auto", "chose": choice.name, "estimated_rmse": choice.estimated_rmse}
    function: estimators.Denoiser = DENOISERS[denoiser] if isinstance(denoiser, str) else denoiser
    name = denoiser if isinstance(denoiser, str) else getattr(function, "__name__", "a function of the caller's")
    result = np.asarray(function(cells.copy(), law, **_known(function, nonnegative)), dtype=np.float64)
    if result.shape != cells.shape:
        raise InvalidArgument(f"denoise must return values of the shape {cells.shape} that it got, not {result.shape}.")
    return result, {"name": name}


def _known(function: Any, nonnegative: bool) -> dict[str, bool]:
    """What a denoiser of dpframe may be told. Who asks for wavelets says that neighboring cells are alike."""
    if function is denoise.haar:
        return {"order": True}
    return {"nonnegative": nonnegative} if function is denoise.empirical_bayes else {}
