"""Holds the checkers of notebook 09, on overlap."""
