"""Plans of queries, made from public facts alone: the numbers to measure, their noise and the cost."""
