"""Holds the checkers of notebook 11, on Hopper."""
