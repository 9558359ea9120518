"""A report as one self-contained HTML file: findings first, and how they were made in an appendix.

It fetches nothing, has no external links and runs no script. The appendix is folded on screen and printed in full.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpframe._version import VERSION
from dpframe.display import theme
from dpframe.display.still import Look, drawn, without_captions
from dpframe.display.table_formats import TABLE_RULES, variables
from dpframe.errors import harmless, listed, no_markup, sentence
from dpframe.queries.contributions import POPULATION, TABLE
from dpframe.queries.statistics import CONFIDENCE

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"  # browsers enforce this policy
)
ERRORS = ("number", "by", "95% margin of error", "noise (standard deviation)", "adjusted: typical error")
NOISE = (
    "A margin of error (±){of} is half the width of the {percent:g}% confidence interval of the noise: in {percent:g} "
    "of 100 cases the noise stays within it."
)
NOT_COVERED = "The margins of error do not include what was left out."
SAMPLE = (
    "The numbers describe the {rows} in the table. If these are a sample of a larger population, groups also differ by "
    "chance, and the margins of error do not include that."
)
COUNTED = "The margins of error of {titles} include the noise and the chance of who is in the data."
MORE = "Show how these numbers were made: noise, cost, records"


@dataclass(frozen=True)
class Section:
    """The words and pictures of one release in a page, by their place.

    Parameters
    ----------
    title : str
        Its heading.
    label : str or None
        The label of the release, which the author's own words and order refer to.
    said : str
        HTML: a sentence on the findings, or the author's own words.
    shown : str
        HTML: its chart and its table.
    notes : tuple of str
        The notes below the table. A note that several releases share appears once.
    method : str
        A sentence on how the numbers were protected.
    errors : tuple of rows
        The rows of the table of errors, without the name of the release.
    left_out : tuple of str
        Lines on what bounds, keys and bins leave out.
    rows : str
        The noun for what the numbers describe: rows or units.
    cost : str
        The cost of the release and its privacy unit.
    made : str
        HTML for the appendix.
    record : Any
        The record of the release as plain JSON values.
    covers : str or None
        "table" where the margins of error cover the noise alone, "population" where they include sampling too; None
        where there are none.
    of : str
        The numbers and their key columns, which are added to a title that several sections share.
    """

    title: str
    label: str | None
    said: str
    shown: str
    notes: tuple[str, ...]
    method: str
    errors: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    rows: str
    cost: str
    made: str
    record: Any
    covers: str | None = TABLE
    of: str = ""


@dataclass(frozen=True)
class Budget:
    """The words of a page on the ledger: ``said`` for its main part and ``made`` for its appendix, both HTML."""

    said: str
    made: str
    record: Any


def page(title: str, lead: str, sections: Sequence[Section], made: str, budget: Budget | None = None) -> str:
    """Return a whole page; `made` is its time in ISO 8601, and a script element that never runs holds all records."""
    sections = told_apart(sections)
    shared = _shared(sections)
    parts = [(f"part{number}", one.title, _found(one, shared)) for number, one in enumerate(sections, 1)]
    if sections:
        parts.append(("trust", "How far to trust these numbers", _trust(sections, shared)))
    parts.append(("budget", "Privacy budget", _cost(sections) if budget is None else budget.said))
    if not sections and budget is not None:
        parts.append(("spent", "What was spent", budget.made))
    alone = len(sections) == 1 and sections[0].title == title  # the title of the page serves as the heading
    contents = "".join(f'<li><a href="#{name}">{text(words)}</a></li>' for name, words, _ in parts)
    inside = f'<nav aria-label="Contents"><ul>{contents}</ul></nav>' if len(sections) > 1 else ""
    body = "\n".join(
        f"<section>{inner}</section>"
        if alone and name == "part1"
        else f'<section id="{name}" aria-labelledby="{name}-head"><h2 id="{name}-head">{text(words)}</h2>\n'
        f"{inner}</section>"
        for name, words, inner in parts
    )
    records = [] if budget is None else [budget.record]
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
{body}
{_appendix(sections, budget)}
</main>
<footer><p>Written by dpframe {VERSION} on {text(when)}.</p></footer>
<script type="application/json" id="records">{data([*records, *(section.record for section in sections)])}</script>
</body>
</html>
"""


