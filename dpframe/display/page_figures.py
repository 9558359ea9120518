"""Charts as pictures within a page: one for light pages and one for dark ones, of which the browser shows one."""

from __future__ import annotations

import re
from typing import Any

from dpframe.display import theme
from dpframe.display.report_page import scrolling, text
from dpframe.display.still import drawn, without_captions

NEEDS_DRAWING = (
    "charts in a page need Altair and vl-convert: pip install 'dpframe[plot]'. Or leave them out: charts=False"
)
OPENING = re.compile(r"<svg\b[^>]*>")
SIZE = re.compile(r'\b(width|height|viewBox)="([0-9. -]+)"')
NAMES = re.compile(r'(\bid="|url\(#|href="#)')  # of parts of a picture, which must differ from those of another


def figure(chart: Any, name: str, caption: str) -> str:
    """The chart as a figure: a caption below it, and its title, which is the section's, as what a reader hears."""
    specification = without_captions(chart)
    title = specification.pop("title", {})
    words = title.get("text", "") if isinstance(title, dict) else title
    alternative = specification.get("description") or f"Chart: {_one_line(words)}"
    heard = f"{alternative}. The table that follows has its numbers."
    pictures = "".join(
        f'<div class="{kind}">{picture(specification, heard, f"{name}-{kind}-", dark=kind == "dark")}</div>'
        for kind in ("light", "dark")
    )
    return f"<figure>{scrolling(pictures, 'Chart')}<figcaption>{text(caption)}</figcaption></figure>"


def picture(specification: dict[str, Any], heard: str, prefix: str, *, dark: bool) -> str:
    """A Vega-Lite specification as SVG without addresses, with words for who does not see it."""
    configuration = {**specification.get("config", {}), **theme.config(dark=dark)}
    try:
        svg = drawn({**specification, "config": configuration})
    except ImportError:
        raise ImportError(NEEDS_DRAWING) from None
    opening = OPENING.search(svg)
    assert opening is not None  # every picture begins so
    sizes = dict(SIZE.findall(opening.group()))
    tag = (
        f'<svg viewBox="{sizes["viewBox"]}" width="{sizes["width"]}" height="{sizes["height"]}" '
        f'style="--width:{sizes["width"]}px" role="img" aria-label="{text(heard)}">'
    )
    return tag + NAMES.sub(rf"\g<1>{prefix}", svg[opening.end() :])


def _one_line(words: Any) -> str:
    return " ".join(words) if isinstance(words, list) else str(words)
