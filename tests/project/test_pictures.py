"""The pictures of the README and the docs match those that docs/images/draw.py draws from the files next to it."""

from __future__ import annotations

import json
import re
import runpy
import struct
from pathlib import Path

import pytest

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)]*images/[^)]*)\)|<img alt=\"([^\"]+)\" src=\"([^\"]*images/[^\"]*)\"")
PALETTE = 3  # the color type of PNG files with a palette of few colors

altair = pytest.importorskip("altair")
pytestmark = pytest.mark.skipif(int(altair.__version__.split(".")[0]) < 6, reason="an older Altair writes other words")


@pytest.fixture(scope="module")
def drawing():
    """The names that the drawing script defines."""
    return runpy.run_path(str(IMAGES / "draw.py"))


def pages():
    """Return the README and every page of the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


KEPT = json.loads((IMAGES / "specifications.json").read_text(encoding="utf-8"))
LARGE = ("taxi-city", "taxi-sample")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in sorted(KEPT)]
)
def test_a_picture_is_made_of_what_it_was_drawn_from(drawing, name):
    """If a difference is intended, run ``python docs/images/draw.py`` and look at the pictures."""
    made = json.loads(json.dumps(drawing["specification"](drawing["PICTURES"][name]())))
    assert made == KEPT[name]
    if name not in LARGE:
        dark = drawing["specification"](drawing["in_the_dark"](name))
        assert dark.pop("config") != made.pop("config"), "a dark page has colors of its own"
        assert dark == made, "and nothing else"


def test_every_picture_is_drawn_by_the_script_and_shown_with_words(drawing):
    shown = [
        (page, *filter(None, found)) for page in pages() for found in SHOWN.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(shown) >= 20
    for page, words, path in shown:
        file = (page.parent / path).resolve()
        assert file.exists(), (page, path)
        assert file.stem in drawing["PICTURES"], (page, path)
        assert len(words) > 10, (page, path)
    assert set(drawing["PICTURES"]) == set(KEPT) == {Path(path).stem for *_, path in shown}
    assert {file.stem for file in IMAGES.glob("*.png")} == {f"{name}{page}" for name in KEPT for page in ("", "-dark")}


def test_no_picture_is_quantised():
    for file in IMAGES.glob("*.png"):
        start = file.read_bytes()[:26]
        assert struct.unpack(">B", start[25:26])[0] != PALETTE, file.name


def test_what_is_drawn_is_found_beside_it(drawing):
    used = {"taxi-roads", "jobs-central", "jobs-local", *KEPT}
    kept = {file.stem for file in IMAGES.iterdir() if file.suffix in {".parquet", ".csv"}}
    assert kept <= used


def test_the_readme_and_the_front_page_print_the_release_that_they_draw():
    """The table and the picture show one release, made by the call that stands above both."""
    pandas = pytest.importorskip("pandas")
    first = dpf.read_parquet(IMAGES / "first.parquet", like="pandas")
    assert isinstance(first, pandas.DataFrame)
    assert f"```\n{first}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in first.dp.table("markdown").splitlines() if line.startswith("|")]
    assert "\n".join(rows) in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    call = first.dp.provenance
    assert (call["label"], call["cost"]["epsilon"], len(first)) == ("People by age", 0.2, 9)
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        asked = " ".join(page.read_text(encoding="utf-8").split())
        assert 'histogram( "age", bins=range(10, 101, 10), epsilon=0.2, label="People by age",' in asked
