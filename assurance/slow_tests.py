"""Run the slow tests, a share at a time: searches of neighbors, injected faults, kills, noise distributions, attacks.

    python -m assurance.slow_tests --share 0/7
    python -m assurance.slow_tests --spark          # tests of Spark, in one session

Continuous integration runs one of seven shares each day (pytest's ``--turn``), on noise that repeats; this program
runs all of them, on noise of the operating system.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import pytest

from assurance import verdict


class Counting:
    """Counts of the test outcomes that pytest reports."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.seen[report.outcome] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", default="0/1", metavar="K/N", help="of the tests, with K from 0 to N - 1")
    parser.add_argument("--spark", action="store_true", help="the tests that ask Spark, and no others")
    parser.add_argument("tests", nargs="*", help="files or folders, by default all")
    options = parser.parse_args()
    asked = "spark" if options.spark else "slow and not spark"
    counting = Counting()
    words = ["-q", "-p", "no:cacheprovider", "--fresh-bits", "-m", asked, "--turn", options.share, *options.tests]
    code = int(pytest.main(words, plugins=[counting]))
    failed, passed, skipped = (counting.seen[name] for name in ("failed", "passed", "skipped"))
    return verdict(failed or code, tests=passed + failed, skipped=skipped)


if __name__ == "__main__":
    raise SystemExit(main())
