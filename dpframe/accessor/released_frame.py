"""``.dp`` of a released result: its public numbers and the record of their release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpframe.accessor.changed_frame import Labels
from dpframe.accessor.joined import labels_of, parts_of
from dpframe.accessor.summed_frame import Measurement, SummedFrame, measurements_of
from dpframe.accessor.written_frame import WrittenFrame, section_of, suggested, unbiased_counts
from dpframe.derived import population
from dpframe.display import report, result_charts, rounding
from dpframe.display.layout import Asked
from dpframe.display.subjects import protected
from dpframe.errors import (
    AlreadyReleased,
    InvalidArgument,
    checked_text,
    closest,
    listed,
    no_attribute,
    shown,
)
from dpframe.errors.tracebacks import depth_outside, trimmed, warn_of_bounds
from dpframe.files import write_page
from dpframe.frames import build, foreign, register
from dpframe.frames.build import public
from dpframe.frames.kinds import library_of
from dpframe.ledger.canonical import now
from dpframe.planning.call import checked_flag
from dpframe.release import provenance

CHECKS: dict[str, type] = {
    **dict.fromkeys(("of", "what"), str),
    **dict.fromkeys(("share", "share_low", "share_high", "count", "count_error"), float),
}
VERBS, OF_RESULTS = (tuple(chain(*verbs.values())) for verbs in (register.OF_FRAMES, register.OF_RESULTS))


class ReleasedFrame(WrittenFrame, SummedFrame):
    """The record of a released result, ``.dp`` of its frame.

    It gives the provenance, charts, tables, arrays and files.

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

    @property
    def provenance(self) -> dict[str, Any]:
        """The record of the query, its protection and its cost, as plain JSON values.

        ``docs/reference/provenance.md`` explains it. A frame from `dpframe.concat` has ``{"schema": "dpframe.parts/1",
        "parts": [...]}``, with a record for each part.
        """
        if "parts" not in self._facts:
            return provenance.current(self._frame, self._facts)
        return {**provenance.copied(self._facts), "altered": self._is_altered()}

    @property
    def parts(self) -> list[Any]:
        """The releases that `dpframe.concat` joined, each a frame with its own record.

        Otherwise, a list of the frame alone.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> visits = pl.DataFrame({"week": [1, 1, 2]})
        >>> with dpf.Ledger(epsilon=1.0):
        ...     weeks = [visits.dp.group_by("week", keys=[week]).count(epsilon=0.5) for week in (1, 2)]
        >>> [part.dp.provenance["cost"]["epsilon"] for part in dpf.concat(weeks).dp.parts]
        [0.5, 0.5]
        """
        return [frame for frame, _ in parts_of(self._frame)]

    def _is_altered(self) -> bool:
        try:
            return any(provenance.current(*part)["altered"] for part in parts_of(self._frame))
        except InvalidArgument:  # rows are missing
            return True

    @trimmed
    def plot(
        self,
        *,
        x: str | None = None,
        color: str | None = None,
        facet: str | None = None,
        kind: Literal["bar", "line", "point", "heatmap"] | None = None,
        value: str | Sequence[str] | None = None,
        title: str | None = None,
        notes: bool | str | Sequence[str] = True,
        limit: int = 60,
        labels: Labels | None = None,
        covers: Literal["table", "population"] = "table",
    ) -> Any:
        """Draw a chart of the released numbers with their 95% intervals.

        Parameters
        ----------
        x : str, optional
            The column of keys or bins on the horizontal axis. By default the first column of dates or numbers, or the
            one with the most names.
        color : str, optional
            A column of at most 8 values, each of which gets a color (side by side) or a line.
        facet : str, optional
            A column whose values get a panel each; panels share their scales. Quantiles of one column that are shown
            together have the column ``"quantile"``, which `x`, `color` and `facet` take too.
        kind : {"bar", "line", "point", "heatmap"}, optional
            Bars start at zero. Lines have a shaded band for their intervals. A heat map has the remaining column on its
            vertical axis and shows the intervals under the pointer. By default, counts and sums are bars, other numbers
            points, three or more dates lines, and two columns of bins or a table of correlations a heat map.
        value : str or list of str, optional
            The released columns to show, such as ``"count"`` or ``"count_noisy"``; all of them by default.
        title : str, optional
            By default the label of the release, or a description of what is shown.
        notes : bool, str or list of str
            The line below the title (cost, protection, meaning of the intervals) and the captions below the picture
            (what was left out). Text is added to the captions; False leaves out all of it.
        limit : int
            If a column has more values than this, those with the largest released numbers are drawn, and a caption
            counts the others.
        labels : dict, optional
            Display names for columns and keys, as in `relabel`: ``{"columns": {"n": "People"}, "values": {"sex": {0:
            "Men"}}}``. `x`, `color`, `facet` and `value` take the names of the frame.
        covers : {"table", "population"}
            Whether intervals cover the noise alone, or sampling error too, as in `errors`.

        Returns
        -------
        altair.Chart
            A notebook displays it, without a network if vl-convert is installed; ``.save("ages.png")`` writes it.
            ``altair.theme.enable("dark")`` before gives the colors of dark pages.

        Raises
        ------
        ImportError
            Without the extra ``dpframe[plot]``.
        InvalidArgument
            If a column does not exist, `facet` is also `x` or `color`, or `color` has more than 8 values; if the frame
            lost columns or rows that were released, joins several releases, or has no numbers with errors, such as a
            mode.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> from datetime import date
        >>> days = [date(2026, 1, 5), date(2026, 2, 9), date(2026, 3, 2)]
        >>> visits = pl.DataFrame({"day": days, "ward": ["A", "B", "A"]})
        >>> keys = {"day": dpf.dates("2026-01-01", "2026-03-31", every="1mo"), "ward": ["A", "B"]}
        >>> months = visits.dp.group_by("day", "ward", keys=keys).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> months.dp.plot().to_dict()["title"]["text"]  # a line for each ward
        'Number of rows by day (months) and ward'
        >>> chart = months.dp.plot(x="ward", facet="day", kind="bar", title="Visits", notes="Source: made up")
        >>> months.dp.plot(color="sex")
        Traceback (most recent call last):
        dpframe.errors.InvalidArgument: color must be a column of the cells, one of 'day', 'ward', not 'sex'.
        """
        asked = Asked(x, color, facet, kind, value, title, notes, limit)
        if population.is_population(covers):
            self._alone("plot")
            made, names = self._labeled(labels, "plot"), (labels or {}).get("columns") or {}
            words = made._frame, provenance.counted(made._facts), names
            drawn = population.drawn(self._frame, words)
            return result_charts.of_result(*drawn, {}, asked.renamed(names))
        provenance.checked_numbers(self._frame, provenance.counted(self._alone("plot")))
        if labels is not None:
            made = self._labeled(labels, "plot")
            return made.plot(**vars(asked.renamed(labels.get("columns") or {})))
        facts = provenance.counted(self._facts)
        places = provenance.checked_numbers(self._frame, facts)
        frame = build.reordered(self._frame, places) if "levels" in facts or "top" in facts else self._frame
        known = {} if "levels" in facts else provenance.cell_errors(facts, places)  # unknown for levels
        return result_charts.of_result(frame, rounding.placed(facts, places), known, asked)

    @trimmed
    def errors(self, *, cells: bool = False, covers: Literal["table", "population"] = "table") -> Any:
        """Show the intervals of the noise, and the errors of adjusted values.

        Parameters
        ----------
        cells : bool
            Whether to return the errors of each cell.
        covers : {"table", "population"}
            Whether intervals cover the noise alone, for statements about the table, or sampling error too, for the
            population of which the units are an independent sample (``docs/guide/compare.md``).

        Returns
        -------
        DataFrame
            One row for each released column (with ``rollup=True`` for each of its levels), in the library of the
            result: ``column``; ``by``, the columns of its cells; ``interval``, the half-width of the 95% interval
            around the *noisy* value, the largest of all cells, null without rows; ``noisy_rmse``, the standard
            deviation of the noise (null for means, shares, variances and quantiles, whose error depends on the cell);
            ``denoised_rmse``, the root mean squared error over all cells as denoising estimates it, null if nothing was
            denoised or it is unknown.
            Denoised values are biased, and ``denoised_rmse`` is not an interval: see ``docs/assurance/denoising.md``. A
            histogram with ``ranges=True`` has two more rows, named in ``by``: for sums from the first bin on, and for
            any sum of neighboring bins. Add up ``count_noisy``; the interval holds for the worst sum of its kind. For
            joined releases, the first column has their names, or is ``part``, counted from 0.

            With ``cells=True``, one row for each row of the result: its labels, and for each released column ``NAME``
            the errors above, as ``NAME_interval``, ``NAME_noisy_rmse`` and ``NAME_denoised_rmse``. ``NAME_low`` and
            ``NAME_high`` are the ends of the interval as tables show it: cut to possible values, such as shares to 0
            and 1. Half-widths are not cut. ``NAME_denoised_rmse`` is the standard deviation of a total given its noisy
            value, as far as the prior was learned; null if the method does not know it.

        Raises
        ------
        InvalidArgument
            If the frame lost columns or rows that were released, or has no numbers with errors: a `mode`, a `top_k`
            without counts, suggested bounds, reports. With ``covers="population"``, if no such interval is known.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
        >>> ages.dp.errors().columns
        ['column', 'by', 'interval', 'noisy_rmse', 'denoised_rmse']
        >>> ages.dp.errors(cells=True).columns[2:]
        ['count_interval', 'count_low', 'count_high', 'count_noisy_rmse', 'count_denoised_rmse']
        """
        checked_flag("cells", cells)
        columns: dict[str, list[Any]] = {}
        for number, (frame, said) in enumerate(parts_of(self._frame)):
            if population.is_population(covers):
                errors = population.errors_of(frame, cells=cells)
            else:
                errors = _errors_of_noise(frame, provenance.counted(said), cells=cells)
            label, names = labels_of(self._facts, errors)
            if label is not None:
                errors = {label: [names[number]] * len(next(iter(errors.values()))), **errors}
            for name, values in errors.items():
                columns.setdefault(name, []).extend(values)
        labels = foreign.labels_of(provenance.counted(said)) if cells else ("column", "by")  # the same in all parts
        numbers = [name for name in columns if name not in {label, *labels}]
        return public(build.with_floats(build.frame_of(columns, library_of(self._frame)), numbers))

    @trimmed
    def checks(self) -> Any:
        """Show what the bounds left out, as measured with ``checks=``.

        Returns
        -------
        DataFrame
            One row for each indicator, in the library of the result: ``of``, the column, or the rule of a cut, null for
            outside and units; ``what``, one of below, above, present, outside, cut, units; ``share``, of those with a
            value or of all, and the ends of its 95% interval, ``share_low`` and ``share_high``, all three null for
            units, and for present if there is no row of units; ``count``, the noisy number of rows, or of units if the
            ledger protects units, and ``count_error``, its 95% margin of error. Empty if nothing was checked. For
            joined releases, the first column has their names, or is ``part``, counted from 0.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62] * 1_000})
        >>> with dpf.Ledger(epsilon=10):
        ...     ages = people.dp.mean("age", bounds=(0, 120), epsilon=10.0, checks=True)
        >>> ages.dp.checks().select("of", "what", "share_high").rows()[0][:2]
        ('age', 'below')
        """
        parts = parts_of(self._frame)
        label, names = labels_of(self._facts, CHECKS)
        rows = [
            {**({} if label is None else {label: name}), **row}
            for name, (_, facts) in zip(names, parts, strict=True)
            for row in facts.get("checks", ())
        ]
        types = CHECKS if label is None else {label: type(names[0]), **CHECKS}
        return public(build.of_rows(rows, library_of(self._frame), types))

    @trimmed
    def suggest(
        self, *, epsilon: Any = None, delta: Any = None, mechanism: str | None = None, most_rows: int | None = None
    ) -> Any:
        """Suggest contribution bounds from a result of `contributions`, at no cost.

        Parameters
        ----------
        epsilon, delta : float
            The cost of the planned count; with a delta, its noise is Gaussian, as in every call.
        mechanism : {"laplace", "gaussian", "auto"}, optional
            The noise; "auto" tries both.
        most_rows : int, optional
            The most rows that any unit can have, from what you know. With it, the rows that are left out have an
            interval.

        Returns
        -------
        DataFrame
            A public frame without a record, with up to 20 candidates, the least ``total_error`` first: ``max_rows`` and
            ``max_groups``; ``rows_kept``, the number of rows that then count; ``noise``, the expected absolute noise,
            added up over all groups, without checks; ``left_out``, the rows that the weights remove, as far as units
            exceed the noise; ``total_error``, their sum, with `left_out` larger by the factor by which more units may
            be cut than estimated. ``units_cut`` is the share of units whose rows have a lower weight; the ends of its
            interval, ``units_cut_low`` and ``units_cut_high``, hold for all bounds together with 95%. With `most_rows`
            also ``left_out_low`` and ``left_out_high``, which hold likewise. If bounds keep the same rows with the same
            noise, the pair nearest to the contributions of units is listed.

        Warns
        -----
        BoundsWarning
            If the best bounds may cut more than half of the units: the result is too noisy to recommend any. The
            message names a sufficient epsilon.

        Raises
        ------
        InvalidArgument, MissingArgument
            If the result is not from `contributions`, or has no noisy counts (``keep_noisy=False``), or an argument
            breaks its rule.

        Notes
        -----
        It reads the noisy counts alone. Counts below 0 are taken as 0, and counts beyond the last rows and groups that
        exceed the noise are left out. A unit is assumed to be in the middle of its cell. Under Laplace noise, its
        weight follows from its number of rows, which the grid has. Under Gaussian noise, it depends on how its rows
        are spread: evenly over its groups, by assumption. If the groups were not declared, their number is taken as
        the largest number that a unit is seen in.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> visits = pl.DataFrame({"patient": [*range(5_000)] * 3})
        >>> grid = visits.dp.contributions(epsilon=0.5, ledger=dpf.Ledger(epsilon=1, unit="patient"))
        >>> grid.dp.suggest(epsilon=1.0).columns
        ['max_rows', 'max_groups', 'rows_kept', 'noise', 'left_out', 'total_error', 'units_cut', 'units_cut_low', \
'units_cut_high']
        """
        if "groups" not in self._alone("suggest") or "shown" in self._facts:
            raise InvalidArgument(
                "suggest must be asked of a result of contributions as it was released, which tells how much units "
                "contribute. Ask for df.dp.contributions(by=..., epsilon=0.1) first."
            )
        words = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism, "most_rows": most_rows}
        rows, problem = suggested(self._frame, self._facts, **words)
        if problem is not None:
            warn_of_bounds(problem, depth=depth_outside())
        return public(build.of_rows(rows, library_of(self._frame)))

    @trimmed
    def to_numpy(self, name: str) -> Any:
        """Return a released column as an array in the shape of the cells.

        Parameters
        ----------
        name : str
            A column of released numbers, such as ``"count"`` or ``"count_error"``.

        Returns
        -------
        array of float64
            One axis for each column of keys or bins, and one for pairs of columns; shape ``()`` for a single number. A
            frame of combinations, subtotals or marginals has one axis in all. Joined releases of the same shape have
            one more axis, the first.

        Raises
        ------
        InvalidArgument
            If no column of numbers has this name, or joined releases have different shapes; if the frame lost columns
            or rows that were released; for a `mode`, a `top_k` and suggested bounds.
        """
        for frame, record in parts_of(self._frame):
            if not record["measures"]:  # a choice without numbers is no array
                provenance.checked_numbers(frame, record)
        parts = [(frame, provenance.counted(record)) for frame, record in parts_of(self._frame)]
        if len({foreign.shape(facts) for _, facts in parts}) > 1:
            self._alone("to_numpy")
        arrays = [_array(frame, facts, name) for frame, facts in parts]
        return np.stack(arrays) if "parts" in self._facts else arrays[0]

    def measurements(self) -> list[Measurement]:
        """Return the unbiased tables of ``marginals`` and their variances.

        Returns
        -------
        list of Measurement
            One for each table, the total first: ``columns``, ``values`` (an array with an axis for each column, in the
            order of its keys) and ``variance``. The noise of different tables is not independent, since they add up.

        Raises
        ------
        InvalidArgument
            If the result is not from `marginals`, or its frame was changed or has no unbiased values.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"sex": ["f", "m"], "ward": ["A", "B"]})
        >>> keys = {"sex": ["f", "m"], "ward": ["A", "B", "C"]}
        >>> ledger = dpf.Ledger(epsilon=1, delta=1e-6)
        >>> tables = people.dp.marginals(["sex", "ward"], keys=keys, epsilon=1.0, delta=1e-6, ledger=ledger)
        >>> [(each.columns, each.values.shape, round(each.variance, 1)) for each in tables.dp.measurements()]
        [((), (), 64.1), (('sex',), (2,), 35.0), (('ward',), (3,), 31.0), (('sex', 'ward'), (2, 3), 23.2)]
        """
        facts = self._alone("measurements")
        if not result_charts.is_marginals(facts):
            raise InvalidArgument(
                "measurements must be asked of a result of marginals, whose tables have one variance each. "
                "Read the columns of other results."
            )
        if "rounded" in facts or "shown" in facts:
            raise InvalidArgument(
                "measurements must be of the numbers as they were released, and these were "
                f"{'changed' if 'shown' in facts else 'rounded'}. Ask the released frame."
            )
        places = provenance.checked_numbers(self._frame, facts)
        name = unbiased_counts(facts, "measurements must be of unbiased values")
        return measurements_of(build.numbers(self._frame, name)[places], facts)

    @trimmed
    def write_html(
        self, path: Any, *, title: str | None = None, charts: bool = True, labels: Labels | None = None
    ) -> None:
        """Write the result as one HTML file, with its errors and its record.

        Parameters
        ----------
        path : path-like
            The file.
        title : str, optional
            The heading of the page. By default the label of the release, or the names of joined ones.
        charts : bool
            Whether the page has charts, which need the extra ``dpframe[plot]``.
        labels : dict, optional
            Display names for columns and keys, as in `plot`.

        Raises
        ------
        ImportError
            Without that extra, unless charts are left out.
        InvalidArgument
            If the frame has columns that no release covers, or released numbers or labels that were changed; if `path`
            belongs to a ledger, is not a plain file, or ends as one of another format, such as ``.pdf``.
        OutputFailed
            If the file cannot be written. An existing file stays whole.

        Notes
        -----
        The file fetches nothing, links nowhere else and runs no script. It has colors for light and dark screens, and
        prints in full. Each joined release has a section. `Ledger.report` writes several results and the spending of a
        ledger; ``dpframe report`` does the same for files.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl, pathlib, tempfile
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "ages.html"
        >>> ages.dp.write_html(path, charts=False)
        >>> path.read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
        """
        checked_text("title", title)
        sections = self._sections(charts=charts, labels=labels)
        names = self._facts.get("names", []) if "parts" in self._facts else []
        heading = title or ", ".join(dict.fromkeys(names or [section.title for section in sections]))
        write_page("path", path, report.page(heading, report.lead(sections), sections, now()))

    def _sections(
        self, *, charts: bool, labels: Labels | None = None, named: Mapping[str, Labels] | None = None
    ) -> list[report.Section]:
        """Return the section of each release for a page; display names by label in `named` precede `labels`."""
        parts = [(type(self)(*part), part[1].get("label")) for part in parts_of(self._frame)]
        releases = [part._labeled((named or {}).get(label or "", labels), "write_html") for part, label in parts]
        return [section_of(release, release._frame, release._facts, charts=charts) for release in releases]

    if not TYPE_CHECKING:  # so that a type checker reports a mistyped name

        def __getattr__(self, name: str) -> Any:
            if name in VERBS:
                summed = " For the sum of its rows with its error write .dp.total()." if name == "sum" else ""
                raise AlreadyReleased(
                    f"this frame is a released result: it is public, so use it directly, without .dp.{name}.{summed}"
                )
            raise no_attribute(f".dp of a result has no {name!r}." + _instead_of(name))

    def __repr__(self) -> str:
        return register.in_terminal(self._title(), self._verbs)

    def _repr_html_(self) -> str:
        return register.in_notebook(self._title(), self._verbs)

    @property
    def _verbs(self) -> register.Verbs:
        """The verbs to list: of a choice and of suggested bounds, those that need no numbers."""
        facts = provenance.counted(self._facts)
        is_choice = "parts" not in facts and not foreign.is_reports(facts) and not facts["measures"]
        return register.OF_CHOICES if is_choice else register.OF_RESULTS

    def _title(self) -> str:
        """Return the title: a result, and the protected units of its record."""
        if (stamp := self._stamp) is not None:
            return f".dp of a result: {stamp}"
        units = list(dict.fromkeys(protected(part) for part in self._records))
        return f".dp of a released result, which is public; protects {listed(units, 'or')}"

    @property
    def _records(self) -> list[dict[str, Any]]:
        """The records of the parts of a joined frame; otherwise the record of the frame itself."""
        return list(self._facts.get("parts", [self._facts]))

    @property
    def _stamp(self) -> str | None:
        """The warning that some part is not private, or None if all are."""
        return next((part["warning"] for part in self._records if "warning" in part), None)


