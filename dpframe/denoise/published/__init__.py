"""Denoisers of papers that few calls need: on graphs, and baselines to compare with."""
