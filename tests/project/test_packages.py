"""Files about the project for others: packages, citation, workflows, hooks."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELATIVE = re.compile(r"\]\((?![a-z]+:)")


@pytest.fixture
def hatch_build(monkeypatch):
    """The build hook, imported without hatchling."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = SimpleNamespace
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_package_index_is_given_a_readme_without_links_that_lead_nowhere(hatch_build):
    metadata = {}
    hatch_build.Readme(root=str(ROOT)).update(metadata)
    text = metadata["readme"]["text"]
    written = (ROOT / "README.md").read_text(encoding="utf-8")
    assert RELATIVE.search(written)
    assert not RELATIVE.search(text)
    assert hatch_build.ABOUT in text
    assert re.findall(r"```.*?```", text, re.DOTALL) == re.findall(r"```.*?```", written, re.DOTALL)


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {dpf.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation


def test_no_extra_is_one_that_only_developers_want():
    assert not set(PROJECT["project"]["optional-dependencies"]) & {*PROJECT["dependency-groups"], "dev"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_names_its_actions_by_commit_and_may_do_little(workflow):
    text = workflow.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, rest in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", rest), action
    assert "secrets." not in text
    assert re.search(r"^permissions:( \{\}|\n  contents: read)$", text, re.MULTILINE)
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert set(re.findall(r"(\S+): write", text)) <= {"id-token"}


def test_the_workflows_run_every_part():
    text = "".join(file.read_text(encoding="utf-8") for file in WORKFLOWS)
    dev = (ROOT / "dev.py").read_text(encoding="utf-8")
    parts = re.findall(r'"([\w-]+)"', re.search(r"^PARTS = \((.*)\)$", dev, re.MULTILINE)[1])
    assert set(re.findall(r"--only ([\w-]+)", text)) == set(parts)


def test_a_commit_is_checked_by_the_locked_version_of_ruff():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    locked = (ROOT / "requirements" / "locked.txt").read_text(encoding="utf-8")
    assert set(re.findall(r"ruff==[\d.]+", hooks)) == {re.search(r"^ruff==[\d.]+", locked, re.MULTILINE)[0]}


def test_what_contributors_are_sent_to_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", text))
    assert len(named) > 30
    there = {path for path in named if any((folder / path).exists() for folder in (ROOT, ROOT / "dpframe"))}
    assert {path for path in named - there if not path.startswith(".venvs/")} == set()  # dev.py creates these
