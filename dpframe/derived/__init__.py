"""Numbers that are computed from released ones, with the exact law of their noise: post-processing, at no cost."""
