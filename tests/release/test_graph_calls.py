"""`graph=` in a call: names of cells become positions, the provenance records its use, and no row is read."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dpf
from dpframe import noise

CELLS = 64
KEYS = [f"j{number}" for number in range(CELLS)]
RING = [(f"j{number}", f"j{(number + 1) % CELLS}") for number in range(CELLS)]


def trips(turn=0):
    """Return 40 trips at each junction of the first half, and 4 at each of the others."""
    starts = [name for place, name in enumerate(KEYS) for _ in range(40 if place < CELLS // 2 else 4)]
    return pl.DataFrame({"junction": starts[turn:] + starts[:turn]})


def ask(frame, seed=1, **options):
    options = {"keys": KEYS, "graph": RING, "epsilon": 0.2} | options
    keys = options.pop("keys")
    with noise.insecure_bits(seed):
        return dpf.of(frame).group_by("junction", keys=keys).count(ledger=dpf.Ledger(epsilon=100), **options)


@pytest.mark.parametrize("name", ["auto", "spanning-tree-wavelets", "trend-filter", ["trend-filter", "nonnegative"]])
def test_a_graph_in_a_call(name):
    result = ask(trips(), denoise=name)
    truth = np.repeat([40.0, 4.0], CELLS // 2)
    noisy = np.square(result["count_noisy"].to_numpy() - truth).mean()
    assert np.square(result["count"].to_numpy() - truth).mean() < 0.6 * noisy
    said = result.dp.provenance["measures"]["count"]["denoise"][0]
    assert said["edges"] == CELLS
    assert said["name"] == (name if isinstance(name, str) else name[0])
    assert name != "auto" or {"chose", "estimated_rmse"} <= set(said)


def test_the_same_as_the_function_on_positions():
    result = ask(trips(), denoise="trend-filter")
    law = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.2)
    ring = [(place, (place + 1) % CELLS) for place in range(CELLS)]
    found = dpf.denoise.trend_filter(result["count_noisy"].to_numpy(), law, graph=ring)
    assert result["count"].to_list() == pytest.approx(found.tolist())


def test_frames_and_lists_of_edges_are_one():
    ends = {"from": [first for first, _ in RING], "to": [second for _, second in RING]}
    twice = RING + [(second, first) for first, second in RING] + [("j5", "j5")]  # each edge in both directions; a loop
    for graph in (pl.DataFrame(ends), pl.LazyFrame(ends), tuple(RING), twice):
        assert ask(trips(), graph=graph).equals(ask(trips()))


def test_pandas_frames_have_graphs_too():
    pd = pytest.importorskip("pandas")
    result = ask(trips().to_pandas(), graph=pd.DataFrame(RING, columns=["from", "to"]))
    assert isinstance(result, pd.DataFrame)
    assert result["count"].tolist() == ask(trips())["count"].to_list()


def test_the_order_of_keys_is_not_that_of_the_graph():
    """The graph names its cells, so another order of the declared keys is the same question."""
    turn = np.random.default_rng(0).permutation(CELLS)
    keys = [KEYS[place] for place in turn]
    result = ask(trips(), keys=keys, epsilon=50, denoise="trend-filter")
    assert dict(zip(result["junction"], result["count"].round(), strict=True))[KEYS[0]] == 40.0
    law = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.2)
    place = np.argsort(turn)
    result = ask(trips(), keys=keys, denoise="trend-filter")
    ring = [(place[number], place[(number + 1) % CELLS]) for number in range(CELLS)]
    found = dpf.denoise.trend_filter(result["count_noisy"].to_numpy(), law, graph=ring)
    assert result["count"].to_list() == pytest.approx(found.tolist())


@pytest.mark.parametrize("as_frame", [False, True])
def test_keys_of_several_columns(as_frame):
    frame = pl.DataFrame({"row": [0, 0, 1, 2], "column": ["a", "b", "a", "b"]})
    ends = [((row, name), (row + 1, name)) for row in range(19) for name in "ab"]
    graph = ends
    if as_frame:
        graph = pl.DataFrame([(*first, *second) for first, second in ends], orient="row")
    combinations = pl.DataFrame([(row, name) for row in range(20) for name in "ab"], orient="row").rename(
        {"column_0": "row", "column_1": "column"}
    )
    for keys in ({"row": range(20), "column": ["a", "b"]}, combinations):
        with noise.insecure_bits(1):
            result = frame.dp.group_by("row", "column", keys=keys).count(
                graph=graph, denoise="spanning-tree-wavelets", epsilon=0.1, ledger=dpf.Ledger(epsilon=1)
            )
        assert result.dp.provenance["measures"]["count"]["denoise"] == [{"name": "spanning-tree-wavelets", "edges": 38}]
        for name in "ab":  # the graph has two components: each keeps its sum
            mine = result.filter(pl.col("column") == name)
            assert mine["count"].sum() == pytest.approx(mine["count_noisy"].sum())


def test_declared_by_a_dtype():
    names = pl.Enum(KEYS)
    frame = trips().with_columns(pl.col("junction").cast(names))
    with noise.insecure_bits(1):
        result = frame.dp.group_by("junction").count(graph=RING, epsilon=0.2, ledger=dpf.Ledger(epsilon=1))
    assert result["count"].to_list() == ask(trips())["count"].to_list()


def test_only_noisy_values_are_seen():
    """The released values depend only on the noisy values, the noise distribution and the graph."""
    released = ask(trips())
    law = dpf.Laplace.calibrate(sensitivity=1, epsilon=0.2)
    ring = [(place, (place + 1) % CELLS) for place in range(CELLS)]
    found = dpf.denoise.auto(released["count_noisy"].to_numpy(), law, nonnegative=True, graph=ring)
    assert released["count"].to_list() == pytest.approx(found.tolist())


def test_a_refused_graph_costs_nothing():
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match="unlike 'Z'"):
        trips().dp.group_by("junction", keys=KEYS).count(graph=[("j1", "Z")], epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0.0


def test_a_stored_answer_knows_its_graph(tmp_path):
    ledger = dpf.Ledger(epsilon=1, path=tmp_path / "trips.ledger", dataset="trips")
    asked = trips().dp.group_by("junction", keys=KEYS)
    options = {"label": "map", "snapshot": "1", "ledger": ledger, "epsilon": 0.2}
    first = asked.count(graph=RING, **options)
    assert asked.count(graph=tuple(RING), **options).equals(first)
    assert ledger.spent.epsilon == 0.2
    with pytest.raises(dpf.LedgerError):
        asked.count(graph=RING[1:], **options)
