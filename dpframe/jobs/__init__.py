"""Jobs: a file that says which releases are made of which table, at what cost, and where they are written."""
