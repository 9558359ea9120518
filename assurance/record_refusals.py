"""Wrong calls of the record: the class and message of each error; nothing may be charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpframe as dpf

AGES = {"bins": [0, 50, 100]}
WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "no price": lambda dp, ledger: dp.count(ledger=ledger),
    "epsilon 0": lambda dp, ledger: dp.count(epsilon=0, ledger=ledger),
    "epsilon below 0": lambda dp, ledger: dp.count(epsilon=-1, ledger=ledger),
    "epsilon as text": lambda dp, ledger: dp.count(epsilon="1", ledger=ledger),
    "epsilon NaN": lambda dp, ledger: dp.count(epsilon=float("nan"), ledger=ledger),
    "epsilon True": lambda dp, ledger: dp.count(epsilon=True, ledger=ledger),
    "delta 1": lambda dp, ledger: dp.count(epsilon=1, delta=1, ledger=ledger),
    "more than the ledger has": lambda dp, ledger: dp.count(epsilon=11, ledger=ledger),
    "delta that the ledger lacks": lambda dp, ledger: dp.count(epsilon=1, delta=1e-6, ledger=ledger),
    "epsilon and share": lambda dp, ledger: dp.count(epsilon=1, share=0.5, ledger=ledger),
    "share above 1": lambda dp, ledger: dp.count(share=2, ledger=ledger),
    "within and epsilon": lambda dp, ledger: dp.count(epsilon=1, within=5, ledger=ledger),
    "confidence alone": lambda dp, ledger: dp.count(epsilon=1, confidence=0.9, ledger=ledger),
    "within of a mean without size": lambda dp, ledger: dp.mean("age", bounds=(0, 100), within=5, ledger=ledger),
    "another unit": lambda dp, ledger: dp.count(epsilon=1, unit="name", ledger=ledger),
    "unknown column": lambda dp, ledger: dp.count("agee", epsilon=1, ledger=ledger),
    "unknown option": lambda dp, ledger: dp.count(epsilon=1, epsilom=1, ledger=ledger),
    "sum of text": lambda dp, ledger: dp.sum("ward", bounds=(0, 1), epsilon=1, ledger=ledger),
    "sum without bounds": lambda dp, ledger: dp.sum("age", epsilon=1, ledger=ledger),
    "bounds in the wrong order": lambda dp, ledger: dp.sum("age", bounds=(1, 0), epsilon=1, ledger=ledger),
    "bounds that are one": lambda dp, ledger: dp.sum("age", bounds=(0, 0), epsilon=1, ledger=ledger),
    "infinite bounds": lambda dp, ledger: dp.mean("age", bounds=(0, float("inf")), epsilon=1, ledger=ledger),
    "bins of text": lambda dp, ledger: dp.histogram("ward", bins=[0, 1], epsilon=1, ledger=ledger),
    "bins without a range": lambda dp, ledger: dp.histogram("age", bins=10, epsilon=1, ledger=ledger),
    "bins that fall": lambda dp, ledger: dp.histogram("age", bins=[2, 1], epsilon=1, ledger=ledger),
    "no bins": lambda dp, ledger: dp.histogram("age", epsilon=1, ledger=ledger),
    "bins and categories": lambda dp, ledger: dp.histogram(
        "ward", bins=[0, 1], categories=["A"], epsilon=1, ledger=ledger
    ),
    "outside of another kind": lambda dp, ledger: dp.histogram("age", outside="keep", epsilon=1, ledger=ledger, **AGES),
    "no keys": lambda dp, ledger: dp.group_by("ward").count(epsilon=1, ledger=ledger),
    "keys twice": lambda dp, ledger: dp.group_by("ward", keys=["A", "A"]).count(epsilon=1, ledger=ledger),
    "keys of another dtype": lambda dp, ledger: dp.group_by("ward", keys=[1, 2]).count(epsilon=1, ledger=ledger),
    "keys as a set": lambda dp, ledger: dp.group_by("ward", keys={"A", "B"}).count(epsilon=1, ledger=ledger),
    "an option in group_by": lambda dp, ledger: dp.group_by("ward", keys=["A"], epsilon=1),
    "agg of nothing": lambda dp, ledger: dp.agg(epsilon=1, ledger=ledger),
    "agg of a name of an option": lambda dp, ledger: dp.agg(label=dpf.count(), epsilon=1, ledger=ledger),
    "agg of text": lambda dp, ledger: dp.agg(n="count", epsilon=1, ledger=ledger),
    "unknown mechanism": lambda dp, ledger: dp.count(epsilon=1, mechanism="laplacian", ledger=ledger),
    "gaussian without delta": lambda dp, ledger: dp.count(epsilon=1, mechanism="gaussian", ledger=ledger),
    "unknown denoiser": lambda dp, ledger: dp.count(epsilon=1, denoise="smooth", ledger=ledger),
    "raw as text": lambda dp, ledger: dp.count(epsilon=1, keep_noisy="yes", ledger=ledger),
    "label as a number": lambda dp, ledger: dp.count(epsilon=1, label=1, ledger=ledger),
    "unknown verb": lambda dp, ledger: dp.counts(epsilon=1, ledger=ledger),
    "choice per group": lambda dp, ledger: dp.group_by("ward", keys=["A"]).select(
        "sex", categories=["f", "m"], epsilon=1, ledger=ledger
    ),
    "choice without categories": lambda dp, ledger: dp.mode("ward", epsilon=1, ledger=ledger),
    "subtotals of one column": lambda dp, ledger: dp.group_by("ward", keys=["A"]).count(
        rollup="yes", epsilon=1, ledger=ledger
    ),
    "a result asked again": lambda dp, ledger: dp.count(epsilon=1, ledger=ledger).dp.count(epsilon=1, ledger=ledger),
    "together of nothing": lambda dp, ledger: dpf.release_together({}, epsilon=1, ledger=ledger),
    "together of two units": lambda dp, ledger: dpf.release_together(
        {"a": dp.preview.count(unit=dpf.PrivacyUnit("name", max_rows=1, max_groups=1)), "b": dp.preview.count()},
        epsilon=1,
    ),
}
