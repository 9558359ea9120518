"""Calibrated noise and private choices."""
