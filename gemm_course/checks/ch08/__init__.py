"""Notebook 08: Tensor Cores."""
