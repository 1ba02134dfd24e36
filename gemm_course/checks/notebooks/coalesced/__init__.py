"""Holds the checkers of the notebook ``coalesced``, on coalesced access."""
