"""Holds the checkers of notebook 01, on the naive kernel."""