def told_apart(sections: Sequence[Section]) -> list[Section]:
    """Return the sections; titles that several share get the snapshot, and then a description of the numbers."""
    snapshots = [str((one.record.get("ledger") or {}).get("snapshot") or "") for one in sections]
    for between, more in ((", ", snapshots), (": ", [one.of for one in sections])):
        counted = Counter(section.title for section in sections)
        sections = [
            replace(one, title=f"{one.title}{between}{words}") if counted[one.title] > 1 and words else one
            for one, words in zip(sections, more, strict=True)
        ]
    return list(sections)


def lead(sections: Sequence[Section], dataset: str | None = None) -> str:
    """Return the line below a title, which names the kind of results and the dataset."""
    results = "A differentially private result" if len(sections) == 1 else "Differentially private results"
    return f"{results}{'' if dataset is None else f' of {dataset}'}: random noise protects who is in the data."


def _shared(sections: Sequence[Section]) -> list[str]:
    """Return the notes that several releases share, in order."""
    counted = Counter(note for section in sections for note in dict.fromkeys(section.notes))
    return [note for note, count in counted.items() if count > 1]


def _cost(sections: Sequence[Section]) -> str:
    if len(sections) == 1:
        return paragraph(sentence(sections[0].cost))
    return items([f"{one.title}: {one.cost}" for one in sections])


def _found(section: Section, shared: Sequence[str]) -> str:
    own = items([note for note in dict.fromkeys(section.notes) if note not in shared], "notes")
    return "\n".join((section.said, section.shown, own))


def _trust(sections: Sequence[Section], shared: Sequence[str]) -> str:
    """Return HTML on noise, bounds and sampling, once for all releases."""
    several, parts = len(sections) > 1, []
    noise = [words for words in dict.fromkeys(one.method for one in sections) if words]
    by_confidence: dict[float, list[str]] = {}
    for one in sections:
        if one.covers == TABLE:
            by_confidence.setdefault(one.record.get("confidence", CONFIDENCE), []).append(one.title)
    for confidence, titles in by_confidence.items():
        of = f" of {listed(titles)}" if len(by_confidence) > 1 else ""
        noise.append(NOISE.format(of=of, percent=100 * confidence))
    if noise:
        parts += [heading("Noise"), *map(paragraph, noise)]
    if any(one.errors for one in sections):
        rows = [((one.title,) if several else ()) + row for one in sections for row in one.errors]
        header = (*(("result",) if several else ()), *ERRORS)
        numeric = [place + several for place in (2, 3, 4)]
        table = plain_table("Errors: the largest of all rows", header, rows, numeric)
        parts.append(scrolling(table, "Table of errors"))
    parts.append(items(shared, "notes"))
    left_out = dict.fromkeys(f"{one.title}: {line}" if several else line for one in sections for line in one.left_out)
    if left_out:
        parts += [heading("Bounds"), items(list(left_out)), paragraph(NOT_COVERED)]
    rows_of = " and ".join(dict.fromkeys(one.rows for one in sections if one.covers != POPULATION))
    counted = [one.title for one in sections if one.covers == POPULATION]
    parts += [heading("Sample"), *([paragraph(SAMPLE.format(rows=rows_of))] if rows_of else [])]
    parts += [paragraph(COUNTED.format(titles=", ".join(counted)))] if counted else []
    return "\n".join(parts)


