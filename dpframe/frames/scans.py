"""Tables that a job names, opened by an engine. Only names and dtypes are read here, no row.

All engines read text files alike: each field as text, then the text as the declared type. A field that does not fit the
type is missing. A string with bytes that are not UTF-8 is missing too: readers replace all such bytes by one sign
(U+FFFD), and two people could share a name. This holds for files that a program wrote, with quotes in the right places.
A misplaced quote can still fail, or merge the next lines into one field (``docs/assurance/limits.md``). Polars reads
these files in place of DuckDB too, which ends rows at carriage returns that have no quotes.
"""

from __future__ import annotations

import csv
import glob
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpframe.errors import NOT_PLAIN, InvalidArgument, shown, stands_in_the_way
from dpframe.frames.kinds import check_duckdb, check_threads

INTEGER = r"^-?[0-9]{1,18}\z"  # \z is the very end: in Java "$" also matches before a line break, so "6\n" would be 6
ID = r"^(0|-?[1-9][0-9]{0,17})\z"  # of a unit: 007 is not 7, or two people could share one number
NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\z"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
REPLACED = "\N{REPLACEMENT CHARACTER}"
GZIP = b"\x1f\x8b"  # the first bytes of such a file
PACKED_OTHERWISE = (b"\x28\xb5\x2f\xfd", b"BZh", b"x\x01", b"x\x9c", b"x\xda")  # by Zstandard, bzip2 and zlib
PACKED_NAMES = (".bz2", ".deflate", ".lz4", ".snappy", ".zst", ".zstd")  # by which Spark would unpack a file
PATTERN_OF_SPARK = re.compile(r"[][*?{}\\]")  # characters that form a pattern in a file name
PATTERNS = {"integer": INTEGER, "id": ID, "number": NUMBER, "date": DATE}
TYPES = ("string", "integer", "number", "boolean", "date")
OF_POLARS: Mapping[str, Any] = {"integer": pl.Int64, "id": pl.Int64, "number": pl.Float64, "date": pl.Date}
OF_SQL = {"integer": "bigint", "id": "bigint", "number": "double", "date": "date"}
OF_SPARK = {
    "spark.ui.enabled": "false",  # its pages show numbers of rows
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",  # encrypts rows in shuffle files
    "spark.sql.runSQLOnFiles": "false",  # otherwise SQL could read any file as a table
}
SETTINGS = frozenset(  # Spark settings that a job may set; any other could name a class, a code file or a command
    {
        *("spark.master", "spark.remote", "spark.app.name", "spark.cores.max", "spark.default.parallelism"),
        *(f"spark.driver.{name}" for name in ("cores", "memory", "memoryOverhead", "maxResultSize")),
        *(f"spark.executor.{name}" for name in ("cores", "instances", "memory", "memoryOverhead")),
        *(f"spark.dynamicAllocation.{name}" for name in ("enabled", "minExecutors", "maxExecutors")),
        *(f"spark.memory.{name}" for name in ("fraction", "offHeap.enabled", "offHeap.size")),
        *(f"spark.sql.{name}" for name in ("adaptive.enabled", "session.timeZone", "shuffle.partitions")),
        *(f"spark.sql.{name}" for name in ("catalogImplementation", "files.maxPartitionBytes", "warehouse.dir")),
        *(f"spark.hadoop.fs.s3a.{name}.key" for name in ("access", "secret")),
        *(f"spark.hadoop.fs.s3a.{name}" for name in ("session.token", "endpoint", "endpoint.region")),
        "spark.hadoop.fs.s3a.path.style.access",
    }
)
CLOSED = {  # settings for the database of a job file: DuckDB reads this file alone and writes nothing
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "lock_configuration": "true",
}
GENERATING = ("generate_series", "range", "unnest")  # table functions that read nothing
REACHING = ("CallMethodViaReflection", "ScriptTransformation")  # nodes of Spark plans that call Java or programs
ONE_SELECT = "sql must be one SELECT that {engine} can parse, and nothing else. Write the query alone."


@dataclass(frozen=True)
class Scan:
    """Location of a table: files, or a table or a query of a database."""

    path: str | None = None
    format: str = "parquet"
    # Text files only: the type of each column to read, from `TYPES`, or "id" for integers that identify units
    columns: Mapping[str, str] = field(default_factory=dict)
    database: str | None = None
    table: str | None = None
    sql: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # settings of Spark

    @property
    def is_local(self) -> bool:
        """True if the path names files of this machine, not a remote address."""
        return "://" not in (self.path or "")

    @property
    def named(self) -> list[str]:
        """Local files and folders that match the path: "**" matches any folders, "*" no name with a leading dot."""
        return sorted(glob.glob(self.path or "", recursive=True)) if self.is_local else []

    @property
    def files(self) -> list[str]:
        """Local files to read: those that the path names, or if it names only folders, all files in them.

        A file with several names, through links or hard links on one disk, appears once, so its rows are read once.

        Engines get this list, not the pattern: each engine expands a pattern in its own way, and a file that it alone
        finds would not have been checked.
        """
        files = [one for one in self.named if not os.path.isdir(one)] or [
            one for folder in self.named for one in _within(folder)
        ]
        return sorted({_one_of(file): file for file in files}.values())

    @property
    def is_missing(self) -> bool:
        """True if the path names local files and none of them exists."""
        return self.path is not None and self.is_local and not self.files


