"""Test odd frames and their neighbors: totals move no farther than stated, and only the noise of an answer differs.

    python -m assurance.fuzz --pairs 10000 --seen 1000

Each pair is used for one of the verbs that suit its column, in turn. The exact totals of both tables are compared with
the sensitivity. They must be equal bit for bit in another row order, in chunks and in four libraries and dtypes, taken
in turn from all that hold the values. At the end, the program prints for each verb the largest move as a share of the
sensitivity: a verb that never reaches 1 could hide a sensitivity that is slightly too small. On `--seen` further
pairs, every verb releases, and all that an answer shows in addition to its noise must be equal.
Exits with 1 at the first pair that breaks a rule, which hypothesis then makes as small as it can.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

import dpframe as dpf
from assurance import verdict
from assurance.fuzz_frames import Pair, asks, exact, form_of, makers, pairs
from dpframe.audit import watched

NORMS = (1.0, 2.0)
ENGINES = 4  # libraries and dtypes per pair, in turn


def check_totals(pair: Pair, counted: Counter[str] | None = None, farthest: dict[str, float] | None = None) -> None:
    """Compare the exact totals of a verb with the sensitivity, on four engines, and in reverse order on two."""
    engines = list(makers(pair.kind).items())
    step = max(1, len(engines) // ENGINES)
    some = dict(engines[(pair.turn + step * place) % len(engines)] for place in range(ENGINES))
    tables = [{name: made(rows, pair.name) for name, made in some.items()} for rows in (pair.first, pair.second)]
    turned = {name: some[name](pair.first[::-1], pair.name) for name in list(some)[:2]}
    verbs = list(asks(pair.kind, pair.name).items())
    name, ask = verbs[pair.turn % len(verbs)]
    p = NORMS[pair.turn // len(verbs) % 2] if pair.unit.column else 1.0  # without weights, all norms have these totals
    found = [_on_every_engine(side, ask, pair.unit, p, name) for side in tables]
    assert _on_every_engine(turned, ask, pair.unit, p, name) == found[0], f"{name}: the order of rows"
    share = 0.0
    if None not in found:  # the schema or the names may refuse the query on both sides
        stated = _stated(tables[0], ask, pair.unit, p)
        share = max(_within_reach(stated, found, norm, name) for norm in ((p,) if pair.unit.column else NORMS))
    if counted is not None:
        counted[name] += 1
    if farthest is not None:
        farthest[name] = max(share, farthest.get(name, 0.0))


def _on_every_engine(side: dict[str, Any], ask: Any, unit: dpf.PrivacyUnit, p: float, name: str) -> Any:
    """Return the totals, which must be equal on every engine that accepts the query."""
    found = {engine: totals for engine, frame in side.items() if (totals := _exact(frame, ask, unit, p)) is not None}
    first = next(iter(found.values()), None)
    for engine, totals in found.items():
        assert totals == first, f"{name}: {engine}"
    return first


def _exact(frame: Any, ask: Any, unit: dpf.PrivacyUnit, p: float) -> Any:
    """Return the totals, or None where the schema refuses the query."""
    try:
        return exact(frame, ask, unit, p)
    except (dpf.WrongDtype, dpf.InvalidArgument):
        if _by_schema(frame, ask, unit):
            return None
        raise


def _by_schema(frame: Any, ask: Any, unit: dpf.PrivacyUnit) -> bool:
    """Return whether the same frame without rows is refused, too."""
    empty = frame[:0] if hasattr(frame, "iloc") or not hasattr(frame, "slice") else frame.slice(0, 0)
    try:
        exact(empty, ask, unit)
    except (dpf.WrongDtype, dpf.InvalidArgument):
        return True
    return False


def _stated(side: dict[str, Any], ask: Any, unit: dpf.PrivacyUnit, p: float) -> dict[Any, Any]:
    """Return the stated sensitivities by total, from the first frame whose schema suits."""
    price = {"epsilon": 1} if p == 1.0 else {"epsilon": 1, "delta": 1e-6}
    for frame in side.values():
        try:
            plan = ask(dpf.of(frame).preview, **price, unit=unit)
        except (dpf.WrongDtype, dpf.InvalidArgument):
            continue
        return {part.total: part.sensitivity for part in plan.parts}
    raise AssertionError("no frame suits")


def _within_reach(stated: dict[Any, Any], found: list[Any], p: float, name: str) -> float:
    """Check the distance of neighbors, exactly in l_1, as squares in l_2; return its share of the sensitivity."""
    assert stated.keys() == found[0].keys()
    farthest = Fraction(0)
    for total, sensitivity in stated.items():
        steps = [abs(one - other) for one, other in zip(found[0][total], found[1][total], strict=True)]
        moved = sum(steps) if p == 1.0 else sum(step**2 for step in steps)
        most = Fraction(sensitivity.steps(p)) ** int(p)
        assert moved <= most, f"{name}: {total} moves by {moved} and not {most} in l_{p:g}"
        farthest = max(farthest, Fraction(moved) / most if most else Fraction(0))
    return float(farthest) ** (1.0 / p)


def check_seen(pair: Pair, counted: Counter[str] | None = None) -> None:
    """Release every verb on both tables, in one library and dtype at a time: only the noise may differ."""
    engines = list(makers(pair.kind).items())
    for place, (name, ask) in enumerate(asks(pair.kind, pair.name).items()):
        for engine, made in (engines[(pair.turn + place) % len(engines)], engines[-1]):
            both = (made(rows, pair.name) for rows in (pair.first, pair.second))
            shown = [form_of(frame, ask, pair.unit, watched) for frame in both]
            assert shown[0] == shown[1], f"{name} on {engine}: {_parting(*shown)}"
            if counted is not None:
                counted[name] += 1


def _parting(one: str, other: str) -> str:
    place = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    return f"{one[max(0, place - 60) : place + 60]!r} against {other[max(0, place - 60) : place + 60]!r}"


def drill(check: Any, many: int, start: int) -> Counter[str]:
    """Run a check on `many` pairs; return how often each verb was used."""
    counted: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=many, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(pairs())
    def run(pair: Pair) -> None:
        counted["pairs"] += 1
        check(pair, counted)

    run()
    return counted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000, help="whose exact totals are compared")
    parser.add_argument("--seen", type=int, default=1_000, help="whose answers are compared")
    parser.add_argument("--seed", type=int, default=1, help="where hypothesis starts")
    options = parser.parse_args()
    farthest: dict[str, float] = {}
    of_totals = partial(check_totals, farthest=farthest)
    for words, check, many in (("totals", of_totals, options.pairs), ("answers", check_seen, options.seen)):
        started = time.perf_counter()
        found = drill(check, many, options.seed) if many else Counter()
        asked_of = ", ".join(f"{name} {times:,}" for name, times in sorted(found.items()) if name != "pairs")
        print(f"{words}: {found['pairs']:,} pairs, {time.perf_counter() - started:.0f} s; {asked_of}", flush=True)
    shares = ", ".join(f"{name} {share:.2f}" for name, share in sorted(farthest.items(), key=itemgetter(1)))
    print(f"farthest, as a share of the sensitivity: {shares}", flush=True)
    return verdict(0, pairs=options.pairs, seen=options.seen)


if __name__ == "__main__":
    sys.exit(main())
