"""Charts that need no network: pictures in a notebook and pages that contain their scripts, each with a description."""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

from dpframe.display import theme
from dpframe.errors import InvalidArgument
from dpframe.files import write_to

NEEDS_BUNDLE = (
    "charts as HTML need vl-convert, whose scripts stand in the page: pip install 'dpframe[plot]'. Or write "
    "inline=False, and the browser of each reader fetches them."
)
OPENING = re.compile(r"<svg\b[^>]*>")
OF_THE_WHOLE = (  # properties that occur once in a specification, outside of its views
    *("$schema", "config", "title", "description", "datasets", "background", "padding", "autosize"),
    "usermeta",
)
LONGEST_LINE = 105  # characters of a caption that fit under a chart
MOST_LINES = 2  # lines of a paragraph
MORE = "More: .dp.statement()."
CAPTION = {"anchor": "start", "fontSize": theme.SMALL_SIZE, "fontWeight": "normal", "style": "captions", "offset": 10}
OF_PANELS = {"axisY": {"labelFlush": True}}  # keeps titles of panels level: no label extends above a plot
PNG_START = 33  # bytes of the signature and of the header, which is the first chunk

_drawn_in: int | None = None  # the process that drew first; its threads are missing in a forked child


@dataclass(frozen=True)
class Look:
    """The look that a chart adds to its specification when it is drawn: a theme and captions below the picture."""

    dark: bool | None = False  # None: the caller's own theme applies
    paragraphs: tuple[tuple[str, ...], ...] = ()  # sentences of each paragraph, which shows as many as fit
    captions: tuple[str, ...] = ()  # lines
    left_out: tuple[str, ...] = ()  # sentences on what is not drawn, and on marks; all are shown

    @property
    def lines(self) -> list[str]:
        """The lines below the picture."""
        cut = (line for paragraph in self.paragraphs for line in _cut(paragraph))
        return [*_wrapped(self.left_out), *cut, *self.captions]


def still(chart: Any, look: Look | None = None) -> Any:
    """Return the same chart, changed to draw itself with a look, and as a picture under the default renderer.

    The look is not part of the specification that Altair composes. So ``+``, ``|``, ``&``, ``configure_axis`` and
    ``properties`` work as on any chart of Altair.
    """
    kind: Any = type(chart)
    object.__setattr__(chart, "__class__", _still_kind(kind, look or Look()))  # Altair's setattr edits specifications
    return chart


@lru_cache(maxsize=64)
def _still_kind(kind: Any, look: Look) -> type[Any]:
    namespace: dict[str, Any] = {
        "_dpframe_look": look,
        "_repr_mimebundle_": _picture,
        "__reduce_ex__": _reduced,
        "__doc__": kind.__doc__,
        "save": _save,
        "to_html": _to_html,
        "to_dict": _to_dict,
        "properties": _properties,
        **{name: _composed(name) for name in ("__add__", "__or__", "__and__")},
    }
    made: type[Any] = type(kind.__name__, (kind,), namespace)
    return made


def _reduced(chart: Any, protocol: int) -> Any:
    """Reduce the chart for copies and pickles, which cannot find a class that is made at run time."""
    return _restored, (type(chart).__base__, vars(chart), chart._dpframe_look)


def _restored(kind: type[Any], specification: dict[str, Any], look: Look) -> Any:
    chart = object.__new__(kind)
    vars(chart).update(specification)
    return still(chart, look)


def _composed(name: str) -> Any:
    """Return an operator of Altair whose result has the look of the first chart and the captions of both."""

    def compose(chart: Any, other: Any) -> Any:
        look = chart._dpframe_look
        more = other._dpframe_look if hasattr(type(other), "_dpframe_look") else Look()
        together = getattr(super(type(chart), chart), name)(other)
        if together is NotImplemented:
            return together
        if hasattr(type(together), "_dpframe_look"):  # a copy of a layered chart already has a look
            object.__setattr__(together, "__class__", type(together).__base__)
        both = (
            tuple(dict.fromkeys((*getattr(look, name), *getattr(more, name))))
            for name in ("paragraphs", "captions", "left_out")
        )
        return still(together, Look(look.dark, *both))

    return compose


def _properties(chart: Any, **given: Any) -> Any:
    """Set properties as Altair does; in a chart of panels, width and height apply to each panel."""
    size: dict[str, Any] = {name: given[name] for name in ("width", "height") if name in given}
    rest = {name: value for name, value in given.items() if name not in size}
    if not size or _panels_of(chart) is None:
        return super(type(chart), chart).properties(**given)
    return _resized(super(type(chart), chart).properties(**rest), size)


def _panels_of(chart: Any) -> str | None:
    """Return the name under which a chart holds its panels; None for a single view."""
    return next((name for name in ("spec", "concat", "hconcat", "vconcat") if name in chart._kwds), None)


def _resized(chart: Any, size: Mapping[str, Any]) -> Any:
    name = _panels_of(chart)
    if name is None:
        return chart.properties(**size)
    made, inner = chart.copy(deep=False), getattr(chart, name)
    setattr(made, name, [_resized(one, size) for one in inner] if isinstance(inner, list) else _resized(inner, size))
    return made


def _to_dict(chart: Any, *args: Any, **options: Any) -> Any:
    """Return the specification, with the look unless the chart is part of another."""
    whole = (options.get("context") or {}).get("top_level", True)
    specification = super(type(chart), chart).to_dict(*args, **options)
    if not whole or options.get("format", "vega-lite") != "vega-lite":
        return specification
    return dressed(specification, chart._dpframe_look, _own_config(chart))


