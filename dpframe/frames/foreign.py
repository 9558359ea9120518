"""Checks of records from files that anybody may have written, with one typed error.

They check the form, not the truth: the author of a file also writes its record. ``docs/provenance.schema.json`` defines
the form, of which a release of an earlier version has a part. Unknown fields are left alone. All checks run before any
number of the record is used.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from itertools import repeat
from os import PathLike
from typing import Any, BinaryIO

from dpframe.errors import DpframeError, NoPlainFile, NoProvenance, how_many, plain, shown
from dpframe.privacy import PrivacyUnit

DERIVED = "dpframe.derived/1"  # schema of results computed from releases
PARTS = "dpframe.parts/1"  # schema of a frame that joins several releases
UNREADABLE = "is no Parquet file that can be read. Name one that .dp.write_parquet wrote."
LARGEST = 2**26  # bytes of a record, or of the description of a file's columns: 64 MiB
LARGEST_TABLE = 2**28  # bytes of a table in memory, or MOST_UNPACKED times the size of its file
MOST_UNPACKED = 1_000
MOST_COLUMNS = 10_000  # columns of a file; each takes a millisecond
BOUNDED = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4")  # compressions that expand no byte to many thousands of bytes
LARGEST_WHOLE = 2**63  # maximum number of cells, rows or entries
SCHEMAS = re.compile(r"dpframe\.provenance/[0-9]{1,4}")
KNOWN = ("dpframe.provenance/1", "dpframe.provenance/2")
SURROGATE = re.compile("[\ud800-\udfff]")  # code points that no text file can hold
SHA256 = re.compile("[0-9a-f]{64}")
RELEASE = re.compile("[0-9a-f]{32}")  # 16 random bytes, drawn at the charge
ENDS = ("_left", "_right")  # the ends of a bin
CLIPPED_OF_0_1 = ("sum", "mean")  # statistics of clipped values in dpframe 0.1, whose records name only the verb
BIN_KINDS = ("number", "date", "datetime", "duration")

Form = Callable[[Any], bool]


def table_of(path: str | PathLike[str], name: str) -> tuple[Any, dict[str, Any], str]:
    """Return the Arrow table of a Parquet file, the record under `name` in its metadata, and its library."""
    import pyarrow
    import pyarrow.parquet

    where = f"the file {str(path)!r}"
    try:
        with open(path, "rb", opener=plain) as stream:
            size = _checked_footer(stream, where)
            file = pyarrow.parquet.ParquetFile(stream)
            record = _checked_record(file, name, where)
            table = _unpacked(stream, file, max(LARGEST_TABLE, MOST_UNPACKED * size), where)
            writer = (
                "pandas" if b"pandas" in (file.schema_arrow.metadata or {}) else "polars"
            )  # pandas leaves this entry
            return table, record, writer
    except (NoPlainFile, pyarrow.ArrowException, UnicodeError, MemoryError, OverflowError):
        raise NoProvenance(f"{where} {UNREADABLE}") from None
    except OSError as error:
        if error.errno is not None:  # the file does not exist, or may not be read
            raise
        raise NoProvenance(f"{where} {UNREADABLE}") from None


def _checked_footer(stream: BinaryIO, where: str) -> int:
    """Return the size of a file, unread; refuse one whose description of the columns is too large."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - 8, 0))
    end = stream.read(8)
    described = int.from_bytes(end[:4], "little")
    if end[4:] == b"PAR1" and described > LARGEST:
        raise NoProvenance(f"{where} has a description of {described} bytes, and none has more than {LARGEST}.")
    stream.seek(0)
    return size


