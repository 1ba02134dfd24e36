"""Holds the checkers of the notebook ``warp_tiles``, on warp tiles."""
