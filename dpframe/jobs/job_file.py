"""A job file, read and checked as a whole, without opening a table or a ledger.

A verb takes the same arguments in a job file as in Python, by the same names.
"""

from __future__ import annotations

import glob
import hashlib
import inspect
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fnmatch import fnmatch
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpframe import _names, files
from dpframe.accessor.private_frame import PrivateFrame
from dpframe.accessor.released_frame import VERBS as OF_FRAMES
from dpframe.errors import (
    DpframeError,
    InvalidArgument,
    InvalidType,
    MissingArgument,
    closest,
    harmless,
    plain,
    reworded,
    shown,
)
from dpframe.frames.scans import ENGINES, SETTINGS, TYPES, Scan
from dpframe.jobs.job import Job, LedgerTerms, Output, Question, Report, Table, Variables, placed, said_of, words_of
from dpframe.jobs.job import plain as plain_value
from dpframe.jobs.output_formats import ENDINGS, FORMATS
from dpframe.ledger import spending
from dpframe.ledger.address import Address
from dpframe.privacy import PrivacyUnit, checked_unit
from dpframe.queries import statistics
from dpframe.queries.date_grid import dates
from dpframe.queries.discovery import discover
from dpframe.queries.keys import bins
from dpframe.queries.limits import checked_checks

VERBS = tuple(sorted({*OF_FRAMES} - {"group_by", "preview", "local"}))
ELSEWHERE = ("self", "ledger", "unit", "graph", "memory", "progress")  # given by other tables, or not plain values
OWN = ("verb", "label", "snapshot", "group_by", "keys")
EXACT = ("epsilon", "delta")  # taken as the written decimals
STATISTICS = {  # the functions for `agg`: the public ones of queries.statistics
    name: one
    for name, one in vars(_names).items()
    if inspect.isfunction(one) and one.__module__.startswith(f"{statistics.__name__}.")
}


def question_of(table: Table, snapshot: str | None) -> Question:
    """Return a release of a job file; `snapshot` is that of the whole job."""
    label = table.text("label", 'label = "wards"')
    named = Table(f"{table.where} {label!r}", table.values)
    if named.values.get("verb") == "stream":
        raise InvalidArgument(
            f"{named.where}: verb must be that of one result, not 'stream'. Release streams in Python, with dpf.Stream."
        )
    verb = named.choice("verb", VERBS, named.text("verb", 'verb = "count"'))
    assert verb is not None
    takes = (*parameters_of(getattr(PrivateFrame, verb)), *(["columns"] if _open(verb) == "columns" else []))
    named.check_keys({*OWN, *takes, *(["statistics"] if _open(verb) == "statistics" else [])})
    snapshot = named.maybe_text("snapshot") or snapshot
    if snapshot is None:
        raise MissingArgument(
            f"{named.where}: snapshot must be given, here or above all tables: the name of the state of the data. "
            'Write for instance snapshot = "2026-W47".'
        )
    keys = None if "keys" not in named.values else _keys(named, named.values["keys"])
    by = _group_by(named)
    arguments = {name: _argument(named, name, named.values[name]) for name in takes if name in named.values}
    if "keys" in takes and keys is not None:
        arguments["keys"] = keys
    elif keys is not None and not by:
        raise InvalidArgument(f"{named.where}: keys must come with group_by, the columns that they are of.")
    arguments |= {"label": label, "snapshot": snapshot}
    return Question(named.where, label, verb, by, keys, _statistics(named, verb), arguments)


