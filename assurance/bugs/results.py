"""Seeded bugs of the room "results"."""

from __future__ import annotations

from assurance.bugs.seeding import REGISTER, bug

PREPARED = "test_preparing.py"

BUILT = "    frame, chosen = results.built(ready, exact, words, receipt, drawn)"
RESULTS = (
    bug(
        "results",
        "the exact number of rows in the provenance",
        "path.release",
        BUILT,
        f'{BUILT}\n    results.build.record_of(frame)["height"] = getattr(call.frame, "shape", (0,))[0]',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "a hash of the data in the provenance",
        "path.release",
        BUILT,
        f'{BUILT}\n    results.build.record_of(frame)["data"] = hash(str(call.frame))',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "the number of rows in a log line",
        "path.release",
        'log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)',
        'log.info("released %s rows for %s, protecting %s", getattr(call.frame, "shape", ""), plan.cost, plan.unit)',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "attrs of the data inherited by the result",
        "path.release",
        BUILT,
        f'{BUILT}\n    getattr(frame, "attrs", {{}}).update(getattr(call.frame, "attrs", {{}}))',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "rows in the order of the data",
        "build.frame_of",
        "        return pandas.DataFrame({name: _pandas_column(values) for name, values in columns.items()})",
        "        made = pandas.DataFrame({name: _pandas_column(values) for name, values in columns.items()})\n"
        "        return made.sort_values(made.columns[-2], ignore_index=True) if len(made) > 1 else made",
        f"{REGISTER}::test_45_46_and_49_rows_are_the_declared_keys_in_their_order",
    ),
    bug(
        "results",
        "cells without rows left out",
        "results.built",
        "    frame = build.frame_of({**labels, **columns}, plan.question.library)",
        "    kept = np.asarray(columns[plan.columns[0]]) > 0.5\n"
        "    both = [{n: [v for v, k in zip(c, kept) if k] for n, c in some.items()} for some in (labels, columns)]\n"
        "    labels, columns = both\n"
        "    frame = build.frame_of({**labels, **columns}, plan.question.library)",
        f"{REGISTER}::test_45_46_and_49_rows_are_the_declared_keys_in_their_order",
    ),
    bug(
        "results",
        "a mean over the exact number of rows",
        "results.noisy_of",
        "noisy = with_noise(part.mechanism, total)",
        "noisy = total if len(plan.parts) > 1 and not part.total.values else with_noise(part.mechanism, total)",
        f"{REGISTER}::test_26_a_mean_is_not_taken_over_the_exact_count",
    ),
    bug(
        "results",
        "the error of the engine told to the caller",
        "results.looked",
        "        result = withheld(look)\n    except",
        "        result = look()\n"
        "    except Exception as error:\n"
        '        raise ReleaseFailed(f"the engine failed: {error}") from error\n'
        "    except",
        "test_results.py::test_an_error_of_the_engine_tells_nothing",
    ),
    bug(
        "results",
        "the levels of a pandas Categorical taken for declared keys",
        "_pandas_own_type",
        "return ColumnType(kind, str(dtype), zone=zone, tick=tick, identity=identity)",
        'levels = tuple(dtype.categories) if kind == "category" else None\n'
        "    return ColumnType(kind, str(dtype), zone=zone, tick=tick, identity=identity, levels=levels)",
        f"{REGISTER}::test_50_levels_of_the_data_are_not_kept",
    ),
    bug(
        "results",
        "keys taken from an array of data",
        "value_axis",
        "if not isinstance(values, (list, tuple, range)):",
        'values = list(values) if hasattr(values, "tolist") else values\n'
        "    if not isinstance(values, (list, tuple, range)):",
        "test_refusals.py",
    ),
    bug(
        "results",
        "a key that is declared twice counted twice",
        "KeyAxis.__post_init__",
        "            if tokens in seen:",
        "            if False:",
        f"{REGISTER}::test_53_keys_are_declared_once",
    ),
    bug(
        "results",
        "a plan for keys that are equal, whatever their type",
        "path._key",
        "else (dtypes, text.getvalue())",
        "else (dtypes, pickle.loads(text.getvalue()))",
        f"{PREPARED}::test_a_process_that_was_asked_much_answers_as_a_new_one",
    ),
    bug(
        "results",
        "a plan for any limit",
        "path._key",
        "dump((question, terms))",
        "dump((question, terms.unit, terms.accounting, terms.checks))",
        f"{PREPARED}::test_a_process_that_was_asked_much_answers_as_a_new_one",
    ),
    bug(
        "results",
        "a plan for any cost",
        "path._key",
        "dump((question, ",
        "dump((question.query, question.library, question.noising, question.denoising, ",
        f"{PREPARED}::test_a_process_that_was_asked_much_answers_as_a_new_one",
    ),
    bug(
        "results",
        "a plan for columns of any dtype",
        "path._key",
        "else (dtypes, text",
        "else (text",
        f"{PREPARED}::test_another_frame_is_another_question_by_its_dtypes_alone",
    ),
    bug(
        "results",
        "a plan that is kept with its frame",
        "path.prepared",
        "    plan = make_plan(call.frame, call.question, terms)\n",
        '    plan = make_plan(call.frame, call.question, terms)\n    object.__setattr__(plan, "call", call)\n',
        f"{PREPARED}::test_no_frame_is_kept",
    ),
    bug(
        "results",
        "the words of one call in the record of the next",
        "provenance.of_call",
        "    facts |= words.facts\n",
        '    facts |= prepared.plan.__dict__.setdefault("words", words.facts)\n',
        f"{PREPARED}::test_labels_and_records_are_those_of_the_call",
    ),
    bug(
        "results",
        "levels of a column in what is kept",
        "schema._dtype",
        '"category" if is_categorical else repr(dtype)',
        "repr(dtype)",
        f"{PREPARED}::test_levels_of_a_pandas_categorical_are_in_no_question",
    ),
    bug(
        "results",
        "a plan that is looked up twice, and cleared between",
        "path.prepared",
        "known = _kept.get(key)",
        "known = _kept[key] if key in _kept else None",
        f"{PREPARED}::test_176_a_thread_that_clears_plans_fails_no_call_of_another",
    ),
    bug(
        "results",
        "large integers next to a missing key as floats",
        "build._pandas_column",
        'return pandas.array(values, dtype="UInt64")',
        "return values",
        "frames/test_results.py::test_177_large_keys_have_labels_of_their_own",
    ),
    bug(
        "results",
        "large integers next to floats as floats",
        "build._pandas_column",
        "if all(abs(value) <= 2**53 for value in whole) else",
        "if whole else",
        "frames/test_results.py::test_177_large_keys_have_labels_of_their_own",
    ),
    bug(
        "results",
        "large integers of a file as floats",
        "build._pandas_of",
        "types.is_integer(field.type)",
        "types.is_signed_integer(field.type)",
        "frames/test_results.py::test_177_large_keys_of_files_have_labels_of_their_own",
    ),
    bug(
        "results",
        "a file that is written and cannot be read",
        "build._arrow",
        "if table is None or not all(foreign.is_released(field.type) for field in table.schema):",
        "if table is None:",
        "frames/test_results.py::test_175_a_file_that_cannot_be_read_is_not_written",
    ),
    bug(
        "results",
        "a two-way table that takes rows as they stand",
        "written_frame.table_of",
        "if result_tables.is_two_way(facts):",
        "if False:",
        "display/test_result_tables.py::test_a_two_way_table_of_sorted_rows_is_that_of_the_released_frame",
    ),
    bug(
        "results",
        "computed subtotals at the keys of other rows",
        "derived_frame.DerivedFrame._placed",
        'if "levels" in facts and (drawn or result_tables.is_two_way(facts)):',
        "if False:",
        "derived/test_derived_changes.py::test_subtotals_that_were_computed_stand_at_their_keys_in_any_order_of_rows",
    ),
    bug(
        "results",
        "a chart of a population with subtotals at the keys of other rows",
        "population.drawn",
        'rows = source.places if "levels" in said else np.arange(len(named))',
        "rows = np.arange(len(named))",
        "derived/test_comparing.py::test_charts_of_a_population_show_subtotals_at_their_keys_in_any_order_of_rows",
    ),
    bug(
        "results",
        "the words of a mechanism that fails on exact totals",
        "results.with_noise",
        "    except STOPS:\n        raise\n",
        "    except Exception:\n        raise\n",
        "test_own_code.py::test_188_of_a_mechanism_that_fails_on_totals_nothing_is_told",
    ),
    bug(
        "results",
        "a mechanism that is certain to fail tried after the charge",
        "path.tried_on_no_rows",
        "        _try_mechanisms(plan, exact)\n",
        "        pass\n",
        "test_own_code.py::test_188_a_mechanism_that_fails_on_zeros_costs_nothing",
    ),
)
