"""Reports in a browser: light and dark, narrow and wide, offline, printed, used by keyboard."""

from __future__ import annotations

import chromium as browsers
import numpy as np
import polars as pl
import pytest

import dpframe as dpf

NAMES = ["North", "South <b>", "</script><script>throw 1</script>", "a" * 120]
PICTURES = """(() => {
    const channel = part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const light = color => color.match(/[0-9.]+/g).slice(0, 3).map(Number).map(part => channel(part / 255))
        .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
    const page = light(getComputedStyle(document.body).backgroundColor);
    const contrasts = [...document.querySelectorAll('svg text')].map(one => light(getComputedStyle(one).fill))
        .map(color => (Math.max(color, page) + 0.05) / (Math.min(color, page) + 0.05));
    return Math.min(...contrasts);
})()"""
FOLDED = "document.querySelector('.folded').getBoundingClientRect().height"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
SHOWN = "[...document.querySelectorAll('svg')].filter(one => one.getBoundingClientRect().width > 0).length"
CONTRAST = """(() => {
    const channel = part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const light = color => color.match(/[0-9.]+/g).slice(0, 3).map(Number).map(part => channel(part / 255))
        .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
    const page = light(getComputedStyle(document.body).backgroundColor);
    return Math.min(...[...document.querySelectorAll('h1, h2, h3, p, td, th, dt, dd, a, li, figcaption, small')]
        .map(one => light(getComputedStyle(one).color))
        .map(color => (Math.max(color, page) + 0.05) / (Math.min(color, page) + 0.05)));
})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a report of a ledger and of several kinds of results, whose names contain hostile HTML."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    folder = tmp_path_factory.mktemp("report")
    random = np.random.default_rng(3)
    people = pl.DataFrame({"age": random.integers(0, 100, 900), "ward": NAMES * 225})
    ledger = dpf.Ledger(epsilon=3, path=folder / "clinic.ledger", dataset="<clinic>")
    with ledger:
        wards = people.dp.group_by("ward", keys=NAMES).agg(
            n=dpf.count(), age=dpf.mean("age", bounds=(0, 120)), old=dpf.median("age", bounds=(0, 120)), epsilon=1
        )
        ages = people.dp.histogram("age", bins=20, range=(0, 100), epsilon=0.5, label="Ages", snapshot="2026")
    ledger.report(folder / "report.html", wards, ages)
    return folder / "report.html"


@pytest.mark.slow
def test_a_report_as_people_see_it(page):
    with browsers.chromium() as browser:
        for width in (360, 1200):
            for scheme, is_dark in (("light", False), ("dark", True)):
                browser.width(width)
                browser.scheme(scheme)
                browser.open(page)
                assert browser.requests() == [page.as_uri()]
                assert browser.complaints() == []
                assert browser.value(OVERFLOW) == 0
                background = [int(part) for part in browser.value(BACKGROUND)[4:-1].split(",")]
                assert (sum(background) < 150) is is_dark
                assert browser.value(SHOWN) == 2  # the chart of the budget is in the folded appendix
                assert browser.value(FOLDED) == 0
                assert browser.value("document.querySelector('#more').click()") is None
                assert browser.value(SHOWN) == 3
                assert browser.value(FOLDED) > 100
                assert browser.value(OVERFLOW) == 0
                assert browser.value(CONTRAST) >= 4.5
                assert browser.value(PICTURES) >= 4.5
        assert browser.value("document.querySelectorAll('script:not([type=\"application/json\"])').length") == 0
        assert browser.value("JSON.parse(document.getElementById('records').textContent).length") == 3
        assert browser.value("[...document.links].every(one => one.getAttribute('href').startsWith('#'))")
        named = "[...document.querySelectorAll('svg, .wide, section')].every(one => one.ariaLabel || {})"
        assert browser.value(named.format("one.getAttribute('aria-labelledby')"))
        assert browser.value("[...document.querySelectorAll('h1')].length") == 1
        assert "</script><script>throw 1</script>" in browser.value("document.body.innerText")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_printed_report_keeps_its_columns(page, scheme):
    """Paper does not scroll: on A4, the epsilon and delta of charges were once cut off, and the bar was empty."""
    with browsers.chromium() as browser:
        browser.width(718)  # the width of A4 minus margins of 1 cm
        preferred = {"name": "prefers-color-scheme", "value": scheme}
        browser.ask("Emulation.setEmulatedMedia", media="print", features=[preferred])
        browser.open(page)
        assert browser.value(OVERFLOW) == 0
        assert browser.value(FOLDED) > 100  # parts that are folded on screen are printed
        assert browser.value("[...document.querySelectorAll('.wide')].every(one => one.scrollWidth <= one.clientWidth)")
        assert browser.value("getComputedStyle(document.querySelector('.bar')).printColorAdjust") == "exact"
        assert browser.value("getComputedStyle(document.querySelector('.bar div')).width !== '0px'")
        assert browser.value(BACKGROUND) == "rgb(255, 255, 255)"
        assert browser.value(CONTRAST) >= 4.5


@pytest.mark.slow
def test_a_table_on_a_light_page_is_read_in_dark_mode(page, tmp_path):
    people = pl.DataFrame({"ward": ["A", "B"] * 90})
    counts = people.dp.group_by("ward", keys=["A", "B"]).count(epsilon=1, ledger=dpf.Ledger(epsilon=1))
    light = tmp_path / "light.html"
    style = "<!doctype html><meta charset=utf-8><body style='background:#ffffff;color:#000000'>"
    light.write_text(style + counts.dp.table("html"), encoding="utf-8")
    behind = "getComputedStyle(document.querySelector('.dpframe')).backgroundColor"
    with browsers.chromium() as browser:
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            browser.open(light)
            assert browser.value(CONTRAST.replace("getComputedStyle(document.body).backgroundColor", behind)) >= 4.5


@pytest.mark.slow
def test_a_page_is_seen_to_fetch_to_complain_and_to_overflow(tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><meta name='viewport' content='width=device-width'><img src='http://127.0.0.1:9/x.png'>"
        "<script>console.error('no')</script><div style='width:900px'>wide</div>"
    )
    with browsers.chromium() as browser:
        browser.width(360)
        browser.open(bad)
        assert len(browser.requests()) == 2
        assert browser.complaints()
        assert browser.value(OVERFLOW) > 0
