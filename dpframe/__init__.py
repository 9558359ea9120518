"""dpframe: private counts, sums, means and histograms of pandas and Polars frames.

Every query is a few clipped sums over public cells, computed exactly in integers, plus noise, plus arithmetic on the
noisy numbers. Importing dpframe gives frames their ``.dp``.

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
import typing as _typing

from dpframe.frames.register import register as _register

if _typing.TYPE_CHECKING:
    from dpframe._names import *  # noqa: F403, what it imports is public
else:

    def __getattr__(name: str) -> _typing.Any:
        """A room or a public name, imported when a program first asks for it."""
        if not name.startswith("_") and _util.find_spec(f"dpframe.{name}") is not None:
            return _importlib.import_module(f"dpframe.{name}")
        if not name.startswith("_") or name in ("__all__", "__version__"):
            names = vars(_importlib.import_module("dpframe._names"))
            if name in names:
                return globals().setdefault(name, names[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_importlib.import_module("dpframe._names").__all__]


def _accessor(frame: _typing.Any) -> _typing.Any:
    from dpframe.accessor import accessor

    return accessor(frame)


_register(_accessor)
