"""The denoisers that a call may name, and what each of them takes of what a call knows."""

from __future__ import annotations

from dpframe import denoise

NEED_MORE = ("consistent", "posterior_mean", "public_total")  # what is public and no call can know

DENOISERS = {name.replace("_", "-"): getattr(denoise, name) for name in denoise.__all__ if name not in NEED_MORE}
KNOWN = (
    (denoise.haar, ("order",)),
    (denoise.empirical_bayes, ("nonnegative",)),
    (denoise.spanning_tree_wavelets, ("graph",)),
    (denoise.trend_filter, ("graph", "order")),
)
