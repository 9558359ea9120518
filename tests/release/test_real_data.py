"""Releases with negligible noise on real person-level data, or on stand-ins, compared with pandas and NumPy."""

from __future__ import annotations

import functools
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
import stand_ins

import dpframe as dpf

pd = pytest.importorskip("pandas")

LIBRARIES = ("pandas", "polars", "lazy", "arrow-backed")
EXACT = {"epsilon": 1e9, "denoise": None}


@functools.cache
def read(name: str) -> Any:
    """Return a data set as a pandas frame, which no test may change, since it is cached."""
    return stand_ins.table(name)


def held(frame: Any, library: str) -> Any:
    """Return the same rows as a frame of the library."""
    if library == "pandas":
        return frame
    if library == "arrow-backed":
        return frame.convert_dtypes(dtype_backend="pyarrow")
    found = pl.from_pandas(frame)
    return found.lazy() if library == "lazy" else found


def paid(**unit: Any) -> dict[str, Any]:
    """Return call options with negligible noise, and a ledger with the given privacy unit."""
    return EXACT | {"ledger": dpf.Ledger(epsilon=1e15, delta=0.5, accounting="basic", unit=dpf.PrivacyUnit(**unit))}


def near(values: Any, tolerance: float = 1e-3) -> Any:
    return pytest.approx(np.asarray(values, dtype=float).tolist(), rel=1e-7, abs=tolerance)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> str:
    """Each library in turn."""
    return request.param


