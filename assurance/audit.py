"""Audit releases as an attacker would: bound epsilon from below by differences between releases of two neighbors.

    python -m assurance.audit --samples 100000
    python -m assurance.audit --seed-bug 0.5        # noise of half the scale: the audit must object

Exits with 1 if an audit objects; with --seed-bug, if none does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from dataclasses import replace
from typing import Any

from assurance import share_of, verdict
from assurance.audit_cases import ENGINES, PRICES, cases
from assurance.auditing import GROUPS, Audit, Case, audit, scaled_noise

SINGLE_CALLS = 50  # cases with one sample per call get this many times fewer samples


def main() -> int:
    options = _arguments()
    chosen = _mixed([case for case in cases(tuple(options.engines), _prices(options)) if options.only in case.name])
    broken = contextlib.nullcontext() if options.seed_bug is None else scaled_noise(options.seed_bug)
    chosen, started = share_of(chosen, options.share), time.perf_counter()
    heads = f"{'epsilon':>9}{'delta':>8}{'claimed':>9}{'at least':>10}  {'samples':>9}  event"
    print(f"{'':<34}{'frame':<11}{'noise':<15}{heads}")
    audits = []
    with broken:
        for place, case in enumerate(chosen, start=1):
            if time.perf_counter() - started < options.minutes * 60:
                audits.append(_run(case, options, place, len(chosen)))
    flagged = sum(found.flagged for found in audits)
    print(f"\n{len(audits)} audits, {flagged} objections, {time.perf_counter() - started:.0f} s; a sound release meets")
    print(f"with an objection with a chance of at most {options.alpha:g} in each audit")
    if options.markdown:
        print("", *_markdown(audits), sep="\n")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([_facts(found) for found in audits], file, indent=1)
    wrong = flagged if options.seed_bug is None else int(not flagged)
    used = max((found.found.lower_bound / found.found.claimed for found in audits), default=0.0)
    return verdict(wrong, audits=len(audits), flagged=flagged, largest_bound=used)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000, help="of each side, for each combination")
    parser.add_argument("--alpha", type=float, default=1e-4, help="chance that a sound release is objected to")
    parser.add_argument("--groups", type=int, default=GROUPS, help="samples of one call")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--noises", nargs="+", choices=[price.name for price in PRICES])
    parser.add_argument("--only", default="", help="the combinations whose name contains this")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="of the combinations, with K from 0 to N - 1")
    parser.add_argument("--seed-bug", type=float, metavar="FACTOR", help="multiply the scale of all noise")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further audit after this time")
    parser.add_argument("--markdown", action="store_true", help="print the table of assurance/README.md too")
    parser.add_argument("--json", help="a file for the results")
    return parser.parse_args()


def _prices(options: argparse.Namespace) -> tuple[Any, ...]:
    return tuple(price for price in PRICES if options.noises is None or price.name in options.noises)


def _mixed(chosen: list[Case]) -> list[Case]:
    """Order the cases so that every verb, frame and noise comes early, because time may run out."""
    names = list(dict.fromkeys(case.name for case in chosen))
    kinds = sorted({(case.engine, case.price.name) for case in chosen})
    turn = {
        (name, kind): (place - start) % len(kinds)
        for start, name in enumerate(names)
        for place, kind in enumerate(kinds)
    }
    return sorted(chosen, key=lambda case: turn[case.name, (case.engine, case.price.name)])


def _run(case: Case, options: argparse.Namespace, place: int, many: int) -> Audit:
    print(f"  ... {place} of {many}: {case.name}, {case.engine}, {case.price.name}", file=sys.stderr, flush=True)
    case = case if case.groups == 1 else replace(case, groups=options.groups)
    samples = options.samples if case.groups > 1 else max(1_000, options.samples // SINGLE_CALLS)
    found = audit(case, samples, options.alpha)
    print(_line(found), flush=True)
    for problem in found.problems:
        print(f"    OBJECTION: {problem}", flush=True)
    return found


def _line(found: Audit) -> str:
    case, claimed, finding = found.case, found.claimed, found.found
    numbers = f"{claimed.epsilon:>9.4g}{claimed.delta:>8.3g}{finding.claimed:>9.4g}{finding.lower_bound:>10.3f}"
    verdict = "" if finding.holds else "  OBJECTION: more was lost than charged"
    return (
        f"{case.name:<34}{case.engine:<11}{case.price.name:<15}{numbers}  {finding.samples:>9,}"
        f"  {finding.quantity}, {finding.event}{verdict}"
    )


def _markdown(audits: list[Audit]) -> list[str]:
    """Return one line per pair of neighbors and query: the largest bound over the audited frames."""
    prices = [price for price in PRICES if any(found.case.price == price for found in audits)]
    heads = [f"{price.name}: {_claims(next(a for a in audits if a.case.price == price))}" for price in prices]
    lines = ["| neighbors and question | " + " | ".join(heads) + " |", "|---" * (len(prices) + 1) + "|"]
    for name in dict.fromkeys(found.case.name for found in sorted(audits, key=lambda found: found.case.name)):
        cells = [_cell([a for a in audits if a.case.name == name and a.case.price == price]) for price in prices]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _claims(found: Audit) -> str:
    delta = f", delta {found.found.delta:g}" if found.found.delta else ""
    return f"{found.found.quantity} {found.found.claimed:.3g}{delta}"


def _cell(audits: list[Audit]) -> str:
    if not audits:
        return ""
    frames = ", ".join(sorted(found.case.engine for found in audits))
    objection = " **objection**" if any(found.flagged for found in audits) else ""
    return f"{max(found.found.lower_bound for found in audits):.2f}{objection} ({frames})"


def _facts(found: Audit) -> dict[str, Any]:
    return {
        "case": found.case.name,
        "frame": found.case.engine,
        "noise": found.case.price.name,
        "claimed": {"epsilon": found.claimed.epsilon, "delta": found.claimed.delta},
        "quantity": found.found.quantity,
        "claimed bound": found.found.claimed,
        "bound": found.found.lower_bound,
        "event": found.found.event,
        "samples": found.found.samples,
        "problems": list(found.problems),
    }


if __name__ == "__main__":
    sys.exit(main())
