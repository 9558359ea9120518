"""Reports of files: released results, and the ledger that was charged, as one HTML file."""
