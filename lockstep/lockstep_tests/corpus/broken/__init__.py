"""Kernels of the corpus that are broken, one module per topic."""
