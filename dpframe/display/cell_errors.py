"""The standard deviation of each denoised cell as a record keeps it: a byte a cell, packed into text."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

STEPS = 255  # from the least to the largest, each by the same factor: at most 4% where they span four powers of ten
MANY = 2**16  # cells from which it is not worth the time to pack them a few percent smaller
HARD, QUICK = 9, 2

Floats = NDArray[np.float64]


def packed(deviations: Floats) -> dict[str, Any]:
    """Positive numbers as the least of them, the factor between steps, and the step of each, rounded up.

    Text, since a list of a million numbers would be copied with every frame.
    """
    flat = deviations.ravel()
    least, most = float(flat.min()), float(flat.max())
    ratio = math.exp(math.log(most / least) / STEPS) if most > least else 1.0
    steps = np.zeros(flat.size) if ratio == 1.0 else np.ceil(np.log(flat / least) / math.log(ratio) - 1e-9)
    codes = np.clip(steps, 0, STEPS).astype(np.uint8)
    text = zlib.compress(codes.tobytes(), HARD if flat.size < MANY else QUICK)
    return {"least": least, "ratio": ratio, "codes": base64.b64encode(text).decode()}


def unpacked(said: Mapping[str, Any], size: int) -> Floats:
    """The numbers of `size` cells; refused is a text that does not hold so many, since a file may be of anybody."""
    try:
        opened = zlib.decompressobj().decompress(base64.b64decode(said["codes"], validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error):
        opened = b""
    if len(opened) != size:
        raise InvalidArgument(
            f"the record must hold an error for each of the {size} cells, and it does not. Ask for another record."
        )
    codes = np.frombuffer(opened, dtype=np.uint8).astype(np.float64)
    return np.asarray(np.minimum(float(said["least"]) * float(said["ratio"]) ** codes, np.finfo(np.float64).max))
