"""Notebook 05: a tile of results per thread."""
