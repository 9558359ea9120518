"""Seeded bugs of charges, at least one on each release path."""

from __future__ import annotations

from assurance.bugs.seeding import bug, bugs

ONE = "test_charges.py::test_one_entry_costs_what_it_was_charged"
FULL = "test_charges.py::test_a_full_ledger_holds_what_it_promises"
HALF = "tuple(part / 2 for part in {})"

CHARGES = (
    bug(
        "charges",
        "a verb that is charged half",
        "results.entry_of",
        "        plan.amount,\n",
        f"        {HALF.format('plan.amount')},\n",
        ONE,
    ),
    bug(
        "charges",
        "plans together that are charged half",
        "together.release_together",
        "joint.amount, joint.cost",
        f"{HALF.format('joint.amount')}, joint.cost",
        ONE,
    ),
    bug(
        "charges",
        "plans together of which the first alone is charged",
        "together.joint_plan",
        "every = tuple(noise for name in calls for noise in noises[name])",
        "every = noises[next(iter(calls))]",
        ONE,
    ),
    bug(
        "charges",
        "keys that are found, whose measures are not charged",
        "priced_with_keys",
        "amount = accounting.charge(price, limit, noises)",
        "amount = accounting.charge(price, limit, noises[:1])",
        ONE,
    ),
    bug(
        "charges",
        "keys that are found at half of their delta",
        "KeysReserve.charge",
        "(mechanism.keys_delta for mechanism in mechanisms)",
        "(mechanism.keys_delta / 2 for mechanism in mechanisms)",
        ONE,
    ),
    bug(
        "charges",
        "keys that are found, at the delta of the call alone",
        "protocol.with_keys",
        "return max(delta, keys) if apart else delta + keys",
        "return delta",
        ONE,
    ),
    bug(
        "charges",
        "a stream that is charged half",
        "stream_path.entry_of",
        "        plan.amount,\n",
        f"        {HALF.format('plan.amount')},\n",
        ONE,
    ),
    bug(
        "charges",
        "marginals that are charged a quarter of their mu^2",
        "ContrastGaussian",
        '    name: ClassVar[str] = "rounded Gaussian"\n',
        '    name: ClassVar[str] = "rounded Gaussian"\n'
        "    mu_squared = property(lambda self: Gaussian.mu_squared.fget(self) / 4)\n",
        ONE,
    ),
    bug(
        "charges",
        "several looks of which the last alone is charged",
        "price.priced",
        "    amount = accounting.charge(price, limit, every)\n",
        "    amount = accounting.charge(price, limit, every[-1:])\n",
        ONE,
    ),
    bug(
        "charges",
        "pure noise at half of its mu^2",
        "Mechanism.mu_squared",
        "Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2",
        "Fraction(gaussian_curve.pure_to_mu(self.pure_epsilon)) ** 2 / 2",
        ONE,
    ),
    bug(
        "charges",
        "a bounded range at the mu of a quarter of its length",
        "declared.mu_of_range",
        "up(length / 2)",
        "up(length / 4)",
        ONE,
    ),
    bug(
        "charges",
        "reports that are charged half",
        "randomizing.randomized",
        "    amount = payer.accounting.charge(price, payer.limit_amount, (curve,))\n",
        "    amount = payer.accounting.charge(price, payer.limit_amount, (curve,))\n    amount = "
        + HALF.format("amount")
        + "\n",
        ONE,
    ),
    bug(
        "charges",
        "reports that the ledger takes for a choice of bounded range",
        "randomizing.randomized",
        "    amount = payer.accounting.charge(price, payer.limit_amount, (curve,))\n",
        "    from dpframe.accounting import BoundedRange\n\n"
        "    amount = payer.accounting.charge(price, payer.limit_amount, (BoundedRange(curve.budget),))\n",
        ONE,
    ),
    bug(
        "charges",
        "a replay that is drawn anew",
        "path.release",
        "    if isinstance(receipt, Answer):\n",
        "    if isinstance(receipt, Answer):\n        receipt = {}\n    if isinstance(receipt, Answer):\n",
        ONE,
        FULL,
    ),
    bugs(
        "charges",
        "another question under the name of a stored answer, drawn and not charged",
        (
            ("entries.refuse_other_facts", "    if differ := differing(entry, earlier):", '    if differ := "":'),
            (
                "path.release",
                "    if isinstance(receipt, Answer):\n",
                "    if isinstance(receipt, Answer) and 'sum' in str(plan.query):\n        receipt = {}\n"
                "    if isinstance(receipt, Answer):\n",
            ),
        ),
        ONE,
        FULL,
    ),
    bug(
        "charges",
        "places that are peeled, of which the last is not charged",
        "Peeling.mu_squared",
        "self.choice.mu_squared * self.chosen",
        "self.choice.mu_squared * max(1, self.chosen - 1)",
        "accounting/test_charges.py::test_each_place_that_is_peeled_is_charged",
    ),
    bug(
        "charges",
        "noise of shape 2 at half of its mu^2",
        "GeneralizedGaussian.mu_squared",
        "return 2 * (Fraction(",
        "return (Fraction(",
        "accounting/test_charges.py::test_the_shape_of_normal_noise_costs_what_normal_noise_costs",
    ),
    bug(
        "charges",
        "one vector that takes the place of another as one that is added",
        "Sensitivity._of_vectors",
        "doubled = 2 if self.replace else 1",
        "doubled = 1",
        "accounting/test_charges.py::test_one_entry_of_any_other_path_costs_what_it_was_charged",
    ),
    bug(
        "charges",
        "a quantile by choice at half of its divergence",
        "QuantileChoice.renyi",
        "return self.choice.renyi(order)",
        "return self.choice.renyi(order) / 2",
        "accounting/test_charges.py::test_one_entry_of_any_other_path_costs_what_it_was_charged",
    ),
    bug(
        "charges",
        "210: a column that is named as the numbers of units",
        "price._shares",
        "if hidden and KEYS in names:",
        "if False:",
        "release/test_found_keys.py::test_210_a_column_that_is_named_as_the_numbers_of_units_takes_no_share_twice",
    ),
    bug(
        "charges",
        "210: a cost that is divided into more than the whole",
        "price.parts_of",
        "if (whole or sum(shares)) > 1:",
        "if False:",
        "release/test_found_keys.py::test_210_no_division_of_a_cost_is_more_than_the_whole",
    ),
    bug(
        "charges",
        "211: digits of mpmath that another thread changes",
        "exact.to_digits",
        "with _turn, mpmath.workdps(number):",
        "with mpmath.workdps(number):",
        "test_exact.py::test_211_a_thread_does_not_change_the_digits_of_another",
    ),
    bug(
        "charges",
        "212: as much given away for the rounding of many noises as for that of one",
        "comparison._rounding",
        "return ROUNDING + ROUNDING_EACH * noises",
        "return ROUNDING",
        "test_compositions.py::test_212_of_so_many_noises_that_double_precision_decides_nothing_is_told",
    ),
    bug(
        "charges",
        "weights of a preview that change with the dict of the caller",
        "Pricing.__post_init__",
        'for argument in ("within", "weights"):',
        'for argument in ("within",):',
        "test_together.py::test_a_plan_keeps_its_weights_whatever_the_caller_does_with_the_dict",
    ),
)
