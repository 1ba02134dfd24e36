"""Holds the checkers of notebook 06, on accesses of four floats at a time."""
