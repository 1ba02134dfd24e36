"""Notebook 00: who am I, and where does it lie in memory; the first kernels."""