def _one_of(file: str) -> object:
    """Return the identity that all names of a file share: its real path, or for hard links its disk and inode."""
    try:
        known = os.stat(file)
    except OSError:
        return file
    return (known.st_dev, known.st_ino) if known.st_nlink > 1 else os.path.realpath(file)


def _within(folder: str) -> Iterator[str]:
    """Yield the files in a folder and its subfolders, except internal ones, whose name begins with "." or "_"."""
    for found in glob.iglob(os.path.join(glob.escape(folder), "**"), recursive=True):
        names = os.path.relpath(found, folder).split(os.sep)
        if not os.path.isdir(found) and not any(name.startswith("_") for name in names):
            yield found


def _polars(scan: Scan, files: list[str]) -> Any:
    source: Any = files or scan.path
    if scan.format == "parquet":
        if files:
            source = _alike(files)
        frame = pl.scan_parquet(source, hive_partitioning=False, glob=not files)  # hive would merge p=01 and p=1
    else:
        _names_of_texts(scan, files)
        texts = pl.scan_csv(
            source, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy", glob=not files
        )
        frame = texts.select(_read_by_polars(name, kind).alias(name) for name, kind in scan.columns.items())
    frame.collect_schema()
    return frame


def _alike(files: list[str]) -> list[str]:
    """Return the Parquet files that are not empty; refuse differing types, on which Polars would fail later."""
    named, files = files, [file for file in files if os.path.getsize(file)]
    if named and not files:  # without a file, Spark would expand the path by itself, and read others
        raise InvalidArgument(
            "path must name a Parquet file that is not empty, and all have 0 bytes. Check what writes them."
        )
    schemas = [pl.read_parquet_schema(file) for file in files]
    for found in schemas[1:]:
        for name in (*schemas[0], *found):
            first, its_type = schemas[0].get(name), found.get(name)
            if first is None or its_type not in (first, pl.Null()):  # a column of nulls is cast, if it is in the first
                raise InvalidArgument(
                    f"path must be of files with the same types, and column {shown(name)} has another type in one, or "
                    "is not there. Cast it where the files are written."
                )
    return files


def _read_by_polars(name: str, kind: str) -> pl.Expr:
    text = pl.col(name)
    if kind == "string":
        return pl.when((text != "") & ~text.str.contains(REPLACED, literal=True)).then(text)
    if kind == "boolean":
        return pl.when(text == "true").then(True).when(text == "false").then(False)
    clear = pl.when(text.str.contains(PATTERNS[kind])).then(text)
    if kind == "date":
        return clear.str.to_date("%Y-%m-%d", strict=False)
    return clear.cast(OF_POLARS[kind], strict=False)


def _duckdb(scan: Scan, files: list[str]) -> Any:
    import duckdb

    check_duckdb()
    if scan.path is None:
        return _of_database(scan)
    if scan.format == "csv":
        return _polars(scan, files)  # DuckDB would take a text of one person, "a\r7,3", for a row of person 7
    connection = duckdb.connect()
    source: Any = [glob.escape(file) for file in files] or scan.path
    relation = connection.read_parquet(source, hive_partitioning=False)
    _check_types(connection, source)
    _ = relation.columns
    return relation


def _of_database(scan: Scan) -> Any:
    """Open a table or query of a database file; DuckDB can reach no other file and no extension."""
    import duckdb

    closed = dict(CLOSED)
    closed["python_enable_replacements"] = "false"  # Python variables in place of tables
    assert scan.database is not None
    connection = duckdb.connect(scan.database, read_only=True, config=dict(closed))
    try:
        if scan.sql is None:
            relation = connection.table(scan.table or "")
        else:
            _check_select(connection, scan.sql)
            relation = connection.sql(scan.sql)
        _ = relation.columns
    except BaseException as error:
        connection.close()  # frees the file at once, not when the error is garbage-collected
        if not isinstance(error, duckdb.PermissionException):
            raise
        raise InvalidArgument(
            f"{'table' if scan.sql is None else 'sql'} must read database alone, and this one asks for another file or "
            "an extension. Write what it reads into a table of the database."
        ) from None
    return relation


