"""A scheduled job, as cron would run it: three weeks, one week repeated, and a week that exceeds the budget.

The job is defined in ``weekly_job.toml`` next to this file. Run it with ``python examples/weekly_job.py FOLDER``; it
needs ``pip install 'dpframe[cli]' pandas statsmodels``. The data are a survey that statsmodels ships: 6,366 women and
their marriages.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import polars as pl
from statsmodels.datasets import fair

import dpframe as dpf
from dpframe.cli.main import main as dpframe

JOB = Path(__file__).with_suffix(".toml")


def main(folder: Path) -> None:
    """Set up the job and run it week by week."""
    job = shutil.copy(JOB, folder)
    weeks = [f"2026-W{number:02}" for number in range(1, 5)]
    for week, answers in zip(weeks, survey(len(weeks)), strict=True):
        answers.write_parquet(folder / f"survey-{week}.parquet")
    said("preview", job, weeks[0])
    said("ledger create", job, weeks[0])  # once for the whole year
    for week in weeks[:3]:
        said("run", job, week)
    said("run", job, weeks[1])  # a repeated run: same answers, no cost
    change(folder / JOB.name, 'share = "1/104"', "share = 0.99")  # more than the budget has left
    said("run", job, weeks[3])
    dpframe(["ledger", "check", str(folder / "survey.ledger"), "--min-remaining", "0.5"])
    dpframe(["ledger", "show", str(folder / "survey.ledger")])
    print((folder / "audit.jsonl").read_text(encoding="utf-8"))
    print(dpf.read_parquet(folder / "out" / f"marriages-{weeks[0]}.parquet"))


def said(command: str, job: str, week: str) -> int:
    """Run a command on the job, as a scheduler would, and print its exit code."""
    print(f"\n$ dpframe {command} {JOB.name} --set WEEK={week}", flush=True)
    code = dpframe([*command.split(), job, "--set", f"WEEK={week}"])
    print(f"exit code {code}")
    return code


def change(job: Path, old: str, new: str) -> None:
    """Replace text in a job file."""
    job.write_text(job.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def survey(weeks: int) -> list[pl.DataFrame]:
    """Split the survey into weeks: deal its rows out in turn."""
    rows = pl.from_pandas(fair.load_pandas().data).with_row_index("row")
    return [rows.filter(pl.col("row") % weeks == week).drop("row") for week in range(weeks)]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
