"""The accessor ``.dp`` next to another library's accessor of the same name."""

from __future__ import annotations

import subprocess
import sys

import pytest

OTHERS = """
import warnings
import polars as pl

@pl.api.register_dataframe_namespace("dp")
class Other:
    def __init__(self, frame):
        pass

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import dpframe
    from dpframe.accessor import accessor
    from dpframe.frames.register import register
    register(accessor)  # a second time: its own
print([str(warning.message) for warning in caught if warning.category is UserWarning])
"""


def test_an_accessor_of_another_library_is_replaced_with_a_warning():
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, check=True, timeout=120)
    words = "dpframe replaces the accessor .dp that another library gave polars.dataframe.frame frames."
    assert done.stdout.strip() == str([words])


def test_a_column_says_where_to_ask():
    pandas = pytest.importorskip("pandas")
    column = pandas.DataFrame({"age": [31]})["age"]
    with pytest.raises(AttributeError, match=r"a frame, not of one of its columns. Write .* df\.dp\.mean\(\"age\""):
        _ = column.dp
    assert not hasattr(column, "dp")
    assert pandas.Series([7], index=["dp"]).dp == 7  # a label named dp
