"""Holds the checkers of the notebook ``thread_tiles_2d``, on a tile of results per thread."""
