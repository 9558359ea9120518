"""What an analyst may ask of a group, one file for each; and what they are made from."""

from dpframe.queries.fieller import fieller
from dpframe.queries.statistics.contributors import Contributors
from dpframe.queries.statistics.count import Count, count
from dpframe.queries.statistics.mean import Mean, mean
from dpframe.queries.statistics.mode import Mode
from dpframe.queries.statistics.statistic import CONFIDENCE, Clipped, Statistic
from dpframe.queries.statistics.sum import Sum, sum
from dpframe.queries.total import Measured, RowFunction, Total

__all__ = [
    "CONFIDENCE",
    "Clipped",
    "Contributors",
    "Count",
    "Mean",
    "Measured",
    "Mode",
    "RowFunction",
    "Statistic",
    "Sum",
    "Total",
    "count",
    "fieller",
    "mean",
    "sum",
]
