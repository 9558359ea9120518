"""Seeded bugs of sensitivities."""

from __future__ import annotations

from assurance.bugs.seeding import ATTAINED, bug

NORMS = "test_sensitivity.py::test_norms_are_rounded_up"
SENSITIVITY = (
    bug(
        "sensitivity",
        "replace neighbors counted as add-remove, non-negative",
        "Sensitivity.steps",
        "two_cells = _root_up(self.rows * largest, 2 * Fraction(self.groups), p)",
        "two_cells = _root_up(self.rows * largest, Fraction(self.groups), p)",
        ATTAINED,
    ),
    bug(
        "sensitivity",
        "replace neighbors counted as add-remove, signed",
        "Sensitivity.steps",
        "return two_cells if self.weighted else max(two_cells, one_cell)",
        "return two_cells",
        ATTAINED,
    ),
    bug(
        "sensitivity",
        "one cell under replace moved by one end only",
        "Sensitivity.steps",
        "one_cell = up(Fraction(self.rows * (largest + other)))",
        "one_cell = up(Fraction(self.rows * largest))",
        ATTAINED,
    ),
    bug(
        "sensitivity",
        "max_rows forgotten",
        "Sensitivity.steps",
        "return _root_up(self.rows * largest, Fraction(self.groups), p)",
        "return _root_up(largest, Fraction(self.groups), p)",
        NORMS,
    ),
    bug(
        "sensitivity",
        "max_groups forgotten",
        "Sensitivity.steps",
        "return _root_up(self.rows * largest, Fraction(self.groups), p)",
        "return _root_up(self.rows * largest, Fraction(1), p)",
        NORMS,
    ),
    bug(
        "sensitivity",
        "the upper bound taken for the larger one",
        "Sensitivity.steps",
        "largest, other = sorted((-self.reach[0], self.reach[1]), reverse=True)",
        "other, largest = -self.reach[0], max(self.reach[1], 1)",
        ATTAINED,
    ),
    bug(
        "sensitivity",
        "a root rounded to nearest",
        "exact.root_up",
        "while Fraction(estimate) ** p < power:",
        "while False:",
        NORMS,
    ),
    bug(
        "sensitivity",
        "signed vectors of two people, as if only one end moved in each cell",
        "Sensitivity.steps",
        "Fraction(2 * (largest**2 + other**2) * self.groups)",
        "Fraction(2 * largest**2 * self.groups)",
        "test_sensitivity.py",
    ),
    bug(
        "sensitivity",
        "missing values forgotten: the least that a row may add is its bound",
        "SumTotal.norm",
        "(min(lower, 0), max(upper, 0))",
        "(lower, upper)",
        ATTAINED,
    ),
    bug(
        "sensitivity",
        "noises of two norms for one weight of a unit",
        "price.noises_of",
        "if len({noise.norm for noise in noises}) > 1:",
        "if False:",
        "test_choice.py::test_noises_of_the_callers_of_several_shapes_are_refused",
    ),
    bug(
        "sensitivity",
        "noise that is proven for one cell used on the numbers of one group",
        "Sensitivity.swayed",
        "        if self.vector is not None:\n            return self.cells\n",
        "",
        "test_choice.py::test_every_number_of_a_vector_is_a_cell_that_a_row_may_change",
    ),
)
