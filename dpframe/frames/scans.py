"""Tables that a job names, opened by an engine: names and dtypes are asked for here, and no row is read.

Text files are read alike by all engines: every field as text, then what is written as the declared type, and anything
else is missing. A string with a byte that is no UTF-8 is missing too: readers put one sign (U+FFFD) in the place of all
such bytes, and two people would have one name. That is so of files that a program wrote, with quotes where they belong:
a quote in the wrong place can still fail, or take the lines after it into one field (``docs/assurance/limits.md``).
"""

from __future__ import annotations

import csv
import glob
import json
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpframe.errors import NOT_PLAIN, InvalidArgument, shown, stands_in_the_way
from dpframe.frames.kinds import check_threads

INTEGER = r"^-?[0-9]{1,18}\z"  # the very end: for Java "$" may stand before a line break, and it reads "6\n" as 6
ID = r"^(0|-?[1-9][0-9]{0,17})\z"  # of a unit, 007 is not taken for 7: two people could have one number
NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\z"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
REPLACED = "\N{REPLACEMENT CHARACTER}"
LONGEST = 2**30  # bytes of a line
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh")  # the first bytes of gzip, Zstandard and bzip2
PATTERN_OF_SPARK = re.compile(r"[][*?{}\\]")  # signs of a pattern in a name
PATTERNS = {"integer": INTEGER, "id": ID, "number": NUMBER, "date": DATE}
TYPES = ("string", "integer", "number", "boolean", "date")
OF_POLARS: Mapping[str, Any] = {"integer": pl.Int64, "id": pl.Int64, "number": pl.Float64, "date": pl.Date}
OF_SQL = {"integer": "bigint", "id": "bigint", "number": "double", "date": "date"}
OF_SPARK = {
    "spark.ui.enabled": "false",  # its pages show numbers of rows
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",  # rows in shuffles
    "spark.sql.runSQLOnFiles": "false",  # SQL could name any file in the place of a table
}
SETTINGS = frozenset(  # of Spark, that a job may say: any other may name a class, a file of code or a command to run
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
CLOSED = {  # a database of a job file: nothing but this one file can be read, and nothing written
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "lock_configuration": "true",
}
GENERATING = ("generate_series", "range", "unnest")  # table functions that read nothing
REACHING = ("CallMethodViaReflection", "ScriptTransformation")  # in Spark's plans: methods of Java, programs
ONE_SELECT = "sql must be one SELECT that {engine} can parse, and nothing else. Write the query alone."


@dataclass(frozen=True)
class Scan:
    """A table by its place: files, or a table or a query of a database."""

    path: str | None = None
    format: str = "parquet"
    # Of text files: a type for each column to read, of `TYPES`, or "id" for integers that tell units apart
    columns: Mapping[str, str] = field(default_factory=dict)
    database: str | None = None
    table: str | None = None
    sql: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # of Spark

    @property
    def is_local(self) -> bool:
        """Tell whether it names files of this machine, and not the address of others."""
        return "://" not in (self.path or "")

    @property
    def named(self) -> list[str]:
        """The local files and folders of its path: "**" is any folders, and "*" no name that begins with a dot."""
        return sorted(glob.glob(self.path or "", recursive=True)) if self.is_local else []

    @property
    def files(self) -> list[str]:
        """The local files to read, each by one name: those that are named, or where only folders are, all in these.

        One file may have several names, as links to it or, on one disk, as hard links: its rows are read once.

        The engines are told of these alone, since each reads a pattern in its own way, and what one of them found
        besides was checked by nobody.
        """
        files = [one for one in self.named if not os.path.isdir(one)] or [
            one for folder in self.named for one in _within(folder)
        ]
        return sorted({_one_of(file): file for file in files}.values())

    @property
    def is_missing(self) -> bool:
        """Tell whether it names local files of which none is there."""
        return self.path is not None and self.is_local and not self.files


def _one_of(file: str) -> object:
    """The mark that all names of one file share: where they lead, or of hard links its number on the disk."""
    try:
        known = os.stat(file)
    except OSError:
        return file
    return (known.st_dev, known.st_ino) if known.st_nlink > 1 else os.path.realpath(file)


def _within(folder: str) -> Iterator[str]:
    """The files in a folder and its folders, but none whose name begins with "." or "_", as programs call their own."""
    for found in glob.iglob(os.path.join(glob.escape(folder), "**"), recursive=True):
        names = os.path.relpath(found, folder).split(os.sep)
        if not os.path.isdir(found) and not any(name.startswith("_") for name in names):
            yield found


def _polars(scan: Scan, files: list[str]) -> Any:
    source: Any = files or scan.path
    if scan.format == "parquet":
        if files:
            source = _alike(files)
        frame = pl.scan_parquet(source, hive_partitioning=False, glob=not files)  # it would read p=01 and p=1 as one
    else:
        _names_of_texts(scan, files)
        texts = pl.scan_csv(
            source, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy", glob=not files
        )
        frame = texts.select(_read_by_polars(name, kind).alias(name) for name, kind in scan.columns.items())
    frame.collect_schema()
    return frame


def _alike(files: list[str]) -> list[str]:
    """The Parquet files that are not empty; others are refused where Polars would fail as it reads them."""
    files = [file for file in files if os.path.getsize(file)]
    schemas = [pl.read_parquet_schema(file) for file in files]
    for found in schemas[1:]:
        for name in (*schemas[0], *found):
            if found.get(name) not in (schemas[0].get(name), pl.Null()):  # a column of nulls is cast
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

    if scan.path is None:
        return _of_database(scan)
    connection = duckdb.connect()
    source: Any = [glob.escape(file) for file in files] or scan.path
    if scan.format == "parquet":
        relation = connection.read_parquet(source, hive_partitioning=False)
        _check_types(connection, source)
    else:
        names = _names_of_texts(scan, files) or []
        texts = connection.read_csv(
            source,
            header=True,
            auto_detect=False,
            delimiter=",",
            quotechar='"',
            escapechar='"',
            null_padding=True,
            strict_mode=False,
            ignore_errors=True,  # a line that it cannot read is left out
            max_line_size=LONGEST,
            parallel=False,  # a field may hold a line break
            columns={f"c{place}": "VARCHAR" for place in range(len(names))},  # which it reads by their places
        )
        places = {name: f"c{names.index(name)}" for name in scan.columns}
        relation = texts.project(
            ", ".join(_read_by_sql(name, kind, DUCKDB, places[name]) for name, kind in scan.columns.items())
        )
    _ = relation.columns
    return _with_connection(relation, connection)


def _with_connection(relation: Any, connection: Any) -> Any:
    """A relation that keeps its connection: that of DuckDB 1.1 to 1.4 does not, and cannot be read without it."""
    weakref.finalize(relation, id, connection)  # which is held until the relation is gone, and then let go
    return relation


def _of_database(scan: Scan) -> Any:
    """A table or a query of a database in a file: DuckDB itself is closed to all other files, and to extensions."""
    import duckdb

    closed = dict(CLOSED)
    if tuple(map(int, duckdb.__version__.split(".")[:2])) >= (1, 1):  # before, no external access closed this too
        closed["python_enable_replacements"] = "false"  # variables of Python in the place of tables
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
        connection.close()  # the file is free at once, and not when the error is forgotten
        if not isinstance(error, duckdb.PermissionException):
            raise
        raise InvalidArgument(
            f"{'table' if scan.sql is None else 'sql'} must read database alone, and this one asks for another file or "
            "an extension. Write what it reads into a table of the database."
        ) from None
    return _with_connection(relation, connection)


def _check_select(connection: Any, sql: str) -> None:
    """Refuse what is not one SELECT, as DuckDB parses it, and table functions: some read files all the same."""
    ((text,),) = connection.execute("select json_serialize_sql(?::varchar)", [sql]).fetchall()
    statements = json.loads(text).get("statements", [])  # none where one of them is no SELECT
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
    """Refuse Parquet files whose columns have other types than in the first: DuckDB would cast them, 1.5 to 2."""
    types: dict[str, Any] = {}
    first: list[str] = []
    files = source
    if isinstance(source, str):  # an address
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

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of executors on this machine, which has dpframe
    builder: Any = SparkSession.builder.appName("dpframe")
    for name, value in {**scan.settings, **OF_SPARK}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    reader = session.read.option("recursiveFileLookup", "true")  # or names of folders (p=1) would become columns
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
            options["enforceSchema"] = False  # Spark compares the first lines itself, where it reads them
        texts = reader.options(**options).csv(source)
        frame = texts.selectExpr(*(_read_by_sql(name, kind, SPARK) for name, kind in scan.columns.items()))
    _ = frame.schema
    return frame


def _merged(reader: Any, source: list[str]) -> Any:
    """Parquet files by all of their footers: by those of one file Spark would read 65537 of another as 1."""
    try:
        frame = reader.option("mergeSchema", "true").parquet(*source)
        _ = frame.schema  # which Spark Connect asks for now
    except Exception as error:
        if "CANNOT_MERGE" not in str(error):
            raise
        raise InvalidArgument(
            "path must be of files with the same types, and a column has another type in one. Cast it where the files "
            "are written."
        ) from None
    return frame


def _query_of_spark(session: Any, sql: str) -> Any:
    """A query as a frame; it is parsed first, since Spark runs any other statement at once."""
    from pyspark.errors import ParseException

    inner = getattr(session, "_jsparkSession", None)
    if inner is None:
        raise InvalidArgument(
            "sql must be left out on Spark Connect, which runs what it parses. Make a view of the query there, and "
            "write its name as table."
        )
    parser = inner.sessionState().sqlParser()
    try:
        parser.parseQuery(sql)  # by the rule of queries alone, which may end before the text does
        parser.parsePlan(sql)  # to the end
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
    """The names of the classes of an analyzed plan's nodes, and of all that is in its expressions."""
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


@dataclass(frozen=True)
class Dialect:
    """The difference between two engines' SQL: how a column is quoted, and how a pattern is asked for."""

    quote: str
    matches: str

    def column(self, name: str) -> str:
        """The name of a column, quoted."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote


DUCKDB = Dialect('"', "regexp_matches({column}, '{pattern}')")
SPARK = Dialect("`", "{column} rlike r'{pattern}'")


def _read_by_sql(name: str, kind: str, dialect: Dialect, place: str | None = None) -> str:
    """A column as its type; `place` is what it is called in the table of texts, where that is not its name."""
    column, known_as = dialect.column(place or name), dialect.column(name)
    if kind == "string":
        return f"case when {column} <> '' and {column} not like '%{REPLACED}%' then {column} end as {known_as}"
    if kind == "boolean":
        return f"case {column} when 'true' then true when 'false' then false end as {known_as}"
    clear = dialect.matches.format(column=column, pattern=PATTERNS[kind])
    return f"case when {clear} then try_cast({column} as {OF_SQL[kind]}) end as {known_as}"


def _names_of_texts(scan: Scan, files: list[str]) -> list[str] | None:
    """The names in the first lines of local text files; None of what is elsewhere or packed.

    They must be the same in all files, and those that are read must stand there once: engines read later files by the
    places of the first one's columns, and of two columns of one name the first. Another column would name the units.
    """
    if not files or any(map(_is_packed, files)):
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
    with open(path, "rb") as file:
        return file.read(4).startswith(PACKED)


def _header(path: str) -> list[str]:
    """The names in the first line of a text file: the schema, and no row.

    Engines look for them in later lines where the first is empty, or ends within quotes: these would not be compared.
    """
    with open(path, "rb") as file:
        line = file.readline().decode("utf-8-sig", errors="replace")  # and nothing of the rows is decoded
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
    """Tell whether Spark calls columns as the first line does: it renames those without a name, or with one again."""
    return names is None or (all(names) and len({name.lower() for name in names}) == len(names))


ENGINES: Mapping[str, Callable[[Scan, list[str]], Any]] = {"polars": _polars, "duckdb": _duckdb, "spark": _spark}


def opened(engine: str, scan: Scan) -> Any:
    """The table as a frame of this engine, which has looked at names and dtypes alone."""
    check_threads()
    files = scan.files
    if scan.path is not None and scan.is_local and not files:
        raise FileNotFoundError(scan.path)
    for file in files:
        if stands_in_the_way(file):  # engines wait for a pipe, and read a device for ever
            raise InvalidArgument(f"path must be of plain files, and {shown(os.path.basename(file))} {NOT_PLAIN}.")
    if scan.database is not None and stands_in_the_way(scan.database):
        name = shown(os.path.basename(scan.database))
        raise InvalidArgument(f"database must be a plain file, and {name} {NOT_PLAIN}.")
    return ENGINES[engine](scan, files)
