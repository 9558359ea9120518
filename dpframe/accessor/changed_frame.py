"""Changes to results that keep the record of the release: rename, filter, sort, cut, make wide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from dpframe.display import layout
from dpframe.display.subjects import is_pairs
from dpframe.errors import InvalidArgument, shown
from dpframe.errors.tracebacks import trimmed
from dpframe.frames import build, changes, foreign
from dpframe.frames.build import public
from dpframe.frames.columns import square
from dpframe.release import provenance

Labels = Mapping[str, Mapping[str, Any]]  # {"columns": {name: word}, "values": {column: {key: word}}}


class ChangedFrame:
    """The part of `ReleasedFrame` that changes how a result is shown.

    Every change keeps the record of the release.
    """

    def __init__(self, frame: Any, facts: dict[str, Any]) -> None:
        self._frame, self._facts = frame, facts

    def _alone(self, verb: str) -> dict[str, Any]:
        """Return the record of one release, and refuse joined releases."""
        if "parts" in self._facts:
            raise InvalidArgument(
                f"{verb} must be asked of one release, and this frame joins {len(self._facts['parts'])}. "
                f"Write [part.dp.{verb}(...) for part in frame.dp.parts]."
            )
        return self._facts

    def _release(self, verb: str) -> changes.Release:
        """Check the frame, and return it with the released row of each of its numbers."""
        record = self._alone(verb)
        if foreign.is_reports(record):
            raise InvalidArgument(
                f"{verb} must be asked of released numbers, and reports are estimated as a whole. "
                f"Write dpf.local.estimate(reports).dp.{verb}(...)."
            )
        facts = provenance.counted(record)
        check = provenance.checked_numbers if facts["measures"] else provenance.checked
        return changes.release_of(self._frame, record, facts, check(self._frame, facts))

    def _labeled(self, labels: Labels | None, verb: str) -> Self:
        """Return the result with the display names of `labels`, as charts, tables and pages show it."""
        if labels is None:
            return self
        layout.check_labels(labels)
        values, columns = labels.get("values"), labels.get("columns")
        if not values and not columns and isinstance(values or {}, Mapping) and isinstance(columns or {}, Mapping):
            return self
        frame = changes.relabeled(self._release(verb), values, columns, of="labels: ")
        record = build.record_of(frame)
        assert record is not None  # `relabeled` attached it
        return type(self)(frame, record)

    @trimmed
    def relabel(
        self,
        values: Mapping[str, Mapping[Any, str]] | None = None,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> Any:
        """Rename columns and translate keys; the result keeps its record.

        Parameters
        ----------
        values : dict, optional
            The display names of keys, by column: ``{"sex": {0: "Men", 1: "Women"}}``. Keys without a name keep their
            own text, and the column becomes text. Names of keys that do not exist have no effect, but at least one key
            of the column must exist. ``None`` names the missing key. Bins cannot be renamed: they show their edges.
        columns : dict, optional
            New names for columns of keys or bins and for statistics: ``{"amount_sum": "Revenue"}``. The other columns
            of a statistic follow: ``Revenue_error``.

        Returns
        -------
        DataFrame
            A new frame with the rows and the order of this one (and the index of pandas). Charts, tables, statements
            and files work on it; ``.dp.provenance["shown"]["steps"]`` records the changes.

        Raises
        ------
        InvalidArgument, InvalidType, MissingArgument
            If a name is not in the result, two columns or keys would have the same name, or the frame was changed by
            other means.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"sex": [0, 1, 1], "cost": [10.0, 20.0, 30.0]})
        >>> sums = stays.dp.group_by("sex", keys=[0, 1]).agg(
        ...     cost=dpf.sum("cost", bounds=(0, 100)), epsilon=1.0, denoise=None, ledger=dpf.Ledger(epsilon=1)
        ... )
        >>> words = sums.dp.relabel({"sex": {0: "Men", 1: "Women"}}, columns={"cost": "Revenue"})
        >>> words.columns, words["sex"].to_list()
        (['sex', 'Revenue', 'Revenue_error'], ['Men', 'Women'])
        >>> words.dp.provenance["cost"] == sums.dp.provenance["cost"]
        True
        """
        return changes.relabeled(self._release("relabel"), values, columns)

    @trimmed
    def filter(self, mask_or_mapping: Any) -> Any:
        """Keep some rows; the result keeps its record, and its notes say that rows were left out.

        Parameters
        ----------
        mask_or_mapping : Boolean column, list, array or expression; or dict
            A Boolean for each row of the frame, such as ``result["n"] > 10``, or for Polars an expression,
            ``pl.col("n") > 10``; missing values are false. Or a dict of one key or a list of keys by column:
            ``{"ward": ["A", "B"], "sex": 0}``; ``None`` is the missing key. For bins, name the edges:
            ``{"age_left": [20, 40]}``.

        Returns
        -------
        DataFrame
            A new frame with the rows that are kept, in their order.

        Raises
        ------
        InvalidArgument, InvalidType
            If it keeps no row, names a key or a column that does not exist, or does not fit the rows.

        Notes
        -----
        It costs nothing: the numbers are public. The 95% intervals were made for every row. Rows that are chosen for
        their large noisy numbers are likely too large: choose by keys if intervals matter.

        A choice is by keys if a dict names them, or an expression of Polars reads keys alone. A mask does not record
        how it was made, even a mask of ``result["ward"]``: its rows count as chosen by numbers. Keys that you read from
        the largest numbers, as in ``{"ward": top}``, choose by numbers too; dpframe cannot detect this.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A", "B", "B", "C"]})
        >>> counts = stays.dp.group_by("ward", keys=["A", "B", "C"]).count(epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> some = counts.dp.filter({"ward": ["A", "C"]})
        >>> some["ward"].to_list(), some.dp.provenance["shown"]["steps"][0]["where"]
        (['A', 'C'], {'ward': ['A', 'C']})
        """
        return changes.filtered(self._release("filter"), mask_or_mapping)

    @trimmed
    def sort(self, *columns: str, descending: bool | list[bool] = False) -> Any:
        """Sort the rows; the result keeps its record, and charts, tables and pages follow its order.

        Parameters
        ----------
        *columns : str
            Columns of keys, bins or numbers, the most important first. Missing values come last.
        descending : bool or list of bool
            Whether the largest comes first; a list has one for each column.

        Returns
        -------
        DataFrame
            A new frame with the same rows. Equal rows keep their order.

        Raises
        ------
        InvalidArgument, InvalidType, MissingArgument
            If no column is named, or a column does not exist.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A"] * 2 + ["B"] * 90 + ["C"] * 40})
        >>> counts = stays.dp.group_by("ward", keys=["A", "B", "C"]).count(epsilon=9.0, ledger=dpf.Ledger(epsilon=9))
        >>> counts.dp.sort("count", descending=True)["ward"].to_list()
        ['B', 'C', 'A']
        """
        return changes.sorted_by(self._release("sort"), columns, descending)

    @trimmed
    def head(self, n: int) -> Any:
        """Keep the first `n` rows; the result keeps its record, and its notes say that rows were left out.

        Parameters
        ----------
        n : int
            At least 1. If there are fewer rows, all are kept.

        Returns
        -------
        DataFrame
            A new frame. Its notes explain the effect on intervals, as in `filter`, after a `sort` by a number, or if
            the order is not by `sort`, such as that of ``sort_values`` of pandas.

        Raises
        ------
        InvalidArgument, InvalidType
            If `n` is not a whole number of at least 1.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A"] * 2 + ["B"] * 90 + ["C"] * 40})
        >>> counts = stays.dp.group_by("ward", keys=["A", "B", "C"]).count(epsilon=9.0, ledger=dpf.Ledger(epsilon=9))
        >>> largest = counts.dp.sort("count", descending=True).dp.head(1)
        >>> largest["ward"].to_list()
        ['B']
        """
        return changes.first(self._release("head"), n)

    @trimmed
    def select(self, *columns: str) -> Any:
        """Keep some statistics, each with its errors; the result keeps its record.

        Parameters
        ----------
        *columns : str
            Statistics, and columns of keys in the order that you want. A statistic keeps all of its columns
            (``n``, ``n_noisy``, ``n_error``), since a number is read with its error. If no key is named, all are kept.

        Returns
        -------
        DataFrame
            A new frame with the same rows, keys first.

        Raises
        ------
        InvalidArgument, MissingArgument
            If a name is not in the result, or the remaining keys do not distinguish the rows.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A", "B"], "cost": [10.0, 20.0]})
        >>> both = stays.dp.group_by("ward", keys=["A", "B"]).agg(
        ...     n=dpf.count(), cost=dpf.mean("cost", bounds=(0, 100)), epsilon=1.0, ledger=dpf.Ledger(epsilon=1)
        ... )
        >>> both.dp.select("cost").columns
        ['ward', 'cost', 'cost_error']
        """
        return changes.selected(self._release("select"), columns)

    @trimmed
    def wide(self, column: str) -> Any:
        """Turn the keys of one column into columns; the result keeps its record.

        Parameters
        ----------
        column : str
            A column of keys, or for bins the column that was cut, such as ``"age"``. The missing key becomes a column
            ``missing``. A result with totals (``cube=True``) gets a column ``all``.

        Returns
        -------
        DataFrame
            One row for each of the other keys. With one statistic, the columns have the names of the keys (``Men``,
            ``Men_error``). With several, they have the names of statistic and key (``n_Men``). Each is a statistic of
            the new frame.

        Raises
        ------
        InvalidArgument
            If the column is not a column of keys, a key is the empty string, or a pair of keys has no row.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> stays = pl.DataFrame({"ward": ["A", "B"], "sex": ["f", "m"]})
        >>> counts = stays.dp.group_by("ward", "sex", keys={"ward": ["A", "B"], "sex": ["f", "m"]}).count(
        ...     epsilon=1.0, denoise=None, ledger=dpf.Ledger(epsilon=1)
        ... )
        >>> counts.dp.wide("sex").columns
        ['ward', 'f', 'f_error', 'm', 'm_error']
        """
        return changes.widened(self._release("wide"), column)

    @trimmed
    def matrix(self, value: str | None = None) -> Any:
        """Make the square table of a `correlation` or `covariance`.

        Parameters
        ----------
        value : str, optional
            The released column that fills it, such as ``"correlation_error"``; by default the correlation or
            covariance.

        Returns
        -------
        DataFrame
            A public frame without a record, with a row and a column for each column of the query. In pandas their names
            are the index; in Polars they are the first column, ``column``. The diagonal of a correlation is 1, and its
            error 0. The diagonal of a covariance is NaN: variances are not released.

        Raises
        ------
        InvalidArgument
            If the result is neither of these, has several groups, or has no such column.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31.0, 45.0, 62.0], "cost": [10.0, 20.0, 30.0]})
        >>> bounds = {"age": (0, 100), "cost": (0, 50)}
        >>> pairs = people.dp.correlation(["age", "cost"], bounds=bounds, epsilon=1.0, ledger=dpf.Ledger(epsilon=1))
        >>> pairs.dp.matrix().columns
        ['column', 'age', 'cost']
        """
        release = self._release("matrix")
        facts = release.facts
        if not is_pairs(facts["cells"]) or len(release.statistics) != 1:
            raise InvalidArgument(
                "matrix must be asked of a correlation or covariance, whose rows are pairs of columns. "
                "For other results write .dp.wide(column)."
            )
        pairs = foreign.shape(facts)[-1]
        if len(release.frame) != pairs or len({*(release.cells[0] // pairs).tolist()}) != 1:
            raise InvalidArgument("matrix must be of one group. Choose one first: result.dp.filter({...}).dp.matrix().")
        ((name, columns),) = release.statistics.items()
        value = name if value is None else value
        if value not in columns:
            raise InvalidArgument(f"value must be one of {', '.join(map(repr, columns))}, not {shown(value)}.")
        is_correlation = facts["measures"][name]["verb"] == "correlation"
        diagonal = 0.0 if is_correlation and value == f"{name}_error" else 1.0 if is_correlation else float("nan")
        left, right = facts["cells"][-1]["columns"]
        return public(square(release.frame, left, right, value, diagonal))