def parameters_of(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments that a function takes from a job file."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = inspect.signature(function).parameters.values()
    return tuple(one.name for one in given if one.kind in kinds and one.name not in ELSEWHERE)


def asked(question: Question, dp: Any, ledger: Any) -> Any:
    """Return the answer of a private frame to a question, or the plan if `dp` is a preview."""
    with placed(question.where):
        of_groups = dp.group_by(*question.group_by, keys=question.keys) if question.group_by else dp
        verb = getattr(of_groups, question.verb)
        named = dict(question.arguments)
        several = [question.statistics] if question.statistics else []
        if _open(question.verb) == "columns":
            columns = named.pop("columns", [])
            several = columns if isinstance(columns, list) else [columns]
        return verb(*several, **named, ledger=ledger)


def _open(verb: str) -> str | None:
    """Return the name of a verb's arguments of any number, statistics or columns; None for most verbs."""
    given = inspect.signature(getattr(PrivateFrame, verb)).parameters.values()
    return next((one.name for one in given if one.kind is inspect.Parameter.VAR_POSITIONAL), None)


def _argument(table: Table, name: str, value: Any) -> Any:
    if name == "share":
        return _share(table, value)
    if name in EXACT:
        if isinstance(value, list):
            raise InvalidType(f"{table.where}: {name} must be one number; a job has one cost. Keep one of them.")
        return value
    if name == "denoise" and value == "none":
        return None
    if name == "bounds" and isinstance(value, dict):
        return {column: tuple(plain_value(pair)) if isinstance(pair, list) else pair for column, pair in value.items()}
    if name in ("bounds", "unit_bounds", "weight_bounds") and isinstance(value, list):
        return tuple(plain_value(value))
    if name == "where" and isinstance(value, dict):
        return {column: _condition(table, column, one) for column, one in value.items()}
    if name == "categories" and isinstance(value, dict):
        return _keys(table, value)
    return plain_value(value)


def _condition(table: Table, column: str, value: Any) -> Any:
    """Return a value, a list of values, or a range from ``{low = 18, high = 65}``, whose ends are optional."""
    if isinstance(value, dict) and value and "missing" not in value:
        Table(f"{table.where}, where {column!r}", value).check_keys({"low", "high"})
        return plain_value(value.get("low")), plain_value(value.get("high"))
    return plain_value(value)


def _share(table: Table, value: Any) -> Any:
    """Return a share of the ledger: a number or a fraction; a Decimal leaves a large exponent unexpanded."""
    if not isinstance(value, str):
        return value
    try:
        return Fraction(value) if "/" in value else Decimal(value)
    except (ValueError, ArithmeticError):
        raise InvalidArgument(
            f"{table.where}: share must be a number or a fraction, not {shown(value)}. Write for instance "
            'share = "1/52".'
        ) from None


def _group_by(table: Table) -> tuple[Any, ...]:
    value = table.values.get("group_by", [])
    columns = value if isinstance(value, list) else [value]
    return tuple(_binned(table, one) if isinstance(one, dict) else one for one in columns)


def _binned(table: Table, value: Mapping[str, Any]) -> Any:
    """Return bins among the columns of a group-by: ``{column = "age", bins = [0, 18, 65, 120]}``."""
    inner = Table(f"{table.where}, group_by", value)
    return _called(inner, bins)


def _keys(table: Table, value: Any) -> Any:
    """Return the keys of columns: a list, a table of lists, a grid of dates, or unknown groups to find."""
    if not isinstance(value, dict):
        return plain_value(value)
    if "every" in value:
        return _called(Table(f"{table.where}, keys", value), dates)
    if set(value) == {"discover"} and isinstance(value["discover"], dict):
        return _called(Table(f"{table.where}, keys", value["discover"]), discover)
    return {column: _keys(table, values) for column, values in value.items()}


def _statistics(table: Table, verb: str) -> dict[str, Any]:
    """Return the statistics of an ``agg`` by the names of their columns."""
    if _open(verb) != "statistics":
        return {}
    given = table.values.get("statistics")
    if not isinstance(given, dict) or not given or not all(isinstance(one, dict) for one in given.values()):
        raise MissingArgument(
            f"{table.where}: statistics must be given: a table for each column of the result. Write for instance "
            'statistics.stays = {statistic = "count"}.'
        )
    return {name: _statistic(Table(f"{table.where}, statistics.{name}", one)) for name, one in given.items()}


def _statistic(table: Table) -> Any:
    name = table.choice("statistic", STATISTICS, table.text("statistic", 'statistic = "mean"'))
    assert name is not None
    rest = {key: one for key, one in table.values.items() if key != "statistic"}
    return _called(Table(table.where, rest), STATISTICS[name])


def _called(table: Table, function: Any) -> Any:
    """Call a function of dpframe with the values of a table."""
    takes = parameters_of(function)
    table.check_keys(takes)
    given = inspect.signature(function).parameters
    missing = [name for name in takes if name not in table.values and given[name].default is inspect.Parameter.empty]
    if missing:
        raise MissingArgument(f"{table.where}: {missing[0]} must be given.")
    with placed(table.where):
        return function(**{name: _argument(table, name, one) for name, one in table.values.items()})


TOP = ("engine", "snapshot", "audit", "checks", "source", "ledger", "release", "output", "report")
OF_SOURCE = ("path", "format", "columns", "database", "table", "sql", "settings")
OF_LEDGER = (
    "path", "url", "dataset", "unit", "each_row", "neighbors", "nulls", "epsilon", "delta", "accounting", "keys_delta",
    "head",
)  # fmt: skip
OF_OUTPUT = ("release", "path", "format")
OF_REPORT = ("path", "title", "releases", "text", "labels", "order")
TERMS = ("epsilon", "delta", "accounting", "keys_delta", "dataset")
ENGINES_OF_TABLES = {"table": ("duckdb", "spark"), "sql": ("duckdb", "spark"), "database": ("duckdb",)}


def read(file: str | Path, said: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Job:
    """Return the job that a file describes; `said` are texts ``NAME=VALUE`` for its variables.

    Raises
    ------
    InvalidArgument, InvalidType, MissingArgument
        If it cannot be read, or anything in it breaks a rule; the message names the file, the table and the key.
    """
    path = Path(file)
    name = harmless(path.name)
    try:
        with open(path, "rb", opener=plain) as opened:
            text = opened.read()
    except OSError as error:
        raise InvalidArgument(
            f"JOB must be a file that can be read, not {shown(str(file))} ({error.strerror})."
        ) from None
    variables = Variables(said_of(said), os.environ if environment is None else environment, name)
    try:
        parsed = tomllib.loads(text.decode("utf-8"), parse_float=Decimal)  # 0.1 stays exactly a tenth
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, or deeply nested lists
        raise InvalidArgument(f"{name}: a job must be a TOML file, and this one cannot be read: {error}.") from None
    try:
        return _job(Table(name, variables.filled(parsed)), path, text, variables)
    except RecursionError:
        raise InvalidArgument(f"{name}: tables must not lie in so many others. Write them as the rules say.") from None
    except DpframeError as error:
        raise reworded(error, words_of(error, variables)) from None


def _job(top: Table, path: Path, text: bytes, variables: Variables) -> Job:
    variables.check_used()
    top.check_keys(TOP)
    engine = top.choice("engine", ENGINES, top.text("engine", 'engine = "polars"'))
    assert engine is not None
    folder = path.resolve().parent
    questions = _questions(top)
    audit = top.maybe_text("audit")
    job = Job(
        path,
        hashlib.sha256(text).hexdigest(),
        engine,
        _scan(top.table("source"), engine, folder, variables),
        top.table("source").where,
        _ledger(top.table("ledger"), folder, variables),
        questions,
        _outputs(top.tables("output"), questions, folder, variables),
        None if audit is None else _placed(audit, folder, variables),
        variables,
        report=_report(top, questions, folder, variables),
        checks=_checks(top),
    )
    _check_written(job, path)
    return _with_ids(job)


def _checks(top: Table) -> Any:
    with placed(top.where):
        return checked_checks(top.values.get("checks"))


def _with_ids(job: Job) -> Job:
    """Return the job with a unit that is read without merging two ids; a unit with a float type is refused."""
    columns = dict(job.scan.columns)
    for name in job.ledger.unit.columns:
        if columns.get(name) == "number":
            raise InvalidArgument(
                f"{job.source_where}: the type of column {shown(name)} must keep each value of the unit apart, and "
                "'number' rounds. Write 'string', or 'integer' for at most 18 digits without leading zeros."
            )
        if columns.get(name) == "integer":
            columns[name] = "id"
    return replace(job, scan=replace(job.scan, columns=columns))


def _check_written(job: Job, path: Path) -> None:
    """Refuse to write over or among the files that the job reads, over any ledger, or twice over one file."""
    source = (*job.scan.named, *job.scan.files, job.scan.database or str(path))
    read = {os.path.realpath(file) for file in (*source, str(path))}
    with placed(job.ledger.where):
        kept = [Address.of(job.ledger.place).file, job.ledger.head and Address.of(job.ledger.head, "head").file]
    read |= {file + end for file in kept if file for end in files.OF_KEPT}
    identities = {files.identity(file) for file in read} - {None}
    written: set[str] = set()
    outputs = [(one.where, "path", one.path) for one in job.outputs]
    outputs += [] if job.report is None else [(job.report.where, "path", job.report.path)]
    for where, key, place in [*outputs, *([] if job.audit is None else [(path.name, "audit", job.audit)])]:
        real = os.path.realpath(place)
        if real in written:
            raise InvalidArgument(f"{where}: {key} must differ from that of every other output. Take another.")
        pattern = Path(os.path.realpath(job.scan.path or path)).parts  # the files that a later run would read
        folders = (one for one in Path(real).parents if not os.path.isfile(one))
        is_folder = any(one.startswith(real + os.sep) for one in written)
        if is_folder or any(str(one) in written for one in Path(real).parents):
            raise InvalidArgument(
                f"{harmless(where)}: {key} must be apart from the other outputs, and {shown(place.name)} is the folder "
                "of one, or in one. Take another name."
            )
        above = next(filter(os.path.exists, Path(real).parents), None)
        if above is not None and not os.path.isdir(above):
            raise InvalidArgument(
                f"{harmless(where)}: {key} must be in a folder, and what is above {shown(place.name)} is a file. Take "
                "another."
            )
        is_read = files.identity(real) in identities  # also under another name
        if is_read or any(str(one) in read or _is_named(one.parts, pattern) for one in (Path(real), *folders)):
            raise InvalidArgument(
                f"{harmless(where)}: {key} must be a file of its own, and {shown(place.name)} is read by the job, or "
                "is its ledger. Take another name."
            )
        check = files.check_no_ledger if key == "audit" else files.checked_output  # an audit trail may be a pipe
        check(f"{harmless(where)}: {key}", place)
        written.add(real)


def _is_named(place: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a pattern matches a path, both as parts; "**" matches any folders, as in the engines."""
    if not pattern:
        return not place
    if pattern[0] == "**" and _is_named(place, pattern[1:]):
        return True
    rest = pattern if pattern[0] == "**" else pattern[1:]
    return bool(place) and fnmatch(place[0], pattern[0]) and _is_named(place[1:], rest)


def _scan(table: Table, engine: str, folder: Path, variables: Variables) -> Scan:
    table.check_keys(OF_SOURCE)
    given = [key for key in ("path", "table", "sql") if key in table.values]
    if len(given) != 1:
        raise MissingArgument(
            f"{table.where}: exactly one of path, table and sql must be given, not {len(given)}. "
            'Write for instance path = "visits.parquet".'
        )
    for key, engines in ENGINES_OF_TABLES.items():
        if key in table.values and engine not in engines:
            raise InvalidArgument(
                f"{table.where}: {key} must be left out with engine = {engine!r}; it is of {' and '.join(engines)}. "
                "Name files with path, or take another engine."
            )
    path, database = table.maybe_text("path"), table.maybe_text("database")
    if path is not None and database is not None:
        raise InvalidArgument(f"{table.where}: database must come with table or sql, not with path. Keep one.")
    if path is not None and path.lower().startswith("file://"):  # `_check_written` would not recognize these files
        raise InvalidArgument(
            f"{table.where}: path must be the name of files, not a URL of local ones such as {shown(path)}. Write the "
            "part after 'file://'."
        )
    if engine == "duckdb" and path is None and database is None:
        raise MissingArgument(
            f"{table.where}: database must be given: the one file that {given[0]} reads. Write for instance "
            'database = "clinic.duckdb", or name other files with path.'
        )
    format = table.choice("format", ("parquet", "csv"), table.maybe_text("format")) or _format_of(path)
    columns, settings = (_texts(table, key) for key in ("columns", "settings"))
    if (format == "csv") != bool(columns):
        raise MissingArgument(
            f"{table.where}: columns must be given for a CSV file, and only there: a type for each column to read. "
            'Write for instance columns = {patient = "integer", ward = "string"}.'
        )
    for column, kind in columns.items():
        table.choice(f"the type of column {column!r}", TYPES, kind)
    if settings and engine != "spark":
        raise InvalidArgument(f"{table.where}: settings must be left out, except with engine = 'spark'. Drop them.")
    for name in settings:
        if name not in SETTINGS:
            raise InvalidArgument(
                f"{table.where}: settings must be sizes, the place of the cluster or keys of a store, not "
                f"{shown(name)}. Write others, which may name code, into this machine's spark-defaults.conf."
            )
    return Scan(
        None if path is None else _placed_pattern(path, folder, variables),
        format,
        columns,
        None if database is None else str(_placed(database, folder, variables)),
        table.maybe_text("table"),
        table.maybe_text("sql"),
        settings,
    )


def _format_of(path: str | None) -> str:
    return "csv" if path is not None and path.lower().endswith((".csv", ".csv.gz")) else "parquet"


def _texts(table: Table, key: str) -> dict[str, str]:
    values = table.values.get(key, {})
    if not isinstance(values, dict) or not all(isinstance(one, str) for one in values.values()):
        raise InvalidType(f"{table.where}: {key} must be a table of strings. Write each of its values in quotes.")
    return values


def _placed_pattern(path: str, folder: Path, variables: Variables) -> str:
    """Return a pattern of the file below its folder, whose own name is escaped, or the URL of other files."""
    return path if "://" in path else str(_placed(path, Path(glob.escape(str(folder))), variables))


def _placed_address(given: str, argument: str, folder: Path, variables: Variables) -> str:
    """Return the address of a ledger or of its head; a file is below the folder, even if a URL names it."""
    address = Address.of(given, argument, str(folder))
    if address.file is not None:
        variables.made_of(given, address.file, os.path.basename(address.file))
    return address.key


def _placed(path: str, folder: Path, variables: Variables) -> Path:
    """Return a path of the file below its folder; refusals show it as it is written."""
    place = folder / path
    variables.made_of(path, str(place), place.name)
    return place


def _ledger(table: Table, folder: Path, variables: Variables) -> LedgerTerms:
    table.check_keys(OF_LEDGER)
    path, url = table.maybe_text("path"), table.maybe_text("url")
    if path is not None and url is not None:
        raise InvalidArgument(
            f"{table.where}: path and url must not both be given: each is the place of the ledger. Keep one."
        )
    if path is None and url is None:
        raise MissingArgument(
            f'{table.where}: path must be given, or url for a database. Write for instance path = "clinic.ledger".'
        )
    if "epsilon" not in table.values:
        raise MissingArgument(
            f"{table.where}: epsilon must be given: the most that may ever be spent on the people in the data. Write "
            "for instance epsilon = 4.0."
        )
    each_row, column = table.values.get("each_row"), table.values.get("unit")
    if not isinstance(column, list):
        column = table.maybe_text("unit")
    if each_row not in (None, True):
        raise InvalidArgument(f"{table.where}: each_row must be true, not {shown(each_row)}. Or leave it out.")
    if each_row is not None and column is not None:
        raise InvalidArgument(
            f"{table.where}: unit and each_row must not both be given: each says whose data is protected. Keep one."
        )
    if each_row is None and column is None:
        raise MissingArgument(
            f"{table.where}: unit must be given: the column that identifies the person. Write for instance "
            'unit = "patient", or each_row = true where nobody has two rows.'
        )
    kinds = {key: table.values[key] for key in ("neighbors", "nulls") if key in table.values}
    with placed(table.where):
        unit = replace(checked_unit(column) or PrivacyUnit(), **kinds)
    given = path or url
    assert given is not None
    terms = {key: table.values[key] for key in TERMS if key in table.values}
    head = table.maybe_text("head")
    with placed(table.where):
        place = _placed_address(given, "path", folder, variables)
        kept = None if head is None else _placed_address(head, "head", folder, variables)
    return LedgerTerms(table.where, place, unit, terms, given, kept)


def _questions(top: Table) -> tuple[Question, ...]:
    tables = top.tables("release")
    if not tables:
        raise MissingArgument(f"{top.where}: a job must have a release. Write [[release]], and below it its keys.")
    questions = tuple(question_of(table, top.maybe_text("snapshot")) for table in tables)
    labels = [question.label for question in questions]
    for question in questions:
        if labels.count(question.label) > 1:
            raise InvalidArgument(
                f"{question.where}: label must differ from that of every other release, and {question.label!r} occurs "
                "twice. The ledger knows an answer by it."
            )
    return questions


def _report(top: Table, questions: Sequence[Question], folder: Path, variables: Variables) -> Report | None:
    """Return the report of several releases, with its texts checked before any charge."""
    if "report" not in top.values:
        return None
    table = top.table("report")
    table.check_keys(OF_REPORT)
    known = [question.label for question in questions]
    chosen = table.values.get("releases", known)
    if not isinstance(chosen, list) or not chosen:
        raise InvalidType(
            f"{table.where}: releases must be a list of labels, not {shown(chosen)}. Write for instance "
            f"releases = [{known[0]!r}]."
        )
    words = {name: plain_value(table.values.get(name)) for name in ("text", "labels", "order")}
    with placed(table.where):
        spending.checked(None, None, chosen, known, "releases")
        spending.checked(words["text"], words["labels"], words["order"], chosen)
    given = table.text("path", 'path = "report.html"')
    path = _placed(given, folder, variables)
    if path.suffix.lower() not in files.PAGES:
        raise InvalidArgument(f"{table.where}: path must end in .html, not {shown(path.name)}. Rename it.")
    labels = tuple(label for label in known if label in chosen)
    return Report(table.where, path, variables.written(given), table.maybe_text("title"), labels, words)


def _outputs(
    tables: list[Table], questions: Sequence[Question], folder: Path, variables: Variables
) -> tuple[Output, ...]:
    labels = [question.label for question in questions]
    outputs: list[Output] = []
    for table in tables:
        table.check_keys(OF_OUTPUT)
        label = table.text("release", f"release = {labels[0]!r}")
        if label not in labels:
            near = closest(label, labels)
            raise InvalidArgument(
                f"{table.where}: release must be the label of a release, not {shown(label)}. "
                + (f"Did you mean {near!r}?" if near else f"They are {', '.join(labels)}.")
            )
        given = table.text("path", 'path = "wards.parquet"')
        path = _placed(given, folder, variables)
        kind = table.choice("format", FORMATS, table.maybe_text("format")) or ENDINGS.get(path.suffix.lower())
        if kind is None:
            raise InvalidArgument(
                f"{table.where}: path must end in {', '.join(ENDINGS)}, not {shown(path.name)}. Or say format."
            )
        outputs.append(Output(table.where, label, path, kind, variables.written(given)))
    return tuple(outputs)
