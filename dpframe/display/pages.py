"""Plain tables for people: text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence

from dpframe.errors.words import harmless

Row = Sequence[object]

TABLE_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
INDENT = "  "
CELL_STYLE = "padding:2px 10px;text-align:left;border-bottom:1px solid #ddd"


def number(value: float) -> str:
    """A number with four significant digits and thousands set apart."""
    if value != value:
        return "-"
    if abs(value) >= 1e15 or 0 < abs(value) < 1e-3:
        return f"{value:.3g}"
    digits = max(0, 3 - len(str(int(abs(value)))) + 1)
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def escape(text: str) -> str:
    """For HTML, with what commands a screen as escapes, and the sign that a terminal may lack."""
    return html.escape(harmless(text)).replace("+-", "±")


def text_page(title: str, facts: Sequence[tuple[str, str]], header: Sequence[str], rows: Sequence[Row]) -> str:
    """A title, facts with their names before them, and a table, for a terminal."""
    named = "\n".join(f"{INDENT}{name:<11} {harmless(fact)}" for name, fact in facts)
    return f"{harmless(title)}\n{named}\n\n{text_table(header, rows)}"


def text_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Columns of equal width, a rule under the header."""
    lines = [[harmless(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    padded = [INDENT + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    padded.insert(1, INDENT + "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in padded)


def html_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """The same as an HTML table; every cell escaped."""
    head = "".join(f'<th style="{CELL_STYLE}">{escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL_STYLE}">{escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f'<table style="{TABLE_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def html_bar(filled: float) -> str:
    """A bar that is filled to a part between 0 and 1."""
    inner = f'<div style="width:{filled:.1%};height:100%;background:#4c78a8"></div>'
    return f'<div style="width:240px;height:10px;background:#ddd;margin:6px 0" title="{filled:.1%}">{inner}</div>'


def html_page_of_facts(title: str, facts: Sequence[tuple[str, str]], header: Sequence[str], rows: Sequence[Row]) -> str:
    """The same as `text_page`, for a notebook's cell."""
    return html_page(title, [f"{name}: {fact}" for name, fact in facts], header, rows)


def html_page(
    title: str, paragraphs: Sequence[str], header: Sequence[str], rows: Sequence[Row], above: str = ""
) -> str:
    """A titled block of paragraphs and a table, with what is to stand above it, for a notebook's cell."""
    words = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    return f"<div><b>{escape(title)}</b>{words}{above}{html_table(header, rows)}</div>"
