"""200 random tables an engine, a question or two each, equal to Polars in memory bit for bit; 10,000 are a script."""

from __future__ import annotations

import pytest

from assurance.engines import ENGINES
from dpframe.testing import check_engine

NEEDS = {"pandas": "pandas", "duckdb": "duckdb", "dask": "dask.dataframe"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "spark"])  # of which each question is a job
@pytest.mark.parametrize("seed", range(4))
def test_random_tables_have_the_integers_of_polars_in_memory(seed, name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with ENGINES[name]() as make:
        check_engine(make, tables=50, seed=seed, every=53)
