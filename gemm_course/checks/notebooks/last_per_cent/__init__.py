"""Holds the checkers of the notebook ``last_per_cent``, on what idles between tiles."""
