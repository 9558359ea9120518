"""Every engine equals Polars in memory on 200 random tables, bit for bit; `assurance.engines` asks 10,000."""

from __future__ import annotations

import pytest

from assurance.engines import ENGINES
from dpframe.testing import check_engine

NEEDS = {"pandas": "pandas", "duckdb": "duckdb", "dask": "dask.dataframe"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "spark"])  # each question of Spark is a slow job
@pytest.mark.parametrize("seed", range(4))
def test_random_tables_have_the_integers_of_polars_in_memory(seed, name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with ENGINES[name]() as make:
        check_engine(make, tables=50, seed=seed, every=53)