def _checked_record(file: Any, name: str, where: str) -> dict[str, Any]:
    """Return the record of a file that agrees with the file's own description; read no value."""
    if len(file.schema) > MOST_COLUMNS:
        raise NoProvenance(f"{where} has {len(file.schema)} columns, and no release has more than {MOST_COLUMNS}.")
    schema, metadata = file.schema_arrow, file.schema_arrow.metadata or {}
    if len(set(schema.names)) != len(schema.names):
        raise NoProvenance(f"{where} has two columns of one name, which no release has.")
    if name.encode() not in metadata:
        raise NoProvenance(f"{where} carries no provenance: it was not written by .dp.write_parquet.")
    record = parsed(metadata[name.encode()], where)
    for field in schema:
        if not is_released(field.type):
            raise NoProvenance(f"{where} has a column of type {str(field.type)[:60]}, which no release has.")
    _check_packing(file, where)
    parts, rows = record["parts"] if record["schema"] == PARTS else [record], file.metadata.num_rows
    if not any(map(is_reports, parts)) and rows != (expected := sum(map(rows_of, parts))):
        raise NoProvenance(
            f"{where} has {how_many(rows, 'row')}, and its provenance is of {expected}. Ask its author for another."
        )
    return record


def _check_packing(file: Any, where: str) -> None:
    """Refuse pages of which a few bytes may unpack to 2 GiB, whatever the description of the file says.

    The reader turns texts into a list of distinct texts, which is safe for every encoding that it accepts for texts.
    Other values must have a fixed length, or each could repeat a long one before it.
    """
    for place, field in enumerate(file.schema_arrow):
        if file.schema.column(place).physical_type == "BYTE_ARRAY" and not _is_text(_inner(field.type)):
            raise NoProvenance(f"{where} has a column of type {str(field.type)[:60]} that is stored as bytes.")
    groups = file.metadata
    for number in range(groups.num_row_groups):
        group = groups.row_group(number)
        for place in range(group.num_columns):
            if (packing := group.column(place).compression) not in BOUNDED:
                raise NoProvenance(
                    f"{where} is packed by {shown(packing)}, in which little may unpack to much. Pack it by SNAPPY."
                )


def _inner(kind: Any) -> Any:
    """Return the type of the values of a dictionary, or the type itself."""
    return getattr(kind, "value_type", kind)


