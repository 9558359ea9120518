"""The engine must not talk: with some settings Polars prints how many rows and groups there are."""

from __future__ import annotations

import os

import polars as pl

from dpframe.errors import InvalidArgument, shown

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


def check_quiet() -> None:
    """Refuse to go on where Polars is set to talk, before anything is charged.

    It is not silenced here: its settings are the process's, and another thread may be at work with them.
    """
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
