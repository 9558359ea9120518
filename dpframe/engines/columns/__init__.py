"""Columns of a caller's table: their dtypes, how their values are compared, and their conversion to Polars."""
