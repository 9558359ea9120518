"""Liu (2018), Figure 12: support vector machines trained on sanitized counts of the Adult data.

Run it from the root of the repository: ``python -m papers.liu_machines --repeats 20``. The data are not part
of the repository: --data names the folder that holds adult. It needs scikit-learn.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dpframe import noise
from papers.counts import SETTINGS, Setting, bounded, chart, summed_up, table
from papers.liu_adult import Adult, read
from papers.reporting import Row, markdown, options, pivoted, progress, written

RADIAL = 0.05  # the delta at which a radial machine is also trained; these machines are slow


def main() -> int:
    """Measure the accuracy, print and write it."""
    chosen = options(__doc__, repeats=20, data="adult")
    adult = read(chosen.data)
    if adult is None:
        print(f"No adult.csv in {chosen.data / 'adult'}. Name the folder of adult with --data.")
        return 1
    rows = list(progress((measured(adult, setting, chosen.repeats) for setting in SETTINGS), len(SETTINGS)))
    kernels = [radially(adult, Setting(row["noise"], row["epsilon"], RADIAL)) for row in rows if at_radial(row)]
    tables = [
        markdown(controlled(adult)),
        f"Linear, {chosen.repeats} repeats:\n\n" + markdown(table(rows, "accuracy")),
        f"Radial, one repeat, delta {RADIAL}:\n\n" + markdown(pivoted(kernels, ["epsilon"], "noise", "accuracy")),
    ]
    written("liu_machines", rows, "\n\n".join(tables), chart(rows, {"accuracy": "accuracy"}), chosen.out)
    return 0


def at_radial(row: Row) -> bool:
    """Return whether a radial machine is trained at the epsilon and delta of this row."""
    return bool(row["noise"] == "Laplace" or row["delta"] == RADIAL)


def measured(adult: Adult, setting: Setting, repeats: int) -> Row:
    """Return the mean accuracy of linear machines, each trained on newly drawn counts."""
    with noise.insecure_bits(1):  # the same noise each time: a benchmark, not a release
        found = [adult.accuracy(linear(), sanitized(adult, setting)) for _ in range(repeats)]
    return summed_up(setting, {"accuracy": np.array(found)})


def radially(adult: Adult, setting: Setting) -> Row:
    """Return the accuracy of one radial machine."""
    with noise.insecure_bits(1):
        accuracy = adult.accuracy(radial(), sanitized(adult, setting))
    return {"epsilon": setting.epsilon, "noise": setting.noise, "accuracy": accuracy}


def sanitized(adult: Adult, setting: Setting) -> Any:
    """Return noisy counts, clipped and scaled as in the paper."""
    return bounded(setting.law().add_noise(adult.counts).astype(np.float64), int(adult.counts.sum()))


def controlled(adult: Adult) -> list[Row]:
    """Return accuracies without noise, and with weights that do not depend on the counts."""
    exact = adult.counts.astype(np.float64)
    uniform, half = np.ones_like(exact), np.random.default_rng(1).random(exact.size) < 0.5
    cases = {"the counts themselves": exact, "every nonempty cell counted once": uniform}
    cases["a random half of the nonempty cells, counted once"] = half.astype(np.float64)
    rows = [
        {"trained on": name, "linear": adult.accuracy(linear(), counts), "radial": adult.accuracy(radial(), counts)}
        for name, counts in cases.items()
    ]
    most = float(max(adult.answers.mean(), 1.0 - adult.answers.mean()))
    return [*rows, {"trained on": "nothing: always the more frequent answer", "linear": most, "radial": most}]


def linear() -> Any:
    """Return a linear support vector machine."""
    from sklearn.svm import LinearSVC

    return LinearSVC()


def radial() -> Any:
    """Return the default of e1071's `svm`: a radial kernel with gamma one over the number of features, cost 1."""
    from sklearn.svm import SVC

    return SVC(gamma="auto", cache_size=500)


if __name__ == "__main__":
    sys.exit(main())
