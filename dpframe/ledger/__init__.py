"""The privacy budget ledger: its entries, its storage, and the choice of the ledger that a call is charged to."""
