"""The tables of docs/reference/engines.md: the verbs that engines answer or refuse, and the dtypes that they check."""

from __future__ import annotations

import engine_tables
import pytest

PAGE = engine_tables.PAGE.read_text(encoding="utf-8")
ANEW = "write it anew: python -m tests.engine_tables"
NEEDS = {"pandas": "pandas", "DuckDB": "duckdb", "Dask": "dask.dataframe"}


@pytest.mark.slow
@pytest.mark.parametrize("name", engine_tables.ENGINES)
def test_the_page_tells_which_verbs_an_engine_answers(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    answered = engine_tables.verbs(engine_tables.ENGINES[name])
    assert engine_tables.verbs_on_the_page(name, answered) == answered, ANEW


def test_the_page_tells_which_dtypes_engines_take():
    for module in ("pyspark", *NEEDS.values()):
        pytest.importorskip(module)
    assert engine_tables.written(PAGE, "dtypes") == engine_tables.dtypes(), ANEW
