"""Holds the checkers of notebook 00: places of threads, places in memory, and the first kernels."""
