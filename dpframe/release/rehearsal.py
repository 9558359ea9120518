"""The whole call on no rows, before the charge: what is certain to fail must not cost anything.

Nothing here sees a row, so every error may say what happened. The noise is not drawn, and what is built of zeros is
thrown away, but for the columns that name the cells, which the answer takes over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from dpframe.engines.no_rows import columns_of, dtypes_of, emptied
from dpframe.engines.totals import totals
from dpframe.errors import InvalidArgument, ReleaseFailed, WrongDtype
from dpframe.frames import build, foreign
from dpframe.frames.kinds import library_of
from dpframe.planning.plan import Plan
from dpframe.release import discovering
from dpframe.release.denoising import denoised, is_own
from dpframe.release.results import stand_in
from dpframe.release.tried import said, tried

MOST_PASSED = 1_000

_passed: set[bytes] = set()  # hashes of questions of schemas that the engine could answer: they need not be tried again


def rehearse(plan: Plan, recorded: Callable[[Any], Any]) -> dict[str, Any]:
    """The columns that name the cells; typed errors for what cannot be computed, built, recorded or denoised."""
    key = _key(plan)
    known = key in _passed and not callable(plan.asked.noising.mechanism)  # that may say anything of itself
    if not known:
        _rehearse_totals(plan)
    labels = _labels(plan)
    if not known:
        _rehearse_record(lambda: recorded(stand_in(plan, labels)))
        if len(_passed) >= MOST_PASSED:
            _passed.clear()
        _passed.add(key)
    _rehearse_denoisers(plan)
    return labels


def _key(plan: Plan) -> bytes:
    """A hash of the question, as it is written down (True is not 1 there), and of the dtypes that it reads."""
    dtypes = dtypes_of(plan.frame, columns_of(plan.query, plan.unit))
    question = repr(
        (library_of(plan.frame), plan.asked.library, dtypes, plan.query, plan.unit, plan.parts[0].mechanism.norm)
    )
    return hashlib.sha256(question.encode(errors="surrogatepass")).digest()


def _rehearse_record(recorded: Callable[[], Any]) -> None:
    """Refuse a call whose provenance cannot be made, or is not plain JSON, as a mechanism's own words may be."""
    rule = "the call must have a provenance of plain JSON values, and it cannot be written"
    with tried(InvalidArgument, rule, "Let keys and mechanism be numbers and strings of ordinary length."):
        facts = recorded()
        json.dumps(facts)
        if problem := foreign.problem_of(facts):  # then nobody could read it, and the result would not know itself
            raise ValueError(problem)


def _rehearse_totals(plan: Plan) -> None:
    """Let the engine compute the totals of no rows."""
    columns, norm = columns_of(plan.query, plan.unit), plan.parts[0].mechanism.norm
    rule = "keys, bins and bounds must suit their columns, and the dataframe engine fails on them even without rows"
    with tried(WrongDtype, rule, "Write keys in the dtype of their column, or cast the column."):
        if plan.query.found is not None:
            discovering.rehearse_keys(plan, emptied(plan.frame, columns))
        else:
            totals(emptied(plan.frame, columns), plan.query, plan.unit, norm)


def _labels(plan: Plan) -> dict[str, Any]:
    library, names = plan.asked.library, ", ".join(plan.query.shown.names)
    rule = f"keys and bins must be values that one column of a result can hold, and those of {names} are not"
    with tried(InvalidArgument, rule, "Write them as one type, and times in one time zone."):
        return {name: build.column_of(name, values, library) for name, values in plan.query.labels().items()}


def _rehearse_denoisers(plan: Plan) -> None:
    """Let functions of the caller's denoise made-up values: 1, 2, 3, ... of their shape. dpframe's own cannot fail."""
    if not any(callable(denoiser) and not is_own(denoiser) for denoiser in plan.asked.denoising.steps):
        return
    values = np.arange(1.0, plan.query.rows + 1.0)
    for _, statistic in plan.query.statistics:
        if not statistic.denoisable:
            continue
        try:
            denoised(values, statistic, plan, {})
        except ReleaseFailed as error:
            cause = error.__cause__
            raise InvalidArgument(
                "denoise must be a function that can be called with noisy values and their noise, and on the values "
                f"1, 2, 3, ... it raises {said(cause) if cause else 'an error'}. Nothing was charged. Mend it."
            ) from cause
