"""Seeded bugs of the room "engines": rows that are read in pieces, and units that are put together again."""

from __future__ import annotations

from assurance.bugs.seeding import bug

KINDS = "test_unit_kinds.py"
BATCHES = "test_batches.py"
SPARK = "test_spark.py"
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
    bug(
        "engines",
        "Spark: rows of one unit stay in several partitions",
        "SparkTable._sum",
        'frame.repartition(_partitions(frame), f"c{list(dtypes).index(by)}")',
        "frame",
        f"{SPARK}::test_the_code_of_executors_is_polars_in_memory_bit_for_bit",
    ),
    bug(
        "engines",
        "Spark: both zeros of a unit in two partitions",
        "spark._in_sql",
        "then {zero} else {column} end",
        "then {column} else {column} end",
        f"{SPARK}::test_a_column_leaves_spark_by_an_expression_that_cannot_fail",
    ),
    bug(
        "engines",
        "Spark: all texts that are no UTF-8 are one person",
        "spark.texts",
        "pl.lit(MARK) + digits",
        "pl.lit(MARK) + digits.str.slice(0, 0)",
        f"{SPARK}::test_bytes_become_texts_and_no_two_become_one",
    ),
    bug(
        "engines",
        "Spark: errors of executors tell values",
        "OnExecutor._answered",
        "            return None\n",
        "            raise\n",
        f"{SPARK}::test_an_error_while_a_partition_is_worked_on_is_withheld",
    ),
    bug(
        "engines",
        "Spark: executors of other versions answer",
        "OnExecutor.__call__",
        "if (VERSION, pl.__version__) != self.versions:",
        "if False:",
        f"{SPARK}::test_other_versions_are_noticed_by_the_executor_itself",
    ),
)
