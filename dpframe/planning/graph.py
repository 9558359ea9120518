"""The graph of a call: pairs of declared keys whose cells may be alike, and their conversion to cell positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.denoise import DENOISERS, needs, takes
from dpframe.denoise.graphs import edges_of
from dpframe.errors import InvalidArgument, InvalidType, listed, named, shown
from dpframe.frames.columns import height_of, names_of, rows_of
from dpframe.frames.kinds import is_frame
from dpframe.queries.keys import Keys, plain_key
from dpframe.queries.limits import length, refuse_many
from dpframe.queries.query import Query
from dpframe.queries.sameness import same_key

EXAMPLE = 'Write for instance graph=[("A", "B"), ("B", "C")].'
USES = tuple(sorted(name for name in DENOISERS if takes(name, "graph")))

End = tuple[Any, ...]  # the keys of a cell, one for each column


def pairs_of(graph: Any, most: int) -> tuple[tuple[End, End], ...]:
    """Return the edges as plain keys; refuse more than `most` edges, and anything but a list or a frame of pairs."""
    if is_frame(graph):
        names_of(graph, "graph")
    refuse_many("graph must have", "edges", height_of(graph) if is_frame(graph) else length(graph), most)
    pairs = _pairs_of_frame(graph) if is_frame(graph) else graph
    if not isinstance(pairs, (list, tuple)):
        raise InvalidType(f"graph must be a frame or a list of pairs of keys, not {named(graph)}. {EXAMPLE}")
    return tuple((_end(pair[0]), _end(pair[1])) for pair in map(_pair, pairs))


def _pair(pair: Any) -> Any:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise InvalidType(f"graph must be a frame or a list of pairs of keys, unlike {shown(pair)}. {EXAMPLE}")
    return pair


def _pairs_of_frame(graph: Any) -> list[tuple[Any, Any]]:
    rows = rows_of(graph)
    width = len(rows[0]) if rows else 2
    if width % 2:
        raise InvalidArgument(
            f"graph must be a frame of two columns of keys (or of twice the columns that the groups have), not of "
            f"{width}. Select those of the two ends."
        )
    return [(row[: width // 2], row[width // 2 :]) for row in rows]


def _end(end: Any) -> End:
    return tuple(plain_key(value, "graph") for value in (end if isinstance(end, (list, tuple)) else (end,)))


def edges_among(keys: Keys, pairs: tuple[tuple[End, End], ...]) -> NDArray[np.int64]:
    """Return the cell positions of the ends of each edge, without duplicates; refuse ends that are not declared."""
    rows = [zip(*map(axis.values, range(len(axis.columns))), strict=True) for axis in keys.axes]
    places = [{_same(row): position for position, row in enumerate(of_axis)} for of_axis in rows]
    steps = [math.prod(keys.shape[axis + 1 :]) for axis in range(len(keys.axes))]
    known: dict[End, int] = {}
    for end in {_same(end): end for pair in pairs for end in pair}.values():
        known[_same(end)] = _position(end, keys, places, steps)
    return edges_of([(known[_same(first)], known[_same(second)]) for first, second in pairs], keys.cells)


def _same(end: End) -> End:
    """Return an end in the form in which the schema check compares keys."""
    return tuple(map(same_key, end))


def _position(end: End, keys: Keys, places: list[dict[End, int]], steps: list[int]) -> int:
    if len(end) != len(keys.columns):
        raise InvalidArgument(
            f"graph must name a key by the values of {', '.join(keys.columns)}, unlike {shown(end)}. "
            f"{EXAMPLE if len(keys.columns) == 1 else 'Write each end as a tuple.'}"
        )
    position, first = 0, 0
    for axis, positions, step in zip(keys.axes, places, steps, strict=True):
        key = _same(end)[first : first + len(axis.columns)]
        if key not in positions:
            raise InvalidArgument(
                f"graph must join declared keys, unlike {shown(end[0] if len(end) == 1 else end)}. "
                "Declare it among the keys, or leave its edges out."
            )
        position, first = position + positions[key] * step, first + len(axis.columns)
    return position


def check_graph(query: Query, pairs: tuple[tuple[End, End], ...] | None, denoise: Any) -> None:
    """Refuse a graph that the call cannot use, and a denoiser whose graph is missing."""
    denoisers = denoise if isinstance(denoise, (list, tuple)) else [denoise]
    if pairs is None:
        for denoiser in denoisers:
            if needs(denoiser, "graph"):
                raise InvalidArgument(f"graph must be given for denoise={called(denoiser)}. {EXAMPLE}")
        return
    if not query.keys.axes:
        raise InvalidArgument('graph must be left out of a single number. Write group_by("ward", keys=[...]) first.')
    if any(axis.ordered for axis in query.keys.axes):
        raise InvalidArgument("graph must be left out of bins, whose neighbors are known. Drop it.")
    if query.subtotals:
        raise InvalidArgument(
            f"graph must be left out with {query.subtotals}=True, whose fit has no use for it. Keep one."
        )
    if not any(statistic.denoisable for _, statistic in query.statistics):
        verbs = list(dict.fromkeys(statistic.verb for _, statistic in query.statistics))
        are = "is" if len(verbs) == 1 else "are"
        raise InvalidArgument(f"graph must be left out of {listed(verbs)}, which {are} not denoised. Drop it.")
    if not any(takes(denoiser, "graph") for denoiser in denoisers):
        raise InvalidArgument(
            f"graph must come with a denoiser that uses it, one of {list(USES)}, not {shown(denoise)}. Keep one."
        )
    edges_among(query.keys, pairs)


def called(denoiser: Any) -> str:
    """Return the name of a denoiser for an error message."""
    return repr(denoiser) if isinstance(denoiser, str) else str(getattr(denoiser, "__name__", "a function"))
