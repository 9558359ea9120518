"""Released columns as forms of noise: the draws that are in each number, and their weights.

A draw is identified by its release (16 random bytes, drawn at the charge), by the number of its Total in the release,
and by its entry. A number that is used twice, as in a replay, has the same draws. Two releases never share a draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.derived.linear import Block, Linear, Quotient, Sparse
from dpframe.derived.sums_of_noise import Law, law_of
from dpframe.display.rounding import AS_IT_WAS
from dpframe.errors import InvalidArgument, InvalidType, NoProvenance, closest, shown, with_article
from dpframe.frames import build, foreign
from dpframe.frames.changes import view_of
from dpframe.frames.kinds import is_frame, is_missing, library_of
from dpframe.frames.prints import Places
from dpframe.queries.contrasts import ContrastDesign, Subset
from dpframe.queries.limits import grid_steps, step_length
from dpframe.queries.prefix_sums import weights_of_period, weights_of_total
from dpframe.queries.query import ERROR, NOISY
from dpframe.queries.sameness import same_key
from dpframe.queries.statistics.ranges import Ranges
from dpframe.release import provenance

Floats = NDArray[np.float64]
Facts = Mapping[str, Any]

QUOTIENTS = ("mean", "proportion", "ratio")  # verbs whose values are quotients of noisy totals
READ_OFF = (*QUOTIENTS, "count")  # verbs that can use the totals in a record; a count may come from those of a mean
MOST_WEIGHTS = 2**24  # the largest size of the matrix for range sums over bins
ENDS = (ERROR, "_low", "_high")
TOTAL = ("total",)  # the token of a total, which has no key
WAYS = {  # by verb: the advice for a number whose noise has no known law here
    "ecdf": "Release counts of bins (histogram), and combine these.",
    "quantile": "Compare quantiles by their own intervals.",
    "share": "Release counts (without normalize=True), and take result.dp.share(by=...).",
    "variance": "Release dpf.sum and dpf.count, and combine these.",
    "std": "Release dpf.sum and dpf.count, and combine these.",
    "covariance": "Release dpf.sum and dpf.count, and combine these.",
    "correlation": "Release dpf.sum and dpf.count, and combine these.",
}


@dataclass(frozen=True, eq=False)
class Source:
    """A released result under its name in an expression, with its rows in the order of the declared cells.

    `places` has the rows of the caller's frame at which these rows stand. `record` is the record of that frame, and
    `facts` is the record of the rows and columns that it shows.
    """

    name: str
    frame: Any
    facts: Facts
    places: Places
    record: Facts

    @classmethod
    def of(cls, name: str, frame: Any, verb: str | None = None) -> Source:
        """Return a released result or some of its rows as a source; refuse numbers without a known law of noise.

        `verb` is the name of the ``.dp`` method that asks, if there is one.
        """
        if not is_frame(frame):
            raise InvalidType(
                f"{name} must be a released frame, not {shown(frame, kind=True)}. Pass the result itself."
            )
        record = build.record_of(frame)
        if record is None:
            raise NoProvenance(
                f"{name} must carry its provenance, and this frame has none. Pass the result itself, before it is "
                "reshaped; its .dp.filter(...), .dp.sort(...) and .dp.relabel(...) keep the record."
            )
        _check_one_release(name, record, verb)
        facts = provenance.counted(record)
        _check_traceable(name, facts)
        places = provenance.checked_numbers(frame, facts)
        return cls(name, build.reordered(frame, places), facts, places, record)

    @cached_property
    def whole(self) -> Source:
        """The whole release behind the rows that it shows; numbers that are not shown are NaN."""
        view = view_of(self.facts)
        if view is None:
            return self
        base = provenance.counted({name: fact for name, fact in self.record.items() if name != "shown"})
        columns: dict[str, Floats] = {}
        for name, (of, at) in view.measures.items():
            for end in ("", NOISY):
                if name + end in self.facts["columns"]:
                    column = columns.setdefault(of + end, np.full(view.released, np.nan))
                    column[view.cells[at]] = build.numbers(self.frame, name + end)
        known = {of: said for of, said in base["measures"].items() if of in columns or "totals" in said}
        facts, frame = {**base, "measures": known}, build.frame_of(columns, "polars")
        return Source(self.name, frame, facts, np.arange(view.released, dtype=np.int64), facts)

    def released(self, measure: str) -> tuple[str, Any]:
        """Return the name of a statistic in the whole release, and the rows of that release that are shown."""
        view = view_of(self.facts)
        if view is None:
            return measure, slice(None)
        of, at = view.measures[measure]
        return of, view.cells[at]

    @cached_property
    def keys(self) -> dict[str, NDArray[np.int64]]:
        """The declared key of each row, by the first released column of each axis; -1 if the row is a total over it."""
        view, facts = view_of(self.facts), self.whole.facts
        cells = np.arange(self.rows) if view is None else view.cells[0]
        axes = facts["cells"]
        every = {"columns": [name for axis in axes for name in axis["columns"]], "rows": foreign.rows_of(facts)}
        codes = {axis["columns"][0]: np.full(self.rows, -1, dtype=np.int64) for axis in axes}
        start = 0
        for level in facts.get("levels", [every]):
            inside = np.flatnonzero((cells >= start) & (cells < start + level["rows"]))
            kept = [axis for axis in axes if {*axis["columns"]} <= {*level["columns"]}]
            each = np.unravel_index(cells[inside] - start, [axis["size"] for axis in kept]) if kept else ()
            for axis, code in zip(kept, each, strict=True):
                codes[axis["columns"][0]][inside] = code
            start += level["rows"]
        return codes

    @cached_property
    def labels(self) -> list[str]:
        """The columns of labels, which identify the rows."""
        return foreign.labels_of(self.facts)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.frame)

    @property
    def library(self) -> str:
        """The library of the frame."""
        return library_of(self.frame)

    def tokens(self, labels: list[str]) -> list[tuple[Any, ...]]:
        """Return the labels of each row in these columns as tokens, which are equal for equal keys in any library.

        A missing label is a missing key, or the mark of a total in a result with subtotals.
        """
        missing = TOTAL if "levels" in self.facts else None
        columns = [self.frame[name].to_list() for name in labels]
        each = [[missing if is_missing(value) else same_key(value) for value in column] for column in columns]
        return list(zip(*each, strict=True)) if each else [()] * self.rows

    @property
    def identity(self) -> tuple[Any, ...]:
        """The identity of the release: its random bytes, or the hash of its numbers if the record has none."""
        if "release" in self.facts:
            return (self.facts["release"], self.facts.get("part"))
        return ("record", self.facts["sha256"])

    @property
    def measures(self) -> dict[str, Any]:
        """The statistics by name."""
        return dict(self.facts["measures"])

    def unbiased(self, measure: str) -> str:
        """Return the name of the column with the unbiased values of a statistic."""
        found = self._known_unbiased(measure)
        if found is None:
            raise InvalidArgument(
                f"{self.name}.{measure} must be unbiased, and it was adjusted and released with keep_noisy=False. "
                "Leave keep_noisy out of the next release."
            )
        return found

    def _known_unbiased(self, measure: str) -> str | None:
        denoise = self.facts["measures"][measure]["denoise"]
        if not denoise:
            return measure
        if measure + NOISY in self.facts["columns"]:
            return measure + NOISY
        return measure if all(step.get("chose") == AS_IT_WAS for step in denoise) else None

    def _accepted(self) -> list[str]:
        """Return the columns that an expression may name, or all statistics if there is no such column."""
        measures = list(self.facts["measures"])
        return [name for name in map(self._known_unbiased, measures) if name is not None] or measures

    def only_measure(self) -> str:
        """Return the name of the only statistic; refuse several."""
        measures = list(self.facts["measures"])
        if len(measures) > 1:
            accepted = self._accepted()
            raise InvalidArgument(
                f"expression must name a column of {self.name}, which has {shown(accepted)}. "
                f"Write for instance {self.name}.{next(filter(is_written, accepted), accepted[0])}."
            )
        return str(measures[0])

    def form(self, column: str) -> Linear | Quotient:
        """Return a released column as a form of the noise."""
        measure = self.checked_column(column)
        if self.whole is not self:
            of, rows = self.released(measure)
            return self.whole.form(self.whole.unbiased(of)).at(rows)
        said, way_out = self.facts["measures"][measure], "Ask its author for another file."
        if said["verb"] == "mean" and "totals" in said and "bounds" not in said:
            raise _unknown(self, measure, "a mean of a record without its bounds", way_out)
        form = form_of(self, measure)
        if said["verb"] in QUOTIENTS and not isinstance(form, Quotient):
            raise _unknown(self, measure, f"a {said['verb']} of a record that contradicts itself", way_out)
        return form

    def checked_column(self, column: str) -> str:
        """Return the name of the statistic to which a column of unbiased values belongs."""
        columns, measures, accepted = self.facts["columns"], self.facts["measures"], self._accepted()
        if column not in columns:
            near = closest(column, [*measures, *accepted])
            near = self._known_unbiased(near) if near and near in measures else near
            hint = f"It has {shown(accepted)}."
            if near:
                hint = f"Did you mean {near!r}?" if is_written(near) else renamed(near)
            raise InvalidArgument(f"{self.name}.{column} must be a released column, and there is none. {hint}")
        measure = column if column in measures else column.removesuffix(NOISY)
        if measure not in measures:
            raise InvalidArgument(
                f"{self.name}.{column} must be a released number, not the end or the size of an interval. "
                f"Name one of {shown(accepted)}."
            )
        unbiased = self.unbiased(measure)
        if column != unbiased and not column.endswith(NOISY):
            raise InvalidArgument(f"{self.name}.{column} must be unbiased, and it was adjusted: use {unbiased}.")
        return measure


def is_written(column: str) -> bool:
    """Return whether an expression can name a column: it must be a Python identifier, and no keyword."""
    return column.isidentifier() and not iskeyword(column)


def renamed(column: str) -> str:
    """Return the advice to rename a column that an expression cannot name."""
    return f"Rename {shown(column)} first: result.dp.relabel(columns={{{shown(column)}: 'name'}})."


def _check_one_release(name: str, facts: Facts, verb: str | None) -> None:
    """Refuse joined releases, derived results and top-k results."""
    if "parts" in facts:
        each = f"Write [part.dp.{verb}(...) for part in frame.dp.parts]"
        way = "Pass each part by itself: frame.dp.parts" if verb is None else each
        raise InvalidArgument(f"{name} must be one release, and this frame joins {len(facts['parts'])}. {way}.")
    if facts["schema"] == foreign.DERIVED:
        raise InvalidArgument(
            f"{name} must be a release, and this is computed from some already. Pass the released frames themselves."
        )
    if "top" in facts:
        raise InvalidArgument(
            f"{name} must have a number for every declared cell, and a top-k has some of them. Release counts of all."
        )


def _check_traceable(name: str, facts: Facts) -> None:
    """Refuse rounded numbers, rows that were chosen by their noise, and estimates of the local model."""
    if "rounded" in facts:
        raise InvalidArgument(
            f"{name} must have its numbers as they were released, and these were rounded. Pass the released frame."
        )
    if (view := view_of(facts)) is not None and view.chosen:
        raise InvalidArgument(
            f"{name} must have rows that keys choose, and {view.chosen}: no interval covers that. Compute first and "
            "choose after, or choose from the released frame by keys: "
            'result.dp.filter({"ward": ["A", "B"]}), result.dp.sort("ward").dp.head(2).'
        )
    if "model" in facts:
        raise InvalidArgument(
            f"{name} must be noise that was added to totals, and this is of the local model. Use its own intervals."
        )


def check_shown(source: Source, verb: str) -> None:
    """Refuse a result without rows, which discovered keys can give."""
    if not source.rows:
        raise InvalidArgument(
            f"{verb} must be asked of a result with rows, and no group is shown here. Read it as it is."
        )


def form_of(source: Source, measure: str) -> Linear | Quotient:
    """Return the form of a statistic, row by row."""
    facts, said = source.facts, source.facts["measures"][measure]
    if "stream" in facts:
        return _of_stream(source, measure)
    if said["verb"] in WAYS:
        raise _unknown(source, measure, with_article(said["verb"]), WAYS[said["verb"]])
    if "bounds_of_groups" in said:
        raise _unknown(source, measure, "of groups with bounds of their own", "Release it with one pair of bounds.")
    if "looks" in said:
        raise _unknown(source, measure, "measured in several looks", "Release it with denoise=None, or fewer bins.")
    laws = [_law(source, measure, number) for number in said["statistics"]]
    values = build.numbers(source.frame, source.unbiased(measure))
    if "deviations" in said:
        return Linear(values, _of_tables(source, said, laws[0]))
    if "sums" in said:
        return Linear(values, _of_bins(source, said, laws[0]))
    if said["verb"] not in READ_OFF and ("totals" in said or not foreign.is_one_total(said)):  # a custom statistic
        raise _unknown(source, measure, f"a {shown(said['verb'])}", "Compare it by its own intervals.")
    if "totals" in said:
        return _of_totals(source, said, laws)
    if not foreign.is_one_total(said):
        raise _unknown(source, measure, f"a {said['verb']} of a record without its totals", "Release it again.")
    levels = facts.get("levels") or [{"rows": source.rows}]
    noise, start = {}, 0
    for number, law, level in zip(said["statistics"], laws, levels, strict=True):
        block = Block((*source.identity, number), law, level["rows"])
        noise[block.key] = (block, _placed(source.rows, start, level["rows"]))
        start += level["rows"]
    return Linear(values, noise)


def constant(value: float, rows: int) -> Linear:
    """Return a plain number for each row, as a form."""
    return Linear(np.full(rows, value), {})


def _law(source: Source, measure: str, number: int) -> Law:
    statistic = source.facts["statistics"][number]
    law = law_of(statistic)
    if law is not None:
        return law
    if "threshold" in statistic:
        raise _unknown(
            source,
            measure,
            "the number by which its groups were chosen",
            "Declare the groups that were found, and count them in another release.",
        )
    raise _unknown(source, measure, f"of the noise {statistic['noise']}", "Release it with Laplace or Gaussian noise.")


def _unknown(source: Source, measure: str, what: str, way_out: str) -> InvalidArgument:
    return InvalidArgument(
        f"{source.name}.{measure} must be a number whose noise has a known law, and it is {what}. {way_out}"
    )


def _placed(rows: int, start: int, size: int) -> Sparse:
    """Return the weights of rows that each hold one draw, from row `start` on."""
    from scipy.sparse import csr_array

    places = np.arange(size)
    return csr_array((np.ones(size), (start + places, places)), shape=(rows, size))


def _of_totals(source: Source, said: Facts, laws: list[Law]) -> Linear | Quotient:
    """Return the quotient of noisy totals that a mean, a proportion or a ratio is; for a count, a sum of totals."""
    rows, wide = source.rows, []
    for number, law, values in zip(said["statistics"], laws, said["totals"], strict=True):
        block = Block((*source.identity, number), law, len(values))
        width = len(values) // max(rows, 1)
        wide.append([_entry(block, values, rows, width, place) for place in range(width)])
    if said["verb"] == "count":
        return _sum(wide[0])
    if said["verb"] == "ratio":
        return Quotient(wide[0][0], wide[1][0])
    lower, upper = _real_bounds(said)
    if len(wide) == 2:  # a centered sum and a count
        (centred,), (present,) = wide
        middle = (grid_steps(said["bounds"])[0] + grid_steps(said["bounds"])[1]) // 2 * step_length(said["bounds"])
        return Quotient(centred.sum_with(present.times(middle)), present)
    entries = wide[0]
    if len(entries) == 3:  # the vector of a variance: t is the last entry plus half of the middle one
        above, whole = entries[2].sum_with(entries[1].times(0.5)), _sum(entries)
    else:
        above, whole = entries[0], _sum(entries)
    return Quotient(above.times(upper - lower).sum_with(whole.times(lower)), whole)


def _real_bounds(said: Facts) -> tuple[float, float]:
    """Return the bounds to which values were really clipped: 0 and 1 for a proportion."""
    if "bounds" not in said:
        return 0.0, 1.0
    lower, upper = (step * step_length(said["bounds"]) for step in grid_steps(said["bounds"]))
    return lower, upper


def _entry(block: Block, values: list[float], rows: int, width: int, place: int) -> Linear:
    """Return one of the entries that a Total has for each cell."""
    from scipy.sparse import csr_array

    places = np.arange(rows) * width + place
    weights = csr_array((np.ones(rows), (np.arange(rows), places)), shape=(rows, block.size))
    return Linear(np.asarray(values, dtype=np.float64)[places], {block.key: (block, weights)})


def _sum(entries: list[Linear]) -> Linear:
    whole = entries[0]
    for entry in entries[1:]:
        whole = whole.sum_with(entry)
    return whole


def _of_bins(source: Source, said: Facts, law: Law) -> dict[tuple[Any, ...], tuple[Block, Sparse]]:
    """Return the draws behind bins for range queries, from the inverse of their design."""
    from scipy.sparse import csr_array, eye_array, kron

    binned = [axis["size"] for axis in source.facts["cells"] if "bins" in axis]
    for shape in (tuple(binned[-1:]), tuple(binned[-2:])):
        statistic = Ranges(shape, law.p == 1.0)
        if math.prod(shape) * statistic.design.width <= MOST_WEIGHTS and statistic.facts()["sums"] == said["sums"]:  # type: ignore[index]
            break
    else:
        raise _unknown(source, said["verb"], "of very many bins", "Release counts of fewer bins.")
    weights = statistic.bin_weights()
    groups = source.rows // weights.shape[0]
    block = Block((*source.identity, said["statistics"][0]), law, groups * weights.shape[1])
    return {block.key: (block, csr_array(kron(eye_array(groups), csr_array(weights))))}


def _of_stream(source: Source, measure: str) -> Linear:
    """Return the form of a stream's statistic: the draws of all periods up to one, from the inverse of the design."""
    from scipy.sparse import csr_array, eye_array, kron

    facts, period = source.facts, source.facts["period"]
    if "release" not in facts:
        raise _unknown(source, measure, "of a stream that was begun before dpframe 0.3", "Use its own intervals.")
    kept = [number for number in range(1, period["number"] + 1) if number not in period.get("lost", ())]
    each = weights_of_total(kept) if measure == "total" else weights_of_period(kept)
    law = _law(source, measure, 0)
    block = Block((facts["release"], "stream"), law, facts["stream"]["periods"] * source.rows)
    row = np.zeros((1, facts["stream"]["periods"]))
    row[0, np.asarray(kept) - 1] = each
    weights = csr_array(kron(csr_array(row), eye_array(source.rows)))
    return Linear(build.numbers(source.frame, measure), {block.key: (block, weights)})


