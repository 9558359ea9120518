"""Seeded bugs of the blocks of rows that NumPy adds up, in the room "engines"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

FILE = "test_block_totals.py"
VALUES = f"{FILE}::test_values_of_any_size_and_kind"
STRINGS = f"{FILE}::test_strings_that_share_a_slot"
EVEN = f"{FILE}::test_even_bins_are_those_of_a_search"
BLOCKS = (
    bug(
        "engines",
        "blocks: values that are not clipped",
        "block_totals.to_steps",
        "np.clip(steps, float(lower), float(upper), out=steps)",
        "np.clip(steps, float(lower) - 1e6, float(upper) + 1e6, out=steps)",
        VALUES,
    ),
    bug(
        "engines",
        "blocks: counted integers that are not clipped",
        "block_totals._counted",
        "math.ceil(bounds[1])",
        "math.ceil(bounds[1]) - 1",
        VALUES,
    ),
    bug(
        "engines",
        "blocks: integers counted on a coarser grid than theirs",
        "block_totals._counted",
        "step_length(bounds) > 1",
        "step_length(bounds) > 2**30",
        VALUES,
    ),
    bug(
        "engines",
        "blocks: a missing integer counted as the least",
        "block_totals._with_values",
        "both[missing] = outer[missing] + counted.span",
        "both[missing] = outer[missing]",
        VALUES,
    ),
    bug(
        "engines",
        "blocks: NaN counted as a present value",
        "block_totals.Sums._add",
        "places[missing], 1)",
        "places[missing][:0], 1)",
        VALUES,
    ),
    bug(
        "engines",
        "blocks: shares rounded as floats are",
        "block_totals.to_shares",
        "length // even > 2**18",
        "length // even > 2**31",
        f"{FILE}::test_shares_are_exact",
    ),
    bug(
        "engines",
        "blocks: rows of integers beyond the keys in the last cell",
        "block_places._integers",
        "np.zeros(high - low + 3, dtype=np.int64)",
        "np.zeros(high - low + 2, dtype=np.int64)",
        f"{FILE}::test_integers_of_any_size_among_keys",
    ),
    bug(
        "engines",
        "blocks: strings told apart by four bytes and the length",
        "block_places._strings",
        "unlike ^= views[1::2]",
        "unlike ^= unlike",
        STRINGS,
    ),
    bug(
        "engines",
        "blocks: a string of few rows that is no key counted as the first one",
        "block_places._axis",
        "return cells.axis_codes(axis, block) + 1",
        "return np.maximum(cells.axis_codes(axis, block), 0) + 1",
        f"{FILE}::test_short_and_long_strings",
    ),
    bug(
        "engines",
        "blocks: strings told apart by their last bytes",
        "block_places._strings",
        "other ^= views[0::2]",
        "other ^= other",
        f"{FILE}::test_short_and_long_strings",
    ),
    bug(
        "engines",
        "bins: a value next to an edge in the bin beyond",
        "even_bins.EvenBins._placed",
        "exact = edge - 1 + (values[near] >= self.edges[edge])",
        "exact = edge",
        EVEN,
    ),
    bug(
        "engines",
        "bins: edges far from even ones taken for even",
        "even_bins.EvenBins.of",
        "beside + rounded < 0.5",
        "beside + rounded < 10.0",
        EVEN,
    ),
)
