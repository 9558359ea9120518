"""The statistics that an analyst may ask of a group, one file for each kind; and their parts."""

from dpframe.queries.quotients import fieller
from dpframe.queries.row_functions import RowFunction
from dpframe.queries.statistics.by_group import MeanByGroup, SumByGroup
from dpframe.queries.statistics.count import Contributors, Count, count
from dpframe.queries.statistics.covariance import Correlation, Covariance, correlation, covariance
from dpframe.queries.statistics.marginals import Marginals, marginals
from dpframe.queries.statistics.mean import Mean, mean
from dpframe.queries.statistics.n_distinct import NDistinct, n_distinct
from dpframe.queries.statistics.n_units import NUnits, n_units
from dpframe.queries.statistics.proportion import Proportion, proportion
from dpframe.queries.statistics.quantile import Ecdf, Quantile, QuantileByGroup, Quantiles, median, quantile
from dpframe.queries.statistics.ranges import Ranges, StagedRanges
from dpframe.queries.statistics.ratio import Ratio, Share, ratio
from dpframe.queries.statistics.statistic import CONFIDENCE, Clipped, Statistic
from dpframe.queries.statistics.suggested_bounds import SuggestedBounds, suggested_bounds
from dpframe.queries.statistics.sum import Sum, UnitSum, sum
from dpframe.queries.statistics.top_k import Mode, TopK
from dpframe.queries.statistics.variance import Std, StdByGroup, Variance, VarianceByGroup, std, variance
from dpframe.queries.statistics.weighted import WeightedCount, WeightedMean, WeightedProportion, WeightedSum
from dpframe.queries.total import Measured, Total

__all__ = [
    "CONFIDENCE",
    "Clipped",
    "Contributors",
    "Correlation",
    "Count",
    "Covariance",
    "Ecdf",
    "Marginals",
    "Mean",
    "MeanByGroup",
    "Measured",
    "Mode",
    "NDistinct",
    "NUnits",
    "Proportion",
    "Quantile",
    "QuantileByGroup",
    "Quantiles",
    "Ranges",
    "Ratio",
    "RowFunction",
    "Share",
    "StagedRanges",
    "Statistic",
    "Std",
    "StdByGroup",
    "SuggestedBounds",
    "Sum",
    "SumByGroup",
    "TopK",
    "Total",
    "UnitSum",
    "Variance",
    "VarianceByGroup",
    "WeightedCount",
    "WeightedMean",
    "WeightedProportion",
    "WeightedSum",
    "correlation",
    "count",
    "covariance",
    "fieller",
    "marginals",
    "mean",
    "median",
    "n_distinct",
    "n_units",
    "proportion",
    "quantile",
    "ratio",
    "std",
    "suggested_bounds",
    "sum",
    "variance",
]
