"""Checks for what people add to dpframe."""

from dpframe.testing.broken import ContractBroken
from dpframe.testing.statistic_rules import check_statistic

__all__ = ["ContractBroken", "check_statistic"]