class TestRows:
    """Each row is a unit."""

    def test_counts_sums_and_means_of_the_census(self, library):
        adult = read("adult/adult.csv")
        frame = held(adult, library)
        assert frame.dp.count(**paid())["count"].to_list() == near([len(adult)])
        for column in ("workclass", "occupation", "native_country", "age"):
            assert frame.dp.count(column, **paid())["count"].to_list() == near([adult[column].count()])
        for column, low, high in (("age", 20, 60), ("capital_gain", 0, 5_000), ("hours_per_week", 0, 99)):
            clipped = adult[column].clip(low, high)
            total = frame.dp.sum(column, bounds=(low, high), **paid())
            mean = frame.dp.mean(column, bounds=(low, high), **paid())
            assert total[f"{column}_sum"].to_list() == near([clipped.sum()])
            assert mean[f"{column}_mean"].to_list() == near([clipped.mean()], 1e-4)

    @pytest.mark.slow
    @pytest.mark.parametrize("outside", ["drop", "clip"])
    @pytest.mark.parametrize("dtype", ["int64", "int8", "float32", "float64"])
    def test_histograms_of_values_on_edges(self, library, outside, dtype):
        ages = read("adult/adult.csv")[["age"]].astype(dtype)
        for edges in ([17, 20, 30, 45, 90], [20, 21, 22.5, 60], list(range(0, 101, 10))):
            values = ages["age"].to_numpy()
            values = values if outside == "drop" else values.clip(edges[0], edges[-1])
            found = held(ages, library).dp.histogram("age", bins=edges, outside=outside, **paid())
            assert found["count"].to_list() == near(np.histogram(values, edges)[0])

    @pytest.mark.parametrize("bins", [1, 7, 97, 1000])
    def test_equal_bins(self, library, bins):
        weights = read("nhanes_2009_12/nhanes.parquet")[["Weight"]]
        found = held(weights, library).dp.histogram("Weight", bins=bins, range=(0.1, 200.3), **paid())
        expected, edges = np.histogram(weights["Weight"].dropna(), bins=bins, range=(0.1, 200.3))
        assert found["count"].to_list() == near(expected)
        assert found["Weight_left"].to_list() == edges[:-1].tolist()
        assert found["Weight_right"].to_list() == edges[1:].tolist()

    def test_grids(self, library):
        people = read("nhanes_2009_12/nhanes.parquet")[["Height", "Weight"]]
        full = people.dropna()
        found = held(people, library).dp.histogram(
            ["Height", "Weight"], bins=[20, 30], range=[(80, 200), (0, 150)], **paid()
        )
        expected = np.histogram2d(full["Height"], full["Weight"], bins=[20, 30], range=[(80, 200), (0, 150)])[0]
        assert found.dp.to_numpy("count") == pytest.approx(expected, abs=1e-3)

    @pytest.mark.slow
    def test_group_bys_of_one_to_three_columns(self, library):
        adult = read("adult/adult.csv")
        frame = held(adult, library)
        keys = {"sex": ["Female", "Male"], "workclass": ["Private", None, "No-such"], "education_num": [9, 13, 99]}
        asked = {
            "n": dpf.count(),
            "jobs": dpf.count("occupation"),
            "hours": dpf.sum("hours_per_week", bounds=(0, 60)),
            "age": dpf.mean("age", bounds=(18, 80)),
        }
        for columns in (["sex"], ["workclass"], ["sex", "workclass"], ["education_num", "workclass", "sex"]):
            found = frame.dp.group_by(*columns, keys={column: keys[column] for column in columns}).agg(asked, **paid())
            rows = [()]
            for column in columns:
                rows = [(*row, key) for row in rows for key in keys[column]]
            expected: dict[str, list[float]] = {name: [] for name in asked}
            for row in rows:
                chosen = adult
                for column, key in zip(columns, row, strict=True):
                    chosen = chosen[chosen[column].isna() if key is None else chosen[column] == key]
                expected["n"].append(len(chosen))
                expected["jobs"].append(chosen["occupation"].count())
                expected["hours"].append(chosen["hours_per_week"].clip(0, 60).sum())
                expected["age"].append(chosen["age"].clip(18, 80).mean() if len(chosen) else 49.0)
            for name, values in expected.items():
                assert found[name].to_list() == near(values)
            given = [[None if value != value else value for value in found[column].to_list()] for column in columns]
            assert list(zip(*given, strict=True)) == rows

    def test_a_frame_of_combinations(self, library):
        adult = read("adult/adult.csv")
        combinations = pd.DataFrame({"education_num": [13, 9, 13], "sex": ["Male", "Female", "Female"]})
        found = held(adult, library).dp.group_by("sex", "education_num", keys=combinations).count(**paid())
        sizes = adult.groupby(["sex", "education_num"]).size()
        assert found["count"].to_list() == near([sizes[("Male", 13)], sizes[("Female", 9)], sizes[("Female", 13)]])
        categories = held(adult, library).dp.histogram("race", categories=["Other", "White", "None"], **paid())
        assert categories["count"].to_list() == near([*adult["race"].value_counts()[["Other", "White"]], 0])

    def test_datetimes_with_and_without_zones(self, library):
        trips = read("nyc_taxis_2019/taxis.csv")[["pickup", "dropoff"]].apply(pd.to_datetime)
        days = [datetime(2019, 3, day) for day in (1, 2, 3, 10, 11, 31)]
        expected = np.histogram(trips["pickup"].astype("datetime64[us]").astype("int64"), [_micros(d) for d in days])[0]
        found = held(trips, library).dp.histogram("pickup", bins=days, **paid())
        assert found["count"].to_list() == near(expected)
        by_date = held(trips, library).dp.histogram("pickup", bins=[day.date() for day in days], **paid())
        assert by_date["count"].to_list() == near(expected)
        aware = trips.assign(pickup=trips["pickup"].dt.tz_localize("UTC").dt.tz_convert("America/New_York"))
        zoned = held(aware, library).dp.histogram("pickup", bins=[day.replace(tzinfo=UTC) for day in days], **paid())
        assert zoned["count"].to_list() == near(expected)
        lengths = pd.DataFrame({"length": trips["dropoff"] - trips["pickup"]})
        minutes = [0, 5, 10, 30, 60]
        found = held(lengths, library).dp.histogram(
            "length", bins=[timedelta(minutes=m) for m in minutes], outside="clip", **paid()
        )
        seconds = lengths["length"].dt.total_seconds().clip(0, 3600)
        assert found["count"].to_list() == near(np.histogram(seconds, [60 * m for m in minutes])[0])

    def test_returns_are_negative(self, library):
        lines = read("online_retail/online_retail.parquet").iloc[::7]
        frame = held(lines, library)
        keys = ["United Kingdom", "EIRE", "Atlantis", "France"]
        found = frame.dp.group_by("country", keys=keys).sum("quantity", bounds=(-50, 50), **paid())
        sums = lines["quantity"].clip(-50, 50).groupby(lines["country"]).sum()
        assert found["quantity_sum"].to_list() == near(sums.reindex(keys, fill_value=0), 0.05)


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def weighted(rows: Any, unit: str, cell: Any, max_rows: int, max_groups: int, cells: int, p: int) -> Any:
    """Return the weight of each row by definition: a unit has n_g rows in cell g, and w = min(1, R / ||n||_p)."""
    inside = rows[rows[unit].notna() & cell.notna()]
    sizes = inside.groupby([unit, cell[inside.index]]).size().astype(float)
    norm = (sizes**p).groupby(level=0).sum() ** (1 / p)
    weight = (max_rows * min(max_groups, cells) ** (1 / p) / norm).clip(upper=1.0)
    return inside[unit].map(weight).astype(float).reindex(rows.index, fill_value=0.0)


