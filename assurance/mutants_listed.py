"""The seeded privacy bugs: where, what, how, and the tests that must catch each of them.

A change names a text that occurs once in the package, whatever file it is in, so that a list that no longer fits the
code is found by ``tests/test_mutants.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One bug: a few replacements in the package, and the tests that are run against it."""

    room: str
    name: str
    changes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def _bug(room: str, name: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(room, name, ((old, new),), tuple(f"tests/{test}" for test in tests))


def _bugs(room: str, name: str, changes: tuple[tuple[str, str], ...], *tests: str) -> Mutant:
    return Mutant(room, name, changes, tuple(f"tests/{test}" for test in tests))


REGISTER = "test_register.py"
ATTAINED = "test_sensitivity.py::test_one_row_attains_the_bound"
HEAVY = "test_sensitivity.py::test_a_unit_of_many_rows_stays_within_the_bound"
NORMS = "test_sensitivity.py::test_norms_are_rounded_up"
PEOPLE = f"{REGISTER}::test_55_61_and_63_one_person_reaches_no_farther_than_charged_for"
WEIGHTS = (
    "    norm = np.maximum(powers, 1.0) ** (1.0 / p)\n"
    "    return np.where(rows <= min(most, EXACT_ROWS), 1.0, np.minimum(SHAVE, most * SHAVE / norm))"
)
NOISE = (
    _bug(
        "noise",
        "a Laplace scale that is 10% too small",
        "scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE)",
        "0.9 * scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE)",
        "test_mechanisms.py::test_scales_are_rounded_up",
    ),
    _bug(
        "noise",
        "Laplace noise drawn with 0.9 of the scale that is stated",
        "noise.discrete_laplace(self.step_scale,",
        "noise.discrete_laplace(0.9 * self.step_scale,",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    _bug(
        "noise",
        "Gaussian noise drawn with 0.9 of the scale that is stated",
        "scale = math.nextafter(self.step_scale * math.sqrt(2.0), math.inf)",
        "scale = 0.9 * self.step_scale * math.sqrt(2.0)",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    _bug(
        "noise",
        "sigma taken for the scale b of the family, sqrt(2) forgotten",
        "scale = math.nextafter(self.step_scale * math.sqrt(2.0), math.inf)",
        "scale = self.step_scale",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    _bug(
        "noise",
        "one draw for all cells",
        "noise.discrete_laplace(self.step_scale, checked_integers(totals).size)",
        "np.repeat(noise.discrete_laplace(self.step_scale, 1), checked_integers(totals).size)",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    _bug(
        "noise",
        "noise as floats from NumPy's generator",
        "Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism)",
        "Measured(noisy.astype(np.float64) * part.mechanism.grid + np.random.laplace(size=noisy.shape),"
        " part.mechanism)",
        f"{REGISTER}::test_01_to_05_numbers_lie_on_a_grid_that_is_public",
    ),
    _bug(
        "noise",
        "bits that anybody can compute",
        '"dpframe_random_bytes", default=os.urandom)',
        '"dpframe_random_bytes", default=lambda size: hashlib.shake_256(b"0").digest(size))',
        "test_noise.py::test_the_bits_are_the_operating_systems",
    ),
    _bugs(
        "noise",
        "bits kept in a buffer that a forked child inherits",
        (
            ("def numbers(count: int, bits: int)", "_buffer = bytearray()\n\n\ndef numbers(count: int, bits: int)"),
            (
                '    drawn = np.frombuffer(_source.get()(size * count), dtype=f"u{size}")',
                "    if len(_buffer) < size * count:\n"
                "        _buffer.extend(_source.get()(size * count + 2**16))\n"
                '    drawn = np.frombuffer(bytes(_buffer[: size * count]), dtype=f"u{size}")\n'
                "    del _buffer[: size * count]",
            ),
        ),
        f"{REGISTER}::test_90_a_forked_child_shares_no_draw_with_its_parent",
    ),
    _bug(
        "noise",
        "a law that is half a step off",
        "return 0.0 if self.discrete else 0.5",
        "return 0.5",
        "test_noise.py::test_draws_have_exactly_their_law",
    ),
    _bug(
        "noise",
        "a choice as sharp under replacement as under addition",
        "cls(reach * (1 if monotonic else 2),",
        "cls(reach,",
        "test_selection.py::test_replacement_takes_twice_the_spread",
    ),
    _bug(
        "noise",
        "noise on bounds for several cells by the loss of one",
        "cells=1.0 if sensitivity.swayed == 1 else math.inf,",
        "cells=1.0,",
        "test_truncated.py::test_units_and_replacement_are_covered_by_the_l1_norm",
    ),
    _bug(
        "noise",
        "noise that is never negative",
        "return drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size)",
        "return np.abs(drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size))",
        "test_noise.py::test_draws_have_exactly_their_law",
    ),
    _bug(
        "noise",
        "no tails beyond the table",
        "        tried[tail], kept[tail] = _tail(table)",
        "        pass",
        f"{REGISTER}::test_02_to_04_tails_are_not_cut",
    ),
    _bug(
        "noise",
        "every point of a rectangle kept",
        "        found[place] = below(int(drawn[place]), thresholds(int(place)))\n    return found",
        "        found[place] = below(int(drawn[place]), thresholds(int(place)))\n    return np.ones_like(found)",
        "test_noise.py::test_what_the_guide_leaves_over_has_exactly_its_law",
    ),
    _bug(
        "noise",
        "undecided draws taken as decided",
        "        found[place] = below(int(drawn[place]), thresholds(int(place)))",
        "        pass",
        f"{REGISTER}::test_02_to_04_what_double_precision_leaves_open_is_decided_exactly",
    ),
    _bug(
        "noise",
        "low digits of large noise left at zero",
        "            batch |= numbers(batch.size, digits)",
        "            pass",
        f"{REGISTER}::test_02_and_03_the_last_bits_of_large_noise_are_even",
    ),
    _bug(
        "noise",
        "addition that saturates instead of wrapping",
        "return (totals.view(np.uint64) + drawn.reshape(totals.shape).view(np.uint64)).view(np.int64)",
        "return np.clip(totals.astype(np.float64) + drawn.reshape(totals.shape), -(2.0**63), 2.0**63 - 1025)"
        ".astype(np.int64)",
        "test_noise.py::test_addition_wraps_and_keeps_the_shape",
    ),
    _bug(
        "noise",
        "noisy counts cut at zero before the raw value is shown",
        "noisy = part.mechanism.add_noise(found.pop(part.statistic))",
        "noisy = np.maximum(part.mechanism.add_noise(found.pop(part.statistic)), 0)",
        f"{REGISTER}::test_11_and_27_nothing_is_cut_at_zero_or_at_the_bounds",
    ),
    _bug(
        "noise",
        "empty cells left without noise",
        "noisy = part.mechanism.add_noise(found.pop(part.statistic))",
        "exact = found.pop(part.statistic)\n        noisy = np.where(exact == 0, 0, part.mechanism.add_noise(exact))",
        f"{REGISTER}::test_46_and_47_empty_cells_have_noise_of_their_own",
    ),
    _bug(
        "noise",
        "seeded bits without a stamp",
        "if not secure:",
        "if False:",
        "test_results.py::test_seeded_bits_are_stamped",
    ),
)
CALIBRATION = (
    _bug(
        "calibration",
        "a scale rounded to nearest instead of up",
        "    return up(step_sensitivity / divisor)",
        "    return float(step_sensitivity / divisor)",
        "test_mechanisms.py::test_scales_are_rounded_up",
    ),
    _bug(
        "calibration",
        "the analytic mu rounded to the wrong side",
        "return edge(lambda mu: delta_exceeds(mu, epsilon, delta), guess, SMALLER)",
        "return edge(lambda mu: not delta_exceeds(mu, epsilon, delta), guess, LARGER)",
        "test_mechanisms.py::test_sigma_is_never_too_small_and_hardly_too_large",
    ),
    _bug(
        "calibration",
        "spent epsilon rounded to the wrong side",
        "return edge(lambda epsilon: delta_exceeds(mu, epsilon, delta), guess, LARGER)",
        "return edge(lambda epsilon: not delta_exceeds(mu, epsilon, delta), guess, SMALLER)",
        "test_mechanisms.py::test_gaussian_epsilon_inverts_delta",
    ),
    _bug(
        "calibration",
        "the classical formula beyond epsilon 1",
        "mu = gaussian.largest_mu(down(exact_epsilon(epsilon)), down(exact_delta(delta)))",
        "mu = float(epsilon) / math.sqrt(2 * math.log(1.25 / float(delta)))",
        "test_mechanisms.py::test_every_road_to_a_sigma_leads_to_the_same",
    ),
    _bug(
        "calibration",
        "the Laplace sensitivity in the Euclidean norm",
        "Laplace.of_steps(math.ceil(sensitivity.steps(1)),",
        "Laplace.of_steps(math.ceil(sensitivity.steps(2)),",
        f"{REGISTER}::test_63_noise_covers_all_groups_of_a_person_in_its_own_norm",
    ),
    _bug(
        "calibration",
        "sensitivity between two grid steps rounded down",
        'steps = math.ceil(positive("sensitivity", sensitivity) / positive("grid", grid))',
        'steps = max(1, math.floor(positive("sensitivity", sensitivity) / positive("grid", grid)))',
        "test_mechanisms.py::test_a_sensitivity_between_steps_counts_as_the_next",
    ),
    _bug(
        "calibration",
        "every statistic of a call at the price of the whole call",
        "                epsilon * share,\n                None if whole",
        "                epsilon,\n                None if whole",
        f"{REGISTER}::test_29_asking_again_is_charged_again_and_parts_share_the_price",
    ),
    _bug(
        "calibration",
        "parts of a call with more mu than their share",
        "        return Part(Fraction(gaussian.mu_to_pure(mu)), mu, gaussian_loss(price, mu, self.delta))",
        "        return Part(Fraction(gaussian.mu_to_pure(mu)), 1.5 * mu, gaussian_loss(price, mu, self.delta))",
        f"{REGISTER}::test_29_parts_of_a_call_under_gdp_share_mu_squared",
    ),
    _bug(
        "accounting",
        "each of the orders of rdp with the whole of delta",
        "floor(epsilon - conversion(a, w * delta), GRID)",
        "floor(epsilon - conversion(a, delta), GRID)",
        "test_renyi.py::test_the_adversary_gets_no_more_than_delta_from_a_ledger",
    ),
    _bug(
        "accounting",
        "divergences of discrete Laplace noise without the outcomes between the two totals",
        "moment = ((above + below) + falls * between)",
        "moment = (above + below)",
        "test_renyi.py::test_discrete_laplace_from_its_definition",
    ),
    _bug(
        "accounting",
        "an integral of a divergence without the bound on its error",
        ".sum()) + 1.0)",
        ".sum()) - 1.0)",
        "test_renyi.py::test_the_general_integral_agrees_with_the_closed_form_of_gaussian_noise",
    ),
    _bug(
        "accounting",
        "a hundredth less noise than the whole may have",
        "    return _divided(noises, low)\n",
        "    return _divided(noises, low * 1.01)\n",
        "test_together.py::test_mixed_noise_costs_exactly_its_price",
    ),
    _bug(
        "accounting",
        "a loss distribution on a curve that is a thousandth too low",
        "np.clip(mechanism.deltas(epsilons), 0.0, 1.0)",
        "np.clip(mechanism.deltas(epsilons) * 0.999, 0.0, 1.0)",
        "test_compositions.py::test_composed_gaussians_are_never_below_their_closed_form",
    ),
    _bug(
        "calibration",
        "noise of a caller that covers too little sensitivity",
        "if mechanism.sensitivity < needed:",
        "if False:",
        "test_refusals.py",
    ),
    _bug(
        "calibration",
        "noise of a caller that costs a little more than its part",
        "if mechanism.delta(part.loss.epsilon) > part.loss.delta:",
        "if mechanism.delta(part.loss.epsilon) > part.loss.delta * 1.01:",
        "test_mechanisms.py::test_noise_of_a_caller_may_not_cost_even_a_little_more",
    ),
    _bug(
        "calibration",
        "noise that is proven for one cell used on many",
        "if mechanism.cells < sensitivity.swayed:",
        "if False:",
        "test_generalized.py::test_noise_made_by_hand_does_not_get_around_the_cells",
    ),
)
SENSITIVITY = (
    _bug(
        "sensitivity",
        "replace neighbors counted as add-remove, non-negative",
        "two_cells = _root_up(self.rows * largest, 2 * Fraction(self.groups), p)",
        "two_cells = _root_up(self.rows * largest, Fraction(self.groups), p)",
        ATTAINED,
    ),
    _bug(
        "sensitivity",
        "replace neighbors counted as add-remove, signed",
        "return two_cells if self.weighted else max(two_cells, one_cell)",
        "return two_cells",
        ATTAINED,
    ),
    _bug(
        "sensitivity",
        "one cell under replace moved by one end only",
        "one_cell = up(Fraction(self.rows * (largest + other)))",
        "one_cell = up(Fraction(self.rows * largest))",
        ATTAINED,
    ),
    _bug(
        "sensitivity",
        "max_rows forgotten",
        "return _root_up(self.rows * largest, Fraction(self.groups), p)",
        "return _root_up(largest, Fraction(self.groups), p)",
        NORMS,
    ),
    _bug(
        "sensitivity",
        "max_groups forgotten",
        "return _root_up(self.rows * largest, Fraction(self.groups), p)",
        "return _root_up(self.rows * largest, Fraction(1), p)",
        NORMS,
    ),
    _bug(
        "sensitivity",
        "the upper bound taken for the larger one",
        "largest, other = sorted((-self.reach[0], self.reach[1]), reverse=True)",
        "other, largest = -self.reach[0], max(self.reach[1], 1)",
        ATTAINED,
    ),
    _bug(
        "sensitivity",
        "a root rounded to nearest",
        "while Fraction(estimate) ** 2 < single * single * powers:",
        "while False:",
        NORMS,
    ),
    _bug(
        "sensitivity",
        "signed vectors of two people, as if only one end moved in each cell",
        "Fraction(2 * (largest**2 + other**2) * self.groups)",
        "Fraction(2 * largest**2 * self.groups)",
        "test_sensitivity.py",
    ),
    _bug(
        "sensitivity",
        "missing values forgotten: the least that a row may add is its bound",
        "return (min(lower, 0), max(upper, 0))",
        "return (lower, upper)",
        ATTAINED,
    ),
)
ROWS = (
    _bug(
        "rows",
        "no clipping",
        "(scaled.clip(float(lower), float(upper)) + 0.5)",
        "(scaled.clip(-(2.0**62), 2.0**62) + 0.5)",
        ATTAINED,
    ),
    _bug(
        "rows",
        "clipping at the top only",
        "(scaled.clip(float(lower), float(upper)) + 0.5)",
        "(scaled.clip(-(2.0**62), float(upper)) + 0.5)",
        ATTAINED,
    ),
    _bug(
        "rows",
        "clipping one step past the bound",
        "(scaled.clip(float(lower), float(upper)) + 0.5)",
        "(scaled.clip(float(lower), float(upper) + 1.0) + 0.5)",
        ATTAINED,
    ),
    _bug(
        "rows",
        "bounds of the grid rounded outward, the sensitivity not",
        "    lower, upper = statistic.steps\n    scaled",
        "    lower, upper = statistic.steps[0] - 1, statistic.steps[1] + 1\n    scaled",
        ATTAINED,
    ),
    _bug(
        "rows",
        "sums of floats",
        "+ 0.5).floor().cast(pl.Int64, strict=False)",
        "+ 0.5)",
        f"{REGISTER}::test_18_to_20_sums_do_not_depend_on_order_and_round_each_row_once",
    ),
    _bug(
        "rows",
        "a cast that fails on NaN",
        "+ 0.5).floor().cast(pl.Int64, strict=False)",
        "+ 0.5).floor().cast(pl.Int64, strict=True)",
        f"{REGISTER}::test_31_to_34_and_39_special_values_follow_one_rule",
    ),
    _bug(
        "rows",
        "values read in single precision",
        '    if role == "value":\n        return values.cast(pl.Float64, strict=False)',
        '    if role == "value":\n        return values.cast(pl.Float32, strict=False).cast(pl.Float64)',
        f"{REGISTER}::test_18_values_are_read_in_double_precision",
    ),
    _bug(
        "rows",
        "totals added up as floats",
        "    np.add.at(whole, code, values)",
        "    whole = np.bincount(code, weights=values, minlength=cells).astype(np.int64)",
        f"{REGISTER}::test_09_and_15_totals_are_added_modulo_2_64",
    ),
    _bug(
        "rows",
        "counts in 16 bits",
        "return groups[ROWS].to_numpy().astype(np.int64)",
        "return groups[ROWS].to_numpy().astype(np.int16).astype(np.int64)",
        f"{REGISTER}::test_15_counts_do_not_wrap_either",
    ),
    _bug(
        "rows",
        "NaN counted as present on one engine",
        "return values.is_not_null() & values.is_not_nan() if dtype.is_float() else values.is_not_null()",
        "return values.is_not_null()",
        f"{REGISTER}::test_31_to_34_and_39_special_values_follow_one_rule",
    ),
    _bug(
        "rows",
        "odd objects that raise",
        "except Exception:  # what is no number is missing, whatever it raises",
        "except TypeError:",
        "test_totals.py::test_objects_of_any_kind_never_fail",
    ),
    _bug(
        "rows",
        "a warning for complex numbers among objects",
        "float(value) if isinstance(value, NUMBERS) else math.nan",
        "float(value)",
        "test_adversary.py::TestOddValues",
    ),
    _bug(
        "rows",
        "a column of objects refused where a column of numbers is not",
        'column.kind not in {"number", *ANYTHING}',
        'column.kind not in {"number"}',
        "test_adversary.py::test_one_row_changes_nothing_but_the_noise",
    ),
    _bug(
        "rows",
        "the whole frame refused for one infinite value",
        "    found = _look(plan)",
        "    found = _look(plan)\n"
        "    if found and max(abs(int(n)) for t in found.values() for n in t) >= 2**29:\n"
        '        raise ValueError("a total is too large")',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    _bug(
        "rows",
        "a warning where a cell is empty",
        "    found = _look(plan)",
        "    found = _look(plan)\n"
        "    if found and any((t == 0).any() for t in found.values()):\n"
        "        import warnings\n\n"
        '        warnings.warn("an empty group", stacklevel=2)',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
)
UNITS = (
    _bug(
        "units",
        "a weight above 1",
        WEIGHTS,
        WEIGHTS.replace("EXACT_ROWS), 1.0", "EXACT_ROWS), 1.5"),
        PEOPLE,
    ),
    _bug(
        "units",
        "no weights at all",
        WEIGHTS,
        "    return np.ones(rows.size)",
        HEAVY,
        PEOPLE,
    ),
    _bug(
        "units",
        "weights shaved to the wrong side",
        "SHAVE = 1.0 - 1e-9",
        "SHAVE = 1.0 + 1e-9",
        HEAVY,
        PEOPLE,
    ),
    _bug(
        "units",
        "the norm of a unit as if its rows lay in different cells",
        "np.add.at(powers, owner[starts], size**p - size)",
        "pass",
        HEAVY,
        PEOPLE,
    ),
    _bug(
        "units",
        "weighted totals rounded away from zero",
        "(values.cast(pl.Float64) * (weight * grid)).cast(",
        "(values.cast(pl.Float64) * (weight * grid) + 0.99).floor().cast(",
        HEAVY,
        PEOPLE,
    ),
    _bug(
        "units",
        "max_rows in each group, whatever the number of groups",
        "most = unit.max_rows * min(unit.max_groups, cells) ** (1.0 / p)",
        "most = unit.max_rows * cells ** (1.0 / p)",
        HEAVY,
        PEOPLE,
    ),
    _bug(
        "units",
        "rows without a unit kept where they are to be left out",
        'if unit.nulls == "drop" and table["unit"].null_count():',
        "if False:",
        "test_totals.py::test_missing_units_are_left_out_or_one_unit",
    ),
    _bug(
        "units",
        "the weights of single cells for subtotals too",
        "    if merged:  # no unit that is not heavy",
        "    if False:  # no unit that is not heavy",
        "test_rollup.py::test_a_unit_in_many_cells_stays_within_the_bound",
    ),
    _bug(
        "sensitivity",
        "subtotals with the reach of single cells",
        "rows=unit.max_rows if merged is None else unit.max_rows * groups,",
        "rows=unit.max_rows,",
        "test_rollup.py::test_a_unit_in_many_cells_stays_within_the_bound",
        "test_rollup.py::test_a_unit_nearly_attains_the_bound_in_every_level",
    ),
    _bug(
        "units",
        "two ids taken for one",
        "codes.fill_null(distinct).to_numpy(), distinct + missing",
        "codes.fill_null(distinct).to_numpy() // 2, distinct + missing",
        f"{REGISTER}::test_59_ids_of_other_kinds_are_other_people",
    ),
    _bug(
        "units",
        '"1" and 1 taken for one id',
        "seen.setdefault(value, len(seen))",
        "seen.setdefault(str(value), len(seen))",
        "test_totals.py::test_unit_ids_of_different_types_are_different_units",
    ),
)
RESULTS = (
    _bug(
        "results",
        "the exact number of rows in the provenance",
        '"raw": raw,\n',
        '"raw": raw,\n        "rows": getattr(plan.frame, "height", getattr(plan.frame, "shape", (0,))[0]),\n',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    _bug(
        "results",
        "a hash of the data in the provenance",
        '"raw": raw,\n',
        '"raw": raw,\n        "data": hash(str(plan.frame)),\n',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    _bug(
        "results",
        "the number of rows in a log line",
        'log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)',
        'log.info("released %s rows for %s, protecting %s", getattr(plan.frame, "shape", ""), plan.cost, plan.unit)',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    _bug(
        "results",
        "attrs of the data inherited by the result",
        "    return build.attach(frame, facts)",
        '    getattr(frame, "attrs", {}).update(getattr(plan.frame, "attrs", {}))\n'
        "    return build.attach(frame, facts)",
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    _bug(
        "results",
        "rows in the order of the data",
        "        return pandas.DataFrame(dict(columns))",
        "        made = pandas.DataFrame(dict(columns))\n"
        "        return made.sort_values(made.columns[-2], ignore_index=True) if len(made) > 1 else made",
        f"{REGISTER}::test_45_46_and_49_rows_are_the_declared_keys_in_their_order",
    ),
    _bug(
        "results",
        "cells without rows left out",
        "    return _recorded(plan, build.frame_of(columns, library_of(plan.frame)), denoised, options, place)",
        "    kept = np.asarray(values) > 0.5\n"
        "    columns = {name: [v for v, k in zip(c, kept) if k] for name, c in columns.items()}\n"
        "    return _recorded(plan, build.frame_of(columns, library_of(plan.frame)), denoised, options, place)",
        f"{REGISTER}::test_45_46_and_49_rows_are_the_declared_keys_in_their_order",
    ),
    _bug(
        "results",
        "a mean over the exact number of rows",
        "noisy = part.mechanism.add_noise(found.pop(part.statistic))",
        "exact = found.pop(part.statistic)\n"
        "        noisy = exact if len(plan.parts) > 1 and part.statistic.bounds is None"
        " else part.mechanism.add_noise(exact)",
        f"{REGISTER}::test_26_a_mean_is_not_taken_over_the_exact_count",
    ),
    _bug(
        "results",
        "the error of the engine told to the caller",
        "    except BaseException:  # a panic of the Polars engine",
        "    except BaseException as error:\n"
        '        raise ReleaseFailed(f"the engine failed: {error}") from error\n'
        "    except BaseException:  # a panic of the Polars engine",
        "test_results.py::test_an_error_of_the_engine_tells_nothing",
    ),
    _bug(
        "results",
        "the levels of a pandas Categorical taken for declared keys",
        "return ColumnType(kind, str(dtype), aware=aware, tick=tick, coded=pandas_columns.is_coded(dtype))",
        'levels = tuple(dtype.categories) if kind == "category" else None\n'
        "    return ColumnType(kind, str(dtype), aware=aware, tick=tick, coded=pandas_columns.is_coded(dtype),"
        " levels=levels)",
        f"{REGISTER}::test_50_levels_of_the_data_are_not_kept",
    ),
    _bug(
        "results",
        "keys taken from an array of data",
        "if not isinstance(values, (list, tuple, range)):",
        'values = list(values) if hasattr(values, "tolist") else values\n'
        "    if not isinstance(values, (list, tuple, range)):",
        "test_refusals.py",
    ),
    _bug(
        "results",
        "a key that is declared twice counted twice",
        "            if row in seen:",
        "            if False:",
        f"{REGISTER}::test_53_keys_are_declared_once",
    ),
)
LEDGER = (
    _bug(
        "ledger",
        "no charge",
        "        self._entries.append(entry)\n",
        "        return\n",
        "test_ledger.py::test_a_refused_charge_leaves_the_rest_to_smaller_ones",
    ),
    _bugs(
        "ledger",
        "rows read before the charge",
        (
            (
                "    place = ledger.take(entry)",
                "    found = _look(plan)\n    place = ledger.take(entry)",
            ),
            ("    found = _look(plan)\n    if found is None:", "    if found is None:"),
        ),
        "test_ledger.py::test_the_charge_stands_before_any_row_is_read",
        "test_ledger.py::test_nothing_is_read_when_the_budget_is_exceeded",
    ),
    _bug(
        "ledger",
        "a refund when the engine fails",
        "    if found is None:\n        raise ReleaseFailed(",
        "    if found is None:\n"
        "        spent = tuple(a - b for a, b in zip(ledger._store._last.total, plan.amount))\n"
        "        ledger._store._last = replace(ledger._store._last, total=spent)\n"
        "        raise ReleaseFailed(",
        "test_ledger.py::test_a_failing_engine_keeps_the_charge_and_says_nothing",
    ),
    _bug(
        "ledger",
        "a negative charge",
        "if not all(part >= 0 for part in entry.amount):",
        "if False:",
        "test_ledger.py::test_nothing_refunds",
    ),
    _bug(
        "ledger",
        "a limit that may be passed by a billionth",
        "within = [part <= most for part, most in zip(total, limit, strict=True)]",
        "within = [part <= most * (1 + Fraction(1, 10**9)) for part, most in zip(total, limit, strict=True)]",
        f"{REGISTER}::test_85_and_89_limits_hold_to_the_last_digit",
    ),
    _bug(
        "ledger",
        "the limit held against what was spent before the charge",
        "if limit is not None and not limit.holds(total):",
        "if limit is not None and not limit.holds(last.total):",
        "test_ledger.py::test_a_refused_charge_leaves_the_rest_to_smaller_ones",
    ),
    _bug(
        "ledger",
        "delta without a limit",
        "within = [part <= most for part, most in zip(total, limit, strict=True)]",
        "within = [part <= most for part, most in zip(total[:1], limit)]",
        f"{REGISTER}::test_85_and_89_limits_hold_to_the_last_digit",
    ),
    _bug(
        "ledger",
        "delta not charged",
        "return (price.epsilon, price.delta or Fraction(0))",
        "return (price.epsilon, Fraction(0))",
        f"{REGISTER}::test_85_and_89_limits_hold_to_the_last_digit",
    ),
    _bug(
        "ledger",
        "budgets as binary floats",
        "return Fraction(repr(approximate))",
        "return Fraction(approximate)",
        "test_accounting.py::test_three_tenths_hold_exactly_three_times_one_tenth",
    ),
    _bug(
        "ledger",
        "a subnormal epsilon",
        "if 0 < approximate < SMALLEST_NORMAL:",
        "if False:",
        f"{REGISTER}::test_86_and_87_an_epsilon_that_is_none_is_refused",
    ),
    _bug(
        "ledger",
        "True taken for an epsilon of 1",
        "return isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool)",
        "return isinstance(value, (numbers.Real, Decimal))",
        f"{REGISTER}::test_86_and_87_an_epsilon_that_is_none_is_refused",
    ),
    _bug(
        "ledger",
        "a charge of mu squared rounded down",
        "return (ceil(sum((mechanism.mu_squared for mechanism in mechanisms), Fraction(0))),)",
        "return (floor(sum((mechanism.mu_squared for mechanism in mechanisms), Fraction(0))),)",
        f"{REGISTER}::test_85_a_budget_of_mu_is_not_passed_by_rounding",
        "test_accounting.py",
    ),
    _bug(
        "ledger",
        "a limit of mu squared rounded up",
        "most = floor(Fraction(gaussian.largest_mu(down(epsilon), down(delta))) ** 2)",
        "most = ceil(Fraction(gaussian.largest_mu(down(epsilon), down(delta)) * (1 + 1e-12)) ** 2)",
        f"{REGISTER}::test_85_a_budget_of_mu_is_not_passed_by_rounding",
        "test_accounting.py",
    ),
    _bug(
        "ledger",
        "every order of rdp with the whole of delta",
        "WEIGHTS = (Fraction(9, 10), *(Fraction(1, 50),) * 5)",
        "WEIGHTS = (Fraction(1),) * 6",
        "test_renyi.py::test_the_deltas_of_the_orders_add_up",
        "test_renyi.py::test_the_adversary_gets_no_more_than_delta_from_a_ledger",
    ),
    _bug(
        "ledger",
        "basic limits of which one is enough",
        "return any(within) if one_is_enough else all(within)",
        "return any(within)",
        f"{REGISTER}::test_85_and_89_limits_hold_to_the_last_digit",
    ),
    _bug(
        "ledger",
        "a stored answer returned for another question",
        "            refuse_other_facts(entry, earlier)\n",
        "",
        "test_replay.py::test_other_public_facts_are_refused",
    ),
    _bug(
        "ledger",
        "the mu of pure noise rounded to the wrong side",
        "return edge(too_small, guess, LARGER)",
        "return edge(lambda mu: not too_small(mu), guess, SMALLER)",
        "test_mechanisms.py::test_mu_of_pure_noise_is_never_too_small",
    ),
    _bug(
        "ledger",
        "a copy with a budget of its own",
        "        return self  # a copy would be a second budget for the same people",
        "        other = Ledger.__new__(Ledger)\n"
        "        other._start(self._accounting, self._terms, MemoryStore())\n"
        "        return other",
        "test_ledger.py::test_copies_are_the_same_ledger",
    ),
    _bug(
        "ledger",
        "a forked child that spends the same budget",
        "if os.getpid() != self._process:",
        "if False:",
        "test_ledger.py::test_a_forked_child_is_refused",
    ),
    _bug(
        "ledger",
        "a pickle with a budget of its own",
        "        return _unpickled, self._store.identity",
        "        return Ledger, (self._terms.epsilon, self._terms.delta)",
        "test_ledger.py::test_pickling_is_refused",
    ),
    _bug(
        "ledger",
        "threads that do not wait for each other",
        "        with self._lock:\n            allowed(self._last, plus(self._last.total, entry.amount))\n",
        "        if True:\n"
        "            allowed(self._last, plus(self._last.total, entry.amount))\n"
        '            __import__("time").sleep(1e-4)\n',
        "test_ledger.py::test_threads_at_a_barrier_never_exceed_the_limit",
        "test_ledger.py::test_releases_in_threads_never_exceed_the_limit",
    ),
    _bug(
        "ledger",
        "processes that read before they lock",
        '"BEGIN IMMEDIATE" if immediate else "BEGIN"',
        '"BEGIN"',
        "test_durable.py::test_eight_spawned_processes_never_pass_the_limit",
    ),
    _bug(
        "ledger",
        "a commit that is not on the disk",
        '"PRAGMA synchronous = FULL"',
        '"PRAGMA synchronous = OFF"',
        f"{REGISTER}::test_81_a_commit_is_on_the_disk_before_it_is_reported",
    ),
    _bug(
        "ledger",
        "no head beside the file",
        "            mark = rows.append(connection, last, entry)\n        self._keep_head(mark)",
        "            mark = rows.append(connection, last, entry)",
        "test_durable.py::test_an_older_copy_is_refused",
    ),
    _bug(
        "ledger",
        "an older copy that is not noticed",
        "if known != head.mark.head:",
        "if False:",
        "test_durable.py::test_an_older_copy_is_refused",
    ),
    _bug(
        "ledger",
        "entries that need not follow from the last one",
        "if row.number != last.entry + 1 or not row.follows(last.head):",
        "if row.number != last.entry + 1:",
        "test_durable.py::test_a_changed_file_is_refused",
    ),
    _bug(
        "ledger",
        "the default ledger open beside one with a limit",
        "if _chosen or not made_any.is_set():",
        "if True:",
        "test_ledger.py::test_with_another_ledger_made_the_default_is_closed_unless_named",
    ),
    _bug(
        "ledger",
        "a call that protects another unit than its ledger",
        "if checked_unit(unit) not in (None, self._terms.unit):",
        "if False:",
        "test_ledger.py::test_a_ledger_protects_one_unit",
    ),
)
MUTANTS = (*NOISE, *CALIBRATION, *SENSITIVITY, *ROWS, *UNITS, *RESULTS, *LEDGER)
