"""The same integers by loops in machine code, where the extra `fast` is installed."""
