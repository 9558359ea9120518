"""Made-up tables that replace real ones: the same columns and dtypes, and what makes the real ones hard to count.

The real tables lie in ``shared/data`` next to a clone, if at all. The tests that read them compute what they expect
from the table itself, so they run on either table and are never skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

DATA = Path(__file__).parents[2] / "shared" / "data"


def table(name: str) -> pd.DataFrame:
    """Return a real table as pandas reads it, or its stand-in."""
    import pandas as pd

    path = DATA / name
    if not path.exists():
        return pd.DataFrame(MADE[name](np.random.default_rng(len(name))))
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def histogram(name: str) -> Any:
    """Return a histogram of DPBench, or one with its shape, its total, and its share of empty cells."""
    for file in (DATA / "dpbench" / "histograms_1d.npz", DATA / "dpbench" / "histograms_2d.npz"):
        if file.exists() and name in np.load(file):
            return np.load(file)[name]
    shape, total, filled, steepness = DPBENCH[name]
    generator = np.random.default_rng(len(name))
    sizes = np.arange(1, filled + 1) ** -steepness
    counts = np.zeros(np.prod(shape), dtype=np.int64)
    place = generator.permutation(counts.size)[:filled]
    counts[np.sort(place)] = generator.permutation(generator.multinomial(total, sizes / sizes.sum()))
    return counts.reshape(shape)


def _missing(generator: np.random.Generator, values: Any, share: float) -> Any:
    import pandas as pd

    return pd.Series(values).mask(generator.random(len(values)) < share)


def _census(generator: np.random.Generator, size: int = 4_000) -> dict[str, Any]:
    """Return ages that are cut at 90, gains that are nearly all zero, and jobs that are missing."""
    gains = np.where(generator.random(size) < 0.08, generator.choice([594, 2_174, 15_024, 99_999], size), 0)
    return {
        "age": generator.integers(17, 110, size).clip(max=90),
        "workclass": _missing(generator, generator.choice(["Private", "State-gov", "Never-worked"], size), 0.06),
        "occupation": _missing(generator, generator.choice(["Sales", "Tech-support", "Other"], size), 0.06),
        "native_country": _missing(generator, generator.choice(["United-States", "Peru"], size), 0.02),
        "capital_gain": gains,
        "hours_per_week": generator.integers(1, 100, size),
        "sex": generator.choice(["Female", "Male"], size),
        "education_num": generator.integers(1, 17, size),
        "race": generator.choice(["White", "Black", "Other"], size, p=[0.85, 0.1, 0.05]),
    }


def _health(generator: np.random.Generator, people: int = 900) -> dict[str, Any]:
    """Return people with one to eight equal rows; sizes have one decimal, so that they lie on edges of bins."""
    of_whom = np.repeat(np.arange(people), generator.integers(1, 9, people))
    weight = generator.normal(71, 29, people).clip(2.8, 230.7).round(1)[of_whom]
    height = generator.normal(162, 20, people).clip(83.6, 200.4).round(1)[of_whom]
    return {
        "ID": of_whom + 51_624,
        "Gender": generator.choice(["female", "male"], people)[of_whom],
        "Poverty": _missing(generator, generator.uniform(0, 6, people).clip(max=5).round(2)[of_whom], 0.07),
        "Weight": _missing(generator, weight, 0.01),
        "Height": _missing(generator, height, 0.03),
    }


def _trips(generator: np.random.Generator, size: int = 3_000) -> dict[str, Any]:
    """Return trips of the month in which New York's clocks go forward, to the second; some take no time."""
    start = np.datetime64("2019-03-01T00:00:00") + generator.integers(0, 31 * 86_400, size).astype("timedelta64[s]")
    start[:6] = np.datetime64("2019-03-10T00:00:00") + np.arange(6).astype("timedelta64[h]")
    end = start + generator.integers(0, 5_000, size).astype("timedelta64[s]")
    end[:9] = start[:9]
    return {"pickup": np.datetime_as_string(start), "dropoff": np.datetime_as_string(end)}


def _orders(generator: np.random.Generator, size: int = 9_000) -> dict[str, Any]:
    """Return orders and returned goods: quantities below zero, a few of them huge, and missing customers."""
    quantity = (generator.standard_t(1.2, size) * 9 + 6).clip(-80_995, 80_995)
    customer = _missing(generator, generator.zipf(1.3, size).clip(max=3_000) + 12_345, 0.25)
    countries = ["United Kingdom", "EIRE", "France", "Germany"]
    return {
        "country": generator.choice(countries, size, p=[0.85, 0.05, 0.05, 0.05]),
        "quantity": quantity.astype("int32"),
        "customer_id": customer.astype("Int32"),
    }


def _purchases(generator: np.random.Generator, size: int = 4_000) -> dict[str, Any]:
    return {
        "customer_id": generator.geometric(0.002, size),
        "dollars": (generator.exponential(36, size)).clip(0, 1_000).round(2),
    }


def _visits(generator: np.random.Generator, people: int = 700) -> dict[str, Any]:
    """Return one to five years of each person, most of them without a visit."""
    years = generator.integers(1, 6, people)
    of_whom = np.repeat(np.arange(people), years)
    return {
        "id": of_whom + 1,
        "year": 1984 + np.concatenate([np.arange(one) for one in years]),
        "docvis": (generator.negative_binomial(0.4, 0.1, of_whom.size)).clip(max=121),
    }


def _wages(generator: np.random.Generator, people: int = 595) -> dict[str, Any]:
    """Return seven years of each person."""
    size = 7 * people
    return {
        "person_id": np.repeat(np.arange(1, people + 1), 7),
        "ed": np.repeat(generator.integers(4, 18, people), 7),
        "wks": (52 - generator.geometric(0.2, size)).clip(5, 52),
    }


def _stays(generator: np.random.Generator, size: int = 140) -> dict[str, Any]:
    """Return stays of a hundred patients, in years that were shifted to hide them."""
    moment = np.datetime64("2100-01-01T00:00:00") + generator.integers(0, 3_400_000_000, size).astype("timedelta64[s]")
    return {
        "subject_id": generator.integers(10_006, 10_106, size),
        "intime": np.char.replace(np.datetime_as_string(moment), "T", " "),
    }


def _diagnoses(generator: np.random.Generator, size: int = 1_761) -> dict[str, Any]:
    """Return codes of a hundred patients; no code belongs to nearly all of them."""
    return {
        "subject_id": generator.integers(10_006, 10_106, size),
        "icd9_code": [str(code) for code in generator.integers(100, 800, size)],
    }


DPBENCH = {  # shape, total, nonempty cells, steepness of their decline
    "HEPTH": ((4096,), 347_414, 3_229, 0.31),
    "INCOME": ((4096,), 20_787_122, 2_254, 1.5),
    "NETTRACE": ((4096,), 25_714, 139, 1.22),
    "ADULT": ((4096,), 17_665, 82, 2.2),
    "TWITTER": ((256, 256), 193_563, 3_620, 0.79),
}
MADE: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "adult/adult.csv": _census,
    "nhanes_2009_12/nhanes.parquet": _health,
    "nyc_taxis_2019/taxis.csv": _trips,
    "online_retail/online_retail.parquet": _orders,
    "cdnow/transactions.csv": _purchases,
    "german_health_1984_88/rwm5yr.csv": _visits,
    "psid_wages_panel/wages.csv": _wages,
    "mimic_iii_demo/icustays.csv": _stays,
    "mimic_iii_demo/diagnoses_icd.csv": _diagnoses,
}
