"""Holds the checkers of notebook 12, on scheduling and on a kernel of one's own."""
