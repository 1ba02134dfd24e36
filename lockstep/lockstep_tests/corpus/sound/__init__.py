"""Kernels of the corpus that are sound, one module per topic."""
