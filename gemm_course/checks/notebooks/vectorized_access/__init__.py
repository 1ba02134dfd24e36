"""Holds the checkers of the notebook ``vectorized_access``, on accesses of four floats at a time."""
