"""Write ledgers with a stored answer of every verb, by the code of one version; later versions must replay them.

    python -m tests.data.answers tests/data/0.2     # with the code of that version

This writes each ledger file, its head, and one line of `answers.json` for each call: the text of the call, the released
columns, and the hash of the record. The rows are made by arithmetic; the noise is random. Never write the files of a
released version again. If a later API renames a part of a call, only its text in `answers.json` may change.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

import dpframe as dpf
from dpframe.denoise import DENOISERS
from dpframe.queries.statistics import Clipped, Statistic, Total

ROWS = 400
SNAPSHOT = "2026-W47"
WARDS = pl.Enum(["A", "B", "C"])


def people() -> pl.DataFrame:
    """Return the private rows. A replay needs only their columns and dtypes."""
    numbers = range(ROWS)
    return pl.DataFrame(
        {
            "patient": [i // 3 for i in numbers],
            "age": [None if i % 13 == 5 else (i * 37) % 101 for i in numbers],
            "cost": [(i * 7919) % 1009 / 8 for i in numbers],
            "stays": [(i * 11) % 7 for i in numbers],
            "ward": [("A", "B", "C", None)[(i * 3 + i // 7) % 4] for i in numbers],
            "sex": [("f", "m")[i % 2] for i in numbers],
            "drug": [f"d{(i * i) % 17}" for i in numbers],
            "ok": [None if i % 19 == 3 else i % 3 == 0 for i in numbers],
            "unit": pl.Series([("A", "B", "C")[i % 3] for i in numbers], dtype=WARDS),
            "other": pl.Series([("C", "A")[i % 2] for i in numbers], dtype=WARDS),
            "day": [date(2026, 1, 1) + timedelta(days=(i * 5) % 40) for i in numbers],
            "at": [datetime(2026, 1, 1, 12) + timedelta(hours=(i * 29) % 200) for i in numbers],
            "stay": [timedelta(minutes=(i * 97) % 3000) for i in numbers],
            "hour": [time(i % 24) for i in numbers],
            "price": pl.Series([Decimal((i * 53) % 700) / 100 for i in numbers], dtype=pl.Decimal(20, 2)),
        }
    )


@dataclass(frozen=True)
class Half(Statistic):
    """A statistic that the caller defines."""

    verb: ClassVar[str] = "half"
    column: str

    def totals(self) -> tuple[Any, ...]:
        return (Total(self.column, (0.0, 50.0)),)


@dataclass(frozen=True)
class Middle(Clipped):
    """A statistic that the caller derives from a class of dpframe, with an additional field."""

    verb: ClassVar[str] = "middle"
    parts: int = 2

    def totals(self) -> tuple[Any, ...]:
        return (Total(self.column, self.bounds),)


@dataclass(frozen=True)
class Louder(dpf.Laplace):
    """Noise that the caller defines."""

    times: int = 1


def laplace(sensitivity: Any, loss: Any) -> dpf.Laplace:
    """A mechanism of the caller, with dpframe's own noise."""
    return dpf.Laplace.calibrate(sensitivity=sensitivity.norm(1.0), epsilon=loss.epsilon, grid=sensitivity.grid)


def louder(sensitivity: Any, loss: Any) -> Louder:
    """A mechanism of the caller, with the caller's own noise."""
    noise = laplace(sensitivity, loss)
    return Louder(noise.step_sensitivity, 2 * noise.step_scale, noise.grid, times=2)


UNIT = {"column": "patient", "max_rows": 2, "max_groups": 2}
# Most calls use the ledger "basic", whose unit has a column; each other ledger has the calls that name it.
LEDGERS: dict[str, dict[str, Any]] = {
    "basic": {"epsilon": 1000, "delta": 1e-2, "unit": UNIT, "accounting": "basic"},
    "rows": {"epsilon": 1000, "delta": 1e-2, "unit": None, "accounting": "basic"},
    "replaced": {
        "epsilon": 1000,
        "delta": 1e-2,
        "unit": {**UNIT, "neighbors": "replace", "nulls": "one-unit"},
        "accounting": "basic",
    },
    "gdp": {"epsilon": 1000, "delta": 1e-3, "keys_delta": 5e-4, "unit": UNIT, "accounting": "gdp"},
    "rdp": {"epsilon": 1000, "delta": 1e-3, "keys_delta": 5e-4, "unit": UNIT, "accounting": "rdp"},
}
EVERY = ("basic", "rows", "replaced", "gdp", "rdp")
MANY = ("basic", "rows", "gdp")
UNITS = ("basic", "gdp")
CURVES = ("gdp", "rdp")
BASIC = ("basic",)

