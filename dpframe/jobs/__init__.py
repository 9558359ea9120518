"""Jobs: a file states the releases of a table, their costs, and the files to write."""
