"""Functions that the reproductions share: a command line, progress, tables as CSV and Markdown, charts as PNG."""

from __future__ import annotations

import argparse
import csv
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dpframe as dpf

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CONDITION = 0.5  # an epsilon for which the classical formula is proven
ON_BOTH_PAGES = {"name": "viridis", "extent": [0.3, 0.85]}  # the ends are hard to see on dark or light pages
WIDTH, HEIGHT = 240, 180
PNG = b"\x89PNG\r\n\x1a\n"

Row = dict[str, Any]


def options(description: str | None, repeats: int | None = None, data: str | None = None) -> argparse.Namespace:
    """Parse the command line of a script: --out and, where they apply, --repeats and --data."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("papers_output"), help="the folder for the table and the chart"
    )
    if repeats:
        parser.add_argument("--repeats", type=int, default=repeats, help=f"how often noise is drawn ({repeats})")
    if data:
        parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that holds {data}")
    return parser.parse_args()


def progress(work: Iterable[Any], total: int) -> Iterator[Any]:
    """Yield the items of `work`, and print to stderr how many are done."""
    for number, one in enumerate(work, start=1):
        yield one
        print(f"\r{number} of {total}", end="\n" if number == total else "", file=sys.stderr, flush=True)


def classical_sigma(epsilon: float, delta: float) -> float:
    """Return sqrt(2 ln(1.25 / delta)) / epsilon, which the papers also use for epsilon >= 1, outside of the theorem.

    `dpf.classical_gaussian_sigma` refuses such an epsilon. The formula is proportional to 1 / epsilon.
    """
    if epsilon < 1.0:
        return dpf.classical_gaussian_sigma(epsilon, delta)
    return dpf.classical_gaussian_sigma(CONDITION, delta) * CONDITION / epsilon


def markdown(rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table: text is left-aligned, numbers are right-aligned."""
    names = list(rows[0])
    marks = ["---:" if all(isinstance(row[name], (int, float)) for row in rows) else "---" for name in names]
    lines = ["| " + " | ".join(names) + " |", "|" + "|".join(marks) + "|"]
    lines += ["| " + " | ".join(shown(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def shown(value: Any, digits: int = 4) -> str:
    """Format a number to `digits` significant digits, large ones as whole numbers; return other values as text."""
    if isinstance(value, float):
        return f"{value:,.0f}" if 10**digits / 10 <= abs(value) < 1e9 else f"{value:.{digits}g}"
    return str(value)


def pivoted(rows: Iterable[Row], index: Sequence[str], column: str, value: str) -> list[Row]:
    """Return one row for each value of `index`, one column for each value of `column`."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in index)
        found.setdefault(key, dict(zip(index, key, strict=True)))[str(row[column])] = row[value]
    return list(found.values())


def written(name: str, rows: Sequence[Row], summary: str, chart: Any, folder: Path) -> None:
    """Print the summary; write NAME.csv (every figure), NAME.md (the summary) and NAME.png (the chart)."""
    print(summary)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    (folder / f"{name}.md").write_text(summary + "\n", encoding="utf-8")
    picture = folder / f"{name}.png"
    chart.save(picture)
    picture.write_bytes(smaller(picture.read_bytes()))
    print(f"Written: {folder / name}.csv, .md and .png")


def smaller(png: bytes) -> bytes:
    """Return the same picture, compressed as much as zlib can."""
    start, pixels, kept = len(PNG), b"", []
    while start < len(png):
        (size,), kind = struct.unpack(">I", png[start : start + 4]), png[start + 4 : start + 8]
        content = png[start + 8 : start + 8 + size]
        pixels, kept = (pixels + content, kept) if kind == b"IDAT" else (pixels, [*kept, (kind, content)])
        start += size + 12
    packed = (b"IDAT", zlib.compress(zlib.decompress(pixels), 9))
    return PNG + b"".join(map(chunk, [*kept[:-1], packed, kept[-1]]))  # IEND is the last chunk


def chunk(kind_and_content: tuple[bytes, bytes]) -> bytes:
    """Return a chunk of a PNG file: its size, kind, content and checksum."""
    body = b"".join(kind_and_content)
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def panel(rows: Sequence[Row], x: Any, y: Any, color: Any, title: str) -> Any:
    """Draw lines with points; `x`, `y` and `color` are Altair's encodings."""
    import altair

    return (
        altair.Chart(altair.Data(values=list(rows)), title=title)
        .mark_line(point=altair.OverlayMarkDef(size=18), strokeWidth=1.5)
        .encode(x=x, y=y, color=color)
        .properties(width=WIDTH, height=HEIGHT)
    )


def logarithmic(field: str, title: str, channel: str = "y") -> Any:
    """Return a logarithmic axis."""
    import altair

    scale, axis = altair.Scale(type="log"), altair.Axis(tickCount=5, format=",~g", grid=False)
    return (altair.Y if channel == "y" else altair.X)(f"{field}:Q", title=title, scale=scale, axis=axis)


def color(field: str, title: str | None = None) -> Any:
    """Return a color scale, with one color for each name or number in the order of the rows."""
    import altair

    if title in ("delta", "epsilon"):  # ordered numbers
        return altair.Color(f"{field}:O", sort=None, title=title, scale=altair.Scale(scheme=ON_BOTH_PAGES))
    return altair.Color(f"{field}:N", sort=None, title=title)
