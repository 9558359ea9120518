"""The record: what some hundred calls measure, add, charge, state and refuse, taken before any noise is added.

    python -m assurance.record           # compare with tests/record, and print what differs
    python -m assurance.record --write   # write it anew: every difference is then a line of a diff

A change that must keep answers the same keeps the record the same. The calls are in ``assurance.record_calls``. All is
read through the public API, except in `measured_into`: it intercepts the exact totals before noise is added, and
returns the totals as if the noise were zero.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import json
import math
import numbers
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpframe as dpf
from assurance import verdict
from assurance.record_calls import CALLS, Call, frame_of

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "record"
LONG = 40  # longer lists of numbers are recorded as a hash and the sum
DIGITS = 12  # digits of values that are computed from totals
FRACTIONAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
UNRECORDED = {
    "time",
    "nonce",
    "hash",
    "head",
    "sha256",
    "dpframe",
    "ledger",
    "identity",
    "release",
}  # random, or dependent on the version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the record instead of comparing with it")
    options = parser.parse_args()
    missing = [call.name for call in CALLS if not call.can_be_made]
    if options.write and missing:
        parser.error(f"the whole record needs pandas and the extra accounting: {len(missing)} calls cannot be made")
    taken = {call.name: line_of(call) for call in CALLS if call.can_be_made}
    if options.write:
        return _written(taken)
    known = stored()
    both = [call for call in CALLS if call.name in known and call.name in taken]
    kept = {call.name for call in both if same(call, known[call.name], taken[call.name])}
    differing = [name for name in {**known, **taken} if name not in kept and name not in missing]
    for name in differing:
        print(name, difference(known.get(name), taken.get(name)), sep="\n")
    print(f"{len(taken)} calls, {len(differing)} differ")
    return verdict(len(differing), calls=len(taken))


def _written(taken: Mapping[str, str]) -> int:
    """Write one file for each group of calls, one line for each call."""
    FOLDER.mkdir(exist_ok=True)
    rooms = {call.name: call.room for call in CALLS}
    for file in FOLDER.glob("*.json"):
        file.unlink()
    for room in dict.fromkeys(rooms.values()):
        lines = [f"{json.dumps(name)}: {line}" for name, line in taken.items() if rooms[name] == room]
        (FOLDER / f"{room}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(taken)} calls, {sum(file.stat().st_size for file in FOLDER.glob('*.json')):,} bytes")
    return 0


def stored() -> dict[str, str]:
    """Read the record as canonical lines by call name."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.json")):
        found |= {name: _canonical(one) for name, one in json.loads(file.read_text(encoding="utf-8")).items()}
    return found


def difference(known: str | None, taken: str | None) -> str:
    """Return the difference between two entries of the record as lines."""
    sides = [json.dumps(json.loads(one or "{}"), indent=1, sort_keys=True).splitlines() for one in (known, taken)]
    return "\n".join(difflib.unified_diff(*sides, "recorded", "now", lineterm="", n=2))


def same(call: Call, known: str, taken: str) -> bool:
    """Return whether a call is as recorded, except for last digits that depend on the machine or on SciPy.

    The last digits of a scale that is found by a privacy loss distribution depend on the processor, whose Fourier
    transforms round differently; and the record comes from the newest SciPy of Python 3.11.
    """
    return known == taken or ((call.needs_accounting or sys.version_info[:2] != (3, 11)) and alike(known, taken))


def alike(known: str, taken: str) -> bool:
    """Return whether two entries are equal except for the last digits of numbers."""
    words, others = (FRACTIONAL.split(one) for one in (known, taken))
    numbers = zip(FRACTIONAL.findall(known), FRACTIONAL.findall(taken), strict=True)
    return words == others and all(math.isclose(float(one), float(other), rel_tol=1e-9) for one, other in numbers)


def line_of(call: Call) -> str:
    """Make a call, and return everything public about it as one line of canonical JSON.

    A call on another frame than the first one records only the differences from the call on the first.
    """
    facts = facts_of(call)
    if call.like is not None:
        facts = dict(_different(facts, facts_of(call.like)))
    return _canonical(facts)


