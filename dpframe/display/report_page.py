"""Pages of reports: one HTML file that holds all it shows; it fetches nothing and links nowhere else."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpframe._version import VERSION
from dpframe.display import theme
from dpframe.display.table_formats import TABLE_RULES, variables
from dpframe.errors.words import harmless

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"  # browsers hold it to this
)
Facts = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Section:
    """A part of a report: its heading, its HTML, and what it says as plain JSON values."""

    title: str
    body: str
    record: Any


def text(words: str) -> str:
    """Words for a page, of which no letter is read as markup or commands the screen."""
    return html.escape(harmless(words))


def page(title: str, lead: str, sections: Sequence[Section], made: str) -> str:
    """A whole page; `made` says when in ISO 8601, and the records of all sections are in a script that nothing runs."""
    contents = "".join(
        f'<li><a href="#part{number}">{text(section.title)}</a></li>' for number, section in enumerate(sections, 1)
    )
    inside = f'<nav aria-label="Contents"><ol>{contents}</ol></nav>' if len(sections) > 1 else ""
    parts = "\n".join(
        f'<section id="part{number}" aria-labelledby="head{number}">'
        f'<h2 id="head{number}">{text(section.title)}</h2>\n{section.body}</section>'
        for number, section in enumerate(sections, 1)
    )
    if len(sections) == 1 and sections[0].title == title:  # one heading is enough
        parts = f"<section>{sections[0].body}</section>"
    when = f"{made[:16].replace('T', ' ')} UTC"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{text(title)}</title>
<style>
{STYLE}
</style>
</head>
<body>
<main>
<header><h1>{text(title)}</h1><p class="lead">{text(lead)}</p>{inside}</header>
{parts}
</main>
<footer><p>Written by dpframe {VERSION} on {text(when)}. The numbers are differentially private: noise was added to
each, and an error is the half-width of a 95% interval of that noise.</p></footer>
<script type="application/json" id="records">{data([section.record for section in sections])}</script>
</body>
</html>
"""


def data(value: Any) -> str:
    """JSON for a script of a page, in which no text ends the script."""
    written = json.dumps(value, default=str)  # ASCII alone
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def write(path: Any, content: str) -> None:
    """Write the file."""
    Path(path).write_text(content, encoding="utf-8")


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph, of a class of the style."""
    return f"<p{_class(kind)}>{text(words)}</p>"


def items(lines: Sequence[str], kind: str = "") -> str:
    """A list of lines; nothing where there are none."""
    return f"<ul{_class(kind)}>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul>" if lines else ""


def facts_list(facts: Facts) -> str:
    """Names and what is said of each."""
    return f"<dl>{''.join(f'<div><dt>{text(name)}</dt><dd>{lines(said)}</dd></div>' for name, said in facts)}</dl>"


def lines(words: str) -> str:
    """Words of several lines."""
    return "<br>".join(map(text, words.split("\n")))


def heading(words: str) -> str:
    """A heading within a section."""
    return f"<h3>{text(words)}</h3>"


def scrolling(inner: str, name: str, *, broad: bool = False) -> str:
    """A part that may be wider than the page, and scrolls by itself, by touch and by keyboard."""
    kind = "wide broad" if broad else "wide"
    return f'<div class="{kind}" role="region" tabindex="0" aria-label="{text(name)}">{inner}</div>'


def plain_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """A table of text, whose columns in `numeric` are numbers."""
    kinds = ["n" if place in numeric else "" for place in range(len(header))]
    head = "".join(f'<th scope="col"{_class(kind)}>{text(cell)}</th>' for cell, kind in zip(header, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{_class(kind)}>{text(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for row in rows
    )
    caption = f"<caption>{text(caption)}</caption>" if caption else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def bar(part: float, words: str) -> str:
    """A bar that is filled to a part between 0 and 1."""
    return (
        f'<div class="bar" role="img" aria-label="{text(words)}"><div style="width:{min(part, 1.0):.1%}"></div></div>'
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


LIGHT, DARK = theme.colors(), theme.colors(dark=True)
STYLE = "\n".join(
    (
        f":root {{color-scheme:light dark;{variables()}--link:{LIGHT.edge};--fill:{LIGHT.edge};--warn:#8f1d1d;}}",
        f"@media screen and (prefers-color-scheme: dark) {{:root {{{variables(dark=True)}--link:{DARK.edge};"
        f"--fill:{DARK.edge};--warn:#ffb4ab;}}}}",
        "* {box-sizing:border-box}",
        f"body {{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 {theme.FONT};overflow-wrap:anywhere}}",
        "main, footer {max-width:62rem;margin:0 auto;padding:1rem}",
        "h1 {font-size:1.8rem;line-height:1.2;margin:1rem 0 .5rem}",
        "h2 {font-size:1.35rem;line-height:1.25;margin:2.5rem 0 .5rem;padding-top:1rem;"
        "border-top:1px solid var(--rule)}",
        "h3 {font-size:1.05rem;margin:1.6rem 0 .4rem}",
        "p {max-width:46rem;margin:.5rem 0}",
        ".lead, footer, figcaption, .small, .notes {color:var(--faint)}",
        "footer, figcaption, .small, .notes {font-size:.875rem}",
        "footer {border-top:1px solid var(--grid);margin-top:2rem}",
        "a {color:var(--link)}",
        ":focus-visible {outline:3px solid var(--link);outline-offset:2px}",
        ".warning {color:var(--warn);font-weight:600;border-left:4px solid var(--warn);padding-left:.8rem}",
        "nav ol, ul {padding-left:1.4rem}",
        "figure {margin:1.2rem 0}",
        ".wide {overflow-x:auto;max-width:100%;margin:.8rem 0}",
        "svg {display:block;max-width:100%;height:auto;min-width:min(42rem, var(--width))}",
        ".dark {display:none}",
        "@media screen and (prefers-color-scheme: dark) {.dark {display:block} .light {display:none}}",
        "@media print {.dark {display:none} .light {display:block}}",
        "dl {margin:.5rem 0}",
        "dl div {display:grid;grid-template-columns:11rem 1fr;gap:.2rem 1rem;padding:.25rem 0;"
        "border-bottom:1px solid var(--grid)}",
        "dt {color:var(--faint)} dd {margin:0}",
        "@media (max-width: 34rem) {dl div {grid-template-columns:1fr} h1 {font-size:1.5rem}}",
        ".bar {height:.8rem;max-width:30rem;background:var(--grid);border:1px solid var(--rule);border-radius:.4rem;"
        "overflow:hidden;margin:.8rem 0;-webkit-print-color-adjust:exact;print-color-adjust:exact}",
        ".bar div {height:100%;background:var(--fill)}",
        ".wide table {font-size:.9375rem;overflow-wrap:normal}",
        ".broad table {min-width:56rem}",
        ".wide caption small {max-width:min(46rem, 90vw)}",
        *TABLE_RULES,
        # paper does not scroll: what is wide is wrapped, and what is filled is printed as it is
        "@media print {.wide {overflow:visible} .broad table {min-width:0;width:100%} .wide table {font-size:.75rem} "
        ".wide :is(th, td) {padding:.2em .4em} main, footer {max-width:none;padding:0} tr, figure, dl div "
        "{break-inside:avoid} h2, h3 {break-after:avoid} svg {min-width:0}}",
    )
)
