"""Charts and pages as tests read them: the views of a chart with their text, and the table of a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def seen(chart: Any) -> dict[str, Any]:
    """Return a chart's view or panels, title, description, and ``captions``: the lines below it in one string."""
    whole = chart.to_dict()
    if "captions" not in str(whole.get("vconcat", [{}])[0].get("title", {}).get("style", "")):
        return {**whole, "captions": ""}
    (below,) = whole.pop("vconcat")
    (view,) = below["vconcat"]
    return {**whole, **view, "captions": " ".join(below["title"]["text"])}


def table_of_page(result: Any, folder: Path) -> str:
    """Return the HTML of the table on the page of a result."""
    page = folder / "page.html"
    result.dp.write_html(page, charts=False)
    text = page.read_text(encoding="utf-8")
    return text[text.index("<table") : text.index("</table>")]
