"""The only room that touches rows or dataframe libraries."""