def _appendix(sections: Sequence[Section], budget: Budget | None) -> str:
    """Return the appendix: on screen a checkbox folds it without a script, and print shows all of it."""
    if not sections:
        return ""
    several = len(sections) > 1 or budget is not None
    parts = [f"{heading(one.title) if several else ''}{one.made}" for one in sections]
    if budget is not None:
        parts.append(f"{heading('What was spent')}{budget.made}")
    inner = "\n".join(parts)
    return (
        f'<section class="appendix" aria-labelledby="appendix-head"><h2 id="appendix-head">Appendix</h2>'
        f'<input type="checkbox" id="more"><label for="more">{text(MORE)}</label>\n'
        f'<div class="folded">\n{inner}</div></section>'
    )


NEEDS_DRAWING = (
    "charts in a page need Altair and vl-convert: pip install 'dpframe[plot]'. Or leave them out: charts=False"
)
OPENING = re.compile(r"<svg\b[^>]*>")
SIZE = re.compile(r'\b(width|height|viewBox)="([0-9. -]+)"')
NAMES = re.compile(r'(\bid="|url\(#|href="#)')  # names of parts of a picture, which must be unique in a page
COLORS = re.compile(r'(\b(?:fill|stroke|stop-color)=")([^"]*)"')
UNHEARD = re.compile(r' (?:role|aria-[a-z]+|class|pointer-events)="[^"]*"')  # of parts: the whole picture has a text
TAG = re.compile(r'<(?:[^">]|"[^"]*")*>')
GRADIENT = re.compile(r"\bgradient_\d+")  # numbers continue across all pictures of a process
LONG = re.compile(r"-?\d+\.\d{3,}")  # hundredths of a pixel are enough
BLOCK = re.compile(r"\n[ \t]*\n")
BULLET, NUMBERED, TITLED = re.compile(r"[-*+]\s+"), re.compile(r"\d{1,3}[.)]\s+"), re.compile(r"#{1,6}\s+")
SPANS = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>\S(?:.*?\S)?)\*\*|\*(?P<em>[^\s*](?:[^*]*[^\s*])?)\*"
    r"|\[(?P<words>[^\]]+)\]\((?P<place>[^()\s]+)\)"
)
Facts = Iterable[tuple[str, str]]


def text(words: str) -> str:
    """Return words for a page, with markup escaped and control characters made visible."""
    return html.escape(harmless(words))