# P becomes epsilon, label, snapshot and ledger; N the same without epsilon. `names_of` defines `keys` and `pairs`.
CALLS: tuple[tuple[tuple[str, ...], str], ...] = (
    # every statistic
    (EVERY, "dp.count(P)"),
    (MANY, "dp.count('age', P)"),
    (UNITS, "dp.n_units(P)"),
    (UNITS, "dp.n_units('age', P)"),
    (EVERY, "dp.sum('cost', bounds=(0, 100), P)"),
    (UNITS, "dp.sum('cost', unit_bounds=(0, 200), P)"),
    (BASIC, "dp.sum('price', bounds=(Decimal('0.5'), 5), P)"),
    (MANY, "dp.mean('age', bounds=(0, 100), P)"),
    (MANY, "dp.mean('age', bounds=(0, 100), missing='midpoint', P)"),
    (MANY, "dp.variance('age', bounds=(0, 100), P)"),
    (BASIC, "dp.variance('age', bounds=(0, 100), ddof=0, P)"),
    (MANY, "dp.std('age', bounds=(0, 100), P)"),
    (MANY, "dp.proportion('ok', P)"),
    (MANY, "dp.proportion('drug', value='d1', P)"),
    (BASIC, "dp.proportion('day', value=date(2026, 1, 6), P)"),
    (MANY, "dp.median('age', bounds=(0, 100), P)"),
    (BASIC, "dp.median('cost', bounds=(0, 100), step=0.5, P)"),
    (BASIC, "dp.median('age', candidates=[0, 10, 25, 50, 75], P)"),
    (EVERY, "dp.median('age', bounds=(0, 100), mechanism='exponential', P)"),
    (MANY, "dp.quantile('age', q=0.25, bounds=(0, 100), P)"),
    (MANY, "dp.quantile('age', q=[0.1, 0.5, 0.9], bounds=(0, 100), P)"),
    (MANY, "dp.quantile('age', q=0.9, bounds=(0, 100), mechanism='exponential', P)"),
    (MANY, "dp.ecdf('age', bins=[0, 25, 50, 75, 100], P)"),
    (BASIC, "dp.ecdf('day', bins=5, range=(date(2026, 1, 1), date(2026, 2, 10)), P)"),
    (MANY, "dp.agg(dpf.ratio('cost', 'stays', bounds={'cost': (0, 100), 'stays': (0, 7)}), P)"),
    (MANY, "dp.n_distinct('drug', max_values=2, P)"),
    (("rows",), "dp.n_distinct('drug', P)"),
    (MANY, "dp.mode('ward', categories=['A', 'B', 'C', None], P)"),
    (BASIC, "dp.mode('unit', P)"),
    (BASIC, "dp.mode('sex', categories=['f', 'm'], max_rows=1, P)"),
    (EVERY, "dp.top_k('drug', k=3, categories=['d0', 'd1', 'd4', 'd8', 'd9'], P)"),
    (MANY, "dp.top_k('drug', k=2, categories=['d0', 'd1', 'd4', 'd8', 'd9'], counts=True, P)"),
    (BASIC, "dp.top_k('unit', k=2, P)"),
    (MANY, "dp.covariance(['age', 'cost'], bounds={'age': (0, 100), 'cost': (0, 100)}, P)"),
    (
        BASIC,
        "dp.covariance(['age', 'cost', 'stays'], bounds={'age': (0, 100), 'cost': (0, 100), 'stays': (0, 7)},"
        " ddof=0, P)",
    ),
    (MANY, "dp.correlation(['age', 'cost'], bounds={'age': (0, 100), 'cost': (0, 100)}, P)"),
    (CURVES, "dp.marginals(['ward', 'sex'], keys=keys, P)"),
    (("gdp",), "dp.marginals(['unit', 'other'], P)"),
    (BASIC, "dp.marginals(['ward', 'sex'], keys=keys, delta=1e-6, P)"),
    (BASIC, "dp.marginals(['ward', 'sex'], keys=keys, objective='cells', denoise='auto', delta=1e-6, P)"),
    (BASIC, "dp.marginals(['ward', 'sex'], keys=keys, degree=1, denoise='nonnegative', delta=1e-6, P)"),
    (BASIC, "dp.marginals(['unit', 'ok'], keys={'unit': ['A', 'C'], 'ok': [True, False]}, delta=1e-6, P)"),
    # histograms
    (EVERY, "dp.histogram('age', bins=[0, 20, 40, 60, 80, 101], P)"),
    (MANY, "dp.histogram('age', bins=[0, 20, 40, 60, 80, 101], denoise=None, P)"),
    (BASIC, "dp.histogram('age', bins=range(0, 101, 20), outside='clip', P)"),
    (BASIC, "dp.histogram('cost', bins=12, range=(0, 120), P)"),
    (MANY, "dp.histogram('age', bins=16, range=(0, 128), ranges=True, P)"),
    (BASIC, "dp.histogram('age', bins=16, range=(0, 128), ranges=True, denoise=None, P)"),
    (BASIC, "dp.histogram(['age', 'cost'], bins=[8, 8], range=[(0, 128), (0, 128)], ranges=True, P)"),
    (BASIC, "dp.group_by('sex', keys=['f', 'm']).histogram('age', bins=8, range=(0, 128), ranges=True, P)"),
    (MANY, "dp.histogram('age', bins=[0, 20, 40, 60, 80, 101], normalize=True, P)"),
    (BASIC, "dp.histogram('ward', categories=['A', 'B'], normalize=True, P)"),
    (MANY, "dp.histogram(['age', 'cost'], bins=[4, 5], range=[(0, 100), (0, 125)], P)"),
    (BASIC, "dp.histogram('ward', categories=['A', 'B', 'C', None], P)"),
    (BASIC, "dp.histogram('unit', P)"),
    (BASIC, "dp.histogram('day', bins=[date(2026, 1, 1), date(2026, 1, 11), date(2026, 2, 9)], P)"),
    (BASIC, "dp.histogram('day', bins='1w', range=('2025-12-29', '2026-02-16'), P)"),
    (BASIC, "dp.histogram('at', bins=[datetime(2026, 1, 1, 12), datetime(2026, 1, 3), datetime(2026, 1, 5)], P)"),
    (BASIC, "dp.histogram('stay', bins=4, range=(timedelta(0), timedelta(2)), P)"),
    (BASIC, "dp.histogram('age', bins=pd.IntervalIndex.from_breaks([0, 25, 50, 75, 101], closed='left'), P)"),
    (BASIC, "dp.group_by('sex', keys=['f', 'm']).histogram('age', bins=[0, 50, 101], P)"),
    # keys
    (EVERY, "dp.group_by('ward', keys=['A', 'B', 'C', None]).count(P)"),
    (BASIC, "dp.group_by('ward', keys=('B', 'A')).mean('age', bounds=(0, 100), P)"),
    (MANY, "dp.group_by('ward', 'sex', keys=keys).agg(n=dpf.count(), P)"),
    (BASIC, "dp.group_by('ward', 'sex', keys=pairs).count(P)"),
    (BASIC, "dp.group_by('unit').count(P)"),
    (BASIC, "dp.group_by('unit', 'other').count(P)"),
    (BASIC, "dp.group_by('ok', keys=[True, False, None]).count(P)"),
    (BASIC, "dp.group_by('stays', keys=range(0, 7)).count(P)"),
    (BASIC, "dp.group_by('stays', keys=[0, 1.0, Decimal('2')]).sum('cost', bounds=(0, 100), P)"),
    (BASIC, "dp.group_by('price', keys=[Decimal('0.53'), Decimal('1.06')]).count(P)"),
    (BASIC, "dp.group_by('day', keys=[date(2026, 1, 1), date(2026, 1, 6)]).count(P)"),
    (BASIC, "dp.group_by('at', keys=[datetime(2026, 1, 1, 12), datetime(2026, 1, 2, 17)]).count(P)"),
    (BASIC, "dp.group_by('stay', keys=[timedelta(0), timedelta(minutes=97)]).count(P)"),
    (BASIC, "dp.group_by('hour', keys=[time(0), time(12)]).count(P)"),
    (MANY, "dp.group_by('day', keys=dpf.dates('2025-12-29', '2026-02-09', every='1w')).count(P)"),
    (BASIC, "dp.group_by('day', keys=dpf.dates('2026-01-01', '2026-02-01', every='1mo')).count(P)"),
    (BASIC, "dp.group_by('day', keys=dpf.dates('2026-01-01', '2026-01-05', every='1d')).count(P)"),
    (MANY, "dp.group_by(dpf.bins('age', [0, 18, 65, 120])).mean('cost', bounds=(0, 100), P)"),
    (BASIC, "dp.group_by(dpf.bins('age', 4, range=(0, 100), outside='clip'), 'sex', keys=['f', 'm']).count(P)"),
    (BASIC, "dp.group_by(dpf.bins('day', '1mo', range=('2026-01-01', '2026-03-01'))).count(P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B']).n_units(P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B']).median('age', bounds=(0, 100), P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B']).ecdf('age', bins=[0, 50, 101], P)"),
    (
        BASIC,
        "dp.group_by('ward', keys=['A', 'B']).covariance(['age', 'cost'],"
        " bounds={'age': (0, 100), 'cost': (0, 100)}, P)",
    ),
    (BASIC, "dp.group_by('ward', keys=['A', 'B']).proportion('drug', value='d1', P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B']).n_distinct('drug', max_values=1, P)"),
    # several statistics, weights, subtotals
    (MANY, "dp.agg(n=dpf.count(), age=dpf.mean('age', bounds=(0, 100)), cost=dpf.sum('cost', bounds=(0, 100)), P)"),
    (
        MANY,
        "dp.group_by('ward', keys=['A', 'B']).agg(n=dpf.count('age'), u=dpf.n_units(),"
        " m=dpf.median('age', bounds=(0, 100)), v=dpf.variance('age', bounds=(0, 100)), P)",
    ),
    (BASIC, "dp.agg({'n': dpf.count(), 'every one': dpf.sum('cost', unit_bounds=(0, 200))}, P)"),
    (
        BASIC,
        "dp.agg(dpf.count(), dpf.std('age', bounds=(0, 100)), dpf.quantile('age', q=[0.2, 0.8], bounds=(0, 100)), P)",
    ),
    (
        BASIC,
        "dp.agg(p=dpf.proportion('ok'), d=dpf.n_distinct('drug', max_values=2),"
        " r=dpf.ratio('cost', 'stays', bounds={'cost': (0, 100), 'stays': (0, 7)}), P)",
    ),
    (MANY, "dp.agg(n=dpf.count(), cost=dpf.sum('cost', bounds=(0, 100)), weights={'n': 4}, P)"),
    (BASIC, "dp.agg(n=dpf.count(), age=dpf.mean('age', bounds=(0, 100)), weights={'n': 4, 'age': 2}, P)"),
    (MANY, "dp.group_by('ward', 'sex', keys=keys).count(rollup=True, P)"),
    (BASIC, "dp.group_by('ward', 'sex', keys=keys).sum('cost', bounds=(0, 100), rollup=True, denoise=None, P)"),
    (MANY, "dp.group_by('ward', 'sex', keys=keys).count(cube=True, P)"),
    (BASIC, "dp.group_by('unit').count(rollup=True, P)"),
    # contributions, and discovered keys
    (UNITS, "dp.contributions(P)"),
    (UNITS, "dp.contributions('ward', P)"),
    (BASIC, "dp.contributions(['ward', 'sex'], P)"),
    (UNITS, "dp.contributions('ward', ['A', None], P)"),
    (BASIC, "dp.contributions('ward', ['A', 'B'], denoise=None, P)"),
    (BASIC, "dp.contributions('unit', ['A', 'B'], P)"),
    (EVERY, "dp.group_by('drug', keys=dpf.discover(delta=1e-6)).count(P)"),
    (UNITS, "dp.group_by('drug', keys=dpf.discover(delta=1e-6, max_keys=2, at_least=2)).n_units(P)"),
    (BASIC, "dp.group_by('ward', 'sex', keys=dpf.discover(delta=1e-6, known=[('A', 'f')])).count(P)"),
    (
        BASIC,
        "dp.group_by('ward', keys=dpf.discover(delta=1e-6, nulls=True, known=['A', None])).mean('age',"
        " bounds=(0, 100), P)",
    ),
    (BASIC, "dp.group_by('stays', keys=dpf.discover(delta=1e-6, max_keys=3)).count(P)"),
    (MANY, "dp.top_k('drug', k=2, categories=dpf.discover(delta=1e-6, max_keys=4), P)"),
    # contribution bounds, epsilon and noise
    (BASIC, "dp.count(max_rows=5, P)"),
    (UNITS, "dp.group_by('ward', keys=['A', 'B']).count(max_rows=1, max_groups=1, P)"),
    (BASIC, "dp.count(unit=dpf.PrivacyUnit(column='patient', max_rows=3, max_groups=1), P)"),
    (("rows",), "dp.count(unit=dpf.PrivacyUnit(), P)"),
    (BASIC, "dp.count(share=0.0005, N)"),
    (BASIC, "dp.count(epsilon=Decimal('0.125'), N)"),
    (BASIC, "dp.count(epsilon=0.25, delta=1e-6, N)"),
    (MANY, "dp.count(within=60, N)"),
    (BASIC, "dp.count(within=60, confidence=0.9, N)"),
    (BASIC, "dp.mean('age', bounds=(0, 100), within=3, size=500, N)"),
    (BASIC, "dp.agg(n=dpf.count(), cost=dpf.sum('cost', bounds=(0, 100)), within={'n': 40, 'cost': 5000}, N)"),
    (BASIC, "dp.count(mechanism='laplace', P)"),
    (BASIC, "dp.count(mechanism='gaussian', delta=1e-6, P)"),
    (("gdp",), "dp.count(mechanism='gaussian', P)"),
    (("gdp",), "dp.count(mechanism='laplace', P)"),
    (BASIC, "dp.count(mechanism='auto', delta=1e-6, P)"),
    (("gdp",), "dp.count(mechanism='auto', P)"),
    (("rows",), "dp.sum('cost', bounds=(0, 100), mechanism=dpf.generalized_gaussian(p=3), delta=1e-6, P)"),
    (("rows",), "dp.sum('cost', bounds=(0, 100), mechanism=dpf.generalized_gaussian(p=1), delta=1e-6, P)"),
    (BASIC, "dp.count(mechanism=dpf.truncated_generalized_gaussian(p=1, output=(0, 500)), P)"),
    (("rows",), "dp.count(mechanism=dpf.truncated_generalized_gaussian(p=2, output=(0, 500)), delta=1e-6, P)"),
    (("rows",), "dp.count(mechanism=dpf.generalized_gaussian(p=3, guarantee='probabilistic'), delta=1e-6, P)"),
    (BASIC, "dp.count(mechanism=laplace, P)"),
    (BASIC, "dp.count(mechanism=louder, P)"),
    (BASIC, "dp.count(mechanism=dpf.classical_gaussian, delta=1e-6, P)"),
    (BASIC, "dp.sum('cost', bounds=(0, 100), mechanism=dpf.probabilistic_gaussian(), delta=1e-6, P)"),
    (BASIC, "dp.mean('age', bounds=(0, 100), mechanism=dpf.classical_gaussian, delta=1e-6, P)"),
    (BASIC, "dp.count(mechanism=dpf.generalized_gaussian(p=2), delta=1e-6, P)"),
    (BASIC, "dp.count(mechanism=dpf.truncated_generalized_gaussian(p=1, output=(0, 500), boundary='inflated'), P)"),
    (BASIC, "dp.agg(half=Half('cost'), clipped=Middle('age', (0, 100), 3), P)"),
    # processing of noisy values
    (BASIC, "dp.count(denoise='nonnegative', P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B', 'C']).count(denoise=['nonnegative', 'rounded'], P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B', 'C']).count(denoise=dpf.denoise.nonnegative, P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B', 'C']).count(keep_noisy=False, P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B', 'C']).count(order=True, P)"),
    (BASIC, "dp.group_by('ward', 'sex', keys=keys).count(order='ward', P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B', 'C']).count(order=False, P)"),
    (BASIC, "dp.group_by('ward', keys=['A', 'B', 'C']).count(graph=[('A', 'B'), ('B', 'C')], P)"),
    # options that leave the answer unchanged
    (BASIC, "dp.group_by('ward', keys=['A', 'B']).count(max_cells=100, P)"),
)

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]


