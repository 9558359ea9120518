"""Engines, which turn rows into exact totals."""
