"""What a caller says of a new ledger, checked and put into terms."""

from __future__ import annotations

from dpframe import noise
from dpframe.accounting import Accounting, accounting_of
from dpframe.accounting.registry import checked_limit, is_shipped
from dpframe.errors import InvalidArgument, InvalidType, MissingArgument, checked_name, shown
from dpframe.exact import exact_delta, exact_epsilon
from dpframe.ledger.canonical import now
from dpframe.ledger.terms import Limit, Terms
from dpframe.privacy import PrivacyUnit, checked_unit


def made(
    epsilon: object, delta: object, unit: object, accounting: object, dataset: object, *, durable: bool = False
) -> tuple[Accounting, Terms]:
    """The accounting and the terms of a new ledger."""
    if epsilon is None:
        words = "epsilon must be given: the most that may be spent. Write for instance Ledger(epsilon=1.0)."
        raise MissingArgument(words)
    if dataset is not None and not isinstance(dataset, str):
        raise InvalidType(f"dataset must be a string or None, not {shown(dataset)}. Write dataset='clinic'.")
    if dataset is not None:
        checked_name("dataset", dataset)
    typed = (exact_epsilon(epsilon), exact_delta(delta))
    how = accounting_of(accounting, *typed)
    if durable and not is_shipped(how):
        raise InvalidArgument(
            f"accounting must be 'basic', 'gdp', 'rdp' or None for a durable ledger, not {how.name}, which is not "
            "dpframe's: whoever opens the ledger must know it. Leave path out."
        )
    limit = Limit(*typed, checked_limit(how, *typed), how.one_is_enough)
    return how, Terms(checked_unit(unit) or PrivacyUnit(), limit, how.name, dataset, now(), noise.nonce())
