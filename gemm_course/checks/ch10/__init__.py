"""Holds the checkers of notebook 10, on mma.sync."""
