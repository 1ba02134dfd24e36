"""Notebook 04: a column of results per thread."""
