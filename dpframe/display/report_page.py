"""Pieces of pages: text, lists, tables, pictures, own words of an author, and how all of them look."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from dpframe.display import theme
from dpframe.display.still import Look, drawn, without_captions
from dpframe.display.table_formats import TABLE_RULES, variables
from dpframe.errors import capital, harmless, no_markup

NEEDS_DRAWING = (
    "charts in a page need Altair and vl-convert: pip install 'dpframe[plot]'. Or leave them out: charts=False"
)
OPENING = re.compile(r"<svg\b[^>]*>")
SIZE = re.compile(r'\b(width|height|viewBox)="([0-9. -]+)"')
NAMES = re.compile(r'(\bid="|url\(#|href="#)')  # of parts of a picture, which must differ from those of another
COLORS = re.compile(r'(\b(?:fill|stroke|stop-color)=")([^"]*)"')
UNHEARD = re.compile(r' (?:role|aria-[a-z]+|class|pointer-events)="[^"]*"')  # of parts: the whole picture has words
TAG = re.compile(r'<(?:[^">]|"[^"]*")*>')
GRADIENT = re.compile(r"\bgradient_\d+")  # numbered through all pictures of a process
LONG = re.compile(r"-?\d+\.\d{3,}")  # hundredths of a pixel are enough
BLOCK = re.compile(r"\n[ \t]*\n")
BULLET, NUMBERED, TITLED = re.compile(r"[-*+]\s+"), re.compile(r"\d{1,3}[.)]\s+"), re.compile(r"#{1,6}\s+")
SPANS = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>\S(?:.*?\S)?)\*\*|\*(?P<em>[^\s*](?:[^*]*[^\s*])?)\*"
    r"|\[(?P<words>[^\]]+)\]\((?P<place>[^()\s]+)\)"
)
Facts = Iterable[tuple[str, str]]


def text(words: str) -> str:
    """Words for a page, of which no letter is read as markup or commands the screen."""
    return html.escape(harmless(words))


def data(value: Any) -> str:
    """JSON for a script of a page, in which no text ends the script."""
    written = json.dumps(value, default=str)  # ASCII alone
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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


def own_words(markdown: str) -> str:
    """Sentences of an author, in a little of Markdown; HTML in them is text.

    Paragraphs, lists, headings, ``**strong**``, ``*emphasis*`` and `` `code` `` are known. An address stands after the
    words that it belongs to, and is no link: a page links nowhere.
    """
    lines = markdown.replace("\r\n", "\n").replace("\r", "\n").strip()
    return "\n".join(
        _block([line.strip() for line in block.split("\n")]) for block in BLOCK.split(lines) if block.strip()
    )


def _block(lines: Sequence[str]) -> str:
    """A paragraph, a list or a heading; a list may stand right below a paragraph."""
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
    """Text with its emphasis; every letter is escaped, within marks and outside of them."""
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
    """The words that a chart has below its title and below its picture, as one line, without what else is `said`."""
    title = getattr(chart, "title", None)
    subtitle = getattr(title, "subtitle", "")
    look = getattr(type(chart), "_dpframe_look", Look())
    elsewhere = {f"{capital(no_markup(words))}." for words in said}
    sentences = [one for paragraph in look.paragraphs for one in paragraph if one not in elsewhere]
    parts = (f"{subtitle}." if isinstance(subtitle, str) and subtitle else "", *sentences, *look.captions)
    return " ".join(part for part in parts if part)


def figure(chart: Any, name: str, caption: str) -> str:
    """The chart as a figure with a caption below it, and with its words for who does not see it."""
    specification = without_captions(chart)
    title = specification.pop("title", {})
    words = title.get("text", "") if isinstance(title, dict) else title
    said = specification.get("description") or f"Chart: {' '.join(words) if isinstance(words, list) else words}."
    made = picture(specification, f"{said} The table has its numbers.", f"{name}-")
    return f'<figure id="{name}">{scrolling(made, "Chart")}<figcaption>{text(caption)}</figcaption></figure>'


def picture(specification: dict[str, Any], heard: str, name: str) -> str:
    """A Vega-Lite specification as one SVG without addresses, whose colors are those of the page that it is on.

    It is drawn for a light page and for a dark one; both differ in colors alone, and each pair becomes a variable.
    """
    light, dark = (_drawn(specification, dark=dark) for dark in (False, True))
    opening = OPENING.search(light)
    assert opening is not None  # every picture begins so
    sizes = dict(SIZE.findall(opening.group()))
    assert COLORS.sub("", light) == COLORS.sub("", dark)  # the themes differ in colors alone
    pairs: dict[tuple[str, str], str] = {}
    in_the_dark = iter([found[2] for found in COLORS.finditer(dark)])

    def variable(found: re.Match[str]) -> str:
        pair = (found[2], next(in_the_dark))
        if pair[0] == pair[1]:
            return found[0]
        return f'{found[1]}var(--{pairs.setdefault(pair, f"{name}{len(pairs)}")})"'

    made = COLORS.sub(variable, light[opening.end() :])
    values = ["".join(f"--{own}:{pair[side]};" for pair, own in pairs.items()) for side in (0, 1)]
    style = f":root{{{values[0]}}}@media screen and (prefers-color-scheme:dark){{:root{{{values[1]}}}}}"
    tag = (
        f'<svg viewBox="{sizes["viewBox"]}" width="{sizes["width"]}" height="{sizes["height"]}" '
        f'style="--width:{sizes["width"]}px;font-family:{html.escape(theme.FONT)}" '
        f'role="img" aria-label="{text(heard)}">'
    )
    return f"<style>{style}</style>{tag}" + NAMES.sub(rf"\g<1>{name}", made)


def _drawn(specification: dict[str, Any], *, dark: bool) -> str:
    """A picture without what its parts say, which nobody hears, and without digits that nobody sees."""
    configuration = {**specification.get("config", {}), **theme.config(dark=dark)}
    try:
        svg = drawn({**specification, "config": configuration})
    except ImportError:
        raise ImportError(NEEDS_DRAWING) from None
    opening, numbers = OPENING.search(svg), dict[str, int]()
    assert opening is not None
    svg = GRADIENT.sub(lambda found: f"gradient_{numbers.setdefault(found[0], len(numbers))}", svg)
    return opening.group() + TAG.sub(_short, svg[opening.end() :])


def _short(tag: re.Match[str]) -> str:
    plain = UNHEARD.sub("", tag[0]).replace(f' font-family="{theme.FONT}"', "")
    return LONG.sub(lambda found: f"{float(found[0]):.2f}", plain)


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
        # paper does not scroll: what is wide is wrapped, what is filled is printed as it is, what is folded is unfolded
        "@page {margin:14mm} "
        "@media print {.wide {overflow:visible} .broad table {min-width:0;width:100%} .wide table {font-size:.75rem;"
        "overflow-wrap:anywhere} .wide :is(th, td) {padding:.2em .4em} "
        ".broad :is(thead th, td:nth-child(-n+3)) {overflow-wrap:normal} body {font-size:11pt} main, footer "
        "{max-width:none;padding:0} tr, figure, dl div, .bar, li {break-inside:avoid} h1, h2, h3, caption, .lead "
        "{break-after:avoid} p {orphans:3;widows:3} thead {display:table-header-group} "
        "svg {min-width:0;max-height:20cm} .appendix {break-before:page} nav, #more, #more + label {display:none}}",
    )
)
