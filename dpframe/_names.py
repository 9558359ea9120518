"""Every public name and its file. All files are imported when a program first uses one of the names."""

from __future__ import annotations

import typing as _typing

from dpframe import denoise
from dpframe._version import VERSION as __version__  # noqa: N811
from dpframe.accessor import PrivateFrame, ReleasedFrame, concat, of, released
from dpframe.accounting.comparison import Comparison, compare_accounting
from dpframe.accounting.compositions import advanced_composition, optimal_composition
from dpframe.derived.comparing import compare
from dpframe.derived.expressions import combine
from dpframe.errors import (
    AlreadyReleased,
    BoundsWarning,
    BudgetExceeded,
    DpframeError,
    InvalidArgument,
    InvalidType,
    LedgerError,
    LedgerUnavailable,
    MissingArgument,
    NoLedger,
    NoProvenance,
    ReleaseFailed,
    UnknownColumn,
    UnlimitedBudgetWarning,
    WeakPrivacyWarning,
    WrongDtype,
)
from dpframe.frames.build import public, read_parquet
from dpframe.ledger.ledger import Ledger, default_ledger, set_default_ledger
from dpframe.mechanisms.baselines import (
    classical_gaussian,
    classical_gaussian_sigma,
    probabilistic_gaussian,
    probabilistic_gaussian_sigma,
)
from dpframe.mechanisms.contract import Mechanism
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.gaussian_curve import analytic_gaussian_sigma
from dpframe.mechanisms.generalized_curve import generalized_gaussian_scale
from dpframe.mechanisms.generalized_gaussian import GeneralizedGaussian, generalized_gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, exponential_mechanism
from dpframe.mechanisms.truncated import (
    TruncatedGeneralizedGaussian,
    truncated_generalized_gaussian,
    truncated_generalized_gaussian_scale,
)
from dpframe.planning.plan import Plan, PlanTable
from dpframe.planning.sensitivity import Sensitivity
from dpframe.privacy import PrivacyLoss, PrivacyUnit
from dpframe.queries.date_grid import dates
from dpframe.queries.discovery import discover
from dpframe.queries.keys import REST, bins
from dpframe.queries.statistics import (
    Correlation,
    Count,
    Covariance,
    Mean,
    NDistinct,
    NUnits,
    Proportion,
    Quantile,
    Quantiles,
    Ratio,
    Std,
    Sum,
    UnitSum,
    Variance,
    correlation,
    count,
    covariance,
    mean,
    median,
    n_distinct,
    n_units,
    proportion,
    quantile,
    ratio,
    std,
    sum,
    variance,
)
from dpframe.release.together import JointPlan, plan_together, release_together
from dpframe.streams.stream import Stream
from dpframe.streams.stream_plan import StreamPlan

__all__ = [
    "REST",
    "AlreadyReleased",
    "BoundsWarning",
    "BudgetExceeded",
    "Comparison",
    "Correlation",
    "Count",
    "Covariance",
    "DpframeError",
    "ExponentialMechanism",
    "Gaussian",
    "GeneralizedGaussian",
    "InvalidArgument",
    "InvalidType",
    "JointPlan",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LedgerUnavailable",
    "Mean",
    "Mechanism",
    "MissingArgument",
    "NDistinct",
    "NUnits",
    "NoLedger",
    "NoProvenance",
    "PermuteAndFlip",
    "Plan",
    "PlanTable",
    "PrivacyLoss",
    "PrivacyUnit",
    "PrivateFrame",
    "Proportion",
    "Quantile",
    "Quantiles",
    "Ratio",
    "ReleaseFailed",
    "ReleasedFrame",
    "Sensitivity",
    "Std",
    "Stream",
    "StreamPlan",
    "Sum",
    "TruncatedGeneralizedGaussian",
    "UnitSum",
    "UnknownColumn",
    "UnlimitedBudgetWarning",
    "Variance",
    "WeakPrivacyWarning",
    "WrongDtype",
    "__version__",
    "advanced_composition",
    "analytic_gaussian_sigma",
    "audit",
    "bins",
    "classical_gaussian",
    "classical_gaussian_sigma",
    "combine",
    "compare",
    "compare_accounting",
    "concat",
    "correlation",
    "count",
    "covariance",
    "dates",
    "default_ledger",
    "denoise",
    "discover",
    "exponential_mechanism",
    "generalized_gaussian",
    "generalized_gaussian_scale",
    "local",
    "mean",
    "median",
    "n_distinct",
    "n_units",
    "of",
    "optimal_composition",
    "plan_together",
    "probabilistic_gaussian",
    "probabilistic_gaussian_sigma",
    "proportion",
    "public",
    "quantile",
    "ratio",
    "read_parquet",
    "release_together",
    "released",
    "set_default_ledger",
    "std",
    "sum",
    "truncated_generalized_gaussian",
    "truncated_generalized_gaussian_scale",
    "variance",
]

if _typing.TYPE_CHECKING:
    from dpframe import audit, local  # few programs use them: imported on their first use
