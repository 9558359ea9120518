"""Scripts that repeat the experiments of two papers: ``python -m papers.balle_wang_variance`` and so on."""
