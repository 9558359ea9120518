"""Seeded bugs of exact numbers, from the arguments of a call to the ledger."""

from __future__ import annotations

from assurance.bugs.seeding import bug

DOOR = "test_exact.py::test_91_a_number_is_worth_what_it_holds"
EXACT = (
    bug(
        "exact",
        "NumPy's integers pass the door as they are",
        "_integer",
        "    return int.__index__(value if isinstance(value, int) else operator.index(value))",
        "    return value",
        DOOR,
    ),
    bug(
        "exact",
        "a Fraction passes the door with the parts that it has",
        "exact._read",
        "        return Fraction(numerator, denominator)\n",
        "        return value if isinstance(value, Fraction) else Fraction(numerator, denominator)\n",
        DOOR,
    ),
    bug(
        "exact",
        "a number is read by the methods of its own class",
        "_ratio_of_float",
        "        plain = float.__float__(value)",
        "        plain = float(value)",
        DOOR,
    ),
    bug(
        "exact",
        "durations of NumPy count as integers",
        "is_number",
        "isinstance(value, kinds) and not isinstance(value, (bool, np.timedelta64))",
        "isinstance(value, kinds) and not isinstance(value, bool)",
        "test_exact.py::test_91_what_is_no_number_is_refused",
    ),
    bug(
        "exact",
        "a total may fall",
        "plus",
        "    if not all(map(operator.ge, total, spent or (0,) * len(total))):",
        "    if False:",
        "test_exact.py::test_91_a_total_never_falls_whatever_asks",
    ),
    bug(
        "exact",
        "a store takes any number",
        "plus",
        "    if not all(map(is_exact, (*amount, *total))):",
        "    if False:",
        "test_exact.py::test_91_a_store_takes_python_fractions_alone",
    ),
    bug(
        "exact",
        "an amount is charged as the caller gave it",
        "Ledger.take",
        "        entry = replace(entry, amount=checked_amount(entry.amount, self._parts))\n",
        "",
        "test_exact.py::test_91_amounts_of_any_number_are_made_exact",
    ),
    bug(
        "exact",
        "a cost of any number of digits",
        "exact._read",
        "        too_long = abs(numerator) > MOST or abs(denominator) > MOST",
        "        too_long = False",
        "test_exact.py::test_98_a_number_of_too_many_digits_is_refused_at_once",
    ),
    bug(
        "exact",
        "a Decimal of any exponent is written out",
        "_ratio_of_decimal",
        "    if len(digits) > MOST_DIGITS or abs(int(exponent)) > MOST_DIGITS:",
        "    if False:",
        "test_exact.py::test_98_a_number_of_too_many_digits_is_refused_at_once",
    ),
    bug(
        "exact",
        "up is the nearest float",
        "exact.up",
        "    return closest if closest >= value else math.nextafter(closest, math.inf)",
        "    return closest",
        "test_exact.py::test_up_and_down_are_conservative_and_tight",
    ),
    bug(
        "exact",
        "down is the nearest float",
        "down",
        "    return closest if closest <= value else math.nextafter(closest, -math.inf)",
        "    return closest",
        "test_exact.py::test_up_and_down_are_conservative_and_tight",
    ),
    bug(
        "exact",
        "a mechanism keeps the numbers that it was given",
        "exact.length",
        "    return int(number) if is_whole(value) else up(number)",
        "    return value",
        "test_exact.py::test_91_calibrations_of_any_number_are_those_of_the_plain_one",
    ),
    bug(
        "exact",
        "a sensitivity of NumPy's integers is divided as it is",
        "analytic_gaussian_sigma",
        "    return up(reach / Fraction(largest_mu(loss",
        "    return up(Fraction(sensitivity) / Fraction(largest_mu(loss",
        "test_exact.py::test_91_no_calibration_wraps_around",
    ),
)
