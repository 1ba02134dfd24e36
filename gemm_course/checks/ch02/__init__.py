"""Holds the checkers of notebook 02, on coalesced access."""
