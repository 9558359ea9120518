"""Marginals from the call to the frame: exact answers, errors, engines, units, ledgers and refusals."""

from __future__ import annotations

import itertools
import math
import pickle
from datetime import date

import covering
import numpy as np
import polars as pl
import pytest
from scipy import special

import dpframe as dpf
from dpframe.mechanisms.gaussian import ContrastGaussian

KEYS = {"sex": ["f", "m"], "ward": ["A", "B", "C"], "age": [1, 2, 3, 4]}
COLUMNS = [*KEYS]
PRICE = {"epsilon": 1.0, "delta": 1e-6}
NEARLY_EXACT = {"epsilon": 1e6, "delta": 1e-6}
SIZES = [1, 2, 3, 4, 6, 8, 12]


def people(rows=5_000, seed=3):
    generator = np.random.default_rng(seed)
    sex = generator.choice(["f", "m", "x"], rows, p=[0.5, 0.4, 0.1])
    ward = generator.choice(["A", "B", "D"], rows)
    return pl.DataFrame({"sex": sex, "ward": ward, "age": generator.integers(0, 5, rows), "who": np.arange(rows) // 2})


def ledger(**more):
    return dpf.Ledger(**{"epsilon": 1e7, "delta": 0.5, **more})


def expected(frame):
    """Return the counts of all tables, in the specified order, computed by plain filters."""
    inside = frame.filter(pl.all_horizontal(pl.col(name).is_in(keys) for name, keys in KEYS.items()))
    rows = []
    for order in range(3):
        for columns in itertools.combinations(COLUMNS, order):
            for values in itertools.product(*(KEYS[column] for column in columns)):
                chosen = dict(zip(columns, values, strict=True))
                alike = [pl.col(column) == value for column, value in chosen.items()]
                rows.append((*(chosen.get(column) for column in COLUMNS), inside.filter(*alike).height))
    return rows


def test_the_tables_in_their_order_and_dtypes():
    frame = people()
    found = frame.dp.marginals(COLUMNS, keys=KEYS, ledger=ledger(), **NEARLY_EXACT)
    assert found.columns == [*COLUMNS, "count", "count_noisy", "count_error"]
    assert found.dtypes == [pl.String, pl.String, pl.Int64, *[pl.Float64] * 3]
    rows = expected(frame)
    assert found.select(COLUMNS).rows() == [row[:-1] for row in rows]
    assert found["count"].to_numpy() == pytest.approx([row[-1] for row in rows], abs=0.6)
    assert found["count"].equals(found["count_noisy"])


def test_pandas_keeps_integer_keys_whole():
    pandas = pytest.importorskip("pandas")
    found = people().to_pandas().dp.marginals(COLUMNS, keys=KEYS, ledger=ledger(), **NEARLY_EXACT)
    assert isinstance(found, pandas.DataFrame)
    assert str(found["age"].dtype) == "Int64"
    assert found["age"].isna().sum() == 1 + 2 + 3 + 6
    assert found.dp.provenance["altered"] is False


def test_every_table_adds_up_to_every_other():
    found = people().dp.marginals(COLUMNS, keys=KEYS, degree=3, ledger=ledger(), **PRICE)
    tables = {each.columns: each.values for each in found.dp.measurements()}
    assert len(tables) == 8
    for columns, table in tables.items():
        for axis, column in enumerate(columns):
            smaller = tuple(other for other in columns if other != column)
            assert table.sum(axis=axis) == pytest.approx(tables[smaller])


def test_dates_booleans_and_declared_dtypes_are_keys():
    frame = pl.DataFrame(
        {
            "day": [date(2026, 1, 5), date(2026, 1, 7), date(2026, 1, 13)],
            "flag": [True, False, None],
            "kind": pl.Series(["u", "v", "u"], dtype=pl.Enum(["u", "v"])),
        }
    )
    keys = {"day": dpf.dates("2026-01-05", "2026-01-12", every="1w"), "flag": [True, False]}
    found = frame.dp.marginals(["day", "flag"], keys=keys, ledger=ledger(), **NEARLY_EXACT)
    assert found["day"].dtype == pl.Date
    assert found["count"].round(0).to_list() == [2, 2, 0, 1, 1, 1, 1, 0, 0]
    alone = frame.select("kind").dp.marginals(["kind"], degree=1, ledger=ledger(), **NEARLY_EXACT)
    assert alone["count"].round(0).to_list() == [3, 2, 1]


@pytest.mark.parametrize("make", ["lazy", "arrow", "pandas", pytest.param("dask", marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", [None, dpf.PrivacyUnit("who", max_rows=1)])
def test_engines_measure_the_same(make, unit):
    frame = people(800)
    with dpf.noise.insecure_bits(5):
        plain = frame.dp.marginals(COLUMNS, keys=KEYS, ledger=ledger(unit=unit), **PRICE)
    other = _as(frame, make)
    with dpf.noise.insecure_bits(5):
        found = dpf.of(other).marginals(COLUMNS, keys=KEYS, ledger=ledger(unit=unit), **PRICE)
    assert np.asarray(found["count"]).tolist() == plain["count"].to_list()


def _as(frame, make):
    if make == "lazy":
        return frame.lazy()
    if make == "arrow":
        return frame.to_arrow()
    pytest.importorskip("pandas")
    if make == "pandas":
        return frame.to_pandas()
    return pytest.importorskip("dask.dataframe").from_pandas(frame.to_pandas(), npartitions=3)


def test_units_with_few_rows_count_in_full():
    frame = people()
    with_units = frame.dp.marginals(COLUMNS, keys=KEYS, max_rows=2, ledger=ledger(unit="who"), epsilon=1e6, delta=1e-6)
    assert with_units["count"].to_numpy() == pytest.approx([row[-1] for row in expected(frame)], abs=0.01)
    assert any("with more than 2 rows has a lower weight" in note for note in with_units.dp.provenance["notes"])
    with pytest.raises(dpf.MissingArgument, match="max_rows"):
        frame.dp.marginals(COLUMNS, keys=KEYS, ledger=ledger(unit="who"), **PRICE)


def test_the_error_of_each_table_is_exact():
    """It is 1.96 standard deviations, by the variances of the specification, plus half a step of rounding."""
    plan = people().dp.preview.marginals(["sex", "ward"], keys={"sex": KEYS["sex"], "ward": KEYS["ward"]}, **PRICE)
    sigma = plan.parts[0].mechanism.scale
    assert sigma == pytest.approx(dpf.Gaussian.calibrate(sensitivity=1, **PRICE).scale)
    found = plan.to_frame()
    assert found["measures"].to_list() == ["all rows", "sex", "ward", "sex x ward"]
    deviations = sigma * np.sqrt([1.9511975997, 1.726536329, 1.2922459449])
    assert found["scale"].to_numpy()[1:] == pytest.approx(deviations)
    assert found["error"].to_numpy()[1:] == pytest.approx(1.959963984540054 * deviations + 0.5)
    assert found["share"].sum() == pytest.approx(1.0)
    assert plan.error["count"] == found["error"].max()


def covered(epsilon, releases, factor=1.0):
    """Count how often the interval of the last cell of each table misses its true 0, over many releases."""
    keys = {"a": ["p", "q"], "b": ["p", "q", "r"]}
    frame = pl.DataFrame({"a": ["none"], "b": ["none"]})
    plan = frame.dp.preview.marginals(["a", "b"], keys=keys, epsilon=epsilon, delta=1e-6)
    noise, design = plan.parts[0].mechanism, plan.parts[0].mechanism.design
    scales = np.tile(design.scales * noise.step_scale, releases)
    drawn = dpf.noise.scaled_gaussian(scales).reshape(releases, design.width).astype(float)
    read = np.array([[table.ravel()[-1] for table in design.reconstructed(row)] for row in np.eye(design.width)])
    errors = np.abs(drawn @ read)
    halves = [noise.interval_of(math.sqrt(design.table_variances[table]), 0.95) * factor for table in design.tables]
    misses = (errors > np.array(halves) + 1e-9).sum(axis=0)
    return [
        covering.Covered(str(table), "count", releases, int(n)) for table, n in zip(design.tables, misses, strict=True)
    ]


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 60.0])
def test_intervals_cover(epsilon):
    for found in covered(epsilon, 40_000):
        assert not covering.too_many(found, 1e-8), found


def test_intervals_that_are_too_narrow_are_seen():
    assert any(covering.too_many(found, 1e-8) for found in covered(0.05, 100_000, factor=0.97))


def test_noise_that_is_2_percent_off_is_seen():
    """Scaled contrasts are draws from one Gaussian distribution, so their mean square estimates its scale."""
    keys = {**KEYS, "age": range(90)}
    plan = people().dp.preview.marginals(COLUMNS, keys=keys, degree=3, epsilon=0.1, delta=1e-6)
    noise, times = plan.parts[0].mechanism, 700
    drawn = np.concatenate([noise.add_noise(np.zeros(noise.design.width, dtype=np.int64)) for _ in range(times)])
    assert drawn.size > 350_000
    scales = np.tile(noise.design.scales, times) * noise.scale
    square = float((drawn.astype(float) ** 2 / (scales**2 + 1 / 12)).sum())
    low, high = special.chdtri(drawn.size, [1 - 1e-7, 1e-7])
    assert low < square < high
    assert square * 1.02**2 > high
    assert square / 1.02**2 < low


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_every_accounting_takes_its_noise(accounting):
    book = dpf.Ledger(epsilon=2, delta=1e-5, accounting=accounting)
    people(100).dp.marginals(COLUMNS, keys=KEYS, epsilon=0.5, delta=1e-6, ledger=book)
    plain = dpf.Ledger(epsilon=2, delta=1e-5, accounting=accounting)
    people(100).dp.count(epsilon=0.5, delta=1e-6, ledger=plain)
    assert book.spent == plain.spent  # the cost of a count with Gaussian noise


def test_comparisons_know_its_curve():
    """In every accounting, a release costs as much as a count with Gaussian noise of the same epsilon and delta."""
    plans = (people(50).dp.preview.marginals(COLUMNS, keys=KEYS, **PRICE), people(50).dp.preview.count(**PRICE))
    found = [dpf.compare_accounting([plan] * 3, delta=1e-5) for plan in plans]
    pairs = list(zip(*(compared.rows for compared in found), strict=True))
    assert all(one.epsilon == pytest.approx(other.epsilon, rel=1e-6) for one, other in pairs if one.epsilon is not None)


def test_together_within_replay_and_copies(tmp_path):
    frame = people(300)
    tables = frame.dp.preview.marginals(COLUMNS, keys=KEYS, **PRICE)
    both = dpf.release_together(
        {"tables": tables, "all": frame.dp.preview.count()}, epsilon=1, delta=1e-6, ledger=ledger()
    )
    assert both["tables"].height == 36
    plan = frame.dp.preview.marginals(COLUMNS, keys=KEYS, within=15, delta=1e-6)
    assert 14.5 < plan.error["count"] <= 15
    assert pickle.loads(pickle.dumps(plan)).error == plan.error
    durable = dpf.Ledger(epsilon=2, delta=1e-5, path=tmp_path / "book.ledger")
    asked = {"keys": KEYS, "label": "tables", "snapshot": "1", "ledger": durable, **PRICE}
    first, again = (frame.dp.marginals(COLUMNS, **asked) for _ in range(2))
    assert first.equals(again)
    assert durable.to_frame().height == 1
    assert first.dp.provenance == again.dp.provenance
    path = tmp_path / "tables.parquet"
    first.dp.write_parquet(path)
    assert dpf.read_parquet(path).dp.errors().equals(first.dp.errors())


def test_no_negative_cells():
    frame = people(400)
    with dpf.noise.insecure_bits(1):
        cut = frame.dp.marginals(COLUMNS, keys=KEYS, denoise="nonnegative", ledger=ledger(), **PRICE)
    with dpf.noise.insecure_bits(1):
        fit = frame.dp.marginals(COLUMNS, keys=KEYS, denoise="auto", ledger=ledger(), **PRICE)
    assert cut["count_noisy"].equals(fit["count_noisy"])
    assert cut["count_noisy"].min() < 0
    assert cut["count"].to_list() == np.maximum(cut["count_noisy"].to_numpy(), 0.0).tolist()
    assert fit["count"].min() >= 0
    by_sex = (
        fit.filter(pl.col("sex").is_not_null(), pl.col("ward").is_not_null()).group_by("sex").agg(pl.col("count").sum())
    )
    alone = fit.filter(pl.col("sex").is_not_null(), pl.col("ward").is_null(), pl.col("age").is_null())
    assert dict(by_sex.rows()) == pytest.approx(dict(alone.select("sex", "count").rows()))
    assert fit.dp.provenance["measures"]["count"]["denoise"][0]["name"] == "auto"


def test_results_say_what_they_are():
    found = people().dp.marginals(COLUMNS, keys=KEYS, ledger=ledger(), **PRICE)
    assert found.dp.statement().startswith(
        "Result: number of rows in all tables of up to 2 of the columns sex, ward and age."
    )
    alone = people().dp.marginals(COLUMNS, keys=KEYS, degree=1, ledger=ledger(), **PRICE)
    assert "number of rows in all tables of one of the columns sex, ward and age." in alone.dp.statement()
    errors = found.dp.errors()
    assert errors["by"].to_list() == ["", "sex", "ward", "age", "sex, ward", "sex, age", "ward, age"]
    noise = found.dp.measurements()
    assert errors["noisy_rmse"].to_list() == pytest.approx([math.sqrt(each.variance) for each in noise])
    assert found.dp.errors(cells=True).height == found.height
    assert [each.values.size for each in noise] == [1, 2, 3, 4, 6, 8, 12]
    with pytest.raises(dpf.InvalidArgument, match="marginals"):
        people().dp.count(ledger=ledger(), **PRICE).dp.measurements()
    changed = found.with_columns(count=pl.col("count") + 1)
    changed._dpframe_record = found.dp.provenance  # as if the changed frame had kept its record
    with pytest.raises(dpf.InvalidArgument, match="changed"):
        changed.dp.measurements()


def test_charts_show_tables_of_two():
    altair = pytest.importorskip("altair")
    found = people().dp.marginals(COLUMNS, keys=KEYS, ledger=ledger(), **PRICE)
    assert isinstance(found.dp.plot(), altair.ConcatChart)
    assert len(found.dp.plot().concat) == 3
    one_way = people().dp.marginals(COLUMNS, keys=KEYS, degree=1, ledger=ledger(), **PRICE)
    assert len(one_way.dp.plot().concat) == 3


REFUSED = {
    "no delta": ({"epsilon": 1.0}, dpf.MissingArgument, "delta must be given"),
    "pure": ({"mechanism": "laplace", "epsilon": 1.0}, dpf.InvalidArgument, "Gaussian noise"),
    "automatic noise": ({"mechanism": "auto"}, dpf.InvalidArgument, "Gaussian noise"),
    "a calibration": ({"mechanism": dpf.generalized_gaussian(p=3)}, dpf.InvalidArgument, "Gaussian noise"),
    "None": ({"keys": {**KEYS, "sex": ["f", None]}}, dpf.InvalidArgument, "None"),
    "twice": ({"keys": {**KEYS, "sex": ["f", "f"]}}, dpf.InvalidArgument, "distinct"),
    "other columns": ({"keys": {"sex": ["f"]}}, dpf.InvalidArgument, "keys must name"),
    "no keys": ({"keys": None}, dpf.MissingArgument, "never taken from the data"),
    "keys of one": ({"keys": ["f", "m"]}, dpf.InvalidType, "dict"),
    "degree 0": ({"degree": 0}, dpf.InvalidArgument, "degree"),
    "degree 4": ({"degree": 4}, dpf.InvalidArgument, "from 1 to the number of columns, 3"),
    "degree True": ({"degree": True}, dpf.InvalidType, "degree"),
    "degree 2.5": ({"degree": 2.5}, dpf.InvalidType, "degree"),
    "an objective": ({"objective": "fair"}, dpf.InvalidArgument, "objective"),
    "a denoiser": ({"denoise": "haar"}, dpf.InvalidArgument, "inconsistent"),
    "triples that add up": ({"denoise": "auto", "degree": 3}, dpf.InvalidArgument, "nonnegative"),
    "a large table": ({"keys": {**KEYS, "age": range(4_000_000)}}, dpf.InvalidArgument, "10,000,000 cells"),
    "many cells": ({"max_cells": 35}, dpf.InvalidArgument, "max_cells=35"),
    "strings for numbers": ({"keys": {**KEYS, "age": ["1"]}}, dpf.WrongDtype, "age"),
}


def test_a_missing_key_beside_the_rest_is_refused_too():
    """Rows with a missing key would get the label that means all rows in a table without that column."""
    for keys in (["f", None, dpf.REST], ["f", None]):
        with pytest.raises(dpf.InvalidArgument, match="keys of 'sex' must not hold None"):
            people(10).dp.marginals(COLUMNS, keys={**KEYS, "sex": keys}, ledger=ledger(), **PRICE)
    rest = people(10).dp.marginals(COLUMNS, keys={**KEYS, "sex": ["f", dpf.REST]}, ledger=ledger(), **PRICE)
    assert rest["sex"].drop_nulls().unique().sort().to_list() == ["Other", "f"]


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_cost_nothing(name):
    given, error, words = REFUSED[name]
    book = dpf.Ledger(epsilon=5, delta=1e-3, accounting="basic")
    with pytest.raises(error, match=words):
        people(10).dp.marginals(
            COLUMNS, **{"keys": KEYS, **({} if "epsilon" in given else PRICE), **given}, ledger=book
        )
    assert book.spent == dpf.PrivacyLoss(0.0)


@pytest.mark.parametrize(
    ("columns", "error"), [("sex", dpf.InvalidType), ([], dpf.InvalidArgument), (["sex", "sex"], dpf.InvalidArgument)]
)
def test_columns_are_a_list_of_different_names(columns, error):
    with pytest.raises(error, match="columns must be"):
        people(10).dp.marginals(columns, keys=KEYS, ledger=ledger(), **PRICE)


def test_groups_and_unknown_columns_are_refused():
    with pytest.raises(dpf.InvalidArgument, match="not per group"):
        people(10).dp.group_by("sex", keys=["f"]).marginals(["ward"], keys={"ward": ["A"]}, ledger=ledger(), **PRICE)
    with pytest.raises(dpf.UnknownColumn):
        people(10).dp.marginals(["war"], keys={"war": ["A"]}, degree=1, ledger=ledger(), **PRICE)
    with pytest.raises(dpf.InvalidArgument, match="different names"):
        people(10).rename({"ward": "count"}).dp.marginals(
            ["count"], keys={"count": ["A"]}, degree=1, ledger=ledger(), **PRICE
        )


def test_the_mechanism_refuses_what_it_is_not_made_for():
    plan = people(10).dp.preview.marginals(COLUMNS, keys=KEYS, **PRICE)
    noise = plan.parts[0].mechanism
    assert isinstance(noise, ContrastGaussian)
    with pytest.raises(dpf.InvalidType, match="contrasts"):
        noise.add_noise(np.zeros(3, dtype=np.int64))
    with pytest.raises(dpf.InvalidArgument, match="larger epsilon"):
        people(10).dp.preview.marginals(COLUMNS, keys=KEYS, epsilon=1e-15, delta=1e-300)
