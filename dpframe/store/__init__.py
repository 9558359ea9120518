"""Where a ledger keeps its charges: in memory, in a file, or in a database. It adds and compares; it prices nothing."""