def _check_select(connection: Any, sql: str) -> None:
    """Refuse all but one SELECT, as DuckDB parses it, and refuse table functions: some still read files."""
    ((text,),) = connection.execute("select json_serialize_sql(?::varchar)", [sql]).fetchall()
    statements = json.loads(text).get("statements", [])  # empty if any statement is not a SELECT
    if len(statements) != 1:
        raise InvalidArgument(ONE_SELECT.format(engine="DuckDB"))
    left: list[Any] = [statements]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if node.get("type") == "SHOW_REF":
                raise InvalidArgument(ONE_SELECT.format(engine="DuckDB"))
            if node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"].lower() not in GENERATING:
                raise InvalidArgument(
                    f"sql must call no table function but {', '.join(GENERATING)}, not "
                    f"{shown(node['function']['function_name'])}. Write what it gives into a table of the database."
                )
        left += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _check_types(connection: Any, source: list[str] | str) -> None:
    """Refuse Parquet files whose column types differ from the first file: DuckDB would cast, such as 1.5 to 2."""
    types: dict[str, Any] = {}
    first: list[str] = []
    files = source
    if isinstance(source, str):  # a remote address
        files = [file for (file,) in connection.execute("select file from glob(?)", [source]).fetchall()]
    for file in files:
        found = connection.read_parquet(file, hive_partitioning=False)
        first = first or found.columns
        for name in sorted(set(first) - set(found.columns)):
            raise InvalidArgument(
                f"path must be of files with the same types, and column {shown(name)} is not in one of them. Write it "
                "there too."
            )
        for name, its_type in zip(found.columns, found.types, strict=True):
            if types.setdefault(name, its_type) != its_type:
                raise InvalidArgument(
                    f"path must be of files with the same types, and column {shown(name)} is {types[name]} in one and "
                    f"{its_type} in another. Cast it where the files are written."
                )


def _spark(scan: Scan, files: list[str]) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # local executors run the Python that has dpframe
    builder: Any = SparkSession.builder.appName("dpframe")
    for name, value in {**scan.settings, **OF_SPARK}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    reader = session.read.option("recursiveFileLookup", "true")  # otherwise folder names (p=1) would become columns
    if scan.format == "parquet":
        files = _alike(files)
    source = [PATTERN_OF_SPARK.sub(r"\\\g<0>", file) for file in files] or [scan.path or ""]
    if scan.sql is not None:
        frame = _query_of_spark(session, scan.sql.strip().rstrip(";"))
    elif scan.table is not None:
        frame = session.table(scan.table)
    elif scan.format == "parquet":
        frame = _merged(reader, source)
    else:
        options: dict[str, Any] = {"header": True, "quote": '"', "escape": '"', "multiLine": True, "emptyValue": ""}
        if _stay(_names_of_texts(scan, files)):
            options["enforceSchema"] = False  # Spark compares the first lines itself when it reads them
        texts = reader.options(**options).csv(source)
        frame = texts.selectExpr(*(_read_by_spark(name, kind) for name, kind in scan.columns.items()))
    _ = frame.schema
    return frame


def _merged(reader: Any, source: list[str]) -> Any:
    """Read Parquet files by all of their footers: by one footer alone, Spark could read 65537 as 1."""
    try:
        frame = reader.option("mergeSchema", "true").parquet(*source)
        _ = frame.schema  # Spark Connect requests the schema here
    except Exception as error:
        if "CANNOT_MERGE" not in str(error):
            raise
        raise InvalidArgument(
            "path must be of files with the same types, and a column has another type in one. Cast it where the files "
            "are written."
        ) from None
    return frame


def _query_of_spark(session: Any, sql: str) -> Any:
    """Return a query as a frame; parse it first, since Spark runs any other statement at once."""
    from pyspark.errors import ParseException

    inner = getattr(session, "_jsparkSession", None)
    if inner is None:
        raise InvalidArgument(
            "sql must be left out on Spark Connect, which runs what it parses. Make a view of the query there, and "
            "write its name as table."
        )
    parser = inner.sessionState().sqlParser()
    try:
        parser.parseQuery(sql)  # accepts queries only, but may stop before the end of the text
        parser.parsePlan(sql)  # parses to the end of the text
    except ParseException:
        raise InvalidArgument(ONE_SELECT.format(engine="Spark")) from None
    frame = session.sql(sql)
    for name in _nodes(session, frame._jdf.queryExecution().analyzed()):
        if name.removesuffix("$") in REACHING:
            raise InvalidArgument(
                "sql must run nothing but SQL, and this one calls a method of Java or a program. Leave it out."
            )
    return frame