class TestUnits:
    """Several rows belong to one person."""

    PANELS = (
        ("german_health_1984_88/rwm5yr.csv", "id", "year", [1984, 1985, 1986, 1987, 1988], "docvis", (0, 30)),
        ("psid_wages_panel/wages.csv", "person_id", "ed", [8, 12, 16], "wks", (20, 50)),
        ("nhanes_2009_12/nhanes.parquet", "ID", "Gender", ["female", "male"], "Poverty", (0, 5)),
        ("online_retail/online_retail.parquet", "customer_id", "country", ["France", "EIRE"], "quantity", (-9, 99)),
    )

    @pytest.mark.slow
    @pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
    @pytest.mark.parametrize(("max_rows", "max_groups"), [(1, 1), (3, 2), (40, 9)])
    @pytest.mark.parametrize("p", [1, 2])
    @pytest.mark.parametrize("panel", range(len(PANELS)))
    def test_weights_are_the_definition(self, panel, p, max_rows, max_groups, neighbors):
        path, unit, by, keys, column, (low, high) = self.PANELS[panel]
        rows = read(path)[[unit, by, column]].reset_index(drop=True)
        cell = rows[by].where(rows[by].isin(keys))
        weight = weighted(rows, unit, cell, max_rows, max_groups, len(keys), p)
        values = rows[column].clip(low, high)
        price = paid(column=unit, max_rows=max_rows, max_groups=max_groups, neighbors=neighbors)
        price |= {"delta": 1e-4} if p == 2 else {}
        noise = (
            0.1 if p == 1 else max_rows * max_groups * high * 1e-3
        )  # Gaussian noise shrinks only with the root of epsilon
        asked = {"n": dpf.count(), "there": dpf.count(column), "s": dpf.sum(column, bounds=(low, high))}
        expected = {"n": weight, "there": weight * rows[column].notna(), "s": weight * values}
        for library in LIBRARIES[:3]:
            frame = held(rows, library)
            found = frame.dp.group_by(by, keys=keys).agg(asked | {"m": dpf.mean(column, bounds=(low, high))}, **price)
            for name, parts in expected.items():
                assert found[name].to_list() == near(parts.groupby(cell).sum().reindex(keys, fill_value=0), noise)
            means = expected["s"].groupby(cell).sum() / expected["there"].groupby(cell).sum()
            assert found["m"].to_list() == near(means.reindex(keys), noise / 10)

    @pytest.mark.parametrize("p", [1, 2])
    def test_histograms_of_units(self, p):
        buys = read("cdnow/transactions.csv")
        edges = [0, 10, 20, 50, 1000]
        cell = pd.cut(buys["dollars"], [*edges[:-1], 1000.001], right=False, labels=False)
        weight = weighted(buys, "customer_id", cell, 2, 2, 4, p)
        price = paid(column="customer_id", max_rows=2, max_groups=2) | ({"delta": 1e-4} if p == 2 else {})
        for library in LIBRARIES[:3]:
            found = held(buys, library).dp.histogram("dollars", bins=edges, **price)
            assert found["count"].to_list() == near(weight.groupby(cell).sum(), 0.1)

    @pytest.mark.parametrize("nulls", ["drop", "one-unit"])
    def test_missing_customers(self, nulls):
        lines = read("online_retail/online_retail.parquet")[["customer_id"]]
        named = lines["customer_id"].dropna().value_counts()
        expected = named.clip(upper=5).sum() + (5 if nulls == "one-unit" else 0)
        for library in LIBRARIES:
            price = paid(column="customer_id", max_rows=5, nulls=nulls)
            assert held(lines, library).dp.count(**price)["count"].to_list() == near([expected], 0.1)

    def test_dates_of_patients(self):
        stays = read("mimic_iii_demo/icustays.csv")
        name = next(column for column in stays.columns if column.endswith("intime"))
        stays = stays[["subject_id", name]].assign(**{name: pd.to_datetime(stays[name])})
        edges = [date(2100, 1, 1), date(2130, 1, 1), date(2160, 1, 1), date(2210, 1, 1)]
        cell = pd.cut(stays[name], pd.to_datetime(edges), right=False, labels=False)
        weight = weighted(stays, "subject_id", cell, 1, 1, 3, 1)
        for library in LIBRARIES:
            found = held(stays, library).dp.histogram(name, bins=edges, **paid(column="subject_id", max_rows=1))
            assert found["count"].to_list() == near(weight.groupby(cell).sum(), 0.1)
