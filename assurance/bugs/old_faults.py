"""Seeded bugs that restore old faults: one for each row of the register that no other list covers."""

from __future__ import annotations

from assurance.bugs.seeding import REGISTER, bug, bugs

SMALL, TOTALS = "test_small_frames.py::test_small_frames_are_counted", "test_totals.py"
ANSWER = "    return looked(lambda: exact_totals(plan, call.frame, reading, secret))"
SPILLED = "test_batches.py::test_nothing_is_left_after_ctrl_c_or_a_crash_and_the_charge_stands"
DOWN = "test_unavailable.py"
FIRST_ROWS = """    size = np.bincount(code, minlength=units)
    order = np.argsort(code, kind="stable")
    rank = np.arange(code.size) - np.searchsorted(code[order], code[order])
    kept = np.sort(order[rank < reach.most])
    code, places, steps = code[kept], places[kept], [values[kept] for values in steps]
    size = np.bincount(code, minlength=units)
"""
OLD_FAULTS = (
    # numbers
    bug(
        "results",
        "6: noisy numbers shown cut at zero, and denoised uncut",
        "results.numbers_of",
        "columns[name + NOISY] = more[NOISY]",
        "columns[name + NOISY] = np.maximum(more[NOISY], 0.0)",
        f"{REGISTER}::test_06_denoised_numbers_are_a_function_of_the_released_ones",
    ),
    bug(
        "noise",
        "7: a scale so small that densities overflow",
        "checked_scale",
        "return max(scale, SMALLEST_SCALE)",
        "return scale",
        "test_noise.py::test_tiny_scales_are_zeros",
    ),
    bug(
        "calibration",
        "8: a scale that does not fit 64 bits, found out when noise is drawn",
        "scale_of",
        "    if step_sensitivity > Fraction(most) * divisor:",
        "    if False:",
        f"{REGISTER}::test_08_a_scale_that_overflows_is_refused_before_any_charge",
    ),
    bug(
        "results",
        "10: -0.0 among denoised numbers",
        "estimators.soft_threshold",
        "return moved_to_zero(values, level) + 0.0",
        "return moved_to_zero(values, level)",
        f"{REGISTER}::test_10_both_zeros_are_one_number_and_none_comes_out",
    ),
    # sensitivity
    bug(
        "rows",
        "16: sums of a block in 32 bits, since each step fits them",
        "row_totals.Sums._add",
        "added.astype(np.int64)",
        "added.astype(np.int32)",
        f"{REGISTER}::test_15_to_17_narrow_integers_do_not_wrap",
        f"{TOTALS}::test_narrow_dtypes_do_not_wrap",
    ),
    bug(
        "rows",
        "17: unsigned integers read as signed ones",
        "_for_role",
        '    if role == "value":\n',
        '    if dtype.is_unsigned_integer() and role in ("value", "raw"):\n'
        "        values = values.cast(pl.Int64, wrap_numerical=True)\n"
        '    if role == "value":\n',
        f"{REGISTER}::test_15_to_17_narrow_integers_do_not_wrap",
    ),
    bugs(
        "rows",
        "19: values added up as floats, and the sum rounded once",
        (
            (
                "row_totals.to_steps",
                "return on_grid(column.to_numpy(), bounds, steps)",
                "return np.clip(column.to_numpy(), *bounds) / step_length(bounds)",
            ),
            ("row_totals.Sums._add", "added.astype(np.int64)", "np.rint(added).astype(np.int64)"),
        ),
        f"{REGISTER}::test_18_to_20_sums_do_not_depend_on_order_and_round_each_row_once",
    ),
    bug(
        "rows",
        "20: each row rounded up, past the bound that is charged for",
        "on_grid",
        "return np.floor(steps, out=steps)",
        "return np.ceil(steps, out=steps)",
        "test_fuzz.py::test_totals_of_neighbors_stay_within_reach_on_every_engine",
    ),
    bug(
        "rows",
        "21: blocks that two threads add up",
        "of_blocks",
        "range(thread * BLOCK, table.height, workers * BLOCK)",
        "range(thread * BLOCK, table.height, BLOCK)",
        f"{REGISTER}::test_21_chunks_and_threads_do_not_matter",
    ),
    bug(
        "keys",
        "22: integers looked up as floats",
        "cells.filled",
        "whole = values.cast(pl.Int64)",
        "whole = values.cast(pl.Float64).cast(pl.Int64)",
        f"{REGISTER}::test_22_integers_beyond_2_53_are_told_apart_and_clip",
        f"{TOTALS}::test_integers_beyond_2_53_clip",
    ),
    bug(
        "keys",
        "23: decimals told apart as floats",
        "identity.of_rows",
        "return values.to_physical().cast(pl.String)",
        "return values.cast(pl.Float64).cast(pl.String)",
        f"{REGISTER}::test_23_decimals_are_exact",
        f"{TOTALS}::test_keys_of_dates_and_decimals",
    ),
    bug(
        "grids",
        "24: ticks of every column taken for microseconds",
        "tick_of",
        'TICKS[getattr(dtype, "time_unit", None) or "us"]',
        'TICKS["us"]',
        f"{REGISTER}::test_24_times_fall_in_the_bins_of_their_exact_ticks",
        f"{TOTALS}::test_temporal_bins_compare_exactly_in_every_unit",
    ),
    bug(
        "rows",
        "25: bools that are no numbers",
        "source._polars_type",
        'pl.Boolean: "number"',
        'pl.Boolean: "other"',
        f"{REGISTER}::test_25_bools_are_summed_as_numbers",
        f"{TOTALS}::test_every_dtype_of_numbers_is_summed_exactly",
    ),
    bug(
        "sensitivity",
        "30: bounds rounded for the rows and cut for the charge",
        "SumTotal.norm",
        "for step in grid_steps(self.bounds))",
        "for step in (int(bound / step_length(self.bounds)) for bound in self.bounds))",
        f"{REGISTER}::test_30_the_bounds_that_are_applied_are_those_that_are_charged_for",
    ),
    # special values and frames
    bug(
        "rows",
        "40: an empty frame refused",
        "results.measure",
        ANSWER,
        '    if hasattr(call.frame, "__len__") and not len(call.frame):\n'
        '        raise ReleaseFailed("the frame must have rows")\n' + ANSWER,
        SMALL,
    ),
    bug(
        "rows",
        "41: a warning where there is a single row",
        "results.measure",
        ANSWER,
        '    if hasattr(call.frame, "__len__") and len(call.frame) == 1:\n'
        '        warnings.warn("one row drowns in the noise", stacklevel=2)\n' + ANSWER,
        SMALL,
    ),
    bug(
        "rows",
        "42: missing values of a column that has no others counted as zeros",
        "row_totals.to_steps",
        "column = column.cast(pl.Float64).fill_null(math.nan)",
        "column = column.cast(pl.Float64).fill_null(math.nan if column.null_count() < len(column) else 0.0)",
        SMALL,
    ),
    bug(
        "keys",
        "44: an undeclared level counted in the last of the declared ones",
        "cells._spelled",
        "return (number.fill_null(NOWHERE) if number.null_count() else number).to_numpy()",
        "return number.fill_null(len(keys) - 1).to_numpy()",
        f"{REGISTER}::test_44_a_value_outside_the_declared_levels_is_in_no_cell",
    ),
    # keys
    bug(
        "keys",
        "48: rows without a key left out though None is declared",
        "Cells.positions",
        "        if keys.missing == NOWHERE or not values.null_count():",
        "        if True:",
        f"{REGISTER}::test_48_missing_keys_have_a_row_only_where_it_is_asked_for",
    ),
    bug(
        "before the charge",
        "51: edges in a Series, which may be quantiles of the data",
        "bins._checked_edges",
        'parsed[0][1] == "number" and type(bins).__name__ == "Series"',
        "False",
        f"{REGISTER}::test_51_and_52_bins_and_ranges_are_not_taken_from_data",
    ),
    bug(
        "before the charge",
        "52: a range taken from the data where none is declared",
        "PrivateFrame.histogram",
        "bin_axes(column, bins, range, categories, outside)",
        "bin_axes(column, bins, range or (self._frame[column].min(), self._frame[column].max()), categories, outside)",
        f"{REGISTER}::test_51_and_52_bins_and_ranges_are_not_taken_from_data",
    ),
    bug(
        "keys",
        "54: keys of any kind for any column",
        "_keys_of_column",
        "    _check_kind(name, column, kind, axis.argument)\n",
        "",
        f"{REGISTER}::test_54_keys_of_another_kind_match_nothing",
    ),
    # people with several rows
    bug(
        "units",
        "56: rows in no cell that take a part of a person's weight",
        "unit_blocks._add",
        "    if not places.all():",
        "    if False:",
        f"{REGISTER}::test_56_and_57_bounds_apply_to_what_is_counted",
    ),
    bug(
        "units",
        "57: a person's weight of rows that were in different cells before",
        "_add_part",
        "weights = reach.weights(size, owner, shared)",
        "weights = reach.weights(size, owner[:0], shared[:0])",
        f"{REGISTER}::test_56_and_57_bounds_apply_to_what_is_counted",
    ),
    bug(
        "units",
        "60: the first rows of a person counted, and the others cut",
        "_add_part",
        "    size = np.bincount(code, minlength=units)\n",
        FIRST_ROWS,
        f"{REGISTER}::test_60_the_order_of_rows_decides_nothing",
    ),
    bug(
        "accounting",
        "62: calls charged as if no row were in two of them",
        "exact.plus",
        "before + more for before",
        "max(before, more) for before",
        f"{REGISTER}::test_62_groups_that_overlap_are_charged_each",
    ),
    # metadata leaks
    bug(
        "before the charge",
        "72: errors that print whatever they were given",
        "errors.shown",
        "    if not _is_plain(value):\n        return named(value)\n",
        "",
        f"{REGISTER}::test_72_errors_show_no_value",
    ),
    # the budget
    bugs(
        "ledger",
        "79: the limit looked at before the transaction",
        (
            (
                "SqlStore.charge",
                "                allowed(last, plus(last.total, entry.amount))",
                "                pass",
            ),
            (
                "Ledger.take",
                "        mark = self._store.charge(entry",
                "        self._allowing(entry)(last := self._store.last(), plus(last.total, entry.amount))\n"
                '        __import__("time").sleep(0.02)\n'  # lets other threads read the same state
                "        mark = self._store.charge(entry",
            ),
        ),
        "test_durable.py::test_eight_threads_never_pass_the_limit",
        "test_durable.py::test_eight_forked_processes_never_pass_the_limit",
    ),
    bug(
        "ledger",
        "84: a ledger made anew wherever it is named",
        "SqlStore.make",
        "        address = Address.of(path)\n",
        "        address = Address.of(path)\n"
        '        for end in ("", ".head", "-journal") if address.file else ():\n'
        "            if os.path.exists(address.file + end):\n"
        "                os.remove(address.file + end)\n",
        f"{REGISTER}::test_84_a_cell_that_is_run_again_is_charged_again",
    ),
    bugs(
        "results",
        "88: a denoiser that is given the exact totals",
        (
            (
                "results.noisy_of",
                "        noisy = with_noise(part.mechanism, total)\n",
                "        noisy = with_noise(part.mechanism, total)\n"
                '        plan.__dict__["exact"] = total * part.mechanism.grid\n',
            ),
            ("results.denoised", "if axes else values\n", 'if axes else plan.__dict__["exact"]\n'),
            (
                "results.denoised",
                "cells = values.reshape(",
                'cells = plan.__dict__["exact"].reshape(',
            ),
        ),
        f"{REGISTER}::test_88_denoising_is_not_charged_and_sees_noisy_numbers_only",
    ),
    # loads and workers
    bug(
        "engines",
        "119: rows spilled to a file that has a name",
        "unnamed_file",
        "tempfile.TemporaryFile(dir=folder)",
        "tempfile.NamedTemporaryFile(dir=folder)",
        SPILLED,
    ),
    bug(
        "engines",
        "124: the folder of spilled rows left behind",
        "unnamed_file",
        "            _forget(folder)",
        "            pass",
        SPILLED,
    ),
    bug(
        "engines",
        "120: a partition counted twice where answers are added up",
        "dask._added",
        "    for partial in partials[1:]:",
        "    for partial in partials:",
        "test_dask.py::test_120_noise_is_drawn_once_whatever_the_number_of_tasks",
    ),
    bug(
        "engines",
        "122: texts of a collation of Spark taken for bytes",
        "_type_of_spark",
        ' or collation != "UTF8_BINARY"',
        "",
        "test_spark.py::test_collated_texts_are_refused_by_schema",
    ),
    bug(
        "local",
        "127: permanent bits that are the truth",
        "Rappor.reports",
        "self._responded(np.where(free, half, bits))",
        "self._responded(bits)",
        "test_rappor.py::test_who_sees_every_day_learns_no_more_than_epsilon_forever",
    ),
    # servers and streams
    bug(
        "ledger",
        "156: a server that is restarted taken for one that is lost for good",
        "database.LOST",
        '("08", "57P", "25P03")',
        '("08", "25P03")',
        f"{DOWN}::test_156_a_state_of_the_server_decides_what_passes",
    ),
    bug(
        "ledger",
        "156: an error of a server with the password in it",
        "database._said",
        "address.without_secrets(str(cause))",
        "str(cause)",
        f"{DOWN}::test_156_the_cause_is_whole_and_holds_no_password",
    ),
    bug(
        "ledger",
        "158: nothing charged, says an error at the commit",
        "Database.transaction",
        "                    committing = write\n",
        "",
        f"{DOWN}::test_158_a_connection_that_is_ended_before_or_at_the_commit",
    ),
    bug(
        "ledger",
        "158: a whole charge made again where the server breaks the head off",
        "SqlStore._keep_head",
        "            until_it_goes_through(self._write_newest, mine, anew)\n",
        "            self._write_newest(mine, anew)\n",
        f"{DOWN}::test_158_no_charge_is_made_twice_where_the_server_breaks_the_head_off",
    ),
    bug(
        "streams",
        "166: counts of a stream weighed as floats",
        "stream_plan.exact_sums",
        "return np.asarray(weights @ totals)",
        "return np.asarray((weights.astype(np.float64) @ totals).astype(np.int64))",
        "test_stream_design.py::test_166_counts_wrap_as_one_and_sums_hold_below_the_wrap",
    ),
)
