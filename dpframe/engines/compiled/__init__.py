"""Loops in machine code for the same integers, if the extra `fast` is installed."""
