"""Denoisers from papers that few calls need: denoisers on graphs, and baselines for comparison."""
