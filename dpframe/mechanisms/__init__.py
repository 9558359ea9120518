"""Noise, calibrated."""