def _of_tables(source: Source, said: Facts, law: Law) -> dict[tuple[Any, ...], tuple[Block, Sparse]]:
    """Return the draws behind the tables of marginals: the noise of their contrasts."""
    sizes = tuple(axis["size"] for axis in source.facts["cells"])
    design = ContrastDesign(sizes, said["degree"], said["objective"])
    block = Block(
        (*source.identity, said["statistics"][0]),
        law,
        source.rows,
        lambda weights: contrast_weights(design, weights),
        design.scales * law.scale,
    )
    return {block.key: (block, _placed(source.rows, 0, source.rows))}


def contrast_weights(design: ContrastDesign, weights: Sparse) -> Floats:
    """Return the exact weights of contrasts in weighted sums of the cells of all tables: (rows, contrasts).

    A table M is the sum of the effects of its parts A, each spread evenly over the attributes that A lacks. So the
    weights of A are those of M summed over these attributes, divided by their cells, and added up over all M with A. An
    effect is H^T diag(1 / ||h||^2) of the contrasts, so the weights of these are diag(1 / ||h||^2) H of those of A.
    """
    rows = weights.shape[0]
    influence: dict[Subset, Floats] = {
        part: np.zeros((rows, *(design.sizes[i] for i in part))) for part in design.parts
    }
    start = 0
    for table in design.tables:
        stop = start + design.cells(table)
        mine = weights[:, start:stop]
        start = stop
        if not mine.nnz:
            continue
        cells = mine.toarray().reshape(rows, *(design.sizes[i] for i in table))
        for part in design.parts:
            if set(part) <= set(table):
                others = tuple(axis + 1 for axis, i in enumerate(table) if i not in part)
                spread = math.prod(design.sizes[i] for i in table if i not in part)
                influence[part] += cells.sum(axis=others) / spread
    return np.concatenate([_contrasts(influence[part]).reshape(rows, -1) for part in design.parts], axis=1)


def _contrasts(values: Floats) -> Floats:
    """Return the contrasts of each row along every other axis, divided by their squared lengths."""
    for axis in range(1, values.ndim):
        moved = np.moveaxis(values, axis, -1)
        k = np.arange(1.0, moved.shape[-1])
        found = (np.cumsum(moved, axis=-1)[..., :-1] - k * moved[..., 1:]) / (k * (k + 1.0))
        values = np.moveaxis(found, -1, axis)
    return values