def _different(facts: Any, first: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the parts of nested facts that differ from the first ones, by their path."""
    for name in {**first, **facts}:
        mine, other = facts.get(name), first.get(name)
        if isinstance(mine, dict) and isinstance(other, dict):
            yield from _different(mine, other, f"{at}{name}/")
        elif mine != other:
            yield f"{at}{name}", mine


def facts_of(call: Call) -> dict[str, Any]:
    """Make a call with a new ledger; return what it measured, charged and stated, or how it was refused."""
    measured: list[dict[str, Any]] = []
    ledger = None if call.ledger is None else call.ledger()
    with warnings.catch_warnings(record=True) as caught, measured_into(measured):
        warnings.simplefilter("always")
        try:
            value = call.ask(dpf.of(frame_of(call.frame)), ledger)
        except Exception as error:  # the record includes the kind of any error
            value = error
        shown = _shown(value)
    facts: dict[str, Any] = {"measured": measured} if measured else {}
    if caught:
        facts["warned"] = [f"{one.category.__name__}: {one.message}" for one in caught]
    if ledger is not None:
        facts["ledger"] = [_plain(entry) for entry in ledger.to_frame().to_dicts()]
        facts["spent"] = _plain(ledger.spent)
    return facts | shown


@contextlib.contextmanager
def measured_into(seen: list[dict[str, Any]]) -> Iterator[None]:
    """Record what noise is added to and its scale, but add none; only this function knows how noise is added."""
    kinds = [one for name in dpf.__all__ if isinstance(one := getattr(dpf, name), type)]
    classes = {base for one in kinds for base in one.__mro__ if "add_noise" in vars(base)}
    sound = {one: one.add_noise for one in classes}  # type: ignore[attr-defined]

    def add_nothing(self: Any, totals: Any) -> Any:
        told = ("name", "scale", "sensitivity", "p", "norm", "grid")
        facts = {name: _plain(getattr(self, name)) for name in told}
        seen.append({**facts, "totals": _numbers([int(one) for one in np.ravel(totals)])})
        return np.array(totals)

    for one in classes:
        one.add_noise = add_nothing  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for one in classes:
            one.add_noise = sound[one]  # type: ignore[attr-defined]


def _shown(value: Any) -> dict[str, Any]:
    """Return a result by its kind: a released frame, a plan, several of them, an error, or a plain value."""
    if isinstance(value, Exception):
        return {"refused": type(value).__name__, "message": str(value)}
    if isinstance(value, (dpf.Plan, dpf.JointPlan, dpf.PlanTable)):
        return {"plan": _plan(value)}
    if isinstance(value, Mapping):
        return {"parts": {name: _shown(one) for name, one in value.items()}}
    if hasattr(value, "columns") and hasattr(value, "dp"):
        return {"result": _frame(value)}
    return {"value": _plain(value)}


def _plan(plan: Any) -> dict[str, Any]:
    """Return what a plan states: cost, errors, the rows of its table, and its text."""
    facts: dict[str, Any] = {"words": str(plan).splitlines()}
    facts["rows"] = [_plain(row) for row in plan.to_frame().to_dicts()]
    for name in ("cost", "error", "amount"):
        if hasattr(plan, name):
            facts[name] = _plain(getattr(plan, name))
    return facts


def _frame(frame: Any) -> dict[str, Any]:
    """Return columns, dtypes, values without denoising, and the provenance of a result."""
    provenance = frame.dp.provenance
    denoised = {name for name, statistic in provenance["measures"].items() if statistic["denoise"]}
    values = {name: "denoised" if name in denoised else _numbers(_values(frame[name])) for name in frame.columns}
    dtypes = {name: _dtype(frame[name]) for name in frame.columns}
    library = type(frame).__module__.split(".")[0]
    order = list(frame.columns)  # the keys of a JSON object are sorted
    return {
        "library": library,
        "order": order,
        "dtypes": dtypes,
        "values": values,
        "provenance": _provenance(provenance),
    }


def _values(column: Any) -> list[Any]:
    """Return the values of a column; all kinds of missing values of pandas become None, as in other libraries."""
    values = column.to_list()
    missing = column.isna() if hasattr(column, "isna") else [False] * len(values)
    return [None if gone else _digits(value) for value, gone in zip(values, missing, strict=True)]


def _provenance(facts: Mapping[str, Any]) -> Any:
    """Return the provenance without random facts, and only the names of denoisers."""
    told = {name: fact for name, fact in facts.items() if name not in UNRECORDED}
    told["measures"] = {
        name: {**statistic, "denoise": [step["name"] for step in statistic["denoise"] or ()]}
        for name, statistic in facts["measures"].items()
    }
    told["statistics"] = [
        {name: _digits(fact) if name == "variance" else fact for name, fact in part.items()}  # its last digit is libm's
        for part in facts["statistics"]
    ]
    return _plain(told)


def _dtype(column: Any) -> str:
    """Return the name of a dtype, the same in all versions of a library: pandas 3 says str, pandas 2 says object."""
    name = re.sub(r"\(.*", "", str(column.dtype), flags=re.DOTALL) if hasattr(column, "to_frame") else str(column.dtype)
    return {"str": "object"}.get(re.sub(r"\[(s|ms|us|ns)", "[", name), re.sub(r"\[(s|ms|us|ns)", "[", name))


def _digits(value: Any) -> Any:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else _plain(value)


def _numbers(values: list[Any]) -> Any:
    """Return a short list unchanged, and for a long one its length, a hash and the sum."""
    if len(values) <= LONG:
        return values
    told = hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
    whole = sum(one for one in values if isinstance(one, int))
    return {"many": len(values), "hash": told, "sum": whole}


def _plain(value: Any) -> Any:  # noqa: PLR0911
    """Return any public value as JSON: reals by their repr, exact numbers exactly."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items() if name not in UNRECORDED}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (Fraction, Decimal, date, datetime, timedelta)):
        return str(value)
    if isinstance(value, numbers.Real):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, dpf.PrivacyLoss):
        return {"epsilon": repr(value.epsilon), "delta": repr(value.delta)}
    return str(value)


def _canonical(facts: Any) -> str:
    return json.dumps(facts, sort_keys=True, separators=(", ", ": "), ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
