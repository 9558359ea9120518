"""The verbs of ``.dp`` in groups, each with a line: for help, for a terminal and for the card of a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from dpframe.errors import DpframeError

Group = list[tuple[str, str]]  # names, each with a line

OF_FRAMES: Mapping[str, Sequence[str]] = {
    "count": ("count", "n_units", "n_distinct", "proportion"),
    "measure": ("sum", "mean", "median", "quantile", "variance", "std"),
    "spread": ("histogram", "ecdf", "mode", "top_k"),
    "relate": ("covariance", "correlation", "marginals"),
    "group": ("group_by", "agg"),
    "plan": ("preview", "suggest_bounds", "contributions", "local"),
}
OF_RESULTS: Mapping[str, Sequence[str]] = {
    "show": ("plot", "table", "statement", "errors", "provenance"),
    "change": ("relabel", "filter", "sort", "head", "select", "wide", "round"),
    "take": ("to_numpy", "matrix", "measurements", "suggest", "parts"),
    "keep": ("write_html", "write_parquet"),
}
WIDTH = 88
LONGEST = 84
CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top"


def listed(kind: type, groups: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Group]]:
    """The groups, and last what a class offers beyond them; each name with the first line of its own help."""
    known = [name for names in groups.values() for name in names]
    others = [name for name in dir(kind) if not name.startswith("_") and name not in known]
    for title, names in (*groups.items(), ("more", others)):
        if mine := [(name, _line(kind, name)) for name in names if hasattr(kind, name)]:
            yield title, mine


def _line(kind: type, name: str) -> str:
    """The first line of a verb's own help, up to where it explains itself."""
    first = (inspect.getdoc(inspect.getattr_static(kind, name)) or "").partition("\n")[0].replace("`", "")
    first = first.rstrip(".").split(": ")[0].split("; ")[0]
    return first if len(first) <= LONGEST else first[:LONGEST].rpartition(", ")[0]


def in_help(kinds: Sequence[tuple[str, type, Mapping[str, Sequence[str]]]]) -> str:
    """All verbs of some classes, a line for each, below a heading for each class."""
    lines: list[str] = []
    for heading, kind, groups in kinds:
        lines += ["", heading]
        for title, mine in listed(kind, groups):
            lines += ["", f"  {title}"]
            lines += [f"    {name:<14} {line}" for name, line in mine]
    return "\n".join(lines)


def in_terminal(first: str, kind: type, groups: Mapping[str, Sequence[str]]) -> str:
    """A line on what it is, and the names of each group."""
    lines = [first]
    for title, mine in listed(kind, groups):
        names = wrap(", ".join(name for name, _ in mine), WIDTH)
        lines += [f"  {title if number == 0 else '':<8} {part}" for number, part in enumerate(names)]
    return "\n".join(lines)


def in_notebook(first: str, kind: type, groups: Mapping[str, Sequence[str]]) -> str:
    """The same as a card: every verb with its line."""
    rows = "".join(
        f'<tr><th scope="row" style="{CELL}">{escape(title) if number == 0 else ""}</th>'
        f'<td style="{CELL}"><code>{escape(name)}</code></td><td style="{CELL}">{escape(line)}</td></tr>'
        for title, mine in listed(kind, groups)
        for number, (name, line) in enumerate(mine)
    )
    return f"<div><p>{escape(first)}</p><table><tbody>{rows}</tbody></table></div>"


def protected(ledger: Any) -> str:
    """Words on who is protected by a ledger; None is no ledger."""
    if ledger is None:
        return 'no ledger yet: write with dpf.Ledger(epsilon=1, unit="user_id"): ...'
    try:
        unit = ledger.unit
    except DpframeError:  # a name in a notebook's last line must not raise
        return "the ledger cannot be read"
    return "protects each row, unless unit= names others" if unit is None else f"protects {unit}"
