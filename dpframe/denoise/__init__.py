"""Denoising: functions ``(values, noise) -> values`` of noisy numbers alone. Post-processing costs no privacy.

Every function takes an array of noisy values and the law of their noise (a mechanism), and returns an array of the
same shape. Denoised values are biased: they trade a little bias for much less variance. ``raw`` values are not.
"""

from dpframe.denoise.bayes import empirical_bayes
from dpframe.denoise.choose import auto
from dpframe.denoise.estimators import isotonic, james_stein, nonnegative, rounded, soft_threshold
from dpframe.denoise.published.spanning_trees import spanning_tree_wavelets
from dpframe.denoise.published.thresholds_and_priors import hard_threshold, posterior_mean, sure_threshold
from dpframe.denoise.published.trend_filter import trend_filter
from dpframe.denoise.sums import consistent, public_total
from dpframe.denoise.wavelets import haar

__all__ = [
    "auto",
    "consistent",
    "empirical_bayes",
    "haar",
    "hard_threshold",
    "isotonic",
    "james_stein",
    "nonnegative",
    "posterior_mean",
    "public_total",
    "rounded",
    "soft_threshold",
    "spanning_tree_wavelets",
    "sure_threshold",
    "trend_filter",
]


def __dir__() -> list[str]:
    return [*__all__]
