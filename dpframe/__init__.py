"""dpframe: private counts, sums, means and histograms of pandas and Polars frames.

Every query is a few clipped sums over public cells, computed exactly in integers, plus noise, plus arithmetic on the
noisy numbers. Importing dpframe gives frames their ``.dp``: ``help(pl.DataFrame.dp)`` lists its verbs, and
``help(dpf.Ledger)`` explains one name. By use:

- a budget: Ledger, PrivacyUnit, set_default_ledger
- frames and results: of (what ``df.dp`` is), released, concat, read_parquet, public
- statistics of ``df.dp.agg``: count, sum, mean, proportion, median, quantile, variance, std, n_units, n_distinct, ratio
- groups and bins: bins, dates, discover
- several at once: plan_together, release_together; over time: Stream; without a trusted collector: local
- errors: DpframeError and those below it; all names: ``dir(dpf)``

Examples
--------
>>> import dpframe as dpf, polars as pl
>>> people = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})
>>> with dpf.Ledger(epsilon=1.0):
...     ages = people.dp.histogram("age", bins=[0, 50, 100], epsilon=0.5)
>>> ages.columns
['age_left', 'age_right', 'count', 'count_noisy', 'count_error']
"""

import importlib as _importlib
import importlib.util as _util
import sys as _sys
import typing as _typing

from dpframe.frames.register import register as _register

if _typing.TYPE_CHECKING:
    from dpframe._names import *  # noqa: F403, what it imports is public
else:

    def __getattr__(name: str) -> _typing.Any:
        """Return a subpackage or a public name, imported on its first use."""
        if not name.startswith("_") and _util.find_spec(f"dpframe.{name}") is not None:
            return _importlib.import_module(f"dpframe.{name}")
        if name == "__all__" and _sys._getframe(1).f_globals.get("__name__") == "pydoc":
            raise AttributeError(name)  # pydoc would print the help of every public name, thousands of lines
        if not name.startswith("_") or name in ("__all__", "__version__"):
            names = vars(_importlib.import_module("dpframe._names"))
            if name == "__all__":  # not stored, so that pydoc asks each time
                return names[name]
            if name in names:
                return globals().setdefault(name, names[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_importlib.import_module("dpframe._names").__all__]


class _Accessor:
    """The getter of ``.dp``, which gives completers and ``help`` its return type on demand."""

    def __call__(self, frame: _typing.Any) -> _typing.Any:
        from dpframe.accessor import accessor

        return accessor(frame)

    @property
    def __annotations__(self) -> dict[str, _typing.Any]:  # type: ignore[override]
        from dpframe.accessor import PrivateFrame, ReleasedFrame

        return {"return": _typing.Union[PrivateFrame, ReleasedFrame]}  # noqa: UP007, Jedi knows no other form


_register(_Accessor())
