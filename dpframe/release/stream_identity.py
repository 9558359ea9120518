"""The identity of a stream in its ledger: a hash for each fact that may not change while it goes on.

This is version 1, and it is frozen: which facts there are, under which names, and how each is written down. Nothing
is taken from the classes that hold them now, nor from words that people read. Whoever renames a class, adds a field or
finds a better note changes no identity, and a stream that an earlier dpframe began goes on. Facts that have a default
are written where they differ from it. A version 2 would be another function, and its entries would say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe import noise
from dpframe.mechanisms.contract import Mechanism
from dpframe.planning.stream_plan import StreamPlan
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries.statistics import Statistic
from dpframe.release.facts import Written, hash_of

STATISTICS = {"count": "Count", "sum": "Sum"}
NOISES = {"discrete Laplace": "Laplace", "rounded Gaussian": "Gaussian"}


def identity_of(plan: StreamPlan) -> dict[str, str]:
    """The hashes by the words in which a refusal says what differs."""
    time, *groups = plan.query.keys.axes
    facts = {
        "statistic": _statistic(plan.query.statistics[0][1]),
        "time or periods": _axis(time),
        "by or keys": _written("Keys", {"axes": [_axis(axis) for axis in groups]}, {"axes": []}),
        "max_rows": plan.reach.rows,
        "unit": _unit(plan.unit),  # which a ledger without terms does not fix
        "price": _price(plan.price),
        "noise": _noise(plan.mechanism),
        "random bits": noise.is_secure(),  # totals are read off all periods, so none may be of seeded bits
    }
    return {name: hash_of(name, fact) for name, fact in facts.items()}


def _written(kind: str, facts: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    return Written(kind, {name: fact for name, fact in facts.items() if name not in defaults or fact != defaults[name]})


def _statistic(statistic: Statistic) -> Any:
    """The statistic by its record; one of another's by its own class and fields."""
    facts = statistic.facts()
    if facts is None or facts["verb"] not in STATISTICS or "weight" in facts:
        return statistic
    said = {name: facts.get(name) for name in ("column", "bounds")}
    return _written(STATISTICS[facts["verb"]], said, {"column": None, "bounds": None})


def _axis(axis: Any) -> Any:
    if axis.coding == "keys":
        facts = {"columns": list(axis.columns), "rows": [list(row) for row in axis.rows]}
        return _written("KeyAxis", facts, {})
    if axis.coding == "rest":
        return _written("RestAxis", {"declared": _axis(axis.declared)}, {})
    facts = {"column": axis.column, "edges": list(axis.edges), "kind": axis.kind, "closed": axis.closed}
    return _written("DateAxis", {**facts, "every": axis.every}, {"every": "1d"})


def _unit(unit: PrivacyUnit) -> Any:
    facts = {"column": unit.column, "neighbors": unit.neighbors, "nulls": unit.nulls}
    return _written("PrivacyUnit", facts, {"column": None, "neighbors": "add-remove", "nulls": "drop"})


def _price(price: Price) -> Any:
    facts = {"epsilon": price.epsilon, "delta": price.delta}
    return _written("Price", facts, {"epsilon": None, "delta": None})


def _noise(mechanism: Mechanism) -> Any:
    facts = {name: getattr(mechanism, name) for name in ("step_sensitivity", "step_scale", "grid")}
    return _written(NOISES[mechanism.name], facts, {"grid": 1.0})