def data(value: Any) -> str:
    """Return JSON for a script element of a page, escaped so that no text ends the element."""
    written = json.dumps(value, default=str)  # only ASCII
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph, with `kind` as its CSS class."""
    return f"<p{_class(kind)}>{text(words)}</p>"


def items(lines: Sequence[str], kind: str = "") -> str:
    """Return a list of lines; an empty text without any."""
    return f"<ul{_class(kind)}>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul>" if lines else ""


def facts_list(facts: Facts) -> str:
    """Return a list of names, each with its description."""
    return f"<dl>{''.join(f'<div><dt>{text(name)}</dt><dd>{lines(said)}</dd></div>' for name, said in facts)}</dl>"


def lines(words: str) -> str:
    """Return words of several lines, with a line break between them."""
    return "<br>".join(map(text, words.split("\n")))


def heading(words: str) -> str:
    """Return a heading within a section."""
    return f"<h3>{text(words)}</h3>"


def scrolling(inner: str, name: str, *, broad: bool = False) -> str:
    """Return a part that scrolls by itself where it is wider than the page, by touch and by keyboard."""
    kind = "wide broad" if broad else "wide"
    return f'<div class="{kind}" role="region" tabindex="0" aria-label="{text(name)}">{inner}</div>'


def plain_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """Return a table of text; the columns at the places in `numeric` are numbers."""
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
    """Return a bar that is filled to a part between 0 and 1."""
    return (
        f'<div class="bar" role="img" aria-label="{text(words)}"><div style="width:{min(part, 1.0):.1%}"></div></div>'
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def own_words(markdown: str) -> str:
    """Return an author's sentences as HTML; they may use a small part of Markdown, and HTML in them is text.

    It supports paragraphs, lists, headings, ``**strong**``, ``*emphasis*`` and `` `code` ``. The address of a link
    follows its words as text, since a page has no links to other places.
    """
    lines = markdown.replace("\r\n", "\n").replace("\r", "\n").strip()
    return "\n".join(
        _block([line.strip() for line in block.split("\n")]) for block in BLOCK.split(lines) if block.strip()
    )


def _block(lines: Sequence[str]) -> str:
    """Return a paragraph, a list or a heading; a list may directly follow a paragraph."""
    for mark, tag in ((BULLET, "ul"), (NUMBERED, "ol")):
        first = next((place for place, line in enumerate(lines) if mark.match(line)), None)
        if first is None or any(kind.match(line) for kind in (BULLET, NUMBERED) for line in lines[:first]):
            continue
        entries: list[str] = []
        for line in lines[first:]:
            if mark.match(line):
                entries.append(mark.sub("", line, count=1))
            else:
                entries[-1] += f" {line}"
        above = _block(lines[:first]) if first else ""
        return f"{above}<{tag}>{''.join(f'<li>{_spans(entry)}</li>' for entry in entries)}</{tag}>"
    if TITLED.match(lines[0]):
        rest = _block(lines[1:]) if lines[1:] else ""
        return f"<h3>{_spans(TITLED.sub('', lines[0], count=1))}</h3>{rest}"
    return f"<p>{_spans(' '.join(lines))}</p>"


def _spans(words: str) -> str:
    """Return text with its emphasis as HTML; all text is escaped, inside and outside of marks."""
    made, last = [], 0
    for found in SPANS.finditer(words):
        made.append(text(words[last : found.start()]))
        last = found.end()
        kind = found.lastgroup
        if kind == "place":
            made.append(f"{_spans(found['words'])} ({text(found['place'])})")
        elif kind == "code":
            made.append(f"<code>{text(found['code'])}</code>")
        else:
            made.append(f"<{kind}>{_spans(found[kind or 0])}</{kind}>")
    return "".join([*made, text(words[last:])])


def caption_of(chart: Any, said: Sequence[str]) -> str:
    """Return a chart's subtitle and captions as one line, without the sentences that are `said` elsewhere."""
    title = getattr(chart, "title", None)
    subtitle = getattr(title, "subtitle", "")
    look = getattr(type(chart), "_dpframe_look", Look())
    elsewhere = {sentence(no_markup(words)) for words in said}
    sentences = [one for paragraph in look.paragraphs for one in paragraph if one not in elsewhere]
    below = (*look.left_out, *sentences, *look.captions)
    parts = (f"{subtitle}." if isinstance(subtitle, str) and subtitle else "", *below)
    return " ".join(part for part in parts if part)


def figure(chart: Any, name: str, caption: str) -> str:
    """Return the chart as a figure with a caption, and with its description for screen readers."""
    specification = without_captions(chart)
    title = specification.pop("title", {})
    words = title.get("text", "") if isinstance(title, dict) else title
    said = specification.get("description") or f"Chart: {' '.join(words) if isinstance(words, list) else words}."
    made = picture(specification, f"{said} The table has its numbers.", f"{name}-")
    return f'<figure id="{name}">{scrolling(made, "Chart")}<figcaption>{text(caption)}</figcaption></figure>'


