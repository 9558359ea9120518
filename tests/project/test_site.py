"""The site: every public name has one entry in the reference, and the pages ask no other host for anything."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
ROOMS = ("audit", "denoise", "local", "testing")
CURVES = ("BoundedRange", "Curve", "PureLoss")  # of the room of accountings, which extensions alone need


def entries() -> list[str]:
    text = "".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    return re.findall(r"^::: dpframe\.(\S+)$", text, re.MULTILINE)


def public_names() -> list[str]:
    rooms = {room: importlib.import_module(f"dpframe.{room}").__all__ for room in ROOMS}
    top = [name for name in dpf.__all__ if name not in (*ROOMS, "__version__")]
    rooms["accounting"] = [name for name in importlib.import_module("dpframe.accounting").__all__ if name in CURVES]
    return [*top, *(f"{room}.{name}" for room, names in rooms.items() for name in names)]


def test_the_reference_has_every_public_name_once():
    assert sorted(entries()) == sorted(public_names())


def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="the site is built where the extra docs is installed")
    pytest.importorskip("latex2mathml")
    pytest.importorskip("mkdocstrings")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site")))
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"']?(?:https?:)?//", text), page.name
        assert 'class="arithmatex"' not in text, page.name
