"""What the site needs beyond its pages: files of the repository's root as pages, links among them, and formulas.

Pages keep the links that a reader of the repository can follow. Here a link out of ``docs/`` becomes a link to the
page of that file, or plain words where it has none; a picture gets its dark version next to it. Formulas become
MathML, which browsers draw without a script. A page that asks another host for anything is refused.
"""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import BuildError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FROM_ROOT = {
    "project/changelog.md": "CHANGELOG.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/security-policy.md": "SECURITY.md",
    "project/assurance.md": "assurance/README.md",
    "project/benchmarks.md": "benchmarks/README.md",
}
PAGES = {ROOT / file: page for page, file in FROM_ROOT.items()} | {ROOT / "README.md": "index.md"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
IMAGE = re.compile(r"(!\[[^\]]*\]\()(?![a-z]+:)([^)\s]+)\)")
FETCHED = "https://unpkg.com/iframe-worker/shim"
FOREIGN = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the files of the root as pages."""
    for page, file in FROM_ROOT.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links and pictures at the pages and files of the site."""
    page_name = page.file.src_uri
    folder = (ROOT / FROM_ROOT.get(page_name, f"docs/{page_name}")).parent

    def relinked(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        file = (folder / target).resolve()
        if file.is_relative_to(DOCS):
            name = file.relative_to(DOCS).as_posix()
        elif file in PAGES:
            name = PAGES[file]
        else:
            return words
        return f"[{words}]({_relative(name, page_name)}{anchor})"

    def redrawn(match: re.Match[str]) -> str:
        file = (folder / match[2]).resolve()
        dark = file.with_stem(f"{file.stem}-dark")
        light, dark_one = (_relative(one.relative_to(DOCS).as_posix(), page_name) for one in (file, dark))
        if not dark.exists():
            return f"{match[1]}{light})"
        return f"{match[1]}{light}#only-light){match[1]}{dark_one}#only-dark)"

    return IMAGE.sub(redrawn, LINK.sub(relinked, markdown))


def on_page_content(html: str, **_: Any) -> str:
    """Turn formulas into MathML."""
    return FORMULA.sub(_drawn, html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take the one script that the theme would fetch from another host from the site itself."""
    name = page.file.dest_uri
    return _checked(output.replace(FETCHED, _relative("javascripts/iframe-worker.js", name)), name)


def on_post_template(output: str, template_name: str, **_: Any) -> str:
    """The same of the page for addresses that are none, which has no address of its own."""
    return _checked(output.replace(FETCHED, "/javascripts/iframe-worker.js"), template_name)


def _checked(output: str, name: str) -> str:
    """A page that asks no other host for anything, and whose formulas are all drawn."""
    if found := FOREIGN.search(output):
        raise BuildError(f"{name} fetches from another host: {found[0]}")
    if 'class="arithmatex"' in output:
        raise BuildError(f"{name} has a formula that is not drawn.")
    return output


def _drawn(match: re.Match[str]) -> str:
    formula = unescape(match[3]).strip().replace(r"\_", "_")  # the converter would show the backslash
    return str(convert(formula, display="block" if match[2] == "[" else "inline"))


def _relative(target: str, page: str) -> str:
    return os.path.relpath(target, os.path.dirname(page) or ".").replace(os.sep, "/")
