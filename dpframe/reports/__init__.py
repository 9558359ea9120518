"""Reports of files: released results, and the ledger that paid for them, as one HTML file."""
