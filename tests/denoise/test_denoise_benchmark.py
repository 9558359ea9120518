"""A part of `benchmarks/denoise.py`: `auto` does no harm on made-up histograms of many shapes."""

from __future__ import annotations

import pytest

from benchmarks import denoise as benchmark
from benchmarks.denoise_cases import made_up, published

pytestmark = pytest.mark.slow

CASES = [case for case in made_up() if case.truth.size == 40]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_auto_does_no_harm_whatever_the_shape(case):
    settings = [one for one in benchmark.settings([case]) if one[1] == 0.1]
    for _, _, _, law in settings:
        found = benchmark.errors_of(case, law, ["auto"], range(12))
        assert found["auto"] <= 1.02


def test_the_tables_and_the_summary():
    case = next(one for one in made_up() if one.name == "sparse, 40")
    names = ["james-stein", "soft-threshold", "auto"]
    rows = [benchmark.measured(*one, names, repeats=1, drawn=40) for one in benchmark.settings([case])]
    assert len(rows) == 6
    assert benchmark.summed_up(rows)["cases"] == 6
    lines = benchmark.table(rows, names, "setting").splitlines()
    assert len(lines) == 9
    assert lines[-1].startswith("| all |")


def test_without_the_data_there_are_no_published_histograms(tmp_path):
    assert list(published(tmp_path)) == []
