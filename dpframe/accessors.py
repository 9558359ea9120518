"""``df.dp``: a call becomes a Query. No state, no logic; the verbs are written once, for releases and previews."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack, cast

from dpframe import pictures, provenance, tables
from dpframe.errors import AlreadyReleased, InvalidArgument, InvalidType, MissingArgument, NoProvenance, closest, shown
from dpframe.frames import build
from dpframe.frames.source import is_frame, key_rows, source_of
from dpframe.guarantee import PrivacyUnit
from dpframe.ledger import Ledger
from dpframe.plan import Calibration
from dpframe.queries.cells import Keys, bin_axes, key_axes
from dpframe.queries.query import Query
from dpframe.queries.statistics import Count, Mean, Measure, Sum, check_column
from dpframe.release import Options, preview, release

Finish = Callable[[Any, Query, Options], Any]
Verb = TypeVar("Verb", bound=Callable[..., Any])

MEASURES = (Count, Sum, Mean)
OF_RESULTS = ("provenance", "plot", "table", "to_numpy", "write_parquet")


class CallOptions(TypedDict, total=False):
    """What every verb takes besides its own arguments."""

    epsilon: float | Fraction | Sequence[float] | None
    delta: float | Fraction | None
    share: float | Fraction | None
    mechanism: str | Calibration | None
    denoise: Any
    raw: bool
    ledger: Ledger | None
    unit: PrivacyUnit | None
    label: str | None


def _asks(verb: Verb) -> Verb:
    """Let help show the options by name instead of ``**options``, and refuse in words what the signature rules out."""
    own = [p for p in inspect.signature(verb).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    by_name = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(field.name, by_name, default=field.default) for field in fields(Options)]
    signature = inspect.Signature([*own, *options])

    @functools.wraps(verb)
    def asked(*given: Any, **named: Any) -> Any:
        if verb.__name__ != "agg":  # whose statistics may have any name
            _check_call(verb.__name__, signature, given, named)
        return verb(*given, **named)

    asked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Verb, asked)


def _check_call(verb: str, signature: inspect.Signature, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    arguments = list(signature.parameters)[1:]
    for name, value in named.items():
        if name not in arguments:
            raise InvalidType(f"{name} is not an argument of {verb}. {_nearest(name, arguments)}")
        if isinstance(value, MEASURES):
            raise InvalidType(_option_words(name))
    if len(given) > 2:
        raise InvalidType(
            f"{verb} must be given everything but the column by name, so {shown(given[2])} is not clear. "
            f"Write for instance {verb}({shown(given[1])}, {arguments[1]}=...)."
        )
    if len(given) < 2 and "column" not in named and signature.parameters["column"].default is inspect.Parameter.empty:
        raise MissingArgument(f'column must be given: name the column, as in {verb}("age", {arguments[1]}=...).')


def _nearest(name: str, arguments: Sequence[str]) -> str:
    near = closest(name, arguments)
    return f"Did you mean {near}?" if near else f"Its arguments are {', '.join(arguments)}."


class Asker:
    """The questions that a private frame answers: what ``df.dp`` is.

    Every verb takes the column first and everything else by keyword, and the same options:

    epsilon : float
        The price of the whole call, in privacy; or ``share=`` of the ledger's limit. There is no default.
    delta : float, optional
        For Gaussian noise; by default the ledger's.
    mechanism : {"laplace", "gaussian"} or callable, optional
        The noise; by default the call decides (see ``docs/noise.md``).
    denoise : str, callable, list or None
        ``"auto"`` for histograms and group-bys, else None. Costs no privacy.
    raw : bool
        Whether the unbiased values stay beside the denoised ones.
    ledger : Ledger, optional
        Who pays; by default the ``with`` around the call.
    unit : PrivacyUnit, optional
        Who is protected, where the ledger does not say it.
    label : str, optional
        A name for the ledger's entry and the provenance.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})
    >>> with dpf.Ledger(epsilon=1.0):
    ...     result = people.dp.group_by("ward", keys=["A", "B"]).agg(n=dpf.count(), epsilon=0.5)
    >>> result.columns
    ['ward', 'n', 'n_noisy', 'n_error']
    """

    def __init__(self, frame: Any, axes: tuple[Any, ...] = (), finish: Finish = release) -> None:
        self._frame, self._axes, self._finish = frame, axes, finish

    @_asks
    def count(self, column: str | None = None, **options: Unpack[CallOptions]) -> Any:
        """The number of rows, or of the values of `column` that are present."""
        return self._asked("count", {"count": Count(column)}, options)

    @_asks
    def sum(self, column: str, *, bounds: tuple[float, float] | None = None, **options: Unpack[CallOptions]) -> Any:
        """The sum of `column`, each value clipped to `bounds`."""
        measure = Sum(column, bounds)  # type: ignore[arg-type]  # None is refused there, in words
        return self._asked("sum", {measure.default_name: measure}, options)

    @_asks
    def mean(self, column: str, *, bounds: tuple[float, float] | None = None, **options: Unpack[CallOptions]) -> Any:
        """The mean of `column`, each value clipped to `bounds`."""
        measure = Mean(column, bounds)  # type: ignore[arg-type]  # None is refused there, in words
        return self._asked("mean", {measure.default_name: measure}, options)

    @_asks
    def histogram(
        self,
        column: str | Sequence[str],
        *,
        bins: Any = None,
        range: Any = None,
        categories: Any = None,
        outside: str = "drop",
        **options: Unpack[CallOptions],
    ) -> Any:
        """How many rows fall in each bin of `column`, or in each pair of bins of two columns.

        Parameters
        ----------
        column : str or list of str
            One column, or several for a grid.
        bins : sequence of edges, or int
            Edges of numbers, dates, datetimes or durations; half-open, the last bin closed, exactly as
            ``numpy.histogram``. A number of bins needs `range`. For several columns a list of them.
        range : pair
            The first and the last edge of equal bins.
        categories : list
            Instead of bins, for strings and other values.
        outside : {"drop", "clip"}
            Whether values outside the edges are left out or counted in the end bins.
        **options
            See `Asker`.

        Returns
        -------
        DataFrame
            One row per bin, row-major: ``COL_left``, ``COL_right`` (``COL`` for categories), ``count``,
            ``count_noisy`` (the unbiased value) and ``count_error`` (half-width of its 95% interval).
        """
        axes = bin_axes(column, bins, range, categories, outside)
        return Asker(self._frame, (*self._axes, *axes), self._finish)._asked("histogram", {"count": Count()}, options)

    @_asks
    def agg(self, *statistics: Any, **named: Any) -> Any:
        """Several statistics, priced and released as one call.

        Parameters
        ----------
        *statistics : Count, Sum or Mean, or one dict of them
            Made by ``dpf.count``, ``dpf.sum`` and ``dpf.mean``; they get their default names.
        **named
            Statistics by the name of their output column, and the options of `Asker`.

        Returns
        -------
        DataFrame
            One row per declared key; per statistic ``NAME``, ``NAME_noisy`` where denoised, and ``NAME_error``.
        """
        measures, options = _sorted_out(statistics, named)
        return self._asked("agg", measures, options)

    def group_by(self, *by: str | Sequence[str], keys: Any = None, **others: Any) -> Asker:
        """The same questions per group.

        Parameters
        ----------
        *by : str
            The columns to group by.
        keys : list, tuple, range, dict or frame
            The groups, declared: values of one column, a dict of values per column (their product), or a frame of
            the allowed combinations. None among them asks for the rows whose key is missing.
        **others
            Refused: options belong to the question that follows.
        """
        for name in others:
            if name in CallOptions.__annotations__:
                raise InvalidType(
                    f"{name} is not an argument of group_by, but of the question after it: "
                    f"group_by(...).count({name}=...)."
                )
            raise InvalidType(f"{name} is not an argument of group_by. {_nearest(name, ['keys'])}")
        flat: tuple[Any, ...] = tuple(by[0]) if len(by) == 1 and isinstance(by[0], (list, tuple)) else by
        for column in flat:
            check_column(column)
        combinations = key_rows(keys, flat) if is_frame(keys) else None
        axes = key_axes(flat, keys, combinations)
        return Asker(self._frame, (*self._axes, *axes), self._finish)

    @property
    def preview(self) -> Asker:
        """The same questions, answered by a Plan: cost, noise and expected error; no row is read, nothing spent."""
        return Asker(self._frame, self._axes, preview)

    def _asked(self, verb: str, measures: dict[str, Measure], options: Any) -> Any:
        checked = Options(**{"denoise": "auto" if self._axes else None, **options})
        return self._finish(self._frame, Query(verb, Keys(self._axes), tuple(measures.items())), checked)

    def __getattr__(self, name: str) -> Any:
        if name in OF_RESULTS:
            raise NoProvenance(
                "this frame carries no provenance: it is not a result of dpframe, or an operation dropped it. "
                "Polars frames keep it until an operation makes a new frame; pandas frames keep it in attrs; "
                ".dp.write_parquet and dpf.read_parquet keep it in files."
            )
        raise AttributeError(f".dp has no {name!r}")

    def __repr__(self) -> str:
        return "<.dp of a private frame: count, sum, mean, histogram, group_by(...).agg, preview>"


class Released:
    """What ``.dp`` is on a result: its provenance, a chart, an array, a file.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 62]})
    >>> ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
    >>> ages.dp.provenance["cost"]
    {'epsilon': 1.0, 'delta': 0.0, 'accounting': 'basic'}
    >>> ages.dp.to_numpy("count").shape
    (2,)
    """

    verbs: ClassVar[tuple[str, ...]] = ("count", "sum", "mean", "histogram", "agg", "group_by", "preview")

    def __init__(self, frame: Any, facts: dict[str, Any]) -> None:
        self._frame, self._facts = frame, facts

    @property
    def provenance(self) -> dict[str, Any]:
        """What was asked, how it was protected, what it cost: plain JSON values (``docs/provenance.md``)."""
        return provenance.current(self._frame, self._facts)

    def plot(self) -> Any:
        """Bars with 95% error bars, or a map of a grid, as an Altair chart (needs ``dpframe[plot]``)."""
        return pictures.of_result(self._frame, self._facts)

    def table(self) -> Any:
        """A table for a report, each value with its 95% error, as a great-tables table (needs ``dpframe[tables]``)."""
        return tables.of_result(self._frame, self._facts)

    def to_numpy(self, name: str) -> Any:
        """A released column as an array in the shape of the cells."""
        if name not in self._facts["columns"]:
            raise InvalidArgument(f"name must be one of {self._facts['columns']}, not {shown(name)}.")
        return build.numbers(self._frame, name).reshape(provenance.shape(self._facts))

    def write_parquet(self, path: Any) -> None:
        """Write the frame with its provenance; `dpframe.read_parquet` reads both."""
        build.write_parquet(self._frame, path, self._facts)

    def __getattr__(self, name: str) -> Any:
        if name in self.verbs:
            raise AlreadyReleased(
                f"this frame is a released result: it is public, so use it directly, without .dp.{name}."
            )
        raise AttributeError(f".dp of a result has no {name!r}")

    def __repr__(self) -> str:
        return f"<.dp of a released result: {', '.join(OF_RESULTS)}>"


def of(frame: Any) -> Asker | Released:
    """The accessor of a frame: ``df.dp``, typed, and for frames that have no ``.dp``.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
        Of pandas or Polars, or of another library that narwhals reads (Arrow, DuckDB, ...): its rows are then
        collected into Polars, and so is the result.

    Returns
    -------
    Asker or Released

    Raises
    ------
    InvalidType
        If it is no frame.

    Examples
    --------
    >>> import dpframe as dpf, polars as pl
    >>> dpf.of(pl.DataFrame({"age": [31]}))
    <.dp of a private frame: count, sum, mean, histogram, group_by(...).agg, preview>
    """
    if not is_frame(frame):
        source_of(frame)  # raises, in words
    return accessor(frame)


def accessor(frame: Any) -> Asker | Released:
    """What ``.dp`` gives."""
    facts = build.record_of(frame)
    return Asker(frame) if facts is None else Released(frame, facts)


def _sorted_out(statistics: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Measure], dict[str, Any]]:
    """Statistics by name, and the options."""
    measures: list[tuple[str, Any]] = []
    for statistic in statistics:
        measures += statistic.items() if isinstance(statistic, dict) else [(_default_name(statistic), statistic)]
    options = {}
    for name, value in named.items():
        if name not in CallOptions.__annotations__:
            measures.append((name, value))
        elif isinstance(value, MEASURES):
            raise InvalidType(_option_words(name))
        else:
            options[name] = value
    for name, value in measures:
        if not isinstance(name, str):
            raise InvalidType(f"the name of a statistic must be a string, not {shown(name)}.")
        if not isinstance(value, MEASURES):
            raise InvalidType(_no_statistic_words(name, value))
    if not measures:
        raise MissingArgument(
            "agg must be given at least one statistic. Write for instance agg(n=dpf.count(), epsilon=1)."
        )
    names = [name for name, _ in measures]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(
                f"output columns must have different names, but {name!r} occurs twice. "
                "Name the statistics yourself, as in agg(n=dpf.count())."
            )
    return dict(measures), options


def _default_name(statistic: Any) -> str:
    return statistic.default_name if isinstance(statistic, MEASURES) else "each argument of agg"


def _no_statistic_words(name: str, value: Any) -> str:
    near = closest(name, CallOptions.__annotations__)
    if near:
        return f"{name} is not an option of agg, and {shown(value)} is not a statistic. Did you mean {near}?"
    return f"{name} must be a statistic, such as dpf.count() or dpf.mean('age', bounds=(0, 120)), not {shown(value)}."


def _option_words(name: str) -> str:
    return (
        f"{name} is an option of every call, so it cannot name a statistic directly. "
        f"Write agg({{{name!r}: ...}}) with a dict instead."
    )
