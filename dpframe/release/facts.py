"""The public facts of a call as hashes: they show whether two calls ask the same question.

This is version 1, and it is frozen: the facts, their names and their form. The classes of dpframe are listed here one
by one, so that no fact depends on the names of classes and fields, or on text for readers. After a rename, change the
Python name in its line and keep the string: stored answers are then still recognized. A new class that may occur in a
call gets a line of its own. A caller's own statistic or noise is described by its class and its fields. A fact with a
default is written only if it differs from the default.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.denoise import DENOISERS
from dpframe.errors import InvalidArgument, is_one_of, named
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.generalized_gaussian import GeneralizedGaussian
from dpframe.mechanisms.laplace import Laplace, TruncatedLaplace
from dpframe.mechanisms.truncated import TruncatedGeneralizedGaussian
from dpframe.planning.check_pricing import asked_checks
from dpframe.planning.plan import Plan
from dpframe.privacy import Price, PrivacyUnit
from dpframe.queries import bins, contributions, discovery, keys, statistics, where
from dpframe.queries import total as totals
from dpframe.queries.date_grid import is_period

# the names of dpframe 0.1, whose stored answers are still replayed
NAMED = {"keep_noisy": "raw", "statistics": "measures"}
VERBS = {"mode": "select"}
MECHANISMS = {"exponential": "choice"}  # its name in dpframe 0.2
NO_KEYS = (  # the message of dpframe 0.2 if a dtype declares no keys
    "keys must be given: they are never taken from the data. "
    'Write for instance keys=["A", "B"] or keys={"ward": ["A", "B"], "sex": ["f", "m"]}.'
)


@dataclass(frozen=True)
class Written:
    """Facts under a name, independent of the names of classes and fields."""

    kind: str
    parts: Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    """The written form of the values of a class: its name in 0.2, its facts, and the defaults of facts."""

    kind: str
    facts: Callable[[Any], Mapping[str, Any]]
    defaults: Mapping[str, Any]

    def of(self, value: Any) -> Written:
        """Return the facts of a value, except those at their defaults."""
        return Written(self.kind, _said(self.facts(value), self.defaults))


def _form(kind: str, facts: Callable[[Any], Mapping[str, Any]], /, **defaults: Any) -> Form:
    return Form(kind, facts, defaults)


def _bins(axis: bins.BinAxis) -> dict[str, Any]:
    place = {"column": axis.column, "edges": axis.edges, "kind": axis.kind}
    return {**place, "aware": axis.aware, "outside": axis.outside, "closed": axis.closed}


def _range(axis: where.RangeAxis) -> dict[str, Any]:
    ends = {"column": axis.column, "edges": axis.edges[1:-1], "inside": axis.inside}
    return {**ends, "kind": axis.kind, "aware": axis.aware}


def _clipped(statistic: statistics.Clipped) -> dict[str, Any]:
    return {"column": statistic.column, "bounds": statistic.bounds}


def _with_weight(statistic: Any) -> dict[str, Any]:
    return {"weight": statistic.weight, "weight_bounds": statistic.weight_bounds}


def _variance(statistic: statistics.Variance) -> dict[str, Any]:
    return {**_clipped(statistic), "ddof": statistic.ddof, "pure": statistic.pure}


def _variance_by_group(statistic: statistics.VarianceByGroup) -> dict[str, Any]:
    said = {"column": statistic.column, "bounds_of": statistic.bounds_of}
    return {**said, "ddof": statistic.ddof, "pure": statistic.pure}


def _pairs(statistic: statistics.Covariance) -> dict[str, Any]:
    said = {"columns": statistic.columns, "bounds_of": statistic.bounds_of}
    return {**said, "ddof": statistic.ddof, "pure": statistic.pure}


def _quantile(statistic: statistics.Quantile) -> dict[str, Any]:
    said = {"column": statistic.column, "q": statistic.q, "candidates": statistic.candidates}
    said |= {"named": statistic.named, "pure": statistic.pure, "by": statistic.by, "why": statistic.why}
    return {**said, "said": statistic.said_usual}


def _quantile_by_group(statistic: statistics.QuantileByGroup) -> dict[str, Any]:
    said = {"column": statistic.column, "bounds_of": statistic.bounds_of, "q": statistic.q, "step": statistic.step}
    return {**said, "named": statistic.named, "pure": statistic.pure}


def _top(statistic: statistics.TopK) -> dict[str, Any]:
    said = {"k": statistic.k, "counts": statistic.counts, "by": statistic.by}
    return {**said, "options": statistic.options, "why": statistic.why}


def _keys(axis: keys.KeyAxis) -> dict[str, Any]:
    return {"columns": axis.columns, "rows": as_keys(axis.rows), "argument": axis.argument}


def _discovery(how: discovery.Discovery) -> dict[str, Any]:
    said = {"delta": how.delta, "max_keys": how.max_keys, "at_least": how.at_least}
    return {**said, "known": as_keys(how.known), "nulls": how.nulls, "largest": how.largest}


def _found(axis: discovery.FoundAxis) -> dict[str, Any]:
    said = {"columns": axis.columns, "rows": as_keys(axis.rows), "argument": axis.argument}
    return {**said, "discovery": axis.discovery, "room": axis.room, "by_rows": axis.by_rows}


def _of_units(total: totals.UnitsTotal) -> dict[str, Any]:
    return {"column": total.column, "bounds": total.bounds, "units": total.once, "per_unit": not total.once}


def _stepped(noise: Any) -> dict[str, Any]:
    said = {"step_sensitivity": noise.step_sensitivity, "step_scale": noise.step_scale, "grid": noise.grid}
    return {**said, "calibration": noise.calibration}


def _truncated_noise(noise: TruncatedGeneralizedGaussian) -> dict[str, Any]:
    said = {**_stepped(noise), "p": noise.p, "step_output": noise.step_output, "boundary": noise.boundary}
    return {**said, "cells": noise.cells, "formula": noise.formula}


STEPS = {"grid": 1.0, "calibration": ""}
RANGE = {"kind": "number", "aware": False, "inside": 1}
BINS = {"kind": "number", "aware": False, "outside": "drop", "closed": True}
FOUND = {"rows": (), "argument": "keys", "room": 0, "by_rows": False}

# The classes by their current names, and the permanent form of their values.
FORMS: Mapping[type[Any], Form] = {
    Price: _form(
        "Price", lambda it: {"epsilon": it.epsilon, "delta": it.delta, "share": it.share},
        epsilon=None, delta=None, share=None,
    ),
    # cells
    keys.Keys: _form("Keys", lambda it: {"axes": it.axes}, axes=()),
    keys.KeyAxis: _form("KeyAxis", _keys, argument="keys"),
    keys.RestAxis: _form("RestAxis", lambda it: {"declared": it.declared}),
    keys.DtypeAxis: _form("DtypeAxis", lambda it: {"columns": it.columns, "missing": NO_KEYS}),
    bins.BinAxis: _form("BinAxis", _bins, **BINS),
    bins.RunningAxis: _form(
        "RunningAxis", lambda it: {**_bins(it), "beyond": it.beyond}, **{**BINS, "outside": "clip"}, beyond=True
    ),
    bins.DateAxis: _form(
        "DateAxis",
        lambda it: {**_bins(it), "every": it.every, "starts": it.starts, "zone": it.zone},
        **{**BINS, "every": "1d", "starts": "monday", "zone": None},
    ),
    discovery.FoundAxis: _form("FoundAxis", _found, **FOUND),
    discovery.Discovery: _form(
        "Discovery", _discovery, max_keys=1_000, at_least=1, known=(), nulls=False, largest=None
    ),
    contributions.Grouping: _form(
        "Grouping", lambda it: {"columns": it.columns, "keys": it.keys}, columns=(), keys=None
    ),
    # conditions
    where.Conditional: _form("Where", lambda it: {"column": it.of, "where": [each.axis for each in it.conditions]}),
    where.RangeAxis: _form("Range", _range, **RANGE),
    # statistics
    statistics.Count: _form("Count", lambda it: {"column": it.column}, column=None),
    statistics.Contributors: _form("Contributors", lambda it: {"column": it.column}, column=None),
    statistics.NUnits: _form(
        "NUnits", lambda it: {"column": it.column, "of_rows": it.of_rows}, column=None, of_rows=False
    ),
    statistics.Sum: _form("Sum", lambda it: {**_clipped(it), "squares": it.squares}, squares=False),
    statistics.UnitSum: _form("UnitSum", _clipped),
    statistics.Mean: _form(
        "Mean",
        lambda it: {
            **_clipped(it), "missing": it.missing, "pure": it.pure, "shared": it.shared, "squares": it.squares,
        },
        missing="drop", pure=False, shared=False, squares=False,
    ),
    statistics.Variance: _form("Variance", _variance, ddof=1, pure=False),
    statistics.Std: _form("Std", _variance, ddof=1, pure=False),
    statistics.Proportion: _form(
        "Proportion", lambda it: {"column": it.column, "value": _as_key(it.value)}, value=None
    ),
    statistics.SumByGroup: _form("SumByGroup", lambda it: {"column": it.column, "bounds_of": it.bounds_of}),
    statistics.MeanByGroup: _form("MeanByGroup", lambda it: {"column": it.column, "bounds_of": it.bounds_of}),
    statistics.VarianceByGroup: _form("VarianceByGroup", _variance_by_group, ddof=1, pure=False),
    statistics.StdByGroup: _form("StdByGroup", _variance_by_group, ddof=1, pure=False),
    statistics.WeightedCount: _form("WeightedCount", _with_weight),
    statistics.WeightedSum: _form("WeightedSum", lambda it: {**_clipped(it), **_with_weight(it)}),
    statistics.WeightedMean: _form("WeightedMean", lambda it: {**_clipped(it), **_with_weight(it)}),
    statistics.WeightedProportion: _form(
        "WeightedProportion", lambda it: {**_clipped(it), **_with_weight(it), "value": _as_key(it.value)}, value=None
    ),
    statistics.Quantile: _form("Quantile", _quantile, said=False, named="", pure=False, by="", why=""),
    statistics.QuantileByGroup: _form("QuantileByGroup", _quantile_by_group, q=0.5, step=None, named="", pure=False),
    statistics.Quantiles: _form("Quantiles", lambda it: {"parts": it.parts}),
    statistics.Ecdf: _form(
        "Ecdf", lambda it: {"column": it.column, "size": it.size, "pure": it.pure}, pure=False
    ),
    statistics.Ratio: _form(
        "Ratio",
        lambda it: {
            "column": it.column, "bounds": it.bounds,
            "denominator": it.denominator, "denominator_bounds": it.denominator_bounds,
        },
    ),
    statistics.Share: _form("Share", lambda it: {"column": it.column, "size": it.size}),
    statistics.Ranges: _form("Ranges", lambda it: {"shape": it.shape, "pure": it.pure}, pure=False),
    statistics.StagedRanges: _form("StagedRanges", lambda it: {"shape": it.shape, "pure": it.pure}, pure=False),
    statistics.NDistinct: _form(
        "NDistinct", lambda it: {"column": it.column, "max_values": it.max_values, "of_rows": it.of_rows},
        max_values=None, of_rows=False,
    ),
    statistics.Mode: _form("Count", lambda it: {}),  # its name in dpframe 0.1
    statistics.TopK: _form("TopK", _top, counts=False, by="", options=0, why=""),
    statistics.Covariance: _form("Covariance", _pairs, ddof=1, pure=False),
    statistics.Correlation: _form("Correlation", _pairs, ddof=1, pure=False),
    statistics.Marginals: _form(
        "Marginals",
        lambda it: {"attributes": it.attributes, "degree": it.degree, "objective": it.objective, "fit": it.fit},
        degree=2, objective="equal", fit=None,
    ),
    statistics.SuggestedBounds: _form(
        "SuggestedBounds",
        lambda it: {
            "columns": Written("Dates", {"columns": it.columns}) if it.by_days else it.columns,
            "statistic": it.statistic, "planned": it.planned, "whole": it.whole_numbers,
        },
        statistic="mean", planned=(), whole=False,
    ),
    # Totals that a caller's statistic may hold: every kind by its arguments, under the name of one class
    totals.RowsTotal: _form("Total", lambda it: {"column": it.column, "by": it.by}, column=None, by=None),
    totals.SumTotal: _form(
        "Total", lambda it: {"column": it.column, "bounds": it.bounds, "centred": it.centred, "by": it.by},
        centred=False, by=None,
    ),
    totals.FunctionTotal: _form("Total", lambda it: {"row": it.row, "by": it.by}, by=None),
    totals.VectorTotal: _form("Total", lambda it: {"vector": it.vector}),
    totals.UnitsTotal: _form("Total", _of_units, column=None, bounds=None, units=False, per_unit=False),
    totals.DistinctTotal: _form(
        "Total", lambda it: {"column": it.column, "distinct": it.most, "per_unit": it.per_unit}, per_unit=False
    ),
    # noise that a caller's calibration returned
    Laplace: _form("Laplace", _stepped, **STEPS),
    Gaussian: _form("Gaussian", _stepped, **STEPS),
    GeneralizedGaussian: _form(
        "GeneralizedGaussian", lambda it: {**_stepped(it), "p": it.p}, **STEPS
    ),
    TruncatedLaplace: _form(
        "TruncatedLaplace", lambda it: {**_stepped(it), "reach": it.reach, "counts": it.counts},
        **STEPS, reach=0, counts=1,
    ),
    TruncatedGeneralizedGaussian: _form(
        "TruncatedGeneralizedGaussian", _truncated_noise, **STEPS, boundary="truncated", cells=1.0, formula="exact"
    ),
}  # fmt: skip


def facts_of(plan: Plan, unit: PrivacyUnit, checks: Any = None) -> dict[str, str]:
    """Return a hash for each part of the question and each option that determines the law of the answer.

    All else is left out, and so are the settings of the ledger. Contribution bounds are included if they differ from
    those of `unit`, the unit of the ledger: dpframe 0.1 had no others. `checks` is the setting of the ledger object,
    which applies if the call has none. Some names are those of 0.1.
    """
    question = plan.question
    query, pricing, denoising = question.query, question.pricing, question.denoising
    mechanism = question.noising.mechanism
    facts: dict[str, Any] = {
        "verb": VERBS.get(query.verb, query.verb),
        "keys": _resolved(query.keys, plan.query.keys),
        "statistics": _of_the_schema(query.statistics, dict(plan.query.statistics)),
    }
    options = {
        "rollup": query.subtotals == "rollup",
        "cube": query.subtotals == "cube",
        "grouping": contributions.grouping_of(plan.query.keys) if plan.query.keys.counted == "units" else None,
        "within": pricing.within,
        "confidence": pricing.confidence,
        "size": pricing.size,
        "weights": pricing.weights,
        "mechanism": MECHANISMS.get(mechanism, mechanism) if isinstance(mechanism, str) else mechanism,
        "denoise": denoising.denoise,
        "keep_noisy": denoising.keep_noisy,
        "order": denoising.order,
        "graph": denoising.graph,
        "population": question.population,
        "checks": _checks(plan, checks),
    }
    if pricing.within is None:
        facts["price"] = plan.price
    else:
        options |= {"epsilon": pricing.epsilon, "delta": pricing.delta, "share": pricing.share}
    facts |= _said(
        options, {**dict.fromkeys(options), "rollup": False, "cube": False, "keep_noisy": True, "population": False}
    )
    if plan.unit.is_bounded and not (unit.is_bounded and plan.unit.contribution == unit.contribution):
        bounds = plan.unit.contribution
        facts |= {"max_rows": bounds.max_rows, "max_groups": bounds.max_groups}
    if callable(mechanism):  # a function is known by its noise for the answers, without checks
        facts["mechanism"] = list(plan.known_by or plan.noises)
    return {NAMED.get(name, name): hash_of(name, value) for name, value in facts.items()}


def _checks(plan: Plan, usual: Any) -> Any:
    """Return the checks of the call, or of its ledger if there is something to check; None if neither asks for any."""
    asked = plan.question.pricing.checks
    if asked is None and usual is not None:
        checked = plan.checks is not None or asked_checks(plan.query, plan.unit, None) is not None
        asked = usual if checked else None
    return None if is_one_of(asked, ("auto",)) else asked


def _resolved(typed: keys.Keys, checked: keys.Keys) -> keys.Keys:
    """Return the keys as typed, with the time zones of the schema; keys that a dtype declares are taken from it."""
    pairs = zip(typed.axes, checked.axes, strict=True)
    return keys.Keys(tuple(two if one.coding == "dtype" else _of_the_column(one, two) for one, two in pairs))


def _of_the_column(typed: Any, checked: Any) -> Any:
    """Return an axis as typed; an axis of dates gets the time zone of its column."""
    return replace(typed, zone=checked.zone) if isinstance(typed, bins.DateAxis) and checked.zone else typed


def _of_the_schema(typed: Iterable[tuple[str, Any]], checked: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the statistics as typed, with their own axes as the schema resolves them.

    Keys of marginals that a dtype declares are no fact, as in 0.2: a stored answer with other rows is refused later.
    """
    return [(name, _resolved_as(one, checked[name])) for name, one in typed]


