"""Holds the checkers of the notebook ``tensor_cores``, on Tensor Cores."""
