"""Seeded bugs of the compiled kernels, in the room "engines"; without Numba their tests are skipped."""

from __future__ import annotations

from assurance.bugs.seeding import bug

FILE = "test_kernels.py"
HARD = f"{FILE}::test_hard_tables"
WEIGHED = f"{FILE}::test_weighed_rows_are_those_of_polars"
KERNELS = (
    bug(
        "engines",
        "kernels: values that are not clipped",
        "compiled.to_steps",
        "min(max(value * per_step, lower), upper)",
        "min(max(value * per_step, lower - 1e6), upper + 1e6)",
        HARD,
    ),
    bug(
        "engines",
        "kernels: NaN counted as a present value",
        "compiled.to_steps",
        "if value == value else MISSING",
        "if value == value else 0",
        HARD,
    ),
    bug(
        "engines",
        "kernels: a value beside an edge in the bin beyond",
        "compiled.by_bin",
        "inner -= np.uint32(inner > 0 and value < edges[inner])",
        "inner -= np.uint32(0)",
        f"{FILE}::test_values_beside_edges_fall_in_numpys_bins",
    ),
    bug(
        "engines",
        "kernels: strings told apart by their first four bytes",
        "compiled.by_view",
        "keys[2 * slot] == first and keys[2 * slot + 1] == second",
        "keys[2 * slot] == first",
        f"{FILE}::test_short_and_long_strings",
    ),
    bug(
        "engines",
        "kernels: rows of keys beyond the table in its last cell",
        "compiled.by_table",
        "inner = table[min(above, most)]",
        "inner = table[min(above, most - np.uint64(1))]",
        f"{FILE}::test_integers_of_any_size_among_keys",
    ),
    bug(
        "engines",
        "kernels: shares rounded as floats are",
        "compiled.to_share",
        "share += np.int64(rest >= twice) - np.int64(rest < 0)",
        "share += np.int64(0)",
        f"{FILE}::test_shares_are_exact",
    ),
    bug(
        "engines",
        "kernels: units of weight 1 with a row too many",
        "compiled.weigh_parts",
        "if places[row] > 0 and rows_of[unit] > light:",
        "if places[row] > 0 and rows_of[unit] > light + 1:",
        WEIGHED,
    ),
    bug(
        "engines",
        "kernels: two units that share a number in their part",
        "compiled.send_codes",
        "np.uint32(codes[row] >> bits)",
        "np.uint32(row & 1 & (codes[row] >> bits))",
        WEIGHED,
    ),
    bug(
        "engines",
        "kernels: pairs that are not cleared for the next unit",
        "compiled.add_pairs",
        "together[base : base + width] = 0",
        "together[base : base + 1] = 0",
        WEIGHED,
    ),
    bug(
        "engines",
        "kernels: weights that are not shaved",
        "compiled.weight_of",
        "weight = min(shave, most * shave / norm)",
        "weight = min(1.0, most / norm)",
        WEIGHED,
    ),
    bug(
        "engines",
        "kernels: subtotals weighed as single cells",
        "compiled.weight_of",
        "if merged > 0.0 and rows > merged else weight",
        "if merged > 0.0 and rows > 1e300 else weight",
        WEIGHED,
    ),
    bug(
        "engines",
        "kernels: rows without a unit counted where they are left out",
        "kernel_units.of_units",
        'places[rows["unit"].is_null().to_numpy()] = 0',
        'rows["unit"].is_null().to_numpy()',
        HARD,
    ),
)
