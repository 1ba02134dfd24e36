"""Holds the checkers of the notebook ``last_per_cent``, on scheduling and on a kernel of one's own."""