def picture(specification: dict[str, Any], heard: str, name: str) -> str:
    """Return a Vega-Lite specification as one SVG without addresses, whose colors adapt to light and dark pages.

    It is drawn once for each kind of page. Both drawings differ in colors alone, and each pair becomes a CSS variable.
    """
    light, dark = (_drawn(specification, dark=dark) for dark in (False, True))
    opening = OPENING.search(light)
    assert opening is not None  # every picture starts with this tag
    sizes = dict(SIZE.findall(opening.group()))
    assert COLORS.sub("", light) == COLORS.sub("", dark)  # the themes differ in colors alone
    pairs: dict[tuple[str, str], str] = {}
    in_the_dark = iter([found[2] for tag in TAG.finditer(dark) for found in COLORS.finditer(tag[0])])

    def variable(found: re.Match[str]) -> str:
        pair = (found[2], next(in_the_dark))
        if pair[0] == pair[1]:
            return found[0]
        return f'{found[1]}var(--{pairs.setdefault(pair, f"{name}{len(pairs)}")})"'

    def own(tag: re.Match[str]) -> str:  # in tags alone: a text may be a key
        return NAMES.sub(rf"\g<1>{name}", COLORS.sub(variable, tag[0]))

    made = TAG.sub(own, light[opening.end() :])
    values = ["".join(f"--{own}:{pair[side]};" for pair, own in pairs.items()) for side in (0, 1)]
    style = f":root{{{values[0]}}}@media screen and (prefers-color-scheme:dark){{:root{{{values[1]}}}}}"
    tag = (
        f'<svg viewBox="{sizes["viewBox"]}" width="{sizes["width"]}" height="{sizes["height"]}" '
        f'style="--width:{sizes["width"]}px;font-family:{html.escape(theme.FONT)}" '
        f'role="img" aria-label="{text(heard)}">'
    )
    return f"<style>{style}</style>{tag}{made}"


def _drawn(specification: dict[str, Any], *, dark: bool) -> str:
    """Return a picture without the labels of its parts, which screen readers skip, and without invisible digits."""
    configuration = {**specification.get("config", {}), **theme.config(dark=dark)}
    try:
        svg = drawn({**specification, "config": configuration})
    except ImportError:
        raise ImportError(NEEDS_DRAWING) from None
    opening, numbers = OPENING.search(svg), dict[str, int]()
    assert opening is not None

    def short(tag: re.Match[str]) -> str:  # in tags alone: a text may be a key
        plain = UNHEARD.sub("", tag[0]).replace(f' font-family="{theme.FONT}"', "")
        plain = GRADIENT.sub(lambda found: f"gradient_{numbers.setdefault(found[0], len(numbers))}", plain)
        return LONG.sub(lambda found: f"{float(found[0]):.2f}", plain)

    return opening.group() + TAG.sub(short, svg[opening.end() :])


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
        "ul, ol {padding-left:1.4rem;max-width:46rem}",
        "nav ul {list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;max-width:none}",
        "code {font-family:ui-monospace, Consolas, monospace;font-size:.9em}",
        "figure {margin:1.2rem 0}",
        ".wide {overflow-x:auto;max-width:100%;margin:.8rem 0}",
        "svg {display:block;max-width:100%;height:auto;min-width:calc(.8 * var(--width))}",
        "#more {width:1.1rem;height:1.1rem;vertical-align:middle;margin:0 .6rem 0 0;accent-color:var(--link)}",
        "@media screen {#more:not(:checked) ~ .folded {display:none}}",
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
        ".wide table {min-width:min(24rem, 100%)} .wide caption small {max-width:min(46rem, 90vw)}",
        *TABLE_RULES,
        # paper does not scroll: print wraps wide parts, keeps filled colors and unfolds the appendix
        "@page {margin:14mm} "
        "@media print {.wide {overflow:visible} .broad table {min-width:0;width:100%} .wide table {font-size:.75rem;"
        "overflow-wrap:anywhere} .wide :is(th, td) {padding:.2em .4em} "
        ".broad :is(thead th, td:nth-child(-n+3)) {overflow-wrap:normal} body {font-size:11pt} main, footer "
        "{max-width:none;padding:0} tr, figure, dl div, .bar, li {break-inside:avoid} h1, h2, h3, caption, .lead "
        "{break-after:avoid} p {orphans:3;widows:3} thead {display:table-header-group} "
        "svg {min-width:0;max-height:20cm} .appendix {break-before:page} nav, #more, #more + label {display:none}}",
    )
)
