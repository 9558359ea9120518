"""Seeded bugs of the room "derived"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

COMBINE = "test_combine.py"
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
)
