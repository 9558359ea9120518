"""Calls measure, charge, state and refuse what ``tests/record`` says (``assurance/record.py``).

If a difference is intended, ``python -m assurance.record --write`` writes the record anew, and the diff of the record
belongs to the change.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

import dpframe as dpf
from assurance import record
from assurance.record_calls import CALLS

KNOWN = record.stored()
LONG = ("preview of mean; checks, a function", "preview of means in groups; checks, a function")  # seven epsilons each


@pytest.mark.parametrize(
    "call", [pytest.param(call, id=call.name, marks=[pytest.mark.slow] * (call.name in LONG)) for call in CALLS]
)
def test_a_call_is_as_recorded(call):
    if not call.can_be_made:
        pytest.skip("pandas or dp-accounting is not installed")
    known, taken = KNOWN.get(call.name, "{}"), record.line_of(call)
    assert record.same(call, known, taken), record.difference(known, taken)


def test_other_digits_are_told_from_other_words():
    known = '{"scale": "36.44391191668437", "totals": [10, 12]}'
    assert record.alike(known, known.replace("1668437", "1658151"))
    assert not record.alike(known, known.replace("36.44391", "36.44392"))
    assert not record.alike(known, known.replace("12]", "13]"))
    assert not record.alike(known, known.replace("scale", "scales"))


def test_the_record_has_these_calls_and_no_others():
    names = Counter(call.name for call in CALLS)
    assert set(names.values()) == {1}
    assert set(names) == set(KNOWN)
    assert len(names) >= 400


def test_the_record_is_small_and_names_no_moment_and_no_place():
    files = sorted(record.FOLDER.glob("*.json"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert len(text) < 2_000_000
    assert not re.search(r"T\d{2}:\d{2}:\d{2}\+00:00|/tmp/|\b(?=[0-9]*[a-f])[0-9a-f]{32}", text)
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(json.loads(file.read_text(encoding="utf-8"))) + 2, "one line for each call"


def test_noise_is_left_out_only_while_the_record_is_taken():
    noise = dpf.Laplace(1, 2.0**20)
    totals = np.arange(5)
    with record.measured_into([]) as _:
        assert noise.add_noise(totals).tolist() == totals.tolist()
    assert noise.add_noise(totals).tolist() != totals.tolist()


def test_every_mechanism_of_the_package_is_recorded():
    public = [getattr(dpf, name) for name in dpf.__all__]
    classes = {one for one in public if isinstance(one, type) and issubclass(one, dpf.Mechanism)}
    measured = {part["name"] for line in KNOWN.values() for part in json.loads(line).get("measured", ())}
    assert len(classes - {dpf.Mechanism}) == 6
    assert {name.split(",")[0] for name in measured} >= {
        "discrete Laplace",
        "rounded Gaussian",
        "rounded generalized Gaussian",
        "truncated generalized Gaussian",
        "exponential mechanism",
        "permute-and-flip",
    }


def test_a_difference_is_shown_in_lines():
    told = record.difference('{"spent": "1.0"}', '{"spent": "2.0"}')
    assert '- "spent": "1.0"' in told
    assert '+ "spent": "2.0"' in told