ELSEWHERE = {  # names that users may look for, and their replacements here
    **dict.fromkeys(("rename", "replace", "map", "with_columns", "assign"), "relabel({...}, columns={...})"),
    **dict.fromkeys(("query", "where", "loc", "iloc", "drop", "slice", "tail", "sample"), "filter(mask)"),
    **dict.fromkeys(("sort_values", "sort_by", "order_by", "sort_index"), 'sort("column", descending=True)'),
    **dict.fromkeys(("limit", "nlargest", "top_k_rows"), "sort(...).dp.head(n)"),
    **dict.fromkeys(("pivot", "unstack", "pivot_table"), 'wide("column")'),
    **dict.fromkeys(("to_csv", "write_csv"), 'table("csv")'),
    **dict.fromkeys(("to_excel", "write_excel"), 'table("excel")'),
    "to_latex": 'table("latex")',
    "to_markdown": 'table("markdown")',
    "to_html": 'table("html"), or write_html(path)',
    **dict.fromkeys(("to_parquet", "save", "write"), "write_parquet(path)"),
    **dict.fromkeys(("show", "chart", "draw"), "plot()"),
    **dict.fromkeys(("cost", "price", "epsilon"), 'provenance["cost"]'),
    **dict.fromkeys(("describe", "summary"), "statement()"),
    **dict.fromkeys(("error", "confidence_intervals", "intervals"), "errors()"),
    **dict.fromkeys(("diff", "pct_change"), "difference(), or change() in percent"),
    **dict.fromkeys(("cumsum", "cum_sum"), "cumulative()"),
    **dict.fromkeys(("rolling_mean", "moving_average"), "rolling(n)"),
    **dict.fromkeys(("to_json", "to_dict", "record", "metadata"), "provenance"),
}


def _instead_of(name: str) -> str:
    """Suggest a replacement for a name that a result does not have."""
    if name in ELSEWHERE:
        return f" Write {ELSEWHERE[name]}."
    near = closest(name, OF_RESULTS)
    return f" Did you mean {near!r}?" if near else ""


def _errors_of_noise(frame: Any, facts: Mapping[str, Any], *, cells: bool) -> dict[str, list[Any]]:
    places = provenance.checked_numbers(frame, facts)
    if cells:
        return provenance.errors_of_cells(frame, facts, places)
    return build.as_columns(provenance.errors(build.reordered(frame, places), facts))


def _array(frame: Any, facts: Mapping[str, Any], name: str) -> Any:
    """Return a column of one release as an array in the shape of its cells."""
    if name not in facts["columns"]:
        raise InvalidArgument(f"name must be one of {facts['columns']}, not {shown(name)}.")
    places = provenance.checked_numbers(frame, facts)
    return build.numbers(frame, name)[places].reshape(foreign.shape(facts))
