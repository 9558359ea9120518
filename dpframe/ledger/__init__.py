"""The ledger: the one mutable thing, and which of several ledgers a call is charged to."""
