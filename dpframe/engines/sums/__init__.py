"""Rows to integers, and integers to exact totals of cells."""
