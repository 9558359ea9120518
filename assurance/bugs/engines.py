"""Seeded bugs of the room "engines": rows that are read in pieces, and units that are put together again."""

from __future__ import annotations

from assurance.bugs.seeding import bug

KINDS = "test_unit_kinds.py"
BATCHES = "test_batches.py"
ENGINES = (
    bug(
        "engines",
        "dense units added once more, row by row",
        "weights.bounded",
        "        sharing = np.concatenate([sharing, np.arange(code.size)[whole]])\n",
        "",
        KINDS,
    ),
    bug(
        "engines",
        "dense units weighed as if each row had its own cell",
        "_addressed",
        "Pairs(owners[there // cells], there % cells, size[there], sums)",
        "Pairs(owners[there // cells], there % cells, np.ones_like(there), sums)",
        KINDS,
    ),
    bug(
        "engines",
        "two dense units in one place",
        "_addressed",
        "place[owners] = np.arange(owners.size) * cells",
        "place[owners] = np.arange(owners.size) // 2 * cells",
        KINDS,
    ),
    bug(
        "engines",
        "rows of one unit written to several parts",
        "Spill._write",
        "part = (unit_hash(table) % np.uint64(PARTS)).astype(np.uint16)",
        "part = (np.arange(table.height) % PARTS).astype(np.uint16)",
        f"{BATCHES}::test_a_unit_with_a_third_of_all_rows_is_weighed_once_and_whole",
    ),
    bug(
        "engines",
        "the other half of a part that was split is lost",
        "Spill._of_part",
        "return first + self._of_part(reader, part, 2 * splits, place + splits)",
        "return first",
        f"{BATCHES}::test_units_that_are_too_many_for_one_part_are_split_by_other_bits",
    ),
    bug(
        "engines",
        "weights of pairs as if each had one row",
        "weights.of_pairs",
        "added(size, code, units)",
        "np.bincount(code, minlength=units)",
        f"{BATCHES}::test_batches_and_parts_change_no_integer",
    ),
    bug(
        "engines",
        "pieces of other dtypes than the schema",
        "Task._brought",
        "if source.column(name).polars != column.polars:",
        "if False:",
        "test_engine_contract.py::test_pieces_of_other_dtypes_are_read_as_nothing",
    ),
    bug(
        "engines",
        "columns of a collation taken for bytes",
        "types_of_relation",
        "and _collates(relation, name)",
        "and False",
        f"{BATCHES}::test_collated_and_unreadable_columns_of_duckdb_are_refused_by_schema",
    ),
    bug(
        "engines",
        "totals of an engine that are not those of its pieces",
        "totals._checked",
        "if any(cells.dtype != np.int64 for cells in found.totals.values()):",
        "if False:",
        "test_engine_contract.py::test_what_an_engine_returns_must_be_a_sum_of_its_pieces",
    ),
)
