"""Holds the checkers of notebook 04, on a column of results per thread."""
