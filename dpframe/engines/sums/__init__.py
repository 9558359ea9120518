"""Conversion of rows to integers, and of integers to exact totals of cells."""
