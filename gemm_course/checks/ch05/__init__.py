"""Holds the checkers of notebook 05, on a tile of results per thread."""
