"""Seeded bugs of the room "units"."""

from __future__ import annotations

from assurance.bugs.seeding import HEAVY, PEOPLE, REGISTER, bug

WEIGHTS = (
    "    norm = np.maximum(powers, 1.0) ** (1.0 / p)\n"
    "    return np.where(rows <= min(most, EXACT_ROWS), 1.0, np.minimum(SHAVE, most * SHAVE / norm))"
)
UNITS = (
    bug(
        "units",
        "a weight above 1",
        "_weights",
        WEIGHTS,
        WEIGHTS.replace("EXACT_ROWS), 1.0", "EXACT_ROWS), 1.5"),
        PEOPLE,
    ),
    bug(
        "units",
        "no weights at all",
        "_weights",
        WEIGHTS,
        "    return np.ones(rows.size)",
        HEAVY,
        PEOPLE,
    ),
    bug(
        "units",
        "weights shaved to the wrong side",
        "SHAVE",
        "SHAVE = 1.0 - 1e-9",
        "SHAVE = 1.0 + 1e-9",
        HEAVY,
        PEOPLE,
    ),
    bug(
        "units",
        "the norm of a unit as if its rows lay in different cells",
        "_powers",
        "        np.add.at(exact, owner, whole * whole - whole)\n",
        "",
        HEAVY,
        PEOPLE,
    ),
    bug(
        "units",
        "squares of counts added as floats",
        "_powers",
        "        whole, exact = size.astype(np.uint64), rows.astype(np.uint64)",
        "        whole, exact = size, rows.astype(np.float64)",
        "test_totals.py::test_104_sums_of_squares_do_not_depend_on_order",
    ),
    bug(
        "ledger",
        "a head that is first opened after the charge",
        "SqlStore._writing",
        "                heads.check_writable(self.database.address.file)",
        "                pass",
        "test_durable.py::test_97_a_head_that_cannot_be_written_is_known_before_the_charge",
    ),
    bug(
        "units",
        "weighted totals rounded away from zero",
        "_truncated",
        "(values.cast(pl.Float64) * (weight * grid)).cast(",
        "(values.cast(pl.Float64) * (weight * grid) + 0.99).floor().cast(",
        HEAVY,
        PEOPLE,
    ),
    bug(
        "units",
        "max_rows in each group, whatever the number of groups",
        "bounded",
        "most = unit.max_rows * min(unit.max_groups, cells) ** (1.0 / p)",
        "most = unit.max_rows * cells ** (1.0 / p)",
        HEAVY,
        PEOPLE,
    ),
    bug(
        "units",
        "rows without a unit kept where they are to be left out",
        "bounded",
        'if unit.nulls == "drop" and table["unit"].null_count():',
        "if False:",
        "test_totals.py::test_missing_units_are_left_out_or_one_unit",
    ),
    bug(
        "units",
        "the weights of single cells for subtotals too",
        "bounded",
        "    if merged:  # no unit that is not heavy",
        "    if False:  # no unit that is not heavy",
        "test_rollup.py::test_a_unit_in_many_cells_stays_within_the_bound",
    ),
    bug(
        "sensitivity",
        "subtotals with the reach of single cells",
        "sensitivity.of",
        "rows=unit.max_rows if merged is None else unit.max_rows * groups,",
        "rows=unit.max_rows,",
        "test_rollup.py::test_a_unit_in_many_cells_stays_within_the_bound",
        "test_rollup.py::test_a_unit_nearly_attains_the_bound_in_every_level",
    ),
    bug(
        "units",
        "two ids taken for one",
        "unit_codes",
        "codes.fill_null(distinct).to_numpy(), distinct + missing",
        "codes.fill_null(distinct).to_numpy() // 2, distinct + missing",
        f"{REGISTER}::test_59_ids_of_other_kinds_are_other_people",
    ),
    bug(
        "units",
        '"1" and 1 taken for one id',
        "_unit_codes",
        "seen.setdefault(same(value), len(seen))",
        "seen.setdefault(str(value), len(seen))",
        "test_totals.py::test_unit_ids_of_different_types_are_different_units",
    ),
)