def _nodes(session: Any, plan: Any) -> Iterator[str]:
    """Yield the class names of the nodes of an analyzed plan, with those inside its expressions."""
    from py4j.java_gateway import is_instance_of

    gateway, catalyst = session.sparkContext._gateway, "org.apache.spark.sql.catalyst"
    left = [plan]
    while left:
        node = left.pop()
        yield node.getClass().getSimpleName()
        parts = [node.children()]
        if is_instance_of(gateway, node, f"{catalyst}.plans.QueryPlan"):
            parts += [node.expressions(), node.innerChildren()]
        elif is_instance_of(gateway, node, f"{catalyst}.expressions.PlanExpression"):
            left.append(node.plan())
        for part in parts:
            inner = part.iterator()
            while inner.hasNext():
                left.append(inner.next())


def _read_by_spark(name: str, kind: str) -> str:
    column = "`" + name.replace("`", "``") + "`"
    if kind == "string":
        return f"case when {column} <> '' and {column} not like '%{REPLACED}%' then {column} end as {column}"
    if kind == "boolean":
        return f"case {column} when 'true' then true when 'false' then false end as {column}"
    clear = f"{column} rlike r'{PATTERNS[kind]}'"
    return f"case when {clear} then try_cast({column} as {OF_SQL[kind]}) end as {column}"


def _names_of_texts(scan: Scan, files: list[str]) -> list[str] | None:
    """Return the names in the first line of local text files; None for remote files.

    All files must have the same names, and each column to read must appear once. Engines read later files by the column
    positions of the first, and take the first of two columns with one name: another column could name the units.
    """
    if not files:
        return None
    first, *others = files
    names = _header(first)
    for other in others:
        if _header(other) != names:
            raise InvalidArgument(
                f"path must be of files with the same first line, and that of {shown(os.path.basename(other))} is not "
                f"that of {shown(os.path.basename(first))}. Write their columns in one order, or Parquet files."
            )
    again = [name for name in scan.columns if names.count(name) > 1]
    if again:
        raise InvalidArgument(
            f"columns must stand in the first line of a file once, and {shown(again[0])} stands there more often. "
            "Rename it there."
        )
    return names


def _is_packed(path: str) -> bool:
    return path.lower().endswith(".gz")


def _first_line(path: str) -> bytes:
    """Return the first line of a text file, unpacked; refuse compression that not all engines recognize.

    Polars recognizes it by the first bytes of a file, Spark by the name.
    """
    with open(path, "rb") as file:
        start = file.read(4)
    otherwise = start.startswith(PACKED_OTHERWISE) or path.lower().endswith(PACKED_NAMES)
    if otherwise or start.startswith(GZIP) != _is_packed(path):
        raise InvalidArgument(
            "path must be of plain CSV files, or of gzip files whose names end in .gz, and "
            f"{shown(os.path.basename(path))} is neither. Unpack it, or write Parquet files."
        )
    with gzip.open(path) if _is_packed(path) else open(path, "rb") as file:
        return file.readline()


def _header(path: str) -> list[str]:
    """Return the names in the first line of a text file: the schema, and no row.

    Refuse a first line that is empty or ends within quotes: engines then look for names in later lines.
    """
    line = _first_line(path).decode("utf-8-sig", errors="replace")  # decodes no byte of the rows
    try:
        names = next(csv.reader([line], strict=True), [])
    except csv.Error:
        names = []
    if not names:
        raise InvalidArgument(
            "path must be of files with all names of columns in the first line. In "
            f"{shown(os.path.basename(path))} it is empty, or has a stray quote or line break. Rename them there."
        )
    return names


def _stay(names: list[str] | None) -> bool:
    """Return whether Spark keeps the names of the first line: it renames empty and repeated names."""
    return names is None or (all(names) and len({name.lower() for name in names}) == len(names))


ENGINES: Mapping[str, Callable[[Scan, list[str]], Any]] = {"polars": _polars, "duckdb": _duckdb, "spark": _spark}


def opened(engine: str, scan: Scan) -> Any:
    """Return the table as a frame of this engine, which reads names and dtypes alone."""
    check_threads()
    files = scan.files
    if scan.path is not None and scan.is_local and not files:
        raise FileNotFoundError(scan.path)
    for file in files:
        if stands_in_the_way(file):  # engines wait on a pipe, and read a device forever
            raise InvalidArgument(f"path must be of plain files, and {shown(os.path.basename(file))} {NOT_PLAIN}.")
    if scan.database is not None and stands_in_the_way(scan.database):
        name = shown(os.path.basename(scan.database))
        raise InvalidArgument(f"database must be a plain file, and {name} {NOT_PLAIN}.")
    return ENGINES[engine](scan, files)
