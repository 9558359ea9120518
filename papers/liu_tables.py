"""Liu (2018), section 4: the mildew and the Czech table, 64 cells each, released by `df.dp.group_by(...).count`.

Run it from the root of the repository: ``python -m papers.liu_tables --repeats 500``. The data are not part
of the repository; --data names the folder that holds barley_mildew and czech_autoworkers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dpf
from dpframe import noise
from papers.counts import CONTINUOUS, SETTINGS, Setting, bounded, chart, distances, summed_up, table
from papers.reporting import Row, markdown, options, progress, written


@dataclass(frozen=True)
class Table:
    """A table of records with six binary columns, and the two levels of every column."""

    records: pl.DataFrame
    levels: tuple[Any, Any]

    def released(self, setting: Setting) -> Any:
        """Return the noisy counts of the 64 cells from a new release."""
        columns = self.records.columns
        kind = {} if setting.noise == "Laplace" else {"delta": setting.delta, "mechanism": self._mechanism(setting)}
        ledger = dpf.Ledger(epsilon=setting.epsilon, delta=kind.get("delta", 0.0), accounting="basic")
        counted = self.records.dp.group_by(*columns, keys=dict.fromkeys(columns, self.levels))
        return counted.count(epsilon=setting.epsilon, denoise=None, ledger=ledger, **kind)["count"].to_numpy()

    def _mechanism(self, setting: Setting) -> Any:
        law = setting.law()
        return lambda sensitivity, loss: law

    def truth(self) -> Any:
        """Return the true counts, in the order of the releases."""
        index = sum(
            (self.records[column] == self.levels[1]).to_numpy().astype(int) << (5 - place)
            for place, column in enumerate(self.records.columns)
        )
        return np.bincount(index, minlength=64)


def main() -> int:
    """Measure both tables, print and write the results."""
    chosen = options(__doc__, repeats=500, data="barley_mildew and czech_autoworkers")
    for name, table_of in (("mildew", mildew), ("czech", czech)):
        found = table_of(chosen.data)
        if found is None:
            print(f"No {name} records in {chosen.data}. Name their folder with --data.")
            return 1
        work = (row for setting in SETTINGS for row in measured(found, setting, chosen.repeats))
        rows = list(progress(work, 2 * len(SETTINGS)))
        written(f"liu_{name}", rows, said(rows), chart(integers(rows), FIELDS), chosen.out)
    return 0


def mildew(folder: Path) -> Table | None:
    """Return 70 strands of barley powder mildew: alleles at six loci."""
    return read(folder / "barley_mildew" / "records.csv", (1, 2))


def czech(folder: Path) -> Table | None:
    """Return 1,841 workers of a car factory: six risk factors."""
    return read(folder / "czech_autoworkers" / "records.csv", ("n", "y"))


def read(file: Path, levels: tuple[Any, Any]) -> Table | None:
    """Return the records without the column of running numbers."""
    return Table(pl.read_csv(file)[:, 1:], levels) if file.exists() else None


def measured(records: Table, setting: Setting, repeats: int) -> list[Row]:
    """Return the distances of the releases, and of continuous noise as in the paper."""
    truth, rows = records.truth(), []
    size = int(truth.sum())
    with noise.insecure_bits(1):  # the same noise each time: a benchmark, not a release
        whole = np.array([records.released(setting) for _ in range(repeats)])
        steps = np.tile((truth / CONTINUOUS).astype(np.int64), (repeats, 1))
        fine = setting.law(CONTINUOUS).add_noise(steps) * CONTINUOUS
    for kind, noisy in (("integers", whole), ("continuous", fine)):
        rows.append(summed_up(setting, distances(bounded(noisy, size), truth), kind=kind))
    return rows


FIELDS = {"l1": "l1 distance", "kl": "KL divergence"}


def integers(rows: list[Row]) -> list[Row]:
    """Return the rows of the releases, without those of continuous noise."""
    return [row for row in rows if row["kind"] == "integers"]


def said(rows: list[Row]) -> str:
    """Return a table for each distance and kind of noise."""
    kinds = {"integers": "releases by df.dp", "continuous": "continuous noise, as in the paper"}
    return "\n\n".join(
        f"{title}, {words}:\n\n" + markdown(table([row for row in rows if row["kind"] == kind], field))
        for kind, words in kinds.items()
        for field, title in FIELDS.items()
    )


if __name__ == "__main__":
    sys.exit(main())
