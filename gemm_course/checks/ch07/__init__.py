"""Holds the checkers of notebook 07, on warp tiles."""
