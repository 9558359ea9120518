"""The engine must not talk: with some settings Polars and DuckDB print how many rows and groups there are."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from dpframe.errors import InvalidArgument, shown
from dpframe.frames.kinds import is_relation

TALKS = (  # what makes Polars print, warn or write files by what is in the rows
    "POLARS_VERBOSE",
    "POLARS_VERBOSE_SENSITIVE",
    "POLARS_LOG_METRICS",
    "POLARS_TRACK_METRICS",
    "POLARS_OOC_LOG_METRICS",
    "POLARS_PARQUET_METRICS",
    "POLARS_LOG_CONCURRENCY",
    "POLARS_OUTPUT_COLUMN_PREDS",
    "POLARS_OUTPUT_SKIP_BATCH_PRED",
    "POLARS_VISUALIZE_IR",
    "POLARS_VISUALIZE_PHYSICAL_PLAN",
    "POLARS_WARN_UNSTABLE",  # the streaming engine, which large frames take, warned in some versions
    "POLARS_PANIC_ON_ERR",
    "POLARS_BACKTRACE_IN_ERR",
)
SILENT = ("", "0", "false")


def check_quiet(frame: Any = None) -> None:
    """Refuse to go on where Polars, or DuckDB for a relation of its own, is set to talk, before anything is charged.

    They are not silenced here: settings are the process's or the connection's, and another thread may be at work.
    """
    if is_relation(frame):
        _check_profiling(frame)
    for name in TALKS:
        value = os.environ.get(name, "")
        if value.lower() not in SILENT:
            raise InvalidArgument(
                f"{name} must be unset while dpframe works, not {shown(value)}: with it Polars tells how many rows "
                f"there are. Write os.environ.pop({name!r})."
            )
    reload = getattr(pl.Config, "reload_env_vars", None)
    if reload is not None:  # newer versions remember how they were set
        reload()


def _check_profiling(relation: Any) -> None:
    """Refuse a connection that prints or writes the profile of each query: rows of every step, to the last one."""
    nothing = relation.limit(0).aggregate("count(*) as n")
    ((value,),) = nothing.project("current_setting('enable_profiling') as profile").fetchall()
    if value not in (None, "", "no_output"):
        raise InvalidArgument(
            f"enable_profiling must be off while dpframe works, not {shown(value)}: with it DuckDB tells how many rows "
            "there are. Execute 'pragma disable_profiling' on the connection."
        )
