"""Holds the checkers of the notebook ``thread_tiles_1d``, on a column of results per thread."""
