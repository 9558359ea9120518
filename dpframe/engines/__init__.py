"""Rows in, exact totals out."""