def _resolved_as(typed: Any, checked: Any) -> Any:
    if isinstance(typed, statistics.SuggestedBounds):
        return replace(typed, axes_of=checked.axes_of)
    if not isinstance(typed, statistics.Marginals):
        return typed
    attributes = tuple(map(_of_the_column, typed.attributes, checked.attributes))
    return typed if attributes == typed.attributes else replace(typed, attributes=attributes)


def _said(facts: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that differ from their defaults, so that a new fact does not change earlier calls."""
    return {name: fact for name, fact in facts.items() if not _is_default(fact, defaults.get(name, MISSING))}


def _of_class(value: Any) -> Written:
    """Describe a caller's own dataclass by its class and its fields."""
    contents = {field.name: getattr(value, field.name) for field in fields(value)}
    return Written(type(value).__name__, _said(contents, {field.name: field.default for field in fields(value)}))


def _is_default(content: Any, default: Any) -> bool:
    return default is not MISSING and type(content) is type(default) and bool(content == default)


def hash_of(name: str, value: Any) -> str:
    """Return the hash of a public fact."""
    try:
        plain = _plain(value)
    except TypeError as error:
        raise InvalidArgument(
            f"snapshot must be left out where {name} is {error}, which dpframe cannot recognize again. "
            "Name one of dpframe's, or leave snapshot out."
        ) from None
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Convert a public value to plain JSON, equal for equal values: 1 and 1.0 are one number, a tuple is a list."""
    if value is None or (isinstance(value, (str, bool)) and type(value) not in FORMS):
        return value
    if isinstance(value, (numbers.Real, Decimal)):
        return {"number": _number(value.item() if isinstance(value, np.generic) else value)}
    if isinstance(value, (date, time, timedelta)):
        return {"time": [type(value).__name__, str(value)]}
    if is_period(value):
        return {"time": ["Period", f"{value.freqstr} {value.ordinal}"]}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [value.dtype.str, list(value.shape), digest]}
    if isinstance(value, (list, tuple, range)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if type(value) in FORMS:
        value = FORMS[type(value)].of(value)
    elif is_dataclass(value) and not isinstance(value, (type, Written)):
        value = _of_class(value)
    if isinstance(value, Written):
        return {"class": value.kind, "parts": {name: _plain(part) for name, part in value.parts.items()}}
    known = [name for name, function in DENOISERS.items() if function is value]
    if known:
        return known[0]
    raise TypeError("a function of your own" if callable(value) else named(value))


def as_keys(rows: Iterable[Any]) -> tuple[Any, ...]:
    """Return declared keys as columns distinguish them: the float 0.1 is another key than Decimal("0.1").

    In a cost, both are written as the typed decimal. So a float key whose value is not exactly that decimal
    has its own form.
    """
    return tuple(as_keys(row) if isinstance(row, (tuple, list)) else _as_key(row) for row in rows)


def _as_key(value: Any) -> Any:
    if not isinstance(value, (float, np.floating)) or not math.isfinite(value):
        return value
    number = float(value)
    is_apart = Fraction(number) != Fraction(repr(number))
    return Written("Float", {"number": number}) if is_apart else value


def _number(value: Any) -> str:
    try:
        return str(Fraction(repr(value) if isinstance(value, float) else value))  # the typed decimal
    except (ValueError, OverflowError):  # infinite or NaN
        return repr(float(value))
