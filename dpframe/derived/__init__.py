"""Statistics that are derived from released numbers, with the exact law of their noise: post-processing at no cost."""
