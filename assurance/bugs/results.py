"""Seeded bugs of the room "results"."""

from __future__ import annotations

from assurance.bugs.seeding import REGISTER, bug

ASKED = "test_asked_before.py"

RESULTS = (
    bug(
        "results",
        "the exact number of rows in the provenance",
        "provenance._known",
        '"keep_noisy": keep_noisy,\n',
        '"keep_noisy": keep_noisy,\n'
        '        "height": getattr(plan.frame, "height", getattr(plan.frame, "shape", (0,))[0]),\n',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "a hash of the data in the provenance",
        "provenance._known",
        '"keep_noisy": keep_noisy,\n',
        '"keep_noisy": keep_noisy,\n        "data": hash(str(plan.frame)),\n',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "the number of rows in a log line",
        "path.release",
        'log.info("released %s for %s, protecting %s", plan.query, plan.cost, plan.unit)',
        'log.info("released %s rows for %s, protecting %s", getattr(plan.frame, "shape", ""), plan.cost, plan.unit)',
        f"{REGISTER}::test_64_to_71_nothing_but_the_noise_depends_on_a_row",
    ),
    bug(
        "results",
        "attrs of the data inherited by the result",
        "results.built",
        "    return build.attach(frame, facts(plan, frame, steps, receipt, label, columns)), None",
        '    getattr(frame, "attrs", {}).update(getattr(plan.frame, "attrs", {}))\n'
        "    return build.attach(frame, facts(plan, frame, steps, receipt, label, columns)), None",
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
        "    frame = build.frame_of({**labels, **columns}, plan.asked.library)",
        "    kept = np.asarray(columns[plan.columns[0]]) > 0.5\n"
        "    both = [{n: [v for v, k in zip(c, kept) if k] for n, c in some.items()} for some in (labels, columns)]\n"
        "    labels, columns = both\n"
        "    frame = build.frame_of({**labels, **columns}, plan.asked.library)",
        f"{REGISTER}::test_45_46_and_49_rows_are_the_declared_keys_in_their_order",
    ),
    bug(
        "results",
        "a mean over the exact number of rows",
        "results.noisy_of",
        "noisy = part.mechanism.add_noise(total)",
        "noisy = total if len(plan.parts) > 1 and part.total.bounds is None else part.mechanism.add_noise(total)",
        f"{REGISTER}::test_26_a_mean_is_not_taken_over_the_exact_count",
    ),
    bug(
        "results",
        "the error of the engine told to the caller",
        "one_look._or_none",
        "        return withheld(look)\n    except",
        "        return look()\n"
        "    except Exception as error:\n"
        '        raise ReleaseFailed(f"the engine failed: {error}") from error\n'
        "    except",
        "test_results.py::test_an_error_of_the_engine_tells_nothing",
    ),
    bug(
        "results",
        "the levels of a pandas Categorical taken for declared keys",
        "_pandas_own_type",
        "return ColumnType(kind, str(dtype), aware=aware, tick=tick, identity=identity)",
        'levels = tuple(dtype.categories) if kind == "category" else None\n'
        "    return ColumnType(kind, str(dtype), aware=aware, tick=tick, identity=identity, levels=levels)",
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
        "asked_before._told",
        "parts += (kind, value)",
        "parts.append(value)",
        f"{ASKED}::test_a_process_that_was_asked_much_answers_as_a_new_one",
    ),
    bug(
        "results",
        "a plan for any limit",
        "asked_before.key_of",
        "ledger.accounting, ledger.limit_amount)",
        "ledger.accounting)",
        f"{ASKED}::test_a_process_that_was_asked_much_answers_as_a_new_one",
    ),
    bug(
        "results",
        "a plan for any price",
        "asked_before.key_of",
        "ledger=None)",
        "ledger=None, epsilon=None)",
        f"{ASKED}::test_a_process_that_was_asked_much_answers_as_a_new_one",
    ),
    bug(
        "results",
        "a plan for columns of any dtype",
        "asked_before.key_of",
        "[dtypes]",
        "[]",
        f"{ASKED}::test_another_frame_is_another_question_by_its_dtypes_alone",
    ),
    bug(
        "results",
        "a plan that is kept with its frame",
        "asked_before.keep",
        "plan.asked_by(None)",
        "plan",
        f"{ASKED}::test_no_frame_is_kept",
    ),
    bug(
        "results",
        "levels of a column in what is kept",
        "no_rows._dtype",
        '"category" if is_categorical else repr(dtype)',
        "repr(dtype)",
        f"{ASKED}::test_levels_of_a_pandas_categorical_are_in_no_question",
    ),
)
