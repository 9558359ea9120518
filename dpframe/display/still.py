"""Charts that a notebook shows without a network: drawn here as SVG, where Altair by itself has a script fetched."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from dpframe.errors import InvalidArgument

_drawn_in: int | None = None  # the process that drew first: it has threads that a forked child lacks


def still(chart: Any) -> Any:
    """The same chart, which shows itself as a picture where the caller has chosen no other renderer."""
    kind: Any = type(chart)
    object.__setattr__(chart, "__class__", _still_kind(kind))  # a chart's own attributes are its specification
    return chart


@cache
def _still_kind(kind: Any) -> type[Any]:
    namespace: dict[str, Any] = {"_repr_mimebundle_": _picture, "__reduce_ex__": _reduced, "__doc__": kind.__doc__}
    made: type[Any] = type(kind.__name__, (kind,), namespace)
    return made


def _reduced(chart: Any, protocol: int) -> Any:
    """The chart for copies and pickles, which do not find a class that was made here."""
    return _restored, (type(chart).__base__, vars(chart))


def _restored(kind: type[Any], specification: dict[str, Any]) -> Any:
    chart = object.__new__(kind)
    vars(chart).update(specification)
    return still(chart)


def _picture(chart: Any, *args: Any, **options: Any) -> Any:
    import altair

    chosen = altair.renderers.active != "default"
    if chosen or (picture := _svg(chart)) is None:
        return super(type(chart), chart)._repr_mimebundle_(*args, **options)
    return {"image/svg+xml": picture}


def _svg(chart: Any) -> str | None:
    """The chart as SVG; None without the library that draws it."""
    try:
        return drawn(chart.to_dict())
    except ImportError:
        return None


def drawn(specification: dict[str, Any]) -> str:
    """A Vega-Lite specification as SVG. A child that was forked after one was drawn would wait for ever."""
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
