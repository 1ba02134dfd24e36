"""Holds the checkers of the notebook ``welcome``: places of threads and in memory, and the first kernels."""
