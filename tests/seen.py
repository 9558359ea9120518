"""The specification of a chart as tests read it: its views, with the words around them beside it."""

from __future__ import annotations

from typing import Any


def seen(chart: Any) -> dict[str, Any]:
    """The view or the panels of a chart, its title and its description, and ``captions``: the lines below it as one."""
    whole = chart.to_dict()
    if "captions" not in str(whole.get("vconcat", [{}])[0].get("title", {}).get("style", "")):
        return {**whole, "captions": ""}
    (below,) = whole.pop("vconcat")
    (view,) = below["vconcat"]
    return {**whole, **view, "captions": " ".join(below["title"]["text"])}
