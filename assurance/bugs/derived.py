"""Seeded bugs of the room "derived"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

COMBINE = "test_combine.py"
COMPARE = "test_comparing.py"
CHANGES = "test_derived_changes.py"
DERIVED = (
    bug(
        "derived",
        "squares added up inside marginals, as if their cells were independent",
        "Moments.of",
        "                more, rounded = _of_spread(block, weights)",
        "                from scipy.sparse import eye_array\n\n"
        "                _, rounded = _of_spread(block, weights)\n"
        "                alone = eye_array(block.size).tocsr()\n"
        "                each = _of_spread(block, [alone, alone])[0][0]\n"
        "                one, other = weights\n"
        "                pairs = ((one, one), (one, other), (other, other))\n"
        "                more = np.stack([a.multiply(b) @ each for a, b in pairs])",
        f"{COMBINE}::test_sums_inside_marginals_have_the_error_of_their_contrasts",
    ),
    bug(
        "derived",
        "a draw that is used twice taken as two draws",
        "Linear.sum_with",
        "            known = noise.get(key)",
        "            known, key = None, (*key, len(noise))",
        f"{COMBINE}::test_a_number_less_itself_is_exactly_nothing",
        f"{COMBINE}::test_a_replay_is_the_same_number_and_another_release_is_not",
    ),
    bug(
        "derived",
        "parts of one charge taken as one result",
        "Source.identity",
        'return (self.facts["release"], self.facts.get("part"))',
        'return (self.facts["release"], None)',
        f"{COMBINE}::test_parts_of_one_charge_are_independent",
    ),
    bug(
        "derived",
        "periods of a stream taken as independent",
        "traced._of_stream",
        'block = Block((facts["release"], "stream"), law,',
        'block = Block((facts["release"], period["number"]), law,',
        f"{COMBINE}::test_the_variance_is_that_of_the_dense_matrix",
    ),
    bug(
        "derived",
        "a quotient by the interval of its numerator alone",
        "linear._fieller",
        "told = np.array([reach[angle] for angle in angles])",
        "told = np.full(angles.size, one.half_width(1.0, 0.0, confidence))",
        "test_derived_coverage.py::test_quotients_cover",
    ),
    bug(
        "derived",
        "the chance of a sample left out of intervals of a population",
        "Estimate.reach",
        "np.where(self.told, np.hypot(noise, chance), np.inf)",
        "np.where(self.told, noise, np.inf)",
        f"{COMPARE}::test_without_noise_intervals_are_those_of_textbooks",
        "test_population_coverage.py::test_equal_groups_rarely_differ",
    ),
    bug(
        "derived",
        "the noise left out of intervals of a population",
        "Estimate.reach",
        "np.where(self.told, np.hypot(noise, chance), np.inf)",
        "np.where(self.told, chance, np.inf)",
        f"{COMPARE}::test_intervals_of_a_population_hold_the_noise",
    ),
    bug(
        "derived",
        "groups compared that one unit may be in together",
        "comparing._of_groups",
        'if unit["column"] is not None and unit["max_groups"] != 1:',
        'if unit["column"] is not None and unit["max_groups"] is None:',
        f"{COMPARE}::test_rows_that_are_no_sample_are_refused_before_a_charge",
    ),
    bug(
        "derived",
        "two releases taken as independent where nobody said so",
        "comparing._of_results",
        'if samples != "different":',
        'if samples not in (None, "different"):',
        f"{COMPARE}::test_independence_is_never_assumed",
    ),
    bug(
        "derived",
        "counts of all rows compared with counts of some",
        "comparing._of_results",
        "if one.get(fact) != other.get(fact)",
        'if fact != "where" and one.get(fact) != other.get(fact)',
        f"{COMPARE}::test_different_statistics_of_two_results_are_not_compared",
    ),
    bug(
        "derived",
        "rows compared with people",
        "comparing._of_results",
        "if units[0] != units[1]:",
        "if len(units) != 2:",
        f"{COMPARE}::test_results_of_different_units_are_not_compared",
    ),
    bug(
        "derived",
        "means with values in place of missing ones taken as of a sample",
        "contributions.check_sample",
        'if "missing" in said:',
        'if "missing" in said and asked == "population=True":',
        f"{COMPARE}::test_a_mean_with_values_in_place_of_missing_ones_tells_of_no_population",
    ),
    bug(
        "derived",
        "the spread of some rows taken as that of all",
        "population._spreads_beside",
        'alike = ("column", "bounds", "where")',
        'alike = ("column", "bounds")',
        f"{COMPARE}::test_the_spread_of_some_rows_does_not_stand_in_for_that_of_all",
    ),
    bug(
        "derived",
        "the number of some rows taken as that of all",
        "population._squares_of_sum",
        ' and one.get("where") in (None, said.get("where"))',
        "",
        f"{COMPARE}::test_the_number_of_some_rows_does_not_stand_in_for_that_of_all",
    ),
    bug(
        "derived",
        "differences of shares beyond 0 and 1 left without an interval",
        "comparing._compared",
        "middles = np.clip(one.middles - other.middles, least, most)",
        "middles = one.middles - other.middles",
        f"{COMPARE}::test_shares_that_noise_moved_beyond_0_and_1_keep_an_interval",
    ),
    bug(
        "derived",
        "shares beyond 0 and 1 left without an interval of the population",
        "Estimate.limits",
        "middles = np.clip(self.middles, np.minimum(self.values, self.least), np.maximum(self.values, self.most))",
        "middles = self.middles",
        f"{COMPARE}::test_shares_that_noise_moved_beyond_0_and_1_keep_an_interval",
    ),
    bug(
        "derived",
        "p-values of one side with intervals of two",
        "comparing._p_values",
        "np.maximum(2.0 * ndtr(-score), LEAST_P)",
        "np.maximum(ndtr(-score), LEAST_P)",
        f"{COMPARE}::test_p_values_agree_with_intervals",
    ),
    bug(
        "derived",
        "Holm's p-values out of order",
        "comparing._holm",
        "np.maximum.accumulate(np.minimum(p_values[order] * factors, 1.0))",
        "np.minimum(p_values[order] * factors, 1.0)",
        f"{COMPARE}::test_holm_widens_intervals_and_raises_p_values",
    ),
    bug(
        "derived",
        "independence tested against noise alone, as if no chance were in a table",
        "independence._test",
        "_multinomial(size, (expected / expected.sum()).ravel(), seed) + _noise(table, seed)",
        "expected.ravel() + _noise(table, seed)",
        "test_population_coverage.py::test_independent_columns_rarely_seem_dependent",
    ),
    bug(
        "derived",
        "rows of one person taken as a sample",
        "contributions.check_sample",
        "if unit.max_rows == 1 == groups:",
        "if unit.max_rows and groups == 1:",
        f"{COMPARE}::test_rows_that_are_no_sample_are_refused_before_a_charge",
    ),
    bug(
        "derived",
        "rows of one person in one of several allowed groups taken as a sample",
        "contributions.check_sample",
        "if unit.max_rows == 1 == groups:",
        "if unit.max_rows == 1:",
        f"{COMPARE}::test_rows_of_one_person_that_may_be_in_one_group_are_no_sample",
    ),
    bug(
        "derived",
        "sums of bins with the interval of one bin, of a population",
        "provenance.errors",
        'if "sums" in statistic and changes.is_whole(facts) and halves is None:',
        'if "sums" in statistic and changes.is_whole(facts):',
        f"{COMPARE}::test_sums_of_bins_have_no_interval_of_one_bin",
    ),
    bug(
        "derived",
        "a variance with another spread left out of intervals without a word",
        "population.sampled_names",
        "beside = any(verb in VERBS for verb in verbs.values())",
        "beside = len(verbs) > 1",
        f"{COMPARE}::test_two_spreads_alone_tell_of_no_population",
    ),
    bug(
        "derived",
        "the rows of a filtered result taken as the first ones of its release",
        "Source.form",
        "return self.whole.form(self.whole.unbiased(of)).at(rows)",
        "first = self.whole.form(self.whole.unbiased(of))\n"
        "            values = first.at(rows).values if isinstance(first, Linear) else None\n"
        "            moved = first.at(np.arange(len(rows)))\n"
        "            return moved if values is None else Linear(values, moved.noise)",
        f"{CHANGES}::test_totals_of_filtered_marginals_have_the_variance_of_the_dense_matrix",
        f"{CHANGES}::test_some_rows_are_those_cells_in_any_order",
    ),
    bug(
        "derived",
        "a total of one of several tables that were filtered to different keys",
        "along._level_of",
        "    _check_alike(source, levels, stops)\n",
        "",
        f"{CHANGES}::test_tables_of_which_different_keys_were_filtered_are_refused",
    ),
    bug(
        "derived",
        "rows that an expression chose by their noisy numbers taken as chosen by keys",
        "changes.filtered",
        "by_keys = _is_of_keys(release.frame.select(labels), given, mask)",
        "by_keys = {*given.meta.root_names()} <= {*labels}",
        f"{CHANGES}::test_what_was_chosen_by_its_noise_is_refused",
    ),
    bug(
        "derived",
        "a total matched with the missing key of another result",
        "Source.tokens",
        'missing = TOTAL if "levels" in self.facts else None',
        "missing = None",
        f"{COMBINE}::test_a_total_is_no_missing_key",
    ),
)
