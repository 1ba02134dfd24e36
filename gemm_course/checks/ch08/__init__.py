"""Holds the checkers of notebook 08, on Tensor Cores."""