def _unpacked(stream: BinaryIO, file: Any, most: int, where: str) -> Any:
    """Return the table of a file; refuse more than `most` bytes, as few bytes can stand for many equal values.

    Texts are read as indices into a list of distinct texts, so their length is known before they are written out.
    """
    import pyarrow
    import pyarrow.parquet
    from pyarrow import compute

    fields, groups = [*file.schema_arrow.remove_metadata()], file.metadata
    texts = [field.name for field in fields if _is_text(field.type)]
    kinds = [pyarrow.large_string() if field.name in texts else field.type for field in fields]
    size = max(
        groups.num_rows * sum(map(_width, kinds)) // 8,
        sum(groups.row_group(number).total_byte_size for number in range(groups.num_row_groups)),
    )
    stream.seek(0)
    columns: list[list[Any]] = [[] for _ in fields]
    for batch in pyarrow.parquet.ParquetFile(stream, read_dictionary=texts).iter_batches():
        if size > most:
            break
        for column, kind, values in zip(columns, kinds, batch.columns, strict=True):
            if pyarrow.types.is_dictionary(values.type) and not pyarrow.types.is_dictionary(kind):
                lengths = compute.binary_length(values.dictionary).cast("int64")
                size += compute.sum(lengths.take(values.indices)).as_py() or 0
            if size <= most:
                column.append(values.cast(kind))
    if size > most:
        raise NoProvenance(f"{where} would take more than {most} bytes of memory, too many for a release of its size.")
    arrays = [pyarrow.chunked_array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pyarrow.Table.from_arrays(arrays, names=[field.name for field in fields])


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _width(kind: Any) -> int:
    """Return the bits of one value, without the characters of texts."""
    return 64 if _is_text(kind) else int(getattr(kind, "index_type", kind).bit_width) if str(kind) != "null" else 0


def is_released(kind: Any) -> bool:
    """Return whether a released column may have this Arrow type: a number, text, or a kind of time."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return bool(types.is_integer(kind.index_type) and is_released(kind.value_type))
    tests = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_string,
        types.is_large_string,
        types.is_date,
        types.is_timestamp,
        types.is_duration,
        types.is_time,
        types.is_decimal128,
        types.is_null,
    )
    return (any(test(kind) for test in tests) and not types.is_float16(kind)) or str(kind) == "string_view"


def parsed(text: bytes, where: str) -> dict[str, Any]:
    """Return the record in a file's metadata; `where` names the file in errors."""
    if len(text) > LARGEST:
        raise NoProvenance(f"{where} carries a provenance of {len(text)} bytes, and none has more than {LARGEST}.")
    try:
        record = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError; the text itself may hold anything
        raise NoProvenance(f"{where} carries a provenance that is no JSON which dpframe could have written.") from None
    problem = problem_of(record)
    if problem:
        raise NoProvenance(f"{where} carries a provenance that cannot be used: {problem}.")
    return dict(record)


def problem_of(record: Any) -> str:
    """Return the fault in the form of a record; "" if there is none."""
    if not isinstance(record, dict):
        return "it must be an object"
    schema = record.get("schema")
    if schema == PARTS:
        return _problem_of_parts(record.get("parts")) or _problem_of_names(record)
    if schema == DERIVED:
        return _problem_of_derived(record)
    if not isinstance(schema, str) or not SCHEMAS.fullmatch(schema):
        return "its schema must be dpframe.provenance/ and a number"
    if schema not in KNOWN:
        return f"its schema is {schema}, which this version of dpframe does not know. Read it with a newer one"
    for name, (form, needed) in FIELDS.items():
        if name in record and not form(record[name]):
            return f"its field {name} must be as docs/reference/provenance.md says"
        if needed and name not in record:
            return f"its field {name} is missing"
    return _contradiction(record)


def _problem_of_parts(parts: Any) -> str:
    """Return the first fault among the records of joined releases."""
    if not isinstance(parts, list) or not parts:
        return "its parts must be a list of records"
    if any(isinstance(part, dict) and part.get("schema") == PARTS for part in parts):
        return "its parts must be records of releases"
    return next(filter(None, map(problem_of, parts)), "")


def _problem_of_names(record: Mapping[str, Any]) -> str:
    """Return the fault in the names of joined releases, or in the column that holds them."""
    if "names" not in record and "column" not in record:
        return ""
    names = record.get("names")
    fits = _names(names) and isinstance(names, list) and len(names) == len(record["parts"])
    return "" if fits and _text(record.get("column")) else "its names must be one for each part, in a column"


def _problem_of_derived(record: Mapping[str, Any]) -> str:
    """Return the fault in the form of a record of a result computed from releases."""
    if released := sorted((record.keys() & FIELDS.keys()) - DERIVED_FIELDS.keys() - {"schema"}):
        return f"its field {released[0]} must be of a release, and the record is of a computed result"
    for name, (form, needed) in DERIVED_FIELDS.items():
        if (name in record and not form(record[name])) or (needed and name not in record):
            return f"its field {name} must be as docs/reference/provenance.md says"
    columns = record["columns"]
    for name, said in record["measures"].items():
        ends = said.get("ends", (name + "_low", name + "_high"))
        if name not in columns or not (name + "_error" in columns or {*ends} <= {*columns}):
            return f"its measure {shown(name)} must be among its columns, with its interval"
    return _problem_of_cells(record)


def _contradiction(record: Mapping[str, Any]) -> str:
    """Return the contradiction between fields that are each of the right form; "" if there is none."""
    levels = record.get("levels") or [None]
    count, cells = len(record["statistics"]), math.prod(axis["size"] for axis in record["cells"])
    if (problem := _of_the_model(record) or _problem_of_counts(record)) or ("model" not in record and not count):
        return problem or "its statistics must be at least one"
    for name, statistic in record["measures"].items():
        indexes = statistic["statistics"]
        each = len(indexes) // len(levels)
        uneven = each * len(levels) != len(indexes) or (each != 1 and is_one_total(statistic))
        if uneven or not each or any(index >= count for index in indexes):
            return f"its measure {shown(name)} must name its statistics"
        by_choice = statistic.get("by") == "choice"  # a choice measures no number
        if not by_choice and any("variance" not in record["statistics"][index] for index in indexes):
            return f"its measure {shown(name)} must be of a statistic that has a variance"
        if any(len(step.get("estimated_rmse_of_levels", levels)) != len(levels) for step in statistic["denoise"] or ()):
            return f"its measure {shown(name)} must have an estimate for each level"
        if (
            "one_total" not in statistic
            and statistic["verb"] in CLIPPED_OF_0_1
            and not {"bounds", "unit_bounds"} & {*statistic}
        ):
            return f"its measure {shown(name)} must have bounds"
        if "deviations" in statistic and len(statistic["deviations"]) != len(levels):
            return f"its measure {shown(name)} must have a deviation for each level"
        if len(statistic.get("bounds_of_groups", range(cells))) != cells:
            return f"its measure {shown(name)} must have bounds for each group"
        if problem := _problem_of_totals(record, name, statistic):
            return problem
        if any(name + end not in record["columns"] for end in ("", "_error")):
            return f"its measure {shown(name)} must be among its columns"
    return _problem_of_cells(record)


def _problem_of_cells(record: Mapping[str, Any]) -> str:
    """Return the fault in the labels, levels or unit, which records of both kinds have."""
    labels = labels_of(record)
    if record.get("rows") is not None and record["rows"]["labels"] != labels:
        return "its labels must be those of its cells"
    if any(not set(level["columns"]) <= set(labels) for level in record.get("levels") or ()):
        return "its levels must be of the columns of its cells"
    try:
        PrivacyUnit.of_facts(record["unit"])
    except (TypeError, KeyError, DpframeError):
        return "its unit must be one that can be protected"
    return ""


def _problem_of_counts(record: Mapping[str, Any]) -> str:
    """Return the fault in the counts of a top-k, which are those of its first statistic."""
    known = record["statistics"] and "variance" in record["statistics"][0]
    asked = record.get("top", {}).get("counts")
    return "its counts must be of a statistic that has a variance" if asked and not known else ""


def _problem_of_totals(record: Mapping[str, Any], name: str, statistic: Mapping[str, Any]) -> str:
    """Return the fault in the noisy totals of a statistic, or of its squares."""
    squares, count = statistic.get("squares", []), len(record["statistics"])
    if any(index >= count or "variance" not in record["statistics"][index] for index in squares):
        return f"its measure {shown(name)} must have squares of a statistic that has a variance"
    for kind, owners in (("totals", statistic["statistics"]), ("square_totals", squares)):
        if kind in statistic and not _fits_cells(record, statistic[kind], len(owners)):
            return f"its measure {shown(name)} must have totals for each statistic and cell"
    return ""


def _fits_cells(record: Mapping[str, Any], totals: list[list[float]], statistics: int) -> bool:
    """Return whether each statistic has the same number of noisy totals for every cell of its level."""
    levels = [level["rows"] for level in record["levels"]] if "levels" in record else [math.prod(shape(record))]
    if len(totals) != statistics or statistics % len(levels):
        return False
    sizes = [(len(values), levels[number * len(levels) // statistics]) for number, values in enumerate(totals)]
    return all(size % cells == 0 and size >= cells if cells else not size for size, cells in sizes)


def is_one_total(statistic: Mapping[str, Any]) -> bool:
    """Return whether each value of a statistic is one noisy total; for dpframe 0.1, its verb decides."""
    return bool(statistic.get("one_total", statistic["verb"] != "mean"))


def is_around_noisy(statistic: Mapping[str, Any]) -> bool:
    """Return whether the interval of each cell lies around its unbiased noisy value, which may be 0."""
    return is_one_total(statistic) or is_for_sums(statistic) or "deviations" in statistic


def is_for_sums(statistic: Mapping[str, Any]) -> bool:
    """Return whether the cells are bins for range queries."""
    return "sums" in statistic or "looks" in statistic


def _of_the_model(record: Mapping[str, Any]) -> str:
    """Return the fault in a record of the local model: reports need one column, and estimates a statistic."""
    if "model" not in record:
        return ""
    if "method" not in record or "per_report" not in record:
        return "its model must come with a method and the epsilon of a report"
    if is_reports(record):
        return "its reports must be one column" if record["cells"] or len(record["columns"]) != 1 else ""
    return "" if record["statistics"] else "its statistics must be at least one"


def is_reports(record: Mapping[str, Any]) -> bool:
    """Return whether a record is of randomized reports: of the local model, and without measures."""
    return "model" in record and not record["measures"]


def shape(record: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of the cells, as declared; with subtotals, one axis for the rows of all levels."""
    if (seen := getattr(record.get("view"), "shape", None)) is not None:  # a `changes.View`, which no file holds
        return tuple(seen)
    if "levels" in record:
        return (sum(level["rows"] for level in record["levels"]),)
    return tuple(axis["size"] for axis in record["cells"])


def rows_of(record: Mapping[str, Any]) -> int:
    """Return the number of rows that were released, or are shown of these; no record of reports holds it."""
    cells = record.get("shown", {}).get("cells")
    if cells is not None:
        return len(cells[0].split())
    if "top" in record:
        return int(record["top"]["k"])
    if "suggested" in record:
        return int(record["suggested"]["rows"])
    if not record["measures"]:
        return 1
    return math.prod(shape(record))


def labels_of(record: Mapping[str, Any]) -> list[str]:
    """Return the columns that name the rows: keys, the two ends of bins, and texts."""
    axes = [(axis["columns"], ENDS if "bins" in axis else ("",)) for axis in record["cells"]]
    return [name + end for names, ends in axes for name in names for end in ends] + list(record.get("texts", ()))


def _refused(word: str) -> Any:
    raise ValueError(word)  # NaN and infinities are not JSON


def _text(value: Any) -> bool:
    return isinstance(value, str) and (value.isascii() or SURROGATE.search(value) is None)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_WHOLE


def _some(value: Any) -> bool:
    return _whole(value) and value > 0


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= LARGEST_WHOLE if isinstance(value, int) else math.isfinite(value)


def _numbers(value: Any) -> bool:
    if isinstance(value, list) and {*map(type, value)} == {float}:  # long lists, checked for each answer
        return all(map(math.isfinite, value))
    return _list(_number)(value)


def _positive(value: Any) -> bool:
    return _number(value) and value >= 0


def _above(value: Any) -> bool:
    return _positive(value) and value > 0


def _share(value: Any) -> bool:
    return _positive(value) and value <= 1


def _below_1(value: Any) -> bool:
    return _above(value) and value < 1


def _none_or(form: Form) -> Form:
    return lambda value: value is None or form(value)


def _one_of(*words: str) -> Form:
    return lambda value: isinstance(value, str) and value in words


def _like(pattern: re.Pattern[str]) -> Form:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _list(form: Form, least: int = 0) -> Form:
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(form, value))


def _names(value: Any) -> bool:
    return _list(_text)(value) and len(set(value)) == len(value)


def _by_name(form: Form) -> Form:
    return lambda value: isinstance(value, dict) and all(map(_text, value)) and all(map(form, value.values()))


def _object(needed: Mapping[str, Form], more: Mapping[str, Form] | None = None) -> Form:
    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or not all(map(value.__contains__, needed)):
            return False
        return all(form(value[name]) for name, form in {**needed, **(more or {})}.items() if name in value)

    return fits


def _discovered(value: Any) -> bool:
    needed = {"delta": _positive, "max_keys": _some, "at_least": _some, "known": _whole, "nulls": _flag}
    return _object(needed, {"largest": _some})(value)


def _axis(value: Any) -> bool:
    bins = {"bins": _one_of(*BIN_KINDS), "outside": _text, "first": _edge, "last": _edge}
    parts = bins if isinstance(value, dict) and "bins" in value else {}
    size = _whole if isinstance(value, dict) and "discovered" in value else _some
    more = {"keys": _list(_text), "discovered": _discovered, "every": _text, "first": _edge, "last": _edge}
    more |= {"rest": _text, "zone": _text, "starts": _one_of("monday", "sunday"), "holds": _one_of("date", "datetime")}
    form = _object({"columns": _names, "size": size, **parts}, more)
    if not form(value) or len(value.get("keys", value["columns"])) != len(value["columns"]):
        return False
    return len(value["columns"]) >= 1 and ("bins" not in value or len(value["columns"]) == 1)


def _edge(value: Any) -> bool:
    return _number(value) or _text(value)


def _pair(value: Any) -> bool:
    return _list(_number)(value) and len(value) == 2


STEP = _object(
    {"name": _text},
    {
        "chose": _text,
        "edges": _whole,
        "estimated_rmse": _positive,
        "estimated_rmse_of_levels": _list(_positive, 2),
        "cell_rmse": _object({"least": _positive, "ratio": _positive, "codes": _text}),
        "noise_dominates": _flag,
    },
)
MEASURE = _object(
    {
        "verb": _text,
        "column": _none_or(_text),
        "statistics": _list(_whole, 1),
        "denoise": _none_or(_list(STEP)),
    },
    {
        "bounds": _pair,
        "unit_bounds": _pair,
        "one_total": _flag,
        "counts": _one_of("values", "units"),
        "ddof": _whole,
        "value": _text,
        "value_sha256": _like(SHA256),
        "q": _positive,
        "size": _some,
        "missing": _text,
        "where": _text,
        "where_sha256": _like(SHA256),
        "weight": _text,
        "weight_bounds": _pair,
        "denominator": _text,
        "denominator_bounds": _pair,
        "degree": _some,
        "objective": _one_of("equal", "cells"),
        "deviations": _list(_above, 2),
        "sums": _object({"bin": _above, "first": _above, "any": _above}),
        "looks": _some,
        "columns": _list(_text, 2),
        "bounds_of_columns": _list(_pair, 2),
        "bounds_of_groups": _list(_pair, 1),
        "totals": _list(_numbers, 1),
        "squares": _list(_whole, 1),
        "square_totals": _list(_numbers, 1),
    },
)
STATISTIC_FORM = _object(
    {"measures": _text, "noise": _text, "scale": _positive, "grid": _positive, "sensitivity": _positive},
    {"share": _positive, "p": _positive, "variance": _positive, "options": _whole, "chosen": _some, "output": _pair},
)


def _statistic(value: Any) -> bool:
    """Return whether a value is a statistic; noise of a known shape needs a positive scale for its privacy loss."""
    return STATISTIC_FORM(value) and ("p" not in value or value["scale"] > 0)


UNIT = _object(
    {
        "column": lambda value: value is None or _text(value) or (_names(value) and len(value) > 1),
        "max_rows": _none_or(_some),
        "max_groups": _none_or(_some),
        "neighbors": _one_of("add-remove", "replace"),
        "nulls": _one_of("drop", "one-unit"),
    }
)
COST = _object({"epsilon": _positive, "delta": _positive, "accounting": _text})
LEDGER = _object(
    {"dataset": _none_or(_text), "entry": _some, "head": _like(SHA256)},
    {"snapshot": _none_or(_text), "version": _none_or(_text)},  # version: the name of a snapshot in records of 0.1
)
LEVEL = _object({"columns": _names, "rows": _some})
GROUPS = _object({"columns": _names, "size": _none_or(_some)})
ROWS = _object({"labels": _names, "sha256": _like(SHA256), "order": _none_or(_text)})
ROUNDED = _object({"steps": _by_name(_above), "sha256": _like(SHA256), "rows": _none_or(_like(SHA256))})
WITHIN = _object({"error": _by_name(_positive), "confidence": _below_1, "size": _none_or(_some)})


def _numbers_of(value: Any) -> bool:
    """Return whether a value is a released statistic and the index of its list of cells."""
    return isinstance(value, list) and len(value) == 2 and _text(value[0]) and _whole(value[1])


SHOWN = _object(
    {
        "steps": _list(_object({"verb": _text})),
        "labels": _by_name(_text),
        "measures": _by_name(_numbers_of),
        "texts": _names,
        "cells": _none_or(_list(_text, 1)),
        "rows": ROWS,
    },
    {"rounded": _by_name(_above), "order": _none_or(_like(SHA256))},
)
SUGGESTED = _object(
    {
        "columns": _list(_text, 1),
        "statistic": _one_of("mean", "sum"),
        "planned": _by_name(lambda value: _number(value) or _text(value)),
        "whole": _flag,
        "rows": _some,
    }
)
FOUND = _object({"seen": _list(_list(_none_or(_text), 2), 1)}, {"problem": _text})
TOP = _object({"k": _some, "counts": _flag, "by": _text, "why": _text})
CHOSEN = _object({"mechanism": _text, "why": _text, "variances": _by_name(_positive)})

CHECK = _object(
    {
        "of": _none_or(_text),
        "what": _one_of("below", "above", "present", "outside", "cut", "units"),
        **dict.fromkeys(("share", "share_low", "share_high"), _none_or(_share)),
        "count": _number,
        "count_error": _positive,
    },
    {"measures": _names, "bounds": lambda value: value is None or (_list(_edge)(value) and len(value) == 2)},
)


def _check(value: Any) -> bool:
    """Return whether a value is a check: its share lies in an interval, unless it is a number to which shares refer."""
    if not CHECK(value):
        return False
    low, high = value["share_low"], value["share_high"]
    if low is None or high is None:
        return low is high and value["what"] in ("present", "units")
    return bool(low <= high)


NEEDED = {
    "dpframe": _text,
    "label": _none_or(_text),
    "verb": _text,
    "unit": UNIT,
    "cost": COST,
    "cells": _list(_axis),
    "measures": _by_name(MEASURE),
    "statistics": _list(_statistic),
    "notes": _list(_text),
    "confidence": _below_1,
    "columns": _names,
    "sha256": _like(SHA256),
}
POSSIBLE = {
    "keep_noisy": _flag,
    "raw": _flag,  # its name in records of dpframe 0.1
    "rows": _none_or(ROWS),
    "levels": _list(LEVEL, 2),
    "groups": GROUPS,
    "ledger": LEDGER,
    "rounded": ROUNDED,
    "within": WITHIN,
    "chosen": CHOSEN,
    "top": TOP,
    "suggested": SUGGESTED,
    "found": FOUND,
    "shown": SHOWN,
    "model": _one_of("local"),
    "method": _object({"method": _text}),
    "per_report": _positive,
    "warning": _text,
    "checks": _list(_check),
    "population": _flag,
    "stream": _object({"time": _text, "periods": _some, "bits": _whole}),
    "period": _object({"name": _text, "number": _some, "since": _some}, {"lost": _list(_some, 1)}),
    "release": _like(RELEASE),
    "part": _whole,
}
FIELDS: dict[str, tuple[Form, bool]] = {
    **dict(zip(NEEDED, zip(NEEDED.values(), repeat(True)), strict=True)),
    **dict(zip(POSSIBLE, zip(POSSIBLE.values(), repeat(False)), strict=True)),
}

ORIGIN = _object(
    {"name": _text, "label": _none_or(_text), "sha256": _like(SHA256), "unit": UNIT, "cost": COST},
    {"release": _like(RELEASE), "part": _whole, "ledger": LEDGER},
)
ENDS_OF_SIDES = _list(_list(_none_or(_number)), 2)
SIDES = _object(
    {"names": _list(_text, 2), "values": ENDS_OF_SIDES, "low": ENDS_OF_SIDES, "high": ENDS_OF_SIDES},
    {"statistics": _by_name(_text)},
)
OF_DERIVED = _object(
    {"verb": _text, "column": _none_or(_text), "statistics": _list(_whole), "denoise": _none_or(_list(STEP))},
    {"ends": _list(_text, 2), "tests": _some, "words": _text, "sides": SIDES},
)
DERIVED_FIELDS: dict[str, tuple[Form, bool]] = {
    **{name: (NEEDED[name], True) for name in ("dpframe", "label", "verb", "unit", "cost", "cells", "notes")},
    **{name: (NEEDED[name], True) for name in ("confidence", "columns", "sha256")},
    "kind": (_one_of("combine", "compare", "changed"), True),
    "expression": (_text, True),
    "of": (_list(ORIGIN, 1), True),
    "measures": (_by_name(OF_DERIVED), True),
    "statistics": (_list(_statistic), True),
    "covers": (_text, True),
    "texts": (_list(_text), True),
    "rows": (ROWS, True),
    **{name: (POSSIBLE[name], False) for name in ("levels", "shown")},
    "warning": (_text, False),
}
