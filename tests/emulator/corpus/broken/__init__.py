"""Kernels of the corpus that are broken, one module a theme."""
