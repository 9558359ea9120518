"""Seeded bugs of suggested bounds, and of the contexts for testing a user's own pipeline."""

from __future__ import annotations

from assurance.bugs.seeding import bug

BOUNDS = "test_suggested_bounds.py"
NEIGHBORS = f"{BOUNDS}::test_neighbors_move_the_counts_by_no_more_than_is_stated"
WITHOUT_NOISE = f"{BOUNDS}::test_without_noise_the_shares_are_those_of_the_values"
HELD = f"{BOUNDS}::test_intervals_hold_and_errors_are_near_the_best"
TRIALS = "test_trials.py"
STAMPED = f"{TRIALS}::test_all_that_speaks_of_a_result_says_that_it_is_not_private"
DURABLE = f"{TRIALS}::test_a_durable_ledger_refuses_every_charge_inside"

SUGGESTIONS = (
    bug(
        "suggestions",
        "a row counts for less than it adds to its bin",
        "OneOfEach.norms",
        "return scale, scale**2",
        "return scale // 2 + 1, scale**2 // 2 + 1",
        NEIGHBORS,
    ),
    bug(
        "suggestions",
        "several columns at the cost of one",
        "shares_of",
        "return tuple(whole * share for share in _scaled(each))",
        "return tuple(whole for _ in each)",
        f"{BOUNDS}::test_several_columns_cost_as_one_vector_of_them",
    ),
    bug(
        "suggestions",
        "values on an edge are clipped by it",
        "_number_edges",
        "begins = np.nextafter(np.concatenate([[0.0], above]), math.inf)",
        "begins = np.concatenate([[1e-300], above])",
        f"{BOUNDS}::test_the_bins_are_those_of_the_page",
    ),
    bug(
        "suggestions",
        "values on a lower bound are surely clipped",
        "NoisyGrid._shares",
        "below(np.where(self.cuts.exact_lower[lower], lower + 1, lower))",
        "below(lower + 1)",
        f"{BOUNDS}::test_values_on_a_lower_bound_are_not_surely_clipped",
    ),
    bug(
        "suggestions",
        "intervals for one candidate alone",
        "NoisyGrid.margin",
        "return margin_of_tails(self.counts.size, self.law)",
        "return 0.67",
        HELD,
    ),
    bug(
        "suggestions",
        "the noise of far bins taken for values",
        "NoisyGrid._inside",
        "if self.seen is not None:",
        "if (first := 0) is not None:\n            return self.counts\n        if self.seen is not None:",
        f"{BOUNDS}::test_a_far_bin_of_noise_alone_is_left_out",
    ),
    bug(
        "suggestions",
        "only the last bins make the margin of tails",
        "margin_of_tails",
        "np.maximum(np.abs(first / sizes).max(axis=1), np.abs(last / sizes).max(axis=1))",
        "np.abs(first[:, -1]) / sizes[-1]",
        f"{BOUNDS}::test_the_margin_of_tails_holds_for_all_of_them_at_once",
    ),
    bug(
        "suggestions",
        "a seeded result without its stamp",
        "of_call",
        "if stamp is not None:",
        "if stamp is not None and 'exact' in stamp:",
        STAMPED,
    ),
    bug(
        "suggestions",
        "an exact result taken for a private one",
        "stamp",
        'return None if is_secure() else STAMPS[_trial.get() or "seeded"]',
        'return None if is_secure() or is_silent() else STAMPS[_trial.get() or "seeded"]',
        STAMPED,
    ),
    bug(
        "suggestions",
        "a statement without the stamp",
        "statements.statement_of",
        'sentences = [f"{facts[\'warning\']}."] if "warning" in facts else []',
        "sentences = []",
        STAMPED,
    ),
    bug(
        "suggestions",
        "seeded noise in a ledger that is kept",
        "Ledger._allowing",
        "if self.is_durable and (trial := trial_of()) is not None:",
        'if self.is_durable and (trial := trial_of()) == "exact":',
        DURABLE,
    ),
    bug(
        "suggestions",
        "a planned sum under replace with the noise of one under add-remove",
        "NoisyGrid._noise",
        'if unit.neighbors == "replace":',
        "if False:",
        "test_suggested_bounds.py::test_the_noise_is_that_of_the_call_that_is_planned",
    ),
)