def without_captions(chart: Any) -> dict[str, Any]:
    """Return the specification of a chart without its captions, for a page that writes them itself."""
    look = Look(getattr(type(chart), "_dpframe_look", Look(None)).dark)
    kind: Any = type(chart).__base__ if hasattr(type(chart), "_dpframe_look") else type(chart)
    plain: Any = object.__new__(kind)
    vars(plain).update(vars(chart))
    return dressed(plain.to_dict(), look, _own_config(chart))


def _own_config(chart: Any) -> Mapping[str, Any]:
    """Return the configuration that the caller gave this chart."""
    given = chart._kwds.get("config")
    return given.to_dict(validate=False) if hasattr(given, "to_dict") else {}


def dressed(specification: Mapping[str, Any], look: Look, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a specification with its look: the theme, which the caller's settings override, and the captions."""
    made = dict(specification)
    if look.dark is not None:
        plain = {**theme.config(dark=look.dark), **(OF_PANELS if "concat" in made else {})}
        made["config"] = _merged(_merged(made.get("config", {}), plain), own)
    if not (lines := look.lines):
        return made
    whole = {name: made.pop(name) for name in OF_THE_WHOLE if name in made}
    params = made.pop("params", [])
    for param in params:  # a selection that names no views stays in its view
        of = made if "select" in param and "views" not in param else whole
        of["params"] = [*of.get("params", []), param]
    below = {"text": lines, "orient": "bottom", **CAPTION}
    return {**whole, "vconcat": [{"vconcat": [made], "title": below}]}


def _cut(sentences: Sequence[str]) -> list[str]:
    """Return the lines of a paragraph; sentences beyond `MOST_LINES` give way to a reference to the statement."""
    kept: list[str] = []
    for place, sentence in enumerate(sentences):
        rest = [] if place == len(sentences) - 1 else [MORE]
        if kept and len(_wrapped([*kept, sentence, *rest])) > MOST_LINES:
            return _wrapped([*kept, MORE])
        kept.append(sentence)
    return _wrapped(kept)


def _wrapped(sentences: Sequence[str]) -> list[str]:
    return wrap(" ".join(sentences), LONGEST_LINE, break_on_hyphens=False)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(made.get(name), Mapping)
        made[name] = _merged(made[name], value) if both else value
    return made


def _picture(chart: Any, *args: Any, **options: Any) -> Any:
    """Return the data that a notebook shows: a picture and its description as text."""
    import altair

    chosen = altair.renderers.active != "default"
    if chosen or (picture := _svg(chart)) is None:
        return super(type(chart), chart)._repr_mimebundle_(*args, **options)
    said = description_of(chart)
    return {"image/svg+xml": picture, "text/plain": said}, {"image/svg+xml": {"alt": said}}


def _svg(chart: Any) -> str | None:
    """Return the chart as SVG; None without the library that draws it."""
    try:
        return described_svg(drawn(chart.to_dict()), description_of(chart))
    except ImportError:
        return None


def _save(chart: Any, fp: Any, format: str | None = None, **options: Any) -> None:
    """Save the chart as Altair does; pictures contain their description, and a page contains its scripts."""
    kind = format or (Path(fp).suffix[1:].lower() if isinstance(fp, (str, os.PathLike)) else None)
    write_to("fp", fp, lambda place: _save_as(chart, place, kind, options))


def _save_as(chart: Any, fp: Any, format: str | None, options: dict[str, Any]) -> None:
    ending = str(format or "").lower()
    kept: Any = io.StringIO() if ending == "svg" else io.BytesIO() if ending == "png" else fp
    if ending == "html":
        options = {"inline": True, **options}
    try:
        super(type(chart), chart).save(kept, format=format, **options)
    except ImportError as error:
        raise (ImportError(NEEDS_BUNDLE) if options.get("inline") else error) from None
    if kept is fp:
        return
    told = described_svg if ending == "svg" else described_png
    content = told(kept.getvalue(), description_of(chart))
    if hasattr(fp, "write"):
        fp.write(content)
    elif isinstance(content, str):
        Path(fp).write_text(content, encoding="utf-8")
    else:
        Path(fp).write_bytes(content)


def _to_html(chart: Any, *args: Any, **options: Any) -> Any:
    return super(type(chart), chart).to_html(*args, **{"inline": True, **options})


def description_of(chart: Any) -> str:
    """Return the description of a chart for people who do not see it."""
    said = getattr(chart, "description", None)
    return said if isinstance(said, str) else "Chart"


def described_svg(svg: str, said: str) -> str:
    """Return the picture with its description, as a label for screen readers and as an element for tools."""
    opening = OPENING.search(svg)
    if opening is None:
        return svg
    words = escape(said)
    tag = f'{opening.group()[:-1]} role="img" aria-label="{words}"><desc>{words}</desc>'
    return svg[: opening.start()] + tag + svg[opening.end() :]


def described_png(png: bytes, said: str) -> bytes:
    """Return the picture with its description as the text ``Description`` of PNG (its specification, 11.3.3)."""
    text = b"Description\0\0\0\0\0" + said.encode()  # not compressed, without a language
    checked = b"iTXt" + text
    chunk = struct.pack(">I", len(text)) + checked + struct.pack(">I", zlib.crc32(checked))
    return png[:PNG_START] + chunk + png[PNG_START:]


def drawn(specification: dict[str, Any]) -> str:
    """Draw a Vega-Lite specification as SVG; refuse in a child forked after a drawing, which would wait forever."""
    global _drawn_in
    import vl_convert

    if _drawn_in not in (None, os.getpid()):
        raise InvalidArgument(
            "the process must not be forked after a chart was drawn: another would never end. Start workers with "
            'multiprocessing.get_context("spawn") or "forkserver". Or leave charts out: charts=False.'
        )
    _drawn_in = os.getpid()
    picture: str = vl_convert.vegalite_to_svg(specification)
    return picture
