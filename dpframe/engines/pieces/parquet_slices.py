"""Scans of Parquet files in slices of whole row groups: of a slice Polars reads only its own row groups ahead.

A slice of anything but a plain scan would be computed from all that stands before it, and its rows may have no order.
So only a scan of local files with nothing done to it is sliced, and all else is one slice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import polars as pl

VALUE = 8  # bytes of a value once it is decoded, beside those of its pages


def slices(scan: pl.LazyFrame, memory: int) -> Iterator[pl.LazyFrame]:
    """The rows of a LazyFrame as several, each of which takes about `memory` bytes, or one row group, to read.

    The files are looked at again after the last: rows of one that was changed in between could have been read twice.
    """
    paths = _local_files(scan)
    before = _states(paths)
    lengths = _lengths(paths, scan.collect_schema().names(), memory)
    if len(lengths) < 2:
        yield scan
        return
    first = 0
    for length in lengths[:-1]:
        yield scan.slice(first, length)
        first += length
    yield scan.slice(first)
    if _local_files(scan) != paths or _states(paths) != before:
        raise OSError("files changed while they were read")


def _local_files(scan: pl.LazyFrame) -> list[str]:
    """The local Parquet files of a plain scan, in order; none of what is anything else, or cannot be told.

    The one use of the plan that Polars shows to engines beside its own, which it calls unstable.
    """
    try:
        node: Any = scan._ldf.visit().view_current_node()
        options, (kind, *_) = node.file_options, node.scan_type
        plain = kind == "parquet" and node.predicate is None and options.n_rows is None
        paths = [os.fspath(path) for path in node.paths] if plain and options.deletion_files is None else []
    except (Exception, pl.exceptions.PanicException):  # whatever it is that has no such node
        return []
    return paths if all(map(os.path.isfile, paths)) else []


def _states(paths: Sequence[str]) -> list[tuple[int, ...]]:
    """What differs once a file is written to, or another is in its place."""
    states = map(os.stat, paths)
    return [(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns) for state in states]


def _lengths(paths: Sequence[str], names: Sequence[str], memory: int) -> list[int]:
    """The numbers of rows of slices, from the footers of the files; none where one cannot be read."""
    import pyarrow
    from pyarrow import parquet

    wanted = set(names)
    lengths, rows, held = [], 0, 0
    for path in paths:
        try:
            footer = parquet.read_metadata(path)
        except (OSError, pyarrow.ArrowException):  # an encrypted one, or one that Polars alone can read
            return []
        leaves = [footer.schema.column(place).path for place in range(footer.num_columns)]
        places = [place for place, leaf in enumerate(leaves) if not wanted.isdisjoint(_prefixes(leaf))]
        for group in map(footer.row_group, range(footer.num_row_groups)):
            columns = map(group.column, places)
            size = sum(one.total_compressed_size + one.total_uncompressed_size for one in columns)
            size += VALUE * group.num_rows * len(places)
            if rows and held + size > memory:
                lengths.append(rows)
                rows, held = 0, 0
            rows, held = rows + group.num_rows, held + size
    return [*lengths, rows] if rows else lengths


def _prefixes(leaf: str) -> Iterator[str]:
    """What the column of a leaf of the schema may be called: of "a.list.element" it is "a"."""
    return accumulate(leaf.split("."), "{}.{}".format)
