"""Denoising: functions ``(values, noise) -> values`` of noisy numbers alone. Post-processing costs no privacy.

Every function takes an array of noisy values and the law of their noise (a mechanism), and returns an array of the
same shape. Denoised values are biased: they trade a little bias for much less variance. ``raw`` values are not.
"""

from dpframe.denoise.choose import auto
from dpframe.denoise.estimators import james_stein, nonnegative, soft_threshold

__all__ = ["auto", "james_stein", "nonnegative", "soft_threshold"]
