"""Blocks that are empty take none of what a sum lacks, and the full ones beside them do not take it for them."""

from __future__ import annotations

import numpy as np

from dpframe.denoise.noise_law import Floats

FULL = 8.0  # standard deviations of the noise in a sum of both from which on a block is surely full, and spared wholly
HALVINGS = 2  # from the whole down: more than four blocks that are cut each by itself can be off by more than their sum


def spared(kept: Floats, whole: Floats, wanted: Floats, own: Floats, noisy: Floats, spread: Floats) -> Floats:
    """The sums of halves, where one half cannot be lowered by its part and the other would be lowered by both.

    Arrays hold two halves of each block, one after the other: what they are now `kept` at, so that both add up to the
    `whole` of their block (the same in both); what they were `wanted` to be before that; their `own` sum, by noisy
    values alone; and that noisy sum itself with the `spread` of the noise in the sum of both.

    Where a half is wanted below 0, it is kept at 0, and keeping the whole would move to the other half noise that is
    not its own. If two sums have independent noise, and the one that cannot be negative is measured as negative, the
    likeliest value of the other is its own noisy sum. So the other half is moved from the whole toward its own sum, and
    not beyond what it was wanted to be: wholly if it is surely full, else by the part of that at which it is measured,
    since where nearly nothing is seen both are likely empty, and to keep the sum of all is better.

    Even where all quarters are spared wholly, the sum of all is not farther from the truth in expectation than the
    noisy one. Take k quarters, each kept at its own sum x + z or at 0 if that is negative, with x >= 0 and standard
    Gaussian z, all independent. The expected squared error of their sum is sum r(x_i) + 2 sum_(i<j) b(x_i) b(x_j), with
    r' = 2 x P(z > x) and the bias b' = -P(z > x). In each x_i it falls as long as x_i is less than the other biases
    together and then rises: so it is largest where every x_i is 0 or far above, where j quarters at 0 make it k - j/2 +
    j(j - 1)/(2 pi). That is at most k, the error of the noisy sum, for j up to 4. Eight blocks of a third halving could
    make it 12.9 instead of 8.
    """
    beside = (wanted < 0.0).reshape(-1, 2)[:, ::-1].ravel()
    part = np.clip(noisy / (FULL * spread), 0.0, 1.0)
    towards = np.clip(whole + part * (own - whole), whole, np.maximum(wanted, whole))
    return np.where(beside & (wanted >= 0.0), towards, kept)
