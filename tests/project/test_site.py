"""The site: every public name has one entry in the reference, and its build refuses pages that ask another host."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import polars as pl

import dpframe as dpf
from dpframe.accessor.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
ROOMS = ("audit", "denoise", "local", "testing")
CURVES = ("BoundedRange", "Curve", "PureLoss")  # of the room of accounting, which only extensions need


def entries() -> list[str]:
    text = "".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    return re.findall(r"^::: dpframe\.(\S+)$", text, re.MULTILINE)


def public_names() -> list[str]:
    rooms = {room: importlib.import_module(f"dpframe.{room}").__all__ for room in ROOMS}
    top = [name for name in dpf.__all__ if name not in (*ROOMS, "__version__")]
    rooms["accounting"] = [name for name in importlib.import_module("dpframe.accounting").__all__ if name in CURVES]
    return [*top, *(f"{room}.{name}" for room, names in rooms.items() for name in names)]


def test_the_reference_has_every_public_name_once():
    assert sorted(entries()) == sorted(public_names()), "each has one line ::: dpframe.NAME in docs/reference/"


def test_the_page_of_options_explains_each_option_once():
    page = (ROOT / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE)
    assert sorted(named) == sorted(OPTIONS), "docs/reference/options.md has a row for each of OPTIONS"
    for name, option in OPTIONS.items():
        if option.default not in (None, "auto"):
            default = f"{option.default:,}" if type(option.default) is int else str(option.default).strip('"')
            assert re.search(rf"^\| `{name}` \| [^|]*{re.escape(default)}", page, re.MULTILINE), name


def test_completers_offer_public_names_alone():
    for room in ROOMS:
        module = importlib.import_module(f"dpframe.{room}")
        assert sorted(dir(module)) == sorted(module.__all__)
    frame = pl.DataFrame({"age": [31, 45]})
    ledger = dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit(column="age", max_rows=1))
    plan = frame.dp.preview.count(epsilon=0.5, ledger=ledger)
    offered = {
        ledger: "accounting affords answers checks dataset is_durable limit open plot raise_limit recover remaining "
        "report spent to_frame unit verify",
        plan: "checks choice columns cost error error_of errors mechanisms notes plot query size to_frame unit",
        ledger.unit: "column max_groups max_rows neighbors nulls",
    }
    for thing, names in offered.items():
        assert [name for name in dir(thing) if not name.startswith("_")] == names.split()
