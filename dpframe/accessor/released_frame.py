"""What ``.dp`` is on a released result: public numbers, and the record of how they came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dpframe.display import result_charts, result_tables
from dpframe.errors import AlreadyReleased, InvalidArgument, shown
from dpframe.frames import build
from dpframe.frames.kinds import library_of
from dpframe.release import provenance

OF_RESULTS = ("provenance", "errors", "plot", "table", "to_numpy", "write_parquet")


class ReleasedFrame:
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

    verbs: ClassVar[tuple[str, ...]] = (
        "count",
        "sum",
        "mean",
        "histogram",
        "mode",
        "contributions",
        "agg",
        "group_by",
        "preview",
    )

    def __init__(self, frame: Any, facts: dict[str, Any]) -> None:
        self._frame, self._facts = frame, facts

    @property
    def provenance(self) -> dict[str, Any]:
        """What was asked, how it was protected, what it cost: plain JSON values (``docs/provenance.md``)."""
        return provenance.current(self._frame, self._facts)

    def plot(self) -> Any:
        """Bars with 95% error bars, or a map of a grid.

        Returns
        -------
        altair.Chart
            It shows itself in a notebook; ``.save("ages.png")`` writes it.

        Raises
        ------
        ImportError
            Without the extra ``dpframe[plot]``.
        """
        places = provenance.checked_numbers(self._frame, self._facts)
        frame = build.reordered(self._frame, places) if "levels" in self._facts else self._frame
        return result_charts.of_result(frame, self._facts)

    def table(self) -> Any:
        """A table for a report: each value with its 95% error, and below it what it cost.

        Returns
        -------
        great_tables.GT
            It shows itself in a notebook; ``.as_raw_html()`` gives its HTML.

        Raises
        ------
        ImportError
            Without the extra ``dpframe[tables]``.
        """
        provenance.checked_numbers(self._frame, self._facts)
        return result_tables.of_result(self._frame, self._facts)

    def errors(self) -> Any:
        """How far off the released numbers may be: the intervals of the noise, and the error of what was denoised.

        Returns
        -------
        DataFrame
            One row for each released column (with ``rollup=True`` for each level of it), in the library of the result:
            ``column``; ``by``, the columns of its cells; ``interval``, the half-width of the 95% interval around the
            *noisy* value, the largest of all cells; ``noisy_rmse``, the standard deviation of the noise (null for a
            mean, whose error depends on the cell); ``denoised_rmse``, the root mean squared error that denoising
            expects of itself over all cells, null where nothing was denoised or nothing is known. Denoised values are
            biased, and this is no interval: see ``docs/denoising.md``.

        Raises
        ------
        InvalidArgument
            If the frame lost columns or rows that were released.

        Examples
        --------
        >>> import dpframe as dpf, polars as pl
        >>> people = pl.DataFrame({"age": [31, 45, 62]})
        >>> ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=0.5, ledger=dpf.Ledger(epsilon=1))
        >>> ages.dp.errors().columns
        ['column', 'by', 'interval', 'noisy_rmse', 'denoised_rmse']
        """
        places = provenance.checked_numbers(self._frame, self._facts)
        rows = provenance.errors(build.reordered(self._frame, places), self._facts)
        return build.of_rows(rows, library_of(self._frame))

    def to_numpy(self, name: str) -> Any:
        """A released column as an array in the shape of the cells.

        Parameters
        ----------
        name : str
            A column of released numbers, such as ``"count"`` or ``"count_error"``.

        Returns
        -------
        array of float64
            One axis for each column of keys or bins (one together for a frame of combinations); ``()`` for a single
            number.

        Raises
        ------
        InvalidArgument
            If there is no such column of numbers.
        """
        if name not in self._facts["columns"]:
            raise InvalidArgument(f"name must be one of {self._facts['columns']}, not {shown(name)}.")
        places = provenance.checked_numbers(self._frame, self._facts)
        return build.numbers(self._frame, name)[places].reshape(provenance.shape(self._facts))

    def write_parquet(self, path: Any) -> None:
        """Write the frame with its provenance; `dpframe.read_parquet` reads both.

        Raises
        ------
        InvalidArgument
            If the frame holds columns that no release covers, or released numbers or labels that were changed. Their
            rows may be in any order. An index and other attributes of a pandas frame are not written.
        """
        provenance.checked(self._frame, self._facts)
        build.write_parquet(self._frame, path, self._facts)

    if not TYPE_CHECKING:  # which must see a mistyped name

        def __getattr__(self, name: str) -> Any:
            if name in self.verbs:
                raise AlreadyReleased(
                    f"this frame is a released result: it is public, so use it directly, without .dp.{name}."
                )
            raise AttributeError(f".dp of a result has no {name!r}")

    def __repr__(self) -> str:
        return f"<.dp of a released result: {', '.join(OF_RESULTS)}>"
