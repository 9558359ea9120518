"""Blocks that are empty take none of what a sum lacks, and the full ones beside them do not take it for them."""

from __future__ import annotations

import numpy as np

from dpframe.denoise.noise_law import Floats

FULL = 8.0  # standard deviations of the noise in a sum of both by which a block must be full to be spared
HALVINGS = 3  # from the whole down; further down, what is spared would add up


def spared(kept: Floats, whole: Floats, wanted: Floats, own: Floats, noisy: Floats, spread: Floats) -> Floats:
    """The sums of halves, where one half cannot be lowered by its part and the other would be lowered by both.

    Arrays hold two halves of each block, one after the other: what they are now `kept` at, so that both add up to the
    `whole` of their block (the same in both); what they were `wanted` to be before that; their `own` sum, by noisy
    values alone; and that noisy sum itself with the `spread` of the noise in the sum of both.

    Where a half is wanted below 0, it is kept at 0, and keeping the whole would move to the other half noise that is
    not its own. If two sums have independent noise, and the one that cannot be negative is measured as negative, the
    likeliest value of the other is its own noisy sum, and the sum of both is then never farther from the truth in
    expectation than the noisy one. So the other half, if it is surely not empty, is kept at its own sum, as far as that
    lies between what it was wanted to be and the whole.
    """
    beside = (wanted < 0.0).reshape(-1, 2)[:, ::-1].ravel()
    alone = beside & (wanted >= 0.0) & (noisy > FULL * spread)
    return np.where(alone, np.clip(own, whole, np.maximum(wanted, whole)), kept)
