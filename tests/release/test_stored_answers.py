"""Answers that 0.1 and 0.2 stored are replayed, bit for bit and at no cost, for every verb, statistic and option.

These versions wrote the files themselves (`tests/data/answers.py`, `tests/data/answers_0_1.py`). A replay reads no row,
so an empty frame with the same columns has the same answers.
"""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import dpframe as dpf
from tests.data import answers, answers_0_1

DATA = Path(__file__).parents[1] / "data"
CALLS, FIRST = (json.loads((DATA / version / "answers.json").read_text(encoding="utf-8")) for version in ("0.2", "0.1"))
EMPTY, EMPTY_FIRST = answers.people().clear(), pl.DataFrame(answers_0_1.COLUMNS).clear()


def opened(version, names, folder):
    """Return the ledgers by name, opened from copies that may be written."""
    for name in names:
        for ending in ("", ".head"):
            shutil.copy(DATA / version / f"{name}.ledger{ending}", folder)
    return {name: dpf.Ledger.open(folder / f"{name}.ledger") for name in names}


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    return opened("0.2", answers.LEDGERS, tmp_path_factory.mktemp("ledgers"))


@pytest.fixture(scope="module")
def first_ledgers(tmp_path_factory):
    return opened("0.1", answers_0_1.LEDGERS, tmp_path_factory.mktemp("first"))


def check_another_question(said, frame, ledger, answered):
    """In 0.1 and 0.2, ecdf put values beyond the edges into the end bins: another question now; its answer is kept."""
    spent, entries = ledger.spent, len(ledger.to_frame())
    with pytest.raises(dpf.LedgerError, match="name another release of this ledger: keys differs"):
        answered(said["call"], frame, ledger)
    assert (ledger.spent, len(ledger.to_frame())) == (spent, entries)


def check_units_of_rows(said, frame, ledger, answered):
    """Since 0.3, n_units is refused if each row is a unit; the answers that 0.2 stored are kept."""
    spent, entries = ledger.spent, len(ledger.to_frame())
    with pytest.raises(dpf.InvalidArgument, match="unit must have a column for n_units"):
        answered(said["call"], frame, ledger)
    assert (ledger.spent, len(ledger.to_frame())) == (spent, entries)


@pytest.mark.parametrize("said", CALLS, ids=[said["label"] for said in CALLS])
def test_an_answer_of_0_2_is_replayed(said, ledgers):
    if "pd." in said["call"]:
        pytest.importorskip("pandas")
    ledger = ledgers[said["ledger"]]
    if "ecdf(" in said["call"]:
        return check_another_question(said, EMPTY, ledger, answers.answered)
    of_rows = ledger.unit.column is None and "n_units(" in said["call"]
    if of_rows and "discover(" not in said["call"]:
        return check_units_of_rows(said, EMPTY, ledger, answers.answered)
    spent, entries = ledger.spent, len(ledger.to_frame())
    again = answers.answered(said["call"], EMPTY, ledger)
    assert again == {"columns": said["columns"], "record": said["record"]}
    assert (ledger.spent, len(ledger.to_frame())) == (spent, entries)


@pytest.mark.parametrize("said", FIRST, ids=[said["label"] for said in FIRST])
def test_an_answer_of_0_1_is_replayed(said, first_ledgers):
    ledger = first_ledgers[said["ledger"]]
    if "ecdf(" in said["call"]:
        return check_another_question(said, EMPTY_FIRST, ledger, answers_0_1.answered)
    spent, entries = ledger.spent, len(ledger.to_frame())
    again = answers_0_1.answered(answers_0_1.today(said["call"]), EMPTY_FIRST, ledger)
    assert again == {"columns": said["columns"], "record": said["record"]}
    assert (ledger.spent, len(ledger.to_frame())) == (spent, entries)


def test_every_verb_and_statistic_has_a_stored_answer():
    """This holds for 0.2; `suggest`, `randomize` and joint releases are never stored."""
    trees = [ast.parse(said["call"]) for said in CALLS]
    named = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    options = {node.arg for tree in trees for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    verbs = {
        *("count", "n_units", "sum", "mean", "variance", "std", "proportion", "median", "quantile", "ecdf", "ratio"),
        *("n_distinct", "mode", "top_k", "covariance", "correlation", "marginals", "histogram", "agg", "contributions"),
        *("group_by", "dates", "bins", "discover"),
    }
    assert verbs <= named
    assert options >= {
        *("unit_bounds", "missing", "ddof", "value", "q", "step", "candidates", "k", "counts", "categories", "degree"),
        *("objective", "bins", "range", "outside", "normalize", "ranges", "keys", "rollup", "cube", "order", "graph"),
        *("epsilon", "delta", "share", "within", "confidence", "size", "weights", "mechanism", "unit", "max_rows"),
        *("max_groups", "max_cells", "denoise", "keep_noisy", "at_least", "max_keys", "known", "nulls"),
    }
