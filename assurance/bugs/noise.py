"""Seeded bugs of the room "noise"."""

from __future__ import annotations

from assurance.bugs.seeding import REGISTER, bug, bugs

NOISE = (
    bug(
        "noise",
        "a Laplace scale that is 10% too small",
        "Laplace.of_steps",
        "scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE)",
        "0.9 * scale_of(Fraction(step_sensitivity), epsilon, LARGEST_LAPLACE)",
        "test_mechanisms.py::test_scales_are_rounded_up",
    ),
    bug(
        "noise",
        "Laplace noise drawn with 0.9 of the scale that is stated",
        "Laplace.add_noise",
        "noise.discrete_laplace(self.step_scale,",
        "noise.discrete_laplace(0.9 * self.step_scale,",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    bug(
        "noise",
        "Gaussian noise drawn with 0.9 of the scale that is stated",
        "Gaussian.add_noise",
        "scale = math.nextafter(self.step_scale * math.sqrt(2.0), math.inf)",
        "scale = 0.9 * self.step_scale * math.sqrt(2.0)",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    bug(
        "noise",
        "sigma taken for the scale b of the family, sqrt(2) forgotten",
        "Gaussian.add_noise",
        "scale = math.nextafter(self.step_scale * math.sqrt(2.0), math.inf)",
        "scale = self.step_scale",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    bug(
        "noise",
        "one draw for all cells",
        "Laplace.add_noise",
        "noise.discrete_laplace(self.step_scale, checked_integers(totals).size)",
        "np.repeat(noise.discrete_laplace(self.step_scale, 1), checked_integers(totals).size)",
        f"{REGISTER}::test_02_to_04_noise_has_the_law_that_is_stated",
    ),
    bug(
        "noise",
        "noise as floats from NumPy's generator",
        "results.built",
        "Measured(noisy.astype(np.float64) * part.mechanism.grid, part.mechanism)",
        "Measured(noisy.astype(np.float64) * part.mechanism.grid + np.random.laplace(size=noisy.shape),"
        " part.mechanism)",
        f"{REGISTER}::test_01_to_05_numbers_lie_on_a_grid_that_is_public",
    ),
    bug(
        "noise",
        "bits that anybody can compute",
        "_source",
        '"dpframe_random_bytes", default=os.urandom)',
        '"dpframe_random_bytes", default=lambda size: hashlib.shake_256(b"0").digest(size))',
        "test_noise.py::test_the_bits_are_the_operating_systems",
    ),
    bugs(
        "noise",
        "bits kept in a buffer that a forked child inherits",
        (
            (
                "random_bits.numbers",
                "def numbers(count: int, bits: int)",
                "_buffer = bytearray()\n\n\ndef numbers(count: int, bits: int)",
            ),
            (
                "random_bits.numbers",
                '    drawn = np.frombuffer(_source.get()(size * count), dtype=f"u{size}")',
                "    if len(_buffer) < size * count:\n"
                "        _buffer.extend(_source.get()(size * count + 2**16))\n"
                '    drawn = np.frombuffer(bytes(_buffer[: size * count]), dtype=f"u{size}")\n'
                "    del _buffer[: size * count]",
            ),
        ),
        f"{REGISTER}::test_90_a_forked_child_shares_no_draw_with_its_parent",
    ),
    bug(
        "noise",
        "a law that is half a step off",
        "Law.shift",
        "return 0.0 if self.discrete else 0.5",
        "return 0.5",
        "test_noise.py::test_draws_have_exactly_their_law",
    ),
    bug(
        "noise",
        "a choice as sharp under replacement as under addition",
        "ExponentialMechanism.of_steps",
        "cls(reach * (1 if monotonic else 2),",
        "cls(reach,",
        "test_selection.py::test_replacement_takes_twice_the_spread",
    ),
    bug(
        "noise",
        "noise on bounds for several cells by the loss of one",
        "truncated.truncated_generalized_gaussian",
        "cells=1.0 if sensitivity.swayed == 1 else math.inf,",
        "cells=1.0,",
        "test_truncated.py::test_units_and_replacement_are_covered_by_the_l1_norm",
    ),
    bug(
        "noise",
        "noise that is never negative",
        "discrete_laplace",
        "return drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size)",
        "return np.abs(drawn(table_of(Law(1.0, checked_scale(scale), discrete=True)), size))",
        "test_noise.py::test_draws_have_exactly_their_law",
    ),
    bug(
        "noise",
        "no tails beyond the table",
        "_tried",
        "        tried[tail], kept[tail] = _tail(table)",
        "        pass",
        f"{REGISTER}::test_02_to_04_tails_are_not_cut",
    ),
    bug(
        "noise",
        "every point of a rectangle kept",
        "accepted",
        "        found[place] = below(int(drawn[place]), thresholds(int(place)))\n    return found",
        "        found[place] = below(int(drawn[place]), thresholds(int(place)))\n    return np.ones_like(found)",
        "test_noise.py::test_what_the_guide_leaves_over_has_exactly_its_law",
    ),
    bug(
        "noise",
        "undecided draws taken as decided",
        "accepted",
        "        found[place] = below(int(drawn[place]), thresholds(int(place)))",
        "        pass",
        f"{REGISTER}::test_02_to_04_what_double_precision_leaves_open_is_decided_exactly",
    ),
    bug(
        "noise",
        "low digits of large noise left at zero",
        "drawn",
        "            batch |= numbers(batch.size, digits)",
        "            pass",
        f"{REGISTER}::test_02_and_03_the_last_bits_of_large_noise_are_even",
    ),
    bug(
        "noise",
        "addition that saturates instead of wrapping",
        "wrapped",
        "return (totals.view(np.uint64) + drawn.reshape(totals.shape).view(np.uint64)).view(np.int64)",
        "return np.clip(totals.astype(np.float64) + drawn.reshape(totals.shape), -(2.0**63), 2.0**63 - 1025)"
        ".astype(np.int64)",
        "test_noise.py::test_addition_wraps_and_keeps_the_shape",
    ),
    bug(
        "noise",
        "noisy counts cut at zero before the raw value is shown",
        "results.built",
        "noisy = part.mechanism.add_noise(found.pop(part.total))",
        "noisy = np.maximum(part.mechanism.add_noise(found.pop(part.total)), 0)",
        f"{REGISTER}::test_11_and_27_nothing_is_cut_at_zero_or_at_the_bounds",
    ),
    bug(
        "noise",
        "empty cells left without noise",
        "results.built",
        "noisy = part.mechanism.add_noise(found.pop(part.total))",
        "exact = found.pop(part.total)\n        noisy = np.where(exact == 0, 0, part.mechanism.add_noise(exact))",
        f"{REGISTER}::test_46_and_47_empty_cells_have_noise_of_their_own",
    ),
    bug(
        "noise",
        "seeded bits without a stamp",
        "provenance._known",
        "if not secure:",
        "if False:",
        "test_results.py::test_seeded_bits_are_stamped",
    ),
)
