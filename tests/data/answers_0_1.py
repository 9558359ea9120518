"""Write ledgers with a stored answer of every verb of dpframe 0.1, by the code of its last commit (0c96374).

    PYTHONPATH=<the tree of 0.1> python tests/data/answers_0_1.py tests/data/0.1

Each line of `answers.json` has the call in the API of 0.1. `today` translates it to the current API.
"""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dpf

NUMBERS = range(60)
COLUMNS = {
    "patient": [i // 3 for i in NUMBERS],
    "age": [None if i % 13 == 5 else (i * 37) % 101 for i in NUMBERS],
    "cost": [(i * 7919) % 1009 / 8 for i in NUMBERS],
    "ward": [("A", "B", "C", None)[(i * 3 + i // 7) % 4] for i in NUMBERS],
    "sex": [("f", "m")[i % 2] for i in NUMBERS],
    "unit": pl.Series([("A", "B", "C")[i % 3] for i in NUMBERS], dtype=pl.Enum(["A", "B", "C"])),
    "ok": [None if i % 19 == 3 else i % 3 == 0 for i in NUMBERS],
    "day": [date(2026, 1, 1) + timedelta(days=(i * 5) % 40) for i in NUMBERS],
    "at": [datetime(2026, 1, 1, 12) + timedelta(hours=(i * 29) % 200) for i in NUMBERS],
    "stay": [timedelta(minutes=(i * 97) % 3000) for i in NUMBERS],
}
LEDGERS: dict[str, dict[str, Any]] = {
    "every": {"epsilon": 1000, "delta": 1e-2, "accounting": "basic"},
    "units": {"epsilon": 1000, "delta": 1e-3, "accounting": "gdp"},
}
BOTH, ONE = ("every", "units"), ("every",)
CALLS: tuple[tuple[tuple[str, ...], str], ...] = (
    (BOTH, "dp.count(P)"),
    (BOTH, "dp.count('age', P)"),
    (BOTH, "dp.sum('cost', bounds=(0, 100), P)"),
    (BOTH, "dp.mean('age', bounds=(0, 100), P)"),
    (BOTH, "dp.histogram('age', bins=[0, 20, 40, 60, 80, 101], P)"),
    (ONE, "dp.histogram('age', bins=5, range=(0, 100), outside='clip', P)"),
    (BOTH, "dp.histogram(['age', 'cost'], bins=[4, 5], range=[(0, 100), (0, 125)], P)"),
    (ONE, "dp.histogram('day', bins=[date(2026, 1, 1), date(2026, 1, 11), date(2026, 2, 9)], P)"),
    (ONE, "dp.histogram('at', bins=[datetime(2026, 1, 1, 12), datetime(2026, 1, 3)], P)"),
    (ONE, "dp.histogram('stay', bins=4, range=(timedelta(0), timedelta(2)), P)"),
    (ONE, "dp.histogram('ward', categories=['A', 'B', None], P)"),
    (ONE, "dp.histogram('unit', P)"),
    (ONE, "dp.select('ward', categories=['A', 'B', None], P)"),
    (ONE, "dp.select('unit', P)"),
    (BOTH, "dp.group_by('ward', keys=['A', 'B', 'C', None]).count(P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B']).histogram('age', bins=[0, 50, 101], P)"),
    (BOTH, "dp.group_by('ward', 'sex', keys={'ward': ['A', 'C'], 'sex': ['m', 'f']}).agg(n=dpf.count(),"
     " cost=dpf.sum('cost', bounds=(0, 100)), age=dpf.mean('age', bounds=(0, 100)), P)"),
    (ONE, "dp.group_by('ward', 'sex', keys=pairs).count(P)"),
    (ONE, "dp.group_by('unit').count(P)"),
    (ONE, "dp.group_by('ok', keys=[True, False, None]).count(P)"),
    (ONE, "dp.group_by('age', keys=range(0, 40, 3)).count(P)"),
    (ONE, "dp.group_by('day', keys=[date(2026, 1, 1), date(2026, 1, 6)]).count(P)"),
    (BOTH, "dp.agg(n=dpf.count(), cost=dpf.sum('cost', bounds=(0, 100)), weights={'n': 4}, P)"),
    (BOTH, "dp.group_by('ward', keys=['A', 'B']).count(rollup=True, P)"),
    (ONE, "dp.count(share=0.0005, N)"),
    (ONE, "dp.count(epsilon=Decimal('0.125'), N)"),
    (ONE, "dp.count(epsilon=0.25, delta=1e-6, N)"),
    (ONE, "dp.count(within=60, N)"),
    (ONE, "dp.count(within=60, confidence=0.9, N)"),
    (ONE, "dp.mean('age', bounds=(0, 100), within=3, size=500, N)"),
    (ONE, "dp.count(mechanism='laplace', P)"),
    (ONE, "dp.count(mechanism='gaussian', delta=1e-6, P)"),
    (ONE, "dp.count(mechanism='auto', delta=1e-6, P)"),
    (ONE, "dp.count(mechanism=dpf.generalized_gaussian(p=3), delta=1e-6, P)"),
    (ONE, "dp.count(mechanism=dpf.truncated_generalized_gaussian(p=1, output=(0, 500)), P)"),
    (ONE, "dp.count(mechanism=dpf.classical_gaussian, delta=1e-6, P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B']).count(denoise=None, P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B']).count(denoise='nonnegative', P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B']).count(denoise=['nonnegative', 'rounded'], P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B']).count(raw=False, P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B']).count(order=True, P)"),
    (ONE, "dp.group_by('ward', keys=['A', 'B', 'C']).count(graph=[('A', 'B'), ('B', 'C')], P)"),
)  # fmt: skip


def today(text: str) -> str:
    """Return the same call in the current API."""
    words = {".select(": ".mode(", "dp.select(": "dp.mode(", "raw=": "keep_noisy=", "version=": "snapshot="}
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def answered(text: str, frame: Any, ledger: Any) -> dict[str, Any]:
    """Make a call, and return its columns, as values of JSON, and the hash of its record."""
    pairs = pl.DataFrame({"ward": ["A", "A", "C"], "sex": ["f", "m", "m"]})
    names = {"dp": frame.dp, "dpf": dpf, "ledger": ledger, "pairs": pairs, "date": date, "datetime": datetime}
    result = eval(text, {**names, "timedelta": timedelta, "Decimal": Decimal})  # text from this repository
    record = {name: fact for name, fact in result.dp.provenance.items() if name != "altered"}
    columns = {name: [_plain(value) for value in result[name].to_list()] for name in result.columns}
    return {"columns": columns, "record": hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def write(folder: Path) -> None:
    """Write the ledgers and `answers.json`."""
    units = {"every": None, "units": dpf.PrivacyUnit(column="patient", max_rows=2, max_groups=2)}
    ledgers = {
        name: dpf.Ledger(**terms, unit=units[name], path=folder / f"{name}.ledger", dataset=name)
        for name, terms in LEDGERS.items()
    }
    lines = []
    for number, (names, text) in enumerate(CALLS):
        for name in names:
            label = f"{name} {number}"
            said = f"label={label!r}, version='2026-W47', ledger=ledger)"
            call = text.replace("P)", f"epsilon=0.5, {said}").replace("N)", said)
            answer = answered(call, pl.DataFrame(COLUMNS), ledgers[name])
            lines.append(json.dumps({"ledger": name, "label": label, "call": call, **answer}))
    (folder / "answers.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(lines)} answers")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
