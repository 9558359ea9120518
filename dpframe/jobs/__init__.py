"""Jobs: a file that says which releases are made of which table, at what price, and where they are written."""
