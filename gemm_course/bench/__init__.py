"""Measures the ladder on a GPU, beside cuBLAS, and writes `data/`: bench, sweep, profile."""