def calls() -> Iterator[tuple[str, str, str]]:
    """Yield each call as (ledger, label, text)."""
    along = dict.fromkeys(sorted(DENOISERS), "") | {"spanning-tree-wavelets": f"graph={EDGES}, "}
    named = [
        (BASIC, f"dp.group_by('stays', keys=range(6)).count({more}denoise='{name}', P)") for name, more in along.items()
    ]
    numbers = dict.fromkeys(LEDGERS, 0)
    for ledgers, text in (*CALLS, *named):
        for ledger in ledgers:
            numbers[ledger] += 1
            label = f"{ledger} {numbers[ledger]}"
            said = f"label={label!r}, snapshot={SNAPSHOT!r}, ledger=ledger"
            price = text.replace(", P)", f", epsilon=0.5, {said})").replace("(P)", f"(epsilon=0.5, {said})")
            yield ledger, label, price.replace(", N)", f", {said})")


def names_of(frame: Any, ledger: Any) -> dict[str, Any]:
    """Return the names that the text of a call may use."""
    try:
        import pandas as pd
    except ImportError:
        pd = None  # type: ignore[assignment]
    return {
        "dp": frame.dp,
        "dpf": dpf,
        "ledger": ledger,
        "keys": {"ward": ["A", "C"], "sex": ["m", "f"]},
        "pairs": pl.DataFrame({"ward": ["A", "A", "C"], "sex": ["f", "m", "m"]}),
        "date": date,
        "datetime": datetime,
        "time": time,
        "timedelta": timedelta,
        "Decimal": Decimal,
        "pd": pd,
        "laplace": laplace,
        "louder": louder,
        "Half": Half,
        "Middle": Middle,
    }


def answered(text: str, frame: Any, ledger: Any) -> dict[str, Any]:
    """Make a call, and return its columns, as values of JSON, and the hash of its record."""
    result = eval(text, names_of(frame, ledger))  # text from this repository
    record = {name: fact for name, fact in result.dp.provenance.items() if name != "altered"}
    columns = {name: list(map(_plain, result[name].to_list())) for name in result.columns}
    return {"columns": columns, "record": hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def write(folder: Path) -> None:
    """Write the ledgers and `answers.json`."""
    folder.mkdir(exist_ok=True)
    ledgers = {}
    for name, terms in LEDGERS.items():
        unit = terms["unit"] and dpf.PrivacyUnit(**terms["unit"])
        ledgers[name] = dpf.Ledger(**{**terms, "unit": unit}, path=folder / f"{name}.ledger", dataset=name)
    frame, lines = people(), []
    for ledger, label, text in calls():
        said = {"ledger": ledger, "label": label, "call": text, **answered(text, frame, ledgers[ledger])}
        lines.append(json.dumps(said))
    (folder / "answers.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(lines)} answers")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
