"""Seeded bugs of rows: how their values become integers and totals."""

from __future__ import annotations

from assurance.bugs.seeding import REGISTER, bug

# EXACT tests the one definition of the integers of values, which every engine without compiled kernels calls.
EXACT = "test_total_kinds.py::test_integers_are_those_of_exact_rationals"
ADDED = "test_total_kinds.py::test_engines_add_up_these_integers"
READ = "test_block_totals.py::test_values_of_any_size_and_kind"
ROWS = (
    bug(
        "rows",
        "no clipping",
        "on_grid",
        "np.clip(steps, lower, upper, out=steps)",
        "np.clip(steps, -(2.0**62), 2.0**62, out=steps)",
        EXACT,
    ),
    bug(
        "rows",
        "clipping at the top only",
        "on_grid",
        "np.clip(steps, lower, upper, out=steps)",
        "np.clip(steps, -(2.0**62), upper, out=steps)",
        EXACT,
    ),
    bug(
        "rows",
        "clipping one step past the bound",
        "on_grid",
        "np.clip(steps, lower, upper, out=steps)",
        "np.clip(steps, lower, upper + 1.0, out=steps)",
        EXACT,
    ),
    bug(
        "rows",
        "bounds of the grid rounded outward, the sensitivity not",
        "row_functions._scale",
        "lower, upper = grid_steps(bounds)",
        "lower, upper = grid_steps(bounds)[0] - 1, grid_steps(bounds)[1] + 1",
        EXACT,
    ),
    bug(
        "rows",
        "sums of floats",
        "on_grid",
        "return np.floor(steps, out=steps)",
        "return steps",
        EXACT,
    ),
    bug(
        "rows",
        "a cast that fails on NaN",
        "Terms.integers",
        "steps.cast(pl.Int64, strict=False)",
        "steps.cast(pl.Int64, strict=True)",
        READ,
    ),
    bug(
        "rows",
        "values read in single precision",
        "_for_role",
        '    if role == "value":\n        return values.cast(pl.Float64, strict=False)',
        '    if role == "value":\n        return values.cast(pl.Float32, strict=False).cast(pl.Float64)',
        READ,
    ),
    bug(
        "rows",
        "totals added up as floats",
        "added",
        "    np.add.at(whole, code, values)",
        "    whole = np.bincount(code, weights=values, minlength=cells).astype(np.int64)",
        f"{REGISTER}::test_09_and_15_totals_are_added_modulo_2_64",
    ),
    bug(
        "rows",
        "counts in 16 bits",
        "Terms.read",
        "line.rows * groups[ROWS].to_numpy().astype(np.int64)",
        "line.rows * groups[ROWS].to_numpy().astype(np.int16).astype(np.int64)",
        f"{REGISTER}::test_15_counts_do_not_wrap_either",
    ),
    bug(
        "rows",
        "NaN counted as present on one engine",
        "_for_role",
        "return values.is_not_null() & values.is_not_nan() if dtype.is_float() else values.is_not_null()",
        "return values.is_not_null()",
        f"{REGISTER}::test_31_to_34_and_39_special_values_follow_one_rule",
    ),
    bug(
        "rows",
        "odd objects that raise",
        "pandas_columns._number",
        "except Exception:  # whatever it raises",
        "except TypeError:",
        "test_totals.py::test_objects_of_any_kind_never_fail",
    ),
    bug(
        "rows",
        "a cell of a class of its own read as a number by its own methods",
        "pandas_columns._number",
        "return read(value)",
        "return float(value)",
        "test_own_code.py::test_189_no_method_of_a_cell_is_called_where_it_is_read",
    ),
    bug(
        "rows",
        "229: a fraction of a class of its own read by its own methods",
        "pandas_columns._whole",
        "int.__index__(slot.__get__(value))",
        "value.numerator if slot is NUMERATOR else value.denominator",
        "test_own_code.py::test_229_no_method_of_a_number_or_time_is_called_where_it_is_read",
    ),
    bug(
        "rows",
        "229: times of a class of its own read by its own methods",
        "pandas_columns.ticks_of",
        "else datetime.__sub__",
        "else type(value).__sub__",
        "test_own_code.py::test_229_no_method_of_a_number_or_time_is_called_where_it_is_read",
    ),
    bug(
        "rows",
        "a decimal compared with itself, which sets a flag in the caller's context",
        "kinds.is_missing",
        "return Decimal.is_nan(value)",
        "return bool(value != value)",
        "test_own_code.py::test_189_no_method_of_a_cell_is_called_where_it_is_read",
    ),
    bug(
        "rows",
        "a warning for complex numbers among objects",
        "pandas_columns._number",
        "return math.nan  # what is of no such class",
        "return float(value)",
        "test_adversary.py::TestOddValues",
    ),
    bug(
        "rows",
        "a column of objects refused where a column of numbers is not",
        "schema.check",
        "column.kind not in NUMBERS",
        'column.kind not in {"number"}',
        "test_adversary.py::test_one_row_changes_nothing_but_the_noise",
    ),
    bug(
        "rows",
        "the whole frame refused for one infinite value",
        "results.measure",
        "    return looked(lambda: exact_totals(plan, call.frame, reading, secret))",
        "    exact = looked(lambda: exact_totals(plan, call.frame, reading, secret))\n"
        "    if exact and max(abs(int(n)) for t in exact.values() for n in t) >= 2**29:\n"
        '        raise ValueError("a total is too large")\n'
        "    return exact",
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "rows",
        "a warning where a cell is empty",
        "results.measure",
        "    return looked(lambda: exact_totals(plan, call.frame, reading, secret))",
        "    exact = looked(lambda: exact_totals(plan, call.frame, reading, secret))\n"
        "    if exact and any((t == 0).any() for t in exact.values()):\n"
        "        import warnings\n\n"
        '        warnings.warn("an empty group", stacklevel=2)\n'
        "    return exact",
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
)
