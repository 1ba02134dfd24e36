"""Holds the checkers of notebook 03, on tiles in shared memory."""
