"""Plain tables for people: as text for a terminal, as HTML for a notebook, and as a frame."""

from __future__ import annotations

import html
import math
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from dpframe.errors import harmless
from dpframe.frames import build

Row = Sequence[object]

TABLE_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
INDENT = "  "
NARROWEST = 10  # characters that a narrowed column keeps
CARD_STYLE = "border:1px solid #767676;border-radius:6px;padding:10px 14px;display:inline-block"
NAME_STYLE = "padding:1px 14px 1px 0;text-align:left;vertical-align:top;opacity:.75"
FACT_STYLE = "padding:1px 0;text-align:left"
CELL_STYLE = "padding:2px 10px;text-align:left;border-bottom:1px solid #ddd"


def number(value: float) -> str:
    """Return a number as text: four significant digits or all whole ones, with thousands separated."""
    if value != value:
        return "-"
    if abs(value) >= 1e15 or 0 < abs(value) < 1e-3:
        return f"{value:.4g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def at_least(value: float, digits: int) -> float:
    """Return the value rounded up to so many digits, so that bounds hold; digits past the twelfth are float error."""
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(f"{value:.12g}"))


def margin(value: float) -> str:
    """Return a margin of error, or the upper end of an interval, as `number` writes it, rounded up."""
    return number(_up(value))


def lower_end(value: float) -> str:
    """Return the lower end of an interval as `number` writes it, rounded down."""
    return number(0.0 - _up(-value))


def _up(value: float) -> float:
    """Return the value rounded up to the digits that `number` shows."""
    if value == 0.0 or not math.isfinite(value):
        return value
    is_whole = 1.0 <= abs(value) < 1e15
    return at_least(value, max(4, math.floor(math.log10(abs(value))) + 1) if is_whole else 4)


def escape(text: str) -> str:
    """Return text escaped for HTML, with control characters made visible and +- written as ±."""
    return html.escape(harmless(text)).replace("+-", "±")


def text_page(title: str, facts: Sequence[tuple[str, str]], header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a title, named facts and a table as text for a terminal."""
    named = "\n".join(f"{INDENT}{name:<11} {harmless(fact)}" for name, fact in facts)
    return f"{harmless(title)}\n{signs()(named)}\n\n{text_table(header, rows)}"


def text_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return aligned columns with a rule under the header; in a terminal, long cells wrap to fit its width."""
    room, signed = terminal_width(), signs()
    lines = [[signed(harmless(str(cell))) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    if room is not None:
        widths = _narrowed(widths, room - len(INDENT) - 2 * (len(widths) - 1))
    padded = []
    for line in lines:
        cells = [[cell] if len(cell) <= width else wrap(cell, width) for cell, width in zip(line, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded.append(INDENT + "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)))
        if line is lines[0]:
            padded.append(INDENT + "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in padded)


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """Return column widths that fit: the widest are cut to one common width, but to no less than `NARROWEST`."""
    for most in range(max(widths, default=0), NARROWEST - 1, -1):
        cut = [min(width, most) for width in widths]
        if sum(cut) <= room:
            return cut
    return [min(width, NARROWEST) for width in widths]


def terminal_width() -> int | None:
    """Return the width of the terminal in characters; None where output goes elsewhere, and lines have no limit."""
    try:
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    except (AttributeError, ValueError):  # no stream, or a closed one
        return None


def signs() -> Callable[[str], str]:
    """Return a function that writes +- as ± where the terminal can show it."""
    has_it = terminal_width() is not None and _is_unicode()
    return lambda text: text.replace("+-", "±") if has_it else text


def _is_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


def html_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return an HTML table, with every cell escaped."""
    head = "".join(f'<th style="{CELL_STYLE}">{escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL_STYLE}">{escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f'<table style="{TABLE_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def html_bar(filled: float, words: str) -> str:
    """Return an HTML bar that is filled to a part between 0 and 1, with a text for screen readers."""
    said = escape(words)
    inner = f'<div style="width:{filled:.1%};height:100%;background:#0072b2"></div>'
    bar = f'<div style="width:240px;height:10px;border:1px solid #767676;margin:6px 0" role="img" aria-label="{said}">'
    return f"{bar}{inner}</div>"


def html_card(
    title: str, facts: Sequence[tuple[str, str]], bar: str, header: Sequence[str], rows: Sequence[Row]
) -> str:
    """Return an HTML card for a notebook: a title, a bar, named facts, and a table if there are rows."""
    named = "".join(
        f'<tr><td style="{NAME_STYLE}">{escape(name)}</td><td style="{FACT_STYLE}">{escape(said)}</td></tr>'
        for name, said in facts
    )
    table = html_table(header, rows) if rows else ""
    inside = f'<b>{escape(title)}</b>{bar}<table style="{TABLE_STYLE}">{named}</table>{table}'
    return f'<div style="{CARD_STYLE}">{inside}</div>'


def html_page_of_facts(title: str, facts: Sequence[tuple[str, str]], header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the content of `text_page` as HTML for a notebook."""
    return html_page(title, [f"{name}: {fact}" for name, fact in facts], header, rows)


def html_page(
    title: str, paragraphs: Sequence[str], header: Sequence[str], rows: Sequence[Row], above: str = ""
) -> str:
    """Return an HTML block for a notebook: a title, paragraphs, the HTML of `above`, and a table."""
    words = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    return f"<div><b>{escape(title)}</b>{words}{above}{html_table(header, rows)}</div>"


def as_frame(
    rows: Sequence[Mapping[str, Any]],
    like: str,
    *,
    types: Mapping[str, type] | None = None,
    whole: Sequence[str] = (),
) -> Any:
    """Return the rows as a frame, with the columns of `types` (which allows no rows) or else those of the rows.

    Without `types`, columns in `whole` hold integers or missing values.
    """
    return build.of_rows(rows, like, types, whole)
